# ---
# id: field_apple
# title: "Apple: one pool of memory for all"
# nav: Apple
# description: "Unified memory as a count of bytes, what Apple's own MLX makes of four-bit weights and of our kernels on a CPU, and the graph that coremltools makes; MLX, llama.cpp and the Neural Engine."
# ---

# %% [markdown]
# # Apple: one pool of memory for all
#
# By the end of this page you can
#
# - say by a count of bytes when one large pool of memory helps, and when it does not;
# - quantise with MLX and know what happens to a number that is none;
# - say which of a Mac's units MLX, llama.cpp and Core ML use.
#
# **In one sentence:** a Mac's CPU, GPU and Neural Engine read one pool, *unified memory*, which is slower than a data-centre card's and larger
# than most, so it wins where a model would not fit elsewhere.
#
# /// figure | docs/assets/figures/one_pool.svg
# alt: "Left, a Mac: CPU, GPU and Neural Engine are all joined to one pool of memory. Right, a PC: the CPU with its memory, a thin bus, and a card with a fast but smaller memory of its own."
# caption: "The width of a line stands for bandwidth, roughly."
# ///
#
# /// callout | trip
# **Nothing on this page has run on an Apple chip.** *Run here on a CPU*: Apple's own MLX, on its CPU back end, and what it answered;
# its code for Apple's GPU is another. *Made here*: a graph, by coremltools. *Cited*: somebody else says so. *Measured here*:
# on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record

WEIGHTS, BITS = (
    400e9,
    4.25,
)  # mxfp4: four bits each, and a scale of eight for 32 of them
record(
    apple=told("apple", products="matmul", whole="scaled_dot_product_attention"),
    model={"gb": quantity(WEIGHTS * BITS / 8 / 1e9, "GB")},
    mac={
        "gb_per_s": quantity(819, "GB/s", how="given"),
        "gb": quantity(512, "GB", how="given"),
    },
    card={
        "gb_per_s": quantity(4800, "GB/s", how="given"),
        "gb": quantity(141, "GB", how="given"),
    },
    laptop={
        "gb": quantity(70e9 * BITS / 8 / 1e9, "GB"),
        "ms": quantity(70e9 * BITS / 8 / 546e6, "ms"),
    },
)

# %% [markdown]
# ## When a pool helps: count bytes
#
# To write one token, a model reads each of its weights once ([the floor of a step](../one_token.py#the-floor-of-a-step-by-hand)).
# Take 400 billion weights in four bits: {{ model.gb:.1f}} GB. A Mac with an M3 Ultra may have 512 GB, at 819 GB/s
# [^techpowerup-m3-ultra]. One H200 has {{ card.gb:.0f}} GB, at {{ card.gb_per_s:.0f}} GB/s [^nvidia-h200]. What does not fit stays in the host's memory and crosses the bus
# for each token, at the {{ l2.bus.pinned_in:.0f}} GB/s that we measured.
#
# /// define | floor.mac = 1000 * model.gb / mac.gb_per_s
# unit: ms
# what: one token, 400 billion weights, from the pool of an M3 Ultra
# ///
#
# /// define | floor.card = 1000 * (card.gb / card.gb_per_s + (model.gb - card.gb) / l2.bus.pinned_in)
# unit: ms
# what: one token, 400 billion weights, from an H200 and over the bus
# ///
#
# /// define | floor.cards = 1000 * model.gb / (2 * card.gb_per_s)
# unit: ms
# what: one token, 400 billion weights, from two H200
# ///
#
# /// predict | Which of the two has the lower floor for a token?
# - [floor.mac < floor.card] The Mac
# - [floor.mac >= floor.card] The H200, with its faster memory
# /// reveal
# The Mac: {{ floor.mac:.0f}} ms, and the card {{ floor.card:.0f}} ms. {{ (model.gb - card.gb) / l2.bus.pinned_in * 1000 / floor.card:.0%}} of those are the bus. But *two* such cards hold the model, and
# their floor is {{ floor.cards:.0f}} ms. A pool wins over what does not fit, and over nothing else.
# ///
#
# These are floors, counted in bytes. None of them was timed.

