"""The glossary: every word is explained once, hovers where it is used, and stands on its page under an anchor."""

import re
from pathlib import Path
from types import SimpleNamespace

import markdown
import pytest

from course_site.lint.glossary_numbers import faults_of
from course_site.lint.lint import lint_toml
from course_site.pages.glossary import (
    OFTEN,
    GlossaryError,
    Term,
    abbreviations,
    glossary_markdown,
    kitchen_markdown,
    load,
    other_names,
    too_kitchen,
    without_the_trade,
)
from course_site.sessions.course_road import Road
from course_site.site.words import check_names

PATH = Path(__file__).parents[2] / "docs" / "glossary.toml"
WARP = Term("warp", "warp", "32 threads, `in step`.", also=("warps",))
HBM = Term("hbm", "HBM", "The big memory.", see=("warp",))
BLOCK = Term("block", "block", "A team of threads.", hover=False)


def test_the_glossary_of_the_course_loads_and_is_sorted():
    terms = load(PATH)
    names = [term.term.lower() for term in terms]
    assert names == sorted(names)
    assert len(terms) >= 45


def test_the_definitions_are_short_and_hold_no_typed_number():
    assert [str(finding) for finding in lint_toml(PATH.read_text())] == []
    for term in load(PATH):
        assert 20 <= len(term.short) <= 220, term.key
        assert term.short.endswith("."), term.key


def test_its_numbers_are_those_of_the_hardware():
    assert list(faults_of((term.key, f"{term.short} {term.more}") for term in load(PATH))) == []


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("sm", "one of the many processors", "one of the 142 processors"),
        ("sm", "one of the many processors", "one of the hundred processors"),
        ("compute-capability", "9.0", "8.0"),
        ("warpgroup", "128 threads", "64 threads"),
        ("warp", "32 threads", "sixty-four threads"),
        ("warp", "32 threads", "64 threads"),
        ("fp16", "65504", "65536"),
        ("fp8", "448", "480"),
        ("block", "1024", "2048"),
        ("hbm", "large memory", "memory of 80 gigabytes"),
    ],
)
def test_a_number_that_the_hardware_does_not_have_is_refused(key, old, new):
    text = next(term.short for term in load(PATH) if term.key == key)
    assert old in text
    (why,) = faults_of([(key, text.replace(old, new))])
    assert why.startswith(f"{key!r} says ")


@pytest.mark.parametrize(
    "word",
    [
        "kernel",
        "grid",
        "block",
        "thread",
        "warp",
        "lane",
        "SM",
        "HBM",
        "L2",
        "register",
        "occupancy",
        "coalesced",
        "roofline",
        "bandwidth",
        "latency",
        "FLOP",
        "TFLOP/s",
        "FMA",
        "fp32",
        "bf16",
        "fp16",
        "TF32",
        "tile",
        "softmax",
        "rescale",
        "log-sum-exp",
        "NVRTC",
        "PTX",
        "SASS",
        "cubin",
        "Triton",
        "JIT",
        "SDPA",
        "cuDNN",
        "cuBLAS",
        "median",
        "spread",
        "throttle",
        "counter",
        "sector",
        "bank",
        "wavefront",
        "warp shuffle",
        "divergence",
        "atomic",
        "stride",
        "padding",
        "swizzle",
        "ILP",
        "Little's law",
        "throughput",
        "pointer chase",
        "grid-stride loop",
        "CUDA stream",
        "CUDA graph",
        "pinned memory",
        "reduction",
        "arithmetic lane",
        "token",
        "vocabulary",
        "weights",
        "embedding",
        "residual stream",
        "RMSNorm",
        "RoPE",
        "KV cache",
        "GQA",
        "feed-forward",
        "SwiGLU",
        "logits",
        "prefill",
        "decode",
        "batch",
    ],
)
def test_a_word_the_first_pages_need_is_there(word):
    assert word in {term.term for term in load(PATH)}


def test_a_page_gets_the_words_it_uses_as_it_spells_them():
    text = "Warps read HBM. A warp waits."
    assert abbreviations(text, [HBM, WARP]) == (
        "*[HBM]: The big memory.\n*[Warps]: 32 threads, in step.\n*[warp]: 32 threads, in step."
    )


@pytest.mark.parametrize(
    "text",
    [
        "`HBM`",
        "```\nHBM\n```",
        "$HBM$",
        "{{ x.HBM }}",
        "[a](HBM.md)",
        "https://x.org/HBM",
        '<span class="HBM">x</span>',
        "[^HBM]",
        "HBMs and myHBM",
        "hbm",
    ],
)
def test_a_word_outside_prose_is_not_marked(text):
    assert abbreviations(text, [HBM]) == ""


