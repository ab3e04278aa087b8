# ---
# id: week_04
# title: "Week 4: efficient attention"
# search: {rank: 2}
# nav: "4 · Attention"
# description: "FlashAttention's forward pass in NumPy with shared key heads and a causal mask, held against a plain one; what its tiles fetch, and what a latent keeps."
# ---

# %% [markdown]
# # Week 4: efficient attention
#
# /// week
# ///
#
# By the end of this week you can
#
# - write FlashAttention's forward pass, causal and with shared key heads, and say what each line saves;
# - say what a larger tile brings, and where it ends;
# - count what a token leaves in the cache with MHA, GQA, MQA and MLA.
#
# ## Why this week
#
# Last week attention's square was work. Written to memory it is also bytes, and those bytes hold a plain recipe far from the peak of any card. This week you leave it
# unwritten, so that the question *what percent of peak, and why not more?* gets another answer: the exponentials, and the waiting.
#
# ## Before you begin
#
# - What grows with the square of the length, and what with the length? [Week 3's milestone](week_03.py#milestone).
# - What are a query, a key and a value? [L8](../lectures/l8_attention.py#two-multiplies-and-a-softmax).
# - Why may you subtract the largest score of a row? [One query, by hand](../lectures/l8_attention.py#one-query-by-hand).
# - How much shared memory has a multiprocessor, and how far is it? [L3](../lectures/l3_memory.py#how-far-is-it).
#
# ## Read
#
# /// reading
# dao2022: "Take algorithm 1 and the count of traffic, the *IO complexity*. Traffic does not fall N times: every kernel must fetch Q, K and V. Its loops stand the other way round than in all later versions, keys outside, queries inside; and its times are an A100's."
# dao2023: "Take the three changes: queries spread over blocks, rows spread over warps, one division at the end. The share of peak in it is an A100's; on an H100 the same code reaches far less, as the third paper says."
# ainslie2023: "Take the picture of heads in groups, and how a trained model is changed: heads of keys and of values are averaged, and training goes on for a twentieth of its length. Today's models are trained with groups from the start."
# deepseek2024v2: "Section 2.1. (Lists of readings often send you to section 3, which is about training.) Take the table of what each kind of attention keeps for a token, and why the rotation needs a key of its own."
# flash3-post: "Read it for its pictures of who waits for whom; the instructions come in week 16 and the paper in week 17. It is about Hopper alone, and its kernel is CUDA C++, not Triton."
# ///
#
# ## Ideas
#
# - What does plain attention carry? [Four trips to HBM](../lectures/l8_attention.py#four-trips-to-hbm), and [the same, counted by the hardware](../workshops/w1_flash_attention.py#what-did-it-buy-count-the-trips).
# - How do tiles of queries, keys and values avoid the square? [The whole algorithm](../workshops/w1_flash_attention.py#the-whole-algorithm-in-numpy).
# - How can a softmax be taken of a row that you never see whole? The online softmax: [one crate at a time](../workshops/w1_flash_attention.py#softmax-one-crate-at-a-time).
# - What did FlashAttention-2 change? [On a napkin](../workshops/w1_flash_attention.py#flashattention-2-and-3-on-a-napkin).
#
# /// idea | Why do query heads share keys and values: MQA and GQA?
# A token's key and value are kept for every head, and read again for every new token. With *MQA*, multi-query attention, all query heads read one head of keys and values; with *GQA*, grouped-query attention, each group
# has one. The cache shrinks by the number of query heads that share. Scores and operations stay as many as before, so what you win is room, and trips in decode. A model that was trained with all heads can be
# changed with 5 % of the work of its training [^ainslie2023].
# ///
#
# /// idea | What does MLA keep in place of keys and values?
# *MLA*, multi-head latent attention, keeps one short list for each token, a *latent*, from which the keys and values of all heads can be made: a low-rank compression. DeepSeek-V2 keeps 512 numbers, and 64 more for one key that is rotated
# by its place and shared by all heads, where plain attention with 128 heads of 128 would keep 2 · 128 · 128 [^deepseek2024v2]. Often you read that the cache is 64 times smaller. That forgets the rotated key:
# with it the factor is {{ kept.mha / kept.mla:.1f}}. And unlike a shared head, the latent is read for scores *and* for values, so there is no factor 2. [W4](../workshops/w4_serving.py#does-decode-always-wait-for-bytes) says what that does to decode.
# ///
#
# | for a token of a layer | numbers kept |
# | --- | ---: |
# | MHA, 128 heads of 128 | {{ kept.mha:,.0f}} |
# | GQA, 8 key heads | {{ kept.gqa:,.0f}} |
# | MQA, 1 key head | {{ kept.mqa:,.0f}} |
# | MLA, 512 and 64 | {{ kept.mla:,.0f}} |
#
# The shape is DeepSeek-V2's [^deepseek2024v2]; the rows of GQA and MQA are what it would keep if its heads shared.
#
# ## Do
#
# W1's loop in NumPy is for one head, without a mask. Here is what a model of today needs: a causal mask, and groups of query heads that share a head of keys. It takes a few lines more. It is held against plain
# attention in float64, in place of PyTorch's `scaled_dot_product_attention`: two programs in one type could share a fault of rounding, and float64 shows it. It also counts what it fetches.

