"""What changed between two kernels: what is left out, what is counted, and what stands on the page."""

import html
import re

import nbformat
import pytest
from test_render import problems, render, repository
from tiny_repository import write

from course_site.pages.diffs import as_html, as_text, compare, without_head
from course_site.site.notebook import published_notebook

NAIVE = """\
// Sum, kernel 1: the plain one.
//
// Next      the same, wider

// grid: one block
extern "C" __global__ void sum_naive(const float *x,  // [N]
                                     float *y) {
  int i = threadIdx.x;
  // region loop
  y[0] += x[i];
  // endregion
}
"""
WIDE = """\
// Sum, kernel 2: in steps.
//
// Against   k01_naive

// grid: one block
extern "C" __global__ void sum_wide(const float *x,  // [N]
                                    float *y) {
  int i = threadIdx.x;
  // region loop
  for (int k = 0; k < 4; k++) {
    y[0] += x[i];
  }
  // endregion
}
"""
PAGE = """
# ---
# id: w1
# title: Flash
# description: A page
# needs: gpu
# ---

# %% [markdown]
# # Flash
#
# /// diff | src/tiny/k01_naive.cu | src/tiny/k02_wide.cu
# ///

# %%
from tiny import kernel
"""


def page(tmp_path, monkeypatch, body="", head="src/tiny/k01_naive.cu | src/tiny/k02_wide.cu"):
    block = f"# /// diff | {head}\n" + "".join(f"# {line}\n" for line in body.splitlines())
    text = re.sub(r"# /// diff .*\n", lambda _: block, PAGE)
    root = repository(tmp_path, monkeypatch, text, names={})
    write(root, "src/tiny/k01_naive.cu", NAIVE)
    write(root, "src/tiny/k02_wide.cu", WIDE)
    return root


def shown(before, after, **options):
    return as_text(compare(before, after, **{"indents": False, **options}), before, after).split("\n")


def test_a_new_name_a_new_head_and_moved_lines_are_no_change(tmp_path, monkeypatch):
    _, rendered = render(page(tmp_path, monkeypatch))
    content = rendered.inlined()
    assert (
        "<summary>From <code>k01_naive.cu</code> to <code>k02_wide.cu</code>: 0 lines out, 2 lines in<"
        in content
    )
    text = re.sub("<[^>]+>", "", re.search(r"<code tabindex.*?</code>", content, re.DOTALL).group())
    assert text.split("\n")[:-1] == [
        "  // grid: one block",
        '  extern "C" __global__ void sum_wide(const float *x,  // [N]',
        "                                      float *y) {",
        "    int i = threadIdx.x;",
        "+   for (int k = 0; k &lt; 4; k++) {",
        "      y[0] += x[i];",
        "+   }",
        "  }",
    ]


def test_the_sign_is_text_and_the_line_an_insertion(tmp_path, monkeypatch):
    _, rendered = render(page(tmp_path, monkeypatch))
    assert rendered.inlined().count("<ins>+ ") == 2
    assert 'aria-label="From k01_naive.cu to k02_wide.cu: 0 lines out, 2 lines in"' in rendered.inlined()


def test_a_region_alone_and_in_other_words(tmp_path, monkeypatch):
    _, rendered = render(page(tmp_path, monkeypatch, "region: loop\ntitle: The loop\nopen: false"))
    assert (
        '<details class="fold diff"><summary>The loop: 0 lines out, 2 lines in</summary>'
        in rendered.inlined()
    )
    assert "threadIdx" not in rendered.inlined()


def test_files_of_two_folders_are_told_apart(tmp_path, monkeypatch):
    root = page(tmp_path, monkeypatch, head="src/tiny/k01_naive.cu | src/other/k01_naive.cu")
    write(root, "src/other/k01_naive.cu", WIDE)
    _, rendered = render(root)
    assert "From <code>tiny/k01_naive.cu</code> to <code>other/k01_naive.cu</code>:" in rendered.inlined()


def test_a_long_one_is_folded_unless_the_page_opens_it(tmp_path, monkeypatch):
    root = page(tmp_path, monkeypatch)
    assert '<details class="fold diff" open>' in render(root)[1].inlined()
    many = "".join(f"  y[{i}] = {i};\n" for i in range(26))
    write(root, "src/tiny/k02_wide.cu", WIDE.replace("  // endregion\n", many))
    assert '<details class="fold diff">' in render(root)[1].inlined()
    opened = page(tmp_path / "opened", monkeypatch, "open: true")
    write(opened, "src/tiny/k02_wide.cu", WIDE.replace("  // endregion\n", many))
    assert '<details class="fold diff" open>' in render(opened)[1].inlined()


