"""Tiles with a halo, for the field guide's page on convolutions."""

FILTER, SIDES = 5, (4, 12, 28)

fetched = [(side + FILTER - 1) ** 2 for side in SIDES]
by_window = [side**2 * FILTER**2 for side in SIDES]

ANSWERS = {
    "Larger tiles": (
        tuple(fetched),
        (
            *by_window,
            *(a / b for a, b in zip(by_window, fetched, strict=True)),
            FILTER**2,
        ),
        (),
    )
}
