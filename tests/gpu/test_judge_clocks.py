"""The judge's two clocks on the card: cheats that show when they are timed, and kernels whose clocks agree."""

import re
import tempfile
from pathlib import Path

import pytest
from test_judge import (
    CHEATS,
    CLOCKED,
    KERNELS,
    SCALE,
    TIME,
    host,  # noqa: F401  a fixture
    is_refused,
    is_right,
    is_timed,
    judged,  # noqa: F401  a fixture
    kernel_of,
    name_of,
    written_outside,
)

GROUPS = ("judge",)
ALONE = True  # it looks at time


@pytest.mark.parametrize("file", [file for file in CHEATS if is_timed(file)], ids=name_of)
def test_a_cheat_is_refused_for_its_reason(judged, file, record_property):  # noqa: F811
    is_refused(judged, file, record_property, time_on=SCALE.time_on[0])


@pytest.mark.parametrize("file", [file for file in KERNELS if kernel_of(file) in CLOCKED], ids=kernel_of)
def test_a_kernel_of_the_library_is_right_by_both_clocks(judged, file):  # noqa: F811
    both = rf"{TIME}, [\d.]+% of peak; the judge's own clock, launches included: "
    verdict = is_right(judged, file, clocked=True)

    assert re.match(both, verdict.lines[0]), verdict.text


def test_nothing_is_left():
    assert not list(Path(tempfile.gettempdir()).glob("judge-*"))
    assert not written_outside()
