"""Online softmax by hand, as on the slips of W1."""

from math import ceil, exp, inf

from course_kernels.measure.machine import machine_for

CRATES = (((1, 3), (10, 20)), ((2, 5), (30, 40)))


def notes(crate, crates=CRATES):
    """(repair, m, l, a) after a crate, from 0."""
    m, l, a, repair = -inf, 0.0, 0.0, 0.0
    for scores, values in crates[: crate + 1]:
        m_new = max(m, *scores)
        repair = exp(m - m_new)
        weights = [exp(score - m_new) for score in scores]
        l = l * repair + sum(weights)
        a = a * repair + sum(w * v for w, v in zip(weights, values, strict=True))
        m = m_new
    return repair, m, l, a


def repair(crate):
    """What the notes are multiplied by; nothing before the first crate."""
    return "–" if crate == 0 else f"× e³⁻⁵ = {notes(crate)[0]:.4f}"


def _summed(old, factor, came, total, form):
    """A sum with its terms: what is held, repaired, and what came; without a repair where nothing was held."""
    held = [f"{old:{form}} × {factor:.4f}"] if old else []
    # A whole number as it is, the rest to the slip's digits.
    terms = [f"{w:.0f}" if w == int(w) else f"{w:{form}}" for w in came]
    return f"{' + '.join(held + terms)} = {total:{form}}"


def _of_the_slip(weights, values):
    """Parts of the plate by the powers of e with the four digits that the slip gives."""
    return [round(w, 4) * v for w, v in zip(weights, values, strict=True)]


def _came(crate):
    """The weights of a crate's scores against the largest so far."""
    return [exp(score - notes(crate)[1]) for score in CRATES[crate][0]]


def sum_of(crate):
    """The sum so far, with its terms."""
    old = notes(crate - 1)[2] if crate else 0.0
    return _summed(old, notes(crate)[0], _came(crate), notes(crate)[2], ".4f")


def plate_of(crate):
    """The plate so far, with its terms."""
    old = notes(crate - 1)[3] if crate else 0.0
    came = _of_the_slip(_came(crate), CRATES[crate][1])
    return _summed(old, notes(crate)[0], came, notes(crate)[3], ".3f")


def _all():
    """The weights of all four scores against the largest, and their values."""
    scores, values = (sum(part, ()) for part in zip(*CRATES, strict=True))
    return [exp(score - max(scores)) for score in scores], values


def all_sum():
    """The sum of all four at once, with its terms."""
    return _summed(0.0, 0.0, _all()[0], notes(1)[2], ".4f")


def all_plate():
    """The plate of all four at once, with its terms."""
    return _summed(0.0, 0.0, _of_the_slip(*_all()), notes(1)[3], ".3f")


def turned():
    """The notes after crate two alone: (repair, m, l, a)."""
    return notes(0, CRATES[::-1])


def turned_repair():
    """What they are multiplied by when crate one comes after it."""
    return notes(1, CRATES[::-1])[0]


def served():
    """The plate over the sum."""
    _, _, l, a = notes(1)
    return a / l


def at_once():
    """With all four on the table."""
    weights, values = _all()
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def drawn():
    """Q, K, V and O of 6 × 2 cells, S of 6 × 6, on a strip of squared paper."""
    width, height = 36, 8
    grid = [[""] * width for _ in range(height)]
    for name, first, wide in (
        ("Q", 1, 2),
        ("K", 5, 2),
        ("V", 9, 2),
        ("O", 13, 2),
        ("S", 18, 6),
    ):
        for row in range(1, 7):
            for column in range(first, first + wide):
                grid[row][column] = "#"
        grid[0][first] = name
        grid[7][first] = str(6 * wide)
    return grid


def beats():
    """One group alone; two groups, each with a beat of rest after its E."""
    alone = list("MMEMMEMMEMME")
    first = [*"MME", "!"] * 3
    second = ["!"] * 2 + [*"MME", "!"] * 2 + list("MM")
    return [alone, ["!"] * 12, first, second]


def peak():
    """TFLOP/s in bf16, by the data sheet."""
    return machine_for("NVIDIA H200").peak_tflops["bf16"]


def _keys_seen(first, end, mask, rows=(8, 12), window=6, tile=4):
    """Which keys each row of a tile of queries takes, by the three pieces of code; those of its window, if right."""
    i, W = rows[0], window  # as the page calls them
    here = {"i": i, "W": W, "tile": tile, "max": max}
    keys = range(eval(first, here), eval(end, here))  # the page's own words
    hidden = mask.removeprefix("s[").partition("]")[0]
    seen = [
        [col for col in keys if not eval(hidden, {"col": col, "row": row, "W": W})]
        for row in range(*rows)
    ]
    return seen == [list(range(row - W + 1, row + 1)) for row in range(*rows)]


def _right(*pieces):
    """The pieces of code, where they do what they should."""
    return [piece if _keys_seen(*pieces) else f"not {piece}" for piece in pieces]


_FIRST = "max(0, i - W + 1) // tile * tile"
ANSWERS = {
    "The other order": (5, 0, exp(5 - 5)),
    "The bug that hides": 1,
    "A kind test": (1, 3),
    "A factor of your own": (1, 1024, 64, 1 + 1024 // 64),
    "What grows?": (16384 // 512, 16384 // 512),
    "The roof over fp32": (4 * 4, 4 * 128, 4 * 128 // 16),
    "Where to spend": (2, 1, 2 + 1, 2 + 1 / 2, 2 / 2 + 1, 2, 3),
    "Three patients": ("(a) the second", "(b) the first", "(c) the third"),
    "A window": (
        1,
        1,
        1,
        _right(_FIRST, "i + tile", "s[(col > row) | (col <= row - W)] = -np.inf"),
    ),
    "Rehearse": (min(CRATES[0][1]), max(CRATES[1][1]), 40, 2, 100),
}
EXIT_ANSWERS = ((1, 2 * exp(-2) + 1), ("the room", 1))
BOARDS = {
    "Two multiplies, one softmax": (6 * 2, 6 * 6),
    "Circle it in red": 4096**2,
    "One tile, as if it were all": (16, 16, 16, 2 * 16),
    "Let the tiles pass": (0, 16, 2 * 16, 2 * 16, 4096),
    "Two arrows, two lines": (32, 40),
    "Forecast, then count": (4, 4, 4, 1, 1, 1 + 4096 // 128, 1 + 1024 // 64),
    "Two roofs": 256,
    "Who sits where": (ceil(100_000 / 64), 1),
}
CHECK_ANSWERS = {
    "Let the tiles pass": (13, 32),
    "Two arrows, two lines": exp(-inf),
    "Causal last: skip and mask": 1 / 2,
    "Their kernel in its own weight class": 4,
    "Two roofs": (4 * 128, 4 * 4, 4 * 128 // 16),
    "Who waits for whom": 1 / 2,
    "Exit ticket": False,
}
BLANKS = {
    "slips one and two": (
        (4096**2 / 1e6, 4 * 4096**2 / 1e6, 32 * 4 * 4096**2 / 1e9),
        (CRATES[1], max(CRATES[1][0])),
    ),
    "slips three and four": (
        1 + 4096 // 128,
        1 + 1024 // 64,
        ceil(100_000 / 64),
        1,
    ),
    "bits of paper": (beats()[0].count("M") // 4, 3),
}
