# ---
# id: l3
# title: Memory
# description: Measure how far away each level of a GPU's memory is and how much it hands out, and write the kernels that ask for it well.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # Memory
#
# By the end of this page you can
#
# - say how far away each level of memory is, in ticks of the clock, and how much it hands out in each tick;
# - look at an index expression and say, before anything runs, what it costs in boxes carried and in turns spent
#   waiting;
# - work out, with one multiplication, how many bytes must be in flight at every moment;
# - transpose a matrix about as fast as the card can move the bytes;
# - and, beyond the core, add up a long list and fuse two steps into one, both about as fast as the card can move the
#   bytes.
#
# **The headline: a matrix transposed at {{ turn.vectorised.of_peak:.0%}} of peak.** The first, obvious kernel for the
# same job reaches {{ turn.naive.of_peak:.0%}}. Both run on the same card with the same numbers, and neither does any
# arithmetic. This page is about everything between the two.

# %% [markdown]
# ## The cafeteria
#
# In [your first kernel](../start_here.py) the kitchen was small: cooks at tables, and a hall to the pantry. By now
# the kitchen feeds a whole building. So leave the cooks alone for a day, and follow the food.
#
# A cook holds what she works on in her **hands**. Her room has a **tray**, and her whole table shares a part of it.
# Outside, in the corridor, there is a **shelf** for all rooms: things that somebody asked for a moment ago may still be
# there. Down the hall is the **pantry**, which has everything. And now and then a **truck** brings goods from another
# building.
#
# /// figure | docs/assets/figures/cafeteria.svg
# alt: "A building, one GPU. Rooms, the SMs, each with cooks, whose hands are the registers, and a tray, the shared memory and L1. Below them one shelf, L2, for all rooms. Below that the pantry, HBM. Outside, a truck brings things from the host's memory."
# caption: Every byte that you compute with has come up through this building.
# ///
#
# Two questions are often mixed up, even in textbooks. Keep them apart.
#
# **Where may a variable live?** This is a question about the *language*. The answers to it are called memory spaces:
#
# | space | who can reach it | where its bytes usually are |
# |---|---|---|
# | register | one thread | in the SM |
# | local | one thread: what does not fit into registers | in HBM, cached by L1 and L2 |
# | shared | one block | in the SM |
# | global | every thread of the grid, and the host's copies | in HBM, cached by L2, perhaps by L1 |
# | constant, and the parameters of the launch | every thread, to read | in HBM, with a small cache of their own |
# | texture and surface | every thread, by special instructions | in HBM, cached |
# | shared memory of another block | blocks of one cluster, from Hopper on | in the neighbour's SM |
#
# **Where is a byte right now?** This is a question about the *hardware*. L1 and L2 are answers to this second question.
# They are not memory spaces but caches. You cannot declare a variable in L2, and no address refers to L2. You ask for
# the byte at a global address, and only then find out how far that byte had to come.
#
# /// exercise | Find the caches | 2 minutes
# *"CUDA has five memory spaces: registers, shared memory, L1, L2 and global memory."* You find this sentence on a
# slide. What would you write next to it?
# /// answer
# L1 and L2 are caches, not spaces, so only three of the five are right. Local, constant and parameter memory are
# missing, as are texture and surface, and on Hopper the shared memory of the cluster. And the word *local* is a trap:
# local memory sounds near, but its bytes have addresses in HBM. *Local* only means *private*.
# ///

# %% [markdown]
# ## How far is it?
#
# How do you time one trip? You cannot time just one trip, because your clock is too coarse. And timing a thousand
# trips does not help either: they overlap, and so you learn how wide the hall is, not how long.
#
# Hold a treasure hunt instead. Each box contains a slip with the number of the next box. No cook can set out for the
# next box before the slip is in her hand. So a thousand hops take a thousand trips, one after another. Such a hunt is
# called a *pointer chase*. Here is one with eight boxes.

# %%
route = [0, 5, 2, 7, 1, 6, 3, 4]  # one round through all boxes
slips = [0] * 8
for here, there in zip(route, route[1:] + route[:1], strict=True):
    slips[here] = there

box, walk = 0, []
for _ in range(8):
    walk.append(box)
    box = slips[box]  # the next place is known only now
print("the slips:", *slips)
print("the walk: ", *walk, "and back at", box)

# %% [markdown]
# /// predict | A trip from the hands to the tray takes {{ hop.shared:.0f }} ticks of the clock. How many does a trip to the pantry take?
# - [hop.hbm < 100] About 60
# - [100 <= hop.hbm < 300] About 150
# - [hop.hbm >= 300] 300 or more
# /// reveal
# It takes {{ hop.hbm:.0f }} ticks, which is {{ hop.hbm / hop.shared:.0f }} times as long as the trip to the tray. In
# {{ hop.hbm:.0f }} ticks one SM could do {{ hop.hbm * 128 / 1e3:.0f }} thousand multiply-adds, if somebody brought
# the numbers.
# ///
#
# On the card the chase is the same line, `i = x[i]`, run by one thread and timed with the clock of its SM. If all the
# boxes fit into L1, every trip ends there. If the boxes fill a gigabyte, nearly every trip goes to the pantry.

# %% tags=["show"]
from statistics import median

import torch
from course_kernels.measure import quantity, record, samples
from course_kernels.measure.machine import machine_for
from course_kernels.microbenchmarks import bandwidth, latency

hops = {name: latency.hop_cycles(name) for name in ("shared", "l1", "l2", "hbm")}
# Ticks over nanoseconds, both counted while the card works.
clock_mhz = median(bandwidth.rates("shared", n=5).sm_mhz)

properties = torch.cuda.get_device_properties(0)
sms = properties.multi_processor_count
name = torch.cuda.get_device_name()
sheet = machine_for(name)
if sheet is None:
    raise RuntimeError(
        f"{name}: no data sheet in course_kernels/measure/machine.py"
    )

record(
    hop={level: samples(cycles) for level, cycles in hops.items()},
    card={
        "sms": quantity(sms, how="device"),
        "clock": quantity(clock_mhz, "MHz", "counted"),
        "l2": quantity(properties.L2_cache_size, "B", "device"),
        "bandwidth": quantity(sheet.bandwidth_gb_per_s, "GB/s", "given"),
    },
)

# %% [markdown]
# /// table
# columns: [level, in the cafeteria, "ticks for one trip", "the same, ns"]
# rows:
#   - [shared memory, "the tray, at a place you chose", "{{ hop.shared:.1f }}", "{{ hop.shared / card.clock * 1e3:.0f }}"]
#   - [L1, "the tray, if it happens to be there", "{{ hop.l1:.1f }}", "{{ hop.l1 / card.clock * 1e3:.0f }}"]
#   - [L2, the shelf, "{{ hop.l2:.0f }}", "{{ hop.l2 / card.clock * 1e3:.0f }}"]
#   - [HBM, the pantry, "{{ hop.hbm:.0f }}", "{{ hop.hbm / card.clock * 1e3:.0f }}"]
# caption: The numbers are medians of {{ hop.hbm.n }} walks of some two thousand hops each. The clock was at {{ card.clock:.0f }} MHz.
# ///
#
# ### The hunt grows {.beyond}
#
# Now let the hunt grow. Use only a few boxes at first, then more and more, until only the pantry can hold them all.

# %%
record(
    chase={
        f"k{2**p}": samples(latency.chase(1024 * 2**p, n=5)) for p in range(2, 21)
    }
)

# %% [markdown]
# /// chart | lines
# title: One dependent load, by how much memory the walk spans
# x: name
# y: value
# x_label: memory that the walk spans, KiB
# y_label: clock ticks for one load
# x_scale: log2
# series:
#   - {name: chase.*, label: one hop}
# alt: "Clock ticks of one dependent load against the span of the walk, in steps: {{ chase.k16:.0f }} ticks at 16 KiB, {{ chase.k4096:.0f }} at 4 MiB, {{ chase.k1048576:.0f }} at 1 GiB."
# caption: Each flat stretch is a level of memory. Each rise marks the size of a cache.
# ///
#
# /// claim | chase.k4096 > 4 * chase.k16 and chase.k1048576 > 1.6 * chase.k4096
# The hardware has drawn a picture of itself. A walk of 16 KiB stays in L1 and takes {{ chase.k16:.0f }} ticks per hop.
# A walk of 4 MiB has outgrown L1 and stays in L2: {{ chase.k4096:.0f }} ticks per hop. A walk of 1 GiB goes to the
# pantry: {{ chase.k1048576:.0f }} ticks per hop. You need no data sheet to find out how large the caches are. Look
# where the line rises.
# /// otherwise
# Ticks per hop, for a walk of 16 KiB: {{ chase.k16:.0f }}; of 4 MiB: {{ chase.k4096:.0f }}; of 1 GiB:
# {{ chase.k1048576:.0f }}.
# ///
#
# /// claim | abs(chase.k1048576 / hop.hbm - 1) < 0.15
# The right end of the chart agrees with the {{ hop.hbm:.0f }} ticks of the table, although the two were measured in
# different ways: for the table, the walk visited every box for the first time; for the chart, it visited boxes that it
# had visited before.
# /// otherwise
# For a trip to the pantry, the table shows {{ hop.hbm:.0f }} ticks, and the right end of the chart shows
# {{ chase.k1048576:.0f }}.
# ///
#
# /// claim | 1.2 * chase.k4096 < chase.k32768 < 0.85 * chase.k262144
# One step is odd. The card reports that its L2 holds {{ card.l2 / 1048576:.0f }} MiB. A walk of 32 MiB should fit, and
# still takes {{ chase.k32768:.0f }} ticks per hop. Keep this odd step in mind for the section after next.
# /// otherwise
# Ticks per hop, for a walk of 32 MiB: {{ chase.k32768:.0f }}.
# ///
#
# /// exercise | Why at random? | 2 minutes
# Suppose the route were 0, 1, 2, 3 and so on. Every hop would still wait for its slip. What would you measure?
# (Memory comes in pieces of 32 bytes, and a slip has 4.)
# /// answer
# You would measure less than a full trip. Memory comes in boxes of 32 bytes, and each box holds eight slips of 4
# bytes. So one long trip is followed by seven short ones, and you see their average. Hardware that guesses the next
# address would shorten the average too. That is why our route is random, and why each slip has a cache line of its own.
# ///

# %% [markdown]
# ## How much at once?
#
# A hall can be long and still be wide. So ask a different question: if everybody fetches at once, how many bytes
# arrive in each tick?
#
# For the tray you can work out the answer by hand. The tray has 32 windows, and each gives out one word of 4 bytes in a
# tick: 32 × 4 = 128 bytes, for one room. How many rooms are there, and how many ticks are there in a second? The card
# told us both numbers.

# %%
found = {level: bandwidth.rates(level) for level in ("shared", "l1", "l2")}
tray_bytes = 32 * 4  # windows, and bytes of a word

