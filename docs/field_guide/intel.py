# ---
# id: field_intel
# title: "Intel: lanes as many as the compiler likes"
# nav: Intel GPUs
# description: "What Intel's ocloc makes of our multiply and our attention for Xe-HPC and Xe-HPG: the width of a thread, dpas, addresses, and a product that a build leaves out. Compiled here, not run."
# ---

# %% [markdown]
# # Intel: lanes as many as the compiler likes
#
# By the end of this page you can
#
# - say what a *sub-group* is, and who decides how many lanes it has;
# - find a product of matrices in Intel's code, and notice when it is missing;
# - work out how many numbers of its own a lane can have before they go to memory.
#
# **In one sentence:** on an Intel GPU of this kind a thread is a row of wide registers, the compiler decides whether 8, 16 or 32 of your work
# items share it, and on Xe-HPC 16 of them ask together for a product of matrices.
#
# /// figure | docs/assets/figures/sub_group_product.svg
# alt: "A of 8 by 16, B of 16 by 16 and sums of 8 by 16, drawn as blocks. Lane 5 of a sub-group holds column 5 of each. One instruction, dpas.8x8, adds the product to the sums."
# caption: "What our kernel asks for on Xe-HPC. Intel calls such units XMX; *dpas* is dot product, accumulate, systolic [^intel-xmx]."
# ///
#
# /// callout | trip
# **Nothing on this page has run on an Intel GPU.** *Compiled here, not run*: Intel's ocloc, as Debian has it, made the code on a machine
# without one, and the build counts it. Our kernels were right as C++, on a CPU. *Cited*: somebody else says so.
# *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record

GROUPS = {
    "products": "dpas",  # of matrices
    "sums": "mad:f",  # a multiply and an add of float32, in all lanes
    "carries": "addc",  # the upper half of a number of 64 bits is added by hand
    "long_adds": "add:q",  # 64 bits at once
    "kept_away": "store.ugm.d32.a32",  # a lane's own numbers, into memory
}
record(
    hpc=told("intel_xe_hpc", **GROUPS),
    hpg=told("intel_xe_hpg", **GROUPS),
    max1550={
        "gb_per_s": quantity(3276.8, "GB/s", how="given"),
        "gb": quantity(128, "GB", how="given"),
    },
)

# %% [markdown]
# ## What its compiler makes of our multiply
#
# The kernel is in OpenCL C, the plainest there is: a *work item*, OpenCL's word for a thread of CUDA's, has one number of C.
#
# /// source | src/course_chips/opencl/multiply_plain.cl
# fold: The kernel
# size: true
# ///
#
# For Xe-HPC ocloc puts {{ hpc.multiply_plain.lanes:.0f}} work items into one thread. Each is a *lane*, all of them are a **sub-group**, Intel's warp.
#
# /// predict | The code for Xe-HPC has {{ hpc.multiply_plain.lines:.0f}} instructions. How many of them multiply two numbers of A and B and add?
# - [hpc.multiply_plain.sums < 0.05 * hpc.multiply_plain.lines] Very few
# - [0.05 * hpc.multiply_plain.lines <= hpc.multiply_plain.sums <= 0.4 * hpc.multiply_plain.lines] A tenth or so
# - [hpc.multiply_plain.sums > 0.4 * hpc.multiply_plain.lines] Half of them, or more
# /// reveal
# {{ hpc.multiply_plain.sums:.0f}}. Nearly everything before it works out addresses, which have 64 bits.
#
# /// text | hpc.multiply_plain.excerpt
# fold: "The lines that end in it; `shl … 16` makes a float32 of a bfloat16"
# ///
# ///
#
# ## A product of matrices, or none
#
# Our second kernel asks for the matrix unit by the compiler's own name for it:
#
# /// source | src/course_chips/opencl/multiply_dpas.cl#kernel
# fold: That kernel
# size: true
# ///
#
# For Xe-HPC the call became {{ hpc.multiply_dpas.products:.0f}} instruction, with sums in float32 and A and B in bf16:
#
# /// text | hpc.multiply_dpas.excerpt
# ///
#
# Xe-HPG has such units, too [^intel-ai-engines]. We compile the same file for it, and ocloc says `Build succeeded.`
#
# /// predict | How many products of matrices are in that code?
# - [hpg.multiply_dpas.products > 1] More than for Xe-HPC: its registers are half as wide
# - [0 < hpg.multiply_dpas.products <= 1] As many
# - [hpg.multiply_dpas.products <= 0] None
# /// reveal
# {{ hpg.multiply_dpas.products:.0f}}. This compiler does not resolve the name for Xe-HPG, leaves out the call, and what only fed it goes with it. It does so for any name
# that begins like its own (`findings/ocloc_drops_an_unknown_product.sh`). A build that succeeds is no product: count.
#
# /// table
# turned: true
# columns: [kernel, instructions, lanes, "bytes of a register", "dpas", "mad of float32", "adds of 64 bits", "carries, addc"]
# rows:
#   - ["plain, Xe-HPC", "{{ hpc.multiply_plain.lines:.0f}}", "{{ hpc.multiply_plain.lanes:.0f}}", "{{ hpc.multiply_plain.register_bytes:.0f}}", "{{ hpc.multiply_plain.products:.0f}}", "{{ hpc.multiply_plain.sums:.0f}}", "{{ hpc.multiply_plain.long_adds:.0f}}", "{{ hpc.multiply_plain.carries:.0f}}"]
#   - ["plain, Xe-HPG", "{{ hpg.multiply_plain.lines:.0f}}", "{{ hpg.multiply_plain.lanes:.0f}}", "{{ hpg.multiply_plain.register_bytes:.0f}}", "{{ hpg.multiply_plain.products:.0f}}", "{{ hpg.multiply_plain.sums:.0f}}", "{{ hpg.multiply_plain.long_adds:.0f}}", "{{ hpg.multiply_plain.carries:.0f}}"]
#   - ["by sub-groups, Xe-HPC", "{{ hpc.multiply_dpas.lines:.0f}}", "{{ hpc.multiply_dpas.lanes:.0f}}", "{{ hpc.multiply_dpas.register_bytes:.0f}}", "{{ hpc.multiply_dpas.products:.0f}}", "{{ hpc.multiply_dpas.sums:.0f}}", "{{ hpc.multiply_dpas.long_adds:.0f}}", "{{ hpc.multiply_dpas.carries:.0f}}"]
#   - ["by sub-groups, Xe-HPG", "{{ hpg.multiply_dpas.lines:.0f}}", "{{ hpg.multiply_dpas.lanes:.0f}}", "{{ hpg.multiply_dpas.register_bytes:.0f}}", "{{ hpg.multiply_dpas.products:.0f}}", "{{ hpg.multiply_dpas.sums:.0f}}", "{{ hpg.multiply_dpas.long_adds:.0f}}", "{{ hpg.multiply_dpas.carries:.0f}}"]
# caption: "Compiled here, not run. A listing counts what is written, not how often it runs."
# ///
# ///
#
# /// claim | hpc.multiply_dpas.long_adds > 16 and hpc.multiply_dpas.carries < 1 and hpg.multiply_dpas.long_adds < 1 and hpg.multiply_dpas.carries > 16
# An address takes one add on Xe-HPC, `add` of type `q`. Xe-HPG has no such add here: it adds two halves and carries, `addc`.
# /// otherwise
# Xe-HPC adds {{ hpc.multiply_dpas.long_adds:.0f}} times in 64 bits, and Xe-HPG {{ hpg.multiply_dpas.long_adds:.0f}} times, with {{ hpg.multiply_dpas.carries:.0f}} carries.
# ///