def test_a_plain_english_word_does_not_hover():
    assert abbreviations("A block of minutes.", [BLOCK]) == ""


def test_the_glossary_page_itself_is_not_marked():
    assert abbreviations("HBM\n\n" + glossary_markdown([HBM, WARP]), [HBM, WARP]) == ""


def test_markdown_turns_the_lines_into_hover_definitions():
    text = "Warps and `HBM` and HBM.\n\n" + abbreviations("Warps and HBM.", [HBM, WARP])
    html = markdown.markdown(text, extensions=["abbr"])
    assert '<abbr title="The big memory.">HBM</abbr>' in html
    assert '<abbr title="32 threads, in step.">Warps</abbr>' in html
    assert "<code>HBM</code>" in html


def test_the_glossary_page_has_an_anchor_for_every_word_and_every_neighbour():
    terms = load(PATH)
    html = markdown.markdown(glossary_markdown(terms), extensions=["attr_list", "md_in_html"])
    ids = set(re.findall(r'id="([^"]+)"', html))
    assert ids == {f"term-{term.key}" for term in terms}
    assert set(re.findall(r'href="#([^"]+)"', html)) <= ids


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[a]\nterm = "x"\nshort = "One."\n[a]\nterm = "y"\nshort = "Two."', "occurs twice"),
        (
            '[a]\nterm = "x"\nshort = "One."\n[b]\nterm = "y"\nalso = ["x"]\nshort = "Two."',
            "spelling of both",
        ),
        ('[a]\nterm = "x"\nshort = "One."\nsee = ["b"]', "no such word"),
        ('[a]\nterm = "x"', "lacks 'short'"),
        ('[a]\nterm = "x"\nshort = "One."\nlong = "y"', "unknown field 'long'"),
        ('[a]\nterm = "x"\nshort = "One."\nalso = "xs"', "list of words"),
        ('[a]\nterm = "x"\nshort = "One."\nhover = 1', "true or false"),
        ('[A]\nterm = "x"\nshort = "One."', "is not a key"),
        ("a = 1", "must be a table"),
        ("[a", "not TOML"),
        ('[a]\nterm = "x"\nshort = "One."\nkitchen = 1', "'kitchen' must be its name in the kitchen, not 1"),
        ('[a]\nterm = "x"\nshort = "One."\nretired = ["y"]', "'retired' asks for a name in the kitchen"),
        ('[a]\nterm = "x"\nshort = "One."\npicture = "y"', "'picture' asks for a name in the kitchen"),
        ('[a]\nterm = "x"\nshort = "One."\ncounted = "y"', "'counted' asks for a name in the kitchen"),
    ],
)
def test_a_faulty_glossary_is_refused_in_one_line_with_its_file(tmp_path, text, says):
    path = tmp_path / "glossary.toml"
    path.write_text(text)
    with pytest.raises(GlossaryError) as error:
        load(path)
    assert says in str(error.value)
    assert "glossary.toml" in str(error.value)
    assert "\n" not in str(error.value)


# --- one name per thing ---

PANTRY = Term(
    "hbm", "HBM", "Far.", kitchen="the pantry", picture="pantry", retired=("cellar", "cold store"), at=1
)
COOK = Term("thread", "thread", "One run.", kitchen="a cook", at=0)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("to the pantry", []),
        ("one\ndown to the cellar", [2]),
        ("# The Cellar. A cellar", [1, 1]),
        ("# in the cold\n# store", [1]),
        ("cellars", [1]),
        ("excellar, salt-cellar, pre-cellar-era, cellarage, stall.cellar, cellar.us", []),
    ],
)
def test_a_retired_name_is_found_where_it_stands(text, lines):
    found = list(other_names(text, [COOK, PANTRY]))

    assert [line for line, _ in found] == lines
    assert all(why.endswith(": one name per thing; HBM is the pantry") for _, why in found)


def test_the_key_names_every_thing_of_the_kitchen_from_the_small_to_the_large():
    assert kitchen_markdown([PANTRY, WARP, COOK]).splitlines() == [
        "| in the kitchen | on the card |",
        "|---|---|",
        "| a cook | thread |",
        "| the pantry | HBM |",
    ]


def test_no_two_things_of_the_course_share_a_kitchen_name():
    names = [term.kitchen for term in load(PATH) if term.kitchen]

    assert len(names) > 12
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "file", ["docs/a.py", "docs/assets/figures/a.svg", "handbook/sessions/l1.toml", "docs/a.md"]
)
def test_a_retired_name_stops_the_build_wherever_a_reader_would_see_it(tmp_path, file):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("x\ndown to the cellar\n")
    problems = []

    check_names(a_course(tmp_path, problems))

    assert problems == [(file, "line 2: 'cellar': one name per thing; HBM is the pantry")]


