"""Ingredients of a case: a size, its options, and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
