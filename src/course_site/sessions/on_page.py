"""Words of an edition on its pages outside of the theme's frame: the run view, the printed sheet."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class OnPage:
    """An edition on one of its pages.

    Attributes:
        nav: the links to the same page of the other editions, as HTML; "" where the site holds one.
        meta: the element of the page's head that tells the script about them; "" likewise.
        folder: the folder of the site in which the edition stands; "" at the root.
        root: the way from the page to the root of the site, such as "../../".
        card: what readers call the card; "" where nobody knows it.
    """

    nav: str = ""
    meta: str = ""
    folder: str = ""
    root: str = "../../"
    card: str = ""

    def shared(self, folder: str) -> str:
        """Return the way to a folder of the root's that the page's own folder would have for itself; "" at the root."""
        return posixpath.join(self.root, folder, "") if self.folder else ""


# The switch of a page, by its place in the edition.
Switch = Callable[[str], OnPage]


def alone(_uri: str) -> OnPage:
    """Return what a page says where it is of the only edition, two folders below the root."""
    return OnPage()
