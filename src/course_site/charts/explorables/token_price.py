"""The price of a token: what a step reads, how long that takes, and what a million tokens come to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, at, box, digits, legend, mark

CHIPS: dict[str | int, str] = {
    "h200": "NVIDIA H200", "h100": "NVIDIA H100", "b200": "NVIDIA B200", "a100": "NVIDIA A100, 80 GB",
    "l40s": "NVIDIA L40S", "rtx4090": "NVIDIA RTX 4090", "a10g": "NVIDIA A10G", "mi300x": "AMD MI300X",
    "mi355x": "AMD MI355X", "gaudi3": "Intel Gaudi 3", "trainium2": "AWS Trainium2", "tpu_v5e": "Google TPU v5e",
    "tpu_v5p": "Google TPU v5p", "tpu_v6e": "Google TPU v6e", "tpu_7x": "Google TPU7x", "groq": "Groq LPU",
}  # fmt: skip
MODELS: dict[str | int, str] = {"m7": "7B", "m8": "8B", "m70": "70B"}
USABLE = 0.9  # of a memory, for weights and caches
MOST = 1e6  # the largest price that a reader may type
# That share a step: fine enough to fill a memory.
READERS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
KNOBS = {
    "chip": Knob("select", choices=CHIPS),
    "model": Knob("choice", choices=MODELS),
    "bits": Knob("choice", choices={16: "16", 8: "8", 4: "4"}),
    "readers": Knob("range", 0, len(READERS) - 1),
    "held": Knob("range", 7, 17),
    "share": Knob("range", 1, 100),
    "busy": Knob("range", 1, 100),
    "drawn": Knob("range", 1, 100),
    "prices": Knob("numbers", 2, 2),
}
# By chip: the data sheet's TFLOP/s, GB/s, GB and W. By model: billions of weights read in a step and stored, KiB of
# cache a token. And what was measured on the page's own card, tokens/s of three engines, and joules a token of one.
DATA: dict[str, tuple[str, ...]] = {
    "peak": ("peak",), "bandwidth": ("bandwidth",), "memory": ("memory",), "watts": ("watts",),
    "read": ("read",), "stored": ("stored",), "cache": ("cache",),
    "alone": ("our_step",), "engine": ("rate",), "together": ("our_step",), "joules": ("token",),
}  # fmt: skip
SENTENCES = (
    "not_prices", "bytes", "arithmetic", "one", "several", "with_power", "without_power", "engine", "step",
)  # fmt: skip
WORDS = ("ms",)  # behind a time
CASES = (
    {"bytes": ("waits for bytes", "{ms} ms"), "arithmetic": ("waits for arithmetic", "{ms} ms")},
    {"one": ("fits on one",), "several": ("{cards} chips",)},
    {"with_power": ("{joules} J",), "without_power": ("prints no power",)},
    {"engine": ("our engine", "{seen} tokens/s", "{drew} J"), "step": ("our step alone", "{seen} tokens/s")},
)
# Where the knobs `readers` and `held` stand for the engine: 16 readers, few tokens each; 1 and 32, 1024 tokens each.
ENGINE, ALONE, TOGETHER = (READERS.index(16), 8), (READERS.index(1), 10), (READERS.index(32), 10)

_WIDE, _HIGH, _TOP, _PITCH = 343.0, 15.0, 36.0, 60.0


def given() -> Mapping[str, Any]:
    """Return the chips' names; all else is the page's."""
    return {str(chip): {"html": name} for chip, name in CHIPS.items()}


def three(value: float) -> str:
    """Return an amount with about three digits, noughts at the end included.

    >>> three(0.0123), three(0.476), three(4.2), three(12.34), three(1234.5)
    ('0.0123', '0.476', '4.20', '12.3', '1,235')
    """
    return digits(
        value,
        0
        if value == 0
        else 4
        if value < 0.1
        else 3
        if value < 1
        else 2
        if value < 10
        else 1
        if value < 100
        else 0,
    )


def work(state: State, data: Data) -> Shown:
    """Return a step by what it must move and multiply, and the bill for a million tokens of such steps."""
    chip, model, bits = state["chip"], state["model"], state["bits"]
    readers, held = READERS[state["readers"]], 2 ** state["held"]
    share, busy = state["share"] / 100, state["busy"] / 100
    hour, electricity = state["prices"]  # of a chip, and of a megawatt hour
    fits = 0 <= hour <= MOST and 0 <= electricity <= MOST
    peak, bandwidth = data["peak"][chip]["value"], data["bandwidth"][chip]["value"]
    memory = data["memory"][chip]["value"]
    watts = data["watts"][chip]["value"] if chip in data["watts"] else 0
    caches = readers * held * data["cache"][model]["value"] * 1024 / 1e9
    stored = data["stored"][model]["value"] * bits / 8 + caches
    cards = math.ceil(stored / (USABLE * memory))
    weights = data["read"][model]["value"] * bits / 8
    moves = (weights + caches) / bandwidth / cards
    multiplies = 2 * data["read"][model]["value"] * readers / (peak * 1e3) / cards
    floor = max(moves, multiplies)
    took = floor / share
    rate = readers / took
    of_floor = 1e6 * floor / readers / 3600 * cards * hour  # for a million tokens
    waits, idles = of_floor / share - of_floor, of_floor / share / busy - of_floor / share
    joules = cards * watts * state["drawn"] / 100 * took / readers
    power = joules / 3600 * electricity
    bill = of_floor + waits + idles + power
    here = data["card"] == chip and model == "m8" and bits == 16
    stands = (state["readers"], state["held"])
    met = {ENGINE: "engine", ALONE: "alone", TOGETHER: "together"}.get(stands, "") if here else ""
    seen = data[met]["value"] if met else 1.0
    says = ["not_prices"]
    if fits:
        says = ["arithmetic" if multiplies > moves else "bytes", "one" if cards == 1 else "several"]
        says.append("with_power" if watts else "without_power")
        if met:
            says.append("engine" if met == "engine" else "step")
    texts: dict[str, str | list[str]] = {
        "readers": digits(readers), "held": digits(held), "share": str(state["share"]),
        "busy": str(state["busy"]), "drawn": str(state["drawn"]), "cards": digits(cards), "ms": three(1e3 * took),
        "floor": three(1e3 * floor), "rate": digits(rate), "gb": digits(weights + caches, 1),
        "stored": digits(stored, 1), "bill": three(bill), "rent": three(of_floor + waits + idles),
        "power": three(power), "joules": three(joules), "paid": three(1e6 / seen / 3600 * hour / busy),
        "chip": ["given", chip], "peak": ["peak", chip], "bandwidth": ["bandwidth", chip],
        "seen": [met or "engine"], "drew": ["joules"],
    }  # fmt: skip
    moved = 0.0 if multiplies > moves else floor  # of a step at its floor, if bytes decide it
    rows = (
        (stored - caches, caches, 0.0, 0.0, cards * memory - stored, 0.0),
        (
            moved * weights / (weights + caches),
            moved * caches / (weights + caches),
            floor - moved,
            took - floor,
            0.0,
            0.0,
        ),
        (0.0, 0.0, of_floor, waits, idles, power),
    )
    unit = data["words"]["ms"]["html"]
    heads = (
        f"memory: {digits(cards * memory, 0 if memory >= 1 else 1)} GB",
        f"a step: {three(1e3 * took)} {unit}",
        f"a million tokens: {three(bill)}",
    )
    notes = (
        f"weights {digits(stored - caches, 1)}, caches {digits(caches, 1)}, free "
        f"{digits(cards * memory - stored, 1)} GB",
        f"at the floor {three(1e3 * floor)}, everything else {three(1e3 * (took - floor))} {unit}",
        f"floor {three(of_floor)}, else {three(waits)}, idle {three(idles)}"
        + (f", power {three(power)}" if watts else ""),
    )
    marks: dict[str, dict[str, str]] = {}
    for row, parts in enumerate(rows):
        total, x = sum(parts), 0.0
        for part, size in enumerate(parts):
            wide = _WIDE * size / total if total > 0 else 0.0
            y = _TOP + _PITCH * row
            marks[f"r{row}{part}"] = {"d": box(x, y, wide, _HIGH) if fits and size > 0 else ""}
            x += wide
        marks[f"h{row}"] = {"text": heads[row] if fits else ""}
        marks[f"n{row}"] = {"text": notes[row] if fits else ""}
    return Shown(tuple(says), texts, marks)


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Return three bars: the memory, a step, the bill."""
    parts = [legend(("cold", "weights"), ("used", "caches"), ("made", "floor"), ("waste", "everything else"))]
    looks = ("cold", "used", "made", "waste", "outline", "point")
    for row in range(3):
        y = _TOP + _PITCH * row
        parts.append(mark("text", f"h{row}", marks, x=0, y=at(y - 5), css="strong"))
        parts += [mark("path", f"r{row}{part}", marks, css=css) for part, css in enumerate(looks)]
        parts.append(mark("text", f"n{row}", marks, x=0, y=at(y + _HIGH + 12)))
    return _TOP + _PITCH * 2 + _HIGH + 16, "".join(parts)
