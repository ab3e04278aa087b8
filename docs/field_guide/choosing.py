# ---
# id: field_choosing
# title: "Choosing: four questions and a bill"
# nav: A rule for choosing
# description: "A rule for choosing an accelerator, cheapest question first, and a calculator for the price of a million tokens: from our measured engine, from the byte floor of sixteen chips, and from your own prices."
# ---

# %% [markdown]
# # Choosing: four questions and a bill
#
# By the end of this page you can
#
# - ask four questions in an order that saves work, and stop at the first *no*;
# - work out the price of a million tokens from bytes and from your own prices.
#
# **In one sentence:** ask what your job waits for, whether it fits, and whether your code runs there; only then divide by a price.
#
# /// figure | docs/assets/figures/four_questions.svg
# alt: "Four questions from top to bottom. First, what does the job wait for: bytes, arithmetic, or a reply in time. Second, does it fit: weights and caches, on how many chips; third, does your code run there, and who mends it when it is slow; a no to one of these leads to the next chip. Fourth, what does a token cost: all costs, over tokens that came out."
# caption: "The cheap questions come first: a no to one of them saves you the dear ones."
# ///
#
# /// callout | trip
# *Cited*: somebody says so. *Computed*: arithmetic with cited numbers; a **floor**, which nobody beats. *Measured here*: on our own card,
# {{ gpu.name }}. No price on this page is anybody's offer.
# ///

# %% tags=["fold"]
from course_chips.offers import MODELS, chips_for, offered, to_serve
from course_kernels.measure import quantity, record

record(
    **offered(),
    **to_serve(),
    lpus=quantity(chips_for(MODELS["m8"].stored * 2 / 1e9, "groq")),
    million=quantity(1_000_000, how="given"),
    offer={  # made up, for the exercise
        "price": quantity(0.5, how="given"),
        "bandwidth": quantity(0.65, how="given"),
        "ours": quantity(0.75, how="given"),
        "port": quantity(0.5, how="given"),
    },
)

# %% [markdown]
# ## 1. What does the job wait for?
#
# [Count its bytes and its operations](../lectures/l1_what_a_gpu_is.py#the-first-roofline) and divide: left of a chip's ridge it is bytes.
#
# | the job | waits for | so compare |
# | --- | --- | --- |
# | training, or reading prompts | arithmetic | dense peaks |
# | writing tokens for a few readers | bytes | bandwidths |
# | one small answer, at once | its own latency | microseconds: no big chip at all |
#
# ## 2. Does it fit?
#
# Add weights and caches, and divide by nine tenths of a chip's memory. An LPU of Groq's first generation has 80 TB/s, and 230 MB of SRAM
# is all of its memory [^techpowerup-groq].
#
# /// predict | Our model of 8 billion weights, in 16 bits, takes {{ 2 * stored.m8:.0f}} GB. How many such chips hold it?
# - [lpus < 8] Fewer than 8
# - [8 <= lpus < 32] 8 or more, and fewer than 32
# - [lpus >= 32] 32, or more
# /// reveal
# {{ lpus:.0f}}, *computed*, before there is a cache. Whether that is dear depends on how many readers come: question 4.
# ///
#
# ## 3. Does your code run there?
#
# Two things are hidden in this question. The **ecosystem**: which languages and libraries lead to that chip. And your **team**: ask who, by
# name, has found a slow kernel there. If nobody has, add months of somebody's pay to the price, and take the chip where
# [the loop of a profiler](../lectures/l7_profiling.py#the-loop) is known to you. A port that stays far from its floor eats up what a cheap
# chip saves: see the exercise.
#
# ### What you write for each {.beyond}
#
# | chip | you write | what you give up |
# | --- | --- | --- |
# | NVIDIA | PyTorch, Triton, CUDA | nothing of this course; ask what it costs |
# | AMD | PyTorch, Triton, HIP | code that believes in [warps of 32](amd.py#when-it-wins-when-it-trips) |
# | TPU | JAX, XLA, Pallas | [sizes that change](tpu.py#when-it-wins-when-it-trips), kernels in CUDA |
# | Trainium | the Neuron SDK and PyTorch XLA [^bekman-accelerators] | kernels in CUDA |
# | Gaudi | PyTorch over a graph compiler and a library of kernels [^gaudi-software] | kernels in CUDA |
# | Groq | a model, for its compiler | kernels of your own: we found no public way |
#
# All but the first two are **ASICs** in the narrow sense: chips for one kind of work, planned by a compiler. A chip of your own is the
# last row of such a table, with a compiler that you write as well.

