"""What no record would see is named before it is measured, and before it is built."""

import shutil
from pathlib import Path

import pytest
from tiny_repository import make_repository, write

from course_site.pages.page import Cell, Page
from course_site.records.manifest import DERIVED, derived_imports, new_includes, project_files, strangers

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = '[tool.hatch.build.targets.wheel]\npackages = ["src/tiny"]\n'


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    with (root / "pyproject.toml").open("a") as file:
        file.write(PACKAGES)
    return root


def test_the_repository_holds_no_stranger():
    assert list(strangers(REPOSITORY)) == []


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("src/statistics.py", "src/ holds tiny alone: 'statistics' would shadow a library"),
        ("src/torch/__init__.py", "src/ holds tiny alone: 'torch' would shadow a library"),
        ("src/torch/sub/mod.py", "src/ holds tiny alone: 'torch' would shadow a library"),
        ("src/tiny/kernel.cpython-312-x86_64-linux-gnu.so", "is machine code"),
        ("src/tiny/kernel.pyc", "is machine code"),
        ("src/tiny/sub/kernel.so", "src/tiny/sub/kernel.so: is machine code, which no record can tell"),
        ("src/tiny/kernel.dylib", "is machine code"),
        ("statistics.so", "statistics.so: would shadow the library statistics"),
        ("torch.cpython-312.pyd", "would shadow the library torch"),
        ("src/tiny/kernel/__init__.py", "is never imported beside the package kernel/"),
        ("statistics.py", "would shadow the library statistics where a command runs here"),
        ("torch.py", "would shadow the library torch where a command runs here"),
        ("pytest/__init__.py", "would shadow the library pytest where a command runs here"),
    ],
)
def test_what_python_would_import_in_the_place_of_something_else_is_named(root, planted, said):
    assert list(strangers(root)) == []
    write(root, planted, "")
    found = [f"{path}: {message}" for path, message in strangers(root)]
    assert len(found) == 1
    assert said in found[0]
    assert found[0].startswith(("src/", planted.split("/")[0]))


@pytest.mark.parametrize(
    "harmless",
    [
        "experiment.py",
        "src/tiny.egg-info/PKG-INFO",
        "src/__pycache__/x.pyc",
        "docs/statistics.py",
        "statistics/readme.py",
        "statistics.txt",
        "src/.hidden/kernel.so",
        "src/tiny/__pycache__/kernel.so",
        "src/tiny/.cache/kernel.so",
        "src/tiny.dist-info/PKG-INFO",
        "src/tiny/kernel/data.txt",
        "src/tiny/kernel.cu.md",
        "tiny.py",
    ],
)
def test_what_stands_in_nobodys_way_is_let_be(root, harmless):
    write(root, harmless, "")
    assert list(strangers(root)) == []


NO_SOURCES = (
    "site/a.py", "build/a.py", "wheelhouse/a.py", "records/a.py", "src/course_site/a.py", ".git/a.py", "src/.a.py",
    "src/tiny/__pycache__/a.py", "src/tiny/a.so", "src/tiny/a.pyc", "src/tiny/a.pyd", "src/tiny/a.dylib",
    "venv/lib/site-packages/a.py", "docs/one.py", "src/course_kernels/measure/derive.py",
    "src/course_kernels/measure/roofline.py", "src/course_kernels/measure/gate.py",
    "src/course_kernels/measure/provenance.py", "src/course_kernels/measure/__init__.py",
    "src/course_kernels/measure/messages.py",
)  # fmt: skip
SOURCES = (
    "docs/site/a.py", "src/build/a.py", "src/course_sites/a.py", "src/tiny/a.py", "src/tiny/a.bin", "a.toml",
    "docs/two.py", "src/course_kernels/measure/clock.py", "src/course_kernels/roofline.py",
    "src/course_kernels/measure/sub/gate.py", "src/tiny/__init__.py",
)  # fmt: skip


@pytest.mark.parametrize("name", [*NO_SOURCES, *SOURCES])
def test_a_file_is_a_source_by_where_it_lies(root, name):
    page = Page(Path("docs/one.py"), "one", "One", cells=(Cell("code", "x = 1"),))
    file = write(root, name, "")

    assert project_files([str(file)], root, page) == ([name] if name in SOURCES else [])
    assert project_files([str(file.parent), str(file) + "x"], root, page) == []


def test_a_cuda_source_brings_what_it_includes_and_a_header_brings_nothing(root):
    write(root, "src/tiny/tile.cuh", '#include "deep.cuh"\n')
    write(root, "src/tiny/deep.cuh", "")
    tile, deep = "src/tiny/tile.cuh", "src/tiny/deep.cuh"  # and kernel.cu includes the first

    assert project_files([str(root / "src/tiny/kernel.cu")], root) == [deep, "src/tiny/kernel.cu", tile]
    assert project_files([str(root / tile)], root) == [tile]


def test_without_a_page_every_page_is_a_file(root):
    assert project_files([str(write(root, "docs/one.py", ""))], root) == ["docs/one.py"]


def test_a_derived_file_brings_what_it_imports_and_each_counts_only_where_it_was_read(root):
    harness = "src/course_kernels/measure"
    files = [
        write(root, f"{harness}/{name}.py", f"from course_kernels.measure import {imports}\n")
        for name, imports in (("gate", "roofline"), ("roofline", "machine, gate"), ("machine", "derive"))
    ]
    page = Page(
        Path("docs/one.py"), "one", "One", cells=(Cell("code", f"import {'course_kernels'}.measure.gate"),)
    )

    assert project_files(map(str, files), root, page) == [
        f"{harness}/gate.py", f"{harness}/machine.py", f"{harness}/roofline.py"
    ]  # fmt: skip
    assert project_files(map(str, files[1:]), root, page) == []
    assert project_files(map(str, files[:1]), root, page) == [f"{harness}/gate.py"]


