"""The card that the values of a page are of, where the page does not name another one beside a value."""

from __future__ import annotations

from course_site.pages.page import Page
from course_site.sessions.road import place_of
from course_site.sessions.session import Session
from course_site.site.course import Course


def card_of(course: Course, page: Page) -> str:
    """Return the card of a page's own record; without one that of its session, or the reference's.

    A page that waits for a GPU keeps the card that it was measured on: its `gpu` is that one still.

    Returns:
        the name that the card's driver gives; "" in an edition that is not the reference, where pages of two cards
        stand side by side by necessity.
    """
    if not course.is_reference:
        return ""
    record = course.records.get(page.id)
    if record and record.measured:
        return str(record.edition["gpu"])
    place = place_of(page.path.as_posix(), course.maps.sessions)
    return card_of_session(course, course.maps.sessions[place[0].id]) if place else _of_the_reference(course)


def card_of_session(course: Course, session: Session) -> str:
    """Return the card of its students' page, for its map, its chapter and its sheets; or the reference's."""
    if not course.is_reference:
        return ""
    pages = (page.id for page in course.pages if page.path.as_posix() == session.student_page)
    own = (_measured_on(course, page_id) for page_id in pages)
    return next(filter(None, own), "") or _of_the_reference(course)


def _measured_on(course: Course, page_id: str) -> str:
    record = course.records.get(page_id)
    return record.edition["gpu"] if record and record.measured and course.has_numbers(page_id) else ""


def _of_the_reference(course: Course) -> str:
    fresh = (page.id for page in course.pages if course.states[page.id] == "fresh")
    return next(filter(None, (_measured_on(course, page_id) for page_id in fresh)), "")
