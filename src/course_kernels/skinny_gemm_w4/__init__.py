"""A few rows times a large matrix of 4-bit weights: what a token of a quantised model costs."""
