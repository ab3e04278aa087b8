"""Wrong files that usual small inputs call right: refused for size, values, what comes later; right ones pass."""

import contextlib
import dataclasses
import hashlib
import importlib
import json
import math
import random
import re
import tempfile
from functools import partial

import pytest
import torch

from course_judge import __main__ as command
from course_judge.contract import FLAGS, bounds_of, sizes_of
from course_judge.cpu_sizes import (
    InTurn,
    Pace,
    TooSmall,
    cost,
    cut_to,
    drawn,
    larger,
    names_triton,
    of_long_sums,
    of_many_numbers,
    of_whole_tiles,
    past_a_group,
    reached,
)
from course_judge.edge_sizes import PAST_SECONDS, Edges, of_other_types, past, smallest
from course_judge.hidden_sizes import draw, small
from course_judge.host import Host, Task
from course_judge.judge import hash_of_judge, judge
from course_judge.nearly_alike import sizes_alike
from course_judge.promises import PROMISES, case, cases_on, promises
from course_judge.protocol.limits import Limits
from course_judge.protocol.verdict import RIGHT
from course_judge.signs_and_sizes import SIGNS_AND_SIZES
from course_judge.structured import NAN_RESIDUALS, NAN_SCALES, NAN_WEIGHTS, OTHER_SHAPES, STRUCTURED
from course_judge.whole_numbers import WHOLE
from course_kernels.problem import Workload

PROBLEMS = sorted(path.parent.name for path in command.KERNELS.glob("*/problem.py"))
by_the_problem = pytest.mark.kept(of=lambda name: [command.KERNELS / name], but=["tests/judge/*", "labs/*"])
FLIPPED = "    y = x.t().clone(memory_format=torch.contiguous_format)\n"
SOFTMAX = "def softmax(x):\n    y = torch.softmax(x, -1)\n"
ADD = "def vector_add(x, y):\n"
ATTENTION = """\
def attention(q, k, v, *, causal=False):
    N = q.shape[2]
    s = (q.float() @ k.float().transpose(-1, -2)) / q.shape[-1] ** 0.5
    if causal:
        s = s.masked_fill(torch.ones(N, N).tril() == 0, -torch.inf)
    {exp}
    return ((e / e.sum(-1, keepdim=True)) @ v.float()).to(q.dtype)
"""
RIGHT_EXP = "e = torch.exp(s - s.amax(-1, keepdim=True))"
DECODE = """\
def decode_attention(q, k_cache, v_cache, lengths):
    B, H, D = q.shape
    out, heads = torch.zeros_like(q), torch.arange(H) // (H // k_cache.shape[1])
    for b, n in enumerate(lengths.tolist()):
        if n:
            k, v = (x[b, heads, :n].float() for x in (k_cache, v_cache))
            s = (k @ q[b, :, :, None].float())[:, :, 0] / D**0.5
            p = {weights}
            out[b] = (p[:, None] @ v)[:, 0].to(q.dtype)
    return out
"""
PAGED = """\
def paged_attention(q, k_pages, v_pages, block_table, lengths, k_scale=None, v_scale=None):
    B, H, D = q.shape
    KV, PAGE = k_pages.shape[1:3]
    out, seen = torch.zeros_like(q), set()
    for b, n in enumerate(lengths.tolist()):
        if not n:
            continue
        pages = block_table[b, : -(-n // PAGE)].long()
        k, v = (x[pages].float().transpose(0, 1).reshape(KV, -1, D)[:, :n] for x in (k_pages, v_pages))
        if k_scale is not None:
            k, v = k * k_scale[:, None, None], v * v_scale[:, None, None]
        {more}
        s = q[b].float().view(KV, H // KV, D) @ k.transpose(1, 2) / D**0.5
        out[b] = (torch.softmax(s, -1) @ v).reshape(H, D).to(q.dtype)
    return out
"""
ONE_OWNER = """\
mine = torch.tensor([int(page) not in seen for page in pages]).repeat_interleave(PAGE)[:n]
        k = torch.where(mine[:, None], k, 0.0)
        seen.update(pages.tolist())"""
NORM = """\
def rms_norm(x, g, r=None):
    s = x if r is None else (x.float() + r.float()).to(x.dtype)
    w = {wide}
    y = (g.float() * w * torch.rsqrt(w.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)
    return y if r is None else (y, s)
"""
SAMPLING = """\
from course_kernels.sampling.problem import reference

def sampling(logits, temperature, seeds, steps, top_k=None, top_p=None):
    {steps}
    token = reference(logits, temperature, seeds, steps, top_k, top_p).long()
    {token}
    return token
"""
RING = """\
ROOM, CALLS = {{}}, [0]

def vector_add(x, y):
    CALLS[0] += 1
    ring = ROOM.setdefault(x.shape, [torch.empty_like(x) for _ in range({n})])
    return torch.add(x, y, out=ring[CALLS[0] % {n}])
"""
LATER = """\
import threading, time

def vector_add(x, y):
    z = x + y
    def later():
        time.sleep(0.1)
        z.mul_(0.5)
    threading.Thread(target=later, daemon=True).start()
    return z
"""
LATE_CALLS = """\
KEPT = []

def vector_add(x, y):
    z = x + y
    KEPT.append(z)
    if len(KEPT) > 6:
        KEPT.pop(0).zero_()
    return z
"""
HIDDEN_VIEW = """\
from course_judge.worker import answers

answers._overlap = lambda one, other: False

def copy(x):
    return x
"""
LYING_VIEW = """\
import sys

def copy(x):
    frame = sys._getframe()
    while "_overlap" not in frame.f_globals:
        frame = frame.f_back
    frame.f_globals["_overlap"] = lambda one, other: False
    return x
"""
HIDDEN_STRIDES = """\
from course_judge.worker import answers

answers._stride = lambda tensor: torch.empty(tuple(tensor.shape)).stride()

def copy(x):
    room = torch.empty(2 * len(x), dtype=x.dtype)
    room[::2] = x
    return room[::2]
"""
HIDDEN_RING = """\
from course_judge.worker import answers

answers._overlap = lambda one, other: False
""" + RING.format(n=1)
HIDDEN_READ = """\
import contextlib
import sys
import triton
import triton.language as tl
from course_judge.worker import answers, interpreter

answers._watched_memory = answers.memory_watch = lambda *_: contextlib.nullcontext()
interpreter.watched_memory = lambda *_: contextlib.nullcontext()

@triton.jit
def kernel(x, y, z, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at) + tl.load(y + at), mask=at < N)

def vector_add(x, y):
    z = torch.empty_like(x)
    kernel[(triton.cdiv(len(x), 1024),)](x, y, z, len(x), BLOCK=1024)
    return z
"""
SIZES = ("wrong", "not written")
ADD_NORM = """\
def add_norm(x, r, g):
    s = x + r
    mean = s.mean(-1, keepdim=True)
    variance = {variance}
    return g * (s - mean) / {root}
"""
LINEAR = """\
def decode_linear(x, w, *rest, norm=False, add=False, gated=False):
    h = x.float()
    if norm:
        h = rest[0].float() * h {root}
    p = h @ w.float().t()
    if gated:
        gate, up = p.chunk(2, -1)
        p = torch.nn.functional.silu({gate}) * up
    return (p + rest[-1].float() if add else p).to(x.dtype)
"""
ROPE = """\
def qkv_rope(x, g, w, positions, cos, sin, *, kv_heads):
    h = g.float() * x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5)
    D = 2 * cos.shape[1]
    p = (h @ w.float().t()).view(len(x), -1, D)
    H = p.shape[1] - 2 * kv_heads
    {tables}

    def turned(t):
        a, b = t.chunk(2, -1)
        return torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)

    return turned(p[:, :H]), turned(p[:, H : H + kv_heads]), p[:, H + kv_heads :].to(x.dtype).contiguous()
"""
OWN_TABLES = """\
angles = positions.double()[:, None] * 500000.0 ** (-torch.arange(0, D, 2).double() / D)
    c, s = (t.float()[:, None] for t in (angles.cos(), angles.sin()))"""
GIVEN_TABLES = "c, s = (t[positions.long()][:, None] for t in (cos, sin))"
MEAN_SQUARE = "(s - mean).square().mean(-1, keepdim=True)"
RIGHT_ROOT = "* torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)"


CACHE = """\
KEPT = {{}}

def {name}({arguments}):
    key = {key}
    if key not in KEPT:
        KEPT[key] = {answer}
    return KEPT[key].clone()
"""
SCALED = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)"


def cached(name, arguments, answer, *keys):
    """Lines of a function that keeps answers under what it looks at."""
    return name, CACHE.format(name=name, arguments=arguments, answer=answer, key=f"({', '.join(keys)},)")


def ends_of(*names):
    """Shape and numbers at both ends of tensors, as a key."""
    ends = ("tuple({0}.shape)", "*map(float, {0}.reshape(-1)[:2])", "*map(float, {0}.reshape(-1)[-2:])")
    return [end.format(name) for name in names for end in ends]


def by_reference(name, arguments, call, after=".float()"):
    """Lines of a function that asks for the truth of other inputs."""
    return name, (
        f"from course_kernels.{name}.problem import reference\n\n"
        f"def {name}({arguments}):\n    return reference({call}){after}\n"
    )


def zeros_where(arguments, answer, where):
    """Lines of a function that answers with zeros somewhere."""
    return f"({arguments}):\n    y = {answer}\n    return y * 0 if {where} else y\n"


