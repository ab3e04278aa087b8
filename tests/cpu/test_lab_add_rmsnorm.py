"""The lab add_rmsnorm: other right answers are right, and every fault of its list is refused behind every door."""

from pathlib import Path

import numpy as np
import pytest
import torch

from course_kernels.problem import Workload
from course_kernels.rms_norm import problem
from course_labs.grade import grade
from course_labs.lab import find_lab, load_file
from course_labs.wrong_answers import wrong_answers

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "add_rmsnorm")
RIGHT = "right: correct on every size tried; no speed claim: this machine has no GPU"
WRONG = {wrong.name: wrong for wrong in wrong_answers(LAB)}
TRUTH = load_file(LAB.folder / "truth.py", "truth")

by_the_lab = pytest.mark.kept(of=lambda **_: [LAB.folder], but=["labs/*"])

# What people write: it must be refused by each door, with the reason that leads to the fault.
ON_EVERY_DOOR = {
    "norm_of_x_alone": "wrong",
    "residual_not_written": "all NaN",
    "old_residual_handed_on": "wrong",
    "norm_handed_on": "wrong",
    "residual_rounded_twice": "wrong",
    "residual_in_the_place_of_x": "input modified",
    "mean_over_the_seats": "wrong",
    "ones_in_spare_seats": "wrong",
    "sum_for_the_mean": "wrong",
    "eps_outside_of_the_root": "wrong",
    "eps_forgotten": "wrong",
    "root_forgotten": "wrong",
    "g_forgotten": "wrong",
    "every_row_the_first": "not written",
    "squares_in_half": "wrong",
    "sum_in_half": "wrong",
}


@pytest.mark.parametrize("fault", ON_EVERY_DOOR)
def test_a_fault_is_planted_behind_every_door(fault):
    """tests/cpu/test_labs.py and test_labs_cuda.py grade them all."""
    for ending in (".py", "_numpy.py", ".cu"):
        assert WRONG[f"wrong_{fault}{ending}"].refused_for == ON_EVERY_DOOR[fault]


def graded(tmp_path, door, **texts):
    """The first line of what is said of every text."""
    files = []
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / LAB.student_file(door))
        files[-1].write_text(text)
    found = grade(LAB, files, door, environment={"CUDA_VISIBLE_DEVICES": "-1"})
    return dict(zip(texts, ((verdict.found, verdict.text) for verdict in found), strict=True))


def changed(door, *changes):
    text = LAB.snapshot(door, len(LAB.stages)).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@by_the_lab
def test_other_ways_to_write_it_in_triton_are_right_too(tmp_path):
    mean, root = "tl.sum(s * s) / N", "s / tl.sqrt(mean + epsilon)"
    wide = "    s = x.to(tl.float32) + r.to(tl.float32)"
    texts = {
        # What torch does: the sum is rounded, and the norm worked out from what was rounded.
        "from_the_rounded": changed("triton", (wide, "    s = (x + r).to(tl.float32)")),
        "by_rsqrt": changed("triton", (root, "s * tl.rsqrt(mean + epsilon)")),
        "squares_divided_first": changed("triton", (mean, "tl.sum(s * s / N)")),
        "wide_from_the_load": changed(
            "triton",
            (
                "tl.load(x_ptr + row + n, mask=there, other=0.0)",
                "tl.load(x_ptr + row + n, mask=there, other=0.0).to(tl.float32)",
            ),
            (wide, "    s = x + r"),
        ),
        "two_kernels": (LAB.snapshot("triton", 2).read_text())
        .replace("s = x + r", "s = x.to(tl.float32) + r.to(tl.float32)")
        .replace("squares = (s * s).to(tl.float32)", "s = s.to(tl.float32)\n    squares = s * s")
        .replace("n = tl.arange(0, BLOCK)  # [BLOCK]\n", "n = tl.arange(0, BLOCK)\n    there = n < N\n")
        .replace("_ptr + row + n)", "_ptr + row + n, mask=there, other=0.0)")
        .replace("g_ptr + n)", "g_ptr + n, mask=there, other=0.0)")
        .replace("tl.store(s_ptr + row + n, s)", "tl.store(s_ptr + row + n, s, mask=there)")
        .replace("+ epsilon) * g)", "+ epsilon) * g, mask=there)"),
        "half_of_the_row_at_a_time": IN_TWO_HALVES,
    }
    actual = graded(tmp_path, "triton", **texts)

    assert {name: said for name, (found, said) in actual.items() if found != "right"} == {}


