"""The loop: plan a step, compute it, choose a token for everybody whose turn it is, say so.

Tokens do not depend on who else is served: the same request gets the same answer alone and in company, but for the
rounding of sums whose order depends on how many tokens a step has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from course_models.generate import choose
from course_models.model import Model
from course_models.serving.block_manager import OutOfPages, Pages
from course_models.serving.graphs import Graphs
from course_models.serving.paged import PagedAttention, PagedModel, paged_decode_attention
from course_models.serving.request import Refused, Request, Running
from course_models.serving.scheduler import Schedule, Share, check_fits


@dataclass(frozen=True)
class Written:
    """A token of an answer.

    Attributes:
        number: the request's, as `submit` returned it.
        token: what was written.
        done: whether it was the last one.
    """

    number: int
    token: int
    done: bool


class Engine:
    """Serves a model.

    Attributes:
        schedule: who is under way and who waits; `schedule.pages` says what is held.
        steps: how many steps were made.
    """

    def __init__(
        self,
        model: Model,
        *,
        pages: int = 256,
        page_tokens: int = 16,
        step_tokens: int = 512,
        batch: int = 32,
        continuous: bool = True,
        attention: PagedAttention = paged_decode_attention,
        graphs: bool = False,
    ) -> None:
        """
        Args:
            model: what gives logits.
            pages, page_tokens: of the cache.
            step_tokens: tokens of a step, at most.
            batch: requests under way, at most.
            continuous: see `Schedule`.
            attention: by which each row looks at its pages, such as one of our kernels. In a graph the plain one
                copies, for every row, as many tokens as a request may have.
            graphs: replay steps of few tokens (`graphs.ROWS`) from CUDA graphs; on a GPU alone.
        Raises:
            ValueError: sizes that do not fit together.
            RuntimeError: graphs without a GPU.
        """
        self.model = model
        self.schedule = Schedule(
            Pages(pages, page_tokens, first=1), step_tokens, batch, continuous=continuous
        )
        self.steps = 0
        self._paged = PagedModel(model, pages, page_tokens, attention)
        if graphs and model.device.type != "cuda":
            raise RuntimeError(
                f"graphs: expected a model on a GPU, got {model.device}: serve without graphs there"
            )
        self._graphs = Graphs(self._paged, model.config.max_tokens) if graphs else None
        self._under_way: dict[int, Running] = {}
        self._generators: dict[int, torch.Generator] = {}
        self._last = 0

    def submit(self, request: Request) -> int:
        """Take a request; it begins in one of the next steps.

        Returns:
            Its number.
        Raises:
            Refused: it cannot be served; nothing else changes.
        """
        self._check(request)
        self._last += 1
        self._under_way[self._last] = one = Running(self._last, request, list(request.prompt))
        self.schedule.waiting.append(one)
        if request.temperature:
            self._generators[self._last] = torch.Generator(self.model.device).manual_seed(request.seed)
        return self._last

    def cancel(self, number: int) -> None:
        """Nobody wants the rest of an answer; one that is done is left alone."""
        if one := self._under_way.get(number):
            self._leave(one)

    def step(self) -> list[Written]:
        """Return one step for all whose turn it is; what was written in it.

        Empty if nobody is there, or all still read.
        """
        shares = self.schedule.plan()
        if not shares:
            return []
        logits = self._logits(shares)
        self.steps += 1
        ending = [share.running for share in shares if share.ends]
        for share in shares:
            self.schedule.computed(share)
        written = []
        for one, token in zip(ending, self._chosen(ending, logits), strict=True):
            one.tokens.append(token)
            written.append(Written(one.number, token, one.done))
            if one.done:
                self._leave(one)
        return written

    def generate(self, request: Request) -> Iterator[int]:
        """Return the tokens of an answer, each as soon as it is known; the others under way go on meanwhile.

        Several such streams may be read in turns. One that is closed early is cancelled.

        Raises:
            Refused: at once, as `submit`.
        """
        return self._stream(self._under_way[self.submit(request)])

    def _stream(self, one: Running) -> Iterator[int]:
        read = len(one.request.prompt)
        try:
            while True:
                while read < len(one.tokens):
                    read += 1
                    yield one.tokens[read - 1]
                if one.over:
                    return
                self.step()
        finally:
            self.cancel(one.number)

    def _logits(self, shares: list[Share]) -> Tensor:
        if self._graphs is not None and self._graphs.takes(shares):
            return self._graphs.step(shares)
        return self._paged.step(shares)

    def _chosen(self, ending: list[Running], logits: Tensor) -> list[int]:
        tokens: list[int] = logits.argmax(dim=-1).tolist()
        for row, one in enumerate(ending):
            if one.request.temperature:  # drawn by itself, so that nobody's answer hangs on who else is there
                generator = self._generators[one.number]
                tokens[row] = int(choose(logits[row][None], one.request.temperature, generator))
        return tokens

    def _leave(self, one: Running) -> None:
        self.schedule.leave(one)
        self._generators.pop(one.number, None)
        del self._under_way[one.number]

    def _check(self, request: Request) -> None:
        prompt, c = request.prompt, self.model.config
        if not prompt:
            raise Refused("prompt: it is empty: give at least one token")
        if wrong := [token for token in prompt if not 0 <= token < c.vocab]:
            raise Refused(
                f"prompt: token {wrong[0]} is none of this model's: they go from 0 to {c.vocab - 1}"
            )
        if request.most < 1:
            raise Refused(f"most: expected at least 1, got {request.most}")
        if not request.temperature >= 0:
            raise Refused(f"temperature: expected 0 or more, got {request.temperature}")
        # The last token that is written is never read again.
        tokens = len(prompt) + request.most - 1
        if tokens > c.max_tokens:
            raise Refused(
                f"prompt: {len(prompt)} tokens and {request.most} to write are more than the model's "
                f"{c.max_tokens} positions: ask for fewer, or give a shorter prompt"
            )
        try:
            check_fits(self.schedule.pages, tokens)
        except OutOfPages as short:
            raise Refused(
                f"prompt: {short}: ask for fewer tokens, or start the engine with more pages"
            ) from None
