# ---
# id: week_15
# title: "Week 15: CUTLASS and CuTe"
# search: {rank: 2}
# nav: "15 · CuTe"
# description: "A layout cut into tiles without a line of index arithmetic, checked by the build; a multiply out of CUTLASS's catalogue against cuBLAS and Triton; and what an epilogue of your own is worth."
# ---

# %% [markdown]
# # Week 15: CUTLASS and CuTe
#
# /// week
# ///
#
# By the end of this week you can
#
# - cut a matrix into tiles by dividing its layout, and say where each number went;
# - read a multiply in CUTLASS, and put bias and ReLU into its epilogue;
# - say before you write it what that epilogue can save.
#
# ## Why this week
#
# On the way to peak most of the lines that you write are index arithmetic, and most of the bugs are in them. CUTLASS is a catalogue of the parts of a multiply, and CuTe the algebra that does the indices. The question stays what percent of peak you get, why not more,
# and now also: for how many lines, and how many seconds of compiling?
#
# ## Before you begin
#
# - What is a block tile, and why is there one? [L4](../lectures/l4_the_gemm_ladder.py#the-words-for-tiles).
# - What does a layout (4, 8) : (8, 1) do with a coordinate? [W3](../workshops/w3_abstraction_ladder.py#a-layout-is-a-measuring-cup), with a lab.
# - Which copies run beside the work since Ampere? [Week 14](week_14.py), or [L6](../lectures/l6_tensor_cores.py#mmasync-no-waiting).
#
# ## Read
#
# /// reading
# cutlass-2017: "Take the picture of the hierarchy: tiles of a block, of a warp, of a thread. It is of 2017 and of CUTLASS before its first release; its own first line says how much has changed since. Its classes are not those of today."
# cutlass-cute: "Take why a layout became the one idea under everything, and how a tile of threads and a tile of data are the same kind of thing. It announces the fourth version: the same ideas from Python."
# pytorch-pingpong: "Take the eleven steps of the loop, and who works on which tile of C. Its sentence on registers says that a producer's are reduced *by* 40; further down it says that they are reduced *to* 40, and that is right."
# cutlass-academy: "A list of links, by subject. Take the layouts from CUTLASS's own pages first. One thing in it is the wrong way round: CuTe is not built on CUTLASS, CUTLASS since its third version is built on CuTe."
# ///
#
# ## Ideas
#
# - What do the words of a CUTLASS kernel mean? [CUTLASS, word for word](../workshops/w3_abstraction_ladder.py#cutlass-word-for-word).
# - Why producers and consumers, and what is a pipeline's barrier? [Roles](../workshops/w2_hopper.py#roles), or *warp specialisation*. CUTLASS's `PipelineAsync`, with TMA `PipelineTmaAsync`, is that ring: *acquire* waits for an empty place, *release* gives one back.
#
# /// idea | What is CUTLASS, and what changed from 2.x to 4.x?
# Templates in CUDA C++ out of which you put together a multiply or a convolution: types, tile, schedule, epilogue. In 2.x each level of the hierarchy had its own classes of iterators. 3.x put one idea under all of it, the layouts of CuTe. And 4.x, which texts of last year do not know, has the same
# layouts and instructions in Python, the CuTe DSL [^cutlass-dsl].
# ///
#
# /// idea | How does CuTe do away with index arithmetic?
# A layout is a function from a coordinate to an address, written shape : stride, and a coordinate may be nested. So *cut into tiles of 64* is not a loop with offsets but a division: the shape (M, K) becomes ((64, M / 64), (64, K / 64)), the strides follow, and *tile (i, j)* is a coordinate like any other. Divide
# a second time, and the same words say which thread has which number. The first division is done below.
# ///
#
# /// idea | What are CollectiveMma, CollectiveEpilogue and GemmUniversal?
# The three parts of a kernel in 3.x. A *collective* is what a block's threads do together: `CollectiveMma` is the mainloop, with its copies and its ring; `CollectiveEpilogue` takes the sums on their way out of the registers. `GemmUniversal` puts both into one kernel, with a scheduler that hands out tiles. You name
# types, a tile and a schedule, and a *builder* picks the parts.
# ///
#
# /// idea | Cooperative, or ping-pong?
# Both have a warpgroup that orders and two that multiply. *Cooperative*: the two share a tile of C, so it may be twice as large. *Ping-pong*: each has a tile of its own, and one multiplies while the other is in its epilogue [^pytorch-pingpong]. A large epilogue speaks for ping-pong, a long K for cooperative. [Week 16](week_16.py#ideas) says what ping-pong hides.
# ///
#
# /// idea | CUTLASS or Triton?
# Ask first whether a library call is near enough to what binds; then whether a tool of tiles is; [W3 has a rule](../workshops/w3_abstraction_ladder.py#your-rule) and the rows it rests on. Often you read that most kernels of vLLM and FlashAttention are CUTLASS. FlashAttention-3 is [^dao-repo]. vLLM is a mixture: CUTLASS for products in 8 bits,
# Triton for mixtures of experts, FlashInfer among its ways to attention [^vllm-repo].
# ///
#
# ## Do
#
# ### A division {#a-division}
#
# A layout by hand, in a dozen lines. `place` is all there is to a layout; `divide` cuts it. Then the build takes a matrix of 256 × 192, stored row by row, and compares every tile with what slices and offsets give.

