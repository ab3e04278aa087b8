"""All that is wrong with the session maps, one line each, and what still waits for a page or a measurement.

Run it by hand with `python -m course_site.site.check_maps [ID ...]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from course_site.sessions.checks import missing
from course_site.sessions.course_road import FOLDER
from course_site.site.course import load_course
from course_site.site.render.page import render_course


def main(arguments: list[str]) -> int:
    """Check the maps named, or all of them; 1 if anything is wrong."""
    course = load_course(Path.cwd(), draft=True)
    render_course(course)  # says which values are unknown and which numbers are typed
    report = course.maps
    unknown = sorted(set(arguments) - set(report.sessions) - set(missing(report)))
    if unknown and report.sessions:
        print(f"no session {', '.join(unknown)}; there are {', '.join(report.sessions)}", file=sys.stderr)
        return 2
    sessions = [s for s in report.sessions.values() if not arguments or s.id in arguments]
    wanted = {f"{FOLDER}/{name}.toml" for name in arguments} if arguments else set()
    files = {s.path for s in sessions} | {s.map_page for s in sessions}
    wrong = [str(c) for c in report.complaints if not wanted or c.path in wanted]
    wrong += [str(problem) for problem in course.problems if not course.pages or problem.path in files]
    print("\n".join(wrong) if wrong else "nothing is wrong")
    for line in report.lines():
        if not wanted or line.partition(": ")[0] in wanted:
            print(f"to come: {line}")
    if not wanted and missing(report):
        print(f"no map yet: {', '.join(missing(report))}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
