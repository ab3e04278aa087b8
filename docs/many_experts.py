# ---
# id: many_experts
# title: Many experts
# section: Make the model fast
# order: 126
# description: "A layer with 128 experts: which of them few tokens read, the road from a loop to a grouped multiply, who is busy when a trained router decides, and the same multiply in FP8 with a scale for every 128 numbers."
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Many experts
#
# By the end of this page you can
#
# - say how many experts a handful of tokens reads, and why that makes few tokens dear;
# - name the trips to memory that a layer of experts has beside its weights, and which of them fusing saves;
# - say what a grouped multiply is, and what its two forms are for;
# - tell when a popular expert costs time, and when it saves some;
# - say why a sum in FP8 is taken out of the tensor core every 128 numbers.
#
# You need [one token](one_token.py), for what a layer multiplies, and [the multiply on Hopper](multiply_on_hopper.py) for the second half.
#
# ## Many experts, few tokens
#
# In a **mixture of experts** a layer has many feed-forward blocks, the *experts*, and a *router* that picks a few of them for each token
# [^shazeer2017]. Qwen3-30B-A3B has 128 experts in a layer. A token is a row of D = 2048 numbers, each expert is a block of F = 768, and
# a token goes to 8 of them [^qwen3-moe]. The answers of the eight are added up, weighted by a softmax over their scores.
#
# All the weights must lie on the card. Which of them must be *read* depends on who goes where.
#
# /// exercise | How many experts are read? | 5 minutes
# An expert is three matrices of 768 × 2048, gate, up and down, in bf16: how many megabytes? One token reads eight of them. Sixteen tokens each draw eight of 128, every expert as likely as any other: how likely is it that an expert is drawn by nobody, and how many of the 128 do you expect to be read?
# /// answer
# 3 · 768 · 2048 · 2 bytes are {{ moe.mb.expert:.2f}} MB, and one token reads {{ moe.mb.t1:.1f}} MB. A token misses an expert with
# a chance of 15/16, and all sixteen miss it with (15/16)¹⁶ = {{ moe.missed:.2f}}. So you expect {{ moe.expected:.0f}} of 128. In the
# draw that we time it is {{ moe.hit.t16:.0f}}: {{ moe.mb.t16:.0f}} MB for sixteen tokens.
# ///
#
# That is the trouble with few tokens. A dense block is read once for all sixteen. Here sixteen tokens read most of the layer, and
# of those that are read most have one token or two.
#
# ### From a loop to five kernels
#
# The plain way is a loop: for each expert, fetch its tokens, multiply, add to their rows. With 128 experts it launches more than a thousand kernels, and
# the host has to ask the card, again and again, how many tokens an expert got.
#
# The other way is to **sort**. A *choice* is one token's j-th expert. Sort the choices by expert, and all experts are one *grouped*
# multiply. How many choices an expert has stays on the card: each program of the multiply, which makes one tile of the answer, reads the
# counts, and works out from them whose tile it has. As many programs are launched as there could be tiles at most, and those that find no
# tile end at once. So nobody waits for the host, and the call fits into one CUDA graph: launches that are recorded once, and replayed as one.
#
# | for each choice, written and read again | `k02_sorted` | `k03_fused` |
# |---|---|---|
# | its row of x, copied to its place | D | the multiply fetches it where it lies |
# | gate and up | 2 F | stay in registers |
# | their product | F | F |
# | its expert's answer | D | D, weighted already |
# | in all | 2 D + 3 F | D + F |
#
# At 4096 tokens these trips are {{ moe.trips.sorted:.0f}} MB for `k02_sorted` and {{ moe.trips.fused:.0f}} MB for `k03_fused`, beside
# {{ moe.mb.t4096:.0f}} MB of weights.
#
# /// source | src/course_kernels/moe/k03_fused.py#first
# fold: "k03_fused: the first multiply, which fetches its rows itself, and applies the gate before it writes"
# ///
#
# /// predict | Sixteen tokens: how many times the fused kernels' time does the loop over experts take?
# - [moe.t16.plain.us < 2 * moe.t16.fused.us] Less than twice: both read the same weights
# - [2 * moe.t16.fused.us <= moe.t16.plain.us < 10 * moe.t16.fused.us] From 2 to 10 times
# - [moe.t16.plain.us >= 10 * moe.t16.fused.us] 10 times or more
# /// reveal
# {{ moe.t16.plain.us / moe.t16.fused.us:.0f}} times: {{ moe.t16.plain.us / 1000:.0f}} ms, where `k03_fused` takes
# {{ moe.t16.fused.us:,.0f}} µs. The loop reads the same weights. But the host launches every operator of every expert, and in between asks the
# card, so this is the host's time and not the card's, and it wavers from round to round.
#
# /// table
# columns: ["", "16 tokens, µs", "of the floor's speed", "4096 tokens, µs", "of the floor's speed"]
# rows:
#   - ["k01, expert by expert", "{{ moe.t16.plain.us:,.0f}}", "{{ moe.t16.plain.of_peak:.0%}}", "{{ moe.t4096.plain.us:,.0f}}", "{{ moe.t4096.plain.of_peak:.0%}}"]
#   - ["k02, sorted, each step apart", "{{ moe.t16.sorted.us:,.0f}}", "{{ moe.t16.sorted.of_peak:.0%}}", "{{ moe.t4096.sorted.us:,.0f}}", "{{ moe.t4096.sorted.of_peak:.0%}}"]
#   - ["k03, sorted and fused", "{{ moe.t16.fused.us:,.0f}}", "{{ moe.t16.fused.of_peak:.0%}}", "{{ moe.t4096.fused.us:,.0f}}", "{{ moe.t4096.fused.of_peak:.0%}}"]
#   - ["torch, grouped multiply", "{{ moe.t16.library.us:,.0f}}", "{{ moe.t16.library.of_peak:.0%}}", "{{ moe.t4096.library.us:,.0f}}", "{{ moe.t4096.library.of_peak:.0%}}"]
#   - ["the same, the rest compiled", "{{ moe.t16.compiled.us:,.0f}}", "{{ moe.t16.compiled.of_peak:.0%}}", "{{ moe.t4096.compiled.us:,.0f}}", "{{ moe.t4096.compiled.of_peak:.0%}}"]
# caption: "Every token draws its experts, all alike. The floor is the least time that the data sheet allows, for 16 tokens by bytes, for 4096 by operations. The first row is the host's time, the others are the card's."
# ///
# ///
#
# /// claim | moe.t4096.fused.us < moe.t4096.sorted.us
# **What the trips cost.** At 4096 tokens `k03_fused` takes {{ moe.t4096.fused.us / moe.t4096.sorted.us:.0%}} of the time of `k02_sorted`. Both
# have the same sort and the same tiles; `k03_fused` moves {{ moe.trips.sorted - moe.trips.fused:.0f}} MB less. At 16 tokens the same trips are
# {{ (moe.trips.sorted - moe.trips.fused) / 256:.1f}} MB less, next to nothing beside the weights: {{ moe.t16.sorted.us:,.0f}} µs and {{ moe.t16.fused.us:,.0f}} µs.
# /// otherwise
# **What the trips cost.** Nothing that shows here: at 4096 tokens `k03_fused` takes {{ moe.t4096.fused.us:,.0f}} µs and `k02_sorted`
# {{ moe.t4096.sorted.us:,.0f}} µs. What the fused one saves in trips it pays for rows that it fetches one by one, where the copy engine brings the other's.
# ///
#
# /// claim | moe.t16.fused.us < moe.t16.library.us and moe.t16.fused.us < moe.t16.compiled.us
# At 16 tokens `k03_fused` is also faster than torch's grouped multiply, whether the rest is compiled or not.
# /// otherwise
# **And a loss.** At 16 tokens `k03_fused` takes {{ moe.t16.fused.us:,.0f}} µs, torch's grouped multiply with its own sort
# {{ moe.t16.library.us:,.0f}} µs, and with the rest compiled {{ moe.t16.compiled.us:,.0f}} µs.
# ///
#
# /// claim | moe.t4096.fused.us < 0.75 * moe.t4096.library.us and moe.t4096.fused.us < 0.65 * moe.t4096.compiled.us
# At 4096 tokens `k03_fused` takes less than 75 % of the time of torch's grouped multiply, and less than 65 % of it with the rest compiled.
# /// otherwise
# At 4096 tokens `k03_fused` takes {{ moe.t4096.fused.us:,.0f}} µs, torch's grouped multiply {{ moe.t4096.library.us:,.0f}} µs, and with
# the rest compiled {{ moe.t4096.compiled.us:,.0f}} µs. That multiply is the library's own for this card, and ours is Triton's.
# ///
#
# /// claim | moe.t16.compiled.us < moe.t16.library.us and moe.t4096.compiled.us > 1.1 * moe.t4096.library.us
# Compiling the rest shortens torch's time at 16 tokens, from {{ moe.t16.library.us:,.0f}} µs to {{ moe.t16.compiled.us:,.0f}}. At 4096 it costs
# more than a tenth: {{ moe.t4096.compiled.us:,.0f}} µs against {{ moe.t4096.library.us:,.0f}}. The two also add up the answers in different ways; which part costs it, we have not measured.
# /// otherwise
# Compiling the rest changes torch's {{ moe.t16.library.us:,.0f}} µs at 16 tokens to {{ moe.t16.compiled.us:,.0f}}, and its {{ moe.t4096.library.us:,.0f}} µs at 4096 to {{ moe.t4096.compiled.us:,.0f}}.
# ///
#
# **And the host?** Launched one by one from Python, the kernels of `k03_fused` cost it {{ moe.t16.fused.host_us:,.0f}} µs at 16 tokens, and the card {{ moe.t16.fused.us:,.0f}} µs. The table has the card's time: what a step takes once the host has no part
# in it, as with a CUDA graph.

