"""What a mentor holds the room's sheets against is worked out again from what the sheets give."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_site.sessions.session import load_sessions

ROOT = Path(__file__).parents[2]
CRAFT = ROOT / "handbook" / "06_delivery_craft"


def prose(name):
    """The Markdown of a chapter."""
    lines = (CRAFT / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line[2:] if line.startswith("# ") else line.lstrip("#") for line in lines)


def section(text, heading):
    """What stands below a heading, down to the next one."""
    (_, _, after) = text.partition(f"{heading}\n")
    assert after, f"no heading {heading!r}"
    return re.split(r"^#", after, maxsplit=1, flags=re.MULTILINE)[0]


def tables(text):
    """Every table as its rows of cells, without head and rule."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [
        [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        for table in found
    ]


def numbers(cells):
    return [float(cell.replace(" ", "")) for cell in cells]


# --- W4 ---------------------------------------------------------------------------------------------

W4 = prose("w4_serving.py")
SHEETS, KEY = section(W4, "## The sheets, to print"), section(W4, "### The answer key")
PAGE = 16


def wrong_rows(sheet, key, ridges=(989 / 4.8, 989 / 3.35)):
    asked = [int(row[0]) for row in sheet]
    wrong = [] if asked == [int(row[0]) for row in key] else ["not the rows of the sheet"]
    for m, *printed, h200, h100 in key:
        rows = int(m)
        operations, carried = 2 * rows * 8192 * 8192, 2 * (2 * rows * 8192 + 8192 * 8192)
        intensity = operations / carried
        expected = [operations, carried, round(intensity, 1)]
        sides = ["left" if intensity < ridge else "right" for ridge in ridges]
        if numbers(printed) != expected or [h200, h100] != sides:
            wrong.append(m)
    return wrong


