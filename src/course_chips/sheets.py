"""Dense peaks and memory of chips that are not here, as their vendors print them, each with its source.

Those of NVIDIA's cards are in `course_kernels.measure.machine`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """One chip, as it is sold.

    Attributes:
        bf16_tflops: dense peak of its matrix units.
        memory_gb: as the vendor prints it.
        gb_per_s: of that memory, GB = 1e9 bytes.
        sources: keys in docs/bibliography.toml.
    """

    bf16_tflops: float
    memory_gb: float
    gb_per_s: float
    sources: tuple[str, ...]


# By the name that a record has; a chip without an entry is shown without these figures.
SHEETS = {
    "tpu_v5e": Sheet(197.0, 16.0, 819.0, ("google-tpu-v5e",)),
    "tpu_v5p": Sheet(459.0, 95.0, 2765.0, ("google-tpu-v5p",)),
    "tpu_v6e": Sheet(918.0, 32.0, 1638.0, ("google-tpu-v6e",)),
    "tpu_7x": Sheet(2307.0, 192.0, 7370.0, ("google-tpu-7x", "bekman-accelerators")),
    "gfx942": Sheet(1307.0, 192.0, 5300.0, ("bekman-accelerators",)),
    "gfx950": Sheet(2500.0, 288.0, 8000.0, ("bekman-accelerators",)),
}
