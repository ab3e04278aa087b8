"""The answer of the page of all kernels."""

ANSWERS = {"The point furthest below its roof": (2, 24)}
