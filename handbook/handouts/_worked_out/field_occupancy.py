"""What the exercise of the page on occupancy comes to."""

THREADS, SHARED = 512, 48


def limits(registers):
    """How many blocks fit on an SM of Hopper, by threads, registers and shared memory."""
    return 2048 // THREADS, 65536 // (THREADS * registers), 228 // (SHARED + 1)


BY_THREADS, BY_REGISTERS, BY_SHARED = limits(40)
FIT = min(limits(40))

ANSWERS = {
    "Which limit?": [
        BY_THREADS,
        BY_REGISTERS,
        THREADS * 40,
        BY_SHARED,
        SHARED + 1,
        FIT,
        FIT * THREADS // 32,
        2048 // 32,
        min(limits(32)),
    ]
}
