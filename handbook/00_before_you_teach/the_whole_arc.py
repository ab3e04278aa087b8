# ---
# id: arc
# title: The whole arc
# order: 1
# description: One road, two halves, fourteen stops and one question, told so that you can draw it in five minutes; and the four weeks as a calendar.
# ---

# %% [markdown]
# # The whole arc
#
# After this page you can draw the whole course on an empty board in five minutes, and, on every later day, point to the
# place on the road where you are. You can say why anybody would spend two weeks on one multiplication. And you will
# have the calendar of the four weeks.
#
# Make this your own before any lecture. Fourteen sessions without a road are fourteen piles of tricks, and students who
# have lost the road do not say so. They go
# quiet.

# %% [markdown]
# ## One sentence
#
# /// callout | say
# "First we make the multiply fast. Then we make the model fast. That is all we do here, for four weeks. If you are lost one day, ask which of the two you are
# in."
# ///
#
# Write it along the top edge of the board on day one, and let nobody wipe it off.
#
# /// figure | docs/assets/figures/arc_road.svg
# alt: >-
#   One road with fourteen stops. The first half, "First we make the multiply fast", runs through L1 what a GPU is, L2 the
#   CUDA model, L3 memory, L4 the ladder, L5 to the top of it, L6 tensor cores and L7 profiling. The road bends at the
#   pivot and comes back as "Then we make the model fast": L8 attention, W1 FlashAttention, W2 Hopper, W3 the tools,
#   W4 serving a crowd, W5 Blackwell, W6 machines that write. It ends at a mountain with a flag on top and a yardstick
#   beside it. At every stop the same question: what percent of peak are you at, and why not more?
# caption: Two halves, one question. L is a lecture of two hours, W a workshop of three.
# ///
#
# The letters and numbers are your bookkeeping. The students need the two halves.

# %% [markdown]
# ## Why one multiply
#
# Somebody will ask in the first hour, and they deserve an answer with a number in it.
#
# /// predict | Two grids of 1000 by 1000. How many multiply-adds does one product take?
# Let the room vote before you work it out.
#
# - [x] A billion
# - [ ] A hundred million
# - [ ] A million
# /// reveal
# {{ grid.multiply_adds:,.0f}}. There is one for each row, each column and each step of the sum: 1000 × 1000 × 1000.
# ///

# %%
from course_kernels.measure import quantity, record

# One number of the answer: a row times a column.
row, column = [2, 0, 1], [3, 5, 4]
one_number = sum(a * b for a, b in zip(row, column, strict=True))
print("2·3 + 0·5 + 1·4 =", one_number, "with", len(row), "multiply-adds")

side = 1000
grid = side * side * side  # rows of A, columns of B, steps of each sum

# One token of a model: each weight at work is multiplied with one number and added to a sum, once.
WEIGHTS = 70e9
print(f"one product: {grid:,}   one token: {WEIGHTS:,.0f}")
print(f"a token is as much as {WEIGHTS / grid:.0f} such products")

record(
    grid={"multiply_adds": quantity(grid)},
    token={
        "multiply_adds": quantity(WEIGHTS),
        "grids": quantity(WEIGHTS / grid),
    },
)

# %% [markdown]
# Then the model. A token is a word or a piece of one. For each token, every weight that takes part is used once: one multiply, one add. A
# model of 70 billion weights, all of them at work, does about {{ token.multiply_adds / 1e9:.0f}} billion multiply-adds for each
# token. That is as much as {{ token.grids:.0f}} of the products above. [The first lecture](../../docs/lectures/l1_what_a_gpu_is.py#the-receipt)
# writes the receipt of a real model, line by line: {{ l1.token.multiplies:.0f}} multiplies of a list by a grid, {{ l1.token.macs / 1e9:.1f}}
# billion multiply-adds.
#
# /// callout | teaching
# Elsewhere you will read of *trillions for each word* and of *millions of multiplies*. Even one trillion is fourteen times too many for such a
# model, and the second phrase mixes up multiplies and multiply-adds. A token takes hundreds of multiplies, and tens of billions of multiply-adds. Get this number right, and the room will trust your other numbers.
# ///

