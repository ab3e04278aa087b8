"""Attention backward, kernel 4: the launcher of k04_wgmma.cu. Read that file first.

Contract  problem.py; heads of q may share those of k and v, and there may be more keys than rows or fewer
"""

from __future__ import annotations

import functools
from math import e, log2, sqrt
from pathlib import Path

import torch

from course_kernels.arguments import check_tensor
from course_kernels.attention_backward.arguments import HEAD_SIZES, MAX_N
from course_kernels.cuda.alignment import check_address
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.problem import Workload

SOURCE = Path(__file__).with_suffix(".cu")
DTYPES = (torch.bfloat16, torch.float16)
PANEL = 64  # numbers of a row that lie together in shared memory: 128 bytes
KEYS = 128  # of a block
STAGES = 2
THREADS = 384
LAYOUTS_KEPT = 4096  # a program that never asks twice for the same must not fill the memory


def supports(w: Workload) -> bool:
    """Return whether this kernel takes a workload: bfloat16 or float16, D = 64 or 128."""
    return w.dtype in ("bfloat16", "float16") and w.D in HEAD_SIZES


def rows_of_step(D: int) -> int:
    """Return rows of Q of one step, so that dQ of a step is 64 x 64 numbers for each of two warpgroups."""
    return 128 if D == 64 else 64


def shared_bytes(D: int) -> int:
    """Return the shared memory of a block."""
    rows, keys = rows_of_step(D), KEYS * D * 2
    tiles = 2 * keys + 2 * STAGES * rows * D * 2  # K, V, and rings of Q and dO
    sums = 2 * rows * KEYS * 2 + rows * D * 4  # dS twice, and dQ
    barriers = 8 * (3 + 4 * STAGES)
    return tiles + sums + 2 * STAGES * rows * 4 + barriers + 1024  # to begin where the swizzle does


def attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
    *,
    causal: bool = False,
    deterministic: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of attention.

    Args:
        q, o, do: (B, H, Nq, D) bfloat16 or float16, contiguous, D = 64 or 128, at addresses divisible by 16.
        k, v: (B, KV, Nk, D), the same type, contiguous; H is a multiple of KV, and neighbouring heads of q share one.
        lse: (B, H, Nq) float32, contiguous: what the forward pass kept, a natural logarithm; -inf for a row without
            keys.
        causal: row m sees keys up to m + Nk - Nq.
        deterministic: blocks of keys add to dq in one order, so the same call gives the same bits.
    Returns:
        dq, dk, dv: as q, k and v.
    Raises:
        TypeError: another type, or different ones.
        ValueError: shapes that do not fit, a size out of range, not contiguous, or an address between two vectors.
        RuntimeError: a GPU that is no Hopper.
    """
    given = (q, k, v, o, lse, do)
    try:
        layout = tuple(
            [(x.shape, x.dtype, x.is_contiguous(), x.get_device(), x.data_ptr() % 16) for x in given]
        )
    except AttributeError:  # not a tensor: told below
        layout = ()
    if layout not in _CHECKED:
        _check(*given)
        if len(_CHECKED) >= LAYOUTS_KEPT:
            _CHECKED.clear()
        _CHECKED.add(layout)
    (B, H, Nq, D), (KV, Nk) = q.shape, k.shape[1:3]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    device, step = q.get_device(), rows_of_step(D)
    blocks, heads = -(-Nq // step), B * H
    rows, scale = heads * blocks * step, 1 / sqrt(D)
    floats = torch.empty(rows * (D + 2), dtype=torch.float32, device=q.device)
    sums, of_rows, delta = floats.split_with_sizes((rows * D, rows, rows))
    turns = torch.zeros(heads * blocks, dtype=torch.int32, device=q.device) if deterministic else None
    begin, run, end = _kernels(D, q.dtype is torch.float16, causal, deterministic, device)
    begin(-(-rows // 8), o, do, lse, of_rows, delta, sums, Nq, blocks, heads)
    run(
        (-(-Nk // KEYS), KV, B),
        tensor_map(q, (1, 1, step, PANEL)),
        tensor_map(k, (1, 1, KEYS, PANEL)),
        tensor_map(v, (1, 1, KEYS, PANEL)),
        tensor_map(do, (1, 1, step, PANEL)),
        tensor_map(dk, (1, 1, 16, PANEL)),
        tensor_map(dv, (1, 1, 16, PANEL)),
        of_rows,
        delta,
        sums,
        turns,
        H,
        H // KV,
        Nq,
        Nk,
        blocks,
        scale,
        log2(e) * scale,
    )
    end(rows * D // 1024, sums, dq, Nq, blocks, scale)
    return dq, dk, dv


_CHECKED: set[tuple[object, ...]] = (
    set()
)  # layouts that were let through: whoever comes again is not asked again


@functools.cache
def _kernels(
    D: int, float16: bool, causal: bool, deterministic: bool, device: int
) -> tuple[Prepared, Prepared, Prepared]:
    defines = defines_of(D, float16, causal, deterministic)
    begin = prepare(SOURCE, "attention_backward_begin", block=256, defines=defines)
    run = prepare(
        SOURCE, "attention_backward_wgmma", block=THREADS, shared_bytes=shared_bytes(D), defines=defines
    )
    end = prepare(SOURCE, "attention_backward_end", block=256, defines=defines)
    return begin, run, end


def defines_of(D: int, float16: bool, causal: bool, deterministic: bool) -> dict[str, int]:
    """Return the macros of the kernels."""
    return {
        "HEAD": D,
        "FLOAT16": int(float16),
        "CAUSAL": int(causal),
        "DETERMINISTIC": int(deterministic),
        "STAGES": STAGES,
    }


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    o: torch.Tensor,
    lse: torch.Tensor,
    do: torch.Tensor,
) -> None:
    """Refuse what `attention_backward` does not take."""
    sizes: dict[str, int] = {}
    check_tensor("q", q, "BHMD", sizes, dtypes=DTYPES)
    for name, tensor, letters in (("k", k, "BGND"), ("v", v, "BGND"), ("o", o, "BHMD"), ("do", do, "BHMD")):
        check_tensor(name, tensor, letters, sizes, dtypes=(q.dtype,), device=q.device)
    check_tensor("lse", lse, "BHM", sizes, dtypes=(torch.float32,), device=q.device)
    for name, tensor in (("q", q), ("k", k), ("v", v), ("o", o), ("do", do)):
        check_address(name, tensor)
    (_, H, Nq, D), (KV, Nk) = q.shape, k.shape[1:3]
    if D not in HEAD_SIZES:
        raise ValueError(f"q: expected D = 64 or 128, got D={D}")
    if H % KV:
        raise ValueError(f"q, k: expected heads of q in groups of those of k, got {H} and {KV}")
    if max(Nq, Nk) > MAX_N:
        raise ValueError(f"q, k: expected at most {MAX_N} rows and keys, got {Nq} and {Nk}")
    if not is_hopper(q.device):
        raise RuntimeError(f"q: expected a Hopper GPU (compute capability 9.0), got {q.device}")
