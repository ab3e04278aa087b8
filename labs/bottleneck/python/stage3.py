"""Find the bottleneck: what six kernels wait for, the counter that proves it, and the six kernels rewritten."""

import torch
import triton
import triton.language as tl

# kernel: (what it waits for, the counter that proves it, that counter's value; None while the table has none)
#
# The profiler's names: launch-bound, uncoalesced, bank conflicts, spills, divergence, atomics, tail wave, few
# blocks, too many bytes, bytes in flight, no reuse, cache traffic, barriers, memory queue, shared memory, arithmetic,
# one chain
FOUND = {
    "softmax": ("too many bytes", "dram__bytes_read.sum", None),
    "bias_gelu": ("arithmetic", "sm__throughput.avg.pct_of_peak_sustained_elapsed", None),
    "sum": ("barriers", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", None),
    "multiply_add": ("one chain", "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", None),
    "windows": ("cache traffic", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", None),
    "add": ("bytes in flight", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", None),
}

# The profiler's own limits, for the last task.
AT_ITS_ROOF = 0.9  # of peak: from here on there is nothing to name
MOVED_AGAIN, MOVING = 1.5, 50  # bytes moved over the least; percent that device memory must be busy
FULL, ROOM_LEFT = 80, 70  # percent: from the first on a unit is full; below the second device memory has room
ONE_REASON, ISSUED_ENOUGH = 0.5, 60  # of all waiting; percent of ticks above which hardly any warp waits


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """One row: it is loaded once, and stays in registers until its answer is written."""
    n = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * N
    x = tl.load(x_ptr + row + n, mask=n < N, other=float("-inf"))
    powers = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row + n, powers / tl.sum(powers, axis=0), mask=n < N)


def fixed_softmax(x):
    M, N = x.shape
    y = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(N)
    softmax_kernel[(M,)](x, y, N, BLOCK=BLOCK, num_warps=min(32, max(4, BLOCK // 1024)))
    return y


@triton.jit
def bias_gelu_kernel(x_ptr, b_ptr, y_ptr, N, BLOCK: tl.constexpr):
    """A piece of one row, in single precision throughout."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(1).to(tl.int64) * N + n
    s = tl.load(x_ptr + at, mask=n < N) + tl.load(b_ptr + n, mask=n < N)
    tl.store(y_ptr + at, 0.5 * s * (1.0 + tl.erf(s * 0.70710678118654752)), mask=n < N)


def fixed_bias_gelu(x, b):
    M, N = x.shape
    y = torch.empty_like(x)
    bias_gelu_kernel[(triton.cdiv(N, 1024), M)](x, b, y, N, BLOCK=1024)
    return y


def fixed_sum(x):
    """The sum of x (N,): one number, (1,)."""


def fixed_multiply_add(x, a, chains, steps):
    """x (chains, N) after `steps` steps of x <- a * x + 1; a is (N,): (chains, N)."""


def fixed_windows(x, stride):
    """The sums over windows of x (N,), as the given kernel computes them: (N,)."""


def fixed_add(x, y):
    """x + y, both (N,): (N,)."""
