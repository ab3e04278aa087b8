# ---
# id: w2
# title: "Hopper: logistics against the library"
# description: Our own matrix multiply against cuBLAS, rung by rung, with the machine's own evidence of what each rung no longer waits for.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Hopper: logistics against the library
#
# By the end of this page you can
#
# - say what the copy engine, `wgmma` and roles do, in three words each, and find all three in machine code;
# - read the twenty lines that matter in a kernel of several hundred, and say for every wait who waits, for what, and
#   who ends it;
# - draw two timelines from time stamps that a kernel wrote itself, and say where a block's time goes;
# - tell a burst from a long run, and say why the power limit decides some races but not others.
#
# /// claim | 0.93 < best_over_cublas.n2048.burst < 1.1 and 0.93 < best_over_cublas.n4096.burst < 1.1 and 0.93 < best_over_cublas.n8192.burst < 1.1
# **The headline: level with NVIDIA's library** in bf16. Kernels of ours that you can read to the end reach {{ best_over_cublas.n2048.burst:.2f}}, {{ best_over_cublas.n4096.burst:.2f}} and {{ best_over_cublas.n8192.burst:.2f}} times its
# speed for squares of 2048, 4096 and 8192. At 4096 that is {{ burst.nn.n4096.tuned / sheet.bf16:.0%}} of the data sheet's peak.
# /// otherwise
# **The headline: {{ best_over_cublas.n4096.burst:.2f}} of the speed of NVIDIA's library**, at 4096 × 4096 × 4096 in bf16, by a kernel of ours that you can
# read to the end. That is {{ burst.nn.n4096.tuned / sheet.bf16:.0%}} of the data sheet's peak.
# ///
#
# Nobody writes a kernel today. You read four kernels, each the first to use a new idea. The other kernels are folded under
# [evenings](#evenings), one idea each, for a night with the card.
#
# If you are an hour short, read [roles](#roles), [the sheet](#the-sheet) and [the scoreboard](#the-scoreboard).

# %% [markdown]
# ## Your rivals {#whom-you-race}
#
# You left [the lecture on tensor cores](../lectures/l6_tensor_cores.py#the-climb) with a `wgmma` kernel, k04, that you
# could explain but that lost the race. Every team measures itself against the library that NVIDIA ships, **cuBLAS**.
# Two people climbed towards it in public, rung by rung, and wrote down every step.
#
# Pranjal Shankhdhar got past it: 764 TFLOP/s where cuBLAS had 716, on an H100, in bf16, at 4096 [^shankhdhar2024].
# Hamza Elshafie's log calls itself a work in progress, and is honest about how far it got: 463.9 TFLOP/s where cuBLAS
# had 739.8 [^elshafie2026]. Both sides use the same formula, the same type, and the same kind of instruction in the
# middle. So what is left to be better at? Write one of three words on a slip before you read on: *maths*, *tiles* or
# *waiting*.
#
# ### Two clocks
#
# A card that multiplies at full speed draws all the power it is allowed to. Then the clock drops. After a minute you are, in
# effect, measuring a different card. So this page uses two ways of timing besides the one used on all other pages, and always
# says which one it means.
#
# - A **burst**: the card rests a moment, then eight launches follow one another, all queued before the first begins; the time
#   of the first is dropped. The clock is still high. A launch may use what L2 still holds.
# - **Sustained**: one kernel runs alone for two seconds, on inputs that rotate, and the last second is timed. The order
#   is ours, theirs, theirs, ours, so that any drift affects both.
#
# And what is *the library*? cuBLAS guesses which kernel is best. Its other interface, **cuBLASLt**, names its eight best guesses;
# we time all of them and take the fastest. The better of cuBLAS and cuBLASLt is the one to beat. Inputs are random normal
# numbers: with zeros
# no bit changes on the wires, and the card stays cool.
#
# /// predict | In a burst at 4096: what share of the better library's speed does k04, the kernel you know, reach?
# - [start_of_library < 0.6] About a half
# - [0.6 <= start_of_library < 0.8] About two thirds
# - [start_of_library >= 0.8] Nearly all
# /// reveal
# {{ start_of_library:.0%}}. The instruction in the middle of k04 is of the same kind as the library's, and no narrower. On an
# {{ l6.gpu.name }}
# [the counters of the lecture](../lectures/l6_tensor_cores.py#when-the-tensor-cores-are-idle) show {{ l6.tensor.cublas.instructions / l6.tensor.wgmma.instructions:.0f}} matrix instructions by the library for each one by our kernel,
# for the same product: the library's instructions are 64 × 128 × 16, and ours are 64 × 256 × 16. So k04 does not lack the
# instruction. What it does lack is the subject of this page.
# ///
#
# /// define | start_of_library = burst.nn.n4096.wgmma / max(burst.nn.n4096.cublas, burst.nn.n4096.cublaslt)
# unit: "1"
# what: k04_wgmma over the better of cuBLAS and cuBLASLt, 4096, bf16, in a burst
# ///

# %% tags=["fold"]
import torch
from course_kernels.gemm import (
    heuristics,
    k04_wgmma,
    k05_triton,
    k06_tma,
    k07_wide,
    k08_roles,
    k09_registers,
    k10_persistent,
    k11_cluster,
    k12_stored,
    k13_by_size,
    k14_tuned,
    library,
)
from course_kernels.gemm.problem import PROBLEM
from course_kernels.measure import quantity, record, text
from course_kernels.measure.bursts import Race
from course_kernels.measure.machine import machine_for
from course_kernels.problem import Workload

card = torch.cuda.get_device_name()
data_sheet = machine_for(card)
if data_sheet is None:
    raise RuntimeError(
        f"{card}: no data sheet in course_kernels/measure/machine.py"
    )
record(
    sheet={
        "bf16": quantity(data_sheet.peak_tflops["bf16"], "TFLOP/s", "given"),
        "mhz": quantity(1830, "MHz", "given"),  # what that peak is drawn for
    }
)

RUNGS = {
    "wgmma": k04_wgmma,
    "tma": k06_tma,
    "wide": k07_wide,
    "roles": k08_roles,
    "registers": k09_registers,
    "persistent": k10_persistent,
    "cluster": k11_cluster,
    "stored": k12_stored,
    "by_size": k13_by_size,
    "tuned": k14_tuned,
}
SIZES = (2048, 4096, 8192)
GUESSES = 8  # of cuBLASLt's heuristics


def square(N):
    """M = N = K."""
    return Workload.of("bfloat16", M=N, N=N, K=N)


def as_it_is(a, b):
    """NN: B is stored as (K, N)."""
    return a, b


def turned(a, b):
    """NT: the same B, stored as (N, K)."""
    return a, b.t().contiguous().t()


LAYOUTS = {"nn": as_it_is, "nt": turned}


def guess(number):
    """One of cuBLASLt's guesses; it is bound to its inputs before it is timed."""

    def bound(a, b):
        ways = heuristics.ways(a, b, GUESSES)
        if number >= len(ways):
            raise ValueError(f"cuBLASLt: {len(ways)} guesses")
        return ways[number]

    return bound


def best_guess(N, lay):
    """The fastest of cuBLASLt's guesses that are right, and how many there are."""
    field = {f"guess{number}": guess(number) for number in range(GUESSES)}
    race = Race(field, PROBLEM, square(N), lay=lay, bind=field, optional=field)
    found = race.burst(rounds=2, rest_s=0.05)
    return field[max(found, key=lambda name: found[name].quantiles["0.5"])], len(
        found
    )


def race_of(N, layout):
    """Everybody who runs at this size in this layout, checked."""
    lay = LAYOUTS[layout]
    cublaslt, count = best_guess(N, lay)
    field = {"tuned": k14_tuned.gemm}
    if layout == "nn":
        field["triton"] = k05_triton.gemm
        if N == 4096:
            field = {name: rung.gemm for name, rung in RUNGS.items()}
            field |= {"triton": k05_triton.gemm}
    field |= {"cublas": library.cublas, "cublaslt": cublaslt}
    guesses[layout][f"n{N}"] = quantity(count, how="counted")
    return Race(field, PROBLEM, square(N), lay=lay, bind=("cublaslt",))


ones = torch.ones(64, 64, dtype=torch.bfloat16, device="cuda")
library.cublas(ones, ones)  # from here on torch has loaded what makes the guesses
guesses = {layout: {} for layout in LAYOUTS}
races = {layout: {f"n{N}": race_of(N, layout) for N in SIZES} for layout in LAYOUTS}
races["nn"]["n4096"].burst(
    rounds=1, rest_s=0.05
)  # a rung's first launches are slow, and count for nobody
record(
    burst={
        layout: {size: race.burst() for size, race in of.items()}
        for layout, of in races.items()
    },
    guesses=guesses,
)
record(
    host={
        size: {
            name: quantity(race.host_us[name], "µs", "timed")
            for name in ("tuned", "cublas")
        }
        for size, race in races["nn"].items()
    }
)

