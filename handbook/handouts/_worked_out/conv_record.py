"""Bits of the two kinds of work on the page about a published convolution."""

TF32_STORED, FP32_STORED = 10, 23  # of a fraction; the leading one is not stored

ANSWERS = {"Fill in the four boxes": (TF32_STORED + 1, FP32_STORED + 1)}
