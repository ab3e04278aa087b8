# ---
# id: week_14
# title: "Week 14: streams, graphs, asynchronous copies"
# search: {rank: 2}
# nav: "14 · Async"
# description: "What a second buffer is worth to a LayerNorm and to a multiply; bytes that must be in flight; a profile with its largest stall; streams and graphs."
# needs: [gpu, counters]
# ---

# %% [markdown]
# # Week 14: streams, graphs, asynchronous copies
#
# /// week
# ///
#
# By the end of this week you can
#
# - say how many bytes must be in flight, and whether your kernel has them;
# - say of a kernel before you change it whether a second buffer will help;
# - overlap copies with kernels, and replace a thousand launches by one.
#
# ## Why this week
#
# A card that waits is at zero percent of every peak. It waits at three places: inside a kernel, for bytes; between kernels, for orders; and at the bus, for the host's memory. Each has its own cure, and each cure costs something where it is not needed.
#
# ## Before you begin
#
# - How often does your LayerNorm read x? [Week 10](week_10.py#milestone).
# - What do 32 lanes do while they wait? [L3, how many must be walking?](../lectures/l3_memory.py#how-many-must-be-walking)
# - What does a launch cost? [L2](../lectures/l2_the_cuda_model.py#what-a-launch-costs).
# - How does a warp sum? [Week 13](week_13.py#do).
#
# ## Read
#
# /// reading
# nvidia-ampere-copies: "Take the pipeline: commit a group, wait until all but the last have come. Its `cuda::pipeline` is the comfortable form of what L5 writes in one line of PTX."
# nvidia-graphs-start: "The first page on graphs, of 2019, when capture was new. Take its three steps, capture, instantiate and launch, and that the first two are paid once. For what a launch costs today read the later one: the 2.5 µs that lists give are from there, and are of a straight line of nodes [^nvidia-graphs]."
# harris2017: "Groups as objects. Take tiles of a warp, and one atomic for all lanes of a warp. Lists send you here for `grid.sync()`, which only a cooperative launch allows: the post leaves it to a later one, so take that from the guide, where it is the section on large groups [^cuda-guide-groups]."
# cuda-guide-async: "Streams, events, the default stream, and graphs in short. Lists send you to a blog post on streams; the guide is shorter and right."
# ///
#
# ## Ideas
#
# - `cp.async`, its groups and two buffers: [L5, fetch while you multiply](../lectures/l5_the_top_of_the_ladder.py#9-fetch-while-you-multiply).
# - Streams and events, copies under kernels: [L2, two things at once](../lectures/l2_the_cuda_model.py#two-things-at-once-streams).
# - Overlap in both directions of the bus: the same section's film, and [the guide](../field_guide/streams.md).
# - CUDA graphs: [L2, many orders, written once](../lectures/l2_the_cuda_model.py#many-orders-written-once-graphs), and what one did for a whole step in [L7](../lectures/l7_profiling.py#where-does-the-time-go).
#
# /// idea | What are cooperative groups for?
# They give a name to who works together: a tile of a warp, a warp, a block, the whole grid. A function that gets a group can sum over it or wait for it, whoever it is. Waiting for the *grid* needs all its blocks on the card at once, so the launch is a special one that refuses a grid that is too large. Without it one block would wait for
# another that has not begun. A launch of that kind is one more function of the runtime, and in the kernel the wait is `grid.sync()` [^cuda-guide-groups].
# ///
#
# ## Do
#
# The task: put `cp.async` with two buffers into a LayerNorm, and measure the gain. Before you do, ask what a second buffer is *for*: it brings the next row while you work on this one. So it helps if there are not enough bytes in flight already.
#
# **How many bytes must be in flight?** As many as come in while one of them is on its way: bandwidth times latency. [L3](../lectures/l3_memory.py#how-many-must-be-walking) measured both, and it is {{ l3.little.of_sm / 1000:.1f}} KB for each multiprocessor.

# %%
REGISTERS, THREADS, EACH = 65536, 256, 64  # of a multiprocessor; of a block
ROW, BYTES = 4096, 4  # numbers of a row, in fp32


def in_flight(rows):
    """Bytes on their way to a multiprocessor whose blocks have asked for so many rows."""
    return rows * ROW * BYTES


KEPT = REGISTERS // (THREADS * EACH)  # blocks of k03_row_kept, each with a row
STAY = 8192 // ROW  # blocks of k04_two_buffers, each with two buffers

