"""A prepared launch hands the driver the right bytes, and says in one line what it cannot pass."""

import ctypes
import re
import struct
from types import SimpleNamespace

import pytest
import torch

from course_kernels.cuda import prepared
from course_kernels.cuda.prepared import prepare, tensor_map

SOURCE = """
using Half = unsigned short;
extern "C" __global__ __launch_bounds__(384, 1) void f(const Half *x, int n, const __grid_constant__ TensorMap map,
                                                       float scale, const float *y, long long far, bool yes,
                                                       char last) {}
extern "C" __global__ void g(struct Unknown u) {}
"""
FORM = "<Qi52x128sf4xQq?b"  # each argument at a multiple of its own size, the map of 64 bytes
MAP = bytes(range(128))


class Tensor(torch.Tensor):
    """A tensor of the CPU that says it lies on a GPU."""

    number = 0

    def get_device(self):
        return self.number


def on_gpu(x, number=0):
    x = x.as_subclass(Tensor)
    x.number = number
    return x


class FakeDriver:
    """Keeps what it was asked, read from the addresses that libcuda would get."""

    def __init__(self):
        self.attributes, self.launches, self.maps = [], [], []
        self.device, self.stream, self.error = 0, 0x5EED, 0

    def current(self):
        return self.device, self.stream

    def load(self, path, name, defines):
        return 0xCAFE

    def set_attribute(self, attribute, value, kernel, device):
        self.attributes.append((attribute, value, kernel, device))
        return self.error

    def name_of(self, error):
        return "CUDA_ERROR_INVALID_VALUE"

    def launch(self, config, kernel, pointers, extra):
        assert config % 8 == 0
        *sizes, stream, listed, count = struct.unpack("<7I4xQQI4x", ctypes.string_at(config, 56))
        attributes = {}
        for i in range(count):
            number, value = struct.unpack("<I4x64s", ctypes.string_at(listed + 72 * i, 72))
            attributes[number] = value.rstrip(b"\0")
        widths = [8, 4, 128, 4, 8, 8, 1, 1]
        places = struct.unpack("<8Q", ctypes.string_at(pointers, 64))
        assert places[2] % 64 == 0
        arguments = [ctypes.string_at(place, n) for place, n in zip(places, widths, strict=True)]
        self.launches.append(
            SimpleNamespace(sizes=sizes, stream=stream, attributes=attributes, arguments=arguments)
        )
        assert (kernel, extra) == (0xCAFE, None)
        return self.error

    def encode(self, start, kind, rank, address, sizes, steps, box, ones, *rest):
        assert start % 64 == 0
        numbers = [
            struct.unpack(f"<{n}{letter}", ctypes.string_at(at, struct.calcsize(f"<{n}{letter}")))
            for at, n, letter in (
                (sizes, rank, "Q"),
                (steps, rank - 1, "Q"),
                (box, rank, "I"),
                (ones, rank, "I"),
            )
        ]
        self.maps.append((kind, rank, address, *numbers, rest))
        ctypes.memmove(start, MAP, 128)
        return self.error


@pytest.fixture
def fake(monkeypatch):
    driver = FakeDriver()
    monkeypatch.setattr(prepared, "driver", driver)
    monkeypatch.setattr(prepared, "_MAPS", {})
    return driver


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.cu").write_text(SOURCE)
    return tmp_path / "a.cu"


@pytest.fixture
def arguments():
    return [on_gpu(torch.zeros(4)), -7, MAP, 0.5, on_gpu(torch.zeros(2)), 2**40, True, -1]


def test_every_argument_lies_where_the_driver_looks(fake, path, arguments):
    prepare(path, "f", block=384)((5, 6, 7), *arguments)
    (launched,) = fake.launches

    x, y = arguments[0].data_ptr(), arguments[4].data_ptr()
    whole = struct.pack(FORM, x, -7, MAP, 0.5, y, 2**40, True, -1)
    assert b"".join(launched.arguments) == b"".join(
        whole[at : at + n]
        for at, n in ((0, 8), (8, 4), (64, 128), (192, 4), (200, 8), (208, 8), (216, 1), (217, 1))
    )
    assert launched.sizes == [5, 6, 7, 384, 1, 1, 0]
    assert launched.stream == 0x5EED
    assert launched.attributes == {}
    assert fake.attributes == []


def test_what_stays_the_same_is_asked_once(fake, path, arguments):
    kernel = prepare(
        path,
        "f",
        block=(64, 2, 1),
        shared_bytes=200_000,
        cluster=(16, 1, 1),
        before_the_last_grid_ended=True,
        cooperative=True,
    )
    for grid, stream in ((16, 1), (32, 2)):
        fake.stream = stream
        kernel(grid, *arguments)

    assert fake.attributes == [(8, 200_000, 0xCAFE, 0), (14, 1, 0xCAFE, 0)]
    assert [(launched.sizes, launched.stream) for launched in fake.launches] == [
        ([16, 1, 1, 64, 2, 1, 200_000], 1),
        ([32, 1, 1, 64, 2, 1, 200_000], 2),
    ]
    assert fake.launches[0].attributes == {4: b"\x10\0\0\0\1\0\0\0\1", 6: b"\1", 2: b"\1"}


