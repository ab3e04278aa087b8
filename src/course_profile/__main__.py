"""``python -m course_profile FILE[:function]``: what `nox -s profile` runs."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

from course_kernels.measure.artifacts import write
from course_labs.lab import LabError
from course_profile.diagnosis import diagnose
from course_profile.drawing import roofline
from course_profile.errors import Unusable, Wrong
from course_profile.format import as_json, table
from course_profile.report import ask, report
from course_profile.subject import take

LONGEST_S = 600.0
REFUSED, USAGE = 1, 2


def main(arguments: list[str]) -> int:
    """Profile one kernel; the exit code: 0 done, 1 its answer is wrong, 2 it cannot be profiled."""
    options = _options().parse_intermixed_args(arguments)
    try:
        subject = take(options.file, options.problem, options.size)
        if options.svg and not options.svg.resolve().parent.is_dir():
            raise Unusable(f"{options.svg}: there is no folder {options.svg.parent}; make it first")
        path = subject.file.with_name(f"{subject.file.stem}_report.md")
        if options.report and path.exists():
            raise Unusable(f"{path} is there already, and you may have written into it: rename it first")
        forecast = ask(_asked) if options.report else None
        recorded = options.counted.read_text(encoding="utf-8") if options.counted else ""
        from course_profile.run import (
            profile,
            with_recorded,
        )  # it takes seconds to load, and a slip needs none of it

        found = profile(subject, gpu=options.gpu and not recorded, seconds=options.seconds)
        found = with_recorded(found, recorded) if recorded else found
        diagnosis = diagnose(found.reading)
        if options.svg:
            write(options.svg.parent, options.svg.name, roofline(found).encode())
        if forecast:
            write(path.parent, path.name, report(found, diagnosis, forecast, options.hint).encode())
    except (Unusable, LabError) as error:
        print(error, file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return USAGE
    except Wrong as wrong:
        print(f"refused: {wrong}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(as_json(found, diagnosis), indent=2, allow_nan=False))
    else:
        print(table(found, diagnosis, options.hint))
        if forecast:
            print(f"the report: {path}")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s profile --",
        description="Say what a kernel of your own waits for: time, counters, and the rule that names the cause.",
    )
    parser.add_argument("file", metavar="FILE[:function]", help="a .py or a .cu")
    parser.add_argument(
        "--problem", default="", help="what it computes: a folder of src/course_kernels, such as vector_add"
    )
    parser.add_argument("--size", default="", help='such as "dtype=float32,N=1000000"')
    parser.add_argument(
        "--hint",
        action="store_true",
        help="show the next thing to try, the counter that must move, and the page that teaches it",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="ask for your forecast, and write the page on your kernel beside it",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--counted",
        type=Path,
        metavar="PATH",
        help="take time and counters from what --json printed on a card",
    )
    parser.add_argument("--svg", type=Path, metavar="PATH", help="write a roofline with your kernel on it")
    parser.add_argument("--seconds", type=_seconds, default=1.0, help="time to sample")
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"{text} is no time to sample; give more than 0 and at most {LONGEST_S:g}"
        )
    return seconds


def _asked(question: str) -> str:
    """Ask on the terminal; standard output stays what was asked for."""
    print(question, end="", flush=True, file=sys.stderr)
    return input()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
