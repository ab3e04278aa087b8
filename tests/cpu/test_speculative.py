"""Speculative decoding: what the pair writes is the large model's; caches roll back; what it is worth, computed."""

import dataclasses
import re
from pathlib import Path

import pytest
import torch
from test_measure_run import MadeUpClock

from course_kernels.measure.check import WrongResult
from course_kernels.speculative_sampling import k02_one_launch
from course_models import bench, config, pretrained, speculative, verify_bench
from course_models.byte_tokens import encode
from course_models.config import Config
from course_models.exact_pairs import LEAST_P, p_value
from course_models.generate import generate
from course_models.model import CacheFull, Model
from course_models.speculative import Pair, acceptance, expected_tokens, first_loss, gain, roll_back, verify

pytestmark = pytest.mark.kept

ROOT, TRAINED = Path(__file__).parents[2], "records/nvidia-h200/docs/a_small_model.artifacts"
TOY = Config(layers=2, width=32, heads=4, kv_heads=2, head_dim=8, hidden=48, vocab=50, max_tokens=64)
# Five words, so that every pair of them is often said.
FEW = dataclasses.replace(TOY, layers=1, vocab=5)


def random_model(shape, seed, sharp=4.0):
    """A model of float32 whose logits are far apart."""
    model = Model.random(shape, seed=seed, dtype=torch.float32)
    with torch.no_grad():
        model.head *= sharp
    return model


def mixed(model, other, share):
    """The model, a little on its way to another one: a draft that often agrees."""
    twin = Model(model.config)
    with torch.no_grad():
        for weight, a, b in zip(twin.parameters(), model.parameters(), other.parameters(), strict=True):
            weight.copy_((1 - share) * a + share * b)
    return twin


@pytest.fixture(scope="module")
def toy():
    model = random_model(TOY, 3)
    return model, mixed(model, random_model(TOY, 4), 0.15)


def prompts(*rows):
    return torch.tensor(rows)


def written(pair, prompt, most):
    found = [[] for _ in prompt]
    for step in pair.write(prompt, most):
        for b, new in enumerate(step):
            found[b] += new
    return found


def plain(model, prompt, most):
    found = [[] for _ in prompt]
    for step in generate(model, prompt, most):
        for b, token in enumerate(step):
            found[b].append(token)
    return found


# --- verify and roll back ---------------------------------------------------------------------------------


def test_all_rows_of_a_verification_are_those_of_the_whole_text(toy):
    model, _ = toy
    text = torch.randint(TOY.vocab, (2, 20), generator=torch.Generator().manual_seed(0))
    cache = model.cache(2, 24)
    found = [verify(model, part, cache) for part in text.split([1, 12, 7], 1)]

    torch.testing.assert_close(torch.cat(found, 1), model(text), atol=1e-4, rtol=1e-4)
    assert cache.lengths.tolist() == [20, 20]


def test_sequences_go_on_where_each_was_rolled_back_to(toy):
    """What lies behind a length is written over, and until then seen by nobody."""
    model, _ = toy
    text = torch.randint(TOY.vocab, (3, 12), generator=torch.Generator().manual_seed(1))
    cache = model.cache(3, 16)
    verify(model, text, cache)
    lengths = [12, 3, 7]
    roll_back(cache, lengths)
    more = torch.randint(TOY.vocab, (3, 4), generator=torch.Generator().manual_seed(2))
    found = verify(model, more, cache)

    assert cache.lengths.tolist() == [16, 7, 11]
    assert cache.held == 16
    for b, n in enumerate(lengths):
        alone = model(torch.cat((text[b, :n], more[b]))[None])[0, n:]
        torch.testing.assert_close(found[b], alone, atol=1e-4, rtol=1e-4)