def test_a_launch_that_is_written_down_is_the_same_as_a_call(fake, path, arguments):
    kernel = prepare(path, "f", block=384, cluster=2)
    written = kernel.written(4, *arguments)
    assert fake.launches == []
    fake.stream = 0xE15E
    kernel(8, *arguments[:1], 5, *arguments[2:])  # in a room of its own
    assert [written.go(), written.go()] == [0, 0]
    fake.stream = 0x5EED
    kernel(4, *arguments)
    _, first, second, called = fake.launches

    assert first == second == called
    assert (first.sizes[0], first.stream) == (4, 0x5EED)
    assert (fake.launches[0].sizes[0], fake.launches[0].stream) == (8, 0xE15E)


def test_a_written_launch_refuses_as_a_call_does(fake, path, arguments):
    kernel = prepare(path, "f", block=384)
    with pytest.raises(TypeError, match=r"^a\.cu: f: n: expected a number for int n, got None"):
        kernel.written(1, arguments[0], None, *arguments[2:])
    with pytest.raises(ValueError, match="grid: expected one positive number or three"):
        kernel.written(-1, *arguments)
    written = kernel.written(3, *arguments)
    fake.error = 1

    assert written.go() == 1
    assert re.search(
        r"refused the launch: CUDA_\w+; grid 3, block \(384, 1, 1\)", str(written.of.refused(1, 3))
    )


def test_no_tensor_is_no_address(fake, path, arguments):
    prepare(path, "f", block=32)(1, None, *arguments[1:])

    assert fake.launches[0].arguments[0] == bytes(8)


