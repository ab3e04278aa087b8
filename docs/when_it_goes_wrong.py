# ---
# id: wrong
# title: When it goes wrong
# section: Beside the road
# order: 4
# description: The errors every beginner meets, each made on purpose in a process of its own, with the message it gives and the tool that finds it.
# needs: gpu
# ---

# %% [markdown]
# # When it goes wrong
#
# Everybody who writes kernels has made every mistake on this page, and will make it again tomorrow. The difference
# between a bad evening and two minutes is having seen the message before, and knowing which tool to reach for.
#
# So here they are, made on purpose. By the end you can
#
# - tell a silent mistake from a loud one, and make the silent ones loud;
# - read what the GPU says when it gives up, and find the line that is really to blame;
# - use the four checks of `compute-sanitizer`, and a `printf` or an `assert` inside a kernel;
# - stop a kernel that never ends;
# - go from a symptom to a likely cause with [one table](#from-symptom-to-cause).
#
# You need Python, and [one page of C](c_for_python_people.py). Nothing here can harm your card.

# %% [markdown]
# ## Each in a process of its own
#
# A GPU error stays with the process that made it. After such an error, that Python process can do nothing more on the card.
# So every mishap on this page runs in a Python process of its own, and the page only reads what that process printed. You
# can do the same, from the folder of the course:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.error_demos out_of_bounds
# PYTHONPATH=src python -m course_kernels.error_demos out_of_bounds --mended
# ```
#
# Each file in `src/course_kernels/error_demos/` has a wrong kernel and, where there is one, a mended version of it. The cells
# below print, word for word, what the program or the tool said. Only addresses and folders are left out, and long lines
# are wrapped.

# %% tags=["fold"]
import shutil
import subprocess

from course_kernels.error_demos.run import ABSENT, SANITIZER, Run, begin, show
from course_kernels.measure import record, text

# All of them start now, a few at a time; the cells below wait for theirs. First the
# two that never end, which take longest.
begin(
    Run("split_barrier", limit_s=3.0),
    Run("endless_loop", limit_s=2.0),
    Run("out_of_bounds"),
    Run("out_of_bounds", "memcheck"),
    Run("out_of_bounds", "memcheck", own_memory=True),
    Run("out_of_bounds", mended=True),
    Run("out_of_bounds", "memcheck", own_memory=True, mended=True),
    Run("illegal_address"),
    Run("illegal_address", blocking=True),
    Run("illegal_address", "memcheck"),
    Run("illegal_address", mended=True),
    Run("device_printf"),
    Run("device_assert"),
    Run("too_many_threads"),
    Run("too_few_blocks"),
    Run("too_few_blocks", mended=True),
    Run("uninitialised"),
    Run("uninitialised", "initcheck", own_memory=True),
    Run("uninitialised", mended=True),
    Run("lost_updates"),
    Run("lost_updates", mended=True),
    Run("lost_updates", "racecheck"),
    Run("missing_barrier"),
    Run("missing_barrier", "racecheck"),
    Run("missing_barrier", mended=True),
    Run("missing_barrier", "racecheck", mended=True),
    Run("split_barrier", mended=True),
    Run("wrong_mask"),
    Run("wrong_mask", "synccheck"),
    Run("wrong_mask", mended=True),
    Run("wrong_mask", "synccheck", mended=True),
    Run("not_a_number"),
    Run("not_a_number", mended=True),
    Run("rules_of_nan"),
    Run("endless_loop", mended=True),
)


def version():
    """What the sanitizer calls itself, or how to get it."""
    if not shutil.which(SANITIZER):
        return ABSENT
    said = subprocess.run([SANITIZER, "--version"], capture_output=True, text=True)
    return next(
        line for line in said.stdout.splitlines() if line.startswith("Version")
    )


record(sanitizer=text(version()))

