# ---
# id: teach_w2
# title: "Teaching W2: Hopper"
# nav: W2 · Hopper
# description: How to lead a room from two strips of paper to a sheet of machine code, and to the price of the last per cent.
# needs: compiler
# ---

# %% [markdown]
# # Teaching W2: Hopper
#
# After this page you can lead three hours about a single word: *waiting*. You will have two strips of paper that slide over each
# other, a printed sheet of machine code that a beginner can read, and a scoreboard that lists somebody's evenings one by one.
#
# You need [the map of the three hours](../05_the_frontier/w2_map.md), [the students' page](../../docs/workshops/w2_hopper.py) and
# this one. Students do not write a kernel today. Say so in the first minute, and give them other work:
# scissors, a red pen, a pocket calculator.

# %% [markdown]
# ## What it is really about
#
# Three lectures made the multiply cheap. On a Hopper card it is so cheap that yesterday's kind of kernel leaves the
# tensor cores
# waiting for a large part of the time: for a tile to come, for an order to be given, for a sum to be carried out. The best
# kernels waste hardly a tick. The winner here does not multiply better. It waits less.
#
# /// callout | metaphor
# In the old kitchen each cook runs for her own ingredients. Hopper hires a **delivery crew**: the *copy engine*, TMA (*tensor memory accelerator*, a unit in each SM), which takes one slip of
# paper for a whole crate. Then it splits the staff. Some, the *producers*, do nothing but write slips. The others, the *consumers*, do
# nothing but cook. Between them are a few trays in a ring, the *buffers* in shared memory (*places* on the students' page, `STAGES` in
# the code), and each has a **ticket**: *full* or *free* (in code: `full` and `empty`). Nobody ever looks at anybody. NVIDIA's
# word for the ticket is *mbarrier*. Tell the story once; from then on say producer, consumer, buffer and mbarrier.
# ///
#
# /// figure | docs/assets/figures/hopper_kitchen.svg
# alt: >-
#   A kitchen in which the work is split. The delivery crew, TMA, only fetches: whole tiles from the pantry to the tray, which is
#   shared memory. Two warpgroups of cooks only cook, with WGMMA. Tickets, the mbarriers, say "full" to the cooks and "free" to the
#   crew. Below, two timelines: cooks who also fetch wait for every tile; with a crew the fetching is hidden under the cooking.
# ///
#
# Say once which kernels you mean by *ours*. k04 is the kernel on the sheet. The room met it in L6, beside the library; slip one
# asks how far apart the two are, so give no figure before minute 140. The students' page climbs on from there, from k06 to k14,
# and its headline says whether the last rung passes the library in bursts; its scoreboard adds the long run. So say *ours loses*
# only of k04 and k08.
#
# Three words, in this order: **TMA** brings, **wgmma** multiplies, **roles** keep both busy. With only the first
# two you have fast fetching and fast computing that take turns.

