# ---
# id: teach_l2
# title: "Teaching L2: the CUDA model"
# description: How to have twenty people act as threads before they write one, and how to read a wrong index at a glance.
# ---

# %% [markdown]
# # Teaching L2: the CUDA model
#
# After this page you can stand in front of people who have never written a kernel and leave them, two hours later, with
# two kernels that they typed themselves. You will recognise a wrong index by what it leaves out, does twice, or writes
# outside.
#
# You need this page, [the map](../01_the_machine/l2_map.md), and two labs that you have typed once yourself:
# [first_kernel](../../docs/start_here.py#type-it-yourself) and [grey](../../docs/lectures/l2_the_cuda_model.py#a-picture-in-a-picture-out).

# %% [markdown]
# ## What it is really about
#
# One line. *Who am I?* A kernel has no loop and no list; it has an index. Get the index right, and you have written most of this
# week's kernels. Grids, blocks, two dimensions, pictures: all of them use that line again, with more letters.
#
# /// callout | metaphor
# One recipe goes out to a whole brigade. The recipe cannot say *take pair number 7*, since everybody would take that
# pair. So it says: *look at
# the number of your table, and at the number of your seat.* The warp is not in the recipe. It is the row of 32 in which cooks
# happen to move, and it matters as soon as
# they disagree.
# ///

# %% [markdown]
# ## By hand: ten numbers, tables of four
#
# Act out the index with people before you write it in code. Twelve students come forward and sit at three tables of
# four. Each works out an i. Ten students find a number on the board and stand under it. Two students find no number,
# and stay where they are. Ask what they would have done if nobody had told them to stay.

# %%
from collections import Counter

from course_kernels.measure import quantity, record

