"""A forged record must agree with itself in everything that stands in it several times."""

import subprocess
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from test_values import measurement

from course_site.records.digest import file_digest
from course_site.records.record_checks import NOT_CHECKED, doubt_of_commit, doubts, is_lost, of_no_card

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
        (lambda l: l.update(samples_us=[]), "it: its samples are not times"),
        (lambda l: l["samples_us"].__setitem__(0, -1.0), "it: its samples are not times"),
        (lambda l: l.update(blocks_us=[50.0] * 6), "it: 50 µs is outside its least and its most"),
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
    assert said({}, date="soon") == ["its date is not a date: 'soon'"]


@pytest.fixture
def history(tmp_path):
    """A repository, and a function that runs git in it."""

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ("git", *who, *arguments), cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    return git


LATER = "2999-01-01T00:00:00+00:00"


def test_a_commit_is_known_and_older_than_its_record(tmp_path, history):
    assert doubt_of_commit(tmp_path / "..", "0" * 40, "2026-11-21T10:00:00+00:00", {}) == NOT_CHECKED
    commit = history("rev-parse", "HEAD")
    assert doubt_of_commit(tmp_path, commit, LATER, {}) == ""
    assert (
        doubt_of_commit(tmp_path, commit, "2001-01-01T00:00:00+00:00", {})
        == f"it was made before the commit it names, {commit[:12]}"
    )
    option = doubt_of_commit(tmp_path, "--output=published", LATER, {})
    assert option == "it names no commit: '--output=published'"
    assert not (tmp_path / "published").exists()


def test_the_commit_of_a_record_holds_every_file_as_it_ran(tmp_path, history):
    before = history("rev-parse", "HEAD")
    (tmp_path / "a kernel.py").write_bytes(b"x = 1\r\n")
    (tmp_path / "text.txt").write_bytes(b"one\ntwo")
    history("add", ".")
    history("commit", "-qm", "two")
    ran = {name: file_digest(tmp_path, name) for name in ("a kernel.py", "text.txt")}
    commit = history("rev-parse", "HEAD")
    assert doubt_of_commit(tmp_path, commit, LATER, ran) == ""
    assert doubt_of_commit(tmp_path, commit, LATER, {**ran, "gone.py": "0"}).endswith(
        "gone.py is not as it ran"
    )
    (tmp_path / "a kernel.py").write_text("x = 1  # a comment is no meaning\n")
    history("commit", "-qam", "three")
    assert doubt_of_commit(tmp_path, history("rev-parse", "HEAD"), LATER, ran) == ""
    (tmp_path / "a kernel.py").write_text("x = 2\n")
    history("commit", "-qam", "four")
    said = doubt_of_commit(tmp_path, history("rev-parse", "HEAD"), LATER, ran)
    assert said.endswith("where a kernel.py is not as it ran")
    assert doubt_of_commit(tmp_path, commit, LATER, ran) == "", (
        "it is the commit that is asked, not the newest"
    )
    assert "a kernel.py" in doubt_of_commit(tmp_path, before, LATER, ran)


def test_where_the_commit_is_lost_the_last_one_must_hold_what_ran(tmp_path, history):
    (tmp_path / "kernel.py").write_text("x = 1\n")
    history("add", ".")
    history("commit", "-qm", "squashed")
    ran = {"kernel.py": file_digest(tmp_path, "kernel.py")}
    lost, known = "0123456789ab" + "0" * 28, history("rev-parse", "HEAD")
    assert is_lost(tmp_path, lost)
    assert not is_lost(tmp_path, known)
    assert not is_lost(tmp_path, "unknown")
    assert doubt_of_commit(tmp_path, lost, LATER, ran) == ""
    said = doubt_of_commit(tmp_path, lost, LATER, {"kernel.py": "0" * 32})
    assert said == (
        "it names the commit 0123456789ab, which this repository does not have, nor kernel.py as it ran"
    )


def quantity(how, unit="TFLOP/s"):
    return {"kind": "quantity", "value": 777.0, "unit": unit, "how": how}


@pytest.mark.parametrize(
    "planted",
    [
        quantity("timed"),
        quantity("device"),
        quantity("counted", "GB"),
        {"kind": "samples", "how": "timed", "unit": "µs", "n": 3, "quantiles": {"0.5": 4.0}, "blocks": []},
        {"kind": "counted", "read_bytes": 1, "write_bytes": 1, "kernels": []},
        measurement(3.0),
    ],
)
def test_a_page_that_measures_nothing_has_timed_nothing(planted):
    (found,) = of_no_card(record({"speed": planted}))
    assert found.startswith("speed is recorded as ")
    assert "and the page measures nothing" in found


def test_what_is_worked_out_there_passes():
    names = {"a": quantity("computed"), "b": quantity("given"), "c": quantity("counted", "1")}
    assert list(of_no_card(record(names | {"d": {"kind": "text", "value": "said"}}))) == []
