"""Filter of a build's log, which drops what MkDocs and its plugins say of themselves.

Only remarks are dropped. A warning is printed, counted, and fails a strict build, whoever gives it.
"""

from __future__ import annotations

import logging

# The start of a remark, by who makes it. The folders it names are scratch folders that are gone a minute later.
DROPPED = {
    "mkdocs.plugins.mkdocs_jupyter": ("Copied jupyter file", "Copied data files"),
    "mkdocs.commands.build": ("Cleaning site directory", "Building documentation to directory"),
}


def quieten() -> None:
    """Drop these remarks from now on; calling it again changes nothing."""
    for name in DROPPED:
        logging.getLogger(name).addFilter(_wanted)


def _wanted(record: logging.LogRecord) -> bool:
    starts = DROPPED.get(record.name, ())
    return record.levelno > logging.INFO or not str(record.msg).startswith(starts)
