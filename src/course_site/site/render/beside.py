"""Two files that say the same in two languages, side by side and folded: `/// beside | FILE | FILE`."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from course_site.pages import beside as lines
from course_site.pages import diffs
from course_site.pages.beside import Pair
from course_site.pages.block_settings import TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.fences import LANGUAGES
from course_site.pages.urls import shown_file
from course_site.site.render.writer import Writer

STYLE = "assets/css/rungs.css"
# Where one language says nothing: the line stays empty as long as the other one stands beside it.
GAP = '<i class="gap">\n</i>'


def beside(writer: Writer, block: Block) -> str:
    """Return the lines of two files after their heads, each beside the one that says the same."""
    settings = read(block.text, {"title": TEXT, "left": TEXT, "right": TEXT})
    try:
        files = [shown_file(writer.course.root, name.strip()) for name in block.argument.split("|")]
    except ValueError as error:
        raise DirectiveError(str(error)) from None
    if len(files) != 2:
        raise DirectiveError("needs two files: `/// beside | FILE | FILE`")
    sides = [lines.body(file.read_text(encoding="utf-8")) for file in files]
    texts = [side for _, side in sides]
    colours = [_coloured(file, text) for file, text in zip(files, texts, strict=True)]
    title = html.escape(writer.plain(settings["title"]))
    names = [html.escape(writer.plain(settings[side])) for side in ("left", "right")]
    rows = ""
    for number, piece in enumerate(lines.parts(lines.paired(*texts), *texts)):
        cells = "".join(
            _cell(piece, side, colours[side], names[side] if number == 0 else "", sides[side][0])
            for side in (0, 1)
        )
        rows += f'<div class="idea">{cells}</div>'
    return writer.slot(
        f'<details class="fold"><summary>{title}</summary><link rel="stylesheet" href="{writer.shared(STYLE)}">'
        f'<div class="rungs" role="group" aria-label="{title}" data-search-exclude>{rows}</div></details>',
        f"{settings['title']}: `{files[0].name}` and `{files[1].name}`",
    )


def _coloured(file: Path, text: Sequence[str]) -> list[str]:
    language = (
        LANGUAGES.get(file.suffix) or file.suffix[1:]
    )  # what only this page shows is called as its files end
    return diffs.coloured("\n".join(text), language)


def _cell(piece: Sequence[Pair], side: int, colours: Sequence[str], name: str, first: int) -> str:
    shown = [GAP if (line := pair[side]) is None else f"{colours[line]}\n" for pair in piece]
    numbers = [pair[side] for pair in piece if pair[side] is not None]
    head = f'<span class="rung">{name}</span>' if name else ""
    if not numbers:
        return f'<div class="side highlight no-copy">{head}</div>'
    low, high = first + numbers[0] + 1, first + numbers[-1] + 1  # type: ignore[operator]
    lines_ = f"{low}" if low == high else f"{low}–{high}"
    return (
        f'<div class="side highlight no-copy">{head}<span class="from">{lines_}</span>'
        f"<pre><code>{''.join(shown)}</code></pre></div>"
    )
