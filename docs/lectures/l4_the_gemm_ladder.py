# ---
# id: l4
# title: The GEMM ladder
# description: Build five matrix-multiply kernels, each one idea faster than the one before, and do the arithmetic that predicts their speed.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # The GEMM ladder
#
# By the end of this page you can
#
# - build five matrix-multiply kernels, each from the one before it, and type three of them in the lab;
# - work out by hand, for each of these kernels, how many bytes it asks for, how much it computes, and which roof it
#   will hit first;
# - find the counter that shows whether you were right;
# - and, beyond the core, use the names of the different tiles as the libraries use them.
#
# **The headline: {{ ladder.register_tile.of_peak:.0%}} of peak, four steps above the kernel that everybody writes
# first.** You will have a chance to guess how fast that first kernel is. The library's kernel reaches
# {{ ladder.cublas.of_peak:.0%}}. The rest of the way is the subject of
# [the next lecture](l5_the_top_of_the_ladder.py).

# %% [markdown]
# ## A patient cook
#
# Nearly all the arithmetic in a model has this form: C = A × B, where A, B and C are grids of numbers. The short name
# of this job is *GEMM*, general matrix multiply. To compute one number of C you need a row of A and a column of B.
#
# /// figure | docs/assets/figures/sgemm_one_number.svg
# alt: "Three grids. A on the left with row m marked, B above with column n marked, C where they meet, with one number marked. At each of the K steps one number of A and one of B are fetched, multiplied, and added to the sum: eight bytes for one multiply-add."
# caption: This is how one number of C is computed. All the others are computed in the same way.
# ///
#
# Think of a patient cook at her board. For every dish she fetches an ingredient from A and one from B, chops them
# together, drops the result into the pot, and walks to fetch the next pair. She makes no mistakes. Watch her walk.

# %%
A = [[1, 2, 3], [4, 5, 6]]
B = [[7, 8], [9, 10], [11, 12]]
C = [[0, 0], [0, 0]]

multiply_adds = fetched = 0
for m in range(2):
    for n in range(2):
        for k in range(3):
            C[m][n] += A[m][k] * B[k][n]
            multiply_adds += 1
            fetched += 2

print("C =", C)
print(multiply_adds, "multiply-adds, and she fetched", fetched, "numbers")
print("A and B together hold", 2 * 3 + 3 * 2)

# %% [markdown] Each number was fetched twice here, because each number is used twice. In a grid of 4096 by 4096, each
# number is used 4096 times. This reuse makes the job different from every job in [the last lecture](l3_memory.py): a
# copy and a transpose use each number only once. So work out two totals: the bytes that *must* be carried and the bytes
# that the patient cook *asks for*.

# %%
N = 4096
multiply_adds = N**3
must = 3 * N**2 * 4  # read A and B once, write C once, 4 bytes a number
asks = multiply_adds * 2 * 4  # two numbers for each multiply-add
print(f"must be carried: {must:15,} bytes")
print(f"asked for:       {asks:15,} bytes")

# %% tags=["fold"]
import torch
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

name = torch.cuda.get_device_name()
sheet = machine_for(name)
if sheet is None:
    raise RuntimeError(
        f"{name}: no data sheet in course_kernels/measure/machine.py"
    )
sms = torch.cuda.get_device_properties(0).multi_processor_count

record(
    card={
        "sms": quantity(sms, how="device"),
        "bandwidth": quantity(sheet.bandwidth_gb_per_s, "GB/s", "given"),
        "peak": quantity(sheet.peak_tflops["fp32"], "TFLOP/s", "given"),
    },
    job={
        "must": quantity(must, "B"),
        "asks": quantity(asks, "B"),
        "intensity": quantity(2 * multiply_adds / must, "FLOP/B"),
        "asked_intensity": quantity(2 * multiply_adds / asks, "FLOP/B"),
    },
)

# %% [markdown]
# /// table
# columns: ["4096 × 4096", "GB", "FLOP for each byte", "time for the bytes alone, ms"]
# rows:
#   - ["what must be carried", "{{ job.must / 1e9:.1f }}", "{{ job.intensity:.0f }}", "{{ job.must / card.bandwidth / 1e6:.2f }}"]
#   - ["what the cook asks for", "{{ job.asks / 1e9:.0f }}", "{{ job.asked_intensity:.2f }}", "{{ job.asks / card.bandwidth / 1e6:.0f }}"]
# caption: "The last column assumes that every byte comes from HBM at the rate of the data sheet. The arithmetic alone takes {{ ladder.cublas.compute_floor_us / 1e3:.1f }} ms at the data sheet's peak."
# ///
#
# The *arithmetic intensity*, FLOP per byte, has two values here, and the larger is
# {{ job.intensity / job.asked_intensity:.0f }} times the smaller. The card's ridge is at
# {{ card.peak / card.bandwidth * 1e3:.0f }} FLOP per byte. So the *job* is bound by arithmetic, and by a wide margin.
# Whether a *kernel* is bound by arithmetic depends on how often it fetches the same number again.
#
# /// exercise | A flat multiply | 3 minutes
# A is 1 × 4096, and B is 4096 × 4096. How many FLOP per byte does their product take, at best? On which side of the
# ridge is this job?
# /// answer
# The product takes 2 × 4096² FLOP, and B alone has 4 × 4096² bytes: half a FLOP per byte. That is far on the memory
# side of the ridge, and no tile can help, because each number of B is used only *once*. You get reuse only when both M
# and N are large.
# ///

# %% [markdown]
# ## What an SM can do in one tick
#
# On paper, the job has a roof. But a kernel does not run on paper. It is held back by whatever runs out first on the SM
# (the room) where it runs. There are four candidates, and you know three of them. The fourth is the *issue slot* (a
# call): each scheduler has one issue slot per tick, and uses it to give one warp its next instruction. From here on
# this page uses the technical terms; the [kitchen key](../start_here.py#the-kitchen-key) lists them with their kitchen
# words. Here is what each of the four can do in *one tick of the clock*.
#
# | on an SM | can do, in one tick | and that is a roof of |
# |---|---|---|
# | **lanes** (stoves) | 128 multiply-adds | 128 multiply-adds |
# | **issue slots**: four schedulers, one instruction of one warp each | 4 × 32 = 128 lanes' worth | 128, *if nothing but multiply-adds is issued* |
# | **shared memory** (the tray), and L1 | one *wavefront* (a turn), at most 32 words | as many as a wavefront can feed |
# | **L2 and HBM** (the hall): what they send | see below | as many as a byte can feed |
#
# Look at the second line. There are exactly enough issue slots to keep the lanes busy. So every other instruction, such
# as a load or a step of a loop counter, takes the place of a warp's multiply-add. A warp whose instructions are *load,
# load, multiply-add* uses at best one slot in three to multiply.
#
# For L2 and HBM we have our own numbers. In the last lecture L2 delivered {{ l3.reading.k16384 / card.sms:.0f }}
# bytes per tick to each SM. According to the data sheet, HBM delivers
# {{ card.bandwidth * 1e3 / l3.card.clock / card.sms:.0f }} bytes per tick to each SM.
#
# Here are all five kernels, with one line for each. You do not need to understand yet how they work: each kernel has
# its own section below.
#
# | kernel | what a thread computes of C | words it takes in one step along K | multiply-adds |
# |---|---|---|---|
# | **naive** | one number; a warp's numbers are one below the other | 1 of A, 1 of B | 1 |
# | **coalesced** | one number; a warp's numbers are side by side | 1 of A, 1 of B | 1 |
# | **shared tiles** | the same, but its words come from shared memory, out of tiles of 32 × 32 | 1 of A, 1 of B | 1 |
# | **register column** | 8 numbers, one below the other; block tiles 64 wide | 8 of A, 1 of B | 8 |
# | **register tile** | 8 × 8 numbers; block tiles 128 wide | 8 of A, 8 of B | 64 |
#
# Take one warp and one step along K. Which addresses do its 32 lanes want? The longest queue at a bank decides how
# many wavefronts the step takes. L1 is the same memory as shared memory, so we treat it as if it had the same 32
# banks. The hardware's counters will show whether this assumption is right.
#
# ### The same count, as Python {.beyond}

# %%
from collections import Counter

LANES = range(32)
K = 4096  # words from one row of A to the next


def turns(places):
    """The longest queue for different words at any of the 32 windows."""
    return max(Counter(place % 32 for place in set(places)).values())


one_word = [0 for lane in LANES]
neighbours = list(LANES)
rows_of_a = [lane * K for lane in LANES]

# For one step along k: turns for the words of A, turns for those of B,
# words that a lane takes, and multiply-adds that it makes of them.
STEPS = {
    "naive": (turns(rows_of_a), turns(one_word), 2, 1),
    "coalesced": (turns(one_word), turns(neighbours), 2, 1),
    "shared_tiles": (turns(one_word), turns(neighbours), 2, 1),
    "register_column": (8 * turns(one_word), turns(neighbours), 8 + 1, 8),
    # As if nobody queued. Rung 5 comes back to this.
    "register_tile": (8, 8, 8 + 8, 64),
}
BLOCK_TILES = {"shared_tiles": 32, "register_column": 64, "register_tile": 128}

hand = {}
for rung, (of_a, of_b, words, fmas) in STEPS.items():
    print(f"{rung:16}{of_a + of_b:3} turns{words:3} words{fmas:3} multiply-adds")
    by_tray = 32 * fmas / (of_a + of_b)
    by_calls = 128 * fmas / (fmas + words)
    hand[rung] = {
        "turns": quantity((of_a + of_b) / fmas),  # for 32 multiply-adds
        "by_tray": quantity(by_tray),
        "by_calls": quantity(by_calls),
        "best": quantity(min(by_tray, by_calls)),
    }
hall = {
    rung: quantity(4 * (1 / tile + 1 / tile), "B")
    for rung, tile in BLOCK_TILES.items()
}
record(hand=hand, hall=hall)