# %% tags=["fold"]
import torch
from course_kernels.measure import compare, measure, quantity, record
from course_kernels.moe import (
    k01_expert_by_expert,
    k02_sorted,
    k03_fused,
    library,
)
from course_kernels.moe.problem import BLOCKS, block, experts_hit
from course_models import corpus, pretrained, routing

D, F, EXPERTS, TOP_K = BLOCKS["30B"]
EXPERT_MB = 3 * D * F * 2 / 1e6
FEW, MANY = 16, 4096
FIELD = {
    "plain": k01_expert_by_expert,
    "sorted": k02_sorted,
    "fused": k03_fused,
    "library": library.grouped_mm,
    "compiled": library.grouped_mm_compiled,
}
missed = (1 - TOP_K / EXPERTS) ** FEW
raced = {
    f"t{T}": compare(FIELD, block("30B", T), seconds=0.05) for T in (FEW, MANY)
}

# Who goes where in the model with experts that the course has trained, on files that no model learns.
trained = pretrained.load("experts", dtype=torch.float32, device="cuda")
picked = routing.choices(trained, corpus.load().held_out)
layers, tokens, top_k = picked.shape
experts = trained.config.experts
draw = torch.Generator().manual_seed(0)
drawn = torch.rand(1, tokens, experts, generator=draw).topk(top_k).indices


