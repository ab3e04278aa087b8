# refused for: input modified | on: cpu, gpu | source: ours
# Works in place, copies, and divides again: the input is back, but for its last bits.


def refusals(x, s):
    y = x.mul_(s[:, None]).clone()
    x.div_(s[:, None])
    return y
