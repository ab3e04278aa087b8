# ---
# id: two_card_experts
# title: Experts on two cards
# section: Make the model fast
# order: 127
# description: "Half of a layer's experts on each of two cards: which tokens travel, how many bytes that is, three ways to send them, and what the journey costs beside the multiply."
# needs: [gpus 2, capability 9.0]
# ---

# %% [markdown]
# # Experts on two cards
#
# By the end of this page you can
#
# - say, from the choices of its tokens alone, which rows leave a card, how many bytes they are, and how long a link needs for them at least;
# - tell what an all-to-all asks of the host, and what plain stores into the neighbour's memory do instead;
# - read a stage's time at two sizes, and tell bytes, the host and the plan apart in it;
# - say what sharing the experts out costs in time, and what it buys instead.
#
# You need to know [how an expert multiplies](one_token.py#swiglu-a-door-that-opens-by-itself), and what
# [streams](lectures/l2_the_cuda_model.py#two-things-at-once-streams) are. All of it runs on two cards of one machine, a process for each.

# %% [markdown]
# ## Who has which experts
#
# A mixture of experts has many feed-forward blocks in a layer, of which a token meets a few. Their weights soon fill more than one card. With
# **expert parallelism** every card keeps some of the experts, for all tokens. DeepSeek-V3 has 256 in a layer, a token meets 8, and prompts
# are read by 32 GPUs with 8 experts each [^deepseek2024].
#
# So the experts of a token may be elsewhere. **Dispatch** brings the token to them. **Combine** brings their answers back and adds
# them up, each with the weight that the router gave it.
#
# /// figure | docs/assets/figures/two_cards_experts.svg
# alt: >-
#   Two cards. Card 0 has experts 0 and 1 and five tokens, a to e. They chose: a experts 0 and 2, b 1 and 0, c 3 and 2,
#   d 2 and 1, e 0 and 1. Tokens a, c and d, drawn darker, have an arrow to a box on card 1, which has experts 2 and 3: dispatch. There a meets
#   2, c meets 3 and 2, d meets 2. A dashed arrow brings the sums of a, c and d back to card 0: combine.
# caption: Card 1 has tokens of its own, and sends them at the same time. They are left out.
# ///
#
# Look at token c. It needs both experts of card 1, and still travels **once**. Its two answers are added up over there, with their weights,
# and one sum comes back. DeepEP, DeepSeek's library for this, does the same [^deepep].
#
# /// exercise | Rows with a pencil | 3 minutes
# In the picture:
#
# 1. How many rows leave card 0 if a token travels once to a card, and how many if every choice travels as a row of its own?
# 2. The other card must know which experts a row has come for. What else must it know, if it is to send a single sum back?
# 3. A token chooses 2 of 4 experts, every pair as likely as any other. How likely is it to stay at home?
# /// answer
# 1. Three: a, c, d. By choices it is four, since c is sent for 3 and for 2.
# 2. The weights. Without them it could only return every answer for itself.
# 3. There are 6 pairs, and one of them has both at home: 1 in 6.
# ///
#
# Our layer has the sizes of Qwen3-30B-A3B: tokens of 2048 numbers, 128 experts that are 768 wide inside, and 8
# of them for a token [^qwen3-moe]. Weights and tokens are random, and every expert is as likely as any other. {{ layer.experts_each:.0f}} experts,
# {{ layer.half_gb:.2f}} GB, lie on each card.
#
# /// predict | 8 of 128 experts, half of them on the other card. Of a thousand tokens, about how many need not travel at all?
# - [layer.stay > 100] More than a hundred
# - [10 <= layer.stay <= 100] Ten to a hundred
# - [layer.stay < 10] Fewer than ten
# /// reveal
# {{ layer.stay:.1f}}. That is a little less likely than eight heads in a row, 3.9 of a thousand. So nearly every token travels, and on average it has four experts over there.
#
# Of {{ large.tokens:,.0f}} tokens on the busier card, {{ large.rows.by_choice:,.0f}} rows would leave by choices, and {{ large.rows.by_card:,.0f}} leave by
# cards: {{ large.rows.by_choice / large.rows.by_card:.2f}} times fewer bytes, there and back.
# ///

# %% tags=["fold"]
import math

