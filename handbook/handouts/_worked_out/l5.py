"""Instructions, banks and time lines of L5."""

WINDOWS, LANES, WORDS = 32, 8, 4  # eight lanes of four words each


def share(tall, wide):
    """Multiply-adds of all instructions, for a thread that owns tall × wide numbers of C."""
    return f"{tall * wide} of {tall * wide + tall + wide}"


def read_for_64(tall, wide):
    """Numbers from shared memory for 64 multiply-adds."""
    return (tall + wide) * 64 // (tall * wide)


def windows(step):
    """Which lanes want which bank; a second row where two meet."""
    rows = [[f"!{window}" for window in range(WINDOWS)]]
    standing = _standing(step)
    for place in range(max(map(len, standing))):
        rows.append(
            [str(lanes[place]) if place < len(lanes) else "" for lanes in standing]
        )
    while len(rows) < 3:
        rows.append(["!"] * WINDOWS)
    return rows


def queue(step):
    """Lanes at the fullest bank."""
    return max(map(len, _standing(step)))


def _standing(step):
    at = [[] for _ in range(WINDOWS)]
    for lane in range(LANES):
        for word in range(WORDS):
            at[(lane * step + word) % WINDOWS].append(lane)
    return at


def one_tray():
    """One buffer: fetch, multiply, multiply, three times."""
    return [list("FMMFMMFMM") + ["!"] * 6]


def two_trays():
    """Two buffers: the next tile is fetched while this one is multiplied."""
    return [
        ["!"] + list("MMMMMM") + ["!"] * 8,
        list("F") + list("F") + ["!"] + list("F") + ["!"] * 11,
    ]


def length(grid):
    """Squares until the last one that is filled."""
    return max(
        1 + i for row in grid for i, cell in enumerate(row) if cell.strip("!#")
    )
