# ---
# id: sparse_reading
# title: Read only what matters
# section: Make the model fast
# order: 128
# description: "Sparse attention as DeepSeek-V3.2 decodes: an index of every token, a choice of 2048, and attention over their rows alone; from which context on it pays by bytes, by operations and by the clock, and what the card's counters say."
# needs: [capability 9.0, counters]
# ---

# %% [markdown]
# # Read only what matters
#
# By the end of this page you can
#
# - count the bytes of a decode that reads everything, and of one that reads an index and a choice, and say where the two lines cross;
# - say what the clock pays that the bytes do not show;
# - check by counters that rows that lie anywhere cost no more bytes than rows side by side;
# - name the one case in which dense and sparse must agree, and use it as a test.
#
# You need [the cache of latents](workshops/w6_frontier.py#the-recipe-not-the-dishes), of which a token leaves one row for all heads.
#
# ## An index first
#
# *A reader of a thick file who has an index reads the index, and then twenty pages.*
#
# At every step, attention reads the whole cache, and the bet is that in a long one most of it has hardly any weight. DeepSeek-V3.2
# reads a small index first [^deepseek2025]. For every token the cache keeps, besides its row of 576 numbers, an index key of
# 128. A new token has 64 index queries $q^I_j$ and as many weights $w_j$, and scores every earlier token $s$:
#
# $$ I_s = \sum_j w_j \, \mathrm{ReLU}(q^I_j \cdot k^I_s) $$
#
# ReLU makes 0 of whatever is below it. The 2048 tokens of the largest score are chosen, and attention reads their rows alone. Its 128 heads share one row for each token, and 512 of its 576 numbers are
# keys and values at once. Whether the choice is a good one is a question for training: they train the index to agree with the attention that it
# replaces [^deepseek2025]. Here we ask only what it costs. Our index keys are in bf16, 256 bytes; theirs are in FP8, half of that.
#
# /// exercise | Where do the lines cross? | 4 minutes
# A row of the cache has 1152 bytes and an index key 256. Dense attention reads N rows; sparse attention reads N index keys and 2048 rows. From which N on does
# it read less? And by operations: dense takes 2 · 128 · (576 + 512) for each token, the index 2 · 64 · 129.
# /// answer
# 1152 N = 256 N + 2048 · 1152, so N = 2048 · 1152 ÷ 896, about 2633; with the index's queries it is {{ sparse.crossing.bytes:,.0f}}. By operations it is
# {{ sparse.crossing.flops:,.0f}}: an index key costs fewer operations than bytes, compared with a row. Both cross before 2700: the index is cheap.
# ///
#
# `k02_in_pieces` copies the chosen rows, `k03_gathered` reads them where they lie, both with torch's `topk`. `k04_chosen` also chooses by itself; it is *sparse* below,
# and `k01_dense` is *dense*.
#
# /// predict | One sequence, one step. From which of these contexts on does sparse take less time than dense?
# - [sparse.one.chosen.n4096.us < sparse.one.dense.n4096.us] From 4096 on, as the bytes say
# - [sparse.one.chosen.n4096.us >= sparse.one.dense.n4096.us and sparse.one.chosen.n32768.us < sparse.one.dense.n32768.us] From 8192, 16384 or 32768 on
# - [sparse.one.chosen.n4096.us >= sparse.one.dense.n4096.us and sparse.one.chosen.n32768.us >= sparse.one.dense.n32768.us] Later than that, or never
# /// reveal
# /// claim | sparse.one.dense.n16384.us < sparse.one.chosen.n16384.us and sparse.one.chosen.n65536.us < sparse.one.dense.n65536.us
# With 4096 tokens dense takes {{ sparse.one.dense.n4096.us:.0f}} µs and sparse {{ sparse.one.chosen.n4096.us:.0f}} µs; with 131072 tokens it is
# {{ sparse.one.dense.n131072.us:.0f}} and {{ sparse.one.chosen.n131072.us:.0f}} µs. By the clock the lines cross between 16384 tokens, where dense takes {{ sparse.one.dense.n16384.us:.0f}} µs and sparse
# {{ sparse.one.chosen.n16384.us:.0f}}, and 65536 tokens, where it is {{ sparse.one.dense.n65536.us:.0f}} and {{ sparse.one.chosen.n65536.us:.0f}} µs. By bytes they crossed at {{ sparse.crossing.bytes:,.0f}}.
#
# Why so late? Dense is {{ whole.dense.kernels:.0f}} kernels. Sparse is {{ whole.chosen.kernels:.0f}}: scores, choice, attention and merge, and none of them can begin before the one before it has ended. With one sequence, each has
# little to do, and all those starts must be paid back first. At 4096 tokens sparse has {{ sparse.one.chosen.n4096.of_peak:.0%}} of its floor's speed, the speed of a kernel that would only wait for its bytes or its operations.
# /// otherwise
# With one sequence and 4096 tokens, dense takes {{ sparse.one.dense.n4096.us:.0f}} µs
# and sparse {{ sparse.one.chosen.n4096.us:.0f}} µs; with 131072 tokens {{ sparse.one.dense.n131072.us:.0f}} µs and {{ sparse.one.chosen.n131072.us:.0f}} µs. By bytes the lines cross at {{ sparse.crossing.bytes:,.0f}} tokens.
# ///
#
# /// claim | sparse.many.chosen.n4096.us < sparse.many.dense.n4096.us and sparse.many.dense.n65536.us > 4 * sparse.many.chosen.n65536.us
# With 32 sequences one start serves all of them. Already at 4096 tokens sparse takes less time, {{ sparse.many.chosen.n4096.us:,.0f}} µs where dense takes {{ sparse.many.dense.n4096.us:,.0f}}. At 65536 tokens dense takes {{ sparse.many.dense.n65536.us:,.0f}} µs, more than four times as long as sparse with {{ sparse.many.chosen.n65536.us:,.0f}} µs.
# /// otherwise
# With 32 sequences one start serves all of them. At 4096 tokens dense takes {{ sparse.many.dense.n4096.us:,.0f}} µs and sparse {{ sparse.many.chosen.n4096.us:,.0f}}, at 65536 tokens {{ sparse.many.dense.n65536.us:,.0f}} µs and {{ sparse.many.chosen.n65536.us:,.0f}} µs.
# ///
#
# /// claim | sparse.one.chosen.n16384.us < 0.75 * sparse.one.gathered.n16384.us and 0.9 * sparse.many.gathered.n65536.us < sparse.many.chosen.n65536.us < 1.1 * sparse.many.gathered.n65536.us
# **Is a choice of one's own worth it?** With one sequence of 16384 tokens yes: `k04_chosen` takes less than 0.75 of the time of `k03_gathered`, which leaves the choice to torch's `topk`. With 32 sequences of 65536 the two are level, within a tenth: {{ sparse.many.chosen.n65536.us:,.0f}} µs and {{ sparse.many.gathered.n65536.us:,.0f}} µs.
# /// otherwise
# **Is a choice of one's own worth it?** With one sequence of 16384 tokens `k04_chosen` takes {{ sparse.one.chosen.n16384.us:,.0f}} µs, and `k03_gathered`, which leaves the choice to torch's `topk`, {{ sparse.one.gathered.n16384.us:,.0f}}; with 32 sequences of 65536 it is {{ sparse.many.chosen.n65536.us:,.0f}} and {{ sparse.many.gathered.n65536.us:,.0f}} µs.
# ///
#
# The hill in the two middle lines of the chart is torch's: its `topk` gives a single row to one block when it has fewer than 20 000 numbers, and to many when it is longer [^pytorch-topk]. `k04_chosen` gives every row to many.
#
# /// chart | lines
# title: One step of decoding, one sequence
# x: N
# y: us
# x_label: tokens of context
# y_label: time, µs
# y_scale: log
# series:
#   - {name: sparse.one.dense.*, label: "all tokens, k01_dense"}
#   - {name: sparse.one.in_pieces.*, label: "chosen, copied, k02_in_pieces"}
#   - {name: sparse.one.gathered.*, label: "chosen, in place, k03_gathered"}
#   - {name: sparse.one.chosen.*, label: "own choice, k04_chosen"}
# alt: "Time against context, both axes logarithmic. 4096 tokens: all {{ sparse.one.dense.n4096.us:.0f}} µs, copied {{ sparse.one.in_pieces.n4096.us:.0f}}, in place {{ sparse.one.gathered.n4096.us:.0f}}, own choice {{ sparse.one.chosen.n4096.us:.0f}}. 131072 tokens: {{ sparse.one.dense.n131072.us:.0f}}, {{ sparse.one.in_pieces.n131072.us:.0f}}, {{ sparse.one.gathered.n131072.us:.0f}} and {{ sparse.one.chosen.n131072.us:.0f}} µs."
# caption: "128 heads, 2048 chosen of all, bf16. For every context all four are timed in the same rounds on the same inputs, in which the tokens that are not chosen have no weight, so that all four owe one answer."
# ///
#
# /// table
# columns: ["32 sequences, µs", "4096 tokens", "16384", "65536"]
# rows:
#   - ["all tokens, k01_dense", "{{ sparse.many.dense.n4096.us:,.0f}}", "{{ sparse.many.dense.n16384.us:,.0f}}", "{{ sparse.many.dense.n65536.us:,.0f}}"]
#   - ["chosen, copied, k02_in_pieces", "{{ sparse.many.in_pieces.n4096.us:,.0f}}", "{{ sparse.many.in_pieces.n16384.us:,.0f}}", "{{ sparse.many.in_pieces.n65536.us:,.0f}}"]
#   - ["chosen, in place, k03_gathered", "{{ sparse.many.gathered.n4096.us:,.0f}}", "{{ sparse.many.gathered.n16384.us:,.0f}}", "{{ sparse.many.gathered.n65536.us:,.0f}}"]
#   - ["own choice, k04_chosen", "{{ sparse.many.chosen.n4096.us:,.0f}}", "{{ sparse.many.chosen.n16384.us:,.0f}}", "{{ sparse.many.chosen.n65536.us:,.0f}}"]
# ///
# ///
#
# One thing is easily taken for granted in that chart: that all four compute the same. Where there are no more tokens than may be chosen, they must.
#
# /// when | sparse.agree == 0
# With 2048 tokens `k01_dense` and `k04_chosen` give the same answers, bit for bit: our choice comes in the order of the tokens, so both add up the same numbers in the same order.
# /// otherwise
# With 2048 tokens the answers of `k01_dense` and `k04_chosen` differ by {{ sparse.agree:.4f}} at the worst place, relative to the size of its row;
# {{ sparse.allowed:.4f}} would be let through.
# ///
#
# And one thing is a loss of ours: with 32 sequences of 65536 tokens, all of them chosen, `k01_dense` reaches {{ sparse.roof.of_peak:.0%}} of the roof that binds, bytes or operations. By bytes dense reads
# {{ read_by_hand.dense / (read_by_hand.index + read_by_hand.rows):.1f}} times as much there as sparse; by the clock it takes {{ sparse.many.dense.n65536.us / sparse.many.chosen.n65536.us:.1f}} times as long. Against a better
# dense kernel sparse would gain less, and the clock's crossing would lie further to the right; the pencil's stays where it is.

