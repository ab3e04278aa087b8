"""The rules: each reads a few counters and names one cause, or keeps silent.

Two kinds. A fault is something that a counter shows by itself: sectors that nobody wanted, lanes that sleep. A wait is
what the warps spend their time on, or what the card is full of, which is a symptom: waits are asked only where no fault
was found. Thresholds err on the side of silence: a wrong name costs its reader a day.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_profile import reading as r
from course_profile.reading import NotCounted, Reading

WARP = 32
SECTOR_BYTES = 32

# From here on a kernel has no cause that is worth a day: what is left lies between the data sheet and what any kernel
# reaches. Our own plain copies, which do nothing but move bytes, stand just below and above it.
NEAR_PEAK = 0.9

# Of the card's time, what the host needs for one call. Where the card waits for it, the two are all but the same.
HOST = 0.8
# Of a call's time, what its kernels are busy for: below it the card mostly waits between them.
BETWEEN = 0.5

# Four bytes for each of 32 lanes are 4 sectors, sixteen are 16: what needs more than 16 leaves some of each unused,
# whatever its type. With less, the counter of used bytes must say so too.
MOST_SECTORS = 16.0
MANY_SECTORS = 8.0
HALF_A_SECTOR = SECTOR_BYTES / 2
# Unused bytes, as a share of those that must move: below it they hide behind the others.
WASTED = 0.25

# Of all turns of shared memory, those that conflicts took. The padded transpose has a tenth of them by chance, the
# one that is not padded nearly all.
EXTRA_TURNS = 0.4
# Turns in each cycle of an SM, whose shared memory serves one: below it nobody notices the queue.
TURNS_A_CYCLE = 0.25

# Local memory is DRAM behind two caches. So many sectors of it, for each sector of global memory.
SPILLED = 0.1

# Lanes of 32 at work in an instruction, on average. A reduction's last steps, and edges, stay well above it.
LANES = 20.0
# Issue slots used: a kernel that hardly issues does not wait for the slots that sleeping lanes take.
ISSUING = 0.25

# One address takes one addition after the other: in our records a million of them from as many blocks, to one
# address, take this long each, and the lanes of a warp stand in the same line.
ADDITION_NS = 1.9
IN_LINE = 0.3  # of the time
# Of all additions, in one of dozens of slices of L2. One that comes from the far half of the card is counted on its
# way as well, so it is not all of them even for one address.
ONE_SLICE = 0.3
# Neither memory nor the multiprocessors are busier: then the line is what is left, however the lanes were counted.
IDLE = 0.3

# The SMs had work for this share of the time. A kernel's ramp at both ends costs a twentieth of a short one.
SMS_AT_WORK = 0.85
# Blocks that do not fill their last wave: so much longer does the kernel take than blocks that divide would.
LAST_WAVE = 1.15

# Device memory below this share of its bandwidth, and no other unit above it, means that nobody asked for more.
ROOM_LEFT = 0.7
# A unit of the card that is busier than this is what the kernel waits for, whatever its warps say.
FULL = 0.8

# Bytes that moved, over those that must. Below it are lines fetched twice at the edges of tiles.
MOVED_AGAIN = 1.5
MOVING = 0.5  # device memory is busy at least so much, else the bytes are not what it waits for

# The largest reason for waiting, as a share of all of it: one that is not half of it is not one cause.
ONE_REASON = 0.5
# Issue slots used, above which the warps hardly wait at all.
ISSUED_ENOUGH = 0.6


@dataclass(frozen=True)
class Evidence:
    """Why a rule spoke.

    Attributes:
        share: of the time, what the cause costs at most: a rough figure, to put causes in order.
        line: what was counted.
    """

    share: float
    line: str


@dataclass(frozen=True)
class Rule:
    """One cause.

    Attributes:
        name: one or two words, as `--json` and the tests know it.
        title: the cause, as a clause.
        threshold: when the rule speaks, and why there.
        source: a key of docs/bibliography.toml; empty where the threshold comes from our own records.
        counter: what must move when the cause is cured.
        next: what to try.
        page: the heading that teaches it.
        asks: what it reads; gives None where it keeps silent.
    """

    name: str
    title: str
    threshold: str
    source: str
    counter: str
    next: str
    page: str
    asks: Callable[[Reading], Evidence | None]


@dataclass(frozen=True)
class Finding:
    """A rule that spoke."""

    rule: Rule
    evidence: Evidence


@dataclass(frozen=True)
class Diagnosis:
    """What the rules say of one reading.

    Attributes:
        findings: the first is the bottleneck; empty where nothing is obvious.
        silent: rules that could not be asked, with what they lack.
        said: why there is no finding; empty where there is one.
    """

    findings: tuple[Finding, ...]
    silent: tuple[tuple[Rule, str], ...]
    said: str = ""

    @property
    def name(self) -> str:
        """The bottleneck's name; empty where nothing is obvious."""
        return self.findings[0].rule.name if self.findings else ""