# %% [markdown]
# ## Nothing complains
#
# The worst mistake is the one without a message. This kernel writes 7 into every number of `x`:
#
# /// source | src/course_kernels/error_demos/out_of_bounds.cu#broken
# title: src/course_kernels/error_demos/out_of_bounds.cu
# lines: true
# ///
#
# It is called for 1025 numbers, in blocks of 256. Four blocks are too few, so there are five: 1280 threads for 1025
# numbers. Right after `x` in memory is a second list, all ones, which is never passed to the kernel:
#
# /// source | src/course_kernels/error_demos/cases.py#out_of_bounds
# title: src/course_kernels/error_demos/cases.py
# ///
#
# `launch` is ours: it takes the kernel, the number of blocks, the number of threads, and then the kernel's arguments. `step` does one thing and prints how it went.
#
# /// predict | What will happen?
# - [ ] An error at the launch
# - [ ] An error when we wait for the kernel
# - [ ] A Python exception naming the index
# - [x] Nothing
# /// reveal
# **Nothing.** The run is below. Every call is fine, `x` is right, and part of the second list is overwritten.
# ///

# %%
show("out_of_bounds")

# %% [markdown]
# Why 128 of the neighbour's numbers, when 255 threads were too many? PyTorch rounds every piece of memory up to a multiple of 512
# bytes, which is 128 floats. 1025 floats become 1152. So the first 127 of the spare threads wrote into the gap, and
# the other 128 into the neighbour. Had the list been 1000 long, the gap would have swallowed every write. **A wrong
# kernel can be right for years.**
#
# /// figure | docs/assets/figures/house_numbers.svg
# alt: "A street of eight houses with the addresses 1000, 1004 and so on to 1028. The first five belong to x and hold 1.5 to 5.5. The arrow x points to the first, x plus 3 to the fourth. The arrow x plus 5 points to the sixth house, which is somebody else's."
# caption: An address is a house number and a kind of number. Nobody at the door asks whether the house is yours.
# ///
#
# ### The tool: memcheck
#
# `compute-sanitizer` comes with the CUDA toolkit. It runs your program unchanged, and checks every memory access that its kernels make. `memcheck` is the first of its four checks, and the one you will use most. (If you read *not on PATH*
# below, this page was built on a machine without it.)

# %%
show("out_of_bounds", "memcheck")

# %% [markdown]
# No errors? The tool is not wrong. PyTorch asks the driver for memory in large pieces and cuts them up itself. The tool
# sees one large piece, and our write stayed inside it. So tell PyTorch to ask the driver for every tensor separately,
# with `PYTORCH_NO_CUDA_MEMORY_CACHING=1`. That is slow, but honest:

# %%
show("out_of_bounds", "memcheck", own_memory=True)

# %% [markdown]
# Now it speaks. Read it line by line:
#
# - *Invalid \_\_global\_\_ write of size 4 bytes*: the kernel tried to write one float into main memory.
# - *at out_of_bounds … in out_of_bounds.cu:11*: the kernel and the **line of the source**. Look it up above.
# - *by thread … in block …*: this thread did it. All the spare threads are in block 4; this one was caught first.
# - *… bytes after the nearest allocation … of size 4,100 bytes*: 4100 bytes are 1025 floats, so you know which tensor
#   it was. `memcheck` counts from 1: the first byte past the end is *1 bytes after*.
#
# The last line counts the errors caught before the kernel was stopped. The line number is there because we compiled with
# line information (`lineinfo=True` in `src/course_kernels/error_demos/lines.py`). Without it you still get the kernel, the
# thread and the block.
#
# For a program of your own, all in one line:
#
# ```bash
# PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool memcheck --show-backtrace no --report-api-errors no python mine.py
# ```
#
# The last two options keep out messages that are not about your kernel: calls inside Python itself, and queries that the driver is allowed to refuse. The tool is slow, so give it the smallest input that still fails.
#
# ### Mended
#
# The cure is one line, which you know from [your first kernel](start_here.py):
#
# /// source | src/course_kernels/error_demos/out_of_bounds.cu#mended
# title: src/course_kernels/error_demos/out_of_bounds.cu
# lines: true
# ///

# %%
show("out_of_bounds", mended=True)
print()
show("out_of_bounds", "memcheck", own_memory=True, mended=True)

# %% [markdown]
# The labs' grader puts guard zones around every tensor for the same reason, and our tests always include a size that
# nothing divides.
#
# /// exercise | Sizes that hide it
# Blocks have 256 threads, and PyTorch rounds up to 128 floats. For which of the lengths 1024, 1152, 1200 and 1280 does
# the wrong kernel harm its neighbour?
# /// answer
# 1024: four blocks are exactly 1024 threads. None is spare, and nothing happens. 1280: the same with five blocks.
#
# 1152: five blocks, 1280 threads. 1152 is 9 × 128, so there is no gap at all, and all 128 spare threads hit the
# neighbour. 1200: rounded up to 1280, so the 80 spare threads fall into the gap. Three of the four sizes hide the mistake.
# ///

