# ---
# id: teach_w1
# title: "Teaching W1: FlashAttention"
# nav: W1 · FlashAttention
# description: How to lead a room through online softmax by hand, a flash kernel that everybody types, and the trips it saves.
# ---

# %% [markdown]
# # Teaching W1: FlashAttention
#
# After this page you can lead a room of twenty people from a red circle on the board to a kernel of their own.
# You will know what to write first, what the wrong slips of paper look like and which mistake leads to each, and what
# to say when their kernel loses a race.
#
# You need three things, and no more: this page, [the map of the three hours](../04_the_pivot/w1_map.md), and
# [the lab](../../docs/workshops/w1_flash_attention.py#the-same-loop-in-cuda) on the students' page. Type the lab yourself once, the evening before.
# If you have no GPU, type the lab in NumPy; your students can do the same.

# %% [markdown]
# ## What it is really about
#
# Attention computes a huge square of scores that nobody asked for, and the plain recipe carries it to the pantry and back,
# twice. This workshop never carries it at all. Everything else in the three hours serves that one sentence: the notes on the
# sleeve make it *possible*, the loop makes it *real*, the counters make it *believable*.
#
# /// callout | metaphor
# Two students do the same long sum. One writes every line of scratch-work into a thick notebook, then reads the whole
# notebook from the beginning to get the total. The other keeps a running total in her head, one line at a time, and
# never opens a notebook. They do the same sums.
# One of them ran out of paper.
#
# The notebook is the N × N square, and its paper is HBM. The head is what the chip holds: registers, and the tray.
# ///
#
# /// figure | docs/assets/figures/notebook.svg
# alt: >-
#   Two students. One writes a giant notebook of N by N scores and then reads it all back to finish: the paper is slow memory, far away.
#   The other keeps three numbers in the head, the largest so far, the sum so far and the answer so far, while the chunks pass by one at
#   a time: the head is fast memory on the chip. Both arrive at the same answer.
# ///
#
# On the students' page the same thing happens in the kitchen, with crates and a sleeve. Use the notebook to say *what* is saved, and
# the crates to show *how*. Do not mix them in one breath.

# %% [markdown]
# ## By hand: four scores in two crates
#
# This is the heart of the session. For twenty-five minutes everybody writes, and you write with them. The scores are 1 and 3, then 2 and 5; the
# values are 10,
# 20, 30, 40.
#
# They need three powers of e, and a pocket calculator or a phone for the products. Write in a corner: e⁻² = 0.1353, e⁻³ = 0.0498,
# e⁻⁴ = 0.0183. If they use fewer digits, the last digit of their result will differ.
#
# The order matters more than the words. Write exactly this, in this order:
#
# 1. Three empty boxes, one below the other: **m**, **l**, **a**. Say their names: *largest so far, sum so far, plate so far*.
# 2. Write crate one, and *only* crate one: 1 3. Cover 2 5 with your hand or a sheet of paper. They must not see it yet.
# 3. Write m = 3. Then write l, term by term: e¹⁻³ + e³⁻³. Then the plate: the same two terms, times 10 and 20.
# 4. Uncover crate two. **Stop.** Ask: *what is wrong with the boxes now?* Wait until somebody says that the largest is now 5.
# 5. Write in red × e³⁻⁵, with one arrow to l and one arrow to a. **Two arrows**, drawn at the same moment.
# 6. Only now come the new terms: e²⁻⁵ and e⁵⁻⁵ are added to l, and the same two, times 30 and 40, to a.
# 7. Divide once, at the bottom: a / l.
# 8. Do all four at once, on the right half of the board. Put the two results side by side, and say nothing for three seconds.
#
# Here is the board, line by line, as you write it.

# %%
from math import exp

from course_kernels.measure import quantity, record


def online(crates):
    """(repair, m, l, a) after each crate of (scores, values)."""
    m, l, a, lines = float("-inf"), 0.0, 0.0, []
    for scores, values in crates:
        m_new = max(m, *scores)
        repair = exp(m - m_new)  # for the first crate exp(-inf), which is 0
        l = l * repair + sum(exp(s - m_new) for s in scores)
        a = a * repair + sum(
            exp(s - m_new) * v for s, v in zip(scores, values, strict=True)
        )
        m = m_new
        lines.append((repair, m, l, a))
    return lines


