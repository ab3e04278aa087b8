"""Attention's backward pass on the card: one key, hard scores, tiles, same bits, a graph, long rows; the library."""

import pytest
import torch

from course_kernels.attention_backward import k01_materialised, k02_teaching, k03_one_pass, library
from course_kernels.attention_backward.problem import PROBLEM, forward
from course_kernels.measure.check import checked_error
from course_kernels.problem import Workload, worst_error

GROUPS = ("attention_backward",)
KERNELS = [k01_materialised, k02_teaching, k03_one_pass]
BOTH_MASKS = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
EVERY = pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__.rpartition(".")[2])


def workload(dtype="bfloat16", N=1000, D=128, causal=False, B=1, H=2):
    return Workload.of(dtype, B=B, H=H, N=N, D=D, causal=causal)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator("cuda").manual_seed(seed), "cuda")


def after_forward(q, k, v, do, causal=False):
    return q, k, v, *forward(q, k, v, causal=causal), do


def error(out, inputs, causal=False):
    return worst_error(out, PROBLEM.reference(*inputs, causal=causal))


LIBRARY = {
    library.sdpa_flash: ("bfloat16", "float16"),
    library.sdpa_flash_deterministic: ("bfloat16", "float16"),
    library.sdpa_cudnn: ("bfloat16", "float16"),
    library.sdpa_efficient: ("bfloat16", "float16", "float32"),
    library.sdpa_math: ("bfloat16", "float16", "float32"),
}


@BOTH_MASKS
@pytest.mark.parametrize("N", [1000, 1024])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [(f, t) for f, types in LIBRARY.items() for t in types],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_library_is_right(function, dtype, N, causal):
    w = workload(dtype, N=N, B=2, causal=causal)

    assert checked_error(function, w, torch.Generator("cuda").manual_seed(0)) <= PROBLEM.max_error(w)


@EVERY
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("D", [64, 128])
def test_one_key_takes_the_whole_gradient_of_v_and_none_else(kernel, dtype, D):
    q, k, v, do = (x[:, :, :1].contiguous() for x in inputs_of(workload(dtype, N=8, D=D, H=3))[:4])
    dq, dk, dv = kernel.attention_backward(*after_forward(q, k, v, do))

    torch.testing.assert_close(dv, do, rtol=1e-5 if dtype == "float32" else 2.0**-8, atol=0)
    # What cancels is a product of D numbers of 1 or so, times a row of 1 or so.
    assert max(dq.abs().max(), dk.abs().max()) <= (1e-5 if dtype == "float32" else 2e-2)


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@EVERY
def test_large_scores_do_not_overflow(kernel, dtype, causal):
    q, k, v, _, _, do = inputs_of(workload(dtype, causal=causal))
    inputs = after_forward(3 * q, 3 * k, v, do, causal)
    scores = inputs[0][0, 0].double() @ inputs[1][0, 0].double().T / 128**0.5

    assert scores.max() > 40 > -40 > scores.min()
    # An L of 40 has a last bit 16 times that of a usual one, and dP - D[m] cancels where a P is nearly one.
    allowed = 4 * PROBLEM.max_error(workload(dtype))
    assert error(kernel.attention_backward(*inputs, causal=causal), inputs, causal) <= allowed


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@EVERY
def test_scores_far_below_zero_have_a_low_lse_and_no_nan(kernel, dtype):
    """Past the end a score is 0, and exp(0 - L) has no float32: 1000 keys fill no block of any kernel."""
    q, k, v, _, _, do = inputs_of(workload(dtype))
    inputs = after_forward(3.3 + 0.3 * q, -3.3 + 0.3 * k, v, do)

    assert inputs[4].max() < -90
    # What all keys have in common cancels in dQ, and leaves its rounding.
    allowed = {"bfloat16": 2.0**-2, "float16": 2.0**-5, "float32": 2.0**-9}[dtype]
    assert error(kernel.attention_backward(*inputs), inputs) <= allowed


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@EVERY
def test_equal_scores_share_the_gradient_of_v(kernel, dtype, causal):
    q, k, v, _, _, do = inputs_of(workload(dtype, N=333, causal=causal))
    inputs = after_forward(q, torch.full_like(k, 0.5), v, do, causal)
    _, *out = kernel.attention_backward(*inputs, causal=causal)

    # dQ is zero: the keys are all one, and the sum of dS over a row is nothing.
    assert worst_error(out, PROBLEM.reference(*inputs, causal=causal)[1:]) <= PROBLEM.max_error(
        workload(dtype)
    )


