# ---
# id: said
# title: What is often said, and what is true
# order: 6
# description: Some thirty sentences about GPU kernels that sound right, each with the figure that holds and how we know it.
# ---

# %% [markdown]
# # What is often said, and what is true
#
# Some thirty wrong sentences circulate in this field. After this page, when you hear one of them, you can say at once which part of
# it is wrong. You have said some of them yourself. So have we: nearly all of them were in the first plan of this course.
#
# Each has three parts. *Often said* is the sentence. **True** is what you may teach. *How we know* is a sum that this page works out, a
# measurement of this course, or a source that you can open.
#
# /// predict | A warm-up. "At 4096 tokens, plain attention writes 67 million scores per head." What is wrong?
# - [ ] Nothing: there are 67 million scores
# - [ ] *67 million*: there are 67 million of nothing here
# - [x] *scores*: there are 67 million of something else
# /// reveal
# *Scores.* There are {{ scores.entries / 1e6:.1f }} million of them. The 67 million are *bytes*. Most wrong sentences are of this
# kind: a good number attached to the wrong noun.
# ///
#
# When a student brings you one of these, do not say "wrong". Say: *of what?* Per cent of what? Faster than what? How many of what? Those questions correct most of this page.

# %% [markdown]
# ## Attention

# %%
from course_kernels.measure import quantity, record

N, d, tiles = 4096, 128, 64
diagonal, below = tiles, tiles * (tiles - 1) // 2
record(
    scores={
        "entries": quantity(N * N),
        "fp32_bytes": quantity(4 * N * N, "B"),
        "grows": quantity(1 + N / d),
    },
    layer={
        "core": quantity(2),
        "projections": quantity(4),
    },  # q, k, v and the output
    causal={
        "all": quantity(tiles * tiles),
        "skipped": quantity(tiles * tiles - below - diagonal),
        "masked": quantity(diagonal),
        "wrong_if_not_masked": quantity(
            diagonal * 64 * 63 // 2
        ),  # of 64 by 64 scores
    },
)

# %% [markdown]
# ### "67 million scores per head"
#
# - *Often said:* at 4096 tokens, plain attention writes 67 million scores for each head.
# - **True:** {{ scores.entries / 1e6:.1f }} million scores. In fp32 they are {{ scores.fp32_bytes / 1e6:.1f }} million *bytes*.
# - *How we know:* 4096 × 4096, worked out above, and [on the student page](../../docs/lectures/l8_attention.py#what-the-square-weighs).
#
# ### "FlashAttention cuts the memory bill by the length of the sequence"
#
# - *Often said:* you cut the memory bill by N.
# - **True:** there are two bills. The extra *room* falls from N² to N. The *trips* fall by far less: our two kernels, counted on
#   an {{ w1.gpu.name }}, by a factor of
#   {{ w1.counted.materialised.gb / w1.counted.flash.gb:.0f }}. A kernel that fetches everything once, against one that moves the square four
#   times in 16-bit numbers, would save {{ scores.grows:.0f }}, which is 1 + N/d. The authors counted a factor of 9.2 for GPT-2 medium, forward and backward
#   [^dao2022].
# - *How we know:* the hardware's own counters, on the student page.
#
# ### "Three matrix multiplies and a softmax"
#
# - *Often said:* attention is three matmuls plus a softmax.
# - **True:** attention itself is {{ layer.core:.0f }}: Q times K, and P times V. The *layer* around it has {{ layer.projections:.0f }} more, three that make Q, K and V, and one that mixes
#   the heads at the end. Neither count is three.
# - *How we know:* count them in the three lines of [the formula](../../docs/lectures/l8_attention.py#two-multiplies-and-a-softmax).
#
# ### "For causal, just skip the tiles above the diagonal"
#
# - *Often said:* skip, and you are done.
# - **True:** skip *and* mask. Of {{ causal.all:.0f }} tiles, {{ causal.skipped:.0f }} are skipped. But {{ causal.masked:.0f }} lie on the diagonal, and nearly half of each is forbidden. Without
#   the mask, the sum contains {{ causal.wrong_if_not_masked:.0f }} scores that should not be there.
# - *How we know:* 4096 tokens in tiles of 64, counted above. One of the planted wrong answers in the lab of W1 forgets the mask, and
#   the grader refuses it.

# %% [markdown]
# ## The ladder

