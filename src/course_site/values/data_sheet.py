"""The card of a page among the page's names: `gpu.name`, and what its data sheet says, such as `gpu.tb_per_s`."""

from __future__ import annotations

import re

from course_kernels.measure.machine import MACHINES, MIB, Machine

GPU = "gpu"
_MODEL = re.compile(r"(?<![\w.])(?:(?:RTX|GTX) )?(?!\d+[GMT]i?B\b)[A-Za-z]*\d+[A-Za-z]*(?![\w.])")


def short_name(gpu: str) -> str:
    """Return the model alone: H100 of "NVIDIA H100 80GB HBM3"; the whole name where none can be told apart in it."""
    found = _MODEL.search(gpu)
    return found[0] if found else gpu


def sheet_of(machine: Machine) -> dict[str, tuple[float, str]]:
    """Peaks, bandwidth and sizes of a card by the names that prose has for them, each with its unit."""
    sheet: dict[str, tuple[float, str]] = {
        "gb_per_s": (machine.bandwidth_gb_per_s, "GB/s"),
        "tb_per_s": (machine.bandwidth_gb_per_s / 1000, "TB/s"),
        "l2_mib": (machine.l2_bytes / MIB, "MiB"),
    }
    sheet |= {f"{math}_tflops": (peak, "TFLOP/s") for math, peak in machine.peak_tflops.items()}
    return sheet | ({"sms": (machine.multiprocessors.count, "1")} if machine.multiprocessors else {})


# Every name that some card's sheet has.
NAMES = tuple(dict.fromkeys(name for machine in MACHINES for name in sheet_of(machine)))
