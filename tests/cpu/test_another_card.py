"""A card beside the reference: its records stand in where the reference edition has none that holds."""

import json

import pytest
from test_gpu_test_records import CARD
from test_record import PROVENANCE
from test_render import NAMES, PAGE, record_it, render, repository
from tiny_repository import write

from course_site.pages.page import read_page
from course_site.records import gpu_test_records
from course_site.records.record import record_path, seal
from course_site.records.waiting import Waiting
from course_site.site import course as whole
from course_site.site.about import AboutError, about
from course_site.site.choice import choose

BESIDE = "nvidia-h100-80gb-hbm3"
H100 = {**PROVENANCE, "gpu": "NVIDIA H100 80GB HBM3", "slug": BESIDE}
WAITS = '[[page]]\npath = "docs/w1.py"\nsince = "2026-11-25"\nreason = "planted"\n'


@pytest.fixture
def two_cards(tmp_path, monkeypatch):
    """A page with a record of each card."""
    root = repository(tmp_path, monkeypatch)
    text = (root / "pyproject.toml").read_text()
    write(root, "pyproject.toml", f'{text}also = ["{BESIDE}"]\n')
    page = read_page(root / "docs/w1.py", root)
    reference, beside = (record_path(root, slug, page) for slug in ("nvidia-h200", BESIDE))
    recorded(root, beside, H100)
    return root, reference, beside


def said(root, **options):
    course, page = render(root, **options)
    return course.states["w1"], [str(problem) for problem in course.problems], page.markdown if page else ""


def recorded(root, path, provenance):
    """A record of these files at a path; the reference's own stays as it is."""
    reference = record_path(root, "nvidia-h200", read_page(root / "docs/w1.py", root))
    kept = reference.read_bytes() if reference.exists() else None
    record_it(root, provenance=provenance)
    if path != reference:
        path.parent.mkdir(parents=True, exist_ok=True)
        reference.replace(path)
        if kept is not None:
            reference.write_bytes(kept)


def stale(root, path):
    """A record of a file that meant something else."""
    kernel = root / "src/tiny/kernel.py"
    text = kernel.read_text()
    kernel.write_text("FACTOR = 4\n")
    recorded(root, path, H100 if BESIDE in path.parts else PROVENANCE)
    kernel.write_text(text)


def test_the_reference_is_shown_while_its_record_holds(two_cards):
    state, problems, text = said(two_cards[0])

    assert (state, problems) == ("fresh", [])
    assert "Measured on another card" not in text


@pytest.mark.parametrize(
    "spoil", [lambda root, path: path.unlink(), stale, lambda root, path: path.write_text("{")]
)
def test_else_the_card_beside_it_and_the_page_says_so(two_cards, spoil):
    root, reference, _ = two_cards
    spoil(root, reference)
    state, problems, text = said(root)

    assert (state, problems) == ("foreign", [])
    assert (
        "**Measured on a different card.** The numbers on this page are from an NVIDIA H100 80GB HBM3."
        in text
    )
    assert "1000</a> TFLOP/s" in text


def test_where_neither_holds_the_reference_is_what_is_complained_of(two_cards):
    root, reference, beside = two_cards
    stale(root, reference)
    stale(root, beside)

    assert said(root)[1] == [
        "docs/w1.py: is stale: src/tiny/kernel.py changed since the record was made; "
        "measure it on a GPU: nox -s docs -- --page docs/w1.py"
    ]


def test_a_page_that_the_card_beside_has_measured_does_not_wait(two_cards):
    root, reference, _ = two_cards
    reference.unlink()
    write(root, "records/waiting.toml", WAITS)

    assert said(root)[1] == ["records/waiting.toml: docs/w1.py does not wait any more: take it off the list"]


def test_its_claims_gate_the_build_and_its_files_are_committed(two_cards):
    root, reference, beside = two_cards
    reference.unlink()
    write(root, "docs/w1.py", PAGE.lstrip().replace("1.4 * sdpa", "1.6 * sdpa"))
    assert any("claim `flash.tflops > 1.6 * sdpa.tflops` is false" in line for line in said(root)[1])

    write(root, "docs/w1.py", PAGE.lstrip())
    recorded(root, beside, {**H100, "dirty": True})
    assert any("made from files that differ from their commit" in line for line in said(root)[1])


