"""The switch between the cards: it leads to the same heading, is kept on the device, and leads nobody in a circle."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import SITE, editions_of, quiet, settled
from playwright.sync_api import Browser, BrowserContext, Page, expect

FOLDER = "h100"
READ = "attention_on_hopper.html"  # which both cards have measured
ABSENT = "lectures/l3_memory.html"
HEADING = "one-idea-at-a-time"
PHONE = {"width": 390, "height": 844}
# As a browser may keep the pages of a folder: a store for each file.
A_STORE_FOR_EACH_FILE = """
for (const kind of ['getItem', 'setItem', 'removeItem']) {
  const plain = Storage.prototype[kind];
  Storage.prototype[kind] = function (key, ...more) {
    return plain.call(this, location.pathname + ' ' + key, ...more);
  };
}
"""
NO_STORE = """
for (const name of ['localStorage', 'sessionStorage'])
  Object.defineProperty(window, name, {get() { throw new DOMException('refused', 'SecurityError'); }});
"""


@pytest.fixture(params=["server", "folder"])
def root(request: pytest.FixtureRequest, base: str) -> str:
    """The address of the site, both ways to open it."""
    return base if request.param == "server" else SITE.as_uri() + "/"


@pytest.fixture
def reader(browser: Browser) -> Iterator[BrowserContext]:
    """One who was never here."""
    context = browser.new_context()
    yield context
    context.close()


def to(page: Page, card: str) -> None:
    page.locator("nav.editions a", has_text=card).click()
    page.wait_for_load_state()
    quiet(page)


def here(page: Page) -> str:
    return page.locator("nav.editions [aria-current]").inner_text()


def place(page: Page, root: str) -> str:
    return page.url.removeprefix(root)


def test_the_site_holds_two_editions() -> None:
    assert FOLDER in editions_of(SITE)


def test_the_switch_leads_to_the_same_heading_and_back(reader: BrowserContext, root: str) -> None:
    page = settled(reader.new_page(), root + READ)
    assert here(page) == "H200"
    page.locator(f"#{HEADING}").scroll_into_view_if_needed()
    page.evaluate(f"document.getElementById('{HEADING}').scrollIntoView()")
    to(page, "H100")
    assert place(page, root) == f"{FOLDER}/{READ}#{HEADING}"
    assert here(page) == "H100"
    expect(page.locator(f"#{HEADING}")).to_be_in_viewport()
    assert "H100" in page.locator(".stamp summary").inner_text()
    to(page, "H200")
    assert place(page, root) == f"{READ}#{HEADING}"
    assert "H200" in page.locator(".stamp summary").inner_text()


def test_at_the_top_of_a_page_it_leads_to_the_top(reader: BrowserContext, root: str) -> None:
    page = settled(reader.new_page(), root + READ)
    to(page, "H100")
    assert place(page, root) == f"{FOLDER}/{READ}"


def test_without_a_script_it_is_a_link(browser: Browser, root: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(root + READ)
    page.locator("nav.editions a", has_text="H100").click()
    assert place(page, root) == f"{FOLDER}/{READ}"
    page.locator("nav.editions a", has_text="H200").click()
    assert place(page, root) == READ
    context.close()


def test_the_choice_is_kept_for_who_comes_from_elsewhere_and_bothers_nobody_inside(
    reader: BrowserContext, root: str
) -> None:
    page = settled(reader.new_page(), root + READ)
    to(page, "H100")
    page.close()

    page = reader.new_page()  # a bookmark, a mail
    page.goto(f"{root}{READ}#{HEADING}")
    page.wait_for_url(f"{root}{FOLDER}/{READ}#{HEADING}")
    quiet(page)
    assert here(page) == "H100"
    # A page that this card does not have: its own edition's page leads on, and there the reader stays.
    page.goto(root + FOLDER + "/" + ABSENT)
    page.locator(".banner.absent a").click()
    quiet(page)
    assert (place(page, root), here(page)) == (ABSENT, "H200")
    page.locator("header a.md-logo").click()
    quiet(page)
    assert (place(page, root), here(page)) == ("index.html", "H200")


def test_who_opens_what_his_card_does_not_have_sees_it_where_it_is(reader: BrowserContext, root: str) -> None:
    page = settled(reader.new_page(), root + READ)
    to(page, "H100")
    page.close()
    page = settled(reader.new_page(), root + ABSENT)
    assert (place(page, root), here(page)) == (ABSENT, "H200")


def test_the_way_back_is_no_trap(reader: BrowserContext, base: str) -> None:
    page = settled(reader.new_page(), base + READ)
    to(page, "H100")
    page.go_back()
    quiet(page)
    assert place(page, base) == READ


@pytest.mark.parametrize("odd", [A_STORE_FOR_EACH_FILE, NO_STORE], ids=["a store for each file", "no store"])
def test_nobody_is_led_in_a_circle(reader: BrowserContext, root: str, odd: str) -> None:
    reader.add_init_script(odd)
    page = settled(reader.new_page(), root + READ)
    for card, where in (
        ("H100", f"{FOLDER}/{READ}"),
        ("H200", READ),
        ("H100", f"{FOLDER}/{READ}"),
        ("H200", READ),
    ):
        to(page, card)
        assert place(page, root) == where
        page.reload()
        quiet(page)
        assert place(page, root) == where


def test_what_a_card_has_not_measured_leads_heading_by_heading_to_the_one_that_has(
    reader: BrowserContext, root: str
) -> None:
    page = settled(reader.new_page(), f"{root}{FOLDER}/{ABSENT}#how-far-is-it")
    expect(page.locator("#how-far-is-it")).to_be_in_viewport()
    assert "The H100 has not measured this page yet." in page.locator(".banner.absent").inner_text()
    page.locator("#how-far-is-it a").click()
    assert place(page, root) == f"{ABSENT}#how-far-is-it"


@pytest.mark.parametrize("name", [READ, FOLDER + "/" + READ, FOLDER + "/" + ABSENT, "index.html"])
def test_it_is_there_on_a_phone(browser: Browser, name: str) -> None:
    context = browser.new_context(viewport=PHONE)
    page = settled(context.new_page(), (SITE / name).as_uri())
    expect(page.locator("nav.editions")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    box = page.locator("nav.editions a").first.bounding_box()
    assert box
    assert box["height"] >= 24  # as large as a finger may ask for
    context.close()


def test_the_run_view_has_it_and_stays_where_it_is_in_the_session(reader: BrowserContext, base: str) -> None:
    page = settled(reader.new_page(), base + "handbook/run/w1.html")
    page.locator("#start-now").click()
    began = page.locator("#card-title").inner_text()
    to(page, "H100")
    assert place(page, base).partition("#")[0] == f"{FOLDER}/handbook/run/w1.html"
    assert page.locator("#card-title").inner_text() == began


def test_what_is_found_lies_in_the_edition_that_is_open(reader: BrowserContext, root: str) -> None:
    page = settled(reader.new_page(), f"{root}{FOLDER}/{READ}")
    page.keyboard.press("/")
    page.locator("dialog.search input").fill("bank conflict")
    page.locator("dialog.search li a").first.wait_for()
    assert "Searched as it is on the H200" in page.locator("dialog.search").inner_text()
    first = page.locator("dialog.search li a").first
    assert str(first.evaluate("link => link.href")).startswith(f"{root}{FOLDER}/")
    first.click()
    quiet(page)
    assert here(page) == "H100"


def test_a_page_that_was_read_counts_on_either_card(reader: BrowserContext, base: str) -> None:
    page = settled(reader.new_page(), base + FOLDER + "/" + READ)
    assert page.evaluate("PercentOfPeak.progress.address(location.href)") == READ
    assert page.evaluate(f"PercentOfPeak.progress.page('{READ}') !== null")
