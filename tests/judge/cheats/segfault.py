# refused for: died | on: cpu, gpu | source: ours
# Reads address 0: no handler of Python's sees it.
import ctypes


def refusals(x, s):
    ctypes.string_at(0)
    return x * s[:, None]
