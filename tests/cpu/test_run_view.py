import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from word_for_word import same_as_kept

from course_site.sessions.run_view import FOLDER, SOURCES, before_the_answer, embedded, run_files, run_page

ROOT = Path(__file__).parents[2]
FRAME = (ROOT / FOLDER / "run.html").read_text(encoding="utf-8")
NASTY = '</script><script>alert("x")</script> & <b title="y">'


def words(text):
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text, "html": escaped}


def step(number, block, minutes, **changes):
    said = {
        name: words(f"{name} of {number}") for name in ("title", "say", "board", "fingers", "cut", "trip")
    } | dict.fromkeys(("remote", "keep"))
    usual = {
        "number": number,
        "block": block,
        "minutes": minutes,
        "start": 0,
        "kind": "by hand",
        "check": {"ask": words(f"ask of {number}"), "answer": words(f"answer of {number}")},
        "room": None,
        "fingers_source": f"Draw step {number}. There stands 42.",
        "priority": number,
        "saves": 2,
        "protected": False,
        "cuts": [],
        "taken": None,
        "anchor": {"label": "A heading", "href": "../../workshops/w1.html#a-heading"},
        "demo": None,
        "stage": None,
    }
    return said | usual | changes


def session(**changes):
    usual = {
        "id": "w1",
        "stop": "W1",
        "title": "A session",
        "about": words("What it is about."),
        "artifact": words("a kernel"),
        "map": {"label": "The map", "href": "../04_the_pivot/w1_map.html"},
        "student": {"label": "What students see", "href": None},
        "chapter": None,
        "prepare": [words("Chalk.")],
        "demos": [],
        "board": {"svg": "", "alt": ""},
        "questions": [],
        "exit_ticket": [],
        "homework": None,
        "worklog": None,
        "read": [],
        "blocks": [
            {"number": 1, "from": 0, "to": 20, "title": words("First"), "steps": [1, 2]},
            {"number": 2, "from": 20, "to": 30, "title": words("Second"), "steps": [3]},
        ],
        "steps": [step(1, 1, 8), step(2, 1, 12), step(3, 2, 10)],
    }
    asked = usual | changes
    return {"name": " · ".join(filter(None, (asked["stop"], asked["title"])))} | asked


def page_of(session):
    return run_page(session, FRAME)


