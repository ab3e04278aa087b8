# ---
# id: l8
# title: Attention
# description: Two multiplies and a softmax, by hand and on the card; and the square of scores between them, weighed, carried and counted.
# needs: [gpu, counters]
# ---

# %% [markdown]
# # Attention
#
# By the end of this page you can
#
# - work out by hand the attention of one token, and say what a query, a key and a value are;
# - write the plain recipe for a whole sequence, with and without a causal mask, and say which test catches which fault, and which
#   fault slips through;
# - say how many bytes the square of scores takes, and how often the square is carried to HBM and back;
# - say which roof limits the plain recipe, and whether that changes when the sequence grows;
# - tell two problems apart: too little room, and too many trips.
#
# **The headline is a question.** The library's multiply, in bf16, reaches {{ l6.climb.cublas.of_peak:.0%}} of peak.
# Attention is two such multiplies with a softmax between them. What percentage of peak does attention reach? You will
# guess, then see it measured, and then find out why the two numbers differ.
#
# If you have an hour less than this page needs, read three sections,
# [Two multiplies and a softmax](#two-multiplies-and-a-softmax), [What the square weighs](#what-the-square-weighs) and
# [Four trips to HBM](#four-trips-to-hbm). Leave the lab for another day, and keep ten minutes for
# [the envelope](#what-stands-in-the-way).
#
# You need [the roofline](l1_what_a_gpu_is.py#the-first-roofline), [memory](l3_memory.py) and
# [the tensor cores](l6_tensor_cores.py). If you come from the page [One token](../one_token.py), you know the first
# section. Begin at [One query, by hand](#one-query-by-hand), with a pencil.

# %% [markdown]
# ## Two multiplies and a softmax
#
# Here the course takes a turn. Until now you cooked one dish, the multiply, and learned to cook it fast. Now the
# restaurant opens, and its signature dish is called *attention*.
#
# A language model reads **tokens**: words, or pieces of words. *The soup that the cook forgot is cold.* To go on from
# *cold* the model must look back and find *soup*. So each token asks all tokens, and takes from each token as much as
# fits its question. For that purpose a token has three short lists of d numbers:
#
# - its **query**: what it asks;
# - its **key**: the label by which other tokens find it;
# - its **value**: the content that it has to give.
#
# Write the queries of N tokens one below the other, and you have an N × d matrix, Q. K and V are made in the same
# way. Then attention takes three lines:
#
# $$
# \begin{aligned} S &= Q K^\top / \sqrt d \\ P &= \mathrm{softmax}(S) \\ O &= P V \end{aligned}
# $$
#
# First, multiply every query by every key: this gives a table of **scores**. Then turn each row into shares, which
# are positive and add up to 1; that is the **softmax**. Last, mix the values according to the shares.
#
# So attention is *two* matrix multiplies with a softmax between them. A model is a stack of **layers**, and in each
# layer there are four more multiplies around attention: three compute Q, K and V from the input of the layer, and one
# mixes the answers at the end. That makes six multiplies in all. Those four multiply by *weights*, the numbers that a
# model has learned. They are ordinary matrix multiplies, and you know how to make them fast. Leave them aside.
#
# /// exercise | Six shapes | 3 minutes
# Write down the shapes of Q, Kᵀ, S, P, V and O for N tokens of d numbers. Then write them down again for N = 4 and d = 2.
# Which of these shapes do not contain d, and what does that mean?
# /// answer
# Q is N × d, Kᵀ is d × N, S and P are N × N, V and O are N × d. For N = 4 and d = 2: 4 × 2, 2 × 4, 4 × 4, 4 × 4, 4 ×
# 2, 4 × 2. The shapes of S and P do not contain d. S and P grow with the square of the length, however short the
# lists of numbers are.
# ///

# %% [markdown]
# ## One query, by hand
#
# One token asks three tokens. Its query times their keys gives the scores 0, 0 and 0.693. Their values are one number each:
# 4, 8 and 2. A softmax takes *e* to the power of each score and divides by the sum. Take a pencil: what comes out?
#
# /// predict | You have your answer. Now add 1 to all three scores. What happens to it?
# - [ ] It grows
# - [ ] It shrinks
# - [x] Nothing
# /// reveal
# Nothing happens: the answer is {{ one.shifted:.2f }} again. Each power has grown by the factor *e*, and so has the
# sum of the powers. The shares stay as they were.
#
# So you may also subtract the same number from a whole row, and every implementation does. Subtract the *largest*
# score of the row. Then no power is above 1, and nothing overflows.
# ///

# %%
from math import exp

from course_kernels.measure import quantity, record


def attend(scores, values):
    """One query: its shares, and the values mixed by them."""
    powers = [exp(score) for score in scores]
    shares = [power / sum(powers) for power in powers]
    pairs = zip(shares, values, strict=True)
    return shares, sum(share * value for share, value in pairs)


scores, values = (0, 0, 0.693), (4, 8, 2)
shares, answer = attend(scores, values)
_, shifted = attend([score + 1 for score in scores], values)
print("shares:", [round(share, 2) for share in shares])

record(one={"answer": quantity(answer), "shifted": quantity(shifted)})