record(
    per_clock={
        level: samples(rates.bytes_per_clock, unit="B/clk", of=level)
        for level, rates in found.items()
    },
    whole={
        level: samples(
            rates.gb_per_s, unit="GB/s", of=level, sm_mhz=median(rates.sm_mhz)
        )
        for level, rates in found.items()
    },
    tray={
        "bytes": quantity(tray_bytes, "B/clk", of="shared"),
        "card": quantity(
            tray_bytes * sms * clock_mhz / 1e6,
            "TB/s",
            of="shared",
            sm_mhz=clock_mhz,
        ),
    },
)

# %% [markdown]
# By hand: {{ tray.bytes:.0f }} bytes × {{ card.sms:.0f }} SMs × {{ card.clock:.0f }} MHz =
# {{ tray.card:.1f }} TB/s for all trays together.
#
# ### Round and round {.beyond}
#
# Now let the whole card read a stretch of memory over and over, bypassing L1. The first lap warms up the cache, then
# all blocks wait for the slowest block, and then at least two more laps are timed. A short stretch stays on the shelf.
# A long stretch does not.

# %%
SPANS = {f"k{2**p}": 1024 * 2**p for p in range(6, 23)}  # 64 KiB to 4 GiB
round_and_round = {
    span: bandwidth.rates("l2", n=10, footprint_bytes=size)
    for span, size in SPANS.items()
}
farthest = round_and_round["k4194304"]

record(
    reading={
        span: samples(
            rates.bytes_per_clock,
            unit="B/clk",
            of=bandwidth.limited_by(SPANS[span]),
            sm_mhz=median(rates.sm_mhz),
        )
        for span, rates in round_and_round.items()
    },
    far={
        "gb_per_s": samples(farthest.gb_per_s, unit="GB/s", of="hbm"),
        "clock": samples(farthest.sm_mhz, unit="MHz"),
    },
)

# %%
from course_kernels.copy import k01_vectorised as copy_kernel
from course_kernels.copy import library as copy_library
from course_kernels.measure import compare, measure
from course_kernels.problem import Workload
from course_kernels.vector_add import k03_vectorised as add_kernel
from course_kernels.vector_add import library as add_library

GB = 2**28  # fp32 numbers in a gigabyte, and a little more

record(
    copy=compare(
        {"ours": copy_kernel, "torch": copy_library.torch_copy},
        Workload.of("float32", N=GB),
        seconds=0.2,
    ),
    add=compare(
        {"ours": add_kernel, "torch": add_library.torch_add},
        Workload.of("float32", N=GB),
        seconds=0.2,
    ),
)

# %% [markdown]
# /// chart | lines
# title: The whole card reads, bypassing L1, round and round
# x: name
# y: value
# x_label: memory that is read again and again, KiB
# y_label: bytes in each clock tick
# x_scale: log2
# series:
#   - {name: reading.*, label: read}
# references:
#   - {label: HBM by the data sheet, value: card.bandwidth * 1e3 / far.clock}
# alt: "Bytes per clock tick against the stretch that is read round and round: {{ reading.k16384:.0f }} at 16 MiB, {{ reading.k4194304:.0f }} at 4 GiB. The data sheet's bandwidth of HBM is at {{ card.bandwidth * 1e3 / far.clock:.0f }}."
# caption: On the left is the shelf, on the right the pantry. No sample here includes the cost of a launch.
# ///
#
# /// claim | reading.k16384 > 1.5 * reading.k4194304
# A stretch of 16 MiB fits on the shelf, which holds {{ card.l2 / 1048576:.0f }} MiB, and arrives at
# {{ reading.k16384:.0f }} bytes per tick. A stretch of 4 GiB must come from the pantry each time, and arrives at
# {{ reading.k4194304:.0f }} bytes per tick.
# /// otherwise
# A stretch of 16 MiB arrives at {{ reading.k16384:.0f }} bytes per tick, and a stretch of 4 GiB at
# {{ reading.k4194304:.0f }} bytes per tick.
# ///
#
# /// claim | max(reading.k256, reading.k512, reading.k1024) > 1.15 * reading.k16384
# The hump on the left does not mean that the shelf is faster there. The whole card wants the same few cache lines, and
# very likely one answer serves several rooms at once. So our figure for L2 is the bandwidth at 16 MiB.
# /// otherwise
# Our figure for L2 is the bandwidth at 16 MiB.
# ///
#
# At the right end the pantry hands out {{ far.gb_per_s:.0f }} GB in a second, {{ far.gb_per_s / card.bandwidth:.0%}} of
# what the data sheet says. There the curve must stay below the line of the data sheet. Our curve was once above that
# line, which is how we found three faults in our own
# program: some blocks read while others were still warming up, a long stretch was read once instead of over and over, and the clock rate was read at a different moment. *A number above the data sheet is not good news, but a fault that nobody has found yet.*
#
# Be clear about what this chart shows. The card reads the same bytes again and again, because that is the only way to
# measure the shelf. All *other* bandwidths on this page are measured with the shelf cleared before every sample, as
# [the measuring page](../how_we_measure.py) explains. A kernel whose data is not yet in the cache cannot reach the
# bandwidths in the left half of the chart, however small its job is.
#
# /// table
# columns: [level, "bytes in a tick", of what, "TB/s for the whole card"]
# rows:
#   - [shared memory, "{{ per_clock.shared:.1f }}", one SM, "{{ whole.shared / 1e3:.1f }}"]
#   - [L1, "{{ per_clock.l1:.1f }}", one SM, "{{ whole.l1 / 1e3:.1f }}"]
#   - [L2, "{{ per_clock.l2:.0f }}", the whole card, "{{ whole.l2 / 1e3:.1f }}"]
#   - ["HBM, reading 4 GiB", "{{ reading.k4194304:.0f }}", the whole card, "{{ far.gb_per_s / 1e3:.2f }}"]
#   - ["HBM, copying 1 GiB", "", the whole card, "{{ copy.ours.tb_per_s:.2f }}"]
#   - ["*HBM, data sheet*", "", "*the whole card*", "*{{ card.bandwidth / 1e3:.2f }}*"]
# ///
#
# /// define | copy_of_ceiling = copy.ours.gb_per_s / max(copy.ours.gb_per_s, copy.torch.gb_per_s)
# unit: "1"
# what: our copy over the best copy, 1 GiB each way, fp32
# ///
#
# /// define | vector_add_of_copy = add.ours.gb_per_s / max(copy.ours.gb_per_s, copy.torch.gb_per_s)
# unit: "1"
# what: vector add with 16-byte loads over the best copy, 1 GiB in each list, bytes per second
# ///
#
# /// claim | copy_of_ceiling > 0.92 and vector_add_of_copy > 0.92
# How much can you get out of the pantry, then? We measured two copies, ours and the driver's own, which PyTorch calls.
# The better of the two is our **copy yardstick**. Our copy reaches {{ copy_of_ceiling:.1%}} of this yardstick, and a
# vector add that takes 16 bytes in every load reaches {{ vector_add_of_copy:.1%}}. (A vector add may exceed 100 %. Half
# of the bytes that a copy moves are writes; in a vector add only a third are. And the table shows that reading alone is
# faster than copying.) Nothing on this page that reads and writes 1 GiB should be far below this yardstick.
# /// otherwise
# How much can you get out of the pantry, then? We measured two copies, ours and the driver's own, which PyTorch calls.
# The better of the two is our **copy yardstick**. Our copy reaches {{ copy_of_ceiling:.1%}} of this yardstick, and a
# vector add that takes 16 bytes in every load reaches {{ vector_add_of_copy:.1%}}. (A vector add may exceed 100 %. Half
# of the bytes that a copy moves are writes; in a vector add only a third are.) If a kernel on this page reads and writes
# 1 GiB and stays far below this yardstick, the pantry alone does not explain its time.
# ///
#
# Step back and look: the nearer the level, the shorter the walk *and* the wider the hall. That is the whole point of
# trays. A byte that is used ten times should be carried down the hall only once.
#
# /// exercise | How often must it be used?
# According to the table, how many times as many bytes do all the trays together hand out as the pantry? What does the
# ratio tell you about a kernel that reads every byte from the pantry and then exactly once from the tray?
# /// answer
# On this card they hand out about {{ per_clock.shared * card.sms / reading.k4194304:.0f }} times as many. So a single
# detour via the tray costs next to nothing in bandwidth. The detour pays when the byte is used more than once, or when,
# as in a transpose, it lets you walk the hall in a better order.
# ///

# %% [markdown]
# ## Are these the right numbers? {.beyond}
#
# Other people analysed Hopper before us, with programs of their own. Luo and others did so twice, in 2024 [^luo2024]
# and, more thoroughly, in 2025 [^luo2025]. Their card was an H800 on a PCIe board: it has the same SMs but fewer of
# them, a lower clock rate, and an older HBM. So compare only what is counted in ticks, and ignore seconds.
#
# First, one point about method. Our `i = x[i]` consists of two steps: the load, and the arithmetic that turns `i` into
# an address. A chain can also hold addresses instead of indices, and then a hop is nothing but the load. We do not know
# which of the two kinds of chain their programs time. So here we measure L1 both ways.

# %%
# Luo et al. 2025, tables 3 to 5, for an H800
PAPER = {"shared": 29.0, "l1": 32.0, "l2": 264.5, "hbm": 656.0}
PAPER_BYTES = {"shared": 127.4, "l1": 125.8, "l2": 4472.3}

record(
    hop_alone={"l1": samples(latency.hop_cycles("l1", pointer=True))},
    paper={
        level: quantity(cycles, "cycles", "given")
        for level, cycles in PAPER.items()
    },
    paper_bytes={
        level: quantity(found, "B/clk", "given")
        for level, found in PAPER_BYTES.items()
    },
)

