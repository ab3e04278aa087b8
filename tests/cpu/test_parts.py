"""A part of another page: shown with that page's values, links and verdict, wherever it is asked for."""

import json
import re

import pytest
from test_render import PAGE, problems, render, repository
from tiny_repository import write

from course_site.pages.page import read_page
from course_site.pages.parts import pages_quoted_by
from course_site.site import incremental
from course_site.site.notebook import published_notebook

SECTION = """## A second one
#
# See [further down](#the-end) and [home](index.md).
#
# /// claim | flash.tflops > 1.2 * sdpa.tflops
# Twice [as written](#the-end): {{ flash.tflops / sdpa.tflops:.3f}}, and [home](index.md#home).
# /// otherwise
# It is not.
# ///
#
# /// table
# columns: ["", one]
# rows:
#   - [flash, "{{ flash.tflops:.0f}} TFLOP/s"]
# caption: "A table of {{ m:.0f }}."
# ///
#
# ```
# # no heading
# ```
#
# ## The end
#
# The last paragraph"""


def two_pages(tmp_path, monkeypatch, *parts, folder="guide", more=""):
    """A page with two sections, and one in another folder that shows parts of it."""
    root = repository(tmp_path, monkeypatch, PAGE.replace("The last paragraph", SECTION))
    write(root, "docs/index.md", "---\nid: home\ntitle: Home\n---\n# Home\n")
    body = "\n\n".join(f"/// part | {part}\n///" for part in parts)
    write(root, f"docs/{folder}/topic.md", f"---\nid: topic\ntitle: Topic\n---\n# Topic\n\n{body}\n\n{more}")
    return root


CLAIM, TABLE = (f"docs/w1.py#a-second-one | {kind}" for kind in ("claim", "table"))


def test_a_part_shows_what_the_other_page_shows_and_leads_to_it(tmp_path, monkeypatch):
    root = two_pages(tmp_path, monkeypatch, CLAIM, TABLE)
    course, page = render(root, "topic")
    text = page.inlined()

    assert course.problems == []
    assert ">1.500</a>" in text
    assert "A table of" in text
    assert '<a class="tested"' in text
    assert (
        text.count('From <a href="../w1.html#a-second-one">Flash: A second one</a>\n{: .caption .from }') == 2
    )
    # Links from where it stands, to where the other page's lead.
    assert "[as written](../w1.py#the-end)" in text
    assert "[home](../index.md#home)" in text
    assert re.search(r'href="\.\./numbers/w1\.html#w1\.flash"', text)
    assert "1.500" in str(published_notebook(course, read_page(root / "docs/w1.py", root), page))


def test_its_values_and_the_pages_own_have_one_list_behind_them(tmp_path, monkeypatch):
    own = "And {{ w1.flash.tflops:.0f}} TFLOP/s."
    _, page = render(two_pages(tmp_path, monkeypatch, TABLE, more=own), "topic")
    block = re.search(r'id="behind-the-values">(.*?)</script>', page.inlined())
    behind = json.loads(block[1])
    places = re.findall(r'data-of="(\d+)" title="([^" ]*)', page.inlined())

    assert [said for _, said in places] == ["flash.tflops", "m", "w1.flash.tflops"]
    assert len({place for place, _ in places}) == 3
    for place, said in places:
        assert behind["names"][behind["values"][int(place)]["of"][0]]["name"] == said


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("docs/w1.py#a-second-one", "write `/// part | docs/PAGE.py#heading | chart`"),
        ("docs/w1.py | chart", "write `/// part | docs/PAGE.py#heading | chart`"),
        ("docs/w1.py#a-second-one | predict", "'predict' is not quoted from other pages"),
        ("docs/w2.py#a-second-one | chart", "there is no page docs/w2.py"),
        ("docs/w1.py#a-third-one | chart", "docs/w1.py has no heading #a-third-one"),
        ("docs/w1.py#no-heading | claim", "docs/w1.py has no heading #no-heading"),
        ("docs/w1.py#the-end | claim", "docs/w1.py#the-end has no claim, and number 1 is asked for"),
        ("docs/w1.py#a-second-one | claim\nwhich: 2", "has one claim, and number 2 is asked for"),
        ("docs/guide/topic.md#topic | claim", "has 0 blocks"),
    ],
)
def test_a_part_that_is_not_there_is_one_clear_line(tmp_path, monkeypatch, part, why):
    head, _, body = part.partition("\n")
    root = two_pages(tmp_path, monkeypatch)
    write(
        root,
        "docs/guide/topic.md",
        f"---\nid: topic\ntitle: Topic\n---\n# Topic\n\n/// part | {head}\n{body}\n///\n",
    )
    (said,) = problems(root)

    assert said.startswith(f"docs/guide/topic.md: /// part | {head}: ")
    assert why in said or "has no claim" in said


def test_a_claim_that_fails_is_a_problem_of_its_own_page(tmp_path, monkeypatch):
    root = two_pages(tmp_path, monkeypatch, CLAIM)
    page = root / "docs/w1.py"
    page.write_text(page.read_text().replace("> 1.2 * sdpa", "> 1.6 * sdpa"))

    assert {said.partition(":")[0] for said in problems(root)} == {"docs/w1.py"}


def test_a_part_of_a_page_that_waits_shows_no_number(tmp_path, monkeypatch):
    root = two_pages(tmp_path, monkeypatch, CLAIM, TABLE)
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    _, page = render(root, "topic")

    assert "1.500" not in page.inlined()
    assert 'class="value"' not in page.inlined()


def test_an_edit_of_a_page_with_such_a_part_builds_everything(tmp_path, monkeypatch):
    root = two_pages(tmp_path, monkeypatch, CLAIM)
    pages = [read_page(root / name, root) for name in ("docs/w1.py", "docs/index.md", "docs/guide/topic.md")]
    before = {"docs/w1.py": (0, 0), "docs/index.md": (0, 0)}

    assert pages_quoted_by(pages[2]) == {"docs/w1.py"}
    assert incremental.edited_pages(root, before, before | {"docs/index.md": (1, 1)}, pages) == [pages[1]]
    assert incremental.edited_pages(root, before, before | {"docs/w1.py": (1, 1)}, pages) is None
