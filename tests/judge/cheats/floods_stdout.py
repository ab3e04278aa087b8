# refused for: out of room | on: cpu, gpu | source: ours
# Prints 4 GiB at most: a judge that keeps what is printed runs out of memory itself.
import os


def refusals(x, s):
    line = b"right " * 2**17 + b"\n"
    for _ in range(4 * 2**30 // len(line)):
        for fd in (1, 2):
            os.write(fd, line)
    return x * s[:, None]
