"""A student's own `.cu` in one line, without a GPU: what is read out of the file, what is refused, and how."""

import numpy as np
import pytest
import torch
from cuda_on_cpu import build

from course_kernels.cuda import run as run_module
from course_kernels.cuda.compile import CompileError
from course_kernels.cuda.run import run
from course_kernels.cuda.signature import kernels_of
from course_kernels.vector_add import k01_cuda

SCALE = """
// twice: extern "C" __global__ void not_this_one(int *x)
extern "C" __global__ void scale(const float *x, float *y, float factor, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = factor * x[i];
}
"""
X, Y = torch.arange(10.0), torch.zeros(10)


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.cu"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def on_cpu(monkeypatch, tmp_path):
    """The CPU stands in for the card: everything but the launch itself runs as it is."""
    launched = []

    def launch(kernel, grid, block, *args, shared_bytes):
        launched.append((grid, block, args, shared_bytes))
        kernel(grid, block, *args)

    texts = []
    monkeypatch.setattr(run_module, "_here", lambda: torch.device("cpu"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(run_module, "compile_cubin", lambda file, arch, defines: texts.append(file) or file)
    monkeypatch.setattr(run_module, "_load", lambda cubin, name, device: build(tmp_path, cubin, name))
    monkeypatch.setattr(run_module, "_check_room", lambda *_: None)
    monkeypatch.setattr(run_module, "_wait", lambda *_: None)
    monkeypatch.setattr(run_module, "launch", launch)
    return launched


def line_of(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- it runs ----------------------------------------------------------------------------------------


def test_a_file_runs_and_plain_numbers_get_their_width(write, on_cpu):
    y = torch.full((10,), torch.nan)
    run(write(SCALE), 3, 4, X, y, 2, 10)
    (grid, block, args, shared_bytes), *_ = on_cpu

    assert torch.equal(y, 2 * X)
    assert (grid, block, shared_bytes) == ((3, 1, 1), (4, 1, 1), 0)
    assert [type(a) for a in args[2:]] == [np.float32, np.int32]


def test_a_kernel_of_the_library_runs_the_same_way(on_cpu):
    z = torch.full((10,), torch.nan)
    run(k01_cuda.SOURCE, 1, 32, X, X, z, 10)

    assert torch.equal(z, X + X)
    assert type(on_cpu[0][2][-1]) is np.int64


@pytest.mark.parametrize("grid", [(2, 3), [2, 3], (np.int64(2), 3, 1)])
def test_a_grid_has_one_to_three_dimensions(write, on_cpu, grid):
    run(write('extern "C" __global__ void nothing() {}'), grid, (8, 2, 1))

    assert on_cpu[0][:2] == ((2, 3, 1), (8, 2, 1))


def test_one_of_several_kernels_is_named(write, on_cpu):
    y = torch.zeros(10)
    text = SCALE + SCALE.replace("scale(", "shift(").replace("factor * x[i]", "factor + x[i]")
    run(write(text), 1, 32, X, y, 1, 10, kernel="shift")

    assert torch.equal(y, X + 1)


# --- what is read -------------------------------------------------------------------------------------


def types_of(parameters, defines=None, before=""):
    text = f'{before}\nextern "C" __global__ void f({parameters}) {{}}'
    (kernel,) = kernels_of(text, defines)
    return [p.number + "*" * p.pointer for p in kernel.parameters]


@pytest.mark.parametrize(
    ("parameters", "types"),
    [
        ("", []),
        ("void", []),
        ("int n", ["int32"]),
        ("int", ["int32"]),
        ("const int n", ["int32"]),
        ("unsigned n, unsigned int m, uint32_t k, uint j", ["uint32"] * 4),
        ("long long n, int64_t m, long k, std::int64_t j, long long int i", ["int64"] * 5),
        ("unsigned long long n, size_t m, uint64_t k, long unsigned int j", ["uint64"] * 4),
        ("short a, unsigned short b, char c, unsigned char d", ["int16", "uint16", "int8", "uint8"]),
        ("float a, double b, bool c, __half d", ["float32", "float64", "bool", "float16"]),
        ("const float* __restrict__ x, float *y, float * z", ["float32*"] * 3),
        ("float x[], const float y[32]", ["float32*"] * 2),
        ("const __half *a, half *b", ["float16*"] * 2),
        ("__nv_bfloat16 *a, const __nv_fp8_e4m3 *b", ["bfloat16*", "float8_e4m3fn*"]),
        ("const float4 *a, half2 *b, int2 *c, uchar3 *d", ["float32*", "float16*", "int32*", "*"]),
        ("const uint4 *a, void *b", ["*", "*"]),
        ("const int n = 3, float x = 1.0f", ["int32", "float32"]),
        ("const __grid_constant__ int n", ["int32"]),
        ("float **x", ["?*"]),
        ("Params p, const Params *q", ["?", "?*"]),
        ("float4 p", ["?"]),
        ("int /* how, many */ n, // and\n float *x", ["int32", "float32*"]),
    ],
)
def test_the_types_of_parameters(parameters, types):
    assert types_of(parameters) == types


@pytest.mark.parametrize(
    ("before", "defines"),
    [
        ("using T = float;", None),
        ("typedef float T;", None),
        ("#define T float", None),
        ("#define T U\n#define U float", None),
        ("", {"T": "float"}),
        ("using T = const float;", None),
    ],
)
def test_a_name_for_a_type_is_followed(before, defines):
    assert types_of("const T *x, T a", defines, before) == ["float32*", "float32"]


def test_a_circle_of_names_ends():
    assert types_of("A *x", None, "#define A B\n#define B A") == ["?*"]


def test_names_and_alignments():
    (kernel,) = kernels_of(
        'extern "C" __global__ void f(const float4 *x, int, double2 *y, uchar3 *z, half2 *h) {}'
    )

    assert [p.name for p in kernel.parameters] == ["x", "parameter 2", "y", "z", "h"]
    assert [p.alignment for p in kernel.parameters] == [16, 1, 16, 1, 4]
    assert str(kernel) == "f(const float4 *x, int, double2 *y, uchar3 *z, half2 *h)"


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" __global__ void f(int n) {}',
        'extern "C"   __global__\nvoid\nf ( int n )\n{\n}',
        'extern "C" __global__ void __launch_bounds__(256) f(int n) {}',
        'extern "C" __global__ __launch_bounds__(256, (2 + 2)) void f(int n) {}',
        'extern "C" void __global__ f(int n) {}',
        'extern "C" {\n__device__ int two() { return 2; }\n__global__ void f(int n) {}\n}',
        '__device__ int __global__like() { return 1; }\nextern "C" __global__ void f(int n) { if (n) { } }',
        '/* extern "C" __global__ void g() {} */ extern "C" __global__ void f(int n) {}',
        'extern "C" __global__ void f(int n);\nextern "C" __global__ void f(int n) {}',
        '#define LONG \\\n  __global__ void g() {}\nextern "C" __global__ void f(int n) {}',
        'const char *s = "// __glob";\nextern "C" __global__ void f(int n) {}',
    ],
)
def test_a_kernel_is_found_however_it_is_written(text):
    assert [(k.name, k.is_extern_c, len(k.parameters)) for k in kernels_of(text)] == [("f", True, 1)]


# --- what is refused --------------------------------------------------------------------------------


def test_no_such_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        run("nowhere.cu", 1, 1)

    assert line_of(caught) == f"nowhere.cu: no such file; Python runs in {tmp_path}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 'mine.cu: no kernel in it; one begins with extern "C" __global__ void'),
        ("__device__ int f() { return 1; }", "mine.cu: no kernel in it; one begins with"),
        (
            "__global__ void f(int n) {}",
            'mine.cu: f is not extern "C", so Python cannot find it by name; write extern "C" __global__ void f(…)',
        ),
        (
            "template <typename T> __global__ void f(T *x) {}",
            "mine.cu: f is a template, which Python cannot find by name; write out one type",
        ),
        (
            'extern "C" __global__ void f() {}\nextern "C" __global__ void g() {}',
            'mine.cu: several kernels in it, f, g; say which, as in kernel="f"',
        ),
    ],
)
def test_a_file_without_one_kernel(write, text, line):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run(write(text), 1, 1)

    assert line_of(caught).startswith(line)


