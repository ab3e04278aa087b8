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


def acceptance(p, q):
    """Return the probability that a word drafted from q is kept."""


def residual(p, q):
    """Return the distribution from which the word in place of a refused one is drawn."""


def pick(weights, u):
    """Return the first word at which the weights so far add up to more than u; else the last one with a weight."""


def words(p, q, rounds):
    """Return the word of each round: drafted from q by the first of its draws, kept by the second, or else redrawn."""


def verify(ps, qs, drafted, draws, u):
    """Return the words of one verification: the leading drafts that are kept, and one more, drawn by u."""


if __name__ == "__main__":  # your own run:  python my_labs/verify.py
    import random

    rng = random.Random(0)
    rounds = [[rng.random() for _ in range(4)] for _ in range(20_000)]
    print(mean_gained(0.7, rounds), "tokens per verification; the sum of powers says", powers(0.7, 4))
