"""Block-scaled multiplies for Blackwell, NVFP4 and MXFP8: the launcher of scaled.cu, and the formats' layout.

    C[m, n] = scale * sum over k of A[m, k] * a_scales[m, k / share] * B[n, k] * b_scales[n, k / share]

Shapes    A (M, K), B (N, K), both along k; C (M, N)
Types     NVFP4: E2M1, two in a byte of uint8, the first in the lower half; scales float8_e4m3fn, one for 16 of k.
          MXFP8: float8_e4m3fn; scales float8_e8m0fnu, one for 32 of k. Sums in float32, C bfloat16
Scales    in blocks of 512 bytes, each for 128 rows and four scales of k; the block of rows 128 * i and scales 4 * j is
          [i, j]. In it row r has its four at 16 * (r % 32) + 4 * (r / 32). `in_blocks` makes them
Cost      2*M*N*K operations; read A, B and their scales, write C once
Source    PTX ISA, tcgen05: Block scaling; OCP Microscaling Formats; cuBLAS, 1D block scaling factors layout
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.blackwell.card import check_card
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.nvfp4.formats import E2M1, values

SOURCE = Path(__file__).with_suffix(".cu")
# As in the source.
BM = BN = 128
STAGES, THREADS = 4, 128
ROW_BYTES = 128
BLOCK_BYTES = 512  # of scales
ROWS, TOGETHER = 128, 4  # of a block of scales
MAX_SIZE = 2**30


@dataclass(frozen=True)
class Format:
    """Numbers of a few bits, and scales that some of them share.

    Attributes:
        name: as in `machine_code.KERNELS`.
        bits: of a number.
        share: numbers of a row that one scale is for.
        numbers, scales: how torch calls what they are stored as.
    """

    name: str
    bits: int
    share: int
    numbers: torch.dtype
    scales: torch.dtype

    @property
    def deep(self) -> int:
        """k of one product, 32 bytes: K is a multiple of it."""
        return 32 * 8 // self.bits

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: stages with their scales, two barriers each, one more, TMEM's address."""
        blocks = ROW_BYTES * 8 // self.bits // (TOGETHER * self.share)
        return STAGES * ((BM + BN) * ROW_BYTES + 2 * blocks * BLOCK_BYTES + 16) + 16


NVFP4 = Format("nvfp4", 4, 16, torch.uint8, torch.float8_e4m3fn)
MXFP8 = Format("mxfp8", 8, 32, torch.float8_e4m3fn, torch.float8_e8m0fnu)


# --- layout, and the truth ------------------------------------------------------------------------


def in_blocks(scales: torch.Tensor) -> torch.Tensor:
    """Return scales as the copy to tensor memory takes them, with the code 0 where rows or columns are filled up.

    Args:
        scales: (R, S), one byte each, such as float8_e4m3fn: S scales along each of R rows.
    Returns:
        (ceil(R / 128), ceil(S / 4), 512) uint8.
    Raises:
        TypeError: scales are not of one byte.
        ValueError: they have not two dimensions.
    """
    if scales.element_size() != 1:
        raise TypeError(f"scales: expected one byte each, got {str(scales.dtype).removeprefix('torch.')}")
    if scales.dim() != 2:
        raise ValueError(f"scales: expected (R, S), got shape {tuple(scales.shape)}")
    R, S = scales.shape
    high, wide = -(-R // ROWS), -(-S // TOGETHER)
    padded = torch.zeros(high * ROWS, wide * TOGETHER, dtype=torch.uint8, device=scales.device)
    padded[:R, :S] = scales.view(torch.uint8)
    # Row 32 * q + r of a block, scale j: byte 16 * r + 4 * q + j.
    parts = padded.view(high, 4, 32, wide, TOGETHER).permute(0, 3, 2, 1, 4)
    return parts.reshape(high, wide, BLOCK_BYTES).contiguous()


def values_of(numbers: torch.Tensor, scales: torch.Tensor, form: Format) -> torch.Tensor:
    """Return what stored numbers and their scales, not in blocks, stand for: (R, K) float64.

    Args:
        numbers: (R, K * bits / 8) of the format's type.
        scales: (R, K / share) of the format's type.
        form: the format.
    """
    if form.bits == 4:
        codes = torch.stack([numbers & 15, numbers >> 4], dim=-1).flatten(1).long()
        plain = torch.tensor(values(E2M1), device=numbers.device)[codes]
    else:
        plain = numbers.to(torch.float32).double()
    return plain * scales.to(torch.float32).double().repeat_interleave(form.share, dim=1)


# --- launcher -------------------------------------------------------------------------------------


def gemm(
    a: torch.Tensor,
    a_scales: torch.Tensor,
    b: torch.Tensor,
    b_scales: torch.Tensor,
    scale: float = 1.0,
    *,
    form: Format = NVFP4,
) -> torch.Tensor:
    """Return the block-scaled product of A and the transpose of B, on data-centre Blackwell.

    Args:
        a: (M, K * bits / 8) of the format's type, contiguous; K a multiple of 64 (NVFP4) or 32 (MXFP8).
        a_scales: `in_blocks` of (M, K / share).
        b: (N, K * bits / 8), N a multiple of 8.
        b_scales: `in_blocks` of (N, K / share).
        scale: of the whole product: NVFP4's second scales of A and of B, multiplied.
        form: NVFP4 or MXFP8.
    Returns:
        (M, N) bfloat16; sums over K in float32, times `scale`, rounded once.
    Raises:
        TypeError: another type than the format's.
        ValueError: another card, see `check_card`; or shapes, sizes, layout, device or address not as above.
    """
    check_card(form.name)
    sizes: dict[str, int] = {}
    check_tensor("a", a, "MK", sizes, dtypes=(form.numbers,))  # K in bytes
    check_tensor("b", b, "NK", sizes, dtypes=(form.numbers,), device=a.device)
    M, N, K = sizes["M"], sizes["N"], sizes["K"] * 8 // form.bits
    for name, letter, size, multiple in (("a", "K", K, form.deep), ("b", "N", N, 8)):
        if size % multiple:
            raise ValueError(f"{name}: expected {letter} a multiple of {multiple}, got {letter}={size}")
    for name, letter, size in (("a", "M", M), ("b", "N", N), ("a", "K", K)):
        check_size(name, letter, size, MAX_SIZE)
    for name, blocks, rows in (("a_scales", a_scales, M), ("b_scales", b_scales, N)):
        wanted = (-(-rows // ROWS), -(-K // (TOGETHER * form.share)), BLOCK_BYTES)
        if isinstance(blocks, torch.Tensor) and blocks.shape != wanted:
            raise ValueError(f"{name}: expected {wanted}, as in_blocks makes them, got {tuple(blocks.shape)}")
        check_tensor(name, blocks, "IJB", {}, dtypes=(torch.uint8,), device=a.device)
        check_address(name, blocks)
    c = torch.empty((M, N), dtype=torch.bfloat16, device=a.device)
    maps = [tensor_map(x.view(torch.uint8), (128, ROW_BYTES)) for x in (a, b)]
    kernel = _prepared(a.get_device(), form)
    kernel(-(-M // BM) * -(-N // BN), *maps, a_scales, b_scales, c, scale, M, N, K)
    return c


@functools.cache
def _prepared(device: int, form: Format) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    defines = {"EIGHT_BITS": int(form.bits == 8)}
    return prepare(SOURCE, "gemm_scaled", block=THREADS, shared_bytes=form.shared_bytes, defines=defines)
