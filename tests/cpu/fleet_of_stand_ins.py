"""A tree with pages and groups of GPU tests, a fleet of stand-ins (fleet_workers.py), the check of what came of it."""

import itertools
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

from tiny_repository import commit_all, make_repository, write, write_page

import course_site
from course_site.records.record import Record

HERE = Path(__file__).parent
SLUG = "nvidia-h200"
SOURCE = Path(course_site.__file__).parents[1]


def cards(count, a_host=8, **more):
    """Made-up cards: so many, and so many of them on each host."""
    return [
        {"name": "NVIDIA H200", "capability": [9, 0], "host": f"n{number // a_host}"} | more
        for number in range(count)
    ]


def make_tree(tmp_path, monkeypatch, pages, groups=0, gpus=None):
    """A committed tree; `pages` says of each what happens, or how many cards it needs: {"a": ("sleep=1", 2)}."""
    root = make_repository(tmp_path, monkeypatch, gpus or cards(8))
    for name, (what, count) in pages.items():
        write_page(root, name, f"'{what}'", needs="gpu" if count == 1 else f"gpus {count}")
    for number in range(groups):
        alone = "ALONE = True\n" if number % 5 == 0 else ""
        write(root, f"tests/gpu/test_g{number}.py", f'GROUPS = ("g{number}",)\n{alone}')
    write(root, ".gitignore", ".cache/\n__pycache__/\n")
    commit_all(root)
    return root


def environment():
    path = os.pathsep.join((str(SOURCE), str(HERE)))
    return os.environ | {"PYTHONPATH": path, "NO_MKDOCS_2_WARNING": "1"}


def free_address():
    """An address where nobody listens, for a coordinator that is to come back at the same one."""
    return f"tcp://127.0.0.1:{random.randrange(20_000, 32_000)}"


def workers(root, address, count, wait_s=30):
    command = [sys.executable, str(HERE / "fleet_workers.py"), address, str(count), str(wait_s)]
    return subprocess.Popen(
        command, cwd=root, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def coordinator(root, address, *options, to=None):
    """The command itself, as a process; what it says goes into a file."""
    words = ("docs", "--measure-only", "--scheduler", address, *options)
    return subprocess.Popen(
        [sys.executable, "-m", "course_site", *words],
        cwd=root,
        env=environment(),
        stdout=to,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_until(holds, seconds=30):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.02)


def records(root):
    return sorted((root / "records" / SLUG).rglob("*.ipynb"))


def faults(root, pages, groups, said):
    """What is wrong with a run: a task without its record, a record that is not whole, one that was written twice.

    Args:
        said: what all coordinators of it printed.
    """
    found = []
    for name in pages:
        path = root / "records" / SLUG / f"docs/{name}.ipynb"
        try:
            assert Record.load(path).meta["page"] == f"docs/{name}.py"
        except ValueError as error:
            found.append(f"docs/{name}.py: {error}")
        times = len(re.findall(rf"^measured docs/{name}\.py on ", said, re.MULTILINE))
        if times > 1:
            found.append(f"docs/{name}.py: written {times} times")
    for name in groups:
        path = root / "records" / SLUG / f"tests/{name}.json"
        if not path.is_file() or json.loads(path.read_text())["group"] != name:
            found.append(f"tests/gpu/{name}: no record")
        times = len(re.findall(rf"^tested {name} on ", said, re.MULTILINE))
        if times > 1:
            found.append(f"tests/gpu/{name}: written {times} times")
    left = [path for path in (root / "records").rglob("*") if path.name.endswith(".part")]
    return found + [f"{path}: half a file" for path in left]


def runs(root):
    """What ran: name, host, cards, begin, end, of every line that a worker wrote down."""
    file = root.parent / "ran"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [
        (name, host, tuple(visible.split(",")), float(a), float(b)) for name, host, visible, a, b, _ in lines
    ]


def overlaps(found):
    """Pairs of runs that had a card at the same time."""
    pairs = []
    by_card = {}
    for run in found:
        for card in run[2]:
            by_card.setdefault((run[1], card), []).append(run)
    for of_one in by_card.values():
        of_one.sort(key=lambda run: run[3])
        pairs += [(a, b) for a, b in itertools.pairwise(of_one) if b[3] < a[4]]
    return pairs
