"""A vision tower: the encoder of CLIP in its true shape, with random weights, in operations of PyTorch.

A picture is cut into patches; each becomes a row of `width` numbers, and a class token stands before them. Every layer
has two halves, each with a LayerNorm before it and added to what came in: attention without a mask, and an MLP. So the
halves can be run alone, all layers of one kind behind each other, and timed. (CLIP's GELU is a shorter formula, which
takes as long where it is one operation.)

Source: Radford et al. 2021, arXiv:2103.00020, section 2.4; the published ViT-L/14 at 336 pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

from course_kernels.problem import Problem, Workload

EPSILON = 1e-5
Attention = Callable[..., torch.Tensor]
PARTS = ("whole", "attention", "mlp")


@dataclass(frozen=True)
class Shape:
    """Sizes of a tower.

    Attributes:
        layers, width, heads, hidden: of the transformer; a head has width / heads numbers.
        patch: pixels of a patch's side.
    """

    layers: int
    width: int
    heads: int
    hidden: int
    patch: int

    def tokens(self, side: int) -> int:
        """Return the rows of a square picture of `side` pixels: its patches, and the class token."""
        return (side // self.patch) ** 2 + 1

    def flops(self, side: int, part: str = "whole") -> int:
        """Return the operations of one picture: of a half of all layers ("attention", "mlp"), or of everything."""
        T = self.tokens(side)
        halves = {
            "attention": self.layers * (8 * T * self.width**2 + 4 * T * T * self.width),
            "mlp": self.layers * 4 * T * self.width * self.hidden,
        }
        patches = 2 * (T - 1) * 3 * self.patch**2 * self.width
        return halves[part] if part in halves else patches + sum(halves.values())


VIT_L_14 = Shape(layers=24, width=1024, heads=16, hidden=4096, patch=14)


@dataclass(frozen=True)
class Tower:
    """A tower and its weights.

    Attributes:
        shape: its sizes.
        side: pixels of a picture's side, for which it has places.
        weights: by name; those of the layers lie behind each other, (layers, …).
        attend: attention of q, k, v (B, H, T, D), as (B, H, T, D).
    """

    shape: Shape
    side: int
    weights: dict[str, torch.Tensor]
    attend: Attention = scaled_dot_product_attention

    @classmethod
    def random(
        cls, shape: Shape, side: int, *, seed: int = 0, device: torch.device | str = "cuda", attend: Attention
    ) -> Tower:
        """Return a tower of bfloat16 weights that keep the rows' size about as it is."""
        draw = torch.Generator(device).manual_seed(seed)
        L, W, F = shape.layers, shape.width, shape.hidden

        def grid(*size: int, scale: float = 1.0) -> torch.Tensor:
            numbers = torch.randn(size, generator=draw, device=device)
            return (numbers * scale / size[-1] ** 0.5).to(torch.bfloat16)

        added = 1 / (2 * L) ** 0.5  # 2 * L halves are added up
        weights = {
            "patches": grid(W, 3 * shape.patch**2),
            "places": grid(shape.tokens(side), W),
            "class": grid(W),
            "before": 1 + grid(W),  # of the LayerNorm before the first layer
            "before_bias": grid(W),
            "norm": 1 + grid(L, 2, W),
            "norm_bias": grid(L, 2, W),
            "qkv": grid(L, 3 * W, W),
            "qkv_bias": grid(L, 3 * W),
            "out": grid(L, W, W, scale=added),
            "out_bias": grid(L, W),
            "up": grid(L, F, W),
            "up_bias": grid(L, F),
            "down": grid(L, W, F, scale=added),
            "down_bias": grid(L, W),
        }
        return cls(shape, side, weights, attend)

    def exact(self) -> Tower:
        """Return the same tower in float64."""
        weights = {name: numbers.double() for name, numbers in self.weights.items()}
        return replace(self, weights=weights, attend=scaled_dot_product_attention)

    def embedded(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the rows that enter the layers, (B, T, width), of pictures (B, 3, side, side)."""
        B, P, w = pixels.shape[0], self.shape.patch, self.weights
        n = self.side // P
        cut = pixels.reshape(B, 3, n, P, n, P).permute(0, 2, 4, 1, 3, 5).reshape(B, n * n, 3 * P * P)
        rows = torch.cat([w["class"].expand(B, 1, -1), linear(cut, w["patches"])], dim=1) + w["places"]
        return self._normed(rows, w["before"], w["before_bias"])

    def attention(self, i: int, x: torch.Tensor) -> torch.Tensor:
        """Return rows (B, T, width) and what the attention half of layer i adds to them."""
        w, (B, T, W) = self.weights, x.shape
        rows = self._normed(x, w["norm"][i, 0], w["norm_bias"][i, 0])
        q, k, v = (
            linear(rows, w["qkv"][i], w["qkv_bias"][i])
            .reshape(B, T, 3, self.shape.heads, W // self.shape.heads)
            .permute(2, 0, 3, 1, 4)
        )
        found = self.attend(q, k, v).transpose(1, 2).reshape(B, T, W)
        return x + linear(found, w["out"][i], w["out_bias"][i])

    def mlp(self, i: int, x: torch.Tensor) -> torch.Tensor:
        """Return rows (B, T, width) and what the MLP half of layer i adds to them."""
        w = self.weights
        rows = self._normed(x, w["norm"][i, 1], w["norm_bias"][i, 1])
        wide = gelu(linear(rows, w["up"][i], w["up_bias"][i]))
        return x + linear(wide, w["down"][i], w["down_bias"][i])

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the rows of pictures (B, 3, side, side): (B, T, width)."""
        x = self.embedded(pixels)
        for i in range(self.shape.layers):
            x = self.mlp(i, self.attention(i, x))
        return x

    def part(self, name: str) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return everything ("whole"), of pictures; or one half of all layers, of rows (B, T, width)."""
        if name == "whole":
            return self
        half = {"attention": self.attention, "mlp": self.mlp}[name]

        def all_layers(x: torch.Tensor) -> torch.Tensor:
            for i in range(self.shape.layers):
                x = half(i, x)
            return x

        return all_layers

    def _normed(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return layer_norm(x, (self.shape.width,), weight, bias, EPSILON)


def workload(pictures: int, side: int) -> Workload:
    """Return so many square pictures at once."""
    return Workload.of("bfloat16", B=pictures, SIDE=side)


def problem(tower: Tower, part: str) -> Problem:
    """Return what a part of a tower must compute, held against the same weights in float64.

    Args:
        tower: with bfloat16 weights.
        part: one of `PARTS`.
    """
    shape, exact = tower.shape, tower.exact()

    def make_inputs(
        w: Workload, generator: torch.Generator, device: torch.device | str
    ) -> tuple[torch.Tensor]:
        size = (w.B, 3, w.SIDE, w.SIDE) if part == "whole" else (w.B, shape.tokens(w.SIDE), shape.width)
        return (torch.randn(size, generator=generator, device=device).to(torch.bfloat16),)

    def rows_bytes(w: Workload) -> int:
        return 2 * int(w.B) * shape.tokens(w.SIDE) * shape.width

    layers = 2 * shape.layers * shape.width
    weights = {"attention": layers * 4 * shape.width, "mlp": layers * 2 * shape.hidden}
    weights["whole"] = sum(weights.values())
    return Problem(
        name="vision",
        formula="rows of pictures, through every layer: attention and MLP, each added to what came in",
        make_inputs=make_inputs,
        reference=lambda x: exact.part(part)(x.double()),
        reads_bytes=lambda w: weights[part] + (6 * w.B * w.SIDE**2 if part == "whole" else rows_bytes(w)),
        writes_bytes=rows_bytes,
        flops=lambda w: w.B * shape.flops(w.SIDE, part),
        math=lambda w: "bf16",
        # Rows are rounded to bfloat16 at every addition and every grid: by a hundredth of their size together, and the
        # worst of ten million by some six times that.
        max_error=lambda w: 0.25,
        rows_apart=True,
        hard=lambda w: (),  # one NaN reaches every row: that is attention
        check_on=(workload(1, tower.side),),
        time_on=(workload(16, tower.side),),
    )
