"""One page while it is written: prose with its values filled in, and what every block needs to write its own.

Raw HTML (charts, stamps, tables of data) never goes through the Markdown parser: a token stands in its
place and is swapped for the HTML afterwards. `Rendered.inlined()` does both for a site generator without hooks.
"""

from __future__ import annotations

import contextlib
import html
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from course_site.lint import cards, cited_figures, lint, value_words, values_in_prose
from course_site.lint.built_page import GIVEN, MADE
from course_site.pages import folded_cells
from course_site.pages.bibliography import Entry
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.build_cache import KEPT, digest
from course_site.pages.code_spans import outside_verbatim
from course_site.pages.page import Page
from course_site.pages.placeholders import PLACEHOLDER
from course_site.pages.plain_text import CITE, without_code
from course_site.pages.urls import artifact_uri, site_uri
from course_site.site import ledger
from course_site.site.course import Course
from course_site.site.editions import SiteEdition, across
from course_site.site.render.mathematics import FormulaError, mathml
from course_site.site.render.rendered import Rendered
from course_site.site.render.value_facts import Behind
from course_site.values.values import (
    MISSING,
    ExpressionError,
    NotHere,
    NotMeasuredYet,
    evaluate,
    format_value,
)

_CLASS_OF_THE_BUILD = re.compile(
    rf"class\s*=[\s\"']*(?:[\w-]+\s+)*(?:{'|'.join(sorted(MADE | GIVEN))})(?![\w-])"
    rf"|\{{:?[^{{}}\n]*\.(?:{'|'.join(sorted(MADE | GIVEN))})(?![\w-])"
)
_NO_PROSE = re.compile(
    r"<[^<>]*\s(?:on\w+|style|start|value)\s*=|javascript:|(?:[\"'(=]|url\()\s*data:", re.IGNORECASE
)
# What Markdown has no mark for. Whatever else HTML knows can show a number without saying it.
_HTML = frozenset(
    [
        "a",
        "b",
        "br",
        "code",
        "details",
        "div",
        "em",
        "i",
        "img",
        "kbd",
        "li",
        "ol",
        "p",
        "span",
        "strong",
        "sub",
        "summary",
        "sup",
        "ul",
    ]
)
_TAG = re.compile(r"</?([A-Za-z][\w:-]*)")
_LINK = re.compile(r"(?P<text>\]\()(?P<target>[^)\s#]+\.(?:py|md))(?P<rest>[#)\s])")
_ARTIFACT = re.compile(r"\[(?P<text>[^\[\]]*)\]\(artifact:(?:(?P<page>\w+)/)?(?P<name>[^)\s]*)\)")


