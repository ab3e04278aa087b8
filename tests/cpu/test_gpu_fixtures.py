"""The fixtures of the GPU tests, with all groups collected in one process: no two of them have one name.

Groups run together, so a name says which fixture only if no other file has it. Nothing here needs a card.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from course_site.records import gpu_test_records

ROOT = Path(__file__).resolve().parents[2]

# A card as far as the files ask for one while they are collected, and what was collected.
PRETENDED = """
import torch

torch.cuda.is_available = lambda: True
torch.cuda.get_device_capability = lambda device=None: (9, 0)
torch.cuda.Stream = lambda *arguments, **options: None

def pytest_collectreport(report):
    if report.failed:
        print(f"refused: {report.nodeid}: {report.longrepr}")

def pytest_collection_finish(session):
    for path in sorted({item.path for item in session.items}):
        print(f"collected: {path}")
"""
FIXTURE = re.compile(r"^(?P<name>\w+)(?: \[\w+ scope\])? -- (?P<where>\S.*:\d+)$", re.MULTILINE)


def listed(tmp_path, folder):
    """What pytest lists of a folder's fixtures, those of its plugins among them, with all of its tests collected."""
    plugin = tmp_path / "plugin/a_pretended_card.py"
    plugin.parent.mkdir()
    plugin.write_text(PRETENDED)
    command = [sys.executable, "-m", "pytest", "-p", plugin.stem, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--collect-only", "--fixtures", "-v", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(plugin.parent)))},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nrefused: " not in done.stdout, done.stdout
    return done.stdout


def of_one_name(text):
    """Fixtures whose name is defined in several places, with these; an import is no definition of its own."""
    places = defaultdict(set)
    for found in FIXTURE.finditer(text):
        places[found["name"]].add(found["where"])
    return {name: sorted(where) for name, where in places.items() if len(where) > 1}


def test_no_two_fixtures_of_the_gpu_tests_have_one_name(tmp_path):
    text = listed(tmp_path, ROOT / "tests/gpu")

    project = gpu_test_records.Project(ROOT)
    collected = {Path(line).resolve() for line in re.findall("^collected: (.*)$", text, re.MULTILINE)}
    # A file whose packages are not installed has no tests here, and so no fixture that is asked for.
    every = {file for group in project.groups for file in project.files_of(group)}
    absent = {file for file in every if re.search("^__test__ = ", file.read_text(), re.MULTILINE)}
    assert collected | absent == set(project.test_files) == every
    assert {"verdict_on", "tmp_path"} <= {found["name"] for found in FIXTURE.finditer(text)}
    assert of_one_name(text) == {}


# Two groups whose fixtures have one name, one that hides a plugin's, and one that is lent by an import.
PLANTED = {
    "test_labs.py": (
        "import pytest\n\n@pytest.fixture(scope='module')\ndef verdict_on(request):\n    return 1\n\n"
        "@pytest.fixture\ndef lent():\n    return 1\n\ndef test_a(verdict_on, lent):\n    pass\n"
    ),
    "test_bottleneck.py": (
        "import pytest\nfrom test_labs import lent\n\n"
        "@pytest.fixture(scope='module')\ndef verdict_on():\n    return 2\n\n"
        "@pytest.fixture\ndef tmp_path():\n    return 3\n\ndef test_b(verdict_on, tmp_path, lent):\n    pass\n"
    ),
}


def test_two_fixtures_of_one_name_are_seen(tmp_path):
    folder = tmp_path / "gpu"
    folder.mkdir()
    for name, text in PLANTED.items():
        (folder / name).write_text(text)

    found = of_one_name(listed(tmp_path, folder))
    assert set(found) == {"verdict_on", "tmp_path"}
    assert [Path(where.rpartition(":")[0]).name for where in found["verdict_on"]] == sorted(PLANTED)