# %% tags=["fold"]
import torch
from course_kernels.measure import compare, measure, quantity, record
from course_kernels.problem import Workload, worst_error
from course_kernels.sparse_attention import (
    k01_dense,
    k02_in_pieces,
    k03_gathered,
    k04_chosen,
)
from course_kernels.sparse_attention import problem as sparse_problem

STEPS = {
    "dense": k01_dense,
    "in_pieces": k02_in_pieces,
    "gathered": k03_gathered,
    "chosen": k04_chosen,
}


def context_of(B, N, TOP=2048):
    """DeepSeek-V3.2's heads, B sequences of N tokens; what is not chosen has no weight."""
    return Workload.of("bfloat16", B=B, H=128, H_I=64, N=N, TOP=TOP, peaked=True)


def over_context(B, contexts):
    """All four in one round, for each context."""
    runs = {N: compare(STEPS, context_of(B, N), seconds=0.05) for N in contexts}
    return {who: {f"n{N}": runs[N][who] for N in contexts} for who in STEPS}


def furthest_apart():
    """How far the answers differ where every token is chosen."""
    everything = context_of(2, 2048)
    inputs = sparse_problem.make_inputs(
        everything, torch.Generator("cuda").manual_seed(0), "cuda"
    )
    dense, chosen = (
        k.sparse_attention(*inputs, top=2048) for k in (k01_dense, k04_chosen)
    )
    return worst_error(chosen, dense.double(), rows_apart=True)