BOARD = [((1, 3), (10, 20)), ((2, 5), (30, 40))]
for crate, (repair, m, l, a) in enumerate(online(BOARD), 1):
    print(f"crate {crate}: repair {repair:.4f}  m {m:.0f}  l {l:.4f}  a {a:.4f}")
repair, m, l, a = online(BOARD)[-1]
print(f"served: {a:.3f} / {l:.4f} = {a / l:.3f}")

record(
    repair=quantity(repair),
    l=quantity(l),
    a=quantity(a),
    served=quantity(a / l),
)

# %% [markdown]
# /// predict | A student repairs the sum and forgets the plate. Does she serve too little or too much?
# The right plate is {{ served:.2f }}. Say a number before you look: below 10, between 10 and 40, above 40?
#
# - [x] Too much: above 40
# - [ ] About right: between 10 and 40
# - [ ] Too little: below 10
# /// reveal
# She serves {{ slip.plate_forgotten:.2f }}, more than the most expensive ingredient. One glance at that number finds the mistake.
# ///
#
# ### Read their mistakes off their paper
#
# Every common mistake ends in its own number. Learn to recognise these numbers at sight.

# %%
from math import e

TERMS_1 = (exp(1 - 3), exp(3 - 3))  # crate one, against 3
TERMS_2 = (exp(2 - 5), exp(5 - 5))  # crate two, against 5
OLD_RULER = (exp(2 - 3), exp(5 - 3))  # crate two, still against 3
l1, a1 = sum(TERMS_1), TERMS_1[0] * 10 + TERMS_1[1] * 20
l2, a2 = sum(TERMS_2), TERMS_2[0] * 30 + TERMS_2[1] * 40
down, up = e**-2, e**2

slips = {
    "no_repair": (a1 + a2) / (l1 + l2),
    "plate_forgotten": (a1 + a2) / (l1 * down + l2),
    "sum_forgotten": (a1 * down + a2) / (l1 + l2),
    "upside_down": (a1 * up + a2) / (l1 * up + l2),
    "divided_early": (a1 / l1 + a2 / l2) / 2,
    "old_ruler": (a1 + OLD_RULER[0] * 30 + OLD_RULER[1] * 40)
    / (l1 + sum(OLD_RULER)),
}
for mistake, found in slips.items():
    print(f"{mistake:16s} {found:8.3f}")

record(slip={mistake: quantity(found) for mistake, found in slips.items()})

# %% [markdown]
# | on the slip | what happened | the line that helps |
# |---:|---|---|
# | **{{ served:.2f }}** | nothing | "And how do you know, without the right-hand side?" |
# | {{ slip.no_repair:.2f }} | no repair at all | "Two rulers in one sum. In which of them is this term?" |
# | {{ slip.plate_forgotten:.2f }} | sum repaired, plate not | "Can a mixture of 10 to 40 be more than 40?" |
# | {{ slip.sum_forgotten:.2f }} | plate repaired, sum not | "Two arrows. Where is the second?" |
# | {{ slip.upside_down:.2f }} | e⁵⁻³ in place of e³⁻⁵ | "Measured against a larger score, do the old terms look larger or smaller?" |
# | {{ slip.divided_early:.2f }} | divided after every crate, then averaged | "Was each crate worth the same?" |
# | {{ slip.old_ruler:.2f }} | right, but the ruler stayed at 3 | see below |
#
# Look at the third line. {{ slip.plate_forgotten:.1f }} is *outside* 10 … 40, and a weighted mean cannot be. Teach them to glance at the range: that
# test does not need the right answer. The lab's own tests include a kernel with exactly this mistake, and the grader refuses it.
#
# /// callout | trip
# The last line is your best student. She never moved the ruler, never repaired, and has the right answer. On paper she is right.
# Ask her to try 2 and **100** in the second crate. e⁹⁷ does not fit into an fp32 number, and inf / inf is not a number. You subtract the largest so
# that nothing overflows. The repair is the price of subtracting
# a maximum that you did not yet know.
# ///
#
# Here are sets of scores for a second round, or for a class that has seen the first. In each set the last crate moves the ruler, or
# deliberately does not.

