"""What changes a digest, and what must not."""

import pytest

from course_site.digest import code_digest, cuda_digest

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
    ],
)
def test_any_cuda_token_counts(old, new):
    assert cuda_digest(CUDA.replace(old, new)) != cuda_digest(CUDA)


def test_a_comment_sign_inside_a_string_is_not_a_comment():
    assert cuda_digest('char *u = "http://a";') != cuda_digest('char *u = "http://b";')


def test_digests_are_the_same_on_every_python_version():
    # Written down once: a change here makes every committed record stale.
    assert code_digest(PYTHON) == code_digest(PYTHON.strip())
    assert cuda_digest(CUDA) == cuda_digest(CUDA.strip())
