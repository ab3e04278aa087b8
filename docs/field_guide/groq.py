# ---
# id: field_groq
# title: "Groq: weights on the chips, and a timetable"
# nav: Groq
# description: "What the LPU does: weights stay in SRAM on hundreds of chips, and a compiler plans every cycle. How many chips, how many readers, and the same two ideas on our own card. Cited."
# ---

# %% [markdown]
# # Groq: weights on the chips, and a timetable
#
# By the end of this page you can
#
# - work out how many chips a model needs when its weights must lie on them, and what that buys;
# - say why more readers help such a chip so little, and what a GPU has of its ideas.
#
# **In one sentence:** an LPU, Groq's *language processing unit*, keeps its share of the weights in SRAM right beside its multipliers, has no
# other memory, and does in every cycle what a compiler wrote down beforehand.
#
# SRAM is what caches and registers are made of. HBM is DRAM: far denser, and beside the chip.
#
# /// figure | docs/assets/figures/weights_in_chips.svg
# alt: "Above, a GPU: all weights lie in HBM beside the chip and cross over in every step; on the chip a scheduler and caches decide while it runs. Below, five LPUs in a row: each has its share of the weights in SRAM above its multipliers, only what stands for the token travels on, and a timetable says beforehand which chip works when."
# caption: "Five LPUs stand for some hundreds."
# ///
#
# /// callout | trip
# **Nothing on this page has run on an LPU, and nothing was compiled for one.** No compiler of Groq's is public: `groqflow` (4.3.1, of 2024), its
# front end, has no package for our Python, and `groq` is a client of its web service. So of Groq everything is *cited*. *Measured here*, on our
# own card, are the two ideas.
# ///

# %% tags=["fold"]
import math

from course_chips.cited import told
from course_kernels.measure import quantity, record
from course_models.config import LLAMA_8B, weight_bytes

lpu, later = told("groq_lpu"), told("groq_3")
SHARE = lpu["memory_mb"].value * 1e6  # bytes of weights that one chip can hold
PER_S = lpu["gb_per_s"].value * 1e9
LARGE = 139_003_428_864  # bytes of the 70B model's multiplies, from L1's receipt


def spread(held):
    """A model of so many bytes over chips that hold nothing else."""
    return {
        "gb": quantity(held / 1e9, "GB"),
        "chips": quantity(math.ceil(held / SHARE)),
        "queue_us": quantity(1e6 * held / PER_S, "µs"),  # one chip after the other
        "together_us": quantity(1e6 * SHARE / PER_S, "µs"),  # all at once
    }


