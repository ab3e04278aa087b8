"""Calendars made in the browser: right instants in every zone, the same events as the command, refusals in one line."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import icalendar
import pytest
from conftest import SITE, serve
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from course_site.sessions import cohort
from course_site.sessions.calendar_form import calendar_form
from course_site.sessions.session import load_sessions

ROOT = Path(__file__).resolve().parents[2]
W1 = "handbook/run/w1.html"
COHORT = "handbook/00_before_you_teach/the_calendar.html"
# Half of this cohort is before the clocks change in Berlin, all of it after they did in New York.
MONDAY = "2027-03-15"


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(timezone_id="America/New_York", accept_downloads=True)
    yield context
    context.close()


class Form:
    """The form on one page; nothing on the page may go wrong while it is used."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.errors = page, []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(address)
        for fold in page.locator("summary", has_text="Put it into a calendar").all():
            fold.click()
        self.wrong: Locator = page.locator(".calendar .wrong")

    def type(self, date: str, time: str, zone: str | None) -> Form:
        self.page.fill("#calendar-date", date)
        self.page.fill("#calendar-time", time)
        if zone is not None:
            self.page.fill("#calendar-zone", zone)
        return self

    def file(self) -> tuple[str, bytes]:
        with self.page.expect_download() as download:
            self.page.click("text=Download .ics")
        assert self.errors == []
        assert self.wrong.is_hidden()
        return download.value.suggested_filename, Path(download.value.path()).read_bytes()

    def book(self) -> dict[str, icalendar.Event]:
        return parsed(self.file()[1])

    def refusal(self) -> str:
        self.page.click("text=Download .ics")
        expect(self.wrong).to_be_visible()
        assert self.errors == []
        said = self.wrong.inner_text()
        assert "\n" not in said
        return said


def parsed(content: bytes) -> dict[str, icalendar.Event]:
    """Events by the first half of their identity; no line ends in half an escape."""
    assert not re.search(rb"(?<!\\)(?:\\\\)*\\\r\n", content)
    events = icalendar.Calendar.from_ical(content).walk("VEVENT")
    found = {str(event["uid"]).split("@")[0]: event for event in events}
    assert len(found) == len(events)
    return found


def said(event: icalendar.Event) -> dict[str, object]:
    """Everything in an event but the moment at which it was written."""
    names = sorted(set(event.keys()) - {"DTSTAMP"})
    return {name: getattr(event[name], "dt", None) or str(event[name]) for name in names}


def utc(*moment: int) -> dt.datetime:
    return dt.datetime(*moment, tzinfo=dt.UTC)


def local(name: str) -> str:
    return (SITE / name).as_uri()


@pytest.mark.parametrize(
    ("date", "time", "zone", "instant"),
    [
        ("2027-03-26", "18:05", "Europe/Berlin", utc(2027, 3, 26, 17, 5)),
        ("2027-03-29", "18:05", "Europe/Berlin", utc(2027, 3, 29, 16, 5)),
        ("2027-03-28", "01:59", "Europe/Berlin", utc(2027, 3, 28, 0, 59)),
        ("2027-03-28", "03:00", "Europe/Berlin", utc(2027, 3, 28, 1, 0)),
        ("2027-10-31", "02:30", "Europe/Berlin", utc(2027, 10, 31, 0, 30)),  # twice on that night: the first
        ("2027-03-26", "18:05", "Asia/Kolkata", utc(2027, 3, 26, 12, 35)),
        ("2027-03-12", "18:05", "America/New_York", utc(2027, 3, 12, 23, 5)),
        ("2027-03-15", "20:05", "America/New_York", utc(2027, 3, 16, 0, 5)),
        ("2027-03-26", "00:10", "Pacific/Kiritimati", utc(2027, 3, 25, 10, 10)),
        (
            "2027-04-04",
            "01:45",
            "Australia/Lord_Howe",
            utc(2027, 4, 3, 14, 45),
        ),  # clocks go back half an hour
        ("2028-02-29", "23:00", "UTC", utc(2028, 2, 29, 23, 0)),
        ("2027-03-26", "18:05", None, utc(2027, 3, 26, 22, 5)),  # the browser's own
    ],
)
def test_a_session_stands_at_the_right_instant(
    context: BrowserContext, date: str, time: str, zone: str | None, instant: dt.datetime
) -> None:
    context.set_offline(True)
    form = Form(context.new_page(), local(W1)).type(date, time, zone)
    event = form.book()[f"session-w1-{date}"]
    assert event["dtstart"].dt == instant
    assert event["dtend"].dt == instant + dt.timedelta(minutes=180)
    shown = f"{time} in {zone or 'America/New_York'}, {instant:%H:%M} UTC."
    expect(form.page.locator(".calendar .made")).to_contain_text(shown)


