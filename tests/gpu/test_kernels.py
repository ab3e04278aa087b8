"""Every kernel of the library on every workload of its problem, on the card; and what launchers refuse there."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

import course_kernels
from course_kernels.attention import k01_materialised, k02_teaching, k03_flash, library
from course_kernels.attention.problem import PROBLEM as ATTENTION
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload
from course_kernels.vector_add import k01_cuda

GROUPS = ("every problem",)
ROOT = Path(course_kernels.__file__).parent
KERNELS = [
    import_module(f"course_kernels.{path.parent.name}.{path.stem}")
    for path in sorted(ROOT.glob("*/k[0-9][0-9]_*.py"))
]


def cases():
    for kernel in KERNELS:
        folder = kernel.__name__.split(".")[1]
        problem = import_module(f"course_kernels.{folder}.problem").PROBLEM
        supports = getattr(kernel, "supports", lambda w: True)
        for w in problem.check_on:
            if supports(w):
                name = f"{folder}/{kernel.__name__.rpartition('.')[2]}-{w.label}"
                yield pytest.param(kernel, problem, w, id=name, marks=pytest.mark.group(folder))


@pytest.mark.parametrize(("kernel", "problem", "w"), list(cases()))
def test_kernel_is_right(kernel, problem, w):
    error = checked_error(kernel, w, torch.Generator("cuda").manual_seed(0))

    assert error <= problem.max_error(w)


LIBRARY = {
    library.sdpa_flash: ("bfloat16", "float16"),
    library.sdpa_cudnn: ("bfloat16", "float16"),
    library.sdpa_efficient: ("bfloat16", "float16", "float32"),
    library.sdpa_math: ("bfloat16", "float16", "float32"),
}


@pytest.mark.group("attention")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [(f, t) for f, types in LIBRARY.items() for t in types],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_library_is_right(function, dtype, causal):
    w = Workload.of(dtype, B=2, H=2, N=1000, D=128, causal=causal)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= ATTENTION.max_error(w)


@pytest.mark.group("attention")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("D", [64, 128])
def test_lse_on_the_card(dtype, D, causal):
    N = 1000
    w = Workload.of(dtype, B=2, H=2, N=N, D=D, causal=causal)
    q, k, v = ATTENTION.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")
    _, lse = k03_flash.attention_with_lse(q, k, v, causal=causal)
    scores = q.double() @ k.double().transpose(-1, -2) / D**0.5
    if causal:
        scores.masked_fill_(torch.ones(N, N, dtype=torch.bool, device="cuda").triu_(1), -torch.inf)

    torch.testing.assert_close(lse.double(), torch.logsumexp(scores, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.group("attention")
@pytest.mark.parametrize("kernel", [k01_materialised, k02_teaching, k03_flash])
def test_the_first_causal_row_is_the_first_value(kernel):
    w = Workload.of("float32", B=1, H=3, N=300, D=64, causal=True)
    q, k, v = ATTENTION.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")

    torch.testing.assert_close(kernel.attention(q, k, v, causal=True)[:, :, 0], v[:, :, 0])


@pytest.mark.group("vector_add")
def test_a_tensor_elsewhere_is_refused():
    x = torch.zeros(8, device="cuda")

    with pytest.raises(ValueError, match=re.escape("x: expected a tensor on a GPU, got cpu")):
        k01_cuda.vector_add(x.cpu(), x)
    with pytest.raises(ValueError, match=re.escape("y: expected a tensor on cuda:0, got cpu")):
        k01_cuda.vector_add(x, x.cpu())


@pytest.mark.group("vector_add")
def test_a_kernel_runs_on_torchs_current_stream():
    x, y = torch.zeros(1 << 20, device="cuda"), torch.ones(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # holds this stream back; a kernel elsewhere would read zeros
        x.fill_(2.0)
        z = k01_cuda.vector_add(x, y)
    torch.cuda.current_stream().wait_stream(stream)

    assert torch.equal(z, torch.full_like(z, 3.0))
