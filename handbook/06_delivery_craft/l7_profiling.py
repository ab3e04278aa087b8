# ---
# id: teach_l7
# title: "Teaching L7: profiling"
# description: How to lead a room from a forecast in ink to one page about a kernel of their own.
# ---

# %% [markdown]
# # Teaching L7: profiling
#
# After this page you can send everybody home with one page on a kernel of their own, and with a habit: no profiler before a
# forecast. To prepare, you need no profiler. You need a pencil, and a kernel that you know.

# %% [markdown]
# ## What it is really about
#
# A profiler answers questions. The tool shows a hundred numbers, and if you come without a question, you read all of them. So the lecture takes four steps, and each step asks one question: *how slow is it? where does the time go? under which roof? waiting for what?* The first two decide most cases.
#
# /// callout | metaphor
# A doctor does not begin with the blood test. She asks, she feels the pulse, she forms a suspicion, and then she orders *one* test that could prove her
# wrong. A doctor who orders every test finds something odd in every patient.
# ///
#
# /// figure | docs/assets/figures/arc_loop.svg
# alt: The loop as a ring of four words with arrows. Guess, code, profile, read the percentage, and back to guess.
# caption: The loop of day one. Today is its third word.
# ///

# %% [markdown]
# ## By hand: two clocks, and what is left
#
# First comes the roof, on a card of round numbers: it carries 1 million bytes and does 10 million operations in each microsecond. Both clocks run at
# once, and
# the job is done when the later one stops.
#
# /// predict | Add two lists of a million fp32 numbers. Which clock stops later?
# There are 12 million bytes and 1 million operations. Do both divisions in your head.
#
# - [x] The clock of the bytes
# - [ ] The clock of the operations
# - [ ] Both at once
# /// reveal
# The bytes need {{ job.add.bytes_us:.1f}}, the operations {{ job.add.flops_us:.1f}}. The job waits for bytes, however cleverly it is written.
# ///

# %%
from course_kernels.measure import quantity, record

BYTES_IN_ONE, FLOPS_IN_ONE = 1e6, 1e7  # what the card does in one microsecond
JOBS = {  # bytes, operations
    "add": (3 * 4 * 1e6, 1e6),
    "multiply": (3 * 4 * 1000**2, 2 * 1000**3),
    "one_row": (4 * (1000**2 + 2 * 1000), 2 * 1000**2),  # a list times a grid
}

clocks = {}
for name, (n_bytes, flops) in JOBS.items():
    by_bytes, by_flops = n_bytes / BYTES_IN_ONE, flops / FLOPS_IN_ONE
    roof = "bytes" if by_bytes > by_flops else "operations"
    clocks[name] = {"bytes_us": quantity(by_bytes), "flops_us": quantity(by_flops)}
    print(f"{name:10s} waits for {roof}")

# Then Amdahl: a shift of ten hours, three places.
SHIFT = {"stove": 6, "sink": 3, "till": 1}


def gain(part, share):
    """The whole shift over what is left of it, if only this share of one part remains."""
    left = sum(SHIFT.values()) - SHIFT[part] * (1 - share)
    return sum(SHIFT.values()) / left


record(
    job=clocks,
    gain={
        "half_stove": quantity(gain("stove", 1 / 2)),
        "no_stove": quantity(gain("stove", 0)),
        "no_sink": quantity(gain("sink", 0)),
        "no_till": quantity(gain("till", 0)),
    },
)

# %% [markdown]
# | job, on the round card | clock of the bytes | clock of the operations |
# |---|---:|---:|
# | add two lists | {{ job.add.bytes_us:.1f}} | {{ job.add.flops_us:.1f}} |
# | multiply 1000 × 1000 | {{ job.multiply.bytes_us:.0f}} | {{ job.multiply.flops_us:.0f}} |
# | one list times the same grid | {{ job.one_row.bytes_us:.0f}} | {{ job.one_row.flops_us:.1f}} |
#
# Pause at the last line. That job is a multiply too, and it waits for bytes: each weight is fetched and used once.
# This job comes back in W4, where a model answers one guest.
#
# Then comes the shift of ten hours: six at the oven, three at the sink, one at the till. Halve the oven, and you gain a factor of {{ gain.half_stove:.2f}}.
# Take it away altogether, and you gain a factor of {{ gain.no_stove:.1f}}, and nothing in the world can make it more. Take the till away, and you gain a factor of {{ gain.no_till:.2f}}.
# *Measure
# the bar before you sharpen a
# knife.*

