"""A prefill captured in a CUDA graph: a thousand launches become one, so that its time is the card's, not the host's.

    graph = CapturedPrefill(bench.prefilling(model), torch.zeros(1, 1024, dtype=torch.int64, device="cuda"))
    logits = graph(tokens)

As with a decode step (graph.py), the same kernels are replayed on the same addresses: the number of tokens is fixed,
and which tokens they are lies on the device.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from course_models.capture import captured


class CapturedPrefill:
    """A function of tokens, replayed from a graph."""

    def __init__(self, function: Callable[[Tensor], Tensor], tokens: Tensor) -> None:
        """Call it a few times, then capture one call.

        Args:
            function: tokens (B, N) to logits; what it needs besides lies at fixed addresses.
            tokens: (B, N) int64, on a GPU: the shape that is captured. They are copied.
        Raises:
            RuntimeError: tokens that are not on a GPU.
        """
        if tokens.device.type != "cuda":
            raise RuntimeError(
                f"graph: expected tokens on a GPU, got {tokens.device}: call the function itself there, "
                "a CUDA graph is for the launches of a GPU"
            )
        self._tokens = tokens.clone()
        self._function = function  # the graph writes where its caches lie, and knows addresses alone
        self._graph, self._logits = captured(lambda: function(self._tokens))

    def __call__(self, tokens: Tensor) -> Tensor:
        """Call the function on tokens of the captured shape; the logits are the caller's own.

        Raises:
            ValueError: another shape than the captured one.
        """
        if tokens.shape != self._tokens.shape:
            raise ValueError(f"tokens: expected shape {tuple(self._tokens.shape)}, got {tuple(tokens.shape)}")
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits.clone()
