"""What the data sheets promise: dense peaks and bandwidth of the cards we have a source for.

Dense means without 2:4 sparsity, which doubles the figure a vendor prints largest. A card without an entry
can still be measured; its results then have no percent of peak.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MIB = 2**20


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
    """

    name: str
    slug: str
    pattern: str
    bandwidth_gb_per_s: float
    peak_tflops: Mapping[str, float]
    l2_bytes: int
    source: str


HOPPER_SXM = {"bf16": 989.0, "fp16": 989.0, "fp32": 67.0, "tf32": 494.5, "fp8": 1979.0}

MACHINES = (
    # The driver reports 60 MiB of L2 on the H200. It only ever lowers a floor, so the larger figure is the safe one.
    Machine("NVIDIA H200 SXM", "h200", r"NVIDIA H200", 4800.0, HOPPER_SXM, 60 * MIB, "nvidia-h200"),
    # The PCIe and NVL cards of the same generation have other peaks and other names.
    Machine("NVIDIA H100 SXM", "h100", r"NVIDIA H100 80GB HBM3", 3350.0, HOPPER_SXM, 50 * MIB, "nvidia-h100"),
    Machine(
        "NVIDIA A100 SXM 80 GB",
        "a100",
        r"NVIDIA A100-SXM4-80GB",
        2039.0,
        {"bf16": 312.0, "fp16": 312.0, "fp32": 19.5, "tf32": 156.0},
        40 * MIB,
        "nvidia-a100",
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
    """The data sheet of a card by the name its driver gives; None where we have no source."""
    for machine in MACHINES:
        if re.fullmatch(machine.pattern, gpu_name.strip()):
            return machine
    return None
