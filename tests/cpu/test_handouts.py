"""What is printed for the students: every map that asks for paper has it, and every answer is worked out again here."""

import dataclasses
import html
import itertools
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.printing import command, paper
from course_site.printing.handout_pages import document, in_one_style, on_paper, printed_pages
from course_site.sessions import handouts as data
from course_site.sessions import map as maps
from course_site.sessions.handouts import HandoutError, blanks, read_handouts
from course_site.sessions.plain_data import as_plain, value_of, words_of
from course_site.sessions.session import load_sessions
from course_site.site.render import session_blocks

ROOT = Path(__file__).parents[2]
SESSIONS = load_sessions(ROOT)
DEMO = """
[[sheet]]
title = "sums"
for = "for every student"

  [[sheet.part]]
  kind = "text"
  text = "Two and two are [[= 2 + 2]], and [= 3 * 3] is nine. The word: [[pot]]"
"""


@pytest.fixture(scope="module")
def course(our_course):
    return our_course[0]


@pytest.fixture
def written(tmp_path):
    """Writes handbook/handouts/w4.toml of a repository that has nothing else."""

    def write(text, module=""):
        folder = tmp_path / data.FOLDER
        (folder / data.WORKED_OUT).mkdir(parents=True, exist_ok=True)
        (folder / "w4.toml").write_text(text, encoding="utf-8")
        (folder / data.WORKED_OUT / "w4.py").write_text(module, encoding="utf-8")
        return tmp_path

    return write


def answers(course, name):
    """Every answer of a session's sheets, by the title of its sheet."""
    session = SESSIONS[name]
    found = {}
    for place, answer in blanks(read_handouts(ROOT, name), value_of(course, session)):
        found.setdefault(place.partition(":")[0], []).append(answer)
    return found


def pages(course, name):
    session = SESSIONS[name]
    words, value = words_of(course, session), value_of(course, session)
    return printed_pages(
        as_plain(course, session),
        read_handouts(ROOT, name),
        value,
        words,
        ROOT,
        lambda page, word: command._output(course, page, word),
        lambda page: command._ran(course, page),
        card=course.here.name,
    )


def page_called(made, title, *, solved):
    (found,) = [page.html for page in made if page.title == title and page.solved == solved]
    return found


# --- what the maps ask for ------------------------------------------------------------------------


# Words around what is to be printed.
WORDS_AROUND = """a an and as at below both bring cut does each every everybody first for four from handouts has
    have here how in it its large last makes many of on one ones out own page pages pair print printed says seat sheet
    sheets sides sign six slips squared student students take talk that the then them they three to two wall well will
    with without written your yourself"""
AROUND = frozenset(WORDS_AROUND.split())
# What is brought and is no paper of ours; what a sentence says besides.
BESIDE = ("slips of paper off", "requests", "at minute 152", "a notebook does")
ASKS = re.compile(r"(?:Print|Cut|Bring squared paper)\b")


def asked(session):
    """The sentences of `prepare` that ask to print, to cut or to bring something."""
    sentences = [sentence for text in session.prepare for sentence in re.split(r"(?<=[.!?]) ", text)]
    return [sentence for sentence in sentences if ASKS.match(sentence)]


def titles(handouts):
    """How `prepare` names the sheets."""
    return [f"*{sheet.title}*" for sheet in handouts.sheets]


def left_over(session, sheets):
    """Words of what `prepare` asks to print, to cut or to bring on paper that is none of the sheets."""
    found = []
    for sentence in asked(session):
        for phrase in sorted((*sheets, *BESIDE), key=len, reverse=True):
            sentence = sentence.replace(phrase, " ")
        sentence = re.sub(r"\([^)]*\)|`[^`]*`", " ", sentence)
        found += [word for word in re.findall(r"\w+", sentence.lower()) if word not in AROUND]
    return found


def not_asked_for(session, handouts):
    """Sheets that nobody is told to print; a back is printed with its front."""
    prepare = " ".join(session.prepare)
    fronts = [sheet for sheet in handouts.sheets if not sheet.turned]
    return [sheet.title for sheet in fronts if f"*{sheet.title}*" not in prepare]


@pytest.mark.parametrize("name", SESSIONS)
def test_everything_that_a_map_asks_to_print_is_printed_and_nothing_else(name):
    session, handouts = SESSIONS[name], read_handouts(ROOT, name)
    assert not_asked_for(session, handouts) == []
    assert left_over(session, titles(handouts)) == []
    prepare = " ".join(session.prepare)
    assert f"`handouts/{name}.pdf`" in prepare
    assert f"`nox -s handouts -- {name}`" in prepare


@pytest.mark.parametrize(
    ("name", "gone"),
    [("w4", "*receipt*"), ("w6", "*ten kernels*"), ("l3", "*how far, and in which boxes*")],
)
def test_a_sheet_that_nobody_made_would_be_missed(name, gone):
    made = [title for title in titles(read_handouts(ROOT, name)) if title != gone]
    assert left_over(SESSIONS[name], made) != []


def test_a_sheet_that_nobody_is_told_to_print_or_to_cut_would_be_missed():
    session, handouts = SESSIONS["l4"], read_handouts(ROOT, "l4")
    silent = tuple(text.replace("*tiles that walk*", "the tiles") for text in session.prepare)
    assert not_asked_for(session, handouts) == []
    assert not_asked_for(dataclasses.replace(session, prepare=silent), handouts) == ["tiles that walk"]
    stale = (*session.prepare, "Cut four envelopes a head.")
    assert left_over(dataclasses.replace(session, prepare=stale), titles(handouts)) == ["envelopes", "head"]


NAMED = re.compile(
    r"[Ss]heets? \*(?P<sheet>[^*]+)\*(?P<back>, back)?(?:, box (?P<box>\d))?|\b[Ss]lip (?P<slip>one|two|three|four)"
)


def misnamed(session, handouts):
    """What the steps of a map call a sheet, a box on it or a slip, where the paper calls it otherwise."""
    known_titles = {sheet.title for sheet in handouts.sheets}
    turned = {front.title for front, sheet in itertools.pairwise(handouts.sheets) if sheet.turned}
    heads = {sheet.title: [part.data.get("title", "") for part in sheet.parts] for sheet in handouts.sheets}
    said = " ".join(heading for found in heads.values() for heading in found)
    for step in session.steps():
        for match in NAMED.finditer(f"{step['fingers']}\n{step['room']}"):
            title = (match["sheet"] or "").lower()
            if match["slip"]:
                known = f"Slip {match['slip']}" in said
            elif match["back"]:
                known = title in turned
            else:
                known = title in known_titles
                known = known and any(h.startswith(match["box"] or "") for h in heads[title] or [""])
            if not known:
                yield f"{step.start}: {match[0]}"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_map_calls_its_sheets_by_their_names(name):
    assert list(misnamed(SESSIONS[name], read_handouts(ROOT, name))) == []


