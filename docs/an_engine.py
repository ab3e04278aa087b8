# ---
# id: engine
# title: "An engine"
# section: Make the model fast
# order: 125
# description: A small server that you can read. The coach and the bus race over one queue, a pencil finds the bound first, and we check whether its tokens are the plain model's and what a reply costs in joules.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # An engine
#
# By the end of this page you can
#
# - follow a request through a server: queue, prompt, pages, steps, the last token;
# - work out, from lengths alone and before anybody runs anything, by how much a bus beats a coach;
# - read three numbers of a server, *throughput*, *time to first token*, *time per token*, and say which of them a change improves and which it worsens;
# - say how far one of its steps is from its byte floor, and where to look for the rest;
# - say what a reply of a thousand tokens costs, in joules and in money, and why.
#
# This page follows [the workshop on serving](workshops/w4_serving.py): its pages, rows and fused kernels all come together here.

# %% [markdown]
# ## Five files
#
# A **server** takes texts from many people, and has one model continue all of them at once. Ours is the folder `src/course_models/serving/`. You can read it in an evening, in this order.
#
# 1. `block_manager.py` knows who holds which [page](workshops/w4_serving.py#reserved-or-a-page-at-a-time) of the cache. It holds
#    only numbers, no tensors.
# 2. `request.py` knows what somebody asked for, and how much of the answer is written.
# 3. `scheduler.py` decides what runs in the next step. It is the shift leader.
# 4. `paged.py` is the model over a cache in pages.
# 5. `engine.py` is the loop: plan a step, compute it, choose a token for everybody who is due one, and send it out.
#
# A sixth file, `graphs.py`, replays small steps; [the race](#the-race) explains how.
#
# A **step** is one pass through the model. It has room for a fixed number of tokens. Requests that are already writing come first,
# with one token each. The room that is left goes to prompts, in pieces, so that nobody misses a step while a long prompt is read: *chunked
# prefill*. If pages run out, the request that came last gives all of its pages back and waits, to be computed again later: *pre-emption*.
#
# /// source | src/course_models/serving/scheduler.py
# fold: The shift leader, whole
# ///
#
# One layer of such a step reads like the plain one in [one token](one_token.py#prefill-and-decode), except in two places: keys
# and values go into pages, and the requests with a single token each are answered together, while a longer piece of a prompt is
# answered by itself.
#
# /// source | src/course_models/serving/paged.py#layer
# title: one layer over pages, in src/course_models/serving/paged.py
# ///
#
# /// exercise | What is in a step? | 3 minutes
# Three requests are writing. A fourth arrives with a prompt of 600 tokens, and a step has room for 512. How many rows do the
# multiplies of a layer see in this step, and how many in the next?
# /// answer
# 3 + 509 = 512 rows, of which 509 are the beginning of the prompt. Then 3 + 91 = 94, and after that step the fourth request has its
# first token. None of the three missed a step.
# ///

# %% [markdown]
# ## Coach and bus, with a pencil
#
# You have laid out the slips of paper in [the workshop on serving](workshops/w4_serving.py#the-coach-and-the-bus). A *coach* drives until its last
# passenger is done, and only then does the next batch get on. A *bus* lets people on and off at every stop. In the
# server this is a single switch: `continuous=True` or `False`. Nothing else differs below.
#
# The two race over a queue that was fixed before any clock ran: {{ queue.count:.0f}} requests, all there from the first moment,
# and {{ queue.seats:.0f}} seats. The lengths are drawn by a formula with a seed. Most answers are short, a few are long.
#
# Both write the same number of tokens. So take a pencil, and leave out the prompts: how many steps does each need? A batch of the
# coach takes as many steps as its longest answer has tokens. The bus gives the first free seat to the next in the queue.
#
# /// predict | How many times as many steps as the bus does the coach need?
# - [least.coach / least.bus < 1.5] Less than one and a half times
# - [1.5 <= least.coach / least.bus < 2.5] About twice
# - [2.5 <= least.coach / least.bus < 5] Three or four times
# - [least.coach / least.bus >= 5] More than that
# /// reveal
# {{ least.coach / least.bus:.2f}} times: {{ least.coach:,.0f}} steps for the coach, {{ least.bus:,.0f}} for the bus.
#
# /// table
# columns: ["{{ queue.count:.0f}} requests", value]
# rows:
#   - [tokens of all prompts, "{{ queue.prompts:,.0f}}"]
#   - [tokens of all answers, "{{ queue.tokens:,.0f}}"]
#   - [the longest answer, "{{ queue.most:,.0f}}"]
#   - [the median, "{{ queue.middle:,.0f}}"]
#   - ["answers, divided evenly among the seats: no server can manage with fewer steps", "{{ queue.tokens / queue.seats:,.0f}}"]
# ///
# ///
#
# If every step took equally long, the ratio of the two step counts would be the gain. Take that ratio as a
# **bound** on what scheduling alone can gain: on average a step of the bus is no cheaper than one of the coach, because
# it has more rows in it, and now and then a prompt.

