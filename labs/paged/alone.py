"""The last task of the pages: who gives way, so that enough comes free and the least is computed twice."""

import itertools
import random
from collections.abc import Sequence

from course_labs.interactive_cases import Asked, Play, Slip, counted

NEXT_OF_HOLDERS = "a page comes free when its last holder leaves: who else has it in a table?"
NEXT_OF_COST = (
    "with so few sequences there are not many groups: for each, write down what it frees and what it costs."
)


def cases() -> list[Play]:
    """From one up; then whatever may come."""

    def of(job: str, tables: list[list[int]], lengths: list[int], wanted: int) -> Play:
        return Play(job, lambda asked, _: look_at(asked, tables, lengths, wanted))

    def by_chance(asked: Asked, draw: random.Random) -> None:
        for _ in range(30):
            look_at(asked, *drawn(draw))

    def longer(asked: Asked, draw: random.Random) -> None:
        for _ in range(40):
            look_at(asked, *drawn(draw, draw.choice((1, 16, 100, 256)), most=draw.choice((4, 12, 24))))

    return [
        of("one alone, and a page wanted", [[4]], [3], 1),
        of("nothing wanted", [[4], [2]], [3, 4], 0),
        of("two, the second of which came last", [[0, 1], [2, 3]], [5, 8], 1),
        of("a long one against two short ones", [[0, 1, 2], [3], [4, 5]], [12, 1, 5], 3),
        of("a long one against two that cost more", [[0, 1, 2], [3, 4], [5]], [9, 8, 4], 3),
        of("two that share a beginning", [[0, 1, 2], [0, 1, 3], [4, 5, 6]], [9, 10, 12], 2),
        of("the same lengths, and nothing shared", [[0, 1, 2], [7, 8, 3], [4, 5, 6]], [9, 10, 12], 2),
        of(
            "three that share a page, which comes free only when all have left",
            [[0, 1], [0, 2], [0, 3]],
            [5, 6, 7],
            4,
        ),
        Play("thirty rooms by chance", by_chance, again=3),
        Play("forty rooms with longer texts by chance", longer, long=True),
    ]


def drawn(draw: random.Random, page_tokens: int = 4, most: int = 4) -> tuple[list[list[int]], list[int], int]:
    """A few tables, some of them with beginnings in common, and pages wanted that may come free.

    Args:
        most: pages that a table has for itself alone.
    """
    tables: list[list[int]] = []
    fresh = itertools.count() if most <= 4 else iter(draw.sample(range(10 * most), 7 * most))
    for _ in range(draw.randint(1, 7)):
        begin = draw.choice(tables)[: draw.randint(0, max(2, most // 2))] if tables else []
        tables.append([*begin, *(next(fresh) for _ in range(draw.randint(1, most)))])
    lengths = [page_tokens * len(table) - draw.randrange(page_tokens) for table in tables]
    return tables, lengths, draw.randint(0, len(set(itertools.chain(*tables))))


def freed(tables: Sequence[Sequence[int]], gone: Sequence[int]) -> set[int]:
    """Pages that nobody holds once some have left."""
    stay = {page for number, table in enumerate(tables) if number not in gone for page in table}
    return {page for number in gone for page in tables[number]} - stay


def look_at(asked: Asked, tables: list[list[int]], lengths: list[int], wanted: int) -> None:
    """A group that frees enough; none that does has fewer tokens."""
    groups = [g for n in range(len(tables) + 1) for g in itertools.combinations(range(len(tables)), n)]
    least = min(sum(lengths[i] for i in g) for g in groups if len(freed(tables, g)) >= wanted)
    answer = asked.call("give_way", tables, lengths, wanted)
    gone = answer.list("give_way", "sequences")
    lines = [f"tables {tables}, tokens {lengths}, {wanted} wanted"]
    if any(isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < len(tables) for one in gone):
        raise Slip(
            "wrong result", f"{gone}: expected sequences by their place, 0 to {len(tables) - 1}", lines=lines
        )
    if len(set(gone)) < len(gone):
        raise Slip("wrong", f"{gone}: the same one leaves twice", lines=lines)
    comes = freed(tables, gone)
    if len(comes) < wanted:
        held = sorted({page for one in gone for page in tables[one]} - comes)
        why = f"{counted(len(comes), 'page')} free once {gone} have left, and {wanted} wanted"
        why += f": page {held[0]} is still held" if held else ""
        raise Slip("wrong", why, NEXT_OF_HOLDERS if held else "", lines)
    cost = sum(lengths[one] for one in gone)
    if cost > least:
        why = f"{counted(cost, 'token')} computed twice when {gone} leave; {least} would do"
        raise Slip("wrong", why, NEXT_OF_COST, lines)
