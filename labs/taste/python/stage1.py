"""Reading what machines write: what a claim about a kernel is worth."""

WORK = ["card", "size", "dtype", "allowed", "caches"]  # the first five of a side, see `unequal`


def fast_p(rows, p):
    """Return the share of kernels that are right and win by p. A row: error, allowed, its time, its rival's, spread."""
    won = 0
    for error, allowed, time, rival, spread in rows:
        right = error <= allowed  # false for NaN
        won += right and (p == 0 or p * time + spread < rival)
    return won / len(rows)


def best_of(k, tasks):
    """Return the expected share of tasks with a right one among k samples. A task: samples drawn, samples right."""


def tries_for(share, tasks):
    """Return the least k for which best_of gives at least this share; 0 where no k does."""


def floor_us(reads, writes, operations, card):
    """Return the least time in microseconds. A card: bytes a microsecond, operations a microsecond, bytes of L2."""


def impossible(row, card):
    """Return whether nobody can be so quick. A row: bytes read, bytes written, operations, time in microseconds."""


def unequal(mine, theirs):
    """Return the names in WORK in which two sides differ, and "answer" where one is wrong. Behind WORK: error, time."""


def told_apart(a, b):
    """Return whether the times of two kernels in the same rounds differ by more than three standard errors."""


def needed_to_tell_apart(a, b):
    """Return the least number of rounds that would tell such times apart; 0 where none would."""


if __name__ == "__main__":  # your own run:  python my_labs/taste.py
    # Made up, as on the sheet: ten kernels, their times in ticks, and a spread of 6 ticks.
    ERRORS = [0.001, 0.004, 0.3, 0.002, 0.0, float("nan"), 0.009, 0.003, 0.011, 0.005]
    TIMES = [80, 120, 10, 48, 100, 5, 95, 40, 60, 300]
    RIVAL = [100, 100, 100, 100, 90, 100, 100, 100, 100, 100]
    TEN = [[error, 0.01, time, rival, 6] for error, time, rival in zip(ERRORS, TIMES, RIVAL, strict=True)]
    print("fast_0, fast_1, fast_2:", *[fast_p(TEN, p) for p in (0, 1, 2)])
    # Made up as well: two models, the same four tasks, a hundred samples each.
    A, B = [[100, 30], [100, 0], [100, 60], [100, 0]], [[100, 2], [100, 1], [100, 3], [100, 0]]
    print(
        "one try:", best_of(1, A), best_of(1, B), "the best of a hundred:", best_of(100, A), best_of(100, B)
    )
