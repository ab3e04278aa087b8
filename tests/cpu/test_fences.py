"""Fenced code is found in one way by all who read Markdown: blocks, headings, folds, minutes, the lint."""

import pytest

from course_site.pages import blocks, fences
from course_site.pages.code_spans import outside_verbatim
from course_site.pages.headings import without_code_blocks
from course_site.pages.plain_text import without_code
from course_site.site.render import optional_sections, reading_time

LONGER = "````\n/// nothing\n```\n## no heading\n````"
OTHER = "~~~ { .text .output }\n/// nothing\n```\n## no heading\n~~~"
SAYS = "```bash\n/// nothing\n```bash\n## no heading\n```"
INDENTED = "    ```\n    /// nothing\n## no heading\n    ```"
OPEN = "```\n/// nothing\n## no heading"


def parts(text):
    return [line.part for line in fences.lines(text)]


def test_lines_are_those_of_the_text():
    for code in (LONGER, OTHER, SAYS, INDENTED, OPEN, "", "\n\n", "```", "a\n\n```\n```\n\nb\n"):
        for text in (code, f"above\n\n{code}", f"{code}\n", f"above\n{code}\n\nbelow\n"):
            assert "".join(line.text for line in fences.lines(text)) == text


@pytest.mark.parametrize("code", [LONGER, OTHER, SAYS, INDENTED])
def test_code_ends_at_marks_of_its_own_kind_as_many_or_more_and_nothing_behind_them(code):
    inside = ["code"] * (len(code.splitlines()) - 2)
    assert parts(f"above\n{code}\nbelow") == ["", "open", *inside, "end", ""]


def test_what_nobody_closes_runs_to_the_end():
    assert parts(f"above\n{OPEN}") == ["", "open", "code", "code"]


@pytest.mark.parametrize("code", [LONGER, OTHER, SAYS, INDENTED])
def test_all_readers_agree(code):
    page = f"# Page\n\n{code}\n\n## Last {{.beyond}}\n\nwords"

    assert blocks.parse(page) == [page]
    assert "no heading" not in without_code_blocks(page)
    assert "no heading" not in without_code(page)
    assert "nothing" in outside_verbatim(page, lambda text: text.replace("nothing", "changed"))
    assert optional_sections.folded(page, {}, {}).count("<details") == 1
    assert reading_time.minutes(code, {}, {})[0].reading < 0.5
