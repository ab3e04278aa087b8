"""Words of the files that pages are made from: no typed number in what a page may show, and one name per thing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_site.lint import figure_numbers, frame, glossary_numbers, lint
from course_site.pages import glossary
from course_site.pages.build_cache import KEPT, digest
from course_site.pages.page import Page
from course_site.records import kernel_sources
from course_site.records.digest import CUDA_SUFFIXES
from course_site.sessions.course_road import FOLDER
from course_site.sessions.handouts import FOLDER as SHEETS
from course_site.sessions.session import Session
from course_site.site.course import Course

# What a page may show or quote: kernels, pictures, terms, the front door.
_KERNELS = "src/course_kernels"
_SHOWN = (
    _KERNELS,
    "labs",
    "docs/glossary.toml",
    "docs/assets/figures",
    "handbook",
    "README.md",
)
_SOURCES = frozenset({".py", ".wgsl", *CUDA_SUFFIXES})
_FRAME = ("docs/assets/css", "docs/assets/js", "overrides", "handbook/run", "handbook/handouts")
_FRAMES = frozenset({".css", ".js", ".html"})
_NAMED = ("docs", "handbook")
_WRITTEN = frozenset({".py", ".md", ".toml", ".svg", ".html"})


def check_numbers(course: Course) -> None:
    """Note every typed number."""
    for file in _files(course.root, _SHOWN):
        if "__pycache__" not in file.parts:
            _check_numbers(course, file)
    for file in _files(course.root, (_KERNELS,)):
        if file.suffix in _SOURCES and "__pycache__" not in file.parts:
            _check_kernel(course, file)


def check_unrecorded(course: Course) -> None:
    """Note what is said with no record behind it: in glossary, styles, scripts, templates, descriptions, figures."""
    for why in glossary_numbers.faults_of((term.key, f"{term.short} {term.more}") for term in course.terms):
        course.problem("docs/glossary.toml", why)
    for file in _files(course.root, _FRAME):
        path = file.relative_to(course.root)
        if file.suffix in _FRAMES and "vendor" not in path.parts:
            for line, why in frame.faults_of(path.as_posix(), file.read_text(encoding="utf-8")):
                course.problem(path, f"line {line}: {why}")
    for page in course.pages:
        for why in frame.faults_of_description(str(page.description or "")):
            course.problem(page.path, why)
        prose = "\n\n".join(cell.source for cell in page.cells if cell.kind == "markdown")
        if "/// figure" in prose:
            _check_figures(course, page, prose)


def _check_figures(course: Course, page: Page, prose: str) -> None:
    drawn = [file.read_bytes() for file in figure_numbers.files_of(prose, course.root)]
    name = digest("figures", prose, drawn)
    if not KEPT.is_clean(name):
        found = list(figure_numbers.faults_of(prose, course.root))
        for why in found:
            course.problem(page.path, why)
        if not found:
            KEPT.clean(name)


def check_names(course: Course) -> None:
    """Note every name that is not the one of its thing; late sessions speak the trade."""
    late = _late(course)
    for page in course.pages:
        _check_trade(course, page, late)
    for session in late:
        _check_session(course, session)
    for file in _files(course.root, _NAMED):
        if file.suffix in _WRITTEN and file.name != "glossary.toml" and "vendor" not in file.parts:
            _check_names(course, file)


def check_page(course: Course, page: Page) -> None:
    """Note both of one page."""
    file = course.root / page.path
    if page.path.parts[0] in _SHOWN:
        _check_numbers(course, file)
    _check_trade(course, page, _late(course))
    _check_names(course, file)


def _files(root: Path, names: tuple[str, ...]) -> Iterator[Path]:
    for path in (root / name for name in names):
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                yield file


def _late(course: Course) -> list[Session]:
    road = course.maps.road
    stops = road.stops[road.stops.index(road.trade) :] if road.trade else ()
    return [course.maps.sessions[stop] for stop in stops if stop in course.maps.sessions]


def _check_numbers(course: Course, file: Path) -> None:
    name = digest("file", file.suffix, file.read_bytes(), sorted(course.sources))
    if not KEPT.is_clean(name):
        found = lint.lint_file(file, keys=course.sources)
        for finding in found:
            course.problem(file.relative_to(course.root), f"typed number at line {finding}")
        if not found:
            KEPT.clean(name)


def _check_kernel(course: Course, file: Path) -> None:
    path, data = file.relative_to(course.root), file.read_bytes()
    name = digest("kernel", path.as_posix(), data)
    if not KEPT.is_clean(name):
        found = list(kernel_sources.faults_of(path.as_posix(), data.decode()))
        for line, why in found:
            course.problem(path, f"line {line}: {why}")
        if not found:
            KEPT.clean(name)


def _check_trade(course: Course, page: Page, late: list[Session]) -> None:
    pages = {path for session in late for path in (session.student_page, session.map_page, session.chapter)}
    if page.path.as_posix() in pages:
        prose = [cell.source for cell in page.cells if cell.kind == "markdown"]
        for why in glossary.too_kitchen(prose, course.terms):
            course.problem(page.path, why)


def _check_session(course: Course, session: Session) -> None:
    for name in (f"{FOLDER}/{session.id}.toml", f"{SHEETS}/{session.id}.toml", session.figure):
        if name and (course.root / name).is_file():
            said = list(_said((course.root / name).read_text(encoding="utf-8"), name))
            for why in glossary.too_kitchen(said, course.terms):
                course.problem(name, why)
            for text in said:
                for why in glossary.without_the_trade(text, course.terms):
                    course.problem(name, why)


def _check_names(course: Course, file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    key = digest("names", text, [term.retired for term in course.terms])
    if not KEPT.is_clean(key):
        found = list(glossary.other_names(text, course.terms))
        for line, why in found:
            course.problem(file.relative_to(course.root), f"line {line}: {why}")
        if not found:
            KEPT.clean(key)


def _said(text: str, name: str) -> Iterator[str]:
    """Yield texts of a map or of a sheet, each by itself; a figure is one text."""
    if not name.endswith(".toml"):
        yield text
        return
    todo: list[Any] = [tomllib.loads(text)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            todo += value.values() if isinstance(value, dict) else value
