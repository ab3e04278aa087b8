"""Bytes of a LayerNorm, for week 14."""

ROWS, WIDTH, BYTES = 16384, 4096, 4
MB = ROWS * WIDTH * BYTES / 1e6

ANSWERS = {
    "A kernel, its bandwidth and its stall": (round(MB), round(2 * MB)),
    # Of the thousand adds before, in the capture and in the replay, the capture runs none.
    "Three questions before you press Enter": (1000 + 0 + 1000,),
}