# %% [markdown]
# ## One order for a whole tile
#
# In k04 all 256 threads carry data. A pair of tiles is (128 + 256) × 64 numbers of two bytes, 48 KiB, and a thread moves 16 bytes
# at a time.
#
# /// exercise | Count the pieces | 2 minutes
# How many pieces of 16 bytes make up one pair of tiles? How many is that for each of the 256 threads? And how many addresses have
# to be worked out?
# /// answer
# 49 152 ÷ 16 = 3072 pieces, 12 for each thread. Each piece has two addresses, a source and a destination, and raises a question besides: is it still inside the matrix?
# ///
#
# Hopper has a unit in each SM that copies whole tiles, the *tensor memory accelerator*, **TMA**. We call it the **copy engine**
# (in the kitchen: the delivery crew). Be careful with the name when you look it up: NVIDIA's manuals also speak of asynchronous
# engines, units of the whole card that copy memory while a kernel runs [^nvidia-device-properties]. This page never means those.
#
# The copy engine takes an order from *one* thread for a whole tile: which tensor, starting at which position, to which address in
# shared memory. It *swizzles* on the way: it puts the pieces of each row into [different windows](../lectures/l3_memory.py#thirty-two-windows)
# of shared memory, so that nobody queues when the tile is read. It writes zeros past the edge. The thread that asked goes on at
# once.
#
# So how does anybody know when the tile is there? The thread that asked does not. Shared memory holds an **mbarrier** (the ticket
# on the tray), a number that counts who has arrived and how many bytes have come. A thread that needs the tile waits there.
#
# /// source | src/course_kernels/gemm/k06_tma.cu#ask
# ///
#
# And `load_tile` itself? It is one PTX instruction. For a tile of a matrix the instruction is:
#
# ```text
# cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
#     [to], [map, {column, row}], [barrier];
# ```
#
# Read the line from its end: turn this `barrier` when the bytes have arrived; take the tensor of this `map`, from this
# column and row on; put the tile at `to`. A **map**, or *descriptor*, is a small record that the host makes beforehand:
# where the tensor begins, how long its rows are, how large a tile is, and which swizzle to use.
#
# In k06 a pair of tiles is (128 + 128) × 64 numbers, 2048 pieces. Those pieces have become three orders from one thread of the
# block: one
# for A, and one for each **panel** of B. A panel is a strip of the tile, 64 numbers or 128 bytes wide: the widest that the
# swizzle allows.
#
# /// predict | Three orders in place of 2048 pieces, and a tile of half the width: how does k06 do against k04 in the race?
# - [burst.nn.n4096.tma < 0.95 * burst.nn.n4096.wgmma] Slower
# - [0.95 * burst.nn.n4096.wgmma <= burst.nn.n4096.tma < 1.3 * burst.nn.n4096.wgmma] As fast, or ahead by less than a third
# - [burst.nn.n4096.tma >= 1.3 * burst.nn.n4096.wgmma] Ahead by a third or more
# /// reveal
# {{ burst.nn.n4096.tma / burst.nn.n4096.wgmma:.2f}} times its speed: {{ burst.nn.n4096.tma:.0f}} TFLOP/s.
# ///
#
# To be honest, k06 is an odd rung. Its tile is 128 × 128, so that two blocks share an SM: while one waits, the other
# multiplies. That also makes its orders to the tensor cores half as wide as k04's. The next rung,
# [k07](#evenings), goes back to 128 × 256, with one block alone on an SM.
#
# ### 32 bytes deep
#
# You know `wgmma`: four warps, a *warpgroup*, together give one order: 64 rows of A times up to 256 columns of B. How deep is it? Always 32 *bytes* [^ptx-isa].
#
# /// exercise | Depth and sums | 3 minutes
# How many numbers deep is one order in TF32, in bf16, in FP8? The tile is 64 deep in bf16: how many orders is that? And how many
# registers of each thread hold the sums of 64 × 256?
# /// answer
# 8, 16 and 32. Four orders: you will find all four on the sheet. 64 × 256 ÷ 128 threads = 128 registers each, half of all that a
# thread may have.
# ///

# %% [markdown]
# ## Roles
#
# k07 has fast fetching and fast computing. But in every step of its loop all threads meet, because a tile may be overwritten
# only when every thread is done with it.
#
# /// diff | src/course_kernels/gemm/k06_tma.cu | src/course_kernels/gemm/k07_wide.cu
# context: 1
# headers: false
# ///
#
# (Each function in those headers wraps one PTX instruction. You need none of them to go on.)
#
# But the two warpgroups have nothing to tell each other. One multiplies the upper 64 rows, the other the lower 64. Each of them
# only needs to tell the one that fetches: *I am done with this tile*. So give the fetching to somebody who does nothing else.
#
# That is **warp specialisation**; we say *roles*. A **producer**, one thread of a separate warpgroup, asks for tiles.
# Two **consumers**, a warpgroup each, multiply. Between them are four **places** for a pair of tiles, in a ring, and
# each place has two mbarriers. *full* says that the tiles are there. *empty* says that nobody is reading the tiles any more.
# (In the code a place is a *stage*, and there are `STAGES` of them. In the room we call a place a *buffer*, in the kitchen a
# *tray*. All four words mean the same thing.)
#
# /// figure | docs/assets/figures/hopper_kitchen.svg
# alt: >-
#   A kitchen in which the work is split. The delivery crew, TMA, only fetches: whole tiles from the pantry to the tray, which is
#   shared memory. Two warpgroups of cooks only cook, with WGMMA. Tickets, the mbarriers, say "full" to the cooks and "free" to
#   the crew. Below, two timelines: cooks who also fetch wait for every tile; with a crew the fetching is hidden under the
#   cooking.
# caption: Nobody looks at anybody. Each looks at a ticket.
# ///
#
# ### A bit that flips
#
# A barrier is used again in every round. *Full* alone would not be enough: full of which tile? So each mbarrier keeps one bit,
# its **phase** (NVIDIA's manual calls the bit its *parity*). It starts at 0, and flips each time the mbarrier turns. A thread
# that waits names a bit, and goes on as soon as the mbarrier's bit is different. Play it through with four places and six
# tiles.

# %% tags=["fold"]
PLACES, TILES = 4, 6


class Ticket:
    """An mbarrier: it counts who arrives, and its bit flips when all have come."""

    def __init__(self, wanted):
        self.wanted, self.here, self.bit = wanted, 0, 0

    def arrive(self):
        """One has come."""
        self.here += 1
        if self.here == self.wanted:
            self.here, self.bit = 0, 1 - self.bit

    def lets_past(self, named):
        """Whether a thread that names this bit may go on."""
        return self.bit != named


def ring(producer_names, consumer_names, ticks=40):
    """What is multiplied, in order; each is asked in turn, and goes on where it may."""
    full = [Ticket(1) for _ in range(PLACES)]
    empty = [Ticket(1) for _ in range(PLACES)]
    held, asked, done, products = [None] * PLACES, 0, 0, []
    for _ in range(ticks):
        place = asked % PLACES
        if asked < TILES and empty[place].lets_past(producer_names(asked)):
            held[place] = asked
            full[place].arrive()
            asked += 1
        place = done % PLACES
        if done < TILES and full[place].lets_past(consumer_names(done)):
            products.append(held[place])
            empty[place].arrive()
            done += 1
    return products


def turn(tile):
    """The round, modulo 2."""
    return tile // PLACES % 2


right = ring(lambda tile: 1 - turn(tile), turn)
never = ring(turn, turn)
print("each names the right bit:       ", right)
print("the producer forgets to flip it:", never, "and everybody waits for ever")
record(
    turns={
        "right": quantity(len(right)),
        "never": quantity(len(never)),
    }
)

# %% [markdown]
# Read the producer's line in the kernel: it names the *other* bit, `^ 1`. A fresh mbarrier is at 0, so in the first round the
# producer does not wait: the places are free. If you forget that, the producer waits for a consumer who waits for the producer.
# There is no error message. The card just hangs.
#
# /// exercise | The other slip
# The consumer always names bit 0. What happens at tile 4, if the tile is not there yet, and if it is?
# /// answer
# Place 0 has turned once, so its bit is 1. If tile 4 has not come, the bit is still 1: the consumer is let through, and
# multiplies tile 0 again. The sum is wrong, without any warning. If tile 4 has come, the bit is 0 again, and the consumer
# waits for a flip that in turn waits for the consumer.
# ///
#
# And here are both roles in full.
#
# /// source | src/course_kernels/gemm/k08_roles.cu#roles
# lines: true
# ///
#
# Note what is *not* there between the first line and the last: a barrier for everybody. And note the delay of one step: a
# consumer gives a place back only once it has asked for the *next* step's products. So the tensor cores never run dry in between.
#
# /// predict | Same tile, same instruction, same four places. What does k08 gain over k07 from roles alone?
# - [burst.nn.n4096.roles < 1.12 * burst.nn.n4096.wide] A tenth at most, or nothing
# - [1.12 * burst.nn.n4096.wide <= burst.nn.n4096.roles < 1.3 * burst.nn.n4096.wide] Between a tenth and a third
# - [burst.nn.n4096.roles >= 1.3 * burst.nn.n4096.wide] More than that
# /// reveal
# k07 reaches {{ burst.nn.n4096.wide:.0f}} TFLOP/s, k08 {{ burst.nn.n4096.roles:.0f}}. Roles by themselves gain nothing here. Before
# you are disappointed, look at where the time goes.
# ///