# %% [markdown]
# ## The GPU gives up
#
# Now for an address so far off that there is no memory at all. The kernel fetches by index, and one of the indices was
# never set:
#
# /// source | src/course_kernels/error_demos/illegal_address.cu#broken
# title: src/course_kernels/error_demos/illegal_address.cu
# lines: true
# ///
#
# /// source | src/course_kernels/error_demos/cases.py#illegal_address
# title: src/course_kernels/error_demos/cases.py
# ///

# %%
show("illegal_address")

# %% [markdown]
# Learn three things from these lines.
#
# **The launch was fine.** It only put an order into the queue. The fault comes later, and is reported at the next call
# that waits for the GPU, whichever that is. PyTorch says so itself: *the stacktrace below might be incorrect*.
#
# **The error is sticky.** `x` was never touched, and still you cannot read it. In this process nothing works on the GPU
# any more. Catching the exception does not help. End Python and start it again; in a notebook, restart the kernel.
#
# **The message does not name the culprit.** It says what happened, not where.
#
# /// figure | docs/assets/figures/sticky_error.svg
# alt: "Two rows over time. Python makes five calls: launch A, launch B and x times 2 are fine, synchronize and torch.zeros give an error. On the GPU, A runs, B runs and breaks off, and after it nothing runs any more. An arrow goes from the break back up to the later call synchronize."
# caption: The first call that waits is the first to hear of it.
# ///
#
# ### Which launch was it?
#
# Ask for launches that wait: with `CUDA_LAUNCH_BLOCKING=1` every launch returns only when its kernel has ended. Set it before Python starts. That is slow, but the message now comes at the launch that is to blame:

# %%
show("illegal_address", blocking=True)

# %% [markdown]
# The launch that is to blame is the first line that is not *fine*. `run`, [the line for a `.cu` of your own](c_for_python_people.py),
# always waits, so with `run` you get this for free.
#
# And which line of the kernel, and which thread? Ask `memcheck` again. It needs no help this time, since the address belongs
# to no allocation:

# %%
show("illegal_address", "memcheck")

# %% [markdown]
# Thread 244 of block 1 is number 256 + 244 = 500. That is the index that nobody set.
#
# Mended, the kernel asks first. What should it do with an index that it cannot use? If it skipped it silently, the old number
# would stay and look like an answer. So it writes *not a number*, which nobody takes for an answer.
#
# /// source | src/course_kernels/error_demos/illegal_address.cu#mended
# title: src/course_kernels/error_demos/illegal_address.cu
# lines: true
# ///

# %%
show("illegal_address", mended=True)

# %% [markdown]
# ## Let the kernel speak
#
# ### printf
#
# `printf` works inside a kernel, without any include; so do `assert` and the math functions. NVRTC has none of the host's
# headers, so leave out `#include <stdio.h>` and the like, and write INFINITY as `__int_as_float(0x7f800000)`. A whole grid is a crowd, so let only a few threads speak:
#
# /// source | src/course_kernels/error_demos/device_printf.cu
# title: src/course_kernels/error_demos/device_printf.cu
# ///

# %%
show("device_printf")

# %% [markdown]
# Two things may surprise you. The text appears only when the program waits for the GPU, long after the launch. And the
# order is the GPU's, not yours: look at the thread numbers, and do not count on the same order tomorrow.
#
# `%d` prints an int, `%lld` a long long, `%g` a float. A wrong letter prints nonsense.
#
# ### assert
#
# It is better still to write down what you believe:
#
# /// source | src/course_kernels/error_demos/device_assert.cu
# title: src/course_kernels/error_demos/device_assert.cu
# lines: true
# ///
#
# The same garbage index as above:

# %%
show("device_assert")

