"""Compile our kernels for other chips: `nox -s chips [-- NAME …]`, `-- --list` says which records still hold."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

from course_chips import kept
from course_chips.stale import reasons, sources


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, and compile for each chip in a process of its own.

    Returns:
        0; 1 where a chip's compiler failed: its record then stands as it was; 2 for a mistake in the command.
    """
    parser = argparse.ArgumentParser(
        prog="nox -s chips --", description="Compile our multiply and our attention for other chips."
    )
    families = sorted({module for module, _ in kept.CHIPS.values()})
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(kept.CHIPS)}; or all of {', '.join(families)}"
    )
    parser.add_argument(
        "--list", action="store_true", help="say of each record whether it holds; compile nothing"
    )
    parser.add_argument("--stale", action="store_true", help="only those whose record does not hold")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)  # one chip, in this process
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in (*kept.CHIPS, *families)]:
        parser.error(f"{unknown[0]}: expected one of {', '.join((*kept.CHIPS, *families))}")
    chips = [
        chip
        for chip, (module, _) in kept.CHIPS.items()
        if not chosen.names or {chip, module} & {*chosen.names}
    ]
    if chosen.make:
        make(chips[0])
        return 0
    if chosen.stale:
        chips = [chip for chip in chips if reasons(chip)]
    if chosen.list:
        for chip in chips:
            print(f"{chip:<9} {kept.CHIPS[chip][1]:<31} {'; '.join(reasons(chip)) or 'holds'}")
        return 0
    failed = [chip for chip in chips if not made(chip)]
    return 1 if failed else 0


def made(chip: str) -> bool:
    """Compile for a chip in another process, and say in a line how that went."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "course_chips", "--make", chip], capture_output=True, text=True, check=False
    )
    took = f"{time.monotonic() - began:.0f} s"
    if done.returncode == 0:
        print(f"chips: {chip}: {kept.path_of(chip).relative_to(kept.ROOT)}, {took}", flush=True)
        return True
    # The compilers are talkative: what counts is the last line.
    said = [line for line in done.stderr.splitlines() if line.strip()] or ["failed without a word"]
    print(f"chips: {chip}: {said[-1]}", file=sys.stderr, flush=True)
    return False


def make(chip: str) -> None:
    """Compile for a chip and write its record.

    Raises:
        PackageNotFoundError: a compiler is not installed.
    """
    module, title = kept.CHIPS[chip]
    family = importlib.import_module(f"course_chips.{module}")
    packages = {name: _version(name) for name in family.PACKAGES}
    if hasattr(family, "programs"):  # compilers that are no Python packages
        packages = family.programs() | packages
    head = {
        "chip": chip,
        "title": title,
        "packages": packages | {"python": python_version()},
        "command": f"nox -s chips -- {chip}",
        "sources": sources(chip),
    }
    kept.write(chip, head | family.make(chip))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        raise PackageNotFoundError(f'{name} is not installed: pip install -e ".[chips]"') from None


if __name__ == "__main__":
    sys.exit(main())
