# ---
# id: one_token
# title: One token
# section: Make the model fast
# order: 75
# description: What a language model is made of, each part with a pencil; what one token must read; and the same model on the same card, plain, in a graph, compiled and with our kernels.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # One token
#
# First we made the multiply fast. Now we make the model fast. So what *is* a model? By the end of this page you can
#
# - follow one token through a language model, part by part, and do the arithmetic of each part with a pencil;
# - say how large every grid of weights is, and which of them a token meets;
# - work out, before any clock runs, how many tokens a card can write in a second at best;
# - say where the rest of the time goes, and what brings some of it back.
#
# You need Python, [the receipt](lectures/l1_what_a_gpu_is.py#the-receipt) and
# [the roofline](lectures/l1_what_a_gpu_is.py#the-first-roofline) of the first lecture. You need to know nothing about
# neural networks.

# %% [markdown]
# ## A sentence with a gap
#
# *The soup that the cook forgot is …*
#
# You know how the sentence goes on. A language model does just one thing: it reads the beginning of a text, and gives a score to
# every word that it knows: how well would that word fit here? One word is picked and added to the text. Then the longer
# text goes in again. That is all: every answer you have ever read from such a model was written that way, one piece
# at a time.
#
# [L1](lectures/l1_what_a_gpu_is.py#the-receipt) wrote the receipt of one piece: a list of numbers meets one grid of
# weights after another, and each weight costs a multiply-add. There the grids were lines of a sum. Here each grid gets
# a name and a reason. The model is the little sister of the one on that receipt: Llama 3.1 with 8 billion weights
# [^meta-llama31]. It fits on one card, so it can be timed.
#
# We take its *shapes*, not its weights: random numbers take their place. So what it writes is nonsense, and all that
# this page measures is speed. The grids have the right sizes and are read as often as they would be with real weights.
# For text that makes sense there is [a small model](a_small_model.py), which is trained when this site is measured.
#
# /// predict | To write the one word “cold”, how many of its weights does the model use?
# - [weights.used / weights.all < 0.2] A few: those that know about soup
# - [0.2 <= weights.used / weights.all < 0.7] About half
# - [weights.used / weights.all >= 0.7] Nearly all of them
# /// reveal
# {{ weights.used / 1e9:.2f}} of {{ weights.all / 1e9:.2f}} billion: **nearly all of them**, each once. The exception is
# one table, of which only a single row is read. You will meet it first.
# ///
#
# Here is the whole road, with the size of every grid along it, in bf16, two bytes per number.
#
# /// figure | docs/assets/figures/one_layer.svg
# alt: >-
#   The road of a token from top to bottom. Its number picks one row of 4096 numbers out of the embedding table. The row
#   runs down as a thick line, the residual. In each of 32 layers, 436.2 MB, two branches leave it and come back as an addition. The first:
#   RMSNorm; grids for queries, 33.6 MB, keys and values, 8.4 MB each; RoPE turns queries and keys; attention, in which 32 query
#   heads ask 8 key heads, beside it the KV cache, in which each token leaves 4096 bytes; a grid that mixes the heads,
#   33.6 MB. The second, feed-forward: RMSNorm; two wide grids, gate and up, 117.4 MB each, 14 336 numbers wide; SwiGLU; and down, 117.4 MB. After
#   the last layer come RMSNorm and the head, 1050.7 MB, which gives 128 256 logits.
# caption: The grids of a layer are drawn to the same scale. The head is far wider than the picture.
# ///
#
# Follow the thick line down once with your finger. Then we walk down the same road, with numbers that fit on paper. We take a toy
# model along. It is the same code as the large model, but 8 numbers wide instead of 4096, with two layers and a vocabulary
# of eight words.

# %%
import torch
from course_models.config import Config
from course_models.model import Model

WORDS = ["The", "soup", "that", "the", "cook", "forgot", "is", "cold"]

toy_shape = Config(
    layers=2, width=8, heads=2, kv_heads=1, head_dim=4, hidden=12, vocab=len(WORDS)
)
toy = Model.random(toy_shape, seed=1, dtype=torch.float32)
toy.requires_grad_(False)


def show(what, numbers):
    """A few numbers, on one line."""
    print(f"{what:24s}", " ".join(f"{x:6.2f}" for x in numbers.flatten().tolist()))


# %% [markdown]
# ## Into numbers: token and embedding
#
# A **token** is a word or a piece of one. The text is cut into tokens before the model sees it, and each token is replaced
# by an integer: its place in the **vocabulary**, the list of all tokens there are. The large model has {{ shape.vocab:,.0f}}
# of them, the toy eight. To cut the text you need a program with a list, but no GPU.
#
# The next part is the **embedding**, the simplest of all: a table with a row of numbers for every token.
# Token 6? Row 6. Nothing is multiplied.

# %%
sentence = "The soup that the cook forgot is"
tokens = torch.tensor([[WORDS.index(word) for word in sentence.split()]])
print("tokens:", tokens[0].tolist())

x = toy.embedding[tokens]  # (1, 7, 8): seven tokens of eight numbers
show("is, embedded:", x[0, -1])

# %% [markdown]
# What do these eight numbers mean? In the toy, nothing: they are random. In a trained model, training has chosen them,
# and nobody gave them names. All you need to know is that from here on a token *is* this row.
#
# ### The residual
#
# The row now travels through the layers, and no part ever replaces it. Each part reads it, works something out, and **adds**
# the result to it: `x = x + part(x)`. Think of a note that travels with a plate through the kitchen. Every station
# reads it and adds a line; nobody tears it up. Its technical name is the **residual stream**.
#
# Two things follow. The row has the same width everywhere, so layers can be stacked: 32 here, 80 in the large sister.
# And whatever was written early can still be read at the end.
#
# /// exercise | A lazy layer | 2 minutes
# The note says (1, −1, 3, 5). One station adds (0.5, 0, −1, 0).
#
# 1. What does the note say now?
# 2. All weights of the next layer are zero. What does that layer do to the note?
# 3. Suppose that each part replaced the row instead: `x = part(x)`. What would that layer do then?
# /// answer
# 1. (1.5, −1, 2, 5).
# 2. Nothing. It adds zeros.
# 3. It would wipe the note out, and everything after it would work on zeros. That is the point of adding: a layer that
#    has nothing to say does no harm.
# ///

