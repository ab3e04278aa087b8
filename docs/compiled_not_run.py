# ---
# id: compiled_not_run
# title: "Compiled, not run: Blackwell's own instructions"
# nav: Compiled, not run
# section: Beside the road
# order: 8
# description: Four kernels for a card that we do not have, read as machine code. One thread multiplies, two blocks multiply as one, and the tensor core scales four-bit numbers itself.
# ---

# %% [markdown]
# # Compiled, not run: Blackwell's own instructions
#
# By the end of this page you can
#
# - find in machine code who multiplies on a data-centre Blackwell, who waits, and where the sums are;
# - say what a pair of blocks shares, and what a block scale costs in instructions;
# - tell a kernel that was *compiled* from one that was *run*, and ask for the difference when somebody shows you a listing.
#
# /// callout | trip
# **Nothing on this page has run on such a card.** We have none. A compiler made these kernels for one, a disassembler shows
# what they became, and the build counts the instructions. So the page says what is *there*, and never how fast it is. Our
# CPU's model of the instructions, written from NVIDIA's document [^ptx-isa], says that the answers are right. A card has
# the last word.
# ///
#
# You need [the page on Hopper](workshops/w2_hopper.py): the copy engine, the mbarrier, and roles are the same here.

# %% tags=["fold"]
import json

from course_kernels.blackwell import machine_code
from course_kernels.measure import quantity, record, text

kept = json.loads(machine_code.KEPT.read_text())
made_by = kept.pop("compilers")


def stems(counts):
    """The counts by the first part of each name: UTCHMMA.2CTA counts as UTCHMMA."""
    found = dict.fromkeys(NAMES, 0)
    for name, count in counts.items():
        found[name.partition(".")[0]] += count
    return found


NAMES = (
    *("UTCHMMA", "UTCOMMA", "UTCQMMA", "UTCCP", "UTCBAR", "UTCATOMSWS"),
    *("LDTM", "UTMALDG", "UBLKCP", "F2FP"),
)
record(
    code={
        kernel: {
            "all": quantity(one["instructions"], how="counted"),
            **{
                name: quantity(count, how="counted")
                for name, count in stems(one["counts"]).items()
            },
        }
        for kernel, one in kept.items()
    },
    listing={
        kernel: text("\n".join(kept[kernel]["lines"]))
        for kernel in ("one_block", "pair", "nvfp4")
    },
    compilers=text(made_by),
)

# %% [markdown]
# ## One thread multiplies
#
# On Hopper the 128 threads of a warpgroup ask for a product together, and the sums are in their registers. Here one thread
# asks. The sums are in a memory of the tensor core's own, **tensor memory**: 128 lanes of 512 columns. A block asks for
# columns before it multiplies, and gives them back before it ends.
#
# These are the two roles of our smallest kernel: the first thread asks for tiles, the second for products.
#
# /// source | src/course_kernels/blackwell/one_block.cu#roles
# lines: true
# ///
#
# Before you read on, decide for each `wait` who ends it. One of them is ended by the copy engine, and one by
# `tcgen05_commit`: an arrival at the barrier when all products that this thread has asked for are done.
#
# Of its {{ code.one_block.all:.0f}} instructions, these are about tiles, products and waiting, in order:
#
# /// text | listing.one_block
# ///
#
# The card's names are not PTX's. `tcgen05.mma` of 16-bit numbers becomes `UTCHMMA`, and its operands say where everything is:
# two descriptors of shared memory (`gdesc`), the sums in tensor memory (`tmem`), and a number that says types and sizes
# (`idesc`). `tcgen05.commit` becomes `UTCBAR`, `tcgen05.ld` becomes `LDTM`, and asking for columns is `UTCATOMSWS`. There is
# no register of sums in the loop at all.

# %% [markdown]
# ## Two blocks multiply as one
#
# Two neighbouring blocks can carry out one product of 256 × 256. Each brings its own 128 rows of A and *half* of the columns of
# B; both tensor cores read both halves. A thread of the first block asks for both.
#
# /// source | src/course_kernels/blackwell/pair.cu#roles
# lines: true
# ///
#
# Two things are new. The second block's tiles count at the *first* block's barrier, since that is where the multiplying
# thread waits. And the commit arrives in both blocks, since both have a stage to fill again.
#
# /// text | listing.pair
# ///
#
# What concerns the pair has `2CTA` in its name. A block asks for {{ code.pair.UTMALDG:.0f}} tiles in a step, and in the kernel
# before it asked for {{ code.one_block.UTMALDG:.0f}}.

