"""Eight kernels that must be refused, and one that must not.

Contract  course_kernels/refusals/problem.py
Idea      every fault here was made in earnest by somebody, by accident or to win a race
Limits    `another_stream` needs a GPU; `faster_than_floor` is refused only where a floor is known
"""

from __future__ import annotations

import math

import torch


def honest(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Right: x (M, N) times s (M) down the rows, in new memory."""
    return x * s[:, None]


def half_written(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Writes the upper half; the lower half is whatever the memory held, often the last right answer."""
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
    """All right but the last element: a norm over millions of elements does not notice."""
    y = x * s[:, None]
    y[-1, -1] += 0.5
    return y


def input_modified(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works in place and returns a copy: the second call would scale twice."""
    x.mul_(s[:, None])
    return x.clone()


def cached_result(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Answers once for every tensor, and never looks at its values again."""
    if not hasattr(x, "answer"):
        x.answer = x * s[:, None]
    return x.answer


def another_stream(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Works on a stream that nobody waits for: events on the current stream time nothing."""
    with torch.cuda.stream(torch.cuda.Stream()):
        return x * s[:, None]


def faster_than_floor(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Notices when the values change, by the tensors' version counters: every check of the answer passes."""
    versions = (x._version, s._version)
    if getattr(x, "answered", None) != versions:
        x.answer, x.answered = x * s[:, None], versions
    return x.answer


CHEATS = (
    half_written,
    all_nan,
    wrong_axis,
    one_element_off,
    input_modified,
    cached_result,
    another_stream,
    faster_than_floor,
)
