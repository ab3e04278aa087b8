# ---
# id: w4
# title: Inference-serving kernels
# nav: "W4 · Serving"
# description: Prefill and decode under one roof, the cache in pages, a fused kernel and its receipt, short weights and where they stop paying, and why a server's kernels must cope with any number of rows.
# needs: [capability 9.0, counters]
# ---

# %% [markdown]
# # Inference-serving kernels
#
# *Two rhythms: the banquet and the trickle.*
#
# By the end of this page you can
#
# - tell from the number of rows alone whether a multiply waits for bytes or for arithmetic, and where that changes;
# - work out how much room one token takes in a model's cache, and how many places a server leaves empty, with reservations
#   and with pages;
# - read a paged attention kernel, and type its one new line;
# - type a fused kernel, and write its receipt: trips before, trips after;
# - say which of three medicines a slow server needs: *more rows*, *fewer trips*, or *shorter numbers*.
#
# You need [one token](../one_token.py), the page that takes a model apart, and [the roofline](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
# [The end of this page](#build-it-a-cache-in-pages) has a lab that needs no GPU.
#
# If you are an hour short, read [operations for each byte](#operations-for-each-byte), [reserved, or a page at a time](#reserved-or-a-page-at-a-time),
# [the receipt](#the-receipt) and [three patients](#three-patients).

# %% [markdown]
# ## Two rhythms in one kitchen
#
# A prompt comes in all at once: **prefill**, thousands of rows together. The answer goes out one token at a time: **decode**, one
# row for each user. For a multiply only one thing differs between the two, the number of rows. The weights are the same, and so
# is the card. Call that number M, and watch it. (Attention changes its shape as well, from a square to one row against the
# cache; see [further down](#does-decode-always-wait-for-bytes).)
#
# In the kitchen, these are the banquet and the trickle. At the banquet two hundred guests sit down together, and each
# pot that comes up from the pantry fills two hundred plates. In the trickle somebody orders a single bite, and for that
# bite the whole pantry comes down the hall.
#
# /// figure | docs/assets/figures/banquet_and_trickle.svg
# alt: A restaurant with two rhythms. Prefill is a banquet, many plates from one pot and busy cooks; decode is a trickle, one bite at a time, and the cooks wait for bytes.
# caption: Same pots, same cooks. Only the number of guests differs.
# ///
#
# /// exercise | Two shapes | 2 minutes
# Draw both: M rows times a grid, and one row times the same grid. Under each, write how many multiply-adds you get out of one
# fetched weight. Then say: is decode slow because its matrix is small?
# /// answer
# M, and 1. No: both multiply by the same grid of weights. Decode just has few rows.
# ///

# %% [markdown]
# ## Operations for each byte
#
# The grid has 8192 × 8192 weights in bf16, two bytes each, and M rows are multiplied by it. Operations: 2 · M · N · K. Bytes:
# rows in, weights, rows out. Divide, and the twos cancel:
#
# $$\text{intensity} = \frac{M N K}{M K + K N + M N}$$
#
# Compare it with the card's [ridge](../lectures/l1_what_a_gpu_is.py#the-first-roofline), the number of operations that the card
# can do for each byte that it moves: {{ sheet.peak:.0f}} TFLOP/s divided by {{ sheet.bandwidth:,.0f}} GB/s, which is {{ ridge:.0f}}
# operations.
#
# /// define | ridge = 1000 * sheet.peak / sheet.bandwidth
# unit: FLOP/B
# what: bf16 operations that the card can do for each byte that it can read or write, by its data sheet
# ///
#
# /// predict | From how many rows on does this layer wait for arithmetic?
# First fill in six rows of a table yourself: M = 1, 16, 64, 256, 1024 and 4096.
#
# - [crosses < 12] A handful
# - [12 <= crosses < 120] Some dozens
# - [120 <= crosses < 1200] Some hundreds
# - [crosses >= 1200] Thousands
# /// reveal
# From {{ crosses:.0f}} rows on.
#
# /// table
# columns: [rows, operations per byte, "over the ridge"]
# rows:
#   - ["1", "{{ row.m1:.1f}}", "{{ row.m1 / ridge:.3f}}"]
#   - ["16", "{{ row.m16:.1f}}", "{{ row.m16 / ridge:.3f}}"]
#   - ["64", "{{ row.m64:.1f}}", "{{ row.m64 / ridge:.3f}}"]
#   - ["256", "{{ row.m256:.1f}}", "{{ row.m256 / ridge:.3f}}"]
#   - ["1024", "{{ row.m1024:.1f}}", "{{ row.m1024 / ridge:.3f}}"]
#   - ["4096", "{{ row.m4096:.1f}}", "{{ row.m4096 / ridge:.3f}}"]
# caption: Below 1, bytes are the limit; above 1, arithmetic is. N = K = 8192, bf16.
# ///
# ///
#
# For few rows the answer is nearly M itself: almost all bytes are weights, and each weight, two bytes, is used for 2 ·
# M operations. For many rows the answer is less than M, because by then the bytes of the rows matter as well. That is
# why the crossing comes a few rows above the ridge.

# %% tags=["fold"]
import torch
from course_kernels.gemm import library
from course_kernels.measure import compare, measure, quantity, record, trace
from course_kernels.measure.machine import machine_for
from course_kernels.problem import Workload

card = torch.cuda.get_device_name()
data_sheet = machine_for(card)
if data_sheet is None:
    raise RuntimeError(
        f"{card}: no data sheet in course_kernels/measure/machine.py"
    )
PEAK, BANDWIDTH = data_sheet.peak_tflops["bf16"], data_sheet.bandwidth_gb_per_s
RIDGE = 1000 * PEAK / BANDWIDTH
N = K = 8192


def intensity(M):
    """Operations for each byte: M rows times the grid, in bf16."""
    return M * N * K / (M * K + K * N + M * N)


record(
    sheet={
        "peak": quantity(PEAK, "TFLOP/s", "given"),
        "bandwidth": quantity(BANDWIDTH, "GB/s", "given"),
    },
    row={
        f"m{M}": quantity(intensity(M), "FLOP/B")
        for M in (1, 16, 64, 256, 1024, 4096)
    },
    crosses=quantity(RIDGE / (1 - RIDGE * (1 / N + 1 / K)), "rows"),
)

# %% [markdown]
# ## The crossing, measured
#
# Now we measure cuBLAS on this one grid, from one row to 4096.
#
# /// predict | 64 rows are 64 times the work of one. How much longer do they take?
# Write it down before you choose.
#
# - [rise.m64.us / rise.m1.us < 1.6] About as long
# - [1.6 <= rise.m64.us / rise.m1.us < 12] A few times as long
# - [12 <= rise.m64.us / rise.m1.us < 40] Some twenty times as long
# - [rise.m64.us / rise.m1.us >= 40] 64 times as long, or nearly
# /// reveal
# {{ rise.m64.us / rise.m1.us:.2f}} times: {{ rise.m1.us:.1f}} µs for one row, {{ rise.m64.us:.1f}} µs for 64, {{ rise.m4096.us:,.0f}} µs for 4096.
#
# /// chart | lines
# title: One grid of 8192 × 8192 weights, cuBLAS, bf16
# x: M
# y: us
# x_label: rows
# y_label: time, µs
# y_scale: log
# series:
#   - {name: rise.*, label: cuBLAS}
#   - {name: floor.*, label: the floor by the data sheet, style: reference}
# alt: "Time against rows, both axes logarithmic: {{ rise.m1.us:.0f}} µs for one row, {{ rise.m64.us:.0f}} µs for 64, {{ rise.m256.us:.0f}} µs for 256 and {{ rise.m4096.us:.0f}} µs for 4096. The floor is flat at first and then rises with the rows."
# caption: The floor is the longer of two times, one for the bytes and one for the operations.
# ///
#
# /// table
# columns: [rows, "time, µs", "GB/s", "TFLOP/s", "% of the roof that binds"]
# rows:
#   - ["1", "{{ rise.m1.us:.1f}}", "{{ rise.m1.gb_per_s:,.0f}}", "{{ rise.m1.tflops:.1f}}", "{{ rise.m1.of_peak:.0%}}"]
#   - ["16", "{{ rise.m16.us:.1f}}", "{{ rise.m16.gb_per_s:,.0f}}", "{{ rise.m16.tflops:.1f}}", "{{ rise.m16.of_peak:.0%}}"]
#   - ["64", "{{ rise.m64.us:.1f}}", "{{ rise.m64.gb_per_s:,.0f}}", "{{ rise.m64.tflops:.0f}}", "{{ rise.m64.of_peak:.0%}}"]
#   - ["128", "{{ rise.m128.us:.1f}}", "{{ rise.m128.gb_per_s:,.0f}}", "{{ rise.m128.tflops:.0f}}", "{{ rise.m128.of_peak:.0%}}"]
#   - ["256", "{{ rise.m256.us:.1f}}", "{{ rise.m256.gb_per_s:,.0f}}", "{{ rise.m256.tflops:.0f}}", "{{ rise.m256.of_peak:.0%}}"]
#   - ["1024", "{{ rise.m1024.us:.1f}}", "{{ rise.m1024.gb_per_s:,.0f}}", "{{ rise.m1024.tflops:.0f}}", "{{ rise.m1024.of_peak:.0%}}"]
#   - ["4096", "{{ rise.m4096.us:.1f}}", "{{ rise.m4096.gb_per_s:,.0f}}", "{{ rise.m4096.tflops:.0f}}", "{{ rise.m4096.of_peak:.0%}}"]
# ///
#
# /// claim | rise.m64.us < 2 * rise.m1.us
# Nobody optimised anything between one row and 64, and 63 more guests have eaten in no more time, or hardly more. The weights
# had to be fetched anyway.
# /// otherwise
# From one row to 64 the time grows {{ rise.m64.us / rise.m1.us:.2f}} times on this card.
# ///
#
# The same points under the roof:
#
# /// chart | roofline
# title: One grid of weights, from one row to 4096
# math: bf16
# points:
#   - {name: rise.m1, label: "1 row"}
#   - {name: rise.m16, label: "16"}
#   - {name: rise.m64, label: "64"}
#   - {name: rise.m256, label: "256"}
#   - {name: rise.m4096, label: "4096"}
# alt: "A roofline with a point for each number of rows. One row is far left, at {{ rise.m1.tflops:.1f}} TFLOP/s; 16 and 64 climb along the slope; 256 rows are near the ridge, at {{ rise.m256.tflops:.0f}} TFLOP/s, and 4096 under the flat roof, at {{ rise.m4096.tflops:.0f}}."
# caption: Decode is on the left, prefill on the right, and a server moves between them at every step.
# ///
# ///
#
# And where is the turning point? One row takes {{ rise.m1.us:.1f}} µs, and that is the time for the weights. Among 4096 rows,
# each costs {{ rise.m4096.us:.1f}} µs ÷ 4096, and that is the time for its arithmetic. Divide the first time by the second, and
# you have the number of rows at which both take equally long: {{ turns:.0f}}. By hand it was
# {{ crosses:.0f}}. The two numbers answer different questions: the pencil uses the two roofs of the data sheet, and the clock
# shows how much of each roof the library reaches.
#
# /// define | turns = rise.m4096.M * rise.m1.us / rise.m4096.us
# unit: "1"
# what: the time of one row over what a row costs among 4096, cuBLAS, 8192 × 8192 weights, bf16
# ///
#

