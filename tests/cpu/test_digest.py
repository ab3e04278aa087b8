"""What changes a digest, and what must not."""

from pathlib import Path

import pytest

from course_site.records.digest import code_digest, cuda_digest, file_digest, lab_digest

PYTHON = '''
"""Module docstring."""
import math


def area(r, *, scale=2.0):
    """Docstring."""
    # a comment
    return f"{math.pi * r ** 2 * scale:.2f}"
'''

CUDA = """
// one thread, one element
#define TILE 32
extern "C" __global__ void scale(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  // where am I
  if (i < n) x[i] *= 2.0f; /* guard */
}
"""


@pytest.mark.parametrize(
    "same",
    [
        PYTHON.replace("# a comment", "# another, longer comment"),
        PYTHON.replace('"""Docstring."""', '"""Reworded."""'),
        PYTHON.replace('"""Module docstring."""', ""),
        PYTHON.replace("r ** 2", "r**2").replace("import math\n\n\n", "import math\n"),
    ],
)
def test_words_and_spaces_in_python_do_not_count(same):
    assert same != PYTHON
    assert code_digest(same) == code_digest(PYTHON)


@pytest.mark.parametrize(
    ("old", "new"),
    [("2.0", "2.5"), ("** 2", "** 3"), (":.2f", ":.3f"), ("scale=2.0", "scale: float = 2.0"), ("*, ", "")],
)
def test_any_python_token_counts(old, new):
    assert code_digest(PYTHON.replace(old, new)) != code_digest(PYTHON)