import torch
from course_kernels.expert_parallel.layer import Layer
from course_kernels.expert_parallel.link import check_link, link_gb_per_s
from course_kernels.measure import quantity, record, samples
from course_kernels.two_cards.together import Case, link, race

LAYER = Layer(D=2048, F=768, E=128, TOP_K=8)
LINK = link_gb_per_s(torch.cuda.get_device_name())
COPY = 2**29  # bytes: long enough that its beginning and its end do not matter
TOKENS = {"large": 4096, "middle": 128, "few": 16}  # of each card

copied = link(COPY)
for name, times in copied.items():
    check_link(name, COPY, times, LINK)


def us(readings):
    """Microseconds between two events on a card, for the record."""
    return samples(readings, "µs", "device")


record(
    sheet={"link": quantity(LINK, "GB/s", "given")},
    layer={
        "experts_each": quantity(LAYER.E // 2),
        "half_gb": quantity(LAYER.E // 2 * LAYER.expert_bytes / 1e9, "GB"),
        "row_kb": quantity(LAYER.row_bytes / 1e3, "kB"),
        # Of a thousand tokens: all eight of the 64 at home, among all eights of 128.
        "stay": quantity(
            1000
            * math.comb(LAYER.E // 2, LAYER.TOP_K)
            / math.comb(LAYER.E, LAYER.TOP_K)
        ),
    },
    copy={
        "mb": quantity(COPY / 1e6, "MB"),
        **{name: us(times) for name, times in copied.items()},
    },
)

# %% [markdown]
# ## What the link gives
#
# NVLink of a Hopper carries 450 GB/s from a card, and as much the other way at the same time; data sheets print 900 [^bekman-network]. That
# is the ceiling of every journey below. The practical ceiling is a large copy into the other card's memory, with nothing else to do.
#
# /// define | carried.one_way = 1000 * copy.mb / copy.one_way
# unit: GB/s
# what: a copy of 2**29 bytes from one card to the other, while the link back is idle
# ///
# /// define | carried.both_ways = 1000 * copy.mb / copy.both_ways
# unit: GB/s
# what: the same copy from each card to the other at once, bytes of one way
# ///
# /// define | carried.stores = 1000 * copy.mb / copy.stores
# unit: GB/s
# what: the same bytes both ways at once, by the stores of place_rows, bytes of one way
# ///
#
# /// table
# columns: ["{{ copy.mb:.0f}} MB to the neighbour", "GB/s, one way", "of the data sheet"]
# rows:
#   - ["a copy, one card sends", "{{ carried.one_way:.0f}}", "{{ carried.one_way / sheet.link:.0%}}"]
#   - ["a copy, both send", "{{ carried.both_ways:.0f}}", "{{ carried.both_ways / sheet.link:.0%}}"]
#   - ["our kernel's stores, both send", "{{ carried.stores:.0f}}", "{{ carried.stores / sheet.link:.0%}}"]
# caption: "Medians of 20 rounds, the later of the two cards. Bytes that leave one card, over that time."
# ///
#
# /// claim | carried.both_ways > 0.9 * carried.one_way
# Both directions at once disturb each other little: a copy still gets {{ carried.both_ways / carried.one_way:.0%}} of what it has alone.
# /// otherwise
# With both directions in use a copy gets {{ carried.both_ways / carried.one_way:.0%}} of what it has alone.
# ///
#
# /// define | least_us = large.tokens * layer.row_kb / sheet.link
# unit: µs
# what: least time on the link, by its data sheet, of all tokens of a card, 4096 of them
# ///
#
# So if all {{ large.tokens:,.0f}} tokens of a card travel, {{ layer.row_kb:.3f}} kB each, dispatch takes {{ least_us:.1f}} µs at least.

# %% [markdown]
# ## Three ways to travel
#
# **By choice, through NCCL.** In an *all-to-all* every card hands over a piece for every other card. The pieces have different lengths, so
# the cards exchange *counts* first. Then the call that moves the rows wants the counts as Python numbers: the host waits for the card,
# reads them, and only then asks for the rows. This is `by_choice.py`.
#
# **By card, through NCCL.** `by_card.py` sends a token once, with its choices and weights, and gets one sum back. The host waits all the same, and the
# rows must be packed into a buffer first: one more trip to memory.
#
# **Stored.** An address is an address. With *symmetric memory* each process has mapped a buffer of the other card, and a kernel that stores
# there stores over NVLink. So this kernel, which at home also sorts rows by expert, moves them all; around it are only the plan, the count and a signal. `stored.py` calls it:
#
# /// source | src/course_kernels/expert_parallel/rows.py#place_rows
# ///
#
# No row is packed, and the count travels beside the rows: only cards read it. What it costs is room, since the box must hold all tokens of the
# neighbour. Behind the stores comes a *signal*, a flag in the other card's memory for which a kernel over there waits.
#
# /// callout | trip
# **Who may overwrite the box?** Nobody locks it. A card sends its next tokens after it has received the sums of the last ones, and those were
# made behind the last read of the box. Two batches at once need a second box.
# ///
#
# In all three the multiply is the same, one grouped multiply that reads each expert's weights once. An opponent does not travel at all:
# *replicated* holds all the experts on every card. Every answer is held against the float64 truth of one card, before and after its time is taken.

# %% tags=["fold"]
cases = [Case(LAYER, T=(T, T)) for T in TOKENS.values()]
to_the_first = Case(LAYER, T=(4096, 4096), load="first", ways=("stored",))
*even, skewed = race([*cases, to_the_first])
found = dict(zip(TOKENS, even, strict=True))
for name, raced in found.items():
    for way, stages in raced.stages_us.items():
        rows = raced.sent_rows["by_choice" if way == "by_choice" else "by_card"]
        check_link(
            f"{name}, {way}", rows * LAYER.row_bytes, stages["dispatch"], LINK
        )
    record(
        **{
            name: {
                "tokens": quantity(TOKENS[name]),
                "rows": {
                    way: quantity(rows, how="counted")
                    for way, rows in raced.sent_rows.items()
                },
                "mb": {
                    way: quantity(rows * LAYER.row_bytes / 1e6, "MB")
                    for way, rows in raced.sent_rows.items()
                },
                "whole": {way: us(times) for way, times in raced.us.items()},
                **{
                    stage: {
                        way: us(stages[stage])
                        for way, stages in raced.stages_us.items()
                    }
                    for stage in ("dispatch", "multiply", "combine")
                },
                "error": quantity(max(raced.errors.values())),
            }
        }
    )
record(
    first={
        "whole": {"stored": us(skewed.us["stored"])},
        "dispatch": us(skewed.stages_us["stored"]["dispatch"]),
    }
)

# %% [markdown]
# ## A prompt's worth
#
# {{ large.tokens:,.0f}} tokens on each card, as when prompts are read.
#
# /// predict | Which part of the whole time do dispatch and combine take together, in the stored way?
# - [(large.dispatch.stored + large.combine.stored) / large.whole.stored < 0.1] Less than 10 %
# - [0.1 <= (large.dispatch.stored + large.combine.stored) / large.whole.stored < 0.25] From 10 to 25 %
# - [(large.dispatch.stored + large.combine.stored) / large.whole.stored >= 0.25] 25 % or more
# /// reveal
# {{ (large.dispatch.stored + large.combine.stored) / large.whole.stored:.0%}}. The link needs {{ least_us:.1f}} µs for all tokens of a card, and as much for the way back:
# {{ 2 * least_us / large.whole.stored:.0%}} of the whole. So most of these two stages is no journey. What it is, we look for below.
#
# /// table
# columns: ["µs, {{ large.tokens:,.0f}} tokens a card", "MB that leave, there", "dispatch", "multiply", "combine", "whole"]
# rows:
#   - ["replicated, nothing travels", "0", "", "", "", "{{ large.whole.replicated:.0f}}"]
#   - ["NCCL, by choice", "{{ large.mb.by_choice:.1f}}", "{{ large.dispatch.by_choice:.0f}}", "{{ large.multiply.by_choice:.0f}}", "{{ large.combine.by_choice:.0f}}", "{{ large.whole.by_choice:.0f}}"]
#   - ["NCCL, by card", "{{ large.mb.by_card:.1f}}", "{{ large.dispatch.by_card:.0f}}", "{{ large.multiply.by_card:.0f}}", "{{ large.combine.by_card:.0f}}", "{{ large.whole.by_card:.0f}}"]
#   - ["stored", "{{ large.mb.by_card:.1f}}", "{{ large.dispatch.stored:.0f}}", "{{ large.multiply.stored:.0f}}", "{{ large.combine.stored:.0f}}", "{{ large.whole.stored:.0f}}"]
# caption: "Medians of 60 rounds, cold L2, each stage on the card that takes longer. Dispatch begins with the choices on the card and ends when the rows may be read: it has the plan and, through NCCL, the wait of the host in it."
# ///
# ///
#
# Three things in that table were not what we expected.
#
# /// claim | large.whole.stored > 1.1 * large.whole.replicated
# **Whoever has room for all the experts need not travel.** Replicated, the layer is done after {{ large.whole.replicated:.0f}} µs, stored after {{ large.whole.stored:.0f}}. What
# sharing out buys is room: a card holds {{ layer.half_gb:.2f}} GB of a layer instead of {{ 2 * layer.half_gb:.2f}}.
# /// otherwise
# **Sharing out buys room**: a card holds {{ layer.half_gb:.2f}} GB of a layer instead of {{ 2 * layer.half_gb:.2f}}. Replicated, the layer is done after
# {{ large.whole.replicated:.0f}} µs, stored after {{ large.whole.stored:.0f}}.
# ///
#
# /// claim | large.multiply.by_card > 1.3 * large.multiply.stored and few.multiply.by_card - few.multiply.stored > 0.5 * (large.multiply.by_card - large.multiply.stored)
# **The same multiply, of the same rows, takes longer by card**: {{ large.multiply.by_card:.0f}} µs, and {{ large.multiply.stored:.0f}} stored. With {{ few.tokens:.0f}} tokens it is
# {{ few.multiply.by_card:.0f}} and {{ few.multiply.stored:.0f}}. So the gap is {{ large.multiply.by_card - large.multiply.stored:.0f}} µs for many tokens and
# {{ few.multiply.by_card - few.multiply.stored:.0f}} µs for few. Work of the card would grow with the tokens; this is the host. When it has read the counts at last, the card has run dry, and
# each of the dozens of small kernels that follow begins only when Python has asked for it. In the stored way the host reads nothing, and at this size it is ahead of the card.
# /// otherwise
# **The multiply** of the same rows takes {{ large.multiply.by_card:.0f}} µs by card and {{ large.multiply.stored:.0f}} stored; with {{ few.tokens:.0f}} tokens
# {{ few.multiply.by_card:.0f}} and {{ few.multiply.stored:.0f}}. Behind its wait for the counts the host must ask for dozens of small kernels, and the card may run dry.
# ///
#
# /// claim | large.dispatch.by_card > 0.6 * large.dispatch.by_choice
# **By card a quarter of the bytes leaves, and dispatch takes far more than a quarter of the time**: {{ large.dispatch.by_card:.0f}} µs, and {{ large.dispatch.by_choice:.0f}} by choice. So the bytes saved do not
# decide here, and something else is dear. The exercise below looks for it.
# /// otherwise
# **Dispatch** takes {{ large.dispatch.by_card:.0f}} µs by card and {{ large.dispatch.by_choice:.0f}} µs by choice. The exercise below asks how much of that can be bytes.
# ///
#
# On the way back it is {{ large.combine.by_card:.0f}} µs by card and {{ large.combine.by_choice:.0f}} µs by choice. By choice eight answers a token come back, and are added up in plain PyTorch with several
# trips to memory. Which part of that is the link and which the adding up, the record does not say.
#
# /// define | speed.by_choice = 1000 * large.mb.by_choice / large.dispatch.by_choice
# unit: GB/s
# what: bytes that leave the busier card over the time of dispatch, through NCCL by choice, 4096 tokens a card
# ///
# /// define | speed.by_card = 1000 * large.mb.by_card / large.dispatch.by_card
# unit: GB/s
# what: bytes that leave the busier card over the time of dispatch, through NCCL by card, 4096 tokens a card
# ///
# /// define | speed.stored = 1000 * large.mb.by_card / large.dispatch.stored
# unit: GB/s
# what: bytes that leave the busier card over the time of dispatch, stored, 4096 tokens a card
# ///
# /// define | grown.by_choice = large.dispatch.by_choice - few.dispatch.by_choice
# unit: µs
# what: what dispatch takes more with 4096 tokens a card than with 16, through NCCL by choice
# ///
# /// define | grown.by_card = large.dispatch.by_card - few.dispatch.by_card
# unit: µs
# what: what dispatch takes more with 4096 tokens a card than with 16, through NCCL by card
# ///
# /// define | grown.stored = large.dispatch.stored - few.dispatch.stored
# unit: µs
# what: what dispatch takes more with 4096 tokens a card than with 16, stored
# ///
# /// define | grown.each_token = 1000 * grown.stored / (large.tokens - few.tokens)
# unit: ns
# what: what dispatch takes more for each further token of a card, stored
# ///
# /// define | row_ns = 1000 * layer.row_kb / sheet.link
# unit: ns
# what: least time on the link, by its data sheet, of one row
# ///
# /// define | rows_us = 1000 * large.mb.by_card / sheet.link
# unit: µs
# what: least time on the link, by its data sheet, of the rows that leave the busier card, 4096 tokens a card
# ///
# /// define | stores_us = copy.stores * large.mb.by_card / copy.mb
# unit: µs
# what: time of the stores of place_rows for the rows that leave the busier card, at the rate of the large copy
# ///
#
# /// exercise | What is dear in dispatch? | 6 minutes
# With 16 tokens hardly a byte travels: what dispatch takes there are launches, signals and the host. What it takes *more* with 4096 tokens is work of the card and of the link.
#
# /// table
# columns: ["dispatch, µs", "{{ few.tokens:.0f}} tokens a card", "{{ large.tokens:,.0f}}", "more"]
# rows:
#   - ["NCCL, by choice", "{{ few.dispatch.by_choice:.0f}}", "{{ large.dispatch.by_choice:.0f}}", "{{ grown.by_choice:.0f}}"]
#   - ["NCCL, by card", "{{ few.dispatch.by_card:.0f}}", "{{ large.dispatch.by_card:.0f}}", "{{ grown.by_card:.0f}}"]
#   - ["stored", "{{ few.dispatch.stored:.0f}}", "{{ large.dispatch.stored:.0f}}", "{{ grown.stored:.0f}}"]
# caption: "Medians of 60 rounds, cold L2, the card that takes longer."
# ///
#
# 1. Stored, {{ large.mb.by_card:.1f}} MB leave a card. How much of the last column can that be?
# 2. What do *by card* and *stored* both do that *by choice* does not? There are two things.
# 3. One of the two is in the first table of this page. How much of the last column can it be?
# /// answer
# 1. {{ large.mb.by_card:.1f}} MB take {{ rows_us:.0f}} µs at {{ sheet.link:.0f}} GB/s, of {{ grown.stored:.0f}} µs.
# 2. They make the plan, one row for each token and card (`outgoing` in `plan.py`), and they move the rows with `place_rows`.
# 3. `place_rows`. In the first table it stored {{ copy.mb:.0f}} MB over the link in {{ copy.stores:,.0f}} µs, so {{ large.mb.by_card:.1f}} MB are about {{ stores_us:.0f}} µs. What is left is for the plan, and for all that we have not thought of.
# ///
#
# We did not time the plan by itself. To number its rows it adds up along the tokens, and there is a trap. In a table with a row for each token and a column for each card, PyTorch gives each column
# to one thread, which walks down it row by row [^pytorch-scan]. Then two threads are at work while the rest of the card looks on. So the plan has a row for each *card*, along which many threads add.
# In the stored way each further token costs {{ grown.each_token:.0f}} ns of dispatch; its row takes {{ row_ns:.0f}} ns on the link.
#
# Against the link, dispatch reaches {{ speed.by_choice:.0f}} GB/s by choice, {{ speed.by_card:.0f}} GB/s by card and {{ speed.stored:.0f}} GB/s stored, of {{ sheet.link:.0f}} GB/s
# on the sheet. By choice most bytes move, and most of them need not: a high rate is no merit of its own. With 8 cards whose
# links carry about 160 GB/s, DeepEP's dispatch moved 153 and its combine 158 [^deepep]. Our stores alone reach {{ carried.stores / carried.both_ways:.0%}} of what a plain copy
# gets here. What is missing in our dispatch lies around them.

# %% [markdown]
# ## While the others travel
#
# Of a token's eight experts four are at home on average. What those multiply needs nothing of what is on its way. So send on one stream, and multiply the own tokens on another:
# `overlapped.py`.
#
# /// define | again_us = 1e6 * layer.half_gb / gpu.gb_per_s
# unit: µs
# what: least time, by the data sheet's bandwidth, to read all experts of one card once
# ///
#
# /// predict | {{ large.tokens:,.0f}} tokens a card, and dispatch is {{ large.dispatch.stored / large.whole.stored:.0%}} of the whole. How much of the whole does overlapping save?
# - [large.whole.overlapped < 0.75 * large.whole.stored] More than a quarter
# - [0.75 * large.whole.stored <= large.whole.overlapped < 0.9 * large.whole.stored] From a tenth to a quarter
# - [large.whole.overlapped >= 0.9 * large.whole.stored] Less than a tenth, if anything
# /// reveal
# {{ large.whole.overlapped:.0f}} µs overlapped, {{ large.whole.stored:.0f}} µs one after the other.
#
# What it can hide is at most the dispatch, {{ large.dispatch.stored:.0f}} µs. What it costs is a second multiply, for the tokens that have arrived. It may read all the weights
# once more, {{ again_us:.0f}} µs at the bandwidth of the data sheet. And it takes small kernels of its own, for which the host must ask in time.
#
# Whether it did, the record does not say, but there is a trace: made again, this race may find the time ±{{ large.whole.overlapped.spread:.0%}} elsewhere, and the stored
# way's ±{{ large.whole.stored.spread:.0%}}. A card that always has its next kernel at hand is steady. So this is no verdict on overlapping, only on asking for it from Python, kernel by kernel.
# ///
#
# DeepSeek overlaps two micro-batches: one is in attention and multiplies while the other travels [^deepseek2024]. But who sends and receives
# needs SMs for it, 20 of the 132 of their card [^deepseek2024].

# %% [markdown]
# ## When all want the same card {.beyond}
#
# So far every expert was as likely as any other. A router does not draw. Let all tokens of both cards choose experts of card 0, eight of its 64.
#
# /// predict | As many tokens and as many choices as before. How much longer does the whole layer take than with even choices?
# - [first.whole.stored / large.whole.stored < 1.1] Less than 10 % longer
# - [1.1 <= first.whole.stored / large.whole.stored < 1.7] 10 to 70 % longer
# - [first.whole.stored / large.whole.stored >= 1.7] Longer than that: about twice as long, or more
# /// reveal
# {{ first.whole.stored / large.whole.stored:.2f}} times as long: {{ first.whole.stored:.0f}} µs. The journey is not to blame; dispatch took {{ first.dispatch:.0f}} µs, beside
# {{ large.dispatch.stored:.0f}} with even choices. One card multiplies everything, and the other one waits for it. The whole grows less than the busy card's rows do: dispatch takes what it took, the weights are read once
# either way, and a card sorts the choices of all tokens in any case. How much each of these weighs, the record does not say.
# ///
#
# That is why serving keeps copies of popular experts: DeepSeek-V3's prefill had 32 redundant ones, chosen anew about every ten minutes from
# what was asked of them [^deepseek2024]. With many tokens the least possible whole is that of an even load, and no link changes it.

# %% [markdown]
# ## A few tokens
#
# In a step of decoding a card has few tokens, and {{ few.tokens:.0f}} of them are {{ few.mb.by_card:.3f}} MB: hardly anything travels. And the multiply is then bound by the weights that
# it reads. A replicated card reads every expert that one of *its* 16 tokens has chosen, on average [82 of all 128](many_experts.py#many-experts-few-tokens). A card that shares reads those of
# its own 64 that the 32 tokens of both have chosen, on average 56. That is a third less to read.
#
# /// define | saved.mb = 26 * 1000 * layer.half_gb / layer.experts_each
# unit: MB
# what: weights of the 26 experts that a sharing card need not read, with 16 tokens a card
# ///
# /// define | saved.us = 1000 * saved.mb / gpu.gb_per_s
# unit: µs
# what: least time to read them, by the data sheet's bandwidth
# ///
#
# /// predict | With {{ few.tokens:.0f}} tokens a card, is the layer done earlier with the experts shared out and the rows stored, or replicated?
# - [few.whole.stored < 0.95 * few.whole.replicated] Earlier when shared out
# - [0.95 * few.whole.replicated <= few.whole.stored <= 1.05 * few.whole.replicated] About the same: no more than 5 % apart
# - [few.whole.stored > 1.05 * few.whole.replicated] Earlier when replicated
# /// reveal
# {{ few.whole.stored:.0f}} µs shared out, {{ few.whole.replicated:.0f}} µs replicated.
#
# /// table
# columns: ["µs, whole layer", "{{ few.tokens:.0f}} tokens a card", "{{ middle.tokens:.0f}}"]
# rows:
#   - ["replicated, all experts on both cards", "{{ few.whole.replicated:.0f}}", "{{ middle.whole.replicated:.0f}}"]
#   - ["NCCL, by choice", "{{ few.whole.by_choice:.0f}}", "{{ middle.whole.by_choice:.0f}}"]
#   - ["NCCL, by card", "{{ few.whole.by_card:.0f}}", "{{ middle.whole.by_card:.0f}}"]
#   - ["stored", "{{ few.whole.stored:.0f}}", "{{ middle.whole.stored:.0f}}"]
#   - ["stored, overlapped", "{{ few.whole.overlapped:.0f}}", "{{ middle.whole.overlapped:.0f}}"]
# caption: "Medians of 60 rounds, cold L2."
# ///
#
# /// claim | few.whole.stored > 1.03 * few.whole.replicated and middle.whole.stored < 0.97 * middle.whole.replicated
# With {{ few.tokens:.0f}} tokens the replicated layer is done first, with {{ middle.tokens:.0f}} the shared one. At {{ few.tokens:.0f}} the 26 experts that a sharing card need not read are {{ saved.mb:.0f}} MB, or {{ saved.us:.0f}} µs at the bandwidth of
# the data sheet. Against that stands all that is around the multiply: {{ few.whole.stored - few.multiply.stored:.0f}} µs in the stored way. At {{ middle.tokens:.0f}} nearly every expert is asked by somebody, so a replicated card reads all 128, and a sharing one its 64:
# {{ layer.half_gb:.2f}} GB less, or {{ 1000000 * layer.half_gb / gpu.gb_per_s:.0f}} µs. That pays for the journey. With {{ large.tokens:,.0f}} tokens the multiply itself is the longer part, and the weights that are not read hardly count.
# /// otherwise
# With {{ few.tokens:.0f}} tokens the multiply takes {{ few.multiply.stored:.0f}} µs where experts are shared out and rows stored, and all the rest {{ few.whole.stored - few.multiply.stored:.0f}} µs more.
# ///
#
# /// claim | few.whole.by_card > 4 * few.whole.stored
# Here the host is dear: NCCL by card takes {{ few.whole.by_card / few.whole.stored:.1f}} times as long as the stored way, with the same rows. While the host reads the counts,
# the card has nothing to do, and afterwards it waits for one small kernel after another.
# /// otherwise
# NCCL by card takes {{ few.whole.by_card:.0f}} µs, stores {{ few.whole.stored:.0f}} µs, with the same rows.
# ///
#
# /// claim | few.whole.overlapped > 1.05 * few.whole.stored
# With {{ few.tokens:.0f}} tokens overlapping loses: {{ few.whole.overlapped:.0f}} µs instead of {{ few.whole.stored:.0f}}. Of the difference, weights that are read once more can be
# {{ again_us:.0f}} µs by the data sheet. The rest is more small kernels, and the host that asks for them.
# /// otherwise
# With {{ few.tokens:.0f}} tokens it takes {{ few.whole.overlapped:.0f}} µs overlapped, beside {{ few.whole.stored:.0f}} µs.
# ///
# ///
#
# None of these is tuned for so few rows: many small kernels plan, sort and signal, and Python asks for each of them. In the stored way the host reads nothing, so all of it might be recorded as one
# CUDA graph and replayed. We have not tried. DeepEP has kernels of its own for decoding [^deepep].
#
# /// exercise | Hide the way back | 5 minutes
# `overlapped.py` hides dispatch, and combine still comes at the very end. Rearrange the work so that part of combine is hidden as well, on the
# same two streams. What must you hold back for it, and what does it cost once more?
# /// answer
# Multiply what has arrived as early as you can, and send its sums off while *own* tokens are still left to multiply. So hold half of the own tokens
# back: first half beside dispatch, then what has arrived, then the second half beside combine. It takes three multiplies instead of two, so the
# weights of most experts are read three times. With {{ large.tokens:,.0f}} tokens that is little beside the arithmetic; with {{ few.tokens:.0f}} the weights are nearly all there is to read. And the
# host has more small kernels to ask for.
# ///
