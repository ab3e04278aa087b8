# ---
# id: field_conv
# title: "A convolution, tile by tile"
# nav: A convolution in tiles
# description: "A convolution is a matrix multiply whose right matrix nobody should write down: how many bytes that saves, what a tile with its border fetches, and our kernel of it."
# ---

# %% [markdown]
# # A convolution, tile by tile
#
# By the end of this page you can
#
# - turn a convolution into a matrix multiply, and say how large its matrices are;
# - work out what it costs to write that matrix down, and what a tile needs instead;
# - say where a convolution is unlike a multiply: at borders, strides and small sizes.
#
# **In one sentence:** each number of an image lies under many places of the filter, so fetch a tile of the image once, with a border around it, and
# work out where each number is instead of copying it.
#
# /// figure | docs/assets/figures/windows_to_columns.svg
# alt: "Left, an image as a grid of numbers. Two windows of nine numbers lie on it, the second one step to the right of the first; six of their nine numbers are the same. Right, a matrix in which each window is a column of nine numbers. Filters, as rows of nine, are multiplied by it."
# caption: "Six of nine numbers of a column stand in the next column again."
# ///
#
# /// callout | trip
# *Worked out*: with a pencil, from sizes. *Cited*: a paper, with its source. *Measured here*: on our own card, {{ gpu.name }}, by the lessons.
# ///

# %% tags=["fold"]
from course_kernels.measure import quantity, record

B, C, H, W, K, R, S = (
    64,
    64,
    56,
    56,
    64,
    3,
    3,
)  # one of W6's layers; the answer is as large as the image
image, answer, filters = B * C * H * W, B * K * H * W, K * C * R * S  # numbers
columns = image * R * S
TILE, FILTERS, PLACES = 8, 64, 128
fetched = (TILE + R - 1) * (TILE + S - 1)  # by a tile of places and its border

record(
    layer={
        "gflop": quantity(2 * answer * C * R * S / 1e9, "GFLOP"),
        "rows": quantity(C * R * S),
        "places": quantity(B * H * W),
        "image": quantity(4 * image / 1e6, "MB"),
        "columns": quantity(4 * columns / 1e6, "MB"),
        "least": quantity(4 * (image + answer + filters) / 1e6, "MB"),
        "written": quantity(
            4 * (image + answer + filters + 2 * columns) / 1e6, "MB"
        ),
    },
    tile={
        "side": quantity(TILE, how="given"),
        "with_border": quantity(fetched),
        "each": quantity(TILE * TILE * R * S),
        "reuse": quantity(TILE * TILE * R * S / fetched),
        "intensity": quantity(2 * FILTERS * PLACES / (4 * (FILTERS + PLACES))),
    },
)

# %% [markdown]
# ## A multiply in disguise
#
# Lay a filter of {{ layer.rows:.0f}} numbers, 64 channels of 3 × 3, over a place of the image, multiply what lies on each other, add up: one number of the answer. Written as a row, the filter is
# multiplied by a column, the window. So 64 filters are a matrix of 64 × {{ layer.rows:.0f}}, and the windows one of {{ layer.rows:.0f}} × {{ layer.places:,.0f}}, for 64 images of
# 56 × 56. That is [the multiply that you know](../lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory).
#
# /// define | ratio.bytes = layer.written / layer.least
# unit: ×
# what: bytes of a convolution that writes its windows as a matrix and reads them again, over the least
# ///
#
# /// predict | You write the windows down as a matrix, and read it for the multiply. How many times as many bytes move as image, answer and filters have?
# - [ratio.bytes < 3] Fewer than three times
# - [3 <= ratio.bytes <= 8] Three to eight times
# - [ratio.bytes > 8] More than eight times
# /// reveal
# {{ ratio.bytes:.1f}} times: {{ layer.written:.0f}} MB instead of {{ layer.least:.0f}}, in fp32. The matrix alone has {{ layer.columns:.0f}} MB, nine copies of the image, and it is written once and read once.
# ///
#
# So nobody writes it down. A program of ours has a tile of filters and a tile of places. For each step along the {{ layer.rows:.0f}} it works out, from the number of the row and of the
# column, which channel, which line and which pixel that is, and fetches it from there. That is an *implicit* multiply, cuDNN's old idea [^chetlur2014]. A tile of 64 filters and 128 places does
# {{ tile.intensity:.0f}} operations for each byte that it fetches, as a multiply's tile would.

