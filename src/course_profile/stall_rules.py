"""Rules for waits: what warps spend their time on, or what the card is full of. Symptoms, asked after the faults."""

from __future__ import annotations

from collections.abc import Callable

from course_profile import measurement as r
from course_profile import thresholds
from course_profile.measurement import NotCounted, Reading
from course_profile.rules import Evidence, Rule

UNITS = {
    "device memory": r.DRAM_BUSY,
    "the way to memory and its caches": r.MEMORY_BUSY,
    "a unit of the multiprocessors": r.SM_BUSY,
    "the tensor core": r.TENSOR,
}


def moved_again(reading: Reading) -> Evidence | None:
    """Rule: the same bytes cross the way to memory more than once."""
    least, counted = reading.least_bytes, reading.counted_bytes
    if counted is None:
        raise NotCounted("dram bytes")
    if (
        not least
        or counted < thresholds.MOVED_AGAIN * least
        or reading[r.DRAM_BUSY] < 100 * thresholds.MOVING
    ):
        return None
    line = f"{counted / 1e6:.1f} MB moved where {least / 1e6:.1f} MB must"
    return Evidence((1 - least / counted) * reading[r.DRAM_BUSY] / 100, line)


def _is_full(reading: Reading) -> bool:
    return any(reading.counters.get(metric, 0.0) >= 100 * thresholds.FULL for metric in UNITS.values())


def _waits_for(*reasons: str) -> Callable[[Reading], Evidence | None]:
    def asks(reading: Reading) -> Evidence | None:
        reason, share = reading.stall
        issued = reading[r.ISSUE] / 100
        if (
            reason not in reasons
            or share < thresholds.ONE_REASON
            or issued > thresholds.ISSUED_ENOUGH
            or _is_full(reading)
        ):
            return None
        line = f"{share:.0%} of all waiting is {reason}"
        return Evidence(share * (1 - issued), line, r.STALL.format(reason))

    return asks


def in_flight(reading: Reading) -> Evidence | None:
    """Rule: too few bytes are under way; warps wait for memory, and memory for warps."""
    evidence = _waits_for("long_scoreboard")(reading)
    if evidence is None or reading.bound == "compute" or reading[r.DRAM_BUSY] >= 100 * thresholds.ROOM_LEFT:
        return None
    limit = ""
    if reading[r.WARPS] < 50:
        limit = f"; {reading[r.WARPS]:.0f} % of the places for warps are taken"
    line = f"{evidence.line}, and device memory is {reading[r.DRAM_BUSY]:.0f} % busy{limit}"
    return Evidence(evidence.share, line)


def no_reuse(reading: Reading) -> Evidence | None:
    """Rule: arithmetic should bind, and warps wait for memory; each number is fetched for one use."""
    evidence = _waits_for("long_scoreboard")(reading)
    return evidence if reading.bound == "compute" else None


def cache_traffic(reading: Reading) -> Evidence | None:
    """Rule: caches or shared memory are full, and device memory is not; the same words are asked for repeatedly."""
    memory, dram = reading[r.MEMORY_BUSY], reading[r.DRAM_BUSY]
    at_its_roof = reading.counters.get(r.TENSOR, 0.0) >= 100 * thresholds.FULL
    if memory < 100 * thresholds.FULL or dram >= 100 * thresholds.ROOM_LEFT or at_its_roof:
        return None
    line = f"L1, shared memory or L2 is {memory:.0f} % busy, and device memory {dram:.0f} %"
    return Evidence((memory - dram) / 100, line)


def arithmetic(reading: Reading) -> Evidence | None:
    """Rule: an arithmetic unit is full, with more work than the floor knows of."""
    busy, dram = reading[r.SM_BUSY], reading[r.DRAM_BUSY]
    # What a full L1 hands back counts as the work of a multiprocessor too.
    busiest = busy > reading[r.MEMORY_BUSY]
    if (
        reading.bound == "memory"
        and busiest
        and busy >= 100 * thresholds.FULL
        and dram < 100 * thresholds.ROOM_LEFT
    ):
        line = f"a unit of the multiprocessors is {busy:.0f} % busy, where the floor is set by memory"
        reason, share = _one_reason(reading)
        waits = f"; {share:.0%} of all waiting is {reason}" if reason else ""
        # The unit is what must get room. Its warps need not wait at its door: special functions are behind a queue.
        counter = "" if reason == "math_pipe_throttle" else r.SM_BUSY
        return Evidence((busy - dram) / 100, line + waits, counter)
    return _waits_for("math_pipe_throttle")(reading)


