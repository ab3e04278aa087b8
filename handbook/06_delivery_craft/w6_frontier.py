# ---
# id: teach_w6
# title: "Teaching W6: the frontier finale"
# nav: W6 · The frontier
# description: How to lead a room through one maker's stack, through machines that write kernels with the figures as they really are, and through the capstone talks.
# ---

# %% [markdown]
# # Teaching W6: the frontier finale
#
# After this page you can correct your own board of W4 with one word, and prove it; show how a draft is verified, with a formula and
# a run that agree; quote the most misquoted figures of the field as their sources give them; and give twenty proud and nervous
# people an hour in which each of them speaks.
#
# You need this page and [the map of the three hours](../05_the_frontier/w6_map.md). What the students read is
# [the page of the first hour](../../docs/workshops/w6_frontier.py): the same sums, and what a card makes of them. The artifact is a page in the
# capstone worklog, the **verdict page**: what the machine got right, and how you know.

# %% [markdown]
# ## What it is really about
# It is about judging. For four weeks your students learned to make things; today they learn that making has become cheap. In hour
# one they judge
# claims about a famous stack, two of them your own. In hour two they judge claims about machines. In hour three they judge each
# other, kindly, by five lines, none of which says *fast*.
#
# /// callout | metaphor
# For a month you taught somebody to cook. On the last evening you open a door, and there is a robot that cooks, too. It makes a
# hundred omelettes while you make one. Nobody would eat ninety of them, and now and then one of them is a marvel. Who tastes?
#
# Somebody who has burned enough of her own to know the smell.
# ///
#
# /// figure | docs/assets/figures/kernel_loop.svg
# alt: A loop. A proposer writes a kernel, a checker and a profiler judge it, and a human reads what they say and decides whether to go on.
# ///

# %% [markdown]
# ## By hand: a decode that waits for the cooks
#
# Multi-head attention keeps keys and values for every head. **MLA** keeps one latent list for each token, and makes keys and
# values from it when they are needed. Instead of 128 heads of 128 numbers, it keeps 512 numbers, and 64 more for the part of the
# key that carries the position [^deepseek2024v2].
#
# /// predict | How many times smaller does the cache of a token become?
# Two numbers on the board, then a division.
#
# - [ ] About 28 times
# - [x] About 57 times
# - [ ] About 64 times
# - [ ] About 128 times
# /// reveal
# **{{ mla.ratio:.1f}}**: {{ mla.mha:,.0f}} numbers become {{ mla.latent:.0f}}. If you forget the 64 of the position, you get 64, which is a coincidence and a trap.
# ///

# %%
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

HEADS, D, LATENT, POSITION = 128, 128, 512, 64
kept_by_mha = 2 * HEADS * D  # keys and values
kept_by_mla = LATENT + POSITION
print(f"{kept_by_mha} / {kept_by_mla} = {kept_by_mha / kept_by_mla:.1f}")
print(f"without the position: {kept_by_mha / LATENT:.0f}")

sheet = machine_for("NVIDIA H200")
ridge = sheet.peak_tflops["bf16"] * 1e3 / sheet.bandwidth_gb_per_s


def decode_intensity(heads, d_k, d_v, numbers):
    """Operations a byte of one decoded token: q·k and p·v, over what is fetched, in bf16."""
    return 2 * heads * (d_k + d_v) / (2 * numbers)


mla = {h: decode_intensity(h, kept_by_mla, LATENT, kept_by_mla) for h in (16, 128)}
grouped = decode_intensity(8, D, D, 2 * D)  # 8 query heads share one pair of heads
print(f"8 heads on a pair: {grouped:.0f}   ridge: {ridge:.0f}")
for h, found in mla.items():
    print(
        f"MLA, {h:3d} heads: {found:6.1f}  waits for {'bytes' if found < ridge else 'cooks'}"
    )

