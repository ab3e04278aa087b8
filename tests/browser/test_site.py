"""The built site in a real Chromium: alone on its host, whole on a phone, open to all, usable without a server."""

from __future__ import annotations

import json
import re
import urllib.parse
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import SITE, pages_of
from playwright.sync_api import Browser, Page, expect

ALLOWED = json.loads(Path(__file__).with_name("axe_allowed.json").read_text(encoding="utf-8"))


def settled(page: Page, address: str) -> Page:
    """The page once its fonts, its mathematics and the theme's scripts have done their work."""
    page.goto(address, wait_until="load")
    page.wait_for_function("document.fonts.status == 'loaded'")
    if page.locator(".arithmatex").count():
        page.wait_for_function("document.documentElement.dataset.mathematics == 'done'")
    page.wait_for_timeout(400)
    return page


def test_a_page_asks_nothing_of_another_host_and_misses_nothing(
    browser: Browser, base: str, page_name: str
) -> None:
    page = browser.new_page()
    asked, missing, errors = [], [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    settled(page, base + page_name)
    page.close()
    assert [url for url in asked if not url.startswith((base, "data:", "blob:"))] == []
    assert missing == []
    assert errors == []


def test_a_phone_never_scrolls_sideways(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, base + page_name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    wide = page.evaluate(
        """() => [...document.querySelectorAll('.md-content *')].filter(e => {
             const box = e.getBoundingClientRect();
             if (box.right <= innerWidth + 1 || !box.width) return false;
             for (let p = e.parentElement; p; p = p.parentElement)
               if (getComputedStyle(p).overflowX != 'visible') return false;
             return true;
           }).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
    )
    page.close()
    assert (width, wide) == (390, [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_but_what_is_allowed(
    browser: Browser, base: str, page_name: str, scheme: str
) -> None:
    page = browser.new_page(color_scheme=scheme)
    settled(page, base + page_name)
    found = Axe().run(page).response["violations"]
    page.close()
    left = [
        f"{rule['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in found
        for node in rule["nodes"]
        if not any(
            a["rule"] == rule["id"] and re.search(a["selector"], str(node["target"][0])) for a in ALLOWED
        )
    ]
    assert left == []


def test_search_finds_a_page(browser: Browser, base: str) -> None:
    page = browser.new_page()
    settled(page, base + "index.html")
    page.keyboard.press("/")
    page.keyboard.type("spread", delay=30)
    expect(page.locator(".md-search-result__link").first).to_be_visible(timeout=10_000)
    page.close()


def test_a_page_opens_from_a_folder_with_search_and_mathematics(browser: Browser, page_name: str) -> None:
    if page_name == "404.html":
        return  # only a server shows it
    context = browser.new_context(offline=True)
    page = context.new_page()
    settled(page, (SITE / page_name).as_uri())
    assert page.locator("h1").first.inner_text().strip() != ""
    assert page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent').trim()") != ""
    assert page.evaluate("document.fonts.check('16px \"Source Serif 4\"')")
    if page_name == "index.html":
        page.keyboard.press("/")
        page.keyboard.type("spread", delay=30)
        expect(page.locator(".md-search-result__link").first).to_be_visible(timeout=10_000)
    context.close()


def test_mathematics_is_set_and_not_left_as_source(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page()
    settled(page, base + page_name)
    places, drawn = page.locator(".arithmatex").count(), page.locator(".arithmatex .katex").count()
    wrong = page.locator(".katex-error").all_inner_texts()
    page.close()
    assert (drawn, wrong) == (places, [])


def test_every_fold_opens_by_keyboard(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page()
    settled(page, base + page_name)
    for fold in page.locator(".md-content details > summary").all():
        if not fold.is_visible():
            continue
        fold.focus()
        before = fold.evaluate("s => s.parentElement.open")
        page.keyboard.press("Enter")
        assert fold.evaluate("s => s.parentElement.open") is not before, fold.inner_text()
    page.close()


def test_what_scrolls_can_be_reached_by_keyboard(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, base + page_name)
    out_of_reach = page.evaluate(
        """() => [...document.querySelectorAll('.md-content *')].filter(e =>
             ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1
             && e.clientWidth && e.tabIndex < 0 && !e.querySelector('a, button, [tabindex]'))
           .map(e => e.outerHTML.slice(0, 120))"""
    )
    page.close()
    assert out_of_reach == []


def test_the_dark_page_is_dark_and_the_toggle_turns_it(browser: Browser, base: str) -> None:
    page = browser.new_page(color_scheme="dark")
    settled(page, base + "index.html")
    brightness = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"
    )
    assert page.evaluate(brightness) < 150
    page.locator("label.md-header__button[title*='Switch to light']").click()
    page.wait_for_timeout(200)
    assert page.evaluate(brightness) > 700
    page.close()


def test_a_page_prints_in_light_colours(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page(color_scheme="dark")
    settled(page, base + page_name)
    page.evaluate(
        "addEventListener('beforeprint', () => window.printedAs = document.body.dataset.mdColorScheme)"
    )
    pdf = page.pdf(format="A4", tagged=True)
    printed_as, afterwards = page.evaluate("[window.printedAs, document.body.dataset.mdColorScheme]")
    themed = page.locator("body[data-md-color-scheme]").count()
    page.emulate_media(media="print")
    bare = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.close()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 5_000
    if not themed:
        assert bare == "rgb(255, 255, 255)"
        return
    assert (printed_as, afterwards) == ("default", "slate")


def test_links_into_a_page_find_their_place(browser: Browser, base: str, page_name: str) -> None:
    page = browser.new_page()
    settled(page, base + page_name)
    broken = []
    links = ".md-content a[href], .md-nav a[href], .md-footer a[href]"
    for href in page.eval_on_selector_all(links, "links => links.map(a => a.href)"):
        address = urllib.parse.urlsplit(href)
        if not href.startswith(base):
            continue
        target = SITE / urllib.parse.unquote(address.path).lstrip("/")
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            broken.append(href)
        elif address.fragment and target.suffix == ".html":
            name = urllib.parse.unquote(address.fragment)
            if f'id="{name}"' not in target.read_text(encoding="utf-8"):
                broken.append(href)
    page.close()
    assert sorted(set(broken)) == []


def test_a_diff_is_read_without_colour_and_scrolls_in_its_own_box(browser: Browser, base: str) -> None:
    names = [
        name for name in pages_of(SITE) if 'class="fold diff"' in (SITE / name).read_text(encoding="utf-8")
    ]
    assert names, "no page shows what one kernel changes in the one before it"
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, base + names[0])
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(200)
    faults = page.evaluate(
        """() => [...document.querySelectorAll('.difference code')].flatMap(box => {
             const rows = [...box.firstChild.children];
             const sign = {INS: '+', DEL: '−', SPAN: ' ', I: '⋯'};
             const tall = rows.map(row => row.getBoundingClientRect().height);
             box.scrollLeft = 1e6;
             const edge = box.getBoundingClientRect().right;
             return [
               rows.some(row => !row.textContent.startsWith(sign[row.tagName])) && 'a line without its sign',
               Math.max(...tall) > 1.5 * Math.min(...tall) && 'a line that wraps',
               rows.some(row => row.getBoundingClientRect().right < edge - 1) && 'a wash that ends too early',
               edge > innerWidth && 'a box wider than the page',
               !(box.ariaLabel && box.tabIndex >= 0) && 'a box without a name or out of reach',
             ].filter(Boolean);
           })"""
    )
    shown = page.locator(".difference ins:visible, .difference del:visible").count()
    page.close()
    assert faults == []
    assert shown