@pytest.mark.parametrize(
    ("name", "fingers"),
    [
        ("w4", "Sheet *pages*, box 4: the bill."),
        ("w4", "Sheet *receipts*: ten."),
        ("w4", "Sheet *pages*, back: ten."),
        ("w2", "Slip three: a tally."),
    ],
)
def test_another_name_for_a_sheet_would_be_seen(name, fingers):
    session = SESSIONS[name]
    block = session.blocks[0]
    texts = dict(block.steps[0].texts) | {"fingers": fingers, "room": ""}
    steps = (dataclasses.replace(block.steps[0], texts=texts), *block.steps[1:])
    planted = dataclasses.replace(session, blocks=(dataclasses.replace(block, steps=steps),))
    assert len(list(misnamed(planted, read_handouts(ROOT, name)))) == 1


def test_every_session_has_sheets_of_its_own():
    assert [name for name in SESSIONS if read_handouts(ROOT, name) is None] == []
    assert len(SESSIONS) == 15


@pytest.mark.parametrize("name", SESSIONS)
def test_no_value_is_missing_and_every_page_with_a_blank_has_its_twin(course, name):
    made = pages(course, name)
    blank = [page for page in made if not page.solved]
    solved = {page.title: page for page in made if page.solved and not page.blank}
    for page in blank:
        assert 'class="solved"' not in page.html
        if '<td class="blank">' in page.html or 'class="gap"' in page.html:
            assert page.title in solved, page.title
    for page in solved.values():
        assert 'class="gap"' not in page.html
        assert '<td class="blank">' not in page.html
        assert '<b class="mark">solved</b>' in page.html
    text = "".join(page.html for page in made if page.title != "the session sheet")
    assert "[[" not in re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert "{{" not in text
    first = next(i for i, page in enumerate(made) if page.solved)
    assert all(page.solved for page in made[first:])


# --- answers, worked out again --------------------------------------------------------------------


def bandwidth_of_w4(course):
    """Bytes a second by the data sheet of the card that W4's page names."""
    card = value_of(course, SESSIONS["w4"])("w4.gpu.name")
    return {"H100": 3.35e12, "H200": 4.8e12}[card]


def test_w4_rows_from_their_definition(course):
    """The twin's table of rows, from 2·M·N·K and 2·(M·K + K·N + M·N) and the data sheet of the page's card."""
    found = answers(course, "w4")
    ridge = 989e12 / bandwidth_of_w4(course)
    assert found["rows"][0] == f"{ridge:.0f}"
    table = found["rows"][1 : 1 + 4 * 6]
    for i, M in enumerate((1, 16, 64, 256, 1024, 4096)):
        operations, carried = 2 * M * 8192**2, 2 * (2 * M * 8192 + 8192**2)
        expected = [f"{operations / 1e6:,.0f}", f"{carried / 1e6:,.1f}"]
        expected.append(f"{operations / carried:,.{1 if M < 100 else 0}f}")
        assert table[4 * i : 4 * i + 3] == expected
        assert table[4 * i + 3].startswith("left" if operations / carried < ridge else "right")
    assert found["rows, back"] == [
        "M",
        f"{ridge:.0f}",
        "2 · M",
        f"{ridge / 2:.0f}",
        "4 · M",
        f"{ridge / 4:.0f}",
    ]


def test_w4_pages_by_dealing_them_out(course):
    """Pages handed out one by one, as a server does."""
    found = answers(course, "w4")["pages"]
    assert found[:3] == ["80", "8", "128"]
    assert found[3:5] == ["327,680", f"{40e9 // 327680:,.0f}"]
    lengths, rows, places, pages = (37, 100, 250, 512, 900, 1500), [], 0, 0
    for length in lengths:
        mine = 0
        while mine * 16 < length:
            mine += 1
        rows += [f"{2048 - length:,}", str(mine), str(mine * 16 - length)]
        places, pages = places + mine * 16, pages + mine
    assert found[5:23] == rows
    empty, free = 6 * 2048 - sum(lengths), places - sum(lengths)
    shares = [f"{100 * empty / (6 * 2048):.3g} %", f"{100 * free / places:.3g} %"]
    assert found[23:28] == [f"{empty:,}", shares[0], str(pages), str(free), shares[1]]
    assert found[28:30] == ["7, 2, 5", "0, 4, 9, 1, 3, 8, 6"]


def test_w4_says_who_pays_by_its_floors(course):
    """Token by token: weights and attention in prefill, shared weights and a cache of one's own in decode."""
    found = answers(course, "w4")["pages"][30:]
    weights, token, peak = 69_501_714_432, 2 * 80 * 8 * 128 * 2, 989e12
    bandwidth = bandwidth_of_w4(course)
    for i, (given, taken) in enumerate(((300, 500), (30_000, 300), (8_200, 400))):
        pairs = sum(range(1, given + 1))  # each looks back to the first, and at itself
        prefill = (2 * weights * given / peak, 4 * 128 * 64 * 80 * pairs / peak)
        share = (2 * weights / 32 * taken, sum(token * (given + n) for n in range(1, taken + 1)))
        decode = tuple(carried / bandwidth for carried in share)
        for said, parts in ((found[4 * i], prefill), (found[4 * i + 1], decode)):
            printed = [float(number) for number in re.findall(r"[\d.]+", said)]
            assert printed == pytest.approx([*parts, sum(parts)], abs=0.006)
            assert printed[0] + printed[1] == pytest.approx(printed[2])  # with the digits that are printed
            assert min(printed) > 0  # a part that is printed as nothing says nothing
            assert said.count("+") == said.count("=") == 1
        assert found[4 * i + 2] == ("prefill" if sum(prefill) > sum(decode) else "decode")
    assert [found[4 * i + 2] for i in range(3)] == ["decode", "prefill", "prefill"]