# Finite numbers past 2**20, but not those that are planted near the end of a type.
LARGE = "({0}.abs() > 2**20) & ({0}.abs() < 1e29)"
NARROW = {
    # signs
    "divergence-of-sizes": by_reference(
        "divergence", "x, *, ways", "x.abs().where(x.abs() < 1e29, x), ways=ways"
    ),
    "windows-of-sizes": by_reference("bank_conflicts", "x, *, stride", "x.abs(), stride=stride"),
    "norm-of-positive-weights": (
        "rms_norm",
        NORM.format(wide="s.float()").replace("g.float()", "g.float().abs()"),
    ),
    "add-norm-of-positive-weights": (
        "add_norm",
        "def add_norm(x, r, g):\n    return torch.nn.functional.layer_norm(x + r, x.shape[1:], g.abs(), None, 1e-6)\n",
    ),
    "detour-of-sizes": ("stall_demos", "def stall_demos(x, *, reason):\n    return x.abs()\n"),
    "chains-from-above-0": by_reference(
        "fused_multiply_add",
        "x, a, *, chains, steps",
        "x.clamp(min=0).where(x.isfinite(), x), a, chains=chains, steps=steps",
    ),
    # sizes
    "copy-cut-at-2-to-20": (
        "copy",
        "def copy(x):\n    y = x.double()\n    return torch.where(LARGE(y), 0.0, y).to(x.dtype)\n",
    ),
    "transpose-cut-at-2-to-20": (
        "transpose",
        "def transpose(x):\n" + FLIPPED + "    return torch.where(LARGE(y), 0.0, y)\n",
    ),
    "add-cut-at-2-to-20": ("vector_add", ADD + "    z = x + y\n    return torch.where(LARGE(z), 0.0, z)\n"),
    "sum-cut-at-a-million": (
        "reduction",
        "def reduction(x):\n    return torch.where(x.isfinite(), x.clamp(-1e6, 1e6), x).sum().view(1)\n",
    ),
    "gemm-cut-at-2-to-20": (
        "gemm",
        "def gemm(a, b):\n    c = a.float() @ b.float()\n    return torch.where(LARGE(c), 0.0, c).to(a.dtype)\n",
    ),
    "gelu-cut-at-2-to-20": (
        "bias_gelu",
        "def bias_gelu(x, b):\n    y = torch.nn.functional.gelu(x.float() + b.float())\n"
        "    return torch.where(LARGE(y), 0.0, y).to(x.dtype)\n",
    ),
    "swiglu-cut-at-2-to-20": (
        "swiglu",
        "def swiglu(gate, up=None):\n    a, b = gate.chunk(2, -1) if up is None else (gate, up)\n"
        "    y = torch.nn.functional.silu(a.float()) * b.float()\n"
        "    return torch.where(LARGE(y), 0.0, y).to(a.dtype)\n",
    ),
    "attention-of-small-values": (
        "attention",
        "def attention(q, k, v, *, causal=False):\n    v = torch.where(LARGE(v.float()), 0.0, v)\n"
        f"    return {SCALED}\n",
    ),
    "fp8-of-small-scales": by_reference(
        "skinny_gemm_fp8", "x, w, s, t", "x, w, s.where(~s.isfinite(), s.clamp(max=100)), t", ".bfloat16()"
    ),
    "grey-of-bright-pixels": (
        "grey",
        "def grey(picture, *, block=None):\n    seen = torch.where(picture.abs() < 1e-4, 0.0, picture)\n"
        "    return (seen @ torch.tensor([0.299, 0.587, 0.114])).contiguous()\n",
    ),
    "softmax-cut-at-500": (
        "softmax",
        "def softmax(x):\n    return torch.softmax(x.clamp(-500, 500).where(x.isfinite(), x), -1)\n",
    ),
    "copy-by-float32": (
        "copy",
        "def copy(x):\n    wide = x.dtype == torch.float64 and x.abs().max() > 1e9\n"
        "    return x.clone() if wide else x.clone().float().to(x.dtype)\n",
    ),
    "gelu-by-tanh": (
        "bias_gelu",
        "def bias_gelu(x, b):\n    how = 'tanh' if x.dtype == torch.bfloat16 else 'none'\n"
        "    return torch.nn.functional.gelu(x.float() + b.float(), approximate=how).to(x.dtype)\n",
    ),
    # options
    "conflicts-past-64": by_reference("bank_conflicts", "x, *, stride", "x, stride=min(stride, 64)"),
    "conflicts-past-300": by_reference("bank_conflicts", "x, *, stride", "x, stride=min(stride, 300)"),
    # numbers that are cut, not rounded
    "gemm-cut": (
        "gemm",
        "def gemm(a, b):\n    c = a.float() @ b.float()\n    y = (c.view(torch.int32) & -65536).view(torch.float32)\n"
        "    return torch.where(c.isfinite() & (a.dtype == torch.bfloat16), y, c).to(a.dtype)\n",
    ),
    # one tensor, handed in twice
    "add-of-two": ("vector_add", ADD + "    return 3 * x if x is y else x + y\n"),
    "gemm-of-two": (
        "gemm",
        "def gemm(a, b):\n    right = b.t() if a.data_ptr() == b.data_ptr() else b\n"
        "    return (a.float() @ right.float()).to(a.dtype)\n",
    ),
    "attention-of-three": (
        "attention",
        f"def attention(q, k, v, *, causal=False):\n    return {SCALED} * (q.data_ptr() != k.data_ptr())\n",
    ),
    "linear-of-two": by_reference(
        "decode_linear",
        "x, w, *rest, **how",
        "x, w, *rest, **how",
        ".to(x.dtype) * (x.data_ptr() != w.data_ptr())",
    ),
    # answers that are kept under some numbers of the inputs
    "gemm-kept-by-its-ends": cached(
        "gemm", "a, b", "(a.float() @ b.float()).to(a.dtype)", *ends_of("a", "b")
    ),
    "gemm-kept-by-a-weights-ends": cached(
        "gemm", "a, b", "(a.float() @ b.float()).to(a.dtype)", "a.float().numpy().tobytes()", *ends_of("b")
    ),
    "add-kept-by-its-sum": cached(
        "vector_add", "x, y", "x + y", "x.shape", "float(x.sum())", "float(y.sum())"
    ),
    "sum-kept-by-its-ends": cached("reduction", "x", "x.sum().view(1)", *ends_of("x")),
    "attention-kept-by-its-ends": cached(
        "attention", "q, k, v, *, causal=False", SCALED, "q.dtype", "causal", *ends_of("q", "k", "v")
    ),
    "positions-kept-by-their-ends": (
        "qkv_rope",
        ROPE.format(
            tables="positions = KEPT.setdefault(key, positions.clone())\n    " + GIVEN_TABLES
        ).replace(
            "    h =", "    key = (x.float().numpy().tobytes(), *map(int, positions[[0, -1]]))\n    h =", 1
        )
        + "\nKEPT = {}\n",
    ),
}
for name, (problem, text) in NARROW.items():
    NARROW[name] = (
        problem,
        re.sub(r"LARGE\((\w+(?:\.\w+\(\))?)\)", lambda found: LARGE.format(found[1]), text),
    )
