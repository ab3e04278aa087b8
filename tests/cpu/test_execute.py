"""Pages that run in processes of their own, on fake devices."""

import time
from pathlib import Path

import pytest
from tiny_repository import commit_all, make_repository, recording, write, write_page

import course_kernels
from course_site.pages.page import read_page
from course_site.records.execute import PageFailed, execute, revision
from course_site.records.gpus import find_gpus
from course_site.records.manifest import project_files
from course_site.records.record import RecordError, stale_reasons


@pytest.fixture
def root(tmp_path, monkeypatch):
    return make_repository(tmp_path, monkeypatch)


def run(root, path, progress=None):
    return execute(read_page(root / path, root), root, find_gpus()[0], progress)


def failure(root, path):
    with pytest.raises(PageFailed) as caught:
        run(root, path)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_page_becomes_a_record_and_leaves_nothing_else(root, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    path = write_page(
        root,
        "one",
        recording("seen"),
        "import os, sys, time\nprint(os.environ['CUDA_VISIBLE_DEVICES'], os.environ.get('TRITON_INTERPRET'))\n"
        "print('to the error stream', file=sys.stderr)\ntime.sleep(0.2)",
    )
    commit = commit_all(root)
    before = sorted(root.rglob("*"))
    cells = []
    started = time.monotonic()
    record = run(root, path, lambda state: cells.append(state.cell))
    all_took = time.monotonic() - started
    assert record.names["seen"]["value"] == 1
    assert [o["text"] for o in record.outputs[1]] == ["0 None\n"]
    assert [cell["source"][:4] for cell in record.notebook["cells"]] == ["from", "impo"]
    assert len(record.meta["seconds"]) == 2
    assert 0.2 <= record.meta["seconds"][1] < all_took
    assert record.edition["slug"] == "nvidia-h200"
    assert (record.meta["provenance"]["commit"], record.meta["provenance"]["dirty"]) == (commit, False)
    assert cells == [1, 2]
    assert stale_reasons(read_page(root / path, root), record, root) == []
    caches = {"__pycache__", ".cache", ".git"}
    left = [p for p in sorted(root.rglob("*")) if caches.isdisjoint(p.parts)]
    assert left == [p for p in before if caches.isdisjoint(p.parts)]


def test_the_manifest_holds_all_that_ran(root):
    write(root, "src/tiny/sub/__init__.py", "import tiny.kernel\n")
    write(root, "src/course_kernels/__init__.py", "")
    write(root, "src/course_kernels/measure/__init__.py", "")
    write(root, "src/course_kernels/measure/roofline.py", "")
    write(root, "src/course_kernels/measure/clock.py", "import course_kernels.measure.roofline")
    write(root, "src/course_kernels/measure/messages.py", "")
    write(root, "src/tiny/unused.py", "")
    write(root, "src/tiny/data.bin", "xyz")
    path = write_page(
        root,
        "one",
        "import tiny.sub\nfrom course_kernels.measure import clock, messages",
        "def later():\n    from tiny import lazy\n    return lazy.add(1, 1)\nlater()",
        "import pathlib, os\nfrom pathlib import Path\nfolder = Path(tiny.sub.__file__).parents[1]\n"
        "text = (folder / 'kernel.cu').read_text() + open(folder / 'tile.cuh').read()\n"
        "os.close(os.open(os.fsencode(folder / 'data.bin'), os.O_RDONLY))\n"
        "(folder / 'written.txt').write_text('by the page')",
    )
    assert list(run(root, path).meta["manifest"]) == [
        "src/course_kernels/__init__.py",
        "src/course_kernels/measure/clock.py",
        "src/tiny/__init__.py",
        "src/tiny/data.bin",
        "src/tiny/kernel.cu",
        "src/tiny/kernel.py",
        "src/tiny/lazy.py",
        "src/tiny/sub/__init__.py",
        "src/tiny/tile.cuh",
    ]


def test_what_never_makes_a_page_stale_is_not_in_the_manifest(root):
    path = write_page(root, "one", "1")
    page = read_page(root / path, root)
    names = (
        "src/course_site/charts/plots.py", "src/course_kernels/measure/machine.py", "docs/one.py", "site/index.html",
        ".git/HEAD", ".cache/charts/a.svg", "src/tiny/__pycache__/kernel.cpython-312.pyc", "records/a/b.ipynb",
    )  # fmt: skip
    files = [write(root, name, "") if name != path else root / name for name in names]
    files += [root / "src/tiny/gone.py", write(root.parent, "outside.py", ""), root / "src/tiny/kernel.py"]
    assert project_files(map(str, files), root, page) == ["src/tiny/kernel.py"]


# --- children ------------------------------------------------------------------------------------

KERNELS = Path(course_kernels.__file__)


def with_children(root):
    """A repository whose children can be told from each other by what they import."""
    write(root, "src/course_kernels/__init__.py", KERNELS.read_text(encoding="utf-8"))
    for name in ("crash", "grandchild", "reset", "killed", "unused"):
        write(root, f"src/course_kernels/{name}.py", "")


def test_a_child_that_crashes_and_a_grandchild_have_told_what_they_read(root):
    with_children(root)
    path = write_page(
        root,
        "one",
        "import os, subprocess, sys",
        "crash = 'import course_kernels.crash, os; os.abort()'\n"
        "killed = 'import course_kernels.killed, os; os.kill(os.getpid(), 9)'\n"
        "inner = [sys.executable, '-c', 'import course_kernels.grandchild']\n"
        "outer = f'import subprocess; subprocess.run({inner!r}, check=True)'\n"
        "[subprocess.run([sys.executable, '-c', text]).returncode for text in (crash, killed, outer)]",
    )
    record = run(root, path)
    assert record.outputs[1][-1]["data"]["text/plain"] == "[-6, -9, 0]"
    assert list(record.meta["manifest"]) == [
        "src/course_kernels/__init__.py",
        "src/course_kernels/crash.py",
        "src/course_kernels/grandchild.py",
        "src/course_kernels/killed.py",
    ]


def test_a_command_that_sets_its_own_path_is_watched_too(root):
    with_children(root)
    path = write_page(
        root,
        "one",
        "import subprocess, sys\n"
        "command = f'PYTHONPATH=src {sys.executable} -m course_kernels.reset | cat'\n"
        "subprocess.run(['bash', '-c', command], check=True)",
    )
    assert list(run(root, path).meta["manifest"]) == [
        "src/course_kernels/__init__.py",
        "src/course_kernels/reset.py",
    ]


def test_a_compiled_file_in_the_cache_stands_for_its_source(root, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    path = write_page(root, "one", "import tiny.kernel")
    first = list(run(root, path).meta["manifest"])
    assert list((root / "src/tiny/__pycache__").glob("kernel.*.pyc"))
    assert list(run(root, path).meta["manifest"]) == first == ["src/tiny/__init__.py", "src/tiny/kernel.py"]


def test_a_machines_own_start_up_file_still_runs(root, tmp_path, monkeypatch):
    write(tmp_path, "machine/sitecustomize.py", "import os\nos.environ['MACHINE'] = 'set'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "machine"))
    path = write_page(root, "one", "import os\nos.environ['MACHINE']")
    assert run(root, path).outputs[0][0]["data"]["text/plain"] == "'set'"


def test_what_lies_in_the_folder_a_page_runs_in_is_no_library(root):
    write(root, "statistics.py", "mean = None\n")
    path = write_page(
        root,
        "one",
        "import statistics, subprocess, sys\n"
        "child = subprocess.run([sys.executable, '-c', 'import statistics; print(statistics.mean([1]))'],\n"
        "    capture_output=True, text=True)\n"
        "statistics.mean([3]), child.stdout",
    )
    assert run(root, path).outputs[0][0]["data"]["text/plain"] == "(3, '1\\n')"


# --- what is derived -----------------------------------------------------------------------------

MACHINE = "src/course_kernels/measure/machine.py"


@pytest.mark.parametrize(
    ("cell", "files", "counts"),
    [
        ("from course_kernels.measure import compare", {}, False),
        ("from course_kernels.measure.machine import machine_for", {}, True),
        ("from course_kernels.measure import machine", {}, True),
        ("import course_kernels.measure.machine as sheets", {}, True),
        ("import course_kernels.measure as m\nm.machine", {}, True),
        ("__import__('course_kernels.measure.machine')", {}, True),
        ("from course_kernels.measure import FasterThanFloor", {"roofline": "from .machine import x"}, False),
        (
            "from course_kernels.measure import FasterThanFloor",
            {"roofline": "from course_kernels.measure.machine import x"},
            True,
        ),
        ("%time\nimport course_kernels.measure.machine", {}, True),
        ("1", {"run": "import course_kernels.measure.machine"}, False),
        ("1", {"../tiny": "from course_kernels.measure.machine import machine_for"}, True),
    ],
)
def test_the_data_sheets_count_where_what_they_say_is_recorded(root, cell, files, counts):
    write(root, MACHINE, "PEAK = 4800\n")
    names = [f"src/course_kernels/measure/{name}.py" for name in files]
    for name, text in zip(names, files.values(), strict=True):
        write(root, name, text)
    page = read_page(root / write_page(root, "one", cell), root)
    found = project_files([str(root / name) for name in [MACHINE, *names]], root, page)
    assert (MACHINE in found) is counts


def test_what_a_source_includes_is_in_the_manifest_and_what_it_comes_to_include_makes_it_stale(root):
    write(root, "src/tiny/kernel.cu", '#include "tile.cuh"\nint x;\n')
    path = write_page(root, "one", "text = open('src/tiny/kernel.cu').read()")
    page = read_page(root / path, root)
    record = run(root, path)
    assert list(record.meta["manifest"]) == ["src/tiny/kernel.cu", "src/tiny/tile.cuh"]
    assert stale_reasons(page, record, root) == []
    # A header that the toolkit had until now, in the place where it is looked for first.
    write(root, "src/tiny/kernel.cu", '#include "tile.cuh"\n#include <mma.h>\nint x;\n')
    record = run(root, path)
    assert stale_reasons(page, record, root) == []
    write(root, "src/tiny/mma.h", "// planted\n")
    assert stale_reasons(page, record, root) == [
        "src/tiny/kernel.cu now includes src/tiny/mma.h, which no record knows"
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('#include "gone.cuh"', "src/tiny/gone.cuh: no such file, included by kernel.cu"),
        ("#include HEADER", "kernel.cu, line 1: #include HEADER"),
    ],
)
def test_an_include_that_cannot_be_followed_is_one_line(root, line, said):
    write(root, "src/tiny/kernel.cu", f"{line}\n")
    path = write_page(root, "one", "text = open('src/tiny/kernel.cu').read()")
    assert str(failure(root, path)).startswith(f"docs/one.py: {said}")


def test_a_change_in_a_lazily_imported_module_makes_the_record_stale(root):
    path = write_page(root, "one", "def later():\n    import tiny.lazy\nlater()")
    record = run(root, path)
    page = read_page(root / path, root)
    write(root, "src/tiny/lazy.py", "def add(a, b):\n    # now with a comment\n    return a + b\n")
    assert stale_reasons(page, record, root) == []
    write(root, "src/tiny/lazy.py", "def add(a, b):\n    return a - b\n")
    assert stale_reasons(page, record, root) == ["src/tiny/lazy.py changed"]


def test_a_raising_cell_names_page_cell_and_cause(root):
    path = write_page(
        root, "one", "1", "def f():\n    raise ValueError('expected 4,\\ngot 5')\nf()", "print(3)"
    )
    error = failure(root, path)
    assert str(error) == "docs/one.py: code cell 2 of 3 (`def f():`): ValueError: expected 4,"
    assert "raise ValueError" in error.detail
    assert "\x1b" not in error.detail


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("import os; os._exit(7)", "its Python process ended by itself with exit code 7"),
        ("import os; os.abort()", "its Python process was ended by SIGABRT: native code failed"),
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL: the machine most likely ran out of memory"),
        ("raise MemoryError()", "out of memory (the machine; 140 GiB on the card): end other programs"),
        (
            "class OutOfMemoryError(RuntimeError): pass\nraise OutOfMemoryError('CUDA out of memory. Tried')",
            "out of memory (GPU 0, NVIDIA H200; 140 GiB on the card): end other programs",
        ),
        (
            "raise RuntimeError('CUDA error: an illegal memory access was encountered\\nmore')",
            "this page's CUDA context is lost: CUDA error: an illegal memory access was encountered",
        ),
    ],
)
def test_a_process_that_fails_is_one_clear_line(root, cell, said):
    path = write_page(root, "one", "1", cell)
    line = str(failure(root, path))
    assert line.startswith("docs/one.py: code cell 2 of 2 (`")
    assert said in line


