# ---
# id: week_13
# title: "Week 13: warps and tensor cores"
# search: {rank: 2}
# nav: "13 · Warps"
# description: "Thirty-two lanes that read each other's registers, played through in NumPy; mean and variance in one pass; and tensor cores by WMMA and by mma.sync."
# ---

# %% [markdown]
# # Week 13: warps and tensor cores
#
# /// week
# ///
#
# By the end of this week you can
#
# - sum over a warp in five steps, without shared memory and without a barrier;
# - collect a row's mean and variance in one pass, and say why the short formula is wrong;
# - say what WMMA hides, what `mma.sync` shows, and which types each takes.
#
# ## Why this week
#
# Triton gave you blocks and hid what is in them. Below, the unit is the warp: 32 lanes that issue together, that can read each other's registers, and that feed a tensor core together. Where a kernel in Triton leaves a part of the peak behind, this is the level at which you look for it.
#
# ## Before you begin
#
# - What is a warp, and what happens to it at a fork? [L2](../lectures/l2_the_cuda_model.py#a-warp-at-a-fork).
# - What is shared memory, and what are its banks? [L3](../lectures/l3_memory.py#thirty-two-windows).
# - Why is LayerNorm a question of reads? [Week 10](week_10.py#milestone).
#
# ## Read
#
# /// reading
# mao-tensor-cores: "WMMA step by step, with code that runs. Take the order: fragment, load, multiply, store."
# appleyard2017: "The first tensor cores, from the day that they came out. The programming interface is still there; the numbers are three generations old."
# schmidt-shuffles: "Slides on shuffles and votes. Draw the butterfly yourself before you turn the page. They are of 2017: they say that the threads of a warp are always in step, which is no longer so since Volta, so today's instructions end in `_sync` and want a mask."
# gpumode: "The list that sends you here says lectures 14 to 20. Of those only 15, on CUTLASS, is this week's. Take 9 on reductions, 23 on tensor cores, 36 on CUTLASS and FlashAttention-3, and 37 on machine code."
# ///
#
# ## Ideas
#
# - Shuffles, and a reduction made of them: [one number from many](../lectures/l3_memory.py#one-number-from-many). The butterfly is played through below.
#
# /// idea | What does a vote tell?
# `__ballot_sync` gives every lane a word of 32 bits, one for each lane's yes or no; `__all_sync` says whether all bits are set, `__any_sync` whether one is. So a warp can agree to skip work, count with one instruction how many lanes have something, or give each of these a place to write to: the number of ones
# below its own bit.
# ///
#
# /// idea | Why reduce in a warp first?
# A sum over a block needs barriers, and everybody waits at each. In a warp there is no barrier to wait at, the numbers stay in registers, and five steps are enough. So a block of 256 sums in its warps, and only eight numbers go through shared memory.
# ///
#
# /// idea | What is a WMMA fragment?
# The part of a tile that a warp holds in its registers, spread over its 32 lanes. How it is spread, WMMA does not say, so you may not look at a fragment's numbers by their place: you load, multiply, store. That is its price: what comes out must go through memory before anybody can work on it by row.
# ///
#
# - Shapes and types of WMMA: 16 × 16 × 16 and its two flat sisters for 16 bits and fewer, 16 × 16 × 8 for TF32. Lists often have FP8 among the types: [L6](../lectures/l6_tensor_cores.py#how-fast-can-it-go-at-all) tried each, and the compiler takes no FP8. That is for `mma.sync`.
# - `mma.sync` in PTX: [L6, the climb](../lectures/l6_tensor_cores.py#the-climb), and the lab *wmma* beside it.
#
# ## Do
#
# LayerNorm needs two numbers of a row, its mean and the sum of its squared distances. A lane has some of the row, so it has a count, a mean and a sum of its own. Two such triples can be joined; and five joins with the lane whose number differs in one bit leave the
# whole row's in every lane. Here is a warp in NumPy.

# %%
import numpy as np

LANES = 32


def shuffle_xor(values, bit):
    """What every lane reads: the value of the lane whose number differs in this bit."""
    return values[np.arange(LANES) ^ bit]


def join(a, b):
    """Count, mean and squared distances of two parts together."""
    (n_a, mean_a, m2_a), (n_b, mean_b, m2_b) = a, b
    n, apart = n_a + n_b, mean_b - mean_a
    mean = mean_a + apart * (n_b / n)
    return n, mean, m2_a + m2_b + apart * apart * (n_a * n_b / n)


