"""The workflows for GitHub: who starts them, what they may do, and that every command in them is one of ours.

`tests/workflows/with_act.py` runs them, by hand.
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from tiny_repository import commit_all, make_repository, recording, write, write_page

from course_site import docs
from course_site.publishing import command
from course_site.publishing.moved import MOST, moved_since
from course_site.records import changes
from course_site.records.changes import Moved

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
# What reads the options of a session.
READERS = {"docs": docs._parse, "publish": command._parse}
COMMANDS = re.compile(r"\.venv/bin/nox -s (\w+)(?: -- ([^\n&|]*))?")


def read(path):
    # YAML 1.1 reads the key `on` as true.
    return {"on" if key is True else key: value for key, value in yaml.safe_load(path.read_text()).items()}


def jobs():
    return [
        pytest.param(path, name, id=f"{path.stem}-{name}") for path in FILES for name in read(path)["jobs"]
    ]


def wrong_commands(text, sessions):
    """The commands of a step that no session or no option is there for."""
    for session, words in COMMANDS.findall(text):
        if f"def {session}(" not in sessions:
            yield f"no session {session}"
            continue
        # What is in quotes is a place; what is not, an option that may be left out.
        options = shlex.split(re.sub(r'"\$[^"]*"', "FILE", words).replace("$CARRIED", "--in-pages"))
        try:
            READERS[session](options)
        except SystemExit:
            yield f"{session}: {words}"


def test_there_are_two():
    assert [path.stem for path in FILES] == ["measure", "publish"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nobody_outside_starts_one(path):
    found = read(path)
    assert set(found["on"]) <= {"workflow_dispatch", "schedule", "push"}
    assert found["permissions"] == {}  # each job says its own


@pytest.mark.parametrize(("path", "name"), jobs())
def test_a_job_rests_until_its_variable_says_go(path, name):
    every = read(path)["jobs"]
    first = every[every[name].get("needs", name)]
    assert re.match(rf"vars\.{path.stem.upper()} == '\w+'", first["if"])


@pytest.mark.parametrize(("path", "name"), jobs())
def test_a_job_may_write_only_what_it_is_for(path, name):
    job = read(path)["jobs"][name]
    writes = {what for what, how in job["permissions"].items() if how == "write"}
    assert writes == {
        "build": set(), "deploy": {"pages", "id-token"}, "measure": set(), "propose": {"contents", "pull-requests"},
    }[name]  # fmt: skip
    assert job["timeout-minutes"]
    hosted = job["runs-on"] == "ubuntu-latest"
    assert hosted or not writes, "the machine with the card writes nothing"


@pytest.mark.parametrize(("path", "name"), jobs())
def test_what_comes_from_others_is_pinned_and_keeps_no_key(path, name):
    for step in read(path)["jobs"][name]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout@"):
            # The build looks up the commit of each record.
            assert step["with"] == {"fetch-depth": 0, "persist-credentials": False}


@pytest.mark.parametrize(("path", "name"), jobs())
def test_every_command_is_there_with_its_options(path, name):
    sessions = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    for step in read(path)["jobs"][name]["steps"]:
        text = step.get("run", "")
        assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0
        assert "${{" not in text, "a value reaches a shell through its environment"
        assert list(wrong_commands(text, sessions)) == []


def test_a_command_that_is_gone_is_found(capsys):
    text = ".venv/bin/nox -s docs -- --weekly\n.venv/bin/nox -s gone && .venv/bin/nox -s publish -- --check\n"
    assert list(wrong_commands(text, "def docs(\ndef publish(")) == ["docs: --weekly", "no session gone"]
    capsys.readouterr()


def test_the_first_command_is_the_readmes():
    first = re.findall(r"^```bash\n(.*?)\n```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    assert [path for path in FILES if first.rpartition(" && ")[0] not in path.read_text()] == []
    assert first in (FOLDER / "publish.yml").read_text()


def test_the_folder_that_is_written_is_the_one_that_is_handed_over():
    steps = read(FOLDER / "publish.yml")["jobs"]["build"]["steps"]
    text = "\n".join(step.get("run", "") for step in steps)
    assert {step["with"]["path"] for step in steps if "upload" in step.get("uses", "")} == {"published"}
    assert text.index("--check") < text.index("-- published") < text.index("--try published")


# --- the text of a change ---------------------------------------------------------------------------------


def test_what_moved_is_what_the_last_commit_has_not(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    write_page(root, "one", recording("seen", "float(open('SEEN').read())"))
    write(root, "SEEN", "4")
    assert docs.main(["--measure-only"], root) == 0
    commit_all(root)
    assert moved_since(root) == "Nothing was measured.\n"

    assert docs.main(["--measure-only"], root) == 0
    assert moved_since(root) == "**1 page measured on NVIDIA H200**; nothing moved by more than its spread.\n"

    write(root, "SEEN", "3")
    assert docs.main(["--measure-only"], root) == 0
    out = tmp_path / "moved.md"
    assert command.main(["--moved", str(out)], root) == 0
    first, *rows = out.read_text().splitlines()
    assert first == "**2 pages measured on NVIDIA H200**; moved by more than their spread, the most first: 1."
    assert rows[-1] == "| one.seen | 4 | 3 | -25.0% |"


def test_more_than_a_change_may_say_is_counted(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch)
    write_page(root, "one", recording("seen"))
    assert docs.main(["--measure-only"], root) == 0
    commit_all(root)
    found = [Moved(f"one.{'x' * 80}{i}", 1.0, 1.0 + i, "µs", "2026-11-30") for i in range(1, MOST + 8)]
    changes.append(root, "nvidia-h200", found)
    text = moved_since(root)
    assert len(text) < 65_536
    assert text.splitlines()[4].endswith(f"{MOST + 7}00.0% |")  # the most first
    assert "And 7 more" in text


def test_a_list_that_was_changed_by_hand_is_one_line(tmp_path, monkeypatch, capsys):
    root = make_repository(tmp_path, monkeypatch)
    write_page(root, "one", recording("seen"))
    assert docs.main(["--measure-only"], root) == 0
    file = root / "records/nvidia-h200/runs.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "runs": []}))
    assert command.main(["--moved", str(tmp_path / "moved.md")], root) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
