"""A fleet of stand-ins: every task has one record, whoever dies, and every way to two or none is seen."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from fleet_of_stand_ins import (
    SLUG,
    cards,
    coordinator,
    faults,
    free_address,
    make_tree,
    overlaps,
    records,
    runs,
    wait_until,
    workers,
)
from tiny_repository import commit_all, write

from course_site import docs
from course_site.pages.page import find_pages
from course_site.records.fleet import opening, settings
from course_site.records.fleet.address import read_address
from course_site.records.fleet.statement import tree_of
from course_site.records.gpu_test_records import Verdict
from course_site.records.plan import GroupJob, Job
from course_site.records.queue import measure_all
from course_site.records.store import Outcome

WORKERS, TASKS = int(os.environ.get("FLEET_WORKERS", 8)), int(os.environ.get("FLEET_TASKS", 200))


def ended(process, seconds=30):
    try:
        return process.wait(seconds)
    finally:
        if process.poll() is None:
            process.kill()


@pytest.fixture
def started():
    """Processes that a test starts, ended with it."""
    found = []
    yield found
    for process in found:
        if process.poll() is None:
            process.terminate()
            process.wait(20)


def test_kills_a_slow_one_and_a_coordinator_that_comes_back_leave_every_record_once(
    tmp_path, monkeypatch, started
):
    """FLEET_WORKERS=100 FLEET_TASKS=2000 is the same on a large scale; it takes some minutes."""
    draw = random.Random(1)
    groups = [f"g{number}" for number in range(TASKS // 20)]
    names = [f"p{number}" for number in range(TASKS - len(groups))]
    pages = {name: (f"sleep={draw.uniform(0.0, 0.05):.3f}", 1) for name in names}
    pages["p1"] = ("sleep=1.5", 1)
    pages["p2"] = ("sleep=0.1 die=1", 1)
    pages["p3"] = ("sleep=0.1 die=2", 1)
    pages |= {f"p{number}": ("sleep=0.05", 2) for number in range(4, 10)}
    root = make_tree(tmp_path, monkeypatch, pages, len(groups), cards(WORKERS))
    address, log = free_address(), tmp_path / "said"
    fleet = workers(root, address, WORKERS, 60)
    started.append(fleet)
    options = ("--tests", "--jobs", str(WORKERS))
    with log.open("wb") as to:
        first = coordinator(root, address, *options, to=to)
        started.append(first)
        wait_until(lambda: len(records(root)) > TASKS // 4, 300)
        first.send_signal(signal.SIGKILL)
        first.wait()
        again = coordinator(root, address, *options, "--stale", to=to)
        started.append(again)
        before = [len(records(root))]
        for _ in range(max(3, WORKERS // 8)):
            wait_until(lambda: len(records(root)) > before[-1] or again.poll() is not None, 300)
            before.append(len(records(root)))
            victim, slow = draw.sample((tmp_path / "pids").read_text().split(), 2)
            os.kill(int(slow), signal.SIGSTOP)
            os.kill(int(victim), signal.SIGKILL)
            time.sleep(0.1)
            os.kill(int(slow), signal.SIGCONT)
        code = ended(again, 600)
    said = log.read_text()
    deadly = "p3"
    assert code == 1, said[-3000:]
    assert faults(root, [name for name in names if name != deadly], groups, said) == []
    assert f"docs/{deadly}.py: worker " in said
    assert "it is not tried again" in said
    assert not (root / f"records/{SLUG}/docs/{deadly}.ipynb").exists()
    assert overlaps(runs(root)) == []
    # The check itself: a record less, a record more.
    records(root)[0].unlink()
    again_said = said + f"\nmeasured docs/{names[20]}.py on n0 GPU 0 in 0 s\n" * 2
    assert len(faults(root, names[:3] + names[4:], groups, again_said)) == 2
    assert ended(fleet) == 0


# --- one thing at a time, the coordinator in this process ------------------------------------------


@pytest.fixture
def fleet_of(tmp_path, monkeypatch, started):
    """Measure a tree of pages on a fleet of stand-ins; returns the tree, and the outcome."""
    monkeypatch.setattr(opening, "SETTLED_S", 0.3)

    def measured(pages, count=2, groups=0, gpus=None, during=None, patience_s=5.0):
        root = make_tree(tmp_path, monkeypatch, pages, groups, gpus or cards(count))
        address = free_address()
        started.append(workers(root, address, count))
        outcome = Outcome(SLUG)
        with opening.opened(root, count, read_address(address, None)) as fleet:
            fleet.coordinator.places.patience_s = patience_s
            if during:
                threading.Thread(target=during, args=(tmp_path,), daemon=True).start()
            tasks = [Job(page, ["new"], 1.0, "a guess") for page in find_pages(root)]
            tasks += [GroupJob(Verdict(f"g{number}", "is missing"), False) for number in range(groups)]
            measure_all(root, fleet.coordinator, tasks, None, outcome, runner=fleet.runner)
        return root, outcome

    return measured


def test_half_a_record_is_refused_and_its_page_goes_elsewhere_once(fleet_of, capsys):
    root, outcome = fleet_of({"a": ("sleep=0", 1), "b": ("half", 1)})
    assert [path.name for path in records(root)] == ["a.ipynb"]
    assert [run[0] for run in runs(root)].count("b") == 2
    ((name, line),) = outcome.failed
    assert name == "docs/b.py"
    assert line.count("is not whole (the checksum does not match)") == 2
    assert "worker n0 GPU 0" in line
    assert "worker n0 GPU 1" in line
    assert f"FAILED {line}" in capsys.readouterr().out


def stop_for_a_while(folder):
    wait_until((folder / "began-a").exists)
    pid = int((folder / "began-a").read_text())
    os.kill(pid, signal.SIGSTOP)
    time.sleep(7.0)  # Dask waits for ten heartbeats at least, which are 5 s
    os.kill(pid, signal.SIGCONT)


def test_what_a_worker_sends_that_was_taken_for_dead_has_no_reader(fleet_of, monkeypatch, capsys):
    monkeypatch.setattr(settings, "SILENT_S", 1.5)
    root, outcome = fleet_of({"a": ("sleep=1.5", 1), "b": ("sleep=9", 1)}, during=stop_for_a_while)
    said = capsys.readouterr().out
    assert (outcome.failed, faults(root, "ab", [], said)) == ([], [])
    assert "docs: docs/a.py: worker n0 GPU 0 died while it ran" in said
    assert "measured docs/a.py on n0 GPU" in said
    assert sorted(run[0] for run in runs(root)) == ["a", "a", "b"]


def test_what_needs_more_cards_than_a_host_has_keeps_its_record(fleet_of, capsys):
    gpus = cards(2, a_host=1)
    root, outcome = fleet_of({"a": ("sleep=0", 1), "b": ("sleep=0", 2)}, gpus=gpus, patience_s=0.2)
    assert (outcome.standing, outcome.failed) == (["docs/b.py"], [])
    assert [path.name for path in records(root)] == ["a.ipynb"]
    line = "docs: docs/b.py needs 2 GPUs of one host, and there is 1: this edition has no numbers of it\n"
    assert line in capsys.readouterr().out


def test_groups_of_gpu_tests_come_back_as_records(fleet_of, capsys):
    root, outcome = fleet_of({"a": ("sleep=0", 1)}, groups=3)
    assert outcome.failed == []
    written = sorted(path.name for path in (root / f"records/{SLUG}/tests").iterdir())
    assert written == ["g0.json", "g1.json", "g2.json"]
    assert capsys.readouterr().out.count("\ntested g") == 3


def kill_all(folder):
    """Kill the one that starts workers again, too."""
    wait_until((folder / "began-a").exists)
    worker = int((folder / "began-a").read_text())
    stand = int(Path(f"/proc/{worker}/stat").read_text().split()[3])
    pids = (folder / "pids").read_text().split()
    for pid in (stand, *map(int, pids)):
        os.kill(pid, signal.SIGKILL)


def test_when_no_worker_is_left_every_task_says_so(fleet_of, capsys):
    root, outcome = fleet_of(
        {"a": ("sleep=5", 1), "b": ("sleep=5", 1), "c": ("", 1)}, during=kill_all, patience_s=0.5
    )
    assert records(root) == []
    failed = dict(outcome.failed)
    assert failed["docs/c.py"] == "docs/c.py: no worker is left"
    assert failed["docs/a.py"].startswith("docs/a.py: no worker is left; worker n0 GPU ")
    assert len(failed) == 3


# --- who is refused -----------------------------------------------------------------------------


def test_a_worker_of_another_commit_a_dirty_tree_or_another_model_is_refused_in_a_line(
    tmp_path, monkeypatch, started, capsys
):
    monkeypatch.setattr(opening, "SETTLED_S", 0.3)
    root = make_tree(tmp_path, monkeypatch, {"a": ("sleep=0.1", 1)}, gpus=cards(1))
    commit = revision_of(root)
    address = free_address()
    refused = {}
    for name in ("other", "dirty", "model"):
        copy = tmp_path / name / "tree"
        shutil.copytree(root, copy)
        if name == "other":
            write(copy, "src/tiny/kernel.py", "FACTOR = 5\n")
            other = commit_all(copy)
        elif name == "dirty":
            write(copy, "src/tiny/kernel.py", "FACTOR = 4\n")
        refused[name] = copy
    with opening_of(root, address, started) as fleet:
        found = {}
        for name, copy in refused.items():
            gpus = [{"name": "NVIDIA T4", "host": "m"}] if name == "model" else cards(1, host=name)
            monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps(gpus))
            found[name] = workers(copy, address, 1)
            started.append(found[name])
        monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps(cards(1)))
        fleet.runner.run(refusals(fleet.coordinator, len(found)))
        outcome = Outcome(SLUG)
        (page,) = find_pages(root)
        measure_all(
            root, fleet.coordinator, [Job(page, ["new"], 1.0, "")], None, outcome, runner=fleet.runner
        )
    assert outcome.failed == []
    said = capsys.readouterr().out
    lines = {
        "other": f"of commit {other[:12]}, and this tree of {commit[:12]}: check that out there",
        "dirty": f"its tree cannot be used: it is dirty, src/tiny/kernel.py differs from commit {commit[:12]}: ",
        "model": "it is an NVIDIA T4, and this edition is of the NVIDIA H200",
    }
    for name, line in lines.items():
        assert said.count(line) == 1, said
        assert found[name].wait(10) == 2
        assert line in found[name].stderr.read()
    assert [run[1] for run in runs(root)] == ["n0"]


async def refusals(coordinator, count):
    while len(coordinator._refused) < count:
        await asyncio.sleep(0.05)


@contextlib.contextmanager
def opening_of(root, address, started):
    started.append(workers(root, address, 1))
    with opening.opened(root, 1, read_address(address, None)) as fleet:
        yield fleet


def revision_of(root):
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True
    ).stdout.strip()


def test_a_dirty_tree_sends_nobody_elsewhere(tmp_path, monkeypatch, capsys):
    root = make_tree(tmp_path, monkeypatch, {"a": ("", 1)})
    write(root, "src/tiny/new.py", "")
    assert docs.main(["--measure-only", "--scheduler", "tcp://127.0.0.1:1"], root) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "docs: workers elsewhere run the commit of this tree, and it is dirty, src/tiny/new.py differs from commit "
    )
    write(root, f"records/{SLUG}/docs/a.ipynb", "{}")  # what a run writes is no part of what runs
    (root / "src/tiny/new.py").unlink()
    assert tree_of(root).fault == ""


def test_a_worker_without_a_coordinator_waits_and_says_so(tmp_path, monkeypatch):
    root = make_tree(tmp_path, monkeypatch, {"a": ("", 1)}, gpus=cards(1))
    alone = workers(root, free_address(), 1, 0)
    assert alone.wait(20) == 3
    assert "no coordinator at tcp://127.0.0.1:" in alone.stderr.read()
