"""Printed sums: a reader with a pencil comes to what stands there, or the site is not built."""

import re

import pytest

from course_site.lint import printed_sums
from course_site.lint.printed_sums import sums, wrong_sums
from course_site.site.links import check

RIGHT = [
    "So 4 + 8/16 = 4.5 bits.",
    "128 ÷ 3 = 43",
    "(128 + 256) × 64 × 2 bytes = 48 KiB",
    "12 × 256 threads × 16 bytes = 48 KiB",
    "139 GB ÷ 4800 GB/s = 29 ms",
    "690 ticks × 2429 bytes a tick = 1.7 MB",
    "128 bytes × 132 SMs × 1976 MHz = 33.4 TB/s",
    "78.83 % ÷ 94.99 % × 1830 = about 1519 MHz",
    "32 × 75 = 2400 blocks",
    "2 · 1 + 3 · 4 = 2 + 12 = 14",
    "999 = 31 × 32 + 7",
    "⌈ 10 / 4 ⌉ = 3",
    "(1 − 0.8⁴) ÷ (1 − 0.8) = 2.95",
    "2²⁸ / 256 = 2²⁰",
    "16 × 4 bits + 8 bits = 72 bits = 9 bytes",
    "1000 × 1000 × 1000 = 1 000 000 000",
    "132 × 128 = 16,896 lanes",
    "6 times 7 is 42, and 10 divided by 4 is 2.5.",
    "100 ÷ 22.3 is about 4.5",
    "2199 ÷ 1.068 ≈ 2060",
    "So 2 × 4096³ is 137.4 billion.",
    "½ × 7 = 3.5",
    "2 · e⁻² + 1 = 1.27",
    r"\(1 + 1024/64 = 17\)",
    "40.3 GB that became 4.4 GB, a factor of 9.2, forward and backward",
    "from 93.6 µs to 137.4 µs: a factor of 1.47.",
    "500 µs against 2 ms, a factor of 4",
]
WRONG = [
    ("So 4 + 8/16 = 4.4 bits.", "4 + 8/16 = 4.4 bits", "4.5"),
    ("79 % ÷ 95 % × 1830 = 1519 MHz", "79 % ÷ 95 % × 1830 = 1519 MHz", "1521.7"),
    ("960 × 6.8 µs = 6.6 ms", "960 × 6.8 µs = 6.6 ms", "6528"),
    ("2199 ÷ 35.5 = 63", "2199 ÷ 35.5 = 63", "61.9"),
    ("2199 ÷ 1.068 = about 2063", "2199 ÷ 1.068 = about 2063", "2058.9"),
    ("2199 ÷ 1.068 = 2060", "2199 ÷ 1.068 = 2060", "2058.9"),
    ("6 times 7 is 43.", "6 * 7 is 43", "42"),
    ("48 KiB ÷ 16 bytes = 3062", "48 KiB ÷ 16 bytes = 3062", "3"),
    ("(128 + 256) × 64 × 2 bytes = 48 KiB ÷ 16 = 3072", "(128 + 256) × 64 × 2 bytes = 48 KiB ÷ 16", "49152"),
    ("2 × 4 + 1 = 10", "2 × 4 + 1 = 10", "9"),
    ("10 / 3 = 3.4", "10 / 3 = 3.4", "3.33333"),
    ("5 = 2 + 2", "5 = 2 + 2", "5"),
    ("from 94 µs to 137 µs: a factor of 1.47.", "94 µs to 137 µs: a factor of 1.47", "1.457"),
]
# Not made of printed numbers alone, or no sum at all.
NO_SUMS = [
    "256 heads: 4·256·N²·d = 2199 GFLOP",
    "1 + N/d = 33",
    "for N = 16, 32 × 4 threads",
    "2P + 2P + 3P = 7P",
    "exp(−∞) = 0",
    "√2 × 3 = 4.24",
    "1.1001101 × 2⁻⁴ = 205/128/16",
    "64 × 256 sums are 128 a thread",
    "The worst error at 256 × 256 × 16384 is 1.3e-06 shared",
    "3 × 4 times 4 × 5 gives 3 × 5, and 3 × 4 times 4 × 5 gives 60 multiply-adds",
    "blocks = 11, column = 21 row",
    "dtype=float32,M=4096,N=4096 · 1980 MHz",
    "B·N = 16384",
    "x2 + 1 = 7",
    "1 / 3 = 0.33…",
    "4 / 0 = 3",
    "a hash 8f3e9999999 = 1",
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_sum_that_comes_out_is_done_and_passes(text):
    assert sums(text)
    assert list(wrong_sums(text)) == []


@pytest.mark.parametrize(("text", "found", "gives"), WRONG)
def test_a_sum_that_does_not_come_out_is_named_with_what_its_digits_give(text, found, gives):
    ((actual, value),) = wrong_sums(text)
    assert actual.replace("times", "*") == found
    assert value.startswith(gives)


@pytest.mark.parametrize("text", NO_SUMS)
def test_what_is_no_sum_of_printed_numbers_is_left_alone(text):
    assert list(wrong_sums(text)) == []


@pytest.mark.parametrize(
    "html",
    [
        "<p>So <span class='value' title='x'>78.8</span> % ÷ <span class='value'>95.0</span> % × 1830 = 1600.</p>",
        "<img alt='Two trays: 3 × 2 = 7'>",
        "<svg><text>3 × 2</text><text>= 7</text></svg>",
        "<p>2<sup>3</sup> × 2 = 12</p>",
        "<table><tr><td>3 × 2 = 7</td></tr></table>",
    ],
)
def test_a_sum_planted_in_a_built_page_is_refused(tmp_path, html):
    (tmp_path / "index.html").write_text(f"<html><body><main>{html}</main></body></html>")

    (line,) = check(tmp_path)

    assert line.startswith("index.html:")
    assert ": printed sum '" in line
    assert check(tmp_path, sums=False) == []


@pytest.mark.parametrize(
    "html",
    [
        "<p>2<sup>28</sup> / 256 = 2<sup>20</sup></p>",
        "<p>2<sup id='fnref:key'><a class='footnote-ref' href='#fn:key'>1</a></sup> × 3 = 6</p><p id='fn:key'>x</p>",
        "<pre>3 * 2 = 7</pre>",
        "<p><code>3 * 2 = 7</code></p>",
        "<script>3 * 2 = 7</script>",
        "<p>3 × 2</p><p>= 7</p>",
    ],
)
def test_what_a_built_page_shows_as_code_or_apart_is_no_sum(tmp_path, html):
    (tmp_path / "index.html").write_text(f"<html><body><main>{html}</main></body></html>")

    assert [line for line in check(tmp_path) if "printed sum" in line] == []


@pytest.mark.parametrize(
    "text",
    ["12 × 2is 24", "_2 × 2 = 4", "e² × 2 = 7", "½ × ½ is ¼", "2 × 3=7", "8 ms to 4 ms, a factor of 3"],
)
def test_the_cheap_look_spares_no_text_with_a_sum(text, monkeypatch):
    cheap = list(printed_sums._sums(text))
    for name in ("_SAYS_EQUAL", "_HAS_A_NUMBER"):
        monkeypatch.setattr(printed_sums, name, re.compile(""))
    assert cheap == list(printed_sums._sums(text))
