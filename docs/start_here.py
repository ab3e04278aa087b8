# ---
# id: start
# title: Your first kernel
# nav: "Start here: your first kernel"
# section: Make the multiply fast
# order: 1
# description: Write vector add in CUDA C++ or in Triton, work out its floor by hand, and reach your first percent of peak.
# needs: gpu
# ---

# %% [markdown]
# # Your first kernel
#
# After at most 20 minutes of reading, you begin to type a kernel of your own. The whole page takes longer, as the line
# above shows; most of that time goes into typing and pencil work. By the end you can
#
# - say what a kernel is, and read a kernel line by line, in CUDA C++ and in Triton;
# - run both kernels, check that they are right, and type one from scratch;
# - work out on paper the least time that the job can take;
# - say what percentage of peak your kernel reaches, and why it does not reach all of it.
#
# You need Python. You do not need CUDA. If you have no GPU at hand, read on all the same: everything below was run for
# you, and you can type [the lab](#type-it-yourself) without one. [What else you can do without a
# GPU](#no-gpu-or-a-different-one) comes near the end.
#
# /// key
# ///

# %% [markdown]
# ## A recipe for one cook
#
# You want to add two long lists, number by number: `z[i] = x[i] + y[i]`.
#
# In Python you are one cook with one bowl. You take the first pair, add its two numbers, put down the sum, and take the
# next pair. The loop *is* the recipe.
#
# A GPU is a kitchen with thousands of cooks. Nobody writes thousands of recipes. You write **one** recipe, for one
# cook, and the recipe begins with a question: *which pair is mine?* Then you call the whole brigade, and every cook
# follows the same recipe at the same time. The recipe is called a **kernel**. A cook is a **thread**.
#
# Cooks are called by the table, not one by one. A table of cooks is a **block**; all the tables together are the
# **grid**. Each cook knows the number of the table and the number of the seat. These two numbers are enough to find the
# pair:
#
# `i = table × seats per table + seat`
#
# /// figure | docs/assets/figures/vector_add_grid.svg
# alt: "A long list of numbers cut into equal pieces. Each piece belongs to one block, each number to one thread of that block. The last block reaches past the end of the list, and its spare threads do nothing."
# caption: One thread, one number. The last block is larger than the rest of the list, so its spare threads must sit still.
# ///
#
# One thing can go wrong, and the picture shows it. The list rarely fills the last table. The spare cooks at that table
# must touch nothing: their numbers are past the end of the list. That is the one `if` of this kernel.
#
# ### The kitchen key
#
# The whole course is told in one kitchen, and each thing in it has one name. You know the first three. The others are
# introduced one lecture at a time; look here when you forget one.
#
# /// kitchen
# ///

# %% [markdown]
# ## The same recipe, twice
#
# ### In CUDA C++: you are one cook
#
# /// source | src/course_kernels/vector_add/k01_cuda.cu
# title: src/course_kernels/vector_add/k01_cuda.cu
# ///
#
# Read it from the top.
#
# - `__global__` marks a kernel: it is called from outside and run by the whole grid. `extern "C"` leaves the kernel's
#   name unchanged, so that Python can find it.
# - `const float* x` is the address of the first number of `x`. The GPU gets addresses, not lists. Nothing
#   in an address says how long the list is, so the length is passed separately.
# - `blockIdx.x` is the number of the table, `blockDim.x` the seats per table, `threadIdx.x` the number of the seat. The
#   line with all three asks the question *which pair is mine?* The answer is computed in 64 bits, because a list can be
#   longer than 32 bits can count.
# - The `if` sends the spare cooks home: their `i` is N or more.
# - The last line is the whole dish: two reads, one addition, one write.
#
# There is no loop. The loop is the brigade.
#
# Somebody must set the tables. That is the launcher's job, and the launcher is ordinary Python:
#
# /// source | src/course_kernels/vector_add/k01_cuda.py
# title: src/course_kernels/vector_add/k01_cuda.py
# ///
#
# The launcher does four things, always in this order: check the inputs, make room for the output, count the tables
# (rounded *up*, or the end of the list would go hungry), and launch. `load_kernel` compiles the file on the first
# call and remembers the result. `launch` only puts an order into the GPU's queue and returns at once.

