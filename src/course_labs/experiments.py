"""A change that a student predicts, and a card that decides: the table TRIED in a file, if the lab has `on_a_card.py`.

    TRIED = {
        "change": {"STAGES": 3},      # one constant of the lab's kernel
        "expect": "slower",           # or "faster", or "the same"
        "by": (low, high),            # two shares; the change lies between them
        "because": "…",               # a sentence; nobody grades it
    }

It is read and never run. On any machine its form is graded. On a card the changed kernel is checked, timed in bursts
beside the one as it was, and the prediction is compared with the two. A file without the table is graded as ever.
"""

from __future__ import annotations

import ast
import ctypes
import dataclasses
import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from course_labs.lab import Lab, load_file
from course_labs.verdict import RIGHT, Verdict

TABLE, FILE = "TRIED", "on_a_card.py"
SAME = 0.02  # of the speed: bursts of one kernel differ by less
WIDEST = 0.25  # of the speed: who says more than that has said nothing
FEWEST_WORDS = 8
WORDS = ("faster", "slower", "the same")
ROUNDS = 6

NEXT = {
    "not filled in": "the page has the form, under *Predict, change, measure*.",
    "no such change": "change one of the kernel's constants, to a different number within its range.",
    "no prediction": "say which way, and between which two shares of the speed. Do it before you measure.",
    "no reason": f"write a sentence of {FEWEST_WORDS} words or more: what do the warps wait for then, or no longer?",
    "wrong answer": "the constant does not match what the launcher expects; undo the change.",
    "missed": "say in a sentence what you had not thought of. Then predict a different change: this one you know.",
}


@dataclasses.dataclass(frozen=True)
class Tried:
    """Prediction of a student.

    Attributes:
        name, value: the constant, and what it becomes.
        expect: one of `WORDS`.
        low, high: shares of the speed between which the change lies.
    """

    name: str
    value: int
    expect: str
    low: float
    high: float

    @property
    def said(self) -> str:
        """The prediction in words."""
        if self.expect == "the same":
            return "the same speed"
        return f"{self.expect}, by {100 * self.low:.0f} to {100 * self.high:.0f} in a hundred"

    def holds(self, ratio: float) -> bool:
        """Return True if it is right, given the changed kernel's share of the unchanged one's speed."""
        if self.expect == "the same":
            return abs(ratio - 1) <= SAME
        return self.low <= (ratio - 1 if self.expect == "faster" else 1 - ratio) <= self.high


def is_tried(lab: Lab) -> bool:
    """Return True for a lab with a kernel to try things on."""
    return (lab.folder / FILE).is_file()


def needs_torch(lab: Lab, file: Path) -> bool:
    """Return True where a card is there, by its driver, and the file has a change to try on it."""
    if not (is_tried(lab) and file.is_file() and TABLE in file.read_text(encoding="utf-8", errors="replace")):
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def also(lab: Lab, file: Path, verdict: Verdict, environment: Mapping[str, str] | None = None) -> Verdict:
    """Return a verdict on a file, with what is to say of its TRIED where all else is right."""
    if verdict.found != RIGHT or not is_tried(lab):
        return verdict
    try:
        table = _table(file)
    except (SyntaxError, ValueError):  # as the usual grader said, it is right: so nothing of the kind
        return verdict
    if table is None:
        if verdict.alone is None or verdict.alone.found != RIGHT:
            return verdict
        line = f"next, on a GPU: predict what a change does, in a table {TABLE} in your file"
        return dataclasses.replace(verdict, lines=(*verdict.lines, line))
    kernel = load_file(lab.folder / FILE, "lab_on_a_card")
    tried = read(table[0], kernel.CONSTANTS)
    judged = tried if isinstance(tried, Verdict) else measured(kernel, tried, environment or {})
    if judged.found != RIGHT:
        return dataclasses.replace(
            judged, on=TABLE, next=judged.next or NEXT[judged.found], printed=verdict.printed
        )
    return dataclasses.replace(verdict, lines=(*verdict.lines, f"{TABLE}: {judged.why}"))


# --- on paper ----------------------------------------------------------------------------------------


def _table(file: Path) -> tuple[Any] | None:
    """Return the value of the last TRIED = … of a file: (None,) if it is no plain table; None without one."""
    given = [
        node.value
        for node in ast.parse(file.read_bytes()).body
        if isinstance(node, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == TABLE for name in node.targets)
    ]
    if not given:
        return None
    try:
        return (ast.literal_eval(given[-1]),)
    except (ValueError, TypeError, SyntaxError):
        return (None,)


