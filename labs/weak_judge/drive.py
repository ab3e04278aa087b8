"""Kernels for a student's judge, and calls of a student's kernels. The grader sends this text; it knows no verdict.

It runs in the process that runs the student's file. A kernel is handed over as an object that can be called and shows
nothing else of itself: what a judge asks of it besides is noted.
"""

import itertools

import numpy as np

F32 = np.float32
ENDLESS = "endless"
MOST = 2000  # calls that one judgement may make: a judge that goes on is stopped


class Card:
    """The card, as the starter has it."""

    def __init__(self):
        self.moved = 0
        self.queues = [[], []]

    def launch(self, work, *arrays, stream=0):
        self.queues[stream].append((work, arrays))

    def wait(self, stream=0):
        while self.queues[stream]:
            work, arrays = self.queues[stream].pop(0)
            work(*arrays)
            self.moved += sum(array.nbytes for array in arrays)

    def wait_all(self):
        while any(self.queues):
            for stream in range(len(self.queues)):
                self.wait(stream)


def drive(functions, what, *given):
    """Run what the grader asks for."""
    with np.errstate(all="ignore"):
        return {"calls": calls, "judge": judged}[what](functions, *given)


# --- calls of a student's kernel -------------------------------------------------------------------


def calls(functions, given):
    """Call the kernel on each (shape, pitch, x, room); return what came of it, numbers as hexadecimal bytes."""
    (kernel,) = functions
    return [one_call(kernel, *one) for one in given]


def one_call(kernel, shape, pitch, numbers, room):
    """Return (error, x, out, bytes when the first stream is done, bytes when all is done)."""
    card = Card()
    x, out = (lines(shape, pitch, text) for text in (numbers, room))
    try:
        kernel(card, x, out)
        card.wait()
        early = card.moved
        card.wait_all()
    except Exception as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return [said[:120], "", "", 0, 0]
    return ["", x.tobytes().hex(), out.tobytes().hex(), early, card.moved]


def lines(shape, pitch, text):
    """Return an array in lines of `pitch` numbers."""
    rows, columns = shape
    room = np.zeros((rows, pitch), F32)
    room[:, :columns] = np.frombuffer(bytes.fromhex(text), F32).reshape(rows, columns)
    return room[:, :columns]


# --- a student's judge ---------------------------------------------------------------------------


class TooMany(BaseException):
    """More calls than a judgement may make."""


def judged(functions, given):
    """Have the judge judge each (name, options, seed).

    Returns:
        Of each, [what it returned, what of the kernel it looked at, [bytes of each size that was asked], whether the
        kernel did what it is there for].
    """
    judge, *own = functions
    found = []
    for one in given:
        found.append(one_judgement(judge, own, *one))
        if found[-1][0] == ENDLESS:
            return [found[-1] for _ in given]  # once is long enough
    return found


def one_judgement(judge, own, name, options, seed):
    asked, looked, sizes = [0], [], {}
    try:
        fresh = kernel_of(own, name, options, seed, judge)
    except TooMany:
        return [ENDLESS, looked, [], True]
    inner, state = fresh()

    class Kernel:
        def __call__(self, card, x, out):
            asked[0] += 1
            if asked[0] > MOST:
                raise TooMany
            sizes[x.shape] = x
            return inner(card, x, out)

        def __getattribute__(self, name):
            if name != "__class__":  # isinstance asks for it
                looked.append(name)
            return object.__getattribute__(self, name)

    try:
        found = judge(Kernel(), Card(), np.random.default_rng(seed))
    except TooMany:
        return [ENDLESS, looked, [], True]
    except AttributeError:
        if not looked:
            raise
        found = None
    return [told(found), looked[:1], [bytes_of(fresh()[0], shape) for shape in sizes], state["at work"]]


