"""The year's front page: its map and list by mouse and keyboard, on a phone, on paper; a calendar of 52 days."""

from __future__ import annotations

import re
from pathlib import Path

import icalendar
import pytest
from conftest import SITE, quiet, settled
from playwright.sync_api import Browser, expect

YEAR = "curriculum/index.html"


def test_the_map_shows_what_a_week_needs_and_leads_to_its_page(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = settled(context.new_page(), (SITE / YEAR).as_uri())
    boxes = page.locator(".year-map .week")
    expect(boxes).to_have_count(52)
    page.locator(".year-map [data-week='15']").hover()
    lifted = page.locator(".year-map .arrow.near").evaluate_all(
        "found => found.map(a => a.getAttribute('class'))"
    )
    assert {re.search(r"from(\d+) to(\d+)", one).groups() for one in lifted} == {
        ("10", "15"),
        ("14", "15"),
        ("15", "16"),
    }
    near = page.locator(".year-map .week.near").evaluate_all("found => found.map(b => b.dataset.week)")
    assert sorted(map(int, near)) == [10, 14, 15, 16]
    page.locator("h1").hover()
    expect(page.locator(".year-map .arrow.near")).to_have_count(0)
    too_long = page.locator(".year-map .week").evaluate_all(
        """found => found.filter(box => {
          const words = box.querySelector("text").getBBox(), frame = box.querySelector("rect").getBBox();
          return words.x + words.width > frame.x + frame.width - 2;
        }).map(box => box.textContent)"""
    )
    assert too_long == []
    page.locator(".year-map [data-week='3']").click()
    expect(page).to_have_url(re.compile(r"week_03\.html$"))
    context.close()


def test_the_list_has_every_week_and_is_walked_by_keyboard(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = settled(context.new_page(), (SITE / YEAR).as_uri())
    expect(page.locator(".year-map")).to_be_hidden()
    weeks = page.locator(".stops li")
    expect(weeks).to_have_count(52)
    assert weeks.evaluate_all("found => found.map(w => w.id)") == [
        f"week-{number}" for number in range(1, 53)
    ]
    done = page.locator(".stops li:not(.to-come)")
    expect(done.locator("> a")).to_have_count(done.count())
    done.first.locator("> a").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.stops li') !== null")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    address = done.first.get_attribute("data-page")
    page.evaluate(
        "address => { const p = PercentOfPeak.progress; p.open(address, ''); p.finish(address); }",
        f"curriculum/{address}",
    )
    expect(done.first).to_have_class(re.compile("read"))
    context.close()


def test_on_paper_the_map_and_the_list_are_there_and_no_button(browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1000, "height": 1400})
    page = settled(context.new_page(), (SITE / YEAR).as_uri())
    page.emulate_media(media="print")
    quiet(page)
    expect(page.locator(".year-map svg")).to_be_visible()
    expect(page.locator(".stops li").last).to_be_visible()
    expect(page.locator(".where")).to_be_hidden()
    context.close()


@pytest.mark.parametrize(
    ("date", "first", "last"),
    [("2027-01-04", "2027-01-04", "2027-12-27"), ("2028-02-28", "2028-02-28", "2029-02-19")],
)
def test_the_year_as_a_calendar_is_52_days(browser: Browser, date: str, first: str, last: str) -> None:
    context = browser.new_context(timezone_id="Pacific/Kiritimati", accept_downloads=True)
    page = settled(context.new_page(), (SITE / YEAR).as_uri())
    expect(page.locator("#calendar-time")).to_have_count(0)
    page.fill("#calendar-date", date)
    with page.expect_download() as download:
        page.click("text=Download .ics")
    assert download.value.suggested_filename == f"year-{date}.ics"
    events = icalendar.Calendar.from_ical(Path(download.value.path()).read_bytes()).walk("VEVENT")
    days = sorted(event["DTSTART"].dt.isoformat() for event in events)
    assert (len(days), days[0], days[-1]) == (52, first, last)
    assert len({str(event["UID"]) for event in events}) == 52
    expect(page.locator(".calendar .made")).to_have_text(
        f"year-{date}.ics: 52 entries, a day each. The first is on {first}."
    )
    page.fill("#calendar-date", "2027-01-05")
    page.click("text=Download .ics")
    expect(page.locator(".calendar .wrong")).to_have_text(
        "2027-01-05 is a Tuesday. The plan begins on a Monday, for example 2027-01-04."
    )
    context.close()
