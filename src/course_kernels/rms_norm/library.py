"""Peers for RMSNorm and the addition: torch, its compiler; and Liger, FlashInfer and vLLM where installed.

FlashInfer and vLLM add the residual in place only, as our `k02_one_read.rms_norm_in_place` does: a check that holds
that no input changes takes them without a residual. Liger has new answers in both forms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import torch

from course_kernels.rms_norm.problem import EPSILON

Answer: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def eager(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None) -> Answer:
    """Return two calls of torch: the addition, rounded to the type, and `rms_norm` of what it wrote.

    Args:
        x, r: (M, N), any floating-point type; r may be missing.
        g: (N,), the same type.
    Returns:
        With r the pair y, s, each (M, N) of the same type; without it y.
    """
    s = x if r is None else x + r
    y = torch.nn.functional.rms_norm(s, (s.shape[-1],), g, EPSILON)
    return y if r is None else (y, s)


def compiled(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None) -> Answer:
    """`eager`, fused by torch.compile; shapes and errors are its own."""
    return _compiled()(x, g, r)


@functools.cache
def _compiled() -> Callable[..., Any]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(eager, fullgraph=True, dynamic=False)


def liger(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None) -> Answer:
    """Liger's Triton kernels, a program for each row: bfloat16, float16, float32.

    Raises:
        RuntimeError: Liger is not installed.
    """
    functional = _imported("liger_kernel.transformers.functional", "pip install liger-kernel")
    with torch.no_grad():
        if r is None:
            return functional.liger_rms_norm(x, g, EPSILON)
        return functional.liger_fused_add_rms_norm(x, r, g, EPSILON)


def flashinfer(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None) -> Answer:
    """FlashInfer's CUDA kernel without a residual: bfloat16 and float16. Its first call compiles, with nvcc.

    Raises:
        RuntimeError: FlashInfer is not installed.
        ValueError: there is an r.
    """
    _no_residual(r, "FlashInfer")
    return _imported("flashinfer.norm", "pip install flashinfer-python").rmsnorm(x, g, EPSILON)


def vllm(x: torch.Tensor, g: torch.Tensor, r: torch.Tensor | None = None) -> Answer:
    """vLLM's CUDA kernel without a residual: bfloat16, float16, float32.

    Raises:
        RuntimeError: vLLM is not installed.
        ValueError: there is an r.
    """
    _no_residual(r, "vLLM")
    operators = _imported("vllm._custom_ops", "pip install vllm")
    y = torch.empty_like(x)
    operators.rms_norm(y, x, g, EPSILON)
    return y


def _no_residual(r: torch.Tensor | None, who: str) -> None:
    if r is not None:
        raise ValueError(f"r: expected None, since {who} adds a residual in place only, got {tuple(r.shape)}")


def _imported(module: str, how: str) -> Any:
    package = module.partition(".")[0]
    if find_spec(package) is None:
        raise RuntimeError(f"{package}: not installed here: {how}")
    return import_module(module)
