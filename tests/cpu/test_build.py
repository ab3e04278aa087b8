"""The real site, built without a GPU: one planted fault at a time stops it, and words alone never do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_site.pages import read_page
from course_site.record import Record

REPOSITORY = Path(__file__).resolve().parents[2]
W1 = "docs/workshops/w1_flash_attention.py"
W1_RECORD = "records/nvidia-h200/docs/workshops/w1_flash_attention.ipynb"
ATTENTION = "src/course_kernels/attention"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A copy of every file of the repository, with a site/ built once."""
    root = tmp_path_factory.mktemp("copy")
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in subprocess.run(
        listed, cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.split("\0"):
        if name and (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def build(root):
    env = {
        **os.environ,
        "PYTHONPATH": str(root / "src"),
        "COURSE_FAKE_GPUS": "[]",
        "NO_MKDOCS_2_WARNING": "1",
    }
    command = [sys.executable, "-m", "course_site", "docs"]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def edit(repository):
    """Change files of the copy for one test."""
    before = {}

    def change(name, old, new=None):
        path = repository / name
        text = path.read_text(encoding="utf-8")
        before.setdefault(path, text)
        changed = old(text) if callable(old) else text.replace(old, new, 1)
        assert changed != text, f"{name} has no {old!r}"
        path.write_text(changed, encoding="utf-8")

    yield change
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")


def refused(root, *said):
    """The build fails, says what is said, and the site of before is untouched."""
    (root / "site" / "previous").write_text("still here")
    done = build(root)
    log = done.stdout + done.stderr
    assert done.returncode != 0, log
    assert (root / "site" / "previous").exists()
    assert (root / "site" / "index.html").exists()
    assert not [p for p in root.iterdir() if p.name.startswith(("site.", ".site"))]
    for words in said:
        assert words in log, log
    assert "Traceback" not in log, log


def accepted(root):
    (root / "site" / "previous").write_text("to be replaced")
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (root / "site" / "previous").exists()


def reseal(root, change, name=W1_RECORD):
    """Rewrite a record as its writer would: `change` gets the notebook."""
    notebook = json.loads((root / name).read_text(encoding="utf-8"))
    change(notebook)
    notebook["metadata"]["course"].pop("checksum")
    notebook["metadata"]["course"]["checksum"] = Record(notebook)._content_checksum()
    return json.dumps(notebook)


# --- a changed kernel ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (f"{ATTENTION}/k03_flash.py", "stages=3", "stages=2"),
        (f"{ATTENTION}/k02_teaching.cu", "0.0f", "0.5f"),
        ("src/course_kernels/arguments.py", "!=", "=="),
        ("src/course_kernels/measure/marker.py", "(number_ptr) + 1", "(number_ptr) + 2"),
        ("src/course_kernels/measure/summary.py", "_quantiles(samples,", "_quantiles(samples * 0.5,"),
        ("src/course_kernels/measure/machine.py", "4800.0", "4700.0"),
    ],
)
def test_a_changed_literal_makes_a_page_stale(repository, edit, name, old, new):
    edit(name, old, new)
    refused(repository, f"is stale: {name} changed since the record was made", "nox -s docs -- --page")


def test_a_header_that_comes_to_be_included_makes_a_page_stale(repository):
    planted = repository / "src/course_kernels/gemm/mma.h"
    planted.write_text("// in the place of the toolkit's\n")
    try:
        said = "gemm/k02_wmma.cu now includes src/course_kernels/gemm/mma.h, which no record knows"
        refused(repository, said)
    finally:
        planted.unlink()


@pytest.mark.parametrize("name", ["src/statistics.py", "src/torch/__init__.py", "statistics.py"])
def test_what_stands_before_a_library_stops_the_build(repository, name):
    planted = repository / name
    planted.parent.mkdir(exist_ok=True)
    planted.write_text("from math import *\n")
    try:
        refused(repository, f"{name.removesuffix('/__init__.py')}: ", "stand before")
    finally:
        planted.unlink()
        if planted.parent.name == "torch":
            planted.parent.rmdir()


def skip_while_the_gpu_tests_wait(repository):
    """Nothing holds their records against the code while records/waiting.toml lists them."""
    waiting = repository / "records/waiting.toml"
    if waiting.exists() and 'path = "tests/gpu' in waiting.read_text():
        pytest.skip("GPU tests wait for a card: records/waiting.toml")


def test_a_changed_header_makes_the_gpu_tests_of_its_problem_stale(repository, edit):
    skip_while_the_gpu_tests_wait(repository)
    edit("src/course_kernels/softmax/merge.cuh", "fmaxf", "fminf")
    refused(
        repository,
        "tests/softmax.json: is stale: src/course_kernels/softmax/merge.cuh changed since the GPU tests ran",
        "nox -s tests -- tests/gpu --group softmax",
    )


def test_gpu_tests_that_do_not_wait_are_not_listed(repository, edit):
    skip_while_the_gpu_tests_wait(repository)
    entry = '[[page]]\npath = "tests/gpu%s"\nsince = "2026-11-21"\nreason = "planted"\n'
    edit("records/waiting.toml", lambda text: f"{text}\n{entry % ''}\n{entry % '/gemm'}\n{entry % '/none'}")
    refused(
        repository,
        "records/waiting.toml: tests/gpu does not wait any more: take it off the list",
        "records/waiting.toml: tests/gpu/gemm does not wait any more: take it off the list",
        "records/waiting.toml: tests/gpu/none is no group of GPU tests",
    )


def test_the_counters_child_is_in_the_manifest():
    record = Record.load(REPOSITORY / W1_RECORD)
    page_files = set(record.meta["manifest"])
    assert "src/course_kernels/measure/marker.py" in page_files
    source = "\n".join(cell.source for cell in read_page(REPOSITORY / W1, REPOSITORY).code)
    assert "marker" not in source


