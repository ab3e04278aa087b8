"""Every rung of the fp32 ladder on the CPU, thread by thread: right on sizes that nothing divides, wrong where a
fault is planted; and its machine code, for every kind of card, keeps its sums in registers.
"""

import re
from importlib import import_module
from math import nan
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from compiled import seen
from cuda_on_cpu import build

import course_kernels
from course_kernels.cuda.architecture import arch_of
from course_kernels.problem import Workload, worst_error
from course_kernels.sgemm import by_tiles, tiles
from course_kernels.sgemm.problem import PROBLEM

pytestmark = pytest.mark.kept

FOLDER = Path(course_kernels.__file__).parent / "sgemm"
KERNELS = {
    path.stem: import_module(f"course_kernels.sgemm.{path.stem}")
    for path in sorted(FOLDER.glob("k[0-9][0-9]_*.py"))
}
SIZES = [  # M, N, K
    (1, 1, 1),
    (1, 3, 127),
    (3, 1, 33),
    (33, 65, 17),
    (127, 130, 3),
    (130, 33, 257),
    (257, 127, 40),
    (64, 128, 32),  # tiles fit
    (260, 132, 68),  # vectors fit, tiles do not
    (36, 260, 4),
]
BLOCKS = (
    3  # that the card holds at once: a persistent kernel has several tiles for each, and some to share out
)
MARGIN = 1 << 15  # elements before and after every tensor, NaN for the inputs
UNTOUCHED = 12345.0  # and this for outputs


def forget(module):
    """Empty the caches of a launcher: what it kept belongs to another card."""
    for function in vars(module).values():
        getattr(function, "cache_clear", lambda: None)()


def margins(x, value=nan, margin=MARGIN):
    """A copy of x in the middle of a value, and the whole memory."""
    whole = torch.full((x.numel() + 2 * margin,), value)
    inside = whole[margin : margin + x.numel()].view(x.shape)
    inside.copy_(x)
    return inside, whole


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(kernel module, a, b, text=...) -> the product, in memory that was NaN before; `text` replaces the source."""
    built = {}

    def run(module, a, b, text=None, capability=(9, 0), margin=MARGIN):
        memory = []

        def load_kernel(source, name, defines=None):
            key = (name, str(defines), text, source)
            if key not in built:
                nans = {"SHARED_FILL": "0xff", **(defines or {})}
                built[key] = build(tmp_path_factory.mktemp(name), source, name, nans, text)
            return built[key]

        def empty(*size, **how):
            size = size[0] if isinstance(size[0], tuple | list | torch.Size) else size
            inside, whole = margins(torch.full(size, nan), UNTOUCHED)
            memory.append((whole, inside))
            return inside

        a, b = margins(a, margin=margin)[0], margins(b, margin=margin)[0]
        card = SimpleNamespace(multi_processor_count=3, name="CPU", major=capability[0], minor=capability[1])
        with pytest.MonkeyPatch.context() as patch:
            for launcher in (module, by_tiles):  # its own, or the one that it shares
                patch.setattr(launcher, "load_kernel", load_kernel, raising=False)
                patch.setattr(
                    launcher, "launch", lambda kernel, *how, **more: kernel(*how, **more), raising=False
                )
            patch.setattr(module, "places", lambda kernel, threads: BLOCKS, raising=False)
            patch.setattr(torch, "empty", empty)
            patch.setattr(torch.cuda, "get_device_capability", lambda *device: capability)
            patch.setattr(torch.cuda, "get_device_properties", lambda *device: card)
            patch.setattr(torch.cuda, "current_device", lambda: 0)
            forget(module)
            c = module.sgemm(a, b)
            forget(module)
        for whole, inside in memory:
            around = torch.cat([whole[:MARGIN], whole[MARGIN + inside.numel() :]])
            assert bool((around == UNTOUCHED).all()), "written outside of the output"
        return c

    return run


def inputs(M, N, K):
    w = Workload.of("float32", M=M, N=N, K=K)
    return w, *PROBLEM.make_inputs(w, torch.Generator().manual_seed(M * N * K), "cpu")


def error_of(run, module, size, **how):
    """The worst element's error, as a part of what is allowed."""
    w, a, b = inputs(*size)
    return worst_error(run(module, a, b, **how), PROBLEM.reference(a, b)) / PROBLEM.max_error(w)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_product_is_right(run, kernel, size):
    assert error_of(run, KERNELS[kernel], size) <= 1


