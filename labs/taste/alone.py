"""The last task: six kernels are sorted into right, wrong, cheating and slow, and rows prove it."""

import math
import random
from pathlib import Path
from typing import Any

from course_labs.hints import NEXT_OF_NONE
from course_labs.interactive_cases import Asked, Play, Slip
from course_labs.lab import load_file

SIX = Path(__file__).with_name("six.py")
WORDS = ("right", "wrong", "cheats", "slow")
SORTED = ("wrong", "right", "cheats", "wrong", "slow", "cheats")
MOST_ROWS, LONGEST_ROW, LARGEST = 8, 4096, 3.4e38
TWICE = 4  # numbers read and written for each of a row, where 2 are the least

NEXT_OF_A_PAIR = 'a word and a list of rows: ["slow", [[0.5, 0.25]]].'
NEXT_OF_WORDS = "one of right, wrong, cheats, slow."
NEXT_OF_ROWS = (
    "rows are lists of finite numbers that 32 bits hold, one to 4096 of them in each, and eight rows at most."
)
NEXT_OF_NO_PROOF = "nobody can prove with rows that something is right: return an empty list with this word."
NEXT_OF_RIGHT = (
    "the careless judge asked three sizes, and numbers from -1 to 1. What did it not ask? What do counts say?"
)
NEXT_OF_A_CHEAT = (
    "it is off there, and has not read the row: who does not read it does not try. What is that called?"
)
NEXT_OF_AN_ATTEMPT = (
    "it is off there, and has read every number: it tries, and errs. What is the word for that?"
)
NEXT_OF_SLOW = (
    "every answer is right there. How many numbers does it read and write, and how many are the least?"
)
NEXT_OF_ENOUGH = (
    "slow is what reads and writes at least twice the least, one read and one write for each number."
)
NEXT_OF_BLOCK = (
    "it fills the place behind the end of a row. When is there one, and when does what is in it count?"
)
NEXT_OF_LARGE = "e to the x ends somewhere, above and below. For which rows is that reached?"
NEXT_OF_UNEVEN = (
    "which answer does it give for a long row, whatever is in it? Which row has quite another one?"
)
NEXT_OF_KEPT = (
    "it looks at something in the row before it decides. Which two rows look the same to it, and differ?"
)
NEXT_OF_LONG = "up to which size does it go through a row once? It is an argument of your function."
NEXT_OF_NOTHING = "none of your rows shows it: find one that does, or another word."

OF_EACH = (NEXT_OF_BLOCK, NEXT_OF_NOTHING, NEXT_OF_UNEVEN, NEXT_OF_LARGE, NEXT_OF_LONG, NEXT_OF_KEPT)

Outcomes = list[tuple[float, int, int]]


def cases() -> list[Play]:
    """Every kernel as it stands, and then with other blocks and limits."""
    return [
        *(_play(number) for number in range(1, 7)),
        Play("other blocks and limits", with_others, again=2),
    ]


def _play(number: int) -> Play:
    return Play(f"kernel_{number}", lambda asked, _: look_at(asked, number, 8, 64))


def with_others(asked: Asked, draw: random.Random) -> None:
    """Blocks and limits that nobody announced: a row that proves something must be made for them."""
    block = draw.randint(3, 24)
    longest = block * draw.randint(64 // block + 1, 256 // block)
    for number in draw.sample(range(1, 7), 6):
        look_at(asked, number, block, longest)


def look_at(asked: Asked, number: int, block: int, longest: int) -> None:
    """What is said of one kernel, and whether its rows show it."""
    call = f"evidence({number}, {block}, {longest})"
    answer = asked.call("evidence", number, block, longest)
    if answer.value is None and not answer.strange:
        raise Slip("wrong result", f"{call}: expected a word and a list of rows, got None", NEXT_OF_NONE)
    pair = answer.value
    if answer.strange or not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[1], list):
        raise Slip(
            "wrong result", f"{call}: expected a word and a list of rows, got {answer.told()}", NEXT_OF_A_PAIR
        )
    word, rows = pair
    if word not in WORDS:
        raise Slip("wrong result", f"{call}: the word is {str(word)[:40]!r}", NEXT_OF_WORDS)
    if why := complaint_of(rows):
        raise Slip("wrong result", f"{call}: {why}", NEXT_OF_ROWS)
    due = SORTED[number - 1]
    if word == "right":
        if due != "right":
            raise Slip("wrong", f"{call}: kernel_{number} is not right", NEXT_OF_RIGHT)
        if rows:
            raise Slip("wrong result", f"{call}: right, and {len(rows)} rows", NEXT_OF_NO_PROOF)
        return
    six = load_file(SIX, "lab_six")  # anew: one of them keeps what it has worked out
    found = six.tried(six.KERNELS[number - 1], rows, block, longest)
    if word == due and shows(word, found, rows):
        return
    raise Slip(
        "wrong", f"{call}: kernel_{number}, {word}? {seen(found, rows)}", advice(number, word, found, rows)
    )


def complaint_of(rows: list[Any]) -> str:
    """What is wrong with rows, in words; empty where nothing is."""
    if len(rows) > MOST_ROWS:
        return f"{len(rows)} rows"
    for place, row in enumerate(rows):
        if not isinstance(row, list):
            return f"row {place} is no list"
        if not 1 <= len(row) <= LONGEST_ROW:
            return f"row {place} has {len(row)} numbers"
        for x in row:
            if isinstance(x, bool) or not isinstance(x, int | float):
                return f"row {place} holds what is no number"
            if not abs(x) <= LARGEST:
                return f"row {place} holds a number that is not finite, or too large"
    return ""


def is_off(worst: float) -> bool:
    """Whether an answer is wrong; a NaN is."""
    return not worst <= 0.01


def shows(word: str, found: Outcomes, rows: list[list[float]]) -> bool:
    """Whether one of the rows shows what the word says."""
    of_each = list(zip(found, map(len, rows), strict=True))
    if word == "wrong":
        return any(is_off(worst) and reads >= N for (worst, reads, _), N in of_each)
    if word == "cheats":
        return any(is_off(worst) and reads < N for (worst, reads, _), N in of_each)
    return any(not is_off(worst) and reads + writes >= TWICE * N for (worst, reads, writes), N in of_each)


def seen(found: Outcomes, rows: list[list[float]]) -> str:
    """What happened on the row that shows most."""
    if not rows:
        return "there is no row"
    place = max(range(len(rows)), key=lambda n: (is_off(found[n][0]), sum(found[n][1:]) / len(rows[n])))
    worst, reads, writes = found[place]
    off = "NaN" if math.isnan(worst) else f"{worst:.2g}"
    return f"on row {place} of {len(rows[place])} numbers: an error of {off}, {reads} read, {writes} written"


def advice(number: int, word: str, found: Outcomes, rows: list[list[float]]) -> str:
    """What to try next."""
    if word == SORTED[number - 1]:
        return OF_EACH[number - 1]
    if shows("cheats", found, rows):
        return NEXT_OF_A_CHEAT
    if shows("wrong", found, rows):
        return NEXT_OF_AN_ATTEMPT
    if word == "slow":
        return NEXT_OF_ENOUGH
    return NEXT_OF_SLOW if shows("slow", found, rows) else NEXT_OF_NOTHING
