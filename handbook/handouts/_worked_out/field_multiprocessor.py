"""What the exercise of the page on the multiprocessor comes to."""

THREADS, REGISTERS, SHARED = 256, 96, 40  # of a block; registers of a thread, KiB
SEATS, ALL_REGISTERS, ALL_SHARED, OVERHEAD = 2048, 65536, 228, 1
BY_SEATS = SEATS // THREADS
BY_SHARED = ALL_SHARED // (SHARED + OVERHEAD)
OF_BLOCK = THREADS * REGISTERS
BY_REGISTERS = ALL_REGISTERS // OF_BLOCK
BLOCKS = min(BY_SEATS, BY_SHARED, BY_REGISTERS)

ANSWERS = {
    "Which limit?": [
        BY_SEATS,
        BY_SHARED,
        OF_BLOCK,
        BY_REGISTERS,
        BLOCKS * THREADS // 32,
        SEATS // 32,
    ],
}
