# ---
# id: field_side_by_side
# title: "Accelerators side by side"
# nav: Accelerators side by side
# description: "TPU, AMD, Trainium, Gaudi, Groq, Cerebras, Apple and our own card in one table: dense peak, memory, bandwidth, ridge, and how long each takes to read all that it holds. Cited."
# ---

# %% [markdown]
# # Accelerators side by side
#
# By the end of this page you can
#
# - compare any two accelerators with three printed numbers, and no slide;
# - say which kind of memory a chip has from one quotient;
# - name the work for which each of them was built.
#
# **In one sentence:** accelerators differ less in what they compute than in where the bytes lie, and two quotients show it: peak over bandwidth,
# and memory over bandwidth.
#
# /// figure | docs/assets/figures/read_it_all.svg
# alt: "A scale of time in powers of ten, from a microsecond to a second. Chips with SRAM alone, WSE-3 and LPU, are at its left end. Chips with HBM, two TPUs, Gaudi 3, Trainium2 and MI300X, lie close together, past the millisecond. The M5 Max, with the memory of its computer, is the last."
# caption: "Memory over bandwidth, from printed figures. The scale is in powers of ten."
# ///
#
# /// callout | trip
# **Nothing in this table but our own card has run here.** Of most chips *nothing was compiled* either; [TPU](tpu.py) and [AMD](amd.py) have pages
# with their compilers' code. So all is *cited*, each from the source beside it, as it stood in November 2026. Where no vendor prints a dense
# peak, the cell says so. *Measured here*, on our own card, is how near a step comes to such a floor.
# ///

# %% tags=["fold"]
from course_chips.cited import told
from course_chips.sheets import SHEETS
from course_kernels.measure import quantity, record

GIB = 2**30 / 1e9


def beside(memory_gb, gb_per_s, tflops=None):
    """A chip's line: as printed, and the two quotients."""
    line = {
        "memory_gb": quantity(memory_gb, "GB", how="given"),
        "gb_per_s": quantity(gb_per_s, "GB/s", how="given"),
        "turn_ms": quantity(1e3 * memory_gb / gb_per_s, "ms"),
        "token_ms": quantity(1e3 * MODEL_GB / gb_per_s, "ms"),
    }
    if tflops is not None:
        line["tflops"] = quantity(tflops, "TFLOP/s", how="given")
        line["ridge"] = quantity(1e3 * tflops / gb_per_s, "FLOP/B")
    return line


def of_sheet(sheet):
    """The same for a chip whose compiler is public."""
    return beside(sheet.memory_gb, sheet.gb_per_s, sheet.bf16_tflops)


MODEL_GB = 100  # of the exercise
lpu = told("groq_lpu", "memory_mb", "gb_per_s", "fp16_tflops")
wafer = told("wse3", "memory_gb", "gb_per_s")
gaudi = told("gaudi3", "memory_gb", "gb_per_s", "bf16_tflops")
trainium = told("trainium2", "memory_gib", "gb_per_s", "bf16_tflops")
apple = told("m5_max", "memory_gb", "gb_per_s")
chips = {
    "v5e": of_sheet(SHEETS["tpu_v5e"]),
    "tpu7x": of_sheet(SHEETS["tpu_7x"]),
    "mi300x": of_sheet(SHEETS["gfx942"]),
    "trainium2": beside(
        trainium["memory_gib"].value * GIB,
        trainium["gb_per_s"].value,
        trainium["bf16_tflops"].value,
    ),
    "gaudi3": beside(
        gaudi["memory_gb"].value,
        gaudi["gb_per_s"].value,
        gaudi["bf16_tflops"].value,
    ),
    "lpu": beside(
        lpu["memory_mb"].value / 1e3,
        lpu["gb_per_s"].value,
        lpu["fp16_tflops"].value,
    ),
    "wse3": beside(wafer["memory_gb"].value, wafer["gb_per_s"].value),
    "m5_max": beside(apple["memory_gb"].value, apple["gb_per_s"].value),
}
WITH_HBM = ("v5e", "tpu7x", "mi300x", "trainium2", "gaudi3")
ridges = [chips[name]["ridge"].value for name in WITH_HBM]
peaks = [chips[name]["tflops"].value for name in WITH_HBM]
record(
    **chips,
    hbm={
        "peaks": quantity(max(peaks) / min(peaks)),
        "ridges": quantity(max(ridges) / min(ridges)),
    },
    apart=quantity(
        chips["m5_max"]["turn_ms"].value / chips["tpu7x"]["turn_ms"].value
    ),
    lpus=quantity(1e3 * MODEL_GB / lpu["memory_mb"].value),
)