# %% [markdown]
# [Week 10](week_10.py#milestone)'s kernel keeps a row of 4096 numbers in a block's registers. With 64 registers a thread {{ rows.kept:.0f}} such blocks fit on a multiprocessor, and each asks for its whole row at once: {{ asked_kb:.0f}} kB in all. While one block sums, three others fetch. So by arithmetic there is enough in flight, and a second buffer should give
# little. That is a forecast, and it took a pencil. Now the kernel: blocks that stay, each walking over many rows.
#
# /// source | src/course_kernels/layer_norm/k04_two_buffers.py#kernel
# ///
#
# `num_stages=3` makes Triton fetch with `cp.async` into two buffers of shared memory: of three stages one is the row in use, and two are on their way. Our tests find the instruction in its machine code. `centred` takes the mean away and divides by the root of the variance, in registers: you wrote it in [week 10](week_10.py#milestone). How many blocks stay? The kernel's file allows 8192 numbers at work on a multiprocessor, and a block works on a row: 8192 // 4096 blocks, which is `STAY`,
# {{ rows.stay:.0f}}. They are large, with 512 threads for such a row, so that with 64 registers a thread no third one would fit. With `num_stages=1` the same blocks fetch nothing ahead.

# %% tags=["fold"]
from course_kernels.layer_norm import (
    k01_row_a_block,
    k03_row_kept,
    k04_two_buffers,
    library,
)
from course_kernels.layer_norm.problem import PROBLEM
from course_kernels.measure import compare, count_many, quantity, record

JOB = next(w for w in PROBLEM.time_on if w.N == ROW)
X = JOB.M * JOB.N * JOB.element_bytes
FIELD = {
    "kept": k03_row_kept,
    "one": k04_two_buffers.without_buffers,
    "two": k04_two_buffers,
}

record(
    rows={
        "kept": quantity(KEPT, how="counted"),
        "stay": quantity(STAY, how="counted"),
        "buffers": quantity(2 * STAY, how="counted"),
    },
    moved_mb=quantity(2 * X / 1e6, "MB"),
    asked_kb=quantity(in_flight(KEPT) / 1e3, "kB"),
    race=compare(FIELD, JOB, seconds=0.3),
)

