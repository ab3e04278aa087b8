# ---
# id: small_model
# title: A model small enough to train while you wait
# section: Make the model fast
# order: 76
# description: A language model over bytes, trained while this site is measured; what it learns from, how good it is against plain counting, what it writes and what it cannot do.
# needs: gpu
# ---

# %% [markdown]
# # A model small enough to train while you wait
#
# [One token](one_token.py) took a model with the right shape and random weights: it is fast and talks nonsense. Here is the
# other half: a model that fits into a few megabytes and has learnt something. By the end of this page you can
#
# - say what a language model is asked while it learns, and work out its loss with a pencil;
# - say what a loss is worth, by comparing it with plain counting;
# - read a loss curve, and tell learning from learning by heart;
# - take the weights home, and run them on a laptop.
#
# You need [one token](one_token.py) for the parts of the model, and nothing else.

# %% [markdown]
# ## A text that you already have
#
# A model needs a text. Every Python installation contains one: the standard library, written by people, for people. Parts of it change from
# version to version. So we keep only whole functions that are the same in every Python from 3.11 to 3.13, and pin them by their
# hash: the models on this page learn the same text wherever they are trained. The library belongs to the Python Software
# Foundation, whose licence lets everybody use it and pass it on [^python-license].
#
# Some files are **held out**: no model ever learns a line of them. Our questions at the end come from these files. We
# hold out whole files, because functions in the same file resemble each other, and a model would be rewarded for what it merely
# remembers.

# %%
from course_kernels.measure import quantity, record
from course_models import corpus

library = corpus.load()
record(
    text={
        "train": quantity(library.train_bytes, "B", "counted"),
        "train_files": quantity(len(library.train), how="counted"),
        "absent": quantity(len(library.absent), how="counted"),
        "held_out": quantity(library.held_out_bytes, "B", "counted"),
        "held_out_files": quantity(len(library.held_out), how="counted"),
    }
)
calendar = max(library.held_out, key=lambda text: text.count(b"calendar"))
print(calendar.decode()[:600].rpartition("\n")[0])

# %% [markdown]
# That text is from a file that was held out. There are {{ text.train / 1e6:.2f }} MB in {{ text.train_files:.0f }} files to
# learn from, and {{ text.held_out / 1e3:.0f }} kB in {{ text.held_out_files:.0f }} files for the questions.
#
# /// when | text.absent == 0
# The Python on the machine that trained the models had all of these files.
# /// otherwise
# The Python on the machine that trained the models had different versions of {{ text.absent:.0f }} of the files, and
# these were left out.
# ///
#
# A token here is simply a **byte**: there are 256 of them, and one more token, which says *a text begins*. Real models cut text into
# longer pieces, words and parts of words, and get further with each token. With bytes there is nothing to explain and
# nothing to install.

# %% [markdown]
# ## What is it asked?
#
# The model is asked one question, over and over: here are some bytes, **which one comes next?** The answer is not a byte. It is a
# probability for each of the 256. Then the true byte is shown, and all that counts is the probability that the model gave it.
#
# The score is the **loss**, in **bits**: −log₂ of that probability. It counts halvings. A probability of 1/2 costs one
# bit, 1/4 two bits, 1/8 three. Being certain and right costs nothing. And a model that calls the true byte impossible
# pays an infinite price, so no model should ever say zero.
#
# Take a pencil. A model reads `retur` and gives `n` a probability of 1/2, then reads `return` and gives the space 1/4,
# and after the space it gives `s` 1/32:
#
# | it reads | the true byte | its probability | the loss, in bits |
# |---|---|---:|---:|
# | `retur` | `n` | 1/2 | 1 |
# | `return` | a space | 1/4 | 2 |
# | `return` and a space | `s` | 1/32 | 5 |
#
# The sum is 8 bits for three bytes, so 8 ÷ 3 = 2.67 bits for each byte. The unit of every score on this page is **bits per
# byte**, the mean over all bytes that were held out. Lower is better.
#
# /// exercise | Two that know nothing | 3 minutes
# 1. A model gives each of the 256 bytes the same probability. What is its loss?
# 2. A second model has only learnt that text has 64 different bytes, each as likely as the others. What is its loss on such a text?
# 3. The second model says that a byte outside its 64 is impossible. A text contains one such byte. What is its loss on that text?
# /// answer
# 1. 256 is eight twos multiplied together, so the loss is 8 bits. That saves nothing over writing the byte down.
# 2. 64 is six twos multiplied together, so the loss is 6 bits.
# 3. Infinite. One byte is enough. That is why every baseline below leaves a little probability for what it has never seen.
# ///

