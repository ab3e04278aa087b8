"""Records: the executed notebook of one page on one GPU, sealed, with all that tells whether it still holds.

A record is written by `nox -s docs` on a GPU and by no hand: `seal` puts a checksum over its content, and
`load` refuses one that does not match. A record is fresh when the page's code cells and every file that ran
before the samples existed still mean what they meant.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.measure.provenance import slug_of
from course_site.pages.page import Page
from course_site.records import artifacts, renames
from course_site.records.digest import code_digests, file_digest
from course_site.records.manifest import new_includes

SCHEMA = 2
MIME = "application/vnd.course.record+json"
AGAIN = "measure it again with `nox -s docs -- --page …`, or restore it with git"


class RecordError(ValueError):
    """A record that cannot be used: one line with the file, the cause and what to do."""


def edition_of(provenance: dict[str, Any]) -> dict[str, str]:
    """Edition of a run: GPU model and CUDA, torch and triton major.minor; {} where none was used.

    Records of one edition can be compared.
    """
    if provenance["gpu"] is None:
        return {}

    def minor(version: object) -> str:
        return ".".join(str(version).split("+")[0].split(".")[:2])

    return {
        "gpu": str(provenance["gpu"]),
        "slug": slug_of(str(provenance["gpu"])),
        "cuda": minor(provenance["cuda"]),
        "torch": minor(provenance["torch"]),
        "triton": minor(provenance["triton"]),
    }


def record_path(root: Path, slug: str, page: Page) -> Path:
    """Path of a page's record: records/<slug>/<page path>.ipynb, under the first path that the page had."""
    path = renames.load(root).paths.first(page.path.as_posix())
    return (root / "records" / slug / path).with_suffix(".ipynb")