# %%
from math import inf

SETS = {
    "the ruler stays": [((2, 5), (30, 40)), ((1, 3), (10, 20))],
    "it moves twice": [((0, 1), (1, 2)), ((3, 2), (3, 4)), ((5, 5), (5, 6))],
    "all alike": [((4, 4), (10, 20)), ((4, 4), (30, 40))],
}
for name, crates in SETS.items():
    lines = online(crates)
    repairs = " ".join(f"{repair:.4f}" for repair, *_ in lines[1:])
    _, m, l, a = lines[-1]
    print(
        f"{name:16s} repairs {repairs:14s} m {m:.0f}  l {l:.3f}  served {a / l:.3f}"
    )


def as_fp32(x):
    """e to the x as fp32 has it, which ends a little past e to the 88."""
    return exp(x) if x < 88.7 else inf


print("e to the 97, in fp32:", as_fp32(100 - 3))

# How often does the ruler move? Tile k holds the largest so far with chance 1/k.
TILES = 4096 // 16
moves = sum(1 / k for k in range(2, TILES + 1))
print(f"{TILES} tiles in a random order: the ruler moves {moves:.1f} times")
record(often={"tiles": quantity(TILES), "moves": quantity(moves)})

# %% [markdown]
# The last line answers a question that comes up every time: *isn't all that repairing expensive?* In a row of 4096 scores, in
# tiles of 16 as in the kernel they type, there are {{ often.tiles:.0f }} tiles. If scores come in no particular order, the ruler
# moves about
# {{ often.moves:.0f }} times. All other repairs multiply by 1. The kernel does them anyway, since checking would cost as much.

# %% [markdown]
# ## The live build
#
# Everyone types; you type with them, on the projector, two lines ahead of the slowest. The lab comes in two languages, and a room
# may use both: NumPy on any laptop, CUDA C++ where there is a GPU. The loop is the same, line for line. Seat the two groups side
# by side: when one is stuck, the other explains.
#
# - Say a line, *then* type it. Never type one line while you explain another.
# - After each stage they grade: `nox -s grade -- flash_attention`. A refusal is part of the plan. Read it aloud, smiling.
# - Causal comes last, and it takes two changes: tiles wholly above the diagonal are **skipped**, tiles on the diagonal
#   are **masked**.
#   If you only skip, rows also count keys after their own: every row is wrong except the last one of each tile of queries. Let the
#   grader say so.
# - When somebody is hopelessly behind, `nox -s lab -- flash_attention --stage K` writes the file as it is after stage K, and
#   keeps theirs; with `--door cuda` it writes the one in CUDA C++. Nobody sits out.
# - Two mistakes look odd. `exp(m_new - m)`, upside down, gives all NaN (e to the ∞) from the first size on, although that size
#   was right two stages ago. And in NumPy `max(axis=0)` may pass as *right*. Any ruler cancels, even the largest of the wrong
#   row, until something overflows, and NumPy keeps these notes in fp64, where much larger numbers fit. So check that
#   line in every file yourself.
#
# /// callout | teaching
# What are their fingers doing right now? In this session there is an answer for every minute, in the map's column *fingers*. If
# you catch yourself explaining for longer than the step lasts, stop in mid-sentence. They will ask for the rest.
# ///

# %% [markdown]
# ## Where it runs
#
# /// callout | production
# Descendants of this loop serve nearly every chat that you have had this year. PyTorch's `scaled_dot_product_attention` picks between
# several of them, or cuDNN's own; FlashAttention-3 is in its authors' repository, and so is a fourth version, written in a Python
# dialect of CUTLASS [^dao-repo]. Do say *descendants*: on Hopper and Blackwell the serving engines mostly run newer kernels than
# this one.
#
# FlashAttention-2 is about *who sits where*: it reaches 50–73 % of an A100's peak, about twice its parent's speed [^dao2023]. FlashAttention-3 is
# about *who waits for whom*: it reaches up to 740 TFLOP/s, or 75 % of an H100's peak [^shah2024].
# ///

