"""``python -m course_site docs|read|… [options]``: what the nox sessions of these names run."""

from __future__ import annotations

import importlib
import sys

# The module of each command. It alone is loaded: every nox session installs what its own command needs.
COMMANDS = {
    "docs": "course_site.docs",
    "worker": "course_site.records.fleet.worker",
    "read": "course_site.site.read",
    "wheelhouse": "course_site.records.wheelhouse",
    "calendar": "course_site.sessions.cohort",
    "handouts": "course_site.printing.command",
    "publish": "course_site.publishing.command",
}


def main() -> int:
    """Run the named command; returns its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(f"usage: python -m course_site {'|'.join(COMMANDS)} [options]", file=sys.stderr)
        return 2
    return int(importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
