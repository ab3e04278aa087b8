# right | on: cpu, gpu
# A dataclass with annotations as text: it needs its module among sys.modules while the file is loaded.
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch


@dataclass(frozen=True)
class Plan:
    uses: ClassVar[int] = 1
    rows: int = 0

    def run(self, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return x * s.reshape(self.rows, 1)


def refusals(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return Plan(rows=x.shape[0]).run(x, s)
