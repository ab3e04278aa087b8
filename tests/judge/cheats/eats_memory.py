# refused for: out of memory or timed out | on: cpu, gpu | source: ours
# Fills memory, 64 GiB at most, and stops before the machine has none left: then it is right and was not stopped.
MEMORY, BLOCK = 64 * 2**30, 256 * 2**20


def available():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def refusals(x, s):
    held = []
    while len(held) * BLOCK < MEMORY and available() > 3 * 2**30:
        held.append(bytearray(b"\1") * BLOCK)
    del held
    return x * s[:, None]