# %% [markdown]
# ## And of our attention {.beyond}
#
# A work item has a row of Q and a running answer: 2 × 128 numbers of its own. A thread has {{ hpc.attention_plain.registers:.0f}} registers of
# {{ hpc.attention_plain.register_bytes:.0f}} bytes on Xe-HPC, and ocloc puts {{ hpc.attention_plain.lanes:.0f}} lanes into it. So a lane has room for
# {{ hpc.attention_plain.registers * hpc.attention_plain.register_bytes / hpc.attention_plain.lanes / 4:.0f}} numbers, and on Xe-HPG for
# {{ hpg.attention_plain.registers * hpg.attention_plain.register_bytes / hpg.attention_plain.lanes / 4:.0f}}. The rest goes to memory. The compiler does not call it a
# spill, but `store.ugm.d32.a32` stands there {{ hpc.attention_plain.kept_away:.0f}} times.
#
# The whole takes {{ hpc.attention_plain.lines:.0f}} instructions for Xe-HPC and {{ hpg.attention_plain.lines:.0f}} for Xe-HPG. As on
# [AMD](amd.py), more lanes are no gift where each wants many registers.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where the width of a warp is in your way: ask for 16 lanes with `intel_reqd_sub_group_size`, and you get 16.
# - **It trips** over code that believes in 32. The compiler may give it 16, and tells nobody.
# - **It trips** over the toolchain. The public compiler knows one name for the matrix unit on one of two chips, and its own disassembler
#   does not find its library.
# - *Gaudi* is another machine of Intel's, and no GPU: it has a place of its own in [the map](index.md#the-map).

# %% [markdown]
# ## The numbers that matter
#
# | one card | Max 1550, Xe-HPC [^lockwood-pvc] | {{ gpu.name }} |
# | --- | ---: | ---: |
# | cores | 128 [^lockwood-pvc] | {{ gpu.sms:.0f}} |
# | matrix engines in a core | 8 [^lockwood-pvc] | [one a quarter](silicon.md) |
# | HBM, GB/s | {{ max1550.gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | HBM, GB | {{ max1550.gb:.0f}} | |
# | bf16, dense, TFLOP/s | no sheet that we could open | {{ gpu.bf16_tflops:.0f}} |
#
# A core here is what NVIDIA calls a multiprocessor. The Max 1550 is two such halves in one package [^lockwood-pvc].
# *Measured here*, on {{ gpu.name }}: our multiply reaches {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention
# {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s. For Intel's cards we have no such line.
#
# ## What to type
#
# ```
# apt-get install intel-opencl-icd
# nox -s chips -- intel
# ```
#
# On Debian 12 that installs the compiler, compiles for both, and rewrites the records that this page reads. These made them:
#
# /// text | hpc.compilers
# fold: "Compilers and their versions"
# ///
#
# **Where the course teaches it:** what lanes do together, [a warp at a fork](../lectures/l2_the_cuda_model.py#a-warp-at-a-fork); one
# product of many lanes, [a tiny matmul in one instruction](../lectures/l6_tensor_cores.py#a-tiny-matmul-in-one-instruction); registers as
# a budget, [how many must be walking](../lectures/l3_memory.py#how-many-must-be-walking).
#
# /// exercise | How many lanes may a row have? | 4 minutes
# Our attention wants 256 numbers of float32 for each lane, and a few more. On Xe-HPC a thread has 128 registers of 64 bytes. With 32, 16 or 8 lanes, how
# many numbers is there room for in each? With which of them does the row fit?
# /// answer
# The registers have 128 × 64 = 8192 bytes, 2048 numbers. So a lane has room for 64, 128 or 256. With 8 lanes the row alone would fill
# everything, and there is nothing left for keys, addresses and sums. So it fits with none of the three, and the cure is to give a row to several
# lanes, as FlashAttention on a GPU does.
# ///
