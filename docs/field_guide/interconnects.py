# ---
# id: field_links
# title: "Interconnects: the roads between the cards of a machine"
# nav: Interconnects
# description: "PCIe, NVLink and NVSwitch: what a road carries each way, what our two cards got of it, and how long an all-reduce of a layer takes on each."
# ---

# %% [markdown]
# # Interconnects: the roads between the cards of a machine
#
# By the end of this page you can
#
# - name the road that bytes take from one place in a machine to another, and its rate;
# - work out how long cards need to add up what each has, and whether arithmetic can hide it.
#
# **In one sentence:** each step away from a card's own memory is a narrower road, first NVLink, then PCIe, then the network, so
# split a job where the fewest bytes must cross.
#
# /// figure | docs/assets/figures/roads_in_a_machine.svg
# alt: "A machine. On top the host's memory and a network adapter, both on PCIe, drawn as a thin bar with thin lines down to four cards. Each card has its own memory, HBM. Below, thick lines, NVLink, lead from each card to one wide box, NVSwitch."
# caption: "Four of eight cards are drawn. Without NVLink, bytes go up over PCIe and down again."
# ///
#
# /// callout | trip
# *Cited*: a data sheet or somebody's measurement, with its source. *Worked out*: bytes over a cited rate. *Measured here*: on our own cards,
# {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_kernels.measure import quantity, record

CARDS = 8
TOKENS = 4096  # of a prompt
WIDTH, KEYS, INNER = (
    8192,
    1024,
    28672,
)  # a layer of Llama 3.1 with 70 billion weights
ROADS = {  # GB/s, one way
    "pcie4": 31,
    "pcie5": 63,
    "nvlink3": 300,
    "nvlink4": 450,
    "nvlink5": 900,
}

weights = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * INNER
message = 2 * WIDTH * TOKENS  # bytes, bf16: what an all-reduce adds up
share = 2 * (CARDS - 1) / CARDS  # of it, what each card sends
little, little_rate = 32 * 1024, 1.20  # bytes, and GB/s of bus bandwidth


def ms(gb_per_s):
    """Milliseconds for two all-reduces, as many as a layer has."""
    return quantity(2 * share * message / gb_per_s / 1e6, "ms")


record(
    cards=quantity(CARDS, how="given"),
    tokens=quantity(TOKENS, how="given"),
    share=quantity(share),
    row_kb=quantity(2 * WIDTH / 1e3, "kB"),
    message=quantity(message / 1e6, "MB"),
    sent=quantity(share * message / 1e6, "MB"),
    weights=quantity(weights / 1e6, how="given"),
    tflop=quantity(2 * weights * TOKENS / CARDS / 1e12, "TFLOP"),
    road={
        name: quantity(rate, "GB/s", how="given") for name, rate in ROADS.items()
    },
    layer={name: ms(rate) for name, rate in ROADS.items()},
    little={
        "us": quantity(share * little / little_rate / 1e3, "µs"),
        "least": quantity(share * little / ROADS["nvlink5"] / 1e3, "µs"),
    },
    printed=quantity(480.0, "GB/s", how="given"),  # as bus bandwidth, by NCCL
)

