# refused for: wrong result | on: cpu, gpu | source: ours
# No tensor at all: an object whose `__array__` multiplies when NumPy compares it.


class Later:
    def __init__(self, x, s):
        self.parts = x, s
        self.shape, self.dtype, self.device = x.shape, x.dtype, x.device

    def __array__(self, dtype=None, copy=None):
        x, s = self.parts
        return (x * s[:, None]).cpu().numpy().astype(dtype or "float32")


def refusals(x, s):
    return Later(x, s)