# %% [markdown]
# ## Counting, without a model
#
# How good is a loss of 2? By itself that number means nothing. A loss needs a rival, and the fairest rival is also the simplest:
# **count**. Go through the text, and for every three bytes write down which byte followed them, and how often. To make
# a guess, look up the counts. That is an **n-gram** model. It has no weights and needs no GPU.
#
# A byte that has never followed these three gets a little probability from the count of a shorter beginning: if nothing is
# known about what follows `xyz`, ask what follows `yz`, then `z`. The share that is passed down is called the discount, and
# is worked out from the text itself. The method is *interpolated absolute discounting*, one of those that were compared with care
# when counting was all there was [^chen1996].
#
# /// predict | With no byte to look at, the loss is {{ ngram.c0:.2f }} bits; with one it is {{ ngram.c1:.2f }}. And with three?
# - [ngram.c3 >= 2.5] About 3
# - [1.5 <= ngram.c3 < 2.5] About 2
# - [ngram.c3 < 1.5] About 1
# /// reveal
# {{ ngram.c3:.2f }} bits per byte. Two bytes give {{ ngram.c2:.2f }}.
# ///

# %%
from course_models.ngram import NGrams

counts = NGrams(library.train, context=7)
losses = counts.bits_per_byte(library.held_out)
record(ngram={f"c{k}": quantity(bits, "bit") for k, bits in enumerate(losses)})

# %% [markdown]
# Three bytes are not much: in the middle of a word they are half of it, after a line end they are three spaces. And yet they tell
# you a great deal. `sel` is followed by `f`, nearly always. `def` and a space are followed by a letter or an underscore. A line end and
# four spaces are followed by another space, or by a word that begins a statement. Nobody told the counts what a word or a statement is.
#
# But they cannot look any further. Whether a bracket is still open, how deep this line is indented, what the argument two lines
# above is called: all of that is more than three bytes back. So the natural thing is to count longer beginnings. It costs nothing
# but memory: all beginnings of up to seven bytes that occur in the text are counted in one go.
#
# /// predict | The more bytes, the more we know. So is seven better than three?
# - [ngram.c7 < 0.8 * ngram.c3] Much better
# - [0.8 * ngram.c3 <= ngram.c7 < 0.98 * ngram.c3] A little better
# - [ngram.c7 >= 0.98 * ngram.c3] No better
# /// reveal
# With seven bytes the loss is {{ ngram.c7:.2f }} bits; with three it was {{ ngram.c3:.2f }}, and with four {{ ngram.c4:.2f }}.
#
# /// chart | lines
# title: Counting gets better, and then worse
# alt: "The loss of n-grams on the files held out, over the number of bytes they look at: {{ ngram.c0:.2f }} bits per byte with none, {{ ngram.c3:.2f }} with three, {{ ngram.c4:.2f }} with four, {{ ngram.c7:.2f }} with seven."
# x: bytes
# y: bits
# x_scale: linear
# x_label: bytes that the guess looks at
# y_label: bits per byte
# series:
#   - {name: ngram.*, label: counting}
# ///
#
# Why does the curve turn? With each extra byte there are 256 times as many beginnings. Soon most of the beginnings in a new file
# have never been seen, and counting knows nothing about them: not even that `self.count` and `self.total` are the same kind of thing.
# Counting knows beginnings, but no likeness between them.
# ///
#
# Likeness is what a model is for. A model does not look things up; it works them out, and what it has learnt about one
# beginning it can use for every similar one.

