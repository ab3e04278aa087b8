"""Training on two cards of one host: one step in every way, memory near its formula. One card collects nothing."""

from __future__ import annotations

import pytest
import torch

from course_models.config import Config, parameters
from course_models.two_cards.together import train
from course_models.two_cards.ways import WAYS

GROUPS = ("two_card_training",)
GPUS = 2
__test__ = torch.cuda.device_count() >= GPUS

# A tenth of the pages' model: its weights are still most of what a step with few tokens needs.
TENTH = Config(
    layers=12, width=512, heads=8, kv_heads=8, head_dim=64, hidden=1536, vocab=2048, max_tokens=256
)


@pytest.fixture(scope="module")
def trained():
    return train(WAYS, [(2, 256)], TENTH, rounds=3)


def test_every_way_makes_the_step_of_one_card_but_the_one_that_sends_nothing(trained):
    errors = dict(trained.off)

    assert errors.pop("alone") > 1e-4
    assert max(errors.values()) < 1e-9


def test_what_is_sent_is_what_the_formulas_say(trained):
    N = parameters(TENTH)
    sent = {way: dict(kept.sent_bytes) for way, kept in trained.kept.items()}

    assert sent["alone"] == {}
    assert sent["by_hand"] == sent["ddp"] == {"all_reduce": 2 * N}
    assert sent["zero2"] == {"all_gather": N, "reduce_scatter": N}
    assert sent["zero3"] == {"all_gather": 2 * N, "reduce_scatter": N}


def test_what_is_held_after_a_step_is_the_sum_of_its_tensors_and_little_more(trained):
    for way, kept in trained.kept.items():
        assert kept.state_bytes <= kept.held_bytes <= 1.1 * kept.state_bytes, way
        assert kept.held_bytes <= kept.peak_bytes, way
    peaks = {way: kept.peak_bytes for way, kept in trained.kept.items()}
    assert max(peaks["zero2"], peaks["zero3"]) < 0.8 * peaks["ddp"]


def test_every_way_has_its_times(trained):
    (of_shape,) = trained.us
    assert {way: len(times) for way, times in of_shape.items()} == dict.fromkeys(WAYS, 3)
    assert all(min(times) > 0 for times in of_shape.values())
