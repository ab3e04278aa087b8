"""The ring of two on two cards of one host: every bit of the sum. With one card nothing is collected."""

from __future__ import annotations

import pytest
import torch

from course_kernels.expert_parallel.link import check_link, link_gb_per_s
from course_kernels.two_cards.together import CardsFailed, reduce

GROUPS = ("all_reduce",)
GPUS = 2
__test__ = torch.cuda.device_count() >= GPUS

# A pair of numbers, halves that begin where no vector does, a part of a block, many blocks.
SIZES = (8, 24, 1000, 2**15, 2**20 + 8, 2**28)


def test_every_bit_is_that_of_the_sum_before_and_after_its_time_is_taken():
    found = reduce(SIZES, rounds=4)

    assert len(found) == len(SIZES)
    for size, of_size in zip(SIZES, found, strict=True):
        assert {way: len(times) for way, times in of_size.items()} == {"ring": 4, "library": 4}
        for way, times in of_size.items():
            check_link(f"{size} B, {way}", size, times, link_gb_per_s(torch.cuda.get_device_name()))


def test_a_message_that_cannot_be_halved_ends_in_one_line():
    with pytest.raises(CardsFailed, match=r"^card \d: reduce ended with 1: .*N: expected an even number"):
        reduce((12,), rounds=2)
