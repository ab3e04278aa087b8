"""Cases of values that a contract covers and that usual inputs never have: one for each promise.

Scores past the 88 at which the exponential of a float32 overflows, weights of a millionth and less, the sign of a
zero, numbers below the smallest normal one, equals, rows in which nothing can be drawn, pages that sequences share.
The inputs keep to the contract, and away from what it leaves open: where scores are large, one of them is so far
ahead that no rounding of the others shows.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from math import sqrt
from typing import Any

import torch

from course_judge.contract import bounds_of, counts, kind_of, sizes_of
from course_judge.drawn import Drawn, Promise, Tensors, kept_alike
from course_judge.hidden_sizes import LEAST
from course_judge.signs_and_sizes import SIGNS_AND_SIZES
from course_judge.structured import STRUCTURED
from course_judge.whole_numbers import WHOLE
from course_kernels.measure.check import BITS
from course_kernels.problem import Problem, Workload

# --- rows that are exponentiated -------------------------------------------------------------------

# Past float32's 88 either way, and far past it.
SHIFTS = (95.0, -95.0, 300.0, -300.0, 600.0, -600.0)
BEST = 160.0  # the score of the key that a query looks for
NEXT = 0.7  # how much of it the key beside has: 48 less, so that rounding to bfloat16 decides nothing
DOWN = 400.0  # how far some queries' scores all lie below that
FAR_BELOW = 512.0  # its square over the root of D is past 2e4


def _shifted_rows(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    shifts = drawn.one_of(SHIFTS, len(x), 1)
    shifts[:1] = drawn.one_of(SHIFTS[-2:], len(x), 1)[:1]  # the farthest is always among them
    return (x + shifts.to(x.dtype),)


def _one_far_ahead(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    (x,) = inputs
    if x.shape[1] < 2:
        return None
    at = drawn.below(x.shape[1], len(x), 1)
    return (x.scatter(1, at, 60.0 + drawn.normal(len(x), 1).to(x.dtype)),)


def _chain(drawn: Drawn, *shape: int) -> torch.Tensor:
    """Draw keys (..., N, D): neighbours have NEXT of their length in common; the first number is for `_queries`."""
    N, D = shape[-2:]
    noise = drawn.normal(*shape[:-1], D - 1)
    keys = [noise[..., 0, :] / noise[..., 0, :].norm(dim=-1, keepdim=True)]
    for n in range(1, N):
        before, new = keys[-1], noise[..., n, :]
        new = new - (new * before).sum(dim=-1, keepdim=True) * before
        keys.append(NEXT * before + sqrt(1 - NEXT**2) * new / new.norm(dim=-1, keepdim=True))
    found = torch.stack(keys, dim=-2) * sqrt(D)
    return torch.nn.functional.pad(found, (1, 0), value=sqrt(DOWN) * D**0.25)


def _queries(drawn: Drawn, keys: torch.Tensor) -> torch.Tensor:
    """Return queries that look for these keys, one each, (..., D); half of them have all scores far below 0."""
    D = keys.shape[-1]
    found = keys * (BEST / sqrt(D))
    found[..., 0] = -keys[..., 0] * drawn.below(2, *keys.shape[:-1])
    return found


def _attention(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v = inputs
    keys = _chain(drawn, *k.shape)
    return _queries(drawn, keys).to(q.dtype), keys.to(k.dtype), v


def _general(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v, starts_q, starts_k = inputs
    (T, H, D), KV = q.shape, k.shape[1]
    keys = _chain(drawn, KV, max(len(k), 1), D).transpose(0, 1)[: len(k)]
    found = drawn.normal(T, H, D)
    bounds = list(zip(starts_q.tolist(), starts_k.tolist(), strict=True))
    for (first_q, first_k), (last_q, last_k) in pairwise(bounds):
        if last_k > first_k:
            # Where it stands; a query before the first key sees none, or all.
            at = (torch.arange(first_q - last_q, 0, device=q.device) + last_k).clamp(min=first_k)
            of_heads = keys[at].repeat_interleave(H // KV, dim=1)
            found[first_q:last_q] = _queries(drawn, of_heads)
    return found.to(q.dtype), keys.to(k.dtype).contiguous(), v, starts_q, starts_k


def _more_keys(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Give every sequence that has keys more of them than any has queries."""
    q, k, v, starts_q, starts_k = inputs
    keys = starts_k.diff()
    keys = torch.where(keys > 0, keys + drawn.options["longest"] + drawn.below(9, 1), keys)
    longer = torch.nn.functional.pad(keys.cumsum(0), (1, 0)).int()
    k, v = (drawn.normal(int(longer[-1]), *x.shape[1:]).to(x.dtype) for x in (k, v))
    return q, k, v, starts_q, longer


