"""Page to Markdown: fresh prose, recorded numbers, charts. No MkDocs, no torch, no GPU.

Raw HTML (charts, stamps, tables of data) never goes through the Markdown parser: a token stands in its
place and is swapped for the HTML afterwards. `Rendered.inlined()` does both for a site generator without hooks.
"""

from __future__ import annotations

import contextlib
import functools
import html
import json
import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from course_labs.lab import Lab, LabError, find_lab
from course_site.charts import data as chart_data
from course_site.numbers import claims, lint
from course_site.numbers.values import MISSING, Define, ExpressionError, NotOnThisCard, evaluate, format_value
from course_site.pages import bibliography, blocks, diffs, glossary
from course_site.pages.addresses import address_from, site_uri
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.fences import LANGUAGES, fenced
from course_site.pages.headings import headings, section_of_lab
from course_site.pages.page import Cell, Page
from course_site.pages.plain_text import without_marks
from course_site.pages.verbatim import outside_verbatim
from course_site.records.record import MIME, RecordError
from course_site.sessions import checks, cohort, cohort_page, road
from course_site.sessions import map as session_map
from course_site.sessions.session import STOPS
from course_site.site import callouts, labs, ledger
from course_site.site.course import Course, Problem

_STOP = re.compile(rf"^\*\[(?:{'|'.join(STOPS).upper()})\]:.*\n?", re.MULTILINE)

_VALUE = re.compile(r"\{\{\s*(?P<expression>[^{}:]+?)\s*(?::(?P<format>[^{}]*?))?\s*\}\}")
_LINK = re.compile(r"(?P<text>\]\()(?P<target>[^)\s#]+\.(?:py|md))(?P<rest>[#)\s])")


@dataclass
class Rendered:
    """One page as Markdown, with the HTML that stands outside of it.

    Attributes:
        markdown: the page; tokens stand where HTML belongs.
        slots: token to HTML.
        words: token to Markdown that says the same, for the published notebook; a token without is left out there.
        cells: (kind, text) for the published notebook: prose with plain values, pictures, code.
        shown: every value expression on the page with the text it became.
        road: HTML that stands above the page, "" for a page off the road.
    """

    markdown: str = ""
    slots: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    cells: list[tuple[str, Any]] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)
    road: str = ""

    def fill(self, content: str) -> str:
        """Swap the tokens in HTML (or Markdown) for what they stand for."""
        for token, raw in self.slots.items():
            content = content.replace(f"<p>{token}</p>", raw).replace(token, raw)
        return content

    def inlined(self) -> str:
        """The page as one Markdown text with its HTML inside."""
        return self.fill(self.markdown)


_TERM = re.compile(r'<h[1-6].*?</h[1-6]>|<abbr title="(?P<title>[^"]*)">(?P<word>[^<]*)</abbr>', re.DOTALL)
_PLAIN_TOKEN = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')


def lighten(content: str) -> str:
    """A page's HTML without what no reader sees or needs.

    A term is explained where it first stands and never in a heading; names, blanks and brackets of highlighted
    code have no colour of their own, so they need no element either.
    """
    explained: set[str] = set()

    def once(match: re.Match[str]) -> str:
        if match["title"] is None:
            return re.sub(r"</?abbr[^>]*>", "", match.group())
        if match["title"] in explained:
            return match["word"]
        explained.add(match["title"])
        return match.group()

    return _PLAIN_TOKEN.sub(r"\1", _TERM.sub(once, content))


def render_course(course: Course) -> dict[str, Rendered]:
    """Render every page, by its id; what is wrong is noted in `course.problems`."""
    if not course.scopes:
        return {}
    renderers = {page.id: _Renderer(course, page) for page in course.pages}
    # A page may quote what another one defines, so all definitions come before any prose.
    for renderer in renderers.values():
        renderer.define_all()
    return {page_id: renderer.render() for page_id, renderer in renderers.items()}


