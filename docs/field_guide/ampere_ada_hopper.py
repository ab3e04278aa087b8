# ---
# id: field_hopper
# title: "Ampere, Ada, Hopper: one source, instruction by instruction"
# nav: Ampere, Ada, Hopper
# description: "One source of ours, compiled for an A100, an L40S and an H100: who asks for a product, who fetches tiles, and what an old kernel leaves unused on a new card. Compiled here, not run."
# ---

# %% [markdown]
# # Ampere, Ada, Hopper: one source, instruction by instruction
#
# By the end of this page you can
#
# - tell from a listing for which of the three generations it was compiled, and where its sums are;
# - say which kernel gains from a new card without a new line, and which one does not;
# - read a data sheet of each with the one ratio that decides.
#
# **In one sentence:** Ampere and Ada multiply by warps out of registers, Hopper by groups of four warps out of shared memory, and
# an old kernel goes on as it did.
#
# /// figure | docs/assets/figures/warp_and_warpgroup.svg
# alt: "Left, Ampere and Ada: a warp of 32 threads asks for a product, HMMA; A, B and the sums are in registers. Right, Hopper: a warpgroup of 128 threads asks, HGMMA; B, and A if you like, are in shared memory, the sums in registers."
# caption: "Who asks for one product, and where its numbers are. On Hopper, A may be in registers, too."
# ///
#
# /// callout | trip
# *Compiled here, not run*: the code for sm_80 (A100), sm_89 (L40S, RTX 4090) and sm_90 (H100, H200) was made on a machine without
# any card, and the build counts it. *Cited*: a vendor says so. *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

GROUPS = {
    "by_warp": "HMMA",
    "by_warpgroup": "HGMMA",
    "copies": "LDGSTS",  # cp.async: each thread fetches its bytes
    "tiles": "UTMALDG",  # the copy engine fetches a tile
}
SOLD = {
    "sm_80": "NVIDIA A100-SXM4-80GB",
    "sm_89": "NVIDIA L40S",
    "sm_90": "NVIDIA H100 80GB HBM3",
}
record(**{chip: told(chip, **GROUPS) for chip in SOLD})
record(
    sheet={
        chip: {
            "bf16_tflops": quantity(
                machine_for(card).peak_tflops["bf16"], "TFLOP/s", how="given"
            ),
            "gb_per_s": quantity(
                machine_for(card).bandwidth_gb_per_s, "GB/s", how="given"
            ),
        }
        for chip, card in SOLD.items()
    }
)

# %% [markdown]
# ## What Triton makes of our multiply
#
# The source is [lecture 6's](../lectures/l6_tensor_cores.py#triton-say-what-not-how). For Ampere and Ada its tile is
# 128 × 128 and 32 along K, for Hopper 128 × 256 and 64 along K; eight warps share it. So Hopper's step is four times the work.
#
# /// predict | For sm_80 a step has {{ sm_80.multiply_triton.by_warp:.0f}} products, HMMA. How many products has Hopper's step, with four times the work?
# - [sm_90.multiply_triton.by_warpgroup + sm_90.multiply_triton.by_warp > 2 * sm_80.multiply_triton.by_warp] About four times as many
# - [0.5 * sm_80.multiply_triton.by_warp <= sm_90.multiply_triton.by_warpgroup + sm_90.multiply_triton.by_warp <= 2 * sm_80.multiply_triton.by_warp] About as many
# - [sm_90.multiply_triton.by_warpgroup + sm_90.multiply_triton.by_warp < 0.5 * sm_80.multiply_triton.by_warp] A handful
# /// reveal
# {{ sm_90.multiply_triton.by_warpgroup:.0f}}, each `HGMMA.64x256x16`. One of them multiplies 64 × 256 numbers, 16 along K; an `HMMA.16816`
# multiplies 16 × 8.
#
# /// table
# turned: true
# columns: [Triton's multiply, instructions, "of a warp, HMMA", "of a warpgroup, HGMMA", "copies by threads, LDGSTS", "tiles by the engine, UTMALDG", registers, "bytes of shared memory"]
# rows:
#   - [sm_80, "{{ sm_80.multiply_triton.lines:.0f}}", "{{ sm_80.multiply_triton.by_warp:.0f}}", "{{ sm_80.multiply_triton.by_warpgroup:.0f}}", "{{ sm_80.multiply_triton.copies:.0f}}", "{{ sm_80.multiply_triton.tiles:.0f}}", "{{ sm_80.multiply_triton.registers:.0f}}", "{{ sm_80.multiply_triton.shared_bytes:.0f}}"]
#   - [sm_89, "{{ sm_89.multiply_triton.lines:.0f}}", "{{ sm_89.multiply_triton.by_warp:.0f}}", "{{ sm_89.multiply_triton.by_warpgroup:.0f}}", "{{ sm_89.multiply_triton.copies:.0f}}", "{{ sm_89.multiply_triton.tiles:.0f}}", "{{ sm_89.multiply_triton.registers:.0f}}", "{{ sm_89.multiply_triton.shared_bytes:.0f}}"]
#   - [sm_90, "{{ sm_90.multiply_triton.lines:.0f}}", "{{ sm_90.multiply_triton.by_warp:.0f}}", "{{ sm_90.multiply_triton.by_warpgroup:.0f}}", "{{ sm_90.multiply_triton.copies:.0f}}", "{{ sm_90.multiply_triton.tiles:.0f}}", "{{ sm_90.multiply_triton.registers:.0f}}", "{{ sm_90.multiply_triton.shared_bytes:.0f}}"]
# caption: "Compiled here, not run. A listing counts what is written, not how often it runs."
# ///
# ///
#
# /// claim | sm_80.multiply_triton.lines == sm_89.multiply_triton.lines and sm_80.multiply_triton.by_warp == sm_89.multiply_triton.by_warp
# **For Ada nothing is new.** Its listing has as many lines as Ampere's, and as many products. Its cores also multiply in FP8 [^nvidia-l40s], but a kernel
# in bf16 does not ask for that.
# /// otherwise
# For Ada the listing has {{ sm_89.multiply_triton.lines:.0f}} lines, and for Ampere {{ sm_80.multiply_triton.lines:.0f}}. Ada's cores also multiply in FP8 [^nvidia-l40s]; a kernel in bf16 does not ask for that.
# ///
#
# **For Hopper two things are.** A whole warpgroup asks, and tiles come by the copy engine. Triton chose both, from the same source.

