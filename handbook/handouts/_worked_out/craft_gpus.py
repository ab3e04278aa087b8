"""The unknown card of the page on other cards."""

ANSWERS = {"An unknown card": (1 / 3, 3, 2, 16, 3, 4, 2, 4)}
