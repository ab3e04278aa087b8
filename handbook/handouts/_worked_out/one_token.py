"""A note, a door and a model's floor, as the page of one token asks for them."""

from math import exp

_NOTE = [a + b for a, b in zip((1, -1, 3, 5), (0.5, 0, -1, 0), strict=True)]
_PASSES = range(1000, 1000 + 100)  # rows of each, without a cache
LAYERS, WIDTH, HEADS, KEY_HEADS, D, MIDDLE, WORDS = (
    16,
    2048,
    32,
    8,
    64,
    8192,
    128_000,
)
_QUERIES, _KEYS, _FORWARD = (
    2 * WIDTH * WIDTH,
    2 * WIDTH * KEY_HEADS * D,
    3 * WIDTH * MIDDLE,
)
_LAYER, _HEAD = _QUERIES + _KEYS + _FORWARD, WORDS * WIDTH
_WEIGHTS, _TOKEN = LAYERS * _LAYER + _HEAD, 2 * LAYERS * KEY_HEADS * D * 2
ANSWERS = {
    "A lazy layer": (
        [abs(number) for number in _NOTE],
        "nothing",
        "wipe",
    ),
    "Three doors": (
        (10, 1, 10, 10, 4, 40),
        (0, 1 / 2, 0),
        (10, 1, 1, round(exp(10))),
    ),
    "Draw it": (3, 2),
    "Without a cache": (
        (1000, 100 - 1, 1000, 99, 1000 + 99),
        (
            1000,
            _PASSES[1],
            _PASSES[-1],
            100,
            sum(_PASSES) / 100,
            100,
            sum(_PASSES) / 100,
            sum(_PASSES),
        ),
    ),
    "The large sister": (80, 141, 2, 1 / 2),
    "The whole floor, by yourself": (
        (
            2,
            WIDTH,
            WIDTH,
            _QUERIES,
            2,
            WIDTH,
            KEY_HEADS * D,
            _KEYS,
            3,
            WIDTH,
            MIDDLE,
            _FORWARD,
        ),
        (_QUERIES, _KEYS, _FORWARD, _LAYER),
        (
            LAYERS,
            _LAYER,
            LAYERS * _LAYER,
            WORDS,
            WIDTH,
            _HEAD,
            LAYERS * _LAYER,
            _HEAD,
            _WEIGHTS,
            2,
        ),
        2 * _WEIGHTS / 1e9,
        (
            2,
            LAYERS,
            KEY_HEADS,
            D,
            2,
            _TOKEN,
            2 * _WEIGHTS,
            _TOKEN,
            2 * _WEIGHTS / _TOKEN,
        ),
    ),
    "Two changes": ("the weights stay", 8191, "the weights are read once", 32),
}