# %%
import statistics

from course_kernels.measure import quantity, record
from course_models.serving.graphs import ROWS
from course_models.serving.workload import LONGEST, least_steps, queue

SEATS = 16
ROOM = 1024  # tokens of a step: the prompts of a whole batch, so that no coach leaves with an empty seat
arrivals = queue()
answers = [one.answer for one in arrivals]
record(
    queue={
        "count": quantity(len(arrivals)),
        "seats": quantity(SEATS),
        "prompts": quantity(sum(one.prompt for one in arrivals)),
        "tokens": quantity(sum(answers)),
        "most": quantity(max(answers)),
        "middle": quantity(statistics.median(answers)),
        "room": quantity(ROOM),
        "rows": quantity(max(ROWS)),
        "together": quantity(
            max(
                sum(one.prompt for one in arrivals[i : i + SEATS])
                for i in range(0, len(arrivals), SEATS)
            )
        ),
    },
    least={
        "coach": quantity(least_steps(answers, SEATS, continuous=False)),
        "bus": quantity(least_steps(answers, SEATS, continuous=True)),
        "coach_32": quantity(least_steps(answers, 32, continuous=False)),
        "bus_32": quantity(least_steps(answers, 32, continuous=True)),
    },
)

# %% [markdown]
# ## The race
#
# The model has [the 8B shape](one_token.py#what-it-weighs), with random weights, since only speed matters here. It uses kernels
# that you know: attention over pages, RMSNorm and SwiGLU, each in one kernel. Multiplies, rotations and additions are PyTorch's.
# So this is the plain step with three parts swapped, not the step with [five kernels per
# layer](one_token.py#five-kernels-a-layer), which cannot handle pages. [The floor of a step](#the-floor-of-a-step) shows what
# that costs.
#
# Steps of up to {{ queue.rows:.0f}} tokens are replayed from [CUDA
# graphs](lectures/l2_the_cuda_model.py#many-orders-written-once-graphs), one graph for each of a few row counts. A step
# with a prompt in it has a different shape every time, and a graph has a fixed shape. The way out is to forget which
# request a token belongs to. Every token becomes a row of its own: a prompt of five tokens is five rows with the same
# block table, and with the lengths 1, 2, 3, 4 and 5. A layer writes all keys and values before any row looks, so each
# row finds those that come before it. Then the number of rows is rounded up to that of the next graph; the extra rows belong
# to nobody. Only larger steps run without a graph, kernel by kernel.
#
# A step has room for {{ queue.room:,.0f}} tokens. The prompts of a batch have {{ queue.together:,.0f}} tokens at most,
# so every coach reads all of them in its first step and leaves with all its seats taken. With less room some coaches
# would leave with empty seats, and the race would not be fair.
#
# /// predict | The pencil says that the coach needs {{ least.coach / least.bus:.1f}} times as many steps. How many times the coach's throughput will the bus reach by the clock?
# - [gain_last < 1.3] Hardly more than once
# - [1.3 <= gain_last < 2] About one and a half times
# - [gain_last >= 2] Twice, or more
# /// reveal
# {{ gain_last:.1f}} times, in the last of three runs.
#
# /// table
# columns: ["", "coach, static", "bus, continuous"]
# rows:
#   - ["throughput, tokens/s", "{{ rate.coach:,.0f}}", "{{ rate.bus:,.0f}}"]
#   - ["the whole queue, s", "{{ spent.coach.prompt + spent.coach.decode:.1f}}", "{{ spent.bus.prompt + spent.bus.decode:.1f}}"]
#   - ["steps by the pencil", "{{ least.coach:,.0f}}", "{{ least.bus:,.0f}}"]
#   - ["steps", "{{ steps.coach:,.0f}}", "{{ steps.bus:,.0f}}"]
#   - ["a decode-only step, ms", "{{ took.coach.decode:.1f}}", "{{ took.bus.decode:.1f}}"]
#   - ["a step with a prompt in it, ms", "{{ took.coach.prompt:.1f}}", "{{ took.bus.prompt:.1f}}"]
#   - ["steps with a prompt in it", "{{ prompts.coach:.0f}}", "{{ prompts.bus:.0f}}"]
#   - ["time to first token, the median, s", "{{ first.coach:.2f}}", "{{ first.bus:.2f}}"]
#   - ["time by which nine in ten have their first token, s", "{{ late.first.coach:.2f}}", "{{ late.first.bus:.2f}}"]
#   - ["time per token, the median, ms", "{{ each.coach:.1f}}", "{{ each.bus:.1f}}"]
# caption: "The same engine, model, kernels and queue, by the host's clock, in the last of three runs of each. From the shortest to the longest, the runs of the bus are {{ apart.bus:.1%}} apart, and the runs of the coach {{ apart.coach:.1%}}. All requests were there from the first moment, so the time to first token includes the wait in the queue."
# ///
#
# /// claim | gain_last >= 2
# At least twice the throughput: the bus writes {{ rate.bus:,.0f}} tokens/s and the coach {{ rate.coach:,.0f}}, and no kernel has changed. The bound worked out with a pencil is {{ least.coach / least.bus:.2f}} times, and the last run comes close to it: {{ gain_last:.2f}} times.
# /// otherwise
# {{ rate.bus:,.0f}} tokens/s for the bus, {{ rate.coach:,.0f}} for the coach: {{ gain_last:.2f}} times. The bound worked out with a pencil is {{ least.coach / least.bus:.2f}} times.
# ///
#
# How far can you trust that number? The middle run of the coach takes {{ seconds.coach:.1f}} s and its last one
# {{ spent.coach.prompt + spent.coach.decode:.1f}} s; for the bus it is {{ seconds.bus:.2f}} s and {{ spent.bus.prompt + spent.bus.decode:.2f}} s.
# The ratio of the middle runs is {{ gain:.2f}}. But look at the caption: from the shortest to the longest run of the coach it is
# {{ apart.coach:.0%}}. So a single run could have misled you by as much: trust the ranking and not the digits. All that follows
# is from the last run.
#
# What stands between the clock and the bound of {{ least.coach / least.bus:.2f}}? Two things are worth a look. A decode-only
# step takes {{ took.bus.decode:.1f}} ms on the bus, which has more people in it, and {{ took.coach.decode:.1f}} ms on the
# coach. And the prompts: on the bus, {{ prompts.bus:.0f}} of {{ steps.bus:,.0f}} steps carry one. A typical step with a prompt
# has {{ rows.bus:.0f}} rows and takes {{ took.bus.prompt:.1f}} ms. All of them together take
# {{ spent.bus.prompt - prompts.bus * took.bus.decode / 1000:.1f}} s more than the same number of decode-only steps. For the
# coach's {{ prompts.coach:.0f}} steps with a prompt that sum is {{ spent.coach.prompt - prompts.coach * took.coach.decode / 1000:.1f}} s.
# Another run will have other numbers here: they are the host's as well as the card's.
#
# How long would such a step take without graphs? This page does not time that. The nearest case is a step of the coach with all
# prompts of a batch, too large for a graph: {{ took.coach.prompt:.0f}} ms. It has {{ rows.coach:.0f}} rows, and its kernels are
# launched one by one; the attention kernels are launched separately for each prompt.
# ///
#
# /// define | gain = seconds.coach / seconds.bus
# unit: ×
# what: throughput of continuous over that of static batching, 8B shape, the same queue, the middle of three runs of each
# ///
#
# /// define | gain_last = (spent.coach.prompt + spent.coach.decode) / (spent.bus.prompt + spent.bus.decode)
# unit: ×
# what: time of all steps of static over that of continuous batching, 8B shape, the same queue, the last run of each
# ///
#
# /// define | rate.bus = queue.tokens / (spent.bus.prompt + spent.bus.decode)
# unit: tokens/s
# what: tokens of all answers over the time of all steps, continuous batching, the last run
# ///
#
# /// define | rate.coach = queue.tokens / (spent.coach.prompt + spent.coach.decode)
# unit: tokens/s
# what: tokens of all answers over the time of all steps, static batching, the last run
# ///
#
# ### The floor of a step
#
# A step must read every weight once, however many people are in it. [One token](one_token.py#what-it-weighs) added up
# their bytes; divide the sum by the data sheet's bandwidth, and you have the floor of a step. (The caches come on
# top of that. In this queue they are small: about 1900 tokens in an average step of the bus, a quarter of a GB.)
#
# /// define | step_floor_ms = 1000 * one_token.weights.gb / gpu.gb_per_s
# unit: ms
# what: least time of a step, by the bytes of its weights alone, at the bandwidth of the data sheet, 8B shape
# ///
#
# /// predict | A decode-only step of the bus takes {{ took.bus.decode:.1f}} ms, by the host's clock. What share of that time is its floor?
# - [step_floor_ms / took.bus.decode < 0.25] Less than a quarter
# - [0.25 <= step_floor_ms / took.bus.decode < 0.65] Something between a quarter and two thirds
# - [step_floor_ms / took.bus.decode >= 0.65] Two thirds, or more
# /// reveal
# {{ step_floor_ms / took.bus.decode:.0%}}: {{ one_token.weights.gb:.2f}} GB at {{ gpu.gb_per_s:,.0f}} GB/s take {{ step_floor_ms:.2f}}
# ms. At the speed of a copy, the yardstick of [one token](one_token.py#the-floor-of-a-step-by-hand), the weights alone need {{ 1000 * one_token.weights.gb / one_token.copy.gb_per_s:.2f}}
# ms, and the share is {{ 1000 * one_token.weights.gb / one_token.copy.gb_per_s / took.bus.decode:.0%}}.
#
# And why not more?
#
# Part of the gap comes from a choice that you have met before. With one row, a step in which only the attention kernel is ours reaches
# {{ one_token.decode.our_attention.of_peak:.0%}} of the data sheet's bandwidth. The step with five kernels per layer reaches {{ one_token.decode.our_step.of_peak:.0%}}. A step of
# the first kind runs many small kernels between its multiplies, and so does the engine's step. For comparison,
# [W4](workshops/w4_serving.py#a-step-against-its-floor) runs a step with five kernels per layer, with {{ w4.bus.rows:.0f}} rows and {{ w4.bus.held:.0f}}
# tokens in the cache of each, more work than a step of the engine has, in {{ w4.full.our_step.ms / w4.full.our_step.T:.1f}} ms.
#
# Part of the rest is the host's time: its clock runs from the plan of a step to the token in Python, and the card waits while the next step is planned and its tables are copied. This run cannot say how much of the {{ took.bus.decode:.1f}} ms that is: it has only one clock, the host's.
# ///
#
# ### Who sat where, and when
#
# /// chart | lanes
# title: Six of the sixteen seats, static and continuous
# x_label: seconds
# groups:
#   - {label: "the coach: static", trace: lanes.coach, lanes: ["seat 1", "seat 2", "seat 3", "seat 4", "seat 5", "seat 6"]}
#   - {label: "the bus: continuous", trace: lanes.bus, lanes: ["seat 1", "seat 2", "seat 3", "seat 4", "seat 5", "seat 6"]}
# kinds:
#   - {label: "an answer, from its first token to its last", look: full}
#   - {label: "the next one in that seat", look: striped}
# alt: "Twelve lanes of time. Above, the coach: in every batch some seats write briefly and are then empty until the longest answer of the batch is done; for the whole queue the coach needs all of the time that is drawn. Below, the bus: as long as somebody waits, one answer follows another in every seat; then the seats empty one by one. The bus is done long before the coach."
# caption: Where a lane is white, nobody writes in that seat. Each answer is put into the lowest seat that is free when it begins.
# ///
#
# ### Three numbers, and who needs them
#
# *Throughput* matters if you pay for the card. *Time to first token* matters if you wait for an answer to begin. *Time per token*
# matters if you read along. A change that helps one of these numbers may hurt the others.
#
# /// claim | 0.6 * each.coach < each.bus < 1.7 * each.coach and first.coach > 2.5 * first.bus
# Here it hardly does. On the bus a token takes {{ each.bus:.1f}} ms, on the coach {{ each.coach:.1f}} ms, although a step
# of the bus has more people in it, and now and then somebody's prompt. The coach's passengers waited far longer to get on:
# {{ first.coach:.1f}} s, the median, against {{ first.bus:.1f}} s.
# /// otherwise
# Here a token takes {{ each.bus:.1f}} ms on the bus and {{ each.coach:.1f}} ms on the coach; the first token comes after {{ first.bus:.2f}} s on the bus and {{ first.coach:.2f}} s on the coach.
# ///

