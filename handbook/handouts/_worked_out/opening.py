"""The answers of the first evening's pages."""

ANSWERS = {"Rehearse": 40, "Draw it": 5}
CHECK_ANSWERS = {"A billion, for one modest multiply": (9, 10**9)}
BLANKS = {"page one": 1000**3}
