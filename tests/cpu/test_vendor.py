"""What other people made and we carry: as they published it, licensed, and asking nobody for anything."""

import hashlib
import re
from pathlib import Path

from course_site.lint import vendor

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / vendor.FOLDER


def test_every_vendored_file_is_the_one_that_was_checked() -> None:
    assert list(vendor.faults(ROOT)) == []


def test_a_file_that_is_another_one_missing_or_unknown_is_told(tmp_path: Path) -> None:
    folder = tmp_path / vendor.FOLDER
    folder.mkdir(parents=True)
    for name in ("a.js", "b.js", "c.js", "README.md"):
        (folder / name).write_text(name)
    sums = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("a.js", "b.js", "d.js")}
    (folder / vendor.SUMS).write_text("".join(f"{found}  {name}\n" for name, found in sums.items()))
    (folder / "b.js").write_text("edited")
    assert [
        (place.rpartition("/")[2], why.partition(",")[0].partition(":")[0])
        for place, why in vendor.faults(tmp_path)
    ] == [
        ("b.js", "is not the file that SHA256SUMS has"),
        ("c.js", "is not in SHA256SUMS"),
        ("d.js", "is missing"),
    ]


def test_every_vendored_work_has_its_licence() -> None:
    named = re.findall(r"`([\w/-]+\.txt)`", (VENDOR / "README.md").read_text())
    assert len(named) == 6
    assert [name for name in named if not (VENDOR / name).is_file()] == []


def test_style_sheets_ask_for_files_that_are_here() -> None:
    for sheet in [*VENDOR.rglob("*.css"), *VENDOR.parent.glob("css/*.css")]:
        for target in re.findall(r"url\(([^)]+)\)", sheet.read_text()):
            assert (sheet.parent / target.strip("\"'")).is_file(), f"{sheet.name}: {target}"
