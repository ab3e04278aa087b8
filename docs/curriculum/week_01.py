# ---
# id: week_01
# title: "Week 1: the roofline"
# search: {rank: 2}
# nav: "1 · Roofline"
# description: "One drawing that says of any operator what it waits for; a forward pass of GPT-2 forecast operator by operator, then profiled; and what one token of it reaches."
# needs: gpu
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
            "tflop": quantity(operators[name][0] / 1e12, "TFLOP"),
            "gb": quantity(operators[name][1] / 1e9, "GB"),
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
# Now the same on a card. The model is our own: GPT-2's shape, random weights, attention written out, each operator one or two of PyTorch's (`src/course_models/gpt2.py`). Its logits are first held against the same weights in double precision. Then PyTorch's profiler times each kernel, and we sum them by the lines of the forecast.

# %% tags=["fold"]
import copy

import torch
from course_kernels.measure import stopwatch
from course_kernels.problem import worst_error
from course_models.gpt2 import GPT2, LINES, Shape
from course_models.kernel_times import ELSE, profiled

HELD = 512  # tokens before the one that is decoded
ALLOWED = 0.03  # of a logit: four times what rounding to fp16 did on a CPU
ON = "cuda" if torch.cuda.is_available() else "cpu"


def check(model, tokens):
    """Refuse a model whose logits are off by more than rounding, all at once or one token after the other."""
    exact = copy.deepcopy(model).double()(tokens)
    keys, values = model.cache(*tokens.shape)
    steps = [
        model.decode(tokens[:, held], keys, values, held)
        for held in range(tokens.shape[1])
    ]
    for found in (model(tokens), torch.stack(steps, dim=1)):
        error = worst_error(found, exact, rows_apart=True)
        if not error <= ALLOWED:
            raise RuntimeError(
                f"logits are off by {error:.3g}, more than {ALLOWED}"
            )


def captured(step):
    """A step as one graph, to be replayed."""
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def drawn(batch, length):
    """Words, any of them."""
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(model.shape.words, (batch, length), generator=generator)
    return words.to(ON)


model = GPT2(Shape(LAYERS, WIDTH, HEADS, WORDS), device=ON)
check(model, drawn(2, 64))

words, token = drawn(SEQUENCES, LENGTH), drawn(1, 1)[0]
keys, values = model.cache(1, HELD + 1)
keys.normal_(), values.normal_()


def forward():
    """All sequences."""
    return model(words)


def decode():
    """One token behind the others."""
    return model.decode(token, keys, values, HELD)


graph = captured(decode)
step = stopwatch({"forward": forward}, n=10)
step |= stopwatch({"decode": decode, "graph": graph.replay}, n=50)
model.watched = True
of_forward, of_decode = profiled(forward, LINES), profiled(decode, LINES)


def in_ms(us):
    """Milliseconds that a card's kernels ran."""
    return quantity(us / 1e3, "ms", "device")


record(
    took={f"n{i}": in_ms(of_forward.us[name]) for i, name in enumerate(ranked)},
    mine={
        "softmax": in_ms(of_forward.us["mask and softmax"]),
        "none": in_ms(of_forward.us[ELSE]),
        "sum": in_ms(sum(of_forward.us.values())),
    },
    step=step,
    kernels={
        "forward": quantity(of_forward.kernels, how="counted"),
        "decode": quantity(of_decode.kernels, how="counted"),
    },
    at_work={
        "forward": quantity(of_forward.busy_us, "µs", "device"),
        "decode": quantity(of_decode.busy_us, "µs", "device"),
    },
    held=quantity(HELD, how="counted"),
    token_mb=quantity(model.shape.decode_bytes(HELD, BYTES) / 1e6, "MB"),
)

