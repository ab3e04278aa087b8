"""Exceptions that are no fault of the file: it asks for what a machine without a card, or an interpreter, lacks."""

from __future__ import annotations

import os
from pathlib import Path

from course_judge.worker.error_report import line_of

_CARD = "a card"
# What is said, or stands in the line that failed; what the file asks for; what to write instead.
_SAID = (
    ("active drivers", _CARD, "take the device of an input: device=x.device"),
    ("not compiled with CUDA", _CARD, ""),
    ("No CUDA GPUs", _CARD, ""),
    ("no NVIDIA driver", _CARD, ""),
    ("CUDA driver", _CARD, ""),
    ("CUDA_HOME", "CUDA's compiler", ""),
    ("'InterpreterBuilder' object has no attribute", "what Triton's interpreter lacks", ""),
    ("NoneType", "libdevice, which Triton's interpreter lacks", "tl.math has erf, exp, log, sqrt and others"),
    ("has no attribute 'to'", "`.to` of a constant, which Triton's interpreter lacks", ""),
)
_NEEDS = {"NoneType": "libdevice", "has no attribute 'to'": "constexpr"}  # what the file must name, too


def lacking(error: BaseException, file: Path) -> str:
    """Return which line asks for what is not here; empty where an exception says nothing of the kind."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") != "-1":
        return ""
    chain: list[BaseException] = []
    behind: BaseException | None = error
    while behind is not None and len(chain) < 8:
        chain.append(behind)
        behind = behind.__cause__ or behind.__context__
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    line = next(filter(None, (line_of(one, file) for one in chain)), None)
    where = f"line {line} asks" if line else "it asks"
    if isinstance(error, AssertionError) and line and "cuda" in text.splitlines()[line - 1]:
        return f"{where} for a card"
    for said, what, instead in _SAID:
        named = _NEEDS.get(said, "") in text
        if named and any(said in str(one)[:2000] for one in chain):
            return f"{where} for {what}{f'; {instead}' if instead else ''}"
    return ""
