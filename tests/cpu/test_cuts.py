"""Late in the room: what is proposed keeps the heart of every session and what a kept step stands on."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_site.sessions.cuts import in_order, standing
from course_site.sessions.session import load_sessions

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = load_sessions(ROOT)
LATE = (1, 2, 5, 10, 15, 22, 40, 90)


@dataclass
class Part:
    """As much of a step as its cut is about."""

    number: int
    priority: int
    saves: int = 1
    needs: tuple[str, ...] = ()
    minutes: int = 10
    cut: str = "It."

    @property
    def title(self):
        return str(self.number)

    def __getitem__(self, key):
        return {"cut": self.cut}[key]


def numbers(order):
    return [step.number for step in order]


def enough(order, late):
    """The first cuts of the row that win back `late` minutes, as the run view takes them."""
    won = itertools.accumulate((step.saves for step in order), initial=0)
    return [step for step, before in zip(order, won, strict=False) if before < late]


def test_cuts_go_by_their_priority_and_only_of_steps_to_come():
    steps = [Part(1, 2), Part(2, 3), Part(3, 1), Part(4, 9, cut="")]
    assert numbers(in_order(steps, 0)) == [3, 1, 2]
    assert numbers(in_order(steps, 1)) == [3, 2]
    assert numbers(in_order(steps, 3)) == []


def test_what_a_kept_step_stands_on_is_not_proposed():
    steps = [Part(1, 1), Part(2, 2), Part(3, 3, needs=("1",))]
    assert numbers(in_order(steps, 0)) == [2, 3]


def test_it_may_go_once_all_that_stands_on_it_fell_out_as_a_whole():
    steps = [Part(1, 1), Part(2, 2), Part(3, 3, saves=10, needs=("1",)), Part(4, 4, saves=10, needs=("1",))]
    assert numbers(in_order(steps, 0)) == [2, 3, 4, 1]
    steps[2].saves = 9
    assert numbers(in_order(steps, 0)) == [2, 3, 4]


def test_a_step_that_is_over_stands_on_nothing_any_more():
    steps = [Part(1, 1, needs=("3",)), Part(2, 2), Part(3, 3)]
    assert numbers(in_order(steps, 1)) == [2]  # now: it still stands
    assert numbers(in_order(steps, 2)) == [3]


def test_twenty_two_minutes_late_in_the_first_workshop():
    steps = SESSIONS["w1"].steps()
    proposed = enough(in_order(steps, 2), 22)
    assert sum(step.saves for step in proposed) >= 22
    titles = [step.title for step in proposed]
    assert titles[0] == "Forecast, then count"
    for heart in (
        "Crate one: 1 and 3",
        "Crate two, and the repair",
        "All four at once",
        "Two arrows, two lines",
    ):
        assert heart not in titles


@pytest.mark.parametrize("name", SESSIONS)
def test_whatever_the_lateness_the_heart_stays(name):
    steps = SESSIONS[name].steps()
    assert any(step.protected for step in steps)
    for now, late in itertools.product(range(len(steps)), LATE):
        order = in_order(steps, now)
        proposed = enough(order, late)
        saved = sum(step.saves for step in proposed)
        assert all(step.number > now and step["cut"] and not step.protected for step in proposed)
        for step in proposed:
            assert standing(step, steps, now, proposed) == []
        assert saved >= late or proposed == order  # all there is: the run view says how much is missing
        if proposed:
            assert saved - proposed[-1].saves < late  # none too many


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "opening"])
def test_a_fifth_of_a_session_can_be_won_back(name):
    session = SESSIONS[name]
    assert sum(step.saves for step in in_order(session.steps(), 1)) >= session.minutes / 5


@pytest.mark.parametrize("name", SESSIONS)
def test_the_heart_is_no_excuse(name):
    session = SESSIONS[name]
    kept = sum(step.minutes for step in session.steps() if step.protected)
    assert kept <= session.minutes / 2
