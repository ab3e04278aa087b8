"""What of the microbenchmarks can be tested without a card: chains, checksums, refusals, and the machine code."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cuda_on_cpu import build
from machine_code import sass

from course_kernels.cuda.compile import compile_cubin
from course_kernels.microbenchmarks import bandwidth, coordinates, latency
from course_kernels.microbenchmarks.checked import WrongAnswer, expect, require_gpu, require_room

pytestmark = pytest.mark.kept

ARCHES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120")
SOURCES = (latency.SOURCE, bandwidth.SOURCE, coordinates.SOURCE)


def code_of(source, kernel):
    """The machine code of one kernel, for a Hopper card."""
    pytest.importorskip("cuda.core")
    return sass(compile_cubin(source, "sm_90a")).partition(f".text.{kernel}:")[2].partition("//----")[0]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_compiles(source, arch):
    pytest.importorskip("cuda.core")
    assert compile_cubin(source, arch)[:4] == b"\x7fELF"


# --- chains -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("footprint", "slot"), [(4096, 4), (4096, 128), (1 << 20, 128), (384, 128), (96, 32)]
)
@pytest.mark.parametrize("rising", [False, True])
def test_a_chain_is_one_cycle_through_every_slot(footprint, slot, rising):
    chain = latency.make_chain(footprint, slot, rising=rising, device="cpu")
    at, seen = int(chain.order[0]), []
    for hop in range(footprint // slot):
        assert at == chain.after(hop)
        seen.append(at)
        at = int(chain.words[at])

    assert at == seen[0]
    assert sorted(seen) == list(range(0, footprint // 4, slot // 4))
    assert (seen == sorted(seen)) == rising or len(seen) < 4
    assert chain.after(3 * len(seen) + 1) == seen[1]


def test_the_order_of_a_chain_follows_its_seed():
    chains = [latency.make_chain(1 << 16, seed=seed, device="cpu").words for seed in (1, 1, 2)]

    assert torch.equal(chains[0], chains[1])
    assert not torch.equal(chains[0], chains[2])


def test_a_chain_of_addresses_leads_the_same_way():
    chain = latency.make_chain(1 << 14, 128, device="cpu")
    addresses = latency._as_addresses(chain)
    at = addresses.data_ptr() + 4 * chain.after(0)
    for hop in range(1, 200):
        at = int(addresses[(at - addresses.data_ptr()) // 8])

        assert (at - addresses.data_ptr()) // 4 == chain.after(hop)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((4096, 3), "slot_bytes: expected a multiple of 4, got 3"),
        ((4096, 0), "slot_bytes: expected a multiple of 4, got 0"),
        ((128, 128), "footprint_bytes: expected two or more slots of 128, at most 17179869184, got 128"),
        ((1000, 128), "footprint_bytes: expected two or more slots of 128, at most 17179869184, got 1000"),
        (
            (2**35, 128),
            "footprint_bytes: expected two or more slots of 128, at most 17179869184, got 34359738368",
        ),
    ],
)
def test_a_chain_that_cannot_be_is_refused(arguments, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        latency.make_chain(*arguments, device="cpu")


def on_the_cpu(function):
    """A function of torch that makes a tensor, whatever device it is asked for."""
    return lambda *args, device=None, **keywords: function(*args, **keywords)


def walked(chain, load="plain", *, warm=5, hops=64, n=3, pointer=False, kernel_after=None):
    """`latency.walk` on the CPU; a walk in Python stands for the kernel, and `kernel_after` may bend where it ends."""
    seen = {}

    def load_kernel(source, name):
        seen["kernel"] = name
        return name

    def launch(kernel, grid, block, *args):
        assert (grid, block) == (1, 1)
        if kernel.endswith("_pointer") and "shared" not in kernel:
            first, warm, hops, n, cycles, last = args
            table = latency._as_addresses.last
            at = (int(first) - table.data_ptr()) // 4
            places = (table - table.data_ptr()).repeat_interleave(2) // 4
        else:
            words, first, warm, hops, n, cycles, last = args[:7]
            at, places = int(first), words
        for _ in range(int(warm) + int(hops) * int(n)):
            at = int(places[at])
        cycles += 640
        at = kernel_after(at) if kernel_after else at
        last[0] = at * 4 + table.data_ptr() if last.dtype is torch.int64 else at

    real = latency._as_addresses

    def remembered(chain):
        remembered.last = real(chain)
        return remembered.last

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "load_kernel", load_kernel)
        patch.setattr(latency, "launch", launch)
        patch.setattr(latency, "_as_addresses", remembered)
        for name in ("zeros", "full"):
            patch.setattr(torch, name, on_the_cpu(getattr(torch, name)))
        return latency.walk(chain, load, warm=warm, hops=hops, n=n, pointer=pointer), seen["kernel"]


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("load", latency.LOADS)
def test_a_walk_ends_where_the_chain_leads(load, pointer):
    chain = latency.make_chain(1 << 14, 128, device="cpu")
    samples, kernel = walked(chain, load, pointer=pointer)

    assert samples == [10.0, 10.0, 10.0]
    assert kernel == f"chase_{load}" + "_pointer" * pointer


def test_a_walk_that_skips_a_load_is_refused():
    chain = latency.make_chain(1 << 14, 128, device="cpu")
    with pytest.raises(
        WrongAnswer, match=r"walk: place after 197 hops: expected \d+, got \d+: the loads that were"
    ):
        walked(chain, kernel_after=lambda at: int(chain.words[at]))


def test_a_chain_with_a_short_cut_is_refused():
    chain = latency.make_chain(1 << 14, 128, device="cpu")
    chain.words[chain.order[3]] = chain.order[1]

    with pytest.raises(WrongAnswer, match="walk: place after 197 hops"):
        walked(chain)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: latency.hop_cycles("l3"), "level: expected one of shared, l1, l2, hbm, got 'l3'"),
        (
            lambda c: latency.walk(c, "cv", warm=0, hops=64, n=1),
            "load: expected one of shared, plain, ca, cg, got",
        ),
        (lambda c: latency.walk(c, "cg", warm=0, hops=64, n=0), "n: expected at least 1, got 0"),
        (
            lambda c: latency.walk(c, "cg", warm=0, hops=65, n=1),
            "hops: expected a multiple of 64, got 65 after 0",
        ),
        (
            lambda c: latency.walk(c, "cg", warm=-1, hops=64, n=1),
            "hops: expected a multiple of 64, got 64 after -1",
        ),
        (lambda c: latency.line_cycles(0), "lines: expected 1 to 131072, got 0"),
        (lambda c: bandwidth.rates("l4"), "level: expected one of shared, l1, l2, got 'l4'"),
        (
            lambda c: bandwidth.rates("l2", 0),
            "n, passes, blocks: expected at least 1, got 0, None, 4",
        ),
        (
            lambda c: bandwidth.rates("l2", footprint_bytes=8),
            "footprint_bytes: expected a multiple of 16",
        ),
    ],
)
def test_arguments_are_refused(call, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call(latency.make_chain(4096, device="cpu"))


def test_without_a_card_one_line_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for call in (require_gpu, lambda: latency.hop_cycles("l1"), lambda: bandwidth.rates("l1")):
        with pytest.raises(RuntimeError, match="no GPU: torch cannot use CUDA on this machine"):
            call()


def test_expect():
    expect("sum", 3, 3)
    with pytest.raises(WrongAnswer, match="sum: expected 3, got 4"):
        expect("sum", 4, 3)


# --- what the machine runs --------------------------------------------------------------------------

LOADS = {
    "chase_shared": r"LDS R\d+",
    "chase_shared_pointer": r"LDS R\d+",
    "chase_plain": r"LDG\.E R\d+",
    "chase_ca": r"LDG\.E\.STRONG\.SM R\d+",
    "chase_cg": r"LDG\.E\.STRONG\.GPU R\d+",
    "chase_plain_pointer": r"LDG\.E\.64 R\d+",
    "chase_ca_pointer": r"LDG\.E\.64\.STRONG\.SM R\d+",
    "chase_cg_pointer": r"LDG\.E\.64\.STRONG\.GPU R\d+",
}


@pytest.mark.parametrize("kernel", LOADS)
def test_a_chase_is_its_loads_between_two_readings_of_the_clock(kernel):
    timed = code_of(latency.SOURCE, kernel).split("SR_CLOCKLO")

    assert len(timed) == 3
    assert len(re.findall(LOADS[kernel], timed[1])) == latency.UNROLL
    assert re.search(
        r"STS", timed[0]
    )  # the place before, and the place after, have arrived when the clock is read
    assert re.search(r"STS", timed[1])
    arithmetic = len(re.findall(r"\b(?:IMAD|LEA|IADD3)\b", timed[1]))
    assert arithmetic <= 8 if kernel.endswith("_pointer") else arithmetic >= latency.UNROLL


@pytest.mark.parametrize(
    ("kernel", "load"),
    [("read_shared", r"LDS\.128"), ("read_l1", r"LDG\.E\.128 "), ("read_l2", r"LDG\.E\.128\.STRONG\.GPU")],
)
def test_a_pass_reads_memory_every_time(kernel, load):
    """The loads stand inside the loop: an assembler that saw the same address twice would read once and add on."""
    timed = code_of(bandwidth.SOURCE, kernel).split("SR_CLOCKLO")[1]
    label = re.findall(r"BRA `\((\.L_x_\d+)\)", timed.partition("BAR")[0])[-1]
    loop = timed.partition(f"{label}:")[2].partition(f"BRA `({label})")[0]

    assert len(re.findall(load, loop)) == bandwidth.UNROLL


# --- sums of what was read --------------------------------------------------------------------------


@pytest.mark.parametrize("level", bandwidth.LEVELS)
@pytest.mark.parametrize("vectors", [4096, 5000])
def test_the_expected_sum_is_that_of_every_load(level, vectors):
    grid, passes, threads, unroll = 2, 3, bandwidth.THREADS, bandwidth.UNROLL
    if level != "l2":
        vectors = threads * unroll * (grid if level == "l1" else 1)
    words = torch.randint(-(2**31), 2**31, (4 * vectors,), dtype=torch.int32)
    of_vector = words.view(-1, 4).sum(1, dtype=torch.int64)
    total = 0
    for block in range(grid):
        for thread in range(threads):
            for load in range(passes * unroll):
                at = {
                    "shared": load % unroll * threads + thread,
                    "l1": block * unroll * threads + load % unroll * threads + thread,
                    "l2": (block * threads + thread + load * grid * threads) % vectors,
                }[level]
                total += int(of_vector[at])

    assert bandwidth.expected_total(level, words, grid, passes) == total % 2**32
    assert bandwidth.expected_total(level, words, grid, passes - 1) != total % 2**32


@pytest.mark.parametrize("grid", [132 * 4, 8])
@pytest.mark.parametrize("footprint", [2**16, 2**24, 2**27, 2**32])
def test_every_size_is_read_at_least_twice_round(footprint, grid):
    passes = bandwidth.passes_of("l2", footprint, grid)

    assert passes >= bandwidth.PASSES["l2"]
    assert passes * grid * bandwidth.BLOCK_BYTES >= 2 * footprint
    assert bandwidth.passes_of("l1", footprint, grid) == bandwidth.PASSES["l1"]


def test_what_limits_a_reading_follows_its_size(monkeypatch):
    class Card:
        L2_cache_size = 60 * 2**20

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)

    sizes = (2**24, 60 * 2**20, 2**26, 2**31, 2**32)
    assert [bandwidth.limited_by(size) for size in sizes] == ["l2", "l2", "hbm:64", "hbm:2048", "hbm"]


def reading(grid, passes, total, *, places=None, late=0, took=1000):
    """A launch in which every block took 1000 cycles at 2 GHz; the last one began `late` nanoseconds after the rest."""
    began = torch.full((grid,), 10_000, dtype=torch.int64)
    began[-1] += late
    times = torch.stack([torch.full_like(began, 2 * took), began, began + took], 1)
    places = torch.arange(grid, dtype=torch.int32) % 4 if places is None else places
    return bandwidth.Reading(times, places, total % 2**32, bandwidth.BLOCK_BYTES * passes)


def test_the_time_of_a_reading_is_from_the_first_start_to_the_last_end():
    found = reading(8, 1, 0, late=250)

    assert found.nanoseconds == 1250
    assert found.sm_mhz == pytest.approx(2000)


def faked_rates(monkeypatch, level, *, off=0, crowded=False, **how):
    class Card:
        multi_processor_count = 4
        L2_cache_size = 2**20

    def read(level, words, grid, passes):
        total = bandwidth.expected_total(level, words, grid, passes) + off
        places = torch.arange(grid, dtype=torch.int32) % 3 if crowded else None
        return reading(grid, passes, total, places=places, **how)

    monkeypatch.setattr(bandwidth, "require_gpu", lambda: None)
    monkeypatch.setattr(bandwidth, "warm_up_and_empty_l2", lambda: None)
    monkeypatch.setattr(bandwidth, "read", read)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch, "randint", on_the_cpu(torch.randint))
    return bandwidth.rates(level, 2, passes=2)


@pytest.mark.parametrize(
    ("level", "blocks", "of_each_clock"), [("shared", 4, 1), ("l1", 4, 1), ("l2", 16, 16)]
)
def test_rates(monkeypatch, level, blocks, of_each_clock):
    found = faked_rates(monkeypatch, level)
    block_bytes = 2 * bandwidth.BLOCK_BYTES

    assert found.sm_mhz == pytest.approx([2000, 2000])
    assert found.gb_per_s == pytest.approx([blocks * block_bytes / 1000] * 2)
    assert found.bytes_per_clock == pytest.approx([of_each_clock * block_bytes / 2000] * 2)


def test_bytes_in_a_clock_and_in_a_second_are_of_the_same_time(monkeypatch):
    found = faked_rates(monkeypatch, "l2", late=500)

    assert found.gb_per_s == pytest.approx([16 * 2 * bandwidth.BLOCK_BYTES / 1500] * 2)
    assert found.bytes_per_clock == pytest.approx(
        [1e3 * g / mhz for g, mhz in zip(found.gb_per_s, found.sm_mhz, strict=True)]
    )


@pytest.mark.parametrize("level", bandwidth.LEVELS)
def test_a_wrong_sum_is_refused(monkeypatch, level):
    with pytest.raises(WrongAnswer, match=f"bandwidth of {level}: sum of all words read: expected"):
        faked_rates(monkeypatch, level, off=1)


@pytest.mark.parametrize("level", bandwidth.LEVELS)
def test_a_crowded_multiprocessor_is_refused(monkeypatch, level):
    with pytest.raises(
        WrongAnswer, match=r"multiprocessor 0 ran \d blocks, expected \d: is something else running"
    ):
        faked_rates(monkeypatch, level, crowded=True)


def test_a_timer_that_stands_still_is_refused(monkeypatch):
    with pytest.raises(
        WrongAnswer, match="bandwidth of l2: block 0 took 0 ns by the card's timer: it stands"
    ):
        faked_rates(monkeypatch, "l2", took=0)


def test_blocks_that_cannot_all_be_there_are_refused(monkeypatch):
    class Card:
        multi_processor_count = 132

    kernel = SimpleNamespace(
        occupancy=SimpleNamespace(max_active_blocks_per_multiprocessor=lambda threads, shared: 4)
    )

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Card)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    require_room(kernel, 528, 512)

    with pytest.raises(
        ValueError, match="grid: at most 528 blocks of 512 threads fit on this card at once, got 529"
    ):
        require_room(kernel, 529, 512)


# --- the kernels of the bandwidth, thread by thread -------------------------------------------------

# A load is a tick of the clocks, so that what was read when can be told afterwards.
LOAD = re.compile(r"asm volatile\(\"ld\.[^;]+;\"\s*: [^;]+;")
ON_THE_CPU = """
#define __cvta_generic_to_shared(p) (reinterpret_cast<const char *>(p) - fibers::dynamic_shared)
template <class T> inline uint4 read_at(T address) {
  ticks++;
  if constexpr (std::is_pointer_v<T>) return *address;
  else return *reinterpret_cast<const uint4 *>(fibers::dynamic_shared + static_cast<int>(address));
}
"""


@pytest.fixture(scope="module")
def block_by_block(tmp_path_factory):
    """Launch a reading kernel on the CPU: its times, its sum, how many blocks arrived."""

    def launch(level, words, grid, passes, change=("", "")):
        text = bandwidth.SOURCE.read_text()
        assert change[0] in text
        text = text.replace(*change)
        assert len(LOAD.findall(text)) == 3
        text = LOAD.sub("v = read_at(address);", text)
        text = text.replace(
            '#include "whole_grid.cuh"', '#include <type_traits>\n#include "whole_grid.cuh"' + ON_THE_CPU
        )
        kernel = build(tmp_path_factory.mktemp("bandwidth"), bandwidth.SOURCE, f"read_{level}", text=text)
        times = torch.zeros((grid, 3), dtype=torch.int64)
        sums = torch.zeros(grid * bandwidth.THREADS, dtype=torch.int32)
        places, arrived = torch.full((grid,), -1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        how = np.uint32(words.numel() // 4) if level == "l2" else np.int32(0)
        kernel(grid, bandwidth.THREADS, words, how, np.int32(passes), times, sums, places, arrived)
        return times, int(sums.sum(dtype=torch.int64)) % 2**32, places, int(arrived)

    return launch


def words_for(level, grid):
    vectors = {"shared": 1, "l1": grid, "l2": 3}[level] * bandwidth.THREADS * bandwidth.UNROLL
    return torch.randint(-(2**31), 2**31, (4 * (vectors + (7 if level == "l2" else 0)),), dtype=torch.int32)


@pytest.mark.parametrize("level", bandwidth.LEVELS)
def test_the_kernel_reads_what_the_truth_counts(block_by_block, level):
    grid, passes = 3, 2
    words = words_for(level, grid)
    times, total, places, arrived = block_by_block(level, words, grid, passes)

    assert total == bandwidth.expected_total(level, words, grid, passes)
    assert places.tolist() == [0, 1, 2]
    assert arrived == grid
    assert (times[:, 2] > times[:, 1]).all()


def warm_loads(level, words, grid):
    """Loads before the clocks may start; shared memory is filled by plain stores."""
    return {"shared": 0, "l1": words.numel() // 4, "l2": words.numel() // 4}[level]


@pytest.mark.parametrize("level", ["l1", "l2"])
def test_no_block_starts_before_the_last_one_is_warm(block_by_block, level):
    grid = 3
    words = words_for(level, grid)
    times, *_ = block_by_block(level, words, grid, 2)
    assert int(times[:, 1].min()) > warm_loads(level, words, grid)

    # Without the place where the blocks meet, the first starts while the others have not begun to warm.
    alone = ("all_blocks_meet(told.arrived)", "nanoseconds_now()")
    times, *_ = block_by_block(level, words, grid, 2, alone)
    assert int(times[:, 1].min()) < warm_loads(level, words, grid)


@pytest.mark.parametrize("level", bandwidth.LEVELS)
def test_every_timed_load_lies_between_the_first_start_and_the_last_end(block_by_block, level):
    grid, passes = 2, 2
    words = words_for(level, grid)
    times, *_ = block_by_block(level, words, grid, passes)
    timed = grid * passes * bandwidth.THREADS * bandwidth.UNROLL

    assert int(times[:, 2].max() - times[:, 1].min()) >= timed


# --- coordinates ------------------------------------------------------------------------------------

REGISTERS = {
    'asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));': "lane = fibers::current % 32;",
    'asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));': "sm = (blockIdx.x + 2 * blockIdx.y) % 7;",
}


@pytest.fixture(scope="module")
def locate(tmp_path_factory):
    def locate(grid, block, change=("", "")):
        text = coordinates.SOURCE.read_text().replace(*change)
        for register, stand_in in REGISTERS.items():
            assert text.count(register) == 1
            text = text.replace(register, stand_in)
        kernel = build(tmp_path_factory.mktemp("coordinates"), coordinates.SOURCE, "coordinates", text=text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coordinates, "require_gpu", lambda: None)
            patch.setattr(coordinates, "load_kernel", lambda source, name: kernel)
            patch.setattr(
                coordinates, "launch", lambda kernel, grid, block, *args: kernel(grid, block, *args)
            )
            patch.setattr(torch, "full", on_the_cpu(torch.full))
            return coordinates.coordinates(grid, block)

    return locate


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (6, 40), ((3, 2), (8, 8)), ((2, 3, 2), (4, 3, 5))])
def test_every_thread_says_who_it_is(locate, grid, block):
    found = locate(grid, block)
    (gx, gy, gz), (bx, by, bz) = [
        (*s, 1, 1)[:3] if isinstance(s, tuple) else (s, 1, 1) for s in (grid, block)
    ]
    blocks = [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
    threads = [(x, y, z) for z in range(bz) for y in range(by) for x in range(bx)]

    assert found.block.tolist() == [list(b) for b in blocks for _ in threads]
    assert found.thread.tolist() == [list(t) for _ in blocks for t in threads]
    assert found.warp.tolist() == [i // 32 for _ in blocks for i in range(len(threads))]
    assert found.lane.tolist() == [i % 32 for _ in blocks for i in range(len(threads))]
    assert found.sm.tolist() == [(x + 2 * y) % 7 for x, y, _ in blocks for _ in threads]


@pytest.mark.parametrize(
    "change",
    [
        ("threadIdx.z * blockDim.y", "(4 - threadIdx.z) * blockDim.y"),
        ("row[7] = lane_id()", "row[7] = 0"),
        ("row[8] = multiprocessor_id()", "row[8] = -1"),
    ],
)
def test_a_thread_that_does_not_answer_as_itself_is_refused(locate, change):
    with pytest.raises(
        WrongAnswer, match=r"coordinates: row \d+: expected \[.*\] and a multiprocessor, got \["
    ):
        locate((2, 2), (4, 3, 5), change)


@pytest.mark.parametrize(
    ("grid", "block", "error", "said"),
    [
        (2.0, 32, TypeError, "grid: expected whole numbers, got 2.0"),
        (2, (), ValueError, "block: expected one to three sizes, got ()"),
        ((1, 1, 1, 1), 32, ValueError, "grid: expected one to three sizes, got (1, 1, 1, 1)"),
        (2, (4, 4, 128), ValueError, "block: expected sizes from 1 to (1024, 1024, 64), got (4, 4, 128)"),
        (0, 32, ValueError, "grid: expected sizes from 1 to"),
        (2, (64, 64), ValueError, "block: expected at most 1024 threads, got 4096"),
        (2**20, 1024, ValueError, "grid: expected at most 16777216 threads in all, got 1073741824"),
    ],
)
def test_a_launch_that_cannot_be_is_refused(grid, block, error, said):
    with pytest.raises(error, match=re.escape(said)):
        coordinates.coordinates(grid, block)


def test_coordinates_are_checked_row_by_row():
    rows = np.zeros((4, 9), dtype=np.int32)
    with pytest.raises(WrongAnswer, match="row 1: expected"):
        coordinates.checked(rows, (1, 1, 1), (4, 1, 1))