def test_the_published_notebook_shows_it_as_text(tmp_path, monkeypatch):
    course, rendered = render(page(tmp_path, monkeypatch))
    notebook = nbformat.reads(published_notebook(course, course.page("w1"), rendered), as_version=4)
    text = notebook.cells[0].source
    assert "From k01_naive.cu to k02_wide.cu: 0 lines out, 2 lines in" in text
    assert "```diff\n" in text
    assert "\n+   for (int k = 0; k < 4; k++) {\n" in text


HEADER = """\
// Steps of four.
//
// Contract  `left` numbers are left

#pragma once

__device__ inline int step(int left) { return left < 4 ? left : 4; }
"""


def with_headers(tmp_path, monkeypatch, text=PAGE):
    """A page whose newer kernel includes one header of the project by way of another, and one of the toolkit."""
    root = repository(tmp_path, monkeypatch, text, names={})
    write(root, "src/tiny/k01_naive.cu", NAIVE)
    includes = '#include <cuda_fp16.h>\n#include "outer.cuh"\n\n'
    write(root, "src/tiny/k02_wide.cu", WIDE.replace("// grid", f"{includes}// grid"))
    write(root, "src/tiny/outer.cuh", '#pragma once\n#include "steps.cuh"\n')
    write(root, "src/tiny/steps.cuh", HEADER)
    return root


def test_the_headers_that_the_newer_file_includes_stand_folded_under_it_with_their_heads(
    tmp_path, monkeypatch
):
    _, rendered = render(with_headers(tmp_path, monkeypatch))
    content = rendered.inlined()
    folded = re.findall(
        r'<details class="fold"[^>]*>\s*<summary>What it includes: <code>([^<]+)</code>', content
    )
    assert folded == ["outer.cuh", "steps.cuh"]
    assert "cuda_fp16.h</code>" not in content
    assert HEADER.strip() in content
    assert content.index('class="fold diff"') < content.index("What it includes")


def test_a_header_stands_once_on_a_page_at_its_first_diff(tmp_path, monkeypatch):
    again = "# Once more.\n#\n# /// diff | src/tiny/k02_wide.cu | src/tiny/k01_naive.cu\n# ///\n"
    text = PAGE.replace("# ///\n", f"# ///\n#\n{again}", 1)
    root = with_headers(tmp_path, monkeypatch, text)
    write(root, "src/tiny/k01_naive.cu", NAIVE.replace("// grid", '#include "steps.cuh"\n\n// grid'))
    _, rendered = render(root)
    content = rendered.inlined()
    assert content.count("What it includes: <code>steps.cuh</code>") == 1
    assert content.rindex("What it includes") < content.index("Once more.")


def test_headers_that_are_not_to_be_shown_are_named_and_stay_away_further_down(tmp_path, monkeypatch):
    again = "# Once more.\n#\n# /// diff | src/tiny/k02_wide.cu | src/tiny/k01_naive.cu\n# ///\n"
    first = PAGE.replace("k02_wide.cu\n", "k02_wide.cu\n# headers: false\n", 1)
    root = with_headers(tmp_path, monkeypatch, first.replace("# ///\n", f"# ///\n#\n{again}", 1))
    content = render(root)[1].inlined()
    assert "What they include, not shown here: `src/tiny/outer.cuh`, `src/tiny/steps.cuh`." in content
    assert "What it includes" not in content
    assert "return left < 4 ? left : 4;" not in content


def test_a_diff_of_files_that_include_nothing_has_no_such_fold(tmp_path, monkeypatch):
    _, rendered = render(page(tmp_path, monkeypatch))
    assert "What it includes" not in rendered.inlined()


