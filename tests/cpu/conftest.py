"""What must be said before triton and torch are imported: kernels are interpreted, and how many threads there are.

Triton decides when a kernel is defined whether it is interpreted.
"""

import gc
import os
import pickle
import shutil
import tempfile
from pathlib import Path

import compiled
import kept_verdicts
import once
import pytest

os.environ["TRITON_INTERPRET"] = "1"
gc.disable()  # until all tests are found: what comes to be in that time stays
if "PYTEST_XDIST_WORKER" in os.environ:  # every core has a process of its own already
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# In whose order the files begin; it decides no verdict.
LONGEST_FIRST = Path(__file__).with_name("longest_first.txt")


def pytest_addoption(parser):
    kept_verdicts.add_options(parser)


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "kept(*files, of=None, but=()): passes again while its files are the same; see kept_verdicts.py",
    )
    config.pluginmanager.register(kept_verdicts.Plugin(config, lost_facts))
    if not hasattr(config, "workerinput"):  # the processes that it starts have the same environment
        os.environ[once.FOLDER] = tempfile.mkdtemp(prefix="tests-")


def lost_facts():
    return compiled.cold(Path(os.environ[once.FOLDER]))


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(once.FOLDER), ignore_errors=True)


@pytest.fixture(scope="session")
def our_course():
    """The course of this repository, and its pages rendered: read once in a run, and changed by nobody."""

    def course(folder):
        from course_site.site.course import load_course
        from course_site.site.render.page import render_course

        course = load_course(Path(__file__).parents[2], draft=True)
        (folder / "course").write_bytes(pickle.dumps((course, render_course(course))))

    return pickle.loads((once.once(course) / "course").read_bytes())


def pytest_collection_modifyitems(items):
    listed = [line for line in LONGEST_FIRST.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    turn = {name: number for number, name in enumerate(listed)}
    items.sort(key=lambda item: turn.get(item.path.name, len(turn)))


def pytest_collection_finish():
    """Exempt what is imported so far from garbage collection."""
    gc.freeze()
    gc.enable()
