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
from course_kernels.cuda.launch import load_kernel
from course_kernels.cuda.prepared import Prepared, prepare
from course_kernels.cuda.shared_memory import allow_shared_memory
from course_kernels.problem import Workload
from course_kernels.skinny_gemm_fp4.arguments import sizes_of
from course_kernels.skinny_gemm_fp4.layout import GROUP, TILE_N

SOURCE = Path(__file__).with_suffix(".cu")
NAME = "skinny_gemm_fp4_cluster"
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
    """

    clusters: int
    blocks: int
    groups: int
    held: int
    teams: int
    stages: int
    tiles: int

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
        }

    def shared_bytes(self, eights: int) -> int:
        """Return what a block has of shared memory: its barriers, its ring, x's part of K, and sums."""
        warps, units = self.shares * self.teams, -(-self.teams * self.tiles // self.blocks)
        of_teams = SLOTS * self.teams if self.shares > 1 else 0
        barriers = 1 + warps * self.stages + 2 * self.teams * SLOTS + units
        ring = warps * self.stages * self.held * GROUP_BYTES
        sums = (units * self.blocks + of_teams * self.shares) * eights * 512
        rows = 8 * eights * (2 * GROUP * self.groups + 16)
        return -(-8 * barriers // 128) * 128 + ring + rows + sums


def supports(w: Workload) -> bool:
    """Return whether x has few enough rows to stay in registers, and few enough columns for a cluster."""
    return w.M <= MOST_ROWS and w.K <= MOST_COLUMNS


def blocks_of(K: int) -> int:
    """Return how many blocks of a cluster share K: as many as a warp each needs for its part, up to 8."""
    blocks = 2
    while blocks < MOST_BLOCKS and blocks * HELD * GROUP < K:
        blocks *= 2
    return blocks


def cut_of(N: int, K: int, eights: int, places: int) -> Cut:
    """Return what suits a card that holds so many clusters of `blocks_of(K)` at once.

    Where a warp a block is too few for K, several warps of a block share the block's part. Teams get the same number of
    tiles, or one less. The cluster meets as seldom as shared memory allows.
    """
    tiles, blocks = N // TILE_N, blocks_of(K)
    of_block = -(-K // GROUP // blocks)
    shares = -(-of_block // HELD)

    def fits(teams: int, of_team: int) -> bool:
        cut = Cut(1, blocks, of_block, HELD, teams, STAGES, of_team)
        return cut.shared_bytes(eights) <= SHARED_BYTES

    most_teams = next(teams for teams in range(WARPS[eights] // shares, 0, -1) if fits(teams, 1))
    each = -(-tiles // (places * most_teams))  # of a team
    teams = -(-tiles // (places * each))
    together = next(of_team for of_team in range(each, 0, -1) if fits(teams, of_team))
    meetings = -(-each // together)
    clusters = -(-tiles // (teams * each))
    return Cut(clusters, blocks, of_block, HELD, teams, STAGES, -(-each // meetings))


@functools.cache
def clusters_at_once(device: int, blocks: int) -> int:
    """Return how many clusters of so many blocks run at once on the current GPU, which is `device`.

    Each block has a multiprocessor to itself. The driver knows: a cluster lies in one group of multiprocessors, and how
    large these are differs from card to card of one model. A cluster too many begins when all others have ended.
    """
    from cuda.core import Device, LaunchConfig

    kernel = load_kernel(SOURCE, NAME, Cut(1, blocks, 1, 1, 1, 1, 1).defines(1, True))
    allow_shared_memory(kernel, SHARED_BYTES)
    config = LaunchConfig(grid=1, cluster=blocks, block=32, shmem_size=SHARED_BYTES)
    return max(kernel.occupancy.max_active_clusters(config, stream=Device(device).default_stream), 1)


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
    return cut_of(N, K, eights, clusters_at_once(device, blocks_of(K)))


@functools.cache
def _prepared(device: int, eights: int, cut: Cut, early: bool) -> Prepared:
    """Return the kernel, ready for the current GPU, which is `device`."""
    return prepare(
        SOURCE,
        NAME,
        block=cut.threads,
        shared_bytes=cut.shared_bytes(eights),
        cluster=cut.blocks,
        defines=cut.defines(eights, not early),
        before_the_last_grid_ended=early,
    )
