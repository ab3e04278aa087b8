"""A roofline with one point, as an SVG of its own: it carries its colours, light and dark."""

from __future__ import annotations

from html import escape
from math import log10

from course_profile.profile import Profile

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 16, 48
DECADES = (-3, 4)  # operations per byte, as powers of ten
STYLE = """
  svg { --ink: #222; --quiet: #767676; --mine: #b3261e; background: #fff; font: 12px sans-serif; }
  @media (prefers-color-scheme: dark) { svg { --ink: #eee; --quiet: #9a9a9a; --mine: #ff8a80; background: #1c1c1e; } }
  text { fill: var(--ink); } .quiet { fill: var(--quiet); } path { fill: none; stroke: var(--ink); stroke-width: 2; }
  .grid { stroke: var(--quiet); stroke-width: .5; } .drop { stroke: var(--mine); stroke-dasharray: 4 3; }
  .mine { fill: var(--mine); stroke: none; }
"""


def roofline(profile: Profile) -> str:
    """Return the card's two roofs, and the kernel below them.

    Without a time, the place under the roof where it belongs.
    """
    machine, reading = profile.machine, profile.reading
    peak = machine.peak_tflops.get(profile.math, max(machine.peak_tflops.values()))
    tera_a_byte = machine.bandwidth_gb_per_s / 1e3
    ridge = peak / tera_a_byte
    low, high = DECADES
    top, floor = _ceil(log10(peak)), _ceil(log10(peak)) - 6
    x_of = max(10**low, min(10**high, profile.intensity or 10**low))

    def x(value: float) -> float:
        return LEFT + (log10(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return (
            HEIGHT
            - BOTTOM
            - (log10(max(value, 10.0**floor)) - floor) / (top - floor) * (HEIGHT - TOP - BOTTOM)
        )

    roof = min(peak, x_of * tera_a_byte)
    reached = roof * reading.of_peak if reading.of_peak is not None else None
    said = f"{profile.subject.name}: {profile.intensity:.3g} operations per byte"
    said += (
        f", {reading.of_peak:.1%} of the roof above it" if reading.of_peak is not None else ", not measured"
    )
    begin = max(10**low, 10**floor / tera_a_byte)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(said)}">',
        f"<title>{escape(said)}</title><style>{STYLE}</style>",
    ]
    for power in range(low, high + 1):
        at = x(10.0**power)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text class="quiet" x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_power(power)}</text>'
        )
    for power in range(floor, top + 1):
        at = y(10.0**power)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="quiet" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_power(power)}</text>'
        )
    parts.append(
        f'<path d="M{x(begin):.1f} {y(begin * tera_a_byte):.1f}L{x(ridge):.1f} {y(peak):.1f}'
        f'H{WIDTH - RIGHT}"/>'
    )
    point = y(reached if reached is not None else roof)
    parts.append(f'<path class="drop" d="M{x(x_of):.1f} {y(roof):.1f}V{point:.1f}"/>')
    shape = 'class="mine"' if reached is not None else 'fill="none" stroke="var(--mine)" stroke-width="2"'
    parts.append(f'<circle {shape} cx="{x(x_of):.1f}" cy="{point:.1f}" r="5"/>')
    share = f" {reading.of_peak:.0%}" if reading.of_peak is not None else ""
    side, anchor = (10, "start") if x(x_of) < WIDTH * 0.6 else (-10, "end")
    parts.append(
        f'<text x="{x(x_of) + side:.1f}" y="{point + 16:.1f}" text-anchor="{anchor}">'
        f"{escape(profile.subject.function)}{share}</text>"
    )
    parts.append(
        f'<text class="quiet" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"operations per byte; {escape(machine.name)}, {escape(profile.math)}, TFLOP/s</text></svg>"
    )
    return "\n".join(parts) + "\n"


def _ceil(value: float) -> int:
    return int(-(-value // 1))


def _power(power: int) -> str:
    return f"{10.0**power:g}"