# %% [markdown]
# ## One way, or both?
#
# **PCIe** is the road from the host to every card, and to the network adapter. **NVLink** joins NVIDIA's cards to one another. In
# machines with eight cards all of a card's links end in a chip called **NVSwitch**, so that any two cards have the full rate between
# them [^bekman-links].
#
# A link carries bytes both ways at once. Data sheets add the two up.
#
# /// predict | NVLink's rate is printed as {{ 2 * two_card_experts.sheet.link:.0f}} GB/s for our card. You copy half a gigabyte from one card to another. What do you get?
# - [two_card_experts.carried.one_way > 1.2 * two_card_experts.sheet.link] Nearly what is printed
# - [0.7 * two_card_experts.sheet.link <= two_card_experts.carried.one_way <= 1.2 * two_card_experts.sheet.link] A little less than half of it
# - [two_card_experts.carried.one_way < 0.7 * two_card_experts.sheet.link] Far less than half
# /// reveal
# {{ two_card_experts.carried.one_way:.0f}} GB/s. The sheet adds the way back to the way there. Both are there when you use both:
#
# /// table
# columns: ["measured here, large copies", "GB/s, one way", "of the sheet, one way"]
# rows:
#   - ["NVLink, one card sends", "{{ two_card_experts.carried.one_way:.0f}}", "{{ two_card_experts.carried.one_way / two_card_experts.sheet.link:.0%}}"]
#   - ["NVLink, both send at once, each", "{{ two_card_experts.carried.both_ways:.0f}}", "{{ two_card_experts.carried.both_ways / two_card_experts.sheet.link:.0%}}"]
#   - ["NVLink, by a kernel's own stores, both send, each", "{{ two_card_experts.carried.stores:.0f}}", "{{ two_card_experts.carried.stores / two_card_experts.sheet.link:.0%}}"]
#   - ["PCIe, pinned host memory to the card", "{{ l2.bus.pinned_in:.1f}}", "{{ l2.bus.pinned_in / road.pcie5:.0%}}"]
#   - ["PCIe, card to pinned host memory", "{{ l2.bus.pinned_out:.1f}}", "{{ l2.bus.pinned_out / road.pcie5:.0%}}"]
#   - ["PCIe, ordinary host memory to the card", "{{ l2.bus.ordinary_in:.1f}}", "{{ l2.bus.ordinary_in / road.pcie5:.0%}}"]
# caption: "Bytes that leave one place, over the time. The sheets: 450 GB/s for NVLink 4 and 63 GB/s for PCIe 5 with its 16 lanes [^bekman-links]."
# ///
# ///
#
# Others measured 396 GB/s for such a pair, and 55 GB/s over PCIe [^bekman-links].

# %% [markdown]
# ## An all-reduce, worked out
#
# Cut the matrices of a layer into {{ cards:.0f}} parts, one for each card: **tensor parallelism**. Then every card ends up with a part of
# each sum. An **all-reduce** adds the parts up and gives every card the total. NVIDIA's library for this and its relatives is **NCCL**.
#
# The best that {{ cards:.0f}} cards can do alone is to send {{ share:.2f}} times the size of the result [each](clusters.py#a-ring-by-hand). Our layer is one of Llama 3.1 with 70 billion weights: {{ weights:.0f}} million weights, and a row of 8192 numbers
# for each token [^meta-llama31]. It has two all-reduces, one behind attention and one behind the feed-forward block. For a prompt of
# {{ tokens:,.0f}} tokens in bf16 the result has {{ message:.0f}} MB, so each card sends {{ sent:.0f}} MB each time.
#
# /// define | math_ms = 1000 * tflop / gpu.bf16_tflops
# unit: ms
# what: least time of the arithmetic of one layer, for 4096 tokens, on each of 8 cards, at the peak of the data sheet
# ///
#
# /// predict | The arithmetic of that layer takes each card {{ math_ms:.2f}} ms at its peak. How long do the two all-reduces take over PCIe 5?
# - [layer.pcie5 < 0.5 * math_ms] Less than half of that
# - [0.5 * math_ms <= layer.pcie5 <= 2 * math_ms] From half of that to twice that
# - [layer.pcie5 > 2 * math_ms] More than twice that
# /// reveal
# {{ layer.pcie5:.1f}} ms. Arithmetic can hide some of it, if there is any that needs no sum of the others. For the rest all cards wait.
# ///
#
# ### Five roads {.beyond}
#
# /// table
# columns: ["the road", "GB/s, one way", "two all-reduces, ms", "over the arithmetic"]
# rows:
#   - ["PCIe 4", "{{ road.pcie4:.0f}}", "{{ layer.pcie4:.2f}}", "{{ layer.pcie4 / math_ms:.1f}}"]
#   - ["PCIe 5", "{{ road.pcie5:.0f}}", "{{ layer.pcie5:.2f}}", "{{ layer.pcie5 / math_ms:.1f}}"]
#   - ["NVLink 3, A100", "{{ road.nvlink3:.0f}}", "{{ layer.nvlink3:.2f}}", "{{ layer.nvlink3 / math_ms:.1f}}"]
#   - ["NVLink 4, H100 and H200", "{{ road.nvlink4:.0f}}", "{{ layer.nvlink4:.2f}}", "{{ layer.nvlink4 / math_ms:.1f}}"]
#   - ["NVLink 5, B200", "{{ road.nvlink5:.0f}}", "{{ layer.nvlink5:.2f}}", "{{ layer.nvlink5 / math_ms:.1f}}"]
# caption: "Worked out: bytes over the sheet's rate, with 8 cards, and the same arithmetic in each row, that of our card at its peak [^bekman-links]."
# ///
#
# ## And a single token? {.beyond}
#
# Its row has {{ row_kb:.0f}} kB, which is nothing for any of these roads. But a message has a beginning. On eight
# B200, all-reduces of 32 KiB ran at a *bus bandwidth* of 1.20 GB/s, and very large ones at 740 GB/s [^bekman-links]. The small ones therefore took
# {{ little.us:.0f}} µs each, where their bytes need {{ little.least:.2f}} µs on the link. With two of them in a layer, a token waits for beginnings.

