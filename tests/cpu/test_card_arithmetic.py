"""Arithmetic in the interpreter as a card does it: held against what an H100 gave, bit by bit."""

import math

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

from course_judge.worker.card_arithmetic import as_on_a_card

N = 32
NAN, INF = math.nan, math.inf
NUMBERS = [460, 464, 480, 1e6, INF, NAN, 17, 0.001, 1.5 * 2**-9, 1.97, -INF, 1.01171875, 2 / 3, 3e9, -3e9]
NUMBERS += [1 + 2**-12, -1.5, 300, -0.0, 1e-9, 61440]
LARGEST, LEAST = 2**31 - 1, -(2**31)


@triton.jit
def converted_kernel(x_ptr, y_ptr, TO: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(TO))


def converted(to, dtype, bits):
    x, y = torch.zeros(N), torch.zeros(N, dtype=dtype)
    x[: len(NUMBERS)] = torch.tensor(NUMBERS)
    with as_on_a_card():
        converted_kernel[(1,)](x, y, TO=to, N=N)
    return [value & (2 ** (8 * bits.itemsize) - 1) for value in y.view(bits).tolist()[: len(NUMBERS)]]


# As an H100 gave them, with Triton 3.6.0.
BF16 = (
    "43e6 43e8 43f0 4974 7f80 7fff 4188 3a83 3b40 3ffc ff80 3f82 3f2b 4f33 cf33 3f80 bfc0 4396 8000 3089 4770"
)
E4M3 = "7e 7e 7e 7e 7e 7f 58 1 2 40 fe 38 33 7e fe 38 bc 79 80 0 7e"
E5M2 = "5f 5f 60 7b 7b 7f 4c 14 1a 40 fb 3c 39 7b fb 3c be 5d 80 0 7b"
INT32 = [460, 464, 480, 10**6, LARGEST, 0, 17, 0, 0, 1, LEAST, 1, 0, LARGEST, LEAST, 1, -1, 300, 0, 0, 61440]
UINT8 = [204, 208, 224, 255, 255, 0, 17, 0, 0, 1, 0, 1, 0, 255, 0, 1, 0, 44, 0, 0, 0]
INT64 = [460, 464, 480, 10**6, 2**63 - 1, -(2**63), 17, 0, 0, 1, -(2**63), 1, 0, 3 * 10**9, -3 * 10**9]
INT64 += [1, -1, 300, 0, 0, 61440]


@pytest.mark.parametrize(
    ("to", "dtype", "bits", "seen"),
    [
        (tl.bfloat16, torch.bfloat16, torch.int16, [int(code, 16) for code in BF16.split()]),
        (tl.float8e4nv, torch.float8_e4m3fn, torch.uint8, [int(code, 16) for code in E4M3.split()]),
        (tl.float8e5, torch.float8_e5m2, torch.uint8, [int(code, 16) for code in E5M2.split()]),
        (tl.int32, torch.int32, torch.int32, [value % 2**32 for value in INT32]),
        (tl.uint8, torch.uint8, torch.uint8, UINT8),
        (tl.int64, torch.int64, torch.int64, [value % 2**64 for value in INT64]),
    ],
    ids=str,
)
def test_a_number_is_converted_as_a_card_does(to, dtype, bits, seen):
    assert converted(to, dtype, bits) == seen


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16])
def test_every_code_is_read_as_torch_reads_it(dtype):
    kinds = {torch.float8_e4m3fn: tl.float8e4nv, torch.float8_e5m2: tl.float8e5, torch.bfloat16: tl.bfloat16}
    codes = torch.arange(256, dtype=torch.int16) * (1 if dtype != torch.bfloat16 else 257)
    x = codes.to(torch.uint8).view(dtype) if dtype != torch.bfloat16 else codes.view(dtype)
    y = torch.zeros(256)
    with as_on_a_card():
        converted_kernel[(1,)](x, y, TO=tl.float32, N=256)

    assert torch.equal(y.isnan(), x.float().isnan())
    assert torch.equal(y.nan_to_num(), x.float().nan_to_num())
    again = torch.zeros(256, dtype=dtype)
    with as_on_a_card():
        converted_kernel[(1,)](y, again, TO=kinds[dtype], N=256)
    finite = x.float().isfinite()
    assert torch.equal(again.float()[finite], x.float()[finite])


