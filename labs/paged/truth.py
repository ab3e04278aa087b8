"""Pages of a cache: rows through a block table, one more token, who holds what, what two share, when none is left.

Every play keeps its own books and holds the file to them.
"""

import random
from collections.abc import Sequence

from course_judge.host import Broken
from course_labs.interactive_cases import Answer, Asked, Play, Slip, counted, with_advice

NUMBERS = 2  # of a key
PAGES = (1, 2, 3, 5, 8, 16, 24, 32, 64, 100, 128, 256, 1025)  # tokens of a page, where they are drawn
WORDS = 200_000  # different tokens: more than two bytes hold
HUGE = 10**6  # a page that no pool has
NEXT_OF_RUBBISH = "a table may be longer than its sequence: what comes after the last page in use is rubbish."
NEXT_OF_SHARING = (
    "write both texts one under the other, page by page: where do they part, and is that page full?"
)
NEXT_OF_STEPS = (
    "a line for each step: who is still writing, and how many pages does each of them have by now?"
)

Row = list[float]
Pool = list[list[Row]]


def cases() -> list[Play]:
    """From one token up: rows, one more token, the allocator, what two share, when the pages run out."""
    return [*gathers(), *appends(), *allocators(), *beginnings(), *ends()]


def pool_of(count: int, page_tokens: int, draw: random.Random) -> Pool:
    """Pages full of rows, no two of them alike."""
    numbers = draw.sample(range(max(999, count * page_tokens)), count * page_tokens)
    rows = [[float(row), round(draw.uniform(-1, 1), 3)] for row in numbers]
    return [rows[page * page_tokens : (page + 1) * page_tokens] for page in range(count)]


def lies(pages: Pool, row: object) -> str:
    """Where a row is in a pool, in words."""
    for number, page in enumerate(pages):
        if row in page:
            return f"page {number}, place {page.index(row)}"
    return "no page of the pool"


def shape(pages: object) -> object:
    """How many rows each page has; None of what is no list of lists."""
    return (
        [len(page) if isinstance(page, list) else -1 for page in pages] if isinstance(pages, list) else None
    )


