"""A repository small enough for a test: one package, pages written by the test, fake GPUs."""

import json
import subprocess
from pathlib import Path

import pytest

RECORD = "application/vnd.course.record+json"
H200 = {"name": "NVIDIA H200", "capability": [9, 0], "memory_bytes": 150_000_000_000}


def make_repository(folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: object = (H200,)) -> Path:
    root = folder / "repository"
    write(root, "pyproject.toml", '[tool.course]\norganisation = "Test"\nreference = "nvidia-h200"\n')
    write(root, "src/tiny/__init__.py", "")
    write(root, "src/tiny/kernel.py", "FACTOR = 3\n")
    write(root, "src/tiny/lazy.py", "def add(a, b):\n    return a + b\n")
    write(root, "src/tiny/kernel.cu", '#include "tile.cuh"\n')
    write(root, "src/tiny/tile.cuh", "// a tile\n")
    monkeypatch.chdir(root)
    for name in ("COURSE_REVISION", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COURSE_FAKE_GPUS", json.dumps(gpus))
    return root


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def write_page(root: Path, name: str, *cells: str, needs: str = "gpu") -> str:
    head = (
        f"# ---\n# id: {name}\n# title: Page {name}\n# needs: [{needs}]\n# ---\n\n# %% [markdown]\n# Prose.\n"
    )
    body = "".join(f"\n# %%\n{cell.strip()}\n" for cell in cells)
    write(root, f"docs/{name}.py", head + body)
    return f"docs/{name}.py"


def recording(name: str, value: str = "1") -> str:
    """A cell that records one quantity, the value of a Python expression."""
    return (
        "from IPython.display import display\n"
        f"leaf = dict(kind='quantity', value={value}, unit='1', how='computed')\n"
        f"display({{'{RECORD}': {{'names': {{'{name}': leaf}}}}, 'text/plain': 'recorded: {name}'}}, raw=True)"
    )


def commit_all(root: Path) -> str:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@t.example")
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "all")
    return git("rev-parse", "HEAD")