# %% [markdown] The powers are 1, 1 and 2, and their sum is 4. The shares are a quarter, a quarter and a half. One of
# the three tokens fits better than the others, so its content counts for more. The answer is a quarter of 4, a
# quarter of 8 and a half of 2: 1 + 2 + 1 = 4.
#
# Nothing here is new. In the first lecture you wrote [a receipt](l1_what_a_gpu_is.py#the-receipt): what Ann buys,
# times what the market asks, line by line, and added up. The technical name of a receipt is *dot product*. A score is
# a dot product: a query times a key. And the answer is also a dot product: the shares times the values.
#
# /// figure | docs/assets/figures/receipt_to_attention.svg
# alt: >-
#   Three pictures, one below the other. First a receipt: Ann buys 2 and 3, the market asks 5 and 2, so 10 and 6, to pay 16. Then
#   a dot product with the same
#   numbers: the query 2, 3 times the key 5, 2 is 16, and that is one score. Then attention for one query and three tokens: scores 0, 0 and 0.693; e to
#   each is 1, 1, 2; shares a quarter, a quarter, a half; values 4, 8, 2; and a last receipt with the lines 1, 2 and 1, which comes to 4.
# caption: From the first receipt of this course to attention. The softmax is the only step that is not a receipt.
# ///
#
# ### Why divide by the root of d? {.beyond}
#
# A score is a sum of d products. With numbers of about 1, such a sum has a size of about √d, because some of its terms are
# positive and some negative. Try it for one query and a thousand
# keys, all at random.
#
# /// predict | d = 128, a thousand random keys, and no division by √d. How large is the largest of the thousand shares?
# - [root.without < 0.2] About 3 in a hundred
# - [0.2 <= root.without < 0.8] About a half
# - [root.without >= 0.8] Nearly everything
# /// reveal
# The largest share is {{ root.without:.4f }}: nearly everything goes to one key that happened to fit. With the
# division by √d the largest share is {{ root.divided:.3f }}. Without the division, a token listens to only one other
# token. A model learns by small corrections, and where a token has no share there is nothing to correct.
# ///

# %%
import numpy as np

rng = np.random.default_rng(0)
d = 128
query, keys = rng.standard_normal(d), rng.standard_normal((1000, d))


def largest_share(scores):
    """Of the shares that a softmax makes of them."""
    powers = np.exp(scores - scores.max())
    return powers.max() / powers.sum()


record(
    root={
        "without": quantity(largest_share(keys @ query)),
        "divided": quantity(largest_share(keys @ query / np.sqrt(d))),
    }
)

# %% [markdown]
# ## Every query, every head
#
# One query gave one row of scores. N queries give N rows: the table S. Row m belongs to query m and has one score for
# each key, so the softmax sums along the row. The shares in each row add up to 1, and do not depend on the other
# rows.
#
# All of that is one **head**. A layer has many heads side by side, each with its own queries, keys and values. Here H
# is the number of heads, and d is the width of one head. And a card works on B sequences at once. So the tensors have
# the shape (B, H, N, d), and each of the B · H heads is a task of its own. (Heads may share keys.)
#
# /// exercise | How many squares? | 2 minutes
# Llama 3.1 with 70 billion weights has 80 layers of 64 heads [^meta-llama31]. The model reads one text. How many
# tables of scores does the plain recipe make, and how much does one head know about another?
# /// answer
# 80 × 64 = 5120 tables. Within a layer a head knows nothing about the other heads. Only the last multiply of the
# layer mixes what they found.
# ///

# %% [markdown]
# ## No looking ahead
#
# A model that writes must not see what it has not yet written. So token m may ask the tokens 0 to m, and none of the
# later tokens. This rule is called **causal**. In the table, everything to the right of the diagonal is forbidden,
# and a **mask** says so.
#
# /// figure | docs/assets/figures/causal_mask.svg
# alt: >-
#   A table of four by four. Its rows are the tokens that ask, its columns the tokens that are asked: The, soup, is, cold. On the
#   diagonal and left of it are scores: a token may ask itself and what came before. Right of the diagonal the cells are hatched,
#   because those tokens
#   are not written yet.
# caption: The first token has one score, the last has all.
# ///
#
# But where do you apply the mask: to the scores, or to the shares?
#
# /// predict | The first token may see only itself. Its scores are 0, 0 and 0.693. You take the softmax, then set the two forbidden shares to 0. What do its shares add up to?
# - [x] A quarter
# - [ ] A half
# - [ ] 1, as always
# /// reveal
# They add up to {{ mask.late:.2f }}. The forbidden tokens had already eaten when they were sent away: they are gone
# from the row, but not from the sum that the row was divided by.
# ///

# %%
seen = (True, False, False)  # the first token may look at itself alone
never = float("-inf")

early, _ = attend(
    [score if may else never for score, may in zip(scores, seen, strict=True)],
    values,
)
late = [share if may else 0.0 for share, may in zip(shares, seen, strict=True)]
print("masked before the softmax:", early)

record(mask={"early": quantity(sum(early)), "late": quantity(sum(late))})

