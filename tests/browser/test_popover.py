"""Words, numbers and tested sentences in a real Chromium: by tap on a phone, by mouse, by keyboard, and without script.

L5 has the most of them. It is opened once for each of the four, and asked everything there.
"""

from __future__ import annotations

import html
import re
import urllib.parse
import zlib
from collections.abc import Iterator

import axe
import pytest
from conftest import SITE, pages_of, quiet, settled
from playwright.sync_api import Browser, Locator, Page, expect

L5 = "lectures/l5_the_top_of_the_ladder.html"
TEXT = (SITE / L5).read_text(encoding="utf-8")
PHONE = {"width": 390, "height": 844}

# A tap on every mark in sight, wherever it stands on the screen: what opens lies beside it and on the screen, and says
# something. Its links are collected.
EVERY = """() => {
  const box = document.querySelector('#popover'), faults = [], links = new Set(), kinds = {};
  const marks = [...document.querySelectorAll('.md-content :is(abbr, .value, .tested)[role]')]
    .filter(mark => mark.checkVisibility());
  marks.forEach((mark, i) => {
    mark.scrollIntoView({block: ['start', 'center', 'end', 'nearest'][i % 4], behavior: 'instant'});
    mark.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1}));
    const b = box.getBoundingClientRect(), said = mark.outerHTML.slice(0, 90);
    kinds[mark.className || mark.tagName] = (kinds[mark.className || mark.tagName] || 0) + 1;
    if (!box.matches(':popover-open')) faults.push('nothing opens: ' + said);
    if (b.left < 0 || b.top < 0 || b.right > innerWidth || b.bottom > innerHeight)
      faults.push(`${b.left} ${b.top} ${b.right} ${b.bottom}: off the screen: ` + said);
    if (b.height < 40 || b.width < 60) faults.push(`${b.width} by ${b.height}: too small: ` + said);
    const over = r => b.left < r.right && b.right > r.left && b.top < r.bottom && b.bottom > r.top;
    if ([...mark.getClientRects()].some(over))
      faults.push('covers its mark: ' + said);
    if (box.textContent.trim().length < 15 || /undefined|NaN|null/.test(box.textContent))
      faults.push(JSON.stringify(box.textContent) + ': ' + said);
    if (mark.matches('a.value, .tested') && !box.querySelector('a')) faults.push('no link: ' + said);
    box.querySelectorAll('a').forEach(a => links.add(a.href));
    mark.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, detail: 1}));
    if (box.matches(':popover-open')) faults.push('a second tap closes nothing: ' + said);
  });
  return {faults: faults.slice(0, 12), links: [...links], kinds};
}"""


@pytest.fixture
def phone(browser: Browser, base: str) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, has_touch=True)
    yield settled(context.new_page(), base + L5)
    context.close()


def value_of(page: Page, expression: str) -> Locator:
    """The first value on the page that stands for an expression."""
    place = re.search(rf'data-of="(\d+)" title="{re.escape(expression)} · ', TEXT)
    assert place, expression
    return page.locator(f'.md-content .value[data-of="{place[1]}"]').first


def test_a_tap_opens_what_stands_behind_a_mark(phone: Page, base: str) -> None:
    box = phone.locator("#popover")
    expect(box).to_be_hidden()

    # a quotient: its formula, its own value, and the two it is made of
    expression = "ladder.naive.tflops / ladder.cublas.tflops"
    ratio = value_of(phone, expression)
    was = phone.url
    ratio.tap()
    expect(box).to_be_visible()
    assert phone.url == was, "a tap leaves the page"
    for said in (expression, "median of 12", "spread ", "TFLOP/s", "NVIDIA H200", "2026"):
        expect(box).to_contain_text(said)
    row = box.get_by_role("link", name=re.compile("ledger"))
    expect(row).to_have_attribute("href", re.compile(r"numbers/l5\.html#l5\.ladder\.naive$"))
    expect(ratio).to_have_attribute("aria-expanded", "true")
    box.tap(position={"x": 8, "y": 8})
    expect(box).to_be_visible()  # a tap on it is no tap elsewhere

    # what its page defines: what it is, and what it is made of; a tap elsewhere closes it
    phone.touchscreen.tap(5, 830)
    expect(box).to_be_hidden()
    expect(ratio).to_have_attribute("aria-expanded", "false")
    value_of(phone, "sgemm.last_of_cublas").tap()
    expect(box).to_contain_text("sgemm.last_of_cublas = ladder.persistent.tflops / ladder.cublas.tflops")
    expect(box).to_contain_text("the last fp32 kernel of the ladder")
    phone.keyboard.press("Escape")
    expect(box).to_be_hidden()

    # a claim: in words, in code, and how often it was true
    claim = phone.locator(".claim", has=phone.locator(".tested:visible")).first
    expect(claim.locator(".tested")).to_have_text("tested")
    claim.locator(".tested").tap()
    expect(box.locator("li").first).to_contain_text(re.compile(r" is (?:less|more) than "))
    expect(box.locator("code")).to_have_text(claim.get_attribute("data-condition"))
    expect(box).to_contain_text(re.compile(r"True in (?:99|100)\.\d% of the resamples"))

    # a word: its meaning, what the kitchen calls it, and its row of the glossary
    word = phone.locator("abbr[data-kitchen]:visible").first
    title = html.unescape(
        re.search(rf'data-term="{word.get_attribute("data-term")}"[^>]* title="([^"]*)"', TEXT)[1]
    )
    word.tap()
    expect(box).to_contain_text(title)
    expect(box).to_contain_text(word.get_attribute("data-kitchen"))
    box.get_by_role("link").tap()
    phone.wait_for_url(f"{base}glossary.html#term-*")
    expect(phone.locator(f"[id='{phone.url.partition('#')[2]}']")).to_be_in_viewport()


