"""The README's tree is true: every path it names exists, and the two commands stand first."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_site.records import wheelhouse

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def missing_paths(text, root):
    named = re.findall(r"^\| `([\w./-]+)` \|", text, re.MULTILINE)
    return [path for path in named if ("/" in path or "." in path) and not (root / path).exists()]


def test_every_path_of_the_tree_exists():
    actual = missing_paths(README, ROOT)

    assert actual == []


def test_a_path_that_is_gone_is_found():
    actual = missing_paths(README + "| `src/course_kernels/gone/` | nothing |\n", ROOT)

    assert actual == ["src/course_kernels/gone/"]


def test_every_folder_of_the_kernels_is_in_the_tree():
    folders = {
        f"src/course_kernels/{path.parent.name}/"
        for path in (ROOT / "src" / "course_kernels").glob("*/__init__.py")
    }

    actual = {folder for folder in folders if f"| `{folder}` |" not in README}

    assert actual == set()


def test_the_two_commands_stand_first():
    actual = re.findall(r"^```bash\n(.*?)\n```", README, re.MULTILINE | re.DOTALL)[:2]

    assert actual == [
        "python3 -m venv .venv && .venv/bin/pip install --quiet nox && .venv/bin/nox -s docs",
        ".venv/bin/nox -s tests",
    ]


def test_the_offline_commands_are_those_that_the_wheelhouse_prints():
    blocks = re.findall(r"^```bash\n(.*?)\n```", README, re.MULTILINE | re.DOTALL)

    assert "\n".join(wheelhouse.install_commands("wheelhouse")) in blocks
    assert "\n".join(wheelhouse.join_commands("wheelhouse")) in blocks


def test_the_pythons_named_are_those_the_project_takes():
    metadata = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

    assert "needs Python 3.11, 3.12 or 3.13" in README
    assert 'requires-python = ">=3.11"' in metadata


@pytest.mark.parametrize("command", ["docs", "wheelhouse", "calendar"])
def test_a_command_starts_where_only_its_own_needs_are_installed(command):
    # -S leaves out all that is installed: the GPU machine's Python and the wheelhouse's have no site generator.
    run = subprocess.run(
        [sys.executable, "-S", "-m", "course_site", command, "--help"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("usage:")
