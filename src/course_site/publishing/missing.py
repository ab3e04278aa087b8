"""All that is missing before a site is published, a line each: settings, licence, pages, links, words.

Nothing here asks the network but `unknown_hosts`, and only who asks for it.
"""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from course_site.pages.html_reader import HtmlReader
from course_site.pages.page import PageError, find_pages
from course_site.records import waiting
from course_site.records.edition import load_edition
from course_site.records.waiting import WaitingError
from course_site.site.about import FILE, AboutError, about, reference_of

SETTINGS = {
    "site_url": "without it there are no canonical links, no sitemap and no pictures of shared links",
    "repository": "without it a reader gets the source as an archive",
    "organisation": "without it nobody says who makes the course",
}
# Of what the site is made; whatever is newer than the site is not in it.
MADE_OF = (
    "LICENSE", "capstone", "docs", "handbook", "labs", "mkdocs.yml", "overrides", "proposals", "pyproject.toml",
    "records", "src",
)  # fmt: skip
_LEFT_OUT = ("__pycache__", "read")  # records/read/ says who has read what, and no reader sees it
# Names that stand for a host in an example, by RFC 2606 and RFC 6761, and those of one's own machine.
_NO_HOST = re.compile(
    r"(?:^|\.)(?:example|test|invalid|localhost|local|internal|lan)$|(?:^|\.)example\.(?:com|net|org)$"
    r"|^(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.|^\[?::1\]?$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"\b(?:TODO|FIXME|TBD|XXX|CHANGEME)\b|\b(?i:lorem ipsum|placeholder|coming soon|your[- ]organi[sz]ation)\b"
)
_NOT_PROSE = frozenset({"script", "style", "code", "pre", "svg"})
_WAITS = re.compile(r'class="banner (?:waiting|stale)"')


def missing(root: Path, site: Path) -> Iterator[str]:
    """Yield what is missing, a line each; nothing where the site can be published as it is."""
    yield from _settings(root)
    yield from _licence(root)
    yield from _stale(root)
    if not (site / "index.html").is_file():
        yield f"{site.name}/: there is none: run `nox -s docs`"
        return
    yield from _older(root, site)
    yield from in_pages(site)


def _settings(root: Path) -> Iterator[str]:
    try:
        said = about(tomllib.loads((root / FILE).read_text(encoding="utf-8")))
    except AboutError as error:
        yield f"{FILE}: {error}"
        return
    for name, why in SETTINGS.items():
        value: str = getattr(said, name)
        if not value:
            yield f"{FILE}: [tool.course] {name} is not said: {why}"
        elif name != "organisation" and (fault := fault_of_host(value)):
            yield f"{FILE}: [tool.course] {name} is {value!r}: {fault}"
    if not said.licence:
        yield f"{FILE}: [project] license is not said: the foot of each page names it"


def _licence(root: Path) -> Iterator[str]:
    path = root / "LICENSE"
    if not path.is_file() or not path.read_text(encoding="utf-8").strip():
        yield "LICENSE: there is none: without it nobody may use what is published"


def _stale(root: Path) -> Iterator[str]:
    """Yield the pages of the reference that wait for a card, and those whose record does not hold any more."""
    try:
        waits = waiting.load(root)
        pages = [page for page in find_pages(root) if page.measures]
        kept = load_edition(root, reference_of(root), pages).pages
    except (PageError, WaitingError) as error:
        yield str(error).removeprefix(f"{root}/")
        return
    for page in pages:
        name = page.path.as_posix()
        if name in waits:
            yield f"{name}: waits for a card since {waits[name].since}: {waits[name].reason}"
        elif faults := kept[page.id].faults:
            yield f"{name}: stale: {faults[0].message}"


def _older(root: Path, site: Path) -> Iterator[str]:
    built = (site / "index.html").stat().st_mtime
    newer = [path for path in _sources(root) if path.stat().st_mtime > built]
    if newer:
        first = min(newer, key=lambda path: path.as_posix()).relative_to(root).as_posix()
        more = f" and {len(newer) - 1} more files are" if len(newer) > 1 else " is"
        yield f"{site.name}/: {first}{more} newer: run `nox -s docs`"


def _sources(root: Path) -> Iterator[Path]:
    for name in MADE_OF:
        place = root / name
        for path in [place] if place.is_file() else place.rglob("*"):
            inside = path.relative_to(root).parts
            if (
                path.is_file()
                and not set(inside) & set(_LEFT_OUT)
                and not any(p.startswith(".") for p in inside)
            ):
                yield path


def in_pages(site: Path) -> Iterator[str]:
    """Yield what the pages of a built site show that nobody should publish; a fault of many pages once."""
    places: dict[str, list[str]] = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        for fault in faults_of(path.read_text(encoding="utf-8")):
            places.setdefault(fault, []).append(name)
    for fault, names in places.items():
        yield f"{names[0]}: {fault}" + (f" (and on {len(names) - 1} more pages)" if len(names) > 1 else "")


class _Page(HtmlReader):
    """The links to other hosts, and the words, of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.words: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _NOT_PROSE:
            self._inside.append(tag)
        for name, value in attrs:
            if name == "href" and value and value.strip().lower().startswith(("http:", "https:", "//")):
                self.links.append(value.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words.append(data)


def _read(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    page.close()
    return page


def faults_of(text: str) -> Iterator[str]:
    """Yield what is wrong in a page's text: no numbers yet, a link to no host, a word that stands for another."""
    if _WAITS.search(text):
        yield "shows a banner in place of its numbers: measure what waits, and build without --draft"
    page = _read(text)
    for link in dict.fromkeys(page.links):
        if fault := fault_of_host(link):
            yield f"{link}: {fault}"
    for words in page.words:
        if found := _PLACEHOLDER.search(words):
            yield f"{found.group()!r} stands for something else: {' '.join(words.split())[:80]!r}"


def fault_of_host(address: str) -> str:
    """Return why an address leads to no host, "" where it may.

    >>> fault_of_host("https://docs.python.org/3/"), fault_of_host("https://example.org/")
    ('', "'example.org' is no host that a reader can reach")
    """
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return "is not an address"
    if ("." not in host and ":" not in host) or _NO_HOST.search(host):
        return f"{host!r} is no host that a reader can reach"
    return ""


def hosts_of(site: Path) -> dict[str, str]:
    """Return the hosts that the pages of a site lead to, each with the first page that does."""
    found: dict[str, str] = {}
    for path in sorted(site.rglob("*.html")):
        for link in _read(path.read_text(encoding="utf-8")).links:
            if not fault_of_host(link):
                found.setdefault(str(urlsplit(link).hostname), path.relative_to(site).as_posix())
    return found


def unknown_hosts(
    hosts: Iterable[str], resolve: Callable[..., object] = socket.getaddrinfo
) -> Iterator[tuple[str, str]]:
    """Ask the network for each host, and yield those that it does not know, each with the reason."""

    def ask(host: str) -> tuple[str, str]:
        try:
            resolve(host, 443)
        except OSError as error:
            return host, error.strerror or str(error)
        return host, ""

    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from ((host, why) for host, why in pool.map(ask, hosts) if why)
