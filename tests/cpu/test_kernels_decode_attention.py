"""Decode attention in the interpreter: lengths, groups, parts and their merge; the problem, and what is refused."""

import re
from types import SimpleNamespace

import pytest
import torch

from course_judge.worker.interpreter import watched_memory
from course_kernels.decode_attention import arguments, k01_one_program, k02_split, library
from course_kernels.decode_attention.problem import PROBLEM, lengths_of, tokens_of
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = [
    pytest.param(k01_one_program.decode_attention, id="k01"),
    pytest.param(k02_split.decode_attention, id="k02"),
    pytest.param(lambda *inputs: k02_split.decode_attention(*inputs, splits=5), id="k02 in 5 parts"),
]
# The interpreter takes its time: neither all types in all widths, nor the longest ones. bf16 is wrong there by design.
CHECKED = [
    w
    for w in PROBLEM.check_on
    if (w.dtype, w.D) in (("float16", 64), ("float32", 128)) and w.KV * tokens_of(w) < 4000
]


def workload(dtype="float32", B=4, H=8, KV=2, N=300, D=64, full=False):
    return Workload.of(dtype, B=B, H=H, KV=KV, N=N, D=D, full=full)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, PROBLEM.reference(*inputs), rows_apart=True)


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
@pytest.mark.parametrize("attend", KERNELS)
def test_every_size_is_right(attend, w):
    inputs = inputs_of(w)
    out = attend(*inputs)

    assert out.dtype is inputs[0].dtype
    assert error(out, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize(
    ("dtype", "D", "splits"),
    [("float32", 64, splits) for splits in (1, 2, 7, 40)] + [("float16", 128, splits) for splits in (3, 11)],
)
def test_any_number_of_parts_is_right(dtype, D, splits):
    w = workload(dtype, B=4, H=6, KV=2, N=700, D=D)  # three heads share, and 700 tokens are 11 steps
    inputs = inputs_of(w)

    assert error(k02_split.decode_attention(*inputs, splits=splits), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("share", [1, 16, 17, 64])
def test_any_group_is_right(share):
    w = workload("float16", B=3, H=2 * share, KV=2, N=150)
    inputs = inputs_of(w)

    for out in (k01_one_program.decode_attention(*inputs), k02_split.decode_attention(*inputs, splits=2)):
        assert error(out, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("attend", KERNELS)
class TestProperties:
    """What holds for a step of decoding whoever computes it."""

    def test_a_sequence_of_one_token_answers_with_its_value(self, attend):
        q, k, v, lengths = inputs_of(workload(full=True))
        out = attend(q, k, v, torch.ones_like(lengths))

        assert torch.equal(out, v[:, :, 0].repeat_interleave(4, dim=1))

    def test_a_sequence_of_length_0_answers_with_zeros(self, attend):
        q, k, v, _ = inputs_of(workload(full=True))
        out = attend(q, k, v, torch.tensor([0, 300, 0, 200], dtype=torch.int32))

        assert torch.equal(out[[0, 2]], torch.zeros_like(out[[0, 2]]))
        assert (out[[1, 3]] != 0).all()

    def test_what_lies_past_a_length_changes_no_bit(self, attend):
        w = workload()
        q, k, v, lengths = inputs_of(w)
        past = (torch.arange(w.N) >= lengths[:, None])[:, None, :, None]
        before = attend(q, k, v, lengths)
        for keys, values in ((torch.nan, 7.0), (1e30, torch.nan), (-torch.inf, torch.inf), (0.0, 1e30)):
            after = attend(q, k.masked_fill(past, keys), v.masked_fill(past, values), lengths)

            assert torch.equal(before, after)

    def test_all_equal_keys_answer_with_the_mean(self, attend):
        w = workload(full=True)
        q, k, v, lengths = inputs_of(w)
        out = attend(q, torch.full_like(k, 0.5), v, lengths)

        torch.testing.assert_close(out, v.mean(2).repeat_interleave(4, dim=1), rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    def test_large_scores_do_not_overflow(self, attend, dtype):
        w = workload(dtype, B=3, full=True)
        q, k, v, lengths = inputs_of(w)
        q, k = 3 * q, 4 * k  # scores of -40 to 40
        scores = (q[:, :4].double() @ k[:, 0].double().transpose(-1, -2)) / 8
        out = attend(q, k, v, lengths)

        assert scores.max() > 40 > -40 > scores.min()
        assert error(out, (q, k, v, lengths)) <= PROBLEM.max_error(w)

    def test_a_score_above_all_earlier_ones_may_come_last(self, attend):
        """Every step raises the maximum: all that came before must be weighed anew, within a part and in the merge."""
        w = workload(B=2, full=True)
        q, k, v, lengths = inputs_of(w)
        rising = torch.arange(w.N)[:, None] / 32 * q[:, ::4, None] / q[:, ::4, None].square().mean(-1, True)
        inputs = q, rising.to(k.dtype).contiguous(), v, lengths

        assert error(attend(*inputs), inputs) <= PROBLEM.max_error(w)

    def test_heads_and_sequences_do_not_mix(self, attend):
        q, k, v, lengths = inputs_of(workload(B=3, H=8, KV=4))
        q_of, k_of, v_of = q[1:2, 4:6], k[1:2, 2:3], v[1:2, 2:3]
        alone = attend(q_of.contiguous(), k_of.contiguous(), v_of.contiguous(), lengths[1:2].contiguous())

        torch.testing.assert_close(attend(q, k, v, lengths)[1:2, 4:6], alone)

    def test_nan_is_seen_by_those_who_see_it_alone(self, attend):
        q, k, v, lengths = inputs_of(workload(B=1, H=8, KV=2, full=True))
        q[0, 1, 3] = k[0, 1, 250, 5] = v[0, 0, 100, 7] = torch.nan
        actual = attend(q, k, v, lengths).isnan()

        expected = torch.zeros_like(actual)
        expected[0, 1], expected[0, 4:], expected[0, :4, 7] = True, True, True
        assert torch.equal(actual, expected)
        assert torch.equal(actual, PROBLEM.reference(q, k, v, lengths).isnan())

    def test_a_length_outside_of_the_room_reads_nothing_outside(self, attend):
        q, k, v, lengths = inputs_of(workload(B=2, N=100, full=True))
        with watched_memory({"k": k, "v": v}) as memory:
            out = attend(q, k, v, torch.tensor([1000, -3], dtype=torch.int32))

        assert memory.findings == []
        torch.testing.assert_close(out[0], attend(q, k, v, lengths)[0])
        assert torch.equal(out[1], torch.zeros_like(out[1]))


# --- parts and tickets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
def test_many_parts_are_merged_in_several_rounds(turned):
    """Scores that rise, or fall, from part to part, so that each round finds another maximum, or keeps the first."""
    w = workload(B=1, H=32, KV=1, N=290, D=128, full=True)
    q, k, v, lengths = inputs_of(w)
    rising = torch.linspace(-10, 10, w.N)[:, None] * q[0, 0] / q[0, 0].square().mean().sqrt()
    inputs = q, (rising.flip(0) if turned else rising).expand_as(k).contiguous(), v, lengths
    parts = -(-w.N // k01_one_program.step_of(4, w.D))

    assert parts >= 4 * (k02_split.MERGED // (32 * w.D))
    assert error(k02_split.decode_attention(*inputs, splits=parts), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("full", [False, True])
def test_the_order_of_programs_changes_no_bit(full):
    """Three heads share, so a merge has a row that no query has; full, it reads the very last part."""
    inputs = inputs_of(workload(B=2, H=6, KV=2, N=500, full=full))
    expected = k02_split.decode_attention(*inputs, splits=8)
    for seed in range(3):
        with watched_memory(shuffle=seed) as memory:
            out = k02_split.decode_attention(*inputs, splits=8)

        assert memory.findings == []
        assert torch.equal(out, expected)


def test_tickets_serve_one_call_after_the_other():
    tickets = torch.zeros(8, dtype=torch.int32)
    for seed, splits in enumerate((4, 3, 1, 5)):
        w = workload(N=400)
        inputs = inputs_of(w, seed)
        out = k02_split.decode_attention(*inputs, tickets=tickets, splits=splits)

        assert error(out, inputs) <= PROBLEM.max_error(w)
        assert torch.equal(tickets, torch.zeros_like(tickets))


@pytest.mark.parametrize(
    ("tickets", "refusal", "says"),
    [
        (torch.zeros(8), TypeError, "tickets: expected int32, got float32"),
        (torch.zeros(7, dtype=torch.int32), ValueError, "tickets: expected (T,) with T=8, got (7,)"),
        (
            torch.zeros(16, dtype=torch.int32)[::2],
            ValueError,
            "tickets: expected contiguous (T,), got strides (2,)",
        ),
    ],
)
def test_other_tickets_are_refused(tickets, refusal, says):
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        k02_split.decode_attention(*inputs_of(workload()), tickets=tickets)


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, len(args), constants))


@pytest.mark.parametrize(
    ("module", "name"), [(k01_one_program, "one_program_kernel"), (k02_split, "split_kernel")]
)
def test_a_launch_is_the_same_whatever_the_lengths(module, name, monkeypatch):
    monkeypatch.setattr(module, name, recorder := Recorder())
    q, k, v, _ = inputs_of(workload(N=1000))
    for lengths in ([0, 0, 0, 0], [1000, 1, 500, 3]):
        module.decode_attention(q, k, v, torch.tensor(lengths, dtype=torch.int32))

    first, second = recorder.calls
    assert first == second


def test_a_launch_asks_the_device_for_nothing(monkeypatch):
    monkeypatch.setattr(k01_one_program, "one_program_kernel", Recorder())
    monkeypatch.setattr(k02_split, "split_kernel", Recorder())
    inputs = inputs_of(workload())
    for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
        )

    k01_one_program.decode_attention(*inputs)
    k02_split.decode_attention(*inputs)


@pytest.mark.parametrize(
    ("heads", "steps", "splits"),
    [
        (8, 16, 16),  # 1 x 1024: a step for each program
        (8, 64, 49),  # 1 x 4096: 392 programs, and 396 fit
        (8, 1024, 49),
        (256, 64, 1),  # 32 x 4096: all heads at once, twice would be too many
        (198, 64, 2),
        (396, 64, 1),
        (397, 64, 4),  # one more than fit: its wave is one of several short ones
        (512, 64, 4),
        (100_000, 64, 1),
    ],
)
def test_how_many_parts_an_h200_gets(heads, steps, splits, monkeypatch):
    k02_split.splits_for.cache_clear()
    h200 = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)

    assert k02_split.splits_for(torch.device("cuda", 0), heads, steps) == splits
    k02_split.splits_for.cache_clear()


# --- what a launcher refuses ------------------------------------------------------------------------------


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


def lengths_for(B):
    return torch.ones(B, dtype=torch.int32)


CACHE = (2, 2, 8, 64)
WIDE = (2, 2, 8, 96)
# The sentence, and what calls it forth.
WRONG_TYPES = {
    "q: expected bfloat16 or float16 or float32, got float64": {"q": zeros(2, 4, 64).double()},
    "k_cache: expected float32, got float16": {"k_cache": zeros(*CACHE).half()},
    "v_cache: expected float32, got float16": {"v_cache": zeros(*CACHE).half()},
    "lengths: expected int32, got int64": {"lengths": lengths_for(2).long()},
}
WRONG_VALUES = {
    "q: expected (B, H, D) with no empty dimension, got (2, 4, 1, 64)": {"q": zeros(2, 4, 1, 64)},
    "v_cache: expected (B, KV, N, D) with N=8, got (2, 2, 9, 64)": {"v_cache": zeros(2, 2, 9, 64)},
    "v_cache: expected (B, KV, N, D) with KV=2, got (2, 4, 8, 64)": {"v_cache": zeros(2, 4, 8, 64)},
    "k_cache: expected contiguous (B, KV, N, D), got strides (1024, 64, 128, 1)": {
        "k_cache": zeros(2, 8, 2, 64).transpose(1, 2)
    },
    "lengths: expected (B,) with B=2, got (1,)": {"lengths": lengths_for(1)},
    "lengths: expected a tensor on cpu, got meta": {"lengths": lengths_for(2).to("meta")},
    "v_cache: expected a tensor on cpu, got meta": {"v_cache": zeros(*CACHE).to("meta")},
    "q: expected D = 64 or 128, got D=96": {
        "q": zeros(2, 4, 96),
        "k_cache": zeros(*WIDE),
        "v_cache": zeros(*WIDE),
    },
    "q: expected H a multiple of KV=2, at most 64 times it, got H=5": {"q": zeros(2, 5, 64)},
    "q: expected H a multiple of KV=2, at most 64 times it, got H=130": {"q": zeros(2, 130, 64)},
    "k_cache: expected an address divisible by 16, got one 4 bytes past it": {
        "k_cache": zeros(2 * 2 * 8 * 64 + 1)[1:].view(CACHE)
    },
}
REFUSED = [(TypeError, *case) for case in WRONG_TYPES.items()]
REFUSED += [(ValueError, *case) for case in WRONG_VALUES.items()]


@pytest.mark.parametrize(("refusal", "says", "other"), REFUSED, ids=[says for _, says, _ in REFUSED])
@pytest.mark.parametrize("kernel", [k01_one_program, k02_split], ids=["k01", "k02"])
def test_what_a_launcher_refuses(kernel, refusal, says, other):
    given = {
        "q": zeros(2, 4, 64),
        "k_cache": zeros(*CACHE),
        "v_cache": zeros(*CACHE),
        "lengths": lengths_for(2),
    }

    assert kernel.decode_attention(**given).shape == (2, 4, 64)
    with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
        kernel.decode_attention(**given | other)


@pytest.mark.parametrize(
    ("B", "KV", "N", "says"),
    [
        (1, 1, 2**23 + 1, "k_cache: expected N <= 8388608, got N=8388609"),
        (65536, 1, 1, "k_cache: expected B <= 65535, got B=65536"),
        (1, 65536, 1, "k_cache: expected KV <= 65535, got KV=65536"),
    ],
)
def test_what_the_grid_and_32_bits_do_not_hold(B, KV, N, says):
    """No memory behind these: a tensor on the device `meta` has a shape only."""
    shapes = (B, KV, 64), (B, KV, N, 64), (B, KV, N, 64)
    q, k, v = (torch.empty(shape, device="meta") for shape in shapes)

    with pytest.raises(ValueError, match=f"^{says}$"):
        arguments.sizes_of(q, k, v, torch.empty(B, dtype=torch.int32, device="meta"))


def test_supports():
    yes, also = workload("bfloat16", D=128), workload("float32", H=64, KV=1)
    no = [workload("float8_e4m3fn"), workload(D=96), workload(H=7), workload(H=65, KV=1)]

    assert [k02_split.supports(w) for w in (yes, also, *no)] == [True, True, False, False, False, False]
    assert all(k01_one_program.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))


# --- the problem ------------------------------------------------------------------------------------------


def test_the_truth_is_torch_s_in_float64():
    w = workload(B=3, H=12, KV=4, N=40, full=True)
    q, k, v, lengths = (x.double() if x.is_floating_point() else x for x in inputs_of(w))
    shared = (x.repeat_interleave(3, dim=1) for x in (k, v))
    expected = torch.nn.functional.scaled_dot_product_attention(q[:, :, None], *shared)[:, :, 0]

    torch.testing.assert_close(PROBLEM.reference(q, k, v, lengths), expected)


def test_the_truth_of_a_short_sequence_is_that_of_a_small_room():
    q, k, v, _ = inputs_of(workload(B=1, N=50, full=True))
    short = PROBLEM.reference(q, k, v, torch.tensor([20], dtype=torch.int32))

    assert torch.equal(short, PROBLEM.reference(q, k[:, :, :20], v[:, :, :20], torch.tensor([20])))
    assert torch.equal(PROBLEM.reference(q, k, v, torch.tensor([0])), torch.zeros(1, 8, 64).double())


@pytest.mark.parametrize("B", [1, 2, 3, 4, 9])
def test_lengths_are_the_longest_one_none_and_others(B):
    w = workload(B=B, N=1000)
    lengths = lengths_of(w)

    assert lengths[:3] == [1000, 1, 0][:B]
    assert len(lengths) == B
    assert all(1 <= n <= 1000 for n in lengths[3:])
    assert len(set(lengths)) == B
    assert lengths_of(workload(B=B, N=1000, full=True)) == [1000] * B
    for seed in range(3):
        assert sorted(inputs_of(w, seed)[3].tolist()) == sorted(lengths)


def test_the_order_of_lengths_is_drawn():
    assert len({tuple(inputs_of(workload(B=5), seed)[3].tolist()) for seed in range(8)}) > 3


def test_the_room_past_a_length_holds_nan_and_old_tokens():
    _, k, v, lengths = inputs_of(workload())
    for cache in (k, v):
        for b, length in enumerate(lengths.tolist()):
            assert torch.isfinite(cache[b, :, :length]).all()
            assert cache[b, :, length::2].isnan().all()
            assert torch.isfinite(cache[b, :, length + 1 :: 2]).all()


def test_bytes_and_operations_count_what_is_there():
    w = Workload.of("bfloat16", B=4, H=8, KV=2, N=1000, D=128)
    tokens = 1000 + 1 + 0 + lengths_of(w)[3]

    assert tokens_of(w) == tokens
    assert PROBLEM.reads_bytes(w) == 2 * (4 * 8 * 128 + 2 * 2 * tokens * 128) + 4 * 4
    assert PROBLEM.flops(w) == 4 * 8 * 128 * tokens
    for timed in PROBLEM.time_on:
        assert tokens_of(timed) == timed.B * timed.N


@pytest.mark.parametrize("function", [library.sdpa_math, library.sdpa_flash])
def test_the_library_is_right_where_the_cache_is_full(function):
    w = workload(B=2, N=70, full=True)
    competitor = Competitor("library", PROBLEM, function)

    assert checked_error(competitor, w, device="cpu") <= PROBLEM.max_error(w)


def test_the_library_leaves_the_callers_precision_alone():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        library.sdpa_math(*inputs_of(workload(N=3, full=True)))

        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


# --- a tolerance that means something ---------------------------------------------------------------------


def in_parts(q, k, v, lengths, *, share=None, past=0, repaired=True, parts=2, rounded=lambda x: x):
    """The answer by parts, with what a fault may change."""
    B, H, D = q.shape
    KV = k.shape[1]
    out = torch.zeros(B, H, D)
    for b, length in enumerate(lengths.tolist()):
        for h in range(H if length else 0):
            kv = (share or (lambda h: h // (H // KV)))(h)
            n = max(1, min(length + past, k.shape[2]))
            scores = rounded(k[b, kv, :n]).float() @ rounded(q[b, h]).float() / D**0.5
            of_parts = [
                (s.max(), (s - s.max()).exp(), x)
                for s, x in zip(scores.chunk(parts), rounded(v[b, kv, :n]).float().chunk(parts), strict=True)
            ]
            top = max(m for m, _, _ in of_parts)
            weights = [((m - top).exp() if repaired else 1.0) for m, _, _ in of_parts]
            total = sum(w * p.sum() for w, (_, p, _) in zip(weights, of_parts, strict=True))
            out[b, h] = sum(w * (p @ x) for w, (_, p, x) in zip(weights, of_parts, strict=True)) / total
    return out.to(q.dtype)


def rounded_to_tf32(x):
    """Round to 10 bits after the point, as the tensor cores do with an fp32 input."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def judged(dtype="float32", **fault):
    w = workload(dtype, B=4, H=8, KV=2, N=127)
    competitor = Competitor("a model of one", PROBLEM, lambda *inputs: in_parts(*inputs, **fault))
    return checked_error(competitor, w, device="cpu") / PROBLEM.max_error(w)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_right_answer_by_parts_is_taken(dtype):
    assert judged(dtype) <= 0.5


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "fault",
    [{"past": 1}, {"past": -1}, {"repaired": False}, {"share": lambda h: h % 2}],
    ids=["one too many", "one too few", "parts not repaired", "h % KV"],
)
def test_a_wrong_one_is_refused(dtype, fault):
    with pytest.raises(WrongResult):
        judged(dtype, **fault)


def test_in_fp32_plain_tf32_is_refused():
    with pytest.raises(WrongResult, match=r"^a model of one on \S+: wrong: "):
        judged(rounded=rounded_to_tf32)