def uneven(choices, step=None):
    """The busiest expert over the mean, the mean of all steps: for each layer."""
    found = routing.imbalance(routing.loads(choices, experts, tokens=step))
    return found if step is None else found.mean(dim=1)


skew = routing.skew_of(uneven(picked, MANY), EXPERTS, TOP_K)
even = {"SKEW": 100}
load = {
    f"t{FEW}": {"even": even, "drawn": {}, "same": {"one": True}},
    f"t{MANY}": {"even": even, "trained": {"SKEW": skew}, "same": {"one": True}},
}
record(
    moe={
        **raced,
        "load": {
            T: {
                name: measure(
                    k03_fused, block("30B", int(T[1:]), **more), seconds=0.05
                )
                for name, more in kinds.items()
            }
            for T, kinds in load.items()
        },
        "mb": {
            "expert": quantity(EXPERT_MB, "MB"),
            **{
                f"t{T}": quantity(experts_hit(block("30B", T)) * EXPERT_MB, "MB")
                for T in (1, FEW, MANY)
            },
        },
        "hit": {f"t{FEW}": quantity(experts_hit(block("30B", FEW)), how="counted")},
        "missed": quantity(missed),
        "expected": quantity(EXPERTS * (1 - missed)),
        "trips": {
            name: quantity(MANY * TOP_K * numbers * 2 * 2 / 1e6, "MB")
            for name, numbers in (("sorted", 2 * D + 3 * F), ("fused", D + F))
        },
        "skew": quantity(skew / 100, how="counted"),
        "tokens": quantity(tokens, how="counted"),
        "uneven": {
            f"l{layer + 1}": {
                name: quantity(float(uneven(picked, step)[layer]), how="counted")
                for name, step in (("all", None), ("many", MANY), ("few", FEW))
            }
            for layer in range(layers)
        },
        "chance": {
            name: quantity(float(uneven(drawn, step)[0]), how="counted")
            for name, step in (("all", None), ("many", MANY), ("few", FEW))
        },
    }
)

