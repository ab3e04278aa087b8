"""The real site, built without a GPU: every planted fault stops it and is named, and words alone never do.

The build lists all that it finds at once, so faults that do not hide one another are planted together: a build takes
ten seconds, and each fault has a line of its own to be found by. What MkDocs itself does, two pages show.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound
from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config

from course_kernels.cuda import includes
from course_kernels.measure.machine import machine_for
from course_site.pages.page import read_page
from course_site.records import run_history
from course_site.records.artifacts import stated
from course_site.records.record import Record, seal
from course_site.site import hook, read, stage
from course_site.site.course import load_course
from course_site.site.render.page import render_again

REPOSITORY = Path(__file__).resolve().parents[2]
W1 = "docs/workshops/w1_flash_attention.py"
ATTENTION = "src/course_kernels/attention"

RECORDS = "records/nvidia-h200"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A copy of every file of the repository, with a site/ that a build before left: here a page of one word."""
    root = tmp_path_factory.mktemp("copy")
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    for name in subprocess.run(
        listed, cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.split("\0"):
        if name and (REPOSITORY / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name)
    for made in ("charts", "executed", "kept"):  # found again by what they were made from
        if (REPOSITORY / ".cache" / made).is_dir():
            shutil.copytree(REPOSITORY / ".cache" / made, root / ".cache" / made)
    (root / "site").mkdir(exist_ok=True)
    (root / "site" / "index.html").write_text("before")
    return root


def environment(root):
    """For a process that builds a course: by its own source, or by ours where it has none."""
    source = (root if (root / "src" / "course_site").exists() else REPOSITORY) / "src"
    more = {"PYTHONPATH": str(source), "COURSE_FAKE_GPUS": "[]", "NO_MKDOCS_2_WARNING": "1"}
    return {**os.environ, **more}


def build(root):
    command = [sys.executable, "-m", "course_site", "docs"]
    return subprocess.run(
        command, cwd=root, env=environment(root), capture_output=True, text=True, check=False
    )


@pytest.fixture
def edit(repository):
    """Change or make files of the copy for one test."""
    before, made = {}, []

    def change(name, old, new=None):
        path = repository / name
        if not path.exists():
            made.extend([path, *(folder for folder in path.parents if not folder.exists())])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(old("") if callable(old) else new, encoding="utf-8")
            return
        text = path.read_text(encoding="utf-8")
        before.setdefault(path, text)
        changed = old(text) if callable(old) else text.replace(old, new, 1)
        assert changed != text, f"{name} has no {old!r}"
        path.write_text(changed, encoding="utf-8")

    yield change
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")
    for path in made:
        path.rmdir() if path.is_dir() else path.unlink()


def refused(root, *said):
    """The build fails, names every fault, and the site of before is untouched."""
    (root / "site" / "previous").write_text("still here")
    done = build(root)
    log = done.stdout + done.stderr
    assert done.returncode != 0, log
    assert (root / "site" / "previous").exists()
    assert (root / "site" / "index.html").exists()
    assert not [p for p in root.iterdir() if p.name.startswith(("site.", ".site"))]
    assert "Traceback" not in log, log
    missed = [words for words in said if not any(is_in(words, line) for line in log.splitlines())]
    assert not missed, f"{missed}\n{log}"


@contextlib.contextmanager
def in_the_copy(root):
    """This process takes the copy for the project, whose files lie here too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr(sys, "path", [path for path in sys.path if Path(path).resolve() != REPOSITORY])
        patch.setattr(includes, "SHARED", root / "src/course_kernels/cuda")
        yield patch


def problems(root, *pages):
    """What stops a build before a page is drawn: the records and the sources, and what is written on these pages."""
    with in_the_copy(root):
        course = load_course(root)
        for page in [page for page in course.pages if page.path.as_posix() in pages]:
            render_again(course, page, {})
        return list(map(str, course.problems))


def stops(root, *said, pages=()):
    """These are among its problems."""
    found = problems(root, *pages)
    missed = [words for words in said if not any(is_in(words, line) for line in found)]
    assert not missed, f"{missed}\n{found}"


def is_in(words, line):
    """All of the words stand in one line: what is wrong, and where."""
    return all(word in line for word in ([words] if isinstance(words, str) else words))


def reseal(root, name, change: Callable[[dict], object]):
    """A record rewritten as its writer would: `change` gets the notebook."""
    notebook = json.loads((root / name).read_text(encoding="utf-8"))
    change(notebook)
    notebook["metadata"]["course"].pop("checksum")
    notebook["metadata"]["course"]["checksum"] = Record(notebook)._content_checksum()
    return json.dumps(notebook)


# --- what a record covers --------------------------------------------------------------------------

LITERALS = [
    (f"{ATTENTION}/k03_flash.py", "stages=3", "stages=2"),
    (f"{ATTENTION}/k02_teaching.cu", "0.0f", "0.5f"),
    ("src/course_kernels/arguments.py", "!=", "=="),
    ("src/course_kernels/measure/marker.py", "(number_ptr) + 1", "(number_ptr) + 2"),
    ("src/course_kernels/measure/summary.py", "_quantiles(samples,", "_quantiles(samples * 0.5,"),
    ("src/course_kernels/measure/machine.py", "4800.0", "4700.0"),
]


def test_what_no_record_covers_any_more_stops_the_build(repository, edit):
    """Its problems alone: that one stops the build, and leaves the site, the other tests see."""
    said = []
    for name, old, new in LITERALS:
        edit(name, old, new)
        said.append((f"is stale: {name} changed since the record was made", "nox -s docs -- --page"))
    edit("docs/lectures/l2_the_cuda_model.py", lambda text: text + "\n# %%\nraise RuntimeError('planted')\n")
    said.append(("docs/lectures/l2_the_cuda_model.py", "code cells, the record has"))
    edit(f"{RECORDS}/docs/lectures/l3_memory.ipynb", lambda text: text[: len(text) // 2])
    said.append((f"{RECORDS}/docs/lectures/l3_memory.ipynb", "is cut short or not JSON"))
    edit(f"{RECORDS}/docs/lectures/l4_the_gemm_ladder.ipynb", '"n": ', '"n": 1')
    said.append((f"{RECORDS}/docs/lectures/l4_the_gemm_ladder.ipynb", "was changed by hand"))
    stops(repository, *said)


def test_what_stands_before_a_library_stops_the_build(repository, edit):
    planted = ("src/statistics.py", "src/torch/__init__.py", "statistics.py")
    for name in planted:
        edit(name, "", "from math import *\n")
    refused(repository, *((f"{name.removesuffix('/__init__.py')}: ", "would shadow") for name in planted))


def skip_while_the_gpu_tests_wait(repository):
    """Nothing holds their records against the code while records/waiting.toml lists them."""
    waiting = repository / "records/waiting.toml"
    if waiting.exists() and 'path = "tests/gpu' in waiting.read_text():
        pytest.skip("GPU tests wait for a card: records/waiting.toml")


def test_records_of_gpu_tests_that_do_not_hold_stop_the_build(repository, edit):
    skip_while_the_gpu_tests_wait(repository)
    edit("src/course_kernels/softmax/merge.cuh", "fmaxf", "fminf")
    edit(f"{RECORDS}/tests/transpose.json", '"failed": 0', '"failed": 1')
    entry = '[[page]]\npath = "tests/gpu%s"\nsince = "2026-11-21"\nreason = "planted"\n'
    edit("records/waiting.toml", lambda text: f"{text}\n{entry % '/sgemm'}\n{entry % '/none'}")
    stops(
        repository,
        (
            "tests/softmax.json: is stale: src/course_kernels/softmax/merge.cuh changed since the GPU tests ran",
            "nox -s tests -- tests/gpu --group softmax",
        ),
        "tests/transpose.json: was changed by hand",
        "records/waiting.toml: tests/gpu/sgemm does not wait any more: take it off the list",
        "records/waiting.toml: tests/gpu/none is not a group of GPU tests",
    )


def test_gpu_tests_that_do_not_wait_are_not_listed(repository, edit):
    skip_while_the_gpu_tests_wait(repository)
    entry = '[[page]]\npath = "tests/gpu"\nsince = "2026-11-21"\nreason = "planted"\n'
    edit("records/waiting.toml", lambda text: f"{text}\n{entry}")
    stops(repository, "records/waiting.toml: tests/gpu does not wait any more: take it off the list")


def test_the_counters_child_is_in_the_manifest():
    record = Record.load(REPOSITORY / newest_record(REPOSITORY, W1.removesuffix("py") + "ipynb"))
    page_files = set(record.meta["manifest"])
    assert "src/course_kernels/measure/marker.py" in page_files
    source = "\n".join(cell.source for cell in read_page(REPOSITORY / W1, REPOSITORY).code)
    assert "marker" not in source


def test_the_kernels_that_a_demo_runs_in_children_are_in_the_manifest():
    record = Record.load(REPOSITORY / f"{RECORDS}/handbook/00_before_you_teach/demos.ipynb")
    page_files = set(record.meta["manifest"])
    kernels = (
        "sgemm/k09_asynchronous.cu",
        "attention/k03_flash.py",
        "gemm/k04_wgmma.cu",
        "refusals/cheats.py",
    )
    assert {f"src/course_kernels/{name}" for name in kernels} <= page_files


# --- words and looks -------------------------------------------------------------------------------

WORDS = [
    (W1, "# # FlashAttention", "# # Your own FlashAttention"),
    (W1, "# title: Attention forward, bf16", "# title: Forward attention, bf16"),
    (f"{ATTENTION}/k02_teaching.cu", "// ", "// Reworded: "),
    (f"{ATTENTION}/k03_flash.py", '"""', '"""Reworded. '),
    ("docs/assets/css/site.css", "{", "{ /* restyled */ "),
    ("src/course_kernels/arguments.py", "expected a torch.Tensor, got", "wants a torch.Tensor, not"),
    ("src/course_kernels/measure/messages.py", "import inspect\n", "import inspect\n\nPLANTED = 1\n"),
]
LOOKS = ("src/course_site/charts/plots.py", "TITLE = 11.0, 12.6", "TITLE = 11.0, 13.2")


MADE = "workshops/w1_flash_attention.artifacts/made.txt"


# --- a page that says too much, a record that cannot be trusted ----------------------------------------

LAST = "# **You can now**"
WRONG_LINES = [
    ("It reaches {{ flush.us:.0f }}.", "unknown value 'flush.us'"),
    ("/// claim | causal.flash.us > 9 * causal.cudnn.us\n# Slow.\n# ///", "is false: true in 0.0%"),
    ("/// claim | causal.flash.us > 0\n# Positive.\n# ///", "is vacuous"),
    ("It reaches 412 TFLOP/s.", "typed number '412 TFLOP/s'"),
    ("It reaches 413&nbsp;TFLOP/s.", "typed number '413"),
    ("It reaches $414$ TFLOPS.", "typed number '414 TFLOPS'"),
    ("It is twice as fast.", "typed number 'twice as fast'"),
    (
        "/// figure | docs/assets/figures/tiling.svg\n# alt: Tiles, 415 TFLOP/s of them\n# ///",
        "typed number '415 TFLOP/s'",
    ),
    (
        "/// figure | docs/assets/figures/tiling.svg\n# alt: Tiles, three times as fast\n# ///",
        "typed number 'three times as fast'",
    ),
    ("See the source[^nobody2020].", "cites 'nobody2020'"),
]


def test_wrong_lines_and_records_of_doubt_stop_the_build(repository, edit):
    """Their problems alone: that one which is found on a page stops the build, a page of two shows."""
    added = "".join(f"# {line}\n#\n" for line, _ in WRONG_LINES)
    edit(W1, LAST, f"{added}{LAST}")
    said = [(W1, words) for _, words in WRONG_LINES]

    def rewrite(page, change):
        name = f"{RECORDS}/{page.removesuffix('.py')}.ipynb"
        rewritten = reseal(repository, name, change)
        edit(name, lambda _: rewritten)

    edit("src/course_kernels/gemm/mma.h", "", "// in the place of the toolkit's\n")
    said.append("gemm/k02_wmma.cu now includes src/course_kernels/gemm/mma.h, which no record knows")
    printed = {"output_type": "stream", "name": "stdout", "text": "412 TFLOP/s, twice as fast\n"}
    rewrite("docs/start_here.py", lambda notebook: notebook["cells"][0]["outputs"].append(printed))
    said.append(("docs/start_here.py", "a cell prints the number '412 TFLOP/s'"))
    l1, l2 = "docs/lectures/l1_what_a_gpu_is.py", "docs/lectures/l2_the_cuda_model.py"
    rewrite(l1, lambda notebook: notebook["metadata"]["course"]["provenance"].update(dirty=True))
    said.append((l1, "its record was made from files that differ from their commit"))
    rewrite(l2, lambda notebook: notebook["metadata"]["course"]["edition"].update(torch="2.10"))
    said.append(("another edition", "torch 2.10"))
    entry = '[[page]]\npath = "docs/lectures/l3_memory.py"\nsince = "2026-11-21"\nreason = "none"\n'
    edit("records/waiting.toml", lambda text: f"{text}\n{entry}")
    said.append("records/waiting.toml: docs/lectures/l3_memory.py does not wait any more")
    stops(repository, *said, pages=(W1, "docs/start_here.py"))


# --- another card's edition, and the site while somebody writes -----------------------------------------

B200 = {"gpu": "NVIDIA B200", "slug": "nvidia-b200"}


def newest_record(repository, name):
    """Of a page, on whatever card: the build shows no older one beside it."""

    def when(path):
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]["provenance"]["date"]

    others = [p for p in (repository / "records").glob(f"*/{name}") if B200["slug"] not in p.parts]
    return max(others, key=when).relative_to(repository).as_posix()


@contextlib.contextmanager
def records_of_a_b200(repository):
    """The records as a card of another kind would have left them; how fast it would be does not matter here."""
    theirs = repository / "records" / B200["slug"]

    def move(course):
        course["edition"].update(B200)
        course["provenance"].update(B200)

    for path in sorted((repository / RECORDS).rglob("*.ipynb")):
        name = path.relative_to(repository / RECORDS)
        (theirs / name).parent.mkdir(parents=True, exist_ok=True)
        newest = newest_record(repository, name)
        rewritten = reseal(repository, newest, lambda book: move(book["metadata"]["course"]))
        (theirs / name).write_text(rewritten, encoding="utf-8")
        run_history.append(repository, B200["slug"], Record.load(theirs / name))
        made = (repository / newest).with_suffix(".artifacts")
        if made.is_dir():
            shutil.copytree(made, (theirs / name).with_suffix(".artifacts"))
    (theirs / "tests").mkdir()
    tested = [path for path in (repository / "records").glob("*/tests/*.json") if theirs not in path.parents]
    records = [(path.name, json.loads(path.read_text(encoding="utf-8"))) for path in tested]
    # A group may have passed on another card since.
    for name, record in sorted(records, key=lambda named: named[1]["provenance"]["date"]):
        record.pop("checksum")
        move(record)
        (theirs / "tests" / name).write_text(json.dumps(seal(record)), encoding="utf-8")
    yield B200["slug"]
    shutil.rmtree(theirs)


def test_another_look_of_every_chart_needs_no_gpu(repository, edit):
    """Its problems alone: to draw all charts takes as long as all the rest of a build."""
    edit(*LOOKS)
    assert problems(repository) == []


def test_words_and_looks_need_no_gpu_and_another_card_has_its_own_edition(repository, edit):
    """All that the build does itself, for both: whether a record covers a file is asked in every edition alike.

    What MkDocs makes of it, the README's first command and two pages show.
    """
    for name, old, new in WORDS:
        edit(name, old, new)
    # A file that a cell made is published beside the page that links it.
    newest = newest_record(repository, W1.removesuffix("py") + "ipynb")
    edit(f"{newest.removesuffix('ipynb')}artifacts/made.txt", "", "by a cell")
    edit(
        newest,
        lambda _: reseal(
            repository,
            newest,
            lambda notebook: notebook["metadata"]["course"].update(
                artifacts=stated({"made.txt": b"by a cell"})
            ),
        ),
    )
    edit(W1, "# **You can now**", "# Take [what it made](artifact:made.txt).\n#\n# **You can now**")
    with records_of_a_b200(repository) as slug, in_the_copy(repository) as patch:
        patch.setenv("COURSE_EDITION", slug)
        patch.setenv("COURSE_REBUILT", "1")
        patch.setattr(stage.unread, "faults", lambda root: [])  # nobody has read what is edited here
        config = load_config(str(repository / "mkdocs.yml"))
        hook.on_config(config)
        built = hook._build.stage
        w1 = next(page.id for page in built.course.pages if page.path.as_posix() == W1)
        made = built.course.artifacts(w1)["made.txt"]
        assert made.read_text() == "by a cell"
    assert f"]({MADE.split('/')[1]}/made.txt)" in built.rendered[w1].markdown
    assert "Your own FlashAttention" in built.rendered[w1].markdown
    for page in built.course.pages:
        if page.path.stem in ("start_here", "l5_the_top_of_the_ladder", "w1_flash_attention"):
            text = built.rendered[page.id]
            assert "NVIDIA B200" in text.fill(text.markdown), page.path
    # The same bytes in the same time are a smaller part of a wider road.
    name = "measured: copy.gib4.torch.of_peak"
    of_peak = next(value for value in built.entries if (value["name"], value["kind"]) == (name, "shown"))
    share = Record.load(repository / f"{RECORDS}/docs/how_we_measure.ipynb").names["copy"]["gib4"]["torch"]
    rate = 2 * 4 * 2**30 / share["quantiles_us"]["0.5"] / 1e3
    assert of_peak["gpu"] == "NVIDIA B200"
    assert of_peak["value"] == pytest.approx(rate / machine_for("NVIDIA B200").bandwidth_gb_per_s, rel=1e-6)


# --- a course of two pages ----------------------------------------------------------------------------------

PAGE = """\
# ---
# id: one
# title: One
# description: The one page.
# section: Beside the road
# order: 1
# ---

# %% [markdown]
# # One
#
# ## Here
#
# Back to [the start](../index.md), or [here](one.py#here).
#
# The end.
"""
END = "# The end."


@pytest.fixture
def small(tmp_path):
    """Our own settings, theme and hook around two pages: enough for what MkDocs itself has to do."""
    for folder in ("handbook", "records", "src", "docs/part"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("overrides", "docs/assets"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    for name in ("bibliography.toml", "glossary.toml"):
        (tmp_path / "docs" / name).write_text("")
    settings = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    before, rest = settings.split("nav:\n")
    after = rest[rest.index("\ntheme:\n") :]
    hook = "src/course_site/site/hook.py"
    before = before.replace(hook, str(REPOSITORY / hook))
    (tmp_path / "mkdocs.yml").write_text(f"{before}nav: [index.md, Learn: [Beside the road]]\n{after}")
    (tmp_path / "docs/index.md").write_text(
        "---\nid: index\ntitle: Home\ndescription: Where all begins.\n---\n# Home\n\nTo [one](part/one.py).\n"
    )
    (tmp_path / "docs/part/one.py").write_text(PAGE)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("before")
    read_all(tmp_path)
    return tmp_path


def read_all(root):
    """Somebody has read it all as it stands."""
    assert read.main(["--all-read", "."], root) == 0


def test_links_that_lead_nowhere_stop_the_build(small):
    """MkDocs follows them, by our settings, when every page is there."""
    links = ("nowhere.py", "../index.md#no-such-place")
    text = "".join(f"# See [the other page]({link}).\n#\n" for link in links)
    (small / "docs/part/one.py").write_text(PAGE.replace(END, f"{text}{END}"))
    read_all(small)
    refused(small, *(("part/one.py", link.partition("#")[2] or link) for link in links))


def test_an_engine_that_skips_the_hook_builds_no_site(small):
    """As one that does not know hooks would: it says that nothing is wrong, and publishes pages without numbers."""
    settings = (small / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\nhooks: " in settings
    skipped = re.sub(r"\n(hooks|validation): .*", "", settings)
    (small / "mkdocs.yml").write_text(skipped.replace("index.md, Learn: [Beside the road]", "index.md"))
    config = load_config(str(small / "mkdocs.yml"), site_dir=str(small / "elsewhere"))
    with pytest.raises(TemplateNotFound, match="this engine has not run the stage of the course"):
        mkdocs_build(config)
    assert not list((small / "elsewhere").rglob("*.html"))


def test_what_is_wrong_on_a_page_stops_the_build(small):
    lines = [
        line for line, words in WRONG_LINES if words in ("cites 'nobody2020'", "typed number 'twice as fast'")
    ]
    text = "".join(f"# {line}\n#\n" for line in lines)
    (small / "docs/part/one.py").write_text(PAGE.replace(END, f"{text}{END}"))
    refused(
        small,
        ("docs/part/one.py", "cites 'nobody2020'"),
        ("docs/part/one.py", "'twice as fast'"),
        # That nobody has read them is told beside what the gates see.
        ("docs/part/one.py:16: 'It is twice as fast.' not yet read: nox -s read",),
    )


@pytest.mark.parametrize(
    ("draft", "serves", "stops"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_only_who_writes_sees_what_nobody_has_read(small, caplog, draft, serves, stops):
    (small / "docs/part/one.py").write_text(PAGE.replace("The end.", "The very end."))
    course = load_course(small, draft=draft)
    with caplog.at_level("INFO"):
        stage.check_read(course, serves=serves)
    said = "docs/part/one.py:16: 'The very end.' changed since it was read: nox -s read"
    assert (said in map(str, course.problems)) == stops
    assert (said in caplog.messages) == (not stops)


SOURCE = """
[planted]
title = "A source"
authors = ["Some Body"]
year = 2024
url = "https://example.org/"
read = 2026-11-20
note = "our kernel reaches 414 TFLOP/s; abstract"
"""


def test_a_number_that_comes_in_beside_the_pages_stops_the_build(small):
    """By a setting, a template, a note on a source, a page of HTML: what a reader sees is read once, at the end."""

    def edit(name, old, new):
        text = (small / name).read_text(encoding="utf-8")
        assert old in text
        (small / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    (small / "overrides").unlink()
    shutil.copytree(REPOSITORY / "overrides", small / "overrides")
    # A template's own words are looked at before a page is made.
    empty, planted = "This shelf is empty</h1>", "This shelf is empty</h1><p>In 412 microseconds.</p>"
    edit("overrides/404.html", empty, planted)
    refused(small, ("overrides/404.html", "'In 412 microseconds.' has a measure in it"))
    edit("overrides/404.html", planted, empty)

    edit("mkdocs.yml", "site_name: Percent of Peak", "site_name: Peak, 411 TFLOP/s")
    edit("pyproject.toml", 'organisation = "Vizuara"', 'organisation = "Vizuara, 413 GB/s"')
    (small / "docs/bibliography.toml").write_text(SOURCE)
    edit("docs/part/one.py", END, f"# It is said[^planted].\n#\n{END}")
    edit("docs/index.md", "To [one]", "It is said[^planted]. To [one]")
    (small / "docs/plain.html").write_text(
        "<html lang=en><head><title>Plain</title></head><body><h1>Plain</h1><p>41<b>5</b> GB<i>/s</i></p></body></html>"
    )
    read_all(small)
    refused(
        small,
        ("typed number '411 TFLOP/s'", "more places)"),
        ("typed number '413 GB/s'", "more places)"),
        ("typed number '414 TFLOP/s'", "more places)"),
        ("plain.html", "typed number '415 GB/s'"),
    )


PATIENCE_S = 120.0  # on a busy machine; what it really takes is told


def wait_for(what, url, served):
    """The text of a page once it says so."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and served.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                text = answer.read().decode()
        except OSError:
            text = ""
        if what in text:
            return text
        time.sleep(0.2)
    raise AssertionError(f"{url}: never said {what!r}\n{served.stdout.read() if served.poll() else ''}")


def test_a_served_site_follows_an_edit(small):
    with (small / "docs/index.md").open("a") as page:
        page.write("\nIts writer sees this before anybody has read it.\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "mkdocs", "serve", "--livereload", "-a", address]
    with subprocess.Popen(
        command,
        cwd=small,
        env=environment(small),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as served:
        try:
            page = f"http://{address}/part/one.html"
            before = wait_for("The end.", page, served)
            assert "Planted while it is served." not in before
            (small / "docs/part/one.py").write_text(
                PAGE.replace(END, f"# Planted while it is served.\n#\n{END}")
            )
            started = time.monotonic()
            wait_for("Planted while it is served.", page, served)
            print(f"an edit was there after {time.monotonic() - started:.1f} s")
        finally:
            served.terminate()
            served.communicate()


SERVED = """
import shutil
from pathlib import Path
import mkdocs.commands.serve as serving

class Server:
    def __init__(self, builder, root, **_):
        self.builder, self.root = builder, root
    def watch(self, path):
        pass
    def shutdown(self):
        pass
    def serve(self, **_):
        page = Path("docs/part/one.py")
        page.write_text(page.read_text().replace("The end.", "The very end."))
        self.builder()
        shutil.copytree(self.root, "again")
        Path("records/new").write_text("")  # so that all is built
        self.builder()
        shutil.copytree(self.root, "anew")

serving.LiveReloadServer = Server
import mkdocs.__main__
mkdocs.__main__.cli(["serve"])
"""


def test_a_page_that_is_built_again_is_as_if_all_were_built(small):
    """Byte for byte, with the search and the notebook beside it; its page alone is rendered and written."""
    (small / "docs/part/one.py").write_text(f"{PAGE}\n# %%\nprint(1)\n")
    done = subprocess.run(
        [sys.executable, "-c", SERVED], cwd=small, env=environment(small), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("Built again: docs/part/one.py") == 1

    again, anew = (
        {
            path.relative_to(small / name): path.read_bytes()
            for path in (small / name).rglob("*")
            if path.is_file()
        }
        for name in ("again", "anew")
    )
    archive = Path("percent-of-peak.tar.gz")  # is packed when all is built
    assert again.pop(archive) != anew.pop(archive)
    assert len(again) > 20
    assert {path for path in again.keys() | anew.keys() if again.get(path) != anew.get(path)} == set()
    said = {path.name for path, content in again.items() if b"The very end." in content}
    assert said == {"one.html", "one.ipynb", "part1.js"}
