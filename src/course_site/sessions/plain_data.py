"""A session map as plain data: what the run view, the printed sheet and the calendar show, values filled in.

Every Markdown text becomes {"text": …, "html": …}: words alone, and HTML of one line or of paragraphs. A page to
come is `{"label": …, "href": None}`. No citation marks: the map's own page names the sources.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from course_labs.lab import Lab, LabError
from course_site.charts.data import inline_svg
from course_site.pages.code_spans import outside_verbatim
from course_site.pages.doors import option, reasons
from course_site.pages.headings import headings
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import without_marks
from course_site.pages.urls import address_from, shown_file
from course_site.sessions.checks import Course
from course_site.sessions.cuts import in_order
from course_site.sessions.session import Answered, Demo, Reading, Session, Step
from course_site.values.values import MISSING, ExpressionError, NotHere, Scope, evaluate, format_value

_CITATION = re.compile(r"\s*\[\^[\w.:-]+\]")
_LINK = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def as_plain(course: Course, session: Session) -> dict[str, Any]:
    """Everything the views of one session show; links as in handbook/run/, where they lie in the site."""
    return _Plain(course, session).everything()


def words_of(course: Course, session: Session) -> Callable[[str], dict[str, str]]:
    """Return a function from a Markdown string of a session to words and HTML, its values filled in."""
    return _Plain(course, session).words


def value_of(course: Course, session: Session) -> Callable[[str], Any]:
    """Return a function from a name to the recorded number, such as `l1.ridge`; 0 where it is not known here."""
    scope = _Plain(course, session).scope

    def value(name: str) -> Any:
        try:
            return evaluate(name, scope).value
        except NotHere:
            return 0

    return value


@functools.lru_cache(maxsize=8192)  # a served site asks for the same words after every edit
def _html(text: str) -> str:
    import markdown  # slow to import

    return str(markdown.markdown(text, extensions=["fenced_code"]))


class _Plain:
    def __init__(self, course: Course, session: Session) -> None:
        self.course, self.session = course, session
        self.scope = Scope(f"session_{session.id}", {}, None, others=course.scopes.get)
        self.pages = {page.path.as_posix(): page for page in course.pages}
        self.address = address_from(f"handbook/run/{session.id}.html", self.pages)
        self.labs: dict[str, Lab] = {}
        for name in session.labs:
            with contextlib.suppress(LabError):
                self.labs[name] = course.lab(name)

    def everything(self) -> dict[str, Any]:
        session = self.session
        return {
            **_as_they_are(session, "id stop title name kind minutes"),
            **self.texts(_as_they_are(session, "about artifact homework worklog")),
            "read": [self.reading(item) for item in session.read],
            "map": self.page_link(session.map_page, "The map"),
            "student": self.page_link(session.student_page, "What students see"),
            "chapter": self.page_link(session.chapter, "The chapter"),
            "board": self.board(),
            "prepare": [self.words(text) for text in session.prepare],
            "demos": [self.demo(demo.name) for demo in session.demos],
            "blocks": [
                {
                    "number": block.number,
                    "from": block.start,
                    "to": block.end,
                    "title": self.words(block.title),
                    "steps": [step.number for step in block.steps],
                }
                for block in session.blocks
            ],
            "steps": [self.step(step) for step in session.steps()],
            "questions": [self.pair(pair) for pair in session.questions],
            "exit_ticket": [self.pair(pair) for pair in session.exit_ticket],
        }

    def step(self, step: Step) -> dict[str, Any]:
        return {
            **_as_they_are(step, "number block start end minutes kind priority saves protected"),
            **self.texts(step.texts),
            "cuts": [other.number for other in in_order(self.session.steps(), step.number)],
            "fingers_source": step["fingers"],
            "check": self.pair(step.check) if step.check else None,
            "anchor": self.anchor(step.anchor) if step.anchor else None,
            "demo": self.demo(step.demo),
            "stage": self.stage(self.labs.get(step.lab), step.stage),
            "taken": self.taken(step),
        }

    def texts(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Markdown strings by their names; None for one that was left out."""
        return {name: self.words(text) if text else None for name, text in texts.items()}

    def taken(self, step: Step) -> dict[str, float] | None:
        """Return the minutes it really took, where mentors handed them in."""
        taken = self.course.maps.taken.get(self.session.id, {}).get(step.number)
        return {"median": taken.median, "runs": taken.runs} if taken else None

    def demo(self, name: str) -> dict[str, Any] | None:
        demo = self.session.demo(name)
        if demo is None:
            return None
        wait: str | None = None
        with contextlib.suppress(ExpressionError):  # not measured yet
            seconds = float(evaluate(demo.wait, self.scope).value)
            wait = f"{seconds:.0f} s on an {evaluate(demo.card, self.scope).value}"
        return {
            **_as_they_are(demo, "name command preflight"),
            "title": self.words(demo.title),
            "wait": wait,
            "fallback": self.anchor(demo.fallback),
        }

    def stage(self, lab: Lab | None, number: int) -> dict[str, Any] | None:
        if not number or lab is None or number > len(lab.stages):
            return None
        stage = lab.stages[number - 1]
        return {
            "lab": lab.name,
            "number": number,
            "title": self.words(stage.title),
            "type": {door: self.words(text) for door, text in stage.type.items()},
            "says": {door: reasons(lab, door, number) for door in lab.doors},
            "rescues": [
                f"nox -s lab -- {lab.name}{option(lab, door)} --stage {number}" for door in lab.doors
            ],
        }

    def board(self) -> dict[str, Any]:
        svg = ""
        with contextlib.suppress(ValueError):  # said where the map was checked
            svg = shown_file(self.course.root, self.session.figure).read_text(encoding="utf-8")
        alt = self.words(self.session.alt)["text"]
        return {"alt": alt, "svg": inline_svg(svg, alt, f"board-{self.session.id}") if svg else ""}

    def reading(self, item: Reading) -> dict[str, Any]:
        """Return a source by its title; the words alone where the bibliography has it not, which the check has said."""
        source = self.course.sources.get(item.source)
        link = {"label": source.title, "href": source.url} if source else {"label": item.source, "href": None}
        return {"source": link, "why": self.words(item.why)}

    def pair(self, pair: Answered) -> dict[str, Any]:
        return {"ask": self.words(pair.ask), "answer": self.words(pair.answer)}

    # --- texts and links --------------------------------------------------------------------------

    def words(self, text: str) -> dict[str, str]:
        """Return a Markdown string as plain text and as HTML."""
        filled = outside_verbatim(text, lambda part: _CITATION.sub("", PLACEHOLDER.sub(self._value, part)))
        filled = _LINK.sub(self._link, filled)  # the words of a link may be code
        body = _html(filled)
        if body.count("<p>") == 1 and body.startswith("<p>"):
            body = body.removeprefix("<p>").removesuffix("</p>")
        return {"text": without_marks(filled), "html": body}

    def _value(self, match: re.Match[str]) -> str:
        try:
            return format_value(evaluate(match["expression"], self.scope).value, match["format"] or "")
        except ExpressionError:
            return MISSING

    def _link(self, match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target:
            return match.group()
        href = self.address(target)
        return f"[{match['words']}]({href})" if href else f"{match['words']} (page to come)"

    def page_link(self, path: str, label: str) -> dict[str, Any] | None:
        return {"label": label, "href": self.address(path)} if path else None

    def anchor(self, target: str) -> dict[str, Any]:
        """Return a page's heading, by its words."""
        path, _, fragment = target.partition("#")
        page = self.pages.get(path)
        if page is None:
            return {"label": "page to come", "page": "", "href": None}
        label = headings(page).get(fragment, "")
        return {
            "label": label or page.title,
            "page": page.title if label else "",
            "href": self.address(target),
        }


def _as_they_are(thing: Session | Step | Demo, names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names.split()}
