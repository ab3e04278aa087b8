"""Matrix multiply of 8-bit numbers: one scale for every matrix, sums on the tensor cores."""