def test_it_never_covers_its_mark_and_every_link_leads_somewhere(phone: Page, base: str) -> None:
    phone.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found = phone.evaluate(EVERY)
    assert found["faults"] == []
    assert all(found["kinds"][kind] > few for kind, few in {"value": 400, "tested": 30, "ABBR": 20}.items())
    missing = []
    for link in found["links"]:
        place = urllib.parse.urlsplit(link)
        target = (SITE / place.path.lstrip("/")).read_text(encoding="utf-8")
        if f'id="{urllib.parse.unquote(place.fragment)}"' not in target:
            missing.append(link)
    assert missing == []


def test_a_mouse_opens_it_and_leaving_closes_it(browser: Browser, base: str) -> None:
    page = settled(browser.new_page(), base + L5)
    box = page.locator("#popover")
    value = page.locator(".md-content a.value:visible").first
    value.hover()
    expect(box).to_be_visible()
    page.evaluate(axe.script())
    assert page.evaluate("axe.run('#popover').then(found => found.violations.map(v => v.id))") == []
    box.get_by_role("link").hover()  # on the way there it stays
    page.wait_for_timeout(500)
    expect(box).to_be_visible()
    page.mouse.move(3, 3)
    expect(box).to_be_hidden()
    with page.context.expect_page() as tab:  # who wants the ledger at once has it
        value.click(modifiers=["ControlOrMeta"])
    assert "/numbers/l5.html#" in tab.value.url
    tab.value.close()
    page.emulate_media(media="print")
    value.click()
    expect(box).to_be_hidden()
    page.close()


# Where the focus is: what it is, and whether somebody can see it.
FOCUS = """first => {
  const e = document.activeElement, b = (e.matches('.md-option') ? e.nextElementSibling : e).getBoundingClientRect();
  const seen = b.width > 3 && b.height > 3 && b.right > 0 && b.bottom > 0 && b.left < innerWidth && b.top < innerHeight;
  const box = document.querySelector('#popover');
  const behind = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(
    o => o.tabIndex >= 0 && o.checkVisibility({visibilityProperty: true}) && e.compareDocumentPosition(o) & 4
      && !o.closest('.md-tooltip2'));  // a footnote's, which fades in and out behind the page when its mark is passed
  return {end: e === document.body || e === first, seen, behind: behind.length, said: e.outerHTML.slice(0, 120),
    popover: box.matches(':popover-open'), inside: box.contains(e)};
}"""


def stops(page: Page) -> list[dict[str, object]]:
    """Every stop of the Tab key from the top of a page to its end.

    Behind the last one the browser itself has the focus, or, where it has no window, the first one again: at once, or
    a moment later.
    """
    page.keyboard.press("Tab")
    found, first = [page.evaluate(FOCUS)], page.evaluate_handle("document.activeElement")
    while len(found) < 900:
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS, first)
        if stop["end"]:
            break
        found.append(stop)
    return found