# %% [markdown]
# /// define | least.n0 = 1000 * max(line.n0.tflop / gpu.fp16_tflops, line.n0.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 1 of the forecast
# ///
# /// define | least.n1 = 1000 * max(line.n1.tflop / gpu.fp16_tflops, line.n1.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 2 of the forecast
# ///
# /// define | least.n2 = 1000 * max(line.n2.tflop / gpu.fp16_tflops, line.n2.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 3 of the forecast
# ///
# /// define | least.n3 = 1000 * max(line.n3.tflop / gpu.fp16_tflops, line.n3.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 4 of the forecast
# ///
# /// define | least.n4 = 1000 * max(line.n4.tflop / gpu.fp16_tflops, line.n4.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 5 of the forecast
# ///
# /// define | least.n5 = 1000 * max(line.n5.tflop / gpu.fp16_tflops, line.n5.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 6 of the forecast
# ///
# /// define | least.n6 = 1000 * max(line.n6.tflop / gpu.fp16_tflops, line.n6.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 7 of the forecast
# ///
# /// define | least.n7 = 1000 * max(line.n7.tflop / gpu.fp16_tflops, line.n7.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 8 of the forecast
# ///
# /// define | least.n8 = 1000 * max(line.n8.tflop / gpu.fp16_tflops, line.n8.gb / gpu.gb_per_s)
# unit: ms
# what: the longer of two times on this card, line 9 of the forecast
# ///
# /// define | least_us = 1000 * token_mb / gpu.gb_per_s
# unit: µs
# what: least time of one token by its bytes
# ///
#
# /// predict | Mask and softmax do next to no arithmetic. How much of the time of all kernels is theirs on this card?
# - [mine.softmax < 0.1 * mine.sum] Less than a tenth
# - [0.1 * mine.sum <= mine.softmax < 0.5 * mine.sum] A tenth to a half
# - [mine.softmax >= 0.5 * mine.sum] More than half
# /// reveal
# {{ mine.softmax / mine.sum:.0%}} of {{ mine.sum:.1f}} ms.
#
# /// table
# columns: [operator, "at least on this card, ms", "took, ms", "% of its ceiling"]
# rows:
#   - ["{{ line.n0.name }}", "{{ least.n0:.2f}}", "{{ took.n0:.2f}}", "{{ least.n0 / took.n0:.0%}}"]
#   - ["{{ line.n1.name }}", "{{ least.n1:.2f}}", "{{ took.n1:.2f}}", "{{ least.n1 / took.n1:.0%}}"]
#   - ["{{ line.n2.name }}", "{{ least.n2:.2f}}", "{{ took.n2:.2f}}", "{{ least.n2 / took.n2:.0%}}"]
#   - ["{{ line.n3.name }}", "{{ least.n3:.2f}}", "{{ took.n3:.2f}}", "{{ least.n3 / took.n3:.0%}}"]
#   - ["{{ line.n4.name }}", "{{ least.n4:.2f}}", "{{ took.n4:.2f}}", "{{ least.n4 / took.n4:.0%}}"]
#   - ["{{ line.n5.name }}", "{{ least.n5:.2f}}", "{{ took.n5:.2f}}", "{{ least.n5 / took.n5:.0%}}"]
#   - ["{{ line.n6.name }}", "{{ least.n6:.2f}}", "{{ took.n6:.2f}}", "{{ least.n6 / took.n6:.0%}}"]
#   - ["{{ line.n7.name }}", "{{ least.n7:.2f}}", "{{ took.n7:.2f}}", "{{ least.n7 / took.n7:.0%}}"]
#   - ["{{ line.n8.name }}", "{{ least.n8:.2f}}", "{{ took.n8:.2f}}", "{{ least.n8 / took.n8:.0%}}"]
# caption: "{{ gpu.name }}: its dense fp16 peak and its bandwidth, both from the data sheet. Kernels of no line, such as the embedding's, ran for {{ mine.none:.2f}} ms. A line may have copies in it that no formula has."
# ///
#
# For each line far below 100 %: what else is in it? A line can also be above, where its tensors are small enough to wait in the second cache: the forecast let them travel.
# ///
#
# **And one token?** A model writes one at a time. Then every weight is read for a single row, {{ token_mb:.0f}} MB with {{ held:.0f}} tokens in the cache, and the floor is bytes alone: {{ least_us:.0f}} µs.
#
# /// predict | Which percent of the bandwidth does plain PyTorch reach while it decodes one token?
# - [least_us / step.decode < 0.2] Less than 20
# - [0.2 <= least_us / step.decode < 0.5] 20 to 50
# - [least_us / step.decode >= 0.5] 50 or more
# /// reveal
# {{ least_us / step.decode:.1%}}: a step takes {{ step.decode:.0f}} µs by the host's clock, for {{ kernels.decode:.0f}} kernels, copies among them. The card is at work for {{ at_work.decode:.0f}} of them, {{ at_work.decode / step.decode:.0%}}; the rest is the host's. Recorded as a graph, the same kernels take {{ step.graph:.0f}} µs, {{ least_us / step.graph:.1%}}.
#
# In the large pass a step takes {{ step.forward / 1000:.1f}} ms, and the card is at work for {{ at_work.forward / step.forward:.0%}} of that. What is left of a step is the third cause, *overhead*: the host has to write an order for each kernel, whether it is a large one or a small one.
# ///
#
# Now profile it yourself, on any GPU, with the library that has the real weights:
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
# Put your three largest lines beside the forecast. Then take `"eager"` out, so that attention is one kernel, and look at what has gone.
#
# ## Milestone
#
# /// exercise | One multiply under the roof | 10 minutes
# `matmul(A, B)` with A and B of 4096 by 4096 in fp16, on the same A100. How many operations, how many bytes if each number travels once, how many operations for each byte? On which side of the ridge is it, and how long does it take at least?
# /// answer
# There are {{ square.tflop:.3f}} TFLOP, two for each of 4096 · 4096 · 4096 pairs that meet, a product and a sum. Three matrices with two bytes a number are {{ square.mb:.1f}} MB: {{ square.intensity:,.0f}} operations for each byte. The ridge is at {{ ridge:.0f}}, so it waits for arithmetic, by far: {{ square.by_arithmetic:.0f}} µs, where the bytes take {{ square.by_bytes:.0f}}. If your clock
# says much more, it is the kernel, and [the climb](../lectures/l4_the_gemm_ladder.py) is about that.
# ///
#
# ## What could not run here
#
# The library's GPT-2 with its real weights: this course does not carry it, and its numbers would be of one version of it. You would see our lines, and beside them more kernels for copies and for what a framework does between operators.
#
# ## What next
#
# [Week 2](week_02.py) writes a kernel, and meets the memory that the slope of this drawing stands for.