record(
    mla={
        "mha": quantity(kept_by_mha),
        "latent": quantity(kept_by_mla),
        "ratio": quantity(kept_by_mha / kept_by_mla),
        "h16": quantity(mla[16], "FLOP/B"),
        "h128": quantity(mla[128], "FLOP/B"),
    },
    grouped=quantity(grouped, "FLOP/B"),
    ridge=quantity(ridge, "FLOP/B"),
)

# %% [markdown]
# | decode of one token | operations per byte |
# |---|---:|
# | 8 query heads on one pair of key and value heads | {{ grouped:.0f}} |
# | MLA, 16 heads on a card | {{ mla.h16:.0f}} |
# | MLA, 128 heads on a card | **{{ mla.h128:.0f}}** |
# | the ridge of an H200, bf16 | {{ ridge:.0f}} |
# | of an H800 that slows down under load, by MLA's makers [^flashmla] | 865 ÷ 3.35 = 258 |
# | of an H100, by its data sheet [^nvidia-h100] | 989 ÷ 3.35 = 295 |
#
# So with all heads on one card this decode waits for the *cooks* on an H200, and on paper for bytes on an H100. DeepSeek's H800 is between
# the two: its engineers round to 2 · 128 = 256, draw the line at 128 heads, and call the decode compute-bound there
# [^flashmla]. If you split the heads over eight cards, the decode waits for bytes again, whichever of the three cards you use.
#
# The students' page races our decode against FlashInfer's kernel for Hopper, where that is installed; FlashMLA itself is not raced.
#
# That is a better lesson than a plain *yes*. The W4 page names its card, and on an H100 its number is to the left of the ridge. Somebody will notice. Say: *which card?* Then divide.
#
# /// callout | teaching
# Walk to W4's sentence, *decode waits for bytes*, and write one word above it in red: *often*. You have just corrected yourself
# in public with a quotient. You will not show them anything better today.
# ///
#
# ### Propose and verify
#
# A small model proposes k tokens. The large one checks all of them in one go: k + 1 rows instead of one, and the room knows
# from W4 what that costs. The leading tokens that pass are kept, and at the first that fails, the large model's own token is
# already
# there. So every step writes at least one token [^leviathan2023].

# %%
import random


def gained(p, k, rng):
    """Tokens of one verification: the leading drafts that pass, and one more."""
    passed = 0
    while passed < k and rng.random() < p:
        passed += 1
    return passed + 1


def formula(p, k):
    """Expected tokens of one verification: 1 + p + … + p to the k."""
    return (1 - p ** (k + 1)) / (1 - p)


rng = random.Random(0)
RUNS = 20_000
for p, k in ((0.5, 4), (0.7, 4), (0.7, 8), (0.8, 3), (0.9, 8)):
    mean = sum(gained(p, k, rng) for _ in range(RUNS)) / RUNS
    print(f"p = {p}, k = {k}: simulated {mean:.3f}, by formula {formula(p, k):.3f}")

rng = random.Random(0)
simulated = sum(gained(0.7, 4, rng) for _ in range(RUNS)) / RUNS
COST = 0.1  # a drafted token, in units of one step of the large model
best = max(range(1, 17), key=lambda k: formula(0.7, k) / (1 + COST * (k + 1)))
print(f"a draft costs {COST} of a step: best k = {best}")

record(
    draft={
        "simulated": quantity(simulated),
        "formula": quantity(formula(0.7, 4)),
        "k8": quantity(formula(0.7, 8)),
        "most": quantity(1 / (1 - 0.7)),
        "best": quantity(best),
        "gain": quantity(formula(0.7, best) / (1 + COST * (best + 1))),
    }
)

# %% [markdown]
# For p = 0.7 and k = 4 the run says {{ draft.simulated:.2f}} and the formula {{ draft.formula:.2f}}. Twice as many drafts give {{ draft.k8:.2f}},
# and no draft, however long, gives more than {{ draft.most:.2f}}. If a drafted token costs a tenth of a step, the best k is {{ draft.best:.0f}}.
# Longer drafts are thrown away too
# often. (The formula assumes that each draft passes with the same probability, and independently. Real ones do not. It is a first
# forecast.)
#
# Does that change what the model says? No, and you can show that with three words. Accept a drafted word with probability min(1,
# target / draft). If it is
# refused, take a word from those to which the draft gave too little. Add up both ways in which a word can come out:

