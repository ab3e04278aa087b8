"""The gradients of attention for Hopper on the card: any lengths and heads, and one order where it is asked for."""

import random

import pytest
import torch

from course_kernels.attention import k06_wgmma, truth
from course_kernels.attention_backward import k04_wgmma
from course_kernels.attention_backward.problem import MAX_ERROR
from course_kernels.problem import worst_error

GROUPS = ("attention_backward",)
pytestmark = pytest.mark.skipif(
    torch.cuda.get_device_capability() != (9, 0), reason="made for Hopper (compute capability 9.0)"
)


def drawn(B, H, KV, Nq, Nk, D, dtype, causal, seed):
    """The kernel's inputs, O and the log-sum-exp from our own forward pass; and the gradients by float64's own."""
    draw = torch.Generator("cuda").manual_seed(seed)
    shapes = ((B, H, Nq, D), (B, KV, Nk, D), (B, KV, Nk, D), (B, H, Nq, D))
    q, k, v, do = (torch.randn(s, generator=draw, device="cuda").to(dtype) for s in shapes)
    exact = [x.double().requires_grad_() for x in (q, k, v)]
    truth.attend(*exact, causal=causal)[0].backward(do.double())
    return (q, k, v, *k06_wgmma.attend(q, k, v, causal=causal), do), [x.grad for x in exact]


@pytest.mark.parametrize("seed", range(40))
def test_any_arguments(seed):
    draw = random.Random(seed)
    KV = draw.choice([1, 2, 3])
    H, D, dtype = (
        KV * draw.choice([1, 2, 4]),
        draw.choice([64, 128]),
        draw.choice([torch.bfloat16, torch.float16]),
    )
    Nq, Nk = (int(2 ** draw.uniform(4, 11)) for _ in range(2))
    causal, deterministic = draw.random() < 0.5, draw.random() < 0.3
    inputs, true = drawn(draw.choice([1, 2]), H, KV, Nq, Nk, D, dtype, causal, seed)
    found = k04_wgmma.attention_backward(*inputs, causal=causal, deterministic=deterministic)

    # A row that sees no key has no gradient, and says nothing of the size of the others: where nearly all rows are
    # such, elements near zero would be held to less than the rounding of dS makes, in whatever kernel.
    sees = inputs[4].isfinite()
    assert not found[0][~sees].any()
    for gradient, exact in ((found[0][sees], true[0][sees]), (found[1], true[1]), (found[2], true[2])):
        assert worst_error(gradient, exact) <= MAX_ERROR[str(dtype).removeprefix("torch.")]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
def test_in_one_order_the_bits_are_the_same(D, causal):
    """With more blocks of keys than run at once, and several heads."""
    inputs, _ = drawn(2, 4, 2, 1000, 1000, D, torch.bfloat16, causal, 0)
    many = [x.repeat(4, 1, 1, 1) if x.dim() == 4 else x.repeat(4, 1, 1) for x in inputs]
    first = k04_wgmma.attention_backward(*many, causal=causal, deterministic=True)
    for _ in range(20):
        again = k04_wgmma.attention_backward(*many, causal=causal, deterministic=True)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("causal", [False, True])
def test_thousands_of_calls_end(causal):
    inputs, _ = drawn(1, 8, 8, 500, 500, 128, torch.bfloat16, causal, 0)
    first = k04_wgmma.attention_backward(*inputs, causal=causal)
    for _ in range(3000):
        last = k04_wgmma.attention_backward(*inputs, causal=causal)

    for a, b in zip(first[1:], last[1:], strict=True):
        assert torch.equal(a, b), "dk and dv have one order"
