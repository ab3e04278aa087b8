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
# - work out the attention of one token with a pencil, and say what a query, a key and a value are;
# - write the plain recipe for a whole sequence, with and without a causal mask, and say which test catches which fault, and which
#   fault slips through;
# - say what its square of scores weighs, and how often it is carried to HBM and back;
# - say which roof limits the plain recipe, and whether that changes when the sequence grows;
# - keep two complaints apart: too little room, and too many trips.
#
# **The headline is a question.** The library's multiply, in bf16, reaches {{ l6.climb.cublas.of_peak:.0%}} of peak. Attention is
# two such multiplies with a softmax between them. What does it reach? You will guess, then see it measured, and then find out
# what separates the two numbers.
#
# If you are an hour short, read [two multiplies and a softmax](#two-multiplies-and-a-softmax), [what the square weighs](#what-the-square-weighs)
# and
# [four trips to HBM](#four-trips-to-hbm), leave the lab for another day, and keep ten minutes for [the envelope](#what-stands-in-the-way).
#
# You need [the roofline](l1_what_a_gpu_is.py#the-first-roofline), [memory](l3_memory.py) and [the tensor cores](l6_tensor_cores.py). If you come from [one token](../one_token.py), you know the
# first section; begin at [one query](#one-query-by-hand), with a pencil.

# %% [markdown]
# ## Two multiplies and a softmax
#
# The road bends here. Until now you cooked one dish, the multiply, and learned to cook it fast. Now the restaurant opens, and its signature dish is
# called *attention*.
#
# A language model reads **tokens**: words, or pieces of words. *The soup that the cook forgot is cold.* To go on from *cold* it must look back and find
# *soup*. So each token asks all tokens, and takes from each as much as fits its question. For that it has three short lists of d numbers:
#
# - its **query**: what it asks;
# - its **key**: the label by which others find it;
# - its **value**: the content that it has to give.
#
# Write the queries of N tokens one below the other, and you have a matrix Q, N × d. K and V are made in the same way. Then
# attention is three lines:
#
# $$
# \begin{aligned} S &= Q K^\top / \sqrt d \\ P &= \mathrm{softmax}(S) \\ O &= P V \end{aligned}
# $$
#
# First, ask every query against every key: a table of **scores**. Then make each row into shares, which are positive and add up to 1; that is the
# **softmax**. Last, mix the values according to the shares.
#
# *Two* matrix multiplies, then, and a softmax between them. A model is a stack of **layers**, and in each layer there are four
# more multiplies around attention: three make Q, K and V out of what the layer is given, and one mixes the answers at the end.
# That makes six. Those four multiply by *weights*, the numbers that a model has learned. They are ordinary, and you know how to
# make them fast. Leave them aside.
#
# /// exercise | Six shapes | 3 minutes
# Write down the shapes of Q, Kᵀ, S, P, V and O for N tokens of d numbers. Then once more for N = 4 and d = 2. Which of them have no d in them, and what
# does that mean?
# /// answer
# Q is N × d, Kᵀ is d × N, S and P are N × N, V and O are N × d. For N = 4 and d = 2: 4 × 2, 2 × 4, 4 × 4, 4 × 4, 4 × 2, 4 × 2. There is no d in S and P.
# They grow with the square of the length, however narrow the lists of numbers are.
# ///

# %% [markdown]
# ## One query, by hand
#
# One token asks three. Its query against their keys gives the scores 0, 0 and 0.693. Their values are one number each: 4, 8 and 2. A softmax takes *e* to
# the power of each score and divides by the sum. Take a pencil: what comes out?
#
# /// predict | You have your answer. Now add 1 to all three scores. What happens to it?
# - [ ] It grows
# - [ ] It shrinks
# - [x] Nothing
# /// reveal
# Nothing: it is {{ one.shifted:.2f }} once more. Each power has grown by the factor *e*, and so has their sum. The shares stay as they were.
#
# So you may also subtract the same number from a whole row, and everybody does. Subtract the *largest* score of the row. Then no
# power is above 1, and nothing
# overflows.
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

