"""What is printed for the students: every page of it fits its page, on A4 and on US Letter, and the PDF has them all.

CHROMIUM as in conftest. No site is needed: the command makes the documents itself.
"""

import fcntl
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from course_site.printing import command

ROOT = Path(__file__).parents[2]
SESSIONS = ("l1", "w1", "w2", "w4", "w6")
MM = 96 / 25.4
A4, LETTER = (210 * MM, 297 * MM), (215.9 * MM, 279.4 * MM)
MARGIN = 12 * MM

# Every letter of a page of handouts, in points.
LETTERS = """() => {
  const found = [];
  for (const page of document.querySelectorAll(".handout")) {
    const walk = document.createTreeWalker(page, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const element = walk.currentNode.parentElement, svg = element.closest("svg");
      if (!walk.currentNode.textContent.trim() || !element.getClientRects().length) continue;
      const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      const points = parseFloat(getComputedStyle(element).fontSize) * scale * .75;
      found.push([walk.currentNode.textContent.trim().slice(0, 40), points]);
    }
  }
  return found;
}"""
SIZES = """() => [...document.querySelectorAll(".handout")].map(page => {
  const box = page.getBoundingClientRect(); return [box.width, box.height]; })"""


# The command as it is typed. To read the course and all its pages takes most of its time, so it leaves, besides, the
# documents of some sessions as they are without its options.
COMMAND = f"""
import pickle, runpy, sys
from course_site.printing import command

left, documents_of = sys.argv.pop(1), command.documents_of

def and_some_more(course, root, wanted, **how):
    with open(left, "wb") as file:
        pickle.dump(documents_of(course, root, {SESSIONS!r}), file)
    return documents_of(course, root, wanted, **how)

command.documents_of = and_some_more
runpy.run_module("course_site", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="session")
def of_the_command(tmp_path_factory):
    """What one run of the command left, `said`, `documents` and `pdf`; the processes of the tests share it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "handouts-of-the-command"
    with (base / "handouts.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            asked = ["handouts", "opening", "--to", str(folder / "pdf"), "--letter"]
            done = subprocess.run(
                [sys.executable, "-c", COMMAND, str(folder / "documents"), *asked],
                cwd=ROOT, env=os.environ | {"CHROMIUM": chromium(), "PYTHONPATH": str(ROOT / "src")},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            (folder / "said").write_text(json.dumps((done.returncode, done.stderr, done.stdout)))
    return folder


@pytest.fixture(scope="module")
def laid_out(of_the_command, tmp_path_factory):
    """The documents of some sessions, laid out as they are printed."""
    scratch = tmp_path_factory.mktemp("handouts")
    made = pickle.loads((of_the_command / "documents").read_bytes())
    command._lay_out(ROOT, scratch, {name: text for name, (text, _) in made.items()})
    return scratch, made


@pytest.fixture
def paper(browser: Browser) -> Page:
    page = browser.new_page()
    page.emulate_media(media="print")
    yield page
    page.close()


def opened(page: Page, laid_out, name: str) -> Page:
    page.goto((laid_out[0] / command.FOLDER / f"{name}.html").as_uri())
    page.wait_for_function("document.fonts.status === 'loaded'")
    return page


@pytest.mark.parametrize("name", SESSIONS)
def test_every_page_fits_and_can_be_read(paper, laid_out, name):
    opened(paper, laid_out, name)
    assert paper.evaluate(command.TOO_LONG) == []
    for width, height in paper.evaluate(SIZES):
        for paper_width, paper_height in (A4, LETTER):
            assert width <= paper_width - 2 * MARGIN + 1
            assert height <= paper_height - 2 * MARGIN + 1
    letters = paper.evaluate(LETTERS)
    assert len(letters) > 100
    # A number in a square of squared paper may be smaller, for its square says how large it is.
    assert [entry for entry in letters if entry[1] < 7.9 and len(entry[0]) > 2] == []
    fonts = paper.evaluate("[...document.fonts].filter(f => f.status === 'loaded').map(f => f.family)")
    assert {family.strip('"') for family in fonts} >= {"Source Sans 3"}
    pdf = paper.pdf(prefer_css_page_size=True, print_background=True)
    expected = sum(page.pages for page in laid_out[1][name][1])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == expected


# Every page in its order: what it is called, and whether it is left blank.
ORDER = """() => [...document.querySelectorAll(".side, .handout")].map(page =>
  [page.getAttribute("aria-label"), page.classList.contains("blank")])"""


def on_a_back(page: Page, backs: set[str]) -> list[str]:
    """What begins on a back, though it is none, and what is a back and begins on a front."""
    order = [*enumerate(page.evaluate(ORDER), 1)]
    return [name for at, (name, blank) in order if not blank and (at % 2 == 0) != (name in backs)]


@pytest.mark.parametrize("name", SESSIONS)
def test_every_sheet_begins_on_an_odd_page(paper, laid_out, name):
    opened(paper, laid_out, name)
    pages = laid_out[1][name][1]
    backs = {page.title for page in pages if page.back} | {"The board"}
    assert on_a_back(paper, backs) == []
    assert len(paper.evaluate(ORDER)) == sum(page.pages for page in pages)
    paper.evaluate("document.querySelector('.blank').remove()")
    assert "The minutes" in on_a_back(paper, backs)


def test_the_first_page_counts_the_copies(paper, laid_out):
    opened(paper, laid_out, "w4")
    rows = paper.evaluate(
        "[...document.querySelectorAll('.cover tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    told = {cells[1].splitlines()[0]: (cells[0], *cells[2:]) for cells in rows}
    assert told["the session sheet"] == ("3–4", "1", "both sides", "", "")
    assert told["rows; rows, back"][:4] == ("5–6", "n", "both sides", "")
    assert told["coach and bus"][1:4] == ("n ÷ 2", "one side", "cut")
    assert told["exit ticket"][1:] == ("n ÷ 2", "one side", "cut", "minute 175")
    assert list(told)[-1] == "all of it solved"


def test_a_planted_long_sheet_would_be_seen(paper, laid_out):
    opened(paper, laid_out, "w4")
    paper.evaluate("document.querySelector('[aria-label=receipt] td').append(' and so on'.repeat(2000))")
    assert paper.evaluate(command.TOO_LONG) == ["receipt"]
    opened(paper, laid_out, "w4")
    paper.evaluate("document.querySelector('[aria-label=pages] table').style.width = '250mm'")
    assert paper.evaluate(command.TOO_LONG) == ["pages"]


def test_an_answer_is_told_from_a_given_by_its_colour(paper, laid_out):
    opened(paper, laid_out, "w4")
    colours = paper.evaluate(
        "[...document.querySelectorAll('.handout .solved')].map(e => getComputedStyle(e).color)"
    )
    assert set(colours) == {"rgb(179, 38, 30)"}
    assert paper.evaluate("document.querySelectorAll('.handout:not(.solved) .solved').length") == 0


def test_what_is_written_on_is_lighter_than_what_is_written(paper, laid_out):
    opened(paper, laid_out, "w4")
    ask = "of => [...document.querySelectorAll(of)].map(e => getComputedStyle(e).stroke)"
    assert set(paper.evaluate(ask, ".handout svg.ground path")) == {"rgb(187, 187, 187)"}
    assert set(paper.evaluate(ask, ".handout svg.paper path.fine")) == {"rgb(153, 153, 153)"}


def chromium() -> str:
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""


def test_the_command_writes_a_pdf(of_the_command):
    code, complaints, said = json.loads((of_the_command / "said").read_text())
    assert (code, complaints) == (0, "")
    assert [path.name for path in (of_the_command / "pdf").iterdir()] == ["opening.pdf"]
    pdf = (of_the_command / "pdf" / "opening.pdf").read_bytes()
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert f"opening.pdf: {pages} pages" in said
    assert sizes(pdf) == {(612, 792)}


def sizes(pdf):
    """Of its pages, in points."""
    boxes = re.findall(rb"/MediaBox\s*\[0 0 ([\d. ]+)\]", pdf)
    return {tuple(round(float(n)) for n in box.split()) for box in boxes}


def test_a_document_is_a4_unless_letter_is_asked_for(paper, laid_out):
    pdf = opened(paper, laid_out, SESSIONS[0]).pdf(prefer_css_page_size=True)
    assert sizes(pdf) in ({(595, 842)}, {(595, 842), (842, 595)})


def test_a_side_that_runs_over_is_refused_before_anything_is_written(browser, laid_out, tmp_path):
    scratch, made = laid_out
    text, pages = made["w4"]

    with pytest.raises(
        command.HandoutError, match=r"w4: \d+ pages came out, and it has \d+: a side runs over"
    ):
        command.printed(browser, scratch, {"w4": (text, pages[:-1])}, tmp_path)
    assert list(tmp_path.iterdir()) == []
