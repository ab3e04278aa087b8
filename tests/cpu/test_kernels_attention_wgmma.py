"""Attention for Hopper on the CPU's stand-in: every flag and every idea's switch, and what the assembler made of it."""

import re
from collections import Counter
from itertools import pairwise

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels import tune_attention as tune
from course_kernels.attention import k06_wgmma as kernel
from course_kernels.attention import truth
from course_kernels.attention.k06_wgmma import Tile, attend, tile_for
from course_kernels.attention.problem import MAX_ERROR, PROBLEM
from course_kernels.attention_general.problem import PROBLEM as GENERAL
from course_kernels.attention_general.problem import reference_with_lse
from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

SOURCE = kernel.SOURCE.read_text(encoding="utf-8")
IS_HOPPER = kernel.is_hopper


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    """hopper(multiprocessors, text) stands in for the card; the text replaces the kernel's file."""
    prepare = prepare_in(tmp_path_factory.mktemp("attention"))
    with pytest.MonkeyPatch.context() as patch:
        of = {"multiprocessors": 3, "text": None}

        def card(multiprocessors=3, text=None):
            of.update(multiprocessors=multiprocessors, text=text)
            kernel._CALLS.clear()
            kernel._kernel.cache_clear() if text else None

        patch.setattr(
            kernel, "prepare", lambda path, name, **how: prepare(path, name, text=of["text"], **how)
        )
        patch.setattr(kernel, "tensor_map", tensor_map)
        patch.setattr(kernel, "is_hopper", lambda device: True)
        patch.setattr(kernel, "_multiprocessors", lambda device: of["multiprocessors"])
        kernel._kernel.cache_clear()
        yield card
        kernel._kernel.cache_clear()


def drawn(H, KV, Nq, Nk, D, B=1, dtype=torch.bfloat16, large=1.0):
    draw = torch.Generator().manual_seed(Nq + Nk + D)
    shapes = ((B, H, Nq, D), (B, KV, Nk, D), (B, KV, Nk, D))
    q, k, v = (torch.randn(shape, generator=draw) for shape in shapes)
    return (large * q).to(dtype), k.to(dtype), v.to(dtype)


def holds(found, true, dtype):
    (o, lse), (true_o, true_lse) = found, true
    assert worst_error(o, true_o, rows_apart=True) <= MAX_ERROR[str(dtype).removeprefix("torch.")]
    assert torch.equal(lse.isinf(), true_lse.isinf())
    assert torch.equal(o.double()[true_lse.isinf()], true_o[true_lse.isinf()]), "a row without keys is zeros"
    there = true_lse.isfinite()
    torch.testing.assert_close(lse[there].double(), true_lse[there], rtol=1e-4, atol=1e-4)


def by_flash_attention_2(q, k, v):
    """Its order of operations in float32: every step counts from the largest score so far."""
    scale = 1.44269504 / q.shape[-1] ** 0.5
    top, total, answer = torch.tensor(-torch.inf), 0, 0
    for keys, values in zip(k.float().split(128, -2), v.float().split(128, -2), strict=True):
        scores = q.float() @ keys.mT
        larger = torch.maximum(top, scores.amax(-1, keepdim=True))
        repair = torch.exp2((top - larger) * scale)
        weights = torch.exp2((scores - larger) * scale)
        total = total * repair + weights.sum(-1, keepdim=True)
        answer = answer * repair + weights.to(q.dtype).float() @ values
        top = larger
    return (answer / total).to(q.dtype)


def asked(H, KV, Nq, Nk, D, tile=None, B=1, dtype=torch.bfloat16, large=1.0, **how):
    q, k, v = drawn(H, KV, Nq, Nk, D, B, dtype, large)
    holds(attend(q, k, v, tile=tile, **how), truth.attend(q, k, v, **how), dtype)


# --- the answer -------------------------------------------------------------------------------------------


def test_all_keys_and_a_last_tile_that_is_short(hopper):
    hopper(2)
    asked(2, 1, 200, 420, 128, B=2)
    hopper(5)
    asked(3, 3, 1, 17, 128)
    asked(1, 1, 127, 1, 128)


def test_large_scores_and_equal_ones(hopper):
    hopper()
    asked(1, 1, 130, 400, 128, large=40.0)
    q, k, v = (torch.full((1, 1, 130, 128), x, dtype=torch.bfloat16) for x in (0.5, 0.25, 3.0))
    o, lse = attend(q, k, v)
    assert torch.equal(o, v)
    torch.testing.assert_close(lse, truth.attend(q, k, v)[1].float())


@pytest.mark.parametrize(("Nq", "Nk"), [(300, 300), (1, 500), (200, 420), (400, 100), (17, 17)])
def test_causal_is_counted_from_the_end(hopper, Nq, Nk):
    hopper(4)
    asked(4, 2, Nq, Nk, 128, causal=True)