# %% [markdown] So the mask goes **before the softmax**. A forbidden score becomes minus infinity. *e* to that power
# is 0, and adds nothing to the sum. The answer of the first token is then its own value, unchanged.
#
# /// exercise | How much is forbidden? | 2 minutes
# Of N² scores, how many does the mask forbid? Answer first for N = 3, and then for any N.
# /// answer
# 3 of 9. Of the N rows, the first has N − 1 forbidden scores and the last has none: N(N − 1)/2 together, nearly half
# of the square. Keep that in mind. The plain recipe computes these scores all the same.
# ///

# %% [markdown]
# ## How would you know that it is right?
#
# You cannot see it by looking at the numbers: a wrong attention also produces smooth, pretty numbers. Here are four
# tests, each with a result that you know without a computer:
#
# 1. Every row of P adds up to 1, with the mask and without.
# 2. If all keys are equal, so are the shares, and without the mask every answer is the mean of V.
# 3. The three tokens that you worked out with a pencil give 4.
# 4. Causal: row 0 of O is row 0 of V.
#
# Run these tests for ten tokens and for a thousand. They are worth more than the recipe. You will use them again in
# the workshop, for a loop that is harder to understand.
#
# /// exercise | Which test notices? | 3 minutes
# Here are four wrong programs. (a) One forgets the root of d. (b) One subtracts the largest score from each row, and
# then divides by the sums of the *columns*. (c) One masks the shares. (d) One lets token m see token m + 1 as well.
# /// answer
# (a) None of the four! Equal keys hide it, and the three tokens have d = 1. Random inputs, compared with another
# program's answers, would show it. (b) The first and the third, and the fourth. The second does not: with equal keys
# every row is all zeros once its largest is subtracted, so a column adds up to N as a row does. (c) The first, if you
# ask it with the mask, and the fourth. (d) The fourth.
# ///
#
# Now type it, in three stages: scores and shares, the answer, no looking ahead. At first the grader refuses your
# file, as always.
#
# /// lab | plain_attention
# ///

# %% [markdown]
# ## What the square weighs
#
# Your attention is right. Now look at the sizes of its matrices. Q, K, V and O are thin: N rows of d numbers. Between
# them are S and P. Nobody asked for S and P, nobody keeps them, and they are square.
#
# /// predict | One head, N = 4096. How many scores are in the square?
# - [ ] Half a million
# - [x] 17 million
# - [ ] 67 million
# /// reveal
# {{ square.n4096.scores / 1e6:.1f }} million, which is 4096 × 4096. If you said 67 million, you counted **bytes**: in
# fp32 each score takes four, which makes {{ square.n4096.mb:.1f }} MB. Much of what you will read confuses the two
# numbers.
#
# It is enough to work out one line of this table: the others follow by the same rule.
#
# | N | scores, millions | in fp32, MB | Q beside it, d = 128, MB |
# |---:|---:|---:|---:|
# | 512 | {{ square.n512.scores / 1e6:.2f }} | {{ square.n512.mb:.1f }} | {{ square.n512.thin_mb:.2f }} |
# | 1024 | {{ square.n1024.scores / 1e6:.2f }} | {{ square.n1024.mb:.1f }} | {{ square.n1024.thin_mb:.2f }} |
# | 2048 | {{ square.n2048.scores / 1e6:.2f }} | {{ square.n2048.mb:.1f }} | {{ square.n2048.thin_mb:.2f }} |
# | **4096** | **{{ square.n4096.scores / 1e6:.1f }}** | **{{ square.n4096.mb:.1f }}** | {{ square.n4096.thin_mb:.1f }} |
# | 8192 | {{ square.n8192.scores / 1e6:.1f }} | {{ square.n8192.mb:.1f }} | {{ square.n8192.thin_mb:.1f }} |
# | 16384 | {{ square.n16384.scores / 1e6:.1f }} | {{ square.n16384.mb:.1f }} | {{ square.n16384.thin_mb:.1f }} |
# ///

# %%
SIZES = (512, 1024, 2048, 4096, 8192, 16384)

record(
    square={
        f"n{N}": {
            "scores": quantity(N * N),  # one head
            "mb": quantity(4 * N * N / 1e6, "MB"),  # in fp32
            "thin_mb": quantity(4 * N * d / 1e6, "MB"),  # Q alone
        }
        for N in SIZES
    },
    layer_gb=quantity(32 * 4 * 4096 * 4096 / 1e9, "GB"),  # 32 heads
)

# %% [markdown] With twice as many tokens, the square has four times as many numbers, and Q has twice as many. A layer
# of 32 heads makes {{ layer_gb:.1f }} GB of scores in fp32 at N = 4096, uses them once, and throws them away. From
# here on we use bf16, which takes half as many bytes.
#
# /// exercise | A book | 2 minutes
# A page of a book has some five hundred tokens, and a book has two hundred pages. How many scores are there for one
# head, and how many bytes do they take in bf16?
# /// answer
# N = 100 000. That is 10¹⁰ scores, and 2 · 10¹⁰ bytes, or 20 GB. That is for one head of one layer, and one book.
# ///
#
# Such a square causes two problems, and they are easily confused.
#
# - **Room**: the whole square must be somewhere at once. That is *storage*, in bytes.
# - **Trips**: the square is carried back and forth. That is *traffic*, in bytes as well.
#
# /// exercise | Which of the two ran out? | 2 minutes
# You double the number of tokens and the program dies, *out of memory*. A friend says: your bandwidth is too low. Is he right?
# /// answer
# No. Out of memory is about room and not about trips. Too little room makes a program crash. Too many trips make it
# slow. The two problems have the same cause here, but not always the same cure.
# ///

