"""The ledger in a real Chromium: links that arrive, the filter, the head that stays, and a chapter of 20,000 rows."""

from __future__ import annotations

import json
import re

import pytest
from conftest import SITE, settled
from playwright.sync_api import Browser, Page, expect

from course_site.site.ledger_pages import sort_of, table_html

ROWS = 20_000
# Seconds of work, three times what two busy cores took. Where every row is laid out, or a step of the filter looks at
# all rows for each row, they are exceeded.
OPENS, READS, FILTERS = 5.0, 1.2, 0.6
LONG = "numbers/l5.html"


@pytest.fixture
def page(browser: Browser, base: str):
    context = browser.new_context()
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    yield page
    assert page.faults == []
    context.close()


def rows_left(page: Page) -> int:
    return page.locator("table.ledger tbody tr:not([hidden])").count()


def filter_by(page: Page, text: str, left: re.Pattern[str] = re.compile(r"^\d+ of \d+ rows$")) -> None:
    page.locator("#filter").fill(text)
    expect(page.locator(".filter output")).to_have_text(left)


def test_an_old_address_arrives_at_its_row(page: Page, base: str) -> None:
    name = re.search(
        r'href="[./]*numbers/(l3\.html)#([^"]+)"', (SITE / "lectures/l3_memory.html").read_text()
    )
    assert name
    for address in (base, SITE.as_uri() + "/"):
        page.goto(f"{address}numbers.html#{name[2]}")
        page.wait_for_url(f"{address}numbers/l3.html#{name[2]}")
        expect(page.locator(f'[id="{name[2]}"]')).to_be_in_viewport()
    page.goto(f"{base}numbers.html#of-l3")
    expect(page.locator("#of-l3 a")).to_be_in_viewport()
    page.goto(f"{base}numbers.html#what-has-changed-since-the-last-records")
    assert page.url.endswith("numbers.html#what-has-changed-since-the-last-records")


def test_the_filter_by_keyboard(page: Page, base: str) -> None:
    settled(page, base + LONG)
    said, all_of_them = page.locator(".filter output"), rows_left(page)
    expect(said).to_have_text(f"{all_of_them} rows")
    assert said.get_attribute("aria-live") == "polite"
    for _ in range(100):
        if page.evaluate("document.activeElement.id") == "filter":
            break
        page.keyboard.press("Tab")
    page.keyboard.type("SGEMM measured", delay=5)
    wanted = page.locator("table.ledger tbody tr", has=page.locator("td.measured"), has_text="sgemm").count()
    assert 0 < wanted < all_of_them
    expect(said).to_have_text(f"{wanted} of {all_of_them} rows")
    assert rows_left(page) == wanted
    filter_by(page, "nothing is called so", re.compile("^0 of"))
    assert rows_left(page) == 0
    page.keyboard.press("Escape")
    expect(said).to_have_text(f"{all_of_them} rows")
    assert rows_left(page) == all_of_them


def test_a_link_to_a_row_that_is_filtered_out_shows_it(page: Page, base: str) -> None:
    settled(page, base + LONG)
    name = page.locator("table.ledger tbody tr").last.get_attribute("id")
    filter_by(page, "nothing is called so")
    page.evaluate("name => { location.hash = name; }", name)
    expect(page.locator(f'[id="{name}"]')).to_be_in_viewport()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_head_stays_and_covers_no_row_that_a_link_leads_to(page: Page, base: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    settled(page, base + LONG)
    name = page.locator("table.ledger tbody tr").nth(150).get_attribute("id")
    settled(page, f"{base}{LONG}#{name}")
    head, row = (page.locator(at).bounding_box() for at in ("table.ledger thead", f'[id="{name}"]'))
    assert head
    assert row
    assert 40 < head["y"] < 160
    assert head["y"] + head["height"] <= row["y"] + 1 < 844
    # A heading stands above what it heads.
    over = page.evaluate(
        """name => [...document.getElementById(name).cells].map((cell, i) =>
             cell.getBoundingClientRect().left
             - document.querySelector('thead tr').cells[i].getBoundingClientRect().left)""",
        name,
    )
    assert max(map(abs, over)) < 1


def test_without_a_script_the_table_is_whole(browser: Browser, base: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(base + LONG)
    assert page.locator("table.ledger tbody tr").count() > 300
    expect(page.locator("#filter")).to_be_hidden()
    page.goto(base + "numbers.html#l5.sms")
    expect(page.locator("#of-l5 a")).to_have_attribute("href", "numbers/l5.html")
    context.close()


class Worked:
    """The seconds for which the thread that runs a page's scripts and lays it out has had a processor.

    Unlike a clock this does not see what else the machine does: a page that waits for its turn has not worked.
    """

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.before = self._all()

    def _all(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "TaskDuration")

    def since(self) -> float:
        """Seconds since this was asked last."""
        before, self.before = self.before, self._all()
        return self.before - before


def of_many_rows() -> str:
    """The longest chapter with its own rows again and again, drawn by what draws the site's."""
    values = json.loads((SITE / "ledger.json").read_text(encoding="utf-8"))["values"]
    mine = [v for v in values if v["name"].startswith("l5.") and v["kind"] not in ("shown", "text")]
    rows = [{**mine[i % len(mine)], "name": f"l5.copy{i // len(mine)}.{i}"} for i in range(ROWS)]
    words = [f"<span>{row.get('kernel', '<code>tiles / (rounds * sms)</code>')}</span>" for row in rows]
    table = table_html(rows, list(map(sort_of, rows)), words)
    before, _, rest = (SITE / LONG).read_text(encoding="utf-8").partition('<div class="filter"')
    return before + table + rest.partition("</table>")[2]


@pytest.mark.always
def test_a_chapter_of_20_000_rows_stays_quick(page: Page, base: str) -> None:
    body = of_many_rows()
    page.route(f"**/{LONG}", lambda route: route.fulfill(body=body, content_type="text/html; charset=utf-8"))
    worked = Worked(page)
    settled(page, base + LONG)
    took = {"opens": worked.since()}
    expect(page.locator(".filter output")).to_have_text(f"{ROWS} rows")
    # From a key to the next picture.
    page.evaluate(
        """() => {
          const field = document.querySelector('#filter'), said = document.querySelector('.filter output');
          window.type = text => new Promise(done => {
            new MutationObserver((_, seen) => {
              seen.disconnect();
              requestAnimationFrame(() => setTimeout(done));
            }).observe(said, {childList: true});
            field.value = text;
            field.dispatchEvent(new Event('input'));
          });
        }"""
    )
    worked.since()
    page.locator("#filter").focus()
    took["reads"] = worked.since()
    for text in ("s", "sg", "sgemm", "sgemm meas", "copy7.", "copy7.2333", "copy7", ""):
        page.evaluate("text => type(text)", text)
        took[repr(text)] = worked.since()
    print(f"{ROWS} rows, {len(body) / 1e6:.1f} MB:", {key: round(value, 3) for key, value in took.items()})
    assert rows_left(page) == ROWS
    assert took.pop("opens") < OPENS
    assert took.pop("reads") < READS
    assert max(took.values()) < FILTERS
    name = "l5.copy50.16500"
    page.evaluate("name => { location.hash = name; }", name)
    expect(page.locator(f'[id="{name}"]')).to_be_in_viewport()
