"""What the weights and a token of Llama 2 7B take, for week 6."""

LAYERS, HEADS, HEAD, BYTES = 32, 32, 128, 2
LONG, SCALE, GROUP = (
    16,
    16,
    128,
)  # bits of what is not rounded, of a scale, and weights that share one
TOKENS = 2048

ANSWERS = {
    "Who fits, and for how long": (
        *(SCALE, GROUP, LONG),
        *(2, LAYERS, HEADS, HEAD, BYTES),
        TOKENS,
    )
}
