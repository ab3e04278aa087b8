"""Is the answer right? No number is taken before this file says yes.

Every check draws fresh inputs, poisons the memory the output is made in, compares every element with the
float64 truth, looks whether the inputs are still what they were, fills the same tensors with other values and
asks again, and on a GPU asks once more on a stream that is held back: work that runs elsewhere is then too early.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from course_kernels.measure.competitor import Competitor, competitor_of
from course_kernels.measure.refused import Refused
from course_kernels.problem import Problem, Workload

# Elements compared at once: the float64 copies of a slice stay small beside the tensors themselves.
SLICE = 2**26

# Fills of a large buffer that hold a stream back, tried in turn until the host is done before they are. A GPU queues
# about a thousand launches; past that the host would wait for the hold itself.
HOLDS = (100, 900)
HOLD_CACHES = (
    16  # size of that buffer, in units of the L2 cache: a fill then takes a few tenths of a millisecond
)


class WrongResult(Refused):
    """A kernel's answer, or its behaviour, is not what its problem asks for."""


@dataclass(frozen=True)
class Truth:
    """Inputs and what must come out for them; the tensors are never handed to a kernel."""

    inputs: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """One problem on one workload, with two sets of inputs and their truths."""

    problem: Problem
    workload: Workload
    options: Mapping[str, Any]
    first: Truth
    second: Truth
    working: tuple[torch.Tensor, ...]  # what kernels are called with; refilled in place before every call

    @property
    def allowed(self) -> float:
        """The largest error a right answer can have."""
        return self.problem.max_error(self.workload)


def checked_error(
    competitor: Any, workload: Workload, generator: int | torch.Generator = 0, device: str = "cuda"
) -> float:
    """Check one competitor on one workload.

    Args:
        competitor: a kernel module, a function of a problem folder, or a `Competitor`.
        workload: what to compute.
        generator: where the inputs come from: a torch generator on `device`, or a seed for one.
        device: "cuda" or "cpu"; the check for work on another stream needs "cuda".
    Returns:
        The worst element's error, over all calls; never above the problem's `max_error`.
    Raises:
        WrongResult: one line: which kernel, on what, which property failed, and where.
    """
    competitor = competitor_of(competitor)
    return checked_errors({"it": competitor}, workload, generator, device)["it"]


def checked_errors(
    competitors: Mapping[str, Competitor],
    workload: Workload,
    generator: int | torch.Generator = 0,
    device: str = "cuda",
) -> dict[str, float]:
    """Check several competitors for one problem; the truth is computed once for all of them.

    Raises:
        WrongResult: as `checked_error`, for the first competitor that fails.
    """
    problems = {id(c.problem): c.problem for c in competitors.values()}
    if len(problems) != 1:
        names = ", ".join(sorted(p.name for p in problems.values()))
        raise ValueError(f"competitors: expected one problem for all, got {names or 'no competitor'}")
    problem = next(iter(problems.values()))
    if isinstance(generator, int):
        generator = torch.Generator(device=device).manual_seed(generator)
    with torch.no_grad():
        case = _make_case(problem, workload, generator, device)
        return {name: _check(competitor, case) for name, competitor in competitors.items()}


def worst_element(out: torch.Tensor, truth: torch.Tensor, *, rows_apart: bool = False) -> tuple[float, int]:
    """The worst element's error, as `problem.worst_error` defines it, and that element's flat index.

    An element that is NaN where the truth is not counts as infinitely wrong.
    """
    worst, where, start = -1.0, 0, 0
    for errors in _element_errors(out, truth, rows_apart):
        value, index = errors.max(dim=0)
        if float(value) > worst:
            worst, where = float(value), start + int(index)
        start += errors.numel()
    return max(worst, 0.0), where


