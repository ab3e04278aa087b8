"""Expert parallelism without a card: who sends what where, both cards by turns in one process, and two processes."""

import dataclasses
import itertools
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from course_kernels.expert_parallel import (
    by_card,
    by_choice,
    overlapped,
    plan,
    replicated,
    rows,
    stored,
)
from course_kernels.expert_parallel.experts import Tokens, multiply
from course_kernels.expert_parallel.layer import ALLOWED, LOADS, Layer, experts_of, tokens, truth
from course_kernels.expert_parallel.link import AboveTheLink, check_link, link_gb_per_s
from course_kernels.expert_parallel.mailbox import ROWS, SUMS, box_in, parts_of
from course_kernels.problem import worst_error
from course_kernels.two_cards import together
from course_kernels.two_cards.clock import passes_for

SMALL = Layer(D=16, F=8, E=8, TOP_K=3)
CAPACITY = 8


# --- the plan -------------------------------------------------------------------------------------


def test_the_plan_of_the_page():
    """Two cards with two experts each, five tokens of card 0."""
    chosen = torch.tensor([[0, 2], [1, 0], [3, 2], [2, 1], [0, 1]])
    found = plan.outgoing(chosen, card=0, cards=2, held=2)

    assert found.place[:, 1].tolist() == [0, -1, 1, 2, -1]
    assert found.place[:, 0].tolist() == [-1] * 5
    assert found.counts.tolist() == [0, 3]
    assert plan.rows_for_each_choice(chosen, 0, 2) == 4


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("cards", [1, 2, 4])
def test_every_token_goes_once_to_each_card_that_it_needs(cards, load):
    layer = Layer(D=8, F=8, E=16, TOP_K=4)
    held = layer.E // cards
    for card in range(cards):
        _, chosen, _ = tokens(layer, 23, load, card, cards, seed=card)
        found = plan.outgoing(chosen, card, cards, held)
        for other in range(cards):
            due = [t for t in range(23) if other != card and (chosen[t] // held == other).any()]
            went = found.place[:, other]
            assert went.tolist() == [due.index(t) if t in due else -1 for t in range(23)]
            assert found.counts[other] == len(due)
        packed = found.packed[found.packed >= 0]
        assert sorted(packed.tolist()) == list(range(int(found.counts.sum())))
        for other, begin in enumerate((found.counts.cumsum(0) - found.counts).tolist()):
            mine = found.packed[:, other][found.packed[:, other] >= 0]
            assert mine.tolist() == list(range(begin, begin + len(mine)))
        each = plan.rows_for_each_choice(chosen, card, held)
        assert each == sum(int(e) // held != card for e in chosen.flatten())


@pytest.mark.parametrize("T", [1, 2, 300])
def test_no_sum_of_the_plan_goes_down_a_column(T, monkeypatch):
    """A card would take a thread for each column of a tall table; what kernels get has a row a token all the same."""
    along = []
    cumsum = torch.Tensor.cumsum

    def watched(self, dim):
        along.append((self.is_contiguous() and dim == self.dim() - 1, self.shape))
        return cumsum(self, dim)

    monkeypatch.setattr(torch.Tensor, "cumsum", watched)
    _, chosen, _ = tokens(SMALL, T, "even", 0, 2, seed=T)
    found = plan.outgoing(chosen, 0, 2, 4)

    assert along == [(True, (2, T))]
    assert found.place.shape == (T, 2)
    assert found.place.is_contiguous()
    assert found.place.dtype == torch.int64


def test_who_stays_at_home_sends_nothing_and_who_goes_away_all():
    for load, sent in (("home", 0), ("away", 23)):
        _, chosen, _ = tokens(SMALL, 23, load, 1, 2, seed=3)
        assert plan.outgoing(chosen, 1, 2, 4).counts.tolist() == [sent, 0]


def test_choices_are_sorted_by_expert_over_all_parts():
    draw = torch.Generator().manual_seed(0)
    parts = [(torch.randint(0, 12, (n, 3), generator=draw), None) for n in (9, 1, 6)]
    parts[2] = (parts[2][0], torch.tensor([2]))
    found = plan.by_expert(parts, first=4, held=4)
    due = []  # (expert, part, row, k), in order
    for p, (chosen, count) in enumerate(parts):
        for n in range(len(chosen) if count is None else int(count)):
            due += [(int(e), p, n, k) for k, e in enumerate(chosen[n]) if 4 <= e < 8]
    due.sort(key=lambda one: one[0])

    assert [int(found.places[p][n, k]) for _, p, n, k in due] == list(range(len(due)))
    assert sum(int((place >= 0).sum()) for place in found.places) == len(due)
    assert found.ends.tolist() == [sum(e <= last for e, *_ in due) for last in range(4, 8)]


def test_experts_that_nobody_chose():
    chosen = torch.zeros(5, 2, dtype=torch.int64)
    found = plan.by_expert([(chosen, None)], first=2, held=3)

    assert found.ends.tolist() == [0, 0, 0]
    assert (found.places[0] == -1).all()


# --- the kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("W", [1, 40, rows.BLOCK + 3])
def test_rows_go_to_their_places_and_nowhere_else(W):
    source = torch.randn(4, W).bfloat16()
    target = torch.full((7, W), -1.0).bfloat16()
    place = torch.tensor([5, -1, -1, 0, 2, 6, -1, -1])
    rows.place_rows(source, place, target, each=2)

    for row, of in ((5, 0), (0, 1), (2, 2), (6, 2)):
        assert torch.equal(target[row], source[of])
    assert (target[[1, 3, 4]] == -1).all()


def test_sums_begin_with_their_base_and_end_at_the_count():
    these, base = torch.randn(6, 24).bfloat16(), torch.randn(4, 24)
    place = torch.tensor([[3, 0], [-1, 5], [-1, -1], [1, 2]])
    choices = torch.randn(4, 5)
    weights = choices[:, 3:]  # rows further apart than they are long
    out = torch.full((5, 24), -7.0)
    rows.sum_rows(these, place, out, weights=weights, base=base, count=torch.tensor([3]))
    due = base.clone()
    for n in range(4):
        for k in range(2):
            if place[n, k] >= 0:
                due[n] += weights[n, k] * these[place[n, k]].float()

    assert torch.allclose(out[:3], due[:3])
    assert (out[3:] == -7).all()


def test_the_gate_leaves_what_is_behind_the_count():
    h = torch.randn(5, 12).bfloat16()
    h[3:] = float("nan")
    g = rows.gate_rows(h, torch.tensor([3], dtype=torch.int32))
    gate, up = h.double().chunk(2, dim=1)

    assert worst_error(g[:3], (gate / (1 + (-gate).exp()) * up)[:3]) < 2**-7


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda t: rows.place_rows(t, torch.arange(4), t),
            ValueError,
            r"place: expected \(N \* each,\) = \(3",
        ),
        (
            lambda t: rows.place_rows(t, torch.arange(3).int(), t),
            TypeError,
            "place: expected int64, got int32",
        ),
        (
            lambda t: rows.place_rows(t, torch.arange(3), t.float()),
            TypeError,
            "target: expected bfloat16, got",
        ),
        (lambda t: rows.place_rows(t.T, torch.arange(8), t.T), ValueError, "source: expected contiguous"),
        (
            lambda t: rows.gate_rows(t[:, :7].contiguous(), torch.ones(1).long()),
            ValueError,
            r"h: expected \(N, 2 F\)",
        ),
        (
            lambda t: rows.sum_rows(t, torch.zeros(4, 1).long(), t),
            ValueError,
            "out: expected at least N=4 rows, got 3",
        ),
        (
            lambda t: rows.sum_rows(t, torch.zeros(3, 1).long(), t, weights=torch.ones(3, 2)),
            ValueError,
            "weights: expected",
        ),
        (
            lambda t: rows.sum_rows(t, torch.zeros(3, 1).long(), t, weights=torch.ones(3, 1).half()),
            TypeError,
            "weights: expected float32, got float16",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(call, error, says):
    with pytest.raises(error, match=says):
        call(torch.zeros(3, 8, dtype=torch.bfloat16))


def test_a_layer_that_cannot_be_shared_out_is_refused():
    for call, says in (
        (lambda: experts_of(SMALL, 0, 3, 0), r"cards: expected a divisor of E=8, got 3"),
        (lambda: experts_of(SMALL, 2, 2, 0), r"card: expected 0 to 1, got 2"),
        (
            lambda: tokens(SMALL, 4, "odd", 0, 2, 0),
            r"load: expected one of even, home, away, first, got 'odd'",
        ),
        (lambda: tokens(SMALL, 0, "even", 0, 2, 0), r"T: expected at least 1, got 0"),
        (lambda: tokens(Layer(8, 8, 8, 5), 4, "home", 0, 2, 0), r"TOP_K: expected at most 4 experts"),
    ):
        with pytest.raises(ValueError, match=says):
            call()


def test_tokens_that_do_not_fit_the_experts_are_refused():
    half = experts_of(SMALL, 0, 2, seed=0)
    x, chosen, weights = tokens(SMALL, 3, "even", 0, 2, seed=0)
    mailbox = SimpleNamespace(theirs=fresh_box(2), mine=fresh_box(2))
    for function, how in (
        (by_choice.expert_parallel, {}),
        (by_card.expert_parallel, {}),
        (stored.expert_parallel, {"mailbox": mailbox}),
        (overlapped.expert_parallel, {"mailbox": mailbox}),
        (replicated.expert_parallel, {}),
    ):
        with pytest.raises(TypeError, match="x: expected bfloat16, got float32"):
            function(x.float(), chosen, weights, half, **how)
        with pytest.raises(ValueError, match=r"x: expected \(T, D\) with D=16"):
            function(x[:, :8].contiguous(), chosen, weights, half, **how)
        with pytest.raises(ValueError, match=r"chosen, weights: expected \(T, TOP_K\)"):
            function(x, chosen[:2], weights, half, **how)
    with pytest.raises(ValueError, match="x: expected at most 2 tokens, which a box has room for, got 3"):
        stored.expert_parallel(x, chosen, weights, half, mailbox=mailbox)
    with pytest.raises(ValueError, match="experts: expected all of a layer, cards=1, got a share of cards=2"):
        replicated.expert_parallel(x, chosen, weights, half)


# --- both cards, by turns ---------------------------------------------------------------------------


def fresh_box(capacity=CAPACITY, layer=SMALL):
    """A box full of NaN, as memory is that nobody has written."""
    buffer = torch.full((parts_of(capacity, layer.D, layer.TOP_K)[1],), 255, dtype=torch.uint8)
    return box_in(buffer, capacity, layer.D, layer.TOP_K)


class ByTurns:
    """One card's view of two boxes; a wait without its signal is a deadlock, and fails."""

    def __init__(self, mine, theirs, heard, told):
        self.mine, self.theirs, self._heard, self._told = mine, theirs, heard, told

    def signal(self, what):
        self._told.append(what)

    def wait(self, what):
        assert what in self._heard, "waits for what nobody has sent"
        self._heard.remove(what)


def both_cards(T, load, seeds=(0, 1)):
    """The worst error of stored.py on two cards, in units of what is allowed, over draws in the same boxes."""
    boxes, heard = (fresh_box(), fresh_box()), ([], [])
    mailboxes = [ByTurns(boxes[c], boxes[1 - c], heard[c], heard[1 - c]) for c in (0, 1)]
    experts = [experts_of(SMALL, card, 2, seed=5) for card in (0, 1)]
    worst = 0.0
    for seed in seeds:
        inputs = [tokens(SMALL, T[card], load, card, 2, seed) for card in (0, 1)]
        went = [stored.send(*inputs[card], experts[card], mailboxes[card]) for card in (0, 1)]
        own = []
        for card, mailbox in enumerate(mailboxes):
            x, chosen, weights = inputs[card]
            mailbox.wait(ROWS)
            y, places = multiply(experts[card], Tokens(x, chosen), stored.arrived(mailbox, SMALL.TOP_K))
            own.append(torch.empty(x.shape))
            rows.sum_rows(y, places[0], own[-1], weights=weights)
            stored.send_back(y, places[1], mailbox)
        for card, mailbox in enumerate(mailboxes):
            mailbox.wait(SUMS)
            out = torch.empty_like(inputs[card][0])
            rows.sum_rows(mailbox.mine.sums, went[card][:, None], out, base=own[card])
            error = worst_error(out, truth(SMALL, *inputs[card], seed=5)) / ALLOWED
            worst = error if not error <= worst else worst
    assert heard == ([], [])
    return worst


@pytest.mark.kept
@pytest.mark.parametrize(
    ("T", "load"),
    [
        ((3, 8), "even"),  # uneven; and the box is full
        ((1, 1), "even"),
        ((3, 4), "first"),  # card 1 has nothing to multiply, and sends all that it has
        ((2, 3), "home"),  # nothing travels
        ((4, 2), "away"),  # everything does
    ],
)
def test_rows_stored_in_the_neighbours_box_come_back_right(T, load):
    assert both_cards(T, load) <= 1


def lost_weights(monkeypatch):
    monkeypatch.setattr(
        stored, "sum_rows", lambda y, place, out, weights, count: rows.sum_rows(y, place, out, count=count)
    )


def a_row_too_far(monkeypatch):
    outgoing = stored.outgoing

    def shifted(*arguments):
        found = outgoing(*arguments)
        return plan.Outgoing(torch.where(found.place > 0, found.place - 1, found.place), found.counts)

    monkeypatch.setattr(stored, "outgoing", shifted)


def an_old_count(monkeypatch):
    outgoing = stored.outgoing
    monkeypatch.setattr(
        stored, "outgoing", lambda *a: plan.Outgoing(outgoing(*a).place, outgoing(*a).counts - 1)
    )


def the_next_expert(monkeypatch):
    arrived = stored.arrived

    def wrong(mailbox, TOP_K):
        found = arrived(mailbox, TOP_K)
        return Tokens(found.x, found.chosen ^ 1, found.count)

    monkeypatch.setattr(stored, "arrived", wrong)


@pytest.mark.kept
@pytest.mark.parametrize("fault", [lost_weights, a_row_too_far, an_old_count, the_next_expert])
def test_a_fault_is_seen(fault, monkeypatch):
    assert both_cards((3, 4), "even", seeds=(0,)) <= 1
    fault(monkeypatch)

    assert not both_cards((3, 4), "even", seeds=(0,)) <= 1


def test_rows_behind_the_count_are_not_multiplied():
    box = fresh_box()
    experts = experts_of(SMALL, 0, 2, seed=5)
    x, chosen, weights = tokens(SMALL, CAPACITY, "home", 0, 2, seed=0)
    box.rows.copy_(x)
    box.choices.copy_(torch.cat([chosen.int(), weights.view(torch.int32)], dim=1))
    box.count.fill_(2)
    _, (place,) = multiply(experts, stored.arrived(SimpleNamespace(mine=box), SMALL.TOP_K))

    assert (place[:2] >= 0).all()
    assert (place[2:] == -1).all()


def test_the_parts_of_a_box_do_not_meet():
    parts, end = parts_of(CAPACITY, 17, 3)
    spans = [(begin, begin + torch.Size(shape).numel() * dtype.itemsize) for dtype, shape, begin in parts]

    assert all(stop <= begin for (_, stop), (begin, _) in itertools.pairwise(spans))
    assert spans[-1][1] <= end
    assert all(begin % 16 == 0 for begin, _ in spans)


# --- two processes ----------------------------------------------------------------------------------


def test_two_processes_agree_with_one_card():
    cases = [
        together.Case(SMALL, T=(2, 5), ways=together.WAYS[1:]),
        together.Case(SMALL, T=(1, 3), load="first", ways=("by_choice", "by_card"), seed=4),
        together.Case(SMALL, T=(2, 1), load="home", ways=("by_choice", "by_card"), seed=6),
    ]
    found = together.check(cases, device="cpu", limit_s=240)

    assert [set(of_case) for of_case in found] == [set(case.ways) for case in cases]
    assert all(0 < error <= 1 for of_case in found for error in of_case.values())


def test_a_race_runs_without_a_card():
    """By the host's clock: how long it takes says nothing, but all of it is run."""
    case = together.Case(SMALL, T=(2, 5), ways=("by_card", "stored"), rounds=3)
    (found,) = together.race([case], device="cpu", limit_s=240)

    assert {way: len(times) for way, times in found.us.items()} == {"by_card": 3, "stored": 3}
    assert all(min(times) > 0 for times in found.us.values())
    assert set(found.stages_us["stored"]) == {"dispatch", "multiply", "combine"}
    assert all(0 < error <= 1 for error in found.errors.values())


@pytest.mark.parametrize(
    ("host_us", "pass_us", "asked_us", "passes"),
    [
        (100, 60, 8, 32),  # few would do
        (2000, 60, 8, 58),  # 3000 µs, and each pass gains 52
        (25_000, 60, 8, 256),
        (2000, 60, 60, 256),  # a host that is no faster than the card never gets ahead
        (2000, 8, 60, 256),
    ],
)
def test_passes_outlast_the_host(host_us, pass_us, asked_us, passes):
    assert passes_for(host_us / 1e6, pass_us / 1e6, asked_us / 1e6) == passes


def test_who_fails_ends_both(tmp_path):
    """The other one waits for ever, and is ended with it."""
    (tmp_path / "said0").write_text("")
    (tmp_path / "said1").write_text("Traceback\nValueError: why\n")
    sleeps, fails = "import time; time.sleep(60)", "raise SystemExit(3)"
    children = [subprocess.Popen([sys.executable, "-c", code]) for code in (sleeps, fails)]
    try:
        with pytest.raises(together.CardsFailed, match=r"^card 1: race ended with 3: ValueError: why$"):
            together._wait(children, tmp_path, "race", 50)
        with pytest.raises(together.CardsFailed, match=r"^race: no end after 0 s: ended from outside$"):
            together._wait(children[:1], tmp_path, "race", 0)
    finally:
        children[0].kill()
        children[0].wait()


def test_a_case_survives_the_journey():
    case = together.Case(SMALL, T=(2, 5), load="away", ways=("stored",), rounds=9, seed=8)

    assert together.Case.from_json(json.loads(json.dumps(dataclasses.asdict(case)))) == case


def test_the_slower_card_decides():
    cards = [
        {
            "us": {"stored": [3.0, 1.0]},
            "stages_us": {"stored": {"dispatch": [1.0, 5.0]}},
            "sent_rows": {"by_card": 4},
            "errors": {"stored": float("nan") if card else 0.5},
        }
        for card in (0, 1)
    ]
    cards[1]["us"] = {"stored": [2.0, 7.0]}
    cards[1]["sent_rows"] = {"by_card": 9}
    found = together._raced(cards)

    assert found.us == {"stored": [3.0, 7.0]}
    assert found.sent_rows == {"by_card": 9}
    assert found.errors["stored"] != found.errors["stored"]


def test_what_the_link_cannot_carry_is_refused():
    rate = link_gb_per_s("NVIDIA H200")
    check_link("a copy", 450e6, [999.0, 1001.0, 1000.0], rate)
    with pytest.raises(AboveTheLink, match=r"^a copy: 999 µs, and its bytes take 1000 µs on the link"):
        check_link("a copy", 450e6, [999.0, 1001.0, 900.0], rate)
    with pytest.raises(AboveTheLink):
        check_link("a copy", 450e6, [float("nan")], rate)
    with pytest.raises(ValueError, match=r"^NVIDIA L40S: expected a card with NVLink out of NVIDIA H200"):
        link_gb_per_s("NVIDIA L40S")
