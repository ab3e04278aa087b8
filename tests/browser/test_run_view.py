"""The run view in a real Chromium with a clock of our own: a mentor's evening, with and without a network."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SITE, serve
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from course_site.sessions.fields import FIELDS
from course_site.sessions.run_view import SHARED, SOURCES, run_page

RUN = SITE / "handbook" / "run"
DAY = dt.datetime(2026, 11, 21)
START = DAY.replace(hour=18, minute=5)
MINUTE = dt.timedelta(minutes=1)
PATIENCE_MS = 10_000  # the page's clock is ours: no wait is longer than the machine is busy


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

    def proposed(self, step: int, late: int) -> list[int]:
        """The cuts that win back so many minutes at a step: as the map's row for it has them."""
        taken: list[int] = []
        for cut in self.steps[step - 1]["cuts"]:
            if sum(self.steps[one]["saves"] for one in taken) < late:
                taken.append(cut)
        return taken

    def sees(self, what: str, text: str | re.Pattern[str]) -> None:
        expect(self.page.locator(what)).to_have_text(text, timeout=PATIENCE_MS)

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
        proposed = self.proposed(3, 7)
        expect(self.page.locator("#cut-list li")).to_have_count(len(proposed), timeout=PATIENCE_MS)
        for i, cut in enumerate(proposed):
            words = self.page.locator(f"#step-{cut + 1} .cut dd").text_content()
            expect(self.page.locator("#cut-list li").nth(i)).to_contain_text(
                words or "no cut", timeout=PATIENCE_MS
            )
        saved = sum(self.steps[cut]["saves"] for cut in proposed)
        self.sees("#cut-words", f"Cut, in this order: that saves {saved} minutes.")
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


def test_a_jump_before_the_start_begins_there_and_times_nothing_before_it(evening: Evening) -> None:
    evening.open(W1)
    evening.page.evaluate("document.querySelectorAll('button.jump')[2].click()")
    evening.sees("#card-title", evening.steps[2]["title"])
    evening.sees("#left", f"{evening.steps[2]['minutes']}:00")
    for step in (1, 2):
        expect(evening.page.locator(f"#step-{step} .length")).to_have_text("skipped")


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


@pytest.mark.parametrize("letters_after", [0, 1.5], ids=["letters in their turn", "letters last"])
def test_nothing_moves_while_it_loads(browser: Browser, letters_after: float) -> None:
    """Over a slow line the page is drawn before it is whole, and before its letters and its script are there."""
    server, base = serve(SITE)
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = context.new_page()
    page.add_init_script(
        """window.moved = [];
        const place = e => String(e.sources[0]?.node?.id);
        new PerformanceObserver(list => moved.push(...list.getEntries().map(e => [e.value, place(e)])))
          .observe({type: 'layout-shift', buffered: true});"""
    )
    slow = {"offline": False, "latency": 100, "downloadThroughput": 400_000, "uploadThroughput": 100_000}
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", slow)
    page.set_default_timeout(120_000)  # the line is slow by our own wish, and the machine may be
    fonts = []
    page.route(
        "**/*.woff2", lambda route: (fonts.append(route), time.sleep(letters_after), route.continue_())
    )
    page.goto(base + "handbook/run/w6.html", wait_until="load")
    assert fonts
    page.wait_for_function("document.fonts.status == 'loaded'")
    page.wait_for_timeout(200)
    moved = page.evaluate("moved")
    context.close()
    server.shutdown()
    server.server_close()
    assert sum(value for value, _ in moved) < 0.01, moved


