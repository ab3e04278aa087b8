# refused for: wrong shape | on: cpu, gpu | source: ours
# One dimension too many: a comparison that broadcasts says it is right.


def refusals(x, s):
    return (x * s[:, None])[None]
