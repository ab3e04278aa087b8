# refused for: timed out | on: cpu, gpu | source: ours
# Ignores every signal that can be ignored, and then sleeps: a polite request to end is not enough. 15 minutes at most.
import contextlib
import signal
import time


def refusals(x, s):
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    until = time.monotonic() + 900
    while time.monotonic() < until:
        time.sleep(1)
    return x * s[:, None]
