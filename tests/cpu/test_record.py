"""Records: sealed when written, refused when cut, edited or stale."""

import json
from pathlib import Path

import pytest

from course_site.numbers.spread import BetweenRuns
from course_site.pages.page import Cell, Page
from course_site.records.changes import append, load, moved
from course_site.records.digest import file_digest
from course_site.records.record import (
    Record,
    RecordError,
    build_record,
    edition_of,
    record_path,
    seconds_of,
    stale_reasons,
)

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
    manifest = {"src/kernel.cu": file_digest(root / "src/kernel.cu")}
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


def test_a_name_recorded_twice_is_refused(tmp_path):
    page = Page(Path("docs/a.py"), "a", "A", cells=(Cell("code", "x = 1"), Cell("code", "y = 1")))
    outputs = [[output(m=quantity(1.0))], [output(m=quantity(2.0))]]
    with pytest.raises(RecordError, match="'m' is recorded twice"):
        build_record(page, outputs, [1, 1], {}, PROVENANCE)


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
