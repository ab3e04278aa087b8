"""What `docs/one_token.py` and its picture say by hand: the sizes are those of the shape that the code counts."""

import re
from pathlib import Path

import pytest

from course_models.config import (
    BF16_BYTES,
    LLAMA_8B,
    Config,
    attention_parameters,
    block_parameters,
    cache_bytes,
)

ROOT = Path(__file__).parents[2]
PAGE = re.sub(r"\n# *", " ", (ROOT / "docs/one_token.py").read_text(encoding="utf-8"))
PICTURE = (ROOT / "docs/assets/figures/one_layer.svg").read_text(encoding="utf-8")

c = LLAMA_8B
GRIDS = {  # in the order in which the picture has them, from top to bottom
    "queries": c.width * c.heads * c.head_dim,
    "keys": c.width * c.kv_heads * c.head_dim,
    "values": c.width * c.kv_heads * c.head_dim,
    "output": c.width * c.heads * c.head_dim,
    "gate": c.width * c.hidden,
    "up": c.width * c.hidden,
    "down": c.width * c.hidden,
    "head": c.width * c.vocab,
}


def megabytes(numbers):
    return f"{numbers * BF16_BYTES / 1e6:.1f} MB"


def spaced(number):
    return f"{number:,}".replace(",", " ")


def test_the_picture_has_every_grid_with_its_weight():
    layer = attention_parameters(c) + block_parameters(c) + 2 * c.width

    assert re.findall(r"[\d.]+ MB", PICTURE) == [megabytes(layer), *map(megabytes, GRIDS.values())]


@pytest.mark.parametrize(
    "said",
    [
        f"there are {c.layers}<",
        f"{spaced(c.vocab)} rows of {c.width}<",
        f"{c.heads} query heads ask {c.kv_heads} key heads<",
        f">{cache_bytes(c, 1, 1) // c.layers} bytes<",
        f"{spaced(c.hidden)} numbers wide<",
        f"{spaced(c.vocab)} logits",
    ],
)
def test_the_picture_has_the_numbers_of_the_shape(said):
    assert said in PICTURE


def test_a_token_leaves_in_the_cache_what_the_page_works_out():
    sum_by_hand = f"2 × {c.layers} × {c.kv_heads} × {c.head_dim} × {BF16_BYTES} = "

    assert sum_by_hand + spaced(cache_bytes(c, 1, 1)) + " bytes" in PAGE


def test_the_last_exercise_counts_as_the_code_does():
    small = Config(
        layers=16, width=2048, heads=32, kv_heads=8, head_dim=64, hidden=8192, vocab=128_000, tied=True
    )
    layer = attention_parameters(small) + block_parameters(small)
    weights = small.layers * layer + small.vocab * small.width
    cache = cache_bytes(small, 1, 1)
    tokens, left = divmod(BF16_BYTES * weights, cache)

    assert left == 0
    for said in (layer, weights, BF16_BYTES * weights, cache, tokens):
        assert f" {spaced(said)}" in PAGE, said
