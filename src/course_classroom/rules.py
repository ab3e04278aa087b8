"""Rules for AI helpers of learners: `AGENTS.md`, beside what `nox -s lab` and a template hand out."""

from __future__ import annotations

from pathlib import Path

from course_labs.lab import FOLDER

NAME = "AGENTS.md"
RULES = Path(__file__).with_name("rules_for_ai_helpers.md")


def hand_out(root: Path) -> None:
    """Write the rules into `my_labs/`, where that is there and has none: whoever changed theirs keeps them."""
    folder = root / FOLDER
    if folder.is_dir() and not (folder / NAME).exists():
        (folder / NAME).write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