# %% [markdown]
# ## RMSNorm: forget how loud it is
#
# After many layers have added to it, the note may be loud, that is, full of large numbers. The grids work best with a
# steady voice. So before each part the row is divided by its own size. Its size is the *root* of the *mean* of its
# *squares*. Read that from right to left.
#
# Take a pencil and (1, −1, 3, 5):
#
# | step | first | second | third | fourth | the sum |
# |---|---:|---:|---:|---:|---|
# | the row | 1 | −1 | 3 | 5 | |
# | its squares | 1 | 1 | 9 | 25 | 1 + 1 + 9 + 25 = 36 |
# | the mean, and its root | | | | | 36 ÷ 4 = 9, and its root is 3 |
# | divided by the root | 0.33 | −0.33 | 1 | 1.67 | |
#
# At the end every number is multiplied by a weight of its own, 4096 weights for each norm. That is **RMSNorm**. (A tiny
# `eps` under the root keeps a row of zeros from being divided by zero.)
#
# /// source | src/course_models/operators.py#rms_norm
# title: RMSNorm, in src/course_models/operators.py
# ///
#
# /// predict | The same row, ten times as loud: (10, −10, 30, 50). The last number was 1.67. What is it now?
# - [ ] 0.17
# - [x] 1.67
# - [ ] 16.7
# /// reveal
# {{ norm.loud:.2f}}: the same. The root grows tenfold with the row, and cancels. The norm forgets how loud the note
# was, and keeps what it *says*, the ratios.
# ///

# %%
from course_kernels.measure import quantity, record
from course_models import operators

row, ones = torch.tensor([1.0, -1.0, 3.0, 5.0]), torch.ones(4)
normed = operators.rms_norm(row, ones, eps=1e-5)
loud = operators.rms_norm(10 * row, ones, eps=1e-5)
show("by pencil:", normed)
record(norm={"loud": quantity(loud[-1])})

# %% [markdown]
# ## Attention in five lines
#
# So far each token is alone with its row. But what follows *is* depends on a word five places earlier: *soup*. **Attention** is the
# only part of the model in which tokens look at each other. [L8](lectures/l8_attention.py) takes it apart; here are
# the five lines that the road needs.
#
# 1. Three grids make three short lists from the normalised row: a *query*, what this token asks; a *key*, the label by
#    which others find it; a *value*, the content that it has to offer.
# 2. The query is multiplied by the key of every token so far, its own included, and each product is divided by the root
#    of the list's length. The results are the scores.
# 3. Softmax turns the scores into shares: e to the power of each score, divided by the sum of these powers.
# 4. The values are mixed according to the shares.
# 5. Many **heads** do this side by side, each with lists of its own, and a fourth grid brings what they found
#    back to the width of the row. The result is added to the note.
#
# Work it out by hand, for one head and two tokens. The scores are 0 and 1.0986, and e to the power of each gives 1 and 3, together 4. So the
# shares are a quarter and three quarters. The values are 8 and 4: 0.25 × 8 = 2 and 0.75 × 4 = 3, so the head's answer is 2 + 3 = 5.
#
# ### RoPE: a rotation for each place
#
# Something is missing. Nothing in these five lines depends on *where* a token is. Shuffle the words before it, and a
# token finds the same keys and values: an *is* after *the cook forgot the soup* and one after *the soup forgot the
# cook* get the same mixture from the first layer. (Deeper down a little of the order shows, because by then each word
# has looked back, and only at those before it. That is a poor clock.)
#
# **RoPE** tells each query and each key its place, by turning it. Take the numbers of a list two at a time, as the coordinates
# of the tip of a clock hand. With every further place in the text, the hand turns by a fixed angle:
#
# `(a, b) → (a cos − b sin, b cos + a sin)`
#
# In the code a head's list is cut in the middle: number i of the first half and number i of the second half make one hand.
#
# /// source | src/course_models/operators.py#rope
# title: RoPE, in src/course_models/operators.py
# ///
#
# By hand, with 30° per place: a query at place 5 points to 150°, a key at place 3 to 90°. If both hands have length 1,
# their product is the cosine of the angle *between* them, 60°: one half.
#
# /// predict | The same two words, a hundred places further down: 105 and 103. What is their product?
# - [ ] Nearly 0
# - [x] Still one half
# - [ ] Nearly 1
# /// reveal
# {{ turned.far:.2f}}: still one half. The hands are at 3150° and 3090°, and the angle between them is the same 60°. Both have
# turned, and the product depends only on how far apart they are.
# ///

# %%
from math import cos, pi, radians, sin

from course_models.config import LLAMA_8B
from course_models.model import rope_frequencies, rope_tables


def hand(place, degrees=30):
    """A hand of length 1 that starts at 0°, turned for its place."""
    angle = radians(degrees * place)
    return operators.rope(
        torch.tensor([1.0, 0.0]),
        torch.tensor([cos(angle)]),
        torch.tensor([sin(angle)]),
    )


turns = rope_frequencies(LLAMA_8B)  # radians a place, for each pair of a head
record(
    turned={
        "far": quantity(hand(105) @ hand(103)),
        "pairs": quantity(len(turns)),
        "first_round": quantity(2 * pi / turns[0]),  # places for one full turn
        "last_round": quantity(2 * pi / turns[-1]),
    }
)

# %% [markdown]
# A head of the large model has 128 numbers, so it has {{ turned.pairs:.0f}} hands, and each turns at a pace of its own. The
# first goes round once in {{ turned.first_round:.1f}} places, like a second hand; the last goes round once in
# {{ turned.last_round:,.0f}} places, like a hand for centuries. The fast hands tell neighbours apart; the slow hands tell apart
# tokens that are far from each other. RoPE has no weights at all.
#
# These are the hands of Llama 3. Llama 3.1 slows its slow hands down by a factor of eight [^meta-llama31], so that they
# tell places apart in a longer text: its last hand goes round once in {{ 8 * turned.last_round:,.0f}} places. Our model
# leaves that out: slower hands would change angles, but not a single byte or operation.
#
# ### The KV cache, and heads that share
#
# A token's keys and values depend on the token and on what came before it, and on nothing that comes later. So once
# they have been computed, they never change. Throw them away, and you have to work them out again for every new
# token. Keep them, and you have a **KV cache**.
#
# What does a token leave behind? A key and a value, in every layer, for every head. The large model has
# {{ shape.heads:.0f}} query heads of {{ shape.head_dim:.0f}} numbers each, but only {{ shape.kv_heads:.0f}} heads of
# keys and values: {{ shape.heads / shape.kv_heads:.0f}} query heads share one of these. That is **GQA**, grouped-query
# attention.
#
# `2 × layers × key heads × numbers in a head × bytes in a number`
#
# For our model that is 2 × 32 × 8 × 128 × 2 = 131 072 bytes: a token of a few letters takes 128 KiB to remember. With
# 32 key heads it would be four times as much.
#
# Here is the code. The first part makes the three lists of each head, and turns two of them:
#
# /// source | src/course_models/model.py#lists
# title: queries, keys and values, in src/course_models/model.py
# ///
#
# The next part is the whole layer for one new token: its key and value go into the cache, attention looks at everything in
# it, and two things are added to the note. Read the last line from the inside out; `add_block` is in the next section.
#
# /// source | src/course_models/model.py#one_layer
# title: one layer, in src/course_models/model.py
# ///
#
# Let the toy's last token look back. It has two query heads and one head of keys and values.

