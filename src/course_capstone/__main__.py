"""``python -m course_capstone FOLDER``: what `nox -s submit` runs. Exit codes: 0 right, 1 refused, 2 cannot be done."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from course_capstone.entry import MARKS, Outcome, examine, points, read_entry
from course_capstone.forms import FORMS, due, faults_of_form, templates
from course_capstone.tasks import Task, find_machine, listed, read_tasks, where_words_are
from course_judge.__main__ import Unusable
from course_kernels.measure.artifacts import write
from course_kernels.measure.provenance import slug_of

ROOT = Path(__file__).resolve().parents[2]
REFUSED, USAGE = 1, 2
REFERENCE = "h200"


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Do what the options say; returns the exit code."""
    options = _options().parse_args(arguments)
    try:
        return _done(options, root)
    except Unusable as error:
        print(f"submit: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"submit: {error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s submit --",
        description="The capstone: check an entry, a form, make a board or a certificate.",
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="of an entry, or with --board a folder of such folders"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--tasks", action="store_true", help="list the tasks with their floors on --card")
    what.add_argument("--new", action="store_true", help="write the templates into FOLDER")
    what.add_argument("--form", choices=list(FORMS), help="check one form, and those that feed it")
    what.add_argument("--run", action="store_true", help="judge, profile, and write run.json; then check")
    what.add_argument(
        "--board", action="store_true", help="write a board for each card, from all entries in FOLDER"
    )
    what.add_argument(
        "--certificate", action="store_true", help="write certificate.svg and .pdf beside the entry"
    )
    parser.add_argument(
        "--card",
        default="",
        help="with --tasks a data sheet, such as h200; with --board the card as its driver calls it, or none",
    )
    parser.add_argument(
        "--start", type=_monday, help="first Monday of the cohort, as 2027-01-11: forms get a date"
    )
    parser.add_argument("--seconds", type=float, default=240.0, help="the judge's limit for each answer")
    what.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)  # what the page shows, anew
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    return parser


def _monday(text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no date; write it as 2027-01-11") from None
    if found.weekday():
        raise argparse.ArgumentTypeError(f"{text} is a {found:%A}; the plan begins on a Monday")
    return found


def _done(options: argparse.Namespace, root: Path) -> int:
    tasks = read_tasks()
    if options.tasks:
        print(listed(tasks, find_machine(options.card or REFERENCE)))
        print(where_words_are(root, tasks))
        return 0
    if options.keep:
        return _keep(root, tasks)
    if options.folder is None:
        raise Unusable("which folder? nox -s submit -- --new FOLDER begins one")
    if options.new:
        return _new(options.folder, root)
    if not options.folder.is_dir():
        raise Unusable(f"{options.folder}: no such folder; --new {options.folder} begins one")
    if options.form:
        return _form(options, root, tasks)
    if options.board:
        return _board(options, root, tasks)
    if options.run:
        from course_capstone.run import is_dirty, run

        entry = read_entry(options.folder, root, tasks)
        if is_dirty(root, options.folder) is not False:
            print(
                "submit: tracked files of the course are in no commit, so this run will be refused",
                file=sys.stderr,
            )
        run(options.folder, entry.file, entry.task, gpu=options.gpu, seconds=options.seconds)
    outcome, faults = examine(options.folder, root, tasks)
    if outcome is None:
        return _refused(options.folder, faults)
    print(_said(outcome))
    if options.certificate:
        _certify(outcome)
    return 0


def _keep(root: Path, tasks: Mapping[str, Task]) -> int:
    from course_capstone.floors import KEPT, as_text, worked_out
    from course_capstone.pictures import pictures

    for path, text in {KEPT: as_text(worked_out(tasks)), **pictures(root, tasks)}.items():
        write(path.parent, path.name, text.encode())
        print(path)
    return 0


def _refused(folder: Path, faults: Sequence[str]) -> int:
    for line in faults:
        print(f"refused: {folder}: {line}", file=sys.stderr)
    return REFUSED


def _new(folder: Path, root: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for template in templates(root):
        if (folder / template.name).exists():
            print(f"{folder / template.name} is there already, and stays")
        else:
            shutil.copy(template, folder)
            print(folder / template.name)
    return 0


def _form(options: argparse.Namespace, root: Path, tasks: Mapping[str, Task]) -> int:
    faults = faults_of_form(options.folder, options.form, root, tasks)
    when = due(root, options.form, options.start).text
    if faults:
        return _refused(options.folder, faults)
    print(f"{options.form}: complete; due {when}")
    return 0


def _said(outcome: Outcome) -> str:
    from course_capstone.board import command, score_words

    entry = outcome.entry
    lines = [
        f"complete: {entry.folder}",
        f"{entry.who}: {entry.task.name}, {entry.by}: {score_words(outcome)}",
        f"  what lost: {entry.lost}",
    ]
    if (entry.folder / MARKS).exists():
        lines.append(f"  marks: {points(entry.folder)} of 5")
    return "\n".join([*lines, f"  again: {command(outcome)}"])


def _board(options: argparse.Namespace, root: Path, tasks: Mapping[str, Task]) -> int:
    from course_capstone.board import board

    folders = sorted(path.parent for path in options.folder.glob("*/entry.toml"))
    if not folders:
        raise Unusable(f"{options.folder}: no folder in it has an entry.toml")
    card = None
    if options.card:
        card = "" if options.card == "none" else options.card
    cards: dict[str, list[Outcome]] = {}
    code = 0
    for folder in folders:
        outcome, faults = examine(folder, root, tasks, card)
        if outcome is None:
            code = _refused(folder, faults)
        else:
            cards.setdefault(outcome.entry.card, []).append(outcome)
    for name, outcomes in cards.items():
        path = options.folder / f"board-{slug_of(name) if name else 'no-card'}.html"
        write(path.parent, path.name, board(name, outcomes))
        print(f"{path}: {len(outcomes)} entr{'y' if len(outcomes) == 1 else 'ies'}")
    return code


def _certify(outcome: Outcome) -> None:
    from course_capstone.certificate import certificate, find_chromium, print_pdf

    svg, folder = certificate(outcome), outcome.entry.folder
    write(folder, "certificate.svg", svg.encode())
    print(folder / "certificate.svg")
    if chromium := find_chromium():
        print_pdf(svg, folder / "certificate.pdf", chromium)
        print(folder / "certificate.pdf")
    else:
        print("no Chromium, no PDF: install it, or set CHROMIUM to its path", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
