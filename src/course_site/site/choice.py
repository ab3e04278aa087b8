"""The choice of an edition for every page: the one that is shown, or one that stands in for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_site.pages.page import Page
from course_site.records import gpu_test_records
from course_site.records.edition import FRESH, MISSING, Edition, load_edition
from course_site.records.waiting import GPU_TESTS


@dataclass(frozen=True)
class Choice:
    """The editions of a build.

    Attributes:
        own: the edition that is shown.
        beside: those whose files the build answers for besides: what stands in for the reference edition.
        picked: the edition that a page's values come from, by the page's id.
        tests_unknown: why the GPU tests could not be told apart; "" where they could.
    """

    own: Edition
    beside: tuple[Edition, ...]
    picked: dict[str, Edition]
    tests_unknown: str = ""

    @property
    def ours(self) -> tuple[Edition, ...]:
        """The editions whose files the build answers for."""
        return (self.own, *self.beside)

    @property
    def used(self) -> list[Edition]:
        """The edition that is shown, and every other one that a page's values come from."""
        return list({edition.slug: edition for edition in (self.own, *self.picked.values())}.values())


def choose(root: Path, slug: str, reference: str, also: Sequence[str], pages: Iterable[Page]) -> Choice:
    """Choose for each page the first edition that has its record; for the reference the first whose record holds.

    Args:
        slug: the edition that is shown.
        reference: the edition whose claims gate the build; it stands in on any other card.
        also: editions that stand in for the reference, in this order.
        pages: those that measure.
    """
    is_reference = slug == reference
    ours = {slug, *(also if is_reference else ())}
    verdicts, unknown = _verdicts(root, sorted(ours), clean=is_reference)
    picked: dict[str, Edition] = {}
    loaded: dict[str, Edition] = {}
    left = list(pages)
    for one in dict.fromkeys((slug, reference, *also)):
        if not left and one not in ours:
            continue
        edition = loaded[one] = load_edition(root, one, left, verdicts.get(one, ()))
        for page in left:
            if edition.pages[page.id].state != MISSING:
                picked.setdefault(page.id, edition)
            if edition.pages[page.id].state == FRESH:
                picked[page.id] = edition
        left = [page for page in left if not _is_settled(picked.get(page.id), page, is_reference)]
    own = loaded[slug]
    beside = tuple(edition for edition in loaded.values() if edition is not own and edition.slug in ours)
    return Choice(own, beside, dict.fromkeys(own.pages, own) | picked, unknown)


def _is_settled(edition: Edition | None, page: Page, is_reference: bool) -> bool:
    if edition is None:
        return False
    return not is_reference or edition.pages[page.id].state == FRESH


def _verdicts(
    root: Path, slugs: Iterable[str], *, clean: bool
) -> tuple[dict[str, list[gpu_test_records.Verdict]], str]:
    """Verdicts on the groups of GPU tests in these editions, and why there are none, in one line."""
    if not (root / GPU_TESTS).exists():
        return {}, ""
    project = gpu_test_records.Project(root)
    try:
        return {slug: gpu_test_records.verdicts(project, slug, clean=clean) for slug in slugs}, ""
    except ValueError as error:
        return {}, str(error)
