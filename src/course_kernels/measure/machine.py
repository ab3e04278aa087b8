"""Dense peaks and bandwidth by the data sheets of the cards we have a source for.

Dense means without 2:4 sparsity, by which a vendor's largest figures are larger. A card without an entry can still
be measured; its results then have no percent of peak.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Multiprocessors:
    """Structure and clock of a card's multiprocessors: the limits of a rate in each clock.

    Attributes:
        count: multiprocessors of the card.
        fp32_lanes: of one; a multiply-add in each clock is two operations a lane.
        load_bytes: what one takes in at most in each clock, from shared memory, from L1, or past it.
        tensor_flops: of one, dense, in each clock, by arithmetic.
        max_mhz: the highest clock.
        sources: keys in docs/bibliography.toml.
    """

    count: int
    fp32_lanes: int
    load_bytes: int
    tensor_flops: Mapping[str, float]
    max_mhz: float
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Machine:
    """One GPU model.

    Attributes:
        name: as NVIDIA calls the product.
        slug: short name, part of file names.
        pattern: regular expression that the driver's name for the card must match as a whole.
        bandwidth_gb_per_s: device memory, reads and writes together, GB = 1e9 bytes.
        peak_tflops: dense peak by arithmetic: "bf16", "fp16", "fp32" (no tensor cores), "tf32", "fp8".
        l2_bytes: L2 cache; a kernel's last writes may stay there and never reach memory.
        source: key in docs/bibliography.toml.
        multiprocessors: what limits a rate in each clock; None where we have no source.
    """

    name: str
    slug: str
    pattern: str
    bandwidth_gb_per_s: float
    peak_tflops: Mapping[str, float]
    l2_bytes: int
    source: str
    multiprocessors: Multiprocessors | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys in docs/bibliography.toml of everything that stands here."""
        return (self.source, *(self.multiprocessors.sources if self.multiprocessors else ()))


HOPPER_SXM = {"bf16": 989.0, "fp16": 989.0, "fp32": 67.0, "tf32": 494.5, "fp8": 1979.0}

# 32 banks of 4 bytes. What comes past L1 takes the same way into the registers; how much narrower the port to L2 is,
# no source of ours says, so L2 is held against this as well.
LOAD_BYTES = 128

HOPPER_SMS = Multiprocessors(
    132,
    128,
    LOAD_BYTES,
    {"bf16": 4096.0, "fp16": 4096.0, "tf32": 2048.0, "fp8": 8192.0},
    1980.0,
    ("lockwood-h100", "nvidia-tensor-rate", "nvidia-shared-load"),
)
AMPERE_SMS = Multiprocessors(
    108,
    64,
    LOAD_BYTES,
    {"bf16": 2048.0, "fp16": 2048.0, "tf32": 1024.0},
    1410.0,
    ("nvidia-tensor-rate", "nvidia-shared-load"),
)

MACHINES = (
    # The driver reports 60 MiB of L2 on the H200. It only ever lowers a floor, so the larger figure is the safe one.
    Machine(
        "NVIDIA H200 SXM", "h200", r"NVIDIA H200", 4800.0, HOPPER_SXM, 60 * MIB, "nvidia-h200", HOPPER_SMS
    ),
    # The PCIe and NVL cards of the same generation have other peaks and other names.
    Machine(
        "NVIDIA H100 SXM",
        "h100",
        r"NVIDIA H100 80GB HBM3",
        3350.0,
        HOPPER_SXM,
        50 * MIB,
        "nvidia-h100",
        HOPPER_SMS,
    ),
    Machine(
        "NVIDIA A100 SXM 80 GB",
        "a100",
        r"NVIDIA A100-SXM4-80GB",
        2039.0,
        {"bf16": 312.0, "fp16": 312.0, "fp32": 19.5, "tf32": 156.0},
        40 * MIB,
        "nvidia-a100",
        AMPERE_SMS,
    ),
    Machine(
        "NVIDIA L40S",
        "l40s",
        r"NVIDIA L40S",
        864.0,
        {"bf16": 362.0, "fp16": 362.0, "fp32": 91.6, "tf32": 183.0, "fp8": 733.0},
        96 * MIB,
        "nvidia-l40s",
    ),
    Machine(
        "NVIDIA B200 SXM",
        "b200",
        r"NVIDIA B200",
        8000.0,
        {"bf16": 2250.0, "fp16": 2250.0, "fp32": 80.0, "tf32": 1125.0, "fp8": 4500.0},
        126 * MIB,
        "nvidia-b200",
    ),
)


def machine_for(gpu_name: str) -> Machine | None:
    """Return the data sheet of a card by the name its driver gives; None where we have no source."""
    for machine in MACHINES:
        if re.fullmatch(machine.pattern, gpu_name.strip()):
            return machine
    return None