# %% [markdown]
# ### Who is busy?
#
# Routers have favourites. [The small model with experts](../a_small_model.py) has eight in each of its layers and asks two of them. Here it reads
# {{ moe.tokens:,.0f}} tokens that no model has learnt, and we count. A number is the busiest expert over the mean: 1 is even,
# and 4 is the most there can be, when all tokens go to the same two.
#
# /// table
# columns: [layer, the whole text, "every 4096 tokens", "every 16 tokens"]
# rows:
#   - ["1", "{{ moe.uneven.l1.all:.2f}}", "{{ moe.uneven.l1.many:.2f}}", "{{ moe.uneven.l1.few:.2f}}"]
#   - ["2", "{{ moe.uneven.l2.all:.2f}}", "{{ moe.uneven.l2.many:.2f}}", "{{ moe.uneven.l2.few:.2f}}"]
#   - ["3", "{{ moe.uneven.l3.all:.2f}}", "{{ moe.uneven.l3.many:.2f}}", "{{ moe.uneven.l3.few:.2f}}"]
#   - ["4", "{{ moe.uneven.l4.all:.2f}}", "{{ moe.uneven.l4.many:.2f}}", "{{ moe.uneven.l4.few:.2f}}"]
#   - [a fair draw, "{{ moe.chance.all:.2f}}", "{{ moe.chance.many:.2f}}", "{{ moe.chance.few:.2f}}"]
# caption: "Columns two and three are means over all steps of so many tokens that follow each other."
# ///
#
# Few tokens are uneven by chance alone: read the last row before you blame the router.
#
# Now give the fused kernels such loads. Even: all 128 experts have as many tokens. Uneven: the busiest has {{ moe.skew:.2f}} times the mean, the
# mean of the trained model's layers at 4096 tokens, and the others fall off. The same: all tokens go to the same eight.
#
# /// predict | Sixteen tokens all go to the same eight experts; 120 have nothing to do. Against an even load, how long does that take?
# - [moe.load.t16.same.us > 1.1 * moe.load.t16.even.us] Longer: eight experts do the work of 128
# - [0.5 * moe.load.t16.even.us <= moe.load.t16.same.us <= 1.1 * moe.load.t16.even.us] About as long, or somewhat less
# - [0.08 * moe.load.t16.even.us <= moe.load.t16.same.us < 0.5 * moe.load.t16.even.us] Less than half, but more than the bytes say
# - [moe.load.t16.same.us < 0.08 * moe.load.t16.even.us] About a sixteenth, as the bytes say
# /// reveal
# {{ moe.load.t16.same.us:,.0f}} µs; the even load takes {{ moe.load.t16.even.us:,.0f}} µs, and sixteen tokens that draw fairly {{ moe.load.t16.drawn.us:,.0f}} µs.
#
# /// claim | 0.08 * moe.load.t16.even.us < moe.load.t16.same.us < 0.25 * moe.load.t16.even.us
# So the most uneven load takes less than a quarter of the time of the even one. On one card nobody waits for the busiest expert: its work is cut into tiles, for many multiprocessors. What counts is whose weights are read, and *even* means all of them.
# A sixteenth it is not. Five kernels, each of which begins when the one before it has ended, take their time for little work as well: at eight experts they have {{ moe.load.t16.same.of_peak:.0%}} of the floor's speed, at all of them {{ moe.load.t16.even.of_peak:.0%}}.
# /// otherwise
# What counts at few tokens is whose weights are read: those of all 128 experts for the even load, those of eight for the other.
# ///
# ///
#
# And with 4096 tokens? Then all experts are read anyway, and the multiply counts tiles of 128 rows. The even load gives each expert 256 rows, two tiles, 256 tiles in all. A fair
# draw leaves the last tile of nearly every expert partly empty, and it is multiplied all the same: 315 tiles.
#
# /// claim | moe.load.t4096.trained.us > 1.06 * moe.load.t4096.even.us and 0.9 * moe.t4096.fused.us < moe.load.t4096.trained.us < 1.1 * moe.t4096.fused.us
# **Odd rows cost time, favourites do not.** The trained model's load takes {{ moe.load.t4096.trained.us:,.0f}} µs, more than 1.06 times the even load's {{ moe.load.t4096.even.us:,.0f}} µs.
# But a fair draw, in the race above, takes {{ moe.t4096.fused.us:,.0f}} µs: the trained load is within a tenth of it. One card does not care whose rows fill a tile.
# /// otherwise
# The even load takes {{ moe.load.t4096.even.us:,.0f}} µs, the trained model's {{ moe.load.t4096.trained.us:,.0f}} µs, and a fair draw, in the race above, {{ moe.t4096.fused.us:,.0f}} µs.
# ///
#
# When all tokens go to the same eight, it takes {{ moe.load.t4096.same.us:,.0f}} µs. That load makes 256 full tiles too, and reads fewer weights. Put half of the experts on a second card, and all this turns round: then the card with the
# favourites is the one that the other waits for.

