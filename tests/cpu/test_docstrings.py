"""Docstrings begin with a noun phrase or, of a function, a verb in the imperative; ruff's D401 asks for the latter."""

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGES = sorted(path.parent.name for path in SRC.glob("*/__init__.py"))
# A clause that begins so has no head: a reader learns at its end what it is about. The second row has verbs in the
# third person, which D401 sees in functions alone.
CLUMSY = re.compile(
    r"(What|Who|Whose|Whom|Which|Where|When|How|Why|Whether|Of|To|From|For|As|In|With|By|On|At|That|There|Nothing"
    r"|Is|Does|Loads|Reads|Answers questions|Grades|Compiles|Watches|Starts|Runs|Says|Gives)\b"
)


def headless(source):
    """Return (line, first line) of every docstring that begins with neither a noun nor an imperative."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [
        (node, ast.get_docstring(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, documented)
    ]
    return [
        (getattr(node, "lineno", 1), text.splitlines()[0])
        for node, text in found
        if text and CLUMSY.match(text)
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_what_a_thing_is_or_does(package):
    files = sorted((SRC / package).rglob("*.py"))
    found = {str(file.relative_to(SRC)): headless(file.read_text(encoding="utf-8")) for file in files}
    assert files
    assert {file: lines for file, lines in found.items() if lines} == {}


def test_a_headless_beginning_is_seen_wherever_it_is():
    source = '"""What a page is."""\nclass A:\n    """Reads it."""\n    async def f(self):\n        """Of it, one."""\n'
    assert [line for line, _ in headless(source)] == [1, 2, 4]
    assert headless('"""Pages."""\ndef f():\n    """Return what is left."""\n') == []
