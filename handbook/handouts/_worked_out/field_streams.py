"""What the exercises of the page on streams come to."""

IN, WORK, OUT = 6, 4, 4
HELD = IN + WORK + OUT
LEAST = max(IN, WORK, OUT)


def every(buffers):
    """Beats for a frame, if a buffer is held from the way in to the way out."""
    return max(LEAST, HELD / buffers)


assert every(3) == LEAST < every(2)

ANSWERS = {
    "How many buffers?": [
        LEAST,
        IN,
        WORK,
        OUT,
        HELD,
        every(1),
        every(2),
        HELD,
        3,
        LEAST,
    ],
}
