"""Callouts: eight kinds, each with its words, its icon and a colour that can be read; what is wrong is refused."""

import re
from pathlib import Path

import pytest
from test_render import PAGE, problems, render, repository
from tiny_repository import write

from course_site.lint.lint import lint_page
from course_site.pages.blocks import DirectiveError, parse
from course_site.site.callouts import TITLES, icon
from course_site.site.notebook import published_notebook

SOURCE = """[one]
authors = ["A"]
title = "One"
year = 2024
url = "https://example.org"
read = 2026-11-21
"""
CSS = (Path(__file__).parents[2] / "docs/assets/css/site.css").read_text(encoding="utf-8")


def page_with(block):
    lines = "".join(f"# {line}".rstrip() + "\n" for line in block.splitlines())
    return PAGE.replace("# /// claim", f"{lines}#\n# /// claim", 1)


@pytest.mark.parametrize("kind", TITLES)
def test_each_kind_has_words_icon_and_values_and_links_inside(tmp_path, monkeypatch, kind):
    block = (
        f"/// callout | {kind}\nIt runs at {{{{ flash.tflops:.0f }}}} TFLOP/s, see [here](w1.py) [^one].\n///"
    )
    root = repository(tmp_path, monkeypatch, page_with(block))
    write(root, "docs/bibliography.toml", SOURCE)
    course, page = render(root)
    assert course.problems == []
    html = page.inlined()
    assert f'<div class="callout {kind}" markdown="1">' in html
    assert f"{icon(kind)}{TITLES[kind]}</p>" in html
    assert ">1000</a> TFLOP/s, see [here](w1.py) [^one]." in html


def test_no_two_kinds_look_alike():
    assert len({icon(kind) for kind in TITLES}) == len(TITLES) == 8
    for scheme in schemes().values():
        assert len({scheme[f"tone-{kind.replace('_', '-')}"] for kind in TITLES}) == 8


def test_every_tone_can_be_read():
    for name, colours in schemes().items():
        for kind in TITLES:
            tone = colours[f"tone-{kind.replace('_', '-')}"]
            wash = mixed(tone, colours["paper"], 0.05)
            assert contrast(tone, wash) >= 4.5, (name, kind)
            assert contrast(colours["accent"], wash) >= 4.5, (name, kind, "a link")
            assert f".callout.{kind} {{ --tone: var(--tone-{kind.replace('_', '-')}); }}" in CSS


def schemes():
    """The colours of the light and of the dark scheme."""
    found = {}
    for name in ("default", "slate"):
        block = re.search(rf'\[data-md-color-scheme="{name}"\] \{{\n(.*?)\n\}}', CSS, re.DOTALL)[1]
        found[name] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    return found


def channels(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def mixed(over, under, part):
    pairs = zip(channels(over), channels(under), strict=True)
    return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in pairs)


def contrast(one, other):
    lights = []
    for colour in (one, other):
        linear = [
            (c / 255 / 12.92) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in channels(colour)
        ]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    return max(lights) / min(lights)


def test_an_unknown_kind_is_refused_in_one_line(tmp_path, monkeypatch):
    (found,) = problems(repository(tmp_path, monkeypatch, page_with("/// callout | hint\nx\n///")))
    assert found.startswith(
        "docs/w1.py: /// callout | hint: there is no such callout; known: teaching, metaphor, "
    )
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/// callout\nx\n///", "`/// callout` has no head"),
        ("/// callout | say\n///", "`/// callout | say` is empty"),
        (
            "/// callout | say\n/// claim | a > b\nx\n///\n///",
            "is inside `/// callout`, which holds words only",
        ),
        ("/// callout | say\n/// callout | trip\nx\n///\n///", "which holds words only"),
    ],
)
def test_a_wrong_callout_is_named(text, said):
    with pytest.raises(DirectiveError) as error:
        parse(text)
    assert said in str(error.value)


def test_a_number_typed_in_a_callout_is_found(tmp_path, monkeypatch):
    page = page_with("/// callout | click\nIt runs at 412 TFLOP/s.\n///")
    found = problems(repository(tmp_path, monkeypatch, page))
    assert any("typed number '412 TFLOP/s'" in line for line in found)
    assert any("412 TFLOP/s" in str(finding) for finding in lint_page(page.lstrip()))


def test_in_a_claim_it_may_say_what_the_claim_says(tmp_path, monkeypatch):
    old = "# It beats SDPA by {{ ratio.full:.2f }}.\n"
    new = "# /// callout | click\n# It is faster than SDPA by {{ ratio.full:.2f }}.\n# ///\n"
    page = PAGE.replace(old, new)
    assert page != PAGE
    assert problems(repository(tmp_path, monkeypatch, page)) == []
    assert lint_page(page.lstrip()) == []


def test_in_the_notebook_it_is_a_quotation_under_its_kind(tmp_path, monkeypatch):
    block = "/// callout | by_hand\nFirst.\n\n- two\n- three\n///"
    course, page = render(repository(tmp_path, monkeypatch, page_with(block)))
    notebook = published_notebook(course, course.page("w1"), page)
    assert r"> **By hand**\n>\n> First.\n>\n> - two\n> - three" in notebook
    assert "<svg" not in notebook
    assert 'class=\\"kind' not in notebook