class Writer:
    """One page of the site and what is written of it so far.

    Args:
        blocks: what each kind of block becomes: (writer, block) -> Markdown.
        shown_on: the writer of another page, on which a part of this one is shown.
    """

    def __init__(
        self,
        course: Course,
        page: Page,
        blocks: Mapping[str, Callable[..., str]],
        shown_on: Writer | None = None,
    ) -> None:
        self.course, self.page, self._blocks = course, page, blocks
        self.scope = course.scopes[page.id]
        self.out: Rendered = shown_on.out if shown_on else Rendered()
        self.shown_on: Page = shown_on.page if shown_on else page
        self.roads: list[Any] = []  # that wait for the minutes of all pages
        self.has_numbers = course.states[page.id] in ("fresh", "static")
        self.uri = posixpath.splitext(site_uri(self.shown_on.path.as_posix()))[0] + ".html"
        self.dashes = 0  # that stand for numbers which this edition does not have
        self.file = page.path.as_posix()  # that what is wrong is said of
        self.behind: Behind = Behind(course, page, shown_on.behind if shown_on else None)
        self.headers_shown: set[Path] = set()  # that stand under a diff of this page
        self.asked: dict[str, Block] = {}  # the predictions of this page, by their anchors
        self.folded_cells = folded_cells.folded(page)

    @contextlib.contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Yield texts of another file: what is wrong with them is said of that file, and not of the page."""
        before, self.file = self.file, path
        try:
            yield
        finally:
            self.file = before

    def problem(self, message: str) -> None:
        """Note something that stops the build, of the file that is being read."""
        self.course.problem(self.file, message)

    def slot(self, raw: str, words: str = "") -> str:
        """Return a token that stands for HTML; `words` say the same in the published notebook."""
        token = f"slot{len(self.out.slots)}of{self.page.id}token"
        self.out.slots[token], self.out.words[token] = raw, words
        return token

    # --- prose ---------------------------------------------------------------------------------

    def nodes(self, nodes: list[str | Block], **allowed: Any) -> str:
        """Prose and blocks as Markdown; `allowed` is what the lint lets pass here, for it alone."""
        parts = [
            self.text(node, **allowed) if isinstance(node, str) else self._block(node, **allowed)
            for node in nodes
        ]
        return "\n".join(part for part in parts if part)

    def text(self, text: str, *, unit: str = "", beside: str = "", **allowed: Any) -> str:
        """Prose: linted, links moved to site space, values filled in.

        Args:
            unit: what a column's head says of a cell.
            beside: further words that stand beside its values and may name the card that they are of.
        """
        self.lint(text, **allowed)
        self._of_one_card(text, beside)
        self.worded(text, f"{beside} {unit}")
        for fault in not_prose(text):
            self.problem(fault)
        return outside_verbatim(
            text, lambda part: self._links(self._values(_unbroken(part), unit=unit)), self._formula
        )

    def _formula(self, tex: str, displayed: bool) -> str:
        """Return a formula as MathML; the published notebook keeps its TeX."""
        try:
            drawn = mathml(tex, displayed=displayed)
        except FormulaError as error:
            self.problem(str(error))
            return ""
        mark = "$$" if displayed else "$"
        return self.slot(drawn, f"{mark}{tex}{mark}")

    def look_at(self, nodes: list[str | Block], *, recorded: bool = True) -> None:
        """Lint prose that only another edition shows.

        Args:
            recorded: its names are in this record; what rests on a guest of the race need not be.
        """

        def look(part: str) -> str:
            for match in PLACEHOLDER.finditer(part):
                self._tied(match["expression"], match["format"] or "", part[match.end() :])
                try:
                    format_value(evaluate(match["expression"], self.scope).value, match["format"] or "")
                except NotHere:
                    pass
                except ExpressionError as error:
                    if recorded:
                        self.problem(str(error))
            return part

        for text in nodes:
            if isinstance(text, str):
                self.lint(text)
                outside_verbatim(text, look)

    def _of_one_card(self, text: str, beside: str = "") -> None:
        """Note every value without the name of its card beside it, where cards stand side by side."""
        for fault in cards.faults_of_prose(str(text), self.scope, beside):
            self.problem(fault)

    def of_one_card(self, expressions: Iterable[str], beside: str) -> None:
        """Note what is wrong with the cards of values that share the words beside them."""
        for fault in cards.faults_of(expressions, beside, self.scope):
            self.problem(fault)

    def worded(self, text: str, beside: str = "") -> None:
        """Note every value that is not what the words of its sentence say."""
        for fault in value_words.faults_of_prose(str(text), self.scope, beside) if self.has_numbers else ():
            self.problem(fault)

    def lint(self, text: str, **allowed: Any) -> None:
        """Note every typed number."""
        for finding in _typed_numbers(text, frozenset(self.course.sources), **allowed):
            self.problem(f"typed number {finding.excerpt!r}: {finding.why}")
        for fault in _other_figures(text, self.course.sources) if "[^" in text else ():
            self.problem(fault)

    def lint_output(self, text: str) -> None:
        """Note every number with a performance unit that a cell prints."""
        for finding in lint.lint_output(text):
            self.problem(f"a cell prints the number {finding.excerpt!r}: record it by name instead")

    def _links(self, text: str) -> str:
        """Turn links to files of the repository, or to files that a cell made, into links of the site.

        Whose root is docs/.
        """

        def move(match: re.Match[str]) -> str:
            target = match["target"]
            if "://" in target:
                return match.group()
            here = self.page.path.parent.as_posix()
            there = posixpath.normpath(posixpath.join(here, target))
            return match["text"] + self._from_here(site_uri(there)) + match["rest"]

        if self.shown_on != self.page:
            text = text.replace("](#", f"]({self.page.path.name}#")
        return _LINK.sub(move, _ARTIFACT.sub(self._artifact, text))

    def _from_here(self, uri: str) -> str:
        """Return the way to a file of the site's source from the page that is read."""
        return posixpath.relpath(uri, posixpath.dirname(site_uri(self.shown_on.path.as_posix())) or ".")

    def _artifact(self, link: re.Match[str]) -> str:
        """Return a link to a file that a record seals, with its size behind it; the words alone while there is none."""
        page_id = link["page"] or self.page.id
        if page_id not in self.course.states:
            self.problem(f"{link.group()}: there is no page with the id {page_id!r}")
            return link["text"]
        if not self.course.has_numbers(page_id):
            return link["text"]
        found = self.course.artifacts(page_id)
        if link["name"] not in found:
            known = ", ".join(found) or "none"
            self.problem(f"{link.group()}: the record of {page_id} has no such file; it has {known}")
            return link["text"]
        said = self.course.records[page_id].artifacts[link["name"]]
        uri = artifact_uri(self.course.page(page_id).path.as_posix(), link["name"])
        size = f'<span class="value" title="sha256 {said["sha256"]}">{size_in_words(said["bytes"])}</span>'
        return f"[{link['text']}]({self._from_here(uri)}) ({size})"

    def _values(self, text: str, *, plain: bool = False, unit: str = "") -> str:
        lines, at = [], 0
        for line in text.split("\n"):
            as_text = plain or line.startswith("#")  # a heading also becomes a title and an anchor

            def fill(match: re.Match[str], as_text: bool = as_text, at: int = at) -> str:
                behind = text[at + match.end() :] + unit
                self._tied(match["expression"], match["format"] or "", behind)
                return self._value(match["expression"], match["format"] or "", plain=as_text)

            lines.append(PLACEHOLDER.sub(fill, line))
            at += len(line) + 1
        return "\n".join(lines)

    def _tied(self, expression: str, spec: str, behind: str) -> None:
        """Note a value that is not what the words around it say."""
        if self.has_numbers:
            for fault in values_in_prose.faults_of(expression, spec, behind, self.scope):
                self.problem(f"{{{{ {expression}:{spec} }}}}: {fault}")

    def value(self, expression: str, spec: str) -> str:
        """Return a value as prose shows it, with its link to the ledger."""
        return self._value(expression, spec, plain=False)

    def address(self, uri: str) -> str:
        """Return the address of a file of this edition, from this page."""
        return across(self.course.here, self.uri, self.course.here, uri)

    def shared(self, uri: str) -> str:
        """Return the address of a file that all editions of the site share, from this page."""
        return posixpath.relpath(uri, posixpath.dirname(self.course.here.address(self.uri)) or ".")

    def in_edition(self, edition: SiteEdition, uri: str = "") -> str:
        """Return the address of a page in another edition, from this page; of this page if none is named."""
        return across(self.course.here, self.uri, edition, uri or self.uri)

    def _value(self, expression: str, spec: str, *, plain: bool) -> str:
        try:
            result = evaluate(expression, self.scope)
            text = format_value(result.value, spec)
        except NotHere:
            return self._missing(plain=plain)
        except ExpressionError as error:
            self.problem(str(error))
            return MISSING
        if self.shown_on == self.page:  # else its own page says that it shows it
            self.out.shown[expression] = text
        if plain:
            return text
        about = html.escape(ledger.about(self.course, self.page, expression, result))
        row = ledger.anchor(self.course, self.page, result)
        of = f' data-of="{self.behind.place_of(expression, result)}"' if result.names else ""
        if not row:
            return f'<span class="value"{of} title="{about}">{html.escape(text)}</span>'
        there = self.address(row)
        return f'<a class="value" href="{there}"{of} title="{about}">{html.escape(text)}</a>'

    def _missing(self, *, plain: bool) -> str:
        """Return the dash that stands where this edition has no number; the head of the page says what it means."""
        if plain or self.course.is_reference:
            return MISSING
        self.dashes += 1
        said = html.escape(f"Not measured on the {self.course.here.name}")
        return f'<span class="missing" title="{said}">{MISSING}</span>'

    def plain(self, text: str, **allowed: Any) -> str:
        """Alternative text, titles, captions: linted, with values as plain text."""
        self.lint(text, **allowed)
        self._of_one_card(text)
        self.worded(text)
        return self._values(str(text), plain=True)

    def question(self, text: str, *, element: str = "p", **allowed: Any) -> str:
        """Return the line that a prediction, an exercise or a lab begins with, as HTML: linted, with its values."""
        self.lint(text, **allowed)
        self._of_one_card(text)
        self.worded(text)
        return f'<{element} class="ask">{self._values(html.escape(text))}</{element}>'

    # --- blocks --------------------------------------------------------------------------------

    def _block(self, block: Block, **allowed: Any) -> str:
        """Return a block as Markdown; of all blocks only a callout says what the block around it may say."""
        becomes = self._blocks[block.kind]
        try:
            more = allowed if block.kind == "callout" else {}
            return f"\n{becomes(self, block, **more)}\n"
        except DirectiveError as error:
            self.wrong(block, str(error))
        except NotMeasuredYet:
            pass
        except NotHere as error:
            return "\n" + div("banner reference", f"Not on this card: {error}.") + "\n"
        except ExpressionError as error:
            self.wrong(block, str(error))
        return ""

    def part(self, page: Page, block: Block) -> str:
        """Return a block of another page as it stands there, with that page's values and links."""
        guest = Writer(self.course, page, self._blocks, shown_on=self)
        shown = guest._block(block)
        self.dashes += guest.dashes
        return shown

    def wrong(self, block: Block, message: str) -> None:
        """Note what is wrong with a block, and in which line of the page it begins."""
        head = f"/// {block.kind} | {block.argument}"
        before, found, _ = (self.course.root / self.page.path).read_text(encoding="utf-8").partition(head)
        where = f" (line {before.count(chr(10)) + 1})" if found else ""
        self.problem(f"{head}: {message}{where}")

    def figure(self, svg: str, css: str, caption: str, alt: str, data: str = "") -> str:
        """Return a picture; its caption stays Markdown, so that it can cite and show values."""
        below = f"\n\n{self.text(str(caption))}\n{{: .caption }}" if caption else ""
        token = self.slot(f'<figure class="{css}">{svg}{data}</figure>')
        self.out.pictures[token] = svg, alt
        return token + below


