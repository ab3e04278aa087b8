# ---
# id: week_11
# title: "Week 11: pictures in the prompt"
# search: {rank: 2}
# nav: "11 · Vision"
# description: "What a picture costs a language model, in tokens, operations and cache, worked out from shapes; an encoder of the true shape, timed; and which part of the server it keeps busy."
# needs: [gpu]
# ---

# %% [markdown]
# # Week 11: pictures in the prompt
#
# /// week
# ///
#
# By the end of this week you can
#
# - turn a picture's size into tokens, and tokens into operations and bytes;
# - run an encoder of the true shape, and say where its time goes, into attention or into its MLP;
# - say whether a server with pictures waits for its encoder, for prefill, or for decode;
# - say what pictures do to the number of readers on a card.
#
# ## Why this week
#
# A model that sees is a model with a longer prompt. Nothing new has to be learnt about kernels, and everything about sizes: what percent of peak the card is at depends on whether a reader sends one picture and asks for a page, or sends ten and asks for a word.
#
# ## Before you begin
#
# - How many operations is a token, and how many bytes of cache? [Week 3](week_03.py#ideas).
# - What are prefill and decode, and what does each wait for? [W4](../workshops/w4_serving.py#two-rhythms-in-one-kitchen).
# - Why does a reader's cache decide how many fit? [Week 6](week_06.py).
#
# ## Read
#
# /// reading
# radford2021: "Take that text and picture end in one space. The patches are an older idea, that of the vision transformer, which week 42 reads. The training is not this week's subject."
# liu2023: "Take the figure with the projector: it is one small matrix between two large models."
# liu2023b: "Take table 2, in which data, model and resolution grow, and that the projector became two layers."
# alayrac2022: "The other way in: the picture stays outside, and layers between the language model's own look at it. Take the drawing of one such layer. Lists say chapter 3; the method is in the chapter before."
# vllm-multimodal: "Skim it for one thing: a server knows a picture again by a hash of its content, or by a name that you give it, and need not do its work twice. Lists often give an older address."
# ///
#
# ## Ideas
#
# /// idea | What are the three parts?
# An **encoder**, usually a ViT: patches in, one vector for each out. A **projector**, which turns such a vector into one of the language model's width. And the language model, which reads these vectors as if they were words that it knows.
# ///
#
# /// idea | How do picture tokens enter the prompt?
# In their place in the row, as virtual tokens: they have no number in the vocabulary, and need none, since only their vectors are used. For prefill they are tokens like others, and they have keys and values like others.
# ///
#
# /// idea | What does resolution do to the count of tokens?
# A side twice as long has twice as many patches, and a picture has a square of them: four times the tokens. So 672 pixels in place of 336 are a prompt of four pictures.
# ///
#
# /// idea | Waiting for the encoder, or for decode?
# Many pictures and short answers: encoder and prefill are everything, the card multiplies, and more pictures in one batch help. One picture and a long answer: decode is everything, it waits for bytes, and the picture is a longer cache that each step reads. One server sees both in an hour.
# ///
#
# /// idea | Cross-attention, or tokens in the row?
# With tokens in the row nothing in the language model changes, and the cache pays for each. With cross-attention, as in Flamingo, the picture's keys and values are kept once beside the text, and only some layers look at them: less cache, more layers, and the model must be trained with them.
# ///
#
# - What do pictures do to the cache? That is the milestone.
#
# ## Do
#
# The task is usually *serve LLaVA-1.5, and measure encoder against prefill, at one and at two resolutions*. Forecast it first. The encoder is a ViT-L/14: 24 layers of width 1024 and hidden width 4096, patches of 14 pixels [^openclip-vit-l14]. The language model is the 7B of [week 3](week_03.py#do). A question has 64 tokens. (LLaVA-1.5 makes every picture 336 wide; its successors cut a larger one into such tiles. Here the encoder takes the larger one whole.)

# %%
PATCH, LAYERS, WIDTH, HIDDEN = 14, 24, 1024, 4096  # the encoder
QUESTION, MODEL, A_TOKEN = (
    64,
    6.61e9,
    524_288,
)  # tokens; parameters that multiply; bytes
MODEL_LAYERS, MODEL_WIDTH = 32, 4096


