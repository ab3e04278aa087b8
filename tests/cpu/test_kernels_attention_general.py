"""General attention in the interpreter: arguments at random, rows that see nothing; the problem, the library."""

import re

import pytest
import torch

from course_judge.worker.interpreter import watched_memory
from course_kernels.attention_general import arguments, k01_teaching, library
from course_kernels.attention_general.problem import (
    PROBLEM,
    lengths_of,
    options,
    pairs_of,
    reference_with_lse,
    seen_by,
    tokens_of,
)
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept


def workload(dtype="float32", B=4, H=2, KV=1, N=60, D=64, **more):
    return Workload.of(dtype, B=B, H=H, KV=KV, N=N, D=D, **more)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def packed(lengths, H=2, KV=1, D=64, dtype=torch.float32, seed=0):
    """Inputs of these queries and keys."""
    generator = torch.Generator().manual_seed(seed)
    starts = torch.nn.functional.pad(torch.tensor(lengths).cumsum(0), (0, 0, 1, 0)).int()
    T, S = starts[-1].tolist()
    shapes = (T, H, D), (S, KV, D), (S, KV, D)
    tensors = (torch.randn(*shape, generator=generator).to(dtype) for shape in shapes)
    return (*tensors, *(starts[:, side].contiguous() for side in (0, 1)))


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_arguments_at_random(seed):
    draw = torch.Generator().manual_seed(seed)

    def number(least, most):
        return int(torch.randint(least, most + 1, (), generator=draw))

    lengths = [(number(0, 70), number(0, 70)) for _ in range(number(1, 4))] + [(number(1, 9), number(1, 9))]
    share, KV, D = number(1, 3), number(1, 2), (64, 96, 128, 256)[number(0, 3)]
    dtype = (torch.float16, torch.float32)[number(0, 1)]
    masks = {"causal": bool(number(0, 1)), "window": (None, number(0, 40))[number(0, 1)]}
    inputs = packed(lengths, share * KV, KV, D, dtype, seed)
    longest = max(queries for queries, _ in lengths) + number(0, 1) * 90
    with watched_memory(shuffle=seed) as memory:
        out, lse = k01_teaching.attention_general_with_lse(*inputs, longest=longest, **masks)
    truth, true_lse = reference_with_lse(*inputs, **masks)

    assert memory.findings == []
    assert out.dtype is dtype
    assert lse.dtype is torch.float32
    allowed = PROBLEM.max_error(workload(str(dtype).removeprefix("torch.")))
    assert worst_error(out, truth, rows_apart=True) <= allowed
    assert torch.equal(lse.isinf(), true_lse.isinf())
    torch.testing.assert_close(lse.double(), true_lse, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("masks", [{}, {"causal": True}, {"causal": True, "W": 7}, {"W": 20}], ids=str)
def test_the_whole_check(masks):
    w = workload("float16", B=6, N=40, **masks)

    assert checked_error(k01_teaching, w, device="cpu") <= PROBLEM.max_error(w)


@pytest.mark.parametrize(("block_m", "block_n"), [(16, 64), (64, 16), (32, 32)])
def test_masks_may_be_cut_anywhere(block_m, block_n):
    inputs, masks = packed([(90, 70), (40, 75)]), {"causal": True, "window": 21}
    tile = k01_teaching.Tile(block_m, block_n, warps=4, stages=1)
    out, _ = k01_teaching.attention_general_with_lse(*inputs, longest=90, **masks, tile=tile)

    assert worst_error(out, reference_with_lse(*inputs, **masks)[0], rows_apart=True) <= 2.0**-15


@pytest.mark.parametrize("window", [None, 16, 17])
def test_no_key_at_the_edge_of_a_step_is_left_out(window):
    """The last key that a block sees begins a step of its own, or the first one ends one."""
    inputs, masks = packed([(48, 48), (32, 33), (16, 17)]), {"causal": True, "window": window}
    tile = k01_teaching.Tile(16, 16, warps=4, stages=1)
    out, _ = k01_teaching.attention_general_with_lse(*inputs, longest=48, **masks, tile=tile)

    assert worst_error(out, reference_with_lse(*inputs, **masks)[0], rows_apart=True) <= 2.0**-15


def test_a_query_that_sees_no_key_is_answered_by_zeros():
    q, k, v, *starts = packed([(5, 3), (4, 0), (2, 2)])
    out, lse = k01_teaching.attention_general_with_lse(q, k, v, *starts, longest=5, causal=True)
    nothing = torch.tensor([True] * 2 + [False] * 3 + [True] * 4 + [False] * 2)

    assert not out[nothing].any()
    assert (out[~nothing] != 0).all()
    assert torch.equal(lse.isneginf(), nothing.expand(2, -1))
    assert torch.equal(out[2], v[0].expand(2, -1))  # the third query stands at the first key


def test_the_last_query_stands_at_the_last_key():
    q, k, v, *starts = packed([(3, 9)])
    out = k01_teaching.attention_general(q, k, v, *starts, longest=3, causal=True)
    k[7:], v[7:] = 9.0, -9.0
    after = k01_teaching.attention_general(q, k, v, *starts, longest=3, causal=True)

    torch.testing.assert_close(out[0], after[0])  # it stands at key 6
    assert not torch.allclose(out[1], after[1])


def test_a_window_of_0_leaves_a_causal_query_the_key_that_it_stands_at():
    q, k, v, *starts = packed([(20, 20)], H=2, KV=2)

    assert torch.equal(k01_teaching.attention_general(q, k, v, *starts, longest=20, causal=True, window=0), v)


def test_sequences_and_heads_do_not_mix():
    q, k, v, *starts = packed([(30, 40), (20, 25)], H=4, KV=2)
    out = k01_teaching.attention_general(q, k, v, *starts, longest=30)
    second = q[30:, 2:].contiguous(), k[40:, 1:].contiguous(), v[40:, 1:].contiguous()
    alone = (torch.tensor([0, n], dtype=torch.int32) for n in (20, 25))

    torch.testing.assert_close(
        out[30:, 2:], k01_teaching.attention_general(*second, *alone, longest=20), rtol=1e-5, atol=1e-6
    )


def test_large_scores_do_not_overflow():
    q, k, v, *starts = packed([(50, 60)], dtype=torch.float16)
    inputs = 4 * q, 4 * k, v, *starts
    out, lse = k01_teaching.attention_general_with_lse(*inputs, longest=50)

    assert lse.max() > 40
    assert worst_error(out, reference_with_lse(*inputs)[0], rows_apart=True) <= 2.0**-7


# --- what a launcher refuses ------------------------------------------------------------------------------

STARTS = torch.tensor([0, 4, 8], dtype=torch.int32)
REFUSED = {
    "q: expected bfloat16 or float16 or float32, got float64": {"q": torch.zeros(8, 4, 64).double()},
    "v: expected float32, got float16": {"v": torch.zeros(8, 2, 64).half()},
    "starts_k: expected int32, got int64": {"starts_k": STARTS.long()},
    "k: expected (S, KV, D) with D=64, got (8, 2, 96)": {"k": torch.zeros(8, 2, 96)},
    "v: expected (S, KV, D) with S=8, got (9, 2, 64)": {"v": torch.zeros(9, 2, 64)},
    "starts_k: expected (E,) with E=3, got (2,)": {"starts_k": STARTS[:2]},
    "q: expected H a multiple of KV=2, got H=5": {"q": torch.zeros(8, 5, 64)},
    "q: expected D = 64, 96, 128 or 256, got D=80": {
        "q": torch.zeros(8, 4, 80), "k": torch.zeros(8, 2, 80), "v": torch.zeros(8, 2, 80)
    },
    "starts_q: expected at least 2, the start of a sequence and its end, got 1": {
        "starts_q": STARTS[:1], "starts_k": STARTS[:1]
    },
    "longest: expected at least 1, got 0": {"longest": 0},
    "window: expected 0 to 1073741824, or None, got -1": {"window": -1},
    "k: expected an address divisible by 16, got one 4 bytes past it": {
        "k": torch.zeros(8 * 2 * 64 + 1)[1:].view(8, 2, 64)
    },
}  # fmt: skip


@pytest.mark.parametrize("says", REFUSED)
def test_what_a_launcher_refuses(says):
    given = {"q": torch.zeros(8, 4, 64), "k": torch.zeros(8, 2, 64), "v": torch.zeros(8, 2, 64)}
    given |= {"starts_q": STARTS, "starts_k": STARTS, "longest": 4}
    refusal = TypeError if "float" in says or "int64" in says else ValueError

    assert k01_teaching.attention_general(**given).shape == (8, 4, 64)
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        k01_teaching.attention_general(**given | REFUSED[says])


def test_what_the_grid_and_32_bits_do_not_hold():
    starts = torch.empty(3, dtype=torch.int32, device="meta")
    for T, H, says in (
        (1, 65536, "q: expected H <= 65535, got H=65536"),
        (2**30 + 1, 1, "q: expected T <= 1073741824, got T=1073741825"),
    ):
        q, k = torch.empty(T, H, 64, device="meta"), torch.empty(4, 1, 64, device="meta")
        with pytest.raises(ValueError, match=f"^{says}$"):
            arguments.sizes_of(q, k, k, starts, starts, 1, None)


def test_a_launch_asks_the_device_for_nothing(monkeypatch):
    inputs = packed([(3, 9)])

    class Nothing:
        def __getitem__(self, grid):
            return lambda *args, **constants: None

    monkeypatch.setattr(k01_teaching, "attention_general_kernel", Nothing())
    for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
        )

    k01_teaching.attention_general(*inputs, longest=3, causal=True, window=4)