# %% [markdown]
# ### Five forecasts
#
# Divide the multiply-adds by the wavefronts or issue slots that they take, and you get the largest number of
# multiply-adds that an SM can do in one tick. Here is the first row by hand:
#
# - *By shared memory.* The 32 words of A are 4096 words apart. 32 divides 4096, so all 32 words are in one bank (a
#   window), which takes 32 wavefronts. All lanes want the same word of B, which takes one wavefront. That makes
#   33 wavefronts for 32 multiply-adds, or 32 ÷ 33 = {{ hand.naive.by_tray:.2f }} multiply-adds per tick.
# - *By issue slots.* Each multiply-add needs two loads. So a multiply-add gets one slot in three: 128 ÷ 3 =
#   {{ hand.naive.by_calls:.0f }}.
#
# To work out the roof of L2 you need a kernel with a tile, so take the third row. In a tile of 32 × 32, each number
# that is carried is used 32 times. So a multiply-add costs 4/32 bytes of A and 4/32 bytes of B, together a quarter of a
# byte. The bytes that L2 gives an SM per tick are enough for {{ l3.reading.k16384 / card.sms / hall.shared_tiles:.0f }}
# multiply-adds. The lowest roof decides.
#
# /// table
# columns: [kernel, "wavefronts for 32 multiply-adds", "by shared memory", "by issue slots", "by L2"]
# rows:
#   - [naive, "{{ hand.naive.turns:.2f }}", "**{{ hand.naive.by_tray:.2f }}**", "{{ hand.naive.by_calls:.0f }}", "?"]
#   - [coalesced, "{{ hand.coalesced.turns:.2f }}", "**{{ hand.coalesced.by_tray:.0f }}**", "{{ hand.coalesced.by_calls:.0f }}", "?"]
#   - [shared tiles, "{{ hand.shared_tiles.turns:.2f }}", "**{{ hand.shared_tiles.by_tray:.0f }}**", "{{ hand.shared_tiles.by_calls:.0f }}", "{{ l3.reading.k16384 / card.sms / hall.shared_tiles:.0f }}"]
#   - [register column, "{{ hand.register_column.turns:.2f }}", "**{{ hand.register_column.by_tray:.0f }}**", "{{ hand.register_column.by_calls:.0f }}", "{{ l3.reading.k16384 / card.sms / hall.register_column:.0f }}"]
#   - [register tile, "{{ hand.register_tile.turns:.2f }}", "{{ hand.register_tile.by_tray:.0f }}", "**{{ hand.register_tile.by_calls:.0f }}**", "{{ l3.reading.k16384 / card.sms / hall.register_tile:.0f }}"]
# caption: "The numbers are multiply-adds in one tick of one SM; the lanes could do 128. Each word is counted as a separate load."
# ///
#
# You now have five forecasts before anything has run. In all of them except one, the lowest roof is shared memory.
# Would you have bet on L2 or HBM? With a tile, neither of these runs out first. (Where you see a question mark, the
# kernel has no tile, and nobody knows how many of its requests L1 can serve. The hardware's counters will show how
# many.)
#
# From here on, the *forecast* is the lowest of these roofs, times {{ card.sms:.0f }} SMs, times the clock rate at which
# the card ran. The forecast leaves out waiting, and every instruction except loads and multiply-adds. So a kernel
# should stay below its forecast. If a kernel exceeds it, we have overlooked something.
#
# /// exercise | The sixth
# A thread keeps 16 × 8 sums, and no lane waits in a queue. How many wavefronts do 32 multiply-adds take? What do
# shared memory and the issue slots allow?
# /// answer
# The thread takes 24 words for 128 multiply-adds. That makes 24 / 128 = 0.19 wavefronts, so shared memory would allow
# 171, more than there are lanes. The issue slots allow 128 × 128 / (128 + 24) = 108. From the register tile on, the
# issue slots are the lowest roof, and the way up is to spend fewer of them on other instructions. The
# next lecture begins there.
# ///

# %% [markdown]
# ## One race
#
# All five kernels, and cuBLAS with TF32 off, take turns on the same A and B, which are 4096 by 4096 in fp32. First each
# answer is checked against float64. Then the hardware's counters are read once for each kernel. Make your predictions
# before you read on: the results are shown rung by rung.

# %%
from course_kernels.measure import compare
from course_kernels.problem import Workload
from course_kernels.sgemm import (
    k01_naive,
    k02_coalesced,
    k03_shared_tiles,
    k04_register_column,
    k05_register_tile,
    library,
)

RUNGS = {
    "naive": k01_naive,
    "coalesced": k02_coalesced,
    "shared_tiles": k03_shared_tiles,
    "register_column": k04_register_column,
    "register_tile": k05_register_tile,
    "cublas": library.cublas,
}
square = Workload.of("float32", M=N, N=N, K=N)
ladder = compare(RUNGS, square, seconds=0.3)
record(ladder=ladder)

# %% tags=["fold"]
from course_kernels.measure import count_many

REGISTERS = "launch__registers_per_thread"
SHARED = "launch__shared_mem_per_block_static"
SHARED_MORE = "launch__shared_mem_per_block_dynamic"
SEATS = "sm__warps_active.avg.pct_of_peak_sustained_active"
CALLS = "smsp__issue_active.avg.pct_of_peak_sustained_active"
INSTRUCTIONS = "smsp__inst_executed.sum"
TURNS = "l1tex__data_pipe_lsu_wavefronts.sum"
TRAY = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
FROM_L2 = "lts__t_sectors_srcunit_tex_op_read.sum"
QUEUES = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
L2_BUSY = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
HBM_BUSY = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
# What a warp that is not called is waiting for: warps in that state for each call.
WAITS = {
    reason: f"smsp__average_warps_issue_stalled_{ncu}_per_issue_active.ratio"
    for reason, ncu in {
        "hall": "long_scoreboard",
        "hall_queue": "lg_throttle",
        "tray": "short_scoreboard",
        "tray_queue": "mio_throttle",
        "barrier": "barrier",
        "turn": "not_selected",
        "pipe": "math_pipe_throttle",
        "fixed": "wait",
    }.items()
}
METRICS = (
    *(REGISTERS, SHARED, SHARED_MORE, SEATS, CALLS, INSTRUCTIONS, TURNS, TRAY),
    *(SECTORS, REQUESTS, FROM_L2, QUEUES, L2_BUSY, HBM_BUSY, *WAITS.values()),
)
jobs = {rung: (kernel, square) for rung, kernel in RUNGS.items()} | {
    f"naive_{size}": (k01_naive, Workload.of("float32", M=size, N=size, K=size))
    for size in (1000, 1023, 1024)  # for a puzzle further down
}
counted = dict(zip(jobs, count_many(list(jobs.values()), METRICS), strict=True))


def tally(rung, metric):
    """One counter of the kernel that does a rung's work."""
    return counted[rung].kernels[-1]["metrics"][metric]["value"]


def signs(rung):
    """Vital signs of one rung."""
    size = counted[rung].workload["dims"]["M"]
    warps_fmas = size**3 / 32
    numbers = {
        "registers": tally(rung, REGISTERS),
        "shared_kib": (tally(rung, SHARED) + tally(rung, SHARED_MORE)) / 1024,
        "seats": tally(rung, SEATS) / 100,
        "calls": tally(rung, CALLS) / 100,
        "tray": tally(rung, TRAY) / 100,
        "turns": tally(rung, TURNS) / warps_fmas,
        "instructions": tally(rung, INSTRUCTIONS) / warps_fmas,
        "sectors": tally(rung, SECTORS) / tally(rung, REQUESTS),
        "hall": 32 * tally(rung, FROM_L2) / size**3,
        "queues": tally(rung, QUEUES) / warps_fmas,
        "l2": tally(rung, L2_BUSY) / 100,
        "hbm": tally(rung, HBM_BUSY) / 100,
    }
    return {name: quantity(value, how="counted") for name, value in numbers.items()}


def waits(rung):
    """Shares of the waiting, over the reasons above."""
    found = {reason: tally(rung, metric) for reason, metric in WAITS.items()}
    return {
        reason: quantity(value / sum(found.values()), how="counted")
        for reason, value in found.items()
    }


record(
    counted=counted,
    vital={rung: signs(rung) for rung in jobs},
    waits={rung: waits(rung) for rung in RUNGS},
)

