"""Divergence on the CPU: right, wrong where a fault is planted; and in machine code, 32 branches that stay apart."""

import re
from math import nan

import numpy as np
import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.divergence import k01_branches, k02_sorted
from course_kernels.divergence.problem import PROBLEM, ROUNDS
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = [k01_branches, k02_sorted]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    built = {}

    def run(module, w, text=None):
        def load_kernel(source, name, defines=None):
            key = (name, text)
            if key not in built:
                built[key] = build(tmp_path_factory.mktemp(name), source, name, text=text)
            return built[key]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "load_kernel", load_kernel)
            patch.setattr(module, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            (x,) = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
            out = module.divergence(x, ways=w.W)
            return worst_error(out, PROBLEM.reference(x, ways=w.W))

    return run


@pytest.mark.parametrize("module", KERNELS, ids=lambda m: m.__name__.rpartition(".")[2])
@pytest.mark.parametrize("w", [w for w in PROBLEM.check_on if w.N < 10_000], ids=lambda w: w.label)
def test_kernel_is_right(run, module, w):
    assert run(module, w) <= PROBLEM.max_error(w)


FAULTS = {
    "every lane takes the branch of its neighbour": (k01_branches, "n % W)", "(n + 1) % W)"),
    "the group is forgotten": (k02_sorted, "group = warp / W", "group = 0"),
    "lanes read side by side": (k02_sorted, "* WARP + lane) * W + branch", "* WARP * W + lane) + branch"),
}


@pytest.mark.parametrize(("module", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, module, right, wrong):
    text = module.SOURCE.read_text()
    assert text.count(right) == 1
    w = Workload.of("float32", N=5000, W=4)

    assert not run(module, w, text.replace(right, wrong)) <= PROBLEM.max_error(w)


def test_a_branch_and_a_round_are_told_apart():
    w = Workload.of("float32", N=4096, W=32)
    (x,) = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    truth = PROBLEM.reference(x, ways=32)
    for branch in range(32):
        mine = torch.arange(4096) % 32 == branch
        a, y = 1 - (branch + 1) / 4096, x[mine].numpy()
        for _ in range(ROUNDS):
            before, y = y, (a * y.astype(np.float64) + 1 / 64).astype(np.float32)

        assert worst_error(torch.from_numpy(y), truth[mine]) <= PROBLEM.max_error(w) / 2
        assert not worst_error(torch.from_numpy(before), truth[mine]) <= PROBLEM.max_error(w) * 100


@pytest.mark.parametrize("module", KERNELS, ids=lambda m: m.__name__.rpartition(".")[2])
def test_32_branches_of_their_own_stay_in_the_machine_code(module):
    """Neither predicated nor merged: 32 loops, each with its own factor, and a warp that parts and meets again."""
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(module.SOURCE, "sm_90a"))
    factors = {1 - (branch + 1) / 4096 for branch in range(32)}
    # A factor stands in the code as the bits of a float, or as two halves of 16 bits that the assembler moves at once.
    bits = {int(np.float32(f).view(np.uint32)) for f in factors}
    found = {int(h, 16) for h in re.findall(r"0x3f7[0-9a-f]{5}\b", code)}
    for high, low in re.findall(r"HFMA2\.MMA R\d+, -RZ, RZ, (1\.87\d+|1\.8[67]\d*), (\S+) ;", code):
        found.add(
            int(np.float16(float(high)).view(np.uint16)) << 16 | int(np.float16(float(low)).view(np.uint16))
        )

    assert bits <= found
    assert code.count("FFMA") == 32 * 16
    assert len(re.findall(r"\bBSSY\b", code)) >= 1
    assert not re.search(r"@!?P\d\s+FFMA", code)


@pytest.mark.parametrize("module", KERNELS, ids=lambda m: m.__name__.rpartition(".")[2])
def test_refusals(module):
    with pytest.raises(TypeError, match="x: expected float32, got float64"):
        module.divergence(torch.zeros(8, dtype=torch.float64), ways=2)
    with pytest.raises(ValueError, match="ways: expected 1, 2, 4, 8, 16 or 32, got 3"):
        module.divergence(torch.zeros(8), ways=3)
