"""`nox -s docs` as a command: what runs, what is kept, how it ends."""

import errno
import importlib.metadata
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from tiny_repository import H200, commit_all, make_repository, recording, write, write_page

from course_site import docs
from course_site.pages.page import read_page
from course_site.records import edition, gpu_test_records, packages, plan
from course_site.records import gpu_tests as running
from course_site.records.execute import fake_provenance
from course_site.records.gpus import Gpu, find_gpus
from course_site.records.record import Record, seal
from course_site.site import build

SOURCE = Path(docs.__file__).parents[1]


@pytest.fixture
def root(tmp_path, monkeypatch):
    return make_repository(tmp_path, monkeypatch)


def measure(root, *options):
    return docs.main(["--measure-only", *options], root)


def record_file(root, page):
    return root / "records" / "nvidia-h200" / Path(page).with_suffix(".ipynb")


def records(root):
    return sorted(path.name for path in (root / "records").rglob("*.ipynb"))


def leftovers(root):
    """Files that are neither sources nor records, nor the list of what runs told."""
    known = ("src", "docs", "records", "pyproject.toml", ".git", ".cache")
    stray = [p for p in root.rglob("*") if p.is_file() and p.relative_to(root).parts[0] not in known]
    return stray + [
        p
        for p in (root / "records").rglob("*")
        if p.is_file() and p.suffix != ".ipynb" and p.name != "runs.json"
    ]


def test_every_page_is_measured_afresh_and_only_stale_ones_with_stale(root, capsys):
    one = write_page(root, "one", "import tiny.kernel", recording("seen"))
    write_page(root, "two", recording("seen"))
    assert measure(root) == 0
    assert records(root) == ["one.ipynb", "two.ipynb"]
    assert leftovers(root) == []
    capsys.readouterr()
    assert measure(root, "--stale") == 0
    assert "docs: 0 pages to measure" in capsys.readouterr().out
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    assert measure(root, "--stale") == 0
    out = capsys.readouterr().out
    assert "measured docs/one.py on GPU 0" in out
    assert "docs/two.py" not in out
    assert measure(root, "--page", one) == 0
    assert measure(root) == 0
    assert "measured docs/two.py" in capsys.readouterr().out


def test_bytecode_is_kept_where_the_machine_says_to_keep_none(root, monkeypatch):
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    kept = root / ".cache" / "python"
    write_page(
        root,
        "one",
        f"import sys; assert (sys.dont_write_bytecode, sys.pycache_prefix) == (False, {str(kept)!r})",
    )
    assert measure(root) == 0
    assert list(kept.rglob("*.pyc"))


def test_who_keeps_bytecode_keeps_it_where_he_does(root, monkeypatch):
    for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.delenv(name, raising=False)
    write_page(root, "one", "import sys; assert sys.pycache_prefix is None")
    assert measure(root) == 0


def test_progress_names_page_cell_elapsed_and_expected(root, capsys):
    page = write_page(root, "one", "1", "2", "3")
    assert measure(root) == 0
    assert "docs/one.py  cell 2/3  0:0" in capsys.readouterr().out
    seconds = Record.load(record_file(root, page)).seconds
    assert measure(root) == 0
    assert f" of about 0:0{int(seconds + plan.STARTUP_S)}" in capsys.readouterr().out


def test_plan_says_what_why_and_how_long_and_runs_nothing(root, capsys):
    one = write_page(root, "one", "import tiny.kernel, time\ntime.sleep(0.5)")
    write_page(root, "two", "1")
    assert measure(root, "--page", one) == 0
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    write(root, "src/tiny/__init__.py", "FACTOR = 4\n")
    before = record_file(root, one).read_bytes()
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "plan (1 × NVIDIA H200):"
    assert out[1:] == [
        "  docs/one.py: 0.1 min (records/nvidia-h200): src/tiny/__init__.py changed, and 1 more",
        "  docs/two.py: 2.0 min (a guess): no record in records/nvidia-h200 yet",
        "2 pages, about 2.1 GPU minutes",
    ]
    assert record_file(root, one).read_bytes() == before
    assert records(root) == ["one.ipynb"]


def test_a_plan_gives_a_record_of_another_schema_one_reason_and_its_old_time(root, capsys):
    page = write_page(root, "one", "import time\ntime.sleep(0.5)")
    assert measure(root) == 0
    path = record_file(root, page)
    path.write_text(path.read_text().replace('"schema": 2', '"schema": 1'))
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    said = "  docs/one.py: 0.1 min (records/nvidia-h200): its record has schema 1, this version reads 2"
    assert capsys.readouterr().out.splitlines()[1] == said


def test_a_page_that_measures_nothing_is_neither_planned_nor_measured(root, capsys):
    write_page(root, "one", "1")
    none = write_page(root, "none", "1", needs="")
    assert docs.main(["--plan"], root) == 0
    assert none not in capsys.readouterr().out
    assert measure(root) == 0
    assert records(root) == ["one.ipynb"]
    assert measure(root, "--page", none) == 2
    assert "there is no such page that measures" in capsys.readouterr().err


def test_a_page_that_compiles_is_measured_like_one_that_runs(root):
    write_page(root, "one", "1", needs="compiler")
    assert measure(root) == 0
    assert records(root) == ["one.ipynb"]


def test_nothing_is_measured_beside_what_stands_before_a_library(root, capsys):
    write_page(root, "one", "1")
    with (root / "pyproject.toml").open("a") as file:
        file.write('[tool.hatch.build.targets.wheel]\npackages = ["src/tiny"]\n')
    write(root, "src/statistics.py", "")
    assert measure(root) == 2
    assert capsys.readouterr().err == (
        "docs: src/statistics.py: src/ holds tiny alone: 'statistics' would shadow a library\n"
    )
    assert records(root) == []


def test_a_record_of_uncommitted_files_is_measured_again(root, monkeypatch, capsys):
    write_page(root, "one", "1")
    commit_all(root)
    assert measure(root) == 0
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "0 pages" in capsys.readouterr().out
    monkeypatch.setattr(Record, "dirty", True)
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "its record was made from files that differ from their commit" in capsys.readouterr().out


