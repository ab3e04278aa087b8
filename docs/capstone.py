# ---
# id: capstone
# title: "The capstone: you versus the machine"
# nav: "Capstone · You versus the machine"
# section: Make the model fast
# order: 135
# description: One kernel, made twice, by your own hand and with a language model in the loop; its tasks with their floors, its dates and forms, how it is marked, and how to hand it in.
# ---

# %% [markdown]
# # The capstone: you versus the machine
#
# When you have worked through this page you can
#
# - choose a task, and say by how much it can be improved before you write a line;
# - fill in each form on its day, and let one command tell you what is missing;
# - write a worklog that gets every point, even one of a loss;
# - hand in a folder that anybody can run again.
#
# You need the road as far as [L5](lectures/l5_the_top_of_the_ladder.py), and no GPU.
#
# ## One kernel, twice
#
# You take one task and make a kernel for it twice: once by your own hand, once with a language model in the loop. Both are judged by the same
# judge. You keep one worklog of both, and in the third hour of [W6](workshops/w6_frontier.py#your-own) you speak about it for three minutes.
#
# Who wins is not the question. The question is the one that you know: *what percent of peak?* And one more: how do you know that it is right?
#
# /// predict | Two entries are marked. Which gets more points?
# One has a kernel that a search found and says *nothing lost*. The other is by hand, reads its input twice where once would do, and says how many bytes that
# costs, why it is so, and what would mend it.
#
# - [ ] The first: it wins
# - [x] The second
# - [ ] As many each: both are right
# /// reveal
# The first got {{ marks.bare_win:.0f}} points and the second {{ marks.explained_loss:.0f}}, of five. Both are examples in the course's folder, and you can read the
# marks with their reasons: `capstone/examples/*/marks.toml`. A loss that is explained scores as high as a win. A bare win scores less.
# ///

# %% tags=["fold"]
import tomllib
from pathlib import Path

from course_capstone.floors import kept
from course_kernels.measure import quantity, record, text
from course_kernels.measure.machine import machine_for
from course_kernels.measure.roofline import bound, floor_us

CARDS = {
    "h200": machine_for("NVIDIA H200"),
    "h100": machine_for("NVIDIA H100 80GB HBM3"),
}
PEAKS = {"memory": "bandwidth", "compute": "arithmetic"}
plan = tomllib.loads(
    Path("handbook/sessions/cohort.toml").read_text(encoding="utf-8")
)
marks = {
    path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in Path("capstone/examples").glob("*/marks.toml")
}
record(
    due={
        day["title"].split()[0].lower(): text(
            f"week {day['week']}, day {day['day']}"
        )
        for day in plan["capstone"]
    },
    marks={
        name: quantity(sum(mark["point"] for mark in lines.values()), how="counted")
        for name, lines in marks.items()
    },
    twice=quantity(
        2 / 3
    ),  # read and written once, of what moves if it is read twice
    least={
        name: {
            "bytes": quantity(one.reads_bytes + one.writes_bytes, "B"),
            "flops": quantity(one.flops),
            "binds": text(PEAKS[bound(one, CARDS["h200"])]),
            **{
                card: quantity(floor_us(one, sheet), "us")
                for card, sheet in CARDS.items()
            },
        }
        for name, one in kept().items()
    },
)

