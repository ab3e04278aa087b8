"""A mixture of experts, kernel 1: one expert after the other, in torch.

Contract  problem.py
Idea      for each expert that somebody goes to: fetch its tokens, run its feed-forward block on them, and add what
          comes out to their rows
Against   every expert for every token, most of it with a weight of zero: E / TOP_K times the products
Cost      ten operators for each expert, each through memory. Their shapes are known when the device has said who goes
          where, so the host waits for it, and once more for each expert
Limits    128 experts are more than a thousand launches. The shapes change from call to call: no CUDA graph holds them
Next      k02_sorted, where all experts are one multiply and the host waits for nothing
Source    Shazeer et al. 2017, arXiv:1701.06538
"""

from __future__ import annotations

import torch
from torch.nn import functional

from course_kernels.moe.arguments import sizes_of


# region kernel
def moe(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, *, top_k: int
) -> torch.Tensor:
    """Return for each token the weighted sum of its experts' answers.

    Args:
        x: (T, D) bfloat16 or float16, contiguous.
        router: (E, D), the same type, contiguous.
        gate_up: (E, 2 F, D), the same type, contiguous, the rows of gate first.
        down: (E, D, F), the same type, contiguous.
        top_k: experts of a token.
    Returns:
        (T, D), the same type.
    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    sizes_of(x, router, gate_up, down, top_k)
    # In float64, since a library adds up float32 in another order for another column, and equal scores come out apart;
    # then a stable sort, which leaves the lower of equal experts first: topk does not promise it.
    scores = (x.double() @ router.double().T).float()  # (T, E)
    best, who = (found[:, :top_k] for found in scores.sort(dim=-1, descending=True, stable=True))
    weight = torch.softmax(best, dim=-1)  # (T, TOP_K)
    y = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    for e in who.unique().tolist():
        token, j = (who == e).nonzero(as_tuple=True)
        gate, up = (x[token] @ gate_up[e].T).chunk(2, dim=-1)
        answers = (functional.silu(gate) * up) @ down[e].T
        y.index_add_(0, token, answers * weight[token, j, None])
    return y.to(x.dtype)


# endregion
