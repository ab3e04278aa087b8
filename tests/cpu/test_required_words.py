"""The words that a pattern requires: with them it finds what it finds without, in every text that we have."""

import re
import sys
from pathlib import Path

import pytest

from course_site.lint import speed_words, typed_numbers
from course_site.lint.required_words import DIGIT, Guarded, required, words_in

ROOT = Path(__file__).parents[2]
GUARDED = [
    (f"{module.__name__.rpartition('.')[2]}.{name}", value)
    for module in (typed_numbers, speed_words)
    for name, value in vars(module).items()
    if isinstance(value, Guarded)
]


def sets_of(pattern, flags=re.IGNORECASE):
    return [set(each) for each in required(re.compile(pattern, flags))]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"times\s+faster", [{"faster"}, {"times"}]),
        (r"(?:twice|thrice)\s+as", [{"wice", "hrice"}, {"as"}]),
        (r"\d+\s*kwh", [{"kwh"}, {DIGIT}]),
        (r"(?:over\s+)?halfway", [{"halfway"}]),
        (r"(?:a|\w+)", []),  # one of its branches asks for nothing
        (r"(?!never)(?<!not )twice", [{"twice"}]),  # what must not stand there is not required
        (r"[½⅓]", [{"½", "⅓"}]),
        (r"µs", [{"µs"}]),  # the Greek letter is taken for it, and `lowered` takes it, too
        (r"éclair", [{"clair"}]),  # what a capital stands for is left out
        (r"x*yes{2,}", [{"ye"}]),
        (r"(?i:WATTS)\s[^a]", [{"watts"}]),
    ],
)
def test_the_words_of_a_pattern(pattern, words):
    assert sets_of(pattern) == words


def test_a_search_without_case_takes_four_signs_for_ascii_letters_and_no_other():
    letters = re.compile("[a-z]", re.IGNORECASE)
    signs = [chr(code) for code in range(128, sys.maxunicode + 1) if letters.match(chr(code))]
    assert signs == ["İ", "ı", "ſ", "\N{KELVIN SIGN}"]
    for sign in [*signs, "\N{GREEK SMALL LETTER MU}", "\N{GREEK CAPITAL LETTER MU}"]:
        (letter,) = (letter for letter in "iskµ" if re.fullmatch(letter, sign, re.IGNORECASE))
        guard = Guarded(re.compile(f"z{letter}zz", re.IGNORECASE))
        text = f"Z{sign}zz"
        assert [match[0] for match in guard.finditer(text, words_in(text))] == [text]


def test_nothing_is_missed_in_what_others_wrote():
    files = sorted((ROOT / "tests/cpu/typed").glob("phrasings_*.txt"))
    texts = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()[::2]]
    assert len(texts) > 500
    patterns = [(pattern, required(pattern)) for _, guarded in GUARDED for pattern in guarded.patterns]
    assert len(patterns) > 200
    found = [
        (pattern.pattern, text, all(not words_in(text).isdisjoint(each) for each in sets))
        for text in texts
        for pattern, sets in patterns
        if pattern.search(text)
    ]
    assert len(found) > 3000
    assert [each for each in found if not each[2]] == []