# %% [markdown]
# ## Four trips to HBM
#
# The square is far too large for shared memory (the tray), so it lives in HBM (the pantry). Each of the three lines
# is a kernel of its own, and passes its result on through HBM. The first kernel writes S. The softmax reads S and
# writes P. The second multiply reads P. That makes four trips.
#
# /// figure | docs/assets/figures/enemy_matrix.svg
# alt: >-
#   On the table, small and fast: thin Q, K transposed, V and O, each N by d, and one large square of scores, N by N, marked as the enemy. Arrows
#   carry the square to the pantry, HBM, and back again, twice: as S and as P.
# caption: "What the recipe wants on the table, and where it must go instead. The square is what this lecture calls *the enemy*: the thin matrices grow with N, the square with N²."
# ///
#
# How many operations are there per byte carried? Count the operations of the two multiplies, 2N²d each. For the
# bytes, count only the square, at two bytes per score. Then divide.
#
# /// predict | In bf16, at d = 128: how many operations for each byte, and what becomes of that when N doubles?
# - [x] d/2 = 64, and it stays
# - [ ] 2d = 256, and it stays
# - [ ] N/2 = 2048 at N = 4096, and it doubles
# /// reveal
# {{ trips.intensity:.0f }}: 4N²d operations divided by 4 · 2N² bytes, which is d/2. This does not depend on N. The
# operations and the trips both grow with N², and the roof stays where it is.
#
# The ridge of our card is at {{ l1.ridge_bf16:.0f }} operations per byte. The plain recipe is to the left of the
# ridge, under the slope, and waits for bytes. Divide its intensity by the ridge, and you have the most that the plain
# recipe can reach as long as the square goes through HBM, however good its kernels are:
# {{ trips.intensity / l1.ridge_bf16:.0%}} of peak.
# ///

# %%
work = 4 * d  # operations for each score: two multiply-adds for each of d
carried = 4 * 2  # bytes for each score: four trips of a bf16 number
record(trips={"intensity": quantity(work / carried, "FLOP/B")})

# %% [markdown]
# /// exercise | Two more trips | 3 minutes
# A careless implementation divides by √d in a separate kernel; a careful implementation does so in the multiply. How
# many operations per byte does the careless implementation do? And where would *you* put the division, so that it
# costs next to nothing?
# /// answer
# It reads S once more and writes it once more: six trips, and 512 operations divided by 12 bytes is about 43. Divide
# Q instead, before the multiply. Q is N × d, not N × N.
# ///

# %% [markdown]
# ## The plain recipe on the card
#
# One sequence of 16 heads, d = 128, in bf16. `k01_materialised` is the plain recipe with the library's two multiplies
# and PyTorch's softmax, without the careless trips. (*Materialised* means that the square is actually written to
# memory.) Beside it runs PyTorch's own function for attention. It chooses among several implementations, called back
# ends, and the one called *math* is the plain recipe.
#
# We record three things: the time; the room, which is the most memory that PyTorch allocated at once, in addition to
# Q, K and V; and, where the square is far larger than L2, the bytes that the hardware counts. The percentage of peak
# counts 4N²d operations for every head, those of the two multiplies.
#
# /// predict | The library's multiply reaches {{ l6.climb.cublas.of_peak:.0%}} of peak. This is two of them, with a softmax in between. What percentage of peak does that reach at N = 4096?
# - [plain.materialised.n4096.of_peak >= 0.45] A half, or more
# - [0.22 <= plain.materialised.n4096.of_peak < 0.45] A third
# - [plain.materialised.n4096.of_peak < 0.22] A fifth, or less
# /// reveal
# {{ plain.materialised.n4096.of_peak:.0%}}.
#
# /// table
# columns: [N, "time, ms", "% of peak", "room at once, GB", "counted trips, GB", "by hand, GB"]
# rows:
#   - [512, "{{ plain.materialised.n512.ms:.3f }}", "{{ plain.materialised.n512.of_peak:.1%}}", "{{ room.materialised.n512:.3f }}", "", ""]
#   - [1024, "{{ plain.materialised.n1024.ms:.3f }}", "{{ plain.materialised.n1024.of_peak:.1%}}", "{{ room.materialised.n1024:.3f }}", "", ""]
#   - [2048, "{{ plain.materialised.n2048.ms:.2f }}", "{{ plain.materialised.n2048.of_peak:.1%}}", "{{ room.materialised.n2048:.2f }}", "{{ counted.n2048.gb:.2f }}", "{{ hand.n2048:.2f }}"]
#   - [4096, "{{ plain.materialised.n4096.ms:.2f }}", "{{ plain.materialised.n4096.of_peak:.1%}}", "{{ room.materialised.n4096:.2f }}", "{{ counted.n4096.gb:.2f }}", "{{ hand.n4096:.2f }}"]
#   - [8192, "{{ plain.materialised.n8192.ms:.2f }}", "{{ plain.materialised.n8192.of_peak:.1%}}", "{{ room.materialised.n8192:.1f }}", "{{ counted.n8192.gb:.1f }}", "{{ hand.n8192:.1f }}"]
#   - [16384, "{{ plain.materialised.n16384.ms:.1f }}", "{{ plain.materialised.n16384.of_peak:.1%}}", "{{ room.materialised.n16384:.1f }}", "{{ counted.n16384.gb:.1f }}", "{{ hand.n16384:.1f }}"]
# caption: The last column, by hand, has the square four times, and Q, K, V and O once each. At 512 and 1024 the square fits into L2 or nearly so, and there we do not count.
# ///
# ///

