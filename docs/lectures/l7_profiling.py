# ---
# id: l7
# title: Profiling
# description: Guess, code, profile, read the percentage, and again. Three turns of the loop on a kernel you have not seen, each cause read from a counter before it is cured.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # Profiling
#
# By the end of this page you can
#
# - write a forecast before you open a profiler: bytes, operations, the floor, and one sentence about what your kernel waits for;
# - go round the loop on a kernel that you have never seen: find the cause from a counter, cure it, and see the same
#   counter change;
# - read five counters, and say which question each of them answers;
# - say where the time of a whole program goes, and which of four bounds limits a kernel;
# - do most of this without any counter, and say how a profiler changes what it measures.
#
# **The headline: {{ race.registers.of_peak:.0%}} of peak, from {{ race.thread.of_peak:.0%}}.** This is one job in
# three turns of the loop, and no turn began with an idea. Each turn began with a number that was too high or too low.

# %% [markdown]
# ## The loop
#
# You have climbed a ladder that somebody had built. Each rung had a name, and you knew that it would help. At work
# there is no ladder. There is a kernel, and it is slow. What do you do? You go round this loop:
#
# > guess → code → **profile** → read the percentage → and again.
#
# /// figure | docs/assets/figures/arc_loop.svg
# alt: "The loop as a ring of four words with arrows. Guess, code, profile, read the percentage, and back to guess."
# caption: The loop of day one. Today is about its third word.
# ///
#
# The first word of the loop, *guess*, is the one that people most often leave out. A *profiler* is a program that
# runs your kernel and reads the **counters** of the card. A card has hundreds of counters. If you come without a
# question, you will read them all and find something odd in each. If you come with a guess, you will read just one counter.
# So here is the rule of this page:
#
# **The sentence comes first, in ink: *I believe it waits for …, so this counter will say …* Then you look.**
#
# A guess that proves right has cost you a minute. A guess that proves wrong has taught you something about *your*
# kernel that no book could tell you.
#
# ## The kernel you have not seen
#
# Between two layers of a transformer there is a small step. The output of the layer, x, is added to the input that
# bypassed the layer, r. Then every row of the sum is given a mean of 0 and a spread of 1, and each column is
# multiplied by a weight g:
#
# $$
# s = x + r \qquad y_{mn} = g_n \cdot \frac{s_{mn} - \operatorname{mean}(s_m)}{\sqrt{\operatorname{var}(s_m) + \varepsilon}}
# $$
#
# This step is called *add and norm*. The rows are independent of each other. The job has 8192 rows of 16384 numbers,
# in fp32.
#
# Here is somebody's honest first attempt. Each thread takes one row and walks along it three times: once for the
# mean, once for the spread, and once to write the result.
#
# /// source | src/course_kernels/add_norm/k01_thread_a_row.cu
# ///

# %% [markdown]
# ## Forecast before you look
#
# Work out three numbers with a pencil. Which **bytes** must move, each of them once? How many **operations** are
# there? And what is the **floor**? It is the larger of two times: bytes divided by bandwidth, and operations divided
# by peak.
#
# /// exercise | The forecast | 4 minutes
# x, r and y have 8192 × 16384 numbers of four bytes each; g has hardly any. Each number of s takes these operations:
# add, add it up, subtract, multiply and add, two multiplies. Which roof is the limit? And how many bytes does the
# kernel above *ask* for, with its three walks?
# /// answer
# 134 million numbers. Three matrices of 537 MB: 1.61 GB. Seven operations for twelve bytes: far left of the ridge, so
# bytes are the limit. The kernel asks for x and r three times each and writes y once: seven matrices where three
# would be enough. Whether the caches catch some of that is a question for a counter.
# ///

# %%
from course_kernels.add_norm import (
    k01_thread_a_row,
    k02_warp_a_row,
    k03_row_on_chip,
    k04_row_in_registers,
    library,
)
from course_kernels.add_norm.problem import PROBLEM
from course_kernels.measure import quantity, record

(job,) = PROBLEM.time_on
least = PROBLEM.reads_bytes(job) + PROBLEM.writes_bytes(job)

record(
    hand={
        "gb": quantity(least / 1e9, "GB"),
        "read_gb": quantity(PROBLEM.reads_bytes(job) / 1e9, "GB"),
        "intensity": quantity(PROBLEM.flops(job) / least, "FLOP/B"),
        "asked": quantity(7 / 3),  # matrices it asks for, over those it must
    }
)

# %% [markdown] The job moves at least {{ hand.gb:.2f }} GB, and does {{ hand.intensity:.2f }} operations per byte.
# Nobody will ever do this job faster than HBM can deliver those bytes.
#
# First the answers are checked, and then the times are measured: all four kernels of this page and PyTorch's own take
# turns on the same inputs.

# %% tags=["fold"]
from course_kernels.measure import compare

race = compare(
    {
        "thread": k01_thread_a_row,
        "warp": k02_warp_a_row,
        "chip": k03_row_on_chip,
        "registers": k04_row_in_registers,
        "eager": library.eager,
        "compiled": library.compiled,
    },
    job,
    seconds=0.3,
)
record(race=race)

# %% tags=["fold"]
from course_kernels.fused_multiply_add import k01_chains
from course_kernels.measure import count_many
from course_kernels.problem import Workload
from course_kernels.vector_add import k01_cuda as adding

REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
ARITHMETIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
ISSUE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
TIME = "gpu__time_duration.sum"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
REASONS = (
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "lg_throttle",
    "mio_throttle",
    "math_pipe_throttle",
    "wait",
    "not_selected",
)
METRICS = (
    *(REQUESTS, SECTORS, MEMORY, ARITHMETIC, WARPS, ISSUE, TIME),
    *map(STALL.format, REASONS),
)
full_card = Workload.of("float32", N=132 * 2048, C=8, K=8192)
one_chain = Workload.of(
    "float32", N=132 * 128, C=1, K=8192
)  # a warp for a scheduler
JOBS = {
    "thread": (k01_thread_a_row, job),
    "warp": (k02_warp_a_row, job),
    "chip": (k03_row_on_chip, job),
    "registers": (k04_row_in_registers, job),
    "arithmetic": (k01_chains, full_card),
    "latency": (k01_chains, one_chain),
    "launch": (adding, Workload.of("float32", N=1024)),
}
tallies = dict(zip(JOBS, count_many(list(JOBS.values()), METRICS), strict=True))


def told(name, metric, scale=1.0):
    """One counter of the one kernel of a job, as a number to record."""
    (kernel,) = tallies[name].kernels
    return quantity(kernel["metrics"][metric]["value"] * scale, how="counted")


def of_each(metric, scale=1.0):
    """The same counter of every job."""
    return {name: told(name, metric, scale) for name in JOBS}


record(
    counted=tallies,
    sectors={
        name: quantity(
            told(name, SECTORS).value / told(name, REQUESTS).value,
            how="counted",
        )
        for name in ("thread", "warp", "chip", "registers")
    },
    memory=of_each(MEMORY, 0.01),
    arithmetic=of_each(ARITHMETIC, 0.01),
    warps=of_each(WARPS, 0.01),
    issue=of_each(ISSUE, 0.01),
    stall={
        name: {reason: told(name, STALL.format(reason)) for reason in REASONS}
        for name in JOBS
    },
    stopwatch_of={
        name: quantity(
            tallies[name].kernels[0]["metrics"][TIME]["value"]
            * (
                1e6
                if tallies[name].kernels[0]["metrics"][TIME]["unit"] == "s"
                else 1e-3
            ),
            "µs",
            "counted",
        )
        for name in ("thread", "warp", "chip", "registers")
    },
)

# %% tags=["fold"]
from course_kernels.measure import artifact
from course_kernels.measure.reports import private_words, scrubbed, take_report

small = Workload.of("float32", M=1056, N=16384)  # past L2, and quick to replay
record(
    report={
        "thread": artifact(
            "turn_1_before.ncu-rep", take_report(k01_thread_a_row, small)
        ),
        "warp": artifact(
            "turn_1_after.ncu-rep", take_report(k02_warp_a_row, small)
        ),
        "chip": artifact(
            "turn_2_after.ncu-rep", take_report(k03_row_on_chip, small)
        ),
        "registers": artifact(
            "turn_3_after.ncu-rep", take_report(k04_row_in_registers, small)
        ),
    }
)

# %% [markdown]
# ## The first turn: do neighbouring lanes read neighbours?
#
# The kernel above reaches **{{ race.thread.of_peak:.1%}}** of peak. Why? Look once more at its index. Lane 0 reads
# number 0 of row 0, and lane 1 reads number 0 of row 1. In memory these two numbers are a whole row apart.
#
# Recall a term from [the memory lecture](l3_memory.py#ask-for-neighbours). Memory is carried in **sectors** of 32
# bytes. A load of one warp is a *request*, and the counter shows how many sectors each request touched. A request for
# thirty-two neighbouring numbers in fp32 touches four sectors. In the kernel's last walk all lanes also read the same
# number of g: one sector.
#
# /// predict | On average over all its loads, x and r three times each and g once: how many sectors does a request touch?
# - [sectors.thread < 8] About 4
# - [8 <= sectors.thread < 20] About 16
# - [sectors.thread >= 20] More than 20
# /// reveal
# **{{ sectors.thread:.1f }}.** By hand: six requests that touch 32 sectors and one that touches 1, (6 · 32 + 1) / 7 = 27.6.
# ///
#
# There is a counter for this guess, and the counter agrees. That points to the cure: *neighbouring lanes must read
# neighbouring numbers*. So let a whole warp take each row.
#
# /// diff | src/course_kernels/add_norm/k01_thread_a_row.cu | src/course_kernels/add_norm/k02_warp_a_row.cu
# ///
#
# /// claim | sectors.thread > 26 and sectors.warp < 5 and race.warp.us < 0.25 * race.thread.us
# After the cure the same counter shows {{ sectors.warp:.1f }}. And the kernel took {{ race.thread.us:.0f }} µs before
# and takes {{ race.warp.us:.0f }} µs now, which is {{ race.thread.us / race.warp.us:.1f }} times the speed. Both the
# counter and the time had to change. If a counter changes and the time does not, what the counter shows was not the
# cause. If the time changes and the counter does not, there was a different cause.
# /// otherwise
# A request touched {{ sectors.thread:.1f }} sectors before, and touches {{ sectors.warp:.1f }} now. The kernel took
# {{ race.thread.us:.0f }} µs before, and takes {{ race.warp.us:.0f }} µs now.
# ///
#
# If you want to look for yourself, open the reports [before](artifact:turn_1_before.ncu-rep) and
# [after](artifact:turn_1_after.ncu-rep) in Nsight Compute. They cover fewer rows, and whatever identifies our machine
# is blanked out.
#
# /// exercise | Two things changed | 3 minutes
# With a warp for each row there are also 32 times as many threads. So perhaps the sectors were not the cause, and too
# few threads were waiting at once. How would you find out?
# /// answer
# Change only one of the two. For instance, give each row a warp whose lanes each take a *stretch* of the row: there
# are just as many threads, but neighbouring lanes do not read neighbouring numbers. If this kernel is as slow as the
# first one, the sectors were the cause. Such a variant takes half an hour to write, and it proves more than any
# counter.
# ///
#
# /// chart | bars
# title: Sectors that one request touches
# x_label: sectors
# bars:
#   - {name: sectors.thread, label: a thread a row}
#   - {name: sectors.warp, label: a warp a row}
# alt: "Sectors per request: {{ sectors.thread:.1f }} where a thread takes a row, {{ sectors.warp:.1f }} where a warp does."
# ///

