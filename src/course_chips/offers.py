"""Chips that are offered, by four numbers of their data sheets with their sources, and three models to serve.

Peaks are dense, in bf16. What a vendor does not print, or nobody here could read, is None and stays out of a table.
Prices are not here: they differ by contract and by day, and a reader has their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from course_chips import cited
from course_chips.sheets import SHEETS
from course_kernels.measure import quantity
from course_kernels.measure.machine import MACHINES
from course_kernels.measure.record_types import Quantity

USABLE = 0.9  # of a chip's memory, for weights and caches: an assumption; the rest is for all else
GB_OF = {"GB": 1.0, "GiB": 1.073741824, "MB": 1e-3}
TABLES = "bekman-accelerators"  # capacity and power of most chips; each row there names its vendor's page


@dataclass(frozen=True)
class Offer:
    """One chip, as it is sold.

    Attributes:
        name: for a table or a menu.
        bf16_tflops: dense peak.
        memory_gb: as the vendor prints it.
        gb_per_s: of that memory, GB = 1e9 bytes.
        watts: the limit that the vendor prints for it: TDP, TGP or board power.
        sources: keys in docs/bibliography.toml.
    """

    name: str
    bf16_tflops: float
    memory_gb: float
    gb_per_s: float
    watts: float | None
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Model:
    """A decoder of the Llama family, by the sizes that decide what a token costs.

    Attributes:
        name: for a table or a menu.
        layers, width, heads, kv_heads, head_dim, hidden, vocab: as in `course_models.config`.
        sources: keys in docs/bibliography.toml.
    """

    name: str
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden: int
    vocab: int
    sources: tuple[str, ...]

    @property
    def read(self) -> int:
        """Weights that every token is multiplied with: of all layers, and of the head."""
        attention = 2 * self.width * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.width * self.hidden) + self.vocab * self.width

    @property
    def stored(self) -> int:
        """Weights that lie in memory: those, and the table of embeddings."""
        return self.read + self.vocab * self.width

    @property
    def token_bytes(self) -> int:
        """Keys and values of one token, two bytes a number."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2


def _nvidia(slug: str, name: str, memory_gb: float, watts: float | None) -> Offer:
    (card,) = (machine for machine in MACHINES if machine.slug == slug)
    return Offer(
        name, card.peak_tflops["bf16"], memory_gb, card.bandwidth_gb_per_s, watts, (card.source, TABLES)
    )


def _sheet(chip: str, name: str, watts: float | None = None) -> Offer:
    sheet = SHEETS[chip]
    sources = sheet.sources if watts is None else tuple(dict.fromkeys((*sheet.sources, TABLES)))
    return Offer(name, sheet.bf16_tflops, sheet.memory_gb, sheet.gb_per_s, watts, sources)


def _cited(chip: str, name: str, watts: float | None = None) -> Offer:
    figures = cited.CHIPS[chip].figures
    peak = figures.get("bf16_tflops") or figures["fp16_tflops"]
    (memory,) = (one for key, one in figures.items() if key.startswith("memory_"))
    wide = figures["gb_per_s"]
    sources = (peak.source, memory.source, wide.source, *(() if watts is None else (TABLES,)))
    gb = memory.value * GB_OF[memory.unit]
    return Offer(name, peak.value, gb, wide.value, watts, tuple(dict.fromkeys(sources)))


OFFERS = {
    "h200": _nvidia("h200", "H200", 141.0, 700.0),
    "h100": _nvidia("h100", "H100", 80.0, 700.0),
    "a100": _nvidia("a100", "A100 80 GB", 80.0, 400.0),
    "l40s": _nvidia("l40s", "L40S", 48.0, 350.0),
    "b200": _nvidia("b200", "B200", 180.0, 1000.0),
    "a10g": Offer("A10G", 70.0, 24.0, 600.0, None, ("baseten-a10g",)),
    "rtx4090": Offer("RTX 4090", 165.0, 24.0, 1008.0, None, ("rtx-4090",)),
    "mi300x": _sheet("gfx942", "MI300X", 750.0),
    "mi355x": _sheet("gfx950", "MI355X", 1400.0),
    "gaudi3": _cited("gaudi3", "Gaudi 3", 900.0),
    "trainium2": _cited("trainium2", "Trainium2"),
    "tpu_v5e": _sheet("tpu_v5e", "TPU v5e"),
    "tpu_v5p": _sheet("tpu_v5p", "TPU v5p"),
    "tpu_v6e": _sheet("tpu_v6e", "TPU v6e"),
    "tpu_7x": _sheet("tpu_7x", "TPU7x"),
    "groq": _cited("groq_lpu", "Groq LPU"),  # in fp16; its memory is SRAM on the chip
}

MODELS = {
    "m7": Model("7B, as Llama 2", 32, 4096, 32, 32, 128, 11008, 32000, ("verl-llama2",)),
    "m8": Model("8B, as Llama 3.1", 32, 4096, 32, 8, 128, 14336, 128256, ("meta-llama31",)),
    "m70": Model("70B, as Llama 3.1", 80, 8192, 64, 8, 128, 28672, 128256, ("meta-llama31",)),
}


def chips_for(need_gb: float, chip: str) -> int:
    """Return how many chips of a kind hold so much, each with a tenth left for all else."""
    return math.ceil(need_gb / (USABLE * OFFERS[chip].memory_gb))


def offered(*chips: str) -> dict[str, dict[str, Quantity]]:
    """Return the chips' numbers for `record(**offered(…))`, all of them if none is named.

    Returns:
        peak, bandwidth, memory and watts, each by chip; watts of those that have them.
    Raises:
        KeyError: an unknown chip.
    """
    said = {chip: OFFERS[chip] for chip in chips or OFFERS}
    return {
        "peak": {chip: quantity(one.bf16_tflops, "TFLOP/s", how="given") for chip, one in said.items()},
        "bandwidth": {chip: quantity(one.gb_per_s, "GB/s", how="given") for chip, one in said.items()},
        "memory": {chip: quantity(one.memory_gb, "GB", how="given") for chip, one in said.items()},
        "watts": {
            chip: quantity(one.watts, "W", how="given") for chip, one in said.items() if one.watts is not None
        },
    }


def to_serve() -> dict[str, dict[str, Any]]:
    """Return the models' numbers for `record(**to_serve())`: weights read and stored, in billions; cache, in KiB."""
    return {
        "read": {name: quantity(one.read / 1e9) for name, one in MODELS.items()},
        "stored": {name: quantity(one.stored / 1e9) for name, one in MODELS.items()},
        "cache": {name: quantity(one.token_bytes / 1024, "KiB") for name, one in MODELS.items()},
    }
