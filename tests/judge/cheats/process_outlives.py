# refused for: left behind | on: cpu, gpu | source: ours
# Right; but it leaves a process that goes on working when the next kernel is timed. Two minutes at most.
import os
import time

left = []


def refusals(x, s):
    if not left and not left.append(True) and os.fork() == 0:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            time.sleep(0.01)
        os._exit(0)
    return x * s[:, None]
