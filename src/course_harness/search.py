"""Search: mechanical changes of named constants in one of the course's kernels: tile, warps, stages, vector width.

A constant is a whole number that a name is given at the top of the file, alone or in a row of names; or, as
"HOPPER.warps", the keyword of that name in all calls in what the name is given. Nothing of the file is run.
"""

from __future__ import annotations

import ast
import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

from course_harness.proposer import History, Proposal
from course_harness.tasks import KERNELS, Task, Unusable

MOST = 256  # proposals of one task


class Search:
    """Proposer of a kernel of ours with other constants; a sample is one choice of them, and has one round."""

    name, own = "search", False

    def __init__(self, task: Task, *, seed: int | None = None, most: int = MOST) -> None:
        """
        Args:
            task: one with a kernel and constants.
            seed: choices are drawn, none twice; without it they come in order.
            most: choices, at most.
        Raises:
            Unusable: the task has nothing to search, or its kernel has no such constant.
        """
        if not task.kernel:
            raise Unusable(f"{task.name}: tasks.toml names no kernel whose constants could be searched")
        if not 0 < most <= MOST:
            raise Unusable(f"search: expected 1 to {MOST} choices, got {most}")
        self._task, self._seed, self._most = task, seed, most
        self._text = (KERNELS / task.kernel).read_text(encoding="utf-8")
        self.choices = _choices(task.constants, seed, most)
        changed(self._text, {name: values[0] for name, values in task.constants.items()})  # or it is said now

    def described(self) -> dict[str, Any]:
        """Return which kernel, which constants, and how they are chosen."""
        constants = {name: list(values) for name, values in self._task.constants.items()}
        return {"kernel": self._task.kernel, "constants": constants, "seed": self._seed, "most": self._most}

    def propose(self, task: Task, history: History) -> Proposal | None:
        """Return the kernel with the choice of this sample."""
        if history.round > 1 or history.sample > len(self.choices):
            return None
        choice = self.choices[history.sample - 1]
        note = ", ".join(f"{name} = {value}" for name, value in choice.items())
        return Proposal(changed(self._text, choice), note, {"constants": choice})


def _choices(constants: Mapping[str, Any], seed: int | None, most: int) -> list[dict[str, int]]:
    sizes = [len(values) for values in constants.values()]
    count = math.prod(sizes)
    if seed is None:
        rows = itertools.islice(itertools.product(*constants.values()), most)
        return [dict(zip(constants, row, strict=True)) for row in rows]
    found = []
    for number in random.Random(seed).sample(range(count), min(count, most)):
        row = {}
        for name, values in constants.items():
            number, at = divmod(number, len(values))
            row[name] = values[at]
        found.append(row)
    return found


def changed(text: str, choice: Mapping[str, int]) -> str:
    """Return a file with these constants in place of its own.

    Raises:
        Unusable: it has no such constant.
    """
    tree = ast.parse(text)
    places = [(node, str(value)) for name, value in choice.items() for node in _places(tree, name)]
    lines = text.splitlines(keepends=True)
    # From the end, so that what comes before stays where it is.
    for node, value in sorted(places, key=lambda place: (place[0].lineno, place[0].col_offset), reverse=True):
        line = lines[node.lineno - 1].encode()
        assert node.end_col_offset is not None
        lines[node.lineno - 1] = (
            line[: node.col_offset] + value.encode() + line[node.end_col_offset :]
        ).decode()
    return "".join(lines)


def _places(tree: ast.Module, name: str) -> list[ast.Constant]:
    """Return where a constant stands."""
    name, _, keyword = name.partition(".")
    found: list[ast.expr] = []
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and not keyword:
            pairs = zip(target.elts, value.elts, strict=False)
            found += [of for one, of in pairs if isinstance(one, ast.Name) and one.id == name]
        elif isinstance(target, ast.Name) and target.id == name:
            found += _keywords(value, keyword) if keyword else [value]
    numbers = [one for one in found if isinstance(one, ast.Constant) and type(one.value) is int]
    if not numbers or len(numbers) < len(found):
        full = f"{name}.{keyword}" if keyword else name
        raise Unusable(f"the kernel has no constant {full} that is a whole number")
    return numbers


def _keywords(value: ast.expr, keyword: str) -> list[ast.expr]:
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    return [one.value for call in calls for one in call.keywords if one.arg == keyword]
