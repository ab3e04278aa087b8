"""The lab of one list for all heads: absorbed and made are the same, a right answer may be written otherwise."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from course_kernels.latent_attention.problem import PROBLEM
from course_kernels.problem import Workload
from course_labs.grade import Grader
from course_labs.lab import find_lab, load_file
from course_labs.verdict import RIGHT

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "mla")
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
truth = load_file(LAB.folder / "truth.py", "truth")
further = load_file(LAB.folder / "further.py", "further")
by_the_lab = pytest.mark.kept(LAB.folder, ROOT / "src/course_kernels/latent_attention", but=["labs/*"])

HEAD = """import numpy as np


def latent_attention(q, w_k, w_v, cache):
    (H, D, C), N = w_k.shape, cache.shape[1]
"""
SCALED = "\n\ndef scaled_latent_attention(q, w_k, w_v, cache, scale):\n    (H, D, C), N = w_k.shape, cache.shape[1]\n"

ALL_SEQUENCES_AT_ONCE = f"""{HEAD}
    asked = np.concatenate([np.einsum("bhd,hdc->bhc", q[..., :D], w_k), q[..., D:]], axis=-1)
    asked = asked / np.float32(np.sqrt(q.shape[2]))
    m, l, acc = -np.inf, 0, 0
    for n in range(0, N, 100):
        block = cache[:, n : n + 100]
        s = asked @ block.swapaxes(1, 2)
        new = np.maximum(m, s.max(-1)[..., None])
        p, repair = np.exp(s - new), np.exp(m - new)
        l = repair * l + p.sum(-1)[..., None]
        acc = repair * acc + p @ block[..., :C]
        m = new
    return np.einsum("bhc,hdc->bhd", acc / l, w_v)
{SCALED}
    asked = np.einsum("bhd,hdc->bhc", q[..., :D], w_k)
    s = np.einsum("bhc,bnc->bhn", asked, cache[..., :C]) * scale[:, None]
    s = (s + np.einsum("bhr,bnr->bhn", q[..., D:], cache[..., C:])) / np.sqrt(np.float32(q.shape[2]))
    p = np.exp(s - s.max(axis=2)[..., None])
    p = p / p.sum(axis=2)[..., None]
    return np.einsum("bhc,hdc->bhd", np.einsum("bhn,bnc->bhc", p * scale[:, None], cache[..., :C]), w_v)
"""

# The largest score first, then the sums: two ways through the list, and nothing to repair.
TWICE_THROUGH_THE_LIST = f"""{HEAD}
    out = np.zeros((len(q), H, D))
    for b in range(len(q)):
        asked = (q[b, :, :D, None] * w_k).sum(axis=1) if H * D * C < 10_000 else np.matmul(q[b, :, None, :D], w_k)[:, 0]
        largest = np.max([scores(q[b], asked, row, D, C).max(axis=1) for row in blocks(cache[b])], axis=0)
        total, mixed = np.zeros(H), np.zeros((H, C))
        for row in blocks(cache[b]):
            p = np.exp(scores(q[b], asked, row, D, C) - largest[:, None])
            total += p.sum(axis=1)
            mixed += p.dot(row[:, :C])
        out[b] = np.matmul(w_v, (mixed / total[:, None])[..., None])[..., 0]
    return out.astype(q.dtype)


def blocks(rows):
    return (rows[n : n + 128].astype(np.float64) for n in range(0, len(rows), 128))


def scores(q, asked, rows, D, C):
    return (asked.dot(rows[:, :C].T) + q[:, D:].dot(rows[:, C:].T)) / np.sqrt(q.shape[1])
{SCALED}
    whole = cache.copy()
    whole[..., :C] *= scale[..., None]
    return latent_attention(q, w_k, w_v, whole)
"""

A_HEAD_AFTER_THE_OTHER = f"""{HEAD}
    out = np.empty((len(q), H, D), dtype=q.dtype)
    for b, h in np.ndindex(out.shape[:2]):
        asked = q[b, h, :D] @ w_k[h]
        total, mixed, m = 0.0, np.zeros(C), -np.inf
        for n in range(0, N, 512):
            rows = cache[b, n : n + 512]
            s = rows[:, :C] @ asked + rows[:, C:] @ q[b, h, D:]
            s = s * np.float32((q.shape[2]) ** -0.5 * 1.4426950408889634)
            new = max(m, s.max())
            p = np.exp2(s - new)
            total = total * np.exp2(m - new) + p.sum()
            mixed = mixed * np.exp2(m - new) + p @ rows[:, :C]
            m = new
        out[b, h] = w_v[h] @ (mixed / total)
    return out
{SCALED}
    out = np.empty((len(q), H, D), dtype=q.dtype)
    for b, h in np.ndindex(out.shape[:2]):
        keys = (cache[b, :, :C] @ w_k[h].T) * scale[b][:, None]
        s = (keys @ q[b, h, :D] + cache[b, :, C:] @ q[b, h, D:]) / q.shape[2] ** 0.5
        p = np.exp(s - s.max())
        out[b, h] = (p * scale[b] / p.sum()) @ (cache[b, :, :C] @ w_v[h].T)
    return out
