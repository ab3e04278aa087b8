"""GPT-2 in plain PyTorch: the published shape, random weights, attention written out, so that a profiler has lines.

Every operator is one or two of PyTorch's. Where the model is `watched`, it is inside a range that bears the name of a
line of a forecast, one of `LINES`; a range costs the host as much as an operator, so that by default there is none.
The family of `model.py` has other operators: RMSNorm, SwiGLU and RoPE for LayerNorm, GELU and a table of places.

Sizes     transformers, src/transformers/models/gpt2/configuration_gpt2.py: GPT2Config's defaults
Source    Radford, Wu, Child, Luan, Amodei & Sutskever 2019, Language Models are Unsupervised Multitask Learners
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function

EPSILON = 1e-5
NOTHING = nullcontext()
LINES = (
    "queries, keys, values",
    "scores and sums of attention",
    "mask and softmax",
    "output of attention",
    "feed-forward",
    "GELU",
    "norms",
    "sums",
    "logits",
)


@dataclass(frozen=True)
class Shape:
    """The sizes of a GPT-2: layers, width of a row, heads, words of the vocabulary, places that a sequence may have."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    words: int = 50257
    places: int = 1024

    @property
    def head_dim(self) -> int:
        """Numbers of one head."""
        return self.width // self.heads

    @property
    def hidden(self) -> int:
        """Numbers inside a feed-forward block."""
        return 4 * self.width

    @property
    def parameters(self) -> int:
        """All weights: a layer has matrices of 12 widths squared, biases of 9 widths, and two norms of 4."""
        a_layer = 12 * self.width**2 + 13 * self.width
        return (self.words + self.places) * self.width + self.layers * a_layer + 2 * self.width

    def decode_bytes(self, held: int, element_bytes: int) -> int:
        """Return the least bytes of a step that decodes one token behind `held` others.

        Every weight is read once, of the table of places one row; the keys and values of all before are read, those of
        the new one written.
        """
        weights = self.parameters - (self.places - 1) * self.width
        cache = 2 * self.layers * self.width * (held + 1)
        return (weights + cache) * element_bytes


