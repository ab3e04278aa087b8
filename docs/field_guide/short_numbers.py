# ---
# id: field_short
# title: "Short numbers: training in mixed precision, and eight bits that lose"
# nav: Short numbers
# description: "Which numbers of a training step may be short and which may not, what loss scaling is for, and how INT8 or FP8 comes to take longer than sixteen bits."
# ---

# %% [markdown]
# # Short numbers: training in mixed precision, and eight bits that lose
#
# By the end of this page you can
#
# - say which numbers of a training step may be short and which must be long, and show it with a pencil;
# - say what loss scaling is for, and with which type you need none;
# - work out beforehand whether eight bits can pay.
#
# **In one sentence:** what is multiplied may be short, what is added up many times stays long, and eight bits pay only where they save more than it costs
# to make them.
#
# /// figure | docs/assets/figures/mixed_precision.svg
# alt: "A ring of four boxes. Master weights in fp32 are rounded to weights in bf16. These go into forward and backward, where tensor cores multiply bf16 and add in fp32. Out come gradients in bf16. The optimizer, in fp32, adds them to the master weights."
# caption: "Mixed-precision training. fp32 is long, bf16 is short."
# ///
#
# /// callout | trip
# *Cited*: a manual, or somebody's report, with its source. *Worked out*: with a pencil, or from what the lessons measured. *Measured here*: on our own card,
# {{ gpu.name }}. We have no kernel in INT8: what is measured of eight bits here is FP8, which has as many bytes.
# ///

# %% tags=["fold"]
import struct

from course_kernels.measure import quantity, record


def bf16(x):
    """Return x rounded to the nearest bf16, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def fp32(x):
    """Return x rounded to fp32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def fp16(x):
    """Return x rounded to fp16."""
    return struct.unpack("<e", struct.pack("<e", x))[0]


UPDATES, UPDATE = 1000, 0.001
kept = {"bf16": 1.0, "fp32": 1.0}
for _ in range(UPDATES):
    kept["bf16"] = bf16(kept["bf16"] + bf16(UPDATE))
    kept["fp32"] = fp32(kept["fp32"] + fp32(UPDATE))

GRADIENT, SCALE = 1e-8, 65536
OUT, IN = 28672, 4096  # the weights that W4 measures
record(
    updates=quantity(UPDATES, how="given"),
    kept={name: quantity(weight) for name, weight in kept.items()},
    lost=quantity(fp16(GRADIENT)),
    saved=quantity(fp16(GRADIENT * SCALE) / SCALE * 1e8),
    each_bytes=quantity(2 + 2 + 4 + 4 + 4, "B"),
    model_tb=quantity(70e9 * (2 + 2 + 4 + 4 + 4) / 1e12, "TB"),
    weights={
        "sixteen": quantity(2 * OUT * IN / 1e6, "MB"),
        "eight": quantity(OUT * IN / 1e6, "MB"),
        "widened": quantity((1 + 2 + 2) * OUT * IN / 1e6, "MB"),
    },
)

# %% [markdown]
# ## What may be short
#
# Training is a long sum of small numbers, for each weight.
#
# /// predict | A weight of 1 gets {{ updates:,.0f}} updates of 0.001 each, and is kept in bf16. What is it afterwards?
# - [kept.bf16 < 1.25] Still about 1
# - [1.25 <= kept.bf16 <= 1.75] About one and a half
# - [kept.bf16 > 1.75] About 2, as it should be
# /// reveal
# {{ kept.bf16:.3f}}. From 1 on, bf16 goes in steps of 1/128, and each time 1.001 is rounded back to 1. In fp32 it comes to {{ kept.fp32:.3f}}.
# ///
#
# So **mixed-precision training** keeps two copies of each weight, a long one to which updates are added, and a short one that is multiplied.
#
# | in a step of training | type | because |
# | --- | --- | --- |
# | weights and activations that are multiplied, gradients | bf16 or fp16 | tensor cores, and half of the bytes |
# | the sum inside a multiply | fp32 | [a short sum stops growing](../lectures/l6_tensor_cores.py#where-a-sum-stops-growing) |
# | the master weights | fp32 | updates are small |
# | the two averages that Adam keeps | fp32 | they are sums, too |
# | softmax, norms, the loss | fp32 | they are reductions, which often need its range [^torch-amp] |
#
# With these types a weight takes {{ each_bytes:.0f}} bytes: 2 and 2 for the short copy and the gradient, three times 4 for the rest. 70 billion weights are {{ model_tb:.2f}} TB.
#
# **Loss scaling.** fp16 has ten bits of fraction and few of exponent. A gradient of 0.00000001 becomes {{ lost:.0f}}. Multiply the loss by 65536, and all gradients are as much
# larger; afterwards divide. `GradScaler` does that, and skips a step in which something became infinite [^torch-amp]. bf16 has the exponent of fp32, so it needs none.

