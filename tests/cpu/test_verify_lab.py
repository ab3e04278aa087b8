"""The lab of drafted words: a right answer may be written otherwise; what is right brings about the target's words."""

import random
from collections import Counter
from itertools import product
from math import prod
from pathlib import Path

import pytest

from course_labs.interactive_cases import Asked, Slip, grade
from course_labs.lab import find_lab, load_file
from course_labs.protocol.messages import Played

LAB = find_lab(Path(__file__).parents[2], "verify")
truth = load_file(LAB.folder / "truth.py", "truth")
alone = load_file(LAB.folder / "alone.py", "alone")

P, Q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.4, 0.1]
ROUNDS = 20_000
# Chi-square with three degrees of freedom: a right rule is past it once in a million seeds; this one is fixed.
FAR = 30.7

# Functions written in another way, by the names that they replace.
OTHERWISE = """

from itertools import accumulate
from bisect import bisect_right
from statistics import fmean


def gained(p, draws):
    return next((n for n, draw in enumerate(draws, 1) if not draw < p), len(draws) + 1)


def mean_gained(p, rounds):
    return fmean(gained(p, one) for one in rounds)


def powers(p, k):
    return k + 1 if p == 1 else (1 - p ** (k + 1)) / (1 - p)


def accepts(p, q, word, u):
    return int(q[word] * u < p[word])


def acceptance(p, q):
    return 1 - sum(abs(a - b) for a, b in zip(p, q)) / 2


def residual(p, q):
    kept = 1 - acceptance(p, q)
    return tuple((a - b if a > b else 0) / kept for a, b in zip(p, q))


def pick(weights, u):
    sums = list(accumulate(weights))
    at = bisect_right(sums, u)
    while at == len(sums) or not weights[at]:
        at -= 1
    return at


def words(p, q, rounds):
    return tuple(one(p, q, *draws) for draws in rounds)


def one(p, q, draft, keep, again):
    return verify([p, p], [q], [pick(q, draft)], [keep], again)[0]


def verify(ps, qs, drafted, draws, u):
    if not drafted:
        return [pick(ps[0], u)]
    if accepts(ps[0], qs[0], drafted[0], draws[0]):
        return drafted[:1] + verify(ps[1:], qs[1:], drafted[1:], draws[1:], u)
    return [pick(residual(ps[0], qs[0]), u)]


def several(p, q, drafted, draws, u):
    if not drafted:
        return pick(p, u)
    if accepts(p, q, drafted[0], draws[0]):
        return drafted[0]
    return several(residual(p, q), q, drafted[1:], draws[1:], u)
"""
IN_NUMPY = """

import numpy as np


def gained(p, draws):
    return np.cumprod(np.array(draws, dtype=float) < p).sum() + 1


def mean_gained(p, rounds):
    return 1 + np.cumprod(np.array(rounds) < p, axis=1).sum(axis=1).mean()


def powers(p, k):
    return np.power(float(p), np.arange(k + 1)).sum()


def accepts(p, q, word, u):
    return np.array(u) * q[word] < p[word]


def acceptance(p, q):
    return np.minimum(p, q).sum()


def residual(p, q):
    left = np.maximum(np.array(p) - q, 0)
    return left / left.sum()


def pick(weights, u):
    weights = np.array(weights)
    return min(np.searchsorted(np.cumsum(weights), u, side="right"), np.flatnonzero(weights)[-1])


def words(p, q, rounds):
    return np.array([one(p, q, *draws) for draws in rounds])


def one(p, q, draft, keep, again):
    word = pick(q, draft)
    return word if accepts(p, q, word, keep) else pick(residual(p, q), again)
"""


