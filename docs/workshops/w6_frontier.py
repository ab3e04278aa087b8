# ---
# id: w6
# title: "Frontier finale: DeepSeek, DSpark, and AI that writes kernels"
# nav: "W6 · The frontier"
# description: A latent list instead of keys and values, absorbed by hand and weighed against the ridge of three cards; a draft that is verified without changing what the model says; and experts, a pick of tokens and a grouped product, each as a kernel of ours.
# needs: [capability 9.0]
# ---

# %% [markdown]
# # Frontier finale: DeepSeek, DSpark, and AI that writes kernels
#
# *Keep the recipe, not the dishes.*
#
# By the end of this page you can
#
# - work out what one token leaves in the cache with a latent list, and what it would have left with keys and values;
# - absorb a matrix into a query by hand, and say what that buys and what it costs;
# - weigh a decode against the ridge, and say on which card it waits for what;
# - give a headline back its small print: of what, against what, at which size, on which card;
# - say what *solved* means before you repeat a figure about machines that write kernels, and name what must never judge itself;
# - verify a draft so that what comes out is *exactly* what the large model would have said, and say from which batch on
#   drafting no longer pays.
#
# You need [the workshop on serving](w4_serving.py#operations-for-each-byte): its board says *decode waits for bytes*. Its page
# corrects that in a few lines; today you work it out yourself. The first hour of the session is one maker's stack, the second is about kernels that
# machines write, the third about your own.
#
# If you are short of time, read [the recipe](#the-recipe-not-the-dishes), [a decode, weighed again](#a-decode-weighed-again),
# [propose, verify](#propose-verify) and [what *solved* means](#what-does-solved-mean). What is marked *beyond* can wait until after the course.
#
# ## The recipe, not the dishes
#
# A kitchen that kept every dish it ever cooked would soon be full. It keeps the recipe on a card, and cooks again when somebody
# asks.
#
# A decoder with 128 heads of 128 numbers leaves 128 keys and 128 values for every token, in every layer. **MLA**, multi-head
# *latent* attention, leaves a single list of 512 numbers, the **latent**, from which the keys and values of all heads are made, and
# 64 numbers more for the part of the key that carries the position; that part cannot be made from the list
# [^deepseek2024v2].
#
# /// predict | A latent list in place of keys and values: how many times smaller does the cache of a token become?
# Two numbers and a division, with a pencil.
#
# - [ ] About 28 times
# - [x] About 57 times
# - [ ] About 64 times
# - [ ] About 128 times
# /// reveal
# **{{ cached.heads / cached.latent:.1f}}** times: {{ cached.heads:,.0f}} numbers become {{ cached.latent:.0f}}. Whoever says 64 has left out the position.
# ///
#
# /// figure | docs/assets/figures/latent_cache.svg
# alt: "What one token leaves in the cache. Above, 128 boxes of keys and 128 boxes of values, a wide field. Below, one thin bar of 512 numbers and a shorter one of 64 for the position. Two arrows labelled with matrices lead from the thin bar up to keys and values: they are made when they are needed."
# ///
#
# ### Cooked again for every guest?
#
# A recipe is no dish. If each step of the decode made the keys and values of all cached tokens again, it would do
# {{ absorbed.again.flops / 1e6:.1f}} million operations for every cached token, and do the same again at the next step. So this is not what is
# done. Matrices can change places:
#
# > The score of a token is *q · k*, and its key is *k = W c*, with the latent *c*. So the score is *q · (W c)*, and that is
# > *(Wᵀ q) · c*.
#
# *Wᵀ q* is made once in a step, for each head, and not once for every token. The matrix has been **absorbed** into the query, and the
# latent itself is the key. The values go the same way, in the other direction: instead of adding up values, add up latents, and multiply the
# sum by the values' matrix once.
#
# /// exercise | Two by two, absorbed | 6 minutes
# One head, numbers in pairs. The latents of two tokens are c₁ = (1, 1) and c₂ = (2, 0). Keys are made by W = [[1, 2], [0, 1]], a row
# in each bracket, and values by V = [[1, 0], [1, 1]]. The query is q = (1, 2). The position is left out.
#
# First the long way: both keys, then both scores. Then the short way: Wᵀ q, and both scores from it. The weights that come out of softmax, let us
# say, are 3/4 and 1/4: what is the result, both ways?
# /// answer
# The keys are (3, 1) and (2, 0), so the scores are 3 + 2 = 5 and 2 + 0 = 2. Absorbed, the query is (1, 2 + 2) = (1, 4), and the scores are 1 + 4 = 5
# and 2 + 0 = 2.
#
# The values are (1, 2) and (2, 2), and with those weights they are (1.25, 2) together. Absorbed, the sum of the latents is (1.25, 0.75),
# and V makes of it (1.25, 1.25 + 0.75) = (1.25, 2).
# ///
#
# It is not free. A head's query was 128 numbers long, and 64 for the position. Absorbed it has the length of the latent, 512, and 64.
#
# | for each cached token, all 128 heads | operations | bytes to fetch, in bf16 |
# |---|---:|---:|
# | keys and values are kept, and the 64 that all heads share | {{ absorbed.whole.flops:,.0f}} | {{ 2 * cached.heads + 2 * cached.shared:,.0f}} |
# | the latent is kept; keys and values are made again | {{ absorbed.again.flops:,.0f}} | {{ 2 * cached.latent:,.0f}} |
# | the latent is kept; matrices are absorbed | {{ absorbed.moved.flops:,.0f}} | {{ 2 * cached.latent:,.0f}} |
#
# Absorbing does {{ absorbed.moved.flops / absorbed.whole.flops:.1f}} times the operations of kept keys and values, for {{ cached.latent / (cached.heads + cached.shared):.1%}} of the bytes. That is
# a good bargain as long as bytes are what you wait for. How long is that?

# %% tags=["fold"]
from course_kernels.measure import quantity, record
from course_kernels.mla_decode import absorb

# Heads of 128 numbers and 64 rotated ones, values of 128; 512 latent numbers.
FORMS = {
    "whole": absorb.kept_whole(H=128, D=128, V=128, R=64),
    "again": absorb.made_again(H=128, D=128, V=128, R=64, L=512),
    "moved": absorb.without_making(H=128, R=64, L=512),
    "eighth": absorb.without_making(H=16, R=64, L=512),
}
RIDGES = {"h200": 989 / 4.8, "h800": 865 / 3.35, "h100": 989 / 3.35}
record(
    cached={
        "heads": quantity(2 * 128 * 128, how="counted"),
        "latent": quantity(512 + 64, how="counted"),
        "shared": quantity(64, how="counted"),
    },
    absorbed={
        name: {
            "bytes": quantity(form.n_bytes, "B"),
            "flops": quantity(form.flops, "FLOP"),
            "intensity": quantity(form.intensity, "FLOP/B"),
        }
        for name, form in FORMS.items()
    },
    ridges={name: quantity(ridge, "FLOP/B") for name, ridge in RIDGES.items()},
)

# %% [markdown]
# ## A decode, weighed again
#
# In [the workshop on serving](w4_serving.py#operations-for-each-byte) you wrote on the board: *decode waits for bytes*. A number that is
# fetched was used once or, with heads that share, a few times. Here every number of the latent is used by 128 heads, for the score, and 512
# of the 576 once more for the value.
#
# /// exercise | Operations for a byte | 5 minutes
# With h heads, a cached token costs 2 · h · (576 + 512) operations and 2 · 576 bytes. How many operations is that for each byte, with h = 128, and with the
# 16 heads of one of eight cards? What is the least h that reaches an H200's ridge of 206, and what the least that reaches an H100's, 295?
# /// answer
# h · 1088 ÷ 576 is 1.889 · h: {{ absorbed.moved.intensity:.0f}} and {{ absorbed.eighth.intensity:.0f}}. An H200: 206 ÷ 1.889 = 109.1, so
# 110 heads. An H100: 295 ÷ 1.889 = 156.2, so 157.
# ///
#
# /// table
# columns: [card, "ridge, in bf16", "128 heads are", "16 heads, one card of eight, are"]
# rows:
#   - ["H200, by its data sheet [^nvidia-h200]", "{{ ridges.h200:.0f}}", "{{ absorbed.moved.intensity / ridges.h200:.2f}} of it", "{{ absorbed.eighth.intensity / ridges.h200:.2f}} of it"]
#   - ["H800, throttled, by MLA's makers [^flashmla]", "{{ ridges.h800:.0f}}", "{{ absorbed.moved.intensity / ridges.h800:.2f}} of it", "{{ absorbed.eighth.intensity / ridges.h800:.2f}} of it"]
#   - ["H100, by its data sheet [^nvidia-h100]", "{{ ridges.h100:.0f}}", "{{ absorbed.moved.intensity / ridges.h100:.2f}} of it", "{{ absorbed.eighth.intensity / ridges.h100:.2f}} of it"]
# caption: "Above 1, arithmetic is short; below 1, bytes. The same kernel, the same cache, and the sentence *decode waits for bytes* is false on one card and true on another."
# ///
#
# The makers round {{ absorbed.moved.intensity:.0f}} up to 2 · 128 = 256, draw the line at 128 heads, and call this decode compute-bound on their card [^flashmla]. The H800, the H200 and the H100 run the same kernel; by our count it is just left of the H800's ridge, and by their rounding on it. So the sentence gets one word, in red: decode *often* waits for bytes. It is a quotient, and it has a card in it.
#
# /// exercise | Eight cards | 3 minutes
# You spread the 128 heads over eight cards, 16 on each. What does each card fetch now, and on which side of the ridge is it?
# /// answer
# The whole latent cache: it belongs to all heads, so each card needs all of it. {{ absorbed.eighth.intensity:.0f}} operations for a byte are left of every ridge in the table. With
# keys and values, each card would have fetched only those of its own heads.
# ///
#
# ### Where does the answer lie?
#
# Where arithmetic is short, a kernel must keep the tensor cores busy while it weighs scores. On Hopper two answers take turns for that:
# [one multiplies while the other weighs](../attention_on_hopper.py). Here one answer, 64 heads times 512 numbers in float32, is 32,768
# registers, half of all that a multiprocessor has; there is no room for a second. The makers' way out: cut the answer down the middle,
# give each half to a warpgroup, and let each score every second page [^flashmla]. Our k03 does that too. What one warpgroup has weighed,
# thread t hands to thread t of the other, who needs the same 16 registers for its own half.
#
# /// when | mla_peers.flashinfer == 1
# /// define | mla_over_flashinfer.b64 = mla_race.b64.flashinfer.us / mla_race.b64.wgmma.us
# unit: ×
# what: the speed of mla_decode/k03_wgmma over that of FlashInfer's MLA for Hopper, 64 requests of 4096 tokens, 128 heads, bf16, pages of 64, cold L2
# ///
#
# /// define | mla_over_flashinfer.b128 = mla_race.b128.flashinfer.us / mla_race.b128.wgmma.us
# unit: ×
# what: the speed of mla_decode/k03_wgmma over that of FlashInfer's MLA for Hopper, 128 requests of 8192 tokens, 128 heads, bf16, pages of 64, cold L2
# ///
#
# /// predict | 128 heads, 64 requests of 4096 tokens and 128 of 8192: how does our k03 stand against FlashInfer's kernel for Hopper?
# - [min(mla_over_flashinfer.b64, mla_over_flashinfer.b128) < 0.9] Behind somewhere, by more than a tenth
# - [min(mla_over_flashinfer.b64, mla_over_flashinfer.b128) >= 0.9 and max(mla_over_flashinfer.b64, mla_over_flashinfer.b128) <= 1.1] Within a tenth, both times
# - [min(mla_over_flashinfer.b64, mla_over_flashinfer.b128) >= 0.9 and max(mla_over_flashinfer.b64, mla_over_flashinfer.b128) > 1.1] Nowhere behind by a tenth, ahead by more somewhere
# /// reveal
# {{ mla_over_flashinfer.b64:.3f}} and {{ mla_over_flashinfer.b128:.3f}}: above 1, ours is ahead.
#
# /// table
# columns: ["TFLOP/s", "64 × 4096", "128 × 8192"]
# rows:
#   - ["k01_one_program, Triton", "{{ mla_race.b64.one_program.tflops:.0f}}", "{{ mla_race.b128.one_program.tflops:.0f}}"]
#   - ["k02_split, Triton", "{{ mla_race.b64.split.tflops:.0f}}", "{{ mla_race.b128.split.tflops:.0f}}"]
#   - ["k03_wgmma", "{{ mla_race.b64.wgmma.tflops:.0f}}", "{{ mla_race.b128.wgmma.tflops:.0f}}"]
#   - ["FlashInfer, its back end fa3", "{{ mla_race.b64.flashinfer.tflops:.0f}}", "{{ mla_race.b128.flashinfer.tflops:.0f}}"]
# caption: "bf16, 128 heads, all requests of the same length, pages of 64 tokens anywhere; interleaved in the same rounds, cold L2. FlashInfer {{ mla_peers.flashinfer_version}}."
# ///
# ///
# /// otherwise
# FlashInfer was **not raced** in this run: it was not installed. k03_wgmma does {{ mla_race.b64.wgmma.tflops:.0f}} TFLOP/s with 64 requests of 4096 tokens, and {{ mla_race.b128.wgmma.tflops:.0f}} with 128 of 8192.
# ///

