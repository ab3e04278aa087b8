# ---
# id: field_which_gpu
# title: "Which GPU for which work: two cards in five minutes"
# nav: Which GPU for which work
# description: "A10G, RTX 4090, L40S, A100, H100, H200 and B200 for training, for reading prompts and for writing tokens, with 7 and with 70 billion weights: floors by the roofline, and what we reached of ours."
# ---

# %% [markdown]
# # Which GPU for which work: two cards in five minutes
#
# By the end of this page you can
#
# - choose between two cards for serving a 7B, with a pencil and five minutes;
# - say which number of a data sheet decides for training, and which for inference: prompts, and tokens for one reader or for 64;
# - turn a floor into a forecast, and say what you assumed.
#
# **In one sentence:** compare two cards by the one number that your job waits for, once both hold it, and then by their prices.
#
# /// figure | docs/assets/figures/two_roofs.svg
# alt: "Two roofs over operations for each byte, of card A and, below it, of card B: each rises and is then flat. A job with 1 reader and one with 64 readers are on the slope, where the gap between the roofs is that of the bandwidths. Prompts and training are on the flat, where the gap is that of the peaks."
# caption: "Which gap is yours? It depends on the job, and only then on the cards."
# ///
#
# /// callout | trip
# *Cited*: peaks, bandwidths and memory, from data sheets, dense. *Computed*: floors from them, which no kernel beats. *Measured here*:
# what kernels of ours reach of such a floor, on our own card, {{ gpu.name }}. No other card of this page was in our hands.
# ///

# %% tags=["fold"]
from course_chips.offers import (
    MODELS,
    OFFERS,
    USABLE,
    chips_for,
    offered,
    to_serve,
)
from course_kernels.measure import quantity, record

CARDS = ("a10g", "rtx4090", "l40s", "a100", "h100", "h200", "b200")
READERS, HELD = 64, 1024  # readers of a step, and tokens in each one's cache
SOME, LONG = 20, 32768  # readers of the example, and tokens of a long text
WAIT_S, SHARE = 0.05, 0.5  # for a token, at most; of a floor's speed: assumed


def gb(model, readers, bits=16, held=HELD):
    """Gigabytes that a step reads: the weights once, and everybody's cache."""
    return (model.read * bits / 8 + readers * held * model.token_bytes) / 1e9


def chips(model, card, readers):
    """How many cards hold the model, and the caches of so many readers."""
    caches = readers * HELD * model.token_bytes
    return chips_for((model.stored * 2 + caches) / 1e9, card)


def seconds(model, card, readers):
    """A step at its floor, on as many cards as it takes."""
    sheet = OFFERS[card]
    moves = gb(model, readers) / sheet.gb_per_s
    multiplies = 2 * model.read * readers / sheet.bf16_tflops / 1e12
    return max(moves, multiplies) / chips(model, card, readers)


