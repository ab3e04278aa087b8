"""Explorables: what the build draws of them, and their arithmetic against the pages' own and the kernels'."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_kernels.measure.machine import MACHINES
from course_site.charts import explorables
from course_site.charts.explorables import bank_conflicts, block_table, coalescing, littles_law, roofline
from course_site.lint.explorable_words import faults_of_alt, faults_of_cases, faults_of_data
from course_site.pages import blocks
from course_site.pages.blocks import DirectiveError
from course_site.site.render.explorable import _tie, explorable
from course_site.values.values import Scope

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs/assets"
MOST_BYTES = 6_000  # of what an explorable brings to a page, as a server sends it
MEASURED = {f"s{stride}": {"value": 1.0} for stride in (1, 2, 4, 8, 16, 32)}


def test_every_explorable_has_its_script_and_all_of_them_are_light():
    scripts = [ASSETS / "js/explorables" / f"{name}.js" for name in explorables.known()]
    assert sorted(ASSETS.glob("js/explorables/*.js")) == scripts
    shared = len(gzip.compress((ASSETS / "js/explorable.js").read_bytes()))
    sizes = {p.name: shared + len(gzip.compress(p.read_bytes())) for p in scripts}
    assert max(sizes.values()) < MOST_BYTES, sizes


@pytest.mark.parametrize(
    ("value", "after", "text"),
    [(0.5, 0, "1"), (12.5, 0, "13"), (1234.5678, 2, "1,234.57"), (-0.04, 1, "0.0"), (1e6, 0, "1,000,000")],
)
def test_numbers_are_written_as_the_script_writes_them(value, after, text):
    assert explorables.digits(value, after) == text


def walk(stride, offset, size):
    return coalescing.work({"stride": stride, "offset": offset, "size": size}, {"time": MEASURED})


def test_a_walk_asks_for_the_sectors_that_hold_its_bytes():
    for stride, offset, size in itertools.product(range(0, 34, 3), range(0, 32, 5), (1, 2, 4, 8, 16)):
        wanted = {size * (offset + lane * stride) + i for lane in range(32) for i in range(size)}
        texts = walk(stride, offset, size).texts
        assert texts["sectors"] == str(len({byte // 32 for byte in wanted}))
        assert texts["lines"] == str(len({byte // 128 for byte in wanted}))
        assert texts["wanted"] == str(len(wanted))


def test_a_walk_is_measured_where_the_kernel_ran_so_and_nowhere_else():
    assert walk(8, 0, 4).says == ("some", "measured")
    for stride, offset, size in ((8, 1, 4), (8, 0, 8), (9, 0, 4)):
        assert walk(stride, offset, size).says[1] == "near"
        assert walk(stride, offset, size).texts["time"] == ["time", "s8"]


def test_every_queue_has_a_measured_stride_whose_queue_is_as_long():
    data = {"time": MEASURED, "counted": MEASURED}
    for stride in range(1, 67):
        longest = max(sum(lane * stride % 32 == bank for lane in range(32)) for bank in range(32))
        shown = bank_conflicts.work({"stride": stride}, data)
        assert (
            shown.texts["queue"] == shown.texts["near"] == str(longest)
        )  # a power of two, and each was measured
        assert shown.says == ("queue" if longest > 1 else "free", "measured" if stride == longest else "near")
    assert bank_conflicts.work({"stride": 0}, data).says[0] == "same"


def test_littles_law_is_the_forecast_of_the_page_and_the_bytes_are_the_problems():
    from course_kernels.bytes_in_flight.problem import bytes_per_multiprocessor
    from course_kernels.problem import Workload

    trip, clock, sms = 700.0, 1900.0, 132
    data = {name: {"value": value} for name, value in (("trip", trip), ("clock", clock), ("sms", sms))}
    assert littles_law.allowed(4, data) == pytest.approx(2 * 4096 * sms * clock / trip / 1e3)
    data |= {"sheet": {"value": 4800.0}, "rate": {}, "seats": {}}
    for vectors, resident in itertools.product((1, 2, 4, 8), (1, 2, 4, 8)):
        data["rate"][f"v{vectors}.r{resident}"] = {"value": 1.0}
        data["seats"][f"v{vectors}.r{resident}"] = {"value": resident / 8}
    for vectors, resident in itertools.product((1, 2, 4, 8), (1, 2, 4, 8)):
        shown = littles_law.work({"warps": 8 * resident, "bytes": 16 * vectors}, data)
        under_way = bytes_per_multiprocessor(Workload.of("float32", N=1, V=vectors, R=resident))
        assert shown.texts["kib"] == f"{under_way / 1024:.0f}"
        assert shown.says[1] == "measured"
        assert shown.texts["rate"] == ["rate", f"v{vectors}.r{resident}"]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.slug)
def test_the_roof_is_that_of_the_data_sheet(machine):
    data = {"given": roofline.given(), "card": "", "intensity": {}, "rate": {}, "names": {}}
    for math in ("fp32", "bf16"):
        peak, ridge = machine.peak_tflops[math], machine.peak_tflops[math] * 1e3 / machine.bandwidth_gb_per_s
        for place in range(0, 129, 8):
            intensity = 2.0 ** (place / 8 - 4)
            shown = roofline.work({"place": place, "card": machine.slug, "math": math}, data)
            best = min(peak, intensity * machine.bandwidth_gb_per_s / 1e3)
            assert shown.texts["rate"] == explorables.short(best)
            assert shown.says[0] == ("memory" if intensity < ridge else "arithmetic")


@pytest.mark.parametrize("size", block_table.SIZES)
def test_every_slip_writes_all_of_its_tokens_and_no_page_has_two_holders(size):
    found, written = block_table.states(size), [0] * len(block_table.SLIPS)
    for (here, waiting, lacks), (before, _, _) in zip(found[1:], found, strict=False):
        pages = [page for guest in here for page in guest.table]
        assert len(set(pages)) == len(pages) <= block_table.ROOM // size
        tables = {guest.who: guest.table for guest in before}
        for guest in here:
            written[guest.who] += 1
            assert guest.tokens == written[guest.who]
            assert len(guest.table) == -(-guest.tokens // size)
            assert guest.table[: len(tables.get(guest.who, []))] == tables.get(guest.who, [])
        assert lacks == (waiting > 0 and len(here) < block_table.SEATS)
    assert tuple(written) == block_table.SLIPS
    assert len(found) <= 1 + block_table.MOST


def test_a_reservation_keeps_a_seat_empty_and_pages_do_not():
    """What the page has a reader see: 36 places hold three reservations of twelve, and four requests in pages."""
    seated = {size: [len(here) for here, *_ in block_table.states(size)] for size in block_table.SIZES}
    assert max(seated[block_table.RESERVED]) == 3
    for size in (1, 2, 4):
        assert seated[size] == [0, 4, 4, 4, 4, 4, 3, 2, 2, 2]  # the bus of the sheet


def test_a_step_of_block_tables_says_what_is_held_and_empty():
    shown = block_table.work({"size": 4, "step": 5}, {})
    assert (shown.texts["held"], shown.texts["used"], shown.texts["empty"]) == ("24", "13", "11")
    assert shown.says == ("going",)
    letters = "".join(shown.marks[f"p{where}"]["text"] for where in range(block_table.ROOM))
    assert (sum(map(str.isupper, letters)), sum(map(str.islower, letters))) == (13, 11)
    assert block_table.work({"size": 12, "step": 2}, {}).says == ("going", "no_page")
    assert block_table.work({"size": 1, "step": 99}, {}).says == ("going", "done")


# --- the directive ----------------------------------------------------------------------------------

PAGE = """/// explorable | bank_conflicts
ask: Which stride?
alt: A queue.
knobs:
  stride: {label: stride, at: 32}
