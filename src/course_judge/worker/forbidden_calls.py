"""Guard of what a student's file may not touch: the library's kernels, and operators that do the job for it.

A tutor, not a jail: it notices the shortcuts that tempt, and says so. It keeps out nobody who wants to break in.
"""

from __future__ import annotations

import builtins
import importlib.abc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

import course_kernels

KERNELS = Path(course_kernels.__file__).resolve().parent
LABS = KERNELS.parents[1] / "labs"
# Parts of the library that solve nothing, open to a lab with a problem.
OPEN = ("course_kernels.arguments", "course_kernels.problem", "course_kernels.cuda", "course_kernels.measure")


class NotYours(Exception):
    """Error: the student's code used what the lab asks for, or more room than it allows."""


class Watch(importlib.abc.MetaPathFinder):
    """Watch over imports and opened files while the student's code runs.

    Attributes:
        file: the student's file.
        found: the property and what was not theirs, with its line; kept even where the student's code catches
            the exception.
    """

    def __init__(
        self, file: Path, by_hand: bool, refuse: Sequence[str] = (), banned: Sequence[str] = ()
    ) -> None:
        self.file = file.resolve()
        self.found: list[tuple[str, str]] = []
        self.on = False
        self._open = () if by_hand else OPEN
        self._refuse = tuple(refuse)
        self._banned = frozenset(banned)  # loaded already, for the grader's own use

    def line(self) -> int | None:
        """Return the line of the student's file that runs; None if none does."""
        return line_in(self.file, sys._getframe(1))

    def refuse(self, what: str, found: str = "not yours", line: int | None = None) -> NoReturn:
        """Note and raise what is not theirs; `found` is the property that the grader names, `line` another line."""
        line = line or self.line()
        said = f"{f'line {line} ' if line else ''}{what}"
        if (found, said) not in self.found:
            self.found.append((found, said))
        raise NotYours(said)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Run student's code inside of this; modules loaded for the grader alone are hidden from it."""
        was, self.on = self.on, True
        aside = {
            name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in self._banned
        }
        try:
            yield
        finally:
            self.on = was
            sys.modules.update(aside)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Check imports and opened files here; forbidden modules are loaded afresh, so that none slips by."""
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if self._forbidden(name)}
        sys.meta_path.insert(0, self)
        _WATCHES.append(self)
        import_ = builtins.__import__

        def watched_import(name: str, names: Any = None, *rest: Any, **more: Any) -> Any:
            student = names and names.get("__file__") == str(self.file)
            if self.on and student and name.split(".")[0] in self._banned:
                self.refuse(f"imports {name}")
            return import_(name, names, *rest, **more)

        builtins.__import__ = watched_import  # type: ignore[assignment]
        try:
            yield
        finally:
            builtins.__import__ = import_
            _WATCHES.remove(self)
            sys.meta_path.remove(self)
            sys.modules.update(hidden)

    def _forbidden(self, name: str) -> bool:
        if any(name == module or name.startswith(module + ".") for module in self._refuse):
            return True
        if name == "course_kernels":
            return not self._open
        if not name.startswith("course_kernels."):
            return False
        return not any(name == module or name.startswith(module + ".") for module in self._open)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Refuse what is not theirs; every other module is for the finders behind."""
        banned = fullname.split(".")[0] in self._banned and self.line() is not None
        if self.on and (banned or self._forbidden(fullname)):
            self.refuse(f"imports {fullname}")
        return None

    def opened(self, name: Any) -> None:
        """Refuse a file of a problem or of a lab, the student's own excepted."""
        if not self.on or not isinstance(name, str | bytes | Path):
            return
        path = Path(name.decode() if isinstance(name, bytes) else name)
        if path.suffix not in (".py", ".cu", ".cuh", ".toml", ".pyc"):
            return
        path = path.resolve()
        if path == self.file:
            return
        of_a_problem = path.is_relative_to(KERNELS) and (
            not self._open or (KERNELS / path.relative_to(KERNELS).parts[0] / "problem.py").exists()
        )
        if of_a_problem or path.is_relative_to(LABS):
            self.refuse(f"reads {path.relative_to(LABS.parent).as_posix()}")


_WATCHES: list[Watch] = []  # an audit hook cannot be taken away again, so it looks here
_HOOKED: list[bool] = []


def hook() -> None:
    """Have every opened file of this process looked at; once is enough."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and _WATCHES:
            for watch in _WATCHES:
                watch.opened(arguments[0])

    if not _HOOKED:
        _HOOKED.append(True)
        sys.addaudithook(audit)


def line_in(file: Path, frame: FrameType | None) -> int | None:
    """Return the line of the innermost frame that runs a file."""
    while frame is not None:
        if frame.f_code.co_filename == str(file):
            return frame.f_lineno
        frame = frame.f_back
    return None