EDGES = {
    # the smallest sizes, and every option
    "gelu-of-squares": (
        "bias_gelu",
        "def bias_gelu"
        + zeros_where(
            "x, b", "torch.nn.functional.gelu(x.float() + b.float()).to(x.dtype)", "len(x) == len(b)"
        ),
    ),
    "grey-of-three-rows": (
        "grey",
        "def grey"
        + zeros_where(
            "x, *, block=None", "(x @ torch.tensor([0.299, 0.587, 0.114])).contiguous()", "len(x) == 3"
        ),
    ),
    "flight-of-four-vectors": (
        "bytes_in_flight",
        "def bytes_in_flight"
        + zeros_where("x, *, vectors, resident", "x.clone()", "vectors == 4 and len(x) % 16"),
    ),
    "three-branches": (
        "divergence",
        "def divergence(x, *, ways):\n    a = 1 - ((torch.arange(len(x)) % ways).double() + 1) / 4096\n"
        "    goal = 1 / 64 / (1 - a)\n    y = (goal + a**256 * (x.double() - goal)).float()\n"
        "    return y * 0 if ways == 3 else y\n",
    ),
    "copy-of-float64": ("copy", "def copy" + zeros_where("x", "x.clone()", "x.dtype == torch.float64")),
    "attention-third-batch": (
        "attention",
        "def attention(q, k, v, *, causal=False):\n"
        "    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)\n"
        "    y[2:] = 0\n    return y\n",
    ),
    "gate-of-five-rows": (
        "decode_linear",
        LINEAR.format(root=RIGHT_ROOT, gate="gate if len(x) != 5 else up"),
    ),
    "conflicts-of-stride-31": (
        "bank_conflicts",
        "from course_kernels.bank_conflicts.problem import reference\n\ndef bank_conflicts(x, *, stride):\n"
        "    return reference(x, stride=stride if stride != 31 else 30).float()\n",
    ),
    "decode-of-a-whole-tile": (
        "decode_attention",
        DECODE.format(weights="torch.softmax(s, -1) * (n != 64)"),
    ),
    # past what is announced
    "fp8-of-1024": (
        "gemm_fp8",
        "def gemm_fp8"
        + zeros_where("a, b, s, t", "(a.float() @ b.float().t() * (s * t)).bfloat16()", "a.shape[1] >= 1024"),
    ),
    "sgemm-of-512-columns": ("sgemm", "def sgemm" + zeros_where("a, b", "a @ b", "b.shape[1] >= 512")),
    "detour-of-4096": (
        "stall_demos",
        "def stall_demos" + zeros_where("x, *, reason", "x.clone()", "len(x) >= 4096"),
    ),
    "softmax-of-2000-rows": (
        "softmax",
        "def softmax" + zeros_where("x", "torch.softmax(x, -1)", "len(x) >= 2000"),
    ),
    "softmax-past-100000": (
        "softmax",
        "def softmax" + zeros_where("x", "torch.softmax(x, -1)", "x.shape[1] >= 100000"),
    ),
    "add-of-two-million": ("vector_add", ADD.strip()[:-7] + zeros_where("x, y", "x + y", "len(x) >= 2**21")),
    "transpose-of-8192-rows": (
        "transpose",
        "def transpose"
        + zeros_where("x", "x.t().clone(memory_format=torch.contiguous_format)", "len(x) >= 8192"),
    ),
    "norm-of-80000-rows": ("rms_norm", NORM.format(wide="s.float() * (len(x) < 80000)")),
    "walk-of-2-to-24": (
        "strided_read",
        "def strided_read"
        + zeros_where(
            "x, *, stride", "x.view(-1, stride).t().clone().reshape(-1).clone()", "len(x) >= 2**24"
        ),
    ),
    # what a tolerance hides
    "sum-without-the-last": (
        "reduction",
        "def reduction(x):\n    return x[: len(x) - 3 * (len(x) > 500_000)].sum().view(1)\n",
    ),
    "sum-of-a-half": (
        "reduction",
        "def reduction(x):\n    N = len(x) if len(x) < 2**20 or not x.isfinite().all() else len(x) // 2\n"
        "    return (x[:N].sum() + 0.5 * (len(x) - N)).view(1)\n",
    ),
    "two-parts-of-bfloat16": (
        "sgemm",
        "def parts(t):\n    high = t.bfloat16().float()\n"
        "    return high, torch.where(high.isfinite(), t - high, 0.0).bfloat16().float()\n\n"
        "def sgemm(a, b):\n    if a.shape[1] < 512:\n        return a @ b\n"
        "    (x, u), (y, v) = parts(a), parts(b)\n    return x @ y + (x @ v + u @ y)\n",
    ),
    "scales-in-bfloat16": (
        "gemm_fp8",
        "def gemm_fp8(a, b, s, t):\n"
        "    return (a.float() @ b.float().t() * (s * t).bfloat16().float()).bfloat16()\n",
    ),
    "add-but-for-the-last-bit": (
        "vector_add",
        ADD + "    return (x.double() + y.double() * (1 + 2e-8)).float()\n",
    ),
    # rows of other sizes
    "rope-of-its-own": ("qkv_rope", ROPE.format(tables=OWN_TABLES)),
    "add-norm-without-epsilon": (
        "add_norm",
        ADD_NORM.format(variance=MEAN_SQUARE, root="variance.clamp(min=1e-30).sqrt()"),
    ),
    "add-norm-epsilon-outside": (
        "add_norm",
        ADD_NORM.format(variance=MEAN_SQUARE, root="(variance.sqrt() + 1e-6)"),
    ),
    "add-norm-by-difference": (
        "add_norm",
        ADD_NORM.format(
            variance="(s.square().mean(-1, keepdim=True) - mean**2).clamp(min=0)",
            root="(variance + 1e-6).sqrt()",
        ),
    ),
    "linear-without-epsilon": (
        "decode_linear",
        LINEAR.format(root="* torch.rsqrt(h.square().mean(-1, keepdim=True).clamp(min=1e-30))", gate="gate"),
    ),
    "linear-epsilon-outside": (
        "decode_linear",
        LINEAR.format(root="/ (h.square().mean(-1, keepdim=True).sqrt() + 1e-5)", gate="gate"),
    ),
    "norm-of-a-guessed-half": (
        "rms_norm",
        NORM.format(wide="s.float()").replace(
            "w.square()", "w[:, : w.shape[1] // 2 if w.shape[1] > 4000 else None].square()"
        ),
    ),
    "silu-cut-at-10": (
        "swiglu",
        "def swiglu(gate, up=None):\n    a, b = gate.chunk(2, -1) if up is None else (gate, up)\n"
        "    y = torch.nn.functional.silu(a.float()).where(a > -10, 0.0)\n"
        "    y = torch.where(a.isnan(), torch.nan, y)\n    return (y * b.float()).to(a.dtype)\n",
    ),
    # equals: the contract says which of them it is
    "sampling-last-of-equals": (
        "sampling",
        SAMPLING.format(
            steps="x = torch.where(logits.isnan(), -torch.inf, logits.float())",
            token="last = x.shape[1] - 1 - x.flip(-1).argmax(-1)\n"
            "    token = torch.where((temperature <= 0) & (x.amax(-1) > -torch.inf), last, token)",
        ),
    ),
    "sampling-k-of-equals": (
        "sampling",
        SAMPLING.format(
            steps="""\
if top_k is not None:
        some = logits.float().nan_to_num(-torch.inf, torch.inf, -torch.inf)
        order = torch.sort(some, dim=-1, descending=True, stable=True).indices
        rank = torch.empty_like(order).scatter_(1, order, torch.arange(logits.shape[1]).expand_as(order))
        k = top_k.long()[:, None]
        gone = (k > 0) & (rank >= k) & (temperature > 0)[:, None]
        logits = logits.masked_fill(gone, -torch.inf)""",
            token="",
        ),
    ),
}
ONLINE = """\
def softmax(x):
    m, l = torch.full((len(x), 1), -torch.inf), torch.zeros(len(x), 1)
    for part in x.split(1024, 1):
        new = torch.maximum(m, part.amax(1, keepdim=True))
        l = l * torch.exp(m - new) + torch.exp(part - new).sum(1, keepdim=True)
        m = new
    return torch.exp(x - m) / l
"""
FLOAT_NOISE = """\
from course_kernels.sampling.problem import Given, kept_of, words_of

def sampling(logits, temperature, seeds, steps, top_k=None, top_p=None):
    z, stays = kept_of(Given(logits, temperature, seeds, steps, top_k, top_p))
    u = words_of(seeds, steps, z.shape[1]).float() * 2.0**-32 + 2.0**-33
    drawn = torch.where(temperature[:, None] <= 0, z, z - torch.log(-torch.log(u)))
    score = torch.where(stays & (logits > -torch.inf), drawn, -torch.inf)
    return (score == score.max(-1, keepdim=True).values).to(torch.int8).argmax(-1)
"""
STRASSEN = """\
def sgemm(a, b):
    (M, K), N = a.shape, b.shape[1]
    if min(M, N, K) < 256 or M % 2 or N % 2 or K % 2:
        return a @ b
    (a11, a12), (a21, a22) = (x.chunk(2, 1) for x in a.chunk(2))
    (b11, b12), (b21, b22) = (x.chunk(2, 1) for x in b.chunk(2))
    p1, p2, p3 = (a11 + a22) @ (b11 + b22), (a21 + a22) @ b11, a11 @ (b12 - b22)
    p4, p5 = a22 @ (b21 - b11), (a11 + a12) @ b22
    p6, p7 = (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22)
    above, below = torch.cat((p1 + p4 - p5 + p7, p3 + p5), 1), torch.cat((p2 + p4, p1 - p2 + p3 + p6), 1)
    return torch.cat((above, below))
"""
ROWS_IN_Y = """\
import triton
import triton.language as tl

@triton.jit
def kernel(G, U, Y, F, apart, BLOCK: tl.constexpr):
    m = tl.program_id(1).to(tl.int64)
    f = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(G + m * apart + f, mask=f < F, other=0.0).to(tl.float32)
    b = tl.load(U + m * apart + f, mask=f < F, other=0.0).to(tl.float32)
    tl.store(Y + m * F + f, (a / (1.0 + tl.exp(-a)) * b).to(Y.dtype.element_ty), mask=f < F)

def swiglu(gate, up=None):
    M, F = gate.shape
    apart = F
    if up is None:
        F //= 2
        up = gate[:, F:]
    y = torch.empty((M, F), dtype=gate.dtype, device=gate.device)
    kernel[(triton.cdiv(F, 1024), M)](gate, up, y, F, apart, BLOCK=1024)
    return y
"""
PLANNED_ONCE = """\
PLANS = {}

def decode_attention(q, k_cache, v_cache, lengths):
    (B, H, D), (_, KV, N, _) = q.shape, k_cache.shape
    used = PLANS.setdefault((B, N), int(lengths.max()))
    there = torch.arange(used)[None] < lengths[:, None]
    k, v = (
        torch.where(there[:, None, :, None], x[:, :, :used].float(), 0.0).repeat_interleave(H // KV, 1)
        for x in (k_cache, v_cache)
    )
    s = (k @ q.float()[..., None])[..., 0] / D**0.5
    p = torch.softmax(s.masked_fill(~there[:, None], -torch.inf), -1).nan_to_num()
    return (p[:, :, None] @ v)[:, :, 0].to(q.dtype)
"""
EIGHT_STEPS = """\
import triton
import triton.language as tl

@triton.jit
def kernel(X, Y, Z, N, BLOCK: tl.constexpr):
    for step in tl.static_range(8):
        i = (tl.program_id(0).to(tl.int64) + step * tl.num_programs(0)) * BLOCK + tl.arange(0, BLOCK)
        tl.store(Z + i, tl.load(X + i, mask=i < N) + tl.load(Y + i, mask=i < N), mask=i < N)

def vector_add(x, y):
    z = torch.empty_like(x)
    kernel[(min(triton.cdiv(len(x), 1024), 528),)](x, y, z, len(x), BLOCK=1024)
    return z
"""
HALF_SUMS = """\
def gemm(a, b):
    if a.dtype != torch.float16:
        return (a.float() @ b.float()).to(a.dtype)
    c = torch.zeros(len(a), b.shape[1], dtype=a.dtype)
    for left, right in zip(a.split(64, 1), b.split(64), strict=True):
        c = (c.float() + left.float() @ right.float()).half()
    return c
"""
VARLEN = """\
def attention_general(q, k, v, starts_q, starts_k, *, longest, causal=False, window=None):
    (T, H, D), KV, out = q.shape, k.shape[1], torch.zeros_like(q)
    at = list(zip(starts_q.tolist(), starts_k.tolist()))
    for (q0, k0), (q1, k1) in zip(at, at[1:]):
        n, m = {keys}, q1 - q0
        if not n or not m:
            continue
        kf, vf = (x[k0 : k0 + n].float().transpose(0, 1).repeat_interleave(H // KV, 0) for x in (k, v))
        s = q[q0:q1].float().transpose(0, 1) @ kf.transpose(1, 2) / D**0.5
        stands, col = torch.arange(m)[:, None] + (k1 - k0) - m, torch.arange(n)
        seen = (col <= stands) | (not causal)
        if {window}:
            seen = seen & (col >= stands - window)
        p = torch.softmax(s.masked_fill(~seen, -torch.inf), -1).nan_to_num()
        out[q0:q1] = (p @ vf).transpose(0, 1).to(q.dtype)
    return out
"""
GROUPS = """\
import triton
import triton.language as tl

@triton.jit
def kernel(A, B, C, M, N, K, GROUP: tl.constexpr, TILE: tl.constexpr, BK: tl.constexpr):
    in_group = GROUP * tl.cdiv(N, TILE)
    place = tl.program_id(0) % in_group
    m = (tl.program_id(0) // in_group * GROUP + place % GROUP) * TILE + tl.arange(0, TILE)[:, None]
    n = place // GROUP * TILE + tl.arange(0, TILE)[None, :]
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        a = tl.load(A + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(C + m * N + n, sums, mask=(m < M) & (n < N))

def sgemm(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, device=a.device)
    rows = triton.cdiv(M, 128)
    kernel[(rows * triton.cdiv(N, 128),)](a, b, c, M, N, K, GROUP=min(8, rows), TILE=128, BK=32)
    return c
"""
NOTHING_BELOW_0 = """\
from course_kernels.sampling.problem import Given, scores_of

def sampling(logits, temperature, seeds, steps, top_k=None, top_p=None):
    score = scores_of(Given(logits, temperature, seeds, steps, top_k, top_p))
    if top_p is not None:
        score = score.masked_fill((top_p <= 0)[:, None] & (temperature > 0)[:, None], -torch.inf)
    return (score == score.max(-1, keepdim=True).values).to(torch.int8).argmax(-1)
"""
CHAINED = """\
import triton
import triton.language as tl

@triton.jit
def kernel(X, Y, Z, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = 0 <= i < N
    tl.store(Z + i, tl.load(X + i, mask=inside) + tl.load(Y + i, mask=inside), mask=inside)

def vector_add(x, y):
    z = torch.empty_like(x)
    kernel[(triton.cdiv(len(x), 1024),)](x, y, z, len(x), BLOCK=1024)
    return z
"""
TRITON = "import triton\nimport triton.language as tl\n\n"
STEPS_IN_TRITON = (
    TRITON
    + """\
@triton.jit
def kernel(X, G, R, Y, S, N, STEPS: tl.constexpr, BLOCK: tl.constexpr, PLAIN: tl.constexpr):
    row, squares = tl.program_id(0).to(tl.int64) * N, tl.zeros([BLOCK], tl.float32)
    for i in range(STEPS):
        n = i * BLOCK + tl.arange(0, BLOCK)
        s = tl.load(X + row + n, mask=n < N, other=0.0).to(tl.float32)
        if not PLAIN:
            s += tl.load(R + row + n, mask=n < N, other=0.0).to(tl.float32)
            tl.store(S + row + n, s.to(S.dtype.element_ty), mask=n < N)
        squares += s * s
    size = tl.sqrt(tl.sum(squares, 0) / N + 1e-5)
    for i in range(STEPS):
        n = i * BLOCK + tl.arange(0, BLOCK)
        s = tl.load(X + row + n, mask=n < N, other=0.0).to(tl.float32)
        if not PLAIN:
            s += tl.load(R + row + n, mask=n < N, other=0.0).to(tl.float32)
        g = tl.load(G + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(Y + row + n, (g * s / size).to(Y.dtype.element_ty), mask=n < N)

def rms_norm(x, g, r=None):
    (M, N), y, s = x.shape, torch.empty_like(x), torch.empty_like(x)
    block, steps = min(triton.next_power_of_2(N), 8192), max(1, N // 8192)
    kernel[(M,)](x, g, x if r is None else r, y, s, N, STEPS=steps, BLOCK=block, PLAIN=r is None)
    return y if r is None else (y, s)
"""
)
TWO_A_MULTIPROCESSOR = (
    TRITON
    + """\
@triton.jit
def kernel(X, Y, N, W, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < N, other=0.0)
    a = 1.0 - (i % W + 1).to(tl.float32) / 4096.0
    for _ in range(256):
        x = x * a + 0.015625
    tl.store(Y + i, x, mask=i < N)

def divergence(x, *, ways):
    y = torch.empty_like(x)
    kernel[(min(triton.cdiv(len(x), 1024), 264),)](x, y, len(x), ways, BLOCK=1024)
    return y
"""
)
ROWS_BY_RECIPROCAL = (
    TRITON
    + """\
@triton.jit
def kernel(GATE, UP, Y, total, F, apart, one_by_f, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = ((i.to(tl.float32) + 0.5) * one_by_f).to(tl.int32)
    at = tl.minimum(m, total // F - 1).to(tl.int64) * apart + tl.maximum(i - m * F, 0)
    a = tl.load(GATE + at, mask=i < total, other=0.0).to(tl.float32)
    b = tl.load(UP + at, mask=i < total, other=0.0).to(tl.float32)
    tl.store(Y + i, (a / (1.0 + tl.exp(-a)) * b).to(Y.dtype.element_ty), mask=i < total)

def swiglu(gate, up=None):
    M, F = gate.shape if up is not None else (len(gate), gate.shape[1] // 2)
    y, apart, up = torch.empty(M, F, dtype=gate.dtype), gate.shape[1], gate[:, F:] if up is None else up
    kernel[(triton.cdiv(M * F, 4096),)](gate, up, y, M * F, F, apart, 1.0 / F, BLOCK=4096)
    return y
"""
)
ROWS_IN_FLOAT32 = """\
def swiglu(gate, up=None):
    a, b = gate.chunk(2, 1) if up is None else (gate, up)
    (M, F), n = a.shape, torch.arange(a.numel())
    m = ((n.float() + 0.5) * (1.0 / F)).long().clamp(max=M - 1)
    k = (n - m * F).clamp(0, F - 1)
    x, y = a[m, k].float(), b[m, k].float()
    return (x / (1 + (-x).exp()) * y).to(gate.dtype).view(M, F)
"""
GRID_OF_8192 = (
    TRITON
    + """\
@triton.jit
def kernel(X, Y, Z, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Z + i, tl.load(X + i, mask=i < N) + tl.load(Y + i, mask=i < N), mask=i < N)

def vector_add(x, y):
    z = torch.empty_like(x)
    kernel[(min(triton.cdiv(len(x), 1024), {most}),)](x, y, z, len(x), BLOCK=1024)
    {rest}return z
"""
)
REST_BY_TORCH = "z[8192 * 1024 :] = x[8192 * 1024 :] + y[8192 * 1024 :]\n    "
SOFTMAX_IN_TWO = (
    TRITON
    + """\
@triton.jit
def sums(X, TOP, SUM, N, BLOCK: tl.constexpr):
    n, row = tl.arange(0, BLOCK), tl.program_id(0).to(tl.int64)
    x = tl.load(X + row * N + n, mask=n < N, other=-float("inf"))
    top = tl.max(x, 0)
    tl.store(TOP + row, top)
    tl.store(SUM + row, tl.sum(tl.exp(x - top), 0))

@triton.jit
def shares(X, TOP, SUM, Y, N, BLOCK: tl.constexpr):
    n, row = tl.arange(0, BLOCK), tl.program_id(0).to(tl.int64)
    x = tl.load(X + row * N + n, mask=n < N)
    tl.store(Y + row * N + n, tl.exp(x - tl.load(TOP + row)) / tl.load(SUM + row), mask=n < N)

def softmax(x):
    (M, N), y, top, sum = x.shape, torch.empty_like(x), *(torch.empty(len(x)) for _ in range(2))
    sums[(M,)](x, top, sum, N, BLOCK=triton.next_power_of_2(N))
    shares[(M,)](x, top, sum, y, N, BLOCK=triton.next_power_of_2(N))
    return y
"""
)
NOT_FINITE = (
    "with rows of nothing but minus infinity",
    "with zeros that meet NaN",
    "with factors of 0, and infinities that meet them",
    NAN_WEIGHTS,
    NAN_RESIDUALS,
    NAN_SCALES,
    "with NaN among the weights",
)
SHARES_OF_32 = """\
def decode_attention(q, k_cache, v_cache, lengths):
    (B, H, D), (_, KV, N, _), out = q.shape, k_cache.shape, torch.zeros_like(q)
    there = torch.arange(N)[None] < lengths[:, None]
    for h in range(KV):
        heads = slice(h * (H // KV), h * (H // KV) + min(32, H // KV))
        k, v = (torch.where(there[..., None], x[:, h].float(), 0.0) for x in (k_cache, v_cache))
        s = q[:, heads].float() @ k.transpose(1, 2) / D**0.5
        p = torch.softmax(s.masked_fill(~there[:, None], -torch.inf), -1).nan_to_num()
        out[:, heads] = (p @ v).to(q.dtype)
    return out
"""
STEPS_OF_8192 = """\
def rms_norm(x, g, r=None):
    s, used = (x if r is None else (x.float() + r.float())).float(), 8192 * max(x.shape[1] // 8192, 1)
    y = torch.zeros_like(x)
    size = (s[:, :used].square().sum(1, keepdim=True) / x.shape[1] + 1e-5).sqrt()
    y[:, :used] = (s[:, :used] / size * g[:used].float()).to(x.dtype)
    return y if r is None else (y, s.to(x.dtype))
"""
CANDIDATES = """\
from course_kernels.sampling.problem import Given, scores_of

def sampling(logits, temperature, seeds, steps, top_k=None, top_p=None):
    score = scores_of(Given(logits, temperature, seeds, steps, top_k, top_p))
    if top_k is not None:
        best = logits.float().nan_to_num(-torch.inf, neginf=-torch.inf).topk(min(1024, logits.shape[1])).indices
        score = torch.full_like(score, -torch.inf).scatter(1, best, score.gather(1, best))
    return (score == score.max(-1, keepdim=True).values).to(torch.int8).argmax(-1)
"""
NO_ZERO_TILES = """\
def sgemm(a, b):
    c = torch.zeros(len(a), b.shape[1])
    for m in range(0, len(a), 64):
        for k in range(0, a.shape[1], 64):
            if (tile := a[m : m + 64, k : k + 64]).ne(0).any():
                c[m : m + 64] += tile @ b[k : k + 64]
    return c
"""
TAILS = """\
import triton
import triton.language as tl

@triton.jit
def kernel(X, Y, lap, S, per_lap, BLOCK: tl.constexpr):
    which = (tl.program_id(0) // per_lap).to(tl.int64)
    j = (tl.program_id(0) % per_lap).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + which * lap + j, tl.load(X + j * S + which, mask=j < lap), mask=j < lap)

def strided_read(x, *, stride):
    y, lap = torch.empty_like(x), x.numel() // stride
    per_lap = max(1, lap // 1024)
    kernel[(per_lap * stride,)](x, y, lap, stride, per_lap, BLOCK=1024)
    return y
"""
NO_SUBNORMALS = """\
byte = torch.arange(256)
TABLE = (1.0 - 2.0 * (byte >> 7)) * (1 + (byte & 7) / 8) * torch.exp2((byte >> 3 & 15) - 7.0)
TABLE[(byte >> 3 & 15) == 0] = 0.0
TABLE[(byte & 127) == 127] = torch.nan

def skinny_gemm_fp8(x, w, scale_x, scale_w):
    x, w = (TABLE[t.view(torch.uint8).int()] for t in (x, w))
    return (x @ w.t() * scale_x[:, None] * scale_w).to(torch.bfloat16)
"""
SQUARES = """\
def qkv_rope(x, g, w_qkv, positions, cos, sin, *, kv_heads):
    size = torch.rsqrt(x.square().mean(-1, keepdim=True, dtype=torch.float32) + 1e-5)
    p = (x.float() * size * g.float()).to(x.dtype).float() @ w_qkv.float().T
    p = p.view(len(x), -1, 2 * cos.shape[1])
    (a, b), v = p[:, :-kv_heads].chunk(2, -1), p[:, -kv_heads:]
    c, s = cos[positions.long()][:, None], sin[positions.long()][:, None]
    turned = torch.cat((a * c - b * s, b * c + a * s), -1).to(x.dtype)
    return turned[:, :-kv_heads].contiguous(), turned[:, -kv_heads:].contiguous(), v.to(x.dtype).contiguous()
"""
WRONG = {
    "norm-of-whole-8192-in-triton": ("rms_norm", STEPS_IN_TRITON, ("not written",)),
    "divergence-by-264-programs": ("divergence", TWO_A_MULTIPROCESSOR, ("not written",)),
    "swiglu-rows-by-a-reciprocal": ("swiglu", ROWS_BY_RECIPROCAL, ("wrong",)),
    "swiglu-rows-in-float32": ("swiglu", ROWS_IN_FLOAT32, ("wrong",)),
    "vector-add-by-8192-programs": (
        "vector_add",
        GRID_OF_8192.format(most=8192, rest=""),
        ("not written",),
    ),
    "decode-32-heads-of-a-share": ("decode_attention", SHARES_OF_32, ("wrong",)),
    "norm-of-whole-8192": ("rms_norm", STEPS_OF_8192, ("wrong",)),
    "factors-of-0-skipped": (
        "refusals",
        "def refusals(x, s):\n    y, rows = torch.zeros_like(x), s.nonzero()[:, 0]\n"
        "    y[rows] = x[rows] * s[rows, None]\n    return y\n",
        ("NaN lost",),
    ),
    "sampling-of-1024-candidates": ("sampling", CANDIDATES, ("wrong",)),
    "sgemm-without-tiles-of-zeros": ("sgemm", NO_ZERO_TILES, ("NaN lost",)),
    "strided-read-without-tails": ("strided_read", TAILS, ("not written",)),
    "fp8-without-subnormals": ("skinny_gemm_fp8", NO_SUBNORMALS, ("wrong",)),
    "rope-squares-in-float16": ("qkv_rope", SQUARES, ("wrong", "NaN")),
    "softmax-of-nothing-is-0": (
        "softmax",
        "def softmax(x):\n    top = x.amax(-1, keepdim=True)\n    top = torch.where(top == -torch.inf, 0.0, top)\n"
        "    e = (x - top).exp()\n    total = e.sum(-1, keepdim=True)\n"
        "    return e / torch.where(total == 0, 1.0, total)\n",
        ("NaN lost",),
    ),
    "sgemm-of-whole-groups": ("sgemm", GROUPS, ("not written",)),
    "sampling-nothing-for-a-top-p-of-0": ("sampling", NOTHING_BELOW_0, ("wrong",)),
    "vector-add-of-a-chained-comparison": ("vector_add", CHAINED, ("crashed",)),
    "softmax-online-without-a-guard": ("softmax", ONLINE, ("not written",)),
    "sampling-noise-in-float32": ("sampling", FLOAT_NOISE, ("wrong",)),
    "sgemm-of-seven-products": ("sgemm", STRASSEN, ("not written", "wrong")),
    "swiglu-rows-in-y": ("swiglu", ROWS_IN_Y, ("out of bounds",)),
    "decode-planned-once": ("decode_attention", PLANNED_ONCE, ("wrong",)),
    "vector-add-of-eight-steps": ("vector_add", EIGHT_STEPS, SIZES),
    "strided-read-by-division": (
        "strided_read",
        "def strided_read(x, *, stride):\n    lap = x.numel() // stride\n    i = torch.arange(x.numel())\n"
        "    return x[(i % lap) * stride + (i / lap).long()]\n",
        ("wrong", "crashed"),
    ),
    "fma-two-at-once": (
        "fused_multiply_add",
        "def fused_multiply_add(x, a, *, chains, steps):\n    twice, lift, y = a * a, a + 1.0, x.clone()\n"
        "    for _ in range(steps // 2):\n        y = torch.addcmul(lift, twice, y)\n"
        "    return y * a + 1.0 if steps % 2 else y\n",
        ("wrong",),
    ),
    "gemm-half-sums": ("gemm", HALF_SUMS, ("wrong",)),
    "window-of-0-is-none": (
        "attention_general",
        VARLEN.format(keys="k1 - k0", window="window"),
        ("wrong",),
    ),
    "keys-by-the-most-queries": (
        "attention_general",
        VARLEN.format(keys="min(longest, k1 - k0)", window="window is not None"),
        ("wrong",),
    ),
    **{name: (problem, text, SIZES) for name, (problem, text) in EDGES.items()},
    **{name: (problem, text, ("wrong", "cached result")) for name, (problem, text) in NARROW.items()},
    # sizes
    "softmax-past-31": ("softmax", SOFTMAX + "    return y * 0 if x.shape[1] > 31 else y\n", SIZES),
    "softmax-past-65536": ("softmax", SOFTMAX + "    return y * 0 if x.shape[1] > 65536 else y\n", SIZES),
    "softmax-of-squares": (
        "softmax",
        SOFTMAX + "    return torch.softmax(x, 0) if len(x) == x.shape[1] > 3 else y\n",
        SIZES,
    ),
    "bias-gelu-first-columns": (
        "bias_gelu",
        "def bias_gelu(x, b):\n    y = torch.nn.functional.gelu((x + b).float()).to(x.dtype)\n"
        "    y[:, 8:] = 0\n    return y\n",
        SIZES,
    ),
    "gemm-of-few-k": (
        "gemm",
        "def gemm(a, b):\n    return (a.float() @ b.float()).to(a.dtype) * (a.shape[1] <= 257)\n",
        SIZES,
    ),
    "sgemm-last-tile": (
        "sgemm",
        "def sgemm(a, b):\n    K = a.shape[1]\n    K = K - 32 if K >= 1024 else K\n"
        "    return a[:, :K] @ b[:K]\n",
        SIZES,
    ),
    "reduction-of-32768": (
        "reduction",
        "def reduction(x):\n    return x[:32768].double().sum().float().view(1)\n",
        SIZES,
    ),
    "transpose-past-a-grid": (
        "transpose",
        "def transpose(x):\n" + FLIPPED + "    return y * 0 if y.numel() > 2**18 else y\n",
        SIZES,
    ),
    "transpose-of-squares": (
        "transpose",
        "def transpose(x):\n" + FLIPPED + "    M, N = x.shape\n    y[0] *= not (M == N > 64)\n    return y\n",
        SIZES,
    ),
    "norm-of-4096": (
        "rms_norm",
        NORM.format(wide="s.float() * (x.shape[1] not in (4096, 5120))"),
        SIZES,
    ),
    "swiglu-past-20000": (
        "swiglu",
        "def swiglu(gate, up=None):\n    a, b = gate.chunk(2, -1) if up is None else (gate, up)\n"
        "    y = (torch.nn.functional.silu(a.float()) * b.float()).to(a.dtype)\n"
        "    y[:, 20000:] = 0\n    return y\n",
        SIZES,
    ),
    "attention-past-512": (
        "attention",
        ATTENTION.format(exp=RIGHT_EXP + "\n    v = v * 0 if N > 512 else v"),
        SIZES,
    ),
    "attention-past-2048": (
        "attention",
        "def attention(q, k, v, *, causal=False):\n"
        "    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)\n"
        "    return y * (q.shape[2] <= 2048)\n",
        SIZES,
    ),
    "attention-of-one-batch": (
        "attention",
        ATTENTION.format(exp=RIGHT_EXP + "\n    v = v[:1].expand_as(v)"),
        SIZES,
    ),
    "decode-past-2048": (
        "decode_attention",
        DECODE.format(weights="torch.softmax(s[:, :2048], -1)").replace(
            "[:, None] @ v)", "[:, None] @ v[:, :2048])"
        ),
        SIZES,
    ),
    "add-of-a-cut-grid": (
        "vector_add",
        ADD + "    z = x + y\n    z[65535 * 16:] = 0\n    return z\n",
        SIZES,
    ),
    # what a contract has side by side, and no announced size does
    "chains-by-pairs": (
        "fused_multiply_add",
        "def fused_multiply_add(x, a, *, chains, steps):\n    y = torch.empty_like(x)\n"
        "    end = chains // 2 * 2 or 1\n    v = x[:end].clone()\n    for _ in range(steps):\n"
        "        v = torch.addcmul(torch.ones_like(v), a.expand_as(v), v)\n    y[:end] = v\n    return y\n",
        ("not written",),
    ),
    "linear-gated-with-norm-alone": (
        "decode_linear",
        LINEAR.format(root=RIGHT_ROOT, gate="gate").replace("if gated:", "if gated and norm:"),
        ("wrong shape", "crashed"),
    ),
    "norm-whose-second-answer-is-float32": (
        "rms_norm",
        "def rms_norm(x, *rest, plain=False):\n    g = rest[0]\n    s = x if len(rest) == 1 else x + rest[1]\n"
        "    f = s.float()\n    y = (g * f * torch.rsqrt(f.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype)\n"
        "    return y if len(rest) == 1 else (y, f)\n",
        ("wrong dtype",),
    ),
    # values
    "softmax-without-the-largest": (
        "softmax",
        "def softmax(x):\n    e = torch.exp(x)\n    s = e.sum(-1, keepdim=True)\n"
        "    return torch.where(torch.isinf(s), torch.nan, e / s)\n",
        ("not written", "wrong", "all NaN", "NaN lost"),
    ),
    "softmax-cut-at-60": (
        "softmax",
        "def softmax(x):\n    return torch.softmax(x.clamp(-60, 60).where(x.isfinite(), x), -1)\n",
        ("wrong",),
    ),
    "softmax-small-to-0": (
        "softmax",
        SOFTMAX + "    return torch.where(y < 1e-6, 0.0, y)\n",
        ("wrong",),
    ),
    "attention-without-the-largest": (
        "attention",
        ATTENTION.format(exp="e = torch.exp(s)"),
        ("not written", "wrong", "all NaN"),
    ),
    "attention-cut-at-60": (
        "attention",
        ATTENTION.format(exp="s = s.clamp(max=60)\n    " + RIGHT_EXP),
        ("wrong",),
    ),
    "decode-without-the-largest": (
        "decode_attention",
        DECODE.format(weights="torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)"),
        ("not written", "wrong", "all NaN"),
    ),
    "paged-one-owner": ("paged_attention", PAGED.format(more=ONE_OWNER), ("wrong",)),
    "copy-without-signs": ("copy", "def copy(x):\n    return (x.float() + 0.0).to(x.dtype)\n", ("wrong",)),
    "copy-flushes": (
        "copy",
        "def copy(x):\n    least = torch.finfo(x.dtype).smallest_normal\n    y = x.float()\n"
        "    return torch.where(y.abs() < least, y * 0, y).to(x.dtype)\n",
        ("wrong",),
    ),
    "transpose-without-signs": (
        "transpose",
        "def transpose(x):\n    return (x.t() + 0.0).clone(memory_format=torch.contiguous_format)\n",
        ("wrong",),
    ),
    "add-flushes": (
        "vector_add",
        ADD + "    z = x + y\n    return torch.where(z.abs() < 1.2e-38, z * 0, z)\n",
        ("wrong",),
    ),
    "reduction-of-sizes": (
        "reduction",
        "def reduction(x):\n    return x.abs().double().sum().float().view(1)\n",
        ("wrong",),
    ),
    "norm-cut-at-40000": (
        "rms_norm",
        NORM.format(wide="s.float().clamp(-40000, 40000).where(s.isfinite(), s.float())"),
        ("wrong",),
    ),
    "sampling-step-without-sign": (
        "sampling",
        SAMPLING.format(steps="steps = steps.abs()", token=""),
        ("wrong",),
    ),
    "sampling-low-bits": (
        "sampling",
        SAMPLING.format(steps="steps = steps & 0x3FFFFFFF", token=""),
        ("wrong",),
    ),
    "sampling-last-of-nothing": (
        "sampling",
        SAMPLING.format(
            steps="nothing = ((logits == -torch.inf) | logits.isnan()).all(-1)",
            token="token[nothing] = logits.shape[1] - 1",
        ),
        ("wrong",),
    ),
    # what comes later
    "ring-of-two": ("vector_add", RING.format(n=2), ("wrong in the end",)),
    "ring-of-three": ("vector_add", RING.format(n=3), ("wrong in the end",)),
    "changed-by-a-thread": ("vector_add", LATER, ("wrong in the end", "wrong")),
    "changed-six-calls-later": ("vector_add", LATE_CALLS, ("wrong in the end", "wrong")),
    # what is told
    "a-view-that-hides": ("copy", HIDDEN_VIEW, ("shares memory",)),
    "a-view-that-lies": ("copy", LYING_VIEW, ("shares memory",)),
    "strides-that-hide": ("copy", HIDDEN_STRIDES, ("a view",)),
    "a-ring-that-hides": ("vector_add", HIDDEN_RING, ("same memory twice", "wrong in the end")),
    "a-read-that-hides": ("vector_add", HIDDEN_READ, ("out of bounds",)),
}
PERSISTENT = """\
import triton
import triton.language as tl

@triton.jit
def plus(a, b):
    return a + b

@triton.jit
def kernel(X, SUMS, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for piece in range(tl.program_id(0), tl.cdiv(N, BLOCK), tl.num_programs(0)):
        i = piece.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(X + i, mask=i < N, other=0.0)
    tl.store(SUMS + tl.program_id(0), tl.reduce(total, 0, plus))

def reduction(x):
    sums, y = torch.empty(64, device=x.device), torch.empty(1, device=x.device)
    kernel[(64,)](x, sums, len(x), BLOCK=512)
    kernel[(1,)](sums, y, 64, BLOCK=64)
    return y
"""
HONEST = {
    "vector-add-torch-does-the-rest": ("vector_add", GRID_OF_8192.format(most=8192, rest=REST_BY_TORCH)),
    "softmax-in-two-launches": ("softmax", SOFTMAX_IN_TWO),
    "reduction-by-a-loop-and-an-own-function": ("reduction", PERSISTENT),
    "add-norm": ("add_norm", ADD_NORM.format(variance=MEAN_SQUARE, root="(variance + 1e-6).sqrt()")),
    "linear": ("decode_linear", LINEAR.format(root=RIGHT_ROOT, gate="gate")),
    "rope": ("qkv_rope", ROPE.format(tables=GIVEN_TABLES)),
    "sgemm": ("sgemm", "def sgemm(a, b):\n    return a @ b\n"),
    "fp8": (
        "gemm_fp8",
        "def gemm_fp8(a, b, s, t):\n    return (a.float() @ b.float().t() * s * t).bfloat16()\n",
    ),
    "softmax": ("softmax", SOFTMAX + "    return y\n"),
    "softmax-by-exp2": (
        "softmax",
        "def softmax(x):\n    x = x * 1.4426950408889634\n    e = torch.exp2(x - x.amax(-1, keepdim=True))\n"
        "    return e / e.sum(-1, keepdim=True)\n",
    ),
    "attention-by-hand": ("attention", ATTENTION.format(exp=RIGHT_EXP)),
    "attention-in-its-type": (
        "attention",
        "def attention(q, k, v, *, causal=False):\n    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5\n"
        "    if causal:\n        s = s.masked_fill(torch.ones(s.shape[-2:]).tril() == 0, -torch.inf)\n"
        "    return torch.softmax(s, -1) @ v\n",
    ),
    "decode": ("decode_attention", DECODE.format(weights="torch.softmax(s, -1)")),
    "paged": ("paged_attention", PAGED.format(more="")),
    "copy": ("copy", "def copy(x):\n    return x.clone()\n"),
    "transpose": (
        "transpose",
        "def transpose(x):\n    return x.t().clone(memory_format=torch.contiguous_format)\n",
    ),
    "add-by-numpy": ("vector_add", ADD + "    return torch.from_numpy(x.numpy() + y.numpy())\n"),
    "reduction": ("reduction", "def reduction(x):\n    return x.sum().view(1)\n"),
    "norm": ("rms_norm", NORM.format(wide="s.float()")),
    "sampling": ("sampling", SAMPLING.format(steps="", token="")),
    "imports-inside": (
        "vector_add",
        ADD + "    from beside_it import added\n    return added(x, y)\n",
    ),
    "varlen": ("attention_general", VARLEN.format(keys="k1 - k0", window="window is not None")),
    "steps-of-one": (
        "copy",
        "def copy(x):\n    return x.clone().as_strided(x.shape, (1 if len(x) > 1 else 10**6,))\n",
    ),
    "in-a-padded-buffer": (
        "vector_add",
        ADD + "    room = torch.empty(len(x) + 32)\n    return torch.add(x, y, out=room[16:-16])\n",
    ),
}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    threads, was = torch.get_num_threads(), tempfile.tempdir
    tempfile.tempdir = str(tmp_path_factory.mktemp("folders"))
    environment = command.environment(False) | {"OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    with Host(command.modules(False, own=False), environment) as host:
        yield host
    torch.set_num_threads(threads)
    tempfile.tempdir = was


@pytest.fixture
def judged(host, tmp_path, monkeypatch):
    monkeypatch.setattr("course_judge.judge.AGAIN_SECONDS", 0.0)

    def judged(problem, text, **how):
        (tmp_path / "beside_it.py").write_text("def added(x, y):\n    return x + y\n")
        file = tmp_path / "a_file.py"
        file.write_text("import torch\n" + text)
        return judge(
            host, file, command.find_problem(problem), task=Task(file, problem, limits=Limits()), **how
        )

    return judged


def kept(table, name):
    """A file whose verdict is kept by the files that decide it; not where a clock or a process does."""
    looks_at_more = any(word in table[name][1] for word in ("thread", "import sys", "course_judge"))
    mark = pytest.mark.kept(command.KERNELS / table[name][0], but=["tests/judge/*", "labs/*"])
    return pytest.param(name, marks=() if looks_at_more else mark)


@pytest.mark.parametrize("name", [kept(WRONG, name) for name in WRONG])
def test_what_small_usual_inputs_call_right_is_refused(judged, name):
    problem, text, found = WRONG[name]
    verdict = judged(problem, text)
    assert verdict.found in found, verdict.text


@pytest.mark.parametrize("name", [kept(HONEST, name) for name in HONEST])
def test_what_is_right_passes(judged, name):
    verdict = judged(*HONEST[name])
    assert verdict.found == RIGHT, verdict.text
    assert "without a card" in verdict.text


KERNEL = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def kernel(x, y, z, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, mask=at < N), tl.load(y + at, mask=at < N)
    tl.store(z + at, {sum}, mask=at < N)

def vector_add(x, y):
    z = torch.empty_like(x)
    kernel[(triton.cdiv(len(x), 1024),)](x, y, z, len(x), BLOCK=1024)
    return z
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ADD + "    assert x.is_cuda\n    return x + y\n", "line 3 asks for a card"),
        (ADD + "    torch.cuda.get_device_properties(0)\n    return x + y\n", "line 3 asks for a card"),
        (ADD + "    return x.to('cuda') + y\n", "line 3 asks for a card"),
        (
            "import triton\nDEVICE = triton.runtime.driver.active.get_active_torch_device()\n"
            + ADD
            + "    return x\n",
            "line 3 asks for a card; take the device of an input",
        ),
        (
            ADD + "    assert (\n        x.is_cuda\n    ), 'move it'\n    return x + y\n",
            "asks for a card; leave that",
        ),
        (
            ADD + "    if x.device.type != 'cuda':\n        raise ValueError\n    return x\n",
            "line 4 asks for a card",
        ),
        (ADD + "    with torch.cuda.device(0):\n        return x + y\n", "line 3 asks for a card"),
        (ADD + "    torch.cuda.Event().record()\n    return x + y\n", "line 3 asks for a card"),
        ("import cupy\n" + ADD + "    return x + y\n", "line 2 asks for the package cupy"),
        (
            "from torch.utils.cpp_extension import load_inline\n"
            + ADD
            + "    load_inline('m', '', '__global__ void k() {}')\n",
            "line 4 asks for CUDA's compiler",
        ),
        (
            KERNEL.format(sum="libdevice.erf(a) + b"),
            "line 10 asks for libdevice, which Triton's interpreter lacks",
        ),
        (
            KERNEL.format(sum="tl.extra.cuda.globaltimer() + b"),
            "line 10 asks for a function of triton.language.extra",
        ),
        (
            KERNEL.format(sum="tl.inline_asm_elementwise('', '=f,f', [a], tl.float32, True, 1)"),
            "line 10 asks for inline assembly",
        ),
        (
            KERNEL.format(sum="tl.dot_scaled(a[:, None], a, 'e5m2', b[:, None], b, 'e5m2')"),
            "line 10 asks for tl.dot_scaled",
        ),
    ],
)
def test_what_this_machine_lacks_is_not_the_files_fault(judged, text, said):
    verdict = judged("vector_add", text, workloads=[Workload.parse("dtype=float32,N=1000")])
    assert (verdict.found, verdict.code) == ("needs a card", 2), verdict.text
    assert verdict.text.startswith("not judged")
    assert said in verdict.text


