"""The fast reader of HTML tells the same as the parser of the standard library."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from course_site.pages import html_reader
from course_site.pages.html_reader import HtmlReader

WELL_FORMED = (
    'A <b class="x y">bold</b> &amp; <A HREF="?a=1&amp;b=2">link</A>\nand <br/> <input disabled>\n',
    "<!doctype html>\n<html lang=en class='no-js'>\n<!-- a > b -->\n<p title=\"a > b\nc\" data-x>q</p >",
    "<script>if (a < b && c > d) { '</p>' }</script>\n<style>p > a { x: 1 }</style>after",
    '<svg viewBox="0 0 1 1"><path d="M0 0"/><feImage xlink:href="a.png" /></svg>',
    '<th class=num>1</th><td style="">2</td><p>&lt;b&gt; &#36; &nbsp;</p>',
    "<script></script><p></p>\n\n<p>last",
)
ODD = (
    "a < b and <b>c</b>",
    "<p <b>x</b>",
    '<a href="?a=1&copy=2">x</a>',
    '<p class = "a">x</p>',
    "<?php x ?><p>y</p>",
    "<script>never closed",
    "<![CDATA[x]]><p>y</p>",
    "<!-- a -- b --><p>y</p>",
    '<p a="1"b="2">x</p>',
    "a & b <p",
)
PAGES = sorted(Path("overrides").rglob("*.html")) + sorted(Path("docs").rglob("*.svg"))


def told(reader: type[HTMLParser], text: str) -> list[object]:
    """Everything that a reader is told of a text, with the lines of it."""
    found: list[object] = []

    class Notes(reader):
        def line_of_it(self):
            return self.line if isinstance(self, HtmlReader) else self.getpos()[0]

        def handle_starttag(self, tag, attrs):
            found.append(("start", tag, attrs, self.line_of_it()))

        def handle_endtag(self, tag):
            found.append(("end", tag, self.line_of_it()))

        def handle_data(self, data):
            found.append(("data", data, self.line_of_it()))

    notes = Notes()
    notes.feed(text)
    notes.close()
    return found


@pytest.mark.parametrize("text", WELL_FORMED)
def test_what_is_well_formed_is_read_fast_and_tells_the_same(text):
    assert html_reader._events(text) is not None
    assert told(HtmlReader, text) == told(HTMLParser, text)


@pytest.mark.parametrize("text", ODD)
def test_what_is_not_is_left_to_the_standard_library(text):
    assert html_reader._events(text) is None
    assert told(HtmlReader, text) == told(HTMLParser, text)


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_files_of_the_site_tell_the_same(path):
    text = path.read_text(encoding="utf-8")
    assert told(HtmlReader, text) == told(HTMLParser, text)
