"""What a launcher says when it is handed the wrong thing. All of it before anything touches a GPU."""

import re
import subprocess
import sys
import types
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
import torch

from course_kernels.arguments import check_tensor
from course_kernels.attention import (
    k01_materialised,
    k02_teaching,
    k03_flash,
    k04_specialised,
    k05_blocks_of_rows,
    library,
)
from course_kernels.attention.problem import PROBLEM
from course_kernels.bias_gelu import k01_fused
from course_kernels.copy import k01_vectorised
from course_kernels.cuda import launch as launch_module
from course_kernels.gemm import k01_cuda_cores, k02_wmma, k03_mma_sync, k04_wgmma, k05_triton
from course_kernels.problem import Workload
from course_kernels.sgemm import k01_naive
from course_kernels.softmax import k01_online
from course_kernels.vector_add import k01_cuda, k02_triton


def refused(error, message, function, *args, **options):
    with pytest.raises(error) as caught:
        function(*args, **options)

    assert str(caught.value) == message


def qkv(dtype=torch.float32, shape=(1, 2, 8, 64)):
    return tuple(torch.zeros(shape, dtype=dtype) for _ in range(3))


@pytest.mark.parametrize("kernel", [k01_cuda, k02_triton])
def test_vector_add(kernel):
    x = torch.zeros(8)
    half, short, empty = torch.zeros(8, dtype=torch.float16), torch.zeros(7), torch.zeros(0)

    refused(TypeError, "x: expected float32, got float16", kernel.vector_add, half, x)
    refused(TypeError, "y: expected a torch.Tensor, got list", kernel.vector_add, x, [1.0])
    refused(ValueError, "y: expected (N,) with N=8, got (7,)", kernel.vector_add, x, short)
    refused(ValueError, "x: expected (N,) with no empty dimension, got (0,)", kernel.vector_add, empty, empty)
    refused(
        ValueError,
        "y: expected contiguous (N,), got strides (2,)",
        kernel.vector_add,
        x,
        torch.zeros(16)[::2],
    )
    refused(
        ValueError,
        "y: expected a tensor on cpu, got meta",
        kernel.vector_add,
        x,
        torch.zeros(8, device="meta"),
    )


def test_without_the_interpreter_a_cpu_tensor_is_refused(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")
    x = torch.zeros(8)
    says = "x: expected a tensor on a GPU, got cpu"

    refused(ValueError, says, k01_cuda.vector_add, x, x)
    refused(ValueError, says, k02_triton.vector_add, x, x)
    refused(ValueError, says, k01_vectorised.copy, x)
    refused(ValueError, says.replace("x:", "q:"), k03_flash.attention, *qkv())


def test_copy():
    refused(
        TypeError, "x: expected a floating-point type, got int32", k01_vectorised.copy, torch.arange(4).int()
    )
    refused(
        ValueError,
        "x: expected an address divisible by 16, got one 4 bytes past it",
        k01_vectorised.copy,
        torch.zeros(9)[1:],
    )


def test_sgemm():
    a = torch.zeros(3, 4)
    wide = torch.empty(4, 65535 * 32 + 1, device="meta")

    refused(ValueError, "b: expected (K, N) with K=4, got (3, 4)", k01_naive.sgemm, a, a)
    refused(TypeError, "a: expected float32, got float64", k01_naive.sgemm, a.double(), a)
    refused(
        ValueError,
        "b: expected N <= 2097120, got N=2097121",
        k01_naive.sgemm,
        torch.empty(3, 4, device="meta"),
        wide,
    )


def test_softmax():
    refused(
        ValueError,
        "x: expected (M, N) with no empty dimension, got (2, 2, 2)",
        k01_online.softmax,
        torch.zeros(2, 2, 2),
    )


MOST = 2**30


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (k01_online.softmax, [(1, MOST + 1)], f"x: expected N <= {MOST}, got N={MOST + 1}"),
        (k01_online.softmax, [(MOST + 1, 1)], f"x: expected M <= {MOST}, got M={MOST + 1}"),
        (k01_fused.bias_gelu, [(1, 2**33), (2**33,)], f"x: expected N <= {2**32}, got N={2**33}"),
        (k01_fused.bias_gelu, [(MOST + 1, 8), (8,)], f"x: expected M <= {MOST}, got M={MOST + 1}"),
        (k02_teaching.attention, [(1, 1, 2**23 + 1, 64)] * 3, "q: expected N <= 8388608, got N=8388609"),
        (k03_flash.attention, [(1, 1, MOST + 1, 64)] * 3, f"q: expected N <= {MOST}, got N={MOST + 1}"),
        (k04_specialised.attention, [(1, 1, MOST + 1, 64)] * 3, f"q: expected N <= {MOST}, got N={MOST + 1}"),
        *(
            (kernel.gemm, shapes, message)
            for kernel in (k01_cuda_cores, k02_wmma, k03_mma_sync, k04_wgmma, k05_triton)
            for shapes, message in (
                ([(MOST + 1, 1), (1, 1)], f"a: expected M <= {MOST}, got M={MOST + 1}"),
                ([(1, MOST + 1), (MOST + 1, 1)], f"a: expected K <= {MOST}, got K={MOST + 1}"),
                ([(1, 1), (1, MOST + 1)], f"b: expected N <= {MOST}, got N={MOST + 1}"),
            )
        ),
    ],
)
def test_what_the_32_bit_numbers_of_a_kernel_do_not_hold(function, shapes, message):
    """No memory behind these: a tensor on the device `meta` has a shape only."""
    narrow = function.__name__ == "gemm" or function is k04_specialised.attention
    dtype = torch.bfloat16 if narrow else torch.float32

    refused(ValueError, message, function, *(torch.empty(s, dtype=dtype, device="meta") for s in shapes))


