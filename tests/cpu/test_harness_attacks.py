"""What came of the attacks on the judge: told from sealed journals, and stale once a file or the judge is another."""

import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from course_harness import attacks
from course_harness.attacks import FOLDER, attacked, first_comment, lines_of
from course_harness.journal import Journal
from course_harness.loop import Budget, Plan, run
from course_harness.recorded import Recorded, keep, series
from course_harness.tasks import Unusable, task, tasks
from course_judge.identity import hash_by_name, hash_of_judge
from course_judge.protocol.verdict import NOT_JUDGED, RIGHT, Evidence, Verdict

ROOT = Path(__file__).parents[2]
ABOUT = {
    "half": "attack",
    "model": "m",
    "date": "2026-11-29",
    "prompt": "p",
    "saw": "s",
    "sampling": dict.fromkeys(("temperature", "top_p", "seed"), "not known"),
}
TEXTS = (
    b"# Attack: it\n# <b>waits</b>.\nright",
    b"# Attack: another.\nwrong",
    b"late",
)


class FakeJudge:
    """Judges by what stands in the text; notes whose work it had to be."""

    has_card, on = False, "without a card"

    def __init__(self):
        self.own = set()

    def judge_hash(self, task):
        return "j" * 64

    def judge(self, task, text, own):
        self.own.add(own)
        found = NOT_JUDGED if "late" in text else RIGHT if "right" in text else "wrong"
        evidence = Evidence(sha256(text.encode()).hexdigest(), "j" * 64, self.on, ())
        return Verdict(found, evidence=evidence).as_json()


@pytest.fixture
def root(tmp_path):
    for number, text in enumerate(TEXTS, 1):
        keep(tmp_path, "softmax", "hacker", ABOUT, (number, 1), text)
    return tmp_path


def judged(root, name="a.jsonl"):
    """Judge all that is kept; returns the judge."""
    kept, judge = series(root, "softmax", "attack")["hacker"], FakeJudge()
    plan = Plan(task("softmax"), "attack", "words", kept.samples, 1)
    run(plan, Recorded(kept), judge, Journal(root / FOLDER / name), Budget(1e6, 99), say=lambda line: None)
    return judge


def now(judge="j"):
    return lambda name: judge * 64


def test_what_came_of_them_is_told_from_the_journals(root):
    assert judged(root).own == {False}  # torch's operators may do the work of an attack
    told = attacked(root, now())
    assert (told.tally.tried, told.tally.refused, told.tally.not_judged, told.tally.open) == (3, 1, 1, 1)
    assert (told.tasks, told.refused_for, told.stale) == (1, {"wrong": 1}, ())
    assert [(one.file, one.words) for one in told.open] == [
        ("softmax/hacker/s1_r1.py.txt", "Attack: it <b>waits</b>.")
    ]
    lines = "\n".join(lines_of(told))
    assert "| 1 | 3 | 1 | 1 | 1 |" in lines
    assert "<b>" not in lines
    assert "Not as it was" not in lines


def test_another_judge_another_file_and_one_that_was_never_judged_are_told(root):
    judged(root)
    assert attacked(root, now("k")).stale == ("softmax/hacker: judged by an earlier judge",)
    assert attacked(root, now("k")).tally.tried == 3
    keep(root, "softmax", "hacker", ABOUT, (4, 1), b"more")
    keep(root, "gemm", "hacker", ABOUT, (1, 1), b"more")
    told = attacked(root, now())
    assert told.stale == (
        "softmax/hacker: files were added or changed since it was judged",
        "gemm/hacker: not judged yet",
    )
    assert "judges anew" in lines_of(told)[-1]


def test_a_journal_that_was_edited_and_one_of_nothing_are_refused(root):
    judged(root)
    path = root / FOLDER / "a.jsonl"
    kept = path.read_text()
    path.write_text(kept.replace('"found": "right"', '"found": "wrong"'))
    with pytest.raises(Unusable, match="was changed since it was sealed"):
        attacked(root, now())
    path.write_text(kept)
    (root / FOLDER / "b.jsonl").write_text(kept)
    with pytest.raises(Unusable, match=r"b\.jsonl: of no attack that is kept, or the second of one"):
        attacked(root, now())
    (root / FOLDER / "b.jsonl").unlink()
    (root / "proposals" / "softmax" / "hacker" / "s1_r1.py.txt").write_text("another")
    with pytest.raises(Unusable, match="not the file that was proposed"):
        attacked(root, now())


def test_a_comment_ends_where_the_file_begins():
    assert first_comment("# One\n#  two.\n\n# Three\n") == "One two."
    assert first_comment("import torch\n# One") == ""


def test_a_problem_by_its_name_has_the_same_judge():
    problem = task("softmax").problem()
    assert hash_by_name("softmax") == hash_of_judge(problem) != hash_by_name("gemm")
    assert hash_of_judge(replace(problem, name="gemm")) == hash_by_name("gemm")


def test_every_attack_of_the_repository_has_a_verdict_on_just_this_file():
    """Of an earlier judge it may be: the page then says so."""
    told = attacked(ROOT)
    files = sum(len(one.files) for name in tasks() for one in series(ROOT, name, "attack").values())
    assert told.tally.tried == files >= 40
    assert told.tasks >= 8
    assert told.tally.refused + told.tally.open + told.tally.not_judged == files
    assert not [line for line in told.stale if not line.endswith("earlier judge")]
    for name in tasks():
        for one in series(ROOT, name, "attack").values():
            for file in one.files.values():
                assert first_comment((one.folder / file).read_text()).startswith("Attack: ")


def test_the_page_tells_it():
    text = (ROOT / "docs" / "how_we_measure.py").read_text()
    assert re.search(r"^# /// attacks\n# ///$", text, re.MULTILINE)
    assert attacks.COMMAND in text
