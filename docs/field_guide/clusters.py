# ---
# id: field_clusters
# title: "Clusters: thousands of cards that add up together"
# nav: Clusters
# description: "AllReduce by hand as a ring and as a tree, InfiniBand and the switches behind it, and how often a job of thousands of cards is interrupted."
# ---

# %% [markdown]
# # Clusters: thousands of cards that add up together
#
# By the end of this page you can
#
# - do an AllReduce with a pencil, and choose between a ring and a tree;
# - say what a rail is, and work out how often a job of yours will be interrupted.
#
# **In one sentence:** each of n cards sends nearly twice the message, whatever n is; what grows is the number of beginnings, and of things
# that break.
#
# /// figure | docs/assets/figures/rails.svg
# alt: "A fat tree with rails. Below, four machines, each with two cards, 0 and 1. All cards 0 are joined to one leaf switch, rail 0, all cards 1 to another, rail 1. Each leaf is joined to both spine switches above. In a machine, a thick line, NVLink, joins the two cards."
# caption: "From card 0 to card 0 elsewhere it is one switch; to card 1 it is three, or NVLink, the short thick line, and then one."
# ///
#
# /// callout | trip
# **We have no cluster.** *Cited*: somebody else says so. *Worked out*: from that, or with a pencil. *Measured here*: a single link between two
# cards, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.all_reduce import ring, tree
from course_kernels.measure import quantity, record, text

FOUR = [
    [1, 10, 100, 1000],
    [2, 20, 200, 2000],
    [3, 30, 300, 3000],
    [4, 40, 400, 4000],
]
by_ring, by_tree = ring(FOUR), tree(FOUR)


def in_columns(cards):
    """Return a line for each card, its numbers in columns."""
    rows = (" ".join(f"{n:>6}" for n in card) for card in cards)
    return text("\n".join(f"card {i} {row}" for i, row in enumerate(rows)))


MANY = 1024  # cards
BEGIN_US = 10  # assumed, for one message to begin
NDR, NVLINK = 50, 450  # GB/s, one way, of an InfiniBand adapter and of a card
SMALL, GRADIENTS = 1e6, 2 * 855_638_016  # bytes; of a layer of 70 billion weights
many = {"ring": 2 * (MANY - 1), "tree": 2 * (MANY.bit_length() - 1)}
sent = 2 * (MANY - 1) / MANY

DAYS, JOB, ALL, BY_CARDS, FAULTY = 54, 16_384, 419, 268, 148
hours = DAYS * 24 / ALL

record(
    after={
        "three": in_columns(by_ring.rounds[3]),
        "six": in_columns(by_ring.rounds[6]),
    },
    ring={
        "rounds": quantity(len(by_ring.rounds) - 1, how="counted"),
        "sent": quantity(max(by_ring.sent), how="counted"),
    },
    tree={
        "rounds": quantity(len(by_tree.rounds) - 1, how="counted"),
        "sent": quantity(max(by_tree.sent), how="counted"),
    },
    road={
        "ndr": quantity(NDR, "GB/s", how="given"),
        "nvlink": quantity(NVLINK, "GB/s", how="given"),
    },
    many={
        "cards": quantity(MANY, how="given"),
        "share": quantity(sent),
        **{name: quantity(rounds) for name, rounds in many.items()},
    },
    begin={
        "one": quantity(BEGIN_US, "µs", how="given"),
        **{name: quantity(n * BEGIN_US / 1e3, "ms") for name, n in many.items()},
    },
    bytes={
        "small": quantity(sent * SMALL / NDR / 1e6, "ms"),
        "layer": quantity(sent * GRADIENTS / NDR / 1e6, "ms"),
        "layer_gb": quantity(GRADIENTS / 1e9, "GB"),
    },
    job={
        "days": quantity(DAYS, how="given"),
        "cards": quantity(JOB, how="given"),
        "all": quantity(ALL, how="given"),
        "by_cards": quantity(BY_CARDS, how="given"),
        "hours": quantity(hours, "h"),
        "years": quantity(hours * JOB / 24 / 365.25),
        "card_years": quantity(DAYS * JOB / BY_CARDS / 365.25),
        "thousand": quantity(hours * JOB / 1024, "h"),
        "of_cards": quantity(BY_CARDS / ALL),
        "of_faulty": quantity(FAULTY / ALL),
    },
    save={
        "minutes": quantity((2 * 30 * hours * 3600) ** 0.5 / 60, "min"),
        "lost": quantity(2 * (30 / (2 * hours * 3600)) ** 0.5),
    },
)

