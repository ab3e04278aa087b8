"""The typed-number lint catches every spelling of a performance number, and leaves ordinary prose alone."""

import io
import tokenize
from pathlib import Path

import pytest

from course_site.lint import lint
from course_site.lint.lint import (
    comments_of,
    find_typed_numbers,
    lint_cuda,
    lint_file,
    lint_markdown,
    lint_output,
    lint_page,
    lint_paths,
    lint_python,
    lint_svg,
    lint_toml,
)

TYPED = """
The clock is 1830 MHz under load.
The kernel costs twice the traffic.
The copy drops to a half.
It takes half of the clock.
It is worth three parts in four.
It needs a fifth of the run.
The kernel cuts it by a quarter.
It draws 700 W while it runs.
It reaches 412 TFLOP/s.
It reaches 412&nbsp;TFLOP/s.
It reaches 412&#160;TFLOP/s.
It reaches 412\u202fTFLOP/s.
It reaches 412 TFLOPS.
It reaches 412 TFLOPs.
It reaches 412 GFLOPs/s.
It reaches $412$ TFLOPS.
It reaches $412\\,\\text{TFLOP/s}$.
It reaches $412\\ \\mathrm{TFLOP}/\\mathrm{s}$.
It reaches $4.12 \\times 10^{14}$ FLOP/s.
It reaches \\(412\\,\\mathrm{TFLOP\\,s^{-1}}\\).
It reaches **412** TFLOP/s.
It reaches *412 TFLOP/s*.
It reaches `412` TFLOP/s.
It reaches 412 `TFLOP/s`.
It reaches `412 TFLOP/s`.
It reaches <b>412</b> TFLOP/s.
It reaches 412<span>&nbsp;</span>TFLOP/s.
It reaches 412\u200b TFLOP/s.
It reaches ４１２ TFLOP/s.
It reaches 412-TFLOP/s class speed.
It reaches 412 dense bf16 TFLOP/s.
It reaches 412 trillion operations per second.
It reaches 412 teraflops.
It reaches four hundred teraflops.
It does a hundred TFLOP/s.
Between 400 and 412 TFLOP/s.
Throughput in TFLOP/s: 412.
The card moves 4.2 TB/s.
The card moves 4,200 GB/s.
The card moves 4.2 TB per second.
The card moves four terabytes a second.
The card moves 4200 gigabytes per second.
The link does 900 Gbps.
Decode gives 85 tokens/s.
Decode gives 85 tokens per second.
It takes 12 µs.
It takes 12 μs.
It takes 12us.
It takes 12-µs naps.
It takes $12\\,\\mu\\text{s}$.
It takes 3 ms.
It takes 3.5ms.
It takes 800 ns.
It takes twelve microseconds.
It takes three milliseconds.
It takes hundreds of microseconds.
It costs about a microsecond.
It takes 1.7 s.
It finishes in 2 seconds.
A trip to HBM is 600 cycles long.
It runs at 83 % of peak.
It runs at 83% of peak.
It runs at 83&nbsp;% of the peak.
It runs at $83\\,\\%$ of peak.
It runs at 83 percent of the data-sheet peak.
It runs at eighty percent of peak.
It runs at 94 % of cuBLAS.
It runs at 80 % of cuDNN's speed.
It is 20 % faster.
It shows 95 % utilisation.
The kernel reaches 83 %.
It is at 0.83 of peak.
The cache shrinks by 56.9× (and more).
On our card we beat cuBLAS.
It does 85 output tokens/s.
It spends 90 % of its time waiting.
It is 1.4× faster.
It is 1.4x.
It is 1.4x faster.
It is 1.4 × faster.
It is $1.4\\times$ faster.
It is 1.4&times; faster.
A 1.4× speedup.
A 3x speed-up.
That is 3× SDPA.
It runs 3× as fast.
It gets 2×, sometimes more.
It is 3 times faster.
It is three times faster.
It is ten times slower.
It is several times faster.
It is a hundred times as fast.
It is twice as fast.
It is nearly twice the speed.
It has twice the bandwidth.
It needs half the time.
It needs half of the kernel time.
It needs a third of the time.
It runs at half of peak.
It has five times the bandwidth.
It has five times the HBM bandwidth.
It doubles the throughput.
It halves the runtime.
It is an order of magnitude faster.
A speedup of 3.
A speed-up of three.
It is a threefold speedup.
It is faster by a factor of 3.
It is faster than cuBLAS.
It is slower than the naive kernel.
It is much faster than PyTorch.
It is as fast as cuBLAS.
It beats cuBLAS.
Our kernel beats the mighty cuBLAS.
It outperforms SDPA.
It outperformed the library.
It loses to cuDNN.
It does not beat cuBLAS.
It is on par with cuDNN.
When N is large, it beats SDPA.
Why only 412 TFLOP/s?
![A chart that ends at 412 TFLOP/s](chart.svg)
<img src="chart.svg" alt="A chart that ends at 412 TFLOP/s">
[a link](page.md "reaches 412 TFLOP/s")
## From zero to 412 TFLOP/s
- a list item with 412 TFLOP/s
> a quotation with 412
> TFLOP/s
A line that ends with 412
TFLOP/s.
It is {{ flash.tflops:.0f }} TFLOP/s, not 300 TFLOP/s.
It is {{ 412 }} TFLOP/s.
It is {{ 412:.0f }} TFLOP/s.
Dao reports 740 TFLOP/s. The paper is good.[^shah2024]
[^note]: We saw 412 TFLOP/s.
<!-- it was 412 TFLOP/s -->
""".strip()

