"""The sizes of a model, and what they cost: parameters, bytes, operations. Plain arithmetic; needs no torch.

Every count has its derivation beside it. A *token* is one position of one sequence; `batch` sequences run side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

BF16_BYTES = 2


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretch of the slow rotations of RoPE, so that a model reaches further than it was first trained.

    Attributes:
        factor: how many times slower the slowest rotations turn.
        low_freq_factor, high_freq_factor: a rotation that turns less than `low_freq_factor` times in
            `original_max_tokens` is slowed by the whole factor, one that turns more than `high_freq_factor` times
            stays; in between the two are mixed.
        original_max_tokens: how far the model reached before.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_tokens: int


@dataclass(frozen=True)
class Config:
    """The sizes of a decoder-only transformer of the Llama family.

    Attributes:
        layers: how many layers, one after the other.
        width: numbers that stand for one token between two layers, the residual stream; Llama's `hidden_size`.
        heads: query heads of a layer.
        kv_heads: heads of keys and values; `heads / kv_heads` query heads share one (GQA).
        head_dim: numbers of one head; even, since RoPE turns pairs.
        hidden: numbers inside a feed-forward block (SwiGLU), or inside one expert; Llama's `intermediate_size`.
        vocab: how many tokens there are.
        rope_theta: the base of RoPE's wavelengths: the slowest pair takes about 2 pi * rope_theta positions a turn.
        rope_scaling: Llama 3's stretching of them; None without.
        norm_eps: what RMSNorm adds below the root.
        tied: whether the head is the embedding table, used a second time.
        experts: feed-forward blocks of a layer of which a router picks some; 0 for one block and no router.
        experts_per_token: how many it picks.
        max_tokens: how many positions a sequence may have.
    Raises:
        ValueError: sizes that do not fit together.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocab: int
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    norm_eps: float = 1e-5
    tied: bool = False
    experts: int = 0
    experts_per_token: int = 0
    max_tokens: int = 2048

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "kv_heads", "head_dim", "hidden", "vocab", "max_tokens"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: expected a divisor of heads={self.heads}, got {self.kv_heads}")
        if self.head_dim % 2:
            raise ValueError(
                f"head_dim: expected an even number, since RoPE turns pairs, got {self.head_dim}"
            )
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError(
                f"experts_per_token: expected 1 to experts={self.experts}, got {self.experts_per_token}"
            )
        if not self.experts and self.experts_per_token:
            raise ValueError(f"experts_per_token: expected 0 without experts, got {self.experts_per_token}")

    @property
    def group(self) -> int:
        """Number of query heads that share one head of keys and values."""
        return self.heads // self.kv_heads


# The shape of Llama 3 8B, with 8 heads of keys and values for 32 of queries.
LLAMA_8B = Config(
    layers=32,
    width=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    hidden=14336,
    vocab=128256,
    rope_theta=500000.0,
    max_tokens=8192,
)


def attention_parameters(config: Config) -> int:
    """Weights of the attention of one layer.

    Queries and output are width x (heads * head_dim) each, keys and values width x (kv_heads * head_dim) each.
    """
    return 2 * config.width * config.head_dim * (config.heads + config.kv_heads)


def block_parameters(config: Config) -> int:
    """Weights of one feed-forward block, or of one expert: gate, up and down, width x hidden each."""
    return 3 * config.width * config.hidden


def parameters(config: Config) -> int:
    """Return all weights of a model.

    The embedding is a table of vocab x width, the head another one unless they are tied. A layer has its attention,
    one feed-forward block (or all experts, and a router of experts x width), and two norms of width; one more norm
    stands before the head.
    """
    tables = (1 if config.tied else 2) * config.vocab * config.width
    blocks = max(config.experts, 1) * block_parameters(config) + config.experts * config.width
    layer = attention_parameters(config) + blocks + 2 * config.width
    return tables + config.layers * layer + config.width


def weight_bytes(config: Config, element_bytes: int = BF16_BYTES) -> int:
    """Memory that the weights take: `parameters` times the bytes of one, two in bf16."""
    return parameters(config) * element_bytes


def cache_bytes(config: Config, batch: int, tokens: int, element_bytes: int = BF16_BYTES) -> int:
    """Memory that the keys and values of `batch` sequences of `tokens` tokens take.

    Two of them, a key and a value, for each layer and each of its kv_heads, of head_dim numbers.
    """
    return 2 * config.layers * config.kv_heads * config.head_dim * batch * tokens * element_bytes


def decode_bytes(config: Config, batch: int, tokens: int, element_bytes: int = BF16_BYTES) -> int:
    """Return the least bytes that one decode step moves.

    One new token for each of `batch` sequences of `tokens` so far.

    Every weight is read once, however many sequences share the step; of the embedding only the rows of the new
    tokens, if it is a table of its own. Of the experts at least those of one token, as all may pick the same. The
    cache is read whole, and the keys and values of the new tokens are written. Numbers that live within the step,
    such as the logits, are left out: they may stay on the chip.
    """
    weights = parameters(config)
    if not config.tied:
        weights -= config.vocab * config.width
        weights += min(batch, config.vocab) * config.width
    weights -= config.layers * (config.experts - config.experts_per_token) * block_parameters(config)
    return (
        weights * element_bytes
        + cache_bytes(config, batch, tokens, element_bytes)
        + cache_bytes(config, batch, 1, element_bytes)
    )


def decode_floor_us(config: Config, batch: int, tokens: int, gb_per_s: float) -> float:
    """Microseconds that `decode_bytes` take at a bandwidth: the byte floor of one step.

    Args:
        gb_per_s: the bandwidth, GB = 1e9: a data sheet's, or what a plain copy reached.
    """
    return decode_bytes(config, batch, tokens) / (gb_per_s * 1e3)


def matmul_parameters(config: Config) -> int:
    """Weights of a layer that one token is multiplied with: attention, router, and the block or experts it goes to."""
    blocks = (config.experts_per_token if config.experts else 1) * block_parameters(config)
    return attention_parameters(config) + blocks + config.experts * config.width


def decode_flops(config: Config, batch: int, tokens: int) -> int:
    """Operations of one decode step with `tokens` tokens in the cache.

    A weight costs one multiplication and one addition a token. The new token meets tokens + 1 keys: a product of
    head_dim numbers each with the key, and one with the value. Norms, RoPE and softmax are left out: they are few.
    """
    products = 2 * (config.layers * matmul_parameters(config) + config.vocab * config.width)
    attention = 4 * config.layers * config.heads * config.head_dim * (tokens + 1)
    return batch * (products + attention)


def prefill_flops(config: Config, batch: int, tokens: int) -> int:
    """Operations of a prefill of `tokens` tokens, with logits of the last one alone.

    As in `decode_flops`, for every token; but token i meets i keys, tokens * (tokens + 1) / 2 together, and the head
    is multiplied once for each sequence.
    """
    products = 2 * (tokens * config.layers * matmul_parameters(config) + config.vocab * config.width)
    attention = 4 * config.layers * config.heads * config.head_dim * (tokens * (tokens + 1) // 2)
    return batch * (products + attention)
