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
    "pairs",
    [
        (("x < 1.5", "Twenty times"), ("1.5 <= x < 6", "About twice as long"), ("x >= 6", "As long as 1")),
        (("a.us / b.us < 0.3", "About half"), ("a.us / b.us >= 0.3", "A quarter of it")),
        (("x < 4", "6 to 9 times"), ("x >= 4", "2 times")),
    ],
)  # fmt: skip
def test_words_that_are_exchanged_are_refused(pairs):
    found = list(wrong_words(choices(*pairs)))
    honest = [(condition, text) for (condition, _), (_, text) in zip(pairs, reversed(pairs), strict=True)]
    assert "their words are exchanged" in found[0]
    assert list(wrong_words(choices(*honest))) == []


@pytest.mark.parametrize(
    "pairs",
    [
        (("x < 0.5", "Most of it"), ("0.5 <= x < 0.85", "A third"), ("x >= 0.85", "Next to nothing")),
        (("x < 1.1", "Yes"), ("1.1 <= x < 1.5", "No: up to half as long again"), ("x >= 1.5", "No: one and a half")),
        (("4 <= x < 12", "About half"), ("x < 4", "A few"), ("x >= 12", "Nearly all")),
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