@BOTH_MASKS
@EVERY
def test_each_row_is_right_by_its_own_measure(kernel, causal):
    inputs = inputs_of(workload("float32", N=500, causal=causal))
    dq, dk, dv = kernel.attention_backward(*inputs, causal=causal)
    truth = PROBLEM.reference(*inputs, causal=causal)

    for out, expected in zip((dq[:, :, 1:], dk, dv), (truth[0][:, :, 1:], *truth[1:]), strict=True):
        assert worst_error(out, expected, rows_apart=True) <= 1e-3


@BOTH_MASKS
@pytest.mark.parametrize("tile", [*k03_one_pass.HOPPER.items(), *k03_one_pass.GENERIC.items()], ids=str)
def test_every_tile_of_the_one_pass_kernel_is_right(tile, causal):
    """Those for other cards run here, too; float32 has the same on all."""
    (element_bytes, D), shape = tile
    w = workload({2: "bfloat16", 4: "float32"}[element_bytes], D=D, causal=causal)
    inputs = inputs_of(w)
    out = k03_one_pass.attention_backward(*inputs, causal=causal, tile=shape)

    assert error(out, inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
@pytest.mark.parametrize("tiles", k02_teaching.GENERIC.items(), ids=str)
def test_the_teaching_kernel_s_other_tiles_are_right(tiles, causal):
    (element_bytes, D), shapes = tiles
    w = workload({2: "bfloat16", 4: "float32"}[element_bytes], D=D, causal=causal)
    inputs = inputs_of(w)
    out = k02_teaching.attention_backward(*inputs, causal=causal, tiles=shapes)

    assert error(out, inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
def test_what_has_one_owner_has_the_same_bits_every_time(causal):
    inputs = inputs_of(workload(N=4095, H=8, causal=causal))
    teaching = k02_teaching.attention_backward(*inputs, causal=causal)
    _, *one_pass = k03_one_pass.attention_backward(*inputs, causal=causal)
    for _ in range(30):
        for first, now in zip(teaching, k02_teaching.attention_backward(*inputs, causal=causal), strict=True):
            assert torch.equal(first, now)
        dq, *rest = k03_one_pass.attention_backward(*inputs, causal=causal)
        for first, now in zip(one_pass, rest, strict=True):
            assert torch.equal(first, now)
        assert worst_error(dq, teaching[0]) <= PROBLEM.max_error(workload())


@BOTH_MASKS
@pytest.mark.parametrize("kernel", [k02_teaching, k03_one_pass], ids=["k02", "k03"])
def test_a_graph_takes_new_values(kernel, causal):
    """The sum of dQ begins at zero in every replay."""
    w = workload(causal=causal)
    inputs = inputs_of(w)
    kernel.attention_backward(*inputs, causal=causal)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = kernel.attention_backward(*inputs, causal=causal)
    for seed in range(1, 4):
        for tensor, values in zip(inputs, inputs_of(w, seed), strict=True):
            tensor.copy_(values)
        graph.replay()

        assert error(out, inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
@pytest.mark.parametrize("kernel", [k02_teaching, k03_one_pass], ids=["k02", "k03"])
@pytest.mark.parametrize("D", [64, 128])
def test_as_long_as_it_is_timed(kernel, D, causal):
    w = workload(N=16384, D=D, causal=causal)
    inputs = inputs_of(w)

    assert error(kernel.attention_backward(*inputs, causal=causal), inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("kernel", [k02_teaching, k03_one_pass], ids=["k02", "k03"])
def test_as_exact_as_flash_attention(kernel, D, dtype, causal):
    """At most a quarter more than FlashAttention-2's error on the same inputs, or one last bit of the type."""
    inputs = inputs_of(workload(dtype, N=4095, D=D, causal=causal))
    ours = error(kernel.attention_backward(*inputs, causal=causal), inputs, causal)
    theirs = error(library.sdpa_flash(*inputs, causal=causal), inputs, causal)

    assert ours <= max(1.25 * theirs, {"bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype])
