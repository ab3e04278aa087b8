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


def fixed_softmax(x):
    """The softmax of every row of x (M, N): (M, N)."""


def fixed_bias_gelu(x, b):
    """GELU of x (M, N) and b (N,) added to every row: (M, N)."""


def fixed_sum(x):
    """The sum of x (N,): one number, (1,)."""


def fixed_multiply_add(x, a, chains, steps):
    """x (chains, N) after `steps` steps of x <- a * x + 1; a is (N,): (chains, N)."""


def fixed_windows(x, stride):
    """The sums over windows of x (N,), as the given kernel computes them: (N,)."""


def fixed_add(x, y):
    """x + y, both (N,): (N,)."""