def diagnose(reading: Reading) -> Diagnosis:
    """Ask the rules: the faults, then the waits where there is none."""
    if reading.of_peak is not None and reading.of_peak >= NEAR_PEAK:
        return Diagnosis((), (), f"nothing obvious: it reaches {reading.of_peak:.1%} of peak")
    silent: list[tuple[Rule, str]] = []
    for rules in (FAULTS, WAITS):
        found = []
        for rule in rules:
            try:
                evidence = rule.asks(reading)
            except NotCounted as lacks:
                silent.append((rule, str(lacks)))
                continue
            if evidence:
                found.append(Finding(rule, evidence))
        if found:
            # What goes on in a kernel does not matter while the card waits for the host.
            found.sort(key=lambda finding: (finding.rule.asks is not launch, -finding.evidence.share))
            return Diagnosis(tuple(found), tuple(silent))
    return Diagnosis((), tuple(silent), _why_silent(reading, silent))


def _why_silent(reading: Reading, silent: Sequence[tuple[Rule, str]]) -> str:
    if len(silent) == len(FAULTS) + len(WAITS):
        return "no rule could be asked: nothing was counted"
    for what, metric in UNITS.items():
        if reading.counters.get(metric, 0.0) >= 100 * FULL:
            return f"nothing obvious: {what} is {reading.counters[metric]:.0f} % busy, which is the roof it is under"
    return "nothing obvious: no rule speaks" + (", of those that could be asked" if silent else "")


UNITS = {
    "device memory": r.DRAM_BUSY,
    "the way to memory and its caches": r.MEMORY_BUSY,
    "a unit of the multiprocessors": r.SM_BUSY,
    "the tensor core": r.TENSOR,
}


# --- faults -------------------------------------------------------------------------------------


def launch(reading: Reading) -> Evidence | None:
    """The host takes longer to order the work than the card to do it."""
    time_us, host_us = reading.known("time_us"), reading.known("host_us")
    if host_us >= HOST * time_us:
        line = f"a call costs the host {host_us:.1f} µs, and takes {time_us:.1f} µs"
        return Evidence(max(0.0, 1 - _least(reading, time_us) / max(host_us, time_us)), line)
    # A call of many kernels, which the host cannot order as fast as the card finishes them.
    if reading.launches > 1 and reading.kernels_us is not None and reading.kernels_us < BETWEEN * time_us:
        line = (
            f"{reading.launches} kernels are busy for {reading.kernels_us:.1f} µs of the {time_us:.1f} µs "
            "that the call takes"
        )
        return Evidence(1 - reading.kernels_us / time_us, line)
    return None


def _least(reading: Reading, time_us: float) -> float:
    """The time the card itself needs, where kernels were counted."""
    return min(time_us, reading.kernels_us) if reading.kernels_us else time_us


