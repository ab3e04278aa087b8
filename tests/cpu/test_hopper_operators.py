"""The operators that our Hopper kernels compute: who multiplies what, in which layout, and what is refused."""

from __future__ import annotations

import re
import weakref
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from course_kernels.gemm.launch_cache import sizes_of
from course_models import bench, hopper_operators, operators, prefill_graph
from course_models.config import Config
from course_models.hopper_operators import (
    LEAST_ROWS,
    PREFILL_SWAPS,
    is_ours,
    tuned_linear,
    wgmma_prefill_attention,
)
from course_models.prefill_graph import CapturedPrefill

pytestmark = pytest.mark.kept

SIZES = Config(layers=2, width=64, heads=4, kv_heads=2, head_dim=64, hidden=96, vocab=104, max_tokens=512)


@pytest.fixture
def calls(monkeypatch):
    """Stand-ins for both launches: they look at what the launchers look at, and compute by torch."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # tensors on the CPU are welcome
    seen = []

    def gemm(a, b):
        sizes_of(a, b, transposed=not b.is_contiguous())
        seen.append(("gemm", tuple(a.shape), tuple(b.shape), b.stride()))
        return (a.double() @ b.double()).to(a.dtype)

    def attention(q, k, v, *, causal=False):
        assert causal
        assert all(stride % 8 == 0 for t in (q, k, v) for stride in t.stride()[:-1])
        seen.append(("attention", tuple(q.shape), tuple(k.shape), k.stride()))
        return operators.prefill_attention(q, k, v)

    monkeypatch.setattr(hopper_operators, "k14_tuned", SimpleNamespace(gemm=gemm))
    monkeypatch.setattr(hopper_operators, "k06_wgmma", SimpleNamespace(attention=attention))
    return seen


def drawn(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("rows", [(LEAST_ROWS,), (2, LEAST_ROWS // 2), (3, 100)])
def test_many_rows_are_multiplied_by_our_kernel_with_the_weight_as_it_lies(calls, rows):
    x, weight = drawn(*rows, 64), drawn(24, 64, seed=1)
    found = tuned_linear(x, weight)
    assert found.shape == (*rows, 24)
    assert torch.allclose(found.float(), functional.linear(x.float(), weight.float()), atol=0.1)
    assert calls == [("gemm", (x[..., 0].numel(), 64), (64, 24), (1, 64))]


def shifted(t):
    """The same numbers, two bytes further on."""
    room = torch.empty(t.numel() + 1, dtype=t.dtype)[1:].view(t.shape)
    return room.copy_(t)


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (drawn(LEAST_ROWS - 1, 64), drawn(24, 64)),
        (drawn(1, 1, 64), drawn(24, 64)),
        (drawn(200, 64), drawn(20, 64)),
        (drawn(200, 60), drawn(24, 60)),
        (drawn(200, 64, dtype=torch.float32), drawn(24, 64, dtype=torch.float32)),
        (drawn(64, 200).t(), drawn(24, 64)),
        (drawn(200, 64), drawn(64, 24).t()),
        (shifted(drawn(200, 64)), drawn(24, 64)),
        (drawn(200, 64), shifted(drawn(24, 64))),
    ],
    ids=[
        "a row short",
        "one row",
        "N",
        "K",
        "float32",
        "x turned",
        "weight turned",
        "x shifted",
        "weight shifted",
    ],
)
def test_all_else_is_torchs_work(calls, x, weight):
    assert not is_ours(x, weight)
    assert torch.equal(tuned_linear(x, weight), functional.linear(x, weight))
    assert calls == []


def test_no_gpu_is_refused_by_the_kernels_and_not_passed_over(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(ValueError, match="a: expected a"):
        tuned_linear(drawn(200, 64), drawn(24, 64))
    q, k = drawn(1, 4, 9, 64), drawn(1, 2, 9, 64)
    with pytest.raises(RuntimeError, match=re.escape("q: expected a Hopper GPU")):
        wgmma_prefill_attention(q, k, k)
    with pytest.raises(TypeError, match="q: expected bfloat16 or float16"):
        wgmma_prefill_attention(q.float(), k.float(), k.float())
    with pytest.raises(ValueError, match="expected at least as many keys as queries, got 8 and 9"):
        wgmma_prefill_attention(q, k[:, :, :8], k[:, :, :8])
    with pytest.raises(
        RuntimeError, match="graph: expected tokens on a GPU, got cpu: call the function itself"
    ):
        CapturedPrefill(lambda tokens: tokens, torch.zeros(1, 4, dtype=torch.int64))


def test_the_swaps_differ_in_what_their_names_say():
    library = bench.LIBRARY
    ours = {"linear": tuned_linear, "prefill_attention": wgmma_prefill_attention}
    only = {"our_multiply": ("linear",), "our_attention": ("prefill_attention",), "both": tuple(ours)}
    for name, swap in PREFILL_SWAPS.items():
        wanted = replace(library, **{part: ours[part] for part in only[name]})
        assert replace(swap, decode_attention=library.decode_attention) == wanted, name


@pytest.mark.parametrize("name", PREFILL_SWAPS)
def test_a_prefill_with_a_swap_is_the_models(calls, name):
    model = bench.subject(SIZES, device="cpu")
    tokens = torch.randint(SIZES.vocab, (2, 80), generator=torch.Generator().manual_seed(3))
    plain = bench.prefilling(model)(tokens)
    swapped = bench.prefilling(model.with_operators(PREFILL_SWAPS[name]))(tokens)
    assert (swapped - plain).abs().max() < 0.1 * plain.abs().max()
    kinds = [kind for kind, *_ in calls]
    # Seven products of a layer have 160 rows; the head has one for each sequence, which is torch's.
    assert kinds.count("gemm") == (0 if name == "our_attention" else 7 * SIZES.layers)
    assert kinds.count("attention") == (0 if name == "our_multiply" else SIZES.layers)


def test_keys_before_the_first_query_are_met_where_they_lie(calls):
    model = bench.subject(SIZES, device="cpu").with_operators(PREFILL_SWAPS["our_attention"])
    tokens = torch.randint(SIZES.vocab, (1, 24), generator=torch.Generator().manual_seed(4))
    cache = model.cache(1, 32)
    model.prefill(tokens[:, :16], cache)
    after = model.prefill(tokens[:, 16:], cache)
    at_once = model.prefill(tokens, model.cache(1, 32))
    assert (after - at_once).abs().max() < 0.1 * at_once.abs().max()
    assert calls[-SIZES.layers - 1][1:3] == ((1, 4, 8, 64), (1, 2, 24, 64))
    assert calls[-SIZES.layers - 1][3] == (2 * 32 * 64, 32 * 64, 64, 1)  # a view of the cache, not a copy


class Captured:
    """What a CUDA graph does, without one: a replay calls what was captured once more, into the same memory."""

    def __init__(self):
        self.again = None

    def replay(self):
        self.again()


def test_a_captured_prefill_reads_new_tokens_and_gives_logits_that_stay(monkeypatch):
    weights, made = torch.randn(10, 6), []

    def function(tokens):
        logits = weights[tokens].sum(1)
        if made:
            made[0].copy_(logits)
            return made[0]
        return logits

    class Capture:
        def __init__(self, graph):
            self.graph = graph

        def __enter__(self):
            made.append(torch.empty(1, 6))

        def __exit__(self, *_):
            tokens = graph_tokens[0]
            self.graph.again = lambda: function(tokens)

    graph_tokens = []
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(wait_stream=lambda other: None))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(wait_stream=lambda other: None))
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: torch.no_grad())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Captured)
    monkeypatch.setattr(torch.cuda, "graph", Capture)

    class OnTheGpu(torch.Tensor):
        device = torch.device("cuda")

        def clone(self):
            copy = torch.Tensor.clone(self.as_subclass(torch.Tensor))
            graph_tokens.append(copy)
            return copy

    first = torch.tensor([[1, 2, 3]])
    graph = CapturedPrefill(function, torch.zeros(1, 3, dtype=torch.int64).as_subclass(OnTheGpu))
    one = graph(first)
    kept = one.clone()
    two = graph(torch.tensor([[4, 5, 6]]))
    assert torch.allclose(one, weights[first].sum(1))
    assert torch.equal(one, kept)
    assert not torch.equal(one, two)
    with pytest.raises(ValueError, match=re.escape("tokens: expected shape (1, 3), got (1, 2)")):
        graph(first[:, :2])


def test_a_graph_keeps_alive_what_it_writes_to(monkeypatch):
    """It knows addresses alone: a cache that nobody holds is given back, and the replay writes where others are."""
    monkeypatch.setattr(prefill_graph, "captured", lambda call: (None, call()))

    class OnTheGpu(torch.Tensor):
        device = torch.device("cuda")

        def clone(self):
            return torch.zeros(1, 3)

    class Prefill:
        def __call__(self, tokens):
            return tokens

    prefill = Prefill()
    alive = weakref.ref(prefill)
    graph = CapturedPrefill(prefill, torch.zeros(1, 3).as_subclass(OnTheGpu))
    del prefill
    assert alive() is not None, f"{graph} forgot the function, and its caches with it"
