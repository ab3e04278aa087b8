# ---
# id: teach_l3
# title: "Teaching L3: memory"
# description: How to keep boxes and windows apart, count both by hand, and tell a bound on bytes from a bound on time.
# ---

# %% [markdown]
# # Teaching L3: memory
#
# After this page you can teach the two rules of a GPU's memory without mixing them up, and have a room forecast where a transpose will jam before it
# runs. You will know three wrong columns of numbers by sight, and how to answer *a bad stride costs you eight times*.
#
# You need this page, [the map](../01_the_machine/l3_map.md), and [the students' page](../../docs/lectures/l3_memory.py) with its
# lab `transpose`, which you have typed once. If your room has a card, do it in CUDA C++: in Triton the compiler looks after
# the tray, and half of the lecture is about the tray.

# %% [markdown]
# ## What it is really about
#
# Cooks are never the trouble. Feeding them is. Queues form in two places: the **hall**, which carries boxes, and the **tray**,
# which has windows. Each has a counting rule that fits on one line, and both start from the same thing, an index. So you can
# price an index before anything runs.
#
# /// callout | metaphor
# The pantry hands out boxes of eight jars, never a single one. If you want one jar, you carry eight. The tray has 32 windows, and each serves one
# cook
# in a turn. If somebody is in front of you, you wait. *Boxes: what is carried. Windows: who waits.* Write this line on the board and
# point at it whenever somebody says *coalesced* about the tray, or *bank conflict* about the hall.
# ///

# %% [markdown]
# ## By hand: 32 cooks, four strides
#
# Lane k wants number k × stride, four bytes each. Have them fill one column, then the other. Do not explain the second before the
# first is full.

# %%
from collections import Counter

from course_kernels.measure import quantity, record

STRIDES = (1, 2, 8, 32)
LANES = range(32)


