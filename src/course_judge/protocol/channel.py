"""Messages between the judge and the processes it starts: a line of JSON each, and open files where one is handed."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Sequence
from typing import Any

MAX_MESSAGE = 2**20  # bytes; nobody has that much to say
MAX_FILES = 4


class Gone(Exception):
    """Error: the other side has ended."""


class OutOfTurn(Exception):
    """Error: the bytes that came are no message."""


class TimedOut(Exception):
    """Error: nothing came in time."""


class Channel:
    """One end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._rest = b""
        self._files: list[int] = []

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Return the two ends of a new channel."""
        one, other = socket.socketpair()
        return cls(one), cls(other)

    def send(self, message: Any, files: Sequence[int] = ()) -> None:
        """Send a message, and open files with it.

        Raises:
            Gone: nobody is there.
        """
        data = json.dumps(message).encode() + b"\n"
        try:
            if files:
                sent = socket.send_fds(self.socket, [data], list(files))
                data = data[sent:]
            if data:
                self.socket.sendall(data)
        except OSError as error:
            raise Gone(str(error)) from None

    def receive(self, seconds: float | None = None) -> tuple[Any, list[int]]:
        """Return the next message and the files that came with it.

        Raises:
            Gone: the other side has ended.
            OutOfTurn: what came is no JSON, or longer than a message may be.
            TimedOut: nothing came within `seconds`.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._rest:
            if len(self._rest) > MAX_MESSAGE:
                raise OutOfTurn(f"{len(self._rest)} bytes without an end")
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self.socket], [], [], left)[0]:
                raise TimedOut
            try:
                data, files, _, _ = socket.recv_fds(self.socket, 65536, MAX_FILES)
            except OSError as error:
                raise Gone(str(error)) from None
            self._files += files
            if not data:
                raise Gone("it closed its end")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        files, self._files = self._files, []
        try:
            return json.loads(line), files
        except (ValueError, RecursionError):
            raise OutOfTurn(line[:80].decode(errors="replace")) from None

    def close(self) -> None:
        """Close this end."""
        self.socket.close()
