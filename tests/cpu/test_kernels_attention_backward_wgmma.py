"""The gradients for Hopper on the CPU's stand-in, and what the assembler made of them."""

import re
from math import sqrt

import pytest
import torch
from hopper_on_cpu import prepare_in, tensor_map
from machine_code import sass

from course_kernels.attention import truth
from course_kernels.attention_backward import k04_wgmma as kernel
from course_kernels.attention_backward.problem import MAX_ERROR
from course_kernels.cuda.compile import compile_cubin
from course_kernels.problem import worst_error

pytestmark = pytest.mark.kept

IS_HOPPER = kernel.is_hopper


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    """hopper(text) replaces the kernel's file, hopper() puts it back."""
    prepare = prepare_in(tmp_path_factory.mktemp("backward"))
    of = {"text": None}

    def card(text=None):
        of.update(text=text)
        kernel._CHECKED.clear()
        kernel._kernels.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kernel, "prepare", lambda path, name, **how: prepare(path, name, text=of["text"], **how)
        )
        patch.setattr(kernel, "tensor_map", tensor_map)
        patch.setattr(
            kernel, "is_hopper", lambda device: True
        )  # and tensors on the CPU are taken: interpreted
        kernel._kernels.cache_clear()
        yield card
        kernel._kernels.cache_clear()


def drawn(H, KV, Nq, Nk, D, causal, B=1, dtype=torch.bfloat16, large=1.0):
    """The kernel's inputs, and the gradients by float64's own."""
    draw = torch.Generator().manual_seed(Nq + Nk + D)
    shapes = ((B, H, Nq, D), (B, KV, Nk, D), (B, KV, Nk, D), (B, H, Nq, D))
    q, k, v, do = (torch.randn(shape, generator=draw).to(dtype) for shape in shapes)
    q = (large * q.float()).to(dtype)
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    o, lse = truth.attend(*exact, causal=causal)
    o.backward(do.double())
    return (q, k, v, o.detach().to(dtype), lse.detach().float(), do), [x.grad for x in exact]


def asked(H, KV, Nq, Nk, D, causal=False, deterministic=False, **how):
    inputs, true = drawn(H, KV, Nq, Nk, D, causal, **how)
    found = kernel.attention_backward(*inputs, causal=causal, deterministic=deterministic)
    most = MAX_ERROR[str(inputs[0].dtype).removeprefix("torch.")]
    for name, gradient, exact in zip(("dq", "dk", "dv"), found, true, strict=True):
        assert gradient.dtype is inputs[0].dtype
        assert worst_error(gradient, exact) <= most, name
    return found


# --- the answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("Nq", "Nk"), [(200, 300), (64, 128), (17, 129)])
def test_all_rows_see_all_keys(hopper, Nq, Nk):
    asked(2, 1, Nq, Nk, 128)


@pytest.mark.parametrize(("Nq", "Nk"), [(300, 300), (200, 430), (330, 150)])
def test_causal_in_float16_where_heads_share(hopper, Nq, Nk):
    asked(4, 2, Nq, Nk, 64, causal=True, dtype=torch.float16)


def test_large_scores(hopper):
    asked(1, 1, 130, 200, 128, large=6.0)


def by_flash_attention_2(q, k, v, o, lse, do):
    """Its roundings, in float32: P where it meets dO, and dS, which is made of the P that was not rounded."""
    q, k, v, o, do = (x.float() for x in (q, k, v, o, do))
    weights = (q @ k.mT / q.shape[-1] ** 0.5 - lse[..., None]).exp()
    ds = weights * (do @ v.mT - (o * do).sum(-1, keepdim=True))
    rounded, ds = weights.bfloat16().float(), ds.bfloat16().float() / q.shape[-1] ** 0.5
    return tuple(x.bfloat16() for x in (ds @ k, ds.mT @ q, rounded.mT @ do))


ROUNDED = (
    r"= s\[4 \* j \+ e\] \* \(dp",
    "= unpacked<Type>(p[i][j % 2 * 2 + e / 2], e % 2) * (dp",
)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "dS of a rounded P"])
@pytest.mark.parametrize("D", [64, 128])
def test_no_less_exact_than_flash_attention_2(hopper, D, whole):
    text, times = re.subn(*ROUNDED, kernel.SOURCE.read_text(encoding="utf-8"))
    assert times == 1
    inputs, true = drawn(1, 1, 256, 256, D, causal=False, large=3.0)
    hopper() if whole else hopper(text)
    ours = kernel.attention_backward(*inputs)
    hopper()
    exact = [
        (a.double() - x).norm() <= 1.02 * (b.double() - x).norm()
        for a, b, x in zip(ours, by_flash_attention_2(*inputs), true, strict=True)
    ]
    assert exact == [whole, whole, True]


