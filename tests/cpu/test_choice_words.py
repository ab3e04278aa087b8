"""A mark is what the reveal prints, and a choice's words are those of its own condition."""

import pytest

from course_site.lint.choice_words import wrong_mark, wrong_words
from course_site.pages.choices import Choice


def marked(*texts):
    """Choices of which the one with a star is marked."""
    return [Choice(text.removeprefix("*"), text.startswith("*")) for text in texts]


@pytest.mark.parametrize(
    ("texts", "value", "behind"),
    [
        (("0.17", "1.67", "*16.7"), 1.67, ": the same."),
        (("*A thousand", "A million", "A billion"), 1e9, ". A billion, for one"),
        (("Half a million", "17 million", "*67 million"), 16.8, " million, which is"),
        (("About 28 times", "About 57 times", "*About 64 times"), 56.9, "**: times"),
        (("*16 384, and 512 with tiles", "32 768, and 1024 with tiles"), 32768, " bytes"),
        (("*10, then 10", "15, then 5"), 15, ", then"),
        (("The first 2 rows", "*The first 8 rows"), 2, " rows"),
    ],
)
def test_a_mark_that_the_reveal_contradicts_is_refused_in_one_line(texts, value, behind):
    said = wrong_mark(marked(*texts), value, behind)
    assert "and its reveal prints" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("texts", "value", "behind"),
    [
        (("0.17", "*1.67", "16.7"), 1.67, ": the same."),
        (("A thousand", "A million", "*A billion"), 1e9, "."),
        (("Half a million", "*17 million", "67 million"), 16.8, " million"),
        (("All of it", "A half", "*A sixth"), 6, " ticks to fetch"),
        (("The left half", "*The first two rows"), 2, " rows"),
        (("255", "*256", "65 504"), 256, "."),
        (("32 768, and 32 with tiles", "*32 768, and 1024 with tiles"), 32768, " bytes"),
        (("Yes", "*No"), 3, ""),
    ],
)
def test_a_right_mark_passes(texts, value, behind):
    assert wrong_mark(marked(*texts), value, behind) == ""


def choices(*pairs):
    return [Choice(text, False, condition) for condition, text in pairs]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        # words of two conditions exchanged
        ((("x < 1.5", "Twenty times"), ("1.5 <= x < 6", "About twice as long"), ("x >= 6", "As long as 1")), "Twenty"),
        ((("a.us / b.us < 0.3", "About half"), ("a.us / b.us >= 0.3", "A quarter of it")), "quarter"),
        ((("x < 4", "6 to 9 times"), ("x >= 4", "2 times")), "2 times"),
        ((("a.us / b.us < 1.4", "A few times as long"), ("1.4 <= a.us / b.us < 6", "As long")), "As long"),
        ((("a.us / b.us >= 2", "Close to the floor"), ("a.us / b.us < 2", "A few times the floor")), "Close"),
        ((("x < 12", "Less than 12"), ("12 <= x < 40", "64 times"), ("x >= 40", "Some twenty times")), "64 times"),
        # a number outside its own condition
        ((("x < 0.65", "About a half"), ("0.65 <= x < 0.85", "Nine tenths"), ("x >= 0.85", "More")), "Nine tenths"),
        ((("x < 4", "Three times"), ("4 <= x < 7", "Eight times"), ("x >= 7", "Nine times")), "Eight times"),
        ((("x < 100", "About 60"), ("100 <= x < 300", "About 350"), ("x >= 300", "400 or more")), "About 350"),
        ((("x < 0.7", "Less than 70 %"), ("0.7 <= x < 0.93", "Between 70 % and 99 %"), ("x >= 0.93", "All")), "99 %"),
        ((("x < 1.5", "Up to one and a half times"), ("1.5 <= x < 4", "Seven times"), ("x >= 4", "More")), "Seven"),
    ],
)  # fmt: skip
def test_words_of_another_condition_are_refused_in_one_line(pairs, words):
    said = list(wrong_words(choices(*pairs)))
    assert any(words in line for line in said), said
    assert all("\n" not in line and "are words exchanged" in line for line in said)


@pytest.mark.parametrize(
    "pairs",
    [
        (("x < 0.5", "Most of it"), ("0.5 <= x < 0.85", "A third"), ("x >= 0.85", "Next to nothing")),
        (("x < 1.1", "Yes"), ("1.1 <= x < 1.5", "No: up to half as long again"), ("x >= 1.5", "No: one and a half")),
        (("4 <= x < 12", "About 8"), ("x < 4", "A few"), ("x >= 12", "Nearly all")),
        (("x < 1.03", "None"), ("1.03 <= x < 1.15", "Between 3 and 15 in a hundred"), ("x >= 1.15", "More")),
        (("x < 1000", "Less than half of 2000"), ("1000 <= x < 1999", "Less than 2000"), ("x >= 1999", "2000")),
        (("a < 0.98 * b", "Behind"), ("0.98 * b <= a <= 1.02 * b", "The same"), ("a > 1.02 * b", "Ahead")),
        (("x < 0.65", "About a half"), ("0.65 <= x < 0.85", "About three quarters"), ("x >= 0.85", "Nine tenths")),
        (("b / a >= 7", "Eight times"), ("4.5 <= b / a < 7", "Six times"), ("b / a < 4.5", "Three times")),
        (("x < 1", "Less"), ("y < 2 and x > 1", "Twice")),
    ],
)  # fmt: skip
def test_honest_words_pass(pairs):
    assert list(wrong_words(choices(*pairs))) == []


def test_an_open_prediction_has_no_words_to_hold():
    assert list(wrong_words([])) == []
    assert wrong_mark([], 1.0, "") == ""
