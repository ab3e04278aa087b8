"""Counts that the page on many experts types, since no record has them."""

import re
from pathlib import Path

import pytest
import triton

from course_kernels.moe import tiles
from course_kernels.moe.problem import block, loads

PAGE = Path(__file__).parents[2] / "docs" / "many_experts.py"


@pytest.mark.parametrize(
    ("load", "count"), [({"SKEW": 100}, 256), ({}, 315), ({"one": True}, 256)], ids=["even", "drawn", "same"]
)
def test_a_prompt_of_4096_tokens_makes_as_many_tiles_as_the_page_says(load, count):
    w = block("30B", 4096, **load)
    rows = tiles.tile_for(w.T * w.TOP_K, w.E, by_copy_engine=True).block_m
    assert rows == 128
    assert sum(triton.cdiv(choices, rows) for choices in loads(w)) == count
    assert re.search(rf"\b{count} (?:full )?tiles\b", PAGE.read_text())