# %% [markdown]
# ## Eight bits that lose
#
# Weights of eight bits are half as many bytes. That should pay where bytes decide. But rows that come in sixteen bits must be made short first: find the largest,
# work out the scale, divide, round. In plain PyTorch these are five small kernels.
#
# /// define | made.m1 = w4.few.fp8_library.m1.us + 5 * start.sweep.cuda.n12.us
# unit: µs
# what: the library's multiply in FP8, one row, 28672 × 4096, and five kernels as short as a kernel can be
# ///
#
# /// define | made.m16 = w4.few.fp8_library.m16.us + 5 * start.sweep.cuda.n12.us
# unit: µs
# what: the same with 16 rows
# ///
#
# /// define | made.m128 = w4.few.fp8_library.m128.us + 5 * start.sweep.cuda.n12.us
# unit: µs
# what: the same with 128 rows
# ///
#
# /// predict | One row times 28672 × 4096 weights, by the library: {{ weights.sixteen:.0f}} MB of them in bf16, or {{ weights.eight:.0f}} MB in FP8, behind five kernels that do next to nothing. Which way is done first?
# - [made.m1 < 0.95 * w4.few.cublas.m1.us] FP8, five small kernels included
# - [0.95 * w4.few.cublas.m1.us <= made.m1 <= 1.05 * w4.few.cublas.m1.us] Neither: less than a twentieth apart
# - [made.m1 > 1.05 * w4.few.cublas.m1.us] bf16
# /// reveal
# {{ made.m1:.1f}} µs with eight bits, {{ w4.few.cublas.m1.us:.1f}} µs with sixteen. The multiply itself is done after {{ w4.few.fp8_library.m1.us:.1f}} µs, but even a kernel that adds 4096 pairs of numbers
# takes {{ start.sweep.cuda.n12.us:.1f}} µs, and there are five.
#
# /// table
# columns: ["µs, worked out from measured parts", "1 row", "16 rows", "128 rows"]
# rows:
#   - ["bf16, the library", "{{ w4.few.cublas.m1.us:.1f}}", "{{ w4.few.cublas.m16.us:.1f}}", "{{ w4.few.cublas.m128.us:.1f}}"]
#   - ["FP8, the library, rows already short", "{{ w4.few.fp8_library.m1.us:.1f}}", "{{ w4.few.fp8_library.m16.us:.1f}}", "{{ w4.few.fp8_library.m128.us:.1f}}"]
#   - ["and five small kernels before it", "{{ made.m1:.1f}}", "{{ made.m16:.1f}}", "{{ made.m128:.1f}}"]
# caption: "28672 × 4096 weights. The multiplies are W4's, the small kernel is that of the first page; nobody timed the five in a row."
# ///
# ///
#
# The cure is to make the rows short where they are made, in the norm or the gate before, while they are in registers.
#
# ### Widened first, and what others found {.beyond}
#
# Worse is to store eight bits and multiply sixteen, with a kernel of its own between: it reads one byte of each weight and writes two, and the multiply reads these.
# Five bytes instead of two: {{ weights.widened:.0f}} MB instead of {{ weights.sixteen:.0f}}. A kernel that [widens in registers](../workshops/w4_serving.py#shorter-weights) moves {{ weights.eight:.0f}} MB.
#
# On an RTX 3090 somebody's LLaMA-7B took 33 ms in fp16, and 155 ms with LLM.int8() [^bnb-347]. Its author: the kernels were made for training; small
# matrices do not fill the card, and quantising costs too much beside them [^bnb-511]. And on Blackwell's cards vLLM has no INT8 at all; it says to take FP8 [^vllm-int8].

# %% [markdown]
# ## When it wins, when it trips
#
# - **bf16 wins** in training: no loss scaling.
# - **Eight bits win** with many rows, where arithmetic decides, and with few, where the rows are made short in passing.
# - **It trips** over a scale for a whole tensor, and one large number in it: see the exercise.
# - **It trips** over an error that nobody looked at. Ask for [bytes and error](../workshops/w4_serving.py#what-the-bits-cost) together.

# %% [markdown]
# ## The numbers that matter
#
# *Measured here*, on {{ gpu.name }}: the library's multiply of 4096 × 4096 × 4096, and how far the product is off.
#
# | type | TFLOP/s | of its peak | error, millionths |
# | --- | ---: | ---: | ---: |
# | fp32 | {{ l6.speed.fp32.tflops:.0f}} | {{ l6.speed.fp32.of_peak:.0%}} | {{ l6.error.fp32.rms:.1f}} |
# | TF32 | {{ l6.speed.tf32.tflops:.0f}} | {{ l6.speed.tf32.of_peak:.0%}} | {{ l6.error.tf32.rms:.0f}} |
# | bf16 | {{ l6.speed.bf16.tflops:.0f}} | {{ l6.speed.bf16.of_peak:.0%}} | {{ l6.error.bf16.rms:,.0f}} |
# | FP8, e4m3 | {{ l6.speed.fp8.tflops:.0f}} | {{ l6.speed.fp8.of_peak:.0%}} | {{ l6.error.fp8.rms:,.0f}} |
#
# ## What to type
#
# ```python
# with torch.autocast("cuda", dtype=torch.bfloat16):   # the weights stay fp32
#     loss = model(x, y)
# loss.backward()
# optimizer.step()
# ```
#
# With `torch.float16` instead, put `torch.amp.GradScaler` around the last two lines.
#
# **Where the course teaches it:** [shorter numbers](../lectures/l6_tensor_cores.py#shorter-numbers), their error and what they buy; [shorter
# weights](../workshops/w4_serving.py#shorter-weights), in a server; [the transformer engine](ampere_ada_hopper.py).
#
# /// exercise | One large number | 5 minutes
# Four numbers: 0.1, 0.3, 1.0 and 60. They share a scale.
#
# 1. In INT8 60 becomes 127, and the others are rounded to whole numbers. What comes back?
# 2. In FP8, e4m3, 60 becomes 448. From 1/2 to 1 its steps are 1/16, and with each power of two they double. What comes back?
# 3. Which of the two would you take for activations with a few large numbers, and what would you do in INT8?
# /// answer
# 1. A step is 60/127, about 0.47. So 0.1 becomes 0, 0.3 becomes 0.47, and 1.0 becomes 0.94.
# 2. 0.100, 0.301 and 1.004: each is off by a share of itself.
# 3. FP8. In INT8, give every row or group a scale of its own, or take the few columns with large numbers out and multiply them in sixteen bits.
# ///
