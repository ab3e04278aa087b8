"""The sum of two cards' numbers, on both: a ring of two, by hand."""
