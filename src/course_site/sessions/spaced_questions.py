"""Questions that students bring along: one of the last session, one of a week back, one of week one.

The spacing is the calendar's, so that what was answered at a door is asked again when half of it is forgotten. Each
time it is another question of that exit ticket. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping

from course_site.sessions.cohort import Cohort
from course_site.sessions.session import Session

BROUGHT = 3
WEEK = 7  # days


def brought_along(name: str, cohort: Cohort, sessions: Mapping[str, Session]) -> list[tuple[Session, int]]:
    """Up to three earlier exit questions for a session, each as its session and its place in the ticket, from 0.

    Args:
        name: the session they are brought to.
    """
    taught = [(WEEK * day.week + day.day, one) for day in cohort.days for one in day.sessions]
    place = [one for _, one in taught].index(name)
    today, first_week = taught[place][0], cohort.days[0].week
    earlier = [(day, one) for day, one in taught[:place] if one in sessions and sessions[one].exit_ticket]
    names = [one for _, one in earlier]
    a_week_back = [one for day, one in earlier if today - day >= WEEK]
    week_one = [one for day, one in earlier if day // WEEK == first_week]
    chosen = names[-1:] + a_week_back[-1:]
    left = [one for one in week_one if one not in chosen]
    chosen += left[place % len(left) :][:1] if left else []
    # In the first days there is less to choose from: what was asked most recently is asked on.
    spare = [one for one in reversed(names) if one not in chosen] + list(reversed(names)) * BROUGHT
    found: list[tuple[Session, int]] = []
    for one in chosen + spare:
        session = sessions[one]
        turn = (place - names.index(one)) % len(session.exit_ticket)
        free = [i for i in range(len(session.exit_ticket)) if (session, i) not in found]
        if free and len(found) < BROUGHT:
            found.append((session, turn if turn in free else free[0]))
    return found