def test_a_plan_without_a_gpu_names_what_is_stale(root, capsys, monkeypatch):
    write_page(root, "one", "import tiny.kernel")
    write_page(root, "two", "2")
    assert measure(root) == 0
    write(root, "src/tiny/kernel.py", "FACTOR = 4\n")
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    capsys.readouterr()
    assert docs.main(["--plan"], root) == 0
    out = capsys.readouterr().out
    assert "plan (no GPU here; what is stale in records/nvidia-h200):" in out
    assert "src/tiny/kernel.py changed" in out
    assert "docs/two.py" not in out


def test_minutes_stop_before_a_page_that_would_not_fit_and_stale_goes_on(root, capsys):
    for name in ("a", "b"):
        write_page(root, name, recording("seen"), "import time; time.sleep(1.5)")
    # Neither has a record, so each is forecast with the guess of two minutes; the first takes the slack.
    assert measure(root, "--minutes", "2.02") == 3
    assert records(root) == ["a.ipynb"]
    err = capsys.readouterr().err
    assert err == "docs: out of minutes, not measured: docs/b.py; `nox -s docs -- --stale` goes on\n"
    assert measure(root, "--stale", "--minutes", "2.02") == 0
    assert records(root) == ["a.ipynb", "b.ipynb"]


def test_minutes_never_build_half_a_site(root, monkeypatch):
    write_page(root, "a", "1")
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(docs, "build", lambda *a, **k: pytest.fail("built"))
    assert docs.main(["--minutes", "0.5"], root) == 3


# The first page waits until the second has begun, the third until the fourth has: which two meet is no matter of the
# clock. Then each stays for a moment, in which a page too many on its device would begin.
BY_TWOS = """
import os, time
from pathlib import Path

log, device, name = Path({log!r}), os.environ["CUDA_VISIBLE_DEVICES"], {name!r}

def note(what):
    with log.open("a") as file:
        file.write(f"{{what}} {{device}} {{name}}\\n")

def begun():
    return [line for line in log.read_text().splitlines() if line.startswith("begins ")]

note("begins")
mine = begun().index(f"begins {{device}} {{name}}")
patience = time.monotonic() + 60
while len(begun()) <= (mine | 1) < {pages} and time.monotonic() < patience:
    time.sleep(0.01)
time.sleep(0.3)
note("ends")
"""


def test_two_jobs_use_two_devices_and_never_two_pages_one_device(root, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([H200, H200]))
    log = tmp_path / "log"
    for name in "abcde":
        write_page(root, name, BY_TWOS.format(log=str(log), name=name, pages=5))
    assert measure(root, "--jobs", "2") == 0
    events = [line.split() for line in log.read_text().splitlines()]
    on_device, begun, most = {}, [], 0
    for what, device, name in events:
        if what == "begins":
            assert device not in on_device, "two pages on one device"
            on_device[device] = name
            begun.append(device)
            most = max(most, len(on_device))
        else:
            assert on_device.pop(device) == name
    assert not on_device
    assert most == 2, "no two pages ran side by side"
    assert len(begun) == 5
    assert set(begun) == {"0", "1"}
    assert min(begun.count(device) for device in "01") >= 2


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_page_that_needs_two_devices_has_both_to_itself(root, tmp_path, monkeypatch, jobs):
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([H200, H200]))
    log = tmp_path / "log"
    cell = (
        "import os, time\nbegan = time.time()\ntime.sleep(0.3)\n"
        f"with open({str(log)!r}, 'a') as file:\n"
        "    file.write(f\"{os.environ['CUDA_VISIBLE_DEVICES']} {began} {time.time()}\\n\")"
    )
    for name, needs in {"a": "gpu", "b": "gpus 2", "c": "gpu", "d": "gpus 2", "e": "gpu"}.items():
        write_page(root, name, cell, needs=needs)
    assert measure(root, "--jobs", jobs) == 0
    runs = [line.split() for line in log.read_text().splitlines()]
    assert [devices for devices, *_ in runs].count("0,1") == 2
    assert len(runs) == 5
    for (one, began, ended), (other, begins, ends) in itertools.combinations(runs, 2):
        apart = float(ended) <= float(begins) or float(ends) <= float(began)
        assert apart or not set(one.split(",")) & set(other.split(","))


def test_a_page_that_needs_two_devices_awaits_them_where_there_is_one(root, capsys):
    write_page(root, "a", "1", needs="gpus 2")
    write_page(root, "b", "1")
    assert measure(root, "--plan") == 0
    assert measure(root) == 0
    assert records(root) == ["b.ipynb"]
    out = capsys.readouterr().out
    assert out.count("docs: docs/a.py needs 2 GPUs, and there is 1: this edition has no numbers of it") == 2
    assert "1 page, about 2.0 GPU minutes" in out


def test_more_jobs_than_devices_are_cut_down(root, capsys):
    write_page(root, "a", "1")
    assert measure(root, "--jobs", "4") == 0
    assert "--jobs 4, but 1 GPU here" in capsys.readouterr().out


def test_devices_of_another_model_are_left_out(root, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([H200, {"name": "NVIDIA T4", "capability": [7, 5]}]))
    assert [gpu.name for gpu in docs.one_model(find_gpus())] == ["NVIDIA H200"]
    assert "GPU 1 (NVIDIA T4) is left out" in capsys.readouterr().out


def hears_ctrl_c():
    """Whoever runs these tests in the background has Ctrl-C ignored, and what is started inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(root, *options, **environment):
    """The command as a process that leads a process group, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "course_site", "docs", *options],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUNBUFFERED": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )


