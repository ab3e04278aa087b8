"""The second check of recorded rates against the card: the data sheets of today, the records of then.

A record says what limits every rate in it. So a data sheet that was mended, or a record that was made before a limit
was known, is judged when the site is built, without a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from course_kernels.measure.gate import complaints
from course_kernels.measure.machine import Machine
from course_kernels.measure.record_types import leaf_from_json
from course_site.values.values import walk_leaves


def impossible(names: dict[str, Any], machine: Machine | None) -> Iterator[tuple[str, bool]]:
    """Yield numbers of a record that cannot be: what is wrong and what to do, and whether it can be read at all."""
    for name, data in walk_leaves(names):
        try:
            leaf = leaf_from_json(data)
        except (KeyError, TypeError, ValueError) as error:
            yield f"{name} is not what this version records ({error}); measure it again", False
            continue
        for complaint in complaints(name, leaf, machine):
            yield f"{complaint}; measure it again, or mend the data sheet", True
