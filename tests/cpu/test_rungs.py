"""Rungs side by side: every line that says an idea is there and holds what it should, and a page has all of them."""

import functools
import html
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.pages.blocks import DirectiveError, parse
from course_site.pages.rungs import read
from course_site.site.render.reading_time import minutes
from course_site.site.render.rungs import rungs

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/workshops/w3_rungs.toml"
BLOCK = """\
/// rungs | docs/workshops/w3_rungs.toml
alt: side by side
left: Left
right: Right
unsaid: The tool does it.
rest: The rest
///
"""


@functools.cache
def rendered():
    """The HTML of the block, and what the notebook has in its place."""
    made = {}

    def slot(raw, words):
        made.update(raw=raw, words=words)
        return "slot0ofw3token"

    writer = SimpleNamespace(
        course=SimpleNamespace(root=ROOT), plain=str, shared=lambda name: name, slot=slot
    )
    (block,) = parse(BLOCK)
    made["token"] = rungs(writer, block)
    return SimpleNamespace(**made)


def test_every_idea_is_in_lines_that_exist_and_hold_it():
    ladder = read(ROOT, FILE)  # refuses a range that does not hold what it should

    assert [rung.name for rung in ladder.rungs] == (
        ["helion", "triton", "cutile", "tilelang", "gluon", "cute_dsl", "cutlass", "cuda"]
    )
    assert list(ladder.ideas) == ["tile", "walk", "fetch", "wait", "multiply", "round", "store"]
    silent = {rung.name: [idea for idea, parts in rung.ideas.items() if not parts] for rung in ladder.rungs}
    # What a language does not say is known: who waits, above TileLang, and Helion's rounding.
    assert {name: ideas for name, ideas in silent.items() if ideas} == {
        "helion": ["wait", "round"], "triton": ["wait"], "cutile": ["wait"], "tilelang": ["wait"],
    }  # fmt: skip


def test_all_that_runs_on_the_card_is_shown_once_an_idea_or_the_rest():
    ladder = read(ROOT, FILE)
    for rung in ladder.rungs:
        said = {(part.file, n) for parts in rung.ideas.values() for part in parts for n in part.numbers}
        rest = {(part.file, n) for part in rung.rest for n in part.numbers}

        assert not said & rest
    (triton,) = (rung for rung in ladder.rungs if rung.name == "triton")
    kernel = (ROOT / "src/course_kernels/gemm/k05_triton.py").read_text().splitlines()
    begin, end = kernel.index("# region kernel") + 1, len(kernel) - kernel[::-1].index("# endregion") - 1
    shown = {n for parts in (*triton.ideas.values(), triton.rest) for part in parts for n in part.numbers}
    left = [line for n, line in enumerate(kernel[begin:end], begin + 1) if line.strip() and n not in shown]
    assert left == []


def ladder_of(folder, **changes):
    """A ladder of two rungs in a folder; `changes` are texts of the file by what they take the place of."""
    (folder / "src").mkdir()
    (folder / "src/a.py").write_text("def f():\n    load()\n    # why\n    store()\n\n\ndef g():\n    pass\n")
    (folder / "src/b.cu").write_text("void f() {\n  load();\n  wait();\n}\n")
    text = (
        'folder = "src"\nfirst = ["a", "b"]\n[idea]\nfetch = "Fetch"\nwait = "Wait"\n'
        '[rung.a]\ntitle = "A"\nshown = [{ file = "a.py", lines = "1-4" }]\n'
        'fetch = [{ file = "a.py", lines = "2", says = "load()" }]\n'
        '[rung.b]\ntitle = "B"\nshown = [{ file = "b.cu", lines = "1-4" }]\n'
        'fetch = [{ file = "b.cu", lines = "2", says = "load" }]\n'
        'wait = [{ file = "b.cu", lines = "3", says = "wait" }]\n'
    )
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "rungs.toml").write_text(text)
    return folder / "rungs.toml"


def test_what_says_no_idea_is_the_rest_and_a_brace_alone_is_not(tmp_path):
    a, b = read(tmp_path, ladder_of(tmp_path)).rungs

    assert [(part.first, part.last) for part in a.rest] == [(1, 1), (3, 4)]
    assert [(part.first, part.last) for part in b.rest] == [(1, 1)]