# %% [markdown]
# File, line, block, thread, and the belief that did not hold: all in one line, without any tool. The error is as sticky as
# before. An assert can cost time in the kernel, so take it out, or compile with the macro `NDEBUG`, before you
# measure.
#
# PyTorch's own kernels assert too. *device-side assert triggered* after indexing, or in a loss function, nearly always
# means that an index is out of range: a class number that is too large, say. Run the same line on the CPU, and you get
# a plain Python error.
#
# /// exercise | Which do you ask first?
# A kernel of yours writes a row of zeros where there should be none. There is no error anywhere. Which do you use first:
# `printf`, `assert` or `memcheck`?
# /// answer
# `memcheck`, since it costs you one command and no thought. If it finds nothing, the access is inside the memory and
# the *index* is wrong, or the threads never got there. Then print, from one thread of that row, its index and the
# number it read. An `assert` makes sense only when you have a suspicion: it is the suspicion, written down.
# ///

# %% [markdown]
# ## The wrong grid
#
# The kernel can be perfect and the launch wrong. The next two use the same kernel, `y[i] = 2 * x[i]` with its bounds
# check.
#
# **Too many threads.** A block of 2048 threads, on cards that allow 1024:

# %%
show("too_many_threads")

# %% [markdown]
# That one is loud and immediate. *INVALID_VALUE* does not say which value, so look at the block first, then at the
# grid, then at the shared memory. It is not sticky: the next call works. And note the last line: the kernel **never
# ran**. A program that does not check for errors, and many in C do not, would go on with an empty result. (`run` checks the numbers for you and says so in words.)
#
# **Too few blocks.** 1000 numbers in blocks of 256. In Python `1000 // 256` is 3, and three blocks are 768 threads. The
# last 232 numbers have no cook:
#
# /// source | src/course_kernels/error_demos/cases.py#too_few_blocks
# title: src/course_kernels/error_demos/cases.py
# ///
#
# /// predict | The check compares y with the right answer. y was made by torch.empty. Does the check fail?
# It holds 768 new numbers, and 232 that nobody has written.
#
# - [ ] Yes, always
# - [ ] No
# - [x] It depends on what happened before
# /// reveal
# **It depends on what happened before.** PyTorch handed out memory that had just been given back, and it still held the right answer from an earlier call. Look at the first line below.
# ///

# %%
show("too_few_blocks")

# %% [markdown]
# With a fresh output the broken launch looks perfect. So **poison the output**: fill it with *not a number* before the
# call. Anything left unwritten then shows. [Our checker](how_we_measure.py#first-taste-then-time) does so before every
# single measurement.
#
# Mended: round up, `-(-N // 256)`, or in C `(N + 255) / 256`. Then some threads are spare, and the bounds check earns
# its keep.

# %%
show("too_few_blocks", mended=True)

# %% [markdown]
# ## Memory that nobody set
#
# This is a close relative of the last mistake. `torch.empty` gives you memory, not numbers. This kernel adds to its output, and assumes that it
# starts at zero:
#
# /// source | src/course_kernels/error_demos/uninitialised.cu#broken
# title: src/course_kernels/error_demos/uninitialised.cu
# lines: true
# ///

# %%
show("uninitialised")

# %% [markdown]
# Fresh memory from the driver happened to be zero, so the first call was right. The second call got the first one's memory back, with
# the first one's answer in it. *Works once, wrong from the second call on*: when you hear that, think of uninitialised memory.
#
# The tool is `initcheck`. It too must see every tensor as an allocation of its own, or it counts the second call's
# memory as written, since the first call did write it:

# %%
show("uninitialised", "initcheck", own_memory=True)
print()
show("uninitialised", mended=True)

# %% [markdown]
# It counts every such read in both calls, even in the first one, whose answer was right.
#
# Mended, the kernel writes `y[i] = x[i]`. If it is really meant to add, the launcher uses `torch.zeros`.
#
# /// exercise | Zero is a number too
# A friend says: *then I'll always use `torch.zeros`, and nothing can happen*. What do you lose?
# /// answer
# Two things. Writing the zeros costs time in every call, as much as any kernel that writes that many bytes.
#
# And you hide mistakes. A row that the kernel forgot now holds zeros, which look like an answer. *Not a number* does not.
# Use `torch.empty` when the kernel writes everything, and have a test poison it.
# ///

