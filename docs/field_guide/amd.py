# ---
# id: field_amd
# title: "AMD: waves of 64 and their matrix instructions"
# nav: AMD
# description: "What AMD's compilers make of our multiply and our attention for gfx942, gfx950 and gfx1250: waves of 64 lanes, MFMA, and what each generation no longer spells out. Compiled here, not run."
# ---

# %% [markdown]
# # AMD: waves of 64 and their matrix instructions
#
# By the end of this page you can
#
# - read a listing for an MI300X or an MI355X with what you know of NVIDIA's;
# - say what changes when a *warp* has 64 lanes, and what does not;
# - tell from a listing what a generation does in hardware and what it spells out.
#
# **In one sentence:** an AMD GPU of this kind is what you know, with waves of 64 lanes in place of warps of 32, matrix
# instructions of a whole wave, and waits that stand in the code.
#
# /// figure | docs/assets/figures/wave_and_warp.svg
# alt: "A row of 32 lanes, NVIDIA's warp, above a row of 64 lanes, AMD's wave. Below, to scale, the sums that one instruction adds to: HMMA 16 by 8 with 16 along K; v_mfma 32 by 32 with 8 along K on gfx942 and 16 on gfx950."
# caption: "In both, all lanes ask together, and the sums stay in their registers."
# ///
#
# /// callout | trip
# **Nothing on this page has run on an AMD GPU.** *Compiled here, not run*: Triton and clang made the code, on a machine without
# such a card and without ROCm, and the build counts it. *Cited*: a vendor says so. *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import record

GROUPS = {
    "products": ("v_mfma", "v_wmma"),
    "stops": "s_wait",  # s_waitcnt, and gfx1250's own for each kind
    "two_byte_reads": "ds_read_u16",
    "turning_reads": ("ds_read_b64_tr", "ds_load_tr"),
    "roundings": "v_cvt_pk_bf16",
}
record(**{chip: told(chip, **GROUPS) for chip in ("gfx942", "gfx950", "gfx1250")})

# %% [markdown]
# ## What its compiler makes of our multiply
#
# The source is the Triton kernel of [lecture 6](../lectures/l6_tensor_cores.py#triton-say-what-not-how), unchanged: a tile of 128 × 128,
# 32 along K, eight warps. `v_mfma_f32_32x32x8_bf16` is one product of a wave: 32 × 32 sums, 8 steps along K.
#
# /// text | gfx942.multiply_triton.excerpt
# ///
#
# /// predict | For gfx942 there are {{ gfx942.multiply_triton.products:.0f}} products in the listing. gfx950's product is twice as long along K. How many are there?
# - [gfx950.multiply_triton.products < 0.75 * gfx942.multiply_triton.products] About half as many
# - [0.75 * gfx942.multiply_triton.products <= gfx950.multiply_triton.products < 1.5 * gfx942.multiply_triton.products] As many
# - [gfx950.multiply_triton.products >= 1.5 * gfx942.multiply_triton.products] Twice as many
# /// reveal
# {{ gfx950.multiply_triton.products:.0f}}. But look at the first row of the table: more is gone than these.
#
# /// table
# turned: true
# columns: [our multiply, instructions, products, "bytes of LDS", "vector registers", "reads of two bytes", "reads that transpose", "roundings of two to bf16"]
# rows:
#   - [gfx942, "{{ gfx942.multiply_triton.lines:.0f}}", "{{ gfx942.multiply_triton.products:.0f}}", "{{ gfx942.multiply_triton.shared_bytes:.0f}}", "{{ gfx942.multiply_triton.vgpr_count:.0f}}", "{{ gfx942.multiply_triton.two_byte_reads:.0f}}", "{{ gfx942.multiply_triton.turning_reads:.0f}}", "{{ gfx942.multiply_triton.roundings:.0f}}"]
#   - [gfx950, "{{ gfx950.multiply_triton.lines:.0f}}", "{{ gfx950.multiply_triton.products:.0f}}", "{{ gfx950.multiply_triton.shared_bytes:.0f}}", "{{ gfx950.multiply_triton.vgpr_count:.0f}}", "{{ gfx950.multiply_triton.two_byte_reads:.0f}}", "{{ gfx950.multiply_triton.turning_reads:.0f}}", "{{ gfx950.multiply_triton.roundings:.0f}}"]
# caption: "Compiled here, not run, by Triton from one source. LDS is AMD's word for shared memory. A listing counts what is written, not how often it runs."
# ///
# ///
#
# /// claim | gfx950.multiply_triton.two_byte_reads < 1 and gfx950.multiply_triton.turning_reads > 8 and gfx942.multiply_triton.two_byte_reads > 32 and gfx950.multiply_triton.roundings > 32
# Two things are spelled out for gfx942. B must be turned on its way out of LDS, and so it is read two bytes at a time, `ds_read_u16`;
# gfx950 has a read that transposes, `ds_read_b64_tr_b16`. And a sum is rounded to bf16 with integer instructions, a test for NaN
# among them; gfx950 rounds two in one, `v_cvt_pk_bf16_f32`.
# /// otherwise
# gfx942 reads {{ gfx942.multiply_triton.two_byte_reads:.0f}} times two bytes, `ds_read_u16`, and gfx950 {{ gfx950.multiply_triton.two_byte_reads:.0f}} times; `ds_read_b64_tr_b16`, a read that transposes, stands
# {{ gfx950.multiply_triton.turning_reads:.0f}} times in gfx950's listing.
# ///
#
# What you do not see on NVIDIA is `s_waitcnt`, {{ gfx942.multiply_triton.stops:.0f}} times for gfx942: *go on when so many loads are
# still under way*. NVIDIA's compiler hides such waits in bits of each instruction. Here they are instructions, and you can count them.

