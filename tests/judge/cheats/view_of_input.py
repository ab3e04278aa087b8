# refused for: shares memory | on: cpu, gpu | source: ours
# Works in place and returns a view of the input, which is another object than the input.


def refusals(x, s):
    x.mul_(s[:, None])
    return x.view(-1).view(x.shape)
