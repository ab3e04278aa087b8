"""The profiler on the card: it names what was planted, and keeps silent where nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course_profile import __main__ as command
from course_profile import child  # noqa: F401  loaded by its name, and part of what is tested
from course_profile.reading import METRICS, REASONS, STALL
from course_profile.rules import NEAR_PEAK, diagnose
from course_profile.run import profile
from course_profile.take import take

GROUPS = ("profile",)
ALONE = True  # it looks at time

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "profile"
KERNELS = ROOT / "src" / "course_kernels"
SECONDS = 0.3

PLANTED = {
    file.relative_to(FOLDER).as_posix(): file.read_text(encoding="utf-8")
    .splitlines()[0]
    .partition("planted: ")[2]
    for file in sorted(FOLDER.rglob("*"))
    if file.suffix in (".cu", ".py")
}
LAB = [name for name in PLANTED if name.startswith("lab/")]
ENOUGH = 5  # of the lab's six

# Kernels of the library with nothing to be named: well made, whatever percent of peak they reach.
SOUND = {
    "copy/k01_vectorised.py": "",
    "transpose/k05_vectorised.py": "",
    "bias_gelu/k01_fused.py": "",
    "grey/k01_pixels.py": "",
    "reduction/k05_triton.py": "",
    "sgemm/k11_register_banks.py": "",
}
# At the size that its page times, this one is at its roof.
AT_ITS_ROOF = "reduction/k04_vectorised.py", "dtype=float32,N=268435456"


def looked_at(file, record_property, size=""):
    """What the profiler says of a file; the record keeps it."""
    found = profile(take(str(file), size=size), gpu=True, seconds=SECONDS)
    diagnosis = diagnose(found.reading)
    record_property("bottleneck", diagnosis.name or diagnosis.said)
    record_property(
        "counted", json.dumps({f.rule.name: f.evidence.line for f in diagnosis.findings}, ensure_ascii=False)
    )
    record_property("missing", json.dumps(found.reading.missing))
    return found, diagnosis


@pytest.mark.parametrize("name", [name for name in PLANTED if name not in LAB])
def test_a_planted_bottleneck_is_named(name, record_property):
    found, diagnosis = looked_at(FOLDER / name, record_property)

    assert diagnosis.name == PLANTED[name]
    assert found.reading.counted_bytes is not None


def test_the_labs_bottlenecks_are_named(record_property):
    named = {name: looked_at(FOLDER / name, record_property)[1].name for name in LAB}
    record_property("named", json.dumps(named))

    assert len(LAB) == 6
    assert sum(named[name] == PLANTED[name] for name in LAB) >= ENOUGH, named


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_kernel_has_no_false_name(name, record_property):
    _, diagnosis = looked_at(KERNELS / name, record_property, SOUND[name])

    assert diagnosis.name == ""
    assert diagnosis.said.startswith("nothing obvious")


def test_near_the_peak_nothing_is_obvious(record_property):
    name, size = AT_ITS_ROOF

    found, diagnosis = looked_at(KERNELS / name, record_property, size)

    assert found.reading.of_peak >= NEAR_PEAK
    assert diagnosis.said.startswith("nothing obvious: it reaches")


def test_every_counter_that_a_rule_reads_is_there(record_property):
    found, _ = looked_at(FOLDER / "bytes_in_flight.cu", record_property)

    assert set(METRICS) - set(found.reading.counters) <= {STALL.format(reason) for reason in REASONS}
    assert len([reason for reason in REASONS if STALL.format(reason) in found.reading.counters]) >= 14


def test_the_command_prints_what_it_found(capsys, tmp_path):
    drawing = tmp_path / "roofline.svg"

    code = command.main([str(FOLDER / "bytes_in_flight.cu"), "--gpu", "--hint", "--svg", str(drawing)])

    said = capsys.readouterr().out
    assert code == 0
    assert "bottleneck: bytes in flight" in said
    assert "page: docs/lectures/l3_memory.py#how-many-must-be-walking" in said
    assert "blocks on a multiprocessor, by" in said
    assert drawing.read_text(encoding="utf-8").startswith("<svg")