@pytest.mark.parametrize("kernel", [k01_materialised, k02_teaching, k03_flash, k05_blocks_of_rows])
def test_attention(kernel):
    q, k, v = qkv()
    longer = torch.zeros(1, 2, 9, 64)
    turned = torch.zeros(1, 8, 2, 64).transpose(1, 2)

    refused(TypeError, "k: expected float32, got float16", kernel.attention, q, k.half(), v)
    refused(
        ValueError, "v: expected (B, H, N, D) with N=8, got (1, 2, 9, 64)", kernel.attention, q, k, longer
    )
    refused(
        ValueError,
        "k: expected contiguous (B, H, N, D), got strides (1024, 64, 128, 1)",
        kernel.attention,
        q,
        turned,
        v,
    )


@pytest.mark.parametrize("kernel", [k02_teaching, k03_flash])
def test_attention_sizes(kernel):
    heads = torch.empty(1, 1, 1, 64, device="meta").expand(65536, 1, 1, 64).contiguous()
    refused(ValueError, "q: expected D = 64 or 128, got D=96", kernel.attention, *qkv(shape=(1, 1, 8, 96)))
    refused(ValueError, "q: expected B * H <= 65535, got B * H=65536", kernel.attention, heads, heads, heads)


def test_attention_types():
    refused(TypeError, "q: expected float32, got bfloat16", k02_teaching.attention, *qkv(torch.bfloat16))
    refused(
        TypeError,
        "q: expected bfloat16 or float16 or float32, got float64",
        k03_flash.attention,
        *qkv(torch.float64),
    )


def test_an_address_between_vectors():
    q, _, v = qkv()
    odd = torch.zeros(q.numel() + 1)[1:].view(q.shape)
    says = "k: expected an address divisible by 16, got one 4 bytes past it"

    refused(ValueError, says, k03_flash.attention, q, odd, v)


def test_flashinfer_is_asked_in_its_own_order_and_copies_nothing(monkeypatch):
    """FlashInfer has the heads inside; a stand-in for it answers in that order."""

    def prefill(q, k, v, *, causal, kv_layout, backend):
        assert (kv_layout, backend) == ("NHD", "fa3")
        assert {x.untyped_storage().data_ptr() for x in (q, k, v)} == asked
        heads_outside = (x.transpose(0, 1) for x in (q, k, v))
        o = torch.nn.functional.scaled_dot_product_attention(*heads_outside, is_causal=causal)
        return o.transpose(0, 1).contiguous()

    monkeypatch.setitem(
        sys.modules, "flashinfer", types.SimpleNamespace(single_prefill_with_kv_cache=prefill)
    )
    monkeypatch.setattr(library, "version", lambda name: "0.5.3")
    w = Workload.of("float32", B=1, H=3, N=20, D=64, causal=True)
    q, k, v = PROBLEM.make_inputs(w, torch.Generator().manual_seed(0), "cpu")
    asked = {x.untyped_storage().data_ptr() for x in (q, k, v)}
    o = library.flashinfer_fa3(q, k, v, causal=True)

    torch.testing.assert_close(o.double(), PROBLEM.reference(q, k, v, causal=True), rtol=1e-4, atol=1e-4)
    assert o.permute(*PROBLEM.layouts[0]).is_contiguous()
    refused(
        ValueError,
        "q: expected B = 1, one sequence, got B=2",
        library.flashinfer_fa3,
        *qkv(shape=(2, 1, 8, 64)),
    )


def test_without_flashinfer_one_line_says_so(monkeypatch):
    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(library, "version", not_installed)

    assert library.flashinfer_version() == ""
    refused(
        RuntimeError,
        "flashinfer: not installed here: pip install flashinfer-python, and have nvcc and ninja",
        library.flashinfer_fa3,
        *qkv(),
    )


def test_supports():
    fp32, bf16, fp8 = (
        Workload.of(t, B=1, H=1, N=8, D=64, causal=False) for t in ("float32", "bfloat16", "float8_e4m3fn")
    )
    odd = Workload.of("float32", B=1, H=1, N=8, D=96, causal=False)

    assert [k02_teaching.supports(w) for w in (fp32, bf16, fp8, odd)] == [True, False, False, False]
    assert [k03_flash.supports(w) for w in (fp32, bf16, fp8, odd)] == [True, True, False, False]


def test_launch_takes_tensors_and_numpy_numbers_only():
    x = torch.zeros(4)

    assert launch_module._argument(np.int32(7)) == np.int32(7)
    with pytest.raises(
        TypeError, match=re.escape("launch: expected a tensor or a NumPy number, such as np.int32")
    ):
        launch_module._argument(7)
    with pytest.raises(ValueError, match="the current device, got cpu"):
        launch_module._argument(x)


def test_check_tensor_binds_letters_across_tensors():
    sizes: dict[str, int] = {}
    check_tensor("a", torch.zeros(2, 3), "MK", sizes, dtypes=(torch.float32,))
    check_tensor("b", torch.zeros(3, 5), "KN", sizes, dtypes=(torch.float32,))

    assert sizes == {"M": 2, "K": 3, "N": 5}


def test_importing_every_kernel_needs_no_driver():
    code = (
        "import course_kernels.attention.k02_teaching, course_kernels.attention.k03_flash, "
        "course_kernels.copy.k01_vectorised, course_kernels.vector_add.k01_cuda, sys; "
        "print('cuda.core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