# %%
layer = toy.layers[0]
angles = rope_tables(toy_shape, torch.float32, torch.device("cpu"))
cos_7, sin_7 = (table[:7][None, None] for table in angles)  # places 0 to 6
q, k, v = layer.queries_keys_values(toy.operators, x, cos_7, sin_7)
scores = (q[0] @ k[0].transpose(-1, -2))[:, -1] / 4**0.5  # of the last token
shares = torch.softmax(scores, dim=-1)

show("query of head 0:", q[0, 0, -1])
print(f"{'':24s}", " ".join(f"{word:>6s}" for word in sentence.split()))
for head in range(2):
    show(f"head {head} looks at:", shares[head])

x = layer.add_attention(toy.operators, x, operators.prefill_attention(q, k, v))
show("is, with what it found:", x[0, -1])

# %% [markdown]
# Each line of shares adds up to 1. With random weights the heads look anywhere. In a trained model one of them may well
# look at *soup*, since *cold* must come from somewhere.

# %% [markdown]
# ## SwiGLU: a door that opens by itself
#
# The second half of the layer is the **feed-forward** block. Each token is alone again. Two wide grids, *gate*
# and *up*, each make {{ shape.hidden:,.0f}} numbers out of 4096. These are merged, number by number, and a third grid,
# *down*, narrows the result back to 4096.
#
# The merging is **SwiGLU**. The number g from *gate* does two things to the number u from *up*. It opens a door for u,
# `1 ÷ (1 + e⁻ᵍ)` wide: nearly 1 for a large g, nearly 0 for a g far below zero. And it multiplies what gets
# through:
#
# `silu(g) × u`, where `silu(g) = g × 1 ÷ (1 + e⁻ᵍ)`
#
# By hand, with g = 1.0986 and u = 4. e to the power of −1.0986 is a third, so the door is open by 1 ÷ 1.3333 = 0.75.
# Then silu(g) = 1.0986 × 0.75 = 0.824, and 0.824 × 4 = 3.296.
#
# /// source | src/course_models/operators.py#swiglu
# title: SwiGLU, in src/course_models/operators.py
# ///
#
# Here is the whole block, with its addition to the note:
#
# /// source | src/course_models/model.py#feed_forward
# title: the feed-forward block, in src/course_models/model.py
# ///
#
# /// exercise | Three doors | 3 minutes
# The number from *up* is 4. What comes out, roughly, for g = 10, for g = 0 and for g = −10?
#
# And what would be lost without the door, if *down* simply took the numbers of *up*?
# /// answer
# For 10 the door is wide open, nearly 1, and what gets through is multiplied by 10: about 10 × 4 = 40. For 0 the door
# is half open, but what gets through is multiplied by 0: nothing. For −10 the door is open 1 ÷ (1 + 22026), so next to
# nothing gets through.
#
# Without the door one grid would directly follow the other, and a grid times a grid is just a grid: the wide middle
# would be worth no more than one narrow multiply. Between two multiplies there must be something that is not a straight
# line. That is the door's whole job.
# ///

# %%
g, u = torch.tensor([1.0986, 10.0, 0.0, -10.0]), torch.full((4,), 4.0)
show("four doors:", operators.swiglu(g, u))

x = layer.add_block(toy.operators, x)
show("is, behind layer 0:", x[0, -1])

# %% [markdown]
# ## Logits: a score for every word
#
# After the last layer there are one more RMSNorm and one last grid, the **head** (it has nothing in common with the heads of
# attention but its name). It has a column for every token of the vocabulary. Its results are the **logits**, one score
# for each token. Softmax would turn them into shares; the simplest choice is the token with the largest score.

# %%
logits = toy(tokens)[0, -1]  # the same road from the start, through both layers
print(f"{'':24s}", " ".join(f"{word:>6s}" for word in WORDS))
show("logits behind is:", logits)
print("The soup that the cook forgot is", WORDS[logits.argmax()])

# %% [markdown]
# That is the next token, as good a guess as random weights can make. It goes in at the top, and the road begins again.
#
# You have now met every part. A model has many weights but a short loop: the embedding, 32 times the same layer with
# different weights, a norm, and the head.
#
# /// source | src/course_models/model.py#one_token
# title: one token, in src/course_models/model.py
# ///
#
# /// exercise | Draw it
# Close the page. Draw the road of one token through one layer: the thick line, two branches, seven grids, two norms,
# and the places where tokens look at each other. Then compare.
# /// answer
# See the picture at the top. People often forget three things: the second norm, the grid after attention, and that
# there are *two* additions. Tokens look at each other in one place only, in attention.
# ///

# %% [markdown]
# ## What it weighs
#
# The shape gives the sides of every grid of a layer: numbers in times numbers out, two bytes each.

# %% tags=["fold"]
c = LLAMA_8B
grids = {  # (numbers in, numbers out) of every grid of a layer
    "query": (c.width, c.heads * c.head_dim),
    "key": (c.width, c.kv_heads * c.head_dim),
    "value": (c.width, c.kv_heads * c.head_dim),
    "output": (c.heads * c.head_dim, c.width),
    "gate": (c.width, c.hidden),
    "up": (c.width, c.hidden),
    "down": (c.hidden, c.width),
}
BYTES = 2  # bf16
numbers = {name: into * out for name, (into, out) in grids.items()}
norms = (2 * c.layers + 1) * c.width
table = c.vocab * c.width  # the embedding, and the head once more
used = c.layers * sum(numbers.values()) + norms + table