def test_a_session_brings_its_minutes_and_the_day_before_what_to_prepare(context: BrowserContext) -> None:
    form = Form(context.new_page(), local(W1)).type("2027-03-01", "18:05", "Europe/Berlin")
    name, content = form.file()
    assert name == "w1-2027-03-01.ics"
    book = parsed(content)
    assert set(book) == {"session-w1-2027-03-01", "prepare-w1-2027-03-01"}
    session = load_sessions(ROOT)["w1"]
    event, before = book["session-w1-2027-03-01"], book["prepare-w1-2027-03-01"]
    assert event["summary"] == f"W1 · {session.title}"
    lines = str(event["description"]).splitlines()
    for block in session.blocks:
        assert any(line.startswith(f"{block.start}–{block.end} ") for line in lines)
    for step in session.steps():
        assert any(line.startswith(f"· {step.start}–{step.end} ") for line in lines)
    assert before["dtstart"].dt == dt.date(2027, 2, 28)
    assert before["dtend"].dt == dt.date(2027, 3, 1)
    assert before["transp"] == "TRANSPARENT"
    assert len(str(before["description"]).splitlines()) == len(session.prepare) + len(session.demos)
    assert session.demos[0].preflight in str(before["description"])


@pytest.mark.parametrize("name", [W1, COHORT])
def test_the_file_is_written_as_the_standard_says(context: BrowserContext, name: str) -> None:
    form = Form(context.new_page(), local(name)).type(MONDAY, "18:05", "Europe/Berlin")
    content = form.file()[1]
    assert content.endswith(b"END:VCALENDAR\r\n")
    lines = content.removesuffix(b"\r\n").split(b"\r\n")
    assert max(map(len, lines)) <= 75
    assert any(line.startswith(b" ") for line in lines)
    assert not re.search(rb"(?<!\r)\n|\r(?!\n)", content)
    for line in lines:
        line.decode("utf-8")  # no letter is cut in two
    assert icalendar.Calendar.from_ical(content).errors == []
    assert all(event.errors == [] and "dtstamp" in event for event in parsed(content).values())
    assert set(parsed(form.file()[1])) == set(parsed(content))  # known again when it is made again


def test_every_session_has_its_calendar(context: BrowserContext) -> None:
    page = context.new_page()
    for session in load_sessions(ROOT).values():
        form = Form(page, local(f"handbook/run/{session.id}.html"))
        book = form.type("2027-01-11", "18:05", "Asia/Kolkata").book()
        event = book[f"session-{session.id}-2027-01-11"]
        assert event["dtend"].dt - event["dtstart"].dt == dt.timedelta(minutes=session.minutes)
        texts = "".join(str(e["summary"]) + str(e["description"]) for e in book.values())
        assert not re.search(r"\{\{|\]\(|</|&\w+;|\bundefined\b|—(?=\D*$)", texts)


def expected(zone: str, site: str = "") -> dict[str, icalendar.Event]:
    plan = cohort.read_cohort(ROOT)
    start, at = dt.date.fromisoformat(MONDAY), dt.time(18, 5)
    found = cohort.events(plan, load_sessions(ROOT), start, at, ZoneInfo(zone), site)
    return parsed(cohort.calendar(plan.title, found, utc(2027, 1, 1)))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/New_York", "UTC"])