@pytest.mark.parametrize("window", [(70, 30), (0, 0), (1000, 1000)])
def test_a_window_in_float16_where_heads_share(hopper, window):
    hopper()
    asked(6, 2, 300, 500, 64, dtype=torch.float16, window=window)


def test_sequences_one_behind_the_other(hopper):
    hopper(4)
    lengths, keys = [1, 200, 0, 64, 300], [17, 200, 40, 1, 0]
    q, k, v = drawn(2, 1, sum(lengths), sum(keys), 64)
    begins = [
        torch.tensor([0, *(sum(of[: i + 1]) for i in range(5))], dtype=torch.int32) for of in (lengths, keys)
    ]
    found = attend(q, k, v, causal=True, begins=(*begins, max(lengths), max(keys)))
    holds(found, truth.attend_packed(q, k, v, *begins, causal=True), torch.bfloat16)


def test_the_same_by_the_contract_of_general_attention(hopper):
    hopper(3)
    w = Workload.of("bfloat16", B=5, H=4, KV=2, N=150, D=64, W=60, causal=True)
    q, k, v, *starts = GENERAL.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    true, true_lse = reference_with_lse(q, k, v, *starts, causal=True, window=60)
    heads_outside = (x.transpose(0, 1)[None] for x in (q, k, v))  # views: strides are taken as they are
    o, lse = attend(*heads_outside, causal=True, window=(60, 0), begins=(*starts, 150, len(k)))

    assert o[0].transpose(0, 1).is_contiguous()
    holds((o[0], lse[0]), (true.transpose(0, 1), true_lse), torch.bfloat16)


@pytest.mark.parametrize("D", [96, 256])
def test_other_heads(hopper, D):
    hopper()
    asked(2, 1, 200, 300, D, dtype=torch.float16)


@pytest.mark.parametrize(
    ("D", "tile"),
    [
        (64, Tile(consumers=4, block_n=64, stages=4, by_hand=2)),
        (64, Tile(consumers=3, block_n=128, stages=2, turns=False, slack=0, by_hand=4, order=False)),
        (128, Tile(consumers=2, block_n=176, stages=2, cluster=2, own_place=False)),
    ],
)
def test_every_idea_can_be_left_out(hopper, D, tile):
    hopper(2)
    asked(2, 2, 400, 420, D, tile, causal=True)


@pytest.fixture
def broken(hopper):
    """broken(multiprocessors, pattern, by): the kernel with a fault, until the test has ended."""

    def breaks(multiprocessors, pattern, by):
        text, times = re.subn(pattern, by, SOURCE)
        assert times == 1
        hopper(multiprocessors, text)

    yield breaks
    hopper()
    kernel._kernel.cache_clear()


HEAVY = r"\| \(rows.sum\[half\] \* less <= 1\)"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "a heavy weight is rounded"])
@pytest.mark.parametrize(("D", "seed"), [(64, 2), (128, 4)])
def test_large_scores_are_no_less_exact_than_flash_attention_2(hopper, broken, D, seed, whole):
    """Scores up to 40: hardly a row has a second weight, and how the first one is rounded is all that counts."""
    draw = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, 1, n, D, generator=draw).bfloat16() for n in (192, 1024, 1024))
    q = (q * 40 / (q.double() @ k.double().mT / D**0.5).abs().max()).bfloat16()
    true, _ = truth.attend(q, k, v)
    hopper() if whole else broken(3, HEAVY, "")

    ours, theirs = (
        (found.double() - true).abs() for found in (attend(q, k, v)[0], by_flash_attention_2(q, k, v))
    )
    one = 2**-8 * true.abs().max()
    exact = ours.max() <= max(1.25 * theirs.max(), one) and ours.norm() <= 1.02 * theirs.norm()
    assert exact == whole


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "a question too few"])
def test_who_asked_for_work_leaves_a_zero(hopper, broken, whole):
    """So the next call begins with the first work, also when a CUDA graph plays the same call again."""
    hopper(2) if whole else broken(2, r"atomicInc\(sizes.asked, all - 1\)", "atomicInc(sizes.asked, all)")
    kernel._counters.cache_clear()
    q, k, v = drawn(3, 3, 400, 400, 64)
    attend(q, k, v, causal=True)
    zeros = next(kernel._counters(-1))._base
    assert (not zeros.any()) == whole


def test_without_a_question_every_block_has_its_own_work(hopper):
    hopper(5)
    asked(3, 1, 500, 500, 64, Tile(consumers=3, block_n=128, stages=4, asks=False), causal=True)