# %% [markdown]
# ## By hand: four coins
#
# Three people, four coins in a ring, all tails, which means *free*. You clap, with two breaths between claps. Read out the rules before the first clap:
#
# - At a clap everybody looks first, and then everybody acts. So what the other does at this clap counts from the next one on.
# - The producer turns the next coin to heads, in order, if it is tails. If it is heads, that is a wait.
# - The consumer takes the next coin, in order, if it is heads, and is busy with it for two claps. At the end of the second she turns it to tails.
# - The third person keeps slip two: one stroke for each clap at which somebody waited. The producer is done after the twelfth tile,
#   and no longer waits.
#
# Twelve tiles are done at clap 25. The consumer waited once, at the first clap. The producer waited six times: at claps 7, 9, 11,
# 13, 15 and 17. Before that the ring had room. If you are short of time, play only eight tiles, which takes 17 claps:
# the producer waits twice.
# With six tiles the producer never waits, and the point is lost. Play two claps slowly as a trial.
#
# Ask at the end: who was the slower one? The consumer, and that is how it should be: she never runs out of tiles.
#
# ## By hand: two strips of paper
#
# Every pair gets the sheet with three pairs of empty strips, scissors, and pieces to cut out: six orders with their trips, six
# computations, to the scale of the squares. They lay the pieces down, slide them, draw the result, and use the same pieces for the next strip. Where two trips overlap, one piece goes over the other. There are six tiles. A tile takes one square to *order*,
# three squares for the *trip*, which needs nobody's hands, and two squares to *compute*. The cell below prints the strips in the
# words of the kitchen: a buffer is a tray, the producer is the crew, and computing is cooking.
#
# 1. **One buffer.** Order, trip, compute, and only then the next tile. End to end. Count.
# 2. **Two buffers.** As soon as a buffer is free the consumer orders, and only then computes. Slide the strips over each other.
#    The orders are still *her* squares: they are drawn into the computing strip, and nothing may overlap them. If they compute
#    first and then order twice they get 24; ask which buffer was empty.
# 3. **A producer and four buffers.** The orders move to the other strip. Slide as far as it goes.
#
# /// predict | From one buffer to two, and from two to a producer with four: how many squares are saved each time?
# Write two numbers. One buffer takes {{ strip.one.ticks:.0f }}; you can count that without paper.
#
# - [ ] 10, then 10
# - [ ] 5, then 15
# - [x] 15, then 5
# /// reveal
# {{ strip.one.ticks - strip.two.ticks:.0f }}, then {{ strip.two.ticks - strip.crew.ticks:.0f }} more:
# {{ strip.one.ticks:.0f }}, {{ strip.two.ticks:.0f }}, {{ strip.crew.ticks:.0f }}. Every table should end up with the
# strips below.
# ///


# %%
from course_kernels.measure import quantity, record


def kitchen(trays, crew, tiles=6, order=1, trip=3, cook=2):
    """Two strips, tick by tick: o order, - on its way, # cooks."""
    arrives = {}  # for each tile ordered, the tick at which it is there
    eaten = ordering = cooking = tick = 0
    fetched, cooked = "", ""
    while eaten < tiles:
        asked = len(arrives)
        a_tray_is_free = asked < min(tiles, eaten + trays)
        if not ordering and a_tray_is_free and (crew or not cooking):
            ordering = order
        if (
            not cooking
            and arrives.get(eaten, tick + 1) <= tick
            and (crew or not ordering)
        ):
            cooking = cook
        under_way = any(start - trip <= tick < start for start in arrives.values())
        fetched += "o" if ordering and crew else "-" if under_way else " "
        cooked += "#" if cooking else "o" if ordering else " "
        tick += 1
        if ordering:
            ordering -= 1
            if not ordering:
                arrives[asked] = tick + trip
        if cooking:
            cooking -= 1
            eaten += not cooking
    return tick, fetched, cooked


KITCHENS = {
    "one": ("one tray", 1, False),
    "two": ("two trays", 2, False),
    "four": ("four trays", 4, False),
    "crew": ("a crew, four trays", 4, True),
}
strip = {}
for name, (words, trays, crew) in KITCHENS.items():
    ticks, fetched, cooked = kitchen(trays, crew)
    print(f"{words}: {ticks} ticks, {cooked.count('#')} of them cooking")
    print(f"  fetch |{fetched}|\n  cook  |{cooked}|\n")
    strip[name] = {"ticks": quantity(ticks), "cooking": quantity(cooked.count("#"))}
record(strip=strip)

