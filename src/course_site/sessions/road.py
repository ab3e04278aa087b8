"""You are here: the stops of the course in one line, drawn on top of every session's pages."""

from __future__ import annotations

import html
from collections.abc import Mapping

from course_site.pages.addresses import Address
from course_site.sessions.session import Session
from course_site.sessions.stops import Road

# The three pages of a session: each road leads from one kind to the same kind.
VIEWS = ("student_page", "map_page", "chapter")
_OTHERS = {
    "student_page": (("map_page", "For mentors: the map"),),
    "map_page": (("student_page", "What students see"), ("chapter", "The chapter")),
    "chapter": (("map_page", "The map"), ("student_page", "What students see")),
}


def place_of(path: str, sessions: Mapping[str, Session]) -> tuple[Session, str] | None:
    """The session a page belongs to and which of its pages it is; None for a page off the road.

    Of a session before the road only the map has one.
    """
    for session in sessions.values():
        for view in VIEWS:
            if path == getattr(session, view) and (session.stop or view == "map_page"):
                return session, view
    return None


def road_html(here: Session, view: str, road: Road, sessions: Mapping[str, Session], address: Address) -> str:
    """The road as a list of links, with the two halves of the course.

    Args:
        view: which page of the session this is, one of VIEWS.
        address: a page of the repository, seen from here; None while it is to come.
    """
    stops = len(road.stops)
    at = (
        f"{here.stop} is stop {here.number} of {stops}" if here.stop else f"before the first of {stops} stops"
    )
    halves = []
    for words, names in road.halves:
        items = "".join(_stop(name, here, view, sessions, address) for name in names)
        start = road.number(names[0])
        now = ' class="now"' if here.id in names else ""
        halves.append(f'<div class="half"><p{now}>{words}</p><ol start="{start}">{items}</ol></div>')
    links = [
        f'<a href="{html.escape(target)}">{words}</a>'
        for other, words in _OTHERS[view]
        if (target := address(getattr(here, other)))
    ]
    views = f'<p class="views">{" ".join(links)}</p>' if links else ""
    return (
        f'<nav class="road" aria-label="You are here: {at}">'
        f'<div class="halves">{"".join(halves)}</div>{views}</nav>'
    )


def _stop(name: str, here: Session, view: str, sessions: Mapping[str, Session], address: Address) -> str:
    session, short = sessions.get(name), name.upper()
    title = html.escape(f"{short} · {session.title}" if session else short)
    if name == here.id:
        return f'<li class="here"><span aria-current="page" title="{title}, you are here"><b>{short}</b></span></li>'
    target = address(getattr(session, view)) if session else None
    if target is None:
        return f'<li class="to-come"><span title="{title}, page to come">{short}</span></li>'
    css = ' class="passed"' if session and session.number < here.number else ""
    return f'<li{css}><a href="{html.escape(target)}" title="{title}">{short}</a></li>'
