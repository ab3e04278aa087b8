"""Blocks that ask something of the reader, or speak to the mentor: predictions, exercises, labs, callouts."""

from __future__ import annotations

import contextlib
from typing import Any

from course_labs.lab import LabError
from course_site.lint import choice_words
from course_site.pages.blocks import Block, DirectiveError, spoken
from course_site.pages.choices import Choice, name_of, taken_apart
from course_site.pages.placeholders import PLACEHOLDER
from course_site.sessions import worked_answers
from course_site.site import callouts, labs
from course_site.site.render import reading_time
from course_site.site.render.writer import Writer, details, div
from course_site.values import claims
from course_site.values.values import ExpressionError, NotHere, evaluate


def predict(writer: Writer, block: Block) -> str:
    """Return a question to answer before the run's own answer is unfolded.

    It is answered by one of its choices, or in words of one's own.
    """
    said, choices = taken_apart(block)
    name = name_of(block)
    if writer.asked.setdefault(name, block) is not block:
        raise DirectiveError("the same question is on this page twice, with the same choices")
    right = _right(writer, block, choices)
    _hold_words(writer, block, choices)
    for choice in choices:
        writer.of_one_card([choice.condition] if choice.condition else [], f"{block.argument} {choice.text}")
    before = writer.nodes(said, guesses=True)
    reveal = writer.nodes(block.parts["reveal"])
    says = "What the run says" if writer.page.runs else "Answer"
    taken = timed(block.minutes or reading_time.PREDICTION, usual=not block.minutes)
    waits = "" if writer.has_numbers else " data-waits"
    call = ""
    if choices:
        # The script brings a button: the room for it is there before it.
        call = writer.slot('<div class="call"></div>') + "\n\n"
        lines = "\n".join(_choice(writer, name, n, c.text, n == right) for n, c in enumerate(choices))
        legend = writer.question(block.argument, element="legend", guesses=True)
        asks = f"{legend}\n\n{before}\n\n{div('choices', lines)}"
        asks = f'<fieldset markdown="1">\n\n{asks}\n\n</fieldset>'
    else:
        asks = f"{writer.question(block.argument, guesses=True)}\n\n{before}"
    return div("predict", f"{asks}\n\n{call}{details('reveal', says, reveal)}", f' id="{name}"{waits}{taken}')


def _hold_words(writer: Writer, block: Block, choices: list[Choice]) -> None:
    """Note a typed mark that the reveal contradicts, and words that belong to the condition of another choice."""
    if not (writer.has_numbers and writer.course.is_reference) or writer.course.rebuilt:
        return
    for fault in choice_words.wrong_words(choices):
        raise DirectiveError(fault)
    first = next((text for text in block.parts["reveal"] if isinstance(text, str) and "{{" in text), "")
    found = PLACEHOLDER.search(first)
    if found and not any(choice.condition for choice in choices):
        with contextlib.suppress(ExpressionError):
            value = evaluate(found["expression"], writer.scope).value
            behind = first[found.end() :]
            shown = value * 100 if str(found["format"] or "").strip().endswith("%") else value
            if not isinstance(value, str) and (
                fault := choice_words.wrong_mark(choices, float(shown), behind)
            ):
                raise DirectiveError(fault)


def cover(writer: Writer, block: Block) -> str:
    """Return what answers the predictions that are named, below them.

    The build alone makes this block, see `covers`.
    """
    return covered(writer, writer.nodes(block.body), block.argument)


def covered(writer: Writer, body: str, names: str) -> str:
    """Markdown that a browser shows once the predictions of these names are made; without a script it stands open."""
    if not body.strip():
        return ""
    attributes = f' data-answers="{names}"'
    bar = writer.slot('<div class="cover"></div>')  # where the script says what is covered
    return f"{bar}\n\n{div('covered', body, attributes)}"