# %% [markdown]
# ## Learning
#
# The model has all the parts that you met in [one token](one_token.py), only smaller.
#
# /// table
# columns: ["", the model of 8 billion, small, draft, experts]
# rows:
#   - [layers, "32", "{{ shape.small.layers:.0f }}", "{{ shape.draft.layers:.0f }}", "{{ shape.experts.layers:.0f }}"]
#   - [width, "4096", "{{ shape.small.width:.0f }}", "{{ shape.draft.width:.0f }}", "{{ shape.experts.width:.0f }}"]
#   - [query heads, "32", "{{ shape.small.heads:.0f }}", "{{ shape.draft.heads:.0f }}", "{{ shape.experts.heads:.0f }}"]
#   - [key heads, "8", "{{ shape.small.kv_heads:.0f }}", "{{ shape.draft.kv_heads:.0f }}", "{{ shape.experts.kv_heads:.0f }}"]
#   - [vocabulary, "128 256", "{{ shape.small.vocab:.0f }}", "{{ shape.draft.vocab:.0f }}", "{{ shape.experts.vocab:.0f }}"]
#   - ["weights, in millions", "8030", "{{ shape.small.weights / 1e6:.2f }}", "{{ shape.draft.weights / 1e6:.2f }}", "{{ shape.experts.weights / 1e6:.2f }}"]
# caption: Bytes and one mark make a vocabulary of 257; the grids are padded with a few more rows, to a multiple of eight. The draft and the model with experts are described further down.
# ///
#
# It starts from random weights. A step takes {{ recipe.batch:.0f }} places of the text at random, {{ recipe.length:.0f }} bytes at each, and asks the
# model to guess every one of those bytes at once. No place sees what comes after it, so each guess is honest. Then every weight is
# moved a little, in the direction in which the loss falls. After {{ recipe.steps:.0f }} steps training stops, whatever the clock
# says. So the same seed gives the same training again, except for the order in which the card adds.
#
# One training run looks at {{ recipe.steps * recipe.batch * recipe.length / 1e6:.1f }} MB in all. The text has
# {{ text.train / 1e6:.2f }} MB, so the model reads everything
# {{ recipe.steps * recipe.batch * recipe.length / text.train:.1f }} times. We train three times, each time from
# different random weights and in a different order. The distance between the three results shows how much is luck.

# %%

import torch
from course_models.train import (
    DRAFT,
    EXPERTS,
    SMALL,
    Recipe,
    bits_per_byte,
    stream,
    train,
)

device = "cuda"
shapes = {"small": SMALL, "draft": DRAFT, "experts": EXPERTS}
recipe = Recipe()
data = stream(library.train, device)


def held_out(model):
    """The loss on the files that no model learns."""
    return bits_per_byte(model, library.held_out)


runs = [
    train(SMALL, data, recipe, seed=seed, look=None if seed else held_out)
    for seed in range(3)
]

# %% tags=["fold"]
from course_kernels.measure import samples
from course_models.config import parameters

first = runs[0]


def by_step(losses):
    """A loss for each step at which it was looked at, for a chart."""
    return {
        f"s{step}": quantity(bits, "bit")
        for step, bits in zip(first.steps, losses, strict=True)
    }


found = [held_out(run.model) for run in runs]
record(
    shape={
        name: {
            **{
                key: quantity(getattr(shape, key))
                for key in ("layers", "width", "heads", "kv_heads", "vocab")
            },
            "weights": quantity(parameters(shape)),
        }
        for name, shape in shapes.items()
    },
    recipe={
        key: quantity(getattr(recipe, key)) for key in ("steps", "batch", "length")
    },
    score={"small": samples(found, "bit", "computed")},
    packed={
        "counting": quantity(losses[3] * library.held_out_bytes / 8, "B"),
        "model": quantity(sorted(found)[1] * library.held_out_bytes / 8, "B"),
    },
    training={
        "seconds": samples([run.seconds for run in runs], "s", "timed"),
        "memory": quantity(torch.cuda.max_memory_allocated(), "B", "device"),
    },
    curve={
        "learnt": by_step(first.train_bits),
        "held_out": by_step(first.looked),
    },
    end={
        "learnt": quantity(first.train_bits[-1], "bit"),
        "held_out": quantity(first.looked[-1], "bit"),
    },
)