# %% [markdown]
# ## The number that they forecast
#
# This number is a *count*, and they forecast it. Let them write down 1 + N/d before you show anything.
#
# /// callout | click
# One head with 4096 tokens has {{ w1.enemy.scores / 1e6:.1f }} million scores, {{ w1.enemy.square_bytes / 1e6:.0f }} MB of them in fp32. By hand the
# traffic should fall by 1 + N/d = {{ w1.by_hand.materialised / w1.by_hand.flash:.0f }}. The card's own counters say
# **{{ w1.counted.materialised.gb / w1.counted.flash.gb:.1f }}**: {{ w1.counted.materialised.gb:.1f }} GB became {{ w1.counted.flash.gb:.2f }}.
# A pencil and a counter agree. Let that sink in.
# ///
#
# Say three things with care, because each is often said wrong.
#
# - {{ w1.enemy.scores / 1e6:.1f }} million *scores*. The 67 that you may have read is *megabytes*.
# - **Storage** falls from N² to N. **Traffic** does not fall by N, because every kernel must carry Q, K, V and O. In the paper's count, 40.3 GB became 4.4 GB, a factor of 9.2, forward and backward, for N = 1024 and d = 64 [^dao2022].
# - The **time** falls by less than the traffic does. Here it falls by a factor of {{ w1.materialised.n4096.ms / w1.flash.n4096.ms:.1f}}, at N =
#   4096 in bf16. Once the carrying is gone, only the cooking is left.
#
# ### And then their kernel loses
#
# You must know this before you face your students. Their kernel multiplies in plain fp32, one number at a time from the
# tray. The plain recipe
# uses the library's multiply. In fp32 the arithmetic decides, and the square does not hurt.
#
# /// claim | w1.fp32.teaching.n4096.us > 2 * w1.fp32.materialised.n4096.us
# At N = 4096 their kernel takes {{ w1.fp32.teaching.n4096.ms:.1f }} ms, the plain recipe {{ w1.fp32.materialised.n4096.ms:.1f }} ms. Say it first, and say it proudly: *you carry {{ w1.by_hand.materialised / w1.by_hand.flash:.0f }} times less and you are slower.
# So carrying was not your problem. Find out what is.* That is the question of the whole course, and now they ask it themselves.
# /// otherwise
# At N = 4096 their kernel takes {{ w1.fp32.teaching.n4096.ms:.1f }} ms, the plain recipe {{ w1.fp32.materialised.n4096.ms:.1f }} ms. Read out your own.
# ///
#
# Then comes the second demo: the *same loop* on tensor cores, in bf16. There the multiplies are fast, and bandwidth is all that counts.
#
# /// claim | w1.flash.n4096.us < 0.4 * w1.materialised.n4096.us
# The plain recipe takes {{ w1.materialised.n4096.ms:.2f }} ms, the loop {{ w1.flash.n4096.ms:.2f }} ms. That is when jaws drop, and it comes second on
# purpose: after a loss they believe a win.
# /// otherwise
# The plain recipe takes {{ w1.materialised.n4096.ms:.2f }} ms, the loop {{ w1.flash.n4096.ms:.2f }} ms.
# ///
#
# What percent of peak? It is {{ w1.flash.n16384.of_peak:.0%}} for the loop in Triton, at N = 16384; {{ w1.cudnn.n16384.of_peak:.0%}} for cuDNN; and {{ w1.specialised.n16384.of_peak:.0%}} for our kernel with specialists.
#
# ### What may change on a different card
#
# Before they ask, know which of your statements are about attention and which are about this card. The ones about attention hold
# anywhere: the four numbers and their wrong slips, room from N² to N, 1 + N/d by hand, and the order in which the grader complains.
# These are about the card:
#
# | you say | it depends on | it may be reversed when |
# |---|---|---|
# | you lose in fp32 | the fp32 ridge, peak ÷ bandwidth: near 14 on an H200, to the left of the square's 32 | the ridge is above 32: then the plain recipe waits for bytes, and you may win |
# | the loop wins in bf16 | the bf16 ridge: near 206, to the right of what the plain recipe does | the tensor cores are slow for the card's bandwidth: the win shrinks with the ridge, until little is left |
# | the counter agrees with the pencil | a square larger than L2 | short sequences or a large L2: part of the square never reaches HBM |
# | the tensor cores rest while EXP runs | how fast Hopper's tensor cores are against its exponentials | the tensor cores are slower: EXP is a smaller part of the turn |
# | the order of the engines in the last table of the page | library version and capability 9.0 | on another card PyTorch takes a different engine, and our specialists refuse to run |
#
# So, before the session, divide the peaks of your own card by its bandwidth. [What other GPUs will show](other_gpus.py#four-quotients-decide) does it
# for any card. If the first line is reversed, change what you say: *you carry less, and here that is enough*.
#
# /// callout | demo
# There are two commands, both on the map with their waiting times: *theirs against PyTorch* in fp32, *the same loop on tensor cores* in
# bf16. Take the guesses first, then press Enter. If there is no GPU in the room, show [the recorded race](../../docs/workshops/w1_flash_attention.py#and-the-clock),
# and say whose numbers they are.
# ///