def _choice(writer: Writer, name: str, number: int, text: str, is_right: bool) -> str:
    mark = " data-right" if is_right else ""
    said = writer.text(f"- {text}", guesses=True).removeprefix("- ")
    radio = writer.slot(f'<input type="radio" name="{name}" value="{number}"{mark}>')
    return f"- <label>{radio}<span>{said}</span></label>"


def _right(writer: Writer, block: Block, choices: list[Choice]) -> int | None:
    """Return which choice is right by the record.

    It is None where no number is there to tell, or on a card that none foresaw.
    """
    if not any(choice.condition for choice in choices):
        return next((number for number, choice in enumerate(choices) if choice.is_right), None)
    try:
        judged = [claims.judge(c.condition, writer.scope) if c.condition else None for c in choices]
    except NotHere:
        return None
    held = [one is not None and one.holds for one in judged]
    if sum(held) != 1 and writer.course.is_reference and not writer.course.rebuilt:
        right = " and ".join(repr(choice.text) for choice, holds in zip(choices, held, strict=True) if holds)
        seen = "; ".join(
            f"`{one.condition}` is true in {one.support:.1%} of the resamples" for one in judged if one
        )
        raise DirectiveError(
            f"{right or 'none of its choices'} is right by the record: exactly one must be ({seen})"
        )
    return held.index(True) if sum(held) == 1 else None


def exercise(writer: Writer, block: Block) -> str:
    """Something to do, with its answer folded."""
    ask = writer.question(block.argument)
    _hold_answer(writer, block)
    body, answer = writer.nodes(block.body), writer.nodes(block.parts["answer"])
    taken = timed(block.minutes or reading_time.EXERCISE, usual=not block.minutes)
    return div("exercise", f"{ask}\n\n{body}\n\n{details('answer', 'Answer', answer)}", taken)


def _hold_answer(writer: Writer, block: Block) -> None:
    """Note an answer that is not what was worked out for it."""
    root, sessions = writer.course.root, writer.course.maps.sessions
    if not worked_answers.are_kept(root):
        return
    module = worked_answers.module_of(writer.page.path.as_posix(), writer.page.id, sessions)
    question, answer = spoken(block.body), spoken(block.parts["answer"])
    for fault in worked_answers.of_exercise(root, module, block.argument, question, answer):
        writer.problem(fault)


def timed(minutes: int, *, usual: bool) -> str:
    """Return how long a block takes, for the line at the page's head; what is not usual is shown at the block too."""
    label = "" if usual else f' data-shown="{minutes} minute{"s" * (minutes != 1)}"'
    return f' data-minutes="{minutes}"{label}'


def callout(writer: Writer, block: Block, **allowed: Any) -> str:
    """Return a word aside to the mentor; `allowed` is what the block around it may say."""
    kind = block.argument
    if kind not in callouts.TITLES:
        raise DirectiveError(f"there is no such callout; known: {', '.join(callouts.TITLES)}")
    title = f'<p class="kind">{writer.slot(callouts.icon(kind))}{callouts.TITLES[kind]}</p>'
    return div(f"callout {kind}", f"{title}\n\n{writer.nodes(block.body, **allowed)}")


def lab(writer: Writer, block: Block) -> str:
    """Return a lab on its page."""
    try:
        lab = writer.course.lab(block.argument)
    except LabError as error:
        raise DirectiveError(str(error).removeprefix(f"{writer.course.root}/")) from None
    if lab.page != writer.page.path.as_posix():
        raise DirectiveError(f"its lab.toml names {lab.page} as its page")
    for text in [lab.prints(door, stage) for door in lab.doors for stage in range(len(lab.stages) + 1)]:
        writer.lint_output(text)
    for text in lab.alone.doors.values() if lab.alone else ():
        writer.lint_output(text)
    body = labs.markdown(lab, writer.text, details)
    taken = timed(lab.minutes, usual=True)
    return div("lab", f"{writer.question(lab.title)}\n\n{body}", f' data-lab="{lab.name}"{taken}')
