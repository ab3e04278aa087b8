"""Everything that is printed for one session, as one HTML document: a page of it is a page of paper.

In this order: what to print, the session sheet, what students get, the board, score sheets and certificate, and then
the solved twin of every page that has something to solve. A twin is made from the same data as its page, with the
blanks filled in. Printed on both sides, every sheet begins on a front: a side is left blank where it would not.
"""

from __future__ import annotations

import ast
import html
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course_site.pages.page import read_page
from course_site.printing import paper
from course_site.sessions.handouts import (
    HandoutError,
    Handouts,
    Part,
    Piece,
    Sheet,
    Value,
    copies_of,
    counted,
    pieces,
    recorded_on,
    table_rows,
)
from course_site.sessions.on_page import OnPage
from course_site.sessions.print_sheet import FRAME, sheet
from course_site.sessions.run_view import FOLDER
from course_site.values.values import MISSING

PAGE_LINES = 66  # of a listing
# The session sheet fills A4, so it is made smaller; the rest fits both.
_LETTER = "@page { size: letter; } @page handout { size: letter; } .side { zoom: .93; }"
Plain = Mapping[str, Any]
Words = Callable[[str], Mapping[str, str]]


AT_THE_START = 0
_MARKED = re.compile(r"(<pre\b.*?</pre>|<code\b.*?</code>|<[^>]+>)", re.DOTALL)
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PERCENT = re.compile(r"(?<=\d) ?%")
_ANCHOR = re.compile(r'<a\b[^>]*href="(?P<href>[^"]*)"[^>]*>(?P<words>.*?)</a>', re.DOTALL)


@dataclass(frozen=True)
class Printed:
    """One page of paper, or two for the session sheet: what it is called, whom it is for, its HTML.

    Attributes:
        back: it is the back of the page before it.
        cut: there is something to cut.
        minute: when it is given out; None for what stays with the mentor.
        blank: a side that is left blank, so that the next sheet begins on a front.
    """

    title: str
    whom: str
    html: str
    pages: int = 1
    solved: bool = False
    back: bool = False
    cut: bool = False
    minute: int | None = None
    blank: bool = False

    @property
    def copies(self) -> str:
        """The number of copies, such as "n ÷ 2"."""
        return copies_of(self.whom)


@dataclass(frozen=True)
class ToPrint:
    """A line of what to print: the pages of one sheet of paper, and what is to know of it."""

    first: int
    last: int
    page: Printed
    back: Printed | None = None

    @property
    def span(self) -> str:
        """Its pages in the file."""
        return _span(self.first, self.last)

    @property
    def title(self) -> str:
        """Its title, with its back."""
        return f"{self.page.title}; {self.back.title}" if self.back else self.page.title

    @property
    def sides(self) -> str:
        """True if its back is printed too."""
        return "both sides" if self.last > self.first else "one side"

    @property
    def when(self) -> str:
        """The minute at which it is given out, in words."""
        minute = self.page.minute
        return "" if minute is None else f"minute {minute}" if minute else "at the start"


def to_print(pages: Iterable[Printed]) -> list[ToPrint]:
    """Return the pages to copy, in their order: no blank sides, and nothing that is solved."""
    found: list[ToPrint] = []
    at = 1
    for page in pages:
        if page.back and not page.solved:
            found[-1] = replace(found[-1], last=at, back=page)
        elif not (page.blank or page.solved):
            found.append(ToPrint(at, at + page.pages - 1, page))
        at += page.pages
    return found


def solved_span(pages: list[Printed]) -> str:
    """Return the pages of the solved twins; "" where there are none."""
    count = sum(page.pages for page in pages)
    before = sum(
        page.pages for page in pages[: next((i for i, p in enumerate(pages) if p.solved), len(pages))]
    )
    return _span(before + 1, count) if before < count else ""


def _span(first: int, last: int) -> str:
    return f"{first}–{last}" if last > first else str(first)


def in_one_style(text: str) -> str:
    """HTML with its numbers as the site types them: 12,345 as 12 345, 1,024 as 1024, a space before %. Code stays."""

    def grouped(match: re.Match[str]) -> str:
        digits = match[0].replace(",", "")
        return digits if len(digits) < 5 else match[0].replace(",", "\N{NO-BREAK SPACE}")

    parts = _MARKED.split(text)
    return "".join(
        part if part.startswith("<") else _PERCENT.sub("\N{NO-BREAK SPACE}%", _GROUPED.sub(grouped, part))
        for part in parts
    )