def seats(card, model=MODELS["m7"], held=HELD, bits=16):
    """How many readers have room for their caches beside the weights, on one card."""
    free = USABLE * OFFERS[card].memory_gb * 1e9 - bits / 8 * model.stored
    return int(free // (held * model.token_bytes))


def in_time(card, model=MODELS["m7"]):
    """How many of a card's seats get a token in time, at the share that is assumed."""
    room = WAIT_S * SHARE * OFFERS[card].gb_per_s - gb(model, 0)
    return min(seats(card), int(room * 1e9 // (HELD * model.token_bytes)))


def of_all(found, unit="1"):
    """The same for each model and each card."""
    return {
        name: {card: quantity(found(model, card), unit) for card in CARDS}
        for name, model in MODELS.items()
        if name != "m8"
    }


record(
    **offered(*CARDS),
    **to_serve(),
    chips={
        "one": of_all(lambda model, card: chips(model, card, 1)),
        "many": of_all(lambda model, card: chips(model, card, READERS)),
        "train": of_all(
            lambda model, card: chips_for(model.stored * 16 / 1e9, card)
        ),
    },
    one=of_all(lambda model, card: 1e3 * seconds(model, card, 1), "ms"),
    many=of_all(  # of one card, as more of them share the step evenly
        lambda model, card: (
            READERS / seconds(model, card, READERS) / chips(model, card, READERS)
        ),
        "tokens/s",
    ),
    prompts=of_all(
        lambda model, card: OFFERS[card].bf16_tflops * 1e12 / 2 / model.read,
        "tokens/s",
    ),
    train=of_all(
        lambda model, card: OFFERS[card].bf16_tflops * 1e12 / 6 / model.read,
        "tokens/s",
    ),
    readers=quantity(READERS, how="given"),
    follow=quantity(1e3 * WAIT_S, "ms", how="given"),
    some=quantity(SOME, how="given"),
    half=quantity(SHARE, how="given"),
    timely={
        **{card: quantity(in_time(card)) for card in ("l40s", "h100")},
        "over": quantity(
            in_time("h100")
            / seconds(MODELS["m7"], "h100", in_time("h100"))
            / (in_time("l40s") / seconds(MODELS["m7"], "l40s", in_time("l40s")))
        ),
    },
    reads={
        "weights": quantity(gb(MODELS["m7"], 0), "GB"),
        "reader": quantity(HELD * MODELS["m7"].token_bytes / 1e9, "GB"),
    },
    step={
        card: quantity(1e3 * seconds(MODELS["m7"], card, SOME), "ms")
        for card in ("l40s", "h100")
    },
    long={
        "seats": {
            card: quantity(seats(card, held=LONG)) for card in ("h100", "h200")
        },
        "full": {
            card: quantity(
                seats(card, held=LONG)
                / (
                    gb(MODELS["m7"], seats(card, held=LONG), held=LONG)
                    / OFFERS[card].gb_per_s
                ),
                "tokens/s",
            )
            for card in ("h100", "h200")
        },
    },
    held=quantity(HELD, how="given"),
    seats={card: quantity(max(0, seats(card))) for card in CARDS},
    seats4={card: quantity(seats(card, bits=4)) for card in CARDS},
    cards4={
        card: quantity(
            chips_for(
                (MODELS["m70"].stored / 2 + SOME * HELD * MODELS["m70"].token_bytes)
                / 1e9,
                card,
            )
        )
        for card in CARDS
    },
    full={
        card: quantity(
            seats(card) / seconds(MODELS["m7"], card, seats(card)), "tokens/s"
        )
        for card in ("l40s", "h100")
    },
    bits4={
        card: quantity(
            1e3 * gb(MODELS["m7"], 1, bits=4) / OFFERS[card].gb_per_s, "ms"
        )
        for card in ("a10g", "rtx4090")
    },
)

# %% [markdown]
# ## Two cards for a 7B, in five minutes
#
# Say the offers are an L40S and an H100, for {{ some:.0f}} people at once with {{ held:.0f}} tokens in each one's cache. Put your own in their place: their numbers are in [the table](#the-numbers-that-matter).
#
# **1. Seats.** The weights of a 7B of Llama 2's shape take {{ 2 * stored.m7:.1f}} GB in 16 bits [^verl-llama2], and each token of a reader
# {{ cache.m7:.0f}} KiB, since it shares no keys; newer models of this size share them, and take a quarter of that. Leave a tenth of the memory
# for all else. The rest beside the weights, divided by a reader's cache, is the card's *seats*: {{ seats.l40s:.0f}} on the L40S, with
# {{ memory.l40s:.0f}} GB [^nvidia-l40s], and {{ seats.h100:.0f}} on the H100, with {{ memory.h100:.0f}} GB [^nvidia-h100]. Texts of 32,768 tokens
# leave {{ long.seats.h100:.0f}} on an H100 and {{ long.seats.h200:.0f}} on an H200: with long texts seats decide everything.
#
# **2. A step's floor.** Each step reads the weights once and all caches: {{ reads.weights:.1f}} GB, and {{ reads.reader:.2f}} GB for each reader.
# Divide by the bandwidth. With weights of four bits the first number is a quarter, and the second stays. For prompts, with thousands of rows,
# compare the peaks instead.
#
# At its floor a step of {{ some:.0f}} readers takes {{ step.l40s:.1f}} ms on the L40S and {{ step.h100:.1f}} on the H100: the ratio is that of the bandwidths.
#
# **3. Is it quick enough?** Nobody reaches a floor. Count on a share of it: here half, which is assumed. (Our best step for one reader reaches
# {{ one_token.decode.our_step.of_peak:.0%}}, our whole engine {{ engine.step_floor_ms / engine.took.bus.decode:.0%}}, measured on {{ gpu.name }}.) Then {{ some:.0f}} readers wait {{ step.l40s / half:.0f}} ms for a token on the
# L40S and {{ step.h100 / half:.0f}} on the H100. Someone who follows along needs a token in, say, {{ follow:.0f}} ms. So *seats in time* are {{ timely.l40s:.0f}} on the L40S; on the
# H100 they are all {{ timely.h100:.0f}}.
#
# **4. Then the price.** *If one card of the cheaper kind seats your readers in time*, take it: the other would be paid for and wait. Here it does
# not. Two L40S would, so take the H100 if its hour costs less than two of theirs. You are done.
#
# *If you keep many cards full*, compare what their seats in time write: the H100 {{ timely.over:.1f}} times the L40S's tokens. Prompts it reads {{ prompts.m7.h100 / prompts.m7.l40s:.1f}} times as
# fast. If its hour costs less than {{ prompts.m7.h100 / prompts.m7.l40s:.1f}} L40S hours, take it; if more than {{ timely.over:.1f}}, take L40S. In between add up what one answer takes of a card: its tokens by
# the rate of tokens, and its prompt by the rate of prompts; times the price of an hour.
#
# **With long texts** take *their* seats, {{ long.seats.h100:.0f}} on an H100 and {{ long.seats.h200:.0f}} on an H200.
#
# /// predict | By bandwidth an H200 is {{ bandwidth.h200 / bandwidth.h100:.2f}} times an H100. Both full with such texts, how many times as many tokens does it write?
# - [long.full.h200 / long.full.h100 < 0.95 * bandwidth.h200 / bandwidth.h100] Fewer than that
# - [0.95 * bandwidth.h200 / bandwidth.h100 <= long.full.h200 / long.full.h100 < 1.05 * bandwidth.h200 / bandwidth.h100] About that
# - [long.full.h200 / long.full.h100 >= 1.05 * bandwidth.h200 / bandwidth.h100] More than that
# /// reveal
# {{ long.full.h200 / long.full.h100:.2f}} times, {{ long.full.h200:.0f}} tokens/s and {{ long.full.h100:.0f}} at the floor: more readers share each weight. Take it if its hour costs less than that many of an H100's. But prompts
# it reads no faster, and unless they are cached they weigh most then.
# ///
#
# That is all. The [calculator](choosing.py#4-what-does-a-token-cost) does the bytes and the bill of answers for one card at a time, with your prices.

# %% [markdown]
# ## When it wins, when it trips
#
# - **A small card wins** where it holds the model and its readers in time: what more the other could do is paid for and not used.
# - **It trips** at the first model that does not fit. Then it needs friends and a link, and a floor knows neither.
# - **A data sheet trips** readers. WareDB prints a second figure for the RTX 4090, twice as large, *with sparsity* [^rtx-4090].
#
# ## The numbers that matter
#
# /// table
# columns: [one card, "bf16, TFLOP/s", "memory, GB", "GB/s", "ridge, FLOP/B", "7B: seats", "in 4 bits", "70B in 4 bits: cards"]
# rows:
#   - ["A10G [^baseten-a10g]", "{{ peak.a10g:.0f}}", "{{ memory.a10g:.0f}}", "{{ bandwidth.a10g:.0f}}", "{{ 1000 * peak.a10g / bandwidth.a10g:.0f}}", "{{ seats.a10g:.0f}}", "{{ seats4.a10g:.0f}}", "{{ cards4.a10g:.0f}}"]
#   - ["RTX 4090 [^rtx-4090]", "{{ peak.rtx4090:.0f}}", "{{ memory.rtx4090:.0f}}", "{{ bandwidth.rtx4090:.0f}}", "{{ 1000 * peak.rtx4090 / bandwidth.rtx4090:.0f}}", "{{ seats.rtx4090:.0f}}", "{{ seats4.rtx4090:.0f}}", "{{ cards4.rtx4090:.0f}}"]
#   - ["L40S [^nvidia-l40s]", "{{ peak.l40s:.0f}}", "{{ memory.l40s:.0f}}", "{{ bandwidth.l40s:.0f}}", "{{ 1000 * peak.l40s / bandwidth.l40s:.0f}}", "{{ seats.l40s:.0f}}", "{{ seats4.l40s:.0f}}", "{{ cards4.l40s:.0f}}"]
#   - ["A100 [^nvidia-a100]", "{{ peak.a100:.0f}}", "{{ memory.a100:.0f}}", "{{ bandwidth.a100:.0f}}", "{{ 1000 * peak.a100 / bandwidth.a100:.0f}}", "{{ seats.a100:.0f}}", "{{ seats4.a100:.0f}}", "{{ cards4.a100:.0f}}"]
#   - ["H100 [^nvidia-h100]", "{{ peak.h100:.0f}}", "{{ memory.h100:.0f}}", "{{ bandwidth.h100:.0f}}", "{{ 1000 * peak.h100 / bandwidth.h100:.0f}}", "{{ seats.h100:.0f}}", "{{ seats4.h100:.0f}}", "{{ cards4.h100:.0f}}"]
#   - ["H200 [^nvidia-h200]", "{{ peak.h200:.0f}}", "{{ memory.h200:.0f}}", "{{ bandwidth.h200:.0f}}", "{{ 1000 * peak.h200 / bandwidth.h200:.0f}}", "{{ seats.h200:.0f}}", "{{ seats4.h200:.0f}}", "{{ cards4.h200:.0f}}"]
#   - ["B200 [^nvidia-b200]", "{{ peak.b200:.0f}}", "{{ memory.b200:.0f}}", "{{ bandwidth.b200:.0f}}", "{{ 1000 * peak.b200 / bandwidth.b200:.0f}}", "{{ seats.b200:.0f}}", "{{ seats4.b200:.0f}}", "{{ cards4.b200:.0f}}"]
# caption: "Cited, dense, read in November 2026. Memory, where the sheet's page was not opened, by Bekman's table [^bekman-accelerators]. *Computed*: seats of {{ held:.0f}} tokens with Llama 2's 7B, caches in 16 bits; cards that hold a 70B and {{ some:.0f}} readers. Several cards need a [link](interconnects.py)."
# ///
#
# Two more shares. *Measured here*, on {{ gpu.name }}, with an 8B in bf16: a step of 32 readers in our best kernels reaches {{ w4.full.our_step.of_peak:.0%}} of the data sheet's bytes, a prompt
# in compiled layers {{ one_token.prefill.compiled.of_peak:.0%}} of the peak. Take the same for both cards of a comparison.
#
# ## Seven cards, four jobs {.beyond}
#
# All of it for one card, at its floor. Prompts and training leave attention's own products out. Training with Adam in mixed precision keeps 16
# bytes a weight, before activations: weights and gradients in bf16, and in fp32 a copy and two running means.
#
# /// table
# columns: [7B, "cards for 1 reader", "1 reader: ms a token", "cards for 64", "64 readers: tokens/s of a card", "prompts: tokens/s", "cards to train", "training: tokens/s"]
# rows:
#   - ["A10G [^baseten-a10g]", "{{ chips.one.m7.a10g:.0f}}", "{{ one.m7.a10g:.1f}}", "{{ chips.many.m7.a10g:.0f}}", "{{ many.m7.a10g:,.0f}}", "{{ prompts.m7.a10g:,.0f}}", "{{ chips.train.m7.a10g:.0f}}", "{{ train.m7.a10g:,.0f}}"]
#   - ["RTX 4090 [^rtx-4090]", "{{ chips.one.m7.rtx4090:.0f}}", "{{ one.m7.rtx4090:.1f}}", "{{ chips.many.m7.rtx4090:.0f}}", "{{ many.m7.rtx4090:,.0f}}", "{{ prompts.m7.rtx4090:,.0f}}", "{{ chips.train.m7.rtx4090:.0f}}", "{{ train.m7.rtx4090:,.0f}}"]
#   - ["L40S [^nvidia-l40s]", "{{ chips.one.m7.l40s:.0f}}", "{{ one.m7.l40s:.1f}}", "{{ chips.many.m7.l40s:.0f}}", "{{ many.m7.l40s:,.0f}}", "{{ prompts.m7.l40s:,.0f}}", "{{ chips.train.m7.l40s:.0f}}", "{{ train.m7.l40s:,.0f}}"]
#   - ["A100 [^nvidia-a100]", "{{ chips.one.m7.a100:.0f}}", "{{ one.m7.a100:.1f}}", "{{ chips.many.m7.a100:.0f}}", "{{ many.m7.a100:,.0f}}", "{{ prompts.m7.a100:,.0f}}", "{{ chips.train.m7.a100:.0f}}", "{{ train.m7.a100:,.0f}}"]
#   - ["H100 [^nvidia-h100]", "{{ chips.one.m7.h100:.0f}}", "{{ one.m7.h100:.1f}}", "{{ chips.many.m7.h100:.0f}}", "{{ many.m7.h100:,.0f}}", "{{ prompts.m7.h100:,.0f}}", "{{ chips.train.m7.h100:.0f}}", "{{ train.m7.h100:,.0f}}"]
#   - ["H200 [^nvidia-h200]", "{{ chips.one.m7.h200:.0f}}", "{{ one.m7.h200:.1f}}", "{{ chips.many.m7.h200:.0f}}", "{{ many.m7.h200:,.0f}}", "{{ prompts.m7.h200:,.0f}}", "{{ chips.train.m7.h200:.0f}}", "{{ train.m7.h200:,.0f}}"]
#   - ["B200 [^nvidia-b200]", "{{ chips.one.m7.b200:.0f}}", "{{ one.m7.b200:.1f}}", "{{ chips.many.m7.b200:.0f}}", "{{ many.m7.b200:,.0f}}", "{{ prompts.m7.b200:,.0f}}", "{{ chips.train.m7.b200:.0f}}", "{{ train.m7.b200:,.0f}}"]
# caption: "Computed, 16 bits, {{ held:.0f}} tokens in each reader's cache, with room left in each memory for all else. Where several cards hold the model, the time of one reader is that of all of them together, as if links cost nothing."
# ///
#
# /// claim | many.m7.rtx4090 > 1.1 * many.m7.l40s and prompts.m7.l40s > 1.8 * prompts.m7.rtx4090
# Look down a column, and the order of the cards changes with the job. For tokens with 64 readers an RTX 4090 is ahead of an L40S, though not
# by much, and takes more cards to hold them. For prompts it is the other way round, and by far.
# /// otherwise
# Look down a column: the order of the cards may change with the job.
# ///
#
# ### With 70 billion weights
#
# Now *does it fit* decides. Cards that hold the model alone need no links; the others need fast ones, and this table has none in it.
#
# /// table
# columns: [70B, "cards for 1 reader", "1 reader: ms a token", "cards for 64", "64 readers: tokens/s of a card", "prompts: tokens/s", "cards to train", "training: tokens/s"]
# rows:
#   - ["A10G [^baseten-a10g]", "{{ chips.one.m70.a10g:.0f}}", "{{ one.m70.a10g:.1f}}", "{{ chips.many.m70.a10g:.0f}}", "{{ many.m70.a10g:,.0f}}", "{{ prompts.m70.a10g:,.0f}}", "{{ chips.train.m70.a10g:.0f}}", "{{ train.m70.a10g:,.0f}}"]
#   - ["RTX 4090 [^rtx-4090]", "{{ chips.one.m70.rtx4090:.0f}}", "{{ one.m70.rtx4090:.1f}}", "{{ chips.many.m70.rtx4090:.0f}}", "{{ many.m70.rtx4090:,.0f}}", "{{ prompts.m70.rtx4090:,.0f}}", "{{ chips.train.m70.rtx4090:.0f}}", "{{ train.m70.rtx4090:,.0f}}"]
#   - ["L40S [^nvidia-l40s]", "{{ chips.one.m70.l40s:.0f}}", "{{ one.m70.l40s:.1f}}", "{{ chips.many.m70.l40s:.0f}}", "{{ many.m70.l40s:,.0f}}", "{{ prompts.m70.l40s:,.0f}}", "{{ chips.train.m70.l40s:.0f}}", "{{ train.m70.l40s:,.0f}}"]
#   - ["A100 [^nvidia-a100]", "{{ chips.one.m70.a100:.0f}}", "{{ one.m70.a100:.1f}}", "{{ chips.many.m70.a100:.0f}}", "{{ many.m70.a100:,.0f}}", "{{ prompts.m70.a100:,.0f}}", "{{ chips.train.m70.a100:.0f}}", "{{ train.m70.a100:,.0f}}"]
#   - ["H100 [^nvidia-h100]", "{{ chips.one.m70.h100:.0f}}", "{{ one.m70.h100:.1f}}", "{{ chips.many.m70.h100:.0f}}", "{{ many.m70.h100:,.0f}}", "{{ prompts.m70.h100:,.0f}}", "{{ chips.train.m70.h100:.0f}}", "{{ train.m70.h100:,.0f}}"]
#   - ["H200 [^nvidia-h200]", "{{ chips.one.m70.h200:.0f}}", "{{ one.m70.h200:.1f}}", "{{ chips.many.m70.h200:.0f}}", "{{ many.m70.h200:,.0f}}", "{{ prompts.m70.h200:,.0f}}", "{{ chips.train.m70.h200:.0f}}", "{{ train.m70.h200:,.0f}}"]
#   - ["B200 [^nvidia-b200]", "{{ chips.one.m70.b200:.0f}}", "{{ one.m70.b200:.1f}}", "{{ chips.many.m70.b200:.0f}}", "{{ many.m70.b200:,.0f}}", "{{ prompts.m70.b200:,.0f}}", "{{ chips.train.m70.b200:.0f}}", "{{ train.m70.b200:,.0f}}"]
# caption: "As above. The shape is that of Llama 3.1, where eight heads share one of keys: a token's cache has {{ cache.m70:.0f}} KiB [^meta-llama31]."
# ///
#
# ## What to type
#
# On a card that you may try for an hour, this measures both shares of your own:
#
# ```
# nox -s docs -- --page docs/one_token.py
# ```
#
# **Where the course teaches it:** [the first roofline](../lectures/l1_what_a_gpu_is.py#the-first-roofline),
# [operations for each byte](../workshops/w4_serving.py#operations-for-each-byte), and two cards whose clocks were asked,
# [side by side](../two_cards.md#where-it-shows), with ten of our kernels [predicted](../two_cards.md#ten-kernels-predicted) from one card for the other.
#
# /// exercise | A card for one desk | 4 minutes
# You want a 7B for yourself alone, on an A10G or an RTX 4090. In 16 bits their floors are {{ one.m7.a10g:.1f}} and
# {{ one.m7.rtx4090:.1f}} ms a token. With weights of four bits, what changes: the floors, their ratio, and what fits?
# /// answer
# The floors fall to {{ bits4.a10g:.1f}} and {{ bits4.rtx4090:.1f}} ms, by less than the bits, since the cache stays in 16. Their ratio stays that
# of the bandwidths, {{ bandwidth.rtx4090 / bandwidth.a10g:.2f}}. The weights take {{ stored.m7 / 2:.1f}} GB in place of
# {{ 2 * stored.m7:.1f}}: both cards have room for longer texts then, and neither for a 70B, which would take {{ stored.m70 / 2:.0f}} GB.
# ///