@triton.jit
def two_kernel(x_ptr, y_ptr, z_ptr, DO: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    if DO == "+":
        z = x + y
    elif DO == "-":
        z = x - y
    elif DO == "*":
        z = x * y
    elif DO == "/":
        z = x / y
    elif DO == "<":
        z = tl.where(x < y, x, y)
    elif DO == "count":
        z = (x < y).to(tl.float32)
    elif DO == "2":
        z = -x * 2.0 + 1.0
    elif DO == "maximum":
        z = tl.maximum(x, y)
    elif DO == "every NaN":
        z = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    elif DO == "clamp":
        z = tl.clamp(x, -1.0, 2.0)
    elif DO == "fma":
        z = tl.fma(x, x, y)
    tl.store(z_ptr + i, z)


def done(do, x, y):
    z = torch.zeros_like(x)
    with as_on_a_card():
        two_kernel[(1,)](x, y, z, DO=do, N=x.numel())
    return z


@pytest.mark.parametrize("do", ["+", "-", "*", "/", "<", "count", "2", "maximum"])
def test_bf16_is_worked_out_as_torch_does(do):
    x, y = (torch.randn(256, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in (1, 2))
    expected = {
        "+": x + y,
        "-": x - y,
        "*": x * y,
        "/": x / y,
        "<": torch.minimum(x, y),
        "count": (x < y).bfloat16(),
        "2": -x * 2 + 1,
        "maximum": torch.maximum(x, y),
    }
    assert torch.equal(done(do, x, y), expected[do])


def test_of_nan_and_a_number_the_number_is_the_larger():
    x, y = torch.tensor([NAN, 1.0, NAN, 3.0]), torch.tensor([1.0, NAN, NAN, 2.0])

    assert done("maximum", x, y).nan_to_num(9).tolist() == [1, 1, 9, 3]
    assert done("every NaN", x, y).nan_to_num(9).tolist() == [9, 9, 9, 3]
    assert done("clamp", x, y).tolist() == [-1, 1, -1, 2]


def test_multiply_and_add_is_rounded_once():
    x, y = torch.full((4,), 1 + 2**-12), torch.full((4,), -(1 + 2**-11))
    assert done("fma", x, y).tolist() == [2**-24] * 4


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, T: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, T)
    places = i[:, None] * T + i[None, :]
    tl.store(
        c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places), input_precision=PRECISION)
    )


def dot(a, b, precision="tf32"):
    c = torch.zeros(a.shape)
    with as_on_a_card():
        dot_kernel[(1,)](a, b, c, T=len(a), PRECISION=precision)
    return c


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_a_dot_of_few_bits_is_exact(dtype):
    a, b = (torch.randn(32, 32, generator=torch.Generator().manual_seed(seed)).to(dtype) for seed in (1, 2))
    torch.testing.assert_close(dot(a, b), a.float() @ b.float())


def test_a_dot_of_fp32_cuts_to_tf32():
    ulp = 2**-11  # half of TF32's own
    eye, seen = torch.eye(16), {1 + ulp: 1, 1 + 1.25 * ulp: 1, 1 + 3 * ulp: 1 + 2 * ulp, -1 - ulp: -1}
    for number, cut in seen.items():
        assert dot(eye, torch.full((16, 16), number)).unique().tolist() == [cut]
        assert dot(torch.full((16, 16), number), eye).unique().tolist() == [cut]
        for precise in ("ieee", "tf32x3"):
            assert dot(eye, torch.full((16, 16), number), precise).unique().tolist() == [number]


def test_a_tile_is_too_small_for_a_dot_as_on_a_card():
    with pytest.raises(interpreter.InterpreterError, match="K >= 16"):
        dot(torch.eye(8), torch.eye(8))


@triton.jit
def sum_kernel(x_ptr, y_ptr, N: tl.constexpr):
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), 0))


@triton.jit
def row_sums_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :])
    tl.store(y_ptr + m[:, None], tl.sum(x, 1, keep_dims=True))
    tl.store(y_ptr + M, tl.sum(x))


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


def test_sums_of_16_bits_are_rounded_on_the_way():
    with as_on_a_card():
        for dtype, seen in ((torch.bfloat16, 256.0), (torch.float16, 258.0)):
            x, y = torch.full((256,), 1 + 2**-7, dtype=dtype), torch.zeros(1, dtype=dtype)
            x[0] = 1
            sum_kernel[(1,)](x, y, N=256)
            assert y.item() == seen
        x, y = torch.ones(4096, dtype=torch.float16), torch.zeros(4096, dtype=torch.float16)
        cumsum_kernel[(1,)](x, y, N=4096)
        assert y[-1].item() == 4096
        x, y = torch.arange(64.0).bfloat16().view(4, 16), torch.zeros(5, dtype=torch.bfloat16)
        row_sums_kernel[(1,)](x, y, M=4, N=16)
        torch.testing.assert_close(y[:4], x.float().sum(1).bfloat16())
        torch.testing.assert_close(y[4], x.float().sum().bfloat16())