# %% [markdown]
# /// predict | Against the kernel that keeps its row: how much of the time is saved by the one with two buffers?
# - [race.two.us >= 0.9 * race.kept.us] Less than a tenth, or it takes longer
# - [0.7 * race.kept.us <= race.two.us < 0.9 * race.kept.us] A tenth to three tenths
# - [race.two.us < 0.7 * race.kept.us] More
# /// reveal
# {{ race.kept.us:.0f}} µs with the row kept, {{ race.two.us:.0f}} with two buffers. The same blocks without anything on its way ahead take {{ race.one.us:.0f}}.
#
# /// table
# columns: ["LayerNorm, fp32", "rows asked for at a time", "time, µs", "% of bandwidth"]
# rows:
#   - ["k03, a block for each row", "{{ rows.kept:.0f}}", "{{ race.kept.us:.0f}}", "{{ race.kept.of_peak:.0%}}"]
#   - ["blocks that stay, nothing ahead", "{{ rows.stay:.0f}}", "{{ race.one.us:.0f}}", "{{ race.one.of_peak:.0%}}"]
#   - ["k04, blocks that stay, two buffers", "{{ rows.buffers:.0f}}", "{{ race.two.us:.0f}}", "{{ race.two.of_peak:.0%}}"]
# caption: "16384 rows of 4096 numbers. Rows are those of one multiprocessor. {{ gpu.name }}."
# ///
# ///
#
# Now look where a second buffer has work to hide the fetch under: the multiply, where each tile is used by every row and column of a block. This is what changed when `cp.async` and a second buffer came into [the ladder](../lectures/l5_the_top_of_the_ladder.py#9-fetch-while-you-multiply).
#
# /// predict | How much of kernel 8's time does the second buffer save, at 4096 × 4096 × 4096 in fp32?
# - [l5.ladder.asynchronous.us >= 0.95 * l5.ladder.warp_tiles.us] Next to nothing
# - [0.75 * l5.ladder.warp_tiles.us <= l5.ladder.asynchronous.us < 0.95 * l5.ladder.warp_tiles.us] A twentieth to a quarter
# - [l5.ladder.asynchronous.us < 0.75 * l5.ladder.warp_tiles.us] More than a quarter
# /// reveal
# {{ l5.ladder.warp_tiles.us:,.0f}} µs become {{ l5.ladder.asynchronous.us:,.0f}}. By counters, all warps of a scheduler wait {{ l5.vital.warp_tiles.long_scoreboard:.2f}} ticks for memory for each instruction before, and {{ l5.vital.asynchronous.long_scoreboard:.2f}} after.
# ///
#
# And the two other places. *Between kernels*: the course's model writes {{ one_token.rate.plain:.0f}} tokens/s as two thousand orders a step, and {{ one_token.rate.graph:.0f}} as one graph; the first number moves a lot from run to run, since it is the host's. *At the bus*: what two streams give a film is in [L2](../lectures/l2_the_cuda_model.py#two-things-at-once-streams), with its spread.
#
# Now both with your own hands. This needs a card, any one; and this page prints no number of it, for the numbers are yours. First a copy under a multiply.
#
# ```python
# import torch
#
#
# def milliseconds(work, times=20):
#     """The card's time for one turn, after a turn that nobody measures."""
#     work()
#     begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
#     begin.record()
#     for _ in range(times):
#         work()
#     end.record()
#     end.synchronize()
#     return begin.elapsed_time(end) / times
#
#
# here = torch.empty(2**26).pin_memory()  # 256 MiB of the host's memory
# there = torch.empty_like(here, device="cuda")
# x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
# main, side = torch.cuda.current_stream(), torch.cuda.Stream()
#
#
# def copy():
#     there.copy_(here, non_blocking=True)
#
#
# def multiply():
#     for _ in range(20):
#         x @ x
#
#
# def both():
#     side.wait_stream(main)  # not before what was ordered so far
#     with torch.cuda.stream(side):
#         copy()
#     multiply()
#     main.wait_stream(side)  # and nothing goes on before the copy is there
#
#
# print(milliseconds(copy), milliseconds(multiply), milliseconds(both))
# ```
#
# Then a thousand launches, and one.
#
# ```python
# number = torch.zeros(1024, device="cuda")
#
#
# def thousand():
#     for _ in range(1000):
#         number.add_(1)
#
#
# thousand()  # whatever must be loaded is loaded now
# graph = torch.cuda.CUDAGraph()
# with torch.cuda.graph(graph):
#     thousand()
# graph.replay()
# print(number[0].item())
# print(milliseconds(thousand), milliseconds(graph.replay))
# ```
#
# /// exercise | Three questions before you press Enter | 10 minutes
# 1. You know the times of the copy and of the multiplies. Between which two numbers must that of `both` lie? What would it be without `.pin_memory()`?
# 2. Leave `main.wait_stream(side)` out. Why may `both` now seem quicker than it is, and what else can go wrong?
# 3. What does the graph's program print for `number[0]`: 1000, 2000 or 3000?
# /// answer
# 1. At least the longer of the two parts, at most both one behind the other. A copy from memory that is not pinned keeps the host, which cannot order the multiply meanwhile [^cuda-guide-async]: then expect the sum, and a longer copy as well.
# 2. The mark `end` is in the main stream. It is stamped when the multiplies are done, whether the copy has arrived or not. And what you order next may read `there` while it is still being written: often right, and so the worst kind of mistake.
# 3. It prints 2000. While the graph is captured its orders are written down, and nothing runs. So there are a thousand adds before, none in the capture, a thousand in the replay. All of them add to the same place in memory: a graph keeps addresses, so new input must be copied to where the old one was.
# ///
#
# ## Milestone
#
# /// exercise | A kernel, its bandwidth and its stall | 15 minutes
# Take your LayerNorm of week 10, a block for each row, with 16384 rows of 4096 numbers in fp32. Which bytes do you divide by the time, and which peak do you hold that against? How long does it take at least on this card, whose data sheet says {{ l1.bandwidth.sheet:,.0f}} GB/s? Then you open the profile. Which stall do you expect to be the largest, and which one would make you look for a mistake?
# /// answer
# It reads 268 MB and writes as many: 537 MB. At the peak of the memory they take {{ moved_mb / l1.bandwidth.sheet * 1000:.0f}} µs, and your time is divided into that. The largest stall should be [*long scoreboard*](../stall_reasons.py#long_scoreboard): the warps wait for memory, and that is what the kernel is for. [*Barrier*](../stall_reasons.py#barrier) at the top would say that a block waits for itself: too few blocks beside it, or a sum that goes
# through shared memory too often.
# ///
#
# And ours? The card's counters say how often x came from memory, how busy memory was, and what the warps waited for.

