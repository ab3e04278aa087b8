"""Recorded proposals: files that a model wrote, kept as they were written, with all that is known of how.

    proposals/TASK/SERIES/about.toml        half, model, date, prompt, saw, [sampling], [files]
    proposals/TASK/SERIES/s1_r1.py.txt      sample 1, round 1
    proposals/TASK/SERIES/s1_r2.py.txt      the same sample, after what it was told of round 1

What nobody knows says "not known". `[files]` holds the hash of each file as it came: one that was edited since is
refused. `half` is "kernel", or "attack" for a file that tries to be called right while wrong.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from course_harness.proposer import History, Proposal
from course_harness.tasks import Task, Unusable
from course_kernels.measure.artifacts import write

FOLDER = Path("proposals")
ABOUT = "about.toml"
UNKNOWN = "not known"
HALVES = ("kernel", "attack")
TEXTS = ("half", "model", "date", "prompt", "saw")
SAMPLING = ("temperature", "top_p", "seed")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
FILE = re.compile(r"s([1-9]\d{0,2})_r([1-9]\d?)\.py\.txt")
LIMIT_BYTES = 256 * 1024


@dataclass(frozen=True)
class Series:
    """Proposals by one model for one task.

    Attributes:
        folder: where they lie.
        about: what is known of how they came to be.
        files: the files' names, by sample and round.
    """

    folder: Path
    about: dict[str, Any]
    files: dict[tuple[int, int], str]

    @property
    def samples(self) -> int:
        """Number of samples."""
        return max((sample for sample, _ in self.files), default=0)

    @property
    def rounds(self) -> int:
        """The rounds of the longest sample."""
        return max((number for _, number in self.files), default=0)


def series(root: Path, task: str, half: str = "kernel") -> dict[str, Series]:
    """Return all series of a task, of one half, by name.

    Raises:
        Unusable: one is not of the form above, or a file was changed.
    """
    folder = root / FOLDER / task
    found = [read(one) for one in sorted(folder.iterdir()) if one.is_dir()] if folder.is_dir() else []
    return {one.folder.name: one for one in found if one.about["half"] == half}


def read(folder: Path) -> Series:
    """Return a series.

    Raises:
        Unusable: it is not of the form above, or a file was changed.
    """
    where = f"{folder.parent.name}/{folder.name}"
    if not NAME.fullmatch(folder.name):
        raise Unusable(f"{where}: expected a name of small letters, digits, - and _, 40 at most")
    try:
        about = tomllib.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable(f"{where}/{ABOUT}: cannot be read: {error}") from None
    _check(f"{where}/{ABOUT}", about)
    files: dict[tuple[int, int], str] = {}
    for name, digest in about["files"].items():
        match = FILE.fullmatch(name)
        if not match:
            raise Unusable(f"{where}/{ABOUT}: {name!r} is no name such as s1_r1.py.txt")
        files[int(match[1]), int(match[2])] = name
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise Unusable(f"{where}/{name}: there is no such file")
        if path.stat().st_size > LIMIT_BYTES:
            raise Unusable(f"{where}/{name}: larger than {LIMIT_BYTES} bytes")
        data = path.read_bytes()
        if sha256(data).hexdigest() != digest:
            raise Unusable(f"{where}/{name}: not the file that was proposed; its hash is another")
        try:
            data.decode()
        except UnicodeDecodeError:
            raise Unusable(f"{where}/{name}: no UTF-8; a model's answer is text") from None
    if more := {path.name for path in folder.iterdir()} - {ABOUT, *about["files"]}:
        raise Unusable(f"{where}/{min(more)}: {ABOUT} does not list it")
    for sample, number in files:
        if number > 1 and (sample, number - 1) not in files:
            raise Unusable(f"{where}: sample {sample} has a round {number} and none before it")
    return Series(folder, about, files)


def _check(where: str, about: dict[str, Any]) -> None:
    if missing := {*TEXTS, "sampling", "files"} - set(about):
        raise Unusable(f'{where}: lacks {", ".join(sorted(missing))}; what nobody knows is "{UNKNOWN}"')
    if unknown := set(about) - {*TEXTS, "sampling", "files"}:
        raise Unusable(f"{where}: has unknown keys: {', '.join(sorted(unknown))}")
    for key in TEXTS:
        if not isinstance(about[key], str) or not about[key]:
            raise Unusable(
                f'{where}: {key} is {about[key]!r}, which is no text; what nobody knows is "{UNKNOWN}"'
            )
    if about["half"] not in HALVES:
        raise Unusable(f"{where}: half is {about['half']!r}; there are {', '.join(HALVES)}")
    if about["date"] != UNKNOWN and not re.fullmatch(r"\d{4}-\d\d-\d\d", about["date"]):
        raise Unusable(f"{where}: date is {about['date']!r}, expected such as 2026-11-29, or {UNKNOWN!r}")
    sampling, files = about["sampling"], about["files"]
    if not isinstance(sampling, dict) or set(sampling) != set(SAMPLING):
        raise Unusable(f'{where}: sampling needs {", ".join(SAMPLING)}; what nobody knows is "{UNKNOWN}"')
    if not isinstance(files, dict) or not files:
        raise Unusable(f"{where}: lists no file")


class Recorded:
    """Proposer that hands out a series, sample by sample; what it is told changes nothing."""

    name, own = "recorded", True

    def __init__(self, kept: Series) -> None:
        self.kept = kept

    def described(self) -> dict[str, Any]:
        """Return what is known of the series, with the hash of every file."""
        return {"series": self.kept.folder.name, **self.kept.about}

    def propose(self, task: Task, history: History) -> Proposal | None:
        """Return the file of this sample and round, as it was written."""
        name = self.kept.files.get((history.sample, history.round))
        if name is None:
            return None
        # By its bytes: the ends of lines stay as they were written.
        return Proposal((self.kept.folder / name).read_bytes().decode(), said={"file": name})


def keep(root: Path, task: str, name: str, about: dict[str, Any], at: tuple[int, int], text: bytes) -> Path:
    """Keep a proposal as it was written, and its hash; a series that is there must be of the same model and prompt.

    Args:
        root: of the repository.
        task, name: the folder.
        about: all of about.toml but its files.
        at: sample and round.
        text: the file.
    Raises:
        Unusable: there is one already, or the series is another one, or of another form.
    """
    folder = root / FOLDER / task / name
    files: dict[str, str] = {}
    if (folder / ABOUT).exists():
        there = read(folder).about
        files = dict(there.pop("files"))
        if different := [key for key in about if about[key] != there.get(key)]:
            raise Unusable(
                f"{task}/{name}: is there already, and its {different[0]} is another; take another --series"
            )
    file = f"s{at[0]}_r{at[1]}.py.txt"
    if file in files or (folder / file).exists():
        raise Unusable(f"{task}/{name}/{file}: is there already, and what was proposed is not changed")
    files[file] = sha256(text).hexdigest()
    _check(f"{task}/{name}/{ABOUT}", {**about, "files": files})
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, file, text)
    write(folder, ABOUT, _toml(about, files).encode())
    read(folder)
    return folder / file


def _toml(about: dict[str, Any], files: dict[str, str]) -> str:
    lines = [f"{key} = {json.dumps(about[key])}" for key in TEXTS]
    lines += ["", "[sampling]", *(f"{key} = {json.dumps(about['sampling'][key])}" for key in SAMPLING)]
    lines += ["", "[files]", *(f'"{name}" = "{digest}"' for name, digest in sorted(files.items()))]
    return "\n".join(lines) + "\n"
