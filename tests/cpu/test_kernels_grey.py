"""Colour to grey without a GPU: the .cu thread by thread, Triton interpreted, the operator on the CPU."""

from math import nan

import pytest
import torch
from cuda_on_cpu import build

from course_kernels.grey import k01_pixels, k02_triton, library, operator
from course_kernels.grey.problem import PROBLEM, WEIGHTS
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

SMALL = [
    Workload.of("float32", H=1, W=1),
    Workload.of("float32", H=3, W=70),
    Workload.of("float32", H=41, W=3),
    Workload.of("float32", H=9, W=33),
    Workload.of("float32", H=9, W=33, X=8, Y=4),
    Workload.of("float32", H=9, W=33, X=1, Y=32),
    Workload.of("float32", H=9, W=33, X=64, Y=1),
]


def picture_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(workload, text=...) -> (answer, truth) of the CUDA kernel."""
    built = {}

    def run(w, text=None):
        def load_kernel(source, name):
            if text not in built:
                built[text] = build(tmp_path_factory.mktemp(name), source, name, text=text)
            return built[text]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k01_pixels, "load_kernel", load_kernel)
            patch.setattr(k01_pixels, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args))
            patch.setattr(torch, "empty", lambda *shape, **how: torch.full(shape, nan))
            picture, options = picture_of(w), PROBLEM.options(w)
            return k01_pixels.grey(picture, **options), PROBLEM.reference(picture, **options)

    return run


@pytest.mark.parametrize("w", SMALL, ids=lambda w: w.label)
def test_the_cuda_kernel_is_right(run, w):
    out, truth = run(w)

    assert worst_error(out, truth) <= PROBLEM.max_error(w)


FAULTS = {
    "two threads write one pixel": ("out[pixel]", "out[pixel / 2 * 2]"),
    "the rows are as long as the picture is high": ("(row) * W", "(row) * H"),
    "the lower edge is not reached": ("row >= H)", "row >= H - 1)"),
    "blue before red": ("picture[3 * pixel];", "picture[3 * pixel + 2];"),
    "a weight has slipped": ("0.114f", "0.141f"),
    "columns from y": ("blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * blockDim.x + threadIdx.y"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(run, right, wrong):
    text = k01_pixels.SOURCE.read_text()
    assert text.count(right) == 1
    out, truth = run(Workload.of("float32", H=8, W=40), text=text.replace(right, wrong))

    assert not worst_error(out, truth) <= PROBLEM.max_error(SMALL[0])


@pytest.mark.parametrize("w", [w for w in (*SMALL, PROBLEM.check_on[1]) if k02_triton.supports(w)])
def test_triton_is_right(w):
    picture = picture_of(w)

    assert worst_error(k02_triton.grey(picture), PROBLEM.reference(picture)) <= PROBLEM.max_error(w)


@pytest.mark.parametrize("function", [library.torch_grey, library.torch_product])
def test_the_library_is_right(function):
    w = Workload.of("float32", H=50, W=70)
    picture = picture_of(w)

    assert worst_error(function(picture), PROBLEM.reference(picture)) <= PROBLEM.max_error(w)


def test_white_stays_white_and_black_black():
    white = torch.ones(4, 5, 3)

    torch.testing.assert_close(k02_triton.grey(white), torch.ones(4, 5))
    assert torch.equal(k02_triton.grey(torch.zeros(4, 5, 3)), torch.zeros(4, 5))


@pytest.mark.parametrize("kernel", [k01_pixels, k02_triton])
@pytest.mark.parametrize(
    ("picture", "error", "line"),
    [
        (torch.zeros(4, 5, 3, dtype=torch.uint8), TypeError, "picture: expected float32, got uint8"),
        (torch.zeros(4, 5), ValueError, "picture: expected (H, W, C) with no empty dimension, got (4, 5)"),
        (torch.zeros(3, 4, 5), ValueError, "picture: expected (H, W, C) with C=3, got (3, 4, 5)"),
        (torch.zeros(4, 5, 4)[..., :3], ValueError, "picture: expected contiguous (H, W, C), got strides"),
        (torch.zeros(0, 5, 3), ValueError, "picture: expected (H, W, C) with no empty dimension"),
    ],
)
def test_a_picture_it_cannot_take_is_refused(kernel, picture, error, line):
    with pytest.raises(error) as caught:
        kernel.grey(picture)

    assert str(caught.value).startswith(line)


@pytest.mark.parametrize("block", [(0, 8), (32, 0), (32, 33), (1025, 1), (-1, -1)])
def test_a_block_that_is_none_is_refused(block):
    with pytest.raises(ValueError, match="block: expected at least 1 and in all at most 1024 threads"):
        k01_pixels.grey(torch.zeros(4, 5, 3), block=block)


def test_a_picture_too_high_for_the_grid_is_refused():
    with pytest.raises(ValueError, match="picture: expected at most 65535 rows for blocks 1 high, got 65536"):
        k01_pixels.grey(torch.zeros(65536, 1, 3), block=(32, 1))


# --- the operator ------------------------------------------------------------------------------------


def test_the_operator_is_what_torch_expects_of_one():
    picture = torch.rand(6, 5, 3, requires_grad=True)
    found = torch.library.opcheck(operator.grey, (picture,))

    assert set(found.values()) == {"SUCCESS"}
    assert torch.equal(torch.ops.course.grey(picture), library.torch_grey(picture))


def test_the_gradient_is_the_one_autograd_finds_by_itself():
    ours, theirs = (picture_of(SMALL[3]).requires_grad_() for _ in range(2))
    operator.grey(ours).square().mean().backward()
    library.torch_grey(theirs).square().mean().backward()

    torch.testing.assert_close(ours.grad, theirs.grad)


def test_the_gradient_of_a_sum_is_the_weights():
    picture = torch.rand(4, 5, 3, requires_grad=True)
    operator.grey(picture).sum().backward()

    torch.testing.assert_close(picture.grad, torch.tensor(WEIGHTS).expand(4, 5, 3))


def test_the_shape_is_known_without_computing():
    with torch._subclasses.FakeTensorMode():
        out = operator.grey(torch.empty(6, 5, 3))

    assert out.shape == (6, 5)


def test_torch_compile_does_not_stumble():
    picture = torch.rand(6, 5, 3, requires_grad=True)

    def loss(picture):
        return operator.grey(picture * 2).mean()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")

    torch.testing.assert_close(compiled(picture), loss(picture))
