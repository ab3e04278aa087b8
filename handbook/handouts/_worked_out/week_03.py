"""What twice the tokens cost, for week 3."""

from fractions import Fraction

TOKENS = 1024


def pairs(tokens, *, causal=False):
    """Pairs of a query and a key; with a mask a query meets what stands before it, and itself."""
    return tokens * (tokens + 1) // 2 if causal else tokens * tokens


SQUARE = Fraction(pairs(2 * TOKENS), pairs(TOKENS))
LEFT = round(pairs(TOKENS, causal=True) / pairs(TOKENS), 2)

ANSWERS = {"Twice the length": (2, SQUARE**0.5, 2, LEFT)}
