# ---
# id: teach_l6
# title: "Teaching L6: tensor cores"
# description: How to lead a room through one instruction with a pencil, a multiply in fragments, and one third in seven bits.
# ---

# %% [markdown]
# # Teaching L6: tensor cores
#
# After this page you can work out one tensor-core instruction with a pencil in front of a room, lead the room through a multiply
# in fragments, and round one third to bf16 bit by bit without looking at your notes.

# %% [markdown]
# ## What it is really about
#
# There is a second unit in every SM, and it does {{ l6.mill.sheet / l6.mill.cores:.0f}} times the arithmetic of all ordinary
# lanes together. You cannot hurry it, and you do not need to. It must be *fed*. And short numbers feed that unit
# better: if numbers are half as long, it takes twice as many in one bite. The price is precision, and you can work it out before you pay
# it.
#
# /// callout | metaphor
# For weeks the cooks have chopped by hand. In a corner of every room there is a mill: the tensor core. It does not take single
# grains: you pour in a tray of A and a tray of B, and all thirty-two cooks of a table turn the crank together. The mill is never slow: it is either
# fed or idle.
# ///

# %% [markdown]
# ## By hand: one instruction, and one third
#
# There are two things to work out in chalk. The first is the tensor core: `m16n8k16`, 16 × 8 sums, each of 16 products. The second is the
# number that goes in. One third in binary never ends. bf16 keeps seven bits after the point.
#
# /// predict | bf16 keeps seven bits of 1.0101010101… What does the last one become?
# Look at the first bit that you throw away, and at what comes after it.
#
# - [ ] It stays 0
# - [x] It becomes 1, and nothing is carried
# - [ ] It becomes 1, and a 1 is carried
# /// reveal
# It becomes 1: the part that is thrown away begins with a 1 and goes on, so it is more than half of the last bit. One third becomes
# {{ third.bf16:.6f}}.
# ///

# %%
from fractions import Fraction

from course_kernels.measure import quantity, record

# One instruction, mma.m16n8k16 in bf16.
flops = 2 * 16 * 8 * 16
bytes_in = 2 * (16 * 16 + 16 * 8)


def rounded(x, fraction_bits):
    """x to so many bits behind the point, step by step, as on the board; x is positive."""
    exponent = 0
    while x < 1:  # shift until a single 1 stands before the point
        x, exponent = x * 2, exponent - 1
    scaled = x * 2**fraction_bits  # all that is kept now stands before the point
    kept, thrown_away = int(scaled), scaled - int(scaled)
    up = thrown_away > Fraction(1, 2)  # exactly half goes to the even neighbour
    up = up or (thrown_away == Fraction(1, 2) and kept % 2 == 1)
    bits = f"{kept + up:b}"
    print(f"{fraction_bits} bits: {bits[0]}.{bits[1:]} times 2 to the {exponent}")
    return Fraction(kept + up, 2**fraction_bits) * Fraction(2) ** exponent


third = Fraction(1, 3)
in_bf16, in_e4m3 = rounded(third, 7), rounded(third, 3)
print("as fractions:", in_bf16, "and", in_e4m3)

record(
    mma={"flops": quantity(flops), "bytes": quantity(bytes_in, "B")},
    third={
        "bf16": quantity(float(in_bf16)),
        "e4m3": quantity(float(in_e4m3)),
        "off_bf16": quantity(float(abs(in_bf16 / third - 1))),
        "off_e4m3": quantity(float(abs(in_e4m3 / third - 1))),
    },
)

# %% [markdown]
# | | one third becomes | off by |
# |---|---:|---:|
# | bf16, seven bits | {{ third.bf16:.6f}} | 1 part in {{ 1 / third.off_bf16:.0f}} |
# | e4m3, three bits | {{ third.e4m3:.6f}} | 1 part in {{ 1 / third.off_e4m3:.0f}} |
#
# And one tensor-core instruction does {{ mma.flops:.0f}} FLOPs on {{ mma.bytes:.0f}} bytes. Shared memory delivers 128 bytes in a tick, so an
# instruction that shares nothing waits {{ mma.bytes / 128:.0f}} ticks for its food.

# %% [markdown]
# ## In production today
#
# /// callout | production
# DeepSeek trained a large model with 8-bit multiplies, and met the limit that the students' page finds with nothing but ones:
# Hopper's 8-bit units keep around 14 bits of a sum, so the sums are taken out now and then and added up in fp32 [^deepseek2024].
# The authors of the format report models for images and for language that trained about as well as in 16 bits
# [^micikevicius2022].
# ///

# %% [markdown]
# ## The click
#
# /// callout | click
# Two lectures of craft, and then this: in bf16 the ladder's structure on the lanes reaches {{ l6.climb.cublas.us / l6.climb.cuda_cores.us:.1%}}
# of cuBLAS. With one idea, WMMA, the time is divided by {{ l6.climb.cuda_cores.us / l6.climb.wmma.us:.1f}}. Nothing was wrong with the ladder, but it
# was leaning against the wrong wall.
# ///
#
# Keep the second click for the end: with PyTorch's default settings, `torch.mm` on fp32 tensors sends {{ l6.tensor.fp32.operations:.0f}}
# operations through the tensor cores. Ask somebody to read that line of the table aloud.

# %% [markdown]
# ## Where students trip
#
# - *The wrong stride.* The answer is full of plausible numbers. Let the students work out C[1, 0] by hand; then they will see which row was read.
# - *An `if` around a fragment call.* All 32 threads must arrive. Fill the tile in shared memory with zeros; never mask the call.
# - *"TF32 is turbocharged fp32."* It is fp32 that was rounded to 10 bits on the way in. If you show a speed, you must show the error.
# - *"Busy means fast."* The fastest kernel issues the fewest instructions. Read *tensor cores at work*, not *issue slots used*.
# - *"WMMA takes FP8."* It does not, though you will read that it does. The page puts the question to the assembler.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "You cannot put one number into this machine. You pour in a whole tile. And nobody turns it alone: it takes thirty-two of you,
# at the same moment. If one of you stays at the door, the other thirty-one wait. Now: in one tick it eats what shared memory
# delivers in six. What do you do?"
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../02_the_climb/l6_map.md) has every step. If you are running late at the break, hand out stage 3 and keep the
# rounding: the lab can be finished at home, but bits on a board cannot.
#
# /// exercise | Rehearse
# Stand in front of a wall and round one tenth to seven bits of fraction. One tenth is 1.1001 1001 1001… × 2⁻⁴.
# /// answer
# Keep 1.1001100 and throw away 1 1001…, which is more than half: 1.1001101 × 2⁻⁴ = 205/128/16 = 0.10009765625.
# ///

# %% [markdown]
# ## You can now teach
#
# - one instruction: what goes in, what comes out, how many FLOPs and bytes, and why it starves;
# - a multiply in fragments, in three stages, and the trap of the stride;
# - formats as range and step, one third by hand, and the error before the run;
# - the three questions for idle tensor cores: used at all, how much, waiting for what.
#
# **Where this leads.** The students' page is [tensor cores](../../docs/lectures/l6_tensor_cores.py). Next in the cohort
# come [teaching L8, attention](l8_attention.py), and [teaching L7](l7_profiling.py), which puts all of this under a
# magnifying glass.
