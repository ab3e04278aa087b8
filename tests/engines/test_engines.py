"""The site by another engine than MkDocs, outside CI: `nox -s engines`, some minutes.

ProperDocs runs our hook and the same plugins: its site is the same, file by file. Zensical runs no hook and skips what
it does not know in silence. So it is handed the staged pages as plain Markdown, and what it leaves out of them is
listed: when that list is empty, the shell for it can be written.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from course_site.site import build, engines, staged_folder
from course_site.site.stage import stage

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "site"

# What Zensical leaves out or adds, seen with the version that pyproject.toml pins, and why.
ZENSICAL_LACKS = {
    "files": "no notebook is published beside its page, and nothing is written at the end of a build",
    "links": "so the page does not offer its notebook",
    "words": "nor names it",
    "foot": "the way on goes through the navigation, not along our roads: no hook arranges it",
    "styles": "every page asks for all sheets: we join those that all need",
    "title": "the front page does not know that it is one",
    "boxes": "and has the bar of a page that is printed",
}
# What it was not asked for: the other editions, what all share, and the search, which the stage writes at the end.
NOT_ASKED = ("assets/", "search/", "h100/", "404.html")


def zensical(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "-f", str(file)]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=1200)


def place_of(site: Path, page: str) -> Path:
    return (site / page).with_suffix(".html")


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    found = stage(ROOT, None, staged_folder.settings(ROOT)["nav"])
    return found, staged_folder.write(found, tmp_path_factory.mktemp("engines") / staged_folder.FOLDER)


def test_properdocs_builds_the_same_site(tmp_path):
    build.build(ROOT, None, engine="properdocs", into=tmp_path / "site")
    made = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert f"ProperDocs {version('properdocs')}" in made, "another engine has built it"
    assert engines.differing(SITE, tmp_path / "site") == []


def test_zensical_builds_no_page_where_nobody_ran_the_stage(staged):
    found, file = staged
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    del said["extra"]["stage"]
    without = file.with_name("without.yml")
    without.write_text(yaml.safe_dump(said, allow_unicode=True), encoding="utf-8")
    done = zensical(without)
    assert done.returncode != 0
    assert "this engine has not run the stage of the course" in done.stdout + done.stderr
    made = [
        uri
        for uri in map(staged_folder.as_markdown, found.pages)
        if place_of(file.parent / "site", uri).exists()
    ]
    assert made == []


def test_what_zensical_leaves_out_is_known(staged, capsys):
    found, file = staged
    done = zensical(file)
    assert done.returncode == 0, done.stderr
    staged_folder.fill(found, file.parent / "site")
    lacks = engines.lacks(SITE, file.parent / "site", but=NOT_ASKED)
    with capsys.disabled():
        print(f"\nZensical {version('zensical')}, on {len(found.pages)} pages:")
        for what, lack in lacks.items():
            print(f"  {what}: {lack}\n    {ZENSICAL_LACKS.get(what, 'not known')}")
    assert set(lacks) == set(ZENSICAL_LACKS)
