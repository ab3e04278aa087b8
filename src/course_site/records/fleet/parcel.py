"""Parcels: what a worker sends back of a task, as bytes under a checksum; half of one is no parcel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAGIC = b"course parcel 1\n"
RECORD = "record"  # the name of the record among the files; an artifact is "artifact/NAME"
ARTIFACT = "artifact/"


class ParcelRefused(ValueError):
    """Bytes that are not the whole answer to what was asked; one line."""


@dataclass(frozen=True)
class Parcel:
    """The answer of a worker.

    Attributes:
        task: name of the page or group of GPU tests, as it was asked for.
        attempt: which try of it this is.
        outcome: "recorded"; "failed", where `line` and `detail` say why; "lacking", where `line` says what the card
            lacks, and the last record stands.
        seconds: wall time on the worker.
        files: "record", and the artifacts of a page; of a group that failed, its record all the same.
    """

    task: str
    attempt: str
    outcome: str
    seconds: float = 0.0
    line: str = ""
    detail: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def pack(self) -> bytes:
        """Return the parcel as bytes, its checksum before all that it covers."""
        head = {
            "task": self.task,
            "attempt": self.attempt,
            "outcome": self.outcome,
            "seconds": self.seconds,
            "line": self.line,
            "detail": self.detail,
            "files": [[name, len(data)] for name, data in self.files.items()],
        }
        body = json.dumps(head).encode() + b"\n" + b"".join(self.files.values())
        return MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: Any, task: str, attempt: str) -> Parcel:
    """Read a parcel.

    Args:
        task, attempt: what was asked for.
    Raises:
        ParcelRefused: it is cut short or changed, or the answer to something else.
    """
    if not isinstance(data, bytes) or not data.startswith(MAGIC):
        raise ParcelRefused(f"{task}: what came back is no parcel ({type(data).__name__})")
    checksum, _, body = data[len(MAGIC) :].partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        raise ParcelRefused(
            f"{task}: its parcel of {len(data)} bytes is not whole (the checksum does not match)"
        )
    line, _, rest = body.partition(b"\n")
    head = json.loads(line)
    if (head["task"], head["attempt"]) != (task, attempt):
        raise ParcelRefused(
            f"{task}: the parcel is of {head['task']} ({head['attempt']}), asked was {attempt}"
        )
    files, start = {}, 0
    for name, size in head.pop("files"):
        files[name] = rest[start : start + size]
        start += size
    if start != len(rest):
        raise ParcelRefused(f"{task}: its parcel has {len(rest)} bytes of files and lists {start}")
    return Parcel(**head, files=files)
