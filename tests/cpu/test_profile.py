"""`nox -s profile`: its rules on readings of records and on made-up ones, what it takes, and what it prints."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch

from course_judge.protocol.processes import is_running
from course_kernels.cuda.compile import compile_cubin
from course_kernels.measure.machine import machine_for
from course_kernels.measure.record_types import Counted
from course_kernels.measure.roofline import bound
from course_kernels.problem import Workload
from course_labs.interactive_cases import needs_numpy
from course_labs.lab import find_lab, find_labs, has_given_kernels
from course_profile import __main__ as command
from course_profile import measurement as r
from course_profile import run, thresholds, worker
from course_profile.diagnosis import RULES, WAITS, diagnose
from course_profile.drawing import roofline
from course_profile.errors import Unusable
from course_profile.format import as_json, table
from course_profile.formula import value
from course_profile.measurement import Reading
from course_profile.occupancy import occupancy, resources
from course_profile.report import HEADINGS, QUESTIONS, Forecast, report
from course_profile.run import counted, looked, unknown_metrics, with_counters
from course_profile.subject import Subject, take
from course_site.pages.headings import headings
from course_site.pages.page import read_page
from course_site.records.record import Record

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "profile"
H200 = machine_for("NVIDIA H200")
LABS = find_labs(ROOT)


# --- readings of real runs ------------------------------------------------------------------------


def recorded(page):
    """Every counted call of a page's record, by its name there."""
    names = Record.load(ROOT / "records/nvidia-h200/docs/lectures" / f"{page}.ipynb").names

    def walk(found, path):
        if found.get("kind") == "counted":
            yield ".".join(path), Counted.from_json(found)
        elif "kind" not in found:
            for name, inside in found.items():
                yield from walk(inside, (*path, name))

    return dict(walk(names, ()))


def reading_of(call):
    """What a record says of a call, as the rules read it."""
    folder = call.kernel.split("/")[0]
    problem = __import__(f"course_kernels.{folder}.problem", fromlist=["PROBLEM"]).PROBLEM
    w = Workload.from_json(call.workload)
    cost = SimpleNamespace(
        reads_bytes=problem.reads_bytes(w),
        writes_bytes=problem.writes_bytes(w),
        flops=problem.flops(w),
        math=problem.math(w),
    )
    longest = max(call.kernels, key=lambda kernel: kernel["read_bytes"] + kernel["write_bytes"])
    return Reading(
        kernel=longest["name"],
        counters={name: told["value"] for name, told in longest["metrics"].items()},
        read_bytes=call.read_bytes,
        write_bytes=call.write_bytes,
        bound=bound(cost, H200),
        least_read_bytes=cost.reads_bytes,
        least_write_bytes=cost.writes_bytes,
        flops=cost.flops,
        sms=132,
    )


# What a kernel of the course was built to show; in all others that were counted the rules must find nothing.
SHOWN = {
    "l3_memory": {
        "counted.stride.s8": "uncoalesced",
        "counted.stride.s16": "uncoalesced",
        "counted.stride.s32": "uncoalesced",
        "counted.turn.naive": "uncoalesced",
        "counted.turn.tiled": "bank conflicts",
    },
    "l4_the_gemm_ladder": {
        "counted.naive": "uncoalesced",
        "counted.naive_1000": "uncoalesced",
        "counted.naive_1023": "uncoalesced",
        "counted.naive_1024": "uncoalesced",
        "counted.coalesced": "no reuse",
    },
    "l5_the_top_of_the_ladder": {
        "counted.register_tile": "bank conflicts",
        "counted.vectorised": "bank conflicts",  # the next rung is called conflict_free
    },
    "l6_tensor_cores": {},  # few reasons for waiting were counted there, so no rule about waits is asked
}


@pytest.mark.parametrize("page", SHOWN)
def test_the_rules_name_what_the_records_show_and_nothing_else(page):
    calls = recorded(page)

    actual = {name: diagnose(reading_of(call)).name for name, call in calls.items()}

    assert len(actual) >= 7
    assert {name: found for name, found in actual.items() if found} == SHOWN[page]


def test_an_addition_to_one_address_takes_what_the_record_says():
    names = Record.load(ROOT / "records/nvidia-h200/docs/lectures/l3_memory.ipynb").names
    tree = names["sums"]["tree"]
    additions = tree["workload"]["dims"]["N"] / 256  # one for each block

    assert 1e3 * tree["quantiles_us"]["0.5"] / additions == pytest.approx(thresholds.ADDITION_NS, rel=0.05)


def test_occupancy_is_what_was_counted():
    calls = recorded("l4_the_gemm_ladder")
    for name, threads in (("register_tile", 256), ("naive", 1024)):
        counters = reading_of(calls[f"counted.{name}"]).counters
        shared = int(counters["launch__shared_mem_per_block_static"])

        places = occupancy("sm_90a", threads, int(counters[r.REGISTERS]), shared)

        assert 100 * places.share == pytest.approx(counters[r.WARPS], abs=3)


