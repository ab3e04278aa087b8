"""Run of an entry: the judge's verdict, the profiler's profile and where both were had, in one sealed file.

A seal is a hash of all the rest. It notices an edit; it is no signature. What decides is that anybody runs the entry
again with the command that the board prints beside it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from course_capstone.tasks import Task
from course_judge.__main__ import Unusable
from course_judge.protocol.verdict import seal_of
from course_kernels.measure.artifacts import write
from course_kernels.measure.provenance import ROOT, provenance

FILE = "run.json"
SOURCES = (".py", ".cu", ".cuh")


def run(folder: Path, file: str, task: Task, *, gpu: bool, seconds: float) -> dict[str, Any]:
    """Judge and profile an entry, and keep what came out in its folder.

    Args:
        folder: the entry's.
        file: name of its kernel's file.
        gpu: whether there is a card.
        seconds: the judge's limit for each answer.
    Raises:
        Unusable: the judge or the profiler cannot run.
    """
    hashes = hashes_of(folder)
    told: dict[str, Any] = {
        "task": task.name,
        "size": task.workload.as_text(),
        "file": file,
        "files": hashes,
        "verdict": _verdict(folder / file, task, gpu=gpu, seconds=seconds),
        "provenance": {**provenance(), "dirty": is_dirty(ROOT, folder)},
    }
    told["profile"], told["spread"] = _profile(folder / file, task, gpu=gpu)
    if hashes_of(folder) != hashes:
        raise Unusable(f"{folder}: a file changed while it was judged and profiled; run it again")
    told["seal"] = seal_of(told)
    write(folder, FILE, (json.dumps(told, indent=1, sort_keys=True, allow_nan=False) + "\n").encode())
    return told


def _verdict(file: Path, task: Task, *, gpu: bool, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "course_judge", str(file), "--problem", task.name, "--own", "--json"]
    command += ["--seconds", f"{seconds:g}", *(["--gpu", "--time", task.workload.as_text()] if gpu else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.strip().splitlines()
        raise Unusable(f"judge: {said[-1] if said else f'exit code {done.returncode}'}") from None
    return found


def _profile(file: Path, task: Task, *, gpu: bool) -> tuple[dict[str, Any] | None, float | None]:
    """Return the profile as plain data, and the spread of its time; None for a wrong answer, which has neither."""
    from course_labs.lab import LabError
    from course_profile.diagnosis import diagnose
    from course_profile.errors import Unusable as NotProfiled
    from course_profile.errors import Wrong
    from course_profile.format import as_json
    from course_profile.run import profile
    from course_profile.subject import take

    try:
        found = profile(take(str(file), task.name, task.workload.as_text()), gpu=gpu)
    except Wrong:
        return None, None
    except (NotProfiled, LabError) as error:
        raise Unusable(f"profile: {error}") from None
    return as_json(found, diagnose(found.reading)), found.spread


def hashes_of(folder: Path) -> dict[str, str]:
    """Return the hash of every source file of a folder, by its name."""
    files = sorted(path for path in folder.iterdir() if path.suffix in SOURCES and path.is_file())
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files}


def is_dirty(root: Path, folder: Path) -> bool | None:
    """Return whether tracked files of the course differ from their commit; None where nobody can say.

    An entry's own sources have their hashes in its run, and a run that was renewed is no change of the course.
    """
    command = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no", "--", "."]
    command.append(f":(exclude,glob)**/{FILE}")
    if (own := folder.resolve()).is_relative_to(root.resolve()) and own != root.resolve():
        command.append(f":(exclude,top){own.relative_to(root.resolve())}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else bool(done.stdout.strip())
