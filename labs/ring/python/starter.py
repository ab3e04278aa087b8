"""A ring between a producer and consumers: who computes, which bit each names, who waits for whom, how many places."""


def mark(line):
    """Say what a line of machine code does: "computes", "fetches", "waits", "tells" or "goes back"."""


def full_bit(tile, places):
    """The bit that the consumer names when it waits for a tile to be there."""


def empty_bit(tile, places):
    """The bit that the producer names when it waits for the tile's place to be free."""


def stuck(producer, consumer, places):
    """Who waits in the end: "producer waits for empty 0, consumer waits for full 0". The lists: the bits they name."""


def places_needed(order, trip, cook):
    """How many places, so that the slower side never waits once the first tile is there."""
