"""Session maps: planted faults are refused by name, and a good map becomes a page, a road and plain data."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_record import quantity
from test_render import record_it
from tiny_repository import make_repository, write
from word_for_word import same_as_kept

from course_labs.lab import Lab, Stage
from course_site.lint import lint
from course_site.pages.headings import headings
from course_site.pages.page import find_pages
from course_site.sessions import checks as session_checks
from course_site.sessions import fields
from course_site.sessions import map as session_map
from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.sessions.course_road import Road, read_road
from course_site.sessions.fields import BELOW, Field
from course_site.sessions.plain_data import as_plain
from course_site.sessions.preflights import one_line
from course_site.sessions.print_sheet import sheet
from course_site.sessions.road import VIEWS, place_of, road_html
from course_site.sessions.run_view import run_page
from course_site.sessions.session import is_idle, load_sessions, read_sessions, visible
from course_site.site import check_maps
from course_site.site.course import Course, load_course
from course_site.site.render.page import render_course

REPOSITORY = Path(__file__).resolve().parents[2]
HEAD = """
title = "Flash, by hand"
kind = "workshop"
about = "The road to the cellar."
artifact = "A kernel, refused, mended and timed."
student_page = "docs/w1.py"
map_page = "handbook/w1_map.md"
chapter = "handbook/w1_chapter.md"
prepare = ["Print the sheets, see [the grid](docs/w1.py#the-grid).", "Sharpen pencils."]
homework = "Read [the next page](docs/w2.py#later)."
worklog = "Worklog: what was carried."
read = [
  {source = "one2001", why = "For the *grid*."}, {source = "two2002", why = "For the race."},
  {source = "three2003", why = "For later."},
]
exit_headings = ["docs/w1.py#the-mma-call-twice", "docs/w1.py#flash"]
exit_ticket = [{ask = "What is rescaled?", answer = "The sum."}, {ask = "When?", answer = "At a new peak."}]
questions = [
  {ask = "Is it exact?", answer = "Yes."}, {ask = "Is it new?", answer = "No."},
  {ask = "Is it short?", answer = "Quite."}, {ask = "Is it mine?", answer = "Now it is."},
]
[board]
figure = "docs/assets/figures/board_w1.svg"
alt = "A grid, crossed out."
[[demo]]
name = "w1_race"
title = "The race"
command = "PYTHONPATH=src python -m course_kernels.measure copy/k01 --workload dtype=float32,N=1"
preflight = "PYTHONPATH=src python -m course_kernels.measure copy/k01 --workload dtype=float32,N=1 --seconds 0.1"
fallback = "docs/w1.py#the-race"
"""
MINUTES = {(0, 20): (8, 12), (20, 45): (15, 10), (45, 90): (15, 15, 15), (90, 100): (10,)}
MINUTES |= {(100, 150): (15, 15, 10, 10), (150, 180): (15, 15)}
FIGURE = '<svg viewBox="0 0 352 20" role="img" aria-label=""><text>board</text></svg>'
SOURCES = "".join(
    f'[{key}]\ntitle = "On {key}"\nauthors = ["A. Nyone"]\nyear = {key[-4:]}\nurl = "https://example.org/{key}"\n'
    "verified = false\n"
    for key in ("one2001", "two2002", "three2003")
)
STUDENT = """
# ---
# id: w1
# title: Flash
# ---

# %% [markdown]
# # Flash
#
# ## The grid
#
# ## The race
#
# ```bash
# # no heading
# ```
#
# ## The `mma` call, *twice*
"""


def step(block, number, minutes, *, kind="board", extra=""):
    """One step of the sample, in TOML."""
    fingers = f'fingers = "Sheet {block}, line {number}: a number stands there."\n'
    head = f'[[block.step]]\nminutes = {minutes}\nkind = "{kind}"\ntitle = "Step {block} {number}"\n{fingers}'
    if kind == "break":
        return head
    check = f'check = {{ask = "Why {block} {number}?", answer = "So."}}\n'
    cut = (
        f'cut = "All of it."\npriority = {10 * block + number}\nsaves = {1 + (block == 2) * (minutes - 1)}\n'
    )
    rest = f'say = "Say {block} {number}."\n{check}{"protected = true" if block == 6 else cut}\n'
    return head + rest + (extra or 'anchor = "docs/w1.py#the-grid"\n')


def sample():
    """A workshop without a fault."""
    parts = [HEAD]
    for block, ((start, end), steps) in enumerate(MINUTES.items(), 1):
        parts.append(f'[[block]]\nfrom = {start}\nto = {end}\ntitle = "Block {block}"\n')
        for number, minutes in enumerate(steps, 1):
            kind, extra = "break" if start == 90 else "board", ""
            if (block, number) == (5, 3):
                kind, extra = "demo", 'demo = "w1_race"\nanchor = "docs/w1.py#the-race"\n'
            parts.append(step(block, number, minutes, kind=kind, extra=extra))
    return "".join(parts)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small repository with one workshop."""
    root = make_repository(tmp_path, monkeypatch, gpus=())
    write(root, "docs/bibliography.toml", SOURCES)
    write(root, "docs/glossary.toml", "")
    write(root, "docs/w1.py", STUDENT.lstrip())
    write(root, "docs/assets/figures/board_w1.svg", FIGURE)
    write(
        root,
        "handbook/w1_map.md",
        "---\nid: map_w1\ntitle: Map\n---\n# Map\n\nWords.\n\n/// session | w1\n///\n",
    )
    write(root, "handbook/w1_chapter.md", "---\nid: teach_w1\ntitle: Chapter\n---\n# Chapter\n")
    write(root, "handbook/sessions/w1.toml", sample())
    write(root, "handbook/sessions/w2.toml", "title = 'To come'\nstudent_page = 'docs/w2.py'\n")
    write(root, "handbook/sessions/cohort.toml", "weeks = 4\n")
    shutil.copy(REPOSITORY / ROAD_FILE, root / ROAD_FILE)
    return root


def complaints(root, name="w1"):
    found = [str(c) for c in load_course(root, draft=True).maps.complaints]
    return [line for line in found if line.startswith(f"handbook/sessions/{name}.toml")]


def change(root, *pairs):
    text = sample()
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    write(root, "handbook/sessions/w1.toml", text)


# --- what is refused ------------------------------------------------------------------------------


def test_a_good_map_has_no_fault(root):
    assert complaints(root) == []


