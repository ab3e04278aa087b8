"""Labs that are played with: other right answers pass, odd ones are told what is odd, the books are the engine's."""

import functools
import random
from pathlib import Path

import pytest

from course_labs.interactive_cases import Answer, PlaysGrader, Slip, counted, grade, has_plays
from course_labs.lab import find_lab, find_labs, load_file, same_lines
from course_labs.protocol.messages import Played
from course_labs.verdict import RIGHT
from course_labs.worker.plays import plain, takes_arrays, told
from course_models.serving.block_manager import OutOfPages, Pages

ROOT = Path(__file__).parents[2]
LAB = find_lab(ROOT, "paged")
SOLVED = LAB.solution("python").read_text()
by_the_lab = pytest.mark.kept(of=lambda **_: [LAB.folder], but=["labs/*"])
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}


def body_of(name, text=SOLVED):
    """A function, or a class, of the solution, as text."""
    (part,) = [part for part in text.split("\n\n\n") if part.startswith((f"def {name}(", f"class {name}:"))]
    return part.rstrip("\n")


def with_other(**parts):
    """The solution with other functions in it; `head` goes before them all."""
    head, text = parts.pop("head", ""), SOLVED
    for name, part in parts.items():
        text = text.replace(body_of(name), part.strip("\n"))
    return f"{head}\n{text}"


@functools.cache
def grader():
    return PlaysGrader(LAB, "python", environment=NO_GPU)


def verdict_on(tmp_path, text):
    file = tmp_path / "paged.py"
    file.write_text(text)
    return grader().verdict(file, 60)


# --- right, and otherwise ------------------------------------------------------------------------

IN_NUMPY = {
    "head": "import numpy as np\n",
    "keys": """
def keys(pages, table, length):
    t = np.arange(length)  # the last page is not full: never go past the length
    return pages[table[t // pages.shape[1]], t % pages.shape[1]]
""",
    "append": """
def append(pages, table, length, key, take):
    size = pages.shape[1]
    if length % size == 0:
        table[length // size] = take()
    pages[table[length // size], length % size] = key
""",
}
OTHERS = {
    "in NumPy, as in the room": IN_NUMPY,
    "page by page, cut before anything is read": {
        "keys": """
def keys(pages, table, length):
    size, rows = len(pages[0]), []
    for entry in range((length + size - 1) // size):
        rows.extend(pages[table[entry]][: length - entry * size])
    return tuple(rows)
"""
    },
    "a heap of free pages, a dictionary of counts": {
        "head": "import heapq\n",
        "Pages": """
class Pages:
    def __init__(self, count):
        self.heap, self.held = list(range(count)), {}

    def take(self):
        if self.heap:
            page = heapq.heappop(self.heap)
            self.held[page] = 1
            return page

    def hold(self, page):
        self.held[page] += 1

    def give_back(self, page):
        if page not in self.held:
            raise ValueError
        self.held[page] -= 1
        if not self.held[page]:
            heapq.heappush(self.heap, page)
            del self.held[page]
""",
    },
    "counts alone, no list": {
        "Pages": """
class NotHeld(ValueError):
    pass


class Pages:
    def __init__(self, pages):
        self.n = [0] * pages

    def take(self):
        for page, n in enumerate(self.n):
            if n == 0:
                self.n[page] = 1
                return page

    def hold(self, page):
        self.n[page] += 1

    def give_back(self, page):
        if self.n[page] < 1:
            raise NotHeld(page)
        self.n[page] -= 1
"""
    },
    "pages compared whole, and steps by who leaves": {
        "shared": """
def shared(mine, theirs, page_tokens):
    n = 0
    while True:
        end = (n + 1) * page_tokens
        if end >= len(mine) or end > len(theirs) or mine[:end] != theirs[:end]:
            return n
        n += 1
""",
        "runs_out": """
def runs_out(requests, pages, page_tokens):
    there, step = [list(r) for r in requests], 0
    while there:
        step += 1
        there = [[tokens + 1, left - 1] for tokens, left in there]
        if sum((tokens - 1) // page_tokens + 1 for tokens, _ in there) > pages:
            return step
        there = [one for one in there if one[1]]
    return 0
""",
    },
    "who gives way, by groups of growing size": {
        "head": "from itertools import chain, combinations\n",
        "give_way": """
def give_way(tables, lengths, wanted):
    everybody = range(len(tables))
    groups = chain.from_iterable(combinations(everybody, n) for n in range(len(tables), -1, -1))

    def free(group):
        stay = set(chain.from_iterable(tables[i] for i in everybody if i not in group))
        return len(set(chain.from_iterable(tables)) - stay)

    return min((g for g in groups if free(g) >= wanted), key=lambda g: sum(lengths[i] for i in g))
""",
    },
}


