"""The harness: a run that is interrupted anywhere goes on, its journal is sealed, tables say only what was judged."""

import html
import json
import re
from dataclasses import replace
from functools import partial
from hashlib import sha256
from html.parser import HTMLParser
from types import SimpleNamespace

import markdown
import pytest
import torch

from course_harness import __main__ as command
from course_harness import loop, record, recorded, table
from course_harness.journal import Journal, read
from course_harness.judging import Judge
from course_harness.loop import (
    DONE,
    OUT_OF_PROPOSALS,
    OUT_OF_SECONDS,
    Budget,
    Plan,
    feedback,
    run,
    verdict_of,
)
from course_harness.proposer import Proposal, Stopped, shortened
from course_harness.replay import Replayed, proposed, replay
from course_harness.table import (
    Attempt,
    Summary,
    Time,
    fast_1,
    inert,
    is_quicker,
    row,
    summaries,
    summary,
    tally,
)
from course_harness.tasks import FILE, LEVELS, Task, Unusable, attack_words, signature, task, tasks, words
from course_judge import judge as judge_module
from course_judge.host import CannotJudge
from course_judge.identity import hash_by_name
from course_judge.protocol.verdict import RIGHT, Evidence, Taken, Verdict, seal_of
from course_kernels.measure import artifacts
from course_kernels.problem import Workload

SOFTMAX = task("softmax")
PLENTY = Budget(1e6, 1000)


class FakeJudge:
    """Judges by what stands in the text; notes what it was asked."""

    def __init__(self, has_card=True, on="a card", judge="j" * 64):
        self.has_card, self.on, self.judge_now, self.asked = has_card, on, judge, []

    def judge_hash(self, task):
        return self.judge_now

    def judge(self, task, text, own):
        self.asked.append(("judge", text, own))
        us = re.search(r"us=([\d.]+)", text)
        evidence = Evidence(sha256(text.encode()).hexdigest(), self.judge_now, self.on, ("M1-N1",), (1, 2))
        if "wrong" in text:
            return Verdict("wrong", "element (0, 0)", "M1-N1", evidence=evidence).as_json()
        if text in (task.eager, task.compiled):
            us = {task.eager: "10", task.compiled: "5"}[text]
            return Verdict(RIGHT, evidence=evidence, time=Taken("size", float(us), "both clocks")).as_json()
        taken = Taken("size", float(us[1]), "both clocks") if us and self.has_card else None
        return Verdict(RIGHT, "9 sizes", lines=("it takes a while",), evidence=evidence, time=taken).as_json()

    def profile(self, task, text):
        self.asked.append(("profile", text))
        return "bottleneck: waits"


class Script:
    """Proposes from a table; notes what it was told."""

    name, own = "recorded", True

    def __init__(self, texts, about=None):
        self.texts, self.about, self.told = texts, about or {"model": "m"}, []

    def described(self):
        return self.about

    def propose(self, task, history):
        self.told.append((history.sample, history.round, tuple(turn.feedback for turn in history.turns)))
        text = self.texts.get((history.sample, history.round))
        if isinstance(text, Exception):
            raise text
        return None if text is None else Proposal(text, note="" if text else "no code block", said={"at": 1})


TEXTS = {(1, 1): "wrong", (1, 2): "us=7", (2, 1): "us=12", (2, 2): "", (3, 1): "us=4"}


def plan(samples=3, rounds=3, **more):
    return Plan(SOFTMAX, "kernel", "words", samples, rounds, profile=True, **more)


def ran(path, texts=None, judge=None, budget=PLENTY, the_plan=None, **more):
    """Run; returns why it ended, the proposer and the judge."""
    script, judge = Script(TEXTS if texts is None else texts, **more), judge or FakeJudge()
    why = run(
        the_plan or plan(), script, judge, Journal(path), budget, now=lambda: 0.0, say=lambda line: None
    )
    return why, script, judge


# --- the loop -------------------------------------------------------------------------------------


def test_a_run_proposes_judges_profiles_and_tells(tmp_path):
    why, script, judge = ran(tmp_path / "a.jsonl")

    assert why == DONE
    told = {(sample, number): turns for sample, number, turns in script.told}
    assert list(told) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)]
    assert "refused on M1-N1: wrong: element (0, 0)" in told[1, 2][0]
    assert "The profiler says\nbottleneck: waits" in told[1, 3][1]
    assert "The profiler" not in told[1, 2][0]  # what is wrong is not run again
    assert told[2, 3][1].startswith("no code block\n\nThe judge says\nrefused: function missing")
    assert judge.asked[:2] == [("judge", SOFTMAX.eager, False), ("judge", SOFTMAX.compiled, False)]
    assert ("judge", "", True) not in judge.asked  # an answer without a file is not run


def test_without_a_card_there_is_no_rival_and_no_profile(tmp_path):
    _, _, judge = ran(tmp_path / "a.jsonl", judge=FakeJudge(has_card=False))
    assert {what for what, *_ in judge.asked} == {"judge"}
    assert SOFTMAX.eager not in [one[1] for one in judge.asked]


class Killed(BaseException):
    """As a signal would."""


