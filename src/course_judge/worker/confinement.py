"""Confinement of a worker: the parts of the system that hold a stranger's process to its limits.

Linux alone can hold a process to its own folder and off the network (Landlock, a network namespace); what the system
at hand cannot do is said, in `confine`'s answer and with the verdict.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
from pathlib import Path

from course_judge.protocol.limits import Limits

OPEN_FILES = 4096  # at once, where the system allows more


# --- Landlock: https://docs.kernel.org/userspace-api/landlock.html ---------------------------------

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the numbers of its system calls, the same on every architecture
_WRITE_FILE = 1 << 1
_WRITES_1 = _WRITE_FILE | 0b1_1111_1111_0000  # and making and removing files of every kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_PEOPLE = ("tty", "pts", "console", "shm", "mqueue")  # of /dev: where somebody reads what is written
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals
_NO_NEW_PRIVS = 38  # of prctl


def confine(limits: Limits, folder: Path) -> list[str]:
    """Hold this process, and all that it starts, to its limits. There is no way back.

    Args:
        folder: the one place where files may be written.
    Returns:
        What could not be held on this system, a short clause each.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.disk_bytes, limits.disk_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write that is too long fails instead
    if not sys.platform.startswith("linux"):
        return ["files outside of its folder", "the network", "processes that leave its group"]
    open_still = []
    if not _without_network():
        open_still.append("the network")
    return open_still + _landlock(folder)


def end_with_parent() -> None:
    """Have Linux end this process when the one that started it is gone."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


def adopt_orphans() -> bool:
    """Make this process the parent of whatever its children leave behind; False where the system cannot."""
    try:
        return ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # 36 is PR_SET_CHILD_SUBREAPER
    except (OSError, AttributeError):
        return False


def _without_network() -> bool:
    """Return a network namespace of its own, with nothing in it.

    Needs root, or a system that allows user namespaces.
    """
    new_user, new_net = 0x10000000, 0x40000000
    libc = ctypes.CDLL(None)
    return libc.unshare(new_net) == 0 or libc.unshare(new_user | new_net) == 0


def _landlock(folder: Path) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return ["files outside of its folder", "signals to other processes"]
    handled = _WRITES_1 | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    fields = (handled, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    attribute = struct.pack("=QQQ", *fields)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = libc.syscall(_CREATE, attribute, ctypes.c_size_t(len(attribute)), ctypes.c_uint32(0))
    if rules < 0:
        return ["files outside of its folder", "signals to other processes"]

    def allow(path: Path, rights: int) -> None:
        with contextlib.suppress(OSError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                if not path.is_dir():
                    rights &= _WRITE_FILE | _TRUNCATE
                rule = struct.pack("=Qi", rights & handled, opened)
                libc.syscall(_ADD, rules, ctypes.c_int(1), rule, ctypes.c_uint32(0))
            finally:
                os.close(opened)

    allow(folder, handled)
    for device in Path("/dev").iterdir():
        if not device.name.startswith(_PEOPLE):
            allow(device, _WRITE_FILE | _TRUNCATE)
    allow(Path("/proc/self/task"), _WRITE_FILE | _TRUNCATE)  # CUDA gives its threads their names
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    done = libc.syscall(_RESTRICT, rules, ctypes.c_uint32(0)) == 0
    os.close(rules)
    if not done:
        return ["files outside of its folder", "signals to other processes"]
    return [] if version >= 6 else ["signals to other processes"]
