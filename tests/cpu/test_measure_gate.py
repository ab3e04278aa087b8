"""The physical gate: a rate above what the card can do is refused when recorded, and named when the site is built."""

import dataclasses
import re
import sys
from types import SimpleNamespace

import pytest

from course_kernels.measure import gate, samples
from course_kernels.measure.gate import AboveLimit, complaints, limit_of
from course_kernels.measure.machine import machine_for
from course_kernels.measure.record_types import Measurement
from course_kernels.measure.recording import quantity, record, text, trace

H200, L40S = machine_for("NVIDIA H200"), machine_for("NVIDIA L40S")


@pytest.fixture
def on_an_h200(monkeypatch):
    monkeypatch.setattr(gate, "running_machine", lambda: H200)


def timed(median_us, quick_us=None, **cost):
    """A measurement whose 5 % quantile and median are given; by default it reads 4.8 GB: 1000 µs at least."""
    quick_us = median_us if quick_us is None else quick_us
    quantiles = {"0": quick_us, "0.05": quick_us, "0.25": median_us, "0.5": median_us, "0.75": median_us}
    cost = {"reads_bytes": 4_800_000_000, "writes_bytes": 0, "flops": 0, "math": "fp32", **cost}
    return Measurement(
        "copy/k01",
        {"dtype": "float32", "dims": {}},
        100,
        [median_us] * 4,
        {**quantiles, "0.95": median_us, "1": median_us},
        "g1",
        100,
        error=0.0,
        allowed=0.0,
        **cost,
    )


@pytest.mark.parametrize(
    ("of", "unit", "sm_mhz", "limit"),
    [
        ("hbm", "GB/s", None, 4800),
        ("hbm", "TB/s", None, 4.8),
        ("hbm", "B/clk", 2000, 2400),
        ("hbm:120", "GB/s", None, 9600),  # of 120 MiB, 60 may be in L2 in every lap
        ("hbm:61", "B/clk", 1980, 132 * 128),  # never more than the multiprocessors take in
        ("hbm:16", "B/clk", 1980, 132 * 128),
        ("l2", "B/clk", None, 132 * 128),
        ("l1", "B/clk", None, 128),
        ("shared", "B/clk", None, 128),
        ("shared", "TB/s", 1000, 16.896),
        ("shared", "TB/s", None, 33.45408),
        ("fp32", "FLOP/clk", None, 256),
        ("fp32", "TFLOP/s", None, 67),
        ("tensor:bf16", "FLOP/clk", None, 4096),
        ("tensor:fp8", "GFLOP/s", None, 1979e3),
    ],
)
def test_a_limit_in_a_unit(of, unit, sm_mhz, limit):
    assert limit_of(of, unit, sm_mhz, H200) == pytest.approx(limit)


@pytest.mark.parametrize(
    ("of", "unit", "sm_mhz", "limit"),
    [
        ("hbm", "B/s", None, 4.8e12), ("hbm", "kB/s", None, 4.8e9), ("hbm", "MB/s", None, 4.8e6),
        ("hbm", "PB/s", None, 4.8e-3), ("hbm", "KiB/s", None, None), ("hbm", "kiB/s", None, 4.8e12 / 2**10),
        ("hbm", "MiB/s", None, 4.8e12 / 2**20), ("hbm", "GiB/s", None, 4.8e12 / 2**30),
        ("hbm", "TiB/s", None, 4.8e12 / 2**40), ("hbm", "PiB/s", None, 4.8e12 / 2**50),
        ("hbm", "kB/clk", 2000, 2.4), ("hbm", "B/clk", None, None), ("hbm", "GFLOP/s", None, None),
        ("hbm", "B", None, None), ("hbm", "GB/s per card", None, None),
        ("hbm:60", "GB/s", None, 132 * 128 * 1.98), ("hbm:60", "GB/s", 1000, 132 * 128),
        ("hbm:61", "GB/s", None, 132 * 128 * 1.98), ("hbm:240", "GB/s", None, 6400),
        ("hbm:240", "B/clk", None, None), ("hbm:240", "B/clk", 1000, 6400),
        ("l2", "GB/s", 1000, 132 * 128), ("l2", "GB/s", None, 132 * 128 * 1.98), ("l2", "kB/clk", None, 16.896),
        ("l2", "FLOP/clk", None, None),
        ("l1", "GB/s", 1000, 132 * 128), ("l1", "kB/clk", 1000, 0.128), ("shared", "B/clk", 1000, 128),
        ("fp32", "GFLOP/s", None, 67e3), ("fp32", "kFLOP/clk", None, 0.256), ("fp32", "B/clk", None, None),
        ("fp32", "GOP/s", None, 67e3),
        ("tensor:bf16", "FLOP/s", None, 989e12), ("tensor:bf16", "kFLOP/clk", None, 4.096),
        ("tensor:int8", "TFLOP/s", None, None), ("tensor:int8", "FLOP/clk", None, None),
        ("tensor:bf16", "GB/s", None, None),
    ],
)  # fmt: skip
def test_a_limit_in_every_scale_and_none_in_a_unit_of_something_else(of, unit, sm_mhz, limit):
    found = limit_of(of, unit, sm_mhz, H200)
    assert found == (None if limit is None else pytest.approx(limit))