# %% [markdown]
# ## 4. What does a token cost?
#
# **Cost of ownership** is all that you pay until the chip is gone: chip and host, electricity and cooling, hours in which nobody asks it
# anything, and people. Divide by the tokens that came out.
#
# /// define | paid.rent = million * engine.price.card_hour / engine.price.hour / engine.rate.bus
# unit: "1"
# what: rent of the card for a million tokens at the assumed price of an hour, our engine with continuous batching
# ///
#
# /// define | paid.power = engine.reply.bus.power * million / engine.thousand
# unit: "1"
# what: price of the electricity of a million tokens at the assumed price of a kilowatt hour, our engine with continuous batching
# ///
#
# /// when | engine.queue.seats > 0
# Take our engine. {{ engine.queue.seats:.0f}} people share a step, which takes {{ engine.took.bus.decode:.1f}} ms on {{ gpu.name }}; its byte
# floor is {{ engine.step_floor_ms:.1f}} ms. Say that an hour of the card costs {{ engine.price.card_hour:.2f}} and a kilowatt hour
# {{ engine.price.electricity:.2f}}.
#
# /// predict | Beside the rent there is electricity. How much is that, of the price of its tokens?
# - [paid.power < 0.1 * paid.rent] Less than a tenth of the rent
# - [0.1 * paid.rent <= paid.power < 0.5 * paid.rent] A tenth of the rent, or more, and less than half of it
# - [paid.power >= 0.5 * paid.rent] Half of the rent, or more
# /// reveal
# A million tokens cost {{ paid.rent:.2f}} for hours of the card, of which bytes need
# {{ paid.rent * engine.step_floor_ms / engine.took.bus.decode:.2f}}, and {{ paid.power:.3f}} for electricity.
# ///
#
# /// claim | paid.power < 0.06 * paid.rent
# So at these prices time is what you pay for: better kernels are worth money, and an idle hour is as dear as a busy one.
# /// otherwise
# At these prices electricity is no small part.
# ///
#
# Now with your own prices. It begins near our engine.
#
# /// explorable | token_price
# ask: "Put in your own two prices. What makes a token cheaper: more readers, shorter weights, another chip, or a fuller day?"
# alt: "Three bars. The memory of the chip, mostly free beside the weights. A step: the time of the bytes at the floor, and a longer part for everything else. The bill for a million tokens: the floor, everything else, no idle hours, and a sliver of electricity."
# knobs:
#   chip: {label: Chip, at: h200}
#   model: {label: "Model, weights", at: m8}
#   bits: {label: "Bits of a weight", at: 16}
#   readers: {label: "Readers that share a step:", at: 7}
#   held: {label: "Tokens in each one's cache:", at: 8}
#   share: {label: "Of the floor's speed, %:", at: 42}
#   busy: {label: "Of the paid hours with readers, %:", at: 100}
#   drawn: {label: "Of the printed power, %:", at: 58}
#   prices: {label: "Your prices: an hour of a chip, a megawatt hour", at: [3, 300]}
# data:
#   peak: "peak.*:.0f"
#   bandwidth: "bandwidth.*:,.0f"
#   memory: "memory.*:.0f"
#   watts: "watts.*:.0f"
#   read: "read.*:.2f"
#   stored: "stored.*:.2f"
#   cache: "cache.*:.0f"
#   engine: "engine.rate.bus:,.0f"
#   joules: "engine.token.bus:.2f"
#   alone: "one_token.rate.our_step:.0f"
#   together: "w4.bus.rows * 1000000 * w4.full.our_step.T / w4.full.our_step.us:,.0f"
# words: {ms: ms}
# says:
#   not_prices: "Two prices, please, of 0 or more: an hour of a chip, and a megawatt hour."
#   bytes: "A step waits for bytes, {gb} GB in {ms} ms: {rate} tokens/s for {readers} readers together, and each waits {ms} ms for a token."
#   arithmetic: "A step waits for arithmetic and takes {ms} ms: {rate} tokens/s for {readers} readers together, and each waits {ms} ms for a token."
#   one: "It fits on one {chip}."
#   several: "It takes {cards} chips to hold it, {chip}, and links between them are counted as if they cost nothing."
#   with_power: "A million tokens: {rent} for hours and {power} for electricity, {joules} J a token."
#   without_power: "A million tokens: {rent} for hours. The vendor prints no power that we could read."
#   engine: "Measured here, our engine: {seen} tokens/s and {drew} J a token, at your price {paid} for hours."
#   step: "Measured here, our step alone: {seen} tokens/s, at your price {paid} for hours."
# row:
#   chip: "{chip}"
#   chips: "{cards}"
#   "bandwidth, GB/s": "{bandwidth}"
#   "peak, TFLOP/s": "{peak}"
#   "a step, ms": "{ms}"
#   "tokens/s": "{rate}"
#   "a million tokens": "{bill}"
#   "J a token": "{joules}"
# caption: "*Computed*, but for what says *measured*. Cited: the chips, in the tables below. Assumed: all knobs, room for all else, no prompts, caches in 16 bits, products at the bf16 peak, no power in idle hours. If you rent, electricity is in the rent: put 0."
# ///
#
# Turn the readers to 1. Then take 64 readers with 4096 tokens each, and the older 7B, which keeps the keys of all its heads.
# /// otherwise
# Of our engine there are no numbers on {{ gpu.name }} yet, and the calculator begins with them: the switch at the head of this page leads to
# a card that has them. By hand it goes like this: bytes of a step over bandwidth is its floor, floor over the share that you reach is its time, and time
# times the price of a second, over the tokens of a step, is what one costs.
# ///