attention = sum(numbers[name] for name in ("query", "key", "value", "output"))
feed_forward = sum(numbers[name] for name in ("gate", "up", "down"))
record(
    shape={
        name: quantity(getattr(c, name))
        for name in (
            "layers",
            "width",
            "heads",
            "kv_heads",
            "head_dim",
            "hidden",
            "vocab",
        )
    },
    weights={
        "used": quantity(used),
        "all": quantity(used + table),
        "gb": quantity(BYTES * used / 1e9, "GB"),
    },
    mb={  # of one layer
        "attention": quantity(BYTES * attention / 1e6, "MB"),
        "feed_forward": quantity(BYTES * feed_forward / 1e6, "MB"),
    },
    gb={  # of all layers
        "attention": quantity(BYTES * c.layers * attention / 1e9, "GB"),
        "feed_forward": quantity(BYTES * c.layers * feed_forward / 1e9, "GB"),
        "head": quantity(BYTES * table / 1e9, "GB"),
        "norms": quantity(BYTES * norms / 1e9, "GB"),
    },
)

# %% [markdown]
# /// predict | Everybody talks about attention. Which part of a layer has the most weights?
# - [mb.feed_forward / mb.attention < 0.8] Attention's four grids
# - [mb.feed_forward / mb.attention > 1.25] The three of the feed-forward block
# - [0.8 <= mb.feed_forward / mb.attention <= 1.25] About the same
# /// reveal
# The three grids of the feed-forward block, with {{ mb.feed_forward / (mb.feed_forward + mb.attention):.0%}} of a layer's
# weights.
#
# /// table
# columns: [part, "in one layer, MB", "in all, GB"]
# rows:
#   - ["attention: queries, keys, values, and the grid after it", "{{ mb.attention:.1f}}", "{{ gb.attention:.2f}}"]
#   - ["feed-forward: gate, up, down", "{{ mb.feed_forward:.1f}}", "{{ gb.feed_forward:.2f}}"]
#   - ["the head", "", "{{ gb.head:.2f}}"]
#   - ["all norms together", "", "{{ gb.norms:.4f}}"]
#   - ["**read for every token**", "", "**{{ weights.gb:.2f}}**"]
#   - ["the embedding, of which one row is read", "", "{{ gb.head:.2f}}"]
# caption: Two bytes per number. An MB is a million bytes, a GB a billion.
# ///
# ///

# %% [markdown]
# ## Prefill and decode
#
# There are two ways to travel the same road.
#
# /// figure | docs/assets/figures/prefill_and_decode.svg
# alt: >-
#   Four passes through the model, side by side. In the first, prefill, the seven tokens of the prompt go in together and the word cold comes
#   out. In the next three, decode, one token goes in each: cold gives because, because gives he, he gives slept. Each word that comes out goes in at
#   the next pass. In every pass all the weights are read once. Below, the keys and values that are kept: of 7 tokens after the first pass, then of 8, 9
#   and 10.
# caption: Every pass reads all the weights, whether for seven tokens or for one.
# ///
#
# **Prefill**: the prompt is known from its first word to its last. So all its tokens go through together, as the rows
# of one grid, and each weight that is fetched is used once for every row. Prefill fills the cache, and gives the first
# token of the answer.
#
# **Decode**: the answer is not known yet. Its second token depends on its first, its third on its second. So its tokens
# go through one at a time, one row in each pass, and for that one row all the weights are fetched again.
#
# Why not send the whole text through each time? You could, and the answer would be the same. The cache saves you that work.
#
# /// exercise | Without a cache | 3 minutes
# A prompt has 1000 tokens, and its answer has 100. How many rows go through the model in all with the cache? And how many without
# the cache, when every pass reads the whole text again?
# /// answer
# With the cache: 1000 in the prefill, which also gives the first token of the answer. The other 99 cost one row each: 1000 +
# 99 = 1099.
#
# Without the cache: 1000, then 1001, and so on to 1099. That is 100 passes of 1049.5 rows on average:
# 100 × 1049.5 = 104 950.
# ///
#
# The code can do both, and the two must agree: the toy reads the seven words at once, then six at once and the last one by
# itself, with the cache.

# %%
at_once = toy.prefill(tokens, toy.cache(batch=1, room=8))
cache = toy.cache(batch=1, room=8)
toy.prefill(tokens[:, :6], cache)
one_more = toy.decode(tokens[:, 6], cache)
print("the same logits:", torch.allclose(at_once, one_more, atol=1e-5))

# %% [markdown]
# ## The floor of a step, by hand
#
# How fast can a card write? One reader means a **batch** of one: one row, and 1024 tokens in the cache. Before any
# clock runs, you can work out the best possible time with a pencil.
#
# What *must* be read? Every weight that is used, once, and every key and value of the 1024 tokens, once. The arithmetic
# hardly counts: in L1 a single reader's job was [far left of the
# ridge](lectures/l1_what_a_gpu_is.py#the-first-roofline), one multiply-add per two bytes.

# %%
from course_kernels.copy.library import torch_copy
from course_kernels.measure import measure
from course_kernels.measure.machine import machine_for
from course_kernels.problem import Workload
from course_models.config import cache_bytes, decode_bytes, prefill_flops

CONTEXT = 1024
sheet = machine_for(torch.cuda.get_device_name())
record(
    copy=measure(torch_copy, Workload.of("float32", N=4 * 2**28)),  # 4 GiB
    context=quantity(CONTEXT, how="given"),
    step={
        "cache_gb": quantity(cache_bytes(c, 1, CONTEXT) / 1e9, "GB"),
        "gb": quantity(decode_bytes(c, 1, CONTEXT) / 1e9, "GB"),
        "gb_32": quantity(decode_bytes(c, 32, CONTEXT) / 1e9, "GB"),
        "gb_long": quantity(decode_bytes(c, 1, 8 * CONTEXT - 1) / 1e9, "GB"),
        "gb_sister": quantity(2 * 70e9 / 1e9, "GB"),
    },
    bandwidth=quantity(sheet.bandwidth_gb_per_s, "GB/s", "given"),
)