def _of_a_window(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    return inputs if "W" in drawn.workload.dims else None


def _decode(drawn: Drawn, inputs: Tensors) -> Tensors:
    q, k, v, lengths = inputs
    keys = _chain(drawn, *k.shape)
    at = (drawn.below(2**30, *q.shape[:2]) % lengths.clamp(min=1)[:, None]).long()
    heads = torch.arange(q.shape[1], device=q.device) // (q.shape[1] // k.shape[1])
    found = _queries(drawn, keys[torch.arange(len(q), device=q.device)[:, None], heads, at])
    return found.to(q.dtype), keys.to(k.dtype).masked_fill(k.isnan(), torch.nan), v, lengths


def _paged(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    q, k, v, table, lengths, *scales = inputs
    if scales:
        return None
    (_, H, D), (_, KV, PAGE, _) = q.shape, k.shape
    keys, found = k.clone(), q.clone()
    for b, length in enumerate(lengths.tolist()):
        if not length:
            continue
        pages = table[b, : -(-length // PAGE)].long()
        chain = _chain(drawn, KV, len(pages) * PAGE, D)
        of_pages = chain.view(KV, len(pages), PAGE, D).transpose(0, 1).to(k.dtype)
        keys[pages] = of_pages.masked_fill(k[pages].isnan(), torch.nan)
        heads = torch.arange(H, device=q.device) // (H // KV)
        found[b] = _queries(drawn, chain[heads, drawn.below(length, H)]).to(q.dtype)
    return found, keys, v, table, lengths


def _all_far_below(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Make every score the same, and far below the -1e4 that masks write: only what is left out may weigh nothing."""
    q, k, v, *rest = inputs
    if q.dtype == torch.float16 or k.dtype != q.dtype:
        return None  # a score in the type itself ends at 65504
    queries, keys = torch.zeros_like(q), torch.zeros_like(k)
    queries[..., 0], keys[..., 0] = FAR_BELOW, -FAR_BELOW
    return queries, keys.masked_fill(k.isnan(), torch.nan), v, *rest


def _shared_pages(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    _, _, _, table, lengths, *_ = inputs
    PAGE = inputs[1].shape[2]
    longest = int(lengths.argmax())
    others = [b for b, length in enumerate(lengths.tolist()) if length and b != longest]
    if not others:
        return None
    shared = table.clone()
    for b in others:
        pages = -(-int(lengths[b]) // PAGE)
        shared[b, :pages] = table[longest, :pages]
    return (*inputs[:3], shared, *inputs[4:])


# --- copies and sums -------------------------------------------------------------------------------


def _specials(drawn: Drawn, like: torch.Tensor) -> torch.Tensor:
    """Half of the numbers become zeros of either sign, numbers below the smallest normal one, and the largest."""
    about = torch.finfo(like.dtype)
    least = about.smallest_normal
    values = (0.0, -0.0, least / 2, -least / 4, least, about.max, -about.max)
    chosen = drawn.one_of(values, *like.shape).to(like.dtype)
    bits = BITS[like.element_size()]  # whole numbers: not every type can be chosen from
    return torch.where(drawn.below(2, *like.shape).bool(), chosen.view(bits), like.view(bits)).view(
        like.dtype
    )


def _moved(drawn: Drawn, inputs: Tensors) -> Tensors:
    return (_specials(drawn, inputs[0]),)


def _added(drawn: Drawn, inputs: Tensors) -> Tensors:
    least = torch.finfo(inputs[0].dtype).smallest_normal
    values = (0.0, -0.0, least / 2, -least / 4, least)
    return tuple(drawn.one_of(values, *x.shape).to(x.dtype) for x in inputs)


def _turned(drawn: Drawn, inputs: Tensors) -> Tensors:
    return tuple(-x for x in inputs)


def _negative(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (x - 0.75,)


# --- rows that are normalised ----------------------------------------------------------------------


def _huge(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Plant in every row one number past what a short type can square, and near its end."""
    x = inputs[0]
    huge = 5e4 if x.dtype == torch.float16 else 1e12
    sign = 1 - 2.0 * drawn.below(2, len(x), 1)
    size = huge * (1 + torch.rand(len(x), 1, generator=drawn.generator, device=x.device) / 8)
    return (x.scatter(1, drawn.below(x.shape[1], len(x), 1), (sign * size).to(x.dtype)), *inputs[1:])


def _uneven(drawn: Drawn, x: torch.Tensor) -> torch.Tensor:
    """Return a size for each column: another in each half, and in every second one; none is guessed from others."""
    N = x.shape[-1]
    sizes = drawn.one_of((0.25, 1.0, 4.0), -(-N // 8)).float().repeat_interleave(8)[:N]
    sizes[: N // 2] *= float(drawn.one_of((0.125, 8.0), 1))
    sizes[::2] *= float(drawn.one_of((0.5, 2.0), 1))
    return sizes


def _uneven_rows(drawn: Drawn, inputs: Tensors) -> Tensors:
    x = inputs[0]
    return ((x.float() * _uneven(drawn, x)).to(x.dtype), *inputs[1:])


def _uneven_norm(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    return _uneven_rows(drawn, inputs) if drawn.options.get("norm", True) else None


def _shut_at_the_head(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Begin some rows with minus infinity, over all of a first block and more."""
    (x,) = inputs
    if x.shape[1] < 2:
        return None
    shut = drawn.below(2, len(x), 1) == 0
    shut[:1] = True
    columns = torch.arange(x.shape[1], device=x.device)
    return (x.masked_fill(shut & (columns < max(1, x.shape[1] * 3 // 4)), -torch.inf),)


def _shut(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Make every second row nothing but minus infinity: a sum of 0, by which 0 is divided."""
    (x,) = inputs
    rows = torch.arange(len(x), device=x.device)[:, None] % 2 == 0
    return (x.masked_fill(rows, -torch.inf),)


def _uneven_shares(drawn: Drawn, inputs: Tensors) -> Tensors:
    (x,) = inputs
    return (x / 3 + _uneven(drawn, x).log(),)


def _small_rows(drawn: Drawn, inputs: Tensors, of: Sequence[int], small: float) -> Tensors:
    """Make a third of the rows so small that EPSILON counts, and a third zero."""
    sizes = torch.tensor((small, 1.0, 0.0), device=inputs[0].device)
    rows = (torch.arange(len(inputs[0]), device=inputs[0].device) + drawn.below(2, 1)) % 3
    sizes = sizes[rows][:, None]
    if len(sizes) == 1:
        sizes = sizes.clamp(max=small)
    return tuple((x.float() * sizes).to(x.dtype) if number in of else x for number, x in enumerate(inputs))


def _small_sums(drawn: Drawn, inputs: Tensors) -> Tensors:
    return _small_rows(drawn, inputs, (0, 1), drawn.module.EPSILON**0.5)


def _small_norm(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    if not drawn.options.get("norm", True):
        return None
    of = (0, 2) if len(inputs) == 3 and "norm" not in drawn.options else (0,)
    return _small_rows(drawn, inputs, of, drawn.module.EPSILON**0.5 / 2)


FAR = 1024.0  # how far from zero rows lie, of a spread of about 1


def _far_rows(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Rows far from zero, on a grid that float32 holds: the sum of x and r is exact."""
    x, r, g = inputs
    on_grid = [(t * 1024).round() / 1024 for t in (x, r)]
    at = drawn.one_of((FAR, -FAR, FAR / 4), len(x), 1).float()
    some = -(-len(x) // 2)
    at[:some] = drawn.one_of(
        (FAR, -FAR), some, 1
    ).float()  # nearer, a difference of squares may be right by chance
    return on_grid[0] + at, on_grid[1], g


def _gates_shut(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Gates that are all but shut; each answer is held against itself."""
    gate, *up = inputs
    shut = (-8 * torch.rand(gate.shape, generator=drawn.generator, device=gate.device) - 4).to(gate.dtype)
    if not up:
        half = gate.shape[1] // 2
        return (torch.cat((shut[:, :half], gate[:, half:]), 1),)
    return shut, *up


def _tables(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Angles that no formula gives: the tables are to be read."""
    x, g, w, positions, cos, _ = inputs
    angles = 6.0 * torch.rand(cos.shape, generator=drawn.generator, device=cos.device)
    return x, g, w, positions, angles.cos(), angles.sin()


# --- gradients -------------------------------------------------------------------------------------


def _shifted_scores(drawn: Drawn, inputs: Tensors) -> Tensors:
    """All scores of a row 110 higher or lower: softmax does not see it, its exponentials do."""
    q, k, v, _, _, do = inputs
    D = q.shape[-1]
    much = (110.0 * sqrt(D)) ** 0.5
    q, k = q.clone(), k.clone()
    q[..., 0] = (much * (1 - 2.0 * drawn.below(2, *q.shape[:-1]))).to(q.dtype)
    k[..., 0] = much
    o, lse = drawn.module.forward(q, k, v, **drawn.options)
    return q, k, v, o, lse, do


# --- tokens ----------------------------------------------------------------------------------------

# Seeds, and tokens whose word at step 0 is within 64 of 2**32.
LAST_WORDS = ((306180, 57), (679937, 18), (1074152, 59), (1369702, 6), (1955200, 61))


def _tokens(given: Any, drawn: Drawn) -> Tensors:
    """Make inputs as the problem does: a step is raised where the best two are so close that rounding decides."""
    for _ in range(drawn.module.TRIES):
        V = given.logits.shape[1]
        best = drawn.module.scores_of(given).topk(min(2, V), -1).values
        close = (best[:, 0] - best[:, -1] < drawn.module.MARGIN) & (V > 1) & (given.temperature > 0)
        given = given._replace(steps=torch.where(close, given.steps + 1, given.steps))
    return tuple(x for x in given if x is not None)


def _any_step(drawn: Drawn, inputs: Tensors) -> Tensors:
    given = drawn.module.Given(*inputs)
    steps = drawn.below(2**32 - 16, len(given.steps)) - 2**31
    return _tokens(given._replace(steps=steps.int()), drawn)


def _nothing_to_draw(drawn: Drawn, inputs: Tensors) -> Tensors:
    given = drawn.module.Given(*inputs)
    rows = torch.arange(len(given.logits), device=given.logits.device)[:, None] % 2 == 0
    return without_top_p(drawn, given._replace(logits=given.logits.masked_fill(rows, -torch.inf)))


def _last_words(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Draw for a token out of reach one of the largest words, which float32 rounds up to 2**32."""
    given = drawn.module.Given(*inputs)
    V = given.logits.shape[1]
    known = [(seed, token) for seed, token in LAST_WORDS if token < V]
    if not known or V < 2:
        return None
    rows = [known[int(drawn.below(len(known), 1))] for _ in range(len(given.logits))]
    seeds, tokens = (torch.tensor(found, device=given.seeds.device) for found in zip(*rows, strict=True))
    logits = given.logits.clamp(-8, 8).scatter(1, tokens[:, None], -40.0)
    given = given._replace(
        logits=logits,
        seeds=seeds,
        steps=torch.zeros_like(given.steps),
        temperature=torch.ones_like(given.temperature),
        top_k=None if given.top_k is None else torch.zeros_like(given.top_k),
    )
    return without_top_p(drawn, given)


def _equals(drawn: Drawn, inputs: Tensors) -> Tensors:
    given = drawn.module.Given(*inputs)
    return without_top_p(drawn, given._replace(logits=given.logits.round()))


def _half_logits(drawn: Drawn, inputs: Tensors) -> Tensors:
    given = drawn.module.Given(*inputs)
    return without_top_p(drawn, given._replace(logits=given.logits.half()))


def _least_top_p(drawn: Drawn, inputs: Tensors) -> Tensors | None:
    """Let top-p keep nothing but the largest: those of 0 as well as those so small that float32 loses them."""
    given = drawn.module.Given(*inputs)
    if given.top_p is None:
        return None
    least = drawn.one_of((0.0, 2.0**-30), *given.top_p.shape).float()
    return _tokens(given._replace(top_p=least), drawn)


def _flat_logits(drawn: Drawn, inputs: Tensors) -> Tensors:
    """Make every token of a row about as likely as any other, and leave none out: not only the best can be drawn."""
    given = drawn.module.Given(*inputs)
    given = given._replace(logits=given.logits / 64, temperature=torch.ones_like(given.temperature))
    if given.top_k is not None:
        V = given.logits.shape[1]
        rows = torch.arange(len(given.top_k), device=given.top_k.device)
        given = given._replace(top_k=torch.where(rows % 2 == 0, 0, V).int())
    return without_top_p(drawn, given)


def without_top_p(drawn: Drawn, given: Any) -> Tensors:
    """Open top-p to all: where its cut falls is laid out for other logits."""
    if given.top_p is not None:
        given = given._replace(top_p=torch.ones_like(given.top_p))
    return _tokens(given, drawn)


UNEVEN = "with columns of uneven sizes"


def _four_times(usual: float) -> float:
    return 4 * usual


SMALL = "with rows so small that epsilon counts, and rows of zeros"
SCORES = "with scores far past 88, and far below 0"
BELOW = "with every score the same, far below -10000"
EXACT = "with zeros of both signs, and numbers below the smallest normal one"
PROMISES: dict[str, tuple[Promise, ...]] = {
    "softmax": (
        # x * log2(e) less the largest, in one step or two, is a usual way; at 300 it is off by 2**-15 or so.
        Promise("with rows far above 88 or below -88", _shifted_rows, slack=16.0),
        Promise(
            "each weight held against itself, the largest far ahead",
            _one_far_ahead,
            own=lambda usual: 2.0**-13,
        ),
        Promise("with uneven shares", _uneven_shares, own=lambda usual: 2.0**-13),
        Promise("with rows that begin with minus infinity", _shut_at_the_head, long=True),
        Promise("with rows of nothing but minus infinity", _shut),
    ),
    "add_norm": (
        Promise(UNEVEN, _uneven_rows),
        Promise(SMALL, _small_sums),
        # A running sum of numbers about FAR loses some 2**-8 of their spread; a difference of two squares 2**-4.
        Promise("with rows far from zero", _far_rows, at_least=2.0**-8),
    ),
    "attention_backward": (Promise("with scores far past 88", _shifted_scores, slack=8.0, at_least=2.0**-4),),
    "decode_linear": (Promise(SMALL, _small_norm), Promise(UNEVEN, _uneven_norm)),
    "qkv_rope": (
        Promise("with tables of other angles", _tables),
        Promise(SMALL, _small_norm),
        Promise(UNEVEN, _uneven_norm),
    ),
    "swiglu": (Promise("with gates all but shut", _gates_shut, own=_four_times),),
    "attention": (Promise(SCORES, _attention), Promise(BELOW, _all_far_below)),
    "attention_general": (
        Promise(SCORES, _general),
        Promise(BELOW, _all_far_below),
        Promise("with more keys than queries in every sequence", _more_keys),
        Promise("with a window of 0", _of_a_window, options={"window": 0}),
    ),
    "decode_attention": (Promise(SCORES, _decode), Promise(BELOW, _all_far_below)),
    "paged_attention": (
        Promise(SCORES, _paged),
        Promise(BELOW, _all_far_below),
        Promise("with pages that sequences share", _shared_pages),
    ),
    "copy": (Promise(EXACT, _moved, exact=True),),
    "bytes_in_flight": (Promise(EXACT, _moved, exact=True),),
    "strided_read": (Promise(EXACT, _moved, exact=True),),
    "transpose": (Promise(EXACT, _moved, exact=True),),
    "vector_add": (
        Promise(EXACT, _added, exact=True),
        Promise("usual ones to the last bit", _turned, exact=True),
    ),
    "reduction": (Promise("with numbers of both signs", _negative, slack=4.0),),
    "rms_norm": (
        Promise("with a number in each row that is far larger than the others", _huge, own=_four_times),
        Promise(SMALL, _small_norm),
        Promise(UNEVEN, _uneven_rows),
    ),
    "sampling": (
        Promise("with steps of every size and sign", _any_step),
        Promise("with rows of nothing but -inf", _nothing_to_draw),
        Promise("with logits that are equal", _equals),
        Promise("with the largest random words", _last_words),
        Promise("with logits of float16", _half_logits),
        Promise("with a top_p of 0, or all but 0", _least_top_p),
        Promise("with logits all but equal, and none left out", _flat_logits, long=True),
    ),
}


def promises(problem: Problem) -> tuple[Promise, ...]:
    """Return the cases of a problem."""
    whole = (
        Promise("with whole numbers", change, whole=True, far=True) for change in WHOLE.get(problem.name, ())
    )
    tables = (PROMISES, SIGNS_AND_SIZES, STRUCTURED)
    return (*(promise for table in tables for promise in table.get(problem.name, ())), *whole)


def case(promise: Promise, problem: Problem, w: Workload, generator: torch.Generator) -> Tensors | None:
    """Return the inputs of a case on one size; None where it has no room for it."""
    inputs = tuple(problem.make_inputs(w, generator, generator.device))
    changed = promise.change(ingredients(problem, w, generator), inputs)
    return None if changed is None else kept_alike(changed)


def ingredients(problem: Problem, w: Workload, generator: torch.Generator) -> Drawn:
    """Return what cases of a size are made of."""
    module = sys.modules.get(problem.reference.__module__)  # a lab's is no module by name
    return Drawn(w, problem.options(w), generator, module)


def shorter(problem: Problem, w: Workload, generator: torch.Generator) -> Tensors:
    """Return inputs whose sequences are far shorter than their caches."""
    q, k, v, *rest = problem.make_inputs(w, generator, generator.device)
    at = 1 if problem.name == "paged_attention" else 0  # after the table
    rest[at] = torch.where(rest[at] > 0, rest[at] // 4 + 1, rest[at])
    return kept_alike((q, k, v, *rest))


def cases_on(
    workloads: Sequence[Workload], problem: Problem, *, longest: bool = False, types: bool = False
) -> list[Workload]:
    """Return sizes on which a case is tried: of each type and each set of flags the largest that is at hand.

    Args:
        longest: of each set of flags that which is longest in each of its dimensions, too.
        types: and of each type.
    """
    found: dict[Any, Workload] = {}
    for w in sorted(workloads, key=lambda w: (problem.writes_bytes(w), problem.flops(w))):
        found[w.dtype, kind_of(w)] = w
    for w in workloads if longest else ():
        for name, size in w.items:
            of = ("longest", name, w.dtype if types else "", kind_of(w))
            if name[0].isupper() and (of not in found or found[of].dims[name] < size):
                found[of] = w
    return list(dict.fromkeys(found.values()))


def ends_of(workloads: Sequence[Workload], problem: Problem, rng: random.Random) -> list[Workload]:
    """Return sizes at the ends: the longest of each dimension and each pair, the fewest rows; of several alike one.

    A kernel may have another way for long rows, or for few: what is special about values is asked there, too.
    """
    names = [n for n in sizes_of(problem) if not counts(problem, n) and not bounds_of(problem, n).only]
    found = []
    for some in (*((name,) for name in names), *combinations(names, 2)):
        if of := [w for w in workloads if all(name in w.dims for name in some)]:
            longest = max(min(w.dims[name] for name in some) for w in of)
            found.append(rng.choice([w for w in of if min(w.dims[name] for name in some) == longest]))
    rows = [
        w
        for w in workloads
        if "M" in w.dims and all(w.dims[n] >= LEAST for n in w.dims if n in ("N", "K", "F"))
    ]
    if rows:
        fewest = min(w.M for w in rows)
        found.append(rng.choice([w for w in rows if fewest == w.M]))
    return list(dict.fromkeys(found))
