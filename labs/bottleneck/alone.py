"""The last task: a reading in, a cause out. The truth is what the profiler's rules say about the same reading.

The readings are made up, so that each has one cause and no more; none was counted on a card.
"""

import random
from bisect import bisect
from collections.abc import Callable, Iterator

from course_profile import measurement as r
from course_profile.diagnosis import diagnose
from course_profile.measurement import REASONS, STALL, Reading

QUIET = {
    "of_peak": 0.4,
    "bound": "memory",
    "least_bytes": 1000,
    "counted_bytes": 1000,
    "dram_busy": 40.0,
    "memory_busy": 45.0,
    "sm_busy": 30.0,
    "issue": 20.0,
}

# What sets each reading apart. A wait that is not named is a small one.
READINGS = {
    "a kernel whose warps wait for memory that has room": {"stalls": {"long_scoreboard": 0.8}},
    "a kernel whose warps wait for each other": {"stalls": {"barrier": 0.7}},
    "a kernel whose warps wait a fixed time": {"stalls": {"wait": 0.75}},
    "a kernel of which no wait is half of all": {"stalls": {"barrier": 0.4, "wait": 0.4}},
    "a kernel that moves three bytes for one": {
        "counted_bytes": 3000,
        "dram_busy": 90.0,
        "memory_busy": 90.0,
        "stalls": {"long_scoreboard": 0.8},
    },
    "a kernel whose L1 is full": {
        "memory_busy": 95.0,
        "dram_busy": 10.0,
        "stalls": {"long_scoreboard": 0.8},
    },
    "a kernel whose multiprocessors are full": {
        "sm_busy": 96.0,
        "dram_busy": 30.0,
        "stalls": {"math_pipe_throttle": 0.6},
    },
    "a kernel that is full of work that compute must do": {
        "bound": "compute",
        "sm_busy": 96.0,
        "dram_busy": 5.0,
        "stalls": {"wait": 0.3},
    },
    "a kernel that waits for memory at its roof": {
        "of_peak": 0.95,
        "dram_busy": 97.0,
        "memory_busy": 97.0,
        "stalls": {"long_scoreboard": 0.9},
    },
    "a kernel that computes at its roof": {
        "of_peak": 0.93,
        "bound": "compute",
        "sm_busy": 78.0,
        "issue": 55.0,
        "stalls": {"wait": 0.6},
    },
    "a kernel whose bytes move again while nobody waits for them": {
        "counted_bytes": 3000,
        "dram_busy": 25.0,
        "stalls": {"barrier": 0.7},
    },
    "a kernel that waits for memory under a full road": {
        "of_peak": 0.85,
        "dram_busy": 92.0,
        "memory_busy": 92.0,
        "stalls": {"long_scoreboard": 0.9},
    },
    "a kernel that issues in most of its ticks": {"issue": 75.0, "stalls": {"wait": 0.8}},
    "a kernel that computes at its roof and moves its bytes again": {
        "of_peak": 0.93,
        "bound": "compute",
        "counted_bytes": 3000,
        "dram_busy": 60.0,
        "memory_busy": 65.0,
        "stalls": {"wait": 0.6},
    },
    "a kernel whose multiprocessors must be full, and whose warps wait a fixed time": {
        "bound": "compute",
        "sm_busy": 96.0,
        "dram_busy": 5.0,
        "stalls": {"wait": 0.8},
    },
    "a kernel whose multiprocessors are full of other work": {
        "sm_busy": 96.0,
        "dram_busy": 30.0,
        "stalls": {"wait": 0.3},
    },
    "a kernel that moves three bytes for one while memory is half busy": {
        "counted_bytes": 3000,
        "dram_busy": 60.0,
        "memory_busy": 65.0,
        "stalls": {"long_scoreboard": 0.3},
    },
    "a kernel with a short wait and a long one": {"stalls": {"barrier": 0.1, "wait": 0.7}},
    "a kernel with a long wait and a short one": {"stalls": {"barrier": 0.7, "wait": 0.1}},
}


def cases() -> list[dict]:
    """One reading after the other, from those with one sign to those where one sign misleads."""
    found = []
    for job, more in READINGS.items():
        given = {**QUIET, **more}
        expect = diagnose(_as_the_rules_read(given)).name
        found.append({"call": "cause", "with": {"reading": given}, "expect": expect, "job": job})
    return found