# %% [markdown]
# ## Four bits, scaled in hardware
#
# In NVFP4 sixteen numbers of four bits share a scale. The tensor core takes both as they are. The scales have to be next to the
# sums, in tensor memory, so the thread that multiplies first asks for a copy.
#
# /// source | src/course_kernels/blackwell/scaled.cu#roles
# lines: true
# ///
#
# /// predict | In each step this kernel asks for {{ code.nvfp4.UTCOMMA:.0f}} products. How many copies of scales does it ask for?
# - [code.nvfp4.UTCCP < 2] One, for A and B together
# - [2 <= code.nvfp4.UTCCP < 3] Two, one for A and one for B
# - [code.nvfp4.UTCCP >= 3 and code.nvfp4.UTCCP == 2 * code.nvfp4.UTCOMMA] Two for each product
# - [code.nvfp4.UTCCP >= 3 and code.nvfp4.UTCCP != 2 * code.nvfp4.UTCOMMA] Another number
# /// reveal
# {{ code.nvfp4.UTCCP:.0f}} copies, `UTCCP`, for {{ code.nvfp4.UTCOMMA:.0f}} products.
#
# /// text | listing.nvfp4
# ///
#
# `UTCOMMA` multiplies numbers of four bits, `UTCQMMA` those of eight, and `UTCCP` copies scales. The same source, compiled for
# MXFP8, has `UTCQMMA` in its place.
#
# /// table
# turned: true
# columns: [kernel, all, UTCHMMA, UTCOMMA, UTCQMMA, UTCCP, UTCBAR, UTCATOMSWS, LDTM, UTMALDG, UBLKCP]
# rows:
#   - [one block, "{{ code.one_block.all:.0f}}", "{{ code.one_block.UTCHMMA:.0f}}", "{{ code.one_block.UTCOMMA:.0f}}", "{{ code.one_block.UTCQMMA:.0f}}", "{{ code.one_block.UTCCP:.0f}}", "{{ code.one_block.UTCBAR:.0f}}", "{{ code.one_block.UTCATOMSWS:.0f}}", "{{ code.one_block.LDTM:.0f}}", "{{ code.one_block.UTMALDG:.0f}}", "{{ code.one_block.UBLKCP:.0f}}"]
#   - [a pair, "{{ code.pair.all:.0f}}", "{{ code.pair.UTCHMMA:.0f}}", "{{ code.pair.UTCOMMA:.0f}}", "{{ code.pair.UTCQMMA:.0f}}", "{{ code.pair.UTCCP:.0f}}", "{{ code.pair.UTCBAR:.0f}}", "{{ code.pair.UTCATOMSWS:.0f}}", "{{ code.pair.LDTM:.0f}}", "{{ code.pair.UTMALDG:.0f}}", "{{ code.pair.UBLKCP:.0f}}"]
#   - [NVFP4, "{{ code.nvfp4.all:.0f}}", "{{ code.nvfp4.UTCHMMA:.0f}}", "{{ code.nvfp4.UTCOMMA:.0f}}", "{{ code.nvfp4.UTCQMMA:.0f}}", "{{ code.nvfp4.UTCCP:.0f}}", "{{ code.nvfp4.UTCBAR:.0f}}", "{{ code.nvfp4.UTCATOMSWS:.0f}}", "{{ code.nvfp4.LDTM:.0f}}", "{{ code.nvfp4.UTMALDG:.0f}}", "{{ code.nvfp4.UBLKCP:.0f}}"]
#   - [MXFP8, "{{ code.mxfp8.all:.0f}}", "{{ code.mxfp8.UTCHMMA:.0f}}", "{{ code.mxfp8.UTCOMMA:.0f}}", "{{ code.mxfp8.UTCQMMA:.0f}}", "{{ code.mxfp8.UTCCP:.0f}}", "{{ code.mxfp8.UTCBAR:.0f}}", "{{ code.mxfp8.UTCATOMSWS:.0f}}", "{{ code.mxfp8.LDTM:.0f}}", "{{ code.mxfp8.UTMALDG:.0f}}", "{{ code.mxfp8.UBLKCP:.0f}}"]
# caption: "Lines of machine code, compiled for sm_100a and not run. A block of scales is for 64 numbers of four bits, or for 128 of eight: so NVFP4 copies one for each product, and MXFP8 one for four."
# ///
# ///

# %% [markdown]
# ## Decoding, with and without the hardware
#
# If you only want the numbers, there is an instruction for that too: two codes become two float16 numbers at once. Our decoder
# takes {{ code.decode_in_hardware.all:.0f}} instructions with it, of which {{ code.decode_in_hardware.F2FP:.0f}} convert. In software, on any
# card, it takes {{ code.decode_in_software.all:.0f}}.
#
# /// source | src/course_kernels/blackwell/decode.cu
# ///

# %% [markdown]
# ## What to check before you believe a listing
#
# - *Is the instruction in the binary that claims it?* A test of ours counts them in each of these kernels.
# - *Do others tell the card the same?* The numbers that describe operands and types are those that Triton and CuTe-DSL work out.
#   A test compares them.
# - *What happens on your card?* On any other card our launcher refuses in one line, and names a command that shows the listing:
#   `python -m course_kernels.blackwell nvfp4 --all`. Triton, given the same product in MXFP4, compiles it for Hopper without
#   a word: it decodes the numbers first and multiplies in bfloat16.
#
# The compilers of this page:
#
# /// text | compilers
# ///
#
# /// exercise | Whose listing is it? | 5 minutes
# Somebody shows you the machine code of *a multiply for B200*. It has `HGMMA` and `UTMALDG`. It has no `UTCHMMA` and no `LDTM`. Where
# are its sums? For which card was it compiled? And what else do you ask before you believe the number that stands under it?
# /// answer
# `HGMMA` is Hopper's `wgmma`, so the sums are in the registers of a warpgroup, and the card is an H100 or an H200: compiled for
# sm_100a, `wgmma` is [refused](workshops/w3_abstraction_ladder.py#the-price-list). So it is not what ran on a B200. Ask which
# compiler, for which architecture, and to see the answer checked. Then ask what percentage of which peak it reached.
# ///
