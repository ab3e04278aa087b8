# refused for: died | on: cpu, gpu | source: ours
# Takes Python's limit away and recurses through C: the stack of the process runs out.
import functools
import sys


def refusals(x, s):
    sys.setrecursionlimit(2**31 - 1)
    nested = functools.partial(int)
    for _ in range(10_000_000):
        nested = functools.partial(map, nested)
    held = []
    for _ in range(10_000_000):
        held = [held]
    repr(held)
    return x * s[:, None]
