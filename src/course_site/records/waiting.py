"""The list of what awaits a GPU, records/waiting.toml: pages, and groups of GPU tests."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from course_site.lint.lint import find_typed_numbers
from course_site.lint.speed_words import speaks_of_speed

FILE = "records/waiting.toml"
FIRST = date(2026, 11, 21)  # nothing has waited for longer: the course began then
LONGEST = 160  # of a reason, in characters
GPU_TESTS = "tests/gpu"  # all groups of them; tests/gpu/<group> is one


class WaitingError(ValueError):
    """A list that cannot be read: one line, with the file and what an entry needs."""


@dataclass(frozen=True)
class Waiting:
    """An entry: a page, or a group of GPU tests, that awaits a GPU."""

    path: str
    since: str
    reason: str

    @property
    def is_of_tests(self) -> bool:
        """True for a group of GPU tests, or all of them."""
        return self.path == GPU_TESTS or self.path.startswith(f"{GPU_TESTS}/")


def load(root: Path) -> dict[str, Waiting]:
    """Read the entries, by path; none where there is no list.

    Raises:
        WaitingError: see the class; what is wrong with one entry, `faults_of` says.
    """
    path = root / FILE
    if not path.exists():
        return {}
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("page", [])
        return {e["path"]: Waiting(e["path"], str(e["since"]), str(e["reason"])) for e in entries}
    except (ValueError, KeyError, TypeError) as error:
        raise WaitingError(f"{FILE}: every [[page]] needs path, since and reason ({error})") from None


def faults_of(entry: Waiting, today: date | None = None) -> Iterator[str]:
    """Yield what is wrong with an entry: since when it waits, and why.

    A page shows its reason to everybody, so it says what is awaited, and nothing of how a kernel does.
    """
    try:
        since = date.fromisoformat(entry.since)
    except ValueError:
        yield f"since {entry.since!r}: write the day as 2026-11-21"
        return
    # Another time zone may be a day ahead.
    if not FIRST <= since <= (today or datetime.now(UTC).date()) + timedelta(days=1):
        yield f"since {entry.since}: the course began on {FIRST}, and a wait has begun by today"
    if not entry.reason.strip() or len(entry.reason) > LONGEST or "\n" in entry.reason:
        yield f"its reason is one line of at most {LONGEST} characters"
    elif speaks_of_speed(entry.reason) or find_typed_numbers(entry.reason):
        yield f"its reason, {entry.reason!r}, speaks of speed: say what the page waits for"