PLAIN = """
Vectors of 4096 numbers fit into 48 KB.
d = 128, N = 16384, 16 bytes each, 2 bytes in bf16.
The card has 132 SMs, 141 GB of HBM and 50 MB of L2.
The session takes 180 minutes; the break starts after 90 min and lasts 10 minutes.
Reading time: 20 minutes.
Your first kernel in 20 minutes.
The ten-second opening demo.
Samples are taken until 1 s has gone, never fewer than 10 nor more than 1000.
On 21 November 2026 with CUDA 13.0, torch 2.11 and Triton 3.6.0.
torch 2.x, CUDA 13.x and driver 580.95.05.
Tiles of 128×64 and 128 x 64 x 32.
Tiles of $128 \\times 64$, so $2 \\times N \\times d$ numbers.
Two tiles of 64×d bytes; 2 × N² of them; 4·B·H·N²·d FLOPs.
A product such as 1.5×10^9 or 2.5 × 4 or 1.4 × r.
8× H200 in one host, and 4× unrolled loops.
It reads each key 16 times and writes 4 bytes.
It runs 200 times.
Three times we load the tile.
Twice the bytes, half the numbers, four times the work.
fp32 needs twice the memory of bf16.
A bf16 number is half as wide.
Half of the warps wait; a third of the rows is masked.
The condition holds in 99 % of the resamples.
A confidence of 95 %.
Nothing runs at more than 100 % of peak.
Percent of Peak is the name; % of peak is the headline number.
The norm is within 0.1 % of the truth.
It must agree to 3 digits, an error below 1e-3.
Flash does not compute less; it remembers less.
Shared memory is faster than HBM.
A result that is faster than its floor is refused.
Can a Triton kernel beat cuBLAS?
How much faster is it than cuBLAS?
We ask how many times faster it is.
Whether it beats cuBLAS is the question.
If your kernel is faster than cuBLAS, check its answer again.
Try to beat cuBLAS.
## Beat cuBLAS
The label says batch 1 decode tokens/s.
A formula: 1.4×(a + b).
Beating cuBLAS is mostly logistics.
{{ flash.tflops:.0f }} TFLOP/s and {{ a / b:.1f }}× faster, {{ x.us }} µs.
{{ x:.0f }} % of peak in {{ flash.ms:.2f }} ms.
The unit is TFLOP/s, on a log axis.
Throughput (TFLOP/s) against N, bf16, H100 TFLOP/s and RTX 4090 TFLOP/s.
1 µs is 1000 ns, and a millisecond is 1000 µs.
1 TFLOP/s = 1e12 FLOP/s.
One GB/s is a billion bytes per second.
An FMA is 2 FLOPs; the job is 137 GFLOP and the tile 4 FLOP.
Arithmetic intensity in FLOP/B; the ridge stands near 206 FLOP/B.
See section 3. Then read step 4.
Dr. Who vs. cuBLAS, Fig. 3, e.g. 4 rows, i.e. 2 tiles, cf. p. 12 etc.
Shah et al. 2024 report 740 TFLOP/s [^shah2024].
Shah reports 740 TFLOP/s.[^shah2024]
FA3 reached 740 TFLOP/s (75 % of peak), 1.5 times faster than FA2 [^shah2024]; that was on an H100.
The paper says "up to 9.2× less traffic", in 7.3 ms.[^dao2022] We measure our own.
The sheet promises 4.8 TB/s of bandwidth[^nvidia-h200] and no more.
[docs](https://example.org/12ms/412TFLOPS) and https://example.org/3x-faster.html
![tiles](tiles_3x.png)
`time_ms`, `n = 12`, `sm_90a`, `0x1F`
One kernel, two kernels, one microscope.
Three US-based reviewers, 3 us-based ones.
We spend half of the session on it; half an hour is enough.
The second one is a second tile of 64.
Twenty lines of code. A hundred threads. Three ideas.
W1 comes after L1 to L8; rung 3 of 12.
Most of the time the warps wait.
Two thirds of the tiles are skipped.
A launch costs a few microseconds.
Doubling N makes four times as many scores.
The first kernel is the slow one. The second waits less.
""".strip()


