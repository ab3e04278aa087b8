"""What texts say of the course's own things is what the code and the folders have."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.site.own_counts import check, faults_of, faults_of_commands

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_pages_say_what_is_so():
    course = SimpleNamespace(root=ROOT, pages=[], problem=lambda path, why: problems.append(f"{path}: {why}"))
    problems = []
    check(course)
    assert problems == []


@pytest.mark.parametrize(
    "text",
    [
        "There are more than a thousand cheats in `tests/judge/`.",
        "The judge is tried on sixty cheats.",
        "Fewer than fifty cheats.",
        "Try thirty ways to fool us.",
        "Try sixteen ways to trick us.",
        "One road of fifteen stops.",
        "Twelve sessions, four weeks.",
        "The course has nine lectures.",
        "We take at most 2000 samples.",
        "Time is up after never fewer than 10 samples and never more than 1000.",
        "We take no fewer than 12 and no more than 900 rounds.",
        "Five labs start in Triton.",
        "Eight labs can be typed in Triton.",
        "A claim holds when it is true in all of the resamples.",
        "It holds in 95 % of the resamples.",
        "It holds in every one of the resamples.",
        "It is true in 95 of 100 resamples.",
        "True in 95 of 100 of these runs: the sentence stays.",
        "Of 10 000 resamples most are so.".replace(" 000", ",000"),
    ],
)
def test_a_count_that_is_not_so_is_refused(text):
    ((line, why),) = faults_of(f"One.\n{text}", ROOT)
    assert line == 2
    assert why.endswith(": mend the text")


@pytest.mark.parametrize(
    "text",
    [
        "There are more than a hundred cheats in `tests/judge/`.",
        "Seven more cheats are refused.",
        "Try fifteen ways to fool us; there are two ways to walk it.",
        "Fourteen sessions, eight lectures, two lectures further on.",
        "Never fewer than 12 samples and never more than 1000.",
        "True in 99 % of the resamples, in 99 of 100 resamples.",
        "True in 99 of 100 of these runs: the sentence stays.",
        "Never swap two sessions; a hundred samples were drawn.",
    ],
)
def test_what_is_so_or_counts_something_else_is_not_refused(text):
    assert list(faults_of(text, ROOT)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("with exit code 3;", "with exit code 4;"),
        ("0 is right, 1 refused", "0 is refused, 1 right"),
        ("1 a wrong answer", "1 a slow kernel"),
        ("Exit code 1 means that a text was refused", "Exit code 1 means that it is done"),
        ("| `--draft`", "| `--drafts`"),
        ("| `--stale`", "| `--old`"),
    ],
)
def test_an_exit_code_or_an_option_that_is_not_so_is_refused(old, new):
    changed, times = re.subn(r"\s+".join(map(re.escape, old.split())), new, README)
    assert times == 1
    assert list(faults_of_commands(changed, ROOT))
    assert list(faults_of_commands(README, ROOT)) == []