# %%
TARGET = {"red": 0.5, "hot": 0.3, "old": 0.2}
DRAFT = {"red": 0.7, "hot": 0.2, "old": 0.1}

accepted = {word: min(TARGET[word], DRAFT[word]) for word in TARGET}
passing = sum(accepted.values())
missing = {word: max(0.0, TARGET[word] - DRAFT[word]) for word in TARGET}
comes_out = {
    word: accepted[word] + (1 - passing) * missing[word] / sum(missing.values())
    for word in TARGET
}
print("comes out:", {word: round(share, 12) for word, share in comes_out.items()})
print(f"a draft passes with probability {passing:.1f}")
record(passing=quantity(passing))

# %% [markdown]
# The result is exactly the target, to the last digit. The draft decides how *often* you gain, never *what* is said. And p is the sum of the smaller of each pair:
# {{ passing:.1f}} here.
#
# Why is all this about kernels? The check turns a trickle of one row into a banquet of k + 1, five rows for k = 4, so every kernel in
# the step must handle five rows well. And the acceptance, one comparison for each draft and then a draw over the vocabulary, is a separate kernel; on the
# CPU it would cost a round trip in every step. The students' page has that kernel, lets it write millions of pairs of tokens, and asks a test whether they are the
# large model's; three planted faults show what the test would notice. It also works out [from which batch on drafting is a
# loss](../../docs/workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss): read that before somebody asks why not everybody drafts.

# %% [markdown]
# ## The figures as they are
#
# These figures circulate in shortened form. Learn the long form; it is the lesson. And give the date: we read the sources of these three figures on 20 November 2026, and the others by the 27th. By then V4-Pro was no longer the newest. DeepSeek-V4.1 has had attention kernels in the
# makers' own library since 10 September 2026 [^flashmla-readme]; we have read no figures for it, and quote none.
#
# **The stack.** Two terms first. A *drafting head* is a small part that is trained on top of a large model to guess its next tokens. *MTP-1*, multi-token prediction, is one layer of the model's own kind [^vllm-mtp], and by its name guesses one further token; *EAGLE-3* guesses several,
# one after the other, from what some of the large model's layers hold [^vllm-eagle3].
#
# - *V4-Pro: 27 % of the FLOPs, 10 % of the cache* [^deepseek2026]. Of the FLOPs for a **single token**, at a **million tokens** of context, against **DeepSeek-V3.2**; and it
#   comes from two kinds of attention together, a compressed sparse one and a heavily compressed one [^deepseek2026].
# - *DSpark, 57 to 78 %* [^cheng2026]. That much more speed for one user's answer with V4-Pro, against the older drafting head
#   MTP-1, at the same total throughput; its drafts
#   are accepted for 26.7 to 30.9 % more tokens than EAGLE-3's, on three Qwen3 models [^cheng2026].
# - *Mega MoE, 1.50 to 1.61 times* [^deepgemm]. For V4-Pro on eight cards, against the makers' own older path, in one kernel that
#   sends tokens to their experts, multiplies twice with SwiGLU in between, and brings the results back [^deepgemm]. Upstream it runs
#   only on Blackwell's data-centre cards [^deepgemm]. `deep_gemm_mega_moe` is
#   the name of a switch in vLLM; the kernel is called `fp8_fp4_mega_moe`.
#
# **The machines: KernelBench.** Two models are usually presented as one. Level 2, fast₁, on an L40S:
#
# - DeepSeek-V3: 4 % in one try, 37 % as the best of a hundred [^ouyang2025].
# - DeepSeek-R1: 36 % in one try, 62 % with what the run said, 72 % with what the run *and the profiler* said, in ten turns
#   [^ouyang2025]. 92 % were right [^ouyang2025].
#
# /// callout | trip
# **"DeepSeek solves 4 %, then 37 %, then 72 %."** There are two models, and *solves* is wrong. The figure counts kernels that are right **and** take less time than
# eager PyTorch [^ouyang2025].
# ///
#
# **The machines: CRFM.** In May 2025, on an L40S, in fp32, at one fixed size each and with a tolerance of one in a hundred, which
# allowed lower precision [^crfm2025]:
#
# - LayerNorm 484 %, Conv2D 180 %, softmax 112 %, matmul 101 % of PyTorch [^crfm2025];
# - in fp16: matmul **52 %**, FlashAttention **9 %** of PyTorch [^crfm2025].
#
# Then there is what has *not* been shown. We believe that human, machine and profiler together do better than any of them
# alone; no source that we cite ran that comparison. Say *I believe*. It is also wrong that Kevin was trained on KernelBook: it learned
# from 180 tasks of KernelBench itself, over several turns,
# and went from 56 to 82 % right answers [^baronio2025]. And all of it is from 2025: there are newer reports whose sources we
# have not read.
#
# ### The sheet: ten kernels
#
# These are made up, so that nobody argues about the cards. Times in ticks; a kernel is right when its worst error is at most 0.01.

