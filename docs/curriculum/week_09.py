# ---
# id: week_09
# title: "Week 9: Triton, the foundations"
# search: {rank: 2}
# nav: "9 · Triton"
# description: "Programs, blocks and masks in Triton; and a fused activation, SiLU: what it can save, worked out from bytes, and what it saved on the card, beside PyTorch and its compiler."
# needs: gpu
# ---

# %% [markdown]
# # Week 9: Triton, the foundations
#
# /// week
# ///
#
# By the end of this week you can
#
# - write a kernel in Triton with programs, blocks and masks, and run it without a GPU;
# - say before you fuse two operators how much there is to save;
# - say which percent of the bandwidth your kernel reaches, and whether more is to be had.
#
# ## Why this week
#
# Most of a model's operators only carry numbers: read, a little arithmetic, write. For those the roof is the bandwidth, and PyTorch, one operator after another, crosses it again and again with the same
# tensor. Triton is the shortest road to a kernel that does not.
#
# ## Before you begin
#
# - What is a block of threads, and what happens past the end of the list? In Triton a *program* is what a block is there, and a *block* of numbers is what it holds. [Week 2](week_02.py), or [L2](../lectures/l2_the_cuda_model.py#who-am-i).
# - Why do neighbouring lanes want neighbouring addresses? [L3](../lectures/l3_memory.py#ask-for-neighbours).
# - What is arithmetic intensity? [Week 1](week_01.py), or [L1](../lectures/l1_what_a_gpu_is.py#the-first-roofline).
#
# ## Read
#
# /// reading
# tillet2019: "The paper is from before tensor cores had its attention, and its language was close to C. Take the idea that the unit is a block and not a thread. The language that you will write is younger."
# triton-tutorials: "Three of the tutorials: 01, vector add [^triton-vector-add]; 02, fused softmax [^triton-softmax]; 03, the multiply, to which the link above leads. Type them. Then read the same three here, with their numbers: [Triton for NumPy people](../triton_for_numpy_people.py), [L5](../lectures/l5_the_top_of_the_ladder.py)'s ladder, and [W3](../workshops/w3_abstraction_ladder.py#one-multiply-on-every-rung)."
# adil2024: "A first walk through the language, in place of an article that lists name and that we could not find. It has one thing more than the tutorials: how to look for faults in a kernel on the CPU. Read it if they went too fast."
# ///
#
# ## Ideas
#
# /// idea | What does Triton compile to?
# Your Python is read as text and becomes an intermediate language of blocks, and then one in which each block has a layout: which thread of which warp holds which number. From there it is LLVM, PTX,
# and machine code. So *Python that compiles to PTX* is right, and leaves out the step where the speed is decided. On an AMD card the last two steps are others. [W3](../workshops/w3_abstraction_ladder.py#what-the-compiler-wrote) reads the end of the road.
# ///
#
# - `tl.program_id`, `tl.load`, `tl.store`: [one call, many programs](../triton_for_numpy_people.py#one-call-many-programs), and [a pointer and a row of numbers](../triton_for_numpy_people.py#a-pointer-and-a-row-of-numbers-are-a-row-of-places).
#
# /// idea | What does the size of a block decide?
# How much a program holds at once. A block of numbers lies in the registers of its warps; tiles of a multiply wait in shared memory, a few of them at a time. Both are limits of a multiprocessor: twice the block, and half as many
# programs fit beside one another. That is [occupancy](../lectures/l3_memory.py#how-many-must-be-walking), and more of it is not always better.
# ///
#
# - Masks: [keep off what is not yours](../triton_for_numpy_people.py#masks-keep-off-what-is-not-yours).
# - `tl.dot`: [and the digits it leaves out](../triton_for_numpy_people.py#tldot-and-the-digits-it-leaves-out).
#
# /// idea | What does `@triton.autotune` do?
# It gets a list of configurations, tries each on your inputs the first time a key such as a size appears, and keeps the best. The price is paid on that first call, and the answer is as good as the clock that chose it: a warm cache, or
# another job on the card, chooses for you. This course's kernels do not tune while they run. A sweep is made once, and its table kept.
# ///
#
# /// idea | Why fuse what stands beside a multiply?
# A product comes out of the registers of a kernel. An activation behind it, in a kernel of its own, writes that product to memory and reads it back: two trips of the whole tensor for one operation a number. In the
# multiply's *epilogue*, which is what it does with a tile before it stores it, the trips are gone. [Many experts](../many_experts.py#from-a-loop-to-five-kernels) does so, [W4](../workshops/w4_serving.py#two-kernels-or-one) has the two operators as one kernel beside the multiply, and [the guide](../field_guide/fusion.md) what compilers do by themselves.
# ///
#
# ## Do
#
# Write SiLU, `x * sigmoid(x)`, as a kernel in Triton: one program a block, a mask at the end. Make what you load fp32 with `.to(tl.float32)`, since `tl.exp` takes no bf16; a store makes it bf16 again. Check it in the [interpreter](../triton_for_numpy_people.py#the-interpreter) first, in fp32, with a length that no block divides. But before you type, count. As two operators it is a sigmoid, which reads and writes,
# and a product, which reads two tensors and writes one: {{ trips.two:.0f}} trips of the tensor to memory and back. In one kernel it is read once and written once: {{ trips.fused:.0f}}.
#
# So by bytes SiLU can become {{ saves.silu:.1f}} times as quick as its two operators, if all kernels reach the same share of the bandwidth. `torch.nn.functional.silu` is one kernel already, and so is what `torch.compile` makes of the two: against them there is nothing to gain but what
# they leave of the bandwidth.
#
# We did it with {{ size.numbers / 1e6:.0f}} million numbers in bf16, {{ size.mb:.0f}} MB, far more than the card's second cache holds. Each of the four is checked against double precision, then they take turns.

