# ---
# id: week_20
# title: "Week 20: links, NCCL, and the second capstone"
# search: {rank: 2}
# nav: "20 · Links"
# description: "An AllReduce played through, and one written for two cards; when a tree beats a ring, by two numbers; and a worklog for the second part's capstone."
# needs: [gpus 2, capability 9.0]
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
# - forecast from two numbers, a beginning and a rate, from which message on a ring pays;
# - write a ring of two into the neighbour's memory, and hold its bus bandwidth against NCCL's.
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
# ### A ring of two, on two cards
#
# Two cards make the smallest ring: one step of reduce-scatter, one of all-gather, half a message in each. So every card sends the message once, and its bus bandwidth is its algorithm bandwidth.
#
# With [the neighbour's memory mapped](../experts_on_two_cards.py#three-ways-to-travel) there is little to write. A card copies the half that it does not own into the neighbour's box. A kernel adds what has arrived, and stores the sum twice, here and over there. Each step ends with a signal:
#
# /// source | src/course_kernels/all_reduce/ring.py#all_reduce
# ///
#
# /// source | src/course_kernels/all_reduce/ring.py#add_to_both
# ///
#
# With two cards there is one way to add, so every bit of every sum is checked, before and after its time is taken. NCCL runs in the same rounds.

# %% tags=["fold"]
import torch
from course_kernels.expert_parallel.link import check_link, link_gb_per_s
from course_kernels.measure import samples
from course_kernels.two_cards.together import reduce

MESSAGES = [2**i for i in range(10, 33, 2)]  # bytes, of float32 numbers
LINK = link_gb_per_s(torch.cuda.get_device_name())

raced = dict(zip(MESSAGES, reduce(MESSAGES, rounds=12), strict=True))
for size, of_size in raced.items():
    for way, times in of_size.items():
        check_link(f"{way}, {size} bytes", size, times, LINK)
record(
    link=quantity(LINK, "GB/s", "given"),
    message={f"k{size // 1024}": quantity(size / 1e3, "kB") for size in MESSAGES},
    **{
        way: {
            f"k{size // 1024}": samples(raced[size][way], "µs", "device")
            for size in MESSAGES
        }
        for way in ("ring", "library")
    },
)