# %% [markdown]
# ### The eight lines
#
# This is what they type at minute 17, into `my_labs/report.py`. The functions are their own, from the first lecture's lab. Peak
# and bandwidth come from their card's data
# sheet, and the bytes and operations are those of *their* kernel; here, a multiply.
#
# ```python
# from roofline import floor_us, percent_of_peak, product_bytes, product_flops, roof
#
# GB_PER_S, TFLOPS = ..., ...  # from the data sheet
# M = N = K = 4096
# n_bytes, flops = product_bytes(M, N, K, 4), product_flops(M, N, K)
# floor = floor_us(n_bytes, flops, GB_PER_S, TFLOPS)
# print("waits for", roof(n_bytes, flops, GB_PER_S, TFLOPS), "and needs at least", floor, "µs")
# print("percent of peak:", percent_of_peak(floor, measured_us=...))  # when you have it
# ```
#
# Wherever you see three dots, they fill in a number. Without a measured time, they stop before the last line. Run it with `python my_labs/report.py`;
# it needs no card.
#
# ### Three kernels to lend
#
# These are for students who bring no kernel, or have no card to time it on, and for you, when you walk round and look over
# shoulders. Each number counts once, at the size of the lab. The time was measured on our own kernel with the same idea; lend it for *measured*, but
# only once the floor is written down.
#
# | kernel | bytes that must move | operations | operations per byte | so it waits for | time to lend, µs |
# |---|---|---|---:|---|---:|
# | register tile, fp32, 4096 | 3 × 4096² × 4: 201 million | 2 × 4096³: 137 thousand million | 683 | arithmetic | {{ l5.ladder.register_tile.us:,.0f }} on an {{ l5.gpu.name }} |
# | fragments, fp16, 4096 | 3 × 4096² × 2: 101 million | the same | 1365 | the tensor cores: the dashed roof | {{ l6.climb.wmma.us:.0f }} on an {{ l6.gpu.name }} |
# | attention, fp32, 4 × 16 heads, N = 4096, D = 128 | four matrices: 537 million | 4 × 64 × N² × 128: 550 thousand million, with the mask half of them | 1024, or 512 | arithmetic, if no square is carried | {{ w1.fp32.teaching.n4096.us:,.0f }} on an {{ w1.gpu.name }}, without the mask |
#
# All three are to the right of the ridge, and that surprises the room. Say it: the *job* waits for arithmetic. The rest of the
# day finds
# out whether the *kernel* does. A kernel that adds, sums or transposes is far to the left; ask a pair that brought one to show its cross.
#
# ### Three reports, one lie in each
#
# Copy the three quoted lines onto the flip chart in large letters, and nothing else. Read them aloud and say no more:
# the lie is theirs to find.
#
# > **One.** *Hardly any time at all!* I read the clock, called the kernel, and read the clock again. It is so fast that my laptop's clock hardly moves.
#
# The order was timed, not the work: a launch returns at once. The **floor** catches it; the time is below it.
#
# > **Two.** *My new kernel leaves the old one far behind.* It ran a hundred times without one error message, and the first numbers of the output look right.
#
# Nobody tasted the dish. The kernel may write half of the output and leave the rest. A **check** of every element against the truth, before any
# timing, catches it.
#
# > **Three.** *"A is better than B, by a hundredth."* I ran A for a minute, first thing in the morning, and then B for a minute.
#
# A card warms up and lowers its clock: A had the cool card, B the hot one. Timing them **in turns** catches it: round after round
# on the same inputs, with the spread beside the difference.

# %% [markdown]
# ## The lab, at home
#
# [Six kernels, six reasons](../../docs/lectures/l7_profiling.py#six-kernels-six-reasons). Nobody types it in the room: stages 1
# and 2 are homework, and the rest is for those who like a puzzle. It trains them to go in order: reason, counter, cure. The
# grader reads the reasons first. While a reason is wrong, the grader does not look at the cure, even if the cure is
# right. Expect one complaint about that: *but it is
# faster now!* Answer: how would you have known where to begin on the next kernel?
#
# | the kernel | what they say first | what tells the two apart |
# |---|---|---|
# | softmax | bytes in flight | device memory is busy: the road is full, but of what? |
# | bias and GELU | too many bytes | the bytes counted are the bytes worked out by hand; an arithmetic unit is full |
# | sum | atomics, or one chain | one addition for each block, and there are few blocks; three barriers for each 1024 numbers, and before the second barrier only one warp of 32 works |
# | multiply-adds | arithmetic | neither road is full: nobody is there to use the unit |
# | windows | uncoalesced | neighbours do ask for neighbours; the trouble is how many requests there are |
# | add | too many bytes | each byte moves once, and the road is empty |
#
# Have them say the third column aloud before they look at the table. The sum is the hard one: its one working warp does wait
# for its own last result, so anyone who reads only the code says *one chain*. Ask what the other thirty-one warps of the block do
# meanwhile. The counters speak of all warps, and so must the reason.

