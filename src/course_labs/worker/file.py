"""Worker for a student's file: loads it for one door, and answers the grader's questions.

Nothing here knows what is right: inputs come from the grader, and answers go to it.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from course_judge.protocol.errors import Rejected
from course_judge.protocol.messages import ON_TENSORS, Answer, Question, Start, read
from course_judge.worker.connection import Connection
from course_judge.worker.forbidden_calls import NotYours, Watch, hook
from course_judge.worker.lacking import lacking_reported
from course_judge.worker.load import load
from course_labs.lab import load_file, load_lab
from course_labs.protocol.messages import (
    ArrayCall,
    Case,
    LabTask,
    Launched,
    Launches,
    NotRun,
    Reason,
    Returned,
)
from course_labs.protocol.source_text import without_comments

LANGUAGE = "triton.language."
CARD = "sm_90a"  # what a .cu is compiled for where there is no card
# Modules that would do the work of a door.
NOT_IN = {"python": ("numpy", "torch", "triton"), "numpy": ("torch", "triton", "tracemalloc")}
# Operators of torch's that keep numbers and work nothing out; a lab may refuse them.
OPEN = ("aten.clone",)


class Worker:
    """Worker for one door of a lab.

    Attributes:
        asks: the kinds of questions that it answers.
        watch: what notes the use of what is not theirs.
    """

    asks: tuple[type[Question[Any]], ...] = (*ON_TENSORS, ArrayCall, NotRun, Launches, Case)

    def __init__(self, task: Start, connection: Connection) -> None:
        self._file, self._connection = Path(task.file), connection
        about = read(LabTask, task.more)
        lab = load_lab(Path(about.lab))
        self.lab = lab.alone if about.alone and lab.alone else lab
        self.door, self.gpu, self._notes = about.door, about.gpu, about.compile
        self.watch = Watch(
            self._file,
            not self.lab.problem,
            self.lab.refuse,
            NOT_IN.get(self.door, ()),
        )
        self._open = contextlib.ExitStack()  # what stays switched on until the end
        self._module: ModuleType | None = None
        self._answers: Any = None
        self._launches: Any = None
        self._not_run = ""

    def load(self) -> None:
        """Run the file, or compile it.

        Raises:
            Rejected: it cannot be read or compiled, lacks a function, or asks for what this machine lacks.
        """
        with self._lacking_reported():
            self._load()

    def _load(self) -> None:
        hook()
        self._open.enter_context(self.watch.installed())
        if not self.lab.problem:
            self._module = self._run()
        elif self.door == "python":
            from course_labs.worker.lists import ListAnswers

            self._answers = ListAnswers(self._first(self._run()), self.watch)
        elif self.door == "numpy":
            from course_labs.worker import arrays

            with arrays.makers_watched(self.watch):  # what a file takes from NumPy as it is loaded, too
                module = self._run()
            programs = arrays.Programs(module, self.lab.program)
            plain = self._first(module)
            rules = self.lab.allow, self.lab.refuse, self.lab.longest, self.lab.at_once
            self._answers = arrays.ArrayAnswers(
                arrays.watched(plain, self.watch, *rules, self.lab.row_at_once), programs
            )
        else:
            self._load_tensors()

    def answer(self, question: Question[Any], files: Sequence[int]) -> Answer:
        """Do what is asked, one of `asks`."""
        if isinstance(question, NotRun):
            return Reason(self._not_run)
        if isinstance(question, Launches):
            return Launched(tuple(self._launches.seen) if self._launches else ())
        if isinstance(question, Case):
            return self._by_hand(question)
        with self._lacking_reported():
            return self._answers.answer(question, files)  # type: ignore[no-any-return]

    def _lacking_reported(self) -> contextlib.AbstractContextManager[None]:
        """Tell what asks for a card, where none is, from what is wrong."""
        by_hand = self.gpu or self.door != "triton"
        return contextlib.nullcontext() if by_hand else lacking_reported(self._file, apart=True)

    # --- how a file becomes a function -----------------------------------------------------------

    def _run(self) -> ModuleType:
        with self.watch.watching():
            module = load(self._file)
        for name in self.lab.entry:
            if not callable(getattr(module, name, None)):
                raise Rejected("function missing", f"your file defines no function {name}")
        return module

    def _first(self, module: ModuleType) -> Callable[..., Any]:
        return getattr(module, self.lab.entry[0])  # type: ignore[no-any-return]

    def _load_tensors(self) -> None:
        from course_judge.worker import dispatch_guard
        from course_judge.worker.answers import Answers

        if self.door == "triton":
            self._prepare_triton()
            self._look_at_names()
            plain: Callable[..., Any] | None = self._first(self._run())
        else:
            plain = self.cuda()
        if plain is None:
            return
        zones = dispatch_guard.Zones()
        watched = dispatch_guard.watched(plain, self.watch, zones, (*self.lab.allow, *OPEN), self.lab.refuse)
        self._answers = Answers(watched, plain, self._connection, zones)

    def _prepare_triton(self) -> None:
        from course_judge.worker import dispatch_guard
        from course_judge.worker.card_arithmetic import as_on_a_card
        from course_judge.worker.interpreter import take_the_first_configuration
        from course_labs.worker import triton_compile

        triton = importlib.util.find_spec("triton")
        assert triton is not None
        assert triton.origin is not None
        dispatch_guard.trust(Path(triton.origin).parent, guarded=False)
        if not self.gpu:
            take_the_first_configuration()
            self._open.enter_context(as_on_a_card())
            triton_compile.give_no_names_away()
            self._launches = triton_compile.LaunchLog() if self._notes else None

    def _look_at_names(self) -> None:
        """Refuse functions of triton.language that the lab forbids, by the kernel's own text."""
        refused = {name.removeprefix(LANGUAGE) for name in self.lab.refuse if name.startswith(LANGUAGE)}
        try:
            nodes = list(ast.walk(ast.parse(self._file.read_bytes())))
        except (SyntaxError, ValueError, OSError):
            return  # whoever loads it says so
        called = {"tl", LANGUAGE[:-1]}  # by what names the file knows triton.language
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                called |= {alias.asname for alias in node.names if alias.asname and "language" in alias.name}
        for node in nodes:
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and f"{node.module}." == LANGUAGE:
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in called:
                names = [node.attr]
            for name in refused.intersection(names):
                with contextlib.suppress(NotYours):
                    self.watch.refuse(f"calls Triton's own tl.{name}", line=getattr(node, "lineno", None))

    def cuda(self) -> Callable[..., Any] | None:
        """Return a function over tensors that launches the student's kernel; None without a GPU, once it compiles."""
        from course_kernels.cuda.compile import CompileError, compile_cubin
        from course_kernels.cuda.headers import CudaMissingError

        name, arch = self.lab.entry[0], CARD
        if self.gpu:
            import torch

            from course_kernels.cuda.architecture import arch_of

            arch = arch_of(torch.cuda.get_device_capability())
        source = self._without_a_mark()
        try:
            with self.watch.watching():
                self._look_at_includes()
                cubin = compile_cubin(source, arch)
        except CompileError as error:
            raise Rejected("does not compile", first_error(str(error))) from None
        except FileNotFoundError as error:
            raise Rejected("does not compile", str(error)) from None
        except UnicodeDecodeError as error:
            why = f"not UTF-8 text, at byte {error.start}"
            raise Rejected("does not compile", why, "save it as UTF-8.") from None
        except CudaMissingError as error:
            self._not_run = f"not compiled and not run: {error}"
            return None
        if f".text.{name}\0".encode() not in cubin:
            why = f'your file has no extern "C" __global__ kernel {name}'
            raise Rejected("function missing", why, f'begin it with: extern "C" __global__ void {name}(')
        if not self.gpu:
            self._not_run = f"compiled for {CARD}, not run: this machine has no GPU"
            return None
        from course_kernels.cuda.launch import launch, load_kernel

        handle = load_kernel(source, name)

        def kernel(grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
            launch(handle, grid, block, *arguments, shared_bytes=shared_bytes)

        kernel.constants = constants_of(self._file)  # type: ignore[attr-defined]
        return self.started(kernel)

    def _without_a_mark(self) -> Path:
        """Return the file, or where it begins with a byte order mark, which NVRTC does not know, a copy without."""
        with contextlib.suppress(OSError):
            text = self._file.read_bytes()
            if text.startswith(codecs.BOM_UTF8):
                copy = Path(tempfile.mkdtemp()) / self._file.name
                copy.write_bytes(text.removeprefix(codecs.BOM_UTF8))
                return copy
        return self._file

    def _look_at_includes(self) -> None:
        """Check that a header named as the toolkit's leads nowhere else."""
        from course_kernels.cuda.compile import CompileError
        from course_kernels.cuda.headers import CudaMissingError, toolkit_headers
        from course_kernels.cuda.includes import IncludeRefused, toolkit_includes

        try:
            for name in toolkit_includes(self._file):
                for folder in toolkit_headers():
                    # As the audit hook would, were it the compiler's own opening that it sees.
                    self.watch.opened(os.path.join(folder, name))
        except IncludeRefused as error:
            raise CompileError(str(error)) from None
        except CudaMissingError:
            return  # the compiler says so

    def started(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function over tensors that starts a kernel as launch.py does, in its function for this task."""
        from course_judge.worker import dispatch_guard

        path = self.lab.folder / "launch.py"
        launcher = load_file(path, "lab_launch")
        dispatch_guard.trust(path, guarded=True)
        start = getattr(launcher, self.lab.entry[0] if self.lab.is_alone else "launch")

        def function(*inputs: Any, **options: Any) -> Any:
            return start(kernel, *inputs, **options)

        return function

    # --- a lab by hand ---------------------------------------------------------------------------

    def _by_hand(self, case: Case) -> Returned:
        before = {name: repr(value) for name, value in case.given.items()}
        with self.watch.watching():
            got = getattr(self._module, case.call)(**case.given)
        for name, value in case.given.items():
            if repr(value) != before[name]:
                raise Rejected("input modified", f"{case.call}: {name} is not what it was before the call")
        if got is None:
            return Returned()
        if isinstance(got, bool) or not isinstance(got, int | float | str):
            return Returned(strange=repr(got)[:200])
        # Of an own class there may be more to it than the number, or the text, that it is.
        kind = next(kind for kind in (int, float, str) if isinstance(got, kind))
        return Returned(kind(got))


class Constants(dict[str, int]):
    """Whole numbers that a .cu file names."""

    def __missing__(self, name: str) -> int:
        why = f"your file has no line such as `constexpr int {name} = 8;`"
        raise Rejected("crashed", why, f"the launcher reads {name} from your file: give it a number.")


def constants_of(file: Path) -> Constants:
    """Return the whole numbers that a .cu file names: `constexpr int BM = 64, BN = 64;`."""
    text = without_comments(file.read_text(encoding="utf-8"))
    named = re.findall(r"\bconstexpr\s+int\s+([^;]*);", text)
    return Constants(
        {name: int(value) for name, value in re.findall(r"(\w+)\s*=\s*(\d+)\s*(?:,|$)", ",".join(named))}
    )


def first_error(log: str) -> str:
    """Return the first error of a compiler's log, with its line."""
    found = re.search(r"\((\d+)\): (?:catastrophic )?error:? (?:#\S+ )?(.*)", log)
    return f"line {found[1]}: {found[2].strip()}" if found else (log.strip().splitlines() or ["?"])[-1]