def warp_statistics(row):
    """Mean and variance of a row, in fp32, by 32 lanes in five steps."""
    of_lane = row.reshape(-1, LANES).astype(np.float32)
    n = np.full(LANES, len(of_lane), np.float32)
    mean = of_lane.mean(axis=0, dtype=np.float32)
    m2 = ((of_lane - mean) ** 2).sum(axis=0, dtype=np.float32)
    part, steps = (n, mean, m2), 0
    for bit in (16, 8, 4, 2, 1):
        part, steps = (
            join(part, tuple(shuffle_xor(v, bit) for v in part)),
            steps + 1,
        )
    n, mean, m2 = part
    return mean, m2 / n, steps


def short_formula(row):
    """The mean of the squares less the square of the mean, in fp32."""
    x = row.astype(np.float32)
    mean = x.sum(dtype=np.float32) / np.float32(x.size)
    return (x * x).sum(dtype=np.float32) / np.float32(x.size) - mean * mean


row = np.random.default_rng(13).normal(1000.0, 1.0, 4096)
mean, variance, steps = warp_statistics(row)
true = row.astype(np.float32).astype(np.float64).var()

# %% tags=["fold"]
from course_kernels.measure import quantity, record

TWO_PASSES, ONE_PASS = 3, 2  # trips of x, the write among them
record(
    steps=quantity(steps, how="counted"),
    off={
        "joined": quantity(float(abs(variance[0] - true) / true)),
        "short": quantity(float(abs(short_formula(row) - true) / true)),
    },
    trips={
        "two": quantity(TWO_PASSES, how="counted"),
        "one": quantity(ONE_PASS, how="counted"),
    },
)

# %% [markdown]
# /// predict | The short formula: the mean of the squares, less the square of the mean. A row of 4096 numbers around 1000, with a variance of 1, in fp32. How far off is it?
# - [off.short < 0.001] Less than a thousandth
# - [0.001 <= off.short < 0.02] Some thousandths
# - [off.short >= 0.02] Hundredths or worse
# /// reveal
# By {{ off.short:.1%}}: a million less a million, in a format with seven digits. Joined, it is off by {{ off.joined * 1e6:.2f}} millionths, and after {{ steps:.0f}} steps all lanes have it.
# ///
#
# That is the arithmetic of a LayerNorm in one pass. How often x travels is decided elsewhere: it reads x once and writes once, {{ trips.one:.0f}} trips instead of {{ trips.two:.0f}}, and [week 10](week_10.py#milestone) has what they take on the card. Do the shuffles themselves make it faster? L3 asked that of a plain sum.
#
# /// when | l3.sectors.store.naive > 0
# /// predict | A sum of 2²⁸ numbers: a tree in shared memory, and the same with shuffles. How much of the tree's time do the shuffles save?
# - [l3.sums.shuffle.us > 0.9 * l3.sums.tree.us] Next to nothing
# - [0.5 * l3.sums.tree.us < l3.sums.shuffle.us <= 0.9 * l3.sums.tree.us] A part
# - [l3.sums.shuffle.us <= 0.5 * l3.sums.tree.us] Most of it
# /// reveal
# {{ l3.sums.tree.us:.0f}} µs with the tree, {{ l3.sums.shuffle.us:.0f}} with shuffles. With more bytes in flight as well it is {{ l3.sums.vectorised.us:.0f}}: what a warp does between its loads was not what it waited for.
# ///
# /// otherwise
# [L3](../lectures/l3_memory.py) races a tree in shared memory against the same with shuffles, and neither on this card yet. Guess with a pencil: what does a warp wait for in a sum, for its steps or for its bytes?
# ///
#
# ## Milestone
#
# The milestone comes with [week 14](week_14.py#milestone). On the way:
#
# /// exercise | A butterfly on paper | 8 minutes
# Eight lanes hold 3, 1, 4, 1, 5, 9, 2 and 6. Add with the lane whose number differs in the bit 4, then 2, then 1. What do all lanes hold after each step? How many steps does a warp need, and how many barriers?
# /// answer
# After the first step they hold 8, 10, 6, 7 and the same four again. After the second 14, 17, 14, 17, and again. At last all hold 31. A warp of 32 needs 5 steps and 0 barriers.
# ///
#
# ## What could not run here
#
# The same LayerNorm in CUDA, by lanes: the course's own is in Triton, whose sums become such shuffles in the machine code. You would see the time of week 10's best, since the bytes are the same.
#
# ## What next
#
# [Week 14](week_14.py) lets copies run beside the work.
