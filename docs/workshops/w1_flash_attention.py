# ---
# id: w1
# title: FlashAttention from scratch
# description: FlashAttention by hand, in NumPy and in CUDA; then what it saves, counted, and what it still loses.
# needs: [capability 9.0, counters]
# ---

# %% [markdown]
# # FlashAttention from scratch
#
# By the end of this page you can
#
# - take the softmax of a row that you never see whole, with pencil and paper;
# - write the attention loop in NumPy and in CUDA, and say what every line is for;
# - forecast how many bytes a kernel moves, and check your forecast against the hardware's own counters;
# - say what percentage of peak a kernel reaches, and where the rest goes.
#
# **The promise: the same cooking, with far fewer trips to the pantry.**
#
# You know the kitchen from [your first kernel](../start_here.py). Cooks sit at tables, and a block is one table. The
# registers are what a cook holds in her hands. In the middle of each table is a tray that all its cooks share, the *shared
# memory*. And down the hall is the pantry, the HBM: huge, and far away. The cooks are fast. The hall is not.

# %% [markdown]
# ## The enemy matrix
#
# You met this matrix in [the lecture on attention](../lectures/l8_attention.py), where you typed the plain recipe. Here it is
# again, in five points.
#
# 1. One head, N tokens, d numbers each: $S = Q K^\top / \sqrt d$, $P = \mathrm{softmax}(S)$, $O = P V$. Two multiplies and a softmax.
# 2. Q, K, V and O are thin, N × d. S and P are square, N × N. Nobody asked for the square, and nobody keeps it.
# 3. At N = 4096 the square has {{ enemy.scores / 1e6:.1f }} million scores; in fp32 they are {{ enemy.square_bytes / 1e6:.1f }}
#    MB, compared with {{ enemy.thin_bytes / 1e6:.1f }} MB for Q. A layer of 32 heads makes {{ enemy.layer_bytes / 1e9:.1f }} GB
#    of scores, uses them once, and throws them away.
# 4. The plain recipe [carries it four times](../lectures/l8_attention.py#four-trips-to-hbm): write S, read S, write P, read P.
# 5. **Room and trips are two separate bills.** Working in blocks of queries pays the first. So far nothing has paid the second.

# %% tags=["fold"]
from course_kernels.measure import quantity, record

N, d = 4096, 128
record(
    enemy={
        "scores": quantity(N * N),  # one head of one layer, one sequence
        "square_bytes": quantity(4 * N * N, "B"),  # in fp32
        "thin_bytes": quantity(4 * N * d, "B"),
        "layer_bytes": quantity(32 * 4 * N * N, "B"),  # 32 heads
    }
)

# %% [markdown]
# FlashAttention never writes the square down at all. That lowers both bills, but not equally.
#
# - **Storage**, the room it takes, falls from $O(N^2)$ to $O(N)$.
# - **Traffic**, the bytes to and from HBM, falls from $\Theta(Nd + N^2)$ to $\Theta(N^2 d^2 / M)$, where $M$ is the number of
#   values that fit on the chip. That is a fine saving, but *not* a factor of N. Even a perfect kernel must fetch Q, K and
#   V, and write O back.
#
# The authors counted the traffic for GPT-2 medium on an A100, with N = 1024 and d = 64, forward and backward: 40.3 GB
# of traffic became 4.4 GB, a factor of 9.2 [^dao2022], not a thousand. Below we count our own.

# %% [markdown]
# ## Softmax, one crate at a time
#
# Why keep the square at all? Softmax seems to need a whole row. Each exponential is divided by the sum of *all*
# exponentials in its row. And before that you subtract the row's *largest* score, or the exponentials
# overflow. You cannot know the largest score before you have seen all scores.
#
# Or can you [^milakov2018]? Picture a cook seasoning a stew whose ingredients come in crates. She does not wait for the
# last crate. She seasons according to what she has seen so far, and keeps three notes on her sleeve:
#
# - m, the largest score so far;
# - l, the sum so far of $e^{s-m}$;
# - a, the plate: the sum so far of $e^{s-m}$ times the value.
#
# Then a crate brings a larger score. Every old term was measured against the wrong m. Does she start again?
# No. All of them are off by the *same* factor, $e^{m_\text{old} - m_\text{new}}$. One multiply repairs them all.
#
# Do it with a pencil. First crate: scores 1 and 3. Second crate: 2 and 5. The values are 10, 20, 30, 40.
#
# /// figure | docs/assets/figures/online_softmax.svg
# alt: >-
#   Two crates of scores, 1 and 3, then 2 and 5, with the notes on the sleeve after each. After crate one m is 3.
#   After crate two m is 5, and the old sum is multiplied by e to the power 3 minus 5 before the new terms are
#   added. Below, a ruler moves from 3 to 5.
# caption: Only the notes travel from crate to crate.
# ///
#
# /// predict | The second crate brings a 5, and the largest was 3. What happens to the old sum?
# - [step.repaired.l > 1.01 * step.one.l] It grows
# - [step.repaired.l < 0.99 * step.one.l] It shrinks
# - [0.99 * step.one.l <= step.repaired.l <= 1.01 * step.one.l] It stays as it is
# /// reveal
# The old sum shrinks, to {{ step.repair:.3f }} of what it was. Measured against a larger maximum, everything old looks smaller.
# ///

# %%
from math import exp

import numpy as np

# First crate: scores 1 and 3, values 10 and 20.
m1 = max(1, 3)
l1 = exp(1 - m1) + exp(3 - m1)
a1 = exp(1 - m1) * 10 + exp(3 - m1) * 20

# Second crate: scores 2 and 5, values 30 and 40. Repair what you hold, then add what came.
m2 = max(m1, 2, 5)
repair = exp(m1 - m2)
l2 = l1 * repair + exp(2 - m2) + exp(5 - m2)
a2 = a1 * repair + exp(2 - m2) * 30 + exp(5 - m2) * 40

# The direct answer, all four at once.
s = np.array([1.0, 3.0, 2.0, 5.0])
p = np.exp(s - s.max())

one = {"m": quantity(m1), "l": quantity(l1), "a": quantity(a1)}
repaired = {"l": quantity(l1 * repair), "a": quantity(a1 * repair)}
two = {
    "m": quantity(m2),
    "l": quantity(l2),
    "a": quantity(a2),
    "out": quantity(a2 / l2),
}
direct = {
    "m": quantity(float(s.max())),
    "l": quantity(float(p.sum())),
    "a": quantity(float(p @ [10, 20, 30, 40])),
    "out": quantity(float(p @ [10, 20, 30, 40] / p.sum())),
}
record(
    step={
        "one": one,
        "repair": quantity(repair),
        "repaired": repaired,
        "two": two,
        "direct": direct,
    }
)

