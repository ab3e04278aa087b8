"""Code cells and what they left: printed text, pictures, tables."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from course_site.lint import lint
from course_site.pages.build_cache import KEPT, digest
from course_site.pages.fences import fenced
from course_site.pages.page import Cell
from course_site.records.record import MIME
from course_site.site.render.exercises import covered
from course_site.site.render.writer import Writer, details

_RUNS = re.compile(r"<\s*(?:script|iframe|object|embed)\b|<[^>]*\son\w+\s*=|javascript:", re.IGNORECASE)
_MACHINE_PATH = re.compile(r"(?<![\w./])/(?:root|home|tmp|work|mnt|workspace|Users)/[\w./-]*")


def code_cell(writer: Writer, cell: Cell, outputs: list[dict[str, Any]], answers: str = "") -> str:
    """Return a cell as its page shows it, and the outputs that its record has.

    Args:
        answers: the names of the predictions that these outputs answer.
    """
    keys = writer.course.sources
    name = digest("cell", cell.source, sorted(keys))
    if not KEPT.is_clean(name):
        found = lint.lint_python(cell.source, strings=True, keys=keys)
        for finding in found:
            writer.problem(f"typed number {finding.excerpt!r} in a code cell: {finding.why}")
        if not found:
            KEPT.clean(name)
    writer.out.cells.append(("code", (cell, outputs)))
    results = [_output(writer, output) for output in outputs]
    shown = "\n\n".join(result for result in results if result)
    if answers:
        shown = covered(writer, shown, answers)
    if "hide" in cell.tags:
        return shown
    code = f"``` {{ .python }}\n{cell.source}\n```"
    if cell in writer.folded_cells:
        done = "measured this" if writer.page.measures else "worked this out"
        code = details("fold harness", f"The code that {done}", code)
    return f"{code}\n\n{shown}" if shown else code


def _output(writer: Writer, output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if MIME in data:
        return ""
    for text in (output.get("text"), *data.values()):
        for wrong in what_no_output_has(_joined(text or "")):
            writer.problem(f"a cell's output has {wrong!r} in it, which nobody may publish")
    if output["output_type"] == "stream":
        return _printed(writer, output["text"])
    if "image/svg+xml" in data:
        for word in re.findall(r">([^<]+)<", _joined(data["image/svg+xml"])):
            writer.lint_output(html.unescape(word))
        return writer.slot(_joined(data["image/svg+xml"]))
    if "text/html" in data:
        writer.lint_output(html.unescape(re.sub(r"<[^>]+>", " ", _joined(data["text/html"]))))
        return writer.slot(
            '<div class="output scroll" tabindex="0" role="region" aria-label="Output of the cell">'
            f"{_joined(data['text/html'])}</div>"
        )
    if "text/plain" in data:
        return _printed(writer, data["text/plain"])
    return ""


def what_no_output_has(text: str) -> Iterator[str]:
    """Yield what runs in a browser, and paths of the machine that measured."""
    yield from (found[0].strip() for found in _RUNS.finditer(text))
    yield from (found[0] for found in _MACHINE_PATH.finditer(text))


def _printed(writer: Writer, text: Any) -> str:
    text = _joined(text).rstrip()
    writer.lint_output(text)
    return fenced(text, ".text .output .no-copy")


def _joined(value: Any) -> str:
    return (
        value if isinstance(value, str) else "".join(value) if isinstance(value, list) else json.dumps(value)
    )