@by_the_lab
@pytest.mark.parametrize("how", OTHERS)
def test_another_right_answer_is_right(tmp_path, how):
    text = with_other(**OTHERS[how])
    assert text.count("def ") > 5
    verdict = verdict_on(tmp_path, text)

    assert (verdict.found, verdict.alone.found, verdict.code) == (RIGHT, RIGHT, 0), verdict.text


# --- odd ones, each told what is odd ---------------------------------------------------------------

ODD = {
    "no row": (
        "keys",
        "def keys(pages, table, length):\n    return 3\n",
        "wrong result: keys: expected a list of rows, got 3",
    ),
    "another kind": (
        "keys",
        "def keys(pages, table, length):\n    return {1}\n",
        "wrong result: keys: expected a list of rows, got {1}",
    ),
    "rows from nowhere": (
        "keys",
        "def keys(pages, table, length):\n    return [[0, 0]] * length\n",
        "wrong row: token 0 came from no page of the pool; it is on page 0, place 0",
    ),
    "keys that write": (
        "keys",
        "def keys(pages, table, length):\n    (row,) = pages.pop(table[0])\n    return [row]\n",
        "input modified: the pages, or the table, are not what they were",
    ),
    "a longer pool": (
        "append",
        "def append(pages, table, length, key, take):\n    table[0] = take()\n    pages.append([key])\n",
        "wrong result: the pool, or the table, has a different shape now",
    ),
    "a pool of something else": (
        "append",
        "def append(pages, table, length, key, take):\n    table[0] = take()\n    pages[0] = {1}\n",
        "wrong result: the pool, or the table, has a different shape now",
    ),
    "two pages at once": (
        "append",
        "def append(pages, table, length, key, take):\n    table[0] = take()\n    take()\n",
        "page too many: token 0 opens one page, and take() was called 2 times",
    ),
    "yes": (
        "shared",
        "def shared(mine, theirs, page_tokens):\n    return True\n",
        "wrong result: shared: expected a whole number, got True",
    ),
    "an error of its own": (
        "runs_out",
        "def runs_out(requests, pages, page_tokens):\n    return requests[99]\n",
        "crashed: line",
    ),
    "torch": ("shared", "def shared(*_):\n    import torch\n", "not yours: line"),
    "who is not there": (
        "give_way",
        "def give_way(tables, lengths, wanted):\n    return [7]\n",
        "wrong result: [7]: expected sequences by their place, 0 to 0",
    ),
    "twice": (
        "give_way",
        "def give_way(tables, lengths, wanted):\n    return [0, 0]\n",
        "wrong: [0, 0]: the same one leaves twice",
    ),
}


@by_the_lab
@pytest.mark.parametrize("how", ODD)
def test_an_odd_answer_is_told_what_is_odd(tmp_path, how):
    name, part, said = ODD[how]
    verdict = verdict_on(tmp_path, with_other(**{name: part}))
    verdict = verdict.alone if name == "give_way" else verdict

    assert f": {said}" in verdict.text.splitlines()[0], verdict.text
    assert verdict.text.splitlines()[-1].startswith("next: ")


