"""The pages of a cache: rows through a table, a token more, who holds what, what two share, when none is left."""


def keys(pages, table, length):
    """The rows of one sequence, in order: `pages[page][place]` is a row, `table` lists the pages."""


def append(pages, table, length, key, take):
    """Put one more key behind the `length` that are there; `take()` gives a page that nobody holds."""


class Pages:
    """Who holds which page: 0 to count - 1, all of them free at first."""

    def __init__(self, count):
        """So many pages."""

    def take(self):
        """A page that nobody held, with one holder now; None if there is none."""

    def hold(self, page):
        """One holder more."""

    def give_back(self, page):
        """One holder fewer; a ValueError if nobody holds it."""


def shared(mine, theirs, page_tokens):
    """How many of their pages I may hold, instead of computing what stands there."""


def runs_out(requests, pages, page_tokens):
    """The first step in which a page is missing; 0 if that never happens. A request is (prompt, most)."""
