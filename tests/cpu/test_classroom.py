"""A class that hands in: whose a file is, what late days save, what stays by hand, and what no file can harm."""

import csv
import io
import json
import os
import zipfile
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
from made_up_class import HARM, write_class

from course_classroom import grading
from course_classroom.__main__ import DONE, UNGRADED, USAGE, class_needs, main
from course_classroom.hand_ins import Collected, HandIn, Reading, collect
from course_classroom.kept import FILE, hash_of_grader
from course_classroom.marks import Override, Rules, best_days, late_by, left, read_overrides, read_rules
from course_classroom.report import grades, page, table
from course_classroom.roster import ClassError, Student, read_roster, whose
from course_labs.lab import find_labs

LABS = find_labs(Path(__file__).parents[2])
TWO = {name: LABS[name] for name in ("first_kernel", "paged")}
CLASS = [Student("ada", "Ada Lovelace"), Student("ada-b", "Ada Byron"), Student("grace", "Grace Hopper")]
CHEAP = {  # harm that costs no core and no disk
    "hangs": "import time\n\nwhile True:\n    time.sleep(1)\n",
    "floods": "open('much', 'wb').truncate(2**40)\n",
}
AT = datetime(2027, 1, 11, 12, tzinfo=UTC)


def written(folder, text, name="roster.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# --- the roster ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "student,name\nada,Ada Lovelace\ngrace,Grace Hopper\n",
        "\ufeffname;student;room\nAda Lovelace;ada;1\nGrace Hopper;grace;2\n",
        "username,first_name,last_name,email,section,github_id\nada,Ada,Lovelace,,,1\n\ngrace,Grace,Hopper,,,2\n",
    ],
)
def test_a_roster_is_read_in_the_forms_that_systems_write(tmp_path, text):
    found = read_roster(written(tmp_path, text))
    assert found == [Student("ada", "Ada Lovelace"), Student("grace", "Grace Hopper")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("student,mail\nada,a@b\n", "no column name; it has student, mail"),
        ("name\nAda\n", "no column student; it has name"),
        ("", "no column student; it has none"),
        ("student,name\nada,Ada\nAda,Ada B.\n", "line 3: Ada stands in line 2 too"),
        ("student,name\n../ada,Ada\n", "line 2: student '../ada' is no id"),
        ("student,name\n", "nobody is in it"),
    ],
)
def test_a_roster_that_cannot_be_used_is_one_line(tmp_path, text, said):
    with pytest.raises(ClassError) as error:
        read_roster(written(tmp_path, text))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("stem", "student"),
    [
        ("ada", "ada"), ("ADA", "ada"), ("ada-b", "ada-b"), ("kernels-first-kernel-ada-b", "ada-b"),
        ("grace_12345_assignsubmission_file", "grace"), ("Ada Lovelace_771_file", "ada"), ("adam", None), ("x", None),
    ],
)  # fmt: skip
def test_whose_a_folder_is(stem, student):
    found = whose(stem, CLASS)
    assert (found.id if found else None) == student


def test_a_folder_that_may_be_two_students_is_one_line():
    with pytest.raises(ClassError, match="Ada Byron_1: may be a1 and a2: name it after the id"):
        whose("Ada Byron_1", [Student("a1", "Ada Byron"), Student("a2", "Ada Byron")])


# --- what lies in the folder ---------------------------------------------------------------------


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as packed:
        for name, text in members.items():
            packed.writestr(name, text)


def test_hand_ins_are_found_in_folders_zips_and_files_of_any_system(tmp_path):
    progress = {
        "course": "Percent of Peak", "version": 1, "pages": {"a.html": {"seconds": 90}, "b.html": {"seconds": 160}},
        "predictions": {"a#1": {"right": True}, "a#2": {"right": False}, "a#3": {"right": None}},
    }  # fmt: skip
    zipped(tmp_path / "ada.zip", **{"x/paged.py": "deep", "paged.py": "1", "kept.json": json.dumps(progress)})
    (tmp_path / "first-kernel" / "kernels-first-kernel-grace").mkdir(parents=True)
    written(tmp_path / "first-kernel" / "kernels-first-kernel-grace", "2", "first_kernel_numpy.py")
    written(tmp_path, "3", "grace_17_paged.py")
    written(tmp_path, "student,lab,at\ngrace,paged,2027-01-11T12:00:00+00:00\n", "handed_in.csv")
    written(tmp_path, "x", "somebody_paged.py")
    (tmp_path / "ada-b").mkdir()
    (tmp_path / "ada-b" / "paged.py").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "ada-b" / "first_kernel.py")

    found = collect(tmp_path, CLASS, TWO)
    assert [(one.student, one.lab, one.door, one.data) for one in found.hand_ins] == [
        ("ada", "paged", "python", b"1"), ("grace", "first_kernel", "numpy", b"2"), ("grace", "paged", "python", b"3"),
    ]  # fmt: skip
    assert found.hand_ins[2].at == AT
    assert found.readings == {"ada": Reading(called=2, right=1, minutes=4)}
    assert found.trouble == [
        "somebody_paged.py: nobody in the roster",
        "ada: several files paged.py: paged.py is taken",
    ]


