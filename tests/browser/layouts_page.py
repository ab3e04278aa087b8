"""The explorable of layouts as a page has it: its directive, and what stands around it, without a site."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course_site.pages import blocks
from course_site.site.render.explorable import explorable

ASSETS = Path(__file__).parents[2] / "docs/assets"
DIRECTIVE = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


def writer() -> Any:
    """What the directive asks of a page that has no numbers of its own; `said` are its faults."""
    said: list[str] = []
    out = SimpleNamespace(slots={}, pictures={})

    def slot(raw: str) -> str:
        out.slots[str(len(out.slots))] = raw
        return str(len(out.slots) - 1)

    return SimpleNamespace(
        has_numbers=True, out=out, said=said, slot=slot, problem=said.append, lint=lambda text: None,
        of_one_card=lambda drawn, words: None, plain=str, text=str, shared=lambda name: name,
        question=lambda text: f'<p class="ask">{text}</p>', scope=SimpleNamespace(machine=None),
    )  # fmt: skip


def page() -> str:
    """A page with the explorable and its scripts.

    Raises:
        AssertionError: something is wrong with the words of the directive.
    """
    (block,) = blocks.parse(DIRECTIVE)
    made = writer()
    explorable(made, block)
    assert made.said == []
    figure = "".join(made.out.slots.values())
    figure = figure[figure.index("<figure") :]
    names = ("js/words.js", "js/explorable.js", "js/explorables/layouts.js")
    scripts = "".join(f"<script>{(ASSETS / name).read_text(encoding='utf-8')}</script>" for name in names)
    css = (ASSETS / "css/explorable.css").read_text(encoding="utf-8")
    head = f'<!doctype html><meta charset="utf-8"><style>{css}</style>'
    return f'{head}<body class="md-typeset">{figure}{scripts}</body>'
