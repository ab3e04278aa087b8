"""Training on two cards, without a card: two processes, gloo, a tiny model. What is kept and sent is exact there."""

import dataclasses

import pytest
import torch
from test_year import cell_of

from course_models.config import parameters
from course_models.model import Model
from course_models.two_cards import together
from course_models.two_cards import ways as of
from course_models.two_cards.carried import Carried
from course_models.two_cards.together import HALF_A_BILLION, SMALL

TINY = dataclasses.replace(SMALL, max_tokens=64)
N = parameters(TINY)


@pytest.fixture(scope="module")
def trained():
    """All ways in one pair of processes: to start them takes longer than to train."""
    return together.train(of.WAYS, [(1, 8), (2, 16)], TINY, rounds=2, device="cpu", limit_s=240)


def test_every_way_makes_the_step_of_one_card_but_the_one_that_sends_nothing(trained):
    errors = dict(trained.off)

    assert errors.pop("alone") > 1e-4  # so a gradient that is not exchanged is seen
    assert set(errors) == {"by_hand", "ddp", "zero2", "zero3"}
    assert max(errors.values()) < 1e-12


def test_what_is_kept_and_sent_is_what_the_formulas_say(trained):
    assert {way: kept.state_bytes / N for way, kept in trained.kept.items()} == {
        "alone": 16, "by_hand": 16, "ddp": 16, "zero2": 8, "zero3": 8,
    }  # fmt: skip
    assert {way: dict(kept.sent_bytes) for way, kept in trained.kept.items()} == {
        "alone": {},
        "by_hand": {"all_reduce": 2 * N},
        "ddp": {"all_reduce": 2 * N},
        "zero2": {"all_gather": N, "reduce_scatter": N},
        "zero3": {"all_gather": 2 * N, "reduce_scatter": N},
    }
    units = TINY.layers + 1
    assert trained.kept["zero3"].calls == {"all_gather": 2 * units, "reduce_scatter": units}
    assert all(kept.peak_bytes == kept.held_bytes == 0 for kept in trained.kept.values())
    assert [{way: len(times) for way, times in of_shape.items()} for of_shape in trained.us] == [
        dict.fromkeys(of.WAYS, 2)
    ] * 2


@pytest.fixture
def cells_of(trained, monkeypatch):
    """What a week's cells record, with that training in the place of theirs, and for which shapes they asked."""
    asked = []

    def train(ways, shapes):
        asked.append([*shapes])
        off, kept = ({way: found[way] for way in ways} for found in (trained.off, trained.kept))
        us = [{way: of_shape[way] for way in ways} for of_shape in trained.us[: len(shapes)]]
        return together.Trained(off, kept, us)

    monkeypatch.setattr(together, "train", train)
    monkeypatch.setattr(together, "HALF_A_BILLION", TINY)
    return lambda week: (cell_of(week, with_cards=True)["kept"], asked)


def test_the_cells_of_week_7_run_without_its_cards(cells_of):
    kept, asked = cells_of("week_07")
    assert asked == [[(2, 1024), (8, 1024)]]
    assert kept["sent"]["by_hand"].value == kept["sent"]["ddp"].value == kept["formula"].value > 0
    assert kept["buckets"].value >= 1
    assert {*kept["small"]} == {*kept["large"]} == {"alone", "by_hand", "ddp"}
    assert kept["batch"]["large"].value == 8192


def test_the_cells_of_week_8_run_without_its_cards(cells_of):
    kept, asked = cells_of("week_08")
    assert asked == [[(8, 1024)]]
    assert {way: one.value for way, one in kept["due"].items()} == {"ddp": 16, "zero2": 9, "zero3": 8}
    for way, due in kept["sent_due"].items():
        assert kept["carried"][way].value == pytest.approx(due.value, rel=1e-12)
    states = {way: one.value * 1e9 / N for way, one in kept["states"].items()}
    assert states == pytest.approx({"ddp": 16, "zero2": 8, "zero3": 8}, rel=1e-12)
    assert kept["peak_due"]["zero3"].value == pytest.approx(8 * N / 1e9 + kept["whole_gb"].value, rel=1e-9)
    assert {*kept["ms"]} == {"ddp", "zero2", "zero3"}


def test_the_model_that_is_measured_has_half_a_billion_weights_that_two_can_share():
    assert parameters(HALF_A_BILLION) == 478_201_344
    shapes = [w.shape for w in Model.empty(HALF_A_BILLION, device="meta").parameters()]
    assert all(shape[0] % of.CARDS == 0 for shape in shapes)


def test_its_loss_is_that_of_the_models_own_logits():
    model = Model.random(TINY, 1, dtype=torch.float64)
    tokens = torch.randint(TINY.vocab, (2, 9), generator=torch.Generator().manual_seed(0))
    due = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    assert of.Whole(model)(tokens).item() == pytest.approx(due.item(), rel=1e-12)


def test_its_optimizer_is_torchs_adam():
    draw = torch.Generator().manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(4, 3, generator=draw, dtype=torch.float64)) for _ in range(20)]
    theirs = [torch.nn.Parameter(w.detach().clone()) for w in ours]
    adam = of.Adam(ours)
    library = torch.optim.Adam(theirs, lr=of.RATE, betas=(of.MEAN, of.SQUARE), eps=of.EPSILON)
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(4, 3, generator=draw, dtype=torch.float64)
            b.grad = a.grad.clone()
        adam.step()
        library.step()

    assert all(torch.allclose(a, b, rtol=0, atol=1e-14) for a, b in zip(ours, theirs, strict=True))


def test_bf16_weights_follow_a_wider_copy():
    """A step that bf16 would round away is kept, and shows when enough of them have come."""
    weight = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
    adam = of.Adam([weight])
    seen = []
    for _ in range(8):
        weight.grad = torch.ones_like(weight)
        adam.step()
        seen.append(weight.item())

    assert adam.master[0].dtype == torch.float32
    assert seen[0] == 1.0
    assert seen[-1] < 1.0


def test_what_cannot_be_is_refused_in_a_line():
    with pytest.raises(
        ValueError, match=r"^way: expected one of alone, by_hand, ddp, zero2, zero3, got 'x'$"
    ):
        of.Training("x", TINY, 0, torch.float32, "cpu")


def test_a_collective_whose_bytes_nobody_counts_is_refused():
    broadcast = torch.ops.c10d.broadcast_.default
    with pytest.raises(NotImplementedError, match=r"^c10d.broadcast_: expected one of allreduce_, "):
        Carried(2).__torch_dispatch__(broadcast, ())


def test_nothing_else_is_counted():
    with Carried(2) as carried:
        torch.ones(3) + 1
    assert not carried.calls
    assert not carried.sent_bytes
