"""The bibliography: what is cited is listed, what is listed is cited, and each footnote says who read it and when."""

import datetime
from pathlib import Path

import pytest

from course_kernels.measure.machine import MACHINES
from course_site.lint import cited_figures
from course_site.pages.bibliography import (
    BibliographyError,
    cited_keys,
    footnotes,
    load,
    reference,
    unknown,
    unused,
)

ROOT = Path(__file__).parents[2]
ONE = """
[dao2022]
title = "FlashAttention: *fast*"
authors = ["Tri Dao", "Dan Fu"]
where = "NeurIPS"
year = 2022
url = "https://arxiv.org/abs/2205.14135"
read = 2026-11-20
"""


@pytest.fixture
def book(tmp_path):
    def write(text):
        path = tmp_path / "bibliography.toml"
        path.write_text(text)
        return path

    return write


def test_the_bibliography_of_the_course_loads():
    entries = load(ROOT / "docs" / "bibliography.toml")
    assert {"dao2022", "dao2023", "shah2024", "milakov2018", "williams2009"} <= set(entries)
    assert {key for machine in MACHINES for key in machine.sources} <= set(entries)


def test_a_footnote_names_people_title_place_and_the_day_it_was_read(book):
    entries = load(book(ONE))
    assert footnotes(["dao2022"], entries) == (
        r"[^dao2022]: Tri Dao and Dan Fu, [*FlashAttention: \*fast\**](https://arxiv.org/abs/2205.14135), "
        "NeurIPS, 2022. "
        "Read 20 November 2026."
    )


def test_a_source_nobody_read_says_so(book):
    path = book(ONE.replace("read = 2026-11-20", 'verified = false\nnote = "Figures second-hand"'))
    assert reference(load(path)["dao2022"]).endswith("NeurIPS, 2022. Figures second-hand. (read second-hand)")


def test_what_was_read_of_it_is_told(book):
    assert reference(load(book(ONE + 'note = "abstract"'))["dao2022"]).endswith(
        "Read 20 November 2026: abstract."
    )


def test_many_authors_are_shortened(book):
    path = book(ONE.replace('["Tri Dao", "Dan Fu"]', '["A B", "C D", "E F", "G H", "I J"]'))
    assert reference(load(path)["dao2022"]).startswith("A B et al., ")


def test_an_unknown_key_fails_its_page(book):
    with pytest.raises(KeyError, match="dao2099"):
        footnotes(["dao2099"], load(book(ONE)))
    assert unknown(["dao2022", "dao2099"], load(book(ONE))) == ["dao2099"]


def test_an_unused_key_is_named_unless_a_data_sheet_uses_it(book):
    entries = load(book(ONE))
    assert unused(entries, []) == ["dao2022"]
    assert unused(entries, ["dao2022"]) == []
    assert unused(entries, [], also_used={"dao2022"}) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text + text, "occurs twice"),
        (lambda text: text + text.replace("[dao2022]", "[other]"), "'other' has the address of 'dao2022'"),
        (lambda text: text.replace("[dao2022]", "[Dao_2022]"), "is not a key"),
        (lambda text: text.replace("title =", "titel ="), "unknown field 'titel'"),
        (lambda text: text.replace('title = "FlashAttention: *fast*"', ""), "lacks 'title'"),
        (lambda text: text.replace("year = 2022", 'year = "2022"'), "'year' must be a int"),
        (lambda text: text.replace("year = 2022", "year = true"), "'year' must be a int"),
        (lambda text: text.replace('["Tri Dao", "Dan Fu"]', "[1]"), "list of names"),
        (lambda text: text.replace("https://", "ftp://"), "http address"),
        (lambda text: text.replace("read = 2026-11-20", ""), "lacks 'read'"),
        (lambda text: text + "verified = false", "yet was read"),
        (lambda _: "dao2022 = 1", "must be a table"),
        (lambda _: "[dao2022", "not TOML"),
    ],
)
def test_a_faulty_bibliography_is_refused_in_one_line_with_its_file(book, change, says):
    with pytest.raises(BibliographyError) as error:
        load(book(change(ONE)))
    assert says in str(error.value)
    assert "bibliography.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_bibliography_is_one_line(tmp_path):
    with pytest.raises(BibliographyError, match="no such file"):
        load(tmp_path / "none.toml")