# %% [markdown]
# ## Rung 1: one thread, one number
#
# This kernel takes the formula literally. A thread picks an m and an n and adds up K products. Everybody writes
# this kernel first. Look at where m comes from: `threadIdx.x` counts rows.
#
# /// source | src/course_kernels/sgemm/k01_naive.cu
# ///
#
# /// figure | docs/assets/figures/sgemm_naive.svg
# alt: "The lanes of a warp compute numbers of C that are one below the other. In one step they want 32 numbers of A, each in a row of its own, and all in one bank: 32 wavefronts. And they all want the same number of B: one wavefront. Together that is 33 wavefronts for 32 multiply-adds."
# caption: Neighbours in the warp read numbers of A that are far apart.
# ///
#
# /// predict | The kernel takes 33 wavefronts for 32 multiply-adds. What percentage of peak will it reach?
# - [ladder.naive.of_peak < 0.03] About 1, or less
# - [0.03 <= ladder.naive.of_peak < 0.2] About 10
# - [ladder.naive.of_peak >= 0.2] About 30
# /// reveal
# **{{ ladder.naive.of_peak:.2%}}.** The forecast was {{ hand.naive.by_tray:.2f }} multiply-adds per tick, out of 128.
# That is {{ hand.naive.by_tray / 128:.2%}}.
#
# /// define | forecast.naive = 2 * hand.naive.best * card.sms * ladder.naive.sm_mhz / 1e6
# unit: TFLOP/s
# what: naive SGEMM at most, by the lowest roof on paper
# ///
#
# /// table
# columns: ["", naive]
# rows:
#   - ["**% of peak**", "**{{ ladder.naive.of_peak:.2%}}**"]
#   - ["% of cuBLAS", "{{ naive_of_cublas:.2%}}"]
#   - ["TFLOP/s", "{{ ladder.naive.tflops:.2f }}"]
#   - ["forecast, TFLOP/s", "{{ forecast.naive:.2f }}"]
#   - ["**wavefronts for 32 multiply-adds**, by hand", "{{ hand.naive.turns:.0f }}"]
#   - ["the same, counted", "**{{ vital.naive.turns:.1f }}**"]
#   - ["wavefronts used, of all ticks", "{{ vital.naive.tray:.0%}}"]
#   - ["issue slots used", "{{ vital.naive.calls:.0%}}"]
#   - ["sectors per load", "{{ vital.naive.sectors:.1f }}"]
#   - ["bytes from L2 per multiply-add", "{{ vital.naive.hall:.2f }}"]
#   - ["registers per thread", "{{ vital.naive.registers:.0f }}"]
#   - ["shared memory per block", "none"]
#   - ["occupancy, counted", "{{ vital.naive.seats:.0%}}"]
# caption: "By hand, a load of A touches 32 sectors and a load of B touches 1, which makes 16.5 on average."
# ///
#
# /// define | naive_of_cublas = ladder.cublas.us / ladder.naive.us
# unit: "1"
# what: speed of the naive SGEMM as a part of cuBLAS's, 4096³, fp32 without TF32
# ///
#
# /// claim | 0.85 * forecast.naive < ladder.naive.tflops < 1.1 * forecast.naive and abs(vital.naive.turns - 33) < 0.5 and vital.naive.tray > 0.9
# The forecast was {{ forecast.naive:.2f }} TFLOP/s, and the kernel reaches {{ ladder.naive.tflops:.2f }}. The forecast
# was 33 wavefronts, and the hardware counted {{ vital.naive.turns:.1f }}, with a wavefront in {{ vital.naive.tray:.0%}}
# of all ticks. So the kernel has reached its roof, and requests queue in L1 just as they would in shared memory with 32
# banks. The reason why this kernel is slow is no mystery: 32 lanes stand in line at one bank.
# /// otherwise
# The forecast was {{ forecast.naive:.2f }} TFLOP/s, and the kernel reaches {{ ladder.naive.tflops:.2f }}. The
# hardware counted {{ vital.naive.turns:.1f }} wavefronts for 32 multiply-adds.
# ///
#
# /// claim | vital.naive.seats > 0.9 and vital.naive.calls < 0.1
# Now look at the number that people like to quote first. Occupancy is {{ vital.naive.seats:.0%}}: practically all seats
# are taken. Everybody is there, but hardly anybody works: the schedulers find a warp to issue in only
# {{ vital.naive.calls:.1%}} of the ticks.
# /// otherwise
# Occupancy is {{ vital.naive.seats:.0%}}; the schedulers find a warp to issue in {{ vital.naive.calls:.0%}} of the ticks.
# ///
#
# **Why not faster?** The rows of A begin 4096 words apart, and 32 divides 4096. So all 32 lanes want the same bank.
#
# /// claim | ladder.naive.ms > 1.5 * job.asks / card.bandwidth / 1e6
# Here is one more comparison, with an absurd result. The patient cook asks for {{ job.asks / 1e9:.0f }} GB. If
# *no cache existed* and HBM served every byte at its full rate, that would take
# {{ job.asks / card.bandwidth / 1e6:.0f }} ms. The naive kernel, with the help of all the caches, takes
# {{ ladder.naive.ms:.0f }} ms.
# /// otherwise
# The patient cook asks for {{ job.asks / 1e9:.0f }} GB. If HBM served every byte at its full rate, that would take
# {{ job.asks / card.bandwidth / 1e6:.0f }} ms. The naive kernel takes {{ ladder.naive.ms:.0f }}.
# ///
# ///
#
# /// exercise | Not for bytes | 1 minute
# If the naive kernel does not wait for bytes, what does it wait for?
# /// answer
# It waits for wavefronts. HBM was busy for {{ vital.naive.hbm:.1%}} of the time and L2 for {{ vital.naive.l2:.1%}}. Of
# the 8 bytes that each multiply-add asks for, {{ vital.naive.hall:.2f }} came from L2: L1 had nearly everything else.
# But L1 delivers one word per wavefront, although its 32 banks could deliver 32 words. Bytes are only one of the four
# roofs.
# ///

# %% [markdown]
# ## Rung 2: stand side by side
#
# Swap two indices. Now `threadIdx.x` counts columns.
#
# /// diff | src/course_kernels/sgemm/k01_naive.cu | src/course_kernels/sgemm/k02_coalesced.cu
# ///
#
# /// figure | docs/assets/figures/sgemm_coalesced.svg
# alt: "The lanes of a warp compute numbers of C that are side by side. In one step they want 32 numbers of B side by side: four sectors, one wavefront. And they all want the same number of A: one wavefront. Together that is two wavefronts for 32 multiply-adds."
# caption: The arithmetic is the same, and so are the numbers that are asked for; only the neighbours differ.
# ///
#
# /// predict | The kernel does the same multiply-adds and asks for the same 8 bytes with each. How many times as fast will it be?
# - [ladder.naive.us / ladder.coalesced.us < 1.4] As fast as before
# - [1.4 <= ladder.naive.us / ladder.coalesced.us < 5] About twice
# - [ladder.naive.us / ladder.coalesced.us >= 5] About ten times, or more
# /// reveal
# **{{ ladder.naive.us / ladder.coalesced.us:.1f }} times as fast.** The forecast allows
# {{ hand.naive.turns / hand.coalesced.turns:.1f }} times: 33 wavefronts became 2.
#
# /// define | forecast.coalesced = 2 * hand.coalesced.best * card.sms * ladder.coalesced.sm_mhz / 1e6
# unit: TFLOP/s
# what: coalesced SGEMM at most, by the lowest roof on paper
# ///
#
# /// table
# columns: ["", naive, coalesced]
# rows:
#   - ["**% of peak**", "{{ ladder.naive.of_peak:.2%}}", "**{{ ladder.coalesced.of_peak:.1%}}**"]
#   - ["% of cuBLAS", "{{ naive_of_cublas:.1%}}", "{{ coalesced_of_cublas:.1%}}"]
#   - ["TFLOP/s", "{{ ladder.naive.tflops:.2f }}", "{{ ladder.coalesced.tflops:.2f }}"]
#   - ["forecast, TFLOP/s", "{{ forecast.naive:.2f }}", "{{ forecast.coalesced:.2f }}"]
#   - ["wavefronts for 32 multiply-adds", "{{ vital.naive.turns:.1f }}", "{{ vital.coalesced.turns:.2f }}"]
#   - ["**sectors per load**", "{{ vital.naive.sectors:.1f }}", "**{{ vital.coalesced.sectors:.1f }}**"]
#   - ["bytes from L2 per multiply-add", "{{ vital.naive.hall:.2f }}", "{{ vital.coalesced.hall:.2f }}"]
#   - ["instructions for 32 multiply-adds", "{{ vital.naive.instructions:.1f }}", "{{ vital.coalesced.instructions:.1f }}"]
#   - ["wavefronts used, of all ticks", "{{ vital.naive.tray:.0%}}", "{{ vital.coalesced.tray:.0%}}"]
#   - ["issue slots used", "{{ vital.naive.calls:.0%}}", "{{ vital.coalesced.calls:.0%}}"]
#   - ["registers per thread", "{{ vital.naive.registers:.0f }}", "{{ vital.coalesced.registers:.0f }}"]
#   - ["occupancy, counted", "{{ vital.naive.seats:.0%}}", "{{ vital.coalesced.seats:.0%}}"]
# ///
#
# /// define | coalesced_of_cublas = ladder.cublas.us / ladder.coalesced.us
# unit: "1"
# what: speed of the coalesced SGEMM as a part of cuBLAS's, 4096³, fp32 without TF32
# ///
#
# /// claim | ladder.coalesced.us < 0.2 * ladder.naive.us and abs(vital.coalesced.sectors - 2.5) < 0.2
# A load touches {{ vital.coalesced.sectors:.1f }} sectors on average, compared with {{ vital.naive.sectors:.1f }}
# before. By hand the average is 2.5: 4 for a load of B and 1 for a load of A. Swap two indices, and the kernel takes
# {{ ladder.coalesced.us / ladder.naive.us:.0%}} of the time. No other step on this page takes so little typing.
# /// otherwise
# A load touches {{ vital.coalesced.sectors:.1f }} sectors on average, compared with {{ vital.naive.sectors:.1f }}
# before. The kernel takes {{ ladder.coalesced.us / ladder.naive.us:.0%}} of the time.
# ///
# ///
#
# /// claim | ladder.coalesced.tflops < 0.8 * forecast.coalesced and vital.coalesced.instructions > 6
# But the coalesced kernel stays well below its forecast. The forecast allowed three instructions for 32 multiply-adds:
# two loads and the multiply-add itself. The counters show {{ vital.coalesced.instructions:.1f }}, because the kernel
# also has to compute addresses and count the iterations of the loop, in 64 bits. The schedulers issue in
# {{ vital.coalesced.calls:.0%}} of the ticks, and {{ vital.coalesced.tray:.0%}} of the wavefronts are used. So the
# kernel reaches neither roof. The rest of the time is spent waiting, and {{ waits.coalesced.hall:.0%}} of that waiting
# is for a word from L1 or beyond.
# /// otherwise
# The counters show {{ vital.coalesced.instructions:.1f }} instructions for 32 multiply-adds. The schedulers issue in
# {{ vital.coalesced.calls:.0%}} of the ticks, and {{ vital.coalesced.tray:.0%}} of the wavefronts are used.
# ///
#
# **Why not faster?** Even on paper, two wavefronts for 32 multiply-adds mean a roof of
# {{ hand.coalesced.by_tray:.0f }} multiply-adds per tick, although the lanes could do 128.
#
# /// exercise | Block of 16 | 3 minutes
# Suppose the block were 16 × 16 threads instead of 32 × 32. A warp then covers two rows of 16 columns. How many
# wavefronts and how many sectors does one step then take?
# /// answer
# For B, 16 neighbours, or 64 bytes, take 2 sectors and 1 wavefront. For A, two numbers that are one row of 4096 words
# apart take 2 sectors, and because they are in the same bank, 2 wavefronts. Together that makes 3 wavefronts instead of 2.
# ///

