"""Attention forward of 8-bit numbers, with a scale for each block of rows."""