# %% [markdown]
# ## Two cooks at one bowl
#
# Every thread adds 1 to the same number. With 8192 blocks of 256 threads, the sum should be 2097152.
#
# /// source | src/course_kernels/error_demos/lost_updates.cu#broken
# title: src/course_kernels/error_demos/lost_updates.cu
# lines: true
# ///

# %%
show("lost_updates")

# %% [markdown]
# Some additions are missing, and how many may change from run to run. `total = total + 1` looks like one step but is
# three: read, add, write. In between, others read the same old number:
#
# /// figure | docs/assets/figures/two_cooks.svg
# alt: "Two cooks and a bowl over time. The bowl holds 5. Cook 1 reads 5, then cook 2 reads 5. Cook 1 works out 6 and writes 6. Cook 2 works out 6 as well and writes 6. The bowl holds 6 and not 7."
# caption: Both did their work. One of the two additions is lost.
# ///
#
# This is a **race**: the result depends on who comes first. It may differ from run to run, from card to card, and with the
# size. An **atomic** does the three steps as one, so that no other thread can come between them:
#
# /// source | src/course_kernels/error_demos/lost_updates.cu#mended
# title: src/course_kernels/error_demos/lost_updates.cu
# lines: true
# ///

# %%
show("lost_updates", mended=True)

# %% [markdown]
# And the tool? `racecheck` looks for races, but in **shared memory** only [^nvidia-sanitizer]. Our `total` is in main
# memory, so the tool is blind to this race. This is what it says about the *wrong* kernel:

# %%
show("lost_updates", "racecheck")

# %% [markdown]
# *0 hazards* does not mean *no race*. It means *none where I look*. Against races in main memory you have only your
# own head, and a check against a number that you know.
#
# ### The same race in shared memory
#
# In shared memory the usual cause of a race is a barrier that somebody forgot. Each block reverses a list of 1024 numbers: every
# thread puts its number into a shared array, then takes the one from the opposite end.
#
# /// source | src/course_kernels/error_demos/missing_barrier.cu#broken
# title: src/course_kernels/error_demos/missing_barrier.cu
# lines: true
# ///

# %%
show("missing_barrier")
print()
show("missing_barrier", "racecheck")

# %% [markdown]
# The program says only *some*, since the number may change from run to run. On your card it may say 0. Then you were lucky, and
# the next driver may not be so kind. `racecheck` does not depend on luck. It names the two lines that get in each other's way,
# the *write* in one, the *read* in the other, and says that there is no barrier between them. A *hazard* is one byte, written by
# one thread and read by another.
#
# Mended:
#
# /// source | src/course_kernels/error_demos/missing_barrier.cu#mended
# title: src/course_kernels/error_demos/missing_barrier.cu
# lines: true
# ///

# %%
show("missing_barrier", mended=True)
print()
show("missing_barrier", "racecheck", mended=True)

# %% [markdown]
# ### A barrier that not everyone reaches
#
# `__syncthreads()` is a promise: the whole block comes. Here it is inside an `if`, and the spare threads wait at a
# different one:
#
# /// source | src/course_kernels/error_demos/split_barrier.cu#broken
# title: src/course_kernels/error_demos/split_barrier.cu
# lines: true
# ///
#
# Nothing defines what the card does then. The answer may be right, it may be wrong, or the kernel may hang for ever,
# so we gave it three seconds:

# %%
show("split_barrier", limit_s=3.0)

# %% [markdown]
# On the H200 where this page was written it hung: a **deadlock**. Some threads wait for others, which wait for them. A
# shorter kernel, with one row and without the second barrier, broke the same rule there and came out right. So a right answer
# proves nothing.
#
# The rule is short. **No barrier inside an `if` that some threads of the block do not take.** Split the `if` instead:
#
# /// source | src/course_kernels/error_demos/split_barrier.cu#mended
# title: src/course_kernels/error_demos/split_barrier.cu
# lines: true
# ///

# %%
show("split_barrier", mended=True)

# %% [markdown]
# No tool found this for us. The fourth check, `synccheck`, is there for barriers, but our kernel hung under it as well, and
# it never got to say a word. When a kernel hangs, read it: at every barrier, ask who does not come.
#
# ### A barrier that does not know you
#
# A warp has a barrier of its own, `__syncwarp(mask)`. The mask says which of its 32 threads will come, one bit for each.
# A thread's place in its warp, 0 to 31, is called its *lane*. `0x0000ffff` has sixteen ones, for lanes 0 to 15. One warp reverses 32 numbers, and all of its lanes come:
#
# /// source | src/course_kernels/error_demos/wrong_mask.cu#broken
# title: src/course_kernels/error_demos/wrong_mask.cu
# lines: true
# ///