# %% [markdown]
# ## Rung 3: carry a tile into shared memory
#
# Now comes the classic idea. The threads of a block cover a tile of C of 32 × 32 numbers. In 32 steps along K, all
# these threads together want 32 × 32 numbers of A and 32 × 32 numbers of B. Each of those numbers is wanted by *32*
# threads: all threads of a row want the same number of A, and all threads of a column want the same number of B. So carry
# each number only once.
#
# Each thread brings one number of A and one of B into shared memory. All threads wait. Then each thread reads 32
# numbers of A and 32 of B from shared memory. All threads wait again, and then they bring in the next pair of tiles.
#
# /// figure | docs/assets/figures/sgemm_shared_tiles.svg
# alt: "A block makes one tile of C. A tile of A and a tile of B are in the block's shared memory; after use, the next tile along the row of A and the next tile down the column of B take their place. L1 and L2 are asked for one number instead of 32. Shared memory still delivers eight bytes for each multiply-add."
# caption: The tile of C stays. The tiles of A and B pass through shared memory.
# ///
#
# /// diff | src/course_kernels/sgemm/k02_coalesced.cu | src/course_kernels/sgemm/k03_shared_tiles.cu
# ///
#
# /// predict | L1 and L2 are asked for one number instead of 32. How much faster will it be?
# - [ladder.coalesced.us / ladder.shared_tiles.us < 2] Less than twice
# - [2 <= ladder.coalesced.us / ladder.shared_tiles.us < 16] Several times
# - [ladder.coalesced.us / ladder.shared_tiles.us >= 16] 32 times
# /// reveal
# **{{ ladder.coalesced.us / ladder.shared_tiles.us:.2f }} times as fast.** Look at the forecast again: in the column
# *by shared memory*, nothing has changed.
#
# /// define | forecast.shared_tiles = 2 * hand.shared_tiles.best * card.sms * ladder.shared_tiles.sm_mhz / 1e6
# unit: TFLOP/s
# what: SGEMM with shared tiles at most, by the lowest roof on paper
# ///
#
# /// table
# columns: ["", coalesced, shared tiles]
# rows:
#   - ["**% of peak**", "{{ ladder.coalesced.of_peak:.1%}}", "**{{ ladder.shared_tiles.of_peak:.1%}}**"]
#   - ["% of cuBLAS", "{{ coalesced_of_cublas:.1%}}", "{{ shared_tiles_of_cublas:.1%}}"]
#   - ["TFLOP/s", "{{ ladder.coalesced.tflops:.2f }}", "{{ ladder.shared_tiles.tflops:.2f }}"]
#   - ["forecast, TFLOP/s", "{{ forecast.coalesced:.2f }}", "{{ forecast.shared_tiles:.2f }}"]
#   - ["wavefronts for 32 multiply-adds", "{{ vital.coalesced.turns:.2f }}", "{{ vital.shared_tiles.turns:.2f }}"]
#   - ["**bytes from L2 per multiply-add**", "{{ vital.coalesced.hall:.2f }}", "**{{ vital.shared_tiles.hall:.2f }}**"]
#   - ["instructions for 32 multiply-adds", "{{ vital.coalesced.instructions:.1f }}", "{{ vital.shared_tiles.instructions:.1f }}"]
#   - ["wavefronts used, of all ticks", "{{ vital.coalesced.tray:.0%}}", "{{ vital.shared_tiles.tray:.0%}}"]
#   - ["issue slots used", "{{ vital.coalesced.calls:.0%}}", "{{ vital.shared_tiles.calls:.0%}}"]
#   - ["registers per thread", "{{ vital.coalesced.registers:.0f }}", "{{ vital.shared_tiles.registers:.0f }}"]
#   - ["shared memory per block, KiB", "{{ vital.coalesced.shared_kib:.1f }}", "{{ vital.shared_tiles.shared_kib:.1f }}"]
#   - ["occupancy, counted", "{{ vital.coalesced.seats:.0%}}", "{{ vital.shared_tiles.seats:.0%}}"]
# ///
#
# /// define | shared_tiles_of_cublas = ladder.cublas.us / ladder.shared_tiles.us
# unit: "1"
# what: speed of SGEMM with shared tiles as a part of cuBLAS's, 4096³, fp32 without TF32
# ///
#
# /// claim | 0.4 * ladder.coalesced.us < ladder.shared_tiles.us < 0.9 * ladder.coalesced.us and vital.shared_tiles.hall > 0.6 * vital.coalesced.hall
# Textbooks begin with shared memory, but here it gains only a factor of
# {{ ladder.coalesced.us / ladder.shared_tiles.us:.2f }}. The row in bold shows why the factor is not larger. The tile
# should reduce the bytes from L2 to {{ hall.shared_tiles:.2f }} per multiply-add, and it does:
# {{ vital.shared_tiles.hall:.2f }} bytes were counted. But there were only {{ vital.coalesced.hall:.2f }} bytes before:
# L1 had already been serving the reuse within a block, although nobody had asked it to. The tile did save instructions:
# there were {{ vital.coalesced.instructions:.1f }} before, and there are {{ vital.shared_tiles.instructions:.1f }} now.
# It also reduced the waiting for L1 and whatever is beyond L1, from {{ waits.coalesced.hall:.0%}} of all waiting to
# {{ waits.shared_tiles.hall:.0%}}.
# /// otherwise
# Shared memory gains a factor of {{ ladder.coalesced.us / ladder.shared_tiles.us:.2f }} here. The kernel fetches
# {{ vital.shared_tiles.hall:.2f }} bytes from L2 per multiply-add, compared with {{ vital.coalesced.hall:.2f }}
# before and {{ hall.shared_tiles:.2f }} worked out by hand.
# ///
#
# (The counted figure can be a little lower than the figure worked out by hand, very likely because
# one answer from L2 sometimes serves several SMs, as you saw [in the last lecture](l3_memory.py#how-much-at-once).)
# ///
#
# /// claim | vital.shared_tiles.tray > 0.75 and vital.shared_tiles.calls < 0.6
# Now the kernel is near a roof: {{ vital.shared_tiles.tray:.0%}} of all wavefronts of shared memory are used.
# /// otherwise
# {{ vital.shared_tiles.tray:.0%}} of all wavefronts of shared memory are used.
# ///
#
# So why keep the tile? With the tile, *you* decide what is in shared memory, and for how long. The next two rungs build
# on this control.

# %% [markdown]
# ### Who saved the wavefronts? {.beyond}
#
# /// claim | vital.shared_tiles.turns < 1.8 and ladder.shared_tiles.tflops > 0.9 * forecast.shared_tiles
# But something does not fit. The kernel reaches {{ ladder.shared_tiles.tflops:.2f }} TFLOP/s against a forecast of
# {{ forecast.shared_tiles:.2f }}, although the forecast left out all waiting. And the hardware counted
# {{ vital.shared_tiles.turns:.2f }} wavefronts, stores included, where we had counted 2. Who saved the wavefronts?
# /// otherwise
# The hardware counted {{ vital.shared_tiles.turns:.2f }} wavefronts for 32 multiply-adds, where we had
# counted 2 by hand.
# ///
#
# Look at what the compiler did with the inner loop. `LDS` is a load from shared memory, `LDS.128` is a load of 16
# bytes, and `FFMA` is a multiply-add.

# %% tags=["fold"]
import re

from course_kernels.cuda.architecture import arch_of
from course_kernels.cuda.compile import compile_cubin
from course_kernels.cuda.disassemble import sass

ARCH = arch_of(torch.cuda.get_device_capability())


def loads_and_work(kernel):
    """How many instructions of these kinds the machine code holds."""
    code = sass(compile_cubin(kernel.SOURCE, ARCH))
    return Counter(re.findall(r"\b(LDS(?:\.128)?|FFMA) ", code))


found = {
    rung: loads_and_work(RUNGS[rung])
    for rung in ("shared_tiles", "register_column", "register_tile")
}
record(
    code={
        rung: {
            "fmas": quantity(kinds["FFMA"], how="counted"),
            "words": quantity(kinds["LDS"], how="counted"),
            "fours": quantity(kinds["LDS.128"], how="counted"),
        }
        for rung, kinds in found.items()
    }
)
for rung, kinds in found.items():
    print(f"{rung:16}", dict(kinds))

# %% [markdown] If you read the source literally, 32 steps take 64 loads. The machine code has
# {{ code.shared_tiles.words:.0f }} loads of one word and {{ code.shared_tiles.fours:.0f }} of four words:
# {{ code.shared_tiles.words + code.shared_tiles.fours:.0f }} loads for {{ code.shared_tiles.fmas:.0f }} multiply-adds.
# A lane wants four neighbouring words in a row of A's tile, one after another. So the compiler fetches all four with
# one load. For B the compiler cannot do so, because the next word is one row further on. *We counted words; the
# compiler counts loads.* Keep this difference in mind for the rungs below.
#
# /// claim | abs(vital.shared_tiles.turns - (code.shared_tiles.words + 2 * code.shared_tiles.fours + 4) / code.shared_tiles.fmas) < 0.05
# Can you now account for the number of wavefronts? To bring in the two tiles, a thread makes four more accesses in each
# round: two loads and two stores. If every access took one wavefront, that would make
# {{ (code.shared_tiles.words + code.shared_tiles.fours + 4) / code.shared_tiles.fmas:.2f }} wavefronts for 32
# multiply-adds. The counter shows {{ vital.shared_tiles.turns:.2f }}. The numbers agree if a load of *four* words takes
# two wavefronts: {{ (code.shared_tiles.words + 2 * code.shared_tiles.fours + 4) / code.shared_tiles.fmas:.2f }}.
# Loading four words at once saves issue slots and wavefronts, but such a load is not free.
# /// otherwise
# With one wavefront for every load and store there would be
# {{ (code.shared_tiles.words + code.shared_tiles.fours + 4) / code.shared_tiles.fmas:.2f }} wavefronts for 32
# multiply-adds. The hardware counted {{ vital.shared_tiles.turns:.2f }}.
# ///
#
# ### Now type it
#
# **Why not faster?** Each multiply-add takes two words from shared memory.
#
# /// exercise | Two barriers | 2 minutes
# The kernel waits twice in each round: once before the tile is used, and once after. Leave out the second wait. What
# can go wrong?
# /// answer
# A fast warp goes on to the next round and overwrites the tile while a slow warp is still multiplying with it. The
# sums will be wrong, though perhaps not in every run: this fault is a race.
# [When it goes wrong](../when_it_goes_wrong.py) shows how to catch one.
# ///
#
# You now have everything you need to type a kernel with tiles yourself, in Triton, CUDA C++ or NumPy, from the plain
# sum to the third rung. The lab takes about an hour. You do not need it for the rungs below, so you can also read on
# now and type later.
#
# /// lab | sgemm_tiles
# ///