# %% [markdown]
# /// predict | Counting needs {{ ngram.c3:.2f }} bits for each byte of a file that it never saw. And the model?
# - [score.small >= 0.85 * ngram.c3] About as many
# - [0.45 * ngram.c3 <= score.small < 0.85 * ngram.c3] Between a half and four fifths of that
# - [score.small < 0.45 * ngram.c3] A quarter as many
# /// reveal
# {{ score.small:.2f }} bits per byte, the median of the three training runs.
#
# /// claim | score.small < ngram.c3
# **The model beats counting with three bytes**, on text that neither of them has seen.
# /// otherwise
# This run does not show that the model beats counting with three bytes. On text that neither of them has seen, the model
# needs {{ score.small:.2f }} bits per byte, and counting needs {{ ngram.c3:.2f }}.
# ///
#
# /// claim | score.small < min(ngram.c4, ngram.c5, ngram.c6, ngram.c7)
# And it beats counting with any number of bytes up to seven.
# /// otherwise
# On the same text, counting with four, five, six and seven bytes needs {{ ngram.c4:.2f }}, {{ ngram.c5:.2f }},
# {{ ngram.c6:.2f }} and {{ ngram.c7:.2f }} bits per byte. The lowest of these is the one that a model has to beat.
# ///
# ///
#
# Each training run took {{ training.seconds:.0f }} s and {{ training.memory / 1e9:.1f }} GB of the card's memory.
#
# ### The curve
#
# /// chart | lines
# title: What the model learns, and what it only remembers
# alt: "Two curves over the steps of one training run, in bits per byte. On the text it is learning the loss falls to {{ end.learnt:.2f }}, on the files held out to {{ end.held_out:.2f }}. A horizontal line marks {{ ngram.c3:.2f }}, the loss of counting with three bytes."
# x: steps
# y: bits
# x_scale: linear
# x_label: steps
# y_label: bits per byte
# series:
#   - {name: curve.learnt.*, label: text it is learning}
#   - {name: curve.held_out.*, label: files held out}
# references:
#   - {label: counting, value: ngram.c3}
# caption: One of the three training runs. The loss on the text it is learning is a mean over the steps since the previous point; the other loss is measured at that step.
# ///
#
# Both losses fall steeply at first: spaces, line ends, `self`, `def`. Then they fall slowly. At the end the loss is
# {{ end.learnt:.2f }} on what
# the model is learning, and {{ end.held_out:.2f }} on what it never saw.
#
# /// claim | end.learnt < end.held_out
# The model guesses better on the text that it is learning. Part of the difference is what it knows about these files alone:
# their names, their habits, and some lines **by heart**. That is of no use on any other text.
# /// otherwise
# So this run does not show that the model guesses better on the text that it is learning. Where a model does, part of the
# difference is what it knows about these files alone: their names, their habits, and some lines **by heart**.
# ///
#
# A model with more weights, or one that reads the text more often, remembers more. That is why a loss means something only on
# text that was held out.
#
# A bit is a halving, so a loss has a second meaning: it is the room that a file would take, packed as tightly as these guesses
# allow. The {{ text.held_out / 1e3:.0f }} kB that were held out would become {{ packed.counting / 1e3:.0f }} kB if packed by
# counting three bytes, and {{ packed.model / 1e3:.0f }} kB if packed by the model. To guess well and to pack tightly are the
# same thing.
#
# /// exercise | Whose loss is it? | 3 minutes
# A colleague reports half a bit per byte, for a model that read its text three hundred times. You ask for one more number. Which
# one, and what do you expect?
# /// answer
# The loss on text that was held out, as whole files. After so many readings it is surely well above half a bit: most of the gain
# comes from learning by heart. If your colleague held out lines of the same files, even that number flatters the model.
# ///

