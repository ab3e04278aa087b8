"""A lab on its page: it asks. Tasks and the grader's words stand open; hints, what is typed and the answer are folded.

What all doors share is there once, and in each stage what differs is told door by door. Of the last task, which the
student does alone, only the task is there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from course_labs.lab import FOLDER, ON_THE_CPU, Lab, given_files, has_given_kernels
from course_site.pages.diffs import difference
from course_site.pages.doors import DOORS, option, said
from course_site.pages.fences import LANGUAGES, fenced

WITHOUT_A_GPU = {
    "triton": "Without a GPU the same file runs in Triton's interpreter: right or wrong, with no claim about speed.",
    "cuda": "This door needs a GPU. Without one your file is compiled but not run, and the grader says so.",
    "numpy": "This door needs no GPU.",
    "python": "This door needs no GPU, and no torch.",
}
OF_SEVERAL_KERNELS = (
    "Without a GPU your kernels run in Triton's interpreter: reasons, counters and answers are graded, but no gain. "
    "Where there is no Triton, as on a Mac, reasons and counters are graded, and the grader says so."
)
TUTOR = (
    "The grader runs your file in a process of its own, with a time limit. It is a tutor, not a jail: "
    "it notices shortcuts so that you do not fool yourself."
)
ALONE = (
    "No page has the code for this one: you are alone with the grader. It looks at this task once the lab itself is "
    "right, in the same file and with the same command."
)
HINTS = ("A first push", "A second push", "Nearly the answer")

Say = Callable[[str], str]
Fold = Callable[[str, str, str], str]


def markdown(lab: Lab, say: Say, fold: Fold) -> str:
    """Return the inside of a lab's block.

    Args:
        lab: the lab.
        say: turns Markdown of lab.toml into Markdown of the page: linted, links moved, values filled in.
        fold: (css class, summary, body) -> a folded block.
    """
    doors = " or ".join(DOORS[door] for door in lab.doors)
    parts = [
        f"{lab.minutes} minutes, in {doors}.\n{{: .minutes }}",
        say(lab.task),
        f"**Not yours:** {say(lab.not_yours)}",
    ]
    for door in lab.doors:
        begin = _begin(lab, door, fold)
        parts.append(
            fold("fold door-of-lab", f"Through {DOORS[door]}", begin) if len(lab.doors) > 1 else begin
        )
    for number in range(1, len(lab.stages) + 1):
        parts += _stage(lab, number, say, fold)
    for door in lab.doors:
        answer = "\n\n".join(
            filter(None, [say(lab.answers[door]), _code(lab.snapshot(door, len(lab.stages)))])
        )
        parts.append(fold("answer", f"Answer{_in(lab, door)}", answer))
    parts.append(_hints([say(hint) for hint in lab.hints], fold))
    if lab.alone:
        parts.append(_alone(lab.alone, say))
    rubric = "\n".join(f"- {_item(say(line))}" for line in lab.rubric)
    parts.append(fold("fold", "You are done when", rubric))
    return "\n\n".join([*parts, TUTOR])


def _in(lab: Lab, *doors: str) -> str:
    """Return the words that tell doors from the others; none where all are meant."""
    return "" if len(doors) == len(lab.doors) else f" in {' and '.join(DOORS[door] for door in doors)}"


def _begin(lab: Lab, door: str, fold: Fold) -> str:
    """Return how one begins through a door: the commands, and the file that they write."""
    file = f"{FOLDER}/{lab.student_file(door)}"
    parts = [
        f"```bash\nnox -s lab -- {lab.name}{option(lab, door)}\nnox -s grade -- {lab.name} {file}\n```",
        f"The first command writes the starter into `{file}`, and the second checks it. "
        "Run the second after every stage. "
        f"{OF_SEVERAL_KERNELS if has_given_kernels(lab) else WITHOUT_A_GPU[door]}",
        f"Of the starter, it says:\n\n{_printed(lab, door, 0)}",
        fold("fold", "The starter", _code(lab.snapshot(door, 0))),
    ]
    if door == "cuda":
        parts.append(fold("fold", "What launches your kernel", _code(lab.folder / "launch.py")))
    if has_given_kernels(lab):
        given = "\n\n".join(map(_named_code, given_files(lab)))
        parts.append(fold("fold", "The kernels that you are given", given))
    return "\n\n".join(parts)


def _bold(title: str) -> str:
    """Return a title that its text follows on the same line; a question has its mark."""
    return f"**{title}**" if title.endswith("?") else f"**{title}.**"


def _stage(lab: Lab, number: int, say: Say, fold: Fold) -> list[str]:
    """Return a stage: its task, what the grader says then, and, folded, its hint and how it is typed."""
    stage = lab.stages[number - 1]
    printed: dict[str, list[str]] = {}
    for door in lab.doors:
        printed.setdefault(_printed(lab, door, number), []).append(door)
    said = [f"Then the grader says{_in(lab, *doors)}:\n\n{text}" for text, doors in printed.items()]
    typed = "\n\n".join(_typed(lab, door, number, say, fold) for door in lab.doors)
    if stage.hint:
        typed = fold("fold hint", f"A hint for stage {number}", f"{say(stage.hint)}\n\n{typed}")
    return [f"{_bold(f'{number}. {say(stage.title)}')} {say(stage.text)}".rstrip(), *said, typed]


def _typed(lab: Lab, door: str, number: int, say: Say, fold: Fold) -> str:
    """Return how a stage is typed through a door, folded, with what changes in the file."""
    inside = say(lab.stages[number - 1].type[door])
    if number < len(lab.stages):
        changed = difference(lab.snapshot(door, number - 1), lab.snapshot(door, number))
        inside += (
            f"\n\n{changed}\n\nFell behind? `nox -s lab -- {lab.name}{option(lab, door)} --stage {number}` writes "
            "this file and keeps yours beside it."
        )
    return fold("fold", f"How it is typed{_in(lab, door)}", inside)


def _alone(task: Lab, say: Say) -> str:
    """Return the last task: no hint, no code, no answer."""
    printed: dict[str, list[str]] = {}
    for door, text in task.doors.items():
        printed.setdefault(text, []).append(DOORS[door])
    parts = [f"{_bold(f'Alone: {say(task.title)}')} {say(task.task)}", ALONE]
    for text, doors in printed.items():
        of_some = f" in {' and '.join(doors)}" if len(printed) > 1 else ""
        said = fenced(f"alone: {text}", ".text .output .no-copy")
        parts.append(f"While your file lacks it{of_some}, the grader says after the rest:\n\n{said}")
    return "\n\n".join(parts)


def _printed(lab: Lab, door: str, stage: int) -> str:
    text, note = said(lab, door, stage), ""
    if door == "cuda" and stage == len(lab.stages):
        note = "with the time and the percent of peak."
    elif (
        door not in ON_THE_CPU
        and text.startswith("right: ")
        and text.endswith("; no speed claim: this machine has no GPU")
    ):
        note = "On a GPU the time and the percent of peak appear there."
    if stage and text.startswith("right: ") and said(lab, door, stage - 1).startswith("right: "):
        note = (
            f"It said the same after stage {stage - 1}: this stage changes the speed, not the numbers. {note}"
        )
    return f"{fenced(text, '.text .output .no-copy')}\n\n{note}".strip()


def _hints(hints: list[str], fold: Fold) -> str:
    """Fold each hint into the one before it, so that nobody sees more than they asked for."""
    inside = ""
    for name, hint in reversed(list(zip(HINTS, hints, strict=True))):
        inside = fold("fold hint", name, f"{hint}\n\n{inside}".strip())
    return inside


def _named_code(path: Path) -> str:
    return f"`{path.name}`\n\n{_code(path)}"


def _code(path: Path) -> str:
    return fenced(path.read_text(encoding="utf-8").rstrip(), f".{LANGUAGES[path.suffix]}")


def _item(text: str) -> str:
    return text.strip().replace("\n", "\n    ")
