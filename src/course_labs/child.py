"""The process that runs a student's file. Started by `grade`; says over a pipe what it does and finds."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import dataclasses
import importlib
import importlib.util
import json
import math
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from course_judge.watch import NotYours, Watch, hook
from course_labs import kernels
from course_labs.lab import ON_THE_CPU, Lab, load_lab
from course_labs.verdict import NOT_BEGUN, NOT_RUN, RIGHT, Verdict

CARD = "sm_90a"  # what a .cu is compiled for where there is no card
TIMING_SECONDS = 0.3
NEXT_BY_HAND = "work that case out on paper; it is small."
NEXT_AFTER_A_RACE = "two threads use one place at once, and who comes first is chance. Where must they wait?"
NEXT_OF_NAN = (
    "nothing of the output was written. Or a step makes NaN, as 0 / 0 and inf - inf do: print what it made."
)
NEXT_OF_A_STRANGE_NUMBER = "that number is in no input: a load reads outside. Which index is too large?"
STRANGE = 1e5  # times what is due, and past any ordinary input
NEXT_OF_NONE = "it returns nothing yet; end it with a `return`."
NEXT_OF_HARD_VALUES = (
    "other numbers did arrive there. With these values some step makes NaN, "
    "as inf - inf and 0 * inf do: which?"
)
NEXT_OF_A_YES_OR_NO = (
    "a row of numbers has many answers, and `if`, `and`, `or`, `not` and 0 <= i < N want one yes or no: "
    "write (0 <= i) & (i < N), with | for or and ~ for not. "
    "Each comparison in its own brackets: & binds tighter than <."
)

# First mistakes that get an answer in words a beginner cannot know: what the message has, what to do.
NEXT_AFTER = {
    "grid_idx": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "Cannot call @triton.jit": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "'builtin_function_or_method' object has no": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "object of type 'int' has no len()": "a grid is a tuple, also when it has one number: (programs,).",
    "'int' object is not iterable": "a pointer has no elements; read it with tl.load(pointer + i).",
    "predict first": "the check below your numbers does not come out yet: once more on paper, before you type on.",
    "is not defined": "that name has no value yet: is it spelt as where it is made?",
    "The truth value of a": NEXT_OF_A_YES_OR_NO,
    "Boolean value of Tensor with more than one value": NEXT_OF_A_YES_OR_NO,
    "simultaneous multiple comparison": NEXT_OF_A_YES_OR_NO,
}

NEXT_OF_A_MISSING_ARGUMENT = (
    "the launch gives each argument of the kernel, in its order, and the constants by name: BLOCK=BLOCK."
)
NEXT_OF_NUMPY_IN_A_KERNEL = (
    "NumPy and torch are not in a kernel: write what tl. has for it, or plain arithmetic."
)
NEXT_OF_NO_CALL = "a function is called with brackets: tl.program_id(0)."
# The same for what only Triton says.
NEXT_AFTER_TRITON = {
    "must be a power of 2": "tl.arange takes powers of two only: the next one, and a mask.",
    "operands of type pointer": "a place must be a whole number: is a / in it? Write //.",
    "Unsupported ptr type": "tl.load and tl.store take a pointer, and the places added to it: tl.load(x_ptr + i).",
    "Value argument cannot be block type": "many numbers for one place: what must be added to the pointer?",
    "required positional argument": NEXT_OF_A_MISSING_ARGUMENT,
    "'numpy.ndarray' object has no attribute 'type'": NEXT_OF_NUMPY_IN_A_KERNEL,
    "'NoneType' object has no attribute 'to_tensor'": NEXT_OF_NUMPY_IN_A_KERNEL,
    "object of type 'tensor' has no len()": "nothing in a kernel knows its length: it is an argument of the kernel.",
    "'float' object cannot be interpreted as an integer": "a grid has whole numbers: triton.cdiv(N, BLOCK).",
    "must be tuple of ints, not float": "a size is a whole number: is a / in it? Write //.",
    "'function' and 'int'": NEXT_OF_NO_CALL,
    "'int' and 'function'": NEXT_OF_NO_CALL,
    "'function' object is not subscriptable": "only a kernel takes a grid: is @triton.jit above it?",
    "unsupported tensor index": (
        "a row of numbers takes [:, None] and [None, :] and no other index: which places do you want? Load those."
    ),
    "cannot convert": NEXT_OF_NUMPY_IN_A_KERNEL,
    "setting an array element": NEXT_OF_NUMPY_IN_A_KERNEL,
    "must be Tensor, not tensor": NEXT_OF_NUMPY_IN_A_KERNEL,
    "Torch not compiled with CUDA enabled": "make it where the input is: device=x.device.",
    "triton.language must be visible": "is `import triton.language as tl` at the top of your file?",
    "Cannot access global variable": "give it to the kernel as an argument, of the kind tl.constexpr if it is fixed.",
}

NUMPYS_ADVICE = ". Use a.any() or a.all()"  # what a mask never wants
AFTER_THE_TIMING = "right before the timing, wrong after it: "
# How the checker begins what it says, and the property that is.
SAYS = {
    "all NaN": "all NaN",
    "not written, or NaN": "not written",
    "NaN lost": "NaN lost",
    "infinity lost": "infinity lost",
    "wrong shape": "wrong shape",
    "wrong dtype": "wrong dtype",
    "wrong result": "wrong result",
    "wrong device": "wrong device",
    "a view": "a view",
    "not a plain tensor": "not a plain tensor",
    "not a plain array": "not a plain tensor",
    "same memory twice": "same memory twice",
    "input modified": "input modified",
    "cached result": "cached result",
    "work on another stream": "another stream",
    "wrong": "wrong",
}
# Modules that would do the work of a door.
NOT_IN = {"python": ("numpy", "torch", "triton"), "numpy": ("torch", "triton")}


class Refusal(Exception):
    """A verdict that is already known."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.found)
        self.verdict = verdict


