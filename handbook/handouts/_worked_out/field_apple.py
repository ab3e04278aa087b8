"""Bytes of a model, for the field guide's page on Apple."""

BILLIONS, GROUP = 70, 32
MXFP4 = 4 + 8 / GROUP

ANSWERS = {"Seventy billion on a laptop": (2 * BILLIONS, MXFP4)}
