# ---
# id: field_cerebras
# title: "Cerebras: one wafer, one chip"
# nav: Cerebras
# description: "What a chip of a whole wafer does with a model: SRAM beside every core, what still takes time when bytes cost nothing, and what it costs to stream weights through the door. Cited."
# ---

# %% [markdown]
# # Cerebras: one wafer, one chip
#
# By the end of this page you can
#
# - say from a model's bytes whether it lies on one wafer, on several, or must stream in;
# - work out how many tokens must share a pass of streamed weights;
# - test a printed peak with the number of cores and a clock.
#
# **In one sentence:** where others saw a wafer into chips, Cerebras leaves it whole: hundreds of thousands of small cores, each with SRAM of its
# own and wires to four neighbours, so that weights which fit never leave, and all others come in through a narrow door.
#
# /// figure | docs/assets/figures/wafer_and_door.svg
# alt: "Left, a round wafer with a square grid of cores on it, each with SRAM of its own: weights that fit stay there. Right, MemoryX, a memory beside the machine. Between them the door: weights that do not fit come in layer by layer."
# caption: "Eight by eight squares stand for some 900 000 cores [^argonne-cerebras]."
# ///
#
# /// callout | trip
# **Nothing on this page has run on a wafer, and nothing was compiled for one.** The package `cerebras-sdk` (2.10.0) is a client for a machine
# that you have, 25 kB, without compiler and simulator; `cerebras-cloud-sdk` asks a web service. So of Cerebras all is *cited*. *Measured here*,
# on our own card, is what a step costs when its bytes decide.
# ///

# %% tags=["fold"]
import math

from course_chips.cited import told
from course_kernels.measure import quantity, record
from course_models.config import LLAMA_8B, weight_bytes

wse3 = told("wse3")
HELD, PER_S = wse3["memory_gb"].value * 1e9, wse3["gb_per_s"].value * 1e9
DOOR = wse3["door_gbit_per_s"].value * 1e9 / 8  # bytes a second
PEAK = wse3["ai_pflops"].value * 1e15
EACH_CYCLE = 2 * wse3["cores"].value * wse3["numbers_at_once"].value  # FLOP


def lying(weights, byte_each=2):
    """A model of so many weights on wafers that hold nothing else."""
    held = weights * byte_each
    return {
        "gb": quantity(held / 1e9, "GB"),
        "wafers": quantity(math.ceil(held / HELD)),
        "sram_us": quantity(1e6 * held / PER_S, "µs"),
        "door_ms": quantity(1e3 * held / DOOR, "ms"),
    }


