"""The rate of NVLink from a card to its neighbours, one way, by the data sheets; and the refusal of more."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

# GB/s in one direction. The sheets print both directions together, twice as much. Source: bekman-network in
# docs/bibliography.toml, its table of NVLink generations.
LINKS_GB_PER_S = {
    r"NVIDIA H200": 450.0,
    r"NVIDIA H100 80GB HBM3": 450.0,
    r"NVIDIA A100-SXM4-80GB": 300.0,
    r"NVIDIA B200": 900.0,
}


class AboveTheLink(RuntimeError):
    """More bytes than a link can carry in that time: they did not travel while the clock ran."""


def link_gb_per_s(gpu_name: str) -> float:
    """Return what leaves a card at most, by the name that its driver gives.

    Raises:
        ValueError: a card of which we have no source.
    """
    for pattern, rate in LINKS_GB_PER_S.items():
        if re.fullmatch(pattern, gpu_name.strip()):
            return rate
    raise ValueError(f"{gpu_name}: expected a card with NVLink out of {', '.join(LINKS_GB_PER_S)}")


def check_link(what: str, moved_bytes: float, us: Sequence[float], gb_per_s: float) -> None:
    """Refuse a median that is shorter than the bytes take on the link.

    Args:
        what: named in the refusal.
        moved_bytes: that left one card.
        us: microseconds of each round.
        gb_per_s: of the link, one way.
    Raises:
        AboveTheLink: it is shorter.
    """
    least_us = moved_bytes / gb_per_s / 1e3
    if not statistics.median(us) >= least_us:
        raise AboveTheLink(
            f"{what}: {statistics.median(us):.4g} µs, and its bytes take {least_us:.4g} µs on the link: "
            "they did not travel while the clock ran"
        )
