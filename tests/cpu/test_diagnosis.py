"""The lab of six kernels: what is given, what is handed out, and in which order a file is judged."""

import dataclasses
import functools
import json
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_judge import timing
from course_kernels import measure
from course_kernels.measure import counters as of_the_harness
from course_kernels.problem import Workload
from course_labs import diagnosis
from course_labs.__main__ import grading_needs, main
from course_labs.diagnosis import (
    AWAITED,
    GAIN,
    READ,
    WRITE,
    SuspectsGrader,
    found_in,
    gained,
    recorded,
)  # fmt: skip
from course_labs.grade import CannotGrade
from course_labs.lab import find_lab, find_labs, given_files, has_given_kernels, load_file
from course_labs.verdict import NOT_RUN, RIGHT
from course_profile import measurement as r
from course_profile import thresholds
from course_profile.diagnosis import RULES, diagnose
from course_profile.format import as_json
from course_profile.measurement import METRICS, REASONS, STALL, Reading
from course_profile.profile import Profile
from course_profile.subject import take
from course_site.records.digest import digest_of, file_digest

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "bottleneck")
GIVEN, PLANTED = LAB.folder / "given", ROOT / "tests" / "profile" / "lab"
TRUTH = load_file(LAB.folder / "truth.py", "truth")
SUSPECTS = TRUTH.SUSPECTS
STARTER, ANSWER = LAB.snapshot("python", 0), LAB.snapshot("python", len(LAB.stages))
by_the_lab = pytest.mark.kept(
    "src/course_kernels", "tests/profile", of=lambda **_: [LAB.folder], but=["labs/*"]
)
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}


# --- the six that are given -----------------------------------------------------------------------


def test_the_six_are_the_planted_ones_without_what_gives_them_away():
    assert {GIVEN / one.given for one in SUSPECTS} == set(given_files(LAB)[:-1])
    assert given_files(LAB)[-1] == GIVEN / "profile.toml"
    assert {one.given for one in SUSPECTS} | {"profile.toml"} == {file.name for file in GIVEN.iterdir()}
    assert {one.planted for one in SUSPECTS} | {"profile.toml"} == {file.name for file in PLANTED.iterdir()}
    for one in SUSPECTS:
        assert file_digest(GIVEN, one.given) == file_digest(PLANTED, one.planted), one.name


def test_they_are_launched_as_the_planted_ones():
    text = (PLANTED / "profile.toml").read_text()
    for one in SUSPECTS:
        text = text.replace(f'["{one.planted}"]', f'["{one.given}"]')
    tables = [text, (GIVEN / "profile.toml").read_text()]

    assert tables[0] != (PLANTED / "profile.toml").read_text()
    assert len({digest_of(Path("t.txt"), t[t.index("[") :].encode()) for t in tables}) == 1


def test_nothing_of_a_given_kernel_names_its_reason():
    for one in SUSPECTS:
        text = (GIVEN / one.given).read_text()
        assert "planted" not in text
        assert one.reason not in text
        assert Path(one.planted).stem.replace("_", " ") not in text


def test_each_reason_is_the_planted_one_and_is_proved_by_what_its_rule_says_must_move():
    rules = {rule.name: rule for rule in RULES}
    for one in SUSPECTS:
        head = (PLANTED / one.planted).read_text().splitlines()[0]
        assert head.partition("planted: ")[2] == one.reason
        assert rules[one.reason].counter in one.proofs
    assert len({one.reason for one in SUSPECTS}) == len(SUSPECTS) == 6


def test_a_counter_proves_one_reason_at_most():
    proofs = [counter for one in SUSPECTS for counter in one.proofs]

    assert len(set(proofs)) == len(proofs)
    assert STALL.format("long_scoreboard") not in proofs  # a kernel at its roof shows it too