def test_a_full_cache_and_lengths_that_are_none_are_refused(toy):
    cache = toy[0].cache(2, 8)
    cache.reset(6)
    with pytest.raises(CacheFull, match="6 of 8 tokens are held, no room for 3 more"):
        verify(toy[0], torch.zeros(2, 3, dtype=torch.int64), cache)
    for lengths in ([1], [7, 1], [-1, 2]):
        says = f"lengths: expected 2 numbers from 0 to 6, got {lengths}"
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            roll_back(cache, lengths)


# --- what is written --------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 3, 7])
def test_greedy_it_writes_what_the_model_alone_writes(toy, K):
    prompt = prompts([1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 1, 1])
    pair = Pair(*toy, K)

    assert written(pair, prompt, 30) == plain(toy[0], prompt, 30)
    assert 0.2 < pair.acceptance < 0.95  # both ways are taken
    assert 1.2 < pair.tokens_a_step < K + 1


@pytest.mark.kept(TRAINED)
def test_the_trained_pair_writes_what_the_small_model_alone_writes():
    """And the draft helps."""
    small, draft = (pretrained.load(name, ROOT / TRAINED, dtype=torch.float32) for name in ("small", "draft"))
    texts = [encode(text)[:24] for text in ("def soup(cook, pot=None):\n", "    def close(self):\n        ")]
    pair = Pair(small, draft, 4)

    assert written(pair, torch.tensor(texts), 16) == plain(small, torch.tensor(texts), 16)
    assert pair.tokens_a_step > 2


def test_a_prompt_of_one_token_will_do(toy):
    assert written(Pair(*toy, 3), prompts([5]), 9) == plain(toy[0], prompts([5]), 9)


def test_a_kernel_may_accept(toy):
    """Through the interpreter, with the same tokens, greedy and drawn."""
    prompt = prompts([1, 2, 3], [4, 5, 6])
    for temperature in (0.0, 1.0):
        ours, truth = (
            written(Pair(*toy, 2, temperature, 7, rule), prompt, 6)
            for rule in (k02_one_launch.speculative_sampling, speculative.accept)
        )
        assert ours == truth


def test_a_draft_that_is_the_model_is_always_right(toy):
    """Its cache holds what was written, too: the last draft of a step that passed whole, above all."""
    for temperature in (0.0, 0.7):
        pair = Pair(toy[0], toy[0], 3, temperature)
        written(pair, prompts([1, 2, 3]), 24)
        assert pair.acceptance > 0.98  # one row and four round otherwise
        assert pair.tokens_a_step > 3.8


def due(model, temperature, prompt):
    """The probability of each pair of tokens that may follow."""
    V = model.config.vocab
    with torch.no_grad():
        first = torch.softmax(model(prompt)[0, -1].double() / temperature, -1)
        after = torch.cat((prompt.expand(V, -1), torch.arange(V)[:, None]), 1)
        second = torch.softmax(model(after)[:, -1].double() / temperature, -1)
    return first[:, None] * second


def pairs_of(pair, prompt, count, V):
    counts = torch.zeros(V, V)
    for one in written(pair, prompt.repeat(count, 1), 2):
        counts[one[0], one[1]] += 1
    return counts


@pytest.fixture(scope="module")
def few():
    model = random_model(FEW, 5, sharp=0.4)
    return model, random_model(FEW, 6, sharp=0.4)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.0])
def test_drawn_it_writes_pairs_as_the_model_alone_would(few, temperature):
    """The whole way, caches and all, a draft that is another model, thousands of sequences in one batch."""
    prompt = prompts([1, 4, 2])
    pair = Pair(*few, 2, temperature, seed=1)
    counts = pairs_of(pair, prompt, 6000, 5)

    assert 0.3 < pair.acceptance < 0.95
    assert p_value(counts, due(few[0], temperature, prompt)) > LEAST_P


def not_rolled_back(monkeypatch):
    monkeypatch.setattr(
        speculative, "roll_back", lambda cache, lengths, of=roll_back: of(cache, [cache.held] * len(lengths))
    )


def one_row_too_many(monkeypatch):
    monkeypatch.setattr(
        speculative,
        "roll_back",
        lambda cache, lengths, of=roll_back: of(cache, [min(n + 1, cache.held) for n in lengths]),
    )


