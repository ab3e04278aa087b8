"""What Classroom 50 takes: templates without an answer, and autograders whose result is in the form that it reads."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_up_class import HARM

from course_classroom.__main__ import USAGE, main
from course_classroom.classroom50 import _template
from course_classroom.result import fenced
from course_classroom.rules import NAME, RULES, hand_out
from course_labs.lab import find_labs, given_files

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)
WRITTEN = ("first_kernel", "roofline")
# What its runner sets, by its page Advanced Autograding.
SET = {
    "CLASSROOM": "kernels", "ASSIGNMENT": "roofline", "ASSIGNMENT_TYPE": "individual", "OWNER": "a", "USERNAME": "a",
    "SUBMISSION_TAG": "submit/2027-01-11T12-00-00Z-a1b2c3d", "COMMIT_URL": "https://example.org/c",
    "RELEASE_URL": "https://example.org/r", "REVIEW_URL": "", "PAGES_BASE_URL": "https://example.org",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All that the command writes for two labs."""
    to = tmp_path_factory.mktemp("classroom") / "made"
    assert main(["classroom", "--labs", ",".join(WRITTEN), "--org", "an-org", "--to", str(to)]) == 0
    return to


def fault_of_result(told):
    """What its collector would refuse in a result, by its schema classroom50/result/v1; empty for nothing."""
    texts = ("classroom", "assignment", "owner", "submission", "commit", "release", "review", "datetime")
    if told["schema"] != "classroom50/result/v1" or told["assignment_type"] not in ("individual", "group"):
        return "schema"
    if any(not isinstance(told[key], str) or not told[key] for key in texts):
        return "an empty text"
    if not told["submission"].startswith("submit/") or not re.fullmatch(
        r"\d{4}-\d\d-\d\dT(\d\d:){2}\d\dZ", told["datetime"]
    ):
        return "submission or datetime"
    if set(told) - {*texts, "schema", "assignment_type", "score", "max-score", "tests"}:
        return "a key that is not its own"
    for one in (told, *told["tests"]):
        if (
            type(one["score"]) is not int
            or type(one["max-score"]) is not int
            or not 0 <= one["score"] <= one["max-score"]
        ):
            return "scores"
    names = [test["test-name"] for test in told["tests"]]
    if (
        not all(names)
        or len(set(names)) < len(names)
        or any(type(test["passed"]) is not bool for test in told["tests"])
    ):
        return "tests"
    return ""


def autograde(made, checkout, environment=SET):
    """Run an autograder in a checkout as its runner does."""
    script = made / "kernels" / "autograders" / environment["ASSIGNMENT"] / "autograder.py"
    run = subprocess.run(
        [sys.executable, str(script)], cwd=checkout, capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment,
    )  # fmt: skip
    result = checkout / "result.json"
    return run, json.loads(result.read_text()) if result.exists() else None


def test_a_template_has_starter_words_rules_and_a_workflow_and_nothing_of_an_answer(made):
    for name in WRITTEN:
        lab, folder = LABS[name], made / "templates" / name.replace("_", "-")
        door = next(iter(lab.doors))
        assert (folder / lab.student_file(door)).read_bytes() == lab.snapshot(door, 0).read_bytes()
        words = (folder / "README.md").read_text()
        assert lab.task in words
        assert all(stage.title in words for stage in lab.stages)
        assert (folder / NAME).read_text() == RULES.read_text()
        workflows = list((folder / ".github" / "workflows").iterdir())
        assert [path.name for path in workflows] == ["read.yaml"]  # autograde.yaml is theirs to write
        assert f'paths: ["{lab.student_file(door)}"]' in workflows[0].read_text()


def test_a_template_of_several_kernels_has_them_and_what_was_counted():
    files = dict(_template(LABS["bottleneck"], "python", ROOT))
    assert {f"given/{path.name}" for path in given_files(LABS["bottleneck"])} <= set(files)
    assert b"dram__bytes_read.sum" in files["bottleneck_counters.txt"]


