"""A mixture of experts, the contract: each token goes to the few feed-forward blocks that a router picks for it.

    score[t, e]  = sum over d of x[t, d] * router[e, d]
    who[t, :]    = the TOP_K experts with the largest scores, the largest first; of equal ones the lower e is first
    weight[t, :] = softmax over the scores of those alone
    h[t, e, f]   = silu(gate) * up      gate = sum over d of x[t, d] * gate_up[e, f, d], up the same of row F + f
    y[t, d]      = sum over j of weight[t, j] * sum over f of h[t, e, f] * down[e, d, f]        with e = who[t, j]

Shapes    x, y (T, D); router (E, D); gate_up (E, 2 F, D), of each expert first its F rows of gate, then those of up;
          down (E, D, F). All row-major. 1 <= TOP_K <= E
Types     bfloat16 or float16, the same for all. Scores, weights and sums in float32: of two scores that float32 does
          not tell apart the lower expert is first, and a NaN is larger than any number
Cost      6*D*F operations for each token and expert that it goes to, 2*E*D for each token's scores. Read x, the router,
          and the weights of those experts that have a token; write y. A weight is read for as many tokens as its expert
          has: few tokens are a matter of bytes, thousands one of operations
Source    Shazeer et al. 2017, arXiv:1701.06538; sizes: the published configurations of Qwen3-30B-A3B, Qwen3-235B-A22B

Who goes where is planned, and the inputs are made to fit: how many tokens an expert has decides how many bytes must
move, so it is the same for every draw of inputs. Which expert it is, and which tokens, is drawn. Without more, every
token draws its experts, all alike. With SKEW the busiest expert has SKEW hundredths of the mean, 100 being even, and
the others fall off by a power law. With `one` all tokens go to the same TOP_K experts, and the others have none.
A workload with fewer than TOP_K experts asks all of them. With E > D no x has any scores one likes: then the draw
decides, and the plan says nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from math import sqrt

import torch

from course_kernels.problem import INF, NAN, Problem, Workload

MATH = {"bfloat16": "bf16", "float16": "fp16"}

# gate and up, silu(gate), h, and an expert's answer may each be rounded to the type, and the sum is: each time up to
# 2**-9 of itself in bfloat16, 2**-12 in float16. Sums over F and over the experts average most of that; the worst of
# many elements gets several times the mean.
MAX_ERROR = {"bfloat16": 2.0**-5, "float16": 2.0**-8}

# What a token's scores are made to be: those of the experts it goes to lie in the first range, all others in the
# second. No rounding of scores, to whatever type, takes one across.
PICKED, OTHERS = (0.5, 1.5), (-1.5, -0.25)


def top_k_of(w: Workload) -> int:
    """Return how many experts a token goes to: TOP_K, or all of them where there are fewer."""
    return int(min(w.TOP_K, w.E))


def load_for(tokens: int, choices: int, experts: int, skew: int) -> list[int]:
    """Return how many of the choices each expert gets, the busiest last, none more than there are tokens.

    Args:
        skew: load of the busiest over the mean, in hundredths, 100 or more; no more than it can have is given to it.
    """
    ranks = [(e + 1) / experts for e in range(experts)]
    low, high = (
        0.0,
        64.0 * experts,
    )  # powers: with 0 all are alike, with the other nearly all goes to the last one
    for _ in range(60):
        power = (low + high) / 2
        wide = experts / sum(rank**power for rank in ranks) < skew / 100
        low, high = (power, high) if wide else (low, power)
    shares = [rank**low for rank in ranks]
    scale = choices / sum(shares)
    due = [min(share * scale, float(tokens)) for share in shares]
    load = [int(x) for x in due]
    # What is left over goes where most is missing, one each, as often as it takes.
    while left := choices - sum(load):
        room = sorted((e for e in range(experts) if load[e] < tokens), key=lambda e: (load[e] - due[e], -e))
        for e in room[:left]:
            load[e] += 1
    return load


@lru_cache(maxsize=64)
def plan(w: Workload) -> tuple[tuple[int, ...], ...]:
    """Return which experts each token goes to, before their numbers are drawn: (T, TOP_K), no two alike in a row."""
    top_k = top_k_of(w)
    if w.dims.get("one", False):
        return (tuple(range(top_k)),) * w.T
    if "SKEW" in w.dims:
        load = load_for(w.T, w.T * top_k, w.E, w.SKEW)
        # Laid out expert by expert and dealt to the tokens in turn: none has more than T, so none meets a token twice.
        row = [e for e in range(w.E) for _ in range(load[e])]
        return tuple(tuple(row[t :: w.T]) for t in range(w.T))
    draw = random.Random(w.T)
    return tuple(tuple(draw.sample(range(w.E), top_k)) for _ in range(w.T))


def loads(w: Workload) -> list[int]:
    """Return how many tokens each expert has; the order is drawn with the inputs."""
    count = Counter(e for row in plan(w) for e in row)
    return [count[e] for e in range(w.E)]


def experts_hit(w: Workload) -> int:
    """Return how many experts have a token."""
    return sum(load > 0 for load in loads(w))


def make_inputs(
    w: Workload, generator: torch.Generator, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """x (T, D), router (E, D), gate_up (E, 2 F, D), down (E, D, F).

    Weights normal with variance 1 over the length of their rows. x is normal, moved by as little as gives the scores
    that the plan asks for.
    """
    of = {"generator": generator, "device": device}
    router = (torch.randn(w.E, w.D, **of) / sqrt(w.D)).to(w.torch_dtype)
    names, turn = torch.randperm(w.E, **of), torch.randperm(w.T, **of)
    who = names[torch.tensor(plan(w), device=device)[turn]]  # [T, TOP_K]
    scores = OTHERS[0] + (OTHERS[1] - OTHERS[0]) * torch.rand(w.T, w.E, **of)
    picked = PICKED[0] + (PICKED[1] - PICKED[0]) * torch.rand(*who.shape, **of)
    scores = scores.scatter(1, who, picked).double()
    x, rows = torch.randn(w.T, w.D, **of).double(), router.double()
    if w.E <= w.D:
        x += torch.linalg.solve(rows @ rows.T, (scores - x @ rows.T).T).T @ rows
    gate_up = (torch.randn(w.E, 2 * w.F, w.D, **of) / sqrt(w.D)).to(w.torch_dtype)
    down = (torch.randn(w.E, w.D, w.F, **of) / sqrt(w.F)).to(w.torch_dtype)
    return x.to(w.torch_dtype), router, gate_up, down


def routed(x: torch.Tensor, router: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which experts each token goes to, and their weights in float64: both (T, TOP_K)."""
    scores = x.double() @ router.double().T
    # Sorted as float32, and in a way that keeps equals in their order: what lies below is nobody's choice.
    who = scores.float().sort(dim=-1, descending=True, stable=True).indices[:, :top_k]
    return who, torch.softmax(scores.gather(1, who), dim=-1)