def misses_of_the_bill(page, session):
    """Parts and sums of box 3 on the solved sheet that the pencil, with what is printed there, does not give."""
    text = re.sub(r"<[^>]+>", "", page).replace("\u00a0", " ")
    (weights, square) = re.search(r"([\d.]+) ms × T \+ ([\d.]+) ms × T²", text).groups()
    (share, kept) = re.search(r"([\d.]+) ms \+ ([\d.]+) ms × thousands in the cache", text).groups()
    assert "take the middle: T + half of the thousands that come out" in text
    wrong = []
    for kind, given, taken in ((0, 300, 500), (1, 30_000, 300), (2, 8_200, 400)):
        T, middle = given / 1000, (given + taken / 2) / 1000
        prefill = float(weights) * T / 1000, float(square) * T**2 / 1000
        decode = float(share) * taken / 1000, float(kept) * middle * taken / 1000
        for said, parts in zip(session[4 * kind : 4 * kind + 2], (prefill, decode), strict=True):
            for printed, part in zip(re.findall(r"[\d.]+", said), (*parts, sum(parts)), strict=True):
                digits = len(printed.partition(".")[2])
                if f"{part:.{digits}f}" != printed:
                    wrong.append(f"{printed} is {part:.{digits}f}")
    return wrong


def test_the_pencil_finds_the_bill_of_w4_from_what_is_printed(course):
    twin, said = (
        page_called(pages(course, "w4"), "pages", solved=True),
        answers(course, "w4")["pages"][30:],
    )
    assert misses_of_the_bill(twin, said) == []
    kept = 1e3 * 1000 * 2 * 80 * 8 * 128 * 2 / bandwidth_of_w4(course)
    fine_and_coarse = (("140.55 ms", "141 ms"), ("1.325 ms", "1.3 ms"), (f"{kept:.4f} ms", f"{kept:.2f} ms"))
    for fine, coarse in fine_and_coarse:
        assert fine in twin.replace("\u00a0", " ")
        assert misses_of_the_bill(twin.replace(fine, coarse), said) != []


def wrong_quotients(rows):
    """Rows of W4 in which the columns do not divide to what the next one says."""
    numbers = [[float(cell.replace(",", "")) for cell in row[:3]] for row in rows]
    return [
        row[2]
        for row, (operations, carried, intensity) in zip(rows, numbers, strict=True)
        if f"{operations / carried:.{len(row[2].partition('.')[2])}f}"
        != f"{intensity:.{len(row[2].partition('.')[2])}f}"
    ]


def test_the_columns_of_w4s_rows_divide(course):
    table = answers(course, "w4")["rows"][1 : 1 + 4 * 6]
    rows = [table[4 * i : 4 * i + 3] for i in range(6)]
    assert wrong_quotients(rows) == []
    without_a_digit = [[row[0], f"{float(row[1]):.0f}", row[2]] for row in rows]
    assert "63.0" in wrong_quotients(without_a_digit)


def test_w1s_slip_two_shows_terms_that_add_up_and_hides_crate_two(course):
    found = [answer for answer in answers(course, "w1")["slips one and two"] if " + " in answer]
    assert len(found) == 6
    for answer in found:
        terms, _, total = answer.partition(" = ")
        digits = len(total.partition(".")[2])
        worked = sum(math.prod(map(float, term.split(" × "))) for term in terms.split(" + "))
        assert worked == pytest.approx(float(total), abs=1.1 * 10**-digits)
        assert max(len(n.partition(".")[2]) for n in re.findall(r"[\d.]+", terms)) <= 4
    made = pages(course, "w1")
    blank, twin = (page_called(made, "slips one and two", solved=solved) for solved in (False, True))
    second = re.sub(r"<[^>]+>", " ", blank.partition("<hr>")[2].partition('<p class="at">')[0])
    assert not re.search(r"\b[25]\b|\b[34]0\b", second)
    assert "2 and 5" in twin


def test_w4_agrees_with_what_its_chapter_worked_out(course):
    chapter = value_of(course, SESSIONS["w4"])
    worked = read_handouts(ROOT, "w4").names
    h200 = chapter("teach_w4.peak"), 1000 * chapter("teach_w4.bandwidth")
    page = chapter("w4.sheet.peak"), chapter("w4.sheet.bandwidth")
    assert worked["ridge"](*h200) == pytest.approx(chapter("teach_w4.ridge"))
    assert worked["ridge"](*page) == pytest.approx(chapter("w4.ridge"))
    assert worked["intensity"](4096) == pytest.approx(chapter("teach_w4.row.m4096"))
    assert worked["token_bytes"]() == chapter("teach_w4.token")
    assert worked["pages_taken"]() * 16 == chapter("teach_w4.taken.page16")
    assert worked["flat_from"](0.5, *h200) == pytest.approx(chapter("teach_w4.ends.bits4"))
    assert worked["flat_from"](0.5, *page) == pytest.approx(chapter("w4.ends.bits4"))
    assert worked["ms_square"](page[0]) == pytest.approx(chapter("w4.ms.square"))
    assert worked["ms_share"](page[1]) == pytest.approx(chapter("w4.ms.share"))
    assert worked["ms_thousand_kept"](h200[1]) == pytest.approx(chapter("teach_w4.ms.thousand_kept"))
    assert worked["all_trips"]() == round(chapter("teach_w4.trips.five_operators"))
    assert worked["fused_trips"]() == round(chapter("teach_w4.trips.fused"))
    for ride, grid in (("coach", worked["coach_grid"]()), ("bus", worked["bus_grid"]())):
        assert worked["steps"](grid) == chapter(f"teach_w4.ride.{ride}.steps")
        assert worked["empty_seats"](grid) == chapter(f"teach_w4.ride.{ride}.empty")


@pytest.mark.parametrize("rung", ["naive", "coalesced", "shared_tiles", "register_column", "register_tile"])
def test_l4_turns_are_those_of_its_page(course, rung):
    worked = read_handouts(ROOT, "l4").names
    assert worked["turns"](rung) == pytest.approx(value_of(course, SESSIONS["l4"])(f"l4.hand.{rung}.turns"))