# %% tags=["fold"]
from course_kernels.measure import compare, text
from course_kernels.mla_decode import k01_one_program, k02_split, k03_wgmma
from course_kernels.mla_decode import library as mla_library
from course_kernels.problem import Workload

FLASHINFER = mla_library.flashinfer_version()
MLA = {"one_program": k01_one_program, "split": k02_split, "wgmma": k03_wgmma}
MLA |= {"flashinfer": mla_library.flashinfer_fa3} if FLASHINFER else {}


def all_heads_of(batch, held):
    """So many requests of so many tokens each, with all heads on one card."""
    return Workload.of("bfloat16", B=batch, H=128, N=held, full=True)


record(
    mla_peers={
        "flashinfer": quantity(int(bool(FLASHINFER))),
        "flashinfer_version": text(FLASHINFER or "none"),
    },
    mla_race={
        f"b{batch}": compare(MLA, all_heads_of(batch, held), seconds=0.1)
        for batch, held in ((64, 4096), (128, 8192))
    },
)

# %% [markdown]
# ## Three headlines and their small print
#
# Three figures of this stack are told everywhere, mostly in short. We read them on 20 November 2026. The makers had moved on by then: V4-Pro was no longer their newest, and DeepSeek-V4.1 has had attention kernels in their own library since 10 September 2026 [^flashmla-readme]. We have read no figures for it, and quote none.
#
# - **V4-Pro: 27 % of the FLOPs, 10 % of the cache** [^deepseek2026]. Of one token's, at a million tokens of context, against DeepSeek-V3.2, and it comes from
#   two kinds of attention together: one that compresses and picks, and one that compresses heavily [^deepseek2026].
# - **DSpark: 57 to 78 %** [^cheng2026]. So much more speed for one user's answer, with V4-Pro, against the makers' older drafting head, MTP-1, at the same total
#   throughput [^cheng2026]. What drafting is comes [next](#propose-verify).
# - **Mega MoE: 1.50 to 1.61 times** [^deepgemm]. The layer of experts of V4-Pro on eight cards, in one kernel, against the makers' own older path. Upstream it runs only
#   on Blackwell's data-centre cards [^deepgemm]. `deep_gemm_mega_moe` is the name of a switch in a server; the kernel is called `fp8_fp4_mega_moe`.
#
# /// exercise | Four boxes | 6 minutes
# For each of the three fill four boxes: of what, against what, at which size, on which card. Where the text does not say, write *not said*. Which of them could you check
# on the card in front of you?
# /// answer
# V4-Pro: operations and cache of one token · DeepSeek-V3.2 · a million tokens of context · a count, so no card. DSpark: one user's speed with V4-Pro · the older
# drafting head, MTP-1 · at the same total throughput · not said here. Mega MoE: the layer of experts · the makers' own older path · V4-Pro, eight cards · Blackwell,
# data centre.
#
# A count you can do again with a pencil. The two others want the model, and one of them a card that is not here. What you can do is to measure a kernel of the same kind
# at a size that you name. That is what the rest of this page does.
# ///

# %% [markdown]
# ## Propose, verify
#
# *A junior writes the letter, the partner reads it and signs.*
#
# A model writes one token a step, and at a small batch a step waits for the weights. [W4](w4_serving.py) measured what more rows
# cost then. So let a small model, the **draft**, propose the next four tokens, and have the large one look at
# all of them in one step, five rows instead of one. The leading ones that pass stay. At the first that does not, the large
# model's own token is there already, so every step writes at least one token [^leviathan2023].
#
# /// predict | The 8B shape, one reader. A step has five rows instead of one. How much longer does it take?
# - [verify.b1.t5.us < 1.25 * verify.b1.t1.us] Less than a quarter longer
# - [1.25 * verify.b1.t1.us <= verify.b1.t5.us < 2 * verify.b1.t1.us] Up to twice as long
# - [verify.b1.t5.us >= 2 * verify.b1.t1.us] Twice as long or more
# /// reveal
# {{ verify.b1.t1.us / 1000:.2f}} ms with one row, {{ verify.b1.t5.us / 1000:.2f}} ms with five. The weights are fetched once.
# ///
#
#
# /// figure | docs/assets/figures/draft_and_verify.svg
# alt: "Three rows of boxes. Draft: a small model proposes the, pan, is, cold, one after the other. Verify: the large one looks at all four at once; the and pan have a tick, is has a cross, and cold is not asked. Kept: the, pan, and the large model's own word, was: two and one are three."
# ///
#
# ### Nine lines
#
# Before any words, one number for all of them: each draft passes with probability p.
#
# /// exercise | Four drafts | 8 minutes
# With p = 0.7 and k = 4: go through the drafts while they pass, count them, and add one for the large model's own token. What is the mean of 20 000 such steps?
# Then by a formula: the first token is certain, the second comes if the first draft passes, the third if two pass. Write it as a sum of powers of p. What does k = 8 give, and
# what is the most that a draft, however long, can ever give?
# /// answer
# 1 + p + p² + p³ + p⁴ = {{ tokens_a_step.k4:.2f}}, and your run must agree in the first two digits. k = 8 gives {{ tokens_a_step.k8:.2f}}, and no draft more than
# 1 ÷ (1 − 0.7) = {{ tokens_a_step.endless:.2f}}. The late ones are thrown away too often.
# ///
#
# The lab's first stage is this exercise; its three others belong to the next section. It needs no GPU: `nox -s lab -- verify`.
#
# /// lab | verify
# ///
#
# ### Three words
#
# Does the draft change what is said? Take a language of three words, and a draft that likes *red* too much:
#
# | | red | hot | old |
# |---|---:|---:|---:|
# | the large model says it with probability | 0.5 | 0.3 | 0.2 |
# | the draft | 0.7 | 0.2 | 0.1 |
#
# The rule: **keep a drafted word with probability min(1, large ÷ draft).** If it is refused, draw from what is left of the large model's
# probabilities where the draft had too little, max(large − draft, 0), *divided by their sum*. What is left is called the *residual* (not the one of a layer).
#
# /// exercise | Add up both ways | 5 minutes
# A word can come out in two ways: drafted and kept, or drawn after a refusal. Work out both for each word, and add. How often does a
# draft pass?
# /// answer
# Kept: the smaller of both, 0.5, 0.2 and 0.1, together 0.8: so often a draft passes. What is left: 0, 0.1 and 0.1; divided by
# their sum, 0.5 each for *hot* and *old*. A refusal has the probability 0.2, so each of these gets 0.2 × 0.5 = 0.1 more. Red comes out with 0.5, hot with 0.2 + 0.1 = 0.3, old
# with 0.1 + 0.1 = 0.2: the large model's own, exactly.
# ///
#
# **The draft decides how often you gain, never what is said.** With the temperature at 0 the rule is simpler still: keep a draft while it
# is the large model's first choice.
#
#
# Now with distributions of your own, and with three rules that are wrong.
#
# /// explorable | draft_and_verify
# ask: "The draft likes red too much. What share of its words passes, and what comes out in the end?"
# alt: >-
#   Three words with three bars each: what the target wants, what the draft says, what comes out. The draft says red too often, and the other two too rarely; what comes
#   out is the target's own. Its bars have two colours: passed, and taken after a refusal. Red has only the first.
# knobs:
#   target: {label: "target: red, hot, old", at: [5, 3, 2]}
#   draft: {label: "draft: red, hot, old", at: [7, 2, 1]}
#   rule: {label: the rule, at: residual, choices: {residual: "as it should be", target: "after a refusal, from the whole target", likeliest: "keep only the target's likeliest", keep: keep all that is drafted}}
#   k: {label: words in a draft, at: 4}
# says:
#   not_shares: "Three shares each, please, 0 or more, and not all of them 0."
#   never: "By this rule no drafted word passes: a verification gives one word, the large model's own."
#   always: "By this rule every drafted word passes: {k} drafts give {all} words a verification."
#   passes: "A drafted word passes with {passing} %: {k} drafts give {tokens} words a verification."
#   exact: "What comes out is the target's own distribution."
#   another: "What comes out is another distribution: {word} comes {comes} % of the time, and {wants} % were wanted."
# row: {passes: "{passing} %", "words a verification": "{tokens}", "off by at most": "{miss} %"}
# caption: "Type shares of your own. The last three rules are mistakes that people make: which of them are the hardest to notice?"
# ///
#
# ### Exactly? A million times, then
#
# A proof is about the rule. The kernel is another thing, and a wrong one writes text that looks fine. So we let it write {{ exact.pairs / 1e6:.0f}}
# million pairs of tokens in a small language where the probability of every pair is known, and count. Pearson's test turns the counts
# into a *p-value*: how often a right kernel would be so far off, or farther, by luck. A right kernel may have any p-value
# from 0 to 1, all equally likely. We ring the alarm at a millionth, 10⁻⁶, which the table counts as six zeros, the one before the
# point among them. It rings falsely once in a million looks.
#
# /// when | max(exact.ours.t05, exact.ours.t10, exact.ours.t20) < 6 and min(exact.kept.t05, exact.off.t05, exact.plain.t05) > 6
# No alarm for our kernel, at any of three temperatures, and one for each of three faults that were planted for the purpose.
# /// otherwise
# The test and the kernels do not agree in this run as they should: look at the table.
# ///
#
# /// table
# columns: ["zeros of the p-value, at temperature", "0.5", "1", "2"]
# rows:
#   - ["k02_one_launch", "{{ exact.ours.t05:.1f}}", "{{ exact.ours.t10:.1f}}", "{{ exact.ours.t20:.1f}}"]
#   - ["fault: the refused token is kept", "{{ exact.kept.t05:.0f}}", "{{ exact.kept.t10:.0f}}", "{{ exact.kept.t20:.0f}}"]
#   - ["fault: one position off", "{{ exact.off.t05:.0f}}", "{{ exact.off.t10:.0f}}", "{{ exact.off.t20:.0f}}"]
#   - ["fault: after a refusal any token of the large model", "{{ exact.plain.t05:.0f}}", "{{ exact.plain.t10:.0f}}", "{{ exact.plain.t20:.0f}}"]
# caption: "Minus its decimal logarithm; {{ exact.most:.0f}} stands for this many and more. Two drafted tokens a step, six tokens in the language. Pairs, because a kernel that is one position off may have every single token right."
# ///