def test_supports():
    assert all(k01_teaching.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))
    assert not any(
        k01_teaching.supports(w) for w in (workload("float64"), workload(D=80), workload(H=3, KV=2))
    )


# --- the problem ------------------------------------------------------------------------------------------


def test_the_truth_is_torch_s_in_float64():
    q, k, v, *starts = packed([(9, 14), (14, 14)], H=4, KV=2, D=8)
    for masks in ({}, {"causal": True}, {"causal": True, "window": 3}, {"window": 5}):
        out, lse = reference_with_lse(q, k, v, *starts, **masks)
        for (a, b), (c, d), queries in (((0, 9), (0, 14), 9), ((9, 23), (14, 28), 14)):
            behind = torch.arange(14) - (torch.arange(queries)[:, None] + 14 - queries)
            seen = (behind <= 0) if "causal" in masks else torch.ones_like(behind, dtype=torch.bool)
            seen &= behind >= -masks.get("window", 99)
            heads = (x.double().transpose(0, 1) for x in (q[a:b], k[c:d], v[c:d]))
            due = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=seen, enable_gqa=True)

            torch.testing.assert_close(out[a:b], due.transpose(0, 1))
        assert torch.isfinite(lse).all()


def test_the_truth_in_strips_is_the_truth(monkeypatch):
    inputs, masks = packed([(30, 40), (25, 12)]), {"causal": True, "window": 9}
    whole = reference_with_lse(*inputs, **masks)
    monkeypatch.setattr("course_kernels.attention_general.problem.ROWS_AT_ONCE", 7)

    for strips, expected in zip(reference_with_lse(*inputs, **masks), whole, strict=True):
        torch.testing.assert_close(strips, expected)


