"""Files that a page's cell makes: kept beside the record, sealed by it, refused where they are not what it states."""

import re
import tarfile

import pytest
from test_execute import failure, run
from test_record import PROVENANCE
from tiny_repository import make_repository, write, write_page

from course_kernels.measure import artifact
from course_kernels.measure.artifacts import FOLDER, LIMIT_BYTES
from course_site import docs
from course_site.pages.page import read_page
from course_site.records import run_history
from course_site.records.artifacts import faults, folder_of
from course_site.records.manifest import project_files
from course_site.records.record import Record, build_record, record_path
from course_site.site.course import load_course
from course_site.site.notebook import published_notebook
from course_site.site.render.page import render_course


@pytest.fixture
def root(tmp_path, monkeypatch):
    return make_repository(tmp_path, monkeypatch)


# --- in a cell --------------------------------------------------------------------------------------


def test_a_cell_is_told_what_it_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    (tmp_path / "made.bin").write_bytes(b"abc")
    found = artifact("a.bin", b"abc"), artifact("b.bin", tmp_path / "made.bin")
    for leaves in found:
        assert leaves["size"].value == 3
        assert leaves["sha256"].value.startswith("ba7816bf")
    assert [leaves["file"].value for leaves in found] == ["a.bin", "b.bin"]
    kept = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    assert kept == {"a.bin": b"abc", "b.bin": b"abc"}


def test_outside_of_a_page_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.chdir(tmp_path)
    assert artifact("a.bin", b"abc")["size"].value == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a/b.bin", "../b.bin", ".hidden", "", "a b", "b\\c", "x" * 81, None])
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(ValueError, match="expected a plain file name"):
        artifact(name, b"abc")
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_name_are_refused_also_in_other_capitals(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    artifact("a.bin", b"abc")
    for name in ("a.bin", "A.bin"):
        with pytest.raises(ValueError, match="this page has made a file of that name already"):
            artifact(name, b"other")
    assert (tmp_path / "a.bin").read_bytes() == b"abc"


def test_what_is_too_large_empty_absent_or_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path / "kept"))
    assert artifact("most.bin", bytes(LIMIT_BYTES))["size"].value == LIMIT_BYTES
    for content in (bytes(LIMIT_BYTES + 1), write(tmp_path, "large", "x" * (LIMIT_BYTES + 1))):
        with pytest.raises(ValueError, match=f"has {LIMIT_BYTES + 1} bytes, and at most {LIMIT_BYTES}"):
            artifact("large.bin", content)
    with pytest.raises(ValueError, match="is empty"):
        artifact("empty.bin", b"")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        artifact("absent.bin", tmp_path / "absent")
    with pytest.raises(TypeError, match="expected bytes or a path, got int"):
        artifact("number.bin", 3)
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["most.bin"]


# --- from a page to its record ------------------------------------------------------------------------

KEEPS = """
import os, pathlib
folder = pathlib.Path(os.environ["COURSE_ARTIFACTS"])
folder.mkdir(exist_ok=True)
(folder / "a.bin").write_bytes(b"{content}")
"""


def measure(root, *options):
    return docs.main(["--measure-only", *options], root)


def beside(root, name="one"):
    folder = root / f"records/nvidia-h200/docs/{name}.artifacts"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_a_file_travels_with_its_record(root, tmp_path):
    write_page(root, "one", KEEPS.format(content="first"))
    write_page(root, "two", "1")
    file = tmp_path / "out" / "new.tar.gz"
    assert measure(root, "--archive", str(file)) == 0
    assert beside(root) == {"a.bin": b"first"}
    said = Record.load(root / "records/nvidia-h200/docs/one.ipynb").artifacts
    assert said["a.bin"]["bytes"] == 5
    assert re.fullmatch("[0-9a-f]{64}", said["a.bin"]["sha256"])
    assert Record.load(root / "records/nvidia-h200/docs/two.ipynb").artifacts == {}
    with tarfile.open(file) as tar:
        names = tar.getnames()
    assert "records/nvidia-h200/docs/one.artifacts/a.bin" in names
    assert "records/nvidia-h200/docs/one.artifacts" not in names


def test_a_new_run_puts_its_file_in_the_place_of_the_old_one_and_leaves_no_other(root):
    write_page(root, "one", KEEPS.format(content="first").replace("a.bin", "old.bin"))
    assert measure(root) == 0
    write_page(root, "one", KEEPS.format(content="second"))
    assert measure(root) == 0
    assert beside(root) == {"a.bin": b"second"}
    write_page(root, "one", "1")
    assert measure(root) == 0
    assert not (root / "records/nvidia-h200/docs/one.artifacts").exists()


def test_a_page_whose_folder_holds_what_is_no_artifact_fails_in_one_line(root):
    path = write_page(root, "one", KEEPS.format(content="x").replace("a.bin", ".a.part"))
    assert "expected a plain file name" in str(failure(root, path))
    path = write_page(root, "one", KEEPS.format(content="x").replace('write_bytes(b"x")', "mkdir()"))
    assert "a.bin: is not a file" in str(failure(root, path))


def test_a_change_of_prose_leaves_it_fresh_and_a_changed_file_is_measured_again(root, capsys):
    path = write_page(root, "one", KEEPS.format(content="first"))
    assert measure(root) == 0
    page = root / path
    page.write_text(page.read_text().replace("Prose.", "Other prose."))
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "0 pages" in capsys.readouterr().out
    (root / "records/nvidia-h200/docs/one.artifacts/a.bin").write_bytes(b"other")
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "one.artifacts/a.bin is not the file that one.ipynb states" in capsys.readouterr().out
    assert measure(root, "--stale") == 0
    assert beside(root) == {"a.bin": b"first"}