FAULTS = {
    "gap": [("from = 20\nto = 45", "from = 25\nto = 45")],
    "overlap": [("from = 20\nto = 45", "from = 15\nto = 45")],
    "end": [("to = 180", "to = 175")],
    "sum": [("minutes = 12", "minutes = 7")],
    "long": [("minutes = 8", "minutes = 20")],
    "boundary": [("from = 0\nto = 20", "from = 0\nto = 21"), ("from = 20\nto = 45", "from = 21\nto = 45")],
    "anchor": [('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/w1.py#the-grit"')],
    "fence": [('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/w1.py#no-heading"')],
    "page": [('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/w9.py#the-grid"')],
    "no heading": [('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/w1.py"')],
    "no anchor": [('anchor = "docs/w1.py#the-grid"\n', "")],
    "listen": [("Sheet 1, line 1: a number stands there.", "Listen.")],
    "they listen": [("Sheet 1, line 1: a number stands there.", "They listen to the mentor.")],
    "watch": [("Sheet 1, line 1: a number stands there.", "watch")],
    "empty": [("Sheet 1, line 1: a number stands there.", " ")],
    "no fingers": [('fingers = "Sheet 1, line 1: a number stands there."\n', "")],
    "break": [('fingers = "Sheet 4, line 1: a number stands there."\n', "")],
    "twice": [("Sheet 1, line 2: a number", "Sheet 1 line 1: A number")],
    "title twice": [('title = "Step 1 2"', 'title = "Step 1 1"')],
    "key": [('title = "Step 1 1"', 'title = "Step 1 1"\nminute = 8')],
    "top key": [('title = "Flash, by hand"', 'title = "Flash, by hand"\nartefact = "x"')],
    "kind": [('kind = "board"', 'kind = "talk"')],
    "session kind": [('kind = "workshop"', 'kind = "lecture"')],
    "say": [("Say 1 1.", "word " * 60)],
    "check": [('check = {ask = "Why 1 1?", answer = "So."}\n', "")],
    "cut": [('cut = "All of it."\n', "")],
    "whole": [("minutes = 8", 'minutes = "8"')],
    "demo": [('demo = "w1_race"', 'demo = "w1_rice"')],
    "fallback": [("docs/w1.py#the-race", "docs/w1.py#the-rice")],
    "lab": [('about = "The', 'lab = "first_kernel"\nabout = "The')],
    "stage": [('title = "Step 1 1"', 'title = "Step 1 1"\nstage = 2')],
    "chapter": [("handbook/w1_chapter.md", "handbook/w1_chapters.md")],
    "map page": [("handbook/w1_map.md", "handbook/w1_chapter.md")],
    "figure": [("board_w1.svg", "board_w9.svg")],
    "hidden figure": [("docs/assets/figures/board_w1.svg", "docs/../.git/board_w1.svg")],
    "no figure": [("docs/assets/figures/board_w1.svg", "docs/assets/board_w1.svg")],
    "preflight": [('preflight = "', 'preflight = "rm -rf /; ')],
    "piped preflight": [('preflight = "', 'preflight = "curl x | ')],
    "preflight of another kernel": [(".measure copy/k01", ".measure copy/k01 copy/k02")],
    "preflight of a version": [('preflight = "PYTHONPATH=src ', 'preflight = "python --version" # ')],
    "control": [("Say 1 1.", "Say \\u001b[31m1 1.")],
    "link": [("docs/w1.py#the-grid)", "docs/w1.py#the-grit)")],
    "strange link": [("docs/w1.py#the-grid)", "../elsewhere)")],
    "formula": [("Sharpen pencils.", "Write $x^2$ large.")],
    "ticket": [(', {ask = "When?", answer = "At a new peak."}', "")],
    "answer": [('answer = "Yes."', 'answer = ""')],
    "list": [('answer = "Yes."', 'answer = "75. And more."')],
    "toml": [("[board]", "[board")],
    "no priority": [("priority = 11\n", "")],
    "priority twice": [("priority = 12", "priority = 11")],
    "saves too much": [("saves = 1\n", "saves = 9\n")],
    "saves of nothing": [('cut = "All of it."\n', 'keep = "All."\n')],
    "cut that forbids": [('cut = "All of it."', 'cut = "Nothing. This is the heart."')],
    "cut with a never": [('cut = "All of it."', 'cut = "The talk. Never the slips."')],
    "cut at the heart": [("protected = true", 'cut = "It."\npriority = 1\nsaves = 1\nprotected = true')],
    "cut in a heart of a block": [("from = 0\nto = 20", "from = 0\nto = 20\nprotected = true")],
    "no heart": [("protected = true", 'keep = "It."'), ("protected = true", 'keep = "It."')],
    "heart of a word": [("protected = true", 'protected = "yes"')],
    "stands on nobody": [('title = "Step 1 2"', 'title = "Step 1 2"\nneeds = ["Step 2 2"]')],
    "stood on for good": [('title = "Step 1 2"', 'title = "Step 1 2"\nneeds = ["Step 1 1"]')],
    "scissors": [("Sheet 1, line 1:", "Scissors, and sheet 1, line 1:")],
    "scissors in the title": [('title = "Step 1 1"', 'title = "Scissors 1 1"')],
    "a coin that is only said": [("Say 1 1.", "Take your coin.")],
    "a remote for eyes alone": [
        ('title = "Step 1 1"', 'title = "Step 1 1"\nroom = "A coin."\nremote = "Online: a shared sheet."')
    ],
    "a remote for the room alone": [
        (
            'title = "Step 1 1"',
            'title = "Step 1 1"\nroom = "A coin."\nremote = "Without seeing it: by touch."',
        )
    ],
    "a remote that stops short": [
        ('title = "Step 1 1"', 'title = "Step 1 1"\nremote = "Online: a sheet. Without seeing it: "')
    ],
    "an envelope": [('title = "Step 1 1"', 'title = "Step 1 1"\nroom = "Open your envelope."')],
    "cups in prepare": [("Sharpen pencils.", "Two paper cups each.")],
    "coins at a minute": [("Sharpen pencils.", "Four coins each, for minute 35.")],
    "a minute of no step": [("Say 1 1.", "Keep it for minute 19.")],
    "a typed ridge": [("Say 1 1.", "The ridge is at about 30 here.")],
    "a typed ridge in the fingers": [("Sheet 1, line 2: a", "Left of the ridge, or right: 206, a")],
    "typed rooms": [("Say 1 1.", "All 132 rooms of the card.")],
    "no worklog": [('worklog = "Worklog: what was carried."\n', "")],
    "another worklog": [('"Worklog: what', '"What')],
    "two to read": [(', {source = "two2002", why = "For the race."}', "")],
    "one to read twice": [('"two2002"', '"one2001"')],
    "a source that is not there": [('"two2002"', '"two2003"')],
    "a reading without a why": [(', why = "For the race."', "")],
    "no exit heading": [(', "docs/w1.py#flash"]', "]")],
    "a wrong exit heading": [("docs/w1.py#flash", "docs/w1.py#flush")],
    "a lab of nobody": [('title = "Step 1 1"', 'title = "Step 1 1"\nlab = "grey"')],
    "a board that answers": [
        ('title = "Step 1 1"', 'title = "Step 1 1"\nboard = "So many: {{ w1_race.wait_s:.0f }}"'),
        ('answer = "So."', 'answer = "They are {{ w1_race.wait_s:.1f }}."'),
    ],
    "a room that answers": [
        ('title = "Step 1 1"', 'title = "Step 1 1"\nroom = "Work out {{ w1_race.wait_s:.0f }}."'),
        ("Sheet 1, line 1: a number stands", "Sheet 1, line 1: {{ w1_race.wait_s:.0f }} stands"),
    ],
}
SAID = {
    "gap": ["block 2: gap: nothing is planned from minute 20 to 25"],
    "overlap": ["block 2: overlap: minutes 15 to 20 are planned twice"],
    "end": ["block 6: gap: nothing is planned from minute 175 to 180"],
    "sum": ["block 1: its steps sum to 15 minutes, and it has 20 (0 to 20): sum off by 5, add as much"],
    "long": ["block 1, step 1, minutes: 20 minutes in one step, and 15 is the most"],
    "boundary": ["block: the boundaries of w1 are 0 20 45 90 100 150 180, not 0 21 45 90 100 150 180"],
    "anchor": ["block 1, step 1, anchor: docs/w1.py has no heading #the-grit; did you mean the-grid?"],
    "fence": ["block 1, step 1, anchor: docs/w1.py has no heading #no-heading"],
    "page": ["block 1, step 1, anchor: there is no page 'docs/w9.py'"],
    "no heading": ["block 1, step 1, anchor: names no heading: write docs/w1.py#…"],
    "no anchor": ["block 1, step 1, anchor: is missing: name the heading this step is about, docs/w1.py#…"],
    "listen": ["block 1, step 1, fingers: 'Listen.' moves no finger"],
    "they listen": ["block 1, step 1, fingers: 'They listen to the mentor.' moves no finger"],
    "watch": ["block 1, step 1, fingers: 'watch' moves no finger"],
    "empty": ["block 1, step 1, fingers: is empty"],
    "no fingers": ["block 1, step 1, fingers: is missing"],
    "break": ["block 4, step 1, fingers: is missing"],
    "twice": ["block 1, step 2, fingers: the same text as in block 1, step 1"],
    "title twice": ["block 1, step 2, title: 'Step 1 1' is the title of block 1, step 1 too"],
    "key": ["block 1, step 1, minute: unknown key; known: anchor, board"],
    "top key": ["artefact: unknown key; known: about"],
    "kind": ["block 1, step 1, kind: 'talk' is unknown; known: board, by hand"],
    "session kind": ["kind: is 'lecture', and w1 is a workshop"],
    "say": ["block 1, step 1, say: has 299 characters, and 260 fit: shorten it by 39"],
    "check": ["block 1, step 1, check: is missing"],
    "cut": ["block 1, step 1, cut: is missing"],
    "whole": ["block 1, step 1, minutes: is not a whole number: '8'"],
    "demo": [
        "block 5, step 3, demo: 'w1_rice' is not a [[demo]] of this map; there are w1_race",
        "demo 1: 'w1_race' is run by no step",
    ],
    "fallback": ["demo 1, fallback: docs/w1.py has no heading #the-rice; did you mean the-race?"],
    "lab": ["lab: there is no lab 'first_kernel'; there are none"],
    "stage": ["block 1, step 1, stage: the map names no `lab`"],
    "chapter": ["chapter: there is no page handbook/w1_chapters.md; did you mean handbook/w1_chapter.md?"],
    "map page": ["map_page: handbook/w1_chapter.md does not show it: write `/// session | w1` there"],
    "figure": ["board, figure: docs/assets/figures/board_w9.svg is not this session's: call it board_w1.svg"],
    "hidden figure": ["board, figure: docs/../.git/board_w1.svg: a page shows files below docs, handbook"],
    "no figure": ["board, figure: there is no file docs/assets/board_w1.svg"],
    "preflight": ["demo 1, preflight: mentors type it as it is: write `python -m course_kernels.measure"],
    "piped preflight": ["demo 1, preflight: mentors type it as it is"],
    "preflight of another kernel": ["demo 1, preflight: leaves out what the demo runs, copy/k02 at dtype=float32"],
    "preflight of a version": ["demo 1, preflight: mentors type it as it is"],
    "control": ["block 1, step 1, say: holds a control character"],
    "link": ["prepare 1: docs/w1.py has no heading #the-grit"],
    "strange link": ["prepare 1: the link to '../elsewhere' names no page"],
    "formula": ["prepare 2: holds a formula"],
    "ticket": ["exit_ticket: has 1 entries: write 2 to 3"],
    "answer": ["questions 1, answer: is empty: write its answer"],
    "list": ["questions 1, answer: begins with '75.', which makes it a list"],
    "toml": ["cannot be read as TOML"],
    "no priority": ["block 1, step 1, priority: is 0: write which cut goes first, 1 to 99"],
    "priority twice": ["block 1, step 2, priority: 11 is that of block 1, step 1"],
    "saves too much": ["block 1, step 1, saves: is 9: write the minutes that it wins, 1 to 8"],
    "saves of nothing": ["block 1, step 1, saves: belongs to a `cut`, and there is none"],
    "cut that forbids": ["block 1, step 1, cut: says what is not cut: write that into `keep`"],
    "cut with a never": ["block 1, step 1, cut: says what is not cut: write that into `keep`"],
    "cut at the heart": ["block 6, step 1, cut: is in the heart of the session, which is protected"],
    "cut in a heart of a block": [f"block 1, step {n}, cut: is in the heart of the session" for n in (1, 2)],
    "no heart": ["block: none is protected: write `protected = true`"],
    "heart of a word": ["block 6, step 1, protected: is not true or false: 'yes'"],
    "stands on nobody": ["block 1, step 2, needs: 'Step 2 2' is the title of no step before this one"],
    "stood on for good": ["block 1, step 1, cut: is never proposed, since block 1, step 2 depends on it"],
    "scissors": ["block 1, step 1, remote: is missing, and the step has 'Scissors'"],
    "scissors in the title": ["block 1, step 1, remote: is missing, and the step has 'Scissors'"],
    "a coin that is only said": ["block 1, step 1, remote: is missing, and the step has 'coin'"],
    "a remote for eyes alone": ["block 1, step 1, remote: lacks one of its two: write 'Online: ….' and then"],
    "a remote for the room alone": ["block 1, step 1, remote: lacks one of its two: write 'Online: ….' and then"],
    "a remote that stops short": ["block 1, step 1, remote: lacks one of its two: write 'Online: ….' and then"],
    "an envelope": ["block 1, step 1, remote: is missing, and the step has 'envelope'"],
    "cups in prepare": ["prepare: brings 'paper cups', and no step has a `remote`"],
    "coins at a minute": ["block 2, step 2, remote: is missing, and the step is named in `prepare`"],
    "a minute of no step": ["block 1, step 1, say: names minute 19, and no step begins then"],
    "a typed ridge": ["block 1, step 1, say: 'ridge is at about 30' holds on one card only"],
    "a typed ridge in the fingers": ["block 1, step 2, fingers: '206' holds on one card only"],
    "typed rooms": ["block 1, step 1, say: '132' holds on one card only"],
    "no worklog": ["worklog: is missing: write 'Worklog: …'"],
    "another worklog": ["worklog: is one line that begins with 'Worklog:'"],
    "two to read": ["read: has 2 entries: write 3"],
    "one to read twice": ["read 2, source: 'one2001' is there twice"],
    "a source that is not there": [
        "read 2, source: docs/bibliography.toml does not have 'two2003'; did you mean two2002?"
    ],
    "a reading without a why": ["read 2, why: is missing: write what it is good for"],
    "no exit heading": ["exit_headings: has 1 entries, and the exit ticket 2"],
    "a wrong exit heading": ["exit_headings 2: docs/w1.py has no heading #flush; did you mean flash?"],
    "a lab of nobody": ["block 1, step 1, lab: 'grey' is not a `lab` of this map; there are none"],
    "a board that answers": ["block 1, step 1, board: shows the answer of its own check: let it ask"],
    "a room that answers": [
        "block 1, step 1, room: shows {{ w1_race.wait_s }}, which `fingers` has them find: ask for it"
    ],
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_refused_by_name(root, fault):
    change(root, *FAULTS[fault])
    found = complaints(root)
    for said in SAID[fault]:
        assert any(line.startswith(f"handbook/sessions/w1.toml: {said}") for line in found), found
    assert all("\n" not in line for line in found)


FIRST = 'title = "Step 1 1"'
TICKET = 'exit_ticket = [{ask = "What is rescaled?", answer = "The sum."}, {ask = "When?", answer = "At a new peak."}]'
MORE = {
    # what a file shows by itself
    "16 minutes": [("minutes = 8", "minutes = 16")],
    "15 minutes": [("minutes = 8", "minutes = 15")],
    "no minutes at all": [("minutes = 8\n", "")],
    "0 minutes": [("minutes = 8", "minutes = 0")],
    "1 minute": [("minutes = 8", "minutes = 1")],
    "true minutes": [("minutes = 8", "minutes = true")],
    "no text": [('say = "Say 1 1."', "say = 3")],
    "an empty text that is not needed": [(FIRST, f'{FIRST}\nboard = " "')],
    "no title": [('title = "Flash, by hand"', "")],
    "no kind": [('kind = "workshop"', "")],
    "no student page": [('student_page = "docs/w1.py"', "")],
    "no kind of a step": [('kind = "board"\n', "")],
    "no board": [
        ('[board]\nfigure = "docs/assets/figures/board_w1.svg"\nalt = "A grid, crossed out."\n', "")
    ],
    "half a board": [('alt = "A grid, crossed out."\n', 'old = "A grid"\n')],
    "a board that is a word": [
        ('[board]\nfigure = "docs/assets/figures/board_w1.svg"\nalt = "A grid, crossed out."\n', ""),
        ('title = "Flash', 'board = "x"\ntitle = "Flash'),
    ],
    "nothing to prepare": [
        ('["Print the sheets, see [the grid](docs/w1.py#the-grid).", "Sharpen pencils."]', "[]")
    ],
    "prepare a word": [
        ('["Print the sheets, see [the grid](docs/w1.py#the-grid).", "Sharpen pencils."]', '"Sharpen"')
    ],
    "prepare a number": [('"Sharpen pencils."', "3")],
    "prepare a blank": [('"Sharpen pencils."', '" "')],
    "questions that are a word": [(TICKET, 'exit_ticket = "x"')],
    "a question that is a word": [('{ask = "When?", answer = "At a new peak."}', '"x"')],
    "a question without an answer": [('ask = "When?", answer', 'ask = "When?", reply')],
    "3 in the ticket": [(', {ask = "When?"', ', {ask = "Or?", answer = "So."}, {ask = "When?"')],
    "4 in the ticket": [
        (
            ', {ask = "When?"',
            ', {ask = "Or?", answer = "So."}, {ask = "Not?", answer = "No."}, {ask = "When?"',
        )
    ],
    "9 questions": [
        ('{ask = "Is it new?"', '{ask = "Is it?", answer = "It is."}, ' * 5 + '{ask = "Is it new?"')
    ],
    "8 questions": [
        ('{ask = "Is it new?"', '{ask = "Is it?", answer = "It is."}, ' * 4 + '{ask = "Is it new?"')
    ],
    "3 questions": [('{ask = "Is it new?", answer = "No."},', "")],
    "a demo that is a word": [("[[demo]]", "[old]"), ('title = "Flash', 'demo = ["x"]\ntitle = "Flash')],
    "a demo with a strange name": [('name = "w1_race"', 'name = "w1-race"')],
    "a demo without a name": [('name = "w1_race"\n', "")],
    "a demo twice": [("[[block]]", '[[demo]]\nname = "w1_race"\n[[block]]')],
    "a demo that nobody runs": [("[[block]]", '[[demo]]\nname = "w1_rest"\n[[block]]')],
    "a block that ends as it begins": [("from = 20\nto = 45", "from = 20\nto = 20")],
    "a block that ends before": [("from = 20\nto = 45", "from = 20\nto = 19")],
    "too many minutes": [("minutes = 8", "minutes = 9")],
    "a block without steps": [("[[block]]", '[[block]]\nfrom = 0\nto = 20\ntitle = "Empty"\n[[block]]')],
    "a block within another": [("from = 20\nto = 45", "from = 5\nto = 10")],
    "too long": [("to = 180", "to = 190")],
    "a stage of 0": [(FIRST, f"{FIRST}\nstage = 0")],
    "a stage of 1": [(FIRST, f"{FIRST}\nstage = 1")],
    "a check that is a word": [('check = {ask = "Why 1 1?", answer = "So."}', 'check = "x"')],
    "a check in a break": [('title = "Step 4 1"', 'title = "Step 4 1"\ncheck = {ask = "Tea?"}')],
    "a break that says something": [('title = "Step 4 1"', 'title = "Step 4 1"\nsay = "Tea."\ncut = "Tea."')],
    "a title of signs": [(FIRST, 'title = "!"'), ('title = "Step 1 2"', 'title = "?"')],
    "titles that say the same": [
        (FIRST, 'title = "The *Step* 1, 2"'),
        ('title = "Step 1 2"', 'title = "the step 1 2"'),
    ],
    "fingers that say the same later": [
        ("Sheet 2, line 1:", "Sheet 1, line 1:"),
        ("Sheet 3, line 1:", "Sheet 1, line 1:"),
    ],
    # what it says of the rest of the course
    "no map page": [('map_page = "handbook/w1_map.md"', "")],
    "a student page elsewhere": [('student_page = "docs/w1.py"', 'student_page = "handbook/w1_chapter.md"')],
    "a fallback without a heading": [("docs/w1.py#the-race", "docs/w1.py")],
    "no fallback": [('fallback = "docs/w1.py#the-race"\n', "")],
    "a link to a page": [("docs/w1.py#the-grid)", "docs/w1.py)")],
    "a link to no page": [("docs/w1.py#the-grid)", "docs/w8.md)")],
    "a page to come": [("docs/w1.py#the-grid)", "docs/w2.py#later)")],
    "a link elsewhere": [("docs/w1.py#the-grid)", "https://example.org/a.py)")],
    "a letter": [("docs/w1.py#the-grid)", "mailto:a@example.org)")],
    "a link to a file like a page": [("docs/w1.py#the-grid)", "docs/w1.pyc)")],
    "a link in code": [("see [the grid](docs/w1.py#the-grid)", "type `[x](y)`")],
    "a list": [("Sharpen pencils.", "- Sharpen pencils.")],
    "a number": [("Sharpen pencils.", "1) Sharpen pencils.")],
    "a minus": [("Sharpen pencils.", "-1 is no list.")],
    "a heading": [("Sharpen pencils.", "# Sharpen pencils.")],
    "two prices": [("Sharpen pencils.", "From 3$ to 5$, \\\\$x$ and `$y$`.")],
    "a formula in brackets": [("Sharpen pencils.", "Write '\\\\(x\\\\)' large.")],
}


def test_what_is_said_of_each_fault_word_for_word(root):
    said = []
    for name, pairs in (FAULTS | MORE).items():
        change(root, *pairs)
        said += [f"{name}:", *(f"  {line.partition(': ')[2]}" for line in complaints(root))]
    said += ["a map of two keys:", *complaints(root, "w2")]
    same_as_kept("complaints.txt", "\n".join(said) + "\n")


def test_every_text_of_a_map_is_looked_at(root):
    """A formula planted in each: said of its place, once."""
    texts = {
        'about = "': "about", 'artifact = "': "artifact", 'homework = "': "homework", 'prepare = ["': "prepare 1",
        'exit_ticket = [{ask = "': "exit_ticket 1, ask", 'answer = "At': "exit_ticket 2, answer",
        'answer = "Quite': "questions 3, answer", "{ask = \"Is it exact": "questions 1, ask",
        'title = "Step 2 1': "block 2, step 1, title", 'say = "Say 2 1': "block 2, step 1, say",
        'fingers = "Sheet 2, line 1': "block 2, step 1, fingers", '{ask = "Why 2 1': "block 2, step 1, check, ask",
        'cut = "All': "block 1, step 1, cut",
    }  # fmt: skip
    for text, place in texts.items():
        change(root, (text, text.replace('= "', '= "$x$ ', 1).replace('= ["', '= ["$x$ ')))
        assert [line.partition(": holds")[0] for line in complaints(root)] == [
            f"handbook/sessions/w1.toml: {place}"
        ]
    for name in ("board", "room", "feeds", "trip"):
        change(root, (FIRST, f'{FIRST}\n{name} = "$x$"'))
        assert [line.partition(": holds")[0] for line in complaints(root)] == [
            f"handbook/sessions/w1.toml: block 1, step 1, {name}"
        ]


def test_files_that_are_no_map_are_named(root):
    write(root, "handbook/sessions/w7.toml", sample())
    (root / "handbook/sessions/w3.toml").write_bytes(b"\xff")
    write(root, "handbook/sessions/l1.toml", sample())
    sessions, found = read_sessions(root)
    assert list(sessions) == ["l1", "w1", "w2"]
    of = [str(line).partition(": ")[2] for line in found if line.path.endswith(("w7.toml", "w3.toml"))]
    assert of == [
        "cannot be read as TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        "'w7' is not a session; the files are called opening, l1, l2, l3, l4, l5, l6, l7, l8, w1, w2, w3, w4, w5, w6",
    ]
    (root / ROAD_FILE).write_text("[road.course]\nbefore = 3\n")
    assert [str(line) for line in read_sessions(root)[1]] == [
        f"{ROAD_FILE}: road.course, before: needs a list of sessions, got 3"
    ]
    assert read_sessions(root)[0] == {}


ALOUD = Field(
    "aloud", limit=20, side="they", page="Out loud {priority}", run="Aloud", sheet="Aloud:", column="board"
)


def test_a_field_is_one_row_and_stands_in_every_view(root, monkeypatch):
    listed = replace(ALOUD, key="chorus", page="", run="", sheet="In chorus", column=BELOW)
    monkeypatch.setattr(fields, "FIELDS", (*fields.FIELDS, ALOUD, listed))
    change(root, ('say = "Say 1 1."', 'say = "Say 1 1."\naloud = "All *together*."\nchorus = "And again."'))
    assert complaints(root) == []
    assert '<div class="field aloud" markdown="1">\n\n**Out loud 11** All *together*.' in rendered(root)
    course = load_course(root, draft=True)
    data = as_plain(course, course.maps.sessions["w1"])
    said = "All <em>together</em>."
    assert f'<div class="aloud"><dt>Aloud</dt><dd>{said}</dd></div><div class="see">' in run_page(
        data, "%blocks%"
    )
    on_paper = sheet(data, "%rows%%below%")
    assert on_paper.count(f'<span class="late">Aloud: {said}</span></td></tr>') == 1
    assert on_paper.endswith("<h3>In chorus</h3><ol><li value=1>And again.</li></ol>")
    change(root, ('say = "Say 1 1."', 'say = "Say 1 1."\naloud = "Louder than there is room for."'))
    (found,) = complaints(root)
    assert "block 1, step 1, aloud: has 30 characters, and 20 fit" in found


def test_without_its_row_a_field_is_unknown(root, monkeypatch):
    monkeypatch.setattr(fields, "FIELDS", tuple(field for field in fields.FIELDS if field.key != "board"))
    change(root, ('say = "Say 1 1."', 'say = "Say 1 1."\nboard = "A grid."'))
    (found,) = [str(c) for c in read_sessions(root)[1] if c.path.endswith("w1.toml")]
    assert "block 1, step 1, board: unknown key; known: anchor, check" in found


def test_all_faults_are_listed_at_once(root):
    change(root, *FAULTS["sum"], *FAULTS["listen"], *FAULTS["anchor"], *FAULTS["figure"])
    found = complaints(root)
    assert len(found) == 4, found


FITS = {
    "title": 45,
    "say": 260,
    "board": 160,
    "fingers": 200,
    "room": 160,
    "cut": 120,
    "keep": 120,
    "trip": 160,
}


@pytest.mark.parametrize("key", FITS)
def test_what_is_as_long_as_fits_is_taken_and_one_letter_more_is_not(root, key):
    old = {
        "title": 'title = "Step 1 1"',
        "say": 'say = "Say 1 1."',
        "fingers": 'fingers = "Sheet 1, line 1: a number stands there."',
        "cut": 'cut = "All of it."',
    }.get(key, "")
    for more in (0, 1):
        new = f'{key} = "{"a" * (FITS[key] + more)}"'
        change(root, (old, new) if old else ('say = "Say 1 1."', f'say = "Say 1 1."\n{new}'))
        said = f"block 1, step 1, {key}: has {FITS[key] + 1} characters, and {FITS[key]} fit: shorten it by 1"
        assert [line.partition(": ")[2] for line in complaints(root)] == [said] * more


def test_faults_stop_a_strict_build_and_not_a_draft(root):
    change(root, *FAULTS["listen"])
    assert not [p for p in load_course(root, draft=True).problems if "w1.toml" in p.path]
    problems = [str(p) for p in load_course(root).problems]
    assert any("w1.toml: block 1, step 1, fingers: 'Listen.' moves no finger" in line for line in problems)


@pytest.mark.parametrize(
    "text", ["listening", "Listen!", "everybody just listens", "They watch.", "eyes: look"]
)
def test_idle_fingers(text):
    assert is_idle(text) == (text != "eyes: look")


def test_fingers_that_move_may_also_listen():
    assert not is_idle("Listen for the word tile and make a tick on the slip each time.")
    assert not is_idle("Watch nvidia-smi and write down the clock.")


def test_a_link_counts_by_its_words():
    assert (
        visible("See [the `grid`](docs/w1.py#the-grid), {{ w1.flash.us:.0f }} µs[^key].")
        == "See the grid, 0000 µs."
    )


def test_a_figure_of_one_card_may_stand_where_the_card_is_named(root):
    for said in (
        "On an H200 the ridge is at 206.",
        "The ridge is at {{ l1.ridge_bf16:.0f }}.",
        "It has 206 grains.",
    ):
        change(root, ("Say 1 1.", said))
        assert complaints(root) == []


def test_three_steps_may_look_back_at_another_page_and_no_fourth(root):
    write(root, "docs/other.md", "---\nid: other\ntitle: Other\n---\n# Other\n\n## There\n")
    for count in (3, 4):
        write(
            root,
            "handbook/sessions/w1.toml",
            sample().replace('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/other.md#there"', count),
        )
        said = "handbook/sessions/w1.toml: block: steps 1, 2, 3, 4 point to other pages, and 3 may look back"
        assert [line.partition(": name")[0] for line in complaints(root)] == [said] * (count == 4)


def test_a_demo_has_its_heading_too(root):
    change(root, ('demo = "w1_race"\nanchor = "docs/w1.py#the-race"', 'demo = "w1_race"'))
    (line,) = complaints(root)
    assert "block 5, step 3, anchor: is missing: name the heading this step is about" in line


def test_a_page_to_come_is_said_on_the_map_step_by_step(root):
    (root / "docs/w1.py").unlink()
    write(root, "docs/other.md", "---\nid: other\ntitle: Other\n---\n# Other\n\n## There\n")
    change(
        root,
        ('anchor = "docs/w1.py#the-grid"\n', ""),
        ('anchor = "docs/w1.py#the-grid"', 'anchor = "docs/other.md#there"'),
    )
    text = rendered(root)
    assert "<summary>To come: the headings of 13 steps, with <code>docs/w1.py</code></summary>" in text
    assert "- 1. Step 1 1: this heading comes with its page.\n" in text
    assert (
        "- 2. Step 1 2: this heading comes with its page. Until then: [There](../other.md#there).\n" in text
    )


# --- demos ----------------------------------------------------------------------------------------

DEMOS = """
# ---
# id: demos
# title: Demos
# needs: gpu
# ---

# %% [markdown]
# # Demos

# %%
DEMOS = {"w1_race": "PYTHONPATH=src python -m course_kernels.measure copy/k01 " "--workload dtype=float32,N=1"}
"""


def with_waits(root, **waits):
    write(root, "handbook/demos.py", DEMOS.lstrip())
    names = {name: {"wait_s": quantity(seconds, "s")} for name, seconds in waits.items()}
    record_it(root, names or {"other": quantity(1.0)}, name="handbook/demos.py")


def test_a_demo_that_is_not_measured_is_listed(root):
    report = load_course(root, draft=True).maps
    assert report.unmeasured == ["w1_race"]
    assert any("not measured yet: w1_race" in line for line in report.lines())


def test_a_demo_that_is_not_measured_is_listed_once_and_by_its_name(root):
    change(root, *MORE["a demo twice"])
    assert load_course(root, draft=True).maps.unmeasured == ["w1_race"]
    change(root, *MORE["a demo without a name"])
    assert load_course(root, draft=True).maps.unmeasured == []


def test_the_road_names_the_page_that_measures_the_waits(root):
    said = f"{ROAD_FILE}: waits: no page has the id 'demos', so no wait is known"
    assert said in map(str, load_course(root, draft=True).maps.complaints)
    with_waits(root, w1_race=12.4)
    assert said not in map(str, load_course(root, draft=True).maps.complaints)


def test_a_demo_fits_its_step(root):
    with_waits(root, w1_race=599.0)
    assert complaints(root) == []
    assert load_course(root, draft=True).maps.unmeasured == []


def test_a_demo_slower_than_its_step_is_refused_with_both_figures(root):
    with_waits(root, w1_race=702.0)
    assert complaints(root) == [
        "handbook/sessions/w1.toml: block 5, step 3, demo: 'w1_race' takes 702 s, and its step has 600 s (10 min): "
        "give it more minutes or less work"
    ]


def test_a_demo_may_take_its_whole_step_and_no_second_more(root):
    with_waits(root, w1_race=600.0)
    assert complaints(root) == []
    with_waits(root, w1_race=600.6)
    assert len(complaints(root)) == 1


def test_a_demo_that_is_slow_on_another_card_is_no_fault_of_the_map(root):
    with_waits(root, w1_race=702.0)
    course = load_course(root, draft=True)
    elsewhere = SimpleNamespace(
        root=root,
        pages=course.pages,
        scopes=course.scopes,
        sources=course.sources,
        has_numbers=course.has_numbers,
        is_reference=False,
    )
    report = session_checks.check(elsewhere)
    assert [c for c in report.complaints if "w1" in c.path] == []
    assert list(report.lines()) == [
        "handbook/sessions/w1.toml: block 5, step 3, demo: 'w1_race' takes 702 s, and its step has 600 s (10 min): "
        "give it more minutes or less work"
    ]


def test_without_maps_there_is_nothing_to_check(tmp_path):
    assert session_checks.check(SimpleNamespace(root=tmp_path)) == session_checks.Report()


def test_a_page_without_demos_measures_none(root):
    (page,) = [page for page in load_course(root, draft=True).pages if page.id == "w1"]
    assert session_checks.measured_commands(page) == {}


def test_sessions_without_a_map_are_listed(root):
    report = load_course(root, draft=True).maps
    assert session_checks.missing(report) == [
        name for name in read_road(root).sessions if name not in ("w1", "w2")
    ]


def test_a_lab_with_a_fault_is_said_of_its_file(root):
    write(root, "labs/x/lab.toml", "name = 3\n")
    said = [str(c) for c in load_course(root, draft=True).maps.complaints if "lab.toml" in str(c)]
    assert len(said) == 1
    assert said[0].startswith("labs/x/lab.toml: ")


def test_of_many_headings_six_are_named():
    names = {f"h{i}": "" for i in range(8)}
    assert session_checks._some(names) == "#h1, #h2, #h3, #h4, #h5, #h6 …"
    del names["h7"]
    assert session_checks._some(names) == "#h1, #h2, #h3, #h4, #h5, #h6"


def test_a_demo_that_the_page_does_not_measure_is_refused(root):
    with_waits(root)
    (line,) = complaints(root)
    assert "demo 1: 'w1_race' was never measured: add it to DEMOS in handbook/demos.py" in line


def test_a_demo_is_what_is_measured(root):
    with_waits(root, w1_race=5.0)
    change(root, ("dtype=float32,N=1", "dtype=float32,N=2"))
    (line,) = complaints(root)
    assert "demo 1, command: is not what handbook/demos.py measures" in line


# --- pages to come --------------------------------------------------------------------------------


def test_steps_may_wait_for_their_page(root):
    (root / "docs/w1.py").unlink()
    change(root, ('anchor = "docs/w1.py#the-grid"\n', ""))
    report = load_course(root, draft=True).maps
    assert not [c for c in complaints(root) if "anchor" in c]
    assert [step.number for step in report.to_come["w1"]] == [n for n in range(1, 15) if n != 8]
    assert next(iter(report.lines())) == (
        "handbook/sessions/w1.toml: 13 of 14 steps await their page, docs/w1.py; "
        "0 of them point to another page until then"
    )
    assert "*page to come*" in rendered(root)


def test_headings_are_found_as_the_site_makes_them(root):
    (page,) = [page for page in find_pages(root) if page.id == "w1"]
    assert headings(page) == {
        "flash": "Flash", "the-grid": "The grid", "the-race": "The race", "the-mma-call-twice": "The mma call, twice",
    }  # fmt: skip


# --- the page -------------------------------------------------------------------------------------


def rendered(root, page_id="map_w1"):
    course = load_course(root, draft=True)
    page = render_course(course)[page_id]
    return page.road + page.inlined()


def test_the_map_shows_every_step_with_its_minutes(root):
    text = rendered(root)
    for number, (start, end) in enumerate([(0, 8), (8, 20), (20, 35), (35, 45), (45, 60)], 1):
        assert f"<b>{start}–{end}</b>" in text
        assert f"{{ #step-{number} }}" in text
    assert "### 45 to 90: Block 3" in text
    assert len(re.findall(r'<div class="step(?: rest)?" markdown="1">', text)) == 14
    assert "**Fingers** Sheet 1, line 1: a number stands there." in text


def test_the_map_links_to_pages_runs_and_prints(root):
    text = rendered(root)
    assert "[The grid](../w1.py#the-grid)" in text
    assert 'href="run/w1.html"' in text
    assert 'href="run/w1_print.html"' in text
    assert "the next page (*page to come*)" in text
    assert (
        "From Enter to prompt: *not yet measured*. If the GPU fails, show [The race](../w1.py#the-race)."
        in text
    )
    assert "--workload dtype=float32,N=1" in text
    assert "--seconds 0.1" in text


def test_the_map_shows_the_wait(root):
    with_waits(root, w1_race=12.4)
    assert re.search(r'From Enter to prompt: <a class="value"[^>]*>12</a> s', rendered(root))


def test_answers_are_folded(root):
    text = rendered(root)
    assert text.count('<details class="answer"') == 13 + 4 + 2
    assert re.search(r"<summary>Is it exact\?</summary>\s+Yes\.", text)


def test_the_timeline_says_itself(root):
    text = rendered(root)
    assert "Timeline of 180 minutes. 0 to 20, Block 1: step 1 board 8, step 2 board 12." in text
    assert ">break</text>" in text
    assert "reading" not in text.split("</svg>")[0]


def test_a_map_that_is_not_there(root):
    write(root, "handbook/w1_map.md", "---\nid: map_w1\ntitle: Map\n---\n# Map\n\n/// session | w9\n///\n")
    course = load_course(root, draft=True)
    render_course(course)
    assert any("there is no handbook/sessions/w9.toml; there are w1, w2" in str(p) for p in course.problems)


def test_a_map_on_the_page_of_another(root):
    write(root, "handbook/more.md", "---\nid: more\ntitle: More\n---\n# More\n\n/// session | w1\n///\n")
    course = load_course(root, draft=True)
    render_course(course)
    assert any("names handbook/w1_map.md as its page" in str(p) for p in course.problems)


def test_an_unknown_value_is_said_of_the_map(root):
    with_waits(root, w1_race=5.0)
    change(root, ("Sharpen pencils.", "Sharpen {{ demos.pencils }}."))
    course = load_course(root, draft=True)
    render_course(course)
    assert any(
        str(p).startswith("handbook/sessions/w1.toml: unknown value 'pencils'") for p in course.problems
    )


def test_a_typed_number_is_found_in_a_map(root):
    change(root, ("Say 1 1.", "It is 90 times faster than PyTorch."))
    (finding,) = lint.lint_file(root / "handbook/sessions/w1.toml")
    assert "90 times faster" in finding.excerpt


def test_minutes_taken_stand_beside_the_plan(root):
    write(
        root,
        "handbook/sessions/minutes/w1/2026-11-02-1800-w1.csv",
        "session,date,start,step,title,planned,actual\nw1,2026-11-02,18:00,1,Step 1 1,8,11\n",
    )
    assert "<span>8 minutes · 11 in 1 run</span>" in rendered(root)


# --- the typing script ----------------------------------------------------------------------------


def with_lab(root):
    home = root / "src/course_kernels/vector_add"
    home.mkdir(parents=True)
    shutil.copytree(REPOSITORY / "labs/first_kernel", root / "labs/first_kernel")
    shutil.copy(REPOSITORY / "src/course_kernels/vector_add/problem.py", home)
    write(root, "docs/w1.py", STUDENT.lstrip() + "#\n# /// lab | first_kernel\n# ///\n")
    change(
        root,
        ('about = "The', 'lab = "first_kernel"\nlab_time = "Half at home."\nabout = "The'),
        ('title = "Step 2 1"', 'title = "Step 2 1"\nstage = 2'),
    )


def test_the_typing_script_comes_from_the_lab(root):
    with_lab(root)
    text = rendered(root)
    assert "## The typing script" in text
    assert "| [20](#step-3) | 2. One block | `refused on N=1 float32: out of bounds: 1023 elements" in text
    assert "| [20](#step-3) | 1. One pair |" in text  # the step that types stage 2 has typed stage 1 as well
    assert "| at home | 3. " in text
    assert "nox -s lab -- first_kernel --stage 2" in text


def test_what_is_typed_opens_on_a_line_of_its_own(root):
    with_lab(root)
    lab = root / "labs/first_kernel/lab.toml"
    lab.write_text(lab.read_text().replace("In the kernel: `i", "```python\ni = 0\n```\nIn the kernel: `i"))
    assert re.search(r"[*][*]Through [^*\n]+[.][*][*]\n\n```python\ni = 0\n```\n", rendered(root))


def test_a_step_brings_the_stage_that_is_typed_in_it(root):
    with_lab(root)
    course = load_course(root, draft=True)
    steps = as_plain(course, course.maps.sessions["w1"])["steps"]
    stage = steps[2]["stage"]
    assert (stage["number"], stage["title"]["text"]) == (2, "One block")
    assert set(stage["type"]) == {"triton", "cuda", "numpy"}
    assert stage["rescues"][0] == "nox -s lab -- first_kernel --stage 2"
    assert [step["stage"] for step in steps if step is not steps[2]] == [None] * 13


def test_a_lab_of_another_session_is_not_this_ones(root):
    with_lab(root)
    write(root, "docs/w1.py", STUDENT.lstrip())
    (line,) = complaints(root)
    assert line.endswith("lab: docs/w1.py does not have it: write `/// lab | first_kernel` there")


def test_a_lab_of_an_earlier_session_is_typed_again_where_the_page_leads_to_it(root):
    with_lab(root)
    lab = root / "labs/first_kernel/lab.toml"
    (own,) = re.findall(r'^page = "(.*)"$', lab.read_text(), re.MULTILINE)
    lab.write_text(lab.read_text().replace(own, "docs/earlier.py"))
    earlier = "# ---\n# id: earlier\n# title: Earlier\n# ---\n\n# %% [markdown]\n# # Earlier\n#\n"
    write(root, "docs/earlier.py", f"{earlier}# /// lab | first_kernel\n# ///\n")
    page = root / "docs/w1.py"
    page.write_text(STUDENT.lstrip())
    assert any("docs/w1.py does not have it" in line for line in complaints(root))
    page.write_text(f"{page.read_text()}\n# %% [markdown]\n# As [earlier](earlier.py).\n")
    assert not any("does not have it" in line for line in complaints(root))
    write(root, "docs/earlier.py", earlier)
    assert any("docs/w1.py does not have it" in line for line in complaints(root))


def test_a_stage_that_the_lab_has_not(root):
    with_lab(root)
    path = root / "handbook/sessions/w1.toml"
    path.write_text(path.read_text().replace("stage = 2", "stage = 9"))
    (line,) = complaints(root)
    assert "block 2, step 1, stage: is 9, and the lab first_kernel has 4 stages" in line


def two_labs(root):
    """A second lab on a page of its own, of which the session types one stage."""
    with_lab(root)
    second = root / "src/course_kernels/grey"
    second.mkdir()
    shutil.copytree(REPOSITORY / "labs/grey", root / "labs/grey")
    shutil.copy(REPOSITORY / "src/course_kernels/grey/problem.py", second)
    write(
        root,
        "docs/lectures/l2_the_cuda_model.py",
        "# ---\n# id: l2\n# title: L2\n# ---\n\n# %% [markdown]\n# # L2\n",
    )
    path = root / "handbook/sessions/w1.toml"
    text = path.read_text().replace('lab = "first_kernel"', 'lab = ["first_kernel", "grey"]')
    path.write_text(text.replace('title = "Step 2 2"', 'title = "Step 2 2"\nlab = "grey"\nstage = 1'))


def test_a_map_may_have_two_labs_and_a_step_names_its_own(root):
    two_labs(root)
    (line,) = complaints(root)
    assert line.endswith(
        "lab: docs/lectures/l2_the_cuda_model.py does not have it: write `/// lab | grey` there"
    )
    page = root / "docs/lectures/l2_the_cuda_model.py"
    page.write_text(page.read_text() + "#\n# /// lab | grey\n# ///\n")
    assert complaints(root) == []
    text = rendered(root)
    assert "2, one block: [the typing script](#stage-2)" in text
    assert "[the typing script](#grey-stage-1)" in text
    assert "nox -s lab -- grey --stage 1" in text
    assert text.count("## The typing script") == 1
    course = load_course(root, draft=True)
    steps = as_plain(course, course.maps.sessions["w1"])["steps"]
    assert [(step["stage"]["lab"], step["stage"]["number"]) for step in steps[2:4]] == [
        ("first_kernel", 2),
        ("grey", 1),
    ]
    assert steps[2]["stage"]["says"]["triton"][0].startswith("refused on N=1 float32: out of bounds")


def test_the_second_lecture_types_the_first_kernel_with_its_code_and_its_grader(our_course):
    course, pages = our_course
    session = course.maps.sessions["l2"]
    assert session.labs == ("grey", "first_kernel")
    stages = {step["start"]: step["stage"] for step in as_plain(course, session)["steps"] if step["stage"]}
    assert (stages[25]["lab"], stages[25]["number"]) == ("first_kernel", 2)
    assert (stages[37]["lab"], stages[37]["number"]) == ("first_kernel", 4)
    assert all(stages[minute]["lab"] == "grey" for minute in stages if minute >= 60)
    for stage in stages.values():
        assert all(text["html"] for text in stage["type"].values())
        assert all(stage["says"].values())
    text = pages["map_l2"].markdown
    assert 'id="first_kernel-stage-4"' in text
    assert 'id="stage-4"' in text


def test_a_map_says_why_its_lab_has_far_less_time_than_the_lab_says(root):
    with_lab(root)
    path = root / "handbook/sessions/w1.toml"
    path.write_text(path.read_text().replace('lab_time = "Half at home."\n', ""))
    (line,) = complaints(root)
    assert "lab: its stages have 15 minutes here, and the lab first_kernel says 25: say in `lab_time`" in line
    path.write_text(path.read_text().replace('title = "Step 2 2"', 'title = "Step 2 2"\nstage = 4'))
    assert complaints(root) == []  # 25 of 25
    path.write_text(path.read_text().replace('title = "Step 3 1"', 'title = "Step 3 1"\nstage = 4'))
    (line,) = complaints(root)
    assert "lab: its stages have 40 minutes here, and the lab first_kernel says 25: give them less" in line


# --- the road -------------------------------------------------------------------------------------


def test_the_road_stands_on_the_three_pages_of_a_session(root):
    here = '<li class="here"><span aria-current="page" title="W1 · Flash, by hand, you are here"><b>W1</b></span></li>'
    for page in ("map_w1", "w1", "teach_w1"):
        text = rendered(root, page)
        assert text.startswith('<nav class="road" aria-label="You are here: W1 is stop 9 of 14"')
        assert here in text
        assert '<li class="to-come"><span title="W2 · To come, page to come">W2</span></li>' in text


def test_a_stop_is_passed_here_or_to_come(root):
    for name in ("l1", "w2"):
        write(root, f"docs/{name}.py", STUDENT.lstrip().replace("id: w1", f"id: {name}"))
    write(root, "handbook/sessions/l1.toml", "title = 'First & last'\nstudent_page = 'docs/l1.py'\n")
    stops = re.findall(r"<li.*?</li>", rendered(root, "w1"))[:14]
    assert stops[0] == '<li class="passed"><a href="l1.html" title="L1 · First &amp; last">L1</a></li>'
    assert stops[1] == '<li class="to-come"><span title="L2, page to come">L2</span></li>'
    here = '<span aria-current="page" title="W1 · Flash, by hand, you are here"><b>W1</b></span>'
    assert stops[8] == f'<li class="here">{here}</li>'
    assert stops[9] == '<li><a href="w2.html" title="W2 · To come">W2</a></li>'


def test_the_road_has_two_halves_and_counts_on_through_both(root):
    halves = re.findall(r'<div class="half"><p([^>]*)>([^<]+)</p><ol start="(\d+)">', rendered(root, "w1"))
    assert halves == [("", "Make the multiply fast", "1"), (' class="now"', "Make the model fast", "8")]


def test_a_cut_of_one_minute_is_no_minutes():
    cut = next(field for field in fields.FIELDS if field.key == "cut")
    assert fields.labelled(cut.page, 2, 1) == "Late? Cut 2, 1 minute"
    assert fields.labelled(cut.page, 1, 5) == "Late? Cut 1, 5 minutes"


def test_pages_before_the_first_session_are_on_the_road_and_counted():
    course = Road(halves=(("One", ("l1", "w1")), ("Two", ("l2",))))
    first = (("Begin", ""), ("A <house>", "house.html"))

    page = road_html(None, "student_page", course, {}, str, first)

    assert 'aria-label="You are here: at stop 1 of 5"' in page
    halves = re.findall(r'<div class="half"><p([^>]*)>([^<]+)</p><ol start="(\d+)">(.*?)</ol>', page)
    assert [half[:3] for half in halves] == [(' class="now"', "One", "1"), ("", "Two", "5")]
    assert [half[3].count("<li") for half in halves] == [4, 1]
    begin, house = re.findall("<li.*?</li>", page)[:2]
    assert begin == (
        '<li class="here"><span aria-current="page" title="Begin, you are here"><b>1st</b></span></li>'
    )
    assert house == '<li class="passed"><a href="house.html" title="A &lt;house&gt;">1st</a></li>'


def test_the_two_views_know_each_other(root):
    assert '<a href="handbook/w1_map.html">For mentors: the map</a>' in rendered(root, "w1")
    text = rendered(root)
    assert '<a href="../w1.html">What students see</a>' in text
    assert '<a href="w1_chapter.html">The chapter</a>' in text


def test_a_stop_leads_to_the_same_kind_of_page(root):
    write(root, "docs/w2.py", STUDENT.lstrip().replace("id: w1", "id: w2"))
    assert '<a href="w2.html" title="W2 · To come">W2</a>' in rendered(root, "w1")
    assert '<li class="to-come"><span title="W2 · To come, page to come">W2</span></li>' in rendered(root)


def test_other_pages_have_no_road(root):
    write(root, "docs/other.md", "---\nid: other\ntitle: Other\n---\n# Other\n")
    assert "road" not in rendered(root, "other")


# --- plain data -----------------------------------------------------------------------------------


def test_plain_data_says_everything(root):
    with_waits(root, w1_race=12.44)
    change(
        root,
        ("Say 1 1.", "Say *this*, [the grid](docs/w1.py#the-grid): {{ demos.w1_race.wait_s:.2f }}[^key]."),
    )
    course = load_course(root, draft=True)
    data = as_plain(course, course.maps.sessions["w1"])
    json.dumps(data)
    assert data["minutes"] == 180
    assert len(data["steps"]) == 14
    assert data["steps"][0]["say"] == {
        "text": "Say this, the grid: 12.44.",
        "html": 'Say <em>this</em>, <a href="../../w1.html#the-grid">the grid</a>: 12.44.',
    }
    assert data["steps"][3]["start"] == 35
    assert data["steps"][3]["end"] == 45
    assert data["steps"][0]["anchor"] == {
        "label": "The grid",
        "page": "Flash",
        "href": "../../w1.html#the-grid",
    }
    assert data["demos"][0]["wait"] == "12 s on an H200"
    assert data["homework"]["text"] == "Read the next page (page to come)."
    assert 'aria-label="A grid, crossed out."' in data["board"]["svg"]


def test_the_words_of_a_link_may_be_code(root):
    change(root, ("Say 1 1.", "Type [`grid`](docs/w1.py#the-grid)."))
    course = load_course(root, draft=True)
    said = as_plain(course, course.maps.sessions["w1"])["steps"][0]["say"]
    assert said == {
        "text": "Type grid.",
        "html": 'Type <a href="../../w1.html#the-grid"><code>grid</code></a>.',
    }
    assert "[`grid`](../w1.py#the-grid)" in rendered(root)


# --- word for word --------------------------------------------------------------------------------

# Every kind of step, every key of one, what may be left out left out at least once.
RICH = (
    HEAD.replace('about = "The', 'lab = "adding"\nabout = "The')
    + """
[[demo]]
name = "w1_stroll"
title = "The *stroll*"
command = "nvidia-smi --loop 1 --query xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
preflight = "nvidia-smi --loop 1 --query xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
fallback = "docs/w9.py#gone"
[[block]]
from = 0
to = 26
title = "Begin & draw"
[[block.step]]
minutes = 15
kind = "board"
title = "The *grid*"
say = "Say [the grid](docs/w1.py#the-grid), then [the rest](docs/w9.md), {{ demos.w1_race.wait_s:.2f }} s[^key]."
board = "A grid."
fingers = "Draw `it`."
room = "Draw."
anchor = "docs/w1.py#the-mma-call-twice"
feeds = "The lab."
check = {ask = "Why <b>?", answer = "So."}
cut = "All of it."
priority = 2
saves = 15
remote = "Online: a shared sheet. Without seeing it: read aloud."
keep = "The *first* row."
trip = "A trap: {{ demos.nothing }}."
[[block.step]]
minutes = 1
kind = "by hand"
title = "By hand"
say = "Now you."
fingers = "Write a number."
anchor = "docs/w9.py#later"
check = {ask = "And?", answer = "Then.\\n\\nMore."}
protected = true
[[block.step]]
minutes = 10
kind = "live build"
title = "Build"
say = "Type."
fingers = "Type."
stage = 2
check = {ask = "What?", answer = "That."}
cut = "Half."
priority = 1
saves = 10
needs = ["The *grid*"]
[[block]]
from = 26
to = 32
title = "Rest"
[[block.step]]
minutes = 6
kind = "break"
title = "Tea"
fingers = "Save the file."
[[block]]
from = 32
to = 180
title = "End"
[[block.step]]
minutes = 14
kind = "demo"
title = "Race"
say = "Run."
fingers = "Guess."
demo = "w1_race"
stage = 9
check = {ask = "Who?", answer = "They."}
cut = "It."
priority = 3
saves = 3
[[block.step]]
minutes = 5
kind = "break"
title = "Breath"
fingers = "Stand up."
[[block.step]]
minutes = 12
kind = "benchmark"
title = "Stroll"
say = "Walk."
fingers = "Count."
demo = "w1_stroll"
check = {ask = "Long?", answer = "No."}
cut = "It."
priority = 4
saves = 4
[[block.step]]
minutes = 13
kind = "reading"
title = "Read"
say = "Read."
fingers = "Mark."
stage = 3
check = {ask = "Done?", answer = "Yes."}
cut = "It."
priority = 5
saves = 5
"""
)


def adding(folder, doors=("triton", "cuda")):
    """A lab of three stages, whose files are one line each."""
    for door in doors:
        for number, stem in enumerate(("starter", "stage1", "stage2", "stage3")):
            suffix = {"triton": ".py", "cuda": ".cu"}[door]
            write(folder, f"{door}/{stem}{suffix}", f"stage = {number}\nkept = 1\n")
    stages = tuple(
        Stage(
            title=f"Part {n}: a & b",
            text="",
            type={"triton": f"Type {n}.", "cuda": f"```\ncode {n};\n```"},
            prints=dict.fromkeys(doors, f"refused: a | b `c` {n}\n\nnext: try again"),
        )
        for n in (1, 2, 3)
    )
    words = dict.fromkeys(("page", "problem", "task", "not_yours", "time", "beside"), "")
    many = dict.fromkeys(("entry", "allow", "refuse", "tries", "fixed", "hints", "rubric"), ())
    whole = dict.fromkeys(("minutes", "seconds", "magnify", "longest", "at_once", "row_at_once"), 1)
    on_gpu = dict.fromkeys(doors, ("",) * 4)
    by_door = {"doors": dict.fromkeys(doors, "x"), "on_gpu": on_gpu, "answers": dict.fromkeys(doors, "")}
    return Lab(
        folder=folder, name="adding", title="Add *two*", stages=stages, **words, **many, **whole, **by_door
    )


@pytest.fixture
def rich(root):
    """A course with a map that uses all there is."""
    with_waits(root, w1_race=12.44)
    write(root, "handbook/sessions/w1.toml", RICH)
    course = load_course(root, draft=True)
    return course, course.maps.sessions["w1"]


def tools(**changes):
    """What a page lends to a map, each left visible."""
    known = {
        "docs/w1.py#the-grid": "The grid",
        "docs/w1.py#the-race": "The race",
        "docs/w1.py#lab": "The lab",
    }
    known["docs/w1.py#the-mma-call-twice"] = "The [mma] call"
    usual = {
        "say": lambda text: f"‹{text}›" if text else "",
        "plain": visible,
        "slot": lambda text: f"SLOT {text}",
        "fold": lambda css, summary, body: f"FOLD {css} | {summary} | {body}",
        "figure": lambda path, alt: f"FIGURE {path}: {alt}",
        "heading": known.get,
        "measured": frozenset(["w1_race"]),
        "taken": lambda number: " · 11 in 1 run" if number == 1 else "",
        "labs": {},
        "lab_section": lambda lab: "docs/w1.py#lab",
        "source": lambda key: f"SOURCE {key}",
    }
    return session_map.Tools(**usual | changes)


def test_the_map_word_for_word(rich, tmp_path):
    _, session = rich
    lab = adding(tmp_path / "lab")
    whole = session_map.markdown(session, "handbook", tools(labs={"adding": lab})).replace("><", ">\n<")
    same_as_kept("map.md", whole)


def test_the_commands_of_a_preflight_stand_on_lines_of_their_own(rich):
    _, session = rich
    (race, _) = session.demos
    twice = replace(session, demos=(replace(race, preflight=f"{race.command} && {race.command}"),))
    shown = session_map.markdown(twice, "handbook", tools())
    assert "--workload dtype=float32,N=1 &&\nPYTHONPATH=src python -m course_kernels.measure" in shown


def test_the_road_word_for_word(root):
    for name in ("l1", "opening"):
        pages = "".join(f'{view} = "{name}/{view}"\n' for view in VIEWS)
        write(root, f"handbook/sessions/{name}.toml", f'title = "First & {name}"\n{pages}')
    sessions, road = load_sessions(root), read_road(root)
    addresses = {
        page: f"../{page}?a&b" for page in ("l1/map_page", "l1/student_page", "docs/w1.py", "docs/w2.py")
    }
    addresses["opening/student_page"] = "../opening"
    text = "".join(
        f"{name} {view}: {road_html(sessions[name], view, road, sessions, addresses.get)}\n"
        for name, view in (
            ("w1", "student_page"),
            ("w1", "map_page"),
            ("l1", "chapter"),
            ("opening", "map_page"),
        )
    )
    same_as_kept("road.txt", text.replace("><", ">\n<"))


def test_before_the_road_only_the_map_has_one(root):
    for name in ("l1", "opening"):
        pages = "".join(f'{view} = "{name}/{view}"\n' for view in VIEWS)
        write(root, f"handbook/sessions/{name}.toml", f'title = "First"\n{pages}')
    sessions = load_sessions(root)
    found = {
        f"{name}/{view}": place_of(f"{name}/{view}", sessions) for name in ("l1", "opening") for view in VIEWS
    }
    on = {page: (place[0].id, place[1]) for page, place in found.items() if place}
    assert on == {f"l1/{view}": ("l1", view) for view in VIEWS} | {
        "opening/map_page": ("opening", "map_page")
    }
    assert place_of("docs/index.md", sessions) is None


def test_what_a_map_leaves_out_leaves_no_trace(rich, tmp_path):
    """The same map without a lab, then with a lab of one door that no page shows; without homework and ticket."""
    _, session = rich
    full = session_map.markdown(session, "handbook", tools(labs={"adding": adding(tmp_path / "lab")}))
    bare = replace(session, homework="", worklog="", read=(), exit_ticket=(), student_page="", labs=())
    without = session_map.markdown(bare, "handbook", tools())
    for part in (
        "## The typing script", "## The exit ticket", "## Before the next session", "## What to read", "**Stage**"
    ):  # fmt: skip
        assert part in full
        assert part not in without
    # A step without a heading waits for its page, unless there will be none; a break waits for nothing.
    assert full.count(f"**Page** {session_map.TO_COME}") == 1 + 4
    assert without.count(f"**Page** {session_map.TO_COME}") == 1
    alone = session_map.markdown(
        session,
        "handbook",
        tools(lab_section=lambda lab: "", labs={"adding": adding(tmp_path / "one", ["cuda"])}),
    )
    assert "stands on the students' page" not in alone
    assert "Through" not in alone
    same_as_kept("map_script.md", alone.split("## The typing script")[1].split("## What")[0])


def test_a_map_as_plain_data_word_for_word(rich, tmp_path, monkeypatch):
    course, session = rich
    lab = adding(tmp_path / "lab")
    monkeypatch.setattr(Course, "lab", lambda course, name: {"adding": lab}[name])
    minutes = "session,date,start,step,title,planned,actual\nw1,2026-11-02,18:00,1,The grid,15,11.5\n"
    write(course.root, "handbook/sessions/minutes/w1/2026-11-02-1800-w1.csv", minutes)
    data = as_plain(load_course(course.root, draft=True), session)
    lines = []
    for key, value in data.items():
        for i, item in enumerate(value if isinstance(value, list) else [value], 1):
            number = f" {i}" if isinstance(value, list) else ""
            parts = item.items() if key == "steps" else [("", item)]
            lines += [
                f"{key}{number}{name and f' {name}'}: {json.dumps(part, ensure_ascii=False)}"
                for name, part in parts
            ]
    same_as_kept("plain.txt", "\n".join(lines) + "\n")


def test_a_map_whose_lab_or_drawing_is_missing_is_plain_data_too(rich):
    course, session = rich
    (course.root / session.figure).unlink()
    data = as_plain(course, session)
    assert data["board"] == {"alt": "A grid, crossed out.", "svg": ""}
    assert [step["stage"] for step in data["steps"]] == [None] * 8
    assert as_plain(course, replace(session, figure="", chapter="")) == data | {"chapter": None}


# --- the real ones --------------------------------------------------------------------------------


def test_every_session_has_its_map():
    assert list(load_sessions(REPOSITORY)) == list(read_road(REPOSITORY).sessions)


def test_the_maps_of_the_course_have_no_fault(our_course):
    assert [str(c) for c in read_sessions(REPOSITORY)[1]] == []
    report = our_course[0].maps
    assert [str(c) for c in report.complaints] == []


def test_the_page_of_demos_measures_what_the_maps_say():
    (page,) = [page for page in find_pages(REPOSITORY) if page.id == "demos"]
    demos = {d.name: d.command for s in load_sessions(REPOSITORY).values() for d in s.demos}
    measured = session_checks.measured_commands(page)
    assert list(measured) == list(demos)
    for name, command in demos.items():
        assert one_line(measured[name]) == one_line(command)


def commands():
    """Each measurement of a demo and its preflight: its kernels and its workload; loops unrolled."""
    found = []
    for session in load_sessions(REPOSITORY).values():
        for demo in session.demos:
            loop = re.match(r"for (\w+) in (.*?); do (.*); done$", one_line(demo.command))
            turns = (
                [loop[3].replace(f"${loop[1]}", word) for word in loop[2].split()] if loop else [demo.command]
            )
            for turn in turns + demo.preflight.split(" && "):
                _, measured, words = turn.partition("course_kernels.measure ")
                if measured:
                    kernels, _, rest = words.partition(" --workload ")
                    found.append(pytest.param(kernels.split(), rest.split()[0], id=demo.name))
    return found


@pytest.mark.parametrize(("kernels", "workload"), commands())
def test_a_demo_names_kernels_and_sizes_that_there_are(kernels, workload):
    pytest.importorskip("torch")
    from course_kernels.measure.competitor import competitor_named
    from course_kernels.problem import Workload

    size = Workload.parse(workload)
    for kernel in kernels:
        problem = competitor_named(kernel).problem
        assert problem.reads_bytes(size) > 0
        assert problem.flops(size) >= 0
        problem.options(size)


def test_no_record_hangs_on_a_map():
    for path in (REPOSITORY / "records").rglob("*.ipynb"):
        manifest = json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]["manifest"]
        assert not [name for name in manifest if name.startswith("handbook/sessions")], path


def test_a_draft_shows_no_file_from_elsewhere_as_a_board(root):
    write(root, ".git/board_w1.svg", FIGURE)
    change(root, ("docs/assets/figures/board_w1.svg", "docs/../.git/board_w1.svg"))
    course = load_course(root, draft=True)
    assert as_plain(course, course.maps.sessions["w1"])["board"]["svg"] == ""
    assert "<text>board</text>" not in rendered(root)


def test_a_map_of_nobody_is_named(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    assert check_maps.main(["w9", "w1"]) == 2
    assert capsys.readouterr().err == "no session w9; there are w1, w2\n"
