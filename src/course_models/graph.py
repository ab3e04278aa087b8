"""A decode step captured in a CUDA graph: hundreds of launches become one.

A graph replays the same kernels on the same addresses. So the batch is fixed, the cache has fixed room, and what
changes from step to step lies on the device: the token, and the number of tokens so far.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_models.model import Cache, Model

WARM_UPS = 3  # libraries take memory and choose their kernels in the first calls, which no graph may hold


class CapturedDecode:
    """`model.decode` for one cache, replayed from a graph.

    Its logits lie in memory of the graph: the next call writes over them.
    """

    def __init__(self, model: Model, cache: Cache) -> None:
        """Run a few steps, then capture one; the cache holds afterwards what it held.

        Raises:
            RuntimeError: the cache is not on a GPU.
            CacheFull: the cache has no room for a step.
        """
        if cache.keys.device.type != "cuda":
            raise RuntimeError(
                f"graph: expected a cache on a GPU, got {cache.keys.device}: call model.decode there, "
                "a CUDA graph is for the launches of a GPU"
            )
        self.cache = cache
        self._model = model  # the graph holds addresses of its weights, and keeps nothing alive
        self._token = torch.zeros(cache.batch, dtype=torch.int64, device=cache.keys.device)
        held, lengths = cache.held, cache.lengths.clone()

        def step() -> Tensor:
            logits = model.decode(self._token, cache)
            cache.held = held
            return logits

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                step()
                cache.lengths.copy_(lengths)  # the row behind the end was written; it is not held
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = step()
        cache.lengths.copy_(lengths)

    def __call__(self, token: Tensor, cache: Cache) -> Tensor:
        """Decode as `model.decode` does.

        Raises:
            ValueError: another cache than the captured one, or another batch.
            CacheFull: no room for one more.
        """
        if cache is not self.cache:
            raise ValueError("cache: expected the one that was captured: capture a graph for each cache")
        if token.shape != self._token.shape:
            raise ValueError(f"token: expected shape {tuple(self._token.shape)}, got {tuple(token.shape)}")
        cache.claim(1)
        self._token.copy_(token)
        self._graph.replay()
        return self._logits
