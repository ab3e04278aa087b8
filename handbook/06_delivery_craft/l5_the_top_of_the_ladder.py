# ---
# id: teach_l5
# title: "Teaching L5: the top of the ladder"
# description: How to lead a room from one issue slot of a scheduler to a register tile that everybody has typed, and to counters that they predicted.
# ---

# %% [markdown]
# # Teaching L5: the top of the ladder
#
# After this page you can lead two hours in which everybody types a register tile and predicts three counters before anybody looks
# at them. You will know the three numbers by heart, and which mistake leads to each wrong number.

# %% [markdown]
# ## What it is really about
#
# A scheduler has one issue slot (a call) per tick. If a fetch takes the slot, nothing is multiplied. So there are only two ways to
# improve: issue fewer of the *other* instructions, or leave fewer slots *unused*. Each step of [the lecture](../../docs/lectures/l5_the_top_of_the_ladder.py)
# does one of the two, and a counter says which.
#
# /// callout | metaphor
# Somebody renovates a house, one weekend at a time. The pantry moved closer to the kitchen weeks ago. Now the tools stay in the
# hands and do not go back into the drawer. Four plates are carried at once. Nobody queues at the sink. And while one pot boils,
# the next is filled. It is the same house and the same dinner. After each weekend they read a number off the wall, and that
# number is what they come back for.
# ///

# %% [markdown]
# ## By hand: three numbers before any code
#
# A thread does 64 multiply-adds. For each step of k it reads the margins of its tile once, and keeps them until the next step.
#
# /// predict | How many numbers does it read if it owns one sum, a column of 8, a square of 8 × 8?
# Write three numbers on paper. In the lab you type them, and a checksum says whether they are right.
#
# - [ ] 128, 128 and 128
# - [x] 128, 72 and 16
# - [ ] 128, 16 and 2
# /// reveal
# {{ one.reads:.0f}}, {{ column.reads:.0f}} and {{ square.reads:.0f}}.
# ///

# %%
from course_kernels.measure import quantity, record


def by_hand(rows, columns, at_once=1):
    """Numbers read, and calls, for 64 multiply-adds of a thread that owns rows x columns sums."""
    steps = 64 // (rows * columns)  # of k
    reads = steps * (rows + columns)
    calls = 64 + reads // at_once
    return reads, calls


TILES = {
    "one": (1, 1, 1),
    "column": (8, 1, 1),
    "square": (8, 8, 1),
    "wide": (8, 8, 4),  # four numbers in one load
}
found = {name: by_hand(*tile) for name, tile in TILES.items()}
for name, (reads, calls) in found.items():
    print(
        f"{name:7s} {reads:4d} numbers read   64 of {calls:3d} instructions multiply"
    )

record(
    **{
        name: {"reads": quantity(reads), "calls": quantity(calls)}
        for name, (reads, calls) in found.items()
    }
)

# %% [markdown]
# | a thread owns | numbers read | of its instructions, multiply-adds |
# |---|---:|---:|
# | one sum | {{ one.reads:.0f}} | 64 of {{ one.calls:.0f}} |
# | a column of 8 | {{ column.reads:.0f}} | 64 of {{ column.calls:.0f}} |
# | a square of 8 × 8 | {{ square.reads:.0f}} | 64 of {{ square.calls:.0f}} |
# | the square, four numbers in one load | {{ square.reads:.0f}} | 64 of {{ wide.calls:.0f}} |
#
# The usual wrong answer is 65 for the column, with one number of B read once for all of it. But a number of B is read *for each step of k*, and there
# are eight steps. Ask: "Is it the same B at the next k?"

# %% [markdown]
# ### Two numbers in one register
#
# A register holds 32 bits: one fp32 number, or **two bf16 numbers, packed**, the first in the low half, the second in the high
# half. A load of 16 bytes brings four fp32 numbers in four registers, or eight bf16 numbers in the same four. Do one register by
# hand before step 6. A bf16 number is the upper half of the fp32 number: 1.5 is 3FC0 0000, so 3FC0. −2 is C000 0000, so C000.
# Together in one register they are C000 3FC0.
#
# Somebody will say: half the bytes, so half the work. Ask: what is *one instruction*? There are two ways to use the two numbers.
#
# - **Take them apart.** Shift the low one up by 16 bits, and clear the lower half of the high one: one instruction
#   each. Then multiply and add in fp32 as before.
# - **Leave them packed.** One instruction multiplies two pairs and adds to two sums [^ptx-isa]. But the sums are bf16 too, with
#   eight significant bits.
#
# /// predict | Add up ones in bf16, one after the other. Where does the sum stop?
# - [ ] It never does
# - [ ] 255
# - [x] 256
# - [ ] 65 504
# /// reveal
# At {{ pack.stuck:.0f}}. The next bf16 number is 258; 257 is exactly in the middle and is rounded to the even one, which is 256
# again. Eight bits are not enough for a sum over 4096 steps of k.
# ///

# %%
import numpy as np