# %%
import numpy as np
from course_kernels.measure import quantity, record


def flash(Q, K, V, rows, keys):
    """Causal: Q is [H, N, D], K and V are [G, N, D]; H / G heads share one."""
    H, N, D = Q.shape
    G = len(K)
    O, held, fetched = np.empty_like(Q), 0, 0
    groups = Q.reshape(G, H // G, N, D)  # those that share, together
    for g in range(G):
        for i in range(0, N, rows):  # a tile of queries, of all of a group
            q = groups[g, :, i : i + rows] / np.float32(np.sqrt(D))
            m = np.full((*q.shape[:2], 1), -np.inf, Q.dtype)
            l, acc = np.zeros_like(m), np.zeros_like(q)
            for j in range(0, min(i + rows, N), keys):  # skip above the diagonal
                k, v = K[g, j : j + keys], V[g, j : j + keys]
                s = q @ k.T  # [H / G, rows, keys]
                row = i + np.arange(q.shape[1])[:, None]
                col = j + np.arange(len(k))
                s = np.where(col > row, -np.inf, s)  # mask what is on it
                m_new = np.maximum(m, s.max(-1, keepdims=True))
                repair = np.exp(m - m_new)
                p = np.exp(s - m_new)
                l = l * repair + p.sum(-1, keepdims=True)
                acc = acc * repair + p @ v
                m = m_new
                held, fetched = max(held, s.size), fetched + k.size + v.size
            O.reshape(groups.shape)[g, :, i : i + rows] = acc / l
    return O, held, fetched


def plain(Q, K, V):
    """The same in float64, with the whole square."""
    Q, K, V = (one.astype(np.float64) for one in (Q, K, V))
    share = len(Q) // len(K)
    S = Q @ K.repeat(share, 0).transpose(0, 2, 1) / np.sqrt(Q.shape[2])
    S[:, ~np.tri(Q.shape[1], dtype=bool)] = -np.inf
    P = np.exp(S - S.max(-1, keepdims=True))
    return P / P.sum(-1, keepdims=True) @ V.repeat(share, 0), S.size


HEADS, KEY_HEADS, N, D = 8, 2, 1000, 64
rng = np.random.default_rng(4)
Q = rng.standard_normal((HEADS, N, D), dtype=np.float32)
K, V = rng.standard_normal((2, KEY_HEADS, N, D), dtype=np.float32)
truth, square = plain(Q, K, V)
O, held, fetched = flash(Q, K, V, rows=64, keys=64)
own = flash(Q, K.repeat(4, 0), V.repeat(4, 0), rows=64, keys=64)
larger = flash(Q, K, V, rows=128, keys=64)
wider = flash(Q, K, V, rows=64, keys=128)

WIDTH = 128  # numbers of a head
tile = {  # bytes in shared memory, however long the text is
    "ours": 2 * 16 * WIDTH * 4,  # keys and values, 16 of each, fp32
    "tuned": 3 * 2 * 64 * WIDTH * 2,  # three pairs of tiles of 64, bf16
    "second": (128 + 2 * 64) * WIDTH * 2,  # 128 queries, 64 keys and values
}
matrix = 64 * 8192 * 8192 * 2  # bytes of the scores of 64 heads
record(
    kept={
        "mha": quantity(2 * 128 * 128),
        "gqa": quantity(2 * 8 * 128),
        "mqa": quantity(2 * 128),
        "mla": quantity(512 + 64),
    },
    loop={
        "worst": quantity(float(np.abs(O - truth).max())),
        "held": quantity(held),
        "square": quantity(square),
        "fetched": quantity(fetched),
        "own": quantity(own[2]),
        "larger": quantity(larger[2]),
        "wider": quantity(wider[2]),
    },
    matrix={
        "one": quantity(matrix / 1e9, "GB"),
        "binary": quantity(matrix / 2**30),
        "all": quantity(80 * matrix / 1e9, "GB"),
        "thin": quantity(64 * 8192 * WIDTH * 2 / 1e6, "MB"),
    },
    tile={name: quantity(size / 1024) for name, size in tile.items()},
    head=quantity(2 * 8192 * WIDTH * 2 / 1024),  # keys and values of one head, KiB
)

# %% [markdown]
# The worst number is {{ loop.worst:.0e}} away from the truth, as float32 is. N is 1000, so that the last tile is short.
#
# /// predict | Twice as many rows in a tile of queries, 128 for 64. How many numbers of keys and values does the loop fetch?
# - [loop.larger / loop.fetched >= 0.8] About as many: all keys must pass by all queries
# - [0.35 <= loop.larger / loop.fetched < 0.8] About half
# - [loop.larger / loop.fetched < 0.35] About a quarter
# /// reveal
# {{ loop.larger / loop.fetched:.2f}} of them. A key that is on the chip meets all rows that are there, so twice the rows need half the walks. With 128 *keys* in a tile and 64 rows it is {{ loop.wider / loop.fetched:.2f}}: a wider
# tile of keys saves nothing, and brings a few more from above the diagonal. This is the $N^2d^2/M$ of the paper: what counts is how many rows stay.
#
# | tile | heads of keys | numbers fetched |
# | --- | --- | ---: |
# | 64 rows, 64 keys | one for each query head | {{ loop.own:,.0f}} |
# | 64 rows, 64 keys | one for four | {{ loop.fetched:,.0f}} |
# | 128 rows, 64 keys | one for four | {{ loop.larger:,.0f}} |
# | 64 rows, 128 keys | one for four | {{ loop.wider:,.0f}} |
#
# Sharing heads divides by {{ loop.own / loop.fetched:.0f}}, as four query heads sit down together: at most {{ loop.held:,.0f}} scores exist at once, of {{ loop.square:,.0f}}.
# ///
#
# /// exercise | The mask that is not needed | 3 minutes
# The loop masks every tile. Which tiles need no mask? And why can no row meet a first tile in which all is masked?
# /// answer
# Those whose last column does not come after their first row. Fast kernels have two loops, one without the mask and a short one with it. The first tile begins with the first column, which every row may see.
# With a [window](../workshops/w1_flash_attention.py#before-you-leave-the-table) that is no longer so.
# ///
#
# ## Milestone
#
# /// exercise | What never exists | 6 minutes
# A model of 70 billion weights has 64 query heads of 128 numbers [^meta-llama31]. One text of 8192 tokens, fp16. How many bytes has the matrix of scores in a layer? And how many does FlashAttention keep in shared memory at most? Why does the
# second answer not need the first?
# /// answer
# 64 · 8192 · 8192 · 2 bytes are {{ matrix.one:.2f}} GB, or {{ matrix.binary:.0f}} GiB, for *one layer*; all 80 would be {{ matrix.all:.0f}} GB, but a layer's square can be thrown away before the next. Q of a layer takes {{ matrix.thin:.0f}} MB.
#
# FlashAttention keeps tiles: rows of queries, and one or more pairs of tiles of keys and values, of 128 numbers each. In its authors' second version, with 128 queries and 64 keys for heads of 128 [^dao-repo], that is (128 + 2 · 64) · 128 · 2 bytes, {{ tile.second:.0f}} KiB. The kernel that you type in W1 keeps
# {{ tile.ours:.0f}} KiB; our tuned one has three pairs on their way, {{ tile.tuned:.0f}} KiB. A block on Hopper can have 227 KiB [^nvidia-hopper-tuning].
#
# The scores of a tile are in registers. None of these sizes has N in it: a row's notes, its maximum, its sum and its plate, are enough to go on. Not even the keys and values of one head would fit, with {{ head:,.0f}} KiB: they pass by.
# ///
#
# ## What could not run here
#
# The loop above runs where the site is built, on a CPU, and says nothing of time. On a card the same loop is [in W1](../workshops/w1_flash_attention.py#and-the-clock): there PyTorch's FlashAttention-2 in bf16 is {{ w1.right_bf16.causal.sdpa_flash.error:.0e}} from the truth, our
# kernel {{ w1.right_bf16.causal.flash.error:.0e}}, and you can read what percent of peak each reaches. With PyTorch you type this, and see a difference of rounding:
#
# ```python
# import torch
#
# q, k, v = (torch.from_numpy(one)[None] for one in (Q, K, V))
# O = torch.nn.functional.scaled_dot_product_attention(
#     q, k, v, is_causal=True, enable_gqa=True
# )
# ```
#
# ## What next
#
# [Week 5](week_05.py) keeps the operations and shortens the numbers.