record(
    sparse={
        "crossing": {
            of: quantity(sparse_problem.crossing_tokens(context_of(1, 1), of=of))
            for of in ("bytes", "flops")
        },
        "one": over_context(1, (4096, 8192, 16384, 32768, 65536, 131072)),
        "many": over_context(32, (4096, 16384, 65536)),
        "roof": measure(k01_dense, context_of(32, 65536, TOP=65536), seconds=0.05),
        "agree": quantity(furthest_apart()),
        "allowed": quantity(sparse_problem.PROBLEM.max_error(context_of(1, 1))),
    }
)

# %% [markdown]
# ## Does the card read what the pencil says?
#
# The counters tell, kernel by kernel, for 32 sequences of 65536 tokens.
#
# /// claim | 0.9 * read_by_hand.dense < read_counted.dense < 1.1 * read_by_hand.dense and 0.9 * read_by_hand.index < read_counted.index < 1.1 * read_by_hand.index and 0.9 * read_by_hand.rows < read_counted.rows < 1.1 * read_by_hand.rows
# Rows and index keys are within 10 % of their formulas. Rows that lie all over the cache are no more bytes than rows side by side: one has 1152 bytes, nine whole lines of 128. And
# the heads are the work of two programs, yet a row crosses memory once: the second finds it in L2.
# /// otherwise
# On this card one part at least is further from its formula: look which one.
# ///
#
# /// table
# columns: ["read, GB", formula, "by hand", counted]
# rows:
#   - ["dense: all rows, and queries", "N · 1152", "{{ read_by_hand.dense / 1e9:.3f}}", "{{ read_counted.dense / 1e9:.3f}}"]
#   - ["sparse: index keys", "N · 256", "{{ read_by_hand.index / 1e9:.3f}}", "{{ read_counted.index / 1e9:.3f}}"]
#   - ["sparse: chosen rows, and queries", "2048 · 1152", "{{ read_by_hand.rows / 1e9:.3f}}", "{{ read_counted.rows / 1e9:.3f}}"]
#   - ["sparse: scores, read five times", "5 · N · 4", "{{ read_by_hand.scores / 1e9:.3f}}", "{{ read_counted.scores / 1e9:.3f}}"]
#   - ["sparse: sums of parts that are merged", "", "", "{{ read_counted.parts / 1e9:.3f}}"]
# caption: "For each of 32 sequences, and with 128 heads' queries. Counted by Nsight Compute, which empties the caches before every kernel: in a step, scores may still be in L2 when they are read again. With the scores, the counts of their digits are read, which the formula leaves out."
# ///
#
# In a whole step the counters see {{ whole.dense.gb:.2f}} GB read and written by dense, and {{ whole.chosen.gb:.2f}} GB by sparse. DeepSeek's own cache is shorter still: FlashMLA's has 656
# bytes a token, its 512 shared numbers in FP8 [^flashmla-sparse].

