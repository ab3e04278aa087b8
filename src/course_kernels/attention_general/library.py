"""PyTorch's attention over packed sequences: FlashAttention-2 with starts, as torch carries it.

It takes what the problem's kernels take, heads that share and windows included, and returns (T, H, D). What it does not
take, float32 for one, raises RuntimeError; so does a torch that has another signature, in one line that names both.
"""

from __future__ import annotations

import torch

# The arguments that are given by position: torch keeps no promise about operators with a `_`, and adds others behind.
ARGUMENTS = "query key value cum_seq_q cum_seq_k max_q max_k dropout_p is_causal return_debug_mask"


def varlen_flash(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *,
    longest: int,
    causal: bool = False,
    window: int | None = None,
) -> torch.Tensor:
    """FlashAttention-2 over packed sequences: bfloat16 and float16, no sequence with more keys than `longest`."""
    forward = torch.ops.aten._flash_attention_forward.default
    count = len(ARGUMENTS.split())
    has = " ".join(argument.name for argument in forward._schema.arguments[:count])
    if has != ARGUMENTS:
        raise RuntimeError(
            f"aten::_flash_attention_forward: expected ({ARGUMENTS} ...), torch {torch.__version__} has ({has} ...)"
        )
    # -1: no bound on this side; with both bounds open it is told by `is_causal` alone.
    sides = {} if window is None else {"window_size_left": window, "window_size_right": 0 if causal else -1}
    lengths = longest, longest
    out: torch.Tensor = forward(q, k, v, starts_q, starts_k, *lengths, 0.0, causal, False, **sides)[0]
    return out
