"""A student's page on paper: few sheets, folded, with room to write, its answers at the end where they are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import quiet, settled
from playwright.sync_api import Browser, Page

LECTURE = "lectures/l4_the_gemm_ladder.html"
CHAPTER = "handbook/06_delivery_craft/l4_the_gemm_ladder.html"
SHEETS = 20


@pytest.fixture(scope="module")
def lecture(browser: Browser, base: str) -> Iterator[Page]:
    page = browser.new_page(color_scheme="dark")
    yield settled(page, base + LECTURE)
    page.close()


def on_paper(page: Page, ask: str) -> object:
    """What a question to the page says while it is laid out for paper."""
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    said = page.evaluate(ask)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    quiet(page)
    return said


def test_a_lecture_takes_few_sheets_of_type_that_can_be_read(lecture: Page) -> None:
    pdf = lecture.pdf(format="A4", prefer_css_page_size=True)
    assert 5 < len(re.findall(rb"/Type /Page\b", pdf)) <= SHEETS
    small = on_paper(
        lecture,
        """() => {
          const points = [...document.querySelectorAll('.md-content__inner > p:not([class]), .md-content pre > code')]
            .filter(e => e.checkVisibility()).map(e => [parseFloat(getComputedStyle(e).fontSize) * 72 / 96, e.tagName]);
          return points.filter(([size, tag]) => size < (tag == 'P' ? 10 : 8)).length + (points.length < 20);
        }""",
    )
    assert small == 0


# What is shown of a fold besides the words that unfold it.
SHOWN = """selector => [...document.querySelectorAll(selector)]
  .filter(fold => [...fold.children].some(part => part.tagName != 'SUMMARY' && part.checkVisibility()))
  .map(fold => fold.className + ': ' + fold.querySelector('summary').textContent)"""


def test_what_is_folded_stays_folded_unless_its_reader_unfolded_it(lecture: Page) -> None:
    folds = ".md-content details:not(.diff)"
    assert on_paper(lecture, f"({SHOWN})('{folds}')") == []
    assert on_paper(lecture, f"({SHOWN})('.md-content details.diff')"), "a short diff stands open on the page"
    lecture.evaluate(
        """() => { for (const kind of ['beyond', 'answer', 'reveal'])
                 document.querySelector(`.md-content details.${kind}`).open = true; }"""
    )
    shown = on_paper(
        lecture, f"({SHOWN})('.md-content details.beyond, .md-content .answer, .md-content .reveal')"
    )
    assert len(shown) == 1
    assert shown[0].startswith("beyond")


def test_answers_stand_at_the_end_where_they_are_wanted_and_go_back(lecture: Page) -> None:
    # Attributes in one order, without the mark of a box that scrolls: it is set anew once the box has its width back.
    # And without what the page says of its being read, which changes with time.
    state = """() => {
      const content = document.querySelector('.md-content').cloneNode(true);
      content.querySelector('.counts')?.remove();
      for (const e of content.querySelectorAll('*')) {
        e.classList.remove('goes-on');
        if (e.getAttribute('class') === '') e.removeAttribute('class');
        const all = [...e.attributes].sort((a, b) => a.name < b.name ? -1 : 1);
        all.forEach(a => e.removeAttribute(a.name));
        all.forEach(a => e.setAttribute(a.name, a.value));
      }
      return content.innerHTML;
    }"""
    before = lecture.evaluate(state)
    look = """() => {
      const appendix = document.querySelector('.answers-on-paper');
      const asked = document.querySelectorAll('.ask[data-asked]');
      const room = [...document.querySelectorAll('.predict, .exercise')]
        .map(box => parseFloat(getComputedStyle(box, '::after').height));
      return {shown: appendix.checkVisibility(), asks: appendix.querySelectorAll('.ask').length, asked: asked.length,
        charts: appendix.querySelectorAll('table, p:not(.ask)').length, room: Math.min(...room),
        behind: appendix.compareDocumentPosition(document.querySelector('#what-to-read')) & 2};
    }"""
    without = on_paper(lecture, look)
    assert not without["shown"]
    assert without["asked"] > 5
    assert without["room"] > 20, "no room to write, in CSS pixels"
    lecture.locator(".paper-bar input").check()
    wanted = on_paper(lecture, look)
    lecture.locator(".paper-bar input").uncheck()
    assert wanted["shown"]
    assert wanted["asks"] == without["asked"]
    assert wanted["asked"] == 2 * wanted["asks"]
    assert wanted["charts"] >= wanted["asks"]
    assert wanted["behind"]
    assert lecture.evaluate(state) == before


def test_a_mentor_finds_answers_where_they_stand(browser: Browser, base: str) -> None:
    page = settled(browser.new_page(), base + CHAPTER)
    hidden = on_paper(
        page,
        """() => [...document.querySelectorAll('.md-content :is(.answer, .reveal) > :not(summary)')]
          .filter(part => !part.checkVisibility()).length""",
    )
    asked = page.locator(".md-content :is(.answer, .reveal)").count()
    page.close()
    assert asked
    assert hidden == 0