# %% [markdown]
# ## Rung 4: keep one in the hand {.beyond}
#
# One multiply-add takes two words from shared memory. How could it take fewer? A thread can use a word *more than once*
# while the word is in a register. So let a thread compute 8 numbers of C instead of one, one below the other. All 8
# need the same number of B. The thread loads this number once and multiplies it by 8 numbers of A, which makes 9 words
# for 8 multiply-adds.
#
# /// figure | docs/assets/figures/sgemm_register_column.svg
# alt: "A block tile of C, 64 by 64, in which one thread owns a column of eight numbers. Enlarged: one number b of B is multiplied by eight numbers of A, a0 to a7, and added to eight sums in registers. Nine words from shared memory for eight multiply-adds, instead of sixteen."
# caption: The sums are kept in registers, and so is b.
# ///
#
# Four names are new in the code. A block computes BM × BN = 64 × 64 numbers of C, and moves along K in steps of BK = 8.
# A thread computes TM = 8 of these numbers, so a block has 64 × 64 / 8 = 512 threads. Why are the steps 8 long? With
# this length, a tile of A has 64 × 8 = 512 numbers, and each thread brings one. `#pragma unroll` asks for
# *unrolling*: the compiler writes out all turns of the loop, so that `sums[r]` can be a register.
#
# /// diff | src/course_kernels/sgemm/k03_shared_tiles.cu | src/course_kernels/sgemm/k04_register_column.cu
# ///
#
# /// predict | Shared memory delivers 9 words where it delivered 16. And there are fewer threads. What happens to the speed?
# - [ladder.shared_tiles.us / ladder.register_column.us < 1] It falls: the seats are empty
# - [1 <= ladder.shared_tiles.us / ladder.register_column.us <= hand.shared_tiles.turns / hand.register_column.turns] It rises, by 16/9 at most
# - [ladder.shared_tiles.us / ladder.register_column.us > hand.shared_tiles.turns / hand.register_column.turns] It rises, by more than 16/9
# /// reveal
# **{{ ladder.shared_tiles.us / ladder.register_column.us:.2f }} times** as fast. The forecast allows
# {{ hand.shared_tiles.turns / hand.register_column.turns:.2f }} times. The text below the table explains what the
# forecast left out.
#
# /// define | forecast.register_column = 2 * hand.register_column.best * card.sms * ladder.register_column.sm_mhz / 1e6
# unit: TFLOP/s
# what: SGEMM with a register column at most, by the lowest roof on paper
# ///
#
# /// table
# columns: ["", shared tiles, register column]
# rows:
#   - ["**% of peak**", "{{ ladder.shared_tiles.of_peak:.1%}}", "**{{ ladder.register_column.of_peak:.1%}}**"]
#   - ["% of cuBLAS", "{{ shared_tiles_of_cublas:.1%}}", "{{ register_column_of_cublas:.1%}}"]
#   - ["TFLOP/s", "{{ ladder.shared_tiles.tflops:.2f }}", "{{ ladder.register_column.tflops:.2f }}"]
#   - ["forecast, TFLOP/s", "{{ forecast.shared_tiles:.2f }}", "{{ forecast.register_column:.2f }}"]
#   - ["**wavefronts for 32 multiply-adds**", "{{ vital.shared_tiles.turns:.2f }}", "**{{ vital.register_column.turns:.2f }}**"]
#   - ["instructions for 32 multiply-adds", "{{ vital.shared_tiles.instructions:.1f }}", "{{ vital.register_column.instructions:.1f }}"]
#   - ["bytes from L2 per multiply-add", "{{ vital.shared_tiles.hall:.2f }}", "{{ vital.register_column.hall:.2f }}"]
#   - ["wavefronts used, of all ticks", "{{ vital.shared_tiles.tray:.0%}}", "{{ vital.register_column.tray:.0%}}"]
#   - ["issue slots used", "{{ vital.shared_tiles.calls:.0%}}", "{{ vital.register_column.calls:.0%}}"]
#   - ["registers per thread", "{{ vital.shared_tiles.registers:.0f }}", "{{ vital.register_column.registers:.0f }}"]
#   - ["shared memory per block, KiB", "{{ vital.shared_tiles.shared_kib:.1f }}", "{{ vital.register_column.shared_kib:.1f }}"]
#   - ["occupancy, counted", "{{ vital.shared_tiles.seats:.0%}}", "{{ vital.register_column.seats:.0%}}"]
# ///
#
# /// define | register_column_of_cublas = ladder.cublas.us / ladder.register_column.us
# unit: "1"
# what: speed of SGEMM with a register column as a part of cuBLAS's, 4096³, fp32 without TF32
# ///
#
# /// claim | ladder.register_column.us < 0.7 * ladder.shared_tiles.us and vital.register_column.turns < 0.6 * vital.shared_tiles.turns and ladder.register_column.tflops > forecast.register_column
# Look at the counter for wavefronts, which goes from {{ vital.shared_tiles.turns:.2f }} to
# {{ vital.register_column.turns:.2f }} for 32 multiply-adds. The number of instructions also fell, from
# {{ vital.shared_tiles.instructions:.1f }} to {{ vital.register_column.instructions:.1f }}. And the kernel exceeds its
# forecast, because the forecast counts words, and here too the compiler takes four words of A in one load.
# /// otherwise
# There were {{ vital.shared_tiles.turns:.2f }} wavefronts for 32 multiply-adds before, and there are
# {{ vital.register_column.turns:.2f }} now.
# ///
#
# /// claim | vital.register_column.seats < 0.6 and 40 < vital.register_column.registers < 48.5 and ladder.register_column.tflops > 1.5 * ladder.shared_tiles.tflops
# Half of the seats are empty now: {{ vital.register_column.seats:.0%}} are taken, compared with
# {{ vital.shared_tiles.seats:.0%}} before. The reason is the registers. A thread needs
# {{ vital.register_column.registers:.0f }} registers, and the card allocates registers in multiples of eight, so a
# thread gets 48. A block of 512 threads takes 24 576 of the 65 536 registers of an SM: two blocks fit, but a third does
# not. The kernel is faster all the same.
# /// otherwise
# {{ vital.register_column.seats:.0%}} of the seats are taken, compared with {{ vital.shared_tiles.seats:.0%}} before.
# ///
# ///
#
# **Why not faster?** Each number of A is used once and then dropped. Eight of the nine words do no more work than a
# word did in the previous kernel.
#
# /// exercise | A longer column
# Give a thread a column of 16, or of 32. How many words does each multiply-add take? Below which value can that number
# not fall?
# /// answer
# 17/16 and 33/32. However long the column is, the number never falls below 1: each multiply-add still needs a word of
# A. One hand alone is not enough.
# ///

# %% [markdown]
# ## Rung 5: both hands full
#
# Take eight numbers of A in one hand and eight of B in the other. Each number in one hand meets each number in the
# other, which makes 8 × 8 = 64 multiply-adds for 16 words. Mathematicians call this an *outer product*. The number of
# words grows with the length of the sides of the tile; the work grows with the area of the tile. This is the idea
# behind every tile on this page.
#
# /// figure | docs/assets/figures/sgemm_register_tile.svg
# alt: "A block tile of C, 128 by 128, in which one thread owns a square of 8 by 8. Enlarged: eight numbers of A, a0 to a7, at the left, eight of B, b0 to b7, on top, and 64 sums. Each sum adds one a times one b: an outer product. Sixteen words from shared memory for 64 multiply-adds."
# caption: The 64 sums stay in registers as long as the kernel runs.
# ///
#
# There is something new in front of the kernel's name: `__launch_bounds__(THREADS, BLOCKS)`, here with 256 and 2. These
# launch bounds tell the compiler that a block has 256 threads and that an SM should hold two such blocks. 65 536 / 512 =
# 128, so a thread gets at most 128 registers.
#
# /// diff | src/course_kernels/sgemm/k04_register_column.cu | src/course_kernels/sgemm/k05_register_tile.cu
# ///
#
# /// predict | 64 sums take 64 registers and more. An SM has 65 536. What will the occupancy be, and what will the speed be?
# - [vital.register_tile.seats >= 0.5 and ladder.register_column.us / ladder.register_tile.us > 1] High and fast
# - [vital.register_tile.seats < 0.5 and ladder.register_column.us / ladder.register_tile.us <= 1] Low and slow
# - [vital.register_tile.seats < 0.5 and ladder.register_column.us / ladder.register_tile.us > 1] Low and fast
# - [vital.register_tile.seats >= 0.5 and ladder.register_column.us / ladder.register_tile.us <= 1] High and slow
# /// reveal
# Occupancy is {{ vital.register_tile.seats:.0%}}, and the speed is
# {{ ladder.register_column.us / ladder.register_tile.us:.2f }} times that of the register column, with
# {{ vital.register_tile.registers:.0f }} registers per thread.
#
# /// define | forecast.register_tile = 2 * hand.register_tile.best * card.sms * ladder.register_tile.sm_mhz / 1e6
# unit: TFLOP/s
# what: SGEMM with a register tile at most, by the lowest roof on paper
# ///
#
# /// table
# columns: ["", register column, register tile]
# rows:
#   - ["**% of peak**", "{{ ladder.register_column.of_peak:.1%}}", "**{{ ladder.register_tile.of_peak:.1%}}**"]
#   - ["% of cuBLAS", "{{ register_column_of_cublas:.1%}}", "{{ register_tile_of_cublas:.1%}}"]
#   - ["TFLOP/s", "{{ ladder.register_column.tflops:.2f }}", "{{ ladder.register_tile.tflops:.2f }}"]
#   - ["forecast, TFLOP/s", "{{ forecast.register_column:.2f }}", "{{ forecast.register_tile:.2f }}"]
#   - ["**wavefronts for 32 multiply-adds**", "{{ vital.register_column.turns:.2f }}", "**{{ vital.register_tile.turns:.2f }}**"]
#   - ["of these, lost in queues", "{{ vital.register_column.queues:.2f }}", "{{ vital.register_tile.queues:.2f }}"]
#   - ["instructions for 32 multiply-adds", "{{ vital.register_column.instructions:.1f }}", "{{ vital.register_tile.instructions:.1f }}"]
#   - ["bytes from L2 per multiply-add", "{{ vital.register_column.hall:.3f }}", "{{ vital.register_tile.hall:.3f }}"]
#   - ["wavefronts used, of all ticks", "{{ vital.register_column.tray:.0%}}", "{{ vital.register_tile.tray:.0%}}"]
#   - ["issue slots used", "{{ vital.register_column.calls:.0%}}", "{{ vital.register_tile.calls:.0%}}"]
#   - ["registers per thread", "{{ vital.register_column.registers:.0f }}", "{{ vital.register_tile.registers:.0f }}"]
#   - ["shared memory per block, KiB", "{{ vital.register_column.shared_kib:.1f }}", "{{ vital.register_tile.shared_kib:.1f }}"]
#   - ["occupancy, counted", "{{ vital.register_column.seats:.0%}}", "{{ vital.register_tile.seats:.0%}}"]
# ///
#
# /// define | register_tile_of_cublas = ladder.cublas.us / ladder.register_tile.us
# unit: "1"
# what: speed of SGEMM with a register tile as a part of cuBLAS's, 4096³, fp32 without TF32
# ///
#
# /// claim | ladder.register_tile.us < 0.8 * ladder.register_column.us and vital.register_tile.turns < 0.7 * vital.register_column.turns
# Look at the wavefronts again: there were {{ vital.register_column.turns:.2f }} before, and there are
# {{ vital.register_tile.turns:.2f }} now. A warp issues {{ vital.register_tile.instructions:.2f }} instructions for
# 32 multiply-adds, and one of them *is* the multiply-add. The idea works: the kernel is
# {{ ladder.register_column.us / ladder.register_tile.us:.2f }} times as fast as before, with
# {{ vital.register_tile.seats:.0%}} of the seats taken.
# /// otherwise
# There were {{ vital.register_column.turns:.2f }} wavefronts for 32 multiply-adds before, and there are
# {{ vital.register_tile.turns:.2f }} now. {{ vital.register_tile.seats:.0%}} of the seats are taken.
# ///
# ///
#
# /// claim | ladder.register_tile.tflops < 0.75 * forecast.register_tile and vital.register_tile.tray < 0.85 and vital.register_tile.calls < 0.85
# But look more closely, because here the forecast promised too much. The forecast allowed
# {{ forecast.register_tile:.0f }} TFLOP/s, and the kernel reaches only {{ ladder.register_tile.tflops:.0f }}. Which
# roof stops the kernel? None of them does. Shared memory is busy in {{ vital.register_tile.tray:.0%}} of the ticks,
# and the schedulers issue in {{ vital.register_tile.calls:.0%}} of the ticks.
# /// otherwise
# The forecast allowed {{ forecast.register_tile:.0f }} TFLOP/s, and the kernel reaches
# {{ ladder.register_tile.tflops:.0f }}. Shared memory is busy in {{ vital.register_tile.tray:.0%}} of the ticks, and
# the schedulers are busy in {{ vital.register_tile.calls:.0%}} of the ticks.
# ///
#
# /// claim | 96 < vital.register_tile.registers < 160 and vital.register_tile.seats < 0.4
# The warps wait. With {{ vital.register_tile.registers:.0f }} registers for each of 256 threads, an SM holds two
# blocks: 16 warps, four for each scheduler. When those four wait, the scheduler has no other warp to issue. In [the
# last lecture](l3_memory.py#how-many-must-be-walking) empty seats did no harm, because each thread had enough bytes in
# flight. Here the registers are full of *sums*, and the code fetches the next tile only after the current one has been
# used up. So very likely the warps of a block wait together. The section [The staircase](#the-staircase) counts what
# they wait for.
# /// otherwise
# The kernel takes {{ vital.register_tile.registers:.0f }} registers per thread, and
# {{ vital.register_tile.seats:.0%}} of the seats are taken.
# ///
#
# **Why not faster?** Each scheduler has only a few warps, and in {{ 1 - vital.register_tile.calls:.0%}} of the ticks it
# can issue none of them. Very likely these warps all wait together.
#
# /// claim | vital.register_tile.queues > 0.08
# (There is also a queue. The lanes of a warp read words of B's tile that are eight apart, so several threads queue at
# the same
# bank: {{ vital.register_tile.queues:.2f }} of the {{ vital.register_tile.turns:.2f }} wavefronts are lost in this
# queue.)
# /// otherwise
# (For 32 multiply-adds, {{ vital.register_tile.queues:.2f }} wavefronts are lost in bank conflicts.)
# ///
#
# /// exercise | 4 × 4 or 16 × 16? | 3 minutes
# How many words does a multiply-add take, and how many registers do the sums take, with a register tile of 4 × 4, of
# 8 × 8 and of 16 × 16? A thread has at most 255 registers.
# /// answer
# They take 8/16 = 0.5 words and 16 registers; 16/64 = 0.25 words and 64 registers; and 32/256 = 0.125 words and 256
# registers, which is more than a thread has. So the limit is somewhere between 8 × 8 and 16 × 16.
# ///

