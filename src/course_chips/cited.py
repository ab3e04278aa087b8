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
}


def told(chip: str) -> dict[str, Quantity]:
    """Return a chip's figures for `record`, each marked as given: `record(lpu=told("groq_lpu"))`.

    Args:
        chip: a name in `CHIPS`.
    Returns:
        The figures by their names, in the units in which they are printed.
    Raises:
        KeyError: there is no such chip.
    """
    return {name: quantity(one.value, one.unit, how="given") for name, one in CHIPS[chip].figures.items()}


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
