"""Runs made apart: what they teach about the difference between cards, and that nobody edits them."""

import json

import numpy as np
import pytest
from test_record import PROVENANCE, output
from test_values import measurement
from tiny_repository import make_repository, write_page

from course_site.pages.page import read_page
from course_site.records import changes, run_history
from course_site.records.record import RecordError, build_record, seal
from course_site.values.uncertainty import LEAST, UNSEEN_COMMON, BetweenRuns, factors, interval, kind_of
from course_site.values.values import walk_leaves

SLUG = "nvidia-h200"
COUNT = 60


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    write_page(root, "p", "1")
    return root


def run_of(root, number, random, *, common=0.0, own=0.0, code="1", card=None):
    """One run of a page with sixty timings: all of them moved by the card, each by its own."""
    write_page(root, "p", code)
    page = read_page(root / "docs/p.py", root)
    moved = np.exp(random.normal(0, common) + random.normal(0, own, COUNT))
    names = {f"t{n}": measurement(1000.0 * factor, group="g") for n, factor in enumerate(moved)}
    told = {**PROVENANCE, "date": f"2026-11-{number:02d}T10:00:00+00:00", "uuid": card or f"GPU-{number}"}
    return build_record(page, [[output(**names)]], [1.0], {}, told)


def learn(root, n, **how):
    random = np.random.default_rng(3)
    made = [run_of(root, number, random, **how) for number in range(1, n + 1)]
    for record in made:
        run_history.append(root, SLUG, record)
    return made, run_history.between(run_history.load(root, SLUG))


def test_what_cards_differ_by_is_learnt_from_runs(root):
    _, terms = learn(root, 4, common=0.03, own=0.004)
    assert terms.cards == terms.runs == 4
    common, own = terms.of("timing")
    assert 0.015 < common < 0.08  # four cards say no more than that
    assert own == pytest.approx(0.004 * np.sqrt(2), rel=0.25)


def test_two_runs_that_agree_do_not_speak_for_cards_never_seen(root):
    _, terms = learn(root, 2)
    assert terms.of("timing") == (UNSEEN_COMMON, LEAST)
    assert BetweenRuns().of("timing")[0] == UNSEEN_COMMON


def test_cards_speak_for_the_kinds_that_they_measured_and_for_no_other(root):
    """Counts were found on one card alone; that timings were compared on three says nothing of them."""
    made = []
    for number, card in ((1, "A"), (2, "B"), (3, "C")):
        values = {f"t{n}": ("timing", 100.0) for n in range(5)}
        if card != "C":
            values |= {f"c{n}": ("traffic", 100.0) for n in range(5)}
        made.append(
            {"page": "p", "code": "1", "date": f"{number}", "card": card, "commit": "", "values": values}
        )
    terms = run_history.between(made)
    assert terms.cards == 3
    assert terms.of("timing") == (LEAST, LEAST)
    assert terms.of("traffic") == (UNSEEN_COMMON, LEAST)


def test_a_stated_interval_covers_other_runs(root):
    made, terms = learn(root, 4, common=0.01, own=0.01)
    inside, of = np.sum(
        [run_history.covered(old, new, terms) for old in made for new in made if old is not new], axis=0
    )
    assert of == 12 * COUNT
    assert inside / of > 0.9
    narrow = BetweenRuns({"timing": 0.0}, {"timing": 0.0}, runs=4, cards=4)
    inside, of = np.sum([run_history.covered(made[0], new, narrow) for new in made[1:]], axis=0)
    assert inside / of < 0.5  # and it is the term that does it


def test_other_code_is_no_other_run(root):
    random = np.random.default_rng(3)
    for number, code in ((1, "1"), (2, "2")):
        run_history.append(root, SLUG, run_of(root, number, random, own=0.5, code=code))
    assert run_history.between(run_history.load(root, SLUG)).runs == 0