N, SEATS = 10, 4
TABLES = -(-N // SEATS)  # rounded up

for table in range(TABLES):
    row = [table * SEATS + seat for seat in range(SEATS)]
    said = [f"{i}" if i < N else f"({i}: stays)" for i in row]
    print(f"table {table}:", *said)

# %% [markdown]
# /// predict | Somebody multiplies by the number of tables, not of seats: i = table × 3 + seat. Is any of the ten numbers left out?
# Work it out at the board, seat by seat. Which numbers get two cooks?
#
# - [ ] Yes, two; and two have two cooks
# - [ ] Yes, one; and one has two cooks
# - [x] None; and two have two cooks
# /// reveal
# None is left out. {{ slips.tables.twice:.0f }} numbers have two cooks. With one addition each, the answer is even *right*, and nobody notices; with `+=`
# it is wrong. Such a mistake passes a careless test.
#
# For the three columns the grader says *not written*, nothing at all, and *out of bounds*. (Nobody has put in the `if` yet.)
#
# /// table
# columns: ["what was typed", "numbers left out", "done by several", "cooks outside"]
# rows:
#   - ["table × 4 + seat", "{{ slips.right.left_out:.0f }}", "{{ slips.right.twice:.0f }}", "{{ slips.right.outside:.0f }}"]
#   - ["table × *tables* + seat", "{{ slips.tables.left_out:.0f }}", "{{ slips.tables.twice:.0f }}", "{{ slips.tables.outside:.0f }}"]
#   - ["tables counted from 1", "{{ slips.from_one.left_out:.0f }}", "{{ slips.from_one.twice:.0f }}", "{{ slips.from_one.outside:.0f }}"]
#   - ["seat × 4 + table", "{{ slips.swapped.left_out:.0f }}", "{{ slips.swapped.twice:.0f }}", "{{ slips.swapped.outside:.0f }}"]
#   - ["seat alone", "{{ slips.seat_only.left_out:.0f }}", "{{ slips.seat_only.twice:.0f }}", "{{ slips.seat_only.outside:.0f }}"]
#   - ["tables rounded down", "{{ slips.down.left_out:.0f }}", "{{ slips.down.twice:.0f }}", "{{ slips.down.outside:.0f }}"]
# caption: Ten numbers, tables of four.
# ///
# ///

# %%
WRONG = {
    "right": (TABLES, lambda table, seat: table * SEATS + seat),
    "tables": (TABLES, lambda table, seat: table * TABLES + seat),
    "from_one": (TABLES, lambda table, seat: (table + 1) * SEATS + seat),
    "swapped": (TABLES, lambda table, seat: seat * SEATS + table),
    "seat_only": (TABLES, lambda table, seat: seat),
    "down": (N // SEATS, lambda table, seat: table * SEATS + seat),
}
slips = {}
for name, (tables, index) in WRONG.items():
    cooks = Counter(index(t, s) for t in range(tables) for s in range(SEATS))
    slips[name] = {
        "left_out": quantity(sum(n not in cooks for n in range(N))),
        "twice": quantity(sum(cooks[n] > 1 for n in range(N))),
        "outside": quantity(sum(c for n, c in cooks.items() if n >= N)),
    }
record(slips=slips)

# %% [markdown]
# /// callout | by_hand
# Do the same for a picture, on squared paper. Take thread (5, 2) of block (1, 1), with blocks of 16 × 4 and 30 pixels to a row: it is in column 21, row 6, at place 6 × 30 + 21 = 201. A student whose sheet says 21 × 30 + 6 = 636 has multiplied the column by the width; the picture has only 300 pixels.
# ///

# %% [markdown]
# ## In production today
#
# /// callout | production
# Kernels in libraries begin with the same line. CUTLASS, too, asks first which tile of the answer belongs to the block, then
# which part of it to the warp, then which to the thread [^cutlass-gemm]. Triton asks once, for a whole block. The question does
# not grow; a thread's work with the answer does.
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# There are 32 ways through an `if`, and the same sums in total. When neighbours differ, the kernel takes {{ l2.apart.w32.us / l2.apart.w1.us:.0f }}
# times as long as with one way. When each warp agrees, it takes {{ l2.together.w32.us / l2.together.w1.us:.1f }} times as long. The card's counter says how many of 32 lanes were at work: {{ l2.active.w32:.1f }} and
# {{ l2.active_sorted:.0f }}.
# ///
#
# Have them bet first, on both. Everybody has heard that *if is slow*. The second bar is the lesson: only neighbours must agree.
#
# Then own up to one loss.
#
# /// claim | l2.grey.triton.us < 0.97 * l2.grey.cuda.us
# The grey kernel that they type in CUDA C++ is at {{ l2.grey.cuda.of_peak:.0%}} of peak, and the one in Triton takes
# {{ l2.grey.triton.us / l2.grey.cuda.us:.0%}} of its time. Your students typed both. Do not explain it
# away: most likely the Triton kernel has more bytes in flight, and that is the next lecture.
# /// otherwise
# The grey kernel that they type in CUDA C++ is at {{ l2.grey.cuda.of_peak:.0%}} of peak, the one in Triton at {{ l2.grey.triton.of_peak:.0%}}.
# ///
#
# /// callout | demo
# There is one command, and the map has it. The screen shows *apart* against *together*, for 32 ways. It does not show one way alone; that number is
# in the check question, so read it aloud. No GPU? Show [the recorded run](../../docs/lectures/l2_the_cuda_model.py#a-warp-at-a-fork).
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **Row and column.** x runs along a row, so it counts *columns*. Have them point with an arm: x goes sideways. Half the
# room will
# get it wrong once, and the answer may still be right, only slow.
# ///
#
# - *A list of 1024 passes.* Of course it does: the block size divides it. Test with sizes that nothing divides.
# - *The mask on the store only.* The grader sees a write outside. A read outside may go unseen.
# - *"The blocks run in order."* Nobody promised that. Ask what would break if the last block ran first.
# - *"Why 64 bits?"* Three times the pixels of a large picture does not fit into 32.
# - *It says* all NaN. Nothing was written. First see whether the kernel was launched at all.
# - *The GPU's answer comes late.* A launch is an order; an error in one line often shows up at a later one.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "You are all reading the same recipe, at the same moment. There is no first cook and no boss. So before anybody touches a knife, everybody asks the same
# question: who am I? If your answer is the same as your neighbour's, one of you is cooking the wrong dish."
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../01_the_machine/l2_map.md) has every step. If you are late at the break, drop the sheet of orders (it is an exercise
# on the page); keep the seats and the four stages of grey.
#
# /// exercise | Find the typo
# On a student's screen you see a kernel for 1000 numbers, with blocks of 256. The grader says *not written: 744 of 1000*, and nothing about bounds.
# Which line of the
# table is it? And what would it say if the tables were rounded down?
# /// answer
# It is *seat alone*: every block handles numbers 0 to 255, so 1000 − 256 = 744 are left out, and nobody is outside. Rounded down, there are three
# blocks: 768 numbers are written, and the grader says *not written: 232 of 1000*.
# ///

# %% [markdown]
# ## You can now teach
#
# - grid, block, warp and thread, with people before code;
# - the index in one dimension and in two, and five wrong ones by what they do;
# - two kernels, stage by stage, with each of the grader's complaints foretold;
# - the fork, with a bet on both bars;
# - what an order costs, with a pencil.
#
# **Where this leads.** The students' page: [the CUDA model](../../docs/lectures/l2_the_cuda_model.py). The chapter before this one is [teaching L1](l1_what_a_gpu_is.py); the next is [teaching memory](l3_memory.py).