@pytest.mark.parametrize(
    "name", ["../paged.py", "/etc/paged.py", "a/../../paged.py", "C:\\paged.py", "..\\paged.py"]
)
def test_a_zip_with_a_path_outside_is_one_line_and_harms_nobody(tmp_path, name):
    zipped(tmp_path / "ada.zip", **{"first_kernel.py": "1", name: "2"})
    zipped(tmp_path / "grace.zip", **{"paged.py": "3"})
    found = collect(tmp_path, CLASS, TWO)
    assert [one.student for one in found.hand_ins] == ["grace"]
    assert found.trouble == [f"ada.zip: has a path outside, {name!r}: nothing of it was taken"]
    assert found.of == {"ada": found.trouble}


def test_a_file_of_another_name_is_a_line_and_not_silence(tmp_path):
    zipped(tmp_path / "ada.zip", **{"paged (1).py": "1"})
    (tmp_path / "grace").mkdir()
    written(tmp_path / "grace", "2", "mine.cu")
    written(tmp_path / "grace", "3", "paged.py")
    found = collect(tmp_path, CLASS, TWO)
    assert found.trouble == ["ada: no file has the name of a lab's; there are paged (1).py"]
    assert [one.student for one in found.hand_ins] == ["grace"]


def test_what_is_no_zip_and_what_is_too_large_is_one_line(tmp_path):
    written(tmp_path, "no zip", "ada.zip")
    with zipfile.ZipFile(tmp_path / "grace.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("paged.py", "#" * 2**21)
    (tmp_path / "ada-b").mkdir()
    written(tmp_path / "ada-b", "#" * 2**21, "paged.py")
    found = collect(tmp_path, CLASS, TWO)
    assert found.hand_ins == []
    assert found.trouble == [
        "ada-b: paged.py is larger than 1 MiB", "ada.zip: is no zip that can be read (File is not a zip file)",
        "grace.zip: paged.py is larger than 1 MiB",
    ]  # fmt: skip


# --- marks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", range(5))
@pytest.mark.parametrize("lost", [1.0, 0.25, 0.0])
def test_late_days_are_used_where_they_save_most(days, lost):
    """Against every way to use them."""
    for marks, late in (
        [(6, 5, 4), (1, 2, 1)],
        [(3, 6, 0), (2, 3, 1)],
        [(6, 6, 6), (3, 1, 0)],
        [(5,), (9,)],
        [(), ()],
    ):
        ways = [way for way in product(*(range(n + 1) for n in late)) if sum(way) <= days]
        total = {
            way: sum(left(m, n - used, lost) for m, n, used in zip(marks, late, way, strict=True))
            for way in ways
        }
        used = tuple(best_days(marks, late, days, lost))
        best = max(total.values())
        assert total[used] == pytest.approx(best)
        assert sum(used) == min(sum(way) for way in ways if total[way] == pytest.approx(best))


def test_a_day_that_has_begun_is_late_and_the_last_moment_is_not():
    assert [late_by(AT + timedelta(hours=h), AT) for h in (-1, 0, 1, 24, 25)] == [0, 0, 1, 1, 2]
    assert late_by(None, AT) == late_by(AT, None) == 0


DUE = "late_days = 2\nlost_a_day = 0.5\n[due]\npaged = 2027-01-11T23:59:00+01:00\n"
HAND = '[[override]]\nstudent = "ada"\nlab = "paged"\nmark = 4\nreason = "we talked it through"\n'


@pytest.mark.parametrize(
    ("read", "text", "old", "new", "said"),
    [
        (lambda p: read_rules(p, TWO), DUE, "late_days", "days", "unknown key days; known: late_days, lost_a_day, due"),
        (lambda p: read_rules(p, TWO), DUE, "= 2\n", "= true\n", "late_days is a whole number from 0 to 60"),
        (lambda p: read_rules(p, TWO), DUE, "0.5", "5", "lost_a_day is a share, from 0 to 1"),
        (lambda p: read_rules(p, TWO), DUE, "paged", "pages", "[due]: there is no lab pages"),
        (lambda p: read_rules(p, TWO), DUE, "+01:00", "", "[due] paged: a moment with its zone"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "ada", "adam", "override 1: nobody in the roster is 'adam'"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "paged", "page", "override 1: there is no lab 'page'"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "4", "7", "override 1: the mark of paged is a number from 0"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "we talked it through", " ", "override 1: say in `reason` why"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "reason", "why", "override 1: it has `student`, `lab`, `mark`"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND + HAND, "x", "x", "override 2: ada, paged has one already"),
        (lambda p: read_overrides(p, CLASS, TWO), HAND, "[[", "[", "cannot be read"),
    ],
)  # fmt: skip
def test_what_a_teacher_wrote_wrongly_is_one_line(tmp_path, read, text, old, new, said):
    with pytest.raises(ClassError) as error:
        read(written(tmp_path, text.replace(old, new), "it.toml"))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def answer(stages, alone=False, **more):
    return {"text": "<b>right</b>", "stages": stages, "alone_right": alone, "printed": "", "ran": "", **more}


def handed_in(lab, late=0):
    return HandIn("ada", lab, "numpy", f"{lab}.py", b"", AT + timedelta(days=late))


def test_stages_late_days_and_a_mark_by_hand_make_one_line():
    rules = Rules({"paged": AT, "first_kernel": AT}, late_days=1, lost_a_day=1.0)
    answered = {
        "ada": [(handed_in("first_kernel", 1), answer(4, True)), (handed_in("paged", 1), answer(3))],
        "grace": [(handed_in("paged"), {"ungraded": "no torch"}), (handed_in("paged"), answer(2))],
    }
    by_hand = {("grace", "first_kernel"): Override(2.5, "=told me all of it")}
    collected = Collected(readings={"ada": Reading(7, 4, 90)}, of={"ada-b": ["ada-b.zip: is no zip"]})
    found = grades(CLASS, list(TWO.values()), answered, rules, by_hand)
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(table(found, collected)))}

    ada, grace = rows["ada"], rows["grace"]
    assert (ada["mark"], ada["of"], ada["late days used"]) == ("5", "11", "1")
    assert [ada[f"paged: stage {k}"] for k in range(1, 6)] == ["1", "1", "1", "0", "0"]
    assert (ada["first_kernel: last task"], ada["paged: last task"], ada["paged: mark"]) == ("1", "0", "0")
    assert (ada["predictions called"], ada["predictions right"], ada["minutes on the pages"]) == (
        "7",
        "4",
        "90",
    )
    assert (grace["mark"], grace["first_kernel: mark"], grace["paged: mark"]) == ("4.5", "2.5", "2")
    assert grace["first_kernel: by hand"] == "'=told me all of it"
    assert rows["ada-b"]["to look at"] == "ada-b.zip: is no zip"
    text = page(found[0], collected, rules)
    assert "&lt;b&gt;right" in text
    assert "<b>right" not in text
    assert "http" not in text
    assert "A person gave 2.5 instead of nothing: =told me all of it" in page(found[2], collected, rules)


