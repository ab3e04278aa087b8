"""``python -m course_site docs|wheelhouse|calendar|handouts [options]``: what the nox sessions of these names run."""

from __future__ import annotations

import sys

from course_site import docs, handouts
from course_site.records import wheelhouse
from course_site.sessions import cohort

COMMANDS = {
    "docs": docs.main,
    "wheelhouse": wheelhouse.main,
    "calendar": cohort.main,
    "handouts": handouts.main,
}


def main() -> int:
    """Run the named command; returns its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(f"usage: python -m course_site {'|'.join(COMMANDS)} [options]", file=sys.stderr)
        return 2
    return COMMANDS[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
