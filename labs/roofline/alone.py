"""The last task of the roofline by hand: several kernels, one after the other, on cards of `truth.py`'s kind."""

import random
from dataclasses import dataclass

from course_kernels.measure.machine import MACHINES, Machine
from course_kernels.measure.roofline import floor_us

ROUND = Machine("a card of round numbers", "round", "", 100.0, {"fp32": 1.0}, 0, "")


@dataclass(frozen=True)
class Step:
    """One kernel, in whole numbers."""

    reads_bytes: int
    flops: int
    math: str
    writes_bytes: int = 0


def cases() -> list[dict]:
    """From one kernel up; the chains whose kernels meet different roofs come last."""
    small = {
        "one kernel that memory binds": [(1000, 10)],
        "one kernel that compute binds": [(1000, 1_000_000)],
        "two kernels that memory binds": [(4000, 10), (1000, 10)],
        "one kernel for each roof": [(1000, 1_000_000), (100_000, 10)],
        "the same kernel three times": [(12_000, 1000)] * 3,
        "no kernel at all": [],
        "a copy, which computes nothing": [(1000, 0)],
        "one kernel that reads and writes nothing": [(0, 1000)],
        "two thousand small kernels": [(1000, 10)] * 2000,
    }
    found = [_case(name, steps, ROUND, "fp32") for name, steps in small.items()]
    n = 4096
    layer = [(3 * n * n * 2, 2 * n**3), (2 * n * n * 2, n * n), (3 * n * n * 2, 2 * n**3)]
    return found + [
        _case(f"two products and a map between them, on {machine.name}", layer, machine, "bf16")
        for machine in MACHINES
    ]


def drawn(draw: random.Random) -> list[dict]:
    """Chains of any length, on cards of any speed: copies, kernels at either roof, and kernels beside the ridge."""
    found = []
    for length in (1, 2, 3, draw.randint(4, 9), draw.randint(20, 30), draw.randint(130, 160)):
        bandwidth, peak = draw.uniform(20, 9000), draw.uniform(0.1, 3000)
        steps = []
        for _ in range(length):
            n_bytes = draw.randint(1, 10 ** draw.randint(1, 11))
            flops = n_bytes * peak * 1e3 / bandwidth * draw.choice((0, 0.01, 0.9, 1.1, 1000))
            steps.append((n_bytes, int(flops)))
        if length > 3:
            # One kernel twice in a row; and two chains that differ in the middle alone, with the same sums.
            at = length // 2
            steps[at - 1] = steps[at - 2] = (10**10, 0)
            steps[at] = (1, int(1e10 * peak * 1e3 / bandwidth))
        card = Machine("a card that nobody sells", "any", "", bandwidth, {"fp32": peak}, 0, "")
        found.append(_case(f"a chain of {length}", steps, card, "fp32"))
        if length > 3:
            (bytes_before, flops_before), (bytes_after, flops_after) = steps[at - 1 : at + 1]
            steps = [
                *steps[: at - 1],
                (bytes_before, flops_after),
                (bytes_after, flops_before),
                *steps[at + 1 :],
            ]
            told = f"a chain of {length} as before, but the operations of two neighbours exchanged"
            found.append(_case(told, steps, card, "fp32"))
    return found


def _case(name: str, steps: list[tuple[int, int]], machine: Machine, math: str) -> dict:
    # On paper every byte counts, as if all of them were read.
    floors = [floor_us(Step(n_bytes, flops, math), machine) for n_bytes, flops in steps]
    given = {
        "steps": steps,
        "gb_per_s": machine.bandwidth_gb_per_s,
        "tflops": machine.peak_tflops[math],
    }
    return {"call": "chain_us", "with": given, "expect": float(sum(floors)), "job": name}
