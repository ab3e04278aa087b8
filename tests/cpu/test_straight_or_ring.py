"""Sums over the chips of a box: right both ways, and what crosses a link is what theory says."""

import numpy as np
import pytest

from course_chips import straight_or_ring

WAYS = list(straight_or_ring.WAYS.values())


def lists(chips, pieces=4, seed=0):
    return np.random.default_rng(seed).integers(0, 1000, (chips, chips * pieces)).astype(float)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chips", [2, 3, 5, 8])
def test_every_chip_has_the_sum_of_all_lists(way, chips):
    given = lists(chips)
    before = given.copy()
    done = way(given)
    assert (done.sums == given.sum(axis=0)).all()
    assert done.sums.shape == given.shape
    assert (given == before).all()  # nobody writes into the lists


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("chips", [2, 5, 8])
def test_both_ways_send_two_times_n_minus_1_over_n_of_a_list(way, chips):
    given = lists(chips)
    sent = way(given).sent
    assert sent.sum(axis=1) == pytest.approx(np.full(chips, 2 * (chips - 1) / chips * given[0].nbytes))
    assert not sent.diagonal().any()


def test_a_ring_uses_one_link_of_each_chip_and_straight_uses_all():
    ring, straight = straight_or_ring.round_a_ring(lists(8)), straight_or_ring.straight(lists(8))
    assert (ring.links_used, straight.links_used) == (pytest.approx(1 / 7), 1.0)
    assert (ring.steps, straight.steps) == (14, 2)
    assert ring.least_us(75.0) == pytest.approx(7 * straight.least_us(75.0))
    assert straight.least_us(1.0) == pytest.approx(
        lists(8)[0].nbytes / 4 / 1e3
    )  # 1 GB/s is 1000 bytes in a µs
    assert (
        straight_or_ring.round_a_ring(lists(2)).links_used
        == straight_or_ring.straight(lists(2)).links_used
        == 1.0
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(8,), (1, 8), (3, 8)])
def test_lists_that_do_not_divide_are_refused(way, shape):
    with pytest.raises(ValueError, match="lists: expected"):
        way(np.zeros(shape))


def test_the_command_says_what_each_way_cost(capsys):
    assert straight_or_ring.main([]) == 0
    straight, ring = capsys.readouterr().out.splitlines()
    assert straight == (
        "straight: right, 2 steps, 100% of the links used, 1.75 lists sent by a chip, "
        "0.250 of them over its busiest link"
    )
    assert ring.startswith("round a ring: right, 14 steps, 14% of the links used")
    assert straight_or_ring.main(["3"]) == 0
