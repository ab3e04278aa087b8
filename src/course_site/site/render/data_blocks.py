"""Blocks that depend on what was recorded: claims, definitions, charts, tables, texts."""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Callable
from typing import Any, TypeVar

from course_site.charts.data import SETTINGS, draw, drawn_beside, labels
from course_site.lint import cards, chart_words, claim_words, lint
from course_site.lint.values_in_prose import defined_faults, unit_of_head
from course_site.pages import blocks
from course_site.pages.block_settings import CELL, COUNT, FLAG, ROW, TEXT, WORD, Shape, read
from course_site.pages.blocks import Block, DirectiveError, walk_blocks
from course_site.pages.fences import fenced
from course_site.pages.parts import part_of
from course_site.pages.placeholders import expressions
from course_site.pages.plain_text import CITE
from course_site.pages.urls import address_from
from course_site.site.course import Problem
from course_site.site.editions import SIDE_BY_SIDE
from course_site.site.render.code import what_no_output_has
from course_site.site.render.writer import Writer, details, div
from course_site.values import claims
from course_site.values.condition_text import in_words
from course_site.values.values import Define, ExpressionError, NotHere, NotMeasuredYet, Scope, evaluate, parse

# Where readers are told what happens to a sentence whose condition is false.
WHEN_A_CLAIM_FAILS = "docs/how_we_measure.py#when-a-sentence-fails"

Found = TypeVar("Found")


def _asked(ask: Callable[[str, Scope], Found], writer: Writer, block: Block) -> Found | None:
    """Return what the record says of a block's condition; None where it holds no number of it, now or on this card."""
    if not writer.has_numbers:
        return None
    try:
        return ask(block.argument, writer.scope)
    except NotHere:
        return None


def claim(writer: Writer, block: Block) -> str:
    """Return a sentence with its condition; where that is false here, what is said instead."""
    verdict = _asked(claims.judge, writer, block)
    if verdict is None:
        return waits(block) if writer.has_numbers and writer.page.id == SIDE_BY_SIDE else ""
    allowed = {"in_claim": True, "condition": block.argument}
    writer.of_one_card([block.argument], " ".join(text for text in block.body if isinstance(text, str)))
    gates = writer.course.is_reference
    if verdict.vacuous and gates and not writer.course.rebuilt:
        writer.problem(verdict.why)
    for text in block.body:
        if isinstance(text, str):
            for found in lint.find_typed_numbers(text, keys=frozenset(writer.course.sources)):
                if why := claims.unspoken(found.excerpt, block.argument, writer.scope):
                    writer.problem(f"claim `{block.argument}`: {why}")
            for why in claims.others_named(text, block.argument, writer.scope):
                writer.problem(f"claim `{block.argument}`: {why}")
            for why in claim_words.faults_of(text, block.argument, writer.scope):
                writer.problem(f"claim `{block.argument}`: {why}")
    for text in block.parts.get("otherwise", []):
        for why in claim_words.faults_of_otherwise(text) if isinstance(text, str) else ():
            writer.problem(f"claim `{block.argument}`, otherwise: {why}")
    if verdict.holds:
        writer.look_at(block.parts.get("otherwise", []))
        body = writer.nodes(block.body, **allowed)
        condition = f' data-condition="{html.escape(verdict.condition)}"'
        return div("claim", f"{_mark(writer, verdict)}\n\n{body}", condition)
    if verdict.undecided and writer.course.rebuilt:
        # Somebody's own measuring on this model: the sentence says that it could not be decided.
        writer.course.undecided.append(Problem(writer.page.path.as_posix(), verdict.why))
    elif gates:
        writer.problem(verdict.why)
    if "otherwise" in block.parts:
        return div("claim otherwise", writer.nodes(block.parts["otherwise"]))
    body = writer.nodes(block.body, **allowed).strip()
    said = "Too close to call on this run" if verdict.undecided else "Not on this card"
    return div("claim otherwise", f"*{said}:* {body}")


def waits(block: Block) -> str:
    """Return what stands in the place of a comparison of two cards while one of them has no number for it."""
    lead = re.match(r"\s*\*\*([^*.,]+)", next(text for text in block.body if isinstance(text, str)))
    about = f"**{lead[1]}.** " if lead else ""
    return div(
        "claim otherwise", f"{about}One of the two cards has not measured this since the code changed."
    )


def _mark(writer: Writer, verdict: claims.Verdict) -> str:
    """Return the word *tested* beside a claim.

    With it come what the build tests, in words, and a link to what happens when it fails.
    """
    told = [f"{part[0].upper()}{part[1:]}." for part in in_words(verdict.condition, writer.scope)]
    told.append(f"True in {verdict.support:.1%} of the resamples, which imitate further runs.")
    said = "&#10;".join(map(html.escape, told))  # a line for each: popover.js makes a list of them
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    there = address_from(writer.shown_on.path.as_posix(), pages)(WHEN_A_CLAIM_FAILS)
    link = f' href="{there}"' if there else ""
    return writer.slot(f'<a class="tested"{link} title="{said}" data-search-exclude>tested</a>')


