# ---
# id: week_01
# title: "Week 1: the roofline"
# search: {rank: 2}
# nav: "1 · Roofline"
# description: "One drawing that says of any operator what it waits for; a forward pass of GPT-2 forecast operator by operator, before a profiler looks at it."
# ---

# %% [markdown]
# # Week 1: the roofline
#
# /// week
# ///
#
# By the end of this week you can
#
# - work out how many operations an operator does for each byte it moves;
# - place it under a card's two ceilings, and say what it waits for;
# - forecast the largest lines of a profile before you open it.
#
# ## Why this week
#
# Every week of this year asks the same thing: *what percent of peak are you at, and why not more?* There are two peaks, of arithmetic and of bandwidth, and most operators can only ever reach one. A roofline says which, with one division.
#
# ## Before you begin
#
# - What does a line of CUDA look like? You need not know. If you are curious: [your first kernel](../start_here.py).
# - Which machine do you need? None to forecast; any GPU to profile. Later most weeks want a GPU for an hour or two: [no GPU, or a different one](../start_here.py#no-gpu-or-a-different-one).
#
# ## Read
#
# /// reading
# he2022: "The best hour of the year. Take its three causes: arithmetic, memory, overhead. Its numbers are of an A100, so divide anew for your card."
# scaling-book-roofline: "The same drawing, from people who build for TPUs. Take the derivation of the ridge, and its rule that for a multiply the batch in tokens is the intensity. Its 240 is a TPU's [^scaling-book-roofline]: a GPU's may be smaller or larger, so work yours out."
# transformer-math: "Now only to see what there is: week 3 reads it with a pencil."
# hopper-whitepaper: "Read its beginning, and then its part on the SM, for the names: what a GPC, an SM and a cluster are. Its largest peaks are *with sparsity*, which you will hardly ever have: this course counts the dense ones."
# torch-profiler-recipe: "Type it. It begins with a small network on the CPU; its steps on a GPU come after. Lists often lead to an older recipe of nearly the same name."
# ///
#
# ## Ideas
#
# - Arithmetic intensity: [the first roofline](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
# - The roofline, its two ceilings: [in short](../field_guide/roofline_in_short.md).
# - The ridge point: [where is it, on which card?](../two_cards.md#what-the-data-sheets-say)
#
# /// idea | HBM and SRAM: how much, how fast, how far?
# HBM is the card's large memory: tens of gigabytes, and far away. SRAM is on the chip, and near: registers and shared memory, some hundred kilobytes for each multiprocessor, and a second cache for all of them. A roofline's slope is the way to HBM. What
# you keep in SRAM is not on it, and that is what most of this year's kernels are about. [L3](../lectures/l3_memory.py#how-far-is-it) measures both.
# ///
#
# - Multiprocessors, warps, threads: [this card, drawn from its own answers](../lectures/l1_what_a_gpu_is.py#this-card-drawn-from-its-own-answers).
#
# /// idea | How do you read a trace of the PyTorch profiler?
# As two lanes. One is the host, which writes orders; the other is the card, which works them off. Sum the card's kernels by name, and look at the largest three. Then look at the gaps: where the card waits for orders, no kernel is to blame. [L7](../lectures/l7_profiling.py#where-does-the-time-go) has such a trace,
# drawn.
# ///
#
# ## Do
#
# Take GPT-2, the small one: 12 layers, a width of 768, 12 heads of 64, a feed-forward block four times as wide, 50257 words, 1024 tokens at most [^gpt2-config]. Before you profile it, forecast the profile. Say eight sequences of 1024 tokens go through, in fp16. Take an A100:
# {{ a100.peak:.0f}} TFLOP/s and {{ a100.bandwidth:.0f}} TB/s [^nvidia-a100]. Each operator takes at least the longer of two times: its operations by the peak, its bytes by the bandwidth.

# %%
LAYERS, WIDTH, HEADS, HEAD, WORDS = 12, 768, 12, 64, 50257
SEQUENCES, LENGTH, BYTES = 8, 1024, 2
PEAK, BANDWIDTH = 312e12, 2e12  # an A100's, FLOP/s and bytes/s
TOKENS = SEQUENCES * LENGTH


