"""The harness on the card: what is proposed, PyTorch and torch.compile are judged and timed in one run.

A run that is interrupted, what is told to whom, and all tables: tests/cpu/test_harness.py.
"""

import json

import pytest
import torch

from course_harness import table
from course_harness.journal import Journal, read
from course_harness.judging import Judge
from course_harness.loop import BASELINES, DONE, Budget, Plan, run
from course_harness.replay import replay
from course_harness.search import Search
from course_harness.tasks import task, words
from course_judge.protocol.verdict import RIGHT
from course_kernels.measure import compare
from course_kernels.measure.competitor import Competitor

GROUPS = ("profile",)  # it stands on judge and profiler
ALONE = True  # it looks at time

# A task of each level; its kernel with constants of its own, the first of them.
TASKS = ("vector_add", "rms_norm", "decode_attention")


@pytest.fixture(scope="module")
def judge():
    with Judge(seconds=120) as judge:
        yield judge


def ran(one, judge, path, samples=1, **how):
    plan = Plan(one, "kernel", words(one), samples, 1, **how)
    return run(plan, Search(one, most=samples), judge, Journal(path), Budget(600.0, 9), say=lambda line: None)


@pytest.mark.parametrize("name", TASKS)
def test_a_proposal_and_both_rivals_are_right_and_timed_in_one_run(judge, tmp_path, name):
    path = tmp_path / "a.jsonl"
    assert ran(task(name), judge, path) == DONE

    verdicts = {entry.get("which", "it"): entry["verdict"] for entry in read(path) if "verdict" in entry}
    assert {which: verdict["found"] for which, verdict in verdicts.items()} == dict.fromkeys(
        ("it", *BASELINES), RIGHT
    )
    for verdict in verdicts.values():
        assert verdict["time"]["on"] == task(name).workload.label, verdict["lines"]
        assert f"{verdict['time']['us']:.1f} µs" in verdict["lines"][0]
    told = table.row(table.summary(path)).one_sample
    assert told.fast_0 == 1.0
    # A time that the judge's clock alone gives allows no word on some rivals.
    assert told.eager in (0.0, 1.0, None)
    assert table.cells(told)[0] == "1.00"


def test_the_profilers_words_are_told_of_a_right_file(judge, tmp_path):
    path = tmp_path / "a.jsonl"
    assert ran(task("vector_add"), judge, path, profile=True) == DONE
    (entry,) = (entry for entry in read(path) if entry["kind"] == "profiled")
    assert "vector_add" in entry["words"]
    assert " of peak" in entry["words"]
    assert str(judge._folder) not in json.dumps(read(path))


def test_a_run_on_a_card_goes_on_where_it_was(judge, tmp_path):
    path = tmp_path / "a.jsonl"
    assert ran(task("vector_add"), judge, path, samples=1) == DONE
    before = read(path)
    assert ran(task("vector_add"), judge, path, samples=1) == DONE
    assert read(path) == before


def test_a_replay_is_timed_as_its_rivals_are(judge):
    one = task("softmax")
    names: dict = {}
    exec(one.eager, names)
    ways = {"eager": names[one.name], "compiled": torch.compile(names[one.name], dynamic=False)}
    field = {way: Competitor(way, one.problem(), function) for way, function in ways.items()}
    raced = compare(field, one.workload, seconds=0.1)
    # The page holds a time of the judge's against times of its own process: of the same file they are the same.
    for which in BASELINES:
        taken = judge.judge(one, getattr(one, which), False)["time"]
        assert taken["by"] == "both clocks"
        assert 0.93 < taken["us"] / raced[which].median_us < 1.07, which

    its = replay(judge, "softmax", "right_first")
    assert its.is_right == (its.us > 0) == its.says.startswith(RIGHT)