def document(session: Plain, printed: list[Printed], *, letter: bool = False) -> str:
    """Return all pages in one file; it lies in handbook/handouts/, beside handbook/run/."""
    size = f"<style>{_LETTER}</style>" if letter else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(session['name'])}: everything to print</title>"
        '<link rel="stylesheet" href="../run/sheet.css"><link rel="stylesheet" href="handouts.css">'
        f'{size}</head><body class="{session["kind"]}"><main>{"".join(p.html for p in printed)}</main></body></html>'
    )


def printed_pages(
    session: Plain,
    handouts: Handouts | None,
    value: Value,
    words: Words,
    root: Path,
    output: Callable[[str, str], str],
    ran: Callable[[str], str] = lambda page: "",
    students: int = 0,
    card: str = "",
) -> list[Printed]:
    """Return every page of a session, in the order in which they are printed.

    Args:
        session: the map as `plain_data.as_plain` gives it.
        value: a number of a record by its name.
        words: Markdown to text and HTML, values filled in.
        output: what a page printed when it was measured, by its id and a word in it.
        ran: the card and the date of a page's record, by its id; "" where it has none that holds.
        students: how many there are; 0 where it is not known.
        card: whose numbers they are, at the foot of every page; "" where nobody knows it.

    Raises:
        HandoutError: something in the data cannot be printed.
    """
    frame = (root / FOLDER / FRAME).read_text(encoding="utf-8")
    sides = re.sub(
        r"<form.*?</form>",
        "",
        sheet(session, frame, recorded_on(handouts), OnPage(card=card)),
        flags=re.DOTALL,
    )
    sides = sides.partition("<main>")[2].partition("</main>")[0]
    made = _Maker(session, handouts, value, words, root, output, ran)
    pages: list[Printed | None] = [Printed("the session sheet", "for you", sides, pages=2)]
    pages += [page for kind in ("sheet", "mentor") for page in made.sheets(kind, solved=False)]
    pages += [made.tickets(solved=False), made.after(), *made.board()]
    pages += [page for kind in ("score", "certificate") for page in made.sheets(kind, solved=False)]
    pages += [page for kind in ("sheet", "mentor") for page in made.sheets(kind, solved=True)]
    pages.append(made.tickets(solved=True))
    cover = made.cover([], students)
    laid = made.on_fronts([cover, *(page for page in pages if page is not None)])
    laid[0] = made.cover(laid, students)
    numbered, at = [], 1
    for page in laid:
        numbered.append(
            replace(
                page, html=_at_foot(in_one_style(page.html), f"{session['id']} · {at}{card and ' · '}{card}")
            )
        )
        at += page.pages
    return numbered


def _at_foot(text: str, words: str) -> str:
    """Return a page with words at its foot; the session sheet has sides of its own and stays as it is."""
    if not text.startswith('<section class="handout'):
        return text
    return text.replace("</section>\n", f'<p class="at">{words}</p></section>\n')


def on_paper(text: str) -> str:
    """HTML without links; a link that leaves the site has its address written behind its words."""

    def told(match: re.Match[str]) -> str:
        return match["words"] + (_address(match["href"]) if "://" in match["href"] else "")

    return _ANCHOR.sub(told, text)


def _address(url: str | None) -> str:
    short = re.sub(r"^https?://(?:www\.)?", "", url or "").rstrip("/")
    return f' <span class="address">{html.escape(short)}</span>' if short else ""


