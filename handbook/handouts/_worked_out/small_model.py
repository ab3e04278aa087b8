"""The answers of the small model's page."""

from math import log2

ANSWERS = {
    "Two that know nothing": (log2(256), log2(256), log2(64), log2(64)),
    "Three changes": ("it learns", "held out", "both"),
}
