"""A queue of devices elsewhere measures like the one of this machine: the same pages, kept in the same way."""

import asyncio
import time

import pytest
from test_record import PROVENANCE, output, quantity
from tiny_repository import make_repository, recording, write_page

from course_site.pages.page import find_pages
from course_site.records.execute import PageFailed
from course_site.records.plan import Job
from course_site.records.queue import measure_all
from course_site.records.record import Record, build_record
from course_site.records.store import Bundle, Outcome

SLUG = "nvidia-h100-80gb-hbm3"
H100 = {**PROVENANCE, "gpu": "NVIDIA H100 80GB HBM3", "slug": SLUG}


class Fleet:
    """Machines somewhere else: whoever asks first is answered last, and one page fails on them."""

    name = "3 × NVIDIA H100 80GB HBM3"

    def __init__(self, width, failing=""):
        self.width = width
        self.failing = failing
        self.running = self.most = 0
        self.submitted = []

    async def submit(self, job, board):
        self.submitted.append(job.page.id)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.05 / len(self.submitted))
        self.running -= 1
        if job.page.id == self.failing:
            raise PageFailed(f"{job.page.path}: no machine is left", "told far away")
        results = [[output(**{job.page.id: quantity(1.0)})]]
        record = build_record(job.page, results, [0.5], {}, H100, {f"{job.page.id}.bin": b"far"})
        return Bundle(job.page, record, f"machine {len(self.submitted)}", 0.5)


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    for name in "abcd":
        write_page(root, name, recording(name))
    return root


def measured(root, fleet, deadline=None, forecast_s=1.0):
    outcome = Outcome(SLUG)
    jobs = [Job(page, ["new"], forecast_s, "a guess") for page in find_pages(root)]
    measure_all(root, fleet, jobs, deadline, outcome)
    return outcome


def test_every_page_is_submitted_and_its_bundle_kept(root, capsys):
    fleet = Fleet(3)
    outcome = measured(root, fleet)
    folder = root / "records" / SLUG
    assert sorted(outcome.written) == [folder / f"docs/{name}.ipynb" for name in "abcd"]
    assert (fleet.submitted, fleet.most, outcome.left, outcome.failed) == (list("abcd"), 3, [], [])
    for name in "abcd":
        assert Record.load(folder / f"docs/{name}.ipynb").edition["slug"] == SLUG
        assert (folder / f"docs/{name}.artifacts/{name}.bin").read_bytes() == b"far"
    assert (folder / "runs.json").exists()
    out = capsys.readouterr().out
    assert "docs: 4 pages to measure on 3 × NVIDIA H100 80GB HBM3, about 0.1 GPU minutes" in out
    assert "measured docs/a.py on machine " in out


def test_a_page_that_fails_there_costs_no_other(root, capsys):
    outcome = measured(root, Fleet(2, failing="b"))
    assert outcome.failed == [("docs/b.py", "docs/b.py: no machine is left")]
    assert len(outcome.written) == 3
    assert "FAILED docs/b.py: no machine is left\n  | told far away" in capsys.readouterr().out


def test_none_is_submitted_that_would_not_end_in_time(root):
    fleet = Fleet(1)
    outcome = measured(root, fleet, time.monotonic() + 60, forecast_s=61.0)
    assert outcome.out_of_minutes
    assert fleet.submitted == []
    assert len(outcome.left) == 4
