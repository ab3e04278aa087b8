"""W6's six kernels by a machine, filled with invented outcomes: each of them makes a page that holds together."""

import re
import shutil
from pathlib import Path

import pytest
from test_render import measurement, quantity, render, repository

from course_harness import record
from course_harness.loop import DONE
from course_harness.recorded import series
from course_harness.table import Attempt, Summary, Time
from course_harness.tasks import tasks
from course_kernels.measure.record_types import Text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/workshops/w6_frontier.py").read_text(encoding="utf-8")
SIX = re.findall(r'^    "(\w+)": \("(\w+)", our_\w+\),$', PAGE, re.MULTILINE)
HEAD = "# ---\n# id: w1\n# title: Six\n# needs: gpu\n# description: A page\n# ---\n\n# %% [markdown]\n# # Six\n#\n"
BOTH = "both clocks"


def section():
    """The section alone, its links to other pages made words."""
    text = PAGE[
        PAGE.index("# ### Six kernels that") : PAGE.index("from pathlib import Path\n\nfrom course_harness")
    ]
    words = re.sub(r"\[([^\]]*)\]\(\.\.?/?[^)]*\)", r"\1", text).replace("# ### Six", "# ## Six")
    return HEAD + words.replace("# #### All", "# ### All") + "from tiny import kernel\n\nkernel.FACTOR\n"


def text(value):
    return Text(value).as_json()


def six(outcomes):
    """Recorded names, with outcomes as over eager and over torch.compile; 0 where a file was refused."""
    return {
        **{
            name: {
                "right": quantity(float(over[0] > 0)),
                "outcome": text("right" if over[0] else "refused"),
                "says": text("right: 54 sizes" if over[0] else "refused on M1-N1: wrong: element (0, 0) <b>"),
                "us": {**quantity(1000.0 / over[0] if over[0] else 0.0), "unit": "µs", "how": "timed"},
                "over": {"eager": quantity(over[0]), "compiled": quantity(over[1])},
                "eager": measurement(1000.0),
                "compiled": measurement(900.0),
                "ours": measurement(800.0),
            }
            for (name, _), over in zip(SIX, outcomes, strict=True)
        },
        "mended": {
            "outcome": text("right"),
            "says": text("right: 13 sizes"),
            "us": {**quantity(1010.0), "unit": "µs", "how": "timed"},
            "over": {"eager": quantity(0.99), "compiled": quantity(0.89)},
        },
        "sizes": quantity(8.0),
        "won": quantity(float(sum(min(over) > 1 for over in outcomes))),
        "seconds": {**quantity(41.0), "unit": "s", "how": "timed"},
    }


def machines(told):
    """Numbers of a record, made up: all tasks, two files each, the second wrong."""
    if not told:
        return {"told": quantity(0.0)}
    right, wrong = Attempt(True, Time(5.0, BOTH), "right"), Attempt(False, None, "wrong")
    found = [
        Summary(
            one.name, one.level, "kernel", "m", "a card", "j", ((right,), (wrong,)),
            {"eager": Time(10.0, BOTH), "compiled": Time(4.0, BOTH)}, DONE,
        )
        for one in tasks().values()
    ]  # fmt: skip

    def plain(numbers):
        return {k: plain(v) if isinstance(v, dict) else quantity(float(v)) for k, v in numbers.items()}

    return {"told": quantity(1.0), **plain(record.numbers(found))}


WON = (2.0, 1.5)
CASES = {
    "all won": [WON] * 6,
    "all refused": [(0.0, 0.0)] * 6,
    "each another": [WON, (0.8, 0.9), (1.6, 0.9), (0.0, 0.0), (0.6, 1.1), (1.0, 1.0)],
}


def test_the_six_are_of_three_levels_and_are_kept():
    assert len(SIX) == 6
    levels = {tasks()[name].level for name, _ in SIX}
    assert levels == {1, 2, 3}
    for name, kept in SIX:
        assert (1, 1) in series(ROOT, name)[kept].files
        assert f"proposals/{name}/{kept}/s1_r1.py.txt" in PAGE
    for name in tasks():
        assert f"machines.{name}.right" in PAGE


@pytest.mark.parametrize(
    ("outcomes", "told"), [("all won", True), ("all refused", False), ("each another", True)]
)
def test_the_section_holds_together_whatever_the_judge_says(tmp_path, monkeypatch, outcomes, told):
    names = {"six": six(CASES[outcomes]), "machines": machines(told)}
    root = repository(tmp_path, monkeypatch, section(), names)
    shutil.copytree(ROOT / "proposals", root / "proposals")
    course, page = render(root)
    wrong = [str(problem) for problem in course.problems]
    false = [one for one in wrong if "claim" in one and ("is false" in one or "is vacuous" in one)]
    assert "\n".join(one for one in wrong if one not in false) == ""
    assert bool(false) == (
        outcomes != "each another"
    )  # the card's own word on the two where a library is strong

    html = page.inlined()
    right = [0 if not a else 1 if a <= 1 else 2 if b <= 1 else 3 for a, b in CASES[outcomes]]
    marks = [["data-right" in one for one in choices] for choices in choices_of(html)]
    for name, kept in SIX:
        lines = (ROOT / f"proposals/{name}/{kept}/s1_r1.py.txt").read_text(encoding="utf-8").splitlines()
        assert re.search(rf"<summary>What it wrote for [^<]*: {len(lines)} lines</summary>", html)
    assert html.count('.python title="proposals/') == len(SIX) + 1  # and the second round of one
    won = right.count(3)
    assert [one.index(True) for one in marks] == [*right, 0 if won <= 1 else 1 if won <= 3 else 2]
    assert all(sum(one) == 1 for one in marks)
    # A stranger's words stand in fences alone, and what stands there is text.
    fenced = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n.*?^ *\1 *$", re.MULTILINE | re.DOTALL)
    assert ("(0, 0) <b>" in html) == any(not a for a, _ in CASES[outcomes])
    assert "(0, 0)" not in fenced.sub("", html)
    assert ("The table of all files" in page.markdown) == (not told)
    assert ("Where it loses" in html) == (outcomes == "each another")


def choices_of(html):
    """The choices of each prediction."""
    found: dict[str, list[str]] = {}
    for radio in re.findall(r'<input type="radio"[^>]*>', html):
        found.setdefault(re.search(r'name="([^"]*)"', radio)[1], []).append(radio)
    return found.values()