# %% [markdown]
# | on the sleeve | after crate one | repaired | after crate two | all four at once |
# |---|---:|---:|---:|---:|
# | m | {{ step.one.m:.0f }} | | {{ step.two.m:.0f }} | {{ step.direct.m:.0f }} |
# | l | {{ step.one.l:.4f }} | {{ step.repaired.l:.4f }} | {{ step.two.l:.4f }} | {{ step.direct.l:.4f }} |
# | a | {{ step.one.a:.3f }} | {{ step.repaired.a:.3f }} | {{ step.two.a:.3f }} | {{ step.direct.a:.3f }} |
# | served: a / l | | | {{ step.two.out:.3f }} | {{ step.direct.out:.3f }} |
#
# Read the second row aloud. The sum is {{ step.one.l:.4f }}. The 5 comes, and you multiply the sum by $e^{3-5}$, that
# is {{ step.repair:.4f }}. Now it is {{ step.repaired.l:.4f }}. The new crate adds its own two terms: {{ step.two.l:.4f }}.
# The last column took all four scores at once, and has {{ step.direct.l:.4f }}.
#
# It is the same dish, and nobody ever held more than one crate. Rescaling looked like magic; it is one multiply that changes
# the ruler for everything measured so far.
#
# Did you seal [an envelope](../lectures/l8_attention.py#what-stands-in-the-way) in the lecture on attention? Open it now. What
# did you already have, and what was missing?
#
# /// exercise | The other order
# Let the scores 2 and 5 come first, then 1 and 3. What is the repair factor now, and does the answer change?
# /// answer
# The maximum is 5 from the start, so the factor is $e^0 = 1$. Sum and plate end up the same: addition does not care
# about order. (Rounding does, so in floating point the last digits may differ.)
# ///
#
# Now try it with scores of your own. Step through the scores, and say the factor before you press *Next*.
#
# /// explorable | softmax
# ask: When does what you hold get smaller, and when does it stay as it is? Then try the large scores.
# alt: >-
#   A row for each of eight scores, in tiles of two. Each score is a dot on a line from −2 to 10, and a ruler marks m, the
#   largest so far. Beside it a bar is as long as the score's weight, e to the s − m. The ruler has moved from 5 to 7:
#   dashed outlines show how long the four old bars were, and all have shrunk by the same factor. Below are m, l and a.
# knobs:
#   row: {label: a row to begin with, at: page, choices: {page: "the two crates, and two more", order: "the largest first",
#         large: "large scores", small: "very small scores", masked: "a masked tile first", own: "your own"}}
#   scores: {label: "scores, 8 at most; −inf is masked", at: [1, 3, 2, 5, 4, 7, 0, 6]}
#   width: {label: scores in a tile, at: 2}
#   mask: {label: "a masked score becomes", at: infinity, choices: {infinity: "−∞", never: "−10³⁰"}}
#   step: {label: step, at: 5}
# says:
#   start: "No tile has come yet: m is {m}, l is {l} and a is {a}."
#   first: "Tile {tile} brings {brought}. The largest so far is {m}. What you held, nothing, is multiplied by {factor}."
#   higher: >-
#     Tile {tile} brings {brought}. The largest was {old} and is now {m}. So everything you hold is multiplied by e to
#     the {old} − {m}, which is {factor}: l is {l}, and a is {a}.
#   same: "Tile {tile} brings {brought}. The largest stays {m}, so the factor is {factor}: l is still {l}, and a is {a}."
#   broken: >-
#     Tile {tile} brings {brought}. Everything so far is masked, and −∞ minus −∞ is {factor}, not a number. Mask with −10³⁰
#     instead, as the kernel below does.
#   add: "The terms of tile {tile} are added: l is {l}, and a is {a}."
#   still_broken: "Tile {tile} is added: l is now {l}, whatever comes."
#   served: "All {tiles} tiles have passed. Divide once: a / l is {out}."
#   nothing_served: "All {tiles} tiles have passed, and a / l is {out}: not a number."
#   agree: "All scores at once, with the largest subtracted, give {plain}: the same."
#   only_plain: "All scores at once give {plain}. Only the order was to blame: a masked tile came first."
#   no_softmax: "Every score is masked, and a / l is {out}: there is no softmax of nothing."
#   without: "With nothing subtracted, e to the s alone, the answer is {bare}: these scores are small enough."
#   overflow: "With nothing subtracted there is no answer: e to the s is more than fp32 can hold, and a / l would be {bare}."
#   underflow: "With nothing subtracted there is no answer: every e to the s is 0 in fp32, and 0 / 0 is {bare}."
#   lost: "With nothing subtracted the answer is {bare}: terms this small keep few digits in fp32."
# row: {step: "{step} of {steps}", "the tile brings": "{brought}", m: "{m}", factor: "{factor}", l: "{l}", a: "{a}",
#       "a / l": "{out}"}
# caption: "The values are 10, 20, 30 and so on; all sums are in fp32. Drag a score sideways, or type it."
# ///

# %% [markdown]
# ## The whole algorithm in NumPy
#
# Now take many rows at once. A tile of queries sits down at the table. Tiles of keys and values are carried past it,
# one pair after the other. Each row keeps its own three notes.
#
# /// figure | docs/assets/figures/tiling.svg
# alt: >-
#   A tile of rows of Q stays while tiles of K and V pass by. Of the N by N square of scores only one small tile
#   exists at a time, and finished rows go out to O once. Beside it, the causal half: tiles below the diagonal
#   are full, those on it are masked, those above it are skipped and never fetched.
# caption: The square is still computed, tile by tile. It is never kept.
# ///
#
# /// predict | Ten tokens, tiles of four. How many of the 100 scores exist at once, at most?
# The loop below keeps count.
#
# - [x] 16, one tile
# - [ ] 40, four rows of ten
# - [ ] 100, because the softmax needs them
# /// reveal
# {{ tiles.held:.0f }}: one tile. The rows still come out complete, thanks to the three notes.
# ///


# %%
def flash(Q, K, V, tile=4):
    """Attention of one head, everything [N, D], with one tile of scores at a time."""
    N, D = Q.shape
    O, held = np.empty_like(Q), 0
    for i in range(0, N, tile):  # a tile of queries sits down
        q = Q[i : i + tile] / np.sqrt(D)  # [tile, D]
        m = np.full(len(q), -np.inf)  # largest score so far, for each row
        l = np.zeros(len(q))  # sum of exponentials so far
        acc = np.zeros_like(q)  # the plate, [tile, D]
        for j in range(0, N, tile):  # keys and values are carried past
            s = (
                q @ K[j : j + tile].T
            )  # [tile, tile], all there ever is of the square
            m_new = np.maximum(m, s.max(axis=1))
            repair = np.exp(m - m_new)  # the first time exp(-inf), which is 0
            p = np.exp(s - m_new[:, None])
            l = l * repair + p.sum(axis=1)
            acc = acc * repair[:, None] + p @ V[j : j + tile]
            m = m_new
            held = max(held, s.size)
        O[i : i + tile] = acc / l[:, None]  # one division, at the very end
    return O, held


