"""Pages: percent scripts and Markdown files, found by where they lie, read into cells.

Knows nothing of MkDocs and nothing of records.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from course_site.pages.needs import fault_of

PAGE_FOLDERS = ("docs", "handbook")
KNOWN_KEYS = frozenset(
    {"id", "title", "description", "needs", "hide", "template", "search", "section", "order", "nav", "pages"}
)


class PageError(ValueError):
    """A page file that cannot be read: one line, with the file and the cause."""


@dataclass(frozen=True)
class Cell:
    """One cell of a page: `kind` is "markdown" or "code"; `line` counts from 1 in the file, 0 if unknown."""

    kind: str
    source: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page of the site.

    Attributes:
        path: place in the repository, e.g. docs/workshops/w1_flash_attention.py.
        id: the name other pages quote it by.
        needs: what it asks of the machine it is measured on, see `needs`; a page that asks for nothing measures
            nothing. `compiler` is for what a CUDA compiler says, which is a fact of the edition's versions.
        cells: prose and code in order; a Markdown page is one prose cell.
    """

    path: Path
    id: str
    title: str
    description: str = ""
    needs: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)
    cells: tuple[Cell, ...] = ()

    @cached_property
    def code(self) -> list[Cell]:
        """The code cells, in order."""
        return [cell for cell in self.cells if cell.kind == "code"]

    @property
    def runs(self) -> bool:
        """True for a page with something to execute."""
        return bool(self.code)

    @property
    def measures(self) -> bool:
        """True for a page that needs something of a GPU machine; the others are executed wherever the site is built."""
        return self.runs and bool(self.needs)


def find_pages(root: Path) -> list[Page]:
    """Return every page under docs/ and handbook/, in the order of their paths.

    Raises:
        PageError: a head is missing or wrong, or two pages share an id.
    """
    pages = []
    for folder in PAGE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
            if path.suffix in (".py", ".md") and path.is_file() and not hidden and "assets" not in path.parts:
                pages.append(read_page(path, root))
    seen: dict[str, Path] = {}
    for page in pages:
        if page.id in seen:
            raise PageError(f"{page.path}: id {page.id!r} is already the id of {seen[page.id]}")
        seen[page.id] = page.path
    return pages


def read_page(path: Path, root: Path) -> Page:
    """Read one page.

    Raises:
        PageError: no YAML head, an unknown key in it, or an id that is not a Python identifier.
    """
    relative = path.relative_to(root)
    text = path.read_text(encoding="utf-8")
    head, cells = _read_markdown(text) if path.suffix == ".md" else _read_script(text)
    if head is None:
        raise PageError(f"{relative}: no YAML head (id, title) at the top")
    try:
        meta = yaml.load(head, yaml.CSafeLoader) or {}
    except yaml.YAMLError as error:
        raise PageError(f"{relative}: the head is not YAML: {str(error).splitlines()[0]}") from None
    unknown = sorted(set(meta) - KNOWN_KEYS)
    if unknown:
        raise PageError(f"{relative}: unknown key in the head: {', '.join(unknown)}")
    for key in ("id", "title"):
        if not isinstance(meta.get(key), str):
            raise PageError(f"{relative}: the head needs {key!r}")
    if not meta["id"].isidentifier():
        raise PageError(f"{relative}: id {meta['id']!r} is not a Python identifier")
    needs = meta.get("needs") or []
    needs = tuple([needs] if isinstance(needs, str) else needs)
    for need in needs:
        if fault := fault_of(str(need)):
            raise PageError(f"{relative}: {fault}")
    return Page(relative, meta["id"], meta["title"], meta.get("description", ""), needs, meta, cells)


def _read_markdown(text: str) -> tuple[str | None, tuple[Cell, ...]]:
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if not match:
        return None, ()
    return match[1], (Cell("markdown", text[match.end() :].strip("\n")),)


@functools.lru_cache(maxsize=512)
def _read_script(text: str) -> tuple[str | None, tuple[Cell, ...]]:
    import jupytext  # slow to import, and Markdown pages do not need it

    notebook = jupytext.reads(text, fmt="py:percent")
    head, cells = None, []
    for cell in notebook.cells:
        if cell.cell_type == "raw" and head is None and cell.source.startswith("---"):
            head = cell.source.strip().removeprefix("---").removesuffix("---")
        elif cell.cell_type in ("markdown", "code") and cell.source.strip():
            cells.append(Cell(cell.cell_type, cell.source, tuple(cell.metadata.get("tags", ()))))
    return head, tuple(cells)
