# ---
# id: field_inference
# title: "Hardware for inference: what makes a token cheap"
# nav: Hardware for inference
# description: "Cost per token by what a step reads: shared among readers, shrunk to four bits, or read once for several guesses; what each of the three brought on our card, and what is left of them at the edge."
# ---

# %% [markdown]
# # Hardware for inference: what makes a token cheap
#
# By the end of this page you can
#
# - name the three ways to a cheaper token, and say which of them your server has room for;
# - foresee what batching brings, and what it takes from each reader.
#
# **In one sentence:** a token costs its share of what a step reads, so share the step, shrink what it reads, or write more than one token for
# each reading.
#
# /// figure | docs/assets/figures/cheaper_tokens.svg
# alt: "A step reads all weights and writes one token. Three ways to a cheaper one: share it, where one reading writes tokens of 4 readers; shrink it, where weights have 4 bits in place of 16 and the reading is shorter; write more for each reading, where further tokens of 1 reader are guessed first and then verified, and one of the guesses is refused."
# caption: "On the left the bytes that you pay for, on the right what you get for them."
# ///
#
# /// callout | trip
# *Cited*: somebody else says so. *Computed*: arithmetic, with what is assumed beside it. *Measured here*: by lessons of this course, on our own
# card, {{ gpu.name }}, on the shape of an 8B with random weights. Prices are assumptions, for you to change in the
# [calculator](choosing.py#4-what-does-a-token-cost).
# ///

# %% tags=["fold"]
from course_chips.offers import MODELS, to_serve
from course_kernels.measure import quantity, record

PASSES, DRAFTED = 0.8, 4  # assumed: how often a draft passes, and how many
NEAR = 100  # GB/s of a device in somebody's hands, assumed
record(
    **to_serve(),
    million=quantity(1_000_000, how="given"),
    drafts={
        "likely": quantity(PASSES, how="given"),
        "count": quantity(DRAFTED, how="given"),
        "tokens": quantity(sum(PASSES**i for i in range(DRAFTED + 1))),
    },
    near={
        "gb_per_s": quantity(NEAR, "GB/s", how="given"),
        "gb": {
            f"bits{bits}": quantity(MODELS["m8"].read * bits / 8e9, "GB")
            for bits in (16, 4)
        },
        "ms": {
            f"bits{bits}": quantity(MODELS["m8"].read * bits / 8e6 / NEAR, "ms")
            for bits in (16, 4)
        },
    },
)