# %% [markdown]
# ## Which instruction each tool reaches
#
# Our `mma.sync` kernel names what a warp asks for, and gets that on every card. cuTile [^cutile] names a tile, and not who multiplies it.
# In CuTe-DSL [^cutlass-dsl] a product is a value, an *atom*: a warp's, or a warpgroup's.
#
# /// table
# columns: [our multiply, sm_80, sm_89, sm_90]
# rows:
#   - ["CUDA, mma.sync", "{{ sm_80.multiply_mma.by_warp:.0f}} HMMA", "{{ sm_89.multiply_mma.by_warp:.0f}} HMMA", "{{ sm_90.multiply_mma.by_warp:.0f}} HMMA"]
#   - [cuTile, "{{ sm_80.multiply_cutile.by_warp:.0f}} HMMA", "{{ sm_89.multiply_cutile.by_warp:.0f}} HMMA", "{{ sm_90.multiply_cutile.by_warpgroup:.0f}} HGMMA"]
#   - ["CuTe-DSL, a warp's atom", "{{ sm_80.multiply_cute.by_warp:.0f}} HMMA", "{{ sm_89.multiply_cute.by_warp:.0f}} HMMA", "{{ sm_90.multiply_cute.by_warp:.0f}} HMMA"]
#   - ["CuTe-DSL, a warpgroup's atom", refused, refused, "{{ sm_90.multiply_cute_wgmma.by_warpgroup:.0f}} HGMMA"]
# caption: "Compiled here, not run, but for the PTX of a warp's atom, which was right on a CPU. Each source has a tile of its own. cuTile's compiler writes the step of its loop three times for sm_80, and twice for sm_89."
# ///
#
# A warpgroup's atom is refused for the older cards, loudly:
#
# /// text | sm_80.refused.multiply_cute_wgmma
# ///
#
# Name the card, with `--gpu-arch`. Where none is there and none is named, CuTe-DSL 4.8.1 takes sm_100a without a word
# (`findings/cute_dsl_without_a_card.sh`).
#
# What does the old way cost? *Measured here*, on {{ gpu.name }}: our `mma.sync` kernel reaches
# {{ l6.climb.mma_sync.of_peak:.0%}} of peak, the plainest one with `wgmma`, which becomes `HGMMA`, {{ l6.climb.wgmma.of_peak:.0%}}, and one with
# roles and a copy engine that works ahead {{ w2.burst.nn.n8192.tuned / gpu.bf16_tflops:.0%}}. So the instruction alone is not the point.
#
# ## And of our attention {.beyond}
#
# Triton's attention has {{ sm_80.attention_triton.by_warp:.0f}} products of a warp for sm_80, as many for sm_89, and
# {{ sm_90.attention_triton.by_warpgroup:.0f}} of a warpgroup for sm_90. It is given a tile of 128 rows for the first two, and of 64 rows for
# Hopper. In cuTile, with one tile for all three, it has {{ sm_80.attention_cutile.by_warp:.0f}}, {{ sm_89.attention_cutile.by_warp:.0f}} and
# {{ sm_90.attention_cutile.by_warpgroup:.0f}}. The plain attention of [lecture 8](../lectures/l8_attention.py), in fp32, has no product of either
# kind on any of them: it asks for none.

