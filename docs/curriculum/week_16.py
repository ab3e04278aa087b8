# ---
# id: week_16
# title: "Week 16: Hopper, TMA and WGMMA"
# search: {rank: 2}
# nav: "16 · Hopper"
# description: "A multiply with TMA and WGMMA and without CUTLASS, whose machine code you read; and how many tiles must be on their way so that no tensor core waits."
# ---

# %% [markdown]
# # Week 16: Hopper, TMA and WGMMA
#
# /// week
# ///
#
# By the end of this week you can
#
# - name the parts of a Hopper kernel, and find each in its machine code by the name that it has *there*;
# - say when two buffers are enough, and when not, with three numbers;
# - say what a smaller tile does to that.
#
# ## Why this week
#
# Since Hopper a multiply has three crews: one thread that orders tiles, an engine that carries them, and warps that multiply. Each waits only for a ticket. What percent of peak you reach, and why not more, is then a question of tickets: how many tiles
# are on their way, and who stands at an empty counter?
#
# ## Before you begin
#
# - What is `wgmma`, and where do its operands lie? [L6](../lectures/l6_tensor_cores.py#wgmma-leave-it-in-shared-memory).
# - What does *bytes in flight* mean? [L3](../lectures/l3_memory.py#how-many-must-be-walking).
# - What do CUTLASS's words for a Hopper kernel mean? [Week 15](week_15.py), or [W3](../workshops/w3_abstraction_ladder.py#cutlass-word-for-word).
#
# ## Read
#
# /// reading
# luo2024: "Take how they ask: one instruction, one loop, one number. They had an H800 on a PCIe card, so no clock and no bandwidth of theirs is an SXM card's; cycles of a multiprocessor carry over, those of L2 and HBM do not."
# luo2025: "The longer version, with clusters, distributed shared memory and TMA. Read its tables beside [L3](../lectures/l3_memory.py#how-far-is-it), and see which of them agree: it is the same question on another card."
# colfax-wgmma: "It writes in CuTe what W2 writes in PTX. Look for the three words *fence*, *commit* and *wait*, and for each ask who waits for whom."
# ///
#
# ## Ideas
#
# - What is TMA, and what is in its descriptor? [One order for a whole tile](../workshops/w2_hopper.py#one-order-for-a-whole-tile). A descriptor describes a tensor of one to five dimensions; our multiplies need two.
# - Why one thread that orders, and warps that only multiply? [Roles](../workshops/w2_hopper.py#roles), and the ticket between them, [a bit that flips](../workshops/w2_hopper.py#a-bit-that-flips).
# - What is a persistent kernel? [Blocks that stay](../workshops/w2_hopper.py#blocks-that-stay): as many blocks as SMs, each over many tiles.
#
# /// idea | Which operand of wgmma must be in shared memory?
# B, always. A may lie there too, or in registers [^ptx-isa]. That matters for attention: the weights come out of a softmax, in registers, and can go into the second product from there. The sums are in registers whatever you do, 64 rows
# for each warpgroup of 128 threads.
# ///
#
# /// idea | What are fence, commit and wait for?
# `wgmma.mma_async` returns at once, and an engine of its own reads and writes. So say three things. `wgmma.fence`: what I wrote into those registers is there, you may begin. `wgmma.commit_group`: the orders so far are one group. `wgmma.wait_group`: wait for all groups but the last so many: now I may read the
# sums, or give the tiles back. Forget the fence, and the sums are wrong now and then; wait for all groups in each step, and the tensor cores run dry in between.
# ///
#
# /// idea | What is a cluster, and what is distributed shared memory?
# A few blocks that are guaranteed to run at the same time, on SMs of one group of the card, a GPC. Eight of them everywhere, sixteen if a kernel asks for it on its own risk [^nvidia-hopper-tuning]. Each can address the shared memory of the others: that is
# *distributed shared memory*, DSMEM. In a multiply the useful part is smaller: [one delivery for two blocks](../workshops/w2_hopper.py#k11-one-delivery-for-two-blocks) and tickets across the border. A cluster is no wider SM: each block keeps its own registers and tensor cores.
# ///
#
# /// idea | What does ping-pong hide?
# Two warpgroups that multiply, each with a tile of C of its own, take turns: while one uses the tensor cores, the other does what they cannot. Often you read that this hides a softmax. In *attention* it does [^shah2024]. In a multiply there is no softmax, and what is hidden is the epilogue: rounding and storing C [^pytorch-pingpong].
# ///
#
# ## Do
#
# Write a multiply with TMA and WGMMA, without CUTLASS, and find both in its hot loop. Here it is k08 of [W2](../workshops/w2_hopper.py#roles): the smallest of our kernels with all three crews. Take it as it is; W2 explains its lines. One thing
# differs from the usual task, on purpose: it has four buffers in place of two.
#
# <details class="fold" markdown="1"><summary>The whole kernel</summary>
#
# /// source | src/course_kernels/gemm/k08_roles.cu
# ///
#
# </details>
#
# First its speed, so that you know what you are reading: in a burst at 4096 it reaches {{ w2.burst.nn.n4096.roles / w2.sheet.bf16:.0%}} of peak. Now its code. Usually the task says: look for `cp.async.bulk` and `wgmma.mma_async`. You will not find either,
# for these are words of PTX. The card has other names:
#
# | PTX | machine code, SASS |
# | --- | --- |
# | `cp.async.bulk.tensor`, from memory | `UTMALDG`, and `UTMASTG` on the way back |
# | `wgmma.mma_async` in 16 bits | `HGMMA`; `QGMMA` for FP8, `IGMMA` for INT8 |
# | `mbarrier` | `SYNCS` |
# | `cp.async`, Ampere's copy | `LDGSTS` |
#
# /// predict | k08's machine code has {{ w2.code.roles.all:.0f}} lines. What share of them are orders to TMA or to the tensor cores?
# - [(w2.code.roles.UTMALDG + w2.code.roles.HGMMA) / w2.code.roles.all < 0.03] A fiftieth or so, or less
# - [0.03 <= (w2.code.roles.UTMALDG + w2.code.roles.HGMMA) / w2.code.roles.all < 0.2] A tenth or so
# - [(w2.code.roles.UTMALDG + w2.code.roles.HGMMA) / w2.code.roles.all >= 0.2] A quarter, or more
# /// reveal
# {{ (w2.code.roles.UTMALDG + w2.code.roles.HGMMA) / w2.code.roles.all:.1%}}: {{ w2.code.roles.UTMALDG:.0f}} `UTMALDG` and {{ w2.code.roles.HGMMA:.0f}} `HGMMA`. Old copies, `LDGSTS`, are there {{ w2.code.roles.LDGSTS:.0f}} times. Those few lines are nearly all that happens, for they stand in the two
# loops:
#
# /// text | w2.sheet.k08
# ///
#
# [W2](../workshops/w2_hopper.py#find-the-waits) goes through them with a pencil. `nox -s profile -- src/course_kernels/gemm/k08_roles.cu --code` writes source, PTX and machine code beside each other, and needs no GPU.
# ///
#
# ### How many buffers? {#how-many-buffers}
#
# A step of k08 multiplies 128 × 256 × 64. The tensor cores of an SM need {{ w2.by_hand.cycles:.0f}} cycles for it, by hand. An order to TMA takes a trip, and the trip to HBM alone takes [some hundreds of cycles](../lectures/l3_memory.py#how-far-is-it) when nobody else is on the road, for a single
# number; a tile on a busy road takes longer.
#
# /// when | l3.sectors.store.naive > 0
# On {{ gpu.name }} that trip was {{ l3.hop.hbm:.0f}} cycles.
# ///
#
# How many buffers hide it? Play the ring through, with k08's own rules: a buffer is given back when the products that read it are done, *and* the tile of the step after has come.