def told(found):
    """Return the verdict as [right, bytes]; None for another form."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        return None
    right, moved = found
    if not isinstance(right, bool | np.bool_) or isinstance(moved, bool):
        return None
    if not isinstance(moved, int | float | np.number) or not np.isfinite(moved):
        return None
    return [bool(right), int(moved)]


def bytes_of(kernel, shape):
    """Return what one call of a kernel moves."""
    card = Card()
    x, out = np.ones(shape, F32), np.zeros(shape, F32)
    try:
        kernel(card, x, out)
        card.wait_all()
    except Exception:
        return -1  # a cheat of its own kind
    return card.moved


# --- kernels ---------------------------------------------------------------------------------------


def kernel_of(own, name, options, seed, judge):
    """Return a function that makes such a kernel anew, with what it knows about itself."""
    if name == "own":
        return lambda: (own[options], {"at work": True})
    if name == "lazy":
        options = {"number": len(answers_in(judge, seed)) - options["before"]}
    elif name == "replays":
        options = {"recorded": answers_in(judge, seed + 1)}
    return lambda: KERNELS[name](**options)


def answers_in(judge, seed):
    """Return the answer of every call that a judge makes of an honest kernel."""
    found = []

    def noted(card, x, out):
        if len(found) == MOST:
            raise TooMany
        found.append(answer(x))
        card.launch(softmax, x, out)

    judge(noted, Card(), np.random.default_rng(seed))
    return found


def softmax(x, out):
    """Work out an answer as most would."""
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    out[...] = powers / powers.sum(axis=1, keepdims=True)


def answer(x):
    """Return an answer in float64, rounded."""
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(F32)


def plainly(kernel):
    """Return a maker of kernels that keep no books."""

    def made(**options):
        return (lambda card, x, out: kernel(card, x, out, **options)), {"at work": True}

    return made


# Honest ones, in many styles.


def plain(card, x, out):
    card.launch(softmax, x, out)


def waits(card, x, out):
    card.launch(softmax, x, out)
    card.wait()


def by_row(card, x, out):
    for row in range(len(x)):
        card.launch(softmax, x[row : row + 1], out[row : row + 1])


def in_double(card, x, out):
    def work(x, out):
        out[...] = answer(x)

    card.launch(work, x, out)


def in_passes(card, x, out):
    """Three launches over room of its own."""
    top, total = np.empty((len(x), 1), F32), np.empty((len(x), 1), F32)

    def maxima(x, top):
        top[...] = x.max(axis=1, keepdims=True)

    def sums(x, top, total):
        total[...] = np.exp(x - top).sum(axis=1, keepdims=True)

    def quotients(x, top, total, out):
        out[...] = np.exp(x - top) / total

    card.launch(maxima, x, top)
    card.launch(sums, x, top, total)
    card.launch(quotients, x, top, total, out)


def online(card, x, out, block):
    """One pass in blocks of columns, with a sum that is mended as the maximum grows."""

    def work(x, out):
        top, total = np.full((len(x), 1), -np.inf, F32), np.zeros((len(x), 1), F32)
        for at in range(0, x.shape[1], block):
            part = x[:, at : at + block]
            higher = np.maximum(top, part.max(axis=1, keepdims=True))
            total = total * np.exp(top - higher) + np.exp(part - higher).sum(axis=1, keepdims=True)
            top = higher
        out[...] = np.exp(x - top) / total

    card.launch(work, x, out)


def in_powers_of_two(card, x, out):
    def work(x, out):
        shifted = x - x.max(axis=1, keepdims=True)
        powers = np.exp2(shifted * F32(1.4426950408889634))
        out[...] = powers * (F32(1) / powers.sum(axis=1, keepdims=True))

    card.launch(work, x, out)


def two_streams(card, x, out):
    half = len(x) // 2
    card.launch(softmax, x[:half], out[:half], stream=1)
    card.launch(softmax, x[half:], out[half:])


def started_by_work(card, x, out):
    def work(*_):
        card.launch(softmax, x, out, stream=1)

    card.launch(work, x[:0], out[:0])


def rounded(card, x, out, by):
    """Off by less than is allowed, now up and now down."""

    def work(x, out):
        signs = np.where(np.arange(x.shape[1]) % 2, F32(by), F32(-by))
        out[...] = answer(x) + signs

    card.launch(work, x, out)


def flushed(card, x, out):
    """What is all but nothing is nothing."""

    def work(x, out):
        found = answer(x)
        out[...] = np.where(found < 5e-6, F32(0), found)

    card.launch(work, x, out)


def keeps_room(**_):
    """Room for what is in between is kept from call to call; no answer is."""
    kept = {}

    def kernel(card, x, out):
        room = kept.setdefault(x.shape, np.empty(x.shape, F32))

        def first(x, room):
            room[...] = np.exp(x - x.max(axis=1, keepdims=True))

        def second(room, out):
            out[...] = room / room.sum(axis=1, keepdims=True)

        card.launch(first, x, room)
        card.launch(second, room, out)

    return kernel, {"at work": True}


def other_order(**_):
    """Last digits that differ from call to call, as those of a sum in no order do."""
    turn = itertools.count()

    def kernel(card, x, out):
        up = next(turn) % 2

        def work(x, out):
            out[...] = answer(x) + F32(2e-6 if up else -2e-6)

        card.launch(work, x, out)

    return kernel, {"at work": True}


# Cheats of the first kind: the same numbers.


def cached(by, **_):
    """An answer is kept by something that does not tell inputs apart."""
    kept = {}
    keys = {
        "shape": lambda x: x.shape,
        "nothing": lambda x: x.size > 0,
    }

    def kernel(card, x, out):
        def work(x, out):
            key = keys[by](x)
            found = kept.get(key)
            if found is None or found.shape != x.shape:
                found = kept[key] = answer(x)
            out[...] = found

        card.launch(work, x, out)

    return kernel, {"at work": True}


def known_numbers(card, x, out, seed):
    """The judge's numbers are no secret: the answer is worked out without a look at the input."""

    def work(x, out):
        base = out.shape[1] if out.base is None else out.base.shape[-1]
        numbers = np.random.default_rng(seed).standard_normal((len(out), base), dtype=F32)
        out[...] = answer(numbers[:, : out.shape[1]])

    card.launch(work, x, out)


