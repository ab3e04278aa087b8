"""Two explorables in a real Chromium, by keyboard and by finger: tiles (L5) and softmax (W1)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import settled
from playwright.sync_api import Browser, Page, expect

from course_site.charts import explorables
from course_site.charts.explorables import tiles

PAGES = {"softmax": "workshops/w1_flash_attention.html", "tiles": "lectures/l5_the_top_of_the_ladder.html"}


@pytest.fixture(scope="module", params=PAGES)
def phone(request: pytest.FixtureRequest, browser: Browser, base: str) -> Iterator[tuple[str, Page]]:
    """Each of the two pages, loaded once, on a phone that is touched and has keys."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(10_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    settled(page, base + PAGES[request.param])
    yield request.param, page
    assert faults == []
    context.close()


class Tried:
    """One explorable of a page, and what a reader does with it."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.box = page, page.locator(f"[data-explorable={name}]")
        self.says = self.box.locator(".says")

    def knob(self, name: str) -> Any:
        return self.box.locator(f"[data-knob={name}]")

    def choose(self, name: str, value: str) -> None:
        self.knob(name).select_option(value)

    def tap(self, words: str) -> None:
        self.box.get_by_role("button", name=words, exact=True).tap()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A finger on the drawing, in its own units."""
        drawing = self.box.locator("svg[viewBox]").first
        drawing.scroll_into_view_if_needed()
        box = drawing.bounding_box()
        scale = box["width"] / float(drawing.get_attribute("viewBox").split()[2])
        touch = self.page.context.new_cdp_session(self.page)
        steps = [tuple(a + (b - a) * i / 6 for a, b in zip(start, end, strict=True)) for i in range(7)]
        for i, (x, y) in enumerate(steps):
            point = {"x": box["x"] + x * scale, "y": box["y"] + y * scale}
            kind = "touchStart" if i == 0 else "touchMove"
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def drawn(kind: Any, random_: random.Random) -> dict[str, Any]:
    """A state drawn at random, extremes among them."""
    state: dict[str, Any] = {}
    for name, knob in kind.KNOBS.items():
        if knob.kind == "numbers":
            score = [lambda: random_.randint(-5, 9), lambda: round(random_.uniform(-3, 10), 2),
                     lambda: random_.choice([*4 * [-float("inf")], 1000, -120, 90, 60.5, -90.25, 1e12])]  # fmt: skip
            count = random_.randint(knob.low, knob.high)
            state[name] = [score[random_.choice((0, 0, 1, 1, 2))]() for _ in range(count)]
        elif knob.choices:
            state[name] = random_.choice(list(knob.choices))
        else:
            state[name] = random_.randint(knob.low, knob.high)
    if kind is tiles and random_.random() < 0.3:  # some of them measured
        state |= dict(zip(tiles.TILE, random_.choice(list(tiles.SHAPES.values()))[0], strict=True))
        state |= {"M": state["N"], "bytes": 4}
    return state


def test_the_script_works_out_what_python_does(phone: tuple[str, Page]) -> None:
    name, page = phone
    kind, random_ = explorables.named(name), random.Random(name)
    states = [drawn(kind, random_) for _ in range(1000)]
    given, got = page.evaluate(
        """([name, states]) => {
             const plan = document.querySelector(`[data-explorable=${name}] script`).textContent;
             const data = JSON.parse(plan).data;
             return [data, states.map(state => PercentOfPeak.explorables[name].work(state, data))];
           }""",
        [name, states],
    )
    for state, script in zip(states, got, strict=True):
        ours = kind.work(state, given)
        assert script["says"] == list(ours.says), state
        assert script["texts"] == ours.texts, state
        assert script["marks"] == ours.marks, state
        assert script.get("most", {}) == ours.most, state
    shown = {sentence for script in got for sentence in script["says"]}
    assert shown >= set(kind.SENTENCES) - {"underflow", "lost", "too_much"}, "too few cases were drawn"