# %%
from course_kernels.measure import quantity, record

STEP = 1024  # cycles of the products of one step
STEPS = 64  # of a tile of C, at K = 4096


def busy(buffers, trip, step=STEP, steps=STEPS):
    """Share of the time in which the tensor cores multiply, from the first tile's arrival on."""
    here, done = [], []  # when tile i has come, when its products are done
    for i in range(steps):
        asked = 0
        if i >= buffers:  # the buffer that step i - buffers has read
            asked = max(done[i - buffers], here[i - buffers + 1])
        here.append(asked + trip)
        begin = max(here[i], done[-1] if done else 0)
        done.append(begin + step)
    return quantity(steps * step / (done[-1] - here[0]))


TRIPS = {"near": 700, "far": 1500, "jam": 3000}
record(
    trips={name: quantity(trip, how="given") for name, trip in TRIPS.items()},
    ring={
        f"b{buffers}": {name: busy(buffers, trip) for name, trip in TRIPS.items()}
        for buffers in (2, 3, 4)
    },
    step={"large": quantity(STEP), "small": quantity(STEP // 2)},
    travel={"large": quantity(3), "small": quantity(6)},
    forgiven={"large": quantity(3 * STEP), "small": quantity(6 * STEP // 2)},
    small={  # a tile of 128 x 128: half the products, two thirds of the bytes
        f"b{buffers}": busy(buffers, 3000, step=STEP // 2, steps=STEPS)
        for buffers in (4, 7)
    },
)

# %% [markdown]
# /// predict | A trip takes {{ trips.far:.0f}} cycles. With two buffers, what share of the time do the tensor cores multiply?
# - [ring.b2.far < 0.6] About a half
# - [0.6 <= ring.b2.far < 0.85] About two thirds
# - [ring.b2.far >= 0.85] Nearly all: while one tile is multiplied, the next one travels
# /// reveal
# {{ ring.b2.far:.0%}}. Of two buffers one is being read, so just one tile travels, and each step takes as long as a trip.
#
# /// table
# columns: ["a trip takes", "{{ trips.near:.0f}} cycles", "{{ trips.far:.0f}}", "{{ trips.jam:.0f}}"]
# rows:
#   - [two buffers, "{{ ring.b2.near:.0%}}", "{{ ring.b2.far:.0%}}", "{{ ring.b2.jam:.0%}}"]
#   - [three, "{{ ring.b3.near:.0%}}", "{{ ring.b3.far:.0%}}", "{{ ring.b3.jam:.0%}}"]
#   - ["four, as in k08", "{{ ring.b4.near:.0%}}", "{{ ring.b4.far:.0%}}", "{{ ring.b4.jam:.0%}}"]
# caption: "Share of the time in which tensor cores multiply, worked out, for steps of {{ step.large:.0f}} cycles."
# ///
# ///
#
# So double buffering is enough exactly as long as a trip is no longer than a step. Four buffers cost shared memory and nothing else, and forgive a trip of three steps. What the ring cannot buy back: on the card a step of k08 took
# {{ w2.step.roles:.0f}} cycles, though [nobody waited for a tile](../workshops/w2_hopper.py#two-timelines). What is left on the way to peak is in W2, from [blocks that stay](../workshops/w2_hopper.py#blocks-that-stay) on.
#
# ## Milestone
#
# The milestone of weeks 15 to 17 stands in week 17. This one is from the task above.
#
# /// exercise | A smaller tile | 10 minutes
# A pair of tiles takes 48 KiB for 128 × 256 × 64, and a block may have 227 KiB. How many buffers fit, and how long a trip do they forgive? Now take tiles of 128 × 128 × 64: 32 KiB, and half of the products. How many fit, and how long a trip do *they*
# forgive? What has become of the bytes that each cycle must bring?
# /// answer
# 227 ÷ 48 is 4 and a rest, so 4 buffers. One is being read, and 3 travel: a trip of {{ travel.large:.0f}} × {{ step.large:.0f}} = {{ forgiven.large:.0f}} cycles. Of the smaller ones 227 ÷ 32 gives 7, of which 6 travel, and {{ travel.small:.0f}} × {{ step.small:.0f}} = {{ forgiven.small:.0f}} cycles: the same. With a trip of {{ trips.jam:.0f}} cycles both multiply all the time,
# {{ ring.b4.jam:.0%}} and {{ small.b7:.0%}} of it, and four small buffers only {{ small.b4:.0%}}.
#
# But the large tile asks for 48 bytes a cycle and the small one for 64, since a small tile uses each number fewer times. That is why a larger tile is worth its registers, and why the number of buffers never tells the whole story.
# ///
#
# ## What could not run here
#
# Nothing: the numbers of k08 are from the record of W2. What you need for your own is a Hopper card; on a card before it the kernel does not compile, and [the page on three generations](../field_guide/ampere_ada_hopper.py) shows what one source becomes on each.
#
# ## What next
#
# [Week 17](week_17.py) puts a softmax between two such products.
