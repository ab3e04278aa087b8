"""An explorable alone on a page, made from its directive: what the tests of one open in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from playwright.sync_api import Browser, Page, expect

from course_site.pages import blocks
from course_site.site.render.explorable import explorable

ASSETS = Path(__file__).parents[2] / "docs/assets"


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


def whole_page(name: str) -> str:
    """A page with the explorable of `NAME_page.md` and its scripts.

    Raises:
        AssertionError: something is wrong with the words of the directive.
    """
    (block,) = blocks.parse(Path(__file__).with_name(f"{name}_page.md").read_text(encoding="utf-8"))
    made = writer()
    explorable(made, block)
    assert made.said == []
    figure = "".join(made.out.slots.values())
    figure = figure[figure.index("<figure") :]
    names = ("js/words.js", "js/explorable.js", f"js/explorables/{name}.js")
    scripts = "".join(f"<script>{(ASSETS / file).read_text(encoding='utf-8')}</script>" for file in names)
    css = (ASSETS / "css/explorable.css").read_text(encoding="utf-8")
    head = f'<!doctype html><meta charset="utf-8"><style>{css}</style>'
    return f'{head}<body class="md-typeset">{figure}{scripts}</body>'


@contextmanager
def opened(browser: Browser, name: str) -> Iterator[Page]:
    """The explorable alone, on a phone with keys; at the end no script has failed."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.set_content(whole_page(name), wait_until="load")
    expect(page.locator(f"[data-explorable={name}]")).to_have_attribute("data-moves", "yes")
    yield page
    assert faults == []
    context.close()
