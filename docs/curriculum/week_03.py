# ---
# id: week_03
# title: "Week 3: arithmetic of a transformer"
# search: {rank: 2}
# nav: "3 · Model sums"
# description: "Parameters, bytes and operations of a whole model from six numbers, with a pencil and checked by the build; and what a longer sequence costs."
# ---

# %% [markdown]
# # Week 3: arithmetic of a transformer
#
# /// week
# ///
#
# By the end of this week you can
#
# - write down a model's parameters, its bytes and its operations from six numbers of its shape;
# - say where *6 times parameters times tokens* comes from, and when it is too little;
# - say what a doubled sequence does to the work, and to the memory.
#
# ## Why this week
#
# A roofline needs two numbers, bytes and operations, and nobody hands them to you for a whole model. This week you work them out from its shape,
# before anything runs. So you know what a perfect kernel would still have to pay, and that is what *percent of peak* is a percent of.
#
# ## Before you begin
#
# - What is a ridge point? [Week 1](week_01.py), or [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
# - Which seven grids of weights does a layer multiply with? [One token](../one_token.py#what-it-weighs).
# - Which roads lie between a multiplier and HBM? [Week 2](week_02.py), or [L3](../lectures/l3_memory.py#how-far-is-it).
#
# ## Read
#
# /// reading
# transformer-math: "Take its equation for training, and its list of what fills a card's memory besides the weights. Of inference it says little: for a model at work it takes the weights and a fifth more, and it has no word on the cache of keys and values, which can be larger than that."
# brown2020: "Section 2 alone: a table of shapes. Work out the parameters of its last row: two grids in the feed-forward block, which is four times as wide as the model; one table of 50 257 words, which is the head as well; and a number for each of 2048 positions and of the width. See whether you find the paper's number. The smaller rows are rounded more roughly. Later models were trained on far more tokens for each parameter."
# kaplan2020: "Take the form of the curves, straight lines on two logarithmic axes. Its advice on how to divide a budget between parameters and tokens was corrected by the paper on Chinchilla, which week 24 reads."
# scaling-book-transformers: "The chapter is the fourth, after rooflines, TPUs and sharding. Work the problems that need no other chapter: the one on sharding can wait for week 7, and where a TPU's bandwidth is asked for, take your card's. It takes F = 4D and leaves the head out, so attention crosses elsewhere than in our sums. One note in it says that Llama 2 has two matrices in its feed-forward block: count below whether it can."
# ///
#
# ## Ideas
#
# /// idea | Where are the parameters of a transformer?
# All but the norms' stand in grids. A layer of width $D$ has four grids for attention, of queries, keys, values and the output, and three of
# $D \times F$ for the feed-forward block, where $F$ is the hidden width. Such a block is called *gated*; an older one, GPT-3's, has two grids. With the embedding and the head, a table of $V \times D$ each, that is all but a hair: norms have $D$ each. (Where the two share one table, as in GPT-3, it counts once.)
# ///
#
# /// idea | Why 2ND to infer, and 6ND to train?
# A parameter meets each token once, and multiplies and adds: two operations. Backwards there are two more multiplies of the same size, one for the gradient of what came in, and
# one for the gradient of the grid itself: four. Two and four are six, for each of $N$ parameters and each token; here $D$ is the count of tokens. Attention's scores are no parameters, and are left out.
# ///
#
# /// idea | How many bytes does the KV cache take?
# Two, for keys and values, times layers, times *key* heads, times numbers in a head, times tokens, times bytes in a number. Often you read *heads*, and that is right only
# where every query head has a key head of its own. [W4](../workshops/w4_serving.py#what-a-server-must-remember) has it in a table.
# ///
#
# /// idea | What is model FLOPs utilisation?
# MFU is a percent of peak for a whole model: the operations that the model *must* do for the tokens that went through, $6ND$ of them and attention's scores where a sequence is long, divided by the time and by the card's peak. What you
# compute twice on purpose, to save memory, does not count.
# ///
#
# /// idea | What did Chinchilla add to scaling laws?
# Scaling laws say how a model's loss falls with parameters, data and work [^kaplan2020]. With a fixed budget of work you can have many parameters and few tokens, or few and many. Chinchilla's point is where the two are in balance.
# Week 24 reads it, and the [small model](../a_small_model.py) lets you see one of the curves.
# ///
#
# - What does a longer sequence cost, in work and in cache? That is this week's milestone.
#
# ## Do
#
# Llama 2 7B has 32 layers, 32 heads of queries and as many of keys, each of 128 numbers, a width of 4096, a hidden width of 11008 and a vocabulary of
# 32000 [^verl-llama2]. Take paper. How many parameters? How many bytes in bf16? How many bytes of cache for 32 sequences of 2048 tokens, and how many operations is a forward pass of them?

# %%
LAYERS, HEADS, HEAD, WIDTH, HIDDEN, WORDS = 32, 32, 128, 4096, 11008, 32000
BATCH, TOKENS, BYTES = 32, 2048, 2  # sequences, tokens of each, of a number in bf16