def test_a_helper_that_is_no_extern_c_is_passed_over(write, on_cpu):
    run(write('__global__ void g() {}\nextern "C" __global__ void f() {}'), 1, 1)

    assert len(on_cpu) == 1


def test_a_kernel_that_is_not_there(write):
    with pytest.raises(ValueError, match=r"mine\.cu: no kernel sclae in it; there is scale"):
        run(write(SCALE), 1, 1, kernel="sclae")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            (X, Y, 2),
            "mine.cu: scale: it takes 4 arguments, got 3: "
            "scale(const float *x, float *y, float factor, int N)",
        ),
        ((X, Y, 2, 10, 1), "mine.cu: scale: it takes 4 arguments, got 5: scale("),
    ],
)
def test_a_wrong_number_of_arguments(write, arguments, line):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run(write(SCALE), 1, 1, *arguments)

    assert line_of(caught).startswith(line)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {0: X.double()},
            "mine.cu: scale: x: expected a float32 tensor, got float64: the file says const float *x",
        ),
        ({0: 3}, "mine.cu: scale: x: expected a float32 tensor, got 3"),
        ({1: None}, "mine.cu: scale: y: expected a float32 tensor, got None"),
        ({0: X.numpy()}, "mine.cu: scale: x: expected a float32 tensor, got a NumPy array: torch.from_numpy"),
        ({0: [1.0]}, "mine.cu: scale: x: expected a float32 tensor, got a list: torch.tensor"),
        ({2: X}, "mine.cu: scale: factor: expected a number, got a tensor: the file says float factor"),
        ({2: "2"}, "mine.cu: scale: factor: expected a number, got '2'"),
        ({2: True}, "mine.cu: scale: factor: expected a number, got True"),
        ({3: 10.5}, "mine.cu: scale: N: expected a whole number for int N, got 10.5"),
        ({3: 10.0}, "mine.cu: scale: N: expected a whole number for int N, got 10.0"),
        ({3: False}, "mine.cu: scale: N: expected a number, got False"),
    ],
)
def test_an_argument_of_the_wrong_kind(write, change, line):
    arguments = [X, Y, 2.0, 10]
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(TypeError) as caught:
        run(write(SCALE), 1, 1, *arguments)

    assert line_of(caught).startswith(line)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({3: 2**31}, "mine.cu: scale: N: 2147483648 does not fit int N, which holds"),
        ({3: -(2**31) - 1}, "mine.cu: scale: N: -2147483649 does not fit int N"),
        ({3: 2**64}, "mine.cu: scale: N: 18446744073709551616 does not fit int N"),
        ({2: 1e39}, "mine.cu: scale: factor: 1e+39 is too large for float factor"),
        ({0: torch.zeros(20)[::2]}, "mine.cu: scale: x: expected a contiguous tensor, got strides (2,)"),
        ({0: torch.zeros(4, 5).T}, "mine.cu: scale: x: expected a contiguous tensor, got strides (1, 5)"),
    ],
)
def test_a_value_that_does_not_fit(write, change, line):
    arguments = [X, Y, 2.0, 10]
    for place, value in change.items():
        arguments[place] = value
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run(write(SCALE), 1, 1, *arguments)

    assert line_of(caught).startswith(line)