# %% [markdown]
# /// define | floor.ms = step.gb / copy.gb_per_s * 1000
# unit: ms
# what: least time of a decode step, by its bytes, at the speed of a copy
# ///
#
# /// define | sheet.ms = step.gb / bandwidth * 1000
# unit: ms
# what: least time of a decode step, by its bytes, at the bandwidth of the data sheet
# ///
#
# /// define | floor.rate = 1000 / floor.ms
# unit: tokens/s
# what: tokens a second at the byte floor, at the speed of a copy
# ///
#
# /// define | sheet.rate = 1000 / sheet.ms
# unit: tokens/s
# what: tokens a second at the byte floor, at the bandwidth of the data sheet
# ///
#
# | by hand | value |
# |---|---:|
# | weights: all that are used, once | {{ weights.gb:.2f}} GB |
# | cache: 131 072 bytes × {{ context:.0f}} tokens | {{ step.cache_gb:.2f}} GB |
# | together, with the row of the embedding and the new token's key and value | {{ step.gb:.2f}} GB |
# | at the speed of [a copy](how_we_measure.py#the-card-against-its-own-data-sheet) of 4 GiB, made in this run, {{ copy.gb_per_s:.0f}} GB/s | {{ floor.ms:.2f}} ms, or **{{ floor.rate:.0f}} tokens/s** |
# | at the bandwidth of the data sheet, {{ bandwidth:.0f}} GB/s | {{ sheet.ms:.2f}} ms, or {{ sheet.rate:.0f}} tokens/s |
#
# That is the **byte floor**: with these numbers nobody can read less. We take the first rate as our yardstick, because
# bytes really move at that speed on this card, and keep the second beside it. Only the second is a hard limit: a copy
# writes as much as it reads, and a step hardly writes anything. [L3](lectures/l3_memory.py) measured what reading alone can
# reach. Write both down.
#
# /// exercise | The large sister
# The model of L1 has 70 billion weights, {{ step.gb_sister:.0f}} GB of them for each token. What is its floor at the
# speed of the copy, without any cache? And which obstacle would you meet before that?
# /// answer
# {{ step.gb_sister:.0f}} GB ÷ {{ copy.gb_per_s:.0f}} GB/s =
# {{ step.gb_sister / copy.gb_per_s * 1000:.0f}} ms. But the weights alone do not fit into the 80 GB of an H100 [^nvidia-h100], and
# nearly fill the 141 GB of an H200 [^nvidia-h200]. Two cards would share them, each reading its half at the same time.
# ///

# %% [markdown]
# ## What the clock says
#
# Now take the large shape on this card: {{ shape.layers:.0f}} layers, {{ context:.0f}} tokens in the cache, one reader.
# Nothing is timed before it is checked: the logits of every variant are compared with the same formulas in float64.

# %%
from course_models import bench

model = bench.subject()  # the 8B shape, random weights
record(decode=bench.decode(model, batch=1, held=CONTEXT))

# %% [markdown]
# /// define | rate.plain = 1000000 * decode.plain.T / decode.plain.us
# unit: tokens/s
# what: tokens a second, plain PyTorch, one reader
# ///
#
# /// define | rate.graph = 1000000 * decode.graph.T / decode.graph.us
# unit: tokens/s
# what: tokens a second, the plain model in a CUDA graph, one reader
# ///
#
# /// define | rate.library = 1000000 * decode.library.T / decode.library.us
# unit: tokens/s
# what: tokens a second in a CUDA graph with the library's attention, one reader
# ///
#
# /// define | rate.compiled = 1000000 * decode.compiled.T / decode.compiled.us
# unit: tokens/s
# what: tokens a second with torch.compile, in a CUDA graph, one reader
# ///
#
# /// define | rate.our_attention = 1000000 * decode.our_attention.T / decode.our_attention.us
# unit: tokens/s
# what: tokens a second in a CUDA graph with our attention, one reader
# ///
#
# /// define | rate.our_step = 1000000 * decode.our_step.T / decode.our_step.us
# unit: tokens/s
# what: tokens a second in a CUDA graph with our five kernels a layer, one reader
# ///
#
# We begin with the model as you read it above, where every line is an ordinary PyTorch call.
#
# /// predict | The floor allows {{ floor.rate:.0f}} tokens/s. How much of that does plain PyTorch reach?
# Every multiply in it is the library's, and the library is good at multiplying.
#
# - [rate.plain / floor.rate >= 0.55] More than half
# - [rate.plain / floor.rate < 0.55] Less than half
# /// reveal
# {{ rate.plain / floor.rate:.0%}}: {{ rate.plain:.0f}} tokens/s. A step takes
# {{ decode.plain.ms / decode.plain.T:.1f}} ms, and its bytes need {{ floor.ms:.2f}} ms.
# ///
#
# ### Where the time goes
#
# Bytes do not explain that. What else happens in a step? Go through the code again, and count the orders. A norm is a
# conversion, a square, a mean, an addition, a root, two products, and a conversion back. A turn is four products, two
# sums and a concatenation, with a conversion on either side. Every one of these is a kernel, every kernel is a launch,
# and a launch [costs the host](lectures/l2_the_cuda_model.py#what-a-launch-costs) something, however much or little
# work is in it. Here nearly all of them have 4096 numbers to work on, far too few for a card of {{ gpu.sms:.0f}} SMs.
# And all of it happens 32 times.
#
# There is no need to count to the end by hand. PyTorch's profiler sees every kernel.

# %%
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile


def kernels_of(model):
    """How many kernels one step of decoding launches, and how long they work."""
    cache = bench.filled_cache(model, batch=1)
    token = torch.zeros(1, dtype=torch.int64, device="cuda")
    model.decode(token, cache)  # what is compiled at the first call is compiled now
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        model.decode(token, cache)
        torch.cuda.synchronize()
    kernels = [
        event
        for event in seen.events()
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation
    ]
    if not kernels:
        raise RuntimeError("the profiler saw no kernel")
    return {
        "count": quantity(len(kernels), how="counted"),
        "busy": quantity(
            sum(event.device_time for event in kernels), "µs", "counted"
        ),
    }


record(
    kernels={
        "plain": kernels_of(model),
        "compiled": kernels_of(bench.compiled(model)),
    }
)