# %% [markdown]
# ## What they will believe
#
# /// callout | trip
# **"It is faster because it computes less."** It computes as much, and even a little more. *Flash doesn't compute less; it remembers
# less.* Tie it to the cafeteria of the memory lecture: the problem was never the cooking, it was feeding the cooks.
# ///
#
# - *"Attention is three multiplies."* There are two, with a softmax between them. The layer around them has four more.
# - *"Causal: I just skip the tiles."* Skip, **and** mask on the diagonal.
# - *The last tile.* N = 10 with tiles of 4 leaves two rows. In NumPy a slice stops by itself; in CUDA nothing does.
# - *The barrier at the end of the loop.* The barrier looks superfluous. Without it a fast warp refills the tray while a slow one still eats from it.
# - *−∞ minus −∞.* A row that has seen nothing yet has m = −∞. So the kernel uses `NEVER`, a large finite number.
# - *"Out of memory means too little bandwidth."* Room and trips are two separate bills.

# %% [markdown]
# ## Two speeches
#
# /// callout | say
# "This square is the largest thing in the room, and nobody ordered it. We write it down, we carry it to the pantry, we carry it
# back, we change it, we carry it there again, and back again. And in the end we throw it away. Today you will cook the same dish
# and never once walk down that hall with it."
# ///
#
# And at the end, as they leave:
#
# /// callout | say
# "Carry less. Seat everybody. Never wait. Three papers, in that order. You typed the first, and you can read the other two."
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../04_the_pivot/w1_map.md) has every step: what to say, what to draw, what their fingers do and what to cut. Run it
# from your phone; print it as well, since phones go to sleep.
#
# If you are late at the break, do not shorten causal (by then the softmax by hand is behind you): give them the last stage's file and
# explain it. If you are late at minute 130, drop the roofline: it is on [the page](../../docs/workshops/w1_flash_attention.py#two-roofs).
#
# /// exercise | Rehearse
# Cover the table of slips. A student shows you 52.2. What did she forget, and which question do you ask? Another student has 36.88 and never wrote a
# repair. What do you ask *him*?
# /// answer
# The first repaired the sum but not the plate: "can a mixture of 10 to 40 be more than 40?" The second kept the old ruler. Ask
# him to try 2 and 100 in the second crate, in fp32.
# ///

# %% [markdown]
# ## You can now teach
#
# - the square, by its size in scores, in bytes and in trips, without mixing them up;
# - online softmax with four numbers, in eight lines of chalk, and the six other slips;
# - the loop, in NumPy or in CUDA C++, stage by stage, causal last and in two places;
# - a loss and a win, in that order, with a forecast before each;
# - FlashAttention-2 and -3 on a napkin: who sits where, who waits for whom.
#
# **Where this leads.** The students' page: [FlashAttention from scratch](../../docs/workshops/w1_flash_attention.py). Next comes the kitchen with
# specialists: [teaching W2](w2_hopper.py).
