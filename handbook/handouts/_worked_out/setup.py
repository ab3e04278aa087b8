"""The answer of the page on setting up."""

ANSWERS = {"Read your own row": 9.0}
