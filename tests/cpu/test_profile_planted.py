"""The planted kernels on the CPU: each solves its problem, and says what must be named; and what cards told of them."""

import functools
import json
import tomllib
from pathlib import Path

import pytest
from cuda_on_cpu import build

from course_kernels.measure.check import Check, WrongResult
from course_kernels.problem import Workload
from course_profile import thresholds
from course_profile.competitor import competitor_of, problem_of
from course_profile.diagnosis import RULES, diagnose
from course_profile.measurement import Reading
from course_profile.subject import take
from course_site.records import renames
from course_site.records.digest import file_digest

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "profile"
AT_ITS_ROOF = "reduction/k04_vectorised.py"  # whose test has no name of a kernel in its own
# A size that no block divides.
SMALL = {
    "bank_conflicts.cu": "dtype=float32,M=33,N=70",
    "uncoalesced.cu": "dtype=float32,M=33,N=72",
    "bytes_in_flight.cu": "dtype=float32,N=40001",
    "spills.cu": "dtype=float32,N=33,C=64,K=6",
    "tail_wave.cu": "dtype=float32,N=33,C=8,K=6",
    "divergence.cu": "dtype=float32,N=777,W=8",
    "atomics.cu": "dtype=float32,N=777",
    "lab/slowest_warp.cu": "dtype=float32,N=2777",
    "lab/one_chain.cu": "dtype=float32,N=33,C=3,K=22",
    "lab/arithmetic.cu": "dtype=float32,M=5,N=264",
    "lab/cache_traffic.cu": "dtype=float32,N=1337,S=2",
    "lab/few_warps.cu": "dtype=float32,N=777",
}


def planted():
    """Every planted kernel, with what must be named."""
    found = {}
    for file in sorted(PLANTED.rglob("*")):
        if file.suffix in (".cu", ".py"):
            first = file.read_text(encoding="utf-8").splitlines()[0]
            found[file.relative_to(PLANTED).as_posix()] = first.partition("planted: ")[2]
    return found


def test_each_says_which_rule_must_name_it():
    assert len([name for name in planted() if "/" not in name]) == 8
    assert len([name for name in planted() if name.startswith("lab/")]) == 6
    assert set(planted().values()) <= {rule.name for rule in RULES}


def of_problem(name="atomics.cu", **_):
    """The problem that a planted kernel solves."""
    return [ROOT / "src" / "course_kernels" / take(str(PLANTED / name)).problem]


def check(name, folder, text=None):
    subject = take(str(PLANTED / name))
    problem, workload = problem_of(subject), Workload.parse(SMALL[name])
    kernel = build(folder, subject.file, subject.function, text=text)

    def starts(grid, block, *arguments, shared_bytes=0):
        kernel(grid, block, *arguments, **({"shared_bytes": shared_bytes} if shared_bytes else {}))

    Check({"it": competitor_of(subject, problem, workload, starts)}, workload, 0, "cpu").before()


by_the_kernel = pytest.mark.kept("tests/profile", but=["labs/*"], of=of_problem)


@by_the_kernel
@pytest.mark.parametrize("name", SMALL)
def test_a_planted_kernel_is_right(name, tmp_path):
    check(name, tmp_path)


@by_the_kernel
def test_a_wrong_one_is_refused(tmp_path):
    text = (PLANTED / "atomics.cu").read_text(encoding="utf-8").replace("i < N", "i < N - 1")

    with pytest.raises(WrongResult, match="wrong: 1 of 1"):
        check("atomics.cu", tmp_path, text)


def test_each_kernel_in_cuda_is_checked_here():
    assert set(SMALL) == {name for name in planted() if name.endswith(".cu")}


# --- what any card has told of them -------------------------------------------------------------------

SOUND = ("test_a_sound_kernel_has_no_false_name", "test_near_the_peak_nothing_is_obvious")


@functools.cache
def told():
    """Every recorded reading of a kernel as it stands, by card and kernel, with what must be named.

    Cards whose own run is older than the rules are among them; readings of an older text of a planted kernel are not.
    """
    found = {}
    for path in sorted((ROOT / "records").glob("*/tests/profile.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        for test in record["tests"]:
            for key, text in test.get("properties", {}).items():
                if key != "reading" and not key.startswith("lab/"):
                    continue
                kernel, reading = key, json.loads(text)
                if key == "reading":
                    kernel = test["id"].rstrip("]").partition("[")[2] or AT_ITS_ROOF
                else:
                    reading = reading["reading"]
                sound = test["id"].partition("::")[2].startswith(SOUND)
                if sound or _is_as_it_was(PLANTED / kernel, record["coverage"]):
                    found[path.parts[-3], kernel] = (
                        "" if sound else planted()[kernel],
                        Reading.from_json(reading),
                    )
    return found


def _is_as_it_was(file, coverage):
    name = file.relative_to(ROOT).as_posix()
    then = renames.load(ROOT).in_present_names(coverage)
    return file.is_file() and file_digest(ROOT, name) == then[name]


def misnamed():
    """Readings for which the rules, as they stand, say something else than was planted."""
    names = {key: (wanted, diagnose(reading).name) for key, (wanted, reading) in told().items()}
    return {key: name for key, (wanted, name) in names.items() if name != wanted}


def test_the_rules_name_what_is_planted_in_the_readings_of_every_card():
    assert misnamed() == {}


def test_every_planted_kernel_was_read_or_waits_for_a_card():
    waits = tomllib.loads((ROOT / "records" / "waiting.toml").read_text(encoding="utf-8")).get("page", [])
    lacking = set(planted()) - {kernel for _, kernel in told()}

    assert not lacking or "tests/gpu/profile" in {page["path"] for page in waits}, lacking
    assert len(lacking) < 3
    assert len({kernel for _, kernel in told()} - set(planted())) == 6  # the sound ones


@pytest.mark.parametrize(
    ("name", "to"),
    [("SMS_AT_WORK", 0.4), ("EXTRA_TURNS", 2.0), ("LANES", 1.0), ("FULL", 0.95), ("MOST_SECTORS", 1.0)],
)
def test_a_rule_that_is_moved_far_is_noticed_in_them(name, to, monkeypatch):
    before = misnamed()
    monkeypatch.setattr(thresholds, name, to)

    assert misnamed() != before
