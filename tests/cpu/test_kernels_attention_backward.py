"""Attention's backward pass in the interpreter: gradients, masks, who adds to whom; the problem, and the library."""

import inspect
import re

import pytest
import torch
from triton._C.libtriton import ir
from triton.runtime import interpreter

from course_judge.worker.interpreter import watched_memory
from course_kernels.attention_backward import arguments, k01_materialised, k02_teaching, k03_one_pass, library
from course_kernels.attention_backward.problem import PROBLEM, forward
from course_kernels.measure.check import WrongResult, checked_error
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload, worst_error

pytestmark = pytest.mark.kept

KERNELS = [k01_materialised, k02_teaching, k03_one_pass]
NAMES = ["k01", "k02", "k03"]
INTERPRETED = pytest.mark.parametrize("kernel", KERNELS[1:], ids=NAMES[1:])
EVERY = pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
BOTH_MASKS = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])


def workload(dtype="float32", N=70, D=64, causal=False, B=1, H=1):
    return Workload.of(dtype, B=B, H=H, N=N, D=D, causal=causal)


def inputs_of(w, seed=0):
    return PROBLEM.make_inputs(w, torch.Generator().manual_seed(seed), "cpu")


def after_forward(q, k, v, do, causal=False):
    """The inputs of a backward pass, whatever the values."""
    return q, k, v, *forward(q, k, v, causal=causal), do


def error(out, inputs, causal=False):
    return worst_error(out, PROBLEM.reference(*inputs, causal=causal))


@pytest.fixture
def copy_engine(monkeypatch):
    """The interpreter brings tiles by descriptor; here it learns to add by one, too."""

    def add(self, kind, desc, value, indices):
        assert kind == ir.DESCRIPTOR_REDUCE_KIND.ADD
        places, there = desc.materialize_pointers(indices)
        there = interpreter.TensorHandle(there, interpreter.tl.int1)
        how = ir.ATOMIC_OP.FADD, places, value, there, ir.MEM_SEMANTIC.RELAXED, ir.MEM_SYNC_SCOPE.GPU
        return self.create_atomic_rmw(*how)

    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_descriptor_reduce", add, raising=False)


# --- the gradients ----------------------------------------------------------------------------------------


