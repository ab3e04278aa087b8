"""Rejection of a stranger's file in its own process, before or beside any answer."""

from __future__ import annotations


class Rejected(Exception):
    """Error: a file is refused for what it is, or for what its kernel was seen to do.

    Attributes:
        found: the property that failed, a key of `course_judge.protocol.verdict.PROPERTIES`.
        next: what to try, where the usual advice does not fit.
    """

    def __init__(self, found: str, why: str, next: str = "") -> None:
        super().__init__(why)
        self.found, self.next = found, next