# %%
import torch
from course_kernels.attention import (
    k01_materialised,
    k05_blocks_of_rows,
    library,
)
from course_kernels.attention.problem import PROBLEM
from course_kernels.problem import Workload

H = 16
WAYS = {
    "materialised": k01_materialised.attention,
    "blocks": k05_blocks_of_rows.attention,  # of a section further down
    "math": library.sdpa_math,
}


def heads(N, causal=False):
    """One sequence of N tokens, 16 heads."""
    return Workload.of("bfloat16", B=1, H=H, N=N, D=d, causal=causal)


def lengths(way):
    """PyTorch's own plain way holds several squares in fp32: not at the last one."""
    return SIZES[:-1] if way == "math" else SIZES


def room(attention, N):
    """The most that torch handed out at once while it ran, beyond Q, K and V."""
    seed = torch.Generator(device="cuda").manual_seed(0)
    q, k, v = PROBLEM.make_inputs(heads(N), seed, "cuda")
    attention(q, k, v)  # what only a first call needs is made here
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    attention(q, k, v)
    torch.cuda.synchronize()
    most = torch.cuda.max_memory_allocated() - before
    return quantity(most / 1e9, "GB", "counted")


record(
    room={
        way: {f"n{N}": room(attention, N) for N in lengths(way)}
        for way, attention in WAYS.items()
    },
    thin={f"n{N}": quantity(4 * 2 * H * N * d / 1e9, "GB") for N in SIZES},
)

# %% tags=["fold"]
from course_kernels.measure import compare, measure

runs = {
    N: compare(
        {way: WAYS[way] for way in WAYS if N in lengths(way)},
        heads(N),
        seconds=0.3,
    )
    for N in SIZES
}
record(
    plain={way: {f"n{N}": runs[N][way] for N in lengths(way)} for way in WAYS},
    causal=measure(k01_materialised, heads(4096, causal=True), seconds=0.3),
)

# %% tags=["fold"]
from course_kernels.measure import count_many

TIME = "gpu__time_duration.sum"
COUNTED = (2048, 4096, 8192, 16384)  # from here on the square is well past L2
jobs = {f"n{N}": (k01_materialised, heads(N)) for N in COUNTED}
jobs["blocks"] = (k05_blocks_of_rows, heads(16384))
jobs["causal"] = (k01_materialised, heads(4096, causal=True))
tallies = dict(zip(jobs, count_many(list(jobs.values()), [TIME]), strict=True))


def line_of(kernel):
    """Which of the three lines a kernel of the plain recipe belongs to."""
    if "softmax" in kernel["name"].lower():
        return "softmax"
    return "other" if "elementwise" in kernel["name"] else "multiplies"


def told(line):
    """Bytes and time of one line, at N = 16384."""
    mine = [k for k in tallies["n16384"].kernels if line_of(k) == line]
    carried = sum(k["read_bytes"] + k["write_bytes"] for k in mine)
    took = [k["metrics"][TIME] for k in mine]
    seconds = sum(t["value"] * (1 if t["unit"] == "s" else 1e-9) for t in took)
    return {
        "kernels": quantity(len(mine), how="counted"),
        "gb": quantity(carried / 1e9, "GB", "counted"),
        "ms": quantity(seconds * 1e3, "ms", "counted"),
    }


record(
    counted=tallies,
    hand={
        f"n{N}": quantity((4 * 2 * H * N * N + 4 * 2 * H * N * d) / 1e9, "GB")
        for N in COUNTED
    },
    line={line: told(line) for line in ("multiplies", "softmax")},
)

