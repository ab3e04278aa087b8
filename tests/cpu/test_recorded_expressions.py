"""What the code of a page says of the numbers it records, read and not run."""

import pytest
from tiny_repository import write_page

from course_site.pages.page import read_page
from course_site.site.recorded_expressions import LONGEST, Origins


def origins(tmp_path, *cells):
    return Origins(read_page(tmp_path / write_page(tmp_path, "a", *cells), tmp_path))


@pytest.mark.parametrize(
    ("cells", "name", "said"),
    [
        (["record(x=quantity(2 * N))"], "x", "2 * N"),
        (["record(x=quantity(n / 1e9 + 1000.0))"], "x", "n / 1e9 + 1000.0"),
        (["N = 2 ** 20", "record(x=quantity(N))"], "x", "N = 2 ** 20"),
        (["M, N = wide.shape, 7", "record(x=quantity(N))"], "x", "N = 7"),
        (["record(a={'b': samples(read('l1'), 'cycles')})"], "a.b", "read('l1')"),
        (["record(a={f's{S}': quantity(S + 1) for S in (1, 2)})"], "a.s2", "S + 1 for S in (1, 2)"),
        (
            ["FOUND = ask()", "record(a={k: quantity(v) for k, v in FOUND.items()})"],
            "a.l2",
            "v for k, v in FOUND.items(); FOUND = ask()",
        ),
        (["def half(job):\n    return quantity(job / 2)", "record(x=half(3))"], "x", "job / 2"),
        (["what = {'y': quantity(a + b)}", "record(x=what)"], "x.y", "a + b"),
        (
            ["x = {}\nfor k in two:\n    half = k / 2\n    x[k] = {'y': quantity(half)}", "record(x=x)"],
            "x.one.y",
            "half = k / 2",
        ),
    ],
)
def test_the_code_says_how_a_number_came_to_be(tmp_path, cells, name, said):
    assert origins(tmp_path, *cells).of(name).code == said


@pytest.mark.parametrize(
    ("cells", "name"),
    [
        (["N = 1", "N = 2", "record(x=quantity(N))"], "x"),  # which of the two, only a run knows
        (["v = 1", "record(a={k: quantity(v) for k, v in b()}, x=quantity(v))"], "x"),
        (["record(x=measure(kernel))"], "x"),
        (["record(x=quantity(1 + 1))", "record(**{name: quantity(2 + 2)})"], "x"),  # two could be meant
        ([f"record(x=quantity({'1 + ' * LONGEST}1))"], "x"),
        (["record(x=quantity(2 * N))", "%matplotlib inline"], "y"),
    ],
)
def test_what_the_code_leaves_open_is_left_open(tmp_path, cells, name):
    assert origins(tmp_path, *cells).of(name) is None
