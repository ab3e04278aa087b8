"""Arithmetic of a card in Triton's interpreter, wherever its own is another.

The interpreter adds and multiplies bf16 as whole numbers of 16 bits, cuts where a card rounds, gives fp8 codes that no
card gives, and multiplies fp32 exactly where a card takes TF32. A right kernel is wrong there, and a wrong one right.
All that is put in its place here was seen on an H100 with Triton 3.6.0, and the compiler of Triton 3.7.1 chooses the
same instructions.
"""

from __future__ import annotations

import ast
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from course_judge.worker.lacking import absent_functions

# The elements of a sum that one thread adds up before it meets others: 16 bytes are loaded at once.
IN_ONE_THREAD = 8
# The bits of a float32 that TF32 has no room for. A tensor core leaves them out; it does not round.
NOT_IN_TF32 = np.uint32(0x1FFF)
CANONICAL_NAN = 0x7FFF  # of bf16
# fp8: bits of the exponent, bits of the fraction, bias, the code of the largest number.
FP8 = {"fp8e4nv": (4, 3, 7, 0x7E), "fp8e5": (5, 2, 15, 0x7B)}
SMALLEST_K = {8: 32}  # of a tl.dot, by the bits of an element; 16 for all others

COUNTED = "counted"  # by which a rewritten loop finds its range, beside what the interpreter rewrites itself

ARITHMETIC = ("fadd", "fsub", "fmul", "fdiv", "frem", "precise_divf", "minimumf", "maximumf")
COMPARISONS = tuple(f"fcmp{how}{what}" for how in "OU" for what in ("LT", "GT", "LE", "GE", "EQ", "NE"))


@contextmanager
def as_on_a_card() -> Iterator[None]:
    """Have Triton's interpreter compute as a card does, for as long as it lasts."""
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    wide = _Wide(interpreter)
    largest = {"maxnumf": np.fmax, "minnumf": np.fmin}  # of NaN and a number, the number
    changes: list[tuple[Any, str, Any]] = [
        (interpreter, "_patch_lang_tensor", _asking_no_block(interpreter)),
        (interpreter.ASTTransformer, "visit_For", _counted_loop),
        (interpreter.interpreter_semantic, COUNTED, _counted(interpreter)),
        (interpreter, "_convert_float", _converted(interpreter._convert_float)),
        (builder, "get_bf16", wide.constant),
        (builder, "create_dot", _dot(interpreter)),
        (builder, "create_fma", wide.both(_fma(interpreter))),
        (builder, "create_clampf", wide.both(_clamp(builder.create_clampf, interpreter))),
        (builder, "create_si_to_fp", _from_whole(interpreter, builder.create_si_to_fp)),
        (builder, "create_ui_to_fp", _from_whole(interpreter, builder.create_ui_to_fp)),
        (builder, "create_fp_to_si", _to_whole(interpreter)),
        (builder, "create_fp_to_ui", _to_whole(interpreter)),
        (interpreter.ReduceOps, "sum", _sum(interpreter.ReduceOps.sum)),
        (interpreter.ScanOps, "cumsum", _cumsum(interpreter.ScanOps.cumsum)),
        (interpreter.ReduceOps, "generic_reduce", _reduce(interpreter.ReduceOps.generic_reduce)),
        (interpreter.ScanOps, "generic_scan", _scan(interpreter.ScanOps.generic_scan)),
    ]
    changes += [
        (builder, f"create_{name}", wide.both(getattr(builder, f"create_{name}")))
        for name in (*ARITHMETIC, *COMPARISONS)
    ]
    changes += [(builder, f"create_{name}", wide.both(_of_two(op))) for name, op in largest.items()]
    changes += absent_functions()
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in changes]
    smallest = interpreter.interpreter_builder.codegen_fns["min_dot_size"]
    for owner, name, changed in changes:
        setattr(owner, name, changed)
    interpreter.interpreter_builder.codegen_fns["min_dot_size"] = _smallest_dot
    rewritten = interpreter.InterpretedFunction.rewritten_fn
    rewritten.clear()  # what was rewritten before has Python's numbers in its loops
    try:
        # A card says nothing of NaN and infinities that it makes.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice encountered", RuntimeWarning)
            yield
    finally:
        rewritten.clear()
        interpreter.interpreter_builder.codegen_fns["min_dot_size"] = smallest
        for owner, name, was in before:
            if was is None:
                delattr(owner, name)
            else:
                setattr(owner, name, was)