def sentences(block: str) -> list[str]:
    lines: list[str] = []
    for line in block.splitlines():
        if lines and (line.startswith(("> TFLOP", "TFLOP/s."))):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return lines


@pytest.mark.parametrize("sentence", sentences(TYPED))
def test_a_typed_number_is_found(sentence):
    assert find_typed_numbers(sentence), sentence


@pytest.mark.parametrize("sentence", sentences(PLAIN))
def test_ordinary_prose_is_left_alone(sentence):
    assert [str(finding) for finding in find_typed_numbers(sentence)] == []


def test_all_ordinary_prose_together_is_left_alone():
    assert [str(finding) for finding in find_typed_numbers(PLAIN.replace("\n", "\n\n"))] == []


# --- sentences, tables, places -----------------------------------------------------------------------


def test_a_citation_excuses_its_own_sentence_only():
    text = "FA3 reached 740 TFLOP/s, says the paper [^shah2024]. Ours reaches 412 TFLOP/s. Good.[^shah2024]"
    assert [finding.excerpt for finding in find_typed_numbers(text)] == ["412 TFLOP/s"]


def test_abbreviations_and_decimals_do_not_end_a_sentence():
    text = "Shah et al. reach, e.g. in Fig. 3, ca. 740.5 TFLOP/s vs. 1.5 for No. 2 [^shah2024]."
    assert find_typed_numbers(text) == []


def test_a_citation_in_one_list_item_does_not_excuse_the_next():
    text = "- FA3: 740 TFLOP/s [^shah2024]\n- ours: 412 TFLOP/s\n1. third: 12 µs\n2. fourth [^shah2024]"
    assert [finding.excerpt for finding in find_typed_numbers(text)] == ["412 TFLOP/s", "12 µs"]


def test_a_heading_does_not_borrow_the_citation_below_it():
    text = "## 740 TFLOP/s\nSo says the paper.[^shah2024]"
    assert [finding.line for finding in find_typed_numbers(text)] == [1]


def test_a_footnote_of_ones_own_is_no_citation():
    assert find_typed_numbers("Ours reaches 412 TFLOP/s.[^mine]\n\n[^mine]: Trust me.")
    assert find_typed_numbers("Ours reaches 412 TFLOP/s.[^mine]", keys={"shah2024"})
    assert not find_typed_numbers("FA3 reaches 740 TFLOP/s.[^shah2024]", keys={"shah2024"})


