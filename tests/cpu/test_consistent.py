"""A forged record must agree with itself in everything that stands in it several times."""

import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from test_values import measurement

from course_site.records.consistent import NOT_CHECKED, doubt_of_commit, doubts

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def leaf(**changes):
    found = measurement(100.0)
    samples = np.array(found["samples_us"])
    found["quantiles_us"] = {
        str(q): float(np.quantile(samples, q)) for q in (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)
    }
    return {**found, **changes}


def record(names, *, slug="nvidia-h200", date="2026-11-21T10:00:00+00:00"):
    return SimpleNamespace(meta={"provenance": {"date": date}}, edition={"slug": slug}, names=names)


def said(names, slug="nvidia-h200", **more):
    return list(doubts(record(names, **more), slug, NOW))


def test_an_honest_record_leaves_no_doubt():
    assert said({"it": leaf(), "group": {"other": leaf()}}) == []
    # Of more than is kept, the kept ones lie evenly among all.
    assert said({"it": leaf(n=390)}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda l: l["quantiles_us"].update({"0.5": 50.0}), "it: its samples have the 0.5 quantile"),
        (lambda l: l["quantiles_us"].update({"0.05": 99.9}), "it: its samples have the 0.05 quantile"),
        (lambda l: l.update(samples_us=[50.0] * 200), "it: its samples have the 0 quantile 50 µs"),
        (lambda l: l.update(n=390, samples_us=[50.0] * 200), "it: its samples have the 0.5 quantile 50 µs"),
        (lambda l: l.update(samples_us=[]), "it: its samples are no times"),
        (lambda l: l["samples_us"].__setitem__(0, -1.0), "it: its samples are no times"),
        (lambda l: l.update(blocks_us=[50.0] * 6), "it: 50 µs lies outside of its least and its most"),
        (lambda l: l.update(error=0.02), "it: its error 0.02 is above what is allowed, 0.01"),
    ],
)
def test_a_number_that_was_bent_is_named(change, words):
    bent = leaf()
    change(bent)
    found = said({"it": bent})
    assert any(words in line for line in found), found
    assert all("\n" not in line for line in found)


def test_the_folder_the_date_and_the_card():
    assert said({}, slug="nvidia-a100") == ["it lies in records/nvidia-a100 and is of nvidia-h200"]
    assert said({}, date="2026-11-23T00:00:00+00:00") == ["it was made on 23 November 2026, which is to come"]
    assert said({}, date="soon") == ["its date is none: 'soon'"]


def test_a_commit_is_known_and_older_than_its_record(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ("git", *who, *arguments), cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert doubt_of_commit(tmp_path / "..", "0" * 40, "2026-11-21T10:00:00+00:00") == NOT_CHECKED
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    commit = git("rev-parse", "HEAD")
    assert doubt_of_commit(tmp_path, commit, "2999-01-01T00:00:00+00:00") == ""
    assert (
        doubt_of_commit(tmp_path, commit, "2001-01-01T00:00:00+00:00")
        == f"it was made before the commit it names, {commit[:12]}"
    )
    option = doubt_of_commit(tmp_path, "--output=published", "2999-01-01T00:00:00+00:00")
    assert option == "it names no commit: '--output=published'"
    assert not (tmp_path / "published").exists()
    strange = "0123456789ab" + "0" * 28
    said = doubt_of_commit(tmp_path, strange, "2999-01-01T00:00:00+00:00")
    assert said == "it names the commit 0123456789ab, which this repository does not have"