def test_the_starter_names_every_reason_and_has_the_profilers_limits():
    text = STARTER.read_text()
    named = re.search(r"The profiler's names: ((?:.*\n# ?)*.*)\nFOUND", text)[1]
    assert {name.strip() for name in named.replace("\n# ", " ").split(",")} == {rule.name for rule in RULES}

    held = re.findall(r"^([A-Z_, ]+) = ([\d., ]+?)  #", text, re.MULTILINE)
    values = {
        name: float(value)
        for names, numbers in held
        for name, value in zip(names.split(", "), numbers.split(", "), strict=True)
    }
    assert values == {
        "AT_ITS_ROOF": thresholds.NEAR_PEAK,
        "MOVED_AGAIN": thresholds.MOVED_AGAIN,
        "MOVING": 100 * thresholds.MOVING,
        "FULL": 100 * thresholds.FULL,
        "ROOM_LEFT": 100 * thresholds.ROOM_LEFT,
        "ONE_REASON": thresholds.ONE_REASON,
        "ISSUED_ENOUGH": 100 * thresholds.ISSUED_ENOUGH,
    }


def test_every_counter_of_the_profiler_is_in_the_table_and_no_other():
    assert (READ, WRITE) == (of_the_harness.READ, of_the_harness.WRITE)
    assert set(TRUTH.COUNTERS) == {READ, WRITE, *METRICS}


def test_a_given_kernel_can_be_profiled():
    for one in SUSPECTS:
        subject = take(str(GIVEN / one.given))
        assert subject.problem == one.problem
        assert Workload.parse(subject.size)


def test_the_readings_of_the_last_task_have_one_reason_at_most():
    """So the order in which somebody asks does not matter."""
    alone = load_file(LAB.folder / "alone.py", "alone")
    found = [diagnose(alone._as_the_rules_read(case["with"]["reading"])) for case in alone.cases()]

    assert max(len(diagnosis.findings) for diagnosis in found) == 1
    assert {one.reason for one in SUSPECTS} | {""} == {diagnosis.name for diagnosis in found}


# --- what was counted on a card -------------------------------------------------------------------


def counted(one, number):
    """What a card would have told of a kernel: made up here, and in a folder of the test alone."""
    counters = {metric: 1 + number + index / 7 for index, metric in enumerate(METRICS)}
    reading = Reading(
        kernel="k", counters=counters, read_bytes=2e9 + number, write_bytes=1e9, time_us=100.0 + number,
        floor_us=10.0, of_peak=0.1, bound="memory", least_read_bytes=1000, least_write_bytes=500,
    )  # fmt: skip
    subject = take(str(PLANTED / one.planted))
    return Profile(subject, Workload.parse(subject.size), "f", reading, machine=None, gpu="A card")


def write_record(root, left_out=()):
    """A record as the GPU tests of the profiler write it."""
    properties = {}
    for number, one in enumerate(SUSPECTS):
        if one.name not in left_out:
            profile = counted(one, number)
            told = json.dumps(as_json(profile, diagnose(profile.reading)))
            properties[f"lab/{one.planted}"] = told
    path = root / "records" / "a-card" / "tests" / "profile.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"tests": [{"id": "a"}, {"id": "b", "properties": properties}]}))


def test_the_record_has_the_six_under_the_names_that_are_looked_for():
    on_a_card = load_file(ROOT / "tests" / "gpu" / "test_profile.py", "profile_on_a_card")

    assert sorted(on_a_card.LAB) == sorted(diagnosis.KEY.format(one.planted) for one in SUSPECTS)
    assert (Path(diagnosis.RECORD).stem,) == on_a_card.GROUPS
    assert "record_property(name, json.dumps(as_json(" in (ROOT / "tests/gpu/test_profile.py").read_text()