Q, K, V = np.random.default_rng(0).standard_normal((3, 10, 8))
S = Q @ K.T / np.sqrt(8)
P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
O, held = flash(Q, K, V)
worst = np.abs(O - P @ V).max()
record(
    tiles={
        "held": quantity(held),
        "square": quantity(S.size),
        "worst": quantity(float(worst)),
    }
)
print("the two answers agree:", np.allclose(O, P @ V))

# %% [markdown]
# The worst element differs by {{ tiles.worst:.0e }}: rounding, nothing else. The largest piece of the square that ever existed
# had {{ tiles.held:.0f }} of its {{ tiles.square:.0f }} scores. And it stays that size, however long the sequence
# gets. (We chose N = 10 with tiles of 4 on purpose. The last tile is short, and forgetting the short tile is the most
# common bug of all.)
#
# Note what the loop does *not* save. The loop computes every score, does both multiplies in full, and adds a little
# repairing. There is less carrying, not less cooking. Training adds more: the backward pass computes the scores a
# second time rather than fetching them. That is extra arithmetic, and it saves time all the same.
#
# /// exercise | The bug that hides
# Delete `* repair` from the line for `l`, and nowhere else. For which inputs is the answer still right?
# /// answer
# For inputs whose first tile already holds each row's largest score: there, every later factor is 1. Constant inputs are
# one example. So test on random numbers, and look at the worst element, not at the average.
# ///

# %% [markdown]
# ## The same loop in CUDA
#
# Here is the kernel that you will type. It is plain on purpose: fp32, no tensor cores. Its lines are the lines above, in
# the same order. A block is one table and takes 64 rows of one head. Every row is shared by four neighbouring threads,
# because one thread has too few registers for a whole row: each holds a quarter of the row's q and a quarter of its plate,
# `acc`.
#
# First the block is set up, and each thread finds its row and its quarter of that row.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#setup
# ///
#
# A tile of keys and values comes from HBM, once for the whole block. All threads wait until it is complete.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#load
# ///
#
# Then the scores. Each thread multiplies its quarter, `sum_of_quad` adds the four, and all four threads know the score.
# For full attention read `keys_of_row` as N: it only cuts off the short last tile.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#scores
# ///
#
# And here are the three notes on the sleeve. You did this by hand ten minutes ago.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#online_softmax
# ///
#
# When the last tile has passed, divide once and write the plate out.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#store
# ///
#
# Causal attention comes last. It takes two lines of code, because it does two separate things. A token may only look
# backwards. Look at the causal half of the picture above. Tiles entirely above the diagonal are **skipped**: the loop
# ends sooner, and nearly half of the work is gone. But a tile *on* the diagonal is half allowed and half forbidden.
# There each forbidden score is **masked**: it becomes `NEVER`, so low that its exponential is 0. If you skip but do not
# mask, rows also count keys that come after their own token: every row is wrong except the last of each tile of
# queries.
#
# /// source | src/course_kernels/attention/k02_teaching.cu#causal
# ///
#
# Here is the whole kernel:
#
# /// source | src/course_kernels/attention/k02_teaching.cu
# lines: true
# ///
#
# /// exercise | One barrier too few
# The loop has two barriers: one when the tile has landed, and one at the end of the loop. Delete the second. What
# breaks, and will you notice?
# /// answer
# A fast thread begins to refill shared memory while a slow one still reads from it. That is a race. The race shows in some runs
# and not in others, so one right answer proves nothing. The barrier stays.
# ///
#
# You have read every line. Now type them, in five stages, with causal last. After each stage the grader says what is
# still wrong. In NumPy the lab runs on any laptop. In NumPy, as in CUDA, a tile always has 16 rows, so the short last
# tile needs its mask too. Scroll back up only when you are stuck. And keep your `plain_attention.py` from the lecture open:
# its four tests are good tests for this loop as well.
#
# /// lab | flash_attention
# ///

# %% [markdown]
# ## Is it right?
#
# Check correctness first, and only then look at the clock. Each kernel gets fresh random inputs, and its answer is
# compared with the same formula in float64. What matters is the *worst* element. N is 1000, which is not a multiple of
# any tile size here.
#
# Three more kernels have joined. *Tuned Triton* is our fast kernel: the same loop, with q in registers as in yours and,
# on Hopper, the same 64 rows for each table. But it multiplies on the tensor cores. Its tiles bring 64 keys where yours
# bring 16, and the next tiles are on their way while the current one is cooked. You read it; you do not type it. *With
# specialists* is its sister kernel; you will meet it [near the end](#what-is-still-lost). *SDPA* is what PyTorch gives
# you when you ask for attention. SDPA has several engines under the hood, so we always name the engine.
#
# /// predict | What is further from the truth: your fp32 kernel or the library's bf16?
# An fp32 number carries about seven decimal digits, a bf16 number between two and three.
#
# - [right_fp32.full.teaching.error > 2 * right_bf16.full.sdpa_flash.error] Your kernel: the library is made by experts
# - [right_bf16.full.sdpa_flash.error > 2 * right_fp32.full.teaching.error] The library's, because its numbers are shorter
# - [0.5 * right_bf16.full.sdpa_flash.error <= right_fp32.full.teaching.error <= 2 * right_bf16.full.sdpa_flash.error] Both about equally far
# /// reveal
# The number type decides, not the author: the error is {{ right_fp32.full.teaching.error:.0e }} for your kernel,
# {{ right_bf16.full.sdpa_flash.error:.0e }} for the library's.
# ///

# %%
from course_kernels.attention import (
    k01_materialised,
    k02_teaching,
    k03_flash,
    k04_specialised,
    library,
)
from course_kernels.measure import compare
from course_kernels.problem import Workload

IN_FP32 = {
    "materialised": k01_materialised,
    "teaching": k02_teaching,
    "flash": k03_flash,
}
IN_BF16 = {
    "flash": k03_flash,
    "specialised": k04_specialised,
    "cudnn": library.sdpa_cudnn,
    "sdpa_flash": library.sdpa_flash,
    "efficient": library.sdpa_efficient,
    "math": library.sdpa_math,
    "materialised": k01_materialised,
}


def check(kernels, dtype):
    """compare() checks before it times; here the check is what we came for."""
    shape = {"B": 2, "H": 4, "N": 1000, "D": 128}
    return {
        "full": compare(
            kernels, Workload.of(dtype, **shape, causal=False), seconds=0.05
        ),
        "causal": compare(
            kernels, Workload.of(dtype, **shape, causal=True), seconds=0.05
        ),
    }


record(right_fp32=check(IN_FP32, "float32"), right_bf16=check(IN_BF16, "bfloat16"))