# %% tags=["fold"]
import dataclasses
import heapq
import time

import numpy as np
from course_kernels.measure import Sampler
from course_kernels.measure import trace as columns
from course_kernels.paged_attention.k02_split import paged_attention
from course_kernels.rms_norm.k02_one_read import rms_norm
from course_kernels.swiglu.k01_fused import swiglu
from course_models import bench
from course_models.config import LLAMA_8B
from course_models.operators import PLAIN, sdpa_prefill_attention
from course_models.serving import Engine
from course_models.serving.workload import Arrival, play


def over_pages(q, k_pages, v_pages, table, lengths):
    """Our attention for the rows; in a graph prompts are rows, too."""
    return paged_attention(q.contiguous(), k_pages, v_pages, table, lengths)


def our_norm(x, weight, eps):
    """Our RMSNorm, of rows in any number of dimensions; a step may end for nobody."""
    if not x.numel():
        return x
    rows = x.reshape(-1, x.shape[-1])
    return rms_norm(rows, weight, eps=eps).view(x.shape)


def our_door(gate, up):
    """Our SwiGLU, likewise."""
    width = gate.shape[-1]
    return swiglu(gate.reshape(-1, width), up.reshape(-1, width)).view(gate.shape)


OURS = dataclasses.replace(
    PLAIN,
    rms_norm=our_norm,
    swiglu=our_door,
    prefill_attention=sdpa_prefill_attention,
)


