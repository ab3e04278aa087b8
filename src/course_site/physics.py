"""What a page shows is held against the card once more: the data sheets of today, the records of then.

A record says what limits every rate in it. So a data sheet that was mended, or a record that was made before a limit
was known, is judged when the site is built, without a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from course_kernels.measure.gate import complaints
from course_kernels.measure.leaves import leaf_from_json
from course_site.values import walk_leaves

if TYPE_CHECKING:
    from course_site.course import Course


def check(course: Course) -> None:
    """Note every number that cannot be, of every page that shows its numbers; one that cannot be read has none."""
    for page in course.pages:
        record = course.records.get(page.id)
        if record is None or not course.has_numbers(page.id):
            continue
        machine = course.machine(page)
        for name, data in walk_leaves(record.names):
            try:
                leaf = leaf_from_json(data)
            except (KeyError, TypeError, ValueError) as error:
                course.states[page.id] = "stale"
                if not course.draft:
                    course.problem(
                        page.path, f"{name} is not what this version records ({error}); measure it again"
                    )
                continue
            for complaint in complaints(name, leaf, machine):
                course.problem(page.path, f"{complaint}; measure it again, or mend the data sheet")