# %% [markdown]
# ## Two timelines
#
# Strips of paper tell a story. Now ask the machine. Both kernels have a second version with *stamps*: at three or four points of
# a step the first thread of each warpgroup reads the clock of its SM and writes the tick down. Nothing else differs. A test
# removes the stamps, line by line, and what remains is the timed kernel.
#
# /// diff | src/course_kernels/gemm/k08_roles.cu | src/course_kernels/gemm/stamped_roles.cu
# context: 0
# open: false
# headers: false
# ///
#
# Before you look, draw. First draw one step of k07 with its two warpgroups: who waits where? Then draw one step of k08 with a
# producer and two consumers.
#
# How many cycles *should* a step take? By hand: the tensor cores of an SM do 4096 operations per cycle, [according to
# the data sheet](../lectures/l6_tensor_cores.py#what-it-eats). A multiply-add is two operations, and a step has 128 ×
# 256 × 64 multiply-adds: {{ by_hand.cycles:.0f}} cycles. If a step takes longer, somebody waited.
#
# /// predict | And by the clock of the SM: how long is a step of k07, where all threads meet in every step?
# - [step.wide < 1.03 * by_hand.cycles] As long as the products take, or nearly
# - [1.03 * by_hand.cycles <= step.wide < 1.3 * by_hand.cycles] Longer, by less than a third
# - [step.wide >= 1.3 * by_hand.cycles] Longer by more than that
# /// reveal
# {{ step.wide:.0f}} cycles. With roles, in k08, it is {{ step.roles:.0f}}.
#
# /// chart | lanes
# title: Five steps of a block, without roles and with them
# x_label: cycles of the SM
# groups:
#   - {label: "k07: no roles", trace: lanes.wide, lanes: ["warpgroup 0, multiplies and asks", "warpgroup 1, multiplies"]}
#   - {label: "k08: roles", trace: lanes.roles, lanes: ["warpgroup 0, the producer", "warpgroup 1, a consumer", "warpgroup 2, a consumer"]}
# kinds:
#   - {label: "waits at an mbarrier", look: empty}
#   - {label: "multiplies, or waits for its own products", look: full}
#   - {label: "waits for everybody", look: hatched}
#   - {label: "asks for tiles", look: striped}
#   - {label: "stores C", look: dotted}
# alt: "Lanes of time. Above, k07: both warpgroups multiply, wait at the barrier for everybody, and the first asks for tiles before it multiplies again; a step lasts {{ step.wide:.0f}} cycles. Below, k08: the producer waits and asks in a lane of its own, and two consumers multiply one step after the other; a step lasts {{ step.roles:.0f}} cycles."
# caption: One block halfway along k, on one SM. Stamped by the kernels themselves.
# ///
#
# /// table
# columns: ["", "k07, no roles", "k08, roles"]
# rows:
#   - ["cycles of a step", "{{ step.wide:.0f}}", "{{ step.roles:.0f}}"]
#   - ["of which looking at the tile's ticket", "{{ shares.wide.for_tiles:.1%}}", "{{ shares.roles.for_tiles:.1%}}"]
#   - ["what the stamps cost: time with them ÷ time without", "{{ slow_down.wide:.3f}}", "{{ slow_down.roles:.3f}}"]
# caption: The ticks are counted by the SM's clock, so the power limit plays no part. The first eight steps of each block are left out.
# ///
#
# Nobody waits for a tile here. The second warpgroup finds the tile already there, and still spends as long on the check as the
# first does. That is the cost of looking, with a stamp on either side.
#
# Now walk through it. At every event, say who will end the wait before you read the answer.
#
# /// explorable | timelines
# ask: "Stop where k07's warpgroup 0 asks for tiles. Whose products run in the meantime? And who asks for tiles in k08?"
# alt: "Lanes of time, two of k07 and three of k08, with a cursor through all of them at cycle 1,000. Whatever is running under the cursor is framed."
# knobs:
#   of: {label: kernel, at: both, choices: {both: both, wide: k07, roles: k08}}
#   tick: {label: cycle, at: 1000}
# data:
#   wide: lanes.wide
#   roles: lanes.roles
# words:
#   tile: waits for its tiles
#   place: waits for a free place
#   multiplies: multiplies
#   meets: waits for everybody
#   asks: asks for tiles
#   between: is between two steps
#   earlier: is at an earlier step
#   later: is at a later step
#   began: before the picture starts
#   by_copy: ", until the copy engine has delivered them"
#   by_consumers: ", until both consumers have given it back"
#   by_other: ", until the other one comes"
#   by_both: "; both have come, so it ends"
#   by_nobody: ""
# says:
#   at: "Cycle {tick}, after {event} of {events} events."
#   wide: "k07: warpgroup 0 {w0}, since {w0_since}{w0_end}. Warpgroup 1 {w1}, since {w1_since}{w1_end}."
#   roles: "k08: the producer {r0}, since {r0_since}{r0_end}. Warpgroup 1 {r1}, since {r1_since}{r1_end}. Warpgroup 2 {r2}, since {r2_since}{r2_end}."
# row: {cycle: "{tick}", "k07, warpgroup 0": "{w0}, since {w0_since}", "k07, warpgroup 1": "{w1}, since {w1_since}",
#       "k08, the producer": "{r0}, since {r0_since}", "k08, warpgroup 1": "{r1}, since {r1_since}", "k08, warpgroup 2": "{r2}, since {r2_since}"}
# caption: Drag the cursor. Previous and Next, or the keys ← and →, step from event to event.
# ///
#
# /// exercise | A stamp that would lie | 3 minutes
# Three of k07's four stamps read the clock directly. The fourth, after the barrier for everybody, first reads four
# bytes of shared memory, and reads the clock only once it has them. The bytes are thrown away.
#
# /// source | src/course_kernels/gemm/ticks.cuh#behind
# ///
#
# All threads leave such a barrier together. If this fourth stamp were as plain as the other three, what would the picture
# show when two warpgroups arrive one after the other?
# /// answer
# It would show the first warpgroup leaving before the other has arrived, which is impossible. In the source the clock is
# read after the barrier, but reading it needs nothing that the barrier guards, so a warp may read the clock while it is still
# waiting there. The wait would be drawn as *multiplies*. A load from shared memory may not overtake the barrier, and
# the clock is read only when the loaded value is there. If you measure a wait from inside, make the clock wait, too.
# ///
#
# /// when | barrier.early == 0
# And in this run the two warpgroups do leave together: in no step of any block did a warpgroup of k07 leave the barrier
# before both had arrived. Their two stamps are {{ barrier.apart:.0f}} cycles apart, in the median.
# /// otherwise
# In this run a warpgroup of k07 left before both had arrived in {{ barrier.early:.0f}} steps, and their two stamps
# are {{ barrier.apart:.0f}} cycles apart, in the median.
# ///
# ///
#
# /// define | slow_down.wide = with_stamps.wide / with_stamps.wide_stamped
# unit: "1"
# what: the time of k07_wide with stamps over its time without, 4096, bf16, in a burst
# ///
#
# /// define | slow_down.roles = with_stamps.roles / with_stamps.roles_stamped
# unit: "1"
# what: the time of k08_roles with stamps over its time without, 4096, bf16, in a burst
# ///
#
# /// claim | 0.9 < step.roles / step.wide < 1.1 and step.wide < 1.3 * by_hand.cycles
# The two steps are equally long. How can that be, when all threads of k07 meet in every step? `wgmma_wait<1>`
# lets the last order run on. While a warpgroup waits at the barrier, its own products go on; and there are two
# warpgroups. **A warpgroup that waits is not a tensor core that waits.** In the loop there is little left to gain.
# Roles are not a gain yet. Roles are what later rungs are built on: only a warp that does nothing but fetch can fetch
# across the end of a tile.
# /// otherwise
# k07 needs {{ step.wide:.0f}} cycles for a step, k08 {{ step.roles:.0f}}.
# ///

# %% tags=["fold"]
from course_kernels.gemm import stamped
from course_kernels.measure import samples, trace

STAMPED = {"wide": stamped.WIDE, "roles": stamped.ROLES}
BLOCK, FIRST, LAST = 200, 30, 34  # in the second round of blocks, half way along k


def with_stamps(name):
    """The product alone, for the race."""
    return lambda a, b: stamped.multiply(STAMPED[name], a, b)[0]


field = {name: RUNGS[name].gemm for name in STAMPED}
field |= {f"{name}_stamped": with_stamps(name) for name in STAMPED}
told = Race(field, PROBLEM, square(4096)).burst(rounds=4)

a, b = PROBLEM.make_inputs(
    square(4096), torch.Generator("cuda").manual_seed(0), "cuda"
)
ticks = {}
for name, which in STAMPED.items():
    for _ in range(5):
        ticks[name] = stamped.multiply(which, a, b)[1]
    ticks[name] = ticks[name].cpu()

record(
    with_stamps=told,
    lanes={
        name: trace(stamped.intervals(ticks[name], which, BLOCK, FIRST, LAST))
        for name, which in STAMPED.items()
    },
    shares={
        name: {
            part: quantity(share, how="counted")
            for part, share in stamped.shares(ticks[name], which).items()
        }
        for name, which in STAMPED.items()
    },
    step={
        name: samples(stamped.step_cycles(ticks[name], which))
        for name, which in STAMPED.items()
    },
    gap={
        name: samples(stamped.gaps(ticks[name], which))
        for name, which in STAMPED.items()
    },
    barrier={
        "early": quantity(stamped.early(ticks["wide"]), how="counted"),
        "apart": quantity(stamped.apart(ticks["wide"]), "cycles", "device"),
    },
    by_hand={"cycles": quantity(128 * 256 * 64 / 2048, "cycles")},
)

