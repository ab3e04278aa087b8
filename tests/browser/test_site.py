"""The built site in a real Chromium: alone on its host, whole on a phone, open to all, usable without a server.

To open a page costs more than most questions to it. So each page is opened once, from a server, and asked everything
there: at a desk, and then as narrow as a phone. From a folder it is opened a second time where it has a script that no
other page has, and of the rest where it stands for its kind. Each test tells all that is wrong with its page, not the
first of it.
"""

from __future__ import annotations

import gzip
import html
import re
import urllib.parse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Literal

import axe
import figures
import kept_pages
import pytest
from conftest import SITE, each_kind, pages_of, quiet, settled
from playwright.sync_api import Browser, Error, Page, expect

# All that a page asks for before anybody touches it, each file with gzip, but for what is packed already.
FIRST_LOAD = 250_000
PACKED = (".woff2", ".png")
# A mentor's hour is one table on one page; a ledger's page holds every row of its lecture. Neither is a first visit.
HEAVY = ("handbook/", "numbers/")


@cache
def weight(file: Path) -> int:
    data = file.read_bytes()
    return len(data) if file.suffix in PACKED else len(gzip.compress(data))


def weighs(visit: Visit, base: str, page_name: str) -> list[str]:
    """The page is let off nothing: also what it has no use for, if it asks for it, counts."""
    names = {urllib.parse.unquote(url.removeprefix(base).split("?")[0]) for url in visit.urls}
    files = {name: weight(SITE / name) for name in names if (SITE / name).is_file()}
    assert page_name in files
    assert len(files) > 5, "a page has styles, scripts and fonts"
    if page_name.startswith(HEAVY) or sum(files.values()) <= FIRST_LOAD:
        return []
    most = ", ".join(f"{name} {size:,}" for name, size in sorted(files.items(), key=lambda f: -f[1])[:6])
    return [f"{sum(files.values()):,} bytes with gzip, of {FIRST_LOAD:,}: {most}"]


class Visit:
    """A page in a browser that has never seen it, and all that turns out to be wrong with it."""

    def __init__(self, browser: Browser, address: str, own: tuple[str, ...], **how: object) -> None:
        self.faults: list[str] = []
        self.own = (*own, "data:", "blob:")
        self.urls: list[str] = []
        self.context = browser.new_context(**how)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked(request.url))
        self.page.on("response", lambda response: self.answered(response.status, response.url))
        self.page.on("requestfailed", lambda request: self.failed(request.resource_type, request.url))
        self.page.on("pageerror", lambda error: self.faults.append(f"a script fails: {error}"))
        self.check("settles", lambda page: settled(page, address) and [])

    def asked(self, url: str) -> None:
        self.urls.append(url)
        if not url.startswith(self.own):
            self.faults.append(f"asks another host: {url}")

    def answered(self, status: int, url: str) -> None:
        if status >= 400:
            self.faults.append(f"misses a file: {status} {url}")

    def failed(self, kind: str, url: str) -> None:
        # A font's preload needs an origin, which a folder has not; the style fetches it again, and usable() looks.
        if not (kind == "font" and url.startswith("file:")):
            self.faults.append(f"misses a file: {url}")

    def check(self, what: str, find: Callable[[Page], list[str]]) -> None:
        """One question; that it could not be asked is a fault too, and the next is asked all the same."""
        try:
            self.faults += [f"{what}: {fault}" for fault in find(self.page)]
        except (Error, AssertionError) as error:
            self.faults.append(f"{what}: {error}")

    def end(self, page_name: str) -> None:
        self.context.close()
        if self.faults:
            pytest.fail("\n".join([page_name, *dict.fromkeys(self.faults)]), pytrace=False)