def boxes(stride):
    """Boxes of 32 bytes that hold what a warp wants; a number has 4 bytes."""
    return len({4 * lane * stride // 32 for lane in LANES})


def turns(stride):
    """The longest queue at any of the 32 windows."""
    return max(Counter(lane * stride % 32 for lane in LANES).values())


for stride in STRIDES:
    used = 4 / boxes(stride)  # four boxes would do
    print(f"stride {stride:2}: {boxes(stride):2} boxes, used {used:.1%};", end=" ")
    print(f"{turns(stride):2} turns")

# %% [markdown]
# /// predict | A sheet has 4, 8, 32, 128 in the column of boxes. What did the student forget?
# Say it as you would at the student's table.
# /// reveal
# The student forgot that 32 cooks can want at most 32 boxes. {{ slips.no_end.s32:.0f }} boxes for {{ right.s1 * 8:.0f }} jars: ask how many jars were
# ordered.
#
# /// table
# columns: ["column of boxes says", "1", "2", "8", "32", "your question"]
# rows:
#   - ["right", "{{ right.s1:.0f }}", "{{ right.s2:.0f }}", "{{ right.s8:.0f }}", "{{ right.s32:.0f }}", "how much of it is used?"]
#   - ["goes on growing", "{{ slips.no_end.s1:.0f }}", "{{ slips.no_end.s2:.0f }}", "{{ slips.no_end.s8:.0f }}", "{{ slips.no_end.s32:.0f }}", "how many jars were ordered?"]
#   - ["counted jars as bytes, or took the tray's rule", "{{ slips.jars_not_bytes.s1:.0f }}", "{{ slips.jars_not_bytes.s2:.0f }}", "{{ slips.jars_not_bytes.s8:.0f }}", "{{ slips.jars_not_bytes.s32:.0f }}", "how many jars fit in a box?"]
# ///
# ///

# %%
slips = {
    "no_end": lambda stride: 32 * 4 * stride // 32,
    "jars_not_bytes": lambda stride: len({lane * stride // 32 for lane in LANES}),
    "windows": turns,  # the other rule
}
record(
    right={f"s{S}": quantity(boxes(S)) for S in STRIDES},
    turns={f"s{S}": quantity(turns(S)) for S in (*STRIDES, 33)},
    slips={
        name: {f"s{S}": quantity(wrong(S)) for S in STRIDES}
        for name, wrong in slips.items()
    },
)

# %% [markdown]
# Look at the last row of the table that you unfolded. If you forget that a jar has four bytes, you get exactly the numbers of the *tray*.
# Two different mistakes give the same column: ask which rule they used before you correct it.
#
# Then add a stride to the second column: 33. {{ turns.s33:.0f }} turn. Wait; somebody will ask what a stride of 33 is good for.
#
# /// callout | by_hand
# Cups and matchboxes. 32 cups in a row are the windows; four students call out their words for stride 8, and put a match into the cup for each. Four
# cups end up with queues of eight, and 28 stay empty. This takes two minutes, and nobody forgets it.
# ///

# %% [markdown]
# ## In production today
#
# /// callout | production
# The tile with one more word in each row is a classic, taught since 2013 [^harris2013]. Newer engines that carry whole tiles need
# rows without gaps, so there the order of the words is scrambled instead: *swizzled*. In code you will meet both, *padded* and *swizzled*.
# The law that says how many must be walking is John Little's law, which holds for queues of any kind [^little1961].
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# This is the transpose, in percent of peak: straight {{ l3.turn.naive.of_peak:.0%}}, by way of the tray {{ l3.turn.tiled.of_peak:.0%}},
# one more word in each row {{ l3.turn.padded.of_peak:.0%}}, 16 bytes at a time {{ l3.turn.vectorised.of_peak:.0%}}. A copy: {{ l3.copy.ours.of_peak:.0%}}.
# One of those steps takes only three characters, `+ 1`.
# ///
#
# The counters say why, one for each rule. One store takes {{ l3.sectors.store.naive:.0f }} sectors straight, and {{ l3.sectors.store.tiled:.0f }} by way of the tray. For 32 numbers the tray takes {{ l3.turns.tray.tiled:.1f }} turns without the extra word, and {{ l3.turns.tray.padded:.1f }} with it.
#
# There is a sentence that you must not say. *Does a bad stride cost a factor of eight in time?* No: eight is a bound on **boxes**. The clock said
# {{ l3.stride.s32.us / l3.stride.s1.us:.1f}}, and from stride 8 to 16, where the boxes stay the same, the time still grew
# {{ l3.stride.s16.us / l3.stride.s8.us:.1f}}-fold. So did the bytes from HBM. Show [the page's table](../../docs/lectures/l3_memory.py#ask-for-neighbours), and have them find the column that the clock follows.
#
# /// callout | demo
# One command runs four transposes. First everybody writes down percentages. The screen shows the kernels in the order of the command; fill the
# staircase
# on the board from there. No GPU? Show [the recorded staircase](../../docs/lectures/l3_memory.py#three-ways-out-of-the-queue).
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"Occupancy must be high."** What is it for? Bytes in flight. One seat in eight with full hands reached {{ l3.flight.v8.r1.of_peak:.0%}} of peak, every seat
# with one vector each {{ l3.flight.v1.r8.of_peak:.0%}}. Both have 32 KiB in flight on an SM.
# ///
#
# - *"L2 is a memory space."* It is a cache, and no address names it. (*Five memory spaces* with L1 and L2 among them is on many slides.)
# - *"Local means near."* It means private. Its bytes are in HBM.
# - *The barrier.* In a transpose, the thread that writes a number is not the one that read it. Without the barrier the
#   answer is sometimes wrong, which is worse than always.
# - *Turned twice.* The tile goes to its place, *and* its inside is turned. People forget one of the two, or do it in one line and
#   undo it in the next.
# - *Latency and bandwidth.* The one says how long the hall is, the other how wide.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "Nobody in this building is slow. They wait. They wait for boxes in which seven jars of eight are thrown away, and they wait
# behind each other at one window while thirty-one are free. You can see both in the index. Look at it, count, and then fix it:
# neighbours ask for neighbours, and nobody stands behind anybody."
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../01_the_machine/l3_map.md) has every step; the two columns of the table hold it together. If you are late, type stages 3 and 4 in one
# go, and keep the ten minutes for the windows.
#
# /// exercise | A second tile
# A student pads by *two* words, so his rows have 34. How many turns does a column take? Is he wrong?
# /// answer
# Stride 34 leaves a remainder of 2: the lanes queue at 16 windows, two at each. So there are two turns: far fewer than 32, and twice as many as with
# one extra word. Any *odd* row length is harmless, so 33, or 35. Have him try 34 on the card: the answer stays right, and the
# counter shows it.
# ///

# %% [markdown]
# ## You can now teach
#
# - five places, which of them are spaces and which are caches;
# - boxes and windows, by hand, with the wrong columns known by sight;
# - a transpose in five stages, with each jam foretold;
# - Little's law with the card's own numbers;
# - why occupancy is a means.
#
# **Where this leads.** The students' page: [memory](../../docs/lectures/l3_memory.py). The chapter before this one is [teaching L2](l2_the_cuda_model.py). In the next, [teaching the ladder](l4_the_gemm_ladder.py), the table of strides forecasts the first multiply.