class Watched(Engine):
    """An engine that notes how long each step took, and how many rows the steps with a prompt had."""

    def forget(self):
        """Begin to note anew."""
        self.took = {"prompt": [], "decode": []}
        self.rows, self.reads = [], False

    def step(self):
        """As the engine's own; it ends when the tokens are known on the host."""
        began = time.perf_counter()
        written = super().step()
        ms = 1e3 * (time.perf_counter() - began)
        self.took["prompt" if self.reads else "decode"].append(ms)
        return written

    def _logits(self, shares):
        self.reads = any(share.tokens > 1 for share in shares)
        if self.reads:
            self.rows.append(sum(share.tokens for share in shares))
        return super()._logits(shares)


def engine_of(model, continuous):
    """The engine of this page."""
    found = Watched(
        model,
        pages=SEATS * LONGEST // 16,
        step_tokens=ROOM,
        batch=SEATS,
        continuous=continuous,
        attention=over_pages,
        graphs=True,
    )
    found.forget()
    return found


def joules_of(power):
    """Energy of a run: power over time, added up."""
    return float(np.trapezoid(power["power_w"], power["t_s"]))


def seats_of(served, shown=6):
    """For each answer its seat, the lowest that is free when it begins: a lane of time."""
    free, busy = list(range(SEATS)), []
    found = {"lane": [], "does": [], "from_s": [], "to_s": []}
    turn = [0] * SEATS
    for one in sorted(served, key=lambda one: one.times_s[0]):
        begin, end = one.times_s[0], one.times_s[-1]
        while busy and (busy[0][0] <= begin or not free):
            heapq.heappush(free, heapq.heappop(busy)[1])
        seat = heapq.heappop(free)
        heapq.heappush(busy, (end, seat))
        if seat < shown:
            row = (seat, turn[seat] % 2, begin, end)
            for name, value in zip(found, row, strict=True):
                found[name].append(value)
        turn[seat] += 1
    return found