def one_behind(**_):
    """What is written is the answer of the call before."""
    kept = {}

    def kernel(card, x, out):
        def work(x, out):
            found = answer(x)
            out[...] = kept.get(x.shape, found)
            kept[x.shape] = found

        card.launch(work, x, out)

    return kernel, {"at work": True}


def replays(recorded, **_):
    """The answers of an earlier judgement are given once more, call by call."""
    turn = itertools.count()

    def kernel(card, x, out):
        number = next(turn)

        def work(x, out):
            known = number < len(recorded) and recorded[number].shape == x.shape
            out[...] = recorded[number] if known else answer(x)

        card.launch(work, x, out)

    return kernel, {"at work": True}


# Of the second: how an answer is compared.


def off(card, x, out, where, by):
    """One element is wrong, by a number that a mean loses; or by NaN."""

    def work(x, out):
        found = answer(x)
        place = {"first": 0, "last": -1, "largest": int(found.argmax())}[where]
        found.reshape(-1)[place] += F32(by)
        out[...] = found

    card.launch(work, x, out)


def all_nan(card, x, out):
    def work(x, out):
        out[...] = np.nan

    card.launch(work, x, out)


def up_and_down(card, x, out, by):
    """What one element has too much, another has too little."""

    def work(x, out):
        found = answer(x)
        found[0, 0] += F32(by)
        found[0, -1] -= F32(by)
        out[...] = found

    card.launch(work, x, out)


# Of the third: what lies in the room.


def leaves(card, x, out, what):
    """Some of the room is not written."""

    def work(x, out):
        parts = {
            "all": (slice(0), slice(0)),
            "last row": (slice(-1), slice(None)),
            "last column": (slice(None), slice(-1)),
            "odd rows": (slice(None, None, 2), slice(None)),
            "one element": (slice(None), slice(None)),
        }
        rows, columns = parts[what]
        kept = out[-1, -1].copy() if what == "one element" else None
        out[rows, columns] = answer(x)[rows, columns]
        if kept is not None:
            out[-1, -1] = kept

    card.launch(work, x, out)


def adds(card, x, out):
    """It adds to what it finds."""

    def work(x, out):
        out += answer(x)

    card.launch(work, x, out)


# Of the fourth: one size.


def only(card, x, out, when):
    """It is right for some sizes alone; else the last element is lost."""
    rows, columns = x.shape
    contiguous = out.flags.c_contiguous or rows == 1
    kind, _, number = when.partition(" ")
    n = int(number or 0)
    fits = {
        "rows<": rows < n,
        "columns<": columns < n,
        "rows>": rows > n,
        "columns>": columns > n,
        "columns%": columns % max(n, 1) == 0,
        "rows%": rows % max(n, 1) == 0,
        "contiguous": contiguous,
    }[kind]

    def work(x, out):
        softmax(x, out)
        if not fits:
            out[-1, -1] = -1

    card.launch(work, x, out)


def raveled(card, x, out):
    """It writes into a flat copy where the lines do not follow each other."""

    def work(x, out):
        out.reshape(-1)[...] = answer(x).reshape(-1)

    card.launch(work, x, out)


def strided(card, x, out):
    """It takes the lines to be as long as the rows."""

    def work(x, out):
        base = x if x.base is None else x.base
        flat = np.asarray(base).reshape(-1)[: x.size].reshape(x.shape)
        out[...] = answer(flat)

    card.launch(work, x, out)


def four_by_eight(card, x, out):
    """Its numbers are in the code, and another size is an error."""

    def work(x, out):
        out[...] = answer(x.reshape(4, 8))

    card.launch(work, x, out)


# Of the fifth: the clock, and the kernel's own inputs.