# %% [markdown]
# ## Read the machine code
#
# For this you need no GPU, only a compiler and a disassembler. The card gets some nine hundred lines for k04 and six hundred for
# k08, in a language called **SASS**. Twenty lines of each matter.
#
# ### The sheet
#
# Everything that works out an address is left out. We begin with the whole loop of k04, the kernel that you know.
#
# /// text | sheet.k04
# ///
#
# Then comes k08. Its two roles are two loops, for threads that never meet: the consumer's, then the producer's.
#
# /// text | sheet.k08
# ///
#
# The card uses different names from PTX. `wgmma` becomes `HGMMA`, `cp.async` becomes `LDGSTS`, and an order to the copy engine
# `UTMALDG`. An mbarrier is `SYNCS`.
#
# <details class="fold" markdown="1"><summary>A key, if you read alone</summary>
#
# | on the sheet | read it as |
# |---|---|
# | `R24`, `UR12` | a register of each thread; a *uniform* register, one for the whole warp |
# | `[…]` | an address in memory |
# | `gdesc[UR12]` | a *descriptor* for the tensor core, in that register: 64 bits that say where a tile is in shared memory, and with which swizzle |
# | `gsb0` | a counter of orders to the tensor cores that are in flight |
# | `P0`, `@!P0` | a yes or no that an earlier line worked out; *only if it is a no* |
#
# </details>
#
# /// predict | Which line of k04's sheet stops all 256 threads, and has no counterpart on k08's?
# - [ ] DEPBAR.LE SB0
# - [x] BAR.SYNC
# - [ ] WARPGROUP.DEPBAR
# /// reveal
# `BAR.SYNC`: k04 has {{ code.wgmma.BAR_SYNC:.0f}}, in the loop; k08 has {{ code.roles.BAR_SYNC:.0f}}, and that one comes before the loops. The other two lines wait for a thread's own copies and for products in flight.
# ///
#
# ### Find the tensor core
#
# Take a red pen. Underline every `HGMMA`, on both sheets. Then write in the margin: what is 64 × 256 × 16? Why four? Where do the
# sums live, and why does only the last `HGMMA` carry `gsb0`?
#
# ### Find the carriers
#
# Take a black pen. Draw a box round the lines that fetch: `LDGSTS` in k04, `UTMALDG` in k08. How many threads run each of these
# lines? Which tile do they bring, the one being multiplied or a later one?
#
# ### Find the waits
#
# Circle every line that waits. For each wait, say who waits, for what, and who ends it. Draw an arrow from the wait to the line
# that ends it. In k08 two of the arrows go from one loop to the other.
#
# /// exercise | Now compare
# Mark both sheets before you unfold the answer.
# /// answer
#
# | on k08's sheet | in the source | and it is |
# |---|---|---|
# | `SYNCS.PHASECHK … TRYWAIT`, in the consumer's loop | `wait(&full[s], …)` | a consumer asks: is the tile there? The copy engine ends this wait |
# | `@!P0 BRA` right after it | the loop inside `wait` | if not: ask again, further down |
# | `WARPGROUP.ARRIVE` | `wgmma_fence(d)` | not a wait: the sums in `R24` … may now be written |
# | `HGMMA.64x256x16`, four times | `products<BN, …>` | 64 deep, 16 at a time; `gdesc` says where A and B are, `.tnspB` that B is stored by rows |
# | `gsb0`, on the last of them | `wgmma_commit()` | one group for the four |
# | `WARPGROUP.DEPBAR.LE gsb0, 0x1` | `wgmma_wait<1>()` | waits for all groups except the one just asked for |
# | `SYNCS.ARRIVE`, in the consumer's loop | `arrive(&empty[…])` | the place of the step before may be filled again |
# | `SYNCS.PHASECHK … TRYWAIT`, in the producer's loop | `wait(&empty[s], … ^ 1)` | the producer asks: is the place free? The consumers end this wait |
# | `SYNCS.ARRIVE.TRANS64`, in the producer's loop | `arrive_and_expect_bytes` | this many bytes will come; the barrier turns when they have |
# | `UTMALDG.2D`, five times | `load_tile` | one order for A, four for the panels of B |
# | `@!P0 BRA`, the last line of each | the `for` | the next step of k |
#
# You can tell which barrier a line means from the loop that it is in: the addresses were worked out in lines that are left out
# here.
#
# The sums live in registers, from `R24` on, 128 in each thread. Each `LDGSTS` is run by 256 threads, each `UTMALDG` by one. Both
# bring a tile for a later step: nothing in this round waits for them. And of k04's three waits only `BAR.SYNC` is for everybody;
# `DEPBAR.LE SB0` is for a thread's own older copies, which `LDGDEPBAR` closed as a group.
# ///
#
# /// exercise | Ten lines against twenty-two
# k08's consumer has ten lines where k04's loop has twenty-two. The work is the same. Where did the twelve `LDGSTS` go, and who pays for the five `UTMALDG`?
# /// answer
# They went to the producer's loop: one thread of 384 runs it, and that thread has no sums to delay. The five lines
# bring the same 48 KiB. In k04 each of the twelve lines is run by 256 threads, with an address for each piece.
# ///

# %% tags=["fold"]
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass
from course_kernels.cuda.includes import sources_of
from course_kernels.gemm import listing

ARCH = "sm_90a"
MATTERS = (
    *("HGMMA", "UTMALDG", "LDGSTS", "LDGDEPBAR", "DEPBAR", "BAR", "SYNCS"),
    *("WARPGROUP", "BRA"),
)
NAMES = (
    *("HGMMA", "UTMALDG", "LDGSTS", "SYNCS", "BAR.SYNC", "STG", "STSM"),
    *("UTMASTG", "USETMAXREG", "LDL"),
)


def code_of(kernel, **defines):
    """The instructions of a rung."""
    return listing.instructions(sass(compile_cubin(kernel.SOURCE, ARCH, defines)))


def lines_that_matter(kernel, *names):
    """Its loops with these instructions, without what works out addresses."""
    return "\n\n".join(
        "\n".join(
            f"{line.number:4d} {line}"
            for line in listing.loop_with(code_of(kernel), name)
            if line.stem in MATTERS and ".ANY" not in line.name
        )
        for name in names
    )


def lines_of_source(kernel):
    """Lines of code of a rung and of the headers beside it: no blank ones, no comments."""
    files = [
        file
        for file in sources_of(kernel.SOURCE)
        if file.parent == kernel.SOURCE.parent
    ]
    return sum(
        bool(line.strip()) and not line.strip().startswith("//")
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
    )


codes = {name: code_of(rung) for name, rung in RUNGS.items()}
codes["one_consumer"] = code_of(k09_registers, CONSUMERS=1)
record(
    sheet={
        "k04": text(lines_that_matter(k04_wgmma, "HGMMA")),
        "k08": text(lines_that_matter(k08_roles, "HGMMA", "UTMALDG")),
    },
    code={
        name: {
            "all": quantity(len(lines), how="counted"),
            **{
                one.replace(".", "_"): quantity(found, how="counted")
                for one, found in listing.counted(lines, NAMES).items()
            },
        }
        for name, lines in codes.items()
    },
    source={
        name: quantity(lines_of_source(rung), how="counted")
        for name, rung in RUNGS.items()
    },
)

# %% [markdown]
# ### Rung by rung
#
# Here is a count of what the compiler made of each rung. A line that appears once may run a thousand times; what
# matters here is which lines appear at all.
#
# /// table
# turned: true
# columns: [rung, lines, HGMMA, LDGSTS, UTMALDG, SYNCS, BAR.SYNC, STG, STSM, UTMASTG, USETMAXREG]
# rows:
#   - [k04 wgmma, "{{ code.wgmma.all:.0f}}", "{{ code.wgmma.HGMMA:.0f}}", "{{ code.wgmma.LDGSTS:.0f}}", "{{ code.wgmma.UTMALDG:.0f}}", "{{ code.wgmma.SYNCS:.0f}}", "{{ code.wgmma.BAR_SYNC:.0f}}", "{{ code.wgmma.STG:.0f}}", "{{ code.wgmma.STSM:.0f}}", "{{ code.wgmma.UTMASTG:.0f}}", "{{ code.wgmma.USETMAXREG:.0f}}"]
#   - [k06 tma, "{{ code.tma.all:.0f}}", "{{ code.tma.HGMMA:.0f}}", "{{ code.tma.LDGSTS:.0f}}", "{{ code.tma.UTMALDG:.0f}}", "{{ code.tma.SYNCS:.0f}}", "{{ code.tma.BAR_SYNC:.0f}}", "{{ code.tma.STG:.0f}}", "{{ code.tma.STSM:.0f}}", "{{ code.tma.UTMASTG:.0f}}", "{{ code.tma.USETMAXREG:.0f}}"]
#   - [k07 wide, "{{ code.wide.all:.0f}}", "{{ code.wide.HGMMA:.0f}}", "{{ code.wide.LDGSTS:.0f}}", "{{ code.wide.UTMALDG:.0f}}", "{{ code.wide.SYNCS:.0f}}", "{{ code.wide.BAR_SYNC:.0f}}", "{{ code.wide.STG:.0f}}", "{{ code.wide.STSM:.0f}}", "{{ code.wide.UTMASTG:.0f}}", "{{ code.wide.USETMAXREG:.0f}}"]
#   - [k08 roles, "{{ code.roles.all:.0f}}", "{{ code.roles.HGMMA:.0f}}", "{{ code.roles.LDGSTS:.0f}}", "{{ code.roles.UTMALDG:.0f}}", "{{ code.roles.SYNCS:.0f}}", "{{ code.roles.BAR_SYNC:.0f}}", "{{ code.roles.STG:.0f}}", "{{ code.roles.STSM:.0f}}", "{{ code.roles.UTMASTG:.0f}}", "{{ code.roles.USETMAXREG:.0f}}"]
#   - [k10 persistent, "{{ code.persistent.all:.0f}}", "{{ code.persistent.HGMMA:.0f}}", "{{ code.persistent.LDGSTS:.0f}}", "{{ code.persistent.UTMALDG:.0f}}", "{{ code.persistent.SYNCS:.0f}}", "{{ code.persistent.BAR_SYNC:.0f}}", "{{ code.persistent.STG:.0f}}", "{{ code.persistent.STSM:.0f}}", "{{ code.persistent.UTMASTG:.0f}}", "{{ code.persistent.USETMAXREG:.0f}}"]
#   - [k11 cluster, "{{ code.cluster.all:.0f}}", "{{ code.cluster.HGMMA:.0f}}", "{{ code.cluster.LDGSTS:.0f}}", "{{ code.cluster.UTMALDG:.0f}}", "{{ code.cluster.SYNCS:.0f}}", "{{ code.cluster.BAR_SYNC:.0f}}", "{{ code.cluster.STG:.0f}}", "{{ code.cluster.STSM:.0f}}", "{{ code.cluster.UTMASTG:.0f}}", "{{ code.cluster.USETMAXREG:.0f}}"]
#   - [k12 stored, "{{ code.stored.all:.0f}}", "{{ code.stored.HGMMA:.0f}}", "{{ code.stored.LDGSTS:.0f}}", "{{ code.stored.UTMALDG:.0f}}", "{{ code.stored.SYNCS:.0f}}", "{{ code.stored.BAR_SYNC:.0f}}", "{{ code.stored.STG:.0f}}", "{{ code.stored.STSM:.0f}}", "{{ code.stored.UTMASTG:.0f}}", "{{ code.stored.USETMAXREG:.0f}}"]
#   - [k14 tuned, "{{ code.tuned.all:.0f}}", "{{ code.tuned.HGMMA:.0f}}", "{{ code.tuned.LDGSTS:.0f}}", "{{ code.tuned.UTMALDG:.0f}}", "{{ code.tuned.SYNCS:.0f}}", "{{ code.tuned.BAR_SYNC:.0f}}", "{{ code.tuned.STG:.0f}}", "{{ code.tuned.STSM:.0f}}", "{{ code.tuned.UTMASTG:.0f}}", "{{ code.tuned.USETMAXREG:.0f}}"]
# caption: "Lines of machine code. STG writes C from registers; STSM puts a panel of C into shared memory, and UTMASTG lets the copy engine carry it away. USETMAXREG moves registers from the producer to the consumers."
# ///
#
# /// claim | code.tma.UTMALDG > 0.5 and code.tma.LDGSTS < 0.5 and code.tma.HGMMA > 1.5 * code.wide.HGMMA and code.wide.HGMMA == code.roles.HGMMA and code.roles.HGMMA == code.stored.HGMMA and code.tuned.HGMMA > 2 * code.stored.HGMMA
# From k07 on the instruction in the middle never changes: 64 × 256 × 16, {{ code.wide.HGMMA:.0f}} lines of `HGMMA` in
# k07, {{ code.roles.HGMMA:.0f}} in k08, {{ code.stored.HGMMA:.0f}} in k12. Only what surrounds it changes. k06 has {{ code.tma.HGMMA:.0f}},
# because its orders are half as wide, 64 × 128 × 16, so it needs two where k07 needs one. The last rung has {{ code.tuned.HGMMA:.0f}}:
# there the first steps of a tile are unrolled, and each of them is followed by a panel of the previous C.
# /// otherwise
# k08 has {{ code.roles.HGMMA:.0f}} lines of `HGMMA`, the last rung {{ code.tuned.HGMMA:.0f}}.
# ///

