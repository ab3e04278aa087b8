# refused for: timed out | on: cpu, gpu | source: ours
# Before there is a function to call it compiles one source after another. 15 minutes at most.
import time

until = time.monotonic() + 900
variant = 0
while time.monotonic() < until:
    variant += 1
    compile(f"def tuned(x):\n    return x * {variant}\n" * 1000, "tuned", "exec")


def refusals(x, s):
    return x * s[:, None]
