# ---
# id: week_18
# title: "Week 18: profiling"
# search: {rank: 2}
# nav: "18 · Profiling"
# description: "A report on one multiply: forecast, counters, and what the six stalls that everybody looks at leave out; one change, and the number that must move if it was the right one."
# ---

# %% [markdown]
# # Week 18: profiling
#
# /// week
# ///
#
# By the end of this week you can
#
# - write a report on a kernel that somebody else can check: forecast, counters, one change, the counter that must move;
# - say whether the stalls in a table are all of the waiting, with one subtraction;
# - take a percentage of peak apart, into idle ticks and a low clock.
#
# ## Why this week
#
# A time says that a kernel is slow, a profiler offers hundreds of numbers that say why, and most of them are true and beside the point. The question stays the course's: what percent of peak, and why not more? This week you
# answer it from counters.
#
# ## Before you begin
#
# - What is a roofline, and on which side of the ridge is a large multiply? [Week 1](week_01.py), or [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
# - What does a warp wait for in a multiply with `wgmma`? [Week 16](week_16.py), or [W2](../workshops/w2_hopper.py#find-the-waits).
# - Why is the guess written down before anything is measured? [L7](../lectures/l7_profiling.py#the-loop).
#
# ## Read
#
# /// reading
# nvidia-ncu-guide: "Two chapters, *Metric Collection* with its replays and *Metrics Guide*, and the list of warp stall reasons, as a dictionary beside [ours](../stall_reasons.py): some thirteen thousand words. The rest of the guide is for looking things up. Names have changed over the years: look up each in the guide of *your* version."
# nsight-roofline: "Take how a roofline is made from counters, level by level. It is of 2020 and for scientific codes: before you put a kernel in bf16 on such a chart, ask whose roof is drawn, the tensor cores' or the plain lanes'."
# nsys-guide: "Take its first chapter, on profiling a part of a run, and from its command line the options of `nsys profile`. You need four of the many: what to trace, a file, and when to begin and to end. A run that ends by `--duration` ends your program too, unless you say `--kill none`. [Timelines](../field_guide/timelines.py#what-to-type) has the commands, and what to look for in the picture."
# ///
#
# ## Ideas
#
# - What is *speed of light* in a report? [The second turn](../lectures/l7_profiling.py#the-second-turn-is-the-road-full-of-the-right-things): two percentages of the most that is possible, and why a full road need not be a good one.
# - What does *memory workload* tell? Sectors per request in [the first turn](../lectures/l7_profiling.py#the-first-turn-do-neighbouring-lanes-read-neighbours), bank conflicts in [thirty-two windows](../lectures/l3_memory.py#thirty-two-windows), and L1 and L2 hit rates: what part of the requests need not go further. *Global load efficiency* is a word of an older profiler,
#   and sectors per request have taken its place.
# - Which four bottlenecks are there, and how do you tell them apart? [Four kinds of bound](../lectures/l7_profiling.py#four-kinds-of-bound): memory, compute, latency, launches.
# - What does a timeline of Nsight Systems show that counters cannot? [Gaps between the kernels](../lectures/l7_profiling.py#gaps-between-the-kernels), and several streams on the page about [timelines](../field_guide/timelines.py#one-stream-waits-for-another).
#
# /// idea | What does a capture with ncu's full set collect?
# You ask for it with `--set full`. A *set* is a list of sections, a section a list of counters. *Full* is all that fit most questions, and since a card can read only a few at a time, the kernel is [run many times over](../lectures/l7_profiling.py#what-the-profiler-changes). So take one launch, past the warm-up, and take times from a clock. Unless you say
# `--clock-control none`, the clock is held at a fixed rate, and the card is not the one that you race on.
# ///
#
# /// idea | What is a stall reason, and what are its names?
# In each tick each resident warp can go on, or has one reason why not. *Long scoreboard*: it waits for HBM or L2; in older texts that is *memory dependency*. *MIO throttle*: the queue of orders to shared memory is full. *No instruction*: the next lines of code are not there yet. [The
# dictionary](../stall_reasons.py#all-at-a-glance) has fourteen, each with a kernel that was made to cause it.
# ///
#
# /// idea | What do scheduler statistics tell?
# An SM has four schedulers, and each can issue one instruction a tick: four is the theoretical most of *instructions per cycle*, IPC. *Issued* is how many it was. *Active* warps are there, *eligible* ones could go on now. Few active: occupancy. Many active and none eligible: all wait, so look at the stalls.
#
# /// when | l6.tensor.cublas.issue > 0
# But a low IPC is no fault in itself: cuBLAS, at {{ l6.climb.cublas.of_peak:.0%}} of peak, issues in {{ l6.tensor.cublas.issue:.0%}} of the ticks, since one of its orders is a lot of work.
# /// otherwise
# But a low IPC is no fault in itself: one order to the tensor cores is a lot of work, and a good multiply gives few.
# ///
# ///
#
# ## Do
#
# Profile a multiply with WGMMA, name the stall, change one thing, and profile again. Here it is k04, [L6's kernel](../lectures/l6_tensor_cores.py#wgmma-leave-it-in-shared-memory), and not k08 of week 16, since k04 is the one whose counters are on record.
# On a card you would type this, with a file `mine.py` that calls it three times, since the first two are skipped:
#
# ```
# import torch
# from course_kernels.gemm import k04_wgmma
#
# a, b = torch.randn(2, 4096, 4096, device="cuda", dtype=torch.bfloat16)
# for _ in range(3):
#     k04_wgmma.gemm(a, b)
# ```
#
# ```
# ncu --set full --clock-control none --kernel-name regex:gemm_wgmma --launch-skip 2 --launch-count 1 -o report python mine.py
# ```
#
# **Forecast.** 4096 each way, bf16.

