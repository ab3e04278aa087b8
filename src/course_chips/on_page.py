"""A chip's record as a page records it: counts by name, texts, and what is sold under that name.

A page that shows a record depends on it and on all that decides it. Where the record does not hold any more the page
fails, and with it the build.
"""

from __future__ import annotations

from typing import Any

from course_chips import kept, listing, stale
from course_chips.sheets import SHEETS
from course_kernels.measure import quantity, text


class DoesNotHold(ValueError):
    """A record of a chip that what decides it has left behind; one line says what, and the command."""


def told(chip: str, **groups: str | tuple[str, ...]) -> dict[str, Any]:
    """Return what is known of a chip, for `record`: `record(gfx942=told("gfx942", products="v_mfma"))`.

    Args:
        chip: its name in records/chips.
        groups: names for instructions, by how those begin; each kernel has the count of each.
    Returns:
        title, compilers and command, which are texts; sheet, where a vendor has published one; ran, what was worked out
        on the CPU, and refused, what a compiler said of a source that it did not take, where a record has that; and by
        its name each kernel: lines, every group, source and excerpt, and what its compiler says of registers, bytes and
        layouts.
    Raises:
        ValueError: there is no such chip; a group has the name of something else, or is in no kernel of any chip of
            this kind.
        DoesNotHold: its record does not hold.
        FileNotFoundError: it has none.
    """
    if why := stale.reasons(chip):
        path = kept.path_of(chip).relative_to(kept.ROOT).as_posix()
        raise DoesNotHold(f"{path} does not hold: {'; '.join(why)}; make it anew: nox -s chips -- {chip}")
    record = kept.read(chip)
    kernels = {name: _kernel(one, groups) for name, one in record["kernels"].items()}
    for name, begins in groups.items():
        if not any(one[name].value for one in kernels.values()) and not _is_somewhere(chip, begins):
            raise ValueError(f"{name}: nothing in the code for chips of this kind begins with {begins!r}")
    made_by = "\n".join(f"{name} {version}" for name, version in record["packages"].items())
    found = {"title": text(record["title"]), "compilers": text(made_by), "command": text(record["command"])}
    if chip in SHEETS:
        sheet = SHEETS[chip]
        found["sheet"] = {
            "bf16_tflops": quantity(sheet.bf16_tflops, "TFLOP/s", how="given"),
            "memory_gb": quantity(sheet.memory_gb, "GB", how="given"),
            "gb_per_s": quantity(sheet.gb_per_s, "GB/s", how="given"),
        }
    if "ran" in record:
        found["ran"] = _numbers(record["ran"])
    if record.get("refused"):
        found["refused"] = {name: text(one["said"]) for name, one in record["refused"].items()}
    return found | kernels


def _numbers(said: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a record, by the same names; a name ends with its unit."""
    return {
        name: _numbers(one) if isinstance(one, dict) else quantity(one, _unit(name), how="computed")
        for name, one in said.items()
    }


def _unit(name: str) -> str:
    return {"bytes": "B", "ns": "ns"}.get(name.rpartition("_")[2], "1")


def _is_somewhere(chip: str, begins: str | tuple[str, ...]) -> bool:
    """Return whether a chip of the same kind has it: what this one lacks is counted as 0, a slip of the pen is not."""
    like = [other for other, (module, _) in kept.CHIPS.items() if module == kept.CHIPS[chip][0]]
    every = (begins,) if isinstance(begins, str) else begins
    return any(
        listing.beginning(one["counts"], *every)
        for other in like
        for one in kept.read(other)["kernels"].values()
    )


def _kernel(said: dict[str, Any], groups: dict[str, str | tuple[str, ...]]) -> dict[str, Any]:
    found: dict[str, Any] = {"lines": quantity(said["lines"], how="counted")}
    found["source"] = text(said["source"])
    found["excerpt"] = text("\n".join(said["excerpt"]))
    for name, number in said.get("resources", {}).items():
        found[name] = quantity(number, _unit(name), how="given")
    if "layouts" in said:
        found["layouts"] = text("\n".join(said["layouts"]))
    for name, begins in groups.items():
        if name in found:
            raise ValueError(f"{name}: a record has something of that name already")
        every = (begins,) if isinstance(begins, str) else begins
        found[name] = quantity(listing.beginning(said["counts"], *every), how="counted")
    return found
