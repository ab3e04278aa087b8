"""Lab plain_attention: softmax(Q K^T / sqrt(d)) V, a whole row of scores in every program."""

from math import sqrt

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, N, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):
    """The answer of one token in one head: D numbers."""
    m = tl.program_id(0)  # this token's place
    head = tl.program_id(1).to(tl.int64) * N * D  # where this head begins, in all four
    n = tl.arange(0, BLOCK)  # [BLOCK] places of keys; from N on there is none
    d = tl.arange(0, D)  # [D]
    there = n[:, None] < N  # [BLOCK, 1]
    q = tl.load(q_ptr + head + m * D + d)  # [D]
    k = tl.load(k_ptr + head + n[:, None] * D + d[None, :], mask=there, other=0.0)  # [BLOCK, D]
    s = tl.sum(q[None, :] * k, axis=1) * scale  # [BLOCK] this token's row of scores
    s = tl.where(n < N, s, -float("inf"))  # a key that does not exist gets no share
    if CAUSAL:
        s = tl.where(n <= m, s, -float("inf"))  # no looking ahead
    e = tl.exp(s - tl.max(s, axis=0))  # so that no exponential overflows
    p = e / tl.sum(e, axis=0)  # [BLOCK] shares
    v = tl.load(v_ptr + head + n[:, None] * D + d[None, :], mask=there, other=0.0)  # [BLOCK, D]
    tl.store(o_ptr + head + m * D + d, tl.sum(p[:, None] * v, axis=0))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
    """The answer (B, H, N, D), shaped like q, k and v: one program for each of its rows."""
    B, H, N, D = q.shape
    o = torch.empty_like(q)
    BLOCK = triton.next_power_of_2(N)  # room for a whole row of scores
    attention_kernel[(N, B * H)](q, k, v, o, N, 1 / sqrt(D), CAUSAL=causal, D=D, BLOCK=BLOCK)
    return o


@triton.jit
def grouped_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, N, scale, GROUP, CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr
):
    """The answer of one token in one head of queries; GROUP of them share a head of keys and values."""
    m = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64) * N * D
    shared = tl.program_id(1).to(tl.int64) // GROUP * N * D  # where its keys begin, and its values
    n = tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    there = n[:, None] < N
    q = tl.load(q_ptr + head + m * D + d)
    k = tl.load(k_ptr + shared + n[:, None] * D + d[None, :], mask=there, other=0.0)
    s = tl.sum(q[None, :] * k, axis=1) * scale
    s = tl.where(n < N, s, -float("inf"))
    if CAUSAL:
        s = tl.where(n <= m, s, -float("inf"))
    e = tl.exp(s - tl.max(s, axis=0))
    p = e / tl.sum(e, axis=0)
    v = tl.load(v_ptr + shared + n[:, None] * D + d[None, :], mask=there, other=0.0)
    tl.store(o_ptr + head + m * D + d, tl.sum(p[:, None] * v, axis=0))


def grouped_attention(q, k, v, *, causal=False):
    """The answer (H, N, D) of H heads of queries, which share KV heads of keys and values, (KV, N, D)."""
    heads, N, D = q.shape
    o = torch.empty_like(q)
    group = heads // k.shape[0]
    BLOCK = triton.next_power_of_2(N)
    grouped_kernel[(N, heads)](q, k, v, o, N, 1 / sqrt(D), group, CAUSAL=causal, D=D, BLOCK=BLOCK)
    return o
