"""A card beside the reference: the site has an edition of each, whole, and nothing of one stands in the other."""

import json

import pytest
from test_gpu_test_records import CARD
from test_record import PROVENANCE
from test_render import NAMES, PAGE, measurement, quantity, record_it, render, repository
from tiny_repository import write

from course_site.pages.page import read_page
from course_site.records import gpu_test_records
from course_site.records.edition import load_edition, note_lacking
from course_site.records.record import record_path, seal
from course_site.records.waiting import Waiting
from course_site.site import card_tests
from course_site.site.about import AboutError, about
from course_site.site.course import Course
from course_site.site.editions import SiteEdition, editions
from course_site.site.switch import Switch

OURS, BESIDE = "nvidia-h200", "nvidia-h100-80gb-hbm3"
H100 = {**PROVENANCE, "gpu": "NVIDIA H100 80GB HBM3", "slug": BESIDE}
WAITS = '[[page]]\npath = "docs/w1.py"\nsince = "2026-11-25"\nreason = "planted"\n'
SLOWER = {"flash": measurement(2000.0), "sdpa": measurement(3000.0), "m": quantity(3.0)}


@pytest.fixture
def two_cards(tmp_path, monkeypatch):
    """A page with a record of each card."""
    root = repository(tmp_path, monkeypatch)
    page = read_page(root / "docs/w1.py", root)
    reference, beside = (record_path(root, slug, page) for slug in (OURS, BESIDE))
    recorded(root, beside, H100, SLOWER)
    return root, reference, beside


def said(root, slug=OURS, page_id="w1", **options):
    course, page = render(root, page_id, slug=slug, **options)
    return (
        course.states[page_id],
        [str(problem) for problem in course.problems],
        page.inlined() if page else "",
    )


def recorded(root, path, provenance, names=NAMES, name="docs/w1.py"):
    """A record of these files at a path; the reference's own stays as it is."""
    reference = record_path(root, OURS, read_page(root / name, root))
    kept = reference.read_bytes() if reference.exists() else None
    record_it(root, names, provenance=provenance, name=name)
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


# --- one edition, whole -----------------------------------------------------------------------------


def test_each_edition_shows_its_own_card_and_names_no_other(two_cards):
    for slug, mine, other in ((OURS, "1000", "500"), (BESIDE, "500", "1000")):
        state, problems, text = said(two_cards[0], slug)
        assert (state, problems) == ("fresh", [])
        assert f">{mine}</a> TFLOP/s" in text
        assert f">{other}</a>" not in text


SPOILT = [lambda root, path: path.unlink(), stale]


@pytest.mark.parametrize("spoil", SPOILT)
def test_the_reference_takes_no_number_of_another_card(two_cards, spoil):
    """Whatever it lacks is complained of, though another card has measured it."""
    root, reference, _ = two_cards
    spoil(root, reference)
    state, problems, _ = said(root)
    assert state == "stale"
    assert any("nox -s docs -- --page docs/w1.py" in line for line in problems)

    write(root, "records/waiting.toml", WAITS)
    state, problems, text = said(root)
    assert (state, problems) == ("waiting", [])
    assert ">500</a>" not in text


@pytest.mark.parametrize("spoil", SPOILT)
def test_another_edition_says_what_it_has_not_measured_and_leads_to_the_card_that_has(two_cards, spoil):
    root, _, beside = two_cards
    heading = PAGE.lstrip().replace("# The last", "# ## At last\n#\n# The last")
    write(root, "docs/w1.py", heading)
    record_it(root)
    spoil(root, beside)
    other = PAGE.lstrip().replace("id: w1", "id: w2")
    write(root, "docs/w2.py", other)
    record_it(root, NAMES, name="docs/w2.py")
    recorded(root, beside.with_name("w2.ipynb"), H100, SLOWER, "docs/w2.py")
    state, problems, text = said(root, BESIDE)

    assert (state, problems) == ("absent", [])
    link = '<a href="../w1.html" data-edition="h200">measured on the H200</a>'
    assert f"<strong>The H100 has not measured this page yet.</strong> Here it is, {link}." in text
    assert '<li id="at-last"><a href="../w1.html#at-last" data-edition="h200">At last</a></li>' in text
    assert "TFLOP/s" not in text
    assert "The last paragraph" not in text


