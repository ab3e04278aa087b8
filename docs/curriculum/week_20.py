# ---
# id: week_20
# title: "Week 20: links, NCCL, and the second capstone"
# search: {rank: 2}
# nav: "20 · Links"
# description: "An AllReduce from its two halves, played through; when a tree beats a ring, by two numbers; and a worklog for the second part's capstone."
# ---

# %% [markdown]
# # Week 20: links, NCCL, and the second capstone
#
# /// week
# ///
#
# By the end of this week you can
#
# - build an AllReduce from a reduce-scatter and an all-gather, and count what a card sends;
# - tell algorithm bandwidth from bus bandwidth;
# - forecast from two numbers, a beginning and a rate, from which message on a ring pays.
#
# ## Why this week
#
# The last roof is the link. A kernel near its card's peak is worth little in a step that waits for its neighbour, so the same question goes on: which percent of the link, and why not more?
#
# ## Before you begin
#
# - What does data parallel training send? [Week 7](week_07.py#do).
# - What does ZeRO-3 send? [Week 8](week_08.py#do).
# - How do you read a profile? [Week 18](week_18.py), or [L7](../lectures/l7_profiling.py#the-loop).
#
# ## Read
#
# /// reading
# nccl-2018: "Take what *bus bandwidth* is for, and why a small message goes another way, quicker to begin, and with less bandwidth. Lists send you here for rings, of which it does not speak. Its cards are Pascal and Volta."
# hu2025: "NCCL taken apart: its three protocols, rings and trees, and how data moves inside a machine and between machines. Take the protocols, and which is chosen for which size."
# llama3: "Section 3.3.1, in place of a vendor's paper on InfiniBand and RoCE that lists name and that we could not find. One laboratory ran both: Ethernet for its largest model, InfiniBand for the smaller ones, and it tuned both to the same speed. Read on about the layers of its switches."
# together2026: "A company that rents out clusters, on why one machine is not enough, how model and data are split over many, and what to set up. Read it as such."
# ///
#
# ## Ideas
#
# - NVLink, NVSwitch, one way and both: [interconnects](../field_guide/interconnects.py#one-way-or-both).
# - InfiniBand, fat trees, rails: [clusters](../field_guide/clusters.py).
#
# /// idea | What is RDMA?
# A network adapter that reads and writes memory by itself. A program registers a piece of memory, which pins it and tells the adapter where it lies; then it puts work into a queue, and the adapter does it. *One-sided*: I write into your memory, and you need not know. *Two-sided*: I send, and you have said where to put it.
# ///
#
# /// idea | And GPUDirect RDMA?
# The same with the card's memory. Without it bytes go from the card to the host's memory, and from there to the adapter: two trips over the bus. With it the adapter reads the card directly over PCIe, and one trip is saved.
# ///
#
# - Ring AllReduce, trees, hierarchies: [a ring by hand](../field_guide/clusters.py#a-ring-by-hand), and below.
#
# /// idea | What is a hierarchy of collectives?
# Links inside a machine are much wider than those between machines. So first add up inside, each card for its share; then add these shares between machines, card 0 with card 0, card 1 with card 1; then hand the result around inside. Between machines only an eighth of the bytes goes over each adapter.
# ///
#
# /// idea | What is NVSHMEM?
# Memory of all cards with one address space, and puts and gets that a *kernel* issues. So a tile can be sent when it is ready, from the middle of a multiply, and no host is asked. [Experts on two cards](../experts_on_two_cards.py#three-ways-to-travel) does the same between two cards of one machine, with the neighbour's memory mapped.
# ///
#
# ## Do
#
# An AllReduce out of its two halves, ReduceScatter and AllGather, on eight cards played through: the first leaves each card one finished piece, the second hands the pieces around.

# %%
from course_chips.all_reduce import ring, tree

CARDS = 8
numbers = [
    [10**piece * (card + 1) for piece in range(CARDS)] for card in range(CARDS)
]
whole = [sum(card[piece] for card in numbers) for piece in range(CARDS)]
by_ring, by_tree = ring(numbers), tree(numbers)
halfway = by_ring.rounds[CARDS - 1]  # after the reduce-scatter
finished = [sum(card[p] == whole[p] for p in range(CARDS)) for card in halfway]
assert all(card == whole for run in (by_ring, by_tree) for card in run.rounds[-1])


def time_us(size, rounds, trips, begin_us, gb_per_s):
    """Microseconds of an AllReduce: so many beginnings, and so many times the message over a link."""
    return rounds * begin_us + trips * size / gb_per_s / 1e3


BEGIN_US = 5.0  # assumed, for a message to begin
WIDE = 450.0  # GB/s of NVLink, one way, by the data sheet
SIZES = [2**i for i in range(10, 33)]
rounds_of = {"ring": 2 * (CARDS - 1), "tree": 2 * 3}
trips_of = {
    "ring": 2 * (CARDS - 1) / CARDS,
    "tree": 2.0 * 2,
}  # from two, and to two


def crossing():
    """The first size from which on the ring is quicker."""
    return next(
        size
        for size in SIZES
        if time_us(size, rounds_of["ring"], trips_of["ring"], BEGIN_US, WIDE)
        < time_us(size, rounds_of["tree"], trips_of["tree"], BEGIN_US, WIDE)
    )


# %% tags=["fold"]
from course_kernels.measure import quantity, record