shape = dataclasses.replace(LLAMA_8B, max_tokens=LONGEST)
model = bench.subject(shape).with_operators(OURS)
engines = {"coach": engine_of(model, False), "bus": engine_of(model, True)}
for engine in engines.values():  # whatever is compiled or captured is done now
    for rows in (*ROWS, ROOM - 1):
        play(engine, [Arrival(0.0, rows, 1)], seed=rows)

RUNS = 3
seconds = {name: [] for name in engines}
joules = {name: [] for name in engines}
steps, kept = {}, {}
for run in range(RUNS):
    # Each is the first one once.
    for name in sorted(engines, reverse=run % 2 == 0):
        engine = engines[name]
        engine.forget()
        before = engine.steps
        with Sampler() as sampler:
            kept[name] = play(engine, arrivals, seed=run)
        seconds[name].append(max(one.times_s[-1] for one in kept[name]))
        joules[name].append(joules_of(sampler.columns))
        steps[name] = engine.steps - before


def of_each(read):
    """The same, read off the last run of both."""
    return {name: read(name, kept[name]) for name in engines}


def middle(readings, unit):
    """The median of what the host's clock said."""
    return quantity(statistics.median(readings), unit, "timed")


record(
    seconds={name: middle(s, "s") for name, s in seconds.items()},
    apart={
        name: quantity(max(s) / min(s) - 1, how="timed")
        for name, s in seconds.items()
    },
    joules={
        name: quantity(statistics.median(j), "J", "device")
        for name, j in joules.items()
    },
    worst={  # for the bus
        "coach": quantity(min(joules["coach"]), "J", "device"),
        "bus": quantity(max(joules["bus"]), "J", "device"),
    },
    steps={name: quantity(count, how="counted") for name, count in steps.items()},
    took={
        name: {kind: middle(ms, "ms") for kind, ms in engine.took.items()}
        for name, engine in engines.items()
    },
    spent={
        name: {
            kind: quantity(sum(ms) / 1e3, "s", "timed")
            for kind, ms in engine.took.items()
        }
        for name, engine in engines.items()
    },
    rows={
        name: quantity(statistics.median(engine.rows), how="counted")
        for name, engine in engines.items()
    },
    prompts={
        name: quantity(len(engine.took["prompt"]), how="counted")
        for name, engine in engines.items()
    },
    first=of_each(
        lambda name, served: middle([one.first_s for one in served], "s")
    ),
    late={
        "first": of_each(
            lambda name, served: quantity(
                float(np.quantile([one.first_s for one in served], 0.9)),
                "s",
                "timed",
            )
        )
    },
    each=of_each(
        lambda name, served: middle(
            [1e3 * one.each_s for one in served if len(one.times_s) > 1], "ms"
        )
    ),
    lanes=of_each(lambda name, served: columns(seats_of(served))),
)