def test_other_answers_agree_with_their_pages(course):
    value = value_of(course, SESSIONS["w1"])
    names = {name: read_handouts(ROOT, name).names for name in ("l3", "w1", "w2", "w3", "w5", "w6")}
    assert names["w1"]["served"]() == pytest.approx(value("teach_w1.served"))
    assert names["w1"]["at_once"]() == pytest.approx(value("teach_w1.served"))
    for words, trays, crew in (("one", 1, False), ("two", 2, False), ("four", 4, False), ("crew", 4, True)):
        assert names["w2"]["ticks"](trays, crew) == value(f"teach_w2.strip.{words}.ticks")
    assert names["w5"]["scale"]() == value("teach_w5.scale")
    assert names["w5"]["misses"](True) == pytest.approx(value("teach_w5.miss.nvfp4"))
    assert names["w5"]["misses"](False) == pytest.approx(value("teach_w5.miss.plain"))
    assert names["w5"]["b200_ridge"](4) == pytest.approx(value("teach_w5.ridge.bits4"))
    assert names["w6"]["decode"](128) == pytest.approx(value("teach_w6.mla.h128"))
    assert names["w6"]["formula"](0.7, 4) == pytest.approx(value("teach_w6.draft.formula"))
    assert [names["w6"]["fast"](p) for p in (0, 1, 2)] == [value(f"teach_w6.fast.p{p}") for p in (0, 1, 2)]
    for stride in (1, 2, 8, 32, 33):
        assert names["l3"]["turns"](stride) == round(value(f"l3.turns.bank.s{stride}"))
    for lane in range(32):
        for index in range(8):
            column, row = divmod(names["w3"]["in_a"](lane, index), 16)
            assert lane == row % 8 * 4 + column % 8 // 2


# --- listings: the code that is typed in the room, from where it stands ----------------------------

CHAPTER = (ROOT / "handbook/06_delivery_craft/w4_serving.py").read_text(encoding="utf-8")


def listed(page):
    """The lines of a page's listings, without their numbers."""
    shown = "\n".join(re.findall(r'<pre class="listing"[^>]*>(.*?)</pre>', page, re.DOTALL))
    return html.unescape(
        re.sub(r"<[^>]+>", "", re.sub(r'<span class="number">.*?</span> ', "", shown))
    ).splitlines()


@pytest.mark.parametrize(
    "title", ["add_rmsnorm.py", "add_rmsnorm_planted.py", "paged.py, and without Triton"]
)
def test_w4_prints_its_code_line_by_line_from_its_chapter(course, title):
    lines = listed(page_called(pages(course, "w4"), title, solved=False))
    chapter = [line.removeprefix("# ").rstrip() for line in CHAPTER.splitlines()]
    assert len(lines) > 12
    assert [line for line in lines if line.rstrip() not in (*chapter, *CHAPTER.splitlines())] == []


