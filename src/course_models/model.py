"""A decoder-only transformer of the Llama family, in plain PyTorch: what happens to a token, line by line.

    tokens -> embedding -> layers -> RMSNorm -> head -> logits
    layer:   x = x + output(attention(RoPE(q), RoPE(k), v))      q, k, v from RMSNorm(x)
             x = x + down(silu(gate) * up)                       gate and up from RMSNorm(x)

x is the *residual stream*: `width` numbers for each token, to which every layer adds. Three ways through the model
give the same logits:

    model(tokens)                    all positions at once, as in training
    model.prefill(tokens, cache)     the same, but keys and values are kept in a cache; logits of the last token
    model.decode(token, cache)       one more token for each sequence, which meets the keys and values in the cache

B is the batch, N the tokens of this call, H the query heads, KV the heads of keys and values, D the numbers of a head.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import pi, sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from course_models.config import Config
from course_models.operators import PLAIN, Operators


class CacheFull(ValueError):
    """More tokens than a cache has room for; one line."""


class Cache:
    """Keys and values of all tokens so far. The room is fixed, so that a CUDA graph may hold its addresses.

    Attributes:
        keys, values: (layers, B, KV, room, D).
        lengths: (B,) int32 on the device: tokens that each sequence holds.
        held: the same on the host, for all of them, so that a full cache is noticed without asking the device.
    """

    def __init__(
        self,
        config: Config,
        batch: int,
        room: int,
        *,
        dtype: torch.dtype = torch.bfloat16,
        device: torch.device | str = "cpu",
    ) -> None:
        """Make an empty cache.

        Raises:
            ValueError: no sequence, no room, or more room than the model has positions.
        """
        if batch < 1:
            raise ValueError(f"batch: expected at least 1, got {batch}")
        if not 1 <= room <= config.max_tokens:
            raise ValueError(f"room: expected 1 to max_tokens={config.max_tokens}, got {room}")
        shape = (config.layers, batch, config.kv_heads, room, config.head_dim)
        # Zeros and not what lay there: a weight of zero times NaN is NaN.
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.held = 0

    @property
    def batch(self) -> int:
        """Number of sequences."""
        return self.keys.shape[1]

    @property
    def room(self) -> int:
        """Number of tokens that a sequence may hold."""
        return self.keys.shape[3]

    def reset(self, tokens: int = 0) -> None:
        """Keep the first `tokens` tokens of every sequence and forget the others."""
        self.lengths.fill_(tokens)
        self.held = tokens

    def check_room(self, tokens: int) -> None:
        """Refuse so many more tokens of every sequence where there is no room for them.

        Raises:
            CacheFull: there is not.
        """
        if self.held + tokens > self.room:
            raise CacheFull(
                f"cache: {self.held} of {self.room} tokens are held, no room for {tokens} more: "
                "make it with more room"
            )

    def claim(self, tokens: int) -> int:
        """Take room for so many more tokens of every sequence, on the host; returns where they begin.

        Raises:
            CacheFull: there is not so much.
        """
        self.check_room(tokens)
        self.held += tokens
        return self.held - tokens


class Layer(nn.Module):
    """The weights of one layer, and the three pieces of what it computes.

    A weight matrix is (out, in), as checkpoints have it. With experts, `gate`, `up` and `down` have one more dimension
    in front, and `router` picks among them.
    """

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = c = config
        heads, kv_heads = c.heads * c.head_dim, c.kv_heads * c.head_dim
        blocks = (c.experts,) if c.experts else ()
        self.attention_norm = nn.Parameter(torch.ones(c.width))
        self.query = nn.Parameter(torch.empty(heads, c.width))
        self.key = nn.Parameter(torch.empty(kv_heads, c.width))
        self.value = nn.Parameter(torch.empty(kv_heads, c.width))
        self.output = nn.Parameter(torch.empty(c.width, heads))
        self.block_norm = nn.Parameter(torch.ones(c.width))
        if c.experts:
            self.router = nn.Parameter(torch.empty(c.experts, c.width))
        self.gate = nn.Parameter(torch.empty(*blocks, c.hidden, c.width))
        self.up = nn.Parameter(torch.empty(*blocks, c.hidden, c.width))
        self.down = nn.Parameter(torch.empty(*blocks, c.width, c.hidden))

    def queries_keys_values(
        self, ops: Operators, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute of x (B, N, width) queries (B, H, N, D), keys and values (B, KV, N, D).

        The first two know their place.
        """
        B, N, _ = x.shape
        # region lists
        h = ops.rms_norm(x, self.attention_norm, self.config.norm_eps)
        q, k, v = (
            ops.linear(h, weight).view(B, N, -1, self.config.head_dim).transpose(1, 2)
            for weight in (self.query, self.key, self.value)
        )
        return ops.rope(q, cos, sin), ops.rope(k, cos, sin), v
        # endregion

    def add_attention(self, ops: Operators, x: Tensor, attended: Tensor) -> Tensor:
        """x (B, N, width) plus what the heads found, (B, H, N, D), brought back to width."""
        B, N, _ = x.shape
        side_by_side = attended.transpose(1, 2).reshape(B, N, -1)  # (B, N, H * D)
        return x + ops.linear(side_by_side, self.output)

    def add_block(self, ops: Operators, x: Tensor) -> Tensor:
        """x (B, N, width) plus its feed-forward block, which looks at each token by itself."""
        h = ops.rms_norm(x, self.block_norm, self.config.norm_eps)
        if self.config.experts:
            return x + self._experts(ops, h)
        # region feed_forward
        return x + ops.linear(ops.swiglu(ops.linear(h, self.gate), ops.linear(h, self.up)), self.down)
        # endregion

    def _experts(self, ops: Operators, h: Tensor) -> Tensor:
        """Return the best experts of every token, weighted by a softmax over those alone.

        Every expert computes for every token, and the weight of those that were not picked is zero. That is more work
        than needed; but no shape depends on who was picked, so that nothing waits for the device.
        """
        tokens = h.flatten(0, 1)  # (T, width)
        scores = ops.linear(tokens, self.router)  # (T, experts)
        best, who = scores.topk(self.config.experts_per_token, dim=-1)
        shares = torch.softmax(best, dim=-1, dtype=torch.promote_types(h.dtype, torch.float32))
        weights = torch.zeros(scores.shape, dtype=shares.dtype, device=h.device).scatter(1, who, shares)
        gate = tokens @ self.gate.transpose(1, 2)  # (experts, T, hidden)
        up = tokens @ self.up.transpose(1, 2)
        answers = ops.swiglu(gate, up) @ self.down.transpose(1, 2)  # (experts, T, width)
        return (answers * weights.T[:, :, None].to(h.dtype)).sum(dim=0).view(h.shape)


