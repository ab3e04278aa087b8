"""Speculative sampling, the contract: which drafted tokens stay, and the token that the target puts behind them.

    x = drafted[b, i] passes when uniforms[b, i] * Q[b, i, x] < P[b, i, x]        P is `target`, Q is `draft`
    accepted[b] = a       the positions before the first whose token does not pass; K when all pass
    W[v] = max(P[b, a, v] - Q[b, a, v], 0), or P[b, K, v] when a = K: what the next token is drawn from
    y = the first v at which W[0] + ... + W[v] > uniforms[b, K] * (the sum of W)
    tokens[b] = drafted[b, 0], ..., drafted[b, a - 1], y, and -1 behind

A token of the draft passes with probability min(1, P / Q), which takes min(P, Q) off P; what is left of P is W, and y
makes up for it: each token is distributed as P says, whatever Q is (Leviathan, Kalman & Matias 2023; Chen et al. 2023).
This asks that x was drawn from Q[b, i, :], and that all uniform numbers are independent.

Shapes    P (B, K + 1, V), Q (B, K, V), drafted (B, K), temperature (B,), uniforms (B, K + 1); tokens (B, K + 1),
          accepted (B,). Row-major
Types     P, Q, temperature and uniforms float32; drafted, tokens and accepted int32. A workload's type is that of the
          tokens. Its flag `greedy` says that all rows are, `mixed` that every third is; `certain` that there is one
          answer, whatever the uniform numbers, so that a library with numbers of its own can be checked
Greedy    temperature 0: x passes when P[b, i, :] is largest there, the first of equals; y is the first of the largest.
          Only the order of P counts then, so that logits will do; Q and the uniform numbers are not looked at. Another
          temperature changes nothing here: P and Q have been divided by it, filtered and normalised before
Odd       a drafted token outside of 0 ... V - 1 does not pass, and y is drawn from P alone: so ends a shorter draft. A
          NaN and what is below zero count as zero (in a greedy row a NaN as -inf); an infinity is out of the contract
          there. Where rounding leaves nothing of W, y is drawn from P; where there is nothing in P either, y is 0
Cost      the numbers of drafted tokens, and two rows of V, or one when all pass; of a greedy sequence the a + 1 rows
          that were looked at

u * Q < P is exact in float64, where two float32 have room for all digits of their product. The sums are those of a
kernel's float32, off by some 2**-20: y may be the neighbour of the right one at the very edge of its share, so
`make_inputs` lays the last uniform number into the middle of a share.
"""

from __future__ import annotations

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

# The shares that the last uniform number is laid into: far larger than what one number that changes moves an edge by.
LEAST_SHARE = 2.0**-9

TEMPERATURES = (0.7, 1.0, 1.5, 0.25)  # of rows that are drawn, in turn
MIXED = 3  # every so many rows one is greedy
LAST = 1 - 2.0**-24  # the largest float32 below 1, which a uniform number may be


def wanted(w: Workload) -> list[int]:
    """Return how many tokens `make_inputs` has every sequence accept: each number as often as any other."""
    return [w.K if w.V == 1 else b % (w.K + 1) for b in range(w.B)]  # of one token there is none to refuse


def greedy_rows(w: Workload) -> list[bool]:
    """Return which sequences have temperature 0."""
    mixed = w.dims.get("mixed", False)
    return [bool(w.dims.get("greedy", False) or (mixed and b % MIXED == 1)) for b in range(w.B)]


# --- the truth ------------------------------------------------------------------------------------


def shares_of(x: torch.Tensor) -> torch.Tensor:
    """Return probabilities as float64, with zero for a NaN and for what is below zero."""
    return torch.where(x > 0, x, torch.zeros_like(x)).double()


def first_largest(x: torch.Tensor) -> torch.Tensor:
    """Return where each row has its largest number, the first of equals; 0 where all is NaN or -inf."""
    x = torch.where(x.isnan(), -INF, x)
    return (x == x.max(-1, keepdim=True).values).to(torch.int8).argmax(-1)


