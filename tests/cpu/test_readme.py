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


def unnamed_places(text, root):
    """Pages at the root of docs/, and the folders of docs/ and handbook/, that the tree does not name."""
    pages = [path for path in (root / "docs").iterdir() if path.suffix in (".py", ".md")]
    folders = [path for top in ("docs", "handbook") for path in (root / top).iterdir() if path.is_dir()]
    named = [path.relative_to(root).as_posix() + "/" * path.is_dir() for path in pages + folders]
    return sorted(
        name for name in named if f"| `{name}` |" not in text and "/." not in name and "__" not in name
    )


def test_every_page_and_every_folder_of_the_handbook_is_in_the_tree():
    assert unnamed_places(README, ROOT) == []


def test_a_page_that_is_not_in_the_tree_is_found():
    without = README.replace("| `docs/triton_for_numpy_people.py` |", "").replace(
        "| `handbook/handouts/` |", ""
    )

    assert unnamed_places(without, ROOT) == ["docs/triton_for_numpy_people.py", "handbook/handouts/"]


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