SLIPS = {
    "too few": (lambda a: a[:-1], r"it takes 8 arguments, got 7: f\(const Half \*x, int n, .*\)"),
    "a number for a tensor": (lambda a: [3, *a[1:]], "x: expected a tensor, got 3"),
    "a tensor for a number": (
        lambda a: [a[0], a[0], *a[2:]],
        "n: expected a number for int n, got a tensor on cpu",
    ),
    "a fraction for a whole number": (
        lambda a: [a[0], 0.5, *a[2:]],
        r"n: expected a number for int n, got 0\.5",
    ),
    "a number too large": (lambda a: [a[0], 2**31, *a[2:]], "n: expected a number for int n, got 2147483648"),
    "a float too large": (
        lambda a: [*a[:3], 1e300, *a[4:]],
        r"scale: expected a number for float scale, got 1e\+300",
    ),
    "a tensor for a map": (
        lambda a: [*a[:2], a[0], *a[3:]],
        "map: expected what tensor_map returns, got a tensor",
    ),
    "the other GPU": (
        lambda a: [on_gpu(torch.zeros(1), 1), *a[1:]],
        "x: expected a tensor on cuda:0, got one on cpu",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_one_line_and_no_launch(fake, path, arguments, slip):
    spoil, said = SLIPS[slip]
    with pytest.raises((TypeError, ValueError), match=rf"^a\.cu: f: {said}") as caught:
        prepare(path, "f", block=32)(1, *spoil(arguments))

    assert "\n" not in str(caught.value)
    assert fake.launches == []


@pytest.mark.parametrize("grid", [-1, (1, 2), 1.5, None, 2**32])
def test_a_grid_that_is_none(fake, path, arguments, grid):
    with pytest.raises(ValueError, match=r"^a\.cu: f: grid: expected one positive number or three, got "):
        prepare(path, "f", block=32)(grid, *arguments)
    assert fake.launches == []


def test_another_current_gpu_is_refused(fake, path, arguments):
    kernel = prepare(path, "f", block=32)
    fake.device = 1
    with pytest.raises(ValueError, match=r"made ready for cuda:0, and torch's current GPU is cuda:1$"):
        kernel(1, *arguments)


def test_what_the_driver_refuses_is_said(fake, path, arguments):
    kernel = prepare(path, "f", block=2048)
    fake.error = 1
    with pytest.raises(RuntimeError, match=r"refused the launch: CUDA_\w+; grid 3, block \(2048, 1, 1\)"):
        kernel(3, *arguments)
    with pytest.raises(
        ValueError, match=r"^a\.cu: f: shared_bytes: this GPU refuses 300000: CUDA_ERROR_INVALID"
    ):
        prepare(path, "f", block=32, shared_bytes=300_000)
    with pytest.raises(ValueError, match=r"^a\.cu: f: cluster: this GPU refuses 12: "):
        prepare(path, "f", block=32, cluster=12)


def test_a_parameter_nobody_can_pass(fake, path):
    with pytest.raises(
        ValueError, match=r"^a\.cu: g: struct Unknown u: expected an address, a number of float32, "
    ):
        prepare(path, "g", block=32)


def test_a_kernel_of_an_include_is_refused(fake, path):
    with pytest.raises(ValueError, match=r"^a\.cu: h: its line is not in this file"):
        prepare(path, "h", block=32)


# --- tensor maps ----------------------------------------------------------------------------------


def bf16(*size):
    return torch.zeros(*size, dtype=torch.bfloat16)


def test_a_map_is_encoded_innermost_first_and_once(fake):
    x = bf16(2, 48, 3, 64).transpose(1, 2)  # heads before positions, as attention wants them

    assert tensor_map(x, (1, 1, 128, 64)) == MAP
    assert tensor_map(x, (1, 1, 128, 64)) is tensor_map(x, (1, 1, 128, 64))
    steps = (3 * 64 * 2, 64 * 2, 48 * 3 * 64 * 2)
    assert fake.maps == [
        (9, 4, x.data_ptr(), (64, 48, 3, 2), steps, (64, 128, 1, 1), (1, 1, 1, 1), (0, 3, 3, 0))
    ]
    for other in ({"swizzle": 0}, {"promotion": 128}):
        tensor_map(x, (1, 1, 128, 64), **other)
    tensor_map(x, (1, 1, 64, 64))
    tensor_map(x[:1], (1, 1, 128, 64))
    assert len(fake.maps) == 5


def test_the_kept_maps_are_not_without_end(fake, monkeypatch):
    monkeypatch.setattr(prepared, "MAPS_KEPT", 2)
    for rows in (8, 16, 24):
        tensor_map(bf16(rows, 64), (8, 64))
    assert len(prepared._MAPS) == 1


def test_a_dimension_of_one_may_have_any_stride(fake):
    tensor_map(bf16(64).as_strided((1, 64), (3, 1)), (1, 64))

    assert fake.maps[0][4] == (16,)


NO_MAPS = [
    (torch.zeros(8, 8, dtype=torch.float64), (8, 8), {}, "no map of float64"),
    (bf16(64), (64,), {}, r"two to five dimensions, got shape \(64,\)"),
    (bf16(8, 64), (8, 64), {"swizzle": 16}, r"a swizzle of \(0, 32, 64, 128\) .* got 16 and 256"),
    (bf16(8, 64), (64,), {}, r"box: expected 2 numbers from 1 to 256, .* got \(64,\)"),
    (bf16(8, 64), (257, 64), {}, r"got \(257, 64\)"),
    (bf16(8, 64), (8, 4), {"swizzle": 0}, r"of a multiple of 16 bytes, got \(8, 4\)"),
    (bf16(8, 128), (8, 128), {}, "box: expected 128 bytes in the last dimension, as the swizzle, got 256"),
    (bf16(8, 128), (8, 32), {}, "box: expected 128 bytes in the last dimension, as the swizzle, got 64"),
    (
        bf16(64, 64).t(),
        (8, 64),
        {},
        r"stride 1 in the last dimension, got shape \(64, 64\), strides \(1, 64\)",
    ),
    (bf16(0, 64), (8, 64), {}, r"expected elements, .* got shape \(0, 64\)"),
    (
        bf16(8, 68)[:, :64],
        (8, 64),
        {},
        r"strides of a multiple of 16 bytes, got strides \(68, 1\) of 2 bytes",
    ),
    (bf16(8, 64)[:, 1:], (8, 64), {}, "an address divisible by 16, got one 2 bytes past it"),
    (bf16(1, 64).expand(8, 64), (8, 64), {}, r"got strides \(0, 1\)"),
]


@pytest.mark.parametrize(("x", "box", "options", "said"), NO_MAPS)
def test_what_the_engine_cannot_take_is_one_line(fake, x, box, options, said):
    with pytest.raises((TypeError, ValueError), match=f"^tensor_map: .*{said}") as caught:
        tensor_map(x, box, **options)
    assert "\n" not in str(caught.value)
    assert fake.maps == []


def test_a_map_that_the_driver_refuses_is_not_kept(fake):
    fake.error = 1
    x = bf16(8, 64)
    with pytest.raises(
        ValueError, match=r"the driver refused shape \(8, 64\), .*: CUDA_ERROR_INVALID_VALUE$"
    ):
        tensor_map(x, (8, 64))
    fake.error = 0

    assert tensor_map(x, (8, 64)) == MAP


def test_without_a_driver_one_line_says_so(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open")

    monkeypatch.setattr(ctypes, "PyDLL", missing)
    with pytest.raises(prepared.CudaMissingError) as caught:
        prepared.Driver().launch  # noqa: B018

    assert str(caught.value) == "libcuda.so.1: cannot open; it comes with NVIDIA's driver"
