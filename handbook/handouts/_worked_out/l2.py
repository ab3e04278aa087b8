"""Seats and pixels of L2."""

NUMBERS, TABLES, SEATS = 10, 3, 4
WIDTH, HEIGHT, BLOCK = 30, 10, (16, 4)
THREAD, IN_GRID = (5, 2), (1, 1)  # x and y


def boxes():
    """The ten boxes, numbered, with the seat that takes each below."""
    seats = [f"{i // SEATS} · {i % SEATS}" for i in range(NUMBERS)]
    return [[f"!{i}" for i in range(NUMBERS)], seats]


def seats():
    """i of every seat, table by table; whoever has no number is shaded."""
    tables = []
    for table in range(TABLES):
        row = [table * SEATS + seat for seat in range(SEATS)]
        tables += [str(i) if i < NUMBERS else f"#({i})" for i in row] + ["!"]
    heads = [
        h
        for table in range(TABLES)
        for h in (f"!{table}·0", "!·1", "!·2", "!·3", "!")
    ]
    return [heads[:-1], tables[:-1]]


def column():
    """Of the thread in the picture."""
    return IN_GRID[0] * BLOCK[0] + THREAD[0]


def row():
    """Of the thread in the picture."""
    return IN_GRID[1] * BLOCK[1] + THREAD[1]


def place():
    """In memory."""
    return row() * WIDTH + column()


def in_block():
    """Threads are numbered like words on a page."""
    return THREAD[1] * BLOCK[0] + THREAD[0]


def picture():
    """All cells; solved, the pixel is marked and its block shaded."""

    def cell(x, y):
        if (x, y) == (column(), row()):
            return "#✗"
        mine = (x // BLOCK[0], y // BLOCK[1]) == IN_GRID
        return "#" if mine else ""

    return [[cell(x, y) for x in range(WIDTH)] for y in range(HEIGHT)]
