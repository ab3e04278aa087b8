"""Formats of a profile: a table with the bottleneck, and behind `--hint` what to try; and the same as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from course_profile.measurement import NotCounted
from course_profile.profile import Profile
from course_profile.rules import Diagnosis, Finding

STALLS = 3  # reasons that are shown


def table(profile: Profile, diagnosis: Diagnosis, hint: bool = False) -> str:
    """Return the whole answer, as text."""
    where = f" on {profile.gpu}" if profile.gpu else ""
    lines = [f"{profile.subject.name}, {profile.workload.label}{where}"]
    facts = rows(profile)
    wide = max(len(name) for name, _ in facts)
    lines += [f"  {name.ljust(wide)}  {what}" for name, what in facts]
    lines += [f"  {'missing'.ljust(wide)}  {line}" for line in profile.missing]
    lines.append("")
    if not diagnosis.findings:
        lines.append(diagnosis.said)
    for number, finding in enumerate(diagnosis.findings):
        head = "bottleneck: " if number == 0 else "also: "
        lines.append(f"{head}{finding.rule.name}: {finding.rule.title}")
        lines.append(f"  {finding.evidence.line}")
        if hint:
            lines += advice(finding)
    if diagnosis.findings and not hint:
        lines.append("what to try, and why: --hint")
    return "\n".join(lines)


def advice(finding: Finding) -> list[str]:
    """Return the next thing to try, with the rule behind it and the page that teaches it."""
    rule = finding.rule
    return [
        f"  next: {rule.next}",
        f"  must move: {finding.counter}",
        f"  rule: {rule.threshold}" + (f" [{rule.source} in docs/bibliography.toml]" if rule.source else ""),
        f"  page: {rule.page}",
    ]


def rows(profile: Profile) -> list[tuple[str, str]]:
    """Return the facts, each with its name."""
    found = [("computes", profile.formula), ("answer", profile.checked)]
    found += [("time", time_of(profile)), ("floor", floor_of(profile))]
    found += [("bytes", bytes_of(profile)), ("waits for", waits_of(profile))]
    found += [("blocks", blocks_of(profile)), ("compiled", resources_of(profile))]
    found += [("occupancy", places_of(profile)), ("host", host_of(profile))]
    return [(name, what) for name, what in found if what]


def time_of(profile: Profile) -> str:
    """Return the time, and the percent of peak."""
    reading = profile.reading
    if reading.time_us is None:
        return ""
    spread = f", {profile.spread:.1%} between its blocks" if profile.spread is not None else ""
    peak = f", {reading.of_peak:.1%} of peak" if reading.of_peak is not None else ""
    return f"{reading.time_us:.1f} µs{spread}{peak}"


def floor_of(profile: Profile) -> str:
    """Return the least time, what binds, and how often it fits into the time."""
    reading = profile.reading
    if reading.floor_us is None:
        return ""
    times = f"; the time is {reading.time_us / reading.floor_us:.2f} of it" if reading.time_us else ""
    card = "" if profile.gpu else f" on {profile.machine.name}"
    return f"{reading.floor_us:.1f} µs{card}, by {reading.bound}; {profile.intensity:.2f} operations per byte{times}"


def bytes_of(profile: Profile) -> str:
    """Return bytes counted, against those that must move."""
    reading = profile.reading
    if reading.least_bytes is None:
        return ""
    least = f"at least {reading.least_bytes / 1e6:.2f} MB"
    if reading.counted_bytes is None or not reading.least_bytes:
        return least
    ratio = reading.counted_bytes / reading.least_bytes
    return f"{reading.counted_bytes / 1e6:.2f} MB counted, {least}: {ratio:.2f} of it"


def waits_of(profile: Profile) -> str:
    """Return the largest reasons for waiting."""
    stalls = list(profile.reading.stalls.items())[:STALLS]
    return ", ".join(f"{reason} {share:.0%}" for reason, share in stalls)


def places_of(profile: Profile) -> str:
    """Share of the places for warps that is taken, and what sets the limit."""
    reading = profile.reading
    try:
        limiter, blocks = reading.occupancy_limit
        taken = f"{reading['sm__warps_active.avg.pct_of_peak_sustained_active']:.0f} % of the places for warps taken; "
    except NotCounted:
        if profile.places is None:
            return ""
        limiter, blocks = profile.places.limiter, profile.places.blocks
        taken = f"at most {profile.places.share:.0%} of the places for warps; "
    return f"{taken}{blocks} blocks on a multiprocessor, by {limiter}"


def blocks_of(profile: Profile) -> str:
    """Return the launch of a `.cu`, and how often it fills the card."""
    if not profile.launch:
        return ""
    grid, block, _ = profile.launch
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    sms = profile.reading.sms or (profile.machine.multiprocessors and profile.machine.multiprocessors.count)
    waves = ""
    if sms and profile.places and profile.places.blocks:
        waves = f"; {blocks / (sms * profile.places.blocks):.3f} waves on {sms} multiprocessors"
    return f"{blocks} of {threads} threads{waves}"


def resources_of(profile: Profile) -> str:
    """Resources that the compiler gave a `.cu`."""
    if not profile.resources:
        return ""
    registers, shared, local = profile.resources
    return f"{registers} registers a thread, {shared} bytes of static shared memory, {local} of local memory"


def host_of(profile: Profile) -> str:
    """Cost of a call for the host."""
    reading = profile.reading
    if reading.host_us is None:
        return ""
    many = f" of {reading.launches} kernels" if reading.launches > 1 else ""
    return f"{reading.host_us:.1f} µs for a call{many}"


def as_json(profile: Profile, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the same, as plain data."""
    return {
        "file": profile.subject.file.name,
        "function": profile.subject.function,
        "problem": profile.subject.problem,
        "workload": profile.workload.as_json(),
        "gpu": profile.gpu or None,
        "checked": profile.checked,
        "reading": profile.reading.as_json(),
        "stalls": profile.reading.stalls,
        "occupancy": asdict(profile.places) if profile.places else None,
        "bottleneck": diagnosis.name or None,
        "said": diagnosis.said,
        "findings": [
            {
                "rule": finding.rule.name,
                "share": finding.evidence.share,
                "counted": finding.evidence.line,
                "threshold": finding.rule.threshold,
                "source": finding.rule.source or None,
                "must_move": finding.counter,
                "next": finding.rule.next,
                "page": finding.rule.page,
            }
            for finding in diagnosis.findings
        ],
        "not_asked": {rule.name: lacks for rule, lacks in diagnosis.silent},
        "missing": list(profile.missing),
    }