# %% [markdown]
# /// claim | max(plain.materialised.n512.of_peak, plain.materialised.n1024.of_peak, plain.materialised.n2048.of_peak, plain.materialised.n4096.of_peak, plain.materialised.n8192.of_peak, plain.materialised.n16384.of_peak) < 0.3
# By hand you found an upper limit, and no length reaches it: {{ plain.materialised.n2048.of_peak:.0%}} of peak at N =
# 2048, {{ plain.materialised.n8192.of_peak:.0%}} at 8192, and {{ plain.materialised.n16384.of_peak:.0%}} at 16384.
# The multiplies come from the same library, and run on the same card. From N = 2048 on, the square has come between
# them. (At 512 and 1024 the square fits into L2, and something else takes the time: there is too little work to fill
# the card.)
# /// otherwise
# {{ plain.materialised.n2048.of_peak:.0%}} of peak at N = 2048, {{ plain.materialised.n8192.of_peak:.0%}} at 8192,
# {{ plain.materialised.n16384.of_peak:.0%}} at 16384.
# ///
#
# /// claim | plain.materialised.n16384.tflops > 1.3 * plain.materialised.n8192.tflops and line.softmax.gb / line.softmax.ms > 1.5 * counted.n8192.kernel.cunn_SoftMaxForwardReg.gb / counted.n8192.kernel.cunn_SoftMaxForwardReg.ms
# Why is the percentage higher at 16384 than at 8192? The number of trips per score is the same. The profiler's list
# shows what differs. The two multiplies are the same kernels at both lengths. The softmax is not: at 8192 PyTorch
# uses a kernel that keeps its row in registers (`cunn_SoftMaxForwardReg`), and at 16384 it uses a different kernel,
# which goes through shared memory (`cunn_SoftMaxForwardSmem`). The profiler also timed each kernel by itself: the softmax
# at 8192 carried its bytes at
# {{ counted.n8192.kernel.cunn_SoftMaxForwardReg.gb / counted.n8192.kernel.cunn_SoftMaxForwardReg.ms:.2f}} TB/s, the
# softmax at 16384 at {{ line.softmax.gb / line.softmax.ms:.2f}} TB/s. A library picks its kernels by the shape.
# /// otherwise
# Between N = 8192 and 16384 the number of trips per score does not change, but the softmax may: a library picks its kernels
# by the shape. The profiler also timed each kernel by itself: the softmax at 8192 carried its bytes at
# {{ counted.n8192.kernel.cunn_SoftMaxForwardReg.gb / counted.n8192.kernel.cunn_SoftMaxForwardReg.ms:.2f}} TB/s, the
# softmax at 16384 at {{ line.softmax.gb / line.softmax.ms:.2f}} TB/s.
# ///
#
# /// claim | abs(counted.n8192.gb / hand.n8192 - 1) < 0.1 and abs(counted.n16384.gb / hand.n16384 - 1) < 0.1
# And the trips agree with your count: the hardware counted {{ counted.n16384.gb:.1f }} GB at N = 16384, and by hand
# we get {{ hand.n16384:.1f }} GB.
# /// otherwise
# At N = 16384 the hardware counted {{ counted.n16384.gb:.1f }} GB, and by hand we get {{ hand.n16384:.1f }} GB.
# ///
#
# /// chart | lines
# title: Room that attention takes beyond Q, K and V, 16 heads, d = 128, bf16
# x: name
# y: value
# x_label: N
# y_label: GB at once
# x_scale: log2
# y_scale: log
# series:
#   - {name: room.math.*, label: "PyTorch, math"}
#   - {name: room.materialised.*, label: materialised}
#   - {name: thin.*, label: "Q, K, V and O together", style: reference}
# alt: >-
#   Room in gigabytes against the number of tokens, both axes logarithmic. At N = 8192 PyTorch's plain back end holds {{ room.math.n8192:.1f }} GB and
#   the materialised kernel {{ room.materialised.n8192:.1f }}; at 16384 the materialised kernel holds {{ room.materialised.n16384:.1f }}. Q, K, V and O
#   together weigh {{ thin.n16384:.2f }} GB there, and their line is less steep.
# caption: The squares grow twice as steeply as the thin matrices.
# ///
#
# /// claim | 3.8 < room.materialised.n16384 / room.materialised.n8192 < 4.2 and 1.9 < room.materialised.n16384 / (hand.n16384 - thin.n16384) * 4 < 2.2
# With twice as many tokens, the plain recipe takes about four times as much room: {{ room.materialised.n8192:.1f }}
# GB at N = 8192, and {{ room.materialised.n16384:.1f }} GB at 16384. That is two squares, S and P, and little else.
# /// otherwise
# The plain recipe takes {{ room.materialised.n8192:.1f }} GB at N = 8192, and {{ room.materialised.n16384:.1f }} GB
# at 16384.
# ///
#
# /// claim | plain.math.n8192.us > 3 * plain.materialised.n8192.us
# PyTorch's own plain way is plainer still. At N = 8192 it takes {{ plain.math.n8192.ms:.0f }} ms, more than three
# times as long as `k01_materialised`, and {{ room.math.n8192:.1f }} GB of room. This back end works in fp32 and makes
# several squares. Its purpose is to be right, not to be fast.
# /// otherwise
# PyTorch's own plain way takes {{ plain.math.n8192.ms:.1f }} ms and {{ room.math.n8192:.1f }} GB of room at N = 8192.
# ///
#
# /// chart | roofline
# title: The plain recipe under the roof, N = 16384, d = 128
# math: bf16
# points:
#   - label: materialised
#     intensity: plain.materialised.n16384.gflop / counted.n16384.gb
#     tflops: plain.materialised.n16384.tflops
# alt: >-
#   A roofline with one point, left of the ridge and below the slope: {{ plain.materialised.n16384.gflop / counted.n16384.gb:.0f }} operations per byte,
#   {{ plain.materialised.n16384.tflops:.0f }} TFLOP/s.
# caption: Operations of the two multiplies, over counted bytes. The roofs are those of the data sheet.
# ///
#
# ### Which of the three lines takes the time?
#
# For each score the multiplies do 512 operations, and the softmax does only a few: subtract the largest, take an
# exponential, add, divide. The profiler knows how long each kernel ran.
#
# /// predict | N = 16384. What share of the time goes to the softmax?
# - [line.softmax.ms / (line.softmax.ms + line.multiplies.ms) < 0.08] A hundredth, like its share of the work
# - [0.08 <= line.softmax.ms / (line.softmax.ms + line.multiplies.ms) < 0.4] A quarter
# - [line.softmax.ms / (line.softmax.ms + line.multiplies.ms) >= 0.4] A half or more
# /// reveal
# {{ line.softmax.ms / (line.softmax.ms + line.multiplies.ms):.0%}}.
#
# /// table
# columns: [N = 16384, "time, ms", "counted, GB", "TB/s"]
# rows:
#   - [the two multiplies, "{{ line.multiplies.ms:.2f }}", "{{ line.multiplies.gb:.2f }}", "{{ line.multiplies.gb / line.multiplies.ms:.2f }}"]
#   - [the softmax, "{{ line.softmax.ms:.2f }}", "{{ line.softmax.gb:.2f }}", "{{ line.softmax.gb / line.softmax.ms:.2f }}"]
# caption: Times are from the profiler, which clears the caches before each kernel.
# ///
#
# /// claim | line.softmax.ms > 0.5 * (line.softmax.ms + line.multiplies.ms)
# The line with hardly any arithmetic takes more than half of the time. The softmax consists of trips: it fetches a
# square and writes a square.
# /// otherwise
# The line with hardly any arithmetic takes {{ line.softmax.ms / (line.softmax.ms + line.multiplies.ms):.0%}} of the
# time.
# ///
#
# /// claim | line.softmax.gb / line.softmax.ms < 0.7 * measured.copy.gib4.torch.gb_per_s / 1000
# And this softmax does not even carry well: {{ line.softmax.gb / line.softmax.ms:.1f }} TB/s, where a copy reaches
# {{ measured.copy.gib4.torch.gb_per_s / 1000:.1f }}. A better softmax kernel would help, up to the slope of the roof
# and no further. The trips themselves would remain.
# /// otherwise
# This softmax carries well: {{ line.softmax.gb / line.softmax.ms:.1f }} TB/s, where a copy reaches
# {{ measured.copy.gib4.torch.gb_per_s / 1000:.1f }}. Only the trips themselves are left to save.
# ///
# ///
#
# ### Do the forbidden scores cost anything? {.beyond}
#
# /// predict | Now causal, N = 4096. Nearly half of the scores are forbidden. How long does the plain recipe take, compared with full attention?
# - [causal.us / plain.materialised.n4096.us < 0.8] Half as long
# - [0.8 <= causal.us / plain.materialised.n4096.us <= 1.05] As long
# - [causal.us / plain.materialised.n4096.us > 1.05] Longer
# /// reveal
# {{ causal.us / plain.materialised.n4096.us:.2f }} times as long.
#
# /// claim | causal.us > 1.05 * plain.materialised.n4096.us and counted.causal.gb > 1.2 * counted.n4096.gb
# It takes longer! The plain recipe computes every score, then fetches the square once more, puts minus infinity into
# nearly half of it, and writes it back. That is {{ counted.causal.gb:.1f }} GB of trips, compared with
# {{ counted.n4096.gb:.1f }} GB without the mask. The forbidden scores are carried like all the others.
# /// otherwise
# The plain recipe carries {{ counted.causal.gb:.1f }} GB with the mask, and {{ counted.n4096.gb:.1f }} GB without it.
# ///
# ///

