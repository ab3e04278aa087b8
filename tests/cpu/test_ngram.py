"""N-grams over bytes: every chance by hand on texts of a few bytes, and sums that must be one."""

import numpy as np
import pytest

from course_models.ngram import NGrams

pytestmark = pytest.mark.kept


def test_without_a_context_a_chance_is_a_share_less_the_discount():
    # "aab": a twice, b once. One byte occurs once and one twice, so D = 1 / (1 + 2 * 1) = 1 / 3, and what is taken
    # from the two of them, 2 * D, is spread over all 256.
    model = NGrams([b"aab"], context=0)
    assert model.discounts == (pytest.approx(1 / 3),)
    spread = (1 / 3) * 2 / 3 / 256
    chances = model.chances(b"abz")[0]
    assert chances == pytest.approx([(2 - 1 / 3) / 3 + spread, (1 - 1 / 3) / 3 + spread, spread])


def test_with_a_context_it_is_the_share_among_what_followed():
    # Pairs of "abababac": ab 3, ba 3, ac 1; none twice, so D is a half. After a: b of 4, c of 4, two kinds.
    model = NGrams([b"abababac"], context=1)
    below = NGrams([b"abababac"], context=0).chances(b"abcz")[0]
    b, c, z = (model.chances(text)[1][1] for text in (b"ab", b"ac", b"az"))
    assert model.discounts[1] == 0.5
    assert b == pytest.approx((3 - 0.5) / 4 + 0.5 * 2 / 4 * below[1])
    assert c == pytest.approx((1 - 0.5) / 4 + 0.5 * 2 / 4 * below[2])
    assert z == pytest.approx(0.5 * 2 / 4 * below[3])


def test_a_context_that_was_never_seen_says_what_a_shorter_one_says():
    model = NGrams([b"abcabd"], context=3)
    rows = model.chances(b"zzzza")
    assert rows[3][4] == rows[2][4] == rows[1][4] == rows[0][4]


def test_the_first_bytes_of_a_text_have_fewer_before_them():
    rows = NGrams([b"abcabd"], context=3).chances(b"abc")
    assert rows[3][0] == rows[0][0]
    assert rows[3][1] == rows[1][1]
    assert rows[3][2] == rows[2][2] != rows[1][2]


def test_no_count_goes_from_one_text_into_the_next():
    apart, together = NGrams([b"ab", b"ba"], context=1), NGrams([b"abba"], context=1)
    assert apart.chances(b"bb")[1][1] < together.chances(b"bb")[1][1]


@pytest.mark.parametrize("context", range(8))
def test_the_chances_of_all_bytes_sum_to_one(context):
    text = bytes(np.random.default_rng(0).integers(97, 103, 400, dtype=np.uint8))
    model = NGrams([text], context)
    for before in (b"", b"a", b"abcdefa", b"zzzzzzz", text[:7]):
        each = [model.chances(before + bytes([byte]))[context][-1] for byte in range(256)]
        assert min(each) > 0
        assert sum(each) == pytest.approx(1.0, abs=1e-12)


def test_the_loss_is_the_mean_of_the_bits_over_all_texts():
    model = NGrams([b"abababac"], context=1)
    chances = [*model.chances(b"aba")[1], *model.chances(b"c")[1]]
    assert model.bits_per_byte([b"aba", b"", b"c"])[1] == pytest.approx(-np.log2(chances).mean())
    # What cannot be guessed costs 8 bits, and nothing that is measured on is ever counted.
    uniform = bytes(range(256)) * 40
    assert NGrams([uniform], 0).bits_per_byte([uniform])[0] == pytest.approx(8.0, abs=0.01)


def test_a_long_context_beats_a_short_one_on_text_that_repeats():
    losses = NGrams([b"the soup is cold. " * 50], 4).bits_per_byte([b"the soup is cold. " * 3])
    assert list(losses) == sorted(losses, reverse=True)
    assert losses[4] < 0.5 < 3 < losses[0]


def test_what_cannot_be_counted_is_refused():
    for context in (-1, 8):
        with pytest.raises(ValueError, match="expected 0 to 7 bytes"):
            NGrams([b"ab"], context)
    with pytest.raises(ValueError, match="at least one byte to count"):
        NGrams([b""], 1)
    with pytest.raises(ValueError, match="at least one byte to measure on"):
        NGrams([b"ab"], 1).bits_per_byte([b""])
