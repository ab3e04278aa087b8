"""The softmax of every row, one operator after the other."""


def softmax(x):
    """The softmax of every row of x (M, N)."""
    powers = (x - x.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
