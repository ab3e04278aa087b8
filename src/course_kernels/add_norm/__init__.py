"""Add two matrices, then give every row a mean of 0 and a spread of 1: the step between two layers of a transformer."""
