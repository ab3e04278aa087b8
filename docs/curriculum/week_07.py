# ---
# id: week_07
# title: "Week 7: data, tensors, pipelines"
# search: {rank: 2}
# nav: "7 · Parallel ways"
# description: "Three ways to split a model over cards, worked out in NumPy: gradients behind the backward pass, columns and rows, and a pipeline with its bubble."
# ---

# %% [markdown]
# # Week 7: data, tensors, pipelines
#
# /// week
# ///
#
# By the end of this week you can
#
# - split a feed-forward block over two cards so that it needs one sum at its end;
# - draw a pipeline's schedule, and read the share of its bubble off it;
# - say when the AllReduce of data parallel training hides behind the backward pass.
#
# ## Why this week
#
# One card is too small for the model, or too slow for the data. Every way to use several sends something over a link, and while a card waits for a link it is at no percent of any peak. So the question stays the same; only the roof has changed: it is the link now.
#
# ## Before you begin
#
# - How many operations is a step of training? [Week 3](week_03.py#ideas).
# - What is an AllReduce, and what does a ring send? [Clusters](../field_guide/clusters.py#a-ring-by-hand).
# - How quick is a link? [Interconnects](../field_guide/interconnects.py#one-way-or-both).
#
# ## Read
#
# /// reading
# shoeybi2019: "Take figure 3: the block split by columns, then by rows, so that one AllReduce is left for each direction."
# narayanan2021: "Take the schedules, and the bubble; look whether a share is of the ideal time or of all of it, as here. Its advice on which split goes over which link is still the rule: tensors inside a machine, pipelines and data between machines."
# hegde2023: "A patient walk through ZeRO and FSDP, with memory counted: read half of it now and half next week. Pipelines and tensors get a few paragraphs. Some of its library names have changed."
# scaling-book-training: "Chapters 3 and 5, sharding and training; those are the numbers today. Take how it asks, for each way, from which batch on the link is no longer the roof."
# ///
#
# ## Ideas
#
# - Data parallel, and the AllReduce behind the backward pass: below. Its arithmetic: [a ring by hand](../field_guide/clusters.py#a-ring-by-hand).
#
# /// idea | Columns first, then rows: why does tensor parallel need so few sums?
# Split the first grid by columns: each card makes a part of the hidden numbers, and the activation works on each number alone, so nobody has to be asked. Split the second by rows: each card multiplies the part that it has, and what comes out is a *part of a sum*. One AllReduce adds the parts. Split the other way round, you would have
# to exchange in the middle as well.
# ///
#
# /// idea | What is the bubble of a pipeline, and what is 1F1B?
# Stages wait at the beginning until something reaches them, and at the end until something comes back: with $p$ stages and $m$ micro-batches $(p-1)/(m+p-1)$ of the time. *1F1B*, one forward, one backward, has the same bubble; what it saves is memory, since a stage holds at most $p$ micro-batches and not all $m$.
# ///
#
# /// idea | Why micro-batches?
# To fill the pipeline. One batch of 32 that walks through four stages keeps one stage busy at a time. Cut into eight of four, the first can be in stage four while the fourth is in stage one. The price is that each multiply has fewer rows.
# ///
#
# /// idea | How do all three go together?
# By what each sends. Tensor parallel sends activations several times a layer, so it stays where links are widest, in a machine. A pipeline sends one activation at a boundary, and goes between machines. Data parallel sends gradients once a step, can hide them, and takes the rest of the cards.
# ///
#
# - All-gather, reduce-scatter, all-reduce: [clusters](../field_guide/clusters.py#a-ring-by-hand). An all-reduce is a reduce-scatter and then an all-gather.
#
# ## Do
#
# First the block, split over two cards.

# %%
import numpy as np

ROWS, WIDTH, HIDDEN, CARDS = 8, 64, 256, 2
drawn = np.random.default_rng(7)
x = drawn.standard_normal((ROWS, WIDTH))
up, down = (
    drawn.standard_normal((WIDTH, HIDDEN)),
    drawn.standard_normal((HIDDEN, WIDTH)),
)


def silu(z):
    """An activation: each number for itself."""
    return z / (1 + np.exp(-z))


columns, rows = np.split(up, CARDS, axis=1), np.split(down, CARDS, axis=0)
parts = [silu(x @ columns[card]) @ rows[card] for card in range(CARDS)]
whole = silu(x @ up) @ down
off = float(np.abs(sum(parts) - whole).max() / np.abs(whole).max())

# %% [markdown]
# Then a pipeline, by a clock: a stage takes one tick for a micro-batch forwards, and two backwards.

# %%
FORWARD, BACKWARD = 1, 2


