"""Sixteen pictures in a prompt, for week 11."""

SIDE, PATCH, QUESTION, READERS, TEXT_READERS = 336, 14, 64, 16, 60
PATCHES = SIDE // PATCH
TOKENS = PATCHES**2 + QUESTION

ANSWERS = {
    "Sixteen readers with a picture each": (
        *(PATCHES, PATCHES**2, TOKENS, READERS, READERS * TOKENS),
        *(TEXT_READERS, TEXT_READERS * QUESTION / TOKENS),
    )
}