def read(table: Any, constants: Mapping[str, tuple[int, int, int]]) -> Tried | Verdict:
    """Return the prediction in a table, or what is wrong with its form.

    Args:
        table: the value of TRIED.
        constants: by name: what the kernel has, the least and the most.
    """
    wanted = ("change", "expect", "by", "because")
    if not isinstance(table, dict) or not set(wanted[:2] + wanted[3:]) <= set(table) <= set(wanted):
        why = f"{TABLE} is no table with {', '.join(wanted)}: it is read, and never run"
        return Verdict("not filled in", why)
    change = table["change"]
    if not isinstance(change, dict) or len(change) != 1:
        return Verdict("no such change", f"expected one constant of {', '.join(constants)}, got {change!r}")
    ((name, value),) = change.items()
    if name not in constants:
        like = get_close_matches(str(name), constants, 1)
        meant = f"; did you mean {like[0]}?" if like else ""
        return Verdict("no such change", f"{name!r} is none of {', '.join(constants)}{meant}")
    now, least, most = constants[name]
    if type(value) is not int or not least <= value <= most:
        return Verdict("no such change", f"{name}: expected {least} to {most}, got {value!r}")
    if value == now:
        return Verdict("no such change", f"{name} is {now} already")
    expect, by = table["expect"], table.get("by")
    if expect not in WORDS:
        return Verdict("no prediction", f"expected one of {', '.join(map(repr, WORDS))}, got {expect!r}")
    low, high = 0.0, SAME
    if expect != "the same":
        pair = by if isinstance(by, tuple | list) and len(by) == 2 else ()
        if not pair or not all(type(share) in (int, float) for share in pair):
            return Verdict("no prediction", f"by: expected two shares, such as (0.05, 0.2), got {by!r}")
        low, high = map(float, pair)
        if not SAME <= low < high <= 1:
            why = f"by: expected two shares from {SAME} to 1, the smaller one first, got {by!r}"
            return Verdict("no prediction", why)
        if high - low > WIDEST + 1e-9:
            why = f"by: from {low:g} to {high:g} is too wide to be wrong; {WIDEST} apart at most"
            return Verdict("no prediction", why)
    because = table["because"]
    if not isinstance(because, str) or len(because.split()) < FEWEST_WORDS:
        return Verdict("no reason", f"because: {because!r}")
    return Tried(name, value, expect, low, high)


# --- and on a card -----------------------------------------------------------------------------------


def measured(kernel: Any, tried: Tried, environment: Mapping[str, str]) -> Verdict:
    """Verdict of a card on a prediction; right, and not run, where there is no card.

    Args:
        kernel: the lab's `on_a_card.py`.
        environment: as the graders take it; CUDA_VISIBLE_DEVICES=-1 there leaves the card alone.
    """
    now = kernel.CONSTANTS[tried.name][0]
    what = f"{tried.name}={tried.value} instead of {now} in {kernel.KERNEL}"
    missing = _missing(environment)
    if missing:
        said = f"{what}, {tried.said}: the form is right. Neither the change nor the prediction is graded: {missing}"
        return Verdict(RIGHT, said)
    from course_kernels.measure.bursts import Race
    from course_kernels.measure.errors import Refused
    from course_kernels.problem import Workload

    problem = importlib.import_module(f"course_kernels.{kernel.PROBLEM}.problem").PROBLEM
    try:
        race = Race(kernel.competitors(tried.name, tried.value), problem, Workload.parse(kernel.WORKLOAD))
        rates = {name: found.quantiles["0.5"] for name, found in race.burst(rounds=ROUNDS).items()}
    except Refused as refused:
        return Verdict("wrong answer", f"{what}: {str(refused).partition(chr(10))[0]}")
    return judged(tried, what, rates["as it was"], rates["changed"])


def judged(tried: Tried, what: str, before: float, after: float) -> Verdict:
    """Return a prediction against two rates, TFLOP/s as it was and changed."""
    rates = (
        f"{before:.0f} TFLOP/s as it was, {after:.0f} changed, in bursts: {after / before:.3f} of the speed"
    )
    if not tried.holds(after / before):
        return Verdict("missed", f"{what}: you said {tried.said}. {rates}")
    return Verdict(
        RIGHT, f"{what}: {rates}. You said {tried.said}, and so it is. Nobody has graded your reason"
    )


def _missing(environment: Mapping[str, str]) -> str:
    """Reason why nothing can be run here; empty with a Hopper card."""
    if environment.get("CUDA_VISIBLE_DEVICES") == "-1":
        return "this machine has no GPU"
    try:
        import torch
    except ImportError:
        return "torch is not installed here"
    if not torch.cuda.is_available():
        return "this machine has no GPU"
    if torch.cuda.get_device_capability() != (9, 0):
        return "the kernel wants a Hopper card"
    return ""
