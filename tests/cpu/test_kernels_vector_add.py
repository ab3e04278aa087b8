"""Vector add by 16-byte vectors on the CPU, thread by thread; the first two kernels have their tests elsewhere."""

import re
from math import nan

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.vector_add import k03_vectorised

pytestmark = pytest.mark.kept


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(x, y, text=...) -> the sum, its memory full of NaN before."""
    built = {}

    def run(x, y, text=None):
        def load_kernel(source, name, defines=None):
            if text not in built:
                built[text] = build(tmp_path_factory.mktemp(name), source, name, defines, text)
            return built[text]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k03_vectorised, "load_kernel", load_kernel)
            patch.setattr(k03_vectorised, "launch", lambda kernel, *how: kernel(*how))
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            return k03_vectorised.vector_add(x, y)

    return run


def pair(N):
    return torch.randn(2, N + 4 - N % 4, generator=torch.Generator().manual_seed(N))[:, :N].unbind()


@pytest.mark.parametrize("N", [1, 3, 4, 7, 1000, 1023, 1024, 1027, 2048, 2049, 4096, 5003])
def test_the_sum_is_exact(run, N):
    x, y = pair(N)

    assert torch.equal(run(x, y), x + y)


FAULTS = {
    "the second vector is forgotten": (
        "v < VECTORS; v++) {\n    const long long i = first",
        "v < 1; v++) {\n    const long long i = first",
    ),
    "the tail is left out": ("tail < N)", "tail < N && false)"),
    "one component is another's": ("a[v].w + b[v].w", "a[v].w + b[v].z"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k03_vectorised.SOURCE.read_text()
    assert right in text
    x, y = pair(5003)

    assert not torch.equal(run(x, y, text=text.replace(right, wrong)), x + y)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_all_vectors_are_asked_for_before_the_first_sum(arch):
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k03_vectorised.SOURCE, arch))

    assert re.findall(r"\b(?:LDL|STL)\b", code) == []
    assert re.findall(r"\b(?:LDG\.E\.128|FADD)\b", code)[:5] == 4 * ["LDG.E.128"] + ["FADD"]


def test_the_launcher_refuses():
    x = torch.zeros(8)
    with pytest.raises(TypeError, match=re.escape("y: expected float32, got float64")):
        k03_vectorised.vector_add(x, x.double())
    with pytest.raises(ValueError, match=re.escape("y: expected (N,) with N=8, got (7,)")):
        k03_vectorised.vector_add(x, torch.zeros(7))
    with pytest.raises(
        ValueError, match=re.escape("y: expected an address divisible by 16, got one 4 bytes past it")
    ):
        k03_vectorised.vector_add(x, torch.zeros(9)[1:])
    with pytest.raises(ValueError, match=re.escape("x: expected contiguous (N,), got strides (2,)")):
        k03_vectorised.vector_add(torch.zeros(16)[::2], x)


def test_launcher_and_kernel_agree_on_the_vectors():
    vectors = int(re.search(r"constexpr int VECTORS = (\d+);", k03_vectorised.SOURCE.read_text())[1])

    assert k03_vectorised.THREADS * vectors * 4 == k03_vectorised.ELEMENTS
