"""The last look at a built site: links, anchors, assets from other hosts, notebooks, typed numbers, and printed sums.

Needs no browser and no network. Run it by hand with `python -m course_site.site.links site`.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from course_site.lint.built_page import Words, typed_numbers, wrong_sums_of
from course_site.pages.html_reader import HtmlReader
from course_site.pages.plain_text import CITE, without_code
from course_site.site import search

# Where a tag names something the browser fetches by itself; <a href> it only follows when asked.
_FETCHED = {
    "img": ("src", "srcset"), "script": ("src",), "source": ("src", "srcset"), "video": ("src", "poster"),
    "audio": ("src",), "iframe": ("src",), "embed": ("src",), "object": ("data",), "track": ("src",), "input": ("src",),
    "use": ("href", "xlink:href"), "image": ("href", "xlink:href"), "feimage": ("href", "xlink:href"),
}  # fmt: skip
_LINK_NOT_FETCHED = frozenset(
    {"canonical", "alternate", "next", "prev", "license", "author", "edit", "me", "help"}
)
_NO_FILE = frozenset({"mailto", "tel", "javascript", "data", "blob", "about"})
_CSS_URL = re.compile(
    r"url\(\s*(?:\"([^\"]*)\"|'([^']*)'|([^)\"'\s]*))\s*\)|@import\s+(?:\"([^\"]*)\"|'([^']*)')"
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Written by the build from records and maps, which are looked at where they are read.
_FILLED = ("numbers.html", "numbers/", "handbook/run/")
_TARGET = re.compile(r"\]\(<?([^)>\s]+)")
_MATH = re.compile(r"\$\$.*?\$\$|(?<!\\)\$[^$\n]+\$|\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)


@dataclass
class _Reference:
    """An address in a page: where it is written, what it says, and whether the browser fetches it unasked."""

    line: int
    address: str
    fetched: bool


@dataclass
class _PageOf(HtmlReader):
    """The ids and addresses of one HTML file."""

    ids: set[str] = field(default_factory=set)
    references: list[_Reference] = field(default_factory=list)
    words: Words | None = None  # None where nobody asks for them
    _in_style: bool = False

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line = self.line
        values = {name: value for name, value in attrs if value is not None}
        if self.words:
            self.words.start(tag, values, line)
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "a":
            if values.get("name"):
                self.ids.add(values["name"])
            for name in ("href", "xlink:href"):
                if name in values:
                    self.references.append(_Reference(line, values[name], False))
        elif tag == "link" and "href" in values:
            rel = set(values.get("rel", "").lower().split())
            self.references.append(_Reference(line, values["href"], not rel & _LINK_NOT_FETCHED))
        for name in _FETCHED.get(tag, ()):
            if name == "srcset" and values.get(name):
                for candidate in values[name].split(","):
                    self.references.append(
                        _Reference(line, candidate.split()[0] if candidate.strip() else "", True)
                    )
            elif name in values:
                self.references.append(_Reference(line, values[name], True))
        if values.get("style"):
            self._css(values["style"], line)
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        if self.words:
            self.words.end(tag)
        if tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._css(data, self.line)
        elif self.words:
            self.words.text(data, self.line)

    def _css(self, text: str, line: int) -> None:
        for address in _css_addresses(text):
            self.references.append(_Reference(line, address, True))


def _css_addresses(text: str) -> Iterator[str]:
    for groups in _CSS_URL.findall(_CSS_COMMENT.sub("", text)):
        address = next((group for group in groups if group), "")
        if address:
            yield address


@dataclass
class _Site:
    """A built site: its files once, its pages read once."""

    root: Path
    filled: tuple[str, ...] = _FILLED
    pages: dict[Path, _PageOf] = field(default_factory=dict)

    @cached_property
    def files(self) -> set[str]:
        """The files, each as a path from the root with forward slashes."""
        found: set[str] = set()
        for folder, _, names in os.walk(self.root):
            inside = Path(folder).relative_to(self.root)
            found.update((inside / name).as_posix() for name in names)
        return found

    def page(self, name: str) -> _PageOf:
        path = self.root / name
        if path not in self.pages:
            page = _PageOf(words=None if name.startswith(self.filled) else Words())
            page.feed(path.read_text(encoding="utf-8", errors="replace"))
            page.close()
            if page.words:
                page.words.flush()  # what no element closes
            self.pages[path] = page
        return self.pages[path]

    def target(self, page: str, address: str) -> str | None:
        """Return the file an address without host leads to, or None; a folder means its index.html."""
        path = unquote(address)
        if path.startswith("/"):
            # Only 404.html may use these: a server shows it for an address of any depth.
            parts = path.strip("/").split("/")
            names = ["/".join(parts[i:]) for i in range(len(parts) + 1)] if page == "404.html" else []
        else:
            names = [os.path.normpath(os.path.join(os.path.dirname(page), path)).replace(os.sep, "/")]
        for name in names:
            for candidate in (name, f"{name}/index.html" if name not in ("", ".") else "index.html"):
                if candidate in self.files:
                    return candidate
        return None


def check(
    site: Path,
    keys: Collection[str] = (),
    *,
    sums: bool = True,
    part: str = "",
    others: Collection[str] = (),
) -> list[str]:
    """List everything broken in a built site, one line each: file, line, cause. An empty list means it holds together.

    Args:
        keys: of the bibliography; a sentence that cites one speaks of somebody else's number.
        sums: do the printed sums again. Their digits are chosen for the records that are committed.
        part: look at the files in this folder alone; links may lead anywhere in the site.
        others: leave out these folders.
    """
    if not (site / "index.html").is_file():
        return [f"{site}: there is no index.html: build the site first"]
    house = _Site(site, filled=tuple(posixpath.join(part, name) for name in _FILLED))
    problems: list[str] = []
    for name in sorted(house.files):
        if not name.startswith(f"{part}/" if part else "") or name.startswith(
            tuple(f"{one}/" for one in others)
        ):
            continue
        if name.endswith(".html"):
            problems += _check_page(house, name)
            problems += _check_words(house, name, keys)
            problems += _check_sums(house, name) if sums else ()
        elif name.endswith(".css"):
            problems += _check_style(house, name)
        elif name.endswith(".ipynb"):
            problems += _check_notebook(house, name)
        elif name == search.FILE:
            problems += _check_search(house, name)
    return problems


def _check_page(house: _Site, name: str) -> Iterator[str]:
    for reference in house.page(name).references:
        problem = _check_reference(house, name, reference)
        if problem:
            yield f"{name}:{reference.line}: {problem}"


def _check_words(house: _Site, name: str, keys: Collection[str]) -> Iterator[str]:
    """Yield numbers that somebody typed, where a reader sees them."""
    words = house.page(name).words
    for line, excerpt, why in typed_numbers(words.pieces, keys) if words else ():
        yield f"{name}:{line}: typed number {excerpt!r}: {why}"
    for line, mark in words.unresolved if words else ():
        yield f"{name}:{line}: {mark} is there as it was typed: a colon after it makes it no citation"


def _check_sums(house: _Site, name: str) -> Iterator[str]:
    """Yield the sums that do not come out with the digits that stand there."""
    words = house.page(name).words
    for line, found, gives in wrong_sums_of(words.pieces) if words else ():
        yield (
            f"{name}:{line}: printed sum {found!r} does not come out, its digits give {gives}: print more digits "
            "of what goes in, or fewer of what comes out"
        )


def _check_reference(house: _Site, name: str, reference: _Reference) -> str | None:
    address = reference.address.strip()
    try:
        parts = urlsplit(address)
    except ValueError:
        return f"{address!r} is not an address"
    if parts.scheme in _NO_FILE:
        return None
    if parts.scheme or parts.netloc:
        if reference.fetched:
            return f"asks another host for {address!r}: vendor it under docs/assets"
        return (
            None if parts.scheme in ("http", "https") and parts.netloc else f"{address!r} is not an address"
        )
    if not parts.path:
        target: str | None = name
    else:
        if parts.path.startswith("/") and name != "404.html":
            return f"{address!r} starts at the server's root, which a site opened from a folder has not"
        target = house.target(name, parts.path)
        if target is None:
            return f"{address!r} leads to no file"
    fragment = unquote(parts.fragment).split(":~:")[0]
    if (
        fragment
        and fragment != "top"
        and target
        and target.endswith(".html")
        and fragment not in house.page(target).ids
    ):
        return f"{address!r}: {target} has no id {fragment!r}"
    return None


def _check_style(house: _Site, name: str) -> Iterator[str]:
    for address in _css_addresses((house.root / name).read_text(encoding="utf-8", errors="replace")):
        parts = urlsplit(address)
        if parts.scheme in _NO_FILE or not (parts.path or parts.netloc):
            continue
        if parts.scheme or parts.netloc:
            yield f"{name}: asks another host for {address!r}: vendor it under docs/assets"
        elif house.target(name, parts.path) is None:
            yield f"{name}: {address!r} leads to no file"


def _check_notebook(house: _Site, name: str) -> Iterator[str]:
    import nbformat

    try:
        notebook: Any = nbformat.read(house.root / name, as_version=4)
        nbformat.validate(notebook)
    except (
        Exception
    ) as error:  # nbformat raises its own kinds, json's and jsonschema's: all mean the same here
        cause = str(error).splitlines()[0] if str(error) else type(error).__name__
        yield f"{name}: does not open as a notebook: {cause}"
        return
    for number, cell in enumerate(notebook.cells, 1):
        if cell.cell_type == "markdown":
            prose = _MATH.sub("", without_code(cell.source))
            if "{{" in prose:
                start = prose.index("{{")
                yield f"{name}: cell {number} has an unfilled value: {prose[start : start + 60].splitlines()[0]!r}"
            for mark in CITE.findall(prose):
                yield f"{name}: cell {number} has a mark without its source: {mark!r}"
            for address in _TARGET.findall(prose):
                if problem := _check_reference(house, name, _Reference(number, address, fetched=False)):
                    yield f"{name}: cell {number}: {problem}"
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                yield f"{name}: cell {number} shows an error: {output.get('ename', '')}: {output.get('evalue', '')}"


def _check_search(house: _Site, name: str) -> Iterator[str]:
    try:
        found = list(search.locations(lambda name: (house.root / name).read_text(encoding="utf-8")))
    except ValueError as error:
        yield str(error)
        return
    except OSError as error:
        yield f"{name}: names a part that is not there: {Path(str(error.filename)).name}"
        return
    except (KeyError, TypeError, IndexError):
        yield f"{name}: is not a search index"
        return
    for location in found:
        problem = _check_reference(house, "index.html", _Reference(1, location, False)) if location else None
        if problem:
            yield f"{name}: {problem}"


def main(arguments: list[str]) -> int:
    """Check the built site in the folder named (default: site); the exit status is 1 if anything is broken."""
    site = Path(arguments[0] if arguments else "site")
    problems = check(site)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{site}: every link, anchor and notebook holds")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
