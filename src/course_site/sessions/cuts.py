"""Cuts of a session that is late: of the steps still to come, in the order in which they are proposed.

A cut goes by its priority. None is proposed in the heart of a session, nor in a step that a kept one needs; once
all steps that need it have fallen out as a whole, it may go too. So whatever the lateness, the cuts to make are
the first of one row. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from course_site.sessions.session import Session, Step, visible

# What says that nothing may be dropped is no cut; it belongs into `keep`.
_FORBIDS = re.compile(
    r"^(?:nothing|none|no cut)\b|\bnever\b|\bmust (?:stay|not|be)\b|\b(?:do not|don't) (?:cut|drop|skip)\b"
    r"|\bcut [^.]* instead\b",
    re.IGNORECASE,
)


def in_order(steps: Sequence[Step], now: int) -> list[Step]:
    """Return the steps still to come whose cut may be proposed at step `now`, which counts from 1.

    The first step comes first.
    """
    order: list[Step] = []
    left = sorted(
        (step for step in steps if step.number > now and step["cut"]), key=lambda step: step.priority
    )
    while free := next((step for step in left if not standing(step, steps, now, order)), None):
        order.append(free)
        left.remove(free)
    return order


def standing(step: Step, steps: Sequence[Step], now: int, cut: Sequence[Step]) -> list[Step]:
    """Return the steps that need this one, and are neither over nor cut as a whole."""
    gone = {other.number for other in cut if other.saves == other.minutes}
    return [s for s in steps if step.title in s.needs and s.number >= now and s.number not in gone]


def faults(session: Session) -> Iterator[tuple[str, str]]:
    """Faults of the cuts of a session, each with its place in the file.

    Every step can be cut, or says what stays; the heart is never cut, nor what a kept step needs.
    """
    steps = session.steps()
    places: dict[int, str] = {}
    titles: set[str] = set()
    for step in steps:
        yield from _faults_of_a_step(step)
        other = places.setdefault(step.priority, step.where) if step.priority else step.where
        if other != step.where:
            yield f"{step.where}, priority", f"{step.priority} is that of {other}: each cut goes in its turn"
        for title in step.needs:
            if title not in titles:
                yield f"{step.where}, needs", f"{title!r} is the title of no step before this one"
        titles.add(step.title)
    order = in_order(steps, 0)
    for step in steps:
        if step["cut"] and not step.protected and step not in order:
            by = standing(step, steps, 0, order)[0].where
            yield f"{step.where}, cut", f"is never proposed, since {by} depends on it: write `keep` instead"
    if steps and not any(step.protected for step in steps):
        yield "block", "none is protected: write `protected = true` in the heart of the session"


def _faults_of_a_step(step: Step) -> Iterator[tuple[str, str]]:
    if step["cut"] and _FORBIDS.search(visible(step["cut"])):
        yield f"{step.where}, cut", "says what is not cut: write that into `keep`"
    if step.protected and step["cut"]:
        yield f"{step.where}, cut", "is in the heart of the session, which is protected: take it out"
    elif not (step["cut"] or step["keep"] or step.protected or step.kind == "break"):
        yield f"{step.where}, cut", "is missing: write what to drop when late; or `keep`, if all of it stays"
    for key, value, most in (("priority", step.priority, 99), ("saves", step.saves, max(1, step.minutes))):
        if step["cut"] and not 1 <= value <= most:
            means = "which cut goes first" if key == "priority" else "the minutes that it wins"
            yield f"{step.where}, {key}", f"is {value}: write {means}, 1 to {most}"
        elif value and not step["cut"]:
            yield f"{step.where}, {key}", "belongs to a `cut`, and there is none"