def a_course(root, problems, **more):
    """A course with one term, that notes its problems."""
    maps = SimpleNamespace(road=Road(), sessions={})
    what = {"root": root, "terms": [PANTRY], "maps": maps, "pages": [], **more}
    return SimpleNamespace(problem=lambda where, why: problems.append((str(where), why)), **what)


def a_session(stop, **more):
    """A session as far as its words go."""
    what = {"id": stop, "student_page": "", "map_page": "", "chapter": "", "figure": "", **more}
    return SimpleNamespace(**what)


@pytest.mark.parametrize(
    ("stop", "words", "refused"),
    [
        ("l4", "the pantry " * OFTEN, False),
        ("l4", "the pantry " * (OFTEN + 1), True),
        ("l3", "the pantry " * 99, False),
    ],
)
def test_from_its_stop_on_the_words_of_the_trade_lead(tmp_path, stop, words, refused):
    problems = []
    cells = [
        SimpleNamespace(kind="markdown", source=words),
        SimpleNamespace(kind="code", source="pantry = 1\n" * 9),
    ]
    pages = [SimpleNamespace(path=Path("docs/x.py"), cells=cells)]
    road = Road(halves=(("one", ("l3", "l4", "l5")),), trade="l4")
    maps = SimpleNamespace(road=road, sessions={stop: a_session(stop, student_page="docs/x.py")})

    check_names(a_course(tmp_path, problems, pages=pages, maps=maps))

    assert bool(problems) is refused
    if refused:
        assert problems[0][1].startswith(
            "says 'pantry' 4 times; from here on the words of the trade lead: write HBM"
        )


def test_what_a_recorded_name_and_a_code_span_hold_is_no_picture():
    page = ["{{ a.pantry }} `pantry` " * 9, "/// claim | a.pantry > b.pantry and c.pantry > d.pantry"]

    assert list(too_kitchen(page, [PANTRY])) == []


TURN = Term("wavefront", "wavefront", "One step.", also=("wavefronts",), kitchen="a turn", counted="turn")


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("carry it to HBM (the pantry)", False),
        ("carry it to the pantry", True),
        ("**Pantry** and back", True),
        ("{{ a.pantry }} bytes, `pantry`, [[= pantry(3)]]", False),
        ("33 turns for 32 multiply-adds", True),
        ("33 wavefronts (turns), and how many turns then? 2 turns", False),
        ("they take turns, turn the sheet over, in turn", False),
    ],
)
def test_a_picture_stands_beside_the_word_of_the_trade(text, refused):
    assert bool(list(without_the_trade(text, [PANTRY, TURN]))) is refused


LATE = {
    "handbook/sessions/l4.toml": '[[block.step]]\nsay = "Where does it come from? From {}."\n',
    "handbook/handouts/l4.toml": '[[sheet.part]]\nrows = [["a", "[[{}]]"]]\n',
    "docs/assets/figures/board_l4.svg": '<svg><text x="1">from</text>\n<text x="2">{}</text></svg>\n',
}


@pytest.mark.parametrize("file", LATE)
@pytest.mark.parametrize(
    ("trade", "word", "says"),
    [
        ("l4", "HBM (the pantry)", ""),
        ("l4", "the pantry", "says 'pantry' and not 'HBM'"),
        ("l4", "HBM, pantry, pantry, pantry, pantry", "says 'pantry' 4 times"),
        ("l5", "the pantry", ""),
    ],
)
def test_a_late_map_its_sheets_and_its_board_speak_the_trade(tmp_path, file, trade, word, says):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(LATE[file].format(word))
    problems = []
    road = Road(halves=(("one", ("l3", "l4", "l5")),), trade=trade)
    maps = SimpleNamespace(
        road=road, sessions={"l4": a_session("l4", figure="docs/assets/figures/board_l4.svg")}
    )

    check_names(a_course(tmp_path, problems, maps=maps))

    assert [where for where, _ in problems] == ([file] if says else [])
    assert all(why.startswith(says) for _, why in problems)


@pytest.mark.parametrize("kind", ["map_page", "chapter"])
def test_a_late_map_page_and_chapter_are_held_as_the_page_is(tmp_path, kind):
    problems = []
    pages = [
        SimpleNamespace(
            path=Path("handbook/x.py"),
            cells=[SimpleNamespace(kind="markdown", source="the pantry " * (OFTEN + 1))],
        )
    ]
    road = Road(halves=(("one", ("l4",)),), trade="l4")
    maps = SimpleNamespace(road=road, sessions={"l4": a_session("l4", **{kind: "handbook/x.py"})})

    check_names(a_course(tmp_path, problems, pages=pages, maps=maps))

    assert [where for where, _ in problems] == ["handbook/x.py"]
