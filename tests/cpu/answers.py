"""The answers of the labs, for tests that grade many files with the same beginning."""

import ast
from collections import Counter


def repeats(file, answer):
    """Whether a file has all the code of an answer, line by line and nothing between, and only adds to it.

    What gives one of the answer's names to something else changes the answer.
    """
    there, code = code_of(file), code_of(answer)
    if file.suffix == ".py" and max(names_of(file).values(), default=0) > 1:
        return False
    return any(there[at : at + len(code)] == code for at in range(len(there)))


def code_of(file):
    lines = file.read_text().partition("\nif __name__")[0].splitlines()
    return [line for line in lines if line and not line.startswith(('"""', "#", "//"))]


def names_of(file):
    """How often each name of a file's own gets a value."""
    found = Counter()
    for node in ast.parse(file.read_text()).body:
        found.update([node.name] if hasattr(node, "name") else [])
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            found.update(
                name.id
                for name in ast.walk(node)
                if isinstance(getattr(name, "ctx", None), ast.Store) and hasattr(name, "id")
            )
    return found
