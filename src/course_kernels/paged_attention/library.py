"""Paged attention of others: FlashInfer, where it is installed; and what torch offers, which is a copy.

All take what the problem's kernels take with pages of 16 bits, and answer for a cache that is full: every sequence has
MOST * PAGE tokens, and the lengths are not looked at. Both libraries want lengths on the host, to plan; a page of 8
bits they scale by one number that is on the host, too.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

# What FlashInfer keeps its plan and its parts in; the size that its own documentation uses.
WORKSPACE_BYTES = 128 * 1024 * 1024

# Plans that are kept. Each holds on to its table and its workspace.
PLANS = 2


def sdpa_gathered(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """torch's indexing, which copies all pages to where they lie side by side, and `scaled_dot_product_attention`."""
    B, MOST = block_table.shape
    _, KV, PAGE, D = k_pages.shape
    k, v = (x[block_table].transpose(1, 2).reshape(B, KV, MOST * PAGE, D) for x in (k_pages, v_pages))
    return scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=True)[:, :, 0]


@cache
def flashinfer_version() -> str:
    """Return the FlashInfer that is installed here, such as "0.5.3", or "" where there is none; nothing is imported."""
    try:
        return version("flashinfer-python")
    except PackageNotFoundError:
        return ""


def flashinfer_decode(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """FlashInfer's decode over pages on CUDA cores: bfloat16 and float16. See `flashinfer_tensor_cores`."""
    return _flashinfer(q, k_pages, v_pages, block_table, tensor_cores=False)


def flashinfer_tensor_cores(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """FlashInfer's decode over pages on tensor cores, which it advises from four heads a group on.

    It plans on the host, from the lengths: once for shapes and a table, and all later calls with them run the plan, as
        the
    layers of a model do in one step. Pages and table go over as they lie; nothing is copied. The first call of a type
    and D compiles, with nvcc, for minutes.

    Raises:
        RuntimeError: FlashInfer is not installed.
        TypeError: pages of another type than q.
    """
    return _flashinfer(q, k_pages, v_pages, block_table, tensor_cores=True)


def _flashinfer(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    block_table: torch.Tensor,
    *,
    tensor_cores: bool,
) -> torch.Tensor:
    if not flashinfer_version():
        raise RuntimeError(
            "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
        )
    if k_pages.dtype != q.dtype:
        raise TypeError(f"k_pages: expected {q.dtype}, the type of q, got {k_pages.dtype}")
    plan = _plan(
        block_table, block_table.data_ptr(), tuple(block_table.shape), q.shape[1], tuple(k_pages.shape[1:]), q.dtype,
        tensor_cores,
    )  # fmt: skip
    out: torch.Tensor = plan.run(q, (k_pages, v_pages))
    return out


@lru_cache(maxsize=PLANS)
def _plan(
    block_table: torch.Tensor,
    address: int,
    table: tuple[int, int],
    H: int,
    page: tuple[int, int, int],
    dtype: torch.dtype,
    tensor_cores: bool,
) -> Any:
    """Return a wrapper that has planned for a full cache. It keeps the table itself, and sees what is written there."""
    flashinfer = import_module("flashinfer")
    (B, MOST), (KV, PAGE, D), device = table, page, block_table.device
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "HND", use_tensor_cores=tensor_cores)
    # A full table is the list of pages that FlashInfer asks for, row after row without a gap.
    wrapper.plan(
        torch.arange(0, B * MOST + 1, MOST, dtype=torch.int32), block_table.view(-1),
        torch.full((B,), PAGE, dtype=torch.int32), H, KV, D, PAGE, q_data_type=dtype, kv_data_type=dtype,
    )  # fmt: skip
    return wrapper