# %% [markdown]
# ## The staircase
#
# /// chart | staircase
# title: Five kernels at 4096 × 4096 × 4096, fp32
# y_label: TFLOP/s
# steps:
#   - {name: ladder.naive.tflops, label: naive}
#   - {name: ladder.coalesced.tflops, label: coalesced}
#   - {name: ladder.shared_tiles.tflops, label: shared tiles}
#   - {name: ladder.register_column.tflops, label: register column}
#   - {name: ladder.register_tile.tflops, label: register tile}
# references:
#   - {label: cuBLAS, value: ladder.cublas.tflops}
#   - {label: data sheet, value: card.peak}
# alt: "A staircase of TFLOP/s: naive {{ ladder.naive.tflops:.1f }}, coalesced {{ ladder.coalesced.tflops:.1f }}, shared tiles {{ ladder.shared_tiles.tflops:.1f }}, register column {{ ladder.register_column.tflops:.1f }}, register tile {{ ladder.register_tile.tflops:.1f }}. cuBLAS is at {{ ladder.cublas.tflops:.1f }}, the data sheet above it."
# ///
#
# /// table
# columns: [kernel, "time, ms", "TFLOP/s", "% of peak", "% of cuBLAS"]
# rows:
#   - ["naive", "{{ ladder.naive.ms:.1f }}", "{{ ladder.naive.tflops:.2f }}", "{{ ladder.naive.of_peak:.1%}}", "{{ naive_of_cublas:.1%}}"]
#   - ["coalesced", "{{ ladder.coalesced.ms:.1f }}", "{{ ladder.coalesced.tflops:.2f }}", "{{ ladder.coalesced.of_peak:.1%}}", "{{ coalesced_of_cublas:.1%}}"]
#   - ["shared tiles", "{{ ladder.shared_tiles.ms:.1f }}", "{{ ladder.shared_tiles.tflops:.2f }}", "{{ ladder.shared_tiles.of_peak:.1%}}", "{{ shared_tiles_of_cublas:.1%}}"]
#   - ["register column", "{{ ladder.register_column.ms:.1f }}", "{{ ladder.register_column.tflops:.2f }}", "{{ ladder.register_column.of_peak:.1%}}", "{{ register_column_of_cublas:.1%}}"]
#   - ["**register tile**", "{{ ladder.register_tile.ms:.1f }}", "{{ ladder.register_tile.tflops:.2f }}", "**{{ ladder.register_tile.of_peak:.1%}}**", "{{ register_tile_of_cublas:.1%}}"]
#   - ["*cuBLAS*", "*{{ ladder.cublas.ms:.1f }}*", "*{{ ladder.cublas.tflops:.2f }}*", "*{{ ladder.cublas.of_peak:.1%}}*", "*100%*"]
# caption: Peak is that of the data sheet, for fp32 without tensor cores.
# ///
#
# How close is each kernel to each roof? This table sums up the whole page. Read along a row, and look for the largest
# number.
#
# /// table
# columns: [kernel, lanes, "issue slots", "shared memory", L2, HBM]
# rows:
#   - [naive, "{{ ladder.naive.of_peak:.0%}}", "{{ vital.naive.calls:.0%}}", "{{ vital.naive.tray:.0%}}", "{{ vital.naive.l2:.0%}}", "{{ vital.naive.hbm:.0%}}"]
#   - [coalesced, "{{ ladder.coalesced.of_peak:.0%}}", "{{ vital.coalesced.calls:.0%}}", "{{ vital.coalesced.tray:.0%}}", "{{ vital.coalesced.l2:.0%}}", "{{ vital.coalesced.hbm:.0%}}"]
#   - [shared tiles, "{{ ladder.shared_tiles.of_peak:.0%}}", "{{ vital.shared_tiles.calls:.0%}}", "{{ vital.shared_tiles.tray:.0%}}", "{{ vital.shared_tiles.l2:.0%}}", "{{ vital.shared_tiles.hbm:.0%}}"]
#   - [register column, "{{ ladder.register_column.of_peak:.0%}}", "{{ vital.register_column.calls:.0%}}", "{{ vital.register_column.tray:.0%}}", "{{ vital.register_column.l2:.0%}}", "{{ vital.register_column.hbm:.0%}}"]
#   - [register tile, "{{ ladder.register_tile.of_peak:.0%}}", "{{ vital.register_tile.calls:.0%}}", "{{ vital.register_tile.tray:.0%}}", "{{ vital.register_tile.l2:.0%}}", "{{ vital.register_tile.hbm:.0%}}"]
#   - ["*cuBLAS*", "{{ ladder.cublas.of_peak:.0%}}", "{{ vital.cublas.calls:.0%}}", "{{ vital.cublas.tray:.0%}}", "{{ vital.cublas.l2:.0%}}", "{{ vital.cublas.hbm:.0%}}"]
# caption: "The column of the lanes gives the percentage of the data sheet's peak, by the clock. The others give the percentage of what the unit could do, as counted."
# ///
#
# /// claim | max(vital.naive.l2, vital.coalesced.l2, vital.shared_tiles.l2, vital.register_column.l2, vital.register_tile.l2) < 0.4 and max(vital.naive.hbm, vital.coalesced.hbm, vital.shared_tiles.hbm, vital.register_column.hbm, vital.register_tile.hbm) < 0.4 and vital.cublas.calls > 0.7
# From the first rung to the last, no kernel is limited by L2 or HBM. And the library's row shows what well-used issue
# slots look like: the schedulers issue in {{ vital.cublas.calls:.0%}} of the ticks.
# /// otherwise
# In the library's row the schedulers issue in {{ vital.cublas.calls:.0%}} of the ticks.
# ///
#
# And when a warp is not issued, what does it wait for?
#
# /// table
# columns: [kernel, "word from L1", "queue for L1", "word from shared memory", "queue for shared memory", barrier, "its turn"]
# rows:
#   - [naive, "{{ waits.naive.hall:.0%}}", "{{ waits.naive.hall_queue:.0%}}", "{{ waits.naive.tray:.0%}}", "{{ waits.naive.tray_queue:.0%}}", "{{ waits.naive.barrier:.0%}}", "{{ waits.naive.turn:.0%}}"]
#   - [coalesced, "{{ waits.coalesced.hall:.0%}}", "{{ waits.coalesced.hall_queue:.0%}}", "{{ waits.coalesced.tray:.0%}}", "{{ waits.coalesced.tray_queue:.0%}}", "{{ waits.coalesced.barrier:.0%}}", "{{ waits.coalesced.turn:.0%}}"]
#   - [shared tiles, "{{ waits.shared_tiles.hall:.0%}}", "{{ waits.shared_tiles.hall_queue:.0%}}", "{{ waits.shared_tiles.tray:.0%}}", "{{ waits.shared_tiles.tray_queue:.0%}}", "{{ waits.shared_tiles.barrier:.0%}}", "{{ waits.shared_tiles.turn:.0%}}"]
#   - [register column, "{{ waits.register_column.hall:.0%}}", "{{ waits.register_column.hall_queue:.0%}}", "{{ waits.register_column.tray:.0%}}", "{{ waits.register_column.tray_queue:.0%}}", "{{ waits.register_column.barrier:.0%}}", "{{ waits.register_column.turn:.0%}}"]
#   - [register tile, "{{ waits.register_tile.hall:.0%}}", "{{ waits.register_tile.hall_queue:.0%}}", "{{ waits.register_tile.tray:.0%}}", "{{ waits.register_tile.tray_queue:.0%}}", "{{ waits.register_tile.barrier:.0%}}", "{{ waits.register_tile.turn:.0%}}"]
#   - ["*cuBLAS*", "{{ waits.cublas.hall:.0%}}", "{{ waits.cublas.hall_queue:.0%}}", "{{ waits.cublas.tray:.0%}}", "{{ waits.cublas.tray_queue:.0%}}", "{{ waits.cublas.barrier:.0%}}", "{{ waits.cublas.turn:.0%}}"]
# caption: "The numbers are shares of the waiting. L1 means L1 and everything beyond it. The last column is the good one: the warp could have been issued, but another warp was. The rest, up to 100%, consists of waits of a fixed length and waits for a lane that is taken."
# ///
#
# /// claim | waits.naive.hall_queue > 0.7 and waits.shared_tiles.tray_queue > 0.25 and waits.register_column.tray > 0.25 and waits.register_tile.turn > 0.3 and vital.register_tile.calls < 0.7
# This table reads like a walk through the kitchen. In the naive kernel everybody stands in line for L1. With shared
# tiles the longest line is at shared memory. With the register column, warps wait for the word itself to arrive. With
# the register tile, {{ waits.register_tile.turn:.0%}} of the waiting is of the good kind, and yet in
# {{ 1 - vital.register_tile.calls:.0%}} of the ticks no warp can be issued. Very likely the work comes in bursts: all
# warps wait for a tile, and then all of them want to multiply at once.
# /// otherwise
# In the naive kernel {{ waits.naive.hall_queue:.0%}} of the waiting is spent in the queue for L1. With shared tiles
# {{ waits.shared_tiles.tray_queue:.0%}} of the waiting is spent in the queue for shared memory.
# ///
#
# /// exercise | Which rung next?
# Cover the names in the table of roofs. For each of our five rows, say what holds the kernel back and what you would change.
# /// answer
# If a kernel has nearly reached a roof, that roof holds it back. For the naive kernel, shared tiles and the register
# column, the closest roof is shared memory: {{ vital.naive.tray:.0%}}, {{ vital.shared_tiles.tray:.0%}} and
# {{ vital.register_column.tray:.0%}}. So reduce the number of wavefronts: let neighbouring lanes read neighbouring
# words, and use a word more often while it is in the hand. If a kernel is near no roof, it is waiting. The coalesced
# kernel comes no closer to a roof than {{ max(vital.coalesced.tray, vital.coalesced.calls):.0%}}, and the register tile
# no closer than {{ max(vital.register_tile.tray, vital.register_tile.calls):.0%}}. So look up in the second table what
# these two wait for.
# ///
#
# Note that the first table has two columns of percentages. The results of such a ladder are usually quoted as
# percentages *of the library's speed*. The best-known ladder, from which this page takes its order, goes from 1.3 % to
# 68.7 % of cuBLAS with the same five ideas, on an RTX A6000 [^boehm2022]. These are not percentages of peak, because
# cuBLAS does not reach the peak either.
#
# /// claim | ladder.cublas.of_peak < 0.9
# Here cuBLAS is at {{ ladder.cublas.of_peak:.0%}} of the data sheet. So the register tile is at
# {{ register_tile_of_cublas:.0%}} of cuBLAS and at {{ ladder.register_tile.of_peak:.0%}} of peak. If somebody gives
# you only one of these two figures, ask which one it is.
# /// otherwise
# Here cuBLAS is at {{ ladder.cublas.of_peak:.0%}} of the data sheet.
# ///

