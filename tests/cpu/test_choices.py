"""The choices of a prediction: their marks, which of them is right by a record, and what stops the build."""

import pytest

from course_site.pages.blocks import DirectiveError, parse
from course_site.pages.choices import Choice, name_of, taken_apart


def block(body, question="How fast?"):
    [found] = parse(f"/// predict | {question}\n{body}\n/// reveal\nSo.\n///")
    return found


def test_the_marks_are_taken_off():
    said, choices = taken_apart(block("Say it first.\n\n- [ ] a tenth\n- [x] a half,\n  or nearly"))
    assert said == ["Say it first."]
    assert choices == [Choice("a tenth", False), Choice("a half, or nearly", True)]


def test_a_condition_says_when_a_choice_is_right():
    _, choices = taken_apart(block("- [a.us < b.us] ours\n- [a.us >= b.us] theirs\n- [ ] neither"))
    assert [choice.condition for choice in choices] == ["a.us < b.us", "a.us >= b.us", ""]
    assert not any(choice.is_right for choice in choices)


def test_without_choices_a_prediction_is_open():
    assert taken_apart(block("Draw it.")) == (["Draw it."], [])
    assert taken_apart(block("")) == ([], [])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("A tenth · a half", "mark each of its choices"),
        ("- a tenth\n- a half", "mark each of its choices"),
        ("- a tenth\n- [x] a half\n- [ ] all", "mark each of its choices"),
        ("- [ ] a tenth\n- [ ] a half", "names no right choice"),
        ("- [x] a tenth\n- [x] a half", "or several"),
        ("- [x] a tenth\n- [a.us < 2] a half", "or several"),
        ("- [x] a tenth", "has one choice"),
        ("- [x] a tenth\n- [ ] a tenth", "the same choice twice"),
        ("- [x] a tenth\n- [ ] a half\n\nThink.", "must come last"),
    ],
)
def test_a_slip_in_the_marks_stops_the_build(body, why):
    with pytest.raises(DirectiveError, match=why) as caught:
        taken_apart(block(body))
    assert "\n" not in str(caught.value)


def test_its_name_is_its_words_and_not_its_marks():
    one = name_of(block("- [x] a tenth\n- [ ] a half"))
    assert one == name_of(block("Think.\n\n- [ ] a tenth\n- [x] a half"))
    assert one != name_of(block("- [x] a tenth\n- [ ] a third"))
    assert one != name_of(block("- [x] a tenth\n- [ ] a half", "How slow?"))
