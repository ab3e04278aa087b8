"""`--report`: the page on one kernel, in the five headings of the session's sheet; the forecast is asked for first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_profile.errors import Unusable
from course_profile.format import bytes_of, floor_of, host_of, places_of, time_of, waits_of
from course_profile.measurement import ISSUE, NotCounted
from course_profile.profile import Profile
from course_profile.rules import Diagnosis

HEADINGS = ("What it does", "Forecast", "Measured", "Counted", "Next")
QUESTIONS = {
    "belief": "I believe it waits for",
    "bytes": "Bytes that must move, each once",
    "operations": "Operations",
    "roof": "Under which roof, bytes or arithmetic",
    "floor": "The floor, in µs",
}


@dataclass(frozen=True)
class Forecast:
    """Forecast that the student wrote before anything ran; answers by the keys of `QUESTIONS`."""

    answers: dict[str, str]


def ask(line: Callable[[str], str] = input) -> Forecast:
    """Ask for the forecast, line by line.

    Args:
        line: asks one question and gives the answer.
    Raises:
        Unusable: no belief was written.
    """
    answers: dict[str, str] = {}
    for key, question in QUESTIONS.items():
        try:
            answers[key] = line(f"{question}: ").strip()
        except EOFError:
            answers[key] = ""
        if key == "belief" and not answers[key]:
            raise Unusable(
                "no forecast, no report: write one line, what you believe it waits for, before a count is shown"
            )
    return Forecast(answers)


def report(profile: Profile, diagnosis: Diagnosis, forecast: Forecast, hint: bool = False) -> str:
    """Return the page, as Markdown; with `hint` the counter that must move is filled in too."""
    reading, told = profile.reading, forecast.answers
    sections = {
        "What it does": [
            f"`{profile.subject.name}` on {profile.workload.label}: {profile.formula}",
            "",
            f"*{QUESTIONS['belief']} {told['belief']}.*",
        ],
        "Forecast": [
            *(f"- {QUESTIONS[key]}: {told[key] or '…'}" for key in ("bytes", "operations", "roof", "floor")),
            "",
            f"By the problem: {reading.least_bytes or 0:,} bytes, {reading.flops or 0:,} operations, "
            f"{profile.intensity:.2f} operations per byte. The floor: {floor_of(profile) or 'no data sheet'}.",
        ],
        "Measured": [
            f"- Time: {time_of(profile) or 'not measured'}",
            f"- Checked against float64: {profile.checked}",
            f"- The host: {host_of(profile) or 'not measured'}. Is it drowning? …",
        ],
        "Counted": [
            f"- Bytes: {bytes_of(profile) or 'not counted'}",
            f"- Issue slots used: {_issue(profile)}",
            f"- The longest waits: {waits_of(profile) or 'not counted'}",
            f"- Occupancy: {places_of(profile) or 'not counted'}",
            f"- The bottleneck: {_bottleneck(diagnosis)}",
        ],
        "Next": [
            "- One change: …",
            f"- One counter that must move: {_must_move(diagnosis) if hint else '…'}",
            "- If it does not: …",
            "- Signed by a neighbour, once the counter is named: …",
        ],
    }
    missing = [f"*Missing: {line}.*" for line in profile.missing]
    parts = [f"# {profile.subject.name}"]
    parts += [f"## {title}\n\n" + "\n".join(sections[title]) for title in HEADINGS]
    return "\n\n".join([*parts, *missing]) + "\n"


def _issue(profile: Profile) -> str:
    try:
        return f"{profile.reading[ISSUE]:.0f} %"
    except NotCounted:
        return "not counted"


def _must_move(diagnosis: Diagnosis) -> str:
    return diagnosis.findings[0].counter if diagnosis.findings else "…"


def _bottleneck(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return diagnosis.said
    finding = diagnosis.findings[0]
    return f"{finding.rule.name}: {finding.evidence.line}"
