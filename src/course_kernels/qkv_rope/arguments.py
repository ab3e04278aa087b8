"""Checks shared by the launchers of this folder: refuse what no kernel takes, and say where the answers go."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from course_kernels.arguments import check_size, check_tensor
from course_kernels.problem import Workload

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
HEAD_SIZES = (64, 128)  # what decode attention takes
MAX_B = 32  # rows whose sums lie in registers together
MAX_W = 2**24  # a row of x, and those of all B together, are counted with 32 bits
MAX_TABLE = 2**24  # so are the D/2 numbers of P positions
MAX_OUTPUTS = 2**20  # and the answers of all B


class Sizes(NamedTuple):
    """B sequences, rows of W numbers, H heads of queries, KV of keys and values, D numbers of a head, P positions."""

    B: int
    W: int
    H: int
    KV: int
    D: int
    P: int


class Places(NamedTuple):
    """Destinations of the answers: q (B, H, D).

    K and v (B, KV, N, D), written at the position if `into_cache`, else N = 1.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    N: int
    into_cache: bool


def sizes_of(
    x: torch.Tensor,
    g: torch.Tensor,
    w_qkv: torch.Tensor,
    positions: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    kv_heads: int,
) -> Sizes:
    """Return the sizes of a call.

    Args:
        x: (B, W) bfloat16, float16 or float32, contiguous, B <= 32, W <= 2**24.
        g: (W,), the same type, contiguous.
        w_qkv: ((H + 2 KV) * D, W), the same type, contiguous: queries, then keys, then values.
        positions: (B,) int32. What is in it is not looked at: that would be a wait for the GPU.
        cos, sin: (P, D/2) float32, contiguous; D = 64 or 128, P * D/2 <= 2**24.
        kv_heads: KV; H is a multiple of it.
    Raises:
        TypeError: another type.
        ValueError: shapes that do not fit together, a size out of range, not contiguous, or not on the current GPU.
    """
    sizes: dict[str, int] = {}
    check_tensor("x", x, "BW", sizes, dtypes=DTYPES)
    check_tensor("g", g, "W", sizes, dtypes=(x.dtype,), device=x.device)
    check_tensor("w_qkv", w_qkv, "OW", sizes, dtypes=(x.dtype,), device=x.device)
    check_tensor("positions", positions, "B", sizes, dtypes=(torch.int32,), device=x.device)
    of_table: Any = ("P", "D/2")  # a name of three letters: a string would give it three dimensions
    for name, table in (("cos", cos), ("sin", sin)):
        check_tensor(name, table, of_table, sizes, dtypes=(torch.float32,), device=x.device)
    B, W, outputs, P, D = sizes["B"], sizes["W"], sizes["O"], sizes["P"], 2 * sizes["D/2"]
    if D not in HEAD_SIZES:
        raise ValueError(f"cos: expected D/2 = 32 or 64, got D/2={D // 2}")
    H = outputs // D - 2 * kv_heads
    if kv_heads < 1 or outputs % D or H < 1 or H % kv_heads:
        raise ValueError(
            f"w_qkv: expected ((H + 2 KV) * D, W) with D={D}, KV={kv_heads} and H a multiple of KV, "
            f"got {tuple(w_qkv.shape)}"
        )
    check_size("x", "B", B, MAX_B)
    check_size("x", "W", W, MAX_W)
    check_size("w_qkv", "(H + 2 KV) * D", outputs, MAX_OUTPUTS)
    check_size("cos", "P * D/2", P * D // 2, MAX_TABLE)
    return Sizes(B, W, H, kv_heads, D, P)


def new_places(x: torch.Tensor, s: Sizes) -> Places:
    """Make new tensors for q (B, H, D), k and v (B, KV, D)."""
    q = torch.empty((s.B, s.H, s.D), dtype=x.dtype, device=x.device)
    k, v = (torch.empty((s.B, s.KV, s.D), dtype=x.dtype, device=x.device) for _ in range(2))
    return Places(q, k, v, 1, into_cache=False)


def heads_of_cache(k_cache: torch.Tensor) -> int:
    """KV of a cache, before anything of it is checked; 0 where it has no such dimension."""
    return k_cache.shape[1] if isinstance(k_cache, torch.Tensor) and k_cache.dim() > 1 else 0


def cache_places(x: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, s: Sizes) -> Places:
    """Return a new q (B, H, D), and the caches.

    Raises:
        TypeError: a cache of another type than x.
        ValueError: one that is not (B, KV, N, D), not contiguous, or elsewhere; or both in the same memory.
    """
    sizes = {"B": s.B, "KV": s.KV, "D": s.D}
    of_cache: Any = ("B", "KV", "N", "D")
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        check_tensor(name, cache, of_cache, sizes, dtypes=(x.dtype,), device=x.device)
    if k_cache.data_ptr() == v_cache.data_ptr():
        raise ValueError("v_cache: expected another tensor than k_cache, got the same memory")
    q = torch.empty((s.B, s.H, s.D), dtype=x.dtype, device=x.device)
    return Places(q, k_cache, v_cache, sizes["N"], into_cache=True)


def supports(w: Workload) -> bool:
    """Return whether the kernels of this folder take a workload."""
    known = w.dtype in {str(dtype).removeprefix("torch.") for dtype in DTYPES}
    return known and w.D in HEAD_SIZES and w.H % w.KV == 0 and w.B <= MAX_B