# %% [markdown]
# ## The first half: a climb
#
# *What is multiplied, and on what?* You write a receipt by hand, then you meet the card, which is not a cleverer cook but a brigade
# ([L1](../../docs/lectures/l1_what_a_gpu_is.py)).
# *How do we talk to it?* Grids, blocks, warps, threads ([L2](../../docs/lectures/l2_the_cuda_model.py)). *Why do they wait?* They wait because the cooks are fast and the pantry is far away ([L3](../../docs/lectures/l3_memory.py)). With that in hand, the climb
# begins: one kernel, one idea, one measured step, again and again
# ([L4](../../docs/lectures/l4_the_gemm_ladder.py), [L5](../../docs/lectures/l5_the_top_of_the_ladder.py)). Then comes a different
# machine for the same job ([L6](../../docs/lectures/l6_tensor_cores.py)), and a way to look into any kernel, not only ours
# ([L7](../../docs/lectures/l7_profiling.py)).
#
# /// callout | metaphor
# A house is renovated, one weekend at a time. It begins as a shack. First comes the plumbing: neighbours fetch together. Then a pantry is built near the stove. Then the tools stay in your hands. Then you carry four plates at once. After every weekend somebody reads one
# number off the wall. It is the same house and the same dinner. The number on the wall is what they come
# back for.
# ///
#
# /// chart | staircase
# title: The climb, as we measured it
# y_label: "% of the library"
# steps:
#   - {name: 100 * l5.ladder.naive.tflops / l5.ladder.cublas.tflops, label: "1 naive"}
#   - {name: 100 * l5.ladder.coalesced.tflops / l5.ladder.cublas.tflops, label: "2 coalesced"}
#   - {name: 100 * l5.ladder.shared_tiles.tflops / l5.ladder.cublas.tflops, label: "3 shared tiles"}
#   - {name: 100 * l5.ladder.register_column.tflops / l5.ladder.cublas.tflops, label: "4 register column"}
#   - {name: 100 * l5.ladder.register_tile.tflops / l5.ladder.cublas.tflops, label: "5 register tile"}
#   - {name: 100 * l5.ladder.vectorised.tflops / l5.ladder.cublas.tflops, label: "6 vector loads"}
#   - {name: 100 * l5.ladder.conflict_free.tflops / l5.ladder.cublas.tflops, label: "7 conflict-free"}
#   - {name: 100 * l5.ladder.warp_tiles.tflops / l5.ladder.cublas.tflops, label: "8 side note: warp tiles"}
#   - {name: 100 * l5.ladder.asynchronous.tflops / l5.ladder.cublas.tflops, label: "9 asynchronous"}
#   - {name: 100 * l5.ladder.tuned.tflops / l5.ladder.cublas.tflops, label: "10 tuned"}
#   - {name: 100 * l5.ladder.register_banks.tflops / l5.ladder.cublas.tflops, label: "11 register banks"}
#   - {name: 100 * l5.ladder.persistent.tflops / l5.ladder.cublas.tflops, label: "12 persistent"}
# references:
#   - {label: "the library, cuBLAS", value: 100}
# alt: "A staircase of twelve kernels, in percent of the library's speed: naive {{ l5.sgemm.first_of_cublas:.1%}}, coalesced {{ l5.ladder.coalesced.tflops / l5.ladder.cublas.tflops:.0%}}, shared tiles {{ l5.ladder.shared_tiles.tflops / l5.ladder.cublas.tflops:.0%}}, register column {{ l5.ladder.register_column.tflops / l5.ladder.cublas.tflops:.0%}}, register tile {{ l5.ladder.register_tile.tflops / l5.ladder.cublas.tflops:.0%}}, vector loads {{ l5.ladder.vectorised.tflops / l5.ladder.cublas.tflops:.0%}}, conflict-free {{ l5.ladder.conflict_free.tflops / l5.ladder.cublas.tflops:.0%}}, a side note on warp tiles {{ l5.ladder.warp_tiles.tflops / l5.ladder.cublas.tflops:.0%}}, asynchronous {{ l5.ladder.asynchronous.tflops / l5.ladder.cublas.tflops:.0%}}, tuned {{ l5.ladder.tuned.tflops / l5.ladder.cublas.tflops:.0%}}, register banks {{ l5.ladder.register_banks.tflops / l5.ladder.cublas.tflops:.0%}}, persistent {{ l5.ladder.persistent.tflops / l5.ladder.cublas.tflops:.0%}}. The last step is at {{ l5.sgemm.last_of_cublas:.1%}}."
# caption: 4096 × 4096 × 4096 in fp32, without tensor cores. The strongly coloured part of a step is the gain over the step before. Number 8 is a side note; the lecture says what it is for.
# ///
#
# Read it with care. The students begin at {{ l5.sgemm.first_of_cublas:.1%}} of the library's speed, and the ladder ends at {{ l5.sgemm.last_of_cublas:.1%}},
# at one size, on one card. Both are measured against the *library*, and the library itself reaches {{ l5.ladder.cublas.of_peak:.0%}}
# of peak. The figures that you meet
# most often elsewhere, from a naive kernel at 1.3 % to a last one at 93.7 % of cuBLAS, are Boehm's, on an RTX A6000 [^boehm2022]. Do not mix his staircase with ours.

