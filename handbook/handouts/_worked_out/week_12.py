"""What the next step of a report could bring, for week 12: all of it is quoted from records."""

ANSWERS = {}
