"""The glossary: every word is explained once, hovers where it is used, and stands on its page under an anchor."""

import re
from pathlib import Path

import markdown
import pytest

from course_site.numbers.lint import lint_toml
from course_site.pages.glossary import GlossaryError, Term, abbreviations, glossary_markdown, load

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
        ('[a]\nterm = "x"\nshort = "One."\n[a]\nterm = "y"\nshort = "Two."', "stands twice"),
        (
            '[a]\nterm = "x"\nshort = "One."\n[b]\nterm = "y"\nalso = ["x"]\nshort = "Two."',
            "spelling of both",
        ),
        ('[a]\nterm = "x"\nshort = "One."\nsee = ["b"]', "no such word"),
        ('[a]\nterm = "x"', "lacks 'short'"),
        ('[a]\nterm = "x"\nshort = "One."\nlong = "y"', "unknown field 'long'"),
        ('[a]\nterm = "x"\nshort = "One."\nalso = "xs"', "list of words"),
        ('[a]\nterm = "x"\nshort = "One."\nhover = 1', "true or false"),
        ('[A]\nterm = "x"\nshort = "One."', "is no key"),
        ("a = 1", "must be a table"),
        ("[a", "not TOML"),
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
