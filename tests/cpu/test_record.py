"""Records: sealed when written, refused when cut, edited or stale."""

import json
import os
from pathlib import Path

import pytest

from course_site.pages.page import Cell, Page
from course_site.records.changes import append, load, moved
from course_site.records.digest import file_digest
from course_site.records.record import (
    Record,
    RecordError,
    build_record,
    edition_of,
    is_sealed,
    record_path,
    seal,
    seconds_of,
    stale_reasons,
)
from course_site.values.uncertainty import BetweenRuns
from course_site.values.values import walk_leaves

PROVENANCE = {
    "gpu": "NVIDIA H200", "driver": "580.1", "cuda": "13.0", "torch": "2.11.0+cu130", "triton": "3.6.0",
    "python": "3.12.3", "date": "2026-11-21T10:00:00+00:00", "commit": "abc", "dirty": False,
}  # fmt: skip
PAGE = Page(Path("docs/a.py"), "a", "A", cells=(Cell("markdown", "# A"), Cell("code", "x = 1")))


def output(**names):
    data = {
        "application/vnd.course.record+json": {"names": names},
        "text/plain": f"recorded: {', '.join(names)}",
    }
    return {"output_type": "display_data", "metadata": {}, "data": data}


def quantity(value, how="computed"):
    return {"kind": "quantity", "value": value, "unit": "1", "how": how}


def timed(median, iqr=0.01):
    q = {"0.25": median * (1 - iqr / 2), "0.5": median, "0.75": median * (1 + iqr / 2)}
    return {"kind": "measurement", "quantiles_us": q, "n": 20}


def make(root, *, names=None, page=PAGE):
    (root / "src").mkdir(exist_ok=True)
    (root / "src/kernel.cu").write_text("int x = 1;  // one\n")
    manifest = {"src/kernel.cu": file_digest(root, "src/kernel.cu")}
    return build_record(page, [[output(**(names or {"m": quantity(1.0)}))]], [0.5], manifest, PROVENANCE)


def test_a_record_survives_the_disk(tmp_path):
    record = make(tmp_path)
    path = record_path(tmp_path, "nvidia-h200", PAGE)
    record.save(path)
    assert path == tmp_path / "records/nvidia-h200/docs/a.ipynb"
    assert Record.load(path) == record
    assert [p.name for p in path.parent.iterdir()] == ["a.ipynb"]


def test_edition_is_gpu_and_minor_versions():
    assert edition_of(PROVENANCE) == {
        "gpu": "NVIDIA H200", "slug": "nvidia-h200", "cuda": "13.0", "torch": "2.11", "triton": "3.6",
    }  # fmt: skip


def test_a_page_that_used_no_gpu_is_of_no_edition(tmp_path):
    assert edition_of(PROVENANCE | {"gpu": None}) == {}
    assert not build_record(PAGE, [[]], [0.5], {}, PROVENANCE | {"gpu": None}).measured
    assert make(tmp_path).measured


def test_a_version_is_cut_to_its_first_two_numbers():
    versions = {"cuda": "13.0.1", "torch": "2.11+cu130.1", "triton": "3"}
    found = edition_of(PROVENANCE | versions)
    assert [found[name] for name in versions] == ["13.0", "2.11", "3"]


def test_a_record_holds_what_its_page_was_and_how_it_ran():
    cells = (Cell("code", "x = 1", ("tag",)), Cell("markdown", "# B"), Cell("code", "y = 1"))
    page = Page(Path("docs/b.py"), "b", "B", cells=cells)
    files = {"src/b.py": "2", "src/a.py": "1"}
    record = build_record(page, [[output(m=quantity(1.0))], []], [0.12345, 2.0], files, PROVENANCE)

    assert record.notebook["cells"] == [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "cell-01",
            "metadata": {"tags": ["tag"]},
            "outputs": [output(m=quantity(1.0))],
            "source": "x = 1",
        },
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "cell-02",
            "metadata": {},
            "outputs": [],
            "source": "y = 1",
        },
    ]
    assert (record.notebook["nbformat"], record.notebook["nbformat_minor"]) == (4, 5)
    meta = record.meta
    assert (meta["schema"], meta["page"], meta["id"]) == (2, "docs/b.py", "b")
    assert meta["seconds"] == [0.123, 2.0]
    assert record.seconds == 2.123
    assert list(meta["manifest"].items()) == [("src/a.py", "1"), ("src/b.py", "2")]
    assert record.run == "b|2026-11-21T10:00:00+00:00"


