"""What other people made and we carry: as they published it, licensed, and asking nobody for anything."""

import hashlib
import re
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "docs/assets/vendor"


def test_every_vendored_file_is_the_one_that_was_checked() -> None:
    listed = dict(reversed(line.split("  ", 1)) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    there = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name not in ("README.md", "SHA256SUMS")
    }
    assert there == listed


def test_every_vendored_work_has_its_licence() -> None:
    named = re.findall(r"`([\w/-]+\.txt)`", (VENDOR / "README.md").read_text())
    assert len(named) == 6
    assert [name for name in named if not (VENDOR / name).is_file()] == []


def test_style_sheets_ask_for_files_that_are_here() -> None:
    for sheet in [*VENDOR.rglob("*.css"), *VENDOR.parent.glob("css/*.css")]:
        for target in re.findall(r"url\(([^)]+)\)", sheet.read_text()):
            assert (sheet.parent / target.strip("\"'")).is_file(), f"{sheet.name}: {target}"