# %% [markdown]
# ## When it wins, when it trips
#
# - **The rule wins** when you know the job: how many readers, how long their texts.
# - **It trips** over a peak *with sparsity*: find the dense one.
# - **It trips** over a floor taken for a forecast. Ask what share of its floor some kernel of yours has
#   reached, and take that.
# - **It trips** where several chips share a model: the floor knows nothing of [the link](../experts_on_two_cards.py#what-the-link-gives).

# %% [markdown]
# ## The numbers that matter
#
# One chip each, dense, in bf16 (fp16 for Groq), read in November 2026. An empty cell is one that we could not read.
#
# | one chip | TFLOP/s | memory, GB | GB/s | ridge, FLOP/B | W |
# | --- | ---: | ---: | ---: | ---: | ---: |
# | H200 [^nvidia-h200] | {{ peak.h200:.0f}} | {{ memory.h200:.0f}} | {{ bandwidth.h200:.0f}} | {{ 1000 * peak.h200 / bandwidth.h200:.0f}} | {{ watts.h200:.0f}} |
# | MI300X [^bekman-accelerators] | {{ peak.mi300x:.0f}} | {{ memory.mi300x:.0f}} | {{ bandwidth.mi300x:.0f}} | {{ 1000 * peak.mi300x / bandwidth.mi300x:.0f}} | {{ watts.mi300x:.0f}} |
# | Groq LPU [^techpowerup-groq] | {{ peak.groq:.0f}} | {{ memory.groq:.2f}} | {{ bandwidth.groq:.0f}} | {{ 1000 * peak.groq / bandwidth.groq:.1f}} | |
#
# /// when | engine.queue.seats > 0
# *Measured here*, on {{ gpu.name }}: our engine writes {{ engine.rate.bus:,.0f}} tokens/s at {{ engine.token.bus:.2f}} J a token, and the
# step of [one token](../one_token.py#five-kernels-a-layer) {{ one_token.rate.our_step:.0f}} tokens/s for one reader.
# /// otherwise
# *Measured here*, on {{ gpu.name }}: nothing of this yet.
# ///
#
# ### The others, and two remarks {.beyond}
#
# Intel's white paper prints a larger peak for Gaudi 3, at a higher clock than the shipped card's; this row has the shipped one. A model
# reads {{ read.m8:.1f}} billion weights a step and keeps {{ cache.m8:.0f}} KiB a token as an 8B [^meta-llama31], and {{ cache.m7:.0f}} KiB as an
# older 7B [^verl-llama2].
#
# | one chip | TFLOP/s | memory, GB | GB/s | ridge, FLOP/B | W |
# | --- | ---: | ---: | ---: | ---: | ---: |
# | Gaudi 3 [^bekman-accelerators] [^kaplan-gaudi3] | {{ peak.gaudi3:.0f}} | {{ memory.gaudi3:.0f}} | {{ bandwidth.gaudi3:.0f}} | {{ 1000 * peak.gaudi3 / bandwidth.gaudi3:.0f}} | {{ watts.gaudi3:.0f}} |
# | Trainium2 [^neuron-trainium2] | {{ peak.trainium2:.0f}} | {{ memory.trainium2:.0f}} | {{ bandwidth.trainium2:.0f}} | {{ 1000 * peak.trainium2 / bandwidth.trainium2:.0f}} | |
# | TPU v6e [^google-tpu-v6e] | {{ peak.tpu_v6e:.0f}} | {{ memory.tpu_v6e:.0f}} | {{ bandwidth.tpu_v6e:.0f}} | {{ 1000 * peak.tpu_v6e / bandwidth.tpu_v6e:.0f}} | |
# | H100 [^nvidia-h100] | {{ peak.h100:.0f}} | {{ memory.h100:.0f}} | {{ bandwidth.h100:.0f}} | {{ 1000 * peak.h100 / bandwidth.h100:.0f}} | {{ watts.h100:.0f}} |
# | B200 [^nvidia-b200] | {{ peak.b200:.0f}} | {{ memory.b200:.0f}} | {{ bandwidth.b200:.0f}} | {{ 1000 * peak.b200 / bandwidth.b200:.0f}} | {{ watts.b200:.0f}} |
# | A100 [^nvidia-a100] | {{ peak.a100:.0f}} | {{ memory.a100:.0f}} | {{ bandwidth.a100:.0f}} | {{ 1000 * peak.a100 / bandwidth.a100:.0f}} | {{ watts.a100:.0f}} |
# | L40S [^nvidia-l40s] | {{ peak.l40s:.0f}} | {{ memory.l40s:.0f}} | {{ bandwidth.l40s:.0f}} | {{ 1000 * peak.l40s / bandwidth.l40s:.0f}} | {{ watts.l40s:.0f}} |
# | RTX 4090 [^rtx-4090] | {{ peak.rtx4090:.0f}} | {{ memory.rtx4090:.0f}} | {{ bandwidth.rtx4090:.0f}} | {{ 1000 * peak.rtx4090 / bandwidth.rtx4090:.0f}} | |
# | A10G [^baseten-a10g] | {{ peak.a10g:.0f}} | {{ memory.a10g:.0f}} | {{ bandwidth.a10g:.0f}} | {{ 1000 * peak.a10g / bandwidth.a10g:.0f}} | |
# | MI355X [^bekman-accelerators] | {{ peak.mi355x:.0f}} | {{ memory.mi355x:.0f}} | {{ bandwidth.mi355x:.0f}} | {{ 1000 * peak.mi355x / bandwidth.mi355x:.0f}} | {{ watts.mi355x:.0f}} |
# | TPU v5e [^google-tpu-v5e] | {{ peak.tpu_v5e:.0f}} | {{ memory.tpu_v5e:.0f}} | {{ bandwidth.tpu_v5e:.0f}} | {{ 1000 * peak.tpu_v5e / bandwidth.tpu_v5e:.0f}} | |
# | TPU v5p [^google-tpu-v5p] | {{ peak.tpu_v5p:.0f}} | {{ memory.tpu_v5p:.0f}} | {{ bandwidth.tpu_v5p:.0f}} | {{ 1000 * peak.tpu_v5p / bandwidth.tpu_v5p:.0f}} | |
# | TPU7x [^google-tpu-7x] | {{ peak.tpu_7x:.0f}} | {{ memory.tpu_7x:.0f}} | {{ bandwidth.tpu_7x:.0f}} | {{ 1000 * peak.tpu_7x / bandwidth.tpu_7x:.0f}} | |
#
# ## What to type
#
# ```
# nox -s docs -- --page docs/an_engine.py
# ```
#
# **Where the course teaches it:** [what a reply costs](../an_engine.py#what-a-reply-costs),
# [the floor of a step](../an_engine.py#the-floor-of-a-step), and [who pays](../workshops/w4_serving.py#who-pays).
#
# /// exercise | Half the price | 5 minutes
# An offer: an hour of chip B costs {{ offer.price:.0%}} of an hour of your chip A. B has {{ offer.bandwidth:.0%}} of A's bandwidth, and your
# step waits for bytes. On A your code reaches {{ offer.ours:.0%}} of its floor; the port would reach {{ offer.port:.0%}} of its own. Take B?
# /// answer
# For each token that A writes, B writes {{ offer.bandwidth * offer.port / offer.ours:.2f}}, and at that price one of B's tokens costs
# {{ offer.price * offer.ours / offer.bandwidth / offer.port:.2f}} as much as one of A's. No, unless somebody can lift the port above
# {{ offer.price * offer.ours / offer.bandwidth:.0%}} of its floor. That is a question to your team, and not to the data sheet.
# ///
