"""``python -m course_labs lab|grade …``: what `nox -s lab` and `nox -s grade` run."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from course_labs.diagnosis import completed, hand_out
from course_labs.experiments import needs_torch
from course_labs.grade import CannotGrade
from course_labs.interactive_cases import grade, has_plays, needs_numpy
from course_labs.lab import FOLDER, ON_THE_CPU, Lab, LabError, find_lab, find_labs, has_given_kernels
from course_labs.lab_order import along_the_road
from course_labs.protocol.source_text import takes_arrays
from course_labs.starter_files import write
from course_labs.verdict import USAGE

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 3600


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Run one command; returns its exit code."""
    command, *rest = arguments or [""]
    if command not in _PARSERS:
        print(
            f"usage: python -m course_labs {'|'.join(_PARSERS)} [options]; lab alone lists the labs",
            file=sys.stderr,
        )
        return USAGE
    options = _PARSERS[command]().parse_intermixed_args(rest)  # an option may stand between a name and a file
    try:
        if command == "grade":
            return _grade(find_lab(root, options.name), root, options)
        if options.name is None:
            print(_list(root))
        else:
            lab = find_lab(root, options.name)
            if has_given_kernels(lab):
                complete = completed(lab, root)
                lines = write(lab, root, options.door, options.stage, complete) + hand_out(lab, root)
            else:
                lines = write(lab, root, options.door, options.stage)
            print("\n".join(lines))
    except (LabError, CannotGrade, OSError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130
    return 0


def _lab_options() -> argparse.ArgumentParser:
    lab = argparse.ArgumentParser(
        prog="nox -s lab --",
        description="Alone it lists the labs; with a name it writes that lab into my_labs/.",
    )
    lab.add_argument("name", nargs="?", help="the lab; without it all are listed")
    lab.add_argument("--door", default="", help="triton, cuda, numpy or python, as the lab has them")
    lab.add_argument("--stage", type=int, help="the file after this stage; 0 is the starter")
    return lab


def _grade_options() -> argparse.ArgumentParser:
    marks = argparse.ArgumentParser(prog="nox -s grade --", description="Check your file of a lab.")
    marks.add_argument("name", help="the lab")
    marks.add_argument("file", nargs="?", type=Path, help="your file; without it the one in my_labs/")
    marks.add_argument("--door", default="", help="where the file's name does not say it")
    marks.add_argument("--seconds", type=_seconds, help=f"a different time limit, up to {LONGEST_S}")
    marks.add_argument("--gpu", action="store_true", help="refuse to grade without a GPU")
    return marks


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) <= LONGEST_S:
            return seconds
    raise argparse.ArgumentTypeError(
        f"{text} is no time limit: a number of seconds above 0, up to {LONGEST_S}"
    )


_PARSERS = {"lab": _lab_options, "grade": _grade_options}


def _list(root: Path) -> str:
    labs = along_the_road(find_labs(root).values(), root)
    doors = [", ".join(lab.doors) for _, lab in labs]
    widths = [max(map(len, column), default=0) for column in ([lab.name for _, lab in labs], doors)]
    lines = [
        f"{session:2}  {lab.name:{widths[0]}}  {lab.minutes:3d} min  {of_lab:{widths[1]}}  {lab.title} ({lab.page})"
        for (session, lab), of_lab in zip(labs, doors, strict=True)
    ]
    return "\n".join([*lines, "", "start one:  nox -s lab -- NAME        check it:  nox -s grade -- NAME"])


def grading_needs(arguments: list[str], root: Path = ROOT) -> str:
    """Package that `grade` needs for these arguments: "torch", "numpy", or "" for Python alone.

    Nothing either where the arguments are wrong, or ask for help: `grade` itself says so.
    """
    try:
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            options = _grade_options().parse_intermixed_args(arguments)
        lab = find_lab(root, options.name)
    except (SystemExit, LabError):
        return ""
    if has_given_kernels(lab):
        return "torch"
    file = options.file or _first_file(lab, root, options.door)
    if has_plays(lab):
        return "numpy" if needs_numpy(lab) or takes_arrays(file) else ""
    if needs_torch(lab, file):
        return "torch"
    door = options.door or lab.door_of(file)
    if not lab.problem or door not in lab.doors:
        return ""
    return "numpy" if door in ON_THE_CPU else "torch"


def _grade(lab: Lab, root: Path, options: argparse.Namespace) -> int:
    file = options.file or _first_file(lab, root, options.door)
    if not (options.file or options.door in lab.doors):
        for other in _begun(lab, root):
            if other != file:
                mine, theirs = (path.relative_to(root).as_posix() for path in (file, other))
                print(f"{mine} is graded; the other:  nox -s grade -- {lab.name} {theirs}", flush=True)
    needs_gpu = options.gpu and (bool(lab.problem) or has_given_kernels(lab))
    verdict = grade(lab, [file], options.door, seconds=options.seconds, needs_gpu=needs_gpu, compile=True)[0]
    for printed in (verdict.printed, verdict.alone.printed if verdict.alone and verdict.alone.next else ""):
        if printed:
            print(printed)
    print(verdict.text)
    if verdict.ran:
        print(verdict.ran)
    return verdict.code


def _first_file(lab: Lab, root: Path, door: str) -> Path:
    if door in lab.doors:
        return root / FOLDER / lab.student_file(door)
    return next(iter(_begun(lab, root)), root / FOLDER / lab.student_file(next(iter(lab.doors))))


def _begun(lab: Lab, root: Path) -> list[Path]:
    """Return the student's files of a lab, in the order of its doors."""
    files = [root / FOLDER / lab.student_file(door) for door in lab.doors]
    return [file for file in files if file.exists()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
