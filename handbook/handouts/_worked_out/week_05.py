"""Rounding on two grids, for week 5."""

MOST, OUTLIER, LARGEST, NUMBERS, BITS = 127, 60, 0.4, 8, 16
WIDE, FINE = OUTLIER / MOST, LARGEST / MOST

ANSWERS = {
    "Two scales by hand": (
        *(
            round(WIDE, 3),
            0.3,
            round(WIDE * round(0.3 / WIDE), 3),
            0.2,
            WIDE * round(0.2 / WIDE),
        ),
        *(
            round(FINE, 5),
            0.3,
            round(0.3 / FINE),
            round(FINE * round(0.3 / FINE), 3),
        ),
        *(BITS, NUMBERS, BITS / NUMBERS, 16, 32, 128),
    )
}
