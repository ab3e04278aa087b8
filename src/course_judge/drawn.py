"""A case of values, and what it is made of: a size, its options, and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from course_kernels.problem import Workload

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Drawn:
    """Ingredients of a case.

    Attributes:
        options: keyword arguments of the kernel.
        module: the problem's own, whose functions say what its inputs must be.
    """

    workload: Workload
    options: dict[str, Any]
    generator: torch.Generator
    module: Any

    def normal(self, *shape: int) -> torch.Tensor:
        """Draw normal numbers in float32."""
        return torch.randn(shape, generator=self.generator, device=self.generator.device)

    def below(self, most: int, *shape: int) -> torch.Tensor:
        """Draw whole numbers from 0 to below `most`."""
        return torch.randint(most, shape, generator=self.generator, device=self.generator.device)

    def one_of(self, values: Sequence[float], *shape: int) -> torch.Tensor:
        """Draw from some values, in float64."""
        device = self.generator.device
        return torch.tensor(values, dtype=torch.float64, device=device)[self.below(len(values), *shape)]

    def spread(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Draw numbers of either sign in float64, from 2**low to 2**high, as many in each octave."""
        return self.signs(*shape) * torch.exp2(low + (high - low) * self.uniform(*shape))

    def uniform(self, *shape: int) -> torch.Tensor:
        """Draw numbers from 0 to 1 in float64."""
        return torch.rand(shape, generator=self.generator, dtype=torch.float64, device=self.generator.device)

    def signs(self, *shape: int) -> torch.Tensor:
        """Draw 1 and -1 in float64."""
        return 1 - 2 * self.below(2, *shape).double()


@dataclass(frozen=True)
class Promise:
    """A case of values that a contract covers.

    Attributes:
        name: what is special about its inputs, said at the end of a complaint.
        change: usual inputs -> those of the case; None where a size has no room for it.
        slack: how many times the usual error is allowed.
        own: the usual error -> what is allowed of each number, held against that number alone; None: as usual.
        exact: every bit counts, that of a zero's sign too.
        whole: every answer is the truth, rounded once to its type; the sign of a zero does not count.
        far: asked on the sizes that are longest, and past the largest announced, too.
        long: asked on the sizes that are longest, too.
        types: and on those that are of every type.
        least: asked on the sizes alone that read least.
        square: asked on sizes whose lengths are equal, too.
        options: keyword arguments in place of those of the size.
        at_least: an error that is always allowed: what the rounding of the inputs themselves comes to.
    """

    name: str
    change: Callable[[Drawn, Tensors], Tensors | None]
    slack: float = 1.0
    own: Callable[[float], float] | None = None
    exact: bool = False
    whole: bool = False
    far: bool = False
    at_least: float = 0.0
    long: bool = False
    types: bool = False
    least: bool = False
    square: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def kept_alike(tensors: Sequence[torch.Tensor]) -> Tensors:
    """Return copies in row-major order; where one tensor stands twice, so does its copy."""
    copies = {id(x): x.clone(memory_format=torch.contiguous_format) for x in tensors}
    return tuple(copies[id(x)] for x in tensors)