# %% [markdown]
# ### In Triton: you are one table
#
# This is the same recipe, told one level higher. In CUDA you speak to one cook. In Triton you speak to a whole table,
# and Triton seats the cooks for you. These are the words that you need:
#
# - `@triton.jit` marks the kernel. The kernel looks like Python, but it is compiled for the GPU on its first call.
# - `tl.program_id(0)` is the number of the table. Triton calls a table a *program*.
# - `tl.arange(0, BLOCK)` is the row of seats, all at once: not one number but a whole row of numbers.
# - `mask` is the `if`. A seat with a false mask neither reads nor writes.
# - `tl.load` and `tl.store` move a whole row of numbers.
# - `BLOCK: tl.constexpr` is fixed when the kernel is compiled, and it must be a power of two.
#
# You will [type a kernel of these words yourself](#type-it-yourself) in a moment, so ours is folded away. Open ours
# when yours is right, or when you would rather read first.
#
# /// source | src/course_kernels/vector_add/k02_triton.py
# fold: Our kernel in Triton
# ///
#
# Which one should you learn? Both. Start with the language that scares you less: Triton gets you cooking today, while
# CUDA C++ shows you every stove. For each of them there is a page to keep beside you: [Triton for NumPy
# people](triton_for_numpy_people.py) and [C for Python people](c_for_python_people.py).

# %% [markdown]
# ## Run it, and check it
#
# A kernel that is fast and wrong is a fast way to be wrong. So the first run is always a check. Here both kernels add lists
# whose length is not a multiple of any block size, and PyTorch adds them too.

# %%
import torch
from course_kernels.vector_add import k01_cuda, k02_triton, library

x = torch.randn(1_000_003, device="cuda")
y = torch.randn(1_000_003, device="cuda")

print("CUDA C++ agrees:", torch.equal(k01_cuda.vector_add(x, y), x + y))
print("Triton agrees:  ", torch.equal(k02_triton.vector_add(x, y), x + y))

# %% [markdown]
# Their answers agree to the last bit, because one addition leaves no room for opinion. If you have a card of your own,
# the same check takes a few lines. Without a card, leave these lines out: [a command that needs no
# card](#no-gpu-or-a-different-one) comes near the end. Run them in the folder of the course, with [its `.venv`
# activated](set_up.md#which-setup-is-yours):
#
# ```bash
# pip install -e ".[measure,cuda13]"
# python
# ```
#
# ```python
# import torch
# from course_kernels.vector_add.k02_triton import vector_add   # or k01_cuda
#
# x = torch.randn(1_000_003, device="cuda")
# y = torch.randn(1_000_003, device="cuda")
# print(torch.equal(vector_add(x, y), x + y))
# ```
# The last line must print `True`.
#
# You have no compiler to install. When you first call the kernel, Python compiles the CUDA C++ file with NVRTC,
# NVIDIA's own compiler library, which came with `pip`.

# %% [markdown]
# ## Type it yourself
#
# Reading a kernel is not writing one. You have read the kernel in CUDA C++. Now type it in Triton, starting from an
# empty function, or in CUDA C++ without looking back. If you have no card and do not want to install anything large,
# take the NumPy door: it is ready in seconds.
#
# Run the commands in the folder of the course, with its `.venv` activated. If you have no such folder yet, now is the
# moment: read the first section of [Set up](set_up.md#which-setup-is-yours) and the one for your setup. Then choose one of the three doors below, and open the file that its first command writes.
#
# You should know two things about the grader. When the grader refuses your file, its last line begins with `next:` and
# says where to look first; this page mostly leaves that line out. And the grader notices what you *write* past the end
# of a list, but not what you only *read* there, so remember to mask the loads.
#
# Does Triton still puzzle you? [Triton for NumPy people](triton_for_numpy_people.py) teaches everything that this lab
# needs, from the launch to the mask, with other kernels as its examples.
#
# /// lab | first_kernel
# ///

