# ---
# id: craft_labs
# title: Running a lab with twenty people and few GPUs
# nav: Running a lab
# order: 150
# description: Two doors, pairs, one queue and one rule; what the grader does, how long the line can get, and what to do when an install fails.
# ---

# %% [markdown]
# # Running a lab with twenty people and few GPUs
#
# After this page you can run any lab of the course in a room of twenty people with one card, or with none. Nobody waits
# with idle hands, nobody sits out because of an install, and every time that is written on the board means something.
#
# Keep [Set up](../../docs/set_up.md) beside you; it has the commands. This page says what to *do* with them.
#
# **One rule carries the rest: many may write, one may measure.** Two programs on one card still give right answers. But
# the times of both programs are worthless, and no message says so.

# %% [markdown]
# ## Two doors
#
# Nearly every lab can be done in more than one way; the commands call each way a *door*. `nox -s lab` lists them.
#
# | door | it needs | it gives |
# |---|---|---|
# | *python* | Python | right or wrong |
# | *numpy* | NumPy, any laptop | right or wrong; the loops are those of the kernel |
# | *triton* | Linux; without a GPU the interpreter runs all blocks, one after the other | right or wrong; on a GPU also time and percent of peak |
# | *cuda* | a compiler, which `pip` installs; it *runs* only on a GPU | what the compiler says; on a GPU everything else |
#
# Choose one door for the *room*, not one for each person, and a second for the people whom it does not suit. Two doors side by
# side are a strength: the loop is the same in both, line for line, and a pair that is stuck can look across. With three doors you have a mess.
#
# /// callout | metaphor
# Think of a cookery class with one oven. Everybody kneads at their own table, all evening, and kneading is most of the work. The oven is
# booked in slots. Nobody queues in front of it with raw flour.
# ///

# %% [markdown]
# ## What the two commands do
#
# `nox -s lab` lists the labs in the order of the sessions. `nox -s lab -- NAME` writes a starter into `my_labs/`, a folder that
# git leaves alone. With `--stage 2` it writes the file as it is after stage 2, and keeps what was there under a different name.
# Nothing that a student has typed is ever lost. **It needs no install.**
#
# `nox -s grade -- NAME` checks the file. The first time it makes its own environment and installs torch and Triton, which
# takes as long as your network does. For the *numpy* door it installs only NumPy, and for *python* nothing: with a poor network,
# choose one of these for the room.
#
# Then, in a separate process and with a time limit, it runs the student's code from the smallest size up, with fresh random
# numbers, against a truth in float64. The grader looks at the worst element, watches for borrowed kernels, and stops at
# the first thing that is wrong. Only a right
# answer is timed, and only on a GPU.
#
# | it says | exit code | your answer |
# |---|---:|---|
# | *right: correct on every size tried* | 0 | "Which number would you change to make it wrong?" |
# | *refused on … : …* | 1 | "Read me the line. And the one after *next*." |
# | a mistake in the command | 2 | "What does it say is missing?" |
# | *not judged: needs a card: line …* | 2 | "Which line asks for a card? Do what comes after *next*." |
# | *compiled …, not run* | 3 | "Good. Come to the card with it." |
#
# After the verdict, the grader prints a line that begins with *alone* and says what is next: every lab ends with a task whose code is on no
# page, in the same file. A lab counts as right without it, until somebody begins it; then it is graded like any other
# task. Give this task to the pairs that finish first, and give no hint.
#
# The grader is a tutor, not a jail. It notices the tempting shortcuts, and a file has a process of its own with limits. It is
# made for people whom you know.
#
# Beside the starter lies `AGENTS.md`, with rules for AI helpers: ask, give a hint, never write the kernel. Most helpers
# that work in a folder read such a file by themselves. It keeps honest people honest, and no more.

