"""The two timelines in a real Chromium, with made-up stamps: no record is asked, so no card is waited for."""

from __future__ import annotations

import dataclasses
import html
import json
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from course_site.charts.explorables import timelines
from course_site.pages import blocks
from course_site.site.render.explorable import explorable
from course_site.values.values import Scope

ROOT = Path(__file__).parents[2]
JS = ROOT / "docs/assets/js"
WORK = "([states, data]) => states.map(s => PercentOfPeak.explorables.timelines.work(s, data))"


def trace(seed: int, groups: dict[int, list[int]], steps: int = 5) -> dict[str, list[float]]:
    """Lanes that do one thing after the other, with a gap now and then."""
    draw, rows = random.Random(seed), []
    for lane, does in groups.items():
        at = draw.randrange(60)
        for what in does * steps:
            end = at + draw.randrange(1, 300)
            rows.append((lane, what, at, end))
            at = end + draw.choice((0, 0, 9))
    names = ("lane", "does", "from_cycles", "to_cycles")
    return {
        name: [float(x) for x in column] for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


def traces(seed: int) -> dict[str, Any]:
    wide = trace(seed, {0: [0, 1, 2, 3], 1: [0, 1, 2, 1]})
    roles = trace(seed + 1, {0: [0, 3], 1: [0, 1], 2: [0, 1]})
    return {"wide": {"value": wide}, "roles": {"value": roles}}


def figure(seed: int) -> str:
    """The explorable of the page, over made-up traces."""
    text = (ROOT / "docs/workshops/w2_hopper.py").read_text(encoding="utf-8")
    prose = "\n".join(
        line.removeprefix("#").removeprefix(" ") for line in text.splitlines() if line.startswith("#")
    )
    begin = prose.index("/// explorable | timelines")
    (block,) = blocks.parse(prose[begin : prose.index("\n///\n", begin) + 5])
    lanes = {name: {"kind": "trace", "columns": of["value"]} for name, of in traces(seed).items()}
    made: list[str] = []
    problems: list[str] = []
    writer = SimpleNamespace(
        has_numbers=True,
        scope=Scope("w2", {"lanes": lanes}, None),
        out=SimpleNamespace(slots={}, pictures={}),
        lint=lambda text: None,
        of_one_card=lambda expressions, text: None,
        plain=str,
        text=str,
        question=lambda text: f'<p class="ask">{html.escape(text)}</p>',
        shared=lambda name: name,
        problem=problems.append,
        slot=lambda raw: made.append(raw) or "slot",
    )
    explorable(writer, block)
    (raw,) = made
    assert problems == []
    return raw[raw.index("<figure") :]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """The figure alone, on a phone, with the site's scripts."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    opened, faults = context.new_page(), []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    scripts = ("words.js", "explorable.js", "explorables/timelines.js")
    code = "".join(f"<script>{(JS / name).read_text(encoding='utf-8')}</script>" for name in scripts)
    opened.set_content(f"<!doctype html><body>{code}{figure(3)}</body>")
    expect(opened.locator("figure")).to_have_attribute("data-moves", "yes")
    yield opened
    assert faults == []
    context.close()


def test_script_and_python_agree_over_made_up_stamps(page: Page) -> None:
    draw = random.Random(19)
    for seed in range(20):
        data = traces(seed)
        end = int(timelines.last(data)) + 30
        states = [
            {"of": draw.choice(("both", "wide", "roles")), "tick": draw.randrange(end)} for _ in range(100)
        ]
        for state, shown in zip(states, page.evaluate(WORK, [states, data]), strict=True):
            assert shown == json.loads(json.dumps(dataclasses.asdict(timelines.work(state, data)))), state


def test_keys_and_buttons_go_from_event_to_event(page: Page) -> None:
    slider, events = page.locator('[data-knob="tick"]'), timelines.events("both", traces(3))
    page.get_by_role("button", name="Start again").click()
    at = int(slider.input_value())
    after = [tick for tick in events if tick > at]
    slider.focus()
    for tick in after[:3]:
        page.keyboard.press("ArrowRight")
        expect(slider).to_have_value(f"{tick:.0f}")
    page.get_by_role("button", name="Previous").tap()
    expect(slider).to_have_value(f"{after[1]:.0f}")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_value("0")
    page.get_by_role("button", name="Next").tap()
    expect(slider).to_have_value(f"{min(tick for tick in events if tick > 0):.0f}")
    slider.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # nothing is behind the last event
    expect(slider).to_have_value(f"{events[-1]:.0f}")
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value(f"{events[-2]:.0f}")


def test_the_chosen_kernel_alone_is_said_and_stepped_through(page: Page) -> None:
    page.get_by_role("button", name="Start again").click()
    page.locator(".places label", has_text="k08").tap()
    expect(page.locator(".says")).not_to_contain_text("k07")
    slider, events = page.locator('[data-knob="tick"]'), timelines.events("roles", traces(3))
    at = int(slider.input_value())
    page.get_by_role("button", name="Next").tap()
    expect(slider).to_have_value(f"{min(tick for tick in events if tick > at):.0f}")
    expect(page.locator(".says")).to_have_text(page.locator("svg").get_attribute("aria-label"))


def test_a_finger_in_the_drawing_moves_the_cursor(page: Page) -> None:
    page.get_by_role("button", name="Start again").click()
    drawing, end = page.locator("svg"), timelines.last(traces(3))
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 100)
    page.mouse.up()
    assert int(page.locator('[data-knob="tick"]').input_value()) == pytest.approx(0.75 * end, rel=0.02)