# %% [markdown]
# The powers are 1, 1 and 2, together 4. The shares are a quarter, a quarter and a half. One token of the three fits better, so its content counts for more. The answer is a quarter of 4, a quarter of 8
# and a half of 2: 1 + 2 + 1 = 4.
#
# Nothing here is new. In the first lecture you wrote [a receipt](l1_what_a_gpu_is.py#the-receipt): what Ann buys, times what the market asks, line by
# line, and added up. Its technical name is *dot product*. A score is one: a query times a key. And the answer is another: the
# shares times the values.
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
# {{ root.without:.4f }}: nearly everything, for one key that happened to fit. Divided by √d it is {{ root.divided:.3f }}. Without
# the root, a token listens to only one other token. A model learns by small corrections, and from a token that has no share there
# is nothing to correct.
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
# One query gave one row of scores. N queries give N rows: the table S. Row m belongs to query m and runs along the keys, so the softmax sums along the row.
# Each token's shares add up to 1, and do not depend on what the others get.
#
# All of that is one **head**. A layer has many heads side by side, each with queries, keys and values of its own; here H counts them, and d is the
# width of one. And a card works on B sequences at once. So the tensors have the shape (B, H, N, d), and each of the B · H heads is a task of its own. (Heads
# may share keys.)
#
# /// exercise | How many squares? | 2 minutes
# Llama 3.1 with 70 billion weights has 80 layers of 64 heads [^meta-llama31]. It reads one text. How many tables of
# scores does the plain recipe make, and how much does one head know about another?
# /// answer
# 80 × 64 = 5120. Within a layer a head knows nothing about its neighbours. Only the last multiply of the layer mixes
# what they found.
# ///

# %% [markdown]
# ## No looking ahead
#
# A model that writes must not see what it has not yet written. So token m may ask the tokens 0 to m, and none that comes later.
# That rule is called **causal**. In the table, everything to the right of the diagonal is forbidden, and a **mask** says so.
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
# {{ mask.late:.2f }}. The forbidden tokens had already eaten when they were sent away: they are gone from the row,
# but not from the sum that it was divided by.
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

# %% [markdown]
# So the mask goes **before the softmax**. A forbidden score becomes minus infinity. *e* to that power is 0, and the sum never
# hears of it. The first token is left with its own value, whole.
#
# /// exercise | How much is forbidden? | 2 minutes
# Of N² scores, how many does the mask forbid? For N = 3, and then for any N.
# /// answer
# 3 of 9. Of the N rows, the first has N − 1 forbidden scores and the last has none: N(N − 1)/2 together, nearly half of the
# square. Keep that in mind. The plain recipe computes them all the same.
# ///

# %% [markdown]
# ## How would you know that it is right?
#
# Not by looking: a wrong attention makes smooth, pretty numbers, too. Four tests, each with an answer that you know without a computer:
#
# 1. Every row of P adds up to 1, with the mask and without.
# 2. If all keys are equal, so are the shares, and without the mask every answer is the mean of V.
# 3. The three tokens that you worked out with a pencil give 4.
# 4. Causal: row 0 of O is row 0 of V.
#
# Run them for ten tokens and for a thousand. They are worth more than the recipe. They come back in the workshop, for a loop that is harder to understand.
#
# /// exercise | Which test notices? | 3 minutes
# Four wrong programs. (a) One forgets the root of d. (b) One takes the largest score off each row, and then divides by the sums of the *columns*. (c) One masks the
# shares. (d) One lets token m see token m + 1 as well.
# /// answer
# (a) None of the four! Equal keys hide it, and the three tokens have d = 1. Random inputs, compared with another program's
# answers, would show it. (b) The first and the third, and the fourth. The second does not:
# with equal keys every row is all zeros once its largest is subtracted, so a column adds up to N as a row does. (c) The first, if
# you ask it with the mask, and the fourth. (d) The fourth.
# ///
#
# Now type it. Three stages: scores and shares, the answer, no looking ahead. The grader's first word is a refusal, as always.
#
# /// lab | plain_attention
# ///