def test_the_keyboard_alone_comes_through_the_longest_page(browser: Browser, base: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 844})
    settled(page, base + L5)
    box = page.locator("#popover")
    walked = stops(page)
    assert [stop["said"] for stop in walked if not stop["seen"]] == [], "the focus vanishes"
    assert 40 < len(walked) < 120, f"{len(walked)} stops"
    assert walked[-1]["behind"] == 0, f"the walk ends at {walked[-1]['said']}"
    # lists of links are one stop each, and every link of theirs is reached by arrows
    lists = page.evaluate(
        """() => [...document.querySelectorAll('[data-keys]')].map(list => {
          const links = [...list.querySelectorAll('a[href]')], seen = new Set();
          links.find(link => link.tabIndex === 0).focus();
          for (let i = 0; i < links.length; i++) {
            seen.add(document.activeElement);
            document.activeElement.dispatchEvent(
              new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true, cancelable: true}));
          }
          const stops = list.querySelectorAll('a[tabindex="0"]').length;
          return [links.length, links.filter(link => seen.has(link)).length, stops];
        })"""
    )
    assert [(reached, stops) for _, reached, stops in lists] == [(links, 1) for links, _, _ in lists]
    assert len(lists) == 2
    assert max(links for links, _, _ in lists) > 15

    # from the top once more, by the link that leads past the navigation, to the first section with a mark
    settled(page, base + L5)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    while not page.evaluate(FOCUS)["popover"]:
        page.keyboard.press("Tab")
    mark = page.locator("[aria-expanded='true']:is(abbr, .value, .tested)")
    expect(box).to_contain_text("← and →")  # said where it is needed
    one = mark.element_handle()
    page.keyboard.press("ArrowRight")
    expect(box).to_be_visible()
    assert not mark.evaluate("(e, other) => e === other", one), "an arrow moves nothing"
    page.keyboard.press("ArrowLeft")
    assert mark.evaluate("(e, other) => e === other", one)

    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    assert page.evaluate("e => document.activeElement === e", one)
    page.keyboard.press("Enter")  # opens it again, and goes to its link
    assert page.evaluate(FOCUS)["inside"]
    page.keyboard.press("Escape")  # and back
    expect(box).to_be_hidden()
    assert page.evaluate("e => document.activeElement === e", one)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # goes on behind the mark, not at the end of the page
    after = page.evaluate(FOCUS)
    assert not after["inside"]
    assert not after["end"]
    assert page.evaluate("e => !!(e.compareDocumentPosition(document.activeElement) & 4)", one)
    assert page.evaluate("document.querySelector('.md-content').contains(document.activeElement)")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("e => document.activeElement === e", one), "a section forgets where its reader was"
    # every mark can be walked to: arrows from the first to the last, none left out
    reached = page.evaluate(
        """() => {
          const marks = [...document.querySelectorAll('.md-content :is(abbr, .value, .tested)[role]')]
            .filter(mark => mark.checkVisibility());
          const seen = new Set();
          for (let i = 0, last; last !== document.activeElement && i < 2000; i++) {
            last = document.activeElement;
            seen.add(last);
            last.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true, cancelable: true}));
          }
          return [marks.length, marks.filter(mark => seen.has(mark)).length];
        }"""
    )
    assert reached[0] == reached[1] > 100, reached
    page.close()


def test_on_a_phone_the_focus_never_goes_behind_what_is_shut(browser: Browser, base: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, base + L5)
    walked = stops(page)
    assert [stop["said"] for stop in walked if not stop["seen"]] == [], "the focus vanishes"
    assert 30 < len(walked) < 120, f"{len(walked)} stops"
    assert walked[-1]["behind"] == 0, f"the walk ends at {walked[-1]['said']}"

    button, pages = page.get_by_role("button", name="All pages"), page.locator(".md-sidebar--primary")
    inside = "pages => pages.contains(document.activeElement)"
    button.focus()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    seen = []
    while quiet(page) and pages.evaluate(inside):  # the leaf this page is on, and nothing of those below it
        assert page.evaluate(FOCUS)["seen"]
        assert page.evaluate(
            """() => { const e = document.activeElement, b = e.getBoundingClientRect();
                 return e.contains(document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2)); }"""
        )
        seen.append(page.evaluate("document.activeElement.textContent.trim()"))
        page.keyboard.press("Tab")
    assert any(said.startswith("L6") for said in seen), seen
    assert not any(said.startswith("L8") for said in seen), seen  # in another section

    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Space")
    for _ in range(2):  # up to the first leaf
        page.keyboard.press("Space")
        quiet(page)
        assert pages.evaluate(inside)
    expect(pages.get_by_role("link", name="Home")).to_be_visible()
    assert axe.faults(page) == []
    page.close()


def test_without_script_the_titles_and_the_links_are_there(browser: Browser, base: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(base + L5)
    value = page.locator(".md-content a.value:visible").first
    assert re.search(r"\w+\.\w+ · .*spread .*% · NVIDIA", value.get_attribute("title"))
    expect(page.locator(".claim .tested:visible").first).to_have_attribute(
        "title", re.compile("than .*\nTrue in")
    )
    assert page.locator("abbr:visible").first.get_attribute("title")
    value.click()
    assert "/numbers/l5.html#l5." in page.url
    context.close()


def test_the_key_to_the_marks_stands_where_a_reader_begins() -> None:
    for name in ("index.html", "lectures/l1_what_a_gpu_is.html"):
        key = re.search(r'<div class="key">.*?</div>', (SITE / name).read_text(encoding="utf-8"), re.DOTALL)
        assert len(re.findall("<li>", key[0] if key else "")) == 3, name


def test_no_page_is_heavier_for_its_popovers_than_a_picture() -> None:
    for name in pages_of(SITE):
        text = (SITE / name).read_text(encoding="utf-8")
        told = (SITE / name).with_suffix(".values.js")
        assert told.exists() == ('data-file="' in text), name
        if told.exists():
            assert len(zlib.compress(told.read_bytes(), 9)) < 9_000, name
