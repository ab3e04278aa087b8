"""Steps with things to take in the hand: who is not in the room has none, and not everybody can see them.

Such a step says in `remote` what a class online does, and what somebody does who sees nothing: both, in this order.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_site.sessions.session import Session

THINGS = re.compile(
    r"\b(?:scissors|coins?|envelopes?|(?:paper )?(?<!CUTLASS's )cups|chalk marks|matchbox(?:es)?|paper squares|"
    r"bits of paper|slips of paper|(?:six|paper) slips|twelve (?:shuffled )?cards)\b",
    re.IGNORECASE,
)
BOTH = re.compile(r"Online: \S.*[.!?] Without seeing it: \S", re.DOTALL)
MINUTE = re.compile(r"\bminute (\d+)")


def faults(session: Session) -> Iterator[tuple[str, str]]:
    """Faults, each with its place in the file."""
    steps, prepared = session.steps(), [text for text in session.prepare if THINGS.search(text)]
    minutes = {int(minute) for text in prepared for minute in MINUTE.findall(text)}
    for step in steps:
        if step["remote"] and not BOTH.match(step["remote"]):
            yield (
                f"{step.where}, remote",
                "lacks one of its two: write 'Online: ….' and then 'Without seeing it: ….'",
            )
        found = THINGS.search(" ".join(step[key] for key in ("fingers", "room", "board", "title", "say")))
        if step["remote"] or not (found or any(step.start <= minute < step.end for minute in minutes)):
            continue
        has = f"has {found[0]!r}" if found else "is named in `prepare` with things for the hand"
        yield (
            f"{step.where}, remote",
            f"is missing, and the step {has}: write what a class online does, and who cannot see it",
        )
    if prepared and not any(step["remote"] for step in steps):
        thing = THINGS.search(prepared[0])
        yield (
            "prepare",
            f"brings {thing and thing[0]!r}, and no step has a `remote`: write it where they are used",
        )