# %%
show("wrong_mask")
print()
show("wrong_mask", "synccheck")

# %% [markdown]
# The first line may well say *0 wrong*: as long as the lanes of a warp happen to move together, nobody misses the barrier.
# `synccheck` does not look at the answer. *Barrier error … Invalid arguments*: a lane came that is not in the mask. The
# same goes for the mask of `__shfl_down_sync` and its relatives.
#
# Mended, the mask names everybody who comes:
#
# /// source | src/course_kernels/error_demos/wrong_mask.cu#mended
# title: src/course_kernels/error_demos/wrong_mask.cu
# lines: true
# ///

# %%
show("wrong_mask", mended=True)
print()
show("wrong_mask", "synccheck", mended=True)

# %% [markdown]
# /// exercise | Is an early return a split barrier?
# Many kernels begin with `if (i >= N) return;`. Later in the same kernel comes a `__syncthreads()`. Is that a mistake?
# /// answer
# Not by itself. On every card since Volta a barrier waits only for the threads that are still running; one that has ended is
# not missed [^cuda-guide]. The mistake hides in shared memory. If those threads should have filled places in it, the places
# hold garbage, and the others read them. So in a kernel that uses shared memory, do not return early. Let the spare threads stay, put a neutral number (0 for a sum) into
# shared memory, and guard only the reads and writes of main memory.
# ///

# %% [markdown]
# ## Not a number
#
# Softmax, straight from the formula: `exp(x)` divided by the sum of all `exp(x)`.
#
# /// source | src/course_kernels/error_demos/not_a_number.cu#broken
# title: src/course_kernels/error_demos/not_a_number.cu
# lines: true
# ///
#
# There are eight rows of four small numbers; only in row 5 is one of them 100. A float ends near 3.4 × 10<sup>38</sup>,
# and exp(100) is more than that.

# %%
show("not_a_number")

# %% [markdown]
# exp(100) became *inf*, and the sum with it, and inf divided by inf is **not a number**, NaN. There is no message: for the GPU
# this is ordinary arithmetic. And it spreads. One NaN in 32 numbers, and the mean of all is NaN; one step later so is
# every weight of your model.
#
# **Find the first one.** From Python: `y.isnan().nonzero()[0]` is the place in the output. But the cause comes before the
# NaN: look for the first number that is not *finite*. Inside the kernel a `printf` with an `if` does that; its output is
# the last line above. (For a whole model, `torch.autograd.set_detect_anomaly(True)` does something similar for gradients.)
#
# ### The rules
#
# Six sums, done on the card by one thread:
#
# /// source | src/course_kernels/error_demos/not_a_number.cu#rules
# title: src/course_kernels/error_demos/not_a_number.cu
# ///
#
# /// predict | A NaN goes into a ReLU that you wrote by hand in CUDA. What comes out?
# It is `x > 0 ? x : 0`, or `fmaxf(x, 0.0f)`, as in the listing above.
#
# - [ ] NaN, both ways
# - [x] 0, both ways
# - [ ] NaN the first way, 0 the second
# /// reveal
# Written by hand, **0**, both ways. The comparison `nan > 0` is false, as every comparison with NaN is. And `fmaxf` returns
# the *other* number when one is NaN. The NaN is gone, and your only clue with it. PyTorch's own `relu` passes NaN on.
# ///

# %%
show("rules_of_nan")

# %% [markdown]
# NaN is not even equal to itself. So `error > tolerance` is false for a NaN, and a careless check passes. Ask the other way
# round: *not* `error <= tolerance`.
#
# Mended, the kernel first subtracts the largest number from all of them. Then no exponent is above 0, and nothing can
# overflow:
#
# /// source | src/course_kernels/error_demos/not_a_number.cu#mended
# title: src/course_kernels/error_demos/not_a_number.cu
# lines: true
# ///

# %%
show("not_a_number", mended=True)