# %% [markdown]
# ## Are they the right tokens?
#
# A fast server that writes the wrong tokens is worthless. So a model that does say something, [the small one](a_small_model.py)
# that we trained ourselves, answers {{ same.asked:.0f}} requests through the engine: several at a time, with pages and
# graphs, and with our kernels. Each answer is compared with what the plain model writes for that request alone.
#
# In a shared step, sums may be added in a different order, because of a library or because a larger step takes a different path
# through our engine. Then they are rounded differently. That can change an answer only where the two best
# tokens are almost equally likely; from there on the two texts differ. So we ask for two numbers: how many answers are
# identical down to the last token, and, where an answer is not, how close the call was.
#
# /// claim | same.equal > 0.5 * same.asked and same.gap < 0.5
# {{ same.equal:.0f}} of {{ same.asked:.0f}} answers are identical down to the last token. Over all answers, {{ same.tokens:,.0f}} tokens
# agree before the first one that differs. The widest margin by which the plain model preferred its own token at such a place is {{ same.gap:.3f}}
# (zero if there is no such place); logits between {{ bf16.least:.0f}} and {{ bf16.most:.0f}} are {{ bf16.apart:.3f}} apart in
# bf16.
# /// otherwise
# {{ same.equal:.0f}} of {{ same.asked:.0f}} answers are identical down to the last token. The widest gap at the first different token is
# {{ same.gap:.3f}} (zero if there is none).
# ///

# %%
import random

import torch
from course_models import pretrained
from course_models.byte_tokens import BEGIN, encode
from course_models.serving import Request
from course_models.serving.compare_outputs import agreement

