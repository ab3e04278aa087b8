"""Peers for a mixture of experts: torch's grouped multiply between torch's own sort, gate and sum.

`torch._grouped_mm` takes rows sorted by expert and the end of each expert's rows, which stay on the device: the host
waits for nothing here either. It is torch's own (CUTLASS on Hopper), and wants rows of a multiple of 16 bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


def supports(w: Any) -> bool:
    """Return whether a workload is one for `torch._grouped_mm`: bfloat16, and rows of a multiple of 16 bytes."""
    return w.dtype == "bfloat16" and w.D % 8 == 0 and w.F % 8 == 0


def grouped_mm(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, *, top_k: int
) -> torch.Tensor:
    """Return the block's answer by two calls of `torch._grouped_mm` and operators around them.

    Args:
        x: (T, D) bfloat16.
        router: (E, D), gate_up: (E, 2 F, D), down: (E, D, F), the same type; D and F multiples of 8.
        top_k: experts of a token.
    Returns:
        (T, D), the same type.
    """
    return _by_scores(x, _scores(x, router), gate_up, down, top_k, _by_products)


def grouped_mm_compiled(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, *, top_k: int
) -> torch.Tensor:
    """Return the same, with what stands around the multiplies fused by torch.compile; one compilation a shape."""
    return _compiled()(x, _scores(x, router), gate_up, down, top_k, _by_sums)


def _scores(x: torch.Tensor, router: torch.Tensor) -> torch.Tensor:
    """Return the scores in float32: (T, E)."""
    if x.is_cuda:
        return torch.mm(x, router.T, out_dtype=torch.float32)
    return x.float() @ router.float().T


def _by_scores(
    x: torch.Tensor,
    scores: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    top_k: int,
    combined: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    T, E = scores.shape
    best, who = torch.topk(scores, top_k, dim=-1)
    weights = torch.softmax(best, dim=-1)  # (T, TOP_K) float32
    expert, order = who.flatten().sort()
    ends = torch.searchsorted(expert, torch.arange(E, device=x.device), right=True, out_int32=True)
    halves = torch._grouped_mm(x[order // top_k], gate_up.transpose(1, 2), offs=ends)
    gate, up = halves.chunk(2, dim=-1)
    answers = torch._grouped_mm(functional.silu(gate) * up, down.transpose(1, 2), offs=ends)
    place = torch.empty_like(order)
    place[order] = torch.arange(T * top_k, device=x.device)
    return combined(answers[place].view(T, top_k, -1), weights)


def _by_products(answers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sums as one batched multiply, which writes nothing in between."""
    return torch.bmm(weights[:, None].to(answers.dtype), answers)[:, 0]


def _by_sums(answers: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the weighted sums as a compiler fuses them."""
    return (answers * weights[:, :, None]).sum(dim=1).to(answers.dtype)


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of compiler processes for one kernel: a profiler follows every child
    return torch.compile(_by_scores, fullgraph=True, dynamic=False)
