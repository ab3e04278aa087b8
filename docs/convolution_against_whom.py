# ---
# id: conv_record
# title: "A convolution against whom?"
# section: The evidence
# order: 6
# description: "A published record for a convolution, timed again on this card: in two kinds of work, against four rivals, at three sizes; and where our own kernel of the same idea loses."
# needs: gpu
# ---

# %% [markdown]
# # A convolution against whom?
#
# By the end of this page you can
#
# - ask a record of speed four questions: of what, against whom, at which size, with which tolerance;
# - say what PyTorch's fp32 convolution may do with your digits, and which switch decides;
# - say what a figure for one size leaves open at the next.
#
# You need to know what [a convolution is as a multiply](field_guide/convolution.py#a-multiply-in-disguise), and what [fewer bits](lectures/l6_tensor_cores.py#shorter-numbers) cost and buy.
#
# ## A headline
#
# In May 2025 a group published kernels that a machine had found, on an L40S, each at one fixed size. Conv2D had 180 % of PyTorch's speed [^crfm2025]. [The last workshop](workshops/w6_frontier.py#the-autopsy-of-a-record) opens their LayerNorm.
# This page opens the convolution.
#
# ## Is it the same work?
#
# /// exercise | Conv2D against whom? | 5 minutes
# 100 images of 3 × 224 × 224, 96 filters of 11 × 11, a stride of 4 and 2 numbers of padding [^good-kernels]. The published kernel rounds every number to float16 on its way to shared memory, and multiplies on tensor cores [^good-kernels]. The yardstick was PyTorch's fp32, and the tolerance one in a hundred [^crfm2025].
# What else do you have to know of PyTorch before you may divide? And would bfloat16 have passed?
# /// answer
# Whether PyTorch rounds, too: cuDNN may take TF32, which has as many bits as float16, if a switch lets it. And yes: with weights as PyTorch draws them bfloat16 stays within that tolerance, though it keeps fewer bits than either. Such a tolerance does not ask for fp32.
# ///
#
# /// when | peer.tf32_by_default == 1
# In the PyTorch of this run that switch, `torch.backends.cudnn.allow_tf32`, is on unless you turn it off.
# /// otherwise
# In the PyTorch of this run that switch, `torch.backends.cudnn.allow_tf32`, is off unless you turn it on.
# ///
#
# ## Two kinds of work
#
# So there are two kinds of work, and each has its own row of rivals and its own tolerance: 11 bits, and all 24.
#
# /// predict | The published convolution, once with TF32 allowed and once in fp32, by the same library: how many times as long does fp32 take?
# - [layers.exact.published.eager.us < 1.8 * layers.rough.published.eager.us] Less than twice as long
# - [1.8 * layers.rough.published.eager.us <= layers.exact.published.eager.us < 4 * layers.rough.published.eager.us] About 2 or 3 times
# - [layers.exact.published.eager.us >= 4 * layers.rough.published.eager.us] 4 times or more
# /// reveal
# {{ layers.exact.published.eager.us:,.0f}} µs in fp32, {{ layers.rough.published.eager.us:,.0f}} µs with TF32 allowed.
#
# /// table
# columns: ["µs", "the published one", "64 channels, 56 × 56", "256 channels, 14 × 14"]
# rows:
#   - ["**11 bits:** PyTorch, eager", "{{ layers.rough.published.eager.us:,.0f}}", "{{ layers.rough.wide.eager.us:,.0f}}", "{{ layers.rough.deep.eager.us:,.0f}}"]
#   - ["cuDNN's best of all", "{{ layers.rough.published.cudnn.us:,.0f}}", "{{ layers.rough.wide.cudnn.us:,.0f}}", "{{ layers.rough.deep.cudnn.us:,.0f}}"]
#   - ["the same, channels last, with the copies", "{{ layers.rough.published.last.us:,.0f}}", "{{ layers.rough.wide.last.us:,.0f}}", "{{ layers.rough.deep.last.us:,.0f}}"]
#   - ["torch.compile", "{{ layers.rough.published.compile.us:,.0f}}", "{{ layers.rough.wide.compile.us:,.0f}}", "{{ layers.rough.deep.compile.us:,.0f}}"]
#   - ["ours, Triton", "{{ layers.rough.published.ours.us:,.0f}}", "{{ layers.rough.wide.ours.us:,.0f}}", "{{ layers.rough.deep.ours.us:,.0f}}"]
#   - ["**fp32:** PyTorch, eager", "{{ layers.exact.published.eager.us:,.0f}}", "{{ layers.exact.wide.eager.us:,.0f}}", "{{ layers.exact.deep.eager.us:,.0f}}"]
#   - ["cuDNN's best of all", "{{ layers.exact.published.cudnn.us:,.0f}}", "{{ layers.exact.wide.cudnn.us:,.0f}}", "{{ layers.exact.deep.cudnn.us:,.0f}}"]
#   - ["ours, Triton", "{{ layers.exact.published.ours.us:,.0f}}", "{{ layers.exact.wide.ours.us:,.0f}}", "{{ layers.exact.deep.ours.us:,.0f}}"]
# caption: "Convolutions with bias, 100 images in the first column and 64 in the others, whose filters are 3 × 3. *Best of all*: cuDNN times its algorithms once and keeps one. The same inputs in the same rounds, for each column and kind of work."
# ///
#
# /// when | peer.here == 1
# The published convolution takes {{ layers.rough.published.crfm.us:,.0f}} µs, compiled for this card. Against eager in fp32 that is {{ layers.exact.published.eager.us / layers.rough.published.crfm.us:.0%}}, which is not the same work. Against eager with TF32 it is {{ layers.rough.published.eager.us / layers.rough.published.crfm.us:.0%}}, against cuDNN's best
# {{ layers.rough.published.cudnn.us / layers.rough.published.crfm.us:.0%}}, and against `torch.compile` {{ layers.rough.published.compile.us / layers.rough.published.crfm.us:.0%}}. With 64 channels of 56 × 56 it is {{ layers.rough.wide.eager.us / layers.rough.wide.crfm.us:.0%}} of eager with TF32, and {{ layers.rough.deep.eager.us / layers.rough.deep.crfm.us:.0%}} with 256 channels.
# /// otherwise
# The published convolution was **not raced** in this run.
# ///
#
# /// claim | layers.rough.wide.ours.us > 1.8 * layers.rough.wide.cudnn.us
# **And a loss.** Our convolution has the same idea as the published one. At the published size it takes {{ layers.rough.published.ours.us:,.0f}} µs, and cuDNN's best {{ layers.rough.published.cudnn.us:,.0f}}; with 64 channels and filters of 3 × 3 it takes {{ layers.rough.wide.ours.us / layers.rough.wide.cudnn.us:.1f}} times as long as cuDNN's best. It works out an address for every number.
# /// otherwise
# Our convolution has the same idea as the published one; at the published size it takes {{ layers.rough.published.ours.us:,.0f}} µs, and cuDNN's best {{ layers.rough.published.cudnn.us:,.0f}}.
# ///
# ///