def when(writer: Writer, block: Block) -> str:
    """Prose that depends on a recorded fact; where this card has not measured it, the `otherwise` stands."""
    if not writer.has_numbers:
        return ""
    try:
        true = claims.is_so(block.argument, writer.scope)
    except NotMeasuredYet:
        true = False
    except NotHere:
        return ""
    shown, other = block.body, block.parts.get("otherwise", [])
    writer.of_one_card([block.argument], " ".join(text for text in [*shown, *other] if isinstance(text, str)))
    if not true:
        shown, other = other, shown
    writer.look_at(other, recorded=False)
    return writer.nodes(shown)


def define_all(writer: Writer) -> None:
    """Note what the page defines; a cell that cannot be read is reported when it is rendered."""
    for cell in writer.page.cells:
        if cell.kind == "markdown":
            with contextlib.suppress(DirectiveError):
                for block in walk_blocks(blocks.parse(cell.source)):
                    if block.kind == "define":
                        _note(writer, block)


def _note(writer: Writer, block: Block) -> None:
    name, equals, expression = block.argument.partition("=")
    if not equals or not all(part.isidentifier() for part in name.strip().split(".")):
        writer.wrong(block, "write `/// define | name = expression`")
        return
    try:
        settings = read(block.text, {"unit?": WORD, "what?": TEXT})
    except DirectiveError as error:
        writer.wrong(block, str(error))
        return
    fault = _not_a_definition(writer, name.strip(), expression, settings)
    if fault:
        writer.wrong(block, fault)
        return
    if name.strip() in writer.scope.defines:
        writer.wrong(block, f"{name.strip()!r} is defined twice")
        return
    writer.scope.defines[name.strip()] = Define(
        name.strip(),
        expression.strip(),
        str(settings.get("unit", "1")),
        CITE.sub("", writer.plain(settings.get("what", ""))).strip(),
    )


def _not_a_definition(writer: Writer, name: str, expression: str, settings: dict[str, Any]) -> str:
    """Return why a name may not be defined so; empty where it may."""
    if writer.has_numbers:
        with contextlib.suppress(ExpressionError):
            writer.scope.resolve(name)
            if name not in writer.scope.defines:
                return f"{name!r} is recorded; give what you define a name of its own"
    cited = any(key in writer.course.sources for key in CITE.findall(str(settings.get("what", ""))))
    with contextlib.suppress(ExpressionError):
        if not parse(expression).names and not cited:
            return "it has no name in it: record the number, or cite its source in `what:` with [^key]"
    return ""


def define(writer: Writer, block: Block) -> str:
    """Define a name of the page's own, which shows nothing.

    It is worked out here, so that it cannot be wrong unseen.
    """
    name = block.argument.partition("=")[0].strip()
    if writer.has_numbers and name in writer.scope.defines:
        evaluate(name, writer.scope)
        found = writer.scope.defines[name]
        for fault in defined_faults(found, writer.scope):
            raise DirectiveError(fault)
    return ""


def chart(writer: Writer, block: Block) -> str:
    """Return a chart of recorded values, with its folded table."""
    if not writer.has_numbers:
        return div("banner waiting", "A chart will appear here once this page is measured.")
    if block.argument not in SETTINGS:
        raise DirectiveError(f"unknown kind of chart; known: {', '.join(SETTINGS)}")
    settings = read(block.text, SETTINGS[block.argument])
    texts: dict[str, Any] = {key: writer.plain(settings[key]) for key in ("title", "alt")}
    for text in labels(settings):
        writer.lint(text)
    texts |= {
        key: [_filled(writer, item) for item in value]
        for key, value in settings.items()
        if isinstance(value, list)
    }
    for drawn_ones, beside in drawn_beside(settings, writer.scope):
        writer.of_one_card(drawn_ones, beside)
        for expression in drawn_ones:
            writer.worded(f"{{{{ {expression} }}}}", beside)
    key = f"{writer.page.id}-{len(writer.out.slots)}"
    drawn = draw(block.argument, {**settings, **texts}, writer.scope, key=key)
    found = chart_words.faults_of_chart(settings, writer.scope)
    for fault in [*found, *chart_words.faults_of_alt(settings, writer.scope)]:
        writer.problem(f"/// chart | {block.argument}: {fault}")
    return writer.figure(drawn.svg, "chart", settings.get("caption", ""), texts["alt"], drawn.table_html)


def _filled(writer: Writer, item: Any) -> Any:
    """Return a bar or a line with the values of its label and its note filled in: a card's name is one."""
    if not isinstance(item, dict):
        return item
    shown = {key: item[key] for key in ("label", "note") if "{{" in str(item.get(key, ""))}
    return item | {key: writer.plain(value) for key, value in shown.items()}


