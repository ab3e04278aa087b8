"""Blocks that ask something of the reader, or speak to the mentor: predictions, exercises, labs, callouts."""

from __future__ import annotations

from typing import Any

from course_labs.lab import LabError, find_lab
from course_site.pages.blocks import Block, DirectiveError
from course_site.site import callouts, labs
from course_site.site.render.writer import Writer, details, div


def predict(writer: Writer, block: Block) -> str:
    """A question to answer before the run's own answer is unfolded."""
    ask = writer.question(block.argument, guesses=True)
    body = writer.nodes(block.body, guesses=True)
    reveal = writer.nodes(block.parts["reveal"])
    says = "What the run says" if writer.page.runs else "Answer"
    return div("predict", f"{ask}\n\n{body}\n\n{details('reveal', says, reveal)}")


def exercise(writer: Writer, block: Block) -> str:
    """Something to do, with its answer folded."""
    ask = writer.question(block.argument)
    body, answer = writer.nodes(block.body), writer.nodes(block.parts["answer"])
    return div("exercise", f"{ask}\n\n{body}\n\n{details('answer', 'Answer', answer)}")


def callout(writer: Writer, block: Block, **allowed: Any) -> str:
    """A word aside to the mentor; `allowed` is what the block around it may say."""
    kind = block.argument
    if kind not in callouts.TITLES:
        raise DirectiveError(f"there is no such callout; known: {', '.join(callouts.TITLES)}")
    title = f'<p class="kind">{writer.slot(callouts.icon(kind))}{callouts.TITLES[kind]}</p>'
    return div(f"callout {kind}", f"{title}\n\n{writer.nodes(block.body, **allowed)}")


def lab(writer: Writer, block: Block) -> str:
    """A lab on its page."""
    try:
        lab = find_lab(writer.course.root, block.argument)
    except LabError as error:
        raise DirectiveError(str(error).removeprefix(f"{writer.course.root}/")) from None
    if lab.page != writer.page.path.as_posix():
        raise DirectiveError(f"its lab.toml names {lab.page} as its page")
    for text in [lab.prints(door, stage) for door in lab.doors for stage in range(len(lab.stages) + 1)]:
        writer.lint_output(text)
    for text in lab.alone.doors.values() if lab.alone else ():
        writer.lint_output(text)
    body = labs.markdown(lab, writer.text, details)
    return div("lab", f"{writer.question(lab.title)}\n\n{body}")