# %% tags=["fold"]
import torch
from course_kernels.conv2d import k01_implicit_gemm
from course_kernels.conv2d import library as conv_library
from course_kernels.measure import compare, quantity, record
from course_kernels.problem import Workload

# The published size, and two ordinary ones.
LAYERS = {
    "published": {
        "B": 100,
        "C": 3,
        "H": 224,
        "W": 224,
        "K": 96,
        "R": 11,
        "S": 11,
        "STRIDE": 4,
        "PAD": 2,
    },
    "wide": {"B": 64, "C": 64, "H": 56, "W": 56, "K": 64, "R": 3, "S": 3, "PAD": 1},
    "deep": {
        "B": 64,
        "C": 256,
        "H": 14,
        "W": 14,
        "K": 256,
        "R": 3,
        "S": 3,
        "PAD": 1,
    },
}
THEIRS = conv_library.CRFM.at_hand()
EXACT = {
    "eager": conv_library.torch_eager,
    "cudnn": conv_library.cudnn,
    "ours": k01_implicit_gemm,
}
ROUGH = {
    **EXACT,
    "last": conv_library.cudnn_channels_last,
    "compile": conv_library.torch_compile,
    **({"crfm": conv_library.crfm} if THEIRS else {}),
}
record(
    peer={
        "here": quantity(int(THEIRS)),
        "tf32_by_default": quantity(
            int(torch.backends.cudnn.allow_tf32), how="device"
        ),
    },
    layers={
        kind: {
            name: compare(
                field, Workload.of("float32", **size, **flag), seconds=0.2
            )
            for name, size in LAYERS.items()
        }
        for kind, field, flag in (
            ("exact", EXACT, {}),
            ("rough", ROUGH, {"tf32": True}),
        )
    },
)

# %% [markdown]
# ## Before you go
#
# /// exercise | Fill in the four boxes | 5 minutes
# *Our convolution reaches so and so many per cent of the library.* Take the column with 64 channels of 56 × 56 from the table, and write that sentence so that nobody can misread it: of what, against whom, at which size, with which tolerance. Then write it once more, in fp32. Which of the two would you print on a slide, and what would you have to say beside it?
# /// answer
# *With TF32 allowed, 11 bits of each factor, our Triton convolution of 64 channels of 56 × 56 has {{ layers.rough.wide.cudnn.us / layers.rough.wide.ours.us:.0%}} of the speed of cuDNN's best algorithm.* In fp32, all 24 bits, it has
# {{ layers.exact.wide.cudnn.us / layers.exact.wide.ours.us:.0%}} of cuDNN's best there. Either may stand on a slide, if the kind of work stands in the same line. The larger of the two alone is how records are made.
# ///
#
# **Where this leads.** [Six kernels that a machine wrote](workshops/w6_frontier.py#six-kernels-that-a-machine-wrote) are judged by the same four boxes. [A convolution, tile by tile](field_guide/convolution.py) says how ours works.
