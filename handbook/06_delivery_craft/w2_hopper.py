# ---
# id: teach_w2
# title: "Teaching W2: Hopper"
# nav: W2 · Hopper
# description: How to lead a room from two strips of paper to a sheet of machine code, and to what the last per cent cost.
# needs: compiler
# ---

# %% [markdown]
# # Teaching W2: Hopper
#
# After this page you can lead three hours about a single word: *waiting*. You will have two strips of paper that slide over each other, a
# printed sheet of machine code that a beginner can read, and a scoreboard on which somebody's evenings are written down one by one.
#
# With [the map of the three hours](../05_the_frontier/w2_map.md), [the students' page](../../docs/workshops/w2_hopper.py) and this one you can run it. Students write no kernel today. Say so in the
# first minute, and give their fingers other work: scissors, a red pen, a pocket calculator.

# %% [markdown]
# ## What it is really about
#
# Three lectures made the multiply cheap. On a Hopper card it is so cheap that a kernel of yesterday's kind leaves the tensor cores waiting for a large part of the time: for a tile to
# come, for an order to be given, for a sum to be carried out. The best ones leave them hardly a tick. The winner here does not multiply better. It waits less.
#
# /// callout | metaphor
# In the old kitchen each cook runs for her own ingredients. Hopper hires a **delivery crew**: the *copy engine*, TMA (*tensor memory accelerator*, a unit in each SM), which takes one slip of
# paper for a whole crate. Then it splits the staff. Some do nothing but write slips, the *producers*. The others do nothing but cook, the
# *consumers*. Between them lie a few trays in a ring, which are *buffers* in shared memory (*places* on the students' page, `STAGES` in the code), and a **ticket** lies on each: *full* or *free* (in code: `full` and `empty`). Nobody ever looks at anybody. NVIDIA's word
# for the ticket is *mbarrier*. Tell it once; from then on say producer, consumer, buffer and mbarrier.
# ///
#
# /// figure | docs/assets/figures/hopper_kitchen.svg
# alt: >-
#   A kitchen in which the work is split. The delivery crew, TMA, only fetches: whole tiles from the pantry to the tray, which is
#   shared memory. Two warpgroups of cooks only cook, with WGMMA. Tickets, the mbarriers, say "full" to the cooks and "free" to the
#   crew. Below, two timelines: cooks who also fetch wait for every tile; with a crew the fetching slides under the cooking.
# ///
#
# Say once whom you mean by *ours*. k04 is the kernel of the sheet. The room has met it in L6, beside the library; how far apart the two are is what slip one asks, so give no
# figure before minute 140. The students' page climbs on from it, from k06 to k14, and whether its last rung passes the library stands in the page's headline, in bursts and
# in a long run. So *ours loses* is said of k04 and of k08, and of nobody else.
#
# Three words, in this order: **TMA** brings, **wgmma** multiplies, **roles** keep both from standing about. With only the first two you
# have fast fetching and fast computing that take turns.

