"""What the exercises of the page on profiling come to."""

LOADS, SECTORS, LANES, FLOAT, SECTOR_BYTES = 33_554_432, 8_388_608, 32, 4, 32
REQUESTS = LOADS // LANES
LEAST = LANES * FLOAT // SECTOR_BYTES
EACH = SECTORS // REQUESTS
STRIDE = EACH // LEAST
assert len({lane * STRIDE * FLOAT // SECTOR_BYTES for lane in range(LANES)}) == EACH

ANSWERS = {
    "What must move?": [
        LOADS,
        LANES,
        REQUESTS,
        EACH,
        LEAST,
        STRIDE,
        1 / STRIDE,
        REQUESTS * LEAST,
    ],
}
