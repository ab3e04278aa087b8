"""Block that says what came of the attacks on the judge, from their sealed journals."""

from __future__ import annotations

from course_harness import attacks as kept
from course_harness.tasks import Unusable
from course_site.pages.blocks import Block
from course_site.site.render.writer import Writer


def attacks(writer: Writer, _block: Block) -> str:
    """Return the tally of the attacks, those that are open, and what is no longer as it was when they were judged."""
    try:
        return "\n".join(kept.lines_of(kept.attacked(writer.course.root)))
    except Unusable as error:
        writer.problem(str(error))
        return ""