def test_neither_holds_a_stage_an_answer_or_a_wrong_answer(made):
    texts = [path.read_text() for path in made.rglob("*") if path.is_file()]
    for name in WRITTEN:
        lab = LABS[name]
        for door in lab.doors:
            answers = [lab.snapshot(door, stage) for stage in range(1, len(lab.stages) + 1)] + [
                lab.solution(door)
            ]
            assert not {path.read_text() for path in answers} & set(texts)
        assert not list((made / "kernels").rglob("wrong*.toml"))
    assert not list((made / "kernels").rglob("k0*.py"))
    assert sum(map(len, texts)) < len(WRITTEN) * 4 * 2**20  # its runner takes 10 MiB packed


def test_assignments_are_in_the_form_of_its_file(made):
    said = json.loads((made / "assignments.json").read_text())
    assert said["schema"] == "classroom50/assignments/v1"
    for entry, name in zip(said["assignments"], WRITTEN, strict=True):
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{1,38}", entry["slug"])
        assert entry["template"] == {"owner": "an-org", "repo": entry["slug"], "branch": "main"}
        assert (entry["mode"], entry["autograder"]) == ("individual", "default")
        assert entry["runtime"] == {"runs-on": "ubuntu-latest", "python": "3.12"}
        assert entry["allowed_files"] == [
            "*",
            *(f"!{LABS[name].student_file(door)}" for door in LABS[name].doors),
        ]
        settings = json.loads(
            (made / "kernels" / "autograders" / entry["slug"] / "settings.json").read_text()
        )
        assert settings["lab"] == name
        pinned = (ROOT / "noxfile.py").read_text()
        assert all(
            f'"{p}"' in pinned for need in settings["needs"].values() for p in need.values() if "==" in p
        )


def test_a_right_hand_in_has_all_points_whatever_else_lies_in_the_checkout(made, tmp_path):
    """Nothing of it is taken for a module of the grader's, and nothing for a result."""
    (tmp_path / "roofline.py").write_text(LABS["roofline"].solution("python").read_text())
    for name in ("json.py", "course_labs.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('taken from the checkout')\n")
    (tmp_path / "result.json").write_text("{}")
    run, told = autograde(made, tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert fault_of_result(told) == ""
    assert (told["score"], told["max-score"]) == (6, 6)
    assert "right: correct in all" in (tmp_path / "release-body.md").read_text()


def test_a_false_verdict_has_no_point_and_commands_no_runner(made, tmp_path):
    (tmp_path / "roofline.py").write_text(
        "print('::set-output name=status::success')\nprint('```')\n" + HARM["says right"]
    )
    run, told = autograde(made, tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert fault_of_result(told) == ""
    assert told["score"] == 0
    assert "out of turn" in told["tests"][0]["output"]
    assert not [line for line in run.stdout.splitlines() if line.startswith("::")]


def test_without_a_file_nothing_is_graded_and_it_says_so(made, tmp_path):
    run, told = autograde(made, tmp_path)
    assert (run.returncode, told) == (1, None)
    assert run.stdout == "::error::no roofline.py in the repository\n"


def test_a_block_of_code_is_ended_by_nothing_in_it():
    assert fenced("a\n```\nb").startswith("````text\n")
    assert fenced("a").endswith("\n```")


def test_a_mistake_in_the_command_is_one_line(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    for more, said in (
        (["--labs", "x"], "no lab 'x'"),
        (["--labs", "paged", "--door", "cuda"], "paged has no door 'cuda'; it has python"),
        (["--labs", "paged", "--classroom", "My Class"], "small letters"),
        (["--labs", "paged", "--to", str(tmp_path / "mine")], "holds something else"),
    ):
        assert (
            main(["classroom", *more, *([] if "--to" in more else ["--to", str(tmp_path / "new")])]) == USAGE
        )
        error = capsys.readouterr().err.strip()
        assert said in error
        assert "\n" not in error
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_the_rules_are_handed_out_once_and_whoever_changed_theirs_keeps_them(tmp_path):
    hand_out(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "my_labs").mkdir()
    hand_out(tmp_path)
    rules = tmp_path / "my_labs" / NAME
    assert "Do not write, complete or repair the kernel" in rules.read_text()
    rules.write_text("mine")
    hand_out(tmp_path)
    assert rules.read_text() == "mine"