record(
    lpu=lpu,
    groq_3=later,
    ridge=quantity(1e12 * lpu["fp16_tflops"].value / PER_S, "FLOP/B"),
    turn={  # to read all of one's memory once
        "lpu": quantity(1e6 * SHARE / PER_S, "µs"),
        "groq_3": quantity(
            1e3 * later["memory_mb"].value / later["gb_per_s"].value, "µs"
        ),
    },
    small=spread(weight_bytes(LLAMA_8B)),
    halved=spread(weight_bytes(LLAMA_8B) // 2),
    large=spread(LARGE),
)

# %% [markdown]
# ## How many chips, and what for?
#
# The first LPU has {{ lpu.memory_mb:.0f}} MB of SRAM, which gives {{ lpu.gb_per_s / 1000:.0f}} TB/s [^techpowerup-groq]. A step of decode reads
# every weight once. Take the 8B shape of [one token](../one_token.py#the-floor-of-a-step-by-hand), two bytes a weight: {{ small.gb:.1f}} GB in
# all.
#
# /// predict | How many of these chips does the 8B model need, for its weights alone?
# - [small.chips < 10] Fewer than 10
# - [10 <= small.chips < 50] 10 to 49
# - [small.chips >= 50] 50 or more
# /// reveal
# {{ small.chips:.0f}}. A model of 70 billion weights needs {{ large.chips:.0f}}. Each reader's keys and values want room as well.
# ///
#
# *Weights in SRAM remove the bottleneck of memory*, you read everywhere. It is true, and it leaves out the price, which is the number of chips.
# And once a chip reads all it has in {{ small.together_us:.1f}} µs, something else is the bottleneck: hops, and arithmetic.
#
# ### In a queue, or all at once {.beyond}
#
# /// table
# columns: ["weights in two bytes", GB, chips, "read in a queue, µs", "read all at once, µs", "our card's HBM, µs"]
# rows:
#   - ["the 8B shape", "{{ small.gb:.1f}}", "{{ small.chips:.0f}}", "{{ small.queue_us:.0f}}", "{{ small.together_us:.1f}}", "{{ 1000000 * small.gb / gpu.gb_per_s:,.0f}}"]
#   - ["the multiplies of 70B", "{{ large.gb:.0f}}", "{{ large.chips:.0f}}", "{{ large.queue_us:,.0f}}", "{{ large.together_us:.1f}}", "{{ 1000000 * large.gb / gpu.gb_per_s:,.0f}}"]
# caption: "Bytes over bandwidth, worked out from printed figures: nobody can read faster. In a queue each chip has some layers and waits for the one before it; all at once, each has a slice of every layer. Hops between chips cost extra."
# ///

# %% [markdown]
# ## How many readers share a step?
#
# On our card the weights are read once for all readers of a batch, so a second reader costs little, and so on up to
# [the ridge](../lectures/l1_what_a_gpu_is.py#the-first-roofline): with two bytes a weight, R readers make R operations for each byte. Our card's
# ridge is at {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} operations a byte. The LPU's peak in fp16 is {{ lpu.fp16_tflops:.0f}} TFLOP/s
# [^techpowerup-groq].
#
# /// predict | Up to how many readers share a step of the LPU for nothing?
# - [ridge >= 100] 100 or more
# - [10 <= ridge < 100] 10 to 100
# - [ridge < 10] Fewer than 10
# /// reveal
# {{ ridge:.1f}}: so many operations a byte are its ridge. From the third reader on arithmetic is the limit, and each adds to the time of a step.
# An LPU serves one reader well; a GPU wants a crowd.
# ///

# %% [markdown]
# ## The first idea on our card: near memory {.beyond}
#
# A GPU has SRAM, too: L2, which all multiprocessors share, and shared memory, a part in each. [L3](../lectures/l3_memory.py#how-much-at-once) has
# timed them, on {{ l3.gpu.name }}.
#
# /// predict | HBM gives {{ l3.far.gb_per_s / 1000:.1f}} TB/s there. What do all shared memories give together?
# - [l3.whole.shared / l3.far.gb_per_s < 3] Less than three times that
# - [3 <= l3.whole.shared / l3.far.gb_per_s < 6] Three to six times
# - [l3.whole.shared / l3.far.gb_per_s >= 6] Six times, or more
# /// reveal
# {{ l3.whole.shared / 1000:.0f}} TB/s: {{ l3.whole.shared / l3.far.gb_per_s:.1f}} times.
#
# /// table
# columns: ["*measured here*, on {{ l3.gpu.name }}", "TB/s, whole card", "one trip, clock ticks"]
# rows:
#   - [shared memory, "{{ l3.whole.shared / 1000:.1f}}", "{{ l3.hop.shared:.0f}}"]
#   - [L2, "{{ l3.whole.l2 / 1000:.1f}}", "{{ l3.hop.l2:.0f}}"]
#   - [HBM, "{{ l3.far.gb_per_s / 1000:.1f}}", "{{ l3.hop.hbm:.0f}}"]
# caption: "From L3's record: reads alone. A trip is one load that waits for the one before it."
# ///
#
# *On the chip* is not yet *near*. L2 is on the chip as well, and across all of it. What makes an LPU's SRAM wide is that each piece lies beside
# the unit that reads it, as shared memory does. But on our card both hold far less than one layer of the 8B shape.
# ///

# %% [markdown]
# ## The second idea on our card: a timetable
#
# In plain PyTorch a host decides, kernel by kernel, what comes next. A
# [CUDA graph](../lectures/l2_the_cuda_model.py#many-orders-written-once-graphs) has the orders of a step written down once. The kernels are the
# same, and so are their bytes.
#
# /// predict | A chain of 64 small adds, ordered one by one, takes {{ l2.chain.one_by_one.us:.1f}} µs for each add, on {{ l2.gpu.name }}. How much of that does it take from a graph?
# - [l2.chain.replayed.us / l2.chain.one_by_one.us >= 0.5] Half, or more
# - [0.25 <= l2.chain.replayed.us / l2.chain.one_by_one.us < 0.5] A quarter to a half
# - [l2.chain.replayed.us / l2.chain.one_by_one.us < 0.25] Less than a quarter
# /// reveal
# {{ l2.chain.replayed.us / l2.chain.one_by_one.us:.0%}}: {{ l2.chain.replayed.us:.1f}} µs each.
#
# The same in a whole step of decode of the 8B shape, as [L7's profiler](../lectures/l7_profiling.py#the-loop) saw it on {{ l7.gpu.name }}: the
# card works for {{ l7.step.plain.share:.0%}} of the time in plain PyTorch, and for {{ l7.step.graph.share:.0%}} of it from a graph.
# ///
#
# A graph is a timetable of kernels. Inside a kernel the card still decides: which multiprocessor gets a block, which warp goes on, what stays in
# L2. An LPU has no arbiters and no caches, so that a compiler can know each cycle [^abts2020]. So its time is the same in every run. The price is
# that of a graph, too: what is planned for is one size.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where one reader waits for one token after another, and every millisecond counts.
# - **It trips** over size: a longer context or a larger model is more chips.
# - **It trips** over price for each token, if few readers come: hundreds of chips are paid for, whoever reads.
# - **Mind the date.** In 2026 NVIDIA has the rights to Groq's designs, and sells a later LPU in racks of {{ groq_3.in_a_rack:.0f}}, beside GPUs
#   that read the prompt [^register-lpx].

# %% [markdown]
# ## The numbers that matter
#
# | one chip | LPU, 2024 [^techpowerup-groq] | Groq 3 LPU, 2026 [^register-lpx] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: |
# | fp16, TFLOP/s | {{ lpu.fp16_tflops:.0f}} | | {{ gpu.fp16_tflops:.0f}} |
# | fp8, TFLOP/s | | {{ groq_3.fp8_tflops:.0f}} | {{ gpu.fp8_tflops:.0f}} |
# | memory | {{ lpu.memory_mb:.0f}} MB | {{ groq_3.memory_mb:.0f}} MB | {{ l1.card.hbm_gib:.0f}} GiB |
# | its bandwidth, TB/s | {{ lpu.gb_per_s / 1000:.0f}} | {{ groq_3.gb_per_s / 1000:.0f}} | {{ gpu.gb_per_s / 1000:.1f}} |
# | to read all of it once, µs | {{ turn.lpu:.1f}} | {{ turn.groq_3:.1f}} | |
#
# *Measured here*, on {{ one_token.gpu.name }}: one reader of the 8B shape gets {{ one_token.rate.our_step:.0f}} tokens/s. For the LPU we have no
# such line of our own.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_chips.cited groq_lpu groq_3
# ```
#
# **Where the course teaches it:** how far memory is, [L3](../lectures/l3_memory.py#how-far-is-it); orders on one sheet,
# [L2](../lectures/l2_the_cuda_model.py#many-orders-written-once-graphs); a step and its floor,
# [one token](../one_token.py#the-floor-of-a-step-by-hand); readers who share a step,
# [W4](../workshops/w4_serving.py#what-a-server-must-remember).
#
# /// exercise | Weights of one byte | 4 minutes
# The 8B model's weights are rounded to one byte each. How many LPUs of {{ lpu.memory_mb:.0f}} MB does it need now? And if they stand in a queue,
# what is the least time that one token takes to read its weights?
# /// answer
# {{ small.gb / 2:.1f}} GB over {{ lpu.memory_mb:.0f}} MB: {{ halved.chips:.0f}} chips, where it was {{ small.chips:.0f}}. In a queue the bytes
# count, and not the chips: {{ halved.queue_us:.0f}} µs, where it was {{ small.queue_us:.0f}}. Once more you see that a shorter weight is a
# shorter read.
# ///
