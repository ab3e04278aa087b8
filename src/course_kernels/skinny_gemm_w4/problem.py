"""A few rows times a matrix of 4-bit weights, the contract.

    y[m, n] = sum over k of x[m, k] * (q[n, k] * s[n, k / 128])

Shapes    x (M, K), M = 1 to 128; y (M, N); q (N, K) and s (N, K/128), both packed as cuda/four_bits.py says, K a
          multiple of 128 and N of 16: packed (N/16, K/64, 32, 4), scales (N/16, K/128, 16)
Types     x, scales and y bfloat16, or all float16; q whole numbers from -8 to 7, eight of them in an int32
Cost      2*M*N*K operations; of each weight four bits, and a hundred-and-twenty-eighth of a scale

No zero points: a weight is a whole number times the scale of its group. They would cost a number more for each group
and a subtraction of its own in each row, and of weights that are spread evenly around zero they make little better:
`quantisation_error` says how much. What rounding weights to four bits costs is no error of a kernel: the truth is
the product of exactly these numbers.
"""

from __future__ import annotations

import torch

from course_kernels.cuda.four_bits import GROUP, packed, quantised, scales_in_order, unpacked, values_of
from course_kernels.problem import INF, LARGE, NAN, Problem, Workload

MOST_ROWS = 128
SPREAD = 0.02  # of weights, as those of a trained layer: the scales are then far from 1
ROWS_AT_ONCE = 4096  # of weights in float64, so that the truth of 128256 x 4096 fits on a small card
MATH = {"bfloat16": "bf16", "float16": "fp16"}

# Rounding y once costs up to 2**-8 for bfloat16 and 2**-11 for float16. Who multiplies weights by their scales first
# rounds each of them, too; these errors differ in sign, and their sum over K is less than one more rounding of y.
MAX_ERROR = {"bfloat16": 2.0**-7, "float16": 2.0**-10}


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (M, K), normal with variance 1; weights, normal with a spread of 0.02, packed; and their scales, packed."""
    x = torch.randn(w.M, w.K, generator=generator, device=device).to(w.torch_dtype)
    weights = SPREAD * torch.randn(w.N, w.K, generator=generator, device=device)
    return x, *packed(*quantised(weights, w.torch_dtype))


def reference(x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Return the product of x and what the 4-bit numbers stand for, in float64: (M, N)."""
    x = x.double()
    strips = []
    for tile in range(0, words.shape[0], ROWS_AT_ONCE // 16):
        some = slice(tile, tile + ROWS_AT_ONCE // 16)
        strips.append(x @ values_of(unpacked(words[some]), scales_in_order(scales[some])).t())
    return torch.cat(strips, dim=1)


def quantisation_error(
    x: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype = torch.bfloat16
) -> dict[str, float]:
    """Return what four bits cost, whoever multiplies: errors against the product of the weights as they were.

    Args:
        x: (M, K), any floating-point type.
        weights: (N, K) float32, K a multiple of 128, not rounded.
        dtype: of the scales.
    Returns:
        Root mean squares, as shares of what is right: "weights" for the weights themselves and "product" for x times
        them; "with_zero_points" for weights with the zero point of each group chosen, too, which this problem has not.
    """
    back = values_of(*quantised(weights, dtype))
    groups = weights.double().unflatten(1, (-1, GROUP))
    # The range holds zero, so that its place is one of the sixteen.
    low, high = groups.amin(-1, keepdim=True).clamp(max=0), groups.amax(-1, keepdim=True).clamp(min=0)
    step = ((high - low) / 15).to(dtype).double().clamp_min(torch.finfo(torch.float64).tiny)
    zero = (-low / step).round().clamp(0, 15)
    shifted = ((groups / step).round() + zero).clamp(0, 15) - zero
    right = x.double() @ weights.double().t()
    return {
        "weights": _share(back - weights, weights),
        "product": _share(x.double() @ back.t() - right, right),
        "with_zero_points": _share(shifted * step - groups, groups),
    }


def _share(error: torch.Tensor, right: torch.Tensor) -> float:
    return float((error.double().square().mean() / right.double().square().mean()).sqrt())


def reads_bytes(w: Workload) -> int:
    """x, four bits of each weight, and the scales."""
    return w.element_bytes * (w.M * w.K + w.N * w.K // GROUP) + w.N * w.K // 2


# The layers of a Llama of 8B: gate and up together, attention's output, q, k and v together, down, and the head.
LAYERS = ((28672, 4096), (4096, 4096), (6144, 4096), (4096, 14336), (128256, 4096))

PROBLEM = Problem(
    name="skinny_gemm_w4",
    formula="y[m, n] = sum over k of x[m, k] * q[n, k] * s[n, k // 128]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    # Two large ones in a row would cancel, and leave their rounding; float16 ends at 65504, so one overflows y. The
    # four-bit numbers have no hard values: all sixteen are usual ones.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, *([] if w.dtype == "float16" else [LARGE])), 2: (NAN,)},),
    check_on=(
        Workload.of("bfloat16", M=1, N=16, K=128),  # a tile, and one group
        Workload.of("float16", M=3, N=48, K=384),  # an odd number of groups
        Workload.of("bfloat16", M=8, N=1008, K=1024),
        Workload.of("bfloat16", M=9, N=272, K=4224),  # one group more than a block of sixteen warps takes
        Workload.of(
            "float16", M=16, N=2128, K=4096
        ),  # more tiles than multiprocessors, and no multiple of them
        Workload.of("bfloat16", M=16, N=4112, K=640),
        Workload.of("bfloat16", M=2, N=160, K=14336),  # a long way through few tiles
        Workload.of("float16", M=17, N=80, K=256),
        Workload.of("bfloat16", M=100, N=1040, K=1152),
        Workload.of("bfloat16", M=128, N=144, K=512),
        Workload.of("bfloat16", M=1, N=ROWS_AT_ONCE + 16, K=128),  # the truth's second strip
    ),
    time_on=tuple(
        Workload.of("bfloat16", M=M, N=N, K=K)
        for number, (N, K) in enumerate(LAYERS)
        for M in ((1, 4, 16, 64, 128) if number == 0 else (1, 16))
    ),
)
