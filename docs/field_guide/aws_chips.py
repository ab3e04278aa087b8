# ---
# id: field_aws
# title: "AWS's own chips: a systolic array, step by step"
# nav: AWS's own chips
# description: "Trainium, Inferentia and their NeuronCores: a grid of multipliers run cycle by cycle in NumPy, what one row costs it and what many do, and which number belongs to which generation. Cited."
# ---

# %% [markdown]
# # AWS's own chips: a systolic array, step by step
#
# By the end of this page you can
#
# - follow numbers through a systolic array, cycle by cycle, and count the cells that idle;
# - say what such a chip waits for with one reader, and which `pip install` is a trap.
#
# **In one sentence:** a NeuronCore is a grid of 128 × 128 multipliers in which one matrix stays while the other flows through, three helpers for
# what is no multiply, and memory on the chip that programs fill.
#
# /// figure | docs/assets/figures/neuron_core.svg
# alt: "SBUF, memory on the chip, feeds rows of A into a grid of four by four cells, slanted: in cycle 5 the cells work on rows 1, 2 and 3, and some have left or not begun. Sums come out below into PSUM. Beside it are three more engines: Vector for sums and maxima, Scalar for exp and GELU, GpSimd for the rest."
# caption: "Four engines with a program each [^neuron-nki-arch]; a grid of 4 × 4 stands for one of 128 × 128."
# ///
#
# /// callout | trip
# **Nothing on this page has run on a Trainium or an Inferentia, and nothing was compiled for one.** The packages `nki` (0.0.1) and `neuronx-cc`
# (1.0.post1) on PyPI are empty, and say *wrong package*: the Neuron SDK comes from AWS's own repository. So of these chips all is *cited*.
# *Measured here*, on our own card, is what one row costs. The array runs in NumPy.
# ///

# %% tags=["fold"]
import numpy as np
from course_chips.cited import told
from course_chips.systolic import drawn, multiply, share
from course_kernels.measure import quantity, record, text

rng = np.random.default_rng(0)
chip = told("trainium1")
side, ghz = int(chip["array"].value), chip["clock_ghz"].value


def passed(M, K=side, N=side):
    """M rows through a grid of K by N, checked against NumPy's product."""
    a = rng.integers(0, 10, (M, K)).astype(float)
    b = rng.integers(0, 10, (K, N)).astype(float)
    product, seen = multiply(a, b)
    assert (product == a @ b).all()
    return seen


small = passed(3, 4, 4)
ROWS = (1, 128, 512)
alone = {f"m{M}": passed(M) for M in ROWS}
least = int(chip["cycles_at_least"].value)
tile_bytes = 2 * side * side
hbm_of_core = chip["gb_per_s"].value / chip["cores"].value
record(
    trainium1=chip,
    inferentia2=told("inferentia2"),
    trainium2=told("trainium2"),
    trainium3=told("trainium3"),
    small={
        "grids": text(drawn(small)),
        "cycles": quantity(len(small)),
        "share": quantity(share(small)),
    },
    alone={
        name: {"cycles": quantity(len(seen)), "share": quantity(share(seen))}
        for name, seen in alone.items()
    },
    queued={f"m{M}": quantity(M / max(M, least)) for M in ROWS},
    row={  # one row of A, and a tile of weights that comes from HBM for it
        "array_ns": quantity(least / ghz, "ns"),
        "hbm_ns": quantity(tile_bytes / hbm_of_core, "ns"),
        "even": quantity(tile_bytes / hbm_of_core * ghz),
    },
    tile={
        "kib": quantity(tile_bytes / 1024, "KiB"),
        "hbm": quantity(hbm_of_core, "GB/s", how="given"),
        "tflops": quantity(2e-3 * side * side * ghz, "TFLOP/s", how="given"),
    },
)

# %% [markdown]
# ## Follow three rows
#
# A grid of 4 × 4 holds B. Three rows of A pass. The digit in a cell is the row on which it works, a dot is an idle cell. In each cycle a number
# of A goes one cell to the right, and a sum one cell down; rows come in slanted, so that the two meet.
#
# /// text | small.grids
# ///
#
# All that a cell needs comes from its neighbours: no register file is asked, and that is what the array saves. But it
# fills and empties like a tube: these {{ small.cycles:.0f}} cycles have work for {{ small.share:.0%}} of the cells.
#
# /// predict | On a real one, 128 × 128, one single row passes, as in decode with one reader. What part of the cells' cycles is in use?
# - [alone.m1.share >= 0.1] 10 % or more
# - [0.01 <= alone.m1.share < 0.1] 1 to 10 %
# - [alone.m1.share < 0.01] Less than 1 %
# /// reveal
# {{ alone.m1.share:.1%}}: one row of {{ alone.m1.cycles:.0f}} cycles.
#
# /// table
# columns: [rows that pass, "cycles, alone", "cells in use, alone", "cells in use, one behind the other"]
# rows:
#   - ["1", "{{ alone.m1.cycles:.0f}}", "{{ alone.m1.share:.1%}}", "{{ queued.m1:.1%}}"]
#   - ["128", "{{ alone.m128.cycles:.0f}}", "{{ alone.m128.share:.0%}}", "{{ queued.m128:.0%}}"]
#   - ["512", "{{ alone.m512.cycles:.0f}}", "{{ alone.m512.share:.0%}}", "{{ queued.m512:.0%}}"]
# caption: "Alone: counted in our simulation. One behind the other: the next rows come in while the last ones leave, new weights are loaded in the background, and a pass takes its rows in cycles, but at least {{ trainium1.cycles_at_least:.0f}} [^neuron-nki-arch]."
# ///
# ///
#
# A program says it in two instructions: *load stationary*, a tile of up to 128 × 128, and *multiply moving*, up to 512 rows [^neuron-nki-arch].

