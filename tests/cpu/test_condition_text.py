"""A condition in words: every shape that claims take, and that no two conditions are told alike."""

import ast

import pytest
from test_values import measurement, scope

from course_site.values.condition_text import in_words
from course_site.values.values import BadExpression, Define, Scope, UnknownName

MINE = {
    "ladder": {"naive": measurement(1000.0), "register_tile": measurement(600.0)},
    "vital": {name: {"kind": "quantity", "value": 3.0, "unit": "1", "how": "counted"} for name in ("turns", "seats")},
    "one": {name: {"kind": "quantity", "value": 3.0, "unit": "µs", "how": "timed"} for name in ("us", "wait")},
}  # fmt: skip


def told(condition, **defines):
    """The sentences of a condition, in one line."""
    mine = scope(**MINE)
    for name, what in defines.items():
        mine.defines[name] = Define(name, "flash.full.us / sdpa.full.us", "1", what)
    other = Scope("w9", {}, None)
    other.defines["gain"] = Define("gain", "1", "1", "the gain of that page")
    mine.others = lambda page: other if page == "w9" else None
    return "; ".join(in_words(condition, mine))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        # against each other: what was asked of a measurement, and the group that all share is left out
        ("ladder.naive.us > ladder.register_tile.us", "the time of “naive” is more than the time of “register tile”"),
        ("ladder.naive.us < 2 * ladder.register_tile.us",
         "the time of “naive” is less than 2 times the time of “register tile”"),
        ("flash.full.tflops >= sdpa.full.tflops", "the speed of “flash full” is at least the speed of “sdpa full”"),
        ("flash.full.us / sdpa.full.us > 2", "the time of “flash full” is more than 2 times the time of “sdpa full”"),
        ("2 < flash.full.us / sdpa.full.us", "the time of “flash full” is more than 2 times the time of “sdpa full”"),
        ("0.9 < flash.full.us / sdpa.full.us < 1.1",
         "the time of “flash full” is between 0.9 and 1.1 times the time of “sdpa full”"),
        ("0.4 * steps.m < vital.turns < 0.9 * steps.m", "“vital turns” is between 0.4 and 0.9 times “steps m”"),
        ("0.4 * steps.m < vital.turns < 0.9 * vital.seats",
         "0.4 times “steps m” is less than “vital turns”; “vital turns” is less than 0.9 times “vital seats”"),
        ("vital.turns > vital.seats > steps.m",
         "“vital turns” is more than “vital seats”; “vital seats” is more than “steps m”"),
        # how far apart
        ("abs(flash.full.us / sdpa.full.us - 1) < 0.06",
         "the time of “flash full” is within 6 % of the time of “sdpa full”"),
        ("abs(vital.turns / vital.seats - 1) > 0.5", "“vital turns” is more than 50 % away from “vital seats”"),
        ("abs(vital.turns - 1) < 0.07", "“vital turns” is less than 0.07 away from 1"),
        ("abs(one.wait - one.us) <= 2", "“one wait” is at most 2 µs away from the time of “one”"),
        ("max(abs(vital.turns / steps.m - 1), abs(steps.m - vital.seats)) < 0.1",
         "the largest of the relative difference between “vital turns” and “steps m” and the difference between "
         "“steps m” and “vital seats” is less than 0.1"),
        # against a number: with its unit, a share as a percentage
        ("flash.full.us > 100", "the time of “flash full” is more than 100 µs"),
        ("100 < flash.full.us < 1e4", "the time of “flash full” is between 100 and 10,000 µs"),
        ("flash.full.of_peak < 0.985", "the share of peak of “flash full” is less than 98.5 %"),
        ("vital.turns == 1", "“vital turns” equals 1"),
        ("vital.turns != 0", "“vital turns” differs from 0"),
        # sums: read from left to right, in brackets where they are not
        ("vital.turns + vital.seats - 1 < 0.6 * (steps.m + 2)",
         "“vital turns” plus “vital seats” minus 1 is less than 0.6 times (“steps m” plus 2)"),
        ("vital.turns - (vital.seats - 1) > 0", "“vital turns” minus (“vital seats” minus 1) is more than 0"),
        ("(vital.turns - 1) * 2 > 0", "(“vital turns” minus 1) times 2 is more than 0"),
        ("-vital.turns < 2", "minus “vital turns” is less than 2"),
        ("-(vital.turns - 1) < 2", "minus (“vital turns” minus 1) is less than 2"),
        ("abs(vital.turns) < 2", "the size of “vital turns” is less than 2"),
        ("vital.turns > max(0.85, vital.seats, steps.m)",
         "“vital turns” is more than the largest of 0.85, “vital seats” and “steps m”"),
        ("vital.turns < min(vital.seats, steps.m)",
         "“vital turns” is less than the smallest of “vital seats” and “steps m”"),
        # together, or one of them
        ("vital.turns < 2 and vital.seats > 3", "“vital turns” is less than 2; “vital seats” is more than 3"),
        ("vital.turns < 2 or vital.seats > 3", "“vital turns” is less than 2, or “vital seats” is more than 3"),
        # other kinds of what is recorded
        ("traffic.gb > 3", "the number of bytes moved by “traffic” is more than 3 GB"),
        ("power.power_w.max > power.power_w.first",
         "the largest power w of “power” is more than the first power w of “power”"),
        ("one.us > one.wait", "the time of “one” is more than “one wait”"),
    ],
)  # fmt: skip
def test_a_condition_in_words(condition, words):
    assert told(condition) == words