# %% tags=["fold"]
from course_kernels.measure import count_many

long = context_of(32, 65536)
tallies = dict(
    zip(
        ("dense", "chosen"),
        count_many([(k01_dense, long), (k04_chosen, long)]),
        strict=True,
    )
)


def read_by(who, *names):
    """Bytes that the kernels of these names read, of one call."""
    mine = [k["read_bytes"] for k in tallies[who].kernels if k["name"] in names]
    return quantity(sum(mine), "B", "counted")


queries = sparse_problem.query_bytes(long)
record(
    whole=tallies,
    read_by_hand={
        "dense": quantity(sparse_problem.dense_bytes(long), "B"),
        "index": quantity(sparse_problem.index_bytes(long), "B"),
        "rows": quantity(sparse_problem.chosen_bytes(long) + queries, "B"),
        "scores": quantity((k04_chosen.SCORE_TRIPS - 1) * 4 * long.B * long.N, "B"),
    },
    read_counted={
        "dense": read_by("dense", "dense_kernel"),
        "index": read_by("chosen", "scores_kernel"),
        "rows": read_by("chosen", "gathered_kernel"),
        "scores": read_by("chosen", "digit_kernel", "place_kernel"),
        "parts": read_by("chosen", "merge_kernel"),
    },
)

# %% [markdown]
# ## Before you go
#
# /// exercise | Twice the choice | 4 minutes
# Somebody wants 4096 chosen tokens in place of 2048. At which context do the bytes cross now? And at 131072 tokens, how many megabytes does a step read, before and now?
# /// answer
# 4096 · 1152 ÷ 896 is about 5266, twice as far out. At 131072 tokens the index is 131072 · 256 bytes, 33.6 MB, and the rows are 2.36 MB before and 4.72 MB now: 35.9 MB become 38.3 MB. Out
# there the index is what is read.
# ///
#
# **Where this leads.** Back to [the last workshop](workshops/w6_frontier.py#the-rest-of-the-stack), where this kernel is one of a stack.