def test_a_card_that_is_not_named_does_not_stand_in(two_cards):
    root, reference, _ = two_cards
    reference.unlink()
    text = (root / "pyproject.toml").read_text()
    write(root, "pyproject.toml", text.replace(f'also = ["{BESIDE}"]\n', ""))

    assert [line for line in said(root)[1] if "has no record in records/nvidia-h200" in line]


@pytest.mark.parametrize("quoted", ["{{ w1.flash.us / flash.us:.2f }}", "{{ w1.flash.us:.0f }} µs"])
def test_no_expression_holds_numbers_of_two_cards_together(two_cards, quoted):
    root, reference, _ = two_cards
    reference.unlink()
    other = (
        PAGE.lstrip().replace("id: w1", "id: w2").replace("The last paragraph", f"Also {quoted}. The last")
    )
    write(root, "docs/w2.py", other)
    record_it(root, NAMES, name="docs/w2.py")
    problems = said(root)[1]

    found = [
        line for line in problems if "of two cards together: NVIDIA H100 80GB HBM3 and NVIDIA H200" in line
    ]
    assert len(found) == ("/" in quoted), problems


# --- GPU tests ------------------------------------------------------------------------------------


@pytest.fixture
def group(tmp_path):
    """said(reference, beside): what the build says of a group with such records; None for no record, else changes."""
    (tmp_path / "tests" / "gpu").mkdir(parents=True)
    (tmp_path / "tests/gpu/test_one.py").write_text('GROUPS = ("one",)\n')
    record = {
        "kind": "tests",
        "group": "one",
        "passed": 1,
        "failed": 0,
        "tests": [{"id": "tests/gpu/test_one.py::test_a", "outcome": "passed", "seconds": 1.5}],
        "provenance": CARD,
        "coverage": gpu_test_records.Project(tmp_path).coverage("one"),
    }

    def said(reference, beside, *waiting):
        for slug, changes in (("nvidia-h200", reference), (BESIDE, beside)):
            path = gpu_test_records.record_path(tmp_path, slug, "one")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if changes is not None:
                path.write_text(json.dumps(seal(record | changes)))
        listed = {path: Waiting(path, "2026-11-25", "planted") for path in waiting}
        choice = choose(tmp_path, "nvidia-h200", "nvidia-h200", (BESIDE,), [])
        course = whole.Course(root=tmp_path, reference="nvidia-h200", edition=choice.own, waiting=listed)
        whole._check_tests(course, choice)
        return [str(problem) for problem in course.problems]

    return said


OLD = {"coverage": {}}


def test_a_group_that_passed_on_one_of_the_cards_is_checked(group):
    assert group({}, None) == group(None, {}) == group(OLD, {}) == group({}, OLD) == []
    assert group(None, {}, "tests/gpu/one") == [
        "records/waiting.toml: tests/gpu/one does not wait any more: take it off the list"
    ]


def test_a_group_that_passed_on_neither_is_complained_of_once(group):
    (line,) = group(OLD, {"failed": 1})
    assert line.startswith("records/nvidia-h200/tests/one.json: is stale: ")
    (line,) = group(None, OLD)
    assert line.startswith("records/nvidia-h200/tests/one.json: is missing; ")


FAILED = {
    "passed": 0,
    "failed": 1,
    "tests": [{"id": "tests/gpu/test_one.py::test_a", "outcome": "failed", "seconds": 1.5}],
}


def test_a_test_that_failed_on_these_files_stops_whatever_the_other_card_says(group):
    """Missing or stale may be stood in for; failed may not."""
    for slug, found in (("nvidia-h200", group(FAILED, {})), (BESIDE, group({}, FAILED))):
        assert len(found) == 1
        assert found[0].startswith(
            f"records/{slug}/tests/one.json: 1 GPU tests failed (tests/gpu/test_one.py::test_a)"
        )
        assert found[0].endswith("no pass on another card stands in for it")
    assert group(FAILED | OLD, {}) == group({}, FAILED | OLD) == []  # its files have changed since
    assert group(FAILED, {}, "tests/gpu") != []


def test_a_list_that_does_not_add_up_passes_nowhere(group):
    (line,) = group(FAILED | {"passed": 1, "failed": 0}, None)
    assert "its list has 1 and 0" in line


def test_editions_are_a_list():
    with pytest.raises(
        AboutError, match=r"^\[tool.course\] also is 'x': write a list of editions, each in quotes$"
    ):
        about({"tool": {"course": {"reference": "nvidia-h200", "also": "x"}}})