def test_the_kernels_that_a_demo_runs_in_children_are_in_the_manifest():
    record = Record.load(REPOSITORY / "records/nvidia-h200/handbook/00_before_you_teach/demos.ipynb")
    page_files = set(record.meta["manifest"])
    kernels = (
        "sgemm/k09_asynchronous.cu",
        "attention/k03_flash.py",
        "gemm/k04_wgmma.cu",
        "refusals/cheats.py",
    )
    assert {f"src/course_kernels/{name}" for name in kernels} <= page_files


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (W1, "# # FlashAttention", "# # Your own FlashAttention"),
        (f"{ATTENTION}/k02_teaching.cu", "// ", "// Reworded: "),
        (f"{ATTENTION}/k03_flash.py", '"""', '"""Reworded. '),
        (W1, "# title: Attention forward, bf16", "# title: Forward attention, bf16"),
        ("docs/assets/css/site.css", "{", "{ /* restyled */ "),
        ("src/course_kernels/arguments.py", "expected a torch.Tensor, got", "wants a torch.Tensor, not"),
        ("src/course_kernels/measure/complaints.py", "import inspect\n", "import inspect\n\nPLANTED = 1\n"),
    ],
)
def test_words_and_looks_need_no_gpu(repository, edit, name, old, new):
    edit(name, old, new)
    accepted(repository)


def test_a_restyled_chart_needs_no_gpu(repository, edit):
    edit("src/course_site/charts.py", "TITLE = 9.2, 9.6, 11.6", "TITLE = 9.2, 9.6, 12.4")
    accepted(repository)


# --- a page that says too much ---------------------------------------------------------------------

LAST = "# **You can now**"


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("It reaches {{ flush.us:.0f }}.", "unknown value 'flush.us'"),
        ("/// claim | causal.flash.us > 9 * causal.cudnn.us\n# Slow.\n# ///", "is false: true in 0.0%"),
        ("/// claim | causal.flash.us > 0\n# Positive.\n# ///", "is vacuous"),
        ("It reaches 412 TFLOP/s.", "typed number '412 TFLOP/s'"),
        ("It reaches 412&nbsp;TFLOP/s.", "typed number '412"),
        ("It reaches $412$ TFLOPS.", "typed number '412 TFLOPS'"),
        ("It is twice as fast.", "typed number 'twice as fast'"),
        (
            "/// figure | docs/assets/figures/tiling.svg\n# alt: Tiles, 412 TFLOP/s of them\n# ///",
            "typed number '412 TFLOP/s'",
        ),
        ("/// figure | docs/assets/figures/tiling.svg\n# alt: Tiles, twice as fast\n# ///", "typed number"),
        ("See [the other page](nowhere.py).", "nowhere.py"),
        ("See [the other page](../start_here.py#no-such-place).", "no-such-place"),
        ("See the source[^nobody2020].", "cites 'nobody2020'"),
    ],
)
def test_one_wrong_line_stops_the_build(repository, edit, added, said):
    edit(W1, LAST, f"# {added}\n#\n{LAST}")
    refused(repository, W1.removeprefix("docs/"), said)


def test_a_raising_or_new_cell_is_stale(repository, edit):
    edit(W1, lambda text: text + "\n# %%\nraise RuntimeError('planted')\n")
    refused(repository, W1, "code cells, the record has")


def test_a_number_printed_by_a_cell_stops_the_build(repository, edit):
    printed = {"output_type": "stream", "name": "stdout", "text": "412 TFLOP/s, twice as fast\n"}
    rewritten = reseal(repository, lambda notebook: notebook["cells"][0]["outputs"].append(printed))
    edit(W1_RECORD, lambda _: rewritten)
    refused(repository, W1, "a cell prints the number '412 TFLOP/s'")


# --- a record that cannot be trusted -----------------------------------------------------------------


def test_a_record_of_uncommitted_files_stops_the_build(repository, edit):
    def dirty(notebook):
        notebook["metadata"]["course"]["provenance"]["dirty"] = True

    rewritten = reseal(repository, dirty)
    edit(W1_RECORD, lambda _: rewritten)
    refused(repository, W1, "its record was made from files that differ from their commit")


def test_a_truncated_record_stops_the_build(repository, edit):
    edit(W1_RECORD, lambda text: text[: len(text) // 2])
    refused(repository, W1_RECORD, "is cut short or not JSON")


def test_a_record_edited_by_hand_stops_the_build(repository, edit):
    edit(W1_RECORD, '"n": ', '"n": 1')
    refused(repository, W1_RECORD, "was changed by hand")


def test_records_of_two_editions_stop_the_build(repository, edit):
    def other(notebook):
        notebook["metadata"]["course"]["edition"]["torch"] = "2.10"

    rewritten = reseal(repository, other)
    edit(W1_RECORD, lambda _: rewritten)
    refused(repository, W1, "another edition", "torch 2.10")


def test_gpu_tests_that_are_edited_or_stale_stop_the_build(repository, edit):
    skip_while_the_gpu_tests_wait(repository)
    edit("records/nvidia-h200/tests/gemm.json", '"failed": 0', '"failed": 1')
    refused(repository, "tests/gemm.json: was changed by hand")


def test_a_fresh_page_that_is_listed_as_waiting_stops_the_build(repository):
    path = repository / "records/waiting.toml"
    before = path.read_text() if path.exists() else None
    entry = f'[[page]]\npath = "{W1}"\nsince = "2026-11-21"\nreason = "none"\n'
    path.write_text(f"{before or ''}\n{entry}")
    try:
        refused(repository, "records/waiting.toml", "does not wait any more")
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before)
