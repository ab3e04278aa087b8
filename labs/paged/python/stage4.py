"""The pages of a cache: rows through a table, one more token, who holds what, what two share, when none is left."""


def keys(pages, table, length):
    """The rows of one sequence, in order: `pages[page][place]` is a row, `table` lists the pages."""
    size = len(pages[0])  # tokens of a page
    return [pages[table[t // size]][t % size] for t in range(length)]


def append(pages, table, length, key, take):
    """Put one more key after the `length` keys that are there; `take()` gives a page that nobody holds."""
    entry, place = divmod(length, len(pages[0]))
    if place == 0:  # the last page is full, or there is none yet
        table[entry] = take()
    pages[table[entry]][place] = key


class Pages:
    """Who holds which page: 0 to count - 1, all of them free at first."""

    def __init__(self, count):
        """Make a pool of `count` pages."""
        self.free = list(range(count))
        self.holders = [0] * count

    def take(self):
        """A page that nobody held, now with one holder; None if there is none."""
        if not self.free:
            return None
        page = self.free.pop()
        self.holders[page] = 1
        return page

    def hold(self, page):
        """Add one holder."""
        self.holders[page] += 1

    def give_back(self, page):
        """Take one holder away; raise a ValueError if nobody holds the page."""
        if self.holders[page] == 0:
            raise ValueError(f"nobody holds page {page}")
        self.holders[page] -= 1
        if self.holders[page] == 0:
            self.free.append(page)  # the last one has left


def shared(mine, theirs, page_tokens):
    """How many of their pages I may hold, instead of computing what is in them."""
    most = min(len(mine) - 1, len(theirs))  # my last token is computed in any case
    alike = 0
    while alike < most and mine[alike] == theirs[alike]:
        alike += 1
    return alike // page_tokens  # full ones only


def runs_out(requests, pages, page_tokens):
    """The first step in which a page is missing; 0 if that never happens. A request is (prompt, most)."""
