"""Counting with a made-up `ncu` on PATH: what it prints is read right, and what goes wrong is one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_kernels.measure import counters
from course_kernels.measure.check import WrongResult
from course_kernels.measure.counters import (
    MARKER,
    READ,
    WRITE,
    CountersUnavailable,
    count,
    count_many,
    parse,
    split_jobs,
)
from course_kernels.problem import Workload
from course_kernels.refusals import cheats
from course_site.records import opened_files

W = Workload.of("float32", M=32, N=32)
WANTED = [READ, WRITE]
SRC = Path(counters.__file__).resolve().parents[2]

WIDE_COLUMNS = ("ID", "Process ID", "Process Name", "Kernel Name", "Stream", "device__name", READ, WRITE)
WIDE_HEAD = ",".join(f'"{column}"' for column in WIDE_COLUMNS)


def wide(*kernels, units=("byte", "byte")):
    rows = [f'"{n}","1","python","{k}","7","NVIDIA H200","{r}","{w}"' for n, (k, r, w) in enumerate(kernels)]
    return "\n".join(
        [
            "==PROF== Connected to process 1 (/usr/bin/python3)",
            f'==PROF== Profiling "{MARKER}" - 0: 0%....50%....100% - 1 pass',
            WIDE_HEAD,
            f'"","","","","","","{units[0]}","{units[1]}"',
            *rows,
            "==PROF== Disconnected from process 1",
        ]
    )


def long(*kernels):
    head = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"{n}","1","{name}","","{metric}","{unit}","{value}"'
        for n, (name, values) in enumerate(kernels)
        for metric, unit, value in values
    ]
    return "\n".join(["==PROF== Connected", head, *rows])


# --- reading -------------------------------------------------------------------------------------


def test_one_row_a_launch():
    launches = parse(wide(("copy", "1,024", "2,048.5"), ("add", 3, 4)), WANTED)

    assert [launch.name for launch in launches] == ["copy", "add"]
    assert launches[0].metrics == {READ: (1024.0, "B"), WRITE: (2048.5, "B")}


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("byte", 1), ("Kbyte", 1e3), ("Mbyte", 1e6), ("Gbyte", 1e9), ("Tbyte", 1e12), ("bytes", 1)],
)
def test_every_unit_of_bytes(unit, factor):
    (row,) = parse(wide(("copy", "1,234.5", 2), units=(unit, "byte")), WANTED)
    (metric,) = parse(long(("copy", [(READ, unit, "1,234.5"), (WRITE, "byte", 2)])), WANTED)

    assert row.metrics == metric.metrics == {READ: (pytest.approx(1234.5 * factor), "B"), WRITE: (2.0, "B")}


@pytest.mark.parametrize(
    ("unit", "value", "base"),
    [
        ("nsecond", 3e-9, "s"), ("usecond", 3e-6, "s"), ("msecond", 3e-3, "s"), ("second", 3.0, "s"),
        ("%", 3.0, "%"), ("inst", 3.0, "inst"), ("", 3.0, ""), ("Gbyte/s", 3.0, "Gbyte/s"),
    ],
)  # fmt: skip
def test_units_of_other_metrics(unit, value, base):
    (launch,) = parse(long(("k", [("gpu__time_duration.sum", unit, "3")])), ["gpu__time_duration.sum"])

    assert launch.metrics == {"gpu__time_duration.sum": (pytest.approx(value), base)}


def test_a_unit_of_its_own_for_every_launch():
    launches = parse(long(("a", [(READ, "Mbyte", 2)]), ("b", [(READ, "Kbyte", 2)])), WANTED)

    assert [launch.metrics[READ][0] for launch in launches] == [2e6, 2e3]


def test_a_kernel_name_with_commas_and_quotes():
    (launch,) = parse(wide(('void f<4, ""x"">(int, float*)', 1, 2)), WANTED)

    assert launch.name == 'void f<4, "x">(int, float*)'


def test_no_table_is_no_launches():
    assert parse("==WARNING== No kernels were profiled.", WANTED) == []


def test_a_value_that_is_no_number_is_refused():
    with pytest.raises(CountersUnavailable, match="ncu gave 'n/a', which is no number"):
        parse(wide(("copy", "n/a", 2)), WANTED)


def launches(*names):
    return parse(wide(*((name, 1, 2) for name in names)), WANTED)


def test_markers_part_the_jobs():
    groups = split_jobs(launches(MARKER, "a", "b", MARKER, "c"), 2)

    assert [[launch.name for launch in group] for group in groups] == [["a", "b"], ["c"]]


def test_a_call_without_a_kernel_is_refused():
    with pytest.raises(
        CountersUnavailable, match="call 1 of 2 launched no kernel: a plain copy is not counted"
    ):
        split_jobs(launches(MARKER, MARKER, "c"), 2)


def test_missing_calls_are_refused():
    with pytest.raises(CountersUnavailable, match="ncu profiled 1 of 2 calls"):
        split_jobs(launches(MARKER, "a"), 2)


# --- the whole way, with a made-up ncu -------------------------------------------------------------


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts an `ncu` on PATH that prints a text and answers for the child; returns what it was called with."""

    def put(output="", answer=None, code=0, run_child=False):
        script = tmp_path / "ncu"
        seen = tmp_path / "seen.json"
        script.write_text(
            f"#!{sys.executable}\n"
            "import json, subprocess, sys\n"
            f"open({str(seen)!r}, 'w').write(json.dumps([sys.argv[1:], json.load(open(sys.argv[-2]))]))\n"
            f"answer = {answer!r}\n"
            "if answer is not None:\n"
            "    json.dump(answer, open(sys.argv[-1], 'w'))\n"
            f"if {run_child!r}:\n"
            "    subprocess.run(sys.argv[sys.argv.index('-m') - 1:])\n"
            f"print({output!r})\n"
            f"sys.exit({code})\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return seen

    return put


DONE = {"done": True}


def test_count(ncu):
    seen = ncu(wide((MARKER, 4, 4), ("a", 1000, 500), ("b", 20, 5)), DONE)

    found = count(cheats.honest, W)

    arguments, request = json.loads(seen.read_text())
    assert found.kernel == "refusals/cheats.honest"
    assert found.workload == W.as_json()
    assert (found.read_bytes, found.write_bytes) == (1020.0, 505.0)
    assert found.kernels == [
        {"name": "a", "read_bytes": 1000.0, "write_bytes": 500.0},
        {"name": "b", "read_bytes": 20.0, "write_bytes": 5.0},
    ]
    assert request == [{"kernel": "refusals/cheats.honest", "workload": W.as_json()}]
    assert arguments[:6] == [
        "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all",
    ]  # fmt: skip
    assert arguments[arguments.index("--metrics") + 1] == f"{READ},{WRITE}"
    assert arguments[-5:-2] == [sys.executable, "-m", "course_kernels.measure.counters"]


def test_count_many_in_one_child(ncu):
    seen = ncu(wide((MARKER, 4, 4), ("a", 1, 2), (MARKER, 4, 4), ("b", 3, 4)), DONE)
    other = Workload.of("float32", M=64, N=64)

    found = count_many([(cheats.honest, W), (cheats.wrong_axis, other)])

    assert [(c.kernel, c.read_bytes, c.workload["dims"]["M"]) for c in found] == [
        ("refusals/cheats.honest", 1.0, 32),
        ("refusals/cheats.wrong_axis", 3.0, 64),
    ]
    assert len(json.loads(seen.read_text())[1]) == 2
    assert count_many([]) == []


def test_further_metrics(ncu):
    extra = "sm__warps_active.avg.pct_of_peak_sustained_active"
    values = [(READ, "byte", 1), (WRITE, "byte", 2), (extra, "%", 50)]
    seen = ncu(long((MARKER, values), ("a", values)), DONE)

    found = count(cheats.honest, W, metrics=[extra])

    assert found.kernels[0]["metrics"] == {extra: {"value": 50.0, "unit": "%"}}
    assert f"{READ},{WRITE},{extra}" in json.loads(seen.read_text())[0]


@pytest.mark.parametrize(
    ("output", "answer", "words"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission",
            DONE,
            "may not read the GPU's counters",
        ),
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission",
            None,
            "may not read the GPU's counters",
        ),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", None, "run outside the sandbox"),
        ("==WARNING== No kernels were profiled.", DONE, "ncu saw no kernel: the call must launch one"),
        (
            "==WARNING== No kernels were profiled.",
            {"error": "the profiled process failed: E: x"},
            "failed: E: x",
        ),
        ("==ERROR== unrecognised option '--page'", None, "ncu failed: unrecognised option '--page'"),
        ("", None, "ncu failed: it printed nothing"),
        (wide((MARKER, 1, 1), ("a", "", 2)), DONE, f"this card has no {READ}"),
    ],
)
def test_what_goes_wrong_is_one_line(ncu, output, answer, words):
    ncu(output, answer, code=1)

    with pytest.raises(CountersUnavailable) as refused:
        count(cheats.honest, W)

    line = str(refused.value)
    assert line.startswith("counters: ")
    assert words in line
    assert "\n" not in line


