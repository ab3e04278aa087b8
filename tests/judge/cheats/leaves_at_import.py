# refused for: died | on: cpu, gpu | source: ours
# Ends the process with exit status 0 before there is anything to call.
import os

os._exit(0)


def refusals(x, s):
    return x * s[:, None]