# %% [markdown]
# ## The same in HIP, with nothing hidden {.beyond}
#
# HIP is CUDA's dialect for AMD. In our own kernel a wave has 4 × 4 squares of 16 × 16 sums and asks for each product by name:
#
# /// source | src/course_chips/hip/multiply.cpp#multiply
# ///
#
# A step has 32 numbers along K. So gfx942, with 16 in a product, needs {{ gfx942.multiply_hip.products:.0f}}, and gfx950, with 32,
# {{ gfx950.multiply_hip.products:.0f}}. You could have said so without a compiler.

# %% [markdown]
# ## And of our attention {.beyond}
#
# Triton's attention has {{ gfx942.attention_triton.products:.0f}} products for gfx942 and {{ gfx950.attention_triton.products:.0f}} for
# gfx950. If you expected half again, look for the loop: a compiler may write it out several times, once for one chip and twice for another.
# So never divide one count of a listing by another before you know how often each line runs.
#
# ## The next one: gfx1250 {.beyond}
#
# Triton and clang already compile for it; which card it is, they do not say. Waves have {{ gfx1250.multiply_triton.wavefront_size:.0f}}
# lanes. The matrix instruction is `v_wmma_f32_16x16x32_bf16`, {{ gfx1250.multiply_triton.products:.0f}} times in our multiply, and each
# kind of wait has a name of its own:
#
# /// text | gfx1250.multiply_triton.excerpt
# ///
#
# The multiply takes {{ gfx1250.multiply_triton.lines:.0f}} instructions there. Do not read a speed from it: nobody here has run any of them.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where memory decides. An MI300X has 192 GB, a MI355X 288 GB [^bekman-accelerators]: a model that needs two of the
#   smaller cards may fit on one.
# - **It trips** over the number 32. Code that believes a warp to be 32 lanes, in shuffles, masks and ballots, compiles and is wrong.
#   And a block of 32 threads is half a wave: the other half has nothing to do.
# - **It trips** over blocks without a bound. Our teaching attention does not say how many threads a block has, so clang keeps registers for
#   {{ gfx942.attention_plain.max_flat_workgroup_size:.0f}}: no more than {{ gfx942.attention_plain.vgpr_count:.0f}} a thread. On gfx942
#   {{ gfx942.attention_plain.vgpr_spill_count:.0f}} spill into memory, on gfx1250 {{ gfx1250.attention_plain.vgpr_spill_count:.0f}}. Write
#   `__launch_bounds__`.

# %% [markdown]
# ## The numbers that matter
#
# Dense peaks, as AMD prints them and others have collected them; the last column is the data sheet of our own card. AMD prints
# figures with sparsity, too, at twice these [^bekman-accelerators].
#
# | one card | MI300X, gfx942 [^bekman-accelerators] | MI355X, gfx950 [^bekman-accelerators] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: |
# | bf16, TFLOP/s | {{ gfx942.sheet.bf16_tflops:.0f}} | {{ gfx950.sheet.bf16_tflops:.0f}} | {{ gpu.bf16_tflops:.0f}} |
# | HBM, GB/s | {{ gfx942.sheet.gb_per_s:.0f}} | {{ gfx950.sheet.gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | HBM, GB | {{ gfx942.sheet.memory_gb:.0f}} | {{ gfx950.sheet.memory_gb:.0f}} | |
# | ridge in bf16, FLOP/B | {{ 1000 * gfx942.sheet.bf16_tflops / gfx942.sheet.gb_per_s:.0f}} | {{ 1000 * gfx950.sheet.bf16_tflops / gfx950.sheet.gb_per_s:.0f}} | {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} |
#
# LDS has 64 KiB on a compute unit of gfx942, and 160 KiB on one of gfx950 [^rocm-specs]. *Measured here*, on {{ gpu.name }}: our
# multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s. For AMD's
# cards we have no such line.
#
# ## What to type
#
# ```
# nox -s chips -- amd
# ```
#
# That compiles for all three and rewrites the records that this page reads. These made them:
#
# /// text | gfx942.compilers
# fold: "Compilers and their versions"
# ///
#
# **Where the course teaches it:** what a warp does together, [a warp at a fork](../lectures/l2_the_cuda_model.py#a-warp-at-a-fork); one
# product of many lanes, [a tiny matmul in one instruction](../lectures/l6_tensor_cores.py#a-tiny-matmul-in-one-instruction); why
# shared memory is read by columns, [thirty-two windows](../lectures/l3_memory.py#thirty-two-windows).
#
# /// exercise | A shuffle too few | 4 minutes
# A warp of 32 lanes adds up its numbers in five shuffles: each lane takes from the one 16 further, then 8, 4, 2 and 1. Somebody runs this
# on a wave of 64. What comes out, and which single line mends it?
# /// answer
# Each lane adds numbers of lanes at most 31 further on, so each has the sum of 32 lanes, and half of the wave is missing. A first step of
# 32 mends it: six shuffles for 64 lanes. Better is a loop that asks for the width, and begins at the middle of it.
# ///