data:
  time: a.time
  counted: a.turns
says: {same: one, free: "{busy} windows", queue: "{queue} turns", measured: there, near: "at {near}"}
row: {stride: "{stride}"}
///
"""


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("bank_conflicts", "queues", "unknown explorable; known: bank_conflicts, block_table, coalescing"),
        (
            "stride: {label: stride, at: 32}",
            "lane: {label: stride, at: 32}",
            "unknown knob 'lane'; known: stride",
        ),
        ("at: 32", "at: 99", "the knob 'stride' cannot stand at 99"),
        ("  counted: a.turns\n", "", "`data:` needs counted"),
        ("near: ", "far: ", "`says:` needs near"),
    ],
)
def test_what_is_wrong_with_a_directive_is_one_line(was, becomes, said):
    page = SimpleNamespace(has_numbers=True)  # all that is asked of it before anything is read from a record
    (block,) = blocks.parse(PAGE.replace(was, becomes))
    with pytest.raises(DirectiveError, match=re.escape(said)):
        explorable(page, block)


@pytest.mark.parametrize(
    ("says", "head", "faults"),
    [
        ("it takes {time} µs", "time, µs", 0),
        ("it takes {time} GB/s", "time, µs", 1),
        ("{time} µs", "rate, GB/s", 1),
    ],
)
def test_a_recorded_value_has_the_unit_of_the_words_around_it(says, head, faults):
    leaf = {"kind": "quantity", "value": 2.0, "unit": "µs", "how": "timed"}
    problems: list[str] = []
    page = SimpleNamespace(scope=Scope("p", {"a": {"s8": leaf}}, None), problem=problems.append)
    shown = explorables.Shown(("one",), {"time": ["time", "s8"]}, {})
    settings = {"data": {"time": "a.*:.1f"}, "says": {"one": says}, "row": {head: "{time}"}}
    _tie(page, settings, shown)
    assert len(problems) == faults, problems


# --- its words are those of its cases, its data come from where they say --------------------------------

SAYS = {
    "memory": "Bound by memory: {place} lie left of the ridge at {ridge}, so {rate} TFLOP/s.",
    "arithmetic": "Bound by arithmetic: {place} lie right of the ridge at {ridge}.",
    "job": "Measured: {job0}, {rate0} TFLOP/s.",
    "also": "And {job1}, {rate1}.",
}


def said(**other):
    return list(faults_of_cases(roofline.CASES, SAYS | other))


def test_words_of_a_case_that_are_its_own_are_not_refused():
    assert said() == []


@pytest.mark.parametrize(
    "other",
    [
        {"memory": SAYS["arithmetic"], "arithmetic": SAYS["memory"]},
        {"memory": SAYS["memory"].replace("left", "right")},
        {"memory": SAYS["memory"].replace("memory", "arithmetic")},
        {"arithmetic": "Bound by memory: {place} lie right of the ridge."},
        {"job": "Measured: {job0}, {rate} TFLOP/s."},  # what the roof allows, for what was measured
        {"also": "And {job1}, {rate0}."},
    ],
)
def test_words_of_another_case_are_refused(other):
    assert said(**other)


TABLES = {
    "intensity": {
        "naive multiply": "jobs.naive.intensity:.0f",
        "library multiply": "jobs.library.intensity:.0f",
    },
    "rate": {"naive multiply": "jobs.naive.tflops:.1f", "library multiply": "jobs.library.tflops:.1f"},
}


@pytest.mark.parametrize(
    ("wanted", "data", "refused"),
    [
        (roofline.DATA, TABLES, False),
        (
            roofline.DATA,
            TABLES | {"rate": {k: v.replace("tflops", "gb_per_s") for k, v in TABLES["rate"].items()}},
            True,
        ),
        (
            roofline.DATA,
            TABLES | {"rate": dict(zip(TABLES["rate"], reversed(TABLES["rate"].values()), strict=True))},
            True,
        ),
        (
            roofline.DATA,
            {name: dict(zip(table, reversed(table.values()), strict=True)) for name, table in TABLES.items()},
            True,
        ),
        (coalescing.DATA, {"time": "stride.*.us / stride.s1.us:.1f"}, False),
        (coalescing.DATA, {"time": "stride.*.us / bank.s1.us:.1f"}, True),
        (coalescing.DATA, {"time": "bank.*.us / bank.s1.us:.1f"}, True),
        (bank_conflicts.DATA, {"time": "bank.*.us / bank.s1.us", "counted": "turns.bank.*:.1f"}, False),
        (bank_conflicts.DATA, {"time": "bank.*.us / bank.s1.us", "counted": "bank.*.us"}, True),
    ],
)
def test_data_of_another_name_are_refused(wanted, data, refused):
    assert bool(list(faults_of_data(wanted, data))) is refused


@pytest.mark.parametrize(
    ("alt", "says", "refused"),
    [
        ("At stride 32 all 32 words are behind window 0, on the slope.", ("memory",), False),
        ("At stride {{ x.s16 }} all 32 words wait on the slope.", ("memory",), False),
        ("At stride 16 all 32 words wait on the slope.", ("memory",), True),
        ("At stride 32 all words wait in twelve queues, on the slope.", ("memory",), True),
        ("At stride 32 all 32 words are behind window 0, on the slope.", ("arithmetic",), True),
        ("At stride 32 all 32 words are behind window 0.", ("memory",), True),
    ],
)
def test_an_alternative_text_of_another_state_is_refused(alt, says, refused):
    assert bool(list(faults_of_alt(alt, ["stride 32", "0 8 16.0"], says, roofline.ALT))) is refused