class Missing(Exception):
    """Something that grading needs is not on this machine."""


def main() -> int:
    """Grade the tasks on standard input, in order."""
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)

    def say(**event: Any) -> None:
        os.write(pipe, (json.dumps(event) + "\n").encode())

    end_with_parent(int(sys.argv[2]))
    job = json.load(sys.stdin)
    hook()
    graders: dict[tuple[str, str], Grader] = {}
    for number, (path, door, file) in enumerate(job["tasks"]):
        try:
            if (path, door) not in graders:
                graders[path, door] = Grader(load_lab(Path(path)), door, job["needs_gpu"], say)
                if job["compile"]:
                    graders[path, door].compile_too()
        except Missing as error:
            say(cannot=str(error))
            return 2
        grader = graders[path, door]
        say(begin=number)
        verdict = grader.verdict(Path(file))
        sys.stdout.flush()
        say(verdict=verdict.as_json(), broken=grader.broken)
        if grader.broken:
            break
    # Nothing of the student's runs on the way out.
    sys.stdout.flush()
    os._exit(0)


def end_with_parent(parent: int) -> None:
    """Have Linux end this process when the one that started it is gone, whatever the student's code is doing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)  # it went before we asked


class Grader:
    """Grades files for one door of one lab."""

    def __init__(self, lab: Lab, door: str, needs_gpu: bool, say: Callable[..., None]) -> None:
        self.lab, self.door, self._say = lab, door, say
        self.broken = False  # true once the GPU refuses further work in this process
        self.gpu = False
        if lab.problem and door in ON_THE_CPU:
            self.has_gpu = needs_gpu  # as whoever started this found out; no torch is here to be asked
            self._load_truth()
        elif lab.problem:
            self._load_torch(needs_gpu)
            self._load_problem()
        else:
            self.cases = load_file(
                lab.folder / f"{'alone' if lab.is_alone else 'truth'}.py", "lab_truth"
            ).cases()
        self.alone = Grader(lab.alone, door, needs_gpu, say) if lab.alone else None
        self._compiler: Any = None
        self._launches: Any = None

    def compile_too(self) -> None:
        """Have the kernels of a right file compiled for a card as well, where no card has done so."""
        if self.door != "triton" or self.gpu:
            return
        self._compiler, self._launches = kernels.Compiler(), kernels.Launches()
        if self.alone:
            self.alone._compiler, self.alone._launches = self._compiler, self._launches

    def _load_torch(self, needs_gpu: bool) -> None:
        try:
            import torch
        except ImportError as error:
            raise Missing(f"torch is not installed here ({error}): nox -s grade installs it") from None
        has_gpu = torch.cuda.is_available()
        if needs_gpu and not has_gpu:
            raise Missing(
                "this machine has a GPU, but torch cannot use it; CUDA_VISIBLE_DEVICES=-1 grades without"
            )
        self.has_gpu = self.gpu = has_gpu
        if self.door == "triton":
            if has_gpu:
                os.environ.pop("TRITON_INTERPRET", None)
            else:
                os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
            try:
                import triton
            except ImportError as error:
                others = ", ".join(other for other in self.lab.doors if other != "triton")
                raise Missing(
                    f"triton is not installed here ({error}): pip install triton"
                    + (f", or take another door: {others}" if others else "")
                ) from None
            from course_judge import operators

            operators.trust(Path(triton.__file__).parent, guarded=False)
            if not has_gpu:
                operators.ask_no_block_for_a_yes_or_no()
                kernels.give_no_names_away()

    def _load_truth(self) -> None:
        try:
            import numpy  # noqa: F401
        except ImportError as error:
            raise Missing(f"NumPy is not installed here ({error}): nox -s grade installs it") from None
        from course_kernels.problem import Workload

        path = self.lab.folder / "truth.py"
        name = "ALONE" if self.lab.is_alone else "TRUTH"
        self.problem: Any = getattr(load_file(path, "lab_truth"), name, None)
        if self.problem is None:
            raise Missing(f"{path} has no {name}, which a door {self.door} is judged by")
        self.own = self.tries = [Workload.parse(text) for text in self.lab.tries]

    def _load_problem(self) -> None:
        from course_kernels.problem import Workload

        if self.lab.is_alone:
            self.problem = load_file(self.lab.folder / "alone.py", "lab_alone").PROBLEM
        else:
            self.problem = importlib.import_module(f"course_kernels.{self.lab.problem}.problem").PROBLEM
        self.own = [Workload.parse(text) for text in self.lab.tries]
        tries = list(self.own)
        if self.gpu:
            tries += [workload for workload in self.problem.check_on if self._alike(workload, tries)]
        self.tries = tries
        self.library = None
        if self.gpu:
            # Everything of the library that is needed later is loaded before the student's file.
            from course_kernels.measure import compare  # noqa: F401
            from course_kernels.measure.competitor import competitor_named

            self.library = competitor_named(self.lab.beside) if self.lab.beside else None

    def _alike(self, workload: Any, tries: list[Any]) -> bool:
        """True for one more size of the same kind.

        A further dimension asks for options that a student's function does not take, another type, or another value
        of what is a constant in the file, for another kernel.
        """
        same = workload.dims.keys() == tries[0].dims.keys()
        same = same and all(workload.dims[name] == tries[0].dims[name] for name in self.lab.fixed)
        return same and workload.dtype in {w.dtype for w in tries} and workload not in tries

    def verdict(self, file: Path) -> Verdict:
        """What is right or wrong about one file; once it is right, about the lab's last task in it too."""
        verdict = self._own_verdict(file)
        if self.alone is None or verdict.found not in (RIGHT, NOT_RUN) or self.broken:
            return verdict
        self._say(so_far=verdict.as_json())  # is kept, whatever the last task does to this process
        alone = self.alone._own_verdict(file)
        self.broken = self.alone.broken
        if alone.found == "function missing" and not self.alone._is_begun(file):
            alone = Verdict(NOT_BEGUN, f"your file defines no {self.alone.lab.entry[0]}")
        return dataclasses.replace(verdict, alone=alone)

    def _is_begun(self, file: Path) -> bool:
        """True for a .cu with a kernel of the name that cannot be found by it, for want of its extern "C"."""
        name = self.lab.entry[0]
        return self.door == "cuda" and bool(
            re.search(rf"__global__[^;{{]*\b{name}\s*\(", _without_comments(file.read_text(encoding="utf-8")))
        )

    def _own_verdict(self, file: Path) -> Verdict:
        self._size = ""
        watch = Watch(file, not self.lab.problem, self.lab.refuse, NOT_IN.get(self.door, ()))
        try:
            with watch.installed():
                verdict = self._by_hand(file, watch) if not self.lab.problem else self._checked(file, watch)
        except Refusal as refusal:
            verdict = refusal.verdict
        except NotYours as error:
            verdict = Verdict("not yours", str(error), self._size)
        except BaseException as error:  # exit() included: whatever it is, it was the student's file
            verdict = self._crash(error, file)
        if watch.found:
            return Verdict(*watch.found[0], self._size)
        return verdict

    # --- a lab with a problem ------------------------------------------------------------------

    def _checked(self, file: Path, watch: Watch) -> Verdict:
        if self.door in ON_THE_CPU:
            plain = getattr(self._module(file, watch), self.lab.entry[0])
            self._try_sizes(self._refusal_of_arrays(plain, watch))
        else:
            from course_judge import operators

            zones = operators.Zones()
            plain, function = self._function(file, watch, zones)
            if plain is None:
                return Verdict(NOT_RUN, f"compiled for {CARD}, not run: this machine has no GPU")
            if self._compiler:
                self._launches.seen.clear()
            self._try_sizes(self._refusal_of_tensors(file, function, zones))
            if self._compiler and (said := self._compiler.refusal(file, self._launches.seen)):
                raise Refusal(Verdict("does not compile", said, next=self._after_compiling(said)))
        if not self.gpu:
            why = "this machine has no GPU" if not self.has_gpu else f"{self._road()} runs on the CPU"
            return Verdict(RIGHT, f"no speed claim: {why}")
        if not self.lab.time:
            return Verdict(RIGHT, "no speed claim: this task is not timed")
        from course_kernels.measure.check import WrongResult
        from course_kernels.measure.roofline import FasterThanFloor

        zones.forget()
        try:
            return self._timed(file, plain)
        except FasterThanFloor as error:
            return Verdict("faster than the floor", str(error).split(": ", 2)[-1], self._size)
        except WrongResult as error:
            return self._wrong(error.why, "")

    def _after_compiling(self, said: str) -> str:
        """What to try where the compiler refuses what the interpreter ran: a name it lacks is one of Python's."""
        return (advice_after(said, self.door) if "is not defined" not in said else "") or kernels.NEXT

    def _try_sizes(self, refusal: Callable[[Any, Any], Verdict | None]) -> None:
        """Every size, and once more with larger inputs where the lab asks for it.

        Args:
            refusal: (problem, workload) -> what a file is refused for, None where it is right.
        Raises:
            Refusal: of the smallest size that shows an everyday fault, else one that only hard values show.
        """
        times = 1

        def make_inputs(*arguments: Any) -> Any:
            inputs = self.problem.make_inputs(*arguments)
            return tuple(x * times for x in inputs) if times > 1 else inputs

        def max_error(workload: Any) -> float:
            # The rounding of a product grows with both of its factors.
            return float(times**2 * self.problem.max_error(workload))

        problem = dataclasses.replace(self.problem, make_inputs=make_inputs, max_error=max_error)
        again = [w for w in self.tries if self.lab.magnify and w in self.own]
        found = None
        for workload, times in [*((w, 1) for w in self.tries), *((w, self.lab.magnify) for w in again)]:
            self._size = size_of(workload) + (f", inputs times {times}" if times > 1 else "")
            self._say(size=self._size)
            refused = refusal(problem, workload)
            if refused and not found:
                # What NaN and infinities bring to light is told where ordinary numbers bring nothing to light, at no
                # size: a race that comes out right by chance must not be called a lost infinity.
                found, problem = refused, dataclasses.replace(problem, hard=lambda workload: ())
                refused = refusal(problem, workload)
            if refused:
                raise Refusal(refused)
        if found:
            raise Refusal(found)

    def _refusal_of_arrays(
        self, plain: Callable[..., Any], watch: Watch
    ) -> Callable[[Any, Any], Verdict | None]:
        from course_labs import arrays
        from course_labs.check import WrongArray, check

        if self.door == "python":
            function = over_lists(plain, watch, self)
        else:
            limits = self.lab.longest, self.lab.at_once
            function = arrays.watched(plain, watch, self.lab.allow, self.lab.refuse, *limits)

        def refusal(truth: Any, workload: Any) -> Verdict | None:
            try:
                check(truth, workload, function)
            except WrongArray as error:
                return self._wrong(str(error), "")
            return None

        return refusal

    def _refusal_of_tensors(
        self, file: Path, function: Callable[..., Any], zones: Any
    ) -> Callable[[Any, Any], Verdict | None]:
        from course_judge import operators
        from course_kernels.measure.check import WrongResult, checked_error
        from course_kernels.measure.competitor import Competitor

        def refusal(problem: Any, workload: Any) -> Verdict | None:
            def make_inputs(*arguments: Any) -> Any:
                inputs = problem.make_inputs(*arguments)
                return tuple(
                    zones.around(x, f"input {n}", operators.INPUT_FILL) for n, x in enumerate(inputs, 1)
                )

            zones.forget()
            guarded = Competitor(file.name, dataclasses.replace(problem, make_inputs=make_inputs), function)
            try:
                checked_error(guarded, workload, device="cuda" if self.gpu else "cpu")
            except WrongResult as error:
                return self._wrong(error.why, zones.broken())
            broken = zones.broken()
            return Verdict("out of bounds", broken, self._size) if broken else None

        return refusal

    def _road(self) -> str:
        return {"numpy": "NumPy", "python": "Python"}[self.door]

    def _wrong(self, why: str, broken: str) -> Verdict:
        if broken:
            return Verdict("out of bounds", broken, self._size)
        if why.startswith(AFTER_THE_TIMING):
            return Verdict("wrong in the end", why.removeprefix(AFTER_THE_TIMING), self._size)
        if "shares memory with" in why:
            return Verdict("shares memory", why, self._size)
        head, _, rest = why.partition(": ")
        if SAYS.get(head) == "not written":
            return self._not_written(rest)
        if head == "all NaN" and self.door in ON_THE_CPU:
            return Verdict(head, rest, self._size, NEXT_OF_NAN)
        if SAYS.get(head) == "another stream" and self.door == "cuda":  # launch.py names no stream
            return Verdict("wrong", "right in one call and wrong in another", self._size, NEXT_AFTER_A_RACE)
        advice = NEXT_OF_A_STRANGE_NUMBER if head == "wrong" and self._is_strange(rest) else ""
        return Verdict(SAYS.get(head, "wrong"), rest if head in SAYS else why, self._size, advice)

    def _is_strange(self, said: str) -> bool:
        """True for a number that ordinary inputs cannot make, such as one that stands in the guards around them."""
        found = re.search(r": expected (\S+), got (\S+);", said)
        if not found or ", where " in said or "inputs times" in self._size:
            return False
        due, got = (abs(float(number)) for number in found.groups())
        return STRANGE < got < math.inf and got > STRANGE * due

    def _not_written(self, said: str) -> Verdict:
        """How many elements, and the first. Room begins as NaN: that it still is one says nothing more.

        Where values are planted, it has been written for others: then what stands there was worked out.
        """
        if ", where " in said:
            return Verdict("not written", said, self._size, NEXT_OF_HARD_VALUES)
        elements, _, first = said.partition(": expected ")[0].partition(", ")
        return Verdict("not written", f"{elements}, the first is {first}", self._size)

    def _timed(self, file: Path, function: Callable[..., Any]) -> Verdict:
        import torch

        from course_kernels.measure import SensorsUnavailable, compare
        from course_kernels.measure.competitor import Competitor
        from course_kernels.measure.derive import derive
        from course_kernels.measure.machine import machine_for
        from course_kernels.problem import Workload

        workload = Workload.parse(self.lab.time)
        self._size = size_of(workload)
        self._say(size=self._size)
        field: dict[str, Any] = {"yours": Competitor(file.name, self.problem, function)}
        if self.library:
            field["library"] = self.library
        try:
            measured = compare(field, workload, seconds=TIMING_SECONDS)
        except SensorsUnavailable as error:
            return Verdict(RIGHT, f"no speed claim: {str(error).splitlines()[0]}")
        machine = machine_for(torch.cuda.get_device_name())

        def speed(name: str) -> str:
            time_us = measured[name].median_us
            took = f"{time_us:.1f} µs"
            if machine is None:
                return f"{took} (no data sheet of this card in course_kernels/measure/machine.py)"
            return f"{took}, {derive(measured[name], 'of_peak', time_us, machine):.1%} of peak"

        lines = (f"the library's {self.lab.beside}: {speed('library')}",) if self.library else ()
        return Verdict(RIGHT, f"{self._size} takes {speed('yours')}", lines=lines)

    def _function(self, file: Path, watch: Watch, zones: Any) -> Any:
        """The student's function over tensors as it is, and the same one watched; None twice where it cannot run."""
        from course_judge import operators

        if self.door == "cuda":
            plain = self._cuda(file, watch)
            if plain is None:
                return None, None
        else:
            plain = getattr(self._module(file, watch), self.lab.entry[0])
        return plain, operators.watched(plain, watch, zones, self.lab.allow, self.lab.refuse)

    def _module(self, file: Path, watch: Watch) -> ModuleType:
        """The student's file, run as a module.

        Raises:
            Refusal: it cannot be read, or lacks a function.
        """
        try:
            # As bytes: Python itself then sees to a mark of the byte order, and to an encoding named in a comment.
            code = compile(ast.parse(file.read_bytes(), str(file)), str(file), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            said = f"{f'line {line}: ' if line else ''}{getattr(error, 'msg', error)}"
            raise Refusal(Verdict("syntax error", said)) from None
        module = ModuleType(f"student_{file.stem}")
        module.__file__ = str(file)
        sys.modules[module.__name__] = module
        sys.path.insert(0, str(file.parent))
        try:
            with watch.watching(), self._ways_watched(watch):
                exec(code, module.__dict__)
        finally:
            sys.path.remove(str(file.parent))
        missing = [name for name in self.lab.entry if not callable(getattr(module, name, None))]
        if missing:
            raise Refusal(Verdict("function missing", f"your file defines no function {missing[0]}"))
        return module

    def _ways_watched(self, watch: Watch) -> contextlib.AbstractContextManager[None]:
        """What a file of the NumPy door takes from NumPy as it is loaded is watched ever after."""
        if self.door != "numpy":
            return contextlib.nullcontext()
        from course_labs import arrays

        return arrays.makers_watched(watch)

    def _cuda(self, file: Path, watch: Watch) -> Callable[..., Any] | None:
        """A function over tensors that launches the student's kernel; None without a GPU, once it compiles."""
        from course_kernels.cuda.compile import CompileError, compile_cubin
        from course_kernels.cuda.headers import CudaMissingError

        name = self.lab.entry[0]
        arch = CARD
        if self.gpu:
            import torch

            from course_kernels.cuda.architecture import arch_of

            arch = arch_of(torch.cuda.get_device_capability())
        try:
            with watch.watching():
                cubin = compile_cubin(file, arch)
        except CompileError as error:
            said = first_error(str(error))
            raise Refusal(Verdict("does not compile", said, next=advice_after(said))) from None
        except FileNotFoundError as error:
            raise Refusal(Verdict("does not compile", str(error))) from None
        except UnicodeDecodeError as error:
            why = f"not UTF-8 text, at byte {error.start}"
            raise Refusal(Verdict("does not compile", why, next="save it as UTF-8.")) from None
        except CudaMissingError as error:
            raise Refusal(Verdict(NOT_RUN, f"not compiled and not run: {error}")) from None
        if f".text.{name}\0".encode() not in cubin:
            why = f'your file has no extern "C" __global__ kernel {name}'
            raise Refusal(
                Verdict("function missing", why, next=f'begin it with: extern "C" __global__ void {name}(')
            )
        if not self.gpu:
            return None
        from course_kernels.cuda.launch import launch, load_kernel

        handle = load_kernel(file, name)

        def kernel(grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
            launch(handle, grid, block, *arguments, shared_bytes=shared_bytes)

        kernel.constants = constants_of(file)  # type: ignore[attr-defined]
        return self._started(kernel)

    def _started(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A function over tensors that starts a kernel as launch.py does, in its function for this task."""
        from course_judge import operators

        path = self.lab.folder / "launch.py"
        launcher = load_file(path, "lab_launch")
        operators.trust(path, guarded=True)
        start = getattr(launcher, self.lab.entry[0] if self.lab.is_alone else "launch")

        def function(*inputs: Any, **options: Any) -> Any:
            return start(kernel, *inputs, **options)

        return function

    # --- a lab by hand -------------------------------------------------------------------------

    def _by_hand(self, file: Path, watch: Watch) -> Verdict:
        module = self._module(file, watch)
        for case in self.cases:
            given = case["with"]
            call = f"{case['call']}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
            self._size = case["job"]
            self._say(size=self._size)
            with watch.watching():
                got = getattr(module, case["call"])(**given)
            expected = case["expect"]
            text = f"{call}: expected {shown(expected)}, got {shown(got)}"
            if not comparable(got, expected):
                return Verdict(
                    "wrong result", text, self._size, NEXT_OF_NONE if got is None else NEXT_BY_HAND
                )
            if not agrees(got, expected, case.get("within", 1e-6)):
                return Verdict("wrong", text, self._size, NEXT_BY_HAND)
        return Verdict(RIGHT, f"{len(self.cases)} cases; no speed claim: this lab is done by hand")

    # --- what went wrong -----------------------------------------------------------------------

    def _crash(self, error: BaseException, file: Path) -> Verdict:
        while type(error).__module__.startswith("triton") and error.__cause__ is not None:
            error = error.__cause__  # the interpreter, and the compiler, wrap what happened
        said = (str(error).strip().splitlines() or [""])[0]
        said = said.removesuffix(NUMPYS_ADVICE)
        name = type(error).__name__
        if "CompilationError" in {kind.__name__ for kind in type(error).__mro__}:
            what = kernels.compiled_said(error, file)
            said = what
        else:
            line = kernels.line_of(error, file)
            what = f"{f'line {line}: ' if line else ''}{name}{f': {said.strip()}' if said else ''}"
        if "CUDA" in said or "CUDA" in name or name == "AcceleratorError":
            self.broken = True
        if isinstance(error, NotImplementedError):
            return Verdict("crashed", what, self._size, "that line waits for you: write it.")
        if "illegal memory access" in said or "misaligned" in said:
            advice = "an address outside of every tensor: check index and mask; compute-sanitizer names the thread."
            return Verdict("crashed", what, self._size, advice)
        return Verdict("crashed", what, self._size, advice_after(said, self.door))


def over_lists(function: Callable[..., Any], watch: Watch, grader: Grader) -> Callable[..., Any]:
    """A student's function over nested lists, as one over arrays that the checker can call."""
    import numpy as np

    def call(*inputs: Any, **options: Any) -> Any:
        lists = [array.tolist() for array in inputs]
        with watch.watching():
            result = function(*lists, **options)
        # As text: a NaN differs from itself, and 0 equals -0.
        if repr(lists) != repr([array.tolist() for array in inputs]):
            raise Refusal(Verdict("input modified", "a list you were given has changed", grader._size))
        try:
            if result is None:
                raise TypeError
            return np.array(result, dtype=inputs[0].dtype)
        except (TypeError, ValueError):
            why = f"expected a list of numbers, every row as long as the others, got {shown(result)}"
            raise Refusal(Verdict("wrong result", why, grader._size)) from None

    return call


class Constants(dict[str, int]):
    """Whole numbers that a .cu file names."""

    def __missing__(self, name: str) -> int:
        why = f"your file has no line such as `constexpr int {name} = 8;`"
        raise Refusal(
            Verdict("crashed", why, next=f"the launcher reads {name} from your file: give it a number.")
        )


def constants_of(file: Path) -> Constants:
    """The whole numbers that a .cu file names: `constexpr int BM = 64, BN = 64;`."""
    text = _without_comments(file.read_text(encoding="utf-8"))
    named = re.findall(r"\bconstexpr\s+int\s+([^;]*);", text)
    return Constants(
        {name: int(value) for name, value in re.findall(r"(\w+)\s*=\s*(\d+)\s*(?:,|$)", ",".join(named))}
    )


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def load_file(path: Path, name: str) -> ModuleType:
    """A file of the lab itself, as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def size_of(workload: Any) -> str:
    """A workload as a student reads it: "N=1000 float32"."""
    dims = [
        f"{name}={value}" if not isinstance(value, bool) else name
        for name, value in workload.dims.items()
        if value is not False
    ]
    return " ".join([*dims, workload.dtype])


def shown(value: Any) -> str:
    """A value, short."""
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def comparable(got: Any, expected: Any) -> bool:
    """True if a student's value is of the kind that was asked for."""
    if isinstance(expected, str):
        return isinstance(got, str)
    return isinstance(got, int | float) and not isinstance(got, bool)


def agrees(got: Any, expected: Any, within: float) -> bool:
    """True if a student's value is right: exactly, or for a float as near as asked."""
    if isinstance(expected, float):
        return math.isclose(got, expected, rel_tol=within)
    return bool(got == expected)


def advice_after(said: str, door: str = "") -> str:
    """What to try after an error that has advice of its own; empty after any other."""
    known = NEXT_AFTER | (NEXT_AFTER_TRITON if door == "triton" else {})
    return next((advice for sign, advice in known.items() if sign in said), "")


def first_error(log: str) -> str:
    """The first error of a compiler's log, with its line."""
    found = re.search(r"\((\d+)\): (?:catastrophic )?error:? (?:#\S+ )?(.*)", log)
    return f"line {found[1]}: {found[2].strip()}" if found else (log.strip().splitlines() or ["?"])[-1]


if __name__ == "__main__":
    sys.exit(main())
