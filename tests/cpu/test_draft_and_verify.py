"""The explorable of a drafted word: what it says comes out is what comes out when the rule is played."""

import math
import random

import pytest

from course_site.charts.explorables import draft_and_verify
from course_site.charts.explorables.draft_and_verify import RULES, THREE, comes_out, shares, tokens

TARGET, DRAFT = [0.5, 0.3, 0.2], [0.7, 0.2, 0.1]


def state(**turned):
    return {"target": [5, 3, 2], "draft": [7, 2, 1], "rule": "residual", "k": 4} | turned


def played(target, draft, rule, rng):
    """One drafted word: whether it passed, and the word that came out."""
    word = rng.choices(range(3), draft)[0]
    passes = {
        "keep": True,
        "likeliest": word == max(range(3), key=lambda each: target[each]),
        "residual": rng.random() < target[word] / draft[word],
        "target": rng.random() < target[word] / draft[word],
    }[rule]
    if passes:
        return True, word
    left = [max(p - q, 0) for p, q in zip(target, draft, strict=True)]
    return False, rng.choices(range(3), target if rule == "target" else left)[0]


@pytest.mark.parametrize("rule", RULES)
def test_what_comes_out_is_what_comes_out_when_it_is_played(rule):
    rng, runs = random.Random(rule), 40_000
    seen = [played(TARGET, DRAFT, rule, rng) for _ in range(runs)]
    passing, kept, late = comes_out(TARGET, DRAFT, rule)
    far = 5 * math.sqrt(0.25 / runs)  # five standard deviations at the most
    assert sum(passed for passed, _ in seen) / runs == pytest.approx(passing, abs=far)
    for word in range(3):
        found = sum(came == word for _, came in seen) / runs
        assert found == pytest.approx(kept[word] + late[word], abs=far)


def test_only_the_residual_gives_the_target():
    rng = random.Random(0)
    wrong = dict.fromkeys(RULES, 0)
    for _ in range(300):
        target, draft = ([rng.random() for _ in THREE] for _ in range(2))
        for rule in RULES:
            said = draft_and_verify.work(state(target=target, draft=draft, rule=rule), {}).says
            wrong[rule] += said[1] == "another"
    assert wrong["residual"] == 0
    assert min(wrong[rule] for rule in RULES if rule != "residual") > 250


def test_the_three_words_of_the_board():
    shown = draft_and_verify.work(state(), {})
    assert shown.says == ("passes", "exact")
    assert (shown.texts["passing"], shown.texts["tokens"]) == ("80", "3.36")
    assert [shown.marks[f"outs{i}"]["text"] for i in range(3)] == ["50", "30", "20"]


def test_tokens_of_a_verification_are_the_sum_of_powers():
    assert tokens(0.7, 4) == pytest.approx((1 - 0.7**5) / (1 - 0.7))
    assert (tokens(1.0, 4), tokens(0.0, 4)) == (5, 1)


@pytest.mark.parametrize("numbers", [[0, 0, 0], [1, -1, 1], [1e7, 1, 1], [math.nan, 1, 1]])
def test_what_is_no_distribution_draws_nothing(numbers):
    assert shares(numbers) is None
    shown = draft_and_verify.work(state(draft=numbers), {})
    assert shown.says == ("not_shares",)
    assert {mark.get("text", "") + mark.get("d", "") for mark in shown.marks.values()} == {""}


def test_words_that_never_and_words_that_always_pass():
    assert draft_and_verify.work(state(target=[1, 0, 0], draft=[0, 1, 1]), {}).says == ("never", "exact")
    assert draft_and_verify.work(state(draft=[5, 3, 2]), {}).says == ("always", "exact")