def test_children_of_a_page_do_not_outlive_it(root, tmp_path):
    marker = tmp_path / "pid"
    path = write_page(
        root,
        "one",
        "import subprocess, pathlib\nchild = subprocess.Popen(['sleep', '60'])\n"
        f"pathlib.Path({str(marker)!r}).write_text(str(child.pid))\nimport os; os._exit(1)",
    )
    failure(root, path)
    time.sleep(0.2)
    status = Path(f"/proc/{marker.read_text()}/status")
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_a_printed_performance_number_is_refused(root):
    path = write_page(root, "one", "print('12 tiles')", "print('flash runs at', 412, 'TFLOP/s')")
    line = str(failure(root, path))
    assert line.startswith("docs/one.py: code cell 2 of 2 (`print(")
    assert "prints a performance number, '412 TFLOP/s'" in line


def test_a_source_file_changed_while_the_page_runs_is_refused(root):
    kernel = root / "src/tiny/kernel.py"
    path = write_page(
        root,
        "one",
        f"import tiny.kernel, time\ntime.sleep(0.1)\nopen({str(kernel)!r}, 'a').write('X = 1\\n')",
    )
    assert str(failure(root, path)) == (
        "docs/one.py: src/tiny/kernel.py changed while the page ran: run the page again"
    )


