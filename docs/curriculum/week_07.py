# ---
# id: week_07
# title: "Week 7: data, tensors, pipelines"
# search: {rank: 2}
# nav: "7 · Parallel ways"
# description: "Three ways to split a model over cards: columns and rows, and a pipeline with its bubble, in NumPy; and gradients behind the backward pass, on two cards."
# needs: [gpus 2, capability 9.0]
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
# - say when the AllReduce of data parallel training hides behind the backward pass, and write it by hand.
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
# Split the first matrix of weights by columns: each card makes a part of the hidden numbers, and the activation works on each number alone, so nobody has to be asked. Split the second by rows: each card multiplies the part that it has, and what comes out is a *part of a sum*. One AllReduce adds the parts. Split the other way round, you would have
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
# ### On two cards
#
# Now a smaller model that is really trained: {{ model.millions:.0f}} million parameters in bf16, on two cards, by Adam. Three ways take a step in the same rounds. *Alone*: nobody sends, which is no training, but the bill without the link. *By hand*: all gradients lie in one tensor, and one AllReduce comes behind the backward pass. And *DDP*, PyTorch's `DistributedDataParallel`, which sends a bucket as soon as its gradients are ready.
#
# /// source | src/course_models/two_cards/ways.py#step
# ///
#
# Before that, both that train make three steps in float64, and every weight is held against those of one card with the tokens of both.

# %% tags=["fold"]
from course_kernels.measure import samples
from course_models.config import parameters
from course_models.two_cards.together import HALF_A_BILLION, train

SHAPES = {
    "small": (2, 1024),
    "large": (8, 1024),
}  # sequences of a card, and their tokens
WAYS = ("alone", "by_hand", "ddp")
trained = train(WAYS, [*SHAPES.values()])
weights = parameters(HALF_A_BILLION)
record(
    model={"millions": quantity(weights / 1e6)},
    formula=quantity(2 * (CARDS - 1) / CARDS * 2 * weights / 1e6, "MB"),
    sent={
        way: quantity(
            sum(trained.kept[way].sent_bytes.values()) / 1e6, "MB", how="counted"
        )
        for way in WAYS[1:]
    },
    buckets=quantity(sum(trained.kept["ddp"].calls.values()), how="counted"),
    batch={
        name: quantity(rows * length, how="given")
        for name, (rows, length) in SHAPES.items()
    },
    **{
        name: {
            way: samples([us / 1e3 for us in taken[way]], "ms", "device")
            for way in WAYS
        }
        for name, taken in zip(SHAPES, trained.us, strict=True)
    },
)

# %% [markdown]
# /// predict | {{ batch.small:,.0f}} tokens on each card, and {{ formula:.0f}} MB of gradients from each. How much longer than a step alone is one with the AllReduce behind it, by hand?
# - [small.by_hand < 1.25 * small.alone] Less than 25 %
# - [1.25 * small.alone <= small.by_hand < 2 * small.alone] 25 to 100 %
# - [small.by_hand >= 2 * small.alone] 100 % or more
# /// reveal
# {{ small.by_hand:.1f}} ms, and {{ small.alone:.1f}} ms alone. For {{ formula:.0f}} MB the link, as measured above, needs {{ formula / link_gb_s:.1f}} ms. DDP takes {{ small.ddp:.1f}} ms in {{ buckets:.0f}} buckets.
#
# /// table
# columns: ["ms for a step", "{{ batch.small:,.0f}} tokens a card", "{{ batch.large:,.0f}}"]
# rows:
#   - ["alone, nothing is sent", "{{ small.alone:.1f}}", "{{ large.alone:.1f}}"]
#   - ["by hand, one AllReduce at the end", "{{ small.by_hand:.1f}}", "{{ large.by_hand:.1f}}"]
#   - ["DDP, in buckets", "{{ small.ddp:.1f}}", "{{ large.ddp:.1f}}"]
# caption: "Medians of 8 rounds, the later of the two cards; the optimizer's step is in it. The three lie close together: made again, the race may find the small batch's ±{{ small.ddp.spread:.0%}} elsewhere with DDP, and ±{{ small.alone.spread:.0%}} alone."
# ///
#
# Hidden is not free. NCCL's kernels run on multiprocessors that the backward pass could use, and behind the last bucket no backward pass is left: the first layer's gradients are ready last.
# ///
#
# /// claim | abs(sent.ddp / formula - 1) < 0.1 and abs(sent.by_hand / formula - 1) < 0.1
# The bytes are those of the formula: counted at each collective, a card sends {{ sent.ddp:.0f}} MB with DDP and {{ sent.by_hand:.0f}} MB by hand, and the formula says {{ formula:.0f}}.
# /// otherwise
# Counted at each collective, a card sends {{ sent.ddp:.0f}} MB with DDP and {{ sent.by_hand:.0f}} MB by hand, and the formula says {{ formula:.0f}}.
# ///
#
# What all this keeps in memory, [week 8](week_08.py#do) measures on the same model.
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
# A block split over cards, and a pipeline, on more than two of them. You would see the two sums of every layer between its multiplies, where nothing hides them, and a pipeline's first micro-batches walk through idle stages. And data parallel between machines, whose links are narrower: there the same gradients need more tokens to hide behind.
#
# ## What next
#
# [Week 8](week_08.py) stops keeping everything on every card.
