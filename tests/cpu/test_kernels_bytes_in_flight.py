"""The copy that is held down: right on the CPU, the right number of loads in its machine code, room for R blocks."""

import re
from math import nan
from types import SimpleNamespace

import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass, stacks

from course_kernels.bytes_in_flight import k01_limited
from course_kernels.bytes_in_flight.problem import (
    PROBLEM,
    RESIDENT,
    THREADS,
    VECTORS,
    bytes_per_multiprocessor,
)
from course_kernels.cuda.compile import CompileError, compile_cubin
from course_kernels.problem import Workload

pytestmark = pytest.mark.kept

# Bytes of shared memory: of a multiprocessor, at most of a block, kept back in each block.
CARDS = {
    "sm_75": (65_536, 65_536, 0),
    "sm_80": (167_936, 166_912, 1024),
    "sm_86": (102_400, 101_376, 1024),
    "sm_90": (233_472, 232_448, 1024),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(x, V, R, text=...) -> the copy on a card with one multiprocessor, its memory full of NaN before."""
    built = {}

    def run(x, V, R, text=None):
        def load_kernel(source, name, defines=None):
            if (V, text) not in built:
                built[V, text] = build(tmp_path_factory.mktemp(f"v{V}"), source, name, defines, text)
            return built[V, text]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(k01_limited, "load_kernel", load_kernel)
            patch.setattr(k01_limited, "launch", lambda kernel, *how, shared_bytes: kernel(*how))
            patch.setattr(
                k01_limited, "limits", lambda V, R: {"shared_bytes": 0, "blocks": R, "multiprocessors": 1}
            )
            patch.setattr(torch, "empty_like", lambda x: torch.full_like(x, nan))
            return k01_limited.bytes_in_flight(x, vectors=V, resident=R)

    return run


@pytest.mark.parametrize("R", [1, 3])
@pytest.mark.parametrize("V", VECTORS)
@pytest.mark.parametrize("N", [1, 3, 1000, 8192, 20_011, 100_003])
def test_the_copy_is_exact(run, N, V, R):
    x = torch.randn(N, generator=torch.Generator().manual_seed(N))

    assert torch.equal(run(x, V, R), x)


FAULTS = {
    "the last stride is left out": ("for (; i < n_vectors; i += THREADS)", "if (false)"),
    "the tail is left out": ("tail < N)", "tail < N && false)"),
    "blocks step on each other's toes": ("i += stride)", "i += stride + THREADS)"),
}


@pytest.mark.parametrize(("right", "wrong"), FAULTS.values(), ids=FAULTS)
def test_planted_fault_is_seen(run, right, wrong):
    text = k01_limited.SOURCE.read_text()
    assert text.count(right) == 1
    x = torch.randn(20_011, generator=torch.Generator().manual_seed(0))

    assert not torch.equal(run(x, 4, 2, text=text.replace(right, wrong)), x)


@pytest.mark.parametrize("V", VECTORS)
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100a"])
def test_nothing_spills(V, arch):
    pytest.importorskip("cuda.core")

    assert not any(stacks(compile_cubin(k01_limited.SOURCE, arch, {"VECTORS": V})))


@pytest.mark.parametrize("V", VECTORS)
def test_a_thread_has_as_many_vectors_under_way_as_it_says(V):
    pytest.importorskip("cuda.core")
    code = sass(compile_cubin(k01_limited.SOURCE, "sm_90a", {"VECTORS": V}))
    order = re.findall(r"\b(?:LDG|STG)\.E\.128", code)

    assert order[: 2 * V] == V * ["LDG.E.128"] + V * ["STG.E.128"]


def test_without_vectors_the_compiler_says_what_to_do():
    pytest.importorskip("cuda.core")
    with pytest.raises(CompileError, match="compile with -D VECTORS=1, 2, 4 or 8"):
        compile_cubin(k01_limited.SOURCE, "sm_90a")


@pytest.mark.parametrize("resident", RESIDENT)
@pytest.mark.parametrize("card", CARDS)
def test_shared_memory_lets_in_so_many_blocks_and_no_more(card, resident):
    of_multiprocessor, most, reserved = CARDS[card]
    shared = k01_limited.shared_bytes(resident, of_multiprocessor, most, reserved)

    assert 0 < shared <= most
    assert of_multiprocessor // (shared + reserved) == resident


def test_occupancy_is_what_the_driver_says(monkeypatch):
    asked = []

    def most_blocks(threads, shared):
        asked.append((threads, shared))
        return 5  # the registers of eight vectors

    card = SimpleNamespace(
        max_shared_memory_per_block_optin=232_448,
        max_shared_memory_per_multiprocessor=233_472,
        reserved_shared_memory_per_block=1024,
        multiprocessor_count=132,
        max_threads_per_multiprocessor=2048,
    )
    core = pytest.importorskip("cuda.core")
    monkeypatch.setattr(core, "Device", lambda n: SimpleNamespace(properties=card, set_current=lambda: None))
    kernel = SimpleNamespace(occupancy=SimpleNamespace(max_active_blocks_per_multiprocessor=most_blocks))
    monkeypatch.setattr(k01_limited, "load_kernel", lambda *how: kernel)
    allowed = []
    monkeypatch.setattr(k01_limited, "allow_shared_memory", lambda *how, **more: allowed.append((*how, more)))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    k01_limited._limits.cache_clear()
    try:
        assert k01_limited.occupancy(8, 8) == 5 * 256 / 2048
    finally:
        k01_limited._limits.cache_clear()
    assert asked == [(256, 28_160)]
    assert allowed == [(kernel, 232_448, {"carveout": 100})]


def test_the_launcher_refuses():
    x = torch.zeros(8)
    with pytest.raises(ValueError, match=re.escape("vectors: expected one of 1, 2, 4, 8, got 3")):
        k01_limited.bytes_in_flight(x, vectors=3, resident=1)
    with pytest.raises(
        ValueError, match=re.escape("resident: expected one of 1, 2, 3, 4, 5, 6, 7, 8, got 9")
    ):
        k01_limited.bytes_in_flight(x, vectors=1, resident=9)
    with pytest.raises(ValueError, match=re.escape("resident: expected")):
        k01_limited.occupancy(1, 0)
    with pytest.raises(TypeError, match=re.escape("x: expected float32, got float16")):
        k01_limited.bytes_in_flight(x.half(), vectors=1, resident=1)
    with pytest.raises(ValueError, match=re.escape("x: expected an address divisible by 16")):
        k01_limited.bytes_in_flight(torch.zeros(9)[1:], vectors=1, resident=1)


def test_bytes_under_way():
    w = Workload.of("float32", N=1 << 28, V=4, R=4)

    assert bytes_per_multiprocessor(w) == 4 * 256 * 4 * 16
    assert PROBLEM.options(w) == {"vectors": 4, "resident": 4}
    assert f"constexpr int THREADS = {THREADS};" in k01_limited.SOURCE.read_text()
