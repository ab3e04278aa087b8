"""Checks of texts: typed numbers, values that are not what the words say, sums, predictions given away."""