# %% [markdown]
# How far the worst element is from the float64 answer, relative to its size:
#
# /// table
# columns: [kernel, type, full, causal]
# rows:
#   - ["materialised", fp32, "{{ right_fp32.full.materialised.error:.0e }}",
#      "{{ right_fp32.causal.materialised.error:.0e }}"]
#   - ["**teaching**", fp32, "{{ right_fp32.full.teaching.error:.0e }}",
#      "{{ right_fp32.causal.teaching.error:.0e }}"]
#   - ["tuned Triton", fp32, "{{ right_fp32.full.flash.error:.0e }}",
#      "{{ right_fp32.causal.flash.error:.0e }}"]
#   - ["materialised", bf16, "{{ right_bf16.full.materialised.error:.0e }}",
#      "{{ right_bf16.causal.materialised.error:.0e }}"]
#   - ["**tuned Triton**", bf16, "{{ right_bf16.full.flash.error:.0e }}",
#      "{{ right_bf16.causal.flash.error:.0e }}"]
#   - ["with specialists", bf16, "{{ right_bf16.full.specialised.error:.0e }}",
#      "{{ right_bf16.causal.specialised.error:.0e }}"]
#   - ["SDPA flash", bf16, "{{ right_bf16.full.sdpa_flash.error:.0e }}",
#      "{{ right_bf16.causal.sdpa_flash.error:.0e }}"]
#   - ["SDPA cuDNN", bf16, "{{ right_bf16.full.cudnn.error:.0e }}",
#      "{{ right_bf16.causal.cudnn.error:.0e }}"]
#   - ["SDPA memory-efficient", bf16, "{{ right_bf16.full.efficient.error:.0e }}",
#      "{{ right_bf16.causal.efficient.error:.0e }}"]
#   - ["SDPA math", bf16, "{{ right_bf16.full.math.error:.0e }}",
#      "{{ right_bf16.causal.math.error:.0e }}"]
# ///
#
# /// exercise | A kind test
# A colleague checks his kernel on inputs of all ones. Name two wrong kernels that pass.
# /// answer
# With equal keys all scores are equal, and the answer is the mean of V, which is all ones. So a kernel that never
# repairs passes. One without the $1/\sqrt d$ passes. A kernel that stops after the first tile also passes. That makes
# three.
# ///

# %% [markdown]
# ## What did it buy? Count the trips
#
# Take a real batch: 256 heads with N = 4096 and d = 128, in bf16. First by hand. The plain recipe carries Q, K, V
# and O once each, and the square four times. Flash carries Q, K, V and O once each, and no square.
#
# /// predict | By what factor does the traffic fall, when the hardware counts it?
# - [counted.materialised.gb / counted.flash.gb >= 100] By thousands, as N = 4096
# - [12 <= counted.materialised.gb / counted.flash.gb < 100] By some tens, as N/d = 32
# - [counted.materialised.gb / counted.flash.gb < 12] By about four, for the four trips
# /// reveal
# The counters say {{ counted.materialised.gb / counted.flash.gb:.1f }}. By hand, it is four squares divided by four thin
# matrices, plus one for the thin matrices themselves. That is $1 + N/d$, or {{ by_hand.materialised / by_hand.flash:.0f }}.
#
# /// table
# columns: [kernel, "by hand, GB", "counted, GB", of which read, and written]
# rows:
#   - [materialised, "{{ by_hand.materialised / 1e9:.1f }}", "{{ counted.materialised.gb:.1f }}",
#      "{{ counted.materialised.read_gb:.1f }}", "{{ counted.materialised.write_gb:.1f }}"]
#   - [tuned Triton, "{{ by_hand.flash / 1e9:.2f }}", "{{ counted.flash.gb:.2f }}",
#      "{{ counted.flash.read_gb:.2f }}", "{{ counted.flash.write_gb:.2f }}"]
# caption: Counted by Nsight Compute, over every kernel of the call.
# ///
# ///

# %%
from course_kernels.measure import count_many

B, H, N, D = 16, 16, 4096, 128
batch = Workload.of("bfloat16", B=B, H=H, N=N, D=D, causal=False)
thin = 2 * B * H * N * D  # bytes of Q; K, V and O weigh the same
square = 2 * B * H * N * N  # bytes of S; P weighs the same
tiles = N // 64  # tiles of 64 queries in one head
counts = count_many([(k01_materialised, batch), (k03_flash, batch)])
record(
    by_hand={
        "square": quantity(square, "B"),
        "materialised": quantity(4 * thin + 4 * square, "B"),
        "flash": quantity(4 * thin, "B"),
        "tiles": quantity(tiles),
        "each_tile_fetches": quantity(2 * thin + tiles * 2 * thin, "B"),
        "keys_and_values": quantity(2 * 2 * N * D, "B"),  # of one head
    },
    counted=dict(zip(("materialised", "flash"), counts, strict=True)),
)

# %% [markdown]
# Why is it not a factor of 4096? Because every kernel must carry something. Compare the square with Q, K, V and O, which every
# kernel must carry. A row of the square has N numbers and a row of Q has d, so what matters is N/d. The *storage* of
# both squares is gone, all {{ 2 * by_hand.square / 1e9:.1f }} GB of it. The *traffic* fell only by the factor above. These are
# two different statements.
#
# Now look harder. Does flash really fetch K and V only once? Each tile of queries walks past *all* keys,
# and one head has {{ by_hand.tiles:.0f }} tiles of 64 rows. If every walk went all the way to HBM, we would count
# {{ by_hand.each_tile_fetches / 1e9:.1f }} GB, hardly less than for the plain recipe. That is the $N^2d^2/M$ of the
# theory.
#
# /// claim | counted.flash.gb < 1.6 * by_hand.flash / 1e9
# We count {{ counted.flash.gb:.2f }} GB. So nearly all of those walks end in L2. K and V of one head take up {{ by_hand.keys_and_values / 1e6:.1f }}
# MB. Most likely the card works on a few heads at a time, and their keys and values wait there, in the L2 cache (the
# shelf). The order in which we number the blocks should help: first every tile of one head, then the next head. We have
# not tried any other order.
# /// otherwise
# We count {{ counted.flash.gb:.2f }} GB. Some of those walks end in the L2 cache (the shelf), and on this card some do
# not.
# ///
#
# /// exercise | A factor of your own
# Forecast the factor for N = 1024 and d = 64. The paper counted 9.2 for these sizes [^dao2022]. Why is that less?
# /// answer
# $1 + 1024/64 = 17$. The paper counts the backward pass as well, where flash fetches its inputs again to compute the
# scores a second time. And some walks that end in L2 here may have gone to HBM on the paper's card. The forecast is a ceiling.
# ///

# %% [markdown]
# ## And the clock?
#
# Less carrying should mean less waiting. Let N grow from 512 to 16384 and keep the number of tokens fixed, B·N =
# 16384: short sequences come in large batches, long ones alone. There are 16 heads, d = 128, in bf16, and the kernels
# take turns.
#
# One guest, FlashAttention-3, runs at the last length only, and only if it is installed on the measuring machine. It is the
# third generation, made for Hopper. It comes with FlashInfer, a library for serving models. It takes one sequence at a time,
# and at N = 16384 there is only one.
#
# Your kernel runs its own race, in fp32, against the plain recipe in fp32. Your kernel does not use tensor cores. In a race
# with the bf16 kernels it would be a spoon against a mixer.
#
# /// predict | As N grows, what happens to the TFLOP/s of flash, and to those of the plain recipe?
# - [flash.n8192.tflops > 1.1 * flash.n512.tflops and materialised.n8192.tflops > 1.1 * materialised.n512.tflops] Both rise
# - [flash.n8192.tflops > 1.1 * flash.n512.tflops and materialised.n8192.tflops <= 1.1 * materialised.n512.tflops] Only flash rises
# - [flash.n8192.tflops <= 1.1 * flash.n512.tflops] Flash does not rise
# /// reveal
# From N = 512 to 8192, flash goes from {{ flash.n512.tflops:.0f }} to {{ flash.n8192.tflops:.0f }} TFLOP/s,
# and the plain recipe from {{ materialised.n512.tflops:.0f }} to {{ materialised.n8192.tflops:.0f }}.
# ///

