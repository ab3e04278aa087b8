"""The navigation: mkdocs.yml names the sections, and the pages say themselves where in them they stand.

A page's head may say its `section`, its `order` in it, and what it is called there, `nav`. Left out, the section is
the one whose folder the page lies in, and the title is the page's own. The pages of a session need none of these: they
stand at ten times the number of their stop, students' pages in the section of their half. Nor do the pages of a folder
whose index page has `pages` in its head, their names in order or `by name`: the index stands at 0, the first at 10.

Two roads lead through the site, and no foot of a page leads from one to the other: `roads`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from course_site.pages.page import Page
from course_site.pages.urls import site_uri
from course_site.sessions.road import place_of
from course_site.sessions.session import Session
from course_site.site.course import Course

FILE = "mkdocs.yml"
# Between two stops there is room for pages that belong to no session.
STEP = 10
MENTORS = "handbook/"


def filled(nav: list[Any], course: Course) -> list[Any]:
    """Return the sections of mkdocs.yml, each with its pages; what is wrong is noted in `course.problems`.

    Args:
        nav: a section is a name, or a name with the folder of its pages; a name with a list is a group of sections.
            A page named by its path, at the top, stands where it is named.
    """
    return _Navigation(nav, course).filled(nav)


def in_order(nav: list[Any]) -> Iterator[str]:
    """Yield the addresses of all pages of a filled navigation, from top to bottom."""
    for _, inside in map(_named, nav):
        yield from in_order(inside) if isinstance(inside, list) else [inside]


def roads(nav: list[Any]) -> list[tuple[str, list[str]]]:
    """Return the pages whose feet lead to one another, in their order, by the section that they stand in.

    Students stay inside a section, such as a half of the course. What mentors read is one road of all its sections.
    """
    grouped = itertools.groupby(
        _placed(nav), lambda entry: MENTORS if entry[1].startswith(MENTORS) else entry[0]
    )
    return [(section, [uri for _, uri in entries]) for section, entries in grouped]


def _placed(nav: list[Any], section: str = "") -> Iterator[tuple[str, str]]:
    """Pages with their sections, from top to bottom."""
    for name, inside in map(_named, nav):
        if isinstance(inside, list):
            yield from _placed(inside, name)
        else:
            yield section, inside


@dataclass(frozen=True)
class Stop:
    """A place on the students' road: a session, its page here or to come, or a page on the way to the next one."""

    order: int
    title: str
    page: Page | None
    session: Session | None


def students_road(course: Course) -> list[tuple[str, list[Stop]]]:
    """Return both halves of the course with their stops, in the order in which a student meets them."""
    return [
        (half, sorted(_stops(course, half), key=lambda stop: stop.order))
        for half, _ in course.maps.road.halves
    ]


def _stops(course: Course, half: str) -> Iterator[Stop]:
    maps = course.maps
    pages = {page.path.as_posix(): page for page in course.pages}
    for session in maps.sessions.values():
        if maps.road.half(session.id) == half:
            page = pages.get(session.student_page)
            yield Stop(STEP * session.number, session.title, page, session)
    for page in course.pages:
        order = page.meta.get("order")
        if page.meta.get("section") == half and isinstance(order, int):
            yield Stop(order, page.title, page, None)


def _named(item: Any) -> tuple[str, Any]:
    """Return a section's name, and its folder, or "", or what is in the group."""
    return (item, "") if isinstance(item, str) else next(iter(item.items()))


def _sections(nav: list[Any]) -> Iterator[tuple[str, str]]:
    for name, inside in map(_named, nav):
        if isinstance(inside, list):
            yield from _sections(inside)
        else:
            yield name, inside


BY_NAME = "by name"


@dataclass(frozen=True)
class FolderOrder:
    """The order of a folder's pages, as its index page says it.

    Attributes:
        index: the page that says it.
        places: the place of each page, by its name without an ending.
        faults: what is wrong with what it says.
    """

    index: Page
    places: dict[str, int]
    faults: tuple[str, ...] = ()


