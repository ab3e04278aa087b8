# ---
# id: week_19
# title: "Week 19: other accelerators"
# search: {rank: 2}
# nav: "19 · Other chips"
# description: "One multiply carried to AMD's cards and to TPUs in three ways, by new names, by another compiler and by hand; each compiled and counted, none of them run."
# ---

# %% [markdown]
# # Week 19: other accelerators
#
# /// week
# ///
#
# By the end of this week you can
#
# - say what a port by new names gives you, and what it leaves out;
# - count the matrix products that a listing for a chip must have, before you compile;
# - say what XLA does with a graph, and when PyTorch/XLA runs anything at all.
#
# ## Why this week
#
# Another chip has other units, another width of a warp and other places for bytes. A port that compiles may be slow, and right, and nobody notices.
# So ask of a port what you ask of a kernel: what percent of *this* chip's peak is it, and why not more? The listing gives a first answer before anybody has such a card.
#
# ## Before you begin
#
# - What do the 32 lanes of a warp do together? [L2](../lectures/l2_the_cuda_model.py#a-warp-at-a-fork).
# - What does one instruction of a tensor core multiply? [L6](../lectures/l6_tensor_cores.py#a-tiny-matmul-in-one-instruction).
# - Which decisions does Triton leave to its compiler? [Week 10](week_10.py), or [W3](../workshops/w3_abstraction_ladder.py#who-decides).
#
# ## Read
#
# /// reading
# tpu-deep-dive: "Take the two pillars, an array through which numbers flow and a compiler that plans everything beforehand, and what becomes of caches then. It is drawn for TPUv4. Where it calls Trillium *TPUv6p*, read v6e."
# pytorch-xla-overview: "Take what is traced, what is cached and what makes it compile again. Its `xm.mark_step()` is today's `torch_xla.sync()`: same barrier, new name."
# hip-model: "Read it for what is *not* new to you. One line matters: a warp is typically 64 lanes there, and sometimes 32. It says little of matrix units."
# alcf2024: "A day of lectures and exercises at a conference, from people who build or keep such machines; in place of a company's overview that lists name and that we could not find. Look at what one types for each of the five. Believe no speed in such slides that names neither the size of the problem nor the format; the [table side by side](../field_guide/side_by_side.py) has each chip's figures with their sources."
# ///
#
# ## Ideas
#
# - What is a systolic array, what is in a TPU, and how are its chips joined? [TPU](../field_guide/tpu.py), and a product that flows through such an array, cycle by cycle, on the page about [AWS's chips](../field_guide/aws_chips.py). The
#   links between chips, ICI, close rows into rings, so the *mesh* of many texts is a *torus*: [more than one chip](../field_guide/tpu.py#more-than-one-chip-topology-and-jax).
# - How much HBM bandwidth has which chip, against its peak? [Accelerators side by side](../field_guide/side_by_side.py).
#
# /// idea | What is HLO, and what does XLA do with it?
# HLO, *high level operations*, is the form in which XLA holds a program: a graph of operations on whole arrays, each with its shape and type. Frameworks hand over StableHLO, a form with versions. XLA first improves the graph for any chip, removing what is computed twice,
# fusing, and planning buffers. Then a back end improves it once more for its own chip, and writes code [^openxla-architecture]. *Fusion* makes one loop of several operations, so that what lies between them never goes to HBM: that is
# [fusion](../field_guide/fusion.md) as you know it, done by a pass.
# ///
#
# /// idea | What is layout assignment?
# A shape does not say in which order the numbers lie. A pass chooses that for every array, so that what an operation wants fits with what the one before it made, and puts in a copy where it does not. On a TPU the
# choice has tiles: `{1,0:T(8,128)}` in a listing is *row by row, in tiles of 8 rows and 128 columns*. [The multiply of the field guide](../field_guide/tpu.py#what-its-compiler-makes-of-our-multiply) has this layout.
# ///
#
# /// idea | What is SPMD partitioning?
# *Single program, multiple data*: you write a program for one large array, say over which axes of a mesh of chips it is divided, and the compiler makes the one program that each chip runs on its part, collectives included. It goes through the graph and asks of each operation whether its
# parts can be worked out alone. A sum over a divided axis cannot: there it puts an all-reduce. [Four lines of JAX](../field_guide/tpu.py#more-than-one-chip-topology-and-jax) show one.
# ///
#
# /// idea | When does PyTorch/XLA compute anything?
# Late. An operation on one of its tensors only writes a node into a graph: a *lazy* tensor. A barrier, `xm.mark_step()`, today `torch_xla.sync()` [^pytorch-xla-eager], closes the graph, compiles it unless that graph with those shapes is known already, and sends it off. Printing a value waits for it, too. So a loop without a
# barrier becomes one huge graph, and a batch of a new size compiles everything anew [^pytorch-xla-overview]. Its SPMD mode is the one above: a mesh, and a mark on each tensor that says how it is divided.
# ///
#
# /// idea | How near to CUDA is HIP, and what does hipify do?
# Near in words: `hipMalloc`, `hipMemcpyAsync`, the same `<<<…>>>`, the same `threadIdx`. hipify exchanges the names in a text of CUDA C++. It does not exchange what names cannot say: PTX in `asm`, a mask of 32 bits, the number 32 for a warp. What we call a warp is a `wavefront` there. On AMD's
# CDNA chips it has 64 lanes, and [a sum by shuffles](../field_guide/amd.py#what-to-type) that counts on 32 may lose half of them, if one lane of a wave writes. And it does not read Triton at all: Triton has a back end of its own for these cards.
# ///
#
# /// idea | Is an MI300X's memory one with the host's?
# No. It has 192 GB of HBM3 [^bekman-accelerators], and it is a card behind PCIe like ours: the host's memory is another one, and copies go over a link. The chip without such a border is its sister, the MI300A, with processor cores and GPU on one package and 128 GB for both [^amd-mi300a].
# What the MI300X's size does buy: a model that needs two smaller cards may fit into one, and no layer crosses a link.
# ///
#
# /// idea | What do Groq, Cerebras and Gaudi give up, and for what?
# [Groq's LPU](../field_guide/groq.py) keeps weights in SRAM alone and plans every cycle; in return one model fills hundreds of chips. [Cerebras's WSE-3](../field_guide/cerebras.py) is one chip of a whole wafer, so that nothing leaves it, until a model is larger
# than its SRAM. [Gaudi](../field_guide/gaudi.py) has HBM as we do, few large matrix engines, and the network on the chip. Ask of each: where do the bytes lie, and who planned the order?
# ///
#
# ## Do
#
# Often you read *port a Triton kernel to HIP with hipify, and run it*. Here it is three ports in place of one, since hipify reads CUDA and not Triton; and each is compiled and not run, since we have no such card. All three are of our multiply in bf16:
#
# 1. **By new names.** [L6's first kernel](../lectures/l6_tensor_cores.py#without-tensor-cores), CUDA C++, with nothing changed but what its words mean.
# 2. **By another compiler.** [L6's kernel in Triton](../lectures/l6_tensor_cores.py#triton-say-what-not-how), unchanged, compiled for AMD: a tile of 128 × 128, a step of 32, and `num_warps=8`.
# 3. **By hand.** A kernel in HIP that asks for AMD's matrix instructions by name.
#
# The first port is short. These are all words that the kernel needs, and the compiler reads them before it. The kernel itself stays as it is:
#
# /// source | src/course_chips/hip/cuda_words.h
# ///
#
# For the third, two things had to be thought about: which of 64 lanes holds which number, and in which order B lies in shared memory.
#
# /// diff | src/course_kernels/gemm/k02_wmma.cu | src/course_chips/hip/multiply.cpp
# open: false
# ///

