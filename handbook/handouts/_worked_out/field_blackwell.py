"""Tiles in tensor memory, for the field guide's page on Blackwell."""

COLUMNS, TILE = 512, 128

ANSWERS = {"Room for tiles": (TILE, COLUMNS // TILE)}
