# refused for: a view | on: cpu, gpu | source: ours
# Stores the answer column by column and turns a view round: the next reader pays for the transpose.


def refusals(x, s):
    return (x.t().contiguous() * s).t()
