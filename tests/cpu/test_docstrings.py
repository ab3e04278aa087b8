"""Docstrings begin with a noun phrase or an imperative: what a thing is, or what it does, comes first."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGES = ("course_judge", "course_labs", "course_profile")
NO_BEGINNING = {
    *(
        "What",
        "Who",
        "Whose",
        "Which",
        "Where",
        "When",
        "How",
        "Why",
        "Whether",
        "Of",
        "To",
        "From",
        "For",
        "There",
    ),
    *(
        "Is",
        "Does",
        "Loads",
        "Reads",
        "Answers questions",
        "Grades",
        "Compiles",
        "Watches",
        "Starts",
        "Runs",
        "Says",
    ),
}


def beginnings(source):
    """(line, first words) of every docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text.split("\n")[0]


def clumsy(text):
    return any(text == words or text.startswith((f"{words} ", f"{words}:")) for words in NO_BEGINNING)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_what_a_thing_is_or_does(package):
    found = [
        f"{file.relative_to(SRC)}:{line}: {text}"
        for file in sorted((SRC / package).rglob("*.py"))
        for line, text in beginnings(file.read_text(encoding="utf-8"))
        if clumsy(text)
    ]
    assert found == []


def test_a_clumsy_beginning_is_seen():
    source = '"""What it is."""\ndef f():\n    """Of these, one."""\nclass A:\n    """Grades files."""\n'
    assert [line for line, text in beginnings(source) if clumsy(text)] == [1, 2, 4]
