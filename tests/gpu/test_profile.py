"""The profiler on the card: it names what was planted, and keeps silent where nothing is."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

from course_profile import __main__ as command
from course_profile import worker  # noqa: F401  loaded by its name, and part of what is tested
from course_profile.diagnosis import diagnose
from course_profile.format import as_json
from course_profile.measurement import METRICS, REASONS, STALL
from course_profile.run import profile_each
from course_profile.subject import take
from course_profile.thresholds import NEAR_PEAK

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

# At the size that its problem times, this one is at its roof.
AT_ITS_ROOF = "reduction/k04_vectorised.py"
# Kernels of the library with nothing to be named: well made, whatever percent of peak they reach.
SOUND = (
    "copy/k01_vectorised.py",
    "transpose/k05_vectorised.py",
    "bias_gelu/k01_fused.py",
    "grey/k01_pixels.py",
    "sgemm/k11_register_banks.py",
    AT_ITS_ROOF,
)


@functools.cache
def profiles():
    """Every kernel of this file, by its name: all of them in two processes."""
    files = {
        **{name: FOLDER / name for name in PLANTED},
        **{name: KERNELS / name for name in SOUND},
    }
    subjects = [take(str(file)) for file in files.values()]
    return dict(zip(files, profile_each(subjects, gpu=True, seconds=SECONDS), strict=True))


def said_of(name, record_property):
    """What the rules say of one; the record keeps it, and what they read."""
    found = profiles()[name]
    diagnosis = diagnose(found.reading)
    record_property("bottleneck", diagnosis.name or diagnosis.said)
    record_property("reading", json.dumps(found.reading.as_json()))
    return diagnosis


@pytest.mark.parametrize("name", [name for name in PLANTED if name not in LAB])
def test_a_planted_bottleneck_is_named(name, record_property):
    assert said_of(name, record_property).name == PLANTED[name]


def test_the_labs_bottlenecks_are_named(record_property):
    diagnoses = {name: diagnose(profiles()[name].reading) for name in LAB}
    named = {name: diagnosis.name for name, diagnosis in diagnoses.items()}
    record_property("named", json.dumps(named))
    for name, diagnosis in diagnoses.items():  # what --counted takes up where no card is
        record_property(name, json.dumps(as_json(profiles()[name], diagnosis)))

    assert len(LAB) == 6
    assert named == {name: PLANTED[name] for name in LAB}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_kernel_has_no_false_name(name, record_property):
    diagnosis = said_of(name, record_property)

    assert diagnosis.name == ""
    assert diagnosis.said.startswith("nothing obvious")


def test_near_the_peak_nothing_is_obvious(record_property):
    diagnosis = said_of(AT_ITS_ROOF, record_property)

    assert profiles()[AT_ITS_ROOF].reading.of_peak >= NEAR_PEAK
    assert diagnosis.said.startswith("nothing obvious: it reaches")


def test_every_counter_that_a_rule_reads_is_there():
    found = profiles()["bytes_in_flight.cu"]

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
