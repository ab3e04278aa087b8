"""Measure which tile of k06_wgmma is the fastest on this card, by length and mask.

python -m course_kernels.tune_attention 128 64

Each candidate is checked before it is timed, all in turns, as on a page. What is best goes into `tile_for` by hand: a
rule that chose for itself would be another one on every card, and a page could not say what it ran.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch

from course_kernels.attention import library
from course_kernels.attention.k06_wgmma import Tile, attend, tile_for
from course_kernels.measure import compare
from course_kernels.measure.derive import derive
from course_kernels.measure.machine import machine_for
from course_kernels.measure.provenance import provenance
from course_kernels.problem import Workload

LENGTHS = (1024, 4096, 16384)

# What fits into registers and shared memory, and compiles without spilling more than a word or two.
CANDIDATES = {
    128: (
        Tile(2, 128, 2),
        Tile(2, 128, 2, turns=False),
        Tile(2, 128, 2, by_hand=1),
        Tile(2, 128, 2, asks=False),
        Tile(2, 128, 2, cluster=2),
        Tile(2, 144, 2, own_place=False),
        Tile(2, 160, 2, own_place=False),
        Tile(2, 176, 2, own_place=False),
        Tile(2, 176, 2, own_place=False, asks=False),
    ),
    64: (
        Tile(3, 128, 4),
        Tile(3, 128, 4, by_hand=1),
        Tile(3, 128, 4, by_hand=2),
        Tile(3, 128, 4, by_hand=4),
        Tile(3, 128, 4, asks=False),
        Tile(3, 128, 4, cluster=2),
        Tile(3, 112, 4, by_hand=2),
        # Rows of 1024 in whole blocks.
        Tile(2, 128, 4),
        Tile(2, 128, 4, by_hand=2),
        Tile(2, 160, 3),
        Tile(4, 64, 4),
        Tile(4, 64, 4, by_hand=2),
    ),
}


def name_of(tile: Tile) -> str:
    """Return its sizes, and the switches that do not stand as usual: "2 x 128, 2 stages, cluster=2"."""
    usual = Tile(tile.consumers, tile.block_n, tile.stages)
    names = ("overlap", "turns", "slack", "by_hand", "order", "asks", "cluster", "own_place")
    turned = [f"{n}={getattr(tile, n)}" for n in names if getattr(tile, n) != getattr(usual, n)]
    return ", ".join((f"{tile.consumers} x {tile.block_n}", f"{tile.stages} stages", *turned))


def with_tile(tile: Tile) -> Callable[..., torch.Tensor]:
    """Return a kernel of the problem that uses this tile."""

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False) -> torch.Tensor:
        return attend(q, k, v, causal=causal, tile=tile)[0]

    return attention


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for every length and mask, the fastest first."""
    parser = argparse.ArgumentParser(
        prog="python -m course_kernels.tune_attention", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("D", nargs="*", type=int, default=list(CANDIDATES), choices=list(CANDIDATES))
    parser.add_argument("--seconds", type=float, default=0.1, help="time to sample for each tile")
    given = parser.parse_args(arguments)
    machine = machine_for(str(provenance()["gpu"]))
    for D in given.D:
        field = {name_of(tile): with_tile(tile) for tile in CANDIDATES[D]}
        for N in LENGTHS:
            for causal in (False, True):
                w = Workload.of("bfloat16", B=16384 // N, H=2048 // D, N=N, D=D, causal=causal)
                found = compare({**field, "SDPA cuDNN": library.sdpa_cudnn}, w, seconds=given.seconds)
                rates = {name: derive(measured, "tflops", None, machine) for name, measured in found.items()}
                in_use = name_of(tile_for(D, N))
                print(w.label)
                for name, rate in sorted(rates.items(), key=lambda pair: -(pair[1] or 0)):
                    mark = "  (in use)" if name == in_use else ""
                    print(f"  {rate or 0:6.0f} TFLOP/s  {name}{mark}", flush=True)


if __name__ == "__main__":
    main()
