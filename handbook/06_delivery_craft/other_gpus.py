# ---
# id: craft_gpus
# title: What other GPUs will show
# order: 160
# description: Which predictions of the pages move on an A100, an L40S, an RTX 4090 or a T4, worked out from data sheets; what cannot run there, and what the site then shows.
# ---

# %% [markdown]
# # What other GPUs will show
#
# After this page you can walk into a room whose card is not ours and say, before anybody presses Enter, which numbers on the pages will change, in
# which direction, and which sentences will be reversed. You will also know what cannot run there, and what
# the site shows instead.
#
# **Everything here is arithmetic on data sheets. We have run only cards of one generation, an H200 and an H100.** So this page is
# a list of *predictions*. Your room is the experiment, and one prediction that fails is worth more than ten that come
# true. Hand it in.

# %% [markdown]
# ## What the site does by itself
#
# When you run `nox -s docs`, what happens depends on your card.
#
# | your card | the page |
# |---|---|
# | can do everything that the page asks | shows **your** numbers, under your card's name |
# | makes a claim false | says the *otherwise* sentence, or *not on this card* |
# | lacks what the page needs | keeps **our** numbers, and says whose they are |
# | has no data sheet in the course | is timed and checked, but shows no percent of peak; pages that work out a floor by hand stop with one line |
#
# The pages on [tensor cores](../../docs/lectures/l6_tensor_cores.py) and on
# [FlashAttention](../../docs/workshops/w1_flash_attention.py) ask for capability 9.0, and that means exactly the family 9.x. They keep our numbers on
# every other card, including a B200. All other pages ask only for a card, and some of them for its counters.
#
# [The table of the first page](../../docs/start_here.py#no-gpu-or-a-different-one) shows which capability has which instruction. [Set
# up](../../docs/set_up.md#what-your-card-can-do-here)
# says what we compiled and what we ran.

# %% [markdown]
# ## Four quotients decide
#
# Nearly every prediction comes from one of four numbers, and none of them is the peak alone.
#
# 1. **Bandwidth, compared with ours.** A kernel that waits for bytes takes longer by this factor.
# 2. **The ridge in fp32.** If the square of W1 is to its left, the square is the enemy in *their* kernel, too.
# 3. **The ridge in 16 bits.** It tells you how many rows it takes until a layer waits for the cooks.
# 4. **Tensor cores (the mills) against the ordinary lanes**: 16-bit peak over fp32 peak. It tells you how large the gap is that L6 opens.
#
# /// predict | On which of the cards are the tensor cores only four times as strong as the lanes, or less?
# - [ ] A100 and L40S
# - [x] L40S and RTX 4090
# - [ ] RTX 4090 and T4
# - [ ] All but the A100
# /// reveal
# L40S ({{ card.l40s.mill:.1f}}) and RTX 4090 ({{ card.rtx_4090.mill:.1f}}). They have many ordinary lanes, because games need those, too. On an A100
# the quotient is
# {{ card.a100.mill:.0f}}, on an H200 {{ card.h200.mill:.1f}}.
# ///
#
# The cards of the course have their sheets in `src/course_kernels/measure/machine.py`. An RTX 4090 and a T4 have no
# sheet there, so their values are entered below, from pages that are not NVIDIA's [^rtx-4090] [^tesla-t4].

# %%
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import MACHINES

# bandwidth, fp32 outside the tensor cores, and in 16 bits with sums in fp32
CARDS = {
    m.slug: (m.bandwidth_gb_per_s, m.peak_tflops["fp32"], m.peak_tflops["fp16"])
    for m in MACHINES
}
CARDS |= {"rtx_4090": (1008.0, 82.58, 165.15), "t4": (320.0, 8.14, 65.1)}

BANDWIDTH = CARDS["h200"][0]
PLAIN_FP32 = (
    4 * 128 / 16
)  # operations per byte of the square of W1, four trips of 4 bytes
PLAIN_16 = 4 * 128 / 8  # the same in 16 bits

cards = {}
for name, (gb_per_s, fp32, sixteen) in CARDS.items():
    cards[name] = {
        "bytes": BANDWIDTH / gb_per_s,
        "ridge32": 1e3 * fp32 / gb_per_s,
        "ridge16": 1e3 * sixteen / gb_per_s,
        "mill": sixteen / fp32,
    }
    one = cards[name]
    print(
        f"{name:9s} bytes ×{one['bytes']:5.2f}   ridges {one['ridge32']:5.0f} {one['ridge16']:5.0f}"
        f"   tensor / lanes {one['mill']:5.1f}   the square, fp32: "
        + ("bytes" if one["ridge32"] > PLAIN_FP32 else "cooks")
    )

