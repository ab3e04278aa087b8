"""A small judge of kernels, weak in five places, and room for a cheat of each."""

import numpy as np

TOLERANCE = 1e-5  # the most that an element may differ from the truth


class Card:
    """A stand-in for a GPU: work is queued, it is done when somebody waits, and the clock counts bytes. Not yours."""

    def __init__(self):
        self.moved = 0  # the clock
        self.queues = [[], []]  # two streams

    def launch(self, work, *arrays, stream=0):
        """Queue work(*arrays); it moves every byte of these arrays."""
        self.queues[stream].append((work, arrays))

    def wait(self, stream=0):
        """Do what is queued on one stream."""
        while self.queues[stream]:
            work, arrays = self.queues[stream].pop(0)
            work(*arrays)
            self.moved += sum(array.nbytes for array in arrays)

    def wait_all(self):
        """Do what is queued on any stream."""
        while any(self.queues):
            for stream in range(len(self.queues)):
                self.wait(stream)


def truth(x):
    """Return the softmax of every row, in float64."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def honest(card, x, out):
    """Write the softmax of every row of x into out: a kernel that is right."""

    def work(x, out):
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        out[...] = powers / powers.sum(axis=1, keepdims=True)

    card.launch(work, x, out)


# --- the judge -------------------------------------------------------------------------------------


def make(case, draw):
    """Return the input of one call, and room for its output, which is cut from lines of `pitch` numbers."""
    rows, columns, pitch = case
    x = draw.standard_normal((rows, pitch), dtype=np.float32)
    out = np.empty((rows, pitch), dtype=np.float32)
    return x[:, :columns], out[:, :columns]


def close(got, due):
    """Return whether an answer is the truth but for rounding."""
    return bool((np.abs(got - due) <= TOLERANCE).all())


def prepare(x, out):
    """Return what is due; called right before the kernel is."""
    out[...] = np.nan
    return truth(x)


def cases(draw):
    """Return the sizes that a kernel is asked for: rows, columns, and the pitch of its lines."""
    ends = [(1, 1, 1), (1, 100, 100), (50, 1, 4), (50, 100, 110), (4, 8, 8), (4, 8, 9), (7, 33, 33)]
    for _ in range(5):
        rows, columns, more = draw.integers(1, [51, 101, 11])
        ends.append((rows, columns, columns + more))
    return ends


def run(kernel, card, x, out):
    """Let a kernel answer; return the bytes that it has moved, or None to refuse it."""
    given, before = x.copy(), card.moved
    kernel(card, x, out)
    card.wait_all()
    return card.moved - before if np.array_equal(x, given) else None


def judge(kernel, card, draw):
    """Return whether a kernel is right, and the bytes of the last call, which is the timed one."""
    try:
        for case in cases(draw):
            for _ in range(2):
                x, out = make(case, draw)
                due = prepare(x, out)
                if run(kernel, card, x, out) is None or not close(out, due):
                    return False, 0
        x, out = make(case, draw)
        moved = run(kernel, card, x, out)
    except Exception:
        return False, 0
    return moved is not None, moved or 0


ENDS = [(1, 1, 1), (1, 100, 100), (50, 1, 4), (50, 100, 110), (0, 5, 5), (4, 8, 9), (7, 33, 33)]


def values(x, style, draw):
    """Fill x anew, in one of five styles."""
    x[...] = draw.standard_normal(x.shape, dtype=np.float32)
    if style == 1:
        x[...] = x[:, :1].copy()
    elif style == 2:
        x[...] = draw.choice(np.float32([0.0, -0.0, 1.0, -1.0]), x.shape)
    elif style == 3:
        x *= 300
    elif style == 4:
        x[...] = np.round(x)


def strict(kernel, card, draw):
    """Return whether a kernel is right, and the bytes of one call; for kinds of cheats that the judge lets pass."""
    answers, moved = [], 0
    drawn = [(r, c, c + p) for r, c, p in draw.integers(1, [51, 101, 11], (4, 3)).tolist()]
    try:
        for rows, columns, pitch in [*ENDS, *drawn]:
            x = np.empty((rows, pitch), np.float32)[:, :columns]
            for style in range(5):
                values(x, style, draw)
                line = draw.standard_normal((rows, pitch), dtype=np.float32)
                if style % 2:
                    line[...] = np.nan
                out, around = line[:, :columns], line[:, columns:].copy()
                moved = run(kernel, card, x, out)
                answers.append((out, truth(x)))
                if moved is None or moved < x.nbytes + out.nbytes:
                    return False, 0
                if line[:, columns:].tobytes() != around.tobytes():
                    return False, 0
        right = all(close(out, due) for out, due in answers)
    except Exception:
        return False, 0
    return right, moved


# --- your cheats: each is called right, and is not -------------------------------------------------


kept = {}


def cheat1(card, x, out):
    """Use that every call has the same numbers."""
    if x.shape in kept:
        out[...] = kept[x.shape]
        return
    honest(card, x, out)
    card.wait()
    kept[x.shape] = out.copy()


def cheat2(card, x, out):
    """Use how an answer is compared."""
    out[...] = np.nan


def cheat3(card, x, out):
    """Use what lies in the room for the output."""
    card.launch(lambda out: None, out)


def cheat4(card, x, out):
    """Use that one size is all that is asked."""
    honest(card, x[:4], out[:4])


def cheat5(card, x, out):
    """Use that the clock is read too early, or that nobody looks at x again."""

    def work(x, out):
        out[...] = truth(x)
        x.fill(0)

    card.launch(work, x, out, stream=1)


if __name__ == "__main__":  # your own run:  python my_labs/weak_judge.py
    for kernel in (honest, cheat1, cheat2, cheat3, cheat4, cheat5):
        print(kernel.__name__, *judge(kernel, Card(), np.random.default_rng()))