def test_a_name_recorded_twice_is_refused(root):
    path = write_page(root, "one", recording("seen"), recording("seen"))
    assert issubclass(RecordError, ValueError)
    assert str(failure(root, path)).startswith("docs/one.py: ")


def test_users_own_kernels_and_start_up_files_take_no_part(root, monkeypatch, tmp_path):
    kernels = tmp_path / "jupyter" / "kernels" / "python3"
    write(kernels, "kernel.json", '{"argv": ["false"], "display_name": "wrong", "language": "python"}')
    write(tmp_path, "ipython/profile_default/startup/00.py", "planted = 1\n")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    path = write_page(root, "one", "import sys\nprint(sys.executable, 'planted' in globals())")
    record = run(root, path)
    assert record.outputs[0][0]["text"].split()[-1] == "False"


def test_a_revision_says_whether_a_listed_file_differs(root, monkeypatch):
    commit = commit_all(root)
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": commit, "dirty": False}
    write(root, "src/tiny/lazy.py", "changed = 1\n")
    write(root, "src/tiny/new.py", "")
    assert revision(root, ["src/tiny/kernel.py"])["dirty"] is False
    assert revision(root, ["src/tiny/kernel.py", "src/tiny/lazy.py"])["dirty"] is True
    assert revision(root, ["src/tiny/new.py"])["dirty"] is True
    write(root, ".gitignore", "ignored.py\n")
    write(root, "src/tiny/ignored.py", "")
    assert revision(root, ["src/tiny/kernel.py", "src/tiny/ignored.py"])["dirty"] is True


