"""What no record would see is named before it is measured, and before it is built."""

import shutil
from pathlib import Path

import pytest
from tiny_repository import make_repository, write

from course_site.records.manifest import new_includes, strangers

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
        ("src/statistics.py", "src/ holds tiny alone: 'statistics' would stand before a library"),
        ("src/torch/__init__.py", "src/ holds tiny alone: 'torch' would stand before a library"),
        ("src/torch/sub/mod.py", "src/ holds tiny alone: 'torch' would stand before a library"),
        ("src/tiny/kernel.cpython-312-x86_64-linux-gnu.so", "is machine code"),
        ("src/tiny/kernel.pyc", "is machine code"),
        ("src/tiny/kernel/__init__.py", "is never imported beside the package kernel/"),
        ("statistics.py", "would stand before the library statistics where a command runs here"),
        ("torch.py", "would stand before the library torch where a command runs here"),
        ("pytest/__init__.py", "would stand before the library pytest where a command runs here"),
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
    ],
)
def test_what_stands_in_nobodys_way_is_let_be(root, harmless):
    write(root, harmless, "")
    assert list(strangers(root)) == []


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
