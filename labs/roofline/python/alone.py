"""The roofline by hand: bytes, operations, the floor, the roof that binds, percent of peak."""


def add_bytes(N):
    """Bytes to read and write when two lists of N fp32 numbers are added."""
    return 3 * N * 4  # two lists in, one out


def product_bytes(M, N, K, size):
    """Bytes to read and write for (M, K) times (K, N); one number has `size` bytes."""
    return (M * K + K * N + M * N) * size


def add_flops(N):
    """Additions for two lists of N numbers."""
    return N


def product_flops(M, N, K):
    """Multiplications and additions for (M, K) times (K, N)."""
    return 2 * M * N * K  # K multiplications and K additions for every number of the answer


def floor_us(n_bytes, flops, gb_per_s, tflops):
    """The least time in microseconds, with GB = 10^9 bytes and a TFLOP = 10^12 operations."""
    memory_us = n_bytes / (gb_per_s * 1e9) * 1e6
    compute_us = flops / (tflops * 1e12) * 1e6
    return max(memory_us, compute_us)


def roof(n_bytes, flops, gb_per_s, tflops):
    """What binds: "memory" or "compute"."""
    intensity = flops / n_bytes
    ridge = (tflops * 1e12) / (gb_per_s * 1e9)
    return "compute" if intensity > ridge else "memory"


def percent_of_peak(floor_us, measured_us):
    """How much of the card was used, from 0 to 100."""
    return 100 * floor_us / measured_us


def chain_us(steps, gb_per_s, tflops):
    """The least time in microseconds for several kernels, one after the other; a step is (bytes, operations)."""
    total_us = 0.0
    for n_bytes, flops in steps:
        total_us += floor_us(n_bytes, flops, gb_per_s, tflops)
    return total_us
