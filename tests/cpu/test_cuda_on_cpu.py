"""The stand-in for a card sees what a card would not put up with: one small kernel a fault."""

from pathlib import Path

import numpy as np
import pytest
import torch
from cuda_on_cpu import build

pytestmark = pytest.mark.kept

KERNELS = r"""
extern "C" __global__ void right(const float *x, float *y, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = 2.0f * x[i];
}
extern "C" __global__ void reads_past_the_end(const float *x, float *y, int N) { y[0] = x[N + 3]; }
extern "C" __global__ void reads_before_the_first(const float *x, float *y, int N) { y[0] = x[-1024]; }
extern "C" __global__ void writes_past_the_end(const float *x, float *y, int N) { y[N + 3] = x[0]; }
extern "C" __global__ void leaves_its_array(const float *x, float *y, int N) {
  float held[4];
  for (int i = 0; i <= N - 4; i++) held[i] = x[i];
  y[0] = held[0];
}
extern "C" __global__ void takes_from_nobody(const float *x, float *y, int N) {
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 4);
}
extern "C" __global__ void __launch_bounds__(4 * 2) is_bound(const float *x, float *y, int N) { y[0] = x[0]; }
"""


def run(tmp_path, kernel, block=8):
    x, y = torch.arange(8, dtype=torch.float32), torch.zeros(8)
    build(tmp_path, Path(tmp_path, "it.cu"), kernel, text=KERNELS)(1, block, x, y, np.int32(8))
    return x, y


def test_a_right_kernel_leaves_its_answer_and_its_input(tmp_path):
    x, y = run(tmp_path, "right")
    assert torch.equal(y, 2 * x)
    assert torch.equal(x, torch.arange(8, dtype=torch.float32))


@pytest.mark.parametrize(
    ("kernel", "block", "said"),
    [
        ("reads_past_the_end", 1, "a read or a write outside of every tensor"),
        ("reads_before_the_first", 1, "a read or a write outside of every tensor"),
        ("writes_past_the_end", 1, "a read or a write outside of every tensor"),
        ("leaves_its_array", 1, r"line 11: index 4 leaves its array"),
        ("takes_from_nobody", 4, "a shuffle takes from a thread that is not there"),
        ("is_bound", 9, "more threads than its launch bound allows"),
    ],
)
def test_a_fault_is_named_and_the_next_kernel_runs(tmp_path, kernel, block, said):
    with pytest.raises(RuntimeError, match=rf"^{kernel}: {said}"):
        run(tmp_path, kernel, block)
    x, y = run(tmp_path, "right")
    assert torch.equal(y, 2 * x)


def test_as_many_threads_as_the_bound_allows_may_run(tmp_path):
    _, y = run(tmp_path, "is_bound", 8)
    assert y[0] == 0
