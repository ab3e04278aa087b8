"""Formulas: TeX in a page's source, MathML on the site, TeX again in the published notebook."""

import json

import pytest
from test_render import repository

from course_site.site.course import load_course
from course_site.site.notebook import published_notebook
from course_site.site.render.mathematics import FormulaError, mathml
from course_site.site.render.page import render_course

PAGE = r"""
# ---
# id: w1
# title: Flash
# needs: gpu
# description: A page
# ---

# %% [markdown]
# # Flash
#
# Repair by $e^{m_\text{old} - m_1}$, not by `$e$`; the bill is {{ m:.0f }}.
#
# $$ O = P V $$

# %%
from tiny import kernel
"""


def rendered(tmp_path, monkeypatch, page=PAGE):
    course = load_course(repository(tmp_path, monkeypatch, page), None)
    return course, render_course(course)["w1"]


def test_a_formula_is_drawn_in_the_build_and_stays_tex_in_the_notebook(tmp_path, monkeypatch):
    course, page = rendered(tmp_path, monkeypatch)
    assert course.problems == []
    text = page.inlined()
    assert "<mtext>old</mtext>" in text
    assert '<div class="formula"><math display="block">' in text
    assert "`$e$`" in text
    assert text.count("<math") == 2
    notebook = json.loads(published_notebook(course, course.page("w1"), page))
    prose = "".join(cell["source"] for cell in notebook["cells"])
    assert r"$e^{m_\text{old} - m_1}$" in prose
    assert "$$O = P V$$" in prose
    assert "<math" not in prose


def test_what_cannot_be_drawn_stops_the_build_with_one_line(tmp_path, monkeypatch):
    course, _ = rendered(tmp_path, monkeypatch, PAGE.replace("O = P V", r"O = \nosuch V"))
    assert [str(problem) for problem in course.problems] == [
        r'docs/w1.py: the formula $O = \nosuch V$ cannot be drawn, at its character 4: Unknown command "\nosuch".'
    ]


@pytest.mark.parametrize("tex", [r"\frac{a", "x^", "a}", "a & b"])
def test_half_a_formula_is_refused_in_one_line(tex):
    with pytest.raises(FormulaError) as error:
        mathml(tex, displayed=False)
    assert tex in str(error.value)
    assert "\n" not in str(error.value)