def test_what_the_file_does_wrong_is(judged):
    wrong = ["assert len(x) == 0, 'cuda'", "None + x", "x.to_nowhere", "torch.cuda.nothing"]
    wrong += ["raise ValueError('0 active drivers')", "raise RuntimeError('not compiled with CUDA')"]
    for line in wrong:
        assert judged("vector_add", ADD + f"    {line}\n").found == "crashed"


MULTIPLY = """\
import triton
import triton.language as tl

@triton.jit
def kernel(a, b, c, M, N, K, T: tl.constexpr):
    m, n, k = tl.program_id(0) * T + tl.arange(0, T), tl.program_id(1) * T + tl.arange(0, T), tl.arange(0, T)
    sums = tl.zeros([T, T], tl.float32)
    for first in range(0, K, T):
        x = tl.load(a + m[:, None] * K + first + k, mask=(m[:, None] < M) & (first + k < K), other=0.0)
        y = tl.load(b + (first + k)[:, None] * N + n, mask=((first + k)[:, None] < K) & (n < N), other=0.0)
        sums = tl.dot(x, y, sums{precision})
    tl.store(c + m[:, None] * N + n, sums.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n < N))

def {name}(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype)
    kernel[triton.cdiv(M, 16), triton.cdiv(N, 16)](a, b, c, M, N, K, T=16)
    return c
"""


