"""Answers of a session that are worked out again: its map's, its sheets', and those of its pages' exercises.

The numbers come from the module beside the sheets, `handouts.worked_out`: ANSWERS by an exercise's title, BOARDS (with
what the fingers do) and CHECK_ANSWERS by a step's, EXIT_ANSWERS in order, BOARD_ALT, BLANKS by a sheet's title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from course_site.lint.answer_words import faults_of
from course_site.pages.placeholders import PLACEHOLDER
from course_site.sessions.handouts import FOLDER, WORKED_OUT, Handouts, Sheet, typed_blanks, worked_out
from course_site.sessions.session import Session


def are_kept(root: Path) -> bool:
    """Return whether a project works its answers out at all."""
    return (root / FOLDER / WORKED_OUT).is_dir()


def module_of(path: str, page_id: str, sessions: Mapping[str, Session]) -> str:
    """Return the name of the module that works the exercises of a page out: its session's, or its own."""
    found = (session.id for session in sessions.values() if path in (session.student_page, session.chapter))
    return next(found, page_id)


def of_exercise(root: Path, module: str, title: str, question: str, answer: str) -> Iterator[str]:
    """Yield what is wrong with the answer of an exercise, in one line."""
    worked = worked_out(root, module).get("ANSWERS", {}).get(title)
    for fault in faults_of(f"{title}\n{question}", answer, worked):
        yield f"exercise {title!r}: its answer {_told(fault)}: {_where(module, 'ANSWERS', title)}"


def of_map(root: Path, session: Session) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the answers of a session's map: the key, and a line."""
    names = worked_out(root, session.id)
    kept = [names.get(name, {}) for name in ("BOARDS", "CHECK_ANSWERS")]
    exits = dict(enumerate(names.get("EXIT_ANSWERS", ()), 1))
    for i, pair in enumerate(session.exit_ticket, 1):
        for fault in faults_of(pair.ask, pair.answer, exits.get(i)):
            yield f"exit_ticket {i}, answer", f"{_told(fault)}: {_where(session.id, 'EXIT_ANSWERS')}"
    for step in session.steps():
        asks, answers = (step.check.ask, step.check.answer) if step.check else ("", "")
        given = "\n".join([step.title, step["say"], step["room"], asks])
        shown = f"{step['board']}\n{step['fingers']}"
        for fault in faults_of(given, shown, kept[0].get(step.title), words=False):
            yield (
                f"{step.where}, board and fingers",
                f"{_told(fault)}: {_where(session.id, 'BOARDS', step.title)}",
            )
        for fault in faults_of(given, answers, kept[1].get(step.title)):
            yield f"{step.where}, check", f"{_told(fault)}: {_where(session.id, 'CHECK_ANSWERS', step.title)}"


def of_board(root: Path, session: Session) -> Iterator[tuple[str, str]]:
    """Yield what the drawing of the finished board is said to show, and no step of the map puts there."""
    given = "\n".join(f"{step['say']}\n{step['board']}\n{step['fingers']}" for step in session.steps())
    worked = worked_out(root, session.id).get("BOARD_ALT")
    for fault in faults_of(given, session.alt, worked, words=False):
        yield "board, alt", f"{_told(fault)}, nor in a step's board: {_where(session.id, 'BOARD_ALT')}"


def of_sheet(handouts: Handouts, sheet: Sheet, session_id: str) -> Iterator[str]:
    """Yield what is wrong with the answers that are typed into the blanks of a sheet, in one line."""
    blanks = [PLACEHOLDER.sub(" … ", text) for text in typed_blanks(sheet, handouts)]
    typed = " | ".join(text for text in blanks if re.search(r"\d", text))
    worked = handouts.names.get("BLANKS", {}).get(sheet.title)
    for fault in faults_of("", typed, worked, words=False):
        yield f"sheet {sheet.title!r}: a blank {_told(fault)}: {_where(session_id, 'BLANKS', sheet.title)}"


def _told(fault: str) -> str:
    return fault if not fault.startswith("nothing") else f"is worked out nowhere ({fault})"


def _where(module: str, name: str, title: str = "") -> str:
    key = f"[{title!r}]" if title else ""
    return f"mend it, or {name}{key} in {FOLDER}/{WORKED_OUT}/{module}.py"
