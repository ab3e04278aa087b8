"""Places: which cards a task may take, and when; the rules of sharing a host are kept here and nowhere else.

A host's cores are shared by tasks of one kind: pages with pages, groups of GPU tests with groups, as a page that is
timed beside a compiler is another page. What looks at time itself has its host alone. A task that needs several cards
has them all from one stand (see `statement`), and what it waits for is kept free for it: no task is passed over for
ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from course_site.records.fleet.statement import Statement
from course_site.records.plan import ALONE

RESTART_S = 20.0  # within this time a worker that died is started again by the one that started it


class NoPlace(RuntimeError):
    """No host that is here could ever run a task; one line."""


@dataclass(frozen=True)
class Post:
    """A worker that takes part: where it is reached, and what it says of itself."""

    address: str
    statement: Statement

    @property
    def card(self) -> tuple[str, str, str]:
        """The card itself, which stays taken when its worker dies and another takes its place."""
        one = self.statement
        return one.host, one.stand, one.gpu.visible


@dataclass(eq=False)
class _Request:
    name: str
    kind: str
    cards: int
    avoid: tuple[Post, ...]
    granted: asyncio.Future[list[Post]]
    since: float = field(default_factory=time.monotonic)


class Places:
    """The cards of a fleet, and who has them.

    Args:
        patience_s: how long a task that no host could take waits for one that can, since the last one came or went.
    """

    def __init__(self, patience_s: float = RESTART_S) -> None:
        self.patience_s = patience_s
        self.posts: dict[str, Post] = {}
        self._taken: dict[tuple[str, str, str], str] = {}  # the kind of task on each card
        self._waiting: list[_Request] = []
        self._changed = time.monotonic()

    def add(self, post: Post) -> None:
        """Let a worker take part."""
        self.posts[post.address] = post
        self._changed = time.monotonic()
        self._settle()

    def remove(self, address: str) -> None:
        """Forget a worker; the card it had stays taken until it is released."""
        if self.posts.pop(address, None):
            self._changed = time.monotonic()
            self._settle()

    async def take(self, name: str, kind: str, cards: int = 1, avoid: Iterable[Post] = ()) -> list[Post]:
        """Wait for cards of one stand, and take them; the first one's worker is the one to run the task.

        Args:
            name: the task, for the line that says why there is no place.
            avoid: workers that died of this task: it gets another card if there is one, else another process.
        Raises:
            NoPlace: no host could run it, and none has come in time.
        """
        loop = asyncio.get_running_loop()
        request = _Request(name, kind, cards, tuple(avoid), loop.create_future())
        self._waiting.append(request)
        self._settle()
        try:
            while not request.granted.done():
                await asyncio.wait({request.granted}, timeout=min(0.5, self.patience_s))
                waited = time.monotonic() - max(request.since, self._changed)
                if not request.granted.done() and waited > self.patience_s and not self._hosts(request):
                    raise NoPlace(self._why(request))
            return request.granted.result()
        except asyncio.CancelledError:
            if request.granted.done() and not request.granted.cancelled():
                self.release(request.granted.result())
            raise
        finally:
            if request in self._waiting:
                self._waiting.remove(request)
                self._settle()

    def release(self, posts: list[Post]) -> None:
        """Give cards back."""
        for post in posts:
            self._taken.pop(post.card, None)
        self._settle()

    @property
    def together(self) -> list[Post]:
        """The largest number of cards that one task could have."""
        return max(_by_stand(self.posts.values()).values(), key=len, default=[])

    def beside(self, post: Post) -> int:
        """Return how many workers there are on a post's host, itself among them."""
        return sum(other.statement.host == post.statement.host for other in self.posts.values())

    def _why(self, request: _Request) -> str:
        if not self.posts:
            return f"{request.name}: no worker is left"
        if request.cards > len(self.together):
            here = len(self.together)
            are = "is" if here == 1 else "are"
            return f"{request.name}: needs {request.cards} GPUs of one host, and there {are} {here}"
        return f"{request.name}: no worker is left but those that it ended"

    def _settle(self) -> None:
        """Grant what can be granted, in the order of asking; what cannot be yet has a host kept for it."""
        kept: set[str] = set()
        for request in list(self._waiting):
            posts = self._fit(request, kept)
            if posts:
                self._waiting.remove(request)
                self._taken.update({post.card: request.kind for post in posts})
                request.granted.set_result(posts)
            elif host := min(
                (host for host in self._hosts(request) if host not in kept), key=self._load, default=None
            ):
                kept.add(host)

    def _fit(self, request: _Request, kept: set[str]) -> list[Post]:
        """Return cards that are free for a request: of the stand with the fewest that will do."""
        found: list[list[Post]] = []
        for (host, _), posts in self._stands(request).items():
            kinds = {kind for card, kind in self._taken.items() if card[0] == host}
            if host in kept or (kinds and (request.kind == ALONE or kinds != {request.kind})):
                continue
            free = [post for post in posts if post.card not in self._taken]
            if len(free) >= request.cards:
                found.append(sorted(free, key=lambda post: post.statement.gpu.index))
        return min(found, key=len, default=[])[: request.cards]

    def _stands(self, request: _Request) -> dict[tuple[str, str], list[Post]]:
        """Return the posts that could run a request, by their stands."""
        processes = {post.statement.process for post in request.avoid}
        others = [post for post in self.posts.values() if post.statement.process not in processes]
        elsewhere = _by_stand(
            post for post in others if post.card not in {post.card for post in request.avoid}
        )
        enough = any(len(posts) >= request.cards for posts in elsewhere.values())
        return elsewhere if enough else _by_stand(others)

    def _hosts(self, request: _Request) -> list[str]:
        """Return the hosts that could run a request, were they idle."""
        stands = self._stands(request).items()
        return sorted({host for (host, _), posts in stands if len(posts) >= request.cards})

    def _load(self, host: str) -> int:
        return sum(card[0] == host for card in self._taken)


def _by_stand(posts: Iterable[Post]) -> dict[tuple[str, str], list[Post]]:
    stands: dict[tuple[str, str], list[Post]] = {}
    for post in posts:
        stands.setdefault((post.statement.host, post.statement.stand), []).append(post)
    return stands