def test_what_is_handed_out_is_what_was_recorded_and_not_what_the_rules_said(tmp_path):
    write_record(tmp_path)
    (line,) = diagnosis.hand_out(LAB, tmp_path)
    path = tmp_path / "my_labs" / "bottleneck_counters.txt"
    text = path.read_text()

    assert line == "what was counted:  my_labs/bottleneck_counters.txt"
    parts = {part.partition(":")[0]: part for part in text.split("\n\n")}
    for number, one in enumerate(SUSPECTS):
        told = counted(one, number).reading
        for metric, value in {**told.counters, READ: told.read_bytes}.items():
            assert re.search(rf"^  {re.escape(f'{value:.6g}')} +{re.escape(metric)}  ", parts[one.name], re.M)
        assert f"on {counted(one, number).gpu}" in parts[one.name]
    assert "bottleneck" not in text
    assert not [rule.title for rule in RULES if rule.title in text]


def test_a_table_that_somebody_wrote_into_is_kept(tmp_path):
    diagnosis.hand_out(LAB, tmp_path)
    path = tmp_path / "my_labs" / "bottleneck_counters.txt"
    path.write_text(path.read_text() + "mine")
    diagnosis.hand_out(LAB, tmp_path)
    diagnosis.hand_out(LAB, tmp_path)

    assert "mine" not in path.read_text()
    assert [file.name for file in sorted(path.parent.iterdir())] == [
        "bottleneck_counters.before-the-table.txt",
        "bottleneck_counters.txt",
    ]
    assert path.with_name("bottleneck_counters.before-the-table.txt").read_text().endswith("mine")


@pytest.mark.parametrize("left_out", [[one.name for one in SUSPECTS], ["sum"]])
def test_without_a_record_of_all_six_the_names_are_handed_out_and_no_number(tmp_path, left_out):
    write_record(tmp_path, left_out)
    assert recorded(tmp_path, SUSPECTS) is None

    lines = diagnosis.hand_out(LAB, tmp_path)
    text = (tmp_path / "my_labs" / "bottleneck_counters.txt").read_text()
    assert lines == ["the counters' names:  my_labs/bottleneck_counters.txt", AWAITED]
    assert re.findall(r"^  (\S+) +(\S+)  ", text, re.M) == [("-", name) for name in TRUTH.COUNTERS]