# %% tags=["fold"]
from course_kernels.measure import compare, quantity, record
from course_kernels.silu import k01_fused, library
from course_kernels.silu.problem import PROBLEM

(JOB,) = PROBLEM.time_on  # 2**27 numbers in bf16
TWO_OPERATORS, FUSED = 2 + 3, 2  # trips of the tensor
MB = JOB.N * JOB.element_bytes / 1e6
FIELD = {
    "two": library.two_operators,
    "torch": library.one_operator,
    "compiled": library.compiled,
    "ours": k01_fused,
}

record(
    race=compare(FIELD, JOB, seconds=0.3),
    size={
        "numbers": quantity(JOB.N, how="counted"),
        "mb": quantity(MB, "MB"),
        "ours_mb": quantity(FUSED * MB, "MB"),
        "eager_mb": quantity(TWO_OPERATORS * MB, "MB"),
    },
    trips={
        "two": quantity(TWO_OPERATORS, how="counted"),
        "fused": quantity(FUSED, how="counted"),
    },
    saves={"silu": quantity(TWO_OPERATORS / FUSED)},
)

# %% [markdown]
# /// predict | By bytes, one kernel can be {{ saves.silu:.1f}} times as quick as two operators. How much of that was there in ours?
# - [race.two.us / race.ours.us < 0.8 * saves.silu] Less than four fifths of it
# - [0.8 * saves.silu <= race.two.us / race.ours.us < 1.2 * saves.silu] About all of it
# - [race.two.us / race.ours.us >= 1.2 * saves.silu] More
# /// reveal
# {{ race.two.us / race.ours.us:.2f}} times: {{ race.two.us:.0f}} µs became {{ race.ours.us:.0f}}.
# ///
#
# Here is ours, to hold yours against.
#
# /// source | src/course_kernels/silu/k01_fused.py#kernel
# ///
#
# Why not more? Hold it against [a plain copy](../how_we_measure.py): that reaches {{ measured.copy.gib4.torch.of_peak:.0%}} of the same bandwidth. It is a yardstick and no bound: reads and writes in another proportion may get a little more. The course's model has SiLU's gated sister, `silu(gate) * up`:
# five trips against three, and [W4](../workshops/w4_serving.py#two-kernels-or-one) measures it.
#
# /// predict | PyTorch's own SiLU, the compiled one and ours move the same bytes. How much longer does the slowest of them take than the quickest?
# - [max(race.torch.us, race.compiled.us, race.ours.us) < 1.2 * min(race.torch.us, race.compiled.us, race.ours.us)] Less than a fifth
# - [1.2 * min(race.torch.us, race.compiled.us, race.ours.us) <= max(race.torch.us, race.compiled.us, race.ours.us) < 1.5 * min(race.torch.us, race.compiled.us, race.ours.us)] A fifth to a half
# - [max(race.torch.us, race.compiled.us, race.ours.us) >= 1.5 * min(race.torch.us, race.compiled.us, race.ours.us)] More
# /// reveal
# The slowest takes {{ max(race.torch.us, race.compiled.us, race.ours.us) / min(race.torch.us, race.compiled.us, race.ours.us):.2f}} times as long.
#
# /// table
# columns: ["SiLU, bf16", trips, "time, µs", "% of bandwidth"]
# rows:
#   - ["a sigmoid, then a product", "{{ trips.two:.0f}}", "{{ race.two.us:.0f}}", "{{ race.two.of_peak:.0%}}"]
#   - ["torch.nn.functional.silu", "{{ trips.fused:.0f}}", "{{ race.torch.us:.0f}}", "{{ race.torch.of_peak:.0%}}"]
#   - ["torch.compile, of the two", "{{ trips.fused:.0f}}", "{{ race.compiled.us:.0f}}", "{{ race.compiled.of_peak:.0%}}"]
#   - ["ours", "{{ trips.fused:.0f}}", "{{ race.ours.us:.0f}}", "{{ race.ours.of_peak:.0%}}"]
# caption: "The percentage counts two trips in each row, the least that SiLU needs, against the bandwidth on the data sheet. {{ gpu.name }}."
# ///
# ///
#
# ## Milestone
#
# The milestone of this week comes with the next, in [week 10](week_10.py#milestone): LayerNorm, in one pass over memory. Do this one on the way.
#
# /// exercise | Your SiLU, before it runs | 10 minutes
# You have 2²⁷ numbers in bf16. How many bytes does your kernel move, and how many do the two operators? Divide both by what a copy reaches on your card: here that is {{ measured.copy.gib4.torch.gb_per_s:,.0f}} GB/s. Your clock then says less than that. What do you say?
# /// answer
# One tensor is 268 MB. Yours moves 2 of them, 537 MB: {{ size.ours_mb / measured.copy.gib4.torch.gb_per_s * 1000:.0f}} µs. The two operators move 5, which is 1342 MB: {{ size.eager_mb / measured.copy.gib4.torch.gb_per_s * 1000:.0f}} µs. These are times at the rate of a copy. A clock that says a little less may be right, for a copy is no bound. One that says less than the data sheet's bandwidth allows has measured a cache, or has stopped before the work was done.
# ///
#
# ## What could not run here
#
# Nothing: all four ran, on the card named under the title. Without a GPU the interpreter tells whether your kernel is right in fp32; bf16 has [its own rules there](../triton_for_numpy_people.py#the-interpreter). With one, time it as [How we measure](../how_we_measure.py#the-clock) says.
#
# ## What next
#
# [Week 10](week_10.py) lets a compiler write such kernels, and reads what it wrote.