# %% [markdown]
# ## A class that hands in
#
# When a course gives marks, thirty people hand in six labs each, through whatever system your house uses. Download it all
# into one folder, and grade it with one command:
#
# ```bash
# nox -s grade -- --all hand_ins --roster roster.csv
# ```
#
# **What goes in.** `roster.csv` has a line for each student, with columns `student` (any short id) and `name`. In `hand_ins`
# there is a folder or a zip for each student, or single files such as `ada_771_transpose.py`, each named after the id or the name. The files
# inside keep the names that `nox -s lab` gave them; where they lie does not matter. If students add the file that the
# home page saves for them, you also see how many predictions they called.
#
# **What comes out**, in `my_class/`, a folder that git leaves alone: `grades.csv` has a line for each student and a column for each
# stage, then the last task, the mark, days late, and on a card the time. `pages/` has a page for each student with the grader's own
# words, to send or to print. A stage is a point, and so is the last task. Where only a card can tell two stages apart, a right file graded without one
# gets both. Nothing leaves your machine, and no name reaches the site.
#
# **What nobody can do to the others.** Every file runs in a process of its own, within the judge's limits for time, memory and disk. A
# file that hangs is ended, a file that fills the disk runs out of room in its own folder, and a file that prints *right* has printed a word.
# Whoever runs out of time while others run beside it is asked once more at the end, alone. A file can still read what lies
# on the machine, so look at a file that opens files.
#
# **A second time.** Run the same command again, and it grades only what changed: a new file, or a grader or a judge that was mended
# since. It lists every mark that moved, with the reason, here and in `moved.csv`.
#
# **Late days.** Give `--due due.toml`:
#
# ```toml
# late_days = 5      # for each student, over the whole course
# lost_a_day = 0.2   # the share of a mark that each further day takes
# [due]
# first_kernel = 2027-01-11T23:59:00+01:00
# transpose = 2027-01-18T23:59:00+01:00
# ```
#
# Nobody has to say which day goes where: the days are used where they save that student most. A file's own date counts, unless
# the folder holds `handed_in.csv` with `student`, `lab` and `at`.
#
# **By hand.** You have the last word. Write it into `my_class/overrides.toml`; the reason is required. It
# stays through every new grading, and both reason and mark stand on the student's page:
#
# ```toml
# [[override]]
# student = "ada"
# lab = "transpose"
# mark = 5
# reason = "explained every line at the board; the file was a day old"
# ```
#
# **On GitHub.** `nox -s classroom -- --labs first_kernel,transpose --org YOUR-ORG` writes what [Classroom 50][c50] takes: for
# each lab a template repository with starter, words and the rules for AI helpers, and an autograder that reports a point for each stage. Its
# `README.md` has the commands. Without a card a hand-in is right or wrong; with `--gpu`, and a runner of your own that has a
# card, it is timed too. We ran the autograder as Classroom 50's runner does, and checked the result against its published schema; on GitHub
# itself we have not tried it.
#
# [c50]: https://github.com/foundation50/classroom50
#
# /// callout | trip
# **Publishing the table.** `grades.csv` has names and marks in it. Send each student their own page, never the table.
# ///

# %% [markdown]
# ## By hand: how long is the line?
#
# Nobody can tell you how fast your students' kernels will be. But you know the *limits*, so you can work out the worst case. There are three limits:
# how long a file may be graded; how long a command may hold the shared card ([setup
# three](../../docs/set_up.md#setup-three-one-card-for-twenty-people));
# and how long somebody waits before giving up.
#
# /// predict | Twenty people press Enter at the same moment, and every command uses all of the time it may have. How many ever get the card?
# - [ ] All twenty
# - [ ] About ten
# - [x] Six or seven
# /// reveal
# {{ twenty.served:.0f}}. Everybody else gives up after {{ patience:.0f}} minutes. The limits of the set-up page are made for a long afternoon, not
# for a lab hour.
# ///

# %%
from pathlib import Path

import course_labs.lab
from course_kernels.measure import quantity, record

ROOT = Path(course_labs.lab.__file__).resolve().parents[2]
LABS = course_labs.lab.find_labs(ROOT)
GRADED = max(lab.seconds for lab in LABS.values())  # for one file, as the labs say
HELD, PATIENCE = 300, 1800  # seconds: `timeout`, `flock --timeout` of setup three