def bf16(x):
    """The nearest number of bf16, ties to even, as 16 bits."""
    bits = int(np.float32(x).view(np.uint32))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def widened(half):
    """The 16 bits of a bf16 number as fp32: they are its upper half."""
    return float(np.uint32(half << 16).view(np.float32))


register = bf16(-2.0) << 16 | bf16(1.5)
low, high = widened(register & 0xFFFF), widened(register >> 16)
print(f"1.5 and -2 packed: {register:X}; taken apart: {low}, {high}")

total = 0.0
while widened(bf16(total + 1.0)) != total:
    total = widened(bf16(total + 1.0))
print(f"ones added up in bf16 stop at {total:.0f}")

reads, _ = by_hand(8, 8)
loads = reads // 8  # eight numbers in one load
apart, packed = 64 + loads + reads, 64 // 2 + loads
print(
    f"the square, taken apart: 64 of {apart} instructions multiply; packed: 32 of {packed}"
)
record(
    pack={
        "stuck": quantity(total),
        "apart": quantity(apart),
        "packed": quantity(packed),
    }
)

# %% [markdown]
# Count the square of 8 × 8 by the rule of the four issue slots. With the numbers taken apart, 64 of {{ pack.apart:.0f}} instructions
# multiply, a smaller share than the 64 of {{ wide.calls:.0f}} in fp32. With packed numbers it would be 32 of {{ pack.packed:.0f}}, each doing two
# multiply-adds, with sums that nobody wants. Our bf16 kernel takes the numbers apart once, on their way to shared memory, and
# from there on it is the fp32 kernel: half the bytes from L2 and HBM, and the same instructions at the lanes. It does {{ l5.half.ours.tflops / l5.ladder.warp_tiles.tflops:.2f }}
# times the multiply-adds that kernel 8, its model, does in fp32 in the same time.

# %% [markdown]
# ## In production today
#
# /// callout | production
# The tile that they type has a name in the libraries. CUTLASS cuts a product into threadblock tiles, warp tiles and thread tiles,
# and its document on GEMM gives the same reasons as your board [^cutlass-gemm]. The best-known public ladder, Boehm's, has twelve
# kernels, and three of them were slower than an earlier one [^boehm2022]. Tell your students so before they climb: a
# step that does not pay off is a result too.
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# Step 7 does not save a single instruction or byte. By hand, a load of B should take half as many wavefronts, so the average load should take two fewer. The counter said
# {{ l5.vital.vectorised.turns_a_load:.2f}} wavefronts before and {{ l5.vital.conflict_free.turns_a_load:.2f}} after. They counted eight
# lanes on their fingers, and the card agreed. That is when the room begins to believe in pencils.
# ///
#
# For the demo, know both ends of the ladder: the naive kernel reaches {{ l5.sgemm.first_of_cublas:.1%}} of the library, our last one {{ l5.sgemm.last_of_cublas:.1%}}.
# And the library reaches {{ l5.ladder.cublas.of_peak:.0%}} of peak. Always give both yardsticks in this order: of peak, then of
# the library.

# %% [markdown]
# ## Where students trip
#
# - *"The compiler will do it."* Sometimes it already has. Step 6 finds that the loads from shared memory are wide already. So
#   read the counter first.
# - *"More warps are better."* The register tile leaves room for fewer warps and is faster. Work that is ready hides waiting; it need not be another warp's work.
# - *The sums are cleared inside the loop over k.* Then only the last step of k is left in them. The grader says so.
# - *"Reads fell to less than a quarter, time did not."* Good. The threads are now waiting for something else, and looking for it is what drives the ladder.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "Four issue slots on an SM, one instruction each, in every tick. For every instruction that is not a multiply-add, you pay with
# a multiply-add. So today I will not ask you how clever a kernel is. I will ask: how many of its instructions multiply? And in
# how many ticks is nothing issued at all?"
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../02_the_climb/l5_map.md) has every step with its words and its drawing. If you are running late at the break, give
# out the last stage, but still read steps 7 and 9.
#
# /// exercise | Rehearse
# A student asks for a tile of 4 × 16. How many numbers are read for 64 multiply-adds? Which shape of 64 sums reads the fewest,
# and why do you not need to try them all?
# /// answer
# 4 + 16 = 20, against 16 for the square. Of all rectangles with the same area the square has the shortest margins, and the
# margins are what is read.
# ///

# %% [markdown]
# ## You can now teach
#
# - what an issue slot is, and why every other instruction costs a multiply-add;
# - the register tile, in four stages, from three numbers on paper to the square;
# - three steps as diffs, each with a prediction of the counter that must move;
# - two bf16 numbers in one register, what it costs to take them apart, and why a packed sum is not a way out;
# - the three factors of percent of peak: clock, issue slots used, share.
#
# **Where this leads.** The students' page is [the top of the ladder](../../docs/lectures/l5_the_top_of_the_ladder.py).
# Next comes [teaching L6, tensor cores](l6_tensor_cores.py).