# Each makes an answer wrong, or is told: so that what the tests above see is known.
FAULTS = {
    "the answer is not repaired": (r"if \(!first && repairs\) repair_answer\(o, repair\);", "", False),
    "a tile is given back before it is read": (
        r"(multiply_values\(tile != end - 2\);)",
        r"give_back(&shared.v_empty[v.stage]); \1",
        False,
    ),
    "a tile that some rows see is given back by all": (
        r"\(max\(sees_to, 0\) \+ BLOCK_N - 1\) / BLOCK_N",
        "max(sees_to, 0) / BLOCK_N",
        True,
    ),
    "who has no rows keeps his turn": (r"(if \(!OVERLAP \|\| tile < work.end - 1)\)", r"\1 && !w)", False),
    "who comes in later keeps his turn": (r"if \(OVERLAP && end < work.end\)", "if (false)", True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_seen(broken, fault):
    pattern, by, causal = FAULTS[fault]
    q, k, v = drawn(1, 1, 400 if causal else 128, 400 if causal else 1000, 64)
    k *= torch.linspace(3, 0.1, k.shape[2])[
        :, None
    ].bfloat16()  # met from the last to the first: the maximum grows
    broken(1, pattern, by)
    with pytest.raises((AssertionError, RuntimeError)):
        holds(attend(q, k, v, causal=causal), truth.attend(q, k, v, causal=causal), torch.bfloat16)


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"q": (1, 2, 8, 64), "k": (1, 2, 8, 64), "dtype": torch.float32}, TypeError, "q: expected bfloat16 or"),
        ({"q": (2, 8, 64), "k": (1, 2, 8, 64)}, ValueError, "q: expected four dimensions"),
        ({"q": (1, 2, 8, 80), "k": (1, 2, 8, 80)}, ValueError, "expected D = 64, 96, 128 or 256, got D=80"),
        ({"q": (1, 3, 8, 64), "k": (1, 2, 8, 64)}, ValueError, "in groups of those of k, got 3 and 2"),
        ({"q": (1, 2, 8, 64), "k": (2, 2, 8, 64)}, ValueError, r"k, v: expected \(1, KV, Nk, 64\)"),
        ({"q": (1, 2, 8, 64), "k": (1, 2, 8, 64), "window": (-1, 0)}, ValueError, "window: expected left and right"),
        (
            {"q": (1, 2, 8, 64), "k": (1, 2, 8, 64), "window": (1, 1), "causal": True},
            ValueError,
            "right 0 with causal",
        ),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(hopper, change, error, says):
    how = dict(change)
    q, k = (torch.zeros(how.pop(name), dtype=how.get("dtype", torch.bfloat16)) for name in "qk")
    how.pop("dtype", None)
    with pytest.raises(error, match=says) as caught:
        attend(q, k, k, **how)
    assert "\n" not in str(caught.value)


def test_nothing_to_do(hopper):
    q, k, v = drawn(2, 1, 5, 0, 64)
    o, lse = attend(q, k, v)
    assert not o.any()
    assert (lse == -torch.inf).all()
    assert attend(*drawn(2, 1, 0, 5, 64))[0].shape == (1, 2, 0, 64)


def test_another_gpu_is_refused(hopper, monkeypatch):
    hopper()
    monkeypatch.setattr(kernel, "is_hopper", IS_HOPPER)
    q, k, v = drawn(2, 1, 5, 5, 64)
    with pytest.raises(RuntimeError, match="expected a Hopper GPU"):
        attend(q, k, v)


def test_no_tensor_is_refused_in_one_line(hopper):
    q, _, v = drawn(2, 1, 5, 5, 64)
    with pytest.raises(TypeError, match="k: expected bfloat16 or float16, one type for q, k and v, got 'k'"):
        attend(q, "k", v)


def test_what_was_let_through_is_known_by_all_that_was_looked_at(hopper):
    """A call like the last one is not looked at again; one that differs in anything is."""
    hopper()
    q, k, v = drawn(2, 2, 40, 40, 64)
    attend(q, k, v)
    assert len(kernel._CALLS) == 1
    holds(attend(k, q, v), truth.attend(k, q, v), torch.bfloat16)
    assert len(kernel._CALLS) == 1
    for other, error in (
        ((q, k, v.half()), TypeError),
        ((q.float(), k.float(), v.float()), TypeError),
        ((q[:, :, :, :32], k[:, :, :, :32], v[:, :, :, :32]), ValueError),
        ((q, k.expand(2, 2, 40, 64), v), ValueError),
        ((q, k, v[:, :, 1:]), ValueError),
    ):
        with pytest.raises(error):
            attend(*other)
    with pytest.raises(ValueError, match="window"):
        attend(q, k, v, causal=True, window=(1, 1))
    assert len(kernel._CALLS) == 1
    across = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    holds(attend(*across), truth.attend(q, k, v), torch.bfloat16)
    asked(2, 2, 40, 40, 64, causal=True)
    asked(2, 2, 40, 40, 64, window=(3, 4))
    asked(2, 2, 40, 40, 64, tile=Tile(consumers=2, block_n=64, stages=2))
    assert len(kernel._CALLS) == 5


