# refused for: too many processes or out of memory | on: cpu, gpu | source: ours
# Starts processes that sleep, 500 at most, for two minutes: who may not start so many must not take others down.
import os
import time


def refusals(x, s):
    for _ in range(500):
        if os.fork() == 0:
            time.sleep(120)
            os._exit(0)
    return x * s[:, None]
