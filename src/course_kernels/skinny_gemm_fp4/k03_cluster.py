"""NVFP4 weights, kernel 3: the launcher of k03_cluster.cu. Read that file first.

Contract  problem.py, M <= 16, K <= 32768
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import torch

from course_kernels.arguments import check_size
from course_kernels.cuda.hopper_card import is_hopper
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.problem import Workload
from course_kernels.skinny_gemm_fp4.arguments import sizes_of
from course_kernels.skinny_gemm_fp4.layout import GROUP, TILE_N

SOURCE = Path(__file__).with_suffix(".cu")
MOST_ROWS = 16
MOST_COLUMNS = 32768
GROUP_BYTES = 1024 + 128  # of 16 rows, and their scales
MOST_BLOCKS = 8  # of a cluster, on every card that has clusters
HELD = 4  # groups of K whose x a warp keeps: 64 registers for 8 rows of x
# The lanes of a multiprocessor share 65536 registers. With 16 rows x alone takes 128 of a lane.
WARPS = {1: 16, 2: 8}
STAGES = 2
SLOTS = 2  # as in the .cu
SHARED_BYTES = 227 * 1024  # that a block may ask for
TOGETHER = 16  # multiprocessors that a cluster can count on: a card has them in groups of 16 or 18


class Cut(NamedTuple):
    """Partition of the work.

    Attributes:
        clusters: all of them on the card at once.
        blocks: of a cluster, along K.
        groups: of 128 columns, of a block.
        held: of these, of a warp.
        teams: of a block, each with tiles of its own; the warps of a team share the groups of the block.
        stages: tiles that a warp copies ahead.
        tiles: of a team, after which the cluster meets.
        bulk: who copies weights: 2, the copy engine; 1, but lanes their scales; 0, lanes.
    """

    clusters: int
    blocks: int
    groups: int
    held: int
    teams: int
    stages: int
    tiles: int
    bulk: int = 2

    @property
    def shares(self) -> int:
        """Warps of a team."""
        return -(-self.groups // self.held)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.shares * self.teams

    def defines(self, eights: int, x_first: bool) -> dict[str, int]:
        """Return the macros of the kernel."""
        return {
            "EIGHTS": eights,
            "BLOCKS": self.blocks,
            "GROUPS": self.groups,
            "HELD": self.held,
            "SHARES": self.shares,
            "TEAMS": self.teams,
            "STAGES": self.stages,
            "TILES": self.tiles,
            "X_FIRST": int(x_first),
            "BULK": self.bulk,
        }

    def shared_bytes(self, eights: int) -> int:
        """Return what a block has of shared memory: its ring, and x's part of K or, later, sums."""
        warps, units = self.shares * self.teams, -(-self.teams * self.tiles // self.blocks)
        of_teams = SLOTS * self.teams if self.shares > 1 else 0
        barriers = 1 + warps * self.stages + 2 * self.teams * SLOTS + units
        ring = warps * self.stages * self.held * GROUP_BYTES
        sums = (units * self.blocks + of_teams * self.shares) * eights * 512
        rows = 8 * eights * (2 * GROUP * self.groups + 16)
        return -(-8 * barriers // 128) * 128 + ring + max(rows, sums)


def supports(w: Workload) -> bool:
    """Return whether x has few enough rows to stay in registers, and few enough columns for a cluster."""
    return w.M <= MOST_ROWS and w.K <= MOST_COLUMNS


def cut_of(N: int, K: int, eights: int, multiprocessors: int) -> Cut:
    """Return what suits a card with so many multiprocessors.

    As many blocks share K as a warp each needs for its part, up to 8; beyond that, several warps of a block do. Teams
    get the same number of tiles, or one less. The cluster meets as seldom as shared memory allows.
    """
    groups, tiles = K // GROUP, N // TILE_N
    blocks = 2
    while blocks < MOST_BLOCKS and blocks * HELD < groups:
        blocks *= 2
    of_block = -(-groups // blocks)
    shares = -(-of_block // HELD)
    # Two neighbours always are in one group of multiprocessors.
    places = max((multiprocessors if blocks == 2 else multiprocessors // TOGETHER * TOGETHER) // blocks, 1)
    most_teams = WARPS[eights] // shares
    each = -(-tiles // (places * most_teams))  # of a team
    teams = -(-tiles // (places * each))
    one = Cut(-(-tiles // (teams * each)), blocks, of_block, HELD, teams, STAGES, 1)
    sums = teams * eights * 512
    room = (
        (SHARED_BYTES - one.shared_bytes(eights)) // sums + 1
        if one.shared_bytes(eights) < SHARED_BYTES
        else 1
    )
    meetings = -(-each // room)
    return one._replace(tiles=-(-each // meetings))


def skinny_gemm_fp4(
    x: torch.Tensor,
    words: torch.Tensor,
    scales: torch.Tensor,
    second: torch.Tensor,
    *,
    early: bool = False,
    cut: Cut | None = None,
) -> torch.Tensor:
    """Return a few rows times the transpose of NVFP4 weights.

    Args:
        x: (M, K) bfloat16, contiguous, M <= 16, K a multiple of 128 and at most 32768.
        words: (N/16, K/64, 32, 4) int32, as `packed` makes them.
        scales: (N/16, K/128, 32, 4) uint8.
        second: (1,) float32.
        early: begin while the last kernel of the stream still runs, if that one says when: the weights and their scales
            are then asked for before it has ended, x after. That one must not be what writes the weights or a scale.
        cut: how to share out the work; without it, what suits the card and the sizes.
    Returns:
        (M, N) bfloat16; sums in float32, rounded once. The same bits every time on one kind of card.
    Raises:
        TypeError, ValueError: see `sizes_of`; or K > 32768, or a GPU that is no Hopper; or a cut that leaves columns
            out, or needs more warps or shared memory than a block has.
    """
    M, N, K = sizes_of(x, words, scales, second, MOST_ROWS)
    check_size("x", "K", K, MOST_COLUMNS)
    if x.get_device() >= 0 and not is_hopper(x.device):
        raise ValueError(f"x: expected a GPU of compute capability 9.0, got {x.device}")
    eights = 1 if M <= 8 else 2
    cut = _checked(cut, K, eights) if cut else _cut(N, K, eights, x.get_device())
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    kernel = _prepared(x.get_device(), eights, cut, early)
    kernel((cut.clusters * cut.blocks, 1, 1), x, words, scales, second, y, M, N // TILE_N, K // GROUP)
    return y


def _checked(cut: Cut, K: int, eights: int) -> Cut:
    if cut.blocks * cut.groups * GROUP < K:
        raise ValueError(f"cut: expected blocks * groups * 128 >= K={K}, got {cut.blocks} and {cut.groups}")
    if cut.threads > 1024:
        raise ValueError(f"cut: expected at most 1024 threads, got {cut.threads}")
    if cut.shared_bytes(eights) > SHARED_BYTES:
        raise ValueError(
            f"cut: expected at most {SHARED_BYTES} bytes of shared memory, got {cut.shared_bytes(eights)}"
        )
    return cut


@functools.cache
def _cut(N: int, K: int, eights: int, device: int) -> Cut:
    return cut_of(N, K, eights, torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _prepared(device: int, eights: int, cut: Cut, early: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        "skinny_gemm_fp4_cluster",
        block=cut.threads,
        shared_bytes=cut.shared_bytes(eights),
        cluster=cut.blocks,
        defines=cut.defines(eights, not early),
        before_the_last_grid_ended=early,
    )
