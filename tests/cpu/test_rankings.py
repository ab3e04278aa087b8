"""Who leads, and what is left of a peak, is told by a claim or a value, and never by words alone."""

import pytest

from course_site.lint.lint import find_typed_numbers, lint_markdown

RANKED = """
The library needs two launches for what our kernel does in one, and so it comes in second.
Here cuBLAS has met its master.
Our kernel leaves the library standing.
Ours leaves the library in the dust.
By now it is neck and neck with cuBLAS.
cuBLAS cannot keep up with it.
Our kernel finishes first.
The library finishes last.
It would do, and it is done before cuBLAS has finished its first tile.
For every tile that cuBLAS finishes, ours finishes two.
In the time of one cuBLAS call it is done.
The gap to the library is gone.
The gap to cuBLAS is a rounding error.
It closes half of the gap to cuDNN.
It is the quickest multiply on this page.
Of the two, PyTorch is the loser.
With that we are ahead of cuBLAS.
Against PyTorch, ours wins.
cuDNN loses.
It laps PyTorch.
FlashInfer is already behind.
Nothing on the card does this sooner.
| the kernel | it edges out cuBLAS |
It is as good as cuBLAS.
PyTorch needs longer than we do.
It is done while PyTorch still launches.
Only cuBLAS gets more out of the tensor cores.
One could not tell it from cuBLAS.
Between it and cuBLAS lies a hair.
The last rung is where the library is.
| ours | 3 launches | first |
""".strip().splitlines()
SHARES = """
Most of what the card can do, this kernel does.
All but a twentieth of the machine is at work.
Hardly anything of the peak is left.
The last kernel gives nearly everything the tensor cores have.
It is a hair below the roof.
Of the peak it keeps nearly all.
It has practically the whole of the bandwidth.
The better part of the data sheet's bandwidth arrives.
The tensor cores hardly ever rest in it.
Nine tenths of the machine are at work in it.
The kernel uses the tensor cores to the full.
Its speed is that of the data sheet.
""".strip().splitlines()
CODE = [
    "Our share of the peak is `0.95 exactly`.",
    "It ends at `0.97 of peak`.",
    "Of the peak it keeps `nineteen twentieths`.",
    "So:\n\n```text\nours     0.97\nlibrary  0.61\n```",
    "So:\n\n```\nours against the library: 97 %\n```",
    "So:\n\n~~~ console\nkernel   share\nours     97\nlibrary  61\n~~~",
    'So:\n\n```{ .text title="run" }\nloss 0.31\n```',
]


@pytest.mark.parametrize("sentence", RANKED + SHARES + CODE)
def test_what_ranks_or_shares_in_words_is_found(sentence):
    assert find_typed_numbers(sentence)
    assert find_typed_numbers(sentence, in_claim=True, condition="a < b") == [] or sentence not in RANKED


@pytest.mark.parametrize(
    "sentence",
    [
        "Does cuBLAS win?",
        "If cuBLAS wins, look at its tiles.",
        "It has to catch up with cuBLAS.",
        "In *Outperforming cuBLAS* he wins [^boehm2022].",
        "Ours is ahead of cuBLAS: {{ a.us / b.us:.2f }} times its speed.",
        "So ours loses. cuBLAS has {{ b.tflops:.0f }} TFLOP/s.",
        '### "Triton wins against CUDA"',
        "NumPy's `int32` stands behind this name.",
        "In a kernel at its roof nearly all warps wait.",
        "By the roof, hardly anything: it waits for bytes.",
        "Most of them run on one card, and are held against what the card can do.",
        "So:\n\n```python\nx = 0.5\n```",
        "So:\n\n```\nL1 -> L2 -> HBM\n128 rows, 4 tiles\n```",
        "Its type is `half`, and `0.5 * x` is its half.",
    ],
)
def test_ordinary_words_are_left_alone(sentence):
    assert find_typed_numbers(sentence) == []


def test_a_claim_holds_a_ranking_and_the_prose_around_it_does_not():
    claim = "/// claim | a.us < b.us\nOurs is ahead of cuBLAS.\n///\n"
    assert lint_markdown(claim) == []
    (found,) = lint_markdown(f"{claim}\nAgain, ours is ahead of cuBLAS.\n")
    assert (found.line, found.excerpt) == (5, "is ahead")