def test_a_table_with_a_unit_in_its_header_may_not_type_its_numbers():
    table = (
        "| kernel | TFLOP/s | tile |\n|---|---|---|\n| flash | 412 | 128 |\n"
        "| sdpa | {{ sdpa.tflops:.0f }} | 64 |\n| FA3 [^shah2024] | 740 | 128 |"
    )
    assert [(f.line, f.excerpt) for f in find_typed_numbers(table)] == [(3, "412 under TFLOP/s")]


def test_a_table_of_shapes_is_left_alone():
    table = "| kernel | tile | bytes (KB) | steps |\n|---|---:|---|---|\n| flash | 128 × 64 | 48 | 3 |"
    assert find_typed_numbers(table) == []


def test_a_finding_knows_its_line_and_column():
    (finding,) = find_typed_numbers("One.\n\nTwo has **412** TFLOP/s.")
    assert (finding.line, finding.column) == (3, 11)


def test_several_numbers_in_one_sentence_are_all_reported():
    found = find_typed_numbers("It takes 12 µs, so 412 TFLOP/s, 83 % of peak, 1.4× faster.")
    assert [finding.excerpt for finding in found] == ["12 µs", "412 TFLOP/s", "83 % of peak", "1.4× faster"]


def test_code_is_searched_for_units_only_and_only_when_asked():
    fence = "```\n$ bench\n412 TFLOP/s\n```"
    assert [finding.line for finding in find_typed_numbers(fence)] == [3]
    assert find_typed_numbers(fence, code=False) == []
    assert find_typed_numbers("`a = 2 * b  # 32 lanes, twice`") == []
    assert find_typed_numbers("```\na = 2 * b  # twice as fast as cuBLAS\n```") != []  # a comment is prose


def test_the_choices_of_a_prediction_claim_nothing():
    for choices in (
        "- 1 %\n- 50 % of peak\n- 400 TFLOP/s",
        "A tenth of the peak · 50 % of peak · 400 TFLOP/s",
    ):
        assert find_typed_numbers(choices)
        assert find_typed_numbers(choices, guesses=True) == []
    assert find_typed_numbers("Mind that cuBLAS reaches 400 TFLOP/s.", guesses=True)


# --- claims and other blocks -------------------------------------------------------------------------


def test_a_claim_may_compare_but_not_type():
    assert find_typed_numbers("Ours beats cuBLAS, twice as fast.", in_claim=True) == []
    assert find_typed_numbers("Ours reaches 412 TFLOP/s.", in_claim=True)
    assert find_typed_numbers("Ours is 1.4× faster.", in_claim=True)


@pytest.mark.parametrize(
    ("sentence", "condition", "allowed"),
    [
        ("Ours is at least 1.4× as fast.", "a.tflops > 1.4 * b.tflops", True),
        ("Ours is at least 1.5× as fast.", "a.tflops > 1.2 * b.tflops", False),
        ("Ours is more than twice as fast.", "a.us * 2 < b.us", True),
        ("Ours is about twice as fast.", "a.tflops > 1.9 * b.tflops", True),
        ("Ours is three times faster.", "a.tflops > b.tflops", False),
        ("It needs less than half the time.", "a.us < 0.5 * b.us", True),
        ("It reaches 80 % of cuDNN.", "a.tflops > 0.8 * b.tflops", True),
        ("It reaches 80 % of cuDNN.", "a.tflops > 0.6 * b.tflops", False),
        ("Ours is faster than cuBLAS.", "a.tflops > b.tflops", True),
        ("Ours needs 12 µs.", "a.us < 12", False),
    ],
)
def test_a_ratio_in_a_claim_must_stand_in_its_condition(sentence, condition, allowed):
    assert (find_typed_numbers(sentence, in_claim=True, condition=condition) == []) is allowed


