"""Rules for faults that a counter shows by itself, such as sectors that nobody wanted and lanes that sleep."""

from __future__ import annotations

from course_profile import measurement as r
from course_profile import thresholds
from course_profile.measurement import NotCounted, Reading
from course_profile.rules import Evidence, Rule


def launch(reading: Reading) -> Evidence | None:
    """Rule: the host takes longer to order the work than the card to do it."""
    time_us, host_us = reading.known("time_us"), reading.known("host_us")
    if host_us >= thresholds.HOST * time_us:
        line = f"a call costs the host {host_us:.1f} µs, and takes {time_us:.1f} µs"
        return Evidence(max(0.0, 1 - _least(reading, time_us) / max(host_us, time_us)), line)
    # A call of many kernels, which the host cannot order as fast as the card finishes them.
    if (
        reading.launches > 1
        and reading.kernels_us is not None
        and reading.kernels_us < thresholds.BETWEEN * time_us
    ):
        line = (
            f"{reading.launches} kernels are busy for {reading.kernels_us:.1f} µs of the {time_us:.1f} µs "
            "that the call takes"
        )
        return Evidence(1 - reading.kernels_us / time_us, line)
    return None


def _least(reading: Reading, time_us: float) -> float:
    """Return the time the card itself needs, where kernels were counted."""
    return min(time_us, reading.kernels_us) if reading.kernels_us else time_us


def uncoalesced(reading: Reading) -> Evidence | None:
    """Rule: requests bring sectors of which most bytes are for nobody."""
    if r.LOAD_SECTORS not in reading.counters and r.STORE_SECTORS not in reading.counters:
        raise NotCounted(r.LOAD_SECTORS)
    worst: tuple[float, str] | None = None
    wasted = flagged = total = 0.0
    for what, requests, sectors, used in (
        ("load", r.LOAD_REQUESTS, r.LOAD_SECTORS, r.LOAD_USED),
        ("store", r.STORE_REQUESTS, r.STORE_SECTORS, r.STORE_USED),
    ):
        if not reading.counters.get(requests) or sectors not in reading.counters:
            continue
        a_request = reading[sectors] / reading[requests]
        # Lanes that share an address use more bytes of a sector than it has; and copies that pass no register, which
        # bring sectors, are not in this counter: where there is nothing else it says 0.
        bytes_used = min(reading.counters.get(used) or thresholds.SECTOR_BYTES, thresholds.SECTOR_BYTES)
        total += reading[sectors]
        scattered = a_request >= thresholds.MANY_SECTORS and bytes_used <= thresholds.HALF_A_SECTOR
        if scattered or a_request > thresholds.MOST_SECTORS:
            unused = 1 - min(bytes_used / thresholds.SECTOR_BYTES, thresholds.MOST_SECTORS / a_request)
            wasted += unused * reading[sectors]
            flagged += reading[sectors]
            if worst is None or a_request > worst[0]:
                worst = a_request, what
    # A few stores at the end nobody feels beside the loads of a long loop.
    if worst is None or flagged < thresholds.WASTED * total:
        return None
    if not _is_felt(reading, wasted * thresholds.SECTOR_BYTES):
        return None
    return Evidence(
        wasted / total, f"a {worst[1]} request of a warp moves {worst[0]:.1f} sectors of 32 bytes"
    )


def _is_felt(reading: Reading, wasted_bytes: float) -> bool:
    """Return False where L1 picks up what one request leaves lying, and is not full of it either."""
    least = reading.least_bytes or 0
    if r.FROM_L2 in reading.counters:
        past_l1 = thresholds.SECTOR_BYTES * (reading[r.FROM_L2] + reading.counters.get(r.TO_L2, 0.0))
        full = reading.counters.get(r.MEMORY_BUSY, 0.0) >= 100 * thresholds.FULL
        return past_l1 >= (1 + thresholds.WASTED) * least or (
            full and reading[r.DRAM_BUSY] < 100 * thresholds.ROOM_LEFT
        )
    return wasted_bytes >= thresholds.WASTED * least