def reference(
    x: torch.Tensor, router: torch.Tensor, gate_up: torch.Tensor, down: torch.Tensor, *, top_k: int
) -> torch.Tensor:
    """Return the answer in float64: (T, D)."""
    who, weight = routed(x, router, top_k)
    y = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
    for e in who.unique().tolist():  # one expert at a time: all of them in float64 would not fit
        token, j = (who == e).nonzero(as_tuple=True)
        gate, up = (x[token].double() @ gate_up[e].double().T).chunk(2, dim=-1)
        h = gate / (1 + (-gate).exp()) * up
        y.index_add_(0, token, weight[token, j, None] * (h @ down[e].double().T))
    return y


def reads_bytes(w: Workload) -> int:
    """X, the router, and three matrices of every expert that has a token."""
    return w.element_bytes * (w.T * w.D + w.E * w.D + experts_hit(w) * 3 * w.D * w.F)


def _check_on() -> tuple[Workload, ...]:
    sizes: tuple[tuple[tuple[int, ...], dict[str, int | bool]], ...] = (  # T, D, F, E, TOP_K
        ((1, 2, 1, 1, 1), {}),
        ((1, 64, 24, 8, 2), {}),
        ((5, 33, 17, 4, 4), {}),  # everybody is asked; rows of an odd length
        ((37, 136, 70, 16, 3), {}),  # nothing divides anything
        ((16, 256, 96, 128, 8), {}),  # a token for each expert, or none
        ((300, 128, 64, 8, 2), {}),
        ((300, 128, 64, 8, 2), {"one": True}),  # six experts without a token
        ((257, 128, 40, 8, 1), {"SKEW": 400}),
        ((70, 520, 136, 60, 4), {"SKEW": 100}),  # experts that are no power of two
        ((600, 256, 128, 16, 4), {}),  # whole tiles
    )
    names = ("T", "D", "F", "E", "TOP_K")
    return tuple(
        Workload.of(dtype, **dict(zip(names, size, strict=True)), **more)
        for dtype in ("bfloat16", "float16")
        for size, more in sizes
    )


# The blocks of Qwen3-30B-A3B, and of Qwen3-235B-A22B.
BLOCKS = {"30B": (2048, 768, 128, 8), "235B": (4096, 1536, 128, 8)}


def block(name: str, T: int, **more: int | bool) -> Workload:
    """Return a workload of one of `BLOCKS`, in bfloat16."""
    D, F, E, TOP_K = BLOCKS[name]
    return Workload.of("bfloat16", T=T, D=D, F=F, E=E, TOP_K=TOP_K, **more)


PROBLEM = Problem(
    name="moe",
    formula="y[t] = sum over j of weight[t, j] * down[e] (silu(gate[e] x[t]) * up[e] x[t]), e = who[t, j]",
    make_inputs=make_inputs,
    reference=reference,
    reads_bytes=reads_bytes,
    writes_bytes=lambda w: w.element_bytes * w.T * w.D,
    flops=lambda w: 2 * w.T * w.E * w.D + 6 * w.T * top_k_of(w) * w.D * w.F,
    math=lambda w: MATH[w.dtype],
    max_error=lambda w: MAX_ERROR[w.dtype],
    options=lambda w: {"top_k": top_k_of(w)},
    # A NaN or an infinity in x takes its token's weights, and so its row. No large number: gate times up overflows. In
    # the weights a NaN takes a column of the tokens of its expert, or all of them; an infinity there meets zeros.
    hard=lambda w: ({0: (0.0, -0.0, NAN, INF, -INF)}, {3: (0.0, -0.0, NAN)}, {2: (NAN,)}, {1: (NAN,)}),
    check_on=_check_on(),
    time_on=(
        *(block("30B", T) for T in (1, 16, 256, 4096)),
        *(block("30B", T, **more) for T in (16, 4096) for more in ({"SKEW": 100}, {"one": True})),
        *(block("235B", T) for T in (16, 4096)),
    ),
)
