"""Every kernel on one roofline: nobody who was timed is missing, nobody else is there, every mark leads somewhere."""

import functools
import json
import re
import shutil
from dataclasses import replace
from math import cos, radians, sin
from pathlib import Path

import pytest

from course_kernels.measure.machine import MACHINES
from course_site.charts import every_kernel, plots
from course_site.charts.every_kernel import Ceiling, Mark
from course_site.pages import blocks
from course_site.pages.headings import headings, section_at
from course_site.pages.page import Cell, Page, find_pages
from course_site.records.edition import Edition
from course_site.records.record import Record, record_path
from course_site.site import kernels
from course_site.site.course import Course
from course_site.site.editions import editions
from course_site.site.render.kernels import SHOWN
from course_site.site.render.page import BLOCKS
from course_site.site.render.writer import Writer

ROOT = Path(__file__).parents[2]
SLUG = "nvidia-h200"
CHART = "title: A chart\nalt: What is seen.\n"


def make_course(root=ROOT, states=None):
    """What the blocks look at of a course: pages, the records of those that measure, and their states."""
    course = Course(root=root, reference=SLUG, edition=Edition(root, SLUG), editions=editions(ROOT))
    course.pages = find_pages(ROOT)
    for page in course.pages:
        path = record_path(ROOT, SLUG, page)
        course.states[page.id] = "static"
        if page.measures and path.exists():
            course.records[page.id] = Record.load(path)
            course.states[page.id] = (states or {}).get(page.id, "fresh")
    for page in course.pages:
        course.scopes[page.id] = course.scope(page)
    return course


@pytest.fixture(scope="module")
def course():
    return make_course()


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "CACHE", tmp_path_factory.mktemp("charts"))
        yield


def shown(course, what):
    """The HTML or Markdown of a block, on the page that has it."""
    writer = Writer(course, course.page("all_kernels"), BLOCKS)
    (block,) = blocks.parse(f"/// kernels | {what}\n{CHART if what in ('roofline', 'shares') else ''}///\n")
    text = SHOWN[what](writer, block)
    assert course.problems == []
    return writer.out.fill(text)


@functools.cache
def in_the_records():
    """Whom the records of pages time, read by other means than the site's: id, and whether it does arithmetic."""
    found = {}
    for path in (ROOT / "records" / SLUG).rglob("*.ipynb"):
        if "tests" in path.parts:
            continue
        for leaf in measurements(json.loads(path.read_text(encoding="utf-8"))):
            if re.fullmatch(r"\w+/k\d\d_\w+", leaf["kernel"]):
                found[leaf["kernel"]] = leaf["flops"] > 0
    return found


def measurements(node):
    """Every leaf of a kind that is a timing, wherever it lies."""
    if isinstance(node, dict):
        if node.get("kind") == "measurement":
            yield node
        for child in node.values():
            yield from measurements(child)
    elif isinstance(node, list):
        for child in node:
            yield from measurements(child)


def on_chart(svg):
    """The ids of the kernels that a chart has a mark for, each a link with its words."""
    return set(re.findall(r'<a href="[^"]+" tabindex="-1"><title>([\w./]+), ', svg))


def missing(course):
    """Timed kernels without a mark, and those that a chart has and nobody timed."""
    timed = in_the_records()
    shares, roofline = (on_chart(shown(course, what)) for what in ("shares", "roofline"))
    flat = {kernel for kernel in shares if "/library." not in kernel}
    steep = {kernel for kernel in roofline if "/library." not in kernel}
    wanted = {kernel for kernel, has_flops in timed.items() if has_flops}
    return sorted(flat ^ set(timed)) + sorted(steep ^ wanted)


def test_every_kernel_that_a_record_times_is_on_the_chart(course):
    assert missing(course) == []


def test_a_kernel_that_is_left_out_is_noticed(course, monkeypatch):
    found = kernels.runs(course)
    without = [run for run in found if run.kernel != "k05_register_tile"]
    monkeypatch.setattr("course_site.site.render.kernels.runs", lambda _: without)
    assert missing(course) == ["sgemm/k05_register_tile"] * 2


def test_what_no_record_times_is_listed(course):
    lying = {f"{p.parent.name}/{p.stem}" for p in (ROOT / kernels.FOLDER).glob("*/k*.py")}
    listed = set(re.findall(r"^- `src/course_kernels/([\w/]+)\.py`$", shown(course, "untimed"), re.M))
    assert listed == lying - set(in_the_records())


def test_a_new_kernel_is_found_by_where_it_lies(course, tmp_path):
    shutil.copytree(
        ROOT / "src/course_kernels", tmp_path / "src/course_kernels", ignore=lambda *_: ["__pycache__"]
    )
    (tmp_path / "src/course_kernels/copy/k02_later.py").write_text("", encoding="utf-8")
    found = kernels.untimed(replace(course, root=tmp_path))
    assert set(found) - set(kernels.untimed(course)) == {"copy/k02_later"}


def test_what_another_card_alone_has_timed_is_not_timed_here():
    course = make_course(states={"l3": "absent"})
    assert {"transpose/k01_naive", "strided_read/k01_strided"} <= set(kernels.untimed(course))
    assert "transpose/k01_naive" not in on_chart(shown(course, "shares"))