record(
    card={
        name: {what: quantity(number) for what, number in one.items()}
        for name, one in cards.items()
    },
    plain32=quantity(PLAIN_FP32),
    plain16=quantity(PLAIN_16),
)

# %% [markdown]
# | card | time of what waits for bytes | ridge fp32 | ridge 16 bits | tensor ÷ lanes |
# |---|---:|---:|---:|---:|
# | H200, ours [^nvidia-h200] | 1 | {{ card.h200.ridge32:.0f}} | {{ card.h200.ridge16:.0f}} | {{ card.h200.mill:.1f}} |
# | H100 SXM [^nvidia-h100] | {{ card.h100.bytes:.1f}} | {{ card.h100.ridge32:.0f}} | {{ card.h100.ridge16:.0f}} | {{ card.h100.mill:.1f}} |
# | A100 SXM [^nvidia-a100] | {{ card.a100.bytes:.1f}} | {{ card.a100.ridge32:.0f}} | {{ card.a100.ridge16:.0f}} | {{ card.a100.mill:.1f}} |
# | L40S [^nvidia-l40s] | {{ card.l40s.bytes:.1f}} | {{ card.l40s.ridge32:.0f}} | {{ card.l40s.ridge16:.0f}} | {{ card.l40s.mill:.1f}} |
# | RTX 4090 [^rtx-4090] | {{ card.rtx_4090.bytes:.1f}} | {{ card.rtx_4090.ridge32:.0f}} | {{ card.rtx_4090.ridge16:.0f}} | {{ card.rtx_4090.mill:.1f}} |
# | T4 [^tesla-t4] | {{ card.t4.bytes:.1f}} | {{ card.t4.ridge32:.0f}} | {{ card.t4.ridge16:.0f}} | {{ card.t4.mill:.1f}} |
# | B200 [^nvidia-b200] | {{ card.b200.bytes:.1f}} | {{ card.b200.ridge32:.0f}} | {{ card.b200.ridge16:.0f}} | {{ card.b200.mill:.1f}} |
#
# The second column is a factor relative to our card, from the bandwidths; a smaller card may reach a smaller or a larger
# share of its own.

# %% [markdown]
# ## What will move, page by page
#
# **Your first kernel, and memory.** Vector add takes longer by the factor in the second column. Its *percent of peak* should hardly change: it is a share of the card's own bandwidth. There is no better demonstration of what the percentage is for. What does change is the size at which an array no longer fits into the L2 cache: the L40S and the
# RTX 4090 have large ones, so their short arrays look better than they should. Our clock starts with a cold cache and takes care
# of that; their own may not.
#
# **The first roofline.** The ridge in fp32 is at {{ card.h200.ridge32:.0f}} here and at {{ card.l40s.ridge32:.0f}} on an L40S.
# The 16 readers of that page are to the left of both, and further left on the L40S. The ridge in 16 bits says how many readers it takes until arithmetic is the limit: {{ card.a100.ridge16:.0f}} on an A100, {{ card.l40s.ridge16:.0f}} on an L40S.
#
# **The ladder.** It is a ladder for the ordinary lanes in fp32, so it works on every card, and steps that save shared memory
# traffic should keep their order. Do not promise how high each step will be. On an A100 the roof
# is lower, so the same waste shows less; on an L40S or RTX 4090 it is higher and the bandwidth is lower, so the first steps,
# which waste bytes, may do worse. The famous climb from 1.3 to 93.7 % was on an RTX A6000, in percent of *cuBLAS* [^boehm2022].
#
# **Tensor cores.** Our page keeps our numbers. But the last column of the table says what a room with an L40S would find: the tensor cores are {{ card.l40s.mill:.1f}} times the lanes, not {{ card.h200.mill:.1f}}. *You cannot
# tune your way across that gap* is a sentence for data-centre cards.
#
# **FlashAttention.** This is the page whose conclusion is reversed. In fp32 the plain recipe does {{ plain32:.0f}} operations for each byte of
# the square. On our card that is to the right of the ridge: the recipe waits for the cooks, the square does not hurt, and the teaching kernel
# loses its race. On an L40S and on an RTX 4090 the same number is to the *left* of the ridge.
#
# /// callout | click
# So on those cards the square is the enemy in fp32 as well, and your students' kernel has something to gain by avoiding it.
# We do not know whether it wins: it reads shared memory for nearly every multiply, on those cards as on ours. Let the room predict, and
# run it. *It is the best experiment that a mentor with a gaming card can offer this course.*
# ///
#
# In 16 bits the square is at {{ plain16:.0f}} operations per byte, to the left of the ridge on every card in the table. So in 16 bits it is the enemy
# everywhere.
#
# **How we measure.** Whether a card slows down under long loads is a matter of its power and its cooling. The page measures it on
# yours. Do not teach the dip on our card as a law.

