# ---
# id: week_14
# title: "Week 14: streams, graphs, asynchronous copies"
# search: {rank: 2}
# nav: "14 · Async"
# description: "What a second buffer is worth, and where it is worth nothing; bytes that must be in flight; streams and graphs, from the records of the lessons."
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
# - What do 32 lanes do while they wait? [L3, how many must be walking?](../lectures/l3_memory.py#how-many-must-be-walking)
# - What does a launch cost? [L2](../lectures/l2_the_cuda_model.py#what-a-launch-costs).
# - How does a warp sum? [Week 13](week_13.py#do).
#
# ## Read
#
# /// reading
# nvidia-ampere-copies: "Take the pipeline: commit a group, wait until all but the last have come. Its `cuda::pipeline` is the comfortable form of what L5 writes in one line of PTX."
# nvidia-graphs-start: "The first page on graphs, from when capture was new. For what a launch costs today read the later one: the 2.5 µs that lists give are from there, and are of a straight line of nodes [^nvidia-graphs]."
# harris2017: "Groups as objects. Take tiles of a warp, and one atomic for all lanes of a warp. Lists send you here for `grid.sync()`, which only a cooperative launch allows: the post leaves it to a later one, so take that from the guide."
# cuda-guide: "The chapter on asynchronous execution. Lists send you to a blog post on streams; the guide is shorter and right."
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
# another that has not begun.
# ///
#
# ## Do
#
# The task as it is usually set: put `cp.async` with two buffers into last week's LayerNorm, and measure the gain. Before you do, ask what a second buffer is *for*: it brings the next tile while you work on this one. So it helps if there are not enough bytes in flight already. And it helps most where a tile is used again and again, so that there is work to hide the fetch under.
#
# **How many bytes must be in flight?** As many as come in while one of them is on its way: bandwidth times latency. [L3](../lectures/l3_memory.py#how-many-must-be-walking) measured both, and it is {{ l3.little.of_sm / 1000:.1f}} KB for each multiprocessor.

# %%
THREADS, ROW, BYTES = 2048, 4096, 4  # of a multiprocessor, numbers of a row in fp32


def in_flight(rows, share=1.0):
    """Bytes on their way to a multiprocessor whose blocks have each asked for a row."""
    return rows * ROW * BYTES * share


ROWS_AT_ONCE = (
    THREADS // 512
)  # rows of 4096 for blocks of 512 threads, 8 numbers each

# %% tags=["fold"]
from course_kernels.measure import quantity, record

record(
    rows=quantity(ROWS_AT_ONCE, how="counted"),
    moved_mb=quantity(2 * 16384 * ROW * BYTES / 1e6, "MB"),
    asked_kb=quantity(in_flight(ROWS_AT_ONCE) / 1e3, "kB"),
)

# %% [markdown]
# A LayerNorm whose blocks hold a row of 4096 numbers each has {{ rows:.0f}} blocks on a multiprocessor, and each asks for its whole row at once: {{ asked_kb:.0f}} kB. While one block sums, three others fetch. So there is enough in flight, and a second buffer would give nothing. That is the
# answer to the task, and you can have it before you type.
#
# So look where it does help: the multiply, where each tile is used by every row and column of a block. This is what changed when `cp.async` and a second buffer came into [the ladder](../lectures/l5_the_top_of_the_ladder.py#9-fetch-while-you-multiply).
#
# /// predict | How much of kernel 8's time does the second buffer save, at 4096 × 4096 × 4096 in fp32?
# - [l5.ladder.asynchronous.us >= 0.95 * l5.ladder.warp_tiles.us] Next to nothing
# - [0.75 * l5.ladder.warp_tiles.us <= l5.ladder.asynchronous.us < 0.95 * l5.ladder.warp_tiles.us] A tenth to a fifth
# - [l5.ladder.asynchronous.us < 0.75 * l5.ladder.warp_tiles.us] More than a quarter
# /// reveal
# {{ l5.ladder.warp_tiles.us:,.0f}} µs become {{ l5.ladder.asynchronous.us:,.0f}}. By counters, all warps of a scheduler wait {{ l5.vital.warp_tiles.long_scoreboard:.2f}} ticks for memory for each instruction before, and {{ l5.vital.asynchronous.long_scoreboard:.2f}} after.
# ///
#
# And the two other places. *Between kernels*: the course's model writes {{ one_token.rate.plain:.0f}} tokens/s as two thousand orders a step, and {{ one_token.rate.graph:.0f}} as one graph; the first number moves a lot from run to run, since it is the host's. *At the bus*: what two streams give a film is in [L2](../lectures/l2_the_cuda_model.py#two-things-at-once-streams), with its spread.
#
# ## Milestone
#
# /// exercise | A kernel, its bandwidth and its stall | 15 minutes
# Take your LayerNorm of weeks 13 and 14, 16384 rows of 4096 numbers in fp32. Which bytes do you divide by the time, and which peak do you hold that against? How long does it take at least on this card, whose data sheet says {{ l1.bandwidth.sheet:,.0f}} GB/s? Then you open the profile. Which stall do you expect to be the largest, and which one would make you look for a mistake?
# /// answer
# It reads 268 MB and writes as many: 537 MB. At the peak of the memory they take {{ moved_mb / l1.bandwidth.sheet * 1000:.0f}} µs, and your time is divided into that. The largest stall should be *long scoreboard*: the warps wait for memory, and that is what the kernel is for. *Barrier* at the top would say that a block waits for itself: too few blocks beside it, or a sum that goes
# through shared memory too often.
# ///
#
# ## What could not run here
#
# LayerNorm with two buffers, and its profile: by the arithmetic above there is nothing to gain, and no kernel in this course does it. You would see the same time as without.
#
# ## What next
#
# [Week 15](week_15.py) writes such pipelines as layouts, with CuTe.