def test_a_run_that_is_killed_at_any_point_goes_on_where_it_was(tmp_path, monkeypatch):
    ran(tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_text()
    steps = len(whole.splitlines())
    assert steps > 15
    replaced = artifacts.os.replace
    for before in (True, False):  # killed before the journal is renamed, and right after it
        for step in range(steps):
            path = tmp_path / f"{before}{step}.jsonl"
            count = iter(range(1000))

            def dies(old, new, count=count, step=step, before=before):
                dies_now = next(count) == step
                if dies_now and before:
                    raise Killed
                replaced(old, new)
                if dies_now:
                    raise Killed

            judge = FakeJudge()
            monkeypatch.setattr(artifacts.os, "replace", dies)
            with pytest.raises(Killed):
                ran(path, judge=judge)
            monkeypatch.setattr(artifacts.os, "replace", replaced)
            kept = path.read_text() if path.exists() else ""
            assert whole.startswith(kept)
            assert len(kept.splitlines()) == step + (not before)
            asked_before = len(judge.asked)
            _, script, _ = ran(path, judge=judge)

            assert path.read_text() == whole
            # What the journal had is asked of nobody again.
            done = {
                (e["sample"], e["round"])
                for e in map(json.loads, kept.splitlines())
                if e["kind"] == "proposed"
            }
            assert not done & {(sample, number) for sample, number, _ in script.told}
            judged = sum(
                json.loads(line)["kind"] in ("judged", "profiled", "baseline") for line in kept.splitlines()
            )
            assert judged <= asked_before + 1


def test_a_finished_run_asks_nothing_again(tmp_path):
    ran(tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text()
    why, script, judge = ran(tmp_path / "a.jsonl")
    assert (why, script.told, judge.asked) == (DONE, [], [])
    assert (tmp_path / "a.jsonl").read_text() == text


def test_a_proposer_that_cannot_go_on_is_asked_again_later(tmp_path):
    with pytest.raises(Stopped, match="503"):
        ran(tmp_path / "a.jsonl", {**TEXTS, (2, 1): Stopped("503 busy")})
    assert [e["kind"] for e in read(tmp_path / "a.jsonl")][-1] == "spent"
    why, script, _ = ran(tmp_path / "a.jsonl")
    assert why == DONE
    assert script.told[0][:2] == (2, 1)


@pytest.mark.parametrize(("proposals", "asked"), [(1, 1), (2, 2), (4, 4), (5, 5)])
def test_no_more_proposals_than_the_budget_has(tmp_path, proposals, asked):
    why, *_ = ran(tmp_path / "a.jsonl", budget=Budget(1e6, proposals))
    found = Journal(tmp_path / "a.jsonl").of("proposed", none=False)
    assert len(found) == asked
    assert len(Journal(tmp_path / "a.jsonl").of("judged")) == asked  # what was proposed is judged
    # Five there are: then nothing is left over but to hear that there are no more.
    assert why == OUT_OF_PROPOSALS
    assert ran(tmp_path / "a.jsonl")[0] == DONE


def test_seconds_are_counted_over_interruptions(tmp_path):
    clock = iter(range(0, 10000, 10))  # each step takes ten seconds
    whys = []
    for seconds in (35, 35, 60):
        script, judge = Script(TEXTS), FakeJudge()
        journal = Journal(tmp_path / "a.jsonl")
        whys.append(
            run(
                plan(),
                script,
                judge,
                journal,
                Budget(seconds, 99),
                now=lambda: next(clock),
                say=lambda line: None,
            )
        )
        steps = [e for e in read(tmp_path / "a.jsonl") if e.get("seconds")]
        assert len(steps) == {35: 4, 60: 6}[seconds]
    assert whys == [OUT_OF_SECONDS] * 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"judge": FakeJudge(judge="k" * 64)}, "of another judge, or of another problem"),
        ({"judge": FakeJudge(on="another card")}, "of another machine"),
        ({"about": {"model": "n"}}, "of other about"),
        ({"the_plan": replace(plan(), words="other words")}, "of other words"),
        ({"the_plan": replace(plan(), half="attack")}, "of another half"),
        ({"the_plan": replace(plan(), task=task("sgemm"))}, "of another task"),
        ({"the_plan": replace(plan(), profile=False)}, "of another profile"),
    ],
)
def test_a_journal_of_something_else_is_refused(tmp_path, change, why):
    ran(tmp_path / "a.jsonl")
    with pytest.raises(Unusable, match=why):
        ran(tmp_path / "a.jsonl", **change)


def test_a_verdict_comes_back_from_plain_data_as_it_was(tmp_path):
    evidence = Evidence("f", "j", "a card", ("a", "b"), (1, 2))
    verdict = Verdict(
        "wrong", "why", "here", ("line",), "printed", ("time",), evidence, Taken("s", 1.5, "both clocks")
    )
    for one in (verdict, replace(verdict, time=None, evidence=replace(evidence, launches=None))):
        again = verdict_of(json.loads(json.dumps(one.as_json())))
        assert (again, again.evidence, again.time) == (one, one.evidence, one.time)
        assert "refused on here: wrong: why" in feedback(
            {"note": "", "text": "x"}, {"verdict": one.as_json()}, None
        )


# --- the journal ------------------------------------------------------------------------------------


def changed(lines, how):
    if how == "a time":
        at = next(n for n, line in enumerate(lines) if '"us": 12.0' in line)
        return [*lines[:at], lines[at].replace('"us": 12.0', '"us": 1.0'), *lines[at + 1 :]]
    if how == "left out":
        return [*lines[:5], *lines[6:]]
    if how == "moved":
        return [*lines[:5], lines[6], lines[5], *lines[7:]]
    if how == "no journal":
        return ['{"kind": "a shopping list"}']
    return [*lines, "{"]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("a time", "changed since it was sealed"),
        ("left out", "line 6 was changed"),
        ("moved", "line 6 was changed"),
        ("half a line", "is no JSON"),
        ("no journal", "line 1 is no entry"),
    ],
)
def test_a_journal_that_was_changed_is_refused_with_its_line(tmp_path, how, why):
    path = tmp_path / "a.jsonl"
    ran(path)
    path.write_text("\n".join(changed(path.read_text().splitlines(), how)) + "\n")
    for what in (lambda: Journal(path), lambda: summary(path), lambda: ran(path)):
        with pytest.raises(Unusable, match=why) as caught:
            what()
        assert "\n" not in str(caught.value)


