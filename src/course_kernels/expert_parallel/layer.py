"""A layer of experts, the contract: every token meets TOP_K of E experts, and its answer is their weighted sum.

    y[t] = sum over k of weights[t, k] * down[e] . (silu(gate[e] . x[t]) * up[e] . x[t])        e = chosen[t, k]

The experts are shared out among cards: card c of CARDS holds E / CARDS in a row, from E / CARDS * c on. Each card has
tokens of its own, T of them, and needs the answers of these. What the router does, choose and weigh, is done already.

Shapes    x, y (T, D); chosen, weights (T, TOP_K); of the experts of a card gate_up (E / CARDS, D, 2 F), the gate first,
          and down (E / CARDS, F, D)
Types     x, y and the experts bfloat16; chosen int64, TOP_K different experts a token; weights float32
Source    Shazeer et al. 2017, arXiv:1701.06538; DeepSeek-AI 2024, arXiv:2412.19437, section 3.2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

# Rounded to bfloat16 on the way, each by half a unit, 2**-9 of itself: h, the gated row, the answer of an expert, the
# sum that travels back, and y. The worst of millions of elements is off by some six times the usual error.
ALLOWED = 2.0**-5

# Which experts the tokens of a card choose. "even": any, alike. "home": those of the token's own card alone, so nothing
# travels. "away": those of the next card alone. "first": those of card 0 alone, whoever asks.
LOADS = ("even", "home", "away", "first")


@dataclass(frozen=True)
class Layer:
    """Sizes of a layer: width of a token, width inside an expert, experts in all, experts of a token."""

    D: int
    F: int
    E: int
    TOP_K: int

    @property
    def expert_bytes(self) -> int:
        """Bytes of the three matrices of one expert."""
        return 3 * self.D * self.F * 2

    @property
    def row_bytes(self) -> int:
        """Bytes of one token."""
        return 2 * self.D


@dataclass(frozen=True)
class Experts:
    """The experts of one card.

    Attributes:
        gate_up: (E / CARDS, D, 2 F) bfloat16, the gate first.
        down: (E / CARDS, F, D) bfloat16.
        card: whose they are.
        cards: how many cards share the layer.
    """

    gate_up: torch.Tensor
    down: torch.Tensor
    card: int
    cards: int

    @property
    def held(self) -> int:
        """Experts of this card."""
        return self.gate_up.shape[0]

    @property
    def first(self) -> int:
        """The number of its first one among all."""
        return self.card * self.held


def expert(layer: Layer, e: int, seed: int, device: torch.device | str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return gate_up (D, 2 F) and down (F, D) of expert `e`: normal, so that a row keeps its size. Any card can."""
    draw = torch.Generator(device).manual_seed(seed * 100_003 + e)
    gate_up = torch.randn(layer.D, 2 * layer.F, generator=draw, device=device) / layer.D**0.5
    down = torch.randn(layer.F, layer.D, generator=draw, device=device) / layer.F**0.5
    return gate_up.bfloat16(), down.bfloat16()


def experts_of(layer: Layer, card: int, cards: int, seed: int, device: torch.device | str = "cpu") -> Experts:
    """Return the experts of a card.

    Raises:
        ValueError: experts that cannot be shared out evenly, or no such card.
    """
    if cards < 1 or layer.E % cards:
        raise ValueError(f"cards: expected a divisor of E={layer.E}, got {cards}")
    if not 0 <= card < cards:
        raise ValueError(f"card: expected 0 to {cards - 1}, got {card}")
    held = layer.E // cards
    gate_up = torch.empty(held, layer.D, 2 * layer.F, dtype=torch.bfloat16, device=device)
    down = torch.empty(held, layer.F, layer.D, dtype=torch.bfloat16, device=device)
    for number in range(held):
        gate_up[number], down[number] = expert(layer, card * held + number, seed, device)
    return Experts(gate_up, down, card, cards)


def tokens(
    layer: Layer, T: int, load: str, card: int, cards: int, seed: int, device: torch.device | str = "cpu"
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return x (T, D), chosen (T, TOP_K) and weights (T, TOP_K) of a card, drawn anew for each card and seed.

    Raises:
        ValueError: an unknown load, no token, or fewer experts to choose from than TOP_K.
    """
    if load not in LOADS:
        raise ValueError(f"load: expected one of {', '.join(LOADS)}, got {load!r}")
    if T < 1:
        raise ValueError(f"T: expected at least 1, got {T}")
    held = layer.E // cards
    begin = {"even": 0, "home": card * held, "away": (card + 1) % cards * held, "first": 0}[load]
    open_to_it = layer.E if load == "even" else held
    if open_to_it < layer.TOP_K:
        raise ValueError(f"TOP_K: expected at most {open_to_it} experts to choose from, got {layer.TOP_K}")
    draw = torch.Generator(device).manual_seed(seed * 1009 + card)
    x = torch.randn(T, layer.D, generator=draw, device=device).bfloat16()
    scores = torch.rand(T, open_to_it, generator=draw, device=device)
    chosen = scores.topk(layer.TOP_K).indices + begin
    weights = torch.randn(T, layer.TOP_K, generator=draw, device=device).softmax(dim=-1)
    return x, chosen, weights


def truth(
    layer: Layer, x: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor, seed: int
) -> torch.Tensor:
    """Return the answers of one card that had all the experts, in float64: (T, D)."""
    y = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for e, rows, weight in _meetings(chosen, weights):
        gate_up, down = (part.double() for part in expert(layer, e, seed, x.device))
        gate, up = (x[rows].double() @ gate_up).chunk(2, dim=-1)
        y.index_add_(0, rows, weight.double()[:, None] * ((gate / (1 + (-gate).exp()) * up) @ down))
    return y


def _meetings(
    chosen: torch.Tensor, weights: torch.Tensor
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield every expert that is chosen, the tokens that chose it, and with which weights."""
    for e in chosen.unique().tolist():
        rows, k = (chosen == e).nonzero(as_tuple=True)
        yield e, rows, weights[rows, k]
