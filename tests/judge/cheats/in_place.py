# refused for: shares memory | on: cpu, gpu | source: ours
# Works in place and returns the input itself: no memory to allocate, one tensor less for the caller.


def refusals(x, s):
    return x.mul_(s[:, None])