# %% [markdown]
# ## Blocks that stay
#
# The stamps show one more thing. Between the last product of one block and the first tile of the next, the tensor cores of an SM
# are idle. A block writes its C. It ends. The next block starts, sets up its mbarriers, asks for its first tile, and waits for
# that tile.
#
# /// predict | How many steps of k could k08 have done in such a gap?
# - [gap.roles / step.roles < 2] One or two
# - [2 <= gap.roles / step.roles < 8] A handful
# - [gap.roles / step.roles >= 8] Eight or more
# /// reveal
# {{ gap.roles / step.roles:.1f}} steps, and a block has 64 of them at K = 4096. The gap is {{ gap.roles:,.0f}} cycles; without roles it is {{ gap.wide:,.0f}}.
# ///
#
# So let a block *stay*. Start as many blocks as there are SMs, and let each walk over many tiles of C: a **persistent** kernel.
# The ring does not end with a tile. While the consumers write one tile of C, the producer already asks for the operands of the next
# tile. We also choose the order of the tiles so that the tiles in progress at one time are close together, and their strips of A and B are
# still in L2.
#
# /// source | src/course_kernels/gemm/k10_persistent.cu#walk
# lines: true
# ///
#
# Find the two loops over tiles, one for each role. They run over the same tiles, in the same order, and share nothing but the
# ring. `at` counts steps over all tiles; place and bit are derived from it.
#
# /// diff | src/course_kernels/gemm/k08_roles.cu | src/course_kernels/gemm/k10_persistent.cu
# context: 1
# ///
#
# The result is {{ burst.nn.n4096.persistent / burst.nn.n4096.roles:.2f}} times the speed of k08: {{ burst.nn.n4096.persistent:.0f}}
# TFLOP/s. That is not much. The gap between two blocks is mostly C on its way out, and these consumers still write it themselves.
#
# The next step involves a neighbouring block. In a **cluster** a few blocks run at the same time in one part of the
# card, a group of SMs that NVIDIA calls a GPC. Two blocks that work on tiles with the same columns need the same B; one
# delivery serves both. That is [k11](#evenings), with {{ burst.nn.n4096.cluster:.0f}} TFLOP/s.

# %% [markdown]
# ## The last rung
#
# Only small things are left, each with its own switch, so that you can turn it off and measure.
#
# - **C leaves late.** A consumer rounds its sums into registers and asks for the next tile's products at once. The panels of C go out after the first steps of the next tile.
# - **A lag.** The second consumer begins some steps after the first, so that they do not round at the same moment. You have met
#   this lag as *you boil while I cut*.
# - **The last round.** When a few tiles are left over, SMs without a tile of their own begin the tiles of others.
# - **A hint.** Nobody here reads C again, so L2 may drop it first. And a grid may begin while the previous one in the
#   stream is still ending.
#
# This rung is not meant to be read in the room, so it is not printed here: open `src/course_kernels/gemm/k14_tuned.cu`. Which of
# its switches help depends on the size, and a small script tries them all: `python -m course_kernels.tune_gemm 4096`.
#
# This rung has a second body, `src/course_kernels/gemm/one_wave.cu`. Where there is an SM for every tile of C, as at
# 2048, no block computes two tiles, so there is no earlier tile to store and no later one to fetch. Besides the
# products, that leaves the way to the first product and the way out after the last, and this file shortens both. A few
# constants in `plans.py` decide which body runs, with which tile and which cluster. These constants were fitted to
# bursts on an H200.

