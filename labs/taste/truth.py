"""Claims about kernels that machines write: what is right is worked out here, and so are usual slips.

All tables are made up. Numbers lie exactly on a border where the border is asked for, and far from it elsewhere: every
order of the operations decides alike.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from statistics import fmean, stdev
from typing import Any

from course_judge.host import Broken
from course_labs.hints import NEXT_OF_NONE
from course_labs.interactive_cases import Answer, Asked, Play, Slip, with_advice

CLEAR = 1e-6  # how far a number is from a border, as a share of it
NAN = float("nan")
STANDARD_ERRORS = 3.0
WORK = ["card", "size", "dtype", "allowed", "caches"]

NEXT_OF_NAN = (
    "is NaN greater than what is allowed? Is it at most that? Both are false: which of the two do you ask?"
)
NEXT_OF_A_WRONG_ONE = "a wrong answer has no speed: it counts nowhere, however little time it took."
NEXT_OF_ALL = "a share of what? A kernel that is wrong was tried, too."
NEXT_OF_A_SHARE = "that is how many; a share is that over the number of rows."
NEXT_OF_A_TIE = "two times that lie no further apart than their spread are a tie, and a tie is no win."
NEXT_OF_P = "p = 2 asks that two runs of it fit into one of the rival's: which time is multiplied?"
NEXT_OF_0 = "fast_0 asks only whether a kernel is right: no time is looked at."
NEXT_OF_PUTTING_BACK = (
    "that puts a sample back. Nobody tries the same sample twice: of what is left, how many are right?"
)
NEXT_OF_ANY = "that is all samples at once. How many choices of k are there, and how many have no right one?"
NEXT_OF_ALL_RIGHT = "in those choices all k are right. One of them is enough: count the choices without any."
NEXT_OF_PROPORTION = "two right samples in one choice solve the task once, not twice."
NEXT_OF_TASKS = "samples of one task do not help another: work out each task, then take the mean over tasks."
NEXT_OF_THE_SUM = "that adds the tasks up; a share is the mean over them."
NEXT_OF_TOO_FEW = (
    "fewer wrong samples than k: then every choice has a right one, and no product may say otherwise."
)
NEXT_OF_A_LARGE_N = (
    "the factorial of some hundred is larger than any float: divide whole numbers, or multiply quotients."
)
NEXT_OF_AT_LEAST = "at least that share: which is the first k that reaches it?"
NEXT_OF_NEVER_REACHED = (
    "no k reaches it, and more samples than the shortest task has nobody drew: then it is 0."
)
NEXT_OF_THE_SHORTEST = (
    "a task with fewer samples than k has no choice of k: the shortest task says where k ends."
)
NEXT_OF_BYTES_AND_OPERATIONS = (
    "bytes move while a card works: neither waits for the end of the other, so it is no sum."
)
NEXT_OF_THE_LARGER = "both must be done: which of the two times is the least for both?"
NEXT_OF_L2 = (
    "the last writes may still sit in the L2 cache at the end: that many bytes need not have arrived."
)
NEXT_OF_READS_IN_L2 = "what is read comes from memory, all of it: only writes may be left in the cache."
NEXT_OF_FEW_WRITES = (
    "fewer bytes are written than the cache holds: then none of them must arrive, and less than none cannot."
)
NEXT_OF_BELOW = "exactly the floor is possible, and less is not."
NEXT_OF_NO_TIME = (
    "a time that is not a number is none: ask whether it is at least the floor, and refuse all else."
)
NEXT_OF_RESULTS = "error and time are what came out, and may differ. Which five are what was asked of them?"
NEXT_OF_WRONG_SIDES = (
    "one of the two is wrong by what it was allowed: then there is no ratio either. Its name is answer."
)
NEXT_OF_A_NAN_SIDE = "its error is NaN: is that at most what is allowed?"
NEXT_OF_RIGHT_SIDES = "each side is held against what it was allowed itself."
NEXT_OF_ORDER = "in the order of WORK, and answer at the end."
NEXT_OF_PAIRS = (
    "the rounds are the same, and what slows a round slows both: take each round's difference first."
)
NEXT_OF_ROOT = "that is how far one round is off. The mean of n rounds is off by less: by the root of n."
NEXT_OF_SIGN = "a difference may have either sign: who is called a is chance."
NEXT_OF_N_LESS_1 = "the mean is from the same rounds, so the squares are divided by n - 1."
NEXT_OF_THREE = (
    "one standard error is exceeded by chance about once in three times: three of them are asked for."
)
NEXT_OF_ONE_SLOW_ROUND = "the largest and the smallest say little of the rest: take the standard deviation."
NEXT_OF_ONE_MORE = (
    "more than three standard errors: which is the first whole number of rounds for which that is so?"
)
NEXT_OF_TWO = "one round has no spread: two are the least."
NEXT_OF_NO_SPREAD = "every round says the same here, and the spread is 0: what do you divide by?"
NEXT_OF_EQUAL_MEANS = "the means are equal: no number of rounds tells them apart, and you return 0."

Slips = Mapping[str, Any]  # what to say -> the answer for which it is said
Row = Sequence[Any]

# Ten kernels, made up, as on the sheet of W6: worst error, allowed, its time, the rival's, spread; in ticks.
TEN: list[list[float]] = [
    [0.001, 0.01, 80, 100, 0],
    [0.004, 0.01, 120, 100, 0],
    [0.3, 0.01, 10, 100, 0],
    [0.002, 0.01, 48, 100, 0],
    [0.0, 0.01, 100, 90, 0],
    [NAN, 0.01, 5, 100, 0],
    [0.009, 0.01, 95, 100, 0],
    [0.003, 0.01, 40, 100, 0],
    [0.011, 0.01, 60, 100, 0],
    [0.005, 0.01, 300, 100, 0],
]
WRONG_ONE = [[0.3, 0.01, 10, 100, 5], [0.001, 0.01, 80, 100, 5], [0.001, 0.01, 300, 100, 5]]
TEN_TIED = [[*row[:4], 6] for row in TEN]
CARD = [2000, 50_000, 1_000_000]  # made up: bytes a µs, operations a µs, bytes of L2
# Made up: both slow down from round to round, and a is always a little longer.
DRIFT = [100, 110, 120, 130], [98, 109, 118, 129]


def cases() -> list[Play]:
    """From ten kernels in a table to two lists of times."""
    return [
        _play("one kernel that is right", shares, [[0.001, 0.01, 80, 100, 5]], 1),
        _play("a wrong one that takes little time", shares, WRONG_ONE, 1),
        _play("an error that is NaN", shares, [[NAN, 0.01, 80, 100, 5], [0.001, 0.01, 80, 100, 5]], 0),
        _play("an error exactly as large as allowed", shares, [[0.01, 0.01, 80, 100, 5], [0.02, 0.01, 80, 100, 5]], 0),
        _play("a right one that loses", shares, [[0.0, 0.01, 300, 100, 5], [0.0, 0.01, 20, 100, 5]], 1),
        _play("a right one that loses, and p = 0", shares, [[0.0, 0.01, 300, 100, 120], [0.0, 0.01, 20, 100, 5]], 0),
        _play("a time within the spread", shares, [[0.0, 0.01, 97, 100, 5], [0.0, 0.01, 80, 100, 5]], 1),
        _play("a time away by exactly the spread", shares, [[0.0, 0.01, 95, 100, 5], [0.0, 0.01, 80, 100, 5]], 1),
        _play("two runs in one, but for the spread", shares, [[0.0, 0.01, time, 100, 5] for time in (48, 40, 120)], 2),
        *(_play(f"the ten kernels, p = {p}", shares, TEN, p) for p in (0, 1, 2)),
        *(_play(f"the ten kernels with a spread of 6, p = {p}", shares, TEN_TIED, p) for p in (0, 1, 2)),
        Play("rows by chance", shares_by_chance, again=1),
        _play("one try of four, one right", best, 1, [[4, 1]]),
        _play("two of four, one right", best, 2, [[4, 1]]),
        _play("two of four, two right", best, 2, [[4, 2]]),
        _play("three of four, two right", best, 3, [[4, 2]]),
        _play("all of four, one right", best, 4, [[4, 1]]),
        _play("none right", best, 3, [[8, 0]]),
        _play("two tasks, one of them never solved", best, 2, [[4, 2], [4, 0]]),
        _play("tasks with different numbers of samples", best, 2, [[4, 1], [10, 5], [3, 3]]),
        _play("ten of a thousand, one right", best, 10, [[1000, 1]]),
        Play("samples by chance", best_by_chance, again=1),
        _play("a share between those of one and of two", reached, 0.4, [[4, 1]]),
        _play("a share that one try has", reached, 0.2, [[4, 1], [4, 1]]),
        _play("a share of 1, and all samples right", reached, 1.0, [[4, 4]]),
        _play("a share that only all of them have", reached, 0.9, [[4, 1]]),
        _play("a share that nobody reaches", reached, 0.6, [[8, 4], [10, 0]]),
        _play("a share above that of all", reached, 0.9, [[10, 1], [10, 3]]),
        Play("shares by chance", reached_by_chance, again=1),
        _play("bytes alone", floor, 4_000_000, 3_000_000, 0, CARD),
        _play("operations alone", floor, 1000, 0, 100_000_000, CARD),
        _play("bytes and operations", floor, 4_000_000, 3_000_000, 100_000_000, CARD),
        _play("writes that the cache holds", floor, 4_000_000, 300_000, 1000, CARD),
        _play("reads that the cache would hold", floor, 400_000, 300_000, 1000, CARD),
        Play("floors by chance", floors_by_chance, again=1),
        _play("a time that is possible, for all the last writes", refused, [4_000_000, 1_000_000, 0, 2100.0], CARD),
        _play("a time of exactly the floor", refused, [4_000_000, 3_000_000, 0, 3000.0], CARD),
        _play("a time just below it", refused, [4_000_000, 3_000_000, 0, 2990.0], CARD),
        _play("a time just above it", refused, [4_000_000, 3_000_000, 0, 3010.0], CARD),
        _play("a time too short for the operations", refused, [1000, 0, 100_000_000, 1500.0], CARD),
        _play("a time that is NaN", refused, [4_000_000, 3_000_000, 0, NAN], CARD),
        Play("times by chance", refused_by_chance, again=1),
        _play("two sides of the same work", sides, side(), side(error=0.0015, time=20)),
        _play("another size", sides, side(), side(size=[16, 1024])),
        _play("other allowances", sides, side(), side(allowed=0.01)),
        _play("a warm cache", sides, side(caches="warm"), side()),
        _play("three things at once", sides, side(), side(card="B", dtype="float16", caches="warm")),
        _play("a rival that is wrong", sides, side(), side(error=0.5)),
        _play("a kernel whose error is NaN", sides, side(error=NAN), side()),
        _play("an error that only the other side may have", sides, side(error=0.004), side(allowed=0.01, error=0.004)),
        _play("right by a looser allowance", sides, side(allowed=0.01, error=0.004), side()),
        Play("sides by chance", sides_by_chance, again=1),
        _play("four rounds that say the same", apart, [10, 11, 12, 13], [9, 10, 11, 12]),
        _play("rounds that get slower", apart, *DRIFT),
        _play("the same, with the names changed", apart, *DRIFT[::-1]),
        _play("two rounds that say nothing", apart, [100, 104], [98, 105]),
        _play("a mean within three standard errors", apart, [100, 103, 99, 105], [98, 100, 100, 101]),
        _play("three rounds", apart, [103, 108, 113], [100, 100, 100]),
        _play("one odd round among sixteen", apart, [*[102] * 15, 104.5], [100] * 16),
        _play("equal means", apart, [3, 5, 4], [5, 3, 4]),
        Play("rounds by chance", apart_by_chance, again=1),
        _play("rounds enough for what drifts", needed, *DRIFT),
        _play("rounds enough for a small difference", needed, [100, 103, 99, 105], [98, 100, 100, 101]),
        _play("rounds enough for rounds that say the same", needed, [10, 11, 12, 13], [9, 10, 11, 12]),
        _play("no number of rounds", needed, [3, 5, 4], [5, 3, 4]),
        Play("numbers of rounds by chance", needed_by_chance, again=1),
    ]  # fmt: skip


def side(
    card: str = "A",
    size: Sequence[int] = (16, 4096),
    dtype: str = "float32",
    allowed: float = 0.002,
    caches: str = "cold",
    error: float = 0.001,
    time: float = 30,
) -> list[Any]:
    """One side of a ratio."""
    return [card, list(size), dtype, allowed, caches, error, time]


# --- what is right ---------------------------------------------------------------------------------


def is_right(error: float, allowed: float) -> bool:
    """Whether an answer is right; one that is NaN is not."""
    return error <= allowed


def wins(row: Row, p: float, spread: float | None = None) -> bool:
    """Whether p runs of a kernel fit into one of its rival's, and more than the spread is left."""
    _, _, time, rival, its_spread = row
    return p == 0 or rival - p * time > (its_spread if spread is None else spread)


