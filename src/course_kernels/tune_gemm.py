"""Measure which plan and switches of k14_tuned are the fastest on this card, by size, beside cuBLAS and cuBLASLt.

python -m course_kernels.tune_gemm 4096 2048 8192 --layouts NN NT
python -m course_kernels.tune_gemm 4096 --rungs

Every candidate is checked before it is timed, by the two clocks of measure/bursts.py: in bursts, and sustained, in the
order A B B A. Candidates are sifted: every tile and group
first, then the switches on the best of those, then the best few beside the libraries. What is best goes into plans.py
and k14_tuned.cu by hand, as for attention.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import Any

import torch

from course_kernels.gemm import (
    heuristics,
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
    library,
)
from course_kernels.gemm.by_tma import multiprocessors
from course_kernels.gemm.plans import ALONE, SHAPES, Plan, Shape, ahead_of, evenly, group_of, plan_of
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure import bursts
from course_kernels.measure.check import poisoned_memory
from course_kernels.problem import Workload, worst_error

Factors = tuple[torch.Tensor, torch.Tensor]
Multiply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

SIZES = (512, 1024, 2048, 4096, 8192)
RUNGS: tuple[ModuleType, ...] = (
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
)
# Beside those in use: other clusters of the large tiles, the widest tile that fits, and one between.
MORE_SHAPES = (
    ALONE,
    Shape(128, 256, STAGES=4, CONSUMERS=2, CLUSTER_M=1, CLUSTER_N=2, C_PANELS=2, clocks=0),
    Shape(256, 128, STAGES=4, CONSUMERS=2, CLUSTER_M=2, CLUSTER_N=1, C_PANELS=2, clocks=0),
    Shape(256, 192, STAGES=3, CONSUMERS=2, CLUSTER_M=1, CLUSTER_N=2, C_PANELS=2, clocks=0),
    Shape(128, 192, STAGES=4, CONSUMERS=2, CLUSTER_M=1, CLUSTER_N=2, C_PANELS=3, clocks=0),
)
GROUPS = (4, 8, 16)
MOST_SUMS_HELD = 128  # of a thread: half as many registers hold the tile before, beside them (LATE)


@dataclass
class Candidate:
    """Something that multiplies, and what is known of it.

    Attributes:
        name: in the table.
        of: makes, of a pair of inputs, the call that is timed.
        us: of every launch that counted, microseconds.
        host_us: what a launch cost the host, the least of all bursts, microseconds.
    """

    name: str
    of: Callable[[torch.Tensor, torch.Tensor], Callable[[], torch.Tensor]]
    us: list[float]
    host_us: float = float("inf")

    @property
    def median_us(self) -> float:
        """Infinite while nothing was timed."""
        return statistics.median(self.us) if self.us else float("inf")


def candidate(name: str, multiply: Multiply) -> Candidate:
    """Return the candidate of a function of two factors."""
    return Candidate(name, lambda a, b: lambda: multiply(a, b), [])


def name_of(plan: Plan) -> str:
    """Return its sizes, and the switches that stand otherwise than in the source: "128 x 256, 4 stages, …, LATE=1"."""
    s = plan.shape
    parts = f"{s.BM} x {s.BN}, {s.STAGES} stages, cluster {s.CLUSTER_M} x {s.CLUSTER_N}, group {plan.group}"
    split = (f"in {plan.splits}",) if plan.splits > 1 else ()
    ahead = (f"{plan.ahead} steps ahead",) if plan.ahead else ()
    return ", ".join((parts, *split, *ahead, *(f"{name}={value}" for name, value in plan.switches)))


def plans_of(M: int, N: int, K: int, sms: int) -> list[Plan]:
    """Return every tile in the groups that may suit it, and what `plan_of` takes now; the switches as they stand."""
    usual = plan_of(M, N, K, sms)
    found = {usual: None}
    for shape in (*SHAPES, *MORE_SHAPES):
        clusters = max(sms // shape.cluster, 1)
        tiles = -(-M // (shape.BM * shape.CLUSTER_M)) * -(-N // (shape.BN * shape.CLUSTER_N))
        groups = {group_of(shape, clusters), *(GROUPS if shape.BM * shape.BN >= 128 * 256 else ())}
        high = -(-M // (shape.BM * shape.CLUSTER_M))
        for group in sorted({min(group, high) for group in groups}):  # more is the same order
            found[Plan(shape, group, 1, evenly(tiles, clusters) * shape.cluster)] = None
    return list(found)


def switched(plan: Plan, M: int, N: int, K: int) -> list[Plan]:
    """List the same plan with every setting of the switches that may bring something to it.

    And with tiles begun ahead.
    """
    s = plan.shape
    late = (0, 1) if s.BM // s.CONSUMERS * s.BN // 128 <= MOST_SUMS_HELD and plan.splits == 1 else (0,)
    lags = (0, 1, 2) if s.CONSUMERS == 2 else (0,)
    settings = [(("LATE", x), ("LAG", y), ("HINTS", 1)) for x, y in product(late, lags)]
    settings += [(("LATE", x), ("LAG", 0), ("HINTS", 0)) for x in late]
    ahead = ahead_of(plan, M, N, K)
    begun = [replace(plan, switches=each, ahead=ahead) for each in settings[: len(late) * len(lags)] if ahead]
    return [*(replace(plan, switches=each) for each in settings), *begun]


def with_plan(plan: Plan) -> Candidate:
    """Return the last rung, cut like that."""
    return candidate(name_of(plan), lambda a, b: k14_tuned.gemm(a, b, plan=plan))


def libraries(a: torch.Tensor, b: torch.Tensor) -> list[Candidate]:
    """cuBLAS, and every way that cuBLASLt offers for factors like these."""

    def way(i: int) -> Candidate:
        return Candidate(f"cuBLASLt, way {i}", lambda a, b: heuristics.ways(a, b)[i], [])

    count = len(heuristics.ways(a, b))
    return [candidate("cuBLAS", library.cublas), *(way(i) for i in range(count))]


# --- right ----------------------------------------------------------------------------------------------


def checked(field: Sequence[Candidate], a: torch.Tensor, b: torch.Tensor) -> list[Candidate]:
    """Return those whose answer on these factors is right; the others are named in a line of their own."""
    M, K = a.shape
    name = str(a.dtype).removeprefix("torch.")
    allowed = PROBLEM.max_error(Workload.of(name, M=M, N=b.shape[1], K=K))
    truth, right = PROBLEM.reference(a, b), []
    for each in field:
        with poisoned_memory():
            try:
                error = worst_error(each.of(a, b)(), truth)
            except (RuntimeError, ValueError) as refused:  # a shape that does not fit, a way that cannot
                print(f"  left out: {each.name}: {refused}", flush=True)
                continue
        if error <= allowed:
            right.append(each)
        else:
            print(f"  WRONG, left out: {each.name}: error {error:.1e}", flush=True)
    return right


# --- timed ----------------------------------------------------------------------------------------------


def burst(field: Sequence[Candidate], a: torch.Tensor, b: torch.Tensor, rounds: int) -> None:
    """Run rounds of bursts, forth and back through the field; what is timed is added to each."""
    found = bursts.bursts({str(i): each.of(a, b) for i, each in enumerate(field)}, rounds)
    for each, timed in zip(field, found.values(), strict=True):
        each.us += timed.us
        each.host_us = min(each.host_us, timed.host_us)


def sustained(each: Candidate, inputs: Sequence[Factors]) -> tuple[float, Mapping[str, Any]]:
    """Microseconds of a launch, one kernel alone for two seconds, the last second of it; and the card's state then."""
    block = bursts.alone([each.of(a, b) for a, b in inputs], each.median_us)
    return statistics.fmean(block.us), block.state


