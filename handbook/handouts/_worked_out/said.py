"""The answers of the page of what is often said."""

ANSWERS = {"Correct three": ("(a) of what", "(b) than what", "(c) room or trips")}