# %% tags=["fold"]
RISE = (1, 4, 16, 64, 128, 256, 512, 1024, 4096)


def layer(M):
    """M rows times the grid."""
    return Workload.of("bfloat16", M=M, N=N, K=K)


def floor_us(M):
    """The longer of two least times: of the bytes, and of the operations."""
    operations = 2 * M * N * K
    return max(operations / PEAK / 1e6, operations / intensity(M) / BANDWIDTH / 1e3)


record(
    rise={f"m{M}": measure(library.cublas, layer(M), seconds=0.05) for M in RISE},
    floor={f"m{M}": quantity(floor_us(M), "µs") for M in RISE},
)

# %% [markdown]
# ## What a server must remember
#
# Attention looks back at every earlier token. So the keys and values of all tokens are kept, in the [KV cache](../one_token.py#the-kv-cache-and-heads-that-share).
# One token takes this many bytes there:
#
# `2 × layers × key heads × numbers in a head × bytes in a number`
#
# The 2 is for keys and values. Only *key* heads count: with **GQA**, grouped-query attention, several query heads share one head
# of keys and one of values.
#
# /// exercise | One token of a large model | 4 minutes
# Llama 3.1 70B has 80 layers, 64 query heads and 8 key heads of 128 numbers [^meta-llama31]. In bf16, how many bytes does one
# token take? How many tokens fit into 40 GB? And without GQA?
# /// answer
# 2 × 80 × 8 × 128 × 2 = 327 680 bytes, and 40 GB ÷ 327 680 bytes = about 122 000 tokens. Without GQA all 64 heads would be kept:
# 8 × 327 680 = 2 621 440 bytes for each token.
# ///
#
# /// table
# columns: [model, layers, key heads, "bytes per token", "tokens in 40 GB"]
# rows:
#   - ["Llama 3.1 8B [^meta-llama31]", "{{ kept.m8.layers:.0f}}", "{{ kept.m8.heads:.0f}}", "{{ kept.m8.bytes:,.0f}}", "{{ kept.m8.tokens:,.0f}}"]
#   - ["Llama 3.1 70B [^meta-llama31]", "{{ kept.m70.layers:.0f}}", "{{ kept.m70.heads:.0f}}", "{{ kept.m70.bytes:,.0f}}", "{{ kept.m70.tokens:,.0f}}"]
#   - ["the same, 64 key heads", "{{ kept.all_heads.layers:.0f}}", "{{ kept.all_heads.heads:.0f}}", "{{ kept.all_heads.bytes:,.0f}}", "{{ kept.all_heads.tokens:,.0f}}"]
# caption: Heads of 128 numbers, two bytes each.
# ///
#
# ### Does decode always wait for bytes?
#
# More rows do not help attention. Thirty-two users share every weight, but each has keys of her own. What does help is query
# heads that share keys: each key that is fetched meets all the queries of its group.
# With keys and values of d numbers each, two bytes a number, a group of G query heads does 4 · d · G operations for 4 · d bytes:
# G operations for each byte. With G = 8 that is far below the ridge.
#
# **MLA**, multi-head latent attention, is an exception, or almost one. For each token it keeps one list of 512 numbers
# and 64 more, instead of keys and values for 128 heads [^deepseek2024v2], and all 128 query heads use that one list: 2
# · 128 · (576 + 512) operations for 2 · 576 bytes. That is {{ mla.h128:.0f}} operations per byte. Is that left or right
# of the ridge? That depends on the card:
#
# | card | ridge, in bf16 | {{ mla.h128:.0f}} is |
# |---|---:|---|
# | H200, by its data sheet [^nvidia-h200] | 989 ÷ 4.8 = 206 | right of it: arithmetic |
# | H800, throttled under load, according to MLA's makers [^flashmla] | 865 ÷ 3.35 = 258 | just left of it |
# | H100, by its data sheet [^nvidia-h100] | 989 ÷ 3.35 = 295 | left of it: bytes |
#
# The makers round 2 · 128 · (576 + 512) ÷ (2 · 576) up to 2 · 128 = 256, draw the line at 128 heads, and call this
# decode compute-bound on their card [^flashmla]. Split the heads over eight cards, 16 on each, and the intensity is {{ mla.h16:.0f}}:
# memory-bound on all three.
#
# So the sentence on everybody's board, *decode waits for bytes*, lacks a word: *often*. Before you say it, ask how large the
# group is and where the ridge is.

# %% tags=["fold"]
MODELS = {"m8": (32, 8), "m70": (80, 8), "all_heads": (80, 64)}
D, BYTES = 128, 2


def token_bytes(layers, heads):
    """What one token leaves in the cache: a key and a value."""
    return 2 * layers * heads * D * BYTES


def of_mla(heads):
    """Operations per byte of MLA's decode: 576 numbers for scores, 512 for values."""
    return 2 * heads * (576 + 512) / (BYTES * 576)