# %% [markdown]
# ## By hand: four coins
#
# Three people, four coins in a ring, all tails, which is *free*. You clap, with two breaths in between. The rules, which you read out before the first clap:
#
# - At a clap all look first, and then all act. So what the other does at this clap counts from the next one on.
# - The producer turns the next coin to heads, in order, if it is tails. If it is heads, that is a wait.
# - The consumer takes the next coin, in order, if it is heads, and is busy with it for two claps. At the end of the second she turns it to tails.
# - The third keeps slip two: a stroke for each clap at which somebody waited. The producer is done after the twelfth tile, and then no longer waits.
#
# Twelve tiles are over at clap 25. The consumer waited once, at the first clap. The producer waited six times: at claps 7, 9, 11, 13, 15 and 17. Before that the ring had room. Short of
# time, play eight tiles, 17 claps: the producer waits twice. With six tiles it never does, and the point is lost. Play two claps slowly as a trial.
#
# Ask at the end: who was the slower one? The consumer, and that is how it should be: she is never without a tile.
#
# ## By hand: two strips of paper
#
# Every pair gets the sheet with three pairs of empty strips, scissors, and pieces to cut: six orders with their trips, six computations, to the scale of the squares. They lay the pieces
# down, slide them, draw what lies there, and use the same pieces for the next way. Where two trips overlap, one piece lies over the other. Six tiles. A tile takes one square to
# *order*, three squares for the *trip*, on which nobody's hands are needed, and two squares to *compute*. The cell below prints them in
# the words of the kitchen: a buffer is a tray, the producer is the crew, and to compute is to cook.
#
# 1. **One buffer.** Order, trip, compute, and only then the next. End to end. Count.
# 2. **Two buffers.** As soon as a buffer is free the consumer orders, and only then computes. Slide the strips over each other. The orders are
#    still *her* squares: they are drawn into the computing strip, and nothing may lie on top of them. If they compute first and then order twice they get 24; ask which buffer was empty.
# 3. **A producer and four buffers.** The orders move to the other strip. Slide as far as it goes.
#
# /// predict | From one buffer to two, and from two to a producer with four: how many squares are saved each time?
# Write two numbers. One buffer takes {{ strip.one.ticks:.0f }}, you can count that without paper.
#
# - [ ] 10, then 10
# - [ ] 5, then 15
# - [x] 15, then 5
# /// reveal
# {{ strip.one.ticks - strip.two.ticks:.0f }}, then {{ strip.two.ticks - strip.crew.ticks:.0f }} more:
# {{ strip.one.ticks:.0f }}, {{ strip.two.ticks:.0f }}, {{ strip.crew.ticks:.0f }}. The strips below are what should lie on
# every table.
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
# {{ strip.crew.cooking / strip.crew.ticks:.0%}}. In the last strip all that is left is the first order and its trip, and nobody can hide that: there is nothing
# to compute with yet. So a block *stays*, and walks on to its next tile of C while the old sums go out: a *persistent*
# kernel. (In the last pair above, the four letters o of the lower line are the producer's; on the students' paper those squares stay empty.)
#
# More buffers alone do not do it. With four buffers and no producer every order is still a square of the consumer's.
#
# /// exercise | How many buffers?
# Ordering 1, trip 11, computing 2, and a producer. How many buffers keep the consumer busy without a gap, once the first tile is there? Which law is it?
# /// answer
# From order to done a tile takes 1 + 11 + 2 = 14 ticks, and every 2 ticks one is done: 14 / 2 = 7 buffers. It is
# [Little's law](../../docs/lectures/l3_memory.py#how-many-must-be-walking): what is under way is the rate times the time it takes. Try it in the
# cell above.
# ///
#
# /// callout | trip
# Someone will draw the consumer's square and the producer's order on top of each other in the *two buffers* strip. Ask: "Whose hands?" That is the whole
# point of roles, and the one mistake that is worth stopping the room for.
# ///

# %% [markdown]
# ## Three words, with their numbers
#
# **TMA.** In our own [`wgmma` kernel](../../docs/lectures/l6_tensor_cores.py#wgmma-leave-it-in-shared-memory) all 256 threads carry, in pieces of 16
# bytes. A pair of tiles is (128 + 256) × 64 numbers of two bytes. That is 3072 pieces, 12 for each thread, and an address for each of them. The copy
# engine takes an order from *one* thread for a whole block of a tensor of up to five dimensions, swizzles it on the way, puts zeros past the edge,
# and turns the mbarrier when it has come.
#
# **wgmma.** Four warps, one order: 64 rows of A times up to 256 columns of B. Its k is 32 *bytes*: 8 numbers of TF32, 16 of bf16, 32 of FP8. If somebody
# says "m64nNk16 is the shape", they have only met 16-bit numbers [^ptx-isa]. The assembler [told us](../../docs/lectures/l6_tensor_cores.py#ask-the-assembler).
#
# **Roles.** Print [the first kernel that has them](../../docs/workshops/w2_hopper.py#roles), `gemm/k08_roles.cu`, two pages. Only the second is marked: one branch for the producer, one for the consumers. There
# are two `wait(&`, each somebody looking at an mbarrier, and two `arrive`, one of them with the bytes to expect, each somebody turning one. `wgmma_wait` is none of these: it waits for products.
#
# ### A bit that flips
#
# An mbarrier is used again in every round, so *full* alone would not do: full of which tile? Each mbarrier therefore keeps one bit, its **phase**. It begins at 0
# and flips whenever the mbarrier turns, that is, when all whom it counts have come. A thread that waits names a bit, and goes on as soon as the mbarrier's is
# a different one. Four buffers; buffer 0 takes tiles 0, 4, 8 and 12. Let one student be the bit: an arm up is 1.
#
# | tile | *free*: the producer names | its bit flips | who flips it | *full*: the consumer names | its bit flips | who flips it |
# |---:|:-:|:-:|---|:-:|:-:|---|
# | 0 | 1, does not wait | 0 → 1 | the consumers, done with tile 0 | 0 | 0 → 1 | the copy engine, tile 0 is there |
# | 4 | 0 | 1 → 0 | the consumers, done with tile 4 | 1 | 1 → 0 | the copy engine, tile 4 is there |
# | 8 | 1 | 0 → 1 | the consumers, done with tile 8 | 0 | 0 → 1 | the copy engine, tile 8 is there |
# | 12 | 0 | 1 → 0 | the consumers, done with tile 12 | 1 | 1 → 0 | the copy engine, tile 12 is there |
#
# The consumer's bit is the round, j // 4, modulo 2; the producer's is the other one, `^ 1` in the file. A fresh mbarrier stands at 0, so the producer that names 1 does not
# wait in the first round: the buffers are free. In every later round the flip that it waits for is the one in the line above.
#
# Then let one of them name 0 for ever. If the consumer comes to tile 4 before the tile does, the bit still stands at 1 and she is let through: she multiplies the old tile
# again, and the sum is wrong without a word. If the new tile is there, the bit is 0 again, and she waits for a flip that waits for her. The producer that names 0 at tile 0
# waits for a consumer who waits for the producer. In both the card stands still.
#
# /// callout | teaching
# A cluster is a few blocks that are guaranteed to run at the same time in one part of the card, a group of SMs called a GPC, and one copy engine may deliver one tile to all of
# them. Up to 8 blocks on any card that has clusters, up to 16 on this one if you ask [^nvidia-hopper-tuning]. If a student says *neighbouring SMs*: they share a GPC, nothing is said of
# which lies next to which. That is all you need today.
# ///