def resealed(entries):
    """As a forger would, who knows how journals are sealed."""
    before, lines = "", []
    for entry in entries:
        entry = {key: value for key, value in entry.items() if key != "seal"} | {"before": before}
        entry["seal"] = before = seal_of(entry)
        lines.append(json.dumps(entry, sort_keys=True))
    return "\n".join(lines) + "\n"


def test_a_verdict_is_sealed_within_its_entry_and_is_on_the_file_that_was_proposed(tmp_path):
    path = tmp_path / "a.jsonl"
    ran(path)
    entries = read(path)
    judged = next(e for e in entries if e["kind"] == "judged")
    judged["verdict"]["found"] = RIGHT
    path.write_text(resealed(entries))
    with pytest.raises(Unusable, match="its verdict was changed"):
        read(path)

    other = Verdict(RIGHT, evidence=Evidence("0" * 64, "j" * 64, "a card", ()))
    judged["verdict"] = other.as_json()
    path.write_text(resealed(entries))
    with pytest.raises(Unusable, match="sample 1, round 1: the verdict is on another file"):
        summary(path)


def test_two_runs_do_not_write_one_journal(tmp_path):
    first, second = Journal(tmp_path / "a.jsonl"), Journal(tmp_path / "a.jsonl")
    with first.alone(), pytest.raises(Unusable, match="another run is writing it"), second.alone():
        pass
    with Journal(tmp_path / "a.jsonl").alone():  # and then it is free
        pass


# --- tables -------------------------------------------------------------------------------------------


def attempts(*told):
    """From texts such as "wrong", "12" (microseconds), "12 late" (by the judge's clock alone), "right", "card"."""
    found = []
    for one in told:
        us, _, late = one.partition(" ")
        by = "the judge's clock" if late else "both clocks"
        time = Time(float(us), by) if us.isdigit() else None
        found.append(Attempt({"wrong": False, "card": None}.get(one, True), time, one))
    return tuple(found)


def made(*samples, level=1, name="softmax", half="kernel", eager="10", compiled="5"):
    rivals = {"eager": attempts(eager)[0].time, "compiled": attempts(compiled)[0].time}
    return Summary(
        name, level, half, "m", "a card", "j", tuple(attempts(*one) for one in samples), rivals, DONE
    )


def test_shares_of_one_sample_of_best_of_k_and_with_feedback():
    found = row(made(["wrong", "7"], ["12", "4"], ["wrong"], ["7"]))

    # Right at first: 2 of 4; below 10 µs: 1 of 4; below 5: none.
    assert found.one_sample == table.Shares(0.5, 0.25, 0.0)
    assert found.best_of_k == table.Shares(1.0, 1.0, 0.0)
    # In the end: right 3 of 4; below 10 µs 3 of 4; below 5: 1 of 4.
    assert found.with_feedback == table.Shares(0.75, 0.75, 0.25)


def test_where_nothing_was_timed_nothing_is_said_of_time():
    found = row(made(["right"], ["wrong"], eager="right", compiled="right"))
    assert found.one_sample == table.Shares(0.5, None, None)
    assert found.with_feedback is None
    lines = table.level_table([found])
    assert lines[1][3:] == ["one sample", "0.50", "not timed", "not timed"]
    assert lines[3][1:] == ["0", "0", "with feedback", *["one round only"] * 3]
    # What is wrong is not quick: that needs no clock.
    assert row(made(["wrong"], eager="right", compiled="right")).one_sample == table.Shares(0.0, 0.0, 0.0)
    assert row(made(["card"])).one_sample == table.Shares(None, None, None)


@pytest.mark.parametrize(
    ("time", "rival", "expected"),
    [
        ("4", "5", True), ("5", "5", False), ("6", "5", False),
        ("4 late", "5", True),  # even with the launch in it
        ("6 late", "5", False),
        ("4 late", "5 late", True),
        ("4", "5 late", None),  # nobody knows how long the rival took
        ("6", "5 late", False),
    ],
)  # fmt: skip
def test_two_clocks_are_not_compared_in_favour_of_anybody(time, rival, expected):
    one, other = (attempts(text)[0] for text in (time, rival))
    assert is_quicker(one.time, other.time) is expected
    assert fast_1([one], other.time) == {True: 1.0, False: 0.0, None: None}[expected]


def test_levels_are_means_over_their_tasks():
    rows = [row(made(["4"])), row(made(["wrong"])), row(made(["wrong"], ["4"], level=3))]
    lines = table.level_table(rows)
    assert lines[1] == ["1: a single operator", "2", "1", "one sample", "0.50", "0.50", "0.50"]
    assert lines[5] == ["3: a block of a model", "1", "2", "best of k", "1.00", "1.00", "1.00"]
    assert lines[-3] == ["all", "3", "1–2", "one sample", "0.50", "0.50", "0.50"]


def test_the_tally_counts_attacks_alone():
    found = [made(["wrong"], ["wrong"], ["card"], ["right"], half="attack"), made(["right"])]
    told = tally(found)
    assert (told.tried, told.refused, told.not_judged, told.open) == (4, 2, 1, 1)