TEXTS = (
    "def main(",
    "A list is",
    "import os",
    "Return the",
    "class ",
    "This module",
)
plain = pretrained.load("small", device="cuda")
rng = random.Random(0)
requests = [
    Request(
        encode(rng.choice(TEXTS) + " " * (i % 3)),
        rng.randint(20, 60),
        stops=frozenset({BEGIN}),
    )
    for i in range(24)
]
small = Engine(
    plain.with_operators(OURS), batch=SEATS, attention=over_pages, graphs=True
)
texts = {small.submit(request): [] for request in requests}
while small.schedule.running or small.schedule.waiting:
    for written in small.step():
        texts[written.number].append(written.token)
held = [
    agreement(plain, request, text)
    for request, text in zip(requests, texts.values(), strict=True)
]
record(
    same={
        "asked": quantity(len(held)),
        "equal": quantity(sum(one.gap is None for one in held), how="counted"),
        "tokens": quantity(sum(one.equal for one in held), how="counted"),
        "gap": quantity(max((one.gap or 0.0) for one in held)),
    },
    bf16={  # 8 bits of significand: 128 numbers from a power of two to the next
        "least": quantity(16),
        "most": quantity(32),
        "apart": quantity(16 * torch.finfo(torch.bfloat16).eps),
    },
)

# %% [markdown]
# ## What a reply costs
#
# The card reports the power that it draws. Add it up over a run, divide by the tokens of all answers, and you have the energy of
# a token: watts times seconds are **joules**.
#
# /// predict | A lamp uses {{ price.lamp:.0f}} joules a second. How long could it burn on the energy of one reply of a thousand tokens from the bus?
# - [reply.bus.lamp < 10] Some seconds
# - [10 <= reply.bus.lamp < 300] About a minute
# - [reply.bus.lamp >= 300] Many minutes
# /// reveal
# In seconds: {{ reply.bus.lamp:.0f}}.
#
# /// table
# columns: ["a thousand tokens", coach, bus]
# rows:
#   - ["energy of one token, J", "{{ token.coach:.2f}}", "{{ token.bus:.2f}}"]
#   - ["energy of the reply, Wh", "{{ reply.coach.wh:.3f}}", "{{ reply.bus.wh:.3f}}"]
#   - ["its electricity, in hundredths of a unit of money", "{{ 100 * reply.coach.power:.4f}}", "{{ 100 * reply.bus.power:.4f}}"]
#   - ["its share of the card's rent, in hundredths", "{{ 100 * reply.coach.rent:.3f}}", "{{ 100 * reply.bus.rent:.3f}}"]
# caption: "For the card alone, without host and cooling; the energy of the prompts is included, spread over the answers. For the coach the table takes the cheapest run and, for the rent, the last one. Prices are assumptions: {{ price.electricity:.2f}} for a kilowatt hour, {{ price.card_hour:.2f}} for an hour of the card, in your own currency. Put in your own."
# ///
# ///
#
# /// claim | token.bus < 0.6 * token.coach and worst.bus < 0.6 * worst.coach
# A token from the bus takes {{ token.bus / token.coach:.2f}} of the energy of one from the coach, and even the bus's
# most expensive run stays under six tenths of the coach's cheapest one. In an average step the coach has {{ queue.tokens / steps.coach:.1f}}
# seats taken, the bus {{ queue.tokens / steps.bus:.1f}}. The weights are fetched in every step, however many people share
# them.
# /// otherwise
# A token from the bus takes {{ token.bus:.2f}} J, one from the coach {{ token.coach:.2f}} J.
# ///
#
# And look at the last two rows. If you rent a card, you pay by the hour. So throughput sets the price, whatever
# the electricity meter says.
#
# /// define | token.bus = joules.bus / queue.tokens
# unit: J
# what: energy of the card over the middle one of three runs of the queue, over the tokens of all answers, continuous batching
# ///
#
# /// define | token.coach = worst.coach / queue.tokens
# unit: J
# what: energy of the card over the cheapest of three runs of the queue, over the tokens of all answers, static batching
# ///
#
# /// define | reply.bus.lamp = thousand * token.bus / price.lamp
# unit: "1"
# what: seconds for which the energy of a thousand tokens would feed a lamp, continuous batching
# ///
#
# /// define | reply.bus.wh = thousand * token.bus / price.hour
# unit: Wh
# what: energy of a thousand tokens, continuous batching
# ///
#
# /// define | reply.coach.wh = thousand * token.coach / price.hour
# unit: Wh
# what: energy of a thousand tokens, static batching
# ///
#
# /// define | reply.bus.power = reply.bus.wh * price.electricity / thousand
# unit: "1"
# what: price of the electricity of a thousand tokens at the assumed price of a kilowatt hour, continuous batching
# ///
#
# /// define | reply.coach.power = reply.coach.wh * price.electricity / thousand
# unit: "1"
# what: price of the electricity of a thousand tokens at the assumed price of a kilowatt hour, static batching
# ///
#
# /// define | reply.bus.rent = price.card_hour * thousand / rate.bus / price.hour
# unit: "1"
# what: rent of the card for a thousand tokens at the assumed price of an hour, continuous batching
# ///
#
# /// define | reply.coach.rent = price.card_hour * thousand / rate.coach / price.hour
# unit: "1"
# what: rent of the card for a thousand tokens at the assumed price of an hour, static batching
# ///