def test_a_note_that_comes_late_moves_nothing(evening: Evening) -> None:
    evening.open(W1, start=None)
    heights = evening.page.evaluate(
        """() => ["", "Kept."].map(words => {
             document.getElementById("note").textContent = words;
             return document.body.scrollHeight + " " + document.getElementById("note").getBoundingClientRect().height;
           })"""
    )
    assert heights[0] == heights[1]


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
    for shared in SHARED:
        (tmp_path / shared).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SITE / shared, tmp_path / shared)
    server, base = serve(tmp_path)
    page = context.new_page()
    page.goto(base + "handbook/run/w1.html")
    page.wait_for_selector("html[data-kept=yes]", state="attached")
    for name, old, new in (
        ("w1.html", "</h1>", " anew</h1>"),
        ("service_worker.js", 'KEPT_AS + "', 'KEPT_AS + "new'),
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


# --- word for word ----------------------------------------------------------------------------------

# Everything a script may change, by element: its attributes, and its text less that of elements named by themselves.
SEEN = r"""async () => {
  await new Promise(done => {  // events that the browser still owes
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  });
  const found = {}, named = '[id], [class], a, #strip > span';
  const words = node => node.nodeType === 3 ? node.data
    : node.nodeType === 1 && !node.matches(named) ? [...node.childNodes].map(words).join('') : '';
  const attribute = one => '[' + one.name + (one.value ? '=' + one.value.replace(/\d+\.\d{5,}/g, long =>
    Number(long).toFixed(4)) : '') + ']';
  for (const element of document.querySelectorAll('body :is(' + named + ')')) {
    if (element.matches('script, .calendar, .calendar *')) continue;
    const above = element.id ? '' : element.parentElement.closest('[id], body').id + ' .';
    let name = above + (element.id || element.classList[0] || element.localName);
    while (name in found) name += '+';
    const told = /^(class|hidden|style|href|target|rel|open|aria-current|data-.*)$/;
    const shown = [...element.attributes].filter(one => told.test(one.name)).map(attribute);
    const text = element.matches('input, textarea') ? JSON.stringify(element.value)
      : [...element.childNodes].map(words).join('').replace(/\s+/g, ' ').trim();
    found[name] = [...shown, text].join(' ').trim();
  }
  const time = moment => moment === null ? '-' : new Date(moment).toLocaleString('sv').slice(8);
  for (const [key, kept] of Object.entries(localStorage)) {
    const { start, at } = JSON.parse(kept);
    found['(kept) ' + key] = [start, ...at].map(time).join(', ');
  }
  found['(title)'] = document.title;
  found['(state)'] = JSON.stringify(document.documentElement.dataset) + document.documentElement.className;
  found['(focus)'] = document.activeElement.id || document.activeElement.localName;
  found['(scrolled)'] = String(scrollY);
  found['(screen)'] = `${window.lock ? 'on' : 'off'}, asked ${window.asked}`;
  found['(files)'] = String(window.files);
  found['(timers)'] = String(window.timers);
  window.timers = 0;
  return found;
}"""
# What is asked of the browser, counted.
COUNTED = """window.asked = window.timers = window.files = 0;
Object.defineProperty(navigator, 'wakeLock', {value: {request: async () => {
  window.asked++;
  window.lock = new EventTarget();
  window.lock.release = () => { window.lock.dispatchEvent(new Event('release')); window.lock = null; };
  return window.lock;
}}});
for (const [owner, name, more] of [[window, 'setTimeout', ['timers', 1]], [URL, 'createObjectURL', ['files', 1]],
    [URL, 'revokeObjectURL', ['files', -1]]]) {
  const own = owner[name];
  owner[name] = (...all) => { window[more[0]] += more[1]; return own.apply(owner, all); };
}"""


# The browser says a little later that a question was answered or a fold was opened: wait for that.
CLICK = """what => new Promise(done => {
  const button = document.querySelector(what), question = button.closest('dialog, summary');
  if (question) question.closest('dialog, details').addEventListener(question.open ? 'close' : 'toggle', done);
  button.click();
  if (!question) done();
})"""


def words(text: str) -> dict[str, str]:
    return {"text": text, "html": text}


def small_session() -> dict[str, object]:
    """Six steps: with and without a cut, a break, one of a minute, a title that a table must quote."""
    steps: list[dict[str, object]] = []
    for block, minutes, kind, title, cut, saves, cuts in (
        (1, 8, "by hand", 'Draw "it", twice', "Once.", 3, [6, 5, 4]),
        (1, 5, "board", "The heart", None, 0, [6, 5, 4]),
        (2, 4, "break", "Tea", None, 0, [6, 5, 4]),
        (3, 1, "demo", "Short", "The end.", 1, [6, 5]),
        (3, 70, "live build", "Long", "Half of it.", 35, [6]),
        (3, 2, "reading", "Close", "All.", 2, []),
    ):
        number, start = len(steps) + 1, sum(int(str(step["minutes"])) for step in steps)
        said = {
            "title": words(title),
            "say": words(f"Say {number}."),
            "cut": words(f"<i>{cut}</i>") if cut else None,
        }
        said["fingers"] = words(f"Draw <b>{number}</b>.") if number != 4 else None
        fields = dict.fromkeys([*(field.key for field in FIELDS), "taken", "stage", "priority"])
        room = words(
            'See <a href="x.html">it</a>, <a href="#y">there</a>.' if number == 5 else f"Do {number}."
        )
        steps.append(
            {
                **fields,
                **said,
                "number": number,
                "block": block,
                "start": start,
                "minutes": minutes,
                "kind": kind,
                "saves": saves,
                "cuts": cuts,
                "protected": number == 2,
            }
            | {"room": room, "fingers_source": ""}
        )
    blocks = [
        {"number": 1, "from": 0, "to": 13, "title": words("One"), "steps": [1, 2]},
        {"number": 2, "from": 13, "to": 17, "title": words("Two"), "steps": [3]},
        {"number": 3, "from": 17, "to": 90, "title": words("Three"), "steps": [4, 5, 6]},
    ]
    empty = {
        "prepare": [],
        "demos": [],
        "questions": [],
        "exit_ticket": [],
        "read": [],
        "board": {"svg": "", "alt": ""},
    }
    empty |= dict.fromkeys(("homework", "worklog"))
    return {**empty, "id": "w1", "stop": "W1", "title": "Small", "name": "W1 · Small", "about": words("About.")} | {
        "artifact": words("A thing"), "map": {"label": "The map", "href": "../map.html"}, "student": None,
        "chapter": None, "blocks": blocks, "steps": steps,
    }  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a run view with six short steps, with the scripts of the built site."""
    root = tmp_path_factory.mktemp("site")
    folder = root / "handbook" / "run"
    folder.mkdir(parents=True)
    for name in SOURCES:
        shutil.copy(RUN / name, folder)
    (root / "assets" / "js").mkdir(parents=True)
    shutil.copy(SITE / "assets" / "js" / "words.js", root / "assets" / "js")
    frame = (Path(__file__).parents[2] / "handbook/run/run.html").read_text(encoding="utf-8")
    page = run_page(small_session(), frame)
    (folder / "w1.html").write_text(page, encoding="utf-8")
    (folder / "still.html").write_text(page.replace('<script src="', '<script data-no="'), encoding="utf-8")
    return (folder / "w1.html").as_uri()


class Story:
    """An evening of which each line of a script is one thing that happens, and what then changes is written down."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.now = DAY.replace(hour=17, minute=50)
        self.evening = Evening(page, self.now)
        page.add_init_script(COUNTED)
        page.goto(address.replace("w1.html", "still.html"))
        self.before: dict[str, str] = page.evaluate(SEEN)

    def does(self, line: str) -> None:
        what, _, rest = line.partition(" ")
        if what == "open":
            self.page.goto("about:blank")
            self.page.goto(self.address + rest)
        elif what == "at":
            time = dt.time.fromisoformat(rest)
            then = dt.datetime.combine(self.now.date() + dt.timedelta(time < self.now.time()), time)
            gone = round((then - self.now).total_seconds() * 1000)
            if gone > 1000:
                self.page.clock.fast_forward(gone - 1000)
            self.page.clock.run_for(min(gone, 1000))  # every tick of the last second
            self.now = then
        elif what == "press":
            self.page.keyboard.press(rest)
        elif what == "type":
            self.page.fill("#start-time", rest)
            self.page.keyboard.press("Enter")
        elif what == "click":
            self.page.evaluate(CLICK, rest)
        else:
            self.page.evaluate(f"() => {{ {rest} }}")

    def changes(self) -> list[str]:
        after = self.page.evaluate(SEEN)
        changed = [
            f"{name}: {after.get(name, 'gone')}"
            for name in {**self.before, **after}
            if self.before.get(name) != after.get(name)
        ]
        self.before = after
        return changed


def test_a_whole_evening_word_for_word(context: BrowserContext, small: str) -> None:
    """What is meant to be different is written down anew with RENEW=1, and read before it is kept."""
    path = Path(__file__).parent / "evening.txt"
    script = path.read_text(encoding="utf-8")
    story = Story(context.new_page(), small)
    told = []
    for line in re.findall(r"^> (.*)$", script, re.MULTILINE):
        story.does(line)
        told += [f"> {line}", *story.changes(), ""]
    if os.environ.get("RENEW"):
        path.write_text("\n".join(told), encoding="utf-8")
    assert "\n".join(told) == path.read_text(encoding="utf-8")
    assert story.evening.errors == []


def test_every_way_to_write_a_start(evening: Evening, small: str) -> None:
    """It is ten to six. What is nearer lies before or behind; what is no time of day is refused."""
    ways = {
        "18:05": "21 18:05", "1805": "21 18:05", "18.05": "21 18:05", "18 05": "21 18:05", "18h05": "21 18:05",
        "6:05 pm": "21 18:05", "6 PM": "21 18:00", "6p": "21 18:00", "605pm": "21 18:05", "12 pm": "21 12:00",
        "11.59 p.m.": "21 23:59", "12 am": "22 00:00", "12:30 a.m.": "22 00:30", "1 am": "22 01:00",
        "1 pm": "21 13:00", "0 am": "refused", "13 pm": "refused", "0": "22 00:00", "23:59": "21 23:59",
        "24": "refused", "24:00": "refused", "18:60": "refused", "18:59": "21 18:59", " 7 ": "21 07:00",
        "": "refused", "x": "refused", "123": "22 01:23", "12345": "refused",
        "5:50": "21 05:50", "5:51": "21 05:51", "5:49": "22 05:49",
    }  # fmt: skip
    evening.open(small, start=None)
    found = evening.page.evaluate(
        """async ways => {
          const found = {}, field = document.getElementById('start-time'), question = document.getElementById('sure');
          for (const way of ways) {
            field.value = way;
            document.getElementById('to-projector').focus();
            document.getElementById('start-form').requestSubmit();
            const kept = Object.values(localStorage).map(text => JSON.parse(text).start)[0];
            found[way] = kept ? new Date(kept).toLocaleString('sv').slice(8, 16) : 'refused';
            if (document.getElementById('start-wrong').hidden !== Boolean(kept)) found[way] += ' and not said';
            if (document.activeElement !== (kept ? document.body : field)) found[way] += ' and keys go elsewhere';
            if (!kept) continue;
            question.showModal();
            await new Promise(done => { question.addEventListener('close', done); question.close('forget'); });
          }
          return found;
        }""",
        list(ways),
    )
    assert found == ways


def test_every_key_and_where_it_is_pressed(evening: Evening, small: str) -> None:
    """From step 2 on, still on the desk: the step after it, whether the room is shown, whether the key was taken."""
    keys = [
        ("ArrowRight", "body", "3 desk taken"), ("n", "body", "3 desk taken"), ("N", "body", "3 desk taken"),
        ("PageDown", "body", "3 desk taken"), (" ", "body", "3 desk taken"), ("ArrowLeft", "body", "1 desk taken"),
        ("b", "body", "1 desk taken"), ("B", "body", "1 desk taken"), ("PageUp", "body", "1 desk taken"),
        ("p", "body", "2 room taken"), ("P", "body", "2 room taken"), ("Escape", "body", "2 desk left"),
        ("x", "body", "2 desk left"), ("Enter", "body", "2 desk left"), ("ctrl n", "body", "2 desk left"),
        ("meta n", "body", "2 desk left"), ("alt n", "body", "2 desk left"), ("n", "#start-time", "2 desk left"),
        ("n", "#minutes-text", "2 desk left"), (" ", "#next", "2 desk left"), (" ", "#step-1 summary", "2 desk left"),
        (" ", "#drift", "2 desk left"), ("n", "#next", "3 desk taken"), ("b", "#drift", "1 desk taken"),
    ]  # fmt: skip
    evening.open(small).at(START + MINUTE)
    found = evening.page.evaluate(
        """keys => keys.map(([key, where]) => {
          const step = () => document.querySelector('[aria-current=step]').id.slice(5);
          while (step() !== '2') document.getElementById(step() < '2' ? 'next' : 'back').click();
          const [last, more] = [key.split(' ').pop() || ' ', key.length > 1 && key.split(' ')[0]];
          const event = new KeyboardEvent('keydown', { key: last, bubbles: true, cancelable: true,
            ctrlKey: more === 'ctrl', metaKey: more === 'meta', altKey: more === 'alt' });
          document.querySelector(where).dispatchEvent(event);
          const room = document.documentElement.classList.contains('projecting');
          if (room) document.getElementById('from-projector').click();
          return [step(), room ? 'room' : 'desk', event.defaultPrevented ? 'taken' : 'left'].join(' ');
        })""",
        [[key, where] for key, where, _ in keys],
    )
    assert [(*key[:2], what) for key, what in zip(keys, found, strict=True)] == keys


def test_every_swipe(browser: Browser, small: str) -> None:
    """From step 2: how far sideways, how far down, with how many fingers at first and in the end, and on what."""
    swipes = [
        ((-70, 0, 1, 0, "body"), "3"), ((-69, 0, 1, 0, "body"), "2"), ((70, 0, 1, 0, "body"), "1"),
        ((69, 0, 1, 0, "body"), "2"), ((-100, 40, 1, 0, "body"), "3"), ((-100, 41, 1, 0, "body"), "2"),
        ((100, -40, 1, 0, "body"), "1"), ((100, -41, 1, 0, "body"), "2"), ((-200, 0, 2, 0, "body"), "2"),
        ((-200, 0, 1, 1, "body"), "2"), ((-200, 0, 0, 0, "body"), "2"), ((-200, 0, 1, 0, "textarea"), "2"),
        ((-200, 0, 1, 0, "#start-time"), "2"), ((-200, 0, 1, 0, "dialog"), "2"), ((-200, 0, 1, 0, "#next"), "3"),
        ((-200, -80, 1, 0, "body"), "3"),
    ]  # fmt: skip
    context = browser.new_context(has_touch=True)
    evening = Evening(context.new_page(), START).open(small)
    found = evening.page.evaluate(
        """swipes => swipes.map(([x, y, first, last, where]) => {
          const step = () => document.querySelector('[aria-current=step]').id.slice(5);
          while (step() !== '2') document.getElementById(step() < '2' ? 'next' : 'back').click();
          const target = document.querySelector(where);
          const touches = (count, x, y) => Array.from({ length: count }, (_, i) =>
            new Touch({ identifier: i, target, clientX: x, clientY: y }));
          const send = (name, touches, changedTouches) =>
            target.dispatchEvent(new TouchEvent(name, { touches, changedTouches, bubbles: true }));
          if (first) send('touchstart', touches(first, 300, 300), touches(first, 300, 300));
          send('touchend', touches(last, 0, 0), touches(1, 300 + x, 300 + y));
          const after = step();
          send('touchend', [], touches(1, 0, 0));
          if (step() !== after && !last) return 'twice';
          return after;
        })""",
        [swipe for swipe, _ in swipes],
    )
    context.close()
    assert [(swipe, step) for (swipe, _), step in zip(swipes, found, strict=True)] == swipes
    assert evening.errors == []


def test_only_what_was_kept_whole_is_taken_up_again(evening: Evening, small: str) -> None:
    now = round(START.timestamp() * 1000)
    kept = {
        "{": "before", "null": "before", "3": "before", "{}": "before", f'{{"start": {now}}}': "before",
        f'{{"start": {now}, "at": []}}': "before", f'{{"start": null, "at": [{now}]}}': "before",
        f'{{"start": "{now}", "at": [{now}]}}': "before", f'{{"start": {now}, "at": "x"}}': "before",
        f'{{"start": {now}, "at": ["x"]}}': "before", f'{{"start": {now}, "at": [{now}, "x"]}}': "before",
        f'{{"start": {now}, "at": {{"length": 1}}}}': "before",
        f'{{"start": {now}, "at": [{now}]}}': "now 1", f'{{"start": {now}, "at": [{now}, null, {now}]}}': "now 3",
        f'{{"start": {now}, "at": [{", ".join([str(now)] * 6)}]}}': "now 6",
        f'{{"start": {now}, "at": [{", ".join([str(now)] * 7)}]}}': "after",
        f'{{"start": {now}, "at": [{", ".join([str(now)] * 8)}]}}': "before",
    }  # fmt: skip
    evening.open(small, start=None)
    found = evening.page.evaluate(
        """all => Object.fromEntries(all.map(text => {
          localStorage.setItem('run:w1:2026-11-21', text);
          window.dispatchEvent(new StorageEvent('storage', { key: null }));
          const now = document.querySelector('[aria-current=step]');
          return [text, document.documentElement.dataset.state + (now ? ' ' + now.id.slice(5) : '')];
        }))""",
        list(kept),
    )
    assert found == kept


NOTE = "This browser keeps nothing: a reload will forget the start."


def test_what_cannot_be_kept_or_forgotten_is_said(evening: Evening, small: str) -> None:
    evening.page.add_init_script(SMALL_TROUBLES)
    evening.open(small)
    evening.sees("#note", "This browser lets the screen sleep: keep it awake in the settings of the device.")
    evening.page.evaluate("window.sleeps = false; document.dispatchEvent(new Event('visibilitychange'))")
    evening.sees("#note", "")
    evening.page.evaluate("() => { Storage.prototype.removeItem = () => { throw new Error('no'); }; }")
    evening.page.click("#reset")
    evening.page.click("text=Forget it")
    evening.sees("#note", NOTE)
    evening.page.reload()
    evening.page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('no'); }; }")
    evening.page.click("#next")
    evening.sees("#note", re.compile(re.escape(NOTE)))