# %% tags=["fold"]
ROWS = [  # worst error, its ticks, eager's ticks
    (0.001, 80, 100), (0.004, 120, 100), (0.300, 10, 100), (0.002, 48, 100),
    (0.000, 100, 90), (float("nan"), 5, 100), (0.009, 95, 100), (0.003, 40, 100),
    (0.011, 60, 100), (0.005, 300, 100),
]  # fmt: skip


def right(error):
    """Whether an answer counts. Asked this way round, NaN does not."""
    return error <= 0.01


def fast(p):
    """How many are right, with eager more than p times their ticks; p = 0 asks only for right."""
    return sum(right(e) and eager > p * own for e, own, eager in ROWS)


shares = {p: fast(p) for p in (0, 1, 2)}
print(
    "right at all:", shares[0], " in less time:", shares[1], " in half:", shares[2]
)
record(fast={f"p{p}": quantity(n) for p, n in shares.items()})

# %% [markdown]
# | kernel | worst error | its ticks | eager's |
# |---|---:|---:|---:|
# | 1 | 0.001 | 80 | 100 |
# | 2 | 0.004 | 120 | 100 |
# | 3 | 0.300 | 10 | 100 |
# | 4 | 0.002 | 48 | 100 |
# | 5 | 0.000 | 100 | 90 |
# | 6 | NaN | 5 | 100 |
# | 7 | 0.009 | 95 | 100 |
# | 8 | 0.003 | 40 | 100 |
# | 9 | 0.011 | 60 | 100 |
# | 10 | 0.005 | 300 | 100 |
#
# fast₀ {{ fast.p0:.0f}}, fast₁ {{ fast.p1:.0f}}, fast₂ {{ fast.p2:.0f}} of ten. Number 6 is the one to wait for: *is the error
# greater than allowed? No.* Ask the question the other way round. Number 9 is the kernel that they will want to
# forgive.
#
# ### Six files, and a judge
#
# In place of a talk about such machines the room judges one. `proposals/` keeps thirty files by a language model that saw the tasks' words alone; the
# students' page has [six of them](../../docs/workshops/w6_frontier.py#six-kernels-that-a-machine-wrote), and the judge's word and the times behind a
# prediction each. The twelve minutes:
#
# - *Four to read.* Two files for each pair, and three questions to each: how often does it fetch its largest input? What does it do with a NaN, an infinity, an odd size? Does anything in it
#   depend on a call before? A cross and a proof go onto the sheet, and beside them fast₁ against eager and against the compiler.
# - *Six to judge.* Hands for each file, then Enter: `nox -s harness -- softmax --series bold`, and so on. On a card it prints the times of the file and of both rivals. Without
#   one it says which are right, by an interpreter, and the page's table has the times of the last run on a card.
# - *Two to write* line 5 of the verdict page.
#
# | file | what must move, or be done | fetches its largest input |
# |---|---|---|
# | softmax | 2 · 16384 · 8192 · 4 bytes, 1.07 GB | once |
# | multiply, float16 | 2 · 8192³ operations | once a tile |
# | bias and GELU | 2 · 32768 · 16384 · 2 bytes, 2.15 GB | once |
# | SwiGLU | 3 · 16384 · 14336 · 2 bytes, 1.41 GB | once |
# | attention | 2 · 16 · 16384² · 128 operations | once a block of rows |
# | decode attention | 2 · 32 · 8 · 4096 · 128 · 2 bytes, 0.54 GB | once |
#
# /// callout | trip
# **"It looks professional, so it is right."** All six look professional. Ask for an element, a counter, a clock, or a line, and for nothing else.
# ///
#
# If nobody finds a cheat: there is no sign of one. Do not say *there is none*; say what was asked. The next demo has one.
#
# ### The autopsy of "484 %"
#
# The task fixes the size: 16 × 64 × 256 × 256, normalised over the last three. So there are 16 rows, of {{ autopsy.numbers / 1e6:.1f}} million numbers each.