def mathematics(page: Page) -> list[str]:
    """Every formula is drawn by the browser, in the font that was made for it, and none is left as it was typed."""
    return page.evaluate(
        r"""() => {
          const seen = [...document.querySelectorAll('.md-content math')].filter(m => m.checkVisibility());
          const flat = seen.filter(m => m.getBoundingClientRect().height < 8);
          const cut = seen.filter(m => {
            const next = m.nextSibling, range = document.createRange();
            if (next?.nodeType != 3 || !/^[,.;:?!)]/.test(next.data)) return false;
            range.setStart(next, 0);
            range.setEnd(next, 1);
            return range.getBoundingClientRect().left < m.getBoundingClientRect().left;
          });
          const font = [...document.fonts].find(f => f.family.includes('STIX') && f.status == 'loaded');
          const text = document.querySelector('.md-content')?.cloneNode(true);
          text?.querySelectorAll('pre, code').forEach(code => code.remove());
          const typed = text?.textContent.match(/\\[(\[][^)]*\\[)\]]|\$[^$\s][^$\n]*\$/g) ?? [];
          return [
            ...flat.map(m => `a formula without height: ${m.textContent}`),
            ...cut.map(m => `a line begins with what ends a formula: ${m.textContent}`),
            ...(seen.length && !font ? ['formulas in another font'] : []),
            ...typed.map(tex => `left as it was typed: ${tex}`),
          ];
        }"""
    )


@cache
def text_of(name: str) -> str:
    return (SITE / name).read_text(encoding="utf-8")


@cache
def leads_nowhere(path: str, fragment: str) -> bool:
    """Cached, as the navigation is the same on every page."""
    target = SITE / urllib.parse.unquote(path).lstrip("/")
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return True
    wanted = f'id="{urllib.parse.unquote(fragment)}"'
    return bool(fragment) and target.suffix == ".html" and wanted not in text_of(str(target))


def links(page: Page, base: str) -> list[str]:
    found = page.eval_on_selector_all(
        ".md-content a[href], .md-tabs a[href], .md-nav a[href], .md-footer a[href]",
        "links => links.map(a => new URL(a.getAttribute('href'), document.baseURI).href)",  # of a drawing, too
    )
    return [
        href
        for href in sorted(set(found))
        if href.startswith(base) and leads_nowhere(*urllib.parse.urlsplit(href)[2:5:2])
    ]


# Every element as it is written and where it stands. The theme's own switch is another one in the dark.
STANDS = """() => [...document.body.querySelectorAll('*')].filter(e => !e.closest('[data-md-component=palette]'))
  .map(e => {
    const b = e.getBoundingClientRect(), s = getComputedStyle(e);
    return [e.cloneNode(false).outerHTML.slice(0, 200), b.x, b.y, b.width, b.height, s.visibility].join(' ');
  })"""


def in_the_dark(page: Page) -> list[str]:
    """Contrast in the dark, and that it is the same page but for its colours.

    As every element is written as before and stands where it stood, the rules that look at no colour would answer as
    they did in the light; and so would a phone, whose width has no rule about schemes. A font that is optional and came
    too late for the first letters is taken with the first change of scheme, so a difference must show twice.
    """
    for _ in range(2):
        page.evaluate(f"window.stoodInLight = ({STANDS})()")
        scheme(page, "dark")
        moved = page.evaluate(
            f"""() => {{
              const light = stoodInLight, dark = ({STANDS})();
              if (dark.length != light.length) return [`${{light.length}} elements became ${{dark.length}}`];
              return dark.map((now, i) => [light[i], now]).filter(([was, now]) => was != now).slice(0, 3)
                .map(([was, now]) => `${{was}} became ${{now}}`);
            }}"""
        )
        if not moved:
            return axe.faults(page, axe.OF_COLOUR)
        scheme(page, "light")
    scheme(page, "dark")
    return moved + axe.faults(page, axe.OF_COLOUR)


def scheme(page: Page, name: Literal["dark", "light"]) -> None:
    page.emulate_media(color_scheme=name)
    if page.locator("body[data-md-color-scheme]").count():
        theirs = {"dark": "slate", "light": "default"}[name]
        page.wait_for_function(f"document.body.dataset.mdColorScheme == '{theirs}'")
    quiet(page)


