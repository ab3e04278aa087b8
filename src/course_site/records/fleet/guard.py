"""Guard of a process that Dask speaks to: no code comes over the wire, only the name of the one function there is.

Dask unpickles what it is sent, and a pickle runs what it names. So nothing but the few names that a task of ours is
made of can be named, and of Dask's own requests only those stay that a fleet uses: a worker can be told neither to run
a function, nor to load a file or a plugin.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import pickle
import types
from collections.abc import Iterable, Iterator
from typing import Any

# What Dask wraps a call in (seen with distributed 2026.8.0), and the one function that is called.
NAMES = {
    ("builtins", "bytes"),
    ("builtins", "str"),
    ("dask._expr", "Expr._reconstruct"),
    ("dask._expr", "LLGExpr"),
    ("dask._task_spec", "Task"),
    ("course_site.records.fleet.tasks", "run_task"),
}
# How Dask tells the coordinator's own client what became of a task: an error, with all that it knew of the worker.
ERRORS = {
    ("builtins", "int"),
    ("collections", "defaultdict"),
    ("collections", "deque"),
    ("distributed.core", "Status"),
    ("distributed.scheduler", "KilledWorker"),
    ("distributed.scheduler", "NoValidWorkerError"),
    ("distributed.scheduler", "WorkerState"),
    ("tblib.pickling_support", "unpickle_exception_with_attrs"),
}
OF_A_WORKER = {
    "identity", "ping", "connection_stream", "get_data", "gather", "free_keys", "terminate", "versions",
    "leave",  # ours
}  # fmt: skip
OF_THE_SCHEDULER = {
    "identity", "ping", "connection_stream", "register-client", "register-worker", "unregister", "heartbeat_worker",
    "gather", "who_has", "ncores", "versions", "subscribe_worker_status", "terminate", "retire_workers",
}  # fmt: skip


class NotOurs(pickle.UnpicklingError):
    """A name in a message that no task of the course has; one line."""


class _Names(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        known = (module, name) in NAMES or (module, name) in ERRORS or _is_error(module, name)
        if not known:
            raise NotOurs(
                f"{module}.{name}: is not run here: a worker runs pages and GPU tests, by their names"
            )
        return super().find_class(module, name)


def _is_error(module: str, name: str) -> bool:
    found = getattr(builtins, name, None) if module == "builtins" else None
    return isinstance(found, type) and issubclass(found, Exception)


def loads(data: Any, *, buffers: Iterable[Any] = ()) -> Any:
    """Read a pickle that names nothing but what is known.

    Raises:
        NotOurs: it names something else.
    """
    return _Names(io.BytesIO(data), buffers=buffers or None).load()


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Have all that Dask unpickles in this process pass through `loads`."""
    import distributed.client
    import distributed.scheduler
    from distributed.protocol import pickle as of_dask

    ours = types.SimpleNamespace(**{**vars(pickle), "loads": loads})
    places: list[tuple[Any, str, Any]] = [
        (of_dask, "loads", loads),
        (distributed.client, "loads", loads),
        (distributed.client, "pickle", ours),
        (distributed.scheduler, "pickle", ours),
    ]
    before = [getattr(module, name) for module, name, _ in places]
    for module, name, guarded in places:
        setattr(module, name, guarded)
    try:
        yield
    finally:
        for (module, name, _), old in zip(places, before, strict=True):
            setattr(module, name, old)


def keep_only(server: Any, names: set[str]) -> None:
    """Block all requests to a worker or scheduler but those named."""
    server.blocked_handlers = sorted(set(server.handlers) - names)