def test_a_seal_is_over_everything_but_itself():
    sealed = seal({"b": 1, "a": "µ"})
    assert sealed["checksum"] == "7b0cd9f1641262553fbbbd783da3c9f002390aae870873366d8786810e630821"
    assert seal(sealed) == sealed == seal({"a": "µ", "b": 1})
    assert is_sealed(sealed)
    assert not is_sealed(sealed | {"b": 2})
    assert not is_sealed({"a": "µ", "b": 1})


def test_what_is_written_is_read_by_people(tmp_path):
    """Indented by one, with every letter as it is, and a line for a list of numbers, whatever their signs."""
    columns = {"t_s": [-1.5, 2e-07, 3], "one": [7], "none": [], "said": ["µ"], "of": [[1, 2], [3.25, -4]]}
    make(tmp_path, names={"m": {"kind": "trace", "columns": columns}}).save(tmp_path / "r.ipynb")

    text = (tmp_path / "r.ipynb").read_text(encoding="utf-8")
    assert text.startswith('{\n "cells": [\n  {\n')
    assert text.endswith("}\n")
    for line in ('"t_s": [-1.5, 2e-07, 3],', '"one": [7],', '"none": [],', "[1, 2],", "[3.25, -4]", '"µ"'):
        assert line in [found.strip() for found in text.splitlines()]


def test_a_record_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    make(tmp_path).save(tmp_path / "r.ipynb")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        make(tmp_path, names={"m": quantity(2.0)}).save(tmp_path / "r.ipynb")

    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_samples_stand_on_one_line(tmp_path):
    samples = [1.25, 2.5, 1e-05]
    record = make(tmp_path, names={"m": {"kind": "trace", "columns": {"t_s": samples}}})
    record.save(tmp_path / "r.ipynb")
    assert "[1.25, 2.5, 1e-05]" in (tmp_path / "r.ipynb").read_text()
    assert Record.load(tmp_path / "r.ipynb").names["m"]["columns"]["t_s"] == samples


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda t: t[: len(t) // 2], "is cut short or not JSON"),
        (lambda t: t.replace('"value": 1.0', '"value": 1.5'), "was changed by hand"),
        (lambda t: t.replace('"source": "x = 1"', '"source": "x = 2"'), "was changed by hand"),
        (lambda t: t.replace('"commit": "abc"', '"commit": "abd"'), "was changed by hand"),
        (lambda _: "{}", "is not a record of this project"),
        (
            lambda t: t.replace('"schema": 2', '"schema": 1'),
            "has schema 1, this version reads 2; measure it again",
        ),
    ],
)
def test_a_harmed_record_is_refused_by_name(tmp_path, harm, said):
    path = tmp_path / "r.ipynb"
    make(tmp_path).save(path)
    before = path.read_text()
    path.write_text(harm(before))
    assert path.read_text() != before
    with pytest.raises(RecordError) as error:
        Record.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)


def test_a_record_of_another_schema_still_tells_how_long_it_took(tmp_path):
    path = tmp_path / "r.ipynb"
    make(tmp_path).save(path)
    path.write_text(path.read_text().replace('"schema": 2', '"schema": 1'))
    assert seconds_of(path) == 0.5
    path.write_text(path.read_text()[:100])
    assert seconds_of(path) is None
    assert seconds_of(tmp_path / "none.ipynb") is None


def test_a_record_is_dirty_where_its_files_differ_from_the_commit_and_the_card_is_real(tmp_path):
    def dirty(**more):
        return build_record(PAGE, [[]], [0.5], {}, PROVENANCE | more).dirty

    assert dirty(dirty=True)
    assert not dirty()
    assert not dirty(dirty=True, fake=True)
    assert not dirty(fake=True)


def test_a_made_up_gpu_is_one_that_nobody_makes_up_now(monkeypatch):
    def made_up(**more):
        return build_record(PAGE, [[]], [0.5], {}, PROVENANCE | more).made_up

    monkeypatch.delenv("COURSE_FAKE_GPUS", raising=False)
    assert made_up(fake=True)
    assert not made_up()
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    assert not made_up(fake=True)
    assert not made_up()


def test_a_name_recorded_twice_is_refused(tmp_path):
    page = Page(Path("docs/a.py"), "a", "A", cells=(Cell("code", "x = 1"), Cell("code", "y = 1")))
    outputs = [[output(m=quantity(1.0))], [output(m=quantity(2.0))]]
    with pytest.raises(RecordError, match="'m' is recorded twice"):
        build_record(page, outputs, [1, 1], {}, PROVENANCE)


