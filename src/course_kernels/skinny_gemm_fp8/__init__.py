"""A few rows times a large matrix of 8-bit floats, a scale for every row of both."""
