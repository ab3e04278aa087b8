"""Proposer: whoever writes kernels for a task, behind one small interface.

Three are here: proposals that are kept as files, `recorded`; constants of a kernel, changed mechanically, `search`; and
any server that speaks as OpenAI's does, `endpoint`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from course_harness.tasks import Task

LONGEST = 256 * 1024  # characters of a file


class Stopped(Exception):
    """Error: the proposer cannot go on now, through no fault of what it proposed; one line. Later it may."""


@dataclass(frozen=True)
class Proposal:
    """A file, as it was proposed.

    Attributes:
        text: the whole file; empty where an answer held none.
        note: a line on how it came to be, in our words.
        said: plain data about it: the model, which constants.
    """

    text: str
    note: str = ""
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Turn:
    """A proposal, and what its proposer was told of it."""

    proposal: Proposal
    feedback: str


@dataclass(frozen=True)
class History:
    """Rounds before a proposal.

    Attributes:
        sample: the number of the sample, from 1; samples know nothing of each other.
        turns: the rounds of this sample so far.
    """

    sample: int
    turns: tuple[Turn, ...] = ()

    @property
    def round(self) -> int:
        """Number of the round that is next, from 1."""
        return len(self.turns) + 1


class Proposer(Protocol):
    """Proposer of kernels.

    Attributes:
        name: "recorded", "search" or "endpoint".
        own: the work must be the file's own; a changed kernel of the course cannot promise that.
    """

    name: str
    own: bool

    def described(self) -> dict[str, Any]:
        """Return plain data that says who proposes, and how; it is kept, so nothing secret is in it."""

    def propose(self, task: Task, history: History) -> Proposal | None:
        """Return the next file; None where this sample has no further round, or there is no such sample.

        Raises:
            Stopped: it cannot go on now.
        """


def shortened(text: str) -> str:
    """Return a file that a journal can hold; what is longer is cut, and then is no Python."""
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n<cut: the file is too long>\n"