small = lying(weight_bytes(LLAMA_8B) // 2)
token_us = 1e6 / wse3["said_tokens_per_s"].value
record(
    wse3=wse3,
    door={
        "gb_per_s": quantity(DOOR / 1e9, "GB/s", how="given"),
        "tokens": quantity(PEAK / DOOR),  # 2 FLOP a weight, 2 bytes a weight
        "tokens_of_eighth": quantity(PEAK / 8 / DOOR),
    },
    small=small,
    large=lying(70_553_706_496),  # weights of Llama 3.1 70B, all of them
    huge=lying(405e9),
    said={
        "token_us": quantity(token_us, "µs"),
        "of_floor": quantity(small["sram_us"].value / token_us),
        "layer_us": quantity(token_us / LLAMA_8B.layers, "µs"),
    },
    cycle={
        "flop": quantity(EACH_CYCLE, "FLOP"),
        "ghz": quantity(PEAK / EACH_CYCLE / 1e9, "GHz"),
    },
)

# %% [markdown]
# ## Bytes that cost nothing
#
# The third wafer, WSE-3, has {{ wse3.memory_gb:.0f}} GB of SRAM, which give {{ wse3.gb_per_s / 1000000:.0f}} PB/s together [^argonne-cerebras].
# The 8B shape has {{ small.gb:.1f}} GB of weights and fits. All of them are read in {{ small.sram_us:.2f}} µs: the byte floor of a token.
#
# /// predict | Cerebras claims {{ wse3.said_tokens_per_s:,.0f}} tokens/s for one reader of an 8B model in 16 bits. What part of a token's time do its bytes explain?
# - [said.of_floor >= 0.3] 30 % or more
# - [0.03 <= said.of_floor < 0.3] 3 to 30 %
# - [said.of_floor < 0.03] Less than 3 %
# /// reveal
# {{ said.of_floor:.1%}}. At that rate [^register-wafer] a token takes {{ said.token_us:.0f}} µs, {{ said.layer_us:.0f}} µs for each of 32 layers.
# What takes so long is not said. But layers wait for one another, and in each a sum over many cores has to travel from neighbour to neighbour.
#
# /// table
# columns: ["one reader of the 8B shape, 16 bits", "tokens/s", "of the byte floor"]
# rows:
#   - ["WSE-3, as Cerebras claims, 2024", "{{ wse3.said_tokens_per_s:,.0f}}", "{{ said.of_floor:.1%}}"]
#   - ["*measured here*, {{ one_token.gpu.name }}, our five kernels a layer", "{{ one_token.rate.our_step:.0f}}", "{{ one_token.decode.our_step.of_peak:.0%}}"]
# caption: "The floor is at the bandwidth of the data sheet, in both rows. The claim is of a trained model with its own context, ours of the same shape with random weights."
# ///
# ///
#
# On our card bytes decide. Where bytes cost nothing, a token is done sooner, if the claim is right, and yet it is far from its floor:
# *something else has become the bottleneck*. Ask for it before you quote a bandwidth.

# %% [markdown]
# ## When it does not fit
#
# /// table
# columns: ["weights in two bytes", GB, "wafers that hold them", "one pass through the door, ms"]
# rows:
#   - ["8B", "{{ small.gb:.0f}}", "{{ small.wafers:.0f}}", "{{ small.door_ms:.0f}}"]
#   - ["70B", "{{ large.gb:.0f}}", "{{ large.wafers:.0f}}", "{{ large.door_ms:,.0f}}"]
#   - ["405B", "{{ huge.gb:.0f}}", "{{ huge.wafers:.0f}}", "{{ huge.door_ms:,.0f}}"]
# caption: "Worked out from printed figures; keys, values and activations want room as well."
# ///
#
# So *one chip, and no communication between chips* holds up to {{ wse3.memory_gb:.0f}} GB. For 70B, Cerebras itself spoke of four machines
# [^register-wafer].
#
# The other way is *weight streaming*. What stands for the tokens stays on the wafer. Weights lie outside, in MemoryX, and come in layer by layer
# through {{ wse3.door_gbit_per_s / 1000:.1f}} Tbit/s [^argonne-cerebras], which is {{ door.gb_per_s:.0f}} GB/s. Each weight then does its two
# operations for every token that waits.
#
# /// predict | How many tokens must share a pass, so that at its printed peak the wafer does not wait for the door?
# - [door.tokens < 1000] Hundreds
# - [1000 <= door.tokens < 100000] Thousands, or tens of thousands
# - [door.tokens >= 100000] Hundreds of thousands
# /// reveal
# {{ door.tokens:,.0f}}. Even if the peak were eight times too high, and eight is what is claimed for zeros left out [^tomshardware-wse3], it
# would be {{ door.tokens_of_eighth:,.0f}}.
#
# It is the ridge again, at another door: operations a second over bytes a second. For HBM of our own card it is
# {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}}. A batch of training has that many tokens, a chat has not: streaming is a way to train.
# ///
#
# Several machines share one batch. SwarmX sends all of them the same weights and adds up their gradients [^argonne-cerebras].
# So *linear scaling without distributed training* is half true: you write no code for it, but it is data parallelism, with the same sums to
# exchange as anywhere.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where a model fits on a wafer or a few, and one reader wants the next token soon.
# - **It wins** in training a large model on large batches, with the code of a small one.
# - **It trips** over context: keys and values lie in the same {{ wse3.memory_gb:.0f}} GB as the weights.
# - **It trips** over work that neither fits nor has many tokens: then all wait at the door.

# %% [markdown]
# ## The numbers that matter
#
# As they are printed, for one wafer; the last column is the data sheet of our own card.
#
# | | WSE-3, 2024 | {{ gpu.name }} |
# | --- | ---: | ---: |
# | cores, or multiprocessors | {{ wse3.cores:,.0f}} [^argonne-cerebras] | {{ l1.card.sms:.0f}} |
# | memory for weights | {{ wse3.memory_gb:.0f}} GB, SRAM [^argonne-cerebras] | {{ l1.card.hbm_gib:.0f}} GiB, HBM |
# | its bandwidth, TB/s | {{ wse3.gb_per_s / 1000:,.0f}} [^argonne-cerebras] | {{ gpu.gb_per_s / 1000:.1f}} |
# | dense peak in 16 bits, TFLOP/s | not printed | {{ gpu.bf16_tflops:.0f}} |
#
# What is printed is {{ wse3.ai_pflops:.0f}} PFLOP/s [^tomshardware-wse3], in some places as fp16. The exercise tests it. *Measured here*, on
# {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_chips.cited wse3
# ```
#
# That prints each figure of this page with its source and its date.
#
# **Where the course teaches it:** a step and its floor, [one token](../one_token.py#the-floor-of-a-step-by-hand); the ridge,
# [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline); a number above its roof, [L3](../lectures/l3_memory.py#how-much-at-once); what does
# not fit on one card, [experts on two](../experts_on_two_cards.py#what-the-link-gives).
#
# /// exercise | Test a peak | 4 minutes
# A core of the WSE-3 multiplies and adds eight fp16 numbers in a cycle [^nextplatform-wse3], and there are 900 000. At which clock would all of
# them together do {{ wse3.ai_pflops:.0f}} PFLOP/s? What do you conclude?
# /// answer
# A cycle is 2 × 8 × 900 000 = 14 400 000 operations, so the clock would be {{ cycle.ghz:.1f}} GHz. No chip of this kind has such a clock. So the
# peak cannot be a dense one. Most likely it counts products with zeros that are left out; how many, and at which clock, is not printed. So we
# print no ridge for this chip.
# ///
