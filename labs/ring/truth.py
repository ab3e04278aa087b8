"""A ring between a producer and consumers: lines of both sheets, bits round by round, rings that get stuck.

`cases` are the same each time; `drawn` asks for the same again, with numbers that nobody announced.
"""

import random
import re
from collections.abc import Iterator

# What is on the sheets, without the numbers of registers; test_listing.py holds the kernels to them.
ON_K04 = {
    "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR16].tnspB, R24": "computes",
    "LDGSTS.E.BYPASS.128 [R159], desc[UR10][R186.64], P6": "fetches",
    "DEPBAR.LE SB0, 0x1": "waits",
    "BAR.SYNC.DEFER_BLOCKING 0x0": "waits",
    "WARPGROUP.ARRIVE": "tells",
    "LDGDEPBAR": "tells",
    "WARPGROUP.DEPBAR.LE gsb0, 0x1": "waits",
    "BRA `(.L_x_2)": "goes back",
}
ON_K08 = {
    "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3+UR7+0x30000], R0": "waits",
    "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12].tnspB, R24, gsb0": "computes",
    "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ+0x30020], RZ": "tells",
    "SYNCS.ARRIVE.TRANS64 RZ, [UR9+0x30000], R3": "tells",
    "UTMALDG.2D [UR8], [UR12]": "fetches",
}


def play(producer: list[int], consumer: list[int], places: int) -> str:
    """The sides take turns until neither may go on: who waits for what."""
    bits = {"full": [0] * places, "empty": [0] * places}
    at = {"empty": 0, "full": 0}  # the tile for which somebody looks at a barrier of this kind
    named, other = {"empty": producer, "full": consumer}, {"empty": "full", "full": "empty"}

    def goes_on(kind: str) -> bool:
        tile = at[kind]
        if tile == len(named[kind]) or bits[kind][tile % places] == named[kind][tile]:
            return False
        bits[other[kind]][tile % places] ^= 1
        at[kind] += 1
        return True

    while any([goes_on("empty"), goes_on("full")]):
        pass
    waiting = [
        f"{who} waits for {kind} {at[kind] % places}"
        for who, kind in (("producer", "empty"), ("consumer", "full"))
        if at[kind] < len(named[kind])
    ]
    return ", ".join(waiting) or "nobody waits"


def cases() -> list[dict]:
    """All functions, each from the simplest case up."""
    found = [
        marked(line, does, f"a line of {kernel}'s sheet")
        for kernel, lines in (("k04", ON_K04), ("k08", ON_K08))
        for line, does in lines.items()
    ]
    tiles = [(0, 4), (3, 4), (4, 4), (7, 4), (8, 4), (12, 4), (5, 2), (6, 3), (9, 1)]
    for name in ("full_bit", "empty_bit"):
        found += [bit(name, tile, places) for tile, places in tiles]
    found += [stands(*ring) for ring in rings()]
    strips = ((1, 3, 2), (1, 11, 2), (1, 0, 1), (2, 2, 2), (1, 4, 2), (3, 5, 2))
    return [*found, *(needed(*strip) for strip in strips)]


