"""What the exercise of the page on a model's memory comes to."""


def of_a_token(heads, layers=32, head=128, number_bytes=2):
    """Bytes in the KV cache."""
    return 2 * layers * heads * head * number_bytes


GUEST = 100_000

ANSWERS = {
    "One long guest": [
        of_a_token(8),
        of_a_token(8) / 1024,
        GUEST * of_a_token(8) / 1e9,
        32 / 8,
        GUEST * of_a_token(32) / 1e9,
    ]
}