def text(writer: Writer, block: Block) -> str:
    """Return a recorded text as it stands, line by line: nothing in it is taken for Markdown, HTML or a value.

    `fold` is what a reader unfolds to see it.
    """
    settings = read(block.text, {"fold?": TEXT})
    found = evaluate(block.argument, writer.scope).value
    if not isinstance(found, str):
        raise DirectiveError("is not text: show a number with {{ … }}")
    writer.of_one_card([block.argument], found)
    for wrong in what_no_output_has(found):
        writer.problem(f"/// text | {block.argument}: has {wrong!r} in it, which nobody may publish")
    shown = fenced(found.strip("\n"), ".text .output .no-copy")
    return (
        details("fold", html.escape(writer.plain(settings["fold"])), shown) if "fold" in settings else shown
    )


_COLUMN: dict[str, Shape] = {"label": CELL, "value": TEXT, "format?": WORD}
TABLE: dict[str, Shape] = {
    "columns": [(_COLUMN, CELL)], "rows": [([CELL], ROW)], "caption?": TEXT, "turned?": FLAG
}  # fmt: skip


def table(writer: Writer, block: Block) -> str:
    """Return rows of cells, or one row per `name` with columns that name an attribute or a key of the row.

    With `turned: true` every row becomes a column: many things said of few fit a phone that way.
    """
    if not writer.has_numbers:
        return ""
    settings = read(block.text, TABLE)
    columns, rows = settings["columns"], settings["rows"]
    lines = [[str(c["label"] if isinstance(c, dict) else c) for c in columns]]
    for row in rows:
        cells = [_cell(row, column) for column in columns] if isinstance(row, dict) else list(map(str, row))
        if len(cells) != len(columns):
            raise DirectiveError(f"a row has {len(cells)} cells for {len(columns)} columns: {cells[0]}")
        lines.append(cells)
    for cells in lines[1:]:
        for fault in chart_words.faults_of_row(lines[0], cells, writer.scope):
            writer.problem(f"/// table: {fault}")
    for fault in chart_words.faults_of_table(lines[0], str(settings.get("caption", ""))):
        writer.problem(f"/// table: {fault}")
    units = [unit_of_head(head) for head in lines[0]]
    rows_alike = cards.alike((expressions(" ".join(line)) for line in lines), writer.scope)
    shared = str(settings.get("caption", "")) if rows_alike else ""
    texts = [
        [
            writer.text(cell, unit=unit, beside=f"{' '.join(line)} {head} {shared}")
            .replace("\n", " ")
            .replace("|", "\\|")
            for cell, unit, head in zip(line, units, lines[0], strict=True)
        ]
        for line in lines
    ]
    if settings.get("turned"):
        lines, texts = ([list(cells) for cells in zip(*rows, strict=True)] for rows in (lines, texts))
    rule = [" --- "] + [" ---: " if _is_numeric(lines, i) else " --- " for i in range(1, len(lines[0]))]
    table = ["| " + " | ".join(line) + " |" for line in texts]
    table.insert(1, "|" + "|".join(rule) + "|")
    caption = f"\n\n{writer.text(settings['caption'])}\n{{: .caption }}" if settings.get("caption") else ""
    return "\n".join(table) + caption


def _cell(row: dict[str, Any], column: Any) -> str:
    if not isinstance(column, dict):
        raise DirectiveError(f"a row of `key: value` needs columns with a `value:`, and {column!r} has none")
    value = str(column["value"])
    if value in row:
        return str(row[value])
    if "name" not in row:
        raise DirectiveError(f"a row has neither {value!r} nor a `name:`")
    return f"{{{{ {row['name']}.{value}:{column.get('format', '')} }}}}"


def _is_numeric(lines: list[list[str]], column: int) -> bool:
    """Return whether a column holds values: it is set flush right."""
    return any("{{" in line[column] for line in lines[1:])


def part(writer: Writer, block: Block) -> str:
    """Return a block of another page, and a line that leads to where it stands there."""
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    settings = read(block.text, {"which?": COUNT})
    page, heading, found = part_of(block.argument, settings.get("which", 1), pages)
    if page == writer.page:
        raise DirectiveError("is a part of this page")
    if found.kind != "figure" and writer.course.is_absent(page.id):
        raise NotHere(f"what {page.title} has measured")
    place = block.argument.rpartition("|")[0].strip()
    there = address_from(writer.page.path.as_posix(), pages)(place)
    name = f"{page.meta.get('nav', page.title)}: {heading}" if heading != page.title else page.title
    link = f'<a href="{there}">{html.escape(name)}</a>' if there else html.escape(name)
    return f"{writer.part(page, found)}\n\nFrom {link}\n{{: .caption .from }}"
