"""A session map on its page: timeline, what to prepare, minute by minute, the board, the typing script, questions.

The texts are in handbook/sessions/*.toml, see `session`; the stages of a lab in its lab.toml.
"""

from __future__ import annotations

import html
import math
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from course_labs.lab import Lab
from course_site.pages.diffs import difference
from course_site.pages.doors import DOORS, option, reasons
from course_site.pages.fences import fenced
from course_site.sessions import fields
from course_site.sessions.fields import Field
from course_site.sessions.handouts import PRINTED
from course_site.sessions.print_sheet import sheet_name
from course_site.sessions.run_view import FOLDER
from course_site.sessions.session import Answered, Block, Demo, Session, Step

# Four lanes of the timeline: where a step of this kind is drawn, and in what tone. All others are talk.
LANES = {
    "by hand": "hands",
    "live build": "hands",
    "demo": "machine",
    "benchmark": "machine",
    "reading": "reading",
    "break": "rest",
}
_LANE_NAMES = {
    "talk": "at the board",
    "hands": "in their hands",
    "machine": "on the GPU",
    "reading": "reading",
}
_LINK = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>[^)\s#]+\.(?:py|md))(?P<fragment>#[^)\s]*)?\)")
TO_COME = "*page to come*"

Words = Callable[[str], str]


@dataclass(frozen=True)
class Tools:
    """The functions that the renderer of pages lends to a map.

    Attributes:
        say: Markdown to Markdown of the page: linted, links moved, values filled in.
        plain: the same for a text without marks.
        slot: HTML to a token that stands for it.
        fold: (css class, summary, body) -> a folded block.
        figure: (path of an SVG, alternative text) -> a picture.
        heading: page#anchor -> the words of that heading; None while the page is to come.
        measured: the demos whose wait is known.
        taken: (step number) -> what it took when it was taught, in words, or "".
        labs: the session's labs by their names, its own first.
        lab_section: a lab -> page#anchor of the section with it, or "".
        source: a key of the bibliography -> its title as a link, with its mark.
        printed: `nox -s handouts` has made a PDF of everything to print, and the site has it.
    """

    say: Words
    plain: Words
    slot: Words
    fold: Callable[[str, str, str], str]
    figure: Callable[[str, str], str]
    heading: Callable[[str], str | None]
    measured: frozenset[str]
    taken: Callable[[int], str]
    labs: Mapping[str, Lab]
    lab_section: Callable[[Lab], str]
    source: Callable[[str], str]
    printed: bool = False


def markdown(session: Session, folder: str, tools: Tools) -> str:
    """Return the inside of a map's block.

    Args:
        folder: the folder of the page in the repository, to which its links are relative.
    """
    return "\n\n".join(filter(None, _Map(session, folder, tools).parts()))


def relinked(text: str, folder: str, heading: Callable[[str], str | None]) -> str:
    """Markdown whose links are relative to the repository, for a page in a folder of it.

    Args:
        heading: page#anchor -> the words of that heading; None while the page is to come.
    """

    def move(match: re.Match[str]) -> str:
        fragment = match["fragment"] or ""
        if heading(match["target"] + fragment) is None:
            return f"{match['words']} ({TO_COME})"
        return f"[{match['words']}]({posixpath.relpath(match['target'], folder)}{fragment})"

    return _LINK.sub(move, text)