# %%
import torch
from course_kernels.measure import text

SIZES = (512, 1024, 2048, 4096, 8192, 16384)


def race(kernels, dtype, N, *, H=16, D=128, causal=False, seconds=0.2):
    """All kernels at one length, interleaved; those that keep the square run only where it fits."""
    room = torch.cuda.get_device_properties(0).total_memory
    if (
        room < 20 * H * 16384 * N
    ):  # five squares of four bytes: the hungriest holds that many
        kernels = {
            name: k
            for name, k in kernels.items()
            if name not in ("materialised", "math")
        }
    w = Workload.of(dtype, B=16384 // N, H=H, N=N, D=D, causal=causal)
    return compare(kernels, w, seconds=seconds)


installed = library.flashinfer_version()
GUESTS = {"fa3": library.flashinfer_fa3} if installed else {}

# The last length is the headline, and gets more time.
runs = {N: race(IN_BF16, "bfloat16", N) for N in SIZES[:-1]}
runs[16384] = race({**IN_BF16, **GUESTS}, "bfloat16", 16384, seconds=0.5)
record(
    guests={
        "raced": quantity(len(GUESTS)),
        "flashinfer": text(installed or "none"),
    },
    **{
        name: {f"n{N}": runs[N][name] for N in SIZES if name in runs[N]}
        for name in (*IN_BF16, *GUESTS)
    },
)

# %%
FUSED = {
    name: IN_BF16[name]
    for name in ("flash", "specialised", "cudnn", "sdpa_flash", "efficient")
}
record(
    causal=race({**FUSED, **GUESTS}, "bfloat16", 16384, causal=True, seconds=0.5),
    d64=race(
        FUSED, "bfloat16", 16384, H=32, D=64
    ),  # half the head, twice the heads
    d64_causal=race(FUSED, "bfloat16", 16384, H=32, D=64, causal=True),
)

# %%
PLAIN = {"materialised": k01_materialised, "teaching": k02_teaching}
plain = {N: race(PLAIN, "float32", N, seconds=0.15) for N in SIZES}
record(
    fp32={
        name: {f"n{N}": plain[N][name] for N in SIZES if name in plain[N]}
        for name in PLAIN
    }
)

# %% [markdown]
# /// chart | lines
# title: Attention forward, bf16, d = 128
# x: N
# y: tflops
# x_label: N, with B·N = 16384 and 16 heads
# y_label: TFLOP/s
# x_scale: log2
# series:
#   - {name: cudnn.*, label: SDPA cuDNN}
#   - {name: specialised.*, label: with specialists}
#   - {name: flash.*, label: tuned Triton}
#   - {name: sdpa_flash.*, label: SDPA flash}
#   - {name: efficient.*, label: SDPA memory-efficient}
#   - {name: materialised.*, label: materialised}
#   - {name: math.*, label: SDPA math}
# alt: >-
#   TFLOP/s against sequence length, seven lines. At N = 16384, cuDNN reaches {{ cudnn.n16384.tflops:.0f }},
#   the kernel with specialists {{ specialised.n16384.tflops:.0f }}, tuned Triton {{ flash.n16384.tflops:.0f }}, SDPA
#   flash {{ sdpa_flash.n16384.tflops:.0f }} and memory-efficient {{ efficient.n16384.tflops:.0f }}. At N = 8192,
#   materialised reaches {{ materialised.n8192.tflops:.0f }} and SDPA math {{ math.n8192.tflops:.0f }}.
# caption: "The same count for every kernel: 4·B·H·N²·d operations. Repairing and recomputing earn nothing."
# ///
#
# At N = 4096 the plain recipe takes {{ materialised.n4096.ms:.2f }} ms and flash {{ flash.n4096.ms:.2f }} ms.
# The traffic fell by a factor of {{ counted.materialised.gb / counted.flash.gb:.0f }} above, the time by
# {{ materialised.n4096.ms / flash.n4096.ms:.1f }}. Once the carrying is gone, the cooking remains: the same
# number of multiply-adds for both. At the same length SDPA flash takes {{ sdpa_flash.n4096.ms:.2f }} ms and SDPA cuDNN
# {{ cudnn.n4096.ms:.2f }} ms.
#
# The plain recipe keeps several squares, so its line ends where they no longer fit in the card's memory.
#
# /// claim | l8.plain.materialised.n16384.tflops > 1.3 * l8.plain.materialised.n8192.tflops
# Where there is room for N = 16384, as on the lecture's card, that point needs explaining. There, on an {{ l8.gpu.name }},
# the plain recipe recovers: {{ l8.plain.materialised.n16384.tflops:.0f }} TFLOP/s, after {{ l8.plain.materialised.n8192.tflops:.0f }}
# at 8192. By our count of trips it should not recover. [The lecture looked into
# it](../lectures/l8_attention.py#the-plain-recipe-on-the-card): from that length on PyTorch uses a different softmax.
# /// otherwise
# Where there is room for N = 16384, as on the lecture's card, it goes on. There, on an {{ l8.gpu.name }}, the plain recipe
# reaches {{ l8.plain.materialised.n16384.tflops:.0f }} TFLOP/s, after {{ l8.plain.materialised.n8192.tflops:.0f }} at 8192.
# [The lecture looked at both lengths](../lectures/l8_attention.py#the-plain-recipe-on-the-card).
# ///
#
# Now look at your kernel, among its peers.
#
# /// chart | lines
# title: Attention forward, fp32 without tensor cores, d = 128
# x: N
# y: tflops
# x_label: N, with B·N = 16384 and 16 heads
# y_label: TFLOP/s
# x_scale: log2
# series:
#   - {name: fp32.materialised.*, label: materialised}
#   - {name: fp32.teaching.*, label: teaching kernel}
# alt: >-
#   TFLOP/s in fp32 against sequence length, two lines. At N = 4096, materialised reaches {{ fp32.materialised.n4096.tflops:.1f }}
#   and the teaching kernel {{ fp32.teaching.n4096.tflops:.1f }}.
# ///
#
# /// claim | 0.12 < fp32.teaching.n4096.tflops / fp32.materialised.n4096.tflops < 0.45
# This is a loss, and we show it: less than half of the plain recipe's speed. At N = 4096 your kernel reaches
# {{ fp32.teaching.n4096.tflops:.1f }} TFLOP/s, the plain recipe {{ fp32.materialised.n4096.tflops:.1f }}. The plain recipe's
# two multiplies are the library's, and those are very good. Your kernel has no square to carry and still comes second. The
# likely reason is that it reads shared memory for nearly every multiply. Curing *that* is what the matrix-multiply
# ladder is about.
# /// otherwise
# At N = 4096 your kernel reaches {{ fp32.teaching.n4096.tflops:.1f }} TFLOP/s, and the plain recipe, whose
# two multiplies are the library's, {{ fp32.materialised.n4096.tflops:.1f }}.
# ///
#
# /// exercise | What grows?
# B·N stays fixed. From N = 512 to 16384, how does the work, $4BHN^2d$, grow? And how do the bytes of Q, K, V and O grow?
# /// answer
# The work grows with N, 32-fold. The thin matrices stay the same size. So the work per byte grows 32-fold too, and that is
# the subject of the next section.
# ///

# %% [markdown]
# ## Two roofs
#
# Every kernel lives under two roofs [^williams2009]. The flat one is the arithmetic peak. The sloping one is bandwidth
# times *intensity*, the number of operations you do for each byte you carry. Under the slope you wait for HBM. Under
# the flat roof you wait for the arithmetic.
#
# /// predict | At N = 4096 and d = 128, which kernel is under which roof?
# In bf16 the two roofs of an H200 meet at about 206
# operations per byte; the roofs of an H100, whose memory is slower, meet at about 295.
#
# - [big.flash.gflop / counted.flash.gb < gpu.bf16_tflops / gpu.tb_per_s] Both under the slope: they wait for bytes
# - [big.materialised.gflop / counted.materialised.gb < gpu.bf16_tflops / gpu.tb_per_s <= big.flash.gflop / counted.flash.gb] The plain recipe under the slope, flash under the flat roof
# - [big.materialised.gflop / counted.materialised.gb >= gpu.bf16_tflops / gpu.tb_per_s] Both under the flat roof: they wait for the cooks
# /// reveal
# The plain recipe does {{ big.materialised.gflop / counted.materialised.gb:.0f }} operations for each byte it
# carries, flash {{ big.flash.gflop / counted.flash.gb:.0f }}.
#
# /// chart | roofline
# title: Two kernels under two roofs, N = 4096, d = 128
# math: bf16
# points:
#   - label: materialised
#     intensity: big.materialised.gflop / counted.materialised.gb
#     tflops: big.materialised.tflops
#   - label: tuned Triton
#     intensity: big.flash.gflop / counted.flash.gb
#     tflops: big.flash.tflops
# alt: >-
#   A roofline. Materialised is at {{ big.materialised.gflop / counted.materialised.gb:.0f }} operations per byte and {{ big.materialised.tflops:.0f }}
#   TFLOP/s, tuned Triton far to the right, at
#   {{ big.flash.gflop / counted.flash.gb:.0f }} operations per byte and {{ big.flash.tflops:.0f }} TFLOP/s.
# caption: Useful operations over counted bytes. The roofs are those of the data sheet.
# ///
# ///

# %%
record(
    big=compare(
        {"materialised": k01_materialised, "flash": k03_flash}, batch, seconds=0.5
    )
)

# %% [markdown]
# So FlashAttention made nothing cheaper. It *moved* the problem from HBM, which nobody can widen, to the threads, which
# you can organise. Everything that follows is about keeping the threads busy.
#
# /// claim | big.flash.of_peak < 0.75
# And the threads are not always busy: the kernel reaches {{ big.flash.of_peak:.0%}} of peak. Where is the rest?
# /// otherwise
# And here the threads are nearly always busy: the kernel reaches {{ big.flash.of_peak:.0%}} of peak.
# ///
#
# /// exercise | The roof over fp32
# In fp32 the roofs of an H200 meet at about 14 operations per byte, and the roofs of an H100 at about 20. Under which roof is
# the plain recipe in fp32? Count four trips of four-byte scores.
# /// answer
# For each score the plain recipe carries 16 bytes and does 4d = 512 operations: 32 per byte. That is under the *flat* roof,
# square and all. When arithmetic is slow, HBM is not what hurts, so in your own race there was little to gain by saving
# trips. The square became the enemy when tensor cores made the arithmetic fast.
# ///

# %% [markdown]
# ## What is still lost
#
# The hardest race is at N = 16384 and d = 128, against the strongest engine that comes with PyTorch.
#
# /// predict | You saw our loop next to cuDNN over the full square. Now take causal, where half of the tiles are skipped: how close does our loop come?
# - [flash_over_cudnn.causal < 0.65] About half its speed
# - [0.65 <= flash_over_cudnn.causal < 0.92] About four fifths of its speed
# - [flash_over_cudnn.causal >= 0.92] Level with it
# /// reveal
# Our loop reaches {{ flash_over_cudnn.causal:.2f }} of cuDNN's speed, and {{ flash_over_cudnn.full:.2f }} for the full square.
#
# /// define | flash_over_sdpa_flash.full = flash.n16384.tflops / sdpa_flash.n16384.tflops
# unit: ×
# what: tuned Triton over SDPA flash, N = 16384, d = 128, bf16, full
# ///
#
# /// define | flash_over_sdpa_flash.causal = causal.flash.tflops / causal.sdpa_flash.tflops
# unit: ×
# what: tuned Triton over SDPA flash, N = 16384, d = 128, bf16, causal
# ///
#
# /// define | flash_over_cudnn.full = flash.n16384.tflops / cudnn.n16384.tflops
# unit: ×
# what: tuned Triton over SDPA cuDNN, N = 16384, d = 128, bf16, full
# ///
#
# /// define | flash_over_cudnn.causal = causal.flash.tflops / causal.cudnn.tflops
# unit: ×
# what: tuned Triton over SDPA cuDNN, N = 16384, d = 128, bf16, causal
# ///
#
# /// table
# columns: ["TFLOP/s", full, causal, "d = 64, full", "d = 64, causal", "% of peak, full"]
# rows:
#   - ["SDPA cuDNN", "{{ cudnn.n16384.tflops:.0f }}", "{{ causal.cudnn.tflops:.0f }}",
#      "{{ d64.cudnn.tflops:.0f }}", "{{ d64_causal.cudnn.tflops:.0f }}", "{{ cudnn.n16384.of_peak:.0%}}"]
#   - ["with specialists", "{{ specialised.n16384.tflops:.0f }}", "{{ causal.specialised.tflops:.0f }}",
#      "{{ d64.specialised.tflops:.0f }}", "{{ d64_causal.specialised.tflops:.0f }}",
#      "{{ specialised.n16384.of_peak:.0%}}"]
#   - ["**tuned Triton**", "{{ flash.n16384.tflops:.0f }}", "{{ causal.flash.tflops:.0f }}",
#      "{{ d64.flash.tflops:.0f }}", "{{ d64_causal.flash.tflops:.0f }}", "{{ flash.n16384.of_peak:.0%}}"]
#   - ["SDPA flash", "{{ sdpa_flash.n16384.tflops:.0f }}", "{{ causal.sdpa_flash.tflops:.0f }}",
#      "{{ d64.sdpa_flash.tflops:.0f }}", "{{ d64_causal.sdpa_flash.tflops:.0f }}",
#      "{{ sdpa_flash.n16384.of_peak:.0%}}"]
#   - ["SDPA memory-efficient", "{{ efficient.n16384.tflops:.0f }}", "{{ causal.efficient.tflops:.0f }}",
#      "{{ d64.efficient.tflops:.0f }}", "{{ d64_causal.efficient.tflops:.0f }}", "{{ efficient.n16384.of_peak:.0%}}"]
# caption: For causal attention, half of the operations are counted. With d = 64 there are 32 heads, for the same width of model.
# ///
#
# /// claim | flash_over_sdpa_flash.full > 1.4 and flash_over_sdpa_flash.causal > 1.4
# Against SDPA's flash back end we win: {{ flash_over_sdpa_flash.full:.2f }} times its speed for full attention,
# {{ flash_over_sdpa_flash.causal:.2f }} times for causal. That back end is FlashAttention-2, written for the generation of
# cards before this one: the FlashAttention-3 paper puts it at 35 % of an H100's peak [^shah2024].
# /// otherwise
# Against SDPA's flash back end our kernel reaches {{ flash_over_sdpa_flash.full:.2f }} times its speed for full attention,
# and {{ flash_over_sdpa_flash.causal:.2f }} times for causal. That back end is FlashAttention-2, written for the generation of
# cards before Hopper: the FlashAttention-3 paper puts it at 35 % of an H100's peak [^shah2024].
# ///
#
# /// claim | 0.75 < flash_over_cudnn.full < 1 and 0.75 < flash_over_cudnn.causal < 1
# Against cuDNN this kernel loses: {{ flash_over_cudnn.full:.2f }} of its speed for full attention,
# {{ flash_over_cudnn.causal:.2f }} for causal. That is more than three quarters, but not all of it. It is worth knowing where
# the rest went.
# /// otherwise
# Against cuDNN this kernel reaches {{ flash_over_cudnn.full:.2f }} times its speed for full attention, and
# {{ flash_over_cudnn.causal:.2f }} times for causal. Either way, it is worth knowing what limits such a kernel.
# ///
# ///
#
# /// when | guests.raced == 1
# PyTorch's best is not all there is. The guest ran in the same rounds, on the same inputs: **FlashAttention-3**, as
# it comes with FlashInfer {{ guests.flashinfer }}, reached {{ fa3.n16384.tflops:.0f }} TFLOP/s for full attention and
# {{ causal.fa3.tflops:.0f }} for causal. It expects the layout (N, H, d), but accepts any strides: it reads and writes through
# a view, so nothing is copied for it.
# /// otherwise
# PyTorch's best is not all there is. FlashAttention-3 itself was **not raced** on this machine, because FlashInfer, which
# contains it, was not installed. So whatever this page says about FlashAttention-3 comes from its paper, on its paper's
# card.
# ///
#
# Two kinds of units work in every block. The **tensor cores** multiply. The **special-function units** take
# exponentials. On Hopper the tensor cores are very fast, and the special-function units are not: the authors of FlashAttention-3 compare 989
# TFLOP/s of matrix multiply with 3.9 trillion exponentials a second [^shah2024].
# At d = 128 a score costs 512 operations and one exponential. Divide.

# %%
MATMUL_PER_S, EXP_PER_S = (
    989e12,
    3.9e12,
)  # H100 SXM, as the FlashAttention-3 paper sets them side by side


def taking_turns(d):
    """Share of its peak that is left for the multiply when multiply and softmax take turns."""
    multiply, exponential = 4 * d / MATMUL_PER_S, 1 / EXP_PER_S
    return multiply / (multiply + exponential)


record(
    turns={
        "exp_over_multiply": quantity(MATMUL_PER_S / (4 * 128 * EXP_PER_S)),
        "d128": quantity(taking_turns(128)),
        "d64": quantity(taking_turns(64)),
    }
)

# %% [markdown]
# That single exponential takes {{ turns.exp_over_multiply:.0%}} as long as the 512 operations. If the two take strict
# turns, and everything else is free, the best that you can reach at d = 128 is {{ turns.d128:.0%}} of peak. At d = 64 it is {{ turns.d64:.0%}}:
# half the multiplying, the same softmax. Look at the table again. From d = 128
# to d = 64, full, cuDNN goes from {{ cudnn.n16384.of_peak:.0%}} of peak to {{ d64.cudnn.of_peak:.0%}}, and our
# kernel from {{ flash.n16384.of_peak:.0%}} to {{ d64.flash.of_peak:.0%}}.
#
# /// claim | flash.n16384.of_peak < turns.d128
# Our kernel, at {{ flash.n16384.of_peak:.0%}}, stays below that limit. It has one kind of warp, and each warp does everything:
# it orders the next tile, multiplies, exponentiates, and multiplies again. Two programs of 64 rows share an SM, so one
# *can* multiply while the other exponentiates. But nothing keeps them in step.
# /// otherwise
# Our kernel, at {{ flash.n16384.of_peak:.0%}}, is above that limit, so its warps do overlap the two.
# ///
#
# We cannot see what cuDNN does inside. We can read FlashAttention-3. FlashAttention-3 gives the fetching to warps that
# do nothing else: *warp specialisation*. It lets two groups alternate, so that one multiplies while the other exponentiates:
# *ping-pong*. And it overlaps multiplies and exponentials within each group: *pipelining*. Then its authors took their
# kernel apart. On an H100 at N = 8448 and d = 128, specialisation alone gave 582 TFLOP/s, pipelining alone 570, and
# both together 661 [^shah2024]. No single trick explains it. Ours has no specialists. In Triton you write one program
# for a whole table, and the compiler decides who does what inside.
#
# Is that the reason? There is one way to find out: hire specialists. `k04_specialised` is the same loop once more, in
# Gluon, one level below Triton, where you say who does what. One warp fetches and does nothing else. The other warps
# compute, in groups of four, and each group lets its last product run on while it takes its exponentials.
#
# /// define | specialised_over_cudnn.full = specialised.n16384.tflops / cudnn.n16384.tflops
# unit: ×
# what: attention with specialised warps over SDPA cuDNN, N = 16384, d = 128, bf16, full
# ///
#
# /// define | specialised_over_cudnn.causal = causal.specialised.tflops / causal.cudnn.tflops
# unit: ×
# what: attention with specialised warps over SDPA cuDNN, N = 16384, d = 128, bf16, causal
# ///
#
# /// claim | specialised.n16384.tflops > 1.1 * flash.n16384.tflops and causal.specialised.tflops > 1.1 * causal.flash.tflops
# With the same multiplications, on the same card, it reaches {{ specialised.n16384.tflops:.0f }} TFLOP/s instead of
# {{ flash.n16384.tflops:.0f }}, or {{ specialised.n16384.of_peak:.0%}} of peak. That is
# {{ specialised_over_cudnn.full:.2f }} times cuDNN's speed for full attention and
# {{ specialised_over_cudnn.causal:.2f }} times for causal. The likely reason is less idle time between the two kinds
# of units. It is not the only thing that changed: a block also takes more rows, so fewer bytes come from L2. We did not measure
# how much each change contributes.
# /// otherwise
# With the same multiplications, on the same card, it reaches {{ specialised.n16384.tflops:.0f }} TFLOP/s where the plain
# kernel reaches {{ flash.n16384.tflops:.0f }}, or {{ specialised.n16384.of_peak:.0%}} of peak. For causal attention the two reach
# {{ causal.specialised.tflops:.0f }} and {{ causal.flash.tflops:.0f }} TFLOP/s. That is
# {{ specialised_over_cudnn.full:.2f }} times cuDNN's speed for full attention and
# {{ specialised_over_cudnn.causal:.2f }} times for causal. The specialists are not the only thing that changed: a block also
# takes more rows, so fewer bytes come from L2. We did not measure how much each change contributes.
# ///
#
# /// when | guests.raced == 1
# /// claim | 0.85 < specialised.n16384.tflops / fa3.n16384.tflops < 1.15 and 0.85 < causal.specialised.tflops / causal.fa3.tflops < 1.25
# And against the guest, whose idea this is? {{ specialised.n16384.tflops / fa3.n16384.tflops:.2f }} times
# FlashAttention-3's speed for full attention, {{ causal.specialised.tflops / causal.fa3.tflops:.2f }} times for
# causal. Neither leaves the other behind. One is CUDA C++ with CUTLASS, the other is this page's loop with roles.
# /// otherwise
# Against the guest, whose idea this is: {{ specialised.n16384.tflops / fa3.n16384.tflops:.2f }} times
# FlashAttention-3's speed for full attention, {{ causal.specialised.tflops / causal.fa3.tflops:.2f }} times for
# causal.
# ///
# ///
#
# It has its price. The plain kernel fits on a page and runs on many cards. The kernel with specialists runs only on
# Hopper, and you must arrange by hand who waits for whom: one wrong *turn* of a barrier, and the card hangs for good.
# And look at the d = 64 columns before you praise it. Read it after you have read everything else; Hopper has a
# workshop of its own.
#
# And the clock? The peak on the data sheet assumes a clock of 1830 MHz [^nvidia-h200]. While the tuned Triton kernel
# ran, the card was at {{ flash.n16384.sm_mhz:.0f }} MHz and drew {{ flash.n16384.power_w:.0f }} W. Compare the two
# clocks before you blame a kernel for what the card does.
#
# /// exercise | Where to spend
# You have one wish: the exponential at half the price, or the multiply at half the price. With strict turns at d = 128,
# which do you choose, and what happens to the idle share of the tensor cores?
# /// answer
# Call the multiply 2 and the exponential 1, together 3. The first wish gives 2.5, the second 2. Take the second. But
# now the tensor cores are idle in one of two beats, instead of one of three. Each card with faster tensor cores makes
# the softmax matter more.
# ///

# %% [markdown]
# ## FlashAttention-2 and -3 on a napkin
#
# There is no code here, only what changed and why. Descendants of this loop are at work in PyTorch, in vLLM and in TensorRT-LLM.
#
# **FlashAttention** (2022) is this page: tiles, online softmax, no square in HBM, and scores that are recomputed in the
# backward pass.
#
# **FlashAttention-2** (2023) asks: *who sits where?* The first version gave a whole head to one block; with a few
# long sequences most tables stayed empty. Now the queries are split over blocks, too. Within a block each warp takes
# its own rows, so the warps no longer pass half-finished sums through shared memory. And the division moves out of
# the loop, to the very end. You have met all three changes; they are in the kernel you typed. The paper reports about twice
# the speed of its predecessor and 50–73 % of an A100's peak [^dao2023].
#
# **FlashAttention-3** (2024) asks: *who waits for whom?* It adds specialists that only fetch, ping-pong, and FP8 for
# models that can tolerate it. The paper reports 1.5 to 2.0 times the speed of FlashAttention-2, up to 740 TFLOP/s or 75 % of an
# H100's peak in FP16, and nearly 1.2 PFLOP/s in FP8, with 2.6 times less error than a plain FP8 kernel [^shah2024].
#
# *Carry less. Seat everybody. Never wait.* Do this in that order, for any kernel.
#
# /// exercise | Three patients
# (a) One head, N = 100 000, most of the card idle. (b) HBM always busy, the tensor cores hardly ever. (c) HBM quiet,
# the tensor cores idle in every third beat. Which of the three papers does each patient need?
# /// answer
# (a) The second: more seats. (b) The first: carry less. (c) The third: never wait.
# ///

# %% [markdown]
# ## Before you leave the table
#
# /// exercise | A window
# Many models let a token look back only at the last W tokens. Change the NumPy loop. Which tiles do you
# skip, where do you mask, and how does the work grow with N?
# /// answer
# The queries i … i+t−1 see nothing before i−W+1 and nothing after i+t−1. So j runs from
# `max(0, i - W + 1) // tile * tile` to `i + tile`. Mask at *both* edges, with `row` and `col` counted in the
# whole sequence: `s[(col > row) | (col <= row - W)] = -np.inf`. The work grows with N·W instead of N². There is one trap: a
# row whose first tile is entirely masked has m = −∞, and −∞ minus −∞ is NaN. The CUDA kernel above is
# safe. Look at its `NEVER`, and say why.
# ///
#
# /// exercise | Two half plates
# Two tables each took half of the keys for the same row. One holds $(m_1, l_1, a_1)$, the other
# $(m_2, l_2, a_2)$. Merge them.
# /// answer
# $m = \max(m_1, m_2)$, and both sides are repaired to it: $l = l_1 e^{m_1-m} + l_2 e^{m_2-m}$, and $a$ in the same way.
# This is the crate step, with a whole table's sum as the crate. With it, you can divide one row among many tables.
# ///
#
# **You can now** point at the square and say what it costs in room and in trips; do online softmax on a
# napkin; read a flash kernel line by line and put causal in its two places; forecast traffic and check it against the
# counter; and say what percentage of peak you reach, and where the rest goes.
#
# **Where this leads.** The matrix-multiply ladder teaches your loop to read shared memory less often. The Hopper
# workshop opens the toolbox: specialists that only fetch, and ping-pong. To see how far attention can be taken on
# this card, idea by idea, and how the backward pass works, read [Attention, as far as it
# goes](../attention_on_hopper.py). To see how far you have come, from Ann's receipt to this loop, look at [one
# picture](../lectures/l8_attention.py#one-query-by-hand). [How every number here is measured](../how_we_measure.py)
# explains how the clock, the checks and the counters work. [The ledger](../numbers.md) lists each number with its spread.