def test_no_ncu_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(CountersUnavailable, match="`ncu` is not on PATH: install it"):
        count(cheats.honest, W)


def test_a_wrong_answer_is_refused_by_the_child_too(ncu):
    ncu("", {"wrong": "refusals/cheats.wrong_axis on M32: wrong", "files": []})

    with pytest.raises(WrongResult, match=r"^refusals/cheats.wrong_axis on M32: wrong$"):
        count(cheats.wrong_axis, W)


def test_ncu_that_does_not_end_is_one_line(ncu, monkeypatch):
    ncu("")

    def too_long(*arguments, **how):
        raise subprocess.TimeoutExpired("ncu", counters.TIMEOUT_S)

    monkeypatch.setattr(subprocess, "run", too_long)

    with pytest.raises(CountersUnavailable, match="did not end within"):
        count(cheats.honest, W)


def test_the_real_child_tells_its_files_and_its_error(ncu, monkeypatch, tmp_path):
    """Without a GPU the child fails, in one line, and has still told which files it had loaded by then."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    log = tmp_path / "opened"
    for name, value in opened_files.door_for_children(tmp_path / "door", log, SRC.parent).items():
        monkeypatch.setenv(name, value)
    ncu(run_child=True)

    with pytest.raises(CountersUnavailable, match="the profiled process failed: "):
        count(cheats.honest, W)

    loaded = {Path(path).relative_to(SRC).as_posix() for path in opened_files.read(log)}
    assert {
        "course_kernels/refusals/cheats.py",
        "course_kernels/refusals/problem.py",
        "course_kernels/refusals/__init__.py",
        "course_kernels/problem.py",
        "course_kernels/measure/check.py",
        "course_kernels/measure/counters.py",
        "course_kernels/measure/marker.py",
    } <= loaded
    assert not any("softmax" in path or path.endswith(".pyc") for path in loaded)
