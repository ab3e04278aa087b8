"""Speculative sampling as FlashInfer does it, in one kernel, from random numbers of its own.

What draws from other random numbers gives other tokens of the same distribution. So it is held against the distribution
first (`course_models.exact_pairs`), and raced on workloads with the flag `certain`: there every right rule has the same
answer, whatever it draws, and the check of this problem takes it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import torch


def flashinfer_version() -> str:
    """Return the FlashInfer that is installed here, such as "0.5.3", or "" where there is none; nothing is imported."""
    try:
        return version("flashinfer-python")
    except PackageNotFoundError:
        return ""


def flashinfer_chain(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """FlashInfer's kernel for a draft that is a chain.

    Args:
        target, draft, drafted: see `k02_one_launch`, none of it outside of the contract.
        temperature, uniforms: not looked at: it knows no greedy rows, and draws its own numbers.
        generator: of torch, on the device; without it the default one.
    Returns:
        tokens (B, K + 1) int32, -1 behind the last, and accepted (B,) int32: those before the first that was refused.
        FlashInfer calls these emitted; its own *accepted* counts what would have passed behind the first refusal, too.
    Raises:
        RuntimeError: FlashInfer is not installed.
    """
    if not flashinfer_version():
        raise RuntimeError(
            "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
        )
    verify = import_module("flashinfer.sampling").chain_speculative_sampling
    tokens, _, emitted = verify(draft, drafted, target, generator=generator)
    return tokens, emitted