# %% [markdown]
# ## The floor, by hand
#
# Before you time anything, work out the best that can happen. One line is enough.
#
# What must happen? Read `x`, read `y`, write `z`: three lists of four-byte numbers. The additions hardly count: there
# is one for every three numbers carried, and a trip to the pantry takes far longer than an addition, as you will
# measure in [the lecture on memory](lectures/l3_memory.py). So the bytes should decide:
#
# `floor = 3 × 4 × N bytes ÷ bandwidth`
#
# The pantry is the GPU's main memory, down the hall. Its data sheet says how many bytes the hall can
# carry in a second.
#
# The floor gives you the yardstick of the whole course:
#
# `percent of peak = floor ÷ measured time`
#
# /// predict | How much of peak will your first kernel reach?
# Say a number before you look. The kernel is a handful of lines. Nobody tuned it. It uses no tricks at all.
#
# - [big.cuda.of_peak < 0.2] About a tenth
# - [0.2 <= big.cuda.of_peak < 0.45] About a third
# - [big.cuda.of_peak >= 0.45] Half, or more
# /// reveal
# **{{ big.cuda.of_peak:.0%}}** in CUDA C++, **{{ big.triton.of_peak:.0%}}** in Triton.
#
# Surprised? Most of the road ahead is hard because the work is *not* like this one. Here every cook reads its own
# numbers, neighbours read neighbours, and nothing is needed twice. All that you have to do is keep the hall full. The
# two kernels fill the hall differently, though, as you will see in a moment.
# ///
#
# Here is the same floor in Python. Most cells that only write numbers down are folded; this one is open, because the
# two lines in its middle are the calculation that you just did by hand.

# %% tags=["show"]
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

N = 2**28
name = torch.cuda.get_device_name()
card = machine_for(name)
if card is None:
    raise RuntimeError(
        f"{name}: no data sheet in course_kernels/measure/machine.py"
    )

bytes_moved = 3 * 4 * N  # read x, read y, write z; four bytes each
bytes_per_us = card.bandwidth_gb_per_s * 1e9 / 1e6
record(
    by_hand={
        "n": quantity(N, how="given"),
        "bytes": quantity(bytes_moved, "B"),
        "bandwidth": quantity(card.bandwidth_gb_per_s, "GB/s", "given"),
        "floor": quantity(bytes_moved / bytes_per_us, "µs"),
        "small_floor": quantity(3 * 4 * 2**12 / bytes_per_us, "µs"),
    }
)

# %% [markdown]
# With N&nbsp;=&nbsp;2<sup>28</sup>, a little over a quarter of a billion numbers:
#
# | step | value |
# |---|---|
# | bytes to move: 3 × 4 × N | {{ by_hand.bytes / 1e9:.2f }} GB |
# | bandwidth on the data sheet of this card | {{ by_hand.bandwidth:.0f }} GB/s |
# | **the floor** | **{{ by_hand.floor:.0f }} µs** |
#
# No kernel on this card, yours or anyone's, goes below the floor.

# %% [markdown]
# ## The measured run
#
# Now start the clock. `compare` checks every competitor against the truth first. Then it runs them in turns, on the
# same lists, with a cold cache, until it has enough samples. [A page of its own](how_we_measure.py) explains how and
# why.

# %% tags=["show"]
from course_kernels.measure import compare
from course_kernels.problem import Workload

COMPETITORS = {"cuda": k01_cuda, "triton": k02_triton, "torch": library.torch_add}
big = compare(COMPETITORS, Workload.of("float32", N=N))
record(big=big)