# --- numbers of 8 and of 16 bits, in arrays of whole numbers --------------------------------------


def bf16_of(numbers: np.ndarray) -> np.ndarray:
    """Return the bits of numbers rounded to bf16, to the nearest, ties to even."""
    bits = np.asarray(numbers, dtype=np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(
        np.uint16
    )
    return np.where(np.isnan(numbers), np.uint16(CANONICAL_NAN), rounded)


def float_of_bf16(bits: np.ndarray) -> np.ndarray:
    """Return float32 numbers by their bits in bf16."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def fp8_of(numbers: np.ndarray, kind: str) -> np.ndarray:
    """Return the codes of numbers in an 8-bit type; past its largest they are the largest, infinities too."""
    values, most = _values(kind), FP8[kind][3]
    plain = np.asarray(numbers, dtype=np.float64)
    size = np.minimum(np.abs(np.where(np.isnan(plain), 0.0, plain)), values[most])
    _, fraction_bits, bias, _ = FP8[kind]
    exponent = np.maximum(np.frexp(size)[1] - 1, 1 - bias)
    step = np.ldexp(1.0, exponent - fraction_bits)
    codes = np.searchsorted(values[: most + 1], np.rint(size / step) * step).astype(np.uint8)
    codes = np.where(np.isnan(plain), np.uint8(0x7F), codes | (np.signbit(plain) * np.uint8(0x80)))
    return codes.astype(np.uint8)


def float_of_fp8(codes: np.ndarray, kind: str) -> np.ndarray:
    """Return float32 numbers by their codes in an 8-bit type."""
    sizes = _values(kind)[codes & 0x7F]
    return np.where(codes & 0x80, -sizes, sizes).astype(np.float32)


@cache
def _values(kind: str) -> np.ndarray:
    """Numbers of the codes 0 to 127."""
    exponent_bits, fraction_bits, bias, most = FP8[kind]
    found = []
    for code in range(128):
        exponent, fraction = code >> fraction_bits, code % 2**fraction_bits
        one = 2**fraction_bits if exponent else 0
        found.append(math.ldexp(one + fraction, max(exponent, 1) - bias - fraction_bits))
    infinite = 2**exponent_bits - 1 << fraction_bits
    for code in range(most + 1, 128):
        found[code] = math.inf if kind == "fp8e5" and code == infinite else math.nan
    return np.array(found)


def tf32_of(numbers: np.ndarray) -> np.ndarray:
    """Return float32 numbers with the bits cut off that TF32 has no room for."""
    cut = (numbers.view(np.uint32) & ~NOT_IN_TF32).view(np.float32)
    return np.where(np.isfinite(numbers), cut, numbers)


def _as_float32(bits: np.ndarray, kind: str) -> np.ndarray:
    """Numbers of a type that NumPy lacks, by their bits; those of others as they are."""
    if kind in FP8:
        return float_of_fp8(bits, kind)
    return float_of_bf16(bits) if kind == "bf16" else bits


# --- what stands in for the interpreter's own ------------------------------------------------------


def _converted(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert(bits: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
        from triton.runtime.interpreter import _get_np_dtype, _ir

        known = {"bf16", "fp16", "fp32", "fp64", *FP8}
        own = {source.name, target.name} & {"bf16", *FP8}
        if not own or not {source.name, target.name} <= known or rounding == _ir.ROUNDING_MODE.RTZ:
            return original(bits, source, target, rounding)
        numbers = _as_float32(bits, source.name)
        if target.name in FP8:
            return fp8_of(numbers, target.name)
        if target.name == "bf16":
            return bf16_of(numbers.astype(np.float32))
        return numbers.astype(_get_np_dtype(target)).view(f"u{target.primitive_bitwidth // 8}")

    return convert


def _asking_no_block(interpreter: Any) -> Callable[..., Any]:
    """Refuse `if`, `and`, `or` and `not` of a block of several values.

    Left to itself the interpreter takes every such block for a yes, and `0 <= i < N` for `i < N`, which no card does.
    Triton's own files mean that yes: they ask whether there is a block.
    """
    own = str(Path(interpreter.__file__).parents[1])
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, *scope: Any) -> None:
        patch(tensor, *scope)
        one_value = tensor.__bool__

        def yes_or_no(self: Any) -> bool:
            if self.handle.data.size > 1 and not sys._getframe(1).f_code.co_filename.startswith(own):
                raise ValueError("The truth value of a block with more than one element is ambiguous")
            return bool(one_value(self))

        tensor.__bool__ = yes_or_no  # Triton puts back what it patched once the kernel has run

    return patched


def _counted_loop(transformer: Any, loop: ast.For) -> ast.For:
    """Rewrite a loop over `range` or `tl.range`: what it counts by is a number of the card, and not one of Python."""
    transformer.generic_visit(loop)
    called = loop.iter
    if (
        isinstance(loop.target, ast.Name)
        and isinstance(called, ast.Call)
        and ast.unparse(called.func) in ("range", "tl.range")
    ):
        counted = ast.Attribute(ast.Name("interpreter_semantic", ast.Load()), COUNTED, ast.Load())
        loop.iter = ast.Call(counted, called.args, [])
    return loop


def _counted(interpreter: Any) -> Callable[..., Any]:
    """Return a `range` that yields numbers with a type, as wide as its ends."""
    tl = interpreter.tl

    def counted(*ends: Any) -> Iterator[Any]:
        wide = any(isinstance(end, tl.tensor) and end.dtype.primitive_bitwidth > 32 for end in ends)
        kind = tl.int64 if wide else tl.int32
        for number in range(*ends):
            data = np.array([number], dtype=np.int64 if wide else np.int32)
            yield tl.core.tensor(interpreter.TensorHandle(data, kind), kind)

    return counted


class _Wide:
    """Operations on bf16, worked out in float32 and rounded once."""

    def __init__(self, interpreter: Any) -> None:
        self._handle, self._tl = interpreter.TensorHandle, interpreter.tl

    @property
    def constant(self) -> Callable[..., Any]:
        """Maker of a single number in bf16, which the interpreter lacks."""

        def get_bf16(_: Any, value: float) -> Any:
            return self._handle(bf16_of(np.array([value], dtype=np.float32)), self._tl.bfloat16)

        return get_bf16

    def both(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return an operation for bf16 too: a number comes out in bf16, a yes or no as it is."""

        def operation(builder: Any, *operands: Any) -> Any:
            if not any(self._is_bf16(operand) for operand in operands):
                return original(builder, *operands)
            widened = [self._widened(operand) if self._is_bf16(operand) else operand for operand in operands]
            result = original(builder, *widened)
            if result.data.dtype == np.bool_:
                return self._handle(result.data, self._tl.int1)
            return self._handle(bf16_of(result.data), self._tl.bfloat16)

        return operation

    def _is_bf16(self, operand: Any) -> bool:
        return (
            isinstance(operand, self._handle)
            and operand.data.dtype == np.uint16
            and operand.get_element_ty() == self._tl.bfloat16
        )

    def _widened(self, operand: Any) -> Any:
        return self._handle(float_of_bf16(operand.data), self._tl.float32)


def _of_two(op: Callable[..., Any]) -> Callable[..., Any]:
    return lambda builder, one, other: builder.binary_op(one, other, op)


def _fma(interpreter: Any) -> Callable[..., Any]:
    """Multiply and add, rounded once."""

    def fma(_: Any, x: Any, y: Any, z: Any) -> Any:
        wide = [handle.data.astype(np.float64) for handle in (x, y, z)]
        data = (wide[0] * wide[1] + wide[2]).astype(z.data.dtype)
        return interpreter.TensorHandle(data, z.dtype.scalar)

    return fma


def _clamp(original: Callable[..., Any], interpreter: Any) -> Callable[..., Any]:
    def clamp(builder: Any, x: Any, least: Any, most: Any, propagate_nans: Any) -> Any:
        if propagate_nans == interpreter._ir.PROPAGATE_NAN.ALL:
            return original(builder, x, least, most, propagate_nans)
        return builder.ternary_op(x, least, most, lambda x, least, most: np.fmin(np.fmax(x, least), most))

    return clamp


def _from_whole(interpreter: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Whole numbers in bf16, rounded; the interpreter takes them for its bits."""

    def convert(builder: Any, source: Any, target: Any) -> Any:
        if target.scalar != interpreter.tl.bfloat16:
            return original(builder, source, target)
        return interpreter.TensorHandle(bf16_of(source.data.astype(np.float32)), target.scalar)

    return convert


def _to_whole(interpreter: Any) -> Callable[..., Any]:
    """Numbers cut to whole ones: what is too large becomes the largest there is, NaN becomes 0."""

    def convert(_: Any, source: Any, target: Any) -> Any:
        dtype = interpreter._get_np_dtype(target)
        # For 8 bits a card converts to 16, and keeps the low ones.
        wide = np.dtype(f"{dtype.kind}2") if dtype.itemsize == 1 else dtype
        numbers = _as_float32(source.data, source.get_element_ty().name).astype(np.float64)
        limits = np.iinfo(wide)
        inside = (numbers > float(limits.min) - 1) & (numbers < float(limits.max))
        whole = np.where(inside, numbers, 0.0).astype(wide)
        whole = np.where(numbers >= float(limits.max), limits.max, whole)
        whole = np.where(numbers <= float(limits.min), limits.min, whole).astype(wide)
        if wide.itemsize == 8:
            whole[np.isnan(numbers)] = np.uint64(2**63).astype(wide)
        return interpreter.TensorHandle(whole.astype(dtype), target.scalar)

    return convert


def _dot(interpreter: Any) -> Callable[..., Any]:
    tf32 = interpreter._ir.INPUT_PRECISION.TF32

    def dot(_: Any, a: Any, b: Any, sums: Any, input_precision: Any, __: Any) -> Any:
        factors = []
        for handle in (a, b):
            data = _as_float32(handle.data, handle.get_element_ty().name)
            if data is handle.data and data.dtype == np.float32 and input_precision == tf32:
                data = tf32_of(data)
            factors.append(data.astype(sums.data.dtype))
        product = np.matmul(*factors, dtype=sums.data.dtype)
        return interpreter.TensorHandle(product + sums.data, sums.dtype.scalar)

    return dot


def _smallest_dot(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    return 1, 1, SMALLEST_K.get(lhs.scalar.primitive_bitwidth, 16)


def _sum(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sum rounded after each addition of 16-bit numbers; each thread begins with a few of its own."""

    def sum_(reduce: Any, tile: Any) -> Any:
        kind = tile.handle.get_element_ty().name
        if kind not in ("bf16", "fp16"):
            return original(reduce, tile)
        numbers = _as_float32(tile.handle.data, kind).astype(np.float32)
        axis = reduce.axis
        numbers = numbers.reshape(-1) if axis is None else np.moveaxis(numbers, axis, -1)
        total = _added(numbers, kind)
        if reduce.keep_dims:
            total = (
                total.reshape((1,) * tile.handle.data.ndim) if axis is None else np.expand_dims(total, axis)
            )
        bits = bf16_of(total) if kind == "bf16" else total.astype(np.float16)
        return reduce.to_tensor(bits if bits.ndim else bits.item(), tile.dtype)

    return sum_


def _cumsum(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a running sum of 16-bit numbers as a card makes it: by pairs, and not one after the other."""

    def cumsum(scan: Any, tile: Any) -> Any:
        kind = tile.handle.get_element_ty().name
        if kind not in ("bf16", "fp16"):
            return original(scan, tile)
        sums = np.cumsum(_as_float32(tile.handle.data, kind), axis=scan.axis, dtype=np.float32)
        return [scan.to_tensor(bf16_of(sums) if kind == "bf16" else sums.astype(np.float16), tile.dtype)]

    return cumsum


def _reduce(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction by a kernel's own function: neighbours are combined in pairs, as long as there are two.

    The interpreter by itself goes from number to number, which is slow, and hides what a card shows: a function for
    which it matters how numbers are grouped.
    """

    def generic_reduce(reduce: Any, tiles: Any) -> Any:
        axis, shape = reduce.axis, tiles[0].handle.data.shape
        parts = [tile.handle.data for tile in tiles]
        parts = [data.reshape(-1) if axis is None else np.moveaxis(data, axis, -1) for data in parts]
        try:
            while parts[0].shape[-1] > 1:
                parts = _combined(
                    reduce, tiles, [data[..., 0::2] for data in parts], [data[..., 1::2] for data in parts]
                )
        except ValueError:  # a function that asks whether a number is so has no answer for many
            return original(reduce, tiles)
        found = [data[..., 0] for data in parts]
        if reduce.keep_dims:
            found = [
                data.reshape((1,) * len(shape)) if axis is None else np.expand_dims(data, axis)
                for data in found
            ]
        return [
            reduce.to_tensor(data if data.ndim else data.item(), t.dtype)
            for data, t in zip(found, tiles, strict=True)
        ]

    return generic_reduce


def _scan(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a scan by a kernel's own function: each number meets those one place before it, then two, four, eight."""

    def generic_scan(scan: Any, tiles: Any) -> Any:
        parts = [np.moveaxis(tile.handle.data, scan.axis, -1) for tile in tiles]
        step = 1
        try:
            while step < parts[0].shape[-1]:
                of_step = _combined(
                    scan, tiles, [data[..., :-step] for data in parts], [data[..., step:] for data in parts]
                )
                parts = [
                    np.concatenate((data[..., :step], more), axis=-1)
                    for data, more in zip(parts, of_step, strict=True)
                ]
                step *= 2
        except ValueError:
            return original(scan, tiles)
        found = [np.moveaxis(data, -1, scan.axis) for data in parts]
        return [scan.to_tensor(data, tile.dtype) for data, tile in zip(found, tiles, strict=True)]

    return generic_scan


def _combined(
    ops: Any, tiles: Sequence[Any], left: Sequence[np.ndarray], right: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return what a kernel's function makes of numbers and of those behind them, many at once."""
    both = [
        [ops.to_tensor(data, tile.dtype) for data, tile in zip(side, tiles, strict=True)]
        for side in (left, right)
    ]
    told = ops.combine_fn.fn(*both[0], *both[1])
    outs = told if isinstance(told, tuple) else (told,)
    return [
        np.broadcast_to(getattr(getattr(out, "handle", None), "data", out), data.shape).astype(data.dtype)
        for out, data in zip(outs, left, strict=True)
    ]


def _added(numbers: np.ndarray, kind: str) -> np.ndarray:
    """Sum along the last axis, whose length is a power of two."""

    def rounded(sums: np.ndarray) -> np.ndarray:
        return float_of_bf16(bf16_of(sums)) if kind == "bf16" else sums.astype(np.float16).astype(np.float32)

    of_threads = numbers.reshape(*numbers.shape[:-1], -1, min(IN_ONE_THREAD, numbers.shape[-1]))
    sums = of_threads[..., 0]
    for place in range(1, of_threads.shape[-1]):
        sums = rounded(sums + of_threads[..., place])
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = rounded(sums[..., :half] + sums[..., half:])
    return sums[..., 0]