def one_row_too_few(monkeypatch):
    monkeypatch.setattr(
        speculative, "roll_back", lambda cache, lengths, of=roll_back: of(cache, [n - 1 for n in lengths])
    )


def rows_see_what_is_behind(monkeypatch):
    monkeypatch.setattr(
        speculative, "rows_attention",
        lambda q, k, v, position, of=speculative.rows_attention: of(q, k, v, position[:, -1:].expand_as(position)),
    )  # fmt: skip


def drafts_are_kept(monkeypatch):
    def rule(target, draft, drafted, temperature, uniforms, of=speculative.accept):
        tokens, accepted = of(target, draft, drafted, temperature, uniforms)
        tokens[:, :-1] = drafted
        return tokens, accepted

    return rule


def strays(pair, prompt, expected):
    """Whether a pair writes something else, and soon: whoever forgets nothing has no room for more."""
    found = [[] for _ in prompt]
    for step in pair.write(prompt, 30):
        for one, new, due in zip(found, step, expected, strict=True):
            one += new
            if one != due[: len(one)]:
                return True
    return False


FAULTS = (not_rolled_back, one_row_too_many, one_row_too_few, rows_see_what_is_behind, drafts_are_kept)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_writes_something_else(toy, fault, monkeypatch):
    prompt = prompts([1, 2, 3], [4, 5, 6], [7, 8, 9])
    expected = plain(toy[0], prompt, 30)
    pair = Pair(*toy, 3)
    assert not strays(pair, prompt, expected)
    pair.rule = fault(monkeypatch) or pair.rule

    assert strays(pair, prompt, expected)


def test_a_fault_of_the_rule_draws_other_pairs(few):
    """The draft taken for what it is drawn from, though both have a temperature of their own."""

    def of_another_temperature(target, draft, *more):
        return speculative.accept(target, draft.sqrt() / draft.sqrt().sum(-1, keepdim=True), *more)

    prompt = prompts([1, 4, 2])
    counts = pairs_of(Pair(*few, 2, 0.7, 1, of_another_temperature), prompt, 6000, 5)
    assert p_value(counts, due(few[0], 0.7, prompt)) < LEAST_P / 1000


def test_a_seed_decides(toy):
    prompt = prompts([1, 2, 3])
    runs = [written(Pair(*toy, 3, 1.0, seed), prompt, 20) for seed in (1, 1, 2)]

    assert runs[0] == runs[1] != runs[2]


REFUSED = {
    "K: expected at least 1, got 0": {"K": 0},
    "temperature: expected 0 or more, got -1.0": {"temperature": -1.0},
    "temperature: expected 0 or more, got nan": {"temperature": float("nan")},
    "draft: expected the model's vocabulary of 50 tokens, got 5": {"draft": Model(FEW)},
}


@pytest.mark.parametrize(("says", "other"), REFUSED.items(), ids=REFUSED)
def test_what_a_pair_refuses(toy, says, other):
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        Pair(**{"model": toy[0], "draft": toy[1], "K": 2} | other)