# %%
numbers = 64 * 256 * 256
SMS = sheet.multiprocessors.count  # of an H200; an L40S has a few more
record(
    autopsy={
        "numbers": quantity(numbers),
        "share": quantity(16 / SMS),
        "rows_needed": quantity(SMS),
    }
)
print(f"a row has {numbers} numbers; 16 blocks light {16 / SMS:.0%} of {SMS} SMs")

# %% [markdown]
# A kernel that gives each row to one block, as you would for rows of the usual length, sets 16 tables. On our card, {{ autopsy.share:.0%}}
# of the SMs have work. And PyTorch's kernel does just that: in the source that we read, of 2026, it starts as many blocks as there are rows, for rows of up to 2²⁴ numbers, and ours have 2²² [^pytorch-layer-norm]. Splitting a row over many blocks is a well-known remedy, and the machine
# found it. So the figure is true, and it is about *this size*.
#
# Is that the whole reason? [The students' page](../../docs/workshops/w6_frontier.py#the-autopsy-of-a-record) asks the card: the same kernel with one block a row and with many, PyTorch eager and compiled, at that size
# and at two ordinary ones. Take the predictions before you open the table. Whoever says *five times* has read the headline; whoever divides 16 by the number of SMs has done the sum. Then ask where the headline stays at 16384 rows.
#
# **And the 180 %?** Ask in which format that convolution multiplies. Its source says float16 [^good-kernels], the yardstick was fp32, and a tolerance of one in a hundred let that pass [^crfm2025]. cuDNN may round, too, if a
# switch lets it. So there are two kinds of work, and a row of rivals for each, on [a page of its own](../../docs/convolution_against_whom.py). This is the question that they will need most often: *is it the same work?*
#
# It is [the second of three patients](../../docs/workshops/w1_flash_attention.py#flashattention-2-and-3-on-a-napkin) of W1: most
# of the tables are empty. Your students have met this patient before.