# %% [markdown]
# /// table
# columns: [one step of the plain model, value]
# rows:
#   - ["kernels", "{{ kernels.plain.count:.0f}}"]
#   - ["the GPU, between its first kernel and its last", "{{ decode.plain.ms / decode.plain.T:.1f}} ms"]
#   - ["of that, time in which a kernel was at work, by the profiler", "{{ kernels.plain.busy / 1000:.1f}} ms"]
# ///
#
# From its first kernel to its last, the GPU needs {{ 1000 * decode.plain.ms / decode.plain.T / kernels.plain.count:.0f}} µs for
# each kernel, and most of them are done in a fraction of that. The rest is the time that the host takes to write the next order.
#
# Compare the last two lines. For {{ kernels.plain.busy / 1000:.1f}} of {{ decode.plain.ms / decode.plain.T:.1f}} ms
# the GPU has something to do. For the rest of the time it has done its work and waits for the next slip: the whole
# brigade stands at cold stoves while one cook writes. How long it waits depends on the host at least as much as on
# the card, so on a different machine the number is different.
#
# ### All orders on one slip
#
# You know the cure from [L2](lectures/l2_the_cuda_model.py#many-orders-written-once-graphs): a **CUDA graph**. The
# orders of a step are the same every time, so they are written once and replayed. What changes from step to step, the
# token and the length so far, is in memory, at fixed places.
#
# /// source | src/course_models/graph.py
# fold: How a step is captured
# ///
#
# /// predict | The same kernels, the same bytes, in one graph. How close to the floor does that bring the step?
# The table above has everything that you need for a good guess.
#
# - [rate.graph / floor.rate < 0.35] A little closer
# - [0.35 <= rate.graph / floor.rate < 0.7] To about half
# - [rate.graph / floor.rate >= 0.7] Nearly all the way
# /// reveal
# {{ rate.graph / floor.rate:.0%}} of the floor: {{ rate.graph:.0f}} tokens/s.
#
# Plain PyTorch writes {{ rate.plain:.0f}}. Not one kernel is different, and the host is free after
# {{ decode.graph.host_us / decode.graph.T:.0f}} µs of each step.
#
# /// claim | decode.graph.us / decode.graph.T < 1.3 * kernels.plain.busy
# A step now takes {{ decode.graph.ms / decode.graph.T:.1f}} ms, little more than the time in which its kernels are at
# work. That is all that a graph can do.
# /// otherwise
# For {{ kernels.plain.busy / 1000:.1f}} ms of a plain step, a kernel was at work, by the profiler. In the graph a step
# takes {{ decode.graph.ms / decode.graph.T:.1f}} ms. The host is not the reason for what is left between the two, because
# the graph does not wait for it.
# ///
# ///
#
# ### What a graph cannot cure
#
# In the graph nothing waits for the host, and yet the bytes alone would need less time. Two causes are left.
#
# - **Small kernels.** Between two multiplies there are norms, turns, additions, a softmax: each moves a few kilobytes,
#   each has a start and an end, and while it runs nobody fetches weights.
# - **The multiplies themselves.** Does one row times a grid fetch its weights as fast as a plain copy does? This page
#   does not time them one by one. [W4](workshops/w4_serving.py#shorter-weights) does.
#
# `torch.compile` attacks the first cause: it reads the code of a layer and writes new kernels, in which everything between
# two multiplies is fused. We also give it the library's attention.
#
# /// claim | kernels.compiled.count < 0.8 * kernels.plain.count and decode.compiled.us < decode.graph.us
# It turns {{ kernels.plain.count:.0f}} kernels into {{ kernels.compiled.count:.0f}}, and in a graph they write {{ rate.compiled:.0f}}
# tokens/s: {{ rate.compiled / floor.rate:.0%}} of the floor.
# /// otherwise
# It turns {{ kernels.plain.count:.0f}} kernels into {{ kernels.compiled.count:.0f}}, and in a graph they write {{ rate.compiled:.0f}}
# tokens/s.
# ///