class Layer(nn.Module):
    """The weights of one layer; a matrix is (out, in)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        w, hidden = shape.width, shape.hidden
        for name, size in {
            "norm_1": (w,), "norm_1_bias": (w,), "lists": (3 * w, w), "lists_bias": (3 * w,),
            "output": (w, w), "output_bias": (w,), "norm_2": (w,), "norm_2_bias": (w,),
            "up": (hidden, w), "up_bias": (hidden,), "down": (w, hidden), "down_bias": (w,),
        }.items():  # fmt: skip
            self.register_parameter(name, nn.Parameter(torch.empty(size)))


class GPT2(nn.Module):
    """GPT-2 with random weights.

    A matrix with K inputs gets numbers of size 1 / sqrt(K), so that rows keep their size; the two that add to the row
    of a token are smaller by sqrt(2 * layers), since all layers add up. Queries are twice as large: attention then
    picks some keys, and one that is wrong shows.

    Attributes:
        watched: whether every operator is inside a range of its line, for a profiler.
    """

    def __init__(
        self,
        shape: Shape = Shape(),
        seed: int = 0,
        *,
        dtype: torch.dtype = torch.float16,
        device: torch.device | str = "cuda",
    ) -> None:
        super().__init__()
        self.shape, self.watched = shape, False
        self.words = nn.Parameter(torch.empty(shape.words, shape.width))
        self.places = nn.Parameter(torch.empty(shape.places, shape.width))
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.empty(shape.width))
        self.norm_bias = nn.Parameter(torch.empty(shape.width))
        self.requires_grad_(False)
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                size = 1 / sqrt(weight.shape[1])
                if name.endswith(("output", "down")):
                    size /= sqrt(2 * shape.layers)
                weight.normal_(0.0, size, generator=generator)
                if name.endswith("lists"):
                    weight[: shape.width] *= 2.0
            else:
                weight.fill_(float("bias" not in name))
        self.to(device=device, dtype=dtype)

    @torch.no_grad()
    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of every place.

        Args:
            tokens: (B, N) int64, N <= places.
        Returns:
            (B, N, words).
        """
        N = tokens.shape[1]
        later = torch.ones(N, N, dtype=torch.bool, device=tokens.device).triu(1)
        x = self.words[tokens] + self.places[:N]  # (B, N, width)
        for layer in self.layers:
            q, k, v = self._lists(layer, x)
            with self._line("scores and sums of attention"):
                scores = q @ k.transpose(-1, -2)  # (B, H, N, N)
            with self._line("mask and softmax"):
                shares = torch.softmax(scores.masked_fill_(later, -torch.inf), dim=-1)
            x = self._rest(layer, x, shares, v)
        return self._logits(x)

    @torch.no_grad()
    def decode(self, token: Tensor, keys: Tensor, values: Tensor, held: int) -> Tensor:
        """Return the logits of one more token for each sequence; its keys and values go into the cache.

        Args:
            token: (B,) int64.
            keys, values: (layers, B, H, room, D), of which the first `held` places are filled.
            held: tokens before this one, fewer than the room.
        Returns:
            (B, words).
        """
        x = (self.words[token] + self.places[held])[:, None]  # (B, 1, width)
        for layer, of_keys, of_values in zip(self.layers, keys, values, strict=True):
            q, k, v = self._lists(layer, x)
            with self._line("queries, keys, values"):
                of_keys[:, :, held : held + 1], of_values[:, :, held : held + 1] = k, v
            with self._line("scores and sums of attention"):
                scores = q @ of_keys[:, :, : held + 1].transpose(-1, -2)  # (B, H, 1, held + 1)
            with self._line("mask and softmax"):
                shares = torch.softmax(scores, dim=-1)
            x = self._rest(layer, x, shares, of_values[:, :, : held + 1])
        return self._logits(x)[:, 0]

    def cache(self, batch: int, room: int) -> tuple[Tensor, Tensor]:
        """Return keys and values of zeros: (layers, batch, H, room, D) each."""
        s = self.shape
        size = (2, s.layers, batch, s.heads, room, s.head_dim)
        keys, values = torch.zeros(size, dtype=self.words.dtype, device=self.words.device)
        return keys, values

    def _line(self, name: str) -> AbstractContextManager[Any]:
        return record_function(name) if self.watched else NOTHING

    def _lists(self, layer: Layer, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, already over the root of D, keys and values of x (B, N, width): (B, H, N, D) each."""
        B, N, _ = x.shape
        h = self._normed(x, layer.norm_1, layer.norm_1_bias)
        with self._line("queries, keys, values"):
            lists = functional.linear(h, layer.lists, layer.lists_bias)
            q, k, v = lists.view(B, N, 3, self.shape.heads, -1).permute(2, 0, 3, 1, 4)
            return q * self.shape.head_dim**-0.5, k, v

    def _rest(self, layer: Layer, x: Tensor, shares: Tensor, v: Tensor) -> Tensor:
        """x with what its heads found added, and then what its feed-forward block makes of that."""
        with self._line("scores and sums of attention"):
            found = shares @ v  # (B, H, N, D)
        with self._line("output of attention"):
            found = functional.linear(found.transpose(1, 2).reshape(x.shape), layer.output, layer.output_bias)
        with self._line("sums"):
            x = x + found
        h = self._normed(x, layer.norm_2, layer.norm_2_bias)
        with self._line("feed-forward"):
            h = functional.linear(h, layer.up, layer.up_bias)
        with self._line("GELU"):
            h = functional.gelu(h, approximate="tanh")
        with self._line("feed-forward"):
            h = functional.linear(h, layer.down, layer.down_bias)
        with self._line("sums"):
            return x + h

    def _normed(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        with self._line("norms"):
            return functional.layer_norm(x, (self.shape.width,), weight, bias, EPSILON)

    def _logits(self, x: Tensor) -> Tensor:
        x = self._normed(x, self.norm, self.norm_bias)
        with self._line("logits"):
            return functional.linear(x, self.words)