def bank_conflicts(reading: Reading) -> Evidence | None:
    """Rule: lanes of a warp want different words of one bank."""
    turns = reading[r.TURNS] + reading.counters.get(r.STORE_TURNS, 0.0)
    extra = reading[r.CONFLICTS] + reading.counters.get(r.STORE_CONFLICTS, 0.0)
    if not turns or extra / turns < thresholds.EXTRA_TURNS:
        return None
    busy = _turns_a_cycle(reading, turns)
    if busy is not None and busy < thresholds.TURNS_A_CYCLE:
        return None
    line = f"{extra / turns:.0%} of the turns of shared memory are there because lanes meet in a bank"
    return Evidence(extra / turns * min(busy if busy is not None else 1.0, 1.0), line)


def _turns_a_cycle(reading: Reading, turns: float) -> float | None:
    """Return the turns of shared memory in each cycle of an SM; None where time or card are not known."""
    time_ns = reading.counters.get(r.TIME)
    if not time_ns or not reading.sms:
        return None
    return turns / (time_ns * 1e-9 * thresholds.SM_HZ * reading.sms)


def spills(reading: Reading) -> Evidence | None:
    """Rule: registers were not enough, and values go to local memory and come back."""
    local = reading[r.LOCAL_LOADS] + reading[r.LOCAL_STORES]
    others = reading[r.LOAD_SECTORS] + reading[r.STORE_SECTORS]
    if local < thresholds.SPILLED * max(others, 1.0):
        return None
    registers = reading.counters.get(r.REGISTERS)
    held = f", with {registers:.0f} registers a thread" if registers else ""
    line = f"{local / (local + others):.0%} of the sectors that L1 moves are of local memory{held}"
    return Evidence(local / (local + others), line)


def divergence(reading: Reading) -> Evidence | None:
    """Rule: lanes of a warp take different ways, and wait for each other."""
    lanes, issued = reading[r.LANES], reading[r.ISSUE] / 100
    if lanes > thresholds.LANES or issued < thresholds.ISSUING:
        return None
    return Evidence(
        (1 - lanes / thresholds.WARP) * issued,
        f"{lanes:.1f} of 32 lanes take part in an instruction, on average",
    )


def atomics(reading: Reading) -> Evidence | None:
    """Rule: additions to one address queue."""
    for total, busiest in ((r.REDUCED, r.REDUCED_IN_ONE), (r.ATOMICS, r.ATOMICS_IN_ONE)):
        if not reading[total] or reading[busiest] / reading[total] < thresholds.ONE_SLICE:
            continue
        share = min(reading[busiest] * thresholds.ADDITION_NS / reading[r.TIME], 1.0)
        idle = 1 - max(reading[r.DRAM_BUSY], reading[r.SM_BUSY]) / 100
        # The lanes of a warp may be counted as one; the line is as long as if they were not.
        if (
            share < thresholds.IN_LINE
            and thresholds.WARP * share >= thresholds.IN_LINE
            and idle >= 1 - thresholds.IDLE
        ):
            share = idle
        if share >= thresholds.IN_LINE:
            line = f"one slice of L2 does {reading[busiest] / reading[total]:.0%} of the {reading[total]:.3g} additions"
            return Evidence(share, line)
    return None


def few_blocks(reading: Reading) -> Evidence | None:
    """Rule: all blocks fit on the card at once, and SMs are idle: there is no last wave, there are too few blocks."""
    busy, waves = reading[r.SMS_BUSY] / 100, reading.waves
    if busy >= thresholds.SMS_AT_WORK or not _below_one_wave(reading, waves):
        return None
    blocks, at_work = reading[r.GRID], f"an SM has work for {busy:.0%} of the time"
    if reading.sms is not None and blocks < reading.sms:
        none = reading.sms - blocks
        line = f"fewer blocks than multiprocessors: {none:.0f} of {reading.sms} have none, and {at_work}"
    else:
        line = f"{blocks:.0f} blocks are {waves:.2f} of a wave, and {at_work}"
    return Evidence(1 - busy, line)


def _below_one_wave(reading: Reading, waves: float) -> bool:
    """Return whether all blocks fit on the card at once, with places left."""
    return waves < 1 or (reading.sms is not None and reading[r.GRID] < reading.sms)