GIB = 2**30
big = time_us(GIB, rounds_of["ring"], trips_of["ring"], BEGIN_US, WIDE)
record(
    finished=quantity(max(finished), how="counted"),
    rounds={
        name: quantity(count, how="counted") for name, count in rounds_of.items()
    },
    sent=quantity(max(by_ring.sent), how="counted"),
    crossing_mib=quantity(crossing() / 2**20, "MiB"),
    big={
        "ms": quantity(big / 1e3, "ms"),
        "mb": quantity(GIB / 1e6, "MB"),
        "sent_mb": quantity(trips_of["ring"] * GIB / 1e6, "MB"),
    },
    small={
        "ring": quantity(
            time_us(1024, rounds_of["ring"], trips_of["ring"], BEGIN_US, WIDE), "µs"
        ),
        "tree": quantity(
            time_us(1024, rounds_of["tree"], trips_of["tree"], BEGIN_US, WIDE), "µs"
        ),
    },
    begin=quantity(BEGIN_US, "µs", how="given"),
    wide=quantity(WIDE, "GB/s", how="given"),
)

# %% [markdown]
# After seven rounds each card has {{ finished:.0f}} finished sum; after {{ rounds.ring:.0f}} all have all. A card has sent {{ sent:.0f}} pieces of an eighth each.
#
# Now two numbers. One is assumed: {{ begin:.0f}} µs for the beginning of a message. And a link carries {{ wide:.0f}} GB/s one way. The ring has {{ rounds.ring:.0f}} beginnings and sends least. A tree of eight has {{ rounds.tree:.0f}}: three levels up, three down. Over the busiest link, a parent's with its two children, the message goes four times.
#
# /// predict | From which message on is the ring the quicker one?
# - [crossing_mib < 1] From some hundred KiB on
# - [1 <= crossing_mib < 64] From some MiB on
# - [crossing_mib >= 64] From a hundred MiB on
# /// reveal
# From {{ crossing_mib:.0f}} MiB on. For a kilobyte it is {{ small.ring:.0f}} µs in a ring and {{ small.tree:.0f}} in a tree: beginnings are all there is.
# ///
#
# A whole GiB takes {{ big.ms:.2f}} ms in the ring. Divide the message by that time, and you get the *algorithm bandwidth*, {{ big.mb / big.ms:.0f}} GB/s; what each link really carried is the *bus bandwidth*, {{ big.sent_mb / big.ms:.0f}} GB/s, which is the one to hold against the link. A list that does not say which it has is worth nothing.
#
# [Between two cards](../experts_on_two_cards.py#what-the-link-gives) the link was measured: {{ link_gb_s:.0f}} GB/s one way, of {{ two_card_experts.sheet.link:.0f}} on the sheet.
#
# /// define | link_gb_s = two_card_experts.copy.mb / two_card_experts.copy.one_way.us * 1000
# unit: GB/s
# what: a copy into the neighbour's memory over NVLink, one way, 512 MiB
# ///
#
# ## Milestone
#
# Part two ends with one kernel project from end to end. Choose a track:
#
# - **FP8 attention** with TMA and WGMMA: begin with [week 17](week_17.py#do), whose numbers you can hold yours against.
# - **A multiply in INT8 or FP8** that applies the scales of its blocks in the epilogue, against cuBLAS: [W4](../workshops/w4_serving.py#shorter-weights) has ours.
# - **Somebody's open kernel** that is slow: find three improvements, each seen in a counter.
#
# Keep a worklog as the [capstone](../capstone.py) has it: a line a try, with the percent of peak before and after, what you expected, and what the profile said. This is how such a worklog looks, made from [L5](../lectures/l5_the_top_of_the_ladder.py)'s records.
#
# | try | expected | % of peak | what the counters said |
# | --- | --- | ---: | --- |
# | no conflicts (k07) | eight lanes no longer queue | {{ l5.ladder.conflict_free.of_peak:.1%}} | the wait for memory is the largest left |
# | warps in tiles (k08) | fewer loads from shared memory | {{ l5.ladder.warp_tiles.of_peak:.1%}} | {{ l5.vital.warp_tiles.long_scoreboard:.2f}} ticks wait for memory |
# | a second buffer (k09) | that wait goes | {{ l5.ladder.asynchronous.of_peak:.1%}} | {{ l5.vital.asynchronous.long_scoreboard:.2f}} ticks |
# | a larger tile (k10) | fewer loads for each multiply-add | {{ l5.ladder.tuned.of_peak:.1%}} | |
# | registers from both banks (k11) | two of an instruction's registers no longer wait for one bank | {{ l5.ladder.register_banks.of_peak:.1%}} | |
#
# Print the list, and tick it: a baseline with its profile · three changes, each alone, each with a number before and after · why each helped, on a roofline · what did *not* help · the library's time in the same run · what you would do next.
#
# /// exercise | What a ring sends | 8 minutes
# How many rounds has a ring AllReduce with 2, 8 and 1024 cards, and how much of the message does a card send in all of them? By what do you multiply the algorithm bandwidth, to get that of the bus? And what does it mean when somebody's bus bandwidth is above the link's?
# /// answer
# 2 rounds and the message once; 14 rounds and 1.75 messages; 2046 rounds and 1.998. That is the factor, too: 1, 1.75, 1.998. Nothing sends more than its link carries. So a larger number says that the *switch* added: each card sent its message once and got the sum once, and the factor counted bytes that never travelled.
# ///
#
# ## What could not run here
#
# An AllReduce of one's own against NCCL's, from a kilobyte to four gigabytes, on two cards: it awaits its measurement. You would see a flat stretch of beginnings, a rise, and a ceiling below the sheet's.
#
# ## What next
#
# Part three, [training at scale](index.md#week-21).
