"""``python -m course_classroom grade|classroom …``: `nox -s grade -- --all …` and `nox -s classroom`.

Exit codes: 0 all was graded, 2 a file of the teacher's is wrong, 3 something was left ungraded.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from course_classroom import classroom50
from course_classroom.grading import Settings, grade_all
from course_classroom.hand_ins import Collected, HandIn, collect, wanted_files
from course_classroom.kept import FILE, Kept, keys_of, name_of, put, read_kept, written_kept
from course_classroom.marks import Rules, read_overrides, read_rules
from course_classroom.report import grades, page, points, table, written_moved
from course_classroom.roster import ClassError, read_roster
from course_labs.lab import ON_THE_CPU, Lab, LabError, find_labs, has_given_kernels
from course_labs.lab_order import along_the_road

ROOT = Path(__file__).resolve().parents[2]
DONE, USAGE, UNGRADED = 0, 2, 3
LONGEST_S = 3600
TO, OVERRIDES, TABLE, PAGES = "my_class", "overrides.toml", "grades.csv", "pages"
BOM = "\ufeff"  # by which a spreadsheet knows UTF-8
MOVED = "moved.csv"  # of the latest grading that changed a mark


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Do what the options say; returns the exit code."""
    command, *rest = arguments or [""]
    commands: dict[str, Callable[[list[str], Path], int]] = {"grade": _grade, "classroom": _classroom}
    if command not in commands:
        print(f"usage: python -m course_classroom {'|'.join(commands)} [options]", file=sys.stderr)
        return USAGE
    try:
        return commands[command](rest, root)
    except (ClassError, LabError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130


# --- a class ---------------------------------------------------------------------------------------


def _grade_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="nox -s grade --", description="Grade a folder of hand-ins.")
    options.add_argument(
        "--all", type=Path, required=True, metavar="FOLDER", help="a folder or a zip a student"
    )
    options.add_argument("--roster", type=Path, required=True, help="a CSV with columns student and name")
    options.add_argument(
        "--labs", default="", help="only these, with commas; without it all that were handed in"
    )
    options.add_argument(
        "--due", type=Path, help="a TOML: late_days, lost_a_day, and [due] with a moment a lab"
    )
    options.add_argument("--overrides", type=Path, help=f"marks by hand; without it {TO}/{OVERRIDES}")
    options.add_argument("--to", type=Path, help=f"where grades are written; without it {TO}/")
    options.add_argument("--again", action="store_true", help="grade all anew, whatever is kept")
    options.add_argument("--lines", type=int, help="files graded side by side; without it one for each core")
    options.add_argument("--seconds", type=float, help="a different time limit for each file")
    options.add_argument("--gpu", action="store_true", help="refuse to grade kernels without a GPU")
    return options


def class_needs(arguments: Sequence[str], root: Path = ROOT) -> str:
    """Package that grading this class needs: "torch", "numpy", or "" where the command is wrong and says so itself."""
    try:
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            options = _grade_options().parse_args(list(arguments))
        labs = _labs(root, options.labs)
        hand_ins = collect(options.all, read_roster(options.roster), labs).hand_ins
    except (SystemExit, ClassError, LabError, OSError):
        return ""
    heavy = any(one.door not in ON_THE_CPU or has_given_kernels(labs[one.lab]) for one in hand_ins)
    return "torch" if heavy or (options.gpu and hand_ins) else "numpy"


def _labs(root: Path, names: str) -> dict[str, Lab]:
    labs = {lab.name: lab for _, lab in along_the_road(find_labs(root).values(), root)}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in labs:
            raise ClassError(f"no lab {name!r}; there are {', '.join(labs)}")
    return {name: labs[name] for name in wanted} if wanted else labs


