"""What an answer says is worked out, of exercises, maps and sheets; another number, word or code is refused."""

import dataclasses
import re
from pathlib import Path

import pytest

from course_site.lint.answer_words import faults_of
from course_site.pages.blocks import parse, spoken, walk_blocks
from course_site.pages.page import read_page
from course_site.sessions.handouts import read_handouts, worked_out
from course_site.sessions.session import load_sessions
from course_site.sessions.worked_answers import module_of, of_board, of_exercise, of_map, of_sheet

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = load_sessions(ROOT)
BESIDE = sorted(path.stem for path in (ROOT / "handbook" / "handouts" / "_worked_out").glob("*.py"))


@pytest.fixture(scope="module")
def exercises(our_course):
    """Every exercise of the course: its module, question and answer, by page and title."""
    pages = our_course[0].pages
    return {
        (page.id, block.argument): (
            module_of(page.path.as_posix(), page.id, SESSIONS),
            spoken(block.body),
            spoken(block.parts["answer"]),
        )
        for page in pages
        for cell in page.cells
        if cell.kind != "code" and "/// exercise" in cell.source
        for block in walk_blocks(parse(cell.source))
        if block.kind == "exercise"
    }


def of(exercises, page, title, right="", wrong=""):
    """What is said of an exercise with one piece of its answer exchanged."""
    module, question, answer = exercises[page, title]
    assert right in answer, answer
    return list(of_exercise(ROOT, module, title, question, answer.replace(right, wrong, 1)))


@pytest.mark.parametrize(
    ("page", "title", "right", "wrong"),
    [
        # in words
        ("l3", "Other people's boxes", "(b) Five", "(b) Six"),
        ("l3", "A block of 1024", "Ten steps and", "Nine steps and"),
        ("l5", "Which of these cost an extra tick?", "(b) and (c)", "(b) and (d)"),
        ("l2", "Which of these splits a warp?", "(b) splits none", "(b) splits every"),
        ("l2", "What may be captured?", "(b) no", "(b) yes"),
        ("l5", "Sixteen bytes need an address", "No:", "Yes:"),
        ("l4", "Which tile?", "(c) The register", "(c) The block"),
        ("w4", "One medicine each", "| C | fusion", "| C | pages"),
        # in code
        ("triton", "Turn a list round", "x_ptr + N - 1 - i", "x_ptr + N - i"),
        ("triton", "Turn a list round", "mask = i < N", "mask = i <= N"),
        ("w4", "37 tokens, three pages", "t % PAGE]", "t // PAGE]"),
        ("w4", "Four more lines", "tl.sum(s * s) / N", "tl.sum(s * s) / BLOCK"),
        ("w1", "A window", "col <= row - W", "col < row - W"),
        ("w1", "A window", "max(0, i - W + 1)", "max(0, i - W - tile)"),
        ("c", "Blocks, rounded up", "`-(-N // 256)`", "`-(N // 256)`"),
        ("teach_w3", "Fill it in yourself first", "l * repair + tl.sum(p, 1)", "l + tl.sum(p, 1)"),
        # as a list of numbers
        ("w4", "Lay the slips", "4 4 4 4 4 3 2 2 2", "4 4 4 4 4 3 2 2 1"),
        ("w4", "Before a line is typed", "1 + 0, 1 + 1, 1 + 1", "1 + 1, 1 + 0, 1 + 1"),
        ("l4", "And at 1000?", "0, 8, 16 and 24", "0, 8, 16 and 28"),
        ("engine", "A queue of your own", "50, 50, 10, 10", "50, 10, 50, 10"),
        # a number
        ("l2", "Find the thread", "block (31, 74)", "block (74, 31)"),
        ("l2", "How many cooks?", "about 993", "about 939"),
        ("l8", "The kitchen's bill", "17.2 GB", "12.7 GB"),
        ("one_token", "Without a cache", "1099", "1100"),
    ],
)  # fmt: skip
def test_an_answer_that_was_not_worked_out_is_refused_in_one_line(exercises, page, title, right, wrong):
    (said,) = of(exercises, page, title, right, wrong)
    assert title in said
    assert "handbook/handouts/_worked_out/" in said
    assert "\n" not in said.replace("\\n", "")


def test_todays_exercises_are_worked_out(exercises):
    assert [said for page, title in exercises for said in of(exercises, page, title)] == []


