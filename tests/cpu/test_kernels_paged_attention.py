"""Paged attention in the interpreter: pages anywhere, lengths, groups, parts; the problem, and what is refused."""

import re
import sys
import types
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
import torch

from course_judge.worker.interpreter import ORDER, watched_memory
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.paged_attention import arguments, k01_gather, k02_split, k03_even, k04_prefill, library
from course_kernels.paged_attention.problem import (
    NOBODY,
    PROBLEM,
    cache_dtype,
    lengths_of,
    pages_of,
    reference,
    tokens_of,
)
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = [
    pytest.param(k01_gather.paged_attention, id="k01"),
    pytest.param(lambda *inputs: k02_split.paged_attention(*inputs, splits=5), id="k02 in 5 parts"),
    pytest.param(lambda *inputs: k03_even.paged_attention(*inputs, programs=7), id="k03 in 7 programs"),
    pytest.param(k04_prefill.paged_attention, id="k04 for one token"),
]
# The interpreter takes its time: every page size once, in either width, in 16 bits and in 8. bf16 is wrong there by
# design.
CHECKED = [
    w
    for w in PROBLEM.check_on
    if w.dtype == "float16" and (w.D == 128) == w.dims.get("fp8", False) and w.KV * tokens_of(w) < 1500
]


def workload(dtype="float16", B=4, H=4, KV=1, N=300, PAGE=16, D=64, **flags):
    return Workload.of(dtype, B=B, H=H, KV=KV, N=N, PAGE=PAGE, D=D, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    return worst_error(out, reference(*inputs), rows_apart=True)


def lengths(*values):
    return torch.tensor(values, dtype=torch.int32)


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("w", CHECKED, ids=lambda w: w.label)
@pytest.mark.parametrize("attend", KERNELS)
def test_every_size_is_right_and_reads_nothing_outside(attend, w):
    """Behind the last page of a sequence a table holds numbers of no page at all: whoever reads by them is caught."""
    inputs = inputs_of(w)
    with watched_memory({"k": inputs[1], "v": inputs[2], "table": inputs[3]}) as memory:
        out = attend(*inputs)

    assert memory.findings == []
    assert out.dtype is inputs[0].dtype
    assert error(out, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("attend", KERNELS)
def test_whoever_reads_by_an_entry_of_nobody_is_caught(attend):
    """The length is a page too long: the entry behind the last one is no page of the pool."""
    q, k, v, table, n = inputs_of(workload(B=3, N=64))
    n = torch.where(n < 48, n + 16, n)
    with watched_memory({"k": k, "v": v, "table": table}) as memory:
        attend(q, k, v, table, n)

    assert memory.findings


@pytest.mark.parametrize("splits", [1, 3, 40])
def test_any_number_of_parts_is_right(splits):
    w = workload(B=3, H=3, KV=1, N=340, PAGE=32, D=128)  # three heads share, and 340 tokens are 6 steps
    inputs = inputs_of(w)

    assert error(k02_split.paged_attention(*inputs, splits=splits), inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("share", [1, 17])
def test_any_group_is_right(share):
    w = workload(B=1, H=2 * share, KV=2, N=150)
    inputs = inputs_of(w)

    for out in (
        k01_gather.paged_attention(*inputs),
        k02_split.paged_attention(*inputs, splits=2),
        k03_even.paged_attention(*inputs, programs=3),
    ):
        assert error(out, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("attend", KERNELS)
class TestProperties:
    """What holds for a step of decoding over pages whoever computes it."""

    def test_it_makes_no_difference_where_the_pages_lie(self, attend):
        q, k, v, table, n = inputs_of(workload())
        moved = torch.randperm(len(k), generator=torch.Generator().manual_seed(7))
        where = torch.argsort(moved).int()
        elsewhere = torch.where(table >= len(k), table, torch.where(table < 0, table, 0))
        there = (table >= 0) & (table < len(k))
        elsewhere[there] = where[table[there].long()]

        assert torch.equal(attend(q, k, v, table, n), attend(q, k[moved], v[moved], elsewhere, n))

    def test_sequences_may_share_their_first_pages(self, attend):
        q, k, v, table, _ = inputs_of(workload(full=True))
        table[1:, :9] = table[0, :9]
        inputs = q, k, v, table, lengths(300, 280, 144, 150)
        out = attend(*inputs)

        assert error(out, inputs) <= PROBLEM.max_error(workload())

    def test_a_sequence_of_one_token_answers_with_its_value(self, attend):
        q, k, v, table, n = inputs_of(workload(full=True))
        out = attend(q, k, v, table, torch.ones_like(n))

        assert torch.equal(out, v[table[:, 0].long(), :, 0].repeat_interleave(4, dim=1))

    def test_a_sequence_of_length_0_answers_with_zeros(self, attend):
        q, k, v, table, _ = inputs_of(workload(full=True))
        out = attend(q, k, v, table, lengths(0, 300, 0, 200))

        assert torch.equal(out[[0, 2]], torch.zeros_like(out[[0, 2]]))
        assert (out[[1, 3]] != 0).all()

    def test_what_nobody_has_changes_no_bit(self, attend):
        """Pages of no sequence, the rest of a last page, and the table behind it."""
        w = workload(PAGE=32)
        q, k, v, table, n = inputs_of(w)
        before = attend(q, k, v, table, n)
        theirs = torch.zeros(len(k), w.PAGE, dtype=torch.bool)
        for b, length in enumerate(n.tolist()):
            for at in range(length):
                theirs[table[b, at // w.PAGE], at % w.PAGE] = True
        nobody = ~theirs[:, None, :, None]
        behind = torch.arange(table.shape[1]) >= -(-n[:, None] // w.PAGE)
        for keys, values, entry in ((6e4, torch.nan, -9), (torch.nan, -torch.inf, 1 << 30)):
            others = (
                k.masked_fill(nobody, keys),
                v.masked_fill(nobody, values),
                table.masked_fill(behind, entry),
            )

            assert torch.equal(before, attend(q, *others, n))

    def test_large_scores_do_not_overflow(self, attend):
        w = workload(B=3, full=True)
        q, k, v, *where = inputs_of(w)
        q, k = 3 * q, 4 * k  # scores of -40 to 40
        assert error(attend(q, k, v, *where), (q, k, v, *where)) <= 2 * PROBLEM.max_error(w)

    def test_nan_is_seen_by_those_who_see_it_alone(self, attend):
        q, k, v, table, n = inputs_of(workload(B=1, H=8, KV=2, full=True))
        q[0, 1, 3] = k[table[0, 250 // 16], 1, 250 % 16, 5] = v[table[0, 6], 0, 4, 7] = torch.nan
        actual = attend(q, k, v, table, n).isnan()

        expected = torch.zeros_like(actual)
        expected[0, 1], expected[0, 4:], expected[0, :4, 7] = True, True, True
        assert torch.equal(actual, expected)

    def test_a_length_outside_of_the_room_reads_nothing_outside(self, attend):
        q, k, v, table, n = inputs_of(workload(B=2, N=96, full=True))
        with watched_memory({"k": k, "v": v, "table": table}) as memory:
            out = attend(q, k, v, table, lengths(2**31 - 1, -3))

        assert memory.findings == []
        torch.testing.assert_close(out[0], attend(q, k, v, table, n)[0])
        assert not out[1].any()

    def test_8_bits_are_exact_however_large_a_query_is(self, attend):
        """The products are of float16, whose range q may leave: not in this test's type, but its rows may be small."""
        w = workload(B=3, fp8=True, N=100)
        q, *others = inputs_of(w)
        for factor in (1.0, 2.0**-12):
            inputs = (factor * q, *others)
            inputs = (inputs[0], *others[:4], others[4] / factor, others[5])
            assert error(attend(*inputs), inputs) <= PROBLEM.max_error(w) / 4


# --- parts and tickets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True])
def test_the_order_of_programs_changes_no_bit(full):
    """Three heads share, so a merge has a row that no query has; full, it reads the very last part."""
    inputs = inputs_of(workload(B=2, H=3, KV=1, N=250, D=128, full=full))
    expected = k02_split.paged_attention(*inputs, splits=4)
    for seed in range(2):
        with watched_memory(shuffle=seed) as memory:
            out = k02_split.paged_attention(*inputs, splits=4)

        assert memory.findings == []
        assert torch.equal(out, expected)


def test_tickets_serve_one_call_after_the_other():
    tickets = torch.zeros(4, dtype=torch.int32)
    for seed, splits in enumerate((4, 1, 3)):
        w = workload(B=2, H=4, KV=2, N=190, D=128)
        inputs = inputs_of(w, seed)
        out = k02_split.paged_attention(*inputs, tickets=tickets, splits=splits)

        assert error(out, inputs) <= PROBLEM.max_error(w)
        assert not tickets.any()


@pytest.mark.parametrize("programs", [1, 2, 5, 64])
def test_any_number_of_programs_shares_out_all_steps(programs):
    """Eleven steps of five sequences and two heads: of one length 0, and one that many programs share."""
    w = workload(B=5, H=2, KV=1, N=330, D=128, PAGE=8, full=True)
    inputs = (*inputs_of(w)[:4], lengths(1, 330, 0, 64, 65))
    tickets = torch.zeros(5, dtype=torch.int32)
    out = k03_even.paged_attention(*inputs, tickets=tickets, programs=programs)
    with watched_memory(shuffle=programs) as memory:
        again = k03_even.paged_attention(*inputs, tickets=tickets, programs=programs)

    # Who goes on to another head after a ticket has not ended with it, as far as the watcher knows: that the parts are
    # there nonetheless, the tickets see to, and the same bits in another order show it.
    assert [found for found in memory.findings if found.kind != ORDER] == []
    assert torch.equal(again, out)
    assert not tickets.any()
    assert error(out, inputs) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("seed", range(3))
def test_steps_at_random_are_shared_out(seed):
    draw = torch.Generator().manual_seed(seed)
    w = workload(B=6, H=2, KV=1, N=260, D=128, full=True)
    q, k, v, table, _ = inputs_of(w, seed)
    n = torch.randint(0, 261, (6,), generator=draw, dtype=torch.int32)
    inputs = q, k, v, table, n
    programs = int(torch.randint(1, 40, (), generator=draw))
    tickets = torch.zeros(6, dtype=torch.int32)

    assert error(
        k03_even.paged_attention(*inputs, tickets=tickets, programs=programs), inputs
    ) <= PROBLEM.max_error(w)
    assert not tickets.any()


def test_other_tickets_are_refused():
    for tickets, refusal, says in (
        (torch.zeros(4), TypeError, "tickets: expected int32, got float32"),
        (torch.zeros(7, dtype=torch.int32), ValueError, "tickets: expected (T,) with T=4, got (7,)"),
    ):
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            k02_split.paged_attention(*inputs_of(workload()), tickets=tickets)
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            k03_even.paged_attention(*inputs_of(workload()), tickets=tickets)


class Recorder:
    """Takes the place of a kernel, and keeps what it was started with."""

    def __init__(self):
        self.calls = []

    def __getitem__(self, grid):
        return lambda *args, **constants: self.calls.append((grid, len(args), constants))


LAUNCHED = [
    (k01_gather, "gather_kernel"),
    (k02_split, "split_kernel"),
    (k03_even, "even_kernel"),
    (k04_prefill, "prefill_kernel"),
]


@pytest.mark.parametrize(("module", "name"), LAUNCHED)
def test_a_launch_is_the_same_whatever_the_lengths_and_asks_the_device_for_nothing(module, name, monkeypatch):
    monkeypatch.setattr(module, name, recorder := Recorder())
    q, k, v, table, n = inputs_of(workload(N=1000))
    given = [(q, k, v, t, m) for t, m in ((table, n), (table.flip(0).contiguous(), lengths(1000, 1, 500, 3)))]
    for reads in ("item", "tolist", "__int__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(
            torch.Tensor, reads, lambda *how: pytest.fail("looked at what lies on the device")
        )
    for inputs in given:
        module.paged_attention(*inputs)

    first, second = recorder.calls
    assert first == second


@pytest.mark.parametrize(
    ("resident", "heads", "steps", "splits"),
    [
        *(
            (3, 8, 16, 16),
            (3, 8, 1024, 49),
            (3, 128, 256, 3),
            (3, 256, 64, 1),
            (3, 396, 64, 1),
            (3, 397, 64, 4),
        ),
        *(
            (3, 512, 64, 3),
            (1, 8, 512, 16),
            (1, 128, 128, 1),
            (1, 133, 64, 4),
            (1, 200, 64, 3),
            (1, 512, 32, 1),
        ),
    ],
)
def test_how_many_parts_an_h200_gets(resident, heads, steps, splits, monkeypatch):
    h200 = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: h200)
    card = torch.device("cuda", 0)
    for kept in (k02_split.splits_for, k03_even.programs_for):
        kept.cache_clear()

    assert k02_split.splits_for(card, heads, steps, resident) == splits
    assert k03_even.programs_for(card, heads, steps, resident) == min(132 * resident, heads * steps)
    for kept in (k02_split.splits_for, k03_even.programs_for):
        kept.cache_clear()


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_a_large_step_is_for_cards_that_have_room_for_it(capability, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    k01_gather.loop_of.cache_clear()
    card = torch.device("cuda", 0)

    assert (k01_gather.loop_of(2, card) is k01_gather.LARGE) == (capability in ((9, 0), (10, 0)))
    assert k01_gather.loop_of(1, card) is k01_gather.OF_8
    k01_gather.loop_of.cache_clear()
    assert k01_gather.loop_of(2, torch.device("cpu")) is k01_gather.SMALL


# --- many new tokens --------------------------------------------------------------------------------------


def true_prefill(q, k, v, table, n, *scales):
    """Every new token over those up to its own: (B, M, H, D) float64."""
    _, M, H, D = q.shape
    KV, PAGE = k.shape[1:3]
    out = torch.zeros(q.shape, dtype=torch.float64)
    for b, length in enumerate(n.tolist()):
        pages = table[b, : -(-length // PAGE)].long()
        keys, values = (x[pages].double().transpose(0, 1).reshape(KV, -1, D)[:, :length] for x in (k, v))
        if scales:
            keys, values = (
                keys * scales[0].double()[:, None, None],
                values * scales[1].double()[:, None, None],
            )
        keys, values = (x.repeat_interleave(H // KV, 0) for x in (keys, values))
        scores = q[b].double().transpose(0, 1) @ keys.transpose(1, 2) / D**0.5  # [H, M, length]
        unseen = torch.arange(length) > (length - M + torch.arange(M))[:, None]
        out[b] = (
            torch.softmax(scores.masked_fill(unseen, -torch.inf), -1).nan_to_num(0.0) @ values
        ).transpose(0, 1)
    return out


def test_the_truth_of_many_new_tokens_is_that_of_each():
    w = workload(B=2, H=4, KV=2, N=40, full=True, fp8=True)
    _, k, v, table, _, *scales = inputs_of(w)
    q, n = torch.randn(2, 5, 4, 64, generator=torch.Generator().manual_seed(1)).half(), lengths(40, 3)
    found = true_prefill(q, k, v, table, n, *scales)
    for m in range(5):
        each = reference(q[:, m], k, v, table, (n - 5 + m + 1).clamp(min=0), *scales)
        torch.testing.assert_close(found[:, m], each)


@pytest.mark.parametrize(
    ("M", "H", "KV", "D", "PAGE", "fp8"),
    [
        (1, 4, 2, 64, 16, False),
        (33, 4, 1, 128, 8, False),
        (50, 6, 2, 64, 64, False),
        (44, 3, 1, 64, 32, True),
    ],
)
def test_many_new_tokens_see_what_lies_before_them(M, H, KV, D, PAGE, fp8):
    """One sequence is the new tokens alone, one has fewer of them, one none, and one has much before them."""
    w = workload(B=4, H=H, KV=KV, N=150, PAGE=PAGE, D=D, fp8=fp8, full=True)
    _, k, v, table, _, *scales = inputs_of(w)
    n = lengths(M, max(M - 3, 0), 0, 150)
    behind = torch.arange(table.shape[1]) >= -(-n[:, None] // PAGE)
    table = table.masked_fill(behind, NOBODY[1])
    q = torch.randn(4, M, H, D, generator=torch.Generator().manual_seed(1)).half()
    with watched_memory({"k": k, "v": v, "table": table}, shuffle=1) as memory:
        out = k04_prefill.paged_prefill(q, k, v, table, n, *scales)

    assert memory.findings == []
    assert out.dtype is torch.float16
    truth = true_prefill(q, k, v, table, n, *scales)
    assert worst_error(out, truth, rows_apart=True) <= PROBLEM.max_error(w)
    assert not out[2].any()


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_diagonal_one_off_is_told(shift):
    """A model of the fault: tokens that see one more, or one less, than those up to their own."""
    w = workload(B=2, H=2, KV=1, N=60, full=True)
    _, k, v, table, n = inputs_of(w)
    k, v = k.nan_to_num(1.0), v.nan_to_num(1.0)
    q = torch.randn(2, 10, 2, 64, generator=torch.Generator().manual_seed(1)).half()
    truth = true_prefill(q, k, v, table, n)
    off = true_prefill(
        q, k, v, table, n + shift
    )  # as many more keys lie in the last page, and in no row's sight

    assert not worst_error(off[:, :-1], truth[:, :-1], rows_apart=True) <= 4 * PROBLEM.max_error(w)


def test_a_prompt_in_pieces_is_answered_as_in_one():
    w = workload(B=2, N=80, full=True)
    _, k, v, table, n = inputs_of(w)
    q = torch.randn(2, 80, 4, 64, generator=torch.Generator().manual_seed(1)).half()
    whole = k04_prefill.paged_prefill(q, k, v, table, n)
    pieces = [
        k04_prefill.paged_prefill(q[:, a:b].contiguous(), k, v, table, torch.full_like(n, b))
        for a, b in ((0, 17), (17, 64), (64, 80))
    ]

    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=2e-3, atol=2e-3)


def test_what_a_prefill_refuses():
    given = {name: x for name, x in GIVEN.items() if name != "q"}
    for q, says in (
        (torch.zeros(2, 4, 64).half(), "q: expected (B, M, H, D) with no empty dimension, got (2, 4, 64)"),
        (torch.zeros(2, 3, 5, 64).half(), "q: expected H a multiple of KV=2, at most 64 times it, got H=5"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            k04_prefill.paged_prefill(q, **given)


# --- what a launcher refuses ------------------------------------------------------------------------------

POOL = (3, 2, 16, 64)
EIGHT = torch.zeros(POOL).to(torch.float8_e4m3fn)
SCALES = torch.ones(2)
GIVEN = {
    "q": torch.zeros(2, 4, 64).half(),
    "k_pages": torch.zeros(POOL).half(),
    "v_pages": torch.zeros(POOL).half(),
    "block_table": torch.zeros(2, 3, dtype=torch.int32),
    "lengths": torch.ones(2, dtype=torch.int32),
}
# The sentence, and what calls it forth.
WRONG_TYPES = {
    "q: expected bfloat16 or float16, got float32": {"q": torch.zeros(2, 4, 64)},
    "k_pages: expected float16 or float8_e4m3fn, got bfloat16": {"k_pages": torch.zeros(POOL).bfloat16()},
    "v_pages: expected float16, got float8_e4m3fn": {"v_pages": EIGHT},
    "block_table: expected int32, got int64": {"block_table": torch.zeros(2, 3).long()},
    "lengths: expected int32, got int64": {"lengths": torch.ones(2).long()},
    "k_scale: expected none with pages of float16, got one": {"k_scale": SCALES},
    "v_scale: expected a torch.Tensor, got NoneType": {"k_pages": EIGHT, "v_pages": EIGHT, "k_scale": SCALES},
    "k_scale: expected float32, got float16": {
        "k_pages": EIGHT, "v_pages": EIGHT, "k_scale": SCALES.half(), "v_scale": SCALES
    },
}  # fmt: skip
WRONG_VALUES = {
    "q: expected (B, H, D) with no empty dimension, got (2, 4, 1, 64)": {"q": torch.zeros(2, 4, 1, 64).half()},
    "v_pages: expected (PAGES, KV, PAGE, D) with PAGE=16, got (3, 2, 8, 64)": {
        "v_pages": torch.zeros(3, 2, 8, 64).half()
    },
    "k_pages: expected contiguous (PAGES, KV, PAGE, D), got strides (2048, 64, 128, 1)": {
        "k_pages": torch.zeros(3, 16, 2, 64).half().transpose(1, 2)
    },
    "block_table: expected (B, MOST) with B=2, got (1, 3)": {"block_table": torch.zeros(1, 3, dtype=torch.int32)},
    "lengths: expected (B,) with B=2, got (1,)": {"lengths": torch.ones(1, dtype=torch.int32)},
    "lengths: expected a tensor on cpu, got meta": {"lengths": GIVEN["lengths"].to("meta")},
    "v_scale: expected (KV,) with KV=2, got (1,)": {
        "k_pages": EIGHT, "v_pages": EIGHT, "k_scale": SCALES, "v_scale": torch.ones(1)
    },
    "q: expected D = 64 or 128, got D=96": {
        "q": torch.zeros(2, 4, 96).half(), **dict.fromkeys(("k_pages", "v_pages"), torch.zeros(3, 2, 16, 96).half())
    },
    "k_pages: expected PAGE = 8, 16, 32, 64, 128 or 256, got PAGE=24": dict.fromkeys(
        ("k_pages", "v_pages"), torch.zeros(3, 2, 24, 64).half()
    ),
    "q: expected H a multiple of KV=2, at most 64 times it, got H=5": {"q": torch.zeros(2, 5, 64).half()},
    "q: expected H a multiple of KV=2, at most 64 times it, got H=130": {"q": torch.zeros(2, 130, 64).half()},
    "k_pages: expected an address divisible by 16, got one 2 bytes past it": {
        "k_pages": torch.zeros(3 * 2 * 16 * 64 + 1).half()[1:].view(POOL)
    },
}  # fmt: skip
REFUSED = [(TypeError, *case) for case in WRONG_TYPES.items()]
REFUSED += [(ValueError, *case) for case in WRONG_VALUES.items()]


@pytest.mark.parametrize(("refusal", "says", "other"), REFUSED, ids=[says for _, says, _ in REFUSED])
def test_what_a_launcher_refuses(refusal, says, other, monkeypatch):
    for module, name in LAUNCHED:
        monkeypatch.setattr(module, name, Recorder())
        assert module.paged_attention(**GIVEN).shape == (2, 4, 64)
        with pytest.raises(refusal, match=f"^{re.escape(says)}$"):
            module.paged_attention(**GIVEN | other)


@pytest.mark.parametrize(
    ("B", "KV", "MOST", "says"),
    [
        (1, 1, 2**26 + 1, "block_table: expected MOST * PAGE <= 1073741824, got MOST * PAGE=1073741840"),
        (65536, 1, 1, "q: expected B <= 65535, got B=65536"),
        (1, 65536, 1, "k_pages: expected KV <= 65535, got KV=65536"),
    ],
)
def test_what_the_grid_and_32_bits_do_not_hold(B, KV, MOST, says):
    """No memory behind these: a tensor on the device `meta` has a shape only."""
    q = torch.empty(B, KV, 64, dtype=torch.float16, device="meta")
    pool = torch.empty(1, KV, 16, 64, dtype=torch.float16, device="meta")
    table, n = (torch.empty(shape, dtype=torch.int32, device="meta") for shape in ((B, MOST), (B,)))

    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        arguments.sizes_of(q, pool, pool, table, n)


def test_more_sequences_than_a_program_holds_are_refused():
    table, n = torch.zeros(8193, 1, dtype=torch.int32), torch.ones(8193, dtype=torch.int32)
    pool = torch.zeros(1, 1, 16, 64).half()
    with pytest.raises(ValueError, match=r"^q: expected B <= 8192, got B=8193$"):
        k03_even.paged_attention(torch.zeros(8193, 1, 64).half(), pool, pool, table, n)


def test_supports():
    yes, also = workload("bfloat16", D=128), workload(H=64, KV=1, fp8=True)
    no = [workload("float32"), workload(D=96), workload(H=7, KV=2), workload(H=65, KV=1), workload(PAGE=24)]

    assert [k02_split.supports(w) for w in (yes, also, *no)] == [True, True, *[False] * 5]
    assert all(k01_gather.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))


# --- the problem ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fp8", [False, True])
def test_the_truth_is_torch_s_over_the_tokens_in_their_order(fp8):
    w = workload(B=5, H=12, KV=4, N=40, PAGE=8, fp8=fp8)
    q, k, v, table, n, *scales = inputs_of(w)
    for b, length in enumerate(n.tolist()):
        if not length:
            continue
        keys, values = (
            torch.stack([x[table[b, at // 8], :, at % 8].double() for at in range(length)], 1) for x in (k, v)
        )
        if scales:
            keys, values = (
                keys * scales[0][:, None, None].double(),
                values * scales[1][:, None, None].double(),
            )
        shared = (x.repeat_interleave(3, dim=0) for x in (keys, values))
        expected = torch.nn.functional.scaled_dot_product_attention(q[b, :, None].double(), *shared)[:, 0]

        torch.testing.assert_close(reference(q, k, v, table, n, *scales)[b], expected)


def test_inputs_leave_to_nobody_what_the_contract_does():
    w = workload(B=6, N=100)
    _, k, v, table, n = inputs_of(w)
    used = [table[b, : -(-length // w.PAGE)].tolist() for b, length in enumerate(n.tolist())]
    pages = [page for row in used for page in row]

    assert sorted(n.tolist()) == sorted(lengths_of(w))
    assert len(set(pages)) == len(pages) == pages_of(w) == len(k) - (w.B - 1)
    assert pages != sorted(pages)
    for b, row in enumerate(used):
        assert set(table[b, len(row) :].tolist()) <= set(NOBODY)
        for place, page in enumerate(row):
            held = min(int(n[b]) - place * w.PAGE, w.PAGE)
            for x in (k, v):
                assert torch.isfinite(x[page, :, :held]).all()
                assert x[page, :, held::2].isnan().all()
                assert torch.isfinite(x[page, :, held + 1 :: 2]).all()
    spare = sorted(set(range(len(k))) - set(pages))
    assert k[spare].isnan().all()
    assert v[spare].isnan().all()
    assert {int(x) for seed in range(4) for x in inputs_of(w, seed)[3].view(-1)} >= set(NOBODY)


def test_bytes_and_operations_count_what_is_there():
    w = Workload.of("bfloat16", B=4, H=8, KV=2, N=1000, PAGE=16, D=128)
    tokens = 1000 + 1 + 0 + lengths_of(w)[3]
    pages = 63 + 1 + 0 + -(-lengths_of(w)[3] // 16)

    assert (tokens_of(w), pages_of(w)) == (tokens, pages)
    assert PROBLEM.reads_bytes(w) == 2 * (4 * 8 * 128 + 2 * 2 * tokens * 128) + 4 * pages + 4 * 4
    eight = Workload.of("bfloat16", B=4, H=8, KV=2, N=1000, PAGE=16, D=128, fp8=True)
    assert cache_dtype(eight) == "float8_e4m3fn"
    assert PROBLEM.reads_bytes(w) - PROBLEM.reads_bytes(eight) == 2 * 2 * tokens * 128 - 2 * 2 * 4
    assert PROBLEM.flops(w) == 4 * 8 * 128 * tokens


# --- the library ------------------------------------------------------------------------------------------


def test_torch_s_copy_is_right_where_the_cache_is_full():
    w = workload(B=2, N=64, full=True)
    competitor = Competitor("library", PROBLEM, library.sdpa_gathered)

    assert checked_error(competitor, w, device="cpu") <= PROBLEM.max_error(w)


class Wrapper:
    """FlashInfer's wrapper of a decode, as far as it is used, over torch."""

    made = 0

    def __init__(self, workspace, kv_layout, *, use_tensor_cores):
        assert (workspace.numel(), kv_layout) == (library.WORKSPACE_BYTES, "HND")
        Wrapper.made += 1

    def plan(self, indptr, indices, last_page_len, H, KV, D, PAGE, *, q_data_type, kv_data_type):
        assert indptr.device.type == last_page_len.device.type == "cpu"
        assert (last_page_len == PAGE).all()
        self.table = indices.view(len(indptr) - 1, -1)
        assert self.table.shape[1] == indptr[1]

    def run(self, q, pages):
        k, v = pages
        room = torch.full((len(q),), self.table.shape[1] * k.shape[2], dtype=torch.int32)
        return reference(q, k, v, self.table, room).to(q.dtype)


def test_flashinfer_plans_once_and_is_given_pages_and_table_as_they_lie(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "flashinfer", types.SimpleNamespace(BatchDecodeWithPagedKVCacheWrapper=Wrapper)
    )
    monkeypatch.setattr(library, "flashinfer_version", lambda: "0.5.3")
    library._plan.cache_clear()
    w = workload(B=2, N=64, full=True)
    competitor = Competitor("library", PROBLEM, library.flashinfer_tensor_cores)
    before = Wrapper.made
    # The check fills the same tensors with other values, the table among them, and asks again.
    assert checked_error(competitor, w, device="cpu") <= PROBLEM.max_error(w)
    assert Wrapper.made == before + 1
    library._plan.cache_clear()

    q, *others = inputs_of(workload(B=2, N=64, full=True, fp8=True))
    with pytest.raises(
        TypeError, match=r"^k_pages: expected torch.float16, the type of q, got torch.float8_e4m3fn$"
    ):
        library.flashinfer_decode(q, *others[:4])


def test_without_flashinfer_one_line_says_so(monkeypatch):
    def not_installed(name):
        raise PackageNotFoundError(name)

    library.flashinfer_version.cache_clear()
    monkeypatch.setattr(library, "version", not_installed)
    says = "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
    for function in (library.flashinfer_decode, library.flashinfer_tensor_cores):
        with pytest.raises(RuntimeError, match=f"^{says}$"):
            function(*inputs_of(workload()))
    library.flashinfer_version.cache_clear()


# --- a tolerance that means something ---------------------------------------------------------------------


def by_parts(
    q, k, v, table, n, k_scale=None, v_scale=None, *,
    share=None, past=0, repaired=True, order=lambda pages: pages, shift=0, scaled=(True, True),
):  # fmt: skip
    """The answer in two parts, with what a fault may change."""
    B, H, D = q.shape
    KV, PAGE = k.shape[1:3]
    out = torch.zeros(B, H, D)
    for b, length in enumerate(n.tolist()):
        there = max(1, min(length + past, PAGE * -(-length // PAGE)))
        pages = order(table[b, : -(-length // PAGE)].long())
        for h in range(H if length else 0):
            kv = (share or (lambda h: h // (H // KV)))(h)
            keys, values = (x[pages, kv].float().roll(shift, 1).view(-1, D)[:there] for x in (k, v))
            if k_scale is not None:
                keys = keys * k_scale[kv] if scaled[0] else keys / 32
                values = values * v_scale[kv] if scaled[1] else values * v_scale[0]
            scores = keys @ q[b, h].float() / D**0.5
            parts = [
                (s.max(), (s - s.max()).exp(), x)
                for s, x in zip(scores.chunk(2), values.chunk(2), strict=True)
            ]
            top = max(m for m, _, _ in parts)
            weights = [((m - top).exp() if repaired else 1.0) for m, _, _ in parts]
            total = sum(w * p.sum() for w, (_, p, _) in zip(weights, parts, strict=True))
            out[b, h] = sum(w * (p @ x) for w, (_, p, x) in zip(weights, parts, strict=True)) / total
    return out.to(q.dtype)


def judged(dtype="float16", fp8=False, **fault):
    w = workload(dtype, B=4, H=4, KV=2, N=70, fp8=fp8)
    competitor = Competitor("a model of one", PROBLEM, lambda *inputs: by_parts(*inputs, **fault))
    return checked_error(competitor, w, device="cpu") / PROBLEM.max_error(w)


@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_right_answer_by_parts_is_taken(dtype, fp8):
    assert judged(dtype, fp8) <= 0.5


FAULTS = {
    "one too many": {"past": 1},
    "one too few": {"past": -1},
    "parts not repaired": {"repaired": False},
    "h % KV": {"share": lambda h: h % 2},
    "pages in the order of the pool": {"order": lambda pages: pages.sort().values},
    "pages side by side, no table": {"order": lambda pages: pages[:1] * 0 + torch.arange(len(pages))},
    "tokens one place on in their page": {"shift": 1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_one_is_refused(fault):
    with pytest.raises(WrongResult):
        judged("bfloat16", **FAULTS[fault])


@pytest.mark.parametrize(
    "scaled", [(False, True), (True, False)], ids=["keys by one scale", "values by the first"]
)
def test_a_scale_of_another_head_is_refused(scaled):
    with pytest.raises(WrongResult):
        judged(fp8=True, scaled=scaled)