def prints(page: Page) -> list[str]:
    """From the dark, onto white paper, and back."""
    page.evaluate(
        "addEventListener('beforeprint', () => window.printedAs = document.body.dataset.mdColorScheme)"
    )
    pdf = page.pdf(format="A4", page_ranges="1")  # all is laid out; painting a long page takes ten seconds
    printed_as, afterwards = page.evaluate("[window.printedAs, document.body.dataset.mdColorScheme]")
    faults = [] if pdf.startswith(b"%PDF") and len(pdf) > 5_000 else [f"a PDF of {len(pdf)} bytes"]
    if page.locator("body[data-md-color-scheme]").count():
        if (printed_as, afterwards) != ("default", "slate"):
            faults.append(f"printed as {printed_as}, and {afterwards} afterwards")
        return faults
    page.emulate_media(media="print")
    bare = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(media="screen")
    return faults + ([] if bare == "rgb(255, 255, 255)" else [f"on paper of {bare}"])


DESK = {"width": 1280, "height": 720}  # Playwright's own


def folds(page: Page) -> list[str]:
    """What opens with a mouse opens with Enter: pressed by the browser, as a script's own key would open nothing.

    Nobody looks, so a strip of the page is painted and not a screen of it, after every fold. What stands in a fold is
    asked once it can be seen.
    """
    page.set_viewport_size({**DESK, "height": 20})
    page.evaluate(
        """() => {
          const asked = new Set(), stuck = [];
          let fold, before;
          const seen = () => [...document.querySelectorAll('.md-content details > summary')].find(one => !asked.has(one)
            && one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().height);
          const drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
          window.nextFold = async () => {
            if (fold && fold.parentElement.open == before) stuck.push(fold.textContent.trim());
            fold = seen() ?? (await drawn(), seen());
            if (!fold) return stuck;
            asked.add(fold);
            fold.focus({preventScroll: true});  // to scroll is to paint
            before = fold.parentElement.open;
            return null;
          };
        }"""
    )
    while (stuck := page.evaluate("nextFold()")) is None:
        page.keyboard.press("Enter")
    page.set_viewport_size(DESK)
    return stuck


@cache
def stand_for_their_scripts() -> list[str]:
    """One page for each set of scripts and styles that pages ask for, the longest of them."""
    kinds: dict[tuple[str, ...], str] = {}
    for name in sorted(each_kind(pages_of(SITE)), key=lambda name: -(SITE / name).stat().st_size):
        text = (SITE / name).read_text(encoding="utf-8")
        asked = re.findall(r'<(?:script|link)\b[^>]*?(?:src|href)="(?:[^":]*/)?([\w.-]+\.(?:js|css))', text)
        # The facts of a page are a file of its own, and the same for every one.
        kinds.setdefault(tuple(sorted(x for x in set(asked) if not x.endswith(".values.js"))), name)
    return sorted(name for name in kinds.values() if name != "404.html")  # which only a server shows


HREF = re.compile(r'<a\b[^>]*?\bhref="([^"#][^"]*|#[^"]+)"')


def still_leads(page_name: str) -> list[str]:
    """Links of a page that is kept and that lead nowhere now: another page may have lost what they lead to."""
    hrefs = {
        urllib.parse.urljoin(f"/{page_name}", html.unescape(href))
        for href in HREF.findall(text_of(page_name))
    }
    return [
        href
        for href in sorted(hrefs)
        if href.startswith("/") and leads_nowhere(*urllib.parse.urlsplit(href)[2:5:2])
    ]


def is_kept(request: pytest.FixtureRequest, browser: Browser, page_name: str, *more: object) -> bool:
    """Whether a page has passed as it is; what its key is goes to who counts."""
    name = f"{request.node.originalname} {page_name}"
    key = kept_pages.key_of(SITE, page_name, browser.version, name, *more)
    state = kept_pages.state_of(name, key)
    made = kept_pages.made_with(browser.version)
    request.node.user_properties.append(("page", [name, key, state, made]))
    return state == kept_pages.KEPT and not request.config.getoption("--anew")