# %% [markdown]
# ## In production today
#
# /// callout | production
# FlashMLA and DeepGEMM are open, and you can read them: the first comes with a text in which its authors work out why this decode is compute-bound
# [^flashmla]. Every large serving engine drafts and verifies.
#
# A system that proposes, checks, profiles and repeats is an ordinary piece of engineering by now; some call it a *harness*.
# Building one is a craft, and the part that decides its worth is the one that you know: the check. One group that measured with
# KernelBench first filtered out 45 of its tasks for quality [^metr2025]. They tested the test.
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# One kernel is right whenever somebody looks. It peeks at one number of its input, works when that number has changed, and
# otherwise does nothing. It passes every check of its answer. Our measurement refuses it:
#
# > {{ measured.refused.faster_than_floor }}
#
# Let them read it. *Only physics caught it.* Then: which test of your capstone would it have passed?
# ///
#
# /// callout | demo
# *The machine's clever kernel, refused*: one command, and it ends with a refusal. That is its success. If there is no GPU in the
# room: all refusals are on
# [how we measure](../../docs/how_we_measure.py#first-taste-then-time).
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"Then why did I learn this?"** Or: **"it cannot really work."** One is fear, the other is pride, and both make people stop looking. The
# line that helps: *if you can tell good from garbage, you drive.* Then point at their own row on the leaderboard, and at what
# they found that the machine did not.
# ///
#
# - *"MLA is 64 times smaller."* The position was left out.
# - *"Decode is memory-bound."* It is a quotient. Count again.
# - *They count drafts after the first miss.* A word that follows a wrong word is worth nothing.
# - *"Drafting makes the answer worse."* Three words on the board show that the result is exactly the target.
# - *"484 %."* On which card, at which size, in which format, against eager or compiled, within which tolerance?
# - *"It fails at FlashAttention, so my job is safe."* That was May 2025. Do not build on it.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "It proposes a hundred kernels while you propose one. So do not race it at proposing. Ask it the question that you have asked
# yourself for four weeks. And do not
# let it write its own exam."
# ///
#
# The last words of the course, slowly:
#
# /// callout | say
# "For a month you made one operation fast with your own hands. Now machines are learning that, too. That
# leaves you the harder half: to know whether it is right, and how near the peak it is. We began with a receipt and a dot product. Take yours with you. What
# percent of peak are you at?"
# ///

# %% [markdown]
# ## The sheets, to print
#
# ***Verdict*.** The page that goes into the worklog. Eight lines, with room under each:
#
# 1. MLA's cache: ____ numbers become ____, a factor of ____. If you get 64, you forgot ____
# 2. Operations a byte: 128 heads ____, 16 heads ____, ridge of an H200 ____. The sentence of W4, corrected: ____
# 3. Three headlines, four boxes each: *of what? against what? at which size? on which card?*
# 4. p = 0.7, k = 4: my run ____, the formula ____. k = 8: ____. What does more drafting buy? ____
# 5. Six kernels by a machine: how many wrong, how many cheats, how many slow? ____
# 6. 16 rows, one block each: ____ of the SMs at work. I would change: ____
# 7. A test of my capstone that a cheat would pass: ____
# 8. My loop: who proposed, who checked, who profiled, who said stop? What did the machine find first? What did only I see?
#
# Signed by a neighbour who checked line ____
#
# ***Ten kernels*** is [the table above](#the-sheet-ten-kernels), with three more columns: right? · in less time? · in half? Print [the figures as they are](#the-figures-as-they-are)
# for each pair, too: at minute 22 they fill line 3 from it.
#
# ***Six kernels*** for each pair: [the table below *how to run it*](#six-files-and-a-judge), with room for a cross and its proof.
#
# What they type at minute 32 is the first stage of the lab [verify](../../docs/workshops/w6_frontier.py#nine-lines); its grader needs no GPU. If somebody's laptop
# refuses, `nox -s lab -- verify --stage 1` writes the file as it is after that stage.

