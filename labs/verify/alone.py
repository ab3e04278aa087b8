"""The last task of the verification: several words drafted for one place."""

import random
from collections.abc import Sequence
from typing import Any

from course_labs.interactive_cases import Asked, Play, Slip

CLEAR = 1e-9  # how far a draw is from where a word changes

NEXT_OF_THE_SECOND = (
    "after a refusal, what is left to be said is no longer p: is the next one compared with that?"
)
NEXT_OF_THE_END = "each refusal has left less to be said: from what is the last draw's word to come?"
NEXT_OF_THE_SMALL = (
    "the drafts are independent: the small model's distribution stays as it is, whatever was refused."
)
NEXT_OF_A_SUM = (
    "what is left to be said is a distribution before the next word is compared with it: does it add up to 1?"
)
NEXT_OF_THE_FIRST = "one refusal is not the end here: there is another draft for the same place."

Numbers = list[float]
FOUR = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]


def cases() -> list[Play]:
    """From one draft, as in the lab, to six."""
    p, q = [0.2, 0.3, 0.5], [0.2, 0.6, 0.2]
    return [
        _play("no draft", p, q, [], [], 0.7),
        _play("one draft that is kept", p, q, [1], [0.4], 0.1),
        _play("one draft that is refused", p, q, [1], [0.6], 0.1),
        _play("two drafts, the first kept", p, q, [1, 0], [0.4, 0.1], 0.1),
        # Each of these has words of its own for a slip.
        _play("two drafts, the second kept", *FOUR, [3, 1], [0.5, 0.4], 0.1),
        _play("two drafts, the second kept with a larger draw", *FOUR, [3, 1], [0.5, 0.6], 0.9),
        _play("two drafts, the second kept with a large draw", *FOUR, [3, 1], [0.5, 0.8], 0.9),
        _play(
            "two drafts, the second of which is not wanted after the first", *FOUR, [3, 2], [0.5, 0.5], 0.95
        ),
        _play("two drafts that are refused", *FOUR, [3, 2], [0.5, 0.8], 0.8),
        _play("the same word twice", p, q, [1, 1], [0.9, 0.3], 0.1),
        _play("three drafts that are refused", *FOUR, [2, 3, 1], [0.9, 0.3, 0.6], 0.4),
        _play("three drafts, the last kept", *FOUR, [2, 2, 1], [0.9, 0.3, 0.3], 0.4),
        Play("drafts by chance", by_chance, again=4),
    ]


def _play(job: str, *given: Any) -> Play:
    return Play(job, lambda asked, _: look_at(asked, *given))


def pick(weights: Numbers, u: float) -> int:
    """The word that a draw picks."""
    found = (n for n in range(len(weights)) if u < sum(weights[: n + 1]))
    return next(found, max(n for n, weight in enumerate(weights) if weight > 0))


def rest(p: Numbers, q: Numbers) -> Numbers:
    """What is left to be said of p when a word of q has been refused, as a distribution."""
    parts = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [part / sum(parts) for part in parts] if sum(parts) else p


def chain(p: Numbers, q: Numbers, refused: int) -> list[Numbers]:
    """What is to be said before each draft, and after the last of them that may be refused."""
    found = [p]
    for _ in range(refused):
        found.append(rest(found[-1], q))
    return found


def word_of(p: Numbers, q: Numbers, drafted: Sequence[int], draws: Sequence[float], u: float) -> int:
    """The word of the place."""
    wanted = chain(p, q, len(drafted))
    for w, word, draw in zip(wanted, drafted, draws, strict=False):
        if draw * q[word] < w[word]:
            return word
    return pick(wanted[-1], u)


def look_at(asked: Asked, p: Numbers, q: Numbers, drafted: list[int], draws: Numbers, u: float) -> None:
    """One place."""
    due = word_of(p, q, drafted, draws, u)
    got = asked.call("several", p, q, drafted, draws, u).number("several")
    if got == due:
        return
    advice = next((says for says, slip in slips(p, q, drafted, draws, u) if slip == got), "")
    given = ", ".join(f"[{', '.join(f'{x:.4g}' for x in part)}]" for part in (p, q, drafted, draws))
    raise Slip("wrong", f"several({given}, {u:.4g}): expected word {due}, got {got}", advice)


def slips(p: Numbers, q: Numbers, drafted: list[int], draws: Numbers, u: float) -> list[tuple[str, int]]:
    """What to say, and the word for which it is said."""
    if not drafted:
        return []
    each = list(zip(drafted, draws, strict=True))
    wanted = chain(p, q, len(drafted))
    against_p = next((word for word, draw in each if draw * q[word] < p[word]), None)
    parts, of_parts = p, None
    for word, draw in each:
        if draw * q[word] < parts[word]:
            of_parts = word
            break
        parts = [max(a - b, 0.0) for a, b in zip(parts, q, strict=True)]
    of_parts = pick(wanted[-1], u) if of_parts is None else of_parts
    if any(draw * q[word] < w[word] for w, (word, draw) in zip(wanted, each, strict=False)):
        found = [(NEXT_OF_THE_FIRST, pick(wanted[1], u))]
    else:
        found = [(NEXT_OF_THE_END, pick(wanted[1], u)), (NEXT_OF_THE_END, pick(p, u))]
    if against_p is not None:
        found.append((NEXT_OF_THE_SECOND, against_p))
    return [*found, (NEXT_OF_THE_SMALL, of_fewer(p, q, drafted, draws, u)), (NEXT_OF_A_SUM, of_parts)]


def of_fewer(p: Numbers, q: Numbers, drafted: list[int], draws: Numbers, u: float) -> int:
    """The word of a file that drafts no refused word again."""
    wanted, left = p, q
    for word, draw in zip(drafted, draws, strict=True):
        if draw * left[word] < wanted[word]:
            return word
        wanted = rest(wanted, left)
        without = [0.0 if n == word else one for n, one in enumerate(left)]
        left = [one / sum(without) for one in without] if sum(without) else left
    return pick(wanted, u)


def by_chance(asked: Asked, draw: random.Random) -> None:
    """Places with up to six drafts, which are refused more often than not."""
    for _ in range(40):
        look_at(asked, *drawn(draw))


def drawn(draw: random.Random) -> tuple[Numbers, Numbers, list[int], Numbers, float]:
    """A place whose draws are far from where its word changes."""
    while True:
        count, many = draw.randint(2, 6), draw.randint(1, 6)
        p, q = (_distribution(draw, count) for _ in range(2))
        if sum(map(min, p, q)) > 0.98:
            continue
        drafted = [pick(q, draw.random()) for _ in range(many)]
        draws, u = [draw.random() ** 0.5 for _ in range(many)], draw.random()
        wanted = chain(p, q, many)
        clear = all(
            abs(one * q[word] - w[word]) > CLEAR for w, word, one in zip(wanted, drafted, draws, strict=False)
        )
        sums = (abs(u - sum(w[: n + 1])) for w in wanted for n in range(count))
        # What is left is worked out as a difference: it must be more than its rounding.
        large = all(sum(max(a - b, 0.0) for a, b in zip(w, q, strict=True)) > 1e-3 for w in wanted)
        if clear and large and min(sums) > CLEAR:
            return p, q, drafted, draws, u


def _distribution(draw: random.Random, count: int) -> Numbers:
    weights = [draw.random() ** 3 + 1e-3 for _ in range(count)]
    return [weight / sum(weights) for weight in weights]
