# ---
# id: field_tpu
# title: "TPU: a systolic array, planned cycle by cycle"
# nav: TPU
# description: "What Google's TPUs do with our multiply and our attention: tiles, a grid of multipliers in which one matrix stays, and code in which every cycle is planned. Compiled here, not run."
# ---

# %% [markdown]
# # TPU: a systolic array, planned cycle by cycle
#
# By the end of this page you can
#
# - say what a systolic array saves, and which sizes it asks for;
# - find products, weights and copies in the code of a TPU;
# - predict what becomes of that code when the array grows.
#
# **In one sentence:** a TPU keeps a tile of one matrix still in a grid of multipliers, lets the other matrix flow through it,
# and has a compiler plan beforehand what happens in every cycle.
#
# /// figure | docs/assets/figures/tpu_array.svg
# alt: "HBM, then VMEM on the chip, then a grid of multipliers. A tile of B moves into the grid first and stays. Rows of A flow in from the left, sums come out below and go back to VMEM."
# caption: "A grid of 4 × 4 stands for one of 128 × 128, or of 256 × 256 from v6e on [^scaling-book]."
# ///
#
# /// callout | trip
# **Nothing on this page has run on a TPU.** *Compiled here, not run*: a compiler of Google's made the code, on a machine
# without a TPU, and the build counts it. *Cited*: a vendor says so. *Measured here*: on our own card, {{ gpu.name }}.
# ///

# %% tags=["fold"]
from course_chips.on_page import told
from course_kernels.measure import quantity, record

GROUPS = {
    "products": "vmatmul",  # rows of A go through the array
    "weights": "vmatpush",  # rows of B move into it
    "sums": "vpop.f32",  # results leave it
    "copies": ("dma.hbm_to_vmem", "dma.vmem_to_hbm"),
}
record(
    v5e=told("tpu_v5e", **GROUPS),
    v5p=told("tpu_v5p", **GROUPS),
    v6e=told("tpu_v6e", **GROUPS),
    tpu7x=told("tpu_7x", **GROUPS),
    filled={  # of the cells, by a matrix of 300 x 300
        "small": quantity(300**2 / (3 * 128) ** 2),
        "large": quantity(300**2 / (2 * 256) ** 2),
    },
)

# %% [markdown]
# ## What its compiler makes of our multiply
#
# We write the loop over tiles in Pallas, JAX's language for kernels, in `src/course_chips/tpu_multiply.py`. A step adds the product of two
# tiles of 256 × 256 to a tile of sums. There are no threads: a step has the core to itself.
#
# The compiler turns a step into *bundles*. All that stands in one bundle is begun in the same cycle; where nothing can begin, the
# bundle is empty. These are eight in a row, for v5e:
#
# /// text | v5e.multiply_pallas.excerpt
# ///
#
# Four arrays, `mxu0` to `mxu3`, work at a time. A `vmatmul` sends 16 rows of A through one of them. Beside it `vld` loads from
# VMEM, and the vector unit adds.
#
# /// predict | For v5e a step has {{ v5e.multiply_pallas.products:.0f}} products. On v6e an array is twice as wide and twice as deep. How many products has the same step there?
# - [v6e.multiply_pallas.products > 0.75 * v5e.multiply_pallas.products] As many
# - [0.375 * v5e.multiply_pallas.products < v6e.multiply_pallas.products <= 0.75 * v5e.multiply_pallas.products] Half as many
# - [v6e.multiply_pallas.products <= 0.375 * v5e.multiply_pallas.products] A quarter
# /// reveal
# {{ v6e.multiply_pallas.products:.0f}}. 256 × 256 weights fill four arrays of v5e and one of v6e, and 16 rows at a time go through.
#
# /// table
# turned: true
# columns: [one step of the multiply, bundles, "products, vmatmul", "weights, vmatpush", "sums, vpop"]
# rows:
#   - [v5e, "{{ v5e.multiply_pallas.lines:.0f}}", "{{ v5e.multiply_pallas.products:.0f}}", "{{ v5e.multiply_pallas.weights:.0f}}", "{{ v5e.multiply_pallas.sums:.0f}}"]
#   - [v5p, "{{ v5p.multiply_pallas.lines:.0f}}", "{{ v5p.multiply_pallas.products:.0f}}", "{{ v5p.multiply_pallas.weights:.0f}}", "{{ v5p.multiply_pallas.sums:.0f}}"]
#   - [v6e, "{{ v6e.multiply_pallas.lines:.0f}}", "{{ v6e.multiply_pallas.products:.0f}}", "{{ v6e.multiply_pallas.weights:.0f}}", "{{ v6e.multiply_pallas.sums:.0f}}"]
#   - [TPU7x, "{{ tpu7x.multiply_pallas.lines:.0f}}", "{{ tpu7x.multiply_pallas.products:.0f}}", "{{ tpu7x.multiply_pallas.weights:.0f}}", "{{ tpu7x.multiply_pallas.sums:.0f}}"]
# caption: "Compiled here, not run. Bundles include the copies around a step and the beginning and end of a tile."
# ///
# ///
#
# A matrix lies in HBM in tiles, too: `T(8,128)` in a layout of XLA's is a tile of 8 rows and 128 columns.