@pytest.mark.parametrize(
    ("source", "stems"),
    [
        ("x = 1", ""),
        ("import course_kernels.measure.machine, course_kernels.measure.gate", "gate machine"),
        ("import course_kernels.measure.machine.more", "machine"),
        ("import course_kernels.measure.clock", ""),
        ("import other.machine", ""),
        ("from course_kernels.measure import machine, clock, derive", "derive machine"),
        ("from course_kernels.measure.gate import check", "gate"),
        ("from course_kernels.measure import FasterThanFloor", "roofline"),  # where its name has its home
        ("from . import machine", ""),
        ("from .machine import x", ""),
        ("from course_kernels import measure\nmeasure.machine", "machine"),
        ("import course_kernels.measure\ncourse_kernels.measure.gate.check", "gate"),
        ("import course_kernels\ncourse_kernels.measure.gate", "gate"),
        ("import other\nother.machine", ""),
        ("f('course_kernels.measure.derive')", "derive"),
        ("f('machine', 3)", ""),
        ("%time machine", "machine"),
        ("%time machines", ""),
    ],
)
def test_what_is_derived_is_known_by_every_way_to_import_it(source, stems):
    assert sorted(derived_imports(source)) == stems.split()


def test_a_star_imports_all_that_is_derived():
    assert derived_imports("from course_kernels.measure import *") == DERIVED


@pytest.mark.parametrize("include", ['"new.cuh"', "<new.cuh>", "\\\n  <new.cuh>", '/* why */ "new.cuh"'])
def test_a_header_that_is_included_by_another_way_is_seen(root, include):
    source = write(root, "src/tiny/kernel.cu", f"#include {include}\n")
    write(root, "src/tiny/new.cuh", "")
    manifest = {"src/tiny/kernel.cu": ""}
    assert new_includes(manifest, root) == [
        "src/tiny/kernel.cu now includes src/tiny/new.cuh, which no record knows"
    ]
    assert new_includes({**manifest, "src/tiny/new.cuh": ""}, root) == []
    source.unlink()
    assert new_includes(manifest, root) == []  # that it is gone is said elsewhere


def test_a_header_alone_is_followed_and_one_that_was_reached_is_not_followed_again(root):
    """By itself it is looked at where no source includes it any more."""
    write(root, "src/tiny/kernel.cu", '#include "a.cuh"\n')
    write(root, "src/tiny/a.cuh", '#include "b.cuh"\n')
    write(root, "src/tiny/b.cuh", "")
    kernel, a = "src/tiny/kernel.cu", "src/tiny/a.cuh"
    new = "now includes src/tiny/b.cuh, which no record knows"
    assert new_includes([a], root) == [f"{a} {new}"]
    assert new_includes([a, kernel], root) == new_includes([kernel, a], root) == [f"{kernel} {new}"]
    assert new_includes([kernel], root) == [
        f"{kernel} now includes src/tiny/a.cuh, which no record knows", f"{kernel} {new}"
    ]  # fmt: skip
    write(root, "src/tiny/notes.md", '#include "b.cuh"\n')
    assert new_includes(["src/tiny/notes.md"], root) == []


def test_an_include_that_cannot_be_followed_any_more_makes_a_record_stale(root):
    write(root, "src/tiny/kernel.cu", "#define H <mma.h>\n#include H\n")
    assert new_includes({"src/tiny/kernel.cu": ""}, root)[0].startswith(
        "src/tiny/kernel.cu cannot be followed (kernel.cu, line 2: #include H: write the file's name"
    )


def test_a_header_is_looked_for_from_the_source_that_is_compiled(root):
    """Where a header stands in another folder, what it names in angle brackets stands beside the source."""
    write(root, "src/tiny/kernel.cu", '#include "../shared/a.cuh"\n')
    write(root, "src/shared/a.cuh", "#include <b.cuh>\n")
    write(root, "src/tiny/b.cuh", "")
    names = ("src/tiny/kernel.cu", "src/shared/a.cuh", "src/tiny/b.cuh")
    assert new_includes(dict.fromkeys(names, ""), root) == []
    assert len(new_includes(dict.fromkeys(names[:2], ""), root)) == 1


def test_a_folder_without_the_list_of_packages_is_not_judged(tmp_path):
    shutil.copytree(REPOSITORY / "src/course_labs", tmp_path / "src/anything")
    write(tmp_path, "pyproject.toml", "")
    assert [path for path, _ in strangers(tmp_path)] == []


def test_what_was_recorded_apart_and_is_told_makes_a_page_stale(tmp_path):
    folder = tmp_path / "records" / "nvidia-h200"
    folder.mkdir(parents=True)
    for name in ("harness.jsonl", "changes.json"):
        (folder / name).write_text("{}")
    found = project_files([str(folder / "harness.jsonl"), str(folder / "changes.json")], tmp_path)
    assert found == ["records/nvidia-h200/harness.jsonl"]


def test_records_of_other_chips_make_a_page_stale_that_shows_them(tmp_path):
    folder = tmp_path / "records" / "chips"
    folder.mkdir(parents=True)
    (folder / "gfx942.json").write_text("{}")
    (folder.parent / "seals.txt").write_text("")
    found = project_files([str(folder / "gfx942.json"), str(folder.parent / "seals.txt")], tmp_path)
    assert found == ["records/chips/gfx942.json"]