# %%
import numpy as np
from course_kernels.measure import quantity, record


def place(stride, coordinate):
    """Return the address: each number of a coordinate, however nested, times its stride."""
    if isinstance(stride, int):
        return stride * coordinate
    return sum(place(s, c) for s, c in zip(stride, coordinate, strict=True))


def divide(shape, stride, tile):
    """Cut each axis into (inside a tile, which tile): a layout of the same numbers."""
    axes = list(zip(shape, stride, tile, strict=True))
    return [(t, n // t) for n, _, t in axes], [(s, s * t) for _, s, t in axes]


M, K, TILE = 256, 192, (64, 64)
store = np.arange(M * K)  # what lies at each address
shape, stride = divide((M, K), (K, 1), TILE)

agree = 0
for i in range(shape[0][1]):
    for j in range(shape[1][1]):
        tile = [
            [store[place(stride, ((r, i), (c, j)))] for c in range(TILE[1])]
            for r in range(TILE[0])
        ]
        rows, columns = i * TILE[0], j * TILE[1]  # and the same by offsets
        slow = store.reshape(M, K)[rows:, columns:][: TILE[0], : TILE[1]]
        agree += np.array_equal(tile, slow)
record(
    tiles={
        "all": quantity(shape[0][1] * shape[1][1], how="counted"),
        "agree": quantity(agree, how="counted"),
        "inside": quantity(stride[0][0], how="counted"),
        "down": quantity(stride[0][1], how="counted"),
        "right": quantity(stride[1][1], how="counted"),
    }
)

# %% [markdown]
# /// predict | The layout is (256, 192) : (192, 1). After the division, what is the stride from a tile to the one below it?
# - [tiles.down < 1000] Less than a thousand
# - [1000 <= tiles.down < 20000] Some twelve thousand
# - [tiles.down >= 20000] All the numbers of the tiles between
# /// reveal
# {{ tiles.down:,.0f}}: 64 rows of 192. Inside a tile a row is still {{ tiles.inside:.0f}}, and the tile to the right is {{ tiles.right:.0f}} further. All {{ tiles.all:.0f}} tiles were compared, and {{ tiles.agree:.0f}} are the same.
# ///
#
# ### A multiply from the catalogue
#
# Often the task is: `GemmUniversal` with bias and ReLU in its epilogue, against cuBLAS and Triton. Here the race is that of the plain product, since it is on record, and the epilogue follows below: compiled, and not run. This is the kernel, without its launch:
#
# /// source | src/course_kernels/gemm/in_cutlass.cu#kernel
# ///
#
# /// when | w3.lines.cutlass.kernel > 0
# /// predict | At 4096 each way in bf16: how does Triton's kernel do against this one?
# - [w3.burst.n4096.triton < 0.9 * w3.burst.n4096.cutlass] It is slower by a tenth or more
# - [0.9 * w3.burst.n4096.cutlass <= w3.burst.n4096.triton < 1.1 * w3.burst.n4096.cutlass] Within a tenth
# - [w3.burst.n4096.triton >= 1.1 * w3.burst.n4096.cutlass] It is faster by a tenth or more
# /// reveal
# {{ w3.burst.n4096.triton / w3.burst.n4096.cutlass:.3f}} times its speed.
#
# /// table
# columns: ["4096 each way, bursts", "TFLOP/s", "% of peak", lines on the card, "first call, s"]
# rows:
#   - [CUTLASS C++, "{{ w3.burst.n4096.cutlass:.0f}}", "{{ w3.burst.n4096.cutlass / w3.sheet.bf16:.0%}}", "{{ w3.lines.cutlass.kernel:.0f}}", "{{ w3.first.cutlass.cold:.1f}}"]
#   - [Triton, "{{ w3.burst.n4096.triton:.0f}}", "{{ w3.burst.n4096.triton / w3.sheet.bf16:.0%}}", "{{ w3.lines.triton.kernel:.0f}}", "{{ w3.first.triton.cold:.1f}}"]
#   - [cuBLAS, "{{ w3.burst.n4096.cublas:.0f}}", "{{ w3.burst.n4096.cublas / w3.sheet.bf16:.0%}}", "", ""]
# ///
#
# /// claim | 0.9 < w3.burst.n4096.triton / w3.burst.n4096.cutlass < 1.1 and 0.9 < w3.burst.n4096.cutlass / w3.burst.n4096.cublas < 1.1 and w3.first.cutlass.cold > 14 * w3.first.triton.cold
# On this shape CUTLASS and Triton are level, and CUTLASS is level with cuBLAS. So speed is no reason to take CUTLASS for a plain product; an epilogue, a type or a schedule that the others do not have may be. What it costs is the compiler: {{ w3.first.cutlass.cold:.0f}} s for the first call, where Triton takes {{ w3.first.triton.cold:.1f}} s.
# /// otherwise
# CUTLASS has {{ w3.burst.n4096.cutlass / w3.burst.n4096.cublas:.2f}} of cuBLAS's speed, Triton {{ w3.burst.n4096.triton / w3.burst.n4096.cublas:.2f}}.
# ///
# ///
# /// otherwise
# Nobody has raced it on this card yet: [W3](../workshops/w3_abstraction_ladder.py#one-multiply-on-every-rung) does, against Triton's kernel and cuBLAS. Ask two things of it: is one of the two quicker by more than a tenth, and how long do you wait for the first call?
# ///
#
# ### Bias and ReLU
#
# Three lines change. In the epilogue, the last argument of the builder; in the signature of `multiply` a pointer more; and before it runs, that pointer:
#
# ```cpp
# cutlass::epilogue::fusion::LinCombPerColBiasEltAct<
#     cutlass::epilogue::thread::ReLu, Type, float, Type>
#
# const void *bias
#
# arguments.epilogue.thread.bias_ptr = static_cast<const Type *>(bias);
# ```
#
# The trap is in one word. *PerRow* means a number for each of M rows; a bias of PyTorch's has a number for each of N columns. `LinCombPerRowBiasEltAct` stands beside it in the catalogue, and would read past the end of what you gave it, or add the wrong number; on a square matrix nothing complains.
# We compiled the lines above for sm_90a, with the headers that this project pins; nobody has run what came out.
#
# ## Milestone
#
# The milestone of weeks 15 to 17 stands in week 17. This one is from the task above.
#
# /// exercise | What is an epilogue worth? | 10 minutes
# Without one, a second kernel reads C and writes it again, two bytes a number each way. Divide its floor, bytes over bandwidth, by the floor of the multiply, operations over peak, for an M × N × K product. What stays in the formula? What is it for K = 4096 and K = 512 on our card?
# /// answer
# The second kernel moves 4 bytes for each number of C, the multiply does 2 K operations for it. So the share is (4 / bandwidth) ÷ (2 K / peak) = 2 · ridge ÷ K: M and N fall out. The ridge of this card is {{ 1000 * gpu.bf16_tflops / gpu.gb_per_s:.0f}} FLOP/B. For K = 4096 that is {{ share.long:.0%}}, and for K = 512 {{ share.short:.0%}}.
#
# So a fused epilogue is worth little behind a long K and much behind a short one, and it is worth more on every card whose ridge is higher. It saves one more rounding and one more launch, too. What it may cost is registers, and then the tile.
# ///
#
# /// define | share.long = 2 * 1000 * gpu.bf16_tflops / gpu.gb_per_s / 4096
# unit: "1"
# what: floor of reading and writing C again over the floor of the multiply, K = 4096, bf16
# ///
#
# /// define | share.short = 2 * 1000 * gpu.bf16_tflops / gpu.gb_per_s / 512
# unit: "1"
# what: floor of reading and writing C again over the floor of the multiply, K = 512, bf16
# ///
#
# ## What could not run here
#
# The kernel with bias and ReLU: it was compiled for a Hopper card, and not run. On one you would race it against the plain one and against the plain one with a second kernel behind it, at K = 512 and at 4096, and see whether the formula holds.
#
# ## What next
#
# [Week 16](week_16.py) writes the same multiply without the catalogue.
