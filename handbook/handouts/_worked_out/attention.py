"""The answer of the page on attention on Hopper."""

ANSWERS = {"Where it shows": 2}
