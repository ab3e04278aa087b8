"""How often to save, for the field guide's page on clusters."""

GROWTH = 10

ANSWERS = {
    "How often do you save?": (
        (),
        (),
        (GROWTH, GROWTH, round(GROWTH**0.5)),
    )
}
