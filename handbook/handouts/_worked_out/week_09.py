"""Bytes of SiLU, for week 9."""

NUMBERS, BYTES = 2**27, 2
FUSED, TWO = 2, 5  # trips of the tensor
MB = NUMBERS * BYTES / 1e6

ANSWERS = {
    "Your SiLU, before it runs": (
        *(round(MB), FUSED, round(FUSED * MB), TWO, round(TWO * MB)),
    )
}
