"""The staged pages as a folder of plain Markdown with one file of settings: for an engine that has no hooks.

The tokens in these pages are swapped by `fill` once the engine has made HTML of them. What our hook does for MkDocs and
no folder can say, such an engine lacks: engines.py lists it.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from course_site.site.stage import Stage

FOLDER = "staged"
_LINK = re.compile(r"(\]\()([^)\s#]+)(?=[#)])")
_ARTICLE = re.compile(r"(<article\b[^>]*>)(.*)(</article>)", re.DOTALL)
# Settings that only say where the course's own sources lie, or how MkDocs runs what is ours.
_OURS = ("hooks", "watch", "plugins", "exclude_docs")


class _Settings(yaml.SafeLoader):
    """A reader of mkdocs.yml, whose tags name what only MkDocs knows."""


def settings(root: Path) -> dict[str, Any]:
    """Return what mkdocs.yml says."""
    _Settings.add_multi_constructor("", lambda loader, suffix, node: None)
    return dict(yaml.load((root / "mkdocs.yml").read_text(encoding="utf-8"), _Settings))


def as_markdown(uri: str) -> str:
    """Return the address of a page in the folder: whatever it was written in, it is Markdown there."""
    return f"{posixpath.splitext(uri)[0]}.md"


def linked(text: str, uri: str, pages: Mapping[str, object]) -> str:
    """Return a page's text with its links to other pages as these are called in the folder."""

    def to(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(uri), found[2]))
        return found[1] + (as_markdown(found[2]) if place in pages else found[2])

    return _LINK.sub(to, text)


def _named(nav: Any) -> Any:
    if isinstance(nav, list):
        return [_named(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: _named(inside) for title, inside in nav.items()}
    return as_markdown(nav)


def write(stage: Stage, folder: Path) -> Path:
    """Write the folder anew.

    Returns:
        The file of settings, which names `site` beside it as the place of the site.
    """
    root, pages = stage.course.root, stage.pages
    shutil.rmtree(folder, ignore_errors=True)
    docs = folder / "docs"
    shutil.copytree(root / "docs" / "assets", docs / "assets")
    shutil.copytree(root / "overrides", folder / "overrides")
    for uri in pages:
        place = docs / as_markdown(uri)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(linked(stage.markdown(uri) or "", uri, pages), encoding="utf-8")
    for uri, chapter in stage.ledger.chapters.items():
        place = docs / as_markdown(uri)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(chapter.markdown, encoding="utf-8")
    for uri, content in stage.others():
        place = docs / uri
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copy(content, place)
        else:
            place.write_bytes(content.encode() if isinstance(content, str) else content)
    said = {key: value for key, value in settings(root).items() if key not in _OURS}
    said["nav"] = _named(stage.nav)
    said["extra"] = said.get("extra", {}) | {name: _plain(what) for name, what in stage.extra.items()}
    file = folder / "mkdocs.yml"
    file.write_text(yaml.safe_dump(said, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return file


def _plain(what: Any) -> Any:
    if not dataclasses.is_dataclass(what) or isinstance(what, type):
        return what
    fields = dataclasses.asdict(what) | {
        name: getattr(what, name)
        for name in dir(type(what))
        if isinstance(getattr(type(what), name), property)
    }
    return {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}


def fill(stage: Stage, site: Path) -> None:
    """Swap the tokens in the pages of a site that an engine has made of the folder."""
    for uri in [*stage.pages, *stage.ledger.chapters]:
        place = site / f"{posixpath.splitext(uri)[0]}.html"
        if place.is_file():
            text = _ARTICLE.sub(_filler(stage, uri), place.read_text(encoding="utf-8"), count=1)
            output = stage.write_apart(text, site, place.relative_to(site).as_posix())
            place.write_text(output, encoding="utf-8")


def _filler(stage: Stage, uri: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}{stage.filled(uri, found[2])}{found[3]}"