# %% [markdown]
# Read the strips with the room. In the first, the consumer computes in {{ strip.one.cooking / strip.one.ticks:.0%}} of the ticks. With two buffers in
# {{ strip.two.cooking / strip.two.ticks:.0%}}, with four in {{ strip.four.cooking / strip.four.ticks:.0%}}, with a producer in
# {{ strip.crew.cooking / strip.crew.ticks:.0%}}. In the last strip only the first order and its trip are left, and nobody can
# hide those: there is nothing to compute with yet. So a block *stays*, and walks on to its next tile of C while the old sums go
# out: a *persistent* kernel. (In the last pair above, the four o's in the lower line are the producer's; on the students'
# paper those squares stay empty.)
#
# More buffers alone do not help. With four buffers and no producer every order still takes a square of the consumer's.
#
# /// exercise | How many buffers?
# Ordering takes 1, the trip 11, computing 2, and there is a producer. How many buffers keep the consumer busy without a gap, once
# the first tile is there? Which law is that?
# /// answer
# From order to done a tile takes 1 + 11 + 2 = 14 ticks, and every 2 ticks one is done: 14 / 2 = 7 buffers. It is [Little's law](../../docs/lectures/l3_memory.py#how-many-must-be-walking):
# the number in flight is the rate times the time each takes. Try it in the cell above.
# ///
#
# /// callout | trip
# Someone will draw the consumer's square and the producer's order on top of each other in the *two buffers* strip. Ask: "Whose
# hands?" That is the whole point of roles, and the one mistake worth stopping the room for.
# ///

# %% [markdown]
# ## Three words, with their numbers
#
# **TMA.** In our own [`wgmma` kernel](../../docs/lectures/l6_tensor_cores.py#wgmma-leave-it-in-shared-memory) all 256 threads
# carry data, in pieces of 16 bytes. A pair of tiles is (128 + 256) × 64 numbers of two bytes. That is 3072 pieces, 12 for each
# thread, and an address for each of them. The copy engine takes an order from *one* thread for a whole block of a tensor of up to
# five dimensions, swizzles it on the way, puts zeros past the edge, and turns the mbarrier when the block has arrived.
#
# **wgmma.** Four warps, one order: 64 rows of A times up to 256 columns of B. Its k is 32 *bytes*: 8 numbers of TF32, 16 of bf16, 32 of FP8. If somebody
# says "m64nNk16 is the shape", they have only met 16-bit numbers [^ptx-isa]. The assembler [confirms it](../../docs/lectures/l6_tensor_cores.py#ask-the-assembler).
#
# **Roles.** Print [the first kernel that has them](../../docs/workshops/w2_hopper.py#roles), `gemm/k08_roles.cu`, two pages. Your students
# mark only the second page, which has one branch for the producer and one for the consumers. The two lines with `wait(&`
# look at an mbarrier; the two with `arrive`, one of which names the bytes to expect, turn one. `wgmma_wait` is not one of these:
# it waits for products.
#
# ### A bit that flips
#
# An mbarrier is used again in every round, so *full* alone would not be enough: full of which tile? Each mbarrier therefore keeps
# one bit, its **phase**. It starts at 0 and flips whenever the mbarrier turns, that is, when all those it counts have arrived. A
# thread that waits names a bit, and goes on as soon as the mbarrier's bit is different. Take four buffers; buffer 0 takes tiles
# 0, 4, 8 and 12. Let one student be the bit: a raised arm means 1.
#
# | tile | *free*: the producer names | its bit flips | who flips it | *full*: the consumer names | its bit flips | who flips it |
# |---:|:-:|:-:|---|:-:|:-:|---|
# | 0 | 1, does not wait | 0 → 1 | the consumers, done with tile 0 | 0 | 0 → 1 | the copy engine, tile 0 is there |
# | 4 | 0 | 1 → 0 | the consumers, done with tile 4 | 1 | 1 → 0 | the copy engine, tile 4 is there |
# | 8 | 1 | 0 → 1 | the consumers, done with tile 8 | 0 | 0 → 1 | the copy engine, tile 8 is there |
# | 12 | 0 | 1 → 0 | the consumers, done with tile 12 | 1 | 1 → 0 | the copy engine, tile 12 is there |
#
# The consumer's bit is the round, j // 4, modulo 2; the producer's is the other one, `^ 1` in the file. A fresh mbarrier is at 0,
# so the producer, which names 1, does not wait in the first round: the buffers are free. In every later round the flip that it
# waits for is the one in the line above.
#
# Then let one of them name 0 every time. If the consumer gets to tile 4 before the tile does, the bit is still 1 and she is let
# through: she multiplies the old tile again, and the sum is wrong without any warning. If the new tile is there, the bit is 0
# again, and she waits for a flip that waits for her. A producer that names 0 at tile 0 waits for a consumer who waits for the
# producer. In these last two cases the card hangs.
#
# /// callout | teaching
# A cluster is a few blocks that are guaranteed to run at the same time in one part of the card, a group of SMs called a GPC, and one copy engine may deliver one tile to all of
# them. It may have up to 8 blocks on any card that has clusters, and up to 16 on this one if you ask [^nvidia-hopper-tuning]. If a student says *neighbouring
# SMs*: they share a GPC, but nothing says which one is next to which. That is all you need today.
# ///