def tokens(side):
    """Tokens of a square picture."""
    return (side // PATCH) ** 2


def encoder(side):
    """Operations of the encoder, grids and scores."""
    n = tokens(side)
    grids = LAYERS * (4 * WIDTH * WIDTH + 2 * WIDTH * HIDDEN)
    return 2 * grids * n + 4 * LAYERS * WIDTH * n * n


def prefill(side):
    """Operations of the language model for one picture and its question."""
    n = tokens(side) + QUESTION
    return 2 * MODEL * n + 4 * MODEL_LAYERS * MODEL_WIDTH * n * n


READERS, SMALL, LARGE = 16, 336, 672

# %% tags=["fold"]
from course_kernels.measure import quantity, record

GIB = 2**30
both = {"small": SMALL, "large": LARGE}
record(
    tokens={
        name: quantity(tokens(side), how="counted") for name, side in both.items()
    },
    encoder={
        name: quantity(encoder(side) / 1e12, "TFLOP") for name, side in both.items()
    },
    prefill={
        name: quantity(prefill(side) / 1e12, "TFLOP") for name, side in both.items()
    },
    of_prefill={
        name: quantity(encoder(side) / prefill(side)) for name, side in both.items()
    },
    grows={
        "tokens": quantity(tokens(LARGE) / tokens(SMALL)),
        "encoder": quantity(encoder(LARGE) / encoder(SMALL)),
        "prefill": quantity(prefill(LARGE) / prefill(SMALL)),
        "cache": quantity((tokens(LARGE) + QUESTION) / (tokens(SMALL) + QUESTION)),
    },
    prompt={
        "tokens": quantity(READERS * (tokens(SMALL) + QUESTION), how="counted"),
        "gib": quantity(
            READERS * (tokens(SMALL) + QUESTION) * A_TOKEN / GIB, "GiB"
        ),
        "text_gib": quantity(READERS * QUESTION * A_TOKEN / GIB, "GiB"),
        "times": quantity((tokens(SMALL) + QUESTION) / QUESTION),
    },
)

# %% [markdown]
# /// predict | One picture of 336 by 336 and a question. What does the encoder's work weigh beside prefill's?
# - [of_prefill.small < 0.1] Less than a tenth of it
# - [0.1 <= of_prefill.small < 0.7] A good part
# - [of_prefill.small >= 0.7] About as much, or more
# /// reveal
# {{ of_prefill.small:.1%}}: {{ encoder.small:.2f}} TFLOP beside {{ prefill.small:.1f}}. Both are multiplies of hundreds of rows, right of the ridge.
# ///
#
# | | 336 × 336 | 672 × 672 | grows |
# | --- | ---: | ---: | ---: |
# | picture tokens | {{ tokens.small:.0f}} | {{ tokens.large:,.0f}} | {{ grows.tokens:.1f}} |
# | encoder, TFLOP | {{ encoder.small:.2f}} | {{ encoder.large:.2f}} | {{ grows.encoder:.1f}} |
# | prefill, TFLOP | {{ prefill.small:.1f}} | {{ prefill.large:.1f}} | {{ grows.prefill:.1f}} |
# | cache of picture and question | | | {{ grows.cache:.1f}} |
#
# So a side twice as long costs four times the tokens, and *more* than four times the encoder's work, since its attention is a square of the tokens. Prefill and cache grow a little less than four times, because the question stays as it is.
#
# Now the encoder itself, in its true shape: `src/course_models/vision.py`, a page of PyTorch with random weights in bf16. A picture has one token more in there, the *class token*, which LLaVA drops. Sixteen pictures of 336 by 336 at once, or four of 672 by 672: about as many rows in both. A layer has two halves, attention and MLP; beside the whole, all halves of one kind run
# alone, and of attention its core, queries past keys, without the grids around it. Each is held against the same weights in float64 first.

# %%
from course_kernels.attention import library
from course_kernels.measure import measure
from course_kernels.measure.competitor import Competitor
from course_kernels.problem import Workload
from course_models.vision import PARTS, VIT_L_14, Tower, problem, workload

PICTURES = {"small": 16, "large": 4}


def timed(side, pictures, device="cuda"):
    """The tower, either half of all its layers, and the core of attention in one layer."""
    tower = Tower.random(VIT_L_14, side, device=device, attend=library.sdpa_flash)
    found = {
        part: measure(
            Competitor(f"vision, {part}", problem(tower, part), tower.part(part)),
            workload(pictures, side),
            seconds=0.3,
        )
        for part in PARTS
    }
    head = {"H": VIT_L_14.heads, "D": VIT_L_14.width // VIT_L_14.heads}
    rows = {"B": pictures, "N": VIT_L_14.tokens(side)}
    core = Workload.of("bfloat16", causal=False, **rows, **head)
    return found | {"core": measure(library.sdpa_flash, core, seconds=0.2)}


record(
    tower={name: timed(both[name], count) for name, count in PICTURES.items()},
    rows={
        name: quantity(count * VIT_L_14.tokens(both[name]), how="counted")
        for name, count in PICTURES.items()
    },
    work={
        name: {
            part: quantity(count * VIT_L_14.flops(both[name], part) / 1e12, "TFLOP")
            for part in PARTS
        }
        for name, count in PICTURES.items()
    },
    of_work=quantity(
        VIT_L_14.flops(SMALL, "attention") / VIT_L_14.flops(SMALL, "whole")
    ),
)

# %% [markdown]
# /// predict | At 336 by 336 attention, with the grids (the matrices of weights) of its half, is {{ of_work:.0%}} of the operations. Which part of the two halves' time does it take?
# - [tower.small.attention.us < 0.33 * (tower.small.attention.us + tower.small.mlp.us)] Less than a third
# - [0.33 * (tower.small.attention.us + tower.small.mlp.us) <= tower.small.attention.us < 0.5 * (tower.small.attention.us + tower.small.mlp.us)] More than a third, less than half
# - [tower.small.attention.us >= 0.5 * (tower.small.attention.us + tower.small.mlp.us)] Half, or more
# /// reveal
# {{ tower.small.attention.us / (tower.small.attention.us + tower.small.mlp.us):.0%}}. On {{ gpu.name }}, from the left operations, time, and the share of bf16's peak:
#
# | | 16 of 336 × 336 | | | 4 of 672 × 672 | | |
# | --- | ---: | ---: | ---: | ---: | ---: | ---: |
# | rows | {{ rows.small:,.0f}} | | | {{ rows.large:,.0f}} | | |
# | the whole tower | {{ work.small.whole:.2f}} TFLOP | {{ tower.small.whole.us / 1000:.2f}} ms | {{ tower.small.whole.of_peak:.0%}} | {{ work.large.whole:.2f}} TFLOP | {{ tower.large.whole.us / 1000:.2f}} ms | {{ tower.large.whole.of_peak:.0%}} |
# | attention, with its grids | {{ work.small.attention:.2f}} TFLOP | {{ tower.small.attention.us / 1000:.2f}} ms | {{ tower.small.attention.of_peak:.0%}} | {{ work.large.attention:.2f}} TFLOP | {{ tower.large.attention.us / 1000:.2f}} ms | {{ tower.large.attention.of_peak:.0%}} |
# | its core alone, one layer | | {{ tower.small.core.us / 1000:.3f}} ms | {{ tower.small.core.of_peak:.0%}} | | {{ tower.large.core.us / 1000:.3f}} ms | {{ tower.large.core.of_peak:.0%}} |
# | MLP | {{ work.small.mlp:.2f}} TFLOP | {{ tower.small.mlp.us / 1000:.2f}} ms | {{ tower.small.mlp.of_peak:.0%}} | {{ work.large.mlp:.2f}} TFLOP | {{ tower.large.mlp.us / 1000:.2f}} ms | {{ tower.large.mlp.of_peak:.0%}} |
# ///
#
# By operations the four large pictures differ from the sixteen small ones in one place alone, the core: its pairs grow with the square of a picture's tokens, and everything else with the rows. What takes time beside grids and core is what lies between: norms, GELU, additions, and heads laid out anew, each a trip to memory that no operation counts. [A fused one](../one_token.py) saves such trips.
#
# ## Milestone
#
# /// exercise | Sixteen readers with a picture each | 10 minutes
# Sixteen readers send a picture of 336 by 336 and a question of 64 tokens each. How many tokens is the prefill? How many GiB of cache do they need, at half a MiB for each token, and how many with text alone?
# /// answer
# A side has 24 patches, a picture 576 tokens. With the question that is 640, and 16 times as many are 10 240 tokens. Their cache has {{ prompt.gib:.1f}} GiB; the text alone would take {{ prompt.text_gib:.1f}} GiB. The pictures multiply the cache by {{ prompt.times:.0f}}, so where sixty readers fitted by their text, six do.
# ///
#
# ## What could not run here
#
# LLaVA itself: neither its weights nor the server is carried along, so the encoder is timed and its share of a request is a forecast. Measured beside prefill, you would see it take a larger share than its operations say: its multiplies are smaller, and smaller multiplies reach less of the peak. How much less is in
# [size by size](../multiply_on_hopper.py#five-squares).
#
# ## What next
#
# [Week 12](week_12.py) closes the first part with work of your own.