# %% [markdown]
# ## And of our attention {.beyond}
#
# The loop is that of [FlashAttention](../workshops/w1_flash_attention.py#softmax-one-crate-at-a-time): a running maximum, a running
# sum, tiles of K and V that pass by. Between two products the vector unit has a softmax to do.
#
# /// claim | v5e.attention_pallas.lines > 1.5 * v5e.multiply_pallas.lines and v5e.attention_pallas.products == v5e.multiply_pallas.products
# For v5e a step has {{ v5e.attention_pallas.products:.0f}} products in {{ v5e.attention_pallas.lines:.0f}} bundles. The multiply needs
# {{ v5e.multiply_pallas.lines:.0f}} bundles for as many products.
# /// otherwise
# For v5e a step has {{ v5e.attention_pallas.products:.0f}} products in {{ v5e.attention_pallas.lines:.0f}} bundles, and one of the multiply {{ v5e.multiply_pallas.products:.0f}} in {{ v5e.multiply_pallas.lines:.0f}}.
# ///
#
# /// claim | 2 * tpu7x.attention_pallas.products == v5e.attention_pallas.products
# For TPU7x there are {{ tpu7x.attention_pallas.products:.0f}}, half as many and not a quarter. Heads are 128 wide here, so they fill half of
# an array's width, or half of its depth.
# /// otherwise
# For TPU7x there are {{ tpu7x.attention_pallas.products:.0f}}.
# ///
#
# Both kernels were also run step by step on a CPU, in Pallas's interpreter. They were right, and a copy that we read too early was
# reported as a race.

# %% [markdown]
# ## More than one chip: topology, and JAX {.beyond}
#
# There is no switch between the chips of a pod. Each has links to its neighbours, called ICI: four on v5e and v6e, in a square of 16 × 16, and
# six on v5p, in a box of 16 × 20 × 28 [^scaling-book-links]. The ends of a row are joined again, so a row is a ring, and the whole a *torus*. That is the
# **topology** for which [the ring by hand](clusters.py#a-ring-by-hand) is made. What goes to a chip farther off hops over those between. And a
# job gets a part of the pod, a *slice*: on v5e a row of less than 16 has no link from end to end, which typically doubles the time of what is bound by bytes [^scaling-book-links].
#
# **JAX beyond one kernel:** you say how an array lies over the chips, and the compiler writes what each does, and the collectives. It is the same program for one chip and for a
# pod:
#
# ```python
# jax.set_mesh(jax.make_mesh((8,), ("chips",)))
# x = jax.device_put(x, jax.P(None, "chips"))     # x by columns, w by rows:
# w = jax.device_put(w, jax.P("chips", None))     # each chip has a part of every sum
# layer = jax.jit(lambda x, w: jnp.matmul(x, w, out_sharding=jax.P(None, None)))
# ```
#
# JAX has three styles: the compiler chooses, or you say how arrays lie and it does the rest, as here, or you write each device's part and its collectives, in `shard_map` [^jax-sharding]. For these lines XLA
# puts in one all-reduce; we looked, with JAX 0.10.2 and eight devices that a CPU pretends to be. The trap is in `jit`: a batch of another size is a new shape, and everything is compiled anew. Fill up to a few sizes.

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** where the work is large multiplies of the same sizes again and again. Weights stay while rows pass, and no
#   scheduler has to choose a warp.
# - **It trips** over sizes that change: for each new shape the whole program is compiled anew.
# - **It trips** over small or odd sizes: what does not fill the array is filled with zeros, and they take their cycles, too.
# - **It trips** over work that is no multiply. A core of v5e has one vector unit [^google-tpu-v5e], and no
#   thousand threads to hide a wait.

