"""One mma.sync on the CPU: every number lies where the PTX ISA's tables say, and is there once."""

import re

import pytest
import torch
from cuda_on_cpu import build

from course_kernels.gemm import one_instruction

pytestmark = pytest.mark.kept

INSTRUCTION = re.compile(r"// region instruction\n.*?// endregion\n", re.DOTALL)
# The tables of mma.m16n8k16: which thread holds which element, as functions of its group and its place in it.
MODEL = """
inline unsigned held[32][6];
inline void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  for (int i = 0; i < 6; i++) held[threadIdx.x][i] = i < 4 ? a[i] : b[i - 4];
  __syncthreads();
  auto number = [](unsigned bits) {
    union { unsigned u; float f; } both = {bits << 16};
    return both.f;
  };
  auto of_a = [&](int row, int col) {  // a0 a1: (g, 2t), a2 a3: (g + 8, 2t), a4 a5: (g, 2t + 8), a6 a7: (g + 8, 2t + 8)
    const unsigned both = held[row % 8 * 4 + col % 8 / 2][row / 8 + col / 8 * 2];
    return number(col % 2 ? both >> 16 : both & 0xffff);
  };
  auto of_b = [&](int row, int col) {  // b0 b1: (2t, g), b2 b3: (2t + 8, g)
    const unsigned both = held[col * 4 + row % 8 / 2][4 + row / 8];
    return number(row % 2 ? both >> 16 : both & 0xffff);
  };
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; i++) {  // c0 c1: (g, 2t), c2 c3: (g + 8, 2t)
    for (int k = 0; k < 16; k++) c[i] += of_a(g + i / 2 * 8, k) * of_b(k, 2 * t + i % 2);
  }
}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(a, b, text=...) -> a @ b by 32 threads and the model of the instruction."""

    def run(a, b, text=None):
        text, count = INSTRUCTION.subn(lambda _: MODEL, text or one_instruction.SOURCE.read_text())
        assert count == 1
        kernel = build(tmp_path, one_instruction.SOURCE, "one_instruction", text=text)
        monkeypatch.setattr(one_instruction, "load_kernel", lambda source, name: kernel)
        monkeypatch.setattr(
            one_instruction, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args)
        )
        monkeypatch.setattr("course_kernels.arguments.interpreted", lambda: True)
        return one_instruction.multiply(a, b)

    return run


def test_the_product_is_exact(run):
    a, b = one_instruction.small_numbers(device="cpu")

    assert torch.equal(run(a, b).double(), a.double() @ b.double())


@pytest.mark.parametrize(
    "fault", ["i % 2 * 8, k", "two + i / 2 * 8", "pair(A[m * 16 + k], A[m * 16 + k + 1])"]
)
def test_a_number_in_the_wrong_place_shows(run, fault):
    text = one_instruction.SOURCE.read_text()
    wrong = {
        "i % 2 * 8, k": "i / 2 * 8, k",
        "two + i / 2 * 8": "two + i % 2 * 8",
        "pair(A[m * 16 + k], A[m * 16 + k + 1])": "pair(A[m * 16 + k + 1], A[m * 16 + k])",
    }
    assert text.count(fault) == 1
    a, b = one_instruction.small_numbers(device="cpu")

    assert not torch.equal(run(a, b, text.replace(fault, wrong[fault])).double(), a.double() @ b.double())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_the_multiply_is_one_instruction(arch):
    (found,) = one_instruction.multiplications(arch)
    every = one_instruction.instructions(arch)

    assert found.startswith("HMMA.16816.F32.BF16 ")
    assert found in every
    assert every[-1] == "EXIT"
    assert not any("FFMA" in line for line in every)


def test_other_shapes_and_types_are_refused():
    a, b = one_instruction.small_numbers(device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("course_kernels.arguments.interpreted", lambda: True)

        with pytest.raises(ValueError, match=re.escape("a: expected (M, K) with K=16, got (16, 8)")):
            one_instruction.multiply(b, b)
        with pytest.raises(TypeError, match="a: expected bfloat16, got float16"):
            one_instruction.multiply(a.half(), b)
