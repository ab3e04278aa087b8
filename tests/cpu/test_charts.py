"""Charts: small, stable, told apart without colour, readable on a phone, and drawn once."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest

from course_kernels.measure.summary import measurement_of
from course_kernels.problem import Problem, Workload
from course_site.charts import data as chart_data
from course_site.charts import drawings
from course_site.charts import plots as charts
from course_site.charts.drawings import Card, Lane, Lanes, Span, Thread
from course_site.charts.plots import Bandwidth, Bar, Panel, Point, Reference, Roof, Series
from course_site.pages.blocks import DirectiveError
from course_site.values.values import BadExpression, Scope

pytestmark = pytest.mark.kept

X = (512.0, 1024.0, 2048.0, 4096.0)
FLASH = Series("flash", X, (3.0, 5.0, 9.0, 14.0), (2.9, 4.9, 8.8, 13.9), (3.1, 5.2, 9.3, 14.4))
NAIVE = Series("materialised", X, (9.0, 21.0, 60.0, 190.0))
TIME = tuple(i / 10 for i in range(400))
CARD = Card(sms=132, lanes=128, registers_kib=256, shared_kib=228, l2_mib=60, hbm_gib=139.8, stacks=6)


def launch(grid: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[Thread, ...]:
    """A launch as a card would report it, block n on multiprocessor 2n."""
    places = [(b, t) for b in every(grid) for t in every(block)]
    return tuple(
        Thread(b, t, (t[0] + block[0] * (t[1] + block[1] * t[2])) // 32, 2 * every(grid).index(b))
        for b, t in places
    )


LOOKED = (
    ("multiplies", "full"),
    ("waits", "empty"),
    ("meets", "hatched"),
    ("asks", "striped"),
    ("stores", "dotted"),
)


def lanes(steps: int = 5) -> tuple[Lanes, ...]:
    """Two groups, as stamps may tell: one whose lanes meet in every step, and one whose lanes do not."""

    def row(*does: int) -> tuple[Span, ...]:
        return tuple(
            Span(d, 1000 * n + 200 * i, 1000 * n + 200 * (i + 1))
            for n in range(steps)
            for i, d in enumerate(does)
        )

    without = Lanes("without roles", (Lane("first", row(1, 0, 0, 2, 3)), Lane("second", row(1, 0, 0, 2))))
    return without, Lanes("with roles", (Lane("producer", row(3, 1)), Lane("consumer", row(0, 4))))


def every(extent: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(x, y, z) for z in range(extent[2]) for y in range(extent[1]) for x in range(extent[0])]


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
    if kind == "card":
        return drawings.draw_card("T", CARD, alt=alt, key=key)
    if kind.startswith("launch"):
        grid, block, size = {
            "launch 1": ((4, 1, 1), (256, 1, 1), (1000,)),
            "launch 2": ((3, 3, 1), (16, 16, 1), (40, 45)),
            "launch 3": ((2, 1, 2), (4, 4, 4), (8, 4, 7)),
        }[kind]
        return drawings.draw_launch("T", launch(grid, block), size=size, alt=alt, key=key)
    if kind == "lanes":
        return drawings.draw_lanes("T", lanes(), LOOKED, "cycles", alt=alt, key=key)
    panels = (Panel("W", (Series("p", TIME, tuple(600 + t for t in TIME)),)), Panel("°C", (FLASH,)))
    return charts.draw_trace("T", panels, "s", alt=alt, key=key)


KINDS = [
    "lines",
    "log",
    "bars",
    "staircase",
    "roofline",
    "trace",
    "card",
    "launch 1",
    "launch 2",
    "launch 3",
    "lanes",
]


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
def test_text_is_eleven_units_or_more_on_a_drawing_of_a_phone_s_width(kind: str) -> None:
    svg = draw(kind)
    assert float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1]) <= 350
    sizes = re.findall(r"font-size:([^;\"]+)", svg)
    letters = [re.fullmatch(r"calc\(([\d.]+)px\*var\(--letters,1\)\)", size) for size in sizes]
    assert all(letters), sizes
    assert min(float(size[1]) for size in letters) >= 11


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
    assert tips == [f"{label}: {y:.0f} at {x:.0f}" for label, x, y in points]
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


def test_a_launch_names_its_blocks_its_warps_and_who_stands_idle() -> None:
    svg = draw("launch 2")
    assert "9 blocks of 16 × 16 = 256 threads: 2304 in all, 504 idle" in svg
    assert "Block (2, 0) on SM 4: 8 warps; the numbers are lanes" in svg
    assert re.findall(r">warp (\d)<", svg) == [str(w) for w in range(8)]
    assert re.findall(r"<title>(\(\d, \d\) on SM \d+)</title>", svg) == [
        f"({n % 3}, {n // 3}) on SM {2 * n}" for n in range(9)
    ]
    # Lanes of the magnified block: 13 of 16 columns are at work, two rows to a warp.
    rows = [re.findall(r"<tspan[^>]*>(\d+)<", text) for text in re.findall(r"<text id.*?</text>", svg)]
    assert rows == [[str(n) for n in range(first, first + 13)] for first in (0, 16)]


def test_equal_warps_are_drawn_once_and_pointed_at() -> None:
    svg = drawings.draw_launch("T", launch((16, 1, 1), (128, 1, 1)), alt="a", key="k")
    slices = set(re.findall(r'<g id="([^"]+)"', svg))
    assert len(slices) == 2  # one for the grid, one larger for the magnified block
    assert len(re.findall(f'<use href="#({"|".join(slices)})"', svg)) == 16 + 1


def test_a_thread_is_idle_past_any_edge_of_its_problem() -> None:
    plan = drawings.Plan(launch((2, 2, 1), (4, 4, 1)), (5, 7))  # 5 rows, 7 columns
    threads = [t for own in plan.blocks.values() for t in own]
    working = {
        (4 * t.block[0] + t.thread[0], 4 * t.block[1] + t.thread[1]) for t in threads if not plan.idle(t)
    }
    assert working == {(x, y) for x in range(7) for y in range(5)}


def test_memories_on_the_chip_have_areas_in_proportion() -> None:
    svg = draw("card")
    tile = re.findall(r'<pattern id="k-\d" x="0".*?</pattern>', svg)[0]
    boxes = re.findall(r"h([\d.]+)v([\d.]+)h", tile)
    l2 = re.search(r'd="M0.5 [\d.]+h([\d.]+)v([\d.]+)h-[\d.]+z" style="fill:var\(--chart-5', svg)
    registers, shared, cache = (float(w) * float(h) for w, h in [*boxes, l2.groups()])
    assert registers / shared == pytest.approx(256 / 228, rel=0.01)
    assert cache / registers == pytest.approx(60 * 1024 / 256, rel=0.01)


def test_the_table_of_a_staircase_has_the_share_of_every_reference() -> None:
    numbers = {"slow": 1, "fast": 45, "library": 50, "sheet": 90}
    names = {
        n: {"kind": "quantity", "value": v, "unit": "TFLOP/s", "how": "given"} for n, v in numbers.items()
    }
    settings = {
        "title": "T",
        "alt": "a",
        "y_label": "TFLOP/s",
        "steps": [{"name": "slow", "label": "naive"}, {"name": "fast", "label": "tuned"}],
        "references": [{"label": "cuBLAS", "value": "library"}, {"label": "data sheet", "value": "sheet"}],
    }
    chart = chart_data.draw("staircase", settings, Scope("p", names, None), "k")
    assert re.findall(r"<th[^>]*>([^<]*)</th>", chart.table_html)[:4] == [
        "step", "TFLOP/s", "% of cuBLAS", "% of data sheet",
    ]  # fmt: skip
    rows = re.findall(r"<tr><td>(.*?)</tr>", chart.table_html)
    assert [re.findall(r"[^<>]+(?=</td>)", row)[:4] for row in rows] == [
        ["naive", "1", "2.0", "1.1"],
        ["tuned", "45", "90.0", "50.0"],
    ]


def test_twelve_steps_are_named_in_two_columns_and_the_last_name_stays_inside() -> None:
    steps = tuple(Bar(f"a name of step {n}", n) for n in range(1, 13))
    svg = charts.draw_staircase("T", "x", steps, (), alt="a", key="k")
    short, long = (svg.count(f">{n}  a name") for n in (1, 12))
    assert (short, long) == (1, 1)
    one_column = charts.draw_staircase(
        "T", "x", tuple(Bar(f"a name of some length, so long that it fills the page {n}", n) for n in range(12)),
        (), alt="a", key="k",
    )  # fmt: skip
    assert height(svg) < height(one_column)
    numbered = tuple(Bar(f"{n} a name of step {n}", n) for n in range(1, 13))
    assert ">1 a name of step 1<" in charts.draw_staircase("T", "x", numbered, (), alt="a", key="k")


def test_two_tones_have_their_key_and_one_tone_has_none() -> None:
    assert all(f">{words}<" in draw("staircase") for words in ("reached before", "added by this step"))
    first = charts.draw_staircase("T", "x", (Bar("alone", 2),), (), alt="a", key="k")
    assert "reached before" not in first


def test_an_axis_that_does_not_begin_at_zero_says_so_and_bears_its_mark() -> None:
    hot = Panel("°C", (Series("p", TIME, tuple(600 + t for t in TIME)),))
    cold = Panel("°C", (Series("p", TIME, TIME),))
    broken, whole = (charts.draw_trace("T", (panel,), "s", alt="a", key="k") for panel in (hot, cold))
    assert ">°C, the axis begins at 580<" in broken
    assert "begins at" not in whole
    assert broken.count("<path") == whole.count("<path") + 1


def lane(ys: tuple[float, ...]) -> str:
    """A panel over time, of two points for each edge."""
    times = tuple(t + d for t in range(len(ys) // 2) for d in (0, 1e-3))
    return charts.draw_trace("T", (Panel("on", (Series("p", times, ys),)),), "s", alt="a", key="k")


def longest_slope(ys: tuple[float, ...]) -> float:
    """How far the drawn line goes sideways while it goes up or down."""
    line = max(re.findall(r'<path d="([^"]+)"[^>]*style="fill:none;stroke:var\(--chart', lane(ys)), key=len)
    points = [tuple(map(float, it)) for it in re.findall(r"([\d.]+)[ ,]([\d.]+)", line)]
    assert len(points) > 100
    return max(x1 - x0 for (x0, y0), (x1, y1) in pairwise(points) if abs(y1 - y0) > 1)


def test_a_switch_goes_straight_up_and_down_however_often_it_does() -> None:
    edges = tuple(float(on) for n in range(200) for on in (n % 2, 1 - n % 2))
    assert longest_slope(edges) < 0.2
    # Anything else of that length is thinned, and slopes.
    assert longest_slope(tuple(it * (1 + n / 400) for n, it in enumerate(edges))) > 0.2


@pytest.mark.parametrize("on", [0.0, 1.0])
def test_a_switch_is_on_or_off_without_quarters_and_filled_where_it_is_on(on: float) -> None:
    edges = tuple(it * on for n in range(200) for it in (float(n % 2), 1.0 - n % 2))
    drawn = lane(edges)
    assert ">1</text>" in drawn
    assert ">0.25</text>" not in drawn
    assert "opacity:0.3" in drawn
    assert "stroke-dasharray" not in drawn


def test_the_line_to_a_label_crosses_no_other_label() -> None:
    """A point on the roof, and a point below it at its left, as fp32 has them on the first roofline."""
    points = (Point("library", 683, 51), Point("FMA", 1928, 64.9), Point("low", 0.1, 0.4))
    roof, slope = (Roof("fp32 peak", 66.9),), (Bandwidth("HBM", 4800),)
    svg = charts.draw_roofline("T", points, roof, slope, alt="a", key="k")
    at = {
        name: tuple(map(float, re.search(rf'x="([\d.]+)" y="([\d.]+)"[^>]*>{name}<', svg).groups()))
        for name in ("library", "FMA")
    }
    assert at["library"][0] < at["FMA"][0] - 12
    assert "text-anchor:end" in re.search(r"<text[^>]*>library<", svg)[0]


def height(svg: str) -> float:
    return float(svg.split('viewBox="', 1)[1].split('"', 1)[0].split()[3])


def test_a_launch_and_a_card_come_out_of_a_record_with_their_tables() -> None:
    rows = [(*t.block, *t.thread, t.warp, t.sm) for t in launch((2, 1, 1), (32, 1, 1))]
    names = [*(f"{part}_{axis}" for part in ("block", "thread") for axis in "xyz"), "warp", "sm"]
    columns = {n: list(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)}
    quantity = {"kind": "quantity", "value": 40, "unit": "1", "how": "given"}
    scope = Scope("p", {"seen": {"kind": "trace", "columns": columns}, "n": quantity}, None)
    chart = chart_data.draw("launch", {"title": "T", "alt": "a", "trace": "seen", "size": ["n"]}, scope, "k")
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", chart.table_html)
    assert cells == ["0", "0", "1", "32", "0", "1", "2", "1", "8", "24"]
    sizes = {
        "sms": "n",
        "lanes": "2 * n",
        "registers_kib": "n",
        "shared_kib": "n",
        "l2_mib": "n / 10",
        "hbm_gib": "n / 5",
    }
    chart = chart_data.draw("card", {"title": "T", "alt": "a", **sizes}, scope, "k")
    assert "40 SMs around 4 MiB" in chart.svg
    assert "8 GiB of HBM" in chart.svg
    with pytest.raises(DirectiveError, match="sms above zero"):
        chart_data.draw("card", {"title": "T", "alt": "a", **sizes, "sms": "n - 40"}, scope, "k")


def test_lanes_share_one_scale_and_say_what_they_do() -> None:
    svg = draw("lanes")
    wide = [float(w) for w in re.findall(r'd="M[\d.]+ [\d.]+h([\d.]+)v15h', svg)]
    assert len(wide) == 5 * (5 + 4 + 2 + 2)
    assert max(wide) - min(wide) < 0.1  # every span lasts as long
    assert all(f">{words}</text>" in svg for words, _ in LOOKED)
    assert "consumer: stores, 200 cycles, from 4200" in svg
    alone = drawings.draw_lanes("T", lanes()[1:], LOOKED, "cycles", alt="a", key="k")
    assert ">meets</text>" not in alone  # nobody does


def test_lanes_come_out_of_a_record_with_their_table() -> None:
    columns = {
        "lane": [0, 1, 1],
        "does": [1, 0, 2],
        "from_cycles": [0, 10, 60],
        "to_cycles": [10, 60, 12_345.6],
    }
    scope = Scope("p", {"seen": {"kind": "trace", "columns": columns}}, None)
    group = {"label": "with roles", "trace": "seen", "lanes": ["producer", "consumer"]}
    settings = {
        "title": "T", "alt": "a", "x_label": "cycles", "groups": [group],
        "kinds": [{"label": words, "look": look} for words, look in LOOKED],
    }  # fmt: skip
    chart = chart_data.draw("lanes", settings, scope, "k")
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", chart.table_html)
    assert cells[:5] == ["with roles", "producer", "waits", "0", "10"]
    assert cells[-5:] == ["with roles", "consumer", "meets", "60", "12,346"]
    assert re.findall(r"<td( class=num)?>", chart.table_html)[:5] == ["", "", "", " class=num", " class=num"]
    for wrong, said in (
        ({"lanes": ["producer"]}, "2 lanes, with names for fewer"),
        ({"trace": "gone"}, "gone"),
    ):
        with pytest.raises((DirectiveError, BadExpression, ValueError), match=said):
            chart_data.draw("lanes", {**settings, "groups": [group | wrong]}, scope, "k")
    with pytest.raises(DirectiveError, match="does one of 2 kinds"):
        chart_data.draw("lanes", {**settings, "kinds": settings["kinds"][:2]}, scope, "k")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bars": [{"name": "3.9", "label": "ours"}]}, "'3.9' has no name in it"),
        ({"bars": [{"name": "n + 0.5", "label": "ours"}]}, "it adds a typed number to TFLOP/s"),
        ({"bars": [{"name": "0.93 * n", "label": "ours"}]}, "has the typed number 0.93 in it"),
        ({"references": [{"label": "peak", "value": "9600+0"}]}, "'9600+0' has no name in it"),
        ({"references": [{"label": "peak", "value": 989}]}, "'989' has no name in it"),
        ({"x_label": "TB/s"}, "'n' is in TFLOP/s, and the words after it say TB/s"),
    ],
)
def test_a_chart_draws_what_is_recorded_in_its_unit(change, said) -> None:
    scope = Scope("p", {"n": {"kind": "quantity", "value": 40, "unit": "TFLOP/s", "how": "timed"}}, None)
    bars = {"title": "T", "alt": "a", "x_label": "TFLOP/s", "bars": [{"name": "n", "label": "ours"}]}
    chart_data.draw("bars", bars, scope, "k")
    with pytest.raises(BadExpression, match=re.escape(said)):
        chart_data.draw("bars", bars | change, scope, "k")


def test_short_numbers() -> None:
    values = (0, 0.0123, 12.345, 512.0, 1024.0, 16384.0, 1e-7)
    few = ["0", "0.0123", "12.3", "512", "1024", "16\N{NO-BREAK SPACE}384", "0.0000001"]
    assert [charts.short(v) for v in values] == few


def test_bytes_on_an_axis_take_their_unit_with_them() -> None:
    sizes = (4.0, 1024.0, 2.0**20)
    svg = charts.draw_lines("T", "span, KiB", "ticks", (Series("a", sizes, sizes),), alt="a", key="k")
    assert re.findall(r">([\d ]+ [KMG]iB)<", svg) == ["4 KiB", "1 MiB", "1 GiB"]
    assert ">span<" in svg
    assert "a: 1024 at 1 MiB" in svg
    assert ">1 048 576<" not in svg.replace("\N{NO-BREAK SPACE}", " ").split("<title>")[0]


def test_a_cached_chart_loads_no_matplotlib(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom course_site.charts import plots as charts\n"
        "charts.draw_bars('T', 'x', (charts.Bar('a', 1.0),), alt='a', key='k')\n"
        "print('matplotlib' in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(charts.__file__).parents[2])}
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
        lambda: drawings.draw_card("T", Card(0, 128, 256, 228, 60, 140), alt="a", key="k"),
        lambda: drawings.draw_card("T", Card(132, 126, 256, 228, 60, 140), alt="a", key="k"),
        lambda: drawings.draw_launch("T", (), alt="a", key="k"),
        lambda: drawings.draw_launch("T", launch((2, 1, 1), (32, 1, 1))[1:], alt="a", key="k"),
        lambda: drawings.draw_launch("T", launch((2, 1, 1), (32, 1, 1)), block=(2, 0, 0), alt="a", key="k"),
        lambda: drawings.draw_launch("T", launch((1, 1, 1), (32, 1, 1)), size=(1, 1, 1, 1), alt="a", key="k"),
        lambda: drawings.draw_lanes("T", (), LOOKED, "cycles", alt="a", key="k"),
        lambda: drawings.draw_lanes("T", lanes(), LOOKED[:2], "cycles", alt="a", key="k"),
        lambda: drawings.draw_lanes("T", lanes(), (*LOOKED[:4], ("x", "loud")), "cycles", alt="a", key="k"),
        lambda: drawings.draw_lanes(
            "T", (Lanes("g", (Lane("l", (Span(0, 2, 1),)),)),), LOOKED, "cycles", alt="a", key="k"
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(call) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        call()


def test_a_standalone_chart_brings_its_own_paper() -> None:
    svg = charts.standalone(draw("bars"))
    assert "background:#fff" in svg
    ET.fromstring(svg)


def test_a_rate_lies_between_its_ends_though_the_longer_time_is_the_lower_rate():
    w = Workload.of("float32", N=1000)
    problem = Problem(
        name="fake", formula="", make_inputs=lambda w, generator, device: (), reference=lambda: None,
        reads_bytes=lambda w: 1_000_000, writes_bytes=lambda w: 0, flops=lambda w: 0, math=lambda w: "fp32",
        max_error=lambda w: 0.5, check_on=(w,), time_on=(w,),
    )  # fmt: skip
    times = [1 + i / 100 for i in range(101)]
    copy = measurement_of("fake/k01", w, problem, times, group="g", error=0.0, host_us=[1.0]).as_json()
    settings = {
        "title": "T", "alt": "a", "x": "N", "y": "gb_per_s", "series": [{"name": "copy", "label": "copy"}],
    }  # fmt: skip
    chart = chart_data.draw("lines", settings, Scope("p", {"copy": copy}, None), "k")
    _, _, middle, low, high = re.findall(r"<td[^>]*>([^<]*)</td>", chart.table_html)

    assert (low, middle, high) == ("512.8", "666.7", "952.4")
