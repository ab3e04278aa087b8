"""Capture a call in a CUDA graph, once it has been made a few times."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from course_models.graph import WARM_UPS


def captured(call: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    """Return the graph of a call that reads and writes at fixed addresses on a GPU.

    And where its replay leaves the answer.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(WARM_UPS):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        answer = call()
    return graph, answer
