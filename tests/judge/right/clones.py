# right | on: cpu, gpu
# Works in place, on a copy.


def refusals(x, s):
    return x.clone().mul_(s[:, None])