@pytest.mark.parametrize("size", [(130, 133, 69), (132, 136, 68)], ids=str)
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name >= "k10"])
def test_the_product_is_right_in_the_shape_for_other_cards(run, kernel, size):
    assert error_of(run, KERNELS[kernel], size, capability=(8, 6)) <= 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_address_between_vectors_is_taken(run, kernel):
    """On a CPU too a vector of 16 bytes that begins elsewhere would end the process."""
    assert error_of(run, KERNELS[kernel], (36, 68, 20), margin=MARGIN + 1) <= 1


# --- a fault is seen ------------------------------------------------------------------------------------------


# The barrier between two tiles of a persistent block: what a thread may read there too late, it does not multiply, so
# no number shows it.
UNSEEN = {("k12_persistent", 2)}
BARRIERS = [
    pytest.param(kernel, number, id=f"{kernel}-{number}")
    for kernel, module in KERNELS.items()
    for number in range(module.SOURCE.read_text().count("__syncthreads();"))
    if (kernel, number) not in UNSEEN
]


@pytest.mark.parametrize(("kernel", "number"), BARRIERS)
def test_no_barrier_can_be_left_out(run, kernel, number):
    module = KERNELS[kernel]
    parts = module.SOURCE.read_text().split("__syncthreads();")
    text = "__syncthreads();".join(parts[: number + 1]) + "__syncthreads();".join(parts[number + 1 :])

    assert caught(run, module, text)


FAULTS = {
    "columns past the edge, naive": ("k01_naive", "m >= M || n >= N", "m >= M"),
    "rows past the edge, naive": ("k01_naive", "m >= M || n >= N", "n >= N"),
    "columns past the edge": ("k02_coalesced", "m >= M || n >= N", "m >= M"),
    "B's rows past the end": ("k03_shared_tiles", "k < K && n < N ?", "n < N ?"),
    "A's row runs into the next": ("k03_shared_tiles", "m < M && k0 + column < K ?", "m < M ?"),
    "the trays' indices": ("k03_shared_tiles", "a_tile[row][i] *", "a_tile[i][row] *"),
    "the column's own row": ("k04_register_column", "a_tile[row + r][i]", "a_tile[row][i]"),
    "a column stored past the edge": ("k04_register_column", "if (m < M && n < N) C", "if (m < M) C"),
    "two columns of the square": (
        "k05_register_tile",
        "b[c] = b_tile[i][column + c]",
        "b[c] = b_tile[i][column]",
    ),
    "a square stored past the edge": ("k05_register_tile", "if (m < M && n < N) C", "if (n < N) C"),
    "two elements of a vector": (
        "k06_vectorised",
        "a_tile[a_k + 2][a_row] = a.z",
        "a_tile[a_k + 2][a_row] = a.w",
    ),
    "a vector past the end of its row": ("k06_vectorised", "k < K ? N - n : 0", "N - n"),
    "padding the wrong way": ("k07_conflict_free", "[BK][BM + 4]", "[BK][BM - 4]"),
    "half a tile too little": ("k07_conflict_free", "[i][column + c / 4 * (BN / 2)]", "[i][column + c]"),
    "lanes that stand another way": ("k08_warp_tiles", "lane / LANES_N * 4", "lane % LANES_N * 4"),
    "zeros forgotten": ("k09_asynchronous", "inside ? 4 : 0", "4"),
    "a wait for the wrong group": (
        "k09_asynchronous",
        "wait_for_all_but<STAGES - 2>",
        "wait_for_all_but<STAGES - 1>",
    ),
    "the wrong tray": (
        "k09_asynchronous",
        "= trays[step % STAGES];\n#pragma",
        "= trays[(step + 1) % STAGES];\n#pragma",
    ),
    "edges taken for the inside": ("k09_asynchronous", "inner && k0 + BK <= K", "inner || k0 + BK <= K"),
    "the elements of the step before": (
        "k11_register_banks",
        "multiply_add(sums, a[i % 2]",
        "multiply_add(sums, a[0]",
    ),
    "a piece stored over the others": ("k12_persistent", "if (whole) store_4", "if (true) store_4"),
    "a piece that ends too late": ("k12_persistent", "first_step + to - from", "steps + to - from"),
}