# %% [markdown]
# ## The dates
#
# *Day* counts from the Monday of a week. Your mentor's [calendar](../handbook/00_before_you_teach/the_calendar.md) has the dates.
#
# | when | what | it feeds |
# |---|---|---|
# | {{ due.begins }} | the capstone begins: you read this page | the announcement |
# | {{ due.announcement }} | *announcement*, three lines: who, which task, why this one | the plan has the same names |
# | {{ due.plan }} | *plan*, half a page: least bytes and operations, which peak binds, baseline, the percent of peak that you hope for | the checkpoint has the same percent |
# | {{ due.checkpoint }} | *checkpoint*: a right answer, a baseline, [the report of L7](lectures/l7_profiling.py#the-next-thing-to-try), and one idea that did not work | the worklog's last two lines |
# | {{ due.hand }} | you hand in the whole folder | the board |
# | {{ due.demo }} | you speak, for three minutes | the certificate |
#
# ## Choose a task
#
# The **floor** is the least time that the problem's bytes and operations leave by a card's data sheet. Nobody has measured it, and nobody gets below it.
#
# /// table
# columns: [task, "least MB", "10⁹ operations", "bound, H200", "floor, H200, µs", "floor, H100, µs"]
# rows:
#   - [vector_add, "{{ least.vector_add.bytes / 1e6:,.0f}}", "{{ least.vector_add.flops / 1e9:,.1f}}", "{{ least.vector_add.binds }}", "{{ least.vector_add.h200:,.1f}}", "{{ least.vector_add.h100:,.1f}}"]
#   - [transpose, "{{ least.transpose.bytes / 1e6:,.0f}}", "{{ least.transpose.flops / 1e9:,.1f}}", "{{ least.transpose.binds }}", "{{ least.transpose.h200:,.1f}}", "{{ least.transpose.h100:,.1f}}"]
#   - [reduction, "{{ least.reduction.bytes / 1e6:,.0f}}", "{{ least.reduction.flops / 1e9:,.1f}}", "{{ least.reduction.binds }}", "{{ least.reduction.h200:,.1f}}", "{{ least.reduction.h100:,.1f}}"]
#   - [softmax, "{{ least.softmax.bytes / 1e6:,.0f}}", "{{ least.softmax.flops / 1e9:,.1f}}", "{{ least.softmax.binds }}", "{{ least.softmax.h200:,.1f}}", "{{ least.softmax.h100:,.1f}}"]
#   - [sgemm, "{{ least.sgemm.bytes / 1e6:,.0f}}", "{{ least.sgemm.flops / 1e9:,.1f}}", "{{ least.sgemm.binds }}", "{{ least.sgemm.h200:,.1f}}", "{{ least.sgemm.h100:,.1f}}"]
#   - [gemm, "{{ least.gemm.bytes / 1e6:,.0f}}", "{{ least.gemm.flops / 1e9:,.1f}}", "{{ least.gemm.binds }}", "{{ least.gemm.h200:,.1f}}", "{{ least.gemm.h100:,.1f}}"]
#   - [bias_gelu, "{{ least.bias_gelu.bytes / 1e6:,.0f}}", "{{ least.bias_gelu.flops / 1e9:,.1f}}", "{{ least.bias_gelu.binds }}", "{{ least.bias_gelu.h200:,.1f}}", "{{ least.bias_gelu.h100:,.1f}}"]
#   - [add_norm, "{{ least.add_norm.bytes / 1e6:,.0f}}", "{{ least.add_norm.flops / 1e9:,.1f}}", "{{ least.add_norm.binds }}", "{{ least.add_norm.h200:,.1f}}", "{{ least.add_norm.h100:,.1f}}"]
#   - [rms_norm, "{{ least.rms_norm.bytes / 1e6:,.0f}}", "{{ least.rms_norm.flops / 1e9:,.1f}}", "{{ least.rms_norm.binds }}", "{{ least.rms_norm.h200:,.1f}}", "{{ least.rms_norm.h100:,.1f}}"]
#   - [swiglu, "{{ least.swiglu.bytes / 1e6:,.0f}}", "{{ least.swiglu.flops / 1e9:,.1f}}", "{{ least.swiglu.binds }}", "{{ least.swiglu.h200:,.1f}}", "{{ least.swiglu.h100:,.1f}}"]
#   - [attention, "{{ least.attention.bytes / 1e6:,.0f}}", "{{ least.attention.flops / 1e9:,.1f}}", "{{ least.attention.binds }}", "{{ least.attention.h200:,.1f}}", "{{ least.attention.h100:,.1f}}"]
#   - [decode_attention, "{{ least.decode_attention.bytes / 1e6:,.0f}}", "{{ least.decode_attention.flops / 1e9:,.1f}}", "{{ least.decode_attention.binds }}", "{{ least.decode_attention.h200:,.1f}}", "{{ least.decode_attention.h100:,.1f}}"]
#   - [qkv_rope, "{{ least.qkv_rope.bytes / 1e6:,.0f}}", "{{ least.qkv_rope.flops / 1e9:,.1f}}", "{{ least.qkv_rope.binds }}", "{{ least.qkv_rope.h200:,.1f}}", "{{ least.qkv_rope.h100:,.1f}}"]
# caption: "Worked out from problems and data sheets. The first six are single operators, the next four are operators that fuse, the last three are blocks of a model."
# ///
#
# The same list for any card, with the sizes; and then all that a task asks of you, word for word: formula, signature, sizes, tolerance.
#
# ```bash
# nox -s submit -- --tasks --card h200
# nox -s harness -- softmax --words
# ```
#
# ## What the machine does
#
# The words that the second command prints are what a model gets, so that you and it start from the same page. Show it what the judge says, and what the profiler
# says. Keep what it wrote, the wrong answers too: they are half of your worklog.
#
# **Without a model:** one has written for every task, and its files are in the course's folder as they were written. These commands judge them where you can see it;
# the files lie in `proposals/softmax/`.
#
# ```bash
# nox -s harness -- softmax --series bold
# nox -s harness -- softmax --series right_first
# ```
#
# ## From the announcement to the board
#
# `--new` makes your folder with a template for each form. Fill in a form where it has a `…`, and let its command check it, together with those before it.
#
# ```bash
# nox -s submit -- --new my_capstone/softmax
# nox -s submit -- --form announcement my_capstone/softmax
# nox -s submit -- --form plan my_capstone/softmax
# ```
#
# Now the kernel: `kernel.py` in that folder, with a function of the task's name. The judge says whether it is right. The profiler asks for your forecast first,
# and then writes the report that the checkpoint wants; its last lines, under *Next*, are for you and a neighbour.
#
# ```bash
# nox -s judge -- my_capstone/softmax/kernel.py --problem softmax
# nox -s profile -- my_capstone/softmax/kernel.py --problem softmax --report
# nox -s submit -- --form checkpoint my_capstone/softmax
# ```
#
# At the end come `entry.toml` and the worklog. `--run` judges and profiles once more and seals what came out in `run.json`. The last command is the one that counts: it says what
# is missing, a line each, or that your folder is complete. Then give the folder to your mentor.
#
# ```bash
# nox -s submit -- --form worklog my_capstone/softmax
# nox -s submit -- --run my_capstone/softmax
# nox -s submit -- my_capstone/softmax
# ```
#
# An entry is refused by name. *Edited time*, *edited*: a number is not the one that was sealed, or cannot be. *Other card*: `entry.toml` names another card than the one that it ran on.
# *Stale code*, *stale judge*: something has changed since. *Dirty tree*: the course's own files were changed while it ran. A seal notices an edit, and is no signature: what decides is
# that anybody can run your folder again.
#
# ### Without a GPU
#
# Everything above works. Triton's kernels run in [its interpreter](triton_for_numpy_people.py#the-interpreter), the judge asks whether they are right, and the bytes are
# counted from the problem. Nothing is timed, so the board has no order for you, and your certificate claims no percent. Write `card = "none"` in `entry.toml`. No point is lost by that: a
# count of bytes is an answer to *of what peak*.
#
# ## Five lines
#
# Your worklog has five headings, and each is a point. In W6 the room listens with the same five lines.
#
# 1. **Right?** On which sizes, against which truth?
# 2. **Of what peak**, and what percentage? Without a card: how many bytes must move, and how many do you move?
# 3. **Against whom?** Your first draft, the template or the library, and the floor.
# 4. **Who did what:** you, or the machine? Its mistake, and what showed it.
# 5. **What lost**, and why? What you tried in vain belongs here.
#
# ## The board and the certificate
#
# The board stands in three columns, human, machine and both; on a phone one entry is below the other. There is one for each card, and one for those who had none. Below each entry is the command that runs it again, and on the
# real board also its code, its launches and what the profiler said.
#
# /// figure | docs/assets/figures/capstone_board.svg
# alt: "A board of three entries without a card. softmax, human, an explained loss: right, not timed, marks 5 of 5; what lost: it reads every row twice, as with BLOCK = 4096 a row of 8192 numbers is not held. vector_add, both, beside a record: marks 5 of 5; pieces of 1000 numbers lost, and one program for all. vector_add, machine, a bare win: marks 2 of 5; what lost: nothing. Under each the command that runs it again."
# caption: The three examples, drawn from their files.
# ///
#
# The certificate has one number in large letters, and behind it a record: the percent of peak that was measured, or, as here, that it is *right* and nothing was measured.
#
# ```bash
# nox -s submit -- --certificate my_capstone/softmax
# ```
#
# /// figure | docs/assets/figures/capstone_certificate.svg
# alt: "A certificate. An explained loss answers for softmax, written by hand, on M16384-N8192-float32. In large letters: right. 1,073,741,824 bytes must move, counted from the problem. No card was here: nothing was measured, and no percent of peak is claimed. What lost: the kernel reads every row twice, with BLOCK = 4096 and rows of 8192 numbers. Two lines to sign."
# caption: "Your mentor makes the board with `nox -s submit -- --board FOLDER`, from a folder of such folders."
# ///
#
# ## Before you begin
#
# /// exercise | What can a second read cost? | 4 minutes
# The softmax above is of 16384 rows of 8192 numbers of 4 bytes. A kernel reads every row twice and writes it once. How many bytes does it move, and what percent of peak can it reach at most, if the
# peak is counted from the least bytes? Write both as they would stand in a plan.
# /// answer
# It moves 3 · 4 · 16384 · 8192 = 1,610,612,736 bytes, and 1,073,741,824 must move. So it reaches at most {{ twice:.1%}} of peak: the second divided by the first. Whoever hopes for more must read a row once.
# ///
#
# **Where this leads.** To [W6](workshops/w6_frontier.py#your-own), where you speak, and before it to [how we measure](how_we_measure.py), where you can read what the judge knows about kernels that cheat.