# %% [markdown]
# ## The pivot
#
# The road bends at attention ([L8](../../docs/lectures/l8_attention.py)). It is two multiplies with a softmax between them, so
# all of the first half pays off at once. Between the two is a square that nobody ordered, and it is larger than everything else. The plain
# recipe carries it to the pantry and back. FlashAttention never does
# ([W1](../../docs/workshops/w1_flash_attention.py)). The logistics are the same as in the first half, but for a whole
# layer.
#
# From here on, workshops branch off the road wherever the road has covered what they need. In a lecture you understand
# something; in a workshop
# you build something and carry it home.
#
# /// figure | docs/assets/figures/trailheads.svg
# alt: >-
#   A road with the eight lectures, L1 at the bottom to L8 at the top. Six trails branch off to signposts: from L5 to W3
#   the tools, from L6 to W2 Hopper and W5 Blackwell, from L7 to W6 machines that write, from L8 to W1 FlashAttention and
#   W4 serving. On the road you come to understand; on a trail you build one thing and carry it home.
# ///

# %% [markdown]
# ## The second half: a restaurant
#
# /// callout | metaphor
# In the first half you cooked one dish, and cooked it fast. In the second you run the restaurant. Attention is the signature
# dish: keep it in your hands and do not set it down on a far shelf between two motions. Then comes a kitchen with specialists,
# who only fetch or only cook. Then you choose which tools to buy, and learn what they decide for you. Then you see the dining room: a banquet ordered
# at once, and a guest who orders one bite at a time, all night. Then come shorter recipes, with four bits to a number. And in the end there is a
# robot that cooks, and somebody who can taste.
# ///
#
# /// figure | docs/assets/figures/arc_restaurant.svg
# alt: >-
#   Part 1: a cook, a pot and a stopwatch: one dish, fast. Part 2 runs the whole restaurant. First the cook keeps the
#   dish in hand; the trip to the far shelf and back is crossed out. Then the dining room: at the banquet twelve guests
#   are served at once, which is prefill; à la carte one guest gets one bite after another, which is decode.
# ///

