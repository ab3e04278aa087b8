"""The command behind ``nox -s handouts``: everything to print for a session, one PDF each.

The pages are made from the session's map and from handbook/handouts/, and printed by Chromium. A PDF is written under a
temporary name and takes its place when it is complete. Exit codes: 0 done, 1 something cannot be printed or written,
2 cannot start.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_site.sessions.handouts import FOLDER, PRINTED, HandoutError, read_handouts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from course_site.printing.handout_pages import Printed
    from course_site.site.course import Course

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
RUN = "handbook/run"
FONTS = "assets/vendor/fonts"

# Pages whose content is taller or wider than they are.
TOO_LONG = """() => [...document.querySelectorAll(".handout")].filter(page => {
  const edge = page.getBoundingClientRect();
  return page.scrollHeight > page.clientHeight + 1 || page.scrollWidth > page.clientWidth + 1
    || [...page.querySelectorAll("*")].some(e => e.getBoundingClientRect().right > edge.right + 1);
}).map(page => page.getAttribute("aria-label"))"""


class CannotStart(RuntimeError):
    """Refusal to print: one line that says why and what to do."""


def main(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run the command with the options after ``--``; returns the exit code."""
    options = _parse(arguments)
    root = (root or Path.cwd()).resolve()
    try:
        return _run(root, options)
    except CannotStart as error:
        print(f"handouts: {error}", file=sys.stderr)
        return 2
    except HandoutError as error:
        print(f"handouts: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"handouts: {where}{error.strerror or error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s handouts --", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("session", nargs="*", help="opening, l1 … l8, w1 … w6; all of them if none is named")
    add(
        "--to",
        type=Path,
        default=Path(PRINTED),
        metavar="FOLDER",
        help=f"where the PDFs go; {PRINTED}/ if left out, where the site takes them from",
    )
    add(
        "--students",
        type=_people,
        default=0,
        metavar="N",
        help="how many: the first page then counts the copies",
    )
    add("--letter", action="store_true", help="US Letter in place of A4")
    return parser.parse_args(arguments)


def _people(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of people")
    return int(text)


def find_chromium() -> str:
    """Return the browser that prints.

    Raises:
        CannotStart: there is none.
    """
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, CHROMIUM) if path]
    if not found or not Path(found[0]).exists():
        where = named or f"{', '.join(CHROMIUM)} on PATH"
        raise CannotStart(
            f"no Chromium (looked for {where}): apt-get install chromium, or set CHROMIUM to its path"
        )
    return found[0]


def _run(root: Path, options: argparse.Namespace) -> int:
    from course_site.sessions.course_road import load_road

    known = list(load_road(root).sessions)
    wanted = [name.lower() for name in options.session] or known
    if unknown := [name for name in wanted if name not in known]:
        raise CannotStart(f"no session {', '.join(unknown)}; there are {', '.join(known)}")
    chromium = find_chromium()
    folder = root / options.to
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise CannotStart(f"cannot write into {folder}: {error.strerror}; name another with --to") from None
    made = documents(root, wanted, letter=options.letter, students=options.students)
    with tempfile.TemporaryDirectory() as scratch:
        _lay_out(root, Path(scratch), {name: text for name, (text, _) in made.items()})
        _print(Path(scratch), made, folder, chromium)
    return 0


def documents(
    root: Path, wanted: Sequence[str], *, letter: bool = False, students: int = 0
) -> dict[str, tuple[str, list[Printed]]]:
    """Return the document to print for each session, and the pages it is made of.

    Raises:
        CannotStart: a session has no map that can be read.
        HandoutError: something in its data cannot be printed.
    """
    from course_site.site.course import load_course
    from course_site.site.render.page import define_course

    course = load_course(root, draft=True)
    define_course(course)  # what a sheet quotes may be of a page's own making
    return documents_of(course, root, wanted, letter=letter, students=students)


def documents_of(
    course: Course, root: Path, wanted: Sequence[str], *, letter: bool = False, students: int = 0
) -> dict[str, tuple[str, list[Printed]]]:
    """Return the same as `documents`, for a course whose definitions are worked out."""
    from course_site.printing.handout_pages import document, printed_pages
    from course_site.sessions.plain_data import as_plain, value_of, words_of

    made = {}
    for name in wanted:
        session = course.maps.sessions.get(name)
        if session is None:
            raise CannotStart(
                f"handbook/sessions/{name}.toml cannot be read: run `nox -s docs`, which says why"
            )
        plain = as_plain(course, session)
        pages = printed_pages(
            plain,
            read_handouts(root, name),
            value_of(course, session),
            words_of(course, session),
            root,
            lambda page, word: _output(course, page, word),
            lambda page: _ran(course, page),
            students,
            course.here.name if course.here.gpu else "",
        )
        made[name] = (document(plain, pages, letter=letter), pages)
    return made


def _output(course: Course, page: str, word: str) -> str:
    """Return the first output of a measured page that holds a word."""
    record = course.records.get(page)
    outputs = [output for cell in record.outputs for output in cell] if record else []
    for text in (_text(output) for output in outputs if output.get("output_type") == "stream"):
        if word in text:
            return text
    raise HandoutError(f"{FOLDER}: the record of {page} has no output with {word!r} in it")


def _ran(course: Course, page: str) -> str:
    """Return the card and the date of a page's record, and the page, where it was measured and still holds."""
    from course_site.site.ledger import date_words

    record = course.records.get(page)
    if record is None or not record.measured or not course.has_numbers(page):
        return ""
    title = next(p.title for p in course.pages if p.id == page)
    return f"{record.edition['gpu']}, {date_words(record.meta['provenance']['date'])}, *{title}*"


def _text(output: dict[str, Any]) -> str:
    text = output["text"]
    return text if isinstance(text, str) else "".join(text)


def _lay_out(root: Path, scratch: Path, texts: dict[str, str]) -> None:
    """Write the documents beside what they show, as they would lie in the site."""
    for folder in (FOLDER, RUN):
        (scratch / folder).mkdir(parents=True)
    shutil.copy(root / RUN / "sheet.css", scratch / RUN)
    shutil.copy(root / FOLDER / "handouts.css", scratch / FOLDER)
    shutil.copytree(root / "docs" / FONTS, scratch / FONTS)
    for name, text in texts.items():
        (scratch / FOLDER / f"{name}.html").write_text(text, encoding="utf-8")


def _print(scratch: Path, made: dict[str, tuple[str, list[Printed]]], folder: Path, chromium: str) -> None:
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        except Error as error:
            raise CannotStart(f"{chromium} does not start: {str(error).splitlines()[0]}") from None
        printed(browser, scratch, made, folder)
        browser.close()


def printed(
    browser: Browser, scratch: Path, made: dict[str, tuple[str, list[Printed]]], folder: Path
) -> None:
    """Print the documents that lie laid out in a folder; each PDF is complete or not there.

    Raises:
        HandoutError: a page does not fit, or another number of pages comes out than was laid out.
    """
    page = browser.new_page()
    page.emulate_media(media="print")
    for name, (_, sheets) in made.items():
        page.goto((scratch / FOLDER / f"{name}.html").as_uri())
        page.wait_for_function("document.fonts.status === 'loaded'")
        if cut := page.evaluate(TOO_LONG):
            raise HandoutError(f"{FOLDER}/{name}.toml: does not fit its page: {', '.join(cut)}")
        data = page.pdf(prefer_css_page_size=True, print_background=True)
        count, due = len(re.findall(rb"/Type\s*/Page\b", data)), sum(sheet.pages for sheet in sheets)
        if count != due:
            raise HandoutError(
                f"{name}: {count} pages came out, and it has {due}: a side runs over, most likely the back of the "
                "session sheet; shorten what its map says"
            )
        _write(folder / f"{name}.pdf", data)
        print(_told(_seen_from_here(folder / f"{name}.pdf"), sheets), flush=True)
    page.close()


def _seen_from_here(path: Path) -> Path:
    """Return a path as one would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _write(path: Path, data: bytes) -> None:
    """Write a file that is complete or not there."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        file.write(data)
    try:
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError:
        os.unlink(file.name)
        raise


def _told(path: Path, printed: list[Printed]) -> str:
    """Return a file in a line, and a line for every sheet that is copied, as its first page says."""
    from course_site.printing.handout_pages import solved_span, to_print

    lines = [f"{path}: {sum(page.pages for page in printed)} pages"]
    for line in to_print(printed):
        known = (line.page.whom, f"copies: {line.page.copies}", line.sides, "cut" * line.page.cut, line.when)
        lines.append(f"  {line.span:>5}  {line.title}: {', '.join(filter(None, known))}")
    if span := solved_span(printed):
        lines.append(f"  {span:>5}  solved: for you")
    return "\n".join(lines)
