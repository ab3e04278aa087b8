"""The lab of what machines write: other right answers pass, and what the grader holds to be right is so."""

import random
import subprocess
import sys
import tomllib
from hashlib import sha256
from itertools import combinations
from math import isnan
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_judge.host import Broken
from course_kernels.measure.machine import MACHINES
from course_kernels.measure.roofline import floor_us
from course_labs.interactive_cases import Asked, Slip, grade
from course_labs.lab import find_lab, load_file
from course_labs.protocol.messages import Played

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "taste")
truth = load_file(LAB.folder / "truth.py", "truth")
alone = load_file(LAB.folder / "alone.py", "alone")

# Functions written in another way, by the names that they replace.
IN_LOOPS = """
def fast_p(rows, p):
    good = []
    for row in rows:
        if not row[0] <= row[1]:
            continue
        if p > 0 and (row[3] - row[4]) / row[2] <= p:
            continue
        good.append(row)
    return float(len(good)) / len(rows)


def best_of(k, tasks):
    total = 0.0
    for n, c in tasks:
        none = 1.0
        for i in range(k):
            none *= max(n - c - i, 0) / (n - i)
        total += 1 - none
    return total / len(tasks)


def tries_for(share, tasks):
    k = 0
    while k < min(task[0] for task in tasks):
        k += 1
        if best_of(k, tasks) >= share:
            return k
    return 0


def needed_to_tell_apart(a, b):
    d = [x - y for x, y in zip(a, b)]
    m = sum(d) / len(d)
    if not m:
        return 0
    s = (sum((x - m) ** 2 for x in d) / (len(d) - 1)) ** 0.5
    n = 2
    while not abs(m) > 3 * s / n**0.5:
        n += 1
    return n
"""
IN_LINES = """
from fractions import Fraction
from math import ceil


wins = lambda p, e, most, t, r, s: e <= most and (not p or r - p * t > s)
fast_p = lambda rows, p: Fraction(sum(wins(p, *row) for row in rows), len(rows)) + 0.0
best_of = lambda k, tasks: float(sum(1 - Fraction(comb(n - c, k), comb(n, k)) for n, c in tasks) / len(tasks))
tries_for = lambda share, tasks: next((k for k in range(1, min(tasks)[0] + 1) if share <= best_of(k, tasks)), 0)
moved = lambda reads, writes, l2: reads + (writes > l2) * (writes - l2)
floor_us = lambda reads, writes, work, card: sorted([moved(reads, writes, card[2]) / card[0], work / card[1]])[1]
impossible = lambda row, card: not floor_us(*row[:3], card) <= row[3]
right = lambda *sides: all(side[5] <= side[3] for side in sides)
unequal = lambda mine, theirs: tuple(
    [n for n, x, y in zip(WORK, mine, theirs) if x != y] + ["answer"] * (not right(mine, theirs))
)
told_apart = lambda a, b: int(0 < needed_to_tell_apart(a, b) <= len(a))
"""
IN_NUMPY = """
import numpy as np


def fast_p(rows, p):
    error, allowed, time, rival, spread = np.array(rows).T
    return np.mean((error <= allowed) & ((p == 0) | (p * time + spread < rival)))


def best_of(k, tasks):
    return np.mean([1.0 if n - c < k else 1 - np.prod(1 - k / np.arange(n - c + 1, n + 1)) for n, c in tasks])


def tries_for(share, tasks):
    most = min(n for n, _ in tasks)
    enough = np.array([best_of(k, tasks) for k in range(1, most + 1)]) >= share
    return np.argmax(enough) + 1 if enough.any() else 0


def floor_us(reads, writes, operations, card):
    return np.maximum((reads + np.clip(writes - card[2], 0, None)) / card[0], operations / card[1])


def impossible(row, card):
    return np.logical_not(np.array(row[3]) >= floor_us(*row[:3], card))


def told_apart(a, b):
    d = np.subtract(a, b)
    return np.abs(d.mean()) > 3 * d.std(ddof=1) / np.sqrt(d.size)


def needed_to_tell_apart(a, b):
    d = np.subtract(a, b)
    return int(max(2, 1 + (9 * d.var(ddof=1) / d.mean() ** 2) // 1)) if d.mean() else 0
"""
BY_GAMMA = """
from math import exp, lgamma


def log_choices(n, k):
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def best_of(k, tasks):
    none = [exp(log_choices(n - c, k) - log_choices(n, k)) if n - c >= k else 0 for n, c in tasks]
    return 1 - sum(none) / len(none)
"""
BY_HALVES = """
def tries_for(share, tasks):
    low, high = 0, min(drawn for drawn, _ in tasks)
    if best_of(high, tasks) < share:
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if best_of(middle, tasks) >= share else (middle, high)
    return high
"""
BY_SETS = """
def unequal(mine, theirs):
    mine, theirs = (dict(zip([*WORK, "error", "time"], one)) for one in (mine, theirs))
    bad = {name for name in WORK if mine[name] != theirs[name]}
    if any(not one["allowed"] >= one["error"] for one in (mine, theirs)):
        bad.add("answer")
    return sorted(bad, key=[*WORK, "answer"].index)
"""
BY_SQUARES = """
def told_apart(a, b):
    d = [x - y for x, y in zip(a, b)]
    n, sums, squares = len(d), sum(d), sum(x * x for x in d)
    # mean**2 > 9 * variance / n, times n**2
    return sums * sums * (n - 1) > 9 * (n * squares - sums * sums)
"""
BY_OTHER_ROWS = """
import random


def evidence(number, BLOCK, LONGEST):
    draw = random.Random(number)
    if number == 1:  # several rows, of which some show it
        return "wrong", [[-30.0 - n for n in range(N)] for N in range(1, 7)]
    if number == 2:
        return ("right", ())
    if number == 3:
        return ["cheats", [[draw.uniform(-1, 1)] * 3, [-9.0] + [0] * (4 * LONGEST), [9] + [0] * (4 * LONGEST)]]
    if number == 4:
        return ["wrong", ([-200.0, -201.0, -202.0],)]
    if number == 5:
        return ["slow", [[draw.gauss(0, 9) for _ in range(3 * LONGEST)]]]
    return ["cheats", [[1, n, n * n, 1] for n in range(-4, 4)]]
"""
BY_MEANS = """
from statistics import mean, variance


def told_apart(a, b):
    return 9 * variance(x - y for x, y in zip(a, b)) < len(a) * (mean(a) - mean(b)) ** 2


def impossible(row, card):
    *job, time = row
    return False if time >= floor_us(*job, card) else True
"""
OTHERWISE = {
    "in loops": IN_LOOPS,
    "in lines": IN_LINES,
    "in NumPy": IN_NUMPY,
    "by the gamma function": BY_GAMMA,
    "by halves": BY_HALVES,
    "by sets and names": BY_SETS,
    "by squares": BY_SQUARES,
    "by other rows": BY_OTHER_ROWS,
    "by means": BY_MEANS,
}