# %% [markdown]
# ## The sheet
#
# One hour of the session is reading. Your students do not read everything: the kernel compiles to some nine hundred
# lines, and twenty of
# them matter. Here is the sheet. Print it large, one for every two students. You need no GPU to make it, only the compiler and
# the
# disassembler.

# %% tags=["fold"]
import re

from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.gemm import k04_wgmma

lines = sass(compile_cubin(k04_wgmma.SOURCE, "sm_90a")).splitlines()
MATTERS = re.compile(r"\b(HGMMA|LDGSTS|LDGDEPBAR|DEPBAR|BAR|WARPGROUP|BRA)\b")
sheet = [(at, line) for at, line in enumerate(lines, 1) if MATTERS.search(line)]
first = next(i for i, (_, line) in enumerate(sheet) if "HGMMA" in line)
while "DEPBAR" not in sheet[first][1]:
    first -= 1  # the loop begins by waiting for its tile
last = next(i for i in range(first, len(sheet)) if "BRA" in sheet[i][1])
loop = sheet[first : last + 1]
for at, line in loop:
    print(f"{at:4d}  {re.sub(r'/[*].*?[*]/', '', line).strip()}")

record(
    sheet={
        "lines": quantity(len(lines), how="counted"),
        "in_loop": quantity(len(loop), how="counted"),
        "orders": quantity(sum("HGMMA" in line for _, line in loop), how="counted"),
        "pieces": quantity(
            sum("LDGSTS" in line for _, line in loop), how="counted"
        ),
    }
)