def test_the_largest_run_stands_for_a_kernel_and_of_several_as_large_the_best(course):
    (tiled,) = (
        run for run in kernels.runs(course) if f"{run.problem}/{run.kernel}" == "sgemm/k11_register_banks"
    )
    assert tiled.leaf.workload["dims"] == {"M": 8192, "N": 8192, "K": 8192}
    (limited,) = (run for run in kernels.runs(course) if run.problem == "bytes_in_flight")
    shares = [
        leaf for leaf in measurements(course.records["l3"].names) if leaf["kernel"].startswith("bytes_in")
    ]
    assert limited.leaf.median_us == min(leaf["quantiles_us"]["0.5"] for leaf in shares)


def test_a_kernel_timed_under_two_roofs_has_a_mark_under_each(course):
    roofs = {run.roof for run in kernels.runs(course) if run.kernel == "k05_triton" and run.problem == "gemm"}
    assert roofs == {"bf16", "tf32"}


def test_a_library_stands_there_by_its_races_with_ours_alone(course):
    """A multiply of zeros is as large as any, and quicker, for it draws less power: nobody raced it."""
    zeros = course.scopes["measured"].resolve("zeros.of_peak").value
    (cublas,) = (
        r for r in kernels.runs(course) if (r.problem, r.kernel, r.roof) == ("gemm", "library.cublas", "bf16")
    )
    assert cublas.of_peak < zeros
    assert cublas.value == "l6.wide.cublas"


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("sgemm/k01_naive", "CUDA C++"), ("vector_add/k02_triton", "Triton"), ("attention/k04_specialised", "Gluon"),
        ("attention/k01_materialised", "library"), ("sgemm/library.cublas", "library"),
    ],
)  # fmt: skip
def test_a_kernel_s_file_says_how_it_is_written(kernel, kind):
    assert kernels.kind_of(ROOT, *kernel.split("/")) == kind


def test_a_mark_leads_to_the_section_that_shows_its_file_or_else_timed_it(course):
    led = {f"{run.problem}/{run.kernel}": run.taught for run in kernels.runs(course)}
    assert led["sgemm/k01_naive"].startswith("docs/lectures/l4_the_gemm_ladder.py#")
    assert led["sgemm/k12_persistent"].startswith("docs/lectures/l5_the_top_of_the_ladder.py#12-")
    assert led["reduction/k01_atomics"] == "docs/lectures/l3_memory.py#then-how-fast"
    pages = {page.path.as_posix(): page for page in course.pages}
    for kernel, where in led.items():
        path, _, anchor = where.partition("#")
        assert anchor in headings(pages[path]), kernel


def test_where_a_place_of_a_page_stands():
    text = "# One\n\nIn it.\n\n```\n# no heading\n```\n\n## Two\n\nhere"
    page = Page(
        Path("docs/p.py"),
        "p",
        "P",
        cells=(Cell("markdown", text), Cell("code", "1"), Cell("markdown", "## Two")),
    )
    assert section_at(page, 0, text.index("In it")) == "one"
    assert section_at(page, 0, text.index("# no")) == "one"
    assert section_at(page, 0, text.index("here")) == "two"
    assert section_at(page, 1) == "two"
    assert section_at(page, 0) == ""


def test_every_number_of_the_tables_has_its_row_in_the_ledger_and_the_best_stands_first(course):
    text = shown(course, "tables")
    tables = re.split(r"^### ", text, flags=re.M)[1:]
    assert [table.partition("\n")[0] for table in tables] == sorted(
        kernels.words_of(problem) for problem in {run.problem for run in kernels.runs(course)}
    )
    for table in tables:
        rows = [line for line in table.splitlines() if line.startswith("| [")]
        shares = [float(re.search(r">([\d.]+)%</a> of \w+ \|$", row)[1]) for row in rows]
        assert shares == sorted(shares, reverse=True)
        for row in rows:
            assert len(re.findall(r'<a class="value" href="numbers/\w+\.html#[\w.]+"', row)) == 2


# --- the drawings --------------------------------------------------------------------------------

LOW, HIGH = (
    Mark(
        "a HBM", "a", "HBM", "one", "CUDA C++", 0.25, 0.5, None, 0.4, 1, "a/k01_one, CUDA C++", "a.html#one"
    ),
    Mark(
        "b fp32",
        "b",
        "fp32",
        "cublas",
        "library",
        700.0,
        50.0,
        300.0,
        0.7,
        0,
        "b/library.cublas, library",
        "b.html",
    ),
)
STILL = replace(
    LOW, group="c HBM", label="c", intensity=0.0, tflops=0.0, name="mover", tip="c/k01_mover, CUDA C++"
)
CEILING = (Ceiling("fp32", 67.0),)


def drawn(*marks):
    return every_kernel.draw_under_roofs("T", marks, CEILING, 4800.0, alt="seen", key="k")


