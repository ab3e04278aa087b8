# ---
# id: teach_l1
# title: "Teaching L1: what a GPU is"
# description: How to lead a room from a shopping receipt to a roof over every job, and what wrong receipts mean.
# ---

# %% [markdown]
# # Teaching L1: what a GPU is
#
# After this page you can teach people who know Python but nothing about chips, and send them home with a sheet on which
# they have drawn the two roofs of a card. You will recognise a wrong receipt by its number, and know what to say when
# the GPU loses.
#
# You need this page, [the map for the two hours](../01_the_machine/l1_map.md) and [the students' page](../../docs/lectures/l1_what_a_gpu_is.py).
# Do its lab once yourself; it is plain arithmetic and takes half an hour.

# %% [markdown]
# ## What it is really about
#
# It looks like a lecture about hardware. It is really about *counting before you look*. How many operations does the job need,
# and how many bytes must it move? With two numbers from the job and two from the card, you know the best that can happen. The
# rest of the course closes the gap between that and what does happen.
#
# /// callout | metaphor
# The receipt says **how much** there is to do. The two kitchens, a few chefs or a brigade, say **who** does it. The pantry and its hall say what it
# costs to **bring** the food. There are three pictures for three questions. Show one picture at a time, and put it away before you show the next.
# ///

# %% [markdown]
# ## By hand: four receipts
#
# Ann wants 3 loaves and 2 cheeses, Ben 1 and 4. A loaf costs 2 at the market and 5 at the corner shop, a cheese 4 and 3. Write both grids on the board, with the shoppers' grid on the left. Then write *one* receipt, slowly: Ann's row in
# red, the market's column in red, two lines, a sum.
# Then put the pen down. The students write the other three.

# %%
from course_kernels.measure import quantity, record

buys = [[3, 2], [1, 4]]  # a row for Ann, one for Ben: loaves, cheeses
asks = [[2, 5], [4, 3]]  # a row for loaves, one for cheeses: market, corner

lines = 0
for who, wants in zip(("Ann", "Ben"), buys, strict=True):
    for j, shop in enumerate(("market", "corner")):
        parts = [(wants[k], asks[k][j]) for k in range(2)]
        lines += len(parts)
        text = " + ".join(f"{n} × {price}" for n, price in parts)
        print(f"{who}, {shop}: {text} = {sum(n * price for n, price in parts)}")
print(lines, "lines")

# %% [markdown]
# Why these numbers? With these, each of the usual mistakes gives a different number for *Ann at the corner shop*. Look at
# that number when you walk round the room.
#
# /// predict | A sheet says 10 for Ann at the corner shop. What did she do?
# Work it out before you look. In the room you will have five seconds to recognise a mistake.
#
# - [ ] She added the two prices
# - [x] She multiplied cell by cell
# - [ ] She took the wrong shop's column
# /// reveal
# She multiplied cell by cell, 2 × 5, as if the two grids lay on top of each other. The right receipt comes to {{ slips.right:.0f }}.
#
# /// table
# columns: ["the sheet says", "what happened", "your question"]
# rows:
#   - ["{{ slips.right:.0f }}", "a row, a column, line by line", "how many lines did you write in all?"]
#   - ["{{ slips.cell_by_cell:.0f }}", "cell by cell", "who pays for the loaves?"]
#   - ["{{ slips.added:.0f }}", "added what should be multiplied", "three loaves at 5: what do they cost?"]
#   - ["{{ slips.row_by_row:.0f }}", "a row of the prices instead of a column", "is 4 a price at the corner shop?"]
#   - ["{{ slips.shops_first:.0f }}", "the grids in the other order", "read me the words in your row"]
# ///
# ///

# %%
ann, corner = buys[0], [asks[0][1], asks[1][1]]
slips = {
    "right": ann[0] * corner[0] + ann[1] * corner[1],
    "cell_by_cell": ann[1] * asks[0][1],
    "added": sum(ann) + sum(corner),
    "row_by_row": ann[0] * asks[1][0] + ann[1] * asks[1][1],  # the row of cheeses
    "shops_first": asks[0][0] * buys[0][1] + asks[0][1] * buys[1][1],
}
record(
    slips={name: quantity(value) for name, value in slips.items()},
    lines=quantity(lines),
)

# %% [markdown]
# Then count. There are {{ lines:.0f }} lines, and nobody has to multiply any more: M × N receipts of K lines.
#
# /// callout | by_hand
# Cover the grids and ask: *with all sides three times as long, how many lines are there?* All three sides grow, so there are 27 times as many. And the numbers in
# the grids? Nine times. Have somebody say it aloud: *a large multiply uses each number more often.* That is why the ladder
# exists.
# ///

