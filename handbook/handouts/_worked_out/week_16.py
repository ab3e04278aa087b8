"""How many buffers fit into a block, and how long a trip they forgive, for week 16."""

BLOCK_KIB = 227  # of shared memory that a block may have
NUMBER = 2  # bytes
PER_CYCLE = 4096 // 2  # multiply-adds of an SM's tensor cores


def pair_kib(m, n, k):
    """KiB of a tile of A and one of B."""
    return (m + n) * k * NUMBER // 1024


def cycles(m, n, k):
    """Of the products of one step."""
    return m * n * k // PER_CYCLE


LARGE, SMALL = (128, 256, 64), (128, 128, 64)
LARGE_FIT, SMALL_FIT = BLOCK_KIB // pair_kib(*LARGE), BLOCK_KIB // pair_kib(*SMALL)
TRIP = (LARGE_FIT - 1) * cycles(*LARGE)
ALSO = (SMALL_FIT - 1) * cycles(*SMALL)
LARGE_RATE = pair_kib(*LARGE) * 1024 // cycles(*LARGE)
SMALL_RATE = pair_kib(*SMALL) * 1024 // cycles(*SMALL)

ANSWERS = {
    "A smaller tile": (
        *(BLOCK_KIB, pair_kib(*LARGE), LARGE_FIT, LARGE_FIT),
        TRIP // cycles(*LARGE),
        *(BLOCK_KIB, pair_kib(*SMALL), SMALL_FIT, ALSO // cycles(*SMALL)),
        *(LARGE_FIT, LARGE_RATE, SMALL_RATE),
    )
}
