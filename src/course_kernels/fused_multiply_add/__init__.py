"""Multiply-adds and nothing else: the peak of fp32 arithmetic, and what it takes to reach it."""