# %% [markdown]
# ## What the square weighs
#
# It is right. Now look at its size. Q, K, V and O are thin: N rows of d numbers. Between them are S and P. Nobody asked for them,
# nobody keeps them, and they are square.
#
# /// predict | One head, N = 4096. How many scores are in the square?
# - [ ] Half a million
# - [x] 17 million
# - [ ] 67 million
# /// reveal
# {{ square.n4096.scores / 1e6:.1f }} million, which is 4096 × 4096. If you said 67 million, you counted **bytes**: in fp32 each score takes four,
# {{ square.n4096.mb:.1f }} MB together. Much of what you will read mixes the two up.
#
# Working out one line is enough: the others follow from the rule.
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

# %% [markdown]
# Twice the tokens means four times the square, and twice the Q. A layer of 32 heads makes {{ layer_gb:.1f }} GB of scores in fp32
# at N = 4096, uses them once, and throws
# them away. From here on we use bf16, which takes half of that.
#
# /// exercise | A book | 2 minutes
# A page of a book has some five hundred tokens, a book two hundred pages. How many scores for one head, and how many bytes in bf16?
# /// answer
# N = 100 000. That is 10¹⁰ scores, and 2 · 10¹⁰ bytes, or 20 GB. One head of one layer, for one book.
# ///
#
# Two complaints can be made about such a square, and they are easily mixed up.
#
# - **Room**: all of it must be somewhere at once. That is *storage*, in bytes.
# - **Trips**: it is carried back and forth. That is *traffic*, in bytes as well.
#
# /// exercise | Which of the two ran out? | 2 minutes
# You double the number of tokens and the program dies, *out of memory*. A friend says: your bandwidth is too low. Is he right?
# /// answer
# No. Out of memory is about room and not about trips. Too little room makes a program crash. Too many trips make it slow. They have the same cause here, and not
# always the same cure.
# ///

# %% [markdown]
# ## Four trips to HBM
#
# The square is far too large for shared memory (the tray), so it lives in HBM (the pantry). Each of the three lines is a kernel
# of its own, and passes its result on through HBM: write S. Read S, for the softmax. Write P. Read P, for the second multiply.
# Four trips.
#
# /// figure | docs/assets/figures/enemy_matrix.svg
# alt: >-
#   On the table, small and fast: thin Q, K transposed, V and O, each N by d, and one large square of scores, N by N, marked as the enemy. Arrows
#   carry the square to the pantry, HBM, and back again, twice: as S and as P.
# caption: "What the recipe wants on the table, and where it must go instead. The square is what this lecture calls *the enemy*: the thin ones grow with N, the square with N²."
# ///
#
# How much work is there for each byte carried? Count the operations of the two multiplies, 2N²d each, and for the bytes only the
# square, at two bytes a score. Divide.
#
# /// predict | In bf16, at d = 128: how many operations for each byte, and what becomes of that when N doubles?
# - [x] d/2 = 64, and it stays
# - [ ] 2d = 256, and it stays
# - [ ] N/2 = 2048 at N = 4096, and it doubles
# /// reveal
# {{ trips.intensity:.0f }}: 4N²d operations over 4 · 2N² bytes, which is d/2. There is no N left in it. Work and trips both grow with N², and the roof stays where it is.
#
# The ridge of our card is at {{ l1.ridge_bf16:.0f }} operations per byte. The plain recipe is to the left of it, under the slope,
# and waits for bytes. Divide the two, and you have the most
# that it can reach as long as the square goes through HBM, however good its kernels are: {{ trips.intensity / l1.ridge_bf16:.0%}} of peak.
# ///

# %%
work = 4 * d  # operations for each score: two multiply-adds for each of d
carried = 4 * 2  # bytes for each score: four trips of a bf16 number
record(trips={"intensity": quantity(work / carried, "FLOP/B")})

