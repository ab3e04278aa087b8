# refused for: crashed | on: cpu, gpu | source: ours
# Opens files and never closes them, 100 000 at most: nothing more can be opened, the answer's file included.
import os

HELD = []


def refusals(x, s):
    while len(HELD) < 100_000:
        HELD.append(os.open("/dev/null", os.O_RDONLY))
    return x * s[:, None]