def fast(rows: Sequence[Row], p: float) -> float:
    """The share of kernels that are right, and win by p."""
    return sum(is_right(*row[:2]) and wins(row, p) for row in rows) / len(rows)


def solved(k: int, n: int, c: int) -> Fraction:
    """How often k of n samples, c of which are right, have a right one among them."""
    return 1 - Fraction(math.comb(n - c, k), math.comb(n, k))


def best_of(k: int, tasks: Sequence[Row]) -> float:
    """The expected share of tasks with a right one among k samples."""
    return float(sum(solved(k, *task) for task in tasks) / len(tasks))


def tries_for(share: float, tasks: Sequence[Row]) -> int:
    """The least number of samples for a share; 0 where no number has it."""
    most = min(n for n, _ in tasks)
    return next((k for k in range(1, most + 1) if best_of(k, tasks) >= share), 0)


def floor_us(reads: float, writes: float, operations: float, card: Row) -> float:
    """The least time of a job."""
    bandwidth, peak, l2 = card
    return max((reads + max(writes - l2, 0)) / bandwidth, operations / peak)


def unequal(mine: Row, theirs: Row) -> list[str]:
    """What differs in the work of two sides, and whether one of them is wrong."""
    names = [name for name, a, b in zip(WORK, mine, theirs, strict=False) if a != b]
    both_right = all(is_right(one[5], one[3]) for one in (mine, theirs))
    return names if both_right else [*names, "answer"]


