"""Speculative decoding's verification: a small model drafts, the large one decides."""


def gained(p, draws):
    """Return the tokens of one verification: the leading drafts whose draw is below p, and one more."""
    passed = 0
    while passed < len(draws) and draws[passed] < p:
        passed += 1
    return passed + 1


def mean_gained(p, rounds):
    """Return the mean number of tokens of a verification, over many rounds of draws."""
    return sum(gained(p, draws) for draws in rounds) / len(rounds)


def powers(p, k):
    """Return 1 + p + p**2 + ... + p**k."""
    return sum(p**i for i in range(k + 1))


def accepts(p, q, word, u):
    """Return whether a word drafted from q is kept: with probability min(1, p[word] / q[word]), by the draw u."""
    return u < p[word] / q[word]


def acceptance(p, q):
    """Return the probability that a word drafted from q is kept."""
    return sum(min(p[word], q[word]) for word in range(len(p)))


def residual(p, q):
    """Return the distribution from which the word in place of a refused one is drawn."""
    missing = [max(p[word] - q[word], 0) for word in range(len(p))]
    total = sum(missing)
    return [part / total for part in missing]


def pick(weights, u):
    """Return the first word at which the weights so far add up to more than u; else the last one with a weight."""
    so_far = 0
    for word, weight in enumerate(weights):
        so_far += weight
        if u < so_far:
            return word
    return max(word for word, weight in enumerate(weights) if weight > 0)


def words(p, q, rounds):
    """Return the word of each round: drafted from q by the first of its draws, kept by the second, or else redrawn."""
    said = []
    for draft, keep, again in rounds:
        word = pick(q, draft)
        if not accepts(p, q, word, keep):
            word = pick(residual(p, q), again)
        said.append(word)
    return said


def verify(ps, qs, drafted, draws, u):
    """Return the words of one verification: the leading drafts that are kept, and one more, drawn by u."""
    for place, word in enumerate(drafted):
        p, q = ps[place], qs[place]
        if not accepts(p, q, word, draws[place]):
            return [*drafted[:place], pick(residual(p, q), u)]
    return [*drafted, pick(ps[-1], u)]


def several(p, q, drafted, draws, u):
    """Return the word of one place for which several words were drafted from q, each with its draw."""
    wanted = p
    for number, tried in enumerate(drafted):
        if accepts(wanted, q, tried, draws[number]):
            return tried
        wanted = residual(wanted, q)  # all that is left to say once this one is refused
    return pick(wanted, u)


if __name__ == "__main__":  # your own run:  python my_labs/verify.py
    import random

    rng = random.Random(0)
    rounds = [[rng.random() for _ in range(4)] for _ in range(20_000)]
    print(mean_gained(0.7, rounds), "tokens per verification; the sum of powers says", powers(0.7, 4))
