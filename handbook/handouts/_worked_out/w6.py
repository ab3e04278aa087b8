"""The sums of W6's verdict page, and ten made-up kernels."""

from course_kernels.measure.machine import machine_for

HEADS, D, LATENT, POSITION = 128, 128, 512, 64
ALLOWED = 0.01
KERNELS = (  # worst error, its ticks, eager's ticks
    (0.001, 80, 100),
    (0.004, 120, 100),
    (0.300, 10, 100),
    (0.002, 48, 100),
    (0.000, 100, 90),
    (float("nan"), 5, 100),
    (0.009, 95, 100),
    (0.003, 40, 100),
    (0.011, 60, 100),
    (0.005, 300, 100),
)


def kept_by_mha():
    """Numbers of one token's keys and values."""
    return 2 * HEADS * D


def kept_by_mla():
    """Numbers of one token's latent list."""
    return LATENT + POSITION


def decode(heads):
    """Operations a byte of MLA's decode: keys with the position, values without, two bytes a number."""
    return 2 * heads * (kept_by_mla() + LATENT) / (2 * kept_by_mla())


def ridge():
    """Of an H200 in bf16."""
    sheet = machine_for("NVIDIA H200")
    return sheet.peak_tflops["bf16"] * 1e3 / sheet.bandwidth_gb_per_s


def formula(p, k):
    """Tokens of one verification: 1 + p + … + p to the k."""
    return sum(p**i for i in range(k + 1))


def shown(i):
    """The error as it is printed."""
    error = KERNELS[i][0]
    return "NaN" if error != error else f"{error:.3f}"


def own(i):
    """Its ticks."""
    return KERNELS[i][1]


def eager(i):
    """Those of eager PyTorch."""
    return KERNELS[i][2]


def counts(i, p):
    """Right, and eager takes more than p times its ticks; NaN is not right."""
    error, own, eager = KERNELS[i]
    return error <= ALLOWED and eager > p * own


def verdict(i, p):
    """A tick or a cross."""
    return "✓" if counts(i, p) else "✗"


def fast(p):
    """How many of ten."""
    return sum(counts(i, p) for i in range(len(KERNELS)))