def _element_errors(out: torch.Tensor, truth: torch.Tensor, rows_apart: bool) -> Iterator[torch.Tensor]:
    """|out - truth| / (|truth| + rms(truth)) in float64, a slice of the flattened tensors at a time."""
    if not truth.numel():
        return
    width = truth.shape[-1] if rows_apart else 1
    step = max(SLICE // width, 1) * width  # whole rows
    out, truth = out.reshape(-1), truth.reshape(-1)
    squares = sum(float(part.double().square().sum()) for part in truth.split(step))
    rms: Any = math.sqrt(squares / truth.numel())
    for got, expected in zip(out.split(step), truth.split(step), strict=True):
        got, expected = got.double(), expected.double()
        if rows_apart:
            of_row = expected.view(-1, width).square().mean(dim=-1, keepdim=True).sqrt()
            rms = of_row.expand(-1, width).reshape(-1)
        errors = (got - expected).abs_().div_(expected.abs() + rms)
        errors.masked_fill_(got == expected, 0.0)  # 0 / 0, where truth and answer are all zeros
        yield errors.nan_to_num_(nan=math.inf, posinf=math.inf)


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Let `torch.empty` and its kin return NaN (whole numbers: the largest), so what is never written shows."""
    was_on = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    was_filling = torch.utils.deterministic.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operations that have no deterministic form
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(was_on, warn_only=was_warn_only)
            torch.utils.deterministic.fill_uninitialized_memory = was_filling


# --- one case -------------------------------------------------------------------------------


def _make_case(problem: Problem, workload: Workload, generator: torch.Generator, device: str) -> Case:
    options = problem.options(workload)

    def truth_of(inputs: tuple[torch.Tensor, ...]) -> Truth:
        outputs = _as_tuple(problem.reference(*inputs, **options))
        if not all(bool(torch.isfinite(out).all()) for out in outputs):
            raise ValueError(
                f"{problem.name} on {workload.label}: the reference is not finite; mend the problem"
            )
        return Truth(inputs, outputs)

    # The tensors make_inputs returned are the ones kernels get: their layout is what is timed later.
    working = tuple(problem.make_inputs(workload, generator, device))
    first = truth_of(tuple(tensor.clone() for tensor in working))
    second = truth_of(tuple(problem.make_inputs(workload, generator, device)))
    return Case(problem, workload, options, first, second, working)


def _check(competitor: Competitor, case: Case) -> float:
    _fill(case.working, case.first)
    with poisoned_memory():
        earlier = _call(competitor, case)
    if case.working[0].is_cuda and not _error(case, earlier, case.first)[0] <= case.allowed:
        _blame_stream(competitor, case, case.first)
    errors = [_judge(competitor, case, earlier, case.first)]

    # Again, the same tensors with other values in them, in the mode that is timed. The memory that this call's
    # output will most likely get holds NaN: PyTorch hands a freed block out again.
    _fill(case.working, case.second)
    for out in earlier:
        if out.dtype.is_floating_point:
            torch.full_like(out, math.nan)
    later = _call(competitor, case)
    if not _error(case, later, case.second)[0] <= case.allowed:
        if case.working[0].is_cuda:
            _blame_stream(competitor, case, case.second)
        if _error(case, later, case.first)[0] <= case.allowed:
            _refuse(competitor, case, "cached result: called again with new values, it gave the old answer")
    errors.append(_judge(competitor, case, later, case.second))
    del earlier, later

    if case.working[0].is_cuda:
        _check_stream(competitor, case)
    return max(errors)


def _call(competitor: Competitor, case: Case) -> tuple[torch.Tensor, ...]:
    result = competitor.function(*case.working, **case.options)
    outputs = _as_tuple(result)
    expected = case.first.outputs
    if len(outputs) != len(expected) or not all(isinstance(out, torch.Tensor) for out in outputs):
        given = ", ".join(type(out).__name__ for out in outputs)
        _refuse(competitor, case, f"wrong result: expected {len(expected)} tensor(s), got ({given})")
    for number, (out, truth) in enumerate(zip(outputs, expected, strict=True)):
        name = _output_name(number, outputs)
        if out.shape != truth.shape:
            _refuse(competitor, case, f"wrong shape: {name}: expected {_shape(truth)}, got {_shape(out)}")
        # Further outputs are by-products, such as a log-sum-exp, and may be kept more exactly.
        dtype = case.workload.torch_dtype
        if out.dtype != dtype and (number == 0 or not out.dtype.is_floating_point):
            _refuse(competitor, case, f"wrong dtype: {name}: expected {dtype}, got {out.dtype}")
        if out.device != case.working[0].device:
            _refuse(
                competitor, case, f"wrong device: {name}: expected {case.working[0].device}, got {out.device}"
            )
        for index, tensor in enumerate(case.working):
            if out.numel() and _memory(out) == _memory(tensor):
                _refuse(
                    competitor, case, f"{name} shares memory with input {_input_name(case.problem, index)}"
                )
    return outputs


def _judge(competitor: Competitor, case: Case, outputs: Sequence[torch.Tensor], truth: Truth) -> float:
    for index, (now, before) in enumerate(zip(case.working, truth.inputs, strict=True)):
        at = _first_difference(now, before)
        if at is not None:
            _refuse(
                competitor,
                case,
                f"input modified: {_input_name(case.problem, index)}{_at(before, at)} was "
                f"{_value(before, at)} before the call and is {_value(now, at)} after it",
            )
    worst, number, at = _error(case, outputs, truth)
    if not worst <= case.allowed:
        _refuse(competitor, case, _why_wrong(case, outputs, truth, number, at, worst))
    return worst


def _error(case: Case, outputs: Sequence[torch.Tensor], truth: Truth) -> tuple[float, int, int]:
    """Worst error over all outputs, the number of that output, the flat index of the element."""
    found = [
        (*worst_element(out, expected, rows_apart=case.problem.rows_apart), number)
        for number, (out, expected) in enumerate(zip(outputs, truth.outputs, strict=True))
    ]
    worst, at, number = max(found, key=lambda entry: entry[0])
    return worst, number, at


def _why_wrong(
    case: Case, outputs: Sequence[torch.Tensor], truth: Truth, number: int, at: int, worst: float
) -> str:
    out, expected = outputs[number], truth.outputs[number]
    name = _output_name(number, outputs)
    place = f"{name}{_at(expected, at)}: expected {_value(expected, at)}, got {_value(out, at)}"
    holes = sum(int(part.double().isnan().sum()) for part in out.reshape(-1).split(SLICE))
    if holes == out.numel():
        return f"all NaN: {place}"
    if holes:
        return f"not written, or NaN: {holes} of {out.numel()} elements, {place}"
    errors = _element_errors(out, expected, case.problem.rows_apart)
    wrong = sum(int((part > case.allowed).sum()) for part in errors)
    return (
        f"wrong: {wrong} of {out.numel()} elements, the worst is off by {worst:.2g} "
        f"where {case.allowed:.2g} is allowed: {place}"
    )


# --- work on another stream --------------------------------------------------------------------


def _check_stream(competitor: Competitor, case: Case) -> None:
    """Refuse work that the current stream does not wait for, or that does not wait for the current stream.

    The call goes to a stream that is held back by work of our own. Behind it, on that stream, the inputs get
    their new values and the output's memory its poison; right behind the call a copy of the output is taken.
    Work on another stream starts too early, and reads the old inputs; or ends too late for the copy. The copy
    goes before other work (the stream has the highest priority) and begins at the end of the output, which a
    kernel that started at the same moment writes last.
    """
    device = case.working[0].device
    stream = torch.cuda.Stream(device, priority=-100)  # clamped to the highest; new, so that nobody shares it
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    ballast = torch.empty(HOLD_CACHES * l2_bytes, dtype=torch.uint8, device=device)
    for fills in HOLDS:
        _fill(case.working, case.first)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            # Once without a hold: libraries and the allocator set themselves up on a new stream, and may wait for
            # it. Memory that is handed out again then holds the answer to the old values, never to the new ones.
            _call(competitor, case)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(fills):
                ballast.fill_(1)
            _fill(case.working, case.second)
            released = torch.cuda.Event()
            released.record()
            with poisoned_memory():
                outputs = _call(competitor, case)
            copies = [out.reshape(-1).flip(0) for out in outputs]
            held = not released.query()
        torch.cuda.synchronize()
        # Not held: the host was slower than the hold. A function that waits for the GPU itself is never held;
        # it hides nothing from the clock either.
        if held:
            break
    copies = [copy.flip(0).view(out.shape) for copy, out in zip(copies, outputs, strict=True)]
    if not _error(case, copies, case.second)[0] <= case.allowed:
        _blame_stream(competitor, case, case.second)
        _judge(competitor, case, copies, case.second)


def _blame_stream(competitor: Competitor, case: Case, truth: Truth) -> None:
    """After a wrong answer: refuse the stream if the answer is right when the host waits for the whole GPU."""
    _fill(case.working, truth)
    torch.cuda.synchronize()
    with poisoned_memory():
        outputs = _call(competitor, case)
    torch.cuda.synchronize()
    if _error(case, outputs, truth)[0] <= case.allowed:
        _refuse(
            competitor,
            case,
            "work on another stream: right when the host waits for the whole GPU, wrong in the order of the "
            "current stream, which the clock times",
        )
    _fill(case.working, truth)  # what made the answer wrong is told next, about these inputs


# --- small things -------------------------------------------------------------------------------


def _refuse(competitor: Competitor, case: Case, why: str) -> NoReturn:
    raise WrongResult(f"{competitor.kernel} on {case.workload.label}: {why}")


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _fill(working: Sequence[torch.Tensor], truth: Truth) -> None:
    for tensor, values in zip(working, truth.inputs, strict=True):
        tensor.copy_(values)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _first_difference(now: torch.Tensor, before: torch.Tensor) -> int | None:
    """Flat index of the first element that differs in any bit; None when there is none."""
    start = 0
    for a, b in zip(now.reshape(-1).split(SLICE), before.reshape(-1).split(SLICE), strict=True):
        bits_a, bits_b = a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8)
        if not torch.equal(bits_a, bits_b):
            byte = int((bits_a != bits_b).to(torch.uint8).argmax())
            return start + byte // a.element_size()
        start += a.numel()
    return None


def _value(tensor: torch.Tensor, at: int) -> str:
    return f"{tensor.reshape(-1)[at].item():.6g}"


def _at(tensor: torch.Tensor, at: int) -> str:
    indices = []
    for size in reversed(tensor.shape):
        indices.append(at % size)
        at //= size
    return f"[{', '.join(str(index) for index in reversed(indices))}]"


def _shape(tensor: torch.Tensor) -> str:
    return f"({', '.join(str(size) for size in tensor.shape)})"


def _output_name(number: int, outputs: Sequence[Any]) -> str:
    return "output" if len(outputs) == 1 else f"output {number}"


def _input_name(problem: Problem, index: int) -> str:
    names = list(inspect.signature(problem.reference).parameters)
    return names[index] if index < len(names) else str(index)
