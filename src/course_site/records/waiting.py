"""The list of what awaits a GPU, records/waiting.toml: pages, and groups of GPU tests."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = "records/waiting.toml"
GPU_TESTS = "tests/gpu"  # all groups of them; tests/gpu/<group> is one


@dataclass(frozen=True)
class Waiting:
    """An entry: a page, or a group of GPU tests, that awaits a GPU."""

    path: str
    since: str
    reason: str

    @property
    def is_of_tests(self) -> bool:
        """True for a group of GPU tests, or all of them."""
        return self.path == GPU_TESTS or self.path.startswith(f"{GPU_TESTS}/")


def load(root: Path) -> dict[str, Waiting]:
    """Read the entries, by path; none where there is no list.

    Raises:
        ValueError: one line that says what an entry needs.
    """
    path = root / FILE
    if not path.exists():
        return {}
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get("page", [])
        return {e["path"]: Waiting(e["path"], str(e["since"]), e["reason"]) for e in entries}
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"every [[page]] needs path, since and reason ({error})") from None
