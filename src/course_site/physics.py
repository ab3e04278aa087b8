"""What a page shows is held against the card once more: the data sheets of today, the records of then.

A record says what limits every rate in it. So a data sheet that was mended, or a record that was made before a limit
was known, is judged when the site is built, without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from course_kernels.measure.gate import complaints
from course_kernels.measure.leaves import Leaf, leaf_from_json

if TYPE_CHECKING:
    from course_site.course import Course


def check(course: Course) -> None:
    """Note every number that cannot be, of every page that shows its numbers."""
    for page in course.pages:
        record = course.records.get(page.id)
        if record is None or not course.has_numbers(page.id):
            continue
        machine = course.machine(page)
        for name, leaf in leaves("", record.names):
            for complaint in complaints(name, leaf, machine):
                course.problem(page.path, f"{complaint}; measure it again, or mend the data sheet")


def leaves(path: str, names: Mapping[str, Any]) -> Iterator[tuple[str, Leaf]]:
    """Every leaf of what a page recorded, with its dotted name."""
    for name, value in names.items():
        full = f"{path}.{name}" if path else name
        if "kind" in value:
            yield full, leaf_from_json(value)
        else:
            yield from leaves(full, value)
