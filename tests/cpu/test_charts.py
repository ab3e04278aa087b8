"""Charts: small, stable, told apart without colour, readable on a phone, and drawn once."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from course_site import charts
from course_site.charts import Bandwidth, Bar, Panel, Point, Reference, Roof, Series

X = (512.0, 1024.0, 2048.0, 4096.0)
FLASH = Series("flash", X, (3.0, 5.0, 9.0, 14.0), (2.9, 4.9, 8.8, 13.9), (3.1, 5.2, 9.3, 14.4))
NAIVE = Series("materialised", X, (9.0, 21.0, 60.0, 190.0))
TIME = tuple(i / 10 for i in range(400))


def draw(kind: str, key: str = "k") -> str:
    alt = "what it shows & why"
    if kind == "lines":
        floor = (Reference("floor", 2.0),)
        return charts.draw_lines("A < B", "N", "µs", (FLASH, NAIVE), references=floor, alt=alt, key=key)
    if kind == "log":
        return charts.draw_lines(
            "T", "N", "µs", (FLASH, NAIVE), y_scale="log", x_scale="log", alt=alt, key=key
        )
    if kind == "bars":
        bars = (Bar("a", 3, 2.9, 3.2, "n"), Bar("b", 0))
        return charts.draw_bars("T", "GB/s", bars, (Reference("top", 4),), alt=alt, key=key)
    if kind == "staircase":
        return charts.draw_staircase("T", "share", (Bar("one", 1), Bar("two", 3, 2, 4)), (), alt=alt, key=key)
    if kind == "roofline":
        points = (Point("p", 10, 5), Point("q", 10, 5.1), Point("far", 900, 60))
        return charts.draw_roofline(
            "T", points, (Roof("fp32", 67),), (Bandwidth("HBM", 4800),), alt=alt, key=key
        )
    panels = (Panel("W", (Series("p", TIME, tuple(600 + t for t in TIME)),)), Panel("°C", (FLASH,)))
    return charts.draw_trace("T", panels, "s", alt=alt, key=key)


KINDS = ["lines", "log", "bars", "staircase", "roofline", "trace"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "CACHE", tmp_path / "charts")


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_is_one_small_svg_with_its_words(kind: str) -> None:
    svg = draw(kind)
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "k-title k-desc"
    assert root[1].text == "what it shows & why"
    assert len(svg) < 16_000


@pytest.mark.parametrize("kind", KINDS)
def test_every_colour_is_the_page_s(kind: str) -> None:
    svg = re.sub(r"var\(--[\w-]+,#[0-9a-f]{3,6}\)", "", draw(kind))
    assert re.findall(r"#[0-9a-f]{6}\b|rgb\(", svg) == []
    for text in re.findall(r"<(?:text|use)\b[^>]*>", svg):
        assert "fill:" in text, text


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_nine_units_or_more_on_a_drawing_of_a_phone_s_width(kind: str) -> None:
    svg = draw(kind)
    assert float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1]) <= 350
    assert min(float(size) for size in re.findall(r"font-size:([\d.]+)", svg)) >= 9


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_key_s_and_every_pointer_finds_one(kind: str) -> None:
    svg = draw(kind, key="w1-3")
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("w1-3-") for name in ids)
    assert set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)) <= {(i, "") for i in ids} | {
        ("", i) for i in ids
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_chart_drawn_twice_is_the_same_bytes(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = draw(kind)
    monkeypatch.setattr(charts, "CACHE", tmp_path / "another")
    assert draw(kind) == first


def test_series_differ_in_marker_and_dashes() -> None:
    svg = draw("lines")
    dashes = set(re.findall(r"stroke-dasharray:([\d.,]+)", svg))
    assert len(dashes) == 2  # the second series and the reference
    assert len(set(re.findall(r'<use href="#([^"]+)"', svg))) >= 2


def test_every_mark_has_its_tooltip() -> None:
    tips = re.findall(r"<title>([^<]+)</title>", draw("lines"))
    points = [(s.label, x, y) for s in (FLASH, NAIVE) for x, y in zip(s.x, s.y, strict=True)]
    assert tips == [f"{label}: {y:.0f} at {x:,.0f}" for label, x, y in points]
    assert re.findall(r"<title>([^<]+)</title>", draw("bars")) == ["a (n): 3", "b: 0"]
    assert len(re.findall(r"<title>([^<]+)</title>", draw("roofline"))) == 3


def test_labels_spread_without_touching_and_stay_near() -> None:
    wanted = [10.0, 10.0, 11.0, 50.0]
    got = charts.spread(wanted, [6.0] * 4, 0, 100)
    assert got[3] == 50.0
    assert all(b - a >= 6 - 1e-9 for a, b in pairwise(sorted(got)))
    assert max(abs(a - b) for a, b in zip(got, wanted, strict=True)) <= 7
    assert charts.spread([99.0, 98.0], [6.0, 6.0], 0, 100) == [97.0, 91.0]
    assert charts.spread([0.0], [6.0], 0, 100) == [3.0]


def test_labels_on_the_right_do_not_cover_each_other() -> None:
    close = tuple(Series(f"line {i}", X, (1.0, 1.1, 1.2, 2 + i / 100)) for i in range(6))
    svg = charts.draw_lines("T", "N", "µs", close, alt="a", key="k")
    at = sorted(float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>line \d<', svg))
    assert len(at) == 6
    assert all(b - a >= 10 for a, b in pairwise(at))


def test_short_numbers() -> None:
    values = (0, 0.0123, 12.345, 512.0, 16384.0, 1e-7)
    assert [charts.short(v) for v in values] == ["0", "0.0123", "12.3", "512", "16,384", "0.0000001"]


def test_a_cached_chart_loads_no_matplotlib(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom course_site import charts\n"
        "charts.draw_bars('T', 'x', (charts.Bar('a', 1.0),), alt='a', key='k')\n"
        "print('matplotlib' in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(charts.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    runs = [subprocess.check_output(command, cwd=tmp_path, text=True, env=environment) for _ in range(2)]
    assert runs == ["True\n", "False\n"]


def test_a_new_alternative_text_draws_nothing_anew_and_new_data_does() -> None:
    bars = (Bar("a", 1.0),)
    charts.draw_bars("T", "x", bars, alt="one", key="k")
    assert "two" in charts.draw_bars("T", "x", bars, alt="two", key="k2")
    assert len(list(charts.CACHE.glob("*.svg"))) == 1
    charts.draw_bars("T", "x", (Bar("a", 2.0),), alt="two", key="k2")
    assert len(list(charts.CACHE.glob("*"))) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: charts.draw_lines("T", "x", "y", (), alt="a", key="k"),
        lambda: charts.draw_lines("T", "x", "y", (FLASH,), x_scale="ln", alt="a", key="k"),
        lambda: charts.draw_lines("T", "x", "y", (Series("s", (1.0,), (1.0, 2.0)),), alt="a", key="k"),
        lambda: charts.draw_lines(
            "T", "x", "y", (Series("s", (1.0,), (0.0,)),), y_scale="log", alt="a", key="k"
        ),
        lambda: charts.draw_lines(
            "T", "x", "y", (Series("s", (1.0,), (1.0,), style="bold"),), alt="a", key="k"
        ),
        lambda: charts.draw_bars("T", "x", (), alt="a", key="k"),
        lambda: charts.draw_bars("T", "x", (Bar("a", float("nan")),), alt="a", key="k"),
        lambda: charts.draw_staircase("T", "x", (Bar("a", -1.0),), alt="a", key="k"),
        lambda: charts.draw_roofline(
            "T", (Point("p", 0, 1),), (Roof("r", 1),), (Bandwidth("b", 1),), alt="a", key="k"
        ),
        lambda: charts.draw_trace("T", (), "s", alt="a", key="k"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        call()


def test_a_standalone_chart_brings_its_own_paper() -> None:
    svg = charts.standalone(draw("bars"))
    assert "background:#fff" in svg
    ET.fromstring(svg)
