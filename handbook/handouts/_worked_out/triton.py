"""What the kernels of Triton's page do, on lists."""


class _Places(list):
    """Numbers side by side, as a program of Triton has them."""

    def _with(self, other, how):
        others = other if isinstance(other, list) else [other] * len(self)
        return _Places(how(a, b) for a, b in zip(self, others, strict=True))

    def __add__(self, other):
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other):
        return self._with(other, lambda a, b: b - a)

    def __lt__(self, other):
        return self._with(other, lambda a, b: a < b)

    __radd__ = __add__


class _Program(int):
    def to(self, dtype):
        """Wider, and the same."""
        return self

    __mul__ = __rmul__ = lambda self, other: int(self) * other


class _Language:
    """As much of `tl` as one kernel needs, for one program; out of bounds is an IndexError."""

    constexpr = int64 = None

    def __init__(self, program, lists):
        self.program, self.lists = program, lists

    def program_id(self, axis):
        return _Program(self.program)

    def arange(self, first, last):
        return _Places(range(first, last))

    def load(self, places, mask):
        return _Places(
            self._at(p) if seen else 0 for p, seen in zip(places, mask, strict=True)
        )

    def store(self, places, numbers, mask):
        for place, number, seen in zip(places, numbers, mask, strict=True):
            if seen:
                self._at(place)
                self.lists[place] = number

    def _at(self, place):
        if place not in self.lists:
            raise IndexError(place)
        return self.lists[place]


def _turns_round(code, N=600, out=10_000):
    """Whether a kernel, `turn`, gives a list the other way round."""
    body = code.partition("@triton.jit\n")[2].partition("\n\n")[0]
    lists = {i: i * i for i in range(N)} | {out + i: -1 for i in range(N)}
    for program in range(-(-N // 256)):
        names = {"tl": _Language(program, lists)}
        exec(body, names)
        names["turn"](0, out, N, 256)
    return [lists[out + i] for i in range(N)] == [i * i for i in reversed(range(N))]


ANSWERS = {
    "Right at home, wrong on the card": (1000, 'input_precision="ieee"'),
    "Turn a list round": (1, _turns_round, 0, 1),
    "Softmax of a row": ('other=-float("inf")', 0),
}
