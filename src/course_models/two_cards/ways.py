"""One step of training on two cards, in five ways that make the same step.

    alone    a card by itself: no gradient is exchanged, so it is no training; what the others are held against
    by_hand  one AllReduce behind the backward pass
    ddp      torch's DistributedDataParallel: an AllReduce for each bucket of gradients, beside the backward pass
    zero2    torch's fully_shard, FSDP2, that keeps gathered parameters until their backward pass
    zero3    the same, that gathers them once more for it

Weights and gradients are of the model's type, bfloat16 when it counts; the optimizer works on a float32 copy, with two
more numbers a weight: 2 + 2 + 12 bytes each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from course_models.config import Config
from course_models.model import Layer, Model, rope_tables, train_layer
from course_models.operators import PLAIN, sdpa_prefill_attention

WAYS = ("alone", "by_hand", "ddp", "zero2", "zero3")
CARDS = 2
GROUP = 9  # weights of a layer: the optimizer takes so many at once
RATE, MEAN, SQUARE, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


FAST = dataclasses.replace(PLAIN, prefill_attention=sdpa_prefill_attention, rms_norm=_rms_norm)


class Block(nn.Module):
    """A layer that is called, so that hooks on it run: FSDP2 gathers in them."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return x (B, N, width) behind this layer."""
        return train_layer(FAST, self.layer, x, cos, sin)


class Whole(nn.Module):
    """The weights of a `Model`, in blocks that can be shared out.

    Args:
        model: without tied tables; its weights are taken over, not copied.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.config = model.config
        self.embedding, self.norm, self.head = model.embedding, model.norm, model.head
        self.blocks = nn.ModuleList(Block(layer) for layer in model.layers)
        kind = torch.promote_types(model.dtype, torch.float32)
        self._turns = rope_tables(model.config, kind, model.device)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the loss of guessing each next token of (B, N + 1): 0-d, float32 at least."""
        before, after = tokens[:, :-1], tokens[:, 1:]
        cos, sin = (table[: before.shape[1]][None, None] for table in self._turns)
        x = functional.embedding(before, self.embedding)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = FAST.linear(FAST.rms_norm(x, self.norm, self.config.norm_eps), self.head)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return functional.cross_entropy(wide.flatten(0, 1), after.flatten())


def local(x: Tensor) -> Tensor:
    """Return this card's share of a tensor that is shared out, and any other as it is."""
    return x.to_local() if isinstance(x, DTensor) else x


# region adam
class Adam:
    """Adam on a copy in float32 of the weights that this card has: all of them, or its share.

    Args:
        weights: each with a gradient when `step` is called.
    """

    def __init__(self, weights: Iterable[nn.Parameter]) -> None:
        self.weights = list(weights)
        wide = [local(w.detach()).to(torch.promote_types(w.dtype, torch.float32)) for w in self.weights]
        self.master = [w.clone() for w in wide]
        self.mean, self.square = ([torch.zeros_like(w) for w in wide] for _ in range(2))
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Move every weight against its gradient."""
        self.steps += 1
        rate, root = RATE / (1 - MEAN**self.steps), (1 - SQUARE**self.steps) ** 0.5
        for first in range(0, len(self.weights), GROUP):
            some = slice(first, first + GROUP)
            master, mean, square = self.master[some], self.mean[some], self.square[some]
            found = [local(w.grad).to(m.dtype) for w, m in zip(self.weights[some], master, strict=True)]
            torch._foreach_lerp_(mean, found, 1 - MEAN)
            torch._foreach_mul_(square, SQUARE)
            torch._foreach_addcmul_(square, found, found, 1 - SQUARE)
            del found
            size = torch._foreach_sqrt(square)
            torch._foreach_div_(size, root)
            torch._foreach_add_(size, EPSILON)
            torch._foreach_addcdiv_(master, mean, size, -rate)
            torch._foreach_copy_([local(w) for w in self.weights[some]], master)

    # endregion


class Training:
    """One way to train, on one card.

    Args:
        way: of `WAYS`.
        config, seed, dtype: of the model; both cards draw the same weights.
        device: "cuda" or "cpu".
    Raises:
        ValueError: another way.
    """

    def __init__(self, way: str, config: Config, seed: int, dtype: torch.dtype, device: str) -> None:
        if way not in WAYS:
            raise ValueError(f"way: expected one of {', '.join(WAYS)}, got {way!r}")
        self.way = way
        whole = Whole(Model.random(config, seed, dtype=dtype, device=device))
        self.called: nn.Module = whole
        self.flat: Tensor | None = None
        if way in ("alone", "by_hand"):
            self.flat = flat_gradients(whole)
        elif way == "ddp":
            self.called = DistributedDataParallel(whole, gradient_as_bucket_view=True)
        else:
            share_out(whole, again=way == "zero3", device=device)
        self.adam = Adam(whole.parameters())

    # region step
    def step(self, tokens: Tensor) -> Tensor:
        """Train on this card's tokens (B, N + 1), and return their loss."""
        self._forget_gradients()
        with torch.enable_grad():
            loss = self.called(tokens)
            loss.backward()
        if self.way == "by_hand" and self.flat is not None:
            dist.all_reduce(self.flat)
            self.flat.div_(CARDS)
        self.adam.step()
        return loss.detach()

    # endregion

    def _forget_gradients(self) -> None:
        if self.flat is not None:
            self.flat.zero_()
            return
        for weight in self.adam.weights:
            weight.grad = None

    def state_bytes(self) -> int:
        """Return the bytes of weights, gradients and the optimizer's numbers on this card, right after a step."""
        adam = self.adam
        kept: list[Any] = [
            *adam.weights,
            *(w.grad for w in adam.weights),
            *adam.master,
            *adam.mean,
            *adam.square,
        ]
        return sum(local(x).numel() * x.element_size() for x in kept)


# region flat_gradients
def flat_gradients(whole: nn.Module) -> Tensor:
    """Put all gradients into one tensor, so that one AllReduce carries them: each is a view of its part."""
    weights = list(whole.parameters())
    flat = torch.zeros(sum(w.numel() for w in weights), dtype=weights[0].dtype, device=weights[0].device)
    for weight, part in zip(weights, flat.split([w.numel() for w in weights]), strict=True):
        weight.grad = part.view_as(weight)
    return flat


# endregion


# region share_out
def share_out(whole: Whole, *, again: bool, device: str) -> None:
    """Give each card half of every weight; block by block they are gathered for the forward pass.

    Args:
        again: throw them away behind it, and gather them again for the backward pass: ZeRO-3. Without, ZeRO-2.
    """
    mesh = init_device_mesh(device, (CARDS,))
    for block in whole.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=again)
    fully_shard(whole, mesh=mesh, reshard_after_forward=again)  # embedding, last norm, head


# endregion