def test_what_w4_prints_runs(course, tmp_path):
    lines = listed(page_called(pages(course, "w4"), "paged.py, and without Triton", solved=False))
    (tmp_path / "paged.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "paged.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "37 keys out of three pages, in order\n"
    code = "\n".join(listed(page_called(pages(course, "w4"), "add_rmsnorm.py", solved=False)))
    assert f"```python\n{code}\n```" in re.sub(r"^# ?", "", CHAPTER, flags=re.MULTILINE)


def test_the_planted_fault_is_marked_in_the_twin_alone(course):
    made = pages(course, "w4")
    sheet, twin = (page_called(made, "add_rmsnorm_planted.py", solved=solved) for solved in (False, True))
    assert "mean = tl.sum(s * s) / N" in listed(sheet)[9]
    assert listed(sheet) == listed(twin)
    marked = re.findall(r'<span class="solved">(    [^<]*)</span>', twin)
    assert [line.strip() for line in marked] == [
        "mean = tl.sum(s * s) / N",
        "y = s / tl.sqrt(mean.to(tl.float32) + eps) * g",
    ]
    for told in ("solved", "65 504", "before it is squared"):
        assert told not in sheet


def test_the_code_is_ready_at_its_minute():
    starts = {step.title: (step.start, step.end) for step in SESSIONS["w4"].steps()}
    half, norm, walk = (
        next(at for title, at in starts.items() if words in title)
        for words in ("load, add", "still in the hand", "follow the table")
    )
    whom = {sheet.title: sheet.whom for sheet in read_handouts(ROOT, "w4").sheets}
    typed = f"minutes {half[0]} to {norm[1]}"
    assert typed in whom["add_rmsnorm.py"]
    assert whom["paged.py, and without Triton"].endswith(f"minute {walk[0]}, and {typed}")
    assert f"minute {norm[0]}:" in whom["add_rmsnorm_planted.py"]


def test_the_commands_are_those_of_the_chapter(course):
    made = pages(course, "w4")
    for title in ("add_rmsnorm.py", "paged.py, and without Triton"):
        commands = re.findall(r"<code>([^<]*python[^<]*)</code>", page_called(made, title, solved=False))
        assert commands
        for said in commands:
            told = said.replace(".nox/grade/bin/python", "python")
            assert f"`{told}`" in CHAPTER or told == "python my_labs/paged.py"


LISTING = """
[[sheet]]
title = "code"
for = "for you"

  [[sheet.part]]
  kind = "listing"
  file = "handbook/06_delivery_craft/w4_serving.py"
  holds = "def keys("
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LISTING.replace("def keys(", "def locks("), "0 pieces of Python in"),
        (LISTING.replace("def keys(", "N"), "pieces of Python in"),
        (LISTING.replace("w4_serving.py", "w9.py"), "there is no file handbook/06_delivery_craft/w9.py"),
        (LISTING + '  marks = ["a line of nobody"]\n', "not on one line of the listing: a line of nobody"),
        (LISTING + '  marks = ["plain"]\n', "not on one line of the listing: plain"),
    ],
)
def test_a_listing_that_finds_not_one_thing_is_refused(written, course, text, said):
    found = read_handouts(written(text), "w4")
    session = as_plain(course, SESSIONS["w4"])
    with pytest.raises(HandoutError, match=re.escape(said)):
        printed_pages(session, found, lambda n: 0, words_of(course, SESSIONS["w4"]), ROOT, lambda a, b: "")


# --- what our run gave ------------------------------------------------------------------------------


def of_our_run(page):
    """Numbers of our run on a page, in its order."""
    found = re.findall(r'<span class="ours">our run: ([\d.\u00a0]+)</span>', page)
    return [float(number.replace("\u00a0", "")) for number in found]


def test_the_twins_say_what_our_run_gave(course):
    """The numbers are those of the records, by the leaf's own medians; a page whose record no longer holds has none."""
    if not all(course.has_numbers(page) for page in ("l3", "w1")):
        pytest.skip("a record no longer holds")
    made = pages(course, "w4")
    twin = page_called(made, "receipt", solved=True)
    record = course.records["l3"]
    fuse = record.names["fuse"]
    assert of_our_run(twin) == [
        round(fuse[who]["quantiles_us"]["0.5"]) for who in ("eager", "compiled", "cuda")
    ]
    year = record.meta["provenance"]["date"][:4]
    assert re.search(rf'<p class="runs">Our run: NVIDIA \w+, \d+ \w+ {year}, <em>Memory</em>\.</p>', twin)
    assert "our run" not in page_called(made, "receipt", solved=False).lower()

    twin = page_called(pages(course, "w1"), "slips three and four", solved=True)
    names = course.records["w1"].names
    plain, ours = (names["fp32"][who]["n4096"]["quantiles_us"]["0.5"] for who in ("materialised", "teaching"))
    found = of_our_run(twin)
    assert [found[0], found[2], found[3]] == [round(ours), round(ours / plain, 1), round(plain)]
    times = {
        who: names[who]["n4096"]["quantiles_us"]["0.5"]
        for who in ("materialised", "flash", "sdpa_flash", "cudnn")
    }
    assert {round(time) for time in times.values()} <= set(found[5:])
    assert round(times["materialised"] / times["flash"], 1) in found
    operations = 4 * 4 * 16 * 4096**2 * 128
    assert round(operations / times["flash"] / 1e6) in found
    assert twin.count('class="runs"') == 2


def test_our_run_had_the_size_of_the_demo(course):
    """What stands beside the screen was measured at what is typed in the room."""

    def size(leaf):
        return {"dtype": leaf["workload"]["dtype"]} | leaf["workload"]["dims"]

    def typed(session, name):
        words = re.search(r"--workload (\S+)", SESSIONS[session].demo(name).command)[1].split(",")
        return {key: int(n) if n.isdigit() else n for key, n in (word.split("=") for word in words)}

    w1, l3 = course.records["w1"].names, course.records["l3"].names
    pairs = [
        (typed("w4", "w4_fusion"), [l3["fuse"][who] for who in ("eager", "compiled", "cuda")]),
        (typed("w1", "w1_benchmark"), [w1["fp32"][who]["n4096"] for who in ("materialised", "teaching")]),
        (
            typed("w1", "w1_tensor_cores"),
            [w1[who]["n4096"] for who in ("materialised", "flash", "sdpa_flash", "cudnn")],
        ),
    ]
    for wanted, leaves in pairs:
        for leaf in leaves:
            assert wanted.items() <= size(leaf).items()


RAN = DEMO.replace("[[pot]]", "[[*from the screen*; our run: {{ l3.fuse.eager.us:.0f }} µs]]")


@pytest.mark.parametrize(("ran", "seen"), [("a card, a day", True), ("", False)])
def test_without_a_record_that_holds_nothing_is_said_of_it(written, course, ran, seen):
    if seen and not course.has_numbers("l3"):
        pytest.skip("a record no longer holds")
    found = read_handouts(written(RAN), "w4")
    assert [answer for _, answer in blanks(found, lambda name: 0)] == ["4", "*from the screen*"]
    session, words = as_plain(course, SESSIONS["w4"]), words_of(course, SESSIONS["w4"])
    asked = []
    made = printed_pages(
        session, found, lambda n: 0, words, ROOT, lambda a, b: "", lambda page: asked.append(page) or ran
    )
    sheet, twin = (page_called(made, "sums", solved=solved) for solved in (False, True))
    assert set(asked) == {"l3"}
    assert "run" not in sheet
    assert "<em>from the screen</em>" in twin
    assert ("our run: " in twin) == ("Our run: a card, a day." in twin) == seen


def test_the_floors_of_w4_are_those_of_its_page_s_card(course):
    found = [answer for answer in answers(course, "w4")["rows"] if "floor" in answer]
    words = words_of(course, SESSIONS["w4"])
    floors = [float(words(answer)["text"].rpartition(" ")[2]) for answer in found]
    expected = []
    for M in (1, 64, 4096):
        operations, carried = 2 * M * 8192**2, 2 * (2 * M * 8192 + 8192**2)
        expected.append(max(operations / 989e12, carried / bandwidth_of_w4(course)) * 1e6)
    assert floors == pytest.approx(expected, abs=0.051)


def wrongly_recorded(session, handouts):
    """Demos that no sheet has numbers of, and sheets that say so and have none."""
    on = data.recorded_on(handouts)
    wrong = [demo for demo in on if demo not in {d.name for d in session.demos}]
    for demo, title in on.items():
        (sheet,) = [sheet for sheet in handouts.sheets if sheet.title == title]
        told = str([part.data for part in sheet.parts])
        wrong += [f"{demo}: {title}"] * ("our run: {{" not in told and "floor: {{" not in told)
    return wrong + [demo.name for demo in session.demos if demo.name not in on]


@pytest.mark.parametrize("name", ["w1", "w4"])
def test_where_the_numbers_of_a_demo_stand_on_paper(course, name):
    session, handouts = SESSIONS[name], read_handouts(ROOT, name)
    assert wrongly_recorded(session, handouts) == []
    silent = tuple(dataclasses.replace(sheet, recorded=()) for sheet in handouts.sheets)
    demos = [demo.name for demo in session.demos]
    assert wrongly_recorded(session, dataclasses.replace(handouts, sheets=silent)) == demos
    elsewhere = (*silent[:-1], dataclasses.replace(silent[-1], recorded=tuple(demos)))
    assert len(wrongly_recorded(session, dataclasses.replace(handouts, sheets=elsewhere))) == len(demos)
    made = pages(course, name)
    told = next(page.html for page in made if page.title == "the session sheet")
    for demo, title in data.recorded_on(handouts).items():
        assert f"on paper <em>{title}</em>, marked SOLVED" in told, demo
        assert page_called(made, title, solved=True)


@pytest.mark.parametrize("name", ["opening", "w4"])
def test_every_page_says_which_it_is(course, name):
    at = 1
    for page in pages(course, name):
        if page.title != "the session sheet":
            assert re.findall(r'<p class="at">([^<]*)</p>', page.html) == [f"{name} · {at} · H200"]
        at += page.pages


def test_the_line_that_is_typed_later_is_framed(course):
    sheet = page_called(pages(course, "w4"), "add_rmsnorm.py", solved=False)
    (framed,) = re.findall(r'<b class="later">([^<]*)</b>', sheet)
    assert framed.strip().startswith("s = s.to(tl.float32)")
    assert re.search("<strong>[^<]*[Ll]eave (?:out )?the framed line", sheet)


# --- slips ------------------------------------------------------------------------------------------


def test_both_halves_of_a_cut_sheet_have_a_name(course):
    made = pages(course, "w1")
    for title in ("slips one and two", "slips three and four"):
        sheet = page_called(made, title, solved=False)
        above, below = sheet.split("<hr>")
        assert [half.count('class="name"') for half in (above, below)] == [1, 1]
        assert 'class="name"' not in page_called(made, title, solved=True)


def test_the_fallback_of_a_demo_of_w1_says_its_length():
    for demo in SESSIONS["w1"].demos:
        assert "N=4096" in demo.command
        path, _, anchor = demo.fallback.partition("#")
        page = (ROOT / path).read_text(encoding="utf-8")
        (section,) = [
            part
            for part in re.split(r"^# ## ", page, flags=re.MULTILINE)
            if re.sub(r"[^a-z ]", "", part.partition("\n")[0].lower()).replace(" ", "-") == anchor
        ]
        kernels = {"k01_materialised": "materialised", "k03_flash": "flash", "library.sdpa_flash": "sdpa_flash",
                   "library.sdpa_cudnn": "cudnn", "k02_teaching": "fp32.teaching"}  # fmt: skip
        for kernel in re.findall(r"attention/([\w.]+)", demo.command):
            # The memory-efficient one has no line in fp32: the map says so.
            if kernel in kernels:
                assert re.search(rf"{{{{ {kernels[kernel]}\.n4096\.(ms|us|tflops)", section), kernel


# --- names on a drawing -----------------------------------------------------------------------------


def drawn(lines, points=(), height=120):
    axes = paper.Axis(1, 1000, "x"), paper.Axis(1, 1000, "y")
    return paper.axes(*axes, height, lines, points, solved=True)


def placed(svg):
    """Where each name between the axes lies: its words, its foot and its turn."""
    height = float(re.search(r'viewBox="0 0 \S+ ([\d.]+)"', svg)[1])
    found = [
        (
            words,
            float(re.search(r'x="([\d.]+)', said)[1]),
            float(re.search(r' y="([\d.]+)', said)[1]),
            float((re.search(r"rotate\((\S+)", said) or [0, 0])[1]),
        )
        for said, words in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg)
    ]
    return {
        words: (x, y, turn)
        for words, x, y, turn in found
        if x > paper._LEFT and y < height - paper._BOTTOM + 1
    }


