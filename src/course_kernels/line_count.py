"""Lines of a kernel, counted by one rule: a line counts if it holds something besides a comment or a docstring.

What runs on the card lies between `# region NAME` and `# endregion` (in C++ after `//`). The rest of a file checks,
compiles, launches.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

from course_kernels.cuda.includes import sources_of

_QUIET = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING),
}
_COMMENT_OF_CPP = re.compile(r"/[*].*?[*]/|//[^\n]*", re.DOTALL)
_BEGIN, _END = re.compile(r"^\s*(#|//) region \w+\s*$"), re.compile(r"^\s*(#|//) endregion\s*$")


def spoken_lines(path: Path) -> frozenset[int]:
    """Return the numbers, from 1, of the lines of a file in Python or C++ that count."""
    text = path.read_text(encoding="utf-8")
    return _of_python(text) if path.suffix == ".py" else _of_cpp(text)


def kernel_lines(path: Path) -> int:
    """Return how many lines of a file's kernel count; of the whole file where it marks none.

    Raises:
        ValueError: a region has no end.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = [number for number, line in enumerate(lines, start=1) if _BEGIN.match(line)]
    spoken = spoken_lines(path)
    if not begins:
        return len(spoken)
    found = 0
    for begin in begins:
        ends = [number for number in range(begin, len(lines) + 1) if _END.match(lines[number - 1])]
        if not ends:
            raise ValueError(f"{path.name}: line {begin}: its region has no `endregion` after it")
        end = ends[0]
        found += sum(begin < number < end for number in spoken)
    return found


def source_lines(path: Path) -> int:
    """Return how many lines of a CUDA file count, with all headers of ours that it includes."""
    return sum(len(spoken_lines(file)) for file in sources_of(path))


def _of_cpp(text: str) -> frozenset[int]:
    # A comment keeps its line ends, so that the numbers stay those of the file.
    code = _COMMENT_OF_CPP.sub(lambda found: re.sub(r"[^\n]", "", found[0]), text)
    return frozenset(number for number, line in enumerate(code.splitlines(), start=1) if line.strip())


def _of_python(text: str) -> frozenset[int]:
    spoken: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _QUIET:
            spoken |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                spoken -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return frozenset(spoken)