# %% [markdown]
# ## In production today
#
# /// callout | production
# The roofline is older than the cards you use and is still the first picture of a report [^williams2009]. On shared machines the
# counters are often locked, and NVIDIA's page says how an administrator unlocks them [^nvidia-counters]. Ask before the lecture,
# not during it. And programs that write kernels today run the same loop as the one on your board: they propose an idea
# in words, build it, check it, time it, and go on from the best [^crfm2025].
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# Two kernels sum the same long list. One kernel does without shared memory and without seven of the eight barriers. The
# room forecasts a large gain.
# On an {{ l3.gpu.name }} the
# tree takes {{ l3.sums.tree.us:.0f}} µs, the shuffles {{ l3.sums.shuffle.us:.0f}} µs. Both kernels wait in the same
# line, in front of one address. Take the line away, and on that {{ l3.gpu.name }} the sum takes {{ l3.sums.vectorised.us:.0f}}
# µs.
# ///
#
# After this demo nobody in the room will polish a part before asking who waits for it. Do not explain where both
# kernels wait until they have seen how close the two times are.

# %% [markdown]
# ## Where students trip
#
# - *No guess in ink.* Then every number is *about what I thought*. Do not let anybody start without a forecast in writing.
# - *Bytes that are asked for, bytes that must move.* The floor counts the second kind. The counter shows the first, as far as the
#   caches let them through.
# - *The profiler's time.* A profiler runs a kernel many times and resets things in between. Take counts from it, and times from a clock.
# - *"98 % occupancy, so it is good."* Occupancy is not the goal. Ask what the warps do.
# - *A difference of a hundredth, from two single runs.* Give runs in turns and their spread, or say nothing.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "You will see a hundred numbers in a minute. You may read three. So write now what you believe, in ink. If the glass shows you what you believed, you have
# wasted an hour. If it does not, you have learned something that no book could have told you, because it is about your kernel."
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../03_profiling/l7_map.md) has every step. The work by hand needs its minutes:
# bytes, operations and the gap squares tend to run over, and the bars and the two factors
# make up for it. Nobody times a kernel in the room; they bring its time, as the lab's grader printed it. Students without one leave *measured* empty
# until the homework. For *counted*, the pages of L5 and L6
# have the register tile and the multiplies; anyone who brought something else fills it in at home: on a card,
# `nox -s profile -- FILE --report` does the counting. If the counters are locked in your room, nothing breaks: both reading
# steps take recorded tables, and
# the page on their own kernel then ends with machine code and experiments instead of counts.
#
# /// exercise | Rehearse
# A program spends 8 hours in one kernel and 2 in everything else. A student brings a kernel that needs 2 of those 8. What is gained, and
# what is the most that could be?
# /// answer
# 8 hours become 2, so 10 become 4: 2.5 times. With a kernel that takes no time at all, 2 hours would be left: 5 times. The student has
# half of what is possible, and the other half is harder.
# ///

# %% [markdown]
# ## You can now teach
#
# - the forecast: bytes, operations, two clocks, and the roof that binds;
# - where the time goes: the bar, its largest part, and the limit that the rest sets;
# - gaps between kernels: orders above, work below;
# - what warps wait for, with a cure for each wait;
# - three ways in which a timing lies, and the test that catches each;
# - a reason before its cure: six kernels, and for each the counter that tells it from its neighbour.
#
# **Where this leads.** [The students' page](../../docs/lectures/l7_profiling.py) has three turns of the loop, each cause named by
# a counter. For more counters see [the top of the ladder](../../docs/lectures/l5_the_top_of_the_ladder.py) and [tensor cores](../../docs/lectures/l6_tensor_cores.py),
# and for the stopwatch [how every number here is measured](../../docs/how_we_measure.py).