def wrong_pages(sheet, key):
    wrong = [name for (name, *_), (other, *_) in zip(sheet, key, strict=False) if name != other]
    total = [0.0] * 4
    for (name, tokens, *_), (_, *printed) in zip(sheet, key, strict=False):
        pages = -(-int(tokens) // PAGE)
        row = [int(tokens), 2048 - int(tokens), pages, pages * PAGE - int(tokens)]
        total = [a + b for a, b in zip(total, row, strict=True)]
        wrong += [name] * (numbers(printed) != row)
    last, *printed = key[-1]
    return wrong + ["all"] * (last != "all" or numbers(printed) != total or len(key) != len(sheet) + 1)


def test_the_rows_of_w4():
    sheet, key = tables(SHEETS)[0], tables(KEY)[0]

    assert wrong_rows(sheet, key) == []
    assert wrong_rows(sheet, [*key[:2], ["64", "1", "2", "3", "left", "left"], *key[3:]]) == ["64"]
    assert wrong_rows(sheet, [*key[:3], [*key[3][:-1], "right"], *key[4:]]) == ["256"]
    assert wrong_rows(sheet, key[1:]) == ["not the rows of the sheet"]


def test_the_pages_of_w4():
    sheet, key = tables(SHEETS)[1], tables(KEY)[1]

    assert wrong_pages(sheet, key) == []
    assert wrong_pages(sheet, [key[0], ["B", "100", "1948", "6", "12"], *key[2:]]) == ["B"]


def test_the_block_tables_of_w4():
    (order,) = re.findall(r"page numbers ([\d, ]+) are handed\s+out", SHEETS)
    pages = [int(number) for number in order.split(",")]
    key = KEY.replace("\n", " ")  # a list may go on in the next line
    printed = dict(re.findall(r"([AB]) ((?:\d, )+\d)", key))
    tokens = {name: int(count) for name, count, *_ in tables(SHEETS)[1]}
    places = re.findall(r"[Tt]oken (\d+) of ([AB]) (?:is )?on page (\d+), at place (\d+)", key)

    for name in ("A", "B"):
        need = -(-tokens[name] // PAGE)
        taken, pages = pages[:need], pages[need:]
        assert printed[name] == ", ".join(map(str, taken))
        for token, _, page, place in (row for row in places if row[1] == name):
            assert (taken[int(token) // PAGE], int(token) % PAGE) == (int(page), int(place))
    assert len(places) >= 2


def test_the_receipt_of_w4():
    sheet, key = tables(SHEETS)[-1], tables(KEY)[2]
    operators, together, one = key[:-2], key[-2], key[-1]
    kernel = fenced("def add_rmsnorm(")
    touched = re.findall(r"tl\.(load|store)\((\w)_ptr", kernel)

    assert [row[0] for row in sheet] == [row[0] for row in key]
    assert [int(together[i]) for i in (1, 2)] == [sum(int(row[i]) for row in operators) for i in (1, 2)]
    assert int(together[3]) == int(together[1]) + int(together[2])
    assert [int(one[1]), int(one[2]), int(one[3])] == [
        sum(how == "load" for how, of in touched if of != "g"),
        sum(how == "store" for how, _ in touched),
        len([of for _, of in touched if of != "g"]),
    ]


def test_the_slips_of_w4_are_those_of_its_map():
    (requests,) = re.findall(
        r"^REQUESTS, SEATS = \(([\d, ]+)\), 4", (CRAFT / "w4_serving.py").read_text(), re.M
    )
    step = next(s for s in load_sessions(ROOT)["w4"].steps() if "slips" in s.title)

    assert f"({requests} steps)" in step["fingers"]


# --- the kernel that they type ------------------------------------------------------------------------


def fenced(holding):
    """The one piece of Python of W4's chapter that holds these words."""
    (found,) = [
        code for code in re.findall(r"^```python\n(.*?)^```", W4, re.MULTILINE | re.DOTALL) if holding in code
    ]
    return found


def errors_of(kernel, folder):
    """The worst error of every line that the check prints, run in Triton's interpreter."""
    (folder / "add_rmsnorm.py").write_text(kernel)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "add_rmsnorm.py"],
        cwd=folder,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("s is x + r: True") == 4
    return [float(error) for error in re.findall(r"worst error: (\S+)", done.stdout)]


# What the chapter prints needs nothing else of ours.
OF_THE_CHAPTER = pytest.mark.kept("handbook/06_delivery_craft/w4_serving.py")


@pytest.fixture(scope="module")
def triton():
    pytest.importorskip("torch")
    return pytest.importorskip("triton")


@OF_THE_CHAPTER
def test_the_kernel_of_w4_is_right_on_all_four(triton, tmp_path):
    fp32, whole, fp16, large = errors_of(fenced("def add_rmsnorm("), tmp_path)

    assert max(fp32, whole) < 1e-6
    assert max(fp16, large) < 1e-3


@OF_THE_CHAPTER
def test_dividing_by_the_seats_fails_where_the_chapter_says(triton, tmp_path):
    kernel = fenced("def add_rmsnorm(")
    fp32, whole, _, _ = errors_of(kernel.replace("/ N  # by N", "/ BLOCK  # by N"), tmp_path)

    assert fp32 > 1e-3
    assert whole < 1e-6


@OF_THE_CHAPTER
def test_squares_in_fp16_fail_at_ten_times_the_input_only(triton, tmp_path):
    kernel = fenced("def add_rmsnorm(")
    widened = "    s = s.to(tl.float32)  # fp16 ends at 65 504\n"
    assert widened in kernel

    fp32, whole, fp16, large = errors_of(kernel.replace(widened, ""), tmp_path)

    assert max(fp32, whole) < 1e-6
    assert fp16 < 1e-3
    assert large == 1.0  # every y is 0


@OF_THE_CHAPTER
def test_the_planted_file_has_the_second_fault(triton, tmp_path):
    whole, planted = fenced("def add_rmsnorm("), fenced("mean.to(tl.float32)")
    body = re.compile(r"@triton\.jit\n.*?\n\n\n", re.DOTALL)
    fp32, even, fp16, large = errors_of(body.sub(lambda _: f"{planted}\n\n", whole, count=1), tmp_path)

    assert max(fp32, even) < 1e-6
    assert fp16 < 1e-3
    assert large == 1.0


# --- W2: a bit that flips -------------------------------------------------------------------------------


TRAYS, TILES = 4, 16


def played(crew, cook, slow=1):
    """A crew and a cook at a ring of trays: tiles eaten before they were there, how it ends, and tray 0's bits.

    Args:
        crew, cook: the bit that each names in a round.
        slow: the crew moves in every so many ticks.
    """
    free, full, holds = [0] * TRAYS, [0] * TRAYS, {}
    brought, eaten, stale, bits = 0, 0, [], []
    for tick in range(10 * TILES):
        if eaten < TILES and full[eaten % TRAYS] != cook(eaten // TRAYS):
            stale += [eaten] * (holds.get(eaten % TRAYS) != eaten)
            free[eaten % TRAYS] ^= 1
            bits += [(eaten, free[0], full[0])] * (eaten % TRAYS == 0)
            eaten += 1
        if tick % slow == 0 and brought < TILES and free[brought % TRAYS] != crew(brought // TRAYS):
            holds[brought % TRAYS] = brought
            full[brought % TRAYS] ^= 1
            brought += 1
    return stale, "done" if eaten == TILES else "stands still", bits


def test_the_bits_of_w2_are_those_of_the_ring():
    rows = tables(section(prose("w2_hopper.py"), "### A bit that flips"))[0]
    names_free, names_full = [int(row[1][0]) for row in rows], [int(row[4]) for row in rows]
    flips_free, flips_full = ([tuple(map(int, row[i].split(" → "))) for row in rows] for i in (2, 5))

    stale, end, bits = played(lambda j: names_free[j], lambda j: names_full[j])

    assert (stale, end) == ([], "done")
    assert bits == [
        (int(row[0]), free, full)
        for row, (_, free), (_, full) in zip(rows, flips_free, flips_full, strict=True)
    ]
    for flips in (flips_free, flips_full):
        assert flips[0][0] == 0
        assert all(before[1] == after[0] for before, after in itertools.pairwise(flips))
        assert all(before != after for before, after in flips)


def test_a_bit_that_stands_still_does_what_w2_says():
    def right_crew(j):
        return 1 - j % 2

    def right_cook(j):
        return j % 2

    assert played(right_crew, right_cook, slow=3)[:2] == ([], "done")
    assert played(right_cook, right_cook)[:2] == ([], "stands still")  # a crew without `^ 1`
    # A cook who names 0 for ever, before the crate has come and after.
    assert played(right_crew, lambda j: 0, slow=3)[0][:1] == [4]
    assert played(right_crew, lambda j: 0)[1] == "stands still"


# --- W6: an hour for everybody --------------------------------------------------------------------------


def test_everybody_speaks_in_the_hour_of_talks():
    steps = [step for step in load_sessions(ROOT)["w6"].steps() if step.title.startswith("Talks")]
    runs = []  # talks may go on from one step into the next, and not across a break
    for step in steps:
        if runs and runs[-1][-1].end == step.start:
            runs[-1].append(step)
        else:
            runs.append([step])
    lengths = [sum(step.minutes for step in run) for run in runs]
    rows = tables(section(prose("w6_frontier.py"), "### An hour for everybody"))[0]

    assert [int(row[0]) for row in rows] == [6, 12, 20]
    for people, talks, minutes, *_ in rows:
        count, each = int(re.findall(r"\d+", talks)[-1]), int(minutes.split(":")[0])
        rooms = 1 if "one room" in talks else 2
        assert rooms * count >= int(people)
        assert sum(length // each for length in lengths) >= count
    for people, _, _, _, talks, minutes, _ in rows[1:]:
        assert 2 * int(talks) >= int(people)  # in pairs
        assert sum(length // int(minutes.split(":")[0]) for length in lengths) >= int(talks)
    assert 40 <= sum(lengths) <= 41  # and a minute for sheet zero
