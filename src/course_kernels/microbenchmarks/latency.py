"""Latency of every level of memory, in cycles of the multiprocessor's own clock: a walk along a chain of places.

Contract  each function walks a chain that is one cycle, looks where the walk ended, and refuses a wrong end
Idea      read latency.cu first
Limits    a hop is `i = x[i]`: the load and the address arithmetic; with pointer=True the load alone. Published figures
          are of either kind, so say which you mean. The two readings of the clock are not subtracted:
          `clock_cycles()` tells what they cost, shared by all hops of a sample
Found     on an H200. The arithmetic costs a few cycles at every level. A plain load and one that asks for L1 by
          name take the same time. An L2 chase is flat up to half of the cache and rises past it, before the whole
          is full. An HBM chase is the same at random and in rising order, except where two places share 64 bytes:
          the second then came along with the first. Past L2, the footprint hardly matters up to some GiB
Source    Luo et al. 2024, arXiv:2402.13499; Luo et al. 2025, arXiv:2501.12084
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from course_kernels.cuda.launch import launch, load_kernel
from course_kernels.microbenchmarks.checked import expect, require_gpu, warm_up_and_empty_l2

SOURCE = Path(__file__).with_suffix(".cu")
UNROLL = 64  # as in latency.cu: hops come in multiples of it
LINE_BYTES = 128
# "plain" is what x[i] compiles to; "ca" asks for L1 by name, "cg" passes it by.
LOADS = ("shared", "plain", "ca", "cg")
LONGEST_LAP = 2**19  # hops with which a level is warmed before the clock is read

KIB, MIB = 2**10, 2**20


@dataclass(frozen=True)
class Level:
    """Settings that reach one level.

    Attributes:
        footprint_bytes: what the chain spans. L1: well inside the smallest L1. L2: far past L1, well inside one half
            of the L2 cache. HBM: well past L2, yet made in a moment.
        load: the kernel, one of `LOADS`.
        warm: whether a whole lap runs before the clock is read; without it every line is met for the first time.
        hops: loads of one sample.
    """

    footprint_bytes: int
    load: str
    warm: bool
    hops: int


LEVELS = {
    "shared": Level(8 * KIB, "shared", True, 2048),
    "l1": Level(8 * KIB, "plain", True, 2048),
    "l2": Level(2 * MIB, "cg", True, 2048),
    "hbm": Level(256 * MIB, "cg", False, 2048),
}


@dataclass(frozen=True)
class Chain:
    """A cycle through places: `words[order[k]] == order[k + 1]`, and the last leads back to the first.

    Attributes:
        words: (footprint_bytes // 4,) int32, of which one word in every slot is part of the chain. Indices past
            2**31 are stored as the int32 with the same bits.
        order: (slots,) int64, the word index of every place in the order of the walk.
    """

    words: torch.Tensor
    order: torch.Tensor

    def after(self, hops: int) -> int:
        """Return the word index where a walk of so many hops from `order[0]` ends."""
        return int(self.order[hops % self.order.numel()])


def make_chain(
    footprint_bytes: int,
    slot_bytes: int = LINE_BYTES,
    *,
    rising: bool = False,
    seed: int = 0,
    device: str = "cuda",
) -> Chain:
    """Return one cycle through every slot of a footprint, in random order, or in rising order.

    Args:
        footprint_bytes: the span of the chain; up to 16 GiB, since places are 32-bit word indices.
        slot_bytes: one place in every slot: 128 for one in every line of the cache.
        rising: slot after slot instead of at random; a card that fetches ahead, or more than was asked for, shows.
        seed: of the random order.
        device: where the chain lies.
    Raises:
        ValueError: slots that are no multiple of 4 bytes, do not fill the footprint, or are fewer than two.
    """
    if slot_bytes < 4 or slot_bytes % 4:
        raise ValueError(f"slot_bytes: expected a multiple of 4, got {slot_bytes}")
    slots = footprint_bytes // slot_bytes
    if footprint_bytes % slot_bytes or slots < 2 or footprint_bytes > 2**34:
        raise ValueError(
            f"footprint_bytes: expected two or more slots of {slot_bytes}, at most {2**34}, got {footprint_bytes}"
        )
    if rising:
        order = torch.arange(slots, device=device)
    else:
        order = torch.randperm(slots, generator=torch.Generator(device).manual_seed(seed), device=device)
    order *= slot_bytes // 4
    words = torch.zeros(footprint_bytes // 4, dtype=torch.int32, device=device)
    words[order] = order.roll(-1).to(torch.int32)  # wraps past 2**31: the same bits
    return Chain(words, order)


def hop_cycles(level: str, n: int = 20, *, pointer: bool = False) -> list[float]:
    """Cycles of one dependent load from one level of memory.

    Args:
        level: "shared", "l1", "l2" (lines at random, each read before) or "hbm".
        n: samples; each is the mean over a walk of some thousand hops.
        pointer: the chain holds addresses, and a hop is the load alone, 8 bytes (4 in shared memory). Otherwise it is
            `i = x[i]`: what a program with an index pays.
    Returns:
        n numbers of cycles.
    Raises:
        ValueError: an unknown level, or n below 1.
        WrongAnswer: the walk ended in the wrong place.
    """
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    how = LEVELS[level]
    slot_bytes = 4 if how.load == "shared" else LINE_BYTES
    require_gpu()
    chain = make_chain(how.footprint_bytes, slot_bytes)
    warm_up_and_empty_l2()
    warm = chain.order.numel() if how.warm else 0
    return walk(chain, how.load, warm=warm, hops=how.hops, n=n, pointer=pointer, what=f"latency of {level}")


def chase(
    footprint_bytes: int,
    n: int = 20,
    *,
    load: str = "plain",
    slot_bytes: int = LINE_BYTES,
    rising: bool = False,
) -> list[float]:
    """Cycles of one dependent load somewhere in a footprint: swept over sizes, the stairs of the memory.

    A hop is `i = x[i]`. The chain meets every line of the footprint in random order. It is warm: the thread has
    walked a lap, or half a million hops of a longer one. So past a cache's size the mean is a mixture of hits and
    misses. At the largest sizes the address translation may miss too; nothing here tells it from the memory behind it.

    Args:
        footprint_bytes: the size; some KiB to 16 GiB, a multiple of slot_bytes.
        n: samples, each the mean over 2048 hops.
        load: "plain" or "ca" (may stay in L1), or "cg" (never does).
        slot_bytes, rising: see `make_chain`.
    Returns:
        n numbers of cycles.
    Raises:
        ValueError: see `make_chain`; an unknown load; n below 1.
        WrongAnswer: the walk ended in the wrong place.
    """
    require_gpu()
    chain = make_chain(footprint_bytes, slot_bytes, rising=rising)
    warm_up_and_empty_l2()
    warm = min(chain.order.numel(), LONGEST_LAP)
    return walk(chain, load, warm=warm, hops=2048, n=n, what=f"chase over {footprint_bytes} bytes")


def line_cycles(lines: int = 512, footprint_bytes: int = 16 * MIB) -> list[float]:
    """Cycles of an L2 hit, line by line, as one multiprocessor sees them.

    Some lines are nearer than others. On an H200 they fall into two groups with a gap between, of about as many lines
    each; but all are read again and again here, and a line whose home is the far half of the cache may by then have a
    copy in the near one. So do not take the groups for the halves.

    Args:
        lines: how many lines, at random places of the footprint.
        footprint_bytes: where they lie.
    Returns:
        one number of cycles for every line, in the order of their addresses; each is the mean over 256 hits.
    Raises:
        ValueError: fewer than 1 line, or more than the footprint has.
        WrongAnswer: a walk left its line.
    """
    there = footprint_bytes // LINE_BYTES
    if not 1 <= lines <= there:
        raise ValueError(f"lines: expected 1 to {there}, got {lines}")
    require_gpu()
    picked = torch.randperm(there, generator=torch.Generator("cuda").manual_seed(0), device="cuda")[:lines]
    places = picked.sort().values.mul(LINE_BYTES // 4).to(torch.int32)
    words = torch.full((footprint_bytes // 4,), -1, dtype=torch.int32, device="cuda")
    words[places.long()] = places  # each names itself
    warm_up_and_empty_l2()
    hops = 256
    cycles = torch.zeros(lines, dtype=torch.int64, device="cuda")
    last = torch.full((lines,), -1, dtype=torch.int32, device="cuda")
    kernel = load_kernel(SOURCE, "chase_lines")
    launch(kernel, 1, 1, words, places, np.int32(lines), np.int32(hops), cycles, last)
    expect("latency of lines: walks that stayed on their line", int((last == places).sum()), lines)
    return [cycle / hops for cycle in cycles.tolist()]


def clock_cycles(n: int = 20) -> list[float]:
    """Cycles between two readings of the clock with nothing between them: in every sample, shared by all its hops."""
    require_gpu()
    chain = make_chain(8 * KIB)
    warm_up_and_empty_l2()
    return walk(chain, "plain", warm=UNROLL, hops=0, n=n, what="two readings of the clock")


def walk(
    chain: Chain, load: str, *, warm: int, hops: int, n: int, pointer: bool = False, what: str = "walk"
) -> list[float]:
    """Walk a chain with one thread and time it.

    Args:
        chain: where to go.
        load: one of `LOADS`.
        warm: hops before the clock is read for the first time.
        hops: hops of one sample, a multiple of 64; 0 times the readings of the clock alone.
        n: samples, one after the other along the chain.
        pointer: turn the places into addresses first.
        what: how an error names this walk.
    Returns:
        n numbers: cycles of a sample over its hops (over 1 where there are none).
    Raises:
        ValueError: an unknown load, n below 1, hops that are no multiple of 64.
        WrongAnswer: the walk did not end where the chain leads.
    """
    if load not in LOADS:
        raise ValueError(f"load: expected one of {', '.join(LOADS)}, got {load!r}")
    if n < 1:
        raise ValueError(f"n: expected at least 1, got {n}")
    if hops % UNROLL or hops < 0 or warm < 0:
        raise ValueError(f"hops: expected a multiple of {UNROLL}, got {hops} after {warm}")
    cycles = torch.zeros(n, dtype=torch.int64, device="cuda")
    counts = (np.int64(warm), np.int32(hops), np.int32(n), cycles)
    first = int(chain.order[0])
    kernel = load_kernel(SOURCE, f"chase_{load}{'_pointer' * pointer}")
    if pointer and load != "shared":
        addresses = _as_addresses(chain)
        base = addresses.data_ptr()
        last = torch.zeros(1, dtype=torch.int64, device="cuda")
        launch(kernel, 1, 1, np.uint64(base + 4 * first), *counts, last)
        end = (int(last) - base) // 4
    else:
        last = torch.full((1,), -1, dtype=torch.int32, device="cuda")
        args = (np.int32(chain.words.numel()),) if load == "shared" else ()
        launch(kernel, 1, 1, chain.words, np.uint32(first), *counts, last, *args)
        end = int(last) % 2**32
    expect(f"{what}: place after {warm + n * hops} hops", end, chain.after(warm + n * hops))
    return [cycle / max(hops, 1) for cycle in cycles.tolist()]


def _as_addresses(chain: Chain) -> torch.Tensor:
    """Return the same chain with 8-byte addresses for word indices; a slot must hold 8 bytes."""
    addresses = torch.zeros(chain.words.numel() // 2, dtype=torch.int64, device=chain.words.device)
    addresses[chain.order // 2] = chain.order.roll(-1) * 4 + addresses.data_ptr()
    return addresses
