"""Needs: what a page, or a unit of a road, asks of the machine that it runs on."""

from __future__ import annotations

import re
from collections.abc import Iterable

from course_kernels.measure.machine import MACHINES, Machine

KNOWN = "gpu, gpu NAME, gpus N, compiler, counters, packages EXTRA, capability X.Y or X.Y+"
CARDS = {machine.slug: machine for machine in MACHINES}
_FIRST = frozenset({"gpu", "gpus", "compiler", "counters", "packages", "capability"})
_NEED = re.compile(
    r"gpu|gpu \S+|gpus (?:[2-9]|[1-9]\d+)|compiler|counters|packages [a-z]\w*|capability \d+\.\d+\+?"
)


def is_hardware(need: str) -> bool:
    """Return whether a need is one of the machine, or at least begins as one."""
    return need.partition(" ")[0] in _FIRST


def fault_of(need: str) -> str:
    """Return what is wrong with a need of the machine, or ""."""
    if not _NEED.fullmatch(need):
        return f"needs {need!r} is unknown; known: {KNOWN}"
    name = need.removeprefix("gpu ")
    if name != need and name not in CARDS:
        return f"needs {need!r} names no card; known: {', '.join(CARDS)}"
    return ""


def card_of(need: str) -> Machine | None:
    """Return the card that a need names; None for any other need."""
    return CARDS.get(need.removeprefix("gpu "))


def gpus_of(needs: Iterable[str]) -> int:
    """Return the number of GPUs that are used at once."""
    counts = (int(need.removeprefix("gpus ")) for need in needs if need.startswith("gpus "))
    return max(counts, default=1)


def in_words(need: str) -> str:
    """Return a need of the machine for a reader, such as "2 GPUs"."""
    first, _, rest = need.partition(" ")
    card = card_of(need)
    if card:
        return card.name
    whole = {
        "gpu": "a GPU",
        "gpus": f"{rest} GPUs",
        "compiler": "a CUDA compiler",
        "counters": "hardware counters",
        "packages": f"the packages of the extra `{rest}`",
    }
    return whole.get(first, f"compute {need}")
