"""Matrix multiply, kernels 7 and 8 with stamps: their launcher, and what the stamps say.

Contract  problem.py, and stamps.cuh
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import torch

from course_kernels.cuda.prepared import Prepared, prepare, tensor_map
from course_kernels.gemm import k07_wide, k08_roles
from course_kernels.gemm.by_tma import BK, multiprocessors
from course_kernels.gemm.launch_cache import sizes_of

WARPGROUPS = 3  # places in the stamps; without roles the third stays empty
WAITS, MULTIPLIES, MEETS, ASKS, STORES = range(5)
WORDS = ("waits for a barrier of bytes", "multiplies", "waits for everybody", "asks for tiles", "stores")


@dataclass(frozen=True)
class Stamped:
    """A kernel with stamps.

    Attributes:
        plain: the same without.
        source: its file.
        kernel: its name there.
    """

    plain: ModuleType
    source: Path
    kernel: str


WIDE = Stamped(k07_wide, Path(__file__).with_name("stamped_wide.cu"), "gemm_wide")
ROLES = Stamped(k08_roles, Path(__file__).with_name("stamped_roles.cu"), "gemm_roles")


def multiply(which: Stamped, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Multiply a @ b as k07_wide or k08_roles computes it, and when.

    Args:
        which: WIDE or ROLES.
        a: (M, K) bfloat16 or float16, contiguous, K a multiple of 8.
        b: (K, N), the same type, contiguous, N a multiple of 8.
    Returns:
        (M, N), the same type; and ticks [blocks, 3, steps + 1, 4], int64, as stamps.cuh says. The kernel's next call
        with as many blocks and steps writes to the same ticks.
    Raises:
        TypeError, ValueError: see `sizes_of`; or a GPU of another compute capability than 9.0.
    """
    M, N, K = sizes_of(a, b)
    multiprocessors(a.get_device())
    shape = which.plain.SHAPE
    blocks, steps = -(-M // shape.BM) * -(-N // shape.BN), -(-K // BK)
    ready = _prepared(a.get_device(), which, a.dtype is torch.float16)
    stamps = _room(which, a.device, blocks, steps)
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    ready(blocks, tensor_map(a, (shape.BM, BK)), tensor_map(b, (BK, 64)), stamps, c, M, N, K)
    return c, stamps


@functools.cache
def _prepared(device: int, which: Stamped, float16: bool) -> Prepared:
    shape = which.plain.SHAPE
    return prepare(
        which.source,
        which.kernel,
        block=shape.threads,
        shared_bytes=shape.shared_bytes,
        defines={"FLOAT16": int(float16)},
    )


@functools.lru_cache(maxsize=8)
def _room(which: Stamped, device: torch.device, blocks: int, steps: int) -> torch.Tensor:
    """Return each kernel has its own: who reads the ticks of one, after the other ran, must not find the other's."""
    return torch.zeros((blocks, WARPGROUPS, steps + 1, 4), dtype=torch.int64, device=device)


# --- what they say -----------------------------------------------------------------------------------


def intervals(
    ticks: torch.Tensor, which: Stamped, block: int, first: int, last: int
) -> dict[str, list[float]]:
    """Return what each warpgroup of a block did, one thing after the other.

    Args:
        ticks: what `multiply` returned.
        which: by whom.
        block: its number.
        first, last: steps, both included.
    Returns:
        Columns: lane, the warpgroup from 0; does, an index into WORDS; from_cycles and to_cycles, since the earliest.
    """
    own = ticks[block].cpu()
    rows: list[tuple[int, int, int, int]] = []
    for group in range(WARPGROUPS):
        for step in range(first, last + 1):
            at = own[group, step].tolist()
            if not at[0]:
                continue
            after = int(own[group, step + 1, 0])  # of the last step: C is begun
            what: Sequence[tuple[int, int, int]]
            if which is WIDE:
                # Only the first warpgroup has the thread that asks; the other goes on at once.
                then = ASKS if group == 0 else MULTIPLIES
                what = ((WAITS, *at[:2]), (MULTIPLIES, *at[1:3]), (MEETS, *at[2:4]), (then, at[3], after))
            elif group == 0:
                what = ((WAITS, *at[:2]), (ASKS, *at[1:3]))
            else:
                what = ((WAITS, *at[:2]), (MULTIPLIES, at[1], after))
            rows += [(group, does, begin, end) for does, begin, end in what if end > begin]
    start = min(row[2] for row in rows)
    names = ("lane", "does", "from_cycles", "to_cycles")
    columns = zip(
        *((group, does, begin - start, end - start) for group, does, begin, end in rows), strict=True
    )
    return {name: [float(value) for value in column] for name, column in zip(names, columns, strict=True)}


def shares(ticks: torch.Tensor, which: Stamped, skip: int = 8) -> dict[str, float]:
    """Return how the consumers spend the time between the first and the last step of a block, as shares.

    Args:
        ticks, which: as for `intervals`.
        skip: steps at the beginning that are left out: the ring is empty there.
    Returns:
        `for_tiles` they wait, `for_all` the others, `rest`: they multiply, and all else; of all blocks, together 1.
    """
    groups = slice(0, 2) if which is WIDE else slice(1, 3)
    own = ticks[:, groups, skip:-1].double()
    whole = (ticks[:, groups, -1, 0] - ticks[:, groups, skip, 0]).double().sum()
    waits = float((own[..., 1] - own[..., 0]).sum() / whole)
    meets = float((own[..., 3] - own[..., 2]).sum() / whole) if which is WIDE else 0.0
    return {"for_tiles": waits, "for_all": meets, "rest": 1 - waits - meets}


def early(ticks: torch.Tensor) -> int:
    """Return, of WIDE, in how many steps of all blocks a warpgroup left the common barrier before both had come."""
    came, left = ticks[:, :2, :-1, 2], ticks[:, :2, :-1, 3]
    return int(left.amin(dim=1).lt(came.amax(dim=1)).sum())


def apart(ticks: torch.Tensor) -> float:
    """Return, of WIDE, the median cycles between the two looks behind the common barrier, over all steps and blocks."""
    left = ticks[:, :2, :-1, 3]
    return float((left[:, 0] - left[:, 1]).abs().double().median())


def step_cycles(ticks: torch.Tensor, which: Stamped, skip: int = 8) -> list[float]:
    """Cycles of a step of k, the mean of every block, without the first steps."""
    group = 0 if which is WIDE else 1
    steps = ticks.shape[2] - 1 - skip
    return [float(x) for x in (ticks[:, group, -1, 0] - ticks[:, group, skip, 0]).double() / steps]


def gaps(ticks: torch.Tensor, which: Stamped) -> list[float]:
    """Cycles between two blocks of a multiprocessor: from the last product of one to the first tile of the next."""
    group = 0 if which is WIDE else 1
    begin, end = ticks[:, group, 0, 1].cpu(), ticks[:, group, -1, 0].cpu()
    of_sm: dict[int, list[int]] = {}
    for block in torch.argsort(begin).tolist():
        of_sm.setdefault(int(ticks[block, group, -1, 3]), []).append(block)
    return [
        float(begin[after] - end[before]) for blocks in of_sm.values() for before, after in pairwise(blocks)
    ]