def wait_for(path, seconds=30):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_keeps_finished_records_and_leaves_no_half_one(root, tmp_path, number, code):
    write_page(root, "a", recording("seen"))
    sleeping = tmp_path / "sleeping"
    write_page(
        root, "b", f"import os, time\nopen({str(sleeping)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    archive = tmp_path / "new.tar.gz"
    process = start(root, "--measure-only", "--archive", str(archive), TMPDIR=str(scratch))
    wait_for(sleeping)
    time.sleep(0.1)
    os.killpg(process.pid, number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == code, out
    assert "docs: stopped; 1 finished record kept, site/ is as it was" in out
    assert "Traceback" not in out
    assert records(root) == ["a.ipynb"]
    Record.load(record_file(root, "docs/a.py"))
    assert leftovers(root) == []
    assert list(scratch.iterdir()) == []
    assert not Path(f"/proc/{sleeping.read_text()}").exists()
    with tarfile.open(archive) as tar:
        assert tar.getnames() == ["records/nvidia-h200/docs/a.ipynb", "records/nvidia-h200/runs.json"]


def nox(root, *options):
    """The real noxfile over the test's repository, with the Python that runs the tests."""
    shutil.copy(SOURCE.parent / "noxfile.py", root)
    (root / "src/course_site").symlink_to(SOURCE / "course_site")
    (root / "src/course_kernels").symlink_to(SOURCE / "course_kernels")
    command = [sys.executable, "-m", "nox", "--no-venv", "-s", "docs", "--", "--measure-only", *options]
    return subprocess.Popen(
        command,
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=hears_ctrl_c,
    )


def test_nox_hands_on_out_of_minutes(root):
    write_page(root, "a", "1")
    process = nox(root, "--minutes", "1")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 3, out
    assert "out of minutes, not measured: docs/a.py" in out


def test_ctrl_c_under_nox_lets_the_command_tidy_up(root, tmp_path):
    sleeping = tmp_path / "sleeping"
    write_page(root, "a", recording("seen"))
    write_page(root, "b", f"import time\nopen({str(sleeping)!r}, 'w').close()\ntime.sleep(60)")
    process = nox(root)
    wait_for(sleeping)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130, out
    assert "docs: stopped; 1 finished record kept" in out
    assert records(root) == ["a.ipynb"]


def test_a_crashed_page_fails_the_next_runs_and_the_exit_says_so(root, capsys, monkeypatch):
    write_page(root, "a", recording("seen"), "import os; os.abort()")
    write_page(root, "b", "raise RuntimeError('CUDA error: an illegal memory access was encountered')")
    write_page(root, "c", recording("seen"))
    write_page(root, "d", "raise ValueError('planted')")
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(docs, "build", lambda *a, **k: pytest.fail("built"))
    assert docs.main([], root) == 1
    assert records(root) == ["c.ipynb"]
    out, err = capsys.readouterr()
    assert "measured docs/c.py" in out
    lines = err.splitlines()
    assert lines[1] == "docs: 3 failed; site/ is as it was:"
    assert lines[2].startswith(
        "  docs/a.py: code cell 2 of 2 (`import os; os.abort()`): its Python process was"
    )
    assert "this page's CUDA context is lost" in lines[3]
    assert lines[4] == ("  docs/d.py: code cell 1 of 1 (`raise ValueError('planted')`): ValueError: planted")


def test_a_failing_page_keeps_the_record_it_had(root):
    page = write_page(root, "a", "1")
    assert measure(root) == 0
    before = record_file(root, page).read_bytes()
    write_page(root, "a", "raise ValueError(1)")
    assert measure(root) == 1
    assert record_file(root, page).read_bytes() == before


def test_an_archive_holds_the_new_records_at_their_places(root, tmp_path):
    write_page(root, "a", "1")
    write_page(root, "b", "1")
    assert measure(root, "--page", "docs/a.py") == 0
    write(root, "records/nvidia-h200/tests/gemm.json", "{}")
    file = tmp_path / "out" / "new.tar.gz"
    assert measure(root, "--page", "docs/b.py", "--archive", str(file)) == 0
    with tarfile.open(file) as tar:
        new = ("docs/b.ipynb", "runs.json", "tests/gemm.json")
        assert tar.getnames() == [f"records/nvidia-h200/{name}" for name in new]
    assert [path.name for path in file.parent.iterdir()] == ["new.tar.gz"]


def test_what_moved_is_printed_and_kept(root, capsys):
    value = root.parent / "value"
    value.write_text("100")
    write_page(root, "a", recording("seen", f"float(open({str(value)!r}).read())"))
    assert measure(root) == 0
    value.write_text("150")
    capsys.readouterr()
    assert measure(root) == 0
    assert "a.seen: 100 -> 150" in capsys.readouterr().out
    kept = (root / "records/nvidia-h200/changes.json").read_text()
    assert [entry["after"] for entry in json.loads(kept)["moved"]] == [150.0]


@pytest.mark.parametrize(
    ("needs", "capability", "lacking"),
    [
        ("gpu", (7, 5), None),
        ("capability 9.0", (9, 0), None),
        ("capability 9.0", (10, 0), "needs capability 9.0, and the NVIDIA H200 has 10.0"),
        ("capability 8.0", (8, 9), None),
        ("capability 8.0", (7, 5), "needs capability 8.0, and the NVIDIA H200 has 7.5"),
        ("gpu h200", (9, 0), None),
        ("gpu b200", (9, 0), "needs gpu b200, and this is an NVIDIA H200"),
        ("gpus 2", (9, 0), "needs 2 GPUs, and there is 1"),
    ],
)
def test_a_page_the_card_cannot_run_is_left_to_the_reference_edition(
    root, monkeypatch, needs, capability, lacking
):
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([{**H200, "capability": capability}]))
    page = read_page(root / write_page(root, "a", "1", needs=needs), root)
    assert plan.unmet(page, find_gpus()) == lacking


@pytest.mark.parametrize(
    ("extra", "lacking"),
    [
        ("there", None),
        ("absent", "packages absent: not installed here: made-up; `-- --with absent` installs them"),
        ("none", "packages none: there is no such extra in pyproject.toml; there are there, absent"),
    ],
)
def test_a_page_that_needs_packages_is_left_where_they_are_not(root, monkeypatch, extra, lacking):
    pyproject = (
        '[project.optional-dependencies]\nthere = ["pytest>=8"]\nabsent = ["pytest", "made-up[more]==1.0"]\n'
    )
    monkeypatch.setattr(packages, "PROJECT", write(root, "elsewhere/pyproject.toml", pyproject).parent)
    page = read_page(root / write_page(root, "a", "1", needs=f"packages {extra}"), root)
    assert plan.unmet(page, find_gpus()) == lacking
    assert plan.unmet(page, find_gpus(), here=False) is None  # of another machine nobody knows


def test_a_page_the_card_cannot_run_is_said_in_one_line(root, capsys):
    write_page(root, "a", "1", needs="capability 10.0")
    write_page(root, "b", "1")
    assert measure(root) == 0
    assert records(root) == ["b.ipynb"]
    assert (
        "docs: docs/a.py needs capability 10.0, and the NVIDIA H200 has 9.0: this edition has no numbers of it\n"
        in capsys.readouterr().out
    )
    lacking = {"docs/a.py": "needs capability 10.0, and the NVIDIA H200 has 9.0"}  # what its page will say
    assert edition.lacking(root, "nvidia-h200") == lacking
    assert measure(root, "--page", "docs/b.py") == 0  # says nothing of other pages
    assert edition.lacking(root, "nvidia-h200") == lacking
    write_page(root, "a", "1")
    assert measure(root) == 0
    assert edition.lacking(root, "nvidia-h200") == {}


def test_a_record_of_other_versions_counts_as_stale(root, monkeypatch, capsys):
    write_page(root, "a", "1")
    assert measure(root) == 0
    now = plan.installed_edition(find_gpus()[0])
    monkeypatch.setattr(plan, "installed_edition", lambda gpu: {**now, "torch": "2.99"})
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "its record is of torch 2.11, here is 2.99" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["runs.json", "changes.json"])
def test_what_records_are_added_to_is_read_before_anything_is_measured(root, capsys, name):
    write_page(root, "one", recording("seen"))
    slug = find_gpus()[0].slug
    write(root, f"records/{slug}/{name}", "{")
    assert measure(root) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert f"{name}: is cut short" in said
    assert records(root) == []


