"""Inputs with a structure that random ones never have, wherever a contract allows it.

One sign alone, as behind a ReLU; a matrix with nothing off its diagonal; NaN among weights and scales; a number far
ahead of its row. Values that few tokens have, so that one token left out of thousands shows; sequences that end where
a tile does; rooms in which old tokens lie and no NaN; pages and positions past what sixteen bits count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from course_judge.drawn import Drawn, Promise, Tensors
from course_judge.whole_numbers import WHOLE, whole

FAR_AHEAD = (11, 19)  # exponents; past 2**20 the usual x * log2(e) - max * log2(e) is off by a share of 1
SHUT = (-30.0, -12.0)  # gates; further down the argument of exp is off by more than a few units
TILE, TILES = 64, (256, 128, 64, 32, 16, 8)
# Tokens that have a value in one of the D numbers: were one left out, it would show beside so many.
TOKENS_EACH = {torch.bfloat16: 4, torch.float16: 32, torch.float32: 256}
PAST_SHORT, MOST_POOL_BYTES = (
    2**15,
    2**26,
)  # numbers of pages and positions past an int16; what a pool may take
FEW = 3  # whole numbers of a diagonal


def _of_one_sign(drawn: Drawn, inputs: Tensors, *, of: Sequence[int], sign: float = 1.0) -> Tensors:
    return tuple(
        (sign * x.double().abs()).to(x.dtype) if number in of else x for number, x in enumerate(inputs)
    )


def _diagonal(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Draw a matrix with nothing off its diagonal, and another of whole numbers: each answer is one product."""
    a, b = inputs
    numbers = whole(drawn, FEW, min(a.shape))
    only = torch.zeros(a.shape, device=a.device)
    only.diagonal().copy_(numbers)
    return only.to(a.dtype), whole(drawn, 7, *b.shape).to(b.dtype)


def _planted(drawn: Drawn, inputs: Tensors, *, at: int, values: Sequence[float]) -> Tensors | None:
    """Plant values in one input, some in every eight numbers, one at least."""
    if at >= len(inputs) or not drawn.options.get("norm", True):
        return None
    x = inputs[at]
    some = drawn.below(8, x.numel()).view(x.shape) == 0
    some.view(-1)[drawn.below(x.numel(), 1)] = True
    return (*inputs[:at], torch.where(some, drawn.one_of(values, *x.shape).to(x.dtype), x), *inputs[at + 1 :])