def test_what_cannot_be_written_is_refused_before_the_first_step(toy):
    pair = Pair(*toy, 4)
    for prompt, most, says in (
        (
            torch.zeros(1, 0, dtype=torch.int64), 3,
            "prompt: expected (B, N) int64, none of them 0, got torch.int64 (1, 0)",
        ),
        (prompts([1]), 0, "most: expected at least 1, got 0"),
        (
            prompts([1] * 20), 41,
            "prompt: 20 tokens, 41 to write and 4 drafts are more than the 64 positions of a model: ask for fewer, or "
            "give a shorter prompt",
        ),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
            pair.write(prompt, most)
    assert len(written(pair, prompts([1] * 20), 40)[0]) == 40


# --- what it is worth -------------------------------------------------------------------------------------


def test_how_likely_a_draft_passes_is_the_sum_of_the_smaller_ones(toy):
    tokens = torch.randint(TOY.vocab, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        p, q = (torch.softmax(model(tokens).double() / 0.5, -1) for model in toy)
        same = (toy[0](tokens).argmax(-1) == toy[1](tokens).argmax(-1)).double()

    torch.testing.assert_close(acceptance(*toy, tokens, 0.5), torch.minimum(p, q).sum(-1))
    assert torch.equal(acceptance(*toy, tokens, 0.0), same)
    assert acceptance(toy[0], toy[0], tokens, 1.0).min() > 1 - 1e-12


def test_a_run_accepts_as_often_as_the_distributions_say(few):
    """The first draft behind one prompt, whose probability is known."""
    prompt = prompts([1, 4, 2])
    expected = float(acceptance(*few, prompt, 1.0)[0, -1])
    pair = Pair(*few, 1, 1.0)
    count = 4000
    steps = next(pair.write(prompt.repeat(count, 1), 2))

    # Six standard deviations of a coin that is thrown so often: a right run passes them twice in a thousand million.
    assert abs(sum(len(new) == 2 for new in steps) / count - expected) < 6 * (0.25 / count) ** 0.5


def test_expected_tokens():
    assert expected_tokens(0.7, 4) == pytest.approx((1 - 0.7**5) / 0.3)
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.0, 4) == 1
    assert expected_tokens(0.5, 0) == 1
    for p, k, says in ((1.1, 2, "p: expected 0 to 1, got 1.1"), (0.5, -1, "k: expected at least 0, got -1")):
        with pytest.raises(ValueError, match=f"^{says}$"):
            expected_tokens(p, k)


def test_gain_divides_tokens_and_time():
    """2.9375 tokens in 12 + 5 instead of one in 10."""
    assert gain(0.5, 4, {1: 10.0, 5: 12.0}.__getitem__, 1.0) == pytest.approx(1.9375 * 10 / 17)
    assert gain(0.0, 4, {1: 10.0, 5: 10.0}.__getitem__, 0.0) == 1.0
    assert gain(1.0, 4, {1: 10.0, 5: 50.0}.__getitem__, 0.0) == 1.0


@pytest.mark.parametrize(
    ("gains", "batch"),
    [
        ({1: 2.0, 8: 1.5, 64: 0.9, 128: 0.8}, 64),
        ({1: 2.0, 8: 0.9, 64: 1.1, 128: 0.8}, 128),  # not the first dip
        ({1: 2.0, 8: 1.0}, None),
        ({1: 0.5, 8: 0.4}, 1),
        ({}, None),
    ],
)
def test_from_which_batch_on_it_loses(gains, batch):
    assert first_loss(gains) == batch


# --- its time ---------------------------------------------------------------------------------------------

TIMED = dataclasses.replace(TOY, max_tokens=64, vocab=264)


def test_a_verification_is_measured_with_the_bytes_of_its_floor():
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    found = verify_bench.steps(model, (1, 3), (1, 4), held=20, timer=MadeUpClock())

    assert list(found) == [(1, 1), (1, 4), (3, 1), (3, 4)]
    many = found[3, 4]
    assert many.workload == {"dtype": "float32", "dims": {"B": 3, "N": 20, "T": 4}}
    weights = config.decode_bytes(TIMED, 3, 0, 4) - config.cache_bytes(TIMED, 3, 1, 4)
    assert many.reads_bytes == weights + config.cache_bytes(TIMED, 3, 20, 4)
    assert many.writes_bytes == config.cache_bytes(TIMED, 3, 4, 4)
    assert found[3, 1].reads_bytes == many.reads_bytes


def test_a_verification_whose_rows_see_too_much_is_refused(monkeypatch):
    rows_see_what_is_behind(monkeypatch)
    model = bench.subject(TIMED, dtype=torch.float32, device="cpu")
    with pytest.raises(WrongResult):
        verify_bench.steps(model, (2,), (3,), held=9, timer=MadeUpClock())