class _Renderer:
    def __init__(self, course: Course, page: Page) -> None:
        self.course, self.page = course, page
        self.scope = course.scopes[page.id]
        self.out = Rendered()
        self.has_numbers = course.states[page.id] in ("fresh", "foreign", "static")
        here = posixpath.dirname(site_uri(page.path.as_posix())) or "."
        self._ledger_url = posixpath.relpath("numbers.html", here)
        self._file = page.path.as_posix()  # that what is wrong is said of

    # --- the page ------------------------------------------------------------------------------

    def render(self) -> Rendered:
        record = self.course.records.get(self.page.id) if self.has_numbers else None
        parts: list[str] = []
        outputs = iter(record.outputs if record else [[]] * len(self.page.code))
        for cell in self.page.cells:
            is_prose = cell.kind == "markdown"
            parts.append(self._prose_cell(cell.source) if is_prose else self._code_cell(cell, next(outputs)))
        markdown = self._with_stamp("\n\n".join(part for part in parts if part.strip()))
        self.out.road = self._road()
        self.out.cited = bibliography.cited_keys(markdown)
        try:
            footnotes = bibliography.footnotes(self.out.cited, self.course.sources)
        except KeyError as error:
            self._problem(f"cites {error.args[0]!r}, which docs/bibliography.toml does not have")
            footnotes = ""
        abbreviations = _abbreviations(markdown, self.course.terms)
        if self.page.path.parts[0] == "handbook":  # among mentors, L1 is a lecture and no cache
            abbreviations = _STOP.sub("", abbreviations)
        self.out.markdown = "\n\n".join(filter(None, [markdown, footnotes, abbreviations])) + "\n"
        return self.out

    def _problem(self, message: str) -> None:
        self.course.problem(self._file, message)

    def _slot(self, raw: str, words: str = "") -> str:
        token = f"slot{len(self.out.slots)}of{self.page.id}token"
        self.out.slots[token], self.out.words[token] = raw, words
        return token

    def _with_stamp(self, markdown: str) -> str:
        """The stamp and any banner stand right under the first heading."""
        above = "\n\n".join(filter(None, [self._stamp(), self._banner()]))
        if not above:
            return markdown
        match = re.search(r"^# .+$", markdown, re.MULTILINE)
        cut = match.end() if match else 0
        return f"{markdown[:cut]}\n\n{above}\n\n{markdown[cut:].lstrip()}"

    def _road(self) -> str:
        """Where this page stands in the course, if it is a session's."""
        sessions = self.course.maps.sessions
        place = road.place_of(self.page.path.as_posix(), sessions)
        if place is None:
            return ""
        pages = {page.path.as_posix(): page for page in self.course.pages}
        address = address_from(self.page.path.as_posix(), pages)
        return road.road_html(*place, sessions, address)

    def _stamp(self) -> str:
        record = self.course.records.get(self.page.id)
        if not record or not self.course.has_numbers(self.page.id):
            return ""
        return self._slot(ledger.stamp_html(self.course, self.page, record))

    def _banner(self) -> str:
        state = self.course.states[self.page.id]
        if state == "waiting":
            why = self.course.waiting[self.page.path.as_posix()]
            return _div(
                "banner waiting",
                f"**Not yet measured.** This page awaits a GPU since {why.since}: {why.reason}. "
                "Until then it stands without its numbers.",
            )
        if state == "stale":
            return _div(
                "banner stale",
                "**A draft.** The code of this page changed after its last run, so none of its old numbers is shown.",
            )
        if state == "foreign":
            gpu = self.course.records[self.page.id].edition["gpu"]
            needs = ", ".join(self.page.needs)
            return _div(
                "banner reference",
                f"**Measured on another card.** This page needs {needs}, so it shows {gpu}.",
            )
        return ""

    # --- prose ---------------------------------------------------------------------------------

    def _prose_cell(self, source: str) -> str:
        try:
            nodes = blocks.parse(source)
        except DirectiveError as error:
            self._problem(str(error))
            return ""
        text = self._nodes(nodes)
        self.out.cells.append(("markdown", text))
        return text

    def define_all(self) -> None:
        """Note what the page defines; a cell that cannot be read is reported when it is rendered."""
        for cell in self.page.cells:
            if cell.kind == "markdown":
                with contextlib.suppress(DirectiveError):
                    for block in walk_blocks(blocks.parse(cell.source)):
                        if block.kind == "define":
                            self._define(block)

    def _nodes(self, nodes: list[str | Block], **allowed: Any) -> str:
        """Prose and blocks as Markdown; `allowed` is what the lint lets pass here, for it alone."""
        parts = [
            self._text(node, **allowed) if isinstance(node, str) else self._block(node, **allowed)
            for node in nodes
        ]
        return "\n".join(part for part in parts if part)

    def _text(self, text: str, **allowed: Any) -> str:
        """Prose: linted, links moved to site space, values filled in."""
        self._lint(text, **allowed)
        return outside_verbatim(text, lambda part: self._links(self._values(_unbroken(part))))

    def _lint(self, text: str, **allowed: Any) -> None:
        for finding in _typed_numbers(text, frozenset(self.course.sources), **allowed):
            self._problem(f"typed number {finding.excerpt!r}: {finding.why}")

    def _links(self, text: str) -> str:
        """A link names a file of the repository; on the site docs/ is the root."""

        def move(match: re.Match[str]) -> str:
            target = match["target"]
            if "://" in target:
                return match.group()
            here = self.page.path.parent.as_posix()
            there = posixpath.normpath(posixpath.join(here, target))
            return (
                match["text"]
                + posixpath.relpath(
                    site_uri(there), posixpath.dirname(site_uri(self.page.path.as_posix())) or "."
                )
                + match["rest"]
            )

        return _LINK.sub(move, text)

    def _values(self, text: str, *, plain: bool = False) -> str:
        lines = []
        for line in text.split("\n"):
            as_text = plain or line.startswith("#")  # a heading also becomes a title and an anchor

            def fill(match: re.Match[str], as_text: bool = as_text) -> str:
                return self._value(match["expression"], match["format"] or "", plain=as_text)

            lines.append(_VALUE.sub(fill, line))
        return "\n".join(lines)

    def _value(self, expression: str, spec: str, *, plain: bool) -> str:
        try:
            result = evaluate(expression, self.scope)
            text = format_value(result.value, spec)
        except NotOnThisCard:
            return MISSING
        except ExpressionError as error:
            if not self._awaits_numbers(expression):
                self._problem(str(error))
            return MISSING
        self.out.shown[expression] = text
        if plain:
            return text
        about = html.escape(ledger.about(self.course, self.page, expression, result))
        row = ledger.anchor(self.course, self.page, result)
        if not row:
            return f'<span class="value" title="{about}">{html.escape(text)}</span>'
        return f'<a class="value" href="{self._ledger_url}#{row}" title="{about}">{html.escape(text)}</a>'

    def _awaits_numbers(self, expression: str) -> bool:
        """True when a name belongs to a page that has no numbers yet, so that nothing is wrong with it."""
        if not self.has_numbers:
            return True
        for name in re.findall(r"[A-Za-z_][\w.]*", expression):
            page_id = name.split(".")[0]
            if self.course.states.get(page_id) in ("waiting", "stale"):
                return True
        return False

    def _plain(self, text: str, **allowed: Any) -> str:
        """Alternative text, titles, captions: linted, with values as plain text."""
        self._lint(text, **allowed)
        return self._values(str(text), plain=True)

    # --- blocks --------------------------------------------------------------------------------

    def _block(self, block: Block, **allowed: Any) -> str:
        """A block as Markdown; of all blocks only a callout says what the block around it may say."""
        handler = getattr(self, f"_{block.kind}_block")
        try:
            return f"\n{handler(block, **allowed) if block.kind == 'callout' else handler(block)}\n"
        except (DirectiveError, yaml.YAMLError) as error:
            self._problem(f"/// {block.kind} | {block.argument}: {str(error).splitlines()[0]}")
        except NotOnThisCard as error:
            return "\n" + _div("banner reference", f"Not on this card: {error}.") + "\n"
        except ExpressionError as error:
            # What is unknown on another page is told by the name it has there; the block says whose it is.
            quoted = re.findall(r"[A-Za-z_]\w*\.[\w.]+", f"{block.argument} {block.text}")
            if not self._awaits_numbers(f"{error} {' '.join(quoted)}"):
                self._problem(f"/// {block.kind} | {block.argument}: {error}")
        return ""

    def _settings(self, block: Block, known: Collection[str]) -> dict[str, Any]:
        settings = yaml.safe_load(block.text) if block.text.strip() else {}
        if not isinstance(settings, dict):
            raise DirectiveError("its body is not `key: value` lines")
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise DirectiveError(f"unknown setting {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return settings

    def _claim_block(self, block: Block) -> str:
        if not self.has_numbers:
            return ""
        try:
            verdict = claims.judge(block.argument, self.scope)
        except ExpressionError as error:
            if isinstance(error, NotOnThisCard) or self._awaits_numbers(block.argument):
                return ""
            raise
        allowed = {"in_claim": True, "condition": block.argument}
        gates = self.course.is_reference or self.course.states[self.page.id] == "foreign"
        if verdict.vacuous and gates and not self.course.rebuilt:
            self._problem(verdict.why)
        if verdict.holds:
            body = self._nodes(block.body, **allowed)
            return _div("claim", body, f' title="{html.escape(self._support(verdict))}"')
        if verdict.undecided and self.course.rebuilt:
            # Somebody's own measuring on this model: the sentence says that it could not be decided.
            self.course.undecided.append(Problem(self.page.path.as_posix(), verdict.why))
        elif gates:
            self._problem(verdict.why)
        if "otherwise" in block.parts:
            return _div("claim otherwise", self._nodes(block.parts["otherwise"], **allowed))
        body = self._nodes(block.body, **allowed).strip()
        said = "Too close to call on this run" if verdict.undecided else "Not on this card"
        return _div("claim otherwise", f"*{said}:* {body}")

    def _when_block(self, block: Block) -> str:
        if not self.has_numbers:
            return ""
        try:
            true = claims.is_so(block.argument, self.scope)
        except ExpressionError as error:
            if isinstance(error, NotOnThisCard) or self._awaits_numbers(block.argument):
                return ""
            raise
        return self._nodes(block.body if true else block.parts.get("otherwise", []))

    @staticmethod
    def _support(verdict: claims.Verdict) -> str:
        return f"Tested when the site is built: {verdict.condition}, true in {verdict.support:.1%} of the resamples"

    def _define(self, block: Block) -> None:
        name, equals, expression = block.argument.partition("=")
        if not equals or not all(part.isidentifier() for part in name.strip().split(".")):
            self._problem(f"/// define | {block.argument}: write `/// define | name = expression`")
            return
        try:
            settings = self._settings(block, {"unit", "what"})
        except (DirectiveError, yaml.YAMLError) as error:
            self._problem(f"/// define | {block.argument}: {error}")
            return
        if name.strip() in self.scope.defines:
            self._problem(f"/// define | {block.argument}: {name.strip()!r} is defined twice")
            return
        self.scope.defines[name.strip()] = Define(
            name.strip(),
            expression.strip(),
            str(settings.get("unit", "1")),
            self._plain(settings.get("what", "")),
        )

    def _define_block(self, block: Block) -> str:
        name = block.argument.partition("=")[0].strip()
        if self.has_numbers:
            evaluate(name, self.scope)
        return ""

    def _predict_block(self, block: Block) -> str:
        question = self._plain(block.argument, guesses=True)
        body = self._nodes(block.body, guesses=True)
        reveal = self._nodes(block.parts["reveal"])
        ask = f'<p class="ask">{html.escape(question)}</p>'
        says = "What the run says" if self.page.runs else "Answer"
        return _div("predict", f"{ask}\n\n{body}\n\n{_details('reveal', says, reveal)}")

    def _exercise_block(self, block: Block) -> str:
        title = self._plain(block.argument)
        body, answer = self._nodes(block.body), self._nodes(block.parts["answer"])
        ask = f'<p class="ask">{html.escape(title)}</p>'
        return _div("exercise", f"{ask}\n\n{body}\n\n{_details('answer', 'Answer', answer)}")

    def _callout_block(self, block: Block, **allowed: Any) -> str:
        kind = block.argument
        if kind not in callouts.TITLES:
            raise DirectiveError(f"there is no such callout; known: {', '.join(callouts.TITLES)}")
        title = f'<p class="kind">{self._slot(callouts.icon(kind))}{callouts.TITLES[kind]}</p>'
        return _div(f"callout {kind}", f"{title}\n\n{self._nodes(block.body, **allowed)}")

    def _lab_block(self, block: Block) -> str:
        try:
            lab = find_lab(self.course.root, block.argument)
        except LabError as error:
            raise DirectiveError(str(error).removeprefix(f"{self.course.root}/")) from None
        if lab.page != self.page.path.as_posix():
            raise DirectiveError(f"its lab.toml names {lab.page} as its page")
        for text in [lab.prints(door, stage) for door in lab.doors for stage in range(len(lab.stages) + 1)]:
            self._lint_output(text)
        body = labs.markdown(lab, self._text, _details)
        return _div("lab", f'<p class="ask">{html.escape(self._plain(lab.title))}</p>\n\n{body}')

    def _session_block(self, block: Block) -> str:
        """A session map; what is wrong with its file is among the problems of the course already."""
        report = self.course.maps
        session = report.sessions.get(block.argument)
        if session is None:
            known = ", ".join(report.sessions) or "none"
            raise DirectiveError(f"there is no {checks.FOLDER}/{block.argument}.toml; there are {known}")
        if session.map_page != self.page.path.as_posix():
            raise DirectiveError(f"{session.path} names {session.map_page} as its page")
        pages = {page.path.as_posix(): page for page in self.course.pages}
        lab: Lab | None = None
        with contextlib.suppress(LabError):
            lab = find_lab(self.course.root, session.lab) if session.lab else None

        def heading(target: str) -> str | None:
            path, _, fragment = target.partition("#")
            if path not in pages:
                return None
            return headings(pages[path]).get(fragment, pages[path].title)

        def taken(step: int) -> str:
            was = report.taken.get(session.id, {}).get(step)
            return f" · {was.median:.0f} in {was.runs} run{'s' * (was.runs != 1)}" if was else ""

        tools = session_map.Tools(
            say=self._text,
            plain=lambda text: without_marks(self._plain(text)),
            slot=self._slot,
            fold=_details,
            figure=self._board,
            heading=heading,
            measured=frozenset(d.name for d in session.demos if d.name not in report.unmeasured),
            taken=taken,
            lab_section=section_of_lab(lab, pages) if lab else "",
        )
        self._file = session.path
        body = session_map.markdown(session, lab, self.page.path.parent.as_posix(), tools)
        self._file = self.page.path.as_posix()
        wrong = [str(c) for c in report.complaints if c.path == session.path]
        if wrong:  # a draft: a strict build has stopped
            lines = "".join(f"<li>{html.escape(line)}</li>" for line in wrong)
            banner = f'<div class="banner stale"><p>This map is not finished:</p><ul>{lines}</ul></div>'
            body = f"{self._slot(banner)}\n\n{body}"
        return _div("session", body)

    def _cohort_block(self, block: Block) -> str:
        """The plan of a cohort: its weeks as a table, or the form for its calendar."""
        if block.argument not in ("weeks", "calendar"):
            raise DirectiveError("write `/// cohort | weeks` or `/// cohort | calendar`")
        here = self.page.path.as_posix()
        sessions = self.course.maps.sessions
        try:
            plan = cohort.read_cohort(self.course.root)
            cohort.entries(plan, sessions)  # says what no calendar can show
        except cohort.CohortError as error:
            path, _, message = str(error).partition(": ")
            self.course.problem(path, message)
            return ""
        if block.argument == "calendar":
            return self._slot(cohort_page.cohort_form(plan, sessions, posixpath.dirname(site_uri(here))))
        self._file = cohort.FILE
        pages = {page.path.as_posix(): page for page in self.course.pages}
        table = cohort_page.weeks_table(plan, sessions, self._inline, address_from(here, pages))
        self._file = here
        return self._slot(table)

    def _inline(self, text: str) -> str:
        """One line of Markdown as HTML, for what stands in a slot."""
        import markdown  # slow to import

        return markdown.markdown(self._plain(text)).removeprefix("<p>").removesuffix("</p>")

    def _board(self, name: str, alt: str) -> str:
        path = self.course.root / name
        if not path.is_file():
            return ""  # said where the map was checked
        alt = self._plain(alt)
        svg = chart_data.inline_svg(path.read_text(encoding="utf-8"), alt, f"{self.page.id}-{path.stem}")
        return self._figure(svg, "picture", "", alt)

    def _source_block(self, block: Block) -> str:
        name, _, region = block.argument.partition("#")
        settings = self._settings(block, {"title", "lines"})
        path = self.course.root / name
        if not path.is_file():
            raise DirectiveError(f"there is no file {name}")
        text, first = source_region(path, region)
        title = self._plain(settings.get("title", name))
        numbers = f' linenums="{first}"' if settings.get("lines") else ""
        language = LANGUAGES.get(path.suffix, "text")
        return fenced(text, f'.{language} title="{_quoted(title)}"{numbers}')

    def _diff_block(self, block: Block) -> str:
        settings = self._settings(block, {"title", "open", "region", "context"})
        names = [name.strip() for name in block.argument.split("|")]
        if len(names) != 2:
            raise DirectiveError("write `/// diff | PATH | PATH`, the older file first")
        region, context = str(settings.get("region", "")), settings.get("context", 3)
        is_open = settings.get("open")
        if not isinstance(context, int) or isinstance(context, bool) or context < 0:
            raise DirectiveError(f"`context:` is a number of lines, not {context!r}")
        if is_open not in (None, True, False):
            raise DirectiveError(f"`open:` is true or false, not {is_open!r}")
        texts: list[str] = []
        paths = [self.course.root / name for name in names]
        language = LANGUAGES.get(paths[1].suffix, "text")
        for name, path in zip(names, paths, strict=True):
            if not path.is_file():
                raise DirectiveError(f"there is no file {name}")
            text, _ = source_region(path, region)
            texts.append(text if region else diffs.without_head(text, language))
        before, after = texts
        changes = diffs.compare(before, after, indents=language == "python", context=context)
        if not changes.lines_out + changes.lines_in:
            raise DirectiveError(
                "nothing changed between the two but names, blanks and the comment at the head"
            )

        same_folder = paths[0].parent == paths[1].parent
        was, becomes = (path.name if same_folder else f"{path.parent.name}/{path.name}" for path in paths)
        label = f"From {was} to {becomes}: {changes.words}"
        summary = f"From <code>{was}</code> to <code>{becomes}</code>: {changes.words}"
        if settings.get("title"):
            summary = f"{html.escape(self._plain(settings['title']))}: {changes.words}"
        unfolded = not changes.is_long if is_open is None else is_open
        listing = diffs.as_html(changes, before, after, language, label)
        return self._slot(
            f'<details class="fold diff"{" open" * unfolded}><summary>{summary}</summary>{listing}</details>',
            f"{label}\n\n{fenced(diffs.as_text(changes, before, after), '.diff')}",
        )

    def _figure_block(self, block: Block) -> str:
        settings = self._settings(block, {"alt", "caption", "wide"})
        path = self.course.root / block.argument
        if not path.is_file():
            raise DirectiveError(f"there is no file {block.argument}")
        if not settings.get("alt"):
            raise DirectiveError("it has no `alt:`, the sentence that says what the picture shows")
        alt = self._plain(settings["alt"])
        svg = chart_data.inline_svg(path.read_text(encoding="utf-8"), alt, f"{self.page.id}-{path.stem}")
        return self._figure(svg, "picture", settings.get("caption", ""), alt)

    def _figure(self, svg: str, css: str, caption: str, alt: str, data: str = "") -> str:
        """A picture; its caption stays Markdown, so that it can cite and show values."""
        self.out.cells.append(("picture", (svg, alt)))
        below = f"\n\n{self._text(str(caption))}\n{{: .caption }}" if caption else ""
        return self._slot(f'<figure class="{css}">{svg}{data}</figure>') + below

    def _chart_block(self, block: Block) -> str:
        if not self.has_numbers:
            return _div("banner waiting", "A chart will stand here once this page is measured.")
        settings = self._settings(block, chart_data.SETTINGS)
        texts: dict[str, Any] = {
            key: self._plain(str(settings[key])) for key in ("title", "alt") if key in settings
        }
        for key in ("title", "alt"):
            if not texts.get(key):
                raise DirectiveError(f"the chart has no `{key}:`")
        for text in chart_data.labels(settings):
            self._lint(text)
        key = f"{self.page.id}-{len(self.out.slots)}"
        chart = chart_data.draw(block.argument, {**settings, **texts}, self.scope, key=key)
        return self._figure(chart.svg, "chart", settings.get("caption", ""), texts["alt"], chart.table_html)

    def _table_block(self, block: Block) -> str:
        """Rows of cells, or one row per `name` with columns that name an attribute or a key of the row.

        With `turned: true` every row becomes a column: many things said of few fit a phone that way.
        """
        if not self.has_numbers:
            return ""
        settings = self._settings(block, {"rows", "columns", "caption", "turned"})
        columns, rows = settings.get("columns"), settings.get("rows")
        if not isinstance(columns, list) or not isinstance(rows, list):
            raise DirectiveError("the table needs a list of columns and a list of rows")
        lines = [[str(c["label"] if isinstance(c, dict) else c) for c in columns]]
        for row in rows:
            cells = (
                [self._cell(row, column) for column in columns]
                if isinstance(row, dict)
                else list(map(str, row))
            )
            if len(cells) != len(columns):
                raise DirectiveError(f"a row has {len(cells)} cells for {len(columns)} columns: {cells[0]}")
            lines.append(cells)
        if settings.get("turned"):
            lines = [list(cells) for cells in zip(*lines, strict=True)]
        texts = [[self._text(cell).replace("\n", " ").replace("|", "\\|") for cell in line] for line in lines]
        rule = [" --- "] + [
            " ---: " if self._is_numeric(lines, i) else " --- " for i in range(1, len(lines[0]))
        ]
        table = ["| " + " | ".join(line) + " |" for line in texts]
        table.insert(1, "|" + "|".join(rule) + "|")
        caption = f"\n\n{self._text(settings['caption'])}\n{{: .caption }}" if settings.get("caption") else ""
        return "\n".join(table) + caption

    @staticmethod
    def _cell(row: dict[str, Any], column: dict[str, Any]) -> str:
        value = str(column["value"])
        if value in row:
            return str(row[value])
        return f"{{{{ {row['name']}.{value}:{column.get('format', '')} }}}}"

    @staticmethod
    def _is_numeric(lines: list[list[str]], column: int) -> bool:
        """A column of values is set flush right."""
        return any("{{" in line[column] for line in lines[1:])

    def _ledger_block(self, _block: Block) -> str:
        return self._slot(ledger.LEDGER_TOKEN)

    def _moved_block(self, _block: Block) -> str:
        try:
            return ledger.moved_markdown(self.course)
        except RecordError as error:
            raise DirectiveError(str(error).replace(f"{self.course.root}/", "")) from None

    def _glossary_block(self, _block: Block) -> str:
        return glossary.glossary_markdown(self.course.terms)

    def _bibliography_block(self, _block: Block) -> str:
        return bibliography.bibliography_markdown(self.course.sources)

    # --- code ----------------------------------------------------------------------------------

    def _code_cell(self, cell: Cell, outputs: list[dict[str, Any]]) -> str:
        for finding in lint.lint_python(cell.source, strings=True, keys=self.course.sources):
            self._problem(f"typed number {finding.excerpt!r} in a code cell: {finding.why}")
        self.out.cells.append(("code", (cell, outputs)))
        results = [self._output(output) for output in outputs]
        shown = "\n\n".join(result for result in results if result)
        if "hide" in cell.tags:
            return shown
        code = f"``` {{ .python }}\n{cell.source}\n```"
        if "fold" in cell.tags:
            code = _details("fold", "The code that measured this", code)
        return f"{code}\n\n{shown}" if shown else code

    def _output(self, output: dict[str, Any]) -> str:
        data = output.get("data", {})
        if MIME in data:
            return ""
        if output["output_type"] == "stream":
            return self._printed(output["text"])
        if "image/svg+xml" in data:
            return self._slot(_joined(data["image/svg+xml"]))
        if "text/html" in data:
            self._lint_output(re.sub(r"<[^>]+>", " ", _joined(data["text/html"])))
            return self._slot(
                '<div class="output scroll" tabindex="0" role="region" aria-label="Output of the cell">'
                f"{_joined(data['text/html'])}</div>"
            )
        if "text/plain" in data:
            return self._printed(data["text/plain"])
        return ""

    def _printed(self, text: Any) -> str:
        text = _joined(text).rstrip()
        self._lint_output(text)
        return fenced(text, ".text .output .no-copy")

    def _lint_output(self, text: str) -> None:
        for finding in lint.lint_output(text):
            self._problem(f"a cell prints the number {finding.excerpt!r}: record it by name instead")


_abbreviations = functools.lru_cache(maxsize=512)(glossary.abbreviations)


@functools.lru_cache(maxsize=32768)  # most of a page is as it was before the last edit
def _typed_numbers(text: str, keys: frozenset[str], **allowed: Any) -> list[lint.Finding]:
    return lint.find_typed_numbers(text, keys=keys, **allowed)


def walk_blocks(nodes: list[str | Block]) -> Iterator[Block]:
    """Every block of a tree, outer before inner."""
    for node in nodes:
        if isinstance(node, Block):
            yield node
            yield from walk_blocks(node.body)
            for part in node.parts.values():
                yield from walk_blocks(part)


def source_region(path: Path, region: str) -> tuple[str, int]:
    """Lines of a source file between `region NAME` and `endregion` comments, and the number of the first.

    Raises:
        DirectiveError: no such region.
    """
    marker = re.compile(r"\s*(?://|#)\s*(?:region (?P<name>\w+)|(?P<end>endregion)\b.*)\s*$")
    kept: list[str] = []
    first, depth_at_start, stack = 0, None, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = marker.match(line)
        if match:
            if match["name"]:
                stack.append(match["name"])
                if match["name"] == region:
                    first, depth_at_start = number + 1, len(stack)
            elif stack:
                stack.pop()
                if depth_at_start and len(stack) < depth_at_start:
                    break
            continue
        if not region or depth_at_start:
            kept.append(line)
    if region and not first:
        raise DirectiveError(f"{path.name} has no region {region!r}")
    return _dedented(kept), first or 1


def _dedented(lines: list[str]) -> str:
    """Lines without their common margin; a `#pragma`, which starts its line anyway, does not count."""
    margins = [
        len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.startswith("#pragma")
    ]
    margin = min(margins, default=0)
    return "\n".join(line if line.startswith("#pragma") else line[margin:] for line in lines).strip("\n")


def _unbroken(text: str) -> str:
    """No line ends inside `128 × 64`."""
    return re.sub(r"(?<=\d) × (?=\d)", "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}", text)


def _div(css: str, body: str, attributes: str = "") -> str:
    return f'<div class="{css}" markdown="1"{attributes}>\n\n{body.strip()}\n\n</div>'


def _details(css: str, summary: str, body: str) -> str:
    return (
        f'<details class="{css}" markdown="1">\n<summary>{summary}</summary>\n\n{body.strip()}\n\n</details>'
    )


def _quoted(text: str) -> str:
    return text.replace('"', "&quot;")


def _joined(value: Any) -> str:
    return (
        value if isinstance(value, str) else "".join(value) if isinstance(value, list) else json.dumps(value)
    )