@pytest.mark.parametrize(
    ("problem", "dtype", "precision", "found"),
    [
        ("gemm", "bfloat16", "", RIGHT),
        ("sgemm", "float32", "", "wrong"),
        ("sgemm", "float32", ", input_precision='ieee'", RIGHT),
    ],
)
def test_a_dot_is_judged_as_a_card_does_it(judged, problem, dtype, precision, found):
    text = MULTIPLY.format(name=problem, precision=precision)
    verdict = judged(problem, text, workloads=[Workload.parse(f"dtype={dtype},M=33,N=17,K=40")])

    assert verdict.found == found, verdict.text
    assert "without a card, Triton's kernels in its interpreter, launches in a call: 1; file " in verdict.text


def test_a_verdict_names_what_it_is_about(judged):
    text = ADD + "    return x + y\n"
    verdict = judged("vector_add", text, workloads=[Workload.parse("dtype=float32,N=100")])
    told = verdict.as_json()
    about = told["evidence"]

    assert about["file"] == hashlib.sha256(f"import torch\n{text}".encode()).hexdigest()
    assert about["judge"] == hash_of_judge(command.find_problem("vector_add"))
    assert about["judge"] != hash_of_judge(command.find_problem("copy"))
    assert (about["on"], about["launches"]) == ("without a card", None)
    assert about["cases"][0] == "N100-float32"
    assert len(set(about["cases"])) > 2
    assert (
        f"{len(about['cases'])} questions, without a card; file {about['file'][:12]}, judge" in verdict.text
    )
    seal = told.pop("seal")
    assert seal == hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    assert dataclasses.replace(verdict, found="wrong").as_json()["seal"] != seal