# %% [markdown]
# ## Share it
#
# Every step reads every weight once, {{ 2 * read.m8:.0f}} GB in bf16, whoever is aboard. So the first question about **cost per token** is how
# many readers share a step. That is **batching**.
#
# /// define | alone_ms = w4.one.our_step.ms / w4.one.our_step.T
# unit: ms
# what: a step of decoding, 8B shape, our kernels, one reader
# ///
#
# /// define | together_ms = w4.full.our_step.ms / w4.full.our_step.T
# unit: ms
# what: a step of decoding, 8B shape, our kernels, 32 readers
# ///
#
# /// predict | For one reader a step takes {{ alone_ms:.1f}} ms. How long does it take for {{ w4.bus.rows:.0f}} readers, each with {{ w4.bus.held:.0f}} tokens in the cache?
# - [together_ms < 2 * alone_ms] Less than twice as long
# - [2 * alone_ms <= together_ms < 8 * alone_ms] Two to eight times as long
# - [together_ms >= 8 * alone_ms] Eight times as long, or more
# /// reveal
# {{ together_ms:.1f}} ms, so {{ together_ms / alone_ms:.2f}} times as long, for {{ w4.bus.rows:.0f}} times the tokens. By our assumed price of
# {{ engine.price.card_hour:.0f}} an hour, a million tokens fall from {{ million * engine.price.card_hour / engine.price.hour / (1000 / alone_ms):.2f}}
# to {{ million * engine.price.card_hour / engine.price.hour / (1000 * w4.bus.rows / together_ms):.2f}}.
# ///
#
# But each waits longer for a token. And it ends, for three reasons. Each reader brings a cache of their own. At {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} rows the weights reach this card's ridge. And memory fills up.
#
# ### A batch must be kept full {.beyond}
#
# That is a matter of scheduling and not of hardware.
#
# /// claim | engine.rate.bus > 2 * engine.rate.coach
# With the same kernels and the same queue, our engine writes {{ engine.rate.bus:,.0f}} tokens/s when people get on and off at each step, and
# {{ engine.rate.coach:,.0f}} tokens/s when a batch waits for its longest answer: {{ engine.rate.bus / engine.rate.coach:.1f}} times as many for the
# first, which is more than twice as many, for [one switch](../an_engine.py#coach-and-bus-with-a-pencil).
# /// otherwise
# With the same kernels and the same queue, our engine writes {{ engine.rate.bus:,.0f}} tokens/s when people get on and off at each step, and
# {{ engine.rate.coach:,.0f}} tokens/s when a batch waits for its longest answer.
# ///
#
# ## Shrink it
#
# With four bits a weight, a step for one reader reads {{ w4.step_gb.bits4:.1f}} GB in place of {{ w4.step_gb.bits16:.1f}}, head and cache in 16
# bits. By the clock it is {{ w4.faster:.2f}} times as fast, where the bytes alone promise
# {{ w4.step_gb.bits16 / w4.step_gb.bits4:.1f}} times: [the rest](../workshops/w4_serving.py#the-same-step-in-four-bits) did not shrink.
# Four bits also make room for more caches. But as rows are added, [shorter weights stop paying](../workshops/w4_serving.py#shorter-weights):
# they must be unpacked, whoever shares them.
#
# ## Write more for each reading
#
# A small model guesses a few tokens, and the large one verifies all of them in one step: **speculative decoding**. What is written is still
# [exactly the large model's own](../workshops/w6_frontier.py#propose-verify).
#
# /// predict | Say a guess passes with probability {{ drafts.likely:.1f}}, and {{ drafts.count:.0f}} are made at a time. How many tokens does a verification write on average?
# - [drafts.tokens < 2] Fewer than 2
# - [2 <= drafts.tokens < 3] 2 or more, and fewer than 3
# - [drafts.tokens >= 3] 3, or more
# /// reveal
# {{ drafts.tokens:.2f}}: the sum of 1 + p + … + p⁴, *computed*. A guess that is refused takes all behind it along.
# ///
#
# From which batch on it is a loss, with the draft's own steps, is [a question of W6](../workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss).
#
# ### What a guess costs {.beyond}
#
# A verification has more rows than a step. One reader with {{ drafts.count:.0f}} guesses has {{ drafts.count + 1:.0f}} rows, fewer than the
# {{ w4.bus.rows:.0f}} above, whose step took {{ together_ms / alone_ms:.2f}} times as long. So before the guesses' own time the gain would be
# {{ drafts.tokens * alone_ms / together_ms:.1f}} times or more, if fewer rows take no longer. {{ w4.bus.rows:.0f}} readers would have
# {{ w4.bus.rows * (drafts.count + 1):.0f}} rows, near the ridge: there is little left to give away.
#
# ## At the edge
#
# At the **edge**, in a phone, a laptop or a machine, there is one reader. Nothing can be shared, so bytes decide, and then joules. Say that a
# device has {{ near.gb_per_s:.0f}} GB/s. An 8B reads {{ near.gb.bits16:.0f}} GB a token in 16 bits and {{ near.gb.bits4:.1f}} GB in four: floors
# of {{ near.ms.bits16:.0f}} and {{ near.ms.bits4:.0f}} ms, *computed*. That is why everybody at the edge shrinks, takes a small model, and
# guesses ahead: the arithmetic is idle anyway. A prompt is another job there, too: it waits for the device's peak.