def test_the_cohort_is_the_one_of_the_command_event_by_event(context: BrowserContext, zone: str) -> None:
    context.set_offline(True)
    form = Form(context.new_page(), local(COHORT)).type(MONDAY, "18:05", zone)
    name, content = form.file()
    assert name == f"cohort-{MONDAY}.ics"
    title = str(icalendar.Calendar.from_ical(content)["x-wr-calname"])
    assert title.replace("\\,", ",") == cohort.read_cohort(ROOT).title
    actual, wanted = parsed(content), expected(zone)
    assert list(actual) == list(wanted)
    assert [str(event["uid"]) for event in actual.values()] == [
        str(event["uid"]) for event in wanted.values()
    ]
    for uid, event in wanted.items():
        assert said(actual[uid]) == said(event), uid


def test_a_published_site_is_linked_and_one_on_this_machine_is_not(
    context: BrowserContext, base: str
) -> None:
    page = context.new_page()

    def answer(route, request) -> None:  # type: ignore[no-untyped-def]
        route.fulfill(path=SITE / request.url.removeprefix("https://course.example/peak/").split("?")[0])

    page.route("https://course.example/**", answer)
    form = Form(page, f"https://course.example/peak/{COHORT}").type(MONDAY, "18:05", "UTC")
    actual, wanted = form.book(), expected("UTC", "https://course.example/peak")
    assert [said(event) for event in actual.values()] == [said(event) for event in wanted.values()]
    form = Form(context.new_page(), base + COHORT).type(MONDAY, "18:05", "UTC")
    assert "http" not in "".join(str(event["description"]) for event in form.book().values())


