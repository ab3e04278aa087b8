# ---
# id: week_02
# title: "Week 2: the CUDA model and its memories"
# search: {rank: 2}
# nav: "2 · CUDA"
# description: "Threads, blocks, shared memory and who stands beside whom; a vector add against its peak; and a transpose counted with a pencil, then by the hardware."
# ---

# %% [markdown]
# # Week 2: the CUDA model and its memories
#
# /// week
# ///
#
# By the end of this week you can
#
# - write a kernel for a list and say what percent of the memory's peak it reaches;
# - count, from an index expression alone, what a warp's request costs, in memory and in shared memory;
# - say why a plain transpose is slow, and what a tile in shared memory mends.
#
# ## Why this week
#
# Last week's roofline said what a card could do at best. Between that line and your code stand threads that ask for bytes, and much of the percent that is missing is lost in *how* they ask.
# This week you write your first kernel, learn where its bytes come from, and count what its requests cost before a clock runs.
#
# ## Before you begin
#
# - What is a floor, and what is percent of peak? [Your first kernel](../start_here.py#the-floor-by-hand), or [Week 1](week_01.py).
# - What are the two roofs of a card? [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
# - Do you read C? If not, [C for Python people](../c_for_python_people.py#the-same-thing-twice) has all that you need.
#
# ## Read
#
# /// reading
# hwu2022: "The first five chapters are this week: threads, grids in several dimensions, how a multiprocessor runs them, memories and tiles. Do the exercises on tiles. It has a third author, El Hajj, whom lists often leave out. It was written before Hopper, so it has no copies by TMA and no clusters."
# teaching-kit: "The lectures of the first three weeks follow the book. Watch them where the book was too short for you. Take the ideas, and not the sizes of the cards in them: today's have many times as many bytes a second."
# even-easier: "Type its program, and see one thread become many. It uses managed memory, so a page of memory moves when somebody first touches it: with many threads, its kernel spends most of its time on that move, until the post fetches the pages beforehand. Our kernels get tensors that are on the card already."
# ///
#
# ## Ideas
#
# - What are threads, blocks and grids, and how do they come to the hardware? [Who am I?](../lectures/l2_the_cuda_model.py#who-am-i) and [how large is a block?](../lectures/l2_the_cuda_model.py#how-large-is-a-block)
# - How large is shared memory, and how much nearer than global memory? [How far is it?](../lectures/l3_memory.py#how-far-is-it)
# - Why does it matter which neighbours ask? Coalescing: [ask for neighbours](../lectures/l3_memory.py#ask-for-neighbours).
# - How do registers and shared memory limit occupancy, the warps that are there at once, and is more of it better? [Occupancy's trap](../field_guide/occupancy.md).
# - What is a bank conflict? [Thirty-two windows](../lectures/l3_memory.py#thirty-two-windows).
# - What do the caches L1 and L2 do? [How far is it?](../lectures/l3_memory.py#how-far-is-it) and [memory spaces](../field_guide/memory_spaces.md), for nothing can be declared in them.
#
# /// when | l3.sectors.store.naive > 0
# A trip to shared memory takes {{ l3.hop.shared:.0f}} ticks in place of {{ l3.hop.hbm:.0f}} to HBM, on {{ gpu.name }}.
# ///
#
# /// idea | Is a cache a better shared memory, since you need not manage it?
# Both are cut from one memory of the multiprocessor. A cache keeps what was asked for lately, in lines, and throws out what it likes. Shared memory keeps what you put there, where you put it, until you are done, and the whole block can
# read it in another order than it came. A transpose needs exactly that: the same numbers, in another order.
# ///
#
# ## Do
#
# The vector add of [your first kernel](../start_here.py) is the task of this week, and it was run. Type it there, in CUDA C++. (Lists of tasks for this week often allow Numba. Here it is C++, since all later kernels are, and you compile it from Python either way.)
#
# /// source | src/course_kernels/vector_add/k01_cuda.cu
# ///
#
# /// when | l2.seen.line_blocks > 0
# It moves 12 bytes for one addition, so bandwidth is its peak. It reaches {{ l2.adds.plain.of_peak:.0%}} of it, with one number of each list in a thread.
#
# /// predict | A second kernel takes 16 bytes at a time from each list. The bytes in all are the same. What becomes of the time?
# - [l2.adds.vectors.us / l2.adds.plain.us < 0.6] It falls to about a half
# - [0.6 <= l2.adds.vectors.us / l2.adds.plain.us < 0.9] It falls by a tenth to four tenths
# - [0.9 <= l2.adds.vectors.us / l2.adds.plain.us < 1.1] Nothing: the bytes are the same
# - [l2.adds.vectors.us / l2.adds.plain.us >= 1.1] It rises
# /// reveal
# It takes {{ l2.adds.vectors.us / l2.adds.plain.us:.2f}} times as long, and reaches {{ l2.adds.vectors.of_peak:.0%}} of peak. Most likely more bytes are on their way at once; [L2](../lectures/l2_the_cuda_model.py#vector-add-once-more) says what else has changed.
# ///
# /// otherwise
# It moves 12 bytes for one addition, so bandwidth is its peak. How much of it does yours reach? A second kernel takes 16 bytes at a time from each list, and the bytes in all are the same. [L2](../lectures/l2_the_cuda_model.py#vector-add-once-more) races the two: say first what becomes of the time.
# ///
#
# Now count. A warp is 32 lanes that ask together. Global memory hands out *sectors* of 32 neighbouring bytes; shared memory has 32 *banks*, and each serves one word in a turn. So a few lines of NumPy say what a request costs.

# %%
import numpy as np
from course_kernels.measure import quantity, record

LANE = np.arange(32)  # of a warp
N = 8192  # numbers in a row of the matrix, 4 bytes each