def parameters(grids_of_feed_forward=3):
    """All of them, with as many grids in the feed-forward block."""
    attention = 4 * WIDTH * HEADS * HEAD
    feed_forward = grids_of_feed_forward * WIDTH * HIDDEN
    norms = (2 * LAYERS + 1) * WIDTH
    return LAYERS * (attention + feed_forward) + norms + 2 * WORDS * WIDTH


def cache(tokens):
    """Bytes of keys and values of the whole batch."""
    return 2 * LAYERS * HEADS * HEAD * BYTES * BATCH * tokens


def grids(tokens):
    """Operations of all grids that multiply; the embedding is looked up."""
    return 2 * (parameters() - WORDS * WIDTH) * BATCH * tokens


def scores(tokens):
    """Operations of attention: each query with each key, and once more with each value."""
    return 2 * 2 * LAYERS * HEADS * HEAD * BATCH * tokens * tokens


# %% tags=["fold"]
from course_kernels.measure import quantity, record

total = parameters()
record(
    parameters=quantity(total / 1e9),
    with_two=quantity(parameters(2) / 1e9),
    of_feed_forward=quantity(3 * LAYERS * WIDTH * HIDDEN / total),
    weights=quantity(BYTES * total / 1e9, "GB"),
    cache=quantity(cache(TOKENS) / 1e9, "GB"),
    cache_over_weights=quantity(cache(TOKENS) / (BYTES * total)),
    grids=quantity(grids(TOKENS) / 1e12),
    scores=quantity(scores(TOKENS) / 1e12),
    rule=quantity(2 * total * BATCH * TOKENS / 1e12),
    twice={
        "grids": quantity(grids(2 * TOKENS) / grids(TOKENS)),
        "scores": quantity(scores(2 * TOKENS) / scores(TOKENS)),
        "cache": quantity(cache(2 * TOKENS) / cache(TOKENS)),
    },
    equal=quantity(TOKENS * grids(TOKENS) / scores(TOKENS)),
    peak=quantity(989.4, "TFLOP/s", how="given"),
    least=quantity((grids(TOKENS) + scores(TOKENS)) / 989.4e12, "s"),
)

# %% [markdown]
# /// predict | Which is larger, the weights, or the cache of 32 sequences of 2048 tokens?
# - [cache_over_weights < 0.8] The weights
# - [0.8 <= cache_over_weights < 1.25] About the same
# - [cache_over_weights >= 1.25] The cache
# /// reveal
# The weights take {{ weights:.1f}} GB. The cache takes {{ cache:.1f}} GB, {{ cache_over_weights:.1f}} times as much, since this model shares no heads. A server
# for many readers is a machine for caches.
# ///
#
# | part | by hand |
# | --- | --- |
# | parameters | {{ parameters:.2f}} billion, {{ of_feed_forward:.0%}} of them in feed-forward blocks |
# | the same with two grids in such a block | {{ with_two:.2f}} billion, so there must be three |
# | operations of all grids | {{ grids:.0f}} · 10¹² |
# | of attention's scores | {{ scores:.0f}} · 10¹² |
# | *2ND* says | {{ rule:.0f}} · 10¹² |
#
# The published model has 6,738,415,616 parameters [^verl-llama2]. The rule of thumb counts the embedding, which is looked up and not multiplied, and leaves the scores out. At this length the two errors are small. They are not always:
# at {{ equal:,.0f}} tokens the scores are as much work as all grids. With a causal mask half of the pairs fall away, and it takes twice as many. Training triples both, backwards as forwards, so *6ND* falls short at the same lengths.
#
# At the H100's dense peak in bf16, {{ peak:.1f}} TFLOP/s [^lockwood-h100], nothing does this forward pass, all pairs of it, in less than {{ least:.2f}} s. That is the floor, and [W4](../workshops/w4_serving.py) is about who comes near one.
#
# ## Milestone
#
# /// exercise | Twice the length | 10 minutes
# You have the same 32 sequences, each with 4096 tokens in place of 2048. By what factor do the operations of the grids grow, those of the scores, and the bytes of the cache? Write out why.
# /// answer
# A token goes through the same grids whoever stands beside it: twice the tokens are {{ twice.grids:.0f}} times the operations. In attention each of $T$ queries meets each of $T$ keys, $T^2$ pairs, two operations for each of a head's numbers, and
# once more with the values: {{ twice.scores:.0f}} times. The cache keeps a key and a value for each token, once, whoever asks for it: {{ twice.cache:.0f}} times.
# With a causal mask half of the pairs fall away, and the square stays.
# ///
#
# ## What could not run here
#
# Nothing: this week is arithmetic. The build works it out again each time, and a test holds the parameters against the published count.
#
# ## What next
#
# [Week 4](week_04.py) asks what attention's square costs in bytes, and how to leave it unwritten.
