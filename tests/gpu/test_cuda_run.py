"""A student's own `.cu` in one line, on the card: it runs, it is compiled again when changed, a fault is told."""

import re
import subprocess
import sys

import pytest
import torch

from course_kernels.cuda.run import run
from course_kernels.vector_add import k01_cuda

GROUPS = ("cuda",)

SCALE = """
extern "C" __global__ void scale(const float *x, float *y, float factor, long long N) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < N) y[i] = factor * x[i];
}
"""
# Turns a block of numbers around through dynamic shared memory.
TURN = """
extern "C" __global__ void turn(int *x) {
  extern __shared__ int held[];
  const int last = SIZE - 1;
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) held[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) x[i] = held[last - i];
}
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.cu"
        path.write_text(text)
        return path

    return write


def test_a_file_runs(write):
    x = torch.randn(1_000_003, device="cuda")
    y = torch.full_like(x, torch.nan)
    run(write(SCALE), -(-len(x) // 256), 256, x, y, 2, len(x))

    assert torch.equal(y, 2 * x)


def test_a_changed_file_is_compiled_again(write):
    x = torch.ones(32, device="cuda")
    y = torch.empty_like(x)
    run(write(SCALE), 1, 32, x, y, 2, 32)
    run(write(SCALE.replace("factor *", "10 + factor *")), 1, 32, x, y, 2, 32)

    assert torch.equal(y, torch.full_like(y, 12))


def test_a_kernel_of_the_library(write):
    x = torch.randn(1000, device="cuda")
    z = torch.empty_like(x)
    run(k01_cuda.SOURCE, 4, 256, x, x, z, 1000)

    assert torch.equal(z, x + x)


@pytest.mark.parametrize("size", [32, 12 * 1024, 16 * 1024])
def test_shared_memory_beyond_what_comes_unasked(write, size):
    x = torch.arange(size, dtype=torch.int32, device="cuda")
    run(write(TURN), 1, 256, x, shared_bytes=4 * size, defines={"SIZE": size})

    assert torch.equal(x, torch.arange(size - 1, -1, -1, dtype=torch.int32, device="cuda"))


def test_shared_memory_beyond_the_card(write):
    with pytest.raises(ValueError, match=r"turn: shared_bytes: at most [0-9]+ on this card, got 1048576"):
        run(
            write(TURN),
            1,
            256,
            torch.zeros(8, dtype=torch.int32, device="cuda"),
            shared_bytes=2**20,
            defines={"SIZE": 8},
        )


def test_more_threads_than_the_kernel_can_have(write):
    text = 'extern "C" __global__ void __launch_bounds__(64) f(float *x) { x[threadIdx.x] = 1; }'
    with pytest.raises(
        ValueError, match="block: 128 threads, and the kernel can have at most 64: each takes"
    ):
        run(write(text), 1, 128, torch.zeros(128, device="cuda"))


def test_a_tensor_on_the_host_is_refused(write):
    x = torch.zeros(8)
    with pytest.raises(ValueError, match="scale: x: expected a tensor on cuda:0, got one on cpu"):
        run(write(SCALE), 1, 8, x, x.cuda(), 2, 8)


def test_it_runs_on_torchs_current_stream_and_need_not_wait(write):
    x, y = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    path = write(SCALE)
    run(path, 4096, 256, x, y, 2, len(x))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.fill_(3.0)
        run(path, 4096, 256, x, y, 2, len(x), wait=False)
        assert not stream.query()
    torch.cuda.current_stream().wait_stream(stream)

    assert torch.equal(y, torch.full_like(y, 6.0))


def test_a_fault_is_told_where_it_happened(write):
    """In a process of its own: after an illegal address no kernel runs in it any more."""
    path = write('extern "C" __global__ void f(long long p) { *reinterpret_cast<int *>(p) = 1; }')
    code = f"from course_kernels.cuda.run import run; run({str(path)!r}, 1, 1, 64)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert re.search(
        r"RuntimeError: mine\.cu: f: it faulted: CUDA error: .*illegal memory access", done.stderr
    )
    assert "compute-sanitizer" in done.stderr
