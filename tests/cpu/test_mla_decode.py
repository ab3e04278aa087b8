"""MLA decode: the Triton kernels in the interpreter, the Hopper kernel on the CPU's stand-in; faults; absorption."""

import re
import sys
import types
from collections import Counter
from fractions import Fraction
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_judge.worker.interpreter import watched_memory
from course_kernels.cuda.compile import compile_cubin
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.mla_decode import absorb, arguments, k01_one_program, k02_split, k03_wgmma, library
from course_kernels.mla_decode.k03_wgmma import Ideas
from course_kernels.mla_decode.problem import (
    LATENT,
    MAX_ERROR,
    NOBODY,
    PAGE,
    PROBLEM,
    ROW,
    SCALE,
    lengths_of,
    pages_of,
    reference,
    tokens_of,
)
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

SOURCE = k03_wgmma.SOURCE.read_text(encoding="utf-8")
IN_PARTS = k02_split.mla_decode
KERNELS = [
    pytest.param(k01_one_program.mla_decode, id="k01"),
    pytest.param(lambda *inputs: IN_PARTS(*inputs, splits=3), id="k02 in 3 parts"),
]


def workload(dtype="float16", B=4, H=16, N=200, **flags):
    return Workload.of(dtype, B=B, H=H, N=N, **flags)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def error(out, inputs):
    """How far off, in units of what is allowed."""
    allowed = MAX_ERROR[str(out.dtype).removeprefix("torch.")]
    return worst_error(out, reference(*inputs), rows_apart=True) / allowed


