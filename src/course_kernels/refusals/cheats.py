"""Kernels that must be refused, and one that must not.

Contract  course_kernels/refusals/problem.py
Idea      every fault here was made in earnest by somebody, by accident or to win a race
Limits    `another_stream` needs a GPU; `looks_who_asks` and `faster_than_floor` are refused only where something is
          timed, the second only where a floor is known
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch


def honest(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Right: x (M, N) times s (M) down the rows, in new memory."""
    return x * s[:, None]


def half_written(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Write the upper half; the lower half is whatever the memory held, often the last right answer."""
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    torch.mul(x[:half], s[:half, None], out=y[:half])
    return y


def all_nan(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """NaN everywhere: a test that asks `error > allowed` lets it pass."""
    return torch.full_like(x, math.nan)


def wrong_axis(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Scales the columns."""
    return x * s[None, :]


def one_element_off(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Return all right but the last element: a norm over millions of elements does not notice."""
    y = x * s[:, None]
    y[-1, -1] += 0.5
    return y


def nan_clamped(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Tidies up: NaN becomes 0, infinity the largest number. Whoever looks for the NaN later finds none."""
    return torch.nan_to_num(x * s[:, None])


def input_modified(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works in place and returns a copy: the second call would scale twice."""
    x.mul_(s[:, None])
    return x.clone()


def cached_result(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Answer once for every tensor, and never look at its values again."""
    if not hasattr(x, "answer"):
        x.answer = x * s[:, None]
    return x.answer


def watches_versions(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works only when the version counters tell that somebody has written to its inputs."""
    versions = (x._version, s._version)
    if getattr(x, "answered", None) != versions:
        x.answer, x.answered = x * s[:, None], versions
    return x.answer.clone()


def same_memory(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Right each time, but every answer lies where the one before lies: who kept that has lost it."""
    if not hasattr(x, "room"):
        x.room = torch.empty_like(x)
    return torch.mul(x, s[:, None], out=x.room)


def view_returned(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Store the answer column by column and turn a view round: the next reader pays for the transpose."""
    return (x.t().contiguous() * s).t()


class _Later(torch.Tensor):
    """A tensor that multiplies when somebody looks."""

    parts: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            done = [a.parts[0] * a.parts[1][:, None] if isinstance(a, _Later) else a for a in args]
            return func(*done, **(kwargs or {}))


def lazy_tensor(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Hands out a promise: the work is done when the answer is compared, out of the clock's sight."""
    later = torch.empty_like(x).as_subclass(_Later)
    later.parts = (x, s)
    return later


def truth_stolen(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Cannot multiply; looks among the variables of everybody who called it for an answer in double precision."""
    frame = sys._getframe(1)
    while frame is not None:
        for value in frame.f_locals.values():
            for found in value if isinstance(value, tuple | list) else (value,):
                if (
                    isinstance(found, torch.Tensor)
                    and found.dtype == torch.float64
                    and found.shape == x.shape
                ):
                    return found.to(x.dtype)
        frame = frame.f_back  # type: ignore[assignment]
    return torch.zeros_like(x)


def another_stream(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works on a stream that nobody waits for: events on the current stream time nothing."""
    with torch.cuda.stream(torch.cuda.Stream()):
        return x * s[:, None]


def looks_who_asks(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works whenever the check asks; whoever else asks again with the same tensors gets the old answer."""
    asked_by = Path(sys._getframe(1).f_code.co_filename).name
    if asked_by == "check.py" or not hasattr(x, "answer"):
        x.answer = x * s[:, None]
    return x.answer


def faster_than_floor(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Peeks at one number, and works only when that has changed: every check of the answer passes."""
    peeked = float(x[0, 0])
    if getattr(x, "peeked", None) != peeked:
        x.answer, x.peeked = x * s[:, None], peeked
    return x.answer


CHEATS = (
    half_written,
    all_nan,
    wrong_axis,
    one_element_off,
    nan_clamped,
    input_modified,
    cached_result,
    watches_versions,
    same_memory,
    view_returned,
    lazy_tensor,
    truth_stolen,
    another_stream,
    looks_who_asks,
    faster_than_floor,
)