# %% [markdown]
# ## A ring by hand
#
# Four cards have four numbers each. Every card shall have the sums: 10, 100, 1000 and 10000. That is an **AllReduce**. It ends each step of
# training.
#
# In a **ring** each card sends one number to the card on its right, in every round, and adds what comes from the left. Card c begins with its number c, and goes on
# with the sum that it has just made. After three rounds every sum is complete somewhere:
#
# /// text | after.three
# ///
#
# In three more rounds they travel around the ring, and every card keeps a copy.
#
# /// predict | So a ring takes 2(n − 1) rounds, {{ ring.rounds:.0f}} here. In a tree each card sends all its numbers to a parent, which adds them up, and then the sums come down. How many rounds is that?
# - [tree.rounds < ring.rounds] Fewer
# - [tree.rounds >= ring.rounds] As many, or more
# /// reveal
# {{ tree.rounds:.0f}}, two up and two down. But the busiest card sends {{ tree.sent:.0f}} numbers, and in the ring every card sends {{ ring.sent:.0f}}.
#
# | | rounds, n cards | sent by the busiest card, times the message |
# | --- | ---: | ---: |
# | ring | 2(n − 1) | 2(n − 1)/n |
# | tree | about 2 log₂ n | 3: up, and to two children |
# | two trees, half of the numbers each | about 2 log₂ n | 2 |
#
# In the last row a card that has children in one tree is a leaf in the other: (3 + 1)/2. NCCL builds such a pair [^nccl-trees].
# ///
#
# No way can send less than 2(n − 1)/n, as long as only cards add [^nccl-tests-performance]. So with {{ many.cards:,.0f}} cards, each sends {{ many.share:.3f}} times the message.
# You will read of a ring's latency as 2(n − 1)/n times that of a message. It is 2(n − 1) times: only the bytes are shared out.
#
# ### Beginnings, or bytes? {.beyond}
#
# /// predict | {{ many.cards:,.0f}} cards add up 1 MB in a ring, over adapters of {{ road.ndr:.0f}} GB/s. Assume {{ begin.one:.0f}} µs from a card's order to the first byte. Where does most of the time go?
# - [begin.ring > 2 * bytes.small] Into beginnings
# - [bytes.small > 2 * begin.ring] Into bytes
# - [0.5 * bytes.small <= begin.ring <= 2 * bytes.small] Into neither: less than twice the other
# /// reveal
# Into beginnings: {{ many.ring:,.0f}} of them, {{ begin.ring:.0f}} ms, and {{ bytes.small:.2f}} ms for the bytes. A tree has {{ many.tree:.0f}} rounds, {{ begin.tree:.1f}} ms. For the gradients
# of a whole layer of Llama 3.1 70B, {{ bytes.layer_gb:.2f}} GB, the bytes alone take {{ bytes.layer:.0f}} ms.
# ///

# %% [markdown]
# ## The network
#
# **InfiniBand** is a network whose adapters read and write memory by themselves (*RDMA*); Ethernet does it as *RoCE*. Rates are in *bits*, so divide by eight: NDR carries {{ road.ndr:.0f}} GB/s each way, where
# NVLink 4 carries {{ road.nvlink:.0f}}. A good AllReduce goes over that road last. Add up inside each machine, over NVLink; then every card
# exchanges its eighth with the cards of the same number elsewhere; then spread the sums inside.
#
# **Topology** is who is joined to whom. In a **fat tree** leaf switches join machines, and spine switches join leaves, with as many links up as
# down. A **rail** is a leaf for all cards of the same number.
#
# ### Two networks that others built {.beyond}
#
# From one machine with eight B200 to four of them, the bus bandwidth of very large messages
# fell by half, though the road between them is 18 times narrower; that of 32 KiB fell to a 120th [^bekman-clusters].
#
# In NVIDIA's plan for H100 a rail joins 32 machines, one switch apart, and only
# what leaves the rail crosses the spine [^nvidia-superpod-h100].
#
# The tree is not always fat to the top. Llama 3's cluster had 16 cards to a rack and 3072 to a pod, with full rates inside a pod. Between its
# eight pods, one part in seven of that was there [^llama3].

