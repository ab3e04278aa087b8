"""Speculative decoding on the card: the trained pair writes what the small model alone writes, but for near things."""

import dataclasses

import pytest
import torch

from course_kernels.speculative_sampling import k01_in_torch, k02_one_launch
from course_models import bench, corpus, pretrained, verify_bench
from course_models.byte_tokens import encode
from course_models.config import LLAMA_8B
from course_models.serving.compare_outputs import agreement
from course_models.serving.request import Request
from course_models.speculative import Pair, accept, acceptance, verify

GROUPS = ("speculative",)

# As in test_serving.py: two steps of a logit of 16 to 32 in bfloat16; in float32 sums of a thousand products.
NEAR = {torch.bfloat16: 0.25, torch.float32: 1e-3}
RULES = (accept, k01_in_torch.speculative_sampling, k02_one_launch.speculative_sampling)


@pytest.fixture(scope="module", params=NEAR, ids=str)
def both(request):
    return [pretrained.load(name, dtype=request.param, device="cuda") for name in ("small", "draft")]


@pytest.fixture(scope="module")
def start():
    """Text that neither has learnt."""
    rows = [encode(text)[:64] for text in corpus.load().held_out]
    return torch.tensor([row for row in rows if len(row) == 64][:16], device="cuda")


def written(pair, start, most):
    found = [[] for _ in start]
    for step in pair.write(start, most):
        for one, new in zip(found, step, strict=True):
            one += new
    return found


@pytest.mark.parametrize("K", [1, 4, 8])
def test_greedy_it_writes_what_the_model_alone_writes_but_for_near_things(both, start, K, record_property):
    pair = Pair(*both, K, rule=k02_one_launch.speculative_sampling)
    found = [
        agreement(both[0], Request(row, 100), new)
        for row, new in zip(start.tolist(), written(pair, start, 100), strict=True)
    ]
    gaps = [one.gap for one in found if one.gap is not None]
    record_property("other_answers", len(gaps))
    record_property("widest_gap", max(gaps, default=0.0))
    record_property("acceptance", pair.acceptance)

    assert all(gap < NEAR[both[0].dtype] for gap in gaps)
    assert len(gaps) < len(found) / 2
    assert 0.4 < pair.acceptance < 0.95


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_whoever_accepts_the_same_is_written(both, start, temperature):
    runs = [written(Pair(*both, 4, temperature, 3, rule), start, 60) for rule in RULES]
    same = [sum(one == other for one, other in zip(runs[0], run, strict=True)) for run in runs]

    # A number at the very edge of a share may fall to either side, and then the rest is another text.
    assert all(count >= len(start) - 1 for count in same)


def test_a_run_accepts_as_often_as_the_distributions_say(both, start):
    """Drawn text is of the target's own kind, so that its own places are asked, and not those of the prompts."""
    pair = Pair(*both, 1, 1.0, rule=k02_one_launch.speculative_sampling)
    new = torch.tensor(written(pair, start, 200), device="cuda")
    expected = float(acceptance(*both, torch.cat((start, new), 1), 1.0)[:, 63:-1].mean())

    assert pair.acceptance == pytest.approx(expected, abs=0.05)


def test_a_step_is_captured_whole():
    """Draft, verification and acceptance in one graph: nothing in it asks the host."""
    models = [pretrained.load(name, device="cuda") for name in ("small", "draft")]
    pair = Pair(*models, 4, rule=k02_one_launch.speculative_sampling)
    last = torch.full((8,), 100, device="cuda")
    caches = [model.cache(8, 40) for model in models]
    generator = torch.Generator("cuda").manual_seed(0)

    def step():
        for cache in caches:
            cache.reset(20)
        return pair.step(last, *caches, generator)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            expected = [x.clone() for x in step()]
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        found = step()
    graph.replay()

    assert all(map(torch.equal, expected, found))


def test_a_verification_of_the_8b_shape_is_measured():
    """Of two of its layers, which is enough for a wrong row to show."""
    model = bench.subject(dataclasses.replace(LLAMA_8B, layers=2))
    found = verify_bench.steps(model, (1, 8), (1, 5), seconds=0.02)

    assert set(found) == {(1, 1), (1, 5), (8, 1), (8, 5)}
    assert all(one.error < bench.MAX_ERROR["bfloat16"] for one in found.values())


def test_rows_of_a_graph_are_those_of_no_graph():
    model = bench.subject(dataclasses.replace(LLAMA_8B, layers=2))
    cache = bench.filled_cache(model, 3, 100, 5)
    tokens = torch.randint(LLAMA_8B.vocab, (3, 5), device="cuda")
    replayed = verify_bench.verifying(model, cache, 100, 5)(tokens)
    cache.reset(100)

    assert torch.equal(replayed, verify(model, tokens, cache))