# %%
record(
    thousand=quantity(1000, how="given"),
    price={  # assumptions, for the reader to change
        "electricity": quantity(0.30, how="given"),
        "card_hour": quantity(3.0, how="given"),
        "lamp": quantity(10.0, how="given"),  # joules in a second
        "hour": quantity(3600, how="given"),  # seconds
    },
)

# %% [markdown]
# ## What it does not have
#
# It is small on purpose. A server such as vLLM has what this one lacks:
#
# - several cards, and a model that is split over them;
# - weights of eight or four bits: [their kernels](workshops/w4_serving.py#shorter-weights) are there, but the engine does not use
#   them;
# - a draft model that guesses ahead, and answers of a given form, such as JSON;
# - graphs for large steps, or compiled ones. In the race you saw how long such a step takes without them;
# - kernels for its whole step: [you saw](#the-floor-of-a-step) how far ours is from the floor;
# - a tokenizer for words, an HTTP interface, and years of bug fixes.
#
# What ours does have is this: pages, and shared beginnings of texts; prompts in pieces; requests that give way when pages run out; and answers that change in a shared step only where a sum is rounded differently.
#
# Talk to it. Without a GPU, the engine runs on the CPU. Two texts are served together, and with few pages you see one of them wait.
#
# ```
# nox -s serve-model -- "def main(" "A list is" --pages 24
# ```

# %% [markdown]
# ## Before you go
#
# /// exercise | A queue of your own | 8 minutes
# Four seats. Eight answers of 10, 10, 10, 50, 10, 10, 10 and 50 tokens, in this order, all there from the beginning.
#
# 1. How many steps does the coach need, and how many does the bus need?
# 2. Now somebody sorts the queue so that the two long ones come first. What happens to the two numbers?
# 3. The bus has eight more requests of 10 after these. What is its gain now, and why did it grow?
# /// answer
# 1. The coach: 50 + 50 = 100. The bus: the first three seats are free after 10 steps and take 10, 10 and 10; at 20 one of them
#    takes the 50. So the bus is done after 20 + 50 = 70.
# 2. The coach: 50, 50, 10, 10 in the first batch, then 10 for the second: 50 + 10 = 60. The bus: two seats have the long ones,
#    and the other two share six short ones, so it is done after 50. Sorting helps the coach most, but who knows beforehand how
#    long an answer will be?
# 3. In the first order the eight new requests fit into the three seats beside the last long answer, so the bus needs 70 as before. The coach
#    needs two more batches of 10, so 100 + 20 = 120. The tail of the bus, where one long answer was alone, is now filled: 120 : 70
#    instead of 100 : 70. A bus gains most while somebody is still waiting at the stop.
# ///
#
# /// exercise | Change one thing
# Set `SEATS = 32` in the first cell, and work out the two step counts with `least_steps`, on any machine. Is the bound higher or lower, and which part of the queue decides it?
# /// answer
# The bound falls to {{ least.coach_32 / least.bus_32:.2f}} times. The coach needs fewer batches, and the bus cannot end before
# its longest answer: with more seats the tail is a larger part of the run. A longer queue would raise the bound again.
# ///
#
# **You can now** say what a server does in a step, bound its gain with a pencil, and price a reply. [The ledger](numbers.md) lists each number with its spread.