# %% [markdown]
# ## The second turn: is the road full of the right things?
#
# Read the percentage: {{ race.warp.of_peak:.0%}}. That is better, but still far from what a copy reaches. So make the
# next guess. The profiler has a page for this guess, *speed of light*: how much did HBM carry, and how much did the
# SMs do, each as a share of the most that is possible? The page shows two percentages. The larger one belongs to the
# road that is fuller. (Open a report, and you will find a larger *memory* figure than ours. Nsight Compute shows
# the fullest part of the whole path, L1, L2 or HBM: its metric is `gpu__compute_memory_throughput`. This page reads
# only HBM: its metric is `dram__throughput`. Where the two figures are far apart, a cache is the full road.)
#
# /// predict | Your kernel reaches {{ race.warp.of_peak:.0%}} of the floor's speed. How busy is HBM while it runs?
# - [memory.warp < 0.65] About as busy as that
# - [0.65 <= memory.warp] Much busier: the road is nearly full
# /// reveal
# HBM is at **{{ memory.warp:.0%}}** of what it can carry, and the SMs are at {{ arithmetic.warp:.0%}} of what they
# can do.
#
# Stop here for a moment, because this is where reports go wrong. *"Memory is at {{ memory.warp:.0%}}, so the kernel
# is at its roof, so it is done."* The road may be full. But what is it full of?
# ///
#
# Put two numbers side by side: the bytes that were **counted**, and the minimum that you worked out **by hand**.
#
# /// chart | bars
# title: Bytes read from HBM
# x_label: GB
# bars:
#   - {name: hand.read_gb, label: by hand}
#   - {name: counted.warp.read_bytes / 1e9, label: a warp a row}
#   - {name: counted.chip.read_bytes / 1e9, label: the row on chip}
# alt: "Gigabytes read from HBM: by hand {{ hand.read_gb:.2f }}, by the warp kernel {{ counted.warp.read_bytes / 1e9:.2f }}, with the row on chip {{ counted.chip.read_bytes / 1e9:.2f }}."
# ///
#
# The kernel walks along the row three times, and each walk goes to HBM again. Why did no cache help? Work it out by hand:
# 8192 warps are resident at once, each with its two rows of 64 KiB. That is 1 GiB, and L2 holds {{ gpu.l2_mib:.0f }}
# MiB. When a warp comes back to the beginning of its row, that data is long gone.
#
# So the cause has a name: *the same bytes, carried three times*. The cure is to carry them once, and to keep the sum
# x + r on chip. A row is 64 KiB; the shared memory of a multiprocessor has room for three.
#
# /// diff | src/course_kernels/add_norm/k02_warp_a_row.cu | src/course_kernels/add_norm/k03_row_on_chip.cu
# ///
#
# /// claim | counted.warp.read_bytes > 2.2 * hand.read_gb * 1e9 and counted.chip.read_bytes < 1.15 * hand.read_gb * 1e9 and race.chip.us < 0.95 * race.warp.us
# Before the cure {{ counted.warp.read_bytes / 1e9:.2f }} GB were read, where {{ hand.read_gb:.2f }} would have been
# enough. After the cure it was {{ counted.chip.read_bytes / 1e9:.2f }} GB. The time went from {{ race.warp.us:.0f }}
# to {{ race.chip.us:.0f }} µs. *The counter tells you that the road is full. It does not tell you whether the job
# needs all that traffic.*
# /// otherwise
# The kernel read {{ counted.warp.read_bytes / 1e9:.2f }} GB before, and reads {{ counted.chip.read_bytes / 1e9:.2f }}
# GB now. It took {{ race.warp.us:.0f }} µs before, and takes {{ race.chip.us:.0f }} µs now.
# ///
#
# You can open the [report of this kernel](artifact:turn_2_after.ncu-rep) yourself.