@pytest.mark.parametrize(
    ("of", "unit", "limit"),
    [
        ("hbm:48", "GB/s", None), ("hbm:96", "GB/s", None), ("hbm:192", "GB/s", 1728), ("l1", "TB/s", None),
        ("l2", "TB/s", None), ("l2", "B/clk", None), ("fp32", "FLOP/clk", None), ("tensor:bf16", "FLOP/clk", None),
        ("tensor:bf16", "TFLOP/s", 362.0), ("fp32", "TFLOP/s", 91.6),
    ],
)  # fmt: skip
def test_what_a_data_sheet_alone_tells_of_a_card(of, unit, limit):
    """Without its multiprocessors nothing is known of its caches, but how much they hold."""
    assert limit_of(of, unit, None, L40S) == (None if limit is None else pytest.approx(limit))


@pytest.mark.parametrize(
    ("of", "known"),
    [
        ("hbm", True), ("hbm:1", True), ("hbm:1024", True), ("hbm:0", False), ("hbm:", False), ("hbm:x", False),
        ("l1", True), ("l2", True), ("l3", False), ("shared", True), ("fp32", True), ("fp32:1", False),
        ("tensor", False), ("tensor:", False), ("tensor:bf16", True), ("my hbm", False),
    ],
)  # fmt: skip
def test_a_limit_has_one_of_the_names_there_are(of, known):
    leaf = quantity(1.0, "GB/s", "timed", of=of)
    said = [] if known else [f'x: of="{of}" is no limit: write {gate.SYNTAX}']
    assert list(complaints("x", leaf, None)) == said
    assert list(gate.impossible("x", quantity(9e9, "GB/s", "timed", of="hbm:0"), H200)) == []


@pytest.mark.parametrize(
    ("of", "unit", "sm_mhz", "asks"),
    [
        ("hbm", "B/clk", None, True), ("hbm:64", "B/clk", None, True), ("hbm", "B/clk", 1000, False),
        ("hbm", "GB/s", None, False), ("l2", "B/clk", None, False), ("fp32", "FLOP/clk", None, False),
    ],
)  # fmt: skip
def test_only_memory_in_each_clock_asks_for_the_clock(of, unit, sm_mhz, asks):
    said = list(complaints("x", samples([1.0], unit, of=of, sm_mhz=sm_mhz), H200))
    line = f"x is a rate of {of} in {unit}: write sm_mhz= with the clock of the same launches"
    assert said == ([line] if asks else [])


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("tflops", "TFLOP/s"), ("of_it_gflops", "GFLOP/s"), ("gb_per_s", "GB/s"), ("read_tb_per_s", "TB/s"),
        ("megatflops", None), ("tflops_there", None), ("power_w", None),
    ],
)  # fmt: skip
def test_a_column_of_a_trace_is_a_rate_by_its_last_word(column, unit):
    said = list(complaints("x", trace({"t_s": [0], column: [1]}), None))
    line = f"x.{column} is a rate in {unit} and does not say what limits it: write of= with {gate.SYNTAX}"
    assert said == ([line] if unit else [])