# %% [markdown]
# ## Many experts, one multiply
#
# A layer of experts multiplies each token's row by the matrix of *its* expert. The rows of an expert are a group: many groups,
# each with a matrix of its own, all of one shape. As separate multiplies, small groups leave most of the card idle, and the
# host must wait until it knows their sizes. A *grouped* multiply is one launch, and a tile of 128 rows looks up whose it is.
# DeepGEMM has two forms of it [^deepgemm], and so do we, in `grouped_gemm/`:
#
# - **contiguous**, for a prompt: the rows of all groups one below the other, each group padded to 128 rows, and an array with the
#   group of every row;
# - **masked**, for decode: the same room for every group, and a count of the rows in it. The counts lie on the card, and no
#   launch looks at them, so one CUDA graph serves every step.
#
# The numbers have 8 bits, and scales as in DeepSeek-V3: one for every 128 numbers of a token's row, one for every 128 × 128
# of a matrix [^deepseek2024]. So a sum over a row, K numbers, falls into blocks of 128, and each block's part has its own factor.
#
# /// exercise | Where does the factor go? | 3 minutes
# A row of 7168 numbers, a tile of 128 × 192. The tensor core adds up 128 of k. When must the scales be applied, with how many
# multiply-adds for each thread of two warpgroups, and what does L6 say is gained on the way?
# /// answer
# Every 128 of k, 56 times in all, before the next block is added. A tile has 24 576 sums, 96 for each of 256 threads, and each
# wants one multiply-add a block, part times scale onto the whole. The parts leave the tensor core every 128 of k, so its
# [few bits](lectures/l6_tensor_cores.py) are never asked to hold a long sum. What the scales force is also the cure.
# ///
#
# /// predict | 512 rows in all: 64 for each of 8 experts, or 16 for each of 32. The operations are the same. How much longer do 32 experts take?
# - [grouped.few32.ours.us < 1.3 * grouped.few8.ours.us] About as long
# - [1.3 * grouped.few8.ours.us <= grouped.few32.ours.us < 2.8 * grouped.few8.ours.us] About twice as long
# - [grouped.few32.ours.us >= 2.8 * grouped.few8.ours.us] Three to four times as long
# /// reveal
# {{ grouped.few32.ours.us / grouped.few8.ours.us:.1f}} times as long. Nobody waits for the operations: the matrices of 32 experts have
# four times the bytes, and an expert that has a single row must be fetched whole. That it is no more than four times: beginning and end of the kernel
# are in both times, and weigh more in the shorter one.
#
# /// table
# columns: ["", "k01, µs", "k02, µs", "cuBLASLt, µs", "k02, TFLOP/s", "of its roof"]
# rows:
#   - ["8192 rows, 8 experts", "{{ grouped.prompt.triton.us:,.0f}}", "{{ grouped.prompt.ours.us:,.0f}}", "{{ grouped.prompt.cublaslt.us:,.0f}}", "{{ grouped.prompt.ours.tflops:,.0f}}", "{{ grouped.prompt.ours.of_peak:.0%}}"]
#   - ["512 rows, 8 experts", "{{ grouped.few8.triton.us:,.0f}}", "{{ grouped.few8.ours.us:,.0f}}", "{{ grouped.few8.cublaslt.us:,.0f}}", "{{ grouped.few8.ours.tflops:,.0f}}", "{{ grouped.few8.ours.of_peak:.0%}}"]
#   - ["512 rows, 32 experts", "{{ grouped.few32.triton.us:,.0f}}", "{{ grouped.few32.ours.us:,.0f}}", "{{ grouped.few32.cublaslt.us:,.0f}}", "{{ grouped.few32.ours.tflops:,.0f}}", "{{ grouped.few32.ours.of_peak:.0%}}"]
# caption: "N = 4096, K = 7168; k01_triton and k02_promoted in one launch, cuBLASLt in a call for each group, at 8192 rows after a copy of the scales into its layout. The same inputs in the same rounds, groups of equal size, answers checked against float64 before and after. The roof of k02 is the data sheet's FP8 peak for 8192 rows and its bandwidth for 512."
# ///
# ///
#
# /// claim | grouped.prompt.cublaslt.us < grouped.prompt.ours.us < 1.2 * grouped.prompt.cublaslt.us
# **A loss.** With 8192 rows `k02_promoted` takes {{ grouped.prompt.ours.us:,.0f}} µs and cuBLASLt, with the same scales and eight launches, {{ grouped.prompt.cublaslt.us:,.0f}}. A
# thousand rows of one expert fill the card by themselves, so there is nothing to gain from one launch. What is left is our multiply against cuBLASLt's, and it takes less than 1.2 times as long.
# /// otherwise
# With 8192 rows `k02_promoted` takes {{ grouped.prompt.ours.us:,.0f}} µs, and cuBLASLt with the same scales takes {{ grouped.prompt.cublaslt.us:,.0f}}, in
# eight launches.
# ///
#
# /// claim | grouped.few32.ours.us < 0.6 * grouped.few32.cublaslt.us
# With few rows it is the other way round. With 16 rows for each of 32 experts, one launch takes {{ grouped.few32.ours.us:,.0f}} µs. That is less than 0.6 of the time of 32 calls of cuBLASLt, {{ grouped.few32.cublaslt.us:,.0f}} µs: each of them is too small for the card. These
# calls know the sizes beforehand; a real step would have to ask the card for them. The host works {{ grouped.few32.cublaslt.host_us:,.0f}} µs at the 32 calls, and {{ grouped.few32.ours.host_us:,.0f}} µs at the one launch.
# /// otherwise
# With 16 rows for each of 32 experts, one launch takes {{ grouped.few32.ours.us:,.0f}} µs, and 32 calls of cuBLASLt take {{ grouped.few32.cublaslt.us:,.0f}} µs.
# ///
#
# Where `k02_promoted` differs from `k01_triton`: a block walks over many tiles, so copies never stop between two of them; two blocks side by side share the rows, fetched once for 384 columns, or for 256 in the masked form, and both are always of one group; and of a tile with 64 rows or fewer the
# other half is neither fetched nor multiplied.
#
# /// when | grouped.deep_gemm_here == 1
# DeepGEMM {{ grouped.deep_gemm_version}} takes {{ grouped.prompt.deep_gemm.us:,.0f}} µs for 8192 rows, where k02 takes {{ grouped.prompt.ours.us:,.0f}}.
# /// otherwise
# DeepGEMM itself was **not raced** in this run: it was not installed.
# ///
#
# ### A sum that stays too long
#
# Random numbers around zero hide what the tensor core drops. So take positive ones, 7168 of them, all scales 1. One library
# call leaves the whole sum in the tensor core, *fast accumulation*; our two kernels take it out every 128.
#
# /// predict | By how much is the sum that stays off, as a root mean square?
# - [off.stays < 0.005] By less than half a per cent
# - [0.005 <= off.stays < 0.02] By about one per cent
# - [off.stays >= 0.02] By several per cent
# /// reveal
# By {{ off.stays:.2%}}. With `k01_triton` it is {{ off.triton:.3%}}, with `k02_promoted` {{ off.ours:.3%}}. To round the exact sum to bf16 alone costs {{ off.rounding:.3%}}.
#
# /// claim | off.stays > 20 * off.ours and off.ours < 1.2 * off.rounding
# The sum that stays is off by more than 20 times as much as the one that leaves. The one that leaves is off by less than
# 1.2 times what bf16 itself costs.
# /// otherwise
# The sum that stays is off by {{ off.stays:.3%}}, the one that leaves by {{ off.ours:.3%}}, bf16 alone by {{ off.rounding:.3%}}.
# ///
# ///