# %% [markdown]
# ## The third turn: what do the warps wait for?
#
# The kernel reaches {{ race.chip.of_peak:.0%}} of peak, and moves no more bytes than it must. HBM is busy
# {{ memory.chip:.0%}} of the time. So now there are gaps in the traffic, and the question is a new one: who should
# have been walking, and was not?
#
# Two more counters help. At each tick, a scheduler looks for a warp that can go on. A warp that cannot go on has a
# **stall reason**, and the card counts, for each reason, how many ticks all the scheduler's warps together wait per
# instruction issued. The other counter is **occupancy**: of the 64 warps that a multiprocessor can hold, how many
# were there?
#
# /// predict | What do the warps of this kernel wait for most?
# - [stall.chip.long_scoreboard >= max(stall.chip.short_scoreboard, stall.chip.barrier, stall.chip.wait)] HBM or L2: *long scoreboard*
# - [stall.chip.short_scoreboard > max(stall.chip.long_scoreboard, stall.chip.barrier, stall.chip.wait)] Shared memory: *short scoreboard*
# - [stall.chip.barrier > max(stall.chip.long_scoreboard, stall.chip.short_scoreboard, stall.chip.wait)] Each other: *barrier*
# - [stall.chip.wait > max(stall.chip.long_scoreboard, stall.chip.short_scoreboard, stall.chip.barrier)] A fixed number of ticks: *wait*
# /// reveal
# *Long scoreboard* is at {{ stall.chip.long_scoreboard:.2f }}, short scoreboard is at
# {{ stall.chip.short_scoreboard:.2f }}, barrier is at {{ stall.chip.barrier:.2f }}, and wait is at
# {{ stall.chip.wait:.2f }}.
#
# /// table
# turned: true
# columns: [kernel, long scoreboard, short scoreboard, barrier, queue to memory, wait, "occupancy", "HBM busy"]
# rows:
#   - ["a warp a row", "{{ stall.warp.long_scoreboard:.2f }}", "{{ stall.warp.short_scoreboard:.2f }}", "{{ stall.warp.barrier:.2f }}", "{{ stall.warp.lg_throttle:.2f }}", "{{ stall.warp.wait:.2f }}", "{{ warps.warp:.0%}}", "{{ memory.warp:.0%}}"]
#   - ["the row on chip", "{{ stall.chip.long_scoreboard:.2f }}", "{{ stall.chip.short_scoreboard:.2f }}", "{{ stall.chip.barrier:.2f }}", "{{ stall.chip.lg_throttle:.2f }}", "{{ stall.chip.wait:.2f }}", "{{ warps.chip:.0%}}", "{{ memory.chip:.0%}}"]
#   - ["the row in registers", "{{ stall.registers.long_scoreboard:.2f }}", "{{ stall.registers.short_scoreboard:.2f }}", "{{ stall.registers.barrier:.2f }}", "{{ stall.registers.lg_throttle:.2f }}", "{{ stall.registers.wait:.2f }}", "{{ warps.registers:.0%}}", "{{ memory.registers:.0%}}"]
# caption: Ticks that the warps of a scheduler wait, all together, for each instruction that it issues. *Queue to memory* is what NVIDIA calls LG throttle, a queue of orders to memory that is full.
# ///
#
# You will meet other reasons, for instance in [the table of L6](l6_tensor_cores.py#what-they-wait-for): *MIO
# throttle*, the same kind of queue in front of shared memory; *math pipe throttle*, an arithmetic unit that is busy;
# *GMMA*, an order to the tensor cores that is in flight. [The dictionary of stalls](../stall_reasons.py) lists them
# all.
#
# How many warps wait at a time? Multiply by the instructions issued per tick: {{ stall.chip.long_scoreboard:.2f }} ×
# {{ issue.chip:.3f}} is {{ stall.chip.long_scoreboard * issue.chip:.1f}} warps per scheduler. With the row in
# registers, {{ stall.registers.long_scoreboard * issue.registers:.1f}} warps wait, and that kernel is the faster one:
# more warps wait, because more are resident.
# ///
#
# Look at *a warp a row* in the table too. That kernel waited for HBM as well, but *there the road was full*. So a
# stall reason alone proves nothing: in a kernel at its roof, the warps wait for HBM. Waiting for HBM counts against a
# kernel only when the road is not full. Then it means that too few warps are resident.
#
# And why are there too few? Work it out by hand: a block keeps a row of 64 KiB, so three blocks fit on a
# multiprocessor, with three warps each. That makes nine of 64 warps.
#
# /// exercise | Enough for the hall? | 3 minutes
# [Little's rule](l3_memory.py#how-many-must-be-walking): bytes in flight = bandwidth × latency. By the data sheet,
# each multiprocessor has a share of {{ gpu.gb_per_s / gpu.sms:.1f }} GB/s. Of every three bytes that move, one is
# written. A multiprocessor holds nine warps. In the machine code the first loop is written out (*unrolling*), and a thread asks for
# sixteen numbers of four bytes before it needs the first. These numbers do not all arrive at once, so assume that a
# thread has ten in flight at a time. How soon must an answer come for that to be enough, if the warps spend half of
# the time adding up or writing?
# /// answer
# 9 × 32 × 10 × 4 = 11 520 bytes are in flight while all the warps fetch, and about half of that on average, 5760. GB
# per second are the same as bytes per nanosecond. Divide by two thirds of the share, since a third of what moves is
# written. HBM must answer within {{ 5760 / (2 / 3 * gpu.gb_per_s / gpu.sms):.0f }} ns. On the {{ l3.gpu.name }} of L3
# a trip takes {{ l3.hop.hbm / l3.card.clock * 1e3:.0f }} ns when HBM has nothing else to do, and here it is busy and
# answers later. So nine warps are not enough. This is a rough estimate, but it tells you where to look.
# ///
#
# The cure is to keep the row where there is more room for the warps that fetch it. A multiprocessor has 256 KiB of
# registers. Give the row to 512 threads, 32 numbers each, and two such blocks fit.
#
# /// diff | src/course_kernels/add_norm/k03_row_on_chip.cu | src/course_kernels/add_norm/k04_row_in_registers.cu
# ///
#
# /// claim | warps.chip < 0.2 and warps.registers > 2 * warps.chip and memory.registers > 1.05 * memory.chip and race.registers.us < 0.95 * race.chip.us
# Occupancy was {{ warps.chip:.0%}} before, and is {{ warps.registers:.0%}} now. HBM was busy {{ memory.chip:.0%}} of
# the time before, and is busy {{ memory.registers:.0%}} of the time now. The kernel took {{ race.chip.us:.0f }} µs
# before, and takes {{ race.registers.us:.0f }} µs now.
# /// otherwise
# Occupancy was {{ warps.chip:.0%}} before, and is {{ warps.registers:.0%}} now. The kernel took
# {{ race.chip.us:.0f }} µs before, and takes {{ race.registers.us:.0f }} µs now.
# ///
#
# /// claim | warps.warp > 1.2 * warps.registers and race.registers.us < 0.8 * race.warp.us
# And here is the trap. *More occupancy is better*, somebody says. The kernel of the second turn had
# {{ warps.warp:.0%}}, more than the last kernel, and is slower. Occupancy is not the goal. The goal is bytes under
# way.
# /// otherwise
# Occupancy is not the goal: the kernel of the second turn has {{ warps.warp:.0%}}, and the last kernel has
# {{ warps.registers:.0%}}.
# ///
#
# Here is the [report of the last kernel](artifact:turn_3_after.ncu-rep).
#
# ### Where the loop ends
#
# You have read five counters, and each answered one question:
#
# | counter | its question |
# |---|---|
# | sectors per request | do neighbouring lanes read neighbours? |
# | how busy HBM and the SMs are | which road is full? |
# | bytes read from HBM | is it full of the right things? |
# | stall reasons | what do the warps wait for? |
# | occupancy | how many of them are there? |
#
# /// chart | staircase
# title: Three turns of the loop
# y_label: "% of peak"
# steps:
#   - {name: 100 * race.thread.of_peak, label: a thread a row}
#   - {name: 100 * race.warp.of_peak, label: a warp a row}
#   - {name: 100 * race.chip.of_peak, label: row on chip}
#   - {name: 100 * race.registers.of_peak, label: row in registers}
# alt: "Percent of peak of four kernels: {{ race.thread.of_peak:.0%}}, {{ race.warp.of_peak:.0%}}, {{ race.chip.of_peak:.0%}}, {{ race.registers.of_peak:.0%}}."
# ///
#
# /// table
# columns: [add and norm, "time, µs", "% of peak"]
# rows:
#   - [a thread a row, "{{ race.thread.us:.0f }}", "{{ race.thread.of_peak:.1%}}"]
#   - [a warp a row, "{{ race.warp.us:.0f }}", "{{ race.warp.of_peak:.1%}}"]
#   - [the row on chip, "{{ race.chip.us:.0f }}", "{{ race.chip.of_peak:.1%}}"]
#   - ["**the row in registers**", "{{ race.registers.us:.0f }}", "**{{ race.registers.of_peak:.1%}}**"]
#   - ["PyTorch, as you would write it", "{{ race.eager.us:.0f }}", "{{ race.eager.of_peak:.1%}}"]
#   - [torch.compile, "{{ race.compiled.us:.0f }}", "{{ race.compiled.of_peak:.1%}}"]
# ///
#
# When do you stop? When you have caught up with kernels that do nothing but carry. This kernel reaches
# {{ race.registers.tb_per_s:.2f }} TB/s. Time [a plain copy](../one_token.py#the-floor-of-a-step-by-hand) on your card: once the
# two are level, *this kernel* is done, and the next question is whether it needs to run at all.

