"""Strips and scoreboard of W2."""

from pathlib import Path

TILES, ORDER, TRIP, COOK = 6, 1, 3, 2
DRAWN = 37

# Pranjal Shankhdhar's rungs: what changed, TFLOP/s, our letter [^shankhdhar2024].
RUNGS = (
    ("warp tiles of the ladder, fed bf16, no tensor cores", 32, ""),
    ("TMA and wgmma, tile 64 × 64", 317, "F C"),
    ("a larger tile, 128 × 128, m64n128k16", 423, "C"),
    ("roles: a producer, a consumer, five buffers", 498, "W"),
    ("tile 128 × 256, two consumers; registers moved to them", 631, "C"),
    ("blocks that stay, in an order that suits L2", 660, "W L2"),
    ("mbarriers by hand, in PTX", 704, "W"),
    ("clusters of two, one delivery for both", 734, "F"),
    ("many small things", 747, "a bit of each"),
    ("sums leave by the copy engine", 758, "W"),
    ("tiles along a Hilbert curve", 764, "L2"),
)
LIBRARY = 716


def changed(rung):
    """What is new on a rung, from 1."""
    return RUNGS[rung - 1][0]


def reached(rung):
    """As the author wrote it down."""
    return RUNGS[rung - 1][1]


def letter(rung):
    """Ours; the room may have another."""
    return RUNGS[rung - 1][2] or "–"


def factor(rung):
    """Over the rung before."""
    return "–" if rung == 1 else f"{reached(rung) / reached(rung - 1):.2f}"


def library():
    """On the same card."""
    return LIBRARY


def shift(trays, crew):
    """For each square who fetches and who computes: o an order, - a trip, c computing."""
    arrives, eaten, ordering, cooking, tick = {}, 0, 0, 0, 0
    fetched, cooked = [], []
    while eaten < TILES:
        asked = len(arrives)
        free = asked < min(TILES, eaten + trays)
        if not ordering and free and (crew or not cooking):
            ordering = ORDER
        here = arrives.get(eaten, tick + 1) <= tick
        if not cooking and here and (crew or not ordering):
            cooking = COOK
        on_its_way = any(at - TRIP <= tick < at for at in arrives.values())
        fetched.append("O" if ordering and crew else "#" if on_its_way else "")
        cooked.append("C" if cooking else "O" if ordering and not crew else "")
        tick += 1
        if ordering:
            ordering -= 1
            if not ordering:
                arrives[asked] = tick + TRIP
        if cooking:
            cooking -= 1
            eaten += not cooking
    return fetched, cooked


def ticks(trays, crew):
    """How long it takes."""
    return len(shift(trays, crew)[0])


def strips(trays, crew):
    """Both strips on squared paper."""
    return [row + [""] * (DRAWN - len(row)) for row in shift(trays, crew)]


def cook_names(tile):
    """The bit that the consumer does not want to see: the round, modulo 2."""
    return tile // 4 % 2


def crew_names(tile):
    """The other one; a fresh mbarrier counts as turned once."""
    return "1, does not wait" if tile == 0 else 1 - cook_names(tile)


def flips(tile):
    """The mbarrier's bit when it turns for this tile."""
    return "0 → 1" if tile // 4 % 2 == 0 else "1 → 0"


def from_the_sheet():
    """One round of the loop: two waits, four orders to the tensor core, twelve pieces for later, a wait."""
    row = ["W", "W", *"CCCC", *"FFFFFFFFFFFF", "W"]
    return [row + [""] * (DRAWN - len(row))]


_GEMM = Path(__file__).parents[3] / "src" / "course_kernels" / "gemm"
_ROLES = "".join(
    path.read_text(encoding="utf-8") for path in sorted(_GEMM.glob("k08_*.cu"))
)


def _in_source(piece):
    """A piece of code whose words, up to where it is cut, stand in the source of k08."""
    words = piece.partition("…")[0].replace("BN, ", "BN").rstrip(" ,[")
    return piece if words in _ROLES else f"not {piece}"