# --- told -----------------------------------------------------------------------------------------------


def table(field: Sequence[Candidate], flops: int) -> list[str]:
    """Return a line for each, the fastest first.

    Its rate, that over the best library's, and what a launch cost the host.
    """
    best = min((each.median_us for each in field if each.name.startswith("cuBLAS")), default=float("nan"))
    return [
        f"  {flops / each.median_us / 1e6:6.0f} TFLOP/s  {best / each.median_us:5.3f} of the best library  "
        f"host {each.host_us:5.1f} us  {each.name}"
        for each in sorted(field, key=lambda each: each.median_us)
    ]


def factors(N: int, layout: str, seed: int) -> Factors:
    """Random normal numbers; in the layout NT, b lies as (N, K)."""
    draw = torch.Generator("cuda").manual_seed(seed)
    a, b = PROBLEM.make_inputs(Workload.of("bfloat16", M=N, N=N, K=N), draw, "cuda")
    return a, b.t().contiguous().t() if layout == "NT" else b


def race(N: int, layout: str, rounds: int, keep: int, sustain: bool) -> None:
    """Race one size in one layout, sifted."""
    a, b = factors(N, layout, 0)
    flops = 2 * N**3
    sms = multiprocessors(a.get_device())
    print(f"{N} {layout}, burst, warm L2", flush=True)
    against = checked(libraries(a, b), a, b)
    plans = {name_of(plan): plan for plan in plans_of(N, N, N, sms)}
    field = checked([with_plan(plan) for plan in plans.values()], a, b)
    burst(field, a, b, 2)
    field.sort(key=lambda each: each.median_us)
    more = {name_of(p): p for each in field[:2] for p in switched(plans[each.name], N, N, N)}
    turned = checked([with_plan(plan) for plan in more.values()], a, b)
    burst(turned, a, b, 2)
    field = sorted([*field, *turned], key=lambda each: each.median_us)[:keep]
    field.append(candidate("k14_tuned, as it stands", k14_tuned.gemm))
    for each in (*field, *against):
        each.us.clear()
    burst([*field, *against], a, b, rounds)
    print("\n".join(table([*field, *against], flops)), flush=True)
    if sustain:
        pairs = max(2, min(bursts.MOST_ROTATING, bursts.ROTATING_BYTES // (4 * N * N)))
        inputs = [factors(N, layout, seed) for seed in range(pairs)]
        ours, theirs = (min(some, key=lambda each: each.median_us) for some in (field, against))
        print(f"{N} {layout}, sustained, {pairs} pairs of inputs in turn", flush=True)
        for each in (ours, theirs, theirs, ours):
            us, state = sustained(each, inputs)
            print(
                f"  {flops / us / 1e6:6.0f} TFLOP/s  {state['sm_mhz']} MHz  {state['power_w']} W  "
                f"{', '.join(state['throttle'])}  {each.name}",
                flush=True,
            )


def climb(N: int, layout: str, rounds: int) -> None:
    """Race the rungs at one size, in their order, each over the one before."""
    a, b = factors(N, layout, 0)
    rungs = [candidate(rung.__name__.rpartition(".")[2], rung.gemm) for rung in RUNGS]
    if layout == "NT":
        rungs = rungs[-2:]  # the only ones that take it
    field = checked([*rungs, candidate("cuBLAS", library.cublas)], a, b)
    burst(field, a, b, rounds)
    print(f"{N} {layout}, the rungs, burst, warm L2", flush=True)
    before = float("nan")
    for each in field:
        rate = 2 * N**3 / each.median_us / 1e6
        over = before / each.median_us
        print(f"  {rate:6.0f} TFLOP/s  {over:5.3f} of the one before  {each.name}", flush=True)
        before = each.median_us


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for every size and layout, the fastest first."""
    parser = argparse.ArgumentParser(
        prog="python -m course_kernels.tune_gemm", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("N", nargs="*", type=int, default=list(SIZES), help="sizes, M = N = K")
    parser.add_argument("--layouts", nargs="+", choices=("NN", "NT"), default=["NN", "NT"])
    parser.add_argument("--rounds", type=int, default=10, help="bursts of each at the end")
    parser.add_argument("--keep", type=int, default=6, help="candidates that reach the end")
    parser.add_argument("--sustained", action="store_true", help="the best against the best, for seconds")
    parser.add_argument("--rungs", action="store_true", help="the rungs in their order, and nothing else")
    given = parser.parse_args(arguments)
    for N, layout in product(given.N, given.layouts):
        if given.rungs:
            climb(N, layout, given.rounds)
        else:
            race(N, layout, given.rounds, given.keep, given.sustained)


if __name__ == "__main__":
    main()
