"""Numbers of a lane's own, for the field guide's page on Intel."""

REGISTERS, BYTES, FLOAT = 128, 64, 4


def room(lanes):
    """How many numbers of float32 each of so many lanes has room for."""
    return REGISTERS * BYTES // FLOAT // lanes


ANSWERS = {
    "How many lanes may a row have?": (
        REGISTERS,
        BYTES,
        REGISTERS * BYTES,
        room(1),
        room(32),
        room(16),
        room(8),
        8,
        3,
    )
}
