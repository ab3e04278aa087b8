import copy
import pickle
import subprocess
import sys
from math import inf, isnan, nan

import pytest
import torch

from course_kernels.problem import MATHS, Workload, worst_error

W = Workload.of("bfloat16", B=1, H=16, N=16384, D=128, causal=True)
TEXT = "dtype=bfloat16,B=1,H=16,N=16384,D=128,causal=1"


def test_importing_problem_needs_no_torch():
    code = "import sys, course_kernels.problem; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]


# --- Workload ---------------------------------------------------------------------------------------


def test_dimensions_are_attributes_and_items():
    assert (W.N, W["N"], W.causal, W.dtype) == (16384, 16384, True, "bfloat16")
    assert W.dims == {"B": 1, "H": 16, "N": 16384, "D": 128, "causal": True}
    assert W.torch_dtype is torch.bfloat16
    assert W.element_bytes == 2


def test_labels():
    full = Workload.of("bfloat16", B=1, H=16, N=16384, D=128, causal=False)

    assert W.label == "B1-H16-N16384-D128-causal-bfloat16"
    assert full.label == "B1-H16-N16384-D128-bfloat16"


def test_text_and_json_read_back():
    full = Workload.of("float32", N=1, causal=False)

    assert W.as_text() == TEXT
    assert Workload.parse(TEXT) == W
    assert Workload.parse(TEXT.replace("causal=1", "causal=true")) == W
    assert [Workload.parse(w.as_text()) for w in (W, full)] == [W, full]
    assert Workload.parse("dtype=float32,N=1").N is not True
    assert Workload.from_json(W.as_json()) == W
    assert W.as_json() == {"dtype": "bfloat16", "dims": W.dims}


def test_a_workload_is_hashable_and_survives_copies():
    assert len({W, Workload.parse(TEXT), copy.deepcopy(W), pickle.loads(pickle.dumps(W))}) == 1
    with pytest.raises(AttributeError):
        W.dtype = "float32"


def test_an_unknown_dimension_names_the_known_ones():
    with pytest.raises(AttributeError, match=r"no dimension K in .*; there are B, H, N, D, causal"):
        W.K  # noqa: B018
    with pytest.raises(KeyError, match="no dimension K"):
        W["K"]


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("N=4", ValueError, "expected a dtype, such as dtype=float32"),
        ("dtype=float32,N", ValueError, "expected name=value, got 'N'"),
        ("dtype=float32,N=4,N=5", ValueError, "N is given twice"),
        ("dtype=float32,N=0", ValueError, "N: expected at least 1, got 0"),
        ("dtype=float32,N=4.5", TypeError, "N: expected a whole number, got '4.5'"),
        ("dtype=float32,causal=2", TypeError, "causal: expected 1 or 0, got '2'"),
        ("dtype=float31,N=4", TypeError, "dtype: expected one of float64, float32, "),
    ],
)
def test_bad_text_is_refused(text, error, says):
    with pytest.raises(error) as caught:
        Workload.parse(text)

    assert says in str(caught.value)


def test_a_size_is_no_flag_and_a_flag_no_size():
    with pytest.raises(TypeError, match="causal: expected True or False, got 1"):
        Workload.of("float32", causal=1)
    with pytest.raises(TypeError, match="N: expected a whole number, got True"):
        Workload.of("float32", N=True)


# --- worst_error ------------------------------------------------------------------------------------


def test_one_wrong_element_among_many_is_seen():
    truth = torch.randn(1000, 1000, generator=torch.Generator().manual_seed(0))
    out = truth.clone()
    out[3, 7] += 0.5
    norm = (out - truth).norm() / truth.norm()

    assert norm < 1e-3  # what a test of the norm would let through
    assert worst_error(out, truth) > 0.2


def test_nan_anywhere_is_nan():
    truth = torch.ones(10)
    out = truth.clone()
    out[9] = nan

    assert isnan(worst_error(out, truth))
    assert isnan(worst_error((truth, out), (truth, truth)))
    assert not worst_error(out, truth) <= inf


def test_an_infinite_answer_is_refused():
    out = torch.ones(10)
    out[0] = inf

    assert not worst_error(out, torch.ones(10)) <= 1e30


def test_a_truth_of_zeros():
    zeros = torch.zeros(4)

    assert worst_error(zeros, zeros) == 0.0
    assert worst_error(zeros + 1e-30, zeros) == inf


def test_shapes_and_counts_must_match():
    with pytest.raises(ValueError, match=r"expected shape \(3,\), got \(4,\)"):
        worst_error(torch.zeros(4), torch.zeros(3))
    with pytest.raises(ValueError, match="expected 1 tensors, got 2"):
        worst_error((torch.zeros(4), torch.zeros(4)), torch.zeros(4))


def test_the_math_names():
    assert MATHS == ("bf16", "fp16", "fp32", "tf32", "fp8")
