"""What a layer's scores weigh, and what lies in shared memory instead, for week 4."""

HEADS, TOKENS, WIDTH, BYTES = 64, 8192, 128, 2
LAYERS = 80
PAIRS = 3  # of tiles of keys and values on their way, in the tuned kernel
QUERIES, KEYS = 128, 64  # of a tile of FlashAttention-2, heads of 128
OF_A_BLOCK = (
    228 - 1
)  # KiB: what a multiprocessor of Hopper has, less what the system keeps for a block

_TILE = (
    QUERIES,
    2,
    KEYS,
    WIDTH,
    BYTES,
)  # the factors of what lies in shared memory

ANSWERS = {
    "What never exists": (
        *(HEADS, TOKENS, TOKENS, BYTES, LAYERS),
        *(WIDTH, QUERIES, KEYS, WIDTH),
        *_TILE,
        PAIRS,
        OF_A_BLOCK,
    )
}
