"""Attention for Hopper on the card: any heads, lengths, masks; held against float64 and against the library's error."""

import random

import pytest
import torch

from course_kernels.attention import k06_wgmma, library, truth
from course_kernels.attention.k06_wgmma import Tile, attend
from course_kernels.attention.problem import MAX_ERROR
from course_kernels.problem import worst_error

GROUPS = ("attention",)
pytestmark = pytest.mark.skipif(
    torch.cuda.get_device_capability() != (9, 0), reason="made for Hopper (compute capability 9.0)"
)
ULP = {
    torch.bfloat16: 2.0**-8,
    torch.float16: 2.0**-11,
}  # of a number between 1 and 2, half of it is rounding


def drawn(shape, KV, Nk, dtype, seed):
    B, H, Nq, D = shape
    draw = torch.Generator("cuda").manual_seed(seed)
    shapes = ((B, H, Nq, D), (B, KV, Nk, D), (B, KV, Nk, D))
    return tuple(torch.randn(s, generator=draw, device="cuda").to(dtype) for s in shapes)


def holds(found, true, dtype):
    (o, lse), (true_o, true_lse) = found, true
    assert worst_error(o, true_o, rows_apart=True) <= MAX_ERROR[str(dtype).removeprefix("torch.")]
    assert torch.equal(lse.isinf(), true_lse.isinf())
    assert not o[true_lse.isinf()].any()
    there = true_lse.isfinite()
    torch.testing.assert_close(lse[there].double(), true_lse[there], rtol=1e-3, atol=1e-3)


def any_arguments(seed):
    """Heads, lengths and a mask, as likely short as long."""
    draw = random.Random(seed)
    KV = draw.choice([1, 2, 3])
    H = KV * draw.choice([1, 2, 4, 5])
    Nq, Nk = (int(2 ** draw.uniform(0, 11)) for _ in range(2))
    causal = draw.random() < 0.5
    window = None
    if draw.random() < 0.4:
        window = (int(2 ** draw.uniform(0, 10)), 0 if causal else int(2 ** draw.uniform(0, 10)))
    D, dtype = draw.choice(k06_wgmma.SIZES), draw.choice([torch.bfloat16, torch.float16])
    return (draw.choice([1, 2]), H, Nq, D), KV, Nk, dtype, {"causal": causal, "window": window}


@pytest.mark.parametrize("seed", range(60))
def test_any_arguments(seed):
    shape, KV, Nk, dtype, how = any_arguments(seed)
    q, k, v = drawn(shape, KV, Nk, dtype, seed)

    holds(attend(q, k, v, **how), truth.attend(q, k, v, **how), dtype)


@pytest.mark.parametrize("seed", range(12))
def test_any_sequences_one_behind_the_other(seed):
    (_, H, _, D), KV, _, dtype, how = any_arguments(seed)
    draw = random.Random(seed)
    lengths, keys = ([int(2 ** draw.uniform(0, 10)) - 1 for _ in range(draw.choice([1, 3, 8]))] for _ in "qk")
    keys = (keys * 8)[: len(lengths)]
    if sum(keys) == 0 or sum(lengths) == 0:
        lengths[0] = keys[0] = 5
    q, k, v = drawn((1, H, sum(lengths), D), KV, sum(keys), dtype, seed)
    begins = [
        torch.tensor([sum(of[:i]) for i in range(len(of) + 1)], dtype=torch.int32, device="cuda")
        for of in (lengths, keys)
    ]
    found = attend(q, k, v, begins=(*begins, max(lengths), max(keys)), **how)

    holds(found, truth.attend_packed(q, k, v, *begins, **how), dtype)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("kind", ["normal", "large scores", "equal scores"])
def test_no_less_exact_than_the_library(kind, D, causal):
    q, k, v = drawn((1, 4, 2048, D), 4, 2048, torch.bfloat16, 0)
    if kind == "large scores":
        q = (q * 40 / (q.double() @ k.double().transpose(-1, -2) / D**0.5).abs().max()).bfloat16()
    if kind == "equal scores":
        q = torch.zeros_like(q)
    true, _ = truth.attend(q, k, v, causal=causal)
    ours, theirs = (
        (found.double() - true).abs()
        for found in (attend(q, k, v, causal=causal)[0], library.sdpa_flash(q, k, v, causal=causal))
    )
    one = ULP[torch.bfloat16] * true.abs().max()

    assert ours.max() <= max(1.25 * theirs.max(), one)


IDEAS = [
    (64, Tile(consumers=3, block_n=128, stages=4, by_hand=4)),
    (64, Tile(consumers=3, block_n=128, stages=2, turns=False, slack=0)),
    (64, Tile(consumers=2, block_n=192, stages=2)),
    (64, Tile(consumers=4, block_n=64, stages=4, by_hand=2)),
    (64, Tile(consumers=3, block_n=128, stages=4, asks=False)),
    (128, Tile(consumers=2, block_n=128, stages=2, overlap=False)),
    (128, Tile(consumers=2, block_n=128, stages=2, turns=False)),
    (128, Tile(consumers=2, block_n=176, stages=2, own_place=False)),
    (128, Tile(consumers=2, block_n=128, stages=2, cluster=2)),
    (64, Tile(consumers=3, block_n=128, stages=4, cluster=2)),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("D", "tile"), IDEAS)
def test_every_idea_can_be_left_out(D, tile, causal):
    q, k, v = drawn((2, 3, 1500, D), 3, 1500, torch.bfloat16, 0)

    holds(attend(q, k, v, causal=causal, tile=tile), truth.attend(q, k, v, causal=causal), torch.bfloat16)


def test_who_asks_for_work_is_alone_with_his_counter():
    """Two streams at once, more work than blocks; and a CUDA graph, which plays the same call again and again."""
    q, k, v = drawn((2, 16, 1500, 64), 16, 1500, torch.bfloat16, 0)
    first, _ = attend(q, k, v, causal=True)
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    found = []
    for _ in range(50):
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(attend(q, k, v, causal=True)[0])
    torch.cuda.synchronize()
    assert all(torch.equal(o, first) for o in found)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        again, _ = attend(q, k, v, causal=True)
    for _ in range(20):
        again.zero_()
        graph.replay()
        assert torch.equal(again, first)


@pytest.mark.parametrize(("D", "causal"), [(64, True), (128, False)])
def test_thousands_of_calls_end_and_give_the_same_bits(D, causal):
    q, k, v = drawn((2, 8, 700, D), 8, 700, torch.bfloat16, 0)
    first = attend(q, k, v, causal=causal)[0]
    for _ in range(5000):
        last = attend(q, k, v, causal=causal)[0]

    assert torch.equal(last, first)
