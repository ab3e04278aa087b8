"""Online softmax by hand, as on the slips of W1."""

from math import exp, inf

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
