"""An edition is read by itself, and the same page is rendered from each of two, in one process."""

import dataclasses
from types import SimpleNamespace

import pytest
from test_another_card import BESIDE, H100, stale
from test_render import measurement, quantity, record_it, repository
from tiny_repository import write

from course_site.pages.page import find_pages, read_page
from course_site.records.edition import FRESH, MISSING, STALE, Edition, PageRecord, gpu_of, load_edition
from course_site.records.record import record_path
from course_site.site.course import load_material, show
from course_site.site.render.page import render_course

OURS = "nvidia-h200"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A page measured on two cards, of which the second took twice the time."""
    root = repository(tmp_path, monkeypatch)
    names = {"flash": measurement(2000.0), "sdpa": measurement(3000.0), "m": quantity(3.0)}
    page = read_page(root / "docs/w1.py", root)
    ours, theirs = (record_path(root, slug, page) for slug in (OURS, BESIDE))
    text = ours.read_bytes()
    record_it(root, names, H100)
    theirs.parent.mkdir(parents=True)
    ours.replace(theirs)
    ours.write_bytes(text)
    return root


def state(root, slug):
    return load_edition(root, slug, find_pages(root)).pages["w1"].state


def test_an_edition_is_read_by_itself(root):
    """Neither pyproject.toml nor the list of what waits, nor another edition, is asked."""
    (root / "pyproject.toml").unlink()
    pages = find_pages(root)
    ours, theirs = (load_edition(root, slug, pages) for slug in (OURS, BESIDE))
    assert [gpu_of(root, slug) for slug in (OURS, BESIDE)] == ["NVIDIA H200", "NVIDIA H100 80GB HBM3"]
    medians = [edition.pages["w1"].record.names["flash"]["quantiles_us"]["0.5"] for edition in (ours, theirs)]
    assert medians == pytest.approx([1000.0, 2000.0], rel=0.01)
    assert ours.faults == theirs.faults == ()
    with pytest.raises(dataclasses.FrozenInstanceError):
        ours.slug = BESIDE


def test_a_page_of_other_versions_than_the_newest_is_a_stray(tmp_path):
    pages = {}
    for name, date, version in (("new", "2026-11-02", "2.9"), ("old", "2026-10-01", "2.8")):
        meta = {"page": f"docs/{name}.py", "provenance": {"date": date}}
        edition = {"gpu": "NVIDIA H200", "cuda": "13.0", "torch": version, "triton": "3.5"}
        pages[name] = PageRecord(tmp_path, FRESH, SimpleNamespace(edition=edition, meta=meta))
    (fault,) = Edition(tmp_path, OURS, pages).strays(pages)
    assert fault.path == "docs/old.py"
    assert "than docs/new.py (" in fault.message
    assert list(Edition(tmp_path, OURS, pages).strays(["old"])) == []


def test_a_page_is_fresh_stale_or_missing_in_each(root):
    assert (state(root, OURS), state(root, BESIDE), state(root, "nvidia-t4")) == (FRESH, FRESH, MISSING)
    stale(root, record_path(root, BESIDE, read_page(root / "docs/w1.py", root)))
    assert (state(root, OURS), state(root, BESIDE)) == (FRESH, STALE)
    path = root / f"records/{OURS}/docs/w1.ipynb"
    path.write_text(path.read_text().replace("1000.0", "1001.0"))
    (fault,) = load_edition(root, OURS, find_pages(root)).pages["w1"].faults
    assert fault.path == f"records/{OURS}/docs/w1.ipynb"
    assert fault.message.startswith("was changed by hand")


def test_a_history_that_cannot_be_read_is_a_fault_of_its_edition_alone(root):
    write(root, f"records/{BESIDE}/runs.json", "{}")
    pages = find_pages(root)
    assert load_edition(root, OURS, pages).faults == ()
    (fault,) = load_edition(root, BESIDE, pages).faults
    assert fault.path == f"records/{BESIDE}/runs.json"


def test_the_same_page_of_two_editions_has_the_values_and_the_stamp_of_each(root):
    material = load_material(root)
    ours, theirs = show(material, OURS), show(material, BESIDE)
    assert ours.problems == theirs.problems == []
    assert ours.pages is theirs.pages
    texts = [render_course(course)["w1"].inlined() for course in (ours, theirs)]
    for text, mine, other in zip(texts, ("1000", "500"), ("500", "1000"), strict=True):
        assert f">{mine}</a> TFLOP/s" in text
        assert f">{other}</a>" not in text
    for text, mine, other in zip(texts, ("H200", "H100"), ("H100", "H200"), strict=True):
        assert f"NVIDIA {mine}" in text
        assert f"NVIDIA {other}" not in text
    # One is shown again, after the other: nothing of it was left behind.
    assert render_course(show(material, OURS))["w1"].inlined() == texts[0]
