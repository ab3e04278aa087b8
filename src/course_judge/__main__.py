"""``python -m course_judge FILE --problem NAME``: what `nox -s judge` runs."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from course_judge.protocol.limits import GIB, Limits

if TYPE_CHECKING:
    from course_judge.protocol.verdict import Verdict
    from course_kernels.problem import Problem, Workload

KERNELS = Path(__file__).resolve().parents[1] / "course_kernels"
LONGEST_S = 3600.0
MOST_GIB = 1024.0
USAGE = 2
# The last is what the first launch asks for.
INTERPRETER = (
    "triton",
    "triton.runtime.interpreter",
    "course_judge.worker.interpreter",
    "triton.experimental.gluon.nvidia.hopper",
)


class Unusable(Exception):
    """A request that cannot be judged; one line."""


def main(arguments: list[str]) -> int:
    """Judge one file; returns the exit code: 0 right, 1 refused, 2 not judged."""
    options = _options().parse_args(arguments)
    try:
        if not options.file.is_file():
            raise Unusable(f"there is no file {options.file}")
        if options.check:
            return _check(options.file, options.check, find_problem(options.problem))
        verdict = _judged(options, find_problem(options.problem))
    except Unusable as error:
        print(error, file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130
    print(json.dumps(verdict.as_json(), indent=2) if options.json else verdict.text)
    return verdict.code


def _check(file: Path, kept: Path, problem: Problem) -> int:
    """Say whether a verdict that was kept still counts: of this judge, and of this file; returns its exit code.

    Raises:
        Unusable: it does not, or is none.
    """
    from course_judge.judge import hash_of, hash_of_judge
    from course_judge.protocol.verdict import code_of, is_sealed

    try:
        told = json.loads(kept.read_text(encoding="utf-8"))
        evidence, found = told["evidence"], told["found"]
        file_then, judge_then = evidence["file"], evidence["judge"]
    except (OSError, ValueError, KeyError, TypeError):
        raise Unusable(f"{kept}: no verdict, as --json prints one; judge again") from None
    if not is_sealed(told):
        raise Unusable(f"{kept}: changed since it was sealed; judge again")
    if file_then != hash_of(file):
        raise Unusable(f"{kept}: the verdict on another file than {file} is now; judge again")
    if judge_then != hash_of_judge(problem):
        raise Unusable(
            f"{kept}: of another judge, or of another problem than {problem.name} is now; judge again"
        )
    print(f"{kept}: of this judge, on this file: {found}")
    return code_of(found)


def find_problem(name: str) -> Problem:
    """Find a problem of the library by its name.

    Raises:
        Unusable: there is none, or torch is missing.
    """
    known = sorted(path.parent.name for path in KERNELS.glob("*/problem.py"))
    if name not in known:
        raise Unusable(f"no problem {name!r}; there are {', '.join(known)}")
    try:
        problem: Problem = importlib.import_module(f"course_kernels.{name}.problem").PROBLEM
    except ImportError as error:
        raise Unusable(f"torch is not installed here ({error}): nox -s judge installs it") from None
    return problem


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s judge --",
        description="Judge a kernel: in a process of its own, by the judge's own truth and clock.",
    )
    parser.add_argument("file", type=Path, help="a Python file with a function of the problem's name")
    parser.add_argument("--problem", required=True, help="a folder of src/course_kernels, such as vector_add")
    parser.add_argument(
        "--try",
        dest="sizes",
        action="append",
        default=[],
        metavar="SIZE",
        help='a size, such as "dtype=float32,N=1000"; without it those of the problem',
    )
    parser.add_argument("--time", metavar="SIZE", help="on a GPU, the size that is timed")
    parser.add_argument(
        "--seconds", type=_number(LONGEST_S), default=Limits.seconds, help="the limit for each answer"
    )
    parser.add_argument(
        "--memory",
        type=_number(MOST_GIB),
        default=Limits.memory_bytes / GIB,
        metavar="GIB",
        help="the limit of its memory",
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="the work must be the file's own: no operator of torch that computes, no kernel of the course",
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="VERDICT",
        help="judge nothing: say whether a verdict that --json printed is of this judge and of this file",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--gpu", action="store_true", help="refuse to judge without a GPU")
    return parser


def _number(most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if 0 < (value := float(text)) <= most:
                return value
        raise argparse.ArgumentTypeError(f"{text} is no number above 0, up to {most:g}")

    return number


def _workload(text: str, problem: Problem) -> Workload:
    from course_kernels.problem import Workload

    try:
        found = Workload.parse(text)
    except (TypeError, ValueError) as error:
        raise Unusable(str(error)) from None
    names = {tuple(w.dims) for w in problem.check_on}
    if tuple(found.dims) not in names:
        raise Unusable(f"{text}: {problem.name} has {' or '.join(', '.join(one) for one in sorted(names))}")
    return found


def _judged(options: argparse.Namespace, problem: Problem) -> Verdict:
    import torch

    from course_judge.host import CannotJudge, Host, Task
    from course_judge.judge import judge

    on_the_card = torch.cuda.is_available()
    if options.gpu and not on_the_card:
        raise Unusable(
            "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 judges without"
        )
    sizes = [_workload(text, problem) for text in options.sizes]
    time_on = _workload(options.time, problem) if options.time else problem.time_on[0]
    limits = Limits(seconds=options.seconds, memory_bytes=int(options.memory * GIB))
    try:
        with Host(modules(on_the_card, options.own), environment(on_the_card)) as host:
            return judge(
                host,
                options.file,
                problem,
                workloads=sizes,
                device="cuda" if on_the_card else "cpu",
                time_on=time_on if on_the_card else None,
                task=Task(options.file, problem.name, own=options.own, limits=limits),
            )
    except CannotJudge as error:
        raise Unusable(str(error)) from None


def modules(on_the_card: bool, own: bool) -> list[str]:
    """Modules that workers are started with, so that none loads them by itself.

    Args:
        on_the_card: without one Triton's kernels run in its interpreter, where Triton is installed.
        own: their operators are looked at, for which torch asks its compiler.
    """
    found = ["torch", "course_judge.worker.answers", "course_kernels.measure.check"]
    if not on_the_card and importlib.util.find_spec("triton"):
        found = [*INTERPRETER, *found]
    return [*found, *(["torch._dynamo"] if own else [])]


def environment(on_the_card: bool) -> dict[str, str]:
    """Variables of a worker: without a card Triton's kernels run in its interpreter."""
    return {} if on_the_card else {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "-1"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