def tail(reading: Reading) -> Evidence | None:
    """Rule: SMs are idle while the blocks of a last wave run, which is not full."""
    busy, waves = reading[r.SMS_BUSY] / 100, reading.waves
    if busy >= thresholds.SMS_AT_WORK or _below_one_wave(reading, waves):
        return None
    if -(-waves // 1) / waves < thresholds.LAST_WAVE:
        return None
    blocks = f"{reading[r.GRID]:.0f} blocks are {waves:.2f} waves"
    return Evidence(1 - busy, f"{blocks}, and an SM has work for {busy:.0%} of the time")


FAULTS = (
    Rule(
        "launch-bound",
        "the host orders work more slowly than the card does it",
        f"the host needs {thresholds.HOST:.0%} of a call's time for it, or its kernels are busy for less than "
        f"{thresholds.BETWEEN:.0%}",
        "",
        "host_us",
        "give each launch more to do: fuse kernels, take a whole batch at once, or write the orders once, as a graph",
        "docs/lectures/l2_the_cuda_model.py#what-a-launch-costs",
        launch,
    ),
    Rule(
        "uncoalesced",
        "neighbouring lanes do not ask for neighbouring bytes",
        f"more than {thresholds.MOST_SECTORS:.0f} sectors a request, as many as the widest access can use; or "
        f"{thresholds.MANY_SECTORS:.0f} of which half is unused",
        "nvidia-sectors",
        r.LOAD_SECTORS,
        "let threadIdx.x run along the dimension that lies together in memory, or turn a tile in shared memory",
        "docs/lectures/l3_memory.py#ask-for-neighbours",
        uncoalesced,
    ),
    Rule(
        "bank conflicts",
        "lanes of a warp want different words of the same bank",
        f"{thresholds.EXTRA_TURNS:.0%} of the turns of shared memory are extra ones, "
        "and there is a turn in every fourth "
        "cycle",
        "nvidia-wavefronts",
        r.CONFLICTS,
        "pad the rows of the tile by one word, or swizzle the columns",
        "docs/lectures/l3_memory.py#thirty-two-windows",
        bank_conflicts,
    ),
    Rule(
        "spills",
        "values go to local memory because there are too few registers, or because an array is indexed at run time",
        f"a sector of local memory for every {1 / thresholds.SPILLED:.0f} of global memory",
        "",
        r.LOCAL_LOADS,
        "hold less in a thread: smaller tiles, more threads, full unrolling; STL in the machine code is a spill",
        "docs/lectures/l5_the_top_of_the_ladder.py#which-shape",
        spills,
    ),
    Rule(
        "divergence",
        "lanes of one warp take different branches, one branch after the other",
        f"at most {thresholds.LANES:.0f} of 32 lanes in an instruction, and the issue slots are in use",
        "",
        r.LANES,
        "sort the work so that the lanes of a warp take the same branch, or replace the branch by arithmetic",
        "docs/lectures/l2_the_cuda_model.py#a-warp-at-a-fork",
        divergence,
    ),
    Rule(
        "atomics",
        "many additions to one address, one after the other",
        f"one slice of L2 does {thresholds.ONE_SLICE:.0%} of them, and at {thresholds.ADDITION_NS} ns each they take "
        f"{thresholds.IN_LINE:.0%} of the time, or nothing else of the card is busy",
        "harris2007",
        r.REDUCED_IN_ONE,
        "add up in registers and in shared memory first, and send one sum a block, of few blocks",
        "docs/lectures/l3_memory.py#one-number-from-many",
        atomics,
    ),
    Rule(
        "tail wave",
        "most multiprocessors stand idle while the last blocks run",
        f"an SM has work for less than {thresholds.SMS_AT_WORK:.0%} of the time, and the last wave is not full",
        "",
        r.SMS_BUSY,
        "smaller blocks, or as many as fit at once with a loop over the rest",
        "docs/lectures/l5_the_top_of_the_ladder.py#12-nobody-idles-at-the-end",
        tail,
    ),
    Rule(
        "few blocks",
        "the launch is less than one wave, and multiprocessors stand idle",
        f"an SM has work for less than {thresholds.SMS_AT_WORK:.0%} of the time, and all blocks fit at once",
        "",
        r.SMS_BUSY,
        "more blocks, each with less to do: smaller tiles, or a long sum split over several blocks",
        "docs/lectures/l4_the_gemm_ladder.py#other-sizes",
        few_blocks,
    ),
)
