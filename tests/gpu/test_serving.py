"""The engine on a card: eager and from graphs, it writes what the plain model writes, but for near things."""

import random

import pytest
import torch

from course_models import pretrained
from course_models.byte_tokens import BEGIN, encode
from course_models.serving.compare_outputs import agreement
from course_models.serving.engine import Engine
from course_models.serving.request import Request

GROUPS = ("serving",)

# Logits of 16 to 32 lie an eighth apart in bfloat16: two such steps. In float32 sums of a thousand products.
NEAR = {torch.bfloat16: 0.25, torch.float32: 1e-3}
TEXTS = (
    "def main(",
    "A list is",
    "The license of",
    "import os",
    "Return the",
    "class ",
    "if __name__",
    "This module",
)


@pytest.fixture(scope="module", params=NEAR, ids=str)
def model(request):
    return pretrained.load("small", dtype=request.param, device="cuda")


def requests(count):
    rng = random.Random(count)
    return [
        Request(encode(rng.choice(TEXTS) + " " * (i % 3)), rng.randint(1, 80), stops=frozenset({BEGIN}))
        for i in range(count)
    ]


def served(engine, asked):
    found = {engine.submit(one): [] for one in asked}
    while engine.schedule.running or engine.schedule.waiting:
        for written in engine.step():
            found[written.number].append(written.token)
    assert engine.schedule.pages.held == 0
    return list(found.values())


@pytest.mark.parametrize("graphs", [False, True], ids=["eager", "graphs"])
@pytest.mark.parametrize("how", [{}, {"pages": 24}, {"step_tokens": 11, "batch": 7}], ids=str)
def test_an_answer_is_the_plain_models_but_for_near_things(model, graphs, how, record_property):
    asked = requests(40)
    engine = Engine(model, graphs=graphs, **{"pages": 256, "batch": 20, **how})
    found = [agreement(model, *pair) for pair in zip(asked, served(engine, asked), strict=True)]
    gaps = [one.gap for one in found if one.gap is not None]
    record_property("other_answers", len(gaps))
    record_property("widest_gap", max(gaps, default=0.0))

    assert all(gap < NEAR[model.dtype] for gap in gaps)
    assert len(gaps) < len(asked) / 2
    if "pages" in how:
        assert engine.schedule.preempted


def test_two_runs_write_the_same(model):
    asked = [Request(one.prompt, one.most, 0.8, seed, one.stops) for seed, one in enumerate(requests(20))]

    assert served(Engine(model, graphs=True), asked) == served(Engine(model, graphs=True), asked)
