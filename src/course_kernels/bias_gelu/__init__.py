"""Bias and GELU in one pass: what fusion saves."""
