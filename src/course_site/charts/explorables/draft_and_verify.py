"""A drafted word, verified: two distributions over three words, a rule, and what comes out by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, at, box, digits, legend, mark, shape

THREE = ("red", "hot", "old")
RULES = ("residual", "target", "likeliest", "keep")
MOST = 1e6  # the largest share that a reader may type
NEARLY = 1e-9  # what sums of three doubles may miss

KNOBS = {
    "target": Knob("numbers", len(THREE), len(THREE)),
    "draft": Knob("numbers", len(THREE), len(THREE)),
    "rule": Knob("select", choices=dict.fromkeys(RULES, "")),
    "k": Knob("range", 1, 8),
}
DATA: dict[str, tuple[str, ...]] = {}
SENTENCES = ("not_shares", "never", "always", "passes", "exact", "another")
CASES = (
    {
        "not_shares": ("or more",),
        "never": ("no drafted word",),
        "always": ("every drafted word",),
        "passes": ("{passing}",),
    },
    {"exact": ("the target's own",), "another": ("{word}", "{comes}", "{wants}")},
)

_X, _WIDE, _TOP, _PITCH = 84.0, 208.0, 36.0, 56.0


def given() -> Mapping[str, Any]:
    """Return nothing: all is worked out."""
    return {}


def shares(numbers: Sequence[float]) -> list[float] | None:
    """Return what each has of the sum; None if one is negative or too large, or all are zero."""
    total = numbers[0] + numbers[1] + numbers[2]
    if not (all(0 <= x <= MOST for x in numbers) and total > 0):
        return None
    return [x / total for x in numbers]


def comes_out(
    target: Sequence[float], draft: Sequence[float], rule: str
) -> tuple[float, list[float], list[float]]:
    """Return how often a drafted word passes, and how often each word comes out: drafted, and after a refusal.

    Args:
        target, draft: probabilities of the words.
        rule: "residual" keeps a drafted word with probability min(1, target / draft) and after a refusal takes one
            from what the draft gave too little to, renormalised (Leviathan and others 2023, algorithm 1); "target"
            takes it from the whole target instead; "likeliest" keeps a word only if it is the target's likeliest;
            "keep" keeps all.
    """
    best = target.index(max(target))
    missing = [max(p - q, 0.0) for p, q in zip(target, draft, strict=True)]
    total = missing[0] + missing[1] + missing[2]
    after = list(target) if rule == "target" or total <= NEARLY else [x / total for x in missing]
    if rule == "keep":
        kept = list(draft)
    elif rule == "likeliest":
        kept = [q if word == best else 0.0 for word, q in enumerate(draft)]
    else:
        kept = [min(p, q) for p, q in zip(target, draft, strict=True)]
    passing = kept[0] + kept[1] + kept[2]
    refused = max(1 - passing, 0.0)
    return passing, kept, [refused * x for x in after]


def tokens(passing: float, k: int) -> float:
    """Return how many tokens a verification of k gives: 1 + p + … + p to the k."""
    total, power = 1.0, 1.0
    for _ in range(k):
        power *= passing
        total += power
    return total


def percent(share: float) -> str:
    """Return a share in per cent, to a tenth.

    >>> percent(0.5), percent(1 / 3)
    ('50', '33.3')
    """
    return digits(100 * share, 1).removesuffix(".0")


def work(state: State, data: Data) -> Shown:
    """Return what comes out of two distributions by a rule; see `comes_out`."""
    target, draft = shares(state["target"]), shares(state["draft"])
    fits = target is not None and draft is not None
    p, q = (target, draft) if target is not None and draft is not None else ([0.0] * 3, [0.0] * 3)
    passing, kept, late = comes_out(p, q, state["rule"])
    out = [a + b for a, b in zip(kept, late, strict=True)]
    misses = [abs(a - b) for a, b in zip(out, p, strict=True)]
    worst, k = misses.index(max(misses)), state["k"]
    says = ["not_shares"]
    if fits:
        says = ["always" if passing > 1 - NEARLY else "never" if passing < NEARLY else "passes"]
        says.append("exact" if misses[worst] < NEARLY else "another")
    texts: dict[str, str | list[str]] = {
        "passing": percent(passing), "refused": percent(max(1 - passing, 0.0)), "k": digits(k),
        "all": digits(k + 1), "tokens": digits(tokens(passing, k), 2), "word": THREE[worst],
        "comes": percent(out[worst]), "wants": percent(p[worst]),
        "miss": percent(misses[worst]),
    }  # fmt: skip
    marks: dict[str, dict[str, str]] = {}
    for word in range(len(THREE)):
        y = _TOP + _PITCH * word
        for name, line, start, share in (
            ("p", 0, 0.0, p[word]), ("q", 1, 0.0, q[word]),
            ("kept", 2, 0.0, kept[word]), ("late", 2, kept[word], late[word]),
        ):  # fmt: skip
            drawn = fits and share > 0
            d = box(_X + _WIDE * start, y + 14 * line, _WIDE * share, 10) if drawn else ""
            marks[f"{name}{word}"] = {"d": d}
        for name, share in (("ps", p[word]), ("qs", q[word]), ("outs", out[word])):
            marks[f"{name}{word}"] = {"text": percent(share) if fits else ""}
    return Shown(tuple(says), texts, marks)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return three bars for each word: the target's share, the draft's, and what comes out."""
    parts = [legend(("cold", "drafted, and passed"), ("used", "after a refusal"))]
    parts.append(shape("text", "per cent", x=345, y=10, text_anchor="end"))
    for word, name in enumerate(THREE):
        y = _TOP + _PITCH * word
        parts.append(shape("text", name, x=0, y=at(y + 9), css="strong"))
        for line, says in enumerate(("target", "draft", "out")):
            parts.append(shape("text", says, x=_X - 6, y=at(y + 14 * line + 9), text_anchor="end"))
        for part, css in (("p", "made"), ("q", "waste"), ("kept", "cold"), ("late", "used")):
            parts.append(mark("path", f"{part}{word}", marks, css=css))
        for line, part in enumerate(("ps", "qs", "outs")):
            more = {"css": "strong"} if part == "outs" else {}
            where = {"x": 345, "y": at(y + 14 * line + 9), "text_anchor": "end"}
            parts.append(mark("text", f"{part}{word}", marks, **where, **more))
    parts.append(
        shape("path", css="axis", d=f"M{at(_X)} {at(_TOP - 6)}V{at(_TOP + _PITCH * len(THREE) - 8)}")
    )
    return _TOP + _PITCH * len(THREE) - 4, "".join(parts)