def test_each_is_tried_by_keyboard_and_by_finger(phone: tuple[str, Page]) -> None:
    name, page = phone
    (softmax_tried if name == "softmax" else tiles_tried)(Tried(page, name), page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def softmax_tried(it: Tried, page: Page) -> None:
    of_record = {
        key: page.locator(f"a.value[href$='w1.step.{key}']").first.text_content() or ""
        for key in ("one.l", "repaired.l", "repaired.a", "two.l", "two.a", "repair", "two.out")
    }
    step = it.knob("step")
    step.focus()
    page.keyboard.press("Home")
    expect(it.says).to_contain_text("No tile has come yet")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(it.says).to_contain_text(of_record["one.l"])
    it.tap("Next")
    expect(it.says).to_contain_text(f"l is {of_record['repaired.l']}, and a is {of_record['repaired.a']}")
    shrunk = it.says.inner_text()
    assert any(
        shrunk.count(link.text_content() or "none")
        for link in page.locator("a.value[href$='w1.step.repair']").all()
    )
    it.tap("Next")
    expect(it.says).to_contain_text(f"l is {of_record['two.l']}, and a is {of_record['two.a']}")
    it.tap("Keep this row")
    expect(it.box.locator("tbody tr")).to_have_count(2)
    assert of_record["two.l"] in it.box.locator("tbody tr").last.inner_text()
    it.tap("Previous")
    expect(step).to_have_js_property("value", "3")
    # The four scores of the page alone, to the end.
    it.knob("scores").fill("1 3; 2, 5")
    expect(it.knob("row")).to_have_value("own")
    step.focus()
    page.keyboard.press("End")
    expect(it.says).to_contain_text(f"a / l is {of_record['two.out']}.")
    expect(it.says).to_contain_text(f"give {of_record['two.out']}: the same")
    # What overflows, what is masked, and what is no number.
    it.choose("row", "large")
    expect(step).to_have_js_property("value", "0")
    step.focus()
    page.keyboard.press("End")
    expect(it.says).to_contain_text("more than fp32 can hold")
    it.choose("row", "masked")
    page.keyboard.press("Tab")
    step.focus()
    page.keyboard.press("End")
    expect(it.says).to_contain_text("a masked tile came first")
    it.box.locator("[data-knob=mask][value=never]").tap()
    expect(it.says).to_contain_text("the same")
    it.knob("scores").fill("one, two")
    expect(it.box.get_by_role("alert")).to_have_text(re.compile(r"^Write 1 to 8 numbers"))
    it.knob("scores").fill("1, 3, 2, 5")
    expect(it.box.locator(".wrong")).to_have_text("")
    # The second score, from 3 to 8, by a finger that strays into the next row.
    it.drag((54 + 11.5 * 5, 30 + 17 + 6), (54 + 11.5 * 10, 30 + 2 * 17 + 8))
    expect(it.knob("scores")).to_have_value("1, 8, 2, 5")
    it.box.get_by_role("button", name="Start again").click()  # a tap would only end the sweep of the finger
    expect(it.knob("scores")).to_have_value("1, 3, 2, 5, 4, 7, 0, 6")
    step.focus()
    page.keyboard.press("Home")
    it.tap("Play")
    expect(it.says).to_contain_text("Tile 1 brings 1, 3", timeout=4000)
    it.tap("Pause")


def tiles_tried(it: Tried, page: Page) -> None:
    def rate(of: str) -> None:
        """The link to a measured rate, which the page has elsewhere too with the same digits."""
        link = it.says.locator(f"a.value[href$='{of}']")
        others = it.page.locator(f"td a.value[href$='{of}']").filter(has_text="%").all()
        assert link.text_content() in [other.text_content() for other in others]

    rate("l5.ladder.register_banks")
    rate("l5.ladder.persistent")
    for knob in ("M", "N"):
        it.choose(knob, "1024")
    rate("l5.smooth.whole.n1024")
    expect(it.says).to_contain_text("32 tiles on 132 places")
    it.choose("shape", "k05")
    expect(it.knob("BM")).to_have_value("128")
    expect(it.knob("TM")).to_have_value("8")
    expect(it.says).to_contain_text("64 tiles on 264 places")
    expect(it.says.locator("a.value[href$='l4.sizes.register_tile.n1024']")).to_have_count(1)
    # By the keys: one place down in the list of BM is 256 rows, which nobody measured.
    it.knob("BM").focus()
    page.keyboard.press("ArrowDown")
    expect(it.knob("shape")).to_have_value("own")
    expect(it.says).to_contain_text("Nobody measured this one.")
    it.choose("shape", "near")
    expect(it.knob("shape")).not_to_have_value("near")
    expect(it.says.locator("a.value").last).to_be_visible()
    # Shapes that cannot be launched say so, and nothing else.
    for knob, value in (("BM", "256"), ("BN", "256"), ("TM", "1"), ("TN", "1")):
        it.choose(knob, value)
    expect(it.says).to_have_text(
        "This cannot be launched: a block would have 65,536 threads, and 1,024 is the most."
    )
    it.tap("Start again")
    expect(it.knob("BN")).to_have_value("256")
    rate("l5.ladder.register_banks")
