"""Errors in place of a profile."""

from __future__ import annotations


class Unusable(Exception):
    """Error: this cannot be profiled; one line: what, where, what to do."""


class Wrong(Exception):
    """Error: the kernel's answer is wrong, or it does not compile: there is nothing to profile. One line."""
