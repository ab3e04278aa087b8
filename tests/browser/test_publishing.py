"""The published folder below a path, with its headers: nothing is broken, and the policy refuses nothing of ours.

A page of each kind stands for all; `nox -s publish -- --try FOLDER` opens every one.
"""

import os
import shutil
from pathlib import Path

from conftest import SITE, editions_of
from playwright.sync_api import Browser

from course_site.publishing.folder import publish
from course_site.publishing.served import served
from course_site.publishing.tried import tried

# Inline scripts of every kind, explorables and predictions, a run view with its service worker, and a missing address.
KINDS = ("404.html", "lectures/l3_memory.html", "handbook/run/w1.html")


def with_pages(names: list[str], target: Path) -> Path:
    """The site with these pages alone: the others are there, for links, and empty."""

    def taken(source: str, place: str) -> None:
        if not source.endswith(".html") or os.path.relpath(source, SITE) in names:
            os.symlink(source, place)
        else:
            Path(place).write_text("<html><head></head></html>", encoding="utf-8")

    return Path(shutil.copytree(SITE, target, copy_function=taken))


def test_the_published_folder_below_a_path_with_its_policy(browser: Browser, tmp_path: Path) -> None:
    names = [*KINDS, *(f"{folder}/index.html" for folder in editions_of(SITE))]
    target = tmp_path / "public"
    publish(with_pages(names, tmp_path / "site"), target)
    # Somebody else's script and picture in a page of ours, and a link to nothing.
    planted = """<script>window.theirs = 1</script><img src="http://127.0.0.2/x.png" alt=""><a href="none.html">x</a>"""
    text = (target / names[-1]).read_text(encoding="utf-8").replace("</body>", f"{planted}</body>")
    page = Path(names[-1]).with_name("planted.html")
    (target / page).write_text(text, encoding="utf-8")

    with served(target, "/peak/") as base:
        assert list(tried(browser, target, base, names)) == []
        heard = "\n".join(tried(browser, target, base, [page.as_posix()]))
        gone = f"404 {base}{page.with_name('none.html')}"
    for fault in ("script-src-elem inline", "img-src http://127.0.0.2/x.png", gone):
        assert fault in heard
