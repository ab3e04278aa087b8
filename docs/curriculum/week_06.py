# ---
# id: week_06
# title: "Week 6: serving"
# search: {rank: 2}
# nav: "6 · Serving"
# description: "From one reader to 64: tokens a second, the first token, and the batch at which arithmetic would take over; and how many readers fit on a card, reserved or in pages."
# ---

# %% [markdown]
# # Week 6: serving
#
# /// week
# ///
#
# By the end of this week you can
#
# - say what a step of a server waits for, from its rows alone, and from which batch on that changes;
# - work out how many readers fit on a card, with room reserved and with pages;
# - say what continuous batching gains, and on which queue it gains nothing.
#
# ## Why this week
#
# A server has the same kernels as a model that runs for you alone, and yet its percent of peak is decided elsewhere: by how many rows a step has. Rows need readers, readers need room, and room is
# the cache. This week you follow that chain, and ask of each link *what percent of what could be there is there, and why not more?*
#
# ## Before you begin
#
# - How many bytes does a token leave in the cache? [Week 3](week_03.py#ideas), or [W4](../workshops/w4_serving.py#what-a-server-must-remember).
# - Which heads count in it? [Week 4](week_04.py#ideas).
# - What does rounding to four bits do to bytes, and to answers? [Week 5](week_05.py), or [what the bits cost](../workshops/w4_serving.py#what-the-bits-cost).
# - What is the ridge of a card? [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
#
# ## Read
#
# /// reading
# kwon2023: "Take the picture of reserved room, and the block table. What pages save is room, not time; room makes rows. The paper's kernel is older than FlashAttention-2: today's servers take theirs from libraries."
# yu2022: "Take two ideas: plan after every step, and give attention to each request by itself. Its title says *generative models*; lists often write *LLMs*. What it compares with ran whole batches."
# anyscale2023: "Read it for its pictures of a batch with holes. Mind its number: 23 times is vLLM, so continuous batching *and* pages, against static batches [^anyscale2023]. It is no gain of continuous batching alone."
# vllm-arch: "Follow one request from the entry point through scheduler and worker. Names move from release to release: the page of the release that you run is the one to read."
# zheng2024: "Take the tree of beginnings, *RadixAttention*: who shares a beginning of a prompt shares its cache. Its gains are of tasks that share much; yours may share less."
# ///
#
# ## Ideas
#
# - Why do prefill and decode wait for different things? [Two rhythms](../workshops/w4_serving.py#two-rhythms-in-one-kitchen) and [operations for each byte](../workshops/w4_serving.py#operations-for-each-byte). *Prefill is compute-bound, decode is memory-bound* is right as long as prompts are long and groups of heads small: [when it is not](../workshops/w4_serving.py#does-decode-always-wait-for-bytes).
# - Time to first token (TTFT) and time per output token (TPOT): who needs which? [Three numbers](../an_engine.py#three-numbers-and-who-needs-them).
# - What is continuous batching, or iteration-level scheduling? [The coach and the bus](../workshops/w4_serving.py#the-coach-and-the-bus).
# - How does PagedAttention find a key by a block table? [Reserved, or a page at a time](../workshops/w4_serving.py#reserved-or-a-page-at-a-time) and [follow the table](../workshops/w4_serving.py#follow-the-table). It is virtual memory for the cache.
#
# /// idea | Do pages limit fragmentation to less than 4 %?
# So vLLM's makers report, where 60 to 80 % were wasted before [^vllm2023]. But it is a share of *your* lengths. A request leaves part of its last page empty, half a page on average: with pages of 16 tokens that is {{ empty.t1000:.1%}} of what a request of 1000 holds,
# and {{ empty.t50:.0%}} at 50. Smaller pages waste less, and make longer tables.
# ///
#
# /// idea | vLLM or SGLang?
# Both plan after each step, both keep the cache in pages, and both share what two prompts have in common. They find it in different ways: SGLang keeps all beginnings in a radix tree [^zheng2024], vLLM knows each full block by a hash of it and of all before it [^vllm-prefix]. SGLang began with a language for
# programs that call a model often, and with fast answers of a given form. Which of them is faster changes with each release: replay your own requests, on both, and read their percent of peak.
# ///
#
# ## Do
#
# The task is to serve a model of eight billion weights and to sweep the batch from 1 to 64. It is often given with vLLM; here with the course's own steps and [engine](../an_engine.py), since you can read them. The shape is that of Llama 3.1 8B, the weights are random, and what was run was run on {{ gpu.name }}.
#
# /// define | sweep = readers * w6.verify.b1.t1.us / w6.verify.b64.t1.us
# unit: ×
# what: tokens in a second with 64 readers over those with one, 8B shape, 1024 tokens in the cache of each
# ///
#
# /// when | w6.cached.heads > 0
# /// predict | 64 readers in place of one. By what factor do the tokens of a second grow?
# - [sweep < 8] Less than 8
# - [8 <= sweep < 28] 8 to 28
# - [28 <= sweep < 56] 28 to 56
# - [sweep >= 56] 56 or more: nobody waits for anybody
# /// reveal
# {{ sweep:.0f}}. The weights are fetched once for all, but each reader's cache is her own.
#
# | readers | a step, ms | tokens in a second | cache read, GB |
# | ---: | ---: | ---: | ---: |
# | 1 | {{ w6.verify.b1.t1.us / 1000:.1f}} | {{ 1000000 / w6.verify.b1.t1.us:,.0f}} | {{ 1 * held:.1f}} |
# | 8 | {{ w6.verify.b8.t1.us / 1000:.1f}} | {{ 8 * 1000000 / w6.verify.b8.t1.us:,.0f}} | {{ 8 * held:.1f}} |
# | 16 | {{ w6.verify.b16.t1.us / 1000:.1f}} | {{ 16 * 1000000 / w6.verify.b16.t1.us:,.0f}} | {{ 16 * held:.1f}} |
# | 32 | {{ w6.verify.b32.t1.us / 1000:.1f}} | {{ 32 * 1000000 / w6.verify.b32.t1.us:,.0f}} | {{ 32 * held:.1f}} |
# | 64 | {{ w6.verify.b64.t1.us / 1000:.1f}} | {{ 64 * 1000000 / w6.verify.b64.t1.us:,.0f}} | {{ 64 * held:.1f}} |
#
# Each reader has 1024 tokens in the cache, bf16, in a CUDA graph. It is the plain step of [W6](../workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss), not our fastest: with five kernels a layer, [W4](../workshops/w4_serving.py#a-step-against-its-floor) needs {{ w4.full.our_step.ms / w4.full.our_step.T:.1f}} ms for 32 readers.
# ///
# /// otherwise
# Nobody has swept it on this card yet. The weights are fetched once for all readers, and each reader's cache is her own: with 1024 tokens in it, {{ 1 * held:.1f}} GB for one and {{ 64 * held:.1f}} GB for 64, at every step. So the tokens of a second grow by less than 64. Say by how much, and let [W6](../workshops/w6_frontier.py#from-which-batch-on-is-it-a-loss) measure it.
# ///
#
# *At which batch does arithmetic take over?* The question sounds as if it came between 1 and 64. A *grid* of weights, one matrix that all rows of the batch meet, crosses the ridge at some hundreds of rows: [the crossing, measured](../workshops/w4_serving.py#the-crossing-measured). So none of these batches is there, and attention over a cache
# never gets there by adding readers. What flattens the growth is the caches, which every step reads; with long texts room ends it, before arithmetic does.
#
# /// when | w4.crosses > 0
# By the pencil it is at {{ w4.crosses:.0f}} rows on this card, by the clock at {{ w4.turns:.0f}}.
# ///
#
# /// when | engine.queue.seats > 0
# The first token is another matter, since a queue stands before it. Here are {{ engine.queue.count:.0f}} requests on {{ engine.queue.seats:.0f}} seats, all there from the beginning, in static batches (the coach) and in continuous ones (the bus):
#
# /// part | docs/an_engine.py#the-race | table
# ///
# /// otherwise
# The first token is another matter, since a queue stands before it. [Our engine](../an_engine.py#the-race) races static batches, the coach, against continuous ones, the bus.
# ///
#
# Now the room. The cell works it out for the milestone, and draws a queue with lengths as they are in life: many short, few long.

