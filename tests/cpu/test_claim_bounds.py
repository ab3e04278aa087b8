"""A claim is tied to its sentence: what its condition holds up, and who is spoken of."""

import pytest
from test_render import problems, repository
from test_values import measurement, scope

from course_site.lint.lint import find_typed_numbers
from course_site.values.claim_bounds import bounds_of
from course_site.values.claims import others_named, unspoken
from course_site.values.values import Define, Scope


@pytest.mark.parametrize(
    ("sentence", "condition", "allowed"),
    [
        ("Ours is 1.1× faster.", "a.tflops > 1.02 * b.tflops", False),
        ("Ours is 1.1× faster.", "a.tflops > 1.1 * b.tflops", True),
        ("Ours is 1.1× faster.", "a.us * 1.1 < b.us", True),
        ("Ours is 1.1× faster.", "b.us / a.us > 1.1", True),
        ("Ours is twice as fast.", "a.us < 2 * b.us", False),
        ("Ours is twice as fast.", "a.us < 0.5 * b.us", True),
        ("Ours is twice as fast.", "1.9 < b.us / a.us < 2.1", True),
        ("Ours is twice as fast.", "1.2 < b.us / a.us < 2.1", False),
        ("Ours is twice as fast.", "b.us / a.us > 1.9", False),
        ("Ours is nearly twice as fast.", "b.us / a.us > 1.9", True),
        ("Ours is nearly twice as fast.", "b.us / a.us > 1.5", False),
        ("Ours has less than half of the peak.", "0.12 < a.of_peak < 0.45", True),
        ("Ours has less than half of the peak.", "a.of_peak < 0.7", False),
        ("It is no more than 7 % behind.", "abs(a.us / b.us - 1) < 0.07", True),
        ("It is no more than 7 % behind.", "abs(a.us / b.us - 1) < 0.2", False),
        ("It costs at most 2 % of the time.", "a.us < 1.02 * b.us", True),
        ("It costs at most 2 % of the time.", "a.us < 1.2 * b.us", False),
        ("It reaches 89 % of cuBLAS.", "a.tflops > 0.89 * b.tflops", True),
        ("It reaches 91 % of cuBLAS.", "a.tflops > 0.89 * b.tflops", False),
        ("Ours is 3 times as fast.", "a.us < b.us and c.us < 3 * d.us", False),
        ("Ours is 3 times as fast.", "not a condition", False),
    ],
)  # fmt: skip
def test_a_ratio_of_a_sentence_is_a_bound_of_its_condition_in_its_direction(sentence, condition, allowed):
    assert (find_typed_numbers(sentence, in_claim=True, condition=condition) == []) is allowed


def test_the_bounds_of_a_condition():
    assert bounds_of("a > 1.5 * b").ratios[0] == (1.5, float("inf"))
    assert bounds_of("0.5 * a < b < 0.8 * a").ratios[:2] == ((0.5, 0.8), (1.25, 2.0))
    assert bounds_of("max(abs(a / b - 1), abs(c / d - 1)) < 0.1").apart == (0.1,)
    assert bounds_of("a >").ratios == ()


@pytest.mark.parametrize(
    ("excerpt", "condition", "said"),
    [
        ("beats SDPA", "flash.full.us < sdpa.full.us", ""),
        ("beats SDPA", "flash.full.tflops > sdpa.full.tflops", ""),
        ("beats SDPA", "sdpa.full.us / flash.full.us > 1.1", ""),
        ("beats SDPA", "ratio > 1.1", ""),
        ("slower than SDPA", "flash.full.us > sdpa.full.us", ""),
        ("on par with SDPA", "0.9 < flash.full.us / sdpa.full.us < 1.1", ""),
        ("beats cuBLAS", "flash.full.us < sdpa.full.us", "speaks of 'cublas', and no name of its condition does"),
    ],
)  # fmt: skip
def test_who_is_spoken_of_stands_in_the_condition(excerpt, condition, said):
    here = scope()
    here.defines["ratio"] = Define("ratio", "sdpa.full.us / flash.full.us")
    found = unspoken(excerpt, condition, here)
    assert said in found
    assert bool(said) == bool(found), found


def test_a_kernel_of_the_page_that_is_compared_with_stands_in_the_condition():
    timed = {"naive": measurement(9.0), "padded": measurement(3.0), "turned": measurement(4.0)}
    kernels = {"naive": "k01_naive", "padded": "k03_padded", "turned": "k02_tiled"}
    names = {name: {**leaf, "kernel": f"transpose/{kernels[name]}"} for name, leaf in timed.items()}
    here = Scope("l3", names, None)
    condition = "turned.us > 1.1 * padded.us"

    def said(sentence):
        return list(others_named(sentence, condition, here))

    assert said("It takes longer than the padded one.") == []
    assert said("It is quicker than you think, and the naive one is not in it.") == []
    assert said("The tiled kernel is slower than the padded kernel.") == []  # by its kernel's name
    assert said("It is as fast as the naive kernel.") == [
        "the sentence says 'as fast as the naive kernel', and no name of its condition is of 'naive'"
    ]
    assert said("It beats the good old naive one.") != []


PAGE = """
# ---
# id: w1
# title: Flash
# needs: gpu
# ---

# %%
from tiny import kernel

# %% [markdown]
# # Flash
#
# /// claim | {condition}
# {body}
# /// otherwise
# {otherwise}
# ///
"""
TRUE = "flash.us < 0.9 * sdpa.us"


@pytest.mark.parametrize(
    ("condition", "body", "otherwise", "said"),
    [
        (TRUE, "It beats SDPA.", "It takes {{ flash.us:.0f }} µs.", ""),
        (TRUE, "It beats cuBLAS.", "So.", "the sentence speaks of 'cublas'"),
        (TRUE, "It is slower than SDPA.", "So.", "that we have at most 1 times the speed of SDPA"),
        (TRUE, "It is 1.4 times as fast as SDPA.", "So.", "typed number '1.4 times as fast'"),
        (TRUE, "So.", "It beats SDPA.", "typed number 'beats SDPA'"),
        (TRUE, "So.", "It reaches 91 % of peak.", "typed number '91 % of peak'"),
        (TRUE, "So.", "It takes {{ flash.us:.0f }} ms.", "'flash.us' is in µs, and the words after it say ms"),
        (TRUE, "So.", "It takes {{ flush.us:.0f }} µs.", "unknown value 'flush.us'"),
    ],
)  # fmt: skip
def test_both_branches_of_a_claim_are_looked_at(tmp_path, monkeypatch, condition, body, otherwise, said):
    page = PAGE.format(condition=condition, body=body, otherwise=otherwise)
    found = problems(repository(tmp_path, monkeypatch, page.lstrip()))
    assert bool(said) == bool(found), found
    assert not said or any(said in line for line in found), found
