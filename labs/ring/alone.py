"""The last task of the ring: how often one of its barriers has turned."""

import random


def cases() -> list[dict]:
    """From one place up; more places than tiles come last."""
    sizes = [
        (0, 1, 1),
        (3, 4, 4),
        (0, 8, 4),
        (0, 6, 4),
        (1, 6, 4),
        (2, 6, 4),
        (3, 6, 4),
        (0, 65, 4),
        (3, 65, 4),
        (2, 7, 3),
        (3, 2, 4),
        (0, 0, 2),
    ]
    return [turned(*size) for size in sizes]


def drawn(draw: random.Random) -> list[dict]:
    """The same with numbers that nobody announced, from few tiles up."""
    rings = sorted(
        (draw.randrange(2 ** draw.randint(1, 9)), draw.randint(1, draw.choice((12, 100)))) for _ in range(80)
    )
    found = [turned(draw.randrange(places), tiles, places) for tiles, places in rings]
    # As many tiles as come before the place's next turn, and one more: the quotient is a hair past a whole number.
    for places, turns in (
        (draw.randint(2000, 3000), draw.randint(1, 4)),
        (draw.randint(10**5, 2 * 10**5), 1),
    ):
        place = draw.randrange(places // 2)
        found += [turned(place, place + turns * places + more, places) for more in (0, 1)]
    return found


def turned(place: int, tiles: int, places: int) -> dict:
    """How often *full* of a place has turned."""
    return {
        "call": "turns_of",
        "with": {"place": place, "tiles": tiles, "places": places},
        "expect": tiles // places + (place < tiles % places),
        "job": f"place {place} of {places}, {tiles} tiles",
    }
