"""Inputs of both signs and of every size, wherever a contract allows them: usual ones lie within a narrow range.

A contract that speaks of float32 means -3e20 as well as 0.3. Where an answer is exact, or good to a few roundings of
itself, numbers of all sizes stand side by side and each is held against itself. Where numbers are added up, all of an
input are of one size, a power of two away from the usual: what is usual is right there, too, to the same share of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from course_judge.drawn import Drawn, Promise, Tensors
from course_judge.whole_numbers import WHOLE, every_code, signed_sum, signed_windows

FAR = (21, 60)  # exponents of what is large: past 2**20, and its square is a number still
FAR_HALF = (3, 5)  # of float16, which ends at 65504
ROOM_OF_HALF = 2.0**13
# All together, of whole numbers whose sums stay below 2**22: near the ends of float32, and within them.
LARGE_POWERS, SMALL_POWERS = (84, 96), (-108, -92)
ROWS_UP_TO = (
    48  # an exponent: the square of a residual a thousand times as large, and N of those, are numbers still
)
LARGEST_TILE = 128  # along K
MASKED = {torch.float16: -6e4}  # what masks write in place of minus infinity: -1e30 where a type has it


def _four_times(usual: float) -> float:
    return 4 * usual


def _usual(usual: float) -> float:
    return usual


def _power(drawn: Drawn, dtype: torch.dtype) -> int:
    """Draw the exponent of something large that a type has room for."""
    low, high = FAR_HALF if dtype == torch.float16 else FAR
    return low + int(drawn.below(high - low + 1, 1))


def _times(x: torch.Tensor, factor: torch.Tensor | float) -> torch.Tensor:
    return (x.double() * factor).to(x.dtype)


# --- each number by itself -------------------------------------------------------------------------


def _every_number(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Draw the bits of a type at random: its finite numbers, all alike."""
    (x,) = inputs
    bits = drawn.below(256, x.numel() * x.element_size()).to(torch.uint8).view(x.dtype).view(x.shape)
    finite = bits.double().isfinite()
    return (torch.where(finite, bits.double(), 1.0).to(x.dtype),)