# %% [markdown]
# ## The minutes
#
# [The map](../05_the_frontier/w6_map.md) has every step; there are breaks at minutes 50, 110 and 149. If you are late at minute
# 60, drop the formula: the run says the same. If you are late at minute 120, do not take the time from the talks. Take
# it from the loop, which they can draw at home.
#
# ### An hour for everybody
#
# The talks have 40 minutes: 12 and 12 before the third break, 8 and 8 after it, and one last minute for sheet zero. One after the
# other, twenty people would have two minutes each, and that is not a talk. So
# they speak in two rooms at once, each with somebody to chair it, a projector and a watch. Nobody changes a cable: every entry was handed in the day
# before, so the chair's computer shows [the board](../../docs/capstone.py#the-board-and-the-certificate), with the code and the report of each, and the next speaker walks to the front
# while the question is asked. The second room is chaired by a mentor from
# a different week, or by somebody who has spoken at a meeting before. With only one room, people speak in pairs: two works on one subject, or one
# person who has read the other's.
#
# | people | two rooms: talks in each | minutes for a talk | together | one room, in pairs: talks | minutes for a talk | together |
# |---:|---:|---|---|---:|---|---|
# | 6 | one room is enough: 6 | 6: 5 to talk, 1 to ask | 6 × 6 = 36 | each alone, as on the left | — | — |
# | 12 | 6 | 6: 5 to talk, 1 to ask | 6 × 6 = 36 | 6 | 6: 5 to talk, 1 to ask | 6 × 6 = 36 |
# | 20 | 10 | 4: 3 to talk, 1 to ask | 10 × 4 = 40 | 10 | 4: 3 to talk, 1 to ask | 10 × 4 = 40 |
#
# The map's steps hold for 6 minutes as well: two talks before each change of what to listen for, so 2 + 2 + 2 = 6. The remaining
# 40 − 36 = 4 minutes are for a second question where one is worth it. With more than twenty people, use pairs in two rooms: 24 people are 12 pairs, six in a room, six
# minutes each.
#
# By the clock, for twenty people in two rooms:
#
# | minute | what | for how long |
# |---|---|---|
# | 120 | both chairs say how we listen; sheet zero, folded | 2 to say, 3 to write: 2 + 3 = 5 |
# | 125 | talks one to three | 3 × 4 = 12 |
# | 137 | talks four to six | 3 × 4 = 12 |
# | 149 | third break; six sheets to their speakers | 4 |
# | 153 | talks seven and eight | 2 × 4 = 8 |
# | 161 | talks nine and ten; sheet zero unfolded | 2 × 4 + 1 = 9 |
# | 170 | both rooms in one; a line of each verdict page checked and signed; exit ticket | 1 + 2 + 3 = 6 |
# | 176 | twenty certificates, a few seconds each, at the door | 2 |
# | 178 | the last words | 2 |
#
# Each chair fills in a copy of *adding up* while it listens, a row for each talk. Nobody else adds anything up: a listener's sheets go to the speakers, who read them at
# home. Nobody hears the other room, so at minute 170 the board of all entries is on the screen, and each chair names the best loss that the room heard; the worklogs are open beside it, to be read on the way out.
#
# The score sheet has five lines, one point each, and a loss that is explained scores as high as a win:
#
# 1. **Right?** On which sizes, against which truth?
# 2. **Of what peak**, and what percentage?
# 3. **Against whom?** Is that the best there is?
# 4. **Who did what:** you, or the machine?
# 5. **What lost**, and why?
#
# /// exercise | Rehearse
# Somebody in the first row says: "KernelBench: DeepSeek gets 72 % now." Answer in two sentences. Then p = 0.8 and k = 3: how many
# tokens does one verification give, and how many at most with endless drafts?
# /// answer
# "R1, with ten turns of feedback from runs and the profiler, on Level 2 and an L40S; the 4 and 37 that you may have in mind are
# V3's, with one and with a
# hundred tries [^ouyang2025]. And it counts kernels that are right and take less time than eager PyTorch, not *solved* ones." Then
# 1 + 0.8 + 0.64 + 0.512 = 2.95, and at most 1 / 0.2 = 5.
# ///

# %% [markdown]
# ## You can now teach
#
# - a cache of {{ mla.latent:.0f}} numbers instead of {{ mla.mha:,.0f}}, and a decode on the other side of the ridge;
# - propose and verify, with a run, a formula, and three words that show that nothing is lost;
# - fast₀, fast₁, fast₂ on ten kernels, and the long form of six famous figures;
# - one record explained, two losses beside it, and a cheat that only physics caught;
# - a hundred and eighty minutes, at the end of which everybody has judged the kernels of a room and been kindly judged once.
#
# **Where this leads.** Back to the beginning, with the next cohort: [the receipt](../../docs/lectures/l1_what_a_gpu_is.py#the-receipt). Before it:
# [teaching W5](w5_blackwell.py) and [teaching W4](w4_serving.py).
