"""Environments of the processes that measure, test and build."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def environment_on_gpu(root: Path) -> dict[str, str]:
    """Environment of a process that uses a GPU: no interpreter of Triton's, and bytecode is kept.

    A container often forbids it (PYTHONDONTWRITEBYTECODE) and has none of PyTorch: then every start of Python compiles
    PyTorch's sources anew, a good part of the wait. So it is kept in .cache/python; the libraries stay as they are.
    """
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment.setdefault("PYTHONPYCACHEPREFIX", str(root / ".cache" / "python"))
    return environment


def with_source(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python finds the course of this repository."""
    paths = [str(root / "src"), environment.get("PYTHONPATH", "")]
    return {**environment, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