ERRORS = """
from typing import NoReturn

def check(x, unit="us"):
    if x > 3:
        raise ValueError(f"x: expected at most 3, got {x:.1f} {unit}")
    if x < 0:
        refuse("negative", x)
    try:
        return table["name"]
    except KeyError as error:
        raise LookupError("no " + "name " + str(x, "utf-8")) from error

def refuse(why: str, x) -> NoReturn:
    raise TypeError(why)

class Check:
    def run(self):
        self.stop(what="it stops", number=1)
        other.stop("counts")
        show("counts")

    def stop(self, what, number) -> "NoReturn":
        raise SystemExit
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("expected at most 3, got", "want at most 3, not"),
        ('f"x: expected at most 3, got {x:.1f} {unit}"', '"too much"'),
        ('"negative"', '"below zero"'),
        ('"no " + "name "', '"there is no " + "such "'),
        ('"it stops"', '"it ends"'),
    ],
)
def test_what_an_error_says_does_not_count(old, new):
    assert old in ERRORS
    assert code_digest(ERRORS.replace(old, new)) == code_digest(ERRORS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x > 3", "x > 4"),
        ("raise ValueError", "raise TypeError"),
        ('refuse("negative", x)', "pass"),
        ('refuse("negative", x)', 'warn("negative", x)'),
        (" from error", ""),
        ("number=1", "number=2"),
        ('other.stop("counts")', 'other.stop("differs")'),
        ('show("counts")', 'show("differs")'),
        ('unit="us"', 'unit="ms"'),
        ('table["name"]', 'table["other"]'),
        ('"NoReturn"', "None"),
    ],
)
def test_which_error_and_when_counts(old, new):
    assert old in ERRORS
    assert code_digest(ERRORS.replace(old, new)) != code_digest(ERRORS)


@pytest.mark.parametrize(
    "same",
    [
        CUDA.replace("// where am I", ""),
        CUDA.replace("/* guard */", "/* a long\n   guard */"),
        CUDA.replace("  int i", "      int   i"),
        CUDA.replace("// one thread, one element\n", ""),
    ],
)
def test_words_and_spaces_in_cuda_do_not_count(same):
    assert same != CUDA
    assert cuda_digest(same) == cuda_digest(CUDA)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2.0f", "2.5f"),
        ("TILE 32", "TILE 64"),
        ("< n", "<= n"),
        ("*=", "+="),
        ("#define TILE 32\n", "#define TILE 32 "),
        ("TILE 32", "TILE(x) 32"),
    ],
)
def test_any_cuda_token_counts(old, new):
    assert cuda_digest(CUDA.replace(old, new)) != cuda_digest(CUDA)


def test_a_macro_that_takes_arguments_is_another_than_one_that_is_a_text_in_brackets():
    taking, text = "#define F(x) (x)\n", "#define F (x) (x)\n"
    assert cuda_digest(taking) != cuda_digest(text)
    assert cuda_digest("#  define F(x)  (x)\n") == cuda_digest(taking)
    assert cuda_digest("#define F/* a blank */(x) (x)\n") == cuda_digest(text)
    assert cuda_digest("#define F\\\n(x) (x)\n") == cuda_digest(taking)
    assert cuda_digest("a = F (x);") == cuda_digest("a = F(x);")


LAB = """
name = "sums"
title = "Sums"
problem = "vector_add"
task = "Add."
not_yours = "Nothing."
try = ["dtype=float32,N=1"]
hints = ["a", "b", "c"]
rubric = ["d"]
[doors.numpy]
prints = "refused"
answer = "because"
[[stage]]
title = "first"
text = "all of it"
[stage.numpy]
type = "x + y"
prints = "right"
on_gpu = "right: fast"
"""


@pytest.mark.parametrize(
    "same",
    [
        LAB.replace('"Sums"', '"Two sums"'),
        LAB.replace('"Add."', '"Add them."'),
        LAB.replace('"Nothing."', '"Everything."'),
        LAB.replace('"a", "b"', '"A", "B"'),
        LAB.replace('["d"]', '["d", "e"]'),
        LAB.replace('"because"', '"since"'),
        LAB.replace('"first"', '"second"'),
        LAB.replace('"all of it"', '"some of it"'),
        LAB.replace('"x + y"', '"y + x"'),
        LAB.replace("problem", "# a comment\nproblem"),
        LAB.replace('answer = "because"\n', ""),
        LAB.replace('prints = "right"\non_gpu = "right: fast"', 'on_gpu = "right: fast"\nprints = "right"'),
    ],
)
def test_prose_of_a_lab_does_not_count(same):
    assert same != LAB
    assert lab_digest(same) == lab_digest(LAB)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"sums"', '"sum"'),
        ('"vector_add"', '"copy"'),
        ("N=1", "N=2"),
        ('"refused"', '"right"'),
        ('prints = "right"', 'prints = "wrong"'),
        ("fast", "slow"),
        ("[doors.numpy]", "[doors.python]"),
        ("[stage.numpy]", "seconds = 3\n[stage.numpy]"),
        ("[[stage]]", "[[stage"),
    ],
)
def test_what_the_grader_reads_of_a_lab_counts(old, new):
    assert old in LAB
    assert lab_digest(LAB.replace(old, new)) != lab_digest(LAB)


def test_only_a_lab_toml_is_read_as_one(tmp_path: Path):
    for name, counts in (("lab.toml", False), ("other.toml", True)):
        path = tmp_path / name
        path.write_text(LAB)
        before = file_digest(tmp_path, name)
        path.write_text(LAB.replace('"Add."', '"Add them."'))
        assert (file_digest(tmp_path, name) != before) is counts


def test_a_comment_sign_inside_a_string_is_not_a_comment():
    assert cuda_digest('char *u = "http://a";') != cuda_digest('char *u = "http://b";')


@pytest.mark.parametrize(
    "source",
    ['x = f("a")', 'x = [f("a")]', 'g(f("a"))', 'x = {1: f("a")}', 'raise E from f("a")', 'raise f("a").x'],
)
def test_words_that_no_error_says_count_wherever_they_stand(source):
    assert code_digest(source.replace('"a"', '"b"')) != code_digest(source)


def test_an_empty_text_counts_everywhere_but_between_two_fields_of_a_text():
    assert code_digest('x = {1: "", 2: 3}') != code_digest('x = {1: 3, 2: ""}')
    assert code_digest('x = y or ""') != code_digest("x = y or 0")
    assert code_digest('x = y or "" or ""') != code_digest('x = y or ""')


def test_a_hash_within_a_line_begins_no_directive():
    assert cuda_digest("a # b\nc") == cuda_digest("a # b c")
    assert cuda_digest("# b\nc") != cuda_digest("# b c")
    assert cuda_digest("a\n  # b\nc") != cuda_digest("a\n  # b c")


def test_a_cell_with_magic_counts_line_by_line():
    cell = "%%time\nx = 1\n"

    assert code_digest("%%time\n\nx = 1  \n\n") == code_digest(cell)
    assert code_digest("%%time\nx = 2\n") != code_digest(cell)
    assert code_digest("%%timeit\nx = 1\n") != code_digest(cell)


def test_digests_are_the_same_on_every_python_version():
    # Written down once: a change here makes every committed record stale.
    assert code_digest(PYTHON) == "ae100cc3ad70998ac61503018eb725d8"
    assert code_digest(ERRORS) == "7f59784d475d3a1672e24b372df7d2e6"
    assert cuda_digest(CUDA) == "7d2ea00e4e8139a43cf389721467355e"