_TILES = (0, 4, 8, 12)  # of one place in the ring
_COOK = [cook_names(tile) for tile in _TILES]
_CREW = [1 - bit for bit in _COOK]
_TILES_DOWN, _TILES_ACROSS = 4096 // 128, 4096 // 256
ANSWERS = {
    "Count the pieces": (
        (128 + 256) * 64 * 2,
        16,
        (128 + 256) * 64 * 2 // 16,
        3072 // 256,
        2,
    ),
    "Depth and sums": (
        [32 // size for size in (4, 2, 1)],
        64 // 16,
        64 // 16,
        64,
        256,
        128,
        128,
        1 / 2,
    ),
    "The other slip": (1, 1),
    "Now compare": (
        (_in_source("wait(&full[s], …)"), _in_source("wgmma_fence(d)")),
        (4, _in_source("products<BN, …>"), 4 * 16, 16, "wgmma_commit()", 4),
        (
            "wgmma_wait<1>()",
            _in_source("arrive(&empty[…])"),
            _in_source("wait(&empty[s], … ^ 1)"),
        ),
        (5, 4, 128, 256, 3),
    ),
    "Ten lines against twenty-two": (
        3 * 128,
        5,
        (128 + 256) * 64 * 2 // 1024,
        12,
        256,
    ),
    "A letter a rung": (
        (
            "k06 f",
            "k07 c",
            "k08 w",
            "k10 w and l2",
            "k11 f",
            "k12 w",
            "k13 l2",
            "k14 w",
        ),
    ),
    "Predict, change, measure": (
        (_TILES_ACROSS, 132 // _TILES_ACROSS),
        (16, 128, 16 * 128, 132 // 16, 256, 8 * 256),
        (_TILES_DOWN, _TILES_DOWN, 132 // _TILES_DOWN),
    ),
    "Five places instead of four": (2, 3, 4, 5, 5, 48, 5 * 48, 227),
    "How many buffers?": (1, 11, 2, 1 + 11 + 2, 2, 14, 2, 14 // 2),
}
EXIT_ANSWERS = (("tma: brings", 4), ("bar.sync", 2), 1 / 2)
BOARDS = {
    "The champion": 140,
    "Play the ring with four coins": 12,
    "TMA: one order for a whole tile": (128, 64, 2, 3072, 3072 // 256),
    "wgmma: 32 bytes deep": [
        *(32 // size for size in (4, 2, 1, 1)),
        64 * 256 // 128,
    ],
    "Two strips that slide": [
        ticks(*how) for how in ((1, False), (2, False), (4, True))
    ],
    "Roles in a file, and a bit that flips": (
        0,
        _TILES,
        0,
        1,
        0,
        1,
        0,
        _COOK,
        _CREW,
        _COOK,
        _CREW,
    ),
    "Make the sheet yourself": (4, 24),
    "Find the tensor core": 128,
    "Find the carriers": (12, 256, 16, 12 * 256 * 16 // 1024),
    "Eleven rungs of somebody's evenings": (
        2,
        ", ".join(letter(rung) for rung in range(2, 12)),
    ),
}
CHECK_ANSWERS = {
    "Play the ring with four coins": (6, 2),
    "From the sheet to the strip": 5,
    "Eleven rungs of somebody's evenings": (128, 256, 128, 128 * 256 // 128),
    "Exit ticket: with a finger on a line": 256,
}
BLANKS = {
    "slips and numbers": (3072, 3072 // 256, 64 * 256 // 128, 64 // 16),
    "a bit that flips": (4, cook_names(4), 0),
    "two loops with roles": 0,
    "what the sheet says": (
        64,
        16,
        64 * 256 // 128,
        128,
        12,
        256,
        16,
        12 * 256 * 16 // 1024,
    ),
}