def in_use(length: int, page_tokens: int) -> int:
    """Pages that so many tokens need."""
    return -(-length // page_tokens)


# --- rows through a table ------------------------------------------------------------------------


def gathers() -> list[Play]:
    """The function `keys`."""

    def play(length: int, page_tokens: int, count: int, behind: Sequence[int]) -> Play:
        def run(asked: Asked, draw: random.Random) -> None:
            pages = pool_of(count, page_tokens, draw)
            table = draw.sample(range(count), in_use(length, page_tokens))
            look_at_keys(asked, pages, [*table, *behind], length)

        rubbish = f", and {len(behind)} entries of rubbish after it" if behind else ""
        job = f"{counted(length, 'token')} in pages of {page_tokens}{rubbish}"
        return Play(job, run, again=3)

    def by_chance(page_tokens: int) -> Play:
        def run(asked: Asked, draw: random.Random) -> None:
            # Mostly a few pages; where they are short, also so many that a table of ten or of a hundred ends.
            full = draw.randint(0, max(4, min(40, 600 // page_tokens)))
            length = full * page_tokens + draw.randint(0, page_tokens)
            used = in_use(length, page_tokens)
            pages = pool_of(used + draw.randint(1, 3), page_tokens, draw)
            behind = [draw.choice((-1, HUGE, len(pages))) for _ in range(draw.randint(0, 3))]
            look_at_keys(asked, pages, [*draw.sample(range(len(pages)), used), *behind], length)

        return Play(f"a sequence by chance in pages of {page_tokens}", run, again=1)

    def long(asked: Asked, draw: random.Random) -> None:
        page_tokens, length = draw.choice((4, 8)), draw.randint(4097, 5000)
        used = in_use(length, page_tokens)
        look_at_keys(asked, pool_of(used, page_tokens, draw), draw.sample(range(used), used), length)

    def together(asked: Asked, draw: random.Random) -> None:
        pages = pool_of(9, 4, draw)
        for table, length in (([7, 2, 5], 11), ([7, 2, 0, 8], 14), ([7, 3], 5)):
            look_at_keys(asked, pages, table, length)

    def other_rows(asked: Asked, draw: random.Random) -> None:
        pages, table = pool_of(5, 4, draw), draw.sample(range(1, 5), 3)
        look_at_keys(asked, pages, table, 11)
        here, there = pages[table[1]], pages[table[2]]
        here[1], there[1] = there[1], here[1]  # neither the first row nor the last
        look_at_keys(asked, pages, table, 11)

    return [
        play(1, 1, 1, []),
        play(1, 4, 2, []),
        play(8, 4, 5, []),
        play(11, 4, 6, []),
        play(37, 16, 8, []),
        play(10, 5, 4, [-1, -1]),
        play(37, 16, 8, [-1, HUGE]),
        play(6, 1, 9, []),
        play(0, 4, 3, [HUGE]),
        Play("three sequences that share a first page", together),
        Play("the same table again, and two rows have changed places", other_rows),
        *map(by_chance, PAGES),
        Play("a sequence of more than 4096 tokens", long, long=True),
    ]


def look_at_keys(asked: Asked, pages: Pool, table: list[int], length: int) -> None:
    """The rows that `keys` gives are those of the table, in order, and no others."""
    page_tokens = len(pages[0])
    rubbish = len(table) > in_use(length, page_tokens)
    try:
        answer = asked.call("keys", pages, table, length, arrays=2, writes=True)
    except Broken as broken:
        if not rubbish:
            raise
        raise with_advice("crashed", NEXT_OF_RUBBISH, broken) from None
    rows = answer.list("keys", "rows")
    for token, row in enumerate(rows[:length]):
        page, place = table[token // page_tokens], token % page_tokens
        if row != pages[page][place]:
            came = lies(pages, row)
            sizes = f", in pages of {page_tokens}" if page_tokens > 16 else ""
            why = f"token {token} came from {came}; it is on page {page}, place {place}{sizes}"
            raise Slip("wrong row", why)
    so_many = f"{counted(length, 'token')}, and {counted(len(rows), 'row')}"
    if len(rows) < length:
        raise Slip("wrong row", f"{so_many}: token {len(rows)} is missing")
    if len(rows) > length:
        came = lies(pages, rows[length])
        why = f"{so_many}: one too many came from {came}"
        raise Slip(
            "wrong row",
            why,
            "this text has written nothing there: what you read is left over from whoever had the page before.",
        )
    if answer.after[:2] != (pages, table):
        raise Slip("input modified", "the pages, or the table, are not what they were", "`keys` only reads.")


# --- one more token --------------------------------------------------------------------------------


def appends() -> list[Play]:
    """The function `append`."""

    def play(length: int, page_tokens: int) -> Play:
        def run(asked: Asked, draw: random.Random) -> None:
            look_at_append(asked, length, page_tokens, draw)

        return Play(f"token {length} in pages of {page_tokens}", run, again=3)

    def by_chance(page_tokens: int) -> Play:
        def run(asked: Asked, draw: random.Random) -> None:
            full = draw.randint(1, max(4, min(40, 600 // page_tokens))) * page_tokens
            for length in (full - 1, full, full + draw.randrange(page_tokens)):
                look_at_append(asked, length, page_tokens, draw)

        return Play(f"one more token, around the end of a page of {page_tokens}", run, long=True)

    def long(asked: Asked, draw: random.Random) -> None:
        look_at_append(asked, 16 * draw.randint(257, 300) + draw.choice((0, 1)), 16, draw)

    lengths = [(0, 4), (1, 4), (3, 4), (4, 4), (7, 4), (8, 4), (36, 16), (48, 16), (2, 1), (9, 5), (10, 5)]
    return [
        *(play(length, page_tokens) for length, page_tokens in lengths),
        *map(by_chance, PAGES),
        Play("one more token, after more than 4096", long, long=True),
    ]


def look_at_append(asked: Asked, length: int, page_tokens: int, draw: random.Random) -> None:
    """The key of one more token is in its place, and a page was taken only when one was needed."""
    used = in_use(length, page_tokens)
    count = used + 4
    pages = pool_of(count, page_tokens, draw)
    numbers = draw.sample(range(count), count)
    own, free, others = numbers[:used], numbers[used : used + 2], numbers[used + 2 :]
    table = [*own, *others]  # after its own pages come some that others hold
    # A key that no row of the pool is.
    key, opens = [round(-draw.uniform(1, 9), 3) for _ in range(NUMBERS)], length % page_tokens == 0
    answer = asked.call("append", pages, table, length, key, arrays=2, take=free, writes=True)
    if answer.taken and not opens:
        why = f"token {length} has room on page {own[-1]}, and a page was taken for it"
        raise Slip("page too many", why)
    if opens and not answer.taken:
        full = (
            f"{counted(used, 'page')} {'is' if used == 1 else 'are'} full" if used else "the table is empty"
        )
        raise Slip("no page", f"token {length} opens a page, for {full}: take() was not called")
    if answer.taken > 1:
        raise Slip(
            "page too many",
            f"token {length} opens one page, and take() was called {counted(answer.taken, 'time')}",
        )
    due = [*own, free[0]] if opens else own
    pages_now, table_now = answer.after[:2]
    if shape(pages_now) != shape(pages) or shape([table_now]) != shape([table]):
        raise Slip(
            "wrong result", "the pool, or the table, has a different shape now", "write into it; it has room."
        )
    for entry, page in enumerate(due):
        if table_now[entry] != page:
            due_page = f"page {page} from take()" if entry == used else f"page {page}"
            raise Slip(
                "wrong row", f"entry {entry} of the table should be {due_page}; it is {table_now[entry]}"
            )
    page, place = due[length // page_tokens], length % page_tokens
    if pages_now[page][place] != key:
        where = lies(pages_now, key)
        raise Slip(
            "wrong row", f"token {length}'s key is on {where}; it belongs on page {page}, place {place}"
        )
    pages[page][place] = key
    for number, (old, new) in enumerate(zip(pages, pages_now, strict=True)):
        for at, (before, after) in enumerate(zip(old, new, strict=True)):
            if before != after:
                raise Slip("wrong row", f"page {number}, place {at} was overwritten: it is not this token's")


# --- who holds which page --------------------------------------------------------------------------


class Books:
    """What the grader knows of an allocator: who holds each page, and what became of it."""

    def __init__(self, asked: Asked, count: int, pool: int = 0) -> None:
        """
        Args:
            pool: which object of the file's, where there are several at once.
        """
        self.asked, self.count, self.pool = asked, count, pool
        self.tables: dict[str, list[int]] = {}
        self._held: dict[int, list[str]] = {}  # who holds each page
        self.story: dict[int, list[str]] = {page: [] for page in range(count)}
        self.parted: dict[int, str] = {}  # of a page that was shared: who has left it
        asked.make("Pages", count, at=pool)

    def do(self, name: str, *given: int, may: str = "") -> Answer:
        """Ask this pool."""
        return self.asked.do(name, *given, may=may, at=self.pool)

    def holders(self, page: int) -> list[str]:
        return list(self._held.get(page, ()))

    @property
    def free(self) -> list[int]:
        return [page for page in range(self.count) if not self._held.get(page)]

    def _note(self, page: int, name: str) -> None:
        self.tables.setdefault(name, []).append(page)
        self._held.setdefault(page, []).append(name)

    def take(self, name: str) -> bool:
        """Somebody takes a page; False if there is none."""
        answer = self.do("take")
        if answer.value is None and not answer.strange:
            free = self.free
            if not free:
                return False
            lost = [page for page in free if self.story[page]]
            if lost:
                why = f"nobody holds page {lost[0]}, and it is not free: take() gives None"
                raise Slip("page lost", why, lines=self._told(lost[0]))
            why = f"page {free[0]} is free, and take() gives None"
            raise Slip("no page", why, "at first all pages are free: where do you keep the free ones?")
        page = answer.number("take()")
        if page not in self.story and not self.free:
            why = f"no page is free, and take() gave {page}: None is due"
            raise Slip("wrong result", why, "what does `take` give when nothing is left?")
        if page not in self.story:
            why = f"take() gave page {page}; there are {self.count}, and the first is 0"
            raise Slip("wrong result", why, "a page that does not exist came out: how did it get in?")
        if holders := self.holders(page):
            if page in self.parted:
                why = f"page {page} was given to {name}, and {holders[0]} still holds it"
            else:
                why = f"page {page} is held by two who share nothing, {holders[0]} and {name}"
            raise Slip("held by two", why, lines=self._told(page, f"given to {name}"))
        self._note(page, name)
        self.story[page] = [f"{name} takes it"]
        self.parted.pop(page, None)
        return True

    def like(self, name: str, other: str, pages: int) -> None:
        """Somebody begins like another, and holds the first of the other's pages too."""
        for page in self.tables[other][:pages]:
            self.do("hold", page)
            self._note(page, name)
            self.story[page].append(f"{name} holds it too")

    def leave(self, name: str) -> None:
        """Somebody gives back all that it holds."""
        for page in self.tables.pop(name):
            self._held[page].remove(name)
            still = self.holders(page)
            if self.do("give_back", page, may="ValueError").raised:
                why = f"give_back({page}) says that nobody holds page {page}; {name} does"
                raise Slip("wrong", why, "how many hold it? Count with its story.", self._told(page))
            self.story[page].append(f"{name} gives it back")
            if still:
                self.parted[page] = name

    def once_more(self, page: int) -> None:
        """A page that nobody holds is given back."""
        if not self.do("give_back", page, may="ValueError").raised:
            why = f"nobody holds page {page}, and give_back({page}) did not say so: a ValueError is due"
            raise Slip("given back twice", why, lines=self._told(page))

    def drain(self) -> None:
        """At the end every page that nobody holds comes out, once."""
        while self.take("Z"):
            pass

    def _told(self, page: int, *more: str) -> list[str]:
        story = [*self.story[page], *more]
        if len(story) > 12:
            story = [*story[:3], f"and so on, {len(story) - 8} times", *story[-5:]]
        return [f"page {page}: {', '.join(story)}"] if story else []


def allocators() -> list[Play]:
    """The class `Pages`: what happens to all, and then whatever may."""

    def of(count: int, *steps: str) -> Play:
        def run(asked: Asked, _: random.Random) -> None:
            books = Books(asked, count)
            for step in steps:
                play_step(books, step)
            books.drain()

        return Play(f"{counted(count, 'page')}: {', '.join(steps)}, then Z takes all that is left", run)

    def by_chance(count: int, steps: int) -> Play:
        def run(asked: Asked, draw: random.Random) -> None:
            books = Books(asked, count)
            for number in range(steps):
                chance_step(books, f"S{number}", draw)
            books.drain()

        return Play(f"{count} pages, {steps} steps by chance", run, again=3)

    def many_returns(asked: Asked, draw: random.Random) -> None:
        """As many returns as pages, many times over."""
        books = Books(asked, draw.randint(3, 12))
        for number in range(draw.randint(420, 500)):
            name = f"S{number}"
            books.take(name)
            if number % 20 == 0:  # now and then two begin alike
                books.like(f"L{number}", name, pages=1)
                books.leave(name)
                name = f"L{number}"
            books.leave(name)
        books.drain()

    def many_holders(asked: Asked, draw: random.Random) -> None:
        """One page, and so many that hold it: it is free when the last has left, and not before."""
        books = Books(asked, draw.randint(2, 4))
        books.take("A")
        names = ["A", *(f"H{number}" for number in range(draw.randint(513, 530)))]
        for name in names[1:]:
            books.like(name, "A", pages=1)
        draw.shuffle(names)
        for name in names[:-1]:
            books.leave(name)
        while books.take("Z"):  # all pages but that one
            pass
        books.leave(names[-1])
        books.drain()

    def large_pool(asked: Asked, draw: random.Random) -> None:
        """All pages are taken, some come back, and these are all that is free."""
        books = Books(asked, draw.randint(1040, 1060))  # many past 1024, so that some of these come back
        names = [f"S{number}" for number in range(books.count)]
        for name in names:
            books.take(name)
        for name in draw.sample(names, books.count // 2):
            books.leave(name)
        books.drain()

    def two_pools(asked: Asked, draw: random.Random) -> None:
        """Two objects at once, each with its own books."""
        both = [Books(asked, draw.randint(3, 6), pool) for pool in range(2)]
        for number in range(100):
            pool = draw.randrange(2)
            chance_step(both[pool], f"S{number} of pool {pool + 1}", draw)
        for books in both:
            books.drain()

    return [
        of(1, "A takes"),
        of(2, "A takes", "B takes", "B leaves"),
        of(2, "A takes", "A takes", "A leaves", "B takes"),
        of(2, "A takes", "B begins like A", "A leaves", "C takes"),
        of(2, "A takes", "B begins like A", "B leaves", "A leaves", "C takes"),
        of(3, "A takes", "B begins like A", "C begins like A", "A leaves", "C leaves", "D takes", "B leaves"),
        of(2, "A takes", "A leaves", "a free page comes back"),
        of(2, "a free page comes back"),
        by_chance(3, 30),
        by_chance(8, 300),
        Play("two pools at once, steps of both by chance", two_pools, again=2),
        Play("a page that more than 500 hold", many_holders, long=True),
        Play("more than 400 that take a page and leave", many_returns, long=True),
        Play("a pool of more than 1000 pages", large_pool, long=True),
    ]


def play_step(books: Books, step: str) -> None:
    """One step of a story in words."""
    who, _, what = step.partition(" ")
    if step == "a free page comes back":
        books.once_more(books.free[0])
    elif what == "takes":
        books.take(who)
    elif what == "leaves":
        books.leave(who)
    else:
        books.like(who, what.removeprefix("begins like "), pages=1)


def chance_step(books: Books, name: str, draw: random.Random) -> None:
    """One step of a story by chance; a new one is called `name`."""
    there = sorted(books.tables)
    what = draw.choices(["new", "more", "like", "leave", "twice"], [4, 3, 3, 4, 1])[0]
    if what == "twice" and books.free:
        books.once_more(draw.choice(books.free))
    elif what == "new" or not there:
        books.take(name)
    elif what == "more":
        books.take(draw.choice(there))
    elif what == "leave":
        books.leave(draw.choice(there))
    elif what == "like":
        other = draw.choice(there)
        books.like(name, other, draw.randint(1, len(books.tables[other])))


# --- what two may share ----------------------------------------------------------------------------


def beginnings() -> list[Play]:
    """The function `shared`."""

    def of(job: str, mine: list[int], theirs: list[int], page_tokens: int) -> Play:
        return Play(job, lambda asked, _: look_at_shared(asked, mine, theirs, page_tokens))

    def by_chance(asked: Asked, draw: random.Random) -> None:
        for _ in range(40):
            page_tokens, alike = draw.randint(1, 5), draw.randint(0, 17)
            text = [draw.randrange(9) for _ in range(alike)]
            mine = text + [draw.randrange(9) for _ in range(draw.randint(0, 6))]
            theirs = text + [draw.randrange(9) for _ in range(draw.randint(0, 6))]
            look_at_shared(asked, mine or [1], theirs or [1], page_tokens)

    def words(asked: Asked, draw: random.Random) -> None:
        for number in range(30):
            page_tokens = draw.choice(PAGES)
            text = [draw.randrange(WORDS) for _ in range(draw.randint(0, 4 * page_tokens))]
            look_at_shared(asked, *parted(text, number, draw), page_tokens)

    def long(asked: Asked, draw: random.Random) -> None:
        text = [draw.randrange(WORDS) for _ in range(draw.randint(4200, 5000))]
        look_at_shared(asked, *parted(text, 0, draw), draw.choice((1, 16)))
        # A token short of two pages: a hair, where so many make a page.
        page_tokens = draw.randint(2000, 2100)
        look_at_shared(asked, *parted(text[: 2 * page_tokens - 1], 8, draw), page_tokens)

    def again(asked: Asked, draw: random.Random) -> None:
        mine = [draw.randrange(WORDS) for _ in range(40)]
        theirs = list(mine)
        look_at_shared(asked, mine, theirs, 4)
        theirs[18], theirs[19] = theirs[19], theirs[18]
        look_at_shared(asked, mine, theirs, 4)
        # Two tokens that a polynomial hash does not tell from two others, with any of the usual factors.
        for factor in (31, 33, 37, 131, 257):
            theirs = list(mine)
            theirs[10], theirs[11] = mine[10] + 1, mine[11] - factor
            if theirs[11] < 0:
                theirs[10], theirs[11] = mine[10], mine[11] + factor
                mine = [*mine[:10], mine[10] + 1, *mine[11:]]
            look_at_shared(asked, mine, theirs, 4)

    return [
        of("two that begin differently", [5, 1, 2], [6, 1, 2], 1),
        of("two whose first page is alike", [3, 1, 4, 1, 5, 9], [3, 1, 4, 1, 6, 6], 4),
        of("two that part inside of a page", [3, 1, 4, 1, 5, 9, 2], [3, 1, 4, 1, 5, 8, 2], 4),
        of("one whose page is not full yet", [3, 1, 4, 1, 5, 9], [3, 1, 4], 4),
        of("two that part and are equal again later", [1, 1, 2, 2, 3, 3, 4], [1, 1, 9, 9, 3, 3, 4], 2),
        of("the same text twice", [3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4, 1, 5, 9, 2, 6], 4),
        of("the same text, and a word more", [3, 1, 4, 1, 5, 9, 2, 6, 5], [3, 1, 4, 1, 5, 9, 2, 6], 4),
        of("two whose digits are alike", [1, 23, 4, 5], [12, 3, 4, 5], 2),
        of("a token that begins with another's digits", [7, 12, 4], [7, 123, 4], 2),
        Play("the same texts again, but for two tokens", again),
        Play("forty pairs by chance", by_chance, again=3),
        Play("thirty pairs of longer texts by chance", words, again=1),
        Play("two texts that part after more than 4096 tokens", long, long=True),
    ]


def parted(text: list[int], number: int, draw: random.Random) -> tuple[list[int], list[int]]:
    """Two texts that begin with this one and then part, in a way that somebody may not see."""
    a, b, c = (draw.randint(1, 99) for _ in range(3))
    ways: list[tuple[list[int], list[int]]] = [
        ([a, 10 * b + 1], [10 * a + 1, b]),
        ([a * 10 + b % 10, c], [a, (b % 10) * 100 + c]),  # the same digits, cut at another place
        ([a, b, c], [10 * a + b % 10, b, c]),  # the one's digits begin with the other's
        ([a, b + 256 * c], [a, b]),
        ([a + 2**16, b], [a, b]),
        ([a + 2**17, b], [a, b]),
        ([a, b + c, 0], [a, b, c]),  # the same sum
        ([a, b, b + c], [b + c, b, a]),  # the same tokens
        ([], [a]),
        ([a], []),
        ([], []),
    ]
    mine, theirs = ways[number % len(ways)]
    end = [draw.randrange(WORDS) for _ in range(draw.randint(0, 300))]  # and then both go on alike
    return [*text, *mine, *end] or [1], [*text, *theirs, *end] or [1]


def near(text: list[int], at: int) -> str:
    """A text, short: about the token where it parts from another."""
    if len(text) <= 24:
        return str(text)
    begin, end = max(0, at - 4), min(len(text), at + 4)
    return f"{len(text)} tokens, from token {begin} on {text[begin:end]}"


def look_at_shared(asked: Asked, mine: list[int], theirs: list[int], page_tokens: int) -> None:
    """As many pages as are full, alike from the first on, and leave a token to compute."""
    alike = 0
    while alike < min(len(mine), len(theirs)) and mine[alike] == theirs[alike]:
        alike += 1
    due = min(alike, len(mine) - 1) // page_tokens
    got = asked.call("shared", mine, theirs, page_tokens).number("shared")
    if got == due:
        return
    texts = [f"mine {near(mine, alike)}, theirs {near(theirs, alike)}, pages of {page_tokens}"]
    if got < due:
        why = f"{counted(due, 'page')} can be shared, full and alike; you share {got}"
    elif got <= alike // page_tokens:
        why = f"you share {counted(got, 'page')}, and no token of mine is left to compute"
    elif alike == len(theirs):
        why = f"you share {counted(got, 'page')}, and theirs fill {len(theirs) // page_tokens}"
    elif alike < len(mine):
        why = f"you share {counted(got, 'page')}; at token {alike}, on page {alike // page_tokens}, the texts part"
    else:
        why = f"you share {counted(got, 'page')}, and mine fill {len(mine) // page_tokens}"
    raise Slip("wrong", why, NEXT_OF_SHARING, texts)


# --- when no page is left --------------------------------------------------------------------------


def ends() -> list[Play]:
    """The function `runs_out`."""
    slips = [(1, most) for most in (3, 9, 4, 6, 2, 5)]

    def of(job: str, requests: list[tuple[int, int]], pages: int, page_tokens: int) -> Play:
        return Play(job, lambda asked, _: look_at_end(asked, requests, pages, page_tokens))

    def by_chance(asked: Asked, draw: random.Random) -> None:
        for _ in range(40):
            requests = [(draw.randint(1, 12), draw.randint(1, 12)) for _ in range(draw.randint(1, 6))]
            look_at_end(asked, requests, draw.randint(2, 24), draw.randint(1, 6))

    def rooms(asked: Asked, draw: random.Random) -> None:
        for number in range(40):
            look_at_end(asked, *room(number, draw))

    def long(asked: Asked, draw: random.Random) -> None:
        requests = [(draw.randint(1, 5000), draw.randint(1, 1000)) for _ in range(draw.randint(66, 80))]
        last = draw.randint(1030, 1100)
        requests += [(draw.randint(4097, 5000), last)] * 66
        # All are there at first, and in the end none but 66 whose pages run out at last.
        whole = max(needed(requests, step, 16) for step in range(1, last + 1))
        look_at_end(asked, requests, whole - 1, 16)
        # A token more than whole pages: a hair, where so many make a page.
        pages, page_tokens = draw.randint(2, 4), draw.randint(2000, 3000)
        look_at_end(asked, [(pages * page_tokens - 1, 5)], pages, page_tokens)
        look_at_end(asked, requests[-66:], needed(requests[-66:], last, 16) - 1, 16)

    def again(asked: Asked, _: random.Random) -> None:
        look_at_end(asked, [(1, 9), (9, 1), (1, 9), (1, 9)], 9, 4)
        look_at_end(asked, [(1, 9), (9, 9), (1, 1), (1, 9)], 9, 4)

    return [
        of("one that fits", [(1, 3)], 1, 4),
        of("one that is one token too long", [(1, 4)], 1, 4),
        of("two, one of which leaves early", [(1, 1), (1, 7)], 2, 4),
        of("two, one of which is done in time", [(2, 1), (3, 4)], 2, 4),
        of("two, one of which is done a step too late", [(2, 2), (3, 4)], 2, 4),
        of("the six slips, 8 pages of 4", slips, 8, 4),
        of("the six slips, 7 pages of 4", slips, 7, 4),
        of("the six slips, 11 pages of 2", slips, 11, 2),
        of("a prompt that is longer than all pages", [(2, 2), (40, 1)], 8, 4),
        Play("four, and then two of them write as much as the other did", again),
        Play("forty rooms by chance", by_chance, again=3),
        Play("forty larger rooms by chance", rooms, again=1),
        Play("more than 100 requests and 1000 steps", long, long=True),
    ]


def room(number: int, draw: random.Random) -> tuple[list[tuple[int, int]], int, int]:
    """Requests, pages and their size: just enough room in a step, or a page too few, or enough at all times."""
    page_tokens = draw.choice(PAGES)
    longest = draw.choice((20, 60, 200))
    requests = [
        (draw.randint(1, draw.choice((12, 40, 4 * page_tokens + 1))), draw.randint(1, longest))
        for _ in range(draw.randint(1, draw.choice((4, 12, 30))))
    ]
    needs = [needed(requests, step, page_tokens) for step in range(1, max(most for _, most in requests) + 1)]
    about = max(needs) if number % 3 else draw.choice(needs)
    return requests, max(1, about - draw.choice((0, 1, 1))), page_tokens


def needed(requests: Sequence[tuple[int, int]], step: int, page_tokens: int) -> int:
    """Pages that those hold in a step who still write, a token more each."""
    return sum(in_use(prompt + step, page_tokens) for prompt, most in requests if step <= most)


def look_at_end(asked: Asked, requests: list[tuple[int, int]], pages: int, page_tokens: int) -> None:
    """The first step in which more pages are needed than there are, or 0."""
    last = max(most for _, most in requests)
    due = next((s for s in range(1, last + 1) if needed(requests, s, page_tokens) > pages), 0)
    got = asked.call("runs_out", requests, pages, page_tokens).number("runs_out")
    if got == due:
        return
    texts = [f"requests (prompt, most) {requests}, {counted(pages, 'page')} of {page_tokens}"]
    if due > 0 and not 0 < got < due:
        wants = needed(requests, due, page_tokens)
        said = f"you say step {got}" if got else "you say that nobody waits"
        why = f"in step {due} they need {counted(wants, 'page')} and have {pages}; {said}"
    elif 0 < got <= last:
        wants = needed(requests, got, page_tokens)
        why = f"in step {got} they need {counted(wants, 'page')} and have {pages}: nobody waits yet"
    else:
        why = f"they write in steps 1 to {last}; you say step {got}"
    raise Slip("wrong", why, NEXT_OF_STEPS, texts)
