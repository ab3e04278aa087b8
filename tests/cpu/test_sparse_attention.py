"""Sparse attention in the interpreter: the choice, equals, parts, NaN that nobody chose; the problem, and faults."""

import re
from types import SimpleNamespace

import pytest
import torch

from course_judge.worker.interpreter import watched_memory
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error
from course_kernels.sparse_attention import (
    arguments,
    k01_dense,
    k02_in_pieces,
    k03_gathered,
    k04_chosen,
    parts,
)
from course_kernels.sparse_attention.problem import (
    LATENT,
    MARGIN,
    NO_WEIGHT,
    PROBLEM,
    WIDTH,
    best_first,
    crossing_tokens,
    dense_bytes,
    dense_flops,
    reference,
    scores_of,
    sparse_bytes,
    sparse_flops,
)

pytestmark = pytest.mark.kept

KERNELS = (k01_dense, k02_in_pieces, k03_gathered, k04_chosen)
CHOOSING = KERNELS[1:]
# The interpreter takes its time, and is wrong in bfloat16 by design.
CHECKED = [w for w in PROBLEM.check_on if w.dtype == "float16" and w.B * w.H * min(w.N, w.TOP) < 3000]


def workload(dtype="float16", B=2, H=5, H_I=8, N=150, TOP=40, **flags):
    return Workload.of(dtype, B=B, H=H, H_I=H_I, N=N, TOP=TOP, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, w, inputs):
    return worst_error(out, reference(*inputs, top=w.TOP), rows_apart=True)


def order_of(inputs):
    """The positions of every sequence's tokens, the best first."""
    return [best_first(scores_of(*one)) for one in zip(*inputs[:3], strict=True)]


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__.rpartition(".")[2])
def test_every_size_is_right_and_reads_nothing_outside(kernel, w):
    if not kernel.supports(w):
        assert kernel is k01_dense or w.dims["ties"]
        return
    inputs = inputs_of(w)
    names = ("index_q", "index_weight", "index_k", "q", "latent")
    with watched_memory(dict(zip(names, inputs, strict=True))) as memory:
        out = kernel.sparse_attention(*inputs, top=w.TOP)

    assert memory.findings == []
    assert out.dtype is inputs[0].dtype
    assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k01_dense, k03_gathered])
@pytest.mark.parametrize("splits", [1, 5, 100])
def test_any_number_of_parts_is_right(kernel, splits, monkeypatch):
    """170 tokens are six steps, which five parts share unevenly; a hundred parts are cut down to six.

    They are merged in several turns, two parts in each.
    """
    monkeypatch.setattr(parts, "MERGED", 2)
    w = workload(B=1, H=3, H_I=2, N=200, TOP=170, peaked=True)
    inputs = inputs_of(w)
    out = kernel.sparse_attention(*inputs, top=w.TOP, splits=splits)

    assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("kernel", [k01_dense, k03_gathered])