PAGE = """---
id: w1
title: A page
description: Reaches 411 TFLOP/s.
---

/// claim | flash.tflops > 1.4 * sdpa.tflops
Ours is 1.4× as fast as SDPA: {{ flash.tflops:.0f }} TFLOP/s.
/// otherwise
Ours beats nothing and runs at 413 TFLOP/s.
///

Ours beats SDPA.

/// chart | lines
title: From 414 TFLOP/s upwards
y_label: TFLOP/s
references:
  - {label: peak, value: 989}
  - {label: parity, value: 1}
series:
  - {name: flash.*, label: tuned Triton}
alt: >
  Ours ends at
  415 TFLOP/s.
///

/// predict | Ours does 416 TFLOP/s; how much is that?
Choose:

- 1 % of peak
- 50 % of peak, some 417 TFLOP/s
/// reveal
It is {{ flash.of_peak:.0%}}, or 418 TFLOP/s.
///

/// figure | docs/assets/figures/enemy_12ms.svg
alt: the enemy takes 419 ms
///

```
/// claim
420 TFLOP/s
```
"""


def test_what_a_machine_had_holds_up_no_speed():
    text = "/// when | guests.raced == 1\nOurs beats SDPA.\n/// otherwise\nOurs beats SDPA again.\n///\n"
    assert [(f.line, f.excerpt) for f in lint_markdown(text)] == [(2, "beats SDPA"), (4, "beats SDPA")]


def test_every_kind_of_block_is_read_by_its_own_rules():
    found = lint_markdown(PAGE)
    assert [(f.line, f.excerpt) for f in found] == [
        (4, "411 TFLOP/s"),
        (10, "413 TFLOP/s"),
        (13, "beats SDPA"),
        (16, "414 TFLOP/s"),
        (19, "989"),
        (25, "415 TFLOP/s"),
        (28, "416 TFLOP/s"),
        (34, "418 TFLOP/s"),
        (38, "419 ms"),
        (43, "420 TFLOP/s"),
    ]


SCRIPT = '''# ---
# id: w1
# title: It runs at 411 TFLOP/s
# ---

# %% [markdown]
# # A heading
#
# Ours takes
# 12 µs.

# %%
from course_kernels.measure import record, text  # 13 µs

# It beats
# cuBLAS.
# %config InlineBackend.figure_format = "svg"
record(note=text("412 TFLOP/s"), other=text(f"{x:.0f} TFLOP/s"))

# %% [markdown]
"""
Nothing but 414 TFLOP/s here.
"""

# %% tags=["hide"]
print(
    "about "
    "15 µs"
)
'''


def test_a_page_script_is_read_whole_with_the_lines_of_the_file():
    assert [(f.line, f.excerpt) for f in lint_page(SCRIPT)] == [
        (3, "411 TFLOP/s"),
        (10, "12 µs"),
        (13, "13 µs"),
        (15, "beats cuBLAS"),
        (18, "412 TFLOP/s"),
        (22, "414 TFLOP/s"),
        (27, "15 µs"),
    ]


# --- source files ------------------------------------------------------------------------------------


def test_python_docstrings_and_comments_are_read_and_strings_only_when_asked():
    source = '''"""A kernel: 411 TFLOP/s."""

LIMIT = "412 TFLOP/s"  # twice as fast


def copy(x):
    """Copy x.

    Moves 4.2 TB/s.
    Someone else's: 4.4 TB/s [^dao2022].
    """
    # The paper says that this
    # takes 12 µs [^dao2022].
    # Ours: 13 µs.
    return x  # [BLOCK_M, 64]
'''
    assert [(f.line, f.excerpt) for f in lint_python(source)] == [
        (1, "411 TFLOP/s"),
        (3, "twice as fast"),
        (9, "4.2 TB/s"),
        (14, "13 µs"),
    ]
    assert (3, "412 TFLOP/s") in [(f.line, f.excerpt) for f in lint_python(source, strings=True)]


def test_python_that_cannot_be_read_is_a_finding():
    (finding,) = lint_python("def (:\n")
    assert "cannot be read as Python" in finding.why