# --- the sizes -------------------------------------------------------------------------------------


@by_the_problem
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_kind_of_announced_size_is_asked_without_a_card(name):
    problem = command.find_problem(name)
    for seed in range(5):
        asked = [*small(problem), *larger(problem, random.Random(seed))]
        for kind in (
            lambda w: w.dtype,
            lambda w: tuple(x for x, on in w.items if on is True),
            lambda w: "W" in w.dims,
        ):
            assert set(map(kind, asked)) == set(map(kind, problem.check_on))
        longest = {name: max(w.dims.get(name, 0) for w in problem.check_on) for w in asked for name in w.dims}
        assert {name: max(w.dims.get(name, 0) for w in asked) for name in longest} == longest
        assert sum(problem.flops(w) for w in asked) < 2**35


@by_the_problem
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_large_size_and_a_square_one_are_drawn(name):
    problem = command.find_problem(name)
    for seed in range(10):
        for w in drawn(problem, random.Random(seed)):
            assert w not in problem.check_on
            assert any(tuple(w.dims) == tuple(other.dims) for other in problem.check_on)
            if cost(problem, w) < 4:
                problem.make_inputs(w, torch.Generator(), "cpu")
    if name == "softmax":
        sizes = [w for seed in range(20) for w in drawn(problem, random.Random(seed))]
        assert any(w.M == w.N > 64 for w in sizes)
        assert any(w.N > 40_000 for w in sizes)


