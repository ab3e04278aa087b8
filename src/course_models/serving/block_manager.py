"""Block manager: which sequence holds which page of the cache. Only numbers, no tensor.

What lies in the pages is somebody else's matter.

A page has room for the keys and values of a few tokens. A sequence holds as many pages as it needs, wherever they are;
its *block table* lists them in order. A page that is full may be shared: whose text begins with the same tokens holds
the same page, and nobody writes into it any more. A full page that nobody holds is kept, as the next request may begin
alike; it is given away when no empty one is left, the one that lay longest first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

# What a full page holds: the name of what stands in the page before it (0 at the beginning of a text), and its tokens.
# Compared whole, and not by a hash of it: two texts never pass for one another.
Content = tuple[int, tuple[int, ...]]


class OutOfPages(RuntimeError):
    """No page is left that nobody holds; one line."""


@dataclass(frozen=True)
class Shared:
    """A text's beginning that is in the cache already.

    Attributes:
        pages: full pages with its first tokens, each now held once more.
        name: of what stands in the last of them; 0 for none.
    """

    pages: tuple[int, ...]
    name: int


class Pages:
    """All pages of a cache.

    Attributes:
        count: how many there are.
        page_tokens: tokens of a page.
    """

    def __init__(self, count: int, page_tokens: int, first: int = 0) -> None:
        """
        Args:
            first: number of the first page; those before it are not given out.
        Raises:
            ValueError: no page, or none with room for a token.
        """
        if count < 1:
            raise ValueError(f"pages: expected at least 1, got {count}")
        if page_tokens < 1:
            raise ValueError(f"page_tokens: expected at least 1, got {page_tokens}")
        self.count, self.page_tokens = count, page_tokens
        self._empty = list(range(first + count - 1, first - 1, -1))  # the last one is taken next
        self._holders = dict.fromkeys(self._empty, 0)
        self._kept: OrderedDict[int, None] = OrderedDict()  # full, held by nobody, the oldest first
        self._content: dict[
            int, tuple[Content, int]
        ] = {}  # of a full page: what it holds, and the name of that
        self._page_with: dict[Content, int] = {}
        self._names = 0

    @property
    def free(self) -> int:
        """Number of pages that nobody holds."""
        return len(self._empty) + len(self._kept)

    @property
    def held(self) -> int:
        """Number of pages that somebody holds; a shared one counts once."""
        return self.count - self.free

    def holders(self, page: int) -> int:
        """Return how many sequences hold a page."""
        return self._holders[page]

    def take(self) -> int:
        """Return a page for somebody alone; what it held is forgotten.

        Raises:
            OutOfPages: all are held.
        """
        if self._empty:
            page = self._empty.pop()
        elif self._kept:
            page, _ = self._kept.popitem(last=False)
            content, _ = self._content.pop(page)
            del self._page_with[content]
        else:
            raise OutOfPages(f"pages: all {self.count} are held: make the cache with more, or wait")
        self._holders[page] = 1
        return page

    def give_back(self, pages: Sequence[int]) -> None:
        """Take one holder off each of a sequence's pages.

        Raises:
            ValueError: a page that nobody holds.
        """
        # From the end: what a text begins with is of use to more others, so it goes last.
        for page in reversed(pages):
            if self._holders.get(page, 0) < 1:
                raise ValueError(f"page {page}: nobody holds it")
            self._holders[page] -= 1
            if self._holders[page]:
                continue
            if page in self._content:
                self._kept[page] = None
            else:
                self._empty.append(page)

    def fill(self, page: int, before: int, tokens: Sequence[int]) -> int:
        """Say what stands in a page that is full now, so that others may share it; returns the name of that.

        Args:
            page: held, and never written to again.
            before: the name of what stands in the page before it in the text; 0 at the beginning.
            tokens: `page_tokens` of them.
        """
        content = before, tuple(tokens)
        if len(content[1]) != self.page_tokens or not self._holders[page]:
            raise ValueError(f"page {page}: not full, or nobody holds it")
        if content in self._page_with:  # somebody was quicker: this copy stays with who made it
            return self._content[self._page_with[content]][1]
        self._names += 1
        self._content[page] = content, self._names
        self._page_with[content] = page
        return self._names

    def share(self, tokens: Sequence[int]) -> Shared:
        """Hold the full pages that a text begins with, as far as they are in the cache."""
        found: list[int] = []
        name = 0
        for begin in range(0, len(tokens) - self.page_tokens + 1, self.page_tokens):
            page = self._page_with.get((name, tuple(tokens[begin : begin + self.page_tokens])))
            if page is None:
                break
            self._holders[page] += 1
            self._kept.pop(page, None)
            found.append(page)
            name = self._content[page][1]
        return Shared(tuple(found), name)