# %% [markdown]
# /// table
# columns: [level, "one trip, ours", "one trip, theirs", "in a tick, ours", "in a tick, theirs"]
# rows:
#   - [shared memory, "{{ hop.shared:.1f }}", "{{ paper.shared:.1f }}", "{{ per_clock.shared:.1f }}", "{{ paper_bytes.shared:.1f }}"]
#   - ["L1, the load alone", "{{ hop_alone.l1:.1f }}", "{{ paper.l1:.1f }}", "{{ per_clock.l1:.1f }}", "{{ paper_bytes.l1:.1f }}"]
#   - [L2, "{{ hop.l2:.0f }}", "{{ paper.l2:.1f }}", "{{ per_clock.l2:.0f }}", "{{ paper_bytes.l2:.1f }}"]
#   - [HBM, "{{ hop.hbm:.0f }}", "{{ paper.hbm:.0f }}", "", ""]
# caption: Their figures are those of 2025 for an H800, in ticks and in bytes for each tick; L1 and shared memory are those of one SM, L2 that of the whole card. We know these figures second-hand; the note explains how.
# ///
#
# /// claim | max(abs(hop.shared / paper.shared - 1), abs(hop_alone.l1 / paper.l1 - 1), abs(hop.l2 / paper.l2 - 1), abs(hop.hbm / paper.hbm - 1), abs(per_clock.shared / paper_bytes.shared - 1), abs(per_clock.l1 / paper_bytes.l1 - 1), abs(per_clock.l2 / paper_bytes.l2 - 1)) < 0.2
# Seven numbers were measured on two cards with two programs, and all seven agree to within 20 %. We compare the
# bandwidth of HBM only with our own data sheet, above, because their card had a different memory.
# /// otherwise
# Here not all of the numbers agree so closely. On a card that is not a Hopper they do not have to agree.
# ///
#
# /// claim | hop.l1 > 1.1 * hop_alone.l1
# With the address computed in between, L1 takes {{ hop.l1:.1f }} ticks here instead of {{ hop_alone.l1:.1f }}. The
# paper of 2024 reported 40.7 ticks for L1 [^luo2024], and the paper of 2025 reported 32.0 [^luo2025]. The cache is the
# same, so the arithmetic for the address is very likely the whole difference. Whenever you read a latency, ask what
# else was in the chain.
# /// otherwise
# With the address computed in between, L1 takes {{ hop.l1:.1f }} ticks here; without that work, L1 takes
# {{ hop_alone.l1:.1f }} ticks.
# ///
#
# Now back to the odd step. Many people repeat a number from 2024: 478.8 ticks for *global memory* [^luo2024]. The
# authors later found that the L2 has two halves, and that the far half takes longer to answer [^luo2025]; NVIDIA had
# drawn the two halves when the A100 came out [^nvidia-ampere]. Look at the steps again: a walk of 32 MiB is too large
# for one half of the L2 and too small to need the pantry. Such a walk takes {{ chase.k32768:.0f }} ticks per hop on our
# card, while a trip to the pantry takes {{ hop.hbm:.0f }}. These may be trips to the far end of the shelf, or a mixture
# of short trips and long ones: an average does not tell you which. Either way, most of these trips do not go to the
# pantry.
#
# /// exercise | An older pantry
# The HBM of the H800 hands out less than half as many bytes per second as the HBM of our card. Yet a trip takes about
# the same number of ticks on both cards. Is that a contradiction?
# /// answer
# No. Bandwidth is how much is carried down the hall in a tick; latency is how long the hall is. A newer HBM may send
# more bits over each wire in the same time, or it may have more wires. Either way more bytes arrive, and each trip may
# take about as long as before. That is why so much of this craft is about having enough bytes in flight.
# ///

# %% [markdown]
# ## Ask for neighbours
#
# The pantry has a rule: it does not hand out single jars. Jars come in boxes of eight, and you must carry a whole
# box. A jar is a number of 4 bytes. A box is a *sector*: 32 neighbouring bytes, starting at an address that is a
# multiple of 32 [^nvidia-sectors].
#
# Now recall that 32 cooks, a *warp*, step up together and place one order. How many boxes must be carried? The number
# depends only on where the 32 jars are.
#
# /// figure | docs/assets/figures/sectors.svg
# alt: "Above: 32 lanes want 32 neighbouring numbers. They are in four boxes, and every jar is used. Below: 32 lanes want every eighth number. They are in 32 boxes, and one jar of each is used."
# caption: Both orders ask for 128 bytes. One takes four boxes, the other thirty-two.
# ///
#
# Count the boxes by hand: lane k wants the number at k × stride.

# %%
STRIDES = (1, 2, 4, 8, 16, 32)