ABOVE = "GB/s of hbm, is above what NVIDIA H200 SXM can do, 4800 GB/s: the work was not done inside the timed range"


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (quantity(4800.0, "GB/s", "timed", of="hbm"), None),
        (quantity(4800.1, "GB/s", "timed", of="hbm"), f"x: 4800 {ABOVE}"),
        (quantity(4848.0, "GB/s", of="hbm"), None),  # worked out by hand: one per cent
        (quantity(4848.1, "GB/s", of="hbm"), f"x: 4848 {ABOVE}"),
        (samples([4800.0] * 20, "GB/s", of="hbm"), None),
        (samples([4800.1] * 20, "GB/s", of="hbm"), f"x: 4800 {ABOVE}"),
        (samples([4700.0] * 18 + [4848.0] * 2, "GB/s", of="hbm"), None),
        (samples([4700.0] * 18 + [4848.5] * 2, "GB/s", of="hbm"), f"x: its highest readings, 4848 {ABOVE}"),
        (samples([4700.0] * 99 + [9000.0], "GB/s", of="hbm"), None),  # a single one may lie anywhere
        (trace({"gb_per_s": [4700, 4800, 4848]}, of={"gb_per_s": "hbm"}), None),
        (trace({"gb_per_s": [4900, 4700, 4801, 4801]}, of={"gb_per_s": "hbm"}), f"x.gb_per_s: 4801 {ABOVE}"),
        (trace({"gb_per_s": [4900, 4700, 4700, 4849, 4700]}, of={"gb_per_s": "hbm"}),
         f"x.gb_per_s: its highest readings, 4849 {ABOVE}"),
        (trace({"gb_per_s": [4700] * 20 + [9000]}, of={"gb_per_s": "hbm"}), None),
        (timed(1000.0), None),
        (timed(1100.0, 999.5), None),
    ],
)  # fmt: skip
def test_at_its_limit_a_rate_may_be_and_above_it_not(leaf, said):
    found = list(complaints("x", leaf, H200))
    assert found == ([f"{said}, or the clock is wrong"] if said else [])


def test_a_median_below_the_floor_is_told_once_whatever_the_quick_ones_are():
    (line,) = complaints("x", timed(900.0, 800.0), H200)
    assert "it took 900 µs" in line
    assert len(list(complaints("x", timed(float("nan"), 2000.0), H200))) == 1


def test_the_card_that_runs_is_asked_only_where_there_is_one(monkeypatch):
    def torch(there):
        cuda = SimpleNamespace(is_available=lambda: there, get_device_name=lambda: "NVIDIA H200")
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))

    torch(True)
    assert gate.running_machine() == H200
    torch(False)
    assert gate.running_machine() is None
    monkeypatch.delitem(sys.modules, "torch")
    assert gate.running_machine() is None


def test_a_card_without_a_source_has_no_limit_in_each_clock():
    assert limit_of("shared", "B/clk", None, L40S) is None
    assert limit_of("hbm", "GB/s", None, L40S) == 864
    assert limit_of("tensor:fp8", "TFLOP/s", None, machine_for("NVIDIA A100-SXM4-80GB")) is None


def test_the_reading_that_was_above_the_data_sheet_is_refused_when_recorded(on_an_h200):
    """What the page on memory once printed for 4 GiB, at the clock it was read at."""
    found = samples([2430.0] * 10, "B/clk", of="hbm", sm_mhz=1980)
    with pytest.raises(
        AboveLimit,
        match=r"^reading\.k4194304: 2430 B/clk of hbm, is above what NVIDIA H200 SXM can do, 2424 B/",
    ):
        record(reading={"k4194304": found})
    record(reading={"k4194304": samples([2420.0] * 10, "B/clk", of="hbm", sm_mhz=1980)})