def _checksum(data: dict[str, Any]) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def seal(data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of `data` with a "checksum" over everything else in it."""
    body = {key: value for key, value in data.items() if key != "checksum"}
    return {**body, "checksum": _checksum(body)}


def is_sealed(data: dict[str, Any]) -> bool:
    """Return True when the checksum in `data` is the checksum of the rest."""
    return data.get("checksum") == seal(data)["checksum"]


def load_sealed(path: Path, again: str) -> dict[str, Any]:
    """Read what `seal` made of a file that only the docs command writes; empty where there is none.

    Args:
        again: how one comes to a good file, for the one line that says what is wrong with this one.
    Raises:
        RecordError: the file is cut short, or was changed by hand.
    """
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise RecordError(f"{path}: is cut short or not JSON; {again}") from None
    if not isinstance(data, dict) or not is_sealed(data):
        raise RecordError(f"{path}: was changed by hand (its checksum does not match); {again}")
    return data


@dataclass(frozen=True)
class Record:
    """An executed page.

    Attributes:
        notebook: nbformat 4 dict; code cells only, with their outputs; provenance in metadata["course"].
        files: the artifacts of a page that has just run, by name; of a record that is read they stay where they lie.
        renamed: what was renamed since; the kernels that were timed have their present names.
    """

    notebook: dict[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    renamed: renames.Renames = renames.NONE

    @property
    def meta(self) -> dict[str, Any]:
        """Page, edition, provenance, cell digests, seconds of every cell, manifest."""
        return self.notebook["metadata"]["course"]

    @property
    def edition(self) -> dict[str, str]:
        """GPU model and versions this record belongs to; empty for a page that measures nothing."""
        return self.meta["edition"]

    @property
    def measured(self) -> bool:
        """True for the record of a page that ran on a GPU; the others belong to every edition."""
        return bool(self.edition)

    @property
    def artifacts(self) -> dict[str, dict[str, Any]]:
        """Statement of the files beside it: "bytes" and "sha256", by name."""
        return self.meta.get("artifacts", {})

    @property
    def dirty(self) -> bool:
        """True where what was measured differs from the commit it names; of a made-up GPU nothing is said."""
        provenance = self.meta["provenance"]
        return bool(provenance["dirty"]) and not provenance.get("fake")

    @property
    def made_up(self) -> bool:
        """True where COURSE_FAKE_GPUS made the GPU up, and does not do so now: nothing of it was measured."""
        return bool(self.meta["provenance"].get("fake")) and not os.environ.get("COURSE_FAKE_GPUS")

    @property
    def run(self) -> str:
        """Identity of this run among all runs of its page."""
        return f"{self.meta['id']}|{self.meta['provenance']['date']}"

    @property
    def seconds(self) -> float:
        """Run time of the whole page in seconds."""
        return float(sum(self.meta["seconds"]))

    @property
    def outputs(self) -> list[list[dict[str, Any]]]:
        """The outputs of every code cell, in order."""
        return [cell["outputs"] for cell in self.notebook["cells"]]

    @functools.cached_property
    def names(self) -> dict[str, Any]:
        """Values that the cells recorded by name, as plain JSON; a kernel by its present name."""
        merged: dict[str, Any] = {}
        for outputs in self.outputs:
            for output in outputs:
                data = output.get("data", {}).get(MIME)
                if data:
                    _merge(merged, data["names"])
        if self.renamed:
            _name_kernels(merged, self.renamed)
        return merged

    @classmethod
    def load(cls, path: Path, renamed: renames.Renames = renames.NONE) -> Record:
        """Read a record.

        Raises:
            RecordError: unreadable, cut short, of another schema, or not what was written.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise RecordError(f"{path}: cannot be read ({error.strerror}); {AGAIN}") from None
        except ValueError:
            raise RecordError(f"{path}: is cut short or not JSON; {AGAIN}") from None
        return cls.of_text(text, path, renamed)

    @classmethod
    def of_text(
        cls,
        text: str,
        path: Path,
        renamed: renames.Renames = renames.NONE,
        files: Mapping[str, bytes] | None = None,
    ) -> Record:
        """Read a record from the text of its file.

        Args:
            path: where it lies or will lie, for the line that says what is wrong with it.
            files: its artifacts, where they do not lie beside it yet.
        Raises:
            RecordError: cut short, of another schema, or not what was written.
        """
        try:
            notebook = json.loads(text)
        except ValueError:
            raise RecordError(f"{path}: is cut short or not JSON; {AGAIN}") from None
        try:
            meta = notebook["metadata"]["course"]
            schema, checksum, _ = meta["schema"], meta["checksum"], notebook["cells"]
        except (KeyError, TypeError):
            raise RecordError(f"{path}: is not a record of this project; {AGAIN}") from None
        if schema != SCHEMA:
            raise RecordError(f"{path}: has schema {schema}, this version reads {SCHEMA}; {AGAIN}")
        record = cls(notebook, files or {}, renamed)
        if checksum != record._content_checksum():
            raise RecordError(f"{path}: was changed by hand (its checksum does not match); {AGAIN}")
        return record

    def _content_checksum(self) -> str:
        meta = {key: value for key, value in self.meta.items() if key != "checksum"}
        metadata = {**self.notebook["metadata"], "course": meta}
        return _checksum({**self.notebook, "metadata": metadata})

    def save(self, path: Path) -> None:
        """Write the record, its artifacts before it: to temporary names first, so that a reader never sees half."""
        artifacts.put(path, self.files)
        text = json.dumps(self.notebook, indent=1, ensure_ascii=False) + "\n"
        # A list of samples belongs on one line: a diff then shows what moved, not a column of digits.
        text = re.sub(r"\[\s+((?:-?[\d.][\d.eE+-]*,\s+)*-?[\d.][\d.eE+-]*)\s+\]", _on_one_line, text)
        write_atomically(path, text)


def seconds_of(path: Path) -> float | None:
    """Return the run time a record tells, in seconds, whatever its schema and whoever changed it.

    It is None if the record tells none.
    """
    try:
        return float(sum(json.loads(path.read_text(encoding="utf-8"))["metadata"]["course"]["seconds"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _on_one_line(match: re.Match[str]) -> str:
    return "[" + ", ".join(match[1].replace(",", " ").split()) + "]"


def _merge(into: dict[str, Any], names: dict[str, Any]) -> None:
    """Merge the names of a later cell: it may add to a dict recorded before, and never replace a leaf."""
    for name, value in names.items():
        if name in into and "kind" not in value and "kind" not in into[name]:
            _merge(into[name], value)
        elif name in into:
            raise RecordError(f"the name {name!r} is recorded twice")
        else:
            into[name] = json.loads(json.dumps(value))


def _name_kernels(names: dict[str, Any], renamed: renames.Renames) -> None:
    for value in names.values():
        if isinstance(value, dict) and "kind" not in value:
            _name_kernels(value, renamed)
        elif isinstance(value, dict) and isinstance(value.get("kernel"), str):
            value["kernel"] = renamed.kernel(value["kernel"])


def write_atomically(path: Path, text: str) -> None:
    """Write text to a temporary name beside `path`, then rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def build_record(
    page: Page,
    outputs: list[list[dict[str, Any]]],
    seconds: list[float],
    manifest: dict[str, str],
    provenance: dict[str, Any],
    files: Mapping[str, bytes] | None = None,
    names: renames.Renames = renames.NONE,
) -> Record:
    """Make the record of a page that has just run.

    Args:
        page: the page as it was executed.
        outputs: for every code cell its nbformat outputs.
        seconds: for every code cell its run time.
        manifest: repository path of every project file that ran before the samples existed, and its digest.
        provenance: GPU, versions, date, commit (see course_kernels.measure.provenance).
        files: what its cells left as artifacts, by name.
        names: what was renamed until then.
    """
    cells = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number:02d}",
            "metadata": {"tags": list(cell.tags)} if cell.tags else {},
            "outputs": result,
            "source": cell.source,
        }
        for number, (cell, result) in enumerate(zip(page.code, outputs, strict=True), start=1)
    ]
    meta: dict[str, Any] = {
        "schema": SCHEMA,
        "page": page.path.as_posix(),
        "id": page.id,
        "edition": edition_of(provenance),
        "provenance": provenance,
        "cells": _cells(page, names),
        "seconds": [round(value, 3) for value in seconds],
        "manifest": dict(sorted(manifest.items())),
    }
    if files:
        meta["artifacts"] = artifacts.stated(files)
    notebook: dict[str, Any] = {
        "cells": cells,
        "metadata": {
            "course": meta,
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    notebook = json.loads(json.dumps(notebook))
    record = Record(notebook, files or {})
    notebook["metadata"]["course"]["checksum"] = record._content_checksum()
    record.names  # noqa: B018  a name recorded twice is refused here, while the page is still at hand
    return record


def _cells(page: Page, names: renames.Renames) -> list[str]:
    return list(code_digests(tuple(cell.source for cell in page.code), names, page.path.as_posix()))


def stale_reasons(page: Page, record: Record, root: Path) -> list[str]:
    """Reasons why a record no longer holds for a page; empty when it is fresh."""
    reasons = []
    meta, names = record.meta, renames.load(root)
    if names.present(meta["page"]) != page.path.as_posix() or meta["id"] != page.id:
        reasons.append(f"the record is of {meta['page']} ({meta['id']})")
    now, then = _cells(page, names), meta["cells"]
    if len(now) != len(then):
        reasons.append(f"{page.path} has {len(now)} code cells, the record has {len(then)}")
    reasons += [
        f"{page.path}: code cell {number} changed"
        for number, (a, b) in enumerate(zip(now, then, strict=False), start=1)
        if a != b
    ]
    manifest = names.in_present_names(meta["manifest"])
    return reasons + changed_files(manifest, root) + new_includes(manifest, root)


def changed_files(manifest: dict[str, str], root: Path) -> list[str]:
    """Return the files of a manifest that changed their meaning or are gone."""
    reasons = []
    for path, digest in manifest.items():
        try:
            if file_digest(root, path) != digest:
                reasons.append(f"{path} changed")
        except OSError:
            reasons.append(f"{path} is gone")
    return reasons
