# refused for: died or crashed or out of memory or timed out | on: cpu, gpu | source: ours
# Takes Python's limit away and recurses in C, through a list of lists: the stack of the process runs out.
import sys


def refusals(x, s):
    sys.setrecursionlimit(2**31 - 1)
    held = []
    for _ in range(2_000_000):
        held = [held]
    repr(held)
    return x * s[:, None]