def test_what_a_page_defines_is_called_what_the_page_says_that_it_is():
    assert (
        told("gain > 2", gain="our kernel over the library") == "“our kernel over the library” is more than 2"
    )
    assert told("gain > 2", gain="") == "“gain” is more than 2"
    assert told("gain > 2", gain="long " * 40) == "“gain” is more than 2"


# Whoever swaps, turns round or drops something in the sentence tells two of these alike.
DIFFERENT = [
    *(f"flash.full.us {sign} {side}" for sign in ("<", "<=", ">", ">=", "==", "!=") for side in ("sdpa.full.us", "3")),
    *(f"sdpa.full.us {sign} flash.full.us" for sign in ("<", "<=", ">", ">=", "==", "!=")),
    *(f"flash.full.us / sdpa.full.us {sign} {k}" for sign in ("<", "<=", ">", ">=", "==", "!=") for k in (2, 3)),
    *(f"abs(flash.full.us / sdpa.full.us - 1) {sign} 0.2" for sign in ("<", ">")),
    *(f"abs(flash.full.us - sdpa.full.us) {sign} 2" for sign in ("<", ">", "==")),
    "1 < flash.full.us / sdpa.full.us < 2",
    "1 < flash.full.us < 2",
    *(f"vital.turns {one} vital.seats {two} steps.m > 1" for one in "+-*" for two in "+-*"),
    *(f"vital.turns {one} (vital.seats {two} steps.m) > 1" for one in "+-*" for two in "+-*"),
    *(f"{function}(vital.turns, vital.seats) > 1" for function in ("min", "max")),
    "vital.turns > 1 and vital.seats > 1",
    "vital.turns > 1 or vital.seats > 1",
    *(f"flash.full.{asked} > 0.5" for asked in ("us", "tflops", "of_peak", "error", "allowed", "power_w", "host_us")),
]  # fmt: skip


def test_no_two_conditions_are_told_alike():
    meant = {ast.dump(ast.parse(condition)): condition for condition in DIFFERENT}  # a + b * c, a + (b * c)
    words: dict[str, str] = {}
    for condition in meant.values():
        assert words.setdefault(told(condition), condition) == condition


def test_what_is_no_condition_of_this_record_is_refused():
    with pytest.raises(UnknownName, match=r"unknown value 'flash\.fall\.us'"):
        told("flash.fall.us > 2")
    with pytest.raises(BadExpression):
        told("flash.full.us > [1]")