# %%
record(
    share={"of_ten_to_ninety": quantity(0.9 - 0.1)},
    word={
        "macs_7b": quantity(7e9),
        "macs_70b": quantity(70e9),
        "macs_405b": quantity(405e9),
        "multiplies_70b": quantity(
            80 * 7 + 1
        ),  # 80 layers of seven, and the last one
    },
)

# %% [markdown]
# ### "The naive kernel is at 1 %, the tuned one at 94 %"
#
# - *Often said:* of the hardware's peak.
# - **True:** of *cuBLAS*. Boehm's ladder goes from 1.3 % to 93.7 % of the library on an RTX A6000 [^boehm2022]. The library is
#   not the peak. On our card, our naive kernel reaches {{ l5.sgemm.first_of_cublas:.1%}} of the library and {{ l5.ladder.naive.of_peak:.1%}}
#   of peak; our last one reaches
#   {{ l5.sgemm.last_of_cublas:.0%}} of the library and {{ l5.ladder.persistent.of_peak:.0%}} of peak.
# - *How we know:* [one race of all of them](../../docs/lectures/l5_the_top_of_the_ladder.py#the-whole-ladder-once). Always quote both columns.
#
# ### "You will climb from 1 % to 94 %"
#
# - *Often said:* as if it held for every card and every number format.
# - **True:** for fp32, on the lanes. The same structure with bf16 inputs reaches {{ l5.half.ours.tflops / l5.half.cublas.tflops:.1%}}
#   of cuBLAS on our card, because the library uses the tensor cores. Without tensor cores nobody gets far.
# - *How we know:* [measured in L5](../../docs/lectures/l5_the_top_of_the_ladder.py#the-same-in-bf16-and-a-wall).
#
# ### "Twelve upgrades, each faster than the last"
#
# - *Often said:* twelve steps up.
# - **True:** in the well-known repository twelve kernels are numbered, the naive one included; three of them are slower than one that came before, by its own table [^boehm2022]. Ours
#   has twelve kernels too, and the eighth is a side note: {{ l5.ladder.conflict_free.us / l5.ladder.warp_tiles.us:.3f }} times the speed of the seventh, a tie as far as a clock can tell. About the twelfth, at this one size, the counters tell you more than the clock: {{ l5.ladder.register_banks.us / l5.ladder.persistent.us:.3f }} times the eleventh.
# - *How we know:* the claims of L4 and L5 stop the build when a sentence about a step is no longer true.
#
# ### "Naive against built-in: 50 to 100 times"
#
# - *Often said:* often 50 to 100.
# - **True:** it depends on the card and the format. On ours it is {{ opening.naive_over_library:.0f }}
# in fp32. In bf16 the library runs on different hardware, and even our *tuned* kernel on the
#   lanes takes {{ l5.half.ours.us / l5.half.cublas.us:.0f }} times as long.
# - *How we know:* [the opening demo](opening_demo.py#what-the-room-sees), and L5. Promise nothing; run it.
#
# ### "From 10 % to 90 %: nine tenths of the cluster"
#
# - *Often said:* closing that gap gives back nine tenths of what you paid for.
# - **True:** {{ share.of_ten_to_ninety * 10:.0f }} tenths. Nine tenths less one tenth is eight tenths of the whole. Or say: nine
#   times the work. Do not mix the two.
# - *How we know:* 0.9 − 0.1.
#
# ### "Trillions of multiply-adds for every word"
#
# - *Often said:* one word of a chat takes trillions of multiply-adds, in millions of matrix multiplies.
# - **True:** about one multiply-add for each parameter at work, for each piece of a word: {{ word.macs_7b / 1e9:.0f }} billion for a model of seven billion,
#   {{ word.macs_70b / 1e9:.0f }} billion for seventy, {{ word.macs_405b / 1e9:.0f }} billion for 405. And some {{ word.multiplies_70b:.0f }} matrix multiplies for seventy billion, hundreds and not millions.
# - *How we know:* 80 layers with seven weight matrices each, and one at the end, in the seventy-billion model of Llama 3 [^meta-llama31]. Attention
#   itself comes on top of that and grows with the context.

