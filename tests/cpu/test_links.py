"""The checker of the built site finds each planted fault and nothing in a whole site."""

import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_site.site import search
from course_site.site.links import check, main

PAGE = """<!doctype html><html><head>
<link rel="canonical" href="https://example.org/a.html">
<link rel="stylesheet" href="css/site.css">
<style>body {{ background: url(img/dot.png) }}</style>
<script src="js/site.js"></script></head><body>
<h1 id="top-of-page">Title</h1><a id="named"></a><a name="old"></a>
<a href="sub/b.html#there">b</a><a href="sub/">c</a><a href="#named">here</a> <a href="#old">old</a><a href="#">x</a>
<a href="https://example.org/nowhere#x">out</a> <a href="mailto:a@b.c">mail</a> <a href="a.ipynb">notebook</a>
<img src="img/dot.png" srcset="img/dot.png 1x, img/dot%20two.png 2x"> <img src="data:image/png;base64,AAAA">
<svg><use href="#named"></use><a href="sub/b.html"></a></svg>
{extra}</body></html>
"""


def notebook(*cells):
    return nbformat.writes(new_notebook(cells=list(cells)))


def index_of(*anchors):
    sections = [search.Section(anchor, "A title") for anchor in anchors]
    return search.scripts([search.Said("sub/b.html", "B", 0, sections)], search.Words({}, []))


@pytest.fixture
def site(tmp_path):
    files = {
        "index.html": PAGE.format(extra=""),
        "404.html": '<link rel="stylesheet" href="/course/css/site.css"><a href="/course/">x</a><a href="/">x</a>',
        "sub/index.html": "<p>b</p>",
        "sub/b.html": '<h2 id="there">There</h2><a href="../index.html#top-of-page">up</a><a href="..">up</a>',
        "css/site.css": "/* url(https://no.org/x.png) */ a { background: url('../img/dot.png?v=1#x') }",
        "js/site.js": "",
        "img/dot.png": "",
        "img/dot two.png": "",
        "a.ipynb": notebook(
            new_markdown_cell(
                "`{{ x }}`, `[^x]`, $x_{{i}}$, `[n](x)`, [`there`](sub/b.html#there), [1](<https://a.org>)"
            ),
            new_code_cell("1"),
        ),
        **index_of("there", ""),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_whole_site_has_no_problems(site, capsys):
    assert check(site) == []
    assert main([str(site)]) == 0
    assert "every link" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("planted", "says"),
    [
        ('<a href="gone.html">x</a>', "'gone.html' leads to no file"),
        ('<a href="sub/c/">x</a>', "leads to no file"),
        ('<a href="sub/b.html#gone">x</a>', "sub/b.html has no id 'gone'"),
        ('<a href="#gone">x</a>', "index.html has no id 'gone'"),
        ('<a href="/sub/b.html">x</a>', "starts at the server's root"),
        ('<a href="page.py">x</a>', "leads to no file"),
        ('<a href="http://">x</a>', "is not an address"),
        ('<img src="img/gone.png">', "leads to no file"),
        ('<img src="https://example.org/x.png">', "asks another host"),
        ('<img srcset="img/dot.png 1x, //example.org/x.png 2x">', "asks another host"),
        ('<script src="https://unpkg.com/mermaid"></script>', "asks another host"),
        ('<script src="//unpkg.com/mermaid"></script>', "asks another host"),
        ('<link rel="preconnect" href="https://fonts.gstatic.com">', "asks another host"),
        ('<link rel="stylesheet" href="https://fonts.googleapis.com/css">', "asks another host"),
        ('<iframe src="https://example.org"></iframe>', "asks another host"),
        ('<p style="background: url(https://example.org/x.png)">x</p>', "asks another host"),
        ("<style>@import 'https://example.org/x.css';</style>", "asks another host"),
        ('<svg><image href="https://example.org/x.png"/></svg>', "asks another host"),
    ],
)
def test_a_planted_fault_is_found_with_its_file_and_line(site, planted, says):
    (site / "index.html").write_text(PAGE.format(extra=planted))
    (problem,) = check(site)
    assert says in problem
    assert problem.startswith("index.html:11: ")


def test_a_style_sheet_may_not_ask_elsewhere_nor_for_what_is_not_there(site):
    (site / "css" / "site.css").write_text(
        "a { src: url(https://x.org/f.woff2), url(gone.woff2), url(data:x) }"
    )
    assert check(site) == [
        "css/site.css: asks another host for 'https://x.org/f.woff2': vendor it under docs/assets",
        "css/site.css: 'gone.woff2' leads to no file",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            notebook(new_markdown_cell("It is {{ flash.tflops:.0f }} fast.")),
            "cell 1 has an unfilled value: '{{ flash.tflops:.0f }} fast.'",
        ),
        (
            notebook(
                new_code_cell(
                    "1/0", outputs=[new_output("error", ename="ZeroDivisionError", evalue="by zero")]
                )
            ),
            "cell 1 shows an error: ZeroDivisionError: by zero",
        ),
        (notebook(new_markdown_cell("So [^luo2024].")), "cell 1 has a mark without its source: 'luo2024'"),
        (notebook(new_markdown_cell("See [it](sub/b.py).")), "cell 1: 'sub/b.py' leads to no file"),
        (
            notebook(new_markdown_cell("[`x`](sub/b.html#x)")),
            "cell 1: 'sub/b.html#x': sub/b.html has no id 'x'",
        ),
        ("{", "does not open as a notebook"),
        ('{"cells": 3, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', "does not open as a notebook"),
        ("", "does not open as a notebook"),
    ],
)
def test_a_faulty_notebook_is_found(site, text, says):
    (site / "a.ipynb").write_text(text)
    (problem,) = check(site)
    assert problem.startswith("a.ipynb: ")
    assert says in problem
    assert "\n" not in problem


def test_the_search_index_leads_somewhere(site):
    part = site / "search/part1.js"
    part.write_text(index_of("gone")["search/part1.js"])
    assert check(site) == ["search/index.js: 'sub/b.html#gone': sub/b.html has no id 'gone'"]
    part.write_text("[]")
    assert check(site) == ["search/part1.js: is not a search index"]
    part.unlink()
    assert check(site) == ["search/index.js: names a part that is not there: part1.js"]
    (site / search.FILE).write_text("[]")
    assert check(site) == ["search/index.js: is not a search index"]


def test_a_folder_that_is_no_site_is_one_line(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "there is no index.html" in capsys.readouterr().err


def test_twenty_pages_take_well_under_a_second(site):
    cells = [new_markdown_cell("Some words. " * 50), new_code_cell("x = 1")] * 20
    for cell_id, cell in enumerate(cells):
        cells[cell_id] = type(cell)(cell, id=f"c{cell_id}")
    big = PAGE.format(extra='<p>words <a href="sub/b.html#there">b</a></p>' * 1000)
    for i in range(20):
        (site / f"page{i}.html").write_text(big)
        (site / f"page{i}.ipynb").write_text(notebook(*cells))
    check(site)  # nbformat is imported once
    start = time.process_time()
    assert check(site) == []
    assert time.process_time() - start < 3  # of work, whatever else the machine does