# %% [markdown]
# /// exercise | Two more trips | 3 minutes
# A careless implementation divides by √d in a kernel of its own, a careful one in the multiply. How many operations per byte does
# the careless one do? And where would *you* put the root, so that it costs next to nothing?
# /// answer
# It reads S once more and writes it once more: six trips, 512 operations over 12 bytes, about 43. Divide Q instead, before the multiply. Q is N × d, not N × N.
# ///

# %% [markdown]
# ## The plain recipe on the card
#
# One sequence of 16 heads, d = 128, in bf16. `k01_materialised` is the plain recipe with the library's two multiplies and
# PyTorch's softmax, without the careless trips. (*Materialised*: the square is actually written to memory.) Beside it runs
# PyTorch's own function for attention. It chooses among several implementations, called back
# ends, and the one called *math* is the plain recipe.
#
# We record three things: the time; the room, which is the most memory that PyTorch handed out at once, beyond Q, K and V; and,
# where the square is far larger than L2, the bytes that the hardware counts. Percent of peak counts 4N²d operations for every
# head, those of the two multiplies.
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
# caption: By hand, the square four times, and Q, K, V and O once each. At 512 and 1024 the square fits into L2 or nearly so, and there we do not count.
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
# The pencil gave an upper limit, and no length reaches it: {{ plain.materialised.n2048.of_peak:.0%}} of peak at N = 2048,
# {{ plain.materialised.n8192.of_peak:.0%}} at 8192, {{ plain.materialised.n16384.of_peak:.0%}} at 16384. The multiplies come
# from the same library, on the same card. From N = 2048 on, the square has come between them. (At 512 and 1024 it fits into
# L2, and
# something else takes the time: there is too little of everything.)
# /// otherwise
# {{ plain.materialised.n2048.of_peak:.0%}} of peak at N = 2048, {{ plain.materialised.n8192.of_peak:.0%}} at 8192,
# {{ plain.materialised.n16384.of_peak:.0%}} at 16384.
# ///
#
# /// claim | plain.materialised.n16384.tflops > 1.3 * plain.materialised.n8192.tflops and counted.n16384.gb / plain.materialised.n16384.ms > 1.3 * counted.n8192.gb / plain.materialised.n8192.ms
# Why does 16384 do better than 8192? The trips for each score are the same. But they were made at {{ counted.n8192.gb / plain.materialised.n8192.ms:.2f}} TB/s at 8192, all three lines together, and at {{ counted.n16384.gb / plain.materialised.n16384.ms:.2f}} at 16384. The profiler's list says what differs. The
# two multiplies are the same kernels at both lengths. The softmax is not: up to 8192 PyTorch takes one that keeps its row in
# registers (`cunn_SoftMaxForwardReg`), and at 16384 a different one, which goes through shared memory
# (`cunn_SoftMaxForwardSmem`). So it must be the softmax that carries better there. A library picks its kernels by the shape.
# ///
#
# /// claim | abs(counted.n8192.gb / hand.n8192 - 1) < 0.1 and abs(counted.n16384.gb / hand.n16384 - 1) < 0.1
# And the trips are what you counted: {{ counted.n16384.gb:.1f }} GB at N = 16384, {{ hand.n16384:.1f }} by hand.
# /// otherwise
# Counted at N = 16384: {{ counted.n16384.gb:.1f }} GB, by hand {{ hand.n16384:.1f }}.
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
# The room follows the rule of four: {{ room.materialised.n8192:.1f }} GB at N = 8192, {{ room.materialised.n16384:.1f }} at 16384. That is two squares, S and P, and little else.
# /// otherwise
# The room: {{ room.materialised.n8192:.1f }} GB at N = 8192, {{ room.materialised.n16384:.1f }} at 16384.
# ///
#
# /// claim | plain.math.n8192.us > 3 * plain.materialised.n8192.us
# PyTorch's own plain way is plainer still. At N = 8192 it takes {{ plain.math.n8192.ms:.0f }} ms, more than three times as long as `k01_materialised`,
# and {{ room.math.n8192:.1f }} GB of room. It works in fp32 and makes several squares. It is there to be right, not to be fast.
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
# For each score the multiplies do 512 operations, and the softmax a handful: take off the largest, one exponential, add, divide. The profiler knows how long each kernel
# ran.
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
# The line with hardly any work takes more than half of the time. It is made of trips: fetch a square, write a square.
# /// otherwise
# The line with hardly any work takes {{ line.softmax.ms / (line.softmax.ms + line.multiplies.ms):.0%}} of the time.
# ///
#
# /// claim | line.softmax.gb / line.softmax.ms < 0.7 * measured.copy.gib4.torch.gb_per_s / 1000
# And this softmax does not even carry well: {{ line.softmax.gb / line.softmax.ms:.1f }} TB/s, where a copy reaches {{ measured.copy.gib4.torch.gb_per_s / 1000:.1f }}.
# A better one would help, up to the slope of the roof and no further. The trips themselves stay.
# /// otherwise
# This softmax carries well: {{ line.softmax.gb / line.softmax.ms:.1f }} TB/s, where a copy has {{ measured.copy.gib4.torch.gb_per_s / 1000:.1f }}. What is left to save is the trips themselves.
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
# Longer! It computes every score, then fetches the square once more, puts minus infinity into nearly half of it, and writes it back: {{ counted.causal.gb:.1f }} GB of trips, and
# {{ counted.n4096.gb:.1f }} without the mask. The forbidden scores are carried with all the rest.
# /// otherwise
# It carries {{ counted.causal.gb:.1f }} GB, and {{ counted.n4096.gb:.1f }} without the mask.
# ///
# ///

