"""The explorable of four bits in a real Chromium: its sums are Python's, and it is stepped through by keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from explorable_page import opened
from playwright.sync_api import Browser, Page, expect

from course_site.charts.explorables import four_bits

STATES = 500
TIES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0)


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser, "four_bits") as page:
        yield page


def drawn(draw: random.Random) -> dict[str, Any]:
    """A state drawn at random: numbers of all sizes, zeros, ties, and now and then one that is too large."""
    size = 10.0 ** draw.uniform(-9, 5.9)
    kinds = (
        lambda: draw.gauss(0, size / 4),
        lambda: draw.choice(TIES) * draw.choice((1, -1)) * 2.0 ** draw.randint(-12, 12),
        lambda: draw.choice((0.0, -0.0, size, round(size, 3))),
    )
    numbers = [draw.choices(kinds, (6, 3, 1))[0]() for _ in range(16)]
    if draw.random() < 0.05:
        numbers = [0.0] * 16
    if draw.random() < 0.1:
        numbers[draw.randrange(16)] = draw.choice((1e7, -1e300))
    return {
        "numbers": numbers,
        "scale": draw.choice(list(four_bits.KNOBS["scale"].choices)),
        "at": draw.randint(0, 4),
    }


def test_the_script_works_out_what_python_does(page: Page) -> None:
    draw = random.Random("four bits")
    states = [drawn(draw) for _ in range(STATES)]
    found = page.evaluate(
        "states => states.map(state => PercentOfPeak.explorables.four_bits.work(state, {}))", states
    )
    for state, script in zip(states, found, strict=True):
        ours = four_bits.work(state, {})
        assert script["says"] == list(ours.says), state
        assert script["texts"] == ours.texts, state
        assert script["marks"] == ours.marks, state
    said = [sentence for script in found for sentence in script["says"]]
    assert {name: said.count(name) > 5 for name in four_bits.SENTENCES} == dict.fromkeys(
        four_bits.SENTENCES, True
    )


def test_sixteen_numbers_are_stepped_through_by_keys_and_typed_anew(page: Page) -> None:
    says, at = page.locator(".says"), page.locator("[data-knob=at]")
    expect(says).to_contain_text("The largest of the sixteen is 0.27.")
    at.focus()
    page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("0.27 ÷ 6 is 0.045. The nearest E4M3 number is 0.04688")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(says).to_contain_text("The largest miss is that of −0.24, by 0.04125.")
    page.locator("[data-knob=numbers]").fill("3.5 " + "1 " * 14)
    expect(page.locator(".wrong")).not_to_be_empty()
    page.locator("[data-knob=numbers]").fill("6; 3.5; 5; " + "−1 " * 13)
    page.locator("[data-knob=scale]").select_option("plain")
    for _ in range(2):
        page.keyboard.press("Home")
    at.focus()
    page.keyboard.press("End")
    expect(page.locator("[data-mark=b1]")).to_have_text("4")  # ties, to the even code
    expect(page.locator("[data-mark=b2]")).to_have_text("4")
    page.locator("[data-knob=numbers]").fill("1e7 " * 16)
    expect(says).to_contain_text("Numbers from −1 to 1 million")
