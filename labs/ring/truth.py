"""A ring between a producer and consumers: lines of both sheets, bits round by round, rings that stand still."""

# What stands on the sheets, without the numbers of registers; test_listing.py holds the kernels to them.
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
    """Turn and turn about, until neither may go on: who waits for what."""
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
        {"call": "mark", "with": {"line": line}, "expect": does, "job": f"a line of {kernel}'s sheet"}
        for kernel, lines in (("k04", ON_K04), ("k08", ON_K08))
        for line, does in lines.items()
    ]
    tiles = [(0, 4), (3, 4), (4, 4), (7, 4), (8, 4), (12, 4), (5, 2), (6, 3), (9, 1)]
    for name, flip in (("full_bit", 0), ("empty_bit", 1)):
        found += [
            {
                "call": name,
                "with": {"tile": tile, "places": places},
                "expect": tile // places % 2 ^ flip,
                "job": f"tile {tile} in a ring of {places}",
            }
            for tile, places in tiles
        ]
    for job, producer, consumer, places in rings():
        given = {"producer": producer, "consumer": consumer, "places": places}
        found.append({"call": "stuck", "with": given, "expect": play(producer, consumer, places), "job": job})
    for order, trip, cook in ((1, 3, 2), (1, 11, 2), (1, 0, 1), (2, 2, 2), (1, 4, 2), (3, 5, 2)):
        found.append(
            {
                "call": "places_needed",
                "with": {"order": order, "trip": trip, "cook": cook},
                "expect": -(-(order + trip + cook) // max(order, cook)),
                "job": f"{order} to order, {trip} for the trip, {cook} to compute",
            }
        )
    return found


def rings() -> list[tuple[str, list[int], list[int], int]]:
    """Rings with the bits that both name: right ones, and what one slip does."""

    def names(tiles: int, places: int, flip: int) -> list[int]:
        return [tile // places % 2 ^ flip for tile in range(tiles)]

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
        ("a consumer that comes one tile short", names(9, 4, 1), names(4, 4, 0), 4),
        ("nothing to do", [], [], 4),
    ]
