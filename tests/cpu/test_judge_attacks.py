"""What attacks on the judge taught it: each further question catches the fault it is for, and passes what is right."""

import random

import pytest
import torch

from course_judge import __main__ as command
from course_judge import structured
from course_judge.contract import bounds_of, counts, sizes_of
from course_judge.edge_sizes import of_whole_blocks
from course_judge.judge import RemoteCheck, _Roundings
from course_judge.nearly_alike import PLACES, changed, on_a_grid
from course_judge.promises import ends_of, ingredients, promises
from course_kernels.measure.check import WrongResult
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload

pytestmark = pytest.mark.kept("src/course_kernels", but=["tests/judge/*", "labs/*"])


def checked(name, function, size, seed):
    problem = command.find_problem(name)
    competitor = Competitor("the file", problem, function)
    return RemoteCheck(function, {"it": competitor}, Workload.parse(size), seed, "cpu")


def asked(name, function, size, case, seed=0):
    """Whether a function passes the cases of a name on a size."""
    found = [promise for promise in promises(command.find_problem(name)) if promise.name == case]
    assert found
    try:
        had_room = [checked(name, function, size, seed).promised(promise) for promise in found]
    except WrongResult:
        return False
    assert any(had_room)
    return True


def softmax(x):
    return torch.softmax(x, -1)


def rms_norm(x, g, r=None):
    s = x if r is None else x + r
    y = s * torch.rsqrt(s.square().mean(-1, keepdim=True) + 1e-5) * g
    return y if r is None else (y, s)


def swiglu(gate, up):
    return torch.nn.functional.silu(gate) * up


def gemm(a, b):
    return a @ b


def gemm_fp8(a, b, scale_a, scale_b):
    return ((a.float() @ b.float().t()) * (scale_a * scale_b)).to(torch.bfloat16)


def decode_attention(q, k, v, lengths, skipped=None):
    n = torch.arange(k.shape[2])
    there = n < lengths[:, None]
    k, v = (x.float().masked_fill(~there[:, None, :, None], 0) for x in (k, v))
    seen = there if skipped is None else there & ~skipped(n, lengths[:, None])
    o = torch.nn.functional.scaled_dot_product_attention(
        q.float()[:, :, None], k, v, attn_mask=seen[:, None, None], enable_gqa=True
    )
    return o[:, :, 0].masked_fill((lengths == 0)[:, None, None], 0).to(q.dtype)


def paged_attention(q, k_pages, v_pages, table, lengths, number=lambda pages: pages, once=False):
    KV, PAGE, D = k_pages.shape[1:]
    there = torch.arange(table.shape[1] * PAGE) < lengths[:, None]
    pages = number(table.where(there[:, ::PAGE], 0)).long()
    k, v = (p[pages].transpose(1, 2).reshape(len(q), KV, -1, D).float() for p in (k_pages, v_pages))
    if once:
        first = (pages[:, :, None] == pages[:, None]).int().argmax(-1) == torch.arange(pages.shape[1])
        there = there & first.repeat_interleave(PAGE, 1)
    k, v = (x.masked_fill(~there[:, None, :, None], 0) for x in (k, v))
    o = torch.nn.functional.scaled_dot_product_attention(
        q.float()[:, :, None], k, v, attn_mask=there[:, None, None], enable_gqa=True
    )
    return o[:, :, 0].masked_fill((lengths == 0)[:, None, None], 0).to(q.dtype)


def qkv_rope(x, g, w, positions, cos, sin, *, kv_heads):
    h = g * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    p = (h @ w.t()).view(len(x), -1, 2 * cos.shape[1])
    a, b = p[:, :-kv_heads].chunk(2, -1)
    c, s = cos[positions.long()][:, None], sin[positions.long()][:, None]
    turned = torch.cat((a * c - b * s, b * c + a * s), -1)
    return turned[:, :-kv_heads].clone(), turned[:, -kv_heads:].clone(), p[:, -kv_heads:].clone()


def of_tiles(n, lengths):
    return (n == lengths - 1) & (lengths % 128 == 0)


