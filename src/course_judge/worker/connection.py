"""A worker's end of its channel: it reads questions, and marks each answer as the judge marked the question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from course_judge.protocol.channel import Channel
from course_judge.protocol.messages import Answer, Question, plain, question_in


class Connection:
    """Questions in, answers out."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._mark = ""  # of the question that was heard last

    def hear(self, kinds: Iterable[type[Question[Any]]]) -> tuple[Question[Any], list[int]]:
        """Return the next question, and the files that came with it.

        Raises:
            Gone: the judge has ended.
            Malformed: it is none of these kinds.
        """
        message, files = self._channel.receive()
        self._mark = message.pop("of")
        return question_in(message, kinds), files

    def say(self, answer: Answer) -> None:
        """Answer the question that was heard last."""
        self._channel.send({**plain(answer), "of": self._mark})