# %% [markdown]
# ## Two names on the box: NVLink, transformer engine {.beyond}
#
# **NVLink** joins cards. An A100 has 300 GB/s each way, an H100 or H200 450 GB/s; sheets print both ways together, 600 and 900 [^bekman-links]. An L40S has none, by a seller's
# sheet [^itcreations-l40s], so between two of them there is PCIe 4, 31 GB/s each way [^bekman-links]. For a model on one card that is no loss. For one that is [cut over
# several](interconnects.py#an-all-reduce-worked-out) it may decide.
#
# **Transformer engine** names two things: tensor cores that take FP8, and a library that chooses the scales for them. A scale needs the largest number of a tensor, and to look for that
# first is [one more pass](../lectures/l6_tensor_cores.py#shorter-numbers). So the library's *delayed scaling* takes the scale of the last step, by default the largest of 1024 steps [^nvidia-te]. The number that
# is larger than all of those is cut off. Its *hybrid* format takes E4M3 forward and E5M2 backward [^nvidia-te]. You will read it the other way round: E4M3 has a bit
# more of fraction, so it is the more precise one; E5M2 reaches further, up to 57344, and gradients need that [^nvidia-te].

# %% [markdown]
# ## When it wins, when it trips
#
# - **A new card wins without a new line** where a compiler chooses the instruction, as in Triton and cuTile, or a library does.
# - **It trips** where the source names the instruction. Such a kernel runs on, and a part of the card has nothing to do.
# - **An L40S trips** over bytes: look at its ridge below. What reads weights once, such as a model's next token, waits for memory.
# - **For training or for inference** a whole card counts, and not its instruction: [which GPU](which_gpu.py) has both, card by card.
# - **`sm_90` trips without its *a*.** `HGMMA` is only in code for `sm_90a`, which runs on no other generation.

# %% [markdown]
# ## The numbers that matter
#
# Dense peaks by the data sheets; the last column is our own card.
#
# | one card | A100, sm_80 [^nvidia-a100] | L40S, sm_89 [^nvidia-l40s] | H100, sm_90 [^nvidia-h100] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: | ---: |
# | bf16, TFLOP/s | {{ sheet.sm_80.bf16_tflops:.0f}} | {{ sheet.sm_89.bf16_tflops:.0f}} | {{ sheet.sm_90.bf16_tflops:.0f}} | {{ gpu.bf16_tflops:.0f}} |
# | memory, GB/s | {{ sheet.sm_80.gb_per_s:.0f}} | {{ sheet.sm_89.gb_per_s:.0f}} | {{ sheet.sm_90.gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | ridge in bf16, FLOP/B | {{ 1000 * sheet.sm_80.bf16_tflops / sheet.sm_80.gb_per_s:.0f}} | {{ 1000 * sheet.sm_89.bf16_tflops / sheet.sm_89.gb_per_s:.0f}} | {{ 1000 * sheet.sm_90.bf16_tflops / sheet.sm_90.gb_per_s:.0f}} | {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} |
#
# *Measured here*, on {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention
# {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s. An H100 and an H200 stand [side by side](../two_cards.md).
#
# ## What to type
#
# ```
# nox -s chips -- sm_80 sm_89 sm_90
# ```
#
# These made the records that this page reads:
#
# /// text | sm_90.compilers
# ///
#
# **Where the course teaches it:** [mma.sync: no waiting](../lectures/l6_tensor_cores.py#mmasync-no-waiting),
# [wgmma: leave it in shared memory](../lectures/l6_tensor_cores.py#wgmma-leave-it-in-shared-memory), and all of
# [W2](../workshops/w2_hopper.py).
#
# /// exercise | Which card is this for? | 4 minutes
# A listing has `HMMA.16816.F32.BF16` and `LDGSTS`, and neither `HGMMA` nor `UTMALDG`. Somebody says: *so it was compiled for an A100.* What
# do you answer?
# /// answer
# Perhaps. It may as well be for an L40S, whose listing is the same but for names, or for an H100, from a source that names `mma.sync`. A
# listing shows what is used, not what the card has. Ask for the architecture: it stands in the head of the file.
# ///