record(
    kept={
        name: {
            "layers": quantity(layers),
            "heads": quantity(heads),
            "bytes": quantity(token_bytes(layers, heads), "B"),
            "tokens": quantity(40e9 // token_bytes(layers, heads)),
        }
        for name, (layers, heads) in MODELS.items()
    },
    mla={f"h{h}": quantity(of_mla(h), "FLOP/B") for h in (16, 128)},
)

# %% [markdown]
# ## Reserved, or a page at a time
#
# How long will an answer be? Nobody knows. The old way is to reserve room for the longest answer that anybody may ask for. A restaurant
# that did so would keep twelve chairs for every party, just in case. The other way comes from operating systems: cut the room into
# **pages** of a few places each, hand the pages out one at a time, wherever they are, and write down which pages a
# request holds. That list is the request's **block table** [^kwon2023].
#
# Take six requests that will write 3, 9, 4, 6, 2 and 5 tokens. There are four seats, and a cache of 36 places. Run these
# requests, first with twelve places reserved for each, then with pages of four.
#
# /// explorable | block_table
# ask: "With twelve reserved, one seat stays empty for a while. What keeps it empty? And with pages of four: how many places are empty at most?"
# alt: "A cache of 36 places in three rows, in pages of four with their numbers. A capital letter marks a place where a request has a token, a small one a place that it holds empty. Below, the block table of each request: its pages, in order, wherever they are."
# knobs:
#   size: {label: places of a page, at: 4, choices: {1: "1", 2: "2", 4: "4", 12: "12, reserved"}}
#   step: {label: step, at: 4}
# says:
#   start: "Nobody is there yet. Requests that wait: {waiting}. Places that are free: {room}."
#   going: "Step {step} of {steps}: {seated} write. They hold {held} places, {used} with a token in them, {empty} empty: {share} in a hundred."
#   no_page: "A seat is free, and still somebody waits (in all {waiting}): no page is left."
#   waiting: "All seats are taken. Still waiting: {waiting}."
#   done: "The last token is written."
# row: {step: "{step} of {steps}", requests that write: "{seated}", places held: "{held}", with a token: "{used}", empty: "{empty}", requests that wait: "{waiting}"}
# caption: Previous and Next go from step to step. A request that is done gives its pages back before the next step.
# ///
#
# You have now seen both. With reservations the room is fully booked while most of it is empty, so a seat stays free,
# and fewer rows share each weight. With pages, nobody leaves more than part of the last page empty.
#
# /// exercise | Six longer ones | 5 minutes
# Six requests have 37, 100, 250, 512, 900 and 1500 tokens. How many places are empty when 2048 are reserved for each?
# And in pages of 16? What is the most that one request can leave empty with pages?
# /// answer
# Reserved: 6 × 2048 = 12 288 places for 3299 tokens, so 12 288 − 3299 = 8989 are empty. In pages: 3 + 7 + 16 + 32 + 57 + 94 = 209, so 209 × 16 = 3344 places and 3344 − 3299 = 45 empty. At most 15, in the last page,
# however long the request is.
# ///
#
# Now take a queue of {{ queue.count:,.0f}} requests. Their lengths are drawn by a fixed formula before anything is served: most are
# short, a few are long. The queue is the same trace, with the same seed, that [the engine](../an_engine.py) serves.
#
# /// predict | Reserve room for {{ queue.longest:,.0f}} tokens for each request: how much of that room stays empty?
# - [empty.reserved < 0.4] Less than two fifths
# - [0.4 <= empty.reserved < 0.7] About half
# - [empty.reserved >= 0.7] Most of it
# /// reveal
# {{ empty.reserved:.0%}}.
#
# /// table
# columns: ["{{ queue.count:,.0f}} requests", "places taken", "empty"]
# rows:
#   - ["reserved, {{ queue.longest:,.0f}} each", "{{ taken.reserved:,.0f}}", "{{ empty.reserved:.1%}}"]
#   - [pages of 256, "{{ taken.p256:,.0f}}", "{{ empty.p256:.1%}}"]
#   - [pages of 64, "{{ taken.p64:,.0f}}", "{{ empty.p64:.1%}}"]
#   - [pages of 16, "{{ taken.p16:,.0f}}", "{{ empty.p16:.1%}}"]
#   - [pages of 1, "{{ taken.p1:,.0f}}", "{{ empty.p1:.1%}}"]
# caption: Prompt and answer together, when the answer is complete.
# ///
# ///
#
# The authors of vLLM found 60 to 80 % of the cache wasted in the servers of 2023, and under 4 % with pages
# [^vllm2023]. Our queue is made up, so our numbers tell you only about its shape. And note the wording. What was
# wasted was *reserved* room, and gaps between reservations, not padding. And what is saved is *room*, not time. Room
# makes rows, and rows make the most of each weight that is fetched.

# %%
from course_models.serving.workload import LONGEST, queue

asked = queue()
lengths = [one.prompt + one.answer for one in asked]


def places(page):
    """Places that all requests take, a page at a time."""
    return sum(-(-length // page) * page for length in lengths)


taken = {"reserved": len(lengths) * LONGEST}
taken |= {f"p{page}": places(page) for page in (1, 16, 64, 256)}
record(
    queue={
        "count": quantity(len(lengths)),
        "longest": quantity(LONGEST),
        "tokens": quantity(sum(lengths)),
    },
    taken={how: quantity(number) for how, number in taken.items()},
    empty={
        how: quantity(1 - sum(lengths) / number) for how, number in taken.items()
    },
)

# %% [markdown]
# ## Follow the table
#
# Token t is in page `table[t // 16]`, at place `t % 16`. That is all that makes a kernel *paged*: the loop is [FlashAttention's](w1_flash_attention.py#the-whole-algorithm-in-numpy), and the line that fetches
# keys asks the table first. Type it: write the body of `keys`, for a pool of pages, a table, and a length.
#
# ```python
# def keys(pages, table, length):
#     """The keys of one request in order, (length, D), though their pages lie anywhere."""
# ```
#
# /// exercise | 37 tokens, three pages | 4 minutes
# Request A has pages 7, 2 and 5. Where is token 36? Then write the two lines. A text of 37 tokens must give 37 rows.
# /// answer
# 36 = 2 × 16 + 4: the third page, 5, at place 4.
#
# ```python
# t = np.arange(length)
# return pages[table[t // PAGE], t % PAGE]
# ```
#
# `pages[table].reshape(-1, D)` would give 48 rows, the last eleven of them rubbish from the request that had the page before. A softmax does not ignore rubbish.
# ///
#
# Here is what runs on the card in the course's kernel. `pages_at` is the new line, and `fold` is the loop body that you know, with `page` where the row's number was.
#
# /// source | src/course_kernels/paged_attention/k01_gather.py#kernel
# fold: "k01_gather: a step asks the table where each of its tokens is"
# ///
#
# And what does the table cost? Take {{ serve.batch:.0f}} requests of {{ serve.held:,.0f}} tokens each, with the heads of an 8B
# model: once with the keys in a row, and once with the keys in pages. Both kernels cut a long text into parts for several
# tables of cooks and merge the half plates, as at [the end of W1](w1_flash_attention.py).
#
# /// predict | With keys in pages of 16, scattered anywhere: how much longer does attention take than with keys in a row?
# - [in_pages.p16.us / in_a_row.us < 1.08] Hardly longer
# - [1.08 <= in_pages.p16.us / in_a_row.us < 1.4] A fifth or so
# - [in_pages.p16.us / in_a_row.us >= 1.4] Half as long again, or more
# /// reveal
# {{ in_pages.p16.us / in_a_row.us:.2f}} times as long.
#
# /// table
# columns: ["{{ serve.batch:.0f}} requests", "time, µs", "GB/s", "% of bandwidth"]
# rows:
#   - ["in a row", "{{ in_a_row.us:.0f}}", "{{ in_a_row.gb_per_s:,.0f}}", "{{ in_a_row.of_peak:.0%}}"]
#   - ["pages of 256", "{{ in_pages.p256.us:.0f}}", "{{ in_pages.p256.gb_per_s:,.0f}}", "{{ in_pages.p256.of_peak:.0%}}"]
#   - ["pages of 64", "{{ in_pages.p64.us:.0f}}", "{{ in_pages.p64.gb_per_s:,.0f}}", "{{ in_pages.p64.of_peak:.0%}}"]
#   - ["pages of 16", "{{ in_pages.p16.us:.0f}}", "{{ in_pages.p16.gb_per_s:,.0f}}", "{{ in_pages.p16.of_peak:.0%}}"]
#   - ["pages of 8", "{{ in_pages.p8.us:.0f}}", "{{ in_pages.p8.gb_per_s:,.0f}}", "{{ in_pages.p8.of_peak:.0%}}"]
#   - ["pages of 16, gathered first, then SDPA", "{{ gathered.us:,.0f}}", "{{ gathered.gb_per_s:,.0f}}", "{{ gathered.of_peak:.0%}}"]
#   - ["pages of 16, keys of 8 bits", "{{ short_keys.us:.0f}}", "{{ short_keys.gb_per_s:,.0f}}", "{{ short_keys.of_peak:.0%}}"]
# caption: "Two kernels share a name: `decode_attention/k02_split` is for keys in a row, `paged_attention/k02_split` for pages. GB/s counts what must be read once, not what is copied."
# ///
# ///
#
# Keys and values of 8 bits have half the bytes, and take {{ short_keys.us / in_pages.p16.us:.0%}} of the time: {{ short_keys.of_peak:.0%}}
# of bandwidth, where 16 bits reach {{ in_pages.p16.of_peak:.0%}}. So this kernel no longer waits for bytes alone. The
# clock is not the reason: it was read at {{ short_keys.sm_mhz:.0f}} MHz with 8 bits, and at {{ in_pages.p16.sm_mhz:.0f}}
# MHz with 16 bits. What did not shrink with the bytes is the work for each key: the key is still multiplied, its value
# still weighted, and both must now be widened and scaled as well. This run can say no more than that, because it
# counted no stalls. What short keys do buy is room.
#
# /// claim | gathered.us > 5 * in_pages.p16.us
# Without a paged kernel you must first gather the pages and then call the library's attention. That takes {{ gathered.us / in_pages.p16.us:.1f}}
# times as long as ours. Three passes over the keys instead of one explain a factor of three; the rest is the library's attention,
# which this page did not time on its own.
# /// otherwise
# Without a paged kernel you must first gather the pages and then call the library's attention. That takes {{ gathered.us / in_pages.p16.us:.2f}} times as long as ours.
# ///
#
# /// exercise | Why not pages of one token? | 3 minutes
# With pages of one token, no place would be empty. What would such pages cost? Think of the table, and of the boxes of 32 bytes
# that [HBM hands out](../lectures/l3_memory.py#ask-for-neighbours).
# /// answer
# A key of 128 numbers in bf16 is 256 bytes, so the boxes stay full. But the table has an entry of 4 bytes for each
# token, which every program that reads the keys must load, and each key is a piece of its own. Pages of 16 make runs of
# 4096 bytes for a head, and a table a sixteenth as long. Our kernels take pages of 8 tokens or more.
# ///

# %% tags=["fold"]
from course_kernels.decode_attention import k02_split as split_row
from course_kernels.paged_attention import k02_split as split_pages
from course_kernels.paged_attention import library as paged_library

BATCH, HELD = 64, 4096
HEADS = {"H": 32, "KV": 8, "D": 128}


def in_pages_of(PAGE, **flags):
    """All requests as long as the others, in pages of this many tokens."""
    return Workload.of(
        "bfloat16", B=BATCH, N=HELD, PAGE=PAGE, full=True, **HEADS, **flags
    )


both = compare(
    {"ours": split_pages, "gathered": paged_library.sdpa_gathered},
    in_pages_of(16),
    seconds=0.05,
)
record(
    serve={
        "batch": quantity(BATCH, how="given"),
        "held": quantity(HELD, how="given"),
    },
    in_a_row=measure(
        split_row,
        Workload.of("bfloat16", B=BATCH, N=HELD, full=True, **HEADS),
        seconds=0.05,
    ),
    in_pages={
        "p16": both["ours"],
        **{
            f"p{PAGE}": measure(split_pages, in_pages_of(PAGE), seconds=0.05)
            for PAGE in (8, 64, 256)
        },
    },
    gathered=both["gathered"],
    short_keys=measure(split_pages, in_pages_of(16, fp8=True), seconds=0.05),
)

# %% [markdown]
# ### Compared with a library for servers {.beyond}
#
# FlashInfer is a library of attention kernels that servers plug in [^ye2025]. It has two kernels for this step: one computes on
# the tensor cores, the other does not. Before a step it makes a plan on the host: which program reads which part of which
# request. For that the host must know all the lengths.
#
# Our kernels read the lengths on the card. We have two, both in `paged_attention/`: `k02_split` cuts every request into the
# same number of parts, and `k03_even` gives every program the same number of steps, whatever the requests. In both, the last
# program to finish with a head merges the head's parts. A program knows from a *ticket*, a counter in memory for each head,
# that it is the last.
#
# Neither side's time includes what is made only once: their plan and its memory, and our tickets.
#
# /// when | peers.flashinfer == 1
# /// define | over_flashinfer.b64 = min(served.b64.tensor_cores.us, served.b64.plain_cores.us) / min(served.b64.split.us, served.b64.even.us)
# unit: ×
# what: the speed of the better of k02_split and k03_even over that of the better of FlashInfer's two, 64 requests of 4096 tokens in pages of 16, bf16
# ///
#
# /// define | over_flashinfer.b16 = min(served.b16.tensor_cores.us, served.b16.plain_cores.us) / min(served.b16.split.us, served.b16.even.us)
# unit: ×
# what: the speed of the better of k02_split and k03_even over that of the better of FlashInfer's two, 16 requests of 16384 tokens in pages of 16, bf16
# ///
#
# /// define | over_flashinfer.b1 = min(served.b1.tensor_cores.us, served.b1.plain_cores.us) / min(served.b1.split.us, served.b1.even.us)
# unit: ×
# what: the speed of the better of k02_split and k03_even over that of the better of FlashInfer's two, one request of 65536 tokens in pages of 16, bf16
# ///
#
# /// predict | 64 requests of 4096 tokens, 16 of 16,384, one of 65,536: how far apart are the better of our two and the better of theirs?
# - [min(over_flashinfer.b64, over_flashinfer.b16, over_flashinfer.b1) > 0.9 and max(over_flashinfer.b64, over_flashinfer.b16, over_flashinfer.b1) < 1.1] Less than a tenth, whatever the requests
# - [min(over_flashinfer.b64, over_flashinfer.b16, over_flashinfer.b1) <= 0.9] Theirs is ahead somewhere, by more than a tenth
# - [min(over_flashinfer.b64, over_flashinfer.b16, over_flashinfer.b1) > 0.9 and max(over_flashinfer.b64, over_flashinfer.b16, over_flashinfer.b1) >= 1.1] Ours is ahead somewhere, by more than a tenth
# /// reveal
# {{ over_flashinfer.b64:.3f}}, {{ over_flashinfer.b16:.3f}} and {{ over_flashinfer.b1:.3f}}: above 1, ours is ahead.
#
# /// table
# columns: ["GB/s, pages of 16", "64 × 4096", "16 × 16,384", "1 × 65,536"]
# rows:
#   - ["k02_split", "{{ served.b64.split.gb_per_s:,.0f}}", "{{ served.b16.split.gb_per_s:,.0f}}", "{{ served.b1.split.gb_per_s:,.0f}}"]
#   - ["k03_even", "{{ served.b64.even.gb_per_s:,.0f}}", "{{ served.b16.even.gb_per_s:,.0f}}", "{{ served.b1.even.gb_per_s:,.0f}}"]
#   - ["FlashInfer, on tensor cores", "{{ served.b64.tensor_cores.gb_per_s:,.0f}}", "{{ served.b16.tensor_cores.gb_per_s:,.0f}}", "{{ served.b1.tensor_cores.gb_per_s:,.0f}}"]
#   - ["FlashInfer, without them", "{{ served.b64.plain_cores.gb_per_s:,.0f}}", "{{ served.b16.plain_cores.gb_per_s:,.0f}}", "{{ served.b1.plain_cores.gb_per_s:,.0f}}"]
# caption: "bf16, 32 query heads and 8 key heads, all requests of the same length; interleaved in the same rounds, cold L2. FlashInfer {{ peers.flashinfer_version}}."
# ///
# ///
# /// otherwise
# FlashInfer was **not raced** in this run: it was not installed. k02_split reads {{ served.b64.split.gb_per_s:,.0f}} GB/s with 64 requests of 4096 tokens, {{ served.b16.split.gb_per_s:,.0f}} with 16 of 16,384 and {{ served.b1.split.gb_per_s:,.0f}} with one of 65,536.
# ///

# %% tags=["fold"]
import dataclasses
from functools import partial

from course_kernels.measure import text
from course_kernels.measure.competitor import competitor_of
from course_kernels.paged_attention import k03_even as even_pages

WHICH = paged_library.flashinfer_version()
OURS = {"split": split_pages, "even": even_pages}
THEIRS = {
    "tensor_cores": paged_library.flashinfer_tensor_cores,
    "plain_cores": paged_library.flashinfer_decode,
}


def all_of(batch, held):
    """This many requests of this many tokens each, in pages of 16."""
    return Workload.of("bfloat16", B=batch, N=held, PAGE=16, full=True, **HEADS)


def with_tickets(kernel, batch):
    """Our kernel with the tickets by which its programs see which is last: made once, outside the timing."""
    tickets = torch.zeros(batch * HEADS["KV"], dtype=torch.int32, device="cuda")
    function = partial(kernel.paged_attention, tickets=tickets)
    return dataclasses.replace(competitor_of(kernel), function=function)


def field(batch):
    """All who race."""
    ours = {name: with_tickets(kernel, batch) for name, kernel in OURS.items()}
    return ours | (THEIRS if WHICH else {})


record(
    peers={
        "flashinfer": quantity(int(bool(WHICH))),
        "flashinfer_version": text(WHICH or "none"),
    },
    served={
        f"b{batch}": compare(field(batch), all_of(batch, held), seconds=0.05)
        for batch, held in ((64, 4096), (16, 16384), (1, 65536))
    },
)

# %% [markdown]
# ## Who pays?
#
# Prefill runs once, and decode runs once for every token. Is decode therefore the larger part of the bill? Count before you answer. You pay for four things.
#
# - *Prefill, the weights*: two operations for each weight and token.
# - *Prefill, attention*: every token looks at all tokens before it, so this part grows with the square of the prompt.
# - *Decode, the weights*: their bytes, once for each step, shared by all users in the step.
# - *Decode, the cache*: all that this one user has said and heard, fetched for every token, shared with nobody.
#
# Take a model of 70 billion weights in bf16, as if it fitted on this card, and {{ who.users:.0f}} users in each step.
# At the two roofs of the data sheet, reading a thousand tokens takes {{ ms.thousand_in:.1f}} ms for the weights and
# {{ ms.square:.2f}} ms for attention, which grows with the square; writing one token takes {{ ms.share:.2f}} ms for
# one user's share of the weights, and {{ ms.thousand_kept:.3f}} ms for every thousand tokens in the cache.
#
# /// predict | A question about a long report: 30 000 tokens in, 300 out. Which part takes longer?
# - [pays.report.prefill < pays.report.decode] The answer
# - [pays.report.prefill >= pays.report.decode] The reading
# /// reveal
# The reading takes longer: {{ pays.report.prefill:.1f}} s, while the answer takes {{ pays.report.decode:.1f}} s.
#
# /// table
# columns: [traffic, tokens in, tokens out, "prefill: reading, s", "attention's part of it, s", "decode: answering, s", "the cache's part of it, s", "decode alone, s"]
# rows:
#   - [a chat, "300", "500", "{{ pays.chat.prefill:.2f}}", "{{ pays.chat.attention:.2f}}", "{{ pays.chat.decode:.2f}}", "{{ pays.chat.cache:.2f}}", "{{ pays.chat.alone:.1f}}"]
#   - [a long report, "30 000", "300", "{{ pays.report.prefill:.2f}}", "{{ pays.report.attention:.2f}}", "{{ pays.report.decode:.2f}}", "{{ pays.report.cache:.2f}}", "{{ pays.report.alone:.1f}}"]
#   - [an agent, "8 200", "400", "{{ pays.agent.prefill:.2f}}", "{{ pays.agent.attention:.2f}}", "{{ pays.agent.decode:.2f}}", "{{ pays.agent.cache:.2f}}", "{{ pays.agent.alone:.1f}}"]
#   - ["the agent, preface kept", "200", "400", "{{ pays.kept.prefill:.2f}}", "{{ pays.kept.attention:.2f}}", "{{ pays.kept.decode:.2f}}", "{{ pays.kept.cache:.2f}}", "{{ pays.kept.alone:.1f}}"]
# caption: Floors, at the roofs of the data sheet. No server reaches these floors; what matters is their order. In the last column one user is alone in every step.
# ///
# ///
#
# So a chat pays for decode, a report for prefill, and for the agent it depends on one question: is its preface still in
# the cache? The preface's pages can be shared, and then the preface is not read again. But every token of the answer
# still fetches all of those pages. The other number that decides is how many users share a step.

# %% tags=["fold"]
WEIGHTS, USERS, LAYERS, QUERIES = 69_501_714_432, 32, 80, 64  # the receipt of L1
KEPT = token_bytes(LAYERS, 8)
PAIR = 4 * D * QUERIES * LAYERS  # operations of a token that looks at one
FLOPS, PER_S = PEAK * 1e12, BANDWIDTH * 1e9
TRAFFIC = {  # tokens in the cache already, new ones in, out
    "chat": (0, 300, 500),
    "report": (0, 30_000, 300),
    "agent": (0, 8_200, 400),
    "kept": (8_000, 200, 400),
}


def reading(cached, new):
    """Seconds at the higher of the two roofs, and those of attention's operations."""
    pairs = new * cached + new * (new + 1) // 2
    operations = 2 * WEIGHTS * new + PAIR * pairs
    carried = BYTES * WEIGHTS + KEPT * (cached + new)
    return max(operations / FLOPS, carried / PER_S), PAIR * pairs / FLOPS


def answering(users, first, out):
    """Seconds of one user's share of `out` steps, and of fetching the cache."""
    whole = of_cache = 0.0
    for length in range(first + 1, first + out + 1):
        operations = users * (2 * WEIGHTS + PAIR * length)
        cache = users * KEPT * length
        least = max(operations / FLOPS, (BYTES * WEIGHTS + cache) / PER_S)
        whole += least / users
        of_cache += cache / PER_S / users
    return whole, of_cache


pays = {}
for kind, (cached, new, out) in TRAFFIC.items():
    prefill, attention = reading(cached, new)
    decode, of_cache = answering(USERS, cached + new, out)
    alone, _ = answering(1, cached + new, out)
    pays[kind] = {
        "prefill": quantity(prefill, "s"),
        "attention": quantity(attention, "s"),
        "decode": quantity(decode, "s"),
        "cache": quantity(of_cache, "s"),
        "alone": quantity(alone, "s"),
    }
record(
    pays=pays,
    who={"users": quantity(USERS, how="given")},
    ms={
        "thousand_in": quantity(1e6 * 2 * WEIGHTS / FLOPS, "ms"),
        "square": quantity(1e3 * PAIR * 1000**2 / 2 / FLOPS, "ms"),
        "share": quantity(1e3 * BYTES * WEIGHTS / PER_S / USERS, "ms"),
        "thousand_kept": quantity(1e3 * KEPT * 1000 / PER_S, "ms"),
    },
)

# %% [markdown]
# ## The receipt
#
# Now *fewer trips*. Between two multiplies, a model does this: it adds what came by the side road, then [normalises each
# row](../one_token.py#rmsnorm-forget-how-loud-it-is) and multiplies it by weights.
#
# /// exercise | Before a line is typed | 5 minutes
# Take five operators: s = x + r, then s², its mean over a row, s × 1/√, × g. For each, write down how many tensors come in from
# HBM (the pantry) and how many go out to it. One number for each row, or one row for all, is a crumb: leave it out. Then do the
# same for one kernel that does all five. Why must s be written at all?
# /// answer
# In and out: 2 + 1, 1 + 1, 1 + 0, 1 + 1, 1 + 1. That is 10. Fused: x and r in, y and s out, 4. And s is the side road of the next
# layer: another kernel reads it later.
# ///
#
# Production servers fuse exactly this pair, the addition and the norm, sometimes with the rounding for the next multiply, and put
# the weights of queries, keys and values side by side in one grid. A norm *inside* the multiply can be built, but it is unusual.

# %% [markdown]
# ## Your kernel: load, add
#
# Type it into `my_labs/add_rmsnorm.py`. Each program, one table of cooks, takes one row. Here a row has 1000 numbers and the
# table has 1024 seats, so remember the mask.
#
# /// exercise | The first half | 8 minutes
# Load x, load r, add, store s. The launcher makes y and s, takes M and N from the shape, and starts M programs with `BLOCK = triton.next_power_of_2(N)`. Check that s is x + r for 5 rows of 1000. What do the 24 spare seats load?
# /// answer
# Nothing: the mask holds them back, and `other=0.0` gives them a zero that changes no sum.
#
# ```python
# @triton.jit
# def add_rmsnorm_kernel(x_ptr, g_ptr, r_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
#     row = tl.program_id(0).to(tl.int64)
#     n = tl.arange(0, BLOCK)
#     mask = n < N
#     x = tl.load(x_ptr + row * N + n, mask=mask, other=0.0)
#     r = tl.load(r_ptr + row * N + n, mask=mask, other=0.0)
#     s = x + r
#     tl.store(s_ptr + row * N + n, s, mask=mask)
# ```
# ///
#
# Without a GPU, `TRITON_INTERPRET=1` before `python` runs the same file in Triton's interpreter; it has no bf16, so use fp32.

# %% [markdown]
# ## Your kernel: the norm
#
# s is in your hand. Do not load it again. Square it, add up the squares, take the mean, add eps, divide by the root,
# multiply by g, and store y. Check it against float64.
#
# /// exercise | Four more lines | 8 minutes
# Check N = 1000 and N = 1024, in fp32. Then in fp16. Then in fp16 with inputs ten times as large. Which check will fail, and why?
# /// answer
# If you divided by `BLOCK`, 1024 passes and 1000 fails. The first check in fp16 passes, and in the last one every y is 0.
# The square of a number near 14 is about 200, and a thousand of those are 200 000; fp16 ends at 65 504. So the mean is
# infinite. Widen s *before* it is squared; one line later is too late.
#
# ```python
#     s = s.to(tl.float32)
#     mean = tl.sum(s * s) / N
#     g = tl.load(g_ptr + n, mask=mask, other=0.0)
#     y = s / tl.sqrt(mean + eps) * g
#     tl.store(y_ptr + row * N + n, y, mask=mask)
# ```
# ///
#
# The cell below does in PyTorch what the faulty line does; its h is a row of your s.

# %%
generator = torch.Generator().manual_seed(0)
h = (14 * torch.randn(1000, generator=generator)).to(torch.float16)
squares = h * h  # each fits into fp16
print("largest square:", squares.max().item(), " fp16 ends at 65504")
total = squares.sum(dtype=torch.float32)
print("sum of squares, fp32:", total.item(), " in fp16:", total.half().item())

# %% [markdown]
# ### The right column
#
# Your kernel is right. Now write the receipt: which lines of your kernel touch HBM? The loads and stores of whole tensors; the load
# of g is a crumb. Count them in your own file.
#
# /// exercise | Trips after | 3 minutes
# Write down the line numbers, and 10 divided by your count. Next to it write the word *forecast*. Which line could you add that
# breaks the receipt but not the answer?
# /// answer
# Two loads and two stores of whole tensors: 10 ÷ 4 = 2.5. It is a forecast of bytes, not a speed; the clock comes next. If you
# loaded s again after storing it, the answer would still be right, at the cost of one more trip.
# ///

# %% [markdown]
# ## Two kernels, or one
#
# The course's own kernel is nearly the same as yours: one program for each row, and the row stays in registers; how
# many warps share a row depends on the shape.
#
# /// source | src/course_kernels/rms_norm/k02_one_read.py
# fold: "k02_one_read: add and normalise, the row read once"
# ///
#
# PyTorch already has the norm as a single operator. So *eager* here means two kernels: the addition, and the norm of what it
# wrote. That is x and r in and s out, then s in and y out: five trips against four, not ten.
#
# /// predict | Four trips instead of five. What happens to the time, for the {{ fused.rows:,.0f}} rows of a prefill?
# - [fused.prefill.ours.us / fused.prefill.eager.us >= 0.9] Nothing that you would notice
# - [0.6 <= fused.prefill.ours.us / fused.prefill.eager.us < 0.9] About three quarters of it is left
# - [fused.prefill.ours.us / fused.prefill.eager.us < 0.6] Less than that
# /// reveal
# {{ fused.prefill.ours.us / fused.prefill.eager.us:.2f}} of the time is left.
#
# /// table
# columns: ["add and norm, {{ fused.rows:,.0f}} rows of 4096", "GB, by hand", "GB, counted", "time, µs", "% of bandwidth", "µs for 32 rows"]
# rows:
#   - ["eager, two kernels", "{{ by_hand.norm.eager / 1e9:.2f}}", "{{ counted.norm.eager.gb:.2f}}", "{{ fused.prefill.eager.us:.0f}}", "{{ fused.prefill.eager.of_peak:.0%}}", "{{ fused.decode.eager.us:.1f}}"]
#   - [torch.compile, "{{ by_hand.norm.fused / 1e9:.2f}}", "{{ counted.norm.compiled.gb:.2f}}", "{{ fused.prefill.compiled.us:.0f}}", "{{ fused.prefill.compiled.of_peak:.0%}}", "{{ fused.decode.compiled.us:.1f}}"]
#   - ["ours, one kernel", "{{ by_hand.norm.fused / 1e9:.2f}}", "{{ counted.norm.ours.gb:.2f}}", "{{ fused.prefill.ours.us:.0f}}", "{{ fused.prefill.ours.of_peak:.0%}}", "{{ fused.decode.ours.us:.1f}}"]
# caption: "In all three rows, the percentage of bandwidth counts only what the problem needs. The counter shows a little less than the pencil: what was written last is still in L2 when the kernel ends. One decode step has 32 rows."
# ///
# ///
#
# The gate of the feed-forward block, [SwiGLU](../one_token.py#swiglu-a-door-that-opens-by-itself), is the other place in a layer
# where a tensor goes out only to come back. Two operators make five trips, one makes three.
#
# /// table
# columns: ["SwiGLU, {{ fused.rows:,.0f}} rows of 14336", "GB, by hand", "GB, counted", "time, µs", "% of bandwidth", "µs for 32 rows"]
# rows:
#   - ["eager, two kernels", "{{ by_hand.door.eager / 1e9:.2f}}", "{{ counted.door.eager.gb:.2f}}", "{{ door.prefill.eager.us:.0f}}", "{{ door.prefill.eager.of_peak:.0%}}", "{{ door.decode.eager.us:.1f}}"]
#   - [torch.compile, "{{ by_hand.door.fused / 1e9:.2f}}", "{{ counted.door.compiled.gb:.2f}}", "{{ door.prefill.compiled.us:.0f}}", "{{ door.prefill.compiled.of_peak:.0%}}", "{{ door.decode.compiled.us:.1f}}"]
#   - ["ours, one kernel", "{{ by_hand.door.fused / 1e9:.2f}}", "{{ counted.door.ours.gb:.2f}}", "{{ door.prefill.ours.us:.0f}}", "{{ door.prefill.ours.of_peak:.0%}}", "{{ door.decode.ours.us:.1f}}"]
# ///
#
# /// claim | fused.decode.ours.us < 0.6 * fused.decode.eager.us and door.decode.ours.us < door.decode.eager.us
# In decode, with 32 rows, there are hardly any bytes to save, and still the fused kernel is ahead of eager: one kernel has one start and one end.
# /// otherwise
# In decode, with 32 rows, there are hardly any bytes to save: {{ fused.decode.ours.us:.1f}} µs in one fused kernel, {{ fused.decode.eager.us:.1f}} µs in two kernels.
# ///
#
# In class we race an older pair, bias and GELU, from [L3](../lectures/l3_memory.py#do-it-while-you-hold-it). On an {{ l3.gpu.name }}
# eager takes {{ l3.fuse.eager.us:,.0f}} µs there, `torch.compile` {{ l3.fuse.compiled.us:,.0f}} and the hand-written kernel {{ l3.fuse.cuda.us:,.0f}}.
# The last two move the same bytes. So bytes do not explain the difference between them: a kernel is bound by its bytes only if
# all its other work fits into the time that the bytes take.

# %% tags=["fold"]
from course_kernels.measure import count_many
from course_kernels.rms_norm import k02_one_read
from course_kernels.rms_norm import library as norm_library
from course_kernels.swiglu import k01_fused
from course_kernels.swiglu import library as door_library

ROWS, FEW_ROWS, WIDTH, HIDDEN = 16384, 32, 4096, 14336
NORMS = {
    "eager": norm_library.eager,
    "compiled": norm_library.compiled,
    "ours": k02_one_read,
}
DOORS = {
    "eager": door_library.eager,
    "compiled": door_library.compiled,
    "ours": k01_fused,
}


def norm_of(M):
    """M rows, with a residual."""
    return Workload.of("bfloat16", M=M, N=WIDTH)


def door_of(M):
    """M rows, gate and up apart."""
    return Workload.of("bfloat16", M=M, F=HIDDEN)


jobs = {("norm", who): (kernel, norm_of(ROWS)) for who, kernel in NORMS.items()}
jobs |= {("door", who): (kernel, door_of(ROWS)) for who, kernel in DOORS.items()}
counts = dict(zip(jobs, count_many(list(jobs.values())), strict=True))
one_norm, one_door = BYTES * ROWS * WIDTH, BYTES * ROWS * HIDDEN
record(
    counted={
        what: {who: counts[what, who] for who in NORMS} for what in ("norm", "door")
    },
    by_hand={
        "norm": {
            "eager": quantity(5 * one_norm, "B"),
            "fused": quantity(4 * one_norm, "B"),
        },
        "door": {
            "eager": quantity(5 * one_door, "B"),
            "fused": quantity(3 * one_door, "B"),
        },
    },
    fused={
        "rows": quantity(ROWS, how="given"),
        "prefill": compare(NORMS, norm_of(ROWS), seconds=0.05),
        "decode": compare(NORMS, norm_of(FEW_ROWS), seconds=0.05),
    },
    door={
        "prefill": compare(DOORS, door_of(ROWS), seconds=0.05),
        "decode": compare(DOORS, door_of(FEW_ROWS), seconds=0.05),
    },
)

# %% [markdown]
# ## Shorter weights
#
# The third medicine: store each weight in 16, 8 or 4 bits, with a scale for each row of weights, or for each group. With one row
# of x the floor shrinks with the bytes. With more rows it depends on which unit does the arithmetic.
#
# - **FP8**: weights *and* rows have 8 bits, and the multiply takes them as they are. The flat roof rises too.
# - **W4A16**: weights have 4 bits, rows 16. A weight is widened in registers, and the multiply is done in bf16. The flat roof
#   stays where it is.
#
# /// exercise | Where the roof turns flat | 4 minutes
# With M rows, a weight of b bytes is used for 2 · M operations; leave out the bytes of the rows. The arithmetic is bf16, with the
# ridge from above. At which M do short weights have nothing left to give: with 2 bytes, with 1, with a half?
# /// answer
# The intensity is 2 · M / b, so M is the ridge times b / 2: about {{ ends.bits16:.0f}} rows for 2 bytes,
# {{ ends.bits8:.0f}} for 1, {{ ends.bits4:.0f}} for a half. MARLIN, another team's kernel for four bits, is reported
# to come close to four times the speed for up to 16 to 32 rows, with a gain that shrinks at 64 to 128 [^frantar2025].
# ///
#
# Now we measure the grid for gate and up in an 8B model, {{ grid.n:,.0f}} × {{ grid.k:,.0f}}, from one row to 128.
#
# /// predict | Four bits against the library's bf16. With how many rows does our kernel lose its lead?
# - [lead.m16 < 1] With fewer than 16
# - [lead.m16 >= 1 and lead.m64 < 1] Between 16 and 64
# - [lead.m16 >= 1 and lead.m64 >= 1 and lead.m128 < 1] Between 64 and 128
# - [min(lead.m16, lead.m64, lead.m128) >= 1] Not yet with 128
# /// reveal
# Our kernel reaches {{ lead.m1:.2f}} times the library's speed with one row, {{ lead.m16:.2f}} times with 16 rows, {{ lead.m32:.2f}} with 32, {{ lead.m64:.2f}} with 64 and {{ lead.m128:.2f}} with 128. We have two kernels for four bits: `k02_fragments`
# keeps all rows of x in registers and takes up to 32, `k01_triton` takes up to 128. Where should we switch from one to the other?
#
# /// claim | few.w4_triton.m16.us > 1.5 * few.w4_fragments.m16.us and few.w4_fragments.m32.us > few.w4_triton.m32.us
# After 16 rows. With 16, `k02_fragments` takes {{ few.w4_fragments.m16.us:.1f}} µs and `k01_triton`
# {{ few.w4_triton.m16.us:.1f}}, more than one and a half times as long. With 32 the order turns around: {{ few.w4_fragments.m32.us:.1f}} and
# {{ few.w4_triton.m32.us:.1f}} µs. Its source says why that may be: the sums of 32 rows take so many registers that fewer warps
# fit on a multiprocessor. No counter was read here.
# /// otherwise
# Ours is after 16 rows. Look whether this run agrees: `k02_fragments` takes {{ few.w4_fragments.m16.us:.1f}} µs with 16
# rows and {{ few.w4_fragments.m32.us:.1f}} with 32, and `k01_triton` {{ few.w4_triton.m16.us:.1f}} and {{ few.w4_triton.m32.us:.1f}}.
# ///
#
# /// chart | lines
# title: A few rows times 28672 × 4096 weights
# x: M
# y: us
# x_label: rows
# y_label: time, µs
# series:
#   - {name: few.cublas.*, label: "bf16, cuBLAS"}
#   - {name: few.bf16.*, label: "bf16, ours"}
#   - {name: few.fp8.*, label: "FP8, ours"}
#   - {name: few.w4_fragments.*, label: "4 bits, k02_fragments"}
#   - {name: few.w4_triton.*, label: "4 bits, k01_triton"}
# alt: "Time against rows. One row: cuBLAS {{ few.cublas.m1.us:.0f}} µs, our bf16 {{ few.bf16.m1.us:.0f}}, FP8 {{ few.fp8.m1.us:.0f}}, four bits {{ few.w4_fragments.m1.us:.0f}}. 128 rows: {{ few.cublas.m128.us:.0f}}, {{ few.bf16.m128.us:.0f}}, {{ few.fp8.m128.us:.0f}} and {{ few.w4_triton.m128.us:.0f}} µs."
# caption: "Each kernel is checked against the product of exactly the numbers that it stores. Four bits: two kernels of ours, timed in the same rounds up to the 32 rows that k02_fragments takes."
# ///
#
# /// table
# columns: ["time, µs", "1 row", "4", "16", "32", "64", "128"]
# rows:
#   - ["bf16, cuBLAS", "{{ few.cublas.m1.us:.1f}}", "{{ few.cublas.m4.us:.1f}}", "{{ few.cublas.m16.us:.1f}}", "{{ few.cublas.m32.us:.1f}}", "{{ few.cublas.m64.us:.1f}}", "{{ few.cublas.m128.us:.1f}}"]
#   - ["bf16, ours", "{{ few.bf16.m1.us:.1f}}", "{{ few.bf16.m4.us:.1f}}", "{{ few.bf16.m16.us:.1f}}", "{{ few.bf16.m32.us:.1f}}", "{{ few.bf16.m64.us:.1f}}", "{{ few.bf16.m128.us:.1f}}"]
#   - ["FP8, the library", "{{ few.fp8_library.m1.us:.1f}}", "{{ few.fp8_library.m4.us:.1f}}", "{{ few.fp8_library.m16.us:.1f}}", "{{ few.fp8_library.m32.us:.1f}}", "{{ few.fp8_library.m64.us:.1f}}", "{{ few.fp8_library.m128.us:.1f}}"]
#   - ["FP8, ours", "{{ few.fp8.m1.us:.1f}}", "{{ few.fp8.m4.us:.1f}}", "{{ few.fp8.m16.us:.1f}}", "{{ few.fp8.m32.us:.1f}}", "{{ few.fp8.m64.us:.1f}}", "{{ few.fp8.m128.us:.1f}}"]
#   - ["4 bits, k02_fragments", "{{ few.w4_fragments.m1.us:.1f}}", "{{ few.w4_fragments.m4.us:.1f}}", "{{ few.w4_fragments.m16.us:.1f}}", "{{ few.w4_fragments.m32.us:.1f}}", "", ""]
#   - ["4 bits, k01_triton", "{{ few.w4_triton.m1.us:.1f}}", "{{ few.w4_triton.m4.us:.1f}}", "{{ few.w4_triton.m16.us:.1f}}", "{{ few.w4_triton.m32.us:.1f}}", "{{ few.w4_triton.m64.us:.1f}}", "{{ few.w4_triton.m128.us:.1f}}"]
#   - ["4 bits with the switch at 16, % of the roof that binds", "{{ few.w4_fragments.m1.of_peak:.0%}}", "{{ few.w4_fragments.m4.of_peak:.0%}}", "{{ few.w4_fragments.m16.of_peak:.0%}}", "{{ few.w4_triton.m32.of_peak:.0%}}", "{{ few.w4_triton.m64.of_peak:.0%}}", "{{ few.w4_triton.m128.of_peak:.0%}}"]
# ///
# ///
#
# /// define | lead.m1 = few.cublas.m1.us / few.w4_fragments.m1.us
# unit: ×
# what: speed of our multiply with 4-bit weights over cuBLAS in bf16, one row, 28672 × 4096
# ///
#
# /// define | lead.m16 = few.cublas.m16.us / few.w4_fragments.m16.us
# unit: ×
# what: speed of our multiply with 4-bit weights over cuBLAS in bf16, 16 rows, 28672 × 4096
# ///
#
# /// define | lead.m32 = few.cublas.m32.us / few.w4_triton.m32.us
# unit: ×
# what: speed of our multiply with 4-bit weights over cuBLAS in bf16, 32 rows, 28672 × 4096
# ///
#
# /// define | lead.m64 = few.cublas.m64.us / few.w4_triton.m64.us
# unit: ×
# what: speed of our multiply with 4-bit weights over cuBLAS in bf16, 64 rows, 28672 × 4096
# ///
#
# /// define | lead.m128 = few.cublas.m128.us / few.w4_triton.m128.us
# unit: ×
# what: speed of our multiply with 4-bit weights over cuBLAS in bf16, 128 rows, 28672 × 4096
# ///
#
# ### What the bits cost
#
# A rate without its error is half the truth. Take weights as a trained layer might have them, drawn from a normal distribution,
# and rows of the same kind. How far is the product from the product with the original weights?
#
# /// table
# columns: ["", "weights off by", "product off by"]
# rows:
#   - ["FP8, weights and rows", "{{ off.fp8.weights:.1%}}", "{{ off.fp8.product:.1%}}"]
#   - ["FP8, weights alone", "{{ off.fp8.weights:.1%}}", "{{ off.fp8.weights_alone:.1%}}"]
#   - ["4 bits, groups of 128", "{{ off.w4.weights:.1%}}", "{{ off.w4.product:.1%}}"]
# caption: Root mean squares, as a share of the right values. Only a model's answers can tell whether it tolerates such errors; this page does not test that.
# ///
#
# /// claim | off.w4.product > 2 * off.fp8.product
# So the largest saving comes with the largest error, more than twice the error of FP8: always ask for both numbers.
# /// otherwise
# Always ask for both numbers: the bytes and the error.
# ///

# %% tags=["fold"]
from course_kernels.skinny_gemm import k01_one_program as bf16_program
from course_kernels.skinny_gemm import library as bf16_library
from course_kernels.skinny_gemm_fp8 import k02_shares as fp8_shares
from course_kernels.skinny_gemm_fp8 import library as fp8_library
from course_kernels.skinny_gemm_fp8.problem import (
    quantisation_error as fp8_error,
)
from course_kernels.skinny_gemm_w4 import k01_triton as w4_triton
from course_kernels.skinny_gemm_w4 import k02_fragments as w4_fragments
from course_kernels.skinny_gemm_w4.problem import (
    quantisation_error as w4_error,
)

GRID = {"N": 28672, "K": 4096}
FEW = (1, 4, 16, 32, 64, 128)
few = {"cublas": {}, "bf16": {}, "fp8": {}, "fp8_library": {}}
few |= {"w4_fragments": {}, "w4_triton": {}}
for M in FEW:
    rows = Workload.of("bfloat16", M=M, **GRID)
    wide = compare(
        {"cublas": bf16_library.cublas, "bf16": bf16_program}, rows, seconds=0.05
    )
    eight = compare(
        {"fp8": fp8_shares, "fp8_library": fp8_library.scaled_mm},
        rows,
        seconds=0.05,
    )
    four = {"w4_fragments": w4_fragments, "w4_triton": w4_triton}
    if not w4_fragments.supports(rows):
        del four["w4_fragments"]
    four = compare(four, rows, seconds=0.05)
    for who, result in {**wide, **eight, **four}.items():
        few[who][f"m{M}"] = result

draw = torch.Generator("cuda").manual_seed(0)
x = torch.randn(64, 4096, generator=draw, device="cuda")
weights = 0.02 * torch.randn(4096, 4096, generator=draw, device="cuda")
record(
    few=few,
    grid={"n": quantity(GRID["N"]), "k": quantity(GRID["K"])},
    ends={
        f"bits{bits}": quantity(RIDGE * bits / 16, "rows") for bits in (16, 8, 4)
    },
    off={
        name: {part: quantity(share) for part, share in error(x, weights).items()}
        for name, error in {"fp8": fp8_error, "w4": w4_error}.items()
    },
)

# %% [markdown]
# ## The coach and the bus
#
# Return to the first medicine: more rows. There are four seats, and six requests that need 3, 9, 4, 6, 2 and 5 steps. The
# **coach** takes four requests, and lets the next ones on only when all four are done: *static batching*. The **bus**
# lets people on and off at every stop: *continuous batching*, scheduling at every step [^yu2022].
#
# /// exercise | Lay the slips | 5 minutes
# Draw two grids, seats by steps. First the coach, then the bus. Count the empty seats, and write M under each step of the bus.
# /// answer
#
# | | steps | seats taken, step by step | empty seats |
# |---|---:|---|---:|
# | coach | {{ ride.coach.steps:.0f}} | 4 4 4 3 2 2 1 1 1, then 2 2 1 1 1 | {{ ride.coach.empty:.0f}} |
# | bus | {{ ride.bus.steps:.0f}} | 4 4 4 4 4 3 2 2 2 | {{ ride.bus.empty:.0f}} |
#
# A new request does not get on with just one row. It brings its whole prompt: a banquet in the middle of the trickle.
# ///
#
# So which M do the kernels of a server see? Here is the queue from above, {{ queue.count:,.0f}} requests and {{ steps.seats:.0f}} seats, run through [the engine's own timetable](../an_engine.py), without a model.
#
# /// predict | In how many of the steps does a multiply see just {{ steps.seats:.0f}} rows, one for each seat?
# - [steps.full < 0.25] In a quarter, or fewer
# - [0.25 <= steps.full < 0.6] In about half
# - [steps.full >= 0.6] In most
# /// reveal
# {{ steps.full:.0%}} of {{ steps.count:,.0f}} steps. {{ steps.with_prompt:.0%}} of all steps contain somebody's
# prompt, too, and then a step has up to {{ steps.most:,.0f}} rows.
#
# /// chart | trace
# title: Rows of every step, continuous batching
# trace: step_rows
# x: step
# x_label: step
# panels:
#   - {column: rows, y_label: rows, label: rows}
#   - {column: seats, y_label: seats, label: seats taken}
# alt: "Rows over steps: a floor of {{ steps.seats:.0f}} with many spikes, the highest of {{ steps.most:.0f}} rows, each where a prompt comes in; towards the end fewer and fewer. Below, the seats that are taken."
# caption: A spike is a prompt. The tail is the last long answers, when nobody is left waiting at the stop.
# ///
# ///
#
# M changes at each step, and now and then it is large. No kernel in a server can be tuned for one shape: the skinny multiply has
# different tiles for 16 rows and for 64, paged attention divides up whatever lengths there are, and CUDA graphs are recorded for
# a few sizes, with empty rows to fill up to the next size.

# %% tags=["fold"]
from course_models.serving.block_manager import Pages
from course_models.serving.request import Request, Running
from course_models.serving.scheduler import Schedule

SLIPS, SEATS = (3, 9, 4, 6, 2, 5), 4


def coach():
    """Seats taken in every step when a batch ends as a whole."""
    batches = [SLIPS[i : i + SEATS] for i in range(0, len(SLIPS), SEATS)]
    return [
        sum(length > step for length in batch)
        for batch in batches
        for step in range(max(batch))
    ]


def bus():
    """Seats taken in every step when a free seat is taken at once."""
    waiting, seated, found = list(SLIPS), [], []
    while waiting or seated:
        while waiting and len(seated) < SEATS:
            seated.append(waiting.pop(0))
        found.append(len(seated))
        seated = [left - 1 for left in seated if left > 1]
    return found


def timetable(arrivals, batch, step_tokens):
    """Rows and seats of every step, by the engine's schedule and without a model."""
    schedule = Schedule(Pages(4096, 16), step_tokens, batch)
    for number, one in enumerate(arrivals):
        # Every prompt begins with a number of its own, so that none is shared.
        prompt = [number] + [0] * (one.prompt - 1)
        request = Request(prompt, one.answer)
        schedule.waiting.append(Running(number, request, list(prompt)))
    while shares := schedule.plan():
        yield sum(share.tokens for share in shares), len(shares)
        ends = [share.ends for share in shares]
        for share, end in zip(shares, ends, strict=True):
            schedule.computed(share)
            if end:
                share.running.tokens.append(0)
            if share.running.done:
                schedule.leave(share.running)


on_the_bus = 16
rows_of_step, seats_of_step = zip(
    *timetable(asked, on_the_bus, step_tokens=512), strict=True
)
count = len(rows_of_step)
record(
    ride={
        ride.__name__: {
            "steps": quantity(len(ride())),
            "empty": quantity(SEATS * len(ride()) - sum(ride())),
        }
        for ride in (coach, bus)
    },
    step_rows=trace(
        {
            "step": list(range(count)),
            "rows": rows_of_step,
            "seats": seats_of_step,
        }
    ),
    steps={
        "seats": quantity(on_the_bus),
        "count": quantity(count),
        "most": quantity(max(rows_of_step)),
        "full": quantity(sum(rows == on_the_bus for rows in rows_of_step) / count),
        "with_prompt": quantity(
            sum(map(int.__gt__, rows_of_step, seats_of_step)) / count
        ),
    },
)

# %% [markdown]
# ## A step, against its floor {.beyond}
#
# Now put everything together: a step of the whole 8B shape, with norms, rotations and gates inside the multiplies, five
# kernels a layer, each starting while the one before it is still ending. [One
# token](../one_token.py#five-kernels-a-layer) takes that apart for one reader. Here there are {{ bus.rows:.0f}}
# readers, each with {{ bus.held:.0f}} tokens in the cache. The floor is the time that the bytes of weights and caches take at
# the speed of a copy.
#
# /// predict | What share of its floor does the step with {{ bus.rows:.0f}} rows reach?
# - [decode_of_floor.b32 < 0.72] Less than 72 %
# - [0.72 <= decode_of_floor.b32 < 0.93] 72 % or more, and less than 93 %
# - [decode_of_floor.b32 >= 0.93] 93 % or more
# /// reveal
# {{ decode_of_floor.b32:.0%}}; with one row it is {{ decode_of_floor.b1:.0%}}. `torch.compile` in a CUDA graph reaches {{ compiled_of_floor.b32:.0%}} and {{ compiled_of_floor.b1:.0%}}.
#
# /// table
# columns: ["", "one row", "{{ bus.rows:.0f}} rows"]
# rows:
#   - ["our step, tokens/s", "{{ 1000000 * one.our_step.T / one.our_step.us:.0f}}", "{{ bus.rows * 1000000 * full.our_step.T / full.our_step.us:.0f}}"]
#   - ["torch.compile, tokens/s", "{{ 1000000 * one.compiled.T / one.compiled.us:.0f}}", "{{ bus.rows * 1000000 * full.compiled.T / full.compiled.us:.0f}}"]
#   - ["our step, % of the floor at the speed of a copy", "{{ decode_of_floor.b1:.0%}}", "{{ decode_of_floor.b32:.0%}}"]
#   - ["our step, % of the data sheet's bytes", "{{ one.our_step.of_peak:.0%}}", "{{ full.our_step.of_peak:.0%}}"]
# caption: "The shape of Llama 3.1 8B, random weights, bf16, all in CUDA graphs. A copy of 4 GiB, in this run: {{ copy.gb_per_s:,.0f}} GB/s."
# ///
#
# And how far is that from the floor? By subtraction the distance is
# {{ (1 - decode_of_floor.b32) * full.our_step.ms / full.our_step.T:.1f}} ms for each step, and
# {{ (1 - decode_of_floor.b1) * one.our_step.ms / one.our_step.T:.1f}} ms with one row. Both have the same number of
# kernels, so that is not the reason. Nor is the clock the reason: it is at {{ full.our_step.sm_mhz:.0f}} MHz in both
# readings. With more rows three of the five kernels are different ones; in each, every block has more rows of x to load
# and more sums to add; and attention reads {{ bus.rows:.0f}} caches. How much can that cost? On their own, relatives of
# these kernels lose less: on [the grid of gate and up](#shorter-weights) 32 rows take {{ few.bf16.m32.us / few.bf16.m1.us - 1:.0%}}
# longer than one, and [attention over keys in a row](#follow-the-table) reads at
# {{ in_a_row.gb_per_s / copy.gb_per_s:.0%}} of a copy's speed. So most of the loss arises where kernels meet, in the
# step itself. We conclude that by subtraction; a timeline of the step would show it, and this run has none.
# ///
#
# /// define | decode_of_floor.b1 = one.our_step.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step of decoding of the 8B shape, our kernels, one row, over its byte floor at the speed of a copy
# ///
#
# /// define | decode_of_floor.b32 = full.our_step.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step of decoding of the 8B shape, our kernels, 32 rows, over its byte floor at the speed of a copy
# ///
#
# /// define | compiled_of_floor.b1 = one.compiled.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step of decoding of the 8B shape, torch.compile in a CUDA graph, one row, over its byte floor at the speed of a copy
# ///
#
# /// define | compiled_of_floor.b32 = full.compiled.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step of decoding of the 8B shape, torch.compile in a CUDA graph, 32 rows, over its byte floor at the speed of a copy
# ///
#
# /// claim | full.our_step.us < full.compiled.us
# With {{ bus.rows:.0f}} rows, too, the step in five kernels is ahead of `torch.compile`, which takes {{ full.compiled.us / full.our_step.us:.2f}}
# times as long. It was not always so. In our first attempt several blocks shared K as soon as there were more than eight rows,
# and passed their sums on through memory, tile by tile. Now a kernel that loads its weights in boxes, `k02_even`, is used in
# those places.
# /// otherwise
# With {{ bus.rows:.0f}} rows `torch.compile` takes {{ full.compiled.us / full.our_step.us:.0%}} of the time of our step.
# ///
#
# ### The same step in four bits
#
# Now try the third medicine, on the whole step and one row. The seven matrices of every layer are [rounded to four bits](#shorter-weights),
# in groups of 128. Embedding, norms and the **head stay in 16 bits**, and so does the cache. Nothing else changes: five kernels a
# layer, and each unpacks its weights in registers.
#
# /// predict | By the bytes that it reads, such a step would be {{ step_gb.bits16 / step_gb.bits4:.1f}} times as fast. And by the clock?
# - [faster < 1.25] Hardly faster
# - [1.25 <= faster < 1.75] About one and a half times as fast
# - [1.75 <= faster < 2.7] About twice as fast, or somewhat more
# - [faster >= 2.7] As the bytes say, or nearly
# /// reveal
# {{ faster:.2f}} times: {{ one.our_step.ms / one.our_step.T:.2f}} ms per token became {{ short.ms / short.T:.2f}} ms. That is
# {{ short_of_floor:.0%}}
# of its own floor, where the step in 16 bits reaches {{ decode_of_floor.b1:.0%}} of its own.
#
# Why do the bytes not shrink to a quarter? The head was not rounded, and it is {{ head_gb:.2f}} GB of the {{ step_gb.bits4:.2f}} that are
# left; the scales and the cache are in there, too.
#
# And why is this step further from its floor? The work other than reading did not shrink with the bytes: just as many kernels begin
# and end, with less to read in between, and every word of eight weights must be unpacked.
# ///
#
# /// define | faster = (one.our_step.us / one.our_step.T) / (short.us / short.T)
# unit: ×
# what: the time of a step in 16 bits over that of one with weights of four bits, 8B shape, one row, our kernels
# ///
#
# /// define | short_of_floor = short.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step with weights of four bits, 8B shape, one row, the head in 16 bits, over its own byte floor at the speed of a copy
# ///
#
# /// claim | short_of_floor >= 0.5
# The floor is that much lower, and the step reaches {{ short_of_floor:.0%}} of it: half, and a little more. To get closer, each kernel would have to begin earlier still; and for a lower floor the head would have to be rounded as well.
# /// otherwise
# {{ 1 - short_of_floor:.0%}} of the floor's speed is missing.
# ///
#
# ### The same step in NVFP4
#
# Four bits can also hold a float: one bit of sign, two of exponent and one of fraction. This is E2M1, and it has sixteen codes. In
# **NVFP4** each weight is such a float, every 16 weights of a row share a scale of eight bits, and the whole tensor has one more
# scale, in fp32 [^nvidia-nvfp4]. That is 4 + 8 ÷ 16 = 4.5 bits for each weight. The whole numbers above, with a scale of 16 bits for
# every 128, take 4 + 16 ÷ 128 = 4.125.
#
# Hopper's tensor cores do not know such floats. So the problem `skinny_gemm_fp4` has a kernel that does what `k02_fragments` did
# [above](#shorter-weights): it reads the weights from memory as they are, makes bf16 of them in registers, and multiplies in bf16.
#
# This kernel multiplies and does nothing else, so the small parts of a layer need kernels of their own again: norm, multiply,
# rotation, attention, multiply, sum and norm, multiply, gate, multiply, sum. That is ten kernels a layer instead of five. Embedding,
# norms, head and cache stay as they were.
#
# /// predict | By its bytes, this step would take {{ step_gb.nvfp4 / step_gb.bits4:.2f}} times as long as the one with whole numbers. And by the clock?
# - [nvfp4_over_whole < 1] It takes less time
# - [1 <= nvfp4_over_whole < 1.2] As long or longer, but less than 1.2 times as long
# - [1.2 <= nvfp4_over_whole < 1.6] At least 1.2 times, but less than 1.6 times as long
# - [nvfp4_over_whole >= 1.6] At least 1.6 times as long
# /// reveal
# {{ nvfp4_over_whole:.2f}} times as long: {{ nvfp4.ms / nvfp4.T:.2f}} ms per token instead of {{ short.ms / short.T:.2f}}. That is {{ nvfp4_of_floor:.0%}} of its own floor.
#
# /// chart | bars
# title: "The same model, the same card: decode with shorter weights, one reader"
# x_label: tokens/s
# bars:
#   - {name: rate.compiled, label: "16 bits, torch.compile of the layers"}
#   - {name: rate.our_step, label: "16 bits, our five kernels a layer"}
#   - {name: rate.whole, label: "4 bits, whole numbers, five kernels a layer"}
#   - {name: rate.nvfp4, label: "NVFP4, ten kernels a layer"}
# references:
#   - {label: "byte floor, 16 bits", value: bound.bits16}
#   - {label: "byte floor, NVFP4", value: bound.nvfp4}
# alt: "Bars in tokens a second, for the 8B shape with random weights and one reader, all in CUDA graphs: torch.compile in 16 bits {{ rate.compiled:.0f}}, our five kernels a layer in 16 bits {{ rate.our_step:.0f}}, with whole numbers of four bits {{ rate.whole:.0f}}, ten kernels a layer with weights in NVFP4 {{ rate.nvfp4:.0f}}. Two lines mark the byte floor at the speed of a copy: {{ bound.bits16:.0f}} in 16 bits, {{ bound.nvfp4:.0f}} in NVFP4."
# caption: "The 8B shape, random weights, the head in bf16, {{ bus.held:.0f}} tokens in the cache. The floors are at the speed of a copy. [One token](../one_token.py#five-kernels-a-layer) has more bars in 16 bits, from a run of its own."
# ///
#
# /// claim | nvfp4.us < one.our_step.us
# Decoded in software, on a card that has no arithmetic for it, NVFP4 still pays: {{ rate.nvfp4:.0f}} tokens/s, where our step in
# 16 bits writes {{ rate.our_step:.0f}}.
# /// otherwise
# So on this card NVFP4 saves room and no time: {{ rate.nvfp4:.0f}} tokens/s, where our step in 16 bits writes {{ rate.our_step:.0f}}.
# ///
#
# /// claim | nvfp4.us > short.us
# But the step with whole numbers is ahead of it, with {{ rate.whole:.0f}} tokens/s. Three things differ: NVFP4 has more bytes of scales,
# its weights are unpacked by different instructions, and each layer has five kernels more. If the added kernels alone made the difference, each of
# the {{ 5 * layers:.0f}} would cost {{ (nvfp4.us / nvfp4.T - short.us / short.T) / (5 * layers):.1f}} µs. But the bytes alone account for a part
# of it, as you saw before you guessed. Which of the three costs how much? This run cannot say: for that, NVFP4 would need five kernels a
# layer, too.
# /// otherwise
# The step with whole numbers writes {{ rate.whole:.0f}} tokens/s. It has fewer bytes and half as many kernels, and is not ahead here.
# ///
# ///
#
# Which of the two formats a model's answers can tolerate is a different question, and no clock answers it.
#
# /// define | nvfp4_over_whole = (nvfp4.us / nvfp4.T) / (short.us / short.T)
# unit: ×
# what: the time of a step with weights in NVFP4 over that of one with whole numbers of four bits, 8B shape, one row
# ///
#
# /// define | nvfp4_of_floor = nvfp4.gb_per_s / copy.gb_per_s
# unit: ×
# what: a step with weights in NVFP4, 8B shape, one row, the head in 16 bits, over its own byte floor at the speed of a copy
# ///
#
# /// define | rate.compiled = 1000000 * one.compiled.T / one.compiled.us
# unit: tokens/s
# what: tokens a second with torch.compile, in a CUDA graph, one reader, in the run of W4
# ///
#
# /// define | rate.our_step = 1000000 * one.our_step.T / one.our_step.us
# unit: tokens/s
# what: tokens a second in a CUDA graph with our five kernels a layer, one reader, in the run of W4
# ///
#
# /// define | rate.whole = 1000000 * short.T / short.us
# unit: tokens/s
# what: tokens a second with weights in whole numbers of four bits, five kernels a layer, one reader
# ///
#
# /// define | rate.nvfp4 = 1000000 * nvfp4.T / nvfp4.us
# unit: tokens/s
# what: tokens a second with weights in NVFP4, decoded in software, ten kernels a layer, one reader
# ///
#
# /// define | bound.bits16 = copy.gb_per_s / step_gb.bits16
# unit: tokens/s
# what: tokens a second at the byte floor, at the speed of a copy, weights in 16 bits, in the run of W4
# ///
#
# /// define | bound.nvfp4 = copy.gb_per_s / step_gb.nvfp4
# unit: tokens/s
# what: tokens a second at the byte floor, at the speed of a copy, weights in NVFP4, the head in 16 bits
# ///

# %% tags=["fold"]
from course_kernels.copy.library import torch_copy
from course_models import bench, int4_decode, nvfp4_decode
from course_models.config import decode_bytes

ROWS_OF_BUS = 32
subject = bench.subject()
BOTH = {"seconds": 0.2, "only": ("compiled", "our_step")}
record(
    bus={
        "rows": quantity(ROWS_OF_BUS, how="given"),
        "held": quantity(bench.HELD, how="given"),
    },
    copy=measure(torch_copy, Workload.of("float32", N=4 * 2**28)),  # 4 GiB
    one=bench.decode(subject, 1, **BOTH),
    full=bench.decode(subject, ROWS_OF_BUS, **BOTH),
    short=int4_decode.decode(subject, 1, seconds=0.2),
    nvfp4=nvfp4_decode.decode(subject, 1, seconds=0.2),
    layers=quantity(subject.config.layers),
    head_gb=quantity(2 * subject.head.numel() / 1e9, "GB"),
    step_gb={
        weights: quantity(count(subject.config, 1, bench.HELD) / 1e9, "GB")
        for weights, count in {
            "bits16": decode_bytes,
            "bits4": int4_decode.step_bytes,
            "nvfp4": nvfp4_decode.step_bytes,
        }.items()
    },
)

# %% [markdown]
# ## Three patients
#
# Three servers are ill.
#
# - **A** has only half of its seats taken, although its memory is full.
# - **B** waits for bytes, at four rows per step.
# - **C** runs ten small kernels between two multiplies.
#
# /// exercise | One medicine each | 4 minutes
# Which medicine for which patient? And which *one number* do you ask for before you prescribe it?
# /// answer
#
# | patient | medicine | the number first |
# |---|---|---|
# | A | pages | how many of the reserved places hold a token? |
# | B | more rows, or shorter weights | how many users are waiting, and is there room for their caches? |
# | C | fusion | how many tensors go to HBM and back? |
#
# B has two right answers. More rows are better as long as users are waiting and there is room; otherwise the weights must shrink.
# ///

# %% [markdown]
# ## Build it: add and norm in one kernel {.beyond}
#
# This is the kernel from class once more, and now it is graded. Write it in Triton, in CUDA C++, or in NumPy alone. A
# row is added, measured and divided, all while you hold it. The answer to the last task is not on any page.
#
# The lab has the names of the class: it passes x, g, r and expects y, s, in this order. If your file from class is in
# `my_labs/`, begin with `nox -s lab -- add_rmsnorm --stage 0`: it writes the starter, and keeps your file beside it.
#
# /// lab | add_rmsnorm
# ///

# %% [markdown]
# ## Build it: a cache in pages
#
# Read through a table, write one more token, keep track of who holds which page, count what two texts can share, and say when no
# page is left. Plain Python is enough, and with these five small pieces you can keep the books of an engine. The last stage has the
# same six requests as [above](#reserved-or-a-page-at-a-time), but without seats: all begin at once.
#
# /// lab | paged
# ///

# %% [markdown]
# ## Before you leave
#
# /// exercise | Three lines to take along | 4 minutes
# 1. In one sentence: why does a weight matrix wait for bytes in decode, but not in prefill?
# 2. Pages hold 16 tokens, and a request has 100. How many places are empty?
# 3. Three elementwise operators in a row, each reading one tensor and writing one. How many trips are left when they are fused?
# /// answer
# 1. In decode each weight that is fetched meets one row, or a few; in prefill it meets as many rows as the prompt has tokens.
# 2. Seven pages: 7 × 16 = 112, and 112 − 100 = 12. Never more than 15.
# 3. Two instead of six: the first read and the last write.
# ///
#
# **You can now** ask a serving kernel three things: *how many rows, how many trips, how many bits?* The first is M, the second is fusion, the third is short numbers. And you can say what each of them cannot cure.
#
# **Where this leads.** All of it comes together in a server that you can read, [an engine](../an_engine.py), where the coach
# and the bus race over this very queue. For the multiply alone, read [the multiply, size by size](../multiply_on_hopper.py).
# [The ledger](../numbers.md) lists each number with its spread.