def _grade(arguments: list[str], root: Path) -> int:
    options = _grade_options().parse_args(arguments)
    if options.lines is not None and options.lines < 1:
        raise ClassError("--lines is 1 or more")
    if options.seconds is not None and not 0 < options.seconds <= LONGEST_S:
        raise ClassError(f"--seconds is more than 0, up to {LONGEST_S}")
    to = options.to or root / TO
    students, labs, every = read_roster(options.roster), _labs(root, options.labs), _labs(root, "")
    rules = read_rules(options.due, every) if options.due else Rules()
    overrides_file = options.overrides or to / OVERRIDES
    overrides = (
        read_overrides(overrides_file, students, every)
        if options.overrides or overrides_file.exists()
        else {}
    )
    kept = read_kept(to / FILE)
    collected = collect(options.all, students, labs)
    if not options.labs:  # no column for a lab that nobody has begun, and that nobody was asked for
        begun = {one.lab for one in collected.hand_ins} | {lab for _, lab in overrides} | set(rules.due)
        labs = {name: lab for name, lab in labs.items() if name in begun}
    if not labs:
        lines = "; ".join(collected.trouble[:3])
        raise ClassError(
            f"{options.all}: no hand-in of anybody in the roster{f' ({lines})' if lines else ''}; "
            f"files are named {', '.join(list(wanted_files(every))[:2])}, …"
        )
    for line in collected.trouble:
        print(line)
    side_by_side = 1 if options.gpu else options.lines or os.cpu_count() or 1
    settings = Settings(side_by_side, options.seconds, options.gpu)
    kept_now = dict(kept)
    try:
        answered, why = _answers(collected, labs, kept_now, settings, options.again)
    finally:
        put(to / FILE, written_kept(kept_now))  # whoever stops it half-way goes on from there
    if moved := _moved(kept, kept_now, why):
        put(to / MOVED, written_moved(moved))
    if any(name in kept for name in why):
        told = [f"  {name}: {was} -> {now} ({reason})" for name, was, now, reason in moved]
        print("\n".join(["marks that moved:", *told]) if moved else "no mark moved")
    found = grades(students, list(labs.values()), answered, rules, overrides)
    put(to / TABLE, BOM + table(found, collected))
    for grade in found:
        put(to / PAGES / f"{grade.student.id}.html", page(grade, collected, rules))
    ungraded = any("ungraded" in answer for mine in answered.values() for _, answer in mine)
    print(f"wrote {to / TABLE}: {len(found)} students; a page for each in {to / PAGES}/")
    return UNGRADED if ungraded else DONE


def _answers(
    collected: Collected, labs: dict[str, Lab], kept: dict[str, Kept], settings: Settings, again: bool
) -> tuple[dict[str, list[tuple[HandIn, dict[str, Any]]]], dict[str, str]]:
    """Return what the grader says of every hand-in, by the student's id, and why which were graded now.

    What is graded is put into `kept` as soon as it is known.
    """
    hand_ins = collected.hand_ins
    keys = dict(
        zip(map(name_of, hand_ins), keys_of(hand_ins, labs, settings.gpu, settings.seconds), strict=True)
    )
    todo: list[HandIn] = []
    why: dict[str, str] = {}
    for hand_in in hand_ins:
        key = keys[name_of(hand_in)]
        was = kept.get(name_of(hand_in))
        if was is None or again or was.key != key or "ungraded" in was.answer:
            todo.append(hand_in)
            changed = was.key.why_not(key) if was and "ungraded" not in was.answer else ""
            why[name_of(hand_in)] = changed or ("asked for" if was else "new")
    print(
        f"hand-ins: {len(hand_ins)}, to grade: {len(todo)}, as they were: {len(hand_ins) - len(todo)}",
        flush=True,
    )

    count = 0

    def say(hand_in: HandIn, answer: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        kept[name_of(hand_in)] = Kept(keys[name_of(hand_in)], answer)
        first = answer.get("ungraded") or answer["text"].splitlines()[0]
        print(f"{count}/{len(todo)} {name_of(hand_in)}: {first[:100]}", flush=True)

    grade_all(todo, labs, settings, say)
    answered: dict[str, list[tuple[HandIn, dict[str, Any]]]] = {}
    for hand_in in hand_ins:
        answered.setdefault(hand_in.student, []).append((hand_in, kept[name_of(hand_in)].answer))
    return answered, why


def _moved(
    was: dict[str, Kept], now: dict[str, Kept], why: dict[str, str]
) -> list[tuple[str, str, str, str]]:
    """Return each hand-in whose mark moved: its name, the mark before and now, and why it was graded again."""
    found = [(name, _told(was[name]), _told(now[name]), why[name]) for name in why if name in was]
    return [one for one in found if one[1] != one[2]]


def _told(one: Kept) -> str:
    mark = points(one.answer)
    return "not graded" if mark is None else f"{mark:g}"


# --- Classroom 50 ----------------------------------------------------------------------------------


def _classroom(arguments: list[str], root: Path) -> int:
    options = argparse.ArgumentParser(
        prog="nox -s classroom --", description="Write what Classroom 50 takes: templates and autograders."
    )
    options.add_argument("--labs", required=True, help="with commas, such as first_kernel,transpose")
    options.add_argument(
        "--door", default="", help="numpy, triton, cuda or python; without it the lab's first"
    )
    options.add_argument("--classroom", default="kernels", help="the classroom's short name")
    options.add_argument("--org", default="YOUR-ORG", help="the organisation of the classroom")
    options.add_argument(
        "--gpu", action="store_true", help="grade on your own runner with the labels self-hosted, gpu"
    )
    options.add_argument("--to", type=Path, help="where to write; without it my_classroom/")
    chosen = options.parse_args(arguments)
    labs = _labs(root, chosen.labs)
    plan = classroom50.Plan(chosen.org, chosen.classroom, chosen.gpu)
    print(
        "\n".join(
            classroom50.write(
                list(labs.values()), chosen.door, plan, chosen.to or root / "my_classroom", root
            )
        )
    )
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
