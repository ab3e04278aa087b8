"""Pages of the field guide that show a lesson from another side: in one form, made of the lesson's own parts, short."""

import re
from pathlib import Path

import pytest

from course_site.pages.blocks import parse, walk_blocks
from course_site.pages.page import read_page

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/field_guide"
VIEWS = sorted(path.stem for path in GUIDE.glob("*.md") if path.stem != "index")
PARTS = (
    "By the end of this page you can",
    "**In one sentence:**",
    "/// p",  # a picture, a part of a lesson or a question
    "/// predict",
    "## When it wins, when it trips",
    "**It wins**",
    "**It trips**",
    "## The numbers that matter",
    "*Measured here*",
    "## What to type",
    "```",
    "**Where the course teaches it:**",
    "../",
    "/// exercise",
    "/// answer",
)


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_has_every_part_of_the_form_in_order(name):
    text, at = (GUIDE / f"{name}.md").read_text(encoding="utf-8"), 0
    for part in PARTS:
        at = text.find(part, at)
        assert at >= 0, part
    blocks = list(walk_blocks(parse(text.partition("\n---\n")[2])))
    kinds = [block.kind for block in blocks]
    pictures = [
        block for block in blocks if block.kind == "part" and block.argument.endswith(("figure", "chart"))
    ]
    assert pictures or "figure" in kinds
    assert kinds.count("exercise") == 1
    assert "{{" in text.partition("## The numbers that matter")[2], "no number of a record"


@pytest.mark.parametrize("name", VIEWS)
def test_it_measures_nothing_and_takes_a_few_minutes(name):
    page = read_page(GUIDE / f"{name}.md", ROOT)
    words = len(re.findall(r"\w+", re.sub(r"\{\{.*?\}\}|\]\([^)]*\)", "", page.cells[0].source)))

    assert not page.runs
    assert page.id == f"field_{name}"
    assert words <= 900


@pytest.mark.parametrize("name", VIEWS)
def test_it_is_the_page_of_one_topic_of_the_map(name):
    text = (GUIDE / "index.md").read_text(encoding="utf-8")

    assert len(re.findall(rf"^- \[\*\*[^*]+\*\*\]\({name}\.md\)", text, re.MULTILINE)) == 1
    assert re.search(rf"^pages: \[.*\b{name}\b.*\]$", text, re.MULTILINE)
