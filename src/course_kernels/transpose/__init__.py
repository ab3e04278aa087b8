"""Transpose a matrix: reading and writing along lines of memory, both at once."""