# %% [markdown]
# ## Hopper, and the tools
#
# ### "Two people won against NVIDIA's own library"
#
# - *Often said:* two worklogs, two victories.
# - **True:** one. Shankhdhar reports 764 TFLOP/s against 716 for cuBLAS, at 4096 in bf16 [^shankhdhar2024]. Elshafie's own title
#   says *cuBLAS-like*, and *work in progress*: his best bf16 kernel reaches 463.9 of 739.8 TFLOP/s, which is 62.7 %
#   [^elshafie2026]. In some places his worklog is the better one to learn from. It does not win.
# - *How we know:* the two worklogs.
#
# ### "wgmma is m64nNk16"
#
# - *Often said:* one shape, 64 × N × 16.
# - **True:** only for 16-bit numbers. K is always 32 *bytes*: 8 for TF32, 16 for bf16 and fp16, 32 for FP8 and INT8 [^ptx-isa].
# - *How we know:* [we asked the assembler](../../docs/lectures/l6_tensor_cores.py), in L6.
#
# /// claim | l6.takes.wgmma_bf16_k_16 > 0.5 and l6.takes.wgmma_tf32_k_8 > 0.5 and l6.takes.wgmma_e4m3_k_32 > 0.5 and l6.takes.wgmma_tf32_k_16 < 0.5 and l6.takes.wgmma_e4m3_k_16 < 0.5
# It takes K = 16 for bf16, 8 for TF32 and 32 for FP8, and refuses 16 for the last two.
# /// otherwise
# On this card's assembler the answers were different; see L6.
# ///
#
# ### "A cluster is up to 16 blocks on adjacent SMs"
#
# - *Often said:* sixteen, next to each other.
# - **True:** eight, if the program is to run everywhere that clusters exist; sixteen only if the kernel asks for a size that is
#   not portable [^nvidia-hopper-tuning]. The blocks of a cluster are in one group of SMs, a GPC, which are close together
#   [^hopper-whitepaper]. Nobody promises that two of them are neighbours on the chip.
# - *How we know:* NVIDIA's tuning guide, and its white paper.
#
# ### "40 lines of Triton do what 600 lines of CUDA do"
#
# - *Often said:* 40 against 600, the same thing.
# - **True:** not the same thing. Some 600 lines make a *Hopper* kernel with tensor cores; the last fp32 kernel of the well-known
#   ladder has 186, comments included [^boehm2022]. And the Triton kernel multiplies on tensor cores, so compared with the fp32
#   ladder it is not equal but far ahead: ours reaches {{ l6.climb.triton.tflops / l5.ladder.persistent.tflops:.0f }} times
#   the TFLOP/s of our last fp32 kernel.
# - *How we know:* [our own files, counted](../06_delivery_craft/w3_abstraction_ladder.py), and L6.
#
# ### "A CUDA graph launches in constant time"
#
# - *Often said:* 2.5 µs [^nvidia-graphs], whatever is in it.
# - **True:** that *and about a nanosecond more for each node*, for a straight line of nodes launched again, on the CPU's side,
#   with one CUDA version, on the authors' machine [^nvidia-graphs]. It is not the gap between kernels on the GPU, and not a
#   number for your machine.
# - *How we know:* NVIDIA's own text. A chain of kernels on our card, launched one at a time and as a graph, is
#   [measured in lecture 2](../../docs/lectures/l2_the_cuda_model.py#many-orders-written-once-graphs).

# %% [markdown]
# ## Small numbers

# %%
from math import prod

NINE = [
    8.622,
    17.275,
    4.317,
]  # the organisers' speed of light for the three shapes, µs
FIRST, LAST, TEMPLATE = (
    2000,
    22.392,
    100,
)  # µs, geometric means, as the author reports
record(
    e4m3={"largest": quantity(1.75 * 2**8), "step": quantity(2**-3)},
    e5m2={"largest": quantity(1.75 * 2**15), "step": quantity(2**-2)},
    hackathon={
        "light": quantity(prod(NINE) ** (1 / 3), "µs"),
        "of_light": quantity(prod(NINE) ** (1 / 3) / LAST),
        "over_first": quantity(FIRST / LAST),
        "over_template": quantity(TEMPLATE / LAST),
    },
)

