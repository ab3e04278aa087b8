"""Peers for SwiGLU: torch, its compiler; and Liger, FlashInfer and vLLM where installed.

Liger takes gate and up apart; FlashInfer and vLLM take them merged.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch


def eager(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """Return two operators: silu(gate), rounded to the type and written to memory, times up.

    Args:
        gate: (M, F), any floating-point type; or (M, 2 F), where there is no up.
        up: (M, F), the same type.
    Returns:
        (M, F), the same type.
    """
    if up is None:
        gate, up = gate.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def compiled(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """`eager`, fused by torch.compile; shapes and errors are its own."""
    return _compiled()(gate, up)


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(eager, fullgraph=True, dynamic=False)


def liger(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """Liger's Triton kernel, a program for each row of gate and up: bfloat16, float16, float32.

    Raises:
        RuntimeError: Liger is not installed.
        ValueError: there is no up.
    """
    if up is None:
        raise ValueError("up: expected a tensor, since Liger takes gate and up apart, got None")
    functional = _imported("liger_kernel.transformers.functional", "pip install liger-kernel")
    with torch.no_grad():
        return functional.liger_swiglu(gate, up)


def flashinfer(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """FlashInfer's CUDA kernel for a merged gate: bfloat16 and float16. Its first call compiles, with nvcc.

    Raises:
        RuntimeError: FlashInfer is not installed.
        ValueError: there is an up.
    """
    _merged(up, "FlashInfer")
    return _imported("flashinfer.activation", "pip install flashinfer-python").silu_and_mul(gate)


def vllm(gate: torch.Tensor, up: torch.Tensor | None = None) -> torch.Tensor:
    """vLLM's CUDA kernel for a merged gate: bfloat16, float16, float32.

    Raises:
        RuntimeError: vLLM is not installed.
        ValueError: there is an up.
    """
    _merged(up, "vLLM")
    _imported("vllm._custom_ops", "pip install vllm")  # it makes the operator known to torch
    y = torch.empty((gate.shape[0], gate.shape[1] // 2), dtype=gate.dtype, device=gate.device)
    torch.ops._C.silu_and_mul(y, gate)
    return y


def _merged(up: torch.Tensor | None, who: str) -> None:
    if up is not None:
        raise ValueError(f"up: expected None, since {who} takes gate and up merged, got {tuple(up.shape)}")


def _imported(module: str, how: str) -> Any:
    package = module.partition(".")[0]
    if find_spec(package) is None:
        raise RuntimeError(f"{package}: not installed here: {how}")
    return import_module(module)