def test_tables_come_from_journals_and_leave_out_other_judges(tmp_path):
    ran(tmp_path / "one" / "a.jsonl")
    found, lines = summaries(tmp_path, lambda name: "j" * 64)
    assert (lines, [len(sample) for sample in found[0].samples]) == ([], [2, 2, 1])
    assert {name: time.us for name, time in found[0].rivals.items()} == {"eager": 10.0, "compiled": 5.0}
    assert table.task_table([row(found[0])])[1] == ["softmax", "1", "3 of 5", "4.0 µs", "10.0 µs", "5.0 µs"]

    found, lines = summaries(tmp_path, lambda name: "k" * 64)
    assert (found, lines) == ([], ["a.jsonl: of another judge than now; run it again"])

    (tmp_path / "two.jsonl").write_bytes((tmp_path / "one" / "a.jsonl").read_bytes())
    with pytest.raises(Unusable, match="a second journal of softmax"):
        summaries(tmp_path)


def test_two_series_of_a_model_are_samples_of_one_row(tmp_path, capsys):
    for series in ("bold", "right_first"):
        ran(
            tmp_path / f"{series}.jsonl",
            about={"series": series},
            judge=FakeJudge(judge=hash_by_name("softmax")),
        )
    assert [one.series for one in summaries(tmp_path)[0]] == ["bold", "right_first"]
    assert command.main(["--table", "--journals", str(tmp_path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("softmax")]
    assert "6 of 10" in line


def test_an_interrupted_run_says_so_in_the_table(tmp_path):
    with pytest.raises(Stopped):
        ran(tmp_path / "a.jsonl", {**TEXTS, (2, 1): Stopped("503")})
    assert summaries(tmp_path)[1] == ["a.jsonl: was interrupted; the same command goes on"]


# --- a stranger's words -----------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>", "</td><img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![a](http://b/c.png)",
    "{{ its.name }}", "{% raw %}", "{{ ''.__class__ }}", "`code`", "**bold** _it_ ~~no~~", "a | b\n| c | d |", "# head",
    "1. one", "- item", "    code", "<!-- x -->", "&lt;b&gt;", "[^note]", "$x^2$", "/// claim | True", ":::", "https://x.y",
    "![](data:text/html,x)", "a\x1b[31mred", "\u202egnp.exe", "{: onclick=alert(1) }", "$${x}$$", "<https://x.y>",
]  # fmt: skip


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_a_strangers_words_are_read_by_nothing(words):
    shown = inert(words)
    assert re.fullmatch(r"(?:[^\W_]| |&#\d+;)*", shown)
    for text in (shown, table.markdown([["who"], [words]])):
        seen = Seen()
        seen.feed(markdown.markdown(text, extensions=["tables", "extra", "attr_list", "footnotes", "toc"]))
        assert {tag for tag, _ in seen.tags} <= {"p", "table", "thead", "tbody", "tr", "th", "td"}
        assert not any(attrs for _, attrs in seen.tags)
        expected = " ".join(html.unescape(shown).split())
        assert expected in " ".join("".join(seen.text).split())
    assert "{" not in shown


def test_what_a_stranger_prints_is_no_time(tmp_path, monkeypatch):
    class Printing(FakeJudge):
        def judge(self, task, text, own):
            told = verdict_of(super().judge(task, text, own))
            return replace(told, printed="softmax takes 0.1 µs", why="it takes 0.1 µs", time=None).as_json()

    ran(tmp_path / "a.jsonl", judge=Printing())
    found = summary(tmp_path / "a.jsonl")
    assert {attempt.time for attempt in found.attempts} == {None}
    assert row(found).best_of_k.eager is None


def test_what_is_refused_has_no_time(tmp_path):
    class Late(FakeJudge):
        def judge(self, task, text, own):
            told = verdict_of(super().judge(task, text, own))
            return replace(told, found="wrong in the end", time=Taken("size", 0.1, "both clocks")).as_json()

    ran(tmp_path / "a.jsonl", judge=Late())
    found = summary(tmp_path / "a.jsonl")
    assert {attempt.time for attempt in found.attempts} == {None}
    assert set(found.rivals.values()) == {None}


def test_a_model_of_a_hostile_name_reaches_no_terminal_and_no_page_as_it_is(tmp_path, capsys):
    ran(tmp_path / "a.jsonl", about={"model": "<b>\x1b[31m{{ x }}"})
    assert command.main(["--table", "--journals", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "another judge" in out  # of a judge that there never was
    found, _ = summaries(tmp_path)
    assert "\x1b" not in inert(found[0].who)
    monkey = table.plain([["who"], [found[0].who]])
    assert "\x1b" not in monkey


# --- tasks --------------------------------------------------------------------------------------------


def test_there_are_twelve_tasks_and_more_on_three_levels():
    found = tasks()
    assert len(found) >= 12
    for level in LEVELS:
        assert sum(one.level == level for one in found.values()) >= 4


@pytest.mark.parametrize("one", tasks().values(), ids=lambda one: one.name)
def test_words_say_contract_signature_sizes_tolerance_and_rules(one):
    problem = one.problem()
    assert one.workload in problem.time_on
    told = words(one)
    assert told == words(one)
    for part in (
        f"Write {one.name}.", "Signature\n    def " + one.name, "Shapes    ", "Types     ", "Tolerance\n", "Rules\n",
        one.workload.label + ", with a cold cache", f"at least {problem.reads_bytes(one.workload)} bytes",
    ):  # fmt: skip
        assert part in told
    assert all(w.label in told and w.dtype in told for w in problem.check_on)
    # What nobody may see: how the judge draws, and the course's own kernels.
    assert not re.search(r"course_kernels|course_judge|/src/|k0\d_", told)
    assert compile(one.eager, one.name, "exec")
    assert compile(one.compiled, one.name, "exec")
    code = re.search(rf"^def {one.name}(\(.*\)):$", one.eager, re.MULTILINE)[1]
    assert f"def {one.name}{code}:" == signature(problem)


@pytest.mark.parametrize("one", tasks().values(), ids=lambda one: one.name)
def test_the_timed_size_alone_is_compiled(one, monkeypatch):
    called = []
    monkeypatch.setattr(
        torch, "compile", lambda of, dynamic: lambda *inputs, **options: called.append("compiled")
    )
    names = {}
    exec(one.compiled, names)  # ours
    names["_eager"] = lambda *inputs, **options: called.append("eager")
    problem = one.problem()
    for w in (one.workload, *problem.check_on):
        if w == one.workload:
            size = problem.reads_bytes(w) - 4096  # what says where may count as less
            names[one.name](torch.empty(size // 2, dtype=torch.int16, device="meta"), None)
        elif problem.reads_bytes(w) < problem.reads_bytes(one.workload) // 2:
            names[one.name](torch.empty(problem.reads_bytes(w) // 2, dtype=torch.int16, device="meta"))
    assert called[0] == "compiled"
    assert set(called[1:]) == {"eager"}


def test_the_words_of_one_task_are_kept_word_for_word():
    told = words(task("vector_add"))
    assert told.startswith(
        "Write vector_add.\n\nVector add.\n\n    z[n] = x[n] + y[n]\n\nShapes    x (N,), y (N,), z (N,)\n"
    )
    assert "\n    e = 5.96e-08 for float32\n" in told
    assert told.endswith("- It is timed only if it is right.\n")


def test_the_hackers_half_has_the_judges_source():
    told = attack_words(SOFTMAX)
    assert words(SOFTMAX) in told
    for name in ("judge.py", "timing.py", "worker/process.py", "protocol/messages.py"):
        assert f"--- course_judge/{name}\n" in told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[softmax]\nlevel = 1\ntime = 'x'\n", "lacks eager"),
        ("[softmax]\nlevel = 4\ntime = 'x'\neager = 'x'\n", "level is 4"),
        ("[softmax]\nlevel = 1\ntime = 'x'\neager = 'x'\nmore = 1\n", "unknown keys: more"),
        ("[softmax]\nlevel = 1\ntime = 'x'\neager = 'x'\nkernel = 'k'\n", "needs kernel and constants"),
        ("softmax = 1\n", "is no table"),
        ("[", "cannot be read"),
    ],
)
def test_a_file_of_tasks_is_refused_in_one_line(tmp_path, text, why):
    (tmp_path / FILE.name).write_text(text)
    with pytest.raises(Unusable, match=why) as caught:
        tasks(tmp_path / FILE.name)
    assert "\n" not in str(caught.value)


# --- the command --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "name a task: vector_add, "),
        (["nothing"], "no task 'nothing'; there are vector_add"),
        (["softmax"], "no proposals are recorded for it"),
        (["softmax", "--proposer", "search"], "names no kernel"),
        (["swiglu", "--proposer", "search", "--attack"], "attacks nobody"),
        (["softmax", "--proposer", "endpoint"], "needs --url and --model"),
        (["softmax", "--add", "nowhere.py"], "--add needs --series"),
        (["softmax", "--add", "nowhere.py", "--series", "a"], "nowhere.py: No such file"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, capsys, arguments, why):
    assert command.main(arguments, root=tmp_path) == 2
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1


class Opened(FakeJudge):
    """Stands where the command makes a judge."""

    opened = 0

    def __init__(self, *, seconds):
        super().__init__(has_card=False, on="without a card")
        assert seconds == 33
        Opened.opened += 1

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def test_all_tasks_share_one_judge_and_one_budget(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "Judge", Opened)
    clock = iter(range(0, 100_000, 10))  # each step takes ten seconds
    monkeypatch.setattr(command, "run", partial(run, now=lambda: next(clock)))
    (tmp_path / "file.py").write_text("us=3")
    for name in ("softmax", "sgemm"):
        for series in ("a", "b"):
            arguments = [name, "--add", str(tmp_path / "file.py"), "--series", series, "--model", series]
            assert command.main(arguments, root=tmp_path) == 0
    capsys.readouterr()
    everything = ["all", "--limit", "33", "--journals", str(tmp_path / "journals"), "--seconds"]
    before = Opened.opened
    # Each has two steps, a proposal and a verdict. 50 seconds are enough for two tasks and a half.
    for seconds, done, steps in (("50", 2, 5), ("50", 2, 5), ("55", 3, 6), ("80", 4, 8), ("80", 4, 8)):
        assert command.main([*everything, seconds], root=tmp_path) == (0 if done == 4 else 3)
        out = capsys.readouterr().out
        assert len(re.findall("^done; the journal: ", out, re.MULTILINE)) == done
        entries = [e for path in (tmp_path / "journals").glob("*.jsonl") for e in read(path)]
        assert loop.spent(entries) == 10.0 * steps
    assert Opened.opened == before + 5
    for wrong, why in (
        (["all", "--proposer", "endpoint"], "a task each"),
        (["all", "--journal", "x"], "a task each"),
        (["all", "--attack"], "recorded has nothing for any task"),
    ):
        assert command.main(wrong, root=tmp_path) == 2
        assert why in capsys.readouterr().err


def test_the_command_runs_recorded_proposals_through_the_judge_that_it_is_given(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(command, "Judge", Opened)
    for number, text in enumerate(("wrong", "us=3"), 1):
        (tmp_path / "file.py").write_text(text)
        add = [
            "softmax",
            "--add",
            str(tmp_path / "file.py"),
            "--series",
            "a",
            "--model",
            "m",
            "--rounds",
            str(number),
        ]
        assert command.main(add, root=tmp_path) == 0
    journals = ["--journals", str(tmp_path / "journals")]
    assert command.main(["softmax", "--limit", "33", "--proposals", "1", *journals], root=tmp_path) == 3
    assert command.main(["softmax", "--limit", "33", *journals], root=tmp_path) == 0
    out = capsys.readouterr().out
    assert "sample 1, round 1: refused on M1-N1: wrong: element (0, 0)" in out
    assert "softmax  1      1 of 2  not timed" in out
    assert (tmp_path / "journals" / "kernel-softmax-a-without_a_card.jsonl").is_file()


# --- the real judge -----------------------------------------------------------------------------------


@pytest.mark.parametrize("has_card", [False, True])
def test_the_judge_is_asked_for_the_tasks_size_and_whose_work_it_must_be(monkeypatch, has_card):
    asked, hosts = [], []

    class NoHost:
        def __init__(self, modules, environment):
            hosts.append((tuple(modules), environment))

        def close(self):
            hosts.append("ended")

    def noted(host, file, problem, *, workloads, device, time_on, task):
        assert workloads == ()  # all that are announced
        asked.append(
            (
                file.read_text(),
                problem.name,
                device,
                time_on,
                task.own,
                task.limits.seconds,
                task.file == file,
            )
        )
        return Verdict(
            "wrong",
            f"in {file.parent.parent}/x",
            printed=f"{file.parent.parent}",
            evidence=Evidence("f", "j", "", ()),
        )

    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_card)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr("course_harness.judging.Host", NoHost)
    monkeypatch.setattr(judge_module, "judge", noted)
    with Judge(seconds=9) as judge:
        told = [judge.judge(SOFTMAX, "é", own) for own in (True, False, True)]
        assert (judge.on, judge.has_card) == (("a card", True) if has_card else ("without a card", False))
        folder = judge._folder
    device, size = ("cuda", SOFTMAX.workload) if has_card else ("cpu", None)
    assert asked == [("é", "softmax", device, size, own, 9, True) for own in (True, False, True)]
    assert ["torch._dynamo" in modules for modules, _ in hosts[:2]] == [True, False]
    assert hosts[2:] == ["ended", "ended"]  # one for each kind, and both ended
    assert {(one["why"], one["printed"]) for one in told} == {("in ./x", ".")}  # which folder is chance
    assert not folder.exists()


def test_of_many_announced_sizes_a_few_are_drawn_anew_on_a_card(monkeypatch):
    asked = []

    def noted(host, file, problem, *, workloads, **how):
        asked.append(workloads)
        return Verdict(RIGHT, evidence=Evidence("f", "j", "", ()))

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr("course_harness.judging.Host", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(judge_module, "judge", noted)
    attention = task("attention")
    with Judge(sizes=8) as judge:
        for one in (attention, attention, SOFTMAX):
            judge.judge(one, "x", own=True)
    sizes = attention.problem().check_on
    assert [len(drawn) for drawn in asked] == [8, 8, 0]  # softmax has fewer: all are asked
    assert set(asked[0]) != set(asked[1])
    assert {*asked[0], *asked[1]} <= set(sizes)
    assert all(sorted(drawn, key=sizes.index) == drawn for drawn in asked[:2])


def test_a_file_that_ends_the_process_which_starts_strangers_is_refused_and_the_next_is_judged(monkeypatch):
    hosts = []

    class Mortal:
        def __init__(self, modules, environment):
            hosts.append("began")

        def close(self):
            hosts.append("ended")

    def ends(host, file, problem, **how):
        if "kill" in file.read_text():
            raise CannotJudge("the process that starts strangers has ended; see above")
        return Verdict(RIGHT, evidence=Evidence("f", "j", "", ()))

    monkeypatch.setattr("course_harness.judging.Host", Mortal)
    monkeypatch.setattr(judge_module, "judge", ends)
    with Judge() as judge:
        told = judge.judge(SOFTMAX, "kill", own=True)
        assert (told["found"], verdict_of(told).code) == ("died", 1)
        assert told["evidence"]["file"] == sha256(b"kill").hexdigest()
        assert told["evidence"]["judge"] == judge.judge_hash(SOFTMAX)
        assert judge.judge(SOFTMAX, "fine", own=True)["found"] == RIGHT
    assert hosts == 3 * ["began", "ended"]

    class Unborn:
        def __init__(self, modules, environment):
            raise CannotJudge("triton is not installed here", "triton")

    monkeypatch.setattr("course_harness.judging.Host", Unborn)
    with Judge() as judge, pytest.raises(Unusable, match="triton is not installed here"):
        judge.judge(SOFTMAX, "fine", own=True)


HONEST = "def refusals(x, s):\n    return x * s.unsqueeze(1)\n"
CHEAT = 'print("<b>right</b>")\n\n\ndef refusals(x, s):\n    return x\n'


def test_the_real_judge_judges_what_was_proposed_and_nothing_else_runs_it(tmp_path, monkeypatch):
    # All that it asks is asked in test_judge.py; here of two sizes, and briefly.
    monkeypatch.setattr(judge_module, "AGAIN_SECONDS", 0.0)
    sizes = tuple(Workload.of("float32", M=M, N=N) for M, N in ((1, 1), (5, 7)))
    monkeypatch.setattr(judge_module, "judge", partial(judge_module.judge, workloads=sizes))
    small = Task("refusals", 1, "dtype=float32,M=97,N=97", HONEST)
    path = tmp_path / "a.jsonl"
    with Judge(seconds=60) as judge:
        folder = judge._folder
        script = Script(
            {(1, 1): CHEAT, (1, 2): "def refusals(x, s):\n    raise ValueError(__file__)\n", (1, 3): HONEST}
        )
        script.own = False
        one = Plan(small, "kernel", "words", 1, 3)
        assert run(one, script, judge, Journal(path), PLENTY, say=lambda line: None) == DONE

    found = summary(path)
    assert [attempt.found for attempt in found.attempts] == ["shares memory", "crashed", RIGHT]
    assert row(found).with_feedback == table.Shares(1.0, None, None)
    assert (
        "  | <b>right</b>" in script.told[1][2][0]
    )  # told to its proposer as it is; a page never shows it so
    assert str(folder) not in path.read_text()
    assert not folder.exists()


def test_a_text_too_long_for_a_journal_is_no_python_any_more():
    text = shortened("x = '" + 600_000 * "a" + "'\n")
    assert len(text) < 300_000
    with pytest.raises(SyntaxError):
        compile(text, "x", "exec")


# --- the record of a card ---------------------------------------------------------------------------------

ABOUT = {"half": "kernel", **dict.fromkeys(("model", "prompt", "saw"), "m"), "date": "not known"}
ABOUT["sampling"] = dict.fromkeys(recorded.SAMPLING, "not known")
KEPT = {
    ("softmax", "bold"): "us=4",
    ("softmax", "calm"): "us=8",
    ("sgemm", "bold"): "wrong",
    ("swiglu", "bold"): "us=20",
}


class OneClock(FakeJudge):
    """Knows both rivals of each task."""

    def judge(self, task, text, own):
        found = super().judge(task, text, own)
        rival = {task.eager: 10.0, task.compiled: 5.0}.get(text)
        if rival is None:
            return found
        evidence = Evidence(sha256(text.encode()).hexdigest(), self.judge_now, self.on, ())
        return Verdict(RIGHT, evidence=evidence, time=Taken("size", rival, "both clocks")).as_json()


def kept_and_judged(root, judge=None):
    """Proposals of three tasks, and a journal of each series."""
    journals = []
    for (name, series), text in KEPT.items():
        recorded.keep(root, name, series, ABOUT, (1, 1), text.encode())
        one = recorded.series(root, name)[series]
        path = root / "journals" / f"{name}-{series}.jsonl"
        the_plan = Plan(task(name), "kernel", "words", one.samples, one.rounds)
        judge_of_it = judge or OneClock()
        run(the_plan, recorded.Recorded(one), judge_of_it, Journal(path), PLENTY, say=lambda line: None)
        journals.append(path)
    return journals


def test_a_record_says_what_its_journals_say(tmp_path):
    journals = kept_and_judged(tmp_path)
    path = record.keep(tmp_path, "a card", journals)

    assert path == tmp_path / "records" / "a-card" / "harness.jsonl"
    assert record.load(path) == [summary(one) for one in sorted(journals)]
    found, why = record.told(tmp_path, "a card", lambda name: "j" * 64)
    assert (found, why) == (record.load(path), "")


def test_the_numbers_of_a_record_are_those_of_its_verdicts(tmp_path):
    path = record.keep(tmp_path, "a card", kept_and_judged(tmp_path))
    together = record.merged(record.load(path))
    told = record.numbers(together)

    assert [one.task for one in together] == ["softmax", "sgemm", "swiglu"]  # in the order of the tasks
    # Two files of softmax, 4 and 8 µs, against 10 and 5; sgemm is wrong; swiglu is right and takes longer than both.
    assert told["softmax"] == {"files": 2, "right": 2, "eager": 2.5, "compiled": 1.25}
    assert told["sgemm"] == {"files": 1, "right": 0, "eager": 0.0, "compiled": 0.0}
    assert told["swiglu"] == {"files": 1, "right": 1, "eager": 0.5, "compiled": 0.25}
    one, all_ = told["l1"], told["all"]
    assert (one["tasks"], one["one_fast_0"], one["one_eager"], one["one_compiled"]) == (2, 0.5, 0.5, 0.25)
    assert (one["best_fast_0"], one["best_eager"], one["best_compiled"]) == (0.5, 0.5, 0.5)
    assert (all_["best_fast_0"], all_["best_eager"]) == (2 / 3, 1 / 3)
    assert "l3" not in told  # nothing is said of a level without a task
    assert (told["files"], told["right"], told["not_timed"]) == (4, 3, 0)


def test_what_is_right_and_was_not_timed_counts_as_no_gain(tmp_path):
    one = Summary(
        "softmax", 1, "kernel", "m", "a card", "j", ((Attempt(True, None, RIGHT),),),
        {"eager": Time(10.0, "both clocks"), "compiled": None}, DONE,
    )  # fmt: skip
    told = record.numbers([one])
    assert told["softmax"] == {"files": 1, "right": 1, "eager": 0.0, "compiled": 0.0}
    assert (told["all"]["best_fast_0"], told["all"]["best_eager"]) == (1.0, 0.0)
    assert told["not_timed"] == 1


def test_nothing_is_recorded_before_all_that_is_kept_was_judged_on_this_card(tmp_path):
    journals = kept_and_judged(tmp_path)
    with pytest.raises(Unusable, match=r"no journal yet of .*sgemm"):
        record.keep(tmp_path, "a card", [one for one in journals if "sgemm" not in one.name])
    with pytest.raises(Unusable, match="is of a card, and this is another"):
        record.keep(tmp_path, "another", journals)
    entries = read(journals[0])
    journals[0].write_text(resealed(entries[:-1]))
    with pytest.raises(Unusable, match="is not done"):
        record.keep(tmp_path, "a card", journals)
    assert not (tmp_path / "records").exists()


def forged(lines, how):
    if how == "the card":
        return [lines[0].replace("a card", "a car"), *lines[1:]]
    if how == "a verdict":
        at = next(n for n, line in enumerate(lines) if '"us": 4.0' in line)
        return [*lines[:at], lines[at].replace('"us": 4.0', '"us": 1.0'), *lines[at + 1 :]]
    if how == "a journal in place of another":
        lengths = [length for length, _ in json.loads(lines[0])["journals"]]
        journal = [json.loads(line) for line in lines[1 : 1 + lengths[0]]]
        return [
            lines[0],
            *resealed([{**journal[0], "words": "w"}, *journal[1:]]).splitlines(),
            *lines[1 + lengths[0] :],
        ]
    if how == "more":
        return [*lines, lines[-1]]
    return lines[:-1] if how == "less" else []


@pytest.mark.parametrize(
    "how", ["the card", "a verdict", "a journal in place of another", "more", "less", "nothing"]
)
def test_a_record_that_was_changed_is_refused(tmp_path, how):
    path = record.keep(tmp_path, "a card", kept_and_judged(tmp_path))
    path.write_text("\n".join(forged(path.read_text().splitlines(), how)) + "\n" * (how != "nothing"))
    with pytest.raises(Unusable, match=r"harness\.jsonl: (no record|line \d+)") as caught:
        record.told(tmp_path, "a card", lambda name: "j" * 64)
    assert "\n" not in str(caught.value)


def test_a_record_of_another_judge_or_of_other_files_says_nothing(tmp_path):
    assert record.told(tmp_path, "a card", lambda name: "j" * 64) == (
        [],
        "not yet judged on this card: nox -s harness -- all --record",
    )
    record.keep(tmp_path, "a card", kept_and_judged(tmp_path))
    found, why = record.told(tmp_path, "a card", lambda name: ("k" if name == "sgemm" else "j") * 64)
    assert (found, why[:24]) == ([], "sgemm: of another judge ")
    recorded.keep(tmp_path, "gemm", "bold", ABOUT, (1, 1), b"us=1")
    found, why = record.told(tmp_path, "a card", lambda name: "j" * 64)
    assert (found, why[:20]) == ([], "other proposals are ")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["softmax", "--record"], "--record goes with all"),
        (["all", "--attack", "--record"], "--record goes with all"),
        (["all", "--proposer", "search", "--record"], "--record goes with all"),
        (["all", "--record"], "--record is for a card"),
    ],
)
def test_a_record_is_of_all_that_is_kept_and_of_a_card(tmp_path, capsys, said, why):
    recorded.keep(tmp_path, "softmax", "bold", ABOUT, (1, 1), b"us=4")
    assert command.main([*said, "--journals", str(tmp_path / "j")], tmp_path) == command.USAGE
    assert why in capsys.readouterr().err


def test_rivals_are_judged_once_for_all_series_and_what_is_proposed_each_time(monkeypatch):
    fake, asked = FakeJudge(), []

    def judged(self, task, text, own):
        asked.append(text)
        return fake.judge(task, text, own)

    monkeypatch.setattr(Judge, "_judged", judged)
    with Judge() as judge:
        for _ in range(2):
            for text in (SOFTMAX.eager, SOFTMAX.compiled):
                judge.judge(SOFTMAX, text, False)
            judge.judge(SOFTMAX, "us=1", True)
            judge.judge(SOFTMAX, "us=1", False)
            judge.judge(SOFTMAX, SOFTMAX.eager, True)  # handed in as one's own, it is a file like any other
    assert asked.count(SOFTMAX.eager) == 3
    assert (asked.count(SOFTMAX.compiled), asked.count("us=1")) == (1, 4)


# --- one replay -------------------------------------------------------------------------------------------


def test_a_replay_is_the_verdict_of_now_and_what_is_wrong_has_no_speed(tmp_path, monkeypatch):
    for name, text in (("bold", "us=4"), ("wrong", "wrong")):
        recorded.keep(tmp_path, "softmax", name, ABOUT, (1, 1), text.encode())
    monkeypatch.setattr(proposed, "__defaults__", ((1, 1), tmp_path))
    judge = FakeJudge()
    its = replay(judge, "softmax", "bold")
    assert (its.is_right, its.us, its.by, its.says) == (True, 4.0, "both clocks", "right: 9 sizes")
    assert its.over(10.0) == 2.5
    assert judge.asked == [("judge", "us=4", True)]  # the work must be the file's own

    wrong = replay(judge, "softmax", "wrong")
    assert (wrong.is_right, wrong.us, wrong.over(10.0)) == (False, 0.0, 0.0)
    assert wrong.says == "refused on M1-N1: wrong: element (0, 0)"
    assert Replayed(True, "right", 0.0, "", 1.0).over(10.0) == 0.0  # right, and no time was taken
    for series, at in (("nobody", (1, 1)), ("bold", (2, 1))):
        with pytest.raises(Unusable, match="no sample"):
            replay(judge, "softmax", series, at)
