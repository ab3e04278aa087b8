"""Training: a small model of the Llama family learns a text, byte by byte, in less than a minute of a large GPU.

    corpus = corpus.load()
    model = train(SMALL, stream(corpus.train), Recipe(), seed=0).model
    bits_per_byte(model, corpus.held_out)

Nothing here is clever: one step takes `batch` windows of the text, asks the model for every next byte, and moves each
weight against its gradient (AdamW). The number of steps is fixed and the clock decides nothing, so that a second run
is the same run, but for the order in which a GPU adds. Weights and their averages are float32; products are bfloat16
on a GPU.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from course_models.byte_tokens import BEGIN, VOCAB, encode
from course_models.config import Config
from course_models.model import Model
from course_models.operators import PLAIN, Operators, sdpa_prefill_attention

# The architecture of the 8B model, a thousandth of its weights: each fits into 8 MiB in bfloat16.
SMALL = Config(
    layers=5, width=256, heads=4, kv_heads=2, head_dim=64, hidden=640, vocab=VOCAB, tied=True, max_tokens=1024
)
# For speculative decoding: it guesses what the small one will say, at a ninth of the weights.
DRAFT = Config(
    layers=2, width=128, heads=2, kv_heads=1, head_dim=64, hidden=320, vocab=VOCAB, tied=True, max_tokens=1024
)
# Eight experts instead of one block: a token meets two of them.
EXPERTS = dataclasses.replace(SMALL, layers=4, hidden=96, experts=8, experts_per_token=2)


@dataclass(frozen=True)
class Recipe:
    """Recipe of a training.

    Attributes:
        steps: how many; the only thing that ends a training.
        batch, length: windows of a step and bytes of each; every byte of them is guessed.
        rate: the learning rate at its highest; it rises over `warm_up` steps, then falls by a cosine, not quite to 0.
        warm_up: steps.
        decay: weight decay of AdamW, of matrices alone.
        longest: the norm above which a step's gradient is shortened.
        balance: of a model with experts, the weight of the term that asks for all of them to be used.
        look_every: steps between two looks at the loss.
    """

    steps: int = 1000
    batch: int = 32
    length: int = 1024
    rate: float = 1.5e-3
    warm_up: int = 100
    decay: float = 0.1
    longest: float = 1.0
    balance: float = 0.01
    look_every: int = 50

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        done = (step - self.warm_up) / max(self.steps - self.warm_up, 1)
        return self.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True)
class Trained:
    """Result of a training.

    Attributes:
        model: in float32.
        steps, train_bits: after how many steps the loss was looked at, and its mean since the last look, in bits per
            byte, on the windows that the model was about to learn.
        looked: what `look` said at the same steps.
        seconds: of all steps, by the host's clock; looking is not in it.
    """

    model: Model
    steps: list[int] = field(default_factory=list)
    train_bits: list[float] = field(default_factory=list)
    looked: list[float] = field(default_factory=list)
    seconds: float = 0.0


def stream(texts: Sequence[bytes], device: torch.device | str = "cpu") -> Tensor:
    """Return all texts as one row of tokens, `BEGIN` before each: (N,) int64."""
    return torch.tensor([token for text in texts for token in encode(text)], device=device)


def train(
    config: Config,
    data: Tensor,
    recipe: Recipe,
    *,
    seed: int = 0,
    look: Callable[[Model], float] | None = None,
) -> Trained:
    """Train a model from random weights, where `data` lies.

    Args:
        config: the sizes.
        data: (N,) int64, as `stream` makes it.
        recipe: how.
        seed: draws the weights and the windows; on one machine the same seed gives the same model.
        look: called with the model every `look_every` steps; its answers are kept.
    Raises:
        ValueError: a text that is shorter than a window, or a window that is longer than the model's positions.
        FloatingPointError: the loss is no number any more.
    """
    if recipe.length > config.max_tokens:
        raise ValueError(f"length: expected at most max_tokens={config.max_tokens}, got {recipe.length}")
    if len(data) <= recipe.length:
        raise ValueError(f"data: expected more than length={recipe.length} tokens, got {len(data)}")
    device = data.device
    routing = _Routing(config)
    # Drawn on the host, so that a seed means the same weights on every device.
    model = Model.random(config, seed, dtype=torch.float32).to(device)
    fast = model.with_operators(routing.operators(model))
    optimizer = torch.optim.AdamW(
        _groups(model, recipe.decay), lr=recipe.rate, betas=(0.9, 0.95), fused=device.type == "cuda"
    )
    drawn = torch.Generator().manual_seed(seed + 1)
    window = torch.arange(recipe.length + 1, device=device)
    out, since = Trained(model), torch.zeros((), device=device)
    began = _now(device)
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate_at(step)
        starts = torch.randint(len(data) - recipe.length, (recipe.batch,), generator=drawn)
        tokens = data[starts.to(device)[:, None] + window]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = fast(tokens[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        since += loss.detach()
        (loss + recipe.balance * routing.term()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.longest)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (step + 1) % recipe.look_every == 0:
            out.train_bits.append(float(since) / recipe.look_every / math.log(2))
            out.steps.append(step + 1)
            since.zero_()
            if not math.isfinite(out.train_bits[-1]):
                raise FloatingPointError(
                    f"train: the loss is no number after {step + 1} steps: lower the rate"
                )
            if look:
                paused = _now(device)
                out.looked.append(look(model))
                began += _now(device) - paused
    return dataclasses.replace(out, seconds=_now(device) - began)


@torch.no_grad()
def bits_per_byte(model: Model, texts: Sequence[bytes], *, window: int = 0, batch: int = 32) -> float:
    """Return the loss of a model on texts: the mean of -log2 of the chance it gave to each byte.

    A text longer than a window is read in windows that overlap by half, so that but for its beginning every byte is
    guessed with at least half a window before it. Every byte is guessed once, the first of a text from `BEGIN` alone.

    Args:
        model: in any type; the chances are worked out in float32.
        texts: at least one byte.
        window: bytes; as many as the model has positions where it is 0. Longer than what it was trained on makes no
            sense: a model knows nothing of positions that it never saw.
        batch: windows at once.
    """
    length = window or model.config.max_tokens
    rows: list[
        tuple[Tensor, int]
    ] = []  # the tokens of a window, and how many of its guesses count, from its end
    for text in texts:
        tokens = torch.tensor(encode(text))
        ends = [min(length, len(text))]
        while ends[-1] < len(text):
            ends.append(min(ends[-1] + length // 2, len(text)))
        for before, end in zip([0, *ends], ends, strict=False):
            rows.append((tokens[max(end - length, 0) : end + 1], end - before))
    if not sum(counted for _, counted in rows):
        raise ValueError("texts: expected at least one byte to measure on, got none")
    rows.sort(key=lambda row: len(row[0]))  # windows of about one length go together
    ready = model.with_operators(dataclasses.replace(PLAIN, prefill_attention=sdpa_prefill_attention))
    bits = torch.zeros((), dtype=torch.float64, device=model.device)
    for i in range(0, len(rows), batch):
        some = [(tokens, counted) for tokens, counted in rows[i : i + batch] if counted]
        most = max((len(tokens) for tokens, _ in some), default=0)
        if not most:
            continue
        padded = torch.full((len(some), most), BEGIN)
        counts = torch.zeros(len(some), most - 1, dtype=torch.bool)
        for row, (tokens, counted) in enumerate(some):
            padded[row, : len(tokens)] = tokens  # what is padded lies behind, where no guess looks
            counts[row, len(tokens) - 1 - counted : len(tokens) - 1] = True
        padded, counts = padded.to(model.device), counts.to(model.device)
        logits = ready(padded[:, :-1]).float()
        losses = functional.cross_entropy(logits.flatten(0, 1), padded[:, 1:].flatten(), reduction="none")
        bits += losses.double()[counts.flatten()].sum()
    return float(bits) / math.log(2) / sum(counted for _, counted in rows)


def _groups(model: Model, decay: float) -> list[dict[str, object]]:
    """Matrices shrink a little at every step, the weights of the norms do not."""
    return [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class _Routing:
    """Hears what the routers of a model say, and works out how unevenly they say it.

    Left alone, routers send everything to the few experts that were best at first. The term of the Switch Transformer
    is smallest where all experts get equally many tokens: for each layer experts * sum over e of f_e * p_e, with f_e
    the share of the tokens that go to expert e, and p_e the mean of the chance that the router gave it.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.scores: list[Tensor] = []

    def operators(self, model: Model) -> Operators:
        """Operators for training: torch's fused norm and attention, and ears at the routers."""
        routers = {id(layer.router) for layer in model.layers if self.config.experts}

        def linear(x: Tensor, weight: Tensor) -> Tensor:
            y = functional.linear(x, weight)
            if id(weight) in routers:
                self.scores.append(y)
            return y

        def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
            return functional.rms_norm(x, weight.shape, weight, eps)

        return dataclasses.replace(
            PLAIN, linear=linear, rms_norm=rms_norm, prefill_attention=sdpa_prefill_attention
        )

    def term(self) -> Tensor | float:
        """Return the mean over the layers of what was heard since the last call; 0 without experts."""
        terms = []
        for scores in self.scores:
            chances = torch.softmax(scores.float(), dim=-1)
            who = scores.topk(self.config.experts_per_token, dim=-1).indices
            shares = functional.one_hot(who, self.config.experts).float().mean(dim=(0, 1))
            terms.append(self.config.experts * (shares * chances.mean(dim=0)).sum())
        self.scores.clear()
        return torch.stack(terms).mean() if terms else 0.0