def test_the_lab_is_handed_out_by_its_command(tmp_path, capsys):
    for folder in ("labs", "src", "records"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    assert main(["lab", "bottleneck"], tmp_path) == 0

    said = capsys.readouterr().out
    assert "wrote my_labs/bottleneck.py: the starter" in said
    assert "my_labs/bottleneck_counters.txt" in said
    assert (tmp_path / "my_labs" / "bottleneck.py").read_bytes() == STARTER.read_bytes()
    assert grading_needs(["bottleneck"]) == "torch"


# --- the order in which a file is judged ----------------------------------------------------------


def judged(tmp_path, text, root=None):
    file = tmp_path / "bottleneck.py"
    file.write_text(text)
    return SuspectsGrader(LAB, environment=NO_GPU, root=root or tmp_path).verdict(file, LAB.seconds)


def swapped(old, new, text=None):
    text = ANSWER.read_text() if text is None else text
    assert text.count(old) == 1, old
    return text.replace(old, new)


BARRIERS = '"barriers", "'


def test_a_right_fix_behind_a_wrong_reason_is_refused_and_never_run(tmp_path):
    mark = tmp_path / "ran"
    runs = f"open({str(mark)!r}, 'w').close()\n"
    for reason in ("atomics", "shared memory", "too many bytes"):
        verdict = judged(tmp_path, swapped(BARRIERS, f'"{reason}", "') + runs)
        assert (verdict.found, verdict.on, verdict.code) == ("wrong reason", "sum", 1)
        assert f"{reason!r} is not what it waits for" in verdict.why
        assert {rule.name: rule.threshold for rule in RULES}[reason] in verdict.next
        assert "barriers" not in verdict.text  # the right one is nobody's to say
    assert not mark.exists()


@by_the_lab
def test_a_wrong_fix_behind_a_right_reason_is_refused(tmp_path):
    verdict = judged(tmp_path, swapped("x + y, mask=i < N)", "x - y, mask=i < N)"))

    assert (verdict.found, verdict.code) == ("wrong", 1)
    assert verdict.text.startswith("refused on add, N=1 float32: wrong: 1 of 1 elements")


@by_the_lab
def test_all_reasons_come_before_all_counters_and_these_before_the_kernels(tmp_path):
    broken = swapped("x + y, mask=i < N)", "x - y, mask=i < N)")
    no_counter = swapped('"dram__bytes_read.sum"', '""', broken)
    no_reason = swapped('"bytes in flight"', '""', no_counter)
    found = [judged(tmp_path, text) for text in (no_reason, no_counter, broken)]

    assert [(one.found, one.on) for one in found] == [
        ("wrong reason", "add"),
        ("wrong counter", "softmax"),
        ("wrong", "add, N=1 float32"),
    ]


def test_every_proof_is_taken_and_every_other_counter_refused(tmp_path):
    grader = SuspectsGrader(LAB, environment=NO_GPU, root=tmp_path)
    for one in SUSPECTS:
        taken = {name for name in TRUTH.COUNTERS if grader._counter(one, one.reason, name, None) is None}
        assert taken == set(one.proofs)


def with_values(root, change=lambda name, value: value):
    """The answer with what the record says behind each counter, or something else."""
    text = ANSWER.read_text()
    told = recorded(root, SUSPECTS)
    for name, (reason, counter, _) in found_in(ANSWER, SUSPECTS).items():
        value = change(name, diagnosis.counters_of(told[name])[counter])
        line = f'    "{name}": ("{reason}", "{counter}", '
        text = swapped(f"{line}None),", f"{line}{value}),", text)
    return text


def test_no_file_of_the_lab_holds_a_recorded_value_and_each_is_completed(tmp_path):
    """Else the first record would make the lab's own answer a wrong one."""
    files = [LAB.snapshot("python", stage) for stage in range(len(LAB.stages) + 1)]
    files += [LAB.solution("python")]
    before = {file: [value for *_, value in found_in(file, SUSPECTS).values()] for file in files}
    assert set(map(tuple, before.values())) == {(None,) * len(SUSPECTS)}

    nothing = diagnosis.completed(LAB, tmp_path)
    assert [nothing(file.read_text()) for file in files] == [file.read_text() for file in files]

    write_record(tmp_path)
    told = recorded(tmp_path, SUSPECTS)
    complete = diagnosis.completed(LAB, tmp_path)
    grader = SuspectsGrader(LAB, environment=NO_GPU, root=tmp_path)
    for stage, file in enumerate(files):
        (mine := tmp_path / "mine.py").write_text(complete(file.read_text()))
        found = found_in(mine, SUSPECTS)
        for one in SUSPECTS:
            _, counter, value = found[one.name]
            if counter:
                assert value == pytest.approx(diagnosis.counters_of(told[one.name])[counter], rel=1e-5)
            assert (value is None) is (stage < 2)
            assert grader._value(one, *found[one.name]) is None or stage < 2


def test_the_command_writes_a_stage_with_the_recorded_values(tmp_path, capsys):
    for folder in ("labs", "src"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    write_record(tmp_path)
    assert main(["lab", "bottleneck", "--stage", "2"], tmp_path) == 0
    assert main(["lab", "bottleneck", "--stage", "2"], tmp_path) == 0
    assert "my_labs/bottleneck.py is that already" in capsys.readouterr().out

    mine = tmp_path / "my_labs" / "bottleneck.py"
    assert None not in [value for *_, value in found_in(mine, SUSPECTS).values()]
    verdict = SuspectsGrader(LAB, environment=NO_GPU, root=tmp_path).verdict(mine, LAB.seconds)
    assert verdict.text.startswith("refused on softmax, M=1 N=1 float32: wrong result")


def test_a_value_is_asked_for_where_the_table_has_one(tmp_path, monkeypatch):
    write_record(tmp_path)
    monkeypatch.setattr(SuspectsGrader, "_fixes", lambda self, file, seconds: diagnosis.Verdict(RIGHT))

    def said(change):
        return judged(tmp_path, with_values(tmp_path, change))

    assert said(lambda name, value: f"{value:.6g}").found == RIGHT
    assert said(lambda name, value: float(f"{value:.3g}")).found == RIGHT
    off = said(lambda name, value: value * 1.03 if name == "windows" else value)
    assert (off.found, off.on) == ("wrong value", "windows")
    assert "the table does not say" in off.why
    missing = said(lambda name, value: None if name == "add" else value)
    assert missing.text.startswith("refused on add: wrong value: gpu__dram_throughput")
    assert said(lambda name, value: True).found == "wrong value"


@by_the_lab
def test_the_verdict_says_that_the_values_await_a_card(tmp_path):
    verdict = judged(tmp_path, ANSWER.read_text())
    assert (verdict.found, verdict.lines) == (RIGHT, (AWAITED,))

    write_record(tmp_path)
    assert judged(tmp_path, with_values(tmp_path)).lines == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("FOUND = {", "LOST = {", "not filled in: your file has no FOUND"),
        ('"barriers"', '"bar" "riers".strip()', "not filled in: FOUND is no table of texts and numbers"),
        ('("barriers", ', "(3, ", 'not filled in: FOUND["sum"] is (3, \'smsp'),
        ("FOUND = {", "FOUND = {{", "not filled in: FOUND is no table"),
        ("def fixed_add(x, y):", "def fixed_add(x, y:", "syntax error: line"),
    ],
)
def test_a_table_of_another_form_is_refused_in_one_line(tmp_path, old, new, said):
    text = ANSWER.read_text()
    text = text.replace("\n}\n", "\n}}\n") if new.endswith("{{") else text
    verdict = judged(tmp_path, swapped(old, new, text))

    assert said in verdict.text
    assert (verdict.code, len(verdict.text.splitlines())) == (1, 2)