def strokes(svg):
    """What is drawn on the squares."""
    return [
        tuple((float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", d))
        for d, width in re.findall(r'<path d="([^"]+)" class="[^"]*" stroke-width="([\d.]+)"', svg)
        if float(width) > 0.5
    ]


THREE = [paper.Line((1, 1000 / 2**i), (2**i, 1000), f"line {i}") for i in (0, 1, 2)]


def crossed(svg):
    """Names with a line, a cross or another name in them."""
    middles = {}
    for words, (x, y, turn) in placed(svg).items():
        angle, half = math.radians(turn), 0.66 * len(words)
        middles[words] = [
            (x + along * math.cos(angle) + math.sin(angle), y + along * math.sin(angle) - math.cos(angle))
            for along in (half * (i / 8 - 1) for i in range(17))
        ]
    found = [
        words
        for words, points in middles.items()
        if any(paper._distance(point, *stroke) < 1 for point in points for stroke in strokes(svg))
    ]
    pairs = [(one, other) for one in middles for other in middles if one < other]
    return found + [
        pair for pair in pairs if min(math.dist(a, b) for a in middles[pair[0]] for b in middles[pair[1]]) < 2
    ]


def test_a_name_lies_along_its_own_line_and_on_no_other():
    svg = drawn(THREE)
    assert crossed(svg) == []
    ends = strokes(svg)
    for (words, (x, y, turn)), own in zip(placed(svg).items(), ends, strict=True):
        nearest = min(ends, key=lambda stroke: paper._distance((x, y), *stroke))
        assert nearest == own, words
        (x1, y1), (x2, y2) = own
        assert turn == pytest.approx(math.degrees(math.atan2(y2 - y1, x2 - x1)), abs=0.1)


def test_a_cross_that_is_close_to_others_has_its_name_where_there_is_room():
    points = [
        paper.Point(30, 30, "on the line"),
        paper.Point(36, 24, "close to it"),
        paper.Point(30, 20, "and closer"),
        paper.Point(800, 700, "in the corner"),
    ]
    svg = drawn(THREE[:1], points)
    assert len(placed(svg)) == 5
    assert crossed(svg) == []


@pytest.mark.parametrize(
    "name", [n for n in SESSIONS if 'kind = "axes"' in (ROOT / f"{data.FOLDER}/{n}.toml").read_text()]
)
def test_no_name_of_a_drawing_is_crossed(course, name):
    found = re.findall(
        r'<svg class="paper" role="img" aria-label="Paper with axes".*?</svg>',
        "".join(page.html for page in pages(course, name) if page.solved),
        re.DOTALL,
    )
    assert found
    for svg in found:
        assert crossed(svg) == []


# --- the data, and what is wrong with it ----------------------------------------------------------


def test_blank_and_solved_come_from_one_text(written, course):
    found = read_handouts(written(DEMO), "w4")
    assert [answer for _, answer in blanks(found, lambda name: 0)] == ["4", "pot"]
    session = as_plain(course, SESSIONS["w4"])
    made = printed_pages(
        session, found, lambda name: 0, words_of(course, SESSIONS["w4"]), ROOT, lambda a, b: ""
    )
    blank, solved = (page.html for page in made if page.title == "sums")
    assert "pot" not in blank
    assert "9 is nine" in blank
    assert '<span class="solved">4</span>' in solved
    assert '<span class="solved">pot</span>' in solved


FAULTS = {
    "no TOML": ("sheet = [", "cannot be read as TOML"),
    "another key": ('title = "x"', "holds [[sheet]] and nothing else, not title"),
    "a sheet's key": (DEMO.replace('for = "for', 'who = "for'), "sheet 1: unknown key who"),
    "no title": (DEMO.replace('title = "sums"', 'title = " "'), "sheet 1: title is missing"),
    "its kind": (DEMO.replace('title = "sums"', 'title = "sums"\nkind = "cake"'), "kind 'cake' is unknown"),
    "how many": (DEMO.replace("for every student", "for everyone"), "'for everyone' does not say how many"),
    "a back that is not said": (
        DEMO.replace("for every student", "the back of it"),
        "for and turned: a back has",
    ),
    "a back that is no back": (
        DEMO.replace("    for", "for").replace('title = "sums"', 'title = "sums"\nturned = true'),
        "for and turned",
    ),
    "a back without a front": (
        DEMO.replace("for every student", "the back of it").replace(
            'title = "sums"', 'title = "sums"\nturned = true'
        ),
        "sheet 1: turned: there is no front before it",
    ),
    "no part": (DEMO.partition("  [[sheet.part]]")[0], "sheet 1: has no parts"),
    "a part's kind": (DEMO.replace('"text"', '"cake"'), "sheet 1, part 1: kind 'cake' is unknown"),
    "a part's key": (DEMO.replace("  text =", "  says ="), "unknown key says of a text"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_file_is_one_line(written, fault):
    text, said = FAULTS[fault]
    with pytest.raises(HandoutError) as caught:
        read_handouts(written(text), "w4")
    assert str(caught.value).startswith("handbook/handouts/w4.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("[[= 2 + pot()]]", "cannot work out '2 + pot()'"),
        ("2 + 2]]", "a bracket is not closed"),
        ("[= names[0]]", "a bracket is not closed"),
    ],
)
def test_an_answer_that_cannot_be_worked_out_is_one_line(written, broken, said):
    found = read_handouts(written(DEMO.replace("[[= 2 + 2]]", broken)), "w4")
    with pytest.raises(HandoutError, match=re.escape(said)):
        list(blanks(found, lambda name: 0))


def test_a_row_has_a_cell_for_every_column(written, course):
    table = DEMO.replace('kind = "text"', 'kind = "table"').replace(
        '  text = "', '  columns = ["a", "b"]\n  rows = [["'
    )
    found = read_handouts(written(table.rstrip() + "]]\n"), "w4")
    with pytest.raises(HandoutError, match="a row of 1 cells, and there are 2 columns"):
        printed_pages(
            as_plain(course, SESSIONS["w4"]),
            found,
            lambda n: 0,
            words_of(course, SESSIONS["w4"]),
            ROOT,
            lambda a, b: "",
        )


def test_a_step_that_the_map_does_not_have_is_one_line(written, course):
    found = read_handouts(written(DEMO.replace('title = "sums"', 'title = "sums"\nat = "Lunch"')), "w4")
    with pytest.raises(HandoutError, match="sums: at: the map has no step 'Lunch'"):
        printed_pages(
            as_plain(course, SESSIONS["w4"]),
            found,
            lambda n: 0,
            words_of(course, SESSIONS["w4"]),
            ROOT,
            lambda a, b: "",
        )


def test_the_document_names_its_styles_and_escapes_its_title(course):
    session = as_plain(course, SESSIONS["w4"]) | {"name": "a < b"}
    text = document(session, [])
    assert "<title>a &lt; b: everything to print</title>" in text
    assert "size: letter" in document(session, [], letter=True)
    assert "size: letter" not in text


# --- the command ----------------------------------------------------------------------------------


def run(*arguments, chromium="/bin/true", root=ROOT):
    environment = os.environ | {"CHROMIUM": chromium, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", "course_site", "handouts", *arguments],
        cwd=root, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_an_unknown_session_is_one_line():
    done = run("w4", "w9")
    assert done.returncode == 2
    assert done.stderr.startswith("handouts: no session w9; there are opening, l1,")
    assert done.stderr.count("\n") == 1


def test_no_chromium_is_one_line(tmp_path):
    done = run("w4", "--to", str(tmp_path / "out"), chromium=str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert done.stderr == (
        f"handouts: no Chromium (looked for {tmp_path}/nothing): apt-get install chromium, "
        "or set CHROMIUM to its path\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("w4", "--to", str(tmp_path / "file" / "out"))
    assert done.returncode == 2
    assert (
        done.stderr
        == f"handouts: cannot write into {tmp_path}/file/out: Not a directory; name another with --to\n"
    )


def test_a_pdf_takes_its_place_when_it_is_whole(tmp_path, monkeypatch):
    place = tmp_path / "w4.pdf"
    place.write_bytes(b"old")

    def refused(old, new):
        assert Path(old).read_bytes() == b"new"
        assert Path(old).parent == tmp_path
        raise OSError(28, "No space left on device", str(new))

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refused)
        with pytest.raises(OSError, match="No space left"):
            command._write(place, b"new")
    assert place.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["w4.pdf"]
    command._write(place, b"new")
    assert place.read_bytes() == b"new"


def test_it_says_what_to_copy_for_whom(course):
    made = pages(course, "w4")
    lines = command._told(Path("out/w4.pdf"), made).splitlines()
    count = sum(page.pages for page in made)
    assert lines[0] == f"out/w4.pdf: {count} pages"
    assert lines[1] == "      1  what to print: for you, copies: 1, one side"
    assert lines[2] == "    3–4  the session sheet: for you, copies: 1, both sides"
    assert any("receipt: for every student, copies: n, one side" in line for line in lines)
    assert any(
        "exit ticket: one slip for every student, copies: n ÷ 2, one side, cut, minute 175" in line
        for line in lines
    )
    first = 1 + sum(page.pages for page in made if not page.solved)
    assert lines[-1].strip() == f"{first}–{count}  solved: for you"


# --- what to print, and on which side -------------------------------------------------------------


def starts(made):
    """Each page with its number in the file."""
    return list(zip(itertools.accumulate((page.pages for page in made), initial=1), made, strict=False))


def misplaced(made):
    """What would come out on the back of another sheet."""
    return [
        page.title
        for (at, page), before in zip(starts(made), [None, *made], strict=False)
        if not page.blank and ((at % 2 == 0) != page.back or (page.back and before.blank))
    ]


@pytest.mark.parametrize("name", SESSIONS)
def test_every_sheet_begins_on_a_front_and_a_back_is_behind_its_own(course, name):
    made = pages(course, name)
    assert misplaced(made) == []
    turned = {
        sheet.title: front.title
        for front, sheet in itertools.pairwise(read_handouts(ROOT, name).sheets)
        if sheet.turned
    }
    behind = {page.title: front.title for front, page in itertools.pairwise(made) if page.back}
    assert behind == turned
    assert all(at % 2 == 0 for at, page in starts(made) if page.blank)


def test_a_sheet_without_its_blank_side_would_be_seen(course):
    made = pages(course, "w4")
    blank = next(i for i, page in enumerate(made) if page.blank and made[i - 1].title == "receipt")
    assert "coach and bus" in misplaced([*made[:blank], *made[blank + 1 :]])


@pytest.mark.parametrize("name", SESSIONS)
def test_the_first_page_tells_every_sheet_its_copies_sides_cut_and_minute(course, name):
    made = pages(course, name)
    rows = re.findall(
        r"<tr><td>(.*?)</td><td><b>(.*?)</b>.*?</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>",
        made[0].html,
    )
    at = {str(number): page for number, page in starts(made)}
    steps = {step.title: step.start for step in SESSIONS[name].steps()}
    told = []
    for span, title, copies, sides, cut, when in rows[:-1]:
        page = at[span.partition("–")[0]]
        told.append(page.title)
        assert html.unescape(title).startswith(page.title)
        assert (sides == "both sides") == ("–" in span)
        if page.title == "the session sheet":
            continue
        assert bool(cut) == (
            "✂" in page.html
            or 'class="cut"' in page.html
            or "<hr>" in page.html
            or page.title == "exit ticket"
        )
        sheet = next((s for s in read_handouts(ROOT, name).sheets if page.title.startswith(s.title)), None)
        if sheet and not sheet.whom.startswith(("for you", "one for you")):
            assert when == (f"minute {steps[sheet.at]}" if sheet.at else "at the start")
        assert copies
    assert told == [page.title for page in made[1:] if not (page.blank or page.solved or page.back)]
    assert rows[-1][1:3] == ("all of it solved", "1")


@pytest.mark.parametrize(
    ("whom", "copies", "of_21"),
    [
        ("for every student, cut across", "n", "21"),
        ("one for each pair: red", "n ÷ 2", "11"),
        ("one for two: underline", "n ÷ 2", "11"),
        ("for you: read", "1", "1"),
        (
            "for everybody, one for each talk and one more: sheet zero",
            "n × (talks + 1)",
            "21 × (talks + 1)",
        ),
        ("for anyone who is behind at minute 110", "a few", "a few"),
        ("for everyone", "", ""),
    ],
)
def test_how_many_copies(whom, copies, of_21):
    assert data.copies_of(whom) == copies
    assert data.counted(copies, 21) == of_21
    assert data.counted(copies, 0) == copies


def test_the_number_of_students_stands_on_the_first_page(course):
    made = command.documents_of(course, ROOT, ["w4"], students=21)["w4"][1]
    assert "for 21 students" in made[0].html
    assert "<b>receipt</b><br>for every student</td><td>21</td>" in made[0].html
    assert "<td>11</td>" in made[0].html


@pytest.mark.parametrize("wrong", ["0", "many", "-3"])
def test_no_number_of_students_is_one_line(wrong):
    done = run("w4", f"--students={wrong}")
    assert done.returncode == 2
    assert f"argument --students: {wrong!r} is not a number of people" in done.stderr


@pytest.mark.parametrize("name", SESSIONS)
def test_what_to_do_and_to_read_at_home_is_on_paper(course, name):
    session = SESSIONS[name]
    page = next((page for page in pages(course, name) if page.title == "after the session"), None)
    assert (page is None) == (name == "opening")
    if page is None:
        return
    assert "<a " not in page.html
    assert "://" not in page.html
    plain = as_plain(course, session)
    seen = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", page.html)))
    for text in filter(None, (plain["homework"], plain["worklog"])):
        assert text["text"].split(" (")[0][:60] in seen
    for item in plain["read"]:
        assert item["source"]["label"] in seen
        assert item["source"]["href"].split("://")[1].removeprefix("www.").rstrip("/") in seen


def test_a_link_is_its_words_on_paper_and_an_address_where_it_leaves_the_site():
    text = on_paper('See <a href="../a.html#b">the page</a> and <a href="https://www.a.org/b/">this</a>.')
    assert text == 'See the page and this <span class="address">a.org/b</span>.'


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<td>65,536 and 1,024</td>", "<td>65\u00a0536 and 1024</td>"),
        ("79% and 27 %", "79\u00a0% and 27\u00a0%"),
        ("16,777,216.5", "16\u00a0777\u00a0216.5"),
        ("<code>1,024</code> a,024 1,02 0.1,024", "<code>1,024</code> a,024 1,02 0.1,024"),
        ('<p data-a="1,024">1, 024</p>', '<p data-a="1,024">1, 024</p>'),
    ],
)
def test_numbers_are_in_one_style_as_on_the_site(given, expected):
    assert in_one_style(given) == expected


@pytest.mark.parametrize("name", SESSIONS)
def test_one_style_of_numbers(course, name):
    text = re.sub(
        r"<pre\b.*?</pre>|<code\b.*?</code>|<[^>]+>",
        "|",
        "".join(page.html for page in pages(course, name)),
        flags=re.DOTALL,
    )
    assert re.findall(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])", text) == []
    assert re.findall(r"\d ?%", text) == []
    assert re.findall(r"(?<![\d.,])\d[\u00a0\u202f]\d{3}(?![\u00a0\u202f]?\d)", text) == []


def test_a_record_without_the_words_is_told(course):
    assert "HGMMA" in command._output(course, "teach_w2", "HGMMA")
    with pytest.raises(HandoutError, match="no output with 'a poem' in it"):
        command._output(course, "teach_w2", "a poem")


def test_no_answer_breaks_the_page(written, course):
    found = read_handouts(written(DEMO.replace("[[pot]]", "[[a `<b>` & c]]")), "w4")
    made = printed_pages(
        as_plain(course, SESSIONS["w4"]),
        found,
        lambda n: 0,
        words_of(course, SESSIONS["w4"]),
        ROOT,
        lambda a, b: "",
    )
    assert html.escape("<b>") in next(page.html for page in made if page.solved)


# --- the link on the map --------------------------------------------------------------------------


def test_only_the_reference_s_map_links_a_pdf_whose_numbers_are_the_reference_s(tmp_path):
    (tmp_path / "handouts").mkdir()
    (tmp_path / "handouts/w4.pdf").touch()
    reference, other = (SimpleNamespace(root=tmp_path, is_reference=is_it) for is_it in (True, False))
    assert session_blocks.is_printed(reference, "w4")
    assert not session_blocks.is_printed(reference, "w5")
    assert not session_blocks.is_printed(other, "w4")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (True, '<a href="../../handouts/w4.pdf">Print everything (PDF)'),
        (False, "<code>nox -s handouts -- w4</code>"),
    ],
)
def test_the_map_links_what_was_printed_or_tells_the_command(printed, expected):
    tools = maps.Tools(
        say=str, plain=str, slot=str, fold=lambda css, summary, body: body, figure=lambda name, alt: "",
        heading=lambda target: "a heading", measured=frozenset(), taken=lambda step: "", printed=printed,
        labs={}, lab_section=lambda lab: "", source=str,
    )  # fmt: skip
    text = maps.markdown(SESSIONS["w4"], "handbook/05_the_frontier", tools)
    assert expected in text
    assert ('/w4.pdf"' in text) == printed
