"""Who rounds how, asked of what is installed: the table on the page is what these libraries answer.

The whole of it, with libraries that the tests do not need, is made anew by tests/formats/test_who_rounds_how.py.
"""

import json
import sys
from pathlib import Path

import pytest

from course_labs.lab import load_file

FORMATS = Path(__file__).parents[1] / "formats"


@pytest.fixture(scope="module")
def who():
    """The script, which imports a file beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FORMATS), *sys.path])
        yield load_file(FORMATS / "who_rounds_how.py", "who_rounds_how")


@pytest.fixture(scope="module")
def table(who):
    return json.loads(who.TABLE.read_text(encoding="utf-8"))


def part(table, names):
    """What the table has of some who were asked."""
    answers = {
        question: {n: a for n, a in row.items() if n in names} for question, row in table["answers"].items()
    }
    return {
        "versions": {name: version for name, version in table["versions"].items() if name in names},
        "answers": {question: row for question, row in answers.items() if row},
    }


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_libraries_that_are_here_answer_what_the_table_says(who, table):
    found = who.ask(who.IN_CI)
    assert set(found["versions"]) == set(who.IN_CI) - {"ours"}
    assert found == part(table, who.IN_CI)


def test_the_table_has_a_version_of_each_and_an_answer_to_each_question(who, table):
    pinned = dict(pin.split("==") for pin in who.PINNED)
    assert set(table["versions"]) == set(who.ASKED) - {"ours"}
    for version in table["versions"].values():
        name, number = version.split()
        assert pinned[name] == number
    for form, numbers in who.TO.items():
        for x in numbers:
            assert {"ours", "ml_dtypes"} <= set(table["answers"][who.name_of(x, form)])
    assert len({who.name_of(x, form) for form in who.TO for x in who.TO[form]}) == sum(
        map(len, who.TO.values())
    )


def test_good_guesses_are_wrong_here(table):
    """What the course says of it: each of these is another answer than somebody else's."""
    says = table["answers"]
    assert says["480 to E4M3"]["torch"] != says["480 to E4M3"]["ml_dtypes"]
    assert says["0 to E8M0"]["torch"] != says["0 to E8M0"]["ml_dtypes"]
    assert says["0.7 to E8M0"]["torch"] != says["0.7 to E8M0"]["CUDA headers"]
    assert says["nan to E2M1"]["ml_dtypes"] != says["nan to E2M1"]["CUDA headers"]
    assert says["0.75 to E2M1"]["GGUF"] != says["0.75 to E2M1"]["ours"]
    assert says["1.97 to E4M3"]["Triton, interpreted"] != says["1.97 to E4M3"]["CUDA headers"]
    assert "satfinite" in says["instruction for E4M3"]["Triton, compiled for sm_90"]


def test_ours_are_the_card_s_where_the_headers_round_to_nearest(table):
    """CUDA's class for E8M0 rounds up, which is another rule; everything else is the same."""
    for question, row in table["answers"].items():
        if "CUDA headers" not in row or "ours" not in row:
            continue
        theirs = row["CUDA headers, to nearest" if "E8M0" in question else "CUDA headers"]
        assert row["ours"] == theirs or question == "-2 to E8M0"
