"""What a style sheet, a script, a template or a description puts on pages ranks nothing and measures nothing."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from course_site.lint.frame import faults_of, faults_of_description
from course_site.site.words import check_unrecorded

SAID = {
    "a.css": [
        '.claim::after { content: " · 1.4× cuBLAS"; }',
        '.claim::after { content: "ahead of every library"; }',
        "h1::before { content: 'at \\00d7 3'; }",
        '.stamp::after { content: counter(x) " TFLOP/s"; }',
        ':root { --told: "twice as fast"; }',
        '.value::after { content: "98"; }',
        '.value::after { content: "the quickest of all that anybody has ever run"; }',
    ],
    "a.js": [
        'node.textContent = (0.97).toFixed(2) + " of cuBLAS";',
        "node.append(`${ours / theirs}× faster`);",
        'label.title = "beats " + name;',
        'node.innerHTML += " TFLOP/s";',
        "node.append(share + ' %');",
        'node.append("\\u00d7 " + ratio);',
        '// a comment\nsay("no library is faster");',
    ],
    "a.html": [
        "<p>Our kernels leave every library behind.</p>",
        "<footer>On par with <b>cuBLAS</b></footer>",
        '<a title="faster than PyTorch" href="x.html">x</a>',
        '<p>{{ "nothing beats it" }}</p>',
        '<style>p::after { content: "2x" }</style>',
        '<script>say("ahead of cuDNN")</script>',
        "<p>Twice as\nfast.</p>",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in SAID.items() for text in texts])
def test_a_frame_that_ranks_or_measures_is_refused(name, text):
    ((line, why), *_) = faults_of(name, f"\n{text}\n")
    assert line == 2 + text.startswith("//")
    assert "no record behind it" in why


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.css",
            '.lab::before { content: "Lab"; margin: 2em } /* content: "3×" */ .x::after { content: "" }',
        ),
        ("a.css", ':root { --sans: "Source Sans 3", sans-serif; } p { content: attr(data-keys) " / " }'),
        (
            "a.js",
            'var close = element("button", "", "×"); // 2x faster\nvar n = "12 steps"; load("a/NVIDIA/b.js");',
        ),
        ("docs/assets/js/explorables/softmax.js", 'text = "× " + factor;'),
        (
            "a.html",
            "<!-- 3x faster --><title>%name%: Percent of Peak</title>{# faster #}<p>{{ page.title }} of 3</p>",
        ),
    ],
)
def test_labels_are_not_refused(name, text):
    assert list(faults_of(name, text)) == []


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("The multiply that left cuBLAS behind.", True),
        ("A copy as fast as the vendor's.", True),
        ("How our attention outran the libraries.", True),
        ("A softmax twice as quick as PyTorch's.", True),
        ("FlashAttention by hand, what it saves and what it still loses.", False),
        ("Our own matrix multiply against cuBLAS, rung by rung.", False),
        ("Five kernels, each one idea faster than the one before.", False),
    ],
)
def test_a_description_ranks_no_library(text, refused):
    assert bool(list(faults_of_description(text))) is refused


def test_the_build_stops_at_one(tmp_path):
    for name in (
        "docs/assets/css/a.css",
        "overrides/partials/a.html",
        "handbook/run/a.js",
        "docs/assets/vendor/a.js",
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(SAID[file.name][0])
    problems = []
    page = SimpleNamespace(path=Path("docs/a.py"), description="It beats cuBLAS.", cells=())
    course = SimpleNamespace(
        root=tmp_path, pages=[page], terms=(), problem=lambda path, why: problems.append(str(path))
    )

    check_unrecorded(course)

    assert sorted(problems) == [
        "docs/a.py",
        "docs/assets/css/a.css",
        "handbook/run/a.js",
        "overrides/partials/a.html",
    ]