# %% [markdown]
# ## The yardstick
#
# **What percent of peak are you at?** It is the one question, from the first kernel to the last slide. Peak is what the maker's data sheet promises: of bandwidth, if
# the job waits for bytes; of arithmetic, if it waits for cooks. The library is a runner in the race. It is not the yardstick.
#
# /// chart | bars
# title: One yardstick, all the way
# x_label: "% of peak"
# bars:
#   - {name: 100 * start.big.cuda.of_peak, label: "the first kernel: vector add", note: "bandwidth"}
#   - {name: 100 * l2.grey.cuda.of_peak, label: "L2: a picture made grey", note: "bandwidth"}
#   - {name: 100 * l3.turn.naive.of_peak, label: "L3: transpose, naive", note: "bandwidth"}
#   - {name: 100 * l3.turn.vectorised.of_peak, label: "L3: transpose, its last kernel", note: "bandwidth"}
#   - {name: 100 * l5.ladder.naive.of_peak, label: "L4: multiply, naive", note: "fp32"}
#   - {name: 100 * l5.ladder.register_tile.of_peak, label: "L4: register tile", note: "fp32"}
#   - {name: 100 * l5.sgemm.last_of_cublas * l5.ladder.cublas.of_peak, label: "L5: the last step", note: "fp32"}
#   - {name: 100 * l6.climb.cuda_cores.of_peak, label: "L6: without tensor cores", note: "bf16"}
#   - {name: 100 * l6.climb.triton.of_peak, label: "L6: with them, in Triton", note: "bf16"}
#   - {name: 100 * w1.materialised.n4096.of_peak, label: "L8: plain attention", note: "bf16, {{ w1.gpu.name }}"}
#   - {name: 100 * w1.flash.n16384.of_peak, label: "W1: FlashAttention in Triton", note: "bf16, {{ w1.gpu.name }}"}
#   - {name: 100 * w1.specialised.n16384.of_peak, label: "W1: the same with specialists", note: "bf16, {{ w1.gpu.name }}"}
# references:
#   - {label: data sheet, value: 100}
# alt: "Twelve bars in percent of peak. Vector add {{ start.big.cuda.of_peak:.0%}}, grey {{ l2.grey.cuda.of_peak:.0%}}, transpose from {{ l3.turn.naive.of_peak:.0%}} to {{ l3.turn.vectorised.of_peak:.0%}}, the multiply from {{ l5.ladder.naive.of_peak:.1%}} over {{ l5.ladder.register_tile.of_peak:.0%}} to {{ l5.sgemm.last_of_cublas * l5.ladder.cublas.of_peak:.0%}}, in bf16 from {{ l6.climb.cuda_cores.of_peak:.1%}} to {{ l6.climb.triton.of_peak:.0%}}, attention, on an {{ w1.gpu.name }}, from {{ w1.materialised.n4096.of_peak:.0%}} to {{ w1.flash.n16384.of_peak:.0%}}, and with specialists {{ w1.specialised.n16384.of_peak:.0%}}."
# caption: Each bar is a percentage of its own peak, so it says how well a job used the card, and not which job was faster. After each name you see which peak it is, and for attention also which card; everything else was run on an {{ start.gpu.name }}.
# ///
#
# The stops without a bar are not measured yet, and nobody fills them in by guessing.
#
# | stop | what will be there | today |
# |---|---|---|
# | L7 | the same kernels, under the glass | *not yet measured* |
# | W2 | a kernel with a delivery crew, beside cuBLAS | *not yet measured* |
# | W3 | one multiply, three tools | *not yet measured* |
# | W4 | a fused kernel, and a multiply with one row | *not yet measured* |
# | W5 | numbers of four bits, unpacked by hand | *not yet measured* |
# | W6 | a kernel that a machine wrote, and yours | *not yet measured* |
#
# If you can say your percent of peak, and why it is not more, you are a kernel engineer. The rest is practice.

# %% [markdown]
# ## The loop
#
# How do you raise that percentage? Not by cleverness, but with a small loop. Each step of every ladder here is
# one turn of it: **guess → code → profile → read the
# percentage → repeat**.
#
# /// figure | docs/assets/figures/arc_loop.svg
# alt: >-
#   A loop of four stations: guess what holds it back; code one change; profile, is it right and how long does it take;
#   read the percentage of peak and ask why it is not more. From there an arrow, "repeat", leads back to guess.
# ///
#
# Draw it on day one, small, in a corner that nobody wipes. In the finale a machine will run the same loop, and the room should recognise it.