def test_a_time_is_there_where_a_card_took_it_and_a_file_that_was_not_run_is_to_be_looked_at():
    timed = answer(5, text="right: correct on every size tried; N=8 float32 takes 12.5 µs, 71 % of peak")
    answered = {"ada": [(handed_in("paged"), timed), (handed_in("first_kernel"), answer(None))]}
    found = grades(CLASS, list(TWO.values()), answered, Rules(), {})
    row = next(csv.DictReader(io.StringIO(table(found, Collected()))))
    assert (row["paged: µs"], row["first_kernel: stage 1"], row["mark"]) == ("12.5", "", "5")
    assert row["to look at"] == "first_kernel: not run: it needs a card"


def test_the_graders_hash_is_of_what_decides(tmp_path):
    lab = LABS["paged"]
    grader = tmp_path / "course_labs"
    grader.mkdir()
    written(grader, "1", "grade.py")
    was = hash_of_grader(lab, grader)
    assert was != hash_of_grader(LABS["first_kernel"], grader)
    written(grader, "2", "grade.py")
    assert was != hash_of_grader(lab, grader)


# --- all of it -----------------------------------------------------------------------------------


def run(tmp_path, capsys, *more):
    code = main(
        ["grade", "--all", str(tmp_path / "hand_ins"), "--roster", str(tmp_path / "roster.csv"),
         "--to", str(tmp_path / "out"), "--seconds", "4", *more]
    )  # fmt: skip
    said = capsys.readouterr()
    rows = list(
        csv.DictReader((tmp_path / "out" / "grades.csv").read_text(encoding="utf-8-sig").splitlines())
    )
    return code, said.out.splitlines(), {row["student"]: row for row in rows}


