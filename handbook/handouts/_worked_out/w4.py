"""The sums of W4's sheets, from their inputs. Nothing is measured.

Peak, in TFLOP/s, and bandwidth, in GB/s, are those of the data sheet of the page's card; 0 where that is not known, and
then so is what rests on them.
"""

from pathlib import Path

N = K = 8192
BYTES = 2  # bf16
SHORTEST = 0.5  # bytes of a weight of four bits
ROWS = (1, 16, 64, 256, 1024, 4096)
LENGTHS = (37, 100, 250, 512, 900, 1500)  # tokens of six requests
RESERVED, PAGE = 2048, 16
ORDER = (7, 2, 5, 0, 4, 9, 1, 3, 8, 6)  # page numbers as they are handed out
LAYERS, KEY_HEADS, D = 80, 8, 128
REQUESTS, SEATS = (3, 9, 4, 6, 2, 5), 4
STEPS_DRAWN = 18


def _over(a, b):
    return a / b if b else 0.0


def ridge(peak, bandwidth):
    """Operations a byte at which the card waits for both alike, in bf16."""
    return _over(1e3 * peak, bandwidth)


def operations(M):
    """Of M rows times the grid; a multiply-add is two."""
    return 2 * M * N * K


def carried(M):
    """Bytes: rows in, weights, rows out."""
    return BYTES * (M * K + K * N + M * N)


def intensity(M):
    """Operations a byte."""
    return operations(M) / carried(M)


def per_byte(M):
    """The same, with three digits where it is large: so it is the quotient of what is printed, too."""
    return f"{intensity(M):,.{1 if intensity(M) < 100 else 0}f}"


def side(M, peak, bandwidth):
    """Of the ridge, and what is waited for there."""
    return (
        "left: bytes" if intensity(M) < ridge(peak, bandwidth) else "right: cooks"
    )


def as_rows(b):
    """Operations a byte with M rows and weights of b bytes, in words."""
    factor = 2 / b
    return "M" if factor == 1 else f"{factor:g} · M"


def flat_from(b, peak, bandwidth):
    """The M at which weights of b bytes give as many operations per byte as the ridge has."""
    return ridge(peak, bandwidth) * b / 2


# --- pages ---


def token_bytes():
    """Keys and values of one token."""
    return 2 * LAYERS * KEY_HEADS * D * BYTES


def tokens_in(room):
    """Tokens whose keys and values fit into so many bytes."""
    return room // token_bytes()


def tokens():
    """Of all requests."""
    return sum(LENGTHS)


