"""The roofline by hand: jobs whose facts are whole numbers, on a card of round numbers and on real data sheets."""

import random
from dataclasses import dataclass, replace

from course_kernels.measure.machine import MACHINES, Machine
from course_kernels.measure.roofline import bound, floor_us

# A card nobody sells, for sums that can be done in the head.
ROUND = Machine("a card of round numbers", "round", "", 100.0, {"fp32": 1.0}, 0, "")


@dataclass(frozen=True)
class Job:
    """A job in whole numbers; what is counted is what `course_kernels.problem.Problem` counts."""

    name: str
    reads_bytes: int
    writes_bytes: int
    flops: int
    math: str

    @property
    def n_bytes(self) -> int:
        """Bytes read and written."""
        return self.reads_bytes + self.writes_bytes


def add(N: int) -> Job:
    """Adding two lists of N fp32 numbers."""
    return Job(f"adding two lists of {N} numbers", 2 * N * 4, N * 4, N, "fp32")


def product(M: int, N: int, K: int, size: int, math: str) -> Job:
    """A matrix product (M, K) times (K, N)."""
    name = f"a product of {M}×{K} and {K}×{N} in {math}"
    return Job(name, (M * K + K * N) * size, M * N * size, 2 * M * N * K, math)


def cases() -> list[dict]:
    """All functions, each from the smallest job up."""
    adds = [add(1), add(4), add(2**28)]
    shapes = [(2, 2, 2, 4, "fp32"), (2, 3, 5, 2, "bf16"), (1000, 1000, 1000, 2, "bf16")]
    products = [(shape, product(*shape)) for shape in shapes]
    found = [
        {"call": "add_bytes", "with": {"N": job.flops}, "expect": job.n_bytes, "job": job.name}
        for job in adds
    ]
    for (M, N, K, size, _), job in products:
        given = {"M": M, "N": N, "K": K, "size": size}
        found.append({"call": "product_bytes", "with": given, "expect": job.n_bytes, "job": job.name})
    found += [
        {"call": "add_flops", "with": {"N": job.flops}, "expect": job.flops, "job": job.name} for job in adds
    ]
    for (M, N, K, _, _), job in products:
        given = {"M": M, "N": N, "K": K}
        found.append({"call": "product_flops", "with": given, "expect": job.flops, "job": job.name})
    # On the card of round numbers the ridge is at 10: just below it, just above it, and well above.
    small = [(add(1000), ROUND), *((product(N, N, N, 4, "fp32"), ROUND) for N in (50, 64, 100))]
    # On paper every written byte counts; the library lets the last of them stay in the cache.
    real = [replace(machine, l2_bytes=0) for machine in MACHINES]
    large = [(job, machine) for machine in real for job in (add(2**28), product(4096, 4096, 4096, 2, "bf16"))]
    for name, truth in (("floor_us", floor_us), ("roof", bound)):
        for job, machine in small + large:
            given = {
                "n_bytes": job.n_bytes,
                "flops": job.flops,
                "gb_per_s": machine.bandwidth_gb_per_s,
                "tflops": machine.peak_tflops[job.math],
            }
            where = f"{job.name}, on {machine.name}"
            found.append({"call": name, "with": given, "expect": truth(job, machine), "job": where})
    for floor, measured in ((300, 400), (1, 8), (5, 5)):
        given = {"floor_us": floor, "measured_us": measured}
        found.append(
            {
                "call": "percent_of_peak",
                "with": given,
                "expect": 100.0 * floor / measured,
                "job": f"a run of {measured} units of time with a floor of {floor}",
            }
        )
    return found


def drawn(draw: random.Random) -> list[dict]:
    """All functions once more, with numbers that nobody announced: sides of 1, no operations, jobs beside the ridge."""
    found = []
    for N in sorted(draw.randrange(2 ** draw.randint(1, 40)) for _ in range(4)):
        found += [
            {"call": name, "with": {"N": N}, "expect": due, "job": f"adding two lists of {N} numbers"}
            for name, due in (("add_bytes", 12 * N), ("add_flops", N))
        ]
    for size in (1, 2, 4, 8):
        for _ in range(3):
            M, N, K = (draw.choice((1, draw.randint(2, 99), draw.randint(100, 99_999))) for _ in range(3))
            job = product(M, N, K, size, "fp32")
            given = {"M": M, "N": N, "K": K}
            what = f"a product of {M}×{K} and {K}×{N}"
            found += [
                {"call": "product_flops", "with": given, "expect": job.flops, "job": what},
                {
                    "call": "product_bytes",
                    "with": {**given, "size": size},
                    "expect": job.n_bytes,
                    "job": what,
                },
            ]
    cards = [(draw.uniform(20, 9000), draw.uniform(0.1, 3000)) for _ in range(5)]
    for gb_per_s, tflops in [(draw.uniform(0.1, 0.9), draw.uniform(0.001, 0.009)), *cards]:
        ridge = tflops * 1e3 / gb_per_s
        # Beside the ridge, a hair from it, far from it, and without any operation.
        for side in (0.0, 0.01, 0.9, 0.99, 1 - 1e-5, 1 + 1e-5, 1.01, 1.1, 1000.0):
            n_bytes = draw.randint(10**6 if abs(side - 1) > 1e-3 else 10**10, 10**11)
            flops = int(side * ridge * n_bytes)
            given = {"n_bytes": n_bytes, "flops": flops, "gb_per_s": gb_per_s, "tflops": tflops}
            job = f"{n_bytes} bytes and {flops} operations, on a card with {gb_per_s:.6g} GB/s and {tflops:.6g} TFLOP/s"
            us = max(n_bytes / (gb_per_s * 1e3), flops / (tflops * 1e6))
            found += [
                {"call": "floor_us", "with": given, "expect": us, "job": job},
                {"call": "roof", "with": given, "expect": "compute" if side > 1 else "memory", "job": job},
            ]
    # A time below the floor, of a clock that is wrong, gives more than 100.
    bounds = (0.00001, 0.0001), (0.001, 0.02), (0.02, 0.5), (0.5, 0.999), (1.01, 1.5)
    for share in (draw.uniform(low, high) for low, high in bounds):
        measured = draw.uniform(1, 1e4)
        given = {"floor_us": share * measured, "measured_us": measured}
        job = f"a run of {measured:.6g} µs with a floor of {share * measured:.6g}"
        found.append({"call": "percent_of_peak", "with": given, "expect": 100 * share, "job": job})
    return found