# %%
import heapq

import numpy as np
from course_kernels.measure import quantity, record

LAYERS, HEADS, HEAD, WIDTH, HIDDEN, WORDS = 32, 32, 128, 4096, 11008, 32000
CARD, KEPT_FREE, LONGEST, PAGE = 80e9, 0.1, 2048, 16

token = 2 * LAYERS * HEADS * HEAD * 2  # bytes in the cache: no heads shared
grids = LAYERS * (4 * WIDTH * WIDTH + 3 * WIDTH * HIDDEN)
# Four bits and a scale of 16 for every 128 weights; embedding and head in 16 bits.
weights = grids * (4 + 16 / 128) / 8 + 2 * 2 * WORDS * WIDTH
room = (1 - KEPT_FREE) * CARD - weights

drawn = np.random.default_rng(6).lognormal(5.5, 1.0, 4096)
lengths = np.clip(drawn.astype(int), 16, LONGEST)  # tokens when the answer is done


def fits(places):
    """Requests of the queue, from its head, whose places fit into the room."""
    return int((np.cumsum(places) * token <= room).sum())


def pages(tokens, page=PAGE):
    """Places in whole pages."""
    return -(-tokens // page) * page


def half_empty(tokens):
    """Share of a request's places that is empty, half a page on average."""
    return PAGE / 2 / (tokens + PAGE / 2)


fit = {
    "reserved": fits(np.full(len(lengths), LONGEST)),
    "paged": fits(pages(lengths)),
    "ideal": fits(lengths),
}


def static(answers, seats):
    """Steps when a batch ends as a whole."""
    return sum(max(answers[i : i + seats]) for i in range(0, len(answers), seats))


def continuous(answers, seats):
    """Steps when a free seat is taken at once."""
    ends = [0] * seats
    for answer in answers:
        heapq.heappush(ends, heapq.heappop(ends) + answer)
    return max(ends)


SEATS = fit["reserved"]
answers = [int(length) for length in lengths]
same = [300] * len(answers)
steps = {
    "static": static(answers, SEATS),
    "continuous": continuous(answers, SEATS),
}
record(
    held=quantity(2 * 32 * 8 * 128 * 2 * 1024 / 1e9, "GB"),  # 1024 tokens, 8B shape
    readers=quantity(64, how="given"),  # the most of the sweep
    empty={"t50": quantity(half_empty(50)), "t1000": quantity(half_empty(1000))},
    fit={name: quantity(count) for name, count in fit.items()},
    bytes={
        "weights": quantity(weights / 1e9, "GB"),
        "plain": quantity(grids / 2 / 1e9, "GB"),
        "room": quantity(room / 1e9, "GB"),
        "token": quantity(token / 1024),
        "sequence": quantity(LONGEST * token / 1e9, "GB"),
        "all": quantity((CARD - weights) // (LONGEST * token), how="counted"),
    },
    queue={
        "count": quantity(len(lengths)),
        "mean": quantity(float(lengths.mean())),
        "median": quantity(float(np.median(lengths))),
    },
    unused={
        "reserved": quantity(1 - float(lengths.mean()) / LONGEST),
        "paged": quantity(1 - lengths.sum() / pages(lengths).sum()),
    },
    gain=quantity(steps["static"] / steps["continuous"]),
    seats={
        name: quantity(sum(answers) / SEATS / count)
        for name, count in steps.items()
    },
    no_gain=quantity(static(same, SEATS) / continuous(same, SEATS)),
)

# %% [markdown]
# /// predict | 2048 tokens reserved for everybody, or pages of 16. How many times as many of these requests fit with pages?
# Their median length is {{ queue.median:.0f}} tokens.
#
# - [fit.paged / fit.reserved < 1.5] Less than 1.5 times
# - [1.5 <= fit.paged / fit.reserved < 3] 1.5 to 3 times
# - [fit.paged / fit.reserved >= 3] 3 times or more
# /// reveal
# {{ fit.paged / fit.reserved:.1f}} times: {{ fit.paged:.0f}} in place of {{ fit.reserved:.0f}}. Without any waste {{ fit.ideal:.0f}} would fit. Of reserved room {{ unused.reserved:.0%}} is empty when the answers are done, of pages {{ unused.paged:.1%}}.
# ///
#
# ## Milestone
#
# It is of weeks 5 and 6 together.
#
# /// exercise | Who fits, and for how long | 6 minutes
# Llama 2 7B on one A100 of 80 GB, its weights in four bits. (1) How much room is left for the cache? (2) How many sequences of 2048 tokens fit? (3) Why does a server with continuous batching make more of them than one with static batches?
# /// answer
# 1. The grids take {{ bytes.plain:.1f}} GB at four bits. With a scale of 16 bits for each 128 weights, and embedding and head in 16 bits, it is {{ bytes.weights:.1f}} GB. Keep a tenth of the card free for activations and graphs: {{ bytes.room:.0f}} GB are left.
# 2. A token takes 2 · 32 · 32 · 128 · 2 bytes, {{ bytes.token:.0f}} KiB, since all heads have keys of their own; 2048 tokens take {{ bytes.sequence:.2f}} GB. So {{ fit.reserved:.0f}} fit, {{ bytes.all:.0f}} if nothing is kept free. With shorter numbers in the cache, or with heads that share keys, more would fit.
# 3. A static batch ends with its longest answer. In the queue above, on {{ fit.reserved:.0f}} seats, {{ seats.static:.0%}} of the seats have somebody in them, in the mean over all steps. With continuous batching it is {{ seats.continuous:.0%}}. So static batches take {{ gain:.1f}} times as many steps. Where all answers are equally long the factor is {{ no_gain:.1f}}:
#    nothing to gain.
#
# /// when | engine.queue.seats > 0
# Our engine, on its own queue and a card, gained {{ engine.gain_last:.1f}} times.
# ///
# ///
#
# ## What could not run here
#
# vLLM and SGLang were not run: their steps are captured for many sizes, with kernels that ours lacks, and may be shorter. The shape of the table would be the same: many more tokens in a second, steps that grow slowly, and a first token that waits for its turn. On your own card, with random weights, type
#
# ```
# nox -s serve-model -- "def main(" "A list is" --pages 24
# vllm bench latency --model MODEL --load-format dummy --batch-size 64
# ```
#
# ## What next
#
# [Week 7](week_07.py) gives one model to several cards.
