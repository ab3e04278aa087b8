"""The blocks a page author writes, `/// kind | argument` to `///`, as a tree.

Only the shape is read here; what a block becomes is decided where pages are rendered. Fenced code is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from course_site.pages import fences


# What a kind takes: does its head need an argument, is its body YAML, which parts may follow.
@dataclass(frozen=True)
class Kind:
    """The grammar of one kind of block."""

    argument: str = "required"  # required | none | optional
    body: str = "prose"  # prose | words (prose that holds no block) | yaml | none
    parts: tuple[str, ...] = ()
    needs_part: bool = False
    timed: bool = False  # `| 10 minutes` may stand behind its head


KINDS = {
    "claim": Kind(parts=("otherwise",)),
    "when": Kind(parts=("otherwise",)),
    "define": Kind(body="yaml"),
    "chart": Kind(body="yaml"),
    "explorable": Kind(body="yaml"),
    "table": Kind(argument="none", body="yaml"),
    "text": Kind(body="yaml"),
    "hero": Kind(argument="none", body="yaml"),
    "road": Kind(argument="none", body="yaml"),
    "take_along": Kind(argument="none", body="none"),
    "predict": Kind(parts=("reveal",), needs_part=True, timed=True),
    "exercise": Kind(parts=("answer",), needs_part=True, timed=True),
    "source": Kind(body="yaml"),
    "diff": Kind(body="yaml"),
    "rungs": Kind(body="yaml"),
    "figure": Kind(body="yaml"),
    "callout": Kind(body="words"),
    "lab": Kind(body="none"),
    "kernels": Kind(body="yaml"),
    "session": Kind(body="none"),
    "cohort": Kind(body="none"),
    "units": Kind(body="none"),
    "ledger": Kind(argument="none", body="none"),
    "moved": Kind(argument="none", body="none"),
    "glossary": Kind(argument="none", body="none"),
    "kitchen": Kind(argument="none", body="none"),
    "key": Kind(argument="none", body="none"),
    "attacks": Kind(argument="none", body="none"),
    "part": Kind(body="yaml"),
    "year": Kind(body="none"),
    "week": Kind(argument="none", body="none"),
    "reading": Kind(argument="none", body="yaml"),
    "idea": Kind(),
    "your_gpu": Kind(body="yaml"),
    "beside": Kind(body="yaml"),
}
_PARTS = frozenset(part for kind in KINDS.values() for part in kind.parts)
_HEAD = re.compile(r"///(?:\s+(?P<kind>[\w-]+)\s*(?:\|\s*(?P<argument>.*?))?)?\s*$")
_MINUTES = re.compile(r"\s*\|\s*(?P<count>[1-9]\d?) minutes?$")


class DirectiveError(ValueError):
    """A block that is unknown, headless or unclosed: one line, with the line of the cell."""


@dataclass
class Block:
    """One block: `body` and every part are lists of prose strings and blocks; a YAML body is one string.

    `minutes` is what its head says that it takes, 0 where it says nothing.
    """

    kind: str
    argument: str
    body: list[str | Block] = field(default_factory=list)
    parts: dict[str, list[str | Block]] = field(default_factory=dict)
    minutes: int = 0

    @property
    def text(self) -> str:
        """The body of a block that holds no other block."""
        return "\n".join(item for item in self.body if isinstance(item, str))


def parse(text: str) -> list[str | Block]:
    """Prose and blocks of one cell, in order.

    Raises:
        DirectiveError: see the class.
    """
    root: list[str | Block] = []
    stack: list[Block] = []
    target: list[list[str | Block]] = [root]
    lines: list[str] = []

    def flush() -> None:
        if lines:
            target[-1].append("\n".join(lines))
            lines.clear()

    for part in fences.lines(text):
        line = part.text.rstrip("\n")
        if part.part or not line.startswith("///"):
            lines.append(line)
            continue
        head = _HEAD.match(line)
        if not head:
            raise DirectiveError(f"cannot read the block head {line.strip()!r}")
        flush()
        kind, argument = head["kind"], head["argument"] or ""
        if kind is None:
            if not stack:
                raise DirectiveError("`///` closes a block that was never opened")
            _finish(stack.pop())
            target.pop()
        elif kind in _PARTS:
            if not stack or kind not in KINDS[stack[-1].kind].parts:
                raise DirectiveError(f"`/// {kind}` is outside the block it belongs to")
            if kind in stack[-1].parts:
                raise DirectiveError(f"`/// {kind}` occurs twice in one block")
            target[-1] = stack[-1].parts.setdefault(kind, [])
        else:
            block = _open(kind, argument)
            if stack and KINDS[stack[-1].kind].body != "prose":
                holds = "words" if KINDS[stack[-1].kind].body == "words" else "settings"
                raise DirectiveError(
                    f"`/// {kind}` is inside `/// {stack[-1].kind}`, which holds {holds} only"
                )
            target[-1].append(block)
            stack.append(block)
            target.append(block.body)
    flush()
    if stack:
        raise DirectiveError(f"`/// {stack[-1].kind} | {stack[-1].argument}` is never closed")
    return root


def _open(kind: str, argument: str) -> Block:
    if kind not in KINDS:
        raise DirectiveError(f"unknown block `/// {kind}`; known: {', '.join(sorted(KINDS))}")
    wants = KINDS[kind].argument
    if wants == "required" and not argument:
        raise DirectiveError(f"`/// {kind}` has no head: write `/// {kind} | …`")
    if wants == "none" and argument:
        raise DirectiveError(f"`/// {kind}` takes nothing after its name")
    said = _MINUTES.search(argument) if KINDS[kind].timed else None
    if said:
        return Block(kind, argument[: said.start()], minutes=int(said["count"]))
    return Block(kind, argument)


def _finish(block: Block) -> None:
    grammar = KINDS[block.kind]
    if grammar.needs_part and not block.parts:
        raise DirectiveError(f"`/// {block.kind} | {block.argument}` lacks its `/// {grammar.parts[0]}`")
    if grammar.body == "words" and not block.text.strip():
        raise DirectiveError(f"`/// {block.kind} | {block.argument}` is empty")
    if grammar.body == "none" and block.text.strip():
        raise DirectiveError(f"`/// {block.kind}` holds nothing")


def spoken(nodes: list[str | Block]) -> str:
    """Return the prose of some nodes, and of the blocks in them that hold prose."""
    parts = (
        node if isinstance(node, str) else spoken(node.body) if KINDS[node.kind].body == "prose" else ""
        for node in nodes
    )
    return "\n".join(parts)


def walk_blocks(nodes: list[str | Block]) -> Iterator[Block]:
    """Yield every block of a tree, outer before inner."""
    for node in nodes:
        if isinstance(node, Block):
            yield node
            yield from walk_blocks(node.body)
            for part in node.parts.values():
                yield from walk_blocks(part)