# %% [markdown]
# ## The numbers that matter
#
# Dense peaks of one chip, as Google prints them; the last column is the data sheet of our own card.
#
# | one chip | v5e [^google-tpu-v5e] | v5p [^google-tpu-v5p] | v6e [^google-tpu-v6e] | TPU7x [^google-tpu-7x] | {{ gpu.name }} |
# | --- | ---: | ---: | ---: | ---: | ---: |
# | bf16, TFLOP/s | {{ v5e.sheet.bf16_tflops:.0f}} | {{ v5p.sheet.bf16_tflops:.0f}} | {{ v6e.sheet.bf16_tflops:.0f}} | {{ tpu7x.sheet.bf16_tflops:.0f}} | {{ gpu.bf16_tflops:.0f}} |
# | HBM, GB/s | {{ v5e.sheet.gb_per_s:.0f}} | {{ v5p.sheet.gb_per_s:.0f}} | {{ v6e.sheet.gb_per_s:.0f}} | {{ tpu7x.sheet.gb_per_s:.0f}} | {{ gpu.gb_per_s:.0f}} |
# | HBM, GB | {{ v5e.sheet.memory_gb:.0f}} | {{ v5p.sheet.memory_gb:.0f}} | {{ v6e.sheet.memory_gb:.0f}} | {{ tpu7x.sheet.memory_gb:.0f}} | |
# | ridge in bf16, FLOP/B | {{ 1000 * v5e.sheet.bf16_tflops / v5e.sheet.gb_per_s:.0f}} | {{ 1000 * v5p.sheet.bf16_tflops / v5p.sheet.gb_per_s:.0f}} | {{ 1000 * v6e.sheet.bf16_tflops / v6e.sheet.gb_per_s:.0f}} | {{ 1000 * tpu7x.sheet.bf16_tflops / tpu7x.sheet.gb_per_s:.0f}} | {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} |
#
# The bandwidth of TPU7x is *approximately* that much [^bekman-accelerators]. *Measured here*, on {{ gpu.name }}: our multiply reaches
# {{ w2.burst.nn.n8192.tuned:.0f}} TFLOP/s, and our attention {{ w1.specialised.n4096.tflops:.0f}} TFLOP/s. For the TPUs we have no
# such line, and a compiler's estimate would not be one.
#
# ## What to type
#
# ```
# nox -s chips -- tpu
# ```
#
# That compiles for all four and rewrites the records that this page reads. These made them:
#
# /// text | v5e.compilers
# fold: "Compilers and their versions"
# ///
#
# **Where the course teaches it:** tiles that stay while others pass by, [rung 3 of the ladder](../lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory);
# a copy engine that works ahead, [one order for a whole tile](../workshops/w2_hopper.py#one-order-for-a-whole-tile); the
# ridge, [the first roofline](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
#
# /// exercise | A matrix of 300 columns | 4 minutes
# You multiply rows of A by a B of 300 × 300, on v5e with arrays of 128 × 128 and on v6e with arrays of 256 × 256. How many tiles of
# weights are there, and what part of their cells holds a number of yours?
# /// answer
# On v5e three tiles each way: 9 tiles, 384 × 384 cells, and 300 × 300 of them are yours, {{ filled.small:.0%}}. On v6e two tiles each way: 4
# tiles, 512 × 512 cells, {{ filled.large:.0%}}. A larger array asks for larger matrices.
# ///