def lengths(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    """A call of the Hopper kernels' launcher, here; `text` in the place of one's source. It notes what each took."""
    prepare = prepare_in(tmp_path_factory.mktemp("mla"))
    made, how = {}, {}

    def prepared(path, name, *, before_the_last_grid_ended=False, **given):
        text = how["text"] if name == how["kernel"] else None
        key = name, text, str(sorted(given["defines"].items()))
        if key not in made:
            made[key] = prepare(path, name, text=text, **given)

        def noted(grid, *args):
            call.took[name] = grid, args
            return made[key](grid, *args)

        return noted

    def call(*inputs, text=None, kernel="mla_decode_wgmma", **more):
        how.update(text=text, kernel=kernel)
        k03_wgmma._kernels.cache_clear()
        return k03_wgmma.mla_decode(*inputs, **more)

    call.took = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(k03_wgmma, "prepare", prepared)
        patch.setattr(k03_wgmma, "tensor_map", tensor_map)
        patch.setattr(k03_wgmma, "is_hopper", lambda device: True)
        yield call
    k03_wgmma._kernels.cache_clear()


def parts_of(hopper):
    """The first and the last group that had a part of each sequence, at the last call."""
    return hopper.took["mla_decode_add_parts"][1][2].tolist()


# --- the answer, in Triton --------------------------------------------------------------------------------


@pytest.mark.parametrize("w", [workload(N=100), workload(B=1, H=70, N=65)], ids=lambda w: w.label)
@pytest.mark.parametrize("attend", KERNELS)
def test_it_is_right_and_reads_nothing_outside(attend, w):
    """Behind the last page of a sequence a table holds numbers of no page at all: whoever reads by them is caught."""
    inputs = inputs_of(w)
    with watched_memory({"cache": inputs[1], "table": inputs[2]}) as memory:
        out = attend(*inputs)

    assert memory.findings == []
    assert out.dtype is inputs[0].dtype
    assert error(out, inputs) <= 1


@pytest.mark.parametrize("attend", KERNELS)
def test_whoever_reads_by_an_entry_of_nobody_is_caught(attend):
    q, cache, table, n = inputs_of(workload(B=3, H=1, N=128))
    with watched_memory({"cache": cache, "table": table}) as memory:
        attend(q, cache, table, torch.where(n < 64, n + 64, n))

    assert memory.findings


@pytest.mark.parametrize("splits", [1, 7])
def test_any_number_of_parts_is_right(splits):
    inputs = inputs_of(workload(B=3, H=3, N=230))

    assert error(IN_PARTS(*inputs, splits=splits), inputs) <= 1


def test_how_a_card_is_filled(monkeypatch):
    monkeypatch.setattr(k02_split, "multiprocessors", lambda device: 132)
    k02_split.splits_for.cache_clear()
    cut = [k02_split.splits_for(torch.device("cpu"), 2 * B, 64) for B in (1, 4, 64, 128)]
    k02_split.splits_for.cache_clear()

    assert cut == [64, 16, 1, 1]


# --- the answer, on Hopper --------------------------------------------------------------------------------

HOW = [
    ("bfloat16", 3, 128, 127, 2, Ideas(cluster=True)),  # one sequence of length 0; both blocks in a cluster
    ("bfloat16", 2, 100, 700, 3, Ideas()),  # cut amid; rows that no head has
    ("bfloat16", 2, 128, 193, 1, Ideas(cluster=True)),  # one group has them all
    ("bfloat16", 1, 128, 4600, 70, Ideas()),  # more parts than a warp has lanes
    ("float16", 5, 16, 500, 4, Ideas()),  # one block
    ("float16", 1, 1, 64, 3, Ideas()),  # groups without work
    ("float16", 4, 65, 300, 5, Ideas(slack=0, once=True, ahead=True)),
]


@pytest.mark.parametrize(("dtype", "B", "H", "N", "groups", "ideas"), HOW)
def test_on_hopper_it_is_right(hopper, dtype, B, H, N, groups, ideas):
    inputs = inputs_of(workload(dtype, B=B, H=H, N=N))
    before = [x.clone() for x in inputs]
    out = hopper(*inputs, groups=groups, ideas=ideas)

    assert error(out, inputs) <= 1
    assert all(torch.equal(x.nan_to_num(7), y.nan_to_num(7)) for x, y in zip(inputs, before, strict=True))
    assert torch.equal(hopper(*inputs, groups=groups, ideas=ideas), out)


def test_equal_sequences_stay_whole_and_a_long_one_is_cut_for_all(hopper):
    """Where each group gets a sequence nothing is cut; one sequence is cut so that every group has a share of it."""
    equal = inputs_of(workload(B=3, N=256, full=True))
    assert error(hopper(*equal, groups=3), equal) <= 1
    assert parts_of(hopper) == [[0, 0], [1, 1], [2, 2]]

    long = inputs_of(workload(B=1, N=1500, full=True))
    assert error(hopper(*long, groups=4), long) <= 1
    assert parts_of(hopper) == [[0, 3]]

    uneven = *inputs_of(workload(B=4, N=1500, full=True))[:3], lengths(1500, 64, 0, 64)
    assert error(hopper(*uneven, groups=3), uneven) <= 1
    assert parts_of(hopper) == [[0, 1], [2, 2], [2, 2], [2, 2]]  # nothing shorter is left of the first


SHARES = """
extern "C" __global__ void __launch_bounds__(THREADS) shares(const int *lengths, int *cuts, int B, int MOST) {
  extern __shared__ __align__(1024) char memory[];
  const Sizes sizes = {B, 1, MOST, static_cast<int>(gridDim.x), 1, nullptr, lengths};
  Cut begin, end;
  share_out(reinterpret_cast<int *>(memory), sizes, blockIdx.x, begin, end);
  int *mine = cuts + blockIdx.x * 4;
  if (threadIdx.x == 0 && blockIdx.x == 0) cuts[gridDim.x * 4] = sizeof(Shared);
  if (threadIdx.x == THREADS / 2) mine[0] = begin.b, mine[1] = begin.page, mine[2] = end.b, mine[3] = end.page;
}
"""


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """shares(lengths, groups, MOST): what each group begins and ends with, [groups, 4]."""
    prepare = prepare_in(tmp_path_factory.mktemp("shares"))
    kernel = prepare(k03_wgmma.SOURCE, "shares", block=384, shared_bytes=73728, text=SOURCE + SHARES)

    def call(n, groups, most):
        cuts = torch.full((groups * 4 + 1,), -1, dtype=torch.int32)
        kernel(groups, n, cuts, len(n), most)
        assert cuts[-1] == k03_wgmma.SHARED_BYTES
        return cuts[:-1].view(groups, 4).tolist()

    return call


def test_every_page_has_one_group_and_shares_are_equal(shares):
    draw = torch.Generator().manual_seed(0)
    cut = 0
    for case in range(60):
        B, groups, most = (int(torch.randint(1, top, (), generator=draw)) for top in (9, 12, 90))
        B = 700 if case == 0 else B  # more than threads
        n = torch.randint(0, most * PAGE + 1, (B,), generator=draw).int()
        n[torch.rand(B, generator=draw) < 0.3] = int(case % 3 == 0)
        pages = [-(-length // PAGE) for length in n.tolist()]
        found = shares(n, groups, most)

        assert found[0][:2] == [0, 0]
        assert found[-1][2:] == [B, 0]
        loads = []
        for i, (b, page, end_b, end_page) in enumerate(found):
            assert (b, page) <= (end_b, end_page)
            assert i == 0 or [b, page] == found[i - 1][2:]
            assert page == 0 or 0 < page < pages[b]
            loads.append(
                sum(pages[b:end_b]) - page + end_page + 3 * (end_b - b + (end_page > 0) - (page > 0))
            )
            cut += end_page > 0
            if page > 0 and end_b >= b:  # where a sequence is cut, no group amid it has nothing
                assert (b, page) < (end_b, end_page)
        all_pages = sum(pages) + 3 * B
        # An equal share, what uncut sequences may be longer, or a short piece on either side.
        assert max(loads) <= all_pages / min(groups, all_pages) + 7
    assert cut > 50


def growing(B, N):
    """Inputs whose scores grow as the tokens go by: a maximum that is moved many times, by much."""
    q, cache, table, n = inputs_of(workload(B=B, H=16, N=N))
    q[...], cache[...] = q.abs() / 4, cache.abs() / 4  # NaN stays
    for b, length in enumerate(n.tolist()):
        for page in range(-(-length // PAGE)):
            cache[table[b, page].long()] *= 1 + page
    return q, cache, table, n


def test_scores_that_grow_and_a_length_out_of_range(hopper):
    inputs = growing(2, 400)
    out = hopper(*inputs, groups=2)
    assert error(out, inputs) <= 1

    q, cache, table, _ = inputs_of(workload(B=2, N=128, full=True))
    room = hopper(q, cache, table, lengths(128, 128), groups=2)
    out = hopper(q, cache, table, lengths(10**6, -5), groups=2)
    assert torch.equal(out[0], room[0])
    assert not out[1].any()


def test_sequences_may_share_pages_and_nan_of_a_token_is_told(hopper):
    q, cache, table, _ = inputs_of(workload(B=3, N=256, full=True))
    table[1:, :2] = table[0, :2]
    inputs = q, cache, table, lengths(256, 129, 128)
    out = hopper(*inputs, groups=2)
    assert error(out, inputs) <= 1

    cache[table[0, 1].long(), 5, 570] = torch.nan  # of a key alone; and all three have it
    assert hopper(*inputs, groups=2).isnan().all()


# Each makes an answer wrong, or is told; so that what the tests above see is known.
FAULTS = {
    "what lies behind the last token is not cleared": ("if (is_short(page)) clear(", "if (false) clear("),
    "the other warpgroup's maxima are not followed": ("    rows.top[half] = top[half];", ""),
    "the answer is not repaired": ("if (they_moved) repair_answer(o, rows);", ""),
    "a page is given back before it was read": (
        "wgmma_wait<0>(o);\n        give_back(0, 0);",
        "give_back(0, 0);\n        wgmma_wait<0>(o);",
    ),
    "nobody waits for the other warp's weights": ("wait(&shared.told[1 - SIDE][warp], told_parity);", ""),
    "one lane says for its warp that the weights are there": (
        "barrier_init(&shared.told[side][warp], 32)",
        "barrier_init(&shared.told[side][warp], 1)",
    ),
    "the rows of Q are given back too soon": ("if (page + 4 >= last) give_q_back();", "give_q_back();"),
    "nobody waits for the other warpgroup's sums": ("wait(&shared.summed, part_parity);", ""),
    "the sum of one warpgroup is left out": ("sum[half] += shared.sums", "sum[half] += 0 * shared.sums"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(hopper, fault):
    right, wrong = FAULTS[fault]
    assert right in SOURCE
    inputs = growing(3, 400)
    try:
        out = hopper(*inputs, text=SOURCE.replace(right, wrong), groups=2)
    except RuntimeError:
        return
    assert not error(out, inputs) <= 1


def test_one_warp_adds_what_four_add(hopper, monkeypatch):
    inputs = inputs_of(workload(B=2, H=16, N=900, full=True))
    by_four = hopper(*inputs, groups=5)
    assert hopper.took["mla_decode_add_parts"][0] == (2, 2, 4)
    monkeypatch.setattr(k03_wgmma, "FEW_HEADS", 31)
    by_one = hopper(*inputs, groups=5)

    assert hopper.took["mla_decode_add_parts"][0] == (2, 2, 1)
    assert torch.equal(by_one, by_four)
    assert error(by_one, inputs) <= 1
    monkeypatch.undo()
    assert SOURCE.count("head, blockIdx.z)") == 1
    wrong = SOURCE.replace("head, blockIdx.z)", "head, 0)")
    same_piece = hopper(*inputs, text=wrong, kernel="mla_decode_add_parts", groups=5)
    assert not error(same_piece, inputs) <= 1


def test_sequences_come_out_even_where_few_blocks_are_lost():
    def groups(B, places, most=64):
        return k03_wgmma.groups_of(B, places, pages=B * most)

    assert [groups(B, 66) for B in (64, 128, 65, 66, 132)] == [64, 64, 65, 66, 66]
    assert [groups(B, 66) for B in (8, 63, 100)] == [66] * 3
    assert [groups(B, 1) for B in (1, 3)] == [1, 1]
    assert groups(5, 0) == 1


def test_few_pages_go_to_few_groups_and_every_sequence_still_has_one():
    of_one = [k03_wgmma.groups_of(1, 66, pages=pages) for pages in (1024, 264, 128, 64, 4, 1, 0)]

    assert of_one == [66, 66, 32, 16, 1, 1, 1]
    assert [k03_wgmma.groups_of(B, 66, pages=B) for B in (2, 40, 66, 300)] == [2, 40, 66, 66]
    assert k03_wgmma.groups_of(8, 66, pages=8 * 16) == 32


def test_a_part_that_is_added_wrongly_is_seen(hopper, monkeypatch):
    inputs = inputs_of(workload(B=1, H=16, N=1500, full=True))
    hopper(*inputs, groups=3)
    grid, args = hopper.took["mla_decode_add_parts"]
    parts, weights, first_and_last, o, H = args
    whole = o.clone()
    weights[H : 2 * H] += 1  # of the first part
    k03_wgmma._kernels(-1, 1, True, Ideas())[1](grid, parts, weights, first_and_last, o, H)

    assert error(whole, inputs) <= 1
    assert not error(o, inputs) <= 1


# --- what the assembler made of it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "ideas"), [(1, Ideas()), (2, Ideas()), (2, Ideas(cluster=True)), (2, Ideas(ahead=True))]
)
def test_products_run_together_and_nothing_spills(blocks, ideas):
    pytest.importorskip("cuda.core")
    text = sass(compile_cubin(k03_wgmma.SOURCE, "sm_90a", k03_wgmma.defines_of(blocks, False, ideas)))
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text)
    names = Counter(name.partition(".")[0] for name in found)

    assert not {"LDL", "STL"} & set(names)
    assert names["UTMAPF"] == (9 if ideas.ahead else 0)
    # Of each warpgroup: a first page and the loop's, 36 products of keys each; of values four for either page.
    assert names["HGMMA"] == 2 * (2 * 36 + 8)
    waits = [i for i, name in enumerate(found) if name == "WARPGROUP.DEPBAR.LE"]
    assert len(waits) == 10, "a wait behind every product: the assembler gave up on running them together"
    # The odd pages' exponentials run beside the product with the even ones' values.
    products = [i for i, name in enumerate(found) if name.startswith("HGMMA.64x256")]
    beside = [
        sum(name == "MUFU.EX2" for name in found[a:b])
        for a, b in ((max(p for p in products if p < wait), wait) for wait in waits if wait > products[0])
    ]
    assert max(beside) >= 32


# --- what a launcher refuses ------------------------------------------------------------------------------

GIVEN = {
    "q": torch.zeros(2, 4, ROW).half(),
    "cache": torch.zeros(3, PAGE, ROW).half(),
    "block_table": torch.zeros(2, 3, dtype=torch.int32),
    "lengths": torch.ones(2, dtype=torch.int32),
}
WRONG = [
    (TypeError, "q: expected bfloat16 or float16, got float32", {"q": torch.zeros(2, 4, ROW)}),
    (TypeError, "cache: expected float16, got bfloat16", {"cache": torch.zeros(3, PAGE, ROW).bfloat16()}),
    (TypeError, "block_table: expected int32, got int64", {"block_table": torch.zeros(2, 3).long()}),
    (TypeError, "lengths: expected a torch.Tensor, got list", {"lengths": [1, 1]}),
    (ValueError, "q: expected D=576, got D=512", {"q": torch.zeros(2, 4, 512).half()}),
    (ValueError, "q: expected (B, H, D) with no empty dimension, got (2, 576)", {"q": torch.zeros(2, ROW).half()}),
    (ValueError, "cache: expected PAGE=64, got PAGE=16", {"cache": torch.zeros(3, 16, ROW).half()}),
    (ValueError, "block_table: expected (B, MOST) with B=2, got (1, 3)", {"block_table": torch.zeros(1, 3).int()}),
    (ValueError, "q: expected H <= 128, got H=129", {"q": torch.zeros(2, 129, ROW).half()}),
    (
        ValueError,
        "cache: expected an address divisible by 16, got one 2 bytes past it",
        {"cache": torch.zeros(3 * PAGE * ROW + 1).half()[1:].view(3, PAGE, ROW)},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "says", "other"), WRONG, ids=[says for _, says, _ in WRONG])
def test_what_is_refused(hopper, monkeypatch, kind, says, other):
    for attend in (k01_one_program.mla_decode, IN_PARTS, hopper):
        with pytest.raises(kind, match=f"^{re.escape(says)}$"):
            attend(**GIVEN | other) if attend is not hopper else attend(*(GIVEN | other).values())


def test_numbers_and_cards_that_are_refused(hopper, monkeypatch):
    with pytest.raises(ValueError, match=r"^splits: expected at least 1, got 0$"):
        IN_PARTS(**GIVEN, splits=0)
    with pytest.raises(ValueError, match=r"^groups: expected at least 1, got 0$"):
        hopper(*GIVEN.values(), groups=0)
    monkeypatch.setattr(k03_wgmma, "is_hopper", lambda device: False)
    with pytest.raises(RuntimeError, match=r"^q: expected a Hopper GPU \(compute capability 9.0\), got cpu$"):
        k03_wgmma.mla_decode(**GIVEN)
    q, table = torch.empty(8193, 1, ROW, device="meta").half(), torch.empty(8193, 1, device="meta").int()
    cache = torch.empty(1, PAGE, ROW, device="meta").half()
    with pytest.raises(ValueError, match=r"^q: expected B <= 8192, got B=8193$"):
        arguments.sizes_of(q, cache, table, table[:, 0])
    table = torch.empty(129, 2**23, device="meta").int()
    with pytest.raises(
        ValueError, match=r"^block_table: expected B \* MOST <= 1073741824, got B \* MOST=1082130432$"
    ):
        arguments.sizes_of(q[:129], cache, table, table[:, 0].contiguous())


def test_supports():
    for kernel in (k01_one_program, k02_split, k03_wgmma):
        assert all(kernel.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))
        assert not kernel.supports(workload("float32"))
        assert not kernel.supports(workload(H=129))


# --- the problem ------------------------------------------------------------------------------------------


def test_the_truth_is_torch_s_over_the_tokens_in_their_order():
    q, cache, table, n = inputs_of(workload(B=4, H=2, N=70))
    for b, length in enumerate(n.tolist()):
        if length:
            at = torch.arange(length)
            rows = cache[table[b, at // PAGE].long(), at % PAGE].double()
            expected = torch.nn.functional.scaled_dot_product_attention(
                q[b].double(), rows, rows[:, :LATENT], scale=1 / 192**0.5
            )
            torch.testing.assert_close(reference(q, cache, table, n)[b], expected)


def test_inputs_leave_to_nobody_what_the_contract_does():
    w = workload(B=6, N=300)
    _, cache, table, n = inputs_of(w)
    used = [table[b, : -(-length // PAGE)].tolist() for b, length in enumerate(n.tolist())]
    pages = [page for row in used for page in row]

    assert sorted(n.tolist()) == sorted(lengths_of(w))
    assert len(set(pages)) == len(pages) == pages_of(w) == len(cache) - (w.B - 1)
    for b, row in enumerate(used):
        assert set(table[b, len(row) :].tolist()) <= set(NOBODY)
        for place, page in enumerate(row):
            held = min(int(n[b]) - place * PAGE, PAGE)
            assert torch.isfinite(cache[page, :held]).all()
            assert cache[page, held::2].isnan().all()
            assert torch.isfinite(cache[page, held + 1 :: 2]).all()
    assert cache[sorted(set(range(len(cache))) - set(pages))].isnan().all()


def test_bytes_and_operations_count_what_is_there():
    w = Workload.of("bfloat16", B=64, H=128, N=4096, full=True)
    assert tokens_of(w) == 64 * 4096
    assert PROBLEM.flops(w) == 2 * 64 * 128 * 4096 * (576 + 512)
    assert PROBLEM.reads_bytes(w) == 2 * 576 * 64 * (128 + 4096) + 4 * 64 * (64 + 1)
    per_token = absorb.without_making(H=128, R=64, L=512)
    assert PROBLEM.flops(w) == tokens_of(w) * per_token.flops


@pytest.mark.parametrize("dtype", MAX_ERROR)
def test_a_wrong_answer_is_refused_by_the_tolerance(dtype):
    """One token too many, one too few, another scale, values taken a place on: each is far outside."""

    def of(length=0, scale=SCALE, shift=0):
        def attend(q, cache, table, n):
            out = torch.zeros(*q.shape[:2], LATENT)
            for b, own in enumerate(n.tolist()):
                if own:
                    pages = table[b, : -(-own // PAGE)].long()
                    rows = cache[pages].float().view(-1, ROW)[: max(1, own + length)]
                    p = torch.softmax(q[b].float() @ rows.T * scale, -1)
                    out[b] = p @ rows[:, :LATENT].roll(shift, -1)
            return out.to(q.dtype)

        return Competitor("a model of one", PROBLEM, attend)

    w = workload(dtype, B=4, H=2, N=70)
    assert checked_error(of(), w, device="cpu") <= MAX_ERROR[dtype] / 2
    for wrong in (of(length=1), of(length=-1), of(scale=1 / 576**0.5), of(shift=1)):
        with pytest.raises(WrongResult):
            checked_error(wrong, w, device="cpu")


# --- absorption -------------------------------------------------------------------------------------------


def test_two_times_two():
    """One head, two numbers everywhere, two tokens; by hand, without the softmax: keys, then none."""
    W_uk, W_uv = np.array([[[1.0, 2], [0, 1]]]), np.array([[[1.0, 1], [1, -1]]])
    q, c = np.array([[3.0, 1]]), np.array([[1.0, 0], [2, 1]])

    keys = c @ W_uk[0].T
    assert keys.tolist() == [[1, 0], [4, 1]]
    assert (keys @ q[0]).tolist() == [3, 13]
    q_latent = W_uk[0].T @ q[0]
    assert q_latent.tolist() == [3, 7]
    assert (c @ q_latent).tolist() == [3, 13]

    p = np.array([0.5, 0.5])
    assert (p @ (c @ W_uv[0].T)).tolist() == [2, 1]  # values, then their mean
    assert (W_uv[0] @ (p @ c)).tolist() == [2, 1]  # the mean of what is kept, then the matrix

    none = np.zeros((1, 0)), np.zeros((2, 0))
    weights = absorb.Weights(W_uk, W_uv)
    whole, moved = (form(q, none[0], c, none[1], weights) for form in (absorb.naive, absorb.absorbed))
    np.testing.assert_allclose(moved, whole, atol=1e-12)


def test_both_forms_are_one():
    draw = np.random.default_rng(0)
    H, D, V, R, L, N = 5, 12, 10, 4, 24, 40
    q, q_rope, c, r = (draw.standard_normal(shape) for shape in ((H, D), (H, R), (N, L), (N, R)))
    weights = absorb.Weights(draw.standard_normal((H, D, L)) / 5, draw.standard_normal((H, V, L)) / 5)
    whole, moved = (form(q, q_rope, c, r, weights) for form in (absorb.naive, absorb.absorbed))

    assert abs(moved - whole).max() <= 1e-12
    turned = absorb.absorbed(q, q_rope, c, r, weights._replace(W_uk=weights.W_uk[:, ::-1]))
    assert abs(turned - whole).max() > 1e-3, "the matrix of another key is seen"


def test_costs_of_a_token():
    whole = absorb.kept_whole(H=128, D=128, V=128, R=64)
    again = absorb.made_again(H=128, D=128, V=128, R=64, L=512)
    moved = absorb.without_making(H=128, R=64, L=512)

    assert whole == (81920, 81920)
    assert moved == (1152, 278528)
    assert again == (1152, 128 * 256 * 2 * 512 + 81920)
    assert Fraction(moved.flops, moved.n_bytes) == Fraction(2176, 9)
    assert (whole.intensity, int(moved.intensity)) == (1, 241)


# --- the libraries ----------------------------------------------------------------------------------------


def test_torch_s_copy_is_right_where_the_cache_is_full():
    competitor = Competitor("library", PROBLEM, library.sdpa_gathered)

    assert checked_error(competitor, workload(B=2, N=128, full=True), device="cpu") <= MAX_ERROR["float16"]


class Wrapper:
    """FlashInfer's wrapper, as far as it is used, over the truth. Its names are those of its own signature."""

    made = 0

    def __init__(self, float_workspace_buffer, use_cuda_graph=False, *, backend):
        assert (float_workspace_buffer.numel(), backend) == (library.WORKSPACE_BYTES, "fa3")
        Wrapper.made += 1

    def plan(
        self, qo_indptr, kv_indptr, kv_indices, kv_len_arr, num_heads, head_dim_ckv, head_dim_kpe, page_size,
        causal, sm_scale, q_data_type, kv_data_type,
    ):  # fmt: skip
        assert (head_dim_ckv, head_dim_kpe, page_size, causal) == (512, 64, 64, False)
        assert sm_scale == pytest.approx(1 / 192**0.5)
        assert q_data_type is kv_data_type is torch.float16
        assert {x.dtype for x in (qo_indptr, kv_indptr, kv_indices, kv_len_arr)} == {torch.int32}
        assert qo_indptr.tolist() == list(range(len(kv_len_arr) + 1))
        assert kv_indptr[-1] == len(kv_indices)
        self.table, self.lengths = kv_indices.view(len(kv_len_arr), -1), kv_len_arr

    def run(self, q_nope, q_pe, ckv_cache, kpe_cache, out):
        assert (q_nope.shape[-1], q_pe.shape[-1]) == (ckv_cache.shape[-1], kpe_cache.shape[-1]) == (512, 64)
        assert out.is_contiguous()
        q, cache = torch.cat((q_nope, q_pe), -1), torch.cat((ckv_cache, kpe_cache), -1)
        return out.copy_(reference(q, cache, self.table, self.lengths))


def test_flashinfer_plans_once_and_is_given_pages_and_table_as_they_lie(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "flashinfer.mla", types.SimpleNamespace(BatchMLAPagedAttentionWrapper=Wrapper)
    )
    monkeypatch.setattr(library, "flashinfer_version", lambda: "0.6.9")
    library._plan.cache_clear()
    competitor = Competitor("library", PROBLEM, library.flashinfer_fa3)
    before = Wrapper.made

    assert checked_error(competitor, workload(B=2, N=128, full=True), device="cpu") <= MAX_ERROR["float16"]
    assert Wrapper.made == before + 1
    library._plan.cache_clear()


def test_flash_mla_is_asked_as_its_own_text_says(monkeypatch):
    def flash_mla_with_kvcache(
        q, k_cache, block_table, cache_seqlens, head_dim_v, tile_scheduler_metadata, num_splits=None,
        softmax_scale=None, causal=False,
    ):  # fmt: skip
        _, one, _, D = q.shape
        assert (one, D, head_dim_v, k_cache.shape[1:]) == (1, 576, 512, (64, 1, 576))
        assert (tile_scheduler_metadata, num_splits, causal) == ("plan", None, False)
        assert softmax_scale == pytest.approx(1 / 192**0.5)
        out = reference(q[:, 0], k_cache[:, :, 0], block_table, cache_seqlens).to(q.dtype)
        return out[:, None], None

    module = types.SimpleNamespace(
        flash_mla_with_kvcache=flash_mla_with_kvcache, get_mla_metadata=lambda: ("plan", None)
    )
    monkeypatch.setitem(sys.modules, "flash_mla", module)
    monkeypatch.setattr(library, "flash_mla_version", lambda: "1.0.0")
    inputs = inputs_of(workload(B=2, N=128))
    library._flash_mla_plan.cache_clear()

    assert error(library.flash_mla(*inputs), inputs) <= 1
    library._flash_mla_plan.cache_clear()


def test_what_is_not_installed_says_so_in_one_line(monkeypatch):
    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library, "version", not_installed)
    for which, function, says in (
        (library.flashinfer_version, library.flashinfer_fa3, "flashinfer: not installed here: pip install"),
        (library.flash_mla_version, library.flash_mla, "flash_mla: not installed here: build github.com"),
    ):
        which.cache_clear()
        with pytest.raises(RuntimeError, match=f"^{says}") as caught:
            function(*inputs_of(workload(B=1)))
        assert "\n" not in str(caught.value)
        which.cache_clear()