# %% [markdown]
# ## Other sizes {.beyond}
#
# A ladder that is measured at one size tells you about that size only. So here are sizes from 128 to 4096
# (only up to 2048 for the naive kernel, because it is so slow), and three sizes that no tile divides.
#
# /// predict | 1023 is an ugly size: 1023 × 1023 × 1023, and no tile fits. Which kernel will be much faster there than at 1024?
# - [ugly.register_tile.n1023.us / sizes.register_tile.n1024.us < 0.7 and ugly.register_tile.n1023.us / sizes.register_tile.n1024.us < min(ugly.coalesced.n1023.us / sizes.coalesced.n1024.us, ugly.naive.n1023.us / sizes.naive.n1024.us)] The register tile
# - [ugly.coalesced.n1023.us / sizes.coalesced.n1024.us < 0.7 and ugly.coalesced.n1023.us / sizes.coalesced.n1024.us < min(ugly.register_tile.n1023.us / sizes.register_tile.n1024.us, ugly.naive.n1023.us / sizes.naive.n1024.us)] The coalesced one
# - [ugly.naive.n1023.us / sizes.naive.n1024.us < 0.7 and ugly.naive.n1023.us / sizes.naive.n1024.us < min(ugly.register_tile.n1023.us / sizes.register_tile.n1024.us, ugly.coalesced.n1023.us / sizes.coalesced.n1024.us)] The naive one
# - [min(ugly.register_tile.n1023.us / sizes.register_tile.n1024.us, ugly.coalesced.n1023.us / sizes.coalesced.n1024.us, ugly.naive.n1023.us / sizes.naive.n1024.us) >= 0.7] None of them
# /// reveal
# The naive kernel will: it takes {{ ugly.naive.n1023.ms:.2f }} ms at 1023, and {{ sizes.naive.n1024.ms:.2f }} ms at 1024.
# You know enough to say why.
# ///

# %% tags=["fold"]
SIZES = (128, 256, 512, 1024, 2048)
UGLY = (1000, 1023, 4095)
QUICK = {name: kernel for name, kernel in RUNGS.items() if name != "naive"}

runs = {
    size: compare(
        RUNGS if size <= 2048 else QUICK,
        Workload.of("float32", M=size, N=size, K=size),
        seconds=0.02,
    )
    for size in (*SIZES, *UGLY)
}


def by_rung(sizes):
    """The runs, sorted by kernel and then by size."""
    return {
        rung: {f"n{size}": runs[size][rung] for size in sizes if rung in runs[size]}
        for rung in RUNGS
    }


runs[4096] = {rung: ladder[rung] for rung in QUICK}
record(sizes=by_rung((*SIZES, 4096)), ugly=by_rung(UGLY))

