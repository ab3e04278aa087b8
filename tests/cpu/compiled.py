"""What compilers made of our kernels, kept by all that they were given: the same again makes the same again.

A kernel that nobody has touched since is not compiled anew for every card there is; a sixteenth of them is, so that the
file is held against the compilers too. What it does not know is compiled. To write it anew, after a change of many:

    .nox/tests/bin/python tests/cpu/compiled.py
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
ANEW = "COMPILE_ANEW"  # names the file that is to be written instead of the one that is read


@cache
def kept() -> tuple[dict[str, Any], str]:
    """What is known, and which of it is compiled all the same: what begins with this."""
    text = FILE.read_text(encoding="utf-8")
    return json.loads(text), hashlib.sha256(text.encode()).hexdigest()[0]


@cache
def compilers() -> list[str]:
    """Everything that NVIDIA's compiler and its headers come in, and Triton."""
    named = {each.metadata["Name"].lower(): each.version for each in metadata.distributions()}
    ours = [name for name in named if name.startswith(("nvidia-cuda", "cuda-")) or name == "triton"]
    return [f"{name} {named[name]}" for name in sorted(ours)]


def known(given: object, make: Callable[[], Any]) -> Any:
    """What `make` makes of what it is given, from the file if that is in it.

    Args:
        given: all that decides it, as JSON; which compilers are installed is added.
    Raises:
        AssertionError: it was made anew, and the file says something else.
    """
    key = hashlib.sha256(json.dumps([compilers(), given]).encode()).hexdigest()[:24]
    if anew := os.environ.get(ANEW):
        made = make()
        with open(anew, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps([key, made])}\n")
        return made
    facts, drawn = kept()
    if key not in facts:
        return make()
    if key.startswith(drawn):
        made = json.loads(json.dumps(make()))
        assert made == facts[key], f"{FILE.name} has {facts[key]} of what comes to {made}: {given}"
    return facts[key]


def write() -> None:
    """Compile everything that the tests ask for, and keep that and nothing else."""
    new = FILE.with_suffix(".new")
    new.write_text("")
    tests = [str(FILE.with_name(name)) for name in ("test_compile_cuda.py", "test_compile_triton.py")]
    try:
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *tests], env=os.environ | {ANEW: str(new)}, check=True
        )
        facts = dict(sorted(json.loads(line) for line in new.read_text().splitlines()))
        lines = (f"{json.dumps(key)}: {json.dumps(made)}" for key, made in facts.items())
        new.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        new.replace(FILE)
    finally:
        new.unlink(missing_ok=True)


if __name__ == "__main__":
    write()