class _Maker:
    def __init__(
        self,
        session: Plain,
        handouts: Handouts | None,
        value: Value,
        words: Words,
        root: Path,
        output: Callable[[str, str], str],
        ran: Callable[[str], str],
    ) -> None:
        self.session, self.handouts, self.value, self.words = session, handouts, value, words
        self.root, self.output, self.ran = root, output, ran
        self.blanks = 0
        self.runs: list[str] = []  # whose numbers a part shows
        self.cut_name = ""  # on the slip below a cut

    # --- pages ------------------------------------------------------------------------------------

    def sheets(self, kind: str, *, solved: bool) -> Iterator[Printed]:
        """Yield the pages of one kind; solved, only those with something to solve."""
        has_front = False
        for entry in self.handouts.sheets if self.handouts else ():
            if entry.kind != kind:
                continue
            self.blanks = 0
            bodies = list(self.bodies(entry, solved))
            if solved and not self.blanks:
                has_front = has_front and entry.turned
                continue
            for i, body in enumerate(bodies, 1):
                title = f"{entry.title}, page {i} of {len(bodies)}" if len(bodies) > 1 else entry.title
                yield replace(self.page(title, entry, body, solved), back=entry.turned and has_front)
            has_front = True

    def page(self, title: str, entry: Sheet, body: str, solved: bool) -> Printed:
        own = entry.kind == "sheet" and not solved
        name = self.name(entry, solved)
        body += f'<div class="sums">{paper.squares()}</div>' if own and not entry.full else ""
        made = self.framed(title, entry.whom, name, body, solved, entry.kind)
        minute = None if entry.whom.startswith(("for you", "one for you")) else self.minute(entry)
        return replace(made, cut=entry.is_cut, minute=minute)

    def minute(self, entry: Sheet) -> int:
        """Return the minute at which the map wants a sheet."""
        assert self.handouts is not None
        starts = {step["title"]["text"]: step["start"] for step in self.session["steps"]}
        if entry.at and entry.at not in starts:
            raise HandoutError(
                f"{self.handouts.path}: {entry.title}: at: the map has no step {entry.at!r}; "
                f"write the title of one: {', '.join(starts)}"
            )
        return int(starts[entry.at]) if entry.at else AT_THE_START

    def on_fronts(self, pages: list[Printed]) -> list[Printed]:
        """Return the pages with a side left blank before each that would else be the back of another sheet."""
        laid: list[Printed] = []
        at = 1
        for page in pages:
            if at % 2 == 0 and not page.back:
                laid.append(self.left_blank(laid[-1]))
                at += 1
            laid.append(page)
            at += page.pages
        return laid

    def left_blank(self, front: Printed) -> Printed:
        text = '<section class="handout blank" aria-label="left blank"><p>This side is left blank.</p></section>\n'
        return Printed("left blank", "", text, solved=front.solved, blank=True)

    def cover(self, laid: list[Printed], students: int) -> Printed:
        """Return the list of what to print, how often and when, from the pages as they lie in the file."""
        heads = "".join(
            f'<th scope="col">{head}</th>'
            for head in ("pages", "sheet", "copies", "sides", "cut", "given out")
        )
        widths = "".join(f'<col style="width:{width}mm">' for width in (18, 86, 24, 20, 14, 24))
        rows = "".join(
            f"<tr><td>{line.span}</td>"
            f"<td><b>{html.escape(line.title)}</b><br>{html.escape(self.words(line.page.whom)['text'])}</td>"
            f"<td>{counted(line.page.copies, students)}</td><td>{line.sides}</td>"
            f"<td>{'cut' if line.page.cut else ''}</td><td>{line.when}</td></tr>"
            for line in to_print(laid)[1:]
        )
        if span := solved_span(laid):
            rows += f"<tr><td>{span}</td><td><b>all of it solved</b><br>for you</td><td>1</td>{'<td></td>' * 3}</tr>"
        whole = "Print the whole file on both sides once: every sheet begins on a front. This copy is yours."
        many = (
            f"The copies are for {students} students, rounded up."
            if students
            else "In *copies*, *n* is the number of your students; round up. "
            f"`nox -s handouts -- {self.session['id']} --students 20` writes the numbers."
        )
        pairs = "Then the copies, by their pages. *Both sides*: the second page is the back of the first."
        says = "".join(f"<p>{self.inline(text)}</p>" for text in (whole, pairs, many))
        table = f"<table><colgroup>{widths}</colgroup><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return self.framed(
            "what to print", "for you", "", f'<div class="part">{says}</div>{table}', False, "cover"
        )

    @staticmethod
    def name(entry: Sheet, solved: bool) -> str:
        """Return the line for a name, on what a student keeps or hands in."""
        signed = entry.kind == "sheet" and not (solved or entry.turned or entry.unsigned)
        return '<span class="name">Name</span>' if signed else ""

    def framed(
        self, title: str, whom: str, name: str, body: str, solved: bool, kind: str = "sheet"
    ) -> Printed:
        mark = '<b class="mark">solved</b>' if solved else name
        told = self.words(whom)["text"]
        heading = (
            ""
            if kind == "certificate"
            else (
                f"<header><h2>{html.escape(self.stop)}{html.escape(title)}</h2>{mark}"
                f"<small>{html.escape(told)}</small></header>"
            )
        )
        css = f"handout {kind}{' solved' if solved else ''}"
        text = f'<section class="{css}" aria-label="{html.escape(title)}">{heading}{body}</section>\n'
        return Printed(title, told, text, solved=solved)

    @property
    def stop(self) -> str:
        return f"{self.session['stop'] or 'Opening'} · "

    def board(self) -> Iterator[Printed]:
        """Yield the finished board, as large as a page."""
        if self.session["board"]["svg"]:
            figure = f'<div class="figure">{self.session["board"]["svg"]}</div>'
            whom = "for the wall, or in case your projector gives up"
            yield self.framed("the finished board", whom, "", figure, False)

    def tickets(self, *, solved: bool) -> Printed | None:
        """Return the exit ticket, twice on a page."""
        pairs = self.session["exit_ticket"]
        if not pairs or not self.session["stop"]:
            return None

        def answer(pair: Plain) -> str:
            return f'<p class="solved">{pair["answer"]["html"]}</p>' if solved else '<p class="rule"></p>' * 3

        asked = "".join(f"<li>{pair['ask']['html']}{answer(pair)}</li>" for pair in pairs)
        name = "" if solved else '<span class="name">Name</span>'
        ticket = f'<div class="ticket"><p><b>{self.stop}exit ticket</b>{name}</p><ol>{asked}</ol></div>'
        whom = "one slip for every student"
        made = self.framed("exit ticket", whom, "", ticket * (1 if solved else 2), solved)
        return replace(made, cut=not solved, minute=self.last_step)

    @property
    def last_step(self) -> int:
        return int(self.session["steps"][-1]["start"])

    def after(self) -> Printed | None:
        """Return the page for home: what to do and to read until the next session."""
        session = self.session
        if not (session["read"] or session["worklog"]):
            return None
        to_do = [on_paper(session[key]["html"]) for key in ("homework", "worklog") if session[key]]
        home = "".join(f"<p>{text}</p>" for text in to_do)
        items = [
            f"<li><b>{html.escape(item['source']['label'])}</b>{_address(item['source']['href'])} "
            f"{on_paper(item['why']['html'])}</li>"
            for item in session["read"]
        ]
        read = f'<div class="part"><h3>What to read</h3><ul>{"".join(items)}</ul></div>' if items else ""
        body = f'<div class="part"><h3>What to do</h3>{home}</div>{read}<div class="sums">{paper.squares()}</div>'
        made = self.framed("after the session", "for every student, to take home", "", body, False)
        return replace(made, minute=self.last_step)

    # --- parts ------------------------------------------------------------------------------------

    def bodies(self, entry: Sheet, solved: bool) -> Iterator[str]:
        """Yield the inside of a sheet: one page, or as many as its listing needs."""
        self.cut_name = self.name(entry, solved)
        out, row, parts = [], [], list(entry.parts)
        if parts[0].kind == "listing":
            *pages, last = self.listing(parts.pop(0), solved)
            yield from pages
            out.append(last)
        for part in parts:
            made = self.part(part, solved)
            if part.data.get("beside"):
                row.append(made)
                continue
            if row:
                out.append(f'<div class="row">{"".join(row)}</div>')
                row = []
            out.append(made)
        if row:
            out.append(f'<div class="row">{"".join(row)}</div>')
        yield "".join(out)

    def part(self, part: Part, solved: bool) -> str:
        data = part.data
        title = f"<h3>{self.inline(data['title'])}</h3>" if "title" in data else ""
        style = f' style="flex: 0 0 {data["width"]}mm"' if "width" in data else ""
        self.runs = []
        inside = getattr(self, f"_{part.kind}")(part, solved)
        if self.runs:
            inside += f'<p class="runs">Our run: {self.inline("; ".join(self.runs))}.</p>'
        return f'<div class="part {part.kind}"{style}>{title}{inside}</div>'

    def inline(self, text: str) -> str:
        return str(self.words(text)["html"])

    def filled(self, text: str, part: Part, solved: bool, more: Mapping[str, Any] | None = None) -> str:
        """Return a text as HTML, with gaps or with answers."""
        assert self.handouts is not None
        answers: list[str] = []
        source = ""
        for piece in pieces(text, self.handouts, part.where, self.value, more):
            source += f"\ue000{len(answers)}\ue001" if piece.is_blank else piece.text
            if piece.is_blank:
                answers.append(self.gap(piece, solved))
        self.blanks += len(answers)
        return re.sub("\ue000(\\d+)\ue001", lambda match: answers[int(match[1])], self.inline(source))

    def gap(self, piece: Piece, solved: bool) -> str:
        answer = self.inline(piece.text)
        if solved:
            return f'<span class="solved">{answer}</span>{self.of_our_run(piece.ran)}'
        seen = len(re.sub(r"<[^>]+>", "", answer))
        return f'<span class="gap" style="width:{min(150, max(20, 3 * seen))}mm"></span>'

    def of_our_run(self, text: str) -> str:
        """Return the recorded values beside an answer; "" if one of their pages has no valid record."""
        pages = dict.fromkeys(
            re.findall(r"(?<![\w.])([a-z]\w*)\.", " ".join(re.findall(r"\{\{(.*?)\}\}", text)))
        )
        shown, runs = self.inline(text), [self.ran(page) for page in pages]
        if not runs or not all(runs) or MISSING in shown:
            return ""
        self.runs += [run for run in runs if run not in self.runs]
        return f' <span class="ours">our run: {shown}</span>'

    def _text(self, part: Part, solved: bool) -> str:
        text = self.filled(part.data["text"], part, solved)
        return text if text.startswith("<") else f"<p>{text}</p>"

    def _table(self, part: Part, solved: bool) -> str:
        assert self.handouts is not None
        data = part.data
        heads = "".join(f'<th scope="col">{self.inline(str(name))}</th>' for name in data["columns"])
        height = f' style="height:{data.get("height", 9)}mm"'
        rows = []
        for cells, more in table_rows(part, self.handouts, self.value):
            if len(cells) != len(data["columns"]):
                raise HandoutError(
                    f"{self.handouts.path}: {part.where}: a row of {len(cells)} cells, "
                    f"and there are {len(data['columns'])} columns"
                )
            inside = "".join(self.cell(cell, part, solved, more) for cell in cells)
            rows.append(f"<tr{height}>{inside}</tr>")
        widths = "".join(f'<col style="width:{w}mm">' if w else "<col>" for w in data.get("widths", ()))
        head = f"<colgroup>{widths}</colgroup><thead><tr>{heads}</tr></thead>"
        return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"

    def cell(self, text: str, part: Part, solved: bool, more: Mapping[str, Any]) -> str:
        assert self.handouts is not None
        inside = [
            piece for piece in pieces(text, self.handouts, part.where, self.value, more) if piece.text.strip()
        ]
        if not solved and len(inside) == 1 and inside[0].is_blank:
            self.blanks += 1
            return '<td class="blank"></td>'
        return f"<td>{self.filled(text, part, solved, more)}</td>"

    def _questions(self, part: Part, solved: bool) -> str:
        items = []
        for question in part.data["questions"]:
            asked = self.filled(question["ask"], part, solved)
            self.blanks += 1
            if solved:
                answer = f'<p class="solved">{self.inline(question["answer"])}</p>'
            else:
                answer = '<p class="rule"></p>' * question.get("lines", 2)
            items.append(f"<li>{asked}{answer}</li>")
        alone = ' class="one"' if len(items) == 1 else ""
        return f'<ol start="{part.data.get("first", 1)}"{alone}>{"".join(items)}</ol>'

    def _squares(self, part: Part, solved: bool) -> str:
        """Squared paper. A cell: "!" before what is printed on the blank one too, "#" before what is shaded."""
        assert self.handouts is not None
        data = part.data
        cells = data["cells"]
        if isinstance(cells, str):
            cells = self.handouts.work_out(cells.removeprefix("="), part.where, self.value)
        size = data.get("size", 5)
        rows = []
        for row in cells:
            line = []
            for cell in row:
                mark = re.match(r"[!#]*", str(cell))[0]  # type: ignore[index]
                text = html.escape(str(cell)[len(mark) :])
                given = "!" in mark
                if not given and str(cell):
                    self.blanks += 1
                shown = given or solved
                css = " ".join(
                    name
                    for name, on in (("dark", "#" in mark and shown), ("solved", solved and not given))
                    if on
                )
                line.append(f'<td class="{css}">{text if shown else ""}</td>')
            rows.append(f"<tr>{''.join(line)}</tr>")
        across = f"<caption>{self.inline(data['across'])}</caption>" if "across" in data else ""
        longest = max((len(str(cell).lstrip("!#")) for row in cells for cell in row), default=1)
        letters = size * min(0.52, 1.5 / max(longest, 1))
        style = f"--size:{size}mm;font-size:{letters:.2f}mm"
        return f'<table style="{style}">{across}<tbody>{"".join(rows)}</tbody></table>'

    def _cut(self, part: Part, solved: bool) -> str:
        """Return a line across the page, to cut along; what is below it wants a name of its own."""
        return f'<hr><p class="below">{self.cut_name}</p>' if self.cut_name else "<hr>"

    def _cards(self, part: Part, solved: bool) -> str:
        """Cards to cut, shuffled; solved, in the rows in which they belong."""
        data = part.data
        cards = [card for row in data["cards"] for card in row]
        laid = data.get("laid", False)
        if laid:
            self.blanks += 1
            if not solved:
                random.Random(self.session["id"]).shuffle(cards)
        across = data.get("across", 3)
        style = f"--across:{across};--high:{data.get('height', 22)}mm"
        if solved and laid:
            rows = "".join(
                f'<div class="laid">{"".join(f"<span>{self.inline(card)}</span>" for card in row)}</div>'
                for row in data["cards"]
            )
            return f'<div class="solved">{rows}</div>'
        inside = "".join(f"<span>{self.inline(card)}</span>" for card in cards)
        return f'<div class="cut" style="{style}">{inside}</div>'

    def _drawing(self, part: Part, solved: bool) -> str:
        """Return a frame to draw or to work in; solved, words for what is drawn there."""
        data = part.data
        answer = data.get("answer", "")
        self.blanks += bool(answer)
        given = f'<p class="given">{self.filled(data["given"], part, solved)}</p>' if "given" in data else ""
        inside = f'<div class="solved">{self.filled(answer, part, solved)}</div>' if solved and answer else ""
        ground = paper.squares() if data.get("squared") else ""
        return f'<div class="frame" style="height:{data["height"]}mm">{ground}{given}{inside}</div>'

    def _axes(self, part: Part, solved: bool) -> str:
        data = part.data
        (left, right), (low, high) = data["x"], data["y"]
        x_title, y_title = (self.words(data[key])["text"] for key in ("x_title", "y_title"))
        x = paper.Axis(left, right, x_title, not data.get("plain_x", False))
        y = paper.Axis(low, high, y_title)
        lines = [
            paper.Line(
                (self.number(e["x"][0], part), self.number(e["x"][1], part)),
                (self.number(e["y"][0], part), self.number(e["y"][1], part)),
                e.get("label", ""),
                e.get("dashed", False),
                e.get("given", False),
            )
            for e in data.get("lines", ())
        ]
        points = [
            paper.Point(
                self.number(e["x"], part), self.number(e["y"], part), e["label"], e.get("given", False)
            )
            for e in data.get("points", ())
        ]
        self.blanks += sum(not line.given for line in lines) + sum(not point.given for point in points)
        return paper.axes(x, y, data["height"], lines, points, solved, data.get("width", paper.WIDTH))

    def number(self, thing: float | str, part: Part) -> float:
        """Return a coordinate, or what an expression makes of it."""
        assert self.handouts is not None
        return float(
            self.handouts.work_out(thing.removeprefix("="), part.where, self.value)
            if isinstance(thing, str)
            else thing
        )

    def _ruler(self, part: Part, solved: bool) -> str:
        assert self.handouts is not None
        data = part.data
        answers = self.handouts.work_out(data["answers"].removeprefix("="), part.where, self.value)
        self.blanks += len(answers)
        marks = data["marks"]
        return paper.ruler(data["from"], data["to"], marks, [(n, f"{n:g}") for n in answers], solved)

    def _code(self, part: Part, solved: bool) -> str:
        """Code with holes."""
        assert self.handouts is not None
        out = []
        for piece in pieces(part.data["text"], self.handouts, part.where, self.value):
            text = html.escape(piece.text)
            if piece.is_blank:
                self.blanks += 1
                wide = max(12, len(piece.text)) + 2
                text = (
                    f'<span class="solved">{text}</span>'
                    if solved
                    else f'<span class="gap" style="width:{wide}ch"></span>'
                )
            out.append(text)
        return f'<pre style="font-size:{part.data.get("size", 10)}pt">{"".join(out)}</pre>'

    # --- listings ---------------------------------------------------------------------------------

    def _listing(self, part: Part, solved: bool) -> str:
        return "".join(self.listing(part, solved))

    def listing(self, part: Part, solved: bool) -> Iterator[str]:
        """Numbered lines of a file, of some of its functions, of a piece of code on a page, or what a page printed."""
        assert self.handouts is not None
        data = part.data
        if "record" in data:
            page, _, word = data["record"].partition(": ")
            lines = [("", line) for line in self.output(page, word).rstrip().splitlines()]
        elif "holds" in data:
            lines = self.on_a_page(data["file"], data["holds"], part)
        else:
            lines = self.source(data["file"], data.get("names", ()), part)
        marks, later = data.get("marks", ()), data.get("later", ())
        if missing := [mark for mark in (*marks, *later) if sum(mark in line for _, line in lines) != 1]:
            raise HandoutError(
                f"{self.handouts.path}: {part.where}: not on one line of the listing: {', '.join(missing)}"
            )
        self.blanks += len(marks)
        per_page = data.get("lines", PAGE_LINES)
        called = data.get("called", data.get("file", ""))
        title = f"<p><code>{html.escape(called)}</code></p>" if called else ""
        size = data.get("size", 9)
        for first in range(0, len(lines), per_page):
            shown = "\n".join(
                self.line(
                    number,
                    line,
                    solved and any(mark in line for mark in marks),
                    any(mark in line for mark in later),
                )
                for number, line in lines[first : first + per_page]
            )
            yield f'{title}<pre class="listing" style="font-size:{size}pt">{shown}</pre>'

    @staticmethod
    def line(number: str, line: str, marked: bool, later: bool) -> str:
        """Return a numbered line: marked as an answer, or as one that is typed later than those around it."""
        text = f'<span class="solved">{html.escape(line)}</span>' if marked else html.escape(line)
        text = f'<b class="later">{text}</b>' if later else text
        return f'<span class="number">{number:>4}</span> {text}' if number else text

    def on_a_page(self, file: str, words: str, part: Part) -> list[tuple[str, str]]:
        """Return the one piece of Python on a page that holds these words: a cell, or a block in its prose."""
        assert self.handouts is not None
        try:
            cells = read_page(self.root / file, self.root).cells
        except OSError:
            raise HandoutError(f"{self.handouts.path}: {part.where}: there is no file {file}") from None
        blocks = [
            block
            for cell in cells
            for block in (
                [cell.source]
                if cell.kind == "code"
                else re.findall(r"^```python\n(.*?)^```", cell.source, re.MULTILINE | re.DOTALL)
            )
        ]
        found = [block for block in blocks if words in block]
        if len(found) != 1:
            raise HandoutError(
                f"{self.handouts.path}: {part.where}: {len(found)} pieces of Python in {file} hold {words!r}, "
                "and it takes one"
            )
        return [(str(i), line) for i, line in enumerate(found[0].rstrip().splitlines(), 1)]

    def source(self, file: str, names: list[str], part: Part) -> list[tuple[str, str]]:
        assert self.handouts is not None
        try:
            text = (self.root / file).read_text(encoding="utf-8")
        except OSError:
            raise HandoutError(f"{self.handouts.path}: {part.where}: there is no file {file}") from None
        lines = [(str(i), line) for i, line in enumerate(text.splitlines(), 1)]
        if not names:
            return lines
        nodes = {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
        if missing := [name for name in names if name not in nodes]:
            raise HandoutError(
                f"{self.handouts.path}: {part.where}: {file} has no function {', '.join(missing)}"
            )
        kept = []
        for name in names:
            node = nodes[name]
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            kept += [*lines[start - 1 : node.end_lineno], ("", "")]
        return kept