class Scripts(HTMLParser):
    """What a browser makes of the page: its scripts, and its elements' names."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self._inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data


def data_of(page):
    return json.loads(next(filter(None, Scripts(page).scripts)))


def test_every_step_stands_in_the_page_in_order():
    page = page_of(session())

    assert re.findall(r'id="step-(\d+)"', page) == ["1", "2", "3"]
    for number in (1, 2, 3):
        for part in ("title", "say", "board", "fingers", "cut", "trip", "ask", "answer"):
            assert f"{part} of {number}" in page
    assert [s["minutes"] for s in data_of(page)["steps"]] == [8, 12, 10]
    assert [s["block"] for s in data_of(page)["steps"]] == ["First", "First", "Second"]


def test_a_text_that_looks_like_code_stays_text():
    plain = len(Scripts(page_of(session())).scripts)
    steps = [step(1, 1, 8, title=words(NASTY), room=words(NASTY)), step(2, 1, 12), step(3, 2, 10)]
    page = page_of(session(title=NASTY, steps=steps))

    assert len(Scripts(page).scripts) == plain
    assert [script for script in Scripts(page).scripts if "alert(" in script] == [
        next(filter(None, Scripts(page).scripts))
    ]
    assert data_of(page)["steps"][0]["title"] == NASTY
    assert data_of(page)["title"] == f"W1 · {NASTY}"


def test_embedded_json_closes_no_element_and_comes_back_whole():
    data = {"text": NASTY + "<!-- \u2028 'quoted' \\ end"}

    actual = embedded(data)

    assert "<" not in actual
    assert json.loads(actual) == data


def test_a_text_with_a_percent_sign_is_no_place_to_fill():
    page = page_of(session(title="50 %title% of peak"))

    assert "50 %title% of peak" in page


def test_a_page_asks_for_files_beside_it_only():
    page = page_of(session())

    assert set(re.findall(r'<(?:script|link)[^>]*(?:src|href)="([^"]+)"', page)) == {
        "../../assets/favicon.svg",
        "../../assets/js/storage.js",
        "../../assets/js/edition.js",
        "../../assets/vendor/fonts/source-serif-4-latin-wght-normal.woff2",
        "../../assets/vendor/fonts/source-serif-4-latin-wght-italic.woff2",
        "../../assets/vendor/fonts/source-sans-3-latin-wght-normal.woff2",
        "../../assets/js/words.js",
        "run.css",
        "run.js",
        "calendar.js",
    }
    for name in ("run.js", "calendar.js"):
        script = (ROOT / FOLDER / name).read_text(encoding="utf-8")
        assert "fetch(" not in script
        assert "import " not in script


def test_the_script_knows_which_cuts_to_propose_at_each_step_and_what_they_save():
    steps = [
        step(1, 1, 8, cuts=[3, 2]),
        step(2, 1, 12, cuts=[3], saves=12),
        step(3, 2, 10, cut=None, saves=0),
    ]

    data = data_of(page_of(session(steps=steps)))["steps"]

    assert [s["cuts"] for s in data] == [[2, 1], [2], []]
    assert [s["saves"] for s in data] == [2, 12, 0]


def test_the_heart_says_so_and_a_step_what_it_keeps_and_what_they_do_who_are_not_there():
    steps = [
        step(1, 1, 8, cut=None, protected=True),
        step(2, 1, 12, keep=words("The slips."), saves=1),
        step(3, 2, 10, remote=words("Online: a shared sheet.")),
    ]
    page = page_of(session(steps=steps))

    assert (
        page.count(
            '<div class="keep"><dt>Keep</dt><dd>All of it: this is the heart of the session.</dd></div>'
        )
        == 1
    )
    assert '<div class="keep"><dt>Keep</dt><dd>The slips.</dd></div>' in page
    assert "<dt>If late, saves 1 min</dt><dd>cut of 2</dd>" in page
    assert '<div class="remote"><dt>From afar</dt><dd>Online: a shared sheet.</dd></div>' in page


def test_a_page_to_come_is_not_linked():
    page = page_of(session(steps=[step(1, 1, 8, anchor={"label": "page to come", "href": None})]))

    assert "None" not in page
    assert "page to come" not in page


def test_a_demo_brings_its_command_its_wait_and_its_rescue():
    demo = {
        "title": words("The race"),
        "command": "python -m race > out && echo done",
        "preflight": "nvidia-smi",
        "wait": "12 s",
        "fallback": {"label": "The result", "href": "../../workshops/w1.html#result"},
    }
    page = page_of(session(demos=[demo], steps=[step(1, 1, 8, demo=demo)]))

    typed = page.replace('<span class="option">', "").replace("</span>", "")
    assert "<code>python -m race &gt; out &amp;&amp; echo done</code>" in typed
    assert "You wait about 12 s." in page
    assert '<a href="../../workshops/w1.html#result">the recorded result</a>' in page
    assert "<code>nvidia-smi</code>" in page


def test_an_option_of_a_command_is_not_broken_in_two():
    about = {"text": "", "html": "Type <code>nox -s lab -- name --stage 3</code> - now"}

    page = page_of(session(about=about))

    assert re.findall(r'<span class="option">(.*?)</span>', page)[:3] == ["-s", "--", "--stage"]
    assert "</code> - now" in page


def test_the_views_of_all_sessions_are_linked_to_each_other():
    files = run_files([session(), session(id="l1", stop="L1"), session(id="opening", stop="")], ROOT)

    links = re.search(r"Other sessions: (.*)</p>", files[f"{FOLDER}/w1.html"])[1]

    assert re.findall(r'href="([^"]+)"', links) == ["l1.html", "opening.html"]
    assert re.findall(r">([^<]+)</a>", links) == ["L1", "A session"]


def test_minutes_of_earlier_runs_are_shown():
    page = page_of(session(steps=[step(1, 1, 25, taken={"median": 34.0, "runs": 3})]))

    assert "Planned 25, median of 3 runs 34." in page


@pytest.mark.parametrize(
    ("fingers", "shown"),
    [
        ("Draw four boxes. There stands 12 four times.", "Draw four boxes."),
        ("Slip two: the boxes. In them m = 3, l = {{ a.b }}.", "Slip two: the boxes."),
        (
            "Slip one: a guess, then 4096², in bytes: {{ a.b:.1f }} million.",
            "Slip one: a guess, then 4096², in bytes.",
        ),
        ("Type the loop; the grader says *right*.", "Type the loop."),
        ("{{ a.b }} on the sheet.", ""),
        ("Save the file, and stand up.", "Save the file, and stand up."),
        ("Open the file `a.py`", "Open the file `a.py`"),
    ],
)
def test_the_room_sees_the_fingers_without_the_answer(fingers, shown):
    assert before_the_answer(fingers) == shown


def test_the_map_may_say_what_the_room_sees():
    steps = [step(1, 1, 8), step(2, 1, 12, room=words("Draw the boxes.")), step(3, 2, 10)]

    rooms = [s["room"] for s in data_of(page_of(session(steps=steps)))["steps"]]

    assert rooms == ["Draw step 1.", "Draw the boxes.", "Draw step 3."]


def version_of(files):
    return re.search(r'KEPT_AS \+ "(\w+)"', files[f"{FOLDER}/service_worker.js"])[1]


def test_the_version_changes_when_a_word_does_and_only_then():
    first, again = run_files([session()], ROOT), run_files([session()], ROOT)
    other = run_files([session(about=words("Another."))], ROOT)

    assert version_of(first) == version_of(again)
    assert version_of(first) != version_of(other)


def test_the_service_worker_keeps_every_file_of_the_views():
    files = run_files([session(), session(id="l1")], ROOT)
    worker = files[f"{FOLDER}/service_worker.js"]

    kept = json.loads(re.search(r"const FILES = (\[.*?\]);", worker, re.DOTALL)[1])

    assert {"w1.html", "l1.html", "run.css", "run.js", "calendar.js"} <= set(kept)
    assert "service_worker.js" not in kept
    for name in kept:
        assert (
            name in {n.removeprefix(f"{FOLDER}/") for n in files}
            or (ROOT / "docs" / name.removeprefix("../../")).is_file()
        )
    style = files[f"{FOLDER}/run.css"]
    assert set(re.findall(r"url\(([^)]+)\)", style)) <= set(kept)


def test_the_sources_lie_where_their_copies_do():
    files = run_files([session()], ROOT)

    assert set(files) == {f"{FOLDER}/w1.html", *(f"{FOLDER}/{name}" for name in SOURCES)}


def rich_session():
    """Everything a session may have; in the later steps and demos everything that may be left out is."""
    result = {"label": "The <result>", "href": "../w1.html#a&b"}
    race = {
        "title": words("The race"),
        "command": "race --fast > out",
        "preflight": "nvidia-smi && true",
        "wait": "12 s",
        "fallback": result,
    }
    stroll = race | {"title": words("The stroll"), "wait": None, "fallback": {"label": "", "href": None}}
    stage = {
        "lab": "x",
        "says": {"triton": ["refused on <N>"], "cuda": ["right", "more"]},
        "number": 2,
        "title": words("One block"),
        "type": {"triton": words("Type a."), "cuda": words("Type b.")},
        "rescues": ["nox -s lab -- x --stage 2", "nox -s lab -- x --door cuda --stage 2"],
    }
    alone = stage | {"number": 3, "type": {"triton": words("Type c.")}, "rescues": ["nox -s lab"]}
    bare = dict.fromkeys(("say", "board", "cut", "trip", "check", "anchor"))
    heart = {"remote": words("At home."), "keep": words("This."), "protected": True, "cuts": [2]}
    steps = [
        step(1, 1, 8, demo=race, stage=stage, anchor=result, taken={"median": 9.5, "runs": 1}, **heart),
        step(
            2, 1, 12, start=8, kind="live build", demo=stroll, stage=alone, taken={"median": 11.0, "runs": 2}
        ),
        step(3, 2, 10, start=20, kind="break", fingers=words("They rest."), **bare),
    ]
    return session(
        title='"Fast" & right',
        steps=steps,
        demos=[race, stroll],
        board={"svg": "<svg></svg>", "alt": "A board"},
        questions=[{"ask": words("Why?"), "answer": words("So.")}],
        exit_ticket=[{"ask": words("Who?"), "answer": words("They.")}],
        student={"label": "What <they> see", "href": "../../w1.html"},
        chapter={"label": "The chapter", "href": None},
        homework=words("Read on."),
        worklog=words("Worklog: a line."),
        read=[
            {"source": {"label": "A <book>", "href": "https://example.org/a?b&c"}, "why": words("For all.")}
        ],
    )


def test_the_page_word_for_word():
    names = "name stop title about artifact data calendar links prepare preflight blocks board questions exit home"
    names += " others"
    frame = "".join(f"{name}: %{name}%\n" for name in names.split())
    others = [rich_session(), session(id="l1", stop="L1", title='"One"'), session(id="opening", stop="")]
    page = run_page(rich_session(), frame, others)
    same_as_kept("run_view.txt", page.replace("><", ">\n<").replace("},{", "},\n{"))


def test_what_is_not_there_leaves_no_trace():
    frame = "%links%|%preflight%|%board%|%questions%|%exit%|%home%|%others%"
    assert run_page(session(map=None), frame) == "|" * 6


def test_letters_that_are_not_english_stand_in_the_data_as_they_are():
    assert embedded({"text": "µs · “ü”"}) == '{"text":"µs · “ü”"}'


def test_the_version_is_short():
    assert re.fullmatch("[0-9a-f]{16}", version_of(run_files([session()], ROOT)))
