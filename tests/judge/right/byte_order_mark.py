# right | on: cpu, gpu
# A byte order mark at the start, as some editors of Windows leave it.


def refusals(x, s):
    return x * s[:, None]