def sectors(numbers):
    """Boxes of 32 bytes that a warp touches, from the places of its numbers."""
    return len(np.unique(4 * numbers // 32))


def turns(words):
    """Turns that a warp waits at shared memory: the longest queue at a bank."""
    return int(np.bincount(np.unique(words) % 32).max())


# y[n, m] = x[m, n]: lanes count along n, in a row m, from n = 64 on.
m, n = 5, 64 + LANE
asked = {
    "read": sectors(m * N + n),  # neighbours in x
    "naive": sectors(n * N + m),  # a row of y apart
    "tiled": sectors(n[0] * N + 32 + LANE),  # a row of y
}
column = 3  # of a tile of 32 by 32 words
queue = {
    "row": turns(column * 32 + LANE),
    "tiled": turns(LANE * 32 + column),
    "padded": turns(LANE * 33 + column),
    "swizzled": turns(LANE * 32 + (column ^ LANE)),
}
record(
    asked={name: quantity(count) for name, count in asked.items()},
    queue={name: quantity(count) for name, count in queue.items()},
    sent={
        name: quantity(32 * (asked["read"] + asked[name]), "B")
        for name in ("naive", "tiled")
    },
    needed=quantity(2 * 4 * 32, "B"),
)

# %% [markdown]
# /// when | l3.sectors.store.naive > 0
# /// predict | A plain transpose reads rows and writes columns. How many times as long does it take as a copy of the same bytes?
# It is [the obvious kernel](../lectures/l3_memory.py#the-obvious-kernel). First say how many sectors its 32 lanes write to. Then guess.
#
# - [l3.turn.naive.us / l3.copy.ours.us < 1.5] About as long: the bytes are the same
# - [1.5 <= l3.turn.naive.us / l3.copy.ours.us < 4] Two or three times
# - [4 <= l3.turn.naive.us / l3.copy.ours.us < 16] 4 to 16 times
# - [l3.turn.naive.us / l3.copy.ours.us >= 16] 16 times or more
# /// reveal
# {{ l3.turn.naive.us / l3.copy.ours.us:.1f}} times. It writes to {{ asked.naive:.0f}} sectors where {{ asked.tiled:.0f}} would do. Beside the pencil stands what Nsight Compute counted on the card:
#
# | a warp's 32 numbers | by NumPy | counted | time, µs |
# | --- | ---: | ---: | ---: |
# | plain: sectors of a store | {{ asked.naive:.0f}} | {{ l3.sectors.store.naive:.0f}} | {{ l3.turn.naive.us:,.0f}} |
# | with a tile: sectors of a store | {{ asked.tiled:.0f}} | {{ l3.sectors.store.tiled:.0f}} | |
# | the same: turns at shared memory | {{ queue.tiled:.0f}} | {{ l3.turns.tray.tiled:.0f}} | {{ l3.turn.tiled.us:,.0f}} |
# | rows of 33 words: turns | {{ queue.padded:.0f}} | {{ l3.turns.tray.padded:.0f}} | {{ l3.turn.padded.us:,.0f}} |
# | 16 bytes a lane as well | | | {{ l3.turn.vectorised.us:,.0f}} |
# | a copy | | | {{ l3.copy.ours.us:,.0f}} |
# ///
# /// otherwise
# A plain transpose reads rows and writes columns: it is [the obvious kernel](../lectures/l3_memory.py#the-obvious-kernel). It writes to {{ asked.naive:.0f}} sectors where {{ asked.tiled:.0f}} would do. A warp with a tile waits {{ queue.tiled:.0f}} turns at shared memory, and with rows of 33 words {{ queue.padded:.0f}}. L3 has the kernels: how many times as long as a copy does each take on your card?
# ///
#
# Change `LANE * 33` to any other width in the cell, and see which widths queue.
#
# ## Milestone
#
# /// exercise | The transpose, explained | 6 minutes
# A plain transpose moves every number once, in and out, and computes nothing. Why is it limited by memory all the same? What does a tile in shared memory change, what does it *not* change, and what new fault does it bring?
# /// answer
# With no operation at all its intensity is 0, so it lies at the far left of the roofline: only bytes can limit it, and at best it takes as long as a copy. But it is far from *that* limit. One of its two walks always goes down a column. A warp then reads
# {{ asked.read:.0f}} sectors and writes to {{ asked.naive:.0f}}: it sends {{ sent.naive:,.0f}} bytes about for {{ needed:.0f}} that it needs.
#
# A tile in shared memory lets a warp read a row of x, and write a row of y, with the change of direction between: {{ sent.tiled:.0f}} bytes for {{ needed:.0f}}. What it does not change is the least traffic at HBM.
#
# /// when | l3.sectors.store.naive > 0
# Counted there, the plain kernel moves {{ l3.counted.turn.naive.gb:.2f}} GB and the tiled one {{ l3.counted.turn.tiled.gb:.2f}}, not {{ asked.naive / asked.tiled:.0f}} times as much, for L2 puts most sectors together. What was lost was lost on the way to L2.
# ///
#
# The new fault is the column of the tile: 32 words apart is always the same bank, {{ queue.tiled:.0f}} turns in place of {{ queue.row:.0f}}. A row of 33 words mends it, and so does a swizzle, which wastes no word.
# ///
#
# ## What could not run here
#
# The counts above come from NumPy and run where the site is built. Times and counters come from [L2](../lectures/l2_the_cuda_model.py) and [L3](../lectures/l3_memory.py), and a card that has not run those shows none. On your own card `nox -s lab -- transpose` has you type the three kernels, and the grader says which queue is left.
#
# ## What next
#
# [Week 3](week_03.py) counts the bytes and operations of a whole model.