@pytest.mark.parametrize("has_git", [True, False])
def test_a_wrong_answer_of_a_lab_is_as_clean_as_the_table_of_edits_that_makes_it(root, has_git):
    from course_site.records.wheelhouse import write_revision

    write(root, "labs/tiny/wrong.toml", "")
    write(root, "labs/tiny/wrong/whole.py", "")
    commit = commit_all(root)
    (root / "wheelhouse").mkdir()
    write_revision(root, root / "wheelhouse")
    if not has_git:
        (root / ".git").rename(root.parent / "elsewhere")
    covered = ["labs/tiny/wrong/made_of_edits.py", "labs/tiny/wrong/whole.py"]
    assert revision(root, covered) == {"commit": commit, "dirty": False}
    write(root, "labs/tiny/wrong.toml", "changed = 1")
    assert revision(root, covered)["dirty"] is True
    assert revision(root, covered[1:])["dirty"] is False


def test_without_git_the_revision_comes_from_a_file_or_the_environment(root, monkeypatch):
    from course_site.records.wheelhouse import write_revision

    made = "records/card/docs/model.artifacts/small.json"  # one page makes it, another one reads it
    write(root, made, "{}")
    commit = commit_all(root)
    (root / "wheelhouse").mkdir()
    write_revision(root, root / "wheelhouse")
    (root / ".git").rename(root.parent / "elsewhere")
    assert revision(root, ["src/tiny/kernel.py", made]) == {"commit": commit, "dirty": False}
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": commit, "dirty": True}
    monkeypatch.setenv("COURSE_REVISION", "abc-dirty")
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": "abc", "dirty": True}
    monkeypatch.delenv("COURSE_REVISION")
    (root / "wheelhouse" / "revision.txt").unlink()
    assert revision(root, []) == {"commit": "unknown", "dirty": True}
