"""Blocks that show every kernel of the library at once: under the roofs, by shares, in tables, and who is missing."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from course_site.charts import every_kernel
from course_site.charts.every_kernel import Ceiling, Mark
from course_site.charts.plots import short
from course_site.pages.block_settings import TEXT, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.pages.urls import Address, address_from
from course_site.site.kernels import FOLDER, Run, runs, untimed, words_of
from course_site.site.render.writer import Writer, div
from course_site.values.values import MISSING

_CHART = {"title": TEXT, "alt": TEXT, "caption?": TEXT}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = 2**16  # from here on a power of two is written as one


def kernels(writer: Writer, block: Block) -> str:
    """Return one of `SHOWN`, made of every record of this edition."""
    if block.argument not in SHOWN:
        raise DirectiveError(f"unknown; known: {', '.join(SHOWN)}")
    return SHOWN[block.argument](writer, block)


def _roofline(writer: Writer, block: Block) -> str:
    def draw(found: Sequence[Run], title: str, alt: str, key: str) -> str:
        machine = found[0].machine
        roofs = {run.leaf.math for run in found if run.intensity and run.roof != "HBM"}
        highest = tuple(_ceilings({m: machine.peak_tflops[m] for m in roofs}))
        marks = tuple(_marks(writer, found))
        return every_kernel.draw_under_roofs(
            title, marks, highest, machine.bandwidth_gb_per_s, alt=alt, key=key
        )

    return _chart(writer, block, draw)


def _ceilings(peaks: Mapping[str, float]) -> Iterator[Ceiling]:
    """Yield the peaks of arithmetic, the highest first; those that are equal are one line."""
    for tflops in sorted(set(peaks.values()), reverse=True):
        names = sorted(_in_words(name) for name in peaks if peaks[name] == tflops)
        units = names[0].partition(" ")[2]
        if all(name.partition(" ")[2] == units for name in names):
            names = [", ".join(name.partition(" ")[0] for name in names) + f" {units}".rstrip()]
        yield Ceiling(", ".join(names), tflops)


def _shares(writer: Writer, block: Block) -> str:
    def draw(found: Sequence[Run], title: str, alt: str, key: str) -> str:
        return every_kernel.draw_shares(title, tuple(_marks(writer, found)), alt=alt, key=key)

    return _chart(writer, block, draw)


def _chart(writer: Writer, block: Block, draw: Any) -> str:
    settings = read(block.text, _CHART)
    title, alt = (writer.plain(settings[key]) for key in ("title", "alt"))
    if MISSING in alt:  # it tells of kernels that this card has not run
        alt = title
    found = runs(writer.course)
    if not found:
        return div("banner waiting", "A chart will appear here once the kernels are measured.")
    try:
        svg = draw(found, title, alt, f"{writer.page.id}-{len(writer.out.slots)}")
    except ValueError as error:
        raise DirectiveError(str(error)) from None
    return writer.figure(svg, "chart", settings.get("caption", ""), alt)


def _marks(writer: Writer, found: Sequence[Run]) -> Iterator[Mark]:
    address = _addresses(writer)
    several = {
        run.problem for run in found if any(run.roof != o.roof for o in found if o.problem == run.problem)
    }
    for run in found:
        problem = words_of(run.problem)
        yield Mark(
            group=f"{run.problem} {run.roof}",
            label=f"{problem}, {run.roof}" if run.problem in several else problem,
            roof=_in_words(run.roof),
            name=run.words,
            kind=run.kind,
            intensity=run.intensity,
            tflops=run.leaf.flops / run.leaf.median_us / 1e6,
            counted=run.counted_intensity,
            share=run.of_peak,
            ladder=int(run.kernel[1:3]) if run.is_ours else 0,
            tip=_tip(run),
            href=address(run.taught) or "",
        )


def _tip(run: Run) -> str:
    said = f"{run.problem}/{run.kernel}, {run.kind}: {run.of_peak:.1%} of {_in_words(run.roof)}"
    if run.intensity:
        said += f", {short(run.leaf.flops / run.leaf.median_us / 1e6)} TFLOP/s at {short(run.intensity)} FLOP per byte"
    if run.counted_intensity:
        said += f", {short(run.counted_intensity)} by counted bytes"
    return said


def _in_words(roof: str) -> str:
    return {"HBM": "HBM", "fp32": "fp32 CUDA cores"}.get(roof, f"{roof} tensor cores")


def _addresses(writer: Writer) -> Address:
    pages = {page.path.as_posix(): page for page in writer.course.pages}
    return address_from(writer.page.path.as_posix(), pages)


def _tables(writer: Writer, block: Block) -> str:
    """Return a heading and a table for every problem, the kernels of each by their share."""
    read(block.text, {})
    parts = []
    for problem, members in groupby(runs(writer.course), key=lambda run: run.problem):
        lines = [
            "| kernel | workload | reached | of its roof |",
            "| --- | --- | ---: | ---: |",
        ]
        for run in members:
            rate = f"{{{{ {run.value}.gb_per_s:.0f }}}} GB/s"
            if run.roof != "HBM":
                rate = f"{{{{ {run.value}.tflops:.{1 if run.of_peak > 0.01 else 2}f }}}} TFLOP/s"
            share = f"{{{{ {run.value}.of_peak:.{1 if run.of_peak > 0.01 else 2}% }}}}"
            cells = [f"{_link(writer, run)}, {run.kind}", _workload(run), rate, f"{share} of {run.roof}"]
            lines.append(f"| {' | '.join(cells)} |")
        parts.append(f"### {words_of(problem)}\n\n" + writer.text("\n".join(lines)))
    return "\n\n".join(parts)


def _link(writer: Writer, run: Run) -> str:
    """Return a link to where a kernel is taught, as a page's own Markdown would write it."""
    return f"[{run.words}]({posixpath.relpath(run.taught, writer.page.path.parent.as_posix())})"


def _workload(run: Run) -> str:
    dims = run.leaf.workload["dims"]
    sizes = [
        f"{name}\N{NO-BREAK SPACE}{_size(value)}"
        for name, value in dims.items()
        if not isinstance(value, bool)
    ]
    return ", ".join([*sizes, *(name for name, value in dims.items() if value is True)])


def _size(value: int) -> str:
    is_power = value >= _POWER and not value & (value - 1)
    return f"2{str(value.bit_length() - 1).translate(_RAISED)}" if is_power else str(value)


def _missing(writer: Writer, block: Block) -> str:
    """Return the kernels that no record of this edition times."""
    read(block.text, {})
    lines = [f"- `{FOLDER}/{kernel}.py`" for kernel in untimed(writer.course)]
    return "\n".join(lines) or "None: every kernel of the library is timed."


SHOWN = {"roofline": _roofline, "shares": _shares, "tables": _tables, "untimed": _missing}