def test_what_only_moves_bytes_stands_in_the_flat_chart_alone():
    assert on_chart(drawn(LOW, HIGH, STILL)) == {"a/k01_one", "b/library.cublas"}
    flat = every_kernel.draw_shares("T", (LOW, HIGH, STILL), alt="seen", key="k")
    assert on_chart(flat) == {"a/k01_one", "b/library.cublas", "c/k01_mover"}


def test_a_mark_stands_below_its_roof_where_its_numbers_put_it():
    """A tenfold intensity is as far right as a tick from the next."""
    places = dict(re.findall(r'<title>([\w./]+), [^<]*</title><circle cx="([\d.]+ ?)" cy', drawn(LOW, HIGH)))
    assert float(places["a/k01_one"]) < float(places["b/library.cublas"])
    ten = replace(LOW, intensity=2.5, tflops=5.0, tip="a/k02_ten, CUDA C++")
    where = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn(LOW, ten, HIGH))
    (x0, y0), (x1, y1) = sorted((float(x), float(y)) for x, y in where)[:2]
    ticks = [
        float(x)
        for x in re.findall(r'<text x="([\d.]+)" y="[\d.]+" style="[^"]*middle">10*<', drawn(LOW, ten, HIGH))
    ]
    assert x1 - x0 == pytest.approx(ticks[1] - ticks[0], abs=0.3)
    assert y1 < y0


def test_no_label_lies_on_the_words_of_the_slope(course):
    svg = shown(course, "roofline")
    turned = re.search(r'<text x="([\d.]+)" y="([\d.]+)" transform="rotate\((-[\d.]+) [^>]*>([^<]+)<', svg)
    x, y, angle, words = float(turned[1]), float(turned[2]), radians(float(turned[3])), turned[4]
    along = [plots.text_width(words) * n / 40 for n in range(41)]
    letters = [  # the middle of each, above the line they stand on
        (x + a * cos(angle) + 4 * sin(angle), y + a * sin(angle) - 4 * cos(angle)) for a in along
    ]
    covered = []
    for at_x, at_y, style, text in re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" style="([^"]*)">([^<]+)<', svg
    ):
        wide = plots.text_width(text, bold="600" in style)
        left = float(at_x) - (wide if "end" in style else wide / 2 if "middle" in style else 0)
        if any(left < px < left + wide and float(at_y) - 9 < py < float(at_y) + 2 for px, py in letters):
            covered.append(text)
    assert covered == []


def test_marks_differ_by_kind_and_labels_by_words():
    svg = every_kernel.draw_shares(
        "T", tuple(replace(LOW, kind=kind, name=kind, share=n / 5) for n, kind in enumerate(every_kernel.KINDS)),
        alt="seen", key="k",
    )  # fmt: skip
    shapes = {re.sub(r"M[\d. ]+", "", d) for d in re.findall(r'<circle[^>]*/><path d="([^"]+)"', svg)}
    assert len(shapes) == len(every_kernel.KINDS)
    assert all(f">{words}<" in svg for words in ("CUDA C++", "Triton", "Gluon", "library calls"))


def test_no_mark_of_a_row_covers_another():
    marks = tuple(replace(LOW, name=str(n), share=0.9 + n / 1000) for n in range(5))
    svg = every_kernel.draw_shares("T", marks, alt="seen", key="k")
    places = [tuple(map(float, place)) for place in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)]
    apart = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for n, a in enumerate(places) for b in places[:n]]
    assert min(apart) >= 2 * every_kernel._R


def test_the_drawings_have_the_page_s_colours_and_are_the_same_twice(tmp_path, monkeypatch):
    svg = drawn(LOW, HIGH)
    plain = re.sub(r"var\(--[\w-]+,#[0-9a-f]{3,6}\)", "", svg)
    assert re.findall(r"#[0-9a-f]{6}\b|rgb\(", plain) == []
    monkeypatch.setattr(plots, "CACHE", tmp_path / "another")
    assert drawn(LOW, HIGH) == svg
    assert "<a " in svg
    assert (
        'role="img"' not in svg
    )  # what a picture holds a screen reader cannot reach, and here it holds links


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (replace(LOW, share=1.2), "one: a share of a roof is 0 to 1, not 1.2"),
        (replace(LOW, kind="Fortran"), "one: unknown kind 'Fortran'"),
        (replace(LOW, tflops=0.0), "a roofline takes values above zero only"),
        (STILL, "a roofline needs marks with arithmetic"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(mark, said):
    with pytest.raises(ValueError, match=said):
        drawn(mark)


def test_the_roofs_are_those_of_the_card(course):
    svg, sheet = shown(course, "roofline"), next(machine for machine in MACHINES if machine.slug == "h200")
    for math, words in (
        ("fp32", "fp32 CUDA cores"),
        ("bf16", "bf16, fp16 tensor cores"),  # of one height: one line
        ("fp8", "fp8 tensor cores"),
    ):
        assert f">{words}, {plots.short(sheet.peak_tflops[math])}<" in svg
    assert sheet.peak_tflops["bf16"] == sheet.peak_tflops["fp16"]
    assert f">HBM, {plots.short(sheet.bandwidth_gb_per_s)} GB/s<" in svg