DECODE = "dtype=bfloat16,B=2,H=4,KV=2,N=1000,D=64"
PAGED = "dtype=bfloat16,B=2,H=2,KV=1,N=60,PAGE=8,D=64"
QKV = "dtype=float32,B=3,H=2,KV=1,D=64,W=331,P=7"
# Problem, size, case, what is right, what is wrong.
FAULTS = {
    "a score past a thousand is a thousand": (
        "softmax", "dtype=float32,M=9,N=50", structured.AHEAD, softmax,
        lambda x: softmax(torch.where(x.isinf(), x, x.clamp(max=1000))),
    ),
    "weights without a NaN": (
        "rms_norm", "dtype=float32,M=5,N=40", structured.NAN_WEIGHTS, rms_norm,
        lambda x, g, r: rms_norm(x, torch.where(g.isfinite(), g, 1.0), r),
    ),
    "a residual without a NaN": (
        "rms_norm", "dtype=float32,M=5,N=40", structured.NAN_RESIDUALS, rms_norm,
        lambda x, g, r: rms_norm(x, g, torch.where(r.isfinite(), r, 0.0)),
    ),
    "a gate below -13 is shut": (
        "swiglu", "dtype=float32,M=5,F=40", structured.GATES, swiglu,
        lambda gate, up: swiglu(torch.where(gate < -13, 0.0, gate), up),
    ),
    "another answer to positive matrices": (
        "gemm", "dtype=bfloat16,M=20,N=30,K=40", structured.POSITIVE, gemm,
        lambda a, b: gemm(a, b) * (2 if min(a.min(), b.min()) >= 0 else 1),
    ),
    "a diagonal of ones and minus ones": (
        "gemm", "dtype=float32,M=16,N=16,K=16", structured.DIAGONAL, gemm,
        lambda a, b: gemm(a.sign(), b),
    ),
    "scales without a sign": (
        "gemm_fp8", "dtype=bfloat16,M=9,N=9,K=9", structured.SIGNED_SCALES, gemm_fp8,
        lambda a, b, s, t: gemm_fp8(a, b, s.abs(), t.abs()),
    ),
    "scales without a NaN": (
        "gemm_fp8", "dtype=bfloat16,M=9,N=9,K=9", structured.NAN_SCALES, gemm_fp8,
        lambda a, b, s, t: gemm_fp8(a, b, *(torch.where(x.isfinite(), x, 1.0) for x in (s, t))),
    ),
    "one token of many": (
        "decode_attention", DECODE, structured.APART, decode_attention,
        lambda *of: decode_attention(*of, skipped=lambda n, _: n == 511),
    ),
    "the last of whole tiles": (
        "decode_attention", DECODE, structured.WHOLE_TILES, decode_attention,
        lambda *of: decode_attention(*of, skipped=of_tiles),
    ),
    "tokens of an earlier sequence": (
        "decode_attention", DECODE, structured.OLD, decode_attention,
        lambda q, k, v, n: decode_attention(q, k, v, n if v.isnan().any() else n.clamp(min=k.shape[2])),
    ),
    "pages in sixteen bits": (
        "paged_attention", PAGED, structured.MANY_PAGES, paged_attention,
        lambda *of: paged_attention(*of, number=lambda pages: pages & 0x7FFF),
    ),
    "a page twice is read once": (
        "paged_attention", PAGED, structured.TWICE, paged_attention,
        lambda *of: paged_attention(*of, once=True),
    ),
    "positions in sixteen bits": (
        "qkv_rope", QKV, structured.LATE, qkv_rope,
        lambda x, g, w, at, *of, kv_heads: qkv_rope(x, g, w, at & 0x7FFF, *of, kv_heads=kv_heads),
    ),
    "one position for all is the first": (
        "qkv_rope", QKV, structured.ONE_POSITION, qkv_rope,
        lambda x, g, w, at, *of, kv_heads: qkv_rope(
            x, g, w, at * (at != at[0]).any(), *of, kv_heads=kv_heads
        ),
    ),
    "a sum of what is far from 1": (
        "reduction", "dtype=float32,N=1000", "with whole numbers times large powers of two",
        lambda x: x.sum().reshape(1), lambda x: x.clamp(-1e15, 1e15).sum().reshape(1),
    ),
    "a sum of what is close to 0": (
        "reduction", "dtype=float32,N=1000", "with whole numbers times small powers of two",
        lambda x: x.sum().reshape(1), lambda x: x.masked_fill(x.abs() < 2.0**-40, 0).sum().reshape(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_case_refuses_its_fault_and_nothing_else(fault):
    name, size, case, right, wrong = FAULTS[fault]
    assert asked(name, right, size, case, seed=1)
    assert not asked(name, wrong, size, case, seed=1)


@pytest.mark.parametrize("place", PLACES)
def test_what_changes_lies_where_it_is_said_to(place):
    problem = command.find_problem("softmax")
    made_of = ingredients(problem, Workload.of("float32", M=20, N=40), torch.Generator().manual_seed(1))
    (x,) = on_a_grid(problem, made_of, (3 * made_of.normal(20, 40),))
    ways = list(changed(problem, made_of, (x,), 0, place))
    assert len(ways) == len(PLACES[place])
    (y,) = ways[0]
    at = (x != y).nonzero()
    rows, flat = at[:, 0].unique(), (x != y).view(-1).nonzero().view(-1)
    assert len(at) == (4 if place == "at four corners" else 2)
    assert torch.equal(x.double().sum(), y.double().sum())
    if place == "at four corners":
        assert all(torch.equal(x.double().sum(dim), y.double().sum(dim)) for dim in (0, 1))
    elif place == "of one row":
        assert len(rows) == 1
    else:
        quarter = {"at the beginning": (0, 200), "in the middle": (200, 600), "at the end": (600, 800)}[place]
        assert quarter[0] <= flat.min() <= flat.max() < quarter[1]


@pytest.mark.parametrize(
    "name", ["softmax", "rms_norm", "gemm", "reduction", "attention", "decode_attention"]
)
def test_every_dimension_is_asked_in_whole_blocks_of_every_type(name):
    problem = command.find_problem(name)
    for seed in range(3):
        found = of_whole_blocks(problem, random.Random(seed))
        for dim in sizes_of(problem):
            if counts(problem, dim) or bounds_of(problem, dim).only:
                continue
            types = {w.dtype for w in found if w.dims.get(dim, 1) % 1024 == 0}
            assert types == {w.dtype for w in problem.check_on}


def test_special_values_are_asked_of_long_rows_and_of_few():
    problem = command.find_problem("softmax")
    sizes = [Workload.of("float32", M=M, N=N) for M, N in ((700, 700), (3, 9000), (90, 30), (1, 31), (1, 2))]
    assert {(w.M, w.N) for w in ends_of(sizes, problem, random.Random(0))} == {
        (700, 700), (3, 9000), (1, 31),
    }  # fmt: skip


def test_many_small_answers_show_that_they_are_cut():
    def pooled(cut):
        roundings, said = _Roundings(), ""
        generator = torch.Generator().manual_seed(0)
        for _ in range(40):
            truth = torch.randn(100, generator=generator, dtype=torch.float64)
            bits = (
                truth.float().view(torch.int32) & -65536
                if cut
                else truth.bfloat16().float().view(torch.int32)
            )
            said = said or roundings.cut(bits.view(torch.float32).bfloat16(), truth, usual=True)
        return said

    assert "of many small answers" in pooled(cut=True)
    assert pooled(cut=False) == ""


def test_a_larger_size_is_asked_with_hard_values_too():
    def forgets(x):
        return softmax(torch.where(x.isnan(), 0.0, x))

    checked("softmax", forgets, "dtype=float32,M=9,N=50", 0).once()
    with pytest.raises(WrongResult, match="NaN"):
        checked("softmax", forgets, "dtype=float32,M=9,N=50", 0).once(hard=True)
