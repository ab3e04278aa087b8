"""The answer of the page on attention on Hopper."""

ANSWERS = {}