def test_a_record_that_cannot_be_read_stops_the_build_in_every_edition(two_cards):
    root, _, beside = two_cards
    beside.write_text("{")
    write(root, "docs/w2.py", PAGE.lstrip().replace("id: w1", "id: w2"))
    record_it(root, NAMES, name="docs/w2.py")
    recorded(root, beside.with_name("w2.ipynb"), H100, SLOWER, "docs/w2.py")
    assert any("is cut short or not JSON" in line for line in said(root, BESIDE)[1])
    assert said(root)[1] == []


def test_a_list_of_what_waits_is_the_references_alone(two_cards):
    root, reference, _ = two_cards
    reference.unlink()
    write(root, "records/waiting.toml", WAITS)
    assert said(root, BESIDE)[:2] == ("fresh", [])
    recorded(root, reference, PROVENANCE)
    assert said(root)[1] == ["records/waiting.toml: docs/w1.py does not wait any more: take it off the list"]


def test_claims_decide_for_each_edition_and_stop_the_reference_alone(two_cards):
    root, _, beside = two_cards
    write(root, "docs/w1.py", PAGE.lstrip().replace("1.4 * sdpa", "1.45 * sdpa"))
    recorded(root, beside, H100, {**SLOWER, "flash": measurement(2500.0)})
    assert said(root)[1] == []
    _, problems, text = said(root, BESIDE)
    assert problems == []
    assert "It does not beat it." in text
    assert "It beats SDPA" not in text

    write(root, "docs/w1.py", PAGE.lstrip().replace("1.4 * sdpa", "1.6 * sdpa"))
    assert any("claim `flash.tflops > 1.6 * sdpa.tflops` is false" in line for line in said(root)[1])


def test_a_wrong_name_stops_every_edition(two_cards):
    root = two_cards[0]
    write(root, "docs/w1.py", PAGE.lstrip().replace("flash.of_peak:.0%", "flush.of_peak:.0%"))
    for slug in (OURS, BESIDE):
        assert any("unknown value 'flush.of_peak'" in line for line in said(root, slug)[1])


# --- what quotes a page that an edition does not have -------------------------------------------------


QUOTES = """
# ---
# id: w2
# title: Quotes
# description: A page
# ---

# %% [markdown]
# # Quotes
#
# There it takes {{ w1.flash.us:.0f }} µs on an {{ w1.gpu.name }}.
#
# /// claim | w1.flash.us < 0.9 * w1.sdpa.us
# It is ahead.
# ///
#
# /// when | w1.m > 0
# This card was asked.
# /// otherwise
# Nobody asked this card.
# ///
#
# /// chart | bars
# title: "Bars"
# alt: Bars.
# x_label: µs
# bars:
#   - {name: w1.flash.us, label: "flash"}
# ///
"""


def test_a_number_that_this_card_has_not_measured_is_a_dash_and_the_page_says_what_that_is(two_cards):
    root, _, beside = two_cards
    write(root, "docs/w2.py", QUOTES.lstrip())
    has_all, _, text = said(root, BESIDE, "w2")
    assert "dashes" not in text
    assert ">2000</a>" in text
    assert "This card was asked" in text
    assert "Nobody" not in text

    beside.unlink()
    write(root, "docs/w3.py", PAGE.lstrip().replace("id: w1", "id: w3"))
    record_it(root, NAMES, name="docs/w3.py")
    recorded(root, beside.with_name("w3.ipynb"), H100, SLOWER, "docs/w3.py")
    state, problems, text = said(root, BESIDE, "w2")
    assert (state, problems) == (has_all, [])
    dash = '<span class="missing" title="Not measured on the H100">—</span>'
    assert f"There it takes {dash}" in text
    assert ">H100</span>." in text
    link = '<a href="../w2.html" data-edition="h200">the same page of the H200</a>'
    assert f"A dash (—) stands for a number that the H100 has not measured. It is on {link}." in text
    assert "It is ahead" not in text
    assert "Nobody asked this card" in text
    assert "<svg" not in text
    assert "1000" not in text


# --- a card that cannot run everything ---------------------------------------------------------------

A100 = {**PROVENANCE, "gpu": "NVIDIA A100-SXM4-80GB", "slug": "nvidia-a100-sxm4-80gb"}