@pytest.mark.parametrize(
    ("name", "date", "time", "zone", "words", "field"),
    [
        (W1, "2027-03-28", "02:30", "Europe/Berlin",
         "02:30 does not exist on 2027-03-28 in Europe/Berlin: the clocks go forward.", "time"),
        (W1, "2027-03-14", "02:00", "America/New_York", "02:00 does not exist on 2027-03-14", "time"),
        (W1, "", "18:05", "UTC", "Choose the day of the session.", "date"),
        (W1, "2027-03-26", "", "UTC", "Say when it starts, in hours and minutes.", "time"),
        (W1, "2027-03-26", "18:05", "Berlin",
         "Berlin is not a time zone that this browser knows. Write its name, for example Europe/Berlin.", "zone"),
        (W1, "2027-03-26", "18:05", "+01:00", "such as Europe/Berlin.", "zone"),
        (W1, "2027-03-26", "18:05", " ", "Write its name, such as Europe/Berlin.", "zone"),
        (COHORT, "2027-03-17", "18:05", "UTC",
         "2027-03-17 is a Wednesday. The plan begins on a Monday, for example 2027-03-15.", "date"),
        (COHORT, "2027-03-21", "18:05", "UTC",
         "is a Sunday. The plan begins on a Monday, for example 2027-03-15.", "date"),
        (COHORT, "", "18:05", "UTC", "Choose the Monday of the first week.", "date"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    context: BrowserContext, name: str, date: str, time: str, zone: str, words: str, field: str
) -> None:
    form = Form(context.new_page(), local(name)).type(date, time, zone)
    assert words in form.refusal()
    expect(form.page.locator(f"#calendar-{field}")).to_be_focused()
    form.type(MONDAY, "18:05", "America/New York").book()  # mended, it works; a blank is meant well


def test_a_run_view_makes_its_calendar_when_the_server_is_gone(context: BrowserContext) -> None:
    server, base = serve(SITE)
    page = context.new_page()
    page.goto(base + W1)
    page.wait_for_selector("html[data-kept=yes]", state="attached")
    server.shutdown()
    server.server_close()
    form = Form(page, base + "handbook/run/l1.html").type("2027-03-26", "18:05", "Europe/Berlin")
    assert form.book()["session-l1-2027-03-26"]["dtstart"].dt == utc(2027, 3, 26, 17, 5)


def test_it_works_by_keyboard_alone(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(local(COHORT))
    page.focus("#calendar-date")
    page.keyboard.type("03152027")
    page.focus("#calendar-time")
    page.keyboard.type("0605PM")
    page.keyboard.press("Tab")
    with page.expect_download() as download:
        page.focus("#calendar-zone")
        page.keyboard.press("Enter")
    event = parsed(Path(download.value.path()).read_bytes())[f"opening-{MONDAY}"]
    assert event["dtstart"].dt == utc(2027, 3, 15, 22, 5)


def test_nothing_is_too_small_for_a_thumb(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for name in (W1, COHORT):
        form = Form(context.new_page(), local(name))
        for part in form.page.locator(".calendar form :is(input, button)").all():
            box = part.bounding_box()
            assert box
            assert box["height"] >= 40
            assert box["x"] + box["width"] <= 390
    context.close()


def test_no_time_of_day_before_it_is_asked_for(context: BrowserContext) -> None:
    page = context.new_page()
    for name in (W1, COHORT):
        page.goto(local(name))
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert re.findall(r"\b\d?\d:\d\d\b", page.locator("main").first.inner_text()) == []
        assert page.input_value("#calendar-time") == ""


def test_without_a_script_the_page_says_what_to_type(browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in (W1, COHORT):
        page.goto(local(name))
        page.locator("details", has=page.locator(".calendar")).evaluate_all(
            "all => all.forEach(d => d.open = true)"
        )
        expect(page.locator(".calendar .without")).to_contain_text("nox -s calendar")
        expect(page.locator(".calendar form")).to_be_hidden()
    context.close()


def test_with_a_script_the_form_stands_in_its_place(context: BrowserContext) -> None:
    page = context.new_page()
    for name in (W1, COHORT):
        Form(page, local(name))
        expect(page.locator(".calendar form")).to_be_visible()
        expect(page.locator(".calendar .without")).to_be_hidden()


def test_the_page_and_the_file_have_one_plan(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(local(COHORT))
    plan = json.loads(page.locator("#cohort").text_content() or "")["calendar"]
    linked = page.locator(".cohort a").evaluate_all("all => all.map(a => new URL(a.href).pathname)")
    root = (SITE / "x").as_uri().removeprefix("file://").removesuffix("x")
    assert [path.removeprefix(root) for path in linked] == [e["page"] for e in plan["entries"] if e["page"]]
    assert all((SITE / entry["page"]).is_file() for entry in plan["entries"] if entry["page"])


# --- word for word ----------------------------------------------------------------------------------

ENTRIES = [
    {
        "name": "first",
        "title": "One; two, three",
        "text": "A back\\slash,\nlines\r\nand µ" + "·" * 40,
        "day": 0,
    },
    {
        "name": "second",
        "title": "Two",
        "text": "After it.",
        "day": 0,
        "after": 75,
        "minutes": 60,
        "page": "a/b.html",
    },
    {"name": "third", "title": "x" * 67, "text": "y" * 63, "day": 21, "after": 0, "minutes": 45},
    {"name": "fourth", "title": "x" * 68, "text": "y" * 136 + "µ", "day": -1, "page": "c.html"},
]
TYPED = [
    ("2027-03-15", "18:05", "Europe/Berlin"), ("2027-03-15", "18:05", " europe/berlin "), ("", "18:05", "UTC"),
    ("2027-03-15", "", "UTC"), ("2027-03-14", "18:05", "UTC"), ("2027-03-16", "18:05", "UTC"),
    ("2027-03-20", "18:05", "UTC"), ("2027-03-15", "18:05", ""), ("2027-03-15", "18:05", "1"),
    ("2027-03-15", "18:05", "york"), ("2027-03-15", "18:05", "new york"), ("2027-03-15", "18:05", "Nowhere"),
    ("2027-03-07", "02:30", "America/New_York"), ("2099-12-28", "00:00", "Pacific/Kiritimati"),
    ("2101-01-03", "18:05", "UTC"), ("1999-01-04", "18:05", "UTC"), ("2027-03-15", "18:05:30", "UTC"),
    ("2027-03-14", "02:30", "America/New_York"), ("2027-11-07", "01:30", "America/New_York"),
    ("2027-03-14", "03:30", "America/New_York"), ("2027-10-31", "02:30", "Europe/Berlin"),
]  # fmt: skip
# One form after the other: how it looks at first, then what was typed and all that came of it.
TELL = r"""async typed => {
  const told = [], wait = () => new Promise(done => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  });
  let blob = null, name = null, links = 0;
  URL.createObjectURL = one => { blob = one; return '#'; };
  URL.revokeObjectURL = () => { links -= 1; };
  HTMLAnchorElement.prototype.click = function () { name = this.download; links += this.isConnected; };
  for (const place of document.querySelectorAll('.calendar')) {
    const form = place.querySelector('form'), fields = form.elements;
    const wrong = form.querySelector('.wrong'), made = form.querySelector('.made');
    const zones = form.querySelectorAll('option');
    told.push(`${place.dataset.plan}: form hidden ${form.hidden}, words without hidden`
      + ` ${place.querySelector('.without').hidden}, ${fields.zone.value}, zones`
      + ` ${zones.length === Intl.supportedValuesOf('timeZone').length} ${zones[0] && zones[0].value}`);
    for (const [date, time, zone] of typed) {
      [fields.date.value, fields.time.value, fields.zone.value] = [date, time, zone];
      [blob, name] = [null, null];
      document.activeElement.blur();
      form.requestSubmit();
      await wait();
      const marked = ['date', 'time', 'zone'].filter(one => fields[one].getAttribute('aria-invalid') === 'true');
      told.push('', `> ${date} ${time} ${zone}`, `made: ${made.textContent}`,
        `wrong${wrong.hidden ? ' (hidden)' : ''}: ${wrong.textContent}`,
        `marked: ${marked}, at: ${document.activeElement.id}`, `file: ${name}`);
      if (!blob) continue;
      const text = await blob.text();  // whole for the first time, then its dates alone
      told.push(blob.type, typed[0][0] === date && typed[0][2] === zone ? text
        : text.match(/^(UID|DT(START|END)).*/gm).join('\n'));
    }
    told.push('');
  }
  told.push(`links that stay: ${document.querySelectorAll('body > a').length}, files that were opened: ${links}`);
  return told.join('\n');
}"""


def small_page() -> str:
    """A page with the form of a cohort, and one with that of a session which needs no Monday."""
    page = ""
    kinds = (("cohort", True, "A; cohort, of µ", ENTRIES), ("session", False, "", ENTRIES[1:2]))
    for name, monday, title, some in kinds:
        entries = [{"after": 0, "minutes": 0, "page": ""} | entry for entry in some]
        plan = {"file": name, "root": "../", "title": title, "monday": monday, "entries": entries}
        page += f'<script type="application/json" id="{name}">{json.dumps({"calendar": plan})}</script>'
        page += calendar_form(name, "Date", monday=monday)
    scripts = '<script src="calendar.js"></script><script src="words.js"></script>'
    return f'<!doctype html><meta charset="utf-8"><main>{page}</main>{scripts}'


@pytest.mark.parametrize("published", [True, False])
def test_what_comes_of_what_is_typed_word_for_word(context: BrowserContext, published: bool) -> None:
    """What is meant to be different is written down anew with RENEW=1, and read before it is kept."""
    page = context.new_page()
    page.clock.set_fixed_time(utc(2027, 1, 2, 3, 4, 5))  # it stands, however slow the machine is
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    host = "https://course.example/peak" if published else "http://127.0.0.1:1"
    page.route(f"{host}/run/", lambda route: route.fulfill(body=small_page(), content_type="text/html"))
    for script in (SITE / "handbook" / "run" / "calendar.js", SITE / "assets" / "js" / "words.js"):
        page.route(f"{host}/run/{script.name}", lambda route, _, script=script: route.fulfill(path=script))
    page.goto(f"{host}/run/")
    told = page.evaluate(TELL, TYPED if published else TYPED[:1]).replace("\r\n", "\n")
    path = Path(__file__).parent / ("calendar.txt" if published else "calendar_here.txt")
    if os.environ.get("RENEW"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")
    assert errors == []


def test_a_file_is_let_go_ten_seconds_after_it_was_made(context: BrowserContext) -> None:
    page = context.new_page()
    page.clock.install(time=utc(2027, 1, 2, 3, 4, 5))
    form = Form(page, local(W1)).type(MONDAY, "18:05", "UTC")
    page.evaluate("() => { window.gone = 0; URL.revokeObjectURL = () => { window.gone += 1; }; }")
    page.clock.pause_at(utc(2027, 1, 2, 3, 5, 0))
    form.file()
    page.clock.run_for(9999)
    assert page.evaluate("gone") == 0
    page.clock.run_for(1)
    assert page.evaluate("gone") == 1
