"""Diagnosis by rules: each reads a few counters and names one cause, or keeps silent.

Two kinds. A fault is something that a counter shows by itself: sectors that nobody wanted, lanes that sleep. A wait is
what the warps spend their time on, or what the card is full of, which is a symptom: waits are asked only where no fault
was found.
"""

from __future__ import annotations

from collections.abc import Sequence

from course_profile import thresholds
from course_profile.counter_rules import FAULTS, launch
from course_profile.measurement import NotCounted, Reading
from course_profile.rules import Diagnosis, Finding, Rule
from course_profile.stall_rules import UNITS, WAITS

RULES = FAULTS + WAITS


def diagnose(reading: Reading) -> Diagnosis:
    """Ask the rules: the faults, then the waits where there is none."""
    if reading.of_peak is not None and reading.of_peak >= thresholds.NEAR_PEAK:
        return Diagnosis((), (), f"nothing obvious: it reaches {reading.of_peak:.1%} of peak")
    silent: list[tuple[Rule, str]] = []
    for rules in (FAULTS, WAITS):
        found = []
        for rule in rules:
            try:
                evidence = rule.asks(reading)
            except NotCounted as lacks:
                silent.append((rule, str(lacks)))
                continue
            if evidence:
                found.append(Finding(rule, evidence))
        if found:
            # What goes on in a kernel does not matter while the card waits for the host.
            found.sort(key=lambda finding: (finding.rule.asks is not launch, -finding.evidence.share))
            return Diagnosis(tuple(found), tuple(silent))
    return Diagnosis((), tuple(silent), _why_silent(reading, silent))


def _why_silent(reading: Reading, silent: Sequence[tuple[Rule, str]]) -> str:
    if len(silent) == len(FAULTS) + len(WAITS):
        return "no rule could be asked: nothing was counted"
    for what, metric in UNITS.items():
        if reading.counters.get(metric, 0.0) >= 100 * thresholds.FULL:
            return f"nothing obvious: {what} is {reading.counters[metric]:.0f} % busy, which is the roof it is under"
    return "nothing obvious: no rule applies" + (", of those that could be asked" if silent else "")
