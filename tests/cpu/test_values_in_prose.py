"""A value is tied to its words: nobody prints the number he wants behind the unit he wants."""

import pytest
from test_render import problems, repository
from test_values import scope as values

from course_site.lint.values_in_prose import defined_faults, faults_of, unit_of_head
from course_site.values.units import COUNT, ONE, PERCENT, Unit, unit_of
from course_site.values.values import Define


def scope():
    return values(
        copy={"kind": "quantity", "value": 3.9, "unit": "TB/s", "how": "timed"},
        moved={"kind": "quantity", "value": 4e12, "unit": "B", "how": "computed"},
        none={"kind": "quantity", "value": 0.0, "unit": "1", "how": "counted"},
        ticks={
            "kind": "samples",
            "unit": "cycles",
            "how": "timed",
            "n": 3,
            "quantiles": {"0.5": 30.0},
            "blocks": [],
        },
    )


@pytest.mark.parametrize(
    ("expression", "spec", "behind"),
    [
        ("flash.full.us", ".0f", " µs, and a word"),
        ("flash.full.us / 1000", ".2f", " ms"),
        ("flash.full.us / 1e6", ".2f", "&nbsp;s"),
        ("flash.full.us * 1000", ",.0f", "\n ns each"),
        ("flash.full.ms", ".2f", "** ms"),
        ("flash.full.us", ".0f", " and {{ sdpa.full.us:.0f }} µs"),
        ("flash.full.us", ".0f", ", {{ a.us }}, {{ b.us }} or {{ c.us }} µs"),
        ("flash.full.tflops", ".0f", " TFLOP/s"),
        ("flash.full.tflops", ".0f", " TFLOPS"),
        ("flash.full.gb_per_s", ".0f", " GB a second"),
        ("flash.full.gb_per_s", ".0f", " GB in a second"),
        ("flash.full.gb_per_s / 1000", ".2f", " TB/s"),
        ("flash.full.of_peak", ".1%", " of peak"),
        ("flash.full.of_peak * 100", ".1f", " % of peak"),
        ("1 - flash.full.of_peak", ".1%", ""),
        ("sdpa.full.us / flash.full.us", ".2f", " times"),
        ("sdpa.full.us / flash.full.us", ".2f", "×"),
        ("sdpa.full.us / sdpa.full.us", ".2f", ""),
        ("max(flash.full.us, flash.causal.us)", ".0f", " µs"),
        ("flash.full.N", "d", " × {{ flash.full.N }}"),
        ("flash.full.gb_per_s", ".0f", " × 2"),
        ("moved / sdpa.full.us / 1e6", ".2f", " TB/s"),
        ("steps.m * 4 / flash.full.us / 1000", ".4f", " GB/s"),
        ("flash.full.intensity", ".0f", " FLOP for every byte"),
        ("ticks", ".0f", " ticks"),
        ("flash.full.us * flash.full.sm_mhz", ".0f", " ticks"),
        ("power.power_w.max", ".0f", " W"),
        ("none", ".0f", " of them"),
        ("none / 1e9", ".1f", " of them"),
        ("said", "", ""),
    ],
)  # fmt: skip
def test_a_value_with_its_own_unit_passes(expression, spec, behind):
    assert list(faults_of(expression, spec, behind, scope())) == []


@pytest.mark.parametrize(
    ("expression", "spec", "behind", "said"),
    [
        ("flash.full.us", ".0f", " ms", "is in µs, and the words after it say ms"),
        ("flash.full.us", ".0f", " **milliseconds**", "is in µs, and the words after it say ms"),
        ("flash.full.us", ".0f", " and {{ sdpa.full.ms }} ms", "is in µs, and the words after it say ms"),
        ("flash.full.us / 1000", ".0f", " µs", "is in ms, and the words after it say µs"),
        ("flash.full.of_peak", ".1f", " % of peak", "is in plain numbers, and the words after it say %"),
        ("flash.full.of_peak", ".1f", " per cent", "is in plain numbers, and the words after it say %"),
        ("flash.full.of_peak * 100", ".1%", "", "is in %, and a percentage has no unit"),
        ("flash.full.us", ".1%", "", "is in µs, and a percentage has no unit"),
        ("flash.full.tflops", ".0f", " TB/s", "is in TFLOP/s, and the words after it say TB/s"),
        ("flash.full.gb_per_s", ".0f", " GB", "is in GB/s, and the words after it say GB"),
        ("flash.full.gb_per_s", ".0f", " TB a second", "is in GB/s, and the words after it say TB/s"),
        ("flash.full.us", ".1f", "× faster", "is in µs, and the words after it say plain numbers"),
        ("power.power_w.max", ".0f", " MHz", "is in W, and the words after it say MHz"),
        ("flash.full.us + sdpa.full.ms", ".0f", " µs", "adds or compares µs and ms"),
        ("flash.full.us - flash.full.tflops", ".0f", "", "adds or compares µs and TFLOP/s"),
        ("min(flash.full.us, sdpa.full.tflops)", ".0f", "", "adds or compares µs and TFLOP/s"),
        ("3.9", ".1f", " TB/s", "has no name in it"),
        ("3.9 + 0 * copy", ".1f", " TB/s", "adds a typed number to TB/s"),
        ("3 + 0 * flash.full.of_peak", ".1f", "", "says 3.0 whatever flash.full.of_peak is"),
        ("3.9 + 0.0001 * copy", ".1f", " TB/s", "adds a typed number to TB/s"),
        ("3 + copy", ".1f", " TB/s", "adds a typed number to TB/s"),
        ("0.2 + flash.full.of_peak", ".1%", "", "has the typed number 0.2 in it"),
        ("min(copy, 3.9)", ".1f", " TB/s", "min, max, median and abs take names"),
        ("max(copy, 4)", ".1f", " TB/s", "min, max, median and abs take names"),
        ("1.07 * copy", ".1f", " TB/s", "has the typed number 1.07 in it"),
        ("copy", "9>5.1f", " TB/s", "the format '9>5.1f': write one such as"),
        ("copy", "03.0f", " TB/s", "the format '03.0f': write one such as"),
        ("copy", "+.1f", " TB/s", "the format '+.1f': write one such as"),
        ("copy", ".1f9", " TB/s", "the format '.1f9': write one such as"),
        ("copy * 0 + sdpa.full.of_peak * 4", ".1f", "", "adds or compares"),
    ],
)  # fmt: skip
def test_a_value_that_somebody_bent_is_refused(expression, spec, behind, said):
    found = list(faults_of(expression, spec, behind, scope()))
    assert any(said in line for line in found), found