def pages_of(n):
    """Pages that n tokens need."""
    return -(-n // PAGE)


def empty_in_pages(n):
    """Places of the last page that hold nothing."""
    return pages_of(n) * PAGE - n


def reserved_empty():
    """Empty places when the longest answer is reserved for each."""
    return len(LENGTHS) * RESERVED - tokens()


def reserved_share():
    """The same as a share of what is reserved."""
    return reserved_empty() / (len(LENGTHS) * RESERVED)


def pages_taken():
    """Pages of all requests."""
    return sum(map(pages_of, LENGTHS))


def paged_empty():
    """Empty places in pages."""
    return sum(map(empty_in_pages, LENGTHS))


def paged_share():
    """The same as a share of the places taken."""
    return paged_empty() / (pages_taken() * PAGE)


def in_words(share):
    """A share in hundredths."""
    return f"{100 * share:.3g} %"


def block_table(request):
    """The pages of a request, the requests before it served first."""
    first = sum(map(pages_of, LENGTHS[:request]))
    return ", ".join(map(str, ORDER[first : first + pages_of(LENGTHS[request])]))


# --- who pays: floors of one request, a model as in the receipt of L1, 32 users in a step of decode ---

WEIGHTS, USERS, QUERY_HEADS = 69_501_714_432, 32, 64
TRAFFIC = {
    "chat": ("a chat", 300, 500, "a longer prompt, or a shorter answer"),
    "report": (
        "a question on a long report",
        30_000,
        300,
        "fewer users in a step: with one user it is decode",
    ),
    "agent": (
        "an agent with the same long preface",
        8_200,
        400,
        "is the preface still in the cache?",
    ),
}
KINDS = tuple(TRAFFIC)


def words(kind):
    """A traffic by its name."""
    return TRAFFIC[kind][0]


def tokens_in_out(kind):
    """Tokens in and tokens out."""
    return TRAFFIC[kind][1:3]


def given(kind):
    """Tokens in."""
    return f"{tokens_in_out(kind)[0]:,}"


def taken(kind):
    """Tokens out."""
    return f"{tokens_in_out(kind)[1]:,}"


def ms_thousand_in(peak):
    """Milliseconds of prefill for a thousand tokens: the weights' operations."""
    return _over(2 * WEIGHTS / 1e6, peak)


def ms_square(peak):
    """Milliseconds of attention for a thousand tokens; each looks back only, so pairs count once."""
    pair = 4 * D * QUERY_HEADS * LAYERS
    return _over(pair * 1000**2 / 2 / 1e9, peak)


def ms_share(bandwidth):
    """Milliseconds of the weights' bytes in one token of decode, one share of the users'."""
    return _over(BYTES * WEIGHTS / 1e6, bandwidth) / USERS


def ms_thousand_kept(bandwidth):
    """Milliseconds of fetching a thousand tokens of the cache, for one token of decode."""
    return _over(token_bytes() * 1000 / 1e6, bandwidth)


def prefill_parts(kind, peak):
    """Least seconds, by the pencil's two terms: the weights, and attention."""
    thousands = tokens_in_out(kind)[0] / 1000
    square = ms_square(peak) * thousands**2
    return ms_thousand_in(peak) * thousands / 1e3, square / 1e3


def decode_parts(kind, bandwidth):
    """Least seconds of one share: the weights, and the cache, which grows with every token."""
    given, out = tokens_in_out(kind)
    kept = sum(range(given + 1, given + out + 1)) / 1000
    return ms_share(bandwidth) * out / 1e3, ms_thousand_kept(bandwidth) * kept / 1e3


def summed(parts):
    """The parts and their sum, with as many digits as the parts need to be told from nothing."""
    digits = 2 if min(parts) >= 0.005 else 4
    *each, whole = (f"{number:.{digits}f}" for number in (*parts, sum(parts)))
    return f"{' + '.join(each)} = **{whole}**"


def who_pays(kind, peak, bandwidth):
    """The larger of the two."""
    reading, answering = prefill_parts(kind, peak), decode_parts(kind, bandwidth)
    return "prefill" if sum(reading) > sum(answering) else "decode"


def what_turns(kind):
    """The number that would change the answer."""
    return TRAFFIC[kind][3]


# --- the receipt ---

# In and out, in tensors, and what a fused kernel still does of it.
STEPS = {
    "s = x + r": (2, 1, "load x, load r, store s"),
    "s²": (1, 1, "nothing: it is in the hand"),
    "mean of each row": (1, 0, "nothing: it is in the hand"),
    "s × 1/√": (1, 1, "nothing: it is in the hand"),
    "× g": (1, 1, "store y"),
}
OPERATORS = tuple(STEPS)


def trips(step):
    """Tensors in and out of one operator."""
    return STEPS[step][:2]


def in_file(step):
    """What the fused kernel loads and stores there."""
    return STEPS[step][2]


def all_trips():
    """Of the five operators together."""
    return sum(sum(trips(step)) for step in OPERATORS)


def fused_trips():
    """Loads and stores of whole tensors that are left."""
    return sum(
        in_file(step).count(word)
        for step in OPERATORS
        for word in ("load", "store")
    )


# --- coach and bus ---


def coach_grid():
    """Four seats by steps; a batch ends as a whole."""
    grid = [[] for _ in range(SEATS)]
    for first in range(0, len(REQUESTS), SEATS):
        batch = REQUESTS[first : first + SEATS]
        for seat in range(SEATS):
            length = batch[seat] if seat < len(batch) else 0
            grid[seat] += [str(length)] * length + ["#"] * (max(batch) - length)
    return _as_wide(grid)


def bus_grid():
    """Four seats by steps; a free seat is taken at once."""
    waiting, grid = list(REQUESTS), [[] for _ in range(SEATS)]
    while waiting:
        seat = min(range(SEATS), key=lambda s: (len(grid[s]), s))
        length = waiting.pop(0)
        grid[seat] += [str(length)] * length
    last = max(map(len, grid))
    return _as_wide([row + ["#"] * (last - len(row)) for row in grid])


def bus_grid_with_m():
    """The bus, and below it how many ride in every step."""
    grid = bus_grid()
    riding = [
        sum(cell.isdigit() for cell in column) for column in zip(*grid, strict=True)
    ]
    return [*grid, ["!"] * STEPS_DRAWN, [str(m) if m else "" for m in riding]]


def _as_wide(grid):
    return [row + [""] * (STEPS_DRAWN - len(row)) for row in grid]


def steps(grid):
    """How long it takes."""
    return sum(cell != "" for cell in grid[0])


def empty_seats(grid):
    """Seats times steps in which nobody sits."""
    return sum(cell == "#" for row in grid for cell in row)


# --- what page, chapter and map say of them ---


def _taken(grid):
    """Seats taken in each step."""
    columns = zip(*grid, strict=True)
    taken = [sum(cell.isdigit() for cell in column) for column in columns]
    return [count for count in taken if count]


_CHAPTER = Path(__file__).parents[2] / "06_delivery_craft" / "w4_serving.py"


def _typed(code):
    """Whether all lines of a piece of code stand in the kernel of the chapter, in their order."""
    lines = [
        line.lstrip("# ").strip()
        for line in _CHAPTER.read_text(encoding="utf-8").splitlines()
    ]
    left = iter(lines[lines.index("@triton.jit") :])
    plain = (line.partition("  #")[0].strip() for line in code.splitlines())
    return all(
        any(line == there.partition("  #")[0].strip() for there in left)
        for line in plain
        if line
    )


def _rows_in_order(code):
    """Whether two lines give the rows of 37 tokens in their order, by the block table."""
    import numpy as np

    place, width, length = np.arange(len(ORDER) * PAGE), 2, LENGTHS[0]
    pages = np.zeros((len(ORDER), PAGE, width))
    table = np.array(ORDER[: pages_of(length)])
    for token in range(length):
        pages[table[token // PAGE], token % PAGE] = place[token]
    body = "\n".join(f"    {line}" for line in code.splitlines())
    names = {
        "np": np,
        "pages": pages,
        "table": table,
        "length": length,
        "PAGE": PAGE,
    }
    exec(f"def keys():\n{body}", names)
    return bool((names["keys"]()[:, 0] == place[:length]).all())


_FEW = (37, 100)
_PLACES = pages_taken() * PAGE
# What 100 tokens take in pages, as two answers say it.
OF_B = (
    pages_of(100),
    pages_of(100),
    PAGE,
    7 * PAGE,
    7 * PAGE,
    100,
    empty_in_pages(100),
    PAGE - 1,
)
ANSWERS = {
    "Two shapes": (1, "no:"),
    "One token of a large model": (
        2,
        LAYERS,
        KEY_HEADS,
        D,
        BYTES,
        token_bytes(),
        64,
        8 * token_bytes(),
    ),
    "Six longer ones": (
        (6, RESERVED, 6 * RESERVED, tokens(), tokens(), reserved_empty()),
        (
            [pages_of(n) for n in LENGTHS],
            pages_taken(),
            PAGE,
            _PLACES,
            _PLACES,
            tokens(),
        ),
        (paged_empty(), PAGE - 1),
    ),
    "37 tokens, three pages": (
        (
            36,
            *divmod(36, PAGE)[:1],
            PAGE,
            36 % PAGE,
            36 // PAGE + 1,
            ORDER[36 // PAGE],
            36 % PAGE,
        ),
        (
            _rows_in_order,
            "pages[table].reshape(-1, D)",
            pages_of(37) * PAGE,
            empty_in_pages(37),
        ),
    ),
    "Why not pages of one token?": (
        D,
        BYTES * D,
        4,
        PAGE,
        PAGE * BYTES * D,
        1 / PAGE,
        8,
    ),
    "Before a line is typed": (
        [trips(step) for step in OPERATORS],
        all_trips(),
        fused_trips(),
    ),
    "The first half": ("other=0.0", _typed),
    "Four more lines": ((0, 14, 200, 1000, 1000 * 200, 65504), _typed),
    "Trips after": (2, 2, all_trips(), fused_trips(), all_trips() / fused_trips()),
    "Where the roof turns flat": (4, 4, 16, 32, 64, 128),
    "Lay the slips": (_taken(coach_grid()), _taken(bus_grid())),
    "One medicine each": (
        "a | pages",
        "b | more rows, or shorter weights",
        "c | fusion",
    ),
    "Three lines to take along": (
        OF_B,
        (2, 3 * 2),
    ),
    "Rehearse": (
        4 / 16,
        32,
        pages_of(37),
        PAGE,
        pages_of(37) * PAGE,
        empty_in_pages(37),
    ),
}
EXIT_ANSWERS = (
    (),
    OF_B,
    (2, 3 * 2),
)
BOARDS = {
    "The banquet and the trickle": 1,
    "Operations per byte, for M rows": (2 * 8192, 8192**2, ROWS[0], ROWS[-1]),
    "A table reserved, or a page at a time": (
        (reserved_empty(), 6 * RESERVED, paged_empty(), _PLACES),
        (ORDER[: pages_of(_FEW[0])], ORDER[pages_of(_FEW[0]) :]),
    ),
    "Walk the kernel: follow the table": (PAGE, PAGE, 37),
    "The receipt, before a line is typed": (1, all_trips(), fused_trips()),
    "One row, one table of cooks: load, add": (0, 5, 1000),
    "The norm, with s still in the hand": (65504, 1000, 1024, 1.0, 0),
    "Fill in the right column": (
        all_trips(),
        fused_trips(),
        all_trips(),
        4,
        all_trips() / fused_trips(),
    ),
    "Continuous batching, with paper slips": REQUESTS,
}
CHECK_ANSWERS = {
    "The banquet and the trickle": 1000,
    "A table reserved, or a page at a time": PAGE - 1,
    "One row, one table of cooks: load, add": "other=0.0",
    "The norm, with s still in the hand": (1000, 200, 1000 * 200, 65504),
    "Exit": ("the first.", 3),
}
BLANKS = {"pages": (LAYERS, KEY_HEADS, D), "add_rmsnorm_planted.py": (65504,)}