# %% [markdown]
# ## The climb
#
# Here are all rungs at 4096, timed in bursts and in the same rounds.
#
# /// chart | staircase
# title: The rungs at 4096 × 4096 × 4096, bf16, in bursts with a warm L2
# y_label: TFLOP/s
# steps:
#   - {name: burst.nn.n4096.wgmma, label: k04 wgmma}
#   - {name: burst.nn.n4096.tma, label: k06 TMA}
#   - {name: burst.nn.n4096.wide, label: k07 wide}
#   - {name: burst.nn.n4096.roles, label: k08 roles}
#   - {name: burst.nn.n4096.persistent, label: k10 persistent}
#   - {name: burst.nn.n4096.cluster, label: k11 cluster}
#   - {name: burst.nn.n4096.stored, label: k12 stored}
#   - {name: burst.nn.n4096.by_size, label: k13 by size}
#   - {name: burst.nn.n4096.tuned, label: k14 tuned}
# references:
#   - {label: cuBLAS, value: burst.nn.n4096.cublas}
#   - {label: data sheet, value: sheet.bf16}
# alt: "A staircase of TFLOP/s in bursts: k04 {{ burst.nn.n4096.wgmma:.0f}}, k06 {{ burst.nn.n4096.tma:.0f}}, k07 {{ burst.nn.n4096.wide:.0f}}, k08 {{ burst.nn.n4096.roles:.0f}}, k10 {{ burst.nn.n4096.persistent:.0f}}, k11 {{ burst.nn.n4096.cluster:.0f}}, k12 {{ burst.nn.n4096.stored:.0f}}, k13 {{ burst.nn.n4096.by_size:.0f}}, k14 {{ burst.nn.n4096.tuned:.0f}}. cuBLAS reaches {{ burst.nn.n4096.cublas:.0f}}."
# caption: k09 is a side note; you will find it under *Evenings*.
# ///
#
# /// exercise | A letter a rung | 4 minutes
# For each rung from k06 on, say what it bought. Write *F* for faster fetching, *C* for faster computing, *W* for less waiting, *L2*
# for less traffic from memory. Then look at the source of a rung that you are unsure about.
# /// answer
# Here are ours, and yours may differ: k06 F; k07 C; k08 W, on which later rungs build; k10 W and L2; k11 F; k12 W; k13 L2, at
# other sizes; k14 W. A rung to which two people give different letters is worth two minutes of discussion.
# ///
#
# /// claim | burst.nn.n4096.wide > 1.05 * burst.nn.n4096.tma and burst.nn.n4096.stored > 1.02 * burst.nn.n4096.cluster and 0.9 < burst.nn.n4096.roles / burst.nn.n4096.wide < 1.1 and 0.9 < burst.nn.n4096.registers / burst.nn.n4096.roles < 1.1 and 0.9 < burst.nn.n4096.persistent / burst.nn.n4096.roles < 1.1 and 0.9 < burst.nn.n4096.cluster / burst.nn.n4096.persistent < 1.1 and 0.9 < burst.nn.n4096.by_size / burst.nn.n4096.stored < 1.1
# k07 is a tall rung: its tile and its instruction are twice as wide. So is k12, whose C leaves by way of shared memory
# while the next tile is being multiplied. Five others are within a few percent of the one before, and in a run like
# this those differences **cannot be told apart** from none: {{ burst.nn.n4096.roles / burst.nn.n4096.wide:.3f}} for
# roles, k08, which k12 is built on; {{ burst.nn.n4096.registers / burst.nn.n4096.roles:.3f}} for k09, which moves registers although 168 of them
# already held what a consumer needs; {{ burst.nn.n4096.persistent / burst.nn.n4096.roles:.3f}} for blocks that stay, k10; {{ burst.nn.n4096.cluster / burst.nn.n4096.persistent:.3f}}
# for clusters, k11; and {{ burst.nn.n4096.by_size / burst.nn.n4096.stored:.3f}} for k13, which is for other sizes.
# /// otherwise
# k08 runs at {{ burst.nn.n4096.roles / burst.nn.n4096.wide:.2f}} times the speed of k07, and k09, which moves
# registers, {{ burst.nn.n4096.registers / burst.nn.n4096.roles:.2f}} times that of k08.
# ///
#
# /// claim | burst.nn.n4096.tma > 1.07 * burst.nn.n4096.wgmma
# And k06, the first step, is tall on this card, too: {{ burst.nn.n4096.tma / burst.nn.n4096.wgmma:.3f}} times the speed of k04,
# although its tile is half as wide. It differs from k04 in two things, the copy engine and the smaller tile, of which two fit on
# an SM. This run does not say how much each of them contributes.
# /// otherwise
# And k06, the first step, where one thread orders, with a tile of half the width?
# {{ burst.nn.n4096.tma / burst.nn.n4096.wgmma:.3f}} times the speed of k04.
# ///
#
# ### What the last percentage points cost {#what-the-last-per-cents-cost}
#
# The column *lines of code* is what you would have to read: the kernel and the headers beside it, without comments.
#
# /// table
# columns: [rung, "TFLOP/s", "% of peak", "over the one before", lines of code]
# rows:
#   - [k04 wgmma, "{{ burst.nn.n4096.wgmma:.0f}}", "{{ burst.nn.n4096.wgmma / sheet.bf16:.0%}}", "", "{{ source.wgmma:.0f}}"]
#   - [k06 tma, "{{ burst.nn.n4096.tma:.0f}}", "{{ burst.nn.n4096.tma / sheet.bf16:.0%}}", "{{ burst.nn.n4096.tma / burst.nn.n4096.wgmma:.3f}}", "{{ source.tma:.0f}}"]
#   - [k07 wide, "{{ burst.nn.n4096.wide:.0f}}", "{{ burst.nn.n4096.wide / sheet.bf16:.0%}}", "{{ burst.nn.n4096.wide / burst.nn.n4096.tma:.3f}}", "{{ source.wide:.0f}}"]
#   - [k08 roles, "{{ burst.nn.n4096.roles:.0f}}", "{{ burst.nn.n4096.roles / sheet.bf16:.0%}}", "{{ burst.nn.n4096.roles / burst.nn.n4096.wide:.3f}}", "{{ source.roles:.0f}}"]
#   - [k10 persistent, "{{ burst.nn.n4096.persistent:.0f}}", "{{ burst.nn.n4096.persistent / sheet.bf16:.0%}}", "{{ burst.nn.n4096.persistent / burst.nn.n4096.roles:.3f}}", "{{ source.persistent:.0f}}"]
#   - [k11 cluster, "{{ burst.nn.n4096.cluster:.0f}}", "{{ burst.nn.n4096.cluster / sheet.bf16:.0%}}", "{{ burst.nn.n4096.cluster / burst.nn.n4096.persistent:.3f}}", "{{ source.cluster:.0f}}"]
#   - [k12 stored, "{{ burst.nn.n4096.stored:.0f}}", "{{ burst.nn.n4096.stored / sheet.bf16:.0%}}", "{{ burst.nn.n4096.stored / burst.nn.n4096.cluster:.3f}}", "{{ source.stored:.0f}}"]
#   - [k13 by size, "{{ burst.nn.n4096.by_size:.0f}}", "{{ burst.nn.n4096.by_size / sheet.bf16:.0%}}", "{{ burst.nn.n4096.by_size / burst.nn.n4096.stored:.3f}}", "{{ source.by_size:.0f}}"]
#   - [k14 tuned, "{{ burst.nn.n4096.tuned:.0f}}", "{{ burst.nn.n4096.tuned / sheet.bf16:.0%}}", "{{ burst.nn.n4096.tuned / burst.nn.n4096.by_size:.3f}}", "{{ source.tuned:.0f}}"]
#   - ["k05, Triton", "{{ burst.nn.n4096.triton:.0f}}", "{{ burst.nn.n4096.triton / sheet.bf16:.0%}}", "", ""]
#   - [cuBLAS, "{{ burst.nn.n4096.cublas:.0f}}", "{{ burst.nn.n4096.cublas / sheet.bf16:.0%}}", "", ""]
#   - ["cuBLASLt, its best", "{{ burst.nn.n4096.cublaslt:.0f}}", "{{ burst.nn.n4096.cublaslt / sheet.bf16:.0%}}", "", ""]
# caption: "4096 × 4096 × 4096, bf16, bursts, warm L2."
# ///
#
# From k08 on, most rungs are an evening's work for a percent or two, or for nothing that this run can show. Who would pay for
# that? Somebody whose cards do nothing else. In Pranjal Shankhdhar's log the rungs are taller: from the fourth rung to the last
# the speed grows from 498 to 764 TFLOP/s, in seven steps [^shankhdhar2024].