# %% [markdown]
# ### "E4M3 for range, E5M2 for precision"
#
# - *Often said:* that way round.
# - **True:** the other way round. E4M3 has three bits after the point: after 1 comes 1 + {{ e4m3.step:.3f }}, and the largest number is {{ e4m3.largest:.0f }}. E5M2 has two: after 1 comes 1 + {{ e5m2.step:.2f }},
#   and the largest is {{ e5m2.largest:.0f }} [^micikevicius2022].
# - *How we know:* read the name. M is for mantissa, and the mantissa is the precision.
#
# ### "NVFP4 is four bits with a shared exponent"
#
# - *Often said:* a shared exponent.
# - **True:** that is MXFP4: 32 numbers share a power of two. In NVFP4 16 numbers share an E4M3 *number*, which has a mantissa, and the whole tensor has an fp32 factor on top [^nvidia-nvfp4].
# - *How we know:* W5 [works one block out by hand](../06_delivery_craft/w5_blackwell.py).
#
# ### "Bit-twiddling made the hackathon kernel fast"
#
# - *Often said:* intrinsics, bit-twiddling, ILP and PTX fusion did it.
# - **True:** twiddling bits by hand was the *slow start*, and it was thrown out. The author went from 2000 to 443 µs with
#   coalescing and threads that work together, and from there to 39 µs with wide loads and
#   the conversion instructions; ILP and one fused PTX block together took it from 26 to 22.3 µs [^zhang2025].
# - *How we know:* the author's own worklog.
#
# ### "Ninety times, same chip, same mathematics"
#
# - *Often said:* as if against a fair baseline.
# - **True:** {{ hackathon.over_first:.0f }} times the author's *own first draft* [^zhang2025]. The organisers' template, at about 100 µs, took {{ hackathon.over_template:.1f }} times
#   as long as the last kernel [^zhang2025]. And the last kernel reaches
#   {{ hackathon.of_light:.0%}} of the organisers' speed of light, {{ hackathon.light:.2f }} µs [^gpumode-nvfp4].
# - *How we know:* the sum above, over the three figures that the problem states.
#
# ### "Blackwell is months old"
#
# - *Often said:* the very newest.
# - **True:** its data sheet is from 2024 [^nvidia-b200], and NVFP4 was explained in June 2025 [^nvidia-nvfp4]. A course that says *new* grows old. Say what the hardware *does*.
# - *How we know:* the dates of the two sources.

# %% [markdown]
# ## Serving

# %%
HEADS, PEAK, BANDWIDTH = 128, 989e12, 4.8e12  # MLA's query heads; H200, dense bf16
record(
    decode={
        "ridge": quantity(PEAK / BANDWIDTH),  # operations for each byte
        "one_row": quantity(2 / 2),  # 2 operations for each 2-byte weight
        "mla": quantity(2 * HEADS),  # one latent, read once, used by all heads
    }
)

# %% [markdown]
# ### "Prefill is compute-bound, decode is memory-bound"
#
# - *Often said:* always.
# - **True:** often. With one user, a weight is read for a single use: {{ decode.one_row:.0f }} operation for each byte, against
#   the {{ decode.ridge:.0f }} of an H200's ridge. With a few hundred users in the batch the same weights
#   serve all of them, and the multiply is compute-bound. And DeepSeek's MLA, where {{ decode.mla / 2:.0f }} heads read one latent, does about {{ decode.mla:.0f }} operations for each byte: its decode kernel is
#   compute-bound by its authors' own analysis, on an H800 that slows down under load [^flashmla]. Name the card when you say it: on paper the ridge
#   of an H100 is higher, 989 ÷ 3.35 = 295 [^nvidia-h100].
# - *How we know:* the sum above, two operations for each head. W6 counts more closely, and adds one word to W4's *decode waits
#   for bytes*: *often*.
#
# ### "Guess which one the electricity bill notices"
#
# - *Often said:* decode, of course.
# - **True:** it depends on the traffic. Long prompts with short answers, typical of agents and search, are mostly prefill. We give no figure, because none is right for everybody.
# - *How we know:* count the tokens in, and the tokens out, of *your* service.
#
# ### "PagedAttention saves the padding"
#
# - *Often said:* padding.
# - **True:** *reservation*. Room was kept for the longest answer that might come, and there were gaps between the pieces that nobody
#   could use. In the systems that the authors looked at, only 20.4 to 38.2 % of the cache held tokens
#   [^kwon2023].
# - *How we know:* the paper. W4 counts pages by hand.

# %% [markdown]
# ## Machines that write kernels

# %%
record(
    norm={
        "rows": quantity(
            16
        ),  # (16, 64, 256, 256), normalised over all but the first
        "row": quantity(64 * 256 * 256),
        "sms_of_l40s": quantity(142),
        "lit": quantity(16 / 142),
    }
)

