"""Pages that run in processes of their own, on fake devices."""

import time
from pathlib import Path

import pytest
from tiny_repository import commit_all, make_repository, recording, write, write_page

from course_site.execute import PageFailed, execute, project_files, revision
from course_site.gpus import find_gpus
from course_site.pages import read_page
from course_site.record import RecordError, stale_reasons


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
    record = run(root, path, lambda state: cells.append(state.cell))
    assert record.names["seen"]["value"] == 1
    assert [o["text"] for o in record.outputs[1]] == ["0 None\n"]
    assert [cell["source"][:4] for cell in record.notebook["cells"]] == ["from", "impo"]
    assert len(record.meta["seconds"]) == 2
    assert 0.2 <= record.meta["seconds"][1] < 5
    assert record.edition["slug"] == "nvidia-h200"
    assert (record.meta["provenance"]["commit"], record.meta["provenance"]["dirty"]) == (commit, False)
    assert cells == [1, 2]
    assert stale_reasons(read_page(root / path, root), record, root) == []
    ignored = [p for p in sorted(root.rglob("*")) if "__pycache__" not in p.parts and ".git" not in p.parts]
    assert ignored == [p for p in before if ".git" not in p.parts]


def test_the_manifest_holds_all_that_ran(root):
    write(root, "src/tiny/sub/__init__.py", "import tiny.kernel\n")
    write(root, "src/course_kernels/__init__.py", "")
    write(root, "src/course_kernels/measure/__init__.py", "")
    write(root, "src/course_kernels/measure/roofline.py", "")
    write(root, "src/course_kernels/measure/clock.py", "")
    write(root, "src/tiny/child.py", "")
    write(root, "src/tiny/unused.py", "")
    write(root, "src/tiny/data.bin", "xyz")
    write(
        root,
        "src/course_kernels/measure/counters.py",
        "import pathlib\n\n\ndef child_files():\n    return ['src/tiny/child.py']\n",
    )
    path = write_page(
        root,
        "one",
        "import tiny.sub\nfrom course_kernels.measure import clock, counters, roofline",
        "def later():\n    from tiny import lazy\n    return lazy.add(1, 1)\nlater()",
        "import pathlib, os\nfrom pathlib import Path\nfolder = Path(tiny.sub.__file__).parents[1]\n"
        "text = (folder / 'kernel.cu').read_text() + open(folder / 'tile.cuh').read()\n"
        "os.close(os.open(os.fsencode(folder / 'data.bin'), os.O_RDONLY))\n"
        "(folder / 'written.txt').write_text('by the page')",
    )
    assert list(run(root, path).meta["manifest"]) == [
        "src/course_kernels/__init__.py",
        "src/course_kernels/measure/clock.py",
        "src/course_kernels/measure/counters.py",
        "src/tiny/__init__.py",
        "src/tiny/child.py",
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
        "src/course_site/charts.py", "src/course_kernels/measure/machine.py", "docs/one.py", "site/index.html",
        ".git/HEAD", ".cache/charts/a.svg", "src/tiny/__pycache__/kernel.cpython-312.pyc", "records/a/b.ipynb",
    )  # fmt: skip
    files = [write(root, name, "") if name != path else root / name for name in names]
    files += [root / "src/tiny/gone.py", write(root.parent, "outside.py", ""), root / "src/tiny/kernel.py"]
    assert project_files(map(str, files), root, page) == ["src/tiny/kernel.py"]


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


def test_without_git_the_revision_comes_from_a_file_or_the_environment(root, monkeypatch):
    from course_site.wheelhouse import write_revision

    commit = commit_all(root)
    (root / "wheelhouse").mkdir()
    write_revision(root, root / "wheelhouse")
    (root / ".git").rename(root.parent / "elsewhere")
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": commit, "dirty": False}
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": commit, "dirty": True}
    monkeypatch.setenv("COURSE_REVISION", "abc-dirty")
    assert revision(root, ["src/tiny/kernel.py"]) == {"commit": "abc", "dirty": True}
    monkeypatch.delenv("COURSE_REVISION")
    (root / "wheelhouse" / "revision.txt").unlink()
    assert revision(root, []) == {"commit": "unknown", "dirty": True}
