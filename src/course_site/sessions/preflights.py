"""Preflights, typed the day before: one runs what the demo runs, or it does not say whether the demo will work.

A demo that measures kernels has a preflight that measures the same ones, on less. Any other demo is its own preflight.
Standard library only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from course_site.sessions.session import Demo

# What may be less than in the room. Another dtype, head width or number of chains is another kernel.
SIZES = frozenset("BHMNK")
_LOOP = re.compile(r"for (?P<name>\w+) in (?P<words>[\w./ ]+); do (?P<body>.+); done")
_MEASURES = re.compile(
    r"(?:PYTHONPATH=src )?python -m course_kernels\.measure (?P<kernels>[\w./ ]+)"
    r" --workload (?P<workload>[\w.,=]+)(?: --seconds [\d.]+)?"
)


def one_line(command: str) -> str:
    """Return a command without the ends of its lines."""
    return " ".join(command.replace("\\\n", " ").split())


def measured(command: str) -> Counter[str] | None:
    """Return the kernels that a command measures, each with what makes it another kernel.

    It is None if the command does other things too.

    Args:
        command: in one line; in a loop a kernel counts once for each turn.
    """
    loop = _LOOP.fullmatch(command)
    turns = (
        [loop["body"].replace(f"${loop['name']}", word) for word in loop["words"].split()]
        if loop
        else [command]
    )
    found: Counter[str] = Counter()
    for part in " && ".join(turns).split(" && "):
        match = _MEASURES.fullmatch(part)
        if not match:
            return None
        words = match["workload"].split(",")
        fixed = ",".join(sorted(word for word in words if word.partition("=")[0] not in SIZES))
        found.update(f"{kernel} at {fixed}" for kernel in match["kernels"].split())
    return found


def faults(demo: Demo) -> Iterator[str]:
    """Faults of the preflight of a demo."""
    typed, ran = one_line(demo.preflight), one_line(demo.command)
    wanted = measured(ran)
    if wanted is None:
        if typed != ran:
            yield "this demo does more than measure kernels, so nothing else proves it: write its own command"
        return
    # Of a loop the exit code is the last turn's alone, and without a GPU every turn would say so.
    found = None if _LOOP.fullmatch(typed) else measured(typed)
    if found is None:
        yield (
            "mentors type it as it is: write `python -m course_kernels.measure …` with plain options, "
            "two of them with && between"
        )
        return
    if lacks := wanted - found:
        yield f"leaves out what the demo runs, {_listed(lacks)}: only {', '.join(sorted(SIZES))} may be less"
    if more := found - wanted:
        yield f"runs what the demo does not, {_listed(more)}: take it out"


def _listed(kernels: Counter[str]) -> str:
    return ", ".join(
        f"{kernel} ({count} times)" if count > 1 else kernel for kernel, count in kernels.items()
    )
