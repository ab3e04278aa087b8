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
# - read a journey against the link and against the multiply beside it, and say for how many tokens sharing the experts out beats keeping all of them on both cards.
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
# /// predict | Which part of the whole time is the journey, there and back, in the stored way?
# - [(large.dispatch.stored + large.combine.stored) / large.whole.stored < 0.15] Less than 15 %
# - [0.15 <= (large.dispatch.stored + large.combine.stored) / large.whole.stored < 0.4] From 15 to 40 %
# - [(large.dispatch.stored + large.combine.stored) / large.whole.stored >= 0.4] 40 % or more
# /// reveal
# {{ (large.dispatch.stored + large.combine.stored) / large.whole.stored:.0%}}.
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
#
# /// claim | large.dispatch.by_choice > 1.3 * large.dispatch.by_card
# A token that travels once saves time, not only bytes: dispatch takes {{ large.dispatch.by_card:.0f}} µs instead of {{ large.dispatch.by_choice:.0f}}.
# /// otherwise
# By choices dispatch takes {{ large.dispatch.by_choice:.0f}} µs, by cards {{ large.dispatch.by_card:.0f}}: here the bytes saved are not what decides.
# ///
#
# /// claim | large.dispatch.stored < 0.9 * large.dispatch.by_card
# Without packing, and without the host, the same rows take {{ large.dispatch.stored:.0f}} µs.
# /// otherwise
# Without packing, and without the host, the same rows take {{ large.dispatch.stored:.0f}} µs, so at this size neither is what dispatch waits for.
# ///
#
# Against the link: {{ speed.by_choice:.0f}} GB/s by choice, {{ speed.by_card:.0f}} GB/s by card and {{ speed.stored:.0f}} GB/s stored, of {{ sheet.link:.0f}} GB/s
# on the sheet. By choice most bytes move, and most of them need not: a high rate is no merit of its own. Between the stored way and the link
# lie the plan and the signals. With 8 cards whose
# links carry about 160 GB/s, DeepEP's dispatch moved 153 and its combine 158 [^deepep]. Beside that hold what our stores reach of a plain copy here, and
# not of the sheet.

# %% [markdown]
# ## While the others travel
#
# Of a token's eight experts four are at home on average. What those multiply needs nothing of what is on its way. So send on one stream, and multiply the own tokens on another:
# `overlapped.py`.
#
# /// predict | {{ large.tokens:,.0f}} tokens a card. Does it pay?
# - [large.whole.overlapped < 0.95 * large.whole.stored] Yes: the whole takes less time
# - [0.95 * large.whole.stored <= large.whole.overlapped <= 1.05 * large.whole.stored] Hardly: no more than 5 % either way
# - [large.whole.overlapped > 1.05 * large.whole.stored] No: it takes longer
# /// reveal
# {{ large.whole.overlapped:.0f}} µs overlapped, {{ large.whole.stored:.0f}} µs one after the other.
#
# What it hides is at most the dispatch, {{ large.dispatch.stored:.0f}} µs. What it costs is a second multiply, for the tokens that have arrived, which reads the weights once
# more. With many tokens that is little beside the arithmetic.
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
# - [first.whole.stored / large.whole.stored < 1.3] Less than 30 % longer
# - [1.3 <= first.whole.stored / large.whole.stored < 2.5] About twice as long
# - [first.whole.stored / large.whole.stored >= 2.5] Longer than that
# /// reveal
# {{ first.whole.stored / large.whole.stored:.2f}} times as long: {{ first.whole.stored:.0f}} µs. The journey is not to blame; dispatch took {{ first.dispatch:.0f}} µs. One card multiplies
# everything, and the other one waits for it.
# ///
#
# That is why serving keeps copies of popular experts: DeepSeek-V3's prefill had 32 redundant ones, chosen anew about every ten minutes from
# what was asked of them [^deepseek2024]. With many tokens the least possible whole is that of an even load, and no link changes it.

# %% [markdown]
# ## A few tokens
#
# In a step of decoding a card has few tokens, and {{ few.tokens:.0f}} of them are {{ few.mb.by_card:.3f}} MB: what you see is launches, signals and the host.
# But the multiply is then bound by the weights that it reads. A replicated card reads every expert that one of *its* tokens has chosen, out of
# all 128. A card that shares reads only its own 64, for the tokens of both.
#
# /// predict | With {{ few.tokens:.0f}} tokens a card, is the layer done earlier with the experts shared out and the rows stored, or replicated?
# - [few.whole.stored < 0.9 * few.whole.replicated] Earlier when shared out
# - [0.9 * few.whole.replicated <= few.whole.stored <= 1.1 * few.whole.replicated] About the same: no more than a tenth apart
# - [few.whole.stored > 1.1 * few.whole.replicated] Earlier when replicated
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
# /// claim | few.multiply.stored < 0.95 * few.whole.replicated
# Shared out, the multiply takes {{ few.multiply.stored:.0f}} µs, less than the whole layer takes replicated, {{ few.whole.replicated:.0f}} µs: it reads fewer weights. All the rest
# of the stored way takes {{ few.whole.stored - few.multiply.stored:.0f}} µs more.
# /// otherwise
# The multiply alone takes {{ few.multiply.stored:.0f}} µs where experts are shared out, and all the rest {{ few.whole.stored - few.multiply.stored:.0f}} µs more.
# ///
#
# /// claim | few.whole.by_card > 1.2 * few.whole.stored
# Here the host is dear: NCCL by card takes {{ few.whole.by_card / few.whole.stored:.1f}} times as long as the stored way, with the same rows. While the host reads the counts,
# the card has nothing to do.
# /// otherwise
# NCCL by card takes {{ few.whole.by_card:.0f}} µs, stores {{ few.whole.stored:.0f}} µs, with the same rows.
# ///
#
# /// claim | few.whole.overlapped > few.whole.stored
# With {{ few.tokens:.0f}} tokens the weights *are* the cost, and overlapping loses: {{ few.whole.overlapped:.0f}} µs instead of {{ few.whole.stored:.0f}}.
# /// otherwise
# With {{ few.tokens:.0f}} tokens the weights are the cost, and still it takes {{ few.whole.overlapped:.0f}} µs beside {{ few.whole.stored:.0f}}.
# ///
# ///
#
# None of these is tuned for so few rows: many small kernels plan, sort and signal. DeepEP has kernels of its own for decoding [^deepep].
#
# /// exercise | Hide the way back | 5 minutes
# `overlapped.py` hides dispatch, and combine still comes at the very end. Rearrange the work so that part of combine is hidden as well, on the
# same two streams. What must you hold back for it, and what does it cost once more?
# /// answer
# Multiply what has arrived as early as you can, and send its sums off while *own* tokens are still left to multiply. So hold half of the own tokens
# back: first half beside dispatch, then what has arrived, then the second half beside combine. It takes three multiplies instead of two, so the
# weights of most experts are read three times. With {{ large.tokens:,.0f}} tokens that is little; with {{ few.tokens:.0f}} it is most of the time.
# ///