def test_an_int_too_large_is_told_the_wider_type(write):
    with pytest.raises(ValueError, match="which holds -2147483648 to 2147483647; declare it long long"):
        run(write(SCALE), 1, 1, X, Y, 1, 2**31)


def test_the_largest_numbers_fit(write, on_cpu):
    text = 'extern "C" __global__ void f(int a, long long b, float c) {}'
    run(write(text), 1, 1, 2**31 - 1, -(2**63), float("inf"))

    assert on_cpu[0][2] == (2**31 - 1, -(2**63), np.inf)


def test_an_address_between_two_vectors(write):
    text = 'extern "C" __global__ void f(const float4 *x) {}'
    with pytest.raises(
        ValueError, match=r"x: expected an address divisible by 16, for const float4 \*x, got one 4"
    ):
        run(write(text), 1, 1, torch.zeros(9)[1:])


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("const unsigned *x", torch.zeros(4, dtype=torch.int32)),
        ("const unsigned *x", torch.zeros(4, dtype=torch.uint32)),
        ("const uint4 *x", torch.zeros(4, dtype=torch.bfloat16)),
        ("void *x", torch.zeros(4, dtype=torch.float64)),
        ("unsigned char *x", torch.zeros(4, dtype=torch.uint8)),
        ("bool *x", torch.zeros(4, dtype=torch.bool)),
    ],
)
def test_an_address_takes_the_tensors_of_its_width(declared, value):
    (kernel,) = kernels_of(f'extern "C" __global__ void f({declared}) {{}}')

    assert run_module._value("here", kernel.parameters[0], value, torch.device("cpu")) is value


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("const int *x", torch.zeros(4, dtype=torch.uint32)),
        ("const int *x", torch.zeros(4, dtype=torch.int64)),
        ("const __half *x", torch.zeros(4, dtype=torch.bfloat16)),
        ("bool *x", torch.zeros(4, dtype=torch.uint8)),
    ],
)
def test_and_no_others(declared, value):
    (kernel,) = kernels_of(f'extern "C" __global__ void f({declared}) {{}}')

    with pytest.raises(TypeError, match="here: expected a"):
        run_module._value("here", kernel.parameters[0], value, torch.device("cpu"))


