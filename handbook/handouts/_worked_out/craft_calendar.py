"""The answer of the page of the calendar."""

ANSWERS = {"Your own cohort": 2}