# %% tags=["fold"]
from course_models.speculative import expected_tokens

record(
    tokens_a_step={
        "k4": quantity(expected_tokens(0.7, 4)),
        "k8": quantity(expected_tokens(0.7, 8)),
        "endless": quantity(1 / (1 - 0.7)),
    }
)

# %% tags=["fold"]
import math

import torch
from course_kernels.speculative_sampling import k01_in_torch, k02_one_launch
from course_kernels.speculative_sampling import library as flashinfer
from course_models import bench, corpus, pretrained, verify_bench
from course_models.byte_tokens import encode
from course_models.config import parameters
from course_models.exact_pairs import chain, p_value, pairs
from course_models.speculative import (
    Pair,
    acceptance,
    expected_tokens,
    first_loss,
    gain,
)

ours = k02_one_launch.speculative_sampling


def kept(target, draft, drafted, temperature, uniforms):
    """A fault: the refused token stays."""
    tokens, accepted = ours(target, draft, drafted, temperature, uniforms)
    place = torch.arange(drafted.shape[1], device="cuda")
    refused = place == accepted[:, None]
    tokens[:, :-1] = torch.where(refused, drafted, tokens[:, :-1])
    return tokens, accepted


def off(target, *more):
    """A fault: each draft is held against the next position's row."""
    return ours(target.roll(-1, 1), *more)


def plain(target, draft, drafted, *more):
    """A fault: after a refusal the next token comes from the whole row."""
    _, accepted = ours(target, draft, drafted, *more)
    place = torch.arange(drafted.shape[1], device="cuda")
    ended = torch.where(place < accepted[:, None], drafted, -1)
    return ours(target, draft, ended, *more)


PAIRS, MOST_ZEROS = 4_000_000, 300
RULES = {"ours": ours, "kept": kept, "off": off, "plain": plain}
WHICH = flashinfer.flashinfer_version()
if WHICH:
    RULES["flashinfer"] = flashinfer.flashinfer_chain