SMALL_TROUBLES = """window.sleeps = true;
Object.defineProperty(navigator, 'wakeLock', {value: {request: async () => {
  if (window.sleeps) throw new Error('no');
  return Object.assign(new EventTarget(), {release: () => {}});
}}});"""
WORKER = """window.worker = Object.assign(new EventTarget(), {
  controller: %s, ready: Promise.resolve(), register: async name => { window.asked = name; %s },
});
Object.defineProperty(navigator, 'serviceWorker', {value: window.worker});
sessionStorage.loads = Number(sessionStorage.loads || 0) + 1;"""


def published(page: Page, address: str) -> None:
    """Let the folder of a page stand on the network."""
    files = {path.name: path for path in Path(address.removeprefix("file://")).parents[2].rglob("*.*")}

    def answer(route: Route) -> None:
        found = files.get(route.request.url.split("/")[-1])
        _ = route.fulfill(path=found) if found else route.abort()

    page.route("https://course.example/**", answer)


@pytest.mark.parametrize("before", ["null", "{}"])
def test_a_newer_page_is_taken_at_once_or_when_it_suits(
    context: BrowserContext, small: str, before: str
) -> None:
    """A page that came from the network has nothing older behind it, and needs no second look."""
    evening = Evening(context.new_page(), DAY.replace(hour=17, minute=50))
    published(evening.page, small)
    evening.page.add_init_script(WORKER % (before, ""))
    changes = "worker.dispatchEvent(new Event('controllerchange'))"
    evening.open("https://course.example/w1.html", start=None)
    kept = "Kept on this device: it needs no network now."
    evening.sees("#note", kept)
    assert evening.page.evaluate("[asked, document.documentElement.dataset.kept]") == [
        "service_worker.js",
        "yes",
    ]
    evening.page.evaluate(changes)
    evening.page.wait_for_function(f"sessionStorage.loads == {1 if before == 'null' else 2}")
    evening.page.click("#start-now")
    evening.sees("#note", kept)
    evening.page.evaluate(changes)
    newer = "A newer version of this page is here: reload when it suits you. Nothing is lost."
    evening.sees("#note", kept if before == "null" else newer)
    assert evening.page.evaluate("Number(sessionStorage.loads)") == (1 if before == "null" else 2)
    assert evening.errors == []


def test_a_browser_that_refuses_to_keep_the_page_shows_it(context: BrowserContext, small: str) -> None:
    evening = Evening(context.new_page(), START)
    published(evening.page, small)
    evening.page.add_init_script(WORKER % ("null", "throw new Error('no');"))
    evening.open("https://course.example/w1.html").sees("#note", "")
    assert evening.errors == []
    evening.open(small)  # from a folder nobody is asked
    assert evening.page.evaluate("window.asked") is None