def drawn(draw: random.Random) -> list[dict]:
    """All functions once more, each from the smallest of its cases up."""
    lines = [
        marked(with_other_numbers(line, draw), does, f"a line of {kernel}'s sheet with other numbers")
        for kernel, lines in (("k04", ON_K04), ("k08", ON_K08))
        for line, does in lines.items()
        for _ in range(3)
    ]
    sizes = [(draw.randint(1, 9), draw.randint(1, draw.choice((4, 16, 64, 3000)))) for _ in range(40)]
    # A quotient that is a hair below a whole number, or above it: whoever rounds by a trick is on the wrong side of it.
    sizes += [(draw.randint(2, 9), draw.randint(2000, 3000)), (1, draw.randint(2 * 10**6, 3 * 10**6))]
    tiles = [(draw.randrange(2 ** draw.randint(3, 14)), places) for _, places in sizes]
    # The last tile of a round, and the first of the next.
    tiles = sorted([*tiles, *((places * turn - by, places) for turn, places in sizes for by in (1, 0))])
    bits = [bit(name, tile, places) for name in ("full_bit", "empty_bit") for tile, places in tiles]
    plays = sorted(drawn_rings(draw), key=lambda ring: len(ring[1]) + len(ring[2]))
    # One of the two is the slower one as often as the other, and so is what must be rounded up by little or by much.
    strips = [
        (draw.randint(1, most), draw.randint(0, max(90, 3 * most)), draw.randint(1, most))
        for most in (3, 10, 30, 1000)
        for _ in range(20)
    ]
    # What is left over is one square, or all but one; of many squares that is a hair.
    mosts = *[20] * 20, *[3000] * 4, 3 * 10**6
    sides = [
        (draw.randint(1, most), draw.randint(2, most)) if most == 20 else _slow(most, draw) for most in mosts
    ]
    strips += [
        (order, trip, cook)
        for order, cook in sides
        for trip in (max(order, cook) * draw.randint(2, 6) - order - cook + by for by in (-1, 0, 1))
        if trip >= 0
    ]
    return [*lines, *bits, *(stands(*ring) for ring in plays), *(needed(*s) for s in sorted(strips, key=sum))]


