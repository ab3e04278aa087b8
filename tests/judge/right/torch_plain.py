# right | on: cpu, gpu
# One line of torch.


def refusals(x, s):
    return x * s[:, None]