# %% [markdown]
# ## Where does the time go?
#
# All this was about one kernel. A program has many kernels, and the first question is which of them takes the time.
# Imagine a shift of ten hours: six at the oven, three at the sink, and one at the till. Halve the oven, and the shift
# takes seven hours, so you gain 10 / 7. Buy an oven that takes no time at all, and four are left: 10 / 4 = 2.5, and
# nothing in the world can make it more [^amdahl1967].
#
# /// exercise | Whose turn is it? | 2 minutes
# After the oven has been halved, which part do you look at next, and how much could you gain at most by making that
# part perfect?
# /// answer
# The oven and the sink now take three of the seven hours each. If either of them took no time, four hours would be
# left. Choose the one that is easier to improve, not the one that you are used to improving.
# ///
#
# ### Gaps between the kernels
#
# Now take a whole program: one step of [the model with 8 billion weights](../one_token.py), which writes one token.
# PyTorch's own profiler records two things: when the host wrote an order, and when the card worked. Draw the two as
# lanes, one above the other.
#
# /// predict | A step of the plain model, two thousand small kernels or so. For what share of the time does the card work?
# - [step.plain.share < 0.5] Less than half
# - [0.5 <= step.plain.share < 0.9] More than half
# - [step.plain.share >= 0.9] Nearly all of it
# /// reveal
# The card works for {{ step.plain.share:.0%}} of the time, while this profiler is watching.
#
# /// chart | trace
# title: A window in the middle of a step
# trace: lanes.plain
# x: t_us
# x_label: microseconds
# panels:
#   - {column: host, y_label: writes an order, label: the host}
#   - {column: card, y_label: at work, label: the card}
# alt: "Two lanes over time, each either up or down. Above, the host writes one order after the other. Below, the card works in short pieces with gaps between them. Over the whole step the card works for {{ step.plain.share:.0%}} of the time."
# caption: Up is busy. In every gap below, the card has done all that it was told to do.
# ///
# ///

# %% tags=["fold"]
import gzip
import tempfile
from pathlib import Path

import torch
from course_kernels.measure import trace
from course_models import bench
from course_models.graph import CapturedDecode
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

WINDOW_US = 250.0