@pytest.mark.kept(LAB.folder, but=["labs/*"])
@pytest.mark.parametrize("how", OTHERWISE)
def test_a_right_answer_may_be_written_otherwise(tmp_path, how):
    file = tmp_path / "taste.py"
    file.write_text(f"{LAB.solution('python').read_text()}\n{OTHERWISE[how]}")
    (found,) = grade(LAB, [file], environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert found.text.startswith("right: correct in all "), found.text
    assert found.text.splitlines()[-1].startswith("alone: right, and the lab is done: "), found.text


def test_the_starter_and_the_answer_run_as_files():
    def printed(file):
        return subprocess.run(
            [sys.executable, file], capture_output=True, text=True, check=True
        ).stdout.splitlines()

    assert printed(LAB.snapshot("python", 0))[0] == "fast_0, fast_1, fast_2: None None None"
    shares, models = printed(LAB.snapshot("python", 4))
    assert shares == "fast_0, fast_1, fast_2: 0.7 0.3 0.1"
    one, many = models.removeprefix("one try: ").split(" the best of a hundred: ")
    (a, b), (all_of_a, all_of_b) = (map(float, part.split()) for part in (one, many))
    assert a > b  # and yet
    assert all_of_a < all_of_b


# --- what is right is so -------------------------------------------------------------------------------


def test_the_ten_kernels_are_those_of_the_sheet():
    assert [truth.fast(truth.TEN, p) for p in (0, 1, 2)] == [0.7, 0.4, 0.2]


def test_best_of_k_is_what_all_choices_say():
    for n in range(1, 7):
        for c in range(n + 1):
            samples = [place < c for place in range(n)]
            for k in range(1, n + 1):
                choices = [any(one) for one in combinations(samples, k)]
                assert truth.best_of(k, [[n, c]]) == pytest.approx(sum(choices) / len(choices), abs=1e-15)


def test_the_floor_is_the_course_s():
    draw = random.Random(2)
    for machine in MACHINES:
        card = [machine.bandwidth_gb_per_s * 1e3, machine.peak_tflops["fp32"] * 1e6, machine.l2_bytes]
        for _ in range(20):
            reads, writes, flops = (int(10 ** draw.uniform(5, 10)) for _ in range(3))
            cost = SimpleNamespace(reads_bytes=reads, writes_bytes=writes, flops=flops, math="fp32")
            assert truth.floor_us(reads, writes, flops, card) == pytest.approx(floor_us(cost, machine))


def test_as_many_rounds_as_are_needed_tell_apart():
    draw = random.Random(3)
    found = set()
    for _ in range(300):
        a, b = truth.drawn_rounds(draw)
        found.add(truth.told_apart(a, b))
        assert truth.told_apart(a, b) is (truth.rounds_for(*truth.differences(a, b)) <= len(a))
    assert found == {True, False}


def test_two_kernels_that_are_alike_are_seldom_told_apart():
    """Of ten rounds each; without the pairs they never are where the clock drifts, however different they are."""
    draw = random.Random(4)

    def told(gap):
        rounds = [
            [[100 + 5 * n + draw.gauss(by, 1) for n in range(10)] for by in (gap, 0)] for _ in range(400)
        ]
        return sum(truth.told_apart(a, b) for a, b in rounds) / len(rounds)

    assert told(0) < 0.04
    assert told(3) > 0.95


# --- six kernels ---------------------------------------------------------------------------------------


def six():
    """The six, anew: one of them keeps what it has worked out."""
    return load_file(alone.SIX, "lab_six")


def test_a_careless_judge_calls_all_six_right():
    done = subprocess.run([sys.executable, alone.SIX], capture_output=True, text=True, check=True)
    assert [line.split(";")[0] for line in done.stdout.splitlines()[1:]] == [
        f"kernel_{number}: right" for number in range(1, 7)
    ]


@pytest.mark.parametrize("longest", [64, 72, 256])
def test_no_usual_row_of_whole_blocks_finds_anything(longest):
    """What a careless judge asks does not tell them apart, at any size of whole blocks."""
    draw, kernels = random.Random(longest), six()
    rows = [[draw.uniform(-1, 1) for _ in range(8 * blocks)] for blocks in (1, 9, 17, 33, 40, 130, 300)]
    for kernel in kernels.KERNELS:
        assert max(worst for worst, _, _ in kernels.tried(kernel, rows, 8, longest)) <= kernels.ALLOWED


@pytest.mark.parametrize("longest", [64, 72, 256])
def test_the_two_that_are_ported_are_right_on_any_row(longest):
    """They go through a short row once; a long one costs them two reads of it, or three."""
    draw, kernels = random.Random(longest), six()
    sizes = [1, 2, 7, 8, 9, longest - 1, longest, longest + 1, 4 * longest, 4 * longest + 1]
    rows = [[draw.choice([1, 30, 3e5, 1e38]) * draw.uniform(-1, 1) for _ in range(N)] for N in sizes]
    for number in (2, 5):
        found = kernels.tried(kernels.KERNELS[number - 1], rows, 8, longest)
        assert max(worst for worst, _, _ in found) < 1e-12
        passes = [(reads / N, writes / N) for (_, reads, writes), N in zip(found, sizes, strict=True)]
        assert passes == [(2 if number == 2 else 3, 1) if size > longest else (1, 1) for size in sizes]


def test_each_of_the_others_is_what_the_grader_calls_it():
    """The kinds follow from what is off and what is counted, over all that a student may hand in, drawn."""
    draw = random.Random(6)
    found = {number: set() for number in range(1, 7)}
    for _ in range(20):
        N = draw.choice([3, 8, 9, 64, 65, 256, 300])
        rows = [[draw.choice([0.5, 100]) * draw.choice([-1, 1, draw.random()]) for _ in range(N)]]
        rows.append([rows[0][0], *(draw.uniform(-9, 9) for _ in range(N - 2)), rows[0][-1]])
        if N > 256:
            rows.append([50.0] + [0.0] * (N - 1))
        for number in found:
            kernels = six()
            outcomes = kernels.tried(kernels.KERNELS[number - 1], rows, 8, 64)
            found[number] |= {word for word in alone.WORDS[1:] if alone.shows(word, outcomes, rows)}
    assert {number: words or {"right"} for number, words in found.items()} == {
        number: {word} for number, word in enumerate(alone.SORTED, start=1)
    }


@pytest.mark.parametrize("series", ["bold", "right_first"])
def test_the_files_that_were_ported_are_as_they_were(series):
    """What the port stands for: their limit and their block, and how often a long row is loaded and stored."""
    folder = ROOT / "proposals" / "softmax" / series
    text = (folder / "s1_r1.py.txt").read_text()
    about = tomllib.loads((folder / "about.toml").read_text())
    assert sha256(text.encode()).hexdigest() == about["files"]["s1_r1.py.txt"]
    assert "if N <= 32768:" in text
    assert f"_long[(M,)](x, y, N, BLOCK={4096 if series == 'bold' else 8192}" in text
    long = text.partition("def _long(")[2].partition("\ndef ")[0]
    assert long.count("tl.load(") == (2 if series == "bold" else 3)
    assert long.count("tl.store(") == 1


def test_nothing_but_nan_is_an_answer_that_was_never_written():
    kernels = six()

    def half(read, write, N, *_):
        for n in range(N // 2):
            write(n, read(n))

    ((worst, reads, writes),) = kernels.tried(half, [[1.0, 2.0]])
    assert isnan(worst)
    assert (reads, writes) == (1, 1)
    assert alone.is_off(worst)


# --- what is said --------------------------------------------------------------------------------------


class Given(Asked):
    """Answers that are given, whatever is asked."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def call(self, name, *given, **_):
        from course_labs.interactive_cases import _answer

        return _answer(Played(self.answers.pop(0), after=given))


@pytest.mark.parametrize(
    ("look", "given", "answer", "said"),
    [
        (truth.shares, (truth.TEN, 1), "0.4", "fast_p: expected a number, got '0.4'"),
        (truth.shares, (truth.TEN, 1), True, "fast_p: expected a number, got True"),
        (truth.shares, (truth.TEN, 1), truth.NAN, "expected 0.4, got nan"),
        (truth.best, (2, [[4, 1]]), [0.5], "best_of: expected a number, got [0.5]"),
        (truth.reached, (0.4, [[4, 1]]), 2.0, "tries_for: expected a whole number, got 2.0"),
        (truth.refused, ([1, 1, 1, 1], truth.CARD), 2, "impossible: expected True or False, got 2"),
        (truth.refused, ([1, 1, 1, 1], truth.CARD), None, "impossible: expected True or False, got None"),
        (truth.sides, (truth.side(), truth.side()), "none", "unequal: expected a list of names, got 'none'"),
        (truth.sides, (truth.side(), truth.side()), [None], "expected [], got [None]"),
        (truth.apart, ([1, 2], [1, 2]), "no", "told_apart: expected True or False, got 'no'"),
        (truth.needed, truth.DRIFT, True, "needed_to_tell_apart: expected a whole number, got True"),
        (alone.look_at, (1, 8, 64), None, "expected a word and a list of rows, got None"),
        (alone.look_at, (1, 8, 64), "wrong", "expected a word and a list of rows, got 'wrong'"),
        (alone.look_at, (1, 8, 64), ["wrong"], "expected a word and a list of rows, got ['wrong']"),
        (alone.look_at, (1, 8, 64), [["wrong"], []], "the word is \"['wrong']\""),
        (alone.look_at, (1, 8, 64), ["wrong", [3]], "row 0 is no list"),
        (alone.look_at, (1, 8, 64), ["wrong", [[1], []]], "row 1 has 0 numbers"),
        (alone.look_at, (1, 8, 64), ["wrong", [[True]]], "row 0 holds what is no number"),
        (alone.look_at, (1, 8, 64), ["wrong", [[1e39]]], "not finite, or too large"),
        (alone.look_at, (1, 8, 64), ["wrong", [[10**400]]], "not finite, or too large"),
        (alone.look_at, (1, 8, 64), ["wrong", [[truth.NAN]]], "not finite, or too large"),
        (alone.look_at, (1, 8, 64), ["wrong", [[1.0]] * 9], "9 rows"),
        (alone.look_at, (1, 8, 64), ["wrong", []], "kernel_1, wrong? there is no row"),
        (alone.look_at, (2, 8, 64), ["wrong", [[1.0]]], "an error of 0, 1 read, 1 written"),
        (alone.look_at, (6, 8, 64), ["slow", [[1.0]]], "an error of 0, 3 read, 1 written"),
    ],
)
def test_what_is_wrong_is_said(look, given, answer, said):
    with pytest.raises(Slip) as slip:
        look(Given(answer), *given)
    assert said in slip.value.why
    assert "\n" not in slip.value.why


def test_a_slip_is_named_only_where_it_is_one():
    """What a slip gives and what is right may be the same; then nothing is said of it."""
    with pytest.raises(Slip) as slip:
        truth.look(Given(0.5), "fast_p", due=0.4, slips={"no": 0.4, "yes": 0.5})
    assert slip.value.next == "yes"
    with pytest.raises(Slip) as slip:
        truth.look(Given(True), "told_apart", due=False, slips={"no": False, "yes": True})
    assert slip.value.next == "yes"


def test_what_is_drawn_is_far_from_a_border():
    draw = random.Random(11)
    for _ in range(100):
        a, b = truth.drawn_rounds(draw)
        mean, spread = truth.differences(a, b)
        for by in (1 - 1e-7, 1 + 1e-7):
            assert truth.rounds_for(mean * by, spread) == truth.rounds_for(mean, spread)


def test_an_error_gets_advice_where_it_is_the_one_that_is_meant():
    for said, advice in (
        ("line 3: ZeroDivisionError: division by zero", "yes"),
        ("line 3: NameError: name 'x'", ""),
    ):
        assert truth.advised(Broken("crashed", said), "yes", "ValueError", "ZeroDivisionError").next == advice