@pytest.mark.kept(LAB.folder, but=["labs/*"])
@pytest.mark.parametrize("otherwise", [OTHERWISE, IN_NUMPY], ids=["python", "numpy"])
def test_a_right_answer_may_be_written_otherwise(tmp_path, otherwise):
    file = tmp_path / "verify.py"
    file.write_text(LAB.solution("python").read_text() + otherwise)
    (found,) = grade(LAB, [file], environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert found.text.startswith("right: correct in all "), found.text
    assert found.text.splitlines()[-1].startswith("alone: right, and the lab is done: ")


# --- what is right brings about the target -----------------------------------------------------------


def chi_square(found, due):
    """How far counts are from what a distribution makes of them."""
    total = sum(found.values())
    return sum((found[word] - total * part) ** 2 / (total * part) for word, part in enumerate(due))


def apart(rule, places=3):
    """Chi-square of a rule's words over many rounds of so many draws."""
    draw = random.Random(7)
    return chi_square(Counter(rule(P, Q, [draw.random() for _ in range(places)]) for _ in range(ROUNDS)), P)


def with_rest(rest):
    """A rule whose refused word is replaced by one from other weights."""

    def rule(p, q, draws):
        word = truth.pick(q, draws[0])
        return word if truth.keeps(p, q, word, draws[1]) else truth.pick(rest(p, q), draws[2])

    return rule


WRONG = {
    "redrawn from the target": with_rest(lambda p, q: p),
    "redrawn from the draft": with_rest(lambda p, q: q),
    "not divided by the sum": with_rest(lambda p, q: [max(a - b, 0) for a, b in zip(p, q, strict=True)]),
    "kept after a refusal": lambda p, q, draws: truth.pick(q, draws[0]),
    "the likeliest word": lambda p, q, draws: (
        3 if truth.pick(q, draws[0]) == 3 else truth.pick(truth.missing(p, q), draws[2])
    ),
    "q by p": lambda p, q, draws: (
        word
        if draws[1] * p[word := truth.pick(q, draws[0])] < q[word]
        else truth.pick(truth.missing(p, q), draws[2])
    ),
}


def test_a_word_comes_as_often_as_the_target_says():
    assert apart(truth.one_word) < FAR
    assert apart(with_rest(truth.missing)) < FAR


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_does_not(name):
    assert apart(WRONG[name]) > 3 * FAR


def test_kept_and_redrawn_add_up_to_the_target():
    """Without chance: what is kept of each word, and how often one is redrawn times what is redrawn."""
    draw = random.Random(3)
    for count in range(2, 9):
        p, q = truth.pair(draw, count)
        again = 1 - truth.overlap(p, q)
        for a, b, rest in zip(p, q, truth.missing(p, q), strict=True):
            assert min(a, b) + again * rest == pytest.approx(a, abs=1e-12)


def test_every_place_of_a_verification_has_its_own_target():
    draw = random.Random(5)
    ps, qs = [P, P[::-1], [0.25] * 4], [Q, [0.25] * 4]
    firsts, seconds = Counter(), Counter()
    for _ in range(ROUNDS):
        drafted = [truth.pick(q, draw.random()) for q in qs]
        words = truth.words_of(ps, qs, drafted, [draw.random() for _ in qs], draw.random())
        assert 1 <= len(words) <= 3
        firsts[words[0]] += 1
        seconds.update(words[1:2])
    assert chi_square(firsts, ps[0]) < FAR
    assert chi_square(seconds, ps[1]) < FAR
    assert chi_square(seconds, ps[0]) > 3 * FAR


@pytest.mark.parametrize("many", [0, 1, 2, 3])
def test_several_drafts_bring_about_the_target_without_chance(many):
    """Over all drafts, each as often as it comes: what is kept of them, and what is drawn when all are refused."""
    wanted, found = alone.chain(P, Q, many), [0.0] * len(P)
    for drafted in product(range(len(P)), repeat=many):
        share = prod(Q[word] for word in drafted)
        for w, word in zip(wanted, drafted, strict=False):
            kept = min(1.0, w[word] / Q[word])
            found[word] += share * kept
            share *= 1 - kept
        for word, part in enumerate(wanted[-1]):
            found[word] += share * part
    assert found == pytest.approx(P, abs=1e-12)


def place(p, q, draws, rule=alone.word_of):
    """The word of a place with two drafts."""
    drafted = [truth.pick(q, draw) for draw in draws[:2]]
    return rule(p, q, drafted, draws[2:4], draws[4])


def all_against_p(p, q, drafted, draws, u):
    kept = (word for word, draw in zip(drafted, draws, strict=True) if draw * q[word] < p[word])
    return next(kept, truth.pick(alone.chain(p, q, len(drafted))[-1], u))


def test_two_drafts_for_a_place_come_as_often_as_the_target_says():
    assert apart(place, 5) < FAR
    assert apart(lambda p, q, draws: place(p, q, draws, all_against_p), 5) > 3 * FAR
    assert apart(lambda p, q, draws: place(p, q, draws, alone.of_fewer), 5) > 2 * FAR


def test_what_is_drawn_is_far_from_where_a_word_changes():
    draw = random.Random(11)
    for _ in range(200):
        ps, qs, drafted, draws, u = truth.drawn_verification(draw)
        due = truth.words_of(ps, qs, drafted, draws, u)
        for by in (1 - 1e-10, 1 + 1e-10):
            assert truth.words_of(ps, qs, drafted, [one * by for one in draws], u * by) == due
        p, q, drafted, draws, u = alone.drawn(draw)
        due = alone.word_of(p, q, drafted, draws, u)
        for by in (1 - 1e-10, 1 + 1e-10):
            assert alone.word_of(p, q, drafted, [one * by for one in draws], u * by) == due


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
        (truth.one_round, (0.7, [0.2, 0.9]), 2.0, "gained: expected a whole number, got 2.0"),
        (truth.one_round, (0.7, [0.2, 0.9]), True, "gained: expected a whole number, got True"),
        (truth.a_sum, (0.5, 2), "1.75", "powers: expected a number, got '1.75'"),
        (truth.kept, (P, Q, 1, 0.5), 2, "accepts: expected True or False, got 2"),
        (truth.kept, (P, Q, 1, 0.5), "yes", "accepts: expected True or False, got 'yes'"),
        (truth.how_often, (P, Q), True, "acceptance: expected a number, got True"),
        (truth.left, (P, Q), [0.0, 0.25, 0.75], "expected [0, 0.25, 0, 0.75], got [0, 0.25, 0.75]"),
        (truth.left, (P, Q), [0.0, 0.25, 0.0, float("nan")], "got [0, 0.25, 0, nan]"),
        (truth.picked, (P, 0.95), 4, "pick([0.1, 0.2, 0.3, 0.4], 0.95): expected 3, got 4"),
        (truth.verified, ([P], [], [], [], 0.95), 3, "verify: expected a list of words, got 3"),
        (truth.verified, ([P], [], [], [], 0.95), [3, 3], "expected [3], got [3, 3]"),
    ],
)
def test_what_is_wrong_is_said(look, given, answer, said):
    with pytest.raises(Slip) as slip:
        look(Given(answer), *given)
    assert said in slip.value.why


def test_a_slip_is_named_only_where_it_is_one():
    """What a slip gives and what is right may be the same; then nothing is said of it."""
    with pytest.raises(Slip) as slip:
        truth.look(Given(5), "gained", due=4, slips={"yes": 5, "no": 4})
    assert slip.value.next == "yes"
    with pytest.raises(Slip) as slip:
        truth.look(Given(6), "gained", due=4, slips={"yes": 5, "no": 4})
    assert slip.value.next == ""