def test_in_one_order_the_bits_are_the_same(hopper):
    first, second = (asked(2, 1, 300, 400, 128, causal=True, deterministic=True, B=2) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_one_key_and_one_row(hopper):
    """Then every weight is 1, and what q and k do changes nothing."""
    (q, k, v, o, lse, do), _ = drawn(1, 1, 1, 1, 128, causal=False)
    dq, dk, dv = kernel.attention_backward(q, k, v, o, lse, do)
    assert torch.equal(dv, do)
    cancels = (do.double() * v.double()).abs().sum() / sqrt(128)
    assert max(dq.abs().max(), dk.abs().max()) <= 2.0**-7 * cancels


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "error", "says"),
    [
        ("k", torch.zeros(1, 1, 8, 64), TypeError, "k: expected bfloat16, got float32"),
        ("lse", torch.zeros(1, 1, 9), ValueError, r"lse: expected \(B, H, M\) with M=8, got \(1, 1, 9\)"),
        ("do", torch.zeros(1, 1, 9, 64).bfloat16(), ValueError, "do: expected .* with M=8"),
        ("v", torch.zeros(1, 1, 9, 64).bfloat16(), ValueError, "v: expected .* with N=8"),
        ("q", torch.zeros(1, 1, 64, 8).bfloat16().mT, ValueError, "q: expected contiguous"),
    ],
)
def test_one_line_says_what_is_wrong(hopper, name, value, error, says):
    (q, k, v, o, lse, do), _ = drawn(1, 1, 8, 8, 64, causal=False)
    given = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do} | {name: value}
    with pytest.raises(error, match=says) as caught:
        kernel.attention_backward(*given.values())
    assert "\n" not in str(caught.value)


def test_no_tensor_is_refused_in_one_line(hopper):
    (q, k, v, o, _, do), _ = drawn(1, 1, 8, 8, 64, causal=False)
    with pytest.raises(TypeError, match=r"lse: expected a torch\.Tensor, got str"):
        kernel.attention_backward(q, k, v, o, "lse", do)


def test_what_was_let_through_is_known_by_all_that_was_looked_at(hopper):
    """A call like the last one is not looked at again; one that differs in anything is."""
    hopper()
    inputs, _ = drawn(1, 1, 8, 8, 64, causal=False)
    for _ in range(2):
        kernel.attention_backward(*inputs)
    assert len(kernel._CHECKED) == 1
    for i, x in enumerate(inputs):
        others = [x.double(), x[:, :, 1:]]
        if x.dim() == 4:
            beside = torch.zeros(x.numel() + 1, dtype=x.dtype)[1:].view(
                x.shape
            )  # not at a multiple of 16 bytes
            others += [x.mT.contiguous().mT, beside]
        for other in others:
            with pytest.raises((TypeError, ValueError)):
                kernel.attention_backward(*inputs[:i], other, *inputs[i + 1 :])


def test_another_gpu_is_refused(hopper, monkeypatch):
    hopper()
    monkeypatch.setattr(kernel, "is_hopper", IS_HOPPER)
    with pytest.raises(RuntimeError, match="expected a Hopper GPU"):
        kernel.attention_backward(*drawn(1, 1, 8, 8, 64, causal=False)[0])


# --- what the assembler made of it ------------------------------------------------------------------------


@pytest.mark.parametrize(("D", "causal"), [(128, False), (64, True)])
def test_five_products_run_and_nothing_is_serial(D, causal):
    defines = kernel.defines_of(D, False, causal, False)
    text = sass(compile_cubin(kernel.SOURCE, "sm_90a", defines))
    names = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)", text)
    products = sum(name.startswith("HGMMA") for name in names)
    assert products == 2 * D // 16 + 2 * kernel.rows_of_step(D) // 16 + kernel.KEYS // 16
    assert names.count("WARPGROUP.DEPBAR.LE") == 4, "more: the assembler gave up on running them together"
    assert "UTMALDG.4D" in names
    assert any(name.startswith("UBLKRED") for name in names), "dQ goes by the copy engine"
    assert sum(name.partition(".")[0] in ("LDL", "STL") for name in names) <= 2