# %% [markdown]
# ## The sheet
#
# One hour of the session is reading. Not all of it: the kernel becomes some nine hundred lines, and twenty of them matter. Here is the sheet.
# Print it large, one for two students. No GPU is needed to make it, only the compiler and the disassembler.

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
# What they underline, in this order. Give the questions, never the answers: they stand on *what the sheet says*, which is handed out with the red pens and folded. Five rows belong to
# the tensor core, four to the carriers. The last five name the lines that wait, so they come to light when the circles are drawn.
#
# | on the sheet | ask | and it is |
# |---|---|---|
# | `HGMMA.64x256x16`, {{ sheet.orders:.0f }} times | why that often? | the tile is 64 deep, one order takes 16 |
# | `gdesc[UR…]` | where are A and B? | in shared memory: a descriptor tells where, nobody carries |
# | `.tnspB` | what is done to B? | it lies row by row; the tensor core reads it turned, nobody turned it before |
# | `R24` … | where are the sums? | 128 registers of each of 128 threads: 64 × 256 |
# | `gsb0`, on the last one only | why only there? | *commit*: one group for the four of them |
# | `LDGSTS…128`, {{ sheet.pieces:.0f }} times | whose tile is it? | one that comes later: {{ sheet.pieces:.0f }} × 256 threads × 16 bytes = 48 KiB |
# | `.E.BYPASS` | past what? | past L1: the piece goes straight into shared memory |
# | `P0` … `P6` after a copy | what does it ask? | is this piece of the matrix there? Past the edge zeros are laid instead |
# | `LDGDEPBAR` | what is closed here? | the group of these copies |
# | `DEPBAR.LE SB0, 0x1` | who waits, for what? | this thread, for its own older copies: all groups but the last one closed |
# | `BAR.SYNC` | who waits, for whom? | everybody, for everybody |
# | `WARPGROUP.ARRIVE` | who waits? | nobody: it says that the sums in `R24` … may now be written, a *fence* |
# | `WARPGROUP.DEPBAR.LE gsb0, 0x1` | for all products? | for all but the one just ordered |
# | `BRA`, with `@!P0` before it | where to, and when not? | up to the first line; not when the last tile is done |
#
# Two lines are circled that do not wait: `LDGDEPBAR`, which has `DEPBAR` in its name, and `WARPGROUP.ARRIVE`. And if you run the command you find a `MEMBAR` in the loop that is on no sheet,
# since the command asks for the letters BAR: it puts stores in order before the tensor cores read.
#
# Of the three arrows that start at a wait, two leave the sheet at its upper edge: my copies and the product before belong to an earlier round. The third,
# from `BAR.SYNC`, goes to everybody. That is why a loop is drawn as a ring.
#
# /// callout | trip
# They look for `wgmma`, find nothing, and say that the tensor cores are not used. `wgmma` and `cp.async` are PTX. The card's own names are
# `HGMMA` (`QGMMA` for 8-bit numbers), `LDGSTS`, and `UTMALDG` for the copy engine.
# ///
#
# Then lay [the sheet of the first kernel with roles](../../docs/workshops/w2_hopper.py#the-sheet) beside it: one loop has become two. In the consumer's the four `HGMMA` stand
# alone with one wait, and `BAR.SYNC` is gone. In the producer's stand five `UTMALDG`, for one thread. The arrows from the waits go across: from the consumer's down to `UTMALDG`, which ends it, and from the
# producer's up to `SYNCS.ARRIVE`. That is what roles look like.
#
# And the third strip, W W, four C, twelve F, W: which of the three pairs is it like? *Two buffers*, with four in place of two. Copies travel while the tensor cores work, but all 256 threads give
# the orders with their own hands, and meet in every round.
#
# Do not print the last rung. Its loop is the same four lines, and everything round them is unreadable.
#
# /// callout | click
# Tensor cores at work, in per cent of the ticks, counted by the card: {{ l6.tensor.wgmma.busy:.0%}} in the kernel of the sheet,
# {{ l6.tensor.triton.busy:.0%}} in Triton's, {{ l6.tensor.cublas.busy:.0%}} in the library's, on an {{ l6.gpu.name }}. The same formula, and the same kind of instruction. Triton's has the same width as ours, 64 × 256 × 16. And the
# library's? For the same product the card counts {{ l6.tensor.cublas.instructions / l6.tensor.wgmma.instructions:.0f}} times as many matrix instructions, so each is half as wide, 64 × 128 × 16. It wins with the *narrower* one.
# The difference is who waits. [Two timelines](../../docs/workshops/w2_hopper.py#two-timelines), stamped by the kernels themselves, show it tick by tick.
# ///