# %% [markdown]
# ## The opening
#
# The opening takes five minutes, before any content: one for the sentence, one for the number, two for the road, one for the yardstick and
# the loop. [The map of the opening](opening_map.md) has the words; [the ten-second demo](opening_demo.py) has the command, and
# says what to do when it goes wrong.
#
# /// callout | demo
# End it with two programs, one after the other: the naive multiply and the library's. The naive one takes {{ opening.naive.us / opening.library.us:.0f}} times
# as long, on our card, at that size, in fp32. Do not promise a gap beforehand; on a different card the gap will be
# different.
# ///
#
# /// callout | trip
# The urge to explain. You draw a stop, somebody asks, and ten minutes later you have taught coalescing to people who do not know what a warp is. Name the stops. Do not
# open them.
# ///

# %% [markdown]
# ## You are here
#
# One habit holds fourteen sessions together. It takes half a minute, at the start of each: walk to the road and point.
#
# /// callout | say
# "We are HERE. Behind us, this. Today, that. And the question has not changed: what percent of peak are you at?"
# ///
#
# Nobody gets lost on a road that somebody points at every day. If a room thinks that tensor cores and serving are two different
# worlds, it has not seen you point often enough. On these pages the road is at the top of every session; each stop is a link.

# %% [markdown]
# ## The four weeks
#
# There are fourteen sessions in four weeks, never more than four in one week. The columns are the days of the week; the dates are yours to set. Each
# name links to its map.
#
# | week | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|
# | 1 | [opening](opening_map.md), [L1](../01_the_machine/l1_map.md) | [L2](../01_the_machine/l2_map.md) | | [L3](../01_the_machine/l3_map.md) | [L4](../02_the_climb/l4_map.md) |
# | 2 | [L5](../02_the_climb/l5_map.md) | [L6](../02_the_climb/l6_map.md) | | [L8](../04_the_pivot/l8_map.md) | [W1](../04_the_pivot/w1_map.md) |
# | 3 | [L7](../03_profiling/l7_map.md) | | [W2](../05_the_frontier/w2_map.md) | | [W3](../05_the_frontier/w3_map.md) |
# | 4 | [W4](../05_the_frontier/w4_map.md) | [W5](../05_the_frontier/w5_map.md) | | | [W6](../05_the_frontier/w6_map.md) |
#
# Two days deliberately break the order of the road. The pivot and the first workshop come in week 2, so that everybody has built
# something large before half-time. And profiling waits for week 3: by then every student has a kernel of their own to put under the
# glass, and the capstone needs a profile that very week. Say so when you point: "We skipped this stop, and now we know why."
#
# The free days are for homework, and they are not optional.
#
# **The capstone, you versus the machine.** Each student makes one kernel faster twice: once by hand, once with a language model in the loop.
#
# It begins in week 2, when everybody has climbed far enough to choose. The announcement, who and which task, is due on the day after; the
# plan at the end of that week; a checkpoint with the report of L7 and one idea that failed closes week 3; the folder is handed in the day
# before W6, and the talks fill its third hour. `nox -s submit` checks every form and the whole folder; what students read is
# [their page on it](../../docs/capstone.py).
#
# Homework, capstone and dates are in [the calendar of a cohort](the_calendar.md): a file that everybody imports. The
# plan itself is data, in `handbook/sessions/cohort.toml`. Only two evenings a week? Keep the order, and let the course
# take longer.
#
# /// exercise | Draw it
# Take an empty sheet and a watch. Draw the road with its fourteen stops, the sentence above it, the loop in a corner, and put a
# cross at tensor cores. Then say aloud what comes before the cross and what comes after it. How long did it take?
# /// answer
# On day one you have five minutes, and no cross to draw. If you needed more time than that, you explained a stop. Check
# the order against the picture above; most people forget profiling, or put serving before the tools.
# ///

# %% [markdown]
# ## You can now teach
#
# - the sentence, the road and the two halves, in five minutes;
# - why one multiply: a billion multiply-adds for two modest grids, and for a token as many as there are weights;
# - the climb as a renovation, the second half as a restaurant;
# - the yardstick, which is peak and not the library, and the loop that moves it;
# - the pointing finger, every single day;
# - the four weeks, and why two days are out of order.
#
# **Where this leads.** To the opening itself: [its map](opening_map.md) and [its demo](opening_demo.py). Where you will stand tomorrow:
# [what a GPU is](../../docs/lectures/l1_what_a_gpu_is.py).