def _to_the_last_bit(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (drawn.spread(-6, 6, *x.shape).to(x.dtype),)


def _carried(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (drawn.spread(-60, 60, *x.shape).to(x.dtype),)


def _sums_of_pairs(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Pairs of numbers of like size: in float64 their sum is exact."""
    x, y = inputs
    size = torch.exp2(drawn.below(180, *x.shape).double() - 60)
    return tuple((size * drawn.spread(-2, 2, *t.shape)).to(t.dtype) for t in (x, y))


def _scaled_rows(drawn: Drawn, inputs: Tensors) -> Tensors:
    return tuple(drawn.spread(-40, 40, *x.shape).to(x.dtype) for x in inputs)


def _rows_of_factor_zero(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Make every second factor 0, and plant infinities and NaN in the rows: 0 times either is NaN."""
    x, s = inputs
    planted = drawn.one_of((torch.inf, -torch.inf, torch.nan), *x.shape).to(x.dtype)
    some = drawn.below(max(1, x.shape[1] // 2), *x.shape) == 0
    rows = torch.arange(len(s), device=s.device) % 2 == 0
    return torch.where(some, planted, x), s.masked_fill(rows, 0.0)


def _dark_and_bright(drawn: Drawn, inputs: Tensors) -> Tensors:
    (picture,) = inputs
    dark = torch.exp2(-20 * drawn.uniform(*picture.shape[:-1], 1)) * (
        0.5 + 0.5 * drawn.uniform(*picture.shape)
    )
    ends = drawn.below(2, *picture.shape).double()
    return (torch.where(drawn.below(4, *picture.shape[:-1], 1) == 0, ends, dark).to(picture.dtype),)


# --- all numbers of an input -----------------------------------------------------------------------


def _signed(drawn: Drawn, inputs: Tensors) -> Tensors:
    return tuple(_times(x, drawn.signs(*x.shape)) for x in inputs)


def _large(drawn: Drawn, inputs: Tensors) -> Tensors:
    power = 2.0 ** _power(drawn, inputs[0].dtype)
    return tuple(_times(x, power * drawn.signs(*x.shape)) for x in inputs)


def _small(drawn: Drawn, inputs: Tensors) -> Tensors:
    # The product of two, in float16, is a normal number still.
    return tuple(_times(x, 2.0**-3 if x.dtype == torch.float16 else 2.0**-12) for x in inputs)


# Of GELU's own size at -4: to round the sum to bfloat16 moves it by a fifteenth, and the formula with tanh by a tenth.
FAR_BELOW_OFF = 0.08


def _far_below(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Make sums from -4 to -3, of which GELU lets little through: the formula with tanh has a tenth of it wrong."""
    x, b = inputs
    return (-4 + drawn.uniform(*x.shape) - b.double()).to(x.dtype), b


def _swings(drawn: Drawn, inputs: Tensors) -> Tensors:
    x, a = inputs
    return _times(x, drawn.signs(*x.shape) * 2.0 ** int(drawn.below(30, 1))), a


def _short_steps(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Factors of either sign, well below 1: a chain is soon at its goal."""
    x, a = inputs
    return _times(x, drawn.signs(*x.shape)), (
        drawn.signs(*a.shape) * (0.2 + 0.6 * drawn.uniform(*a.shape))
    ).to(a.dtype)


def _masked(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Put what masks write in place of some numbers of each row, and leave one at least."""
    x, *rest = inputs
    low = torch.full_like(x, MASKED.get(x.dtype, -1e30))
    masked = drawn.below(3, *x.shape) == 0
    masked.scatter_(1, drawn.below(x.shape[1], len(x), 1), False)
    return torch.where(masked, low, x), *rest


def _signed_weights(drawn: Drawn, inputs: Tensors, *, at: int, sizes: int) -> Tensors:
    """Weights of both signs, and of some sizes."""
    g = inputs[at]
    weights = drawn.signs(*g.shape) * torch.exp2(drawn.below(2 * sizes + 1, *g.shape).double() - sizes)
    return *inputs[:at], _times(g, weights), *inputs[at + 1 :]


def _linear_weights(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    return _signed_weights(drawn, inputs, at=2, sizes=0) if drawn.options["norm"] else None


def _large_rows(drawn: Drawn, inputs: Tensors, *, of: Sequence[int]) -> Tensors | None:
    """Rows of many sizes, the first as usual: what they are divided by grows with them."""
    if not drawn.options.get("norm", True):
        return None
    x = inputs[0]
    sizes = torch.exp2(drawn.below(ROWS_UP_TO + 1, len(x), 1).double())
    if x.dtype == torch.float16:
        # Its squares may be past 65504; it is not, nor a sum of two, nor twice it.
        largest = torch.stack([inputs[n].double().abs().amax(1) for n in of if n < len(inputs)]).amax(0)
        room = torch.exp2((ROOM_OF_HALF / largest.clamp(min=2.0**-14)).log2().floor()).clamp(1, 128)
        sizes = torch.minimum(sizes, room[:, None])
    return tuple(
        _times(t, sizes) if number in of and number < len(inputs) else t for number, t in enumerate(inputs)
    )


def _large_residuals(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    return _large_rows(drawn, inputs, of=(0, 2) if len(inputs) == 3 else (0,))


def _there_and_back(drawn: Drawn, inputs: Tensors, *, by_rows: bool = True) -> Tensors | None:
    """Make sums that grow over half of their way and come back: what 16 bits lose of them stays lost."""
    a, b, *rest = inputs
    if a.element_size() > 2 or a.shape[1] < 16 or drawn.options.get("norm") or drawn.options.get("gated"):
        return None
    K = a.shape[1]
    back = torch.where(torch.arange(K, device=a.device) < K // 2, 1.0, -1.0)
    left, right = (
        1 + drawn.normal(*shape).abs() for shape in (a.shape, b.shape if by_rows else b.shape[::-1])
    )
    right = right * back
    return left.to(a.dtype), (right if by_rows else right.t().contiguous()).to(b.dtype), *rest


def _zeros_that_meet_nan(drawn: Drawn, inputs: Tensors, *, by_rows: bool = True) -> Tensors | None:
    """Make A's columns zeros, whole tiles of them, and plant NaN where they meet B: 0 times NaN is NaN."""
    a, b, *rest = inputs
    K = a.shape[1]
    shut = K // 2 if K > LARGEST_TILE else K  # of a few, all: a single tile may hold them
    planted = drawn.below(8 * shut, shut, b.shape[0] if by_rows else b.shape[1]) == 0
    planted[0, 0] = True
    rows = torch.nn.functional.pad(planted, (0, 0, 0, K - shut))
    a = a.clone()
    a[:, :shut] = 0.0
    return a, b.masked_fill(rows.t() if by_rows else rows, torch.nan), *rest


# --- attention -------------------------------------------------------------------------------------


def _attention(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Make queries larger and keys smaller by as much, or the other way round, and values large."""
    q, k, v, *rest = inputs
    times = 2.0 ** (3 - int(drawn.below(7, 1)))
    return _times(q, times), _times(k, 1 / times), _times(v, 2.0 ** _power(drawn, v.dtype)), *rest


def _paged(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v, table, lengths, *scales = inputs
    if not scales:
        return _attention(drawn, inputs)
    times = 2.0 ** (3 - int(drawn.below(7, 1)))
    large = 2.0 ** _power(drawn, q.dtype)
    return _times(q, times), k, v, table, lengths, scales[0] / times, scales[1] * large


def _gradients(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v, _, _, do = inputs
    most = 3 if q.dtype == torch.float16 else 30
    v, do = (_times(x, 2.0 ** int(drawn.below(most, 1))) for x in (v, do))
    return (q, k, v, *drawn.module.forward(q, k, v, **drawn.options), do)


# --- sums: whole numbers, times a power of two -----------------------------------------------------


def _powers(
    drawn: Drawn,
    inputs: Tensors,
    *,
    whole: Callable[[Drawn, Tensors], Tensors | None],
    of: Sequence[int],
    within: tuple[int, int],
) -> Tensors | None:
    """Each input of a case of whole numbers times its own power of two: what was exact still is.

    Args:
        of: the inputs whose powers are multiplied; one behind them is added to their product.
        within: the least and the largest exponent of them all together; float16 has room for few.
    """
    found = whole(drawn, inputs)
    if found is None:
        return None
    low, high = (0, 2) if drawn.workload.torch_dtype == torch.float16 else (n // len(of) for n in within)
    powers = [low + int(drawn.below(high - low + 1, 1)) for _ in of]
    changed = list(found)
    for number, power in zip(of, powers, strict=True):
        changed[number] = _times(changed[number], 2.0**power)
    for number in range(max(of) + 1, len(found)):
        changed[number] = _times(changed[number], 2.0 ** sum(powers))
    return tuple(changed)


def _of_powers(*of: int, whole: Sequence[Callable[[Drawn, Tensors], Tensors | None]]) -> tuple[Promise, ...]:
    return tuple(
        Promise(
            f"{WHOLE_NUMBERS} times {kind}", partial(_powers, whole=each, of=of, within=within), whole=True
        )
        for each in whole
        for kind, within in (("large powers of two", LARGE_POWERS), ("small powers of two", SMALL_POWERS))
    )


def _products(problem: str) -> tuple[Promise, ...]:
    return _of_powers(0, 1, whole=WHOLE[problem])


WHOLE_NUMBERS = "with whole numbers"
BACK = "with sums that grow and come back"
SIGNS, LARGE, SMALL = "with numbers of both signs", "with large numbers of both signs", "with small numbers"
EVERY = "with numbers of every size and sign"
ZERO_ROWS = "with factors of 0, and infinities that meet them"
ZEROS = "with zeros that meet NaN"
CODES = "with every number that 8 bits have"
WEIGHTS = "with weights of both signs"
ROWS = "with rows of many sizes"
VALUES = "with large values, and with queries and keys of other sizes"
MASKS = "with -1e30 in place of minus infinity, as masks have it"
SIGNS_AND_SIZES: dict[str, tuple[Promise, ...]] = {
    **{
        name: (Promise(EVERY, _every_number, exact=True),)
        for name in ("bytes_in_flight", "strided_read", "transpose")
    },
    # Of float64 all bits, in numbers that float32 has room for, too.
    "copy": (
        Promise(EVERY, _every_number, exact=True),
        Promise("to the last bit", _to_the_last_bit, exact=True),
    ),
    # A detour may add zeros, and 1 to what is past 1e30.
    "stall_demos": (Promise(EVERY, _carried, exact=True),),
    "vector_add": (Promise(EVERY, _sums_of_pairs, exact=True),),
    "refusals": (Promise(EVERY, _scaled_rows, own=_usual), Promise(ZERO_ROWS, _rows_of_factor_zero)),
    "grey": (Promise("with dark pixels and bright ones", _dark_and_bright, own=_four_times),),
    "divergence": (Promise(SIGNS, _signed), Promise(LARGE, _large)),
    "fused_multiply_add": (
        Promise("with starts of both signs, and large ones", _swings, slack=4.0),
        Promise("with factors of both signs", _short_steps, slack=4.0),
    ),
    "bias_gelu": (
        Promise(LARGE, _large),
        Promise(SMALL, _small),
        # In bfloat16 a sum may be rounded, by up to 2**-7: four times that of what it lets through.
        Promise("with sums far below 0", _far_below, own=lambda usual: FAR_BELOW_OFF, at_least=2.0**-3),
    ),
    "swiglu": (Promise(LARGE, _large), Promise(SMALL, _small)),
    "softmax": (Promise(MASKS, _masked),),
    "rms_norm": (
        Promise(WEIGHTS, partial(_signed_weights, at=1, sizes=3), slack=2.0, own=_four_times),
        Promise(ROWS, _large_residuals),
    ),
    "add_norm": (
        Promise(WEIGHTS, partial(_signed_weights, at=2, sizes=3)),
        Promise(ROWS, partial(_large_rows, of=(0, 1))),
    ),
    "decode_linear": (
        Promise(WEIGHTS, _linear_weights),
        Promise(ROWS, partial(_large_rows, of=(0,))),
        Promise(BACK, _there_and_back, long=True),
        *_products("decode_linear"),
    ),
    "qkv_rope": (
        Promise(WEIGHTS, partial(_signed_weights, at=1, sizes=1)),
        Promise(ROWS, partial(_large_rows, of=(0,))),
    ),
    **{
        name: (Promise(VALUES, _attention),)
        for name in ("attention", "attention_general", "decode_attention")
    },
    "paged_attention": (Promise(VALUES, _paged),),
    "attention_backward": (Promise("with large values and gradients", _gradients),),
    "gemm": (
        Promise(BACK, partial(_there_and_back, by_rows=False), long=True),
        Promise(ZEROS, partial(_zeros_that_meet_nan, by_rows=False)),
        *_products("gemm"),
    ),
    "skinny_gemm": (
        Promise(BACK, _there_and_back, long=True),
        Promise(ZEROS, _zeros_that_meet_nan),
        *_products("skinny_gemm"),
    ),
    "sgemm": (Promise(ZEROS, partial(_zeros_that_meet_nan, by_rows=False)), *_products("sgemm")),
    "bank_conflicts": _of_powers(0, whole=(signed_windows,)),
    "reduction": _of_powers(0, whole=(signed_sum,)),
    **{
        name: (Promise(CODES, every_code, whole=True), *_of_powers(2, 3, whole=WHOLE[name]))
        for name in ("gemm_fp8", "skinny_gemm_fp8")
    },
    "skinny_gemm_w4": _of_powers(0, 2, whole=WHOLE["skinny_gemm_w4"]),
}