def _one_reason(reading: Reading) -> tuple[str, float]:
    """Return the largest reason and its share; no name if it is too small, or not enough of them are counted."""
    try:
        reason, share = reading.stall
    except NotCounted:
        return "", 0.0
    return (reason, share) if share >= thresholds.ONE_REASON else ("", share)


WAITS = (
    Rule(
        "too many bytes",
        "the same bytes are fetched again and again",
        f"{thresholds.MOVED_AGAIN:g} times the least bytes moved, and device memory is half busy or more",
        "",
        "dram__bytes_read.sum",
        "keep what is used twice: in registers, in a tile of shared memory, or by fusing with what comes next",
        "docs/lectures/l3_memory.py#do-it-while-you-hold-it",
        moved_again,
    ),
    Rule(
        "bytes in flight",
        "too few bytes are under way to keep memory busy",
        f"half of all waiting is for memory, which is less than {thresholds.ROOM_LEFT:.0%} busy",
        "little1961",
        r.DRAM_BUSY,
        "ask for more before you use the first: wider loads, several for each thread, more warps",
        "docs/lectures/l3_memory.py#how-many-must-be-walking",
        in_flight,
    ),
    Rule(
        "no reuse",
        "arithmetic should bind, and each number is fetched for one use",
        "half of all waiting is for memory, where the floor is set by arithmetic",
        "",
        r.STALL.format("long_scoreboard"),
        "use each loaded number more often: a tile in shared memory, and then one in registers",
        "docs/lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory",
        no_reuse,
    ),
    Rule(
        "cache traffic",
        "caches and shared memory carry each word many times",
        f"L1, shared memory or L2 is {thresholds.FULL:.0%} busy, "
        f"and device memory less than {thresholds.ROOM_LEFT:.0%}",
        "",
        r.MEMORY_BUSY,
        "use each loaded word more often: keep it in registers, and take sixteen bytes in every access",
        "docs/lectures/l4_the_gemm_ladder.py#rung-5-both-hands-full",
        cache_traffic,
    ),
    Rule(
        "barriers",
        "warps wait for the slowest of their block",
        "half of all waiting is at barriers",
        "",
        r.STALL.format("barrier"),
        "fewer barriers: shuffles within a warp, two buffers in place of one, smaller blocks",
        "docs/lectures/l5_the_top_of_the_ladder.py#9-fetch-while-you-multiply",
        _waits_for("barrier"),
    ),
    Rule(
        "memory queue",
        "so many memory accesses are waiting that their queue is full",
        "half of all waiting is to hand an access to the queue of global or local memory",
        "",
        r.STALL.format("lg_throttle"),
        "fewer and wider accesses: sixteen bytes in each, and values kept that are asked for twice",
        "docs/lectures/l4_the_gemm_ladder.py#rung-2-stand-side-by-side",
        _waits_for("lg_throttle"),
    ),
    Rule(
        "shared memory",
        "warps wait for shared memory, or for room in its queue",
        "half of all waiting is for the answer of shared memory, or to ask it",
        "",
        r.STALL.format("short_scoreboard"),
        "use each loaded word more often: a larger tile in registers, sixteen bytes in every access",
        "docs/lectures/l4_the_gemm_ladder.py#rung-5-both-hands-full",
        _waits_for("short_scoreboard", "mio_throttle"),
    ),
    Rule(
        "arithmetic",
        "an arithmetic unit is full",
        f"half of all waiting is for an arithmetic unit; or one is {thresholds.FULL:.0%} busy, "
        "where memory sets the floor",
        "",
        r.STALL.format("math_pipe_throttle"),
        "cheaper operations: float for double, a table, fewer divisions; tensor cores where it is a multiply",
        "docs/lectures/l6_tensor_cores.py#the-climb",
        arithmetic,
    ),
    Rule(
        "one chain",
        "each instruction waits for the one before it",
        "half of all waiting is the fixed time of the instruction before",
        "volkov2010",
        r.STALL.format("wait"),
        "several sums side by side in a thread, or more warps",
        "docs/lectures/l1_what_a_gpu_is.py#one-long-chain",
        _waits_for("wait"),
    ),
)
