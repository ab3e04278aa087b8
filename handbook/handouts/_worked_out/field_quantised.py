"""What the exercises of the page on quantised kernels come to."""

N = K = 4096
WEIGHTS = N * K


def bits(of_weight, of_scale, group):
    """Bits that a weight takes with its share of the scale."""
    return of_weight + of_scale / group


FIRST = bits(4, 16, 128)

ANSWERS = {
    "Bits and scales": [
        *(4, 16, 128, FIRST, 32),
        *(4, 16, 32, bits(4, 16, 32)),
        *(8, 32, K, bits(8, 32, K)),
        *(WEIGHTS, FIRST, 8, WEIGHTS * FIRST / 8 / 1e6),
    ],
}