@pytest.fixture
def third(two_cards):
    """A record made by hand, of no run: an A100 that has no fp8, and cannot run a page at all that needs more."""
    root = two_cards[0]
    names = {"fp16": {**measurement(6000.0), "math": "bf16"}, "fp8": measurement(1000.0)}
    page = PAGE.lstrip().replace("id: w1", "id: w4")
    page = page.replace("flash.of_peak:.0%", "fp8.of_peak:.0%").replace("flash.tflops:.0f", "fp16.tflops:.0f")
    page = page.replace("flash.tflops > 1.4 * sdpa.tflops", "fp8.tflops > 1.4 * fp16.tflops")
    page = page.replace("flash.tflops / sdpa.tflops", "fp8.tflops / fp16.tflops")
    write(root, "docs/w4.py", page)
    record_it(root, names, name="docs/w4.py")
    by_hand = record_path(root, A100["slug"], read_page(root / "docs/w4.py", root))
    recorded(
        root, by_hand, {**A100, "note": "made by hand for a test"}, {"fp16": names["fp16"]}, "docs/w4.py"
    )
    note_lacking(root, A100["slug"], {"docs/w1.py": "needs capability 9.0, and the NVIDIA A100 has 8.0"})
    return root


def test_somebodys_own_card_is_a_further_edition_of_the_site(third):
    assert [(one.name, one.folder, one.prefix) for one in editions(third)] == [
        ("H200", "", "h200"),
        ("A100", "a100", "a100"),
        ("H100", "h100", "h100"),
    ]


def test_what_a_card_cannot_run_says_so_and_stops_nothing(third):
    state, problems, text = said(third, A100["slug"])
    assert (state, problems) == ("absent", [])
    assert (
        "<strong>Not on the A100.</strong> This page needs capability 9.0, and the NVIDIA A100 has 8.0."
        in text
    )

    state, problems, text = said(third, A100["slug"], "w4")
    assert (state, problems) == ("fresh", [])
    assert 'title="Not measured on the A100">—</span> of peak' in text
    assert "It beats SDPA" not in text  # a claim over what it could not run


def test_a_name_that_no_edition_has_still_stops_it(third):
    text = (third / "docs/w4.py").read_text()
    write(third, "docs/w4.py", text.replace("fp8.of_peak:.0%", "fp9.of_peak:.0%"))
    assert any("unknown value 'fp9.of_peak'" in line for line in said(third, A100["slug"], "w4")[1])


def test_two_cards_of_one_model_have_two_folders(two_cards):
    root = two_cards[0]
    pcie = {**PROVENANCE, "gpu": "NVIDIA H100 PCIe", "slug": "nvidia-h100-pcie"}
    recorded(root, root / "records/nvidia-h100-pcie/docs/w1.ipynb", pcie)
    assert [one.folder for one in editions(root)] == ["", "h100", "h100-pcie"]


# --- the switch ------------------------------------------------------------------------------------


def test_the_switch_leads_to_the_same_page_of_every_other_edition(third):
    course, _ = render(third, slug=BESIDE)
    nav = Switch(course, "").on("w1.html").nav
    assert nav == (
        '<nav class="editions" aria-label="Numbers of which card"><ul>'
        '<li><a href="../w1.html" data-edition="h200">H200</a></li>'
        '<li><a href="../a100/w1.html" data-edition="a100" class="lacks" '
        'title="The A100 has not measured this page">A100</a></li>'
        '<li><b aria-current="true">H100</b></li></ul></nav>'
    )
    # The ledger has a page for those alone that were measured: else its index is the nearest.
    assert 'href="../../a100/numbers.html"' in Switch(course, "").on("numbers/w1.html").nav
    assert 'href="../../numbers/w1.html"' in Switch(course, "").on("numbers/w1.html").nav


def test_the_script_is_told_of_pages_that_there_are_and_of_a_card_that_comes_first(third):
    course, _ = render(third)
    meta = Switch(course, A100["slug"]).on("w1.html").meta
    assert 'content="h200" data-pages=' in meta
    assert "{&quot;h100&quot;: &quot;h100/w1.html&quot;}" in meta
    assert 'data-first="a100"' in meta


def test_a_site_of_one_edition_has_no_switch(tmp_path, monkeypatch):
    course, _ = render(repository(tmp_path, monkeypatch))
    assert Switch(course, "").on("w1.html").nav == ""


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
        course = Course(
            root=tmp_path,
            reference="nvidia-h200",
            edition=load_edition(tmp_path, "nvidia-h200", []),
            editions=tuple(SiteEdition(slug, "", slug, False) for slug in ("nvidia-h200", BESIDE)),
            waiting=listed,
        )
        card_tests.check(course)
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


def test_no_edition_is_listed_beside_the_reference():
    with pytest.raises(AboutError, match=r"^\[tool.course\] has 'also', known are "):
        about({"tool": {"course": {"reference": "nvidia-h200", "also": ["x"]}}})
