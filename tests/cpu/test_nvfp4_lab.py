"""The lab of NVFP4: a right answer may be written otherwise, and what is right is what the course's encoder does."""

import random
from pathlib import Path

import numpy as np
import pytest

from course_kernels.nvfp4 import blocks, formats
from course_labs.interactive_cases import Asked, Slip, grade
from course_labs.lab import find_lab, load_file
from course_labs.protocol.messages import Played

LAB = find_lab(Path(__file__).parents[2], "nvfp4")
truth = load_file(LAB.folder / "truth.py", "truth")

# Functions written in another way, by the names that they replace: tables, comparisons, shifts, other orders.
OTHERWISE = """

import numpy as np

TABLE = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def number(code):
    return TABLE[code]


def nearest(x):
    size = abs(x)
    code = (size > 0.25) + (size >= 0.75) + (size > 1.25) + (size >= 1.75) + (size > 2.5) + (size >= 3.5) + (size > 5)
    return code | 8 if x < 0 else code


def pack(codes):
    return np.array([low | high << 4 for low, high in zip(codes[::2], codes[1::2])])


def unpack(packed):
    return tuple(code for byte in packed for code in (byte & 15, byte >> 4))


def scale_of(block, second):
    wanted = max(map(abs, block)) / second / 6
    codes = sorted(range(1, 127), key=lambda code: (abs(wanted - e4m3(code)), code & 1))
    return codes[0]


def decode_block(codes, scale, second):
    return [second * number(code) * e4m3(scale) for code in codes]


def encode_block(block, second):
    scale = scale_of(block, second)
    return np.array([nearest(x / e4m3(scale) / second) for x in block]), scale


def second_of(numbers):
    return max(map(abs, numbers)) / 448 / 6 or 1


def encode(numbers):
    second = second_of(numbers)
    parts = [encode_block(numbers[start : start + 16], second) for start in range(0, len(numbers), 16)]
    return pack([code for codes, _ in parts for code in codes]), [scale for _, scale in parts], second
"""


def test_a_right_answer_may_be_written_otherwise(tmp_path):
    file = tmp_path / "nvfp4.py"
    file.write_text(LAB.solution("python").read_text() + OTHERWISE)
    (found,) = grade(LAB, [file], environment={"CUDA_VISIBLE_DEVICES": "-1"})
    assert found.text.startswith("right: correct in all "), found.text
    assert found.text.splitlines()[-1].startswith("alone: right, and the lab is done: ")


def test_what_is_right_there_is_the_course_s_encoder():
    assert [truth.number(code) for code in range(16)] == formats.values(formats.E2M1).tolist()
    assert formats.values(formats.E4M3)[:127].tolist() == truth.SCALES
    draw = random.Random(1)
    for _ in range(40):
        block = [draw.gauss(0, 4) for _ in range(16)]
        x = np.float32([block])
        second = 2.0 ** draw.randint(-3, 3)
        ours = blocks.encode(x, second=second)
        codes, scale = truth.there(x[0].tolist(), second)
        assert (ours.codes[0].tolist(), ours.scales[0].tolist()) == (codes, [scale])


class Given(Asked):
    """Answers that are given, whatever is asked."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def call(self, name, *given, **_):
        from course_labs.interactive_cases import _answer

        return _answer(Played(self.answers.pop(0), after=given))


@pytest.mark.parametrize(
    ("look", "given", "answer", "said"),
    [
        (truth.a_number, (3,), "1.5", "number: expected a number, got '1.5'"),
        (truth.a_number, (3,), True, "number: expected a number, got True"),
        (truth.a_code, (7,), 8, "nearest(7): expected 7, got 8"),
        (truth.bytes_of, ([1, 2, 15, 0],), [33], "pack([1, 2, 15, 0]): expected [33, 15], got [33]"),
        (truth.block_there, ([6.0, 1.0], 1.0), [[7, 2], 57], "the second of 2: expected 56, got 57"),
        (truth.block_there, ([6.0, 1.0], 1.0), [[7, 2]], "expected [[7, 2], 56], got [[7, 2]]"),
        (truth.block_back, ([1, 2, 3], 56, 1.0), [0.5, 1.0, float("nan")], "number 2: expected 1.5, got nan"),
    ],
)
def test_what_is_wrong_is_said(look, given, answer, said):
    with pytest.raises(Slip) as slip:
        look(Given(answer), *given)
    assert said in slip.value.why