class _Map:
    def __init__(self, session: Session, folder: str, tools: Tools) -> None:
        self.session, self.folder, self.tools = session, folder, tools
        student = tools.heading(session.student_page) if session.student_page else ""
        self.to_come = [] if student is not None else [s for s in session.steps() if s.kind != "break"]

    def parts(self) -> Iterator[str]:
        session, tools = self.session, self.tools
        yield tools.slot(self._views())
        yield _div(
            "facts",
            f"**What it is about.** {self.say(session.about)}\n\n"
            f"**What everybody leaves with.** {self.say(session.artifact)}",
        )
        yield "## The minutes"
        yield tools.slot(timeline(session, tools.plain))
        yield "## What to prepare"
        yield "\n".join(f"- {self.say(text)}".replace("\n", "\n    ") for text in session.prepare)
        yield from (self._demo(demo) for demo in session.demos)
        yield "## Minute by minute"
        yield self._awaited()
        yield self._table()
        yield "## The finished board"
        yield tools.figure(session.figure, session.alt)
        for i, (name, lab) in enumerate(tools.labs.items()):
            yield "" if i else "## The typing script"
            yield self._typing(lab, name == session.lab)
        yield from self._asked("## What the room will ask", session.questions)
        if session.exit_ticket:
            before = "Every student answers in writing before leaving. Read the answers the same evening."
            yield from self._asked("## The exit ticket", session.exit_ticket, before)
        if session.at_home:
            yield "## Before the next session"
            yield self.say(session.at_home)
        if session.read:
            yield "## What to read"
            yield "\n".join(f"- {tools.source(item.source)} {self.say(item.why)}" for item in session.read)

    def _awaited(self) -> str:
        """Return the steps whose heading comes with the page; until then some point to another page."""
        if not self.to_come:
            return ""
        rows = [
            f"- {step.number}. {self.say(step.title)}: this heading comes with its page."
            + (f" Until then: {self.link(step.anchor)}." if self.tools.heading(step.anchor) else "")
            for step in self.to_come
        ]
        path = self.session.student_page
        words = f"To come: the headings of {len(rows)} steps, with <code>{path}</code>"
        return self.tools.fold("fold", words, "\n".join(rows))

    # --- texts ------------------------------------------------------------------------------------

    def say(self, text: str) -> str:
        """Markdown of the map as Markdown of the page."""
        return self.tools.say(relinked(text, self.folder, self.tools.heading)).strip()

    def link(self, target: str) -> str:
        """Return a link to a heading, by its words."""
        words = self.tools.heading(target)
        if words is None:
            return TO_COME
        return self.say(f"[{words.replace('[', '(').replace(']', ')')}]({target})")

    def _asked(self, title: str, pairs: tuple[Answered, ...], before: str = "") -> Iterator[str]:
        """Questions under a heading, each with its answer folded."""
        yield title
        yield before
        folded = (
            self.tools.fold(
                "answer", html.escape(self.tools.plain(pair.ask), quote=False), self.say(pair.answer)
            )
            for pair in pairs
        )
        yield _div("asked", "\n\n".join(folded))

    def _views(self) -> str:
        """Links to the run view and the sheet: pages that are not made of Markdown."""
        page = posixpath.dirname(self.session.map_page)
        run = posixpath.relpath(f"{FOLDER}/{self.session.id}.html", page)
        sheet = posixpath.relpath(f"{FOLDER}/{sheet_name(self.session.id)}", page)
        return (
            '<p class="views-of-map">'
            f'<a class="run" href="{run}">Run it<span>the clock, what is next, how late you are</span></a>'
            f'<a href="{sheet}">Print it<span>one sheet, with the board</span></a>{self._everything(page)}</p>'
        )

    def _everything(self, page: str) -> str:
        """Return the PDF of everything to print, or how to make it."""
        name = self.session.id
        if self.tools.printed:
            pdf = posixpath.relpath(f"{PRINTED}/{name}.pdf", page)
            return (
                f'<a href="{pdf}">Print everything (PDF)<span>sheets, boards, and all of it solved</span></a>'
            )
        return (
            f' <span class="how">Sheets to fill in, and solved: <code>nox -s handouts -- {name}</code></span>'
        )

    # --- the table --------------------------------------------------------------------------------

    def _table(self) -> str:
        """Blocks and steps under headings of their own, so that the search finds a step by its words."""
        return _div("steps", "\n\n".join(map(self._block, self.session.blocks)))

    def _block(self, block: Block) -> str:
        title = f"### {block.start} to {block.end}: {self.tools.plain(block.title)}"
        return "\n\n".join([title, *map(self._step, block.steps)])

    def _step(self, step: Step) -> str:
        minutes = f"{step.minutes} minute{'s' * (step.minutes != 1)}{self.tools.taken(step.number)}"
        when = (
            f'<p class="when"><b>{step.start}–{step.end}</b> <span>{minutes}</span> '
            f'<span class="kind {LANES.get(step.kind, "talk")}">{step.kind}</span></p>'
        )
        title = f"#### {step.number}. {self.say(step.title)} {{ #step-{step.number} }}"
        halves = [
            _div(side, "\n\n".join(shown))
            for side in fields.SIDES
            if (shown := list(filter(None, (self._field(field, step) for field in fields.on_page(side)))))
        ]
        rest = " rest" if step.kind == "break" else ""
        return _div(f"step{rest}", "\n\n".join([title, when, *halves]))

    def _field(self, field: Field, step: Step) -> str:
        """Return one field of a step under its label; "" where it is empty."""
        spelled = {"demo": self._runs, "stage": self._stage, "anchor": self._page, "check": self._check}
        if field.is_text:
            text = self.say(step[field.key]) or field.heart[0] * step.protected
        else:
            text = spelled[field.key](step)
        label = fields.labelled(field.page, step.priority, step.saves)
        return _div(f"field {field.css[0] or field.key}", f"**{label}** {text}") if text else ""

    def _check(self, step: Step) -> str:
        if step.check is None:
            return ""
        return f"{self.say(step.check.ask)}\n\n{self.tools.fold('answer', 'Answer', self.say(step.check.answer))}"

    def _page(self, step: Step) -> str:
        if step.anchor:
            return self.link(step.anchor)
        if step.kind == "break" or not self.session.student_page:
            return ""
        return TO_COME

    def _stage(self, step: Step) -> str:
        lab = self.tools.labs.get(step.lab)
        if not step.stage or not lab or step.stage > len(lab.stages):
            return ""
        title = self.say(lab.stages[step.stage - 1].title)
        anchor = self._anchor(lab, step.stage)
        return f"{step.stage}, {title[:1].lower()}{title[1:]}: [the typing script](#{anchor})"

    def _anchor(self, lab: Lab, stage: int) -> str:
        return f"stage-{stage}" if lab.name == self.session.lab else f"{lab.name}-stage-{stage}"

    # --- demos ------------------------------------------------------------------------------------

    def _runs(self, step: Step) -> str:
        demo = self.session.demo(step.demo)
        if demo is None:
            return ""
        return f"[{self.say(demo.title)}](#demo-{demo.name}), {self._wait(demo)}"

    def _wait(self, demo: Demo) -> str:
        if demo.name not in self.tools.measured:
            return "wait *not yet measured*"
        return self.tools.say(f"a wait of {{{{ {demo.wait}:.0f }}}} s on an {{{{ {demo.card} }}}}")

    def _demo(self, demo: Demo) -> str:
        title = f"### Live demo: {self.tools.plain(demo.title)} {{ #demo-{demo.name} }}"
        at = [str(step.start) for step in self.session.steps() if step.demo == demo.name]
        wait = (
            self.tools.say(
                f"From Enter to prompt: {{{{ {demo.wait}:.0f }}}} s on an {{{{ {demo.card} }}}}, in a fresh process "
                "with nothing compiled yet."
            )
            if demo.name in self.tools.measured
            else "From Enter to prompt: *not yet measured*."
        )
        return _div(
            "demo-card",
            f"{title}\n\nThe day before, so that you know it will work:\n\n{_command(demo.preflight)}\n\n"
            f"In the room, at minute {' and '.join(at)}:\n\n{_command(demo.command)}\n\n"
            f"{wait} If the GPU fails, show {self.link(demo.fallback)}.",
        )

    # --- the typing script ------------------------------------------------------------------------

    def _typing(self, lab: Lab, own: bool) -> str:
        steps = [step for step in self.session.steps() if step.stage and step.lab == lab.name]
        minute = {step.stage: step for step in reversed(steps)}
        # A step that types two stages names the later one: the one before it is typed there too.
        for n in range(len(lab.stages), 1, -1):
            if n in minute:
                minute.setdefault(n - 1, minute[n])
        section = self.tools.lab_section(lab)
        where = f" It is on the students' page: {self.link(section)}." if section else ""
        room = sum(step.minutes for step in steps)
        why = f" {self.say(self.session.lab_time)}" if own and self.session.lab_time else ""
        parts = [
            f"{'The' if own else 'Another'} lab is **{self.tools.plain(lab.title)}**, "
            f"in {len(lab.stages)} stages.{where} "
            f"Its steps have {room} minutes in the room; alone it takes about {lab.minutes}.{why} "
            "After each stage everybody grades, and the grader says:"
        ]
        for door in lab.doors:
            rows = [
                f"| {self._minute(minute.get(n))} | {n}. {self.say(stage.title)} | {self._printed(lab, door, n)} |"
                for n, stage in enumerate(lab.stages, start=1)
            ]
            table = "\n".join(["| Minute | Stage | The grader says |", "| --- | --- | --- |", *rows])
            heading = f"**Through {DOORS[door]}**\n\n" if len(lab.doors) > 1 else ""
            parts.append(heading + table)
        for n, stage in enumerate(lab.stages, start=1):
            typed = "\n\n".join(self._typed(lab, door, n) for door in lab.doors)
            at = f", minute {minute[n].start}" if n in minute else ""
            summary = f"Stage {n}{at}: {html.escape(self.tools.plain(stage.title))}"
            body = self.tools.fold("fold", summary, typed)
            anchor = self._anchor(lab, n)
            parts.append(f'<div class="stage" id="{anchor}" markdown="1">\n\n{body}\n\n</div>')
        return "\n\n".join(parts)

    def _typed(self, lab: Lab, door: str, stage: int) -> str:
        """Return the typing of one stage through one door, and how to catch up."""
        typed = self.tools.say(lab.stages[stage - 1].type[door])
        # A block of code opens on a line of its own, or it is no block of code.
        gap = "\n\n" if typed.lstrip().startswith("```") else " "
        through = f"**Through {DOORS[door]}.**{gap}" if len(lab.doors) > 1 else ""
        changed = difference(lab.snapshot(door, stage - 1), lab.snapshot(door, stage))
        return (
            f"{through}{typed}\n\n{changed}\n\n"
            f"Students who fell behind get this file with `nox -s lab -- {lab.name}{option(lab, door)} "
            f"--stage {stage}`."
        )

    @staticmethod
    def _minute(step: Step | None) -> str:
        return f"[{step.start}](#step-{step.number})" if step else "at home"

    @staticmethod
    def _printed(lab: Lab, door: str, stage: int) -> str:
        """Return the grader's reason; its advice for the next try is on the students' page."""
        lines = reasons(lab, door, stage)
        return "<br>".join("`" + line.replace("|", "\\|").replace("`", "'") + "`" for line in lines)