# %% [markdown]
# ## Ours, swap by swap
#
# And now our own kernels. Every part of the layer can be swapped for a different one that does the same, one at a time,
# so that we see what each one gains. First, a single part: attention.
#
# The pencil comes first, as always. What can a better attention save? Attention reads the cache, and the cache is
# {{ step.cache_gb:.2f}} of {{ step.gb:.2f}} GB. So even an attention kernel that read nothing would save {{ step.cache_gb / step.gb:.1%}}
# of the bytes. If a swap gains more than that, bytes are not the reason: plain attention is several small kernels, one
# after the other, that pass their scores on through memory.
#
# /// claim | decode.our_attention.us < decode.graph.us
# With our attention in place of the plain one, the graph writes {{ rate.our_attention:.0f}} tokens/s; the plain graph
# writes {{ rate.graph:.0f}}. That is a gain of {{ decode.graph.us / decode.our_attention.us - 1:.1%}}, for swapping
# one line.
# /// otherwise
# With our attention in place of the plain one, the graph writes {{ rate.our_attention:.0f}} tokens/s; the plain graph
# writes {{ rate.graph:.0f}}. The swap does not pay on this card.
# ///
#
# /// claim | decode.library.us > 0.97 * decode.graph.us
# PyTorch's own fused attention, SDPA, in the same place, writes {{ rate.library:.0f}} tokens/s, where the plain graph writes
# {{ rate.graph:.0f}}. Fusion alone is not a gain: in each of the {{ shape.layers:.0f}} layers SDPA takes {{ (decode.library.us - decode.graph.us) / decode.graph.T / shape.layers:.1f}}
# µs more than the small kernels that it replaces. SDPA has only one row of queries to spread over the card, and must
# look at a mask over all the room in the cache. This run counted nothing that could say whether these are the reasons.
# /// otherwise
# PyTorch's own fused attention, SDPA, in the same place, writes {{ rate.library:.0f}} tokens/s.
# ///
#
# ### Five kernels a layer
#
# Now the whole step. Look at what is left of a layer when everything that can travel together does: queries, keys and values, with
# the norm before them and the turn after them, straight into the cache; attention; the output and the sum; gate and up and what
# is between them; down and the sum. These are five kernels, and each reads its weights once. They read no more bytes than the
# floor counts.
#
# Then look at the seams. At the end of a kernel the last blocks run alone, and at the beginning of the next no block
# has any data yet. All that time memory is idle. But a weight is not the result of any kernel: it was there before. So
# the next kernel may begin while the previous one is still running, ask for its first weights, and wait with full hands
# for the numbers to multiply them by. CUDA calls that a *programmatic dependent launch*, and Hopper was the first
# architecture to have it [^cuda-dependent-launch]. In code it is a flag at the launch, which says that this kernel may
# begin early, and one line in the kernel, `griddepcontrol.wait`, after the first weights are asked for and before
# anything is read that the previous kernel wrote. A cook does the same when the pan goes on before the onions are cut.
#
# /// predict | What share of the floor, at the speed of a copy, does the step reach with five such kernels a layer?
# - [rate.our_step / floor.rate < rate.compiled / floor.rate] Less than with torch.compile
# - [rate.compiled / floor.rate <= rate.our_step / floor.rate < 0.75] More than that, less than three quarters
# - [rate.our_step / floor.rate >= max(0.75, rate.compiled / floor.rate)] Three quarters, or more
# /// reveal
# {{ rate.our_step / floor.rate:.0%}}: {{ rate.our_step:.0f}} tokens/s, where `torch.compile` writes {{ rate.compiled:.0f}}. Here
# are all of them:
#
# /// chart | bars
# title: "The same model, the same card: decode, one reader"
# x_label: tokens/s
# bars:
#   - {name: rate.plain, label: plain PyTorch}
#   - {name: rate.graph, label: in a CUDA graph}
#   - {name: rate.library, label: "graph, the library's attention"}
#   - {name: rate.compiled, label: "graph, torch.compile of the layers"}
#   - {name: rate.our_attention, label: "graph, our attention"}
#   - {name: rate.our_step, label: "graph, our five kernels a layer"}
# references:
#   - {label: "byte floor at the speed of a copy", value: floor.rate}
#   - {label: "byte floor by the data sheet", value: sheet.rate}
# alt: "Bars in tokens a second, for the 8B shape with random weights and one reader: plain PyTorch {{ rate.plain:.0f}}, in a CUDA graph {{ rate.graph:.0f}}, with the library's attention {{ rate.library:.0f}}, with torch.compile {{ rate.compiled:.0f}}, with our attention {{ rate.our_attention:.0f}}, with our five kernels a layer {{ rate.our_step:.0f}}. Two lines mark the byte floor: {{ floor.rate:.0f}} at the speed of a copy, {{ sheet.rate:.0f}} by the data sheet."
# caption: "The shape of Llama 3.1 8B, random weights, bf16, {{ context:.0f}} tokens in the cache. Later pages add bars of their own."
# ///
#
# /// table
# columns: [decode, "tokens/s", "of the floor, copy", "of the floor, data sheet"]
# rows:
#   - ["plain PyTorch", "{{ rate.plain:.0f}}", "{{ decode.plain.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.plain.of_peak:.0%}}"]
#   - ["in a CUDA graph", "{{ rate.graph:.0f}}", "{{ decode.graph.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.graph.of_peak:.0%}}"]
#   - ["graph, the library's attention", "{{ rate.library:.0f}}", "{{ decode.library.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.library.of_peak:.0%}}"]
#   - ["graph, torch.compile of the layers", "{{ rate.compiled:.0f}}", "{{ decode.compiled.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.compiled.of_peak:.0%}}"]
#   - ["graph, our attention", "{{ rate.our_attention:.0f}}", "{{ decode.our_attention.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.our_attention.of_peak:.0%}}"]
#   - ["graph, our five kernels a layer", "{{ rate.our_step:.0f}}", "{{ decode.our_step.gb_per_s / copy.gb_per_s:.0%}}", "{{ decode.our_step.of_peak:.0%}}"]
# ///
#
# /// define | rate.lighter = 1000000 / (decode.compiled.us / decode.compiled.T - (decode.library.us - decode.graph.us) / decode.graph.T)
# unit: tokens/s
# what: a forecast, tokens a second with torch.compile if it lost nothing to the library's attention, one reader
# ///
#
# /// claim | decode.compiled.us < decode.our_attention.us and decode.our_step.us < decode.compiled.us and rate.lighter < rate.our_step
# With one part swapped, `torch.compile` is ahead of us: it fuses everything between the multiplies. With the whole
# step ours, we are ahead of it, by {{ rate.our_step / rate.compiled - 1:.0%}}. Bear in mind what `torch.compile` has
# to carry: SDPA, which here takes {{ (decode.library.ms - decode.graph.ms) / decode.graph.T:.2f}} ms more per step than the
# plain attention. Without that, it would write about {{ rate.lighter:.0f}} tokens/s, still less than our
# {{ rate.our_step:.0f}}.
# /// otherwise
# One part swapped: {{ rate.our_attention:.0f}} tokens/s. The whole step: {{ rate.our_step:.0f}}. `torch.compile`: {{ rate.compiled:.0f}}.
# ///
#
# /// claim | rate.our_step / floor.rate >= 0.75
# {{ 1 - rate.our_step / floor.rate:.0%}} of the floor's speed is still missing. Why? Two things are not the reason.
# The clock: the card reported {{ decode.our_step.sm_mhz:.0f}} MHz while the step ran, and {{ decode.graph.sm_mhz:.0f}} MHz with
# the plain graph. The host: it is free after {{ decode.our_step.host_us / decode.our_step.T:.0f}} µs of a step
# of {{ 1000 * decode.our_step.ms / decode.our_step.T:,.0f}}. That leaves the seams. The step is
# {{ decode.our_step.ms / decode.our_step.T - floor.ms:.2f}} ms longer than the floor; spread over five kernels in
# each of {{ shape.layers:.0f}} layers that is
# {{ 1000 * (decode.our_step.ms / decode.our_step.T - floor.ms) / (5 * shape.layers):.1f}} µs for each, about as long
# as a kernel with next to nothing to do takes ([W4](workshops/w4_serving.py#two-kernels-or-one) has one of
# {{ w4.fused.decode.ours.us:.1f}} µs). So a kernel's beginning and end would explain all of it. That is arithmetic,
# not proof: every byte is read once by design, and this run did not count the bytes. [L7](lectures/l7_profiling.py) has the
# counter that would.
# /// otherwise
# And it is not enough. {{ 1 - rate.our_step / floor.rate:.0%}} of the floor's speed is missing:
# {{ decode.our_step.ms / decode.our_step.T - floor.ms:.2f}} ms per step. Every byte is read once by design, and this run did
# not count the bytes. A kernel that reads its weights in the right order and still waits has too little in flight,
# or waits for its own warps: [L7](lectures/l7_profiling.py) has the questions to ask.
# ///
# ///

# %% [markdown]
# ## Prefill: the same weights, a thousand rows
#
# Now take the other way through the model: a prompt of {{ context:.0f}} tokens at once. First by hand. Each weight is used for one
# multiply-add per row, that is, two operations; attention adds some. What is the limit, bytes or arithmetic?

