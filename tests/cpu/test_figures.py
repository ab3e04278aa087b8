"""Colours of the hand-drawn figures and of the charts: the site's own, and readable in both schemes."""

import re
from pathlib import Path

import pytest

from course_site.charts import plots
from course_site.lint.figure_numbers import faults_of

ROOT = Path(__file__).parents[2]
CSS = (ROOT / "docs/assets/css/site.css").read_text(encoding="utf-8")
FIGURES = sorted((ROOT / "docs/assets/figures").glob("*.svg"))
GROUNDS = ("paper", "paper-deep", "hot-wash", "cold-wash", "ok-wash")


def scheme(name: str) -> dict[str, str]:
    blocks = re.findall(rf'\[data-md-color-scheme="{name}"\] \{{(.*?)\}}', CSS, re.DOTALL)
    return {
        key: value for block in blocks for key, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)
    }


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["default", "slate"])
def test_letters_in_any_colour_of_a_figure_are_readable_on_any_of_its_grounds(name: str) -> None:
    colours = scheme(name)
    charts = re.findall(r"var\(--(chart-\d)", " ".join(plots.CSS.values()))
    inks = ("ink", "ink-soft", "accent", "hot", "cold", "ok", *charts)
    assert len(charts) == len(plots.COLOURS)
    assert [
        f"{ink} on {ground}"
        for ink in inks
        for ground in GROUNDS
        if contrast(colours[ink], colours[ground]) < 4.5
    ] == []


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_figure_has_the_site_s_colours_alone(figure: Path) -> None:
    """Where no page gives it colours, in an image viewer, it has those of the light scheme."""
    text, light = figure.read_text(encoding="utf-8"), scheme("default")
    own = dict(re.findall(r"--\w+:var\(--([\w-]+),(#[0-9a-f]{3,6})\)", text))
    assert own == {name: light[name] for name in own}
    assert re.findall(r"#[0-9a-f]{6}\b", re.sub(r"var\([^)]*\)", "", text)) == []


PAGE = """## Before

Here are 99 others.

## Windows

A warp has 32 lanes, and eight of them are drawn, four at a time.

/// figure | f.svg
alt: "{alt}"
caption: Of 128 threads.
///

It takes two wavefronts.

## After

Here are 77 others.
"""
ALT = "Lanes 0 to 3 of 32 read 16 bytes each, 8 + 16 numbers: 5.3 for each."
SVG = """<svg><style>.a{{x:12345}}</style><path d="M55 66"/><text x="1">lane 0</text><text>8</text><text>16</text>
<text>24</text><text>8 + 16 numbers</text><text>5.3 for <tspan>each</tspan></text><text>{}</text></svg>"""


@pytest.mark.parametrize(
    ("alt", "drawn", "refused"),
    [
        (ALT, "32 lanes, 128 threads, 2 wavefronts, 40", False),  # 40 goes on from 8, 24; words count too
        (ALT, "65 536 lanes", True),
        (ALT, "31 lanes", True),
        (ALT, "99 lanes", True),  # it stands in another section
        (ALT, "5.4 for each", True),
        (ALT.replace("16 bytes", "12 bytes"), "", True),
        (ALT.replace("5.3", "6.3"), "", True),
        (ALT.replace("0 to 3", "0 to 5"), "", True),
        (ALT.replace("8 + 16", "25"), "", True),
    ],
)
def test_a_number_that_a_figure_or_its_alternative_text_alone_has_is_refused(
    tmp_path: Path, alt: str, drawn: str, refused: bool
) -> None:
    (tmp_path / "f.svg").write_text(SVG.format(drawn))
    assert bool(list(faults_of(PAGE.format(alt=alt), tmp_path))) is refused
