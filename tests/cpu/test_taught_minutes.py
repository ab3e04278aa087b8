import shutil
from pathlib import Path

import pytest

from course_site.sessions.course_road import FILE as ROAD_FILE
from course_site.sessions.course_road import read_road
from course_site.sessions.session import read_session
from course_site.sessions.taught_minutes import MINUTES_FOLDER, Taken, read_minutes

ROOT = Path(__file__).resolve().parents[2]

MAP = """
title = "A session"
kind = "workshop"
[[block]]
from = 0
to = 20
title = "First"
  [[block.step]]
  minutes = 8
  kind = "board"
  title = "The *enemy*, drawn"
  [[block.step]]
  minutes = 12
  kind = "by hand"
  title = "Crate one"
"""
HEAD = "session,date,start,step,title,planned,actual"
GOOD = f'{HEAD}\nw1,2026-11-21,18:05,1,"The enemy, drawn",8,9.5\nw1,2026-11-21,18:05,2,Crate one,12,14\n'
NAME = "2026-11-21-1805-w1.csv"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    file = tmp_path / "handbook" / "sessions" / "w1.toml"
    file.parent.mkdir(parents=True)
    file.write_text(MAP, encoding="utf-8")
    shutil.copy(ROOT / ROAD_FILE, tmp_path / ROAD_FILE)
    return tmp_path


def hand_in(root, text, name=f"w1/{NAME}"):
    path = root / MINUTES_FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def read(root):
    session, _ = read_session(root / "handbook/sessions/w1.toml", root, read_road(root))
    return read_minutes(root, {"w1": session})


def test_without_any_file_nothing_was_taken(root):
    assert read(root) == ({}, [])


def test_one_run_is_its_own_median(root):
    hand_in(root, GOOD)

    assert read(root) == ({"w1": {1: Taken(9.5, 1), 2: Taken(14.0, 1)}}, [])


def test_the_median_of_three_runs(root):
    for day, actual in (("21", "14"), ("22", "20"), ("23", "")):
        text = GOOD.replace("2026-11-21", f"2026-11-{day}").replace("12,14", f"12,{actual}")
        hand_in(root, text, f"w1/2026-11-{day}.csv")

    taken, complaints = read(root)

    assert (taken["w1"][1], taken["w1"][2], complaints) == (Taken(9.5, 3), Taken(17.0, 2), [])


def test_a_step_that_the_map_no_longer_has_is_left_out(root):
    hand_in(root, GOOD.replace("Crate one", "An old step"))

    assert read(root) == ({"w1": {1: Taken(9.5, 1)}}, [])


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (GOOD, "w9/2026-11-21.csv", "into the folder of its session"),
        (GOOD, "2026-11-21.csv", "into the folder of its session"),
        (GOOD, "w1/notes.csv", "the date first"),
        (GOOD, "w1/2026-11-21.xlsx", "the date first"),
        (GOOD.encode("utf-16"), f"w1/{NAME}", "is not UTF-8"),
        (GOOD.replace(",", ";"), f"w1/{NAME}", "line 1: the first line is not session,date"),
        ("", f"w1/{NAME}", "line 1: the first line is not"),
        (HEAD + "\n", f"w1/{NAME}", "no step in it was timed"),
        (GOOD.replace("12,14", "12"), f"w1/{NAME}", "line 3: has 6 columns"),
        (GOOD.replace("w1,", "w2,"), f"w1/{NAME}", "line 2: is of session 'w2'"),
        (GOOD.replace("2026-11-21", "21.11.2026"), f"w1/{NAME}", "line 2: date '21.11.2026' is not a date"),
        (
            GOOD.replace("11-21", "11-22"),
            f"w1/{NAME}",
            "line 2: date 2026-11-22 is not the date in the file's name",
        ),
        (GOOD.replace("18:05,2", "6 pm,2"), f"w1/{NAME}", "line 3: start '6 pm' is not a time"),
        (GOOD.replace("18:05,2", "18:05,two"), f"w1/{NAME}", "line 3: step 'two' is not a number"),
        (GOOD.replace("18:05,2", "18:05,1"), f"w1/{NAME}", "line 3: step 1 is there twice"),
        (GOOD.replace("Crate one", ""), f"w1/{NAME}", "line 3: has no title"),
        (GOOD.replace("12,14", "12,long"), f"w1/{NAME}", "line 3: actual 'long' is not a number"),
        (GOOD.replace("12,14", "12,-3"), f"w1/{NAME}", "line 3: actual '-3' is not a number"),
        (
            GOOD.replace("12,14", "12,900"),
            f"w1/{NAME}",
            "line 3: actual 900 minutes: a watch that nobody stopped",
        ),
        (GOOD.replace('"The', '"The" x "'), f"w1/{NAME}", "is not CSV"),
        (GOOD.replace("12,14", "12,240.1"), f"w1/{NAME}", "line 3: actual 240.1 minutes: a watch"),
        (GOOD.replace("12,14", "241,14"), f"w1/{NAME}", "line 3: planned 241 minutes: a watch"),
        (GOOD.replace("12,14", ",14"), f"w1/{NAME}", "line 3: planned '' is not a number of minutes"),
        (GOOD.replace("12,14", "12,14,15"), f"w1/{NAME}", "line 3: has 8 columns, and 7 are needed"),
        (GOOD.replace("Crate one", " "), f"w1/{NAME}", "line 3: has no title"),
        (GOOD.replace("18:05,2", "24:05,2"), f"w1/{NAME}", "line 3: start '24:05' is not a time"),
        (GOOD.replace("18:05,2", "18:05,0"), f"w1/{NAME}", "line 3: step '0' is not a number"),
        (GOOD, f"w1/old/{NAME}", "into the folder of its session"),
    ],
)
def test_a_bad_file_is_refused_with_one_line(root, text, name, said):
    hand_in(root, text, name)

    taken, complaints = read(root)

    assert taken == {}
    assert len(complaints) == 1
    assert said in str(complaints[0])
    assert str(complaints[0]).startswith(f"{MINUTES_FOLDER}/{name}")
    assert "\n" not in str(complaints[0])


def test_a_bad_file_does_not_hide_a_good_one(root):
    hand_in(root, GOOD)
    hand_in(root, GOOD.replace("12,14", "12,long"), "w1/2026-11-21-2.csv")

    taken, complaints = read(root)

    assert (taken["w1"][1].runs, len(complaints)) == (1, 1)


def test_the_longest_step_blank_lines_and_hidden_files_are_taken(root):
    hand_in(root, GOOD.replace("12,14", "240,240").replace("\nw1", "\n\nw1"))
    hand_in(root, "", "w1/.hidden")

    assert read(root) == ({"w1": {1: Taken(9.5, 1), 2: Taken(240.0, 1)}}, [])


def test_a_run_of_which_no_step_is_left_says_nothing(root):
    hand_in(root, GOOD.replace("Crate one", "Old").replace("enemy", "old"))

    assert read(root) == ({}, [])