def test_a_page_that_reads_what_another_one_made_depends_on_it(root):
    write_page(root, "one", KEEPS.format(content="first"))
    assert measure(root) == 0
    made = "records/nvidia-h200/docs/one.artifacts/a.bin"
    path = write_page(
        root, "two", f"data = open({made!r}, 'rb').read(); open({str(root / 'pyproject.toml')!r})"
    )
    assert set(run(root, path).meta["manifest"]) == {made, "pyproject.toml"}
    other = write(root, "records/nvidia-h200/docs/one.ipynb", "{}")
    assert project_files([str(other)], root) == []


# --- what a build refuses -----------------------------------------------------------------------------

PAGE = """
# ---
# id: one
# title: One
# needs: gpu
# description: A page
# ---

# %% [markdown]
# # One
#
# Take [the weights](artifact:a.bin).

# %%
1
"""


@pytest.fixture
def sealed(tmp_path, monkeypatch):
    """A repository whose one page has a record with two artifacts."""
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    write(root, "docs/one.py", PAGE.lstrip())
    page = read_page(root / "docs/one.py", root)
    record = build_record(page, [[]], [1.0], {}, PROVENANCE, {"a.bin": bytes(7_200_000), "b.bin": b"bb"})
    record.save(record_path(root, "nvidia-h200", page))
    run_history.append(root, "nvidia-h200", record)
    return root


FOLDER_OF_ONE = "records/nvidia-h200/docs/one.artifacts"


def problems(root):
    course = load_course(root)
    render_course(course)
    assert all("\n" not in str(problem) for problem in course.problems)
    return [str(problem) for problem in course.problems]


def shown(root):
    course = load_course(root)
    return course, render_course(course)["one"]


def test_a_link_names_the_file_and_says_its_size(sealed):
    course, rendered = shown(sealed)
    assert course.problems == []
    assert "[the weights](one.artifacts/a.bin)" in rendered.markdown
    assert re.search(r'title="sha256 [0-9a-f]{64}">7\.2 MB</span>\)', rendered.markdown)
    assert course.artifacts("one")["a.bin"] == sealed / FOLDER_OF_ONE / "a.bin"
    assert "[the weights](one.artifacts/a.bin) (7.2 MB)" in published_notebook(
        course, course.page("one"), rendered
    ).replace("\\n", "\n")


def test_another_page_links_it_from_where_it_stands(sealed):
    head = "# ---\n# id: two\n# title: Two\n# description: A page\n# ---\n\n"
    page = head + "# %% [markdown]\n# See [it](artifact:one/b.bin).\n"
    write(sealed, "docs/deep/two.py", page)
    course = load_course(sealed)
    assert "[it](../one.artifacts/b.bin) (" in render_course(course)["two"].markdown
    write(sealed, "docs/deep/two.py", page.replace("one/b.bin", "three/b.bin"))
    assert any("there is no page with the id 'three'" in line for line in problems(sealed))


def test_a_link_to_a_file_that_no_record_has_is_refused(sealed):
    write(sealed, "docs/one.py", PAGE.lstrip().replace("artifact:a.bin", "artifact:c.bin"))
    assert any("has no such file; it has a.bin, b.bin" in line for line in problems(sealed))


def change(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda f: change(f / "b.bin"), "b.bin: is not the file that one.ipynb states"),
        (lambda f: (f / "b.bin").unlink(), "b.bin: is missing, and one.ipynb states it"),
        (lambda f: (f / "c.bin").write_bytes(b"c"), "c.bin: one.ipynb states no such file; delete it"),
        (lambda f: ((f / "b.bin").unlink(), (f / "b.bin").symlink_to(f / "a.bin")), "b.bin: is missing"),
        (lambda f: f.rename(f.with_name("two.artifacts")), "two.artifacts: lies beside no record: delete it"),
    ],
    ids=["a changed byte", "missing", "superfluous", "a link", "a folder of no page"],
)
def test_what_is_not_what_the_record_states_stops_the_build(sealed, spoil, said):
    spoil(sealed / FOLDER_OF_ONE)
    assert any(said in line and line.startswith("records/nvidia-h200/docs/") for line in problems(sealed))
    draft = load_course(sealed, draft=True)
    assert draft.problems == []
    assert "the weights" in render_course(draft)["one"].markdown


def test_a_page_that_waits_shows_the_words_without_a_link(sealed):
    write(
        sealed, "records/waiting.toml",
        '[[page]]\npath = "docs/one.py"\nsince = "2026-11-23"\nreason = "new"\n',
    )  # fmt: skip
    (sealed / "records/nvidia-h200/docs/one.ipynb").unlink()
    for path in (sealed / FOLDER_OF_ONE).iterdir():
        path.unlink()
    (sealed / FOLDER_OF_ONE).rmdir()
    course, rendered = shown(sealed)
    assert course.problems == []
    assert "Take the weights." in rendered.markdown


def test_the_seal_holds_what_is_said_of_a_file(sealed):
    path = sealed / "records/nvidia-h200/docs/one.ipynb"
    change(folder_of(path) / "b.bin")
    new = Record.load(path).artifacts["b.bin"]["sha256"]
    path.write_text(path.read_text().replace(new, "0" * 64))
    assert any("was changed by hand" in line for line in problems(sealed))
    assert list(faults(path, {}))
