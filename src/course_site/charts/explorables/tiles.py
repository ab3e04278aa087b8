"""Tiles: what the tiles of a matrix multiply ask of an SM and of the card, and what was measured with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course_site.charts.explorables import Data, Knob, Shown, State, box, digits, mark, shape

# The tiles that the ladder was measured with: BM, BN, BK, TM, TN, stages, pad; and the kernels, by their number and
# by their name in the record. A race of shapes gave kernel 11 other tiles; two of them other steps have as well.
SHAPES: dict[str, tuple[tuple[int, ...], tuple[tuple[int, str], ...]]] = {
    "k03": ((32, 32, 32, 1, 1, 1, 0), ((3, "shared_tiles"),)),
    "k04": ((64, 64, 8, 8, 1, 1, 0), ((4, "register_column"),)),
    "k05": ((128, 128, 8, 8, 8, 1, 0), ((5, "register_tile"), (6, "vectorised"))),
    "k07": ((128, 128, 8, 8, 8, 1, 4), ((7, "conflict_free"), (8, "warp_tiles"))),
    "k09": ((128, 128, 8, 8, 8, 2, 4), ((9, "asynchronous"), (11, "small"))),
    "k10": ((128, 256, 8, 16, 8, 3, 4), ((10, "tuned"),)),
    "k11": ((128, 256, 8, 16, 8, 2, 4), ((11, "register_banks"), (12, "persistent"))),
    "square": ((128, 128, 8, 16, 8, 2, 4), ((11, "square"),)),
    "tall": ((256, 128, 8, 16, 8, 2, 4), ((11, "tall"),)),
    "turned": ((128, 256, 8, 8, 16, 2, 4), ((11, "turned"),)),
}
TILE = ("BM", "BN", "BK", "TM", "TN", "stages", "pad")
SIZES = (1, 16, 128, 256, 512, 1000, 1023, 1024, 2048, 4095, 4096, 8192)


def _select(*sizes: int) -> Knob:
    return Knob("select", choices={size: digits(size) for size in sizes})


KNOBS = {
    "shape": Knob("select", choices={"own": "", "near": "", **dict.fromkeys(SHAPES, "")}),
    "M": _select(*SIZES),
    "N": _select(*SIZES),
    "BM": _select(16, 32, 64, 128, 256),
    "BN": _select(16, 32, 64, 128, 256),
    "BK": _select(8, 16, 32, 64),
    "TM": _select(1, 2, 4, 8, 16),
    "TN": _select(1, 2, 4, 8, 16),
    "bytes": Knob("choice", choices={4: "4", 2: "2"}),
    "pad": Knob("choice", choices={0: "0", 4: "4"}),
    "stages": Knob("range", 1, 4),
}
DATA = {
    "sms": ("sms",), "threads": ("threads",), "registers": ("registers",), "shared": ("shared_kib",),  # of card and SM
    "counted": ("registers",),  # registers per thread, by kernel
    "ladder": ("ladder", "of_compute"), "shapes": ("shape", "of_compute"),  # of peak at 4096, by kernel
    "sizes": ("of_compute",), "odd": ("ugly", "of_compute"),  # of peak at other sizes, by kernel and size
}  # fmt: skip
SENTENCES = (
    "fits", "by_shared", "by_registers", "by_threads", "by_blocks", "least", "counted", "carries", "waves",
    "measured", "two", "none", "too_many", "spills", "too_much", "too_wide",
)  # fmt: skip
CASES = (
    {
        "by_shared": ("shared memory",), "by_registers": ("registers",), "by_threads": ("threads",),
        "by_blocks": ("blocks",),
    },
    {"least": ("by hand", "{least} registers"), "counted": ("{registers} registers", "would be {least}")},
    {
        "measured": ("{kernel1} reaches {rate1} of peak",), "none": (),
        "two": ("{kernel1} reaches {rate1} of peak", "{kernel2} {rate2}"),
    },
    {
        "too_many": ("{threads} threads, and 1,024",), "spills": ("{least} numbers", "255 registers"),
        "too_much": ("{shared} KiB",), "too_wide": ("{threads} threads with {least} registers",),
    },
)  # fmt: skip

WARP, BLOCK_MOST, THREAD_MOST, BLOCKS_MOST = 32, 1024, 255, 32
SYSTEM = 1024  # bytes of shared memory that the system keeps for itself in every block
PIECE, QUARTERS = 256, 4  # a warp's registers come in such pieces, out of its quarter of the SM
LOAD = 16  # bytes that one load takes from shared memory, at most

_SCALE, _LEFT, _TOP = 0.46, 32, 58  # of the block tile
_X, _WIDE, _ROWS = 170, 175, 4


def given() -> Mapping[str, Any]:
    """Return the tiles that were measured."""
    return {
        "shapes": {name: {"tile": list(tile), "kernels": list(map(list, kernels))}
                   for name, (tile, kernels) in SHAPES.items()}
    }  # fmt: skip


def work(state: State, data: Data) -> Shown:
    """Shared memory, registers, loads, blocks on an SM and waves over the card; see L4 and L5 for each formula."""
    M, N, BM, BN, BK, TM, TN = (state[name] for name in ("M", "N", "BM", "BN", "BK", "TM", "TN"))
    size, threads = state["bytes"], BM * BN // (TM * TN)
    warps = _up(threads, WARP)
    shared = state["stages"] * BK * (BM + BN + state["pad"]) * size + SYSTEM
    found = _measured(state, data)
    counted = [data["counted"][name]["value"] for _, name, _ in found if name in data["counted"]]
    least = TM * TN + TM + TN
    registers = counted[0] if counted else least
    loads = _up(TM * size, LOAD) + _up(TN * size, LOAD)
    room = {key: data[key]["value"] for key in ("sms", "threads", "registers", "shared")}
    room["shared"] *= 1024
    seats = QUARTERS * int(room["registers"] // QUARTERS // (_up(registers, 8) * PIECE))
    fit = {
        "shared": int(room["shared"] // shared),
        "registers": seats // warps,
        "threads": int(room["threads"] // (WARP * warps)),
        "blocks": BLOCKS_MOST,
    }
    blocks = min(fit.values())
    tiles, places = _up(M, BM) * _up(N, BN), int(blocks * room["sms"])
    rounds = _up(tiles, places) if places else 0
    last = tiles - (rounds - 1) * places
    wrong = (
        "too_many" if threads > BLOCK_MOST
        else "spills" if least > THREAD_MOST
        else "too_much" if not fit["shared"]
        else "too_wide" if not fit["registers"]
        else ""
    )  # fmt: skip
    says = [wrong]
    if not wrong:
        says = ["fits", *(f"by_{what}" for what, count in fit.items() if count == blocks)]
        says += ["counted" if counted else "least", "carries", "waves"]
        says.append(("none", "measured", "two")[len(found)])
    share = TM * TN / (TM * TN + loads)
    texts: dict[str, str | list[str]] = {
        "threads": digits(threads), "warps": digits(warps), "sums": digits(TM * TN), "least": digits(least),
        "registers": digits(registers), "asked": digits(threads * least), "shared": digits(shared / 1024, 2),
        "l2": digits(size * (1 / BM + 1 / BN), 4), "intensity": digits(2 * BM * BN / ((BM + BN) * size), 1),
        "near": digits(size * (TM + TN) / (TM * TN), 2), "load": digits(TM * TN / loads, 1),
        "share": digits(100 * share, 1),
        "blocks": digits(blocks), "occupancy": digits(100 * blocks * WARP * warps / room["threads"], 1),
        "tiles": digits(tiles), "places": digits(places), "waves": digits(tiles / places, 2) if places else "",
        "rounds": digits(rounds), "last": digits(last),
        "full": digits(100 * tiles / (rounds * places), 1) if places else "",
        "stages": digits(state["stages"]),
    }  # fmt: skip
    if counted:
        texts["registers"] = ["counted", next(name for _, name, _ in found if name in data["counted"])]
    for i, (number, _, path) in enumerate(found):
        texts[f"kernel{i + 1}"], texts[f"rate{i + 1}"] = digits(number), path

    # The block tile to scale, the strips that it needs, and a thread's tile in its corner.
    strip, wide, high = BK * _SCALE, BN * _SCALE, BM * _SCALE
    marks = {
        "a": {"d": box(_LEFT - 2 - strip, _TOP, strip, high)},
        "b": {"d": box(_LEFT, _TOP - 2 - strip, wide, strip)},
        "c": {"d": box(_LEFT, _TOP, wide, high)},
        "t": {"d": box(_LEFT, _TOP, TN * _SCALE, TM * _SCALE)},
        "shared": {"text": digits(shared / 1024, 2)}, "registers": {"text": digits(registers)},
        "threads": {"text": digits(threads)}, "waves": {"text": digits(tiles / places, 2) if places else ""},
    }  # fmt: skip
    # How full an SM is, block by block; a pointer at what gives out first. What does not fit at all is hot.
    one = {
        "shared": shared / room["shared"],
        "registers": _up(registers, 8) * PIECE * warps / room["registers"],
        "threads": WARP * warps / room["threads"],
    }
    parts = {"held": "", "over": "", "first": ""}
    for i, (what, part) in enumerate(one.items()):
        y = 22 + 32 * i
        for block in range(blocks):
            parts["held"] += box(_X + block * part * _WIDE, y, part * _WIDE - (1 if blocks < 16 else 0.4), 10)
        if part > 1:
            parts["over"] += box(_X, y, _WIDE, 10)
        if fit[what] == blocks:
            parts["first"] += f"M{_X - 3} {y + 5}l-7 -4v8z"
    # Rounds over the card: all places, and those that have a tile. In the middle of many rounds, one line for the rest.
    parts["taken"], parts["free"] = "", ""
    for row in range(min(rounds, _ROWS)):
        y = 127 + 10 * row
        is_last, is_gap = row == min(rounds, _ROWS) - 1, rounds > _ROWS and row == _ROWS - 2
        if is_gap:
            parts["free"] += f"M{_X} {y + 3.5}h{_WIDE}"
            continue
        parts["free"] += box(_X, y, _WIDE, 7)
        parts["taken"] += box(_X, y, _WIDE * (last / places if is_last else 1), 7)
    return Shown(tuple(says), texts, {**marks, **{name: {"d": d} for name, d in parts.items()}})


def _measured(state: State, data: Data) -> list[tuple[int, str, list[str]]]:
    """Kernels that ran with these tiles on this job, fp32 and square: number, name, and the way to their rate."""
    tile = [state[name] for name in TILE]
    for one in data["given"]["shapes"].values():
        if one["tile"] == tile and state["bytes"] == 4 and state["M"] == state["N"]:
            ways = [(number, name, _way(name, state["N"], data)) for number, name in one["kernels"]]
            return [(number, name, way) for number, name, way in ways if way]
    return []


def _way(name: str, size: int, data: Data) -> list[str]:
    at_4096 = [["ladder", name], ["shapes", name]] if size == 4096 else []
    for way in (*at_4096, ["sizes", name, f"n{size}"], ["odd", name, f"n{size}"]):
        found: Any = data
        for part in way:
            found = found.get(part, {})
        if found:
            return way
    return []


def _up(a: float, b: float) -> int:
    return int(-(-a // b))


def draw(data: Data, marks: Mapping[str, Mapping[str, str]]) -> tuple[float, str]:
    """Draw on the left the block tile, on the right an SM that fills, and the rounds over the card."""
    parts = [
        shape("text", "a block tile of C, its strips of A", x=0, y=10),
        shape("text", "and B, and one thread's tile", x=0, y=23),
        mark("path", "a", marks, css="cold"),
        mark("path", "b", marks, css="cold"),
        mark("path", "c", marks, css="made"),
        mark("path", "t", marks, css="used"),
        mark("path", "held", marks, css="waste"),
        mark("path", "over", marks, css="used"),
        mark("path", "first", marks, css="used"),
    ]
    for i, (what, unit) in enumerate([("shared", "KiB of shared memory"), ("registers", "registers per thread"),
                                      ("threads", "threads")]):  # fmt: skip
        parts += [
            shape("path", d=box(_X, 22 + 32 * i, _WIDE, 10), css="outline"),
            shape("text", f"a block: {unit}" if what != "registers" else unit, x=_X, y=18 + 32 * i),
            mark("text", what, marks, x=_X + _WIDE, y=18 + 32 * i, text_anchor="end", css="strong"),
        ]
    parts += [
        shape("text", "waves over the card", x=_X, y=121),
        mark("text", "waves", marks, x=_X + _WIDE, y=121, text_anchor="end", css="strong"),
        mark("path", "taken", marks, css="cold"),
        mark("path", "free", marks, css="outline"),
    ]
    return 178, "".join(parts)