def passes(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
) -> torch.Tensor:
    """Return which drafted tokens pass, each looked at by itself: (B, K) bool."""
    _, K, V = draft.shape
    x = drafted.long().clamp(0, V - 1)[..., None]
    p, q = (shares_of(of.gather(-1, x)[..., 0]) for of in (target[:, :K], draft))
    warm = (drafted == x[..., 0]) & (uniforms[:, :K].double() * q < p)
    return torch.where(temperature[:, None] > 0, warm, drafted == first_largest(target[:, :K]))


def left_over(
    target: torch.Tensor, draft: torch.Tensor, drafted: torch.Tensor, accepted: torch.Tensor
) -> torch.Tensor:
    """Return W, what the next token of each sequence is drawn from: (B, V) float64, not normalised."""
    B, K, V = draft.shape
    each, at = torch.arange(B, device=draft.device), accepted.clamp(max=K - 1)
    p, q, x = shares_of(target[each, accepted]), shares_of(draft[each, at]), drafted[each, at]
    refused = (accepted < K) & (x >= 0) & (x < V)
    w = (p - torch.where(refused[:, None], q, 0.0)).clamp(min=0)
    return torch.where(w.sum(-1, keepdim=True) > 0, w, p)


def reference(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    temperature: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens, (B, K + 1), and how many were accepted, (B,), as float64: every number of a token is one."""
    B, K, _ = draft.shape
    each = torch.arange(B, device=draft.device)
    accepted = passes(target, draft, drafted, temperature, uniforms).long().cumprod(1).sum(1)
    sums = left_over(target, draft, drafted, accepted).cumsum(-1)
    drawn = (sums <= uniforms[:, -1:].double() * sums[:, -1:]).sum(-1)
    drawn = torch.where(sums[:, -1] > 0, drawn, 0)
    y = torch.where(temperature > 0, drawn, first_largest(target[each, accepted]))
    place = torch.arange(K + 1, device=draft.device)
    tokens = torch.where(place < accepted[:, None], torch.nn.functional.pad(drafted, (0, 1)), -1)
    return torch.where(place == accepted[:, None], y[:, None], tokens).double(), accepted.double()


# --- inputs -----------------------------------------------------------------------------------------


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Make two softmax rows that are near each other for every position, and tokens and numbers that give `wanted`.

    A draft that is known to pass has the distribution min(P, Q), one that is known not to pass max(Q - P, 0): so are
    they drawn here, and the uniform numbers from where they lead to that.
    """
    of = {"generator": generator, "device": device}
    B, K, V = w.B, w.K, w.V
    accepted = torch.tensor(wanted(w), device=device)
    cold = torch.tensor(greedy_rows(w), device=device)
    turn = torch.arange(B, device=device)
    temperature = torch.tensor(TEMPERATURES, device=device)[turn % len(TEMPERATURES)]
    temperature = torch.where(cold, 0.0, temperature)
    stays = torch.arange(K, device=device) < accepted[:, None]  # (B, K)
    logits = 3 * torch.randn(B, K + 1, V, **of)
    if w.dims.get("certain", False):
        target, draft, drafted = _certain(logits, stays)
    else:
        target, draft = logits.softmax(-1), (logits[:, :K] + torch.randn(B, K, V, **of)).softmax(-1)
        # Where rounding has made Q nowhere larger than P, another row takes its place.
        draft = torch.where((draft > target[:, :K]).any(-1, keepdim=True), draft, draft.roll(1, -1))
        law = torch.where(
            stays[..., None], torch.minimum(target[:, :K], draft), (draft - target[:, :K]).clamp(min=0)
        )
        drafted = torch.multinomial(law.flatten(0, 1), 1, generator=generator).view(B, K)
    uniforms = _uniforms(target, draft, drafted, accepted, stays, torch.rand(B, K + 1, **of), generator)
    target = torch.where(cold[:, None, None], logits, target)
    best = first_largest(target[:, :K])
    drafted = torch.where(cold[:, None], torch.where(stays, best, (best + 1) % V), drafted)
    return target, draft, drafted.int(), temperature, uniforms


def _certain(logits: torch.Tensor, stays: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Make rows with one token each, and drafts that it has half of: whatever is drawn, there is one answer."""
    V = logits.shape[-1]
    one = logits.argmax(-1)
    target = torch.nn.functional.one_hot(one, V).float()
    drafted = torch.where(stays, one[:, :-1], (one[:, :-1] + 1) % V)
    half = torch.nn.functional.one_hot(drafted, V).float()
    return target, (half + half.roll(1, -1)) / 2, drafted


def _uniforms(
    target: torch.Tensor,
    draft: torch.Tensor,
    drafted: torch.Tensor,
    accepted: torch.Tensor,
    stays: torch.Tensor,
    within: torch.Tensor,
    generator: torch.Generator,
) -> torch.Tensor:
    """Choose uniform numbers under which the tokens pass as `stays` says; the last is in the middle of a share."""
    K = stays.shape[1]
    p, q = (of.gather(-1, drafted[..., None])[..., 0].double() for of in (target[:, :K], draft))
    edge = (p / q).clamp(0, 1)
    within = 0.05 + 0.9 * within.double()
    uniforms = (
        torch.where(stays, within[:, :K] * edge, edge + within[:, :K] * (1 - edge)).float().clamp(max=LAST)
    )
    # An edge at the end of a float32's digits.
    uniforms = torch.where((uniforms.double() * q < p) == stays, uniforms, torch.where(stays, 0.0, LAST))
    rest = left_over(target, draft, drafted, accepted)
    share = rest / rest.sum(-1, keepdim=True)
    drawn = torch.multinomial(share.float(), 1, generator=generator)
    drawn = torch.where(share.gather(-1, drawn) >= LEAST_SHARE, drawn, share.argmax(-1, keepdim=True))
    middle = share.cumsum(-1).gather(-1, drawn) - share.gather(-1, drawn) / 2
    return torch.cat((uniforms, middle.float().clamp(0, LAST)), -1)


# --- the problem ------------------------------------------------------------------------------------


def reads_bytes(w: Workload) -> int:
    """Return what must be looked at to know `wanted`: it is made so, and so each sequence's bytes are known."""
    total = 0
    for a, cold in zip(wanted(w), greedy_rows(w), strict=True):
        asked = min(a + 1, w.K)  # positions that are decided
        total += 4 + 4 * asked
        total += 4 * w.V * (a + 1) if cold else 4 * (asked + 1) + 8 * a + 4 * w.V * (2 if a < w.K else 1)
    return total


def flops(w: Workload) -> int:
    """Return a comparison for each number of a greedy row; a subtraction, a comparison and a sum elsewhere."""
    return sum(w.V * ((a + 1) if cold else 3) for a, cold in zip(wanted(w), greedy_rows(w), strict=True))


def _hard(w: Workload) -> tuple[dict[int, tuple[float, ...]], ...]:
    ends = (INF, -INF) if w.dims.get("greedy", False) else ()
    return {0: (0.0, -0.0, NAN, *ends)}, {1: (0.0, -0.0, NAN)}


def _check_on() -> tuple[Workload, ...]:
    sizes = ((1, 1, 1), (2, 1, 2), (9, 3, 7), (13, 4, 1000), (3, 8, 2049), (7, 5, 32003))  # B, K, V
    kinds = (("mixed", sizes[1:]), ("greedy", sizes[2:4]), ("certain", sizes[2:5]))
    return (
        *(Workload.of("int32", B=B, K=K, V=V) for B, K, V in sizes),
        *(Workload.of("int32", B=B, K=K, V=V, **{kind: True}) for kind, of in kinds for B, K, V in of),
    )


PROBLEM = Problem(
    name="speculative_sampling",
    formula="accept while uniforms * draft < target; then one token from max(target - draft, 0), or from the target",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: 4 * w.B * (w.K + 2),
    flops=flops,
    math=lambda w: "fp32",
    max_error=lambda w: 0.0,  # a token is the right one or not
    hard=_hard,
    check_on=_check_on(),
    # The vocabulary of the Llama 3 family, four drafted tokens, for one sequence and for a batch of them.
    time_on=tuple(
        Workload.of("int32", B=B, K=4, V=128256, **more)
        for B in (1, 64)
        for more in ({}, {"greedy": True}, {"certain": True})
    ),
)