# %% [markdown]
# ## The scoreboard
#
# The scoreboard has three sizes, two layouts, and both ways of timing. In NN, B is stored as (K, N). In NT, B is stored
# as (N, K), the way a linear layer keeps its weights.
#
# /// predict | The same kernel at 8192: how much of its burst speed is left when it runs alone for seconds?
# - [kept_up < 0.7] Less than 70 %
# - [0.7 <= kept_up < 0.93] Between 70 and 93 %
# - [kept_up >= 0.93] Nearly all
# /// reveal
# {{ kept_up:.0%}}: {{ long.nn.n8192.tuned.rate:.0f}} TFLOP/s after {{ burst.nn.n8192.tuned:.0f}}.
#
# /// claim | 0.9 < best_over_cublas.n4096.sustained < 1.1 and 0.9 < best_over_cublas.n8192.sustained < 1.1
# And against the library? In sustained runs our kernel reaches {{ best_over_cublas.n4096.sustained:.3f}} times its speed at 4096 and
# {{ best_over_cublas.n8192.sustained:.3f}} at 8192. The two are level, within a tenth. (In the row for 2048 the host may have a say;
# we come to it further down.)
# /// otherwise
# And against the library? In sustained runs our kernel reaches {{ best_over_cublas.n4096.sustained:.3f}} times its speed at 4096 and
# {{ best_over_cublas.n8192.sustained:.3f}} at 8192. (In the row for 2048 the host may have a say; we come to it further down.)
# ///
#
# In Pranjal Shankhdhar's log the lead shrinks from 7 % at 4096 to 1.5 % at 8192 [^shankhdhar2024].
#
# /// table
# columns: ["TFLOP/s, bursts", "ours, k14", "cuBLAS", "cuBLASLt, its best", "k05, Triton", "ours over the better library"]
# rows:
#   - ["2048, NN", "{{ burst.nn.n2048.tuned:.0f}}", "{{ burst.nn.n2048.cublas:.0f}}", "{{ burst.nn.n2048.cublaslt:.0f}}", "{{ burst.nn.n2048.triton:.0f}}", "{{ best_over_cublas.n2048.burst:.3f}}"]
#   - ["4096, NN", "{{ burst.nn.n4096.tuned:.0f}}", "{{ burst.nn.n4096.cublas:.0f}}", "{{ burst.nn.n4096.cublaslt:.0f}}", "{{ burst.nn.n4096.triton:.0f}}", "{{ best_over_cublas.n4096.burst:.3f}}"]
#   - ["8192, NN", "{{ burst.nn.n8192.tuned:.0f}}", "{{ burst.nn.n8192.cublas:.0f}}", "{{ burst.nn.n8192.cublaslt:.0f}}", "{{ burst.nn.n8192.triton:.0f}}", "{{ best_over_cublas.n8192.burst:.3f}}"]
#   - ["2048, NT", "{{ burst.nt.n2048.tuned:.0f}}", "{{ burst.nt.n2048.cublas:.0f}}", "{{ burst.nt.n2048.cublaslt:.0f}}", "–", "{{ best_over_cublas_nt.n2048.burst:.3f}}"]
#   - ["4096, NT", "{{ burst.nt.n4096.tuned:.0f}}", "{{ burst.nt.n4096.cublas:.0f}}", "{{ burst.nt.n4096.cublaslt:.0f}}", "–", "{{ best_over_cublas_nt.n4096.burst:.3f}}"]
#   - ["8192, NT", "{{ burst.nt.n8192.tuned:.0f}}", "{{ burst.nt.n8192.cublas:.0f}}", "{{ burst.nt.n8192.cublaslt:.0f}}", "–", "{{ best_over_cublas_nt.n8192.burst:.3f}}"]
# caption: "bf16, random normal inputs, warm L2, the card rested before each burst. At 2048 we run one_wave.cu, at 4096 and 8192 k14_tuned.cu. Our Triton kernel takes NN only."
# ///
#
# /// table
# columns: ["sustained", "ours, TFLOP/s", "the library", "it is", "ours over it", "ours, MHz", "the library, MHz", "ours, W", "the library, W"]
# rows:
#   - ["2048, NN", "{{ long.nn.n2048.tuned.rate:.0f}}", "{{ long.nn.n2048.library.rate:.0f}}", "{{ rival.nn.n2048}}", "{{ best_over_cublas.n2048.sustained:.3f}}", "{{ long.nn.n2048.tuned.mhz:.0f}}", "{{ long.nn.n2048.library.mhz:.0f}}", "{{ long.nn.n2048.tuned.watts:.0f}}", "{{ long.nn.n2048.library.watts:.0f}}"]
#   - ["4096, NN", "{{ long.nn.n4096.tuned.rate:.0f}}", "{{ long.nn.n4096.library.rate:.0f}}", "{{ rival.nn.n4096}}", "{{ best_over_cublas.n4096.sustained:.3f}}", "{{ long.nn.n4096.tuned.mhz:.0f}}", "{{ long.nn.n4096.library.mhz:.0f}}", "{{ long.nn.n4096.tuned.watts:.0f}}", "{{ long.nn.n4096.library.watts:.0f}}"]
#   - ["8192, NN", "{{ long.nn.n8192.tuned.rate:.0f}}", "{{ long.nn.n8192.library.rate:.0f}}", "{{ rival.nn.n8192}}", "{{ best_over_cublas.n8192.sustained:.3f}}", "{{ long.nn.n8192.tuned.mhz:.0f}}", "{{ long.nn.n8192.library.mhz:.0f}}", "{{ long.nn.n8192.tuned.watts:.0f}}", "{{ long.nn.n8192.library.watts:.0f}}"]
#   - ["2048, NT", "{{ long.nt.n2048.tuned.rate:.0f}}", "{{ long.nt.n2048.library.rate:.0f}}", "{{ rival.nt.n2048}}", "{{ best_over_cublas_nt.n2048.sustained:.3f}}", "{{ long.nt.n2048.tuned.mhz:.0f}}", "{{ long.nt.n2048.library.mhz:.0f}}", "{{ long.nt.n2048.tuned.watts:.0f}}", "{{ long.nt.n2048.library.watts:.0f}}"]
#   - ["4096, NT", "{{ long.nt.n4096.tuned.rate:.0f}}", "{{ long.nt.n4096.library.rate:.0f}}", "{{ rival.nt.n4096}}", "{{ best_over_cublas_nt.n4096.sustained:.3f}}", "{{ long.nt.n4096.tuned.mhz:.0f}}", "{{ long.nt.n4096.library.mhz:.0f}}", "{{ long.nt.n4096.tuned.watts:.0f}}", "{{ long.nt.n4096.library.watts:.0f}}"]
#   - ["8192, NT", "{{ long.nt.n8192.tuned.rate:.0f}}", "{{ long.nt.n8192.library.rate:.0f}}", "{{ rival.nt.n8192}}", "{{ best_over_cublas_nt.n8192.sustained:.3f}}", "{{ long.nt.n8192.tuned.mhz:.0f}}", "{{ long.nt.n8192.library.mhz:.0f}}", "{{ long.nt.n8192.tuned.watts:.0f}}", "{{ long.nt.n8192.library.watts:.0f}}"]
# caption: "One kernel runs alone for two seconds, on inputs that rotate, and the last second is timed; the order is ours, theirs, theirs, ours. The library is whichever of cuBLAS and cuBLASLt was faster in bursts. Clock and power are as the card reports them at the end of each block, twice for each kernel. The rows for 2048 may time the host as well as the card; see below."
# ///
# ///
#
# /// define | pace.ours = cold.tuned.gflop / 8 / long.nn.n2048.tuned.rate
# unit: ms
# what: from one product of 2048 to the next, k14_tuned, sustained; the operations are those of 4096 over eight
# ///
#
# /// define | pace.library = cold.tuned.gflop / 8 / long.nn.n2048.library.rate
# unit: ms
# what: from one product of 2048 to the next, the faster library, sustained
# ///
#
# /// define | kept_up = long.nn.n8192.tuned.rate / burst.nn.n8192.tuned
# unit: "1"
# what: the rate of k14_tuned alone for seconds over its rate in bursts, 8192, bf16, NN
# ///
#
# /// define | best_over_cublas.n2048.burst = burst.nn.n2048.tuned / max(burst.nn.n2048.cublas, burst.nn.n2048.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 2048, bf16, NN, in bursts
# ///
#
# /// define | best_over_cublas.n4096.burst = burst.nn.n4096.tuned / max(burst.nn.n4096.cublas, burst.nn.n4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NN, in bursts
# ///
#
# /// define | best_over_cublas.n8192.burst = burst.nn.n8192.tuned / max(burst.nn.n8192.cublas, burst.nn.n8192.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NN, in bursts
# ///
#
# /// define | best_over_cublas.n2048.sustained = long.nn.n2048.tuned.rate / long.nn.n2048.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 2048, bf16, NN, sustained
# ///
#
# /// define | best_over_cublas.n4096.sustained = long.nn.n4096.tuned.rate / long.nn.n4096.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 4096, bf16, NN, sustained
# ///
#
# /// define | best_over_cublas.n8192.sustained = long.nn.n8192.tuned.rate / long.nn.n8192.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 8192, bf16, NN, sustained
# ///
#
# /// define | best_over_cublas_nt.n2048.burst = burst.nt.n2048.tuned / max(burst.nt.n2048.cublas, burst.nt.n2048.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 2048, bf16, NT, in bursts
# ///
#
# /// define | best_over_cublas_nt.n4096.burst = burst.nt.n4096.tuned / max(burst.nt.n4096.cublas, burst.nt.n4096.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 4096, bf16, NT, in bursts
# ///
#
# /// define | best_over_cublas_nt.n8192.burst = burst.nt.n8192.tuned / max(burst.nt.n8192.cublas, burst.nt.n8192.cublaslt)
# unit: ×
# what: k14_tuned over the better of cuBLAS and the best of cuBLASLt's guesses, 8192, bf16, NT, in bursts
# ///
#
# /// define | best_over_cublas_nt.n2048.sustained = long.nt.n2048.tuned.rate / long.nt.n2048.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 2048, bf16, NT, sustained
# ///
#
# /// define | best_over_cublas_nt.n4096.sustained = long.nt.n4096.tuned.rate / long.nt.n4096.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 4096, bf16, NT, sustained
# ///
#
# /// define | best_over_cublas_nt.n8192.sustained = long.nt.n8192.tuned.rate / long.nt.n8192.library.rate
# unit: ×
# what: k14_tuned over the better of cuBLAS and cuBLASLt, 8192, bf16, NT, sustained
# ///
#
# /// claim | 0.9 < best_over_cublas.n2048.burst < 1.1 and 0.9 < best_over_cublas.n4096.burst < 1.1 and 0.9 < best_over_cublas.n8192.burst < 1.1
# In bursts, with B stored as (K, N), our kernel is **level** with the better of cuBLAS and cuBLASLt:
# {{ best_over_cublas.n2048.burst:.3f}}
# times its speed at 2048, {{ best_over_cublas.n4096.burst:.3f}} at 4096 and {{ best_over_cublas.n8192.burst:.3f}} at 8192. *Level*
# means within a tenth; more than that this one run does not settle. *The
# better* means the best of nine tries. Ours is two kernels and a plan: [the second body](#the-last-rung) runs at 2048, and the
# first at 4096 and 8192, once with single blocks and once with clusters of two.
# /// otherwise
# In bursts, with B stored as (K, N), our kernel reaches {{ best_over_cublas.n2048.burst:.3f}},
# {{ best_over_cublas.n4096.burst:.3f}} and {{ best_over_cublas.n8192.burst:.3f}} times the library's speed.
# ///
#
# Take that for what it is: square shapes, one type, one card. [The multiply, size by size](../multiply_on_hopper.py) has the small squares and the shapes of a model, including the losses, and the model's own prefill. The library has an answer for every shape, every type and every layout, and anybody can call it without reading this page.
#
# /// claim | 0.9 < best_over_cublas.n2048.sustained < 1.2 and 0.9 < best_over_cublas.n2048.burst < 1.1
# And take the sustained ratio at 2048, {{ best_over_cublas.n2048.sustained:.2f}}, for what **it** is:
# another run may well find none of it. At those rates our
# kernel was done every {{ 1e3 * pace.ours:.0f}} µs, the library's every {{ 1e3 * pace.library:.0f}} µs. And the host?
# In the bursts of this run a call cost the host {{ host.n2048.tuned:.0f}} µs with our kernel and {{ host.n2048.cublas:.0f}}
# µs with cuBLAS. These are the smallest values that we saw, and they include the events for the clock. So the card may
# wait for the host now and then, and a host's pace is not a kernel's speed. A card that waits has power left for a higher
# clock. In the two rows for
# 2048 the card was read at {{ long.nn.n2048.library.mhz:.0f}} and {{ long.nt.n2048.library.mhz:.0f}} MHz with the library,
# and at {{ long.nn.n2048.tuned.mhz:.0f}} and {{ long.nt.n2048.tuned.mhz:.0f}} with ours; in the two rows for 4096 at
# {{ long.nn.n4096.library.mhz:.0f}} and {{ long.nt.n4096.library.mhz:.0f}}, and at
# {{ long.nn.n4096.tuned.mhz:.0f}} and {{ long.nt.n4096.tuned.mhz:.0f}}. But each of these numbers rests on two readings, and
# this record does not show how much of the ratio is due to the host. In bursts, where all calls are queued beforehand, the two are level.
# /// otherwise
# At 2048 the sustained ratio is {{ best_over_cublas.n2048.sustained:.2f}}. At those rates our kernel was done every {{ 1e3 * pace.ours:.0f}} µs,
# the library's every {{ 1e3 * pace.library:.0f}} µs. There the card may well wait for the host, and a host's pace is not a
# kernel's speed.
# ///
#
# ### Power decides
#
# In sustained runs the numbers are smaller. The data sheet's peak assumes a clock of {{ sheet.mhz:.0f}} MHz
# [^lockwood-h100]. While our kernel ran at 8192, the card was at {{ long.nn.n8192.tuned.mhz:.0f}} MHz and drew {{ long.nn.n8192.tuned.watts:.0f}}
# W. In the card's own words, the reason for that clock is *{{ long.nn.n8192.tuned.why}}*. At the power limit a busier
# kernel only lowers the clock: if two kernels keep the tensor cores equally busy, the winner is the one that spends
# less power on everything else.
#
# /// exercise | Peak at this clock | 3 minutes
# The tensor cores' peak scales with the clock. Take our kernel at 8192, sustained. What is the peak at its clock, and what
# percentage of *that* peak does it reach?
# /// answer
# {{ sheet.bf16:.0f}} TFLOP/s × {{ long.nn.n8192.tuned.mhz:.0f}} ÷ {{ sheet.mhz:.0f}}; our {{ long.nn.n8192.tuned.rate:.0f}} TFLOP/s is {{ long.nn.n8192.tuned.rate / sheet.bf16 / long.nn.n8192.tuned.mhz * sheet.mhz:.0%}} of it.
#
# How far can you trust that? The clock was read at the end of each block, and a reading is not a mean. For [the table
# with a cold L2](#by-the-clock-of-every-other-page) the card's clock was read once while k14 ran, at {{ cold.tuned.sm_mhz:.0f}}
# MHz. At that clock k14's {{ cold.tuned.tflops:.0f}} TFLOP/s would be {{ cold.tuned.tflops / sheet.bf16 / cold.tuned.sm_mhz * sheet.mhz:.0%}}
# of peak. So at least one of the two readings is off, or the kernel is much busier at the size of that table. Trust them this
# far: the clock is a large part of what is missing at 8192. They cannot say how much of the rest is waiting; a counter of ticks
# could, but none was read during this race.
# ///