# %% [markdown]
# ## Peak over bandwidth
#
# The *ridge* says how many operations a byte must bring, so that arithmetic is the limit. Below it, bytes decide;
# [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline) found it on our card. Take five chips with HBM: two TPUs, MI300X, Trainium2, Gaudi 3.
# The largest of their peaks is {{ hbm.peaks:.0f}} times the smallest.
#
# /// predict | How far apart are their ridges, the largest over the smallest?
# - [hbm.ridges < 3] Less than 3 times
# - [3 <= hbm.ridges < 8] 3 to 8 times
# - [hbm.ridges >= 8] 8 times or more
# /// reveal
# {{ hbm.ridges:.1f}} times. Peak and bandwidth grow together, so a kernel that is far below the ridge of one of them is below it on all. What you
# learned about intensity moves with you.
# ///
#
# ## Memory over bandwidth
#
# If a model fills a chip's memory, each step of one reader reads all of it. So memory over bandwidth is the least time of a token then, and it
# says at once what kind of memory it is.
#
# /// predict | A TPU7x needs {{ tpu7x.turn_ms:.0f}} ms to read all it has. What does an M5 Max need, with the memory of its computer?
# - [apart < 2] Less than 2 times as long
# - [2 <= apart < 20] 2 to 20 times
# - [apart >= 20] 20 times as long, or more
# /// reveal
# {{ apart:.0f}} times as long. An LPU needs {{ 1000 * lpu.turn_ms:.1f}} µs, since it has so little. A large memory that is slow holds models that
# it cannot serve quickly; a small one that is quick serves models that it cannot hold.
# ///

# %% [markdown]
# ## When it wins, when it trips
#
# | chip | it was built for | and trips over |
# | --- | --- | --- |
# | [GPU](../lectures/l1_what_a_gpu_is.py#a-few-chefs-or-a-brigade) | anything parallel, code of your own | one reader alone |
# | [TPU](tpu.py) | large multiplies of fixed sizes, in pods | sizes that change |
# | [AMD](amd.py) | the same as a GPU, with more memory | code that believes in 32 lanes |
# | [Trainium](aws_chips.py) | large multiplies, on AWS alone | what is no multiply |
# | [Gaudi](gaudi.py) | training over plain Ethernet | two chips that want all roads |
# | [Groq](groq.py) | one reader, the same time in every run | models of many chips |
# | [Cerebras](cerebras.py) | models of a wafer or a few | long contexts |
# | [Apple](apple.py) | a model on your desk, nothing copied | many readers |
#
# These are ours, from the pages behind the links, and no ranking. A price is missing, and your own kernels are: they weigh more than any column.

