# ---
# id: opening
# title: The ten-second opening demo
# order: 4
# description: A naive matrix multiply against the library's, back to back, before a word of theory.
# needs: gpu
# ---

# %% [markdown]
# # The ten-second opening demo
#
# After this page you can end the first five minutes of day one with a speed gap that the whole room sees. You will
# know what to type, what to say, what to draw, how long you will wait, and what to do when it goes wrong.
#
# The demo comes last in the opening. By then the sentence is on the board: *First we make the multiply fast. Then we make
# the model fast.* The road is drawn beside it. Now they see why anyone would walk that road.
#
# The whole demo, for the phone in your hand:
#
# 1. Press Enter first. The programs run while you [talk](#what-you-say).
# 2. Ask how far apart they will be. Count the hands, write the tally.
# 3. Both times are on the screen. Keep silent, and count to three.
# 4. Draw [the bars](#what-you-draw), to scale.
# 5. Ask: *what percent of peak are you at?* Leave it on the board for the whole course.

# %% [markdown]
# ## What you run
#
# You run two programs that compute the same thing: the product of two square grids of numbers, 4096 by 4096, in
# fp32. The first is the kernel that a newcomer writes: one cook for each number of the answer, no tricks. The
# second is the library's.
#
# The day before, in the folder of the course and in the Python that you will use:
#
# ```bash
# python -m pip install -e '.[measure]'
# ```
#
# /// callout | demo
# In the room, open a terminal in that folder, make the text large, and type:
#
# ```bash
# PYTHONPATH=src python -m course_kernels.measure \
#     sgemm/k01_naive sgemm/library.cublas \
#     --workload dtype=float32,M=4096,N=4096,K=4096
# ```
# ///
#
# The command checks both answers before it times either program. Then it prints a small table, with one line for each
# program.
# The first number of each line is the time in µs: point at that column. For our run it says
# {{ naive.us:.1f }} and {{ library.us:.1f }}. Divide by a thousand, and you have milliseconds.
#
# Here is the whole naive kernel, for your eyes, not for theirs:
#
# /// source | src/course_kernels/sgemm/k01_naive.cu
# ///

# %%
from course_kernels.measure import compare, quantity, record
from course_kernels.problem import Workload
from course_kernels.sgemm import k01_naive, library

GRID = Workload.of("float32", M=4096, N=4096, K=4096)
both = compare({"naive": k01_naive, "library": library.cublas}, GRID)
record(
    **both,
    grid={"multiply_adds": quantity(4096**3)},
)

# %% [markdown]
# ## How long you will wait
#
# One multiplication is only a small part of the wait. The process has to start, load PyTorch, compile the kernel, work
# out
# the true answer in float64, warm the card, and then run each program many times. Here we run exactly the command above
# in
# its own process and time it, from Enter to prompt.

# %%
import subprocess
import sys
import time

COMMAND = [
    sys.executable,
    "-m",
    "course_kernels.measure",
    "sgemm/k01_naive",
    "sgemm/library.cublas",
]
WORKLOAD = ["--workload", "dtype=float32,M=4096,N=4096,K=4096"]

start = time.perf_counter()
subprocess.run(COMMAND + WORKLOAD, check=True, capture_output=True)
record(wait=quantity(time.perf_counter() - start, "s", how="device"))

# %% [markdown]
# It took {{ wait:.0f }} s, on a machine that had already read PyTorch from its disk. When the naive kernel is
# timed {{ naive.n:.0f }} times, as it was above, that alone is {{ naive.n * naive.s:.1f }} s of it. On a machine that
# has just been switched on, expect the first run to take longer. So run the demo once before the room fills, leave the window
# open, and run it again when you need it. While it runs, talk. The words are below.

# %% [markdown]
# ## What the room sees
#
# /// predict | Ask the room: how far apart are they? Same chip, same grids, same answer.
# Count the hands. Write the tally on the board, because everybody will want to have been right.
#
# - [naive_over_library < 1.5] About the same
# - [1.5 <= naive_over_library < 8] A few times
# - [8 <= naive_over_library < 90] Tens of times
# - [naive_over_library >= 90] A hundred times, or more
# /// reveal
# The library needs {{ library.ms:.2f }} ms, the naive kernel {{ naive.ms:.0f }} ms:
# **{{ naive_over_library:.0f }} times** as long.
# ///
#
# /// define | naive_over_library = naive.us / library.us
# unit: ×
# what: time of the naive SGEMM over the library's, 4096³, fp32 without TF32
# ///
#
# /// define | naive_of_library = library.us / naive.us
# unit: "1"
# what: speed of the naive SGEMM as a part of the library's, 4096³, fp32 without TF32
# ///
#
# /// table
# columns: ["", "one, ms", "twenty, s", TFLOP/s, "% of library", "% of peak"]
# rows:
#   - [naive, "{{ naive.ms:.1f }}", "{{ 20 * naive.s:.2f }}", "{{ naive.tflops:.2f }}",
#      "{{ naive_of_library:.1%}}", "{{ naive.of_peak:.1%}}"]
#   - [library, "{{ library.ms:.2f }}", "{{ 20 * library.s:.2f }}", "{{ library.tflops:.1f }}", "100%",
#      "{{ library.of_peak:.0%}}"]
# caption: "Two grids of 4096 by 4096, fp32. Peak is the card's data sheet, fp32 outside the tensor cores."
# ///
#
# Nobody can feel a millisecond. So give the time for *twenty in a row*: {{ 20 * naive.s:.1f }} seconds, long enough for a whole
# room to shift in its chairs, against {{ 20 * library.s:.2f }} seconds. Snap your fingers for the
# second one.
#
# /// callout | teaching
# Do not promise a gap beforehand. It depends on the card, the size and the number format. Read out what
# *your* run says.
# ///

