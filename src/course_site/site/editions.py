"""The editions that the site holds: the reference at its root, each other one in a folder named for its card.

Which they are nobody lists: an edition is a folder of records/ with the record of a page in it, so somebody's own card
has one as soon as it has measured. A page is of one edition, whole.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

from course_site.pages.page import Page
from course_site.records.edition import gpu_of, load_edition, slugs
from course_site.site.about import reference_of
from course_site.values.data_sheet import short_name

# The one page that names values of several editions, each by its prefix: `{{ h100.w1.flash.us }}`.
SIDE_BY_SIDE = "two_cards"


@dataclass(frozen=True)
class SiteEdition:
    """An edition as the site shows it.

    Attributes:
        slug: its folder under records/, e.g. nvidia-h100-80gb-hbm3.
        gpu: the card by the name that its driver gives; "" where no record says it.
        name: what readers call it, e.g. H100.
        at_root: it is the reference, whose files have no folder of their own; or the only one, where one is served.
    """

    slug: str
    gpu: str
    name: str
    at_root: bool

    @property
    def key(self) -> str:
        """Its name in an address, e.g. h100 or rtx-4090."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def folder(self) -> str:
        """Its folder in the site; "" at the root."""
        return "" if self.at_root else self.key

    @property
    def prefix(self) -> str:
        """Its name before a value of it on the page with several: `rtx_4090` in `{{ rtx_4090.w1.flash.us }}`."""
        return self.key.replace("-", "_")

    def address(self, uri: str) -> str:
        """Return the place of one of its files in the whole site."""
        return posixpath.join(self.folder, uri)


def editions(root: Path) -> tuple[SiteEdition, ...]:
    """Return the editions of the site, the reference first."""
    reference = reference_of(root)
    found: list[SiteEdition] = []
    for slug in slugs(root, reference):
        gpu = gpu_of(root, slug)
        name = short_name(gpu or slug)
        if name in (other.name for other in found):  # two cards of one model differ in their whole names
            name = gpu.removeprefix("NVIDIA ") or slug
        found.append(SiteEdition(slug, gpu, name, slug == reference))
    return tuple(found)


def across(here: SiteEdition, page: str, there: SiteEdition, uri: str) -> str:
    """Return the address of a file of an edition, from a page of the same or of another one.

    >>> ours, theirs = SiteEdition("a", "", "H200", True), SiteEdition("b", "", "H100", False)
    >>> across(theirs, "lectures/l3.html", ours, "lectures/l3.html"), across(ours, "index.html", theirs, "index.html")
    ('../../lectures/l3.html', 'h100/index.html')
    """
    return posixpath.relpath(there.address(uri), posixpath.dirname(here.address(page)) or ".")


def measured(root: Path, slug: str, pages: list[Page]) -> frozenset[str]:
    """Return the pages of an edition whose records hold, by their ids."""
    edition = load_edition(root, slug, pages)
    return frozenset(page.id for page in pages if edition.holds(page.id))