# %% [markdown]
# ## Faults: something breaks
#
# When one card stops, all stop. Meta published what
# interrupted Llama 3 405B in {{ job.days:.0f}} days on {{ job.cards:,.0f}} H100: {{ job.all:.0f}} unexpected interruptions, and 47 planned ones [^llama3].
#
# /// predict | One card alone would have been interrupted once in {{ job.years:.1f}} years. How often was the job?
# - [job.hours > 24] Less than once a day
# - [6 <= job.hours <= 24] Every 6 to 24 hours
# - [job.hours < 6] More often than every 6 hours
# /// reveal
# Every {{ job.hours:.1f}} hours. The years are divided by {{ job.cards:,.0f}}.
# ///
#
# ### What broke, and a slip in the table {.beyond}
#
# | cause | interruptions [^llama3] |
# | --- | ---: |
# | faulty GPU | 148 |
# | its memory, HBM3 | 72 |
# | a bug in software | 54 |
# | switch or cable | 35 |
# | maintenance of the host | 32 |
# | all else, six silently wrong results among it | 78 |
#
# The paper prints 30.1 % for the 148, and 58.7 % for all that GPUs caused [^llama3]. By its own counts it is {{ job.of_faulty:.1%}}, and
# {{ job.by_cards:.0f}} of {{ job.all:.0f}}, {{ job.of_cards:.1%}}. That is one such event in {{ job.card_years:.1f}} years of a card.

# %% [markdown]
# ## When it wins, when it trips
#
# - **A ring wins** for large messages, **a tree** for small ones and many cards.
# - **It trips** over *bus bandwidth*, which is not [one link's](interconnects.py#what-to-type) where a machine adds up first.
# - **It trips** over jobs that ignore the topology, such as tensor parallelism across machines.
# - **It trips** over one slow card: thousands wait [^llama3].
# - **It trips** over somebody else's rate. By Llama's, a job of 1024 cards is interrupted every {{ job.thousand:.0f}} hours; on Meta's research clusters,
#   with A100, it was every 7.9 hours [^kokolis2025].

# %% [markdown]
# ## The numbers that matter
#
# | one way | GB/s | |
# | --- | ---: | --- |
# | NVLink 4, a card | {{ road.nvlink:.0f}} | [^bekman-links] |
# | InfiniBand NDR, a port | {{ road.ndr:.0f}} | 400 Gb/s over 8 [^bekman-clusters] |
# | InfiniBand XDR, a port | {{ 2 * road.ndr:.0f}} | 800 Gb/s over 8 [^bekman-clusters] |
#
# *Measured here*, on {{ gpu.name }}: NVLink between two cards carries {{ two_card_experts.carried.one_way:.0f}} GB/s one way.
#
# ## What to type
#
# ```
# NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING torchrun --nproc_per_node=8 train.py
# ```
#
# NCCL then prints which way it took. This page's ring and tree are in `src/course_chips/all_reduce.py`.
#
# **Where the course teaches it:** [experts on two cards](../experts_on_two_cards.py#three-ways-to-travel);
# [one number from many](../lectures/l3_memory.py#one-number-from-many), the same sum inside a card; [Interconnects](interconnects.py).
#
# /// exercise | How often do you save? | 6 minutes
# A checkpoint stops the job for 30 seconds. The job is interrupted every {{ job.hours:.1f}} hours, and then what was done since the last
# checkpoint is lost: on average T/2, if you save every T seconds.
#
# 1. Which part of the time goes into saving, and which part is lost?
# 2. For which T is the sum of the two least, and how large is it? Starting again we count as nothing.
# 3. The cluster grows tenfold. What becomes of T?
# /// answer
# 1. 30/T and T/(2M), with M the seconds between interruptions.
# 2. Where both are the same: T² = 2 · 30 · M, so T is {{ save.minutes:.0f}} minutes. Together they cost {{ save.lost:.1%}}.
# 3. M becomes M/10, and T shrinks by the root of ten, to about T/3. Both parts grow by as much.
# ///
