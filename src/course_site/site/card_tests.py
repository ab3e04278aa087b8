"""Groups of GPU tests that count as checked on a card, and those that are told because they do not.

A test is right or wrong whatever the card's speed, so one that passed on the card of any edition is checked; numbers of
two cards never meet like that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from course_site.records import gpu_test_records
from course_site.records.gpu_test_records import Verdict
from course_site.records.record import Record
from course_site.records.waiting import FILE, GPU_TESTS, Waiting
from course_site.site.editions import SiteEdition


class Course(Protocol):
    """The part of a course that is asked here."""

    root: Path
    editions: tuple[SiteEdition, ...]
    waiting: dict[str, Waiting]
    records: dict[str, Record]
    states: dict[str, str]
    draft: bool
    rebuilt: bool

    @property
    def slug(self) -> str:
        """Folder under records/ of the edition that is shown."""

    @property
    def is_reference(self) -> bool:
        """True when this is the edition whose claims gate the build."""

    def problem(self, path: Path | str, message: str) -> None:
        """Note something that stops the build."""


def check(course: Course) -> None:
    """Note groups of GPU tests without a record that holds.

    The reference answers for all editions; a card that has measured just now answers for itself.
    """
    if not (course.is_reference or course.rebuilt):
        return
    others = [one.slug for one in course.editions] if course.is_reference else []
    slugs = dict.fromkeys([course.slug, *others]) if (course.root / GPU_TESTS).exists() else ()
    try:
        project = gpu_test_records.Project(course.root)
        verdicts = {
            slug: gpu_test_records.verdicts(project, slug, clean=course.is_reference) for slug in slugs
        }
    except ValueError as error:
        path, _, message = str(error).partition(": ")
        course.problem(path, message)
        return
    hold(course, verdicts)


def hold(course: Course, verdicts: Mapping[str, Sequence[Verdict]]) -> None:
    """Note what is wrong with the groups, by what the editions say of each.

    Args:
        verdicts: by edition, the one that is shown first.
    """
    entries = [path for path, entry in course.waiting.items() if entry.is_of_tests]
    standing: dict[str, str] = {}
    awaited: set[str] = set()  # only a card that is not here can run them; `--plan` lists them
    for slug, found in verdicts.items():
        for verdict in found:
            why = verdict.why or (_of_other_versions(course, verdict) if slug == course.slug else "")
            if verdict.failed and not course.draft and not _waits(entries, verdict.group):
                course.problem(
                    _record(course.root, slug, verdict.group),
                    f"{verdict.why}; no pass on another card stands in for it",
                )
                continue
            if verdict.awaits_its_card:
                awaited.add(verdict.group)
                continue
            # Passed on one of the cards it is checked on a card; what is said else is said of the first.
            standing[verdict.group] = why and standing.get(verdict.group, why)
    standing = dict.fromkeys(awaited, "") | standing
    for group, why in standing.items():
        if why and not course.draft and not _waits(entries, group):
            course.problem(
                _record(course.root, course.slug, group),
                f"{why}; run them on the card: {gpu_test_records.run_again(group)}",
            )
    for slug, found in verdicts.items() if not course.draft else ():
        for old in gpu_test_records.left_over(course.root, slug, [verdict.group for verdict in found]):
            course.problem(
                old.relative_to(course.root), "there is no such group of GPU tests: delete this record"
            )
    for entry in entries if course.is_reference else ():
        group = entry.removeprefix(f"{GPU_TESTS}/")
        if entry != GPU_TESTS and group not in standing:
            course.problem(FILE, f"{entry} is not a group of GPU tests")
        elif not (any(standing.values()) if entry == GPU_TESTS else standing[group]):
            course.problem(FILE, f"{entry} does not wait any more: take it off the list")


def _waits(entries: Sequence[str], group: str) -> bool:
    return bool({GPU_TESTS, f"{GPU_TESTS}/{group}"} & set(entries))


def _record(root: Path, slug: str, group: str) -> Path:
    return gpu_test_records.record_path(root, slug, group).relative_to(root)


def _of_other_versions(course: Course, verdict: Verdict) -> str:
    for page_id, record in course.records.items() if course.is_reference else ():
        if course.states[page_id] == "fresh" and record.measured and record.edition != verdict.edition:
            return f"is of another edition than {record.meta['page']}"
    return ""
