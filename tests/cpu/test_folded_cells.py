"""Which code cells of a page stand folded."""

from pathlib import Path

from course_site.pages.folded_cells import folded
from course_site.pages.page import Cell, Page, find_pages

ROOT = Path(__file__).parents[2]
IMPORTS = """
from course_kernels.copy import k01_vectorised
from course_kernels.measure import measure, record
from course_kernels.problem import Workload
"""


def is_folded(source, *tags):
    cells = (Cell("code", IMPORTS.strip()), Cell("code", source, tags))
    return cells[1] in folded(Page(Path("docs/p.py"), "p", "P", cells=cells))


def test_what_only_drives_the_harness_is_folded():
    assert is_folded('record(copy=measure(k01_vectorised, Workload.of("float32", N=2**28)))')
    assert is_folded(
        "found = {}\n"
        "for power in range(10, 20):\n"
        '    found[f"n{power}"] = measure(k01_vectorised, Workload.of("float32", N=2**power))\n'
        "record(**{name: value for name, value in found.items()})"
    )


def test_asking_the_card_and_what_comes_with_python_teach_nothing():
    assert is_folded(
        "from statistics import median\n\nimport torch\n"
        "if torch.cuda.get_device_name() is None:\n    raise RuntimeError('no card')\n"
        "record(middle=median([1, 2, 3]))"
    )


def test_what_teaches_is_shown():
    measured = 'record(copy=measure(k01_vectorised, Workload.of("float32", N=8)))'
    for source in (
        f'{measured}\nprint("measured")',  # it says something to its reader
        f"def by_hand(n):\n    return 8 * n\n\n\n{measured}",  # it defines something
        f"y = softmax(x)\n{measured}",  # it calls what is no harness
        f"y = x.softmax()\n{measured}",
        f"import torch\n\ny = torch.softmax(x, -1)\n{measured}",
        "N = 2**28",  # it measures nothing
        "total = sum(range(10))",
    ):
        assert not is_folded(source), source


def test_a_tag_decides_where_the_rule_does_not():
    measured = 'record(copy=measure(k01_vectorised, Workload.of("float32", N=8)))'
    assert not is_folded(measured, "show")
    assert is_folded("print(1)", "fold")


def test_every_tag_of_our_pages_is_needed():
    """A tag that only says what the rule says would keep a reader asking why it stands there."""
    plain = [
        (page.path.as_posix(), cell.source.splitlines()[0], cell.tags)
        for page in find_pages(ROOT)
        for cell in page.code
        if "show" in cell.tags and Cell(cell.kind, cell.source) not in folded(_without_tags(page))
    ]
    assert plain == []


def _without_tags(page):
    cells = tuple(Cell(cell.kind, cell.source) for cell in page.cells)
    return Page(page.path, page.id, page.title, cells=cells)
