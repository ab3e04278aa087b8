"""Board of one card, made from entries: one HTML file that asks for no other file and no server.

Entries of a task stand in three columns, human, machine and both, and are ordered by time. Two times that lie within
the larger of their two spreads are a tie. Without a card there is no order: what is right is right.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Sequence
from pathlib import Path

from course_capstone.entry import BY, Outcome
from course_kernels.measure.roofline import floor_us

STYLE = Path(__file__).with_name("board.css")


def places(outcomes: Sequence[Outcome]) -> list[tuple[str, Outcome]]:
    """Return the entries of a task in their order, each with its place; a tie shares the place of its best.

    A tie is judged against the best of the place, so that a row of small steps is no tie from end to end.
    """
    timed = sorted((one for one in outcomes if one.time_us is not None), key=_time)
    groups: list[list[Outcome]] = []
    for one in timed:
        if groups and _is_tie(groups[-1][0], one):
            groups[-1].append(one)
        else:
            groups.append([one])
    found, place = [], 1
    for group in groups:
        words = f"{place}" if len(group) == 1 else f"{place}, a tie of {len(group)}"
        found += [(words, one) for one in group]
        place += len(group)
    return found + [("", one) for one in outcomes if one.time_us is None]


def _time(outcome: Outcome) -> float:
    return outcome.time_us or 0.0


def _is_tie(best: Outcome, other: Outcome) -> bool:
    return _time(other) - _time(best) <= max(_time(best) * best.spread, _time(other) * other.spread)


def board(card: str, outcomes: Sequence[Outcome]) -> bytes:
    """Return the board of one card; empty for entries that ran without one."""
    title = f"You versus the machine: {card or 'without a card'}"
    lead = (
        "Ordered by time. Two times within the larger of their spreads are a tie. A loss that is explained scores as "
        "high as a win."
        if card
        else "No card was here, so nothing is timed and there is no order: each entry is right, and the bytes that its "
        "task must move are counted. A loss that is explained scores as high as a win."
    )
    tasks = {outcome.entry.task.name: outcome.entry.task for outcome in outcomes}
    sections = "".join(_section([one for one in outcomes if one.entry.task.name == name]) for name in tasks)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        f'<header><h1>{html.escape(title)}</h1><p class="soft">{lead}</p></header>\n'
        f"<main>{sections}</main>\n</body>\n</html>\n"
    ).encode()


def _section(outcomes: Sequence[Outcome]) -> str:
    task, machine = outcomes[0].entry.task, outcomes[0].machine
    facts = [
        f"{task.level}",
        task.workload.label,
        f"at least {task.least_bytes:,} bytes",
        f"{task.flops:,} operations",
    ]
    if machine:
        facts.append(f"floor {floor_us(task, machine):,.1f} µs by {task.peak(machine)}")
    placed = places(outcomes)
    columns = ""
    for by in BY:
        mine = [_article(place, one) for place, one in placed if one.entry.by == by]
        body = "".join(mine) or '<p class="none">no entry</p>'
        columns += f'<section aria-label="{by}"><h3>{by}</h3>{body}</section>'
    about = html.escape(" · ".join(facts))
    return (
        f'<section><h2>{html.escape(task.name)}</h2><p class="task">{about}</p>'
        f'<div class="columns">{columns}</div></section>'
    )


def _article(place: str, outcome: Outcome) -> str:
    entry = outcome.entry
    said = outcome.told["profile"]
    sources = outcome.told["files"]
    rows = {
        "code": f"{entry.lines} lines in {', '.join(sources)}",
        "launches": outcome.launches,
        "profiler": said["findings"][0]["counted"] if said["findings"] else said["said"],
        "judge": f"{outcome.told['verdict']['why']}; {outcome.told['verdict']['evidence']['on']}",
        "run": f"{outcome.told['provenance']['date'][:10]}, commit {str(outcome.told['provenance']['commit'])[:12]}",
    }
    if entry.record:
        rows["the course's own"] = own_words(outcome)
    told = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(text))}</dd>" for name, text in rows.items()
    )
    tried = "".join(f"<li>{html.escape(line)}</li>" for line in entry.tried)
    mark = f'<span class="place">{html.escape(place)}</span>' if place else ""
    report = entry.folder / f"{Path(entry.file).stem}_report.md"
    page = html.escape(report.read_text(encoding="utf-8", errors="replace")) if report.is_file() else ""
    profiled = (
        f'<details><summary>the profiler\'s report</summary><pre tabindex="0">{page}</pre></details>'
        if page
        else ""
    )
    worklog = html.escape((entry.folder / "worklog.md").read_text(encoding="utf-8", errors="replace"))
    code = html.escape((entry.folder / entry.file).read_text(encoding="utf-8", errors="replace"))
    return (
        f"<article><header><h4>{html.escape(entry.who)}</h4>{mark}</header>"
        f'<p class="score">{html.escape(score_words(outcome))}</p>'
        f'<p class="lost"><b>What lost:</b> {html.escape(entry.lost)}</p><dl>{told}</dl>'
        f"<details><summary>what was tried</summary><ul>{tried}</ul></details>{profiled}"
        f'<details><summary>the worklog</summary><pre class="again" tabindex="0">{worklog}</pre></details>'
        f'<details><summary>the code</summary><pre tabindex="0">{code}</pre></details>'
        f'<details open><summary>run it again</summary><pre class="again">{html.escape(command(outcome))}</pre>'
        f"</details></article>"
    )


def score_words(outcome: Outcome) -> str:
    """Return the time and the share of peak; without a card that it is right."""
    if outcome.time_us is None:
        return "right; not timed"
    share = "" if outcome.of_peak is None else f", {outcome.of_peak:.1%} of peak"
    return f"{outcome.time_us:,.1f} µs, spread {outcome.spread:.1%}{share}"


def own_words(outcome: Outcome) -> str:
    """Return the course's own kernel and the record behind it."""
    record = outcome.entry.record
    if record is None:
        return ""
    share = "no data sheet of its card" if record.of_peak is None else f"{record.of_peak:.1%} of peak"
    return f"{record.kernel}: {share} on {record.card}, {record.date}, {record.path}"


def command(outcome: Outcome) -> str:
    """Return the command that runs an entry again."""
    return f"nox -s submit -- --run {shlex.quote(str(outcome.entry.folder))}"