# By hand: 64 warps, 32 blocks, 65536 registers in steps of 256 a warp, 228 KiB of which each block costs one more.
@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks", "limiter"),
    [
        (1024, 32, 0, 2, "registers and warps"),
        (1024, 33, 0, 1, "registers"),
        (256, 40, 0, 6, "registers"),
        (33, 16, 0, 32, "warps and blocks"),
        (32, 16, 0, 32, "blocks"),
        (32, 168, 0, 12, "registers"),  # 5376 a warp: three in a part, twelve in all
        (128, 16, 48 * 1024, 4, "shared memory"),
        (128, 16, 45 * 1024 - 512, 5, "shared memory"),
        (96, 255, 0, 2, "registers"),  # two warps of 8192 in each of four parts
    ],
)
def test_occupancy_by_hand(threads, registers, shared, blocks, limiter):
    places = occupancy("sm_90a", threads, registers, shared)

    assert (places.blocks, places.limiter) == (blocks, limiter)
    assert places.share == blocks * -(-threads // 32) / 64
    assert occupancy("sm_35", threads, registers, shared) is None


# --- made-up readings: no card has told these -----------------------------------------------------

CALM = {
    r.TIME: 1e6,
    r.SM_BUSY: 30,
    r.MEMORY_BUSY: 50,
    r.DRAM_BUSY: 50,
    r.ISSUE: 40,
    r.WARPS: 90,
    r.SMS_BUSY: 98,
    r.LANES: 32,
    r.LOAD_REQUESTS: 1e6,
    r.LOAD_SECTORS: 4e6,
    r.STORE_REQUESTS: 1e6,
    r.STORE_SECTORS: 4e6,
    r.LOAD_USED: 32,
    r.STORE_USED: 32,
    r.CONFLICTS: 0,
    r.TURNS: 0,
    r.LOCAL_LOADS: 0,
    r.LOCAL_STORES: 0,
    r.REDUCED: 0,
    r.REDUCED_IN_ONE: 0,
    r.ATOMICS: 0,
    r.ATOMICS_IN_ONE: 0,
    r.GRID: 1e5,
    r.WAVES: 50,
    **{r.STALL.format(reason): 1 for reason in r.REASONS},
}


def made_up(more=(), **attributes):
    """A kernel at which nothing is obvious, but for what is said."""
    known = {
        "time_us": 1000.0,
        "host_us": 10.0,
        "kernels_us": 1000.0,
        "of_peak": 0.5,
        "bound": "memory",
        "least_read_bytes": 128_000_000,
        "least_write_bytes": 128_000_000,
        "read_bytes": 128e6,
        "write_bytes": 128e6,
        "flops": 10**6,
        "sms": 132,
    }
    return Reading(counters=CALM | dict(more), **(known | attributes))


def waiting(reason, share, **more):
    """One reason has this share of all waiting."""
    others = (1 - share) / (len(r.REASONS) - 1)
    return {r.STALL.format(one): share if one == reason else others for one in r.REASONS} | more


TURNS = 132 * 1e-3 * 1.98e9  # one in each cycle of every multiprocessor, for a millisecond

# Just past a threshold, and just short of it; numbers, and no constants, so that a constant that moves is noticed.
EDGES = {
    "launch-bound": ({"host_us": 810.0}, {"host_us": 790.0}),
    "uncoalesced": (
        {"more": {r.LOAD_SECTORS: 16.5e6, r.LOAD_USED: 8}},
        {"more": {r.LOAD_SECTORS: 15.5e6, r.LOAD_USED: 17}},
    ),
    "bank conflicts": (
        {"more": {r.TURNS: 0.4 * TURNS, r.CONFLICTS: 0.17 * TURNS}},
        {"more": {r.TURNS: 0.4 * TURNS, r.CONFLICTS: 0.15 * TURNS}},
    ),
    "spills": ({"more": {r.LOCAL_LOADS: 9e5}}, {"more": {r.LOCAL_LOADS: 7e5}}),
    "divergence": ({"more": {r.LANES: 19.5}}, {"more": {r.LANES: 20.5}}),
    "atomics": (
        {"more": {r.REDUCED: 2e5, r.REDUCED_IN_ONE: 1.7e5}},
        {"more": {r.REDUCED: 2e5, r.REDUCED_IN_ONE: 1.5e5}},
    ),
    "tail wave": (
        {"more": {r.SMS_BUSY: 84, r.WAVES: 1.01}},
        {"more": {r.SMS_BUSY: 86, r.WAVES: 1.01}},
    ),
    "few blocks": (
        {"more": {r.SMS_BUSY: 84, r.GRID: 200, r.WAVES: 0.76}},
        {"more": {r.SMS_BUSY: 86, r.GRID: 200, r.WAVES: 0.76}},
    ),
    "too many bytes": ({"read_bytes": 260e6}, {"read_bytes": 250e6}),
    "bytes in flight": (
        {"more": waiting("long_scoreboard", 0.51) | {r.DRAM_BUSY: 69}},
        {"more": waiting("long_scoreboard", 0.51) | {r.DRAM_BUSY: 71}},
    ),
    "no reuse": (
        {"more": waiting("long_scoreboard", 0.51), "bound": "compute"},
        {"more": waiting("long_scoreboard", 0.49), "bound": "compute"},
    ),
    "cache traffic": (
        {"more": {r.MEMORY_BUSY: 81, r.DRAM_BUSY: 69}},
        {"more": {r.MEMORY_BUSY: 79, r.DRAM_BUSY: 69}},
    ),
    "barriers": ({"more": waiting("barrier", 0.51)}, {"more": waiting("barrier", 0.49)}),
    "memory queue": ({"more": waiting("lg_throttle", 0.51)}, {"more": waiting("lg_throttle", 0.49)}),
    "shared memory": (
        {"more": waiting("mio_throttle", 0.51)},
        {"more": waiting("mio_throttle", 0.51) | {r.ISSUE: 61}},
    ),
    "arithmetic": (
        {"more": waiting("math_pipe_throttle", 0.51)},
        {"more": waiting("math_pipe_throttle", 0.51) | {r.SM_BUSY: 81}, "bound": "compute"},
    ),
    "one chain": ({"more": waiting("wait", 0.51)}, {"more": waiting("wait", 0.49)}),
}


def names_at_the_edges():
    return {
        rule: [diagnose(made_up(**edge)).name for edge in edges] for rule, edges in EDGES.items()
    }  # fmt: skip


AT_THE_EDGES = {rule: [rule, ""] for rule in EDGES}


def test_every_rule_has_its_edge():
    assert set(EDGES) == {rule.name for rule in RULES}


def test_a_rule_speaks_past_its_threshold_and_not_before():
    assert diagnose(made_up()).name == ""
    assert names_at_the_edges() == AT_THE_EDGES


# What each cause costs at most, of the time, just past its threshold; by hand.
SHARES = {
    "launch-bound": 0.0,  # the card is busy all the time
    "uncoalesced": 0.75 * 16.5 / 20.5,
    "bank conflicts": 0.17,
    "spills": 0.9 / 8.9,
    "divergence": 0.4 * 12.5 / 32,
    "atomics": 0.323,
    **dict.fromkeys(("tail wave", "few blocks"), 0.16),
    "too many bytes": 0.5 * 132 / 388,
    "cache traffic": 0.12,
    **dict.fromkeys(("bytes in flight", "no reuse", "barriers", "memory queue", "shared memory"), 0.6 * 0.51),
    **dict.fromkeys(("arithmetic", "one chain"), 0.6 * 0.51),
}


def test_what_a_cause_costs_is_worked_out():
    found = {rule: diagnose(made_up(**edge)).findings[0].evidence.share for rule, (edge, _) in EDGES.items()}

    assert found == pytest.approx(SHARES)


# Three loads of 12 bytes apart: each request leaves two thirds lying, for the next two.
LEFT_LYING = {r.LOAD_SECTORS: 12e6, r.LOAD_USED: 10.7, r.TO_L2: 4e6}


# Further edges, of constants that the pairs above leave alone.
def names_elsewhere():
    cases = {
        # Few sectors, and all of them used: sixteen bytes for each lane.
        "wide": made_up({r.LOAD_SECTORS: 16e6, r.LOAD_USED: 32}),
        "some unused": made_up({r.LOAD_SECTORS: 8.1e6, r.LOAD_USED: 15}),
        "only copies": made_up({r.LOAD_SECTORS: 8.1e6, r.LOAD_USED: 0}),
        "few sectors": made_up({r.LOAD_SECTORS: 7.9e6, r.LOAD_USED: 15}),
        "little of it": made_up(
            {r.LOAD_REQUESTS: 1e5, r.LOAD_SECTORS: 3.2e6, r.LOAD_USED: 4}, least_read_bytes=10**9
        ),
        "hidden": made_up({r.LOAD_SECTORS: 8.2e6, r.LOAD_USED: 16}, least_read_bytes=422_000_000),
        "in sight": made_up({r.LOAD_SECTORS: 8.2e6, r.LOAD_USED: 16}, least_read_bytes=372_000_000),
        "too many": made_up({r.LOAD_SECTORS: 24e6, r.LOAD_USED: 32}),
        "L1 catches it": made_up(LEFT_LYING | {r.FROM_L2: 5.9e6}),
        "past L1 too": made_up(LEFT_LYING | {r.FROM_L2: 6.1e6}),
        "L1 is full of it": made_up(LEFT_LYING | {r.FROM_L2: 4e6, r.MEMORY_BUSY: 81, r.DRAM_BUSY: 69}),
        "memory is": made_up(LEFT_LYING | {r.FROM_L2: 4e6, r.MEMORY_BUSY: 81, r.DRAM_BUSY: 71}),
        "rare turns": made_up({r.TURNS: 0.24 * TURNS, r.CONFLICTS: 0.2 * TURNS}),
        "turns": made_up({r.TURNS: 0.26 * TURNS, r.CONFLICTS: 0.2 * TURNS}),
        "sleeping": made_up({r.LANES: 4, r.ISSUE: 24}),
        "at work": made_up({r.LANES: 4, r.ISSUE: 26}),
        "spread": made_up({r.REDUCED: 1e6, r.REDUCED_IN_ONE: 2.9e5}),
        "in one": made_up({r.REDUCED: 1e6, r.REDUCED_IN_ONE: 3.1e5}),
        "idle": made_up({r.REDUCED: 6e3, r.REDUCED_IN_ONE: 5e3, r.DRAM_BUSY: 29, r.SM_BUSY: 5}),
        "not idle": made_up({r.REDUCED: 6e3, r.REDUCED_IN_ONE: 5e3, r.DRAM_BUSY: 31, r.SM_BUSY: 5}),
        "a short line": made_up({r.REDUCED: 6e3, r.REDUCED_IN_ONE: 4.8e3, r.DRAM_BUSY: 29, r.SM_BUSY: 5}),
        "full waves": made_up({r.SMS_BUSY: 70, r.WAVES: 1.75}),
        "half a wave": made_up({r.SMS_BUSY: 70, r.WAVES: 1.73}),
        "one wave": made_up({r.SMS_BUSY: 70, r.WAVES: 1.0, r.GRID: 132}),
        "all at once": made_up({r.SMS_BUSY: 70, r.WAVES: 0.99, r.GRID: 132}),
        "few blocks": made_up({r.SMS_BUSY: 70, r.WAVES: 1.0, r.GRID: 131}),
        "tensor cores first": made_up({r.MEMORY_BUSY: 85, r.TENSOR: 90}),
        "double": made_up({r.SM_BUSY: 81, r.DRAM_BUSY: 69}),
        "a full L1": made_up({r.SM_BUSY: 85, r.MEMORY_BUSY: 86}),
        "at both roofs": made_up({r.SM_BUSY: 81, r.DRAM_BUSY: 71}),
        "resting": made_up({r.DRAM_BUSY: 49}, read_bytes=300e6),
        "between": made_up(launches=64, kernels_us=490.0),
        "busy": made_up(launches=64, kernels_us=510.0),
    }
    return {name: diagnose(reading).name for name, reading in cases.items()}


ELSEWHERE = {
    "wide": "",
    "some unused": "uncoalesced",
    "only copies": "",
    "few sectors": "",
    "little of it": "",
    "hidden": "",
    "in sight": "uncoalesced",
    "too many": "uncoalesced",
    "L1 catches it": "",
    "past L1 too": "uncoalesced",
    "L1 is full of it": "uncoalesced",
    "memory is": "",
    "rare turns": "",
    "turns": "bank conflicts",
    "sleeping": "",
    "at work": "divergence",
    "spread": "",
    "in one": "atomics",
    "idle": "atomics",
    "not idle": "",
    "a short line": "",
    "full waves": "",
    "half a wave": "tail wave",
    "one wave": "",
    "all at once": "few blocks",
    "few blocks": "few blocks",
    "tensor cores first": "",
    "double": "arithmetic",
    "a full L1": "cache traffic",
    "at both roofs": "",
    "resting": "",
    "between": "launch-bound",
    "busy": "",
}


def test_a_rule_asks_whether_it_matters():
    assert names_elsewhere() == ELSEWHERE


CONSTANTS = sorted(
    name
    for name, number in vars(thresholds).items()
    if name.isupper() and isinstance(number, float) and name not in ("NEAR_PEAK", "SM_HZ")
)


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("factor", [0.6, 1.6])
def test_a_wrong_threshold_is_noticed(name, factor, monkeypatch):
    monkeypatch.setattr(thresholds, name, getattr(thresholds, name) * factor)

    assert (names_at_the_edges(), names_elsewhere()) != (AT_THE_EDGES, ELSEWHERE)


def test_near_its_peak_nothing_is_obvious_whatever_the_counters_say():
    ugly = {r.LOAD_SECTORS: 32e6, r.LOAD_USED: 4, r.LANES: 3, r.LOCAL_LOADS: 1e8}

    assert diagnose(made_up(ugly, of_peak=0.92)).said == "nothing obvious: it reaches 92.0% of peak"
    assert len(diagnose(made_up(ugly, of_peak=0.89)).findings) == 3


def test_a_hint_is_promised_only_where_there_is_one():
    near, far = made_up(of_peak=0.92), made_up({r.LANES: 3})

    assert table(profile_of(near), diagnose(near)).endswith("\nnothing obvious: it reaches 92.0% of peak")
    assert table(profile_of(far), diagnose(far)).endswith("\nwhat to try, and why: --hint")


def test_a_card_that_waits_for_the_host_waits_for_nothing_else():
    found = diagnose(made_up({r.SMS_BUSY: 5, r.GRID: 4, r.WAVES: 0.01}, host_us=990.0))

    assert [finding.rule.name for finding in found.findings] == ["launch-bound", "few blocks"]


def hinted(reading):
    """What the command prints of a reading, with the hints."""
    return table(profile_of(reading), diagnose(reading), hint=True)


def test_fewer_blocks_than_multiprocessors_are_no_tail_and_are_counted():
    text = hinted(made_up({r.SMS_BUSY: 24, r.GRID: 32, r.WAVES: 0.03}))

    assert "bottleneck: few blocks: the launch is less than one wave" in text
    assert (
        "  fewer blocks than multiprocessors: 100 of 132 have none, and an SM has work for 24% of the" in text
    )
    assert "  next: more blocks, each with less to do" in text
    assert "tail" not in text
    # Where nobody knows how many there are, only the waves are said.
    unknown = hinted(made_up({r.SMS_BUSY: 24, r.GRID: 32, r.WAVES: 0.03}, sms=None))
    assert "  32 blocks are 0.03 of a wave, and an SM has work for 24% of the time" in unknown


def test_a_full_unit_behind_a_queue_is_no_wait_for_arithmetic():
    text = hinted(made_up(waiting("mio_throttle", 0.7) | {r.SM_BUSY: 90, r.ISSUE: 65}))

    assert "bottleneck: arithmetic" in text
    assert "where the floor is set by memory; 70% of all waiting is mio_throttle\n" in text
    assert f"  must move: {r.SM_BUSY}\n" in text
    assert "math_pipe_throttle" not in text


def test_a_counter_of_a_stall_must_move_only_if_that_stall_is_the_largest():
    named = set()
    for reason in r.REASONS:
        for share in (0.3, 0.52, 0.8):
            for more in ({}, {r.SM_BUSY: 90}, {r.MEMORY_BUSY: 90}, {r.DRAM_BUSY: 85}, {r.ISSUE: 70}):
                for bound_by in ("memory", "compute"):
                    reading = made_up(waiting(reason, share) | more, bound=bound_by)
                    for finding in diagnose(reading).findings:
                        moves = [one for one in r.REASONS if r.STALL.format(one) == finding.counter]
                        said = [one for one in r.REASONS if one in finding.evidence.line.split()]
                        assert set(moves + said) <= {reason}, (reason, share, more, finding)
                        if said:
                            assert f"{share:.0%} of all waiting is {reason}" in finding.evidence.line
                        named |= set(moves)
    assert {"mio_throttle", "short_scoreboard", "math_pipe_throttle", "barrier", "wait"} <= named
    # Not counted, no stall is said.
    few = {name: told for name, told in CALM.items() if name not in map(r.STALL.format, r.REASONS)}
    alone = diagnose(dataclasses.replace(made_up(), counters=few | {r.SM_BUSY: 90})).findings[0]
    assert (alone.rule.name, alone.counter) == ("arithmetic", r.SM_BUSY)
    assert "waiting" not in alone.evidence.line


def test_a_full_unit_is_no_wait_and_is_said():
    found = diagnose(made_up(waiting("barrier", 0.9) | {r.DRAM_BUSY: 85}))

    assert found.name == ""
    assert found.said == "nothing obvious: device memory is 85 % busy, which is the roof it is under"


def test_the_largest_cause_comes_first():
    both = {r.LANES: 16, r.ISSUE: 60, r.LOAD_SECTORS: 32e6, r.LOAD_USED: 4}

    found = diagnose(made_up(both))

    assert [finding.rule.name for finding in found.findings] == ["uncoalesced", "divergence"]


def test_a_rule_without_its_counter_is_not_asked_and_says_what_it_lacks():
    some = {name: told for name, told in CALM.items() if name not in (r.LANES, r.LOCAL_LOADS)}

    found = diagnose(dataclasses.replace(made_up(), counters=some))

    assert {rule.name: lacks for rule, lacks in found.silent} == {
        "divergence": r.LANES,
        "spills": r.LOCAL_LOADS,
    }
    assert found.said.endswith("of those that could be asked")
    assert diagnose(Reading()).said == "no rule could be asked: nothing was counted"


def test_what_limits_the_blocks_is_named():
    limits = dict(zip(r.LIMITS.values(), (4, 2, 8, 32), strict=True))

    assert made_up(limits).occupancy_limit == ("shared memory", 2)
    assert made_up(limits | {r.LIMITS["warps"]: 2}).occupancy_limit == ("shared memory and warps", 2)
    found = profile_of(made_up(limits | {r.WARPS: 24.0}))
    wanted = "24 % of the places for warps taken; 2 blocks on a multiprocessor, by shared memory"
    assert wanted in table(found, diagnose(found.reading))


def test_a_reading_comes_back_as_it_was():
    reading = made_up()

    assert Reading.from_json(json.loads(json.dumps(reading.as_json()))) == reading
    with pytest.raises(ValueError, match="no 'colour'"):
        Reading.from_json({"colour": 1})


# --- every rule leads somewhere ---------------------------------------------------------------------


def test_every_rule_has_its_page_its_source_and_its_counter():
    sources = tomllib.loads((ROOT / "docs/bibliography.toml").read_text(encoding="utf-8"))
    for rule in RULES:
        page, _, anchor = rule.page.partition("#")
        assert anchor in headings(read_page(ROOT / page, ROOT)), rule.page
        assert not rule.source or rule.source in sources, rule.source
        assert rule.counter in (*r.METRICS, "host_us", "dram__bytes_read.sum"), rule.counter


def test_no_two_rules_have_one_name():
    assert len({rule.name for rule in RULES}) == len(RULES)


# --- what is taken ----------------------------------------------------------------------------------


def test_a_planted_kernel_says_what_it_is():
    subject = take(str(PLANTED / "uncoalesced.cu"))

    assert (subject.function, subject.problem) == ("bias_gelu", "bias_gelu")
    assert subject.size == "dtype=float32,M=8192,N=8192"


def test_a_kernel_of_the_library_is_known_by_its_folder():
    subject = take(str(ROOT / "src/course_kernels/transpose/k01_naive.cu"))

    assert subject.file.name == "k01_naive.py"
    assert subject.problem == subject.function == "transpose"


def test_a_students_file_is_known_by_its_lab(tmp_path):
    for name in ("labs", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    mine = tmp_path / "my_labs" / "transpose.cu"
    mine.parent.mkdir()
    mine.write_text((ROOT / "labs/transpose/cuda/stage4.cu").read_text())

    subject = take(str(mine), root=tmp_path)

    assert subject.problem == "transpose"
    assert subject.size == "dtype=float32,M=16384,N=16384"
    assert Path(subject.launcher).name == "launch.py"


def handed_in(folder, lab, door, stage=1):
    """A file of a door as a student has it, in a folder of the labs."""
    for name in ("labs", "src"):
        (folder / name).symlink_to(ROOT / name)
    lab = find_lab(ROOT, lab)
    mine = folder / "my_labs" / lab.student_file(door)
    mine.parent.mkdir()
    mine.write_text(lab.snapshot(door, stage).read_text(encoding="utf-8"), encoding="utf-8")
    return mine


NO_KERNEL = "{}: no kernel in it: it runs on the processor, in {}; "


@pytest.mark.parametrize("name", [name for name, lab in LABS.items() if set(lab.doors) & {"numpy", "python"}])
def test_a_file_of_a_door_without_kernels_is_said_to_have_none(name, tmp_path):
    lab = LABS[name]
    for door in {"numpy", "python"} & set(lab.doors):
        mine = handed_in(tmp_path, name, door)
        if has_given_kernels(lab):  # its door is Python's, and its file holds kernels in Triton
            assert take(f"{mine}:fixed_sum", "reduction", root=tmp_path).problem == "reduction"
            continue
        with pytest.raises(Unusable) as said:
            take(str(mine), root=tmp_path)
        road = "NumPy" if door == "numpy" or needs_numpy(lab) else "Python"
        kernels = [one for one in lab.doors if one in ("triton", "cuda")]
        begin = (
            f"begin one with nox -s lab -- {name} --door {kernels[0]}"
            if kernels
            else "this lab asks for none"
        )
        assert str(said.value).startswith(NO_KERNEL.format(mine.name, road)), said.value
        assert str(said.value).endswith(begin)


def test_a_file_of_ones_own_in_numpy_has_none_and_one_in_torch_is_run(here, tmp_path, capsys):
    own = "import numpy as np\ndef vector_add(x, y):\n    return np.add(x, y)\n"
    mine = write(tmp_path, "mine.py", own)

    assert command.main([str(mine)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == NO_KERNEL.format("mine.py", "NumPy") + "write one in Triton or CUDA C++\n"
    # What it takes from others it may launch, and tensors add without an import.
    for text in (
        own.replace("numpy as np", "numpy as np, torch"),
        own.replace("numpy as np", "numpy as np, mine_too"),
    ):
        assert take(str(write(tmp_path, "mine.py", text))).function == "vector_add"
    write(tmp_path, "mine.py", "def vector_add(x, y):\n    return x + y\n")
    assert command.main([str(mine)]) == 0
    assert "without a card" in capsys.readouterr().out


KERNEL = 'extern "C" __global__ void saxpy(const float *x, float *y, int N) {}\n'
BAD = {
    "gone": ("", "", "mine.py", "there is no file"),
    "text": ("hello", "", "mine.txt", "expected FILE[:function]"),
    "slip": ("def f(:\n", "", "mine.py", "line 1:"),
    "other function": ("def f(x): return x\n", "", "mine.py:g", "defines no g; it has f"),
    "nobody says": ("def f(x): return x\n", "", "mine.py", "nobody says what it computes"),
    "no problem": (
        "def f(x): return x\n",
        '["mine.py"]\nproblem = "baking"',
        "mine.py:f",
        "no problem 'baking'",
    ),
    "several": (
        "def f(x): return x\ndef g(x): return x\n",
        '["mine.py"]\nproblem = "copy"',
        "mine.py",
        "which one? Say mine.py:NAME; it has f, g",
    ),
    "no TOML": ("def f(x): return x\n", "[", "mine.py", "cannot be read"),
    "unknown key": ("def f(x): return x\n", '["mine.py"]\nspeed = 1', "mine.py", "unknown key speed"),
    "wrong kind": ("def f(x): return x\n", '["mine.py"]\nproblem = 1', "mine.py", "is not a text"),
    "half a problem": (KERNEL, '["mine.cu"]\nreference = "t.py:f"', "mine.cu", "needs inputs too"),
    "no launch": (KERNEL, '["mine.cu"]\nproblem = "copy"', "mine.cu", "nobody says how it is launched"),
    "no kernel": (
        "// nothing\n",
        '["mine.cu"]\nproblem = "copy"\ngrid = [1]\nblock = [1]\noutputs = [[1]]',
        "mine.cu",
        "no kernel in it",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(case, tmp_path, monkeypatch, capsys):
    text, toml, asked, wanted = BAD[case]
    name = asked.partition(":")[0]
    if text:
        (tmp_path / name).write_text(text)
    if toml:
        (tmp_path / "profile.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)

    code = command.main([asked])

    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert wanted in said.err
    assert said.err.count("\n") == 1


def test_a_formula_is_worked_out_and_nothing_else_is():
    assert value("ceil(N / 256) * 2 + M // 3 - 1", {"N": 257, "M": 9}, "grid") == 6
    for text in ("N / 2", "open('x')", "N ** 9", "max(N, 1)", "1.5", "N if N else 1", "N // 0"):
        with pytest.raises(Unusable, match="is no formula"):
            value(text, {"N": 4}, "grid")
    with pytest.raises(Unusable, match="has no size K; there are N"):
        value("K", {"N": 4}, "grid")


# --- what is run, in this process -------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch):
    """The process that runs a file is this one: it takes seconds to load torch again."""

    def run_here(arguments, environment, limit_s):
        at = arguments.index("course_profile.worker")
        worker.main(arguments[at + 1], *map(Path, arguments[at + 2 : at + 4]))
        return ""

    monkeypatch.setattr(run, "_said_by", run_here)


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_without_a_card_the_answer_is_checked_and_the_rest_is_said_to_be_missing(here, capsys):
    code = command.main([str(PLANTED / "launch_bound.py")])

    said = capsys.readouterr().out
    assert code == 0
    assert "right on N1-float32, N1000-float32, without a card" in said
    assert "missing" in said
    assert run.NO_GPU in said
    assert "no rule could be asked" in said


def test_recorded_counters_are_taken_where_no_card_is(here, tmp_path, capsys):
    file = PLANTED / "launch_bound.py"
    told = as_json(profile_of(made_up(host_us=990.0)), diagnose(made_up()))
    told |= {"function": "vector_add", "workload": Workload.of("float32", N=262144).as_json()}
    kept = write(tmp_path, "kept.json", json.dumps(told))

    assert command.main([str(file), "--counted", str(kept)]) == 0
    said = capsys.readouterr().out
    assert "bottleneck: launch-bound" in said
    assert "time and counters are recorded ones, of NVIDIA H200" in said
    for text, wanted in (
        ("{", "no reading in it"),
        ("[]", "no reading in it"),
        (json.dumps(told | {"function": "copy"}), "the reading is of copy on N262144-float32"),
    ):
        kept.write_text(text)
        assert command.main([str(file), "--counted", str(kept)]) == 2
        assert wanted in capsys.readouterr().err
    assert command.main([str(file), "--counted", str(tmp_path / "gone.json")]) == 2
    assert capsys.readouterr().err.endswith("gone.json: No such file or directory\n")


def test_what_a_process_started_is_gone_when_its_time_is_up(tmp_path):
    seen = tmp_path / "seen"
    with pytest.raises(subprocess.TimeoutExpired):
        run._said_by(["bash", "-c", f"sleep 60 & echo $! > {seen}; wait"], dict(os.environ), 1.0)

    until = time.monotonic() + 10
    while is_running(int(seen.read_text())) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_running(int(seen.read_text()))


def test_a_wrong_answer_is_refused(here, tmp_path, capsys):
    mine = write(tmp_path, "mine.py", "def vector_add(x, y):\n    return x - y\n")

    code = command.main([str(mine)])

    assert code == 1
    assert "wrong: " in capsys.readouterr().err


def test_a_file_that_ends_itself_is_told_in_a_line(here, tmp_path, capsys):
    mine = write(tmp_path, "mine.py", "import sys\nsys.exit(3)\ndef vector_add(x, y): return x\n")

    assert command.main([str(mine)]) == 2
    assert capsys.readouterr().err == "mine.py: line 2: the file ended the process itself: exit(3)\n"


def test_a_kernel_that_needs_a_card_is_no_wrong_one(here, tmp_path, capsys):
    mine = write(tmp_path, "mine.py", "def vector_add(x, y):\n    return x.cuda() + y.cuda()\n")

    assert command.main([str(mine)]) == 0
    assert "not judged, needs a card: line 2 asks for a card" in capsys.readouterr().out


def test_a_problem_of_ones_own_stands_in_the_table(tmp_path):
    write(tmp_path, "truth.py", "def scaled(x):\n    return 2 * x.double()\n")
    mine = write(
        tmp_path,
        "mine.cu",
        'extern "C" __global__ void scale(const float *x, float *y, int N) {\n'
        "  const int i = blockIdx.x * 128 + threadIdx.x;\n  if (i < N) y[i] = 2 * x[i];\n}\n",
    )
    write(
        tmp_path,
        "profile.toml",
        '["mine.cu"]\nreference = "truth.py:scaled"\nsize = "dtype=float32,N=1000"\ninputs = [["N"]]\n'
        'outputs = [["N"]]\nmax_error = 0.0\nflops = "N"\ngrid = ["ceil(N / 128)"]\nblock = [128]\n',
    )

    told = worker.look(take(str(mine)), {"gpu": False})

    assert told["launch"] == [[8, 1, 1], [128, 1, 1], 0]
    assert (told["reads_bytes"], told["writes_bytes"], told["flops"]) == (4000, 4000, 1000)
    if "resources" in told:
        profile = looked(take(str(mine)), told)
        assert profile.places.limiter == "warps"
        assert profile.places.blocks == 16


def test_a_compilers_complaint_is_a_refusal(here, tmp_path, capsys):
    mine = write(tmp_path, "mine.cu", KERNEL.replace("{}", "{ y[0] = z; }"))
    write(
        tmp_path,
        "profile.toml",
        '["mine.cu"]\nproblem = "copy"\ngrid = [1]\nblock = [32]\noutputs = [["N"]]',
    )

    code = command.main([str(mine)])

    said = capsys.readouterr()
    assert code == 1 or "not compiled" in said.out
    assert code == 0 or 'mine.cu does not compile: line 1: identifier "z" is undefined' in said.err


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("const float *x, float *y, float *z", "takes 3 addresses, and there are 2 tensors"),
        ("const float *x, float *y, int M", "nothing is called M; there are N"),
    ],
)
def test_a_launch_that_does_not_fit_the_kernel_is_one_line(given, wanted, here, tmp_path, capsys):
    mine = write(tmp_path, "mine.cu", KERNEL.replace("const float *x, float *y, int N", given))
    write(
        tmp_path,
        "profile.toml",
        '["mine.cu"]\nproblem = "copy"\ngrid = [1]\nblock = [32]\noutputs = [["N"]]',
    )

    assert command.main([str(mine)]) == 2
    assert wanted in capsys.readouterr().err


def test_nox_hands_on_the_exit_code_and_says_nothing_more():
    done = subprocess.run(
        [sys.executable, "-m", "nox", "--no-venv", "-s", "profile", "--", "nothing.cu"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"there is no file nothing.cu; you are in {ROOT}"


def test_a_size_that_the_problem_does_not_have_is_one_line(here, capsys):
    assert command.main([str(PLANTED / "launch_bound.py"), "--size", "dtype=float32,M=3"]) == 2
    assert capsys.readouterr().err == "size 'dtype=float32,M=3': vector_add has N\n"


# --- ncu ------------------------------------------------------------------------------------------------

SUBJECT = Subject(Path("mine.py"), "copy", "copy")
# A made-up `ncu`: it does not know one counter, cannot tell another, and writes the answer in the worker's place.
NCU = """#!{python}
import json, sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
if "{unknown}" in metrics:
    print("==ERROR== Failed to find metric {unknown}")
    sys.exit(1)
open(sys.argv[-1], "w").write(json.dumps({{"each": [{{"done": True}}]}}))
print("==PROF== Connected")
print(",".join(f'"{{name}}"' for name in ["ID", "Kernel Name", *metrics]))
print(",".join('""' if name in ("ID", "Kernel Name") else '"ns"' if "duration" in name else '"byte"'
               for name in ["ID", "Kernel Name", *metrics]))
for number, (kernel, ns) in enumerate([("course_job_begins", 1), ("short", 2000), ("long", 5000)]):
    values = ["n/a" if "{mute}" == name else str(ns) for name in metrics]
    print(",".join(f'"{{cell}}"' for cell in [number, kernel, *values]))
"""


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    program = tmp_path / "ncu"
    program.write_text(NCU.format(python=sys.executable, unknown=r.LANES, mute=r.WAVES))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


TOLD = {
    "workload": Workload.of("float32", N=1000).as_json(),
    "reads_bytes": 4000,
    "writes_bytes": 4000,
    "flops": 0,
    "math": "fp32",
    "formula": "y = x",
    "gpu": "NVIDIA H200",
    "sms": 132,
}


def without_counters():
    return looked(SUBJECT, TOLD)


def test_a_measured_time_has_its_share_of_the_floor():
    names = Record.load(ROOT / "records/nvidia-h200/docs/lectures/l3_memory.ipynb").names
    leaf = names["copy"]["ours"]
    cost = {key: leaf[key] for key in ("reads_bytes", "writes_bytes", "flops", "math")}
    told = {"workload": leaf["workload"], "formula": "y = x", "gpu": "NVIDIA H200", "sms": 132} | cost

    found = looked(SUBJECT, told | {"measurement": leaf, "host_us": 5.0})

    assert found.reading.time_us == leaf["quantiles_us"]["0.5"]
    assert found.reading.host_us == 5.0
    assert found.reading.of_peak == pytest.approx(0.86, abs=0.02)
    assert found.reading.bound == "memory"
    assert found.missing == ()
    assert found.checked.startswith("right: a scaled error of 0.0e+00")
    # A card without a data sheet has no floor, and says so.
    other = looked(SUBJECT, told | {"measurement": leaf, "gpu": "NVIDIA GeForce GTX 1080"})
    assert (other.reading.floor_us, other.reading.of_peak) == (None, None)
    assert other.missing[0].startswith("no data sheet of NVIDIA GeForce GTX 1080")


def test_no_number_is_no_counter():
    launch = SimpleNamespace(name="k", metrics={r.LANES: (float("nan"), ""), r.TIME: (2e-6, "s")})

    found = with_counters(without_counters(), [launch])

    assert found.reading.counters == {r.TIME: 2000.0}
    assert found.reading.counted_bytes is None
    assert json.dumps(as_json(found, diagnose(found.reading)), allow_nan=False)


def test_a_counter_that_ncu_does_not_know_is_left_out_and_named(ncu):
    (launches,), missing = counted([SUBJECT])
    found = with_counters(without_counters(), launches, missing)

    assert missing == (r.LANES,)
    assert [launch.name for launch in launches] == ["short", "long"]
    assert found.reading.kernel == "long"
    assert found.reading.launches == 2
    assert found.reading.kernels_us == 7.0
    assert found.reading.counted_bytes == 14000
    assert set(found.reading.missing) == {r.LANES, r.WAVES}
    assert f"not counted on this card: {r.LANES} and 1 more" in found.missing[-1]


def test_what_fails_under_the_profiler_alone_leaves_the_time(monkeypatch):
    def ask(verb, *rest):
        if verb == "call":
            raise Unusable("mine.py: OutOfMemoryError: no room")
        return {"each": [TOLD]}

    monkeypatch.setattr(run, "_ask", ask)
    monkeypatch.setattr(run.shutil, "which", lambda name: name)

    found = run.profile(SUBJECT, gpu=True)

    assert found.missing == ("mine.py: OutOfMemoryError: no room",)
    assert found.reading.least_bytes == 8000


def test_without_ncu_it_is_said_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(run.CountersUnavailable) as said:
        counted([SUBJECT])
    assert str(said.value) == run.NO_NCU


def test_what_ncu_complains_of_is_read():
    lines = f"==PROF== {r.TURNS}\n==WARNING== metric '{r.LANES}' not found.\n==ERROR== something else"

    assert unknown_metrics(lines, r.METRICS) == [r.LANES]


# --- what is printed ---------------------------------------------------------------------------------


def profile_of(reading):
    return dataclasses.replace(
        without_counters(), reading=reading, gpu="NVIDIA H200", checked="right", spread=0.01
    )


def test_the_table_names_the_cause_and_hides_the_way_out():
    found = profile_of(made_up(EDGES["uncoalesced"][0]["more"], floor_us=500.0))
    diagnosis = diagnose(found.reading)
    rule = diagnosis.findings[0].rule

    short, long = table(found, diagnosis), table(found, diagnosis, hint=True)

    for wanted in (
        "1000.0 µs",
        "50.0% of peak",
        "2.00 of it",
        "256.00 MB counted",
        "10.0 µs for a call",
        "bottleneck: uncoalesced",
    ):
        assert wanted in short
    for hidden in (rule.next, rule.page, rule.threshold):
        assert hidden not in short
        assert hidden in long


def test_the_json_holds_the_reading_and_the_reasons():
    found = profile_of(made_up(EDGES["spills"][0]["more"]))

    told = json.loads(json.dumps(as_json(found, diagnose(found.reading))))

    assert told["bottleneck"] == "spills"
    assert Reading.from_json(told["reading"]) == found.reading
    assert told["findings"][0]["page"].startswith("docs/lectures/")


def test_the_report_asks_first_and_has_the_five_headings(here, tmp_path, monkeypatch, capsys):
    mine = write(tmp_path, "mine.py", (PLANTED / "launch_bound.py").read_text())
    asked = []
    look = worker.VERBS["look"]
    monkeypatch.setitem(worker.VERBS, "look", lambda *given: asked.append("run") or look(*given))
    answers = iter(["the host", "3145728", "262144", "bytes", "1"])
    monkeypatch.setattr("builtins.input", lambda: asked.append("asked") or next(answers))

    code = command.main([str(mine), "--report"])

    text = (tmp_path / "mine_report.md").read_text(encoding="utf-8")
    assert code == 0
    assert asked == ["asked"] * len(QUESTIONS) + ["run"]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(HEADINGS)
    assert "I believe it waits for the host." in text
    assert "Bytes that must move, each once: 3145728" in text
    assert "the report: " in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []
    # What was written into it is not lost.
    assert command.main([str(mine), "--report"]) == 2
    assert "mine_report.md is there already" in capsys.readouterr().err


def test_what_must_move_stands_in_no_report_without_the_hint():
    forecast = Forecast(dict.fromkeys(QUESTIONS, "ours"))
    for name, (edge, _) in EDGES.items():
        found = profile_of(made_up(**edge))
        diagnosis = diagnose(found.reading)
        rule, counter = diagnosis.findings[0].rule, diagnosis.findings[0].counter

        short, long = (report(found, diagnosis, forecast, hint) for hint in (False, True))

        assert f"- The bottleneck: {name}: " in short
        assert "- One counter that must move: …" in short.splitlines()
        for hidden in (rule.counter, counter, rule.next, rule.threshold, rule.page):
            assert hidden not in short, (name, hidden)
        assert f"- One counter that must move: {counter}" in long.splitlines()


@pytest.mark.parametrize("asked", [[], ["--hint"]])
def test_the_commands_report_takes_the_hint_along(asked, here, tmp_path, monkeypatch, capsys):
    mine = write(tmp_path, "mine.py", (PLANTED / "launch_bound.py").read_text())
    told = as_json(profile_of(made_up(host_us=990.0)), diagnose(made_up()))
    told |= {"function": "vector_add", "workload": Workload.of("float32", N=262144).as_json()}
    kept = write(tmp_path, "kept.json", json.dumps(told))
    monkeypatch.setattr("builtins.input", lambda: "ours")

    code = command.main(
        [str(mine), "--size", "dtype=float32,N=262144", "--counted", str(kept), "--report", *asked]
    )

    assert code == 0, capsys.readouterr().err
    lines = (tmp_path / "mine_report.md").read_text(encoding="utf-8").splitlines()
    assert "- The bottleneck: launch-bound: a call costs the host 990.0 µs, and takes 1000.0 µs" in lines
    assert f"- One counter that must move: {'host_us' if asked else '…'}" in lines


def test_the_headings_are_those_of_the_sheet():
    sheet = tomllib.loads((ROOT / "handbook/handouts/l7.toml").read_text(encoding="utf-8"))["sheet"][0]

    assert [part["title"] for part in sheet["part"] if "title" in part] == list(HEADINGS)


def test_without_a_forecast_there_is_no_report(tmp_path, monkeypatch, capsys):
    mine = write(tmp_path, "mine.py", (PLANTED / "launch_bound.py").read_text())

    def nobody():
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)

    assert command.main([str(mine), "--report"]) == 2
    assert "no forecast, no report" in capsys.readouterr().err
    assert not (tmp_path / "mine_report.md").exists()


@pytest.mark.parametrize("of_peak", [None, 0.5])
def test_the_roofline_is_an_svg_that_stands_alone(of_peak):
    drawn = roofline(profile_of(made_up(of_peak=of_peak)))

    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "href" not in drawn
    assert ("not measured" in drawn) == (of_peak is None)
    assert "prefers-color-scheme" in drawn


def test_a_half_written_file_never_has_the_name(here, tmp_path, monkeypatch, capsys):
    path = write(tmp_path, "x.svg", "the old one")

    def full(source, target, *, rename=os.replace):
        if target == path:
            raise OSError(28, "No space left on device", str(path))
        rename(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert command.main([str(PLANTED / "launch_bound.py"), "--svg", str(path)]) == 2
    assert capsys.readouterr().err == f"{path}: No space left on device\n"
    assert [p.name for p in tmp_path.iterdir()] == ["x.svg"]
    assert path.read_text() == "the old one"


def test_waits_come_after_faults():
    both = waiting("barrier", 0.9) | {r.LOCAL_LOADS: 1e7}

    assert [f.rule.name for f in diagnose(made_up(both)).findings] == ["spills"]
    assert {rule.name for rule in WAITS} > {"barriers", "bytes in flight"}


TWO_KERNELS = """
extern "C" __global__ void turned(float *x, int n) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[n - threadIdx.x];
}
extern "C" __global__ void doubled(float *x) { x[threadIdx.x] *= 2.0f; }
"""


def test_a_cubin_says_what_the_compiler_gave_each_kernel(tmp_path):
    cubin = compile_cubin(write(tmp_path, "two.cu", TWO_KERNELS), "sm_90a")

    turned, doubled = resources(cubin, "turned"), resources(cubin, "doubled")

    assert (turned.shared_bytes, doubled.shared_bytes) == (1024, 0)
    assert 0 < doubled.registers <= turned.registers < 256
    assert resources(cubin, "none") is None


def test_a_cubin_that_is_none_says_nothing():
    assert resources(b"", "kernel") is None
    assert torch is not None