def boxes(stride):
    """How many boxes of 32 bytes hold what the 32 lanes of a warp want."""
    return len({4 * lane * stride // 32 for lane in range(32)})


record(boxes={f"s{S}": quantity(boxes(S)) for S in STRIDES})
print("boxes for one request:", {S: boxes(S) for S in STRIDES})

# %% [markdown] From stride 8 on, every lane needs a box of its own, and the count cannot get any worse. So 32 boxes are carried where 4 would be enough: **at most eight boxes instead of one**, for numbers of 4 bytes. Elsewhere you will read that a bad stride costs at most this factor in time. But eight is only a bound on the boxes. The time is a different matter.
#
# /// predict | A kernel reads all of a 512 MB list with stride 32, lap after lap, and writes it in order. How long does it take, compared with stride 1?
# By hand, there are eight times as many boxes to read, and the same number to write. That makes (8 + 1) / 2 = 4.5 times
# the bytes.
#
# - [stride.s32.us / stride.s1.us < 4] Less than 4 times
# - [4 <= stride.s32.us / stride.s1.us < 6] 4 to 6 times
# - [6 <= stride.s32.us / stride.s1.us < 9] 6 to 9 times
# - [stride.s32.us / stride.s1.us >= 9] 9 times, or more
# /// reveal
# **{{ stride.s32.us / stride.s1.us:.1f }}** times as long. The calculation by hand missed two effects, which work in
# opposite directions. Both are explained below.
#
# /// chart | lines
# title: Useful bytes, read with a stride
# x: S
# y: gb_per_s
# x_label: stride, in numbers of 4 bytes
# y_label: useful GB/s, read and written
# x_scale: log2
# series:
#   - {name: stride.*, label: strided}
# references:
#   - {label: copy, value: copy.ours.gb_per_s}
# alt: "Useful bytes per second against the stride: {{ stride.s1.gb_per_s:.0f }} GB/s at stride 1, {{ stride.s8.gb_per_s:.0f }} at 8, {{ stride.s32.gb_per_s:.0f }} at 32. A copy is at {{ copy.ours.gb_per_s:.0f }}."
# ///
#
# /// table
# columns: [stride, "boxes, by hand", "sectors per request, counted", "bytes read from HBM, over those at stride 1", "time over stride 1"]
# rows:
#   - ["1", "{{ boxes.s1:.0f }}", "{{ sectors.stride.s1:.1f }}", "{{ counted.stride.s1.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s1.us / stride.s1.us:.1f }}"]
#   - ["2", "{{ boxes.s2:.0f }}", "{{ sectors.stride.s2:.1f }}", "{{ counted.stride.s2.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s2.us / stride.s1.us:.1f }}"]
#   - ["4", "{{ boxes.s4:.0f }}", "{{ sectors.stride.s4:.1f }}", "{{ counted.stride.s4.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s4.us / stride.s1.us:.1f }}"]
#   - ["8", "{{ boxes.s8:.0f }}", "{{ sectors.stride.s8:.1f }}", "{{ counted.stride.s8.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s8.us / stride.s1.us:.1f }}"]
#   - ["16", "{{ boxes.s16:.0f }}", "{{ sectors.stride.s16:.1f }}", "{{ counted.stride.s16.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s16.us / stride.s1.us:.1f }}"]
#   - ["32", "{{ boxes.s32:.0f }}", "{{ sectors.stride.s32:.1f }}", "{{ counted.stride.s32.read_bytes / counted.stride.s1.read_bytes:.1f }}", "{{ stride.s32.us / stride.s1.us:.1f }}"]
# ///
# ///

# %% tags=["show"]
from course_kernels.strided_read import k01_strided

record(
    stride={
        f"s{S}": measure(
            k01_strided, Workload.of("float32", N=GB // 2, S=S), seconds=0.1
        )
        for S in STRIDES
    }
)

# %% [markdown]
# ### What the hardware counted {.beyond}
#
# Now ask the hardware. The hardware keeps counts, and Nsight Compute, `ncu`, reads them: the requests from warps, the
# sectors that these requests touched, and the bytes that left the pantry. Starting `ncu` costs seconds. So we run `ncu`
# only once, here, for **everything that this page counts**, and quote the other counts where they are needed. (The jobs
# are smaller than the ones we time, but still far too large for the shelf in the hall.)

# %% tags=["fold"]
from course_kernels.bank_conflicts import k01_stride
from course_kernels.bias_gelu import k01_fused, k02_triton
from course_kernels.bias_gelu import library as bias_gelu_library
from course_kernels.measure import count_many
from course_kernels.transpose import (
    k01_naive,
    k02_tiled,
    k03_padded,
    k04_swizzled,
    k05_vectorised,
)

TRANSPOSES = {
    "naive": k01_naive,
    "tiled": k02_tiled,
    "padded": k03_padded,
    "swizzled": k04_swizzled,
    "vectorised": k05_vectorised,
}
BIAS_GELUS = {
    "eager": bias_gelu_library.eager,
    "compiled": bias_gelu_library.compiled,
    "triton": k02_triton,
    "cuda": k01_fused,
}
BANK_STRIDES = (*STRIDES, 33)
layer = Workload.of("bfloat16", M=32768, N=16384)

jobs = {
    **{
        f"stride_s{S}": (k01_strided, Workload.of("float32", N=2**26, S=S))
        for S in STRIDES
    },
    **{
        f"bank_s{S}": (k01_stride, Workload.of("float32", N=2**20, S=S))
        for S in BANK_STRIDES
    },
    **{
        f"turn_{idea}": (kernel, Workload.of("float32", M=8192, N=8192))
        for idea, kernel in TRANSPOSES.items()
    },
    **{f"fuse_{who}": (kernel, layer) for who, kernel in BIAS_GELUS.items()},
}
LOAD_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
STORE_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
STORE_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
TURNS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_LOADS = "smsp__inst_executed_op_shared_ld.sum"
METRICS = (
    LOAD_REQUESTS,
    LOAD_SECTORS,
    STORE_REQUESTS,
    STORE_SECTORS,
    CONFLICTS,
    TURNS,
    SHARED_LOADS,
)
counted = dict(zip(jobs, count_many(list(jobs.values()), METRICS), strict=True))


def tally(job, metric):
    """One counter over all kernels of a job."""
    return sum(
        kernel["metrics"][metric]["value"] for kernel in counted[job].kernels
    )


def ratio(job, above, below):
    """One counter over another, as a number to record."""
    return quantity(tally(job, above) / tally(job, below), how="counted")


def of_one_word(job, numbers, metric):
    """A counter of the tray, for each 32 numbers that pass over it."""
    return quantity(tally(job, metric) / (numbers / 32), how="counted")


record(
    counted={
        "stride": {f"s{S}": counted[f"stride_s{S}"] for S in STRIDES},
        "fuse": {who: counted[f"fuse_{who}"] for who in BIAS_GELUS},
        "turn": {idea: counted[f"turn_{idea}"] for idea in TRANSPOSES},
    },
    sectors={
        "stride": {
            f"s{S}": ratio(f"stride_s{S}", LOAD_SECTORS, LOAD_REQUESTS)
            for S in STRIDES
        },
        "store": {
            idea: ratio(f"turn_{idea}", STORE_SECTORS, STORE_REQUESTS)
            for idea in TRANSPOSES
        },
    },
    turns={
        "bank": {
            f"s{S}": ratio(f"bank_s{S}", TURNS, SHARED_LOADS) for S in BANK_STRIDES
        },
        "tray": {
            idea: of_one_word(f"turn_{idea}", 8192 * 8192, TURNS)
            for idea in TRANSPOSES
        },
    },
    conflicts={
        idea: of_one_word(f"turn_{idea}", 8192 * 8192, CONFLICTS)
        for idea in TRANSPOSES
    },
)

# %% [markdown]
# /// claim | abs(sectors.stride.s1 - boxes.s1) < 0.1 and abs(sectors.stride.s4 - boxes.s4) < 0.1 and abs(sectors.stride.s32 - boxes.s32) < 0.1
# Look at the table in the answer above. The second and third columns of that table agree: for every request of every
# warp, the hardware counted what you counted on your fingers. From stride 8 on the count stays at
# {{ sectors.stride.s32:.0f }}.
# /// otherwise
# At stride 32 you count {{ boxes.s32:.0f }} boxes per request by hand; the hardware counted
# {{ sectors.stride.s32:.1f }}.
# ///
#
# /// claim | counted.stride.s16.read_bytes > 1.5 * counted.stride.s8.read_bytes and stride.s16.us > 1.5 * stride.s8.us
# The fourth column does *not* stop at eight. From stride 8 to stride 16 the number of boxes stays the same, but the
# bytes that leave the pantry grow once more, from {{ counted.stride.s8.read_bytes / counted.stride.s1.read_bytes:.1f }}
# to {{ counted.stride.s16.read_bytes / counted.stride.s1.read_bytes:.1f }} times those of stride 1. It seems that the
# pantry hands out boxes in pairs. At stride 8 both boxes of a pair are wanted; at stride 16 only one of them is. And
# the time follows the *bytes*: it grows from {{ stride.s8.us:.0f }} to {{ stride.s16.us:.0f }} µs. So a bound on
# sectors is not a bound on the time. (Nor do the bytes explain everything: the last row reads as many bytes as the row
# above it, yet takes a different time.)
# /// otherwise
# From stride 8 to stride 16 the number of boxes stays the same. The bytes read go from
# {{ counted.stride.s8.read_bytes / counted.stride.s1.read_bytes:.1f }} to
# {{ counted.stride.s16.read_bytes / counted.stride.s1.read_bytes:.1f }} times those of stride 1.
# ///
#
# /// claim | stride.s1.gb_per_s < 0.75 * copy.ours.gb_per_s
# Look once more at the left end of the chart in that answer. Stride 1 wastes nothing, and still reaches only
# {{ stride.s1.gb_per_s / copy.ours.gb_per_s:.0%}} of the bandwidth of our copy. So the base of all the ratios in the
# last column is a kernel that could itself be better. Look at that kernel: each thread divides two 64-bit numbers to
# find its place. We know of no single instruction for such a division, so most likely it takes a whole series of
# instructions. Then the thread carries a single number of 4 bytes, and is done. The copy's threads divide nothing and
# carry 16 bytes at a time. This page does not measure how much the division costs and how much the small loads cost; a
# [later section](#how-many-must-be-walking) deals with the size of the loads.
# /// otherwise
# Stride 1 reaches {{ stride.s1.gb_per_s / copy.ours.gb_per_s:.0%}} of the bandwidth of our copy.
# ///
#
# ### The word for it
#
# Loads and stores whose lanes ask for neighbouring numbers are called *coalesced*. Uncoalesced access is the first
# fault to look for in any kernel, and the cheapest to fix: often you only have to swap two indices.
#
# /// exercise | Other people's boxes
# (a) All 32 lanes read the *same* number. (b) Lane k reads number k + 1. (c) The numbers are fp64, and the stride is 1.
# (d) Each lane reads a `float4`, and neighbouring lanes read neighbouring vectors. How many sectors does one request
# touch in each case?
# /// answer
# (a) One. (b) Five: 128 bytes that begin 4 bytes past the edge of a box reach into a fifth box. (c) Eight: 32 × 8
# bytes. (d) Sixteen: 32 × 16 bytes. In (c) and (d) everything that is carried is used. Many sectors are not a fault;
# partly used sectors are.
# ///
#
# Now put the pencil down. Below, you choose the walk, and the page counts the boxes for you: a row is a cache line of
# 128 bytes, which is four boxes side by side. Set the knobs to the four cases above, and see whether you were right.
#
# /// explorable | coalescing
# ask: "Stride 32 needs 32 boxes. What is the smallest stride that does? And when do 32 neighbours need more than four?"
# alt: "At stride 32, with elements of 4 bytes, 32 boxes are carried, one from each of 32 cache lines, and in each of them one element is wanted."
# knobs:
#   stride: {label: "Stride, in elements:", at: 32}
#   offset: {label: "The first thread's element:", at: 0}
#   size: {label: Bytes of an element, at: 4}
# data:
#   time: "stride.*.us / stride.s1.us:.1f"
# says:
#   one: "All 32 threads want the same {wanted} bytes: one box. {share} % of what is carried is wanted."
#   all: "The warp wants {wanted} bytes, and {sectors} boxes hold just these: {share} % of what is carried is wanted."
#   some: "The warp wants {wanted} bytes. They are in {sectors} boxes, in {lines} cache lines, so {carried} bytes are carried: {share} % of them are wanted."
#   measured: "Measured at this stride, for reading and writing: {time} times as long as at stride 1."
#   near: "The nearest walk that was measured has stride {near}, 4 bytes each, and begins at the first element: {time} times as long as at stride 1."
# row:
#   stride: "{stride}"
#   first element: "{offset}"
#   bytes of an element: "{size}"
#   boxes: "{sectors}"
#   cache lines: "{lines}"
#   "wanted, %": "{share}"
# ///

# %% [markdown]
# ## Thirty-two windows
#
# The tray plays by different rules. The tray has no boxes but 32 windows, called *banks*, and behind window w are the
# words w, w + 32, w + 64 and so on. A window serves one word per turn. If 32 cooks want words behind 32 different
# windows, all of them are served at once. If two cooks want different words behind the same window, the second cook
# waits.
#
# By hand again: lane k wants the word k × stride. The longest queue decides.
#
# /// predict | Stride 32 makes everybody queue at one window. What does stride 33 do?
# - [turns.bank.s33 <= 1.5] As good as stride 1
# - [1.5 < turns.bank.s33 <= 33] As bad as stride 32, or nearly
# - [turns.bank.s33 > 33] Worse than stride 32
# /// reveal
# Stride 33 is no worse than stride 1: {{ queue.s33:.0f }} turn by hand, and {{ turns.bank.s33:.2f }} turns counted.
# Dividing 33 by 32 leaves a remainder of 1, so each lane goes one window further along than the lane before it. Any
# *odd* stride is harmless. Remember the number 33: it is about to save a transpose.
#
# /// figure | docs/assets/figures/banks.svg
# alt: "Four rows of 32 windows. With stride 1 or 33 each window serves one lane: one turn. With stride 2 half of the windows have a queue of two. With stride 8 four windows have queues of eight. With stride 32 all 32 lanes stand in one long queue at window 0: 32 turns."
# caption: A queue at a window is a bank conflict.
# ///
#
# /// table
# columns: [stride, "turns, by hand", "turns for one load, counted", "time over stride 1"]
# rows:
#   - ["1", "{{ queue.s1:.0f }}", "{{ turns.bank.s1:.2f }}", "{{ bank.s1.us / bank.s1.us:.2f }}"]
#   - ["2", "{{ queue.s2:.0f }}", "{{ turns.bank.s2:.2f }}", "{{ bank.s2.us / bank.s1.us:.2f }}"]
#   - ["4", "{{ queue.s4:.0f }}", "{{ turns.bank.s4:.2f }}", "{{ bank.s4.us / bank.s1.us:.2f }}"]
#   - ["8", "{{ queue.s8:.0f }}", "{{ turns.bank.s8:.2f }}", "{{ bank.s8.us / bank.s1.us:.2f }}"]
#   - ["16", "{{ queue.s16:.0f }}", "{{ turns.bank.s16:.2f }}", "{{ bank.s16.us / bank.s1.us:.2f }}"]
#   - ["32", "{{ queue.s32:.0f }}", "{{ turns.bank.s32:.2f }}", "{{ bank.s32.us / bank.s1.us:.2f }}"]
#   - ["33", "{{ queue.s33:.0f }}", "{{ turns.bank.s33:.2f }}", "{{ bank.s33.us / bank.s1.us:.2f }}"]
# caption: Turns are counted as wavefronts, the steps in which the memory unit of an SM serves a request [^nvidia-wavefronts].
# ///
# ///

# %%
from collections import Counter


def queue(stride):
    """The longest queue at any of the 32 windows."""
    return max(Counter(lane * stride % 32 for lane in range(32)).values())


record(
    queue={f"s{S}": quantity(queue(S)) for S in BANK_STRIDES},
    bank={
        f"s{S}": measure(
            k01_stride, Workload.of("float32", N=2**22, S=S), seconds=0.1
        )
        for S in BANK_STRIDES
    },
)
print("turns:", {S: queue(S) for S in BANK_STRIDES})

# %% [markdown]
# /// claim | 24 < bank.s32.us / bank.s1.us < 40 and 24 < turns.bank.s32 < 40
# Here the time follows the count closely: at stride 32 one load takes {{ turns.bank.s32:.0f }} turns, and the kernel
# takes {{ bank.s32.us / bank.s1.us:.0f }} times as long as at stride 1. This kernel does nothing but read from the
# windows, so nothing hides the queues.
# /// otherwise
# At stride 32 the hardware counted {{ turns.bank.s32:.1f }} turns for one load, and the kernel took
# {{ bank.s32.us / bank.s1.us:.1f }} times as long as at stride 1.
# ///
#
# /// explorable | bank_conflicts
# ask: "The rows of a tile have 32 words, and a warp reads a column: stride 32. How little must the rows grow for nobody to wait? And which strides make a queue of four?"
# alt: "At stride 32 all 32 words are behind window 0: a queue of 32."
# knobs:
#   stride: {label: "Stride, in words:", at: 32}
# data:
#   time: "bank.*.us / bank.s1.us:.1f"
#   counted: "turns.bank.*:.1f"
# says:
#   same: "All 32 threads want the same word. It is handed out to all of them in one turn."
#   free: "32 words behind {busy} different windows: nobody waits, and the load takes one turn."
#   queue: "32 words behind only {busy} of 32 windows. The longest queue has {queue}, so the load takes {queue} turns."
#   measured: "Measured at this stride: {counted} turns by the counters, and {time} times as long as at stride 1."
#   near: "The queue is as long at stride {near}. Measured there: {counted} turns by the counters, and {time} times as long as at stride 1."
# row:
#   stride: "{stride}"
#   windows at work: "{busy}"
#   longest queue: "{queue}"
#   measured at stride: "{near}"
#   "turns, counted": "{counted}"
#   "time over stride 1": "{time}"
# ///
#
# /// exercise | All the same | 1 minute
# All 32 lanes want the *same* word. How many turns does that take?
# /// answer
# One. A queue forms only for *different* words behind one window. The same word is handed out to everybody in
# one turn: a broadcast.
# ///

# %% [markdown]
# ## Transpose a matrix
#
# The transpose is `y[n, m] = x[m, n]`. It needs no arithmetic. A transpose reads and writes each number once, exactly
# as a copy does. So the copy is the yardstick, and any gap between the two is our own fault. The first three kernels
# here are classics of the trade [^harris2013].
#
# ### The obvious kernel
#
# /// source | src/course_kernels/transpose/k01_naive.cu
# ///
#
# Look at the last line of the kernel with the last two sections in mind. `threadIdx.x` counts along n. So the lanes of
# a warp read neighbours in `x`, which are in 4 boxes. But in `y` the places that they write are a whole row apart, that
# is, M numbers apart, and so they are in 32 boxes, one for each number. You could swap the two indices and read badly
# instead. If you go straight from x to y, *one of the two walks is always bad*.
#
# ### Transpose it on the tray
#
# /// figure | docs/assets/figures/transpose_tile.svg
# alt: "Above: the naive kernel reads part of a row of x and writes it as part of a column of y, one box for each number. Below: a tile of x is read row by row onto a tray and read from the tray column by column, so that y is also written row by row."
# caption: The detour is short, and it fixes both walks.
# ///
#
# Take a tile of 32 × 32. Read the tile row by row onto the tray, so that the lanes ask the hall for neighbours. Wait
# until the whole block is done. Then take the tile off the tray column by column, and write each column as a row of y,
# so that the lanes write neighbours, too. `__shared__` puts `tile` on the tray, where the whole block shares it. At
# `__syncthreads()` each thread waits until all threads of the block have arrived. ([The page on
# C](../c_for_python_people.py) explains both words.)
#
# /// predict | Both walks down the hall are good now. Is the transpose as fast as a copy?
# - [turn.tiled.us / copy.ours.us < 1.1] Yes: it moves the same bytes
# - [1.1 <= turn.tiled.us / copy.ours.us < 1.5] No: up to half as long again
# - [turn.tiled.us / copy.ours.us >= 1.5] No: one and a half times as long, or more
# /// reveal
# This kernel takes {{ turn.tiled.us:.0f }} µs. The copy takes {{ copy.ours.us:.0f }} µs, and the naive kernel takes
# {{ turn.naive.us:.0f }} µs. The reason is how columns are stored on the tray. A row of the tile is 32 words long, so a
# column has stride 32, and you have seen the queue that stride 32 makes.
# ///
#
# /// source | src/course_kernels/transpose/k02_tiled.cu
# ///
#
# ### Three ways out of the queue
#
# **Pad.** Make a row 33 words long: `tile[TILE][TILE + 1]`. One word in each row stays unused, and a column now has
# stride 33.
#
# **Swizzle.** Keep rows of 32 words, but put the number from row r and column c into column `c ^ r`. The `^` is
# *exclusive or*. Within a row, swizzling only changes the order. The numbers of a column end up behind 32 different
# windows. No word is wasted.
#
# **Vectorise.** Move 16 bytes in every instruction: a thread takes a square of 4 × 4, transposes it in its own
# registers, and passes on four vectors. The tray is swizzled again, this time in whole vectors. The vectorised kernel
# has far more bytes in flight. The next section explains why this matters.

# %%
from course_kernels.transpose import library as transpose_library

square = Workload.of("float32", M=16384, N=16384)  # 1 GiB each way
record(
    turn=compare(
        {**TRANSPOSES, "torch": transpose_library.torch_transpose},
        square,
        seconds=0.15,
    )
)

# %% [markdown]
# /// chart | staircase
# title: Transpose of 16384 × 16384 fp32 numbers
# y_label: GB/s, read and written
# steps:
#   - {name: turn.naive.gb_per_s, label: naive}
#   - {name: turn.tiled.gb_per_s, label: tiled}
#   - {name: turn.padded.gb_per_s, label: padded}
#   - {name: turn.swizzled.gb_per_s, label: swizzled}
#   - {name: turn.vectorised.gb_per_s, label: vectorised}
# references:
#   - {label: our copy, value: copy.ours.gb_per_s}
# alt: "A staircase of bytes per second: naive {{ turn.naive.gb_per_s:.0f }} GB/s, tiled {{ turn.tiled.gb_per_s:.0f }}, padded {{ turn.padded.gb_per_s:.0f }}, swizzled {{ turn.swizzled.gb_per_s:.0f }}, vectorised {{ turn.vectorised.gb_per_s:.0f }}. A copy of as many bytes is at {{ copy.ours.gb_per_s:.0f }}."
# ///
#
# /// table
# columns: [kernel, "% of peak", "time, µs", "sectors for one store", "turns at the tray, 32 numbers"]
# rows:
#   - [naive, "{{ turn.naive.of_peak:.1%}}", "{{ turn.naive.us:.0f }}", "{{ sectors.store.naive:.1f }}", no tray]
#   - [tiled, "{{ turn.tiled.of_peak:.1%}}", "{{ turn.tiled.us:.0f }}", "{{ sectors.store.tiled:.1f }}", "{{ turns.tray.tiled:.1f }}"]
#   - [padded, "{{ turn.padded.of_peak:.1%}}", "{{ turn.padded.us:.0f }}", "{{ sectors.store.padded:.1f }}", "{{ turns.tray.padded:.1f }}"]
#   - [swizzled, "{{ turn.swizzled.of_peak:.1%}}", "{{ turn.swizzled.us:.0f }}", "{{ sectors.store.swizzled:.1f }}", "{{ turns.tray.swizzled:.1f }}"]
#   - ["**vectorised**", "**{{ turn.vectorised.of_peak:.1%}}**", "{{ turn.vectorised.us:.0f }}", "{{ sectors.store.vectorised:.1f }}", "{{ turns.tray.vectorised:.1f }}"]
#   - ["PyTorch", "{{ turn.torch.of_peak:.1%}}", "{{ turn.torch.us:.0f }}", "", ""]
#   - ["*copy, ours*", "*{{ copy.ours.of_peak:.1%}}*", "*{{ copy.ours.us:.0f }}*", "", ""]
# caption: The counters were read by Nsight Compute, on 8192 × 8192. A store of 16 bytes a lane fills 16 sectors, so for such a store 16 is the minimum.
# ///
#
# /// claim | sectors.store.naive > 30 and sectors.store.tiled < 5
# Read the counters from the top. The naive kernel touches {{ sectors.store.naive:.0f }} sectors with one store, and
# the tiled kernel touches {{ sectors.store.tiled:.0f }}. So the walk down the hall is good now.
# /// otherwise
# The naive kernel touches {{ sectors.store.naive:.1f }} sectors with one store, and the tiled kernel touches
# {{ sectors.store.tiled:.1f }}.
# ///
#
# /// claim | conflicts.tiled > 25 and conflicts.padded < 1 and conflicts.swizzled < 1
# Then look at the tray. The tiled kernel wastes {{ conflicts.tiled:.0f }} turns on every load, the padded kernel
# wastes {{ conflicts.padded:.1f }}, and the swizzled kernel wastes {{ conflicts.swizzled:.1f }}. So the queue is
# gone.
# /// otherwise
# For every 32 numbers at the tray, there are {{ conflicts.tiled:.1f }} conflicts in the tiled kernel,
# {{ conflicts.padded:.1f }} in the padded kernel and {{ conflicts.swizzled:.1f }} in the swizzled kernel.
# ///
#
# /// define | transpose_of_copy = turn.vectorised.gb_per_s / max(copy.ours.gb_per_s, copy.torch.gb_per_s)
# unit: "1"
# what: best transpose over the best copy, 1 GiB each way, fp32
# ///
#
# /// claim | transpose_of_copy > 0.92
# And the vectorised kernel reaches **{{ transpose_of_copy:.1%}} of the copy yardstick**, or
# {{ turn.vectorised.of_peak:.1%}} of peak. A matrix can be transposed in about the time it takes to copy it.
# /// otherwise
# And the vectorised kernel reaches **{{ transpose_of_copy:.1%}} of the copy yardstick**, or
# {{ turn.vectorised.of_peak:.1%}} of peak. A copy of the matrix moves the same bytes, so the pantry alone does not
# explain the difference.
# ///
#
# /// lab | transpose
# ///
#
# ### What else the counters say {.beyond}
#
# /// claim | counted.turn.naive.gb < 1.5 * counted.turn.tiled.gb and turn.naive.us > 2 * turn.tiled.us
# Look once more at where the naive kernel loses its time. Counted at the pantry, the naive kernel moves
# {{ counted.turn.naive.gb:.2f }} GB, and the tiled kernel moves {{ counted.turn.tiled.gb:.2f }} GB. The two numbers do
# not differ much. It seems that the L2 puts the pieces of a box together before the box goes down to the pantry. Yet
# the naive kernel takes {{ turn.naive.us / turn.tiled.us:.1f }} times as long, and most likely the extra time is spent
# on the way to the L2: each store sends 32 parcels, where four would be enough. If you had counted only the bytes from
# HBM, you would not have seen this.
# /// otherwise
# Counted at the pantry, the naive kernel moves {{ counted.turn.naive.gb:.2f }} GB, and the tiled kernel moves
# {{ counted.turn.tiled.gb:.2f }} GB.
# ///
#
# /// claim | 0.85 < turn.swizzled.us / turn.padded.us < 1.25
# Whether you pad or swizzle makes hardly any difference to the time: {{ turn.padded.us:.0f }} µs and
# {{ turn.swizzled.us:.0f }} µs. Swizzling matters where you cannot spare the extra words, and where vectors, and the
# engines that carry whole tiles, need rows without gaps.
# /// otherwise
# The padded kernel takes {{ turn.padded.us:.0f }} µs, and the swizzled kernel takes {{ turn.swizzled.us:.0f }} µs.
# ///
#
# /// claim | turn.torch.us > 2 * turn.vectorised.us
# PyTorch's own way to write out a transpose, `x.t()` copied into fresh memory, takes
# {{ turn.torch.us / turn.vectorised.us:.2f }} times as long here. Do not read too much into this result: it is for one
# shape, one type and one release of PyTorch. PyTorch's routine copies tensors of every shape, type and stride; our
# kernel does one job. And most often you need only `x.t()`, which moves no data.
# /// otherwise
# PyTorch's own way to write out a transpose takes {{ turn.torch.us / turn.vectorised.us:.2f }} times as long as our
# vectorised kernel.
# ///
#
# /// exercise | Swap the indices
# In `k01_naive.cu`, let `threadIdx.x` count along m instead, so that the *writes* go to neighbours and the *reads*
# need 32 boxes. Both versions waste bytes on one of the two walks. Do the two versions take the same time? Guess
# first. Then, with a GPU, measure:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.measure transpose/k01_naive \
#     --workload dtype=float32,M=16384,N=16384
# ```
# /// answer
# On paper they do: either version needs 36 boxes for 32 numbers. In the hardware they may take different times. A
# scattered read may leave the rest of a box in a cache, where another warp of the block finds it. A scattered write
# leaves a box that is only partly new, and we suspect that the L2 completes the box with writes of several warps before
# it goes to the pantry. Write down both times and both counters, the sectors for loads and the sectors for stores. In
# our run the unchanged kernel, with scattered writes, took {{ turn.naive.us:.0f }} µs, with
# {{ sectors.store.naive:.0f }} sectors for each store. We have not run the version with scattered reads. Whichever
# version wins on your card, with the tray you do not need either of them.
# ///

# %% [markdown]
# ## How many must be walking?
#
# One trip to the pantry takes {{ hop.hbm:.0f }} ticks. If only one cook walked at a time, you would get 4 bytes every
# {{ hop.hbm:.0f }} ticks. But the hall can carry {{ reading.k4194304:.0f }} bytes in *every* tick. So send many cooks.
# How many exactly?
#
# The answer holds for every queue, in a shop or in a chip, and is called **Little's law** [^little1961]:
#
# `in flight = how long one takes × how many arrive in each tick`
#
# Suppose a trip to the pantry and back takes ten minutes, and you need one jar each minute. Then ten cooks must be
# walking at all times. With fewer cooks, the stove waits. With more, the cooks queue. Now take our own numbers from the
# measurements above.

# %%
trip = median(hops["hbm"])  # ticks
wanted = sheet.bandwidth_gb_per_s * 1e3 / clock_mhz  # bytes in each tick
under_way = trip * wanted

record(
    little={
        "wanted": quantity(wanted, "B/clk", of="hbm", sm_mhz=clock_mhz),
        "bytes": quantity(under_way, "B"),
        "of_sm": quantity(under_way / sms, "B"),
        "of_thread": quantity(under_way / sms / 2048, "B"),
    }
)

# %% [markdown]
# {{ hop.hbm:.0f }} ticks × {{ little.wanted:.0f }} bytes per tick = **{{ little.bytes / 1e6:.1f }} MB in flight**, at
# every moment, over the whole card. For one SM this makes {{ little.of_sm / 1024:.1f }} KiB, or
# {{ little.of_thread:.1f }} bytes for each of the 2048 threads that an SM can hold.
#
# This is the *minimum*, because we timed the trips in an empty hall. When the hall is full, a trip will most likely
# take longer, so more bytes must be in flight.
#
# You have two ways to get more bytes in flight, and their effects multiply.
#
# - **More threads.** The share of an SM's seats that are taken is called *occupancy*. The usual advice is to raise it
#   to 100 %.
# - **More from each thread.** Let a thread ask for its second, third and fourth vectors before it needs the first. When
#   instructions of one thread do not wait for each other, this is called *instruction-level parallelism*, ILP for
#   short. A load of 16 bytes instead of 4 helps in the same way: it fetches four times the bytes with one instruction.
#
# /// predict | One copy fills every seat, with one vector for each thread. A second fills one seat in eight, with eight vectors for each thread. How fast is the second?
# - [flight.v1.r8.of_peak / flight.v8.r1.of_peak < 1.4] About as fast
# - [1.4 <= flight.v1.r8.of_peak / flight.v8.r1.of_peak < 4] About half as fast
# - [flight.v1.r8.of_peak / flight.v8.r1.of_peak >= 4] About an eighth as fast
# /// reveal
# With one seat in eight and eight vectors, the copy reaches {{ flight.v8.r1.of_peak:.1%}} of peak. With every seat
# and one vector, it reaches {{ flight.v1.r8.of_peak:.1%}}. Both copies have 32 KiB in flight on each SM.
# ///
#
# Here is such a copy, with two knobs. V is the number of 16-byte vectors that a thread asks for before it waits. R is
# the number of blocks that may be on an SM at once. We keep other blocks off the SM by asking for shared memory that
# nobody uses.

# %%
from course_kernels.bytes_in_flight import k01_limited

VECTORS, RESIDENT = (1, 2, 4, 8), (1, 2, 4, 8)
# V = R = 1: 4 KiB on each SM come back after one trip, and go out again.
forecast = 2 * 4096 * sms * clock_mhz / trip / 1e3

record(
    flight={
        f"v{V}": {
            f"r{R}": measure(
                k01_limited,
                Workload.of("float32", N=GB, V=V, R=R),
                seconds=0.05,
            )
            for R in RESIDENT
        }
        for V in VECTORS
    },
    forecast=quantity(forecast, "GB/s", of="hbm"),
    seats={
        f"v{V}": {
            f"r{R}": quantity(k01_limited.occupancy(V, R), how="device")
            for R in RESIDENT
        }
        for V in VECTORS
    },
)

# %% [markdown]
# /// explorable | littles_law
# ask: "With 8 warps on an SM, one seat in eight, and one vector of 16 bytes in flight in each thread, the hall is far from full. Fill it, with as few warps as you can."
# alt: "Bytes per second against the KiB in flight on each SM, on a logarithmic scale. The law rises to the data sheet's bandwidth and bends. The measured points follow below it. At 4 KiB, 8 warps with 16 bytes from each thread, the law allows {{ forecast:.0f }} GB/s; we measured {{ flight.v1.r1.gb_per_s:.0f }}."
# knobs:
#   warps: {label: "Warps on an SM:", at: 8}
#   bytes: {label: Bytes in flight in each thread, at: 16}
# data:
#   rate: "flight.*.gb_per_s:,.0f"
#   seats: "seats.*:.2f"
#   trip: "hop.hbm:.0f"
#   clock: "card.clock:.0f"
#   sms: "card.sms:.0f"
#   sheet: "card.bandwidth:,.0f"
# says:
#   few: "{kib} KiB are in flight on each SM. The law allows a copy {allowed} GB/s, {share} % of the data sheet. Too few are walking."
#   enough: "{kib} KiB are in flight on each SM. By the law they would bring {would} GB/s, and the data sheet has {sheet} GB/s: enough are walking, if a trip takes no longer in a full hall."
#   measured: "Measured with just these: {rate} GB/s."
#   near: "The nearest that was measured has {near} KiB in flight: {rate} GB/s."
# row:
#   warps on an SM: "{warps}"
#   bytes in each thread: "{bytes}"
#   "KiB in flight": "{kib}"
#   "the law allows, GB/s": "{allowed}"
#   "measured, KiB in flight": "{near}"
#   "measured, GB/s": "{rate}"
# caption: The points are the sixteen entries of the table below.
# ///
#
# /// table
# columns: ["% of peak", "R = 1", "R = 2", "R = 4", "R = 8"]
# rows:
#   - ["V = 1", "{{ flight.v1.r1.of_peak:.1%}}", "{{ flight.v1.r2.of_peak:.1%}}", "{{ flight.v1.r4.of_peak:.1%}}", "{{ flight.v1.r8.of_peak:.1%}}"]
#   - ["V = 2", "{{ flight.v2.r1.of_peak:.1%}}", "{{ flight.v2.r2.of_peak:.1%}}", "{{ flight.v2.r4.of_peak:.1%}}", "{{ flight.v2.r8.of_peak:.1%}}"]
#   - ["V = 4", "{{ flight.v4.r1.of_peak:.1%}}", "{{ flight.v4.r2.of_peak:.1%}}", "{{ flight.v4.r4.of_peak:.1%}}", "{{ flight.v4.r8.of_peak:.1%}}"]
#   - ["V = 8", "{{ flight.v8.r1.of_peak:.1%}}", "{{ flight.v8.r2.of_peak:.1%}}", "{{ flight.v8.r4.of_peak:.1%}}", "{{ flight.v8.r8.of_peak:.1%}}"]
#   - ["*occupancy, V = 1*", "*{{ seats.v1.r1:.1%}}*", "*{{ seats.v1.r2:.1%}}*", "*{{ seats.v1.r4:.1%}}*", "*{{ seats.v1.r8:.1%}}*"]
#   - ["*occupancy, V = 8*", "*{{ seats.v8.r1:.1%}}*", "*{{ seats.v8.r2:.1%}}*", "*{{ seats.v8.r4:.1%}}*", "*{{ seats.v8.r8:.1%}}*"]
# caption: V × R × 4 KiB are in flight on an SM. Eight vectors need so many registers that eight blocks no longer fit.
# ///
#
# Start with the upper left corner of the table, and work out its bandwidth by hand. With V = R = 1, 256 threads with 16
# bytes each have 4 KiB in flight on an SM, and these bytes arrive after one trip. If {{ card.sms:.0f }} SMs read 4 KiB
# each in {{ hop.hbm:.0f }} ticks, and write as much, the copy reaches {{ forecast:.0f }} GB/s at best.
#
# /// claim | 0.4 * forecast < flight.v1.r1.gb_per_s < 1.05 * forecast
# Measured: {{ flight.v1.r1.gb_per_s:.0f }} GB/s. The law holds. The forecast is a bound: it assumes an empty hall, and
# no work between two trips. The {{ little.of_sm / 1024:.1f}} KiB above are such a bound too. A copy waits only for its
# reads, so half of these KiB should be enough. The table shows that a copy needs more. Most likely the trips take
# longer in a full hall; we timed them only in an empty hall.
# /// otherwise
# Measured: {{ flight.v1.r1.gb_per_s:.0f }} GB/s.
# ///
#
# /// claim | flight.v1.r1.us > 1.6 * flight.v8.r1.us and flight.v8.r1.us < 1.25 * flight.v1.r8.us
# Now comes the trap. Stay in the first column, where {{ seats.v1.r1:.1%}} of the seats are taken and only V changes:
# the copy goes from {{ flight.v1.r1.of_peak:.1%}} of peak to {{ flight.v8.r1.of_peak:.1%}}. With every seat taken and V =
# 1, the copy reaches {{ flight.v1.r8.of_peak:.1%}}. So with one seat in eight taken you get
# {{ flight.v1.r8.us / flight.v8.r1.us:.0%}} of that speed. **Occupancy was never the goal** [^volkov2010]. The goal is
# bytes in flight. Taking more seats is one way to get them. Fuller hands are the other way, and they cost no seats.
# /// otherwise
# With one block on an SM, V = 1 reaches {{ flight.v1.r1.of_peak:.1%}} of peak and V = 8 reaches
# {{ flight.v8.r1.of_peak:.1%}}; with every seat taken, V = 1 reaches {{ flight.v1.r8.of_peak:.1%}}. Bytes in flight are
# what matters [^volkov2010].
# ///
#
# So when a kernel uses so many registers that half of the seats stay empty, do not panic. Ask how many bytes are in
# flight, and whether that is enough. This is also why *vector loads* keep appearing on this page: they are the cheapest
# way to fill a hand.
#
# /// exercise | Three kernels | 3 minutes
# An SM of a certain card holds 2048 threads, and Little's law asks for 24 KiB in flight on each SM. Which of these have
# enough? (a) 2048 threads, one load of 4 bytes each. (b) 1024 threads, one load of 16 bytes. (c) 512 threads, four
# loads of 16 bytes that do not wait for each other. (d) The same four loads, but each takes its address from the one
# before.
# /// answer
# (a) 8 KiB: no, even at full occupancy. (b) 16 KiB: no. (c) 32 KiB: yes, although the SM has room for four times as
# many warps. (d) Only one load of each thread can be in flight: 8 KiB, no. This kernel is a pointer chase, and all
# the registers in the world will not help.
# ///
#
# ### Along the diagonals {.beyond}
#
# /// chart | lines
# title: "A copy with two knobs"
# x: R
# y: gb_per_s
# x_label: R, blocks of 256 threads on an SM (8 fill it)
# y_label: GB/s, read and written
# x_scale: log2
# series:
#   - {name: flight.v8.*, label: V = 8}
#   - {name: flight.v4.*, label: V = 4}
#   - {name: flight.v2.*, label: V = 2}
#   - {name: flight.v1.*, label: V = 1}
# references:
#   - {label: our copy of 1 GiB, value: copy.ours.gb_per_s}
# alt: "Bytes per second against the blocks on an SM, one line for each number of vectors. With one block, V = 1 gives {{ flight.v1.r1.gb_per_s:.0f }} GB/s and V = 8 gives {{ flight.v8.r1.gb_per_s:.0f }}. With eight blocks, V = 1 gives {{ flight.v1.r8.gb_per_s:.0f }} and V = 4 gives {{ flight.v4.r8.gb_per_s:.0f }}."
# caption: The copies move 1 GiB each way. To the right, more seats are taken; upwards from line to line, each hand holds more.
# ///
#
# /// claim | abs(flight.v2.r1.us / flight.v1.r2.us - 1) < 0.3 and abs(flight.v4.r1.us / flight.v1.r4.us - 1) < 0.3
# Now follow the diagonals of the table. Along each diagonal, V × R is the same, and so is the number of bytes in
# flight. With 8 KiB in flight, the copies reach {{ flight.v1.r2.of_peak:.1%}} and {{ flight.v2.r1.of_peak:.1%}}. With
# 16 KiB, they reach {{ flight.v1.r4.of_peak:.1%}}, {{ flight.v2.r2.of_peak:.1%}} and {{ flight.v4.r1.of_peak:.1%}}.
# More threads and fuller hands have nearly the same effect.
# /// otherwise
# On a diagonal of the table V × R is the same. With 8 KiB in flight, the copies reach {{ flight.v1.r2.of_peak:.1%}}
# and {{ flight.v2.r1.of_peak:.1%}}.
# ///
#
# /// claim | abs(flight.v8.r4.us / flight.v8.r1.us - 1) < 0.2 and abs(flight.v4.r8.us / flight.v4.r2.us - 1) < 0.2
# But there is a limit. When the bytes in flight grow from 32 KiB to four times as much, the copy goes from
# {{ flight.v8.r1.of_peak:.1%}} to {{ flight.v8.r4.of_peak:.1%}} with V = 8, and from {{ flight.v4.r2.of_peak:.1%}} to
# {{ flight.v4.r8.of_peak:.1%}} with V = 4. Once enough cooks are walking, additional cooks only queue. A difference of
# a few percent remains between the rows with enough bytes in flight, and we do not know why.
# /// otherwise
# When the bytes in flight grow from 32 KiB to four times as much, the copy goes from {{ flight.v8.r1.of_peak:.1%}} to
# {{ flight.v8.r4.of_peak:.1%}} with V = 8.
# ///

# %% [markdown]
# ## One number from many {.beyond}
#
# Add up a list of N numbers. The numbers only have to be read, so the *read* bandwidth is the ceiling. But there are
# thousands of cooks and only one sum. How do the cooks combine their numbers?
#
# **Everybody adds to one number.** An *atomic* addition reads, adds and writes in one step that nothing can
# interrupt. This way is correct and simple. But everybody has to stand in line for one address.
#
# **A tree on the tray.** 256 numbers become 128 sums of two, then 64 sums of four, and so on [^harris2007]. This takes
# eight steps, and all the additions of a step happen at once. After each step everybody waits. At the end the block
# adds its one sum to the total: one atomic operation for 256 numbers.
#
# **Shuffles.** The lanes of a warp can read each other's registers. Such a read is called a *shuffle*. Within a warp
# you need no tray and no barrier. For 32 lanes, a sum takes five steps [^luitjens2014].
#
# /// figure | docs/assets/figures/reduction_shuffle.svg
# alt: "Eight lanes hold 3, 1, 4, 1, 5, 9, 2 and 6. In the first step each of the first four adds the number of the lane four further on: 8, 10, 6, 7. In the second, two lanes further on: 14, 17. In the third, one further on: 31."
# caption: Eight lanes need three steps, a warp needs five.
# ///

# %%
lanes = [3, 1, 4, 1, 5, 9, 2, 6]
step = 4
while step:
    lanes = [lanes[i] + lanes[i + step] for i in range(step)]
    print(f"from {step} further:", *lanes)
    step //= 2

# %% [markdown]
# In CUDA each of these steps is one line. In this version both partners add, so every lane ends up with the sum:
#
# /// source | src/course_kernels/reduction/k03_shuffle.cu
# ///
#
# **Read more before you talk.** In the shuffle kernel a thread fetches 4 bytes and begins to shuffle at once, and every
# block still sends its sum to the same address. In `k04_vectorised` a few blocks stride through the whole list. A
# thread sums in its own registers, with four 16-byte vectors in flight. Each thread shuffles only at the end, and each
# block writes its sum to a place of its own. A second launch, with a single block, adds up the sums of the blocks.
#
# ### First: is it right?
#
# Take a long list of numbers between 0 and 1, and one fp32 sum. Something happens when the sum reaches
# 2<sup>24</sup>.

# %%
import numpy as np

total = np.float32(2**24)
print("2**24 + 0.7 in fp32:", total + np.float32(0.7), "and before:", total)

# %% [markdown] An fp32 number has 24 bits. From 16 777 216 on, neighbouring fp32 numbers are 2 apart, and anything less than 1 that you add is rounded away. A sum of numbers between 0 and 1 that has grown this far *stops growing*.
# Here is what our checker says about a list of 2<sup>26</sup> numbers:

# %%
from course_kernels.measure import refusal, text
from course_kernels.reduction import (
    k01_atomics,
    k02_tree,
    k03_shuffle,
    k04_vectorised,
    k05_triton,
)
from course_kernels.reduction import library as reduction_library

record(
    refused=text(refusal(k01_atomics, Workload.of("float32", N=2**26))),
)

# %% [markdown]
# > {{ refused }}
#
# The two numbers are *apart* by half of the sum: half of the sum is missing. Why, then, is the *scaled error* a
# quarter? The scaled error is the plain difference divided by the sum of two sizes: the size of the number itself and
# the size of the answer as a whole (its root mean square). In this way, numbers near zero are not judged too harshly.
# When the answer is a single number, the two sizes are the same, so the scaled error is a half divided by one plus one.
#
# No line of the code is wrong. The *order* of the additions is wrong: again and again, a small number is added to a
# huge one. In a tree, sums of about equal size are added to each other, and only the final sum of each tree is added
# to the total.
#
# ### Then: how fast?
#
# With 2<sup>24</sup> numbers, whose sum is about 2<sup>23</sup>, all kernels are right, and all may race.

# %%
SUMS = {
    "tree": k02_tree,
    "shuffle": k03_shuffle,
    "vectorised": k04_vectorised,
    "triton": k05_triton,
    "torch": reduction_library.torch_sum,
}
record(
    short=compare(
        {"atomics": k01_atomics, **SUMS},
        Workload.of("float32", N=2**24),
        seconds=0.1,
    ),
    sums=compare(SUMS, Workload.of("float32", N=GB), seconds=0.2),
)

# %% [markdown]
# /// predict | Shuffles save the tray, and seven of eight barriers. How much of the tree's time do they save, at 2²⁸ numbers?
# - [sums.shuffle.us / sums.tree.us < 0.5] Most of it
# - [0.5 <= sums.shuffle.us / sums.tree.us < 0.85] A third
# - [sums.shuffle.us / sums.tree.us >= 0.85] Next to nothing
# /// reveal
# The tree takes {{ sums.tree.us:.0f }} µs, and the shuffles take {{ sums.shuffle.us:.0f }} µs. To see why, ask what the
# two kernels have in common.
#
# /// table
# columns: [kernel, "2²⁴ numbers, µs", "error, millionths", "2²⁸ numbers, µs", "% of peak"]
# rows:
#   - [atomics, "{{ short.atomics.us:.0f }}", "{{ short.atomics.error * 1e6:.2f }}", refused, ""]
#   - [tree, "{{ short.tree.us:.0f }}", "{{ short.tree.error * 1e6:.2f }}", "{{ sums.tree.us:.0f }}", "{{ sums.tree.of_peak:.1%}}"]
#   - [shuffles, "{{ short.shuffle.us:.0f }}", "{{ short.shuffle.error * 1e6:.2f }}", "{{ sums.shuffle.us:.0f }}", "{{ sums.shuffle.of_peak:.1%}}"]
#   - ["**shuffles, 16-byte loads**", "{{ short.vectorised.us:.0f }}", "{{ short.vectorised.error * 1e6:.2f }}", "{{ sums.vectorised.us:.0f }}", "**{{ sums.vectorised.of_peak:.1%}}**"]
#   - [Triton, "{{ short.triton.us:.0f }}", "{{ short.triton.error * 1e6:.2f }}", "{{ sums.triton.us:.0f }}", "{{ sums.triton.of_peak:.1%}}"]
#   - [torch.sum, "{{ short.torch.us:.0f }}", "{{ short.torch.error * 1e6:.2f }}", "{{ sums.torch.us:.0f }}", "{{ sums.torch.of_peak:.1%}}"]
# caption: The error is that of the shorter sum, relative to that sum. Percent of peak is that of the longer sum.
# ///
#
# /// claim | 0.8 < sums.shuffle.us / sums.tree.us < 1.25 and 0.7 < (short.atomics.us / 16) / sums.tree.us < 1.2
# Why did the shuffles save nothing? Do the arithmetic. The atomics took {{ short.atomics.us / 1e3:.1f }} ms for
# 2<sup>24</sup> additions to one address: {{ short.atomics.us * 1e3 / 16777216:.2f }} ns each, one after another. In
# the tree and in the shuffle kernel each block sends one sum, so at 2<sup>28</sup> numbers 2<sup>20</sup> sums wait in
# that line, for {{ short.atomics.us / 16:.0f }} µs. The tree took {{ sums.tree.us:.0f }} µs. Whatever a block did
# before it joined the line, with a tray or without, it did while other blocks stood in line. *You sped up a part that
# nobody was waiting for.* You will make that mistake again, and only arithmetic like this will reveal it.
# /// otherwise
# The tree takes {{ sums.tree.us:.0f }} µs, and the shuffles take {{ sums.shuffle.us:.0f }} µs. In both kernels each
# block sends one sum to the same address. The atomics at 2<sup>24</sup> numbers sent 16 sums for each of these:
# judging by their time, this line alone takes {{ short.atomics.us / 16:.0f }} µs.
# ///
# ///
#
# /// claim | sums.vectorised.us < 0.2 * sums.shuffle.us
# Now remove the line, and fill the hands: use a few blocks, each with its own place for its sum, and four vectors
# in flight in each thread. That kernel takes {{ sums.vectorised.us:.0f }} µs; the kernel with nothing but shuffles
# took {{ sums.shuffle.us:.0f }} µs. Now everybody waits for the hall, as it should be.
# /// otherwise
# With a few blocks, four vectors in flight in each thread, and no line, the sum takes {{ sums.vectorised.us:.0f }}
# µs.
# ///
#
# The errors depend on the order, too. At 2<sup>24</sup> numbers the result of the atomics is off by
# {{ short.atomics.error:.0e }}, and that of the tree by {{ short.tree.error:.0e }}. Do not rely on the exact figures:
# the order of arrival differs in every run.
#
# /// define | reduction_of_read = sums.vectorised.gb_per_s / max(sums.torch.gb_per_s, far.gb_per_s)
# unit: "1"
# what: best reduction of 1 GiB over the best plain read, fp32
# ///
#
# /// define | reduction_over_torch = sums.torch.us / sums.vectorised.us
# unit: ×
# what: shuffle reduction with 16-byte loads over torch.sum, 2²⁸ fp32 numbers, speed
# ///
#
# /// claim | reduction_of_read > 0.85
# What would a kernel reach if it read 1 GiB and did nothing with it? As the read ceiling, take the better of two kernels:
# the microbenchmark above and `torch.sum`. Our reduction reaches **{{ reduction_of_read:.1%}}** of that read ceiling
# here. If you measure again, we expect you to find more than 85 %. The additions cost little, if they cost anything.
# /// otherwise
# What would a kernel reach if it read 1 GiB and did nothing with it? As the read ceiling, take the better of two kernels:
# the microbenchmark above and `torch.sum`. Our reduction reaches **{{ reduction_of_read:.1%}}** of that read ceiling
# here. It reads each byte only once, so the pantry alone does not explain what is missing.
# ///
#
# /// claim | reduction_over_torch > 0.85
# Our reduction runs at {{ reduction_over_torch:.2f }} times the speed of `torch.sum`. The ratio tells you no more than
# that: both kernels wait for the same hall.
# /// otherwise
# Our reduction runs at {{ reduction_over_torch:.2f }} times the speed of `torch.sum`. Both kernels read the same bytes
# once, so the pantry alone does not explain the difference.
# ///
#
# /// exercise | A block of 1024
# A block of 1024 threads sums with shuffles. How many shuffle steps, how many barriers and how many words on the tray
# does the sum take?
# /// answer
# Every warp takes five steps, and the 32 warps leave 32 sums. These sums pass through the tray, which takes 32 words
# and one barrier. Then one warp takes the sums and shuffles five more times. Ten steps and one barrier are enough,
# while the tree on the tray has ten steps and ten barriers.
# ///
#
# /// lab | reduction
# ///

# %% [markdown]
# ## Do it while you hold it {.beyond}
#
# So far we have carried things efficiently. But the best trip is the one that you do not make.
#
# After its first multiply, a transformer's feed-forward layer adds a bias and takes the GELU. In PyTorch this takes two
# lines of code and two kernels. `s = x + b` reads x and writes s. `gelu(s)` reads s and writes y. So s is carried to
# the pantry only to be fetched back at once.
#
# When the two are *fused*, a single kernel reads x, adds b, takes the GELU and writes y. The sum never leaves the hand.
#
# /// source | src/course_kernels/bias_gelu/k01_fused.cu#fused
# ///
#
# By hand, for a layer of {{ fuse_by_hand.rows:.0f }} × {{ fuse_by_hand.columns:.0f }} in bf16:

# %%
M, N = layer.M, layer.N
one_trip = 2 * M * N  # bytes: two for each number
record(
    fuse_by_hand={
        "rows": quantity(M, how="given"),
        "columns": quantity(N, how="given"),
        # x in, s out; s in, y out. Fused: x in, y out. The bias is 2 * N.
        "two_kernels": quantity(4 * one_trip + 2 * N, "B"),
        "fused": quantity(2 * one_trip + 2 * N, "B"),
    },
    fuse=compare(BIAS_GELUS, layer, seconds=0.2),
)

# %% [markdown]
# /// predict | The fused kernel moves half the bytes. What happens to the time?
# - [fuse.cuda.us / fuse.eager.us >= 0.53] More than half remains
# - [0.45 <= fuse.cuda.us / fuse.eager.us < 0.53] Half remains
# - [fuse.cuda.us / fuse.eager.us < 0.45] Less than half remains
# /// reveal
# The fused kernel takes {{ fuse.cuda.us / fuse.eager.us:.2f }} of the time: {{ fuse.cuda.us:.0f }} µs, where the two
# kernels take {{ fuse.eager.us:.0f }} µs.
#
# /// table
# columns: [bias + GELU, "GB, by hand", "GB, counted", "time, µs", "% of peak"]
# rows:
#   - ["eager, two kernels", "{{ fuse_by_hand.two_kernels / 1e9:.2f }}", "{{ counted.fuse.eager.gb:.2f }}", "{{ fuse.eager.us:.0f }}", "{{ fuse.eager.of_peak:.1%}}"]
#   - ["torch.compile", "{{ fuse_by_hand.fused / 1e9:.2f }}", "{{ counted.fuse.compiled.gb:.2f }}", "{{ fuse.compiled.us:.0f }}", "{{ fuse.compiled.of_peak:.1%}}"]
#   - ["Triton, by hand", "{{ fuse_by_hand.fused / 1e9:.2f }}", "{{ counted.fuse.triton.gb:.2f }}", "{{ fuse.triton.us:.0f }}", "{{ fuse.triton.of_peak:.1%}}"]
#   - ["**CUDA C++**", "{{ fuse_by_hand.fused / 1e9:.2f }}", "{{ counted.fuse.cuda.gb:.2f }}", "{{ fuse.cuda.us:.0f }}", "**{{ fuse.cuda.of_peak:.1%}}**"]
# caption: For all four, percent of peak counts only what the problem needs, x once and y once.
# ///
#
# /// claim | counted.fuse.eager.gb > 1.6 * counted.fuse.cuda.gb and fuse.eager.us > 2.8 * fuse.cuda.us
# The counters confirm what you worked out by hand: {{ counted.fuse.eager.gb:.2f }} GB against
# {{ counted.fuse.cuda.gb:.2f }} GB, a factor of {{ counted.fuse.eager.gb / counted.fuse.cuda.gb:.1f }}. But the times
# differ by a factor of {{ fuse.eager.us / fuse.cuda.us:.1f }}. So bytes explain only part of the gain, and you should
# ask what explains the rest.
# /// otherwise
# The counters show {{ counted.fuse.eager.gb:.2f }} GB for two kernels against {{ counted.fuse.cuda.gb:.2f }} GB for
# one, and the two kernels take {{ fuse.eager.us / fuse.cuda.us:.2f }} times as long.
# ///
# ///
#
# /// claim | fuse.compiled.us > 1.25 * fuse.cuda.us and fuse.triton.us > 1.25 * fuse.cuda.us and counted.fuse.compiled.gb < 1.3 * counted.fuse.cuda.gb and counted.fuse.triton.gb < 1.3 * counted.fuse.cuda.gb and fuse.cuda.error < 1.2 * fuse.triton.error
# Look at two other kernels. The counters show that the kernel of `torch.compile` and our Triton kernel move about as
# many bytes as the CUDA kernel. And yet these two take {{ fuse.compiled.us / fuse.cuda.us:.2f }} and
# {{ fuse.triton.us / fuse.cuda.us:.2f }} times as long. So they must be waiting for something other than bytes, most
# likely for arithmetic. The Triton kernel calls the exact `erf` from the compiler's library, which takes dozens of
# instructions for each number of two bytes. Our CUDA kernel has a shorter formula:
#
# /// source | src/course_kernels/bias_gelu/k01_fused.cu#gelu
# ///
#
# The worst error of the CUDA kernel is {{ fuse.cuda.error:.1e }}, and that of the Triton kernel is
# {{ fuse.triton.error:.1e }}: rounding to bf16 hides every other error. In fp32 you would have to compare the errors
# again. *A kernel is bound by its bytes only if everything else takes less time than moving them.*
# /// otherwise
# `torch.compile` takes {{ fuse.compiled.us / fuse.cuda.us:.2f }} times as long as our CUDA kernel, and Triton takes
# {{ fuse.triton.us / fuse.cuda.us:.2f }} times as long.
# ///
#
# /// claim | fuse.cuda.error < 0.82 * fuse.eager.error
# The fused answer is also *more* accurate. The two kernels round to bf16 twice: once when they store the sum, and once
# when they store the answer. In the fused kernel the sum stays in fp32. The worst error falls from
# {{ fuse.eager.error:.1e }} to {{ fuse.cuda.error:.1e }}.
# /// otherwise
# The worst error is {{ fuse.eager.error:.1e }} with two kernels and {{ fuse.cuda.error:.1e }} with the fused kernel.
# ///
#
# /// claim | fuse.eager.us > 1.9 * fuse.compiled.us
# Should you write such kernels by hand, then? First let the compiler try. `torch.compile` saw the two lines, made one
# kernel of them, and is {{ fuse.eager.us / fuse.compiled.us:.1f }} times as fast as eager PyTorch, at the price of one
# word of code. By hand you gain another factor of {{ fuse.compiled.us / fuse.cuda.us:.1f }}, for an afternoon's work.
# /// otherwise
# `torch.compile` saw the two lines and made one kernel of them. Eager PyTorch takes
# {{ fuse.eager.us / fuse.compiled.us:.2f }} times as long as the compiled kernel.
# ///
#
# /// exercise | Three in a row
# A layer adds a bias, takes the GELU and multiplies by a mask, all elementwise, in bf16, on tensors of P bytes each
# (the mask too). How many bytes do three separate operators move, and how many does one fused kernel move? Leave the
# bias out of the count.
# /// answer
# Three operators move 2P + 2P + 3P = 7P, because the multiplication reads two tensors and writes one. The fused kernel
# moves x, the mask and y, which is 3P. The rule is to count the tensors that *enter* and *leave* the whole group.
# Everything in between is free.
# ///

# %% [markdown]
# ## Before you leave the cafeteria
#
# **You can now** look at a kernel and ask five questions, in this order.
#
# 1. *Must the number be carried at all?* If not, fuse.
# 2. *Is it carried only once?* Put anything that is used again on the tray.
# 3. *Do neighbouring lanes ask for neighbouring numbers?* Count the boxes.
# 4. *Is anybody queueing at the tray?* Count the windows.
# 5. *Are enough cooks walking?* Latency × bandwidth.
#
# Answer all five questions with a pencil. Then let the counters check your answers.
#
# **Where this leads.** A transpose uses every number once. A matrix multiply uses each number thousands of times; for
# such a job the tray is no longer a detour but the main road. [The next lecture](l4_the_gemm_ladder.py) shows how. You
# can see the same five questions at work in [FlashAttention from scratch](../workshops/w1_flash_attention.py), which
# keeps the largest matrix of a model out of the hall. [How we measure](../how_we_measure.py) explains the clock and the
# counters on this page, and [the ledger](../numbers.md) lists each number with its spread.
