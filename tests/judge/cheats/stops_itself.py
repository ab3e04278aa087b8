# refused for: timed out | on: cpu, gpu | source: ours
# Stops its own process, which then neither works nor ends; a parent that waits for an end waits for ever.
import os
import signal


def refusals(x, s):
    os.kill(os.getpid(), signal.SIGSTOP)
    return x * s[:, None]