@pytest.mark.parametrize(
    ("first", "second", "twice"),
    [
        ({"a": {"x": quantity(1.0)}}, {"a": {"y": quantity(2.0)}}, None),
        ({"a": {"x": quantity(1.0)}}, {"b": quantity(2.0)}, None),
        ({"a": {"x": {"u": quantity(1.0)}}}, {"a": {"x": {"v": quantity(2.0)}}}, None),
        ({"a": {"x": quantity(1.0)}}, {"a": {"x": quantity(2.0)}}, "x"),
        ({"a": {"x": quantity(1.0)}}, {"a": quantity(2.0)}, "a"),
        ({"a": quantity(1.0)}, {"a": {"x": quantity(2.0)}}, "a"),
    ],
)
def test_a_later_cell_may_add_to_a_group_and_replaces_nothing(first, second, twice):
    page = Page(Path("docs/a.py"), "a", "A", cells=(Cell("code", "x = 1"), Cell("code", "y = 1")))
    silent = {"output_type": "stream", "name": "stdout", "text": "x"}
    outputs = [[silent, output(**first)], [output(**second)]]
    if twice:
        with pytest.raises(RecordError, match=f"^the name '{twice}' is recorded twice$"):
            build_record(page, outputs, [1, 1], {}, PROVENANCE)
        return
    names = build_record(page, outputs, [1, 1], {}, PROVENANCE).names
    for given in (first, second):
        for name, leaf in walk_leaves(given):
            assert dict(walk_leaves(names))[name] == leaf
    assert len(dict(walk_leaves(names))) == 2


def test_fresh_until_code_changes(tmp_path):
    record = make(tmp_path)
    assert stale_reasons(PAGE, record, tmp_path) == []
    reworded = Page(PAGE.path, "a", "B", cells=(Cell("markdown", "# B"), Cell("code", "x = 1  # one")))
    assert stale_reasons(reworded, record, tmp_path) == []
    (tmp_path / "src/kernel.cu").write_text("int x = 1;  // first\n")
    assert stale_reasons(PAGE, record, tmp_path) == []


def test_stale_says_what_changed(tmp_path):
    record = make(tmp_path)
    changed = Page(PAGE.path, "a", "A", cells=(Cell("code", "x = 2"),))
    assert stale_reasons(changed, record, tmp_path) == ["docs/a.py: code cell 1 changed"]
    of = "the record is of docs/a.py (a)"
    for path, name in (("docs/b.py", "a"), ("docs/a.py", "b"), ("docs/b.py", "b")):
        assert stale_reasons(Page(Path(path), name, "A", cells=PAGE.cells), record, tmp_path) == [of]
    longer = Page(PAGE.path, "a", "A", cells=(*PAGE.cells, Cell("code", "y = 1")))
    assert stale_reasons(longer, record, tmp_path) == ["docs/a.py has 2 code cells, the record has 1"]
    assert stale_reasons(Page(PAGE.path, "a", "A", cells=()), record, tmp_path) == [
        "docs/a.py has 0 code cells, the record has 1"
    ]
    (tmp_path / "src/kernel.cu").write_text("int x = 2;\n")
    assert stale_reasons(PAGE, record, tmp_path) == ["src/kernel.cu changed"]
    (tmp_path / "src/kernel.cu").unlink()
    assert stale_reasons(PAGE, record, tmp_path) == ["src/kernel.cu is gone"]


def test_what_moved_is_more_than_the_spread(tmp_path):
    old = make(tmp_path, names={"a": timed(100.0), "b": timed(100.0), "c": quantity(3.0)})
    new = make(tmp_path, names={"a": timed(101.0), "b": timed(110.0), "c": quantity(4.0)})
    found = moved(old, new, BetweenRuns())
    assert [str(entry) for entry in found] == ["a.b: 100 -> 110 µs (+10.0%)", "a.c: 3 -> 4 1 (+33.3%)"]
    append(tmp_path, "nvidia-h200", found)
    append(tmp_path, "nvidia-h200", found[:1])
    assert [entry["name"] for entry in load(tmp_path, "nvidia-h200")] == ["a.b", "a.c", "a.b"]
    assert moved(None, new, BetweenRuns()) == []
    assert json.loads((tmp_path / "records/nvidia-h200/changes.json").read_text())
