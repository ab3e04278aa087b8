# right | on: cpu, gpu
# Lines that end as on Windows.


def refusals(x, s):
    return x * s[:, None]