# %%
from math import prod

from course_chips.on_page import told
from course_kernels.measure import quantity, record

AMD = {"products": ("v_mfma", "v_wmma"), "two_byte_reads": "ds_read_u16"}
record(
    **{chip: told(chip, **AMD) for chip in ("gfx942", "gfx950", "gfx1250")},
    v5e=told("tpu_v5e", products="vmatmul"),
    v6e=told("tpu_v6e", products="vmatmul"),
)


def products(tile, one, waves=1):
    """Instructions of each wave for one step: multiply-adds of all, over those of one instruction."""
    return quantity(prod(tile) / prod(one) / waves, how="computed")


OURS, PALLAS = (128, 128, 32), (256, 256, 256)  # a step of the multiply: M, N and K
record(
    by_hand={
        "gfx942": products(OURS, (32, 32, 8), waves=8),
        "gfx950": products(OURS, (32, 32, 16), waves=8),
        "gfx1250": products(OURS, (16, 16, 32), waves=8),
        "v5e": products(PALLAS, (16, 128, 128)),  # 16 rows through an array
        "v6e": products(PALLAS, (16, 256, 256)),
    }
)

# %% [markdown]
# /// predict | The first port compiles for gfx942, an MI300X. How many instructions of its matrix units are in the listing of {{ gfx942.multiply_plain.lines:.0f}} lines?
# - [gfx942.multiply_plain.products > 8] Dozens: it is a multiply, and compilers find multiplies
# - [0 < gfx942.multiply_plain.products <= 8] A few, in the inner loop
# - [gfx942.multiply_plain.products <= 0] None
# /// reveal
# {{ gfx942.multiply_plain.products:.0f}}. New names bring over what the old ones said, and this kernel said *multiply two numbers and add*.
#
# /// when | l6.tensor.cublas.issue > 0
# What that costs is known from our own card: there the same kernel reaches {{ l6.climb.cuda_cores.of_peak:.1%}} of peak, and the one in Triton {{ l6.climb.triton.of_peak:.1%}}.
# /// otherwise
# What that costs [L6](../lectures/l6_tensor_cores.py) measures on an NVIDIA card, with the same kernel beside one in Triton.
# ///
#
# /// table
# columns: ["gfx942", lines of the listing, matrix products, vector registers]
# rows:
#   - ["by new names, k01", "{{ gfx942.multiply_plain.lines:.0f}}", "{{ gfx942.multiply_plain.products:.0f}}", "{{ gfx942.multiply_plain.vgpr_count:.0f}}"]
#   - ["by another compiler, Triton", "{{ gfx942.multiply_triton.lines:.0f}}", "{{ gfx942.multiply_triton.products:.0f}}", "{{ gfx942.multiply_triton.vgpr_count:.0f}}"]
#   - ["by hand, HIP", "{{ gfx942.multiply_hip.lines:.0f}}", "{{ gfx942.multiply_hip.products:.0f}}", "{{ gfx942.multiply_hip.vgpr_count:.0f}}"]
# caption: "Compiled here, not run. A listing counts what is written, not how often it runs."
# ///
# ///
#
# /// predict | The kernel in Triton says eight warps, and nothing of threads. For our own card that is a block of 256. For gfx1250 its listing says {{ gfx1250.multiply_triton.max_flat_workgroup_size:.0f}}, too. And for gfx942?
# - [gfx942.multiply_triton.max_flat_workgroup_size < 1.5 * gfx1250.multiply_triton.max_flat_workgroup_size] The same
# - [gfx942.multiply_triton.max_flat_workgroup_size >= 1.5 * gfx1250.multiply_triton.max_flat_workgroup_size] Twice as many
# /// reveal
# {{ gfx942.multiply_triton.max_flat_workgroup_size:.0f}}, since a wave has {{ gfx942.multiply_triton.wavefront_size:.0f}} lanes there and {{ gfx1250.multiply_triton.wavefront_size:.0f}} on gfx1250. So the 128 × 128 sums of a tile are
# {{ 128 * 128 / gfx942.multiply_triton.max_flat_workgroup_size:.0f}} for each thread, against {{ 128 * 128 / gfx1250.multiply_triton.max_flat_workgroup_size:.0f}}. With half of the sums, and other instructions, a thread has {{ gfx942.multiply_triton.vgpr_count:.0f}} registers in place of {{ gfx1250.multiply_triton.vgpr_count:.0f}}.
# This is why one source wants other settings on another card, even where it compiles without a word.
# ///
#
# That is your first note for a port: **lanes**. The second is **layout**. For gfx942 B is read from shared memory two bytes at a time, {{ gfx942.multiply_triton.two_byte_reads:.0f}} such reads, since it lies the wrong way round; gfx950 has a read that turns it, and
# {{ gfx950.multiply_triton.two_byte_reads:.0f}} reads of two bytes. [AMD's page](../field_guide/amd.py#what-its-compiler-makes-of-our-multiply) has both listings. In the kernel by hand B is turned on its way in: that is the second thing in the difference above.
#
# And a TPU? There is nothing to rename: no threads, no shared memory, no barrier. [The loop over tiles](../field_guide/tpu.py#what-its-compiler-makes-of-our-multiply) is written anew, in Pallas.
#
# ## Milestone
#
# /// exercise | Count by hand first | 10 minutes
# A step of the kernel in Triton is 128 × 128 × 32, done by eight waves. One product of a wave is 32 × 32 × 8 on gfx942, 32 × 32 × 16 on gfx950 and 16 × 16 × 32 on gfx1250. A step on a TPU is 256 × 256 × 256, and one `vmatmul` sends 16
# rows through an array of 128 × 128 on v5e, 256 × 256 on v6e. How many products has each wave in a step, on each of the five? Then look at the table, and explain the differences.
# /// answer
# Multiply-adds of the step, over those of one product, over the waves: {{ by_hand.gfx942:.0f}}, {{ by_hand.gfx950:.0f}} and {{ by_hand.gfx1250:.0f}}; on the TPUs {{ by_hand.v5e:.0f}} and {{ by_hand.v6e:.0f}}.
#
# /// table
# columns: [chip, by hand, in the listing, times]
# rows:
#   - [gfx942, "{{ by_hand.gfx942:.0f}}", "{{ gfx942.multiply_triton.products:.0f}}", "{{ gfx942.multiply_triton.products / by_hand.gfx942:.0f}}"]
#   - [gfx950, "{{ by_hand.gfx950:.0f}}", "{{ gfx950.multiply_triton.products:.0f}}", "{{ gfx950.multiply_triton.products / by_hand.gfx950:.0f}}"]
#   - [gfx1250, "{{ by_hand.gfx1250:.0f}}", "{{ gfx1250.multiply_triton.products:.0f}}", "{{ gfx1250.multiply_triton.products / by_hand.gfx1250:.0f}}"]
#   - [TPU v5e, "{{ by_hand.v5e:.0f}}", "{{ v5e.multiply_pallas.products:.0f}}", "{{ v5e.multiply_pallas.products / by_hand.v5e:.0f}}"]
#   - [TPU v6e, "{{ by_hand.v6e:.0f}}", "{{ v6e.multiply_pallas.products:.0f}}", "{{ v6e.multiply_pallas.products / by_hand.v6e:.0f}}"]
# ///
#
# On the TPUs the step stands in the listing once. On all of AMD's it stands there three times: the kernel asks for three stages, so that tiles are fetched early, and the last two steps are written out once more behind the loop, where nothing is left to fetch. So a count that is no multiple of yours is a
# question, and a count of nothing is an answer.
# ///
#
# ## What could not run here
#
# All of it: we have no card of AMD's and no TPU. On one you would see first whether the answer is right, and then the percent of *its* peak; no line of this page is a speed there. `nox -s chips` compiles everything again, on any machine.
#
# ## What next
#
# [Week 20](week_20.py) goes from one card to the links between many.