# %% [markdown]
# ## What MLX makes of four bits
#
# MLX is Apple's library of arrays. An array has no place: you say where an *operation* runs, on CPU or GPU, and nothing is
# copied [^mlx-docs]. Its formats are those of [W5](../workshops/w5_blackwell.py#the-second-scale): mxfp4 has a scale for 32 numbers, nvfp4 one
# for 16.
#
# /// predict | A group of 32 weights in mxfp4: 31 are 1, and one is NaN. How many of the 32 come back as NaN?
# - [apple.ran.special.with_nan.nans > 31] All 32: the format has a scale that says so
# - [0 < apple.ran.special.with_nan.nans <= 31] One, or some
# - [apple.ran.special.with_nan.nans <= 0] None
# /// reveal
# {{ apple.ran.special.with_nan.nans:.0f}}. All {{ apple.ran.special.with_nan.zeros:.0f}} come back as **zero**, and so they do for one infinity. You look for a NaN
# in the model's answers, and there is none.
#
# 32 weights of 6 · 10⁻³⁹ each, next to nothing, come back as infinity, all {{ apple.ran.special.tiny.infs:.0f}}
# (`findings/mlx_mxfp4_special_numbers.sh`).
# ///
#
# And ordinary weights? Here are normal numbers of three spreads. The error is a part of the spread.
#
# /// table
# turned: true
# columns: [format, bits a weight, "error, spread 1", "error, spread 0.02", "error, spread 0.002", "zeros, spread 0.002"]
# rows:
#   - [mxfp4, "{{ apple.ran.formats.mxfp4.bits:.2f}}", "{{ apple.ran.formats.mxfp4.one.error:.3f}}", "{{ apple.ran.formats.mxfp4.fiftieth.error:.3f}}", "{{ apple.ran.formats.mxfp4.five_hundredth.error:.3f}}", "{{ apple.ran.formats.mxfp4.five_hundredth.zeros:.0%}}"]
#   - [nvfp4, "{{ apple.ran.formats.nvfp4.bits:.2f}}", "{{ apple.ran.formats.nvfp4.one.error:.3f}}", "{{ apple.ran.formats.nvfp4.fiftieth.error:.3f}}", "{{ apple.ran.formats.nvfp4.five_hundredth.error:.3f}}", "{{ apple.ran.formats.nvfp4.five_hundredth.zeros:.0%}}"]
#   - ["nvfp4, and a scale for all", "{{ apple.ran.formats.nvfp4_whole.bits:.2f}}", "{{ apple.ran.formats.nvfp4_whole.one.error:.3f}}", "{{ apple.ran.formats.nvfp4_whole.fiftieth.error:.3f}}", "{{ apple.ran.formats.nvfp4_whole.five_hundredth.error:.3f}}", "{{ apple.ran.formats.nvfp4_whole.five_hundredth.zeros:.0%}}"]
#   - [mxfp8, "{{ apple.ran.formats.mxfp8.bits:.2f}}", "{{ apple.ran.formats.mxfp8.one.error:.3f}}", "{{ apple.ran.formats.mxfp8.fiftieth.error:.3f}}", "{{ apple.ran.formats.mxfp8.five_hundredth.error:.3f}}", "{{ apple.ran.formats.mxfp8.five_hundredth.zeros:.4%}}"]
# caption: "Run here on a CPU, by MLX. The third row hands in `global_scale`, the largest of all numbers."
# ///
#
# The scale of nvfp4 is a number of eight bits, and it has a smallest one. Below it everything is zero, without a word.
# MLX uses the second scale only if you hand it in.