def _slow(most: int, draw: random.Random) -> tuple[int, int]:
    """Squares of both sides, of which either may be the slower one, with nearly as many squares as asked."""
    slower, other = draw.randint(2 * most // 3, most), draw.randint(1, most // 2)
    return draw.choice(((slower, other), (other, slower)))


def marked(line: str, does: str, job: str) -> dict:
    """A line of a sheet."""
    return {"call": "mark", "with": {"line": line}, "expect": does, "job": job}


def with_other_numbers(line: str, draw: random.Random) -> str:
    """A line with other registers, predicates, labels and numbers after its name."""
    name, blank, rest = line.partition(" ")
    rest = re.sub(r"0x[0-9a-f]+", lambda _: hex(draw.randrange(2 ** draw.randint(1, 18))), rest)
    return name + blank + re.sub(r"(UR|R|P|SB|_)\d+", lambda found: another(found[1], draw), rest)


# The largest number after each letter: registers, those of a whole warp, predicates, barriers of loads, labels.
MOST = {"R": 254, "UR": 62, "P": 6, "SB": 5, "_": 99}


def another(kind: str, draw: random.Random) -> str:
    """Another register, or whatever has a number."""
    return f"{kind}{draw.randint(0, MOST[kind])}"


def bit(name: str, tile: int, places: int) -> dict:
    """What full_bit, or empty_bit, says of a tile."""
    return {
        "call": name,
        "with": {"tile": tile, "places": places},
        "expect": tile // places % 2 ^ (name == "empty_bit"),
        "job": f"tile {tile} in a ring of {places}",
    }


def stands(job: str, producer: list[int], consumer: list[int], places: int) -> dict:
    """Who waits for whom in the end."""
    given = {"producer": producer, "consumer": consumer, "places": places}
    return {"call": "stuck", "with": given, "expect": play(producer, consumer, places), "job": job}


def needed(order: int, trip: int, cook: int) -> dict:
    """How many places."""
    return {
        "call": "places_needed",
        "with": {"order": order, "trip": trip, "cook": cook},
        "expect": -(-(order + trip + cook) // max(order, cook)),
        "job": f"{order} to order, {trip} for the trip, {cook} to compute",
    }


def names(tiles: int, places: int, flip: int) -> list[int]:
    """Bits, tile by tile: those that the consumer should name with 0, the producer with 1."""
    return [tile // places % 2 ^ flip for tile in range(tiles)]


def drawn_rings(draw: random.Random) -> Iterator[tuple[str, list[int], list[int], int]]:
    """Rings of any size: right ones, ones with a slip somewhere, ones in which the bits are anything."""
    for number in range(60):
        tiles, places = draw.randint(1, 2 ** draw.randint(2, 6)), draw.randint(1, draw.choice((9, 9, 40)))
        producer, consumer = names(tiles, places, 1), names(tiles, places, 0)
        at, who = draw.randrange(tiles), draw.choice((producer, consumer))
        whose = "the producer" if who is producer else "the consumer"
        slip = ("all bits right", "wrong bits from there on", "a wrong bit", "nothing more", "any bits")[
            number % 5
        ]
        if slip == "wrong bits from there on":
            who[at:] = [1 - named for named in who[at:]]
        elif slip == "a wrong bit":
            who[at] = 1 - who[at]
        elif slip == "nothing more":
            del who[at:]
        elif slip == "any bits":
            producer, consumer = ([draw.randint(0, 1) for _ in range(tiles)] for _ in range(2))
            producer[0], consumer[0] = number // 5 % 2, number // 10 % 2  # each way to begin
        where = f", {slip}"
        if slip not in ("all bits right", "any bits"):
            where = f", {whose} at tile {at}: {slip}"
        yield f"a ring of {places}, {tiles} tiles{where}", producer, consumer, places
    # Past the end of whoever counts turns, or has room for so many places.
    rings = [(draw.randint(10, 40), draw.randint(65, 80)), (draw.randint(10, 40), draw.randint(81, 99))]
    for places, tiles in [*rings, (draw.randint(130, 140), draw.randint(1030, 1100))]:
        job = f"a ring of {places}, {tiles} tiles, all bits right"
        yield job, names(tiles, places, 1), names(tiles, places, 0), places
    at = draw.randint(400, 500)
    job = f"a ring of {places}, {tiles} tiles, the consumer at tile {at}: nothing more"
    yield job, names(tiles, places, 1), names(at, places, 0), places
    # Two that differ in the middle alone: an answer kept by length, sum and ends shows.
    places, rounds = draw.randint(3, 6), draw.randint(6, 9)
    tiles, at = 2 * places * rounds, places * rounds
    producer, consumer = names(tiles, places, 1), names(tiles, places, 0)
    yield f"a ring of {places}, {tiles} tiles, all bits right", list(producer), list(consumer), places
    for who, bits in (("the producer", producer), ("the consumer", consumer)):
        bits[at - 1], bits[at] = bits[at], bits[at - 1]
        told = f"{who}'s bits of tiles {at - 1} and {at} exchanged"
        yield f"a ring of {places}, {tiles} tiles, {told}", list(producer), list(consumer), places
        bits[at - 1], bits[at] = bits[at], bits[at - 1]
    # One place, where the two meet at every tile.
    tiles = draw.randint(8, 12)
    at = draw.randrange(1, tiles)
    for slipped in ("the producer", "the consumer"):
        producer, consumer = names(tiles, 1, 1), names(tiles, 1, 0)
        who = producer if slipped == "the producer" else consumer
        who[at] = 1 - who[at]
        yield f"a ring of 1, {tiles} tiles, {slipped} at tile {at}: a wrong bit", producer, consumer, 1


def rings() -> list[tuple[str, list[int], list[int], int]]:
    """Rings with the bits that both name: right ones, and what one slip does."""
    right = [
        (
            f"a ring of {places}, {tiles} tiles, all bits right",
            names(tiles, places, 1),
            names(tiles, places, 0),
            places,
        )
        for tiles, places in ((1, 1), (6, 4), (9, 2))
    ]
    return [
        *right,
        ("a producer that waits in the first round", names(6, 4, 0), names(6, 4, 0), 4),
        ("a consumer that names 0 for ever", names(9, 2, 1), [0] * 9, 2),
        ("a producer that names 1 for ever", [1] * 9, names(9, 4, 0), 4),
        ("a consumer that stops after four of nine tiles", names(9, 4, 1), names(4, 4, 0), 4),
        ("nothing to do", [], [], 4),
    ]
