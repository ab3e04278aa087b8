"""Provenance of a number: the card, its driver, the versions, the commit and the date."""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import course_kernels

ROOT = Path(course_kernels.__file__).resolve().parents[2]


def slug_of(gpu_name: str) -> str:
    """Return the name of a card's edition: "NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", gpu_name.lower()).strip("-")


def provenance() -> dict[str, Any]:
    """Everything a reader needs to repeat a run; None for what this machine does not have.

    Returns:
        gpu, slug, uuid (which card of that model), count, driver, cuda, torch, triton, python, date (UTC, ISO 8601),
        commit, dirty (a tracked file differs from the commit; None where there is no git).
    """
    torch, triton = _module("torch"), _module("triton")
    has_gpu = torch is not None and torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if has_gpu else None
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "gpu": gpu,
        "slug": slug_of(gpu) if gpu else None,
        "uuid": _uuid(torch) if has_gpu else None,
        "count": torch.cuda.device_count() if has_gpu else 0,
        "driver": _driver_version(),
        "cuda": torch.version.cuda if torch is not None else None,
        "torch": torch.__version__ if torch is not None else None,
        "triton": triton.__version__ if triton is not None else None,
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "dirty": None if changed is None else bool(changed),
    }


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _uuid(torch: Any) -> str | None:
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _driver_version() -> str | None:
    pynvml = _module("pynvml")
    if pynvml is None:
        return None
    try:
        pynvml.nvmlInit()
        version = pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return None
    return version.decode() if isinstance(version, bytes) else version


def _git(*arguments: str) -> str | None:
    # The owner of the folder may be another user than the one who measures; git would refuse that.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