def pipeline(stages, batches):
    """Ticks in all, the share of them that a stage stands idle, and micro-batches held at most; 1F1B."""
    order = []
    for stage in range(stages):
        ahead = min(stages - stage, batches)
        steps = [("F", i) for i in range(ahead)]
        for i in range(batches):
            steps.append(("B", i))
            steps += [("F", ahead + i)] if ahead + i < batches else []
        order.append(steps)
    ends, free, at = {}, [0] * stages, [0] * stages
    while any(at[s] < len(order[s]) for s in range(stages)):
        for s in range(stages):
            while at[s] < len(order[s]):
                kind, i = order[s][at[s]]
                if kind == "F":
                    needs = ("F", s - 1, i) if s else None
                else:
                    needs = ("B", s + 1, i) if s + 1 < stages else ("F", s, i)
                if needs and needs not in ends:
                    break
                start = max(free[s], ends[needs] if needs else 0)
                free[s] = start + (FORWARD if kind == "F" else BACKWARD)
                ends[kind, s, i] = free[s]
                at[s] += 1
    ticks = max(free)
    busy = batches * (FORWARD + BACKWARD)
    return ticks, 1 - busy / ticks, min(stages, batches)


ticks, bubble, held = pipeline(4, 8)

# %% tags=["fold"]
from course_kernels.measure import quantity, record

PARAMETERS, TOKENS, PEAK = (
    1.0e9,
    4096,
    989.4e12,
)  # a model, tokens of a card in a step, bf16
sends = (
    2 * (CARDS - 1) / CARDS * 2 * PARAMETERS
)  # bytes of gradients in bf16, a ring of two
record(
    off=quantity(off),
    ticks=quantity(ticks, how="counted"),
    bubble=quantity(bubble),
    more=quantity(pipeline(4, 32)[1]),
    held=quantity(held, how="counted"),
    sends_mb=quantity(sends / 1e6, "MB"),
    backward_ms=quantity(4e3 * PARAMETERS * TOKENS / PEAK, "ms"),
    peak=quantity(PEAK / 1e12, "TFLOP/s", how="given"),
    tokens=quantity(TOKENS, how="given"),
)

# %% [markdown]
# The parts add up to the whole: they differ by {{ off * 1e15:.2f}} · 10⁻¹⁵ of its largest number.
#
# /// predict | Four stages, eight micro-batches. Which share of the time does a stage stand idle?
# - [bubble < 0.15] Less than a seventh
# - [0.15 <= bubble < 0.35] About a quarter
# - [bubble >= 0.35] More than a third
# /// reveal
# {{ bubble:.0%}}: {{ ticks:.0f}} ticks, of which 24 are work. By the formula it is 3 of 11. With 32 micro-batches it is {{ more:.0%}}. And no stage has to hold more than {{ held:.0f}} at a time.
# ///
#
# Now the gradients. The task is *data parallel on two cards: which share of a step is the AllReduce?* Forecast it for a model with a billion parameters, {{ tokens:,.0f}} tokens on each card in a step. Each card sends {{ sends_mb:,.0f}} MB.
#
# /// predict | The link carries {{ link_gb_s:.0f}} GB/s one way. Does the AllReduce hide behind a backward pass at the H100's dense peak?
# - [sends_mb / link_gb_s < backward_ms] Yes, the backward pass takes longer
# - [sends_mb / link_gb_s >= backward_ms] No, the link takes longer
# /// reveal
# At {{ peak:.0f}} TFLOP/s [^lockwood-h100] the backward pass is {{ backward_ms:.1f}} ms of arithmetic at the least, and the link, [measured here](../experts_on_two_cards.py#what-the-link-gives), needs {{ sends_mb / link_gb_s:.1f}} ms. Unhidden that would be {{ sends_mb / link_gb_s / (1.5 * backward_ms + sends_mb / link_gb_s):.0%}} of a step with its forward pass, and hidden next to nothing. With twice the tokens on each card it is twice the arithmetic and the same gradients. That is why
# *the batch on a card* decides it.
# ///
#
# /// define | link_gb_s = two_card_experts.copy.mb / two_card_experts.copy.one_way.us * 1000
# unit: GB/s
# what: a copy into the neighbour's memory over NVLink, one way, 512 MiB
# ///
#
# ## Milestone
#
# The milestone comes with [week 8](week_08.py#milestone). On the way:
#
# /// exercise | How many micro-batches? | 8 minutes
# You have four stages, and want the bubble below a tenth. How many micro-batches do you need? Your batch is 64 sequences: how many are in each? And with eight stages?
# /// answer
# 3 / (m + 3) is below a tenth from m = 28 on. A batch of 64 gives 32 of two. With eight stages 7 / (m + 7) needs m = 64: micro-batches of one.
# ///
#
# ## What could not run here
#
# Training with `torch.distributed` on two cards: it awaits its measurement. You would see the AllReduce in buckets between the layers of the backward pass, and what is left of it at the end, since the first layer's gradients are ready last.
#
# ## What next
#
# [Week 8](week_08.py) stops keeping everything on every card.