BAD = {
    "moved": (
        {'lines = "2", says = "load()"': 'lines = "3", says = "load()"'},
        "a.py 3 does not hold 'load()': move",
    ),
    "past the end": ({'lines = "1-4"': 'lines = "1-9"'}, "a.py has 8 lines, and none such as '1-9'"),
    "turned": ({'lines = "1-4"': 'lines = "4-1"'}, "a.py has 8 lines, and none such as '4-1'"),
    "not shown": (
        {'lines = "2", says = "load()"': 'lines = "7", says = "def g"'},
        "a.py 7-7 is not in `shown`",
    ),
    "no file": ({'file = "a.py", lines = "2"': 'file = "c.py", lines = "2"'}, "there is no file src/c.py"),
    "elsewhere": (
        {'file = "a.py", lines = "2"': 'file = "../a.py", lines = "2"'},
        "src/../a.py: a page shows files below",
    ),
    "no words": ({', says = "load()"': ""}, "expected file, lines, says"),
    "unknown idea": ({"wait = [": "rest = ["}, "[rung.b] has rest; ideas: fetch, wait"),
    "no title": ({'title = "A"\n': ""}, "[rung.a] needs a title"),
    "no folder": ({'folder = "src"\n': ""}, "`folder` names the folder of the sources, got None"),
    "first": ({'["a", "b"]': '["a", "c"]'}, "`first` names two of a, b, got ['a', 'c']"),
    "twice": ({'["a", "b"]': '["a", "a"]'}, "`first` names two of a, b"),
    "no TOML": ({"[idea]": "[idea"}, "rungs.toml: cannot be read"),
    "no ideas": ({'[idea]\nfetch = "Fetch"\nwait = "Wait"\n': ""}, "needs the tables [idea] and [rung.NAME]"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_a_ladder_is_one_line(case, tmp_path):
    changes, wanted = BAD[case]
    with pytest.raises(DirectiveError, match=re.escape(wanted)) as caught:
        read(tmp_path, ladder_of(tmp_path, **changes))
    assert "\n" not in str(caught.value)


def test_a_page_has_all_rungs_and_shows_two_without_a_script():
    made = rendered()
    sides = re.findall(r'<div class="side highlight no-copy" data-rung="(\w+)"( hidden)?>', made.raw)

    assert len(sides) == 8 * 8  # rungs, times ideas and the rest
    assert {name for name, hidden in sides if not hidden} == {"triton", "cuda"}
    assert made.raw.count("The tool does it.") == 5
    assert made.raw.count("<option") == 16
    assert re.findall(r'<option value="(\w+)" selected', made.raw) == ["triton", "cuda"]
    words = html.unescape(re.sub(r"<[^>]*>", "", made.raw))
    for line in (
        "acc = tl.dot(a, b, acc, input_precision",
        "wait(&full[at % STAGES], at / STAGES & 1);",
        "T.gemm(a, b",
    ):
        assert line in words


def test_lines_lose_their_common_margin_and_nothing_else():
    made = rendered()
    (dot,) = (code for code in re.findall(r"<pre><code>(.*?)</code></pre>", made.raw, re.DOTALL) if "tl.dot" in code or
              "dot</span>" in code)  # fmt: skip
    place = next(
        code
        for code in re.findall(r"<pre><code>(.*?)</code></pre>", made.raw, re.DOTALL)
        if "part_at" in code
    )

    plain = html.unescape(re.sub(r"<[^>]*>", "", dot))
    assert plain.startswith("acc = tl.dot(")
    lines = html.unescape(re.sub(r"<[^>]*>", "", place)).split("\n")
    assert lines[-1] == "}"
    assert lines[-2].startswith("          SPLIT ?")


def test_the_shorter_kernel_counts_as_read_and_the_notebook_has_two():
    made = rendered()
    taken, folded = minutes(made.token, {made.token: made.raw}, {made.token: made.words})
    count = int(re.search(r'data-lines="(\d+)"', made.raw)[1])

    assert 30 < count < 60
    assert (taken.reading, folded.reading) == (pytest.approx(count / 10), 0)
    assert "tl.dot(a, b, acc" in made.words
    assert "T.gemm" not in made.words
