"""Six kernels for the last task of the lab: softmax over one row, in plain Python, with every number counted.

Run `python labs/taste/six.py`: it prints what a careless judge says of each, and how many numbers each has read and
written. `tried(kernel, rows)` tells you the same of rows of your own.

Two of them are ported by hand from files that a language model wrote, `proposals/softmax/right_first` and
`proposals/softmax/bold`: what one program does with its row. BLOCK stands for their blocks of 8192 and 4096 numbers,
LONGEST for their limit of 32768. On 2026-11-29 the course's judge, without a card, said of both files: "right";
`nox -s harness -- softmax` asks it again. The other four are made up for this lab: no machine wrote them.
"""

import math
import random

BLOCK, LONGEST = 8, 64  # the grader draws others
ALLOWED = 0.01  # of any number: a great deal for what adds up to 1
LARGEST = 3.4e38  # where a number of 32 bits ends


def exp(x):
    """e to the x, as on a card: infinity where it is too large for 32 bits, and 0 where it is too small."""
    return math.inf if x > 88.72 else 0.0 if x < -103.97 else math.exp(x)


def divided(a, b):
    """a / b, as on a card: NaN or infinity where b is 0."""
    return a / b if b else math.nan if a == 0 or math.isnan(a) else math.inf


# Each does one row, of N numbers: `read(n)` gives its number n, and `write(n, y)` stores number n of the answer.


def kernel_1(read, write, N, BLOCK, LONGEST):
    """Made up."""
    row, top = [], -LARGEST
    for start in range(0, N, BLOCK):
        block = [read(n) if n < N else 0.0 for n in range(start, start + BLOCK)]
        row += block
        top = max(top, *block)
    total = sum(exp(x - top) for x in row)
    for n in range(N):
        write(n, exp(row[n] - top) / total)


def kernel_2(read, write, N, BLOCK, LONGEST):
    """Ported from proposals/softmax/bold."""
    if N <= LONGEST:
        _in_one_go(read, write, N)
        return
    tops, totals = [-math.inf] * BLOCK, [0.0] * BLOCK
    for start in range(0, N, BLOCK):
        for place in range(min(BLOCK, N - start)):
            x = read(start + place)
            new = max(tops[place], x)
            totals[place] = totals[place] * exp(tops[place] - new) + exp(x - new)
            tops[place] = new
    top = max(tops)
    scale = 1 / sum(part * exp(its_top - top) for part, its_top in zip(totals, tops, strict=True))
    for n in range(N):
        write(n, exp(read(n) - top) * scale)


def kernel_3(read, write, N, BLOCK, LONGEST):
    """Made up."""
    if N > 4 * LONGEST:
        for n in range(N):
            write(n, 1 / N)
        return
    _in_one_go(read, write, N)


def kernel_4(read, write, N, BLOCK, LONGEST):
    """Made up."""
    row = [exp(read(n)) for n in range(N)]
    total = sum(row)
    for n in range(N):
        write(n, divided(row[n], total))


def kernel_5(read, write, N, BLOCK, LONGEST):
    """Ported from proposals/softmax/right_first."""
    if N <= LONGEST:
        _in_one_go(read, write, N)
        return
    top = max(read(n) for n in range(N))
    scale = 1 / sum(exp(read(n) - top) for n in range(N))
    for n in range(N):
        write(n, exp(read(n) - top) * scale)


def kernel_6(read, write, N, BLOCK, LONGEST, kept={}):  # noqa: B006
    """Made up."""
    known = N, read(0), read(N - 1)
    if known not in kept:
        _in_one_go(read, lambda n, y: kept.setdefault(known, []).append(y), N)
    for n in range(N):
        write(n, kept[known][n])


def _in_one_go(read, write, N):
    row = [read(n) for n in range(N)]
    top = max(row)
    scale = 1 / sum(exp(x - top) for x in row)
    for n in range(N):
        write(n, exp(row[n] - top) * scale)


KERNELS = [kernel_1, kernel_2, kernel_3, kernel_4, kernel_5, kernel_6]


def softmax(row):
    """The truth."""
    top = max(row)
    total = math.fsum(math.exp(x - top) for x in row)
    return [math.exp(x - top) / total for x in row]


def tried(kernel, rows, BLOCK=BLOCK, LONGEST=LONGEST):
    """Return, for each of some rows that a kernel is given in turn: its worst error, numbers read, numbers written.

    An error is NaN where the answer is, or where a number was never written. What is read twice counts twice.
    """
    found = []
    for row in rows:
        reads, answer, writes = [], [math.nan] * len(row), []

        def read(n, row=row, reads=reads):
            reads.append(n)
            return row[n]

        def write(n, y, answer=answer, writes=writes):
            writes.append(n)
            answer[n] = y

        kernel(read, write, len(row), BLOCK, LONGEST)
        errors = [abs(got - due) for got, due in zip(answer, softmax(row), strict=True)]
        worst = math.nan if any(map(math.isnan, errors)) else max(errors)
        found.append((worst, len(reads), len(writes)))
    return found


if __name__ == "__main__":
    draw = random.Random(0)
    print("a careless judge: rows of 8, 64 and 4096 numbers from -1 to 1, an error of 0.01 is allowed")
    for number, kernel in enumerate(KERNELS, start=1):
        rows = [[draw.uniform(-1, 1) for _ in range(N)] for N in (8, 64, 4096)]
        outcomes = tried(kernel, rows)
        word = "right" if all(worst <= ALLOWED for worst, _, _ in outcomes) else "wrong"
        told = ", ".join(
            f"N={len(row)}: {reads} + {writes}"
            for row, (_, reads, writes) in zip(rows, outcomes, strict=True)
        )
        print(f"kernel_{number}: {word}; numbers read + written: {told}")
