"""A model with rounded weights: what a number format does to its loss.

    model = pretrained.load("small", dtype=torch.float32)
    bits_per_byte(rounded_model(model, Rounding("NVFP4")), library.held_out)

Weights alone are rounded, those of the seven products of a layer, and along the sums of the products, as kernels need
it. Embedding, head, norms and a router stay, and so do the numbers that flow through the model.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from course_kernels.nvfp4.accuracy import COMPARED, Errors, Rounding, errors, rounded
from course_models.model import Model

ROUNDED = ("query", "key", "value", "output", "gate", "up", "down")  # of a layer


def matrices(model: Model) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights that are rounded, by their names, such as "layers.0.query": (…, out, in)."""
    for name, weight in model.named_parameters():
        if name.rpartition(".")[2] in ROUNDED:
            yield name, weight.data


def rounded_model(model: Model, how: Rounding) -> Model:
    """Return a copy of a model whose weights are what a format keeps of them.

    Args:
        model: on any device. In float32 the copy has the format's very numbers; in a shorter type they are rounded once
            more, to that.
        how: the format. Every matrix is a tensor of its own: with experts, all of them together.
    Raises:
        ValueError: a matrix whose rows are no multiple of the format's block: its name.
    """
    twin = copy.deepcopy(model)
    for name, weight in matrices(twin):
        if weight.shape[-1] % how.multiple:
            raise ValueError(
                f"{name}: expected rows of a multiple of {how.multiple} for {how.name}, got {weight.shape[-1]}"
            )
        weight.copy_(torch.from_numpy(rounded(weight.float().cpu().numpy(), how)))
    return twin


def weight_errors(model: Model, twin: Model, block: int = COMPARED) -> dict[str, Errors]:
    """Return the errors of a copy's weights, by the names of the matrices.

    Args:
        model, twin: of the same sizes, such as a model and `rounded_model` of it.
        block: as for `accuracy.errors`.
    """
    others = dict(matrices(twin))
    return {
        name: errors(weight.float().cpu().numpy(), others[name].float().cpu().numpy(), block)
        for name, weight in matrices(model)
    }
