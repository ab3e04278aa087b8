"""The check of an answer: no number is taken before it passes, and none is kept unless it passes again.

Every check draws fresh inputs, poisons the memory the output is made in, compares every element with the
float64 truth, looks whether the inputs are still what they were, fills the same tensors with other values and
asks again, on a GPU once more on a stream that is held back: work that runs elsewhere is then too early; and asks
with NaN, infinities and zeros among the inputs. After the timing the last answers are judged as well.

The truth is worked out after the calls it judges, never before: nothing that could be read while a kernel runs
holds it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from course_kernels.measure import messages
from course_kernels.measure.competitor import Competitor, competitor_of
from course_kernels.measure.errors import Refused
from course_kernels.problem import Problem, Workload

# Elements compared at once: the float64 copies of a slice stay small beside the tensors themselves.
SLICE = 2**26

# Elements of an earlier truth that are kept, to know an old answer again.
REMEMBERED = 2**16

# Fills of a large buffer that hold a stream back, tried in turn until the host is done before they are. A GPU queues
# about a thousand launches; past that the host would wait for the hold itself.
HOLDS = (20, 100, 900)
HOLD_CACHES = 16  # size of that buffer, in units of the L2 cache: one fill holds a stream back for a while

# Whole numbers as wide as an element, for writing bits that some types cannot be indexed with.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Tensors = tuple[torch.Tensor, ...]


class WrongResult(Refused):
    """A kernel's answer, or its behaviour, is not what its problem asks for.

    Attributes:
        why: the property that failed and where, without the kernel's name, the workload and the seed.
    """

    def __init__(self, line: str, why: str = "") -> None:
        super().__init__(line)
        self.why = why or line


@dataclass(frozen=True)
class Asked:
    """One call's return value, and its effect on the inputs; not yet judged."""

    result: Any
    touched: str  # empty where the inputs are as they were