def test_a_give_back_that_fails_is_told_with_its_line(tmp_path):
    broken = body_of("Pages").replace("self.holders[page] -= 1", "self.holders[page] -= 1 // 0")
    assert (
        verdict_on(tmp_path, with_other(Pages=broken))
        .text.splitlines()[0]
        .endswith("ZeroDivisionError: integer division or modulo by zero")
    )


def test_what_only_chance_finds_is_found(tmp_path):
    """Wrong from the fourth holder on: no plan has so many."""
    late = body_of("Pages").replace("self.holders[page] += 1", "self.holders[page] += self.holders[page] < 3")
    assert late != body_of("Pages")
    verdict = verdict_on(tmp_path, with_other(Pages=late))
    assert "steps by chance: held by two: page" in verdict.text, verdict.text


# --- the grader's own books ------------------------------------------------------------------------


class Engine:
    """The course's allocator, asked as a student's class is."""

    def __init__(self):
        self.pools = {}

    def make(self, name, count, at=0):
        self.pools[at] = Pages(count, 1)

    def do(self, name, *given, may="", at=0):
        pages = self.pools[at]
        try:
            if name == "hold":
                pages._holders[given[0]] += 1
                return Answer()
            if name == "give_back":
                return Answer(pages.give_back(given))
            return Answer(pages.take())
        except OutOfPages:
            return Answer()
        except ValueError:
            return Answer(raised=may)


def test_the_course_s_own_allocator_plays_by_the_same_books():
    truth = load_file(LAB.folder / "truth.py", "truth")
    for play in truth.allocators():
        play.run(Engine(), random.Random(1))


def test_a_slip_of_the_course_s_own_allocator_would_be_seen():
    class Careless(Engine):
        def do(self, name, *given, may="", at=0):
            return Answer() if name == "hold" else super().do(name, *given, may=may, at=at)

    truth = load_file(LAB.folder / "truth.py", "truth")
    with pytest.raises(Slip, match=r"page 0 was given to C, and B still holds it"):
        truth.allocators()[3].run(Careless(), random.Random(1))


def test_the_six_slips_come_out_as_the_answer_says():
    """The pencil's part of the last stage: 18 pages reserved, 8 are enough, and with 7 one is missing in step 4."""
    truth = load_file(LAB.folder / "truth.py", "truth")
    slips = [(1, most) for most in (3, 9, 4, 6, 2, 5)]
    by_step = [truth.needed(slips, step, 4) for step in range(1, 10)]

    assert len(slips) * truth.in_use(10, 4) == 18
    assert (max(by_step), by_step.index(8) + 1) == (8, 4)


# --- the machinery -----------------------------------------------------------------------------------


def test_only_such_labs_are_played_with():
    assert [name for name, lab in find_labs(ROOT).items() if has_plays(lab)] == [
        "layouts",
        "nvfp4",
        "paged",
        "taste",
        "verify",
        "weak_judge",
    ]


def test_a_value_comes_over_plainly():
    import numpy as np

    assert plain((1, [np.float64(2.5), np.arange(2)], "a", None)) == [1, [2.5, [0, 1]], "a", None]
    assert told({1: 2}) == Played(strange="{1: 2}")
    assert told(np.array([1])[0]) == Played(1)
    assert Answer(strange="x" * 99).told() == "x" * 60
    assert (counted(1, "page"), counted(0, "page"), counted(2, "page")) == ("1 page", "0 pages", "2 pages")


def test_a_file_that_imports_numpy_is_known(tmp_path):
    file = tmp_path / "mine.py"
    assert not takes_arrays(file)
    for text, takes in (
        ("import numpy as np\n", True),
        ("from numpy import arange\n", True),
        ("# numpy\n", False),
    ):
        file.write_text(text)
        assert takes_arrays(file) is takes


def test_every_lab_can_be_graded_by_the_same_command():
    ring = find_lab(ROOT, "ring")
    (verdict,) = grade(ring, [ring.snapshot("python", 4)], environment=NO_GPU)
    assert same_lines(ring.prints("python", 4), verdict.text)
