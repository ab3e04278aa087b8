"""Cells of an engine, for the field guide's page on Gaudi."""

SIDE, ENGINES = 256, 8

ANSWERS = {"Two peaks of one chip": (SIDE, SIDE, ENGINES, SIDE * SIDE * ENGINES, 2)}