@pytest.mark.by_page
def test_a_page_at_a_desk(
    request: pytest.FixtureRequest, browser: Browser, base: str, page_name: str
) -> None:
    prints_it = page_name in stand_for_their_scripts()
    if is_kept(request, browser, page_name, prints_it):
        assert still_leads(page_name) == []
        return
    visit = Visit(browser, base + page_name, (base,), color_scheme="light")
    visit.check("the first load", lambda page: weighs(visit, base, page_name))
    visit.check("mathematics", mathematics)
    visit.check("a link leads nowhere", lambda page: links(page, base))
    visit.check("axe, light", axe.faults)
    visit.check("axe, dark", in_the_dark)
    if prints_it:  # what its scripts and styles make of it, as of all others that have these
        visit.check("print", prints)
    visit.check("a fold does not open by keyboard", folds)  # late, as it leaves the folds open
    visit.check("a figure's letters", figures.faults)
    visit.check("on a phone", narrow)
    visit.check("asks for what its key does not know", lambda page: unknown(visit, base, page_name))
    visit.end(page_name)


def unknown(visit: Visit, where: str, page_name: str) -> list[str]:
    asked = {urllib.parse.unquote(url.removeprefix(where).split("?")[0].split("#")[0]) for url in visit.urls}
    return kept_pages.unknown_files(SITE, page_name, asked)


PHONE = {"width": 390, "height": 844}


def narrow(page: Page) -> list[str]:
    """The same page in the width of a phone, as one that is turned."""
    page.set_viewport_size(PHONE)
    quiet(page)
    asked = {
        "mathematics": mathematics,
        "scrolls out of the keyboard's reach": out_of_reach,
        "scrolls sideways": wide,
        "a figure's letters": figures.faults,
    }
    return [f"{what}: {fault}" for what, find in asked.items() for fault in find(page)]


def usable(page: Page) -> list[str]:
    said = {
        "no heading": page.locator("h1").first.inner_text().strip() != "",
        "no style": page.evaluate("getComputedStyle(document.body).getPropertyValue('--accent').trim()")
        != "",
        "no fonts": page.evaluate("document.fonts.check('16px \"Source Serif 4\"')"),
    }
    return [fault for fault, fine in said.items() if not fine]


def out_of_reach(page: Page) -> list[str]:
    return page.evaluate(
        """() => [...document.querySelectorAll('.md-content *')].filter(e =>
             ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1
             && e.clientWidth && e.tabIndex < 0 && !e.querySelector('a, button, [tabindex]'))
           .map(e => e.outerHTML.slice(0, 120))"""
    )


def wide(page: Page) -> list[str]:
    """With every fold open."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    found = page.evaluate(
        """() => [...document.querySelectorAll('.md-content *')].filter(e => {
             const box = e.getBoundingClientRect();
             if (box.right <= innerWidth + 1 || !box.width) return false;
             // The theme hides what reaches past the root, and so the root does not count as a box that scrolls.
             for (let p = e.parentElement; p != document.documentElement; p = p.parentElement)
               if (getComputedStyle(p).overflowX != 'visible') return false;
             return true;
           }).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
    )
    return ([f"the page is {width} px wide, not 390"] if width != 390 else []) + found


@pytest.mark.by_page
@pytest.mark.parametrize("name", stand_for_their_scripts())
def test_a_page_on_a_phone_from_a_folder(request: pytest.FixtureRequest, browser: Browser, name: str) -> None:
    if is_kept(request, browser, name):
        return
    visit = Visit(browser, (SITE / name).as_uri(), ("file:",), viewport=PHONE, offline=True)
    visit.check("usable from a folder", usable)
    visit.check("mathematics", mathematics)
    visit.check("scrolls out of the keyboard's reach", out_of_reach)
    visit.check("scrolls sideways", wide)
    visit.check("a figure's letters", figures.faults)
    visit.check("asks for what its key does not know", lambda page: unknown(visit, f"{SITE.as_uri()}/", name))
    visit.end(name)


