"""Statement of a worker: its card, driver, power limit, versions and tree; and why a coordinator refuses one."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import platform
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.records.execute import revision
from course_site.records.gpus import Gpu
from course_site.records.plan import installed_edition

NOT_PART_OF_IT = ":(exclude,glob)records/*/**"  # what a run itself writes into the coordinator's tree


@dataclass(frozen=True)
class Tree:
    """A working tree: its commit, and the first files that differ from it."""

    commit: str
    changed: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """Reason why nothing can be measured elsewhere from the same tree; "" where it can."""
        if self.commit == "unknown":
            return "its commit is unknown: clone it with git, or copy revision.txt of `nox -s wheelhouse` with it"
        if self.changed:
            more = f" and {len(self.changed) - 1} more" if len(self.changed) > 1 else ""
            return f"it is dirty, {self.changed[0]}{more} differs from commit {self.commit[:12]}: commit or undo that"
        return ""


def tree_of(root: Path) -> Tree:
    """Return the state of a working tree, asked of git, or of the file that a copy without git carries."""
    if (root / ".git").exists() and shutil.which("git"):
        git = ["git", "-c", f"safe.directory={root}", "-C", str(root)]
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        command = [*git, "status", "--porcelain", "--no-renames", "-z", "--", ".", NOT_PART_OF_IT]
        status = subprocess.run(command, capture_output=True, text=True)
        if commit.returncode or status.returncode:
            return Tree("unknown")
        return Tree(commit.stdout.strip(), tuple(line[3:] for line in status.stdout.split("\0") if line))
    carried = [place / "revision.txt" for place in (root, root / "wheelhouse")]
    listed = next(
        (file.read_text(encoding="utf-8").splitlines()[1:] for file in carried if file.is_file()), []
    )
    known = revision(root, [line.split(" ", 1)[1] for line in listed])
    return Tree(known["commit"], ("a file",) if known["dirty"] else ())


@dataclass(frozen=True)
class Statement:
    """Words of a worker about itself, said when it comes.

    Attributes:
        worker: its name for a reader, e.g. "node3 GPU 0".
        process: this one process; a worker that was started again is another.
        host: the machine.
        stand: the workers that one `nox -s worker` started; those of one stand can lend each other their cards.
        power_limit_w: in watts; None where the driver does not say.
        edition: GPU model, CUDA, torch and triton, as of a record.
    """

    worker: str
    process: str
    host: str
    stand: str
    gpu: Gpu
    driver: str
    power_limit_w: float | None
    edition: dict[str, str]
    python: str
    tree: Tree

    def as_message(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def of_message(cls, data: dict[str, Any]) -> Statement:
        """Read what `as_message` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            gpu = {**data["gpu"], "capability": tuple(data["gpu"]["capability"])}
            tree = Tree(data["tree"]["commit"], tuple(data["tree"]["changed"]))
            return cls(**{**data, "gpu": Gpu(**gpu), "tree": tree})
        except (KeyError, TypeError) as error:
            raise ValueError(f"is no statement of a worker ({error})") from None

    @property
    def in_words(self) -> str:
        """Card, driver, power limit, versions and commit, in a line."""
        power = "power limit unknown" if self.power_limit_w is None else f"{self.power_limit_w:.0f} W"
        versions = ", ".join(f"{name} {self.edition.get(name, '?')}" for name in ("cuda", "torch", "triton"))
        return (
            f"{self.gpu.name}, driver {self.driver}, {power}, {versions}, Python {self.python}, "
            f"commit {self.tree.commit[:12]}"
        )


def statement(root: Path, gpu: Gpu, stand: str, process: str) -> Statement:
    """Return what a worker on this card says of itself."""
    made_up = _made_up(gpu)
    host = made_up.get("host") or socket.gethostname()
    driver, power = (made_up.get("driver", "0.0"), made_up.get("power_limit_w")) if made_up else _asked(gpu)
    edition = installed_edition(gpu) or {"gpu": gpu.name, "slug": gpu.slug}
    name, python = f"{host} GPU {gpu.index}", platform.python_version()
    return Statement(name, process, host, stand, gpu, driver, power, edition, python, tree_of(root))


def _made_up(gpu: Gpu) -> dict[str, Any]:
    """Return what COURSE_FAKE_GPUS says of a card; it may name a host of its own for each."""
    text = os.environ.get("COURSE_FAKE_GPUS")
    return json.loads(text)[gpu.index] if text else {}


def _asked(gpu: Gpu) -> tuple[str, float | None]:
    """Ask the driver for its version, and for the card's power limit in watts."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
        version = nvml.nvmlSystemGetDriverVersion()
        by_uuid = gpu.visible.startswith("GPU-")
        of = nvml.nvmlDeviceGetHandleByUUID if by_uuid else nvml.nvmlDeviceGetHandleByIndex
        handle = of(gpu.visible if by_uuid else int(gpu.visible))
        return str(version), nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except (
        Exception
    ):  # no package, or a driver that does not say: it is said of a worker, and decides nothing
        return "unknown", None


def fault_of(one: Statement, first: Statement | None, tree: Tree | None, stand: str | None) -> str:
    """Return why a worker cannot take part, in a line, or "".

    Args:
        first: a worker that takes part already, if any: all are of its model and versions.
        tree: the coordinator's; None where its own workers run in that very tree.
        stand: the only stand that takes part; None for any.
    """
    if stand is not None and one.stand != stand:
        return "this run takes no workers but its own: give `nox -s docs` --scheduler to take others"
    if tree is not None:
        if one.tree.commit not in (tree.commit, "unknown"):
            return f"it is of commit {one.tree.commit[:12]}, and this tree of {tree.commit[:12]}: check that out there"
        if one.tree.fault:
            return f"its tree cannot be used: {one.tree.fault}"
    if first is not None and one.gpu.name != first.gpu.name:
        return f"it is an {one.gpu.name}, and this edition is of the {first.gpu.name}"
    if first is not None and one.edition != first.edition:
        differs = [
            f"{k} {one.edition.get(k)}" for k in first.edition if one.edition.get(k) != first.edition[k]
        ]
        theirs = [f"{k} {v}" for k, v in first.edition.items() if one.edition.get(k) != v]
        return f"it has {', '.join(differs)}, and this edition {', '.join(theirs)}: install the same there"
    return ""
