"""`--code`: one HTML file with a kernel's source, PTX and SASS in step; it asks for no other file and no server."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from course_kernels.line_info import MachineLine, kinds
from course_profile.machine_code import Kernel

HERE = Path(__file__).parent
_At = tuple[int, int]  # the number of a file on the page, and a line of it
# Who did what: tensor cores, the ways to and from memory, spills, and waiting. The rest is arithmetic on addresses.
TELLING = (
    *(
        "HGMMA",
        "QGMMA",
        "IGMMA",
        "HMMA",
        "IMMA",
        "DMMA",
        "UTCHMMA",
        "UTCQMMA",
        "UTCOMMA",
        "FFMA",
        "HFMA2",
        "DFMA",
    ),
    *("MUFU", "F2FP", "UTMALDG", "UTMASTG", "UTMAREDG", "LDGSTS", "LDG", "STG", "ATOMG", "RED", "REDG"),
    *("LDSM", "STSM", "LDS", "STS", "ATOMS", "LDL", "STL", "SHFL", "SYNCS", "BAR", "WARPGROUP", "USETMAXREG"),
)


def page(file: Path, kernels: Sequence[Kernel], missing: Sequence[str], project: Path) -> bytes:
    """Return the page on the kernels of one file.

    Args:
        file: what was asked for; its folder's sources are shown, and those of the project.
        kernels: of it.
        missing: what could not be shown, a line each.
        project: sources below it are shown too, such as headers.
    """
    title = html.escape(f"{file.name}: source, PTX and SASS")
    style, script = ((HERE / f"code_page.{suffix}").read_text(encoding="utf-8") for suffix in ("css", "js"))
    choice = ""
    if len(kernels) > 1:
        options = "".join(f"<option>{html.escape(kernel.name)}</option>" for kernel in kernels)
        choice = f'<label class="choice">Kernel <select>{options}</select></label>'
    notes = "".join(f'<p class="missing">{html.escape(_as_sentence(line))}</p>' for line in missing)
    sections = "".join(_section(number, file, kernel, project) for number, kernel in enumerate(kernels))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<header><h1>{html.escape(file.name)}</h1>{choice}{notes}</header>\n"
        f"<main>{sections}</main>\n<script>\n{script}</script>\n</body>\n</html>\n"
    ).encode()


def _as_sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."


def _section(number: int, file: Path, kernel: Kernel, project: Path) -> str:
    machine = (*kernel.ptx, *kernel.sass)
    named = list(dict.fromkeys(place.file for line in machine for place in line.places))
    shown = _shown(file, named, project)
    order = [*shown, *(name for name in named if name not in shown)]  # files that are shown come first
    numbers = {name: index for index, name in enumerate(order)}
    labels = _labels([shown.get(name, Path(name)) for name in order])
    counts = Counter((numbers[p.file], p.line) for line in kernel.sass if line.name for p in set(line.places))
    made = {(numbers[p.file], p.line) for line in machine for p in line.places}
    sources = "".join(
        f"<h3>{html.escape(label)}</h3>{_source(index, path, counts, made)}"
        for (index, path), label in zip(enumerate(shown.values()), labels, strict=False)
    )
    panes = "".join(
        f'<section class="pane {css}" tabindex="0" aria-label="{name} of {html.escape(kernel.name)}">'
        f"<h2>{name}</h2>{body}</section>"
        for css, name, body in (
            ("source", "Source", sources),
            ("ptx", "PTX", _machine(kernel.ptx, numbers)),
            ("sass", "SASS", _machine(kernel.sass, numbers)),
        )
    )
    tabs = "".join(
        f'<label><input type="radio" name="tab{number}" value="{css}"{" checked" * (css == "sass")}>{name}</label>'
        for css, name in (("ptx", "PTX"), ("sass", "SASS"))
    )
    files, telling = html.escape("|".join(labels)), "|".join(TELLING)
    return (
        f'<article data-files="{files}" data-shown="{len(shown)}" data-telling="{telling}">'
        f'<h2 class="name">{html.escape(kernel.name)}</h2>'
        f"{_facts(kernel, [labels[numbers[name]] for name in order[len(shown) :]])}"
        f'<p class="says" role="status">Point at a line, tap it, or walk with ↑ and ↓: what was made of it is marked. '
        f'Enter keeps it.</p><div class="tabs">{tabs}</div><div class="panes">{panes}</div></article>'
    )


def _facts(kernel: Kernel, elsewhere: Sequence[str]) -> str:
    """Return what the machine code says as a whole: registers, shared memory, spills, how often which instruction."""
    counted = kinds(kernel.sass)
    whole = sum(counted.values())
    placed = sum(bool(line.name and line.places) for line in kernel.sass)
    more = ", and what its launch asks for" if kernel.asks_for_more else ""
    local = f"{kernel.local_bytes:,} bytes" if kernel.local_bytes else "none: nothing spilled"
    facts = {
        "for": kernel.arch,
        "registers of a thread": f"{kernel.registers or 'not said'}",
        "shared memory of a block": f"{kernel.shared_bytes:,} bytes{more}",
        "local memory of a thread": local,
        "instructions": f"{whole:,} of SASS, {sum(bool(line.name) for line in kernel.ptx):,} of PTX",
        "with a line of source": f"{placed:,} of {whole:,}",
    }
    if elsewhere:
        facts["some are from"] = ", ".join(dict.fromkeys(elsewhere)) + ", not shown"
    rows = "".join(f"<div><dt>{name}</dt><dd>{html.escape(said)}</dd></div>" for name, said in facts.items())
    chips = {name: f"<li><code>{html.escape(name)}</code> {count:,}</li>" for name, count in counted.items()}
    telling = [chips.pop(name) for name in TELLING if name in chips]
    rest = f"<details><summary>{len(chips)} other kinds</summary><ul>{''.join(chips.values())}</ul></details>"
    return (
        f'<dl>{rows}</dl><div class="kinds"><ul aria-label="Instructions that say who did what">'
        f"{''.join(telling)}</ul>{rest}</div>"
    )


def _shown(file: Path, named: Iterable[str], project: Path) -> dict[str, Path]:
    """Return the sources that the page shows, by the names that the compiler has for them; the file itself first."""
    found = {name: Path(name).resolve() for name in named}
    ours = {
        name: path
        for name, path in found.items()
        if path.is_file() and any(path.is_relative_to(folder) for folder in (file.parent, project))
    }
    if file not in ours.values():
        ours[str(file)] = file
    return dict(sorted(ours.items(), key=lambda one: one[1] != file))


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return short names, no two alike by chance: with the folder where two files have one name."""
    names = Counter(path.name for path in paths)
    return [path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}" for path in paths]


def _source(index: int, path: Path, counts: Mapping[_At, int], made: Container[_At]) -> str:
    """Return a source file: the number of each line, how many instructions it became, and its text."""
    rows = []
    for number, text in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        at = (index, number)
        mark = f' data-p="{index}:{number}"' if at in made else ""
        count = counts.get(at, 0) or ""
        rows.append(
            f"<div{mark}><b>{number}</b><i>{count}</i><code>{html.escape(text, quote=False)}</code></div>"
        )
    return f'<div class="lines">{"".join(rows)}</div>'


def _machine(lines: Sequence[MachineLine], numbers: Mapping[str, int]) -> str:
    if not lines:
        return '<p class="missing">Its compiler shows none.</p>'
    return f'<div class="lines">{"".join(_machine_lines(lines, numbers))}</div>'


def _machine_lines(lines: Sequence[MachineLine], numbers: Mapping[str, int]) -> Iterator[str]:
    for line in lines:
        places = " ".join(f"{numbers[place.file]}:{place.line}" for place in line.places)
        mark = f' data-p="{places}" data-n="{line.stem}"' if places else ""
        css = "" if line.name else ' class="quiet"'
        yield f"<div{mark}{css}><code>{html.escape(line.text, quote=False)}</code></div>"
