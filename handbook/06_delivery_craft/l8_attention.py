# ---
# id: teach_l8
# title: "Teaching L8: attention"
# description: How to lead a room from three lines on the board to a plain attention that everybody typed, and to the square that it carries.
# ---

# %% [markdown]
# # Teaching L8: attention
#
# After this page you can lead your students round the bend in the road, from one multiply to the layer that every
# language model is built from. Your room will type
# the plain version, and then count what it carries. You will know which number counts scores and which counts bytes, and you will keep a secret for
# one day.

# %% [markdown]
# ## What it is really about
#
# Every token asks all tokens, and the answers are mixed: two multiplies with a softmax between them. Nobody asked for the table
# of all questions against all answers, nobody keeps it, and it is the largest thing in the room. Today they meet this enemy, but they do not defeat
# it yet.
#
# /// callout | metaphor
# Until now you cooked one dish, and cooked it fast. Now the restaurant opens. The signature dish is attention: each guest's plate
# is mixed from what all earlier guests have ordered. The plain kitchen writes a card for every pair of guests, carries all the
# cards to the pantry, and fetches them again to
# read what it wrote.
# ///
#
# /// figure | docs/assets/figures/arc_restaurant.svg
# alt: The second half of the road as a restaurant. Attention is the signature dish, FlashAttention keeps it in the hands, serving is the dining room.
# caption: Part two. The kitchen skills are the same; the guests are new.
# ///

# %% [markdown]
# ## By hand: three tokens, then six lengths
#
# One token asks three. The scores are 0, 0 and 0.693, the contents 4, 8 and 2. e to the power of each is 1, 1 and 2, together 4.
# So the shares are a quarter, a quarter, a half.
#
# /// predict | You add 1 to all three scores. What happens to the answer?
# - [x] Nothing
# - [ ] It shrinks
# - [ ] It grows
# /// reveal
# Nothing: {{ three.answer:.2f}} before, {{ three.shifted:.2f}} now. That is why you may subtract the largest score.
# ///

# %%
from math import exp

from course_kernels.measure import quantity, record


def attend(scores, contents):
    """The contents, mixed by the shares that a softmax makes of the scores."""
    weights = [exp(score) for score in scores]
    return sum(w * c for w, c in zip(weights, contents, strict=True)) / sum(weights)


scores, contents = (0, 0, 0.693), (4, 8, 2)
shifted = [score + 1 for score in scores]

d, square = 128, {}
for N in (512, 1024, 2048, 4096, 8192, 16384):
    square[f"n{N}"] = {
        "scores": quantity(N * N),
        "mb": quantity(4 * N * N / 1e6, "MB"),  # fp32
        "thin_mb": quantity(4 * N * d / 1e6, "MB"),  # Q alone
    }
    print(f"N = {N:5d}: {N * N:11,d} scores, Q has {N * d:9,d} numbers")

record(
    three={
        "answer": quantity(attend(scores, contents)),
        "shifted": quantity(attend(shifted, contents)),
    },
    square=square,
    # bf16, the square carried four times: operations for each byte
    intensity=quantity(4 * d / (4 * 2), "FLOP/B"),
    layer_gb=quantity(64 * 8192**2 * 2 / 1e9, "GB"),
)

# %% [markdown]
# | N | scores, millions | in fp32, MB | Q beside it, MB |
# |---:|---:|---:|---:|
# | 512 | {{ square.n512.scores / 1e6:.2f}} | {{ square.n512.mb:.1f}} | {{ square.n512.thin_mb:.2f}} |
# | 1024 | {{ square.n1024.scores / 1e6:.2f}} | {{ square.n1024.mb:.1f}} | {{ square.n1024.thin_mb:.2f}} |
# | 2048 | {{ square.n2048.scores / 1e6:.2f}} | {{ square.n2048.mb:.1f}} | {{ square.n2048.thin_mb:.2f}} |
# | **4096** | **{{ square.n4096.scores / 1e6:.1f}}** | **{{ square.n4096.mb:.1f}}** | {{ square.n4096.thin_mb:.1f}} |
# | 8192 | {{ square.n8192.scores / 1e6:.1f}} | {{ square.n8192.mb:.1f}} | {{ square.n8192.thin_mb:.1f}} |
# | 16384 | {{ square.n16384.scores / 1e6:.1f}} | {{ square.n16384.mb:.1f}} | {{ square.n16384.thin_mb:.1f}} |
#
# Learn the bold line. Many texts say *67 million scores*. There are {{ square.n4096.scores / 1e6:.1f}} million scores, and
# {{ square.n4096.mb:.1f}} million *bytes*.
#
# Then work out the fraction: the square is carried to HBM or back four times, at two bytes a score in bf16, and each score costs 4d operations. N cancels:
# {{ intensity:.0f}} operations per byte at d = 128, however long the sequence. The ridge of an {{ l1.gpu.name }} is at {{ l1.ridge_bf16:.0f}}.

