"""Scheduler of the next step: which requests decode, read a piece of their prompt, wait, or give their pages back.

A step has room for a fixed number of tokens. Requests that are writing come first, with one token each. The room that
is left goes to prompts, in pieces, so that a long prompt holds nobody up (*chunked prefill*). A request joins as soon
as there is room for it, in the middle of the others (*continuous batching*). If pages run out, the request that came
last gives back all of its pages and waits; its text is kept, and read again when its turn comes (*pre-emption*).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from course_models.serving.block_manager import OutOfPages, Pages
from course_models.serving.request import Running


@dataclass(frozen=True)
class Share:
    """One request's part of a step: `tokens` more of it are computed."""

    running: Running
    tokens: int

    @property
    def ends(self) -> bool:
        """True if all of its tokens are in the cache after the step, so that the next one can be chosen."""
        return self.tokens == self.running.left


class Schedule:
    """The queue and those under way.

    Attributes:
        waiting: not begun, or pre-empted; in the order in which they came.
        running: under way, in the order in which they came.
        preempted: how often a request had to give its pages back.
        shared: tokens that were already in the cache when their request began.
    """

    def __init__(self, pages: Pages, step_tokens: int, batch: int, *, continuous: bool = True) -> None:
        """
        Args:
            pages: of the cache.
            step_tokens: tokens of a step, at most.
            batch: requests under way, at most.
            continuous: whether others join while some are under way. Without it a batch is filled, and everybody
                waits for its last request: *static batching*.
        Raises:
            ValueError: a step that does not hold a token for each request.
        """
        if not 1 <= batch <= step_tokens:
            raise ValueError(f"batch: expected 1 to step_tokens={step_tokens}, got {batch}")
        self.pages, self.step_tokens, self.batch, self.continuous = pages, step_tokens, batch, continuous
        self.waiting: deque[Running] = deque()
        self.running: list[Running] = []
        self.preempted = self.shared = 0

    def plan(self) -> list[Share]:
        """Return which requests compute how many tokens in the next step; they hold their pages when this returns.

        Those with one token come first. The list is empty if there are no requests.
        """
        room, preempted = self.step_tokens, self.preempted
        shares: list[Share] = []
        # A prompt that is still being read, or a text that is read again, comes after the requests that write.
        for one in sorted(self.running, key=lambda one: one.left > 1):
            tokens = min(one.left, room)
            if tokens and one in self.running and self._has_pages(one, tokens):
                shares.append(Share(one, tokens))
                room -= tokens
        # An earlier request may have taken the pages of one that already has a share.
        shares = [share for share in shares if share.running in self.running]
        room = self.step_tokens - sum(share.tokens for share in shares)
        # In a step in which a request had to leave, none joins.
        joins = self.preempted == preempted and (self.continuous or not self.running)
        while joins and room and self.waiting and len(self.running) < self.batch:
            tokens = self._begin(self.waiting[0], room)
            if not tokens:
                break
            one = self.waiting.popleft()
            self.running.append(one)
            self.running.sort(key=lambda one: one.number)
            shares.append(Share(one, tokens))
            room -= tokens
        return sorted(shares, key=lambda share: (share.tokens > 1, share.running.number))

    def computed(self, share: Share) -> None:
        """Note that a share is in the cache; its full pages may be shared from now on."""
        one, size = share.running, self.pages.page_tokens
        one.computed += share.tokens
        while (one.filled + 1) * size <= one.computed:
            begin = one.filled * size
            one.name = self.pages.fill(one.pages[one.filled], one.name, one.tokens[begin : begin + size])
            one.filled += 1

    def leave(self, one: Running) -> None:
        """Take out a request that is done or cancelled, wherever it is."""
        if one in self.running:
            self.running.remove(one)
        else:
            self.waiting.remove(one)
        self._give_back(one)
        one.over = True

    def _begin(self, one: Running, room: int) -> int:
        """Give a waiting request its first pages; how many tokens it may compute, 0 if there is no page for it."""
        # The last token is always computed: the next one is chosen from its logits.
        shared = self.pages.share(one.tokens[:-1])
        one.pages, one.name, one.filled = list(shared.pages), shared.name, len(shared.pages)
        one.computed = len(shared.pages) * self.pages.page_tokens
        tokens = min(one.left, room)
        # Requests under way will soon need a page: this is not the time to join.
        if self._lacks(one, tokens) > self.pages.free - len(self.running):
            self._give_back(one)
            return 0
        self._take(one, tokens)
        self.shared += one.computed
        return tokens

    def _has_pages(self, one: Running, tokens: int) -> bool:
        """Get the pages for so many more tokens, if need be from later requests; False if this one must wait."""
        while self._lacks(one, tokens) > self.pages.free:
            last = self.running.pop()
            self._give_back(last)
            self.waiting.appendleft(last)
            self.preempted += 1
            if last is one:
                return False
        self._take(one, tokens)
        return True

    def _lacks(self, one: Running, tokens: int) -> int:
        wanted = -(-(one.computed + tokens) // self.pages.page_tokens)
        return max(wanted - len(one.pages), 0)

    def _take(self, one: Running, tokens: int) -> None:
        for _ in range(self._lacks(one, tokens)):
            one.pages.append(self.pages.take())

    def _give_back(self, one: Running) -> None:
        self.pages.give_back(one.pages)
        one.pages, one.computed, one.name, one.filled = [], 0, 0, 0


def check_fits(pages: Pages, tokens: int) -> None:
    """Refuse a text that would not fit if it were alone.

    Raises:
        OutOfPages: it is longer than all pages together.
    """
    if tokens > pages.count * pages.page_tokens:
        raise OutOfPages(
            f"a text of {tokens} tokens needs {-(-tokens // pages.page_tokens)} pages, and there are {pages.count}"
        )
