"""A ring between a producer and consumers: who computes, which bit each names, who waits for whom, how many places."""


def mark(line):
    """Say what a line of machine code does: "computes", "fetches", "waits", "tells" or "goes back"."""
    name = line.split()[0]
    if name.startswith("HGMMA"):
        return "computes"
    if name.startswith(("LDGSTS", "UTMALDG")):
        return "fetches"
    if name.startswith(("SYNCS.PHASECHK", "BAR.SYNC", "DEPBAR", "WARPGROUP.DEPBAR")):
        return "waits"
    return "goes back" if name.startswith("BRA") else "tells"


def full_bit(tile, places):
    """The bit that the consumer names when it waits for a tile to be there."""
    return tile // places % 2  # the round: even ones name 0


def empty_bit(tile, places):
    """The bit that the producer names when it waits for the tile's place to be free."""
    return 1 - full_bit(tile, places)  # a fresh mbarrier is at 0, so in the first round it does not wait


def stuck(producer, consumer, places):
    """Who waits in the end: "producer waits for empty 0, consumer waits for full 0". The lists: the bits they name."""
    full, empty = [0] * places, [0] * places
    asked = done = 0
    moved = True
    while moved:
        moved = False
        if asked < len(producer) and empty[asked % places] != producer[asked]:
            full[asked % places] ^= 1  # the tile is there
            asked, moved = asked + 1, True
        if done < len(consumer) and full[done % places] != consumer[done]:
            empty[done % places] ^= 1  # its place is free
            done, moved = done + 1, True
    waiting = []
    if asked < len(producer):
        waiting.append(f"producer waits for empty {asked % places}")
    if done < len(consumer):
        waiting.append(f"consumer waits for full {done % places}")
    return ", ".join(waiting) or "nobody waits"


def places_needed(order, trip, cook):
    """How many places, so that the slower side never waits once the first tile is there."""
    under_way = order + trip + cook  # from the order of a tile until its place is free
    return -(-under_way // max(order, cook))  # one tile more in so many squares
