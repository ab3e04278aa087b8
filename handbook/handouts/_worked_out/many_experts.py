"""Experts and megabytes of the page on many experts."""

WIDTH, INSIDE, EXPERTS, ASKED, TOKENS = 2048, 768, 128, 8, 16
ONE_MB = 3 * INSIDE * WIDTH * 2 / 1e6


def missed(experts):
    """How likely it is that nobody of sixteen draws an expert."""
    return (1 - ASKED / experts) ** TOKENS


def read(experts):
    """How many of so many are read by sixteen tokens."""
    return experts * (1 - missed(experts))


ANSWERS = {
    "How many experts are read?": (3, INSIDE, WIDTH, 2, 15, 16, 15, 16, EXPERTS),
    "Where does the factor go?": (128, 7168 / 128, 128 * 192, 128 * 192 / 256, 256),
    "Half as many experts": (
        (7, 8, 7, 8, missed(64), read(64), 64, EXPERTS),
        (4096, ASKED, 64, 4096 * ASKED / 64, 4096 * ASKED / EXPERTS),
    ),
}