# %% [markdown]
# This is what they underline, in this order. Give the questions, never the answers: students write the answers on *what the sheet
# says*, which you hand out, folded, with the red pens. Five rows belong to the tensor core, four to the carriers. The last five name the
# lines that wait, so they are unfolded only once the circles are drawn.
#
# | on the sheet | ask | and it is |
# |---|---|---|
# | `HGMMA.64x256x16`, {{ sheet.orders:.0f }} times | why so many times? | the tile is 64 deep, one order takes 16 |
# | `gdesc[UR…]` | where are A and B? | in shared memory: a descriptor says where; nobody carries |
# | `.tnspB` | what is done to B? | it is stored row by row; the tensor core reads it transposed, and nobody transposed it beforehand |
# | `R24` … | where are the sums? | 128 registers in each of 128 threads: 64 × 256 |
# | `gsb0`, on the last one only | why only there? | *commit*: one group for the four of them |
# | `LDGSTS…128`, {{ sheet.pieces:.0f }} times | which tile is it? | one for later: {{ sheet.pieces:.0f }} × 256 threads × 16 bytes = 48 KiB |
# | `.E.BYPASS` | past what? | past L1: the piece goes straight into shared memory |
# | `P0` … `P6` after a copy | what does it ask? | does this piece of the matrix exist? Past the edge zeros are written instead |
# | `LDGDEPBAR` | what is closed here? | the group of these copies |
# | `DEPBAR.LE SB0, 0x1` | who waits, for what? | this thread, for its own older copies: all groups except the last one closed |
# | `BAR.SYNC` | who waits, for whom? | everybody, for everybody |
# | `WARPGROUP.ARRIVE` | who waits? | nobody: it says that the sums in `R24` … may now be written, a *fence* |
# | `WARPGROUP.DEPBAR.LE gsb0, 0x1` | for all products? | for all except the one just ordered |
# | `BRA`, with `@!P0` before it | where to, and when not? | up to the first line; not when the last tile is done |
#
# They will circle two lines that do not wait: `LDGDEPBAR`, which has `DEPBAR` in its name, and `WARPGROUP.ARRIVE`. And if you run
# the command you will find a `MEMBAR` in the loop that is not on the sheet, since the command matches the letters BAR. `MEMBAR` puts
# stores in order before the tensor cores read.
#
# Of the three arrows that start at a wait, two leave the sheet at its upper edge: *my copies* and *the product before* belong to
# an earlier round. The third, from `BAR.SYNC`, goes to everybody. That is why a loop is drawn as a ring.
#
# /// callout | trip
# They look for `wgmma`, find nothing, and conclude that the tensor cores are not used. `wgmma` and `cp.async` are PTX. The card's
# own names are
# `HGMMA` (`QGMMA` for 8-bit numbers), `LDGSTS`, and `UTMALDG` for the copy engine.
# ///
#
# Then lay [the sheet of the first kernel with roles](../../docs/workshops/w2_hopper.py#the-sheet) beside it: one loop has become
# two. The consumer's loop keeps the four `HGMMA`, the wait for *full* and the wait for the product before; `BAR.SYNC` is gone.
# The producer's loop has five `UTMALDG`, which one thread issues. The arrows from the waits go across: the consumer's goes
# down to `UTMALDG`, which ends its wait, and the producer's goes up to `SYNCS.ARRIVE`. That is what roles look like.
#
# And the third strip, W W, four C, twelve F, W: which of the three pairs does it resemble? *Two buffers*, but with four buffers instead of
# two.
# Copies travel while the tensor cores work, but all 256 threads issue the orders themselves, and meet at a barrier in every round.
#
# Do not print the last rung. Its loop has the same four lines, and everything around them is unreadable.
#
# /// callout | click
# The share of ticks in which the tensor cores are at work, counted by the card: {{ l6.tensor.wgmma.busy:.0%}} in the kernel of
# the sheet,
# {{ l6.tensor.triton.busy:.0%}} in Triton's, {{ l6.tensor.cublas.busy:.0%}} in the library's, on an {{ l6.gpu.name }}. The same formula, and the same kind of instruction. Triton's instruction is as wide as ours, 64 × 256 × 16. And the
# library's? For the same product the card counts {{ l6.tensor.cublas.instructions / l6.tensor.wgmma.instructions:.0f}} times as many matrix instructions, so each is half as wide, 64 × 128 × 16. It wins with the *narrower* one.
# The difference is in who waits. [Two timelines](../../docs/workshops/w2_hopper.py#two-timelines), stamped by the kernels
# themselves, show it tick by tick.
# ///