# %% [markdown]
# ## What does one reader wait for?
#
# So with one row the array is nearly idle. Does that make decode slow? A tile of weights has {{ tile.kib:.0f}} KiB in bf16. A core has half
# of the chip's HBM, {{ tile.hbm:.0f}} GB/s.
#
# /// predict | One row passes a tile in {{ trainium1.cycles_at_least:.0f}} cycles of {{ trainium1.clock_ghz:.1f}} GHz, {{ row.array_ns:.0f}} ns. What does the core wait for?
# - [row.hbm_ns > 1.5 * row.array_ns] HBM: the tile takes longer to come than the row to pass
# - [row.hbm_ns <= 1.5 * row.array_ns and row.array_ns <= 1.5 * row.hbm_ns] Both take about as long
# - [row.array_ns > 1.5 * row.hbm_ns] The array: it idles in nearly all its cells
# /// reveal
# {{ row.hbm_ns:.0f}} ns does the tile need from HBM. So idle cells cost nothing: up to {{ row.even:.0f}} rows a tile, bytes decide. That is the
# ridge once more.
#
# *Measured here*, on {{ w4.gpu.name }}, it is the same: [one row](../workshops/w4_serving.py#shorter-weights) times a grid of 28672 × 4096 in
# bf16 takes {{ w4.few.bf16.m1.us:.0f}} µs, 32 rows {{ w4.few.bf16.m32.us:.0f}} µs.
# ///

# %% [markdown]
# ## What do you write?
#
# The Neuron SDK is the software for all these chips: PyTorch and JAX on top, a compiler and a runtime, and NKI, in which you write kernels with those
# two instructions [^neuron-sdk].
#
# ### Which core is in which chip? {.beyond}
#
# The number counts generations of the core, not of the chip. NeuronCore-v2, of which most pages on the web speak, is in Trainium and Inferentia2
# [^neuron-nki-arch]; v3 is in Trainium2, eight of them [^neuron-trainium2]; v4 is in Trainium3 [^neuron-trainium3]. From Trainium2 to Trainium3
# the peak in bf16 stays nearly what it was: what grows is memory, and the peak in 8 bits [^neuron-trainium3].

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** in large multiplies, one behind the other: loading the next weights is hidden.
# - **It trips** over small tiles: a K of 64 leaves half of the grid without weights.
# - **It trips** over *a better price than a GPU's*: such a sum is of one model, one batch and one year. Divide both prices of an hour by your
#   own tokens ([the calculator](choosing.py#4-what-does-a-token-cost) does).
# - **It trips** over softmax and norms: the compiler must keep all four engines busy.

# %% [markdown]
# ## The numbers that matter
#
# Dense peaks of one chip, as AWS prints them; the last row is our own card's sheet.
#
# /// table
# columns: ["one chip, and its NeuronCore", "bf16, TFLOP/s", "HBM, GB/s", "HBM, GiB", "ridge in bf16, FLOP/B"]
# rows:
#   - ["Inferentia2, v2 [^neuron-inferentia2]", "{{ inferentia2.bf16_tflops:.0f}}", "{{ inferentia2.gb_per_s:.0f}}", "{{ inferentia2.memory_gib:.0f}}", "{{ 1000 * inferentia2.bf16_tflops / inferentia2.gb_per_s:.0f}}"]
#   - ["Trainium, v2 [^neuron-trainium2]", "{{ trainium1.bf16_tflops:.0f}}", "{{ trainium1.gb_per_s:.0f}}", "{{ trainium1.memory_gib:.0f}}", "{{ 1000 * trainium1.bf16_tflops / trainium1.gb_per_s:.0f}}"]
#   - ["Trainium2, v3 [^neuron-trainium2]", "{{ trainium2.bf16_tflops:.0f}}", "{{ trainium2.gb_per_s:.0f}}", "{{ trainium2.memory_gib:.0f}}", "{{ 1000 * trainium2.bf16_tflops / trainium2.gb_per_s:.0f}}"]
#   - ["Trainium3, v4 [^neuron-trainium3]", "{{ trainium3.bf16_tflops:.0f}}", "{{ trainium3.gb_per_s:.0f}}", "{{ trainium3.memory_gib:.0f}}", "{{ 1000 * trainium3.bf16_tflops / trainium3.gb_per_s:.0f}}"]
#   - ["{{ gpu.name }}", "{{ gpu.bf16_tflops:.0f}}", "{{ gpu.gb_per_s:.0f}}", "{{ l1.card.hbm_gib:.0f}}", "{{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}}"]
# ///
#
# *Measured here*, on {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s. For AWS's chips we have no such line.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_chips.systolic 3 4 4
# PYTHONPATH=src python -m course_chips.cited trainium2 trainium3
# ```
#
# **Where the course teaches it:** the same array in code of a compiler, [TPU](tpu.py); tiles that stay,
# [L4](../lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory); few rows and many weights,
# [W4](../workshops/w4_serving.py#shorter-weights).
#
# /// exercise | A peak from a grid | 4 minutes
# A NeuronCore-v2 has 128 × 128 cells at {{ trainium1.clock_ghz:.1f}} GHz, and there are two in a chip [^neuron-nki-arch]. What is the chip's
# peak? In how many cycles do five rows pass a grid of 4 × 4 alone?
# /// answer
# 128 × 128 = 16 384 cells, 2 operations each, make {{ tile.tflops:.0f}} TFLOP/s a core, and two of them {{ 2 * tile.tflops:.0f}}: it is near what
# is printed. Five rows enter in 5 cycles. The last one needs 3 more to enter the lowest row of cells, and 3 more to cross it: 11.
# ///