def zeros(rule, temperature):
    """How many zeros the p-value has of what a rule says."""
    language = chain(temperature, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    p = p_value(pairs(rule, language, PAIRS, generator), language.pairs)
    return quantity(-math.log10(max(p, 10.0**-MOST_ZEROS)))


record(
    exact={
        "pairs": quantity(PAIRS),
        "most": quantity(MOST_ZEROS),
        **{
            name: {
                f"t{10 * temperature:02.0f}": zeros(rule, temperature)
                for temperature in (0.5, 1.0, 2.0)
            }
            for name, rule in RULES.items()
        },
    },
    guest={
        "flashinfer": quantity(int(bool(WHICH))),
        "version": text(WHICH or "none"),
    },
)

# %% [markdown]
# ### How often does a draft pass?
#
# The [small model](../a_small_model.py) of this course was trained with a draft, which has a ninth of its weights. The probability that a draft passes at a
# place is the sum of the smaller of each pair of probabilities, as on the board above. We take it at every place of the files that neither model
# has learnt. Then the pair writes, four drafts a step, and we count.
#
# /// predict | Lower the temperature, and both models become surer of their first choice. What does that do to the acceptance, on files held out?
# - [passes.text.t10 - passes.text.t00 > 0.05] At a temperature of 0 it is clearly lower than at 1
# - [-0.05 <= passes.text.t10 - passes.text.t00 <= 0.05] Hardly anything
# - [passes.text.t10 - passes.text.t00 < -0.05] At a temperature of 0 it is clearly higher than at 1
# /// reveal
# {{ passes.text.t00:.0%}} at a temperature of 0, {{ passes.text.t10:.0%}} at 1.
#
# /// table
# columns: ["temperature", "acceptance on files held out", "acceptance while it writes", "tokens a step, counted", "tokens a step, by the formula"]
# rows:
#   - ["0, greedy", "{{ passes.text.t00:.1%}}", "{{ passes.run.t00:.1%}}", "{{ wrote.t00:.2f}}", "{{ formula.t00:.2f}}"]
#   - ["0.5", "{{ passes.text.t05:.1%}}", "{{ passes.run.t05:.1%}}", "{{ wrote.t05:.2f}}", "{{ formula.t05:.2f}}"]
#   - ["1", "{{ passes.text.t10:.1%}}", "{{ passes.run.t10:.1%}}", "{{ wrote.t10:.2f}}", "{{ formula.t10:.2f}}"]
#   - ["1.5", "{{ passes.text.t15:.1%}}", "{{ passes.run.t15:.1%}}", "{{ wrote.t15:.2f}}", "{{ formula.t15:.2f}}"]
# caption: "Four drafts a step. While it writes: {{ wrote.sequences:.0f}} beginnings from these files, {{ wrote.most:.0f}} bytes each. The formula, 1 + p + p² + p³ + p⁴, takes each draft to pass with the same probability, whatever passed before; real ones do not keep to that."
# ///
# ///
#
# The two columns of acceptance count different things. On the files every place is counted; while it writes, only the drafts up to the first refusal.
#
# /// claim | passes.run.t00 > passes.text.t00
# And where it is greedy, its own text is easier to guess than what people wrote: it repeats itself.
# /// otherwise
# Where it is greedy, its own text is no easier to guess here than what people wrote.
# ///

# %% tags=["fold"]
TEMPERATURES, K, MOST, SEQUENCES = (0.0, 0.5, 1.0, 1.5), 4, 200, 32
small, draft = (pretrained.load(name, device="cuda") for name in ("small", "draft"))
rows = [encode(one) for one in corpus.load().held_out]
rows = [row[:512] for row in rows if len(row) >= 512]
held_out = torch.tensor(rows, device="cuda")
beginnings = held_out[:SEQUENCES, :64].contiguous()


def writes(temperature):
    """The pair after it has written."""
    pair = Pair(small, draft, K, temperature, rule=ours)
    for _ in pair.write(beginnings, MOST):
        pass
    return pair


def by_temperature(of, how="computed"):
    """A number for each temperature."""
    return {f"t{10 * t:02.0f}": quantity(of(t), how=how) for t in TEMPERATURES}


wrote = {t: writes(t) for t in TEMPERATURES}
record(
    passes={
        "text": by_temperature(
            lambda t: float(acceptance(small, draft, held_out, t).mean())
        ),
        "run": by_temperature(lambda t: wrote[t].acceptance, "counted"),
    },
    wrote={
        **by_temperature(lambda t: wrote[t].tokens_a_step, "counted"),
        "sequences": quantity(len(beginnings)),
        "most": quantity(MOST),
    },
    formula=by_temperature(lambda t: expected_tokens(wrote[t].acceptance, K)),
)

# %% [markdown]
# ### The kernel
#
# Somebody must decide, and draw. In torch's operators that is a few dozen launches, and in the middle of them the host asks the card how many passed, since the next row
# hangs on it. `k02_one_launch` in `speculative_sampling/` needs neither: whoever finds the first refusal is the one to draw from that row.
#
# A library that draws numbers of its own writes other tokens, and an answer is right or wrong by its token. So everybody races on rows where the answer is certain, whatever is drawn:
# each of the large model's rows has one token, and each draft half of its weight on another.
#
# /// when | guest.flashinfer == 1
# FlashInfer's kernel was held against the pairs first, too: {{ exact.flashinfer.t05:.1f}}, {{ exact.flashinfer.t10:.1f}} and {{ exact.flashinfer.t20:.1f}} zeros.
#
# /// table
# columns: ["K = 4, V = 128256, fp32", "k01_in_torch, µs", "FlashInfer, µs", "k02_one_launch, µs"]
# rows:
#   - ["1 sequence", "{{ accept.b1.torch.us:.0f}}", "{{ accept.b1.flashinfer.us:.1f}}", "{{ accept.b1.ours.us:.1f}}"]
#   - ["64 sequences", "{{ accept.b64.torch.us:.0f}}", "{{ accept.b64.flashinfer.us:.1f}}", "{{ accept.b64.ours.us:.1f}}"]
# caption: "The same inputs in the same rounds, cold L2; none to four drafts pass. FlashInfer {{ guest.version }}. k01 waits for the host in the middle, and its time is what the caller waits."
# ///
# /// otherwise
# FlashInfer was **not raced** in this run: it was not installed. With one sequence `k01_in_torch` takes {{ accept.b1.torch.us:.0f}} µs and `k02_one_launch` {{ accept.b1.ours.us:.1f}}; with 64 sequences {{ accept.b64.torch.us:.0f}} and {{ accept.b64.ours.us:.1f}} µs.
# ///
#
# With 64 sequences our one launch takes {{ accept.b64.ours.us:.1f}} µs, and torch's operators, launched one by one, {{ accept.b64.torch.us:,.0f}}: most of that is the host's.

# %% tags=["fold"]
RACE = {"torch": k01_in_torch, "ours": k02_one_launch} | (
    {"flashinfer": flashinfer.flashinfer_chain} if WHICH else {}
)
record(
    accept={
        f"b{B}": compare(
            RACE,
            Workload.of("int32", B=B, K=K, V=128256, certain=True),
            seconds=0.1,
        )
        for B in (1, 64)
    }
)

# %% [markdown]
# ### From which batch on is it a loss?
#
# Now put it together. Speed-up is tokens a step, times the time of a plain step, over the time of a step with drafts:
#
# > *gain = (1 + p + … + p<sup>k</sup>) · t(1) ÷ (t(k + 1) + (k + 1) · t<sub>draft</sub>)*
#
# Both kinds of step are measured, on the 8B shape and on a draft's shape with {{ shape.draft / 1e9:.1f}} billion weights, by the same code, each in a CUDA graph behind {{ shape.held:.0f}} tokens. p is our trained
# pair's, {{ passes.run.t10:.2f}} at a temperature of 1. So the gain is **computed**: no model of this size with such a draft was run here. The draft takes k + 1 steps, as it
# reads its last guess, too, in case it stays.
#
# /// define | paid.b1 = formula.t10 * verify.b1.t1.us / (verify.b1.t5.us + 5 * drafts.b1.us)
# unit: ×
# what: computed gain of four drafts a step over none, one reader, 8B shape
# ///
#
# /// define | paid.b128 = formula.t10 * verify.b128.t1.us / (verify.b128.t5.us + 5 * drafts.b128.us)
# unit: ×
# what: computed gain of four drafts a step over none, 128 readers, 8B shape
# ///
#
# /// predict | Batches of 1, 8, 16, 32, 64 and 128 readers: from which of them on is drafting a loss?
# Five rows for each reader: at which batch do they pass [the ridge](w4_serving.py)?
#
# - [0 < turns <= 32] 32, or fewer
# - [32 < turns <= 64] 64
# - [turns > 64] 128
# - [turns == 0] None of them
# /// reveal
# /// claim | 1.02 < paid.b1 < 1.3 and paid.b128 < 0.95
# One reader's answer comes {{ paid.b1:.2f}} times as fast: **hardly worth the trouble**. A step of this draft takes {{ drafts.b1.us / verify.b1.t1.us:.0%}} of a plain step's time, and there are five of them before five rows are verified. With 128 readers the
# same drafts give {{ paid.b128:.2f}} of the speed without them: **a loss**.
# /// otherwise
# One reader's answer comes {{ paid.b1:.2f}} times as fast, and with 128 readers it is {{ paid.b128:.2f}} times the speed without drafts.
# ///
#
# /// when | turns > 0
# Of the batches that were measured, {{ turns:.0f}} is the first from which on it loses.
# /// otherwise
# At none of the batches that were measured does it lose.
# ///
#
# /// chart | lines
# title: What four drafts a step are worth
# x: batch
# y: gain
# x_label: readers
# y_label: computed gain, ×
# series:
#   - {name: worth.real.*, label: "as often as our pair's draft passes"}
#   - {name: worth.always.*, label: "if every draft passed"}
# references:
#   - {label: no gain, value: one}
# alt: "Computed gain over the number of readers. As often as our pair's draft passes: {{ worth.real.b1:.2f}} for one reader, {{ worth.real.b16:.2f}} for 16, {{ worth.real.b64:.2f}} for 64 and {{ worth.real.b128:.2f}} for 128. If every draft passed: {{ worth.always.b1:.2f}}, {{ worth.always.b16:.2f}}, {{ worth.always.b64:.2f}} and {{ worth.always.b128:.2f}}."
# caption: "Computed from measured steps. Below 1 the drafts cost more than they give."
# ///
#
# /// table
# columns: ["readers", "a step with 1 row each, ms", "with 5 rows each, ms", "a draft's step, ms"]
# rows:
#   - ["1", "{{ verify.b1.t1.us / 1000:.2f}}", "{{ verify.b1.t5.us / 1000:.2f}}", "{{ drafts.b1.us / 1000:.2f}}"]
#   - ["16", "{{ verify.b16.t1.us / 1000:.2f}}", "{{ verify.b16.t5.us / 1000:.2f}}", "{{ drafts.b16.us / 1000:.2f}}"]
#   - ["64", "{{ verify.b64.t1.us / 1000:.2f}}", "{{ verify.b64.t5.us / 1000:.2f}}", "{{ drafts.b64.us / 1000:.2f}}"]
#   - ["128", "{{ verify.b128.t1.us / 1000:.2f}}", "{{ verify.b128.t5.us / 1000:.2f}}", "{{ drafts.b128.us / 1000:.2f}}"]
# caption: "8B shape, bf16, checked against float64. The rows of one reader share what they read of the cache."
# ///
# ///
#
# **A draft sells what a step leaves unused.** One reader leaves nearly all of the arithmetic unused. A full batch has sold it already.
#
# So makers work on three sides of the quotient. *Multi-token prediction* makes the draft cheap: a layer of the model's own kind is trained on top of it, and guesses from
# what the large model has computed anyway [^vllm-mtp]. *DSpark* drafts many tokens in one pass, with a light part behind it that looks at the token before, so that late guesses are not
# blind; and it decides for every request how many drafts are verified, from how likely they are to pass and how busy the server is [^cheng2026]. That is the chart above, read in every step.
#
# /// exercise | Two servers | 4 minutes
# Server A has one user who waits for a long answer. Server B has two hundred users and a full card. Both have the same pair of models. For each: how many drafts a step, and which number would you
# watch before you change your mind?
# /// answer
# A: as many as still pass often enough; each further one costs a draft's step, and pays with probability p to the power of its place. B: none, or very few. Watch the rows of a step against the ridge, and the acceptance: the
# first says whether there is anything to sell, the second at what price.
# ///

# %% tags=["fold"]
BATCHES = (1, 8, 16, 32, 64, 128)
subject = bench.subject()
steps = verify_bench.steps(subject, BATCHES, (1, K + 1))
del subject
torch.cuda.empty_cache()
shape = verify_bench.DRAFT_OF_8B
drafts = verify_bench.steps(bench.subject(shape), BATCHES, (1,))


def worth(p):
    """The gain at every batch, if a draft passes with probability p."""
    return {
        B: gain(
            p,
            K,
            lambda rows, B=B: steps[B, rows].median_us,
            drafts[B, 1].median_us,
        )
        for B in BATCHES
    }


gains = {"real": worth(wrote[1.0].acceptance), "always": worth(1.0)}
record(
    verify={
        f"b{B}": {f"t{rows}": steps[B, rows] for rows in (1, K + 1)}
        for B in BATCHES
    },
    drafts={f"b{B}": drafts[B, 1] for B in BATCHES},
    worth={
        name: {f"b{B}": quantity(found) for B, found in of.items()}
        for name, of in gains.items()
    },
    turns=quantity(first_loss(gains["real"]) or 0),
    one=quantity(1),
    shape={
        "draft": quantity(parameters(shape)),
        "held": quantity(bench.HELD),
    },
)

# %% [markdown]
# ## The rest of the stack {.beyond}
#
# Three more kernels of this stack have pages of their own. Here is a screen of each.
#
# ### Many experts
#
# A layer of experts has many feed-forward blocks, and a router that picks a few of them for each token. Few tokens are its trouble: a dense block is read once for all of them, and here
# every expert that anybody asks for is read whole.
#
# /// predict | 128 experts, of which a token asks eight. Sixteen tokens: how many experts are read?
# - [many_experts.moe.hit.t16 <= 32] Up to 32
# - [32 < many_experts.moe.hit.t16 < 64] 33 to 63
# - [many_experts.moe.hit.t16 >= 64] 64 or more
# /// reveal
# {{ many_experts.moe.hit.t16:.0f}}, which are {{ many_experts.moe.mb.t16:.0f}} MB. A single token reads {{ many_experts.moe.mb.t1:.0f}} MB.
#
# A loop over the experts takes {{ many_experts.moe.t16.plain.us:,.0f}} µs for them: it asks the card again and again who has how many. Sorted by expert, and with one *grouped* multiply for all, it is
# {{ many_experts.moe.t16.fused.us:,.0f}} µs, {{ many_experts.moe.t16.fused.of_peak:.0%}} of the floor's speed.
# ///
#
# [Many experts](../many_experts.py) builds it kernel by kernel, and asks who is busy when a trained router decides. There, too, is the grouped multiply in FP8, with a scale for every 128 numbers.
# [Experts on two cards](../experts_on_two_cards.py) lets tokens travel.
#
# ### Read only what matters
#
# DeepSeek-V3.2 reads a short index of every token, chooses 2048 of them, and only then reads their rows of the cache [^deepseek2025].
#
# /// exercise | From which context on? | 3 minutes
# A row of the cache has 1152 bytes. An index key has 256 in our kernels. Dense attention reads N rows; sparse attention reads N keys, and 2048 rows. From which N on does it read less?
# /// answer
# 1152 N = 256 N + 2048 · 1152 gives N = 2048 · 1152 ÷ 896, about 2633. By the clock, with one sequence of 4096 tokens, dense takes {{ sparse_reading.sparse.one.dense.n4096.us:.0f}} µs and sparse
# {{ sparse_reading.sparse.one.chosen.n4096.us:.0f}} µs; with 131072 tokens it is {{ sparse_reading.sparse.one.dense.n131072.us:.0f}} and {{ sparse_reading.sparse.one.chosen.n131072.us:.0f}} µs.
# ///
#
# [Read only what matters](../read_what_matters.py) has the kernels, the bytes that the card counted, and the chart over context.
#
# ### Lab: one list for all heads
#
# First make the keys and values of all heads, then do without the keys, then without the values, and at last go through the list block by block, in NumPy or in Triton. It is meant for after the course: `nox -s lab -- mla`.
#
# /// lab | mla
# ///

# %% [markdown]
# ## What does *solved* mean?
#
# Hour two is about kernels that machines write. Every figure of that field rests on a word, and the word is not *right*. KernelBench, the benchmark behind the famous sentences, counts
# three things [^ouyang2025]: **fast₀**, how many kernels are right; **fast₁**, how many are right *and* take less time than PyTorch as it is, *eager*; **fast₂**, how many are right and so fast that two runs fit
# into one of eager's.
#
# /// exercise | Ten kernels | 8 minutes
# These are made up; times are in ticks, and a kernel is right when its worst error is at most 0.01. Judge each row. What are fast₀, fast₁ and fast₂, of ten? One row is a trap for whoever asks *is the error
# greater than allowed?*
#
# | kernel | worst error | its ticks | eager's |
# |---|---:|---:|---:|
# | 1 | 0.001 | 80 | 100 |
# | 2 | 0.004 | 120 | 100 |
# | 3 | 0.300 | 10 | 100 |
# | 4 | 0.002 | 48 | 100 |
# | 5 | 0.000 | 100 | 90 |
# | 6 | NaN | 5 | 100 |
# | 7 | 0.009 | 95 | 100 |
# | 8 | 0.003 | 40 | 100 |
# | 9 | 0.011 | 60 | 100 |
# | 10 | 0.005 | 300 | 100 |
# /// answer
# fast₀ is 7: rows 3, 6 and 9 are wrong. fast₁ is 4: rows 1, 4, 7, 8. fast₂ is 2: rows 4 and 8. Row 6 is the trap: NaN is not greater than 0.01. Ask *is it at most 0.01?* instead, and NaN fails.
# ///
#
# A wrong kernel has no speed. So fast₂ can never be more than fast₁, nor fast₁ more than fast₀.
#
# ### Two models, one sentence
#
# It is told as one staircase of one model, DeepSeek, with three steps. There are two models in it. Level 2 of KernelBench, fast₁, on an L40S:
#
# - DeepSeek-V3: 4 % in one try, and 37 % as the best of a hundred [^ouyang2025].
# - DeepSeek-R1: 36 % in one try, 62 % when it was shown what the run said, and 72 % with what the run *and the profiler* said, in ten turns [^ouyang2025]. 92 % were right [^ouyang2025].
#
# /// exercise | Rewrite it | 4 minutes
# Write the sentence so that it is true, in one line. Then: what are the kernels between the 72 and the 92 %?
# /// answer
# *On Level 2 and an L40S, V3 goes from 4 to 37 % with a hundred tries, and R1 from 36 to 72 % with ten turns of feedback* [^ouyang2025]. The rest of those 92 % are right, and lose to eager PyTorch [^ouyang2025].
# ///
#
# ### The autopsy of a record
#
# In May 2025 a group published kernels that a machine had found, on an L40S, in fp32, each at one fixed size: LayerNorm at 484 % of PyTorch, Conv2D 180 %, softmax 112 %, matmul 101 % [^crfm2025]. In the same post:
# fp16 matmul at 52 %, and fp16 FlashAttention at 9 % of PyTorch [^crfm2025].
#
# The LayerNorm had 16 rows of 64 × 256 × 256 numbers. In the source that we read, of 2026, PyTorch's kernel starts as many blocks as there are rows, for rows of up to 2²⁴ numbers [^pytorch-layer-norm].
#
# /// exercise | How many tables are set? | 4 minutes
# How many numbers has a row, and is that within those 2²⁴? How many blocks are there, and what share of the {{ l1.card.sms:.0f }} SMs of this card would have work? What would you change?
# /// answer
# 64 · 256 · 256 is 4.2 million, which is 2²²: within. So there are 16 blocks, and 16 of {{ l1.card.sms:.0f }} SMs have work. Split each row over many blocks.
# ///
#
# So the figure is true, and it is about *this size*. It does not say that LayerNorm in general can be had so. We have timed it again, here, with two kernels of ours. `k01_row_a_block` gives each row to a
# block. `k02_row_split` gives it to many, which leave their means and variances for a second launch. The arithmetic is the same.
#
# /// define | record_over_eager.split = record_rows.published.eager.us / record_rows.published.split.us
# unit: ×
# what: the speed of layer_norm/k02_row_split over that of torch.nn.functional.layer_norm, fp32, 16 rows of 4194304 numbers, cold L2
# ///
#
# /// define | record_over_eager.model = record_rows.model.eager.us / record_rows.model.split.us
# unit: ×
# what: the speed of layer_norm/k02_row_split over that of torch.nn.functional.layer_norm, fp32, 16384 rows of 4096 numbers, cold L2
# ///
#
# /// predict | Sixteen rows of 4.2 million numbers on this card: how many times the speed of PyTorch's eager LayerNorm has a kernel that splits each row?
# Both of ours read x twice and write once. Look at your share of SMs.
#
# - [record_over_eager.split < 2] Less than 2 times
# - [2 <= record_over_eager.split < 5] 2 to 5 times
# - [record_over_eager.split >= 5] 5 times or more
# /// reveal
# {{ record_over_eager.split:.1f}} times. With one block a row {{ record_lit.one:.0f}} blocks light {{ record_lit.one_share:.0%}} of the SMs. Split, there are {{ record_lit.split:,.0f}} blocks, for {{ record_lit.split_share:.0%}} of them.
#
# /// table
# columns: ["µs", "16 rows of 4,194,304", "16,384 of 4096", "65,536 of 1024"]
# rows:
#   - ["k01, a block for each row", "{{ record_rows.published.one.us:,.0f}}", "{{ record_rows.model.one.us:,.0f}}", "{{ record_rows.short.one.us:,.0f}}"]
#   - ["k02, many blocks for each row", "{{ record_rows.published.split.us:,.0f}}", "{{ record_rows.model.split.us:,.0f}}", "{{ record_rows.short.split.us:,.0f}}"]
#   - ["PyTorch, eager", "{{ record_rows.published.eager.us:,.0f}}", "{{ record_rows.model.eager.us:,.0f}}", "{{ record_rows.short.eager.us:,.0f}}"]
#   - ["torch.compile", "{{ record_rows.published.compile.us:,.0f}}", "{{ record_rows.model.compile.us:,.0f}}", "{{ record_rows.short.compile.us:,.0f}}"]
# caption: "LayerNorm in fp32 with weight and bias, the same inputs in the same rounds, cold L2, answers checked against float64 before and after. Of the least bytes at the data sheet's bandwidth, k02 reaches {{ record_rows.published.split.of_peak:.0%}} at the published size."
# ///
#
# /// claim | record_rows.published.one.us < record_rows.published.eager.us / 8 and record_rows.published.split.us < 0.4 * record_rows.published.one.us
# So the empty tables are the smaller part: with one block a row, as few blocks as eager has rows, our own kernel takes {{ record_rows.published.one.us:,.0f}} µs, and with many {{ record_rows.published.split.us:,.0f}}. Eager takes {{ record_rows.published.eager.us:,.0f}}. The rest of the gap is how eager's kernel walks along a row of millions; a profiler would have to say what it does there.
# /// otherwise
# With one block a row our own kernel takes {{ record_rows.published.one.us:,.0f}} µs, with many {{ record_rows.published.split.us:,.0f}}, and eager {{ record_rows.published.eager.us:,.0f}}.
# ///
#
# **Against whom?** `torch.compile` takes {{ record_rows.published.compile.us:,.0f}} µs at that size.
#
# /// claim | record_rows.published.split.us < 0.9 * record_rows.published.compile.us
# k02 is ahead of it too, by a factor of {{ record_rows.published.compile.us / record_rows.published.split.us:.2f}}: what is left of the record against an opponent that costs one line.
# /// otherwise
# Against it k02, with {{ record_rows.published.split.us:,.0f}} µs, is no record at all.
# ///
#
# /// claim | record_over_eager.model < 0.95
# **At which size?** With 16384 rows there are enough blocks either way, and the kernel of the record's idea has {{ record_over_eager.model:.2f}} times eager's speed: a loss. The headline has gone.
# /// otherwise
# **At which size?** With 16384 rows there are enough blocks either way, and k02 has {{ record_over_eager.model:.2f}} times eager's speed: what it has there, it does not have from splitting.
# ///
#
# At the two ordinary sizes `torch.compile` takes {{ record_rows.model.compile.us:,.0f}} and {{ record_rows.short.compile.us:,.0f}} µs, and the better of our two {{ record_rows.model.one.us:,.0f}} and {{ record_rows.short.one.us:,.0f}}.
# ///
#
# /// when | record_peer.here == 1
# The published kernels themselves, compiled for this card, take {{ record_rows.published.crfm.us:,.0f}} µs at their size: {{ record_rows.published.eager.us / record_rows.published.crfm.us:.0%}} of PyTorch, as they count, and {{ record_rows.published.compile.us / record_rows.published.crfm.us:.0%}} of torch.compile. With 16384 rows of 4096
# they take {{ record_rows.model.crfm.us:,.0f}} µs, {{ record_rows.model.eager.us / record_rows.model.crfm.us:.0%}} of PyTorch.
# /// otherwise
# The published kernels themselves were **not raced** in this run: their source was not at hand. It is public, without a licence, so it is not part of this course [^good-kernels].
# ///
#
# Their first version works out the variance as the mean of the squares less the square of the mean [^good-kernels]. Near 0 that is right. Move a row of variance 1 to 256, and two numbers near 65536 are subtracted, of which fp32 keeps seven bits behind the point. Nothing in a test on
# `randn` shows it. Two days after the post, a second version with Welford's sums lay beside it [^good-kernels].
#
# #### The other headline {.beyond}
#
# The Conv2D at 180 % of PyTorch [^crfm2025] has another patient's illness. The published kernel rounds every number to float16 [^good-kernels], the yardstick was PyTorch's fp32, and the tolerance one in a hundred [^crfm2025]. *Is it the same work?*
# With TF32 allowed the same library takes {{ conv_record.layers.rough.published.eager.us:,.0f}} µs at that size, in fp32 {{ conv_record.layers.exact.published.eager.us:,.0f}}. [A convolution against whom?](../convolution_against_whom.py) opens it: two kinds of work, four rivals, three sizes, and a loss of ours.
#
# #### Four boxes
#
# A record has four boxes, too: of what, against whom, at which size, with which tolerance. Empty one of them, and it goes up.

# %% tags=["fold"]
from course_kernels.layer_norm import k01_row_a_block, k02_row_split
from course_kernels.layer_norm import library as norm_library

# The published size, and two ordinary ones.
ROWS = {
    "published": (16, 64 * 256 * 256),
    "model": (16384, 4096),
    "short": (65536, 1024),
}
THEIRS = norm_library.CRFM.at_hand()
NORMS = {
    "one": k01_row_a_block,
    "split": k02_row_split,
    "eager": norm_library.torch_eager,
    "compile": norm_library.torch_compile,
    **({"crfm": norm_library.crfm} if THEIRS else {}),
}
MULTIPROCESSORS = torch.cuda.get_device_properties(0).multi_processor_count
SPLIT = (
    ROWS["published"][0]
    * k02_row_split.parts_of(*ROWS["published"], MULTIPROCESSORS)[0]
)
record(
    record_lit={
        "one": quantity(ROWS["published"][0]),
        "one_share": quantity(min(1.0, ROWS["published"][0] / MULTIPROCESSORS)),
        "split": quantity(SPLIT),
        "split_share": quantity(min(1.0, SPLIT / MULTIPROCESSORS)),
    },
    record_peer={"here": quantity(int(THEIRS))},
    record_rows={
        name: compare(NORMS, Workload.of("float32", M=M, N=N), seconds=0.1)
        for name, (M, N) in ROWS.items()
    },
)

# %% [markdown]
# ### Six kernels that a machine wrote
#
# A language model was given fifteen tasks of this course as you are given them: the contract, the signature, the sizes that are announced, the
# tolerance, and PyTorch's own line. It saw no kernel of ours, ran nothing and compiled nothing, and answered each task twice. `proposals/` keeps
# all files as they were written; what nobody knows of the model's sampling says *not known* there.
#
# Here are six of them. Nothing below is remembered: each was handed to [the judge](../how_we_measure.py#whose-time) when this page was measured, in a
# process of its own, and had to be right before anybody looked at a clock: on up to {{ six.sizes:.0f}} of the announced sizes, drawn anew for each file, and on sizes that nobody had announced. Read the file, say what you expect, then look.
#
# A file that is refused has no speed. Its quotients below are 0.
#
# **1 · Softmax**, 16384 rows of 8192 numbers in float32. *Level 1, a single operator.*
#
# /// source | proposals/softmax/bold/s1_r1.py.txt
# fold: What it wrote for softmax
# size: true
# ///
#
# /// predict | Softmax: what does the judge say, and what do two clocks?
# For each row, how often is the input read? And what happens to a row of infinities?
#
# - [six.softmax.right < 1] It is refused
# - [six.softmax.right >= 1 and six.softmax.over.eager <= 1] Right, and it does not take less time than eager
# - [six.softmax.right >= 1 and six.softmax.over.eager > 1 and six.softmax.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.softmax.right >= 1 and six.softmax.over.eager > 1 and six.softmax.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.softmax.says
# ///
#
# Eager's time over its time is {{ six.softmax.over.eager:.2f}}, and `torch.compile`'s is {{ six.softmax.over.compiled:.2f}}.
# ///
#
# **2 · A multiply**, 8192 × 8192 × 8192 in float16. *Level 1, and the operator that libraries are proudest of.*
#
# /// source | proposals/gemm/bold/s1_r1.py.txt
# fold: What it wrote for the multiply
# size: true
# ///
#
# /// predict | The multiply: what does the judge say, and what do two clocks?
# Who is the opponent here, and how many people have worked on it?
#
# - [six.gemm.right < 1] It is refused
# - [six.gemm.right >= 1 and six.gemm.over.eager <= 1] Right, and it does not take less time than eager
# - [six.gemm.right >= 1 and six.gemm.over.eager > 1 and six.gemm.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.gemm.right >= 1 and six.gemm.over.eager > 1 and six.gemm.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.gemm.says
# ///
#
# Eager's time over its time is {{ six.gemm.over.eager:.2f}}, and `torch.compile`'s is {{ six.gemm.over.compiled:.2f}}.
# ///
#
# What the judge said of this file in an earlier run went back to the model. That is the loop at the end of this hour, by hand: here is its answer, and what the judge says of that.
#
# /// source | proposals/gemm/bold/s1_r2.py.txt
# fold: What it wrote when it had been told
# size: true
# ///
#
# /// text | six.mended.says
# ///
#
# Eager's time over its time is {{ six.mended.over.eager:.2f}}, and `torch.compile`'s is {{ six.mended.over.compiled:.2f}}.
#
# **3 · Bias and GELU**, 32768 × 16384 in bfloat16. *Level 2, operators that fuse.*
#
# /// source | proposals/bias_gelu/bold/s1_r1.py.txt
# fold: What it wrote for bias and GELU
# size: true
# ///
#
# /// predict | Bias and GELU: what does the judge say, and what do two clocks?
# Eager launches two kernels. How many trips to memory is that, and which of the two rivals saves one as well?
#
# - [six.bias_gelu.right < 1] It is refused
# - [six.bias_gelu.right >= 1 and six.bias_gelu.over.eager <= 1] Right, and it does not take less time than eager
# - [six.bias_gelu.right >= 1 and six.bias_gelu.over.eager > 1 and six.bias_gelu.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.bias_gelu.right >= 1 and six.bias_gelu.over.eager > 1 and six.bias_gelu.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.bias_gelu.says
# ///
#
# Eager's time over its time is {{ six.bias_gelu.over.eager:.2f}}, and `torch.compile`'s is {{ six.bias_gelu.over.compiled:.2f}}.
# ///
#
# **4 · SwiGLU**, 16384 rows of 14336 in bfloat16. *Level 2 again, and the hardest part is not the arithmetic.*
#
# /// source | proposals/swiglu/bold/s1_r1.py.txt
# fold: What it wrote for SwiGLU
# size: true
# ///
#
# /// predict | SwiGLU: what does the judge say, and what do two clocks?
# The contract has two forms of input, one of them a single tensor with both halves.
#
# - [six.swiglu.right < 1] It is refused
# - [six.swiglu.right >= 1 and six.swiglu.over.eager <= 1] Right, and it does not take less time than eager
# - [six.swiglu.right >= 1 and six.swiglu.over.eager > 1 and six.swiglu.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.swiglu.right >= 1 and six.swiglu.over.eager > 1 and six.swiglu.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.swiglu.says
# ///
#
# Eager's time over its time is {{ six.swiglu.over.eager:.2f}}, and `torch.compile`'s is {{ six.swiglu.over.compiled:.2f}}.
# ///
#
# **5 · Attention**, causal, one sequence of 16384 tokens, 16 heads of 128 in bfloat16. *Level 3, a block of a model.*
#
# /// source | proposals/attention/bold/s1_r1.py.txt
# fold: What it wrote for attention
# size: true
# ///
#
# /// predict | Attention: what does the judge say, and what do two clocks?
# Eager calls a kernel that took years. Which of [its ideas](../attention_on_hopper.py) do you find in the file?
#
# - [six.attention.right < 1] It is refused
# - [six.attention.right >= 1 and six.attention.over.eager <= 1] Right, and it does not take less time than eager
# - [six.attention.right >= 1 and six.attention.over.eager > 1 and six.attention.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.attention.right >= 1 and six.attention.over.eager > 1 and six.attention.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.attention.says
# ///
#
# Eager's time over its time is {{ six.attention.over.eager:.2f}}, and `torch.compile`'s is {{ six.attention.over.compiled:.2f}}.
# ///
#
# **6 · Decode attention**, 32 sequences of 4096 tokens, 32 query heads on 8, in bfloat16. *Level 3, and it waits for the cache.*
#
# /// source | proposals/decode_attention/bold/s1_r1.py.txt
# fold: What it wrote for decode attention
# size: true
# ///
#
# /// predict | Decode attention: what does the judge say, and what do two clocks?
# Eager as most people write it copies the cache to mask it. What does that cost, and what is the victory over it worth?
#
# - [six.decode_attention.right < 1] It is refused
# - [six.decode_attention.right >= 1 and six.decode_attention.over.eager <= 1] Right, and it does not take less time than eager
# - [six.decode_attention.right >= 1 and six.decode_attention.over.eager > 1 and six.decode_attention.over.compiled <= 1] Right, in less time than eager, but not than `torch.compile`
# - [six.decode_attention.right >= 1 and six.decode_attention.over.eager > 1 and six.decode_attention.over.compiled > 1] Right, in less time than both
# /// reveal
# /// text | six.decode_attention.says
# ///
#
# Eager's time over its time is {{ six.decode_attention.over.eager:.2f}}, and `torch.compile`'s is {{ six.decode_attention.over.compiled:.2f}}.
# ///
#
# /// exercise | Wrong, cheat, slow | 6 minutes
# Take the sheet *six kernels*. For each file one cross: *wrong*, *a cheat*, *slow*, or none of them. Beside it, in five words, what proves it: an element, a counter, a clock, or a line of the file.
# No card? Then count in the code how often each input is fetched, and hold it against the bytes that must move.
# /// answer
# *Wrong* and *slow* are in [the table](#what-the-judge-said). Of a *cheat* there is no sign: the judge asked sizes and values that nobody had announced, and looked at the clock from outside. That is no proof; it is what a judge can say.
# ///
#
# ### The clever one
#
# A search finds the gaps in your test. Here is a kernel that looks at one number of its input, works if that has changed since the last call, and otherwise does nothing: its old answer still lies there. It passes
# every check of its answer.
#
# /// exercise | What can still catch it? | 4 minutes
# Write down two ways in which a judge could. Then look at [how every number here is measured](../how_we_measure.py#first-taste-then-time).
# /// answer
# It is done in less time than its bytes need at the data sheet's bandwidth: physics. Or inputs that change where it does not look, in a call that nobody announces. The first needs no luck, only an input whose bytes take longer than a launch.
# ///
#
# ### What the judge said
#
# The kernel of the demo is a cheat that a person wrote. A search would have found it, too, if it paid: whoever proposes often enough finds whatever is not asked. So the judge of these six does not ask the sizes that the
# task announces alone, draws its numbers anew, asks again after it has timed, and reads a clock that the file cannot reach. What it does not stop stands on
# [how we measure](../how_we_measure.py#a-strangers-kernel).
#
# Speed is told as a quotient with its opponent's name in it. Eager is PyTorch as most people write it, and `torch.compile` the same text behind one line more: the second opponent costs
# a reader nothing, so a gain over the first alone is a gain over a line that somebody did not write.
#
# /// predict | All six: how many are right, in less time than eager and also than torch.compile?
# Your six forecasts have said it already. Count.
#
# - [six.won <= 1] None, or one
# - [1 < six.won <= 3] Two or three
# - [six.won > 3] Four or more
# /// reveal
# {{ six.won:.0f}}.
#
# /// table
# columns: ["", "right?", "eager's time over its", "torch.compile's over its", "eager's over our own"]
# rows:
#   - ["softmax", "{{ six.softmax.outcome }}", "{{ six.softmax.over.eager:.2f}}", "{{ six.softmax.over.compiled:.2f}}", "{{ six.softmax.eager.us / six.softmax.ours.us:.2f}}"]
#   - ["multiply, float16", "{{ six.gemm.outcome }}", "{{ six.gemm.over.eager:.2f}}", "{{ six.gemm.over.compiled:.2f}}", "{{ six.gemm.eager.us / six.gemm.ours.us:.2f}}"]
#   - ["the same, told once", "{{ six.mended.outcome }}", "{{ six.mended.over.eager:.2f}}", "{{ six.mended.over.compiled:.2f}}", "{{ six.gemm.eager.us / six.gemm.ours.us:.2f}}"]
#   - ["bias and GELU", "{{ six.bias_gelu.outcome }}", "{{ six.bias_gelu.over.eager:.2f}}", "{{ six.bias_gelu.over.compiled:.2f}}", "{{ six.bias_gelu.eager.us / six.bias_gelu.ours.us:.2f}}"]
#   - ["SwiGLU", "{{ six.swiglu.outcome }}", "{{ six.swiglu.over.eager:.2f}}", "{{ six.swiglu.over.compiled:.2f}}", "{{ six.swiglu.eager.us / six.swiglu.ours.us:.2f}}"]
#   - ["attention", "{{ six.attention.outcome }}", "{{ six.attention.over.eager:.2f}}", "{{ six.attention.over.compiled:.2f}}", "{{ six.attention.eager.us / six.attention.ours.us:.2f}}"]
#   - ["decode attention", "{{ six.decode_attention.outcome }}", "{{ six.decode_attention.over.eager:.2f}}", "{{ six.decode_attention.over.compiled:.2f}}", "{{ six.decode_attention.eager.us / six.decode_attention.ours.us:.2f}}"]
# caption: "A time divided by another; 0: the file has no speed. A stranger's file runs in a process of its own, so it is timed by the judge's two clocks, and the other three in rounds of their own, on the same card and with a cold L2. Our own: `softmax/k01_online`, `gemm/k13_by_size`, `bias_gelu/k02_triton`, `swiglu/k01_fused`, `attention/k06_wgmma`, `decode_attention/k03_early`. Judging these seven files took {{ six.seconds:.0f}} s."
# ///
#
# /// claim | six.attention.us > 1.2 * six.attention.eager.us
# **Where it loses:** attention has {{ six.attention.eager.us / six.attention.us:.2f}} of eager's speed. It is an operator on which a library's authors have spent years.
# /// otherwise
# On attention eager's time over the file's is {{ six.attention.over.eager:.2f}}.
# ///
#
# /// claim | 0.8 * six.gemm.eager.us < six.mended.us < 1.2 * six.gemm.eager.us
# **Where one would have bet on a loss:** the float16 multiply. The second file is level with eager: {{ six.mended.over.eager:.2f}} times its speed. Multiplies of this size run into the card's power limit, and a few per cent between the judge's clocks and ours are no photo finish.
# /// otherwise
# On the float16 multiply eager's time over that of the second file is {{ six.mended.over.eager:.2f}}.
# ///
#
# /// claim | six.softmax.us < 0.7 * six.softmax.ours.us
# **Where we are behind it:** softmax. The file takes {{ six.softmax.us:,.0f}} µs, and the kernel of our lesson {{ six.softmax.ours.us:,.0f}}: ours reads each row twice, and the file keeps it in registers.
# /// otherwise
# On softmax the file takes {{ six.softmax.us:,.0f}} µs, and the kernel of our lesson {{ six.softmax.ours.us:,.0f}}.
# ///
#
# /// claim | six.bias_gelu.us < 0.85 * six.bias_gelu.ours.us
# **And on bias and GELU**: {{ six.bias_gelu.us:,.0f}} µs, and ours {{ six.bias_gelu.ours.us:,.0f}}, which is {{ six.bias_gelu.ours.of_peak:.0%}} of its floor's speed.
# /// otherwise
# On bias and GELU the file takes {{ six.bias_gelu.us:,.0f}} µs, and ours {{ six.bias_gelu.ours.us:,.0f}}.
# ///
#
# And before you smile at a file that falls over a matrix of one column: our own LayerNorm fell over a row of one number, the first time it met a card, by the same line. A number that is known to be 1 when a kernel is compiled is no tensor any more, and has no `.to`.
# ///
#
# #### All that were kept {.beyond}
#
# /// when | machines.told == 1
# All {{ machines.files:.0f}} files went through the judge in a run of their own, sealed step by step; of them {{ machines.right:.0f}} are right. fast₁ counts a task if a file of it is right and takes less time than its rival.
#
# /// table
# columns: ["", tasks, "fast₀, one try", "fast₁ against eager, one try", "against torch.compile, one try", "fast₀, best of 2", "fast₁ against eager, best of 2", "against torch.compile, best of 2"]
# rows:
#   - ["level 1, a single operator", "{{ machines.l1.tasks:.0f}}", "{{ machines.l1.one_fast_0:.0%}}", "{{ machines.l1.one_eager:.0%}}", "{{ machines.l1.one_compiled:.0%}}", "{{ machines.l1.best_fast_0:.0%}}", "{{ machines.l1.best_eager:.0%}}", "{{ machines.l1.best_compiled:.0%}}"]
#   - ["level 2, operators that fuse", "{{ machines.l2.tasks:.0f}}", "{{ machines.l2.one_fast_0:.0%}}", "{{ machines.l2.one_eager:.0%}}", "{{ machines.l2.one_compiled:.0%}}", "{{ machines.l2.best_fast_0:.0%}}", "{{ machines.l2.best_eager:.0%}}", "{{ machines.l2.best_compiled:.0%}}"]
#   - ["level 3, a block of a model", "{{ machines.l3.tasks:.0f}}", "{{ machines.l3.one_fast_0:.0%}}", "{{ machines.l3.one_eager:.0%}}", "{{ machines.l3.one_compiled:.0%}}", "{{ machines.l3.best_fast_0:.0%}}", "{{ machines.l3.best_eager:.0%}}", "{{ machines.l3.best_compiled:.0%}}"]
# caption: "Shares of tasks. One try: the mean over both files of a task. What was right and could not be timed, {{ machines.not_timed:.0f}} files, counts as no gain."
# turned: true
# ///
#
# /// table
# columns: ["", "right", "eager's time over the best", "torch.compile's over the best"]
# rows:
#   - ["`vector_add`", "{{ machines.vector_add.right:.0f}} of {{ machines.vector_add.files:.0f}}", "{{ machines.vector_add.eager:.2f}}", "{{ machines.vector_add.compiled:.2f}}"]
#   - ["`transpose`", "{{ machines.transpose.right:.0f}} of {{ machines.transpose.files:.0f}}", "{{ machines.transpose.eager:.2f}}", "{{ machines.transpose.compiled:.2f}}"]
#   - ["`reduction`", "{{ machines.reduction.right:.0f}} of {{ machines.reduction.files:.0f}}", "{{ machines.reduction.eager:.2f}}", "{{ machines.reduction.compiled:.2f}}"]
#   - ["`softmax`", "{{ machines.softmax.right:.0f}} of {{ machines.softmax.files:.0f}}", "{{ machines.softmax.eager:.2f}}", "{{ machines.softmax.compiled:.2f}}"]
#   - ["`sgemm`", "{{ machines.sgemm.right:.0f}} of {{ machines.sgemm.files:.0f}}", "{{ machines.sgemm.eager:.2f}}", "{{ machines.sgemm.compiled:.2f}}"]
#   - ["`gemm`", "{{ machines.gemm.right:.0f}} of {{ machines.gemm.files:.0f}}", "{{ machines.gemm.eager:.2f}}", "{{ machines.gemm.compiled:.2f}}"]
#   - ["`bias_gelu`", "{{ machines.bias_gelu.right:.0f}} of {{ machines.bias_gelu.files:.0f}}", "{{ machines.bias_gelu.eager:.2f}}", "{{ machines.bias_gelu.compiled:.2f}}"]
#   - ["`add_norm`", "{{ machines.add_norm.right:.0f}} of {{ machines.add_norm.files:.0f}}", "{{ machines.add_norm.eager:.2f}}", "{{ machines.add_norm.compiled:.2f}}"]
#   - ["`rms_norm`", "{{ machines.rms_norm.right:.0f}} of {{ machines.rms_norm.files:.0f}}", "{{ machines.rms_norm.eager:.2f}}", "{{ machines.rms_norm.compiled:.2f}}"]
#   - ["`swiglu`", "{{ machines.swiglu.right:.0f}} of {{ machines.swiglu.files:.0f}}", "{{ machines.swiglu.eager:.2f}}", "{{ machines.swiglu.compiled:.2f}}"]
#   - ["`gemm_fp8`", "{{ machines.gemm_fp8.right:.0f}} of {{ machines.gemm_fp8.files:.0f}}", "{{ machines.gemm_fp8.eager:.2f}}", "{{ machines.gemm_fp8.compiled:.2f}}"]
#   - ["`attention`", "{{ machines.attention.right:.0f}} of {{ machines.attention.files:.0f}}", "{{ machines.attention.eager:.2f}}", "{{ machines.attention.compiled:.2f}}"]
#   - ["`decode_attention`", "{{ machines.decode_attention.right:.0f}} of {{ machines.decode_attention.files:.0f}}", "{{ machines.decode_attention.eager:.2f}}", "{{ machines.decode_attention.compiled:.2f}}"]
#   - ["`paged_attention`", "{{ machines.paged_attention.right:.0f}} of {{ machines.paged_attention.files:.0f}}", "{{ machines.paged_attention.eager:.2f}}", "{{ machines.paged_attention.compiled:.2f}}"]
#   - ["`qkv_rope`", "{{ machines.qkv_rope.right:.0f}} of {{ machines.qkv_rope.files:.0f}}", "{{ machines.qkv_rope.eager:.2f}}", "{{ machines.qkv_rope.compiled:.2f}}"]
# caption: "Of each task the best right file, by the judge's clocks; 0: none is right, or none was timed."
# ///
# /// otherwise
# The table of all files **waits**: they have not been through the judge on this card yet, or the judge or a file has changed since. One command does it, and whatever ends it, the same command goes on: `nox -s harness -- all --record`.
# ///
#
# Without a card the judge still says which are right, by Triton's interpreter: `nox -s harness -- all`.

# %% tags=["fold"]
from pathlib import Path

from course_harness import record as judged_before
from course_harness.judging import Judge
from course_harness.replay import replay
from course_harness.tasks import task
from course_kernels.attention import k06_wgmma as our_attention
from course_kernels.bias_gelu import k02_triton as our_bias_gelu
from course_kernels.decode_attention import k03_early as our_decode_attention
from course_kernels.gemm import k13_by_size as our_gemm
from course_kernels.measure.competitor import Competitor
from course_kernels.softmax import k01_online as our_softmax
from course_kernels.swiglu import k01_fused as our_swiglu

torch.cuda.empty_cache()
RIVALS = ("eager", "compiled")
SIX = {
    "softmax": ("bold", our_softmax),
    "gemm": ("bold", our_gemm),
    "bias_gelu": ("bold", our_bias_gelu),
    "swiglu": ("bold", our_swiglu),
    "attention": ("bold", our_attention),
    "decode_attention": ("bold", our_decode_attention),
}


def rivals(name):
    """The task's own PyTorch, and the same under torch.compile."""
    names = {}
    torch._dynamo.reset()  # each in a compiler that has seen nothing, as in the judge
    exec(task(name).eager, names)
    eager = names[name]
    ways = {"eager": eager, "compiled": torch.compile(eager, dynamic=False)}
    return {
        way: Competitor(f"{name}, {way}", task(name).problem(), function)
        for way, function in ways.items()
    }


ASKED = 5  # of the announced sizes; in a run of their own the files were asked all
with Judge(seconds=60, sizes=ASKED) as judge:
    replayed = {
        name: replay(judge, name, series) for name, (series, _) in SIX.items()
    }
    replayed["mended"] = replay(judge, "gemm", "bold", at=(1, 2))
    before, _ = judged_before.told(
        Path.cwd(), judge.on, lambda name: judge.judge_hash(task(name))
    )
raced = {
    name: compare({**rivals(name), "ours": ours}, task(name).workload, seconds=0.1)
    for name, (_, ours) in SIX.items()
}


def entry(name):
    """What is told of one file."""
    its, race = replayed[name], raced["gemm" if name == "mended" else name]
    return {
        "right": quantity(int(its.is_right)),
        "outcome": text("right" if its.is_right else "refused"),
        "says": text(its.says),
        "us": quantity(its.us, "µs", "timed"),
        "over": {
            rival: quantity(its.over(race[rival].median_us)) for rival in RIVALS
        },
    }


def won(name):
    """Whether a file is right, and takes less time than both rivals."""
    over = [replayed[name].over(raced[name][one].median_us) for one in RIVALS]
    return min(over) > 1


def as_quantities(told):
    """Numbers of the record, and those below them."""
    return {
        name: as_quantities(value) if isinstance(value, dict) else quantity(value)
        for name, value in told.items()
    }


numbers = judged_before.numbers(judged_before.merged(before)) if before else {}
record(
    six={
        **{name: entry(name) | raced.get(name, {}) for name in replayed},
        "sizes": quantity(ASKED),
        "won": quantity(sum(map(won, SIX)), how="counted"),
        "seconds": quantity(
            sum(one.seconds for one in replayed.values()), "s", "timed"
        ),
    },
    machines={
        "told": quantity(int(bool(before))),
        **as_quantities(numbers),
    },
)

# %% [markdown]
# ### What others report {.beyond}
#
# Four reports, each with its own card and its own opponent. No two rows may be subtracted from each other.
#
# | who | what is counted | card | against | figure |
# |---|---|---|---|---|
# | KernelBench, 2025 [^ouyang2025] | fast₁ of R1 in one try, from the easiest level to the hardest | L40S | eager | 12, 36 and 2 % [^ouyang2025] |
# | CRFM, 2025 [^crfm2025] | one fixed size, float32 | L40S | eager | 484 % LayerNorm; 9 % float16 attention [^crfm2025] |
# | the same [^crfm2025] | convolution, ReLU and pooling | L40S | eager; `torch.compile` | 290 %; 189 % [^crfm2025] |
# | METR, 2025 [^metr2025] | mean gain of the best model, after 45 tasks were removed | H100 | eager, as the tasks have it | 1.8 [^metr2025] |
# | Kevin, 2025 [^baronio2025] | right answers, before and after training | not in what we read | – | 56, then 82 % [^baronio2025] |
# | the same [^baronio2025] | mean gain, before and after; o4-mini | not in what we read | eager | 0.53, then 1.10; 0.78 [^baronio2025] |
#
# Kevin learned from 180 tasks of KernelBench itself, over several turns [^baronio2025]. *KernelBook*, which is often named beside it, is another thing: pairs of PyTorch and Triton, from which KernelLLM was trained [^kernelllm]. Look at the third row: the same kernel, two opponents.
#
# /// exercise | A share, and of what? | 6 minutes
# A public board lists kernels by coding agents on an H100 PCIe. A layer of 256 experts, eight for each token and one that all share, D = 4096 and F = 2048 in bf16, has 0.079 *of peak* as its best; a decode step of four layers has 0.060 [^kernelbench-cuda]. Two questions. The first share is a geometric mean over six sizes, of the peak of *arithmetic*, one token and 512 tokens among them. What is the most that bytes allow there, at 2039 GB/s and 756 TFLOP/s [^kernelbench-cuda]? And the second: is it a share of bandwidth?
# /// answer
# A single token fetches nine experts of {{ ruler.expert_mb:.1f}} MB: bytes allow {{ ruler.t1:.1%}} of that peak. With 512 tokens nearly all 257 are fetched: {{ ruler.t512:.1%}}. Over all sizes the geometric mean of what is possible is {{ ruler.mean:.3f}}, so the best kernel had {{ ruler.best / ruler.mean:.0%}} of that: a smaller loss than it looks.
#
# And the decode's is no share of bandwidth at all: its *peak* is 50000 steps a second, which the board's own file calls provisional [^kernelbench-cuda].
# ///
#
# The problems of ours that stand nearest: [many experts](../many_experts.py), where the fused kernel has {{ many_experts.moe.t16.fused.of_peak:.0%}} of its floor's speed with 16 tokens and {{ many_experts.moe.t4096.fused.of_peak:.0%}} with 4096; and [a step of the 8B shape](w4_serving.py#a-step-against-its-floor), which has {{ w4.one.our_step.of_peak:.0%}} of the data sheet's bytes for one reader. Other experts, other sizes, another card and another ruler: nothing follows from their quotient. A re-run of their statement would be a trial.

# %% tags=["fold"]
D, F, EXPERTS, PICKED = 4096, 2048, 256, 8
PEAK, BYTES = 756e12, 2039e9


def allowed(T):
    """The share of the arithmetic peak that bytes allow, each expert fetched once."""
    hit = EXPERTS * (1 - (1 - PICKED / EXPERTS) ** T) + 1
    flops = T * (PICKED + 1) * 6 * D * F
    least_s = max(flops / PEAK, hit * 3 * D * F * 2 / BYTES)
    return flops / least_s / PEAK


SIZES = (1, 512, 1000, 4096, 4127, 8192)
record(
    ruler={
        "t1": quantity(allowed(1)),
        "t512": quantity(allowed(512)),
        "mean": quantity(math.prod(map(allowed, SIZES)) ** (1 / len(SIZES))),
        "best": quantity(0.0788, how="given"),
        "expert_mb": quantity(3 * D * F * 2 / 1e6, "MB"),
    }
)

# %% [markdown]
# ### Reading what machines write {.beyond}
#
# The tables of this hour as functions, with the mistakes that make a figure look better than it is; at the end six kernels, two of them after files that a
# language model wrote, are sorted, and rows prove it. It needs no GPU: `nox -s lab -- taste`.
#
# /// lab | taste
# ///
#
# ### A judge to cheat, and to mend {.beyond}
#
# A judge that is weak in five places is yours to cheat and to mend, one hole after the other. It needs no GPU: `nox -s lab -- weak_judge`.
#
# /// lab | weak_judge
# ///
#
# ### Who says stop?
#
# Guess, write, look at the number, repeat: that has been your loop since the first week. A machine can run it, too, and then it is called a **harness**. It has four parts, whatever it makes:
#
# 1. **Propose.** Anybody who writes a file: a model, a list of files, a program that turns one constant after another. It is told the task in words, and everything that was said of its earlier files.
# 2. **Run**, in a place of its own, with a limit for time, memory, files and network. What was proposed is a stranger's text, and it is run, never trusted.
# 3. **Judge.** Whether it is right comes first, by questions that the proposer has not seen. Then the clock. The verdict goes back in words that help: *element (3, 17)*, not *failed*.
# 4. **Remember.** Each step is written down before the next begins, sealed, with who proposed and which judge it was. So a run that was killed goes on where it was, and nobody can keep only the good tries.
#
# /// figure | docs/assets/figures/kernel_loop.svg
# alt: A loop. A proposer writes a kernel, a checker and a profiler judge it, and a human reads what they say and decides whether to go on.
# ///
#
# Nothing in these four lines says *kernel*. Put tests, a simulator or a proof checker in the third place, and it is *harness engineering* for another trade, which has workshops of its own. Ours is small: `nox -s harness`, three proposers, one judge, one journal. Its hacker's half has the judge's source in hand, and tries to be called right while it is wrong.
#
# One box must never be the proposer itself: the judge. A proposer that judges finds what pleases the judge. And a harness has no *enough*: somebody sets the budget, reads the number, and says stop. Whether human, machine and profiler together do better than any of them alone is something that we believe,
# and no source that we cite has measured it. Your capstone is one trial of it.
#
# ## Your own
#
# In the last hour everybody speaks, for a few minutes, about a kernel of their own: [the capstone](../capstone.py), as it was handed in. Its entry on the board is on the screen. Listeners have five lines, a point each, and none of them says *fast*.
#
# 1. **Right?** On which sizes, against which truth?
# 2. **Of what peak**, and what per cent of it?
# 3. **Against whom?** Is that the best there is?
# 4. **Who did what:** you, or the machine?
# 5. **What lost**, and why? A loss that is explained scores as high as a win.
#
# /// exercise | Sheet zero | 5 minutes
# Before the first talk fill in the five lines for your own work, fold the sheet, and keep it. After nine talks of others open it again. What would you write differently?
# /// answer
# There is no right one. What most people change is the second line, since they took a library for the peak, or the peak of another number format; and the third, since there was a better opponent.
# ///

# %% [markdown]
# ## Before you leave
#
# **You can now**
#
# 1. absorb a matrix into a query, and say what it costs in operations and what it saves in bytes;
# 2. say of one decode that it waits for arithmetic on an H200 and for bytes on an H100, and prove it with one division;
# 3. give a headline its four boxes back;
# 4. verify a draft with three words and a residual, and say why nothing changes but the time;
# 5. say from step times alone from which batch on drafting is a loss;
# 6. name what a layer of experts moves beside its weights, and from which context on a pick of tokens pays.
#
# /// exercise | Correct your own board | 6 minutes
# Take three sentences from your notes of the last four weeks that have *always*, *never* or *is bound by* in them. For each, write the quotient that it rests on, and
# a card, a size or a batch at which it is false.
# /// answer
# For example: *the norm is memory-bound*. True while a row is read once; with a single short row it waits for the launch, not for bytes. *Batch makes decode efficient*: for the
# weights, not for keys and values that nobody shares. *Drafting makes it faster*: up to the batch at which k + 1 rows for each user pass the ridge.
# ///
#
# **Where this leads.** Back to [the first receipt](../lectures/l1_what_a_gpu_is.py#the-receipt): take yours with you. [The ledger](../numbers.md) lists every number above, with its spread.
