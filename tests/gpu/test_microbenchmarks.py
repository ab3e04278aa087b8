"""The microbenchmarks on the card: answers checked, levels in their order, a wrong chain refused."""

from statistics import median

import pytest
import torch

from course_kernels.measure import samples
from course_kernels.measure.gate import check
from course_kernels.measure.machine import machine_for
from course_kernels.measure.sensors import snapshot
from course_kernels.microbenchmarks import bandwidth, coordinates, latency
from course_kernels.microbenchmarks.checked import WrongAnswer, warm_up_and_empty_l2

GROUPS = ("microbenchmarks",)
ALONE = True


def test_a_level_further_away_takes_longer():
    cycles = [median(latency.hop_cycles(level, 5)) for level in ("shared", "l1", "l2", "hbm")]

    assert cycles == sorted(cycles)
    assert cycles[0] > 10
    assert cycles[2] > 2 * cycles[1]
    assert cycles[3] > 1.5 * cycles[2]


def test_an_address_in_the_chain_saves_the_arithmetic():
    for level in ("shared", "l1"):  # farther down, which lines are met matters as much
        assert median(latency.hop_cycles(level, 5, pointer=True)) < median(latency.hop_cycles(level, 5))


def test_the_stairs_go_up():
    steps = [median(latency.chase(footprint, 3)) for footprint in (2**14, 2**22, 2**29)]

    assert steps[1] > 2 * steps[0]
    assert steps[2] > 1.5 * steps[1]


def test_lines_of_the_l2_cache_take_some_hundred_cycles():
    cycles = latency.line_cycles(64)

    assert len(cycles) == 64
    assert median(latency.hop_cycles("l1", 5)) < min(cycles)
    assert max(cycles) < median(latency.hop_cycles("hbm", 5)) * 2


def test_the_clock_costs_little():
    assert 0 < median(latency.clock_cycles(5)) < 200


def test_the_order_of_a_walk_does_not_matter_to_memory():
    """Lines at random or one after the other: nothing is fetched ahead that would hide the latency."""
    random, rising = (latency.make_chain(2**28, rising=rising) for rising in (False, True))
    cycles = []
    for chain in (random, rising):
        warm_up_and_empty_l2()
        cycles.append(median(latency.walk(chain, "cg", warm=0, hops=1024, n=5)))

    assert cycles[0] / 1.3 < cycles[1] < cycles[0] * 1.3


@pytest.mark.parametrize("load", latency.LOADS)
def test_a_chain_with_a_short_cut_is_refused(load):
    chain = latency.make_chain(8192)
    latency.walk(chain, load, warm=3, hops=64, n=2)
    chain.words[chain.order[3]] = chain.order[1]

    with pytest.raises(WrongAnswer, match="walk: place after 131 hops"):
        latency.walk(chain, load, warm=3, hops=64, n=2)


@pytest.mark.parametrize("level", bandwidth.LEVELS)
def test_bandwidth_is_read_and_checked(level):
    found = bandwidth.rates(level, 3)

    assert len(found.bytes_per_clock) == len(found.gb_per_s) == len(found.sm_mhz) == 3
    if level == "l2":
        assert min(found.bytes_per_clock) > 200  # of the whole card
    else:
        assert min(found.bytes_per_clock) > 30
        assert max(found.bytes_per_clock) < 130  # no card hands out more than 128 bytes in a cycle
    assert 300 < min(found.sm_mhz) <= max(found.sm_mhz) < 4000
    # Of the same launch: bytes in a clock, times clocks in a second, times multiprocessors where it is of one.
    count = 1 if level == "l2" else torch.cuda.get_device_properties(0).multi_processor_count
    for each_clock, gb_per_s, mhz in zip(found.bytes_per_clock, found.gb_per_s, found.sm_mhz, strict=True):
        assert each_clock * count * mhz / 1e3 == pytest.approx(gb_per_s, rel=0.1)


def test_the_clock_of_a_launch_is_the_one_that_the_driver_tells():
    found = bandwidth.rates("shared", 5)

    assert median(found.sm_mhz) == pytest.approx(snapshot()["sm_mhz"], rel=0.1)


@pytest.mark.parametrize("footprint", [2**20, 2**24, 2**27, 2**30, 2**32])
def test_no_size_is_read_faster_than_the_card_can(footprint):
    """The gate of every record, at the sizes around and far past the L2 cache."""
    found = bandwidth.rates("l2", 5, footprint_bytes=footprint)
    of, mhz = bandwidth.limited_by(footprint), median(found.sm_mhz)
    machine = machine_for(torch.cuda.get_device_name()) or pytest.skip("no data sheet")

    for leaf in (
        samples(found.bytes_per_clock, "B/clk", of=of, sm_mhz=mhz),
        samples(found.gb_per_s, "GB/s", of=of, sm_mhz=mhz),
    ):
        check(f"{footprint} bytes", leaf, machine)


def test_more_blocks_than_fit_are_refused_before_they_wait_for_ever():
    with pytest.raises(ValueError, match=r"grid: at most \d+ blocks of 512 threads fit on this card at once"):
        bandwidth.rates("l2", 1, blocks=64)


def test_a_wrong_sum_is_refused(monkeypatch):
    real = bandwidth.expected_total
    monkeypatch.setattr(bandwidth, "expected_total", lambda *args: real(*args) + 1)
    with pytest.raises(WrongAnswer, match="bandwidth of l1: sum of all words read"):
        bandwidth.rates("l1", 1)


def test_every_thread_says_where_it_is():
    found = coordinates.coordinates((4, 3, 2), (8, 4, 2))
    one_sm = found.sm.reshape(24, 64)

    assert (one_sm == one_sm[:, :1]).all()  # a block stays on one multiprocessor
    count = torch.cuda.get_device_properties(0).multi_processor_count
    wide = coordinates.coordinates(count, 1024)
    assert count / 2 < len(set(wide.sm.tolist())) <= count  # they spread over the card
