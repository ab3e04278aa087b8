"""What is raised in place of a profile."""

from __future__ import annotations


class Unusable(Exception):
    """What was asked for cannot be profiled; one line: what, where, what to do."""


class Wrong(Exception):
    """The kernel's answer is wrong, or it does not compile: there is nothing to profile. One line."""
