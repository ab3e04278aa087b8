"""Kernels of others that PyTorch does not bring along, raced where they are installed.

All take q, k, v (B, H, N, D) bfloat16 or float16 and `causal`, and return (B, H, N, D).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from course_kernels.attention.library import flashinfer_fa3, flashinfer_version


@cache
def _flash_attention_4() -> Any:
    return import_module("flash_attn.cute.interface").flash_attn_func


def flash_attention_4(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False
) -> torch.Tensor:
    """FlashAttention-4, in CuTe-DSL, from its own repository. The first call of a type and D compiles.

    It has the heads inside, (B, N, H, D), and takes any strides: q, k and v go over as views, and the answer is one.

    Raises:
        RuntimeError: it is not installed.
    """
    if not has_flash_attention_4():
        raise RuntimeError(
            "flash_attn.cute: not installed here: the folder flash_attn/cute of FlashAttention's repository, and "
            "nvidia-cutlass-dsl"
        )
    found = _flash_attention_4()(*(x.transpose(1, 2) for x in (q, k, v)), causal=causal)
    o = found[0] if isinstance(found, tuple) else found  # some versions hand over the log-sum-exp as well
    return o.transpose(1, 2)


@cache
def has_flash_attention_4() -> bool:
    """Return whether FlashAttention-4 is installed here; nothing is imported but the packages around it."""
    try:
        return find_spec("flash_attn.cute.interface") is not None and find_spec("cutlass") is not None
    except ModuleNotFoundError:
        return False


def installed() -> dict[str, Callable[..., torch.Tensor]]:
    """Return those that can be raced here, by the names of the page: fa3, fa4."""
    found: dict[str, Callable[..., torch.Tensor]] = {}
    if flashinfer_version():
        found["fa3"] = flashinfer_fa3
    if has_flash_attention_4():
        found["fa4"] = flash_attention_4
    return found


def in_words() -> str:
    """Return a clause for a sentence: which of them were installed."""
    there = installed()
    if not there:
        return "where they are installed; on this machine neither was"
    missing = [name for key, name in (("fa3", "the former"), ("fa4", "the latter")) if key not in there]
    return (
        f"where they are installed; on this machine {missing[0]} was not"
        if missing
        else "both installed here"
    )