def test_a_type_it_does_not_know(write):
    text = 'struct Params { int n; };\nextern "C" __global__ void f(Params p) {}'
    with pytest.raises(
        TypeError, match=r"mine\.cu: f: p: its type, Params p, is neither a number nor an address"
    ):
        run(write(text), 1, 1, 3)


def test_a_single_bfloat16(write):
    with pytest.raises(
        TypeError, match=r"run\(\) cannot pass a single bfloat16; pass a tensor of one element"
    ):
        run(write('extern "C" __global__ void f(__nv_bfloat16 a) {}'), 1, 1, 1.0)


@pytest.mark.parametrize(
    ("grid", "block", "error", "line"),
    [
        (0, 1, ValueError, "mine.cu: f: grid: expected from 1 to 2147483647 along x, got 0"),
        ((1, 65536), 1, ValueError, "mine.cu: f: grid: expected from 1 to 65535 along y, got 65536"),
        (1, 1025, ValueError, "mine.cu: f: block: expected from 1 to 1024 along x, got 1025"),
        (1, (1, 1, 65), ValueError, "mine.cu: f: block: expected from 1 to 64 along z, got 65"),
        (1, (64, 32), ValueError, "mine.cu: f: block: at most 1024 threads, got 64 × 32 × 1 = 2048"),
        ((1, 1, 1, 1), 1, ValueError, "mine.cu: f: grid: expected one to three numbers, got 4"),
        ((), 1, ValueError, "mine.cu: f: grid: expected one to three numbers, got 0"),
        (1000 / 256, 256, TypeError, "mine.cu: f: grid: expected whole numbers, got 3.90625"),
        ("1", 1, TypeError, "mine.cu: f: grid: expected whole numbers, got '1'"),
    ],
)
def test_a_grid_or_block_that_is_none(write, grid, block, error, line):
    with pytest.raises(error) as caught:
        run(write('extern "C" __global__ void f() {}'), grid, block)

    assert line_of(caught) == line


def test_shared_memory_below_nothing(write):
    with pytest.raises(ValueError, match="shared_bytes") as caught:
        run(write(SCALE), 1, 32, X, Y, 2, 10, shared_bytes=-4)

    assert line_of(caught) == "mine.cu: scale: shared_bytes: expected at least 0, got -4"


def test_a_file_in_another_encoding(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_bytes("// für alle\n".encode("latin-1") + SCALE.encode())
    with pytest.raises(ValueError, match="UTF-8") as caught:
        run(path, 1, 32, X, Y, 2, 10)

    assert line_of(caught) == "mine.cu: not UTF-8 text, at byte 4: save it as UTF-8"


def test_a_tensor_elsewhere(write, monkeypatch):
    monkeypatch.setattr(run_module, "_here", lambda: torch.device("cuda", 0))
    with pytest.raises(ValueError, match=r"mine\.cu: scale: x: expected a tensor on cuda:0, got one on cpu"):
        run(write(SCALE), 1, 1, X, Y, 2.0, 10)


# --- without a GPU -------------------------------------------------------------------------------------


@pytest.fixture
def without_gpu(monkeypatch):
    pytest.importorskip("cuda.core")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_without_a_gpu_it_says_that_it_compiles(write, without_gpu):
    with pytest.raises(RuntimeError) as caught:
        run(write(SCALE), 1, 32, X, Y, 2.0, 10)

    assert (
        line_of(caught)
        == "mine.cu: scale: it compiles, and the arguments fit; torch finds no GPU here to run it on"
    )


def test_without_a_gpu_the_compiler_still_speaks(write, without_gpu):
    with pytest.raises(CompileError, match=r'mine.cu\(5\): error: identifier "z" is undefined'):
        run(write(SCALE.replace("y[i]", "z[i]")), 1, 32, X, Y, 2.0, 10)


def test_a_macro_reaches_the_compiler(write, without_gpu):
    text = 'extern "C" __global__ void f(const REAL *x, REAL *y) { y[0] = x[0] * TIMES; }'
    with pytest.raises(RuntimeError, match="it compiles, and the arguments fit"):
        run(write(text), 1, 1, X, Y, defines={"REAL": "float", "TIMES": 3})
