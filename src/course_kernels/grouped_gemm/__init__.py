"""Matrix multiply of 8-bit numbers, many groups of rows, each with a matrix of its own; scales for blocks of 128."""