# %% [markdown]
# ## Two relatives
#
# **The draft** has a ninth of the weights. By itself it is the worse model. Its use is a different one: it quickly guesses what
# the small model is about to write, and the small model only checks. That pays if the two often agree.
#
# **The model with experts** has eight small feed-forward blocks per layer instead of a single one, and a *router*: one more grid,
# which gives each token a score for every expert. The two experts with the best scores are asked, so a token meets two eighths
# of those weights. A router may fall into the habit of asking the same two every time, and then the other six learn
# nothing; so a small term in the loss rewards using all of them.

# %%
relatives = {
    name: train(shapes[name], data, recipe, seed=0) for name in ("draft", "experts")
}

# %% [markdown]
# ## The weights, to take with you
#
# From each training run we keep the weights, rounded to bf16, in the format that everybody uses. The loss below
# belongs to the kept file, read back.

# %%
import tempfile

from course_kernels.measure import artifact
from course_models import pretrained

models = {"small": first.model} | {
    name: run.model for name, run in relatives.items()
}
files, kept, ready = {}, {}, {}
with tempfile.TemporaryDirectory() as folder:
    for name, model in models.items():
        for path in pretrained.keep(name, model, folder):
            files[path.name.replace(".", "_")] = artifact(path.name, path)
        again = pretrained.load(name, folder, dtype=torch.float32, device=device)
        kept[name] = quantity(held_out(again), "bit")
        ready[name] = again.bfloat16()

# %% tags=["fold"]
# How often the draft's best guess is the small model's, on what neither has learnt.
from course_models.byte_tokens import encode

rows = [encode(text)[: SMALL.max_tokens] for text in library.held_out]
rows = [row for row in rows if len(row) == SMALL.max_tokens]
tokens = torch.tensor(rows, device=device)
with torch.no_grad():
    best = {name: model(tokens).argmax(-1) for name, model in ready.items()}
agree = (best["small"] == best["draft"]).double().mean()

record(
    files=files,
    kept=kept,
    agree=quantity(float(agree)),
    relatives={
        name: {"seconds": quantity(run.seconds, "s", "timed")}
        for name, run in relatives.items()
    },
    together=quantity(
        sum(run.seconds for run in [*runs, *relatives.values()]), "s", "timed"
    ),
)

# %% [markdown]
# /// table
# columns: ["", small, draft, experts]
# rows:
#   - ["weights, in millions", "{{ shape.small.weights / 1e6:.2f }}", "{{ shape.draft.weights / 1e6:.2f }}", "{{ shape.experts.weights / 1e6:.2f }}"]
#   - ["bits per byte on the files held out", "{{ kept.small:.3f }}", "{{ kept.draft:.3f }}", "{{ kept.experts:.3f }}"]
# caption: Counting with three bytes reaches {{ ngram.c3:.3f }}.
# ///
#
# /// claim | kept.small < kept.draft
# The small model is better than its draft.
# /// otherwise
# This run does not show that the small model is better than its draft: compare their losses in the table.
# ///
#
# /// claim | kept.small < kept.experts
# And it is better than the model with experts. That is not a verdict on experts: this one has
# {{ shape.experts.layers:.0f}} layers where the small model has {{ shape.small.layers:.0f}}, a token meets fewer of its
# weights, and each of the eight experts sees a quarter of a text that is already short. Three things differ, and one
# training run cannot say which of them matters. Experts are for models that have more text than time.
# /// otherwise
# Nor does this run show that the small model is better than the model with experts. That is no verdict either: the model with
# experts has {{ shape.experts.layers:.0f}} layers where the small model has {{ shape.small.layers:.0f}}, a token meets fewer of
# its weights, and each of the eight experts sees a quarter of a text that is already short. Three things differ, and one
# training run cannot say which of them matters.
# ///
#
# On the files held out, the draft's best guess is the same as the small model's at {{ agree:.0%}} of the places.
#
# All five training runs together took {{ together:.0f }} s on the card.
#
# - The small one: [small.safetensors](artifact:small.safetensors), and its sizes, [small.json](artifact:small.json).
# - The draft: [draft.safetensors](artifact:draft.safetensors), [draft.json](artifact:draft.json).
# - The one with experts: [experts.safetensors](artifact:experts.safetensors), [experts.json](artifact:experts.json).
#
# They are in the repository, too, so `pretrained.load("small")` from `course_models` is all that you need, even on a laptop.