# --- a layer in each of the three ways -------------------------------------------------------------


def train_layer(ops: Operators, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return all N tokens meet each other, none its future; nothing is kept."""
    q, k, v = layer.queries_keys_values(ops, x, cos, sin)
    return layer.add_block(ops, layer.add_attention(ops, x, ops.prefill_attention(q, k, v)))


def prefill_layer(
    ops: Operators,
    layer: Layer,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    start: int,
) -> Tensor:
    """Run `train_layer` over the tokens from `start` on; keys and values go into the cache (B, KV, room, D)."""
    q, k, v = layer.queries_keys_values(ops, x, cos, sin)
    end = start + x.shape[1]
    keys[:, :, start:end], values[:, :, start:end] = k, v
    if start:  # earlier tokens are met, too
        k, v = keys[:, :, :end], values[:, :, :end]
    return layer.add_block(ops, layer.add_attention(ops, x, ops.prefill_attention(q, k, v)))


def decode_layer(
    ops: Operators,
    layer: Layer,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    keys: Tensor,
    values: Tensor,
    each: Tensor,
    position: Tensor,
    lengths: Tensor,
) -> Tensor:
    """Return one token for each sequence, x (B, 1, width).

    It goes into the cache (B, KV, room, D), and meets what is there.

    Args:
        each, position: (B,): sequence b writes to place position[b] of its room.
        lengths: (B,): tokens that it meets, the new one among them.
    """
    # region one_layer
    q, k, v = layer.queries_keys_values(ops, x, cos, sin)
    keys[each, :, position], values[each, :, position] = k[:, :, 0], v[:, :, 0]
    attended = ops.decode_attention(q[:, :, 0], keys, values, lengths)  # (B, H, D)
    return layer.add_block(ops, layer.add_attention(ops, x, attended[:, :, None]))
    # endregion


class Model(nn.Module):
    """Embedding, layers, norm and head.

    Attributes:
        config: the sizes.
        operators: what the layers compute with.
        embedding: (vocab, width), a row for each token.
        layers: one `Layer` after the other.
        norm: (width,), the weight of the RMSNorm before the head.
        head: (vocab, width): a token's logit is the product of its row with x. None where the embedding serves.
        prefill_layer, decode_layer: the functions of these names; a compiled one may take their place.
    """

    def __init__(self, config: Config, operators: Operators = PLAIN) -> None:
        """Make the weights as empty room: see `random`, and `downloaded.load`."""
        super().__init__()
        self.config, self.operators = config, operators
        self.embedding = nn.Parameter(torch.empty(config.vocab, config.width))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        self.head = None if config.tied else nn.Parameter(torch.empty(config.vocab, config.width))
        self.prefill_layer: Callable[..., Tensor] = prefill_layer
        self.decode_layer: Callable[..., Tensor] = decode_layer
        self._tables: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    @classmethod
    def empty(
        cls, config: Config, *, dtype: torch.dtype = torch.bfloat16, device: torch.device | str = "cpu"
    ) -> Model:
        """Return a model whose weights are whatever lay in that memory."""
        with torch.device("meta"):  # no float32 copy first: that would be twice the memory
            model = cls(config)
        return model.to(dtype).to_empty(device=device)

    @classmethod
    def random(
        cls,
        config: Config,
        seed: int = 0,
        *,
        dtype: torch.dtype = torch.bfloat16,
        device: torch.device | str = "cpu",
    ) -> Model:
        """Return a model with random weights, scaled so that numbers keep their size from layer to layer.

        A sum of K products of independent numbers of size 1 has the size sqrt(K): so a matrix with K inputs gets
        1 / sqrt(K). The two that write to the residual stream get 1 / sqrt(2 * layers) besides, as all layers add up.
        """
        model = cls.empty(config, dtype=dtype, device=device)
        generator = torch.Generator(device=device).manual_seed(seed)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.dim() == 1:  # the norms
                    weight.fill_(1.0)
                    continue
                deviation = 1 / sqrt(weight.shape[-1])
                if name.endswith(("output", "down")):
                    deviation /= sqrt(2 * config.layers)
                weight.normal_(0.0, deviation, generator=generator)
        return model

    def with_operators(self, operators: Operators) -> Model:
        """Return the same model, the same weights in the same memory, that computes with other operators."""
        twin = copy.copy(self)
        twin.operators = operators
        return twin

    @property
    def dtype(self) -> torch.dtype:
        """The type of the weights."""
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.embedding.device

    def cache(self, batch: int, room: int) -> Cache:
        """Return an empty cache for this model, in its type and on its device."""
        return Cache(self.config, batch, room, dtype=self.dtype, device=self.device)

    # --- the three ways ----------------------------------------------------------------------------

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of every position, for training and for truth.

        Args:
            tokens: (B, N) int64, N <= max_tokens.
        Returns:
            (B, N, vocab): row n scores what may follow tokens 0 to n.
        """
        N = tokens.shape[1]
        most = self.config.max_tokens
        if most < N:
            raise ValueError(f"tokens: expected at most max_tokens={most} positions, got {N}")
        cos, sin = self._turns(torch.arange(N, device=tokens.device)[None])
        # Not `embedding[tokens]`: the gradient of that adds up the rows of a frequent token one after the other.
        x = functional.embedding(tokens, self.embedding)  # (B, N, width)
        for layer in self.layers:
            x = train_layer(self.operators, layer, x, cos, sin)
        return self._logits(x)

    @torch.no_grad()
    def prefill(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Read N tokens of every sequence at once, behind what the cache holds.

        Args:
            tokens: (B, N) int64.
            cache: where keys and values go; all its sequences must hold equally many tokens.
        Returns:
            (B, vocab): the logits of the last token alone, which is all that a reply begins with.
        Raises:
            CacheFull: no room for N more.
        """
        N = tokens.shape[1]
        start = cache.claim(N)
        cos, sin = self._turns(torch.arange(start, start + N, device=tokens.device)[None])
        x = self.embedding[tokens]  # (B, N, width)
        for layer, keys, values in zip(self.layers, cache.keys, cache.values, strict=True):
            x = self.prefill_layer(self.operators, layer, x, cos, sin, keys, values, start)
        cache.lengths += N
        return self._logits(x[:, -1:])[:, 0]

    @torch.no_grad()
    def decode(self, token: Tensor, cache: Cache) -> Tensor:
        """Return one more token for each sequence.

        Args:
            token: (B,) int64.
            cache: what came before; the new keys and values are added.
        Returns:
            (B, vocab): logits of what may follow.
        Raises:
            CacheFull: no room for one more.
        """
        cache.claim(1)
        position = cache.lengths.long()  # of the new token: the number of those before it
        cache.lengths += 1
        # region one_token
        each = torch.arange(cache.batch, device=token.device)
        cos, sin = self._turns(position[:, None])
        x = self.embedding[token[:, None]]  # (B, 1, width)
        for layer, keys, values in zip(self.layers, cache.keys, cache.values, strict=True):
            x = self.decode_layer(
                self.operators, layer, x, cos, sin, keys, values, each, position, cache.lengths
            )
        return self._logits(x)[:, 0]
        # endregion

    def _logits(self, x: Tensor) -> Tensor:
        x = self.operators.rms_norm(x, self.norm, self.config.norm_eps)
        return self.operators.linear(x, self.embedding if self.head is None else self.head)

    def _turns(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine of RoPE's angles at positions (B or 1, N): each (B or 1, 1, N, D/2)."""
        # No buffer of the module: `.to(torch.bfloat16)` would take that along, and angles need their digits.
        kind = torch.promote_types(self.dtype, torch.float32)
        if (positions.device, kind) not in self._tables:
            self._tables[positions.device, kind] = rope_tables(self.config, kind, positions.device)
        cos, sin = self._tables[positions.device, kind]
        return cos[positions][:, None], sin[positions][:, None]


def rope_tables(config: Config, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position's angles: (max_tokens, D/2) each, worked out in float64."""
    angles = torch.arange(config.max_tokens)[:, None] * rope_frequencies(config)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def rope_frequencies(config: Config) -> Tensor:
    """Return by how much each pair of a head turns from one position to the next: (D/2,) float64, in radians.

    Pair i turns by theta ** (-2i / D): the first fast, as a second hand, the last hardly at all.
    """
    pairs = torch.arange(0, config.head_dim, 2, dtype=torch.float64)
    turns = config.rope_theta ** (-pairs / config.head_dim)
    scaling = config.rope_scaling
    if scaling is None:
        return turns
    # How many times each pair went round in what the model was first trained on; few times: slowed, many: kept.
    rounds = scaling.original_max_tokens * turns / (2 * pi)
    kept = (rounds - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = kept.clamp(0.0, 1.0)
    return turns * (kept + (1 - kept) / scaling.factor)