def multiply(m, n, k):
    """Operations and bytes of an m × k by k × n multiply."""
    return 2 * m * n * k, BYTES * (m * n + m * k + k * n)


def carried(reads, writes, numbers, each=1):
    """Those of one that only carries: so many tensors in and out."""
    return each * numbers, BYTES * (reads + writes) * numbers


def times(count, cost):
    """So often."""
    return count * cost[0], count * cost[1]


def both(one, other):
    """One after the other."""
    return one[0] + other[0], one[1] + other[1]


hidden, pairs = 4 * WIDTH, SEQUENCES * HEADS * LENGTH * LENGTH
operators = {
    "queries, keys, values": times(LAYERS, multiply(TOKENS, 3 * WIDTH, WIDTH)),
    "scores and sums of attention": times(
        LAYERS * SEQUENCES * HEADS * 2, multiply(LENGTH, LENGTH, HEAD)
    ),
    "mask and softmax": times(LAYERS, carried(2, 2, pairs, each=5)),
    "output of attention": times(LAYERS, multiply(TOKENS, WIDTH, WIDTH)),
    "feed-forward": times(
        LAYERS,
        both(multiply(TOKENS, hidden, WIDTH), multiply(TOKENS, WIDTH, hidden)),
    ),
    "GELU": times(LAYERS, carried(1, 1, TOKENS * hidden, each=8)),
    "norms": times(2 * LAYERS + 1, carried(1, 1, TOKENS * WIDTH, each=8)),
    "sums": times(2 * LAYERS, carried(2, 1, TOKENS * WIDTH)),
    "logits": multiply(TOKENS, WORDS, WIDTH),
}


def ms(cost):
    """The longer of two times."""
    return 1e3 * max(cost[0] / PEAK, cost[1] / BANDWIDTH)


def waits_for(cost):
    """What the longer one is of."""
    return "bytes" if cost[1] / BANDWIDTH > cost[0] / PEAK else "arithmetic"


ranked = sorted(operators, key=lambda name: ms(operators[name]), reverse=True)

# %% tags=["fold"]
from course_kernels.measure import quantity, record, text

SQUARE = multiply(4096, 4096, 4096)
record(
    a100={
        "peak": quantity(PEAK / 1e12, "TFLOP/s", how="given"),
        "bandwidth": quantity(BANDWIDTH / 1e12, "TB/s", how="given"),
    },
    ridge=quantity(PEAK / BANDWIDTH),
    line={
        f"n{i}": {
            "name": text(name),
            "intensity": quantity(operators[name][0] / operators[name][1]),
            "ms": quantity(ms(operators[name]), "ms"),
            "for_": text(waits_for(operators[name])),
        }
        for i, name in enumerate(ranked)
    },
    whole=quantity(sum(map(ms, operators.values())), "ms"),
    softmax=quantity(
        ms(operators["mask and softmax"]) / sum(map(ms, operators.values()))
    ),
    softmax_ms=quantity(ms(operators["mask and softmax"]), "ms"),
    forward_ms=quantity(ms(operators["feed-forward"]), "ms"),
    logits_ms=quantity(ms(operators["logits"]), "ms"),
    square={
        "tflop": quantity(SQUARE[0] / 1e12, "TFLOP"),
        "mb": quantity(SQUARE[1] / 1e6, "MB"),
        "intensity": quantity(SQUARE[0] / SQUARE[1]),
        "by_arithmetic": quantity(1e6 * SQUARE[0] / PEAK, "µs"),
        "by_bytes": quantity(1e6 * SQUARE[1] / BANDWIDTH, "µs"),
    },
)

