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
        ("say", "board", "fingers", "cut", "keep", "remote", "trip", "check", "demo", "stage", "exempt")
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
        step(3, 25, 15, demo={"name": "a_race"}, check={"ask": words("Why?"), "answer": words("Because.")}),
        step(
            4,
            40,
            15,
            kind="demo",
            exempt=words("they present"),
            trip=words("Panic"),
            protected=True,
            remote=words("Online: a call"),
            stage={"lab": "grey", "number": 2},
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
        "demos": [{"name": "a_race", "preflight": "nvidia-smi && true"}],
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
<td>draw <span class="late">✂3, 4 min: the rest</span></td></tr>
<tr class="break"><td class="clock"><b data-minute="15">15</b> <span>10 min</span> <i>break</i></td>\
<td><b>2 Tea?</b> </td><td>Save the file</td><td></td></tr>
</tbody><tbody>\
<tr class="step"><td class="clock"><b data-minute="25">25</b> <span>15 min</span> <i>board</i></td>\
<td><b>3 Step 3.</b>  <b>Demo: a_race.</b></td><td></td><td></td></tr>
<tr class="step"><td class="clock"><b data-minute="40">40</b> <span>15 min</span> <i>demo</i></td>\
<td><b>4 Step 4.</b> </td><td>they present <b>Lab grey, stage 2.</b></td>\
<td> <span class="late">Keep: the heart, no cut.</span></td></tr>
</tbody>
<svg></svg>
<ol><li value=3>Why? <em>Because.</em></li></ol>
<h3>Where they trip</h3><ol><li value=4>Panic</li></ol>
<h3>From afar, or without seeing it</h3><ol><li value=4>Online: a call</li></ol>
<h3>Exit ticket</h3><ul><li>q <em>a</em></li></ul>
<h3>Before the door opens</h3><ul><li>Bring paper</li>\
<li><b>a_race</b>, the day before: <code>nvidia-smi &amp;&amp; true</code></li></ul>
"""


def test_the_sheet_word_for_word(session):
    session["steps"][0]["board"] = words("draw")
    session["steps"][1]["title"] = words("Tea?")
    names = ("name", "about", "artifact", "rows", "board", "checks", "trips", "remote", "exit", "before")
    frame = "%id% %kind%\n" + "".join(f"%{name}%\n" for name in names)
    assert sheet(session, frame) == WHOLE
    empty = session | {"steps": [], "exit_ticket": [], "blocks": []}
    assert sheet(empty, "%rows%%trips%%remote%%exit%") == ""


def test_no_text_breaks_the_page(session):
    page = sheet(session, FRAME)
    assert "a &lt; b &amp; &lt;/script&gt;" in page
    assert "nvidia-smi &amp;&amp; true" in page
    assert "<title>W1 · Fast &amp; right: the sheet for the hand</title>" in page


def test_its_files_lie_beside_the_run_views(session, tmp_path):
    folder = tmp_path / "handbook" / "run"
    folder.mkdir(parents=True)
    for name in ("sheet.css", "sheet.js", "sheet.html"):
        (folder / name).write_text(name)
    files = sheet_files([session], tmp_path)
    assert sorted(files) == ["handbook/run/sheet.css", "handbook/run/sheet.js", "handbook/run/w1_print.html"]
