"""The capstone: every refusal has its planted fault; nobody's text reaches a page unescaped; forms feed each other."""

import json
import re
import shutil
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path

import pytest

from course_capstone.__main__ import main
from course_capstone.board import board, places
from course_capstone.certificate import certificate
from course_capstone.entry import examine, points
from course_capstone.floors import KEPT, as_text, worked_out
from course_capstone.forms import FORMS, LINES, due, faults_of_form, fields_of
from course_capstone.own_record import read_own_record
from course_capstone.pictures import pictures
from course_capstone.run import hashes_of, is_dirty
from course_capstone.tasks import find_machine, listed, read_tasks, where_words_are
from course_harness.tasks import LEVELS
from course_harness.tasks import tasks as of_the_harness
from course_judge.__main__ import Unusable
from course_judge.judge import hash_of, hash_of_judge
from course_judge.protocol.verdict import seal_of
from course_kernels.measure.roofline import floor_us

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "capstone/examples"
H200, H100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3"


@pytest.fixture(scope="module")
def tasks():
    return read_tasks()


@pytest.fixture
def entry(tmp_path, tasks):
    """An entry that nothing speaks against, without a card: an example, as if it had run just now."""
    folder = tmp_path / "entry"
    shutil.copytree(EXAMPLES / "explained_loss", folder, ignore=shutil.ignore_patterns("marks.toml"))
    change(folder, lambda told: told["provenance"].update(dirty=False))
    change_verdict(folder, judge=hash_of_judge(tasks["softmax"].problem), file=hash_of(folder / "kernel.py"))
    change(folder, lambda told: told.update(files=hashes_of(folder)))
    return folder


def sealed(told):
    """Plain data with a seal of its own, as a forger would make it."""
    rest = {name: value for name, value in told.items() if name != "seal"}
    return {**rest, "seal": seal_of(rest)}


def change(folder, edit, seal=True):
    """Edit run.json, and seal it as a forger would."""
    path = folder / "run.json"
    told = json.loads(path.read_text())
    edit(told)
    path.write_text(json.dumps(sealed(told) if seal else told))


def change_verdict(folder, seal=True, found=None, **evidence):
    """Edit the judge's verdict in it, and seal that too."""

    def edit(told):
        verdict = told["verdict"]
        verdict["evidence"] |= evidence
        verdict["found"] = found or verdict["found"]
        told["verdict"] = sealed(verdict) if seal else verdict

    change(folder, edit)


def judge_saw(folder, line):
    """Give the verdict a line about time."""

    def edit(told):
        told["verdict"] = sealed({**told["verdict"], "lines": [line]})

    change(folder, edit)


