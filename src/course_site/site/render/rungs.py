"""Kernels of a ladder side by side, idea by idea: two are seen, and a script shows any other two."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from course_site.pages import diffs
from course_site.pages.block_settings import TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.fences import LANGUAGES, fenced
from course_site.pages.rungs import Ladder, Lines, Rung
from course_site.pages.rungs import read as read_rungs
from course_site.pages.urls import shown_file
from course_site.site.render.writer import Writer

SCRIPT, STYLE = "assets/js/rungs.js", "assets/css/rungs.css"


def rungs(writer: Writer, block: Block) -> str:
    """Return the lines that say each idea, two rungs beside each other; `unsaid` is what stands where there are none.

    All rungs are in the page, and without a script the two that it opens with are seen.
    """
    settings = read(block.text, {"alt": TEXT, "unsaid": TEXT, "rest": TEXT, "left": TEXT, "right": TEXT})
    try:
        file = shown_file(writer.course.root, block.argument)
    except ValueError as error:
        raise DirectiveError(str(error)) from None
    ladder = read_rungs(writer.course.root, file)
    words = {name: html.escape(writer.plain(text)) for name, text in settings.items()}
    colours = {
        file: diffs.coloured("\n".join(text), LANGUAGES.get(Path(file).suffix, "text"))
        for file, text in ladder.texts.items()
    }
    titles = {**ladder.ideas, "": settings["rest"]}
    rows = "".join(_row(idea, title, ladder, colours, words) for idea, title in titles.items())
    needs = f'<link rel="stylesheet" href="{writer.shared(STYLE)}">'
    needs += f'<script src="{writer.shared(SCRIPT)}" defer></script>'
    first = next(rung for rung in ladder.rungs if rung.name == ladder.first[0])
    # The first one is read; the other is looked up beside it.
    lines = sum(bool(line.strip()) for part in _all(first) for line in ladder.text(part))
    return writer.slot(
        f'<div class="rungs" data-lines="{lines}" role="group" aria-label="{words["alt"]}" data-search-exclude>'
        f"{needs}{_choice(ladder, words)}{rows}</div>",
        "\n\n".join(_in_words(ladder, titles)),
    )


def _all(rung: Rung) -> list[Lines]:
    return list(dict.fromkeys([*(part for parts in rung.ideas.values() for part in parts), *rung.rest]))


def _of(rung: Rung, idea: str) -> Sequence[Lines]:
    return rung.ideas[idea] if idea else rung.rest


def _choice(ladder: Ladder, words: Mapping[str, str]) -> str:
    """Return the two lists to choose from, which the script shows."""
    selects = []
    for label, chosen in zip((words["left"], words["right"]), ladder.first, strict=True):
        options = "".join(
            f'<option value="{rung.name}"{" selected" * (rung.name == chosen)}>{html.escape(rung.title)}</option>'
            for rung in ladder.rungs
        )
        selects.append(f"<label>{label} <select>{options}</select></label>")
    return f'<form class="pick" hidden>{"".join(selects)}</form>'


def _row(
    idea: str, title: str, ladder: Ladder, colours: Mapping[str, Sequence[str]], words: Mapping[str, str]
) -> str:
    by_name = {rung.name: rung for rung in ladder.rungs}
    others = [name for name in by_name if name not in ladder.first]
    cells = "".join(
        _cell(by_name[name], idea, colours, words, is_seen=name in ladder.first)
        for name in (*ladder.first, *others)
    )
    if not idea:
        return f'<details class="fold"><summary>{html.escape(title)}</summary><div class="idea">{cells}</div></details>'
    return f'<div class="idea"><p class="name">{html.escape(title)}</p>{cells}</div>'


def _cell(
    rung: Rung, idea: str, colours: Mapping[str, Sequence[str]], words: Mapping[str, str], *, is_seen: bool
) -> str:
    parts = "".join(
        f'<span class="from">{part.file} {_range(part)}</span><pre><code>'
        + "\n".join(_dedented(colours[part.file][part.first - 1 : part.last]))
        + "</code></pre>"
        for part in _of(rung, idea)
    )
    said = parts or f'<p class="unsaid">{words["unsaid"]}</p>'
    hidden = "" if is_seen else " hidden"
    return (
        f'<div class="side highlight no-copy" data-rung="{rung.name}"{hidden}>'
        f'<span class="rung">{html.escape(rung.title)}</span>{said}</div>'
    )


def _range(part: Lines) -> str:
    return str(part.first) if part.first == part.last else f"{part.first}–{part.last}"


def _dedented(lines: Sequence[str]) -> list[str]:
    """Return lines of HTML without their common margin; what a preprocessor reads does not count."""
    margins = [
        len(line) - len(line.lstrip(" ")) for line in lines if line.startswith(" ") or line[:1].isalnum()
    ]
    margins += [0 for line in lines if line.startswith("<") and "#" not in line[:30]]
    margin = min(margins, default=0)
    return [line[margin:] if line.startswith(" " * margin) else line for line in lines]


def _in_words(ladder: Ladder, titles: Mapping[str, str]) -> Iterator[str]:
    """Yield the two rungs that the page opens with as Markdown, for the notebook."""
    seen = [next(rung for rung in ladder.rungs if rung.name == name) for name in ladder.first]
    for idea, title in titles.items():
        yield f"**{title}**"
        for rung in seen:
            for part in _of(rung, idea):
                language = LANGUAGES.get(Path(part.file).suffix, "text")
                yield f"{rung.title}, {part.file} {_range(part)}:"
                yield fenced("\n".join(ladder.text(part)), f".{language}")