def differences(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The mean of the differences in each round, and their standard deviation."""
    each = [x - y for x, y in zip(a, b, strict=True)]
    return fmean(each), stdev(each)


def told_apart(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether the mean difference is more than three standard errors."""
    mean, spread = differences(a, b)
    return abs(mean) > STANDARD_ERRORS * spread / math.sqrt(len(a))


def rounds_for(mean: float, spread: float) -> int:
    """The least number of rounds that tells such a difference apart; 0 where none does."""
    return 0 if mean == 0 else max(2, math.floor((STANDARD_ERRORS * spread / mean) ** 2) + 1)


# --- looking at an answer --------------------------------------------------------------------------


def is_same(got: Any, due: Any) -> bool:
    """Whether an answer is what is due: numbers but for a last digit."""
    if isinstance(due, list | str | bool):
        return bool(got == due)
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    return is_number and abs(got - due) <= 1e-9 * max(1.0, abs(due))


def ask(asked: Asked, name: str, *given: Any) -> Answer:
    """Call a function, and look whether it has left its arguments as they were: NaN is equal to nothing."""
    answer = asked.call(name, *given, writes=True)
    if repr(_as_lists(given)) != repr(_as_lists(answer.after)):
        raise Slip("input modified", f"an argument of {name} has changed", f"`{name}` only reads.")
    return answer


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def look(asked: Asked, name: str, *given: Any, due: Any, slips: Slips | None = None) -> None:
    """The function gives this."""
    answer = ask(asked, name, *given)
    got = answer.value
    if isinstance(due, list):
        got = answer.list(name, "names")
    elif isinstance(due, bool):
        if answer.strange or not isinstance(got, int) or got not in (0, 1):
            raise Slip(
                "wrong result", f"{name}: expected True or False, got {answer.told()}", _nothing(answer)
            )
        if got == due:
            return
    elif isinstance(due, int):
        got = answer.number(name)
    elif answer.strange or isinstance(got, bool) or not isinstance(got, int | float):
        raise Slip("wrong result", f"{name}: expected a number, got {answer.told()}", _nothing(answer))
    if is_same(got, due):
        return
    advice = next(
        (says for says, slip in (slips or {}).items() if not is_same(slip, due) and is_same(got, slip)), ""
    )
    if isinstance(due, list) and sorted(map(str, got)) == sorted(due):
        advice = NEXT_OF_ORDER
    shown = ", ".join(map(short, given))
    raise Slip("wrong", f"{name}({shown}): expected {short(due)}, got {short(got)}", advice)


def advised(broken: Broken, advice: str, *errors: str) -> Broken:
    """An error with advice, where it is one of these; any other has its own."""
    return (
        with_advice("crashed", advice, broken)
        if any(f": {name}: " in broken.why for name in errors)
        else broken
    )


def _nothing(answer: Answer) -> str:
    return NEXT_OF_NONE if answer.value is None and not answer.strange else ""


def short(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        text = f"[{', '.join(map(short, value))}]"
        return text if len(text) <= 90 else f"{text[:60]} …]"
    return str(value)[:60]


def _play(job: str, look_at: Callable[..., None], *given: Any) -> Play:
    return Play(job, lambda asked, _: look_at(asked, *given))


# --- the cases -------------------------------------------------------------------------------------


def shares(asked: Asked, rows: list[list[float]], p: float) -> None:
    """The share of kernels that are right, and win by p."""
    right = [row for row in rows if is_right(*row[:2])]
    winners = [row for row in right if wins(row, p)]
    due = len(winners) / len(rows)

    def share(is_so: Callable[[list[float]], bool]) -> float:
        return sum(map(is_so, rows)) / len(rows)

    slips: dict[str, Any] = {
        NEXT_OF_NAN: share(lambda row: not row[0] > row[1] and wins(row, p)),
        "at most as large as allowed is right.": share(lambda row: row[0] < row[1] and wins(row, p)),
        NEXT_OF_A_WRONG_ONE: share(lambda row: wins(row, p)),
        NEXT_OF_A_TIE: share(lambda row: is_right(*row[:2]) and wins(row, p, 0)),
        f"{NEXT_OF_A_TIE} ": share(lambda row: is_right(*row[:2]) and row[3] - p * row[2] >= row[4]),
        NEXT_OF_P: share(lambda row: is_right(*row[:2]) and p * row[3] - row[2] > row[4]),
        NEXT_OF_A_SHARE: float(len(winners)),
    }
    if p == 0:
        slips = {
            NEXT_OF_0: share(lambda row: is_right(*row[:2]) and row[3] > row[4]),
            f"{NEXT_OF_0} ": share(lambda row: is_right(*row[:2]) and wins(row, 1)),
        } | slips
    if right:
        slips[NEXT_OF_ALL] = len(winners) / len(right)
    look(asked, "fast_p", rows, p, due=due, slips=slips)


def shares_by_chance(asked: Asked, draw: random.Random) -> None:
    """Rows some of which are wrong, tied or NaN."""
    for _ in range(10):
        rows = []
        for _ in range(draw.randint(1, 12)):
            allowed = draw.choice([0.001, 0.01, 0.02])
            error = draw.choice([0.0, allowed / 2, allowed, 2 * allowed, NAN, float("inf")])
            spread, rival = draw.randint(0, 8), draw.randint(60, 140)
            tie = draw.choice([rival - spread, rival - spread + 1, rival - spread - 1])
            rows.append([error, allowed, draw.choice([tie, draw.randint(10, 200)]), rival, spread])
        shares(asked, rows, draw.choice([0, 1, 1, 1.5, 2]))


def best(asked: Asked, k: int, tasks: list[list[int]]) -> None:
    """The expected share of tasks solved with k samples."""
    due, many = best_of(k, tasks), len(tasks)
    n_all, c_all = (sum(column) for column in zip(*tasks, strict=True))

    def mean(of: Callable[[int, int], float]) -> float:
        return fmean(of(*task) for task in tasks)

    slips = {
        NEXT_OF_PUTTING_BACK: mean(lambda n, c: 1 - (1 - c / n) ** k),
        NEXT_OF_PROPORTION: mean(lambda n, c: min(1.0, k * c / n)),
        f"{NEXT_OF_PROPORTION} ": mean(lambda n, c: k * c / n),
        NEXT_OF_ANY: mean(lambda n, c: float(c > 0)),
        NEXT_OF_ALL_RIGHT: mean(lambda n, c: math.comb(c, k) / math.comb(n, k)),
        NEXT_OF_THE_SUM: due * many,
        "with k samples, not with one.": mean(lambda n, c: c / n),
        "these are the choices without a right one: you want the others.": 1 - due,
    }
    if k <= n_all and many > 1:
        slips[NEXT_OF_TASKS] = float(solved(k, n_all, c_all))
    try:
        look(asked, "best_of", k, tasks, due=due, slips=slips)
    except Broken as broken:
        told = advised(broken, NEXT_OF_A_LARGE_N, "OverflowError")
        raise advised(told, NEXT_OF_TOO_FEW, "ValueError", "ZeroDivisionError") from None


def best_by_chance(asked: Asked, draw: random.Random) -> None:
    """Tasks of a few samples, and of hundreds."""
    for most in (5, 12, 200, 400):
        tasks = drawn_tasks(draw, most)
        for _ in range(3):
            best(asked, draw.randint(1, min(n for n, _ in tasks)), tasks)


def drawn_tasks(draw: random.Random, most: int) -> list[list[int]]:
    """Tasks, some of which are never solved, or always."""
    tasks = []
    for _ in range(draw.randint(1, 6)):
        n = draw.randint(max(2, most // 2), most)
        tasks.append([n, draw.choice([0, 1, draw.randint(0, n), n])])
    return tasks


def reached(asked: Asked, share: float, tasks: list[list[int]]) -> None:
    """The least number of samples for a share."""
    due = tries_for(share, tasks)
    shortest = min(n for n, _ in tasks)
    one = fmean(c / n for n, c in tasks)
    by_replacement = next(
        (k for k in range(1, shortest + 1) if fmean(1 - (1 - c / n) ** k for n, c in tasks) >= share), 0
    )
    slips = {
        "all samples are a number of samples, too.": 0 if due == shortest else -1,
        NEXT_OF_NEVER_REACHED: shortest if due == 0 else -1,
        f"{NEXT_OF_NEVER_REACHED} ": shortest + 1 if due == 0 else -1,
        NEXT_OF_AT_LEAST: due + 1,
        f"{NEXT_OF_AT_LEAST} ": due - 1,
        f"{NEXT_OF_AT_LEAST}  ": 0 if share == 1 else -1,
        "k samples are not k times as good as one: ask your best_of.": math.ceil(share / one) if one else -1,
        NEXT_OF_PUTTING_BACK: by_replacement,
    }
    try:
        look(asked, "tries_for", share, tasks, due=due, slips=slips)
    except Broken as broken:
        raise advised(broken, NEXT_OF_THE_SHORTEST, "ValueError", "ZeroDivisionError") from None


def reached_by_chance(asked: Asked, draw: random.Random) -> None:
    """Shares far from those that a number of samples has, and one that exactly one has: 1."""
    for _ in range(8):
        tasks = drawn_tasks(draw, draw.choice([4, 10, 30]))
        most = min(n for n, _ in tasks)
        steps = sorted({best_of(k, tasks) for k in range(1, most + 1)})
        while True:
            share = draw.uniform(0.02, 0.98)
            if all(abs(share - step) > CLEAR for step in steps):
                break
        reached(asked, share, tasks)


def floor(asked: Asked, reads: float, writes: float, operations: float, card: list[float]) -> None:
    """The least time of a job."""
    bandwidth, peak, l2 = card
    memory, work = (reads + max(writes - l2, 0)) / bandwidth, operations / peak
    slips = {
        NEXT_OF_BYTES_AND_OPERATIONS: memory + work,
        "and the operations?": memory,
        NEXT_OF_THE_LARGER: min(memory, work),
        NEXT_OF_L2: max((reads + writes) / bandwidth, work),
        NEXT_OF_FEW_WRITES: max((reads + writes - l2) / bandwidth, work),
        NEXT_OF_READS_IN_L2: max(max(reads + writes - l2, 0) / bandwidth, work),
        f"{NEXT_OF_READS_IN_L2} ": max((max(reads - l2, 0) + max(writes - l2, 0)) / bandwidth, work),
        "and the bytes?": work,
    }
    slips = {says: float(slip) for says, slip in slips.items()}
    look(asked, "floor_us", reads, writes, operations, card, due=float(max(memory, work)), slips=slips)


def drawn_card(draw: random.Random) -> list[float]:
    """A card that nobody sells."""
    return [draw.randint(500, 9000), draw.randint(10_000, 2_000_000), draw.randint(1, 200) * 1_000_000]


def drawn_job(draw: random.Random, card: Row) -> tuple[int, int, int]:
    """Bytes read and written, and operations, of which either may decide."""
    reads, writes = (draw.randint(1, 400) * 1_000_000 for _ in range(2))
    return reads, writes, int((reads + writes) / card[0] * card[1] * draw.choice([0.1, 0.6, 1.5]))


def floors_by_chance(asked: Asked, draw: random.Random) -> None:
    """Jobs on cards that nobody sells."""
    for _ in range(8):
        card = drawn_card(draw)
        floor(asked, *drawn_job(draw, card), card)


def refused(asked: Asked, row: list[float], card: list[float]) -> None:
    """Whether a time is impossible."""
    *job, time = row
    due = not time >= floor_us(*job, card)
    reads, writes, operations = job
    whole = max((reads + writes) / card[0], operations / card[1])
    below = NEXT_OF_NO_TIME if time != time else NEXT_OF_BELOW
    if not due and floor_us(*job, card) < time < whole:
        below = NEXT_OF_L2
    look(asked, "impossible", row, card, due=due, slips={below: not due})


def refused_by_chance(asked: Asked, draw: random.Random) -> None:
    """Times on both sides of a floor."""
    for _ in range(10):
        card = drawn_card(draw)
        job = drawn_job(draw, card)
        least = floor_us(*job, card)
        refused(asked, [*job, least * draw.choice([0.2, 0.9, 0.999, 1.001, 1.1, 3.0])], card)


def sides(asked: Asked, mine: list[Any], theirs: list[Any]) -> None:
    """What differs in the work of two sides."""
    due = unequal(mine, theirs)
    names = [name for name in due if name != "answer"]
    all_names = [*WORK, "error", "time"]
    as_it_is = [name for name, a, b in zip(all_names, mine, theirs, strict=True) if a != b]
    either = max(mine[3], theirs[3])
    loose = all(is_right(one[5], either) for one in (mine, theirs))
    has_nan = any(one[5] != one[5] for one in (mine, theirs))
    looser = names if loose else [*names, "answer"]
    slips: dict[str, Any] = {
        NEXT_OF_RIGHT_SIDES: looser,
        NEXT_OF_A_NAN_SIDE if has_nan else NEXT_OF_WRONG_SIDES: names,
        NEXT_OF_RESULTS: as_it_is,
        f"{NEXT_OF_RESULTS} ": [*as_it_is, "answer"],
        f"{NEXT_OF_RIGHT_SIDES} ": [*names, "answer"],
    }
    look(asked, "unequal", mine, theirs, due=due, slips=slips)


def sides_by_chance(asked: Asked, draw: random.Random) -> None:
    """Sides that differ in some of what they did."""
    for _ in range(12):
        kinds: Sequence[Mapping[str, Any]] = [
            {},
            {"card": "B"},
            {"size": draw.choice([[16, 1024], [4096, 16]])},
            {"dtype": "bfloat16"},
            {"allowed": draw.choice([0.01, 0.0015])},
            {"caches": "warm"},
        ]
        mine, theirs = (
            side(
                **{key: value for kind in draw.sample(kinds, 2) for key, value in kind.items()},
                error=draw.choice([0.0, 0.001, 0.001, 0.002, 0.005, NAN]),
                time=draw.randint(5, 90),
            )
            for _ in range(2)
        )
        sides(asked, mine, theirs)


def apart(asked: Asked, a: list[float], b: list[float]) -> None:
    """Whether two lists of times are told apart."""
    due, n = told_apart(a, b), len(a)
    mean, spread = differences(a, b)
    unpaired = math.sqrt(stdev(a) ** 2 / n + stdev(b) ** 2 / n)
    each = [x - y for x, y in zip(a, b, strict=True)]
    tried = {
        NEXT_OF_SIGN: mean > STANDARD_ERRORS * spread / math.sqrt(n),
        NEXT_OF_ROOT: abs(mean) > STANDARD_ERRORS * spread,
        NEXT_OF_PAIRS: abs(mean) > STANDARD_ERRORS * unpaired,
        NEXT_OF_N_LESS_1: abs(mean) > STANDARD_ERRORS * spread * math.sqrt((n - 1) / n) / math.sqrt(n),
        NEXT_OF_THREE: abs(mean) > spread / math.sqrt(n),
        NEXT_OF_ONE_SLOW_ROUND: abs(mean) > max(each) - min(each),
    }
    # An answer has one of two values: whichever slips end in the wrong one may be meant, and the first is told.
    says = next((says for says, slip in tried.items() if slip is not due), "")
    try:
        look(asked, "told_apart", a, b, due=due, slips={says: not due} if says else {})
    except Broken as broken:
        if spread:
            raise
        raise advised(broken, NEXT_OF_NO_SPREAD, "ZeroDivisionError") from None


def drawn_rounds(draw: random.Random) -> tuple[list[float], list[float]]:
    """Times of two kernels in the same rounds, far from where their difference would just be told."""
    while True:
        n = draw.randint(3, 12)
        drift, noise, gap = (
            draw.choice([0.0, 4.0]),
            draw.choice([0.3, 1.5]),
            draw.choice([-3.0, -0.5, 0.4, 2.5]),
        )
        common = [100 + drift * place for place in range(n)]
        a = [round(x + draw.gauss(gap, noise), 3) for x in common]
        b = [round(x + draw.gauss(0, noise), 3) for x in common]
        mean, spread = differences(a, b)
        if abs(mean) < 0.05:
            continue
        border, least = STANDARD_ERRORS * spread / math.sqrt(n), (STANDARD_ERRORS * spread / mean) ** 2
        if abs(abs(mean) - border) > 1e-3 and abs(least - round(least)) > 1e-3 and least < 10_000:
            return a, b


def apart_by_chance(asked: Asked, draw: random.Random) -> None:
    """Lists of times that drift or do not."""
    for _ in range(12):
        apart(asked, *drawn_rounds(draw))


def needed(asked: Asked, a: list[float], b: list[float]) -> None:
    """How many rounds it takes to tell two kernels apart."""
    mean, spread = differences(a, b)
    due = rounds_for(mean, spread)
    ratio = abs(STANDARD_ERRORS * spread / mean) if mean else 0.0
    of_two_lists = math.sqrt(stdev(a) ** 2 + stdev(b) ** 2)
    slips = {
        NEXT_OF_PAIRS: rounds_for(mean, of_two_lists),
        NEXT_OF_N_LESS_1: rounds_for(mean, spread * math.sqrt((len(a) - 1) / len(a))),
        NEXT_OF_THREE: rounds_for(mean, spread / STANDARD_ERRORS),
        NEXT_OF_TWO: 1,
        "the standard error has a root in it: what happens to it when you ask for n?": math.floor(ratio) + 1,
        NEXT_OF_ONE_MORE: math.floor(ratio**2),
        "these are as many more as you need; count all of them.": due - len(a),
    }
    if mean == 0:
        slips = {NEXT_OF_EQUAL_MEANS: 2, f"{NEXT_OF_EQUAL_MEANS} ": 1}
    try:
        look(asked, "needed_to_tell_apart", a, b, due=due, slips=slips)
    except Broken as broken:
        if mean:
            raise
        raise advised(broken, NEXT_OF_EQUAL_MEANS, "ZeroDivisionError") from None


def needed_by_chance(asked: Asked, draw: random.Random) -> None:
    """Numbers of rounds, from two to hundreds."""
    for _ in range(10):
        needed(asked, *drawn_rounds(draw))