def test_a_header_that_is_not_there_is_one_clear_line(tmp_path, monkeypatch):
    root = with_headers(tmp_path, monkeypatch)
    (root / "src/tiny/steps.cuh").unlink()
    (problem,) = problems(root)
    assert "src/tiny/steps.cuh: no such file, included by outer.cuh, line 2" in problem
    assert str(root) not in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("body", "head", "said"),
    [
        ("", "src/tiny/k01_naive.cu | src/tiny/k09.cu", "there is no file src/tiny/k09.cu"),
        ("", "src/tiny/k01_naive.cu", "write `/// diff | PATH | PATH`"),
        ("", "src/tiny/k01_naive.cu | src/tiny/k01_naive.cu", "nothing changed between the two"),
        ("region: loup", "src/tiny/k01_naive.cu | src/tiny/k02_wide.cu", "k01_naive.cu has no region 'loup'"),
        (
            "context: -1",
            "src/tiny/k01_naive.cu | src/tiny/k02_wide.cu",
            "`context:` is -1, and should be a whole number",
        ),
        (
            "open: wide",
            "src/tiny/k01_naive.cu | src/tiny/k02_wide.cu",
            "`open:` is 'wide', and should be true or false",
        ),
        ("fold: true", "src/tiny/k01_naive.cu | src/tiny/k02_wide.cu", "unknown setting fold"),
        ("title: It reaches 412 TFLOP/s", "src/tiny/k01_naive.cu | src/tiny/k02_wide.cu", "typed number"),
    ],
)
def test_a_wrong_block_is_one_clear_line(tmp_path, monkeypatch, body, head, said):
    (problem,) = problems(page(tmp_path, monkeypatch, body, head))
    assert said in problem
    assert "\n" not in problem


def test_gaps_are_marked_and_counted():
    before = "\n".join(f"a{i};" for i in range(20))
    after = before.replace("a9;", "b;")
    assert shown(before, after, context=1) == [
        "⋯ 8 lines as before",
        "  a8;",
        "- a9;",
        "+ b;",
        "  a10;",
        "⋯ 9 lines as before",
    ]
    assert shown("x;\na;\nb;", "x;\na;\nc;", context=1) == ["  x;", "  a;", "- b;", "+ c;"]


def test_a_brace_between_two_changes_holds_nothing_together():
    assert shown("a;\n}\nb;", "c;\n}\nd;") == ["- a;", "- }", "- b;", "+ c;", "+ }", "+ d;"]


def marked(before, after):
    shown = as_html(compare(before, after, indents=False), before, after, "cuda", "label")
    return [re.findall(r"<b>(.*?)</b>", line) for line in re.findall(r"<(?:ins|del)>.*?\n", shown)]


def test_what_differs_within_a_changed_line_is_marked():
    before = "int row = t / (BN / TN) * TM, column = t % BN * TN;  // where"
    after = "int row = t / (BN / TN) * TM, column = t % BN * 4;   // where"
    assert marked(before, after) == [["TN"], ["4"]]


def test_a_line_is_compared_with_the_one_that_it_was():
    before = "float one = 1;\nint row = t / (BN / TN) * TM;"
    after = "if (done) return;\nint row = t / (BN / TN) * 4;\nfoo();"
    assert marked(before, after) == [[], ["TM"], [], ["4"], []]


def test_lines_that_share_little_are_not_marked():
    assert marked("int i = threadIdx.x;", "__shared__ float tile[32];") == [[], []]


def test_colours_change_no_letter_and_signs_are_escaped():
    text = '/* one\n   two */\n#include <a.h>\nchar c = \'"\';  // a < b && c\n\nauto r = R"(x)";'
    shown = as_html(compare("", text, indents=False), "", text, "cuda", "label")
    plain = html.unescape(re.sub("<[^>]+>", "", shown))
    assert [line[2:] for line in plain.split("\n") if line.startswith("+")] == text.split("\n")


def test_braces_that_end_several_blocks_stay():
    ends = "    }\n  }\n}"
    assert shown(f"a;\n{ends}\nb;", f"c;\n{ends}\nd;")[2:5] == ["      }", "    }", "  }"]


def test_a_margin_is_a_change_in_python_only():
    assert compare("x = 1", "    x = 1", indents=True).lines_in == 1
    assert compare("x = 1", "    x = 1", indents=False).lines_in == 0


def test_the_head_of_a_python_kernel_is_its_docstring():
    assert without_head('"""Sum.\n\nIdea.\n"""\n\nimport torch\n', "python") == "import torch"
    assert without_head("/* Sum.\n Idea. */\n\nint x;", "cuda") == "int x;"
    assert without_head("int x;  // the first", "cuda") == "int x;  // the first"


def test_launch_bounds_are_not_the_kernels_name():
    before = "__global__ void __launch_bounds__(256, 2) slow(float *x) {\n  x[0] = 1;\n}"
    after = "__global__ void __launch_bounds__(256, 2) fast(float *x) {\n  x[0] = 2;\n}"
    assert compare(before, after, indents=False).words == "1 line out, 1 line in"