IN_TWO_HALVES = """import torch
import triton
import triton.language as tl


@triton.jit
def add_rmsnorm_kernel(x_ptr, g_ptr, r_ptr, y_ptr, s_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        s = tl.load(x_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
        s += tl.load(r_ptr + row + n, mask=n < N, other=0.0)
        tl.store(s_ptr + row + n, s, mask=n < N)
        squares += s * s
    root = tl.sqrt(tl.sum(squares) / N + 1e-5)
    for first in range(0, N, BLOCK):
        n = first + tl.arange(0, BLOCK)
        s = tl.load(x_ptr + row + n, mask=n < N, other=0.0).to(tl.float32)
        s += tl.load(r_ptr + row + n, mask=n < N, other=0.0)
        tl.store(y_ptr + row + n, s / root * tl.load(g_ptr + n, mask=n < N, other=0.0), mask=n < N)


def add_rmsnorm(x, g, r):
    y, s = torch.empty_like(x), torch.empty_like(x)
    add_rmsnorm_kernel[(x.shape[0],)](x, g, r, y, s, x.shape[1], BLOCK=256)
    return y, s
"""


@by_the_lab
def test_other_ways_to_write_it_in_numpy_are_right_too(tmp_path):
    wide = "x[row, n].astype(np.float32) + r[row, n]"
    texts = {
        "from_the_rounded": changed("numpy", (wide, "(x[row, n] + r[row, n]).astype(np.float32)")),
        "spare_seats_hold_nothing": changed(
            "numpy",
            ("    n = n[n < N]", "    there = n < N"),
            (
                f"    v = {wide}",
                "    v = np.zeros(BLOCK, dtype=np.float32)\n"
                "    v[there] = x[row, n[there]]\n"
                "    v[there] += r[row, n[there]]",
            ),
            ("s[row, n] = v", "s[row, n[there]] = v[there]"),
            ("y[row, n] = v /", "y[row, n[there]] = v[there] /"),
            ("* g[n]", "* g[n[there]]"),
        ),
        "slices": changed(
            "numpy", ("    n = np.arange(BLOCK)  # [BLOCK]\n    n = n[n < N]", "    n = slice(0, N)")
        ),
        "functions": changed("numpy", ("(v * v).sum()", "np.sum(np.square(v))")),
        "empty_room": changed("numpy", ("np.full_like(x, np.nan)", "np.empty_like(x)")),
        "in_float64": changed("numpy", ("np.float32", "np.float64")),
    }
    actual = graded(tmp_path, "numpy", **texts)

    assert {name: said for name, (found, said) in actual.items() if found != "right"} == {}


def test_every_complaint_of_overflow_says_a_number_that_became_0():
    """What the last stage asks about: y is 0, where it is not due."""
    for door in ("triton", "numpy"):
        (said,) = (line for line in LAB.prints(door, 3).splitlines() if line.startswith("refused"))
        assert "M=17 N=8" in said
        assert ", got 0;" in said
    assert float(np.finfo(np.float16).max) < 300**2  # as the title of the last stage has it


def test_inputs_in_numpy_have_the_large_column_and_the_small_row_of_the_problem():
    w = Workload.of("float16", M=17, N=1000)
    ours = TRUTH.make_inputs(w, np.random.default_rng(3))
    theirs = problem.make_inputs(w, torch.Generator().manual_seed(3), "cpu")
    for x, _, r in (ours, [array.numpy() for array in theirs]):
        size = np.abs(r.astype(float))
        assert np.median(size[1:], axis=0).argmax() == 1000 // 3
        assert np.median(size[1:, 333]) > 50 * np.median(size[1:])
        assert np.median(size[0]) < np.median(size[1:]) / 200
        assert np.abs(x[0].astype(float)).max() < 0.02
        assert (size[1:, 333] > 256).any()  # its square is past the end of float16
    assert (
        problem.EPSILON,
        problem.SMALL,
        problem.ROUNDED["float16"],
    ) == (TRUTH.EPSILON, TRUTH.SMALL, TRUTH.ROUNDED)
