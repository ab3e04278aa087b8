"""Sampling as others do it: by a sort, in torch's operators; and FlashInfer, which draws from numbers of its own.

What draws from other random numbers gives other tokens of the same distribution. The check of this problem asks for the
very token, so that it takes `torch_sorted` and no `flashinfer_drawn`: that one is held against the distribution alone.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import torch

from course_kernels.problem import INF
from course_kernels.sampling.problem import words_of


def torch_sorted(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    seeds: torch.Tensor,
    steps: torch.Tensor,
    top_k: torch.Tensor | None = None,
    top_p: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a sort of every row and a sum along it, as Hugging Face filters; then the contract's noise.

    It is right to the token as far as float32 goes, keeping all of several equal logits. The noise is made by torch's
    operators, one after the other in int64, and takes longer than all the rest: this is to read and to compare with,
        and
    no measure of a library.

    Args:
        logits, temperature, seeds, steps, top_k, top_p: see `k02_threshold`.
    Returns:
        (B,) int64.
    """
    x = torch.where(logits.isnan(), -INF, logits.float())
    cold = temperature[:, None] <= 0
    top = x.max(-1, keepdim=True).values
    z = torch.where(x == top, 0.0, (x - top) / torch.where(cold, 1.0, temperature[:, None]))
    V = z.shape[1]
    falling = z.sort(-1, descending=True).values
    least = torch.where(cold, 0.0, -INF)
    if top_k is not None:
        k = top_k.long()[:, None]
        least = torch.maximum(least, falling.gather(-1, torch.where((k > 0) & (k < V), k, V) - 1))
    if top_p is not None:
        p = top_p[:, None]
        weights = torch.where(falling >= least, falling.exp(), 0.0)
        sums = (weights / weights.sum(-1, keepdim=True)).cumsum(-1)
        # The last place before which less than p has come together; equals follow it, whatever the sum says.
        last = (sums < p).sum(-1, keepdim=True).clamp(max=V - 1)
        least = torch.where(p < 1, torch.maximum(least, falling.gather(-1, last)), least)
    words = words_of(seeds, steps, V)
    x_of, y_of = ((w.float() + 0.5) / 2**32 for w in (2**32 - 1 - words, words))  # see `k01_gumbel.noise`
    noise = -torch.where(x_of < 0.25, -torch.log1p(-x_of), -y_of.log()).log()
    score = torch.where((z >= least) & (x > -INF), torch.where(cold, z, z + noise), -INF)
    return (score == score.max(-1, keepdim=True).values).to(torch.int8).argmax(-1)


def flashinfer_version() -> str:
    """Return the FlashInfer that is installed here, such as "0.5.3", or "" where there is none; nothing is imported."""
    try:
        return version("flashinfer-python")
    except PackageNotFoundError:
        return ""


def flashinfer_drawn(
    logits: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """FlashInfer's draw without a sort, by rejection: top-k, then top-p; its random numbers begin on the host.

    Args:
        logits: (B, V) float32.
        temperature: (B,) float32, none of it 0: the logits are divided by it first, in a kernel of torch.
        top_k: (B,) int32, 1 to V.
        top_p: (B,) float32, above 0, at most 1.
        generator: of torch, on the device; without it the default one.
    Returns:
        (B,) int32.
    Raises:
        RuntimeError: FlashInfer is not installed.
    """
    if not flashinfer_version():
        raise RuntimeError(
            "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja"
        )
    draw = import_module("flashinfer.sampling").top_k_top_p_sampling_from_logits
    z = logits / temperature[:, None]
    tokens: torch.Tensor = draw(z, top_k, top_p, filter_apply_order="top_k_first", generator=generator)
    return tokens
