"""The explorable of layouts in a real Chromium: its sums are Python's, and it is turned by keys and by a finger."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from explorable_page import opened, whole_page
from playwright.sync_api import Browser, Locator, Page, expect

from course_site.charts.explorables import layouts

STATES = 500


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser, "layouts") as page:
        yield page


def drawn(draw: random.Random) -> dict[str, Any]:
    """A state drawn at random: most of them layouts, some none."""
    sizes = [draw.choice((1, 2, 2, 2, 3, 4, 4, 8)) for _ in range(draw.randint(1, 4))]
    steps: list[Any] = [draw.choice((0, 1, 2, 4, 8, draw.randint(0, 99))) for _ in sizes]
    if draw.random() < 0.15:
        which = draw.choice((sizes, steps))
        which[draw.randrange(len(which))] = draw.choice((-1, 2.5, 100, 17, 1e300, -0.5))
    if draw.random() < 0.1:
        steps = steps[1:] or [1, 2]
    state = {name: draw.choice(list(knob.choices)) for name, knob in layouts.KNOBS.items() if knob.choices}
    return {
        **state,
        "shape": sizes,
        "stride": steps,
        "at": draw.randint(0, draw.choice((8, layouts.MOST - 1))),
    }


def test_the_script_works_out_what_python_does(page: Page) -> None:
    draw = random.Random("layouts")
    states = [drawn(draw) for _ in range(STATES)]
    found = page.evaluate(
        "states => states.map(state => PercentOfPeak.explorables.layouts.work(state, {}))", states
    )
    for state, script in zip(states, found, strict=True):
        ours = layouts.work(state, {})
        assert script["says"] == list(ours.says), state
        assert script["texts"] == ours.texts, state
        assert script["marks"] == ours.marks, state
        assert script["most"] == ours.most, state
    said = [sentence for script in found for sentence in script["says"]]
    assert {name: said.count(name) > 5 for name in layouts.SENTENCES} == dict.fromkeys(
        layouts.SENTENCES, True
    )


def test_the_layouts_to_begin_with_are_pythons(page: Page) -> None:
    given = json.loads(page.locator("[data-explorable=layouts] script").text_content() or "")["data"]["given"]
    assert given == layouts.given()


def knob(page: Page, name: str) -> Locator:
    return page.locator(f"[data-knob={name}]")


def test_a_layout_is_stepped_through_by_keys_and_by_a_finger(page: Page) -> None:
    says, at = page.locator(".says"), knob(page, "at")
    expect(says).to_contain_text("(4, 8):(8, 1), index 14 of 31.")
    expect(says).to_contain_text(
        "the coordinate is (2, 3). Each number times its stride: 2 × 8 + 3 × 1 = 19."
    )
    at.focus()
    page.keyboard.press("Home")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("1 × 8 + 1 × 1 = 9.")
    # Typed, with what is none in between.
    knob(page, "stride").fill("1")
    expect(says).to_have_text(
        "The numbers of the shape are 2, those of the stride 1: each size needs a stride of its own."
    )
    knob(page, "stride").fill("1, 4")
    expect(says).to_contain_text("(4, 8):(1, 4), index 0 of 31.")
    expect(knob(page, "layout")).to_have_value("own")
    at.focus()
    page.keyboard.press("End")
    expect(says).to_contain_text("3 × 1 + 7 × 4 = 31.")
    # A shape in a shape, from the list.
    knob(page, "layout").select_option("blocks")
    expect(knob(page, "shape")).to_have_value("2, 2, 2, 4")
    expect(knob(page, "split").nth(1)).to_be_checked()
    expect(says).to_contain_text("((2, 2), (2, 4)):((1, 16), (2, 4)), index 0 of 31.")
    # A finger on the cell in row 2 and column 5 of the grid.
    drawing = page.locator("[data-explorable=layouts] svg[viewBox]")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box
    scale = box["width"] / float((drawing.get_attribute("viewBox") or "").split()[2])
    page.touchscreen.tap(box["x"] + scale * (20 + 5.5 * 40), box["y"] + scale * (32 + 2.5 * 26))
    expect(at).to_have_value("22")
    expect(says).to_contain_text("0 × 1 + 1 × 16 + 1 × 2 + 2 × 4 = 26.")
    page.get_by_role("button", name="Start again").click()


def test_two_layouts_are_stepped_through_and_the_address_waits_for_the_reader(page: Page) -> None:
    says = page.locator(".says")
    knob(page, "inner").select_option("turned")
    knob(page, "at").focus()
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("Index 1 of the first layout, (8, 4):(4, 1), gives 4.")
    expect(says).to_contain_text("Both together are one layout, (8, 4):(1, 8).")
    knob(page, "address").nth(1).check()
    expect(says).to_contain_text("Which address is that?")
    expect(says).not_to_contain_text("=")
    texts = page.locator("[data-mark^=o]").evaluate_all(
        "all => all.map(one => one.textContent).filter(Boolean)"
    )
    assert texts == ["0", "?"]
    page.get_by_role("button", name="Next").tap()
    texts = page.locator("[data-mark^=o]").evaluate_all(
        "all => all.map(one => one.textContent).filter(Boolean)"
    )
    assert texts == ["0", "1", "?"]
    page.get_by_role("button", name="Start again").click()
    expect(says).to_contain_text("= 19.")


def test_without_script_the_first_state_is_drawn_and_said(browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(whole_page("layouts"))
    expect(page.locator(".says")).to_contain_text("= 19.")
    expect(page.locator("form")).to_be_hidden()
    assert page.locator("[data-mark=c14]").text_content() == "19"
    context.close()
