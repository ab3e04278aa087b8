"""Strips and scoreboard of W2."""

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
