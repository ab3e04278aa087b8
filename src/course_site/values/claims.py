"""Claims: sentences with a condition, tested against what another run may find.

A claim holds when its condition is true in 99 of 100 resamples, which are medians that another run, on another
card of the model, may find (`uncertainty.py`). It is clearly false when it is true in one of them at most. Between the
two it is undecided: the margin lies inside the spread, and no sentence should rest on it. One that stays true
whichever single name is halved or doubled, from where another run may put it, is vacuous: where it was written, it says
nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from course_site.values.uncertainty import interval
from course_site.values.values import (
    BadExpression,
    Expression,
    Resolved,
    Scope,
    parse,
    walk_leaves,
    written_out,
)

CONFIDENCE = 0.99
SAMPLED = frozenset({"measurement", "samples", "counted", "trace"})  # leaves that are no fact, but found


@dataclass(frozen=True)
class Verdict:
    """Verdict of the record on a condition: `support` is the share of resamples in which it is true.

    One that holds may be vacuous. Where the sentence was written, its bound is too far away to say anything; on another
    card, or beside another CPU, the numbers may have moved away from a bound that said much.
    """

    condition: str
    holds: bool
    vacuous: bool
    support: float
    values: tuple[tuple[str, float], ...]
    idle: str = ""  # the part of an `and` that is vacuous by itself

    @property
    def undecided(self) -> bool:
        """True when the margin lies inside the spread: another run may say the one or the other."""
        return not self.holds and self.support > 1 - CONFIDENCE

    @property
    def why(self) -> str:
        """One line for the build log."""
        seen = ", ".join(f"{name} = {value:.4g}" for name, value in self.values)
        if self.vacuous:
            part = f", in its part `{self.idle}`" if self.idle else ""
            return (
                f"claim `{self.condition}` is vacuous{part}: no name's halving or doubling makes it false ({seen}); "
                "move its bound nearer to what was found, or leave it out"
            )
        said = "is too close to call" if self.undecided else "is false"
        return f"claim `{self.condition}` {said}: true in {self.support:.1%} of the resamples ({seen})"


def is_so(condition: str, scope: Scope) -> bool:
    """Return whether a recorded fact is so, such as what a machine had.

    No sample is in it, so there is nothing to test.

    Raises:
        BadExpression: the condition is not a comparison, or rests on samples: then it is a claim.
        UnknownName, NotHere: as in `values.evaluate`.
    """
    expression = parse(condition)
    resolved = [scope.resolve(name) for name in expression.names]
    if any(r.resamples is not None or (r.leaf and r.leaf["kind"] in SAMPLED) for r in resolved):
        raise BadExpression(f"`{condition}` rests on samples: only a `/// claim` may compare those")
    truth = expression.compute([r.value for r in resolved])
    if not isinstance(truth, (bool, np.bool_)):
        raise BadExpression(f"`{condition}` has no comparison in it")
    return bool(truth)


def judge(condition: str, scope: Scope) -> Verdict:
    """Test a condition against a record.

    Raises:
        BadExpression: the condition is not a comparison, or names text.
        UnknownName, NotHere: as in `values.evaluate`.
    """
    expression = parse(condition)
    resolved = [scope.resolve(name) for name in expression.names]
    values = [r.value for r in resolved]
    if any(isinstance(value, str) for value in values):
        raise BadExpression(f"claim `{condition}` compares text")
    truth = expression.compute(values)
    if not isinstance(truth, (bool, np.bool_)):
        raise BadExpression(f"claim `{condition}` has no comparison in it")
    resampled = expression.compute([r.value if r.resamples is None else r.resamples for r in resolved])
    support = float(np.mean(resampled))
    vacuous = bool(truth) and _is_vacuous(expression, values, resolved)
    idle = "" if vacuous or not truth else _idle_part(expression, values, resolved)
    return Verdict(
        condition=condition,
        holds=bool(truth) and support >= CONFIDENCE,
        vacuous=vacuous or bool(idle),
        support=support,
        values=tuple(zip(expression.names, (float(v) for v in values), strict=True)),
        idle=idle,
    )


def _is_vacuous(expression: Expression, values: list[float], resolved: list[Resolved]) -> bool:
    """Return whether a true condition stays true whichever single name is halved or doubled."""
    used = {
        int(part.id[1:])
        for part in ast.walk(expression.tree)
        if isinstance(part, ast.Name) and _NUMBERED.fullmatch(part.id)
    }
    return all(
        bool(expression.compute([v * factor if i == j else v for j, v in enumerate(values)]))
        for i, name in enumerate(resolved)
        if i in used
        for factor in _far(name)
    )


def _idle_part(expression: Expression, values: list[float], resolved: list[Resolved]) -> str:
    """Return the part of an `and` that is vacuous by itself; "" without one.

    Timings alone are asked: what was counted, such as that an instruction does not occur, may be far from its bound.
    """
    tree = expression.tree
    for part in tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else ():
        used = [
            int(n.id[1:]) for n in ast.walk(part) if isinstance(n, ast.Name) and _NUMBERED.fullmatch(n.id)
        ]
        of = Expression(expression.text, part, expression.names)
        if all(_is_timing(resolved[i]) for i in used) and _is_vacuous(of, values, resolved):
            said = ast.unparse(part)
            for i in used:
                said = re.sub(rf"\bv{i}\b", expression.names[i], said)
            return said
    return ""


_NUMBERED = re.compile(r"v\d+")


def _is_timing(found: Resolved) -> bool:
    leaf = found.leaf or {}
    return np.ndim(found.resamples) > 0 and (
        leaf.get("kind") in (None, "measurement") or leaf.get("how") == "timed"
    )


# Who is named in a comparison, and what of that stands in the names of a condition or of their kernels.
NAMED = {
    "torch.compile": ("compiled",), "flashinfer": ("flashinfer", "tensor_cores", "plain_cores"),
    "cublas": ("cublas", "library"), "cudnn": ("cudnn",), "sdpa": ("sdpa",), "triton": ("triton",),
    "pytorch": ("torch", "library", "eager", "sdpa", "cublas"), "torch": ("torch", "library", "eager"),
    "eager": ("eager", "torch"), "numpy": ("numpy",), "flashattention": ("flash", "fa3", "sdpa"),
    "the library": ("library", "cublas", "cudnn", "torch", "sdpa"), "cutlass": ("cutlass",),
}  # fmt: skip
TIMES = ("us", "ms", "s", "share", "ticks")


def unspoken(excerpt: str, condition: str, scope: Scope) -> str:
    """Return why a comparison of a sentence is none of its condition; empty where it is.

    Args:
        excerpt: the words that compare, with the name of a library in them.
    """
    said = excerpt.casefold()
    who = next((name for name in NAMED if name in said), "")
    if not who:
        return ""
    condition = written_out(condition, scope)
    theirs = {
        name
        for name in parse(condition).names
        if any(part in what_stands_behind(name, scope) for part in NAMED[who])
    }
    if not theirs:
        return f"the sentence speaks of {who!r}, and no name of its condition does"
    return ""


_AGAINST = re.compile(
    r"\b(?:than|beats?|outruns?|outpaces?|overtakes?|trails?|ahead\s+of|behind|as\s+(?:fast|slow|quick|long)\s+as)\s+"
    r"((?:[\w-]+\s+){0,3}[\w-]+)",
    re.IGNORECASE,
)


def others_named(sentence: str, condition: str, scope: Scope) -> Iterator[str]:
    """Kernels of this page that a sentence compares with, and its condition does not speak of; each in a few words."""
    names = parse(written_out(condition, scope)).names
    behind = " ".join(what_stands_behind(name, scope) for name in names)
    others = {word for word in kernels_of(scope) if word not in behind}
    for match in _AGAINST.finditer(sentence):
        for word in re.findall(r"[a-z]+", match[1].casefold()):
            if word in others:
                yield f"the sentence says {match[0]!r}, and no name of its condition is of {word!r}"


def kernels_of(scope: Scope) -> set[str]:
    """Return words that tell the kernels a page timed from one another: padded of transpose/k03_padded."""
    leaves = (leaf for _, leaf in walk_leaves(scope.names) if leaf["kind"] == "measurement")
    stems = {leaf["kernel"].rsplit("/", 1)[-1].split(".")[-1] for leaf in leaves}
    return {word for stem in stems for word in stem.split("_")[1:] if len(word) > 4}


def what_stands_behind(name: str, scope: Scope) -> str:
    """Return a name, and the kernel it timed."""
    leaf = scope.resolve(name).leaf or {}
    return f"{name} {leaf.get('kernel', '')}".casefold()


def _far(name: Resolved) -> tuple[float, float]:
    """Half, and double; of a number that another run puts elsewhere, half and double of where it may put it.

    Otherwise a bound far enough away for a number that moves by half would be too far away to say anything.
    """
    low = high = 1.0
    if name.value and np.ndim(name.resamples):
        low, high = interval(name.resamples / name.value)
    return 0.5 * min(low, 1.0), 2.0 * max(high, 1.0)
