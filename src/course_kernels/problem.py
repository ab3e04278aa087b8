"""A problem: the answer, the least possible cost, and the workloads it is checked and timed on.

A folder of `course_kernels` is one problem. Its `problem.py` exports `PROBLEM`; every kernel beside it
exports one function with the problem's name. Importing this needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# The arithmetic peaks of a data sheet; `Problem.math` says which one a workload counts against.
MATHS = ("bf16", "fp16", "fp32", "tf32", "fp8")

# Spelled as torch spells them, with the bytes of one element.
BYTES_OF = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int8": 1,
}


@dataclass(frozen=True)
class Workload:
    """One size of one problem: an element type and named dimensions, for example `w.N` or `w["causal"]`.

    Frozen and hashable. Build one with `Workload.of("float32", M=4096, N=8192)`.
    """

    dtype: str
    items: tuple[tuple[str, int | bool], ...]

    @classmethod
    def of(cls, dtype: str, **dims: int | bool) -> Workload:
        """Return a workload of `dtype` (a torch name, such as "bfloat16") with dimensions in the order given.

        A size begins with a capital letter and is a whole number; a flag with a small one and is a bool.

        Raises:
            TypeError: an unknown type, a size that is no whole number, or a flag that is no bool.
            ValueError: a size below 1.
        """
        if dtype not in BYTES_OF:
            raise TypeError(f"dtype: expected one of {', '.join(BYTES_OF)}, got {dtype!r}")
        for name, value in dims.items():
            if name[0].islower():
                if not isinstance(value, bool):
                    raise TypeError(f"{name}: expected True or False, got {value!r}")
            elif isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: expected a whole number, got {value!r}")
            elif value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        return cls(dtype, tuple(dims.items()))

    @property
    def dims(self) -> dict[str, int | bool]:
        """The dimensions by name, in the order they were given."""
        return dict(self.items)

    def __getitem__(self, name: str) -> Any:
        """Return the dimension `name`; a KeyError names the ones there are."""
        if name not in self.dims:
            raise KeyError(f"no dimension {name} in {self.label}; there are {', '.join(self.dims)}")
        return self.dims[name]

    def __getattr__(self, name: str) -> Any:
        # Reached only for names that are neither fields nor methods.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    @property
    def label(self) -> str:
        """A name for people and files: "B1-H16-N16384-D128-causal-bfloat16"; a False flag is left out."""
        parts = [f"{name}{value}" for name, value in self.items if not isinstance(value, bool)]
        parts += [name for name, value in self.items if value is True]
        return "-".join([*parts, self.dtype])

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return BYTES_OF[self.dtype]

    @property
    def torch_dtype(self) -> torch.dtype:
        """The torch type; imports torch."""
        import torch

        return getattr(torch, self.dtype)

    def as_json(self) -> dict[str, Any]:
        """Plain data: {"dtype": "float32", "dims": {"N": 1024}}."""
        return {"dtype": self.dtype, "dims": self.dims}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workload:
        """Return the inverse of `as_json`."""
        return cls.of(data["dtype"], **data["dims"])

    def as_text(self) -> str:
        """Return one line for a command: "dtype=bfloat16,N=16384,causal=1"; `parse` reads it back."""
        return ",".join([f"dtype={self.dtype}", *(f"{name}={int(value)}" for name, value in self.items)])

    @classmethod
    def parse(cls, text: str) -> Workload:
        """Read "dtype=bfloat16,B=1,N=16384,causal=1"; a flag is 1 or 0, or true or false.

        Raises:
            TypeError: an unknown type, or a value that is no whole number.
            ValueError: a part without `=`, a name given twice, no dtype, or a size below 1.
        """
        found: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = part.strip().partition("=")
            if not equals or not name:
                raise ValueError(f"workload {text!r}: expected name=value, got {part.strip()!r}")
            if name in found:
                raise ValueError(f"workload {text!r}: {name} is given twice")
            found[name] = value
        if "dtype" not in found:
            raise ValueError(f"workload {text!r}: expected a dtype, such as dtype=float32")
        dtype = found.pop("dtype")
        return cls.of(dtype, **{name: _dimension(name, value) for name, value in found.items()})


def _dimension(name: str, text: str) -> int | bool:
    if name[0].islower():
        flags = {"1": True, "true": True, "0": False, "false": False}
        if text.lower() not in flags:
            raise TypeError(f"{name}: expected 1 or 0, got {text!r}")
        return flags[text.lower()]
    try:
        return int(text)
    except ValueError:
        raise TypeError(f"{name}: expected a whole number, got {text!r}") from None


def _no_options(w: Workload) -> dict[str, Any]:
    return {}


# Values that kernels lose: by clamping, by a maximum that skips NaN, by a zero that is multiplied in, by a narrow type.
NAN, INF = float("nan"), float("inf")
LARGE = 1e30  # a type that ends sooner gets half of its own range
HARD = (0.0, -0.0, NAN, INF, -INF, LARGE, -LARGE)


def _hard_in_the_first(w: Workload) -> tuple[Mapping[int, tuple[float, ...]], ...]:
    return ({0: HARD},)


@dataclass(frozen=True)
class Problem:
    """A problem: what must be computed, what it costs at least, and how exact the answer must be.

    Attributes:
        name: the folder's name, and the name of the function every kernel of it exports.
        formula: the mathematics, as text.
        make_inputs: (workload, generator, device) -> the tensors a kernel is called with.
        reference: (*inputs, **options) -> the truth, in float64: a tensor, or a tuple of them.
        reads_bytes, writes_bytes: the least a kernel must read from, and write to, memory.
        flops: floating-point operations the problem needs, however it is computed.
        math: which arithmetic peak the work counts against, one of `MATHS`.
        max_error: the largest `worst_error` a right answer can have.
        check_on: workloads every kernel must get right, the awkward sizes among them.
        time_on: workloads worth timing; they fill a large GPU.
        options: keyword arguments for the kernel and the reference.
        rows_apart: every row of the answer (its last dimension) has a size of its own, and an error is held
            against that; otherwise against the root mean square of the whole answer.
        hard: sets of inputs with hard values planted: for each set, by the number of an input, the values that are
            planted in it, each at one place drawn at random. Where the truth is then NaN or infinite, so must the
            answer be. A value that is left out is outside of the contract; the problem says why.
        layouts: orders of the answer's dimensions, slowest first, in which it may lie in memory besides row-major.
    """

    name: str
    formula: str
    make_inputs: Callable[..., tuple[Any, ...]]
    reference: Callable[..., Any]
    reads_bytes: Callable[[Workload], int]
    writes_bytes: Callable[[Workload], int]
    flops: Callable[[Workload], int]
    math: Callable[[Workload], str]
    max_error: Callable[[Workload], float]
    check_on: tuple[Workload, ...]
    time_on: tuple[Workload, ...]
    options: Callable[[Workload], dict[str, Any]] = _no_options
    rows_apart: bool = False
    hard: Callable[[Workload], tuple[Mapping[int, tuple[float, ...]], ...]] = _hard_in_the_first
    layouts: tuple[tuple[int, ...], ...] = ()


def worst_error(
    out: torch.Tensor | Iterable[torch.Tensor],
    truth: torch.Tensor | Iterable[torch.Tensor],
    *,
    rows_apart: bool = False,
) -> float:
    """Return the error of the worst element: max of |out - truth| / (|truth| + rms(truth)).

    A norm over all elements lets one wrong element in a million through; this does not. The root mean square
    keeps elements near zero from counting as wholly wrong. NaN anywhere gives NaN, so a caller must test
    `not error <= allowed`: every comparison with NaN is false. A tuple gives its worst member. With `rows_apart`
    the root mean square is that of the element's own row, the last dimension.

    Raises:
        ValueError: the shapes, or the number of results, differ.
    """
    import torch

    if not isinstance(out, torch.Tensor) or not isinstance(truth, torch.Tensor):
        outs, truths = [list(t) if not isinstance(t, torch.Tensor) else [t] for t in (out, truth)]
        if len(outs) != len(truths):
            raise ValueError(f"result: expected {len(truths)} tensors, got {len(outs)}")
        errors = [worst_error(o, t, rows_apart=rows_apart) for o, t in zip(outs, truths, strict=True)]
        return float("nan") if any(e != e for e in errors) else max(errors, default=0.0)
    if out.shape != truth.shape:
        raise ValueError(f"result: expected shape {tuple(truth.shape)}, got {tuple(out.shape)}")
    if out.numel() == 0:
        return 0.0
    out, truth = out.double(), truth.double()
    squares = truth.square()
    rms = (squares.mean(dim=-1, keepdim=True) if rows_apart else squares.mean()).sqrt()
    # All-zero truth: any error at all is infinite, and none is none.
    error = (out - truth).abs() / (truth.abs() + rms)
    error = torch.where((out == truth) & (rms == 0), torch.zeros_like(error), error)
    return float(error.max())  # max carries NaN through