def uncoalesced(reading: Reading) -> Evidence | None:
    """Requests bring sectors of which most bytes are for nobody."""
    if r.LOAD_SECTORS not in reading.counters and r.STORE_SECTORS not in reading.counters:
        raise NotCounted(r.LOAD_SECTORS)
    worst: tuple[float, str] | None = None
    wasted = total = 0.0
    for what, requests, sectors, used in (
        ("load", r.LOAD_REQUESTS, r.LOAD_SECTORS, r.LOAD_USED),
        ("store", r.STORE_REQUESTS, r.STORE_SECTORS, r.STORE_USED),
    ):
        if not reading.counters.get(requests) or sectors not in reading.counters:
            continue
        a_request = reading[sectors] / reading[requests]
        # Lanes that share an address use more bytes of a sector than it has.
        bytes_used = min(reading.counters.get(used, SECTOR_BYTES), SECTOR_BYTES)
        total += reading[sectors]
        scattered = a_request >= MANY_SECTORS and bytes_used <= HALF_A_SECTOR
        if scattered or a_request > MOST_SECTORS:
            unused = 1 - min(bytes_used / SECTOR_BYTES, MOST_SECTORS / a_request)
            wasted += unused * reading[sectors]
            if worst is None or a_request > worst[0]:
                worst = a_request, what
    if worst is None or not _is_felt(reading, wasted * SECTOR_BYTES):
        return None
    return Evidence(
        wasted / total, f"a {worst[1]} request of a warp moves {worst[0]:.1f} sectors of 32 bytes"
    )


def _is_felt(reading: Reading, wasted_bytes: float) -> bool:
    """False where L1 picks up what one request leaves lying, and is not full of it either."""
    least = reading.least_bytes or 0
    if r.FROM_L2 in reading.counters:
        past_l1 = SECTOR_BYTES * (reading[r.FROM_L2] + reading.counters.get(r.TO_L2, 0.0))
        full = reading.counters.get(r.MEMORY_BUSY, 0.0) >= 100 * FULL
        return past_l1 >= (1 + WASTED) * least or (full and reading[r.DRAM_BUSY] < 100 * ROOM_LEFT)
    return wasted_bytes >= WASTED * least


def bank_conflicts(reading: Reading) -> Evidence | None:
    """Lanes of a warp want different words of one bank."""
    turns = reading[r.TURNS] + reading.counters.get(r.STORE_TURNS, 0.0)
    extra = reading[r.CONFLICTS] + reading.counters.get(r.STORE_CONFLICTS, 0.0)
    if not turns or extra / turns < EXTRA_TURNS:
        return None
    busy = _turns_a_cycle(reading, turns)
    if busy is not None and busy < TURNS_A_CYCLE:
        return None
    line = f"{extra / turns:.0%} of the turns of shared memory are there because lanes meet in a bank"
    return Evidence(extra / turns * min(busy if busy is not None else 1.0, 1.0), line)


SM_HZ = 1.98e9  # the highest clock of the cards that we have: a cycle less often makes the rule more silent


def _turns_a_cycle(reading: Reading, turns: float) -> float | None:
    """Turns of shared memory in each cycle of an SM; None where time or card are not known."""
    time_ns = reading.counters.get(r.TIME)
    if not time_ns or not reading.sms:
        return None
    return turns / (time_ns * 1e-9 * SM_HZ * reading.sms)


def spills(reading: Reading) -> Evidence | None:
    """Registers were not enough: values go to local memory and come back."""
    local = reading[r.LOCAL_LOADS] + reading[r.LOCAL_STORES]
    others = reading[r.LOAD_SECTORS] + reading[r.STORE_SECTORS]
    if local < SPILLED * max(others, 1.0):
        return None
    registers = reading.counters.get(r.REGISTERS)
    held = f", with {registers:.0f} registers a thread" if registers else ""
    line = f"{local / (local + others):.0%} of the sectors that L1 moves are of local memory{held}"
    return Evidence(local / (local + others), line)


def divergence(reading: Reading) -> Evidence | None:
    """Lanes of a warp take different ways, and wait for each other."""
    lanes, issued = reading[r.LANES], reading[r.ISSUE] / 100
    if lanes > LANES or issued < ISSUING:
        return None
    return Evidence(
        (1 - lanes / WARP) * issued, f"{lanes:.1f} of 32 lanes take part in an instruction, on average"
    )


def atomics(reading: Reading) -> Evidence | None:
    """Additions to one address stand in line."""
    for total, busiest in ((r.REDUCED, r.REDUCED_IN_ONE), (r.ATOMICS, r.ATOMICS_IN_ONE)):
        if not reading[total] or reading[busiest] / reading[total] < ONE_SLICE:
            continue
        share = min(reading[busiest] * ADDITION_NS / reading[r.TIME], 1.0)
        idle = 1 - max(reading[r.DRAM_BUSY], reading[r.SM_BUSY]) / 100
        # The lanes of a warp may be counted as one; the line is as long as if they were not.
        if share < IN_LINE and WARP * share >= IN_LINE and idle >= 1 - IDLE:
            share = idle
        if share >= IN_LINE:
            line = f"one slice of L2 does {reading[busiest] / reading[total]:.0%} of the {reading[total]:.3g} additions"
            return Evidence(share, line)
    return None