def test_the_unit_at_the_head_of_a_column():
    assert unit_of_head("to the card, GB/s") == "GB/s"
    assert unit_of_head("time (µs)") == "µs"
    assert unit_of_head("TFLOP/s") == "TFLOP/s"
    assert unit_of_head("of peak") == ""
    assert unit_of_head("kernels") == ""


def test_units_by_their_names():
    assert unit_of("GB/s") == Unit(1e9, (("B", 1), ("s", -1)))
    assert unit_of("KiB") == Unit(1024.0, (("B", 1),))
    assert unit_of("FLOP/clk") == Unit(1.0, (("FLOP", 1), ("clk", -1)))
    assert unit_of("MHz") == Unit(1e6, (("clk", 1), ("s", -1)))
    assert unit_of("%") == PERCENT
    assert unit_of("1") == unit_of("×") == ONE != COUNT
    assert unit_of("lanes") is None
    names = ("plain numbers", "TB/s", "FLOP/B", "2e+07 B s^-1")
    found = (ONE, unit_of("TB/s"), unit_of("FLOP/B"), Unit(2e7, (("B", 1), ("s", -1))))
    assert tuple(map(str, found)) == names


@pytest.mark.parametrize(
    ("expression", "unit", "said"),
    [
        ("moved / flash.full.us / 1e6", "TB/s", ""),
        ("moved / flash.full.us / 1e6", "GB/s", "it is in TB/s, and `unit:` says GB/s"),
        ("flash.full.us", "ms", "it is in µs, and `unit:` says ms"),
        ("flash.full.us + flash.full.ms", "ms", "it adds or compares µs and ms"),
        ("0.93 * flash.full.us", "µs", "it has the typed number 0.93 in it"),
        ("sdpa.full.us / flash.full.us", "×", ""),
    ],
)
def test_a_definition_has_the_unit_it_says(expression, unit, said):
    assert "; ".join(defined_faults(Define("it", expression, unit), scope())).startswith(said)
    assert bool(said) == bool(list(defined_faults(Define("it", expression, unit), scope())))


PAGE = """
# ---
# id: w1
# title: Flash
# needs: gpu
# ---

# %%
from tiny import kernel

# %% [markdown]
# # Flash
#
"""


@pytest.mark.parametrize(
    ("prose", "said"),
    [
        ("It takes {{ flash.us:.0f }} ms.", "'flash.us' is in µs, and the words after it say ms"),
        ("/// define | best = 3.9\nunit: TB/s\nwhat: it\n///", "best = 3.9: it has no name in it: record the number"),
        ("/// define | flash.us = flash.n\n///", "flash.us = flash.n: 'flash.us' is recorded"),
        ("/// define | slow = flash.us\nunit: ms\n///", "slow = flash.us: it is in µs, and `unit:` says ms"),
        ('/// table\ncolumns: ["what", "time, ms"]\nrows:\n  - ["a", "{{ flash.us:.0f }}"]\n///',
         "'flash.us' is in µs, and the words after it say ms"),
        ('/// table\nturned: true\ncolumns: ["what", "time, ms"]\nrows:\n  - ["a", "{{ flash.us:.0f }}"]\n///',
         "'flash.us' is in µs, and the words after it say ms"),
    ],
)  # fmt: skip
def test_it_stops_the_build_in_one_line(tmp_path, monkeypatch, prose, said):
    page = PAGE + "".join(f"# {line}".rstrip() + "\n" for line in prose.split("\n"))
    found = problems(repository(tmp_path, monkeypatch, page.lstrip()))
    assert any(said in line for line in found), found
    assert all("\n" not in line for line in found)
