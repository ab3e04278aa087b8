"""Pages that measure nothing are executed where the site is built: no GPU, no torch, and each only once."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_record import PROVENANCE, quantity
from test_render import record_it
from tiny_repository import make_repository, recording, write, write_page

from course_site.pages.page import read_page
from course_site.records import cpu_pages as module
from course_site.records.cpu_pages import computed
from course_site.records.execute import PageFailed
from course_site.records.record import Record
from course_site.site.course import load_course
from course_site.site.ledger import entries
from course_site.site.ledger_pages import ledger_of
from course_site.site.notebook import published_notebook
from course_site.site.render.page import render_course


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", "")
    write(root, "docs/glossary.toml", "")
    return root


@pytest.fixture
def executed(monkeypatch):
    """The ids of the pages that were executed, time by time."""
    seen = []
    real = module._execute

    def execute(pages, root, known):
        seen.append([page.id for page in pages])
        return real(pages, root, known)

    monkeypatch.setattr(module, "_execute", execute)
    return seen


def page_of(root, name, *cells):
    return read_page(root / write_page(root, name, *cells, needs=""), root)


def run(root, *pages):
    return computed(pages, root)


def line(root, *cells):
    (found,) = run(root, page_of(root, "a", *cells)).values()
    assert isinstance(found, PageFailed)
    assert "\n" not in str(found)
    return str(found)


def test_a_page_becomes_a_record_without_a_gpu(root):
    page = page_of(
        root,
        "a",
        "import os\nimport tiny.kernel\nprint('one')\nprint('two')",
        recording("seen", "3"),
        "print('before')\ndisplay({'text/plain': 'shown'}, raw=True)\nprint('after')\n6 * 7",
        "import sys\nprint('to the error stream', file=sys.stderr)\nNone",
        "os.environ['CUDA_VISIBLE_DEVICES'], 'torch' in sys.modules",
    )
    record = run(root, page)["a"]
    assert not record.measured
    assert record.names == {"seen": quantity(3)}
    assert record.outputs[0] == [{"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"}]
    assert [output["output_type"] for output in record.outputs[2]] == [
        "stream", "display_data", "stream", "execute_result",
    ]  # fmt: skip
    assert record.outputs[2][3]["data"] == {"text/plain": "42"}
    assert record.outputs[3] == []
    assert record.outputs[4][0]["data"]["text/plain"] == "('-1', False)"
    assert list(record.meta["manifest"]) == ["src/tiny/__init__.py", "src/tiny/kernel.py"]
    assert record.meta["provenance"]["gpu"] is None


def test_as_many_pages_run_at_once_as_are_asked_for_and_each_says_how_it_ended(tmp_path):
    cell = (
        "import os, time\nbegan = time.monotonic()\ntime.sleep(0.3)\n"
        "with open('span' + os.environ['PAGE'], 'w') as file:\n    print(began, time.monotonic(), file=file)"
    )
    ends = ["", "os._exit(3)", "os.kill(os.getpid(), 9)", "1 / 0\n", ""]
    pages = []
    for number, end in enumerate(ends):
        (tmp_path / f"{number}").mkdir()
        cells = [cell, f"import os\n{end}", "print('last', file=__import__('sys').stderr)"]
        environment = {"PAGE": f"{number}"}
        pages.append({"cells": cells, "folder": str(tmp_path / f"{number}"), "environment": environment})
    request = json.dumps({"root": str(tmp_path), "jobs": 2, "pages": pages})
    command = [sys.executable, "-m", "course_site.records.cpu_worker"]
    source = Path(module.__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(source)}
    started = time.monotonic()
    done = subprocess.run(command, input=request, capture_output=True, text=True, env=environment, check=True)
    all_took = time.monotonic() - started

    assert json.loads(done.stdout) == {"statuses": [0, 3, -9, 0, 0]}
    assert [(tmp_path / f"{n}" / "answer").exists() for n in range(5)] == [True, False, False, True, True]
    assert [(tmp_path / f"{n}" / "cell").read_text() for n in range(5)] == ["3", "2", "2", "2", "3"]
    answers = [json.loads((tmp_path / n / "answer").read_text()) for n in "034"]
    assert [len(answer["outputs"]) for answer in answers] == [3, 2, 3]
    assert [answer["error"] and answer["error"][:2] for answer in answers] == [
        None, ["ZeroDivisionError", "division by zero"], None
    ]  # fmt: skip
    assert all(
        0.3 <= answer["seconds"][0] < all_took and len(answer["seconds"]) == len(answer["outputs"])
        for answer in answers
    )
    assert answers[0]["outputs"][2] == []
    assert "last" in (tmp_path / "0" / "log").read_text()
    spans = [tuple(map(float, (tmp_path / f"span{n}").read_text().split())) for n in range(5)]
    assert max(sum(a <= b < end for a, end in spans) for b, _ in spans) == 2


def test_pages_know_nothing_of_each_other(root):
    one = page_of(root, "a", "planted = 1\nimport tiny.kernel\ntiny.kernel.FACTOR = 9")
    two = page_of(root, "b", "import sys\n'planted' in globals(), 'tiny' in sys.modules")
    found = run(root, one, two)
    assert found["b"].outputs[0][0]["data"]["text/plain"] == "(False, False)"
    assert list(found["b"].meta["manifest"]) == []


def test_only_what_changed_is_executed_again(root, executed):
    one, two = page_of(root, "a", "import tiny.kernel"), page_of(root, "b", "1")
    first = run(root, one, two)
    assert executed == [["a", "b"]]
    assert run(root, one, two) == first
    assert executed == [["a", "b"]]
    write(root, "src/tiny/kernel.py", "FACTOR = 3  # a comment\n")
    run(root, one, two)
    assert len(executed) == 1
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    os.utime(root / "src/tiny/kernel.py", (0, 0))
    run(root, one, two)
    run(root, one, page_of(root, "b", "2"))
    assert executed[1:] == [["a"], ["b"]]
    cached = root / ".cache/executed/docs/a.ipynb"
    cached.write_text(cached.read_text().replace('"source": "import', '"source": "\\nimport'))
    run(root, one)
    assert executed[3:] == [["a"]]


def test_a_new_file_of_the_course_is_a_reason_to_execute_again(root, executed):
    """A page that lists a folder opens nothing of what it lists."""
    page = page_of(root, "a", "import pathlib\nlen(list(pathlib.Path('src/course_kernels').glob('*.py')))")
    write(root, "src/course_kernels/one.py", "")
    assert run(root, page)["a"].outputs[0][0]["data"]["text/plain"] == "1"
    write(root, "src/course_kernels/two.py", "")
    assert run(root, page)["a"].outputs[0][0]["data"]["text/plain"] == "2"


def test_a_child_of_such_a_page_is_watched_too(root):
    page = page_of(
        root,
        "a",
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import tiny.lazy, os; os.abort()']).args[0] != ''",
    )
    assert list(run(root, page)["a"].meta["manifest"]) == ["src/tiny/__init__.py", "src/tiny/lazy.py"]


def test_what_a_child_of_such_a_page_prints_is_no_output(root):
    # Without a line end: the answer of the process that runs the pages is its last line.
    child = "import sys; sys.stdout.write('1'); sys.stderr.write('1')"
    page = page_of(
        root,
        "page",
        f"import subprocess, sys\nprint('mine')\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\nNone",
    )
    (outputs,) = run(root, page)["page"].outputs
    assert outputs == [{"output_type": "stream", "name": "stdout", "text": "mine\n"}]


def test_what_lies_where_it_runs_is_no_library(root):
    write(root, "statistics.py", "mean = None\n")
    page = page_of(root, "a", "import statistics\nstatistics.mean([3])")
    assert run(root, page)["a"].outputs[0][0]["data"]["text/plain"] == "3"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            ("1", "raise ValueError('expected 4,\\n 5')", "3"),
            "code cell 2 of 3 (`raise ValueError('expected 4,\\n 5')`): ValueError: expected 4,",
        ),
        (("1", "x = = 2"), "code cell 2 of 2 (`x = = 2`): SyntaxError: invalid syntax"),
        (("1", "import os; os._exit(7)"), "os._exit(7)`): its Python process ended by itself with exit code 7"),
        (("import json; json.dumps = None",), "its Python process ended by itself with exit code 1"),
        (("import os; os.kill(os.getpid(), 9)",), "its Python process was ended by SIGKILL"),
        (("raise SystemExit(3)",), "code cell 1 of 1 (`raise SystemExit(3)`): SystemExit: 3"),
        (("print('runs at 412 TFLOP/s')",), "prints a performance number, '412 TFLOP/s'"),
        ((recording("m"), recording("m")), "'m' is recorded twice"),
    ],
)  # fmt: skip
def test_what_fails_is_one_line_with_file_cell_and_cause(root, cells, said):
    found = line(root, *cells)
    assert found.startswith("docs/a.py: ")
    assert said in found
    assert not (root / ".cache/executed").exists()


def test_one_page_that_fails_takes_no_other_with_it(root):
    bad, good = page_of(root, "bad", "import os; os._exit(1)"), page_of(root, "good", "1")
    found = run(root, bad, good)
    assert isinstance(found["bad"], PageFailed)
    assert isinstance(found["good"], Record)


# --- in the course -----------------------------------------------------------------------------------------

HEAD = "# ---\n# id: b\n# title: B\n# needs: gpu\n# ---\n\n"
PROSE = f"{HEAD}# %% [markdown]\n# # B\n# {{{{ m }}}} and {{{{ a.seen }}}}\n\n# %%\n1\n"


def test_its_values_stand_in_the_site_beside_measured_ones(root):
    page_of(root, "a", recording("seen", "3"))
    (root / "docs/a.py").write_text(
        (root / "docs/a.py").read_text().replace("# Prose.", "# # A\n# It is {{ seen }}.")
    )
    write(root, "docs/b.py", PROSE)
    record_it(root, {"m": quantity(2.0)}, name="docs/b.py")
    course = load_course(root)
    rendered = render_course(course)
    assert [str(problem) for problem in course.problems] == []
    assert course.states == {"a": "fresh", "b": "fresh"}
    assert "Nothing was measured for this page: worked out when the site was built" in rendered["a"].inlined()
    assert ">3</a>" in rendered["a"].markdown
    assert ">3</a>" in rendered["b"].markdown
    rows = entries(course, {page_id: one.shown for page_id, one in rendered.items()})
    mine = next(row for row in rows if row["name"] == "a.seen")
    assert (mine["gpu"], mine["value"], mine["command"]) == (None, 3, "nox -s docs")
    json.dumps(rows)
    ledger = ledger_of(course, rows)
    assert "Nothing was measured for this page" in ledger.chapters["numbers/a.md"].inlined()
    assert "<td>with the site</td><td>no card</td>" in ledger.index
    notebook = json.loads(published_notebook(course, course.page("a"), rendered["a"]))
    assert "measured_on" not in notebook["metadata"]["percent_of_peak"]


def test_a_cell_that_raises_stops_the_build(root):
    page_of(root, "a", "1 / 0")
    course = load_course(root)
    assert [str(problem) for problem in course.problems] == [
        "docs/a.py: code cell 1 of 1 (`1 / 0`): ZeroDivisionError: division by zero"
    ]
    assert load_course(root, draft=True).problems == []


def test_a_committed_record_of_such_a_page_is_refused(root):
    page_of(root, "a", "1")
    record_it(root, {"m": quantity(2.0)}, name="docs/a.py")
    assert [str(problem) for problem in load_course(root).problems] == [
        "records/nvidia-h200/docs/a.ipynb: docs/a.py measures nothing: delete this record"
    ]


def test_a_record_of_uncommitted_files_is_refused_in_the_reference_edition(root):
    write(root, "docs/b.py", PROSE.replace(" and {{ a.seen }}", ""))
    record_it(root, {"m": quantity(2.0)}, {**PROVENANCE, "dirty": True}, name="docs/b.py")
    assert [str(problem) for problem in load_course(root).problems] == [
        "docs/b.py: its record was made from files that differ from their commit: commit them, then "
        "measure it on a GPU: nox -s docs -- --page docs/b.py"
    ]
    assert load_course(root, draft=True).problems == []
    waiting = '[[page]]\npath = "docs/b.py"\nsince = "2026-11-21"\nreason = "dirty"\n'
    write(root, "records/waiting.toml", waiting)
    course = load_course(root)
    assert (course.problems, course.states["b"]) == ([], "waiting")
    (root / "records/waiting.toml").unlink()
    record_it(root, {"m": quantity(2.0)}, {**PROVENANCE, "gpu": "NVIDIA T4", "dirty": True}, name="docs/b.py")
    (root / "records/nvidia-t4/docs").mkdir()
    (root / "records/nvidia-h200/docs/b.ipynb").rename(root / "records/nvidia-t4/docs/b.ipynb")
    assert load_course(root, "nvidia-t4").problems == []


def test_a_stranger_stops_the_build(root):
    with (root / "pyproject.toml").open("a") as file:
        file.write('[tool.hatch.build.targets.wheel]\npackages = ["src/tiny"]\n')
    page_of(root, "a", "1")
    assert load_course(root).problems == []
    write(root, "src/statistics.py", "")
    assert [problem.path for problem in load_course(root).problems] == ["src/statistics.py"]


def test_the_real_pages_that_measure_nothing_run_here(tmp_path):
    """All of them, and without torch: it is not installed where only the site is built."""
    from course_site.pages.page import find_pages

    root = Path(__file__).resolve().parents[2]
    pages = [page for page in find_pages(root) if page.runs and not page.measures]
    assert len(pages) > 10
    found = computed(pages, root)
    assert [str(one) for one in found.values() if not isinstance(one, Record)] == []
    opened = {file for record in found.values() for file in record.meta["manifest"]}
    harness = ("check", "clock", "run", "sensors", "summary", "gate", "derive")
    assert not {f"src/course_kernels/measure/{name}.py" for name in harness} & opened


def test_a_chart_of_another_pages_numbers_waits_for_them_and_stops_nothing(root):
    """A page that measures nothing is always fresh; what it quotes may not be."""
    page_of(root, "a", "1")
    chart = (
        "# /// chart | bars\n# title: It\n# alt: One bar.\n# x_label: one\n# bars:\n"
        "#   - {name: b.m, label: one}\n# ///\n"
    )
    (root / "docs/a.py").write_text(
        (root / "docs/a.py").read_text().replace("# Prose.\n", f"# # A\n#\n{chart}")
    )
    write(root, "docs/b.py", PROSE.replace(" and {{ a.seen }}", ""))
    record_it(root, {"m": quantity(2.0)}, name="docs/b.py")
    course = load_course(root)
    render_course(course)
    assert [str(problem) for problem in course.problems] == []
    (root / "docs/b.py").write_text((root / "docs/b.py").read_text().replace("\n1\n", "\n2\n"))
    course = load_course(root, draft=True)
    render_course(course)
    assert [str(problem) for problem in course.problems] == []
    (root / "docs/b.py").write_text((root / "docs/b.py").read_text().replace("\n2\n", "\n1\n"))
    (root / "docs/a.py").write_text((root / "docs/a.py").read_text().replace("b.m", "b.none"))
    course = load_course(root)
    render_course(course)
    assert "unknown value 'none'" in str(course.problems)
