"""The verification of drafted words: what is right is worked out here, and so are usual slips.

Random numbers are arguments, so an answer is a function of them. Those of the cases are far from where a word changes:
every order of the operations decides alike. The numbers that lie exactly there are 0 and the largest below 1.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_judge.host import Broken
from course_labs.hints import NEXT_OF_NONE
from course_labs.interactive_cases import Asked, Play, Slip, with_advice

CLEAR = 1e-9  # how far a draw is from where a word changes
LAST = 1 - 2**-53  # the largest draw
MANY = 4000  # rounds whose words are counted

NEXT_OF_THE_FIRST_MISS = (
    "a word that follows a refused one was drafted behind a wrong beginning: count none of them."
)
NEXT_OF_ONE_MORE = "each verification gives one token more than pass: the large model's own."
NEXT_WHEN_ALL_PASS = (
    "when all pass there is one token more, too: the large model has looked one place further."
)
NEXT_OF_TERMS = "how many tokens are there for sure? With k drafts the last of the terms is p to the k."
NEXT_OF_ONE = "p is 1: all drafts pass. How many tokens is that, and what does your line divide by?"
NEXT_OF_THE_QUOTIENT = (
    "over the drafting probability is divided: what the small model says too often is refused more often."
)
NEXT_OF_THE_BEST = (
    "the likeliest word is not the only one: each word is kept as often as the large model wants it."
)
NEXT_OF_NEVER = "the large model never says that word, and a draw may be exactly 0: is 0 < 0, and is 0 <= 0?"
NEXT_OF_NOW_AND_THEN = "a word that is drafted too often is kept now and then, not never."
NEXT_OF_THE_WRONG_WAY = (
    "a small draw keeps the word: with a probability of 0.9 nine draws of ten are below 0.9."
)
NEXT_OF_THE_PRODUCT = (
    "that is how often two independent draws agree: a word that both like is kept more often than that."
)
NEXT_OF_DRAFTS = (
    "words are not drafted equally often: weigh each quotient with how often its word is drafted."
)
NEXT_OF_THE_SUM = "these are what is missing of each word; a distribution adds up to 1."
NEXT_OF_THE_SURPLUS = (
    "that is where the small model says too much. What must be made up for is where it says too little."
)
NEXT_OF_BOTH_SIDES = "a word that is drafted too often already lacks nothing: it must not come again."
NEXT_OF_A_WEIGHTLESS_WORD = "no draw picks a word without weight: is a draw of 0 below a sum of 0?"
NEXT_OF_THE_END = (
    "rounding may end the sum just below 1, and the draw beyond it: the last word with a weight is meant."
)
NEXT_OF_THE_SUM_SO_FAR = "the draw is compared with the sum of the weights up to the word and with it."
NEXT_OF_THE_TARGET = (
    "drawn from all of p, a word comes too often where its own drafts were kept: draw only what is missing."
)
NEXT_OF_A_REFUSED_WORD = "the refused word itself is not kept: what is drawn takes its place."
NEXT_OF_THE_PLACE = (
    "each place has distributions of its own, of the large model and of the small: count both from 0."
)
NEXT_OF_ALL_PASSED = (
    "all have passed: the word after them is drawn from the large model's last distribution, as it is."
)
NEXT_OF_THE_STOP = "after the first refused word nothing more is looked at."

Slips = Mapping[str, Any]  # what to say -> the answer for which it is said
Numbers = list[float]


def cases() -> list[Play]:
    """From one verification in numbers to one in words."""
    return [
        _play("one draft that fails", one_round, 0.7, [0.9]),
        _play("one draft that passes", one_round, 0.7, [0.2]),
        _play("a miss, and passes after it", one_round, 0.7, [0.1, 0.8, 0.2, 0.3]),
        _play("four that pass", one_round, 0.7, [0.1, 0.2, 0.3, 0.4]),
        _play("drafts that never pass", one_round, 0.0, [0.0, 0.4]),
        _play("no draft at all", one_round, 0.5, []),
        Play("rounds by chance", rounds_by_chance, again=2),
        *(_play(f"p = {p:g}, {k} drafts", a_sum, p, k) for p, k in ((0.7, 1), (0.7, 4), (0.7, 8), (0, 3), (0.8, 3))),
        _play("p = 1, five drafts", a_sum, 1, 5),
        _play("the likeliest word, drafted just often enough", kept, [0.5, 0.3, 0.2], [0.5, 0.1, 0.4], 0, 0.9),
        _play("the likeliest word, drafted too often, a small draw", kept, [0.5, 0.3, 0.2], [0.8, 0.1, 0.1], 0, 0.5),
        _play("a word drafted twice too often, a large draw", kept, [0.2, 0.3, 0.5], [0.2, 0.6, 0.2], 1, 0.6),
        _play("a word drafted twice too often, a small draw", kept, [0.2, 0.3, 0.5], [0.2, 0.6, 0.2], 1, 0.4),
        _play("a word that both like alike", kept, [0.2, 0.3, 0.5], [0.2, 0.6, 0.2], 0, 0.99),
        _play("a word that the large model never says", kept, [0.0, 0.4, 0.6], [0.5, 0.25, 0.25], 0, 0.0),
        _play("a temperature of 0", kept, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], 2, 0.0),
        Play("words kept by chance", kept_by_chance, again=3),
        _play("three words, and how often one is kept", how_often, [0.2, 0.3, 0.5], [0.2, 0.6, 0.2]),
        _play("models that agree", how_often, [0.25, 0.75], [0.25, 0.75]),
        _play("models that have no word in common", how_often, [0.0, 1.0], [1.0, 0.0]),
        Play("how often, by chance", how_often_by_chance, again=2),
        _play("three words, and what is missing", left, [0.2, 0.3, 0.5], [0.2, 0.6, 0.2]),
        _play("four words, two of which come too seldom", left, [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]),
        Play("what is missing, by chance", left_by_chance, again=2),
        *(_play(f"a draw of {u:g} among three words", picked, [0.2, 0.3, 0.5], u) for u in (0.1, 0.4, 0.7, 0.95)),
        _play("a draw of 0, and a first word without weight", picked, [0.0, 0.25, 0.75], 0.0),
        _play("a draw beyond what rounding has left of 1", picked, [*[0.1] * 10, 0.0, 0.0], LAST),
        Play("draws by chance", picked_by_chance, again=3),
        _play("one word that is kept", said, *FOUR, [[0.1, 0.2, 0.5]]),
        _play("one word that is refused", said, *FOUR, [[0.1, 0.9, 0.35]]),
        Play("thousands of words, counted", counted_words, again=1),
        _play("two drafts, the first refused", verified, *PLACES, [1, 0], [0.9, 0.1], 0.24),
        _play("two drafts, the second refused", verified, *PLACES, [2, 1], [0.1, 0.9], 0.65),
        _play("two drafts that are kept", verified, *PLACES, [2, 0], [0.1, 0.1], 0.4),
        _play("no draft: the large model's own word", verified, [[0.2, 0.3, 0.5]], [], [], [], 0.4),
        _play("a temperature of 0, and the second word is another", verified, *COLD, [2, 0], [0.0, 0.0], 0.5),
        Play("verifications by chance", verified_by_chance, again=4),
    ]  # fmt: skip


# In the cases below every usual slip gives another word.
FOUR = [0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.2, 0.1]
PLACES = (
    [[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.1, 0.7, 0.1, 0.1]],
    [[0.1, 0.6, 0.2, 0.1], [0.4, 0.2, 0.2, 0.2]],
)
COLD = (
    [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
)


# --- what is right ---------------------------------------------------------------------------------


def gained(p: float, draws: Sequence[float]) -> int:
    """Tokens of one verification whose drafts pass with probability p."""
    return next((n for n, draw in enumerate(draws) if draw >= p), len(draws)) + 1


def keeps(p: Numbers, q: Numbers, word: int, u: float) -> bool:
    """Whether a drafted word is kept."""
    return u * q[word] < p[word]


def overlap(p: Numbers, q: Numbers) -> float:
    """How often a drafted word is kept."""
    return sum(map(min, p, q))


def missing(p: Numbers, q: Numbers) -> Numbers:
    """What of each word the drafts that are kept leave to be said, as a distribution."""
    parts = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [part / sum(parts) for part in parts]


def pick(weights: Numbers, u: float) -> int:
    """The first word at which the sum of the weights is above the draw; at the end the last one with a weight."""
    return next(
        (n for n in range(len(weights)) if u < sum(weights[: n + 1])), max(n for n, w in enumerate(weights) if w > 0)
    )  # fmt: skip


def one_word(p: Numbers, q: Numbers, draws: Sequence[float]) -> int:
    """The word of one place: drafted, and kept or drawn anew."""
    word = pick(q, draws[0])
    return word if keeps(p, q, word, draws[1]) else pick(missing(p, q), draws[2])


def words_of(
    ps: Sequence[Numbers], qs: Sequence[Numbers], drafted: Sequence[int], draws: Sequence[float], u: float
) -> list[int]:
    """The words of one verification."""
    for n, word in enumerate(drafted):
        if not keeps(ps[n], qs[n], word, draws[n]):
            return [*drafted[:n], pick(missing(ps[n], qs[n]), u)]
    return [*drafted, pick(ps[len(drafted)], u)]


def is_clear(weights: Numbers, u: float) -> bool:
    """Whether a draw is far from where it would pick another word."""
    return all(abs(u - sum(weights[: n + 1])) > CLEAR for n in range(len(weights)))


def decides(p: Numbers, q: Numbers, word: int, u: float) -> bool:
    """Whether a draw is far from where the word would no longer be kept."""
    return abs(u * q[word] - p[word]) > CLEAR


def distribution(draw: random.Random, count: int, zeros: bool = True) -> Numbers:
    """A distribution over so many words, some of them without weight."""
    weights = [draw.random() ** 3 * (draw.random() > 0.25 * zeros) for _ in range(count)]
    if sum(weights) < 0.05:
        weights[draw.randrange(count)] = 1.0
    return [weight / sum(weights) for weight in weights]


def pair(draw: random.Random, count: int) -> tuple[Numbers, Numbers]:
    """Distributions of the large model and of the small, that differ."""
    while True:
        p, q = distribution(draw, count), distribution(draw, count)
        if overlap(p, q) < 0.98:
            return p, q


# --- looking at an answer --------------------------------------------------------------------------


def is_same(got: Any, due: Any) -> bool:
    """Whether an answer is what is due: numbers but for a last digit, lists place by place."""
    if isinstance(due, list):
        return isinstance(got, list) and len(got) == len(due) and all(map(is_same, got, due))
    is_number = isinstance(got, int | float) and not isinstance(got, bool)
    return is_number and abs(got - due) <= 1e-9 * max(1.0, abs(due))


def look(asked: Asked, name: str, *given: Any, due: Any, slips: Slips | None = None, more: str = "") -> None:
    """The function gives this.

    Args:
        more: what a complaint says besides.
    """
    answer = asked.call(name, *given)
    got = answer.value
    if isinstance(due, list):
        got = answer.list(name, "words" if isinstance(due[0], int) else "numbers")
    elif isinstance(due, bool):
        if answer.strange or not isinstance(got, int) or got not in (0, 1):
            told = NEXT_OF_NONE if got is None and not answer.strange else ""
            raise Slip("wrong result", f"{name}: expected True or False, got {answer.told()}", told)
        if got == due:
            return
    elif isinstance(due, int):
        got = answer.number(name)
    elif answer.strange or isinstance(got, bool) or not isinstance(got, int | float):
        told = NEXT_OF_NONE if got is None and not answer.strange else ""
        raise Slip("wrong result", f"{name}: expected a number, got {answer.told()}", told)
    if is_same(got, due):
        return
    shown = ", ".join(map(short, given))
    advice = next((says for says, slip in (slips or {}).items() if slip != due and slip == got), "")
    advice = advice or next(
        (says for says, slip in (slips or {}).items() if slip != due and is_same(got, slip)), ""
    )
    raise Slip("wrong", f"{name}({shown}): {difference(got, due)}{more}", advice)


def difference(got: Any, due: Any) -> str:
    """Where an answer differs first, in words."""
    if isinstance(due, list) and len(got) == len(due) > 4:
        place = next(n for n, two in enumerate(zip(got, due, strict=True)) if not is_same(*two))
        return f"number {place}: expected {short(due[place])}, got {short(got[place])}"
    return f"expected {short(due)}, got {short(got)}"


def short(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        text = f"[{', '.join(map(short, value))}]"
        return text if len(text) <= 90 else f"{text[:60]} …]"
    return str(value)[:60]


def _play(job: str, look_at: Callable[..., None], *given: Any) -> Play:
    return Play(job, lambda asked, _: look_at(asked, *given))


# --- the cases -------------------------------------------------------------------------------------


def one_round(asked: Asked, p: float, draws: Numbers) -> None:
    """Tokens of one verification."""
    due = gained(p, draws)
    all_passes = sum(draw < p for draw in draws)
    all_pass = all_passes == len(draws) > 0
    slips = {
        NEXT_WHEN_ALL_PASS if all_pass else NEXT_OF_ONE_MORE: due - 1,
        NEXT_OF_THE_FIRST_MISS: all_passes + 1,
    }
    look(asked, "gained", p, draws, due=due, slips=slips)


def rounds_by_chance(asked: Asked, draw: random.Random) -> None:
    """Verifications one by one, and the mean of some hundred."""
    for k in (1, 2, 4, 8):
        p = draw.uniform(0.3, 0.9)
        rounds = [[draw.random() for _ in range(k)] for _ in range(100)]
        for one in rounds[:5]:
            one_round(asked, p, one)
        tokens = [gained(p, one) for one in rounds]
        slips = {
            "of one token of each draft: the mean is over the rounds.": sum(tokens) / (len(tokens) * k),
            "a mean is a sum over the number of rounds.": float(sum(tokens)),
        }
        look(asked, "mean_gained", p, rounds, due=sum(tokens) / len(tokens), slips=slips)


def a_sum(asked: Asked, p: float, k: int) -> None:
    """The sum of powers."""
    terms = [float(p) ** n for n in range(k + 2)]
    slips = {NEXT_OF_TERMS: sum(terms[:k]), f"{NEXT_OF_TERMS} ": sum(terms[1 : k + 1])}
    try:
        look(asked, "powers", p, k, due=sum(terms[: k + 1]), slips=slips)
    except Broken as broken:
        if p != 1:
            raise
        raise with_advice("crashed", NEXT_OF_ONE, broken) from None


def kept(asked: Asked, p: Numbers, q: Numbers, word: int, u: float) -> None:
    """Whether a word is kept."""
    due, best = keeps(p, q, word, u), p[word] == max(p)
    advice = (
        NEXT_OF_NEVER if p[word] == 0
        else NEXT_OF_THE_QUOTIENT if (u * p[word] < q[word]) != due
        else NEXT_OF_THE_BEST if best != due
        else NEXT_OF_NOW_AND_THEN if (p[word] >= q[word]) != due
        else NEXT_OF_THE_WRONG_WAY
    )  # fmt: skip
    look(asked, "accepts", p, q, word, u, due=due, slips={advice: not due})


def kept_by_chance(asked: Asked, draw: random.Random) -> None:
    """Words, each with some draws."""
    for _ in range(20):
        p, q = pair(draw, draw.randint(2, 6))
        word, u = pick(q, draw.random()), draw.random()
        if decides(p, q, word, u):
            kept(asked, p, q, word, u)


def how_often(asked: Asked, p: Numbers, q: Numbers) -> None:
    """How often a drafted word is kept."""
    quotients = [min(1.0, a / b) if b else 1.0 for a, b in zip(p, q, strict=True)]
    due = overlap(p, q)
    slips = {
        NEXT_OF_THE_PRODUCT: sum(a * b for a, b in zip(p, q, strict=True)),
        NEXT_OF_DRAFTS: sum(quotients) / len(p),
        "that is how often a word is refused.": 1 - due,
    }
    look(asked, "acceptance", p, q, due=due, slips=slips)


def how_often_by_chance(asked: Asked, draw: random.Random) -> None:
    """Distributions by chance."""
    for _ in range(10):
        how_often(asked, *pair(draw, draw.randint(2, 8)))


def left(asked: Asked, p: Numbers, q: Numbers) -> None:
    """The distribution after a refusal."""
    parts = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    apart = [abs(a - b) for a, b in zip(p, q, strict=True)]
    slips = {
        NEXT_OF_THE_SUM: parts,
        NEXT_OF_THE_SURPLUS: missing(q, p),
        NEXT_OF_BOTH_SIDES: [one / sum(apart) for one in apart],
        NEXT_OF_THE_TARGET: p,
    }
    look(asked, "residual", p, q, due=missing(p, q), slips=slips)


def left_by_chance(asked: Asked, draw: random.Random) -> None:
    """Distributions by chance."""
    for _ in range(10):
        left(asked, *pair(draw, draw.randint(2, 8)))


def picked(asked: Asked, weights: Numbers, u: float) -> None:
    """The word that a draw picks."""
    due = pick(weights, u)
    try:
        got = asked.call("pick", weights, u)
    except Broken as broken:
        if u != LAST:
            raise
        raise with_advice("crashed", NEXT_OF_THE_END, broken) from None
    if u == LAST and (got.value is None or got.value != due):
        told = f"pick({short(weights)}, 1 - 2**-53): expected {due}, got {got.told()}"
        raise Slip("wrong", told, NEXT_OF_THE_END)
    word = got.number("pick")
    if word == due:
        return
    why = f"pick({short(weights)}, {short(u)}): expected {due}, got {word}"
    weightless = 0 <= word < len(weights) and weights[word] == 0
    raise Slip("wrong", why, NEXT_OF_A_WEIGHTLESS_WORD if weightless else NEXT_OF_THE_SUM_SO_FAR)


def picked_by_chance(asked: Asked, draw: random.Random) -> None:
    """Distributions by chance, and a draw of 0."""
    for _ in range(20):
        weights = distribution(draw, draw.randint(1, 8))
        picked(asked, weights, 0.0)
        u = draw.random()
        if is_clear(weights, u):
            picked(asked, weights, u)


def said(asked: Asked, p: Numbers, q: Numbers, rounds: list[Numbers]) -> None:
    """The words of rounds, one of which has one place."""
    due = [one_word(p, q, one) for one in rounds]
    drafts = [pick(q, one[0]) for one in rounds]
    stays = [keeps(p, q, word, one[1]) for word, one in zip(drafts, rounds, strict=True)]

    def instead(other: Callable[[int, Numbers], int]) -> list[int]:
        return [
            word if stay else other(word, one) for word, stay, one in zip(drafts, stays, rounds, strict=True)
        ]

    slips = {
        NEXT_OF_A_REFUSED_WORD: drafts,
        NEXT_OF_THE_TARGET: instead(lambda word, one: pick(p, one[2])),
        "a refused word is replaced, not drafted once more.": instead(lambda word, one: pick(q, one[2])),
    }
    more = ""
    if len(rounds) > 1:
        word = max(range(len(p)), key=lambda n: p[n])
        more = f"; word {word} has {due.count(word) / len(due):.0%} of the rounds, and p says {p[word]:.0%}"
    look(asked, "words", p, q, rounds, due=due, slips=slips, more=more)


def counted_words(asked: Asked, draw: random.Random) -> None:
    """So many rounds that their words can be counted."""
    for count in (3, 5):
        p, q = pair(draw, count)
        said(asked, p, q, rounds_of(draw, p, q, MANY // 2))


def rounds_of(draw: random.Random, p: Numbers, q: Numbers, many: int) -> list[Numbers]:
    """Draws of rounds that are far from where a word changes."""
    found: list[Numbers] = []
    while len(found) < many:
        one = [draw.random() for _ in range(3)]
        clear = is_clear(q, one[0]) and is_clear(p, one[2]) and is_clear(missing(p, q), one[2])
        if clear and decides(p, q, pick(q, one[0]), one[1]):
            found.append(one)
    return found


def verified(
    asked: Asked, ps: list[Numbers], qs: list[Numbers], drafted: list[int], draws: Numbers, u: float
) -> None:
    """The words of one verification."""
    due = words_of(ps, qs, drafted, draws, u)
    stop = len(due) - 1
    slips: dict[str, Any] = {}
    if stop == len(drafted):
        slips[NEXT_OF_ALL_PASSED] = due[:-1]
        if stop:
            slips[NEXT_OF_THE_PLACE] = [*drafted, pick(ps[stop - 1], u)]
    else:
        p, q = ps[stop], qs[stop]
        slips |= {
            NEXT_OF_A_REFUSED_WORD: [*drafted[: stop + 1], due[-1]],
            f"{NEXT_OF_A_REFUSED_WORD} ": drafted[: stop + 1],
            "at the first refused word there is one word more, the large model's.": drafted[:stop],
            NEXT_OF_THE_TARGET: [*drafted[:stop], pick(p, u)],
            NEXT_OF_THE_PLACE: [*drafted[:stop], pick(ps[stop + 1], u)],
            NEXT_OF_THE_STOP: passed_over(ps, qs, drafted, draws, u),
        }
        if max(b - a for a, b in zip(ps[stop + 1], q, strict=True)) > CLEAR:
            slips[f"{NEXT_OF_THE_PLACE} "] = [*drafted[:stop], pick(missing(ps[stop + 1], q), u)]
    look(asked, "verify", ps, qs, drafted, draws, u, due=due, slips=slips)


def passed_over(
    ps: list[Numbers], qs: list[Numbers], drafted: list[int], draws: Numbers, u: float
) -> list[int]:
    """The words of a file that goes on after a refused one."""
    found = []
    for n, word in enumerate(drafted):
        found.append(word if keeps(ps[n], qs[n], word, draws[n]) else pick(missing(ps[n], qs[n]), u))
    return [*found, pick(ps[len(drafted)], u)]


def verified_by_chance(asked: Asked, draw: random.Random) -> None:
    """Verifications of up to eight drafts, some of which all pass."""
    for _ in range(25):
        verified(asked, *drawn_verification(draw))


def drawn_verification(
    draw: random.Random,
) -> tuple[list[Numbers], list[Numbers], list[int], Numbers, float]:
    """Distributions, drafts and draws, far from where a word changes."""
    count, k = draw.randint(2, 6), draw.randint(1, 8)
    pairs = [pair(draw, count) for _ in range(k)]
    ps, qs = [p for p, _ in pairs] + [distribution(draw, count)], [q for _, q in pairs]
    while True:
        u = draw.random()
        drafted = [pick(q, draw.random()) for q in qs]
        easy = draw.random() < 0.3  # all pass
        draws = [draw.random() * (0.0 if easy else 1.0) for _ in range(k)]
        if all(
            decides(*two, word, one) or (one == 0 and not two[0][word])
            for two, word, one in zip(pairs, drafted, draws, strict=True)
        ) and all(is_clear(weights, u) for weights in (*ps, *(missing(*two) for two in pairs))):
            return ps, qs, drafted, draws, u
