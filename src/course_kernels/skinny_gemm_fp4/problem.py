"""A few rows in bfloat16 times a matrix of weights in NVFP4, the contract.

    y[m, n] = second * sum over k of x[m, k] * (code[n, k] * scale[n, k / 16])

Shapes    x (M, K), M = 1 to 128; y (M, N); codes (N, K) and scales (N, K/16), both packed as layout.py says, K a
          multiple of 128 and N of 16: packed (N/16, K/64, 32, 4), scales (N/16, K/128, 32, 4); second (1,)
Types     x and y bfloat16; codes E2M1, eight of them in an int32; scales E4M3 in bytes of their own, uint8; second
          float32, the tensor's own scale
Cost      2*M*N*K operations; nine bytes for sixteen weights

It is what a card without FP4 arithmetic does with a checkpoint in NVFP4: the weights are decoded where they are
multiplied, and the activations are never rounded to four bits. What rounding the weights cost is no error of a kernel:
the truth is the product of exactly these numbers. A code times its scale is exact in bfloat16; times the second scale
it is not, so that scale belongs to the sum.
"""

from __future__ import annotations

import torch

from course_kernels.nvfp4.formats import E4M3, encode, magnitudes
from course_kernels.problem import INF, LARGE, NAN, Problem, Workload
from course_kernels.skinny_gemm_fp4.layout import GROUP, LANES, SCALE, TILE_K, TILE_N, WORDS, values_of

MOST_ROWS = 128
LARGEST_SCALE = 2.0  # of a block: sums of many numbers stay far from float32's end
SECOND = 0.01  # about what the weights of a trained layer have
ROWS_AT_ONCE = 4096  # of weights in float64, so that the truth of 128256 x 4096 fits on a small card

# Rounding y once costs up to 2**-8. Who multiplies the weights by the second scale first rounds each of them, too;
# these errors differ in sign, and their sum over K is less than one more rounding of y.
MAX_ERROR = 2.0**-7


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (M, K), normal with variance 1; any codes; scales up to 2, E4M3's subnormal ones too; the second scale."""
    x = torch.randn(w.M, w.K, generator=generator, device=device).to(w.torch_dtype)
    across = w.K // TILE_K
    words = torch.randint(
        -(2**31), 2**31, (w.N // TILE_N, across, LANES, WORDS), generator=generator, device=device
    ).to(torch.int32)
    sizes = torch.tensor(scale_codes(), dtype=torch.uint8, device=device)
    at = torch.randint(
        len(sizes), (w.N // TILE_N, w.K // GROUP, LANES, WORDS), generator=generator, device=device
    )
    second = SECOND * (1 + torch.rand(1, generator=generator, device=device))
    return x, words, sizes[at], second


def scale_codes() -> list[int]:
    """Return the codes that the layout gives to the scales of E4M3 above zero, up to 2."""
    numbers = magnitudes(E4M3)
    return encode(numbers[(numbers > 0) & (numbers <= LARGEST_SCALE)], SCALE).tolist()


def reference(
    x: torch.Tensor, words: torch.Tensor, scales: torch.Tensor, second: torch.Tensor
) -> torch.Tensor:
    """Return the product of x and what the codes stand for, in float64: (M, N)."""
    x = x.double()
    strips = []
    for tile in range(0, words.shape[0], ROWS_AT_ONCE // TILE_N):
        some = slice(tile, tile + ROWS_AT_ONCE // TILE_N)
        strips.append(x @ values_of(words[some], scales[some]).t())
    return torch.cat(strips, dim=1) * second.double()


def reads_bytes(w: Workload) -> int:
    """x, half a byte for each weight, a byte for each sixteen, and the second scale."""
    return w.element_bytes * w.M * w.K + w.N * w.K // 2 + w.N * w.K // 16 + 4


# The layers of a Llama of 8B: gate and up together, attention's output, q, k and v together, down, and the head.
LAYERS = ((28672, 4096), (4096, 4096), (6144, 4096), (4096, 14336), (128256, 4096))

PROBLEM = Problem(
    name="skinny_gemm_fp4",
    formula="y[m, n] = second * sum over k of x[m, k] * code[n, k] * scale[n, k // 16]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.M * w.N,
    flops=lambda w: 2 * w.M * w.N * w.K,
    math=lambda w: "bf16",
    max_error=lambda w: MAX_ERROR,
    # Two large ones in a row would cancel, and leave their rounding. All sixteen codes are usual ones; a byte holds no
    # NaN that could be planted in the scales.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF, LARGE)}, {3: (0.0,)}, {3: (NAN,)}),
    check_on=(
        Workload.of("bfloat16", M=1, N=16, K=128),  # a tile, and one group
        Workload.of("bfloat16", M=3, N=48, K=384),  # an odd number of groups
        Workload.of("bfloat16", M=8, N=1008, K=1024),
        Workload.of("bfloat16", M=9, N=272, K=4224),  # one group more than a block of sixteen warps takes
        # More tiles than multiprocessors, and no multiple of them.
        Workload.of("bfloat16", M=16, N=2128, K=4096),
        Workload.of("bfloat16", M=16, N=4112, K=640),
        Workload.of("bfloat16", M=2, N=160, K=14336),  # a long way through few tiles
        Workload.of("bfloat16", M=17, N=80, K=256),
        Workload.of("bfloat16", M=100, N=1040, K=1152),
        Workload.of("bfloat16", M=128, N=144, K=512),
        Workload.of("bfloat16", M=1, N=ROWS_AT_ONCE + 16, K=128),  # the truth's second strip
    ),
    time_on=tuple(
        Workload.of("bfloat16", M=M, N=N, K=K)
        for number, (N, K) in enumerate(LAYERS)
        for M in ((1, 2, 4, 8, 16) if number == 0 else (1, 16))
    ),
)
