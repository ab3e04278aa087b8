"""Data sheets that were mended, and records that say more than a card can do, stop the build."""

import dataclasses

import pytest
from test_render import NAMES, measurement, problems
from test_render import PAGE as SHOWN
from test_render import repository as page_and_record

from course_kernels.measure import machine

# It measures, so its record is committed and can be old.
PAGE = SHOWN
FAR = {
    "kind": "samples",
    "unit": "B/clk",
    "how": "counted",
    "n": 10,
    "samples": [2430.0] * 10,
    "quantiles": {"0": 2430.0, "0.05": 2430.0, "0.25": 2430.0, "0.5": 2430.0, "0.75": 2430.0, "0.95": 2430.0},
    "group": "g1",
    "of": "hbm",
    "sm_mhz": 1980.0,
}


def repository(tmp_path, monkeypatch, names):
    return page_and_record(tmp_path, monkeypatch, PAGE, names)


def test_a_record_above_the_data_sheet_stops_the_build(tmp_path, monkeypatch):
    root = repository(tmp_path, monkeypatch, names={**NAMES, "reading": {"k4194304": FAR}})

    assert problems(root) == [
        "docs/w1.py: reading.k4194304: 2430 B/clk of hbm, is above what NVIDIA H200 SXM can do, 2424 B/clk: the work "
        "was not done inside the timed range, or the clock is wrong; measure it again, or mend the data sheet"
    ]
    assert problems(root, draft=True)  # a draft shows the number as well


def test_a_record_from_before_the_gate_says_what_to_write(tmp_path, monkeypatch):
    older = {key: value for key, value in FAR.items() if key not in ("of", "sm_mhz")}
    root = repository(tmp_path, monkeypatch, names={**NAMES, "far": older})

    (said,) = problems(root)
    assert said.startswith(
        "docs/w1.py: far is a rate in B/clk and does not say what limits it: write of= with hbm"
    )


def test_a_mended_data_sheet_is_held_against_the_records(tmp_path, monkeypatch):
    # 2 GB are read: at 4800 GB/s that takes 417 µs, at 2400 GB/s 833.
    names = {
        **NAMES,
        "quick": {**measurement(700.0), "reads_bytes": 2 * 10**9, "writes_bytes": 0, "flops": 0},
    }
    root = repository(tmp_path, monkeypatch, names=names)
    assert problems(root) == []

    slower = [dataclasses.replace(m, bandwidth_gb_per_s=m.bandwidth_gb_per_s / 2) for m in machine.MACHINES]
    monkeypatch.setattr(machine, "MACHINES", slower)

    (said,) = problems(root)
    assert said.startswith("docs/w1.py: quick: p/k01 is faster than the floor: it took 70")
    assert "the least possible time on NVIDIA H200 SXM is 833.3 µs" in said


def test_a_number_that_lacks_a_field_is_one_line(tmp_path, monkeypatch):
    lacking = {key: value for key, value in measurement(700.0).items() if key != "workload"}
    root = repository(tmp_path, monkeypatch, names={**NAMES, "old": lacking})

    (said,) = problems(root)
    assert said.startswith("docs/w1.py: old is not what this version records (")
    assert "'workload'" in said
    assert problems(root, draft=True) == []


@pytest.mark.parametrize("state", ["waiting", "stale"])
def test_a_page_without_its_numbers_is_not_judged(tmp_path, monkeypatch, state):
    root = repository(tmp_path, monkeypatch, names={**NAMES, "far": FAR})
    (root / "docs/w1.py").write_text(PAGE.lstrip().replace("kernel.FACTOR", "kernel.FACTOR + 1"))
    if state == "waiting":
        entry = '[[page]]\npath = "docs/w1.py"\nsince = "2026-11-22"\nreason = "no GPU"\n'
        (root / "records/waiting.toml").write_text(entry)

    assert not [said for said in problems(root) if "of hbm" in said]