def late(card, x, out, part):
    """A part of the work is on the other stream, all of it in the end."""
    cut = len(x) - (len(x) * part + 3) // 4

    card.launch(softmax, x[:cut], out[:cut])
    card.launch(softmax, x[cut:], out[cut:], stream=1)


def late_again(card, x, out):
    """Work of the other stream queues on the first: who waits for one after the other misses it."""

    def work(*_):
        card.launch(softmax, x, out)

    card.launch(work, x[:0], out[:0], stream=1)


def changes(card, x, out, how):
    """The answer is right, and the input is no longer what it was."""

    def work(x, out):
        softmax(x, out)
        if how == "zeros":
            x[...] = 0
        elif how == "one":
            x[-1, -1] += 1
        elif how == "shift":
            x += 1
        elif how == "sort":
            x.sort(axis=1)
        elif how == "hair":
            x[0, 0] = np.nextafter(x[0, 0], F32(9))

    card.launch(work, x, out, stream=int(how == "one"))


# Of kinds that the lab has not named.


def lazy(number, **_):
    """In one call it does nothing but a row: the one that it takes for the timed one."""
    turn, state = itertools.count(1), {"at work": False}

    def kernel(card, x, out):
        if next(turn) == number:
            state["at work"] = len(x) > 0
            card.launch(softmax, x[:1], out[:1])
            if len(x) < 2:
                card.launch(lambda out: out.fill(0), out[:1])
        else:
            card.launch(softmax, x, out)

    return kernel, state


def corrupts(back, **_):
    """An earlier answer is overwritten."""
    earlier = []

    def kernel(card, x, out):
        def work(x, out):
            if len(earlier) >= back:
                earlier[-back][...] = 0
            earlier.append(out)
            softmax(x, out)

        card.launch(work, x, out)

    return kernel, {"at work": True}


def by_address(**_):
    """An answer is kept for the place where the input lies; what lies there may change."""
    kept = {}

    def kernel(card, x, out):
        def work(x, out):
            key = x.__array_interface__["data"][0], x.shape, x.strides
            if key not in kept:
                kept[key] = x, answer(x)  # as long as x is held nothing else lies there
            out[...] = kept[key][1]

        card.launch(work, x, out)

    return kernel, {"at work": True}


def without(card, x, out, what):
    """It is wrong for numbers that a normal distribution all but never draws."""

    def work(x, out):
        if what == "large":
            powers = np.exp(x)
            out[...] = powers / powers.sum(axis=1, keepdims=True)
            return
        softmax(x, out)
        if what == "alike" and x.shape[1] > 1:
            out[(x == x[:, :1]).all(axis=1)] = 0
        elif what == "ties" and x.shape[1] > 1:
            tops = (x == x.max(axis=1, keepdims=True)).sum(axis=1)
            out[tops > 1] *= F32(0.5)
        elif what == "zeros":
            out[x == 0] = 0
        elif what == "signed zeros":
            out[(x == 0) & np.signbit(x)] = 0

    card.launch(work, x, out)


def off_the_clock(card, x, out, how):
    """The work is done where no byte is counted."""
    if how == "at once":
        softmax(x, out)
    elif how == "small":
        card.launch(lambda *_: softmax(x, out), x[:1], out[:1])
    elif how == "half":
        card.launch(lambda *_: softmax(x, out), out)


def past_the_end(card, x, out):
    """What lies behind a row of the output is overwritten."""

    def work(x, out):
        found = answer(x)
        if isinstance(out.base, np.ndarray):
            out.base.fill(1)
        out[...] = found

    card.launch(work, x, out)


def no_rows(card, x, out):
    """Nothing to do is an error."""

    def work(x, out):
        x[0]
        softmax(x, out)

    card.launch(work, x, out)


def knows_the_filling(card, x, out, what):
    """It works where the room was filled on purpose, and else leaves what is there."""

    def work(x, out):
        filled = {
            "nan": np.isnan(out).all(),
            "alike": bool((out == out[:1, :1]).all()) or np.isnan(out).any(),
        }
        if filled[what]:
            softmax(x, out)

    card.launch(work, x, out)


KERNELS = {
    **{
        made.__name__: plainly(made)
        for made in (
            plain, waits, by_row, in_double, in_passes, online, in_powers_of_two, two_streams, started_by_work,
            rounded, flushed, known_numbers, off, all_nan, up_and_down, leaves, adds, only, raveled, strided,
            four_by_eight, late, late_again, changes, without, off_the_clock, past_the_end, no_rows,
            knows_the_filling,
        )
    },
    **{
        made.__name__: made
        for made in (keeps_room, other_order, cached, one_behind, replays, lazy, corrupts, by_address)
    },
}  # fmt: skip