_LETTERS = 11.2  # 12 px on a phone


def timeline(session: Session, plain: Words) -> str:
    """Return the session as four lanes over its minutes, in SVG; its alternative text says every step."""
    left, right, lane, top = 70.0, 342.0, 18.0, 6.0
    minutes = max(session.minutes, 1)
    used = {LANES.get(step.kind, "talk") for step in session.steps()}
    lanes = [name for name in _LANE_NAMES if name in used]
    floor = top + lane * len(lanes)

    def x(minute: float) -> float:
        return round(left + (right - left) * minute / minutes, 1)

    def text(at: float, y: float, words: object, more: str, anchor: str = "middle") -> str:
        return f'<text x="{at}" y="{y}" font-size="{_LETTERS:g}" text-anchor="{anchor}" {more}>{words}</text>'

    soft = 'fill="var(--s)"'
    parts = [
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{floor - top}" fill="none" stroke="var(--r)"/>'
    ]
    for i, name in enumerate(lanes):
        y = top + lane * i
        if i:
            parts.append(f'<path d="M{left} {y} H{right}" stroke="var(--r)" fill="none"/>')
        parts.append(text(left - 5, y + 13, _LANE_NAMES[name], soft, "end"))
    for step in session.steps():
        begin, width = x(step.start), x(step.end) - x(step.start)
        name = LANES.get(step.kind, "talk")
        middle = round(begin + width / 2, 1)
        if name == "rest":
            turned = f'{soft} transform="rotate(-90 {middle} {top + 2 * lane})"'
            parts.append(
                f'<rect x="{begin}" y="{top}" width="{width:.1f}" height="{floor - top}" class="rest"/>'
                + (text(middle, top + 2 * lane + 3, "break", turned) if width > 9 else "")
            )
            continue
        y = top + lane * lanes.index(name)
        parts.append(
            f'<rect x="{begin + 0.5:.1f}" y="{y + 1.5}" width="{width - 1:.1f}" height="{lane - 3}" rx="2" '
            f'class="{name}"/>' + text(middle, y + 13, step.number, 'font-weight="600" class="number"')
        )
    after = math.inf
    for minute in sorted(
        {block.start for block in session.blocks} | {block.end for block in session.blocks}, reverse=True
    ):
        parts.append(
            f'<path d="M{x(minute)} {top} V{floor + 4}" stroke="var(--s)" stroke-width="1" fill="none"/>'
        )
        # Where two minutes stand so close that their numbers would touch, the earlier one has its line alone.
        if after - x(minute) >= 2 * _LETTERS:
            parts.append(text(x(minute), floor + 16, minute, soft))
            after = x(minute)
    spoken = " ".join(
        f"{block.start} to {block.end}, {plain(block.title)}: "
        + ", ".join(f"step {step.number} {step.kind} {step.minutes}" for step in block.steps)
        + "."
        for block in session.blocks
    )
    label = html.escape(f"Timeline of {session.minutes} minutes. {spoken}")
    return (
        f'<figure class="timeline" data-search-exclude>'
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 352 {floor + 21}" '
        f'role="img" aria-label="{label}" style="--r:var(--rule,#e3dcd1);--s:var(--ink-soft,#5f5a52)">'
        f"{''.join(parts)}</svg></figure>"
    )


def _command(text: str) -> str:
    """Return a command, broken before its options where it is long; the next one behind && has a line of its own."""
    text = " ".join(text.split())
    if len(text) > 60:
        text = re.sub(r" (?=--\w)", " \\\n    ", text).replace(" && ", " &&\n")
    return fenced(text, ".bash")


def _div(css: str, body: str) -> str:
    return f'<div class="{css}" markdown="1">\n\n{body.strip()}\n\n</div>'