# %% [markdown]
# ## Whole rows, a block at a time
#
# Must all N queries be handled at once? No. Each row is a separate task, so take a block of queries, finish its rows,
# and reuse the same memory for the next block:
#
# /// source | src/course_kernels/attention/k05_blocks_of_rows.py#loop
# title: the plain recipe in a loop, 1024 queries at a time
# ///
#
# Two PyTorch functions may be new to you. `torch.baddbmm(nothing, a, b, beta=0, alpha=1 / sqrt(D))` is
# `a @ b / sqrt(D)` in one kernel: the tensor that it would add, `nothing`, is multiplied by beta, and beta is 0. So
# the root costs no extra trip. And `triu_(start + 1)` keeps only the part of a table of ones that is above a diagonal:
# here the keys that come after each row's own token.
#
# /// predict | N = 16384, in 16 blocks of 1024 queries. What happens to the room, and what to the trips?
# - [room.blocks.n16384 / room.materialised.n16384 < 0.5 and counted.blocks.gb / counted.n16384.gb < 0.5] Both fall to about a sixteenth
# - [room.blocks.n16384 / room.materialised.n16384 < 0.5 and counted.blocks.gb / counted.n16384.gb >= 0.5] The room falls, the trips do not
# - [room.blocks.n16384 / room.materialised.n16384 >= 0.5 and counted.blocks.gb / counted.n16384.gb < 0.5] The trips fall, the room does not
# - [room.blocks.n16384 / room.materialised.n16384 >= 0.5 and counted.blocks.gb / counted.n16384.gb >= 0.5] Neither falls
# /// reveal
# The room falls to {{ room.blocks.n16384 / room.materialised.n16384:.0%}} of what it was. The trips are
# {{ counted.blocks.gb / counted.n16384.gb:.2f }} times what they were.
#
# /// table
# columns: [N = 16384, "room at once, GB", "counted trips, GB", "time, ms"]
# rows:
#   - [the whole square, "{{ room.materialised.n16384:.2f }}", "{{ counted.n16384.gb:.1f }}", "{{ plain.materialised.n16384.ms:.1f }}"]
#   - [blocks of 1024 queries, "{{ room.blocks.n16384:.2f }}", "{{ counted.blocks.gb:.1f }}", "{{ plain.blocks.n16384.ms:.1f }}"]
# ///
#
# /// claim | room.blocks.n16384 < 0.1 * room.materialised.n16384 and 1 < counted.blocks.gb / counted.n16384.gb < 1.15
# The loop needs less than a tenth of the room, but it saves not one trip. Every score still goes to HBM and comes
# back, as S and as P. There is even a little more to carry, because K and V are fetched once for every block. The
# problem of *room* was only a matter of the order of the work, and a loop has solved that problem. The *trips* are
# still there.
# /// otherwise
# The loop takes {{ room.blocks.n16384:.2f }} GB of room, and its trips carry {{ counted.blocks.gb:.1f }} GB.
# ///
# ///
#
# /// exercise | Smaller blocks | 3 minutes
# Blocks of R queries need room for 2RN scores. So why not R = 16? Work out for one block how much of the square is
# carried, and how much of K and V. At which R are the two equal?
# /// answer
# The square: four trips of RN numbers. K and V: 2Nd numbers. They are equal at R = d/2, which is 64 for d = 128; once
# more this does not depend on N. With R = 16, fetching K and V again carries four times as many bytes as the square
# itself. There is less room, but there are more trips.
# ///

