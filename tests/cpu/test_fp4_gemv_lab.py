"""Lab fp4_gemv: what its texts say about codes is so, and its further cases show what random numbers may hide."""

import random
from pathlib import Path

import numpy as np
import pytest

from course_kernels.nvfp4.formats import E2M1, E4M3, values
from course_kernels.problem import Workload
from course_labs.check import WrongArray, check
from course_labs.lab import find_lab, load_file

LAB = find_lab(Path(__file__).parents[2], "fp4_gemv")
FURTHER = load_file(LAB.folder / "further.py", "further")
TRUTH = load_file(LAB.folder / "truth.py", "truth").TRUTH


def swapped(packed):
    """The two numbers of every byte, each in the other's place."""
    return packed << 4 | packed >> 4


def halves(packed):
    """Blocks as GGUF has them: byte j holds number j and number j + 8."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1, 16)
    return (codes[..., :8] | codes[..., 8:] << 4).reshape(packed.shape)


def test_the_byte_on_paper_is_what_the_checks_ask_for():
    first, second = values(E2M1)[[0x5, 0xB]]
    scale = values(E4M3)[0x3C]

    assert (first, second, scale) == (3.0, -1.5, 1.5)
    assert 7 * first + 5 * second + 3 * scale + 96 // 2 + 2 * (96 // 16) == 78
    assert 7 * second + 5 * first == 4.5  # whoever swaps them is told so


@pytest.mark.parametrize("other", [swapped, halves])
def test_another_order_shows_in_one_of_the_two_and_not_in_both(other):
    inputs = TRUTH.make_inputs(Workload.parse("dtype=float16,L=1,M=9,K=96"), np.random.default_rng(1))
    a, scales_a, b, scales_b = inputs
    due = TRUTH.reference(*inputs)

    np.testing.assert_array_equal(TRUTH.reference(other(a), scales_a, other(b), scales_b), due)
    assert (TRUTH.reference(other(a), scales_a, b, scales_b) != due).all()


@pytest.mark.parametrize(("bits", "power"), [((28, 22), 126), ((12, 9), 14)], ids=["float32", "float16"])
def test_a_code_moved_to_where_a_float_has_its_bits_is_off_by_one_factor(bits, power):
    kinds = {126: (np.uint32, np.float32), 14: (np.uint16, np.float16)}
    codes = np.arange(16).astype(kinds[power][0])
    moved = ((codes & 8) << bits[0] | (codes & 7) << bits[1]).astype(kinds[power][0]).view(kinds[power][1])

    np.testing.assert_array_equal(moved.astype(np.float64) * 2.0**power, values(E2M1))


# What random numbers may hide: each breaks the truth in one place, and some case must show it.
BROKEN = {
    "last block of long rows": lambda a, sa, b, sb: (cut(a, a.shape[-1] > 1024), sa, b, sb),
    "scales below the normal ones": lambda a, sa, b, sb: (a, np.where(sa < 8, 0, sa).astype(np.uint8), b, sb),
    "a NaN": lambda a, sa, b, sb: (a, np.where(sa == 127, 0, sa).astype(np.uint8), b, sb),
    "one number of a byte": lambda a, sa, b, sb: (a & (15 if a.any(axis=-1).sum() == 1 else 255), sa, b, sb),
    "rows past the sixteenth": lambda a, sa, b, sb: (
        a * (np.arange(a.shape[1]) < 16)[:, None].astype(np.uint8),
        sa,
        b,
        sb,
    ),
}


def cut(a, long):
    """Without its last block, in a long row."""
    a = a.copy()
    a[..., -8:] = 0 if long else a[..., -8:]
    return a


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_further_cases_show_what_random_numbers_hide(slow, seed):
    cases = FURTHER.further("numpy", random.Random(seed), slow)

    def told_by(function):
        for case in cases:
            try:
                check(case.of(TRUTH), Workload.parse(case.size), function, seed, once=True, exact=case.exact)
            except WrongArray as error:
                return str(error)
        return ""

    with np.errstate(all="ignore"):
        assert told_by(lambda *inputs: TRUTH.reference(*inputs).astype(np.float16)) == ""
        hidden = [
            name
            for name, broken in BROKEN.items()
            if not told_by(lambda *inputs, b=broken: TRUTH.reference(*b(*inputs)).astype(np.float16))
        ]
    assert hidden == []
