"""The answers of the small model's page."""

from math import log2

ANSWERS = {
    "Two that know nothing": (256, 2, log2(256), log2(256), 64, log2(64), log2(64)),
    "Three changes": (
        "that on the text it learns",
        "that on the files held out",
        "both, and the second",
    ),
}
