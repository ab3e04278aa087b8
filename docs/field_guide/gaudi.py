# ---
# id: field_gaudi
# title: "Intel Gaudi: the network on the chip"
# nav: Intel Gaudi
# description: "What a Gaudi has in place of tensor cores in multiprocessors, a network card and a launch: MME and TPC, RoCE ports on the chip, a graph compiler. An all-reduce over its links, run in NumPy. Cited."
# ---

# %% [markdown]
# # Intel Gaudi: the network on the chip
#
# By the end of this page you can
#
# - say which engine of a Gaudi does what, and work out which of two waits for the other;
# - work out what an all-reduce costs where every pair of chips has its own link;
# - test a printed peak with a clock.
#
# **In one sentence:** a Gaudi has a few large engines for multiplies, MME, many small vector processors for all else, TPC, and two dozen Ethernet
# ports on the chip itself, and a graph compiler divides the work among them beforehand.
#
# /// figure | docs/assets/figures/ports_on_the_chip.svg
# alt: "Left, one Gaudi 3: 8 MME for multiplies, 64 TPC for all else, SRAM and HBM, and 24 Ethernet ports on the chip, without a network card. Right, eight chips in a box, each joined to each other: a line stands for 3 ports that these two chips have for themselves. 3 more ports lead out of the box."
# caption: "Counts of engines [^kaplan-gaudi3] and of ports [^gaudi-network]."
# ///
#
# /// callout | trip
# **Nothing on this page has run on a Gaudi, and nothing was compiled for one.** On PyPI there are bridges and tools, `optimum-habana` (1.21.2) or
# `habana-pyhlml` (1.24.2), but not the graph compiler. And `synapseai` there searches in PDF files: it has only the name. So of Gaudi all is
# *cited*. *Measured here*, on our own cards, is what stands beside it. The all-reduce really runs, in NumPy, and no network is timed.
# ///

# %% tags=["fold"]
import numpy as np
from course_chips.cited import told
from course_chips.straight_or_ring import round_a_ring, straight
from course_kernels.measure import quantity, record
from course_models.config import LLAMA_8B, weight_bytes

CHIPS, HEAD = 8, 128
gaudi3 = told("gaudi3")
port = gaudi3["port_gbit_per_s"].value / 8  # GB/s, each way
pair = port * gaudi3["ports_in"].value / (CHIPS - 1)
gradients = weight_bytes(LLAMA_8B)

lists = np.random.default_rng(0).integers(0, 100, (CHIPS, 8 * 1024)).astype(float)
ways = {"straight": straight(lists), "ring": round_a_ring(lists)}
for way in ways.values():
    assert (way.sums == lists.sum(axis=0)).all()

cells = gaudi3["mme_side"].value ** 2 * gaudi3["engines"].value
per_vector = gaudi3["bf16_tflops"].value / gaudi3["vector_tflops"].value
record(
    gaudi3=gaudi3,
    port=quantity(port, "GB/s", how="given"),
    pair=quantity(pair, "GB/s", how="given"),
    inside=quantity(port * gaudi3["ports_in"].value, "GB/s", how="given"),
    gradients=quantity(gradients / 1e9, "GB"),
    ways={
        name: {
            "steps": quantity(way.steps),
            "links": quantity(way.links_used),
            # of the list, over the busiest link, for gradients of a whole model
            "ms": quantity(
                way.sent.max() / lists[0].nbytes * gradients / pair / 1e6, "ms"
            ),
        }
        for name, way in ways.items()
    },
    per_vector=quantity(per_vector),
    free=quantity(4 * HEAD / per_vector),  # vector operations for each score
    clock={
        "shipped_tflops": quantity(
            2e-6 * cells * gaudi3["mme_mhz"].value, "TFLOP/s", how="given"
        ),
        "paper_mhz": quantity(
            gaudi3["paper_bf16_tflops"].value / 2e-6 / cells, "MHz"
        ),
    },
)

# %% [markdown]
# ## Each pair has its own road
#
# RoCE, *RDMA over Converged Ethernet*, lets one chip write into the memory of another without asking a processor. Gaudi has it on the chip
# [^gaudi-architecture]. Of the 24 ports of {{ gaudi3.port_gbit_per_s:.0f}} Gbit/s, {{ gaudi3.ports_in:.0f}} go to the seven other chips of a box,
# three to each [^gaudi-network]. So a pair has {{ pair:.0f}} GB/s in each direction, for itself alone, and a chip has {{ inside:.0f}} GB/s in
# all.
#
# After a step of training all eight add up their gradients, an *all-reduce*: each begins with a list, each ends with the sum. Two ways: in a
# *ring* you hand pieces on to your neighbour, until all have gone round. Or you send piece j *straight* to chip j, which adds it up and tells
# all.
#
# /// predict | Both ways send equally much from each chip. How many times as long must the ring take in this box?
# - [ways.ring.ms / ways.straight.ms < 2] Less than twice as long
# - [2 <= ways.ring.ms / ways.straight.ms < 5] 2 to 5 times
# - [ways.ring.ms / ways.straight.ms >= 5] 5 times or more
# /// reveal
# {{ ways.ring.ms / ways.straight.ms:.0f}} times. A chip of the ring speaks to one neighbour, and six of its seven roads lie idle.
#
# /// table
# columns: ["all-reduce of {{ gradients:.0f}} GB, 8 chips", steps, links in use, "least time, ms"]
# rows:
#   - [one ring, "{{ ways.ring.steps:.0f}}", "{{ ways.ring.links:.0%}}", "{{ ways.ring.ms:.0f}}"]
#   - [straight to the owner, "{{ ways.straight.steps:.0f}}", "{{ ways.straight.links:.0%}}", "{{ ways.straight.ms:.0f}}"]
# caption: "Steps and links are counted in `src/course_chips/straight_or_ring.py`, which adds up real lists. The time is bytes over {{ pair:.0f}} GB/s at the busiest link: nobody has measured it here."
# ///
# ///
#
# NVIDIA's boxes have a switch. There a card may send all its bandwidth, {{ two_card_experts.sheet.link:.0f}} GB/s each way [^bekman-network], to
# any one neighbour, and a ring loses nothing. *Measured here*: one copy over that link, on {{ two_card_experts.gpu.name }}, gets
# {{ two_card_experts.carried.one_way:.0f}} GB/s. Two Gaudis by themselves have {{ pair:.0f}} at best.