def test_cited_keys_come_in_order_and_code_cites_nothing():
    text = (
        "A [^b] and [^a], [^b] again.[^c]\n\n`[^code]` and ``x [^code2]``\n\n"
        "```\n[^fence]\n```\n\n~~~\n[^tilde]\n~~~\n\nMine.[^own]\n\n[^own]: defined here\n"
    )
    assert cited_keys(text) == ["b", "a", "c"]


TODAY = datetime.date(2026, 11, 30)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"year = 2022": "year = 2021"}, "its key 2022"),
        ({"[dao2022]": "[dao]", "year = 2022": "year = 2019"}, "its arXiv number May 2022"),
        ({"2205.14135": "2405.14135"}, "its arXiv number May 2024"),
        ({"2205.14135": "2213.14135"}, "there is no arXiv number"),
        ({"2205.14135": "2205.1413"}, "there is no arXiv number"),
        ({"arxiv.org/abs/2205.14135": "a.b/2023/06/20/vllm.html"}, "its address 2023"),
        ({"2026-11-20": "2027-11-20"}, "a day to come"),
        ({"2026-11-20": "2026-12-24"}, "a day to come"),
        ({"read = 2026-11-20": 'verified = false\nnote = "As told there, read 20 November 2027"'}, "a day to come"),
        ({"2026-11-20": "2021-11-20"}, "before it appeared"),
        ({"[dao2022]": "[dao2027]", "year = 2022": "year = 2027", "2205.14135": "2701.14135"}, "which is to come"),
        ({"read =": 'figures = ["9.2"]\nread ='}, "list of numbers"),
    ],
)  # fmt: skip
def test_a_year_and_a_day_agree_with_the_number_the_address_and_today(book, changes, says):
    text = ONE
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(BibliographyError) as error:
        load(book(text), TODAY)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_preprint_may_be_printed_later(book):
    text = ONE.replace("2022]", "2023]").replace("= 2022", "= 2023").replace('"NeurIPS"', '"ICML"')
    assert load(book(text), TODAY)["dao2023"].year == 2023


def test_every_entry_of_the_course_agrees_with_itself():
    assert len(load(ROOT / "docs" / "bibliography.toml", TODAY)) > 80


SOURCES = load(ROOT / "docs" / "bibliography.toml")


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("Our best run reached 99 % of peak [^harris2013].", "99"),
        ("The paper reports up to 750 TFLOP/s, or 75 % of an H100's peak [^shah2024].", "750"),
        ("40.3 GB of traffic became 4.4 GB, a factor of 9.6 [^dao2022].", "9.6"),
        ("The paper reports about three times the speed of its parent [^dao2023].", "three"),
        ("It reached 764 TFLOP/s where cuBLAS had 761 [^shankhdhar2024].", "761"),
        ("A trip to L1 takes 30.7 ticks [^luo2024].", "30.7"),
        ("For L1 they counted 41 cycles [^luo2024].", "41"),
        ("From 2000 to 443 µs, and then 39 µs, 22.3 µs and 20.9 µs [^zhang2025].", "20.9"),
    ],
)
def test_a_citation_excuses_no_number_but_its_own(text, figure):
    (said,) = cited_figures.faults_of(text, SOURCES)
    assert repr(figure) in said
    assert "docs/bibliography.toml" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    "text",
    [
        "The paper reports up to 740 TFLOP/s, or 75 % of an H100's peak [^shah2024].",
        "In 2022 they counted 40.3 GB that became 4.4 GB, a factor of 9.2 [^dao2022].",
        "A trip to L1 takes 40.7 ticks, and 478.8 ticks to memory [^luo2024].",
        "Volta's warps may go their own ways [^harris2013].",
        "It took 3 µs [^unknown].",
    ],
)
def test_its_own_figures_pass(text):
    assert list(cited_figures.faults_of(text, SOURCES)) == []