def test_only_the_last_runs_of_a_page_are_kept(root):
    learn(root, 6)
    assert [run["card"] for run in run_history.load(root, SLUG)] == ["GPU-3", "GPU-4", "GPU-5", "GPU-6"]


def test_a_file_changed_by_hand_is_refused(root):
    learn(root, 2)
    path = root / "records" / SLUG / run_history.NAME
    path.write_text(path.read_text().replace("GPU-1", "GPU-9"))
    with pytest.raises(RecordError, match="changed by hand"):
        run_history.load(root, SLUG)
    for text, said in (
        ("{", "cut short"),
        ("[]", "changed by hand"),
        (json.dumps(seal({"kind": "runs"})), "not what this version reads"),
        (json.dumps(seal({"kind": "runs", "runs": [{"page": "p"}]})), "not what this version reads"),
    ):
        path.write_text(text)
        with pytest.raises(RecordError, match=said):
            run_history.load(root, SLUG)


def test_every_run_stands_on_a_line_of_its_own(root):
    learn(root, 3)
    assert len((root / "records" / SLUG / run_history.NAME).read_text().splitlines()) == 4
    assert json.loads((root / "records" / SLUG / run_history.NAME).read_text())["kind"] == "runs"


def test_what_left_the_stated_interval_moved(root):
    random = np.random.default_rng(3)
    old, new = run_of(root, 1, random), run_of(root, 2, random, common=0.0, own=0.05)
    terms = BetweenRuns({"timing": 0.0}, {"timing": 0.01}, runs=4, cards=4)
    found = {entry.name.removeprefix("p.") for entry in changes.moved(old, new, terms)}
    before = dict(walk_leaves(old.names))
    for name, leaf in walk_leaves(new.names):
        apart = abs(leaf["quantiles_us"]["0.5"] / before[name]["quantiles_us"]["0.5"] - 1)
        assert (name in found) or apart < 0.03
        assert (name not in found) or apart > 0.01


def quantiles(median_us, n=4, **more):
    return {"kind": "measurement", "n": n, "quantiles_us": {"0.5": median_us}, **more}


@pytest.mark.parametrize(
    ("leaf", "kind"),
    [
        (measurement(1000.0), "timing"),
        (measurement(5.0), "short timing"),
        (quantiles(30.0), "timing"),
        (quantiles(29.9), "short timing"),
        (quantiles(30.0, host_bound=2), "timing"),  # half of them is not more than half
        (quantiles(30.0, host_bound=3), "host"),
        (quantiles(30.0, n=1), "timing"),
        ({"kind": "samples", "how": "counted"}, "samples counted"),
        ({"kind": "quantity", "how": "timed", "unit": "s", "value": 3.0}, "quantity timed in s"),
        ({"kind": "quantity", "how": "device", "unit": "1", "value": 255}, None),
        ({"kind": "quantity", "how": "given", "unit": "GB/s", "value": 1.0}, None),
        ({"kind": "text", "value": "x"}, None),
    ],
)
def test_what_may_differ_from_run_to_run(leaf, kind):
    assert kind_of(leaf) == kind


def test_blocks_that_lie_apart_widen_the_interval():
    near, far = (measurement(1000.0, blocks=blocks) for blocks in ((1.0, 1.001) * 3, (1.0, 1.1) * 3))
    widths = [np.diff(interval(factors(leaf, name="a", run="r", terms=None)))[0] for leaf in (near, far)]
    assert widths[1] > 50 * widths[0]


def test_an_interval_is_that_of_numpy_to_the_last_bit():
    random = np.random.default_rng(1)
    for n in (1, 2, 3, 40, 41, 1000):
        for scale in (1e-9, 1.0, 1e9):
            drawn = np.exp(3 * random.standard_normal(n)) * scale
            for each in (drawn, -drawn, np.round(drawn, 1)):
                assert interval(each) == tuple(np.quantile(each, [0.025, 0.975]).tolist())
    assert np.isnan(interval(np.array([1.0, np.nan, 2.0]))).all()