class _Wrong(Exception):
    """A wrong answer, on its way to where no frame holds the truth any more.

    Attributes:
        name, why: which competitor, and what it is told.
        asked_with: the tensors it was called with and their values, where it may be asked again.
    """

    def __init__(self, name: str, why: str, asked_with: tuple[Tensors, Tensors] | None) -> None:
        super().__init__(why)
        self.name, self.why, self.asked_with = name, why, asked_with


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
        WrongResult: one line: which kernel, on what, which property failed, where, and the seed.
    """
    competitor = competitor_of(competitor)
    return checked_errors({"it": competitor}, workload, generator, device)["it"]


def checked_errors(
    competitors: Mapping[str, Competitor],
    workload: Workload,
    generator: int | torch.Generator = 0,
    device: str = "cuda",
) -> dict[str, float]:
    """Check several competitors for one problem; every truth is computed once for all of them.

    Raises:
        WrongResult: as `checked_error`, for the first competitor that fails.
    """
    return Check(competitors, workload, generator, device).before()


class Check:
    """The check of a field of competitors, before the timing and after it.

    `before` judges all of them. Then `fresh_inputs` gives what to time them on, `refill` writes other values into
    the same tensors, and `after` judges what each returned at its last timed call.

    Attributes:
        problem, workload: what must be computed.
        seed: where all random numbers of the check, and of the timed inputs, come from.
    """

    def __init__(
        self,
        competitors: Mapping[str, Competitor],
        workload: Workload,
        seed: int | torch.Generator = 0,
        device: str = "cuda",
    ) -> None:
        """
        Args:
            competitors: by any names; all of one problem.
            workload: what to compute.
            seed: a whole number, or a torch generator on `device`.
            device: "cuda" or "cpu".
        Raises:
            ValueError: no competitor, or competitors of several problems.
        """
        problems = {id(c.problem): c.problem for c in competitors.values()}
        if len(problems) != 1:
            names = ", ".join(sorted(p.name for p in problems.values()))
            raise ValueError(f"competitors: expected one problem for all, got {names or 'no competitor'}")
        if isinstance(seed, int):
            seed = torch.Generator(device=device).manual_seed(seed)
        self.competitors = dict(competitors)
        self.problem: Problem = next(iter(problems.values()))
        self.workload = workload
        self.seed = seed.initial_seed()
        self._generator, self._device = seed, device
        self._on_gpu = torch.device(device).type == "cuda"
        self._options = self.problem.options(workload)
        self._allowed = self.problem.max_error(workload)
        self._shapes: list[torch.Size] = []  # of the outputs; known once the first truth is
        # The generator's state when the timed inputs got their values.
        self._drawn: torch.Tensor | None = None
        self._head = ""  # what a refusal begins with

    # --- before the timing ------------------------------------------------------------------------

    def before(self) -> dict[str, float]:
        """Check every competitor.

        Returns:
            For every name the worst element's error, over all calls.
        Raises:
            WrongResult: for the first competitor that fails.
            ValueError: the problem's reference is not finite for inputs that are.
        """
        errors: dict[str, float] = {}
        found = None
        with torch.no_grad():
            try:
                errors = self._all_times()
            except _Wrong as wrong:
                found = wrong.name, wrong.why, wrong.asked_with
            if found:
                # The frames that held a truth are gone: a kernel that is asked again finds none.
                name, why, asked_with = found
                if asked_with and self._on_gpu:
                    self._blame_stream(name, *asked_with)
                self._refuse(name, why)
        return errors

    def _all_times(self) -> dict[str, float]:
        """Return every question before the timing, one after the other."""
        # The tensors make_inputs returned are the ones kernels get: their layout is what is timed later.
        working = self._draw()
        first = tuple(tensor.clone() for tensor in working)
        errors, earlier, old, usual = self._first_time(working, first)
        for more in (
            self._second_time(working, first, earlier, old),
            *(self._hard(working, values, usual) for values in self.problem.hard(self.workload)),
        ):
            errors = {name: max(error, more[name]) for name, error in errors.items()}
        return errors

    def _first_time(
        self, working: Tensors, values: Tensors
    ) -> tuple[dict[str, float], dict[str, Tensors], list[torch.Tensor], list[float]]:
        """Errors and outputs of a first call into poisoned memory; a part of each truth; the size of each truth."""
        asked = {name: self._ask(name, working, values, poisoned=True) for name in self.competitors}
        truth = self._truth(values)
        self._shapes = [out.shape for out in truth]
        outputs = {name: self._outputs(name, it.result, working) for name, it in asked.items()}
        errors = {
            name: self._judge(name, outputs[name], it.touched, truth, (working, values))
            for name, it in asked.items()
        }
        return errors, outputs, [_sample(out) for out in truth], [_rms(out) for out in truth]

    def _second_time(
        self, working: Tensors, first: Tensors, earlier: dict[str, Tensors], old: list[torch.Tensor]
    ) -> dict[str, float]:
        """Return the same tensors with other values in them, in the mode that is timed, and on a stream held back."""
        values = self._draw()
        asked, outputs, copies = {}, {}, {}
        for name in self.competitors:
            # The memory that this call's output will most likely get holds NaN: PyTorch hands a freed block out again.
            for out in earlier[name]:
                if out.dtype.is_floating_point:
                    torch.full_like(out, math.nan)
            asked[name] = self._ask(name, working, values)
            outputs[name] = self._outputs(name, asked[name].result, working)
        # The answers of the first time are still alive: what lies in their memory lies in somebody's way.
        shared = {name: _share_memory(outputs[name], earlier[name]) for name in self.competitors}
        earlier.clear()
        if self._on_gpu:
            copies = {name: self._behind_a_hold(name, working, first, values) for name in self.competitors}
        truth = self._truth(values)
        errors = {}
        for name, it in asked.items():
            if not self._error(outputs[name], truth)[0] <= self._allowed and self._is_old(outputs[name], old):
                why = "cached result: called again with new values, it gave the old answer"
                raise _Wrong(name, why, (working, values))
            errors[name] = self._judge(name, outputs[name], it.touched, truth, (working, values))
            if shared[name]:
                self._refuse(
                    name,
                    "same memory twice: the second output lies where the first one still lies, and overwrites it; "
                    "make a new one in every call",
                )
            if name in copies:
                error = self._judge(name, copies[name], "", truth, (working, values))
                errors[name] = max(errors[name], error)
        return errors

    def _hard(
        self, working: Tensors, planted: Mapping[int, Sequence[float]], usual: list[float]
    ) -> dict[str, float]:
        """Once more, with values among the inputs that are easily lost: NaN, infinities, zeros, large ones."""
        values, held = self._plant(self._draw(), planted)
        if not held:
            return dict.fromkeys(self.competitors, 0.0)
        asked = {name: self._ask(name, working, values) for name in self.competitors}
        outputs = {name: self._outputs(name, it.result, working) for name, it in asked.items()}
        truth = self._truth(values, finite=False)
        where = f", {messages.planted(self.problem, held)}"
        return {
            name: self._judge(name, outputs[name], it.touched, truth, usual=usual, where=where)
            for name, it in asked.items()
        }

    def _plant(
        self, inputs: Tensors, planted: Mapping[int, Sequence[float]]
    ) -> tuple[Tensors, dict[int, list[float]]]:
        """Make inputs with values planted at places drawn at random, each at one; and the values there was room for."""
        found, held = list(inputs), {}
        for index, wanted in planted.items():
            tensor = inputs[index].contiguous()
            values = _held_by(tensor.dtype, wanted)
            order = torch.randperm(
                len(values), generator=self._generator, device=self._generator.device
            ).tolist()
            values = [values[number] for number in order][: tensor.numel()]
            if not values:
                continue
            # One place in each of as many equal parts: no two values meet.
            part = tensor.numel() // len(values)
            within = torch.randint(
                part, (len(values),), generator=self._generator, device=self._generator.device
            )
            places = within + part * torch.arange(len(values), device=within.device)
            bits = (
                torch.tensor(values, dtype=torch.float64).to(tensor.dtype).view(BITS[tensor.element_size()])
            )
            tensor.view(-1).view(bits.dtype)[places.to(tensor.device)] = bits.to(tensor.device)
            found[index], held[index] = tensor, values
        return tuple(found), held

    # --- the timing, and after it -----------------------------------------------------------------

    def fresh_inputs(self) -> tuple[Tensors, dict[str, Any]]:
        """Make new inputs in new memory and the options: what `function(*inputs, **options)` is timed with."""
        self._drawn = self._generator.get_state()
        return self._draw(), dict(self._options)

    def refill(self, inputs: Sequence[torch.Tensor]) -> None:
        """Write other values into the inputs, in place, on the current stream; no version counter tells of it."""
        self._drawn = self._generator.get_state()
        _fill(inputs, self._draw())

    def after(self, outputs: Mapping[str, Any], inputs: Sequence[torch.Tensor]) -> dict[str, float]:
        """Judge the answers of the last timed calls.

        Args:
            outputs: for every name what its function returned, called with the inputs as they are now.
            inputs: those of the latest `fresh_inputs`, refilled or not.
        Returns:
            For every name the worst element's error.
        Raises:
            WrongResult: for the first competitor whose answer is no longer right.
            RuntimeError: called before `before` and `fresh_inputs`.
        """
        if self._drawn is None or not self._shapes:
            raise RuntimeError("after: nothing to judge; call before(), then fresh_inputs(), then time")
        self._head = "right before the timing, wrong after it: "
        with torch.no_grad():
            # Drawn again rather than kept: a copy of the inputs would lie in memory all through the timing.
            again = torch.Generator(device=self._generator.device)
            again.set_state(self._drawn)
            values = tuple(self.problem.make_inputs(self.workload, again, self._device))
            touched = self._touched(inputs, values)
            made = {name: self._outputs(name, outputs[name], inputs) for name in self.competitors}
            truth = self._truth(values)
            try:
                return {name: self._judge(name, made[name], touched, truth) for name in self.competitors}
            except _Wrong as wrong:
                self._refuse(wrong.name, wrong.why)

    # --- one call, and its judgement ----------------------------------------------------------------

    def _draw(self) -> Tensors:
        return tuple(self.problem.make_inputs(self.workload, self._generator, self._device))

    def _truth(self, inputs: Sequence[torch.Tensor], *, finite: bool = True) -> Tensors:
        outputs = _as_tuple(self.problem.reference(*inputs, **self._options))
        if finite and not all(bool(torch.isfinite(out).all()) for out in outputs):
            raise ValueError(
                f"{self.problem.name} on {self.workload.label}: the reference is not finite; mend the problem"
            )
        return outputs

    def _ask(self, name: str, working: Tensors, values: Tensors, *, poisoned: bool = False) -> Asked:
        _fill(working, values)
        with poisoned_memory() if poisoned else nullcontext():
            result = self._call(name, working)
        return Asked(result, self._touched(working, values))

    def _call(self, name: str, working: Tensors) -> Any:
        return self.competitors[name].function(*working, **self._options)

    def _touched(self, now: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> str:
        """Return the complaint about the first input that is not what it was; empty where all are."""
        for index, (tensor, values) in enumerate(zip(now, before, strict=True)):
            at = _first_difference(tensor, values)
            if at is not None:
                return messages.touched(self.problem, index, values, tensor, at)
        return ""

    def _outputs(self, name: str, result: Any, working: Sequence[torch.Tensor]) -> Tensors:
        """Return the tensors of a result, once they are of the kind that is asked for."""
        outputs = _as_tuple(result)
        if len(outputs) != len(self._shapes) or not all(isinstance(out, torch.Tensor) for out in outputs):
            given = ", ".join(type(out).__name__ for out in outputs)
            self._refuse(name, f"wrong result: expected {len(self._shapes)} tensor(s), got ({given})")
        for number, (out, shape) in enumerate(zip(outputs, self._shapes, strict=True)):
            which = messages.output_name(number, outputs)
            # A subclass may work when it is looked at, out of the clock's sight; so may these marks of a plain one.
            if type(out) is not torch.Tensor:
                self._refuse(
                    name, f"not a plain tensor: {which} is a {type(out).__name__}; return a torch.Tensor"
                )
            if out.layout != torch.strided or out.is_neg() or out.is_conj() or out._is_zerotensor():
                self._refuse(name, f"not a plain tensor: {which} is worked out only when it is read")
            if out.shape != shape:
                expected, got = messages.sizes(shape), messages.sizes(out.shape)
                self._refuse(name, f"wrong shape: {which}: expected {expected}, got {got}")
            # Further outputs are by-products, such as a log-sum-exp, and may be kept more exactly.
            dtype = self.workload.torch_dtype
            if out.dtype != dtype and (number == 0 or not out.dtype.is_floating_point):
                self._refuse(name, f"wrong dtype: {which}: expected {dtype}, got {out.dtype}")
            if out.device != working[0].device:
                self._refuse(name, f"wrong device: {which}: expected {working[0].device}, got {out.device}")
            for index, tensor in enumerate(working):
                if _share_memory((out,), (tensor,)):
                    given = messages.input_name(self.problem, index)
                    self._refuse(name, f"{which} shares memory with input {given}")
            if not _lies_as_asked(out, self.problem.layouts):
                got = messages.sizes(out.stride())
                due = messages.sizes(_row_major(shape))
                self._refuse(
                    name,
                    f"a view: {which}: expected strides {due}, got {got}; store the answer in that order, "
                    "whoever reads it next would pay for it",
                )
        return outputs

    def _judge(
        self,
        name: str,
        outputs: Tensors,
        touched: str,
        truth: Tensors,
        asked_with: tuple[Tensors, Tensors] | None = None,
        *,
        usual: list[float] | None = None,
        where: str = "",
    ) -> float:
        """Return the error of a right answer.

        Args:
            asked_with: the tensors the kernel was called with, and their values, where it may be asked again.
            usual: the size of an answer to usual inputs, for each output.
            where: said at the end of a complaint.
        Raises:
            _Wrong: the answer is not right, or the inputs are not what they were.
        """
        worst, number, at = self._error(outputs, truth, usual)
        right = worst <= self._allowed
        if touched:
            raise _Wrong(name, touched, None if right else asked_with)
        if not right:
            out, expected, size = outputs[number], truth[number], usual[number] if usual else None
            errors = _element_errors(out, expected, self.problem.rows_apart, size)
            why = messages.why_wrong(
                messages.output_name(number, outputs),
                out,
                expected,
                at,
                worst,
                self._allowed,
                sum(int((part > self._allowed).sum()) for part in errors),
                slice_elements=SLICE,
            )
            raise _Wrong(name, why + where, asked_with)
        return worst

    def _error(
        self, outputs: Tensors, truth: Tensors, usual: list[float] | None = None
    ) -> tuple[float, int, int]:
        """Worst error over all outputs, the number of that output, the flat index of the element."""
        sizes: Sequence[float | None] = usual if usual else [None] * len(truth)
        found = [
            (*worst_element(out, expected, rows_apart=self.problem.rows_apart, usual=size), number)
            for number, (out, expected, size) in enumerate(zip(outputs, truth, sizes, strict=True))
        ]
        worst, at, number = max(found, key=lambda entry: entry[0])
        return worst, number, at

    def _is_old(self, outputs: Tensors, old: list[torch.Tensor]) -> bool:
        """Return whether an answer is the one to earlier inputs, as far as that was kept."""
        pairs = zip(outputs, old, strict=True)
        return all(worst_element(_sample(out), part)[0] <= self._allowed for out, part in pairs)

    def _refuse(self, name: str, why: str) -> NoReturn:
        why = self._head + why
        line = f"{self.competitors[name].kernel} on {self.workload.label}: {why}; seed {self.seed}"
        raise WrongResult(line, why)

    # --- work on another stream ---------------------------------------------------------------------

    def _behind_a_hold(self, name: str, working: Tensors, first: Tensors, second: Tensors) -> Tensors:
        """Copy the outputs for `second`, where work elsewhere comes too early or too late.

        The call goes to a stream that is held back by work of our own. Behind it, on that stream, the inputs get
        their new values and the output's memory its poison; right behind the call a copy of the output is taken.
        Work on another stream starts too early, and reads the old inputs; or ends too late for the copy. The copy
        goes before other work (the stream has the highest priority) and begins at the end of the output, which a
        kernel that started at the same moment writes last.
        """
        device = working[0].device
        stream = torch.cuda.Stream(device, priority=-100)  # clamped to the highest; new, so nobody shares it
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        ballast = torch.empty(HOLD_CACHES * l2_bytes, dtype=torch.uint8, device=device)
        for fills in HOLDS:
            _fill(working, first)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                # Once without a hold: libraries and the allocator set themselves up on a new stream, and may wait
                # for it. Memory that is handed out again then holds the answer to the old values, never to the new.
                self._call(name, working)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                for _ in range(fills):
                    ballast.fill_(1)
                _fill(working, second)
                released = torch.cuda.Event()
                released.record()
                with poisoned_memory():
                    outputs = self._outputs(name, self._call(name, working), working)
                copies = [out.reshape(-1).flip(0) for out in outputs]
                held = not released.query()
            torch.cuda.synchronize()
            # Not held: the host was slower than the hold. A function that waits for the GPU itself is never held;
            # it hides nothing from the clock either.
            if held:
                break
        return tuple(copy.flip(0).view(out.shape) for copy, out in zip(copies, outputs, strict=True))

    def _blame_stream(self, name: str, working: Tensors, values: Tensors) -> None:
        """After a wrong answer: refuse the stream if the answer is right when the host waits for the whole GPU."""
        _fill(working, values)
        torch.cuda.synchronize()
        with poisoned_memory():
            outputs = self._outputs(name, self._call(name, working), working)
        torch.cuda.synchronize()
        if self._error(outputs, self._truth(values))[0] <= self._allowed:
            self._refuse(
                name,
                "work on another stream: right when the host waits for the whole GPU, wrong in the order of the "
                "current stream, which the clock times",
            )


# --- comparing ------------------------------------------------------------------------------------


def worst_element(
    out: torch.Tensor, truth: torch.Tensor, *, rows_apart: bool = False, usual: float | None = None
) -> tuple[float, int]:
    """Return the worst element's error, as `problem.worst_error` defines it, and that element's flat index.

    An element that is NaN where the truth is not counts as infinitely wrong; so does one that is not NaN, or not the
    same infinity, where the truth is. With `usual` that takes the place of the truth's root mean square.
    """
    worst, where, start = -1.0, 0, 0
    for errors in _element_errors(out, truth, rows_apart, usual):
        value, index = errors.max(dim=0)
        if float(value) > worst:
            worst, where = float(value), start + int(index)
        start += errors.numel()
    return max(worst, 0.0), where


def _element_errors(
    out: torch.Tensor, truth: torch.Tensor, rows_apart: bool, usual: float | None = None
) -> Iterator[torch.Tensor]:
    """|out - truth| / (|truth| + rms(truth)) in float64, a slice of the flattened tensors at a time."""
    if not truth.numel():
        return
    width = truth.shape[-1] if rows_apart else 1
    step = max(SLICE // width, 1) * width  # whole rows
    out, truth = out.reshape(-1), truth.reshape(-1)
    rms: Any = usual
    if rms is None and not rows_apart:
        rms = _rms(truth)
    for got, expected in zip(out.split(step), truth.split(step), strict=True):
        got, expected = got.double(), expected.double()
        if rows_apart:
            rows = expected.view(-1, width)
            finite = rows.isfinite()
            squares = rows.masked_fill(~finite, 0.0).square().sum(dim=-1, keepdim=True)
            of_row = (squares / finite.sum(dim=-1, keepdim=True).clamp(min=1)).sqrt()
            rms = of_row.expand(-1, width).reshape(-1)
        errors = (got - expected).abs_().div_(expected.abs() + rms)
        # 0 / 0, where truth and answer are all zeros; and the infinities and NaN that are due.
        errors.masked_fill_((got == expected) | (got.isnan() & expected.isnan()), 0.0)
        yield errors.nan_to_num_(nan=math.inf, posinf=math.inf)


def _rms(truth: torch.Tensor) -> float:
    """Return the root mean square of the finite elements."""
    total, count = 0.0, 0
    for part in truth.reshape(-1).split(SLICE):
        squares = part.double().square()
        whole = float(squares.sum())
        if math.isfinite(whole):
            total, count = total + whole, count + part.numel()
        else:
            finite = squares[squares.isfinite()]
            total, count = total + float(finite.sum()), count + finite.numel()
    return math.sqrt(total / count) if count else 0.0


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """Let `torch.empty` and its kin return NaN (whole numbers: the largest), so what is never written shows."""
    was_on = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    was_filling = torch.utils.deterministic.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operations that have no deterministic form
        torch.utils.deterministic.fill_uninitialized_memory = True
        # Not `torch.use_deterministic_algorithms`: that reads all of PyTorch's compiler first, to tell it so, too.
        # Every command would wait seconds for it, and what the compiler makes under the check is timed afterwards.
        torch._C._set_deterministic_algorithms(True, warn_only=True)
        try:
            yield
        finally:
            torch._C._set_deterministic_algorithms(was_on, warn_only=was_warn_only)
            torch.utils.deterministic.fill_uninitialized_memory = was_filling


# --- small things -------------------------------------------------------------------------------


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _fill(working: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    for tensor, new in zip(working, values, strict=True):
        # Through `data`, whose version counter is its own: nothing on the host tells that the values have changed.
        tensor.data.copy_(new)


def _share_memory(these: Sequence[torch.Tensor], those: Sequence[torch.Tensor]) -> bool:
    taken = {tensor.untyped_storage().data_ptr() for tensor in those if tensor.numel()}
    return any(tensor.untyped_storage().data_ptr() in taken for tensor in these if tensor.numel())


def _lies_as_asked(out: torch.Tensor, layouts: Sequence[Sequence[int]]) -> bool:
    """Return True for row-major order, and for another order of the dimensions where the problem allows it."""
    orders = (order for order in layouts if len(order) == out.dim())
    return out.is_contiguous() or any(out.permute(*order).is_contiguous() for order in orders)


def _row_major(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]


def _held_by(dtype: torch.dtype, values: Sequence[float]) -> list[float]:
    """Return those of the values that a type can hold; a finite one is brought within half of the type's range."""
    if not dtype.is_floating_point:
        return []
    most = torch.finfo(dtype).max / 2
    found = []
    for value in values:
        if math.isinf(value):
            if not torch.tensor(value).to(dtype).double().isinf():
                continue
        elif abs(value) > most:
            value = math.copysign(most, value)
        found.append(value)
    return found


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Take some elements, spread evenly; the same ones of every tensor of a shape."""
    return tensor.reshape(-1)[:: max(tensor.numel() // REMEMBERED, 1)].clone()


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
