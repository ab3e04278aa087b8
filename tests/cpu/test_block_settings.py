"""The YAML of a block: whatever stands there, what is wrong is one line, and never a traceback."""

import copy
import random

import pytest
import yaml
from test_values import scope as measured

from course_site.charts.data import SETTINGS, draw
from course_site.pages.block_settings import COUNT, FLAG, TEXT, WORD, one_of, read
from course_site.pages.blocks import DirectiveError
from course_site.site.render.data_blocks import TABLE
from course_site.values.values import ExpressionError

SHAPE = {
    "title": TEXT,
    "open?": FLAG,
    "context?": COUNT,
    "scale?": one_of("log", "linear"),
    "bars?": [{"name": TEXT, "note?": WORD}],
    "math?": (TEXT, [TEXT]),
}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("title: a\nbars: 3", "`bars:` is 3, and should be a list"),
        ("title: a\nbars: []", "`bars:` is [], and should be a list"),
        ("title: a\nbars: [3]", "`bars 1:` is 3, and should be a table of name, note"),
        ("title: a\nbars: [{name: 3}]", "`bars 1, name:` is 3, and should be text"),
        ("title: a\nbars: [{name: b, note: .nan}]", "`bars 1, note:` is nan, and should be text or a number"),
        ("title: a\nbars: [{note: b}]", "`bars 1:` needs the setting 'name'"),
        ("title: a\nbars: [{name: b, colour: red}]", "unknown setting colour in `bars 1:`; known: name, note"),
        ("open: true", "it needs the setting 'title'"),
        ("title: ' '", "`title:` is ' ', and should be text"),
        ("title: a\nopen: 1", "`open:` is 1, and should be true or false"),
        ("title: a\ncontext: true", "`context:` is True, and should be a whole number from 0 to 999"),
        ("title: a\nscale: cubic", "`scale:` is 'cubic', and should be one of: log, linear"),
        ("title: a\nmath: {a: 1}", "`math:` is {'a': 1}, and should be a list"),
        ("title: a\nmath: [3]", "`math 1:` is 3, and should be text"),
        (f"title: [{'long ' * 30}]", "`title:` is ['long long long long long long long …, and should be text"),
        ("title: a\ntitel: b", "unknown setting titel; known: bars, context, math, open, scale, title"),
        ("- a\n- b", "its body is not `key: value` lines"),
        ("title: [", "its body is not YAML: while parsing a flow node"),
        ("title: !!python/object:os.system x", "its body is not YAML: could not determine a constructor for the tag"),
        ("title: 2026-13-01", "its body is not YAML: month must be in 1..12"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(body, said):
    with pytest.raises(DirectiveError) as error:
        read(body, SHAPE)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_what_is_right_comes_back_as_it_stands():
    body = {
        "title": "a",
        "open": False,
        "context": 0,
        "math": ["bf16"],
        "bars": [{"name": "b", "note": 4096}],
    }
    assert read(yaml.safe_dump(body), SHAPE) == body
    assert read("title: a\nmath: bf16", SHAPE)["math"] == "bf16"


JUNK = [
    3,
    -1,
    2.5,
    True,
    None,
    "x",
    "",
    [],
    {},
    [3],
    ["x"],
    {"a": 1},
    [[]],
    [None],
    "{{",
    10**30,
    float("nan"),
]
FLASH = {"name": "flash.full.us", "label": "ours"}
OF_ALL = {"title": "T", "alt": "a"}
SIZES = ("sms", "lanes", "registers_kib", "shared_kib", "l2_mib", "hbm_gib")
RIGHT = {
    "lines": {
        **OF_ALL,
        "x": "N",
        "y": "us",
        "series": [{"name": "flash.*", "label": "ours"}],
        "references": [{"label": "0", "value": 0}],
    },
    "bars": {
        **OF_ALL,
        "x_label": "µs",
        "bars": [FLASH],
        "references": [{"label": "floor", "value": "sdpa.full.us"}],
    },
    "staircase": {**OF_ALL, "y_label": "µs", "steps": [FLASH]},
    "roofline": {**OF_ALL, "points": [{"name": "flash.full", "label": "ours"}], "math": ["bf16"]},
    "card": {**OF_ALL, **dict.fromkeys(SIZES, "steps.m"), "quarters": 3, "stacks": 6},
}


def places(value, path=()):
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def with_junk(settings, path, junk):
    if not path:
        return junk
    bent = copy.deepcopy(settings)
    at = bent
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = junk
    return bent


def refusal(attempt, *arguments):
    """What is said of it; empty where nothing is wrong."""
    try:
        attempt(*arguments)
    except (DirectiveError, ExpressionError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", RIGHT)
def test_no_junk_in_a_chart_is_a_traceback(kind):
    scope, chance = measured(), random.Random(kind)

    def drawn(settings):
        draw(kind, read(yaml.safe_dump(settings), SETTINGS[kind]), scope, "k")

    assert refusal(drawn, RIGHT[kind]) == ""
    said = [
        refusal(drawn, with_junk(RIGHT[kind], path, junk))
        for path in places(RIGHT[kind])
        for junk in chance.sample(JUNK, 8)
    ]
    assert not any("\n" in line for line in said)
    assert sum(map(bool, said)) > len(said) / 2


def test_no_junk_in_a_table_is_a_traceback():
    right = {"columns": ["a", {"label": "b", "value": "us"}], "rows": [["1", "2"], {"name": "x", "a": 1}]}
    said = [
        refusal(read, yaml.safe_dump(with_junk(right, path, junk)), TABLE)
        for path in places(right)
        for junk in JUNK
    ]
    assert refusal(read, yaml.safe_dump(right), TABLE) == ""
    assert not any("\n" in line for line in said)
    assert sum(map(bool, said)) > len(said) / 2
