"""Chips of which nothing runs here: what is printed about them, as data, each number with its source and its date.

Nobody here has measured or compiled any of this. Of chips whose compiler is public `sheets` has the peaks, of NVIDIA's
cards `course_kernels.measure.machine`.

    python -m course_chips.cited groq_lpu
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course_kernels.measure import quantity
from course_kernels.measure.record_types import Quantity


@dataclass(frozen=True)
class Figure:
    """One number as somebody prints it.

    Attributes:
        value: in `unit`.
        unit: as it is printed: "TFLOP/s", "GB/s", "GB", "GiB", "Gbit/s", "GHz"; "1" for a count.
        source: a key in docs/bibliography.toml.
        dated: year, or year and month, of what the source says.
    """

    value: float
    unit: str
    source: str
    dated: str


@dataclass(frozen=True)
class Chip:
    """One chip, or what is sold as one.

    Attributes:
        title: its name.
        figures: by the name under which a page has it. Peaks are dense. What nobody prints is not there.
    """

    title: str
    figures: Mapping[str, Figure]

    @property
    def sources(self) -> tuple[str, ...]:
        """Keys in docs/bibliography.toml of everything that stands here, each once."""
        return tuple(dict.fromkeys(figure.source for figure in self.figures.values()))


_NKI = ("neuron-nki-arch", "2025-12")
_HOT_CHIPS = ("kaplan-gaudi3", "2024-08")
_PORTS = ("gaudi-network", "2026")
_WAFER = ("argonne-cerebras", "2024-11")

CHIPS: dict[str, Chip] = {
    "groq_lpu": Chip(
        "Groq LPU, the first",
        {
            "fp16_tflops": Figure(188.0, "TFLOP/s", "techpowerup-groq", "2024-02"),
            "memory_mb": Figure(230.0, "MB", "techpowerup-groq", "2024-02"),
            "gb_per_s": Figure(80_000.0, "GB/s", "techpowerup-groq", "2024-02"),
            "clock_mhz": Figure(900.0, "MHz", "abts2020", "2020"),
        },
    ),
    "groq_3": Chip(
        "Groq 3 LPU",
        {
            "fp8_tflops": Figure(1200.0, "TFLOP/s", "register-lpx", "2026-03"),
            "memory_mb": Figure(500.0, "MB", "register-lpx", "2026-03"),
            "gb_per_s": Figure(150_000.0, "GB/s", "register-lpx", "2026-03"),
            "in_a_rack": Figure(256.0, "1", "register-lpx", "2026-03"),
        },
    ),
    "wse3": Chip(
        "Cerebras WSE-3",
        {
            "cores": Figure(900_000.0, "1", *_WAFER),
            "memory_gb": Figure(44.0, "GB", *_WAFER),
            "gb_per_s": Figure(21e6, "GB/s", *_WAFER),
            "door_gbit_per_s": Figure(1200.0, "Gbit/s", *_WAFER),
            "numbers_at_once": Figure(8.0, "1", "nextplatform-wse3", "2024-03"),
            "ai_pflops": Figure(125.0, "PFLOP/s", "tomshardware-wse3", "2024-03"),
            "said_tokens_per_s": Figure(1800.0, "tokens/s", "register-wafer", "2024-08"),
        },
    ),
    "gaudi3": Chip(
        "Intel Gaudi 3",
        {
            "bf16_tflops": Figure(1677.0, "TFLOP/s", "bekman-accelerators", "2026-08"),
            "paper_bf16_tflops": Figure(1835.0, "TFLOP/s", *_HOT_CHIPS),
            "vector_tflops": Figure(28.7, "TFLOP/s", *_HOT_CHIPS),
            "memory_gb": Figure(128.0, "GB", *_HOT_CHIPS),
            "gb_per_s": Figure(3670.0, "GB/s", *_HOT_CHIPS),
            "mme_mhz": Figure(1600.0, "MHz", "bekman-accelerators", "2026-08"),
            "mme_side": Figure(256.0, "1", "bekman-accelerators", "2026-08"),
            "engines": Figure(8.0, "1", *_HOT_CHIPS),
            "vector_cores": Figure(64.0, "1", *_HOT_CHIPS),
            "ports_in": Figure(21.0, "1", *_PORTS),
            "ports_out": Figure(3.0, "1", *_PORTS),
            "port_gbit_per_s": Figure(200.0, "Gbit/s", *_PORTS),
        },
    ),
    "trainium1": Chip(
        "AWS Trainium",
        {
            "bf16_tflops": Figure(191.0, "TFLOP/s", "neuron-trainium2", "2026"),
            "memory_gib": Figure(32.0, "GiB", *_NKI),
            "gb_per_s": Figure(820.0, "GB/s", *_NKI),
            "cores": Figure(2.0, "1", *_NKI),
            "array": Figure(128.0, "1", *_NKI),
            "clock_ghz": Figure(2.8, "GHz", *_NKI),
            "rows_at_most": Figure(512.0, "1", *_NKI),
            "cycles_at_least": Figure(64.0, "cycles", *_NKI),
        },
    ),
    "inferentia2": Chip(
        "AWS Inferentia2",
        {
            "bf16_tflops": Figure(190.0, "TFLOP/s", "neuron-inferentia2", "2026"),
            "memory_gib": Figure(32.0, "GiB", *_NKI),
            "gb_per_s": Figure(820.0, "GB/s", *_NKI),
        },
    ),
    "trainium2": Chip(
        "AWS Trainium2",
        {
            "bf16_tflops": Figure(667.0, "TFLOP/s", "neuron-trainium2", "2026"),
            "memory_gib": Figure(96.0, "GiB", "neuron-trainium2", "2026"),
            "gb_per_s": Figure(2900.0, "GB/s", "neuron-trainium2", "2026"),
        },
    ),
    "trainium3": Chip(
        "AWS Trainium3",
        {
            "bf16_tflops": Figure(671.0, "TFLOP/s", "neuron-trainium3", "2025-12"),
            "memory_gib": Figure(144.0, "GiB", "neuron-trainium3", "2025-12"),
            "gb_per_s": Figure(4900.0, "GB/s", "neuron-trainium3", "2025-12"),
        },
    ),
    "m5_max": Chip(
        "Apple M5 Max",
        {
            "memory_gb": Figure(128.0, "GB", "macrumors-m5", "2026-03"),
            "gb_per_s": Figure(614.0, "GB/s", "macrumors-m5", "2026-03"),
        },
    ),
}


def told(chip: str, *names: str) -> dict[str, Quantity]:
    """Return a chip's figures for `record`, each marked as given: `record(lpu=told("groq_lpu"))`.

    Args:
        chip: a name in `CHIPS`.
        names: those of its figures that are wanted, none for all.
    Returns:
        The figures by their names, in the units in which they are printed.
    Raises:
        KeyError: there is no such chip, or no such figure of it.
    """
    figures = CHIPS[chip].figures
    wanted = {name: figures[name] for name in names or figures}
    return {name: quantity(one.value, one.unit, how="given") for name, one in wanted.items()}


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the chips that are named, or of all; return 2 for a name that is none."""
    unknown = [name for name in arguments if name not in CHIPS]
    if unknown:
        print(f"no such chip: {', '.join(unknown)}; known are {', '.join(CHIPS)}", file=sys.stderr)
        return 2
    for name in arguments or CHIPS:
        print(f"{CHIPS[name].title}: cited, nothing of it was measured or compiled here")
        for what, one in CHIPS[name].figures.items():
            unit = "" if one.unit == "1" else f" {one.unit}"
            print(f"  {what:18} {one.value:>9,.10g}{unit:10} {one.source}, {one.dated}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