# %% tags=["fold"]
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
OTHERS = (
    "short_scoreboard",
    "lg_throttle",
    "mio_throttle",
    "math_pipe_throttle",
    "wait",
    "not_selected",
)
REASONS = ("long_scoreboard", "barrier", *OTHERS)
PROFILED = {
    "kept": k03_row_kept,
    "two": k04_two_buffers,
    "steps": k01_row_a_block,
    "compiled": library.torch_compile,
}
tallies = dict(
    zip(
        PROFILED,
        count_many(
            [(kernel, JOB) for kernel in PROFILED.values()],
            (MEMORY, WARPS, *map(STALL.format, REASONS)),
        ),
        strict=True,
    )
)


def told(name, metric):
    """A counter of the one kernel of ours."""
    (kernel,) = tallies[name].kernels
    return kernel["metrics"][metric]["value"]


OURS = ("kept", "two", "steps")
stalls = {
    name: {reason: told(name, STALL.format(reason)) for reason in REASONS}
    for name in OURS
}
record(
    counted=tallies,
    read={
        name: quantity(tally.read_bytes / X, how="counted")
        for name, tally in tallies.items()
    },
    busy={name: quantity(told(name, MEMORY) / 100, how="counted") for name in OURS},
    warps={name: quantity(told(name, WARPS) / 100, how="counted") for name in OURS},
    stall={
        name: {
            "memory": quantity(of["long_scoreboard"], how="counted"),
            "barrier": quantity(of["barrier"], how="counted"),
            "other": quantity(max(of[r] for r in OTHERS), how="counted"),
        }
        for name, of in stalls.items()
    },
)

# %% [markdown]
# /// predict | The kernel that keeps its row: what do its warps wait for most?
# - [stall.kept.memory >= max(stall.kept.barrier, stall.kept.other)] Memory: *long scoreboard*
# - [stall.kept.barrier > stall.kept.memory and stall.kept.barrier >= stall.kept.other] Each other: *barrier*
# - [stall.kept.other > stall.kept.memory and stall.kept.other > stall.kept.barrier] Something else
# /// reveal
# Memory {{ stall.kept.memory:.2f}}, each other {{ stall.kept.barrier:.2f}}, and the largest of all other reasons {{ stall.kept.other:.2f}}: ticks that the warps of a scheduler wait, all together, for each instruction.
#
# /// table
# columns: ["LayerNorm, fp32", "x read from memory, times", "memory busy", occupancy, "long scoreboard", barrier, "largest other"]
# turned: true
# rows:
#   - ["k03, the row kept", "{{ read.kept:.2f}}", "{{ busy.kept:.0%}}", "{{ warps.kept:.0%}}", "{{ stall.kept.memory:.2f}}", "{{ stall.kept.barrier:.2f}}", "{{ stall.kept.other:.2f}}"]
#   - ["k04, two buffers", "{{ read.two:.2f}}", "{{ busy.two:.0%}}", "{{ warps.two:.0%}}", "{{ stall.two.memory:.2f}}", "{{ stall.two.barrier:.2f}}", "{{ stall.two.other:.2f}}"]
#   - ["k01, x loaded twice", "{{ read.steps:.2f}}", "{{ busy.steps:.0%}}", "{{ warps.steps:.0%}}", "{{ stall.steps.memory:.2f}}", "{{ stall.steps.barrier:.2f}}", "{{ stall.steps.other:.2f}}"]
# caption: "By Nsight Compute. The kernel that torch.compile wrote read x {{ read.compiled:.2f}} times. {{ gpu.name }}."
# ///
#
# /// claim | read.steps < 1.2 and read.kept < 1.2
# The first row is the question that [week 10](week_10.py#milestone) left. k01 loads x twice, and memory has seen it once: the second time it came from a cache. So k01 makes no third trip, and what it takes longer than k03 is not memory's: that was busy for {{ busy.steps:.0%}} of the time, and {{ busy.kept:.0%}} with k03.
# /// otherwise
# The first row is the question that [week 10](week_10.py#milestone) left: k01 loads x twice, and memory has seen it {{ read.steps:.2f}} times.
# ///
#
# And a stall says what a warp waited for, not that it cost anything: while memory is busy all the time, somebody has to wait for it.
# ///
#
# ## What could not run here
#
# Without a GPU k04 runs in Triton's interpreter, which shows that it is right, and nothing of what overlaps. And the same in CUDA C++, with `cuda::pipeline` by hand: ours lets Triton write the `cp.async`. You would see the same instruction, and be free to place each wait.
#
# ## What next
#
# [Week 15](week_15.py) writes such pipelines as layouts, with CuTe.