# %% [markdown]
# ## The numbers that matter
#
# Dense peaks, memory and bandwidth as they are printed, and the two quotients.
#
# /// table
# columns: [one chip, "bf16, TFLOP/s", "memory, GB", "GB/s", "ridge, FLOP/B", "to read it all, ms"]
# rows:
#   - ["TPU v5e [^google-tpu-v5e]", "{{ v5e.tflops:.0f}}", "{{ v5e.memory_gb:.0f}}", "{{ v5e.gb_per_s:,.0f}}", "{{ v5e.ridge:.0f}}", "{{ v5e.turn_ms:.0f}}"]
#   - ["TPU7x [^google-tpu-7x] [^bekman-accelerators]", "{{ tpu7x.tflops:.0f}}", "{{ tpu7x.memory_gb:.0f}}", "{{ tpu7x.gb_per_s:,.0f}}", "{{ tpu7x.ridge:.0f}}", "{{ tpu7x.turn_ms:.0f}}"]
#   - ["AMD MI300X [^bekman-accelerators]", "{{ mi300x.tflops:.0f}}", "{{ mi300x.memory_gb:.0f}}", "{{ mi300x.gb_per_s:,.0f}}", "{{ mi300x.ridge:.0f}}", "{{ mi300x.turn_ms:.0f}}"]
#   - ["Trainium2 [^neuron-trainium2]", "{{ trainium2.tflops:.0f}}", "{{ trainium2.memory_gb:.0f}}", "{{ trainium2.gb_per_s:,.0f}}", "{{ trainium2.ridge:.0f}}", "{{ trainium2.turn_ms:.0f}}"]
#   - ["Gaudi 3 [^bekman-accelerators] [^kaplan-gaudi3]", "{{ gaudi3.tflops:.0f}}", "{{ gaudi3.memory_gb:.0f}}", "{{ gaudi3.gb_per_s:,.0f}}", "{{ gaudi3.ridge:.0f}}", "{{ gaudi3.turn_ms:.0f}}"]
#   - ["Groq LPU, 2024, its peak in fp16 [^techpowerup-groq]", "{{ lpu.tflops:.0f}}", "{{ lpu.memory_gb:.2f}}", "{{ lpu.gb_per_s:,.0f}}", "{{ lpu.ridge:.1f}}", "{{ lpu.turn_ms:.4f}}"]
#   - ["Cerebras WSE-3 [^argonne-cerebras]", "not printed", "{{ wse3.memory_gb:.0f}}", "{{ wse3.gb_per_s:,.0f}}", "", "{{ wse3.turn_ms:.4f}}"]
#   - ["Apple M5 Max [^macrumors-m5]", "not printed", "{{ m5_max.memory_gb:.0f}}", "{{ m5_max.gb_per_s:,.0f}}", "", "{{ m5_max.turn_ms:.0f}}"]
#   - ["{{ gpu.name }}, by its data sheet", "{{ gpu.bf16_tflops:.0f}}", "{{ l1.card.hbm_gib:.0f}} GiB", "{{ gpu.gb_per_s:,.0f}}", "{{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}}", "{{ l1.card.hbm_gib * 1024 * 1024 * 1024 / gpu.gb_per_s / 1000 / 1000:.0f}}"]
# caption: "Dense peaks. An LPU is not sold by itself, nor a wafer: of one you need hundreds, the other fills a cabinet."
# ///
#
# Before you believe such a table, ask three things of each number:
#
# - **Dense?** With zeros left out and counted all the same, a peak is one that no dense multiply can reach: [Cerebras' page](cerebras.py) tests
#   one.
# - **In which format?** The LPU's peak is of fp16. A row in 8 bits would be another table.
# - **At which clock?** [Gaudi's page](gaudi.py) has two peaks for one chip.
#
# *Measured here*, on {{ one_token.gpu.name }}: a step of decode for one reader, in bf16, reaches {{ one_token.decode.our_step.of_peak:.0%}} of
# the bandwidth of the data sheet. Our multiply reaches {{ w2.burst.nn.n8192.tuned / gpu.bf16_tflops:.0%}} of the peak. For no other line of the
# table do we know such a share.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_chips.cited
# ```
#
# That prints all cited figures of these pages, each with its source and its date.
#
# **Where the course teaches it:** the ridge, [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline); a token's floor,
# [one token](../one_token.py#the-floor-of-a-step-by-hand); two of NVIDIA's cards by measurement,
# [H200 beside H100](../two_cards.md#where-it-shows).
#
# /// exercise | A model of 100 GB | 4 minutes
# Its weights fill 100 GB. On which chips of the table does it lie alone? What is the least time of a token for one reader on TPU7x, on Trainium2
# and on M5 Max? How many LPUs would it take?
# /// answer
# Five have room for 100 GB: TPU7x, MI300X, M5 Max, Intel's Gaudi, and Trainium2, with hardly any to spare for keys and values. TPU7x needs
# {{ tpu7x.token_ms:.0f}} ms at least, Trainium2 {{ trainium2.token_ms:.0f}} ms, M5 Max {{ m5_max.token_ms:.0f}} ms. Of LPUs it takes
# {{ lpus:.0f}}.
# ///