# The limits at which a sign changes what it says.
LIMITS = {
    "of_peak": (0.0, 0.9, 1.0),
    "dram_busy": (0.0, 50.0, 70.0, 80.0, 100.0),
    "memory_busy": (0.0, 70.0, 80.0, 100.0),
    "sm_busy": (0.0, 70.0, 80.0, 100.0),
    "issue": (0.0, 60.0, 100.0),
}
MARGIN = 0.1  # of the way between two limits
HAIR = 1e-6  # of a limit
# Beside these limits a rule looks at more than the task says.
LEFT_OPEN = {
    ("a kernel whose warps wait for memory that has room", "dram_busy"),
    ("a kernel whose multiprocessors are full", "sm_busy"),
}
LEAST = 10**8  # bytes that must move, half as many again of which are a limit


def drawn(draw: random.Random) -> list[dict]:
    """The same readings with other numbers, each on the same side of every limit, and then at the limits.

    Near the lower one, near the upper one, and twice anywhere between.
    """

    def anywhere(low: float, high: float) -> float:
        return draw.uniform(low, high)

    def near_the_lower(low: float, high: float) -> float:
        return low + draw.uniform(0, 0.05) * (high - low)

    def near_the_upper(low: float, high: float) -> float:
        return high - draw.uniform(0, 0.05) * (high - low)

    found = []
    for between in (near_the_lower, near_the_upper, anywhere, anywhere):
        for case in cases():
            given = _redrawn(case["with"]["reading"], draw, between)
            if diagnose(_as_the_rules_read(given)).name == case["expect"]:
                found.append({**case, "with": {"reading": given}, "job": f"{case['job']}, other numbers"})
    return [*found, *_at_the_limits()]


def _at_the_limits() -> Iterator[dict]:
    """Each reading with one of its signs at a limit, a hair below it and a hair above it.

    Those for which the rules have two causes, or look at more, are left out.
    """
    for job, more in READINGS.items():
        usual = {**QUIET, **more}
        at: list[tuple[str, dict]] = []
        for share in (1 - HAIR, 1.0, 1 + HAIR):
            for sign, limits in LIMITS.items():
                at += [(sign, {sign: share * limit}) for limit in limits[1:-1]]
            again = {"least_bytes": LEAST, "counted_bytes": round(1.5 * share * LEAST)}
            at.append(("counted_bytes", again))
            if len(usual["stalls"]) == 1:  # of several the shares are rounded when they are added up
                at.append(("stalls", {"stalls": dict.fromkeys(usual["stalls"], 0.5 * share)}))
        for sign, new in at:
            given = {**usual, **new}
            given["memory_busy"] = max(given["memory_busy"], given["dram_busy"])
            found = diagnose(_as_the_rules_read(given))
            if len(found.findings) < 2 and (job, sign) not in LEFT_OPEN:
                job_at = f"{job}, {sign} at a limit"
                yield {"call": "cause", "with": {"reading": given}, "expect": found.name, "job": job_at}


def _redrawn(given: dict, draw: random.Random, between: Callable[[float, float], float]) -> dict:
    new = dict(given)
    for sign, limits in LIMITS.items():
        at = min(bisect(limits, given[sign]), len(limits) - 1)
        low, high = limits[at - 1], limits[at]
        room = MARGIN * (high - low)
        new[sign] = round(between(low + room, high - room), 3)
    # The busiest of the caches and of device memory is at least as busy as device memory.
    new["memory_busy"] = max(new["memory_busy"], new["dram_busy"])
    new["least_bytes"] = draw.randint(10**3, 10**9)
    again = between(1.7, 6) if given["counted_bytes"] > given["least_bytes"] else between(1, 1.3)
    new["counted_bytes"] = int(again * new["least_bytes"])
    new["stalls"] = {
        name: round(between(0.55, 0.9) if share >= 0.5 else between(0.3, 0.45), 3)
        for name, share in given["stalls"].items()
    }
    return new


def _as_the_rules_read(given: dict) -> Reading:
    named = given["stalls"]
    others = [reason for reason in REASONS if reason not in named]
    rest = (1 - sum(named.values())) / len(others)
    stalls = {STALL.format(reason): named.get(reason, rest) for reason in REASONS}
    busy = {
        r.DRAM_BUSY: given["dram_busy"],
        r.MEMORY_BUSY: given["memory_busy"],
        r.SM_BUSY: given["sm_busy"],
        r.ISSUE: given["issue"],
        r.WARPS: 60.0,
    }
    return Reading(
        counters={**busy, **stalls},
        of_peak=given["of_peak"],
        bound=given["bound"],
        read_bytes=given["counted_bytes"],
        write_bytes=0,
        least_read_bytes=given["least_bytes"],
        least_write_bytes=0,
    )