# %% [markdown]
# /// chart | lines
# title: The five kernels by size, M = N = K
# x: N
# y: tflops
# x_label: M = N = K
# y_label: TFLOP/s
# x_scale: log2
# y_scale: log
# series:
#   - {name: sizes.cublas.*, label: cuBLAS, style: reference}
#   - {name: sizes.register_tile.*, label: register tile}
#   - {name: sizes.register_column.*, label: register column}
#   - {name: sizes.shared_tiles.*, label: shared tiles}
#   - {name: sizes.coalesced.*, label: coalesced}
#   - {name: sizes.naive.*, label: naive}
# alt: "TFLOP/s against size, both scales logarithmic. At 128 the register tile reaches {{ sizes.register_tile.n128.tflops:.2f }} and the coalesced kernel {{ sizes.coalesced.n128.tflops:.2f }}; at 4096 they reach {{ ladder.register_tile.tflops:.1f }} and {{ ladder.coalesced.tflops:.1f }}. cuBLAS goes from {{ sizes.cublas.n128.tflops:.2f }} to {{ ladder.cublas.tflops:.1f }}."
# caption: L2 is cold before every sample, as in every race on this site.
# ///
#
# /// claim | sizes.register_tile.n128.us > 1.6 * sizes.coalesced.n128.us and 0.8 < sizes.shared_tiles.n128.us / sizes.cublas.n128.us < 1.25
# Read the chart from the left. At 128 the order is different: the best kernel of this page takes
# {{ sizes.register_tile.n128.us / sizes.coalesced.n128.us:.1f }} times as long as the second rung. Its block tile is
# 128 × 128, so the whole of C is *one* block, on one SM, and {{ card.sms - 1:.0f }} SMs are idle. Large tiles need
# large matrices. And the third rung, with its small tiles, takes about as long as cuBLAS there:
# {{ sizes.shared_tiles.n128.us:.1f }} µs against {{ sizes.cublas.n128.us:.1f }} µs.
# /// otherwise
# At 128 the register tile takes {{ sizes.register_tile.n128.us / sizes.coalesced.n128.us:.1f }} times as long as the
# coalesced kernel.
# ///
#
# /// claim | sizes.register_tile.n1024.us > 1.3 * sizes.register_column.n1024.us
# The order is still different at 1024, where the fourth rung beats the fifth:
# {{ sizes.register_column.n1024.us:.0f }} µs against {{ sizes.register_tile.n1024.us:.0f }}. The last exercise of
# this section asks you why.
# /// otherwise
# At 1024 the register column takes {{ sizes.register_column.n1024.us:.0f }} µs, and the register tile takes
# {{ sizes.register_tile.n1024.us:.0f }} µs.
# ///
#
# /// table
# columns: ["% of peak", "1000", "1023", "1024", "4095", "4096"]
# rows:
#   - [naive, "{{ ugly.naive.n1000.of_peak:.1%}}", "{{ ugly.naive.n1023.of_peak:.1%}}", "{{ sizes.naive.n1024.of_peak:.1%}}", "", "{{ ladder.naive.of_peak:.1%}}"]
#   - [coalesced, "{{ ugly.coalesced.n1000.of_peak:.1%}}", "{{ ugly.coalesced.n1023.of_peak:.1%}}", "{{ sizes.coalesced.n1024.of_peak:.1%}}", "{{ ugly.coalesced.n4095.of_peak:.1%}}", "{{ ladder.coalesced.of_peak:.1%}}"]
#   - [shared tiles, "{{ ugly.shared_tiles.n1000.of_peak:.1%}}", "{{ ugly.shared_tiles.n1023.of_peak:.1%}}", "{{ sizes.shared_tiles.n1024.of_peak:.1%}}", "{{ ugly.shared_tiles.n4095.of_peak:.1%}}", "{{ ladder.shared_tiles.of_peak:.1%}}"]
#   - [register column, "{{ ugly.register_column.n1000.of_peak:.1%}}", "{{ ugly.register_column.n1023.of_peak:.1%}}", "{{ sizes.register_column.n1024.of_peak:.1%}}", "{{ ugly.register_column.n4095.of_peak:.1%}}", "{{ ladder.register_column.of_peak:.1%}}"]
#   - [register tile, "{{ ugly.register_tile.n1000.of_peak:.1%}}", "{{ ugly.register_tile.n1023.of_peak:.1%}}", "{{ sizes.register_tile.n1024.of_peak:.1%}}", "{{ ugly.register_tile.n4095.of_peak:.1%}}", "{{ ladder.register_tile.of_peak:.1%}}"]
#   - ["*cuBLAS*", "*{{ ugly.cublas.n1000.of_peak:.1%}}*", "*{{ ugly.cublas.n1023.of_peak:.1%}}*", "*{{ sizes.cublas.n1024.of_peak:.1%}}*", "*{{ ugly.cublas.n4095.of_peak:.1%}}*", "*{{ ladder.cublas.of_peak:.1%}}*"]
# caption: The table shows sizes that no tile divides next to sizes that every tile divides. All answers are checked.
# ///
#
# /// claim | ugly.register_tile.n4095.us < 1.25 * ladder.register_tile.us and ugly.register_tile.n4095.us > 0.7 * ladder.register_tile.us
# At the edges a block extends beyond the matrix. There the block puts zeros into shared memory and writes nothing to
# C, which costs a comparison or two. At 4095 the register tile takes
# {{ ugly.register_tile.n4095.us / ladder.register_tile.us:.2f }} times as long as at 4096.
# /// otherwise
# At 4095 the register tile takes {{ ugly.register_tile.n4095.us / ladder.register_tile.us:.2f }} times as long as
# at 4096.
# ///
#
# /// claim | sizes.naive.n1024.us > 2 * ugly.naive.n1023.us > 4 * ugly.coalesced.n1023.us and vital.naive_1023.turns < 5 and vital.naive_1023.calls < 0.35 and vital.naive_1023.l2 < 0.4 and vital.naive_1023.hbm < 0.4
# And what about the naive kernel at 1023? It takes {{ ugly.naive.n1023.us / sizes.naive.n1024.us:.0%}} of its time at
# 1024, for very nearly the same work. Its rows of A are 1023 words apart, and 1023 divided by 32 leaves a remainder of 31.
# So the 32 lanes use 32 *different* banks: the counter shows {{ vital.naive_1023.turns:.1f }} wavefronts for 32
# multiply-adds, compared with {{ vital.naive_1024.turns:.1f }} at 1024. You have met this trick under the name of
# padding; here A is padded by accident. (Now only {{ vital.naive_1023.tray:.0%}} of the wavefronts are used, and the
# naive kernel is still far slower than the coalesced one. Something other than our four roofs holds it back:
# {{ vital.naive_1023.calls:.0%}} of the issue slots are used, {{ vital.naive_1023.l2:.0%}} of L2 and
# {{ vital.naive_1023.hbm:.1%}} of HBM. Each load of A touches 32 cache lines, and we suspect that L1 looks up each line
# separately. This page does not measure what the look-ups cost.)
# /// otherwise
# At size 1023, the naive kernel takes {{ ugly.naive.n1023.us / sizes.naive.n1024.us:.0%}} of its time at 1024. The
# counters show {{ vital.naive_1023.turns:.1f }} wavefronts for 32 multiply-adds at 1023, and
# {{ vital.naive_1024.turns:.1f }} at 1024.
# ///
#
# /// exercise | And at 1000?
# Now the rows have 1000 words. Work out by hand how many wavefronts 32 multiply-adds take.
# /// answer
# 1000 divided by 32 leaves a remainder of 8. So the lanes use banks 0, 8, 16 and 24, eight lanes each: 8 wavefronts for
# A and one for B make 9. The hardware counted {{ vital.naive_1000.turns:.1f }}.
# ///
#
# /// exercise | How many SMs have work?
# C is 1024 × 1024, a block tile is 128 × 128, and the card has 132 SMs. How many blocks are there, and what is the
# best percentage of peak that such a kernel can reach? What changes with a block tile of 64 × 64?
# /// answer
# 8 × 8 = 64 blocks for 132 SMs leave 68 SMs without work, more than half. With block tiles of 64 × 64 there are 256
# blocks, two for most SMs and one for the last eight, so every SM has work. But smaller tiles demand more of shared
# memory and of L2. That is the trade-off, and no shape wins everywhere.
# ///

# %% [markdown]
# ## Is it still fp32? {.beyond}
#
# The card has a faster way to multiply fp32 numbers: round them to TF32, which keeps 10 bits of fraction instead of 23,
# and give them to the tensor cores. It is easy to win a benchmark this way by accident. In our race TF32 is off. You do
# not have to take our word for it: the errors prove it.

# %%
from course_kernels.gemm import library as tensor_core_library
from course_kernels.measure import measure

record(tf32=measure(tensor_core_library.cublas, square, seconds=0.1))

# %% [markdown]
# /// table
# columns: [multiply, "worst error, millionths", "TFLOP/s"]
# rows:
#   - [naive, "{{ ladder.naive.error * 1e6:.1f }}", "{{ ladder.naive.tflops:.1f }}"]
#   - [register tile, "{{ ladder.register_tile.error * 1e6:.1f }}", "{{ ladder.register_tile.tflops:.1f }}"]
#   - [cuBLAS, "{{ ladder.cublas.error * 1e6:.1f }}", "{{ ladder.cublas.tflops:.1f }}"]
#   - ["*the most we allow*", "*{{ ladder.cublas.allowed * 1e6:.1f }}*", ""]
#   - ["cuBLAS, with TF32", "{{ tf32.error * 1e6:.1f }}", "{{ tf32.tflops:.1f }}"]
# caption: The error is that of the worst element against float64, relative to the answer's own size; K = 4096.
# ///
#
# /// claim | max(ladder.naive.error, ladder.coalesced.error, ladder.shared_tiles.error, ladder.register_column.error, ladder.register_tile.error, ladder.cublas.error) < 0.02 * tf32.error and tf32.tflops > 4 * ladder.cublas.tflops
# TF32 is {{ tf32.tflops / ladder.cublas.tflops:.1f }} times as fast, and the error of its worst element is
# {{ tf32.error / ladder.cublas.error:.0f }} times as large. None of the six kernels above has an error anywhere near as
# large, so none of them used TF32. A later lecture is about what tensor cores are good for when you *choose* them.
# /// otherwise
# With TF32 the error of the worst element is {{ tf32.error / ladder.cublas.error:.1f }} times as large as without it.
# ///
#
# /// exercise | The same sum, a different error
# Our five kernels add the K products of an element in the same order, one after the other. Would you expect the same
# error from all five? And would you expect that error from cuBLAS, too?
# /// answer
# The same order with the same rounding gives the same bits, and so the same worst error: look at the table. cuBLAS is
# free to choose its own order. At 4096 its worst error is {{ ladder.cublas.error * 1e6:.2f }} millionths and ours is
# {{ ladder.naive.error * 1e6:.2f }}; at 512 it is {{ sizes.cublas.n512.error * 1e6:.2f }} and ours is
# {{ sizes.naive.n512.error * 1e6:.2f }}. Where the two errors differ, cuBLAS has added in a different order, which as a
# rule is neither better nor worse. If you want to compare two kernels, compare each of them with the truth, never one
# with the other.
# ///

# %% [markdown]
# ## The words for tiles {.beyond}
#
# From here on the tiles are nested, and their names are easily mixed up. On this site each kind of tile has one name.
#
# /// figure | docs/assets/figures/sgemm_tile_words.svg
# alt: "C is cut into block tiles, BM by BN, one for each block, whose strips of A and B are in shared memory. A block tile is cut into warp tiles, WM by WN, one for each warp. A warp tile is cut into register tiles, TM by TN, one for each thread, whose sums live in registers."
# caption: The picture shows which part of C belongs to a block, to a warp and to a thread.
# ///
#
# | here | made by | its numbers are in | in CUTLASS |
# |---|---|---|---|
# | **block tile**, BM × BN, in steps of BK | a block | strips of A and B in shared memory | threadblock tile, CTA tile |
# | **warp tile**, WM × WN | a warp | what its lanes read together | warp tile |
# | **register tile**, TM × TN | a thread | registers: the sums, and a column of A and a row of B | thread tile |
# | *one instruction's tile*, on tensor cores | a warp, or four of them | registers, or shared memory | MMA tile, instruction tile |
#
# CUTLASS is NVIDIA's own library of such kernels, made to be read and reused. Its documentation describes the same
# nesting: threadblock, warp and thread, each with its own tile, and an outer product at the lowest level [^cutlass-gemm].
# When you read its code, you will meet `ThreadblockShape`, which is BM, BN and BK.
#
# The kernels of this page do not have warp tiles of their own. A warp's lanes are wherever the block's numbering
# happens to put them. The next lecture gives each warp a tile, and measures how much speed the change gains. That
# lecture also has [a picture with knobs](l5_the_top_of_the_ladder.py#try-a-tile): change BM, BN, BK, TM and TN, and see
# what they demand of an SM.
#
# /// exercise | Which tile?
# Which tile is meant? (a) Its numbers cost no wavefront of shared memory. (b) When it is larger, fewer bytes come
# from L2. (c) Its size decides how many registers a thread needs. (d) When it is larger, it leaves SMs idle if the
# matrix is small.
# /// answer
# (a) The register tile. (b) The block tile. (c) The register tile. (d) The block tile.
# ///

# %% [markdown]
# ## Before you leave the board
#
# **You can now** build five kernels, and you know why each is faster than the one before:
#
# 1. *naive*: the formula;
# 2. *coalesced*: the lanes of a warp ask for neighbouring numbers;
# 3. *shared tiles*: a number is carried once for the whole block;
# 4. *register column*: a number of B is used eight times while it is in the hand;
# 5. *register tile*: a number of A is also used eight times while it is in the hand.
#
# And you can now ask a better question than "how do I make the kernel fast?": **which roof holds it back, and what
# would raise that roof?** There are four roofs, and a pencil is enough to work them out.
#
# **Where this leads.** The kernel with the register tile still loads its tiles word by word. It loses wavefronts in
# queues. And it is idle while the next tile is loaded. Each of these three faults leads to a rung, and there are more
# rungs: they are the subject of [the next lecture](l5_the_top_of_the_ladder.py). To see how the clock and the counters
# work, read [how every number here is measured](../how_we_measure.py). To see each number with its spread, open [the
# ledger](../numbers.md).
