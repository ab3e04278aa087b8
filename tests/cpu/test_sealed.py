"""The envelope of L8 is opened in W1: no page, lab or sheet of L8 says how a softmax does without its whole row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAB = ROOT / "labs/plain_attention"
L8 = (
    ROOT / "docs/lectures/l8_attention.py",
    ROOT / "src/course_kernels/attention/k05_blocks_of_rows.py",
    ROOT / "handbook/handouts/l8.toml",
    *sorted(
        path
        for path in LAB.rglob("*.*")
        if "wrong" not in str(path.relative_to(LAB)) and path.suffix != ".pyc"
    ),
)
# What the cure is called, and what it is made of.
CURE = re.compile(
    r"online softmax|running (max|sum)|rescal|\brepair|\bso far\b|log-?sum-?exp|m_new|l_new|one crate|merge",
    re.I,
)


def told(text):
    """What of the cure a text gives away."""
    return [found[0] for found in CURE.finditer(text)]


@pytest.mark.parametrize("path", L8, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_envelope_stays_shut(path):
    assert told(path.read_text(encoding="utf-8")) == []


def test_the_workshop_opens_it():
    text = (ROOT / "docs/workshops/w1_flash_attention.py").read_text(encoding="utf-8")

    assert {"repair", "so far", "m_new"} <= set(told(text))
    assert "../lectures/l8_attention.py#what-stands-in-the-way" in text
    assert len(L8) > 10
