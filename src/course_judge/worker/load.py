"""Loading of a stranger's file, in the worker."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

from course_judge.protocol.errors import Rejected


def load(file: Path) -> ModuleType:
    """Run a stranger's file as a module.

    Raises:
        Rejected: it cannot be read.
    """
    try:
        # As bytes: Python itself then sees to a mark of the byte order, and to an encoding named in a comment.
        code = compile(ast.parse(file.read_bytes(), str(file)), str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        said = f"{f'line {line}: ' if line else ''}{getattr(error, 'msg', error)}"
        raise Rejected("syntax error", said) from None
    except OSError as error:
        raise Rejected("function missing", f"the file cannot be read: {error.strerror}") from None
    module = ModuleType(f"stranger_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.parent))
    try:
        exec(code, module.__dict__)
    finally:
        # Behind all others: a function may import its neighbour when it is called, and hides no module by its name.
        sys.path.remove(str(file.parent))
        sys.path.append(str(file.parent))
    return module


def out_of_sight(package: str) -> None:
    """Take a package that is loaded out of Python's table of modules: who imports it from now on gets another copy.

    What a process tells of an answer (where it lies, in which order) is worked out by helpers that would else be
    replaced by their names.
    """
    for name in list(sys.modules):
        if name.split(".")[0] == package:
            del sys.modules[name]