# %% [markdown]
# ## Which engine waits?
#
# A tensor core sits in a multiprocessor, beside the threads that feed it. An MME stands for itself; softmax, norms and activations are the TPCs'
# work [^gaudi-architecture]. Both run at once if the graph compiler, which fuses and pipelines [^gaudi-software], cuts the work into slices: the
# TPCs have one while the MMEs multiply the next.
#
# In attention, each score costs two products of 128 long: 512 operations on the MMEs. These do {{ per_vector:.0f}} operations while the TPCs do
# one.
#
# /// predict | How many vector operations may each score cost, before the MMEs must wait?
# - [free < 20] Fewer than 20
# - [20 <= free < 100] 20 to 100
# - [free >= 100] 100 or more
# /// reveal
# {{ free:.0f}}. And a score is scaled, compared, shifted, raised to a power and added. On a Hopper it is
# [the same squeeze](../workshops/w1_flash_attention.py#flashattention-2-and-3-on-a-napkin).
# ///

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where Ethernet is what you have: no second network, no switch in the box.
# - **It wins** by its memory: it has {{ gaudi3.memory_gb:.0f}} GB [^kaplan-gaudi3].
# - **It trips** over operations that the compiler has no kernel for: then somebody writes one for the TPC.
# - **It trips** over *a better price than an H100's*: that is of one job and one year. The
#   [calculator](choosing.py#4-what-does-a-token-cost) has both chips, and takes your prices.
# - **It trips** over traffic between two chips of a box: a seventh of the roads is theirs.
# - **Mind the date.** The software was called SynapseAI, and is now *Intel Gaudi software* [^gaudi-software]. Falcon Shores, which was to follow, has
#   been cancelled [^bekman-accelerators].

# %% [markdown]
# ## The numbers that matter
#
# | one chip | Gaudi 3, 2024 | {{ gpu.name }} |
# | --- | ---: | ---: |
# | bf16, TFLOP/s, as it runs | {{ gaudi3.bf16_tflops:.0f}} [^bekman-accelerators] | {{ gpu.bf16_tflops:.0f}} |
# | bf16, TFLOP/s, on paper | {{ gaudi3.paper_bf16_tflops:.0f}} [^kaplan-gaudi3] | {{ gpu.bf16_tflops:.0f}} |
# | bf16, TFLOP/s, vector cores | {{ gaudi3.vector_tflops:.1f}} [^kaplan-gaudi3] | |
# | HBM, GB/s | {{ gaudi3.gb_per_s:.0f}} [^kaplan-gaudi3] | {{ gpu.gb_per_s:.0f}} |
# | HBM | {{ gaudi3.memory_gb:.0f}} GB [^kaplan-gaudi3] | {{ l1.card.hbm_gib:.0f}} GiB |
# | ridge in bf16, FLOP/B | {{ 1000 * gaudi3.bf16_tflops / gaudi3.gb_per_s:.0f}} | {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} |
# | to other chips of the box, GB/s each way | {{ inside:.0f}} [^gaudi-network] | {{ two_card_experts.sheet.link:.0f}} [^bekman-network] |
#
# *Measured here*, on {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention, with its softmax,
# {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s. For a Gaudi we have no such line.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_chips.straight_or_ring 8
# PYTHONPATH=src python -m course_chips.cited gaudi3
# ```
#
# The first adds up lists both ways and counts what crosses each link. The second prints this page's figures with their sources.
#
# **Where the course teaches it:** what a link gives, [two cards](../experts_on_two_cards.py#what-the-link-gives); products and softmax at once,
# [W1](../workshops/w1_flash_attention.py#softmax-one-crate-at-a-time); warps with roles,
# [W2](../workshops/w2_hopper.py#one-order-for-a-whole-tile).
#
# /// exercise | Two peaks of one chip | 4 minutes
# An MME has 256 × 256 cells, and a Gaudi 3 has eight. Each cell multiplies and adds once in a cycle. The MMEs run at {{ gaudi3.mme_mhz:.0f}} MHz
# [^bekman-accelerators]. What is the peak? At which clock is the {{ gaudi3.paper_bf16_tflops:.0f}} TFLOP/s of the slides [^kaplan-gaudi3] right?
# /// answer
# 256 × 256 × 8 = 524 288 cells, 2 operations each, times the clock: {{ clock.shipped_tflops:.0f}} TFLOP/s. The slides need
# {{ clock.paper_mhz:.0f}} MHz. A peak is a clock, and the one on paper may not be the one that you buy.
# ///