# %% [markdown]
# /// predict | A message of one KiB: how long does our ring take beside NCCL's AllReduce?
# - [ring.k1 < library.k1] It is done before NCCL
# - [library.k1 <= ring.k1 < 2 * library.k1] As long, or up to twice as long
# - [ring.k1 >= 2 * library.k1] Twice as long, or longer
# /// reveal
# {{ ring.k1:.0f}} µs, and NCCL {{ library.k1:.0f}} µs. A KiB is on the link for some nanoseconds; all the rest is beginnings. Our ring has a copy, a kernel and four signals one after the other, each a launch of its own. NCCL does everything in one kernel.
#
# And four GiB? Of the data sheet's {{ link:.0f}} GB/s our ring then carries {{ message.k4194304 / ring.k4194304 / link:.0%}}, and NCCL {{ message.k4194304 / library.k4194304 / link:.0%}}. A plain copy with both cards sending has {{ two_card_experts.carried.both_ways / two_card_experts.sheet.link:.0%}} [in its own measurement](../experts_on_two_cards.py#what-the-link-gives).
#
# /// table
# columns: ["message", "ring, µs", "NCCL, µs", "ring, GB/s", "NCCL, GB/s"]
# rows:
#   - ["1 KiB", "{{ ring.k1:.1f}}", "{{ library.k1:.1f}}", "{{ message.k1 / ring.k1:.2f}}", "{{ message.k1 / library.k1:.2f}}"]
#   - ["4 KiB", "{{ ring.k4:.1f}}", "{{ library.k4:.1f}}", "{{ message.k4 / ring.k4:.2f}}", "{{ message.k4 / library.k4:.2f}}"]
#   - ["16 KiB", "{{ ring.k16:.1f}}", "{{ library.k16:.1f}}", "{{ message.k16 / ring.k16:.2f}}", "{{ message.k16 / library.k16:.2f}}"]
#   - ["64 KiB", "{{ ring.k64:.1f}}", "{{ library.k64:.1f}}", "{{ message.k64 / ring.k64:.1f}}", "{{ message.k64 / library.k64:.1f}}"]
#   - ["256 KiB", "{{ ring.k256:.1f}}", "{{ library.k256:.1f}}", "{{ message.k256 / ring.k256:.1f}}", "{{ message.k256 / library.k256:.1f}}"]
#   - ["1 MiB", "{{ ring.k1024:.1f}}", "{{ library.k1024:.1f}}", "{{ message.k1024 / ring.k1024:.1f}}", "{{ message.k1024 / library.k1024:.1f}}"]
#   - ["4 MiB", "{{ ring.k4096:,.0f}}", "{{ library.k4096:,.0f}}", "{{ message.k4096 / ring.k4096:.1f}}", "{{ message.k4096 / library.k4096:.1f}}"]
#   - ["16 MiB", "{{ ring.k16384:,.0f}}", "{{ library.k16384:,.0f}}", "{{ message.k16384 / ring.k16384:.1f}}", "{{ message.k16384 / library.k16384:.1f}}"]
#   - ["64 MiB", "{{ ring.k65536:,.0f}}", "{{ library.k65536:,.0f}}", "{{ message.k65536 / ring.k65536:.1f}}", "{{ message.k65536 / library.k65536:.1f}}"]
#   - ["256 MiB", "{{ ring.k262144:,.0f}}", "{{ library.k262144:,.0f}}", "{{ message.k262144 / ring.k262144:.1f}}", "{{ message.k262144 / library.k262144:.1f}}"]
#   - ["1 GiB", "{{ ring.k1048576:,.0f}}", "{{ library.k1048576:,.0f}}", "{{ message.k1048576 / ring.k1048576:.1f}}", "{{ message.k1048576 / library.k1048576:.1f}}"]
#   - ["4 GiB", "{{ ring.k4194304:,.0f}}", "{{ library.k4194304:,.0f}}", "{{ message.k4194304 / ring.k4194304:.1f}}", "{{ message.k4194304 / library.k4194304:.1f}}"]
# caption: "Medians of 12 rounds, the later of the two cards; two cards, float32, in place. GB/s is bus bandwidth: what leaves a card, over the time."
# ///
#
# /// chart | lines
# title: One AllReduce, two cards
# x: name
# y: value
# x_label: message, KiB
# y_label: µs
# x_scale: log
# y_scale: log
# series:
#   - {name: ring.*, label: our ring}
#   - {name: library.*, label: NCCL}
# alt: "Time against the message, both axes logarithmic. For a KiB the ring takes {{ ring.k1:.0f}} µs and NCCL {{ library.k1:.0f}} µs, for a MiB {{ ring.k1024:.0f}} and {{ library.k1024:.0f}}, for four GiB {{ ring.k4194304:.0f}} and {{ library.k4194304:.0f}}."
# caption: The flat stretch on the left is beginnings. On the right the time grows with the message, and the link decides.
# ///
# ///
#
# What our ring leaves on the table is in its head: while a half travels nobody adds, and while a card adds, only its own stores use the link. Cut the message into pieces, and the steps of one piece can overlap with those of the next.
#
# ## Milestone
#
# Part two ends with one kernel project from end to end. Choose a track, and keep a worklog as the [capstone](../capstone.py) has it, a line a try, under the headings of [week 12](week_12.py#do). Here they are filled in three times, from records of {{ gpu.name }}.
#
# ### Track A: attention in FP8
#
# **Right?** On rows with outliers, against float64, the kernel of [week 17](week_17.py#do) is off by {{ week_17.card.fp8:.1%}} of the answer's size. The same loop in bf16: {{ week_17.card.bf16:.1%}}. NumPy had said {{ week_17.error.blocks:.1%}} before there was a kernel.
#
# **Of what peak?** 16 heads of 8192 tokens, d = 128, no mask: {{ week_17.race.full.fp8.of_peak:.0%}} of FP8's. The exponentials have a roof of their own, which [no roofline of bytes shows](week_17.py#milestone).
#
# **Against whom?** On the same rows, in turns, in milliseconds: ours takes {{ week_17.race.full.fp8.us / 1000:.2f}}. The same loop in bf16 takes {{ week_17.race.full.triton.us / 1000:.2f}}, bf16 with TMA, WGMMA and crews {{ week_17.race.full.wgmma.us / 1000:.2f}}, cuDNN in bf16 {{ week_17.race.full.cudnn.us / 1000:.2f}}.
#
# **Who did what?** The scales, the weights' power of two and the turned V are written by hand. TMA and WGMMA are not: Triton's compiler chose the instructions. By hand, in 16 bits, they are in [attention on Hopper](../attention_on_hopper.py#one-idea-at-a-time).
#
# **What lost?** Whatever is handed over in 16 bits must be rounded and turned first. With that it takes {{ week_17.race.full.rounding.us / 1000:.2f}} ms.
#
# **Next:** crews, as in 16 bits, so that exponentials run under products.
#
# ### Track B: a multiply in FP8, scales in its epilogue
#
# Every 128 of K a tile's sums leave the tensor core and are scaled, 8192 × 4096 × 7168 in 8 groups.
#
# **Right?** Positive numbers, 7168 of them a sum: off by {{ many_experts.off.ours:.3%}}, where the last rounding to bf16 alone costs {{ many_experts.off.rounding:.3%}}. Left in the tensor core to the end, the sum is off by {{ many_experts.off.stays:.2%}}.
#
# **Of what peak?** {{ many_experts.grouped.prompt.ours.tflops:,.0f}} TFLOP/s, {{ many_experts.grouped.prompt.ours.of_peak:.0%}} of FP8's.
#
# **Against whom?** Ours takes {{ many_experts.grouped.prompt.ours.us:,.0f}} µs, cuBLASLt with the same scales {{ many_experts.grouped.prompt.cublaslt.us:,.0f}}, and the same in Triton {{ many_experts.grouped.prompt.triton.us:,.0f}}.
#
# **Who did what?** TMA, WGMMA and the epilogue by hand, on the FP8 kernel of [W2](../workshops/w2_hopper.py). racecheck found a fault that no answer had shown: scales were given back when two of 128 readers had spoken.
#
# **What lost?** Large groups:
#
# /// part | docs/many_experts.py#many-experts-one-multiply | claim
# ///
#
# **Next:** the scales of the next block beside the products of this one.
#
# ### Track C: a slow kernel of somebody's, three improvements
#
# The open kernel is ours, the multiply in fp32 as [L4](../lectures/l4_the_gemm_ladder.py) leaves it. Each try has a counter that it was to move.
#
# | try | expected | % of peak | what the counter said |
# | --- | --- | ---: | --- |
# | register tile (k05), the start | | {{ l5.ladder.register_tile.of_peak:.1%}} | {{ l5.vital.register_tile.carried:.3f}} instructions carry numbers for each multiply-add |
# | 16 bytes in every access (k06) | fewer of those | {{ l5.ladder.vectorised.of_peak:.1%}} | {{ l5.vital.vectorised.carried:.3f}} |
# | no conflicts (k07) | eight lanes no longer queue | {{ l5.ladder.conflict_free.of_peak:.1%}} | {{ l5.vital.vectorised.turns_a_load:.2f}} wavefronts for each load became {{ l5.vital.conflict_free.turns_a_load:.2f}} |
# | warps in tiles (k08) | a third fewer numbers from shared memory | {{ l5.ladder.warp_tiles.of_peak:.1%}} | {{ l5.vital.warp_tiles.turns:.3f}} wavefronts for each multiply-add, {{ l5.vital.conflict_free.turns:.3f}} before |
# | fetch while multiplying (k09) | the wait for memory goes | {{ l5.ladder.asynchronous.of_peak:.1%}} | {{ l5.vital.warp_tiles.long_scoreboard:.2f}} ticks of wait became {{ l5.vital.asynchronous.long_scoreboard:.2f}} |
# | a larger tile (k10) | fewer loads for each multiply-add | {{ l5.ladder.tuned.of_peak:.1%}} | {{ l5.vital.tuned.share:.1%}} of the instructions multiply and add, {{ l5.vital.asynchronous.share:.1%}} before |
#
# **Right?** Every kernel of the ladder on sizes that nothing divides, against float64. **Of what peak?** The column. **Against whom?** cuBLAS in fp32, which reaches {{ l5.ladder.cublas.of_peak:.1%}} in the same rounds.
#
# **Who did what?** By hand, all of it; the compiler had vectorised the loads from shared memory before the second line asked for it.
#
# **What lost?** The fourth line. The count by hand was for a whole warp, and the hardware serves groups of lanes: [a side note](../lectures/l5_the_top_of_the_ladder.py#8-stand-closer-together-a-side-note).
#
# **Next:** registers from both banks, which is [rung 11](../lectures/l5_the_top_of_the_ladder.py#11-two-drawers).
#
# ### The list
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
# More than two cards. With eight the ring has fourteen rounds of beginnings instead of two, so you would see its flat stretch rise, and a tree win there. With a switch that adds, which was off here, the bus bandwidth can pass what a link carries: the exercise above says why.
#
# ## What next
#
# Part three, [training at scale](index.md#week-21).
