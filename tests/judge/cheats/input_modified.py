# refused for: input modified | on: cpu, gpu | source: ours
# Works in place and returns a copy: the second call would scale twice.


def refusals(x, s):
    x.mul_(s[:, None])
    return x.clone()