# %% [markdown]
# ## What cannot run
#
# | | A100 | L40S, RTX 4090 | T4 | B200 |
# |---|---|---|---|---|
# | bf16 in hardware | yes | yes | no: fp16 | yes |
# | FP8 | no | yes | no | yes |
# | TMA, the copy engine | no | no | no | yes |
# | `wgmma` | no | no | no | no: only 9.0 has it |
# | `tcgen05`, FP4 | no | no | no | yes |
# | Triton promises support [^triton5066] | yes | yes | no: it begins at 8.0 | yes |
#
# What that means in class:
#
# - **A100**: everything up to L5 works as it is, with your numbers. Read L6 and W1 with our numbers. `mma.sync`
#   is native there, so it is a good card for *warp* and *fragment*.
# - **L40S, RTX 4090**: the same; FP8 exists, through `mma.sync`. A block has less shared memory, so tuned kernels take smaller tiles.
# - **T4**: the labs run in CUDA C++, without bf16, and in Triton's interpreter. For a first lecture the card is enough: coalescing, shared memory and reductions are all there. It has no data sheet
#   in the course, so add one, or read only times. Sources disagree on its bandwidth: 320 or 300; measure a long copy and say which is nearer.
# - **B200**: for our kernels it is like 8.0, because the fast ones speak Hopper's language. A card can be newer and run less.
#
# /// callout | trip
# **"Our card is newer, so all of it must run."** Machine code for `wgmma` is made for *one* family. Newer cards dropped that instruction and have a different one. Look at the capability, not at the year.
# ///
#
# /// callout | trip
# **The headline peak.** Vendors print the largest figure: with half of the numbers zero (twice the dense one), or with sums in fp16, which on gaming cards is twice as much as with sums in fp32. Our
# table is dense, with sums in fp32. When somebody's percent of peak looks like half of yours, ask for the denominator.
# ///

# %% [markdown]
# ## Add your card
#
# Add five lines to `src/course_kernels/measure/machine.py`: the name as the driver reports it, bandwidth, dense peaks, L2, and a key of
# `docs/bibliography.toml` for your source. Then you get a percent of peak, and the pages that work out a floor no longer stop.
#
# ```bash
# nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv
# .venv/bin/nox -s docs -- --plan
# ```
#
# The second command lists what your card would measure and what it would leave to us, and runs nothing.
#
# /// exercise | An unknown card
# Compared with ours, a card has: bandwidth ÷ 3, lanes ÷ 2, tensor cores ÷ 4. Work out its four quotients. Where is the square of
# W1 in fp32, and what do you tell the room before the race?
# /// answer
# A kernel that waits for bytes gets a third as many in the same time. The ridge in fp32 is 3 / 2 of ours, {{ 1.5 * card.h200.ridge32:.0f}};
# in 16 bits 3 / 4 of ours, {{ 0.75 * card.h200.ridge16:.0f}}; and the tensor cores have 2 /
# 4 of our advantage, {{ 0.5 * card.h200.mill:.1f}}. The square, at {{ plain32:.0f}}, is still to the right of the ridge. So in fp32
# it waits
# for the cooks, and their kernel will most likely lose, as it does on our card. *Most likely* is the word: you have a pencil, and they have
# the card.
# ///
#
# **Where this leads.** For twenty people and that one card: [running a lab](running_a_lab.py). Where the square is on our card:
# [two roofs](../../docs/workshops/w1_flash_attention.py#two-roofs). The data sheet against the card itself:
# [how we measure](../../docs/how_we_measure.py#the-card-against-its-own-data-sheet).
