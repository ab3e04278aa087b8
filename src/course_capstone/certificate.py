"""Certificate of one entry, as SVG and PDF: the measured percent of peak and the record behind it.

Without a card it says that the answer is right, how many bytes the task must move, and that nothing was measured.
"""

from __future__ import annotations

import html
import os
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path

from course_capstone.board import own_words
from course_capstone.entry import Outcome
from course_judge.__main__ import Unusable
from course_kernels.measure.artifacts import write
from course_kernels.measure.roofline import floor_us

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 1123, 794  # A4 across, in CSS pixels
PRINT_SECONDS = 120
WIDEST = 1000  # of a name in CSS pixels, were all its letters as wide as they are high
NO_CARD_WORDS = "No card was here: nothing was measured, and no percent of peak is claimed."
BY_WORDS = {"human": "by hand", "machine": "by a machine", "both": "by hand and by a machine"}
LETTERS = 98  # of a line of small text between the margins
STYLE = """
  svg { --ink: #24211d; --soft: #5f5a52; --rule: #a5431a; --paper: #fdfcfa; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e9e5dd; --soft: #aca599; --rule: #f0a070; --paper: #191816; } }
  @media print { svg { --ink: #24211d; --soft: #5f5a52; --rule: #a5431a; --paper: #fff; } }
  rect { fill: var(--paper); } .frame { fill: none; stroke: var(--rule); stroke-width: 2; }
  text { fill: var(--ink); font-family: system-ui, "Segoe UI", Roboto, Arial, sans-serif; text-anchor: middle; }
  .soft { fill: var(--soft); } path { stroke: var(--soft); }
"""


def certificate(outcome: Outcome) -> str:
    """Return the certificate as SVG; it carries its colours, light and dark."""
    entry, told = outcome.entry, outcome.told
    task, made, verdict = entry.task, told["provenance"], told["verdict"]
    if outcome.of_peak is not None and outcome.machine is not None:
        large = f"{outcome.of_peak:.1%} of peak"
        peak = f"{task.peak(outcome.machine)} of {outcome.machine.name}, by its data sheet"
        floor = f"floor {floor_us(task, outcome.machine):,.1f} µs"
        small = [f"{peak}; {outcome.time_us:,.1f} µs, spread {outcome.spread:.1%}, {floor}"]
    elif outcome.time_us is not None:
        large = f"{outcome.time_us:,.1f} µs"
        small = [f"on {made['gpu']}, of which the course has no data sheet: no percent of peak"]
    else:
        large = "right"
        small = [
            f"{task.least_bytes:,} bytes must move, counted from the problem.",
            NO_CARD_WORDS,
        ]
    small += [f"What lost: {entry.lost}", f"The judge: {verdict['why']}, {verdict['evidence']['on']}."]
    if entry.record:
        small.append(f"The course's own kernel: {own_words(outcome)}.")
    lines = [line for text in small for line in textwrap.wrap(text, LETTERS)]
    proof = (
        f"Record: run.json, seal {told['seal'][:16]}, {made['date'][:10]}, commit {str(made['commit'])[:12]}, "
        f"judge {verdict['evidence']['judge'][:12]}"
    )
    middle = WIDTH / 2
    parts = [
        _text(middle, 100, "Percent of Peak", 30),
        _text(
            middle,
            132,
            "You versus the machine: GPU kernels, from a shopping list to the frontier",
            16,
            "soft",
        ),
        _text(middle, 214, entry.who, min(34, WIDEST // len(entry.who))),
        _text(
            middle,
            254,
            f"answers for {task.name}, written {BY_WORDS[entry.by]}, on {task.workload.label}",
            18,
        ),
        _text(middle, 338, large, 58),
        *(_text(middle, 388 + 25 * number, line, 16) for number, line in enumerate(lines)),
        '<path d="M150 690H430M693 690H973"/>',
        _text(290, 712, "Date and place", 14, "soft"),
        _text(833, 712, "Mentor", 14, "soft"),
        _text(middle, 750, proof, 12, "soft"),
    ]
    said = html.escape(f"Certificate of {entry.who}: {task.name}, {large}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">'
        f"<title>{said}</title><style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}"/><rect class="frame" x="28" y="28" width="{WIDTH - 56}" '
        f'height="{HEIGHT - 56}"/>{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, text: str, size: int, css: str = "") -> str:
    name = f' class="{css}"' if css else ""
    return f'<text{name} x="{x:g}" y="{y:g}" font-size="{size}">{html.escape(text)}</text>'


def find_chromium() -> str:
    """Return the browser that prints; empty where there is none."""
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, CHROMIUM) if path]
    return found[0] if found and Path(found[0]).exists() else ""


def print_pdf(svg: str, path: Path, chromium: str) -> None:
    """Print a certificate on one page of A4; the PDF is complete or not there.

    Raises:
        Unusable: the browser does not print.
    """
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><style>@page { size: A4 landscape; margin: 0 } "
        f"body {{ margin: 0 }} svg {{ display: block; width: 297mm; height: 209.9mm }}</style>{svg}</html>"
    )
    with tempfile.TemporaryDirectory() as scratch:
        source, made = Path(scratch, "certificate.html"), Path(scratch, "certificate.pdf")
        source.write_text(page, encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        command += [f"--user-data-dir={scratch}/profile", f"--print-to-pdf={made}", source.as_uri()]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=PRINT_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unusable(f"{chromium} does not print: {type(error).__name__}") from None
        if not made.is_file():
            raise Unusable(f"{chromium} printed nothing; CHROMIUM names another browser")
        write(path.parent, path.name, made.read_bytes())