# %% [markdown]
# ## When it wins, when it trips
#
# - **NVLink wins** where every layer needs the sums of all cards. That is why tensor parallelism stays inside one machine.
# - **PCIe is enough** where cards hand over seldom. Cut the model *between* layers, and a row of {{ row_kb:.0f}} kB for each token crosses once, not twice a layer.
# - **It trips** over a rate that counts both ways, and over ordinary host memory: look at the last row of the measured table.
# - **It trips** for a single pair without a switch: two of AMD's MI300X have 64 GB/s between them, of 448 GB/s that leave each [^bekman-links].

# %% [markdown]
# ## The numbers that matter
#
# | one way, for each card | GB/s by the sheet [^bekman-links] | measured here, {{ gpu.name }} |
# | --- | ---: | ---: |
# | the card's own memory | | {{ gpu.gb_per_s:.0f}} by its sheet |
# | NVLink 3, 4, 5 | {{ road.nvlink3:.0f}}, {{ road.nvlink4:.0f}}, {{ road.nvlink5:.0f}} | {{ two_card_experts.carried.one_way:.0f}} |
# | PCIe 4, 5, 16 lanes | {{ road.pcie4:.0f}}, {{ road.pcie5:.0f}} | {{ l2.bus.pinned_in:.1f}} in, {{ l2.bus.pinned_out:.1f}} out |
#
# *Measured here* are copies. NCCL's own all-reduce we have not timed. The tables are as of August 2026 [^bekman-links].
#
# ## What to type
#
# ```
# nvidia-smi topo -m
# nox -s docs -- --page docs/experts_on_two_cards.py
# ```
#
# The first says what joins each pair: `NV18` are 18 NVLinks, `PIX` is at most one PCIe bridge, `SYS` a way from one processor to the other [^bekman-links].
#
# **Where the course teaches it:** [what the link gives](../experts_on_two_cards.py#what-the-link-gives), with
# [three ways to travel](../experts_on_two_cards.py#three-ways-to-travel); [the way in](../lectures/l2_the_cuda_model.py#the-way-in) over PCIe.
#
# /// define | through = printed * (cards + 1) / cards / share
# unit: GB/s
# what: what crosses each link when 480 GB/s are printed as bus bandwidth of 8 cards whose switch adds [^bekman-links]
# ///
#
# /// exercise | Faster than the road? | 5 minutes
# NCCL's test prints *bus bandwidth*: the size of the result, times 2(n − 1)/n, over the time [^nccl-tests-performance]. For eight H200 it printed 480 GB/s,
# though a link carries 450 GB/s; with the switch's own arithmetic turned off it printed 367 GB/s [^bekman-links].
#
# 1. NVSwitch can add by itself. Then (n + 1)/n of the result leaves each of n cards, and not 2(n − 1)/n [^bekman-links]. What are these two for n = 8?
# 2. What rate did each link carry when 480 was printed?
# 3. With four cards there was no gain. How much could there have been at best?
# /// answer
# 1. 9/8 and 14/8.
# 2. 480 × 9/14, about {{ through:.0f}} GB/s. The formula counted bytes that were never sent.
# 3. 5/4 instead of 6/4, a sixth less to send. With eight cards it is more than a third less.
# ///