def test_64_heads_at_once_are_right_and_the_rest_of_70(kernel):
    w = workload(B=1, H=70, H_I=2, N=100, TOP=90, peaked=True)
    inputs = inputs_of(w)
    out = kernel.sparse_attention(*inputs, top=w.TOP, loop=parts.WIDE, splits=2)

    assert error(out, w, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("programs", [1, 2, 7])
def test_any_number_of_programs_scores_all_tokens(programs):
    """300 tokens are three tiles."""
    inputs = inputs_of(workload(H_I=3, N=300))
    scores = k02_in_pieces.index_scores(*inputs[:3], programs=programs)
    expected = torch.stack([scores_of(*one) for one in zip(*inputs[:3], strict=True)])

    torch.testing.assert_close(scores.double(), expected, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("N", [70, 150])
def test_dense_and_sparse_agree_where_everything_is_chosen(N):
    """Kernel 4 takes the tokens in the order in which kernel 1 does, so that no bit differs; the others in another."""
    w = workload(N=N, TOP=150)
    inputs = inputs_of(w)
    dense = k01_dense.sparse_attention(*inputs, top=w.TOP)

    assert error(dense, w, inputs) <= PROBLEM.max_error(w)
    assert torch.equal(k04_chosen.sparse_attention(*inputs, top=w.TOP), dense)
    for kernel in (k02_in_pieces, k03_gathered):
        torch.testing.assert_close(kernel.sparse_attention(*inputs, top=w.TOP), dense, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kernel", CHOOSING)
def test_rows_that_are_not_chosen_change_no_bit(kernel):
    w = workload(N=100, TOP=33)
    inputs = inputs_of(w)
    before = kernel.sparse_attention(*inputs, top=w.TOP)
    for value in (torch.nan, torch.inf, 6e4):
        for b, order in enumerate(order_of(inputs)):
            inputs[4][b, order[w.TOP :]] = value

        assert torch.equal(kernel.sparse_attention(*inputs, top=w.TOP), before)


@pytest.mark.parametrize("kernel", CHOOSING)
def test_a_row_that_is_chosen_shows_its_nan(kernel):
    w = workload(N=100, TOP=33)
    inputs = inputs_of(w)
    inputs[4][1, order_of(inputs)[1][32], 7] = torch.nan
    out = kernel.sparse_attention(*inputs, top=w.TOP)

    assert out[1].isnan().all()
    assert torch.isfinite(out[0]).all()


def test_one_token_is_its_own_answer():
    w = workload(N=100, TOP=1)
    inputs = inputs_of(w)
    for kernel in CHOOSING:
        out = kernel.sparse_attention(*inputs, top=1)
        for b, order in enumerate(order_of(inputs)):
            assert torch.equal(out[b], inputs[4][b, order[0], :LATENT].expand(w.H, -1))


# --- the choice -------------------------------------------------------------------------------------------


def rows_of(kind, B, N):
    x = torch.randn(B, N, generator=torch.Generator().manual_seed(N))
    if kind == "ties":
        return (2 * x).round()
    if kind == "zeros of both signs":
        return torch.where(x < 0, -0.0, 0.0)
    return 1e30 * x if kind == "large" else x


@pytest.mark.parametrize("kind", ["usual", "ties", "zeros of both signs", "large"])
@pytest.mark.parametrize(("N", "K"), [(1, 1), (7, 7), (2048, 5), (5000, 2048)])
def test_the_largest_are_chosen_in_order_and_of_equals_the_lower(kind, N, K):
    scores = rows_of(kind, 2, N)
    expected = [best_first(row.double())[:K].sort().values for row in scores]

    assert torch.equal(k04_chosen.choose(scores, K).long(), torch.stack(expected))


def test_counts_of_many_chunks_are_added_up(monkeypatch):
    """Chunks and their counts are read in turns: more chunks than one turn reads."""
    monkeypatch.setattr(k04_chosen, "CHUNK", 64)
    monkeypatch.setattr(k04_chosen, "ROWS", 2)
    scores = rows_of("ties", 1, 300)
    scores[0, 3], scores[0, 299] = torch.inf, -torch.inf
    for K in (1, 150, 299, 300):
        expected = best_first(scores[0].double())[:K].sort().values

        assert torch.equal(k04_chosen.choose(scores, K)[0].long(), expected)


def test_equals_are_right_to_the_last_token():
    w = workload(N=200, TOP=61, ties=True)
    inputs = inputs_of(w)

    assert error(k04_chosen.sparse_attention(*inputs, top=w.TOP), w, inputs) <= PROBLEM.max_error(w)
    assert not k03_gathered.supports(w)


# --- what the host decides --------------------------------------------------------------------------------


@pytest.fixture
def hopper(monkeypatch):
    """A card of 132 multiprocessors."""
    card = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    for function in (parts.loop_of, parts.splits_for):
        function.cache_clear()
    yield torch.device("cuda")
    for function in (parts.loop_of, parts.splits_for):
        function.cache_clear()


@pytest.mark.parametrize("B", [1, 2, 4, 8, 16, 32, 64, 256])
@pytest.mark.parametrize("tokens", [1, 100, 2048, 131072])
def test_the_card_is_full_where_there_are_tokens_for_it(hopper, B, tokens):
    loop = parts.loop_of(hopper, B, 128, tokens)
    blocks = B * 128 // loop.heads
    splits = parts.splits_for(hopper, loop, blocks, tokens)

    assert 1 <= splits <= max(1, tokens // parts.LEAST_PART)
    if tokens >= 2048 and B <= 32:
        assert 0.85 * 132 <= splits * blocks <= 132 * loop.resident


def test_few_tokens_of_one_sequence_take_the_narrow_loop(hopper):
    assert parts.loop_of(hopper, 1, 128, 2048) is parts.NARROW
    assert parts.loop_of(hopper, 1, 128, 131072) is parts.WIDE
    assert parts.loop_of(hopper, 32, 128, 2048) is parts.WIDE
    assert parts.loop_of(hopper, 32, 16, 131072) is parts.NARROW


def faulty(name, change):
    inputs = dict(
        zip(("index_q", "index_weight", "index_k", "q", "latent"), inputs_of(workload()), strict=True)
    )
    inputs[name] = change(inputs[name])
    return inputs


REFUSED = {
    "no type of theirs": ("q", lambda x: x.float(), TypeError, "q: expected float16, got float32"),
    "weights in 16 bits": (
        "index_weight", lambda x: x.half(), TypeError, "index_weight: expected float32, got float16",
    ),
    "keys of another length": (
        "index_k", lambda x: x[:, :99].contiguous(), ValueError,
        "latent: expected (B, N, D) with N=99, got (2, 150, 576)",
    ),
    "a narrower index": (
        "index_q", lambda x: x[..., :64].contiguous(), ValueError,
        "index_k: expected (B, N, D_I) with D_I=64, got (2, 150, 128)",
    ),
    "65 heads of the index": (
        "index_q", lambda x: x.repeat(1, 9, 1)[:, :65].contiguous(), ValueError,
        "index_weight: expected (B, H_I) with H_I=65, got (2, 8)",
    ),
    "rows apart": (
        "latent", lambda x: x.repeat(1, 1, 2)[..., :WIDTH], ValueError,
        "latent: expected contiguous (B, N, D), got strides (172800, 1152, 1)",
    ),
    "between two vectors": (
        "latent", lambda x: torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape), ValueError,
        "latent: expected an address divisible by 16, got one 2 bytes past it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_bad_tensors_are_refused_in_one_line(kernel, fault):
    name, change, kind, says = REFUSED[fault]
    with pytest.raises(kind, match=f"^{re.escape(says)}$"):
        kernel.sparse_attention(**faulty(name, change), top=40)


@pytest.mark.parametrize(
    ("top", "kind", "says"),
    [
        (0, ValueError, "top: expected at least 1, got 0"),
        (2.0, TypeError, "top: expected a whole number, got float"),
        (True, TypeError, "top: expected a whole number, got bool"),
    ],
)
def test_a_bad_top_is_refused_in_one_line(top, kind, says):
    for kernel in KERNELS:
        with pytest.raises(kind, match=f"^{says}$"):
            kernel.sparse_attention(*inputs_of(workload(N=9)), top=top)


def test_sizes_out_of_range_are_refused(monkeypatch):
    inputs = inputs_of(workload(H_I=8, N=9))
    for name, most, says in (
        ("MOST_INDEX_HEADS", 7, "index_q: expected H_I <= 7, got H_I=8"),
        ("MAX_N", 8, "index_k: expected N <= 8, got N=9"),
        ("MAX_GRID", 1, "index_q: expected B <= 1, got B=2"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(arguments, name, most)
            with pytest.raises(ValueError, match=f"^{says}$"):
                k03_gathered.sparse_attention(*inputs, top=3)


# --- the problem ------------------------------------------------------------------------------------------


def test_the_truth_is_the_definition():
    w = workload(B=2, H=3, H_I=4, N=12, TOP=5)
    index_q, index_weight, index_k, q, latent = (x.double() for x in inputs_of(w))
    for b in range(w.B):
        scores = [
            sum(
                float(index_weight[b, j]) * max(float(index_q[b, j] @ index_k[b, n]), 0.0)
                for j in range(w.H_I)
            )
            for n in range(w.N)
        ]
        chosen = sorted(range(w.N), key=lambda n: (-scores[n], n))[: w.TOP]
        rows = latent[b, chosen]
        expected = torch.nn.functional.scaled_dot_product_attention(
            q[b, :, None], rows.expand(3, -1, -1), rows[:, :LATENT].expand(3, -1, -1), scale=192**-0.5
        )[:, 0]

        torch.testing.assert_close(reference(*inputs_of(w), top=w.TOP)[b], expected)


def test_of_equals_the_lower_position_wins():
    assert best_first(torch.tensor([1.0, 3.0, 2.0, 3.0, 2.0, 3.0])).tolist() == [1, 3, 5, 2, 4, 0]
    assert best_first(torch.tensor([0.0, -0.0, 0.0])).tolist() == [0, 1, 2]


def test_inputs_with_ties_end_the_choice_among_equals_and_those_without_never_do():
    for w in (w for w in PROBLEM.check_on if w.dtype == "bfloat16" and w.TOP < w.N < 4000):
        for seed in range(3):
            inputs = inputs_of(w, seed)
            for one in zip(*inputs[:3], strict=True):
                scores = scores_of(*one)
                last, next_best = scores.sort(descending=True).values[w.TOP - 1 : w.TOP + 1].tolist()
                if w.dims.get("ties", False):
                    assert last == next_best
                else:
                    assert last - next_best > 0.5 * MARGIN * float(scores.square().mean().sqrt())


def test_a_choice_in_float32_is_the_truth_s_whatever_the_order_of_heads():
    for seed in range(5):
        w = workload("bfloat16", B=1, H=1, H_I=64, N=2000, TOP=300)
        index_q, index_weight, index_k, *_ = (x[0] for x in inputs_of(w, seed))
        heads = torch.randperm(64, generator=torch.Generator().manual_seed(seed))
        single = torch.zeros(w.N)
        for j in heads.tolist():
            single += index_weight[j] * (index_k.float() @ index_q[j].float()).relu()
        truth = best_first(scores_of(index_q, index_weight, index_k))[: w.TOP]

        assert set(single.topk(w.TOP).indices.tolist()) == set(truth.tolist())


def test_inputs_leave_what_is_not_chosen_to_nobody():
    for flags in ({}, {"ties": True}, {"peaked": True}):
        w = workload("bfloat16", N=60, TOP=20, **flags)
        inputs = inputs_of(w)
        latent = inputs[4]
        for b, order in enumerate(order_of(inputs)):
            chosen, others = order[:20], order[20:]
            assert torch.isfinite(latent[b, chosen]).all()
            assert (latent[b, chosen[:-1], -1] == 0).all()
            assert latent[b, chosen[-1], -1] > 1
            if "peaked" in flags:
                assert torch.isfinite(latent[b]).all()
                assert (latent[b, others, -1] == NO_WEIGHT).all()
            else:
                assert latent[b, others[0], -1] == latent[b, chosen[-1], -1]
                assert latent[b, others[1::2]].isnan().all()
                assert torch.isfinite(latent[b, others[::2]]).all()


def test_bytes_and_operations_are_those_of_the_shape():
    w = Workload.of("bfloat16", B=4, H=128, H_I=64, N=131072, TOP=2048)
    q = 4 * 128 * 576 * 2

    assert dense_bytes(w) == 4 * 131072 * 576 * 2 + q
    assert sparse_bytes(w) == 4 * (131072 * 256 + 2048 * 1152 + 64 * 256 + 64 * 4) + q
    assert PROBLEM.reads_bytes(w) == sparse_bytes(w)
    assert PROBLEM.writes_bytes(w) == 4 * 128 * 512 * 2
    assert dense_flops(w) == 4 * 131072 * 128 * 2 * (576 + 512)
    assert sparse_flops(w) == 4 * (131072 * 64 * 2 * 129 + 2048 * 128 * 2 * (576 + 512))
    few = Workload.of("bfloat16", B=4, H=128, H_I=64, N=2048, TOP=2048)
    assert PROBLEM.reads_bytes(few) == dense_bytes(few) < sparse_bytes(few)
    assert PROBLEM.flops(few) == dense_flops(few) < sparse_flops(few)


@pytest.mark.parametrize(
    ("of", "sparse", "dense"), [("bytes", sparse_bytes, dense_bytes), ("flops", sparse_flops, dense_flops)]
)
@pytest.mark.parametrize(("H", "H_I", "TOP"), [(128, 64, 2048), (16, 64, 256), (1, 3, 17)])
def test_from_the_crossing_on_sparse_is_less(of, sparse, dense, H, H_I, TOP):
    crossing = crossing_tokens(Workload.of("bfloat16", B=3, H=H, H_I=H_I, N=1, TOP=TOP), of=of)
    at = int(crossing)
    before, behind = (Workload.of("bfloat16", B=3, H=H, H_I=H_I, N=N, TOP=TOP) for N in (at, at + 1))

    assert at > TOP
    assert sparse(before) >= dense(before)
    assert sparse(behind) < dense(behind)


def test_an_index_that_does_more_than_attention_never_pays():
    w = Workload.of("bfloat16", B=1, H=1, H_I=64, N=1, TOP=5)

    assert crossing_tokens(w, of="flops") == float("inf")
    with pytest.raises(ValueError, match=r"^of: expected 'bytes' or 'flops', got 'time'$"):
        crossing_tokens(w, of="time")


# --- a tolerance that means something ---------------------------------------------------------------------


def by_hand(
    index_q, index_weight, index_k, q, latent, *, top,
    more=0, shift=0, flat=False, bare=False, order=best_first, values=slice(LATENT), masked=False, heads=None,
    scale=192**-0.5,
):  # fmt: skip
    """The answer in torch, in float32, with what a fault may change."""
    out = torch.empty(*q.shape[:2], LATENT)
    for b in range(len(q)):
        scores = index_q[b].float() @ index_k[b].float().T
        scores = scores if bare else scores.relu()
        scores = (scores if flat else index_weight[b][:, None] * scores)[:heads].sum(0)
        chosen = order(scores)[: top + more]
        rows = latent[b, (chosen + shift) % latent.shape[1]].float()
        weights = q[b].float() @ rows.T * scale
        if masked:  # every row is read, and those not chosen get a weight of zero
            rows = latent[b].float()
            weights = torch.full((q.shape[1], len(rows)), -torch.inf)
            weights[:, chosen] = q[b].float() @ rows[chosen].T * scale
        out[b] = torch.softmax(weights, -1).to(q.dtype).float() @ rows[:, values]
    return out.to(q.dtype)


SIZES = {
    "small": workload("bfloat16", N=120, TOP=20),
    "of DeepSeek-V3.2": workload("bfloat16", B=1, H=16, H_I=64, N=5000, TOP=2048),
}
EQUALS = workload("bfloat16", N=200, TOP=61, ties=True)


def judged(w, **fault):
    competitor = Competitor(
        "a model of one", PROBLEM, lambda *inputs, top: by_hand(*inputs, top=top, **fault)
    )
    return checked_error(competitor, w, device="cpu") / PROBLEM.max_error(w)


@pytest.mark.parametrize("w", [*SIZES.values(), EQUALS], ids=[*SIZES, "equals"])
def test_a_right_answer_in_float32_is_taken(w):
    assert judged(w) <= 0.5


FAULTS = {
    "one too few": {"more": -1},
    "one too many": {"more": 1},
    "the neighbour's row": {"shift": 1},
    "weights left out": {"flat": True},
    "no ReLU": {"bare": True},
    "a head of the index too few": {"heads": -1},
    "the smallest": {"order": lambda scores: best_first(-scores)},
    "the first": {"order": lambda scores: torch.arange(len(scores))},
    "values from the end": {"values": slice(WIDTH - LATENT, WIDTH)},
    "the scale of 576": {"scale": 576**-0.5},
    "a weight of zero times what nobody chose": {"masked": True},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("size", SIZES)
def test_a_wrong_one_is_refused(size, fault):
    with pytest.raises(WrongResult):
        judged(SIZES[size], **FAULTS[fault])


def test_the_higher_of_equals_is_refused_and_without_ties_nobody_can_tell():
    def last_of_equals(scores):
        return len(scores) - 1 - best_first(scores.flip(0))

    assert judged(SIZES["small"], order=last_of_equals) <= 0.5
    with pytest.raises(WrongResult):
        judged(EQUALS, order=last_of_equals)


def test_attention_over_everything_is_refused_unless_the_others_weigh_nothing():
    dense = Competitor("all", PROBLEM, lambda *inputs, top: by_hand(*inputs, top=inputs[2].shape[1]))

    assert checked_error(dense, workload("bfloat16", peaked=True), device="cpu") <= PROBLEM.max_error(
        workload("bfloat16")
    )
    with pytest.raises(WrongResult):
        checked_error(dense, workload("bfloat16"), device="cpu")