# %% [markdown]
# This is the trick behind every softmax that you have ever used, and [FlashAttention](workshops/w1_flash_attention.py) is built
# around it.
#
# /// exercise | A row that is all minus infinity
# A mask sets every number of a row to minus infinity. What does the mended kernel give for that row?
# /// answer
# The largest is −inf, and −inf minus −inf is NaN: the second of the six sums. The whole row is NaN. A masked softmax has to
# check for that case and write zeros, or leave at least one number unmasked. It is a common way for a NaN to get into an
# attention layer.
# ///

# %% [markdown]
# ## It never ends
#
# A loop steps through the list in strides. The stride came from Python, where `256 // 1000` is 0:
#
# /// source | src/course_kernels/error_demos/endless_loop.cu#broken
# title: src/course_kernels/error_demos/endless_loop.cu
# lines: true
# ///

# %%
show("endless_loop", limit_s=2.0)

# %% [markdown]
# `i += 0` never arrives. On a card without a screen nothing stops such a kernel. Python waits inside the driver, where
# it does not even hear Ctrl-C. From another terminal, `nvidia-smi` names the process, and `kill -9` with that number
# ends
# it; the card is free again a moment later. You lose nothing but that process.
#
# It is better to set a time limit from the start. That is all we did here, and the labs' grader does the same:
#
# ```bash
# timeout --signal=KILL 20 python mine.py
# ```
#
# Before you blame a loop, ask whether the kernel is merely slow: try a tenth of the size. And ask whether there is a
# barrier that [not everyone reaches](#a-barrier-that-not-everyone-reaches).
#
# Mended, the kernel takes the stride from the block itself, which knows its own size:
#
# /// source | src/course_kernels/error_demos/endless_loop.cu#mended
# title: src/course_kernels/error_demos/endless_loop.cu
# lines: true
# ///

# %%
show("endless_loop", mended=True)