def test_nothing_is_worked_out_for_what_is_gone(exercises):
    asked = {(module, title) for (_, title), (module, *_) in exercises.items()}
    kept = {(name, title) for name in BESIDE for title in worked_out(ROOT, name).get("ANSWERS", {})}
    steps = {(session.id, step.title) for session in SESSIONS.values() for step in session.steps()}
    named = {
        (name, title)
        for name in BESIDE
        for of_steps in ("BOARDS", "CHECK_ANSWERS")
        for title in worked_out(ROOT, name).get(of_steps, {})
    }
    assert kept <= asked
    assert named <= steps


def test_of_every_answer_the_last_number_is_held(exercises):
    """Changed in its last digit it is refused, or the sums of the page refuse it."""
    tried, passed = 0, []
    for (page, title), (_, _, answer) in exercises.items():
        prose = re.sub(
            r"\{\{.*?\}\}|\]\(.*?\)|`.*?`|\[\^.*?\]|<.*?>", lambda m: "_" * len(m[0]), answer, flags=re.DOTALL
        )
        numbers = list(re.finditer(r"(?<![\w.=] )(?<![\w.])\d+(?![\w.]|\. |, )", prose))
        if not numbers:
            continue
        at = numbers[-1].end() - 1
        changed = f"{answer[:at]}{(int(answer[at]) + 1) % 10}{answer[at + 1 :]}"
        tried += 1
        if not of(exercises, page, title, answer, changed):
            passed.append((page, title, numbers[-1][0]))
    assert tried > 50
    assert len(passed) <= tried // 12, passed


@pytest.mark.parametrize("name", SESSIONS)
def test_todays_maps_are_worked_out(name):
    assert [*of_map(ROOT, SESSIONS[name]), *of_board(ROOT, SESSIONS[name])] == []


def with_step(name, title, **texts):
    """A session in which one step says other words; `check` is its answer."""
    session = SESSIONS[name]

    def changed(step):
        if step.title != title:
            return step
        check = step.check and dataclasses.replace(step.check, answer=texts.get("check", step.check.answer))
        return dataclasses.replace(
            step, texts={**step.texts, **{k: v for k, v in texts.items() if k != "check"}}, check=check
        )

    blocks = [dataclasses.replace(b, steps=tuple(map(changed, b.steps))) for b in session.blocks]
    return dataclasses.replace(session, blocks=tuple(blocks))


@pytest.mark.parametrize(
    ("name", "title", "key", "right", "wrong"),
    [
        # a board
        ("l3", "Queue at the windows", "board", "1, 2, 8, 32, and 33", "1, 2, 16, 32, and 33"),
        ("l3", "Boxes of eight", "board", "4, 8, 32, 32", "4, 8, 16, 32"),
        ("w1", "Two arrows, two lines", "fingers", "N = 40", "N = 48"),
        ("w6", "A decode, weighed again", "board", "H100 295", "H100 259"),
        # a walk
        ("l3", "The treasure hunt", "fingers", "0 5 2 7 1 6 3 4", "0 5 2 7 1 3 6 4"),
        ("w4", "A table reserved, or a page at a time", "fingers", "0 4 9 1 3 8 6", "0 4 9 1 3 6 8"),
        ("w2", "Two strips that slide", "fingers", "36, 21, 16", "36, 22, 16"),
        ("w2", "Eleven rungs of somebody's evenings", "fingers", "F C, C, W,", "F C, W, C,"),
        # a check
        ("l2", "Ten numbers, tables of four", "check", "513", "531"),
        ("w5", "All there is in four bits", "check", "To 6", "To 4"),
        ("l6", "You are here: at the wall", "check", "No.", "Yes."),
        ("l5", "Three numbers before any code", "check", "128, 72 and 16", "128, 16 and 72"),
    ],
)  # fmt: skip
def test_another_board_walk_or_check_is_refused(name, title, key, right, wrong):
    step = next(step for step in SESSIONS[name].steps() if step.title == title)
    text = step.check.answer if key == "check" else step[key]
    assert right in text, text
    ((place, said),) = of_map(ROOT, with_step(name, title, **{key: text.replace(right, wrong)}))
    assert step.where in place
    assert f"_worked_out/{name}.py" in said