def _far_ahead(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Plant in every row a number of thousands, and another of half its size: the first has all the weight."""
    (x,) = inputs
    low, high = FAR_AHEAD
    size = torch.exp2(low + (high - low) * drawn.uniform(len(x), 1))
    at = drawn.below(x.shape[1], len(x), 1)
    half = x.scatter(1, (at + 1) % x.shape[1], (size / 2).to(x.dtype))
    return (half.scatter(1, at, size.to(x.dtype)),)


def _gates_far_below(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    gate, *up = inputs
    if gate.dtype == torch.float16:
        return None  # what little comes through is below its smallest normal number
    low, high = SHUT
    shut = (low + (high - low) * drawn.uniform(*gate.shape)).to(gate.dtype)
    if up:
        return shut, *up
    half = gate.shape[1] // 2
    return (torch.cat((shut[:, :half], gate[:, half:]), 1),)


def _signed_scales(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Scales of both signs, one of them negative for certain, with numbers whose sums are exact."""
    (change,) = WHOLE["gemm_fp8"]
    x, w, *scales = change(drawn, inputs)
    turned = [scale * drawn.signs(*scale.shape).float() for scale in scales]
    at = int(drawn.below(2, 1))
    turned[at][:1] = -scales[at][:1]
    turned[1 - at][:1] = scales[1 - at][:1]
    return x, w, *turned


# --- tokens ----------------------------------------------------------------------------------------


def _ranks(drawn: Drawn, N: int, *shape: int) -> torch.Tensor:
    """Return an order of N tokens (*shape, N): those about the ends of tiles first, the others as they come."""
    n = torch.arange(N, device=drawn.generator.device)
    about = (n + 1) % TILE <= 2
    return (drawn.uniform(*shape, N) - about.double()).argsort(-1).argsort(-1)


def _values(drawn: Drawn, like: torch.Tensor, ranks: torch.Tensor) -> torch.Tensor:
    """Return values (..., N, D): the first tokens have a 1 in one of the D numbers each, the others nothing."""
    D = like.shape[-1]
    live = ranks < TOKENS_EACH[drawn.workload.torch_dtype] * D
    return (torch.nn.functional.one_hot(ranks % D, D) * live[..., None]).to(like.dtype)


def _nearly_level(q: torch.Tensor) -> torch.Tensor:
    """Return queries to which all tokens weigh about the same."""
    return (q.double() / 16).to(q.dtype)


def _apart(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v = inputs
    return _nearly_level(q), k, _values(drawn, v, _ranks(drawn, v.shape[2], *v.shape[:2]))


def _at_a_tile(lengths: torch.Tensor) -> torch.Tensor:
    """Return lengths that are multiples of the largest tile that they have twice."""
    found = lengths.clone()
    for tile in reversed(TILES):
        found = torch.where(lengths >= 2 * tile, (lengths - 1) // tile * tile, found)
    return found


def _decode_apart(drawn: Drawn, inputs: Tensors, *, tiles: bool = False) -> Tensors:
    q, k, v, lengths = inputs
    if tiles:
        lengths = _at_a_tile(lengths)
    N = v.shape[2]
    ranks = _ranks(drawn, N, *v.shape[:2])
    past = torch.arange(N, device=v.device) >= lengths[:, None]
    ranks = (ranks + N * past[:, None]).argsort(-1).argsort(-1)  # those that are there come first
    return _nearly_level(q), k, _values(drawn, v, ranks).masked_fill(v.isnan(), torch.nan), lengths


def _paged_apart(drawn: Drawn, inputs: Tensors, *, tiles: bool = False) -> Tensors:
    q, k, v, table, lengths, *scales = inputs
    if tiles:
        lengths = _at_a_tile(lengths)
    PAGE, values = k.shape[2], torch.zeros_like(v)
    for b, length in enumerate(lengths.tolist()):
        pages = table[b, : -(-length // PAGE)].long()
        if length:
            ranks = _ranks(drawn, length, v.shape[1])
            ranks = torch.nn.functional.pad(ranks, (0, len(pages) * PAGE - length), value=2**30)
            found = _values(drawn, v, ranks).view(v.shape[1], len(pages), PAGE, -1).transpose(0, 1)
            values[pages] = found.contiguous()
    values = torch.where(v.double().isnan(), v.double(), values.double()).to(v.dtype)
    return _nearly_level(q), k, values, table, lengths, *scales


def _old_tokens(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Fill all room with tokens, behind the lengths too, and make the keys of a head alike: all weigh the same."""
    q, k, v, *rest = inputs
    fresh = drawn.normal(*v.shape).to(v.dtype)
    alike = drawn.normal(1, k.shape[1], 1, k.shape[3]).expand(k.shape)
    return (
        q,
        alike.to(k.dtype).contiguous(),
        torch.where(v.double().isnan(), fresh.double(), v.double()).to(v.dtype),
        *rest,
    )


def _pages_twice(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Let some full pages of a sequence stand in it twice."""
    _, k, _, table, lengths, *_ = inputs
    twice, PAGE = table.clone(), k.shape[2]
    for b, length in enumerate(lengths.tolist()):
        if (full := length // PAGE) > 1:
            twice[b, :full] = table[b, drawn.below(full, full)]
            twice[b, 1] = twice[b, 0]
    return None if torch.equal(twice, table) else (*inputs[:3], twice, *inputs[4:])


def _many_pages(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Make a pool so large that the number of a page does not fit into sixteen bits."""
    q, k, v, table, lengths, *scales = inputs
    more = PAST_SHORT
    if (more + len(k)) * k[0].numel() * k.element_size() > MOST_POOL_BYTES:
        return None
    pools = []
    for pool in (k, v):
        large = torch.empty(more + len(pool), *pool.shape[1:], dtype=pool.dtype, device=pool.device)
        large.view(torch.uint8).fill_(0xFF)  # NaN in every type
        large[more:] = pool
        pools.append(large)
    named = torch.arange(table.shape[1], device=table.device) < -(-lengths[:, None] // k.shape[2])
    return q, *pools, torch.where(named, table + more, table), lengths, *scales


# --- positions -------------------------------------------------------------------------------------


def _late_positions(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Tables so long that a position does not fit into sixteen bits."""
    x, g, w, positions, cos, _ = inputs
    angles = 6.0 * drawn.uniform(PAST_SHORT + len(cos), cos.shape[1]).float()
    return x, g, w, positions + PAST_SHORT, angles.cos(), angles.sin()


def _one_position(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    x, g, w, positions, cos, sin = inputs
    if len(cos) < 2 or len(x) < 2:
        return None
    return x, g, w, torch.full_like(positions, 1 + int(drawn.below(len(cos) - 1, 1))), cos, sin


POSITIVE, NEGATIVE = "with positive numbers alone", "with negative numbers alone"
DIAGONAL = "with a matrix that has nothing off its diagonal"
NAN_WEIGHTS = "with NaN and infinities among the weights"
NAN_RESIDUALS = "with NaN and infinities in the residual"
NAN_SCALES, SIGNED_SCALES = "with NaN and infinities for scales", "with scales of both signs"
AHEAD, GATES = "with a number in each row that is thousands ahead", "with gates that are shut"
APART, WHOLE_TILES = "with values that few tokens have", "with sequences of whole tiles"
OLD = "with keys that are alike, and tokens in all of the room"
TWICE, MANY_PAGES = "with pages that stand twice in a sequence", "with more pages than sixteen bits count"
LATE, ONE_POSITION = "with later positions than sixteen bits count", "with one position for all"
NO_NUMBERS = (torch.nan, torch.inf, -torch.inf)
# Cases whose inputs have other shapes than usual ones.
OTHER_SHAPES = (MANY_PAGES, LATE)


def _positive(*of: int) -> Promise:
    return Promise(POSITIVE, partial(_of_one_sign, of=of))


_PRODUCTS = (_positive(0, 1), Promise(DIAGONAL, _diagonal, whole=True, square=True))
_SCALES = (
    Promise(SIGNED_SCALES, _signed_scales, whole=True),
    Promise(NAN_SCALES, partial(_planted, at=2, values=NO_NUMBERS)),
    Promise(NAN_SCALES, partial(_planted, at=3, values=NO_NUMBERS)),
)
STRUCTURED: dict[str, tuple[Promise, ...]] = {
    "vector_add": (_positive(0, 1),),
    "softmax": (_positive(0), Promise(AHEAD, _far_ahead)),
    "reduction": (Promise(NEGATIVE, partial(_of_one_sign, of=(0,), sign=-1.0)),),
    "bias_gelu": (_positive(0, 1),),
    "swiglu": (_positive(0), Promise(GATES, _gates_far_below, own=lambda usual: 4 * usual)),
    "rms_norm": (
        _positive(0, 1, 2),
        Promise(NAN_WEIGHTS, partial(_planted, at=1, values=NO_NUMBERS)),
        Promise(NAN_RESIDUALS, partial(_planted, at=2, values=NO_NUMBERS)),
    ),
    "add_norm": (
        _positive(0, 1, 2),
        Promise(NAN_WEIGHTS, partial(_planted, at=2, values=NO_NUMBERS)),
        Promise(NAN_RESIDUALS, partial(_planted, at=1, values=NO_NUMBERS)),
    ),
    **dict.fromkeys(("gemm", "sgemm"), _PRODUCTS),
    "skinny_gemm": (_positive(0, 1),),
    **dict.fromkeys(("gemm_fp8", "skinny_gemm_fp8"), (_positive(0, 1), *_SCALES)),
    "attention": (Promise(APART, _apart, long=True, types=True),),
    "decode_attention": (
        Promise(APART, _decode_apart, long=True, types=True),
        Promise(WHOLE_TILES, partial(_decode_apart, tiles=True), long=True, types=True),
        Promise(OLD, _old_tokens),
    ),
    "paged_attention": (
        Promise(APART, _paged_apart, long=True, types=True),
        Promise(WHOLE_TILES, partial(_paged_apart, tiles=True), long=True, types=True),
        Promise(OLD, _old_tokens),
        Promise(TWICE, _pages_twice),
        Promise(MANY_PAGES, _many_pages, least=True),
    ),
    "qkv_rope": (
        Promise("with NaN among the weights", partial(_planted, at=1, values=(torch.nan,))),
        Promise(LATE, _late_positions),
        Promise(ONE_POSITION, _one_position),
    ),
}
