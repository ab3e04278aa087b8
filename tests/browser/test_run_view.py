"""The run view in a real Chromium with a clock of our own: a mentor's evening, with and without a network."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SITE, serve
from playwright.sync_api import Browser, BrowserContext, Page, expect

RUN = SITE / "handbook" / "run"
DAY = dt.datetime(2026, 11, 21)
START = DAY.replace(hour=18, minute=5)
MINUTE = dt.timedelta(minutes=1)


def clock(moment: dt.datetime) -> str:
    return moment.strftime("%H:%M")


class Evening:
    """A run view whose clock stands still until it is told to move."""

    def __init__(self, page: Page, now: dt.datetime) -> None:
        self.page, self.now = page, now
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.clock.install(time=now - 60 * MINUTE)
        page.clock.pause_at(now)

    def open(self, address: str, start: str | None = "18:05") -> Evening:
        self.page.goto(address)
        self.steps = json.loads(self.page.locator("#session").text_content() or "")["steps"]
        if start:
            self.page.fill("#start-time", start)
            self.page.keyboard.press("Enter")
        return self

    def planned(self, step: int) -> dt.datetime:
        """When a step is planned to begin; steps count from 1."""
        return START + MINUTE * sum(s["minutes"] for s in self.steps[: step - 1])

    def at(self, moment: dt.datetime) -> Evening:
        self.page.clock.fast_forward(round((moment - self.now).total_seconds() * 1000))
        self.now = moment
        return self

    def key(self, key: str) -> Evening:
        self.page.keyboard.press(key)
        return self

    def sees(self, what: str, text: str | re.Pattern[str]) -> None:
        expect(self.page.locator(what)).to_have_text(text, timeout=2000)

    def at_step_three_seven_minutes_late(self) -> Evening:
        self.at(self.planned(2)).key("n")
        self.at(self.planned(3) + 7 * MINUTE).key("n")
        return self.at(self.now + MINUTE)

    def sees_step_three_seven_minutes_late(self) -> None:
        third, fourth = self.steps[2], self.steps[3]
        self.sees("#card-title", third["title"])
        self.sees("#drift", "7 minutes late")
        self.sees("#left", f"{third['minutes'] - 1}:00")
        self.sees("#coming-title", fourth["title"])
        self.sees("#coming-when", clock(self.planned(4) + 7 * MINUTE))
        assert self.page.locator("#cuts").is_visible()
        cut = next(i for i, step in enumerate(self.steps, 1) if i >= 3 and step["cut"])
        words = self.page.locator(f"#step-{cut} .cut dd").text_content()
        expect(self.page.locator("#cut-list li").first).to_contain_text(words or "no cut", timeout=2000)
        expect(self.page.locator("#step-4 .when")).to_have_text(clock(self.planned(4)))
        expect(self.page.locator("#step-4 .really")).to_have_text(clock(self.planned(4) + 7 * MINUTE))


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def evening(context: BrowserContext) -> Iterator[Evening]:
    evening = Evening(context.new_page(), DAY.replace(hour=17, minute=50))
    yield evening
    assert evening.errors == []


W1 = (RUN / "w1.html").as_uri()


def test_seven_minutes_late_at_step_three_from_a_folder(evening: Evening, context: BrowserContext) -> None:
    context.set_offline(True)
    evening.open(W1).at_step_three_seven_minutes_late().sees_step_three_seven_minutes_late()


def test_it_survives_a_reload(evening: Evening) -> None:
    evening.open(W1).at_step_three_seven_minutes_late()
    evening.page.reload()
    evening.sees_step_three_seven_minutes_late()


def test_no_time_of_day_before_it_is_asked_for(evening: Evening) -> None:
    evening.open(W1, start=None)
    assert re.findall(r"\b\d\d:\d\d\b", evening.page.inner_text("body")) == []
    evening.key("p")
    assert re.findall(r"\b\d\d:\d\d\b", evening.page.inner_text("body")) == []


def test_it_waits_for_the_start_and_then_begins_by_itself(evening: Evening) -> None:
    evening.open(W1)
    evening.sees("#left", "15:00")
    evening.sees("#left-words", "until 18:05")
    evening.at(START + 2 * MINUTE)
    evening.sees("#card-title", evening.steps[0]["title"])
    evening.sees("#left", f"{evening.steps[0]['minutes'] - 2}:00")
    evening.sees("#drift", "on time")


def test_it_begins_with_the_minute_of_its_start(evening: Evening) -> None:
    evening.open(W1).at(START)
    minutes = evening.steps[0]["minutes"]
    evening.sees("#left", f"{minutes}:00")
    evening.sees("#left-words", f"left of {minutes} minutes")
    evening.sees("#ends", f"to {clock(evening.planned(2))}")
    expect(evening.page.locator("#begin-early")).to_be_hidden()


def test_the_list_says_what_each_step_took_and_when_the_next_ones_come(evening: Evening) -> None:
    evening.open(W1).at(START + 2 * MINUTE)
    first, second, third = (step["minutes"] for step in evening.steps[:3])
    evening.sees("#step-1 .length", f"{first} min")
    evening.sees("#step-2 .really", "")  # as planned
    evening.at_step_three_seven_minutes_late()
    evening.sees("#step-1 .length", f"{first} min")
    evening.sees("#step-2 .length", f"{second + 7}, not {second} min")
    evening.sees("#step-3 .length", f"{third} min")
    evening.sees("#step-3 .really", clock(evening.planned(3) + 7 * MINUTE))
    evening.page.locator("#step-5 summary").click()
    evening.page.locator("#step-5 .jump").click()
    evening.sees("#step-4 .length", "skipped")
    evening.sees("#step-4 .really", "")


def test_who_begins_late_is_late_from_the_first_step(evening: Evening) -> None:
    evening.open(W1).at(START + 4 * MINUTE)
    evening.page.click("#begin-now")
    evening.sees("#drift", "4 minutes late")
    evening.sees("#left", f"{evening.steps[0]['minutes']}:00")


def test_a_step_that_runs_over_says_so_and_early_is_early(evening: Evening) -> None:
    evening.open(W1)
    minutes = evening.steps[0]["minutes"]
    evening.at(START + (minutes + 2) * MINUTE)
    evening.sees("#left", "+2:00")
    evening.sees("#drift", "2 minutes late")
    evening.key("n").key("b")
    evening.sees("#left", "+2:00")
    evening.page.click("#reset")
    evening.page.click("text=Forget it")
    evening.page.click("#start-now")
    evening.at(evening.now + (minutes - 3) * MINUTE).key("n")
    evening.sees("#drift", "3 minutes early")
    assert not evening.page.locator("#cuts").is_visible()


@pytest.mark.parametrize(
    ("typed", "shown"), [("1805", "18:05"), ("18.05", "18:05"), ("6:05 pm", "18:05"), ("18", "18:00")]
)
def test_a_start_may_be_typed_in_many_ways(evening: Evening, typed: str, shown: str) -> None:
    evening.open(W1, start=typed)
    evening.sees("#left-words", f"until {shown}")


def test_what_is_no_time_is_refused_in_words(evening: Evening) -> None:
    evening.open(W1, start="25:00")
    evening.sees("#start-wrong", "Write it as hours and minutes, such as 18:05.")
    assert evening.page.locator("#before").is_visible()


def test_keys_move_both_ways_and_a_focused_button_is_pressed_once(evening: Evening) -> None:
    evening.open(W1).at(START + MINUTE)
    titles = [step["title"] for step in evening.steps]
    for key, step in (
        ("ArrowRight", 2),
        (" ", 3),
        ("PageDown", 4),
        ("b", 3),
        ("ArrowLeft", 2),
        ("PageUp", 1),
    ):
        evening.key(key)
        evening.sees("#card-title", titles[step - 1])
    evening.page.focus("#next")
    evening.key(" ")
    evening.sees("#card-title", titles[1])


def test_a_thumb_moves_both_ways(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    evening = Evening(context.new_page(), START).open(W1)
    evening.page.tap("#next")
    evening.sees("#card-title", evening.steps[1]["title"])

    def swipe(start: int, end: int, fall: int = 0) -> None:
        touch = context.new_cdp_session(evening.page)
        for kind, points in (
            ("touchStart", [{"x": start, "y": 400}]),
            ("touchMove", [{"x": end, "y": 400 + fall}]),
            ("touchEnd", []),
        ):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    swipe(330, 60)
    evening.sees("#card-title", evening.steps[2]["title"])
    swipe(60, 330)
    evening.sees("#card-title", evening.steps[1]["title"])
    swipe(300, 200, 200)  # that was scrolling
    evening.sees("#card-title", evening.steps[1]["title"])
    boxes = [evening.page.locator(button).bounding_box() for button in ("#back", "#next")]
    assert all(box and box["height"] >= 48 for box in boxes)
    context.close()


def test_the_projector_shows_only_what_the_room_may_see(evening: Evening) -> None:
    evening.open(W1).at_step_three_seven_minutes_late().key("p")
    seen = evening.page.inner_text("body")
    assert evening.steps[2]["title"] in seen
    assert f"{evening.steps[2]['minutes'] - 1}:00" in seen
    assert re.search(r"Break at \d\d:\d\d", seen)
    body = evening.page.locator("#step-3 .fields")
    for part in ("say", "board", "check", "cut", "trip"):
        for hidden in body.locator(f".{part} dd").all():
            assert " ".join((hidden.text_content() or "-").split()) not in " ".join(seen.split()), part
    assert "late" not in seen
    evening.key("n")
    evening.sees("#room-title", evening.steps[3]["title"])
    evening.key("Escape")
    assert evening.page.locator("#card").is_visible()


def test_the_projector_comes_and_goes_by_its_buttons_too(evening: Evening) -> None:
    evening.open(W1).at(START + MINUTE)
    evening.page.click("#to-projector")
    expect(evening.page.locator("#room-title")).to_be_visible()
    expect(evening.page.locator("#card")).to_be_hidden()
    evening.page.click("#from-projector")
    expect(evening.page.locator("#card")).to_be_visible()
    expect(evening.page.locator("#room-title")).to_be_hidden()


def test_a_second_window_on_the_projector_follows(evening: Evening, context: BrowserContext) -> None:
    evening.open(W1)
    wall = context.new_page()
    wall.goto(W1 + "#projector")
    evening.at(START + MINUTE).key("n")
    expect(wall.locator("#room-title")).to_have_text(evening.steps[1]["title"])


def test_start_over_asks_first(evening: Evening) -> None:
    evening.open(W1).at(START + MINUTE).key("n")
    evening.page.click("#reset")
    evening.page.click("text=Keep this run")
    evening.sees("#card-title", evening.steps[1]["title"])
    evening.page.click("#reset")
    evening.key("n")  # a key behind the question moves nothing
    evening.page.click("text=Forget it")
    expect(evening.page.locator("#before")).to_be_visible()
    evening.page.reload()
    assert evening.page.locator("#before").is_visible()


def test_the_minutes_are_the_real_ones(evening: Evening) -> None:
    evening.open(W1).at_step_three_seven_minutes_late()
    evening.page.locator("#step-5 summary").click()
    evening.page.locator("#step-5 .jump").click()  # step 4 was left out
    with evening.page.expect_download() as download:
        evening.page.locator("button.download:visible").click()
    assert download.value.suggested_filename == "2026-11-21-1805-w1.csv"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["title"] for row in rows] == [step["title"] for step in evening.steps]
    assert {(row["session"], row["date"], row["start"]) for row in rows} == {("w1", "2026-11-21", "18:05")}
    first, second = (step["minutes"] for step in evening.steps[:2])
    assert [row["planned"] for row in rows] == [str(step["minutes"]) for step in evening.steps]
    assert [row["actual"] for row in rows[:6]] == [str(first), str(second + 7), "", "", "", ""]
    evening.page.locator("#minutes-fold summary").click()
    expect(evening.page.locator("#minutes-text")).to_have_value(text)


def test_the_end_counts_every_step(evening: Evening) -> None:
    evening.open(W1)
    for step in range(2, len(evening.steps) + 2):
        evening.at(evening.planned(step) + MINUTE).key("n")
    evening.sees("#after-words", re.compile(r"It began at 18:05 and ended at 21:06, 1 minute late\."))
    evening.page.locator("#minutes-fold summary").click()
    rows = list(csv.DictReader(evening.page.input_value("#minutes-text").splitlines()))
    actual = [step["minutes"] for step in evening.steps]
    assert [float(row["actual"]) for row in rows] == [actual[0] + 1, *actual[1:]]
    evening.key("b")
    evening.sees("#card-title", evening.steps[-1]["title"])


def test_a_session_goes_on_past_midnight(context: BrowserContext) -> None:
    evening = Evening(context.new_page(), DAY.replace(hour=23, minute=50)).open(W1, start="23:45")
    evening.key("n").at(DAY + dt.timedelta(days=1, minutes=10))
    evening.page.reload()
    evening.sees("#card-title", evening.steps[1]["title"])


def test_a_browser_that_keeps_nothing_runs_and_says_so(evening: Evening) -> None:
    evening.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    evening.open(W1).at_step_three_seven_minutes_late().sees_step_three_seven_minutes_late()
    expect(evening.page.locator("#note")).to_contain_text("a reload will forget the start")


def test_what_was_kept_badly_does_not_stop_it(evening: Evening) -> None:
    evening.open(W1, start=None)
    for rubbish in ("{", "null", '{"start": 1, "at": []}', '{"start": 1, "at": ["x"]}'):
        evening.page.evaluate("text => localStorage.setItem('run:w1:2026-11-21', text)", rubbish)
        evening.page.reload()
        assert evening.page.locator("#before").is_visible(), rubbish


def test_the_screen_stays_on_and_is_asked_for_again(evening: Evening) -> None:
    evening.page.add_init_script(
        """window.asked = 0;
        Object.defineProperty(navigator, 'wakeLock', {value: {request: async () => {
          window.asked++;
          window.lock = new EventTarget();
          window.lock.release = async () => window.lock.dispatchEvent(new Event('release'));
          return window.lock;
        }}});"""
    )
    evening.open(W1)
    evening.page.wait_for_function("window.asked == 1")
    evening.page.evaluate("lock.release(); document.dispatchEvent(new Event('visibilitychange'))")
    evening.page.wait_for_function("window.asked == 2")


def test_a_screen_that_cannot_stay_on_is_named_quietly(evening: Evening) -> None:
    evening.page.add_init_script("Object.defineProperty(navigator, 'wakeLock', {value: undefined})")
    evening.open(W1)
    expect(evening.page.locator("#note")).to_contain_text("lets the screen sleep")


def test_it_reloads_when_the_server_is_gone(context: BrowserContext) -> None:
    server, base = serve(SITE)
    evening = Evening(context.new_page(), DAY.replace(hour=17, minute=50))
    evening.open(base + "handbook/run/w1.html")
    evening.page.wait_for_selector("html[data-kept=yes]", state="attached")
    evening.at_step_three_seven_minutes_late()
    server.shutdown()
    server.server_close()
    evening.page.reload()
    evening.sees_step_three_seven_minutes_late()
    assert evening.page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent').trim()") != ""
    assert evening.page.evaluate("document.fonts.load('16px \"Source Serif 4\"').then(found => found.length)")
    evening.page.goto(base + "handbook/run/l1.html")  # never opened before
    expect(evening.page.locator("h1").first).to_contain_text("L1")
    assert evening.errors == []


def test_a_new_build_takes_the_place_of_the_old_one(context: BrowserContext, tmp_path: Path) -> None:
    shutil.copytree(RUN, tmp_path / "handbook" / "run")
    shutil.copytree(SITE / "assets" / "vendor" / "fonts", tmp_path / "assets" / "vendor" / "fonts")
    shutil.copy(SITE / "assets" / "favicon.svg", tmp_path / "assets")
    server, base = serve(tmp_path)
    page = context.new_page()
    page.goto(base + "handbook/run/w1.html")
    page.wait_for_selector("html[data-kept=yes]", state="attached")
    for name, old, new in (
        ("w1.html", "</h1>", " anew</h1>"),
        ("service_worker.js", '"run-" + "', '"run-" + "new'),
    ):
        path = tmp_path / "handbook" / "run" / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    page.reload()  # the old one, at once; the new one is fetched behind it and takes over
    expect(page.locator("h1").first).to_contain_text("anew", timeout=10_000)
    assert page.evaluate("caches.keys().then(keys => keys.length)") == 1
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_open_to_all_while_it_runs(browser: Browser, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
    evening = Evening(context.new_page(), START).open(W1).at_step_three_seven_minutes_late()
    evening.page.clock.resume()  # axe waits by the clock
    found = Axe().run(evening.page).response["violations"]
    evening.key("p")
    found += Axe().run(evening.page).response["violations"]
    context.close()
    assert [f"{rule['id']}: {node['target'][0]}" for rule in found for node in rule["nodes"]] == []


def test_every_session_runs_from_start_to_end_on_a_phone(browser: Browser) -> None:
    pages = sorted(path for path in RUN.glob("*.html") if re.fullmatch(r"opening|[lw]\d", path.stem))
    assert {"w1.html", "l1.html", "opening.html"} <= {path.name for path in pages}
    context = browser.new_context(viewport={"width": 390, "height": 844})
    evening = Evening(context.new_page(), START)
    for path in pages:
        evening.open(path.as_uri())
        assert len(evening.steps) == evening.page.locator(".step").count()
        seen = evening.page.evaluate(
            """steps => {
              const press = key => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
              const wide = () => document.documentElement.scrollWidth;
              return Array.from({length: steps}, () => {
                const step = [document.getElementById('card-title').textContent, wide()];
                press('p'); step.push(wide()); press('p'); press('n');
                return step;
              });
            }""",
            len(evening.steps),
        )
        assert seen == [[step["title"], 390, 390] for step in evening.steps], path.name
        assert evening.page.locator("#after").is_visible()
    assert evening.errors == []
    context.close()
