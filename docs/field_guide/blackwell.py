# ---
# id: field_blackwell
# title: "Blackwell: two machines under one name"
# nav: Blackwell
# description: "Our multiply and our attention for a B200 and for an RTX 5090: one has tensor memory and a thread that multiplies alone, the other multiplies as an A100 does. Compiled here, not run."
# ---

# %% [markdown]
# # Blackwell: two machines under one name
#
# By the end of this page you can
#
# - say what a kernel for a B200 has that one for an RTX 5090 cannot have;
# - tell the two apart by number, sm_100 and sm_120, and not by name;
# - decide which of your kernels must be written anew, and for which of the two.
#
# **In one sentence:** on sm_100 one thread asks for products and the sums are in a memory of the tensor core's own; on sm_120 a warp
# asks and the sums are in its registers, as since Ampere.
#
# /// figure | docs/assets/figures/two_blackwells.svg
# alt: "Left, sm_100, a B200: one thread of 128 asks for a product, UTCHMMA; B, and A if you like, are in shared memory, the sums in tensor memory. Right, sm_120, an RTX 5090: a warp of 32 threads asks, HMMA; A, B and the sums are in registers."
# caption: "Who asks for one product, and where its numbers are."
# ///
#
# /// callout | trip
# **Nothing on this page has run on a Blackwell.** *Compiled here, not run*: the code was made on a machine without any card, and the
# build counts it. *Cited*: a vendor says so. *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record
from course_kernels.measure.machine import machine_for

GROUPS = {
    "by_warp": "HMMA",
    "by_warpgroup": "HGMMA",
    "by_thread": "UTCHMMA",
    "sums_read": "LDTM",  # from tensor memory into registers
    "columns": "UTCATOMSWS",  # tensor memory asked for and given back
    "copies": "LDGSTS",
    "tiles": "UTMALDG",  # the copy engine fetches a tile
}
record(**{chip: told(chip, **GROUPS) for chip in ("sm_80", "sm_100", "sm_120")})
b200 = machine_for("NVIDIA B200")
record(
    sheet={
        "bf16_tflops": quantity(b200.peak_tflops["bf16"], "TFLOP/s", how="given"),
        "gb_per_s": quantity(b200.bandwidth_gb_per_s, "GB/s", how="given"),
        "rtx_gb_per_s": quantity(1792, "GB/s", how="given"),  # [^spheron-5090]
    }
)

# %% [markdown]
# ## What Triton makes of our multiply
#
# One source, one tile: 128 × 128 and 32 along K, eight warps. Both are called Blackwell.
#
# /// predict | For sm_100 Triton asks for products with UTCHMMA, one thread at a time. With which instruction does it multiply for an RTX 5090, sm_120?
# - [sm_120.multiply_triton.by_thread >= max(sm_120.multiply_triton.by_warp, sm_120.multiply_triton.by_warpgroup)] UTCHMMA, as on a B200
# - [sm_120.multiply_triton.by_thread < max(sm_120.multiply_triton.by_warp, sm_120.multiply_triton.by_warpgroup) and sm_120.multiply_triton.by_warpgroup > sm_120.multiply_triton.by_warp] HGMMA, as on an H100
# - [sm_120.multiply_triton.by_thread < max(sm_120.multiply_triton.by_warp, sm_120.multiply_triton.by_warpgroup) and sm_120.multiply_triton.by_warpgroup <= sm_120.multiply_triton.by_warp] HMMA, as on an A100
# /// reveal
# `HMMA`, {{ sm_120.multiply_triton.by_warp:.0f}} times. For an A100 it is there {{ sm_80.multiply_triton.by_warp:.0f}} times.
#
# /// table
# turned: true
# columns: [Triton's multiply, instructions, "of a warp, HMMA", "of one thread, UTCHMMA", "sums read, LDTM", "columns asked for, UTCATOMSWS", "copies by threads, LDGSTS", registers]
# rows:
#   - ["sm_80, A100", "{{ sm_80.multiply_triton.lines:.0f}}", "{{ sm_80.multiply_triton.by_warp:.0f}}", "{{ sm_80.multiply_triton.by_thread:.0f}}", "{{ sm_80.multiply_triton.sums_read:.0f}}", "{{ sm_80.multiply_triton.columns:.0f}}", "{{ sm_80.multiply_triton.copies:.0f}}", "{{ sm_80.multiply_triton.registers:.0f}}"]
#   - ["sm_100, B200", "{{ sm_100.multiply_triton.lines:.0f}}", "{{ sm_100.multiply_triton.by_warp:.0f}}", "{{ sm_100.multiply_triton.by_thread:.0f}}", "{{ sm_100.multiply_triton.sums_read:.0f}}", "{{ sm_100.multiply_triton.columns:.0f}}", "{{ sm_100.multiply_triton.copies:.0f}}", "{{ sm_100.multiply_triton.registers:.0f}}"]
#   - ["sm_120, RTX 5090", "{{ sm_120.multiply_triton.lines:.0f}}", "{{ sm_120.multiply_triton.by_warp:.0f}}", "{{ sm_120.multiply_triton.by_thread:.0f}}", "{{ sm_120.multiply_triton.sums_read:.0f}}", "{{ sm_120.multiply_triton.columns:.0f}}", "{{ sm_120.multiply_triton.copies:.0f}}", "{{ sm_120.multiply_triton.registers:.0f}}"]
# caption: "Compiled here, not run. A listing counts what is written, not how often it runs."
# ///
# ///
#
# The middle row is a machine of another kind. There are {{ sm_100.multiply_triton.by_thread:.0f}} products, and no register holds a sum until
# the end: then `LDTM` brings them from tensor memory, in {{ sm_100.multiply_triton.sums_read:.0f}} loads. That memory is asked for and
# given back, and a barrier says when the products are done.
#
# Who fetches the tiles? Threads, with `LDGSTS`, on all three: this source has pointers, not tiles that a copy engine could be told of.