def watched(step):
    """What PyTorch's profiler saw of one step: orders of the host, kernels of the card, and the whole trace."""
    step()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        step()
        torch.cuda.synchronize()
    orders, kernels = [], []
    for event in seen.events():
        span = event.time_range.start, event.time_range.end
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            kernels.append(span)
        elif event.name.startswith(
            ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
        ):
            orders.append(span)
    if not kernels or not orders:
        raise RuntimeError("the profiler saw no kernel, or no order")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        seen.export_chrome_trace(str(file))
        whole = scrubbed(file.read_bytes(), private_words())
    return sorted(orders), sorted(kernels), gzip.compress(whole, mtime=0)


def busy(spans, begin, end):
    """How long at least one of the spans was under way, between two times."""
    total, done = 0.0, begin
    for start, stop in spans:
        start, stop = max(start, done), min(stop, end)
        total += max(0.0, stop - start)
        done = max(done, stop)
    return total


def lanes(orders, kernels):
    """Two lines that are up where there is work, over a window in the middle of the step."""
    begin = kernels[len(kernels) // 2][0]
    edges = {0.0, WINDOW_US}
    for spans in (orders, kernels):
        for span in spans:
            # Two points at an edge, so that the line goes straight up.
            for t in span:
                if 0 < t - begin < WINDOW_US:
                    edges |= {t - begin, t - begin + 1e-3}
    times = sorted(edges)

    def up(spans):
        return [
            float(any(a <= begin + max(0.0, t - 5e-4) < b for a, b in spans))
            for t in times
        ]

    near = [
        [s for s in spans if s[1] > begin - 1 and s[0] < begin + WINDOW_US + 1]
        for spans in (orders, kernels)
    ]
    return trace({"t_us": times, "host": up(near[0]), "card": up(near[1])})


def told_of(orders, kernels):
    """Numbers of a step: kernels, orders, from the first kernel to the last, and how much of that the card works."""
    begin, end = kernels[0][0], max(stop for _, stop in kernels)
    return {
        "kernels": quantity(len(kernels), how="counted"),
        "orders": quantity(len(orders), how="counted"),
        "us": quantity(end - begin, "µs", "timed"),
        "share": quantity(busy(kernels, begin, end) / (end - begin), how="timed"),
    }


model = bench.subject()
token = torch.zeros(1, dtype=torch.int64, device="cuda")
cache = bench.filled_cache(model, batch=1)
plain_step = watched(lambda: model.decode(token, cache))
captured = CapturedDecode(model, cache)
graph_step = watched(lambda: captured(token, cache))

record(
    step={"plain": told_of(*plain_step[:2]), "graph": told_of(*graph_step[:2])},
    lanes={"plain": lanes(*plain_step[:2]), "graph": lanes(*graph_step[:2])},
    trace_of={
        "plain": artifact("decode_step.json.gz", plain_step[2]),
        "graph": artifact("decode_step_graph.json.gz", graph_step[2]),
    },
)

# %% [markdown]
# You can walk through the whole step: [the trace](artifact:decode_step.json.gz) opens in Perfetto, a viewer for such timelines at `ui.perfetto.dev`, or in Chrome at `chrome://tracing`.
#
# Why the gaps? An order [costs the host some microseconds](l2_the_cuda_model.py#what-a-launch-costs),
# {{ l2.order.torch.us:.1f }} µs for PyTorch in a bare loop on the machine that L2 ran on, which has an
# {{ l2.gpu.name }}. Here an order takes {{ step.plain.us / step.plain.orders:.0f }} µs: the model's Python code
# runs as well, the profiler is watching, and the host may be a different one. This run cannot say how much each of the three
# costs. A kernel that finishes sooner leaves the card idle until the next
# order comes. The program is **drowning in launches**. There are two cures: *fuse*, so that there are fewer kernels;
# or write all the orders once, on one sheet, and send the whole sheet. That sheet is a **CUDA graph**.
#
# /// chart | trace
# title: The same model, with its orders on one sheet
# trace: lanes.graph
# x: t_us
# x_label: microseconds
# panels:
#   - {column: host, y_label: writes an order, label: the host}
#   - {column: card, y_label: at work, label: the card}
# alt: "Two lanes over time. Above, the host has nothing to do. Below, the card works with short gaps: over the whole step for {{ step.graph.share:.0%}} of the time."
# ///
#
# /// claim | step.graph.share > 5 * step.plain.share and step.graph.us < 0.2 * step.plain.us and step.graph.orders < 0.05 * step.plain.orders
# {{ step.plain.orders:.0f}} orders became {{ step.graph.orders:.0f}}. The card works for {{ step.graph.share:.0%}} of
# the time instead of {{ step.plain.share:.0%}}, and the step takes {{ step.graph.us / 1e3:.1f}} ms instead of
# {{ step.plain.us / 1e3:.1f}}. No kernel was changed. (Here is [the trace](artifact:decode_step_graph.json.gz) of
# this step.)
# /// otherwise
# {{ step.plain.orders:.0f}} orders became {{ step.graph.orders:.0f}}. The card worked for {{ step.plain.share:.0%}}
# of the time before, and works for {{ step.graph.share:.0%}} of it now. (Here is
# [the trace](artifact:decode_step_graph.json.gz) of this step.)
# ///
#
# ## Four kinds of bound
#
# Put what you have seen into one table. Every kernel waits for one of four things. How busy HBM is, how busy the SMs are, and a look at the clock tell you which.
#
# /// table
# columns: [bound, a kernel that shows it, "HBM busy", "SMs busy", "what to do"]
# rows:
#   - [memory, "add and norm, the last one", "{{ memory.registers:.0%}}", "{{ arithmetic.registers:.0%}}", carry less]
#   - [compute, "multiply-adds, eight chains a thread", "{{ memory.arithmetic:.0%}}", "{{ arithmetic.arithmetic:.0%}}", "compute less, or on tensor cores"]
#   - [latency, "multiply-adds, one chain, one warp a scheduler", "{{ memory.latency:.0%}}", "{{ arithmetic.latency:.0%}}", "more at once"]
#   - [launch, "adding two lists of 1024 numbers", "{{ memory.launch:.0%}}", "{{ arithmetic.launch:.0%}}", "fewer, larger orders"]
# ///
#
# /// claim | memory.registers > 0.7 and arithmetic.registers < memory.registers and arithmetic.arithmetic > 0.7 and memory.arithmetic < 0.2 and max(arithmetic.latency, memory.latency) < 0.5 and max(arithmetic.launch, memory.launch) < 0.2
# When memory is the bound, HBM is busy. When compute is the bound, the SMs are busy. When latency is the bound,
# neither is busy, and yet the card is at work all the time, on a chain in which each step waits for the step before.
# When launches are the bound, neither is busy, and the kernel is finished before the next order is written. Most
# reports give up when both are low, a case that has two causes. No counter tells these causes apart: the last
# row only shows how little of the card a tiny kernel keeps busy. The timeline shows whether a program waits for its
# launches.
# /// otherwise
# HBM and the SMs, busy: {{ memory.registers:.0%}} and {{ arithmetic.registers:.0%}}, {{ memory.arithmetic:.0%}} and {{ arithmetic.arithmetic:.0%}}, {{ memory.latency:.0%}} and {{ arithmetic.latency:.0%}}, {{ memory.launch:.0%}} and {{ arithmetic.launch:.0%}}.
# ///
#
# [The dictionary of stalls](../stall_reasons.py) lists the name of each wait, with a small kernel that was made to
# cause it. [The chart](../when_it_goes_wrong.py#right-but-slow) leads from a symptom to a lesson.

# %% [markdown]
# ## What the profiler changes {.beyond}
#
# A profiler is not a window: it changes what it looks at. It can read only a few counters at a time, so it runs your
# kernel several times and restores memory in between. This is called **replay**. The profiler empties the caches
# before each of those runs. And unless you tell it otherwise, it holds the clock at a fixed rate [^nvidia-ncu-guide].
# All our profiler runs use `--clock-control none`, so that the card behaves as it does when you time it.
#
# /// table
# columns: [add and norm, "our clock, µs", "the profiler's, µs"]
# rows:
#   - [a warp a row, "{{ race.warp.us:.0f }}", "{{ stopwatch_of.warp:.0f }}"]
#   - [the row on chip, "{{ race.chip.us:.0f }}", "{{ stopwatch_of.chip:.0f }}"]
#   - [the row in registers, "{{ race.registers.us:.0f }}", "{{ stopwatch_of.registers:.0f }}"]
# caption: Large kernels, whose data no cache can hold. There the two clocks have little reason to disagree.
# ///
#
# How much does emptying the caches matter? Take a job that fits into L2, run it once to warm the cache, and count
# what the job reads from HBM: once with the profiler's defaults, and once with `--cache-control none`.

# %% tags=["fold"]
from course_kernels.measure.reports import count_with

tiny = Workload.of("float32", M=128, N=16384)  # 8 MB for each matrix: fits into L2
READ = "dram__bytes_read.sum"
emptied = count_with(
    k04_row_in_registers, tiny, [READ, TIME], ["--cache-control", "all"]
)
left = count_with(
    k04_row_in_registers, tiny, [READ, TIME], ["--cache-control", "none"]
)
once = count_with(k04_row_in_registers, tiny, METRICS, ["--cache-control", "all"])
record(
    caches={
        "emptied_mb": quantity(emptied.of(READ) / 1e6, "MB", "counted"),
        "left_mb": quantity(left.of(READ) / 1e6, "MB", "counted"),
        "least_mb": quantity(PROBLEM.reads_bytes(tiny) / 1e6, "MB"),
    },
    replay={
        "few": quantity(emptied.passes, how="counted"),
        "many": quantity(once.passes, how="counted"),
    },
)

# %% [markdown]
# /// claim | caches.emptied_mb > 0.8 * caches.least_mb and caches.left_mb < 0.5 * caches.emptied_mb
# The minimum is {{ caches.least_mb:.1f }} MB. With emptied caches the job reads {{ caches.emptied_mb:.1f }} MB from
# HBM; with the caches left as they are it reads {{ caches.left_mb:.1f }} MB. Both numbers are true, for two different
# situations. Which situation is yours? Ask what ran before your kernel.
# /// otherwise
# With emptied caches the job reads {{ caches.emptied_mb:.1f }} MB from HBM; with the caches left as they are it reads
# {{ caches.left_mb:.1f }} MB.
# ///
#
# /// when | replay.many > replay.few
# And how often does replay run the kernel? The profiler needed {{ replay.few:.0f }} passes of the kernel for two
# counters, and {{ replay.many:.0f }} for all the counters on this page. So take *counts* from a profiler, and *times*
# from a clock.
# /// otherwise
# The profiler needed {{ replay.few:.0f }} passes of the kernel for two counters, and {{ replay.many:.0f }} for all
# the counters on this page.
# ///

# %% [markdown]
# ## Without counters
#
# On shared machines the counters are often locked [^nvidia-counters], and on other machines there is no `ncu`. You
# still have the clock, the pencil, the machine code, and *experiments*. In the best experiments you leave a stage
# out, or do it twice, and see whether the time changes.
#
# - **Leave the arithmetic out.** Only copy in and copy out. Is the kernel as slow as before? Then it waits for bytes.
# - **Leave the loads out.** Make up the numbers from the index. Is the kernel as slow as before? Then it does not
#   wait for bytes.
# - **Do a stage twice.** The added time is what the stage costs *in its place*. Is no time added? Then nobody waited
#   for that stage.
# - **Try fewer threads and more threads.** Does the time stay the same over a wide range? Then the kernel is at a
#   roof.
#
# The answers of such a kernel are wrong on purpose, so you time it and never use them. And watch out for the compiler:
# it removes any result that nobody reads, and then you are timing an empty kernel. Check in the machine code that the
# stage is still there.
#
# /// exercise | What would you leave out? | 3 minutes
# Take the kernel of the second turn, with its three walks. Which experiment would have shown, without a counter, that the walks go to HBM each time?
# /// answer
# Leave the second walk out and use any number as the spread. Two of the three walks are left: if the walks go to HBM,
# five matrices move instead of seven, and the time shows it. If the second walk was served from a cache, next to
# nothing changes.
# ///

# %% [markdown]
# ## The next thing to try
#
# Now take your own kernel. Write one page with five headings: *what it does*, *forecast*, *measured*, *counted*,
# *next*. The forecast is written in ink before anything runs. Under *next* are three short lines, and they are the
# whole craft:
#
# > one change → one counter that must move → if it does not, then …
#
# Can your neighbour tell from your page which counter must move? Then you have a plan. If not, you have only a wish.
#
# `nox -s profile -- my_labs/register_tile.cu --report` fills in what a machine can: it asks for your forecast, and then writes a
# page with time, percent of peak, bytes against the minimum, and the largest waits. With `--hint`, and only then, it says what to
# try next. It recognises a lab's file by its name; for any other file, say
# what the file computes, as in `--problem softmax`. Without a card, or without `ncu`, it reports what the compiler knows, registers and how
# many blocks fit, and says what is missing.
#
# ### Three tests for any report
#
# Before you believe a report, your own first, put three questions to it. Was *every* element of the answer
# [checked](../how_we_measure.py#first-taste-then-time) against the truth, before anything was timed? Is the time
# above the **floor**? And were the two kernels run **in turns**, with the spread given beside the difference? A
# report that passes all three tests may still be wrong. A report that fails even one of them proves nothing.
#
# /// exercise | Read a report | 5 minutes
# A friend shows you four lines. *(a) HBM is nearly full; the bytes counted are those worked out by hand. (b) HBM is
# nearly full; twice the bytes worked out by hand were counted. (c) Neither HBM nor the SMs are half full, there are
# few warps, and they wait on the long scoreboard. (d) Both are nearly idle, and the program takes far longer than all
# its kernels together.* For each line, say in one sentence what to do next.
# /// answer
# (a) Done: ask whether the kernel must run at all, or fuse it. (b) Something is carried twice: keep it on chip. (c)
# Too few bytes are in flight: what keeps other warps out, registers or shared memory? (d) The card waits for orders:
# fuse kernels, or use a graph.
# ///

# %% [markdown]
# ## Six kernels, six reasons {.beyond}
#
# This page chose its kernel, and the order of its turns. Here nobody chooses for you. Here are six kernels, all of
# them correct. Each is slow for one reason, and no two are slow for the same reason. You say which reason, you say
# which counter proves it, and you remove the cause. The sentence comes first again: the grader reads what you believe
# before it runs a line of your code. [The dictionary of stalls](../stall_reasons.py) shows what each wait looks like
# in the counters, with a small kernel for it.
#
# You choose among seventeen reasons. They are the names that the course's own profiler uses:
#
# | reason | it means |
# |---|---|
# | launch-bound | the host orders work more slowly than the card does it |
# | uncoalesced | neighbouring lanes do not ask for neighbouring bytes |
# | bank conflicts | lanes of a warp ask for different words of one bank of shared memory |
# | spills | registers were not enough, and values go to memory and come back |
# | divergence | lanes of a warp take different branches, one branch after the other |
# | atomics | many additions to one address, one after the other |
# | tail wave | most SMs have nothing to do while the last blocks run |
# | few blocks | all blocks fit on the card at once, and SMs have nothing to do: the launch is less than one wave |
# | too many bytes | the same bytes cross the way to HBM more than once |
# | bytes in flight | warps wait for HBM, and HBM has room: too few bytes are in flight |
# | no reuse | arithmetic should bind, and yet warps wait for memory: each number is fetched for one use |
# | cache traffic | L1, L2 or shared memory is full, and HBM is not: the same words are asked for again and again |
# | barriers | warps wait for the slowest of their block |
# | memory queue | so many memory accesses are waiting that their queue is full |
# | shared memory | warps wait for its answer, or for room in its queue |
# | arithmetic | an arithmetic unit is full |
# | one chain | each instruction waits for the one before it |
#
# /// lab | bottleneck
# ///

# %% [markdown]
# ## Before you leave
#
# **You can now** write a forecast in ink, name a cause from one counter, cure it and watch the same counter move; say
# when a full road is a good sign and when it is not; find the gaps in a program; and tell four bounds apart.
#
# Remember one sentence. *A counter answers a question, so come with a question.*
#
# **Where this leads.** The first half is complete: you can make a multiply fast, and prove it. What comes next is
# larger than one kernel, and the same loop works there too. If you work alone, go on with
# [attention](l8_attention.py). A cohort has already worked through attention and W1, and can profile its own kernel
# from W1; it goes on with [one token](../one_token.py). [How every number here is measured](../how_we_measure.py)
# explains the clock and the counters on this page. [The ledger](../numbers.md) lists each number with its spread.