# %% tags=["fold"]
import torch
from course_kernels.gemm_fp8 import library as one_scale
from course_kernels.grouped_gemm import k01_triton as grouped_triton
from course_kernels.grouped_gemm import k02_promoted as grouped_promoted
from course_kernels.grouped_gemm import library as grouped_library
from course_kernels.measure import compare, quantity, record, text
from course_kernels.problem import Workload

DEEP_GEMM = grouped_library.deep_gemm_version()


def groups_of(G, rows, **form):
    """This many experts, so many rows for each."""
    return Workload.of(
        "bfloat16", G=G, M=G * rows, N=4096, K=7168, even=True, **form
    )


racers = {
    "triton": grouped_triton,
    "ours": grouped_promoted,
    "cublaslt": grouped_library.cublaslt,
}
if DEEP_GEMM:
    racers["deep_gemm"] = grouped_library.deep_gemm
record(
    grouped={
        "prompt": compare(racers, groups_of(8, 1024), seconds=0.2),
        "few8": compare(racers, groups_of(8, 64, masked=True), seconds=0.1),
        "few32": compare(racers, groups_of(32, 16, masked=True), seconds=0.1),
        "deep_gemm_here": quantity(int(bool(DEEP_GEMM)), how="counted"),
        "deep_gemm_version": text(DEEP_GEMM or "none"),
    }
)

