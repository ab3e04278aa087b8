"""planted: too many bytes

A softmax as the formula says it, one operator after the other: each of them carries the whole matrix.
"""


def softmax(x):
    """The softmax of every row of x (M, N)."""
    powers = (x - x.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