def line(people, seconds, patience=PATIENCE):
    """Who gets the card when all come at once, and when the last of them is done."""
    served = sum(place * seconds <= patience for place in range(people))
    return {
        "served": served,
        "gave_up": people - served,
        "minutes": served * seconds / 60,
    }


CASES = {
    "twenty": (20, HELD),
    "twenty_short": (20, 90),
    "pairs": (10, HELD),
    "pairs_short": (10, 90),
    "pairs_limit": (10, GRADED),
}
for case, sizes in CASES.items():
    print(case, sizes, line(*sizes))
record(
    graded=quantity(GRADED, "s"),
    patience=quantity(PATIENCE / 60),
    **{
        case: {name: quantity(number) for name, number in line(*sizes).items()}
        for case, sizes in CASES.items()
    },
)

# %% [markdown]
# | all at once, every command as long as it may be | served | gave up | the card is busy for, min |
# |---|---:|---:|---:|
# | twenty people, five minutes each | {{ twenty.served:.0f}} | {{ twenty.gave_up:.0f}} | {{ twenty.minutes:.0f}} |
# | twenty people, a minute and a half each | {{ twenty_short.served:.0f}} | {{ twenty_short.gave_up:.0f}} | {{ twenty_short.minutes:.0f}} |
# | ten pairs, five minutes each | {{ pairs.served:.0f}} | {{ pairs.gave_up:.0f}} | {{ pairs.minutes:.0f}} |
# | ten pairs, a minute and a half each | {{ pairs_short.served:.0f}} | {{ pairs_short.gave_up:.0f}} | {{ pairs_short.minutes:.0f}} |
# | ten pairs, the grader's own limit of {{ graded:.0f}} s | {{ pairs_limit.served:.0f}} | {{ pairs_limit.gave_up:.0f}} | {{ pairs_limit.minutes:.0f}} |
#
# Make two changes. **Pairs** halve the line: ten files instead of twenty. **A shorter leash** gets everybody to the card: for the
# lab hour write `90` instead of `300` in the command `card` of setup three. The grader ends a file after {{ graded:.0f}} s by
# itself; the rest of the 300 s is for starting Python and loading torch.
#
# These are worst cases from limits, not a forecast. You get your own number the evening before, and that is the one to plan with:
#
# ```bash
# nox -s lab -- first_kernel --stage 4
# time card .venv/bin/nox -s grade -- first_kernel
# ```
#
# Run the command twice and keep the second time. The first run installs.

# %% [markdown]
# ## The evening before
#
# 1. **Install where they will sit**, if the machine is yours: run `nox -s grade -- first_kernel` once for each account. No network in the room? `nox -s wheelhouse` collects
#    everything on a machine that has one.
# 2. **Make the lock**, one file for each card, and the command `card` in everybody's shell, with 90 for a lab hour.
# 3. **Type the lab**, all of it, through the room's door. Note where *you* slipped.
# 4. **Time one grading**, as above, and write the number on your map.
# 5. **Print** the list of pairs with their slots, and one sheet with the four answers of the grader.
# 6. **Look at the card** with `nvidia-smi`: who is using it, and how warm is it?

# %% [markdown]
# ## The hour itself
#
# **Pairs.** One types; the other reads aloud what comes next and holds the pencil. Swap after each stage, when you say so. Mix the doors within a pair if you
# can: a laptop with NumPy and a place at the machine with the card.
#
# **First right, then fast.** Until the grader says *right*, nobody needs the card. Everyone grades without it:
#
# ```bash
# CUDA_VISIBLE_DEVICES=-1 .venv/bin/nox -s grade -- reduction
# ```
#
# **Then slots.** When the first pair is right, start the list: two minutes for each pair, in order, called by you. They come with a *forecast* on paper, run one command,
# read one number, write it on the board beside the forecast, and go. With ten pairs that is twenty minutes, and every time on the board was measured alone.
#
# **Stages are the safety net.** When a third of the room has stage 2 and the others are stuck, do not explain more slowly.
# Announce it: *everybody takes stage 2 now*. Those who want their own file find it beside the new one.
#
# /// callout | teaching
# Walk the room in one direction and ask every pair the same question: *what does it print now?* Not *how is it going*.
# The first question gets an answer, the second gets *fine*.
# ///
#
# **No card at all?** Then somebody else's card was timed, and you say so. They forecast with a pencil, and the reveal is the number on the page, with the name of the card at its top. This is a real lab: only one line of it needs a stopwatch.