# %% tags=["fold"]
SIDE, LONG = 256, 7168
generator = torch.Generator("cuda").manual_seed(0)
positive = torch.rand(2, SIDE, LONG, generator=generator, device="cuda")
left, right = (448 * positive).to(torch.float8_e4m3fn)
exact = left.double() @ right.double().t()
one = torch.ones(1, device="cuda")
blocks = (
    left,
    right[None],
    torch.ones(LONG // 128, SIDE, device="cuda"),
    torch.ones(1, SIDE // 128, LONG // 128, device="cuda"),
    torch.zeros(SIDE, dtype=torch.int32, device="cuda"),
)
answers = {
    "stays": one_scale.cublaslt(left, right, one, one),
    "triton": grouped_triton.grouped_gemm(*blocks),
    "ours": grouped_promoted.grouped_gemm(*blocks),
    "rounding": exact.to(torch.bfloat16),
}
record(
    off={
        name: quantity(
            float(
                (
                    (c.double() - exact).square().mean() / exact.square().mean()
                ).sqrt()
            )
        )
        for name, c in answers.items()
    }
)

# %% [markdown]
# ## Before you go
#
# /// exercise | Half as many experts | 5 minutes
# Somebody offers you a layer with 64 experts instead of 128, each as large as before, and a token still asks eight of them. So a token's operations stay. Sixteen tokens, every expert as likely as any other: how many experts do they read now, and how many megabytes is that against before? And how many rows does an expert have in a prompt of 4096 tokens, before and now?
# /// answer
# A token misses an expert with a chance of 7/8, sixteen with (7/8)¹⁶ = 0.118. So 56 of 64 are read, {{ 64 * (1 - (7 / 8) ** 16) * moe.mb.expert:.0f}} MB, where 128 experts made it {{ moe.expected * moe.mb.expert:.0f}} MB. In
# the prompt an expert has 4096 · 8 ÷ 64 = 512 rows now, and had 256: of larger groups a smaller part is the half-empty tile at the end.
# ///
#
# **Where this leads.** [Experts on two cards](experts_on_two_cards.py) sends tokens to the card that has their expert. [The last workshop](workshops/w6_frontier.py) is where this layer comes from.