# %% [markdown]
# ## From symptom to cause
#
# | what you see | likely cause | what to reach for |
# |---|---|---|
# | *illegal memory access was encountered* | an index far outside | `memcheck`; to find the launch, `CUDA_LAUNCH_BLOCKING=1` |
# | *unspecified launch failure* | often the same, seen under a tool | the tool's own lines, above it |
# | *misaligned address* | a 16-byte access at an address that 16 does not divide | `memcheck`; print the offset of the slice you passed |
# | everything fails after one error | it is sticky | a new process; then look for the **first** error |
# | *invalid value* at the launch | more than 1024 threads in a block, or a grid of 0 | print grid and block |
# | *too many resources requested* | too many registers or too much shared memory for such a block | a smaller block |
# | *device-side assert triggered* | an index that PyTorch refused | the line above it; the same call on the CPU |
# | somebody else's numbers change | a write past the end | `memcheck` with `PYTORCH_NO_CUDA_MEMORY_CACHING=1` |
# | the end of the output is wrong | one block too few, or a bounds check that is off by one | poison the output |
# | right the first time, wrong the second | memory nobody set, or an input that was changed | `initcheck` with the same variable |
# | different on every run | a race | `racecheck` for shared memory; your head, and an atomic, for the rest |
# | right with one block size, wrong with another | a missing barrier, or a size typed in twice | `racecheck`; one constant |
# | NaN | 0/0, inf − inf, exp of something large | the first number that is not finite |
# | it never ends | a loop, or a barrier that not everyone reaches | a time limit; at every barrier, ask who does not come |
# | right, but slow | no error at all | [the chart below](#right-but-slow) |
#
# On the machine that made this page the sanitizer calls itself *{{ sanitizer }}*. Where it is missing, everything but its
# own lines still works.
#
# ### Right, but slow
#
# No message will come. Ask six questions, from the top. One number answers each, and each answer leads to the lesson with the cure.
#
# /// figure | docs/assets/figures/right_but_slow.svg
# alt: >-
#   Six questions below each other; a yes leads to the right, a no down. Does the card have gaps? Launches: fuse, or a graph. Is
#   HBM nearly full, and the bytes the minimum? Memory, at its roof: fuse, or leave it. Is HBM nearly full, and
#   the bytes more than the minimum? Memory, wasted: neighbours, or keep it on chip. Are the SMs nearly full? Arithmetic:
#   other units, or less. Do warps wait on the long scoreboard? Latency: put more in flight. For another reason? What it
#   names: the dictionary.
# caption: The table has the same leaves, with the lessons that cure them.
# ///
#
# | you see | it is bound by | what to do, and the lesson |
# |---|---|---|
# | the card has gaps while the host writes orders | launches | [fuse](lectures/l3_memory.py#do-it-while-you-hold-it), or [a graph](lectures/l7_profiling.py#gaps-between-the-kernels) |
# | HBM nearly full, bytes counted are the minimum | memory, at its roof | done: fuse it, or leave it. [Before you leave the cafeteria](lectures/l3_memory.py#before-you-leave-the-cafeteria) |
# | HBM nearly full, many sectors per request | memory, boxes half empty | [ask for neighbours](lectures/l3_memory.py#ask-for-neighbours) |
# | HBM nearly full, more bytes than the minimum | memory, carried twice | [keep it on chip](lectures/l7_profiling.py#the-second-turn-is-the-road-full-of-the-right-things); [stand side by side](lectures/l4_the_gemm_ladder.py#rung-2-stand-side-by-side) |
# | the SMs nearly full | arithmetic | [two factors](lectures/l5_the_top_of_the_ladder.py#every-other-instruction-costs-a-multiply-add); [tensor cores](lectures/l6_tensor_cores.py#the-climb) |
# | neither full, long scoreboard | latency of HBM | [how many must be walking](lectures/l3_memory.py#how-many-must-be-walking) |
# | neither full, short scoreboard or MIO throttle | shared memory | [thirty-two windows](lectures/l3_memory.py#thirty-two-windows) |
# | neither full, another reason | what it names | [the dictionary of stall reasons](stall_reasons.py#all-at-a-glance) |
# | neither full, some SMs finish early | too few blocks, or a tail | [nobody idles at the end](lectures/l5_the_top_of_the_ladder.py#12-nobody-idles-at-the-end) |
#
# No counters? [Leave a stage out, or do it twice](lectures/l7_profiling.py#without-counters).
#
# ### In this order
#
# 1. Make it small: the smallest size that still fails. One block, if you can.
# 2. Make it loud: poison the output, take a size that nothing divides, `CUDA_LAUNCH_BLOCKING=1`.
# 3. `memcheck`. Then, with shared memory in play, `racecheck` and `synccheck`.
# 4. One suspicion, one `printf`. Compare with the same thing in NumPy.
# 5. Read the kernel aloud, for one thread, with numbers. Thread 0, then the last one.
#
# And be kind to yourself. The fault is nearly always one character.

# %% [markdown]
# ## Now you
#
# /// exercise | Break your own
# Take the kernel of your first lab and delete its bounds check, or its mask. First say what you will see, with 1000 numbers
# and with 1025. Then run it under `memcheck`, with and without PyTorch's own memory. You need a card for this, and a small
# script: import `vector_add` from your file, make the two lists and a third right after them, call `vector_add`, and see whether the third changed. `out_of_bounds` in `src/course_kernels/error_demos/cases.py` does the same.
# /// answer
# With 1000 numbers the spare threads write into the gap after the list, and nothing is visibly wrong. With 1025 numbers, and
# something allocated right after the list, that something changes. `memcheck` sees it only when every tensor is an
# allocation of its own. The grader sees it too, since it puts a guard zone around every tensor.
# ///
#
# /// exercise | Which one is it?
# A student reports: *with 512 threads the sum is right, with 1024 it is a little too small, and by a different amount each time.*
# What do you ask to see?
# /// answer
# Different each time means a race. That it depends on the block size points to shared memory: most likely a barrier is missing
# between two steps of the sum. Ask for the loop with the steps, and look for a `__syncthreads()` after **every** write that another
# thread reads. Then let `racecheck` name the two lines.
# ///

# %% [markdown]
# ## Where this leads
#
# You will need this page most in [the memory lecture](lectures/l3_memory.py), where barriers and shared memory come in. That lecture also says what a barrier or an atomic *costs* when it is used correctly.
#
# - [The CUDA model](lectures/l2_the_cuda_model.py): who the threads are, and why some of them are spare
# - [How every number here is measured](how_we_measure.py): what our checker does to every kernel before it is timed
# - [C for Python people](c_for_python_people.py): integers that overflow, and other quiet surprises