def edit_text(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def on_a_card(folder, tasks, card=H200, time_us=300.0, spread=0.01):
    """Make of the entry one that ran on a card."""
    task = tasks["softmax"]

    def edit(told):
        told["provenance"]["gpu"] = told["profile"]["gpu"] = card
        share = task.of_peak(time_us, find_machine(card))
        told["profile"]["reading"] |= {"time_us": time_us, "of_peak": share, "launches": 2}
        told["spread"] = spread

    change(folder, edit)
    change_verdict(folder, on=f"on {card}")
    path = folder / "entry.toml"
    path.write_text(re.sub("(?m)^card = .*", f'card = "{card}"', path.read_text()))


def faults(folder, tasks, card=None):
    outcome, found = examine(folder, ROOT, tasks, card)
    assert (outcome is None) == bool(found)
    return found


def test_an_honest_entry_passes_with_a_card_and_without(entry, tasks):
    assert faults(entry, tasks) == []
    assert faults(entry, tasks, "") == []
    on_a_card(entry, tasks)
    assert faults(entry, tasks, H200) == []
    for line in ("M16384-N8192-float32 takes 590.0 µs", "M1-N1-float32 takes 999.0 µs", "no time"):
        judge_saw(entry, line)
        assert faults(entry, tasks) == []


def test_the_examples_are_as_they_ran_and_marked(tasks):
    # The judge may have changed since; everything else may not.
    found = {path.parent.name: faults(path.parent, tasks) for path in EXAMPLES.glob("*/entry.toml")}
    assert set(found) == {"explained_loss", "bare_win", "beside_a_record"}
    assert {line.split(":")[0] for lines in found.values() for line in lines} <= {"stale judge"}
    assert points(EXAMPLES / "explained_loss") == 5 > points(EXAMPLES / "bare_win")


# Each fault, and how the line begins that must name it.
FORGED = {
    "a time without a card": (
        lambda f, t: change(f, lambda told: told["profile"]["reading"].update(time_us=5.0)),
        "edited time: there was no card",
    ),
    "a time, not sealed": (
        lambda f, t: (
            on_a_card(f, t),
            change(f, lambda told: told["profile"]["reading"].update(time_us=250.0), seal=False),
        ),
        "edited: run.json has changed",
    ),
    "a time, sealed": (
        lambda f, t: (
            on_a_card(f, t),
            change(f, lambda told: told["profile"]["reading"].update(time_us=250.0)),
        ),
        "edited time: the time and the share",
    ),
    "a time below the floor": (
        lambda f, t: on_a_card(f, t, time_us=20.0),
        "edited time: less than the floor",
    ),
    "a time that the judge did not see": (
        lambda f, t: (
            on_a_card(f, t, time_us=300.0),
            judge_saw(f, "M16384-N8192-float32 takes 610.0 µs, 34 % of peak"),
        ),
        "edited time: 300.0 µs, and the judge",
    ),
    "a time that is none": (
        lambda f, t: (
            on_a_card(f, t),
            change(f, lambda told: told["profile"]["reading"].update(time_us=-1.0)),
        ),
        "edited time: -1.0 is no time",
    ),
    "a verdict, its own seal broken": (
        lambda f, t: change_verdict(f, seal=False, cases=["all of them"]),
        "edited: the judge's verdict",
    ),
    "another card in the profile": (
        lambda f, t: (on_a_card(f, t), change(f, lambda told: told["profile"].update(gpu=H100))),
        "other card: run.json is of",
    ),
    "another card in entry.toml": (
        lambda f, t: (on_a_card(f, t), edit_text(f / "entry.toml", f'"{H200}"', f'"{H100}"')),
        f"other card: entry.toml says {H100}",
    ),
    "a card that was not there": (
        lambda f, t: edit_text(f / "entry.toml", 'card = "none"', f'card = "{H200}"'),
        f"other card: entry.toml says {H200}, and it ran on no card",
    ),
    "code that has changed": (
        lambda f, t: edit_text(f / "kernel.py", "BLOCK = 4096", "BLOCK = 2048"),
        "stale code: kernel.py",
    ),
    "a header that has changed": (lambda f, t: (f / "more.cuh").write_text("// new"), "stale code: more.cuh"),
    "code, and the list of hashes with it": (
        lambda f, t: (
            edit_text(f / "kernel.py", "BLOCK = 4096", "BLOCK = 2048"),
            change(f, lambda told: told.update(files=hashes_of(f))),
        ),
        "stale code: the verdict is on another file",
    ),
    "another judge": (lambda f, t: change_verdict(f, judge="0" * 64), "stale judge"),
    "a dirty tree": (
        lambda f, t: change(f, lambda told: told["provenance"].update(dirty=True)),
        "dirty tree",
    ),
    "a tree that nobody knows": (
        lambda f, t: change(f, lambda told: told["provenance"].update(dirty=None)),
        "no commit: git does not know",
    ),
    "a refused answer": (lambda f, t: change_verdict(f, found="out of bounds"), "not right: out of bounds"),
    "another size": (
        lambda f, t: change(f, lambda told: told.update(size="dtype=float32,M=1,N=1")),
        "another task",
    ),
    "no profile": (lambda f, t: change(f, lambda told: told.update(profile=None)), "no profile"),
    "a run of another form": (
        lambda f, t: change(f, lambda told: told.pop("provenance")),
        "run.json: edited",
    ),
    "no run": (lambda f, t: (f / "run.json").unlink(), "run.json: not there"),
    "no JSON": (lambda f, t: (f / "run.json").write_text("[1"), "/run.json: cannot be read"),
    "no worklog": (lambda f, t: (f / "worklog.md").unlink(), "worklog.md: not there"),
    "a worklog without a line": (
        lambda f, t: edit_text(f / "worklog.md", "## What lost?", "## The end"),
        "worklog.md: no heading '## What lost'",
    ),
    "an empty line": (
        lambda f, t: (f / "worklog.md").write_text((ROOT / "capstone/forms/worklog.md").read_text()),
        "worklog.md: Right: nobody has written",
    ),
    "nobody's": (
        lambda f, t: edit_text(f / "entry.toml", 'by = "human"', 'by = "me"'),
        "entry.toml: by: expected",
    ),
    "a strange key": (
        lambda f, t: edit_text(f / "entry.toml", 'by = "human"', 'by = "human"\ntime = 3'),
        "entry.toml: no key 'time'",
    ),
    "a file elsewhere": (
        lambda f, t: edit_text(f / "entry.toml", '"kernel.py"', '"../kernel.py"'),
        "entry.toml: file: expected the name",
    ),
    "no such task": (
        lambda f, t: edit_text(f / "entry.toml", '"softmax"', '"sort"'),
        "entry.toml: no task 'sort'",
    ),
    "nothing lost is said": (
        lambda f, t: (f / "entry.toml").write_text(
            re.sub("(?m)^lost = .*", 'lost = ""', (f / "entry.toml").read_text())
        ),
        "entry.toml: lost: expected a text",
    ),
    "marks without a reason": (
        lambda f, t: (f / "marks.toml").write_text('[Right]\npoint = 2\nwhy = "x"\n'),
        "marks.toml: ['Right']: point: expected 0 or 1",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_or_unfinished_entry_is_refused_by_name(name, entry, tasks):
    plant, begins = FORGED[name]

    plant(entry, tasks)

    found = faults(entry, tasks)
    assert any(begins in line for line in found), found


def test_an_entry_of_another_card_is_refused_by_its_board(entry, tasks):
    on_a_card(entry, tasks)
    assert faults(entry, tasks, H100) == [f"other card: it ran on {H200}, and the board is of {H100}"]


def git(folder, *words):
    """Run git without anybody's settings."""
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    subprocess.run(command, check=True, capture_output=True)


def test_a_dirty_tree_is_seen_and_the_entrys_own_files_are_no_dirt(tmp_path):
    assert is_dirty(tmp_path, tmp_path / "entry") is None
    git(tmp_path, "init", "-q")
    for name in ("entry/kernel.py", "entry/run.json", "other/run.json", "judge.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    for name in ("entry/kernel.py", "entry/run.json", "other/run.json"):
        (tmp_path / name).write_text("2")
    assert is_dirty(tmp_path, tmp_path / "entry") is False
    (tmp_path / "judge.py").write_text("2")
    assert is_dirty(tmp_path, tmp_path / "entry") is True


def test_a_record_of_the_courses_own_is_read_and_refused(tasks):
    path = "records/nvidia-h200/docs/start_here.ipynb"
    found = read_own_record(f"{path}:big.cuda", ROOT, tasks["vector_add"])
    assert found.kernel == "vector_add/k01_cuda"
    assert 0 < found.of_peak < 1
    for text, task, says in (
        (f"{path}:big.none", "vector_add", "no measurement"),
        (f"{path}:big.cuda", "softmax", "the task is softmax"),
        (f"{path}:sweep.cuda.n12", "vector_add", "the task is vector_add on dtype=float32,N=268435456"),
        (path, "vector_add", "expected records"),
        ("README.md:big.cuda", "vector_add", "expected records"),
        (f"records/../{path.replace('records/', 'elsewhere/')}:big", "vector_add", "expected records"),
    ):
        with pytest.raises(Unusable, match=says):
            read_own_record(text, ROOT, tasks[task])


def test_a_record_that_somebody_has_edited_is_no_record(tasks, tmp_path):
    path = "records/nvidia-h200/docs/start_here.ipynb"
    (tmp_path / path).parent.mkdir(parents=True)
    shutil.copy(ROOT / path, tmp_path / path)
    with pytest.raises(Unusable, match="is not as it was committed"):  # no git, and nobody can say
        read_own_record(f"{path}:big.cuda", tmp_path, tasks["vector_add"])
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "all")
    assert read_own_record(f"{path}:big.cuda", tmp_path, tasks["vector_add"]).of_peak > 0
    (tmp_path / path).write_text((tmp_path / path).read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(Unusable, match="is not as it was committed"):
        read_own_record(f"{path}:big.cuda", tmp_path, tasks["vector_add"])


EVIL = '<script>alert("x")</script>&\'"'


def test_no_text_of_an_entry_reaches_board_or_certificate_unescaped(entry, tasks):
    toml = re.sub("(?m)^who = .*", f"who = '''{EVIL[:-2]}'''", (entry / "entry.toml").read_text())
    toml = re.sub("(?m)^lost = .*", f"lost = '''{EVIL[:-2]}'''", toml)
    toml = re.sub(r"(?s)tried = \[.*", f"tried = ['''{EVIL[:-2]}''']\n", toml)
    (entry / "entry.toml").write_text(toml)
    change(entry, lambda told: told["provenance"].update(date=EVIL, commit=EVIL))
    change(entry, lambda told: told["profile"].update(said=EVIL, findings=[]))

    def edit(told):
        told["verdict"]["why"] = EVIL
        told["verdict"] = sealed(told["verdict"])

    change(entry, edit)
    (entry / "x<script>.cuh").write_text("// </pre><script>")
    kernel = entry / "kernel.py"
    (entry / "kernel_report.md").write_text("</pre><script>alert(1)</script>")
    kernel.write_text(f"# </pre><script>\n{kernel.read_text()}")
    change(entry, lambda told: told.update(files=hashes_of(entry)))
    change_verdict(entry, file=hash_of(kernel))

    outcome, found = examine(entry, ROOT, tasks)

    assert found == []
    for text in (board("", [outcome]).decode(), certificate(outcome)):
        assert "<script" not in text
        assert "&lt;script&gt;" in text
    ET.fromstring(certificate(outcome))


def test_a_tie_is_judged_by_the_spread_and_against_the_best(entry, tasks, tmp_path):
    outcomes = []
    for number, (time_us, spread) in enumerate(((300.0, 0.01), (302.0, 0.001), (304.5, 0.01), (400.0, 0.02))):
        folder = tmp_path / f"e{number}"
        shutil.copytree(entry, folder)
        on_a_card(folder, tasks, time_us=time_us, spread=spread)
        outcomes.append(examine(folder, ROOT, tasks)[0])

    found = [(place, one.time_us) for place, one in places(outcomes[::-1])]

    assert found == [("1, a tie of 2", 300.0), ("1, a tie of 2", 302.0), ("3", 304.5), ("4", 400.0)]


def test_board_and_certificate_say_what_was_measured_and_what_was_not(entry, tasks):
    outcome, _ = examine(entry, ROOT, tasks)
    told = certificate(outcome)
    assert "no percent of peak is claimed" in told
    assert f"{tasks['softmax'].least_bytes:,} bytes must move" in told
    assert "%" not in re.sub("<style>.*?</style>", "", told, flags=re.DOTALL)
    assert "right; not timed" in board("", [outcome]).decode()

    on_a_card(entry, tasks)
    outcome, _ = examine(entry, ROOT, tasks)
    share = tasks["softmax"].least_bytes / (300.0 * 4800e3)
    assert f"{share:.1%} of peak" in certificate(outcome)
    assert outcome.told["seal"][:16] in certificate(outcome)
    page = board(H200, [outcome]).decode()
    assert f"{share:.1%} of peak" in page
    assert f"nox -s submit -- --run {entry}" in page


def test_a_board_is_made_of_the_honest_and_names_the_others(entry, tasks, capsys):
    shutil.copytree(entry, entry.parent / "forged")
    edit_text(entry.parent / "forged/kernel.py", "BLOCK = 4096", "BLOCK = 2048")

    assert main(["--board", str(entry.parent)], ROOT) == 1

    assert "forged: stale code: kernel.py" in capsys.readouterr().err
    page = (entry.parent / "board-no-card.html").read_text()
    assert page.count("<article>") == 1


def test_the_floors_are_those_of_problem_and_data_sheet(tasks):
    task, machine = tasks["softmax"], find_machine("h200")
    assert task.least_bytes == 2 * 4 * 16384 * 8192
    assert f"{floor_us(task, machine):,.1f}" in listed(tasks, machine)
    assert "NVIDIA H100 SXM" in listed(tasks, find_machine(H100))
    assert {task.level for task in tasks.values()} == set(LEVELS.values())
    with pytest.raises(Unusable, match="no data sheet"):
        find_machine("abacus")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[sort]\nlevel = 3\ntime = "dtype=float32,N=3"\neager = ""', "no problem 'sort'"),
        ('[softmax]\nlevel = "hard"\ntime = ""\neager = ""', "level is 'hard'"),
        ('[softmax]\nlevel = 3\ntime = "M=3"\neager = ""', "expected a dtype"),
        ('[softmax]\nlevel = 3\ntime = "dtype=float32,Q=3"\neager = ""', "softmax has M, N"),
        ('[softmax]\nlevel = 3\ntime = ""\neager = ""\nfloor = 3', "unknown keys: floor"),
        ('[softmax]\nlevel = 3\ntime = ""\neager = ""\nstudents = "few"', "students is 'few'"),
        ("floor = 3", "[floor] is no table"),
    ],
)
def test_a_wrong_list_of_tasks_is_refused(text, says, tmp_path):
    (tmp_path / "tasks.toml").write_text(text)
    with pytest.raises(Unusable, match=re.escape(says)):
        read_tasks(tmp_path / "tasks.toml")


def test_the_tasks_are_those_of_the_harness_that_are_for_students(tasks):
    known = of_the_harness()
    assert list(tasks) == [name for name, one in known.items() if one.students] != list(known)
    assert {task.workload.as_text() for task in tasks.values()} == {known[name].time for name in tasks}


def test_whoever_has_no_model_is_led_to_what_one_proposed(tasks, tmp_path):
    told = where_words_are(ROOT, tasks)
    assert "for every task: nox -s harness -- TASK --series NAME, NAME one of bold, right_first" in told
    shutil.copytree(ROOT / "proposals/softmax", tmp_path / "proposals/softmax")
    shutil.rmtree(tmp_path / "proposals/softmax/bold")
    told = where_words_are(tmp_path, tasks)
    assert "for softmax: nox -s harness -- TASK --series NAME, NAME one of right_first;" in told
    assert "nothing is recorded for vector_add, transpose" in told
    edit_text(tmp_path / "proposals/softmax/right_first/s1_r1.py.txt", "import torch\n", "import torch \n")
    with pytest.raises(Unusable, match="not the file that was proposed"):
        where_words_are(tmp_path, tasks)


SAID = {
    "Who": "Ada", "Task": "softmax", "Least bytes": "1,073,741,824", "Operations": "536870912",
    "Percent of peak hoped for": "80 %", "Report of the profiler": "kernel_report.md",
}  # fmt: skip


@pytest.fixture
def forms(tmp_path):
    for form in FORMS:
        text = (ROOT / f"capstone/forms/{form}.md").read_text(encoding="utf-8")
        for name in fields_of(text):
            text = text.replace(f"- {name}: …", f"- {name}: {SAID.get(name, 'said')}")
        (tmp_path / f"{form}.md").write_text(text.replace("\n…\n", "\nsaid\n"), encoding="utf-8")
    headings = ("What it does", "Forecast", "Measured", "Counted", "Next")
    report = "".join(f"## {heading}\n\nsaid\n\n" for heading in headings)
    (tmp_path / "kernel_report.md").write_text(
        f"# kernel.py\n\n{report}- Signed by a neighbour: …\n", encoding="utf-8"
    )
    return tmp_path


def test_complete_forms_pass_and_templates_do_not(forms, tasks):
    for form in FORMS:
        assert faults_of_form(forms, form, ROOT, tasks) == []
        assert faults_of_form(ROOT / "capstone/forms", form, ROOT, tasks)


@pytest.mark.parametrize(
    ("form", "old", "new", "says"),
    [
        (
            "plan",
            "- Task: softmax",
            "- Task: gemm",
            "plan.md: Task: 'gemm', and the form before says 'softmax'",
        ),
        ("plan", "- Baseline: said", "- Baseline: …", "plan.md: Baseline: nobody has filled it in"),
        ("plan", "- Baseline: said\n", "", "plan.md: Baseline: the line is missing"),
        ("plan", "1,073,741,824", "536,870,912", "plan.md: Least bytes: '536,870,912', and softmax on"),
        ("plan", "536870912", "many", "plan.md: Operations: 'many'"),
        ("plan", "80 %", "120 %", "plan.md: Percent of peak hoped for: '120 %': expected"),
        (
            "checkpoint",
            "80 %",
            "70 %",
            "checkpoint.md: Percent of peak hoped for: '70 %', and the form before",
        ),
        (
            "checkpoint",
            "profiler: kernel_report.md",
            "profiler: ../x.md",
            "checkpoint.md: report: '../x.md': no file of this folder",
        ),
        (
            "checkpoint",
            "did not work: said",
            "did not work: …",
            "checkpoint.md: An idea that did not work: nobody",
        ),
        ("announcement", "- Task: softmax", "- Task: sort", "announcement.md: Task: no task 'sort'"),
    ],
)
def test_a_fault_in_a_form_is_named(form, old, new, says, forms, tasks):
    edit_text(forms / f"{form}.md", old, new)
    assert any(line.startswith(says) for line in faults_of_form(forms, form, ROOT, tasks))


def test_a_report_outside_of_the_folder_is_none(forms, tasks):
    folder = forms / "mine"
    shutil.copytree(forms, folder)
    edit_text(folder / "checkpoint.md", "profiler: kernel_report.md", "profiler: ../kernel_report.md")
    (found,) = faults_of_form(folder, "checkpoint", ROOT, tasks)
    assert "no file of this folder" in found


def test_a_form_that_is_not_there_and_a_report_without_a_heading_are_named(forms, tasks):
    edit_text(forms / "kernel_report.md", "## Counted", "## Guessed")
    (forms / "plan.md").unlink()
    found = faults_of_form(forms, "checkpoint", ROOT, tasks)
    assert [line.split(";")[0] for line in found] == [
        "plan.md: not there",
        "checkpoint.md: report: kernel_report.md: no heading 'Counted'",
    ]


def test_the_dates_are_those_of_the_cohort():
    assert due(ROOT, "announcement").text == "week 2, day 2"
    assert due(ROOT, "plan").text == "week 2, day 5"
    days = [(due(ROOT, form).week, due(ROOT, form).day) for form in FORMS]
    assert days == sorted(set(days))
    assert due(ROOT, "worklog", date(2027, 1, 11)).text == "Thursday, 2027-02-04"
    cohort = tomllib.loads((ROOT / "handbook/sessions/cohort.toml").read_text(encoding="utf-8"))
    last = next(day for day in cohort["day"] if "w6" in day["sessions"])
    hand_in = due(ROOT, "worklog")
    assert (hand_in.week, hand_in.day + 1) == (last["week"], last["day"])


def test_what_is_kept_for_the_page_is_what_is_worked_out_and_the_page_has_every_task(tasks):
    assert KEPT.read_text(encoding="utf-8") == as_text(worked_out(tasks))
    for path, text in pictures(ROOT, tasks).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python -m course_capstone --keep"
    page = (ROOT / "docs/capstone.py").read_text(encoding="utf-8")
    assert re.findall(r"^#   - \[(\w+), ", page, re.MULTILINE) == list(tasks)
    levels = [sum(task.level == level for task in tasks.values()) for level in LEVELS.values()]
    assert levels == [6, 4, 3]  # as the table's caption says


def test_forms_that_are_there_count_at_the_end(entry, forms, tasks):
    assert faults(entry, tasks) == []  # none is there
    who = tomllib.loads((entry / "entry.toml").read_text(encoding="utf-8"))["who"]
    for name in ("announcement.md", "plan.md", "checkpoint.md", "kernel_report.md"):
        text = (forms / name).read_text(encoding="utf-8").replace("- Who: Ada", f"- Who: {who}")
        (entry / name).write_text(text, encoding="utf-8")
    assert faults(entry, tasks) == []
    edit_text(entry / "entry.toml", f'who = "{who}"', 'who = "Ben"')
    assert faults(entry, tasks) == [f"entry.toml: who: 'Ben', and announcement.md says {who!r}"]
    edit_text(entry / "entry.toml", 'who = "Ben"', f'who = "{who}"')
    (entry / "plan.md").unlink()
    assert faults(entry, tasks) == ["plan.md: not there; copy capstone/forms/plan.md"]


def test_the_third_hour_holds_twenty_people():
    """Ten talks of four minutes in each of two rooms, a minute for sheet zero; a cut saves what it leaves out."""
    w6 = tomllib.loads((ROOT / "handbook/sessions/w6.toml").read_text(encoding="utf-8"))
    steps = {step["title"]: step for step in w6["block"][-1]["step"]}
    talks = {"Talks one to three": 3, "Talks four to six": 3, "Talks seven and eight": 2}
    assert [steps[title]["minutes"] for title in talks] == [4 * n for n in talks.values()]
    assert [steps[title]["saves"] for title in talks] == list(talks.values())  # a minute for each question
    assert steps["Talks nine and ten, and sheet zero"]["minutes"] == 2 * 4 + 1
    assert sum(step["minutes"] for step in steps.values()) == 60
    chapter = (ROOT / "handbook/06_delivery_craft/w6_frontier.py").read_text(encoding="utf-8")
    rows = re.findall(r"^# \| (1[2-7]\d) \|.*?(\d+) \|$", chapter, re.MULTILINE)
    clock = [(int(start), int(minutes)) for start, minutes in rows]
    starts = [start for start, _ in clock]
    assert [start + minutes for start, minutes in clock] == [*starts[1:], 180]
    minute, of_the_map = 120, []
    for step in steps.values():
        of_the_map.append(minute)
        minute += step["minutes"]
    assert [start for start in starts if start <= 170] == of_the_map


def test_the_worklog_has_the_lines_of_the_score_sheet():
    sheets = tomllib.loads((ROOT / "handbook/handouts/w6.toml").read_text(encoding="utf-8"))["sheet"]
    rows = next(part["rows"] for sheet in sheets if sheet["title"] == "score sheet" for part in sheet["part"]
                if "rows" in part)  # fmt: skip
    bold = [re.match(r"\*\*(.+?)\*\*", row[0]) for row in rows]
    assert tuple(found[1].rstrip("?:,") for found in bold if found) == LINES


def test_the_command_begins_an_entry_and_says_what_is_wrong(tmp_path, capsys):
    assert main(["--new", str(tmp_path / "mine")], ROOT) == 0
    assert main([str(tmp_path / "mine")], ROOT) == 1
    assert "entry.toml: who: nobody has filled it in" in capsys.readouterr().err
    assert main(["--form", "plan", str(tmp_path / "mine")], ROOT) == 1
    assert main([str(tmp_path / "nowhere")], ROOT) == 2
    assert main([], ROOT) == 2
    assert main(["--tasks", "--card", "abacus"], ROOT) == 2


@pytest.mark.parametrize(("is_dirty", "warns"), [(True, True), (None, True), (False, False)])
def test_a_run_that_will_be_refused_says_so_before_it_begins(is_dirty, warns, entry, monkeypatch, capsys):
    monkeypatch.setattr("course_capstone.run.is_dirty", lambda root, folder: is_dirty)
    monkeypatch.setattr("course_capstone.run.run", lambda *given, **named: None)
    assert main(["--run", str(entry)], ROOT) == 0
    assert ("this run will be refused" in capsys.readouterr().err) is warns