# %% [markdown]
# /// predict | Attention is written plainly: scores to memory, mask and softmax, back to memory. Which line of the forecast is the longest?
# - [forward_ms >= max(softmax_ms, logits_ms)] The feed-forward block, which does most of the arithmetic
# - [logits_ms > max(forward_ms, softmax_ms)] The logits, over 50257 words
# - [softmax_ms > max(forward_ms, logits_ms)] Mask and softmax, which do next to none
# /// reveal
# The floors of all lines add up to {{ whole:.1f}} ms, and {{ softmax:.0%}} of it is mask and softmax: square tensors that travel four times for a handful of operations on each number.
#
# /// table
# columns: [operator, "operations for each byte", "at least, ms", waits for]
# rows:
#   - ["{{ line.n0.name }}", "{{ line.n0.intensity:.1f}}", "{{ line.n0.ms:.2f}}", "{{ line.n0.for_ }}"]
#   - ["{{ line.n1.name }}", "{{ line.n1.intensity:.1f}}", "{{ line.n1.ms:.2f}}", "{{ line.n1.for_ }}"]
#   - ["{{ line.n2.name }}", "{{ line.n2.intensity:.1f}}", "{{ line.n2.ms:.2f}}", "{{ line.n2.for_ }}"]
#   - ["{{ line.n3.name }}", "{{ line.n3.intensity:.1f}}", "{{ line.n3.ms:.2f}}", "{{ line.n3.for_ }}"]
#   - ["{{ line.n4.name }}", "{{ line.n4.intensity:.1f}}", "{{ line.n4.ms:.2f}}", "{{ line.n4.for_ }}"]
#   - ["{{ line.n5.name }}", "{{ line.n5.intensity:.1f}}", "{{ line.n5.ms:.2f}}", "{{ line.n5.for_ }}"]
#   - ["{{ line.n6.name }}", "{{ line.n6.intensity:.1f}}", "{{ line.n6.ms:.2f}}", "{{ line.n6.for_ }}"]
#   - ["{{ line.n7.name }}", "{{ line.n7.intensity:.1f}}", "{{ line.n7.ms:.2f}}", "{{ line.n7.for_ }}"]
#   - ["{{ line.n8.name }}", "{{ line.n8.intensity:.1f}}", "{{ line.n8.ms:.2f}}", "{{ line.n8.for_ }}"]
# caption: "Worked out for an A100, from the shape alone: no line was measured. The ridge is at {{ ridge:.0f}} operations for each byte."
# ///
# ///
#
# Now profile it, on any GPU:
#
# ```python
# import torch
# from torch.profiler import ProfilerActivity, profile
# from transformers import GPT2Config, GPT2LMHeadModel
#
# model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).cuda().half().eval()
# words = torch.randint(50257, (8, 1024), device="cuda")
# with torch.inference_mode():
#     model(words)
#     with profile(activities=[ProfilerActivity.CUDA]) as seen:
#         model(words)
#         torch.cuda.synchronize()
# print(seen.key_averages().table(sort_by="cuda_time_total", row_limit=12))
# ```
#
# Put your three largest lines beside the forecast. For each: what does it wait for, and which percent of its ceiling is it at? Then take `"eager"` out, so that attention is one kernel, and look at what has gone.
#
# ## Milestone
#
# /// exercise | One multiply under the roof | 10 minutes
# `matmul(A, B)` with A and B of 4096 by 4096 in fp16, on the same A100. How many operations, how many bytes if each number travels once, how many operations for each byte? On which side of the ridge is it, and how long does it take at least?
# /// answer
# There are {{ square.tflop:.3f}} TFLOP, two for each of 4096 · 4096 · 4096 meetings. Three grids with two bytes a number are {{ square.mb:.1f}} MB: {{ square.intensity:,.0f}} operations for each byte. The ridge is at {{ ridge:.0f}}, so it waits for arithmetic, by far: {{ square.by_arithmetic:.0f}} µs, where the bytes take {{ square.by_bytes:.0f}}. If your clock
# says much more, it is the kernel, and [the climb](../lectures/l4_the_gemm_ladder.py) is about that.
# ///
#
# ## What could not run here
#
# The profile of GPT-2 itself: it needs a library that this course does not carry, and its numbers would be of one version of it. A trace of the course's own model is in [L7](../lectures/l7_profiling.py#where-does-the-time-go). You would see two things that no forecast has: kernels
# beside those in the table, for copies and for what a framework does between operators, and gaps.
#
# ## What next
#
# [Week 2](week_02.py) writes a kernel, and meets the memory that the slope of this drawing stands for.
