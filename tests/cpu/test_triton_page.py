"""Triton for NumPy people: its cells run without a card, in the interpreter, as the page promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_site.pages.page import read_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/triton_for_numpy_people.py"


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the cells print, one after the other in one file, as the page says to type them."""
    cells = [cell.source for cell in read_page(PAGE, ROOT).cells if cell.kind == "code"]
    file = tmp_path_factory.mktemp("typed") / "mine.py"
    file.write_text("\n\n".join(cells).replace('"cuda"', '"cpu"'), encoding="utf-8")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "[0, 10, 20, 30, -1, -1]",
        "[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]",
        "i // 2: [0, 0, 1, 1, 2, 2, 3, 3]",
        "same piece: [0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1]",
        "unmasked: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]",
        "masked: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7]",
        "other=0.0: 0.0",
        "other=-inf: -2.0",
        "both edges: [10, 35, 60]",
        "rows only: [28, 68, 60]",
        "top[:, None]: [[-3, -2, -1, 0], [-3, -2, -1, 0], [-3, -2, -1, 0], [-3, -2, -1, 0]]",
        "top: [[-3, -6, -9, -12], [1, -2, -5, -8], [5, 2, -1, -4], [9, 6, 3, 0]]",
        "row * N, then wide: -1673527296",
        "row made wide first: 2621440000",
    ],
)
def test_a_cell_prints_in_the_interpreter_what_the_page_says_of_the_card(printed, line):
    assert line in printed


@pytest.mark.parametrize(
    "line",
    [
        "count 2000",  # no race: one program after the other
        "dot 1.000244140625",  # no TF32
        "small_dot nothing",  # and what the compiler refuses, it takes
        "loop nothing",
        "outside nothing",
        "far SIGSEGV",
    ],
)
def test_the_interpreter_differs_where_the_page_says_so(printed, line):
    assert line in printed


def test_the_interpreter_has_no_bf16_and_tunes_nothing(printed):
    (bf16,) = [line for line in printed if line.startswith("bf16 ")]
    (tuned,) = [line for line in printed if line.startswith("tuned ")]
    assert bf16 != "bf16 7"
    assert tuned != "tuned nothing"