# %% [markdown]
# ### The plain recipe
#
# Here is what they type in [the lab](../../docs/lectures/l8_attention.py#how-would-you-know-that-it-is-right), with its two
# functions in one, and then the tests. Type two lines ahead of the slowest, and say the shape of each line aloud. The grader
# refuses after stage 1, because of the shape, and after stage 2, because of causal: both refusals are intended.

# %%
import numpy as np


def attention(Q, K, V, causal=False):
    """One head: Q, K and V are [N, D]. Returns the answer, and the shares for the tests."""
    S = Q @ K.T / np.sqrt(Q.shape[1])  # [N, N], the square
    if causal:
        S[np.triu(np.ones(S.shape, dtype=bool), k=1)] = -np.inf  # no looking ahead
    S = S - S.max(axis=1, keepdims=True)
    P = np.exp(S)
    P = P / P.sum(axis=1, keepdims=True)  # each row's shares
    return P @ V, P


rng = np.random.default_rng(0)
Q, K, V = rng.standard_normal((3, 10, 8))
alike = np.ones((10, 8))
one, three = np.array([[1.0]]), np.array([[0.0], [0.0], [0.693]])

tests = {
    "rows of P sum to 1": np.allclose(attention(Q, K, V)[1].sum(axis=1), 1),
    "equal keys: the mean of V": np.allclose(attention(Q, alike, V)[0], V.mean(0)),
    "three tokens: 4": np.allclose(
        attention(one, three, np.array([[4.0], [8.0], [2.0]]))[0], 4, atol=1e-3
    ),
    "causal: row 0 is V[0]": np.allclose(
        attention(Q, K, V, causal=True)[0][0], V[0]
    ),
}
for test, passed in tests.items():
    print(f"{test:28s} {passed}")
record(tests_passed=quantity(sum(tests.values()), how="counted"))

# %% [markdown]
# {{ tests_passed:.0f}} of 4. The tests are worth more than the recipe: they come back in the workshop, for a loop that is harder
# to see through. Break the recipe on purpose, and let the room say which test will notice.

# %% [markdown]
# ## In production today
#
# /// callout | production
# Take a model whose shapes are public: Llama 3.1 with 70 billion weights has 80 layers of 64 heads [^meta-llama31]. Done the plain way, one layer
# would write, for one sequence of 8192 tokens, a square of {{ layer_gb:.1f}} GB in bf16, and there are two of
# them. So nobody serves it the plain way. FlashAttention's
# authors counted what that costs and what it saves [^dao2022], and that is the next workshop.
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# The library's multiply in bf16 reaches {{ l6.climb.cublas.of_peak:.0%}} of peak. Put two of them into one dish, with a softmax
# in between, and the whole reaches
# {{ l8.plain.materialised.n4096.of_peak:.0%}}. Same library, same card. Let them say where the rest went before you draw the four trips.
# ///

# %% [markdown]
# ## Where students trip
#
# - *Scores and bytes.* Use two columns and two pens.
# - *The wrong axis.* The columns sum to 1: each token shares itself out. The first test catches it; a glance does not.
# - *Masked after the softmax.* Rows no longer sum to 1: the forbidden tokens had eaten before they were sent away.
# - *"It is slow because it computes too much."* It carries too much. Write that sentence on the board and leave it
#   there.
# - *Storage and traffic.* Storage makes a program crash, traffic makes it slow.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "Three lines. You know the first and the last: you made them fast with your own hands. The step in the middle is
# hardly any work.
# And now look at what is between the lines. Nobody ordered it, nobody will eat it, and it is larger than everything else on this
# board."
# ///
#
# Do not show the cure. The envelope of the last block is worth more than your explanation: the next day they open it and find
# that they were half-way there.

# %% [markdown]
# ## The minutes
#
# [The map](../04_the_pivot/l8_map.md) has every step. If you are late, shorten the envelope to six minutes and the table to four
# rows. Never cut the fourth test, the causal one: they will need it in the workshop.
#
# /// exercise | Rehearse
# Work this out without a calculator: one head, N = 2000, fp32. How many scores are there, and how many bytes? And for 32 heads?
# /// answer
# 4 million scores, 16 million bytes. 32 heads: 128 million scores, 512 million bytes, for one layer and one sequence.
# ///

# %% [markdown]
# ## You can now teach
#
# - attention as two multiplies and a softmax, with all shapes;
# - three tokens by hand, and why you may subtract the largest score;
# - a plain attention with four tests, causal before the softmax;
# - the square: scores, bytes, four trips, and the roof that limits it.
#
# **Where this leads.** The students' page: [attention](../../docs/lectures/l8_attention.py), where the card is measured on
# [the plain recipe](../../docs/lectures/l8_attention.py#the-plain-recipe-on-the-card) and on [blocks of queries](../../docs/lectures/l8_attention.py#whole-rows-a-block-at-a-time),
# which are not part of the map. Next: [teaching W1](w1_flash_attention.py).