# %% [markdown]
# ## What stands in the way?
#
# Why must a block's scores go to HBM at all? They must, because they do not fit on the chip. Then make the block so small
# that they do fit, and keep its rows in shared memory from the first line to the last. All four trips would be gone.
#
# /// exercise | Rows in the hand
# A block can have 227 KiB of shared memory on this card. At N = 16384 and four bytes per score, how many whole rows
# fit? The whole of K and V passes by these rows once. How many operations per byte of K and V is that, in bf16? And what
# happens at N = 65536?
# /// answer
# A row takes 64 KiB, so three rows fit. For each token that passes, K and V bring 2d numbers, 4d bytes, and each row
# does 4d operations with them. So R rows do R operations per byte: here three. The recipe with four trips does 64 per byte. (If you
# did the lab in Triton, you built exactly that, with one row in each program.) L2 will serve some of these bytes, but
# it is still a poor trade. At N = 65536 a row takes 256 KiB: not even one row fits.
# ///
#
# So whole rows are too long to hold, but you know how to hold tiles of rows: a few queries, a few keys, as on
# [the ladder](l4_the_gemm_ladder.py). The first line of attention can be computed tile by tile. So can the third
# line. The line between them cannot, or so it seems. *The softmax wants the whole row.* The first share can be
# written only when the largest score and the sum are known, and these are known last.
#
# /// exercise | The envelope | 10 minutes
# How would you compute the softmax of a row that you never see as a whole? Write down your proposal, in words and
# with one example of four numbers, and seal it in an envelope.
# /// answer
# Not here. Keep the envelope shut until [the workshop](../workshops/w1_flash_attention.py). It is opened there.
# ///

# %% [markdown]
# ## Before you leave the square
#
# /// exercise | The kitchen's bill | 4 minutes
# A layer of Llama 3.1, 64 heads of d = 128 [^meta-llama31], reads one sequence of 8192 tokens in bf16, causal, the
# plain way. (a) How much room do S and P take for all heads? (b) How many bytes are carried for the square, with the
# two trips of the mask? (c) Someone makes blocks of 512 queries. How do (a) and (b) change? (d) Someone doubles the
# card's tensor cores. How does the time change?
# /// answer
# (a) 64 × 8192² scores are 4.29 billion; S and P, two bytes each: 17.2 GB. (b) Six trips of 8.59 GB: 51.5 GB. (c) 16 blocks:
# a sixteenth of the room, about 1.07 GB; the same 51.5 GB of trips, and K and V fetched 16 times. (d) By the roof,
# hardly anything: it waits for bytes.
# ///
#
# **You can now** work out attention for one token with a pencil, and write it for all of them; put the mask where it
# belongs; say which test catches which fault; work out the size of the square, and count its trips; and say which
# problem a loop over blocks solves and which it does not.
#
# Remember one thing, which holds without a mask, where every score is needed. *The plain recipe does not compute too
# much. It carries too much.*
#
# **Where this leads.** Your file `plain_attention.py` and your envelope go with you to
# [FlashAttention from scratch](../workshops/w1_flash_attention.py). The page [One token](../one_token.py) shows what
# surrounds attention in a model. [How every number here is measured](../how_we_measure.py) explains the clock and the
# counters. [The ledger](../numbers.md) lists each number with its spread.