def test_cuda_comments_are_read_and_strings_are_not():
    source = """// Idea: reaches
// 411 TFLOP/s.
/* Cost: it takes
 * 12 µs. */
const char *url = "http://x/412 TFLOP/s";  // twice as fast
int a = 3; // 4 bytes, tile 64x64
// Source: 740 TFLOP/s in the paper [^shah2024].
"""
    assert [(f.line, f.excerpt) for f in lint_cuda(source)] == [
        (2, "411 TFLOP/s"),
        (4, "12 µs"),
        (5, "twice as fast"),
    ]


def test_toml_strings_and_comments_are_read():
    source = '''# 411 TFLOP/s
title = "It takes 12\\u00a0µs" # fine
minutes = 20
long = """
two lines, then
4.2 TB/s"""
'''
    assert [(f.line, f.excerpt) for f in lint_toml(source)] == [
        (1, "411 TFLOP/s"),
        (2, "12 µs"),
        (6, "4.2 TB/s"),
    ]


def test_svg_words_are_read():
    svg = '<svg><title>412 TFLOP/s</title><text x="3"><tspan>12</tspan> µs</text><path d="M3 3"/></svg>'
    assert [f.excerpt for f in lint_svg(svg)] == ["412 TFLOP/s", "12 µs"]


@pytest.mark.parametrize(
    "text",
    [
        "412 TFLOP/s",
        "\x1b[1m412\x1b[0m TFLOP/s",
        "time 12.3 us",
        "{'tflops': 412.3}",
        "Measurement(us=12.3)",
        "gb_per_s: 4200",
        "flash is twice as fast",
        "see [^dao2022]: 412 TFLOP/s [^dao2022]",
        "kernel   TFLOP/s\nflash    412.0",
        "kernel | time (µs)\n-------|---\nflash  | 12",
        "done in 1.25 s",
    ],
)
def test_a_printed_performance_number_is_found(text):
    assert lint_output(text), text


@pytest.mark.parametrize(
    "text",
    [
        "recorded: flash, sdpa",
        "tensor([0.0152, 0.1125, 0.0414, 0.8310])",
        "largest error 3.2e-04, allowed 1.0e-02",
        "refused: 1 of 65536 elements is off at (0, 17)",
        "tile 128x64, 4 warps, 48 KB of shared memory",
        "m = 5.0, l = 1.2034, rescale by exp(-2.0)",
        "refused: faster than its floor, so it did not do the work",
        "HGMMA.64x8x16.F32  16\nMUFU.EX2  72",
        "",
    ],
)
def test_other_output_is_left_alone(text):
    assert [str(finding) for finding in lint_output(text)] == []


# --- files -------------------------------------------------------------------------------------------


def test_files_are_read_by_their_kind_and_reported_with_their_path(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "page.py").write_text(SCRIPT)
    (docs / "plain.md").write_text("Ours: 412 TFLOP/s.\n")
    (docs / "bibliography.toml").write_text('[a]\ntitle = "Twice as fast"\n')
    (docs / "image.png").write_bytes(b"\x89PNG\xff")
    vendor = docs / "assets" / "vendor"
    vendor.mkdir(parents=True)
    (vendor / "lib.md").write_text("412 TFLOP/s\n")
    lines = lint_paths([tmp_path])
    assert len(lines) == 8
    assert lines[-1].startswith(f"{docs / 'plain.md'}:1:7: '412 TFLOP/s': a typed rate")
    assert lint_file(docs / "bibliography.toml") == []


COMMENTS = '''\
#!/bin/first
a = "# no"  # one "quoted
b = '# no \\' # no'  #two
c = r"\\"  # a raw one ends at its quote
d = """# no
# no, and it's "quoted" \\""" # no
"""  # three
e = f"{a!r:#>{4}} '"  # four
f = b"" # five
def g():
    """# no"""
\t# six
if a: pass#seven
h = "no \\
# no"
# the last'''


def test_comments_are_those_that_python_takes_for_one():
    ours = [path.read_text(encoding="utf-8") for path in Path(lint.__file__).parent.glob("*.py")]
    for source in (COMMENTS, *ours):
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        known = [(*token.start, token.string) for token in tokens if token.type == tokenize.COMMENT]
        assert comments_of(source) == known
    assert len(comments_of(COMMENTS)) == 10