@pytest.mark.parametrize(("kernel", "right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_a_planted_fault_is_seen(run, kernel, right, wrong):
    text = KERNELS[kernel].SOURCE.read_text()
    assert right in text

    assert caught(run, KERNELS[kernel], text.replace(right, wrong))


def caught(run, module, text):
    """Whether a size shows that a source is wrong: by its numbers, by what it writes, by standing still."""
    for size in ((130, 133, 69), (132, 136, 68)):
        try:
            if not error_of(run, module, size, text=text) <= 1:
                return True
        except (RuntimeError, AssertionError):
            return True
    return False


# --- machine code -----------------------------------------------------------------------------------------------

# Bytes of shared memory that a block may have, by compute capability.
CARDS = {
    (7, 5): 65_536,
    (8, 0): 166_912,
    (8, 6): 101_376,
    (8, 9): 101_376,
    (9, 0): 232_448,
    (10, 0): 232_448,
    (12, 0): 101_376,
}
SHAPES = [(4096, 4096, 4096), (4095, 4095, 4095), (128, 128, 65_536), (129, 129, 65_537), (1, 1, 1)]
# Two blocks on a multiprocessor leave a thread 128 registers. On the card that the ladder was measured on the compiler
# makes do with them; elsewhere a few numbers go out to memory: bytes of stack at most.
SPILLS = {"k05_register_tile": 96}
# What needs an instruction that came with compute capability 8.0.
SINCE_8_0 = {name for name, module in KERNELS.items() if "asynchronous_copy.cuh" in module.SOURCE.read_text()}


def launches(module, capability):
    """What a launcher asks for on a card: {(source, kernel, defines): (threads, most dynamic shared bytes)}."""
    found, loaded = {}, []

    def load_kernel(source, name, defines=None):
        loaded.append((source, name, tuple((defines or {}).items())))
        return loaded[-1]

    def launch(kernel, grid, block, *args, shared_bytes=0):
        threads = block if isinstance(block, int) else block[0] * block[1]
        found[kernel] = (threads, max(shared_bytes, found.get(kernel, (0, 0))[1]))

    card = SimpleNamespace(multi_processor_count=100, name="card", major=capability[0], minor=capability[1])
    for M, N, K in SHAPES:
        a, b = torch.empty(M, K, device="meta"), torch.empty(K, N, device="meta")
        with pytest.MonkeyPatch.context() as patch:
            for launcher in (module, by_tiles):
                patch.setattr(launcher, "load_kernel", load_kernel, raising=False)
                patch.setattr(launcher, "launch", launch, raising=False)
            patch.setattr(module, "places", lambda kernel, threads: BLOCKS, raising=False)
            patch.setattr(torch.Tensor, "data_ptr", lambda x: 256)
            patch.setattr(torch.cuda, "get_device_capability", lambda *device: capability)
            patch.setattr(torch.cuda, "get_device_properties", lambda *device: card)
            patch.setattr(torch.cuda, "current_device", lambda: 0)
            forget(module)
            module.sgemm(a, b)
            forget(module)
    assert set(loaded) == set(found)
    return found


def needed(code, name):
    return code.resources[name]


def spilled(code, name):
    return re.findall(
        r"\b(?:LDL|STL)\b", code.text.split(f".section\t.text.{name},")[1].split(".section\t.text.")[0]
    )


@pytest.mark.parametrize("capability", CARDS, ids=arch_of)
@pytest.mark.parametrize("kernel", KERNELS)
def test_it_compiles_for_the_card_and_nothing_spills(kernel, capability):
    pytest.importorskip("cuda.core")
    if capability < (8, 0) and kernel in SINCE_8_0:
        with pytest.raises(ValueError, match=r"compute capability 8\.0"):
            launches(KERNELS[kernel], capability)
        return
    for (source, name, defines), (threads, shared_bytes) in launches(KERNELS[kernel], capability).items():
        how = source, arch_of(capability), dict(defines)
        registers, stack, static_bytes = seen(needed, *how, name)
        if capability >= (8, 0):
            static_bytes -= min(static_bytes, 1024)  # what the system keeps for itself in each block

        allowed = SPILLS.get(kernel, 0) if capability != (9, 0) else 0
        assert stack <= allowed
        if capability == (9, 0):  # what is spilled needs a stack; that it is told so is seen once
            assert seen(spilled, *how, name) == []
        assert threads <= 1024
        assert 0 < -(-registers // 8) * 8 * threads <= 65_536
        assert static_bytes + shared_bytes <= CARDS[capability]


# --- what launchers refuse ----------------------------------------------------------------------------------------


@pytest.fixture
def on_a_card(monkeypatch):
    """As if there were a card, on which nothing may be launched."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *device: (9, 0))
    for module in (*KERNELS.values(), by_tiles):
        monkeypatch.setattr(module, "load_kernel", lambda *how: pytest.fail("not refused"), raising=False)


@pytest.mark.parametrize("kernel", KERNELS)
def test_launchers_refuse(kernel, on_a_card, monkeypatch):
    sgemm = KERNELS[kernel].sgemm
    a, b = torch.zeros(3, 4), torch.zeros(4, 5)

    def refused(error, message, *inputs):
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            sgemm(*inputs)

    refused(TypeError, "a: expected a torch.Tensor, got list", [1.0], b)
    refused(TypeError, "a: expected float32, got float64", a.double(), b)
    refused(TypeError, "b: expected float32, got bfloat16", a, b.bfloat16())
    refused(ValueError, "b: expected (K, N) with K=4, got (3, 4)", a, a)
    refused(ValueError, "a: expected (M, K) with no empty dimension, got (0, 4)", a[:0], b)
    refused(ValueError, "a: expected (M, K) with no empty dimension, got (4,)", a[0], b)
    refused(ValueError, "b: expected contiguous (K, N), got strides (1, 4)", a, torch.zeros(5, 4).t())
    refused(ValueError, "b: expected a tensor on cpu, got meta", a, b.to("meta"))
    monkeypatch.delenv("TRITON_INTERPRET")
    refused(ValueError, "a: expected a tensor on a GPU, got cpu", a, b)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sizes_past_32_bits_are_refused(kernel, on_a_card):
    long = 2**31 - 1000
    one, tall, wide = (torch.empty(size, device="meta") for size in ((1, 1), (long, 1), (1, long)))

    for letter, inputs in {"N": (one, wide), "M": (tall, one), "K": (wide, tall)}.items():
        with pytest.raises(ValueError, match=rf"expected {letter} <= \d+, got {letter}={long}$"):
            KERNELS[kernel].sgemm(*inputs)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name not in ("k01_naive", "k12_persistent")])
def test_more_rows_of_tiles_than_a_grid_has_are_refused(kernel, on_a_card):
    module = KERNELS[kernel]
    tile = next((getattr(module, name) for name in ("BM", "TILE") if hasattr(module, name)), 0)
    tile = tile or tiles.tiles_here().block[0]
    tall = torch.empty(65_535 * tile + 1, 1, device="meta")

    with pytest.raises(ValueError, match=f"a: expected M <= {65_535 * tile}, got M={65_535 * tile + 1}"):
        module.sgemm(tall, torch.empty(1, 1, device="meta"))
