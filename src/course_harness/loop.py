"""Loop: propose, judge, profile, tell, and propose again, until rounds, samples or a budget end.

All that happens is in the journal before the next thing begins. So a run that is interrupted at any point goes on where
it was when the same command is given again: nothing that the journal has is asked a second time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from course_harness.journal import Entry, Journal
from course_harness.judging import Judging, is_right
from course_harness.proposer import History, Proposal, Proposer, Stopped, Turn
from course_harness.tasks import Task, Unusable
from course_judge.protocol.verdict import Evidence, Taken, Verdict

DONE, OUT_OF_SECONDS, OUT_OF_PROPOSALS = "done", "out of seconds", "out of proposals"
BASELINES = ("eager", "compiled")
FORMAT = 1


@dataclass(frozen=True)
class Plan:
    """Plan of a run.

    Attributes:
        task: what is to be written.
        half: "kernel", or "attack".
        words: what proposers are told of the task.
        samples: chains that know nothing of each other.
        rounds: proposals of a chain, at most.
        profile: whether a right file is run once more, by the profiler, where there is a card.
    """

    task: Task
    half: str
    words: str
    samples: int
    rounds: int
    profile: bool = False


@dataclass(frozen=True)
class Budget:
    """Budget of a run, over all its interruptions.

    Attributes:
        seconds: of the wall, while it runs; no step is begun later.
        proposals: how many are asked for, at most.
    """

    seconds: float
    proposals: int


def run(
    plan: Plan,
    proposer: Proposer,
    judging: Judging,
    journal: Journal,
    budget: Budget,
    *,
    now: Callable[[], float] = time.monotonic,
    say: Callable[[str], None] = print,
) -> str:
    """Run what is left of a plan; returns why it ended.

    Raises:
        Unusable: the journal is of another plan or judge, or judging could not begin.
        Stopped: the proposer cannot go on now; the same run goes on later.
    """
    return _Run(plan, proposer, judging, journal, budget, now, say).through()


class _Over(Exception):
    """The budget is used up."""


class _Run:
    def __init__(
        self,
        plan: Plan,
        proposer: Proposer,
        judging: Judging,
        journal: Journal,
        budget: Budget,
        now: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._plan, self._proposer, self._judging, self._journal = plan, proposer, judging, journal
        self._budget, self._now, self._say = budget, now, say
        # Of an attack nobody asks whose work it is: refused for that, it would say nothing of the judge's questions.
        self._own = proposer.own and plan.half == "kernel"

    def through(self) -> str:
        self._begin()
        try:
            if self._judging.has_card and self._plan.half == "kernel":
                for which in BASELINES:
                    self._baseline(which)
            for sample in range(1, self._plan.samples + 1):
                self._sample(sample)
            why = DONE
        except _Over as over:
            why = str(over)
        last = self._journal.entries[-1]
        if last["kind"] != "ended" or last["why"] != why:
            self._journal.add("ended", why=why)
        return why

    def _begin(self) -> None:
        """Write down what is asked, or see that the journal is of just this.

        Raises:
            Unusable: it is not.
        """
        asked = {
            "format": FORMAT,
            "task": self._plan.task.name,
            "level": self._plan.task.level,
            "half": self._plan.half,
            "words": sha256(self._plan.words.encode()).hexdigest(),
            "proposer": self._proposer.name,
            "own": self._own,
            "about": self._proposer.described(),
            "judge": self._judging.judge_hash(self._plan.task),
            "on": self._judging.on,
            "profile": self._plan.profile,
        }
        if not self._journal.entries:
            self._journal.add("begun", **asked)
            return
        begun = self._journal.entries[0]
        # As it was read: a tuple is a list then.
        for name, value in asked.items():
            if begun.get(name) != value:
                what = {"judge": "of another judge, or of another problem", "on": "of another machine"}
                why = what.get(
                    name, f"of other {name}" if name in ("words", "about") else f"of another {name}"
                )
                raise Unusable(f"{self._journal.path}: {why} than this run; name another --journal")

    def _sample(self, sample: int) -> None:
        turns: list[Turn] = []
        for number in range(1, self._plan.rounds + 1):
            at = {"sample": sample, "round": number}
            proposed = self._journal.first("proposed", **at) or self._propose(
                at, History(sample, tuple(turns))
            )
            if proposed["none"]:
                return
            judged = self._journal.first("judged", **at) or self._judge(at, proposed)
            profiled = self._journal.first("profiled", **at)
            if profiled is None and self._is_profiled(judged):
                profiled = self._profile(at, proposed)
            proposal = Proposal(proposed["text"], proposed["note"], proposed["said"])
            turns.append(Turn(proposal, feedback(proposed, judged, profiled)))

    def _propose(self, at: Mapping[str, int], history: History) -> Entry:
        if len(self._journal.of("proposed", none=False)) >= self._budget.proposals:
            raise _Over(OUT_OF_PROPOSALS)

        def step() -> dict[str, Any]:
            found = self._proposer.propose(self._plan.task, history)
            if found is None:
                return {"none": True, "text": "", "note": "", "said": {}}
            return {"none": False, "text": found.text, "note": found.note, "said": dict(found.said)}

        return self._step("proposed", at, step)

    def _judge(self, at: Mapping[str, int], proposed: Entry) -> Entry:
        def step() -> dict[str, Any]:
            task, text = self._plan.task, proposed["text"]
            if not text.strip():
                return {"verdict": self._nothing(proposed)}
            return {"verdict": self._judging.judge(task, text, self._own)}

        entry = self._step("judged", at, step)
        self._say(f"sample {at['sample']}, round {at['round']}: {_head(entry['verdict'])}")
        return entry

    def _nothing(self, proposed: Entry) -> dict[str, Any]:
        """Return the verdict on an answer that holds no file."""
        task = self._plan.task
        evidence = Evidence(
            sha256(proposed["text"].encode()).hexdigest(), self._judging.judge_hash(task), "not run", ()
        )
        why = proposed["note"] or f"the answer holds no file that defines {task.name}"
        return Verdict("function missing", why, evidence=evidence).as_json()

    def _is_profiled(self, judged: Entry) -> bool:
        return self._plan.profile and self._judging.has_card and is_right(judged["verdict"])

    def _profile(self, at: Mapping[str, int], proposed: Entry) -> Entry:
        text = proposed["text"]
        return self._step("profiled", at, lambda: {"words": self._judging.profile(self._plan.task, text)})

    def _baseline(self, which: str) -> None:
        """Have a rival judged and timed, as a proposal is."""
        if self._journal.first("baseline", which=which) is None:
            text = getattr(self._plan.task, which)
            task = self._plan.task
            self._step(
                "baseline", {"which": which}, lambda: {"verdict": self._judging.judge(task, text, False)}
            )

    def _step(self, kind: str, at: Mapping[str, Any], step: Callable[[], dict[str, Any]]) -> Entry:
        """Do one thing and write it down, with the seconds that it took; what fails has cost seconds as well."""
        if spent(self._journal.entries) >= self._budget.seconds:
            raise _Over(OUT_OF_SECONDS)
        began = self._now()
        try:
            found = step()
        except Stopped:
            self._journal.add("spent", seconds=round(self._now() - began, 3), on=kind, **at)
            raise
        return self._journal.add(kind, **at, seconds=round(self._now() - began, 3), **found)


def spent(entries: Iterable[Entry]) -> float:
    """Return the seconds of all steps of a journal."""
    return float(sum(entry.get("seconds", 0.0) for entry in entries))


def feedback(
    proposed: Mapping[str, Any], judged: Mapping[str, Any], profiled: Mapping[str, Any] | None
) -> str:
    """Return what a proposer is told of its file: the verdict's text, and the profiler's words where there are any."""
    told = "The judge says\n" + verdict_of(judged["verdict"]).text
    if proposed["note"] and not proposed["text"]:
        told = f"{proposed['note']}\n\n{told}"
    return told + (f"\n\nThe profiler says\n{profiled['words']}" if profiled else "")


def verdict_of(told: Mapping[str, Any]) -> Verdict:
    """Return a verdict that was kept as plain data."""
    fields = {name: value for name, value in told.items() if name != "seal"}
    evidence, taken = fields.pop("evidence"), fields.pop("time")
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    launches = evidence["launches"]
    return Verdict(
        **{**fields, **lists},
        evidence=Evidence(
            **{**evidence, "cases": tuple(evidence["cases"]), "launches": launches and tuple(launches)}
        ),
        time=Taken(**taken) if taken else None,
    )


def _head(verdict: Mapping[str, Any]) -> str:
    return verdict_of(verdict).text.splitlines()[0][:200]