def test_it_takes_what_the_problem_asks_of_16_bits():
    taken = {(w.dtype, w.D) for w in PROBLEM.check_on if kernel.supports(w)}
    assert taken == {(dtype, D) for dtype in ("bfloat16", "float16") for D in (64, 128)}
    assert not kernel.supports(Workload.of("bfloat16", B=1, H=1, N=8, D=96))


# --- what the assembler made of it ------------------------------------------------------------------------


def assembled(tile, head, causal):
    """Labels, and instructions with what they take."""
    text = sass(
        compile_cubin(
            kernel.SOURCE, "sm_90a", kernel.defines_of(tile, head, head, False, causal, False, False)
        )
    )
    found = re.findall(r"^(\.L_x_\d+):|/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*?);", text, re.M)
    return [label or (name, rest) for label, name, rest in found]


def main_loop(lines):
    """How often it has each instruction: of the loops with products, the one with the fewest instructions."""
    at = {line: i for i, line in enumerate(lines) if isinstance(line, str)}
    loops = []
    for i, line in enumerate(lines):
        label = re.search(r"\.L_x_\d+", line[1]) if line[0] == "BRA" else None
        if label and at[label[0]] < i:
            inside = [x[0].partition(".")[0] for x in lines[at[label[0]] : i] if isinstance(x, tuple)]
            if "HGMMA" in inside:
                loops.append(Counter(inside))
    return min(loops, key=Counter.total)


def by_threads(loop):
    """How many of its instructions are no uniform ones."""
    return sum(count for name, count in loop.items() if not name.startswith("U"))


@pytest.mark.parametrize("tile", [tile_for(64, 1024), tile_for(128, 1024), tile_for(128, 16384)])
def test_most_steps_of_a_causal_row_cost_no_more_than_those_of_others(tile):
    """Behind the mask's own loop comes the one that has none: the same work, and no branch in the softmax."""
    head = 64 if tile.consumers == 3 else 128
    causal, full = (main_loop(assembled(tile, head, mask)) for mask in (True, False))
    for name in (
        "HGMMA",
        "MUFU",
        "FFMA",
        "FADD",
        "FMUL",
        "FMNMX",
        "F2FP",
        "SHFL",
        "VOTE",
        "BSSY",
        "R2UR",
        "LDL",
    ):
        assert causal[name] == full[name], name
    # In uniform registers some additions of addresses come on top, two more than eight where three warpgroups share a
    # tile. They take an issue slot like any other; what a thread computes is as much as without a mask.
    assert by_threads(causal) <= by_threads(full) + 2
    assert causal.total() <= full.total() + (10 if head == 64 else 8)


@pytest.mark.parametrize(
    ("head", "causal"), [(64, True), (64, False), (128, True), (128, False), (256, True)]
)
def test_the_softmax_runs_beside_the_product(head, causal):
    """Between the wait for the scores and the wait for the answer lie the exponentials, or nothing overlaps."""
    tile = tile_for(head, 1024)
    instructions = [line for line in assembled(tile, head, causal) if isinstance(line, tuple)]
    names = [name for name, _ in instructions]
    assert {"UTMALDG.4D", "UTMASTG.4D"} <= set(names)
    assert not {"LDL", "STL"} & {name.partition(".")[0] for name in names}
    waits = [i for i, (name, rest) in enumerate(instructions) if name == "WARPGROUP.DEPBAR.LE"]
    products = sum(name.startswith("HGMMA") for name in names)
    assert len(waits) < products / 4, (
        "a wait behind every product: the assembler gave up on running them together"
    )
    between = [
        sum(name == "MUFU.EX2" for name in names[a:b])
        for a, b in pairwise(waits)
        if instructions[a][1].split()[-1] == "0x1" and instructions[b][1].split()[-1] == "0x0"
    ]
    if tile.overlap:
        exponentials = tile.block_n // 2 * (16 - tile.by_hand) // 16
        assert len(between) == 2, "two loops, with a mask and without"
        assert all(found >= exponentials for found in between)


# --- what may be tuned ------------------------------------------------------------------------------------


@pytest.mark.parametrize("D", tune.CANDIDATES)
def test_what_is_tuned_fits_and_has_a_name_of_its_own(D):
    names = [tune.name_of(tile) for tile in tune.CANDIDATES[D]]
    assert len(set(names)) == len(names)
    for keys in tune.LENGTHS:
        assert tune.name_of(tile_for(D, keys)) in names
    for tile in tune.CANDIDATES[D]:
        assert tile.shared_bytes(D) <= 227 * 1024, "the most that a block of Hopper can have"
        assert tile.block_n % 16 == 0
        assert tile.block_n // tile.cluster % 8 == 0
