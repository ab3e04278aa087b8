"""Hashes of a file and of the judge: a verdict is on this file, and by this judge. Nothing here needs torch."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from course_kernels import problem as kernel_module


def hash_of_judge(problem: kernel_module.Problem) -> str:
    """Return a hash of all that decides a verdict: a verdict of another judge's is to be had anew."""
    return hash_by_name(problem.name)


def hash_by_name(problem: str) -> str:
    """Return the same for a problem that is not loaded, by its name."""
    judge, kernels = Path(__file__).parent, Path(kernel_module.__file__).parent
    files = [*judge.rglob("*.py"), *(kernels / "measure").rglob("*.py"), kernels / "problem.py"]
    files += [kernels / problem / "problem.py", kernels / "cuda" / "four_bits.py"]
    told = sha256()
    for path in sorted(path for path in files if path.is_file()):
        told.update(f"{path.name}\0".encode() + path.read_bytes())
    return told.hexdigest()


def hash_of(file: Path) -> str:
    """Return the hash of a file; empty where there is none."""
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