"""

# Other blocks, powers of 2 in place of those of e, and the last mask on the shares: their sum must not see it either.
IN_TRITON = (
    ("BLOCK_H = 16", "BLOCK_H = 32"),
    ("BLOCK_N = 32", "BLOCK_N = 128"),
    ("tl.exp(", "tl.exp2("),
    ("1 / sqrt(D + R)", "sqrt(2.0813689810056077 / (D + R))"),
    ("num_warps=8, num_stages=1", "num_warps=4"),
    (
        "        l = l * repair + tl.sum(p, axis=1)",
        "        p = tl.where(n[None, :] < N, p, 0.0)\n        l = l * repair + tl.sum(p, 1)",
    ),
    ('s * scale, -float("inf"))', "s * scale, -1e30)"),
)


def in_triton():
    """The solution in Triton, written otherwise."""
    text = LAB.solution("triton").read_text()
    for old, new in IN_TRITON:
        assert old in text
        text = text.replace(old, new)
    return text


OTHERWISE = {
    "all sequences at once": ("numpy", ALL_SEQUENCES_AT_ONCE),
    "twice through the list": ("numpy", TWICE_THROUGH_THE_LIST),
    "a head after the other": ("numpy", A_HEAD_AFTER_THE_OTHER),
    "other blocks": ("triton", in_triton()),
}


@by_the_lab
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_right_answer_may_be_written_otherwise(tmp_path, name):
    door, text = OTHERWISE[name]
    (file := tmp_path / "mla.py").write_text(text)
    found = Grader(LAB, door, environment=NO_GPU).verdict(file, LAB.seconds)

    assert (found.found, found.alone and found.alone.found) == (RIGHT, RIGHT), found.text


@by_the_lab
def test_what_is_held_falls_from_stage_to_stage():
    """From keys and values of all heads to what does not grow with the list; each stage takes away what it says."""
    grader, held = Grader(LAB, "numpy", environment=NO_GPU), []
    for stage in (2, 3, 4):
        said = grader.verdict(LAB.snapshot("numpy", stage), LAB.seconds).text
        held.append(1e6 * float(re.search(r"it holds ([\d.]+) MB at once, and 0\.5 MB is the most", said)[1]))
    w = Workload.parse(LAB.held_on)
    of_all_heads = 4 * w.H * w.N * w.D  # keys, or values
    assert held[0] - held[1] == pytest.approx(of_all_heads, rel=0.1)
    assert held[1] - held[2] == pytest.approx(of_all_heads, rel=0.1)
    # Keys of one head, or two rows of its scores: refused as well.
    assert 4 * w.N * w.D > 8 * w.N > LAB.held_bytes


# --- absorbed and made are the same --------------------------------------------------------------------


def absorbed(q, w_k, w_v, cache):
    """The answer in float64 without a key or a value."""
    q, w_k, w_v, cache = (x.astype(np.float64) for x in (q, w_k, w_v, cache))
    _, D, C = w_k.shape
    asked = np.concatenate([np.einsum("bhd,hdc->bhc", q[:, :, :D], w_k), q[:, :, D:]], axis=2)
    scores = np.einsum("bhc,bnc->bhn", asked, cache) / np.sqrt(q.shape[2])
    shares = np.exp(scores - scores.max(axis=2, keepdims=True))
    shares /= shares.sum(axis=2, keepdims=True)
    return np.einsum("bhc,hdc->bhd", np.einsum("bhn,bnc->bhc", shares, cache[:, :, :C]), w_v)


@pytest.mark.parametrize("size", LAB.tries)
def test_made_and_absorbed_are_the_same(size):
    w = Workload.parse(size)
    inputs = truth.make_inputs(w, np.random.default_rng(1))
    due = truth.reference(*inputs)
    np.testing.assert_allclose(absorbed(*inputs), due, rtol=0, atol=1e-12)
    # And it would be seen if they were not.
    q, w_k, w_v, cache = inputs
    for wrong in ((q, w_v, w_k, cache), (q[:, :, ::-1], w_k, w_v, cache)):
        assert w.N == 1 or abs(absorbed(*wrong) - due).max() > 1e-3


def test_two_by_two_with_a_pencil():
    """Two tokens, one head, latents of two numbers and a position that is 0: scores 2 and 3, by both roads."""
    w_k = np.array([[[1.0, 2.0], [0.0, 1.0]]])
    cache = np.array([[[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]]])
    query = np.array([1.0, 0.0])
    assert (cache[0, :, :2] @ w_k[0].T @ query).tolist() == [2.0, 3.0]
    assert (cache[0, :, :2] @ (query @ w_k[0])).tolist() == [2.0, 3.0]


def test_the_absorbed_form_counts_fewer_operations_where_the_list_is_long():
    w = Workload.of("float32", B=1, H=128, N=4096, D=128, R=64, C=512)
    assert PROBLEM.flops(w) == 2 * 128 * (2 * 128 * 512 + 4096 * (512 + 64) + 4096 * 512)
    one = Workload.of("float32", B=1, H=128, N=1, D=128, R=64, C=512)
    assert PROBLEM.flops(one) == 2 * 128 * (2 * 128 * 512 + 2 * 128 + 64)


# --- what is drawn -------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", [False, True])
def test_what_is_drawn_has_a_finite_answer_and_shows_what_it_is_for(slow):
    told = set()
    for seed in range(2):
        cases = further.further("numpy", random.Random(seed), slow)
        for case in cases:
            w, problem = Workload.parse(case.size), case.of(truth.TRUTH)
            inputs = problem.make_inputs(w, np.random.default_rng(seed))
            due = problem.reference(*inputs)
            assert np.isfinite(due).all()
            told.add(case.told.rpartition(" of ")[0] or case.told)
            if case.told == "heads that ask by position alone":
                q, w_k, w_v, cache = inputs
                moved = problem.reference(q, w_k[:, ::-1], w_v, cache)
                assert (abs(moved - due) < 1e-12).all(axis=(0, 2)).tolist() == [True, False] * (w.H // 2)
            if case.told == "one token far ahead of the others":
                of_the_last = inputs[3][:, -1, None, : w.C] @ inputs[2].swapaxes(1, 2)
                np.testing.assert_allclose(due[0], of_the_last[:, 0], atol=1e-5)
    assert {"all scores far above 0", "all scores far below 0", "heads that ask by position alone"} <= told