# %% [markdown]
# ## Which instruction each tool reaches
#
# In cuTile, NVIDIA's Python of tiles [^cutile], the same multiply says which tile it loads, and neither who fetches it nor who multiplies.
#
# /// predict | For an RTX 5090, who fetches the tiles of the source in cuTile?
# - [sm_120.multiply_cutile.tiles > sm_120.multiply_cutile.copies] The copy engine, as on a B200
# - [sm_120.multiply_cutile.tiles <= sm_120.multiply_cutile.copies] Threads, as on an A100
# /// reveal
# The copy engine, by {{ sm_120.multiply_cutile.tiles:.0f}} `UTMALDG`. An RTX 5090 multiplies as an A100 does, but it can fetch as an H100 does.
#
# /// table
# columns: [our multiply, "sm_100, B200", "sm_120, RTX 5090"]
# rows:
#   - ["CUDA, mma.sync", "{{ sm_100.multiply_mma.by_warp:.0f}} HMMA", "{{ sm_120.multiply_mma.by_warp:.0f}} HMMA"]
#   - [cuTile, "{{ sm_100.multiply_cutile.by_thread:.0f}} UTCHMMA", "{{ sm_120.multiply_cutile.by_warp:.0f}} HMMA"]
#   - ["CuTe-DSL, a warp's atom", "{{ sm_100.multiply_cute.by_warp:.0f}} HMMA", "{{ sm_120.multiply_cute.by_warp:.0f}} HMMA"]
#   - ["CuTe-DSL, one thread's atom", "{{ sm_100.multiply_cute_tcgen05.by_thread:.0f}} UTCHMMA", refused]
# caption: "Compiled here, not run, each source with a tile of its own. An atom is the product that a source in CuTe-DSL names."
# ///
# ///
#
# Who names a warp's product gets `HMMA` on both, and on a B200 leaves the new machine idle. Hopper's product compiles on neither:
# [`wgmma` is refused](../workshops/w3_abstraction_ladder.py#the-price-list). What a kernel written for
# sm_100 looks like, with pairs of blocks and four-bit numbers, stands on [Compiled, not run](../compiled_not_run.py#one-thread-multiplies).
#
# ## And of our attention {.beyond}
#
# Triton's attention has {{ sm_100.attention_triton.by_thread:.0f}} products of one thread for sm_100, and {{ sm_120.attention_triton.by_warp:.0f}} of
# a warp for sm_120; for an A100 it has {{ sm_80.attention_triton.by_warp:.0f}}. On sm_100 the scores are in tensor memory. So every softmax
# begins with reading them. In all, the listing reads tensor memory {{ sm_100.attention_triton.sums_read:.0f}} times. In cuTile the
# attention has {{ sm_100.attention_cutile.by_thread:.0f}} products of one thread, or {{ sm_120.attention_cutile.by_warp:.0f}} of a warp.

# %% [markdown]
# ## When it wins, when it trips
#
# - **sm_100 wins** where sums had filled the registers: a tile of 128 × 256 in fp32 takes none of them any more.
# - **sm_100 trips** over code that names the instruction of an older card: it runs by warps, or it does not compile.
# - **sm_120 wins** as a card to learn on: what you wrote for an A100 compiles as it is, and four-bit products are there, too.
# - **sm_120 trips** those who take a result of a B200 for one of *Blackwell*. It has neither tensor memory nor `tcgen05`.

# %% [markdown]
# ## The numbers that matter
#
# Dense peak by the data sheet; the last column is our own card. Of an RTX 5090 we have no dense peak at first hand, and leave it out.
#
# | one card | B200, sm_100 [^nvidia-b200] | RTX 5090, sm_120 [^spheron-5090] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: |
# | bf16, TFLOP/s | {{ sheet.bf16_tflops:.0f}} | | {{ gpu.bf16_tflops:.0f}} |
# | memory, GB/s | {{ sheet.gb_per_s:.0f}} | {{ sheet.rtx_gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | ridge in bf16, FLOP/B | {{ 1000 * sheet.bf16_tflops / sheet.gb_per_s:.0f}} | | {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} |
#
# *Measured here*, on {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention
# {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s.
#
# ## What to type
#
# ```
# nox -s chips -- sm_100 sm_120
# ```
#
# These made the records that this page reads:
#
# /// text | sm_100.compilers
# ///
#
# **Where the course teaches it:** [a light tour of Blackwell](../workshops/w5_blackwell.py#a-light-tour-of-blackwell) and
# [who does it](../workshops/w3_abstraction_ladder.py#who-does-it).
#
# /// exercise | Room for tiles | 3 minutes
# Tensor memory has 128 lanes of 512 columns of 32 bits [^tilus-tmem]. Our tile is 128 × 128, with sums in fp32. How many such tiles fit, and
# what would a kernel do with more than one?
# /// answer
# A tile takes 128 columns, so four fit. While the tensor core adds to one, other warps read the finished one, round it and write it to
# memory: the end of a tile is hidden behind the next.
# ///