def test_the_interpreter_is_left_as_it_was():
    owners = (interpreter, interpreter.InterpreterBuilder, interpreter.ReduceOps, interpreter.ScanOps)
    functions = interpreter.interpreter_builder.codegen_fns
    before, smallest = [dict(vars(owner)) for owner in owners], dict(functions)
    with as_on_a_card():
        assert all(dict(vars(owner)) != was for owner, was in zip(owners, before, strict=True))
    assert [dict(vars(owner)) for owner in owners] == before
    assert functions == smallest


@triton.jit
def welford(mean, count, m2, mean_2, count_2, m2_2):
    n = count + count_2
    apart = mean_2 - mean
    return mean + apart * count_2 / n, n, m2 + m2_2 + apart * apart * count * count_2 / n


@triton.jit
def larger(value, at, value_2, at_2):
    better = (value_2 > value) | ((value_2 == value) & (at_2 < at))
    return tl.where(better, value_2, value), tl.where(better, at_2, at)


@triton.jit
def later(one, other):
    """Not commutative: the last of all."""
    return other


@triton.jit
def by_a_branch(one, other):
    if one > other:
        return one
    return other


@triton.jit
def of_squares(one, other):
    """Not associative: on a card it is another number for each way to group."""
    return one + other * other


@triton.jit
def own_reductions_kernel(x_ptr, y_ptr, places_ptr, wide_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    mean, count, m2 = tl.reduce((x, tl.full((M, N), 1.0, tl.float32), x * 0), 1, welford)
    tl.store(y_ptr + tl.arange(0, M), mean)
    tl.store(y_ptr + M + tl.arange(0, M), m2 / count)
    best, at = tl.reduce((x, rows + 0 * columns), 0, larger)
    tl.store(places_ptr + tl.arange(0, N), at)
    tl.store(wide_ptr + tl.arange(0, N), best)
    tl.store(wide_ptr + N, tl.reduce(x, None, later))
    kept = tl.reduce(x, 1, by_a_branch, keep_dims=True)
    tl.store(wide_ptr + 2 * N + rows, kept)


@triton.jit
def own_scans_kernel(x_ptr, y_ptr, DO: tl.constexpr, REVERSE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if DO == "max":
        y = tl.associative_scan(x, 0, by_a_branch, reverse=REVERSE)
    elif DO == "later":
        y = tl.associative_scan(x, 0, later, reverse=REVERSE)
    else:
        y, _, _ = tl.associative_scan((x, x * 0 + 1, x * 0), 0, welford, reverse=REVERSE)
    tl.store(y_ptr + i, y)


def test_a_reduction_by_a_kernels_own_function_is_combined_in_pairs():
    x = torch.randn(8, 32, generator=torch.Generator().manual_seed(0))
    x[5] = x[2]
    y, places, wide = torch.zeros(16), torch.zeros(32, dtype=torch.int32), torch.zeros(96)
    with as_on_a_card():
        own_reductions_kernel[(1,)](x, y, places, wide, M=8, N=32)

    torch.testing.assert_close(y[:8], x.mean(1))
    torch.testing.assert_close(y[8:], x.var(1, correction=0))
    assert torch.equal(places, x.argmax(0).int())
    assert torch.equal(wide[:32], x.max(0).values)
    assert wide[32] == x[-1, -1]
    assert torch.equal(wide[64:72], x.max(1).values)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("do", ["max", "later", "mean"])
def test_a_scan_by_a_kernels_own_function_is_that_of_the_interpreter(do, reverse):
    x, y, due = torch.randn(64, generator=torch.Generator().manual_seed(0)), torch.zeros(64), torch.zeros(64)
    own_scans_kernel[(1,)](x, due, DO=do, REVERSE=reverse, N=64)
    with as_on_a_card():
        own_scans_kernel[(1,)](x, y, DO=do, REVERSE=reverse, N=64)

    torch.testing.assert_close(y, due)


@triton.jit
def squares_kernel(x_ptr, y_ptr, N: tl.constexpr):
    tl.store(y_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, N)), 0, of_squares))


def test_a_function_that_is_not_associative_shows():
    """The interpreter by itself finds 1 + 4 + 9 + 16, as if such a function were right."""
    x, y = torch.tensor([1.0, 2, 3, 4]), torch.zeros(1)
    squares_kernel[(1,)](x, y, N=4)
    assert y == 30
    with as_on_a_card():
        squares_kernel[(1,)](x, y, N=4)
    assert y == 5 + 19**2
