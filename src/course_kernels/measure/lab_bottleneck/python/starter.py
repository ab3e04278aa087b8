"""Find the bottleneck: what six kernels wait for, the counter that proves it, and the six kernels anew."""

import torch
import triton
import triton.language as tl

# kernel: what it waits for, the counter that proves it, the counter's value in the table (None while there is no table)
#
# The profiler's names: launch-bound, uncoalesced, bank conflicts, spills, divergence, atomics, tail wave,
# too many bytes, bytes in flight, no reuse, cache traffic, barriers, memory queue, shared memory, arithmetic, one chain
FOUND = {
    "softmax": ("", "", None),
    "bias_gelu": ("", "", None),
    "sum": ("", "", None),
    "multiply_add": ("", "", None),
    "windows": ("", "", None),
    "add": ("", "", None),
}


def fixed_softmax(x):
    """The softmax of every row of x (M, N): (M, N)."""


def fixed_bias_gelu(x, b):
    """GELU of x (M, N) and b (N,) added to every row: (M, N)."""


def fixed_sum(x):
    """The sum of x (N,): one number, (1,)."""


def fixed_multiply_add(x, a, chains, steps):
    """x (chains, N) after as many steps of x <- a * x + 1 as `steps` says; a is (N,): (chains, N)."""


def fixed_windows(x, stride):
    """The sums over windows of x (N,), as the given kernel works them out: (N,)."""


def fixed_add(x, y):
    """x + y, both (N,): (N,)."""