# %% [markdown]
# ## The scoreboard
#
# Two people made this climb in public. Write the left column on the board beforehand and let the room fill in the rest.
#
# /// callout | production
# Pranjal Shankhdhar went from 32 TFLOP/s to 764 where cuBLAS had 716: 107 % of it, on an H100, in bf16, at 4096
# [^shankhdhar2024]. Hamza Elshafie's worklog calls itself *cuBLAS-like* and *in progress*, and is honest about it: 463.9 TFLOP/s
# where cuBLAS had 739.8, or 62.7 % [^elshafie2026]. So *one* person got past the library, and the other wrote down how far
# there is to go. You
# may hear of "the two who did it". Teach the right figures: the second log is just as useful, because it shows where you are at
# about the fourth rung.
# ///
#
# The first log, rung by rung [^shankhdhar2024].
#
# | rung | what changed | TFLOP/s |
# |---:|---|---:|
# | 1 | the ladder's warp tiles, fed bf16, no tensor cores | 32 [^shankhdhar2024] |
# | 2 | TMA and wgmma, tile 64 × 64 | 317 [^shankhdhar2024] |
# | 3 | a larger tile, 128 × 128, m64n128k16 | 423 [^shankhdhar2024] |
# | 4 | roles: a producer, a consumer, five buffers | 498 [^shankhdhar2024] |
# | 5 | tile 128 × 256, two consumers; then registers moved to them | 610, then 631 [^shankhdhar2024] |
# | 6 | blocks that stay, in an order that suits L2 | 660 [^shankhdhar2024] |
# | 7 | mbarriers by hand, in PTX | 704 [^shankhdhar2024] |
# | 8 | clusters of two, one delivery for both | 734 [^shankhdhar2024] |
# | 9 | many small things | 747 [^shankhdhar2024] |
# | 10 | sums leave by the copy engine | 758 [^shankhdhar2024] |
# | 11 | tiles along a Hilbert curve | 764 [^shankhdhar2024] |
# | | *cuBLAS, same card* | 716 [^shankhdhar2024] |
#
# Three rows are worth a pause. From 1 to 2: without tensor cores you reach less than a twentieth of the library [^shankhdhar2024]. From 4 to 5: with *one* consumer the
# larger tile spills its sums out of the registers, and the same idea gives 123 instead of 610 [^shankhdhar2024]. And at 6 the
# wrong order of tiles gives 400 instead of 660 [^shankhdhar2024]. A good idea in the wrong place costs more than no idea.
#
# Our letters for the ten steps, if the room wants them: 2 fetching and computing, 3 computing, 4 waiting, 5 computing, 6 waiting and L2, 7 waiting, 8 fetching, 9 a little of
# each, 10 waiting, 11 L2. They are the same as in [the page's own climb](../../docs/workshops/w2_hopper.py#the-climb) for the
# same ideas. Do not defend them. A rung to which two pairs give different letters is worth two minutes of talk.
#
# Four rungs are new to the room. Say a sentence about each, before the letters:
#
# - *Blocks that stay* (6): a block that has finished a tile of C takes the next one, and its producer fetches for it while the sums of the last one go out.
# - *Clusters* (8): two blocks that need the same columns of B get them in one delivery.
# - *Sums leave by the copy engine* (10): the consumers put C into shared memory and go on; the copy engine carries it out.
# - *A Hilbert curve* (11): a walk over the tiles of C that never strays far, so that what L2 holds is used again.
#
# And *our* numbers, on an {{ l6.gpu.name }}: {{ l6.climb.wgmma.of_peak:.0%}} of peak for the kernel on the sheet,
# {{ l6.climb.triton.of_peak:.0%}} for Triton's, {{ l6.climb.cublas.of_peak:.0%}} for cuBLAS.
#
# /// claim | l6.climb.cublas.us < 0.85 * l6.climb.wgmma.us
# The kernel on the sheet loses to the library: it has {{ l6.climb.cublas.us / l6.climb.wgmma.us:.0%}} of its speed. It has no
# roles and no copy engine, and its blocks do not stay. Then turn to [our own climb](../../docs/workshops/w2_hopper.py#the-climb):
# nine kernels after this one, each in one file, and one of them, k09, a side note.
# /// otherwise
# On this card k04 has {{ l6.climb.cublas.us / l6.climb.wgmma.us:.0%}} of the library's speed.
# ///
#
# Somebody will read [the climb](../../docs/workshops/w2_hopper.py#the-climb) and ask why you taught roles. By themselves roles gain nothing: on an {{ w2.gpu.name }} k08 reaches {{ w2.burst.nn.n4096.roles:.0f}} TFLOP/s, and k07, which has no roles, {{ w2.burst.nn.n4096.wide:.0f}}.
# Do not explain it away. The strips say that a cook who fetches and cooks in turn leaves the stove cold; but a pot on the stove
# goes on cooking while she waits at the barrier, and a block of k07 has two cooks. [The timelines](../../docs/workshops/w2_hopper.py#two-timelines)
# show it: a step of k07 is
# no longer than one of k08. What roles buy you comes later. Only a warp that does nothing but fetch can fetch across the end of a
# tile, and k12, one of the tall rungs, is built on that. (In that run k09, k11 and k13 cannot be told apart from the rung before them
# either. Say so when the room admires a third digit.)
#
# ### What the last per cent cost
#
# Rungs 8 to 11 are one person's evenings, for a few per cent each. Ask the room who would pay for such evenings. Then
# answer: somebody
# whose cluster does nothing else. Then show the wall beyond these rungs. At 8192 that kernel is ahead by only 1.5 % [^shankhdhar2024]. The
# card runs into its power limit, and there a busier kernel only lowers the clock.
#
# Our card runs into its limit, too. cuBLAS had its tensor cores at work in {{ l6.tensor.cublas.busy:.2%}} of the ticks and reached {{ l6.climb.cublas.of_peak:.2%}}
# of peak. The data sheet assumes 1830 MHz [^lockwood-h100], so the clock must have been near {{ l6.climb.cublas.of_peak:.2%}} ÷
# {{ l6.tensor.cublas.busy:.2%}} × 1830 = about
# {{ l6.climb.cublas.of_peak / l6.tensor.cublas.busy * l6.sheet.mhz:.0f}} MHz.

