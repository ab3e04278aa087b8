"""The two timelines that a reader steps through: what the stamps say, asked another way."""

from __future__ import annotations

import random
import re
from functools import cache
from types import SimpleNamespace

import pytest
import torch

from course_kernels.gemm import stamped
from course_site.charts import explorables
from course_site.charts.explorables import timelines
from course_site.site.render.explorable import _recorded
from course_site.values.values import Scope


def ticks_of(which, seed, steps=6):
    """Made-up ticks of one block, in the order in which a kernel notes them."""
    draw = random.Random(seed)
    ticks = torch.zeros(1, 3, steps + 1, 4, dtype=torch.int64)
    for group in range(2 if which is stamped.WIDE else 3):
        at = 10_000 + draw.randrange(80)
        for step in range(steps + 1):
            for note in range(4 if which is stamped.WIDE else 3):
                ticks[0, group, step, note] = at
                at += draw.randrange(1, 90)
    return ticks


@cache
def data(seed=0):
    """Two traces as the page records them."""
    both = {"wide": stamped.WIDE, "roles": stamped.ROLES}
    return {
        name: {"value": stamped.intervals(ticks_of(which, seed), which, 0, 1, 4)}
        for name, which in both.items()
    }


def shown(tick, of="both", seed=0):
    return timelines.work({"of": of, "tick": tick}, data(seed))


def test_what_is_counted_is_what_the_stamps_count():
    kinds = stamped.WAITS, stamped.MULTIPLIES, stamped.MEETS, stamped.ASKS
    assert kinds == (timelines.WAITS, timelines.MULTIPLIES, timelines.MEETS, timelines.ASKS)


@pytest.mark.parametrize("seed", range(3))
def test_at_every_cycle_it_says_what_the_trace_has_there(seed):
    traces, said = data(seed), {"w": "tile", "r": "tile"}
    for tick in range(0, int(timelines.last(traces)) + 1, 7):
        texts = shown(tick, seed=seed).texts
        for name, (trace, number, _) in timelines.LANES.items():
            rows = zip(*traces[trace]["value"].values(), strict=True)
            own = [row for row in rows if row[0] == number]
            at = [row for row in own if row[2] <= tick < row[3]]
            if at:
                waits = "place" if name == "r0" else said[name[0]]
                words = [waits, "multiplies", "meets", "asks"][int(at[0][1])]
                assert texts[name] == ["words", words]
                assert texts[f"{name}_since"] == explorables.digits(at[0][2])
            else:
                ended = [row[3] for row in own if row[3] <= tick]
                where = (
                    "earlier" if not ended else "between" if tick < max(row[2] for row in own) else "later"
                )
                assert texts[name] == ["words", where]
                since = explorables.digits(max(ended)) if ended else ["words", "began"]
                assert texts[f"{name}_since"] == since


def test_who_ends_a_wait():
    seen = set()
    for seed in range(3):
        (rows,) = [list(zip(*data(seed)["wide"]["value"].values(), strict=True))]
        for tick in range(0, int(timelines.last(data(seed))), 3):
            texts = shown(tick, seed=seed).texts
            for name in timelines.LANES:
                does, ends = texts[name][1], texts[f"{name}_end"][1]
                if does == "tile":
                    assert ends == "by_copy"
                elif does == "place":
                    assert ends == "by_consumers"
                elif does != "meets":
                    assert ends == "by_nobody"
                else:
                    mine, other = (0.0, 1.0) if name == "w0" else (1.0, 0.0)
                    (end,) = [r[3] for r in rows if r[:2] == (mine, 2.0) and r[2] <= tick < r[3]]
                    beside = min((r for r in rows if r[:2] == (other, 2.0)), key=lambda r: abs(r[3] - end))
                    assert ends == ("by_other" if beside[2] > tick else "by_both")
                seen.add(ends)
    assert seen == {"by_copy", "by_consumers", "by_nobody", "by_other", "by_both"}


def test_events_are_where_something_begins_or_ends_and_only_of_the_chosen_kernel():
    traces = data()
    for of, names in (("wide", ("wide",)), ("roles", ("roles",)), ("both", ("wide", "roles"))):
        edges = {t for n in names for key in ("from_cycles", "to_cycles") for t in traces[n]["value"][key]}
        assert timelines.events(of, traces) == sorted(edges)
        for tick in (200, int(sorted(edges)[5])):
            now = shown(tick, of)
            assert now.texts["events"] == str(len(edges))
            assert now.texts["event"] == str(sum(edge <= tick for edge in edges))
            assert now.says == ("at", *names)


def test_a_cursor_past_the_end_stands_at_the_end():
    end = int(timelines.last(data()))
    assert shown(8192) == shown(end)
    assert shown(0).most == {"tick": end}


def test_the_frames_lie_on_what_is_drawn():
    traces, now = data(), shown(150)
    _, drawn = timelines.draw(traces, now.marks)
    boxes = set(re.findall(r'<path class="span \w+" d="([^"]+)"', drawn))
    frames = [now.marks[name]["d"] for name in timelines.LANES if now.marks[name]["d"]]
    assert frames
    assert set(frames) <= boxes


def test_a_recorded_trace_is_handed_over_with_its_columns():
    columns = {"lane": [0.0], "does": [1.0], "from_cycles": [0.0], "to_cycles": [7.0]}
    names = {"lanes": {"wide": {"kind": "trace", "columns": columns}}}
    writer = SimpleNamespace(scope=Scope("p", names, None))
    assert _recorded(writer, "lanes.wide") == {"value": columns, "html": "lanes.wide"}