# %% [markdown]
# ## What you say
#
# While it runs:
#
# /// callout | say
# Two grids, a thousand by a thousand: multiply them and you have done one billion multiply-adds. That is a
# *modest* grid. The grids on the screen are 4096 wide, which makes {{ grid.multiply_adds / 1e9:.0f }} billion. A language
# model runs a few hundred matrix multiplies for each piece of a word that it says. Take one with seventy billion
# numbers, all of them at work: that is some seventy billion multiply-adds, for one piece of one word. That is about as
# many as in the single multiplication on this screen.
# ///
#
# When both numbers are there, wait. Count to three in silence. Then:
#
# /// callout | say
# Same chip. Same grids. Same answer, checked. The only difference is who wrote the kernel. In two
# weeks you will have closed most of that gap by hand. Closing it is the first half of the road. Let's begin.
# ///
#
# /// callout | teaching
# Do not explain *why* the slow program is slow. Someone will ask. Write the question on the board, draw a box
# around it, and say: "That is for the fourth lecture. I want you to be the one who answers it."
# ///

# %% [markdown]
# ## What you draw
#
# Use a ruler to draw two bars, one above the other. The library's bar is as long as your arm. Draw the naive one to scale: at {{ naive_of_library:.1%}} of your arm, it is hardly a dot. Let them look at the
# dot.
#
# Then draw a third bar above both: the peak of the card. The library's bar is only {{ library.of_peak:.0%}} of it. In
# the picture below, the peak is the dotted line.
#
# /// chart | bars
# title: The same multiply, and what the card could do
# x_label: TFLOP/s, fp32
# bars:
#   - {name: library.tflops, label: library}
#   - {name: naive.tflops, label: naive}
# references:
#   - {label: data-sheet peak, value: library.tflops / library.of_peak}
# alt: >-
#   Two bars. The library reaches {{ library.tflops:.1f }} TFLOP/s, {{ library.of_peak:.0%}} of the data-sheet
#   peak, which is a dotted line; the naive kernel's bar, {{ naive.tflops:.2f }} TFLOP/s, is hardly visible.
# ///
#
# Be strict about those two yardsticks from the first day. {{ naive_of_library:.1%}} is a share of the *library*. {{ naive.of_peak:.1%}}
# is a share of the *peak*. They answer different questions, and *what percent of peak are you at?* means the second.
# The library does not reach all of the peak either, and you should say so, rather than pretend that it does.

# %% [markdown]
# ## When it goes wrong
#
# - **No GPU in the room.** Show this page. The numbers are from a real run, and the stamp at the top says which card
#   and when. Say so. Never run the demo on a laptop's CPU and call the result the library's time.
# - **A different card.** Good. Run it, and read *your* numbers aloud. The gap will differ; the story will not.
# - **The first run is slow and the room gets restless.** You skipped the rehearsal. Tell them what they are waiting
#   for: starting up, checking, and multiplying many times over. Then run it again.
# - **It says *not measured*, and something about a module or a driver.** Either you are in the wrong Python, or it sees no GPU. Do not try to fix the problem in front of the room. Show this page.
# - **It stops with a line about a wrong answer.** Do not try again. Say "the check caught something", and be proud of
#   the check: they want a course that refuses to time a wrong kernel. Show this page.
#
# /// callout | trip
# - **Someone says: "the library cheats, it uses tensor cores."** Not here. TF32 is switched off for this
#   race: both sides multiply in fp32. When the tensor cores come, in week two, the gap to the naive kernel
#   grows again.
# - **Someone says: "you made it slow on purpose: swap two indices."** Good eye. The slow program is the formula as
#   written, and nobody told it which neighbour should walk which way. With that swap you have the very next kernel on the ladder.
# - **Someone says: "so the compiler is bad?"** No. The compiler compiled exactly what was asked for: run to the pantry
#   for every
#   single number.
# ///
#
# /// exercise | Rehearse
# Run the command on the machine that you will use, with the projector on. Write down three things: your wait,
# your two times, and your gap. Then say the text aloud and time it. Does the talk cover the wait?
# /// answer
# The text above takes about forty seconds to say, if you do not hurry. If your wait is longer, start the command
# *before* you draw the road, with your back to the screen. If your wait is shorter, stop talking earlier: a number that
# is
# already on the screen is louder than you.
# ///
#
# **Where this leads.** The naive kernel is the first step of
# [the matrix-multiply ladder](../../docs/lectures/l4_the_gemm_ladder.py). How the clock and
# the check work: [how every number here is measured](../../docs/how_we_measure.py). What the second half of
# the road looks like: [FlashAttention from scratch](../../docs/workshops/w1_flash_attention.py).
