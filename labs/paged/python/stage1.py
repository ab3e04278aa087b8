"""The pages of a cache: rows through a table, one more token, who holds what, what two share, when none is left."""


def keys(pages, table, length):
    """The rows of one sequence, in order: `pages[page][place]` is a row, `table` lists the pages."""
    size = len(pages[0])  # tokens of a page
    return [pages[table[t // size]][t % size] for t in range(length)]


def append(pages, table, length, key, take):
    """Put one more key after the `length` keys that are there; `take()` gives a page that nobody holds."""


class Pages:
    """Who holds which page: 0 to count - 1, all of them free at first."""

    def __init__(self, count):
        """Make a pool of `count` pages."""

    def take(self):
        """A page that nobody held, now with one holder; None if there is none."""

    def hold(self, page):
        """Add one holder."""

    def give_back(self, page):
        """Take one holder away; raise a ValueError if nobody holds the page."""


def shared(mine, theirs, page_tokens):
    """How many of their pages I may hold, instead of computing what is in them."""


def runs_out(requests, pages, page_tokens):
    """The first step in which a page is missing; 0 if that never happens. A request is (prompt, most)."""