def tail(reading: Reading) -> Evidence | None:
    """SMs stand idle, while the last blocks run or because there are too few."""
    busy, waves = reading[r.SMS_BUSY] / 100, reading[r.WAVES]
    if busy >= SMS_AT_WORK or not waves:
        return None
    few = reading.sms is not None and reading[r.GRID] < reading.sms
    if not few and -(-waves // 1) / waves < LAST_WAVE:
        return None
    blocks = f"{reading[r.GRID]:.0f} blocks are {waves:.2f} waves"
    return Evidence(1 - busy, f"{blocks}, and an SM has work for {busy:.0%} of the time")


# --- waits --------------------------------------------------------------------------------------


def moved_again(reading: Reading) -> Evidence | None:
    """The same bytes cross the way to memory more than once."""
    least, counted = reading.least_bytes, reading.counted_bytes
    if counted is None:
        raise NotCounted("dram bytes")
    if not least or counted < MOVED_AGAIN * least or reading[r.DRAM_BUSY] < 100 * MOVING:
        return None
    line = f"{counted / 1e6:.1f} MB moved where {least / 1e6:.1f} MB must"
    return Evidence((1 - least / counted) * reading[r.DRAM_BUSY] / 100, line)


def _is_full(reading: Reading) -> bool:
    return any(reading.counters.get(metric, 0.0) >= 100 * FULL for metric in UNITS.values())


def _waits_for(*reasons: str) -> Callable[[Reading], Evidence | None]:
    def asks(reading: Reading) -> Evidence | None:
        reason, share = reading.stall
        issued = reading[r.ISSUE] / 100
        if reason not in reasons or share < ONE_REASON or issued > ISSUED_ENOUGH or _is_full(reading):
            return None
        return Evidence(share * (1 - issued), f"{share:.0%} of all waiting is {reason}")

    return asks


def in_flight(reading: Reading) -> Evidence | None:
    """Too few bytes are under way: warps wait for memory, and memory for warps."""
    evidence = _waits_for("long_scoreboard")(reading)
    if evidence is None or reading.bound == "compute" or reading[r.DRAM_BUSY] >= 100 * ROOM_LEFT:
        return None
    limit = ""
    if reading[r.WARPS] < 50:
        limit = f"; {reading[r.WARPS]:.0f} % of the places for warps are taken"
    line = f"{evidence.line}, and device memory is {reading[r.DRAM_BUSY]:.0f} % busy{limit}"
    return Evidence(evidence.share, line)


def no_reuse(reading: Reading) -> Evidence | None:
    """Arithmetic should bind, and warps wait for memory: each number is fetched for one use."""
    evidence = _waits_for("long_scoreboard")(reading)
    return evidence if reading.bound == "compute" else None


def cache_traffic(reading: Reading) -> Evidence | None:
    """Caches or shared memory are full, and device memory is not: the same words are asked for again and again."""
    memory, dram = reading[r.MEMORY_BUSY], reading[r.DRAM_BUSY]
    at_its_roof = reading.counters.get(r.TENSOR, 0.0) >= 100 * FULL
    if memory < 100 * FULL or dram >= 100 * ROOM_LEFT or at_its_roof:
        return None
    line = f"L1, shared memory or L2 is {memory:.0f} % busy, and device memory {dram:.0f} %"
    return Evidence((memory - dram) / 100, line)


def arithmetic(reading: Reading) -> Evidence | None:
    """The unit that computes is taken, by more work than the floor knows of."""
    busy, dram = reading[r.SM_BUSY], reading[r.DRAM_BUSY]
    # What a full L1 hands back counts as the work of a multiprocessor too.
    busiest = busy > reading[r.MEMORY_BUSY]
    if reading.bound == "memory" and busiest and busy >= 100 * FULL and dram < 100 * ROOM_LEFT:
        line = f"a unit of the multiprocessors is {busy:.0f} % busy, where the floor is set by memory"
        return Evidence((busy - dram) / 100, line)
    return _waits_for("math_pipe_throttle")(reading)


FAULTS = (
    Rule(
        "launch-bound",
        "the host orders work more slowly than the card does it",
        f"the host needs {HOST:.0%} of a call's time for it, or its kernels are busy for less than {BETWEEN:.0%}",
        "",
        "host_us",
        "give each launch more to do: fuse kernels, take a whole batch at once, or write the orders once, as a graph",
        "docs/lectures/l2_the_cuda_model.py#what-a-launch-costs",
        launch,
    ),
    Rule(
        "uncoalesced",
        "neighbouring lanes do not ask for neighbouring bytes",
        f"more than {MOST_SECTORS:.0f} sectors a request, as many as the widest access can use; or "
        f"{MANY_SECTORS:.0f} of which half is unused",
        "nvidia-sectors",
        r.LOAD_SECTORS,
        "let threadIdx.x run along the dimension that lies together in memory, or turn a tile in shared memory",
        "docs/lectures/l3_memory.py#ask-for-neighbours",
        uncoalesced,
    ),
    Rule(
        "bank conflicts",
        "lanes of a warp want different words of the same bank",
        f"{EXTRA_TURNS:.0%} of the turns of shared memory are extra ones, and there is a turn in every fourth cycle",
        "nvidia-wavefronts",
        r.CONFLICTS,
        "pad the rows of the tile by one word, or swizzle the columns",
        "docs/lectures/l3_memory.py#thirty-two-windows",
        bank_conflicts,
    ),
    Rule(
        "spills",
        "values go to local memory because registers are not enough, or because an array is indexed at run time",
        f"a sector of local memory for every {1 / SPILLED:.0f} of global memory",
        "",
        r.LOCAL_LOADS,
        "hold less in a thread: smaller tiles, more threads, full unrolling; STL in the machine code is a spill",
        "docs/lectures/l5_the_top_of_the_ladder.py#which-shape",
        spills,
    ),
    Rule(
        "divergence",
        "lanes of one warp take different ways, one way after the other",
        f"at most {LANES:.0f} of 32 lanes in an instruction, and the issue slots are in use",
        "",
        r.LANES,
        "sort the work so that the lanes of a warp take the same way, or replace the branch by arithmetic",
        "docs/lectures/l2_the_cuda_model.py#a-warp-at-a-fork",
        divergence,
    ),
    Rule(
        "atomics",
        "many additions to one address, one after the other",
        f"one slice of L2 does {ONE_SLICE:.0%} of them, and at {ADDITION_NS} ns each they take {IN_LINE:.0%} of the "
        "time, or nothing else of the card is busy",
        "harris2007",
        r.REDUCED_IN_ONE,
        "add up in registers and in shared memory first, and send one sum a block, of few blocks",
        "docs/lectures/l3_memory.py#one-number-from-many",
        atomics,
    ),
    Rule(
        "tail wave",
        "most multiprocessors stand idle while the last blocks run",
        f"an SM has work for less than {SMS_AT_WORK:.0%} of the time, and the last wave is not full",
        "",
        r.SMS_BUSY,
        "smaller blocks, or as many as fit at once with a loop over the rest",
        "docs/lectures/l5_the_top_of_the_ladder.py#12-nobody-idles-at-the-end",
        tail,
    ),
)

WAITS = (
    Rule(
        "too many bytes",
        "the same bytes are fetched again and again",
        f"{MOVED_AGAIN:g} times the least bytes moved, and device memory is half busy or more",
        "",
        "dram__bytes_read.sum",
        "keep what is used twice: in registers, in a tile of shared memory, or by fusing with what comes next",
        "docs/lectures/l3_memory.py#do-it-while-you-hold-it",
        moved_again,
    ),
    Rule(
        "bytes in flight",
        "too few bytes are under way to keep memory busy",
        f"half of all waiting is for memory, which is less than {ROOM_LEFT:.0%} busy",
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
        f"L1, shared memory or L2 is {FULL:.0%} busy, and device memory less than {ROOM_LEFT:.0%}",
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
        "so many accesses to memory are asked for that their queue is full",
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
        "the unit that computes is taken",
        f"half of all waiting is for an arithmetic unit; or one is {FULL:.0%} busy, where memory sets the floor",
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

RULES = FAULTS + WAITS
