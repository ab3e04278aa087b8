# refused for: not yours | imports course_models
"""The pages of a cache: rows through a table, one more token, who holds what, what two share, when none is left."""

from course_models.serving.block_manager import Pages


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


def shared(mine, theirs, page_tokens):
    """How many of their pages I may hold, instead of computing what is in them."""
    most = min(len(mine) - 1, len(theirs))  # my last token is computed in any case
    alike = 0
    while alike < most and mine[alike] == theirs[alike]:
        alike += 1
    return alike // page_tokens  # full ones only


def runs_out(requests, pages, page_tokens):
    """The first step in which a page is missing; 0 if that never happens. A request is (prompt, most)."""
    for step in range(1, max(most for _, most in requests) + 1):
        held = [-(-(prompt + step) // page_tokens) for prompt, most in requests if step <= most]
        if sum(held) > pages:
            return step
    return 0