# %% [markdown]
# /// table
# columns: ["N&nbsp;=&nbsp;2<sup>28</sup>, fp32", "% of peak", "time, µs", "GB/s"]
# rows:
#   - ["CUDA C++", "**{{ big.cuda.of_peak:.1%}}**", "{{ big.cuda.us:.0f }}", "{{ big.cuda.gb_per_s:.0f }}"]
#   - ["Triton", "**{{ big.triton.of_peak:.1%}}**", "{{ big.triton.us:.0f }}", "{{ big.triton.gb_per_s:.0f }}"]
#   - ["PyTorch, x + y", "**{{ big.torch.of_peak:.1%}}**", "{{ big.torch.us:.0f }}", "{{ big.torch.gb_per_s:.0f }}"]
#   - ["*the floor*", "*all of it*", "*{{ by_hand.floor:.0f }}*", "*{{ by_hand.bandwidth:.0f }}*"]
# ///
#
# /// claim | big.cuda.of_peak > 0.6
# **{{ big.cuda.of_peak:.0%}} of peak**, on your first day. The floor was {{ by_hand.floor:.0f }} µs, and the clock says
# {{ big.cuda.us:.0f }} µs.
# /// otherwise
# {{ big.cuda.of_peak:.0%}} of peak. The floor was {{ by_hand.floor:.0f }} µs, and the clock says {{ big.cuda.us:.0f }}
# µs.
# ///
#
# /// claim | 0.94 < big.triton.us / big.torch.us < 1.06
# Triton and PyTorch need the same time, to within six parts in a hundred: {{ big.triton.us:.0f }} µs and
# {{ big.torch.us:.0f }} µs here. These are two very different roads to one limit: both kernels end up waiting for the
# same hall.
# /// otherwise
# Triton takes {{ big.triton.us / big.torch.us:.2f }} times as long as PyTorch.
# ///
#
# /// claim | big.cuda.us > 1.1 * big.triton.us
# And here is our first loss. The plain CUDA kernel takes {{ big.cuda.us / big.triton.us:.2f }} times as long as the
# Triton one. The bytes are the same, and so are the sums. What differs is how the kernels *ask for* the bytes. In the
# CUDA kernel each cook walks the hall for one number from each list. In Triton a table has 1024 numbers and far fewer
# cooks, so each cook takes several numbers, and may fetch neighbours in one trip. The likely reason, then, is that more
# bytes are in flight at once. You will test that yourself, in the third exercise.
# /// otherwise
# The plain CUDA kernel takes {{ big.cuda.us / big.triton.us:.2f }} times as long as the Triton one: on this card one number per
# cook fills the hall well enough.
# ///

# %% [markdown]
# ## Why not all of it?
#
# The data sheet counts what the hall carries when nobody ever stops. Real memory most likely pauses now and then: to
# refresh its cells, to open a row, to turn around between reading and writing. We cannot see any of these pauses from
# here. But we can see how far the plainest job gets.
#
# How do you know that the hall is to blame and not your recipe? Compare it with a copy. A copy is the plainest job
# there is, and [the measuring page](how_we_measure.py#the-card-against-its-own-data-sheet) shows what a copy reaches on
# this card: {{ measured.copy.gib4.torch.of_peak:.0%}} of peak.
#
# /// claim | big.triton.of_peak > 0.89 * measured.copy.gib4.torch.of_peak
# The Triton kernel reaches {{ big.triton.of_peak:.0%}}. This kernel and the copy were not raced in turns, so we do not
# say which is ahead. But if you measure again, we expect the kernel to reach at least 89 % of what the copy reaches.
# Put the knife down: that dish is done.
# /// otherwise
# The Triton kernel reaches {{ big.triton.of_peak:.0%}}, so there is something left to find.
# ///
#
# /// claim | big.cuda.of_peak < 0.95 * measured.copy.gib4.torch.of_peak
# The CUDA kernel, at {{ big.cuda.of_peak:.0%}}, is not there yet. The memory is not to blame for the gap between this
# kernel and the copy; finding the cause is up to you.
# /// otherwise
# The CUDA kernel, at {{ big.cuda.of_peak:.0%}}, is there, too.
# ///