@pytest.mark.parametrize("masks", [{}, {"causal": True}, {"causal": True, "W": 7}, {"W": 20}], ids=str)
def test_pairs_are_counted_as_they_are_seen(masks):
    w = workload(B=7, N=40, **masks)
    some = {name: value for name, value in options(w).items() if name != "longest"}
    pairs = 0
    for queries, keys in lengths_of(w):
        for row in range(queries):
            position = row + keys - queries
            back = keys + queries if some["window"] is None else some["window"]
            ahead = 0 if some["causal"] else keys + queries
            seen = [n for n in range(keys) if position - back <= n <= position + ahead]
            first, last = seen_by(row, queries, keys, **some)

            assert seen == list(range(first, last))
            pairs += len(seen)
    assert pairs_of(w) == pairs
    assert PROBLEM.flops(w) == 4 * 64 * 2 * pairs
    assert PROBLEM.reads_bytes(w) == 4 * 64 * (2 * tokens_of(w)[0] + 2 * tokens_of(w)[1]) + 2 * 4 * 8


def test_lengths_hold_the_hard_ones_first_and_their_order_is_drawn():
    w = workload(B=8, N=100)

    assert lengths_of(w)[:5] == ((100, 100), (1, 100), (100, 33), (0, 100), (51, 0))
    assert all(1 <= n <= 100 for pair in lengths_of(w)[5:] for n in pair)
    assert lengths_of(workload(B=2, N=9, full=True)) == ((9, 9), (9, 9))
    drawn = {tuple(inputs_of(w, seed)[3].tolist()) for seed in range(6)}
    assert len(drawn) > 3
    assert {(starts[0], starts[-1]) for starts in drawn} == {(0, tokens_of(w)[0])}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "fault",
    [{}, {"causal": False}, {"window": 8}, {"window": 6}],
    ids=["none", "not causal", "one more", "one less"],
)
def test_a_tolerance_that_means_something(fault, dtype):
    def compute(*inputs, longest, **masks):
        q, k, v, *starts = (x.float() if x.is_floating_point() else x for x in inputs)
        return reference_with_lse(q, k, v, *starts, **masks | fault)[0].to(inputs[0].dtype)

    w = workload(dtype, N=50, causal=True, W=7)
    competitor = Competitor("a model of one", PROBLEM, compute)
    if fault:
        with pytest.raises(WrongResult):
            checked_error(competitor, w, device="cpu")
    else:
        assert checked_error(competitor, w, device="cpu") <= PROBLEM.max_error(w) / 4


# --- the library ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("masks", [{}, {"causal": True, "window": 5}], ids=str)
def test_the_library_takes_what_it_is_called_with(masks):
    """Tensors without memory: what torch says of shapes, types and arguments, and no number."""
    q, k = (torch.empty(20, heads, 64, dtype=torch.bfloat16, device="meta") for heads in (4, 2))
    starts = torch.empty(3, dtype=torch.int32, device="meta")
    out = library.varlen_flash(q, k, k, starts, starts, longest=12, **masks)

    assert (out.shape, out.dtype, out.is_contiguous()) == (q.shape, q.dtype, True)


def test_another_signature_is_one_line(monkeypatch):
    monkeypatch.setattr(library, "ARGUMENTS", "query keys")
    with pytest.raises(
        RuntimeError, match=r"^aten::_flash_attention_forward: expected \(query keys \.\.\.\), torch "
    ):
        library.varlen_flash(*packed([(2, 2)]), longest=2)