# %% [markdown]
# ## And of our attention {.beyond}
#
# The loop is that of [FlashAttention](../workshops/w1_flash_attention.py#softmax-one-crate-at-a-time), in MLX's own operations:
#
# /// source | src/course_chips/apple_kernels.py#kernels
# ///
#
# /// claim | apple.ran.errors.attention_by_mlx > 10 * apple.ran.errors.attention
# In bfloat16, against float64, its worst error is {{ apple.ran.errors.attention:.4f}}. MLX's own attention, `mx.fast.scaled_dot_product_attention`, is off by
# {{ apple.ran.errors.attention_by_mlx:.3f}} on the same CPU, more than ten times as much. Ours keeps scores and sums in float32.
# /// otherwise
# In bfloat16, against float64, its worst error is {{ apple.ran.errors.attention:.4f}}, and that of MLX's own attention {{ apple.ran.errors.attention_by_mlx:.4f}}.
# ///
#
# Our multiply and MLX's agree: {{ apple.ran.errors.multiply:.4f}} and {{ apple.ran.errors.multiply_by_mlx:.4f}}.
#
# What the **Neural Engine** gets is a graph, and coremltools makes it of a module of PyTorch. Of its attention, for iOS 16:
#
# /// text | apple.attention_ios16.excerpt
# ///
#
# We handed in float32. All {{ apple.attention_ios16.halves:.0f}} operations are in fp16: that is coremltools' default. For iOS 18 there is
# {{ apple.attention_ios18.lines:.0f}} operation:
#
# /// text | apple.attention_ios18.excerpt
# ///
#
# Which unit takes it, a Mac decides when it loads the graph. On this machine coremltools says of that question that it is not supported.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where a model is too large for the card that you can pay, one reader waits, and the floor above is fast enough.
# - **It wins** where CPU and GPU take turns on the same data: nothing crosses a bus.
# - **It trips** where many readers share a step. Then products decide and not bytes, and for a Mac's products we found
#   no dense peak.
# - **"MLX and llama.cpp run on the Neural Engine"** is a common mistake. MLX's devices are the CPU and the GPU [^mlx-docs]. llama.cpp uses
#   ARM's vectors, Accelerate and Metal, so the CPU and the GPU [^llama-cpp]. The Neural Engine is reached by Core ML.

# %% [markdown]
# ## The numbers that matter
#
# | | M4 Max [^macrumors-m4-max] | M3 Ultra [^techpowerup-m3-ultra] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: |
# | memory, GB/s | 546 [^macrumors-m4-max] | {{ mac.gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | memory, GB, at most | 128 [^macrumors-m4-max] | {{ mac.gb:.0f}} | |
# | bf16, dense, TFLOP/s | we found none | we found none | {{ gpu.bf16_tflops:.0f}} |
#
# Without a dense peak there is no ridge to compare. Newer chips than these are sold. *Measured here*, on {{ gpu.name }}: the bus carries
# {{ l2.bus.pinned_in:.0f}} GB/s, and our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s.
#
# ## What to type
#
# ```
# nox -s chips -- apple
# ```
#
# That runs MLX's CPU back end and makes the graphs. On a Mac, `pip install mlx` is all that the GPU needs. These made the record:
#
# /// text | apple.compilers
# fold: "Compilers and their versions"
# ///
#
# **Where the course teaches it:** what a step must read, [the floor of a step](../one_token.py#the-floor-of-a-step-by-hand); what a bus carries,
# [streams](../lectures/l2_the_cuda_model.py#two-things-at-once-streams); what a shared scale does,
# [sixteen numbers](../workshops/w5_blackwell.py#sixteen-numbers); when short weights help,
# [shorter weights](../workshops/w4_serving.py#shorter-weights).
#
# /// exercise | Seventy billion on a laptop | 4 minutes
# A laptop with an M4 Max has 128 GB at 546 GB/s [^macrumors-m4-max]. You want a model of 70 billion weights. Does it fit in bf16? In mxfp4, with its scales? And
# what is the floor of a token, where it fits?
# /// answer
# In bf16 it has 140 GB: it does not fit. In mxfp4 a weight has 4.25 bits, and all have {{ laptop.gb:.1f}} GB: it fits, with room for a cache.
# At that bandwidth they take {{ laptop.ms:.0f}} ms.
# ///