# %% [markdown]
# ## When the list is short
#
# Now shrink the list. With 2<sup>12</sup> numbers the floor is {{ by_hand.small_floor:.3f }} µs.

# %%
sweep = {name: {} for name in COMPETITORS}
for power in range(12, 29, 2):
    for name, measured in compare(
        COMPETITORS, Workload.of("float32", N=2**power), seconds=0.1
    ).items():
        sweep[name][f"n{power}"] = measured
record(sweep=sweep)

# %% [markdown]
# /// predict | What will the clock say for 2¹² numbers, compared with the floor?
# The kernel is the same. Its answers are right, and for long lists it does well.
#
# - [sweep.cuda.n12.us / by_hand.small_floor >= 50] Hundreds of times
# - [2 <= sweep.cuda.n12.us / by_hand.small_floor < 50] A few times the floor
# - [sweep.cuda.n12.us / by_hand.small_floor < 2] Close to the floor
# /// reveal
# {{ sweep.cuda.n12.us:.1f }} µs: **{{ sweep.cuda.n12.us / by_hand.small_floor:.0f }} times** the floor, or
# {{ sweep.cuda.n12.of_peak:.1%}} of peak.
#
# /// chart | lines
# title: Vector add, bytes moved per second
# x: N
# y: gb_per_s
# x_label: N, numbers in each list
# y_label: GB/s
# x_scale: log2
# y_scale: linear
# series:
#   - {name: sweep.cuda.*, label: CUDA C++}
#   - {name: sweep.triton.*, label: Triton}
#   - {name: sweep.torch.*, label: PyTorch}
# references:
#   - {label: data sheet, value: by_hand.bandwidth}
# alt: "Bytes per second against the length of the list. All three lines start near zero and climb together. For the longest list CUDA C++ flattens at {{ big.cuda.of_peak:.0%}} of peak, Triton and PyTorch at {{ big.triton.of_peak:.0%}}."
# caption: Short lists leave the kitchen idle. Long ones fill the hall.
# ///
#
# /// claim | sweep.cuda.n16.us < 1.5 * sweep.cuda.n12.us
# From 2<sup>12</sup> to 2<sup>16</sup> numbers the work is multiplied by 16. The time hardly follows:
# {{ sweep.cuda.n12.us:.1f }} µs for the short list, {{ sweep.cuda.n16.us:.1f }} µs for the longer one. So you are not
# paying for the work.
# /// otherwise
# From 2<sup>12</sup> to 2<sup>16</sup> numbers, the work is multiplied by 16, and the time goes from
# {{ sweep.cuda.n12.us:.1f }} µs to {{ sweep.cuda.n16.us:.1f }} µs.
# ///
# ///
#
# You pay to open the kitchen. Opening the kitchen most likely means calling the tables, sending the first cook down the
# hall, waiting for the first number to come back, and seeing the last cook out. We have not timed these one by one, but
# for short lists the total is the same, whatever is in the pot. And this is not even the whole bill. We send the orders
# ahead, so that the GPU never waits for the CPU that writes them. In a program that sends one order and waits, writing
# the order costs extra.
#
# Take two things home. *Percent of peak means nothing without the size.* And many small kernels in a row are a problem
# of their own. Half of this course is about fusing them into one.