# %% [markdown]
# ### "DeepSeek-V3 solves 4 %, 37 % with a hundred samples, 72 % with profiler feedback"
#
# - *Often said:* as if it were one model, step by step.
# - **True:** two models, and not *solves*. On Level 2 of KernelBench, V3 goes from 4 % to 37 % with a hundred samples
#   [^ouyang2025]. R1, a different model, goes from 36 % to 72 % with ten rounds of errors and profiles [^ouyang2025]. What is
#   counted is *right and faster than PyTorch
#   eager*, on an L40S [^ouyang2025].
# - *How we know:* the paper. Counting right answers alone, R1 reached 92 % on that level [^ouyang2025].
#
# ### "The benchmark says what a model can do with kernels"
#
# - *Often said:* one percentage, as if it were a skill.
# - **True:** 250 tasks in three levels, fixed sizes, tolerances that can be gamed [^ouyang2025]. METR filtered out 45 of them for quality before measuring again [^metr2025]. Read three things: the level, the number of tries, and *faster than what*.
# - *How we know:* the two texts. And [our own checks](../../docs/how_we_measure.py) refuse the known tricks, each with a planted example.
#
# ### "484 % on LayerNorm, and 180 % on Conv2D"
#
# - *Often said:* of PyTorch, with no conditions named.
# - **True:** of PyTorch's *fp32* operators, on an L40S, at one fixed size, with a tolerance of 1e-2 that lets lower precision pass [^crfm2025].
# - *How we know:* the authors say so themselves. Repeat all four conditions or leave the number out.
#
# ### "So it writes better LayerNorms"
#
# - *Often said:* a general gain.
# - **True:** look at the task. Its LayerNorm has {{ norm.rows:.0f }} rows of {{ norm.row / 1e6:.2f }} million numbers. One block
#   for each row uses {{ norm.rows:.0f }} of the {{ norm.sms_of_l40s:.0f }} SMs of that card, {{ norm.lit:.0%}}. A kernel that
#   splits the rows wins because of that shape. This is our reading of the task, not the authors' [^ouyang2025].
# - *How we know:* the task's sizes, and the division above. It is [the last wave](../../docs/lectures/l5_the_top_of_the_ladder.py#12-nobody-idles-at-the-end) again.
#
# ### "It failed at FlashAttention"
#
# - *Often said:* 9 % on FlashAttention, 52 % on an fp16 matrix multiply [^crfm2025]. So it cannot.
# - **True:** both figures are right, for May 2025, and the authors add that FlashAttention had been below 1 % earlier [^crfm2025]. Every such figure needs a date. Ours is a snapshot, and may be out of date when you read it aloud.
# - *How we know:* the post, and its date.
#
# ### "AI kernels outdo hand-written PyTorch"
#
# - *Often said:* hand-written.
# - **True:** some of them beat PyTorch's *default fp32 operators* at fixed sizes [^crfm2025]. Nobody wrote those by hand for that shape.
# - *How we know:* the post says what it compares with.
#
# ### "Kevin and KernelBook are the method"
#
# - *Often said:* one was trained on the other.
# - **True:** two different things. Kevin-32B was trained on KernelBench's own tasks, over many turns; its share of right kernels
#   rose from 56 to 82 %, its mean speed from 0.53 to 1.10 times eager [^baronio2025]. KernelBook is a collection of pairs,
#   PyTorch and Triton, on which a different model, KernelLLM, was trained [^kernelllm].
# - *How we know:* the abstract, and the model's card.
#
# ### "Human, AI and profiler together beat either alone"
#
# - *Often said:* as a result.
# - **True:** as a hope. Teach the loop because it lets you *check*, which nobody doubts. The capstone of this course is one such comparison: count its outcome, whatever it is.
# - *How we know:* none of the sources that we read runs the comparison.
#
# ### "Your own FlashAttention, from week one"
#
# - *Often said:* in the last session, pointing back.
# - **True:** W1 is *workshop* one. It comes once the multiply is fast, in [the second half of the road](the_whole_arc.py).
# - *How we know:* [the four weeks](the_whole_arc.py#the-four-weeks). It falls at the end of the second.
#
# /// exercise | Correct three
# Someone says: (a) "Our kernel is at 97 %." (b) "The new one is much faster." (c) "It uses 40 % less memory." Ask the one question that each needs.
# /// answer
# (a) Of what: the library, or the data sheet? (b) Than what, at which size, in which format, and was the answer checked? (c) Room or trips?
# ///
#
# **Where this leads.** [The whole arc](the_whole_arc.py) tells the story with the right numbers. How every number here is made:
# [how we measure](../../docs/how_we_measure.py).
