"""Colour to grey as an operator of torch, on the card: right, refused in words, differentiable, compilable."""

import re

import pytest
import torch

from course_kernels.grey import k01_pixels, library, operator
from course_kernels.grey.problem import PROBLEM, WEIGHTS
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload

GROUPS = ("grey",)
SHAPES = [(1, 1), (7, 1000), (1023, 1025)]


def picture_of(shape, **how):
    return torch.rand(*shape, 3, device="cuda", **how)


@pytest.mark.parametrize("w", PROBLEM.check_on[:4], ids=lambda w: w.label)
@pytest.mark.parametrize("function", [operator.grey, library.torch_grey, library.torch_product])
def test_it_is_right(function, w):
    inputs = PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(0), "cuda")

    torch.testing.assert_close(function(*inputs).double(), PROBLEM.reference(*inputs), rtol=0, atol=1e-6)


@pytest.mark.parametrize("block", [(32, 1), (1024, 1), (16, 16), (8, 32), (1, 256), (1, 1024), (37, 5)])
def test_the_answer_does_not_depend_on_the_block(block):
    w = Workload.of("float32", H=333, W=517, X=block[0], Y=block[1])

    assert checked_error(k01_pixels, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_operator_is_the_kernel(shape):
    picture = picture_of(shape)

    assert torch.equal(torch.ops.course.grey(picture), k01_pixels.grey(picture))


def test_a_refusal_comes_through_the_operator():
    with pytest.raises(TypeError, match="picture: expected float32, got float16"):
        operator.grey(picture_of((4, 5)).half())
    with pytest.raises(ValueError, match=re.escape("picture: expected (H, W, C) with C=3, got (4, 5, 4)")):
        operator.grey(torch.rand(4, 5, 4, device="cuda"))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (9, 4)])
def test_the_gradient_is_the_slope(shape):
    """The operator is linear, so a difference over a wide step is its slope up to float32's rounding."""
    picture = picture_of(shape, requires_grad=True)

    assert torch.autograd.gradcheck(operator.grey, (picture,), eps=0.25, atol=1e-5, rtol=1e-4)


def test_a_wrong_gradient_would_be_seen():
    @torch.library.custom_op("course_test::grey_upside_down", mutates_args=(), device_types="cuda")
    def upside_down(picture: torch.Tensor) -> torch.Tensor:
        return k01_pixels.grey(picture)

    upside_down.register_autograd(
        lambda ctx, up: torch.stack([weight * up for weight in reversed(WEIGHTS)], dim=-1)
    )
    picture = picture_of((3, 5), requires_grad=True)

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(upside_down, (picture,), eps=0.25, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_agrees_with_torch(shape):
    ours = picture_of(shape).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    operator.grey(ours).square().mean().backward()
    library.torch_grey(theirs).square().mean().backward()

    torch.testing.assert_close(ours.grad, theirs.grad)


def test_a_picture_can_be_learned_through_it():
    """Gradient descent on the colours reaches a given grey picture."""
    target = torch.rand(16, 24, device="cuda")
    picture = torch.full((16, 24, 3), 0.5, device="cuda", requires_grad=True)
    descent = torch.optim.SGD([picture], lr=0.5)
    for _ in range(60):
        descent.zero_grad()
        (operator.grey(picture) - target).square().sum().backward()
        descent.step()

    torch.testing.assert_close(operator.grey(picture), target, rtol=0, atol=1e-3)


def test_it_is_what_torch_expects_of_an_operator():
    found = torch.library.opcheck(operator.grey, (picture_of((6, 5), requires_grad=True),))

    assert set(found.values()) == {"SUCCESS"}


def test_torch_compile_does_not_stumble():
    picture = picture_of((64, 96), requires_grad=True)

    def loss(picture):
        return operator.grey(picture * 2).square().mean()

    compiled = torch.compile(loss, fullgraph=True)
    (ours,) = torch.autograd.grad(compiled(picture), picture)
    (theirs,) = torch.autograd.grad(loss(picture), picture)

    torch.testing.assert_close(ours, theirs)


def test_it_runs_on_torchs_current_stream():
    picture = torch.zeros(1024, 1024, 3, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # holds this stream back; a kernel elsewhere would read zeros
        picture.fill_(1.0)
        out = operator.grey(picture)
    torch.cuda.current_stream().wait_stream(stream)

    torch.testing.assert_close(out, torch.ones_like(out))