def test_a_class_is_graded_and_graded_again_where_something_changed(tmp_path, capsys):
    """One hangs, one fills the disk, one sends a verdict of its own: the others have their marks."""
    expected = write_class(tmp_path, 3, ["first_kernel", "roofline"], harm=HARM | CHEAP, seed=4)
    arguments = ["--all", str(tmp_path / "hand_ins"), "--roster", str(tmp_path / "roster.csv")]
    assert class_needs(arguments) == "numpy"
    code, said, rows = run(tmp_path, capsys)
    assert code == DONE
    assert said[0] == "hand-ins: 6, to grade: 6, as they were: 0"
    kept = json.loads((tmp_path / "out" / FILE).read_text())
    found = {tuple(name.split("/")[:2]): one["answer"]["found"] for name, one in kept["hand_ins"].items()}
    assert {key: word for key, word in found.items() if expected[key]} == {
        k: w for k, w in expected.items() if w
    }
    assert found["s01", "first_kernel"] == "out of room"
    assert found["s02", "first_kernel"] == "out of turn"
    assert [rows[f"s0{n}"]["first_kernel: mark"] for n in range(3)] == ["0", "0", "0"]
    assert "right" in found.values()
    assert all((tmp_path / "out" / "pages" / f"{student}.html").is_file() for student in rows)

    # As if an earlier grader had refused what is right, and somebody had mended a file since.
    name = next(name for name, one in kept["hand_ins"].items() if one["answer"]["found"] == "right")
    one = kept["hand_ins"][name]
    one["key"]["grader"], one["answer"]["stages"], one["answer"]["alone_right"] = "before", 1, False
    (tmp_path / "out" / FILE).write_text(json.dumps(kept))
    written(tmp_path / "out", HAND.replace("ada", "s00").replace("paged", "roofline"), "overrides.toml")
    code, said, rows = run(tmp_path, capsys)
    assert said[0] == "hand-ins: 6, to grade: 1, as they were: 5"
    of = len(LABS[name.split("/")[1]].stages) + 1
    assert said[2:4] == ["marks that moved:", f"  {name}: 1 -> {of} (the grader)"]
    moved = list(csv.DictReader((tmp_path / "out" / "moved.csv").read_text().splitlines()))
    assert [(one["was"], one["is"], one["changed"]) for one in moved] == [("1", str(of), "the grader")]
    assert (rows["s00"]["roofline: mark"], rows["s00"]["roofline: by hand"]) == ("4", "we talked it through")


def test_a_grader_that_dies_leaves_its_file_ungraded_and_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(grading, "LINE", "this")  # a module that says something else, and ends
    write_class(tmp_path, 1, ["roofline"], harm={})
    code, said, rows = run(tmp_path, capsys)
    assert code == UNGRADED
    assert said[1] == "1/1 s00/roofline/roofline.py: the grader's process has ended"
    assert rows["s00"]["to look at"] == "roofline: not graded: the grader's process has ended"
    assert (rows["s00"]["roofline: stage 1"], rows["s00"]["mark"]) == ("", "0")


def test_a_mistake_in_the_command_is_one_line_and_exit_2(tmp_path, capsys):
    (tmp_path / "hand_ins").mkdir()
    roster = written(tmp_path, "student,name\nada,Ada\n")
    for all_of, csv_file, more, said in (
        (tmp_path / "hand_ins", roster, [], "no hand-in of anybody in the roster"),
        (tmp_path / "nowhere", roster, [], "there is no such folder"),
        (tmp_path / "hand_ins", tmp_path / "no.csv", [], "No such file"),
        (tmp_path / "hand_ins", roster, ["--labs", "x"], "no lab 'x'; there are"),
        (tmp_path / "hand_ins", roster, ["--lines", "0"], "--lines is 1 or more"),
        (tmp_path / "hand_ins", roster, ["--due", str(tmp_path / "no.toml")], "No such file"),
    ):
        arguments = ["--all", str(all_of), "--roster", str(csv_file), "--to", str(tmp_path / "out"), *more]
        assert main(["grade", *arguments]) == USAGE
        error = capsys.readouterr().err.strip()
        assert said in error
        assert "\n" not in error