# %% [markdown]
# ## The sentence of the day
#
# /// callout | say
# "The formula is the same. The numbers are the same. The instruction in the middle is of the same kind. You don't beat cuBLAS at math [^shankhdhar2024]. You beat it at
# logistics." Then, slowly: "A producer that never waits for the consumers, and consumers that never wait for the producer."
# ///
#
# ## What they will believe
#
# - *"There must be a cleverer formula."* There is none here. Point at the sheet: `HGMMA` here, `HGMMA` there, and the library's are the narrower ones.
# - *"More warps hide more."* An SM has 65 536 registers. A producer and two groups of consumers are 384 threads, with 170
#   registers each: 128 sums and the rest. One group is too few: its 256 sums in each thread spill. With a third group there are
#   512 threads with 128 registers each, and the sums alone would fill them. If the producer gives up its registers, as in k09, it
#   may keep 24, and three groups get 160 each: tight, but no longer impossible.
# - *"An asynchronous copy is fast."* It is as slow as before. The only difference is that no thread has to wait beside the copy.
# - *A wait that names the wrong bit of an mbarrier.* Either it waits for a flip that never comes, and the card hangs for good; or
#   it does not wait at all, and the kernel uses a tile that is not there. Neither gives an error message. For the first case keep
#   [the page of mishaps](../../docs/when_it_goes_wrong.py#it-never-ends) open.
# - *"Triton has no TMA."* Count `UTMALDG`. What Triton lacks is a separate warp for fetching.
#
# /// callout | demo
# Two demos. *Make the sheet* runs on any laptop with the course installed, without a GPU. *The race* needs a Hopper card: on any
# other, all three of our kernels refuse to run. Then show [the same race, recorded](../../docs/workshops/w2_hopper.py#by-the-clock-of-every-other-page).
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w2_map.md) has each step. The reading hour looks long on paper and feels short in the room. The steps with the strips and with the letters run over; those with the carriers and with the library's clock give time
# back. If you are late
# at the break, let students find two of the three kinds of line, and show them the third.
#
# /// exercise | Rehearse
# Take the sheet and a red pen, and explain the loop to somebody who has never seen machine code, in two minutes, without saying *asynchronous*. Where
# do you stumble?
# /// answer
# Most people stumble at `WARPGROUP.DEPBAR`. Try: "We have just ordered the product of this tile. We wait until the one *before* it is done, because
# its buffer is the next to be filled."
# ///
#
# ## You can now teach
#
# - a kernel with roles, a ring of buffers and two kinds of mbarriers;
# - TMA, wgmma and roles, in this order, each with one number that students work out;
# - two timelines that slide: {{ strip.one.ticks:.0f }}, {{ strip.two.ticks:.0f }}, {{ strip.crew.ticks:.0f }};
# - twenty lines of machine code: who computes, who carries, who waits;
# - the scoreboard, with the right people on it, and what its last rungs cost.
#
# **Where this leads.** Others have built kernels like these into tools. Which of them should you build on? [Teaching W3](w3_abstraction_ladder.py).