def test_single_readings_have_the_room_of_their_timer_and_no_more(on_an_h200):
    record(far=samples([4790.0] * 8 + [4840.0] * 2, "GB/s", of="hbm"))
    with pytest.raises(AboveLimit, match=r"^far: its highest readings, 4900 GB/s of hbm, is above"):
        record(far=samples([4790.0] * 8 + [4900.0] * 2, "GB/s", of="hbm"))


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (quantity(5.0, "TB/s"), "x is a rate in TB/s and does not say what limits it: write of= with hbm, "),
        (samples([5.0], "B/clk"), "x is a rate in B/clk and does not say what limits it"),
        (quantity(5.0, "GiB/s", "timed"), "x is a rate in GiB/s and does not say"),
        (trace({"t_s": [0], "tflops": [1]}), "x.tflops is a rate in TFLOP/s and does not say"),
        (quantity(5.0, "GB/s", of="dram"), 'x: of="dram" is no limit: write hbm, '),
        (quantity(5.0, "B/clk", of="hbm"), "x is a rate of hbm in B/clk: write sm_mhz= with the clock of"),
    ],
)
def test_a_rate_says_what_limits_it(leaf, said):
    with pytest.raises(ValueError, match=re.escape(f"record: {said}")):
        record(x=leaf)


@pytest.mark.parametrize(
    "leaf",
    [
        quantity(9e9, "GB/s", "given"),  # a source's word is the source's
        quantity(9e9, "B"),
        quantity(9e9, "FLOP/B"),
        samples([9e9], "cycles"),
        text("9e9 GB/s"),
        trace({"t_s": [9e9], "power_w": [9e9]}),
        quantity(4814.3, "GB/s", of="hbm"),  # worked out by hand; the data sheet prints two digits
        quantity(782.0, "TFLOP/s", "timed", of="tensor:bf16"),
    ],
)
def test_what_is_no_measured_rate_is_not_held_against_one(leaf, on_an_h200):
    record(x=leaf)


@pytest.mark.parametrize(
    "leaf",
    [
        quantity(4814.3, "GB/s", "timed", of="hbm"),
        quantity(4900.0, "GB/s", of="hbm"),
        quantity(257.0, "FLOP/clk", "counted", of="fp32"),
        quantity(1000.0, "TFLOP/s", "timed", of="tensor:bf16"),
        samples([128.1], "B/clk", of="shared"),
        trace({"t_s": [0, 1, 2], "tflops": [900, 1000, 1100]}, of={"tflops": "tensor:bf16"}),
    ],
)
def test_every_kind_of_leaf_is_held_against_its_limit(leaf, on_an_h200):
    with pytest.raises(AboveLimit, match="is above what NVIDIA H200 SXM can do"):
        record(x=leaf)


def test_without_a_data_sheet_only_the_label_is_asked(monkeypatch):
    monkeypatch.setattr(gate, "running_machine", lambda: None)
    record(x=quantity(9e9, "GB/s", "timed", of="hbm"))


def test_a_median_or_a_quick_sample_below_the_floor_is_named():
    said = list(complaints("copy.ours", timed(999.0), H200))

    assert said == [
        "copy.ours: copy/k01 is faster than the floor: it took 999 µs, the least possible time on NVIDIA H200 SXM is "
        "1000 µs: the work was not done inside the timed range"
    ]
    assert not list(complaints("copy.ours", timed(1000.1, 999.6), H200))  # within what an event can tell
    assert "its quickest took 999.4 µs" in next(complaints("copy.ours", timed(1000.1, 999.4), H200))


def test_a_mended_data_sheet_is_asked_again():
    slower = dataclasses.replace(H200, bandwidth_gb_per_s=4700.0)
    taken = timed(1010.0)

    assert not list(complaints("copy.ours", taken, H200))
    assert "the least possible time on NVIDIA H200 SXM is 1021 µs" in next(complaints("x", taken, slower))


def test_a_record_without_a_label_is_named_when_the_site_is_built():
    old = samples([2430.0], "B/clk")
    assert list(complaints("reading.k64", old, H200)) == [
        f"reading.k64 is a rate in B/clk and does not say what limits it: write of= with {gate.SYNTAX}"
    ]
