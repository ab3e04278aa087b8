# refused for: timed out | on: cpu, gpu | source: ours
# A loop that does not end, and catches whatever would end it. 15 minutes at most.
import time


def refusals(x, s):
    until = time.monotonic() + 900
    while time.monotonic() < until:
        try:
            while time.monotonic() < until:
                pass
        except BaseException:  # the interrupt of a deadline included
            continue
    return x * s[:, None]