# %% [markdown]
# ## A tile and its border
#
# Who fetches the nine copies now? The tile does, from a cache, if it fetches window by window. It can do better: fetch the piece of image under the whole tile once, into shared
# memory. For {{ tile.side:.0f}} × {{ tile.side:.0f}} places that is a piece of 10 × 10, since the filter reaches one number over each edge. The border is called the *halo*.
#
# /// predict | {{ tile.side:.0f}} × {{ tile.side:.0f}} places take {{ tile.each:.0f}} numbers window by window. How many times fewer does the tile fetch with its halo?
# - [tile.reuse < 4] Fewer than four times
# - [4 <= tile.reuse < 9] Four to nine times
# - [tile.reuse >= 9] Nine times or more
# /// reveal
# {{ tile.with_border:.0f}} numbers, {{ tile.reuse:.1f}} times fewer. Nine it would be without a border, so larger tiles come closer.
# ///

# %% [markdown]
# ## When it wins, when it trips
#
# - **It wins** like a multiply where channels and filters are many: then almost all is arithmetic.
# - **It trips** over few channels. The first layer of a model has three, so rows are short and tiles half empty.
# - **It trips** over addresses: two divisions and four comparisons for each number, at borders too, where zeros stand in for what is not there.
# - **It trips** over a stride: with a stride of 4 every fourth number of a line is used at a time.
# - **It trips** over layout. If channels come last, neighbours in a column are neighbours in memory; ours come first.

# %% [markdown]
# ## The numbers that matter
#
# | 64 images, 64 channels of 56 × 56, 64 filters of 3 × 3 | |
# | --- | ---: |
# | operations, GFLOP | {{ layer.gflop:.1f}} |
# | least bytes, fp32, MB | {{ layer.least:.0f}} |
# | operations for each byte, at best | {{ 1000 * layer.gflop / layer.least:.0f}} |
# | least time for the bytes, by our card's sheet, µs | {{ 1000 * layer.least / gpu.gb_per_s:.0f}} |
# | with the windows written down, µs | {{ 1000 * layer.written / gpu.gb_per_s:.0f}} |
#
# *Measured here*, on {{ gpu.name }}, for the multiply: a tile in shared memory brought our ladder from {{ l4.ladder.coalesced.tflops:.1f}} to {{ l4.ladder.shared_tiles.tflops:.1f}} TFLOP/s, in fp32. The convolution itself runs beside cuDNN on
# [a page of its own](../convolution_against_whom.py#two-kinds-of-work): with TF32 allowed, at this size, ours takes {{ conv_record.layers.rough.wide.ours.us:,.0f}} µs, and cuDNN's best {{ conv_record.layers.rough.wide.cudnn.us:,.0f}}.
#
# ## What to type
#
# ```
# PYTHONPATH=src python -m course_kernels.measure conv2d/k01_implicit_gemm conv2d/library.cudnn --workload dtype=float32,B=64,C=64,H=56,W=56,K=64,R=3,S=3,PAD=1
# ```
#
# **Where the course teaches it:** [a tile into shared memory](../lectures/l4_the_gemm_ladder.py#rung-3-carry-a-tile-into-shared-memory), [cp.async](../lectures/l5_the_top_of_the_ladder.py#9-fetch-while-you-multiply),
# and the convolution that a machine wrote, [against whom?](../convolution_against_whom.py)
#
# /// exercise | Larger tiles | 4 minutes
# A filter of 5 × 5, tiles of 4 × 4, 12 × 12 and 28 × 28 places.
#
# 1. How many numbers does each fetch with its halo?
# 2. What is the ratio of window by window to that?
# 3. What speaks against the largest?
# /// answer
# 1. 64, 256 and 1024.
# 2. Window by window it is 400, 3600 and 19600. The ratios are 6.25, 14.1 and 19.1, and 25 is the limit.
# 3. Its piece of the image, for all channels of a step, must fit into shared memory beside the filters, and there are fewer tiles for as many multiprocessors.
# ///