def order_of_folder(pages: Iterable[Page], folder: str) -> FolderOrder | None:
    """Read `pages` in the head of a folder's index page; None where there is none.

    Args:
        pages: all of the course.
    """
    inside = {page.path.stem: page for page in pages if page.path.parent.as_posix() == folder}
    index = inside.pop("index", None)
    named = index.meta.get("pages") if index else None
    if index is None or named is None:
        return None
    if named == BY_NAME:
        named = sorted(name for name, page in inside.items() if "order" not in page.meta)
    faults = []
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        named, faults = [], [f"`pages` is {named!r}: write the names of its folder's pages, or `{BY_NAME}`"]
    for name in dict.fromkeys(named):
        if name not in inside:
            faults.append(f"`pages` names {name!r}, and there is no such page in {folder}")
        elif named.count(name) > 1:
            faults.append(f"`pages` names {name!r} {named.count(name)} times")
        elif "order" in inside[name].meta:
            faults.append(f"`pages` names {name!r}, whose head has an `order`: take one of them out")
    places = {name: STEP * number for number, name in enumerate(named, 1)}
    return FolderOrder(index, {"index": 0} | places, tuple(faults))


class _Navigation:
    def __init__(self, nav: list[Any], course: Course) -> None:
        self.course = course
        self.pages = {site_uri(page.path.as_posix()): page for page in course.pages}
        self.titles: dict[str, str] = {}
        self.folders = {name: folder for name, folder in _sections(nav) if name not in self.pages}
        self.placed: dict[str, dict[int, str]] = {name: {} for name in self.folders}
        ordered = {
            folder: order_of_folder(course.pages, folder) for folder in self.folders.values() if folder
        }
        self.ordered = {folder: order for folder, order in ordered.items() if order}
        for order in self.ordered.values():
            for fault in order.faults:
                course.problem(order.index.path, fault)
        read = [order.index for order in self.ordered.values()]
        for page in course.pages:
            if "pages" in page.meta and page not in read:
                course.problem(
                    page.path, f"`pages` is for the index of a folder that has a section in {FILE}"
                )
        for uri, page in self.pages.items():
            self.place(uri, page, by_name=uri in nav)

    def filled(self, nav: list[Any]) -> list[Any]:
        filled: list[Any] = []
        for name, inside in map(_named, nav):
            if isinstance(inside, list):
                filled.append({name: self.filled(inside)})
            elif name in self.pages:
                filled.append({self.titles[name]: name})
            else:
                filled.append(
                    {name: [{self.titles[uri]: uri} for _, uri in sorted(self.placed[name].items())]}
                )
                if not self.placed[name]:
                    self.course.problem(FILE, f"no page is in the section {name!r}: take it out")
        return filled

    def place(self, uri: str, page: Page, *, by_name: bool) -> None:
        """Put one page into its section, or say why it has no place there."""
        session, view = place_of(page.path.as_posix(), self.course.maps.sessions) or (None, "")
        folder, half, order, title = page.path.parent.as_posix(), "", None, page.title
        if session and session.stop:
            half = self.course.maps.road.half(session.id) if view == "student_page" else ""
            title = page.title if view == "map_page" else session.name
            order = STEP * session.number
        elif folder in self.ordered:
            order = self.ordered[folder].places.get(page.path.stem)
        self.titles[uri] = str(page.meta.get("nav", title))
        if by_name:
            return
        lies_in = next((name for name, own in self.folders.items() if own == folder), half)
        section, order = page.meta.get("section", lies_in), page.meta.get("order", order)
        if section not in self.folders:
            said = (
                f"{section!r} is not a section of the navigation"
                if section
                else "is in no section of the navigation"
            )
            known = ", ".join(map(repr, self.folders))
            self.course.problem(page.path, f"{said}: write `section` into its head, one of {known}")
        elif not isinstance(order, int) or isinstance(order, bool):
            said = "has no place" if order is None else f"order {order!r} is not a place"
            mend = "write `order`, a whole number, into its head"
            if folder in self.ordered:
                mend += f", or its name into `pages` of {self.ordered[folder].index.path}"
            self.course.problem(page.path, f"{said} in {section!r}: {mend}")
        elif order in self.placed[section]:
            other = self.pages[self.placed[section][order]].path
            self.course.problem(
                page.path, f"is at {order} in {section!r}, where {other} is: change `order` in a head"
            )
        else:
            self.placed[section][order] = uri