@pytest.mark.parametrize(
    ("name", "i", "right", "wrong"),
    [("l1", 1, "0.125", "0.25"), ("l3", 0, "a quarter", "a half"), ("w1", 0, "1.27", "1.72"), ("l8", 2, "No.", "Yes.")],
)  # fmt: skip
def test_another_exit_answer_is_refused(name, i, right, wrong):
    session, pair = SESSIONS[name], SESSIONS[name].exit_ticket[i]
    assert right in pair.answer
    tickets = list(session.exit_ticket)
    tickets[i] = dataclasses.replace(pair, answer=pair.answer.replace(right, wrong))
    ((place, _),) = of_map(ROOT, dataclasses.replace(session, exit_ticket=tuple(tickets)))
    assert place == f"exit_ticket {i + 1}, answer"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("l3", "4, 8, 32 and 32 boxes", "4, 8, 16 and 32 boxes"), ("l5", "128, 72 and 16", "128, 16 and 72")],
)
def test_a_drawn_board_shows_what_the_steps_put_there(name, right, wrong):
    session = SESSIONS[name]
    assert right in session.alt
    ((place, said),) = of_board(ROOT, dataclasses.replace(session, alt=session.alt.replace(right, wrong)))
    assert place == "board, alt"
    assert f"_worked_out/{name}.py" in said


@pytest.mark.parametrize("name", SESSIONS)
def test_todays_sheets_are_worked_out(name):
    handouts = read_handouts(ROOT, name)
    assert [said for sheet in handouts.sheets for said in of_sheet(handouts, sheet, name)] == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("l3", "[[= 33]]", "[[= 34]]"),
        ("l6", '"[[23]]"', '"[[32]]"'),
        ("w4", "[[80]]", "[[88]]"),
        ("l2", "[[= 80 * 12]]", "[[= 80 * 13]]"),
    ],
)  # fmt: skip
def test_another_blank_is_refused(tmp_path, name, right, wrong):
    folder = tmp_path / "handbook" / "handouts"
    folder.mkdir(parents=True)
    (folder / "_worked_out").symlink_to(ROOT / "handbook" / "handouts" / "_worked_out")
    text = (ROOT / "handbook" / "handouts" / f"{name}.toml").read_text()
    assert right in text
    (folder / f"{name}.toml").write_text(text.replace(right, wrong, 1))
    handouts = read_handouts(tmp_path, name)
    (said,) = (said for sheet in handouts.sheets for said in of_sheet(handouts, sheet, name))
    assert said.startswith("sheet ")


@pytest.mark.parametrize(
    ("question", "answer", "worked"),
    [
        ("How many?", "About 993.", 992.97),
        ("How many?", "134 million.", 8192 * 16384),
        ("Half of four?", "Two, since 4 / 2 = 2.", 2),
        ("Is it 7?", "(a) yes. (b) no.", (True, False)),
        ("Which share?", "A third.", 1 / 3),
        ("Which one?", "The third.", 3),
        ("In a list: 3, 4, 5?", "3, 4, 5.", None),
        ("Why?", "Because it waits for bytes.", None),
    ],
)
def test_what_is_said_as_it_was_worked_out_passes(question, answer, worked):
    assert list(faults_of(question, answer, worked)) == []


@pytest.mark.parametrize(
    ("question", "answer", "worked", "said"),
    [
        ("How many?", "About 993.", None, "nothing works out '993'"),
        ("How many?", "About 993.", 939, "says '993', and 939 is worked out there"),
        ("12 or 13?", "12.", 13, "ends, and 13 is worked out there"),
        ("In a list: 3, 4, 5?", "5, 4, 3.", None, "nothing works out '5'"),
        ("Which?", "(a) one. (b) the other.", None, "nothing works out its parts"),
        ("Which?", "The other: 3.", ("the one", 3), "does not say 'the one'"),
        ("What?", "`x + 1`", None, "nothing works out 'x + 1'"),
        ("How many?", "3, and 4.", 3, "says '4' after all that is worked out"),
    ],
)
def test_what_is_said_otherwise_is_told_in_words(question, answer, worked, said):
    (found,) = faults_of(question, answer, worked)
    assert found.startswith(said)


def test_a_page_is_of_its_session_or_of_its_own():
    page = read_page(ROOT / "docs" / "one_token.py", ROOT)
    assert module_of("docs/lectures/l3_memory.py", "l3", SESSIONS) == "l3"
    assert module_of("handbook/06_delivery_craft/l3_memory.py", "teach_l3", SESSIONS) == "l3"
    assert module_of(page.path.as_posix(), page.id, SESSIONS) == "one_token"