# %% [markdown]
# ## No GPU, or a different one {.beyond}
#
# [Set up](set_up.md) says what to install, how to rent a card, and how twenty people share one. In short:
#
# **No GPU.** Four things still work.
#
# - Build the site. `nox -s docs` fills every page from the records in the repository, measured on our card.
#
# - Run the Triton kernel without a card. Triton can play all the tables itself, in Python, one after the other:
#
#     ```bash
#     pip install torch triton numpy
#     TRITON_INTERPRET=1 PYTHONPATH=src python -c "
#     import torch
#     from course_kernels.vector_add.k02_triton import vector_add
#     x, y = torch.randn(2, 10_007)
#     print(torch.equal(vector_add(x, y), x + y))"
#     ```
#
#     The command must print `True`. The answers are right in fp32 and fp16 (in bf16 they mean nothing). They tell you
#     nothing about speed. Set the variable before the kernel is imported; after that it has no effect.
#
# - Compile the CUDA C++ kernel. NVRTC can compile for a GPU that is not there. `nox -s tests` compiles the kernel for
#   six kinds of card.
#
# - Run this kernel, and the rest of the ladder, on the GPU of your laptop or your phone: [your own GPU](your_gpu.md) does it
#   in the page.
#
# **Another GPU.** `nox -s docs` measures your card and builds the site with your numbers. A sentence that does not hold
# on your card says so. The table shows what to expect, by *compute capability*, the version number of the hardware.
# Three words in the table belong to later pages: `wgmma` is Hopper's instruction for its tensor cores, `tcgen05` is
# Blackwell's, and TMA is an engine that carries tiles while the cooks cook.
#
# | your card | capability | vector add | matrix kernels | what it lacks |
# |---|---|---|---|---|
# | V100, GTX 10 and older | 7.0 and below | no: CUDA 13 no longer compiles for these | no | a current toolkit |
# | Turing: T4, RTX 20 | 7.5 | both kernels compile | Triton compiles them, but without tensor cores; it promises support only from Ampere on | bf16 in hardware, asynchronous copies |
# | Ampere: A100 · A10, RTX 30 | 8.0 · 8.6 | yes | tensor cores in fp16, bf16, TF32 | TMA; FP8. On 8.6 a block also has less shared memory |
# | Ada: L4, L40S, RTX 40 | 8.9 | yes | the same, and FP8 | TMA |
# | **Hopper: H100, H200** | **9.0** | **yes** | **`wgmma`, fed by TMA: the whole course** | FP4 |
# | Blackwell: B200 | 10.0 | yes | `tcgen05` and its own tensor memory, TMA, FP4 | `wgmma`: it exists on 9.0 only |
# | Blackwell: RTX 50 | 12.0 | yes | Ampere's kind of tensor instruction, with FP8 and FP4; TMA | `wgmma` and `tcgen05` |
#
# We have run one row of this table. For the other rows we compiled vector add and a small matrix multiply and read
# which tensor instructions came out. Compiling shows what builds, not how well it runs.
#
# The capability of your card is one command away: `nvidia-smi --query-gpu=name,compute_cap --format=csv`.

