"""Print a kernel for Blackwell as machine code, not run: `python -m course_kernels.blackwell nvfp4 [--all]`."""

from __future__ import annotations

import argparse
import sys

from course_kernels.blackwell.machine_code import ARCH, KERNELS, friends, keep, listing, what_for


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and print the counts, or every line.

    Raises:
        CompileError, CudaMissingError: see `listing`.
    """
    parser = argparse.ArgumentParser(
        prog="python -m course_kernels.blackwell",
        description="Print a kernel for Blackwell as machine code, compiled and not run.",
    )
    parser.add_argument("kernel", choices=list(KERNELS), nargs="?")
    parser.add_argument("--arch", default=ARCH, help=f"compile for this card ({ARCH})")
    parser.add_argument("--all", action="store_true", help="print every instruction")
    parser.add_argument("--keep", action="store_true", help="write what the page shows of all kernels")
    chosen = parser.parse_args(arguments)
    if not chosen.keep and not chosen.kernel:
        parser.error(f"name a kernel: {', '.join(KERNELS)}")
    if chosen.keep:
        keep()
        return 0
    lines = listing(chosen.kernel, chosen.arch)
    print(f"{chosen.kernel}, compiled for {chosen.arch}, not run: {len(lines)} instructions")
    if chosen.all:
        print(*lines, sep="\n")
    else:
        for name, count in friends(lines).items():
            print(f"{count:>4}  {name:<36}{what_for(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