@BOTH_MASKS
@pytest.mark.parametrize(
    ("dtype", "D", "N"),
    [("float16", 64, N) for N in (17, 63, 64, 65, 128, 129)] + [("float32", 128, N) for N in (17, 32, 75)],
)
@INTERPRETED
def test_every_size_is_right(kernel, dtype, D, N, causal):
    w = workload(dtype, N=N, D=D, causal=causal)
    inputs = inputs_of(w)
    out = kernel.attention_backward(*inputs, causal=causal)

    assert {x.dtype for x in out} == {inputs[0].dtype}
    assert error(out, inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_materialised_kernel_is_right(dtype, D, causal):
    for N in (17, 300):
        w = workload(dtype, N=N, D=D, causal=causal, B=2, H=2)
        inputs = inputs_of(w)
        out = k01_materialised.attention_backward(*inputs, causal=causal)

        assert {x.dtype for x in out} == {inputs[0].dtype}
        assert error(out, inputs, causal) <= PROBLEM.max_error(w)


@BOTH_MASKS
@EVERY
def test_several_sequences_and_heads_pass_the_whole_check(kernel, causal):
    w = workload("float16", N=33, B=2, H=2, causal=causal)

    assert checked_error(kernel, w, device="cpu") <= PROBLEM.max_error(w)


@pytest.mark.parametrize(("owned", "passing"), [(16, 64), (64, 16), (32, 32), (64, 32)])
@INTERPRETED
def test_the_diagonal_may_be_cut_anywhere(kernel, owned, passing):
    w = workload("float16", N=100, causal=True)
    inputs = inputs_of(w)
    tile = k02_teaching.Tile(owned, passing, warps=4, stages=1)
    cut = {"tiles": (tile, tile)}
    if kernel is k03_one_pass:
        cut = {"tile": k03_one_pass.Tile(owned, passing, warps=4, stages=1, tma=False)}

    assert error(kernel.attention_backward(*inputs, causal=True, **cut), inputs, True) <= PROBLEM.max_error(w)


@BOTH_MASKS
@pytest.mark.parametrize("D", [64, 128])
def test_the_tiles_of_hopper_are_right(D, causal, copy_engine):
    w = workload("float16", N=140, D=D, causal=causal)
    inputs = inputs_of(w)
    tiles, tile = k02_teaching.HOPPER[2, D], k03_one_pass.HOPPER[2, D]

    assert tile.tma
    for out in (
        k02_teaching.attention_backward(*inputs, causal=causal, tiles=tiles),
        k03_one_pass.attention_backward(*inputs, causal=causal, tile=tile),
    ):
        assert error(out, inputs, causal) <= PROBLEM.max_error(w)


# --- what holds whoever computes it -----------------------------------------------------------------------


@EVERY
class TestProperties:
    @BOTH_MASKS
    def test_each_row_is_right_by_its_own_measure(self, kernel, causal):
        """All but the first causal row of dQ, which is zero: nothing is left of what cancels there but its rounding."""
        inputs = inputs_of(workload(N=100, causal=causal))
        dq, dk, dv = kernel.attention_backward(*inputs, causal=causal)
        truth = PROBLEM.reference(*inputs, causal=causal)

        for out, expected in zip((dq[:, :, 1:], dk, dv), (truth[0][:, :, 1:], *truth[1:]), strict=True):
            assert worst_error(out, expected, rows_apart=True) <= 1e-4
        assert not causal or dq[:, :, 0].abs().max() <= 1e-5

    def test_one_key_takes_the_whole_gradient_of_v_and_none_else(self, kernel):
        for dtype, allowed in (("float32", 1e-5), ("float16", 2e-2)):
            q, k, v, do = (x[:, :, :1].contiguous() for x in inputs_of(workload(dtype, N=8, H=3))[:4])
            dq, dk, dv = kernel.attention_backward(*after_forward(q, k, v, do))

            torch.testing.assert_close(dv, do, rtol=1e-5 if dtype == "float32" else 1e-3, atol=0)
            # What cancels is a product of D numbers of 1 or so, times a row of 1 or so.
            assert max(dq.abs().max(), dk.abs().max()) <= allowed

    @BOTH_MASKS
    def test_large_scores_do_not_overflow(self, kernel, causal):
        for dtype in ("float32", "float16"):
            w = workload(dtype, N=70, causal=causal)
            q, k, v, _, _, do = inputs_of(w)
            inputs = after_forward(3.5 * q, 4 * k, v, do, causal)
            scores = inputs[0][0, 0].double() @ inputs[1][0, 0].double().T / 8

            assert scores.max() > 40 > -40 > scores.min()
            assert error(kernel.attention_backward(*inputs, causal=causal), inputs, causal) <= (
                2 * PROBLEM.max_error(w)
            )

    def test_scores_far_below_zero_have_a_low_lse_and_no_nan(self, kernel):
        """Past the end of 70 keys a score is 0, and exp(0 - L) has no float32, let alone a float16."""
        q, k, v, _, _, do = inputs_of(workload(N=70))
        q, k = 8 * q.abs(), -8 * k.abs()
        inputs = after_forward(q, k, v, do)

        assert inputs[4].max() < -100
        assert error(kernel.attention_backward(*inputs), inputs) <= 1e-3

    @BOTH_MASKS
    def test_equal_scores_share_the_gradient_of_v(self, kernel, causal):
        q, k, v, _, _, do = inputs_of(workload(N=70, causal=causal))
        k = torch.full_like(k, 0.5)
        inputs = after_forward(q, k, v, do, causal)
        _, dk, dv = kernel.attention_backward(*inputs, causal=causal)
        shares = do / (torch.arange(1, 71)[:, None] if causal else 70)
        expected = shares.flip(2).cumsum(2).flip(2) if causal else shares.sum(2, keepdim=True).expand_as(v)

        torch.testing.assert_close(dv, expected, rtol=1e-4, atol=1e-5)
        # dQ is zero: the keys are all one, and the sum of dS over a row is nothing.
        assert worst_error((dk, dv), PROBLEM.reference(*inputs, causal=causal)[1:]) <= 1e-4

    def test_a_key_gets_nothing_from_rows_before_it(self, kernel):
        q, k, v, _, _, do = inputs_of(workload(N=70, causal=True))
        do[:, :, 40:] = 0
        dq, dk, dv = kernel.attention_backward(*after_forward(q, k, v, do, True), causal=True)

        for gradient in (dq, dk, dv):
            assert not gradient[:, :, 40:].any()
            assert gradient[:, :, 1:39].any(-1).all()

    def test_the_order_of_keys_does_not_matter(self, kernel):
        q, k, v, o, lse, do = inputs_of(workload(N=70))
        order = torch.randperm(70, generator=torch.Generator().manual_seed(1))
        dq, dk, dv = kernel.attention_backward(q, k, v, o, lse, do)
        shuffled = (x[:, :, order].contiguous() for x in (k, v))
        again = kernel.attention_backward(q, *shuffled, o, lse, do)

        for now, then in zip(again, (dq, dk[:, :, order], dv[:, :, order]), strict=True):
            torch.testing.assert_close(now, then, rtol=1e-4, atol=1e-5)

    def test_heads_do_not_mix(self, kernel):
        inputs = inputs_of(workload(N=40, H=3))
        alone = kernel.attention_backward(*(x[:, 1:2].contiguous() for x in inputs))

        for of_all, of_one in zip(kernel.attention_backward(*inputs), alone, strict=True):
            torch.testing.assert_close(of_all[:, 1:2], of_one)

    def test_twice_the_gradient_is_twice_the_gradients(self, kernel):
        *others, do = inputs_of(workload(N=40))

        for twice, once in zip(
            kernel.attention_backward(*others, 2 * do), kernel.attention_backward(*others, do), strict=True
        ):
            torch.testing.assert_close(twice, 2 * once)


# --- who adds, and in which order -------------------------------------------------------------------------


@BOTH_MASKS
@INTERPRETED
def test_programs_in_any_order_stay_in_their_memory_and_keep_what_they_own(kernel, causal):
    """k02: no bit changes. k03: dK and dV have an owner; dQ is added to by whoever comes."""
    inputs = inputs_of(workload(N=80, causal=causal))
    first = kernel.attention_backward(*inputs, causal=causal)
    changed = []
    for seed in range(2):
        with watched_memory(shuffle=seed) as memory:
            out = kernel.attention_backward(*inputs, causal=causal)
        changed.append(not torch.equal(first[0], out[0]))

        assert memory.findings == []
        assert torch.equal(first[1], out[1])
        assert torch.equal(first[2], out[2])
        assert error(out, inputs, causal) <= 2.0**-15
    assert any(changed) == (kernel is k03_one_pass)


def test_who_asks_the_one_pass_kernel_for_an_order_is_sent_to_the_other():
    says = "deterministic: expected False, this kernel adds in no order; k02_teaching has one"
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        k03_one_pass.attention_backward(*inputs_of(workload(N=2)), deterministic=True)


# --- what a launcher refuses ------------------------------------------------------------------------------

SHAPE = (2, 3, 8, 64)
WRONG_TYPES = {
    "q: expected bfloat16 or float16 or float32, got float64": {"q": torch.zeros(SHAPE).double()},
    "o: expected float32, got float16": {"o": torch.zeros(SHAPE).half()},
    "do: expected float32, got bfloat16": {"do": torch.zeros(SHAPE).bfloat16()},
    "lse: expected float32, got float16": {"lse": torch.zeros(SHAPE[:3]).half()},
}
WRONG_VALUES = {
    "v: expected (B, H, N, D) with N=8, got (2, 3, 9, 64)": {"v": torch.zeros(2, 3, 9, 64)},
    "lse: expected (B, H, N) with no empty dimension, got (2, 3, 8, 1)": {"lse": torch.zeros(2, 3, 8, 1)},
    "lse: expected (B, H, N) with N=8, got (2, 3, 7)": {"lse": torch.zeros(2, 3, 7)},
    "do: expected contiguous (B, H, N, D), got strides (1536, 64, 192, 1)": {
        "do": torch.zeros(2, 8, 3, 64).transpose(1, 2)
    },
    "o: expected a tensor on cpu, got meta": {"o": torch.zeros(SHAPE, device="meta")},
}
OF_OUR_OWN = {
    "q: expected D = 64 or 128, got D=96": {
        **{name: torch.zeros(2, 3, 8, 96) for name in ("q", "k", "v", "o", "do")}
    },
    "do: expected an address divisible by 16, got one 4 bytes past it": {
        "do": torch.zeros(2 * 3 * 8 * 64 + 1)[1:].view(SHAPE)
    },
}


def given():
    tensors = {name: torch.zeros(SHAPE) for name in ("q", "k", "v", "o")}
    return tensors | {"lse": torch.zeros(SHAPE[:3]), "do": torch.zeros(SHAPE)}


@pytest.mark.parametrize("says", WRONG_TYPES | WRONG_VALUES | OF_OUR_OWN)
@EVERY
def test_what_a_launcher_refuses(kernel, says):
    other = (WRONG_TYPES | WRONG_VALUES | OF_OUR_OWN)[says]
    if kernel is k01_materialised and says in OF_OUR_OWN:
        assert (
            kernel.attention_backward(**given() | other)[0].shape == other.get("q", torch.zeros(SHAPE)).shape
        )
        return

    with pytest.raises(TypeError if says in WRONG_TYPES else ValueError, match=f"^{re.escape(says)}$"):
        kernel.attention_backward(**given() | other)


@pytest.mark.parametrize(
    ("H", "N", "says"),
    [
        (65536, 1, "q: expected B * H <= 65535, got B * H=65536"),
        (1, 2**30 + 1, "q: expected N <= 1073741824, got N=1073741825"),
    ],
)
def test_what_the_grid_and_32_bits_do_not_hold(H, N, says):
    x, lse = torch.empty(1, H, N, 64, device="meta"), torch.empty(1, H, N, device="meta")

    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        arguments.heads_of(x, x, x, x, lse, x, (torch.float32,))


@INTERPRETED
def test_supports(kernel):
    assert all(kernel.supports(w) for w in (*PROBLEM.check_on, *PROBLEM.time_on))
    assert not kernel.supports(workload("float64"))
    assert not kernel.supports(workload(D=96))


# --- the problem ------------------------------------------------------------------------------------------


@BOTH_MASKS
@pytest.mark.parametrize("N", [1, 2, 50, 1030])  # 1030: two strips
def test_the_truth_is_that_of_autograd_in_float64(N, causal):
    q, k, v, do = torch.randn(4, 2, 2, N, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(N))
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
    expected = torch.autograd.grad(out, leaves, do)
    o, lse = torch.full_like(q, torch.nan), torch.full(q.shape[:3], torch.nan)

    for got, due in zip(PROBLEM.reference(q, k, v, o, lse, do, causal=causal), expected, strict=True):
        torch.testing.assert_close(got, due)


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_forward_pass_leaves(dtype, causal):
    w = workload(dtype, N=1030, B=2, causal=causal)
    q, k, v, o, lse, _ = inputs_of(w)
    scores = q.double() @ k.double().transpose(-1, -2) / 8
    if causal:
        scores.masked_fill_(torch.ones(1030, 1030, dtype=torch.bool).triu_(1), -torch.inf)

    torch.testing.assert_close(o, (scores.softmax(-1) @ v.double()).to(q.dtype), rtol=2.0**-7, atol=1e-7)
    assert (lse.dtype, lse.shape) == (torch.float32, (2, 1, 1030))
    torch.testing.assert_close(lse.double(), scores.logsumexp(-1), rtol=1e-6, atol=1e-6)


@BOTH_MASKS
def test_rows_of_every_gradient_are_of_like_size(causal):
    """As the tolerance needs it: no row so small beside the others that it could be all wrong."""
    inputs = inputs_of(workload(N=1000, causal=causal))
    for number, gradient in enumerate(PROBLEM.reference(*inputs, causal=causal)):
        sizes = torch.stack([part.square().mean().sqrt() for part in gradient[0, 0].split(100)])

        # The last keys are seen by few rows, and each of those by all keys.
        assert sizes.max() < (8 if causal and number else 2) * sizes.min()


def test_bytes_and_operations():
    full, causal = (Workload.of("bfloat16", B=2, H=3, N=64, D=128, causal=c) for c in (False, True))

    assert PROBLEM.flops(full) == 5 * 2 * 2 * 3 * 64 * 64 * 128 == 2 * PROBLEM.flops(causal)
    assert PROBLEM.reads_bytes(full) == 2 * 3 * 64 * (5 * 128 * 2 + 4)
    assert PROBLEM.writes_bytes(full) == 3 * 2 * 3 * 64 * 128 * 2
    assert PROBLEM.options(causal) == {"causal": True}


# --- a tolerance that means something ---------------------------------------------------------------------


def as_in_the_formulas(
    q, k, v, o, lse, do, *, causal=False, delta=1.0, scale=1.0, past=0, rounded=lambda x: x
):
    """The gradients in float32 or better, with what a fault may change."""
    N, D = q.shape[2:]
    q, k, v, o, do = (rounded(x.float()) for x in (q, k, v, o, do))
    s = q @ k.transpose(-1, -2) / D**0.5
    if causal:
        s = s.masked_fill(torch.ones(N, N, dtype=torch.bool).triu(1 + past), -torch.inf)
    p = torch.exp(s - lse[..., None])
    if past and not causal:
        p[..., past:] = 0
    ds = p * (do @ v.transpose(-1, -2) - delta * (do * o).sum(-1, keepdim=True)) * scale / D**0.5
    return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ do


def judged(dtype, causal, **fault):
    def compute(*inputs, causal):
        return tuple(x.to(inputs[0].dtype) for x in as_in_the_formulas(*inputs, causal=causal, **fault))

    w = workload(dtype, N=300, H=2, causal=causal)
    return checked_error(Competitor("a model of one", PROBLEM, compute), w, device="cpu") / PROBLEM.max_error(
        w
    )


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_right_gradients_are_taken(dtype, causal):
    assert judged(dtype, causal) <= 0.5


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "fault",
    [{"delta": 0.0}, {"scale": 1.2}, {"past": -1}],
    ids=["no delta", "scaled wrongly", "one key too few"],
)
def test_wrong_ones_are_refused(dtype, causal, fault):
    with pytest.raises(WrongResult):
        judged(dtype, causal, **fault)