# %% [markdown]
# ## In production today
#
# /// callout | production
# The shapes of Llama 3.1 with 70 billion weights are public [^meta-llama31]. On its receipt, a token costs {{ l1.token.multiplies:.0f }} multiplies
# and
# {{ l1.token.macs / 1e9:.1f }} billion multiply-adds, every weight used once. For one reader the weights alone, {{ l1.token.gb:.0f }} GB, come down
# the hall for each token. That is why services put many readers on one set of weights, and why the last exercise on the roof asks *how
# many*.
#
# The roof itself is a picture from 2009, made for processors with several cores [^williams2009]. The picture has outlived most of those processors.
# ///

# %% [markdown]
# ## The click
#
# There are two. Before each of them, ask for a number in writing.
#
# /// callout | click
# **The peak is three multiplications.** Rooms × stoves × ticks × 2 gives {{ l1.peak.by_hand:.1f }} TFLOP/s, and the data sheet says
# {{ l1.peak.sheet:.0f }}. A kernel of nothing but multiply-adds reaches {{ l1.fma.of_peak:.1%}} of it.
#
# **Same spot, same roof.** The naive multiply and the library's do the same job, so they are at the same place along the axis. One is at
# {{ l1.jobs.naive.of_peak:.1%}} of the roof, the other at {{ l1.jobs.library.of_peak:.0%}}. Draw the second cross far above the first, and say nothing.
# ///
#
# /// claim | l1.chain.cpu < 0.9 * l1.chain.gpu and l1.lists.cpu.n1024 < 0.4 * l1.lists.gpu.n1024
# And there are two races that the GPU loses: a long chain, where it took {{ l1.chain.gpu / l1.chain.cpu:.1f }} times the CPU's time, and a short list, where it took
# {{ l1.lists.gpu.n1024 / l1.lists.cpu.n1024:.1f }} times. Show them *before* the multiply. A room that has seen the GPU lose believes you when it wins.
# /// otherwise
# Two races to show before the multiply: a long chain, where the GPU took {{ l1.chain.gpu / l1.chain.cpu:.1f }} times the CPU's time, and a short list,
# {{ l1.lists.gpu.n1024 / l1.lists.cpu.n1024:.1f }} times.
# ///
#
# /// callout | demo
# There is one command, and the map has it: the multiply-adds. Press Enter *before* you ask for the percentage. While it works, they write. From the
# line on the screen they find the stoves in a room: speed ÷ (rooms × ticks × 2). No GPU? Show [the recorded run](../../docs/lectures/l1_what_a_gpu_is.py#the-peak-by-hand).
# ///

# %% [markdown]
# ## Where students trip
#
# /// callout | trip
# **"Trillions for every word."** Billions: one multiply-add for each weight at work. And hundreds of multiplies, not
# millions. If you have ever told your students otherwise, say so. They will trust the next number more.
# ///
#
# - *"CUDA cores."* Each is a lane, one stove. What corresponds to a CPU core is the SM.
# - *"A GPU is faster."* At what? Many dishes, yes. One long one, no.
# - *Two clocks, added.* Bytes and arithmetic run side by side. The later one decides.
# - *The 2.* One line is two operations. The data sheet counts both, so you must count both too.
# - *The wrong line of the data sheet.* The sheet prints the tensor cores' figure largest, often *with sparsity*. Today you need the one for fp32, outside the tensor cores.
# - *10⁹ or 2³⁰.* A GB is 10⁹ bytes here; memory is sold in GiB.

# %% [markdown]
# ## Say this at the board
#
# /// callout | say
# "You have just multiplied two matrices, and all you needed was a shopping list. That is the loop we spend four weeks on. Nothing in it
# is clever. There is only a great deal of it, and somebody has to carry the groceries."
# ///
#
# And when the roof is drawn:
#
# /// callout | say
# "Do not ask whether it is fast. Ask which roof is over it. If the roof is close, put down the knife. If it is far away, the recipe is to
# blame, and a recipe can be changed."
# ///

# %% [markdown]
# ## The minutes
#
# [The map](../01_the_machine/l1_map.md) has every step with its words, its drawing and what the students' fingers do. If
# you are late at the
# break, drop the two readers, never the receipt; if you are late in the lab, stage 5 is one line, which they can type at home.
#
# /// exercise | Your own prices
# You want different numbers, so you have Ann buy 3 loaves and *one* cheese, at 2 and 5. What goes wrong with Ann at the market?
# /// answer
# Multiplied, it is 3 × 2 + 1 × 5 = 11; added by mistake, it is 3 + 2 + 1 + 5 = 11. The wrong sheet looks right, and you walk past it. Try
# every usual mistake on your numbers before you print them. We do the same with a grader and wrong answers.
# ///

# %% [markdown]
# ## You can now teach
#
# - a matrix multiply as four receipts, and its work as lines to be counted;
# - why a chain belongs to a chef and a banquet to a brigade, with a loss for each side;
# - the peak and the bandwidth of a card from a handful of numbers;
# - the roof, the ridge, and four jobs under it;
# - the question *what percent of peak are you at?*, as one line of Python.
#
# **Where this leads.** The students' page: [what a GPU is](../../docs/lectures/l1_what_a_gpu_is.py). Next: [teaching the CUDA model](l2_the_cuda_model.py).