def test_a_record_of_a_made_up_card_is_planned_anew(root, monkeypatch, capsys):
    write_page(root, "one", recording("seen"))
    assert measure(root) == 0
    monkeypatch.setattr(Record, "made_up", True)  # while a GPU is made up, its records are as good as any
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "its record is of a GPU that COURSE_FAKE_GPUS made up" in capsys.readouterr().out


def test_an_unreadable_record_is_measured_again(root, capsys):
    page = write_page(root, "a", "1")
    assert measure(root) == 0
    path = record_file(root, page)
    path.write_text(path.read_text()[:200])
    capsys.readouterr()
    assert docs.main(["--plan", "--stale"], root) == 0
    assert "docs/a.py: 2.0 min (a guess): its record is cut short or not JSON" in capsys.readouterr().out
    assert measure(root, "--stale") == 0
    Record.load(path)


# --- bad input: one clear line each -----------------------------------------------------------------------


def only_line(capsys):
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def test_a_gpu_that_cannot_be_used_is_one_line_and_no_build(root, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_FAKE_GPUS", '{"error": "CUDA_ERROR_SYSTEM_NOT_READY", "status": 802}')
    monkeypatch.setattr(docs, "build", lambda *a, **k: pytest.fail("built"))
    assert docs.main([], root) == 2
    assert only_line(capsys).startswith(
        "docs: the NVIDIA driver is here but cannot be used: cuInit answers CUDA_ERROR_SYSTEM_NOT_READY (802): "
        "start the service nvidia-fabricmanager; "
    )


def test_nothing_to_measure_without_a_gpu(root, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    monkeypatch.setattr(docs, "build", lambda *a, **k: pytest.fail("built"))
    for options, said in (
        (["--measure-only"], "--measure-only asks"),
        (["--page", "docs/nope.py"], "--page asks"),
        (["--tests", "--stale"], "--stale and --tests ask"),
        (["--minutes", "5", "--archive", "a.tar.gz"], "--minutes and --archive ask"),
        (["--jobs", "2"], "--jobs asks"),
    ):
        assert docs.main(options, root) == 2
        assert only_line(capsys) == (
            f"docs: there is no GPU here, and {said} to measure: run this on a GPU machine, or `nox -s docs` alone, "
            "which builds from the records\n"
        )


def test_a_place_that_cannot_be_written_is_one_line(root, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    (root / ".cache").write_text("in the way")
    assert docs.main([], root) == 1
    said = f"docs: {root}/.cache: File exists; 0 finished records kept, site/ is as it was\n"
    assert capsys.readouterr().err == said


def test_an_archive_that_cannot_be_written_is_one_line(root, capsys):
    write_page(root, "a", recording("seen"))
    (root / "in_the_way").write_text("")
    assert measure(root, "--archive", str(root / "in_the_way/new.tar.gz")) == 1
    found = capsys.readouterr()
    assert "Traceback" not in found.err
    assert found.err.endswith("in_the_way: File exists; 1 finished record kept, site/ is as it was\n")
    assert records(root) == ["a.ipynb"]


def test_a_full_disk_while_a_page_is_recorded_is_one_line(root, monkeypatch, capsys):
    write_page(root, "a", recording("seen"))

    def full(self, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Record, "save", full)
    assert measure(root) == 1
    found = capsys.readouterr()
    assert "docs/a.py: cannot be recorded: OSError: [Errno 28] No space left on device" in found.err
    assert "Traceback" not in found.out + found.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_stopped_leaves_nothing(tmp_path, number):
    """And what one left that was killed, the next one takes away."""
    root = a_site_that_takes_its_time(tmp_path)
    stays, goes = root / f".cache/build-{os.getpid()}-of-one-that-runs", root / ".cache/build-999999999-left"
    for folder in (stays, goes):
        folder.mkdir(parents=True)
    process = start(root, COURSE_FAKE_GPUS="[]")
    wait_for(root / "begun")
    os.killpg(process.pid, number)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + number, out
    assert "docs: stopped; 0 finished records kept, site/ is as it was" in out
    assert "Traceback" not in out
    assert list((root / ".cache").glob("build-*")) == [stays]


def a_site_that_takes_its_time(tmp_path):
    root = tmp_path / "site"
    write(root, "pyproject.toml", '[tool.course]\norganisation = "Test"\nreference = "nvidia-h200"\n')
    write(root, "docs/index.md", "# Home\n")
    write(root, "mkdocs.yml", "site_name: T\ntheme: {name: null, custom_dir: theme}\nhooks: [hook.py]\n")
    write(root, "theme/main.html", "{{ page.content }}")
    write(
        root,
        "hook.py",
        "import time\ndef on_config(config):\n    open('begun', 'w').close()\n    time.sleep(60)\n",
    )
    return root


def test_a_disk_that_is_full_while_the_site_is_built_is_one_line(tmp_path):
    root = a_site_that_takes_its_time(tmp_path)
    write(root, "hook.py", "")
    write(root, "docs/large.bin", "much " * 100_000)
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    program = f"{full}\nfrom course_site.site.build import _run_engine\n_run_engine({str(root / 'built')!r})"
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"{root}/built/large.bin: File too large"
    assert "Traceback" not in done.stderr


def test_missing_packages_are_named_in_one_line(root, monkeypatch, capsys):
    monkeypatch.setattr(docs, "RENDERING", {"mkdocs_of_nobody": "mkdocs-of-nobody", "json": "json"})
    monkeypatch.setattr(docs, "EXECUTING", {"nobody.client": "nobody-client"})
    assert docs.main([], root) == 2
    assert only_line(capsys) == (
        "docs: missing packages: mkdocs-of-nobody, nobody-client: `pip install mkdocs-of-nobody nobody-client` "
        "with a network; without one, `nox -s wheelhouse` elsewhere and "
        "`pip install --no-index --find-links wheelhouse mkdocs-of-nobody nobody-client`\n"
    )


def test_a_torch_without_cuda_is_one_line(root, monkeypatch, capsys):
    monkeypatch.delenv("COURSE_FAKE_GPUS")
    monkeypatch.setattr(docs, "find_gpus", lambda: [Gpu(0, "NVIDIA H200", (9, 0), 1, "0")])
    monkeypatch.setattr(docs, "MEASURING", {"torch": "torch"})
    monkeypatch.setattr(docs, "_is_there", lambda module: True)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.13.0+cpu")
    assert measure(root) == 2
    assert only_line(capsys) == ("docs: torch 2.13.0+cpu cannot use the GPU: install a CUDA build of torch\n")


def test_an_unknown_page_is_one_line_with_a_near_name(root, capsys):
    write_page(root, "attention", "1")
    assert measure(root, "--page", "docs/atention.py") == 2
    assert only_line(capsys) == (
        "docs: --page docs/atention.py: there is no such page that measures; did you mean docs/attention.py?\n"
    )


def test_a_page_that_cannot_be_read_is_one_line(root, capsys):
    write(root, "docs/a.py", "print(1)\n")
    assert measure(root) == 2
    assert only_line(capsys) == "docs: docs/a.py: no YAML head (id, title) at the top\n"


@pytest.mark.parametrize(
    "options",
    [("--jobs", "0"), ("--minutes", "-1"), ("--minutes", "nan"), ("--minutes", "inf"), ("--nothing",)],
)
def test_wrong_options_are_refused(root, options):
    with pytest.raises(SystemExit) as caught:
        measure(root, *options)
    assert caught.value.code == 2


# --- building: all or nothing -----------------------------------------------------------------------------

MKDOCS = """
import os, pathlib, sys
def cli(arguments, prog_name):
    assert arguments[:4] == ["build", "--strict", "--config-file", "mkdocs.yml"] and arguments[4] == "--site-dir"
    site = pathlib.Path(arguments[5])
    site.mkdir(parents=True)
    switches = ("COURSE_EDITION", "COURSE_DRAFT", "COURSE_REBUILT")
    text = "<html><body>" + " ".join(f"{k}={os.environ.get(k)}" for k in switches) + prog_name
    (site / "index.html").write_text(text + os.environ.get("PLANTED_LINK", "") + "</body></html>")
    sys.exit(int(os.environ.get("PLANTED_EXIT", "0")))
"""


@pytest.fixture
def with_mkdocs(root, monkeypatch, tmp_path_factory):
    """A stand-in for MkDocs, found before the real one; what Python compiles is kept for all of these tests."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.getbasetemp() / "compiled"))
    write(root, "src/mkdocs/__init__.py", "")
    write(root, "src/mkdocs/__main__.py", MKDOCS)
    write(root, "site/index.html", "the site before")
    return root


def test_a_build_takes_the_place_of_the_site(with_mkdocs, monkeypatch):
    write(with_mkdocs, "site/gone.html", "only in the old site")
    for left in ("COURSE_DRAFT", "COURSE_REBUILT"):  # by an earlier try, and nobody sees it
        monkeypatch.setenv(left, "1")
    monkeypatch.setenv("COURSE_EDITION", "nvidia-a100")
    docs.build(with_mkdocs, None)
    made = "COURSE_EDITION={} COURSE_DRAFT={} COURSE_REBUILT={}"
    assert made.format("nvidia-h200", None, None) in (with_mkdocs / "site/index.html").read_text()
    assert [path.name for path in (with_mkdocs / "site").iterdir()] == ["index.html"]
    assert [path.name for path in (with_mkdocs / ".cache").iterdir()] == ["kept"]
    docs.build(with_mkdocs, "nvidia-h200", draft=True)
    assert f"{made.format('nvidia-h200', 1, 1)}mkdocs" in (with_mkdocs / "site/index.html").read_text()


def test_another_engine_takes_the_place_of_mkdocs_in_all_that_imports_it(with_mkdocs):
    write(with_mkdocs, "src/properdocs/__init__.py", "")
    write(
        with_mkdocs, "src/properdocs/__main__.py", f"import sys\nassert sys.modules['mkdocs'] == 1\n{MKDOCS}"
    )
    write(with_mkdocs, "src/properdocs/replacement.py", "import sys\nsys.modules['mkdocs'] = 1")
    docs.build(with_mkdocs, None, engine="properdocs", into=with_mkdocs / "elsewhere")
    assert "properdocs" in (with_mkdocs / "elsewhere/index.html").read_text()
    assert (with_mkdocs / "site/index.html").read_text() == "the site before"


def held(root, slug, gpu):
    """A record that says no more than its card."""
    record = {"metadata": {"course": {"edition": {"gpu": gpu}}}}
    write(root, f"records/{slug}/docs/a.ipynb", json.dumps(record))


SHARED = "assets/a.css search/index.js 404.html LICENSE.txt percent-of-peak.tar.gz handouts/w1.pdf"
INDEX = 'PercentOfPeak.searchIndex={"pages": [], "parts": []};'


def test_every_edition_has_a_folder_of_its_own_without_what_all_share(with_mkdocs, capsys):
    held(with_mkdocs, "nvidia-rtx-4090", "NVIDIA GeForce RTX 4090")
    more = f"""
    for name in "{SHARED} ledger.json".split():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text({INDEX!r})
    sys.exit"""
    write(with_mkdocs, "src/mkdocs/__main__.py", MKDOCS.replace("\n    sys.exit", more))
    docs.build(with_mkdocs, "nvidia-rtx-4090")
    site = with_mkdocs / "site"
    made = "COURSE_EDITION={} COURSE_DRAFT=None COURSE_REBUILT={}"
    assert made.format("nvidia-h200", None) in (site / "index.html").read_text()
    assert made.format("nvidia-rtx-4090", 1) in (site / "rtx-4090/index.html").read_text()
    assert all((site / name).exists() for name in SHARED.split())
    assert sorted(path.name for path in (site / "rtx-4090").iterdir()) == ["index.html", "ledger.json"]
    # The one that was measured just now is opened.
    assert capsys.readouterr().out == f"docs: site/ is built: open {site}/rtx-4090/index.html\n"


def test_links_are_followed_from_one_edition_to_another_and_a_fault_of_one_stops_all(
    with_mkdocs, monkeypatch, capsys
):
    held(with_mkdocs, "nvidia-a100-sxm4-80gb", "NVIDIA A100-SXM4-80GB")
    monkeypatch.setenv("PLANTED_LINK", '<a href="../index.html">x</a><a href="a100/index.html">x</a>')
    with pytest.raises(build.BuildFailed, match=r"^2 broken links$"):
        docs.build(with_mkdocs, None)
    said = capsys.readouterr().err.splitlines()
    assert "  index.html:1: '../index.html' leads to no file" in said
    assert "  a100/index.html:1: 'a100/index.html' leads to no file" in said
    assert (with_mkdocs / "site/index.html").read_text() == "the site before"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PLANTED_EXIT", "1", "docs: the build failed, see above; site/ is as it was"),
        ("PLANTED_LINK", '<a href="nowhere.html">x</a>', "docs: 1 broken link; site/ is as it was"),
        ("PLANTED_LINK", "<p>3 × 2 = 7</p>", "docs: 1 wrong sum; site/ is as it was"),
        (
            "PLANTED_LINK",
            '<a href="nowhere.html">x</a><p>3 × 2 = 7</p>',
            "docs: 1 broken link and 1 wrong sum; site/ is as it was",
        ),
    ],
)
def test_a_failed_build_leaves_the_site_as_it_was(with_mkdocs, monkeypatch, capsys, name, value, said):
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setenv(name, value)
    assert docs.main([], with_mkdocs) == 1
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert (with_mkdocs / "site/index.html").read_text() == "the site before"
    assert list((with_mkdocs / ".cache").iterdir()) == []
    monkeypatch.delenv(name)
    assert docs.main([], with_mkdocs) == 0


def test_who_has_just_measured_is_not_stopped_by_a_sum(with_mkdocs, monkeypatch):
    monkeypatch.setenv("PLANTED_LINK", "<p>3 × 2 = 7</p>")
    with pytest.raises(build.BuildFailed, match=r"^1 wrong sum$"):
        docs.build(with_mkdocs, None)
    docs.build(with_mkdocs, "nvidia-h200")
    assert "3 × 2 = 7" in (with_mkdocs / "site/index.html").read_text()


def test_a_swap_that_fails_puts_the_old_site_back(tmp_path):
    site = write(tmp_path, "site/index.html", "before").parent
    with pytest.raises(FileNotFoundError):
        build.swap(tmp_path / "never_built", site, tmp_path / "old")
    assert (site / "index.html").read_text() == "before"


# --- GPU tests --------------------------------------------------------------------------------------------


# As the conftest of the course does it: the option, and the tests of other groups left out.
ONLY_THE_GROUPS = """
def pytest_addoption(parser):
    parser.addoption("--group", action="append", default=[])


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if item.path.stem.removeprefix("test_") in config.getoption("--group")]
"""


def gpu_tests(root, body):
    write(root, "tests/gpu/conftest.py", ONLY_THE_GROUPS)
    write(root, "tests/gpu/test_it.py", f'GROUPS = ("it",)\n{body}')
    write(root, "src/mkdocs/__init__.py", "")
    write(root, "src/mkdocs/__main__.py", MKDOCS)


def test_gpu_tests_run_before_a_whole_build_when_their_record_does_not_hold(root, monkeypatch, capfd):
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(docs, "build", lambda *a, **k: None)
    write_page(root, "a", "1")
    gpu_tests(root, "def test_planted():\n    assert False\n")
    assert docs.main([], root) == 1
    assert "tests/gpu: pytest ended with 1, see above" in capfd.readouterr().err
    gpu_tests(root, "def test_fine():\n    pass\n")
    assert docs.main([], root) == 0
    gpu_tests(root, "def test_planted():\n    assert False\n")
    assert measure(root) == 0  # no build follows that would miss them
    assert measure(root, "--tests") == 1


def tested_groups(root):
    """A repository with the GPU tests of two groups, both with a record."""
    for group in ("one", "two"):
        write(root, f"tests/gpu/test_{group}.py", f'GROUPS = ("{group}",)\nFACTOR = 1\n')
    for group in ("one", "two"):
        of_gpu_tests(root, group)


def of_gpu_tests(root, group, **changes):
    data = {
        "group": group,
        "passed": 1,
        "failed": 0,
        "tests": [{"id": "a", "outcome": "passed", "seconds": 61.0}],
        "provenance": fake_provenance(find_gpus()[0]) | {"dirty": False} | changes,
        "coverage": gpu_test_records.Project(root).coverage(group),
    }
    write(root, f"records/nvidia-h200/tests/{group}.json", json.dumps(seal(data)))


def plan_of_tests(root, capsys, *options):
    capsys.readouterr()
    assert docs.main(["--plan", "--stale", *options], root) == 0
    return [line for line in capsys.readouterr().out.splitlines()[1:-1] if "groups" in line or ": " in line]


def test_a_plan_names_the_groups_of_gpu_tests_that_would_run_their_seconds_and_why(root, monkeypatch, capsys):
    tested_groups(root)
    assert plan_of_tests(root, capsys) == []
    assert plan_of_tests(root, capsys, "--tests") == [
        "  tests/gpu: 2.0 min: one (61 s), two (61 s)",
        "      2 groups: asked for",
    ]
    write(root, "tests/gpu/test_one.py", 'GROUPS = ("one",)\nFACTOR = 2\n')
    write(root, "tests/gpu/test_new.py", 'GROUPS = ("new",)\n')
    expected = [
        "  tests/gpu: 1.5 min: new (never run), one (61 s)",
        "      new: is missing",
        "      one: is stale: tests/gpu/test_one.py changed since the GPU tests ran",
    ]
    assert plan_of_tests(root, capsys) == expected
    monkeypatch.setenv("COURSE_FAKE_GPUS", "[]")
    assert plan_of_tests(root, capsys) == expected


def test_gpu_tests_of_other_versions_or_of_uncommitted_files_run_again(root, capsys):
    tested_groups(root)
    of_gpu_tests(root, "one", torch="2.99")
    of_gpu_tests(root, "two", dirty=True)
    assert plan_of_tests(root, capsys)[1:] == [
        "      one: is of torch 2.99, here is 2.11",
        "      two: was made from files that differ from their commit; commit those files",
    ]


@pytest.fixture
def ran(monkeypatch):
    """The groups of GPU tests by process, call after call, in place of running them; nothing is built."""
    calls = []
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(docs, "build", lambda *a, **k: None)
    monkeypatch.setattr(
        running,
        "_pytest",
        lambda root, parts: calls.append([[job.verdict.group for job in part] for part in parts]) or [0],
    )
    return calls


def test_only_the_groups_that_do_not_hold_are_run(root, ran):
    tested_groups(root)
    write(root, "tests/gpu/test_one.py", 'GROUPS = ("one",)\nFACTOR = 2\n')
    assert docs.main([], root) == 0
    assert docs.main(["--tests"], root) == 0
    assert ran == [[["one"]], [], [["one"], ["two"]], []]


MEETING = """
    import os, pathlib, time
    assert int(os.environ["OMP_NUM_THREADS"]) <= max(1, os.cpu_count() // 2)
    here = pathlib.Path(__file__).parent
    (here / "{name}.here").touch()
    for _ in range(300):
        if (here / "{other}.here").exists():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("nobody came")
    time.sleep(1.0)
    (here / "{name}.here").unlink()
"""
ALL_BY_ITSELF = """
    import pathlib
    assert not list(pathlib.Path(__file__).parent.glob("*.here"))
"""


def test_gpu_tests_run_side_by_side_but_for_those_that_look_at_time(root, monkeypatch, capfd):
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(docs, "build", lambda *a, **k: None)
    write(root, "tests/gpu/conftest.py", ONLY_THE_GROUPS)
    for name, other in (("one", "two"), ("two", "one")):
        body = MEETING.format(name=name, other=other)
        write(root, f"tests/gpu/test_{name}.py", f'GROUPS = ("{name}",)\ndef test_it():{body}')
    watch = f'GROUPS = ("watch",)\nALONE = True\ndef test_it():{ALL_BY_ITSELF}'
    write(root, "tests/gpu/test_watch.py", watch)
    assert docs.main(["--tests"], root) == 0
    out = capfd.readouterr().out
    assert "docs: GPU tests of 3 groups" in out
    assert out.count("1 passed") == 3
    write(root, "tests/gpu/test_two.py", 'GROUPS = ("two",)\ndef test_it():\n    assert 0, "planted"\n')
    write(root, "tests/gpu/test_one.py", 'GROUPS = ("one",)\ndef test_it(): pass\n')
    assert docs.main(["--tests"], root) == 1
    found = capfd.readouterr()
    assert "AssertionError: planted" in found.out
    assert "tests/gpu: pytest ended with 1, see above" in found.err


def test_gpu_tests_whose_packages_are_not_there_are_left_and_said(root, ran, monkeypatch, capsys):
    tested_groups(root)
    pyproject = '[project.optional-dependencies]\nstairs = ["made-up"]\n'
    monkeypatch.setattr(packages, "PROJECT", write(root, "elsewhere/pyproject.toml", pyproject).parent)
    assert docs.main(["--plan", "--tests"], root) == 0
    assert "2 groups of GPU tests" in capsys.readouterr().out
    one = next((root / "tests" / "gpu").glob("test_*.py"))
    one.write_text(f'{one.read_text()}\nPACKAGES = "stairs"\n')
    assert docs.main(["--plan", "--tests"], root) == 0
    out = capsys.readouterr().out
    assert "1 group of GPU tests" in out
    assert "not installed here: made-up; `-- --with stairs` installs them: their last record stands" in out


def test_gpu_tests_for_another_card_are_listed_and_left(root, ran, monkeypatch, capsys):
    tested_groups(root)
    one = next((root / "tests" / "gpu").glob("test_*.py"))
    one.write_text(f'{one.read_text()}\nCAPABILITY = "10.0"\n')
    assert docs.main(["--plan", "--tests"], root) == 0
    out = capsys.readouterr().out
    assert "1 group of GPU tests" in out
    assert "needs capability 10.0, and the NVIDIA H200 has 9.0, which collects none of them" in out
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([{"name": "NVIDIA B200", "capability": [10, 3]}]))
    assert docs.main(["--plan", "--tests"], root) == 0
    out = capsys.readouterr().out
    assert "2 groups of GPU tests" in out
    assert "none of them" not in out


def test_gpu_tests_that_need_two_devices_are_left_where_there_is_one(root, ran, monkeypatch, capsys):
    tested_groups(root)
    one = next((root / "tests" / "gpu").glob("test_*.py"))
    one.write_text(f"{one.read_text()}\nGPUS = 2\n")
    assert docs.main(["--plan", "--tests"], root) == 0
    out = capsys.readouterr().out
    assert "1 group of GPU tests" in out
    assert "needs 2 GPUs, and there is 1, which collects none of them" in out
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps([H200, H200]))
    assert docs.main(["--plan", "--tests"], root) == 0
    out = capsys.readouterr().out
    assert "2 groups of GPU tests" in out
    assert "none of them" not in out


def test_pages_are_measured_before_the_gpu_tests_and_the_forecast_counts_both(root, ran, capsys):
    tested_groups(root)
    write_page(root, "a", "1")
    forecast = "1 page and 2 groups of GPU tests, about 4.0 GPU minutes"
    assert docs.main(["--plan", "--tests"], root) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == forecast
    assert [line.split(":")[0] for line in lines[1:3]] == ["  docs/a.py", "  tests/gpu"]
    assert docs.main(["--tests"], root) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"docs: {forecast.replace(', ', ' to run on 1 × NVIDIA H200, ')}\n")
    assert out.index("measured docs/a.py") < out.index("docs: GPU tests of 2 groups")


def test_who_asks_for_a_page_gets_no_tests_unless_asked_for(root, ran):
    write(root, "tests/gpu/test_one.py", 'GROUPS = ("one",)\n')
    page = write_page(root, "a", "1")
    assert docs.main(["--page", page], root) == 0
    assert ran == []
    assert docs.main(["--page", page, "--tests"], root) == 0
    assert ran == [[["one"]], []]


def test_gpu_tests_that_would_not_end_in_time_are_left(root, ran, capsys):
    tested_groups(root)
    assert docs.main(["--tests", "--minutes", "2"], root) == 3
    assert ran == []
    assert "out of minutes, not measured: tests/gpu/one, tests/gpu/two; " in capsys.readouterr().err


def test_labs_run_on_a_card_that_nothing_else_uses(root, ran):
    write(root, "tests/gpu/test_one.py", 'GROUPS = ("one",)\n')
    write(root, "tests/gpu/test_labs.py", 'GROUPS = ("lab:two",)\n')
    assert docs.main(["--tests"], root) == 0
    assert ran == [[["one"]], [["lab:two"]]]


def test_a_process_of_gpu_tests_that_is_killed_is_not_called_green(root, monkeypatch, capsys):
    tested_groups(root)
    monkeypatch.setattr(docs, "RENDERING", {})
    monkeypatch.setattr(running, "_pytest", lambda root, parts: [0, -9] if parts else [])
    assert docs.main(["--tests"], root) == 1
    assert "tests/gpu: pytest ended with -9, see above" in capsys.readouterr().err


def test_groups_are_shared_out_evenly():
    verdicts = [gpu_test_records.Verdict(str(s), "", float(s)) for s in (65, 34, 30, 13, 10, 5)]
    verdicts.append(gpu_test_records.Verdict("new", "never ran"))
    groups = [plan.GroupJob(verdict, alone=False) for verdict in verdicts]
    parts = running._shared_out(groups, 3)
    assert sorted(job.name for part in parts for job in part) == sorted(job.name for job in groups)
    assert [max(sum(job.forecast_s for job in part) for part in parts)] == [65.0]
    assert running._shared_out([], 3) == []
    assert len(running._shared_out(groups[:1], 3)) == 1


def test_a_test_file_of_no_group_is_one_line(root, capsys):
    write(root, "tests/gpu/test_it.py", "def test_it(): pass\n")
    assert docs.main(["--plan"], root) == 2
    assert only_line(capsys).startswith(
        "docs: tests/gpu/test_it.py: does not say whose tests it holds: write"
    )


def test_a_dirty_record_is_said(root, capsys):
    write_page(root, "a", "1")
    commit_all(root)
    assert measure(root) == 0
    assert "differ from commit" not in capsys.readouterr().out
    write_page(root, "a", "2")
    assert measure(root) == 0
    assert "made from files that differ from commit" in capsys.readouterr().out


# --- counters that cannot be read --------------------------------------------------------------------


def profiler(folder, monkeypatch, *, counts):
    """A machine with ncu on PATH whose child process can, or cannot, count."""
    write(folder, "ncu", "#!/bin/sh\n").chmod(0o755)
    answer = (
        "pass" if counts else "import sys; sys.exit('counters: this user may not read them: run as root')"
    )
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delenv("COURSE_FAKE_GPUS", raising=False)
    monkeypatch.setattr(plan, "COUNT_ONCE", answer)
    plan.counters_lacking.cache_clear()


@pytest.mark.parametrize(
    ("counts", "lacking"),
    [(True, None), (False, "needs hardware counters; this user may not read them: run as root")],
)
def test_a_page_that_counts_asks_whether_counters_can_be_read(tmp_path, monkeypatch, counts, lacking):
    profiler(tmp_path, monkeypatch, counts=counts)
    page = read_page(tmp_path / write_page(tmp_path, "a", "1", needs="counters"), tmp_path)

    assert plan.unmet(page, [Gpu(0, "NVIDIA H200", (9, 0), 1, "0")]) == lacking
    plan.counters_lacking.cache_clear()


def test_without_the_profiler_it_says_so(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    plan.counters_lacking.cache_clear()

    assert plan.counters_lacking() == "Nsight Compute (ncu) is not on PATH"
    plan.counters_lacking.cache_clear()
