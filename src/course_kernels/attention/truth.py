"""Attention as models ask for it, in float64: what `k06_wgmma.attend` is held against.

row m sees key n when  n <= p            if causal, with p = m + Nk - Nq, the row's own place
                       p - left <= n <= p + right   with a window
a row that sees no key is zeros, and its log-sum-exp is -inf
"""

from __future__ import annotations

from math import sqrt

import torch


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: tuple[int, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the answer and the log-sum-exp of one set of sequences of the same lengths.

    Args:
        q: (B, H, Nq, D).
        k, v: (B, KV, Nk, D); H is a multiple of KV.
        causal, window: see above.
    Returns:
        (B, H, Nq, D) and (B, H, Nq), float64.
    """
    H, Nq, D = q.shape[1:]
    KV, Nk = k.shape[1], k.shape[2]
    keys, values = (x.double().repeat_interleave(H // KV, dim=1) for x in (k, v))
    place = torch.arange(Nq, device=q.device)[:, None] + Nk - Nq
    key = torch.arange(Nk, device=q.device)
    seen = torch.ones(Nq, Nk, dtype=torch.bool, device=q.device)
    if causal:
        seen &= key <= place
    if window is not None:
        left, right = window
        seen &= (key >= place - left) & (key <= place + right)
    scores = (q.double() @ keys.transpose(-1, -2) / sqrt(D)).masked_fill_(~seen, -torch.inf)
    lse = torch.logsumexp(scores, dim=-1)
    weights = (scores - lse.masked_fill(lse.isinf(), 0)[..., None]).exp_()
    return weights @ values, lse


def attend_packed(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    q_begins: torch.Tensor,
    k_begins: torch.Tensor,
    *,
    causal: bool = False,
    window: tuple[int, int] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same of sequences that lie one behind the other, each with keys of its own.

    Args:
        q: (1, H, rows, D).
        k, v: (1, KV, keys, D).
        q_begins, k_begins: where each sequence begins, and where the last one ends.
        causal, window: as of `attend`, in each sequence.
    Returns:
        (1, H, rows, D) and (1, H, rows), float64.
    """
    q_places, k_places = q_begins.tolist(), k_begins.tolist()
    parts = [
        attend(q[:, :, a:b], k[:, :, c:d], v[:, :, c:d], causal=causal, window=window)
        for a, b, c, d in zip(q_places, q_places[1:], k_places, k_places[1:], strict=False)
    ]
    return torch.cat([o for o, _ in parts], dim=2), torch.cat([lse for _, lse in parts], dim=2)