# %%
record(
    peak=quantity(sheet.peak_tflops["bf16"], "TFLOP/s", "given"),
    work=quantity(prefill_flops(c, 1, CONTEXT) / 1e12, "TFLOP"),
)

# %% [markdown]
# | by hand | value |
# |---|---:|
# | operations | {{ work:.2f}} TFLOP |
# | their least time: {{ work:.2f}} TFLOP ÷ {{ peak:.0f}} TFLOP/s | {{ work / peak * 1000:.1f}} ms |
# | least time of the weights: {{ weights.gb:.2f}} GB ÷ {{ bandwidth:.0f}} GB/s | {{ weights.gb / bandwidth * 1000:.1f}} ms |
#
# The arithmetic takes longer, so it is the limit. A decode step reads the same weights for one row; here {{ context:.0f}}
# rows share them.
#
# /// predict | With torch.compile the model writes {{ rate.compiled:.0f}} tokens/s. How many times as many does it read in a prefill?
# - [per_token < 4] About as many, or three times as many
# - [4 <= per_token < 40] Some ten or twenty times as many
# - [per_token >= 40] Far more than that
# /// reveal
# {{ per_token:.0f}} times as many: the same weights come from memory, and {{ context:.0f}} rows use them instead of one. The prefill
# reaches {{ prefill.compiled.of_peak:.0%}} of the tensor cores' peak, {{ prefill.compiled.tflops:.0f}} TFLOP/s, in {{ prefill.compiled.ms:.1f}} ms.
#
# Now ask whose time this is. In all {{ prefill.compiled.n:.0f}} samples the GPU had to wait for the host somewhere, so part of the
# time may be the host's. Here it is not: in [a CUDA graph](multiply_on_hopper.py#whose-clock), where nobody waits for the
# host, the same prefill takes {{ by_size.swap.compiled.ms:.1f}} ms. Plain PyTorch is a different case. It takes
# {{ prefill.plain.ms:.0f}} ms to carry out its orders, with many more kernels to order, and its samples are far
# apart: the interval reaches {{ prefill.plain.spread:.0%}} of the value to either side. A bar for it would tell you about the
# host, so there is none on this page. [The multiply, size by size](multiply_on_hopper.py#in-the-model) swaps the
# kernels of [W2](workshops/w2_hopper.py) and of [attention](attention_on_hopper.py) into the prefill one by one, each in a
# graph: {{ by_size.swap.both.tflops:.0f}} TFLOP/s with both.
# ///
#
# /// define | rate.prefill = 1000000 * prefill.compiled.N / prefill.compiled.us
# unit: tokens/s
# what: tokens a second that a prefill reads, torch.compile, one prompt
# ///
#
# /// define | per_token = rate.prefill / rate.compiled
# unit: ×
# what: tokens a second that a prefill reads over tokens a second that decoding writes, torch.compile, one prompt
# ///

# %%
record(prefill=bench.prefill(model, tokens=CONTEXT))

# %% [markdown]
# ## Before you go
#
# /// exercise | The whole floor, by yourself | 8 minutes
# Take a pencil, and nothing but the shapes: no record, no page. A model has 16 layers, a width of 2048, 32 query heads and 8 key
# heads of 64 numbers, 8192 numbers in the middle, a vocabulary of 128 000, and bf16.
#
# 1. How many weights does one layer have? (Leave out the norms.)
# 2. How many bytes must a step read, with an empty cache?
# 3. How many bytes does a token leave in the cache?
# 4. How many tokens must the cache hold before a step reads as many bytes from it as from the weights?
# /// answer
# 1. Queries and the grid after attention: 2 × 2048 × 2048 = 8 388 608. Keys and values: 2 × 2048 × 512 = 2 097 152.
#    Feed-forward: 3 × 2048 × 8192 = 50 331 648. Together 8 388 608 + 2 097 152 + 50 331 648 = 60 817 408.
# 2. 16 × 60 817 408 = 973 078 528, and the head, 128 000 × 2048 = 262 144 000. Together
#    973 078 528 + 262 144 000 = 1 235 222 528, two bytes each: about 2.47 GB.
# 3. 2 × 16 × 8 × 64 × 2 = 32 768 bytes.
# 4. 2 470 445 056 ÷ 32 768 = 75 392 tokens. A whole book.
# ///
#
# /// exercise | Two changes | 5 minutes
# Return to our model and its floor of {{ floor.ms:.2f}} ms per step. Work out the floor at the speed of the copy,
#
# 1. with 8191 tokens in the cache instead of {{ context:.0f}};
# 2. with 32 readers in one step, each with {{ context:.0f}} tokens of their own. How many tokens/s is that, for all of
#    them together?
# /// answer
# 1. The weights stay the same, the cache holds 8191 tokens: {{ step.gb_long:.2f}} GB ÷
#    {{ copy.gb_per_s:.0f}} GB/s =
#    {{ step.gb_long / copy.gb_per_s * 1000:.2f}} ms. For one reader, a long memory costs little.
# 2. The weights are read once for all readers, and each reader's cache for that reader alone: {{ step.gb_32:.2f}} GB ÷
#    {{ copy.gb_per_s:.0f}} GB/s = {{ step.gb_32 / copy.gb_per_s * 1000:.2f}}
#    ms, in which 32 tokens are written: {{ 32000 / (step.gb_32 / copy.gb_per_s * 1000):.0f}}
#    tokens/s at the floor. Why that is so cheap, and when it stops, is what serving is about.
# ///
#
# **You can now** draw the road of a token with every grid on it; work out a norm, a turn, a share and a door by hand;
# say what a step must read, and turn that into tokens a second before anybody runs anything; and tell a model that
# waits for its host from one that waits for its bytes.

# %% [markdown]
# ## Where this leads
#
# - [Attention](lectures/l8_attention.py) takes the five lines apart, and shows the square
#   in the middle that nobody asked for.
# - [FlashAttention from scratch](workshops/w1_flash_attention.py) makes that square go away.
# - [A small model](a_small_model.py) does make sense, and is small enough to be trained while the site is measured.
# - [The workshop on serving](workshops/w4_serving.py) has many readers at once, a cache cut into pages, and a lab in which you build one. [An
#   engine](an_engine.py) puts all of it together.
# - [The ledger](numbers.md) lists every number above, with its spread and the run that it comes from.