# --- kernels --------------------------------------------------------------------------------------


@by_the_lab
def test_every_kernel_of_the_answer_compiles_for_a_card(tmp_path):
    grader = SuspectsGrader(LAB, compile=True, environment=NO_GPU, root=tmp_path)

    assert grader.verdict(ANSWER, LAB.seconds).found == RIGHT


@by_the_lab
def test_what_only_the_interpreter_takes_is_refused_by_its_kernel(tmp_path):
    file = tmp_path / "bottleneck.py"
    file.write_text(swapped("x + y, mask=i < N)", "sum([y], x), mask=i < N)"))
    verdict = SuspectsGrader(LAB, compile=True, environment=NO_GPU, root=tmp_path).verdict(file, LAB.seconds)

    assert verdict.text.startswith("refused on add: does not compile: ")


def test_where_no_kernel_can_run_reasons_and_counters_are_graded_and_that_is_said(tmp_path, monkeypatch):
    def missing(*_, **__):
        raise CannotGrade("triton is not installed here: pip install triton")

    monkeypatch.setattr(diagnosis, "Fix", missing)
    verdict = judged(tmp_path, ANSWER.read_text())
    assert (verdict.found, verdict.code) == (NOT_RUN, 3)
    assert verdict.text == (
        "six causes named and proved; the kernels are not run: triton is not installed here: pip install triton"
    )
    assert judged(tmp_path, swapped(BARRIERS, '"atomics", "')).code == 1

    with pytest.raises(CannotGrade, match="triton is not installed"):
        SuspectsGrader(LAB, needs_gpu=True, root=tmp_path).verdict(ANSWER, 1)


@functools.cache
def fix():
    """The grader of one kernel, as if it had a card."""
    return diagnosis.fix_of(LAB, SUSPECTS[-1])


def test_a_kernel_is_timed_on_the_size_of_the_one_that_was_given():
    assert fix().time == "dtype=float32,N=33554432"
    assert (fix().problem, fix().entry, fix().alone) == ("vector_add", ("fixed_add",), None)


