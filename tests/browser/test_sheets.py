"""The printed sheets: one A4 sheet of two sides, nothing small, nothing clipped, black and white."""

import re

import pytest
from conftest import SITE
from playwright.sync_api import Browser, Page

RUN = SITE / "handbook" / "run"
SHEETS = sorted(path.name for path in RUN.glob("*_print.html"))
POINT = 96 / 72  # a CSS pixel is 1/96 inch
WIDTH, HEIGHT = 200 / 25.4 * 96, (297 - 13) / 25.4 * 96  # of a side between its margins

# Every text that would be printed: its size in px, drawn sizes for the letters of a picture, and its colour.
LETTERS = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    const element = walk.currentNode.parentElement;
    if (!text || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const svg = element.closest("svg");
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    found.push([text.slice(0, 40), parseFloat(style.fontSize) * scale, svg ? style.fill : style.color]);
  }
  return found;
}"""
# What is cut off at its own edge, and what reaches past the side.
CLIPPED = """() => [...document.querySelectorAll(".side, .side *")].filter(e => {
  if (e.closest("svg") && e.tagName !== "svg") return false;
  const side = e.closest(".side").getBoundingClientRect(), box = e.getBoundingClientRect();
  return box.right > side.right + 1 || box.left < side.left - 1 || e.scrollWidth > e.clientWidth + 1
    && e.clientWidth > 0 && getComputedStyle(e).display !== "inline";
}).map(e => e.tagName + " " + e.textContent.slice(0, 40))"""


@pytest.fixture
def paper(browser: Browser) -> Page:
    page = browser.new_page(viewport={"width": round(WIDTH), "height": round(HEIGHT)})
    page.emulate_media(media="print")
    yield page
    page.close()


def open_sheet(page: Page, name: str, query: str = "") -> None:
    page.goto(f"file://{RUN / name}{query}")
    page.wait_for_function("document.fonts.status === 'loaded'")


def test_every_session_has_a_sheet():
    assert (
        sorted(f"{path.stem}_print.html" for path in RUN.glob("*.html") if "_print" not in path.stem)
        == SHEETS
    )
    assert len(SHEETS) == 15


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_is_one_sheet_of_a4_and_all_on_it_can_be_read(paper, name):
    open_sheet(paper, name)
    letters = paper.evaluate(LETTERS)
    sides = paper.evaluate(
        "[...document.querySelectorAll('.side')].map(s => s.getBoundingClientRect().height)"
    )
    faults = [f"side {i} is {side:.0f} px high" for i, side in enumerate(sides, 1) if side >= HEIGHT]
    faults += [f"cut off: {text}" for text in paper.evaluate(CLIPPED)]
    faults += [f"too small: {entry}" for entry in letters if entry[1] < 8 * POINT - 0.05]
    grey = re.compile(r"rgb\((\d+), \1, \1\)")
    faults += [f"not grey: {entry}" for entry in letters if not grey.fullmatch(entry[2])]
    pdf = paper.pdf(prefer_css_page_size=True, print_background=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    width, height = map(float, re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", pdf).groups())
    if (len(sides), pages) != (2, 2):
        faults.append(f"{len(sides)} sides on {pages} pages, not 2 on 2")
    if (round(width), round(height)) != (595, 842):  # A4 in points
        faults.append(f"a page of {width} by {height} points")
    if len(letters) <= 50:
        faults.append(f"only {len(letters)} texts")
    if faults:
        pytest.fail("\n".join([name, *faults]), pytrace=False)


def test_no_clock_times_until_they_are_asked_for(paper):
    open_sheet(paper, "w1_print.html")
    starts = paper.locator("[data-minute]")
    assert starts.all_text_contents()[:3] == [starts.nth(i).get_attribute("data-minute") for i in range(3)]
    open_sheet(paper, "w1_print.html", "?start=18:05")
    assert starts.first.text_content() == "18:05"
    assert starts.last.text_content() > "20:00"
    paper.emulate_media(media="screen")
    paper.fill("#start-time", "23:50")
    assert starts.first.text_content() == "23:50"
    assert starts.last.text_content().startswith("02:")


def test_a_planted_long_step_would_be_seen(paper):
    open_sheet(paper, "w4_print.html")
    paper.evaluate("document.querySelector('tbody td + td').append(' and so on'.repeat(400))")
    assert len(re.findall(rb"/Type\s*/Page\b", paper.pdf(prefer_css_page_size=True))) > 2
    paper.evaluate("document.querySelector('tbody td + td').style.fontSize = '6pt'")
    assert [entry for entry in paper.evaluate(LETTERS) if entry[1] < 8 * POINT - 0.05]