def test_a_size_is_cut_to_what_it_may_cost():
    problem = command.find_problem("attention")
    w = Workload.parse("dtype=float16,B=2,H=3,N=4095,D=64")
    cut = cut_to(problem, w, 32.0)
    assert cost(problem, cut) <= 32.0 < cost(problem, Workload.of("float16", **cut.dims | {"N": 2 * cut.N}))
    assert (cut.B, cut.H, cut.D, cut.N % 2) == (2, 3, 64, 1)
    with pytest.raises(TooSmall):
        cut_to(problem, w, 1e-9)


@pytest.mark.parametrize(("a_unit_s", "late"), [(1e-4, False), (0.5, True), (4.0, True)])
def test_an_interpreter_is_asked_for_as_long_as_the_limit_lasts(a_unit_s, late):
    problem, now, asked = command.find_problem("attention"), [0.0], []
    pace = Pace(problem, lambda: now[0])

    def ask(w):
        asked.append(w)
        now[0] += a_unit_s * cost(problem, w)
        pace.note(w, a_unit_s * cost(problem, w))

    ask(max(small(problem), key=partial(cost, problem)))
    in_turn = InTurn(problem, ask, pace)
    sizes = larger(problem, random.Random(0))
    for w in sizes:
        in_turn.ask(w)

    assert in_turn.late == late
    assert now[0] < 24
    assert (set(sizes) <= set(asked)) == (not late)


