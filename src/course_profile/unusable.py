"""What is raised where a kernel cannot be profiled."""

from __future__ import annotations


class Unusable(Exception):
    """What was asked for cannot be profiled; one line: what, where, what to do."""
