"""The printed sheet: every step on it, nothing that a text could break."""

import html
import re
from pathlib import Path

import pytest

from course_site.sessions.print_sheet import sheet, sheet_files

FRAME = (Path(__file__).parents[2] / "handbook" / "run" / "sheet.html").read_text(encoding="utf-8")


def words(text):
    return {"text": text, "html": html.escape(text)}


def step(number, start, minutes, **more):
    empty = dict.fromkeys(
        ("say", "board", "fingers", "cut", "keep", "remote", "trip", "check", "demo", "stage")
    )
    empty |= {"priority": 0, "saves": 0, "protected": False}
    own = {
        "number": number,
        "start": start,
        "minutes": minutes,
        "kind": "board",
        "title": words(f"Step {number}"),
    }
    return {**empty, **own, **more}


STAGE = {
    "number": 2,
    "title": words("Add & store"),
    "lab": "adding",
    "says": {"triton": ["refused: 3 < 4; more"], "cuda": ["compiled"]},
    "rescues": ["nox -s lab -- adding --stage 2", "nox -s lab -- adding --door cuda --stage 2"],
}
RACE = {
    "name": "a_race",
    "title": words("A & B"),
    "command": "race a && race b",
    "preflight": "nvidia-smi && true",
    "wait": "9 s",
    "fallback": {"label": "The <table>", "page": "A <page>", "href": "x.html"},
}


@pytest.fixture
def session():
    steps = [
        step(
            1,
            0,
            15,
            say=words("a < b & </script>"),
            fingers=words("Slip one"),
            cut=words("the rest"),
            priority=3,
            saves=4,
        ),
        step(2, 15, 10, kind="break", fingers=words("Save the file")),
        step(
            3,
            25,
            15,
            demo={"name": "a_race"},
            check={"ask": words("Why?"), "answer": words("Because.")},
            stage=STAGE,
        ),
        step(
            4,
            40,
            15,
            kind="demo",
            fingers=words("they present"),
            trip=words("Panic"),
            protected=True,
            remote=words("Online: a call"),
        ),
    ]
    return {
        "id": "w1",
        "stop": "W1",
        "title": "Fast & right",
        "name": "W1 · Fast & right",
        "kind": "workshop",
        "about": words("about"),
        "artifact": words("artifact"),
        "board": {"svg": "<svg></svg>"},
        "blocks": [{"steps": [1, 2]}, {"steps": [3, 4]}],
        "steps": steps,
        "exit_ticket": [{"ask": words("q"), "answer": words("a")}],
        "questions": [{"ask": words("Why not?"), "answer": words("Try.")}],
        "demos": [RACE],
        "prepare": [words("Bring paper")],
    }


def test_every_step_stands_on_it_with_its_minute(session):
    page = sheet(session, FRAME)
    assert re.findall(r'data-minute="(\d+)"', page) == ["0", "15", "25", "40"]
    for text in ("Slip one", "the rest", "Save the file", "they present", "Panic", "Because.", "Bring paper"):
        assert text in page
    assert "Demo: a_race." in page
    assert '<tr class="break">' in page


WHOLE = """\
w1 workshop
W1 · Fast &amp; right
about
artifact
<tbody>\
<tr class="step"><td class="clock"><b data-minute="0">0</b> <span>15 min</span> <i>board</i></td>\
<td><b>1 Step 1.</b> a &lt; b &amp; &lt;/script&gt;</td><td>Slip one</td>\
<td>draw <span class="late">✂3 wins 4 min: the rest</span></td></tr>
<tr class="break"><td class="clock"><b data-minute="15">15</b> <span>10 min</span> <i>break</i></td>\
<td><b>2 Tea?</b> </td><td>Save the file</td><td></td></tr>
</tbody><tbody>\
<tr class="step"><td class="clock"><b data-minute="25">25</b> <span>15 min</span> <i>board</i></td>\
<td><b>3 Step 3.</b>  <b>Demo: a_race.</b></td><td> <b>Lab adding, stage 2.</b></td><td></td></tr>
<tr class="step"><td class="clock"><b data-minute="40">40</b> <span>15 min</span> <i>demo</i></td>\
<td><b>4 Step 4.</b> </td><td>they present</td>\
<td> <span class="late">Keep: the heart, no cut.</span></td></tr>
</tbody>
<svg></svg>
<h3>What you type</h3><ul><li><b>a_race</b> A &amp; B: <code>race a &amp;&amp; race b</code> You wait about 9 s. \
If it fails, the numbers: on the site <em>A &lt;page&gt;</em>, <em>The &lt;table&gt;</em>.</li></ul>
<ol><li value=3>Why? <em>Because.</em></li></ol>
<h3>What the grader says after a stage</h3><ol><li value=3>Add &amp; store: <em>refused: 3 &lt; 4</em></li></ol>\
<p>Fell behind? <code>nox <span class="option">-s</span> lab <span class="option">--</span> adding \
<span class="option">--stage</span> K</code> writes the file as it is after stage K.</p>
<h3>Where they trip</h3><ol><li value=4>Panic</li></ol>\
<h3>From afar, or without seeing it</h3><ol><li value=4>Online: a call</li></ol>
<h3>Likely questions</h3><ul><li>Why not? <em>Try.</em></li></ul>
<h3>Exit ticket</h3><ul><li>q <em>a</em></li></ul>
<h3>Before the door opens</h3><ul><li>Bring paper</li></ul>
"""


def test_the_sheet_word_for_word(session):
    session["steps"][0]["board"] = words("draw")
    session["steps"][1]["title"] = words("Tea?")
    names = ("name", "about", "artifact", "rows", "board", "demos", "checks", "stages")
    names += ("below", "questions", "exit", "before")
    frame = "%id% %kind%\n" + "".join(f"%{name}%\n" for name in names)
    assert sheet(session, frame) == WHOLE
    empty = session | {"steps": [], "exit_ticket": [], "blocks": [], "questions": [], "demos": []}
    assert sheet(empty, "%rows%%below%%exit%%stages%%questions%%demos%") == ""
    unmeasured = session | {"demos": [RACE | {"wait": None}]}
    assert "You wait" not in sheet(unmeasured, "%demos%")


def test_no_text_breaks_the_page(session):
    page = sheet(session, FRAME)
    assert "a &lt; b &amp; &lt;/script&gt;" in page
    assert "race a &amp;&amp; race b" in page
    assert "<title>W1 · Fast &amp; right: the sheet for the hand</title>" in page


def test_its_files_lie_beside_the_run_views(session, tmp_path):
    folder = tmp_path / "handbook" / "run"
    folder.mkdir(parents=True)
    for name in ("sheet.css", "sheet.js", "sheet.html"):
        (folder / name).write_text(name)
    files = sheet_files([session], tmp_path)
    assert sorted(files) == ["handbook/run/sheet.css", "handbook/run/sheet.js", "handbook/run/w1_print.html"]