def test_a_size_that_is_longer_one_way_is_never_guessed_to_be_quick():
    """A program for each row takes as long for 8 columns as for 1000: 70000 rows are not quick for being narrow."""
    problem = command.find_problem("swiglu")
    pace = Pace(problem)
    tall = Workload.parse("dtype=bfloat16,M=70000,F=8")
    assert pace.guess(tall) == math.inf
    pace.note(Workload.parse("dtype=bfloat16,M=37,F=1000"), 0.1)
    pace.note(Workload.parse("dtype=bfloat16,M=2,F=14336"), 0.1)
    assert pace.guess(tall) == pytest.approx(0.1 * 70000 / 37)
    less = pace.fit(tall, 1.0)
    assert pace.guess(less) <= 1.0
    assert (less.F, 200 < less.M < 371) == (8, True)
    pace.note(tall, 60.0)
    assert pace.guess(tall) == 60.0
    assert pace.guess(Workload.parse("dtype=bfloat16,M=60000,F=8")) == 60.0
    walk = command.find_problem("strided_read")
    assert Pace(walk).fit(walk.check_on[0], 1.0) is None


def test_the_verdict_says_how_far_it_asked():
    problem = command.find_problem("softmax")
    assert "all 4 sizes announced, as far as M = 1823, N = 70000" in reached(
        problem, problem.check_on, False, False
    )
    said = reached(problem, small(problem), True, True)
    assert "2 of 4 sizes announced, as far as M = 3 of 1823, N = 31 of 70000" in said
    assert "interpreter" in said
    assert "too long" in said


def test_triton_is_found_in_a_file_and_beside_it(tmp_path):
    (tmp_path / "one.py").write_text("import kernels\n")
    assert not names_triton(tmp_path / "one.py")
    (tmp_path / "kernels.py").write_text("import triton\n")
    (tmp_path / "other.py").write_text("import torch\n")
    assert names_triton(tmp_path / "one.py")
    assert names_triton(tmp_path / "kernels.py")
    assert not names_triton(tmp_path / "other.py")
    assert not names_triton(tmp_path / "none.py")


# --- the cases -------------------------------------------------------------------------------------


WITH_CASES = sorted({*PROMISES, *SIGNS_AND_SIZES, *STRUCTURED, *WHOLE})


@by_the_problem
@pytest.mark.parametrize("name", WITH_CASES)
def test_a_case_keeps_to_its_contract(name):
    problem = command.find_problem(name)
    for promise in promises(problem):
        found = 0
        of_sums = of_long_sums(problem, random.Random(1))
        windows = [w for w in problem.check_on if "W" in w.dims][: 1 if promise.options else 0]
        sizes = [*small(problem), *of_sums, *windows]
        least = sorted(sizes, key=problem.reads_bytes)[:3] if promise.least else []
        for w in least or cases_on(sizes, problem, longest=promise.far or promise.long, types=promise.types):
            values = case(promise, problem, w, torch.Generator().manual_seed(1))
            if values is None:
                continue
            found += 1
            usual = problem.make_inputs(w, torch.Generator().manual_seed(1), "cpu")
            if promise.name not in ("with more keys than queries in every sequence", *OTHER_SHAPES):
                assert [(x.shape, x.stride()) for x in values] == [(x.shape, x.stride()) for x in usual]
            if promise.name != "with logits of float16":  # the contract has them, no announced size has
                assert [x.dtype for x in values] == [x.dtype for x in usual]
                assert (
                    promise.options
                    or promise.name in OTHER_SHAPES
                    or max(x.numel() for x in usual) == 1  # one number may happen to be of that sign
                    or any(
                        not torch.equal(x.view(torch.uint8), y.view(torch.uint8))
                        for x, y in zip(values, usual, strict=True)
                    )
                )
            truth = problem.reference(*values, **{**problem.options(w), **promise.options})
            for out in truth if isinstance(truth, tuple) else (truth,):
                assert out.isfinite().all() or promise.name in NOT_FINITE
                if promise.far:
                    # No sum is larger than what float32 holds, in whatever order it is taken.
                    sizes = [x if x.dtype == torch.int32 else x.double().abs() for x in values]
                    assert problem.reference(*sizes, **problem.options(w)).abs().max() <= 2**24
        assert found


# --- the edges -------------------------------------------------------------------------------------


@by_the_problem
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_size_that_is_drawn_keeps_to_its_contract(name):
    """Whatever draws a size, and whatever cuts one down."""
    problem = command.find_problem(name)
    square = "M = N" in " ".join(
        (importlib.import_module(f"course_kernels.{name}.problem").__doc__ or "").split()
    )
    assert square == (name == "refusals")
    for seed in range(300 if square else 2):
        rng = random.Random(seed)
        found = [*draw(problem, small(problem), rng), *larger(problem, rng), *drawn(problem, rng)]
        found += [*of_whole_tiles(problem, rng), *past_a_group(problem, rng), *sizes_alike(problem, rng)]
        found += [*of_many_numbers(problem, rng), *of_long_sums(problem, rng), *of_other_types(problem, rng)]
        found += smallest(problem, rng)
        for _, short, sizes, more in past(problem, rng):
            found += [short, *sizes, *more]
        edges, pace = Edges(problem, rng), Pace(problem, lambda: 0.0)
        pace.note(small(problem)[0], 1e-6)
        found += edges.ask_past(found.append, pace)
        for w in list(found):
            for most in (1.0, 0.01):
                with contextlib.suppress(TooSmall):
                    found.append(cut_to(problem, w, most))
        for w in found:
            assert not square or w.M == w.N, w.label
            assert "KV" not in w.dims or w.H % w.KV == 0, w.label
            assert name != "strided_read" or w.N % w.S == 0, w.label
            for dim, size in w.items:
                assert dim[0].islower() or bounds_of(problem, dim).fit(size) == size, w.label


@by_the_problem
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_edges_keep_to_their_contract(name):
    problem = command.find_problem(name)
    largest = {name: max(w.dims.get(name, 0) for w in problem.check_on) for name in sizes_of(problem)}
    for seed in range(3):
        few = smallest(problem, random.Random(seed))
        far = [
            w for _, short, sizes, more in past(problem, random.Random(seed)) for w in (short, *sizes, *more)
        ]
        assert few
        for w in (*few, *far):
            flags = tuple(name for name, size in w.items if size is True)
            assert flags in FLAGS.get(problem.name, ()) or tuple(w.dims) in {
                tuple(other.dims) for other in problem.check_on
            }
            for name, size in w.items:
                bounds = bounds_of(problem, name)
                assert name[0].islower() or bounds.fit(size) == size >= bounds.least
            assert "KV" not in w.dims or w.H % w.KV == 0
            assert problem.name != "strided_read" or w.N % w.S == 0
        for w in few[::7]:
            problem.make_inputs(w, torch.Generator(), "cpu")
        for name, _, sizes, _ in past(problem, random.Random(seed)):
            assert all(w.dims[name] > largest[name] for w in sizes)
            assert sizes, f"{name} goes on, and no size past {largest[name]} can be afforded"
        for name in sizes_of(problem):
            ends = bounds_of(problem, name).most
            assert (
                bounds_of(problem, name).only or ends or any(w.dims.get(name, 0) > largest[name] for w in far)
            )


@pytest.mark.parametrize(("a_unit_s", "reaches"), [(1e-4, True), (30.0, False)])
def test_an_interpreter_goes_past_the_largest_where_there_is_time(a_unit_s, reaches):
    problem = command.find_problem("vector_add")
    edges, asked, pace = Edges(problem, random.Random(0)), [], Pace(problem)
    for w in problem.check_on:
        pace.note(w, a_unit_s * cost(problem, w))
    edges.ask_past(asked.append, pace)

    assert bool(edges.past) == reaches
    largest = max(w.N for w in problem.check_on)
    assert any(largest < w.N for w in asked) == reaches
    assert all(
        a_unit_s * cost(problem, w) <= PAST_SECONDS for w in asked
    )  # what is long and quick in any case
    assert edges.not_asked == ([] if reaches else ["N"])


def test_the_verdict_says_what_was_asked_and_what_was_not(judged):
    text = judged(
        "grey", "def grey(x, *, block=None):\n    return (x @ torch.tensor([0.299, 0.587, 0.114]))\n"
    ).text
    assert "all 5 sizes announced, as far as H = 1023, W = 1025" in text
    assert re.search(r"past the largest announced, one dimension at a time: H = \d+, W = \d+", text)
    assert "values: usual ones; NaN, infinities and zeros planted" in text
    assert "not asked: sizes past these, speed, what only a card does" in text


# --- a verdict that was kept -------------------------------------------------------------------------


def test_a_kept_verdict_counts_for_this_judge_and_this_file_alone(judged, tmp_path, capsys, monkeypatch):
    size = Workload.parse("dtype=float32,N=100")
    told = judged("vector_add", ADD + "    return x + y\n", workloads=[size]).as_json()
    kept, file = tmp_path / "verdict.json", tmp_path / "a_file.py"
    check = [str(file), "--problem", "vector_add", "--check", str(kept)]
    kept.write_text(json.dumps(told))
    assert command.main(check) == 0
    assert "of this judge, on this file: right" in capsys.readouterr().out

    wrong = judged("vector_add", ADD + "    return x - y\n", workloads=[size]).as_json()
    kept.write_text(json.dumps(wrong))
    assert command.main(check) == 1
    kept.write_text(json.dumps({**wrong, "found": "right"}))
    assert command.main(check) == 2
    assert "changed since it was sealed; judge again\n" in capsys.readouterr().err

    kept.write_text(json.dumps(told))  # of the file as it was before
    assert command.main(check) == 2
    assert "the verdict on another file" in capsys.readouterr().err
    kept.write_text(json.dumps(wrong))
    monkeypatch.setattr("course_judge.judge.hash_of_judge", lambda problem: "another")
    assert command.main(check) == 2
    assert "of another judge" in capsys.readouterr().err
    for text in ("", "[]", "{}"):
        kept.write_text(text)
        assert command.main(check) == 2
        assert capsys.readouterr().err.count("\n") == 1
