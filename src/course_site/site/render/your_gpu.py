"""Stations at which a reader runs kernels on a GPU of their own, in the page: `/// your_gpu | begin`, NAME, `end`.

`begin` carries what the scripts need: the kernels' sources in WGSL, found by where they lie, and the units and heads of
their tables. A station has a question with its answers, which are made of their bounds: exhaustive, and none twice.
What is said `after` it is folded away. `end` is the place of the drawing. The scripts do the rest:
docs/assets/js/your_gpu/.
"""

from __future__ import annotations

import html
from itertools import pairwise
from typing import Any

from course_site.pages.block_settings import TEXT, WORD, Shape, one_of, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.sessions.run_view import embedded
from course_site.site.kernels import FOLDER
from course_site.site.render.writer import Writer, details, div

SCRIPTS = ("words", "arithmetic", "problems", "look", "device", "page")
STYLE = "assets/css/your_gpu.css"
UNITS = {"times": "times", "operations": "operations a byte", "percent": "% of your roof"}
_STATION: dict[str, Shape] = {"ask": TEXT, "bounds": [WORD], "unit": one_of(*UNITS), "after": TEXT}
_BEGIN: dict[str, Shape] = {"heads": [TEXT], "gb": TEXT, "gflop": TEXT, "across": TEXT, "without": TEXT}


def your_gpu(writer: Writer, block: Block) -> str:
    """Return one part of the page: its beginning, a station, or its end."""
    if block.argument == "begin":
        return _begin(writer, block)
    if block.argument == "end":
        return writer.slot('<div class="gpu-end"></div>' + _scripts(writer))
    return _station(writer, block)


def choices(bounds: list[float], unit: str) -> list[str]:
    """Return the answers between bounds that go up.

    >>> choices([2, 6], "times")
    ['less than 2 times', '2 to less than 6 times', '6 times or more']
    """
    if sorted(set(bounds)) != bounds or not bounds:
        raise DirectiveError("`bounds:` go up, and none stands there twice")
    word = UNITS[unit]
    between = [f"{low:g} to less than {high:g} {word}" for low, high in pairwise(bounds)]
    return [f"less than {bounds[0]:g} {word}", *between, f"{bounds[-1]:g} {word} or more"]


def _settings(block: Block) -> dict[str, Any]:
    settings = read(block.text, _STATION)
    if not all(isinstance(bound, (int, float)) for bound in settings["bounds"]):
        raise DirectiveError("`bounds:` are numbers")
    return settings | {"choices": choices(settings["bounds"], settings["unit"])}


def _station(writer: Writer, block: Block) -> str:
    settings, name = _settings(block), html.escape(block.argument)
    radios = "".join(
        f'<li><label><input type="radio" name="gpu-{name}" value="{n}"><span>{html.escape(text)}</span></label></li>'
        for n, text in enumerate(settings["choices"])
    )
    asks = writer.question(settings["ask"], element="legend", guesses=True)
    form = writer.slot(f'<fieldset>{asks}<div class="choices"><ul>{radios}</ul></div></fieldset>')
    after = details("fold after", "Why, and what our card did", writer.text(settings["after"]))
    bounds = " ".join(f"{bound:g}" for bound in settings["bounds"])
    attributes = f' data-station="{name}" data-bounds="{bounds}" data-unit="{UNITS[settings["unit"]]}"'
    return div("predict gpu-station", f"{form}\n\n{after}", attributes)


def _begin(writer: Writer, block: Block) -> str:
    settings = read(block.text, _BEGIN)
    root = writer.course.root
    plan = {
        "kernels": {
            f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8")
            for path in sorted((root / FOLDER).glob("*/k[0-9][0-9]_*.wgsl"))
        },
        "heads": settings["heads"],
        "units": {name: settings[name] for name in ("gb", "gflop", "across")},
    }
    without = html.escape(writer.plain(settings["without"]))
    return writer.slot(
        f'<div class="gpu-begin" data-lines="0"><link rel="stylesheet" href="{writer.shared(STYLE)}">'
        f'<p class="wrong without">{without}</p>'
        f'<script type="application/json">{embedded(plan)}</script></div>'
    )


def _scripts(writer: Writer) -> str:
    files = (f"assets/js/your_gpu/{name}.js" for name in SCRIPTS)
    return "".join(f'<script src="{writer.shared(file)}" defer></script>' for file in files)