# %% tags=["fold"]
longer, rival = {}, {}
for layout, of in races.items():
    longer[layout], rival[layout] = {}, {}
    for size, race in of.items():
        theirs = race.fastest(("cublas", "cublaslt"))
        both = race.sustained(("tuned", theirs, theirs, "tuned"))
        longer[layout][size] = {"tuned": both["tuned"], "library": both[theirs]}
        rival[layout][size] = text(
            {"cublas": "cuBLAS", "cublaslt": "cuBLASLt"}[theirs]
        )
record(long=longer, rival=rival)

# %% [markdown]
# ### By the clock of every other page
#
# Here is one more table, in case you come from a different page. For this table L2 was cold, and the competitors took turns.
#
# /// table
# columns: ["4096, NN, cold L2", "TFLOP/s", "% of peak"]
# rows:
#   - [k04 wgmma, "{{ cold.wgmma.tflops:.0f}}", "{{ cold.wgmma.of_peak:.0%}}"]
#   - [k08 roles, "{{ cold.roles.tflops:.0f}}", "{{ cold.roles.of_peak:.0%}}"]
#   - [k10 persistent, "{{ cold.persistent.tflops:.0f}}", "{{ cold.persistent.of_peak:.0%}}"]
#   - [k14 tuned, "{{ cold.tuned.tflops:.0f}}", "{{ cold.tuned.of_peak:.0%}}"]
#   - [cuBLAS, "{{ cold.cublas.tflops:.0f}}", "{{ cold.cublas.of_peak:.0%}}"]
# ///
#
# And the host? Timed this way, a call of our kernel costs the host {{ cold.tuned.host_us:.0f}} µs, and the product of
# 4096 takes the card {{ cold.tuned.us:.0f}} µs. The product at size 2048 is an eighth of the work, so there a slow host
# soon decides the race.

# %%
from course_kernels.measure import compare

record(
    cold=compare({**RUNGS, "cublas": library.cublas}, square(4096), seconds=0.05)
)

# %% [markdown]
# ## Evenings {.beyond}
#
# One idea each. The files are in `src/course_kernels/gemm/`. Read the head of the file first, then its difference from the rung
# before, then measure the kernel yourself. To see the difference, run `git diff --no-index k08_roles.cu k09_registers.cu` in
# that folder.
#
# ### k07: the widest product
#
# {{ burst.nn.n4096.wide:.0f}} TFLOP/s. k07 has a tile of 128 × 256, and one block on an SM. The difference is [above](#roles).
#
# ### k09, a side note: registers go to those who need them
#
# {{ burst.nn.n4096.registers:.0f}} TFLOP/s. A block gets the same number of registers for each of its threads, here 168. The
# producer gives back all but 40, and each consumer thread takes 232. In `k09_registers.cu` look for `registers_down` and
# `registers_up`.
#
# This rung also shows why there are *two* consumers. With one consumer, a thread would hold 256 sums, more registers than it can have.
# The sums *spill* to memory: {{ code.one_consumer.LDL:.0f}} lines of `LDL` in its machine code, where k08 has {{ code.roles.LDL:.0f}},
# and a speed of {{ alone.one_consumer:.0f}} TFLOP/s. It is a good idea in the wrong place.
#
# ### k11: one delivery for two blocks
#
# {{ burst.nn.n4096.cluster:.0f}} TFLOP/s. Two blocks with tiles one below the other need the same columns of B. Each block asks
# for half of them, and the copy engine delivers to both. In `k11_cluster.cu` look for `load_tile_multicast`, and see
# who gives a place back now: the consumers of two blocks.
#
# ### k12: C leaves by the copy engine
#
# {{ burst.nn.n4096.stored:.0f}} TFLOP/s. A consumer puts its sums into shared memory, a panel at a time, and one of its threads
# orders each panel to be taken away. Find the two barriers: who waits there, and for what?
#
# /// source | src/course_kernels/gemm/k12_stored.cu#store
# ///
#
# ### k13: a different tile for a different size
#
# {{ burst.nn.n4096.by_size:.0f}} TFLOP/s at 4096. Tile, cluster and order are chosen from M, N and K, by a model with a few
# constants in `plans.py`. The kernel is `src/course_kernels/gemm/k13_by_size.cu`; its parts are functions in `by_size.cuh`
# beside it.

# %% [markdown]
# ## Your turn
#
# First mark the sheet and build the ring. You need no GPU for either.
#
# /// lab | ring
# ///
#
# /// exercise | Predict, change, measure
# k10 walks the tiles of C in groups of 16 rows (`GROUP`, a macro in its source). First say what will happen to its speed at 4096
# with groups of 1 and of 64, and why. To answer that, work out how many rows of A and columns of B are in use at once, with
# 132 blocks of 128 × 256 each. Then measure it, if you have a Hopper card: change the number, and race the file against its
# original.
# /// answer
# About 132 tiles run at once. In groups of 1 they form rows: at 4096 there are 16 tiles from left to right, so that is all
# columns of B, and about 8 rows of tiles, one after the other. In groups of 16 they are 16 × 128 = 2048 rows of A and about 8 ×
# 256 = 2048 columns of B, the closest to a square. At 4096 there are only 32 rows of tiles, so a group of 64 has just 32: all rows
# of A, and about 4 × 256 columns of B. The closer to a square, the less is fetched for the same result; at this size L2 hides much of
# the difference. Our run: {{ alone.g1:.0f}} TFLOP/s in groups of 1, {{ alone.g16:.0f}} in groups of 16, {{ alone.g64:.0f}} in
# groups of 64.
# ///
#
# Then do the same with the grader. The kernel is k12, a later rung with two constants to change: `GROUP`, which is 8 there, and
# `STAGES`, which is 4. Predict first, and put the prediction into `my_labs/ring.py`, after your functions:
#
# ```python
# TRIED = {
#     # one of the two, its new number
#     "change": {"STAGES": ...},
#     # "faster", "slower", "the same"
#     "expect": "...",
#     # between which shares of its speed
#     "by": (..., ...),
#     # what is waited for, a sentence
#     "because": "...",
# }
# ```
#
# The grader reads the table and never runs it. Without a GPU `nox -s grade -- ring` checks its form, and says that the rest is
# not graded. With a Hopper card it checks the changed kernel, races it in bursts against the original, and compares your
# prediction with the result. Your sentence is for you and for your neighbour: no machine grades a reason.
#
# /// exercise | Five places instead of four
# Would a fifth place in the ring help? Use [Little's law](../lectures/l3_memory.py#how-many-must-be-walking): suppose that a trip
# takes as long as one step. How many pairs must be in flight?
# /// answer
# One pair is multiplied while one travels: two places would be enough if every trip took that long. Three and four
# places are for trips that take longer, and for the delay with which a consumer gives its place back. A fifth does not fit:
# five times 48 KiB is 240 KiB, and a block may have 227.
# ///

# %% tags=["fold"]
from course_kernels.gemm.by_tma import gemm_by_tma


def in_groups(of):
    """k10, walking its tiles in groups of this many rows."""
    defines = (("GROUP", of),)
    source, shape = k10_persistent.SOURCE, k10_persistent.SHAPE
    return lambda a, b: gemm_by_tma(source, "gemm_persistent", shape, a, b, defines)


field = {f"g{of}": in_groups(of) for of in (1, 16, 64)}
field |= {"one_consumer": k09_registers.one_consumer}
record(alone=Race(field, PROBLEM, square(4096)).burst(rounds=4))

# %% [markdown]
# ## Before you leave
#
# **You can now**
#
# 1. name the three words: *TMA* brings whole tiles, *wgmma* is one order for four warps, *roles* let some fetch and some compute;
# 2. find on a sheet which line stops everybody, and say who ends each of the other waits;
# 3. say what never changed on the way to the top: the formula and the number format and, from k07 on, the instruction in the middle.
#
# You don't beat cuBLAS at math [^shankhdhar2024]. You beat it at logistics.
#
# **Where this leads.** Attention has the same ring with a different meal in it: [Attention, as far as it
# goes](../attention_on_hopper.py). [How every number here is measured](../how_we_measure.py)
# explains how the clocks, checks and counters of all other pages work. [The ledger](../numbers.md) lists each number with its spread.
