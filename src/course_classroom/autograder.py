"""Autograder of one lab for Classroom 50: started in a student's checkout, it writes result.json and release-body.md.

Beside it lie settings.json and course/, the grader with this one lab. Its exit code is 0 where it graded, whatever came
of it, and 1 where it could not. Without a card it says right or wrong; on a runner with one, kernels are timed too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILE_BYTES = 2**20


def main() -> int:
    """Grade the checkout in the working directory."""
    checkout = Path.cwd()
    settings = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))
    # From here on no module is looked for where the student's files lie.
    os.chdir(HERE)
    os.environ["PYTHONSAFEPATH"] = "1"
    sys.path[:] = [
        str(HERE / "course" / "src"),
        *(p for p in sys.path if p not in ("", str(checkout), str(HERE))),
    ]
    given = begun(checkout, settings["files"])
    if not given:
        return fail(f"no {' or '.join(settings['files'])} in the repository")
    missing = needed({settings["files"][path.name]["door"] for path in given}, settings["needs"])
    if (
        missing
        and subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", *settings["pip"], *missing]
        ).returncode
    ):
        return fail(f"pip could not install {' '.join(missing)}")
    importlib.invalidate_caches()

    from course_classroom.grading_line import answered
    from course_classroom.result import body, result
    from course_labs.lab import find_lab

    lab = find_lab(HERE / "course", settings["lab"])
    answers = {}
    for path in given:
        with tempfile.TemporaryDirectory(prefix="hand-in-") as folder:
            file = Path(folder, path.name)
            file.write_bytes(path.read_bytes())
            door = settings["files"][path.name]["door"]
            task = {"lab": lab.name, "door": door, "file": str(file), "seconds": None, "gpu": settings["gpu"]}
            answers[path.name] = answered(task, HERE / "course")
    graded = {name: answer for name, answer in answers.items() if "ungraded" not in answer}
    if not graded:
        return fail("; ".join(answer["ungraded"] for answer in answers.values()))
    counts = max(graded, key=lambda name: (graded[name]["stages"] or 0) + graded[name]["alone_right"])
    told = result(lab, graded[counts], os.environ)
    words = body(lab, told, graded[counts], [name for name in graded if name != counts])
    (checkout / "result.json").write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    (checkout / "release-body.md").write_text(words, encoding="utf-8")
    print(
        "\n".join(f"  {line}" for line in words.splitlines())
    )  # indented: no line of it is a command to the runner
    return 0


def begun(checkout: Path, files: dict[str, dict[str, str]]) -> list[Path]:
    """Return the student's files that are more than the starter; all that are there where none is."""
    there = [checkout / name for name in files]
    there = [p for p in there if p.is_file() and not p.is_symlink() and p.stat().st_size <= FILE_BYTES]
    more = [p for p in there if hashlib.sha256(p.read_bytes()).hexdigest() != files[p.name]["starter"]]
    return more or there


def needed(doors: set[str], needs: dict[str, dict[str, str]]) -> list[str]:
    """Return what pip must install for these doors; what a runner brings along itself is left as it is."""
    packages = {module: package for door in doors for module, package in needs[door].items()}
    return sorted(package for module, package in packages.items() if importlib.util.find_spec(module) is None)


def fail(why: str) -> int:
    """Say in one line why nothing was graded."""
    print(f"::error::{' '.join(why.split())}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
