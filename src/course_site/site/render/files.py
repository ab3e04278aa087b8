"""Blocks that show a file of the repository: a source, what changed between two, a picture."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path

from course_kernels.cuda.includes import IncludeRefused, sources_of
from course_site.charts.data import inline_svg
from course_site.pages import diffs
from course_site.pages.block_settings import COUNT, FLAG, TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.fences import LANGUAGES, fenced
from course_site.pages.urls import shown_file
from course_site.site.render.writer import Writer, details


def source(writer: Writer, block: Block) -> str:
    """Return a source file, or a region of one; `fold` is what a reader unfolds to see it, `size` adds its lines.

    What a stranger wrote is kept as text, and shown in the colours of what it was written in: `.py.txt`.
    """
    name, _, region = block.argument.partition("#")
    settings = read(block.text, {"title?": TEXT, "lines?": FLAG, "fold?": TEXT, "size?": FLAG})
    path = _file(writer, name)
    text, first = source_region(path, region)
    title = writer.plain(settings.get("title", name))
    numbers = f' linenums="{first}"' if settings.get("lines") else ""
    suffix = Path(path.stem).suffix if path.suffix == ".txt" else path.suffix
    language = LANGUAGES.get(suffix, "text")
    listing = fenced(text, f'.{language} title="{_quoted(title)}"{numbers}')
    summary = html.escape(writer.plain(settings["fold"])) if settings.get("fold") else ""
    if settings.get("size"):
        summary = f"{summary}: {len(text.splitlines())} lines"
    return details("fold", summary, listing) if summary else listing


def diff(writer: Writer, block: Block) -> str:
    """Return what changed from one file to another, and the headers that the two include, each once on a page.

    `headers: false` names the headers in a line, with their paths, and shows none of them here or further down.
    """
    settings = read(
        block.text, {"title?": TEXT, "open?": FLAG, "region?": TEXT, "context?": COUNT, "headers?": FLAG}
    )
    names = [name.strip() for name in block.argument.split("|")]
    if len(names) != 2:
        raise DirectiveError("write `/// diff | PATH | PATH`, the older file first")
    region, context = str(settings.get("region", "")), settings.get("context", 3)
    is_open = settings.get("open")
    texts: list[str] = []
    paths = [_file(writer, name) for name in names]
    language = LANGUAGES.get(paths[1].suffix, "text")
    for path in paths:
        text, _ = source_region(path, region)
        texts.append(text if region else diffs.without_head(text, language))
    before, after = texts
    changes = diffs.compare(before, after, indents=language == "python", context=context)
    if not changes.lines_out + changes.lines_in:
        raise DirectiveError("nothing changed between the two but names, blanks and the comment at the head")

    same_folder = paths[0].parent == paths[1].parent
    was, becomes = (path.name if same_folder else f"{path.parent.name}/{path.name}" for path in paths)
    label = f"From {was} to {becomes}: {changes.words}"
    summary = f"From <code>{was}</code> to <code>{becomes}</code>: {changes.words}"
    if settings.get("title"):
        summary = f"{html.escape(writer.plain(settings['title']))}: {changes.words}"
    unfolded = not changes.is_long if is_open is None else is_open
    listing = diffs.as_html(changes, before, after, language, label)
    changed = writer.slot(
        f'<details class="fold diff"{" open" * unfolded}><summary>{summary}</summary>{listing}</details>',
        f"{label}\n\n{fenced(diffs.as_text(changes, before, after), '.diff')}",
    )
    headers = list(_new_headers(writer, paths))
    if settings.get("headers", True):
        return "\n\n".join([changed, *map(_whole, headers)])
    named = ", ".join(f"`{header.relative_to(writer.course.root.resolve())}`" for header in headers)
    return f"{changed}\n\nWhat they include, not shown here: {named}." if named else changed


def _whole(header: Path) -> str:
    """Return a header, folded.

    Its first comment stays: it says what the functions promise, and a kernel that includes it does not.
    """
    text, _ = source_region(header, "")
    return details("fold", f"What it includes: <code>{header.name}</code>", fenced(text, ".cuda"))


def _new_headers(writer: Writer, paths: list[Path]) -> Iterator[Path]:
    """Each header of the project that the files include and that belongs to no diff above on this page."""
    root = writer.course.root.resolve()
    for path in paths:
        if path.suffix not in (".cu", ".cuh"):
            continue
        try:
            included = sources_of(path)[1:]
        except (FileNotFoundError, IncludeRefused) as error:
            raise DirectiveError(str(error).replace(f"{root}{os.sep}", "")) from None
        for header in included:
            if header in writer.headers_shown:
                continue
            writer.headers_shown.add(header)
            yield header.resolve()


def figure(writer: Writer, block: Block) -> str:
    """Return a picture that lies in the repository."""
    settings = read(block.text, {"alt": TEXT, "caption?": TEXT})
    path = _file(writer, block.argument)
    alt = writer.plain(settings["alt"])
    svg = picture(path, alt, f"{writer.page.id}-{path.stem}")
    return writer.figure(svg, "picture", settings.get("caption", ""), alt)


def picture(path: Path, alt: str, key: str) -> str:
    """Return an SVG file, ready to stand inside a page.

    Raises:
        DirectiveError: it is no picture, or more than one: it runs or fetches something.
    """
    try:
        return inline_svg(path.read_text(encoding="utf-8"), alt, key)
    except ValueError as error:
        raise DirectiveError(f"{path.name}: {error}") from None


def _file(writer: Writer, name: str) -> Path:
    try:
        return shown_file(writer.course.root, name)
    except ValueError as error:
        raise DirectiveError(str(error)) from None


def source_region(path: Path, region: str) -> tuple[str, int]:
    """Return lines of a source file between `region NAME` and `endregion` comments, and the number of the first.

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
    """Return lines without their common margin; a `#pragma`, which starts its line anyway, does not count."""
    margins = [
        len(line) - len(line.lstrip()) for line in lines if line.strip() and not line.startswith("#pragma")
    ]
    margin = min(margins, default=0)
    return "\n".join(line if line.startswith("#pragma") else line[margin:] for line in lines).strip("\n")


def _quoted(text: str) -> str:
    return text.replace('"', "&quot;")