def rounded_to_tf32(x):
    """Round to 10 bits after the point, as the tensor cores do with an fp32 input."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


@BOTH_MASKS
def test_in_fp32_plain_tf32_is_refused(causal):
    with pytest.raises(WrongResult, match=r"^a model of one on \S+: wrong: "):
        judged("float32", causal, rounded=rounded_to_tf32)


# --- the library ------------------------------------------------------------------------------------------

BACK_ENDS = [
    library.sdpa_flash,
    library.sdpa_flash_deterministic,
    library.sdpa_cudnn,
    library.sdpa_efficient,
]


@pytest.mark.parametrize("function", BACK_ENDS, ids=lambda f: f.__name__)
def test_a_back_end_takes_what_it_is_called_with(function):
    """Tensors without memory: what torch says of shapes, types and arguments, and no number."""
    x = torch.empty(2, 3, 70, 64, dtype=torch.bfloat16, device="meta")
    lse = torch.empty(2, 3, 70, device="meta")
    before = torch.are_deterministic_algorithms_enabled()
    gradients = function(x, x, x, x, lse, x, causal=True)

    assert [(g.shape, g.dtype) for g in gradients] == [(x.shape, x.dtype)] * 3
    assert all(g.is_contiguous() or g.transpose(1, 2).is_contiguous() for g in gradients)
    assert torch.are_deterministic_algorithms_enabled() == before


def test_cudnn_is_handed_the_log_sum_exp_as_its_forward_pass_leaves_it(monkeypatch):
    """The operator's shapes are looked at on a card only: cuDNN refuses another one there."""
    x = torch.empty(2, 3, 70, 64, dtype=torch.bfloat16, device="meta")
    left = torch.ops.aten._scaled_dot_product_cudnn_attention(x, x, x, None, True)[1]
    given = []

    def backward(*arguments):
        given.extend(arguments)
        return x, x, x

    monkeypatch.setattr(library, "operator", lambda name, arguments: backward)
    library.sdpa_cudnn(x, x, x, x, torch.empty(2, 3, 70, device="meta"), x)

    assert given[library.CUDNN.split().index("logsumexp")].shape == left.shape == (2, 3, 70, 1)


def test_another_signature_is_one_line():
    library.operator.cache_clear()
    name = "_scaled_dot_product_flash_attention_backward"
    torch_has = rf"torch {re.escape(torch.__version__)} has"
    with pytest.raises(
        RuntimeError, match=rf"^aten::{name}: expected \(grad_out q\), {torch_has} \(grad_out "
    ):
        library.operator(name, "grad_out q")
    with pytest.raises(
        RuntimeError, match=rf"^aten::_no_such: expected \(x\), {torch_has} \(no such operator\)$"
    ):
        library.operator("_no_such", "x")


@BOTH_MASKS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_autograd_is_right_and_leaves_the_callers_precision_alone(dtype, causal):
    w = workload(dtype, N=70, causal=causal)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")

        assert checked_error(library.sdpa_math, w, device="cpu") <= PROBLEM.max_error(w)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_all_take_the_same_arguments():
    """A lesson swaps one for another by a word."""
    first = list(inspect.signature(k01_materialised.attention_backward).parameters)
    for function in (*(kernel.attention_backward for kernel in KERNELS), *BACK_ENDS, library.sdpa_math):
        assert list(inspect.signature(function).parameters)[: len(first)] == first