def _typed_numbers(text: str, keys: frozenset[str], **allowed: Any) -> list[lint.Finding]:
    name = digest("text", text, sorted(keys), sorted(allowed.items()))  # most of a page is as it was before
    if KEPT.is_clean(name):
        return []
    found = lint.find_typed_numbers(text, keys=keys, **allowed)
    if not found:
        KEPT.clean(name)
    return found


def _other_figures(text: str, sources: Mapping[str, Entry]) -> list[str]:
    known = {key: sources[key].figures for key in sorted(set(CITE.findall(text)) & sources.keys())}
    name = digest("figures", text, sorted(known.items()))
    if KEPT.is_clean(name):
        return []
    found = list(cited_figures.faults_of(text, sources))
    if not found:
        KEPT.clean(name)
    return found


def size_in_words(size: int) -> str:
    """Return bytes as a reader says them."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def not_prose(text: str) -> Iterator[str]:
    """Yield what is wrong with the HTML in some Markdown: what only the build writes, or what can hide a number."""
    for found in _CLASS_OF_THE_BUILD.finditer(text):
        yield f"{found[0]!r}: only the build gives this class, to what comes from a record"
    for found in _NO_PROSE.finditer(text):
        yield f"{found[0]!r}: prose has no styles and runs nothing"
    for tag in sorted({name.lower() for name in _TAG.findall(without_code(text))} - _HTML):
        yield f"<{tag}>: prose knows {', '.join(sorted(_HTML))}; say the rest in Markdown or in a block"


def _unbroken(text: str) -> str:
    """No line ends inside `128 × 64`."""
    return re.sub(r"(?<=\d) × (?=\d)", "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}", text)


def div(css: str, body: str, attributes: str = "") -> str:
    """Markdown in an element of its own."""
    return f'<div class="{css}" markdown="1"{attributes}>\n\n{body.strip()}\n\n</div>'


def details(css: str, summary: str, body: str) -> str:
    """Markdown that is folded away."""
    return (
        f'<details class="{css}" markdown="1">\n<summary>{summary}</summary>\n\n{body.strip()}\n\n</details>'
    )