# %%
from course_kernels.measure import quantity, record

N, NUMBER = 4096, 2  # each way; bytes of a number
flops, least = 2 * N**3, 3 * N * N * NUMBER
THREADS, LANES, SCHEDULERS = (
    256,
    32,
    4,
)  # a block of k04, and one block fits on an SM

record(
    hand={
        "intensity": quantity(flops / least, "FLOP/B"),
        "mb": quantity(least / 1e6, "MB"),
        "floor": quantity(1e6 * flops / 989.4e12, "µs"),
        "warps": quantity(THREADS / LANES / SCHEDULERS),
    },
    peak=quantity(989.4, "TFLOP/s", how="given"),
    sheet={
        "mhz": quantity(1830, "MHz", how="given")
    },  # what that peak is drawn for
)

# %% [markdown]
# {{ hand.mb:.0f}} MB at least and {{ hand.intensity:.0f}} FLOP/B, where the ridge of this card is at {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}}: compute binds. At the H100's dense peak of {{ peak:.1f}} TFLOP/s [^lockwood-h100] the floor is {{ hand.floor:.0f}} µs.
#
# /// define | six = l6.stall.wgmma.pantry + l6.stall.wgmma.tray + l6.stall.wgmma.counter + l6.stall.wgmma.barrier + l6.stall.wgmma.mill + l6.stall.wgmma.order
# unit: "1"
# what: ticks that the warps of a scheduler wait, for six reasons together, for each instruction of k04
# ///
#
# /// define | explained = six * l6.tensor.wgmma.issue / (hand.warps - l6.tensor.wgmma.issue)
# unit: "1"
# what: the part of all waiting of k04's warps that six stall reasons account for
# ///
#
# /// when | l6.tensor.wgmma.busy > 0
# **Measured.** {{ l6.climb.wgmma.us:.0f}} µs, {{ l6.climb.wgmma.of_peak:.1%}} of peak.
#
# **Counted.** First the roads. On the way from HBM it moves {{ (l6.counted.wgmma.read_bytes + l6.counted.wgmma.write_bytes) / 1e6:.0f}} MB, so its point on the roofline is further left than by hand, and still right of the ridge. So the question is for the tensor cores.
#
# /// predict | In what share of the ticks were k04's tensor cores at work?
# - [l6.tensor.wgmma.busy < 0.45] Less than half
# - [0.45 <= l6.tensor.wgmma.busy < 0.75] Between a half and three quarters
# - [l6.tensor.wgmma.busy >= 0.75] Nearly all: it is a kernel of tensor cores
# /// reveal
# {{ l6.tensor.wgmma.busy:.0%}}. For the rest they had no order.
# ///
#
# So the warps were late with their orders. What did they wait for? The [record of L6](../lectures/l6_tensor_cores.py#when-the-tensor-cores-are-idle) has the six reasons that people look at first: HBM or L2, shared memory, its queue, a barrier, the arithmetic unit, and a product in flight. Many a report names the largest
# of them and stops.
#
# /// predict | What part of all the waiting do these six account for?
# - [explained >= 0.75] Nearly all
# - [0.35 <= explained < 0.75] A half or so
# - [explained < 0.35] A third at most
# /// reveal
# {{ explained:.0%}}. **The dominant stall is not in this table:**
#
# /// table
# turned: true
# columns: [k04, HBM or L2, shared memory, its queue, barrier, the arithmetic unit, a product in flight, "all six"]
# rows:
#   - ["ticks for each instruction issued", "{{ l6.stall.wgmma.pantry:.2f}}", "{{ l6.stall.wgmma.tray:.2f}}", "{{ l6.stall.wgmma.counter:.2f}}", "{{ l6.stall.wgmma.barrier:.2f}}", "{{ l6.stall.wgmma.mill:.2f}}", "{{ l6.stall.wgmma.order:.2f}}", "{{ six:.2f}}"]
# caption: "NVIDIA's names: long scoreboard, short scoreboard, MIO throttle, barrier, math pipe throttle, GMMA."
# ///
#
# One subtraction shows it. A block of k04 has 256 threads, which are 8 warps; one block fits on an SM, and its four schedulers have {{ hand.warps:.0f}} warps each. Such a scheduler issues in {{ l6.tensor.wgmma.issue:.0%}} of the ticks, so in each tick {{ hand.warps - l6.tensor.wgmma.issue:.2f}} warps wait, on average, for some reason or other. The six together, {{ six:.2f}} for each
# instruction, times {{ l6.tensor.wgmma.issue:.2f}} instructions a tick, are {{ six * l6.tensor.wgmma.issue:.2f}} warps. The largest number of the table is the largest of a small rest.
# ///
#
# /// otherwise
# **Measured, counted.** Nobody has counted k04 on this card yet, so its report ends with the forecast. Yours goes on, as [L6](../lectures/l6_tensor_cores.py#when-the-tensor-cores-are-idle) does: in what share of the ticks were the tensor cores at work, how many instructions were issued in a tick, and what are the six
# reasons that people look at first? Then do one subtraction. A block of k04 has 256 threads, which are 8 warps; one block fits on an SM, and each of its four schedulers has {{ hand.warps:.0f}} warps. Take away the instructions issued in a tick: so many warps wait, on average. The six reasons together, times the instructions in a tick, are how many of
# those the table explains. Where they are few, the dominant stall is not in it.
# ///
#
# Which is it, then? We have not counted it, and say so. But you can strike names out. The card's counters know eighteen reasons to wait: the fourteen of [our dictionary](../stall_reasons.py#all-at-a-glance), and four that no kernel of it makes. The profiler's guide lists eighteen as well, for the samples it takes [^nvidia-ncu-guide]. Seventeen have the same
# name in both lists. One is left over in each: *GMMA* is in the counters, and in the guide it is *warpgroup arrive*, for a warp that waits at `WARPGROUP.ARRIVES` or `WARPGROUP.WAIT`. k04's loop [has both](../workshops/w2_hopper.py#the-sheet), so that is where you would look. But the two are most likely one reason with two names, and then it is among the six already.
# Twelve are left. `--set full` counts them all. Write your guess in ink, then look.
#
# **A change, and what comes with it.** k04's warps carry the tiles themselves, beside their products. [k06](../workshops/w2_hopper.py#one-order-for-a-whole-tile) leaves that to TMA: {{ w2.code.wgmma.LDGSTS:.0f}} lines of `LDGSTS` before and {{ w2.code.tma.LDGSTS:.0f}} after. But that is not one change alone: its tile is half as wide, and two of its blocks fit on an SM, so the subtraction above would start from four warps.
#
# /// when | l6.tensor.wgmma.busy > 0
# **The counter that must move.** In bursts k06 has {{ w2.burst.nn.n4096.tma / w2.burst.nn.n4096.wgmma:.2f}} times the speed of k04. If the clock stayed, its tensor cores must be at work in {{ l6.tensor.wgmma.busy * w2.burst.nn.n4096.tma / w2.burst.nn.n4096.wgmma:.0%}} of the ticks in place of {{ l6.tensor.wgmma.busy:.0%}}. Nobody has
# read that counter yet: it is a forecast with a number in it, and your card can prove it wrong.
# /// otherwise
# **The counter that must move.** In bursts k06 has {{ w2.burst.nn.n4096.tma / w2.burst.nn.n4096.wgmma:.2f}} times the speed of k04. If the clock stays, the share of the ticks in which its tensor cores are at work must grow by as much. Read it for k04, and you have a forecast with a number in it, which your card can prove wrong.
# ///
#
# Three changes that *were* counted on both sides are the turns of [L7](../lectures/l7_profiling.py#the-first-turn-do-neighbouring-lanes-read-neighbours), on a kernel of another kind. Before and after lie there as files for Nsight Compute, four in all, since the end of one turn is the beginning of the next. You need no card to open them.
#
# /// when | l7.sectors.thread > 0
# | turn | counter | before | after | times the speed |
# | --- | --- | ---: | ---: | ---: |
# | first | sectors of a request | {{ l7.sectors.thread:.1f}} | {{ l7.sectors.warp:.1f}} | {{ l7.race.thread.us / l7.race.warp.us:.1f}} |
# | second | GB read from HBM | {{ l7.counted.warp.read_bytes / 1e9:.2f}} | {{ l7.counted.chip.read_bytes / 1e9:.2f}} | {{ l7.race.warp.us / l7.race.chip.us:.1f}} |
# | third | occupancy | {{ l7.warps.chip:.0%}} | {{ l7.warps.registers:.0%}} | {{ l7.race.chip.us / l7.race.registers.us:.1f}} |
# ///
#
# Now write yours, on one page: the forecast, the counters, the change, and the counter that must move. [Three tests for any report](../lectures/l7_profiling.py#three-tests-for-any-report) say whether somebody else can check it.
#
# ## Milestone
#
# /// when | l6.tensor.wgmma.busy > 0
# /// exercise | Where is the rest of the peak? | 10 minutes
# k04's tensor cores were at work in {{ l6.tensor.wgmma.busy:.1%}} of the ticks, and the profiler counted a clock of {{ l6.tensor.wgmma.clock:.1f}} MHz. For cuBLAS it was {{ l6.tensor.cublas.busy:.1%}} and {{ l6.tensor.cublas.clock:.1f}} MHz. The sheet's peak is drawn for {{ sheet.mhz:.0f}} MHz [^lockwood-h100]. Work out a
# percentage of peak for each from these numbers alone, compare it with what was timed, {{ l6.climb.wgmma.of_peak:.1%}} and {{ l6.climb.cublas.of_peak:.1%}}, and say of each what it lacks: ticks, or clock?
# /// answer
# Share of ticks times share of clock. k04: {{ l6.tensor.wgmma.busy:.1%}} × {{ l6.tensor.wgmma.clock / sheet.mhz:.1%}} = {{ l6.tensor.wgmma.busy * l6.tensor.wgmma.clock / sheet.mhz:.1%}}. cuBLAS: {{ l6.tensor.cublas.busy:.1%}} × {{ l6.tensor.cublas.clock / sheet.mhz:.1%}} =
# {{ l6.tensor.cublas.busy * l6.tensor.cublas.clock / sheet.mhz:.1%}}. Both are above what was timed: profiler and race are different runs, the race has cold caches, and its clock may be another.
#
# k04 lacks ticks: {{ 1 - l6.tensor.wgmma.busy:.0%}} of them are idle, and the clock takes {{ 1 - l6.tensor.wgmma.clock / sheet.mhz:.0%}}. cuBLAS lacks clock: {{ 1 - l6.tensor.cublas.busy:.0%}} idle, and {{ 1 - l6.tensor.cublas.clock / sheet.mhz:.0%}} for the clock, which
# [power](../workshops/w2_hopper.py#power-decides) took from it. So a better order of waits can help k04, and for cuBLAS nearly only less power can. The percentage of peak alone would have told you neither.
# ///
# /// otherwise
# Where is the rest of the peak? Take two counters of k04 and of cuBLAS: the share of the ticks in which the tensor cores were at work, and the clock. The sheet's peak is drawn for {{ sheet.mhz:.0f}} MHz [^lockwood-h100]. Share of ticks times share of clock is a percentage of peak, from these numbers alone. Compare it with what was timed, and
# say of each what it lacks: ticks, or clock? A better order of waits helps the first. For the second only less power can. The percentage of peak alone would tell you neither.
# ///
#
# ## What could not run here
#
# No new profile was taken for this page: k04's counters are from L6's record, and k06's have never been read. On a Hopper card with unlocked counters you would see all eighteen reasons side by side, and which of the twelve is the one. If the counters are locked, [leave a stage out](../lectures/l7_profiling.py#without-counters).
#
# ## What next
#
# [Week 19](week_19.py) takes the same questions to cards of which we have no counters at all.