# %% [markdown]
# ## Whole rows, a block at a time
#
# Must all N queries be handled at once? No. Each row is a task of its own, so take a block of queries, finish its rows, and take
# the next block in the same room:
#
# /// source | src/course_kernels/attention/k05_blocks_of_rows.py#loop
# title: the plain recipe in a loop, 1024 queries at a time
# ///
#
# Two functions of torch may be new. `torch.baddbmm(nothing, a, b, beta=0, alpha=1 / sqrt(D))` is `a @ b / sqrt(D)` in one kernel:
# what it would add, `nothing`, is multiplied by beta, and beta is 0. So the root costs no trip of its own.
# And `triu_(start + 1)` keeps only the part of a table of ones that is above a diagonal: here the keys that come after each
# row's own token.
#
# /// predict | N = 16384, in 16 blocks of 1024 queries. What happens to the room, and what to the trips?
# - [room.blocks.n16384 / room.materialised.n16384 < 0.5 and counted.blocks.gb / counted.n16384.gb < 0.5] Both fall to about a sixteenth
# - [room.blocks.n16384 / room.materialised.n16384 < 0.5 and counted.blocks.gb / counted.n16384.gb >= 0.5] The room falls, the trips do not
# - [room.blocks.n16384 / room.materialised.n16384 >= 0.5 and counted.blocks.gb / counted.n16384.gb < 0.5] The trips fall, the room does not
# /// reveal
# The room falls to {{ room.blocks.n16384 / room.materialised.n16384:.0%}}. The trips are {{ counted.blocks.gb / counted.n16384.gb:.2f }} times what they were.
#
# /// table
# columns: [N = 16384, "room at once, GB", "counted trips, GB", "time, ms"]
# rows:
#   - [the whole square, "{{ room.materialised.n16384:.2f }}", "{{ counted.n16384.gb:.1f }}", "{{ plain.materialised.n16384.ms:.1f }}"]
#   - [blocks of 1024 queries, "{{ room.blocks.n16384:.2f }}", "{{ counted.blocks.gb:.1f }}", "{{ plain.blocks.n16384.ms:.1f }}"]
# ///
#
# /// claim | room.blocks.n16384 < 0.1 * room.materialised.n16384 and 1 < counted.blocks.gb / counted.n16384.gb < 1.15
# Less than a tenth of the room, and not one trip fewer. Every score still goes to HBM and comes back, as S and as P. There is
# even a little more to carry, because K and V are fetched once for every block. *Room* was a matter of order, and a loop has
# cured that. The *trips* are still there.
# /// otherwise
# The room is {{ room.blocks.n16384:.2f }} GB, the trips {{ counted.blocks.gb:.1f }} GB.
# ///
# ///
#
# /// exercise | Smaller blocks | 3 minutes
# Blocks of R queries need room for 2RN scores. So why not R = 16? Work out for one block how much of the square is
# carried, and how much of K and V. At which R are the two equal?
# /// answer
# The square: four trips of RN numbers. K and V: 2Nd numbers. They are equal at R = d/2, which is 64 for d = 128; once more there
# is no N in it. With R = 16, fetching K and V again weighs four
# times as much as the square itself. Less room, more trips.
# ///