# %% [markdown]
# ## When an install fails
#
# An install will fail for one or two people of twenty. The rule is **ten minutes**. After that the person joins a pair,
# and the install becomes homework with your help, after
# the session. A room cannot wait for a download.
#
# | what you see | what to try, once |
# |---|---|
# | Python older than 3.11 | a newer Python on the machine (`python3.12 -m venv .venv`); otherwise: pair up |
# | Triton does not install (a Mac, Windows without WSL), so `nox -s grade` cannot make its environment | the door *numpy* or *python*, graded by hand, as below |
# | torch is downloading, for twenty people at once | one download and `nox -s wheelhouse`, passed around on a USB stick |
# | *The NVIDIA driver on your system is too old* | nothing, today. CPU: `CUDA_VISIBLE_DEVICES=-1` |
# | *out of memory*, and the card is shared | `nvidia-smi`: a notebook that somebody left open |
# | a firewall that breaks `pip` | a phone as hotspot, or the stick |
#
# The doors *numpy* and *python* need no Triton; only the environment of the grader does. So on such a machine:
#
# ```bash
# .venv/bin/pip install numpy torch
# PYTHONPATH=src .venv/bin/python -m course_labs grade register_tile --door numpy
# ```
#
# We tried that on Linux without Triton and CUDA, not on a Mac. Try this on a Mac the evening before, if you
# know that students will bring Macs.
#
# All the messages, each with its remedy: [when it says …](../../docs/set_up.md#when-it-says).
#
# /// callout | trip
# **The helpful neighbour** who repairs somebody's laptop for forty minutes and types nothing. Thank him, give him the stick, and
# send both back to one keyboard.
# ///

# %% [markdown]
# ## Where mentors trip
#
# - *Two gradings at once "just to check".* Throw both times away. Say so before it happens.
# - *A notebook that holds the card's memory* all through lunch. Run `nvidia-smi` before and after.
# - *Ctrl-C gives the prompt back, and the kernel runs on.* `timeout` ends it; [Set up](../../docs/set_up.md#setup-three-one-card-for-twenty-people)
#   has the command that ends it sooner.
# - *Reading out the fastest time first.* Read the forecasts first. Otherwise they learn to wait for somebody else's number.
# - *Typing for somebody.* Keep your hands behind your back. Point at the line.
#
# /// callout | say
# "You do not need the card to get the right answer. You need it to be fast. So first be right, at your own table. Then come and be fast, for
# two minutes, with a number on paper that you believe in."
# ///
#
# /// exercise | Your own room
# Sixteen people, one card, a lab hour of 50 minutes, of which the last 20 are for the card. You measured 40 s for a grading, from
# start to end. Pairs or not? How long a leash do you set, and how many runs does each get?
# /// answer
# If each works alone, 16 × 40 s is nearly eleven minutes for one run each, so 20 minutes allow one run, and with luck a second. In pairs there are
# eight files, a bit over five minutes for a round, so three runs each: forecast, change one thing, run again. Take pairs. A leash of 90 s is about
# twice what is needed, and a kernel that hangs costs no more than one slot.
# ///

# %% [markdown]
# ## You can now run
#
# - a room with one card: pairs, a lock, a leash, slots, forecasts before numbers;
# - a room with no card, without pretending;
# - a class that hands in, graded at once, with late days and your own last word;
# - the ten minutes after an install has failed.
#
# **Where this leads.** What a different card will show: [other GPUs](other_gpus.py). How your minutes help the next mentor:
# [handing in minutes](handing_in_minutes.md). The grader from the student's side: [your first kernel](../../docs/start_here.py#type-it-yourself).
