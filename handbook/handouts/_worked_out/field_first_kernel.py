"""What the exercise of the page on a first kernel comes to."""

N, THREADS, WANTED = 1000, 192, 700
BLOCKS = -(-N // THREADS)
ALL = BLOCKS * THREADS
BLOCK, THREAD = divmod(WANTED, THREADS)

ANSWERS = {
    "Number 700": [
        N // THREADS,
        BLOCKS,
        ALL,
        ALL - N,
        BLOCK,
        THREAD,
        THREAD,
        BLOCK,
    ],
}
