"""Errors raised in place of a number."""

from __future__ import annotations


class Refused(Exception):
    """A result that must not become a number; the message is one line: what, where, what to do."""