# %% [markdown]
# ## When it wins, when it trips
#
# - **Bandwidth wins** for answers, **peaks win** for prompts, **capacity wins** for batches: it decides how many may share.
# - **It trips** over prices per hour. One card has other tokens at noon than at night.
# - **It trips** where somebody waits for a first token: [three numbers](../an_engine.py#three-numbers-and-who-needs-them), and one change
#   moves them apart.
# - **It trips** where you add the three ways up. A full batch has no idle arithmetic to sell to a draft.
#
# ## The numbers that matter
#
# *Measured here*, on {{ gpu.name }}. For an hour of the card we assume {{ engine.price.card_hour:.0f}}, and the last column is *computed* from it.
#
# /// table
# columns: ["8B shape", "readers", "tokens/s", "a million tokens"]
# rows:
#   - ["a step alone, 16 bits", "1", "{{ 1000 / alone_ms:,.0f}}", "{{ million * engine.price.card_hour / engine.price.hour / (1000 / alone_ms):.2f}}"]
#   - ["a step alone, weights of four bits", "1", "{{ 1000 * w4.faster / alone_ms:,.0f}}", "{{ million * engine.price.card_hour / engine.price.hour / (1000 * w4.faster / alone_ms):.2f}}"]
#   - ["a step alone, 16 bits", "{{ w4.bus.rows:.0f}}", "{{ 1000 * w4.bus.rows / together_ms:,.0f}}", "{{ million * engine.price.card_hour / engine.price.hour / (1000 * w4.bus.rows / together_ms):.2f}}"]
#   - ["the whole engine, a coach", "up to {{ engine.queue.seats:.0f}}", "{{ engine.rate.coach:,.0f}}", "{{ million * engine.price.card_hour / engine.price.hour / engine.rate.coach:.2f}}"]
#   - ["the whole engine, a bus", "up to {{ engine.queue.seats:.0f}}", "{{ engine.rate.bus:,.0f}}", "{{ million * engine.price.card_hour / engine.price.hour / engine.rate.bus:.2f}}"]
# caption: "The first three rows are steps of kernels alone, the last two a queue of {{ engine.queue.count:.0f}} requests with their prompts, by the host's clock. The engine has older kernels than the steps."
# ///
#
# A token of the bus takes {{ engine.token.bus:.2f}} J, one of the coach {{ engine.token.coach:.2f}} J: empty seats save
# little power. Other chips have [floors](which_gpu.py#seven-cards-four-jobs). The shape is that of Llama 3.1 [^meta-llama31] or, for a 7B, of
# Llama 2 [^verl-llama2].
#
# ## What to type
#
# A server of ours answers, on a card or without one; the second measures all five rows anew:
#
# ```
# nox -s serve-model -- "def main(" "A list is"
# nox -s docs -- --page docs/an_engine.py --page docs/workshops/w4_serving.py
# ```
#
# **Where the course teaches it:** [two rhythms in one kitchen](../workshops/w4_serving.py#two-rhythms-in-one-kitchen),
# [the coach and the bus](../workshops/w4_serving.py#the-coach-and-the-bus), [what a reply costs](../an_engine.py#what-a-reply-costs), and
# [propose, verify](../workshops/w6_frontier.py#propose-verify).
#
# /// exercise | Three servers | 5 minutes
# A: a chat with two hundred people at a time. B: reports that are summed up overnight, thousands, and nobody waits. C: an assistant on a laptop.
# For each: what do you share, what do you shrink, do you guess ahead, and which number of a data sheet do you buy?
# /// answer
# A: share the step, as many readers as memory and their patience allow; shrink first what makes room for caches; guesses only in quiet hours.
# Buy capacity and bandwidth. B: the largest batches that fit, as nobody waits; the prompts are long and the answers short, so it is a job for
# peaks: buy the cheapest dense peak. C: nothing to share; shrink the weights, take a smaller model, and guess ahead, since the arithmetic is
# idle. Buy bandwidth, and look at joules.
# ///
