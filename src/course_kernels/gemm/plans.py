"""Tile, cluster and order of kernels 13 and 14 for a size, and their launch.

Contract  problem.py
Source    CUTLASS, Efficient GEMM: tiles, threadblock swizzle, split-K
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from course_kernels.cuda.prepared import Prepared, Written, prepare, tensor_map
from course_kernels.gemm.by_tma import BK, ROW_BYTES, multiprocessors
from course_kernels.gemm.launch_cache import Ready, multiply, sizes_of


@dataclass(frozen=True)
class Shape:
    """A way to cut C, as the macros of the sources say it.

    Attributes:
        BM, BN: the tile of C that a block makes at once.
        STAGES: pairs of tiles of A and B in shared memory.
        CONSUMERS: warpgroups that multiply.
        CLUSTER_M, CLUSTER_N: blocks that share what they fetch of B, or of A.
        C_PANELS: places of 64 x 64 for C, of a consumer.
        clocks: of a step of 64 in k, about. 128 x 256 keep the tensor cores busy for 1024; a small tile waits for L2
            or for shared memory.
    """

    BM: int
    BN: int
    STAGES: int
    CONSUMERS: int
    CLUSTER_M: int
    CLUSTER_N: int
    C_PANELS: int
    clocks: int

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return self.CLUSTER_M * self.CLUSTER_N

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (1 + self.CONSUMERS) * 128

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: the stages, two barriers each, and the panels of C."""
        tiles = self.STAGES * ((self.BM + self.BN) * ROW_BYTES + 16)
        return tiles + self.CONSUMERS * self.C_PANELS * 64 * ROW_BYTES

    @property
    def sums_of_a_consumer(self) -> int:
        """Return the sums of a consumer, of a tile of C."""
        return self.BM * self.BN // self.CONSUMERS

    @property
    def defines(self) -> dict[str, int]:
        """The macros of the sources."""
        names = ("BM", "BN", "STAGES", "CONSUMERS", "CLUSTER_M", "CLUSTER_N", "C_PANELS")
        return {name: getattr(self, name) for name in names}


# The large ones read least for what they make. The low and the narrow ones waste least at the edge of a long C, and the
# small ones are for a C that has too few large tiles for all multiprocessors.
SHAPES = (
    Shape(128, 256, STAGES=4, CONSUMERS=2, CLUSTER_M=2, CLUSTER_N=1, C_PANELS=2, clocks=1024),
    Shape(256, 128, STAGES=4, CONSUMERS=2, CLUSTER_M=1, CLUSTER_N=2, C_PANELS=2, clocks=1035),
    Shape(128, 128, STAGES=6, CONSUMERS=2, CLUSTER_M=2, CLUSTER_N=1, C_PANELS=2, clocks=552),
    Shape(64, 256, STAGES=5, CONSUMERS=1, CLUSTER_M=1, CLUSTER_N=1, C_PANELS=2, clocks=559),
    Shape(64, 128, STAGES=8, CONSUMERS=1, CLUSTER_M=1, CLUSTER_N=1, C_PANELS=2, clocks=324),
    Shape(128, 64, STAGES=8, CONSUMERS=2, CLUSTER_M=1, CLUSTER_N=1, C_PANELS=1, clocks=447),
)
# Where they come from: bursts of every shape at 4096 and 8192 on an H200. 128 x 256 at the tensor cores' own pace, with
# OF_A_TILE a tile, gives the card's clock; by that clock, what is left of a shape's time at 4096 are its own steps.
# The two sizes agree for the tiles of 64 x 256 and larger; the smallest ones wait for more than L2 at 8192, where no
# plan takes them. Of tiles in parts nothing is known: at the sizes where they were tried, the host was the slower one.
OF_A_TILE = 2000  # clocks until the first products, and behind the last
OF_SUMS = 2500  # clocks of sums that one cluster leaves to another, for each of the two: a guess
OF_PARTS = 8000  # clocks of the second kernel that adds the parts, with its start
PARTS_BYTES = 2000  # a clock: parts are written and read once, most often in L2
MOST_PARTS = 16
# Of A and B: up to here the blocks of the largest tile fetch for themselves, and wait for no neighbour; past it, it is
# worth waiting: at 8192 blocks alone win a burst and lose a run of seconds, which the power limit decides.
ALONE_BYTES = 128 * 2**20
# Where the rounds can be shared out evenly with a few clusters less, they are: nobody ends later, all walk in step, and
# the power of those who would have had a tile less is left to the others.
FEW_LESS = 0.95
ALONE = replace(SHAPES[0], CLUSTER_M=1)
LEAST_STEPS = 8  # of a part: a shorter one is over before its ring is full


