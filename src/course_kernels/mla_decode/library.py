"""MLA decode of others: FlashInfer's for Hopper and DeepSeek's FlashMLA, where they are installed; and torch's, a copy.

FlashInfer plans on the host, from lengths; here it plans for a cache that is full: every sequence has MOST * 64 tokens.
FlashMLA plans on the device, at the first call, from the lengths that it finds there.
"""

from __future__ import annotations

from functools import cache as cached
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from course_kernels.mla_decode.problem import LATENT, PAGE, ROPE, ROW, SCALE

# What FlashInfer keeps its plan and its parts in; the size that its own documentation uses.
WORKSPACE_BYTES = 128 * 1024 * 1024

# Plans that are kept. Each holds on to its table and its workspace.
PLANS = 2


def sdpa_gathered(
    q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """torch's indexing, which copies all pages to where they lie side by side, and `scaled_dot_product_attention`.

    All heads are the rows of one: they share the keys. For a cache that is full; the lengths are not looked at.
    """
    rows = cache[block_table].view(len(q), 1, -1, ROW)
    return scaled_dot_product_attention(q[:, None], rows, rows[..., :LATENT], scale=SCALE)[:, 0]


@cached
def flashinfer_version() -> str:
    """Return the FlashInfer that is installed here, such as "0.6.9", or "" where there is none; nothing is imported."""
    return _version("flashinfer-python")


@cached
def flash_mla_version() -> str:
    """Return the FlashMLA that is installed here, such as "1.0.0", or "" where there is none; nothing is imported."""
    return _version("flash-mla") or _version("flash_mla")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def flashinfer_fa3(
    q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """FlashInfer's MLA over pages, its back end for Hopper.

    It plans on the host: once for shapes and a table, and all later calls with them run the plan, as the layers of a
    model do in one step. Query and cache go over as they lie, in two views each; nothing is copied. The first call
    compiles, with nvcc, for minutes.

    Args:
        q, cache, block_table: as the kernels of this folder.
        lengths: not looked at: the cache is full.
    Raises:
        RuntimeError: FlashInfer is not installed.
    """
    if not flashinfer_version():
        raise RuntimeError(
            "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
        )
    plan = _plan(block_table, block_table.data_ptr(), tuple(block_table.shape), q.shape[1], q.dtype)
    out: torch.Tensor = plan.run(
        q[..., :LATENT], q[..., LATENT:], cache[..., :LATENT], cache[..., LATENT:],
        out=torch.empty((*q.shape[:2], LATENT), dtype=q.dtype, device=q.device),
    )  # fmt: skip
    return out


@lru_cache(maxsize=PLANS)
def _plan(block_table: torch.Tensor, address: int, table: tuple[int, int], H: int, dtype: torch.dtype) -> Any:
    """Return a wrapper that has planned for a full cache. It keeps the table itself, and sees what is written there."""
    mla = import_module("flashinfer.mla")
    (B, MOST), device = table, block_table.device
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.int8, device=device)
    wrapper = mla.BatchMLAPagedAttentionWrapper(workspace, backend="fa3")
    one_each = torch.arange(0, B + 1, dtype=torch.int32)
    # A full table is the list of pages that FlashInfer asks for, row after row without a gap.
    wrapper.plan(
        one_each, one_each * MOST, block_table.view(-1), torch.full((B,), MOST * PAGE, dtype=torch.int32),
        H, LATENT, ROPE, PAGE, False, SCALE, dtype, dtype,
    )  # fmt: skip
    return wrapper


def flash_mla(
    q: torch.Tensor, cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """DeepSeek's FlashMLA over pages of 64 tokens.

    It plans on the device at the first call for shapes and lengths; later ones with the same tensor of lengths run that
    plan, as the layers of a model do in one step.

    Args:
        q, cache, block_table, lengths: as the kernels of this folder.
    Raises:
        RuntimeError: FlashMLA is not installed.
    """
    if not flash_mla_version():
        raise RuntimeError("flash_mla: not installed here: build github.com/deepseek-ai/FlashMLA, with nvcc")
    module = import_module("flash_mla")
    plan = _flash_mla_plan(lengths.data_ptr(), len(q), q.shape[1])
    out, _ = module.flash_mla_with_kvcache(
        q[:, None], cache[:, :, None], block_table, lengths, LATENT, plan, None, softmax_scale=SCALE
    )
    answer: torch.Tensor = out[:, 0]
    return answer


@lru_cache(maxsize=PLANS)
def _flash_mla_plan(address: int, B: int, H: int) -> Any:
    plan, _ = import_module("flash_mla").get_mla_metadata()
    return plan