@pytest.mark.parametrize(
    ("its_us", "found"), [(79.0, RIGHT), (80.0, RIGHT), (81.0, "no gain"), (100.0, "no gain")]
)
def test_a_kernel_that_gains_nothing_is_refused(its_us, found):
    verdict = gained("add", "N=1 float32", 100.0, its_us)

    assert GAIN == 0.8
    assert verdict.found == found
    said = verdict.why if found == "no gain" else verdict.lines[0]
    assert f"100.0 µs as it was given, {its_us:.1f} µs now" in said


def test_the_time_that_counts_is_the_one_that_both_clocks_tell(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(
        measure, "compare", lambda field, w, seconds: {"it": SimpleNamespace(median_us=100.0)}, raising=False
    )
    grader = object.__new__(diagnosis.Fix)
    grader.lab, grader.problem, grader.door, grader._name = fix(), None, "triton", "add"
    grader._given, grader._shorter = GIVEN / "add.cu", False
    grader._truth = SimpleNamespace(competitor=lambda given: asked.append(given))

    def timed(**told):
        monkeypatch.setattr(
            timing, "Times", lambda *_: SimpleNamespace(taken=lambda: SimpleNamespace(**told)), raising=True
        )
        return grader._timed(None).found

    assert timed(agrees=True, is_long=True, events_us=50.0, wall_us=55.0) == RIGHT
    assert timed(agrees=False, is_long=True, events_us=50.0, wall_us=90.0) == "no gain"
    assert timed(agrees=False, is_long=False, events_us=50.0, wall_us=90.0) == RIGHT
    assert timed(agrees=True, is_long=True, events_us=95.0, wall_us=99.0) == "no gain"
    assert asked[0] == GIVEN / "add.cu"


def test_where_an_answer_may_be_shorter_than_the_words_no_arithmetic_is_a_floor(monkeypatch):
    """Sums over windows are differences of running sums: faster than the words' additions is no lie."""
    (windows,) = (one for one in SUSPECTS if one.shorter)
    assert windows.name == "windows"
    problem = import_module("course_kernels.bank_conflicts.problem").PROBLEM
    grader = object.__new__(diagnosis.Fix)
    grader.lab, grader.problem, grader.door = (
        diagnosis.fix_of(find_labs(ROOT)["bottleneck"], windows),
        problem,
        "triton",
    )
    grader._name, grader._shorter = windows.name, windows.shorter
    seen = []

    def times(function, problem, workload, draw):
        seen.append((problem.flops(workload), problem.reads_bytes(workload)))
        raise timing.NoTime("no card here")

    monkeypatch.setattr(timing, "Times", times)
    assert grader._timed(None).found == RIGHT
    w = Workload.parse(grader.lab.time)
    assert seen == [(1, problem.reads_bytes(w))]
    assert problem.flops(w) > problem.reads_bytes(w)


def test_other_labs_are_none_of_this_kind():
    assert [name for name, lab in find_labs(ROOT).items() if has_given_kernels(lab)] == ["bottleneck"]


def test_the_usual_grader_knows_nothing_of_it():
    """What a record of another lab depends on must not grow by this one."""
    for name in ("grade", "worker/file", "lab", "verdict", "hints"):
        assert "suspects" not in (ROOT / f"src/course_labs/{name}.py").read_text()


def test_the_reading_that_is_handed_out_has_the_profilers_own_form():
    data = as_json(counted(SUSPECTS[0], 0), diagnose(counted(SUSPECTS[0], 0).reading))

    assert {"reading", "workload", "gpu"} <= set(data)
    assert set(diagnosis.counters_of(data)) == set(TRUTH.COUNTERS)
    assert dataclasses.asdict(counted(SUSPECTS[0], 0).reading).keys() == data["reading"].keys()
    assert r.STALL.format(REASONS[0]) in diagnosis.counters_of(data)