# %% [markdown]
# ## The scoreboard
#
# Two people climbed this in public. Write the left column on the board beforehand and let the room fill in the rest.
#
# /// callout | production
# Pranjal Shankhdhar went from 32 TFLOP/s to 764 where cuBLAS had 716: 107 % of it, on an H100, in bf16, at 4096 [^shankhdhar2024]. Hamza Elshafie's
# worklog calls itself *cuBLAS-like* and *in progress*, and is honest about it: 463.9 TFLOP/s where cuBLAS had 739.8, or 62.7 % [^elshafie2026]. So
# it is *one* who got past the library, and one who wrote down how far it is. You may hear of "the two who did it". Teach the right figure: the
# second log is just as useful, because it shows where one stands at about the fourth rung.
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
# | 6 | blocks that stay, in an order kind to L2 | 660 [^shankhdhar2024] |
# | 7 | mbarriers by hand, in PTX | 704 [^shankhdhar2024] |
# | 8 | clusters of two, one delivery for both | 734 [^shankhdhar2024] |
# | 9 | many small things | 747 [^shankhdhar2024] |
# | 10 | sums leave by the copy engine | 758 [^shankhdhar2024] |
# | 11 | tiles along a Hilbert curve | 764 [^shankhdhar2024] |
# | | *cuBLAS, same card* | 716 [^shankhdhar2024] |
#
# Three rows are worth a pause. From 1 to 2: all that stood before tensor cores is less than a twentieth of the library [^shankhdhar2024]. From 4 to 5: with *one* consumer the
# larger tile spills its sums out of the registers, and the same idea gives 123 in place of 610 [^shankhdhar2024]. And at 6 the wrong order of
# tiles gives 400 in place of 660 [^shankhdhar2024]. A good idea at the wrong place costs more than no idea.
#
# Our letters for the ten steps, if the room wants them: 2 fetching and computing, 3 computing, 4 waiting, 5 computing, 6 waiting and L2, 7 waiting, 8 fetching, 9 a little of
# each, 10 waiting, 11 L2. They are those of [the page's own climb](../../docs/workshops/w2_hopper.py#the-climb) for the same ideas. Do not defend them. A rung that two pairs call by two letters is a
# good two minutes.
#
# Four rungs are new to the room. A sentence for each, before the letters:
#
# - *Blocks that stay* (6): a block that is done with a tile of C takes the next one, and its producer fetches for it while the sums of the last one go out.
# - *Clusters* (8): two blocks that need the same columns of B get them by one delivery.
# - *Sums leave by the copy engine* (10): the consumers lay C down in shared memory and go on; somebody else carries it out.
# - *A Hilbert curve* (11): a walk over the tiles of C that never goes far, so what L2 holds is used again.
#
# And *our* numbers, on an {{ l6.gpu.name }}: {{ l6.climb.wgmma.of_peak:.0%}} of peak for the kernel of the sheet,
# {{ l6.climb.triton.of_peak:.0%}} for Triton's, {{ l6.climb.cublas.of_peak:.0%}} for cuBLAS.
#
# /// claim | l6.climb.cublas.us < 0.85 * l6.climb.wgmma.us
# The kernel of the sheet loses to the library: {{ l6.climb.cublas.us / l6.climb.wgmma.us:.0%}} of it. No roles, no copy engine, blocks that go. Then turn to
# [our own climb](../../docs/workshops/w2_hopper.py#the-climb): nine kernels from this one on, each of them one file, and one of them, k09, a side note.
# /// otherwise
# On this card k04 has {{ l6.climb.cublas.us / l6.climb.wgmma.us:.0%}} of the library's speed.
# ///
#
# Somebody will read [the climb](../../docs/workshops/w2_hopper.py#the-climb) and ask why you taught roles. By themselves they gain nothing: on an {{ w2.gpu.name }} k08 makes
# {{ w2.burst.nn.n4096.roles:.0f}} TFLOP/s, and k07, which has none, {{ w2.burst.nn.n4096.wide:.0f}}. Do not explain it away. The strips say that one who fetches and cooks in turn
# leaves the stove cold; but a pot that is on the stove goes on cooking while she stands at the barrier, and a block of k07 has two cooks. [The timelines](../../docs/workshops/w2_hopper.py#two-timelines) show it: a step of k07 is
# no longer than one of k08. What roles buy comes later. Only a warp that does nothing but fetch can fetch across the end of a tile, and the tall rung, k12, is built on that. (Nor can k09, k11 and k13 be told apart from the
# rung before them in that run. Say so when the room admires a third digit.)
#
# ### What the last per cent cost
#
# Rungs 8 to 11 are evenings of one person for a few per cent each. Ask the room who would pay for that. Then answer: somebody whose cluster does
# nothing else. Then show the wall behind it. At 8192 their kernel is ahead by only 1.5 % [^shankhdhar2024]. The card runs into its power limit,
# and there a busier kernel only lowers the clock.
#
# Ours, too. cuBLAS had its tensor cores at work in {{ l6.tensor.cublas.busy:.2%}} of the ticks and reached {{ l6.climb.cublas.of_peak:.2%}} of peak. The
# sheet counts on 1830 MHz [^lockwood-h100], so the clock must have been near {{ l6.climb.cublas.of_peak:.2%}} ÷ {{ l6.tensor.cublas.busy:.2%}} × 1830 = about
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
# - *"There must be a cleverer formula."* There is none in this. Point at the sheet: `HGMMA` here, `HGMMA` there, and the library's are the narrower ones.
# - *"More warps hide more."* An SM has 65 536 registers. A producer and two groups of consumers are 384 threads, 170 registers each: 128 sums and the rest. One group is too few: its 256 sums a thread spill. With a third
#   there are 512 threads and 128 registers each, and the sums alone would fill them. If the producer gives its registers up, as in k09, it may keep 24, and three groups get 160 each: tight, and no longer impossible.
# - *"An asynchronous copy is fast."* It is as slow as before. It is only that nobody stands beside it.
# - *A wait that names the wrong bit of an mbarrier.* Either it waits for a flip that never comes, and the card stands still for good; or it does not wait at
#   all, and a tile is used that is not there. Neither has an error message. For the first keep
#   [the page of mishaps](../../docs/when_it_goes_wrong.py#it-never-ends) open.
# - *"Triton has no TMA."* Count `UTMALDG`. What it does not have is a warp of its own for fetching.
#
# /// callout | demo
# Two demos. *Make the sheet* runs on any laptop with the course installed, without a GPU. *The race* needs a Hopper: on another card all three of ours
# refuse. Show [the same race, recorded](../../docs/workshops/w2_hopper.py#by-the-clock-of-all-other-pages).
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w2_map.md) has each step. The reading hour looks long on paper and is short in the room: what runs over is the
# strips, and the letters with their factors. What gives time back are the carriers and the clock of the library. If you are late at the break, let them read two of the three kinds of line, and give the third away.
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
# **Where this leads.** Others wrote kernels like these into tools. Which of them should you stand on? [Teaching W3](w3_abstraction_ladder.py).