def test_the_dark_page_is_dark_and_the_toggle_turns_it(browser: Browser, base: str) -> None:
    page = browser.new_page(color_scheme="dark")
    settled(page, base + "index.html")
    brightness = (
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b)"
    )
    assert page.evaluate(brightness) < 150
    page.locator("label.md-header__button[title*='Switch to light']").click()
    quiet(page)
    assert page.evaluate(brightness) > 700
    page.close()


NO_STORAGE = """for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name,
  {configurable: true, get() { throw new DOMException('Access is denied for this document.', 'SecurityError'); }})"""


def test_where_a_browser_keeps_nothing_the_theme_works(browser: Browser, base: str) -> None:
    page = browser.new_page(color_scheme="dark")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(NO_STORAGE)
    settled(page, base + "lectures/l8_attention.html")
    assert errors == []
    assert page.locator(".md-code__button, .md-clipboard").count() > 10
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.locator("label.md-header__button[title*='Switch to light']").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "default")
    page.close()


def test_a_diff_is_read_without_colour_and_scrolls_in_its_own_box(browser: Browser, base: str) -> None:
    names = [
        name for name in pages_of(SITE) if 'class="fold diff"' in (SITE / name).read_text(encoding="utf-8")
    ]
    assert names, "no page shows what one kernel changes in the one before it"
    page = browser.new_page(viewport={"width": 390, "height": 844})
    settled(page, base + names[0])
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    quiet(page)
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


def test_without_script_a_link_unfolds_the_section_it_leads_to(browser: Browser, base: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}start_here.html")
    inside = page.locator("#no-gpu-or-a-different-one + details.beyond table").first
    expect(inside).to_be_hidden()
    page.locator('.md-content p a[href="#no-gpu-or-a-different-one"]').first.click()
    expect(inside).to_be_visible()
    context.close()


def test_a_link_to_a_folded_section_and_one_into_it_unfold_it(browser: Browser, base: str) -> None:
    named = [name for name in pages_of(SITE) if '<details class="beyond"' in text_of(name)]
    assert named, "no page has a section beyond its core"
    page = browser.new_page()
    inside = """() => [...document.querySelectorAll('details.beyond :is(h3, h4)[id]')].map(h => h.id)"""
    links = """() => [...document.querySelectorAll('.md-content p a[href*="#"]')].map(a => a.getAttribute('href'))
      .filter(href => href[0] === '#')
      .filter(href => document.getElementById(href.slice(1))?.nextElementSibling?.matches('details.beyond'))"""
    faults, tried = [], 0
    for name in named:
        settled(page, base + name)
        if page.locator("details.beyond[open]").count():
            faults.append(f"{name}: a section is unfolded before anybody asked")
        anchors = page.evaluate(inside)
        for href in page.evaluate(links)[:1]:
            page.locator(f'.md-content p a[href="{href}"]').first.click()
            expect(page.locator(f"{href} + details.beyond")).to_have_attribute("open", "")
            expect(page.locator(href)).to_be_in_viewport()
            tried += 1
        for anchor in anchors[:1]:
            page.goto("about:blank")  # from the page itself it would only scroll
            settled(page, f"{base}{name}#{anchor}")
            if not page.locator(f"details.beyond[open] #{anchor}").count():
                faults.append(f"{name}#{anchor} stays folded")
            expect(page.locator(f"#{anchor}")).to_be_in_viewport()
    assert tried, "no page leads its reader into a section that is folded"
    settled(page, base + named[0])
    heading = page.locator(":is(h2, h3).beyond[id]").first
    anchor, fold = heading.get_attribute("id"), page.locator(":is(h2, h3).beyond + details.beyond").first
    for _ in range(2):  # the second time the address is the same already
        page.locator(f".md-sidebar--secondary a[href='#{anchor}']").click()
        expect(fold).to_have_attribute("open", "")
        expect(heading).to_be_in_viewport()
        fold.locator("summary").first.click()
        expect(fold).not_to_have_attribute("open", "")
    page.close()
    assert faults == []
