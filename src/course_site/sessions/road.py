"""The line *You are here*: all stops of the course, on top of every session's pages."""

from __future__ import annotations

import html
from collections.abc import Mapping

from course_site.pages.urls import Address
from course_site.sessions.course_road import Road
from course_site.sessions.session import Session

# The three pages of a session: each road leads from one kind to the same kind.
VIEWS = ("student_page", "map_page", "chapter")
_OTHERS = {
    "student_page": (("map_page", "For mentors: the map"),),
    "map_page": (("student_page", "What students see"), ("chapter", "The chapter")),
    "chapter": (("map_page", "The map"), ("student_page", "What students see")),
}


def place_of(path: str, sessions: Mapping[str, Session]) -> tuple[Session, str] | None:
    """Return the session a page belongs to and which of its pages it is; None for a page off the road.

    Of a session before the road only the map has one.
    """
    for session in sessions.values():
        for view in VIEWS:
            if path == getattr(session, view) and (session.stop or view == "map_page"):
                return session, view
    return None


def road_html(
    here: Session | None,
    view: str,
    road: Road,
    sessions: Mapping[str, Session],
    address: Address,
    first: tuple[tuple[str, str], ...] = (),
) -> str:
    """Return the road as a list of links, with the two halves of the course.

    Args:
        here: the session; None on a page of `first`.
        view: which page of the session this is, one of VIEWS.
        address: a page of the repository, seen from here; None while it is to come.
        first: title and address of each page that a student meets before the first session; "" for the page itself.
    """
    stops = len(road.stops) + len(first)
    if here is None:
        at = f"at stop {[target for _, target in first].index('') + 1} of {stops}"
    elif here.stop:
        at = f"{here.stop} is stop {here.number + len(first)} of {stops}"
    else:
        at = f"before the first of {stops} stops"
    halves = []
    for words, names in road.halves:
        is_first = road.number(names[0]) == 1
        items = "".join(_first(title, target) for title, target in first) if is_first else ""
        items += "".join(_stop(name, here, view, sessions, address) for name in names)
        start = 1 if is_first else road.number(names[0]) + len(first)
        now = ' class="now"' if (here.id in names if here else is_first) else ""
        halves.append(f'<div class="half"><p{now}>{words}</p><ol start="{start}">{items}</ol></div>')
    links = [
        f'<a href="{html.escape(target)}">{words}</a>'
        for other, words in _OTHERS[view]
        if here and (target := address(getattr(here, other)))
    ]
    views = f'<p class="views">{" ".join(links)}</p>' if links else ""
    return (
        f'<nav class="road" aria-label="You are here: {at}">'
        f'<div class="halves">{"".join(halves)}</div>{views}</nav>'
    )


def _first(title: str, target: str) -> str:
    """Return the stop of a page before the first session."""
    title = html.escape(title)
    if not target:
        return (
            f'<li class="here"><span aria-current="page" title="{title}, you are here"><b>1st</b></span></li>'
        )
    return f'<li class="passed"><a href="{html.escape(target)}" title="{title}">1st</a></li>'


def _stop(
    name: str, here: Session | None, view: str, sessions: Mapping[str, Session], address: Address
) -> str:
    session, short = sessions.get(name), name.upper()
    title = html.escape(f"{short} · {session.title}" if session else short)
    if here and name == here.id:
        return f'<li class="here"><span aria-current="page" title="{title}, you are here"><b>{short}</b></span></li>'
    target = address(getattr(session, view)) if session else None
    if target is None:
        return f'<li class="to-come"><span title="{title}, page to come">{short}</span></li>'
    css = ' class="passed"' if session and here and session.number < here.number else ""
    return f'<li{css}><a href="{html.escape(target)}" title="{title}">{short}</a></li>'