@dataclass(frozen=True)
class Plan:
    """Parameters of a launch besides tensors.

    Attributes:
        shape: the tile of C, and how it is made.
        group: tiles of clusters, one below the other, that are walked together.
        splits: parts of K that a tile is made of.
        grid: blocks.
        ahead: steps of k that clusters without a tile in the last round do of every tile of it; 0 where each tile is
            one cluster's. Only kernel 14 knows it.
        switches: macros of the source that are to stand otherwise than there, as pairs.
    """

    shape: Shape
    group: int
    splits: int
    grid: int
    ahead: int = 0
    switches: tuple[tuple[str, int], ...] = ()


@functools.lru_cache(maxsize=4096)
def plan_of(M: int, N: int, K: int, multiprocessors: int) -> Plan:
    """Return the plan that should end first, by the clocks above.

    The same answer for the same size on the same card.
    """
    steps = -(-K // BK)
    clocks, plan = math.inf, None
    for shape in SHAPES:
        clusters = max(multiprocessors // shape.cluster, 1)
        tiles = -(-M // (shape.BM * shape.CLUSTER_M)) * -(-N // (shape.BN * shape.CLUSTER_N))
        for splits in range(1, max(min(MOST_PARTS, steps // LEAST_STEPS), 1) + 1):
            rounds = -(-tiles * splits // clusters)
            needs = rounds * (-(-steps // splits) * shape.clocks + OF_A_TILE)
            if splits > 1:
                needs += OF_PARTS + 8 * M * N * splits // PARTS_BYTES
            if needs < clocks:
                group = group_of(shape, clusters)
                grid = evenly(tiles * splits, clusters) * shape.cluster
                clocks, plan = needs, Plan(shape, group, splits, grid)
    assert plan is not None
    if plan.shape == SHAPES[0] and 2 * K * (M + N) <= ALONE_BYTES:
        tiles = -(-M // ALONE.BM) * -(-N // ALONE.BN)
        grid = evenly(tiles * plan.splits, multiprocessors)
        return Plan(ALONE, group_of(ALONE, multiprocessors), plan.splits, grid)
    return plan


def evenly(tiles: int, clusters: int) -> int:
    """So many clusters of those that there is room for as all get the same number of tiles, if these are nearly all."""
    rounds = -(-tiles // clusters)
    even = -(-tiles // rounds)
    return even if even >= FEW_LESS * clusters else min(tiles, clusters)


def sizes_and_layout(a: torch.Tensor, b: torch.Tensor) -> tuple[int, int, int, bool]:
    """M, N, K of a product, and whether b is the transpose of a contiguous (N, K).

    Raises:
        TypeError, ValueError: see `sizes_of`.
    """
    transposed = (
        isinstance(b, torch.Tensor) and b.dim() == 2 and not b.is_contiguous() and b.t().is_contiguous()
    )
    return *sizes_of(a, b, transposed=transposed), transposed


def left_of(plan: Plan, M: int, N: int) -> int:
    """Tiles of clusters in the last round, where it is a partial one and not the only one; else 0."""
    shape, clusters = plan.shape, plan.grid // plan.shape.cluster
    tiles = -(-M // (shape.BM * shape.CLUSTER_M)) * -(-N // (shape.BN * shape.CLUSTER_N))
    return tiles % clusters if tiles > clusters and plan.splits == 1 else 0


def ahead_of(plan: Plan, M: int, N: int, K: int) -> int:
    """Return the steps to do ahead so that all clusters end at about the same time; 0 where that saves nothing."""
    left, clusters, steps = left_of(plan, M, N), plan.grid // plan.shape.cluster, -(-K // BK)
    if not left:
        return 0
    # begins * (ahead * clocks + OF_SUMS) = (steps - ahead) * clocks + OF_SUMS + OF_A_TILE
    begins, clocks = -(-left // (clusters - left)), plan.shape.clocks or 1024
    ahead = (steps * clocks + OF_A_TILE - (begins - 1) * OF_SUMS) // (clocks * (begins + 1))
    return ahead if ahead * clocks > OF_SUMS else 0


def group_of(shape: Shape, clusters: int) -> int:
    """So many tiles of clusters one below the other that what runs at once is about as high as wide."""
    high, wide = shape.BM * shape.CLUSTER_M, shape.BN * shape.CLUSTER_N
    return max(1, round(math.sqrt(clusters * wide / high)))


def gemm_by_plan(
    source: Path, kernel: str, a: torch.Tensor, b: torch.Tensor, plan: Plan | None = None
) -> torch.Tensor:
    """Return the product a @ b, cut as its size wants it; sums in float32.

    Args:
        source: the `.cu` file.
        kernel: its name there.
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8, M and K <= 2**30.
        b: (K, N), the same type, contiguous, or the transpose of a contiguous (N, K); N a multiple of 8, N <= 2**30.
        plan: how to cut it; without it, what suits the size.
    Returns:
        (M, N), the same type; every element is rounded to it once, and comes out the same bit for bit in every call.
    Raises:
        TypeError: a is of another type, or b of another than a.
        ValueError: shapes that do not fit each other or are too long, K or N no multiple of 8, another layout, an
            address that is no multiple of 16 bytes, a plan with more parts than K has steps, not on the current GPU,
            or one of another compute capability than 9.0.
    """

    return multiply((kernel, plan), a, b, functools.partial(ready_by_plan, source, kernel, plan))


def ready_by_plan(source: Path, kernel: str, plan: Plan | None, a: torch.Tensor, b: torch.Tensor) -> Ready:
    """Return what multiplies tensors that lie like a and b; arguments and errors are those of `gemm_by_plan`."""
    M, N, K, transposed = sizes_and_layout(a, b)
    device, float16 = a.get_device(), a.dtype is torch.float16
    cut = plan or plan_of(M, N, K, multiprocessors(device))
    shape, splits = cut.shape, cut.splits
    if not 1 <= splits <= -(-K // BK):
        raise ValueError(f"plan: expected 1 to {-(-K // BK)} parts of K={K}, got {splits}")
    left = left_of(cut, M, N)
    if cut.ahead and not (left and source.stem in AHEAD and 0 < cut.ahead < -(-K // BK)):
        raise ValueError(
            f"plan: ahead: expected 0, or fewer than the {-(-K // BK)} steps where the last of several rounds is "
            f"partial, got {cut.ahead} with {left} tiles left"
        )
    macros = (*cut.switches, ("BEGUN", int(cut.ahead > 0))) if source.stem in AHEAD else cut.switches
    more = (cut.ahead,) if source.stem in AHEAD else ()
    tiles = _tiles(device, source, kernel, shape, transposed, splits > 1, float16, macros)
    adding = _adding(device, source, float16) if splits > 1 else None

    def write(
        a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, parts: torch.Tensor | None
    ) -> tuple[Written, ...]:
        from_a = tensor_map(a, (shape.BM // shape.CLUSTER_N, BK))
        from_b = (
            tensor_map(b.t(), (shape.BN // shape.CLUSTER_M, BK)) if transposed else tensor_map(b, (BK, 64))
        )
        maps = from_a, from_b, tensor_map(c, (64, 64))
        first = tiles.written(cut.grid, *maps, parts, M, N, K, cut.group, splits, *more)
        if adding is None:
            return (first,)
        return first, adding.written(-(-M * N // 1024), parts, c, M * N, splits)

    size = (splits, M, N) if splits > 1 else None
    kept = left * (shape.cluster * shape.CONSUMERS) * (shape.sums_of_a_consumer + 1) if cut.ahead else 0
    return Ready(a, M, N, tiles.current, write, parts=size, kept=kept)


@functools.cache
def _tiles(
    device: int,
    source: Path,
    kernel: str,
    shape: Shape,
    transposed: bool,
    split: bool,
    float16: bool,
    switches: tuple[tuple[str, int], ...],
) -> Prepared:
    """Return the kernel that multiplies, ready for the current GPU, which is `device`."""
    more = {"TRANSPOSED": int(transposed), "SPLIT": int(split), "FLOAT16": int(float16)}
    more.update(switches)
    return prepare(
        source,
        kernel,
        block=shape.threads,
        shared_bytes=shape.shared_bytes,
        cluster=shape.cluster,
        defines={**shape.defines, **more},
        before_the_last_grid_ended=EARLY[source.stem],
    )


@functools.cache
def _adding(device: int, source: Path, float16: bool) -> Prepared:
    """Return the kernel that adds the parts that `source` left."""
    return prepare(
        ADD_PARTS,
        "add_parts",
        block=256,
        defines={"FLOAT16": int(float16)},
        before_the_last_grid_ended=EARLY[source.stem],
    )


AHEAD = ("k14_tuned",)  # whose clusters may begin tiles for others
ADD_PARTS = Path(__file__).with_name("add_parts.cu")
# Whose grid may begin while the last one of the stream still runs: its source waits for that one itself.
EARLY = {"k13_by_size": False, "k14_tuned": True}