# %% [markdown]
# ## Now you
#
# /// exercise | Take the bounds check away
# The list has 1000 numbers, and a block has 256 threads. You delete the `if`. What happens? And what happens with a
# list of 1024?
# /// answer
# 1000 numbers need four blocks, and four blocks have 1024 threads. The last 24 read past the end of `x` and
# `y`, and write past the end of `z`.
#
# Nobody stops them when they do. If that memory belongs to another tensor, the tensor is now silently wrong, and you
# will look for the mistake somewhere else entirely. If the memory belongs to nobody, the run ends with *an
# illegal memory access was encountered*, often at a later, innocent line, because the GPU works behind
# Python's back. `compute-sanitizer python your_script.py` names the thread that made the access.
#
# With 1024 numbers nothing happens at all. That is the nasty part: a test whose sizes are all powers of two will never
# find this mistake. So we checked with 1 000 003 numbers.
# ///
#
# /// exercise | Change the size of the tables
# Set `THREADS` in `k01_cuda.py` to 32, then to 1024, and measure again:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.measure vector_add/k01_cuda --workload dtype=float32,N=268435456
# ```
#
# Predict first. A GPU is built of many *multiprocessors*, the rooms of the kitchen. A table is set in one room and
# stays there. One multiprocessor of your GPU seats at most 2048 threads and at most 32 blocks at a time
# (fewer threads on 8.6, 8.9 and 12.0). With 32 cooks to a table, how many cooks are in a room?
# /// answer
# 32 blocks of 32 are 1024 threads: half the seats stay empty. With 64 or more cooks to a table, the 2048 seats fill up.
#
# Does an empty seat cost you anything? Only if too few bytes are in flight. While one cook waits in the hall, the
# others work, so the question is how many bytes are in the hall, not how many cooks are in the room. Write down your
# times for 32, 64, 256 and 1024. If the four agree, you have learned that this kernel is not picky. If the time for 32
# is longer, you have seen that *occupancy* matters, and you will meet it again.
#
# We have not run this kernel with tables of other sizes. But [the second
# lecture](lectures/l2_the_cuda_model.py#how-large-is-a-block) does so with a similar kernel, which has one cook for
# each pixel of a picture. There, a table of 32 cooks took {{ l2.rows.t32.us / l2.rows.t256.us:.1f }} times as long as a
# table of 256, and a table of 1024 took {{ l2.rows.t1024.us / l2.rows.t256.us:.2f }} times as long.
# ///
#
# /// exercise | Four at a time
# Give each cook four neighbouring pairs. In the kernel, treat the lists as `const float4 *`, read one `float4`
# of `x` and one of `y`, add the four parts, and write one `float4`. In the launcher, start a quarter of the threads.
# First predict where the new kernel will land: nearer to the old CUDA kernel, or nearer to Triton?
# /// answer
# Each trip now carries 16 bytes instead of 4, so far more bytes are in flight with the same number of cooks. Measure
# the kernel with the command above and compare the two percentages. If you land next to Triton, you have found what the
# first kernel lacked. Our own kernel of this kind takes two such groups of four from each list at once. In our run it
# reached {{ l2.adds.vectors.of_peak:.0%}} of peak, Triton reached {{ l2.adds.triton.of_peak:.0%}}, and the plain kernel
# {{ l2.adds.plain.of_peak:.0%}}: [the second lecture](lectures/l2_the_cuda_model.py#vector-add-once-more) has the
# table.
#
# There are two traps. N need not be a multiple of four: let the last threads add the rest one by one. And a `float4`
# must start at a multiple of 16 bytes, but a slice such as `x[1:]` does not.
# `src/course_kernels/copy/k01_vectorised.cu` handles both.
# ///
#
# /// exercise | Half the bytes
# For this exercise you need only a pencil. N stays the same, but the numbers are fp16: two bytes each. What is the new
# floor? What will the percent of peak be for N&nbsp;=&nbsp;2<sup>28</sup>, and for N&nbsp;=&nbsp;2<sup>12</sup>?
# /// answer
# The floor halves with the bytes: {{ by_hand.floor / 2:.0f }} µs instead of {{ by_hand.floor:.0f }} µs. For the long
# list, the time of a kernel that keeps the hall full should halve as well, and its *percentage* should not change: the
# hall does not care what is in the crates. The plain CUDA kernel is a different matter. Its cooks now carry two bytes
# per trip, so even fewer bytes are in flight. Expect its percentage to fall.
#
# For the short list the time does not change, because you were paying for opening the kitchen. The floor still halves.
# So the percentage of peak falls too, though nothing got worse. Percent of peak always refers to *this* job at *this*
# size.
# ///

# %% [markdown]
# ## Where this leads
#
# Vector add is the easy dish: two reads, one write, nothing used twice. The multiply is a hard one: every number of a
# matrix is needed again and again, and if you run to the pantry each time, you are lost. *First we make the multiply
# fast. Then we make the model fast.*
#
# - The next stop is [what a GPU is](lectures/l1_what_a_gpu_is.py). Three lectures later you reach [the ladder of
#   multiplies](lectures/l4_the_gemm_ladder.py), and at its top [tensor cores](lectures/l6_tensor_cores.py).
# - How far can you trust the numbers above? See [how every number here is measured](how_we_measure.py),
#   including the cheats that we try on ourselves.
# - What does a whole kernel look like, from the idea to the last race? See [FlashAttention from
#   scratch](workshops/w1_flash_attention.py).
# - [The ledger](numbers.md) lists every number on this page, with the command that reproduces it.
