"""The explorable of a drafted word in a real Chromium: its sums are Python's, and shares are typed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from explorable_page import opened
from playwright.sync_api import Browser, Page, expect

from course_site.charts.explorables import draft_and_verify

STATES = 500


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with opened(browser, "draft_and_verify") as page:
        yield page


def drawn(draw: random.Random) -> dict[str, Any]:
    """A state drawn at random: whole shares, odd ones, zeros, the same twice, and now and then none at all."""
    kinds = (lambda: draw.randint(0, 9), lambda: draw.random(), lambda: 0, lambda: draw.choice((-1, 2e6)))
    of = [draw.choices(kinds, (5, 4, 2, 0.1))[0]() for _ in range(6)]
    target, draft = of[:3], of[3:]
    if draw.random() < 0.1:
        draft = [3 * x for x in target]
    return {
        "target": target,
        "draft": draft,
        "rule": draw.choice(draft_and_verify.RULES),
        "k": draw.randint(1, 8),
    }


def test_the_script_works_out_what_python_does(page: Page) -> None:
    draw = random.Random("a draft")
    states = [drawn(draw) for _ in range(STATES)]
    work = "states => states.map(state => PercentOfPeak.explorables.draft_and_verify.work(state, {}))"
    found = page.evaluate(work, states)
    for state, script in zip(states, found, strict=True):
        ours = draft_and_verify.work(state, {})
        assert script["says"] == list(ours.says), state
        assert script["texts"] == ours.texts, state
        assert script["marks"] == ours.marks, state
    said = [sentence for script in found for sentence in script["says"]]
    assert {name: said.count(name) > 5 for name in draft_and_verify.SENTENCES} == dict.fromkeys(
        draft_and_verify.SENTENCES, True
    )


def test_shares_are_typed_and_a_wrong_rule_is_seen(page: Page) -> None:
    says, draft = page.locator(".says"), page.locator("[data-knob=draft]")
    expect(says).to_contain_text("passes with 80 %: 4 drafts give 3.36 words")
    page.locator("[data-knob=rule]").select_option("target")
    expect(says).to_contain_text("another distribution: red comes 60 % of the time, and 50 % were wanted.")
    draft.fill("5 3 2")
    expect(says).to_contain_text("every drafted word passes")
    draft.fill("1 1")
    expect(page.locator(".wrong")).not_to_be_empty()
    draft.fill("0 0 0")
    expect(says).to_contain_text("Three shares each, please")