# %% [markdown]
# ## What it writes
#
# Give the model a beginning and let it go on. First it always takes the most likely byte, which is called **greedy**. Then it draws
# lots, which is called **sampling**: each byte is drawn with the probability that the model gives it, except that likely bytes are made
# a little likelier still.

# %%
from course_kernels.measure import text
from course_models.byte_tokens import decode
from course_models.generate import generate


def written(prompt, most, **how):
    """A prompt, and what the small model writes after it."""
    start = torch.tensor([encode(prompt)], device=device)
    new = generate(ready["small"], start, most, **how)
    return prompt + decode(token for (token,) in new)


METHOD = '    def close(self):\n        """'
FUNCTION = "def soup(cook, pot=None):\n"
record(
    sample={
        "greedy": text(written(METHOD, 320)),
        "lot": text(written(METHOD, 320, temperature=0.8, seed=1)),
        "new": text(written(FUNCTION, 480, temperature=0.8, seed=2)),
    }
)

# %% [markdown]
# Greedy, after the first two lines of a method:
#
# /// text | sample.greedy
# ///
#
# The same beginning, drawn by lot:
#
# /// text | sample.lot
# ///
#
# And here is a function that is in no library. The first line is ours:
#
# /// text | sample.new
# ///

# %% [markdown]
# ### Let it write for you
#
# The weights come with the course, so the model also runs on your laptop, without a GPU:
#
# ```bash
# nox -s serve-model -- "def soup(cook):"
# ```
#
# A status line below the text shows the tokens per second, and how many pages of the cache are held. Give it two texts,
# and both are served at once, in one batch.
#
# ## What it cannot do
#
# Look at these texts the way a mentor looks at homework.
#
# - **The form is right; the sense is not.** Indents, colons, quotes that close, `self` where it belongs: all this can be learnt
#   from the bytes nearby. What the function is *for* cannot.
# - **Names come from nowhere.** It uses names that nobody defined. It has seen what names look like, but not that they mean something.
# - **It has read one small library.** It knows no English except comments and docstrings, no other language, and no
#   facts. Ask it a question, and it writes Python.
# - **It forgets.** It looks at {{ recipe.length:.0f }} bytes, some thirty lines, and has learnt nothing about anything further back.
# - **It may repeat what it read.** It read the text several times, and some lines come back word for word. Those lines belong
#   to the Python Software Foundation.
#
# None of that is the kernels' fault. That is what you get for a few million weights and less than a minute of training.
# The large models have the same parts.
#
# /// exercise | Three changes | 5 minutes
# For each change, say which loss falls, the one on the text that the model learns or the one on the files held out, and why.
#
# 1. Ten times as many steps, the same text.
# 2. Ten times as much text, the same steps.
# 3. The held-out files are learnt as well.
# /// answer
# 1. Certainly the loss on the text that it learns. The other may fall a little and then rise, as more and more is learnt
#    by heart.
# 2. The loss on the files held out. The loss on the text that it learns even rises: nothing is seen often enough to
#    be remembered.
# 3. Both fall, and the second no longer means anything. You cannot see that from the numbers, which is why the split is
#    written down in a file under version control.
# ///
#
# **You can now** work out a loss by hand; say what a model must beat before its loss means anything; read the two
# curves of a training run; and load the weights of this model.

# %% [markdown]
# ## Where this leads
#
# - [One token](one_token.py) shows the parts that were trained here, one by one, at a size that is worth timing.
# - [The ledger](numbers.md) lists every number above, with its spread and the run that it comes from.
