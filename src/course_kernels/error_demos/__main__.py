"""Run one case in this process: `python -m course_kernels.error_demos out_of_bounds [--mended] [--limit SECONDS]`."""

from __future__ import annotations

import argparse
import signal

LONGEST_S = 3600  # an alarm of 0 would be none


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the case; the alarm ends a process that waits for the GPU for ever."""
    import torch

    from course_kernels.error_demos.cases import CASES

    parser = argparse.ArgumentParser(prog="python -m course_kernels.error_demos", description=__doc__)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--mended", action="store_true", help="run the mended kernel")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS", help="end after so long (60)")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.limit <= LONGEST_S:
        parser.error(f"--limit {chosen.limit}: give 1 to {LONGEST_S} seconds")
    if not torch.cuda.is_available():
        parser.error("no GPU: torch cannot use CUDA on this machine; run this where a GPU is")
    # A waiting synchronize does not listen to Python, so the operating system ends the process.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(chosen.limit)
    CASES[chosen.case](chosen.mended)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
