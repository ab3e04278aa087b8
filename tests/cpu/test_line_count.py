"""Lines that count, and lines that do not."""

import pytest

from course_kernels.line_count import kernel_lines, source_lines, spoken_lines

PYTHON = '''"""A docstring
of two lines."""

import math  # 4: a comment beside code counts with its line

# a comment alone

# region kernel
def area(r):
    """Its own docstring."""
    text = """a text
    is code"""
    return math.pi * r * r


# endregion
LATER = area(
    1
)
'''
CPP = """// a comment
#include "own.cuh"

/* of two
   lines */ int a;
// region kernel
int f() { /* inside */ return 1; }  // beside

// endregion
"""


def test_comments_docstrings_and_blank_lines_do_not_count(tmp_path):
    (tmp_path / "a.py").write_text(PYTHON)
    assert sorted(spoken_lines(tmp_path / "a.py")) == [4, 9, 11, 12, 13, 17, 18, 19]
    (tmp_path / "a.cu").write_text(CPP)
    assert sorted(spoken_lines(tmp_path / "a.cu")) == [2, 5, 7]


def test_a_kernel_is_what_its_region_holds(tmp_path):
    (tmp_path / "a.py").write_text(PYTHON)
    assert kernel_lines(tmp_path / "a.py") == 4
    (tmp_path / "a.cu").write_text(CPP)
    assert kernel_lines(tmp_path / "a.cu") == 1
    (tmp_path / "b.py").write_text("a = 1\nb = 2\n")
    assert kernel_lines(tmp_path / "b.py") == 2


def test_a_region_that_has_no_end_is_no_region(tmp_path):
    (tmp_path / "a.py").write_text("# region kernel\na = 1\n")
    with pytest.raises(ValueError, match="has no `endregion` after it"):
        kernel_lines(tmp_path / "a.py")


def test_headers_of_ours_count(tmp_path):
    (tmp_path / "own.cuh").write_text("int b;\n// no\nint c;\n")
    (tmp_path / "a.cu").write_text(CPP)
    assert source_lines(tmp_path / "a.cu") == 3 + 2