# %% [markdown]
# ## What stands in the way?
#
# Why must a block's scores go to HBM at all? Because they do not fit on chip. Then make the block so small that they do, and keep its rows in shared memory from the first line to the
# last. All four trips would be gone.
#
# /// exercise | Rows in the hand
# A block can have 227 KiB of shared memory on this card. At N = 16384 and four bytes a score, how many whole rows fit? All of K and V pass by them once. How many operations is that for each
# byte of K and V, in bf16? And at N = 65536?
# /// answer
# A row takes 64 KiB, so three rows fit. For each token that passes, K and V bring 2d numbers, 4d bytes, and each row does 4d
# operations with them. So R rows do R operations per byte: three. The four trips had 64. (If you did the lab in Triton, you built
# exactly that, with one row in each program.) L2 will catch some of it, but it is still a poor trade. At N = 65536 a row takes
# 256 KiB: not
# even one fits.
# ///
#
# So whole rows are too long to hold, but you know how to hold tiles of rows: a few queries, a few keys, as on [the ladder](l4_the_gemm_ladder.py). The first line can be done tile by tile.
# So can the third. The line between them cannot, or so it seems. *The softmax wants the whole row.* The first share can be
# written only when the largest score and the sum are known, and these are known last.
#
# /// exercise | The envelope | 10 minutes
# How would you take the softmax of a row that you never see whole? Write down your proposal, in words and with one example of
# four numbers, and seal it in an envelope.
# /// answer
# Not here. Keep the envelope shut until [the workshop](../workshops/w1_flash_attention.py). It is opened there.
# ///

# %% [markdown]
# ## Before you leave the square
#
# /// exercise | The kitchen's bill | 4 minutes
# A layer of Llama 3.1, 64 heads of d = 128 [^meta-llama31], reads one sequence of 8192 tokens in bf16, causal, the plain way. (a) How much room do S and P take for all heads? (b) How many bytes
# are carried for the square, with the two trips of the mask? (c) Someone makes blocks of 512 queries. What becomes of (a), and what of (b)? (d) Someone doubles the card's tensor cores. What becomes of the time?
# /// answer
# (a) 64 × 8192² scores are 4.29 billion; S and P, two bytes each: 17.2 GB. (b) Six trips of 8.59 GB: 51.5 GB. (c) 16 blocks: a sixteenth of the room, about 1.07 GB; the same 51.5 GB of trips,
# and K and V fetched 16 times. (d) By the roof, hardly anything: it waits for bytes.
# ///
#
# **You can now** work out attention for one token with a pencil, and write it for all of them; put the mask where it belongs; say which test catches which fault; weigh the square, and
# count its trips; and say what a loop over blocks cures and what it does not.
#
# Take one sentence with you; it holds without a mask, where every score is needed. *It does not compute too much. It carries too
# much.*
#
# **Where this leads.** Your file `plain_attention.py` and your envelope go with you to [FlashAttention from scratch](../workshops/w1_flash_attention.py).
# What surrounds attention in a model: [one token](../one_token.py). How the clock and the counters work:
# [how every number here is measured](../how_we_measure.py). Each number with its spread: [the ledger](../numbers.md).
