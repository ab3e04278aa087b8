"""Expert parallelism on two cards of one host: right in every way to travel. With one card nothing is collected."""

from __future__ import annotations

import pytest
import torch

from course_kernels.expert_parallel import replicated, rows
from course_kernels.expert_parallel.layer import ALLOWED, Layer, experts_of, tokens, truth
from course_kernels.expert_parallel.link import check_link, link_gb_per_s
from course_kernels.problem import worst_error
from course_kernels.two_cards.together import WAYS, CardsFailed, Case, check, link, race

GROUPS = ("expert_parallel",)
GPUS = 2
__test__ = torch.cuda.device_count() >= GPUS

SMALL = Layer(D=256, F=128, E=16, TOP_K=4)
MODEL = Layer(D=2048, F=768, E=128, TOP_K=8)
ODD = Layer(D=264, F=40, E=6, TOP_K=3)  # rows that are no multiple of a vector of eight times 32 threads
CASES = {
    "even": Case(SMALL, (100, 100)),
    "uneven": Case(SMALL, (1, 300)),
    "one token each": Case(SMALL, (1, 1), seed=2),
    "nothing travels": Case(SMALL, (64, 33), "home"),
    "everything travels": Case(SMALL, (64, 33), "away"),
    "all to the first card": Case(SMALL, (64, 33), "first"),
    "odd sizes": Case(ODD, (37, 5)),
    "as in a model": Case(MODEL, (1000, 777)),
    "a few tokens of a model": Case(MODEL, (3, 2)),
}


@pytest.fixture(scope="module")
def errors_of_all_cases():
    """All cases in one pair of processes: to start them takes longer than to ask."""
    return dict(zip(CASES, check(list(CASES.values())), strict=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_every_token_gets_what_one_card_would_say(errors_of_all_cases, name, way):
    assert errors_of_all_cases[name][way] <= 1


def test_a_race_has_stages_and_right_answers():
    (found,) = race([Case(SMALL, (200, 200), rounds=6)])

    assert set(found.us) == set(WAYS)
    assert all(len(times) == 6 and min(times) > 0 for times in found.us.values())
    assert set(found.stages_us) == {"by_choice", "by_card", "stored"}
    for way, stages in found.stages_us.items():
        # Each stage is that of the slower card, so together they are no shorter than a round.
        assert all(
            sum(parts) >= us * 0.999 for *parts, us in zip(*stages.values(), found.us[way], strict=True)
        )
    assert found.sent_rows["by_card"] <= 200 < found.sent_rows["by_choice"]
    assert all(0 < error <= 1 for error in found.errors.values())


def test_copies_arrive_and_no_clock_says_that_they_took_no_time():
    found = link(2**26, rounds=4)

    assert set(found) == {"one_way", "both_ways", "stores"}
    for name, times in found.items():
        check_link(name, 2**26, times, link_gb_per_s(torch.cuda.get_device_name()))


def test_a_case_that_cannot_be_ends_in_one_line():
    with pytest.raises(
        CardsFailed,
        # torch begins every line of an error in a process group with the rank
        match=r"^card \d: check ended with 1: (\[rank\d\]: )?ValueError: TOP_K: expected at most 8",
    ):
        check([Case(Layer(64, 32, 16, 9), (2, 2), "home")])


def test_the_kernels_at_the_sizes_of_a_model():
    experts = experts_of(MODEL, 0, 1, seed=1, device="cuda")
    inputs = tokens(MODEL, 2000, "even", 0, 1, seed=1, device="cuda")
    y = replicated.expert_parallel(*inputs, experts)

    assert worst_error(y, truth(MODEL, *inputs, seed=1)) <= ALLOWED


def test_rows_past_two_to_the_31():
    """The last row lies where 32 bits do not reach."""
    W, M = 4096, 2**31 // 4096 + 2
    target = torch.zeros(M, W, dtype=torch.bfloat16, device="cuda")
    source = torch.ones(1, W, dtype=torch.bfloat16, device="cuda")
    rows.place_rows(source, torch.tensor([M - 1], device="cuda"), target)
    out = torch.empty(1, W, dtype=torch.float32, device="cuda")
    rows.sum_rows(target, torch.tensor([[M - 1]], device="cuda"), out)

    assert (out == 1).all()
    assert not target[:-1].any()
