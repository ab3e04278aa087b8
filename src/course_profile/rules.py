"""Rules and their findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from course_profile.measurement import Reading


@dataclass(frozen=True)
class Evidence:
    """Evidence of a rule that spoke.

    Attributes:
        share: of the time, what the cause costs at most: a rough figure, to put causes in order.
        line: what was counted.
        counter: what must move, where it is another one than the rule's; empty where it is the rule's.
    """

    share: float
    line: str
    counter: str = ""


@dataclass(frozen=True)
class Rule:
    """One cause.

    Attributes:
        name: one or two words, as `--json` and the tests know it.
        title: the cause, as a clause.
        threshold: when the rule speaks, and why there.
        source: a key of docs/bibliography.toml; empty where the threshold comes from our own records.
        counter: what must move when the cause is cured, unless the evidence names another one.
        next: what to try.
        page: the heading that teaches it.
        asks: what it reads; gives None where it keeps silent.
    """

    name: str
    title: str
    threshold: str
    source: str
    counter: str
    next: str
    page: str
    asks: Callable[[Reading], Evidence | None]


@dataclass(frozen=True)
class Finding:
    """A rule that spoke."""

    rule: Rule
    evidence: Evidence

    @property
    def counter(self) -> str:
        """The counter that must move when the cause is cured: the one that the reading shows."""
        return self.evidence.counter or self.rule.counter


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of one reading.

    Attributes:
        findings: the first is the bottleneck; empty where nothing is obvious.
        silent: rules that could not be asked, with what they lack.
        said: why there is no finding; empty where there is one.
    """

    findings: tuple[Finding, ...]
    silent: tuple[tuple[Rule, str], ...]
    said: str = ""

    @property
    def name(self) -> str:
        """The bottleneck's name; empty where nothing is obvious."""
        return self.findings[0].rule.name if self.findings else ""
